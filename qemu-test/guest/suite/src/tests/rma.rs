// SPDX-License-Identifier: GPL-2.0

//! RMA, and the memory regions that it needs.

use std::time::{Duration, Instant};

use kfi::{
    bits, Buffer, BufferKind, Caps, CntrAttr, EqAttr, Form, InfoEntry, KfiErrno, Kind, MrAttr,
    MrMode, Operation, Query,
};
use rand::RngExt;
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::ends::{
    carries_data, done, expect, in_all_forms, injects, pattern, quiet, takes_pieces, Area, End,
    Pair, Setup, LONG,
};
use crate::env::Env;
use crate::rig::{expect_busy, expect_fabric, expect_os, Rig};
use crate::tests::module::PROVIDER;
use crate::{check, check_eq, tests};

tests! {
    "rma" parallel;
    "every-form-and-size" ["kfi_rma.h"] every_form_and_size;
    "random-pieces" ["kfi_rma.h"] random_pieces;
    alone "very-large" ["kfi_rma.h"] very_large;
    "events" ["kfi_rma.h kfi_domain.h"] events;
    "keys-ranges-and-access" ["kfi_rma.h kfi_domain.h"] keys_ranges_and_access;
    "nothing-half-done" ["kfi_rma.h"] nothing_half_done;
    "closed-region" ["kfi_domain.h"] closed_region;
    alone "closed-beside-copies" ["kfi_domain.h R-CNTR-3"] closed_beside_copies;
    "write-then-fenced-read" ["kfi_rma.h"] write_then_fenced_read;
    "regions-counted" ["R-CNTR-7 R-CNTR-2"] regions_counted;
    "regions-bad-arguments" ["kfi_domain.h"] regions_bad_arguments;
    "regions-keys" ["kfi_domain.h"] regions_keys;
    "regions-of-endpoints" ["kfi_domain.h"] regions_of_endpoints;
    "regions-provider-keys" ["kfi_domain.h"] regions_provider_keys;
    "regions-event-queue" ["kfi_domain.h"] regions_event_queue;
}

const CAPS: Caps = Caps::RMA;

fn rma(pair: &Pair, (local, remote): (&Area, &Area), len: u64, form: Form, seed: u64) -> Outcome {
    let a = &pair.a;
    let key = seed;
    let offset = if remote.len > len + 5 { 5 } else { 0 };
    let region = pair.region_of(remote, offset + len, key)?;
    let operation = |kind| {
        let mut operation = a.operation(kind, form).context(seed);
        if injects(form) {
            operation = operation.context(0);
        }
        operation = if takes_pieces(form) {
            operation.segments(&local.pieces(len, 3))
        } else {
            operation.segment(local.part(0, len))
        };
        // The plain forms name one range, the message forms may name several.
        if [Form::MSG, Form::MSG_BV, Form::MSG_SGL].contains(&form) && len > 10 {
            operation.rma(offset, 3, key).rma(offset + 3, len - 3, key)
        } else {
            operation.rma(offset, len, key)
        }
    };
    local.fill(seed);
    remote.clear();
    let mut write = operation(Kind::WRITE);
    if carries_data(form) {
        write = write.data(seed << 32 | 1);
    }
    a.post(&write)?;
    if injects(form) {
        // Nothing tells when it is done, but a read that waits for it.
        if carries_data(form) {
            let flags = done::WRITTEN | bits::REMOTE_CQ_DATA;
            check_eq!(expect(&pair.b.rx, 0, flags, len)?.data, seed << 32 | 1);
        } else {
            a.post(
                &a.operation(Kind::READ, Form::MSG)
                    .segment(local.part(0, 0))
                    .rma(0, 0, key)
                    .flags(bits::FENCE),
            )?;
            expect(&a.tx, 0, done::RMA_READ, 0)?;
        }
    } else {
        expect(&a.tx, seed, done::RMA_WRITE, len)?;
        if carries_data(form) {
            let flags = done::WRITTEN | bits::REMOTE_CQ_DATA;
            check_eq!(expect(&pair.b.rx, 0, flags, len)?.data, seed << 32 | 1);
        }
    }
    remote.has(offset, len, seed, 0)?;
    if offset != 0 {
        check_eq!(remote.bytes(0, 5), [0xee; 5], "bytes before");
        check_eq!(remote.bytes(offset + len, 1), [0xee], "the byte after");
    }
    if !injects(form) && !carries_data(form) {
        remote.write(offset, &pattern(seed + 1, 0, len as usize));
        local.clear();
        a.post(&operation(Kind::READ))?;
        expect(&a.tx, seed, done::RMA_READ, len)?;
        local.has_only(len, seed + 1)?;
    }
    region.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn every_form_and_size(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS | Caps::FENCE)?;
    let mut seed = 0;
    let count = in_all_forms(&pair, |from, to, len, form| {
        seed += 2;
        rma(&pair, (from, to), len, form, seed)
    })?;
    env.note(format!("{count} writes"));
    pair.close()
}

