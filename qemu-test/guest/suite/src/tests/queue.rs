// SPDX-License-Identifier: GPL-2.0

//! Completion queues and event queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kfi::uapi::{self, request};
use kfi::{
    bits, Completion, CompletionError, CompletionQueue, CqAttr, CqFormat, EqAttr, Error, Event,
    EventError, EventQueue, KfiErrno, WaitObj,
};
use kfi_host::signal;
use rand::RngExt;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::rig::{expect_busy, expect_fabric, expect_os, in_threads, pin, Rig};
use crate::sleeper::Sleeper;
use crate::tests::wait_set::{self, completion, cq_in, drain, eq_in};
use crate::{check, check_eq, tests};

tests! {
    "queue" parallel;
    "case-52-control" ["R-CTL-6 R-CTL-8 R-CTL-9"] control;
    "cq-formats" ["kfi_shim.h"] cq_formats;
    "cq-attributes" ["R-CNTR-8 kfi_shim.h"] cq_attributes;
    "cq-order" ["kfi_shim.h"] cq_order;
    "cq-full" ["kfi_shim.h"] cq_full;
    "cq-counts" ["kfi_shim.h"] cq_counts;
    "cq-bad-addresses" ["kfi_shim.h"] cq_bad_addresses;
    "cq-bad-entries" ["kfi_shim.h"] cq_bad_entries;
    "cq-sread" ["kfi_shim.h"] cq_sread;
    "cq-sread-timeouts" ["kfi_shim.h"] cq_sread_timeouts;
    "cq-signal" ["kfi_shim.h"] cq_signal;
    alone "cq-readers-share" ["kfi_shim.h"] cq_readers_share;
    "eq-order" ["kfi_shim.h"] eq_order;
    "eq-attributes" ["kfi_shim.h"] eq_attributes;
    "eq-sizes" ["kfi_shim.h"] eq_sizes;
    "eq-full" ["kfi_shim.h"] eq_full;
    "eq-bad-requests" ["kfi_shim.h"] eq_bad_requests;
    "eq-sread" ["kfi_shim.h"] eq_sread;
    "case-71-thread-inside-sread" ["R-CLOSE-2"] thread_inside_sread;
}

fn open_cq(rig: &Rig) -> Result<Arc<CompletionQueue>, Stop> {
    let attr = CqAttr::new().wait_obj(WaitObj::QUEUE);
    Ok(Arc::new(rig.domain.completion_queue(&attr)?))
}

fn open_eq(rig: &Rig) -> Result<Arc<EventQueue>, Stop> {
    let attr = EqAttr::new().wait_obj(WaitObj::QUEUE);
    Ok(Arc::new(rig.fabric.event_queue(&attr)?))
}

fn failed(err: i32) -> CompletionError {
    CompletionError {
        err,
        ..CompletionError::default()
    }
}

fn event_failed(err: i32) -> EventError {
    EventError {
        err,
        ..EventError::default()
    }
}

fn control(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = wait_set::open(&rig)?;
    for wait_obj in [WaitObj::NONE, WaitObj::QUEUE, WaitObj::UNSPEC] {
        let should = match wait_obj {
            WaitObj::UNSPEC => WaitObj::QUEUE,
            wait_obj => wait_obj,
        };
        let attr = CqAttr::new().wait_obj(wait_obj);
        let cq = rig.domain.completion_queue(&attr)?;
        check_eq!(cq.wait_obj()?, should, "wait object of a queue");
        let attr = EqAttr::new().wait_obj(wait_obj);
        let eq = rig.fabric.event_queue(&attr)?;
        check_eq!(eq.wait_obj()?, should, "wait object of an event queue");
    }
    let (cq, eq) = (cq_in(&rig.domain, &set)?, eq_in(&rig, &set)?);
    check_eq!(cq.wait_obj()?, WaitObj::SET);
    check_eq!(eq.wait_obj()?, WaitObj::SET);

    // A wait set has default flags, as a counter has.
    let (get, put) = (uapi::KFI_GETOPSFLAG, uapi::KFI_SETOPSFLAG);
    for flags in [0, 1, u64::MAX, 1 << 40] {
        rig.session.control(set.handle(), put, flags)?;
        check_eq!(rig.session.control(set.handle(), get, 0)?, flags);
    }
    let poll = rig.domain.poll_set()?;
    for command in [get, put] {
        for handle in [cq.handle(), eq.handle(), poll.handle()] {
            let result = rig.session.control(handle, command, 0);
            expect_fabric(result, KfiErrno::ENOSYS)?;
        }
    }
    let command = uapi::KFI_GETWAITOBJ;
    let result = rig.session.control(poll.handle(), command, 0);
    expect_fabric(result, KfiErrno::ENOSYS)?;
    for handle in [cq.handle(), eq.handle(), poll.handle(), set.handle()] {
        for command in [0x7fff_0000, u32::MAX] {
            expect_os(rig.session.control(handle, command, 0), Errno::INVAL)?;
        }
    }
    Ok(())
}

