// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kfi::uapi;
use kfi::{
    Completion, CompletionError, CompletionQueue, CqAttr, CqFormat, Error, KfiErrno, WaitObj,
};
use kfi_host::{signal, thread};
use rand::RngExt;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::{FromZeros, IntoBytes};

use super::{open_cq, open_eq};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::rig::{expect_fabric, expect_os, in_threads, pin, Rig};
use crate::sleeper::Sleeper;
use crate::tests::wait_set::{completion, drain};
use crate::{check, check_eq};

fn failed(err: i32) -> CompletionError {
    CompletionError {
        err,
        ..CompletionError::default()
    }
}

fn contexts(entries: Vec<Completion>) -> Vec<u64> {
    entries.iter().map(|entry| entry.op_context).collect()
}

pub(super) fn cq_formats(env: &Env) -> Outcome {
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

pub(super) fn cq_attributes(env: &Env) -> Outcome {
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

pub(super) fn cq_order(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    expect_fabric(cq.read(8), KfiErrno::EAGAIN)?;
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
    cq.write(&completion(1))?;
    cq.write(&completion(2))?;
    cq.write_err(&failed(10))?;
    cq.write_err(&failed(11))?;
    cq.write(&completion(3))?;

    // An error is not read before its time, and neither is anything behind it.
    expect_fabric(cq.read_err(), KfiErrno::EAGAIN)?;
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

pub(super) fn cq_full(env: &Env) -> Outcome {
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

pub(super) fn cq_counts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    for full in [false, true] {
        if full {
            for i in 0..100 {
                cq.write(&completion(i))?;
            }
        }
        // To look takes nothing out.
        if full {
            check_eq!(cq.read(0)?, []);
        } else {
            expect_fabric(cq.read(0), KfiErrno::EAGAIN)?;
        }
        expect_fabric(cq.sread_ms(0, 0), KfiErrno::EINVAL)?;
        expect_fabric(cq.sread_ms(0, -1), KfiErrno::EINVAL)?;
        for count in [65, 66, 1000] {
            expect_os(cq.read(count), Errno::TOOBIG)?;
            expect_os(cq.sread_ms(count, -1), Errno::TOOBIG)?;
        }
    }
    check_eq!(cq.read(64)?.len(), 64);
    check_eq!(cq.read(64)?.len(), 36);
    cq.write_err(&failed(7))?;
    expect_fabric(cq.read(0), KfiErrno::EAVAIL)?;
    check_eq!(cq.read_err()?.err, 7);
    expect_fabric(cq.read(0), KfiErrno::EAGAIN)?;
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

pub(super) fn cq_bad_addresses(env: &Env) -> Outcome {
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

pub(super) fn cq_bad_entries(env: &Env) -> Outcome {
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

pub(super) fn cq_sread(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    let asleep = |timeout| {
        let cq = cq.clone();
        Sleeper::asleep(move || cq.sread_ms(4, timeout))
    };
    for timeout in [-1, i32::MIN, i32::MAX] {
        // An entry that is there is read, whatever the timeout.
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

pub(super) fn cq_sread_timeouts(env: &Env) -> Outcome {
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

/// A queue whose readers may wait for more than one entry.
fn open_with_threshold(rig: &Rig, attr: CqAttr) -> Result<Arc<CompletionQueue>, Stop> {
    let attr = attr.wait_cond(uapi::KFI_CQ_COND_THRESHOLD);
    Ok(Arc::new(rig.domain.completion_queue(&attr)?))
}

/// Waits for so many entries, without end.
fn asleep_for(
    cq: &Arc<CompletionQueue>,
    room: usize,
    threshold: u64,
) -> Result<Sleeper<kfi::Result<Vec<Completion>>>, Stop> {
    let cq = cq.clone();
    Sleeper::asleep(move || cq.sread_cond(room, threshold, -1))
}

pub(super) fn cq_sread_threshold(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for wait_obj in [WaitObj::UNSPEC, WaitObj::QUEUE] {
        let cq = open_with_threshold(&rig, CqAttr::new().wait_obj(wait_obj))?;
        let reader = asleep_for(&cq, 8, 3)?;
        let before = thread::voluntary_switches(reader.tid())?;
        cq.write(&completion(1))?;
        cq.write(&completion(2))?;
        check!(reader.sleeps()?, "woken by the second entry");
        // They are there for others.
        check_eq!(drain(&cq)?, [1, 2]);
        for context in [3, 4] {
            cq.write(&completion(context))?;
        }
        check!(reader.sleeps()?, "woken by entries that are gone");
        let after = thread::voluntary_switches(reader.tid())?;
        check_eq!(after, before, "a thread that is not due runs");
        cq.write(&completion(5))?;
        check_eq!(contexts(reader.join()?.0?), [3, 4, 5]);

        // As many as there is room for are enough, and as many as there are.
        let reader = asleep_for(&cq, 2, u64::MAX)?;
        cq.write(&completion(1))?;
        check!(reader.sleeps()?, "woken by the first entry");
        cq.write(&completion(2))?;
        check_eq!(contexts(reader.join()?.0?), [1, 2]);
        for context in [1, 2, 3, 4] {
            cq.write(&completion(context))?;
        }
        check_eq!(contexts(cq.sread_cond(8, 3, -1)?), [1, 2, 3, 4]);
        for none in [0, 1] {
            let reader = asleep_for(&cq, 8, none)?;
            cq.write(&completion(1))?;
            check_eq!(contexts(reader.join()?.0?), [1]);
        }

        // Readers with thresholds of their own.
        let (many, few) = (asleep_for(&cq, 8, 4)?, asleep_for(&cq, 8, 2)?);
        cq.write(&completion(1))?;
        check!(many.sleeps()? && few.sleeps()?, "woken by the first entry");
        cq.write(&completion(2))?;
        check_eq!(contexts(few.join()?.0?), [1, 2]);
        check!(many.sleeps()?, "woken by what another has read");
        for context in [3, 4, 5, 6] {
            cq.write(&completion(context))?;
        }
        check_eq!(contexts(many.join()?.0?), [3, 4, 5, 6]);
    }

    // A full queue is enough.
    let cq = open_with_threshold(&rig, CqAttr::new().size(2))?;
    let reader = asleep_for(&cq, 8, 8)?;
    cq.write(&completion(1))?;
    cq.write(&completion(2))?;
    check_eq!(contexts(reader.join()?.0?), [1, 2]);

    // Without that condition the argument says nothing.
    let cq = open_cq(&rig)?;
    let reader = asleep_for(&cq, 8, 3)?;
    cq.write(&completion(1))?;
    check_eq!(contexts(reader.join()?.0?), [1]);
    Ok(())
}

/// A thread that waits for several entries finds them, however they come. Each writer adds an entry, fully
/// ordered, before it looks for threads that wait, and these are listed, fully ordered, before they count:
/// the writer of the entry that makes the number full finds the thread, and counts under the lock of the
/// wait queue, behind all that others have added before they had that.
pub(super) fn cq_thresholds_beside_writers(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for wait_obj in [WaitObj::UNSPEC, WaitObj::QUEUE] {
        let cq = open_with_threshold(&rig, CqAttr::new().wait_obj(wait_obj))?;
        let each = env.scaled(10_000, 500);
        let taken = in_threads([0_usize, 1, 2], |who| -> Result<u64, Stop> {
            let mut rng = env.rng();
            if who < 2 {
                pin(who)?;
                let mut sent = 0;
                while sent < each {
                    match cq.write(&completion(1)) {
                        Ok(()) => sent += 1,
                        // Full, and the reader is to run.
                        Err(Error::Fabric(KfiErrno::ENOSPC)) => thread::relax(),
                        Err(error) => return Err(error.into()),
                    }
                }
                return Ok(0);
            }
            let mut left = 2 * each;
            while left != 0 {
                let threshold = rng.random_range(1..=left.min(8));
                let taken = contexts(cq.sread_cond(8, threshold, -1)?).len() as u64;
                check!(
                    taken >= threshold,
                    "{taken} entries in place of {threshold}"
                );
                left -= taken;
            }
            Ok(2 * each)
        })?;
        check_eq!(taken, [0, 0, 2 * each]);
        check_eq!(drain(&cq)?.len(), 0);
    }
    Ok(())
}

/// What there is is returned when something else ends the wait.
pub(super) fn cq_sread_threshold_ends(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_with_threshold(&rig, CqAttr::new())?;
    for timeout in [0, 1, 20] {
        expect_fabric(cq.sread_cond(8, 3, timeout), KfiErrno::ETIMEDOUT)?;
        cq.write(&completion(1))?;
        check_eq!(contexts(cq.sread_cond(8, 3, timeout)?), [1]);
    }

    // An error, behind what comes before it, and at once if it is there.
    let reader = asleep_for(&cq, 8, 5)?;
    cq.write(&completion(1))?;
    check!(reader.sleeps()?, "woken by the first entry");
    cq.write_err(&failed(5))?;
    check_eq!(contexts(reader.join()?.0?), [1]);
    cq.write(&completion(2))?;
    expect_fabric(cq.sread_cond(8, 5, -1), KfiErrno::EAVAIL)?;
    check_eq!(cq.read_err()?.err, 5);
    let reader = asleep_for(&cq, 8, 5)?;
    cq.write_err(&failed(6))?;
    check_eq!(contexts(reader.join()?.0?), [2]);
    check_eq!(cq.read_err()?.err, 6);

    for entries in [0, 1] {
        let reader = asleep_for(&cq, 8, 3)?;
        for _ in 0..entries {
            cq.write(&completion(1))?;
        }
        cq.signal()?;
        match entries {
            0 => expect_fabric(reader.join()?.0, KfiErrno::EAGAIN)?,
            _ => check_eq!(contexts(reader.join()?.0?), [1]),
        }
    }

    signal::count(Signal::USR1, true)?;
    for entries in [0, 1] {
        let reader = asleep_for(&cq, 8, 3)?;
        for _ in 0..entries {
            cq.write(&completion(1))?;
        }
        signal::send_to_thread(reader.tid(), Signal::USR1)?;
        match entries {
            0 => expect_fabric(reader.join()?.0, KfiErrno::EINTR)?,
            _ => check_eq!(contexts(reader.join()?.0?), [1]),
        }
    }
    Ok(())
}

/// More readers sleep than are woken at a time: each of them gets its entry, an error is told to all, and a
/// signal ends all waits.
pub(super) fn many_readers(env: &Env) -> Outcome {
    const READERS: u64 = 50;
    let rig = Rig::new(env)?;
    for wait_obj in [WaitObj::UNSPEC, WaitObj::QUEUE] {
        let cq = open_with_threshold(&rig, CqAttr::new().wait_obj(wait_obj))?;
        let asleep = |room: usize, thresholds: u64| {
            (0..READERS)
                .map(|reader| asleep_for(&cq, room, 1 + reader % thresholds))
                .collect::<Result<Vec<_>, _>>()
        };
        let readers = asleep(1, 1)?;
        for context in 0..READERS {
            cq.write(&completion(context))?;
        }
        let mut read = Vec::new();
        for reader in readers {
            read.extend(contexts(reader.join()?.0?));
        }
        read.sort_unstable();
        check!(read.into_iter().eq(0..READERS), "each entry is read once");

        let readers = asleep(2, 2)?;
        cq.write_err(&failed(5))?;
        for reader in readers {
            expect_fabric(reader.join()?.0, KfiErrno::EAVAIL)?;
        }
        check_eq!(cq.read_err()?.err, 5);

        let readers = asleep(2, 2)?;
        cq.signal()?;
        for reader in readers {
            expect_fabric(reader.join()?.0, KfiErrno::EAGAIN)?;
        }
    }
    Ok(())
}

pub(super) fn cq_signal(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let cq = open_cq(&rig)?;
    // For nobody; and a reader that comes later waits.
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
pub(super) fn cq_readers_share(env: &Env) -> Outcome {
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