/// Several pieces here, several ranges of several regions there.
fn random_pieces(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let mut rng = env.rng();
    let size = 60_000;
    let local = Area::plain(&pair.session, 200_000)?;
    let remote: Vec<Area> = (0..3)
        .map(|i| Area::new(&pair.session, BufferKind::VMALLOC, i, size))
        .collect::<Result<_, _>>()?;
    let regions: Vec<_> = remote
        .iter()
        .zip(1..)
        .map(|(area, key)| pair.region(area, key))
        .collect::<Result<_, _>>()?;
    for round in 0..env.scaled(100, 20) {
        local.fill(round);
        for (area, seed) in remote.iter().zip(1000..) {
            area.fill(seed + round * 3);
        }
        let mut operation = a.operation(
            [Kind::WRITE, Kind::READ][(round % 2) as usize],
            [Form::MSG, Form::MSG_BV, Form::MSG_SGL][(round % 3) as usize],
        );
        let mut should: Vec<Vec<u8>> = remote.iter().map(|area| area.bytes(0, size)).collect();
        let mut here = local.bytes(0, local.len);
        let (mut at, mut ranges) = (0_usize, Vec::new());
        for _ in 0..rng.random_range(1..10) {
            let target = rng.random_range(0..3);
            let from = rng.random_range(0..size);
            let len = rng.random_range(0..=(size - from).min(20_000));
            ranges.push((target, from as usize, len as usize));
            operation = operation.rma(from, len, target as u64 + 1);
        }
        for (target, from, len) in ranges {
            let there = &mut should[target][from..from + len];
            let here = &mut here[at..at + len];
            if round % 2 == 0 {
                there.copy_from_slice(here);
            } else {
                here.copy_from_slice(there);
            }
            at += len;
        }
        let pieces = rng.random_range(1..20);
        a.post(&operation.segments(&local.pieces(at as u64, pieces)))?;
        let flags = [done::RMA_WRITE, done::RMA_READ][(round % 2) as usize];
        expect(&a.tx, 0, flags, at as u64)?;
        for (area, should) in remote.iter().zip(&should) {
            check!(area.bytes(0, size) == *should, "round {round}: there");
        }
        check!(local.bytes(0, local.len) == here, "round {round}: here");
    }
    drop((regions, local, remote));
    pair.close()
}

/// As much as there is memory for, up to 32 MiB; with `--scale 32`, 1 GiB.
fn very_large(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let most = env.scaled(32, 16).next_power_of_two().min(1024) << 20;
    let limit = pair.entry().ep_attr.max_msg_size.min(most);
    let available = std::fs::read_to_string("/proc/meminfo")?
        .lines()
        .find_map(|line| {
            let rest = line.strip_prefix("MemAvailable:")?;
            rest.trim()
                .trim_end_matches(" kB")
                .trim()
                .parse::<u64>()
                .ok()
        })
        .unwrap_or(0)
        << 10;
    let mut size = limit;
    let areas = loop {
        // Both sides, and something for everybody else.
        if size * 2 <= available / 2 {
            let areas = Area::plain(&pair.session, size)
                .and_then(|from| Ok((from, Area::plain(&pair.session, size)?)));
            if let Ok(areas) = areas {
                break areas;
            }
        }
        size /= 2;
        if size < 1 << 20 {
            return Err(Stop::Skip("there is no memory for that".to_owned()));
        }
    };
    let (from, to) = areas;
    let block = 1 << 20;
    for at in (0..size).step_by(block as usize) {
        from.write(at, &pattern(at, 0, block as usize));
    }
    let region = pair.region(&to, 1)?;
    let a = &pair.a;
    a.post(
        &a.operation(Kind::WRITE, Form::PLAIN)
            .segment(from.all())
            .rma(0, size, 1),
    )?;
    match a.tx.sread_ms(1, 200_000)?.pop() {
        Some(entry) => check_eq!((entry.flags, entry.len), (done::RMA_WRITE, size)),
        None => return Err(Stop::fail("no completion")),
    }
    for at in (0..size).step_by(block as usize) {
        to.has(at, block, at, 0)?;
    }
    env.note(format!("{} MiB", size >> 20));
    drop((region, from, to));
    pair.close()
}

