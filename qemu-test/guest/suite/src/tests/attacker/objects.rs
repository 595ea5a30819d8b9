// SPDX-License-Identifier: GPL-2.0

//! Objects that requests open count for what they make the kernel allocate, and are limited in number.

use std::fs;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::{
    bits, uapi, AvAttr, Buffer, BufferKind, Caps, CntrAttr, CqAttr, EpInfo, EqAttr, Error, Form,
    KfiErrno, Kind, MrAttr, OpType, Operation, Session, WaitObj, Work,
};
use rustix::event::{epoll, Timespec};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use zerocopy::{FromZeros, IntoBytes};

use super::{limited, pair_for, unless_missing};
use crate::check::{Outcome, Stop};
use crate::ends::{End, Setup};
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, query, unshare, Rig};
use crate::tests::load::{check_memory, kernel_memory};
use crate::tests::module::Modules;
use crate::{check, check_eq, raw};

/// Does something until it is refused for its memory; returns how often it was done.
pub(super) fn fill<T>(
    most: usize,
    mut one: impl FnMut() -> kfi::Result<T>,
) -> Result<Vec<T>, Stop> {
    let mut all = Vec::new();
    loop {
        match one() {
            Ok(object) => all.push(object),
            Err(Error::Os(Errno::DQUOT)) => return Ok(all),
            Err(error) => return Err(Stop::fail(format!("{error} with {}", all.len()))),
        }
        check!(all.len() < most, "{most} are in no limit");
    }
}

/// All memory that a request makes the kernel allocate counts, and is given back.
pub(super) fn everything_counts(env: &Env) -> Outcome {
    limited(env, c"max_memory=1048576 max_objects=1000000", |rig| {
        // Each of them twice: memory that was given back may be had again, no less.
        let twice = |what: &str, run: &dyn Fn() -> Result<usize, Stop>| -> Outcome {
            let (first, second) = (run()?, run()?);
            env.note(format!("{first} {what} in 1 MiB"));
            check_eq!(first, second, "{what}");
            Ok(())
        };
        twice("counters", &|| {
            Ok(fill(10_000, || rig.domain.counter(&CntrAttr::new()))?.len())
        })?;
        twice("large completion queues", &|| {
            let attr = CqAttr::new().size(512);
            Ok(fill(100, || rig.domain.completion_queue(&attr))?.len())
        })?;
        twice("event queues", &|| {
            Ok(fill(1_000, || rig.fabric.event_queue(&EqAttr::new()))?.len())
        })?;
        twice("address vectors", &|| {
            let attr = AvAttr {
                count: 1 << 10,
                ..AvAttr::default()
            };
            Ok(fill(100, || rig.domain.address_vector(&attr))?.len())
        })?;
        twice("answers", &|| {
            Ok(fill(10_000, || rig.session.getinfo(&query(env)))?.len())
        })?;
        // Of memory in one piece there is a power of two.
        twice("buffers of 40 KiB in one piece", &|| {
            let buffers = fill(100, || rig.session.buffer(BufferKind::KMALLOC, 40 << 10))?;
            check!(buffers.len() < 16, "{} of 64 KiB", buffers.len());
            Ok(buffers.len())
        })?;
        let counter = rig.counter()?;
        let limit = Rlimit {
            current: Some(8192),
            maximum: Some(8192),
        };
        rustix::process::setrlimit(Resource::Nofile, limit)?;
        // Of one counter only so many.
        let several = (0..40).map(|_| rig.counter());
        let several = several.collect::<Result<Vec<_>, _>>()?;
        twice("wait descriptors", &|| {
            let mut at = several.iter().cycle();
            let one = || at.next().unwrap_or(&counter).wait_fd();
            Ok(fill(10_000, one)?.len())
        })?;
        drop(several);
        let sets = (0..60)
            .map(|_| rig.domain.poll_set())
            .collect::<Result<Vec<_>, _>>()?;
        let counters = (0..60)
            .map(|_| rig.counter())
            .collect::<Result<Vec<_>, _>>()?;
        twice("members", &|| {
            let mut pairs = sets
                .iter()
                .flat_map(|set| counters.iter().map(move |counter| (set, counter)));
            let members = fill(50_000, || {
                let Some((set, counter)) = pairs.next() else {
                    return Ok(None);
                };
                set.add_handle(counter.handle(), 0)?;
                Ok(Some((set, counter)))
            })?;
            for (set, counter) in members.iter().flatten() {
                set.del_handle(counter.handle(), 0)?;
            }
            Ok(members.len())
        })?;
        // The sets keep their places until they are closed.
        let mut sets = sets;
        let Some((other, member)) = sets.pop().zip(counters.first()) else {
            return Err(Stop::fail("no sets"));
        };
        let again = other.add_handle(member.handle(), 0);
        check_eq!(again.err(), Some(Error::Os(Errno::DQUOT)));
        drop(sets);
        other.add_handle(member.handle(), 0)?;
        other.del_handle(member.handle(), 0)?;
        drop((other, counters));
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 1 << 18)?;
        // By page.
        let works = |what: &str, most: usize, work: &Work| {
            twice(what, &|| {
                let ids = fill(most, || rig.domain.queue_work(work))?;
                for id in &ids {
                    rig.session.release_work(*id)?;
                }
                Ok(ids.len())
            })
        };
        let work = Work::add(&counter, 1, &counter, 1).shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        works("works", 10_000, &work)?;
        let send = Operation::new(Kind::SEND, Form::MSG_SGL).segment(buffer.segment(1..1 << 18));
        let mut entry = rig.info.entries()[0].clone();
        (entry.tx_attr.size, entry.rx_attr.size) = (16, 16);
        let ep = rig.domain.endpoint(kfi::EpInfo::Value(&entry), 0)?;
        let work = Work::transfer(OpType::SEND, ep.handle(), &send, &counter, 1);
        let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        works("works with 65 entries or less", 2_000, &work)?;
        let attr = MrAttr::new(bits::REMOTE_READ, 1);
        let mut key = 0;
        let region = rig.domain.register(&[buffer.all()], &attr);
        if region.is_ok() {
            drop(region);
            let regions = fill(10_000, || {
                key += 1;
                let attr = MrAttr::new(bits::REMOTE_READ, key);
                rig.domain.register(&[buffer.all()], &attr)
            })?;
            check!(!regions.is_empty(), "no regions");
            let few = regions.len();
            drop(regions);
            by_page(env, rig, &buffer, few)?;
        }
        drop((ep, buffer, counter));
        refused_insertions(rig)
    })
}