fn cq_formats(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let all = Completion {
        op_context: u64::MAX,
        flags: 0x1234_5678_9abc_def0,
        len: 1 << 40,
        buf: 0xffff_8880_dead_beef,
        data: 0x1111_2222_3333_4444,
        tag: u64::MAX - 1,
        src_addr: 77,
    };
    let context = Completion {
        op_context: all.op_context,
        src_addr: u64::MAX,
        ..Completion::default()
    };
    let msg = Completion {
        flags: all.flags,
        len: all.len,
        ..context
    };
    let data = Completion {
        buf: all.buf,
        data: all.data,
        ..msg
    };
    let tagged = Completion {
        tag: all.tag,
        ..data
    };
    for (format, should) in [
        (CqFormat::CONTEXT, context),
        (CqFormat::MSG, msg),
        (CqFormat::DATA, data),
        (CqFormat::TAGGED, tagged),
    ] {
        let cq = rig.domain.completion_queue(&CqAttr::new().format(format))?;
        for i in 0..5 {
            cq.write(&Completion {
                op_context: all.op_context - i,
                ..all
            })?;
        }
        let entries = cq.read(3)?;
        check_eq!(entries.len(), 3);
        let rest = cq.sread_ms(4, 0)?;
        check_eq!(rest.len(), 2);
        for (i, entry) in (0..).zip(entries.iter().chain(&rest)) {
            let should = Completion {
                op_context: all.op_context - i,
                ..should
            };
            check_eq!(*entry, should, "entry {i} of format {format}");
        }
        // Errors tell everything in any format.
        let error = CompletionError {
            entry: all,
            olen: 99,
            err: 300,
            prov_errno: -7,
        };
        cq.write_err(&error)?;
        let mut is = cq.read_err()?;
        is.entry.src_addr = all.src_addr;
        check_eq!(is, error, "an error in format {format}");
    }
    // Unspecified is one of them.
    let cq = CqAttr::new().format(CqFormat::UNSPEC);
    let cq = rig.domain.completion_queue(&cq)?;
    cq.write(&all)?;
    check_eq!(cq.read(1)?[0].op_context, all.op_context);
    Ok(())
}

fn cq_attributes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let open = |attr: CqAttr| rig.domain.completion_queue(&attr);
    for format in [5, 6, 1000, 0x8000_0000, u32::MAX] {
        let attr = CqAttr::new().format(CqFormat(format));
        expect_fabric(open(attr), KfiErrno::EINVAL)?;
    }
    for wait_obj in [4, 5, 1000, 0x8000_0000, u32::MAX] {
        let attr = CqAttr::new().wait_obj(WaitObj(wait_obj));
        expect_fabric(open(attr), KfiErrno::EINVAL)?;
    }
    for wait_cond in [2, 1000, 0x8000_0000, u32::MAX] {
        let attr = CqAttr::new().wait_cond(wait_cond);
        expect_fabric(open(attr), KfiErrno::EINVAL)?;
    }
    // The largest ones, which are more than a page allocator likes to give.
    for size in [1 << 16, 1 << 17, 1 << 18] {
        rig.domain.completion_queue(&CqAttr::new().size(size))?;
    }
    for size in [(1 << 20) + 1, 1 << 32, 1 << 48, u64::MAX / 2, u64::MAX] {
        let result = open(CqAttr::new().size(size));
        check!(
            matches!(
                result,
                Err(Error::Fabric(KfiErrno::EINVAL) | Error::Os(Errno::INVAL | Errno::DQUOT))
            ),
            "size {size}: {result:?}"
        );
    }
    expect_fabric(open(CqAttr::new().wait_obj(WaitObj::SET)), KfiErrno::EINVAL)?;
    for wait_cond in [0, 1] {
        open(CqAttr::new().wait_cond(wait_cond))?;
    }
    let cq = open(CqAttr::null())?;
    cq.write(&completion(5))?;
    check_eq!(cq.sread_ms(1, -1)?[0].op_context, 5);
    drop(cq);
    rig.close()
}