fn events(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let Pair { a, b, .. } = &pair;
    let local = Area::plain(&pair.session, 4096)?;
    let remote = Area::plain(&pair.session, 4096)?;
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
    let attr = MrAttr::new(access, 1).flags(bits::RMA_EVENT);
    let loud = pair.far.register(&[remote.all()], &attr)?;
    let silent = pair.region(&remote, 2)?;
    let operation = |kind, key, len| {
        a.operation(kind, Form::PLAIN)
            .segment(local.part(0, len))
            .rma(0, len, key)
    };
    for (kind, here, there) in [
        (Kind::WRITE, done::RMA_WRITE, done::WRITTEN),
        (Kind::READ, done::RMA_READ, done::HAS_BEEN_READ),
    ] {
        for len in [0, 8, 4096] {
            a.post(&operation(kind, 1, len))?;
            expect(&a.tx, 0, here, len)?;
            let entry = expect(&b.rx, 0, there, len)?;
            check_eq!((entry.data, entry.tag, entry.buf), (0, 0, 0));
            a.post(&operation(kind, 2, len))?;
            expect(&a.tx, 0, here, len)?;
        }
    }
    quiet(&b.rx)?;
    // Data goes with a write or read, through either region.
    for (kind, here, there) in [
        (Kind::WRITE, done::RMA_WRITE, done::WRITTEN),
        (Kind::READ, done::RMA_READ, done::HAS_BEEN_READ),
    ] {
        for key in [1, 2] {
            a.post(
                &a.operation(kind, Form::MSG)
                    .segment(local.part(0, 100))
                    .rma(0, 100, key)
                    .data(u64::MAX - key)
                    .flags(bits::REMOTE_CQ_DATA),
            )?;
            expect(&a.tx, 0, here, 100)?;
            let entry = expect(&b.rx, 0, there | bits::REMOTE_CQ_DATA, 100)?;
            check_eq!(entry.data, u64::MAX - key);
            check_eq!((entry.tag, entry.buf), (0, 0));
            if pair.entry().caps.contains(Caps::SOURCE) {
                check_eq!(entry.src_addr, b.peer);
            }
        }
    }
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((loud, silent, local, remote));
    pair.close()
}

/// Waits for the failure of an operation because of its key or access.
#[track_caller]
fn refused(end: &End, context: u64) -> Result<i32, Stop> {
    match end.tx.sread_ms(1, 20_000) {
        Err(kfi::Error::Fabric(KfiErrno::EAVAIL)) => {}
        other => return Err(Stop::fail(format!("{other:?}, should be an error"))),
    }
    let error = end.tx.read_err()?;
    check_eq!(error.entry.op_context, context);
    let errors = [
        KfiErrno::EACCES,
        KfiErrno::EKEYREJECTED,
        KfiErrno::ENOKEY,
        KfiErrno::EMSGSIZE,
    ];
    check!(
        errors.iter().any(|errno| errno.number() == error.err),
        "refused with {}",
        error.err
    );
    Ok(error.err)
}