/// Regions by page count for what the provider keeps of each page, too; there is room for so many with an
/// entry.
fn by_page(env: &Env, rig: &Rig, buffer: &Buffer, with_one: usize) -> Outcome {
    const PAGES: usize = 256;
    /// What one with an entry takes, at the most.
    const ONE: usize = 3 << 10;
    /// What one by page takes, at least: both lists, and itself.
    const BY_PAGE: usize = PAGES * 2 * 16 + (2 << 10);
    if rig.info.entries()[0].domain_attr.mr_iov_limit < PAGES as u64 {
        return Ok(());
    }
    let pages = (buffer.size() as usize).div_ceil(rustix::param::page_size());
    let list = vec![buffer.all(); PAGES / pages];
    let mut key = 0;
    let regions = fill(10_000, || {
        key += 1;
        let attr = MrAttr::new(bits::REMOTE_READ, key).form(Form::BV);
        rig.domain.register(&list, &attr)
    })?;
    env.note(format!(
        "{} regions by page where there is room for {with_one} others",
        regions.len()
    ));
    check!(
        regions.len() * BY_PAGE <= (with_one + 1) * ONE,
        "{} regions by page",
        regions.len()
    );
    Ok(())
}

/// Nothing is left of insertions that are refused, whatever their numbers.
fn refused_insertions(rig: &Rig) -> Outcome {
    let av = unless_missing(rig.domain.address_vector(&AvAttr {
        flags: bits::EVENT,
        ..AvAttr::default()
    }))?;
    for number in 0..4_000 {
        // There is no queue to be told in.
        expect_fabric(av.insert_all(&[], 0, 0, number), KfiErrno::ENOEQ)?;
    }
    Ok(())
}

/// Works count as the objects do.
pub(super) fn works_are_objects(env: &Env) -> Outcome {
    limited(env, c"max_objects=50", |rig| {
        let counter = rig.counter()?;
        let work = Work::add(&counter, 1, &counter, 1).shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        let mut ids = Vec::new();
        let full = loop {
            match rig.domain.queue_work(&work) {
                Ok(id) => ids.push(id),
                Err(error) => break error,
            }
            check!(ids.len() < 100, "more than 50 objects");
        };
        check_eq!(full, Error::Os(Errno::MFILE));
        // An answer, a fabric, a domain and a counter are there, too.
        check_eq!(ids.len(), 50 - 4);
        expect_os(
            rig.counter_with(WaitObj::NONE).map_err(|_| full),
            Errno::MFILE,
        )?;
        for id in ids.drain(..) {
            rig.session.release_work(id)?;
        }
        drop(counter);
        Ok(())
    })
}

