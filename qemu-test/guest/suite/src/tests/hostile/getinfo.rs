// SPDX-License-Identifier: GPL-2.0

//! Texts and hints of `GETINFO` that are none.

use kfi::uapi::{self, request};
use kfi::Session;
use kfi_host::memory::Guarded;
use rustix::io::Errno;
use zerocopy::{FromZeros, IntoBytes};

use super::scene::{Scene, NO_HANDLES};
use crate::check::Outcome;
use crate::env::Env;
use crate::raw::BAD_ADDRESSES;
use crate::{check, check_eq};

/// `GETINFO` as it stands.
fn getinfo(session: &Session, argument: &uapi::kfi_shim_getinfo) -> Result<i32, Errno> {
    let mut argument = *argument;
    session.ioctl(request::GETINFO, &mut argument)?;
    if argument.result == 0 {
        session
            .close_handle(argument.info)
            .map_err(|_| Errno::BADF)?;
    }
    Ok(argument.result)
}

pub(super) fn getinfo_texts(env: &Env) -> Outcome {
    type Member = fn(&mut uapi::kfi_shim_getinfo) -> &mut u64;
    let scene = Scene::new(env)?;
    let session = scene.session();
    let members: [(&str, Member); 2] = [
        ("node", |argument| &mut argument.node),
        ("service", |argument| &mut argument.service),
    ];
    for (name, member) in members {
        let ask = |address: u64| {
            let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
            *member(&mut argument) = address;
            getinfo(session, &argument)
        };
        for address in BAD_ADDRESSES {
            if address != 0 {
                check_eq!(ask(address), Err(Errno::FAULT), "{name} at {address:#x}");
            }
        }
        // Texts that run into the end of memory.
        for length in [1, 7, 63] {
            let mut text = Guarded::new(&vec![b'A'; length])?;
            let result = ask(text.address() as u64);
            check_eq!(result, Err(Errno::FAULT), "{name} of {length}, no end");
        }
        // A text that ends where memory ends is good, if not an answer.
        for text in [&b"\0"[..], b"0\0", b"nothing has this name\0"] {
            let mut text = Guarded::new(text)?;
            let result = ask(text.address() as u64);
            check!(result.is_ok(), "{name} at the end of memory: {result:?}");
        }
        // Texts without end, in plenty of memory.
        for length in [1 << 16, 1 << 20] {
            let mut text = Guarded::new(&vec![b'A'; length])?;
            let result = ask(text.address() as u64);
            check_eq!(result, Err(Errno::INVAL), "{name} of {length}");
        }
    }
    scene.end_untouched()
}

/// `GETINFO` with hints, that may be anything.
fn ask_with(session: &Session, hints: &[u8]) -> Result<i32, Errno> {
    let mut hints = Guarded::new(hints)?;
    let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
    argument.hints = hints.address() as u64;
    argument.hints_size = hints.len() as u32;
    getinfo(session, &argument)
}