fn keys_ranges_and_access(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let local = Area::plain(&pair.session, 8192)?;
    let remote = Area::plain(&pair.session, 4096)?;
    local.fill(7);
    let region = |access, key| {
        pair.far
            .register(&[remote.all()], &MrAttr::new(access, key))
    };
    let readable = region(bits::REMOTE_READ, 1)?;
    let writable = region(bits::REMOTE_WRITE, 2)?;
    let local_only = region(bits::READ | bits::WRITE | bits::SEND | bits::RECV, 3)?;
    let post = |kind, from, len, key| {
        a.post(
            &a.operation(kind, Form::PLAIN)
                .segment(local.part(0, len))
                .rma(from, len, key)
                .context(key),
        )
    };
    let mut errors = Vec::new();
    for (kind, from, len, key) in [
        (Kind::WRITE, 0, 8, 1),
        (Kind::READ, 0, 8, 2),
        (Kind::WRITE, 0, 8, 3),
        (Kind::READ, 0, 8, 3),
        (Kind::WRITE, 0, 8, 4),
        (Kind::READ, 0, 4097, 1),
        (Kind::WRITE, 4096, 1, 2),
        (Kind::WRITE, 4090, 7, 2),
        (Kind::WRITE, 4097, 0, 2),
        (Kind::WRITE, u64::MAX, 1, 2),
        (Kind::WRITE, u64::MAX - 3, 8, 2),
        (Kind::WRITE, 1 << 63, 8, 2),
    ] {
        post(kind, from, len, key)?;
        errors.push(refused(a, key)?);
    }
    env.note(format!("{errors:?}"));
    remote.has(0, 0, 0, 0)?;
    check_eq!(remote.bytes(0, 4096), [0xee; 4096].to_vec());
    // At the very edge all is well.
    post(Kind::WRITE, 4088, 8, 2)?;
    expect(&a.tx, 2, done::RMA_WRITE, 8)?;
    post(Kind::WRITE, 4096, 0, 2)?;
    expect(&a.tx, 2, done::RMA_WRITE, 0)?;
    post(Kind::READ, 0, 4096, 1)?;
    expect(&a.tx, 1, done::RMA_READ, 4096)?;
    check_eq!(remote.bytes(4088, 8), pattern(7, 0, 8));
    pair.b.quiet()?;
    drop((readable, writable, local_only, local, remote));
    pair.close()
}

fn nothing_half_done(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let local = Area::plain(&pair.session, 300)?;
    let remote = Area::plain(&pair.session, 300)?;
    let region = pair.region(&remote, 1)?;
    let write = |ranges: &[(u64, u64, u64)]| {
        let mut operation = a.operation(Kind::WRITE, Form::MSG).segment(local.all());
        for (addr, len, key) in ranges {
            operation = operation.rma(*addr, *len, *key);
        }
        operation
    };
    for ranges in [
        [(0, 100, 1), (100, 100, 1), (0, 100, 2)],
        [(0, 100, 1), (250, 100, 1), (0, 100, 1)],
    ] {
        a.post(&write(&ranges))?;
        refused(a, 0)?;
        check_eq!(remote.bytes(0, 300), [0xee; 300].to_vec());
    }
    // More or less there than here is refused at once.
    for len in [0, 99, 101] {
        let ranges = [(0, 100, 1), (100, 100, 1), (200, len, 1)];
        expect_fabric(a.ep.post(&write(&ranges)), KfiErrno::EINVAL)?;
    }
    expect_fabric(a.ep.post(&write(&[])), KfiErrno::EINVAL)?;
    a.quiet()?;
    drop((region, local, remote));
    pair.close()
}