/// Queues with handlers come and go at the same time: the count of one may be where that of the other
/// was, and nobody is kept in the kernel for that.
pub(super) fn handlers(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Has the table of handles for itself, again and again.
        let busy = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = rig.domain.counter(&CntrAttr::new());
            }
        });
        let rig = &rig;
        let change = move |number: u64| -> Outcome {
            for round in 0..env.scaled(2_000, 200) {
                let attr = CqAttr::new().handler().context(number + round);
                rig.domain.completion_queue(&attr)?;
                let attr = EqAttr::new().handler().context(number + round);
                rig.fabric.event_queue(&attr)?;
            }
            Ok(())
        };
        let other = scope.spawn(move || change(1 << 40));
        let outcome = change(1 << 50);
        let other = other.join();
        stop.store(true, Ordering::Relaxed);
        let _ = busy.join();
        outcome?;
        other.unwrap_or_else(|_| Err(Stop::fail("a thread is gone")))
    })?;
    rig.close()
}

/// A queue with a handler that could not be told of leaves nothing behind.
pub(super) fn handlers_without_answer(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let queue = uapi::kfi_shim_cq_open {
        domain: rig.domain.handle(),
        flags: uapi::KFI_SHIM_NO_ATTR | uapi::KFI_SHIM_HANDLER,
        context: 7,
        ..FromZeros::new_zeroed()
    };
    let mut argument = kfi_host::memory::Guarded::new(queue.as_bytes())?;
    argument.set_read_only()?;
    let refused = |argument: &mut kfi_host::memory::Guarded| -> Outcome {
        let result = raw::guarded(&rig.session, uapi::KFI_REQUEST_CQ_OPEN, argument);
        check_eq!(result, Err(Errno::FAULT));
        Ok(())
    };
    for _ in 0..100 {
        refused(&mut argument)?;
    }
    let before = kernel_memory()?;
    let rounds = env.scaled(10_000, 500);
    for _ in 0..rounds {
        refused(&mut argument)?;
    }
    // Half of what one would leave.
    check_memory(env, &before, i64::try_from(rounds).unwrap_or(0) * 80 / 1024)?;
    rig.close()
}

/// Each address of a vector counts, also one that is there already, whatever was expected; those that
/// were removed do not.
pub(super) fn addresses_count(env: &Env) -> Outcome {
    Modules::new(env)?.with_device(c"max_memory=917504", || {
        let pair = pair_for(env, Caps::MSG, 16, Setup::default())?;
        let bytes = pair.b.name.repeat(1 << 8);
        for count in [0, 1 << 8] {
            let av = pair.domain.address_vector(&AvAttr {
                count,
                ..AvAttr::default()
            })?;
            let mut before = None;
            for _ in 0..2 {
                let all = fill(100, || av.insert_all(&bytes, 1 << 8, 0, 0))?;
                // At most as many as fit in all memory that there may be.
                check!((1..30).contains(&all.len()), "{} times 256", all.len());
                check_eq!(*before.get_or_insert(all.len()), all.len());
                for inserted in &all {
                    for part in inserted.addrs.chunks(256) {
                        av.remove(part)?;
                    }
                }
            }
        }
        pair.close()
    })
}

/// A context that is opened without attributes has the depth of its endpoint, and counts for that.
pub(super) fn contexts_inherit(env: &Env) -> Outcome {
    limited(env, c"max_memory=8388608", |rig| {
        let mut entry = rig.info.entries()[0].clone();
        entry.ep_attr.tx_ctx_cnt = 2;
        entry.ep_attr.rx_ctx_cnt = 2;
        for (depth, large) in [(16, false), (1 << 16, true)] {
            entry.tx_attr.size = depth;
            entry.rx_attr.size = depth;
            let info = kfi::EpInfo::Value(&entry);
            let sep = unless_missing(rig.domain.scalable_endpoint(info, 0))?;
            for context in [sep.tx_context(0, None, 0), sep.rx_context(0, None, 0)] {
                if large {
                    expect_os(context.map(drop), Errno::DQUOT)?;
                } else {
                    context?;
                }
            }
        }
        Ok(())
    })
}

