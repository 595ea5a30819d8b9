// SPDX-License-Identifier: GPL-2.0

//! Address vectors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::{bits, uapi, AddressVector, AvAttr, AvType, Caps, EpInfo, EqAttr, EventQueue, KfiErrno};
use rustix::io::Errno;
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::ends::{needs, End, Setup};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::rig::{expect_busy, expect_fabric, Rig};
use crate::{check, check_eq, tests};

tests! {
    "av" parallel;
    "insert-lookup-remove" ["kfi_domain.h"] insert_lookup_remove;
    "nothing-without-places" ["kfi_shim.h"] nothing_without_places;
    "tables-count-from-zero" ["kfi_domain.h"] tables;
    "names-of-nodes" ["kfi_domain.h"] names_of_nodes;
    "texts" ["kfi_domain.h"] texts;
    "bad-arguments" ["kfi_domain.h"] bad_arguments;
    "error-of-each" ["kfi_domain.h"] error_of_each;
    "events" ["kfi_domain.h kfi_eq.h"] events;
    "events-without-queue" ["kfi_domain.h"] events_without_queue;
    "events-without-room" ["kfi_domain.h kfi_eq.h"] events_without_room;
    alone "events-without-room-at-once" ["kfi_domain.h kfi_eq.h"] events_without_room_at_once;
}

/// A vector of a type, and addresses of endpoints.
fn open(rig: &Rig, av_type: AvType, count: usize) -> Result<(AddressVector, Vec<End>), Stop> {
    needs(&rig.info.entries()[0], Caps::MSG)?;
    let av = rig.domain.address_vector(&AvAttr {
        av_type,
        ..AvAttr::default()
    })?;
    let mut ends = Vec::new();
    for _ in 0..count {
        let entry = EpInfo::Entry(&rig.info, 0);
        let mut end = End::open(&rig.domain, entry, &Setup::default())?;
        end.enable()?;
        ends.push(end);
    }
    Ok((av, ends))
}

/// Where addresses or errors cannot be told, nothing is inserted.
fn nothing_without_places(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::TABLE, 1)?;
    for address in BAD_ADDRESSES.into_iter().filter(|address| *address != 0) {
        for (kfi_addrs, errors) in [(address, 0), (0, address), (address, address)] {
            let mut insert = uapi::kfi_shim_av_insert {
                av: av.handle(),
                addr_len: ends[0].name.len() as u32,
                addr: ends[0].name.as_ptr() as u64,
                count: 1,
                flags: bits::SYNC_ERR,
                kfi_addrs,
                errors,
                ..FromZeros::new_zeroed()
            };
            let argument = insert.as_mut_bytes();
            let errno = raw::bytes(&rig.session, uapi::KFI_REQUEST_AV_INSERT, argument);
            check_eq!(errno, Err(Errno::FAULT), "{kfi_addrs:#x} {errors:#x}");
        }
    }
    check_eq!(av.insert(&ends[0].name)?, 0, "it is the first one");
    drop((av, ends));
    rig.close()
}

fn insert_lookup_remove(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for av_type in [AvType::MAP, AvType::TABLE] {
        let (av, ends) = open(&rig, av_type, 5)?;
        check_eq!(av.av_type(), av_type);
        let len = ends[0].name.len();
        let all: Vec<u8> = ends.iter().flat_map(|end| end.name.clone()).collect();
        let inserted = av.insert_all(&all, 5, 0, 0)?;
        check_eq!(inserted.count, 5);
        for (addr, end) in inserted.addrs.iter().zip(&ends) {
            check_eq!(av.lookup(*addr, len)?, (end.name.clone(), len));
            // Cut off, and the length that it needs.
            check_eq!(av.lookup(*addr, 3)?, (end.name[..3].to_vec(), len));
        }
        av.remove(&inserted.addrs[1..3])?;
        for (index, addr) in inserted.addrs.iter().enumerate() {
            let found = av.lookup(*addr, len);
            if (1..3).contains(&index) {
                expect_fabric(found, KfiErrno::EINVAL)?;
                expect_fabric(av.remove(&[*addr]), KfiErrno::EINVAL)?;
            } else {
                check_eq!(found?.0, ends[index].name);
            }
        }
        // A peer that is down is inserted as well.
        let gone = ends[4].name.clone();
        drop(ends);
        let addr = av.insert(&gone)?;
        check_eq!(av.lookup(addr, len)?.0, gone);
        av.close().map_err(|(_, error)| error)?;
    }
    // Whoever leaves the choice to the provider is told.
    let (av, _) = open(&rig, AvType::UNSPEC, 0)?;
    check!([AvType::MAP, AvType::TABLE].contains(&av.av_type()));
    drop(av);
    rig.close()
}