fn cq_order(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    expect_fabric(cq.read(8), KfiErrno::EAGAIN)?;
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
    cq.write(&completion(1))?;
    cq.write(&completion(2))?;
    cq.write_err(&failed(10))?;
    cq.write_err(&failed(11))?;
    cq.write(&completion(3))?;

    // An error is not read before its time, and what is behind it neither.
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
    let contexts = |entries: Vec<Completion>| {
        let contexts = entries.iter().map(|entry| entry.op_context);
        contexts.collect::<Vec<_>>()
    };
    check_eq!(contexts(cq.read(64)?), [1, 2]);
    for err in [10, 11] {
        for _ in 0..2 {
            expect_fabric(cq.read(1), KfiErrno::EAVAIL)?;
            expect_fabric(cq.sread_ms(1, -1), KfiErrno::EAVAIL)?;
        }
        check_eq!(cq.read_err()?.err, err);
    }
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
    check_eq!(contexts(cq.sread_ms(64, -1)?), [3]);
    expect_fabric(cq.read(1), KfiErrno::EAGAIN)
}

fn cq_full(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for size in [1, 2, 7, 64] {
        let cq = rig.domain.completion_queue(&CqAttr::new().size(size))?;
        let mut written = 0;
        while cq.write(&completion(written)).is_ok() {
            written += 1;
        }
        check!(written >= size, "{written} completions, {size} asked for");
        for _ in 0..3 {
            expect_fabric(cq.write(&completion(0)), KfiErrno::ENOSPC)?;
            expect_fabric(cq.write_err(&failed(5)), KfiErrno::ENOSPC)?;
        }
        // One out, one in, all the way round.
        for i in 0..2 * written {
            check_eq!(cq.read(1)?[0].op_context, i);
            cq.write(&completion(written + i))?;
            expect_fabric(cq.write(&completion(0)), KfiErrno::ENOSPC)?;
        }
        check_eq!(drain(&cq)?.len() as u64, written);
    }
    Ok(())
}

fn cq_counts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    for full in [false, true] {
        if full {
            for i in 0..100 {
                cq.write(&completion(i))?;
            }
        }
        expect_fabric(cq.read(0), KfiErrno::EINVAL)?;
        expect_fabric(cq.sread_ms(0, 0), KfiErrno::EINVAL)?;
        expect_fabric(cq.sread_ms(0, -1), KfiErrno::EINVAL)?;
        for count in [65, 66, 1000] {
            expect_os(cq.read(count), Errno::TOOBIG)?;
            expect_os(cq.sread_ms(count, -1), Errno::TOOBIG)?;
        }
    }
    check_eq!(cq.read(64)?.len(), 64);
    check_eq!(cq.read(64)?.len(), 36);
    Ok(())
}

/// `CQ_READ` or `CQ_SREAD` to an address where there is no memory.
fn read_to(cq: &CompletionQueue, number: u32, count: u32, address: u64) -> Result<i32, Errno> {
    let mut argument = uapi::kfi_shim_cq_read {
        cq: cq.handle(),
        count,
        entries: address,
        ..FromZeros::new_zeroed()
    };
    raw::bytes(cq.session(), number, argument.as_mut_bytes())?;
    Ok(argument.result)
}

fn cq_bad_addresses(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    let mut next = 0;
    for number in [uapi::KFI_REQUEST_CQ_READ, uapi::KFI_REQUEST_CQ_SREAD] {
        for address in BAD_ADDRESSES {
            // Nowhere to put something is no harm if there is nothing.
            let result = read_to(&cq, number, 1, address);
            check!(
                matches!(result, Err(Errno::FAULT) | Ok(..0)),
                "nothing to {address:#x}: {result:?}"
            );
            for count in [u32::MAX, 65] {
                check_eq!(read_to(&cq, number, count, address), Err(Errno::TOOBIG));
            }
            cq.write(&completion(next))?;
            for count in [1, 64] {
                let result = read_to(&cq, number, count, address);
                check_eq!(result, Err(Errno::FAULT), "{count} to {address:#x}");
            }
            // Nothing is done by a request that fails.
            check_eq!(drain(&cq)?, [next], "what was to go to {address:#x}");
            next += 1;
        }
    }
    Ok(())
}

