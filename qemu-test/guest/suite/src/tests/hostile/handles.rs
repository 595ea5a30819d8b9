// SPDX-License-Identifier: GPL-2.0

//! Handles of nothing, or of something else.

use std::mem::offset_of;

use kfi::uapi;
use rustix::io::Errno;

use super::scene::{form, forms, others, read_u32, within, write_u32, Scene, CLASSES, NO_HANDLES};
use crate::check::Outcome;
use crate::check_eq;
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::requests::Zero;

pub(super) fn bad_handles(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    // Of an object that was, and of one that will be.
    let stale = scene.rig.counter()?.handle();
    let future = [stale + 1, stale + 1000];
    for form in forms() {
        for (offset, takes) in form.handles() {
            for handle in NO_HANDLES.into_iter().chain([stale]).chain(future) {
                if handle == 0 && takes.zero != Zero::Never {
                    continue;
                }
                let mut argument = form.make(&scene)?;
                if form.name() == "CLOSE" {
                    // It has opened one to close, which moves the future.
                    scene.session().close_handle(read_u32(&argument, 0))?;
                    if future.contains(&handle) {
                        continue;
                    }
                }
                write_u32(&mut argument, offset, handle);
                form.fail(scene.session(), form.number(), &mut argument, Errno::BADF)
                    .map_err(|stop| within(stop, format_args!("handle {handle:#x}")))?;
            }
        }
    }
    scene.end_untouched()
}

pub(super) fn wrong_classes(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in forms() {
        for (offset, takes) in form.handles() {
            for class in CLASSES {
                let Some(handle) = scene.handle(class).filter(|_| !takes.accepts(class)) else {
                    continue;
                };
                let mut argument = form.make(&scene)?;
                write_u32(&mut argument, offset, handle);
                form.fail(scene.session(), form.number(), &mut argument, Errno::INVAL)
                    .map_err(|stop| within(stop, format_args!("{class:?} at {offset}")))?;
            }
        }
    }
    scene.end_untouched()
}

pub(super) fn bad_indices(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let count = scene.rig.info.entries().len() as u32;
    for (form, offset) in [
        (
            form("READ_INFO"),
            offset_of!(uapi::kfi_shim_read_info, index),
        ),
        (form("FABRIC"), offset_of!(uapi::kfi_shim_fabric, index)),
        (form("DOMAIN"), offset_of!(uapi::kfi_shim_domain, index)),
    ] {
        for index in [count, count + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut argument = form.make(&scene)?;
            write_u32(&mut argument, offset, index);
            form.fail(scene.session(), form.number(), &mut argument, Errno::INVAL)?;
        }
    }
    scene.end_untouched()
}

pub(super) fn transfers(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for form in others() {
        let (number, size) = (form.number(), form.size());
        let Some((_, takes)) = form.object() else {
            continue;
        };
        for handle in NO_HANDLES {
            form.fail(session, number, &mut form.about(handle), Errno::BADF)?;
        }
        // No queue of a scene has a handler.
        let refused = |class| form.name() == "HANDLED" || !takes.accepts(class);
        let has_handles = takes.classes.iter().all(|class| class.has_handles());
        for class in CLASSES {
            if let Some(handle) = scene
                .handle(class)
                .filter(|_| has_handles && refused(class))
            {
                form.fail(session, number, &mut form.about(handle), Errno::INVAL)?;
            }
        }
        for short in [0, 4, size - 1] {
            let number = raw::resized(number, short);
            form.fail(session, number, &mut form.about(1), Errno::INVAL)?;
        }
        let mut argument = form.about(1);
        argument.resize(size + 8, 0);
        argument[size + 3] = 1;
        let longer = raw::resized(number, size + 8);
        form.fail(session, longer, &mut argument, Errno::TOOBIG)?;
        // Before the object is looked for: else it would be the object that is refused.
        for &reserved in form.reserved() {
            for handle in NO_HANDLES {
                let mut argument = form.about(handle);
                write_u32(&mut argument, reserved, 0x100);
                form.fail(session, number, &mut argument, Errno::INVAL)?;
            }
        }
        for address in BAD_ADDRESSES {
            let result = raw::bad_address(session, number, address);
            check_eq!(result, Err(Errno::FAULT), "{} at {address:#x}", form.name());
        }
    }
    scene.end_untouched()
}
