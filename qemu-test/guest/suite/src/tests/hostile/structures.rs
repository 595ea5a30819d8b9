// SPDX-License-Identifier: GPL-2.0

//! Numbers that are no request, structures of other sizes, members that must be 0.

use kfi::uapi::{self, request};
use rustix::io::Errno;

use super::scene::{forms, read_u32, write_u32, Scene};
use crate::check::Outcome;
use crate::env::Env;
use crate::raw::{self, MAX_SIZE};
use crate::requests::What;
use crate::{check, check_eq};

const KIND: u32 = uapi::KFI_SHIM_IOC_MAGIC;

pub(super) fn unknown_requests(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let known: Vec<u32> = uapi::REQUESTS
        .iter()
        .map(|declared| declared.number & 0xff)
        .collect();
    let is_unknown = |nr: &u32| !known.contains(nr);
    let mut tried = 0;
    for direction in 0..4 {
        for size in [0, 4, 8, 16, 64, MAX_SIZE] {
            // Of ours, and of types that nobody else uses for all files.
            let ours = (0..256).filter(is_unknown).map(|nr| (KIND, nr));
            let others = [0xf0, 0xf2, 0xe1, 0x71]
                .into_iter()
                .flat_map(|kind| known.iter().map(move |&nr| (kind, nr)));
            for (kind, nr) in ours.chain(others) {
                let number = raw::number(direction, kind, nr, size);
                let result = raw::bytes(session, number, &mut [0; 8]);
                check_eq!(result, Err(Errno::NOTTY), "request {number:#x}");
                tried += 1;
            }
        }
    }
    env.note(format!("{tried} requests"));
    scene.end_untouched()
}

pub(super) fn short_structures(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in forms() {
        let size = form.first_size();
        for short in [0, 1, 4, size / 2, size - 4, size - 1] {
            let mut argument = form.make(&scene)?;
            let number = raw::resized(form.number(), short);
            form.fail(scene.session(), number, &mut argument, Errno::INVAL)?;
            if form.name() == "CLOSE" {
                // Still there.
                scene.session().close_handle(read_u32(&argument, 0))?;
            }
        }
    }
    scene.end_untouched()
}

pub(super) fn long_structures(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for form in forms() {
        let size = form.size();
        for long in [size + 1, size + 4, size + 64, 4096, 4097, MAX_SIZE] {
            let number = raw::resized(form.number(), long);
            // A structure of a newer program that asks for nothing new.
            let mut argument = form.make(&scene)?;
            argument.resize(long, 0);
            form.succeed(session, number, &mut argument)?;
            check!(
                argument[size..].iter().all(|&byte| byte == 0),
                "{} writes behind what it knows",
                form.name()
            );
            // And one that does. A structure that only goes out asks for nothing.
            if form.number() == request::VERSION.number() {
                continue;
            }
            for at in [size, usize::midpoint(size, long), long - 1] {
                let mut argument = form.make(&scene)?;
                argument.resize(long, 0);
                argument[at] = 1;
                form.fail(session, number, &mut argument, Errno::TOOBIG)?;
                if form.name() == "CLOSE" {
                    session.close_handle(read_u32(&argument, 0))?;
                }
            }
        }
    }
    // The counters, fabrics and domains that have been opened go with the
    // session; the counter has not been changed.
    check_eq!((scene.counter.read()?, scene.counter.read_err()?), (0, 0));
    Ok(())
}

pub(super) fn reserved_members(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in forms() {
        for &offset in form.reserved() {
            for value in [1, 0x100, 0x8000_0000, u32::MAX] {
                let mut argument = form.make(&scene)?;
                write_u32(&mut argument, offset, value);
                form.fail(scene.session(), form.number(), &mut argument, Errno::INVAL)?;
            }
        }
    }
    scene.end_untouched()
}

pub(super) fn unknown_flags(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in forms() {
        for member in form.members() {
            let (What::Flags(known) | What::Set(known)) = member.what else {
                continue;
            };
            for bit in (0..32)
                .map(|bit| 1_u32 << bit)
                .filter(|bit| bit & known == 0)
            {
                for flags in [bit, bit | known] {
                    let mut argument = form.make(&scene)?;
                    write_u32(&mut argument, member.offset, flags);
                    form.fail(scene.session(), form.number(), &mut argument, Errno::INVAL)?;
                }
            }
        }
    }
    scene.end_untouched()
}