/// An authorization key has ports of its own, which count, and so do the contexts of a scalable endpoint
/// for which nobody has said how many there are to be.
pub(super) fn keys_count(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.with_device(c"max_memory=1048576", || {
        let rig = Rig::new(env)?;
        let opened = |contexts: u64, keys: bool| -> Result<usize, Stop> {
            let mut entry = rig.info.entries()[0].clone();
            entry.ep_attr.tx_ctx_cnt = contexts;
            entry.ep_attr.rx_ctx_cnt = contexts;
            let mut number = 0u32;
            let endpoints = fill(1000, || {
                number += 1;
                if keys {
                    entry.ep_attr.auth_key = kfi::Bytes(number.to_ne_bytes().to_vec());
                }
                rig.domain.scalable_endpoint(kfi::EpInfo::Value(&entry), 0)
            })?;
            Ok(endpoints.len())
        };
        let (few, few_with_keys, unnamed) =
            (opened(1, false)?, opened(1, true)?, opened(0, false)?);
        env.note(format!(
            "{few} of one context, {few_with_keys} with keys, {unnamed} of any number, in 1 MiB"
        ));
        check!(few_with_keys < few / 2, "keys do not count");
        check!(unnamed < few / 4, "contexts do not count");
        rig.close()
    })
}

/// An object counts with its parts: an endpoint with those of its directions, however few operations it
/// takes, and a domain with an authorization key with its ports.
pub(super) fn parts_count(env: &Env) -> Outcome {
    const MEMORY: usize = 1 << 20;
    // An operation of each direction, and about as much as the parts for these take.
    const ENDPOINT: usize = 1088 + 1152 + 2 * 1536;
    const PORTS: usize = 130 << 10;
    limited(env, c"max_memory=1048576", |rig| {
        let mut entry = rig.info.entries()[0].clone();
        (entry.tx_attr.size, entry.rx_attr.size) = (1, 1);
        let endpoints = fill(1_000, || rig.domain.endpoint(kfi::EpInfo::Value(&entry), 0))?;
        let count = endpoints.len();
        drop(endpoints);
        check!(
            count > 10 && count * ENDPOINT <= MEMORY,
            "{count} endpoints in 1 MiB"
        );

        let mut hints = rig.info.entries()[0].clone();
        hints.domain_attr.auth_key = kfi::Bytes(b"key".to_vec());
        let keyed = rig.session.getinfo(&kfi::Query::new().hints(hints))?;
        let domains = |info: &kfi::InfoList| -> Result<usize, Stop> {
            Ok(fill(100, || rig.fabric.domain(info, 0))?.len())
        };
        let (plain, with_key) = (domains(&rig.info)?, domains(&keyed)?);
        env.note(format!(
            "{count} endpoints, {plain} domains, {with_key} with a key, in 1 MiB"
        ));
        check!(
            with_key > 0 && with_key * PORTS <= MEMORY,
            "{with_key} domains with a key"
        );
        check!(2 * plain > 3 * with_key, "{plain} domains without");
        drop(keyed);
        Ok(())
    })
}

/// Counts the threads that come to the rescue of work queues of the provider.
fn rescuers() -> Result<usize, Stop> {
    let mut count = 0;
    for process in fs::read_dir("/proc")? {
        // None if it is no process, or has ended since.
        let name = fs::read_to_string(process?.path().join("comm")).unwrap_or_default();
        count += usize::from(name.starts_with("kworker/R-kfi_soft"));
    }
    Ok(count)
}