/// A region may be closed at any time; afterwards nobody reaches its memory.
fn closed_region(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let local = Area::plain(&pair.session, 1 << 20)?;
    let remote = Area::plain(&pair.session, 1 << 20)?;
    let (mut written, mut failed) = (0, 0);
    for round in 0..env.scaled(300, 30) {
        let region = pair.region(&remote, 1)?;
        let len = [8, 4096, 1 << 20][(round % 3) as usize];
        for _ in 0..4 {
            a.post(
                &a.operation(Kind::WRITE, Form::PLAIN)
                    .segment(local.part(0, len))
                    .rma(0, len, 1),
            )?;
        }
        region.close().map_err(|(_, error)| error)?;
        // Operations that are not done by now never will be.
        remote.write(0, b"mine");
        for _ in 0..4 {
            match a.tx.sread_ms(1, 20_000) {
                Ok(_) => written += 1,
                Err(kfi::Error::Fabric(KfiErrno::EAVAIL)) => {
                    a.tx.read_err()?;
                    failed += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        check_eq!(remote.bytes(0, 4), b"mine", "round {round}");
    }
    env.note(format!("{written} written, {failed} refused"));
    drop((local, remote));
    pair.close()
}

/// To close a region takes no longer than a part of what is being copied there: the rest is not copied, and
/// the operation fails.
fn closed_beside_copies(env: &Env) -> Outcome {
    const PIECE: u64 = 4 << 20;
    const BEFORE: u8 = 0x11;
    const AFTER: u8 = 0x22;
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let entry = pair.entry();
    let count = entry
        .tx_attr
        .iov_limit
        .min(entry.domain_attr.mr_iov_limit)
        .min(entry.ep_attr.max_msg_size / PIECE)
        .min(256);
    if count < 64 {
        return Err(Stop::Skip("there are no large operations".to_owned()));
    }
    // As much as there may be, but all of it in the same place.
    let len = count * PIECE;
    let local = pair.session.buffer(BufferKind::VMALLOC, PIECE)?;
    let remote = pair.session.buffer(BufferKind::VMALLOC, PIECE)?;
    let counter = pair.far.counter(&CntrAttr::new())?;
    let (mut done, mut failed) = (0, 0);
    let mut longest = Duration::ZERO;
    for round in 0..env.scaled(20, 6) {
        let (kind, from, to, arrival) = if round % 2 == 0 {
            (Kind::READ, &remote, &local, bits::REMOTE_READ)
        } else {
            (Kind::WRITE, &local, &remote, bits::REMOTE_WRITE)
        };
        from.fill(BEFORE);
        to.fill(0);
        let attr = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, 1);
        let region = pair
            .far
            .register(&vec![remote.all(); count as usize], &attr)?;
        region.bind(counter.handle(), arrival)?;
        let arrived = counter.read()?;
        a.post(
            &a.operation(kind, Form::MSG)
                .segments(&vec![local.all(); count as usize])
                .rma(0, len, 1)
                .context(round),
        )?;
        let begun = Instant::now();
        while to.bytes(0..1) != [BEFORE] {
            check!(begun.elapsed() < LONG, "nothing is copied");
            std::thread::yield_now();
        }
        let begun = Instant::now();
        region.close().map_err(|(_, error)| error)?;
        longest = longest.max(begun.elapsed());
        // Nobody reads or writes there any more.
        remote.fill(AFTER);
        match a.tx.sread(1, Some(LONG)) {
            Ok(_) => {
                done += 1;
                check_eq!(counter.read()?, arrived + 1, "round {round}");
            }
            Err(kfi::Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = a.tx.read_err()?;
                check_eq!(error.entry.op_context, round);
                check_eq!(error.err, KfiErrno::EKEYREJECTED.number());
                failed += 1;
                check_eq!(counter.read()?, arrived, "round {round}");
            }
            Err(error) => return Err(error.into()),
        }
        let has = |buffer: &Buffer, byte| buffer.bytes(0..PIECE as usize).contains(&byte);
        let written = has(&remote, 0) || has(&remote, BEFORE);
        check!(!written, "written after the close in round {round}");
        check!(!has(&local, AFTER), "read after the close in round {round}");
    }
    env.note(format!(
        "{done} done, {failed} ended, closed in {longest:?} at the most"
    ));
    check!(failed != 0, "each was carried out to its end");
    drop((local, remote, counter));
    pair.close()
}

fn write_then_fenced_read(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS | Caps::FENCE)?;
    let a = &pair.a;
    let size = 300_000;
    let local = Area::plain(&pair.session, size)?;
    let back = Area::plain(&pair.session, size)?;
    let remote = Area::plain(&pair.session, size)?;
    let region = pair.region(&remote, 1)?;
    for round in 0..env.scaled(100, 10) {
        let len = [8, 5000, size][(round % 3) as usize];
        local.fill(round);
        a.post(
            &a.operation(Kind::WRITE, Form::PLAIN)
                .segment(local.part(0, len))
                .rma(0, len, 1)
                .context(1),
        )?;
        a.post(
            &a.operation(Kind::READ, Form::MSG)
                .segment(back.part(0, len))
                .rma(0, len, 1)
                .context(2)
                .flags(bits::FENCE),
        )?;
        expect(&a.tx, 1, done::RMA_WRITE, len)?;
        expect(&a.tx, 2, done::RMA_READ, len)?;
        back.has(0, len, round, 0)?;
    }
    drop((region, local, back, remote));
    pair.close()
}

/// Case CNTR 6, and arrivals from several peers in one value.
fn regions_counted(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let Pair { a, b, .. } = &pair;
    let local = Area::plain(&pair.session, 4096)?;
    let remote = Area::plain(&pair.session, 4096)?;
    let counter = pair.far.counter(&CntrAttr::new())?;
    let region = pair.region(&remote, 1)?;
    let other = pair.region(&remote, 2)?;
    for flags in [0, bits::SEND, bits::READ, 1 << 60] {
        expect_fabric(region.bind(counter.handle(), flags), KfiErrno::EBADFLAGS)?;
    }
    region.bind(counter.handle(), bits::REMOTE_WRITE)?;
    // Not twice, and not of another domain.
    expect_fabric(
        region.bind(counter.handle(), bits::REMOTE_WRITE),
        KfiErrno::EINVAL,
    )?;
    let stranger = pair.rig.domain.counter(&CntrAttr::new())?;
    expect_fabric(
        other.bind(stranger.handle(), bits::REMOTE_WRITE),
        KfiErrno::EINVAL,
    )?;
    // Reads have a counter of their own.
    let reads = pair.far.counter(&CntrAttr::new())?;
    let both = bits::REMOTE_READ | bits::REMOTE_WRITE;
    expect_fabric(region.bind(reads.handle(), both), KfiErrno::EINVAL)?;
    region.bind(reads.handle(), bits::REMOTE_READ)?;
    expect_fabric(
        region.bind(reads.handle(), bits::REMOTE_READ),
        KfiErrno::EINVAL,
    )?;
    expect_busy(pair.session.close_handle(counter.handle()))?;
    expect_busy(pair.session.close_handle(reads.handle()))?;
    let mut rounds = 0;
    for end in [a, b] {
        // The second end writes to itself.
        let target = if std::ptr::eq(end, a) {
            a.peer
        } else {
            b.av.insert(&b.name)?
        };
        let operation = |kind, key| {
            Operation::new(kind, Form::PLAIN)
                .to(target)
                .segment(local.part(0, 8))
                .rma(0, 8, key)
        };
        for _ in 0..5 {
            end.post(&operation(Kind::WRITE, 1))?;
            expect(&end.tx, 0, done::RMA_WRITE, 8)?;
            rounds += 1;
            counter.wait_ms(rounds, 20_000)?;
            check_eq!((counter.read()?, counter.read_err()?), (rounds, 0));
            end.post(&operation(Kind::READ, 1))?;
            expect(&end.tx, 0, done::RMA_READ, 8)?;
            reads.wait_ms(rounds, 20_000)?;
            check_eq!((reads.read()?, reads.read_err()?), (rounds, 0));
            // Another region does not count.
            end.post(&operation(Kind::WRITE, 2))?;
            expect(&end.tx, 0, done::RMA_WRITE, 8)?;
        }
    }
    check_eq!((counter.read()?, counter.read_err()?), (10, 0));
    check_eq!((reads.read()?, reads.read_err()?), (10, 0));
    region.close().map_err(|(_, error)| error)?;
    counter.close().map_err(|(_, error)| error)?;
    reads.close().map_err(|(_, error)| error)?;
    drop((other, stranger, local, remote));
    pair.close()
}

fn regions_bad_arguments(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    crate::ends::needs(&rig.info.entries()[0], CAPS)?;
    let memory = Area::plain(&rig.session, 4096)?;
    let register = |attr: &MrAttr| rig.domain.register(&[memory.all()], attr);
    let good = MrAttr::new(bits::REMOTE_READ, 1);
    expect_fabric(register(&MrAttr::new(0, 1)), KfiErrno::EINVAL)?;
    let flags = register(&MrAttr::new(1 << 60, 1));
    check!(flags.is_err(), "access {:#x} is allowed", 1_u64 << 60);
    expect_fabric(register(&good.flags(1 << 50)), KfiErrno::EBADFLAGS)?;
    expect_fabric(register(&MrAttr { offset: 8, ..good }), KfiErrno::EINVAL)?;
    let limit = rig.info.entries()[0].domain_attr.mr_iov_limit;
    if limit < 1000 {
        let pieces: Vec<_> = (0..=limit).map(|i| memory.part(i, 1)).collect();
        expect_fabric(rig.domain.register(&pieces, &good), KfiErrno::EINVAL)?;
        rig.domain.register(&pieces[1..], &good)?;
    }
    // kfi_mr_reg() takes one piece.
    let plain = good.form(Form::PLAIN);
    check_eq!(register(&plain)?.key()?, 1);
    for count in [0, 2] {
        let pieces: Vec<_> = (0..count).map(|i| memory.part(i, 1)).collect();
        expect_os(rig.domain.register(&pieces, &plain), Errno::INVAL)?;
    }
    // Nothing is left of all that.
    drop(memory);
    rig.close()
}

fn regions_keys(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let entry = &rig.info.entries()[0];
    crate::ends::needs(entry, CAPS)?;
    if !(entry.domain_attr.mr_mode & (MrMode::ENDPOINT | MrMode::PROV_KEY)).is_empty() {
        return Err(Stop::Skip("keys are not those of the domain".to_owned()));
    }
    let memory = Area::plain(&rig.session, 4096)?;
    let register = |key| {
        rig.domain
            .register(&[memory.all()], &MrAttr::new(bits::REMOTE_READ, key))
    };
    let mut regions = Vec::new();
    for key in [0, 1, 2, u64::from(u32::MAX), 1 << 40, u64::MAX - 1] {
        match register(key) {
            Ok(region) => {
                check_eq!(region.key()?, key);
                regions.push(region);
            }
            result => {
                check!(entry.domain_attr.mr_key_size < 8, "{key:#x} is refused");
                expect_fabric(result, KfiErrno::EKEYREJECTED)?;
            }
        }
    }
    for region in &regions {
        expect_fabric(register(region.key()?), KfiErrno::ENOKEY)?;
    }
    expect_fabric(register(u64::MAX), KfiErrno::EKEYREJECTED)?;
    // A key is free when its region is closed; another domain has its own.
    let second = rig.fabric.domain(&rig.info, 0)?;
    let same = second.register(&[memory.all()], &MrAttr::new(bits::REMOTE_READ, 1))?;
    check_eq!(same.key()?, 1);
    regions.remove(0);
    let region = register(0)?;
    check_eq!(region.key()?, 0);
    // As do smaller keys.
    let mut hints = entry.clone();
    hints.domain_attr.domain = 0;
    hints.domain_attr.mr_key_size = 4;
    hints.fabric_attr.fabric = 0;
    hints.fabric_attr.api_version = kfi::ApiVersion(0);
    if let Ok(info) = rig.session.getinfo(&Query::new().hints(hints)) {
        let fabric = info.fabric(0)?;
        let domain = fabric.domain(&info, 0)?;
        let attr = |key| MrAttr::new(bits::REMOTE_READ, key);
        if info.entries()[0].domain_attr.mr_key_size == 4 {
            domain.register(&[memory.all()], &attr(u64::from(u32::MAX)))?;
            let result = domain.register(&[memory.all()], &attr(1 << 32));
            expect_fabric(result, KfiErrno::EKEYREJECTED)?;
        }
    }
    drop((same, second, region, regions, memory));
    rig.close()
}

/// A pair in domains that were asked for in another way.
fn pair_with_mode(env: &Env, mode: MrMode) -> Result<(Rig, End, InfoEntry), Stop> {
    let session = kfi::Session::open()?;
    let hints = InfoEntry {
        domain_attr: kfi::DomainAttr {
            mr_mode: mode,
            ..kfi::DomainAttr::default()
        },
        fabric_attr: kfi::FabricAttr {
            prov_name: env.settings.provider.clone().unwrap_or_default(),
            ..kfi::FabricAttr::default()
        },
        ..InfoEntry::default()
    };
    let info = match session.getinfo(&Query::new().hints(hints)) {
        Err(kfi::Error::Fabric(KfiErrno::ENODATA)) => {
            return Err(Stop::Skip(format!("there is nothing with {mode}")));
        }
        info => info?,
    };
    let entry = info.entries()[0].clone();
    crate::ends::needs(&entry, CAPS)?;
    if !entry.domain_attr.mr_mode.contains(mode) {
        return Err(Stop::Skip(format!("the provider does without {mode}")));
    }
    let fabric = info.fabric(0)?;
    let domain = fabric.domain(&info, 0)?;
    let mut end = End::open(&domain, kfi::EpInfo::Entry(&info, 0), &Setup::default())?;
    end.enable()?;
    end.peer = end.av.insert(&end.name.clone())?;
    let rig = Rig {
        domain,
        fabric,
        info,
        session,
    };
    Ok((rig, end, entry))
}

/// Writes and reads 8 bytes of a region at an address.
fn works(end: &End, local: &Area, addr: u64, key: u64) -> Outcome {
    for (kind, flags) in [(Kind::WRITE, done::RMA_WRITE), (Kind::READ, done::RMA_READ)] {
        end.post(
            &end.operation(kind, Form::PLAIN)
                .segment(local.part(0, 8))
                .rma(addr, 8, key),
        )?;
        expect(&end.tx, 0, flags, 8)?;
    }
    Ok(())
}

fn regions_of_endpoints(env: &Env) -> Outcome {
    let (rig, end, _) = pair_with_mode(env, MrMode::ENDPOINT)?;
    let memory = Area::plain(&rig.session, 4096)?;
    let local = Area::plain(&rig.session, 4096)?;
    let attr = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, 5);
    let not_there = || -> Outcome {
        end.post(
            &end.operation(Kind::READ, Form::PLAIN)
                .segment(local.part(0, 8))
                .rma(0, 8, 5),
        )?;
        refused(&end, 0).map(drop)
    };
    let region = rig.domain.register(&[memory.all()], &attr)?;
    not_there()?;
    check!(region.enable().is_err(), "enabled without an endpoint");
    region.bind(end.ep.handle(), 0)?;
    expect_fabric(region.bind(end.ep.handle(), 0), KfiErrno::EINVAL)?;
    not_there()?;
    region.enable()?;
    works(&end, &local, 0, 5)?;
    check_eq!(region.key()?, 5);
    // The same key a second time is found when it is enabled.
    let second = rig.domain.register(&[memory.all()], &attr)?;
    second.bind(end.ep.handle(), 0)?;
    expect_fabric(second.enable(), KfiErrno::ENOKEY)?;
    // The endpoint cannot go before its regions.
    expect_busy(rig.session.close_handle(end.ep.handle()))?;
    drop(region);
    not_there()?;
    expect_busy(rig.session.close_handle(end.ep.handle()))?;
    second.enable()?;
    works(&end, &local, 0, 5)?;
    drop(second);
    // Another endpoint has keys of its own; one that is not enabled takes none.
    let idle = End::open(
        &rig.domain,
        kfi::EpInfo::Entry(&rig.info, 0),
        &Setup::default(),
    )?;
    let region = rig.domain.register(&[memory.all()], &attr)?;
    check!(region.bind(idle.ep.handle(), 0).is_err(), "not enabled");
    drop((region, idle, end, memory, local));
    rig.close()
}