fn tables(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::TABLE, 1)?;
    for index in 0..env.scaled(1_000, 100) {
        check_eq!(av.insert(&ends[0].name)?, index);
    }
    expect_busy(rig.session.close_handle(rig.domain.handle()))?;
    drop((av, ends));
    rig.close()
}

fn names_of_nodes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 0)?;
    let domain = rig.info.entries()[0].domain_attr.name.clone();
    let node = std::ffi::CString::new(domain)?;
    let inserted = match av.insert_service(&node, c"77", 0) {
        Err(kfi::Error::Fabric(KfiErrno::ENOSYS)) => {
            return Err(Stop::Skip("nodes have no names".to_owned()));
        }
        inserted => inserted?,
    };
    check_eq!(inserted.count, 1);
    let (first, len) = av.lookup(inserted.addrs[0], 64)?;
    let again = av.insert_service(&node, c"77", 0)?;
    check_eq!(av.lookup(again.addrs[0], 64)?, (first.clone(), len));
    let other = av.insert_service(&node, c"78", 0)?;
    check!(av.lookup(other.addrs[0], 64)?.0 != first, "two ports");
    // Something that is no node, and no port.
    for (node, service) in [(c"nobody", c"1"), (c"", c"1")] {
        let inserted = av.insert_service(node, service, 0);
        check!(
            !matches!(&inserted, Ok(inserted) if inserted.count != 0),
            "{node:?} is inserted"
        );
    }
    let inserted = av.insert_service(&node, c"x", 0);
    check!(
        !matches!(&inserted, Ok(inserted) if inserted.count != 0),
        "port x is inserted"
    );
    // Ports that count up.
    let inserted = av.insert_symmetric(&node, 1, c"100", 4, 0)?;
    check_eq!(inserted.count, 4);
    for (addr, service) in inserted.addrs.iter().zip([c"100", c"101", c"102", c"103"]) {
        let same = av.insert_service(&node, service, 0)?;
        check_eq!(av.lookup(*addr, 64)?, av.lookup(same.addrs[0], 64)?);
    }
    drop((av, ends));
    rig.close()
}

fn texts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 2)?;
    let (text, len) = av.straddr(&ends[0].name, 64)?;
    check_eq!(text.len() + 1, len, "the length of {text:?}");
    let (other, _) = av.straddr(&ends[1].name, 64)?;
    check!(text != other, "two addresses are {text:?}");
    // Cut off, with its end, and the length that it needs.
    let (short, needed) = av.straddr(&ends[0].name, 4)?;
    check_eq!((short.as_str(), needed), (&text[..3], len));
    drop((av, ends));
    rig.close()
}

fn bad_arguments(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 0)?;
    let attr = |change: fn(&mut AvAttr)| {
        let mut attr = AvAttr::default();
        change(&mut attr);
        rig.domain.address_vector(&attr)
    };
    expect_fabric(attr(|attr| attr.av_type = AvType(77)), KfiErrno::EINVAL)?;
    for bits in [-1, 64, 1000] {
        let result = rig.domain.address_vector(&AvAttr {
            rx_ctx_bits: bits,
            ..AvAttr::default()
        });
        check!(result.is_err(), "{bits} bits for contexts");
    }
    check!(attr(|attr| attr.flags = 1 << 50).is_err(), "unknown flags");
    // Nothing there.
    for addr in [0, 1, 1 << 40, u64::MAX] {
        expect_fabric(av.lookup(addr, 8), KfiErrno::EINVAL)?;
        expect_fabric(av.remove(&[addr]), KfiErrno::EINVAL)?;
    }
    drop((av, ends));
    rig.close()
}

/// Some addresses of which every second one, from the first on, is none.
fn every_second(ends: &[End]) -> Vec<u8> {
    let len = ends[0].name.len();
    let pairs = ends.iter().map(|end| [vec![0xff; len], end.name.clone()]);
    pairs.flatten().flatten().collect()
}