pub(super) fn getinfo_hints(env: &Env) -> Outcome {
    type Spoil = fn(&mut uapi::kfi_shim_info);
    let scene = Scene::new(env)?;
    let session = scene.session();
    let good = uapi::kfi_shim_info::from(&scene.rig.info.entries()[0]);
    check_eq!(ask_with(session, good.as_bytes()), Ok(0), "good hints");

    let spoils: [(&str, Spoil); 14] = [
        ("reserved", |hints| hints.reserved = 1),
        ("tx_attr.reserved", |hints| hints.tx_attr.reserved = 1),
        ("domain_attr.reserved", |h| h.domain_attr.reserved = 1),
        ("fabric_attr.reserved", |h| h.fabric_attr.reserved = 1),
        ("src_addrlen", |h| {
            h.src_addrlen = uapi::KFI_SHIM_ADDR_MAX + 1;
        }),
        ("dest_addrlen", |h| h.dest_addrlen = u32::MAX),
        ("ep_attr.auth_key_size", |h| {
            h.ep_attr.auth_key_size = uapi::KFI_SHIM_AUTH_KEY_MAX + 1;
        }),
        ("domain_attr.auth_key_size", |h| {
            h.domain_attr.auth_key_size = u32::MAX;
        }),
        ("domain_attr.name", |h| h.domain_attr.name = [0x41; 64]),
        ("fabric_attr.name", |h| h.fabric_attr.name = [0x41; 64]),
        ("fabric_attr.prov_name", |h| {
            h.fabric_attr.prov_name = [0x41; 64];
        }),
        // Objects of another class; the handles are put in below.
        ("domain_attr.domain of a fabric", |_| ()),
        ("fabric_attr.fabric of a domain", |_| ()),
        ("fabric_attr.fabric of an answer", |_| ()),
    ];
    for (name, spoil) in spoils {
        let mut hints = good;
        spoil(&mut hints);
        match name.rsplit_once(' ').map(|(_, class)| class) {
            Some("fabric") => hints.domain_attr.domain = scene.rig.fabric.handle(),
            Some("domain") => hints.fabric_attr.fabric = scene.rig.domain.handle(),
            Some("answer") => hints.fabric_attr.fabric = scene.rig.info.handle(),
            _ => {}
        }
        let result = ask_with(session, hints.as_bytes());
        check_eq!(result, Err(Errno::INVAL), "hints with bad {name}");
    }
    // Objects that are not there.
    for handle in &NO_HANDLES[1..] {
        let mut hints = good;
        hints.domain_attr.domain = *handle;
        check_eq!(ask_with(session, hints.as_bytes()), Err(Errno::BADF));
        let mut hints = good;
        hints.fabric_attr.fabric = *handle;
        check_eq!(ask_with(session, hints.as_bytes()), Err(Errno::BADF));
    }
    scene.end_untouched()
}

/// No structure behind an address may be larger.
pub(super) const LARGEST_BUFFER: usize = 1 << 16;

pub(super) fn getinfo_hints_sizes(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let good = uapi::kfi_shim_info::from(&scene.rig.info.entries()[0]);
    let size = size_of_val(&good);

    for short in [0, 1, 8, size / 2, size - 8, size - 1] {
        let result = ask_with(session, &good.as_bytes()[..short]);
        check_eq!(result, Err(Errno::INVAL), "hints of {short} bytes");
    }
    for long in [size + 1, size + 8, 4096, 4097, LARGEST_BUFFER] {
        let mut hints = good.as_bytes().to_vec();
        hints.resize(long, 0);
        let result = ask_with(session, &hints);
        check_eq!(result, Ok(0), "hints of {long} bytes, the rest 0");
        hints[long - 1] = 1;
        let result = ask_with(session, &hints);
        check_eq!(result, Err(Errno::TOOBIG), "hints of {long} bytes");
    }
    for address in BAD_ADDRESSES {
        if address != 0 {
            let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
            argument.hints = address;
            argument.hints_size = size as u32;
            let result = getinfo(session, &argument);
            check_eq!(result, Err(Errno::FAULT), "hints at {address:#x}");
        }
    }
    // More than there is memory for, or than any program would send.
    let mut hints = Guarded::new(good.as_bytes())?;
    let too_much = [LARGEST_BUFFER + 1, 1 << 24, 0x7fff_ffff, 0xffff_ffff];
    let fault = [size + 1, size + 8, LARGEST_BUFFER].map(|size| (size, Errno::FAULT));
    let too_big = too_much.map(|size| (size, Errno::TOOBIG));
    for (claimed, errno) in fault.into_iter().chain(too_big) {
        let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
        argument.hints = hints.address() as u64;
        argument.hints_size = claimed as u32;
        let result = getinfo(session, &argument);
        check_eq!(result, Err(errno), "hints that claim {claimed} bytes");
    }
    scene.end_untouched()
}