fn cq_bad_entries(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    for err in [-1, -5, i32::MIN] {
        expect_fabric(cq.write_err(&failed(err)), KfiErrno::EINVAL)?;
    }
    expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
    for err in [1, 255, 256, i32::MAX] {
        cq.write_err(&failed(err))?;
        check_eq!(cq.read_err()?.err, err);
    }
    Ok(())
}

fn cq_sread(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    let asleep = |timeout| {
        let cq = cq.clone();
        Sleeper::asleep(move || cq.sread_ms(4, timeout))
    };
    for timeout in [-1, i32::MIN, i32::MAX] {
        // What is there is read, whatever the timeout.
        cq.write(&completion(1))?;
        check_eq!(cq.sread_ms(4, timeout)?.len(), 1);
        let reader = asleep(timeout)?;
        cq.write(&completion(2))?;
        check_eq!(reader.join()?.0?[0].op_context, 2);
        let reader = asleep(timeout)?;
        cq.write_err(&failed(5))?;
        expect_fabric(reader.join()?.0, KfiErrno::EAVAIL)?;
        check_eq!(cq.read_err()?.err, 5);
    }
    signal::count(Signal::USR1, true)?;
    let reader = asleep(-1)?;
    signal::send_to_thread(reader.tid(), Signal::USR1)?;
    expect_fabric(reader.join()?.0, KfiErrno::EINTR)?;
    cq.write(&completion(3))?;
    check_eq!(drain(&cq)?, [3]);

    // Two wait for one: the other sleeps on.
    let asleep_for_one = || {
        let cq = cq.clone();
        Sleeper::asleep(move || cq.sread_ms(1, -1))
    };
    let (one, two) = (asleep_for_one()?, asleep_for_one()?);
    cq.write(&completion(4))?;
    cq.write(&completion(5))?;
    let mut read = Vec::new();
    for reader in [one, two] {
        for entry in reader.join()?.0? {
            read.push(entry.op_context);
        }
    }
    read.sort_unstable();
    check_eq!(read, [4, 5]);

    let none = CqAttr::new().wait_obj(WaitObj::NONE);
    let none = rig.domain.completion_queue(&none)?;
    none.write(&completion(1))?;
    for timeout in [0, 1, -1] {
        expect_fabric(none.sread_ms(1, timeout), KfiErrno::EINVAL)?;
    }
    check_eq!(drain(&none)?, [1]);
    Ok(())
}

fn cq_sread_timeouts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (cq, eq) = (open_cq(&rig)?, open_eq(&rig)?);
    for timeout in [0, 1, 20] {
        let least = Duration::from_millis(timeout as u64);
        let start = Instant::now();
        expect_fabric(cq.sread_ms(1, timeout), KfiErrno::ETIMEDOUT)?;
        let took = start.elapsed();
        check!(took >= least, "{timeout} ms have passed after {took:?}");
        let start = Instant::now();
        expect_fabric(eq.sread_ms(1, timeout), KfiErrno::ETIMEDOUT)?;
        let took = start.elapsed();
        check!(took >= least, "{timeout} ms have passed after {took:?}");
    }
    Ok(())
}

fn cq_signal(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    // For nobody; and who comes later waits.
    cq.signal()?;
    expect_fabric(cq.sread_ms(1, 5), KfiErrno::ETIMEDOUT)?;
    let readers = (0..4)
        .map(|_| {
            let cq = cq.clone();
            Sleeper::asleep(move || cq.sread_ms(1, -1))
        })
        .collect::<Result<Vec<_>, _>>()?;
    cq.signal()?;
    for reader in readers {
        expect_fabric(reader.join()?.0, KfiErrno::EAGAIN)?;
    }
    cq.write(&completion(1))?;
    cq.signal()?;
    check_eq!(cq.sread_ms(1, -1)?.len(), 1, "what there is comes first");
    Ok(())
}

