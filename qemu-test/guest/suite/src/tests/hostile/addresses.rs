// SPDX-License-Identifier: GPL-2.0

//! Addresses where there is no memory, too little of it, or none to write to, and what
//! is no request at all.

use std::mem::offset_of;
use std::os::fd::AsFd;

use kfi::{uapi, CntrAttr, CompletionError, KfiErrno, Session, WaitObj};
use kfi_host::memory::Guarded;
use rustix::io::Errno;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::getinfo::LARGEST_BUFFER;
use super::scene::{form, forms, read_u32, write_u32, write_u64, Form, Scene};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::rig::expect_fabric;
use crate::{check, check_eq};

pub(super) fn bad_argument_addresses(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for form in forms() {
        for address in BAD_ADDRESSES {
            let result = raw::bad_address(session, form.number(), address);
            check_eq!(result, Err(Errno::FAULT), "{} at {address:#x}", form.name());
        }
        if form.writes_elsewhere() {
            continue;
        }
        // Memory that ends too early.
        let argument = form.make(&scene)?;
        for missing in [1, 4, argument.len() - 1] {
            let mut short = Guarded::new(&argument[..argument.len() - missing])?;
            let result = raw::guarded(session, form.number(), &mut short);
            check_eq!(result, Err(Errno::FAULT), "{} cut off", form.name());
        }
        // And memory that ends just in time.
        let mut fitting = Guarded::new(&argument)?;
        let result = raw::guarded(session, form.number(), &mut fitting);
        check_eq!(result, Ok(()), "{} at the end of memory", form.name());
    }
    check_eq!((scene.counter.read()?, scene.counter.read_err()?), (0, 0));
    Ok(())
}

/// Makes a good request with an argument that the kernel cannot write to.
fn read_only(scene: &Scene, form: Form, argument: &[u8]) -> Outcome {
    let mut argument = Guarded::new(argument)?;
    argument.set_read_only()?;
    let result = raw::guarded(scene.session(), form.number(), &mut argument);
    check_eq!(
        result,
        Err(Errno::FAULT),
        "{} with a read-only argument",
        form.name()
    );
    Ok(())
}

pub(super) fn read_only_opens_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let descriptors = || Ok::<_, Stop>(std::fs::read_dir("/proc/self/fd")?.count());
    let before = descriptors()?;
    for _ in 0..50 {
        for name in [
            "GETINFO",
            "FABRIC",
            "DOMAIN",
            "CNTR_OPEN",
            "WAIT_FD",
            "WAIT_OPEN",
            "POLL_OPEN",
            "CQ_OPEN",
            "EQ_OPEN",
        ] {
            let form = form(name);
            read_only(&scene, form, &form.make(&scene)?)?;
        }
    }
    check_eq!(descriptors()?, before, "open descriptors");
    // A counter or domain that nobody has a handle of would keep its parent.
    scene.end_untouched()
}

pub(super) fn read_only_changes_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for name in ["CNTR_ADD", "CNTR_ADDERR", "CNTR_SET", "CNTR_SETERR"] {
        let form = form(name);
        let mut argument = form.make(&scene)?;
        write_u64(&mut argument, offset_of!(uapi::kfi_shim_cntr, value), 5);
        read_only(&scene, form, &argument)?;
        let values = (scene.counter.read()?, scene.counter.read_err()?);
        check_eq!(values, (0, 0), "values after {name}");
    }
    let form = form("CLOSE");
    let mut argument = uapi::kfi_shim_close::new_zeroed();
    argument.handle = scene.counter.handle();
    read_only(&scene, form, argument.as_bytes())?;
    scene.end_untouched()
}

pub(super) fn read_only_takes_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let (cq, eq) = (&scene.cq, &scene.eq);
    // Nothing is added.
    let mut argument = form("CQ_WRITE").make(&scene)?;
    for err in [0, 5] {
        write_u32(&mut argument, offset_of!(uapi::kfi_shim_cq_error, err), err);
        read_only(&scene, form("CQ_WRITE"), &argument)?;
    }
    let mut argument = form("EQ_WRITE").make(&scene)?;
    write_u64(&mut argument, offset_of!(uapi::kfi_shim_eq_event, flags), 0);
    read_only(&scene, form("EQ_WRITE"), &argument)?;
    let mut argument = form("EQ_WRITE_ERROR").make(&scene)?;
    write_u32(&mut argument, offset_of!(uapi::kfi_shim_eq_error, err), 5);
    read_only(&scene, form("EQ_WRITE_ERROR"), &argument)?;
    expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
    expect_fabric(eq.read(1), KfiErrno::EAGAIN)?;
    let add = form("POLL_ADD").make(&scene)?;
    read_only(&scene, form("POLL_ADD"), &add)?;
    let counter = scene.counter.handle();
    let result = scene.poll_set.del_handle(counter, 0);
    expect_fabric(result, KfiErrno::EINVAL)?;

    // Nothing is taken out.
    let error = CompletionError {
        err: 5,
        ..CompletionError::default()
    };
    cq.write_err(&error)?;
    read_only(
        &scene,
        form("CQ_READERR"),
        &form("CQ_READERR").make(&scene)?,
    )?;
    check_eq!(cq.read_err()?.err, 5);
    eq.write(7, b"1")?;
    for name in ["EQ_READ", "EQ_SREAD"] {
        read_only(&scene, form(name), &form(name).make(&scene)?)?;
    }
    check_eq!(eq.read(8)?.data, b"1");
    scene.poll_set.add_handle(counter, 0)?;
    read_only(&scene, form("POLL_DEL"), &form("POLL_DEL").make(&scene)?)?;
    scene.poll_set.del_handle(counter, 0)?;

    // Nor is a change told of.
    let attr = CntrAttr::new()
        .wait_obj(WaitObj::SET)
        .wait_set(scene.wait_set.handle());
    let member = scene.rig.domain.counter(&attr)?;
    member.add(1)?;
    read_only(&scene, form("WAIT"), &form("WAIT").make(&scene)?)?;
    let trywait = form("TRYWAIT");
    let mut argument = trywait.make(&scene)?;
    let handles = [scene.wait_set.handle()];
    write_u32(&mut argument, offset_of!(uapi::kfi_shim_trywait, count), 1);
    write_u64(
        &mut argument,
        offset_of!(uapi::kfi_shim_trywait, handles),
        handles.as_ptr() as u64,
    );
    read_only(&scene, trywait, &argument)?;
    scene.wait_set.wait_ms(0)?;
    drop(member);
    scene.end_untouched()
}

