// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::uapi::{self, request};
use kfi::{bits, EqAttr, Error, Event, EventError, KfiErrno, WaitObj};
use kfi_host::signal;
use rand::RngExt;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::FromZeros;

use super::open_eq;
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::sleeper::Sleeper;
use crate::{check, check_eq};

fn event_failed(err: i32) -> EventError {
    EventError {
        err,
        ..EventError::default()
    }
}

pub(super) fn eq_order(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    expect_fabric(eq.read(8), KfiErrno::EAGAIN)?;
    expect_fabric(eq.peek(8), KfiErrno::EAGAIN)?;
    expect_fabric(eq.read_err(), KfiErrno::EAGAIN)?;
    check_eq!(eq.write(3, b"first")?, 5);
    check_eq!(eq.write(u32::MAX, &[])?, 0);
    let error = EventError {
        context: u64::MAX,
        data: 0x1234_5678_9abc_def0,
        err: 300,
        prov_errno: -4,
        object: 0,
    };
    eq.write_err(&error)?;
    eq.write(4, b"last")?;

    let first = Event {
        event: 3,
        data: b"first".to_vec(),
        object: 0,
    };
    expect_fabric(eq.read_err(), KfiErrno::EAGAIN)?;
    for _ in 0..3 {
        check_eq!(eq.peek(5)?, first);
    }
    check_eq!(eq.read(128)?, first);
    check_eq!(eq.peek(0)?.event, u32::MAX);
    check_eq!(
        eq.read(0)?,
        Event {
            event: u32::MAX,
            ..Event::default()
        }
    );
    for _ in 0..2 {
        expect_fabric(eq.read(8), KfiErrno::EAVAIL)?;
        expect_fabric(eq.peek(8), KfiErrno::EAVAIL)?;
        expect_fabric(eq.sread_ms(8, -1), KfiErrno::EAVAIL)?;
    }
    check_eq!(eq.read_err()?, error);
    expect_fabric(eq.read_err(), KfiErrno::EAGAIN)?;
    check_eq!(eq.sread_ms(8, -1)?.data, b"last");
    expect_fabric(eq.read(8), KfiErrno::EAGAIN)
}

pub(super) fn eq_attributes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let open = |attr: EqAttr| rig.fabric.event_queue(&attr);
    for wait_obj in [4, 5, 1000, 0x8000_0000, u32::MAX] {
        let attr = EqAttr::new().wait_obj(WaitObj(wait_obj));
        expect_fabric(open(attr), KfiErrno::EINVAL)?;
    }
    let write = bits::WRITE;
    // KFI_WRITE and KFI_AFFINITY mean something.
    let known = [write, 1 << 29];
    for bit in (0..64)
        .map(|bit| 1 << bit)
        .filter(|bit| !known.contains(bit))
    {
        for flags in [bit, bit | write] {
            expect_fabric(open(EqAttr::new().flags(flags)), KfiErrno::EINVAL)?;
        }
    }
    for size in [(1 << 17) + 1, 1 << 32, 1 << 48, u64::MAX / 2, u64::MAX] {
        let result = open(EqAttr::new().size(size));
        check!(
            matches!(
                result,
                Err(Error::Fabric(KfiErrno::EINVAL) | Error::Os(Errno::INVAL | Errno::DQUOT))
            ),
            "size {size}: {result:?}"
        );
    }
    expect_fabric(open(EqAttr::new().wait_obj(WaitObj::SET)), KfiErrno::EINVAL)?;
    let eq = open(EqAttr::null())?;
    expect_fabric(eq.sread_ms(8, 0), KfiErrno::ETIMEDOUT)?;
    drop(eq);
    rig.close()
}

pub(super) fn eq_sizes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    let mut rng = env.rng();
    for len in [1, 7, 8, 64, 127, 128] {
        let data: Vec<u8> = (0..len).map(|_| rng.random()).collect();
        check_eq!(eq.write(9, &data)?, len);
        for room in [0, 1, len - 1] {
            if room < len {
                expect_fabric(eq.read(room), KfiErrno::ETOOSMALL)?;
                expect_fabric(eq.peek(room), KfiErrno::ETOOSMALL)?;
                expect_fabric(eq.sread_ms(room, -1), KfiErrno::ETOOSMALL)?;
            }
        }
        // It has stayed where it was.
        check_eq!(eq.peek(len)?.data, data);
        for room in [129, 1000, usize::MAX] {
            expect_os(eq.read(room), Errno::TOOBIG)?;
        }
        check_eq!(eq.read(128)?.data, data);
    }
    // Behind the event there is nothing of an older one.
    eq.write(7, &[0xaa; 128])?;
    eq.read(128)?;
    eq.write(7, b"x")?;
    let mut argument = uapi::kfi_shim_eq_event {
        eq: eq.handle(),
        len: 128,
        ..FromZeros::new_zeroed()
    };
    argument.data.fill(0x55);
    rig.session.ioctl(request::EQ_READ, &mut argument)?;
    check_eq!(argument.result, 1);
    check!(argument.data[1..].iter().all(|&b| b == 0 || b == 0x55));
    for len in [129, 1000] {
        expect_os(eq.write(7, &vec![0; len]), Errno::TOOBIG)?;
    }
    expect_fabric(eq.read(128), KfiErrno::EAGAIN)
}

