// SPDX-License-Identifier: GPL-2.0

//! As much as there may be, and more; and closing what others use.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use kfi::uapi::{self, request};
use kfi::{CntrAttr, Error, Handle};
use kfi_host::thread;
use rustix::io::Errno;
use zerocopy::{FromZeros, IntoBytes};

use super::scene::{form, read_u32, Scene, CLASSES};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw;
use crate::rig::{in_threads, is_busy, pin};
use crate::tests::module::Modules;
use crate::{check, check_eq};

pub(super) fn close_beside_use(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let rounds = env.scaled(300, 50);
    let handle = AtomicU32::new(scene.counter.handle());
    let open = AtomicBool::new(true);
    let uses = AtomicU64::new(0);

    let results = in_threads(0..3_usize, |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut busy = 0_u64;
            for _ in 0..rounds {
                let new = scene.rig.domain.counter(&CntrAttr::new())?.into_handle();
                let before = uses.load(Ordering::Relaxed);
                handle.store(new, Ordering::Relaxed);
                // The others have found it, and use it.
                while uses.load(Ordering::Relaxed) < before + 3 {
                    thread::relax();
                }
                // In use for a moment, again and again, but not for ever.
                while let Err(error) = scene.session().close_handle(new) {
                    check!(is_busy(&error), "close beside use: {error}");
                    busy += 1;
                    thread::relax();
                }
            }
            open.store(false, Ordering::Relaxed);
            return Ok(busy);
        }
        let numbers = [
            request::CNTR_ADD.number(),
            request::CNTR_READ.number(),
            request::CNTR_SETERR.number(),
            request::CNTR_READERR.number(),
        ];
        for number in numbers.iter().cycle() {
            if !open.load(Ordering::Relaxed) {
                break;
            }
            let mut argument = uapi::kfi_shim_cntr {
                cntr: handle.load(Ordering::Relaxed),
                result: 0,
                value: 1,
            };
            match raw::bytes(scene.session(), *number, argument.as_mut_bytes()) {
                Ok(()) => {
                    check_eq!(argument.result, 0);
                    uses.fetch_add(1, Ordering::Relaxed);
                }
                // It is closed; never is it said to be in use, which is for
                // those who close.
                Err(Errno::BADF) => {}
                Err(errno) => return Err(Stop::fail(Error::Os(errno))),
            }
        }
        Ok(0)
    })?;
    env.note(format!(
        "{rounds} closes, {} times busy, {} uses in time",
        results[0],
        uses.into_inner()
    ));
    drop(scene.counter);
    drop((scene.poll_set, scene.cq, scene.eq, scene.wait_set));
    scene.rig.close()
}

/// A session must refuse before it holds that many objects.
const TOO_MANY: usize = 200_000;

/// Counters until it is refused, for they are the cheapest. Then there is no room
/// for anything else either, until one is closed.
pub(super) fn object_limit(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let most = env.scaled(8192, 2048).min(8192);
    let parameters = CString::new(format!("max_objects={most}"))?;
    modules.with_device(&parameters, || to_the_object_limit(env))
}

fn to_the_object_limit(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let domain = &scene.rig.domain;
    let mut counters = Vec::new();
    loop {
        match domain.counter(&CntrAttr::new()) {
            Ok(counter) => counters.push(counter.into_handle()),
            Err(Error::Os(Errno::MFILE)) => break,
            Err(error) => {
                let count = counters.len();
                return Err(Stop::fail(format!(
                    "{error} with {count} counters open, should be EMFILE"
                )));
            }
        }
        check!(counters.len() < TOO_MANY, "{TOO_MANY} in one session");
    }
    let count = counters.len();
    env.note(format!("{count} counters in one session"));
    // The module says how many it allows, and there is one of each class.
    let parameter = "/sys/module/kfi_shim/parameters/max_objects";
    if let Ok(text) = std::fs::read_to_string(parameter) {
        check_eq!(count + CLASSES.len(), text.trim().parse::<usize>()?);
    }

    let open = |name: &str| -> Result<Result<Handle, Errno>, Stop> {
        let form = form(name);
        let mut argument = form.make(&scene)?;
        let new = form.opens().ok_or_else(|| Stop::fail("it opens nothing"))?;
        let made = raw::bytes(session, form.number(), &mut argument);
        Ok(made.map(|()| read_u32(&argument, new)))
    };
    for name in [
        "GETINFO",
        "FABRIC",
        "DOMAIN",
        "CNTR_OPEN",
        "WAIT_OPEN",
        "POLL_OPEN",
        "CQ_OPEN",
        "EQ_OPEN",
    ] {
        check_eq!(open(name)?, Err(Errno::MFILE), "{name} with no room");
        // One out, one in.
        let last = counters.pop().ok_or_else(|| Stop::fail("none at all"))?;
        session.close_handle(last)?;
        let handle = open(name)?.map_err(Error::Os)?;
        check_eq!(open(name)?, Err(Errno::MFILE), "{name} with no room again");
        session.close_handle(handle)?;
        counters.push(domain.counter(&CntrAttr::new())?.into_handle());
    }
    // A descriptor is no object and needs no room.
    scene.counter.wait_fd()?;
    for handle in counters {
        session.close_handle(handle)?;
    }
    scene.end_untouched()
}

pub(super) fn huge_counts(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for count in [4097, 65537, 0x8000_0000, u32::MAX] {
        let mut mr = uapi::kfi_shim_mr {
            domain: scene.rig.domain.handle(),
            form: uapi::KFI_SHIM_FORM_V,
            segment_count: count,
            ..FromZeros::new_zeroed()
        };
        let result = session.ioctl(request::MR, &mut mr);
        check_eq!(result, Err(Errno::TOOBIG), "{count} segments");
        for number in [request::POST_BATCH, request::QUEUE_WORK_BATCH] {
            let mut batch = uapi::kfi_shim_batch {
                count,
                size: 256,
                array: 8,
                ..FromZeros::new_zeroed()
            };
            let result = raw::bytes(session, number.number(), batch.as_mut_bytes());
            check_eq!(result, Err(Errno::TOOBIG), "a batch of {count}");
        }
    }
    for size in [4097, u32::MAX] {
        let mut batch = uapi::kfi_shim_batch {
            count: 1,
            size,
            array: 8,
            ..FromZeros::new_zeroed()
        };
        let number = request::POST_BATCH.number();
        let result = raw::bytes(session, number, batch.as_mut_bytes());
        check_eq!(result, Err(Errno::TOOBIG), "elements of {size} bytes");
    }
    scene.end_untouched()
}