pub(super) fn read_info_buffers(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let info = scene.rig.info.handle();
    let size = size_of::<uapi::kfi_shim_info>();
    let form = form("READ_INFO");

    for address in BAD_ADDRESSES {
        let mut argument = form.make(&scene)?;
        let offset = offset_of!(uapi::kfi_shim_read_info, buffer);
        write_u64(&mut argument, offset, address);
        form.fail(session, form.number(), &mut argument, Errno::FAULT)?;
    }
    // Sizes that are too small, where there would be room.
    let mut buffer = Guarded::new(&vec![0xaa; size])?;
    for short in [0, 1, 8, size / 2, size - 1] {
        let result = raw::read_info(session, info, 0, &mut buffer, short as u32);
        check_eq!(result, Err(Errno::INVAL), "buffer of {short} bytes");
    }
    check!(
        buffer.bytes().iter().all(|&byte| byte == 0xaa),
        "a refused request has written"
    );
    // Memory that ends too early.
    let mut half = Guarded::new(&vec![0xaa; size / 2])?;
    let result = raw::read_info(session, info, 0, &mut half, size as u32);
    check_eq!(result, Err(Errno::FAULT), "half a buffer");

    // Just enough.
    let result = raw::read_info(session, info, 0, &mut buffer, size as u32);
    check_eq!(result, Ok(()), "a buffer at the end of memory");
    let exact = buffer.bytes().to_vec();
    let entry = uapi::kfi_shim_info::read_from_bytes(&exact)
        .map_err(|_| Stop::fail("not of the size of an entry"))?;
    check!(
        kfi::InfoEntry::from(&entry) == scene.rig.info.entries()[0],
        "another entry than before"
    );
    check_eq!(entry.reserved, 0);
    check_eq!(entry.tx_attr.reserved, 0);
    check_eq!(entry.domain_attr.reserved, 0);
    check_eq!(entry.fabric_attr.reserved, 0);

    // More than enough: an entry, and behind it zeros.
    let mut large = Guarded::new(&vec![0xaa; size + 100])?;
    let result = raw::read_info(session, info, 0, &mut large, size as u32 + 50);
    check_eq!(result, Ok(()), "a larger buffer");
    let (head, tail) = large.bytes().split_at(size);
    check!(head == exact, "another entry in a larger buffer");
    check!(
        tail[..50].iter().all(|&byte| byte == 0),
        "the rest of a larger buffer is not 0"
    );
    check_eq!(tail[50..], [0xaa; 50], "behind the buffer");

    // More than there is, or than any program would have.
    let largest = LARGEST_BUFFER as u32;
    for (claimed, errno) in [
        (size as u32 + 1, Errno::FAULT),
        (largest, Errno::FAULT),
        (largest + 1, Errno::TOOBIG),
        (0x7fff_ffff, Errno::TOOBIG),
        (u32::MAX, Errno::TOOBIG),
    ] {
        let result = raw::read_info(session, info, 0, &mut buffer, claimed);
        check_eq!(result, Err(errno), "a buffer that claims {claimed} bytes");
    }
    scene.end_untouched()
}

pub(super) fn other_system_calls(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let file = scene.session().as_fd();
    let mut buffer = [0; 64];
    let read = rustix::io::read(file, &mut buffer);
    check_eq!(read, Err(Errno::INVAL), "read(2) of the device");
    let write = rustix::io::write(file, &buffer);
    check_eq!(write, Err(Errno::INVAL), "write(2) of the device");

    // No request of the device is one of a wait descriptor.
    let wait_fd = Session::from(scene.counter.wait_fd()?.into_fd());
    for form in forms() {
        let mut argument = form.make(&scene)?;
        form.fail(&wait_fd, form.number(), &mut argument, Errno::NOTTY)?;
        if form.name() == "CLOSE" {
            scene.session().close_handle(read_u32(&argument, 0))?;
        }
    }
    let write = rustix::io::write(&wait_fd, &buffer);
    check!(write.is_err(), "write(2) of a wait descriptor: {write:?}");
    drop(wait_fd);
    scene.end_untouched()
}
