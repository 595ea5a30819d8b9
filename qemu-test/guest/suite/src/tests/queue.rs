// SPDX-License-Identifier: GPL-2.0

//! Completion queues and event queues.

mod completions;
mod events;

use std::sync::Arc;

use kfi::uapi::{self, request};
use kfi::{CompletionQueue, CqAttr, EqAttr, EventQueue, KfiErrno, WaitObj};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_busy, expect_fabric, expect_os, Rig};
use crate::sleeper::Sleeper;
use crate::tests::wait_set::{self, completion, cq_in, eq_in};
use crate::{check, check_eq, tests};

tests! {
    "queue" parallel;
    "case-52-control" ["R-CTL-6 R-CTL-8 R-CTL-9"] control;
    "cq-formats" ["kfi_shim.h"] completions::cq_formats;
    "cq-attributes" ["R-CNTR-8 kfi_shim.h"] completions::cq_attributes;
    "cq-order" ["kfi_shim.h"] completions::cq_order;
    "cq-full" ["kfi_shim.h"] completions::cq_full;
    "cq-counts" ["kfi_shim.h"] completions::cq_counts;
    "cq-bad-addresses" ["kfi_shim.h"] completions::cq_bad_addresses;
    "cq-bad-entries" ["kfi_shim.h"] completions::cq_bad_entries;
    "cq-sread" ["kfi_shim.h"] completions::cq_sread;
    "cq-sread-timeouts" ["kfi_shim.h"] completions::cq_sread_timeouts;
    "cq-sread-threshold" ["kfi_eq.h"] completions::cq_sread_threshold;
    "cq-sread-threshold-ends" ["kfi_eq.h"] completions::cq_sread_threshold_ends;
    "many-readers" ["kfi_eq.h"] completions::many_readers;
    "cq-signal" ["kfi_shim.h"] completions::cq_signal;
    alone "cq-readers-share" ["kfi_shim.h"] completions::cq_readers_share;
    alone "cq-thresholds-beside-writers" ["kfi_eq.h"] completions::cq_thresholds_beside_writers;
    "eq-order" ["kfi_shim.h"] events::eq_order;
    "eq-attributes" ["kfi_shim.h"] events::eq_attributes;
    "eq-sizes" ["kfi_shim.h"] events::eq_sizes;
    "eq-full" ["kfi_shim.h"] events::eq_full;
    "eq-bad-requests" ["kfi_shim.h"] events::eq_bad_requests;
    "eq-sread" ["kfi_shim.h"] events::eq_sread;
    alone "eq-peek-beside-read" ["kfi_shim.h"] events::eq_peek_beside_read;
    "texts-of-errors" ["kfi_eq.h kfi_shim.h"] texts_of_errors;
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

/// Queues have a text for each number, as much of it as there is room for.
fn texts_of_errors(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (cq, eq) = (open_cq(&rig)?, open_eq(&rig)?);
    for queue in [cq.handle(), eq.handle()] {
        for prov_errno in [0, 5, -1] {
            let mut whole = Vec::new();
            for len in [256, 4, 1, 0] {
                let mut text = uapi::kfi_shim_strerror {
                    queue,
                    prov_errno,
                    len,
                    result: 77,
                    text: [0x55; _],
                };
                rig.session.ioctl(request::STRERROR, &mut text)?;
                check_eq!(text.result, 0);
                let bytes = text.text.map(|byte| byte as u8);
                let until = bytes.iter().position(|byte| *byte == 0);
                let until = until.ok_or_else(|| Stop::fail("a text without end"))?;
                let (said, rest) = bytes.split_at(until);
                check!(rest.iter().all(|byte| *byte == 0), "more behind the text");
                if len == 256 {
                    check!(said.len() > 4, "{said:?}");
                    whole = said.to_vec();
                }
                // Without a buffer the text itself is returned.
                let room = len.checked_sub(1).map_or(whole.len(), |room| room as usize);
                check_eq!(said, &whole[..room.min(whole.len())], "{len}");
            }
        }
    }
    Ok(())
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
    eq.write(7, b"1")?;
    cq_reader.join()?.0?;
    eq_reader.join()?.0?;
    // The threads are gone and have not closed what they shared.
    rig.session.close_handle(cq.handle())?;
    rig.session.close_handle(eq.handle())?;
    drop((cq, eq));
    rig.close()
}