fn regions_provider_keys(env: &Env) -> Outcome {
    /// As many keys can be tried out.
    const GUESSES: u64 = 1 << 32;

    let (rig, end, _) = pair_with_mode(env, MrMode::PROV_KEY)?;
    let memory = Area::plain(&rig.session, 4096)?;
    let local = Area::plain(&rig.session, 4096)?;
    let mut regions = Vec::new();
    for _ in 0..50 {
        let attr = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, 5);
        let region = rig.domain.register(&[memory.all()], &attr)?;
        works(&end, &local, 0, region.key()?)?;
        regions.push(region);
    }
    let mut keys: Vec<_> = regions
        .iter()
        .map(kfi::MemoryRegion::key)
        .collect::<Result<_, _>>()?;
    keys.sort_unstable();
    keys.dedup();
    check_eq!(keys.len(), regions.len(), "different keys");
    let info = &rig.info.entries()[0];
    if info.fabric_attr.prov_name == PROVIDER && info.domain_attr.mr_key_size == 8 {
        // Each is as good as the region, so none follows from others, nor from nothing.
        let mut gaps = keys.windows(2).map(|pair| pair[1] - pair[0]);
        check!(
            keys[0] > GUESSES && gaps.all(|gap| gap > GUESSES),
            "keys that can be guessed: {keys:x?}"
        );
    }
    drop((regions, end, memory, local));
    rig.close()
}