/// Domains and fabrics, which have threads of the kernel, are limited by themselves, and count for as
/// many threads as they have.
pub(super) fn domains_are_limited(env: &Env) -> Outcome {
    const MEMORY: usize = 1 << 20;
    // A thread with its stack, and a work queue.
    const THREAD: usize = 64 << 10;
    let mut threads = 0;
    limited(env, c"max_user_domains=8", |rig| {
        let before = rescuers()?;
        let mut domains = Vec::new();
        let full = loop {
            match rig.fabric.domain(&rig.info, 0) {
                Ok(domain) => domains.push(domain),
                Err(error) => break error,
            }
            check!(domains.len() < 20, "more than 8 threads");
        };
        check_eq!(full, Error::Os(Errno::MFILE));
        // A fabric and a domain are there, too.
        check_eq!(domains.len(), 8 - 2);
        check_eq!(rig.info.fabric(0).err(), Some(Error::Os(Errno::MFILE)));
        // Of all sessions.
        let second = Session::open()?;
        let info = second.getinfo(&query(env))?;
        check_eq!(info.fabric(0).err(), Some(Error::Os(Errno::MFILE)));
        drop((info, second));
        // With an endpoint a domain has all that it ever has.
        let mut ends = Vec::new();
        for domain in &domains {
            let mut end = End::open(domain, EpInfo::Entry(&rig.info, 0), &Setup::default())?;
            end.enable()?;
            ends.push(end);
        }
        threads = rescuers()?.saturating_sub(before).div_ceil(domains.len());
        env.note(format!("{threads} threads of a domain"));
        drop(ends);
        domains.pop();
        drop(rig.info.fabric(0)?);
        drop(domains);
        Ok(())
    })?;
    limited(env, c"max_memory=1048576", |rig| {
        // The domain of the rig is one, too.
        let domains = 1 + fill(100, || rig.fabric.domain(&rig.info, 0))?.len();
        check!(
            domains * threads * THREAD <= MEMORY,
            "{domains} domains with {threads} threads each in 1 MiB"
        );
        Ok(())
    })
}

/// A vector counts with what it takes for its first address.
pub(super) fn vectors_count(env: &Env) -> Outcome {
    const MEMORY: usize = 1 << 20;
    const EACH: usize = 12 << 10;
    Modules::new(env)?.with_device(c"max_memory=1048576", || {
        let pair = pair_for(env, Caps::MSG, 16, Setup::default())?;
        let mut vectors = Vec::new();
        let full = loop {
            let av = match pair.domain.address_vector(&AvAttr::default()) {
                Ok(av) => av,
                Err(error) => break error,
            };
            match av.insert(&pair.b.name) {
                Ok(_) => vectors.push(av),
                Err(error) => break error,
            }
            check!(
                vectors.len() * EACH <= MEMORY,
                "{} vectors with an address",
                vectors.len()
            );
        };
        check_eq!(full, Error::Os(Errno::DQUOT));
        check!(vectors.len() > 30, "{} vectors", vectors.len());
        drop(vectors);
        pair.close()
    })
}

/// All descriptors that listen to a wait queue are told of a change in one go, so there are only so many;
/// those who wait for one of them are as many as they like.
pub(super) fn descriptors_of_one(env: &Env) -> Outcome {
    const MOST: usize = 64;
    const POLLERS: usize = 100;
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let mut fds = Vec::new();
    for _ in 0..MOST {
        fds.push(counter.wait_fd()?);
    }
    expect_os(counter.wait_fd(), Errno::MFILE)?;
    // Another one has its own.
    let other = rig.counter()?;
    drop(other.wait_fd()?);
    // One that is closed makes room.
    fds.pop();
    fds.push(counter.wait_fd()?);
    expect_os(counter.wait_fd(), Errno::MFILE)?;

    let mut pollers = Vec::new();
    for _ in 0..POLLERS {
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(1);
        epoll::add(&poller, &fds[0], data, epoll::EventFlags::IN)?;
        pollers.push(poller);
    }
    counter.add(1)?;
    for poller in &pollers {
        let mut events = [MaybeUninit::uninit(); 1];
        let timeout = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        let (events, _) = epoll::wait(poller, &mut events, Some(&timeout))?;
        check_eq!(events.len(), 1, "one of many who wait is not woken");
    }
    drop((fds, pollers, other));
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Endpoints have addresses, of which there are only so many.
pub(super) fn endpoints_are_limited(env: &Env) -> Outcome {
    limited(env, c"max_user_endpoints=5", |rig| {
        let one = || rig.domain.endpoint(EpInfo::Entry(&rig.info, 0), 0);
        for _ in 0..2 {
            let mut endpoints = Vec::new();
            for _ in 0..5 {
                endpoints.push(one()?);
            }
            expect_os(one(), Errno::MFILE)?;
            // Of all sessions.
            let second = Rig::new(env)?;
            let refused = second.domain.endpoint(EpInfo::Entry(&second.info, 0), 0);
            expect_os(refused, Errno::MFILE)?;
            second.close()?;
            endpoints.pop();
            drop(one()?);
        }
        Ok(())
    })
}