pub(super) fn eq_full(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for size in [1, 2, 7, 64] {
        let eq = rig.fabric.event_queue(&EqAttr::new().size(size))?;
        // Beyond the types that there are.
        let first = 1000_u32;
        let mut written = 0_u32;
        while eq.write(first + written, b"x").is_ok() {
            written += 1;
        }
        check!(u64::from(written) >= size, "{written} of {size} events");
        expect_fabric(eq.write(0, b"x"), KfiErrno::EAGAIN)?;
        expect_fabric(eq.write_err(&event_failed(5)), KfiErrno::EAGAIN)?;
        for i in 0..2 * written {
            check_eq!(eq.read(8)?.event, first + i);
            eq.write(first + written + i, b"x")?;
            expect_fabric(eq.write(0, b"x"), KfiErrno::EAGAIN)?;
        }
    }
    Ok(())
}

pub(super) fn eq_bad_requests(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    eq.write(7, b"kept")?;
    let peek = bits::PEEK;
    for request in [request::EQ_READ, request::EQ_SREAD, request::EQ_WRITE] {
        for bit in (0..64).map(|bit| 1_u64 << bit) {
            for flags in [bit, bit | peek] {
                if flags == peek && request.number() != request::EQ_WRITE.number() {
                    continue;
                }
                let mut argument = uapi::kfi_shim_eq_event {
                    eq: eq.handle(),
                    flags,
                    len: 8,
                    timeout: -1,
                    ..FromZeros::new_zeroed()
                };
                rig.session.ioctl(request, &mut argument)?;
                let invalid = -Errno::INVAL.raw_os_error();
                check_eq!(argument.result, invalid, "flags {flags:#x}");
            }
        }
    }
    for err in [0, -1, i32::MIN] {
        expect_fabric(eq.write_err(&event_failed(err)), KfiErrno::EINVAL)?;
    }
    // Only the provider has descriptions of connections.
    for entry in [&b""[..], &[7; 8], &[7; 16], &[7; 128]] {
        expect_os(eq.write(uapi::KFI_CONNREQ, entry), Errno::INVAL)?;
    }
    check_eq!(eq.read(8)?.data, b"kept");
    expect_fabric(eq.read(8), KfiErrno::EAGAIN)
}

/// A thread that only looks sees events as they were written, also if another one takes them out at
/// that moment: numbers that could be addresses of the kernel are what user space has written.
pub(super) fn eq_peek_beside_read(env: &Env) -> Outcome {
    const WORDS: u64 = 16;
    const ADDRESS: u64 = 0xffff_8880_0000_0000;
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    let rounds = env.scaled(20_000, 2_000);
    let entry = |number: u64| -> Vec<u8> {
        let words = (0..WORDS).map(|word| ADDRESS | (number << 8) | (word << 3));
        words.flat_map(u64::to_ne_bytes).collect()
    };
    let written = |event: &Event| -> Outcome {
        let first = event.data.first_chunk().copied().map(u64::from_ne_bytes);
        let number = (first.unwrap_or(0) >> 8) & 0xff_ffff;
        check_eq!(event.data, entry(number), "event {number}");
        check_eq!(event.object, 0);
        Ok(())
    };
    let over = AtomicBool::new(false);
    let looked = thread::scope(|scope| {
        let looks = scope.spawn(|| -> Result<u64, Stop> {
            let mut looked = 0u64;
            while !over.load(Ordering::Relaxed) {
                match eq.peek(128) {
                    Ok(event) => written(&event)?,
                    Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                        thread::yield_now();
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
                looked += 1;
            }
            Ok(looked)
        });
        let outcome = (|| -> Outcome {
            for number in 0..rounds {
                check_eq!(eq.write(1000, &entry(number))?, 128);
                let event = eq.read(128)?;
                check_eq!(event.data, entry(number));
            }
            Ok(())
        })();
        over.store(true, Ordering::Relaxed);
        let looked = looks.join().unwrap_or_else(|_| Err(Stop::fail("panicked")));
        outcome.and(looked)
    })?;
    env.note(format!("{looked} looks at {rounds} events"));
    drop(eq);
    rig.close()
}

pub(super) fn eq_sread(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    let asleep = |timeout| {
        let eq = eq.clone();
        Sleeper::asleep(move || eq.sread_ms(4, timeout))
    };
    for timeout in [-1, i32::MIN, i32::MAX] {
        eq.write(7, b"1")?;
        check_eq!(eq.sread_ms(4, timeout)?.data, b"1");
        let reader = asleep(timeout)?;
        eq.write(2, b"22")?;
        check_eq!(reader.join()?.0?.data, b"22");
        let reader = asleep(timeout)?;
        eq.write_err(&event_failed(5))?;
        expect_fabric(reader.join()?.0, KfiErrno::EAVAIL)?;
        check_eq!(eq.read_err()?.err, 5);
        let reader = asleep(timeout)?;
        eq.write(3, b"too long")?;
        expect_fabric(reader.join()?.0, KfiErrno::ETOOSMALL)?;
        eq.read(8)?;
    }
    signal::count(Signal::USR1, true)?;
    let reader = asleep(-1)?;
    signal::send_to_thread(reader.tid(), Signal::USR1)?;
    expect_fabric(reader.join()?.0, KfiErrno::EINTR)?;

    let none = EqAttr::new().wait_obj(WaitObj::NONE);
    let none = rig.fabric.event_queue(&none)?;
    none.write(7, b"1")?;
    for timeout in [0, 1, -1] {
        expect_fabric(none.sread_ms(8, timeout), KfiErrno::EINVAL)?;
    }
    none.read(8)?;
    Ok(())
}