/// An error for each address, those that were inserted in between (`KFI_SYNC_ERR`).
fn error_of_each(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for av_type in [AvType::MAP, AvType::TABLE] {
        let (av, ends) = open(&rig, av_type, 3)?;
        let all = every_second(&ends);
        let flags = bits::SYNC_ERR;
        let inserted = av.insert_all(&all, 6, flags, 0)?;
        check_eq!(inserted.count, 3);
        for (index, error) in inserted.errors.iter().enumerate() {
            let good = index % 2 == 1;
            check_eq!(*error == 0, good, "error {error} of address {index}");
            let known = inserted.addrs[index] != kfi::ADDR_NOTAVAIL;
            check_eq!(known, good, "address {index}");
        }
        for (end, addr) in ends.iter().zip(inserted.addrs.iter().skip(1).step_by(2)) {
            check_eq!(av.lookup(*addr, 64)?.0, end.name);
        }
        // The same without an error, and with nothing but.
        let inserted = av.insert_all(&ends[0].name, 1, flags, 0)?;
        check_eq!((inserted.count, inserted.errors), (1, vec![0]));
        let len = ends[0].name.len();
        let inserted = av.insert_all(&vec![0xff; 2 * len], 2, flags, 0)?;
        check_eq!(inserted.count, 0);
        check!(inserted.errors.iter().all(|error| *error != 0));
        drop((av, ends));
    }
    rig.close()
}

/// A vector whose insertions complete by events, with room for so many of them.
fn open_with_events(
    rig: &Rig,
    size: u64,
    count: usize,
) -> Result<(AddressVector, EventQueue, Vec<End>), Stop> {
    let (_, ends) = open(rig, AvType::MAP, count)?;
    let av = rig.domain.address_vector(&AvAttr {
        av_type: AvType::TABLE,
        flags: bits::EVENT,
        ..AvAttr::default()
    })?;
    let eq = rig.fabric.event_queue(&EqAttr::new().size(size))?;
    av.bind(eq.handle(), 0)?;
    Ok((av, eq, ends))
}

/// A part of the entry of an event.
fn part(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(data.iter().skip(at)) {
        *to = *from;
    }
    u64::from_ne_bytes(bytes)
}

/// The end of an insertion, with how many were inserted.
#[track_caller]
fn expect_complete(eq: &EventQueue, av: &AddressVector, context: u64, count: u64) -> Outcome {
    let event = eq.sread_ms(64, 20_000)?;
    check_eq!(event.event, { uapi::KFI_AV_COMPLETE });
    check_eq!(event.object, av.handle());
    // After the pointer: context, and number.
    check_eq!(
        (part(&event.data, 8), part(&event.data, 16)),
        (context, count)
    );
    Ok(())
}

fn events(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, eq, ends) = open_with_events(&rig, 64, 3)?;
    let len = ends[0].name.len();
    // One error for each that is none, with its index, and the end.
    let inserted = av.insert_all(&every_second(&ends), 6, 0, 77)?;
    check_eq!(inserted.count, 0);
    for index in [0, 2, 4] {
        expect_fabric(eq.sread_ms(64, 20_000), KfiErrno::EAVAIL)?;
        let error = eq.read_err()?;
        check_eq!((error.context, error.data), (77, index), "{error:?}");
        check_eq!(error.object, av.handle());
        check!(error.err > 0, "{error:?}");
    }
    expect_complete(&eq, &av, 77, 3)?;
    let addrs = av.inserted(inserted.insertion, 6)?;
    for (index, addr) in addrs.iter().enumerate() {
        if index % 2 == 0 {
            check_eq!(*addr, kfi::ADDR_NOTAVAIL);
        } else {
            check_eq!(av.lookup(*addr, len)?.0, ends[index / 2].name);
        }
    }
    // Several at once, each with its own context, in order.
    let mut begun = Vec::new();
    for context in 1..=10 {
        let end = &ends[context as usize % 3];
        begun.push((av.insert_all(&end.name, 1, 0, context)?, end));
    }
    for context in 1..=10 {
        expect_complete(&eq, &av, context, 1)?;
    }
    for (inserted, end) in &begun {
        let addrs = av.inserted(inserted.insertion, 1)?;
        check_eq!(av.lookup(addrs[0], len)?.0, end.name);
    }
    // By names; and none at all.
    let domain = rig.info.entries()[0].domain_attr.name.clone();
    let node = std::ffi::CString::new(domain)?;
    if let Ok(inserted) = av.insert_service_with(&node, c"77", 0, 5) {
        expect_complete(&eq, &av, 5, 1)?;
        av.lookup(av.inserted(inserted.insertion, 1)?[0], len)?;
        let inserted = av.insert_symmetric(&node, 1, c"80", 3, 0)?;
        expect_complete(&eq, &av, 0, 3)?;
        check_eq!(av.inserted(inserted.insertion, 3)?.len(), 3);
    }
    av.insert_all(&[], 0, 0, 6)?;
    expect_complete(&eq, &av, 6, 0)?;
    // Errors are told by events, or in an array, but not both.
    let both = av.insert_all(&ends[0].name, 1, bits::SYNC_ERR, 0);
    check!(both.is_err(), "both are accepted");
    expect_fabric(eq.read(64), KfiErrno::EAGAIN)?;
    // The queue cannot go before the vector.
    expect_busy(rig.session.close_handle(eq.handle()))?;
    av.close().map_err(|(_, error)| error)?;
    eq.close().map_err(|(_, error)| error)?;
    drop(ends);
    rig.close()
}