fn regions_event_queue(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    crate::ends::needs(&rig.info.entries()[0], CAPS)?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    let reg_mr = kfi::uapi::KFI_REG_MR;
    if let Err(error) = rig.domain.bind(eq.handle(), reg_mr) {
        return Err(Stop::Skip(format!("the domain takes no queue: {error}")));
    }
    let memory = Area::plain(&rig.session, 4096)?;
    // Keys are numbers, and told as they are, also one that could be an address of the kernel.
    for key in [1, 2, 3, 0xffff_8880_0000_1000] {
        let attr = MrAttr::new(bits::REMOTE_READ, key).context(77);
        let region = rig.domain.register(&[memory.all()], &attr)?;
        let event = eq.sread_ms(64, 20_000)?;
        check_eq!(event.event, { kfi::uapi::KFI_MR_COMPLETE });
        check_eq!(event.object, region.handle());
        check_eq!(event.data.get(8..16), Some(&77u64.to_ne_bytes()[..]));
        check_eq!(event.data.get(16..24), Some(&key.to_ne_bytes()[..]));
    }
    expect_fabric(eq.read(64), KfiErrno::EAGAIN)?;
    expect_busy(rig.session.close_handle(eq.handle()))?;
    drop(memory);
    rig.domain.close().map_err(|(_, error)| error)?;
    eq.close().map_err(|(_, error)| error)?;
    Ok(())
}