/// Every completion is read by one reader, in the order in which its writer has
/// added it.
fn cq_readers_share(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    let total = env.scaled(10_000, 500);
    let read = rig.counter()?;
    let all = in_threads([0_usize, 1, 2, 3], |thread| {
        pin(thread)?;
        let mut own = Vec::new();
        if thread < 2 {
            for i in 0..total {
                loop {
                    match cq.write(&completion(i * 2 + thread as u64)) {
                        Ok(()) => break,
                        Err(Error::Fabric(KfiErrno::ENOSPC)) => kfi_host::thread::relax(),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            return Ok(own);
        }
        let mut rng = env.rng();
        while read.read()? < 2 * total {
            match cq.sread_ms(rng.random_range(1..=8), 20) {
                Ok(entries) => {
                    own.extend(entries.iter().map(|entry| entry.op_context));
                    read.add(entries.len() as u64)?;
                }
                Err(Error::Fabric(KfiErrno::ETIMEDOUT)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(own)
    })?;
    for own in &all {
        for writer in 0..2 {
            let of_writer = own.iter().filter(|context| *context % 2 == writer);
            check!(of_writer.is_sorted(), "not in the order of writer {writer}");
        }
    }
    let mut contexts = all.concat();
    contexts.sort_unstable();
    check!(contexts.into_iter().eq(0..2 * total), "not each one once");
    Ok(())
}

fn eq_order(env: &Env) -> Outcome {
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

fn eq_attributes(env: &Env) -> Outcome {
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

fn eq_sizes(env: &Env) -> Outcome {
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
    eq.write(1, &[0xaa; 128])?;
    eq.read(128)?;
    eq.write(1, b"x")?;
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
        expect_os(eq.write(1, &vec![0; len]), Errno::TOOBIG)?;
    }
    expect_fabric(eq.read(128), KfiErrno::EAGAIN)
}

fn eq_full(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for size in [1, 2, 7, 64] {
        let eq = rig.fabric.event_queue(&EqAttr::new().size(size))?;
        let mut written = 0_u32;
        while eq.write(written, b"x").is_ok() {
            written += 1;
        }
        check!(u64::from(written) >= size, "{written} of {size} events");
        expect_fabric(eq.write(0, b"x"), KfiErrno::EAGAIN)?;
        expect_fabric(eq.write_err(&event_failed(5)), KfiErrno::EAGAIN)?;
        for i in 0..2 * written {
            check_eq!(eq.read(8)?.event, i);
            eq.write(written + i, b"x")?;
            expect_fabric(eq.write(0, b"x"), KfiErrno::EAGAIN)?;
        }
    }
    Ok(())
}

fn eq_bad_requests(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    eq.write(1, b"kept")?;
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
    check_eq!(eq.read(8)?.data, b"kept");
    expect_fabric(eq.read(8), KfiErrno::EAGAIN)
}

fn eq_sread(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let eq = open_eq(&rig)?;
    let asleep = |timeout| {
        let eq = eq.clone();
        Sleeper::asleep(move || eq.sread_ms(4, timeout))
    };
    for timeout in [-1, i32::MIN, i32::MAX] {
        eq.write(1, b"1")?;
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
    none.write(1, b"1")?;
    for timeout in [0, 1, -1] {
        expect_fabric(none.sread_ms(8, timeout), KfiErrno::EINVAL)?;
    }
    none.read(8)?;
    Ok(())
}

fn thread_inside_sread(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (cq, eq) = (open_cq(&rig)?, open_eq(&rig)?);
    let cq_reader = Sleeper::asleep({
        let cq = cq.clone();
        move || cq.sread_ms(1, -1)
    })?;
    let eq_reader = Sleeper::asleep({
        let eq = eq.clone();
        move || eq.sread_ms(8, -1)
    })?;
    for _ in 0..3 {
        for handle in [cq.handle(), eq.handle(), rig.fabric.handle()] {
            expect_busy(rig.session.close_handle(handle))?;
        }
    }
    check!(
        cq_reader.sleeps()? && eq_reader.sleeps()?,
        "woken by a refusal"
    );
    cq.write(&completion(1))?;
    eq.write(1, b"1")?;
    cq_reader.join()?.0?;
    eq_reader.join()?.0?;
    // The threads are gone and have not closed what they shared.
    rig.session.close_handle(cq.handle())?;
    rig.session.close_handle(eq.handle())?;
    drop((cq, eq));
    rig.close()
}