fn events_without_queue(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (_, ends) = open(&rig, AvType::MAP, 1)?;
    let av = rig.domain.address_vector(&AvAttr {
        flags: bits::EVENT,
        ..AvAttr::default()
    })?;
    let insert = || av.insert_all(&ends[0].name, 1, 0, 0);
    expect_fabric(insert(), KfiErrno::ENOEQ)?;
    // Not with flags, not twice, not of another class.
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    check!(av.bind(eq.handle(), 1).is_err(), "unknown flags");
    check!(av.bind(av.handle(), 0).is_err(), "bound to itself");
    expect_fabric(insert(), KfiErrno::ENOEQ)?;
    av.bind(eq.handle(), 0)?;
    expect_fabric(av.bind(eq.handle(), 0), KfiErrno::EINVAL)?;
    insert()?;
    expect_complete(&eq, &av, 0, 1)?;
    drop((av, eq, ends));
    rig.close()
}

/// Nothing is inserted of which nobody could be told.
fn events_without_room(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, eq, ends) = open_with_events(&rig, 1, 1)?;
    let name = &ends[0].name;
    let mut begun = 0;
    let full = loop {
        match av.insert_all(name, 1, 0, begun) {
            Ok(_) => begun += 1,
            Err(error) => break error,
        }
        check!(begun < 100_000, "there is always room");
    };
    check_eq!(full, kfi::Error::Fabric(KfiErrno::EAGAIN));
    check!(begun > 0, "there is no room at all");
    for context in 0..begun {
        expect_complete(&eq, &av, context, 1)?;
    }
    expect_fabric(eq.read(64), KfiErrno::EAGAIN)?;
    // Then there is room again, and what was refused has taken no place.
    let inserted = av.insert_all(name, 1, 0, 9)?;
    expect_complete(&eq, &av, 9, 1)?;
    check_eq!(av.inserted(inserted.insertion, 1)?, [begun]);
    drop((av, eq, ends));
    rig.close()
}

/// An insertion that is undone for lack of room is never seen by others, so that what is removed is
/// not what somebody else has inserted there meanwhile.
fn events_without_room_at_once(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, eq, ends) = open_with_events(&rig, 1, 1)?;
    let name = &ends[0].name;
    let mut begun = 0;
    while av.insert_all(name, 1, 0, begun).is_ok() {
        begun += 1;
        check!(begun < 100_000, "there is always room");
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let guess = scope.spawn(|| -> Outcome {
            while !stop.load(Ordering::Relaxed) {
                // The index that the others begin with.
                expect_fabric(av.remove(&[begun]), KfiErrno::EINVAL)?;
            }
            Ok(())
        });
        let insert = || -> Outcome {
            for _ in 0..env.scaled(10_000, 1_000) {
                expect_fabric(av.insert_all(name, 1, 0, 9), KfiErrno::EAGAIN)?;
            }
            Ok(())
        };
        let inserted = insert();
        stop.store(true, Ordering::Relaxed);
        let guessed = guess.join();
        inserted?;
        guessed.unwrap_or_else(|_| Err(Stop::fail("a thread is gone")))
    })?;
    drop((av, eq, ends));
    rig.close()
}
