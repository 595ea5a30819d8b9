// SPDX-License-Identifier: GPL-2.0

//! Every allocation of every request fails once: the first one, then the second, and so on until
//! the request has none left. A request that fails says that there is no memory and has changed
//! nothing: the same request, with the same objects, succeeds in the end, and everything closes.

use std::fs;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kfi::uapi::request;
use kfi::{
    bits, uapi, AvAttr, AvType, BufferKind, Caps, CntrAttr, CqAttr, CqFormat, EpInfo, EqAttr,
    Error, Form, Handle, InfoEntry, KfiErrno, Kind, MrAttr, Operation, Query, Session, WaitObj,
    WaitSetAttr, Work,
};
use kfi_host::memory::Hole;
use kfi_host::process::{self, Status};
use kfi_host::thread;
use rustix::event::epoll;
use rustix::io::Errno;
use zerocopy::FromZeros;

use crate::check::{Outcome, Stop};
use crate::ends::{complete, expect_context, needs, quiet, Area, Net, Pair, Setup, FORMS};
use crate::env::Env;
use crate::exchange::{memory, Exchange, KINDS};
use crate::failing::{
    Answer::{Never, NoMemory, NoMemoryYet, TryAgain},
    Failing, Whose,
};
use crate::fuzz::execute::Memory;
use crate::rig::{expect_os, query, Rig};
use crate::tests::{fuzz, module, soak};
use crate::{check, check_eq, tests};

tests! {
    "failslab";
    "answers" ["kfi_shim.h kfabric.h"] answers;
    "objects" ["kfi_shim.h R-CLOSE-1"] objects;
    "endpoints" ["kfi_endpoint.h"] endpoints;
    "addresses" ["kfi_domain.h"] addresses;
    "regions" ["kfi_domain.h"] regions;
    "buffers" ["kfi_shim.h"] buffers;
    "mapping-taken-back" ["kfi_shim.h"] mapping_taken_back;
    "pages" ["kfi_shim.h kfi_domain.h kfi_endpoint.h"] pages;
    "waiting" ["R-WAIT-1 R-POLL-1 R-TRYWAIT-1"] waiting;
    "posts" ["kfi_endpoint.h kfi_tagged.h kfi_rma.h kfi_atomic.h"] posts;
    "triggered" ["R-TRIG-27"] triggered;
    "deferred" ["R-TRIG-27 R-DWQ-1"] deferred;
    "closing" ["R-CLOSE-1"] closing;
    "end-of-a-process" ["R-CLOSE-8"] end_of_a_process;
    "traffic" ["R-TRIG-27"] traffic;
    "random-requests" ["kfi_shim.h R-TRIG-27"] random_requests;
}

/// Tells how much there was.
fn tell(env: &Env, failing: &Failing) -> Outcome {
    let (calls, failed) = (failing.calls, failing.failed);
    env.note(format!("{failed} failures injected, in {calls} requests"));
    check!(failed > 0, "no allocation has failed");
    Ok(())
}

/// Dropping closes it.
#[allow(clippy::unnecessary_wraps)] // Other uses of an answer may fail.
fn gone<T>(object: T) -> Outcome {
    drop(object);
    Ok(())
}

/// An answer that has nothing to do with memory is as good as success.
fn or<T: Default>(result: kfi::Result<T>, errno: KfiErrno) -> kfi::Result<T> {
    match result {
        Err(Error::Fabric(is)) if is == errno => Ok(T::default()),
        other => other,
    }
}

fn answers(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    failing.each("open", NoMemory, Session::open, gone)?;
    let session = Session::open()?;
    let list = session.getinfo(&query(env))?;
    let name = list.entries()[0].domain_attr.name.clone();
    let node = std::ffi::CString::new(name.clone())?;
    for (what, query) in [
        ("getinfo", query(env)),
        ("getinfo of a node", query(env).node(node)),
        (
            "getinfo with hints",
            query(env).domain(&name).caps(Caps::MSG),
        ),
        (
            "getinfo with all hints",
            Query::new().hints(list.entries()[0].clone()),
        ),
    ] {
        failing.each(
            what,
            NoMemory,
            || session.getinfo(&query),
            |answer| {
                check!(!answer.entries().is_empty(), "no entry");
                Ok(())
            },
        )?;
    }
    failing.each("text of info", NoMemory, || list.text(0), gone)?;
    for kind in 0..20 {
        // Not every number is a type.
        if session.tostr(kind, 1).is_ok() {
            failing.each("tostr", NoMemory, || session.tostr(kind, 1), gone)?;
        }
    }
    tell(env, &failing)?;
    drop(failing);
    list.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn objects(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let rig = Rig::new(env)?;
    let (domain, fabric) = (&rig.domain, &rig.fabric);
    failing.each("fabric", NoMemory, || rig.info.fabric(0), gone)?;
    failing.each("domain", NoMemory, || fabric.domain(&rig.info, 0), gone)?;
    let set = fabric.wait_set(&WaitSetAttr::new().wait_obj(WaitObj::QUEUE))?;
    for wait_obj in [WaitObj::NONE, WaitObj::UNSPEC, WaitObj::QUEUE, WaitObj::SET] {
        let what = format!("{wait_obj}");
        let attr = CntrAttr::new().wait_obj(wait_obj).wait_set(set.handle());
        failing.each(
            &format!("counter {what}"),
            NoMemory,
            || domain.counter(&attr),
            gone,
        )?;
        for format in [CqFormat::CONTEXT, CqFormat::TAGGED] {
            let attr = CqAttr::new().format(format).wait_obj(wait_obj);
            let attr = attr.wait_set(set.handle());
            let open = || domain.completion_queue(&attr);
            failing.each(&format!("completion queue {what}"), NoMemory, open, gone)?;
        }
        let attr = EqAttr::new().wait_obj(wait_obj).wait_set(set.handle());
        failing.each(
            &format!("event queue {what}"),
            NoMemory,
            || fabric.event_queue(&attr),
            gone,
        )?;
    }
    let attr = CqAttr::new().handler();
    failing.each(
        "queue with handler",
        NoMemory,
        || domain.completion_queue(&attr),
        gone,
    )?;
    let attr = EqAttr::new().handler();
    failing.each(
        "events with handler",
        NoMemory,
        || fabric.event_queue(&attr),
        gone,
    )?;
    let attr = WaitSetAttr::new().wait_obj(WaitObj::QUEUE);
    failing.each("wait set", NoMemory, || fabric.wait_set(&attr), gone)?;
    failing.each("poll set", NoMemory, || domain.poll_set(), gone)?;
    tell(env, &failing)?;
    drop((failing, set));
    rig.close()
}

/// With two transmit and two receive contexts.
fn scalable(entry: &InfoEntry) -> InfoEntry {
    let mut entry = entry.clone();
    entry.ep_attr.tx_ctx_cnt = 2;
    entry.ep_attr.rx_ctx_cnt = 2;
    entry
}

fn endpoints(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let rig = Rig::new(env)?;
    needs(&rig.info.entries()[0], Caps::MSG)?;
    let domain = &rig.domain;
    let av = domain.address_vector(&AvAttr::default())?;
    let cq = domain.completion_queue(&CqAttr::new())?;
    let counter = rig.counter()?;
    let open = || domain.endpoint(EpInfo::Entry(&rig.info, 0), 0);
    failing.each("endpoint", NoMemory, open, gone)?;
    let entry = scalable(&rig.info.entries()[0]);
    let value = || domain.endpoint(EpInfo::Value(&rig.info.entries()[0]), 0);
    failing.each("endpoint of attributes", NoMemory, value, gone)?;
    let sep = || domain.scalable_endpoint(EpInfo::Value(&entry), 0);
    failing.each("scalable endpoint", NoMemory, sep, gone)?;
    let sep = sep()?;
    failing.each(
        "transmit context",
        NoMemory,
        || sep.tx_context(0, None, 0),
        gone,
    )?;
    failing.each(
        "receive context",
        NoMemory,
        || sep.rx_context(1, None, 0),
        gone,
    )?;
    failing.each(
        "shared receive context",
        NoMemory,
        || domain.srx_context(None, 0),
        gone,
    )?;
    failing.each(
        "shared transmit context",
        NoMemory,
        || domain.stx_context(None, 0),
        gone,
    )?;
    drop(sep);
    let both = bits::TRANSMIT | bits::RECV;
    let make = || -> Result<_, Stop> { Ok(open()?) };
    let done = |ep, ()| gone(ep);
    failing.each_of(
        "bind a vector",
        NoMemory,
        make,
        |ep| ep.bind(av.handle(), 0),
        done,
    )?;
    failing.each_of(
        "bind a queue",
        NoMemory,
        make,
        |ep| ep.bind(cq.handle(), both),
        done,
    )?;
    let bind = |ep: &kfi::Endpoint| ep.bind(counter.handle(), bits::SEND | bits::RECV);
    failing.each_of("bind a counter", NoMemory, make, bind, done)?;
    let bound = || -> Result<_, Stop> {
        let ep = open()?;
        ep.bind(av.handle(), 0)?;
        ep.bind(cq.handle(), both)?;
        Ok(ep)
    };
    failing.each_of("enable", NoMemory, bound, kfi::Endpoint::enable, done)?;
    let stx = domain.stx_context(None, 0)?;
    let srx = domain.srx_context(None, 0)?;
    for shared in [&stx, &srx] {
        let bind = |ep: &kfi::Endpoint| ep.bind(shared.handle(), 0);
        failing.each_of("bind a shared context", NoMemory, make, bind, done)?;
    }
    drop((stx, srx));
    let ep = bound()?;
    ep.enable()?;
    failing.each("alias", NoMemory, || ep.alias(bits::TRANSMIT), gone)?;
    failing.each("name", NoMemory, || ep.name(), gone)?;
    let level = uapi::KFI_OPT_ENDPOINT as i32;
    let option = uapi::KFI_OPT_MIN_MULTI_RECV as i32;
    failing.each("getopt", NoMemory, || ep.option(level, option, 8), gone)?;
    let value = 64_u64.to_ne_bytes();
    failing.each(
        "setopt",
        NoMemory,
        || ep.set_option(level, option, &value),
        gone,
    )?;
    for direction in [bits::TRANSMIT, bits::RECV] {
        let flags = || ep.ops_flags_of(direction);
        failing.each("flags", NoMemory, flags, gone)?;
        let set = || ep.set_ops_flags(direction | bits::COMPLETION);
        failing.each("other flags", NoMemory, set, gone)?;
    }
    let valid = || ep.atomic_valid(Kind::ATOMIC, uapi::KFI_UINT64, uapi::KFI_SUM);
    failing.each("atomicvalid", NoMemory, valid, gone)?;
    let ask = || domain.query_atomic(uapi::KFI_UINT64, uapi::KFI_SUM, 0);
    failing.each("query_atomic", NoMemory, ask, gone)?;
    // Nothing is there to be cancelled, and the answer is its own.
    let none = KfiErrno::ENOENT;
    failing.each("cancel", NoMemory, || or(ep.cancel(5), none), gone)?;
    tell(env, &failing)?;
    drop((failing, ep, counter, cq, av));
    rig.close()
}

/// Whether tables that grow by powers of two may have to, with so many entries.
fn at_an_edge(count: u64) -> bool {
    matches!(count % 64, 0 | 1 | 62 | 63)
}

fn addresses(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let rig = Rig::new(env)?;
    needs(&rig.info.entries()[0], Caps::MSG)?;
    let domain = &rig.domain;
    let node = std::ffi::CString::new(rig.info.entries()[0].domain_attr.name.clone())?;
    for av_type in [AvType::MAP, AvType::TABLE] {
        let attr = AvAttr {
            av_type,
            ..AvAttr::default()
        };
        failing.each(
            "address vector",
            NoMemory,
            || domain.address_vector(&attr),
            gone,
        )?;
        let av = domain.address_vector(&attr)?;
        let name = {
            let inserted = av.insert_service(&node, c"77", 0)?;
            av.lookup(inserted.addrs[0], 64)?.0
        };
        // Each round lets the vector grow by one, so that it needs memory now and then.
        let remove = |inserted: kfi::Inserted| -> Outcome {
            let told = inserted.addrs.iter().take(inserted.count);
            let addrs: Vec<u64> = told.copied().filter(|a| *a != u64::MAX).collect();
            if !addrs.is_empty() {
                av.remove(&addrs)?;
            }
            Ok(())
        };
        let some = name.repeat(5);
        for errors in [0, bits::SYNC_ERR] {
            let insert = || av.insert_all(&some, 5, errors, 0);
            failing.each("insert", NoMemory, insert, remove)?;
        }
        failing.each(
            "insertsvc",
            NoMemory,
            || av.insert_service(&node, c"7", 0),
            remove,
        )?;
        let symmetric = || av.insert_symmetric(&node, 1, c"100", 4, 0);
        failing.each("insertsym", NoMemory, symmetric, remove)?;
        let own = av.insert(&name)?;
        failing.each(
            "lookup",
            NoMemory,
            || av.lookup(own, 64),
            |found| {
                check!(found.0 == name, "another address");
                Ok(())
            },
        )?;
        failing.each("straddr", NoMemory, || av.straddr(&name, 64), gone)?;
        let insert = || -> Result<u64, Stop> { Ok(av.insert(&name)?) };
        failing.each_of(
            "remove",
            NoMemory,
            insert,
            |addr| av.remove(&[*addr]),
            |_, ()| Ok(()),
        )?;
        // Many, so that it has to grow.
        let errors = bits::SYNC_ERR;
        for round in 0..600 {
            if !at_an_edge(round) {
                av.insert(&name)?;
                continue;
            }
            let insert = || av.insert_all(&name, 1, errors, 0);
            failing.each("insert one", NoMemory, insert, |inserted| {
                // Without memory for one address, that one is told to be missing.
                let (addr, errno) = (inserted.addrs[0], inserted.errors[0]);
                let missing = (0, u64::MAX, KfiErrno::ENOMEM.number());
                let is = (inserted.count, addr, errno);
                check!(
                    is == missing || is == (1, addr, 0) && addr != u64::MAX,
                    "{is:?}"
                );
                Ok(())
            })?;
        }
        av.close().map_err(|(_, error)| error)?;
    }
    tell(env, &failing)?;
    drop(failing);
    rig.close()
}

fn regions(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let rig = Rig::new(env)?;
    needs(&rig.info.entries()[0], Caps::RMA)?;
    let domain = &rig.domain;
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
    let area = Area::plain(&rig.session, 16_384)?;
    for form in FORMS {
        let attr = MrAttr::new(access, 9).form(form);
        for segments in [vec![area.all()], area.pieces(4096, 3)] {
            // Not every form takes all memory.
            if domain.register(&segments, &attr).is_ok() {
                let register = || domain.register(&segments, &attr);
                failing.each(&format!("register {form}"), NoMemory, register, gone)?;
            }
        }
    }
    let counter = rig.counter()?;
    let attr = MrAttr::new(access, 3);
    let make = || -> Result<_, Stop> { Ok(domain.register(&[area.all()], &attr)?) };
    let region = make()?;
    failing.each("key", NoMemory, || region.key(), gone)?;
    failing.each(
        "raw attributes",
        NoMemory,
        || or(region.raw_attr(), KfiErrno::ENOSYS),
        gone,
    )?;
    let refresh = || or(region.refresh(&[area.all()], 0), KfiErrno::ENOSYS);
    failing.each("refresh", NoMemory, refresh, gone)?;
    drop(region);
    let flags = bits::REMOTE_WRITE;
    let bind = |region: &kfi::MemoryRegion| region.bind(counter.handle(), flags);
    failing.each_of("bind", NoMemory, make, bind, |region, ()| gone(region))?;
    tell(env, &failing)?;
    drop((failing, counter, area));
    rig.close()
}

fn buffers(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let session = Session::open()?;
    for kind in [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES] {
        for size in [100, 40_000] {
            let what = format!("{kind} of {size} bytes");
            failing.each(
                &what,
                NoMemory,
                || session.buffer(kind, size),
                |buffer| {
                    check!(buffer.bytes(0..100).iter().all(|b| *b == 0), "not zeroed");
                    Ok(())
                },
            )?;
        }
        let buffer = session.buffer(kind, 40_000)?;
        let map = || buffer.map_part(0, 8192, true);
        failing.each("map", NoMemory, map, gone)?;
    }
    tell(env, &failing)
}

/// As much as a page of the tables that lead to pages leads to.
const TABLE: usize = 2 << 20;
const PAGE: usize = 4096;

/// Another thread's view of a buffer that is mapped.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// It was closed before the attempt to map it had ended.
    meanwhile: bool,
    /// Then there was a byte.
    byte: bool,
}

/// A buffer of two pages that nobody has mapped; its handle and where it is in the device.
fn unmapped(session: &Session) -> Result<(Handle, u64), Stop> {
    let mut buffer = uapi::kfi_shim_buffer {
        kind: uapi::KFI_SHIM_BUFFER_VMALLOC,
        size: 2 * PAGE as u64,
        ..FromZeros::new_zeroed()
    };
    session.ioctl(request::BUFFER, &mut buffer)?;
    Ok((buffer.buffer, buffer.offset))
}

/// A mapping that fails halfway leaves no page to other threads once the buffer may be closed: its pages
/// would be somebody else's.
///
/// Another thread, which interrupts this one, tries to close the buffer all the time, and when it has, reads the
/// page that was mapped. How long it waits before it begins is such that this is about when the buffer is in use.
fn mapping_taken_back(env: &Env) -> Outcome {
    const ROUNDS: u32 = 500;
    let mut failing = Failing::new(Whose::Modules)?;
    let session = Session::open()?;
    // The second page needs a table of its own.
    let hole = Hole::new(4 * TABLE)?;
    let first = hole.start().next_multiple_of(TABLE) - hole.start() + TABLE - PAGE;
    let map = |from| hole.try_map(first, 2 * PAGE, session.as_fd(), from);
    let (_, from) = unmapped(&session)?;
    // The last one that it cannot do without comes behind the first page.
    let mut needed = None;
    for nth in 1.. {
        let attempt = failing.attempt("map", nth, NoMemory, || map(from).map_err(Error::from))?;
        if attempt.value.is_none() {
            needed = Some(nth);
        }
        if attempt.last {
            break;
        }
    }
    let nth = needed.ok_or_else(|| Stop::fail("a mapping needs no table"))?;

    let cpu = thread::cpus()?[0];
    thread::pin(cpu)?;
    let (reader, writer) = rustix::pipe::pipe()?;
    let (starting, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (give, given) = std::sync::mpsc::channel::<(Handle, Duration)>();
    let (tell_seen, seen) = std::sync::mpsc::channel::<Result<Seen, String>>();
    let look = |handle, delay| -> Result<Seen, String> {
        while !starting.load(Ordering::SeqCst) {
            thread::relax();
        }
        std::thread::sleep(delay);
        let mut argument = uapi::kfi_shim_close { handle, result: 0 };
        while let Err(errno) = session.ioctl(request::CLOSE, &mut argument) {
            if errno != Errno::BUSY {
                return Err(format!("close: {errno}"));
            }
            std::thread::sleep(Duration::from_nanos(1));
        }
        let meanwhile = !over.load(Ordering::SeqCst);
        let byte = match hole.send(first, writer.as_fd()) {
            Ok(()) => true,
            Err(Errno::FAULT) => false,
            Err(errno) => return Err(format!("write: {errno}")),
        };
        Ok(Seen { meanwhile, byte })
    };
    let (mut failed, mut meanwhile) = (0, 0);
    std::thread::scope(|scope| -> Outcome {
        scope.spawn(move || {
            let ready = thread::pin(cpu).and_then(|()| thread::run_first());
            while let Ok((handle, delay)) = given.recv() {
                let ready = ready.as_ref().map_err(ToString::to_string);
                let seen = ready.and_then(|()| look(handle, delay));
                if tell_seen.send(seen).is_err() {
                    break;
                }
            }
        });
        // Its end ends the thread.
        let give = give;
        let mut delay = Duration::ZERO;
        for _ in 0..ROUNDS {
            let (handle, from) = unmapped(&session)?;
            starting.store(false, Ordering::SeqCst);
            over.store(false, Ordering::SeqCst);
            give.send((handle, delay))?;
            let mut stayed = false;
            let attempt = failing.attempt("map", nth, NoMemory, || {
                starting.store(true, Ordering::SeqCst);
                let mapped = map(from);
                over.store(true, Ordering::SeqCst);
                stayed = mapped.is_ok();
                match mapped {
                    // It had been closed before.
                    Err(Errno::BADF) => Ok(()),
                    other => Ok(other?),
                }
            });
            // Or else the other thread waits for it.
            starting.store(true, Ordering::SeqCst);
            over.store(true, Ordering::SeqCst);
            let seen = seen.recv()?.map_err(Stop::fail)?;
            let failure = attempt?.value.is_none();
            // Pages that are mapped stay when the buffer is closed.
            check!(stayed || !seen.byte, "a page of a closed buffer is mapped");
            if failure {
                failed += 1;
                meanwhile += u32::from(seen.meanwhile);
                delay = delay.saturating_sub(Duration::from_micros(5));
            } else {
                delay += Duration::from_micros(10);
            }
        }
        Ok(())
    })?;
    drop(reader);
    env.note(format!(
        "{meanwhile} of {failed} buffers closed before the attempt to map them had ended"
    ));
    check!(failed > 0, "no allocation has failed");
    Ok(())
}

/// Requests that take whole pages, with ever more of them.
fn pages(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    failing.pages()?;
    failing.each_with_pages("open", NoMemory, Session::open, gone)?;
    let rig = Rig::new(env)?;
    let entry = &rig.info.entries()[0];
    needs(entry, Caps::MSG | Caps::RMA)?;
    let (session, domain, fabric) = (&rig.session, &rig.domain, &rig.fabric);
    failing.each_with_pages("getinfo", NoMemory, || session.getinfo(&query(env)), gone)?;
    failing.each_with_pages("fabric", NoMemory, || rig.info.fabric(0), gone)?;
    failing.each_with_pages("domain", NoMemory, || fabric.domain(&rig.info, 0), gone)?;

    // Queues, from those that are part of a page to those that no kmalloc gives.
    for size in [16, 1 << 10, 1 << 16] {
        let attr = CqAttr::new().format(CqFormat::TAGGED).size(size);
        let what = format!("completion queue of {size}");
        failing.each_with_pages(&what, NoMemory, || domain.completion_queue(&attr), gone)?;
        let attr = EqAttr::new().size(size.min(1 << 14));
        let what = format!("event queue of {size}");
        failing.each_with_pages(&what, NoMemory, || fabric.event_queue(&attr), gone)?;
        let attr = AvAttr {
            count: size,
            ..AvAttr::default()
        };
        let what = format!("address vector of {size}");
        failing.each_with_pages(&what, NoMemory, || domain.address_vector(&attr), gone)?;
    }
    let mut deep = entry.clone();
    deep.tx_attr.size = 1 << 14;
    deep.rx_attr.size = 1 << 14;
    let open = || domain.endpoint(EpInfo::Value(&deep), 0);
    failing.each_with_pages("deep endpoint", NoMemory, open, gone)?;
    let av = domain.address_vector(&AvAttr::default())?;
    let cq = domain.completion_queue(&CqAttr::new().size(1 << 15))?;
    let bound = || -> kfi::Result<_> {
        let ep = open()?;
        ep.bind(av.handle(), 0)?;
        ep.bind(cq.handle(), bits::TRANSMIT | bits::RECV)?;
        ep.enable()?;
        Ok(ep)
    };
    failing.each_with_pages("enable a deep endpoint", NoMemory, bound, gone)?;
    let ep = bound()?;
    failing.each_with_pages(
        "insert many",
        NoMemory,
        || av.insert_all(&ep.name()?.repeat(2000), 2000, 0, 0),
        |inserted| {
            let there = |addr: &u64| *addr != u64::MAX;
            let addrs: Vec<_> = inserted.addrs.into_iter().filter(there).collect();
            check_eq!(addrs.len(), inserted.count);
            Ok(av.remove(&addrs)?)
        },
    )?;

    // Buffers, their mappings, and regions of them.
    for kind in [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES] {
        for size in [4096, 40_000, 1 << 20] {
            let what = format!("{kind} of {size} bytes");
            let zeroed = |buffer: kfi::Buffer| -> Outcome {
                let all = buffer.bytes(0..buffer.size() as usize);
                check!(all.iter().all(|byte| *byte == 0), "not zeroed");
                Ok(())
            };
            failing.each_with_pages(&what, NoMemory, || session.buffer(kind, size), zeroed)?;
        }
        let buffer = session.buffer(kind, 1 << 20)?;
        let what = format!("map {kind}");
        let map = || buffer.map_part(0, 1 << 20, true);
        failing.each_with_pages(&what, NoMemory, map, gone)?;
        let pieces: Vec<_> = (0..200)
            .map(|piece| buffer.segment(piece * 4096..piece * 4096 + 100))
            .collect();
        // Whole pages have no address.
        let form = match kind {
            BufferKind::PAGES => Form::MSG_BV,
            _ => Form::MSG,
        };
        let attr = MrAttr::new(bits::REMOTE_READ, 9).form(form);
        let register = || domain.register(&pieces, &attr);
        failing.each_with_pages("register 200 pieces", NoMemory, register, gone)?;
    }

    // Many works, and room for as many completions.
    let counter = rig.counter()?;
    let works: Vec<_> = (0..1000)
        .map(|threshold| Work::add(&counter, 1, &counter, 1 << 40 | threshold))
        .collect();
    let queue = || domain.queue_work_batch(&works, true);
    failing.each_with_pages("batch of works", NoMemory, queue, |done| {
        for (id, result) in done {
            if result == 0 {
                domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
            }
        }
        Ok(())
    })?;
    for room in [1, uapi::KFI_SHIM_CQ_READ_MAX as usize] {
        let none = KfiErrno::EAGAIN;
        let read = || or(cq.read(room), none);
        failing.each_with_pages("read a queue", NoMemory, read, gone)?;
    }
    failing.each_with_pages("add", Never, || counter.add(1), gone)?;
    tell(env, &failing)?;
    drop((failing, ep, cq, av, counter));
    rig.close()
}

fn waiting(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let rig = Rig::new(env)?;
    let (domain, fabric) = (&rig.domain, &rig.fabric);
    let counter = rig.counter()?;
    let timeout = KfiErrno::ETIMEDOUT;
    for value in [0, 1] {
        counter.set(value)?;
        failing.each(
            "wait",
            NoMemory,
            || or(counter.wait_ms(2, value as i32), timeout),
            gone,
        )?;
    }
    failing.each("add", Never, || counter.add(1), gone)?;
    failing.each("read", Never, || counter.read(), gone)?;

    let set = fabric.wait_set(&WaitSetAttr::new().wait_obj(WaitObj::QUEUE))?;
    let member = domain.counter(
        &CntrAttr::new()
            .wait_obj(WaitObj::SET)
            .wait_set(set.handle()),
    )?;
    failing.each(
        "wait of a set",
        NoMemory,
        || or(set.wait_ms(1), timeout),
        gone,
    )?;
    failing.each("member's add", Never, || member.add(1), gone)?;
    failing.each(
        "wait of a set",
        NoMemory,
        || or(set.wait_ms(1), timeout),
        gone,
    )?;

    let again = KfiErrno::EAGAIN;
    let cq = domain.completion_queue(&CqAttr::new().wait_obj(WaitObj::QUEUE))?;
    let eq = fabric.event_queue(&EqAttr::new().wait_obj(WaitObj::QUEUE))?;
    let poll_set = domain.poll_set()?;
    for handle in [counter.handle(), cq.handle()] {
        let make = || -> Result<(), Stop> {
            let _ = poll_set.del_handle(handle, 0);
            Ok(())
        };
        let add = |(): &()| poll_set.add_handle(handle, 0);
        failing.each_of("poll_add", NoMemory, make, add, |(), ()| Ok(()))?;
    }
    for room in [1, 16, 200] {
        failing.each("poll", NoMemory, || poll_set.poll(room), gone)?;
    }
    for handle in [counter.handle(), cq.handle()] {
        let make = || -> Result<(), Stop> { Ok(poll_set.add_handle(handle, 0)?) };
        let del = |(): &()| poll_set.del_handle(handle, 0);
        failing.each_of("poll_del", NoMemory, make, del, |(), ()| Ok(()))?;
    }
    // The last rounds have made them members of nothing.
    let all = [counter.handle(), cq.handle(), eq.handle()];
    failing.each(
        "trywait",
        NoMemory,
        || or(fabric.trywait(&all), again),
        gone,
    )?;
    for _ in 0..2 {
        let read = || or(cq.read(8), again);
        failing.each("read a queue", NoMemory, read, gone)?;
        let read = || or(cq.sread_ms(8, 1).map(|_| ()), timeout);
        failing.each("wait for a queue", NoMemory, || or(read(), again), gone)?;
    }
    // A queue reads itself what it was told.
    let write = || eq.write(uapi::KFI_NOTIFY, &[7; 24]);
    failing.each("write an event", NoMemory, write, |_| {
        check_eq!(eq.sread_ms(64, 1000)?.event, { uapi::KFI_NOTIFY });
        Ok(())
    })?;
    let make = || -> Result<(), Stop> { Ok(eq.write(uapi::KFI_NOTIFY, &[7; 24]).map(|_| ())?) };
    failing.each_of(
        "read an event",
        NoMemory,
        make,
        |()| eq.read(64),
        |(), event| {
            check_eq!(event.event, { uapi::KFI_NOTIFY });
            Ok(())
        },
    )?;

    failing.each("descriptor", NoMemory, || counter.wait_fd_nonblock(), gone)?;
    failing.each(
        "descriptor of a queue",
        NoMemory,
        || cq.wait_fd_nonblock(),
        gone,
    )?;
    let fd = counter.wait_fd_nonblock()?;
    let watch = || -> kfi::Result<_> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(1);
        epoll::add(&epoll, fd.as_fd(), data, epoll::EventFlags::IN)?;
        Ok(epoll)
    };
    failing.each("epoll", NoMemory, watch, gone)?;
    counter.add(1)?;
    failing.each(
        "trywait with a descriptor",
        NoMemory,
        || or(fabric.trywait(&[counter.handle()]), again),
        gone,
    )?;
    counter.add(1)?;
    fd.read()?;
    tell(env, &failing)?;
    drop((failing, fd, poll_set, member, set, cq, eq));
    drop(counter);
    rig.close()
}

/// Runs operations of all kinds in all forms with each of their allocations failing, one after
/// the other.
fn transfers(
    failing: &mut Failing,
    net: &Net,
    len: u64,
    submit: impl Fn(&Exchange<'_>, Form) -> kfi::Result<()>,
) -> Result<u64, Stop> {
    let mut kinds = 0;
    for (kind, _) in KINDS {
        for form in FORMS {
            // Forms that complete without completion are others' business, and so are those that
            // tell the peer.
            if [Form::INJECT, Form::INJECT_DATA, Form::DATA].contains(&form) {
                continue;
            }
            let mut ready: Option<Exchange<'_>> = None;
            let finish = |exchange: Exchange<'_>| -> Outcome {
                exchange.answer()?;
                complete(exchange.queue())?;
                exchange.expect_other()?;
                exchange.expect_done()
            };
            let make = || -> Result<Exchange<'_>, Stop> {
                let exchange = Exchange::new(net, kind, len)?;
                exchange.refresh();
                Ok(exchange)
            };
            // Not everything has every form.
            let exchange = make()?;
            if submit(&exchange, form).is_err() {
                continue;
            }
            finish(exchange)?;
            for nth in 1.. {
                let exchange = match ready.take() {
                    Some(exchange) => exchange,
                    None => make()?,
                };
                let what = format!("{kind} {form}");
                let attempt = failing.attempt(&what, nth, TryAgain, || submit(&exchange, form))?;
                match attempt.value {
                    Some(()) => finish(exchange)?,
                    None => ready = Some(exchange),
                }
                if attempt.last {
                    kinds += 1;
                    break;
                }
            }
        }
    }
    Ok(kinds)
}

fn network(env: &Env, len: u64) -> Result<Net, Stop> {
    Net::new(
        env,
        &Setup {
            memory: memory(len),
            ..Setup::default()
        },
    )
}

fn posts(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let mut kinds = 0;
    for len in [64, 4096] {
        let net = network(env, len)?;
        kinds += transfers(&mut failing, &net, len, |exchange, form| {
            let ep = &net.peers[0].ep;
            ep.post(&exchange.operation(form).context(7))
        })?;
        net.close()?;
    }
    env.note(format!("{kinds} kinds and forms"));
    tell(env, &failing)
}

fn triggered(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let net = network(env, 64)?;
    let counter = net.counter()?;
    let kinds = transfers(&mut failing, &net, 64, |exchange, form| {
        let ep = &net.peers[0].ep;
        let next = counter.read()? + 1;
        let operation = exchange.operation(form).context(7);
        ep.post(&operation.trigger(&counter, next))?;
        // Nobody but the one that was accepted waits for it.
        counter.add(1)
    })?;
    env.note(format!("{kinds} kinds and forms"));
    // Operations that were refused are not pending: all that were accepted have completed.
    counter.set(u64::MAX / 2)?;
    tell(env, &failing)?;
    drop(failing);
    net.close()
}

fn deferred(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let net = network(env, 64)?;
    let (trigger, target) = (net.counter()?, net.counter()?);
    let domain = &net.rig.domain;
    for (_, op_type) in KINDS {
        let (kind, _) = KINDS[KINDS.iter().position(|(_, o)| *o == op_type).unwrap_or(0)];
        let mut ready: Option<Exchange<'_>> = None;
        for nth in 1.. {
            let exchange = match ready.take() {
                Some(exchange) => exchange,
                None => Exchange::new(&net, kind, 64)?,
            };
            exchange.refresh();
            let threshold = trigger.read()? + 1;
            let operation = exchange
                .operation(Form::MSG)
                .context(7)
                .flags(bits::COMPLETION);
            let ep = net.peers[0].ep.handle();
            let work = Work::transfer(op_type, ep, &operation, &trigger, threshold)
                .completion(target.handle());
            let queue = || domain.queue_work(&work);
            let attempt = failing.attempt(&format!("work {kind}"), nth, NoMemoryYet, queue)?;
            if attempt.value.is_some() {
                let done = target.read()?;
                trigger.add(1)?;
                exchange.answer()?;
                expect_context(exchange.queue(), 7)?;
                exchange.expect_other()?;
                exchange.expect_done()?;
                target.wait_ms(done + 1, 20_000)?;
            } else {
                ready = Some(exchange);
            }
            if attempt.last {
                break;
            }
        }
    }
    // Works on counters; enough of them to need more room in the tables.
    for round in 0..300 {
        let far = 1 << 40;
        let add = Work::add(&target, 1, &trigger, far + round);
        if !at_an_edge(round) {
            domain.queue_work(&add)?;
            continue;
        }
        failing.each("work add", NoMemory, || domain.queue_work(&add), gone)?;
    }
    // A call that fails leaves no work behind, not even one whose number nobody knows. Works that there are
    // take room, until one is made for which the provider wants memory.
    let add = Work::add(&target, 1, &trigger, 1 << 40);
    let mut known = vec![domain.queue_work(&add)?];
    let mut unknown = Vec::new();
    for _ in 0..300 {
        for nth in 1.. {
            let queue = || {
                let (id, result) = domain.queue_work_raw(&add)?;
                known.push(id);
                result
            };
            if failing.attempt("work alone", nth, NoMemory, queue)?.last {
                break;
            }
        }
        let (first, last) = (known[0], known[known.len() - 1]);
        unknown = (first..last).filter(|id| !known.contains(id)).collect();
        if !unknown.is_empty() {
            break;
        }
    }
    env.note(format!("{} works could not be queued", unknown.len()));
    check!(
        !unknown.is_empty(),
        "no call has failed that had made a work"
    );
    for id in unknown {
        expect_os(net.rig.session.release_work(id), Errno::BADF)?;
    }
    let set = Work::set(&target, 1, &trigger, 1 << 41);
    let make = || -> Result<(), Stop> { Ok(()) };
    failing.each_of(
        "work set",
        NoMemory,
        make,
        |()| domain.queue_work(&set),
        |(), id| Ok(domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?),
    )?;
    let make = || -> Result<_, Stop> { Ok(domain.queue_work(&set)?) };
    let release = uapi::KFI_SHIM_WORK_RELEASE;
    let cancel = |id: &u64| domain.cancel_work(*id, release);
    failing.each_of("cancel work", Never, make, cancel, |_, ()| Ok(()))?;
    let id = domain.queue_work(&set)?;
    domain.cancel_work(id, 0)?;
    failing.each(
        "queue work again",
        NoMemory,
        || net.rig.session.requeue_work(id),
        |()| Ok(domain.cancel_work(id, 0)?),
    )?;
    let batch = [set.clone(), set.clone(), set.clone()];
    let queue = || domain.queue_work_batch(&batch, true);
    failing.each("batch of works", NoMemory, queue, |done| {
        for (id, result) in done {
            // Works before the one without memory are queued.
            if result == 0 {
                domain.cancel_work(id, release)?;
            }
        }
        Ok(())
    })?;
    failing.each("flush work", Never, || domain.flush_work(None), gone)?;
    check_eq!(trigger.read_err()?, 0);
    tell(env, &failing)?;
    drop(failing);
    net.close()
}

/// Its name, and how to open it.
type Make<'a> = (&'a str, &'a dyn Fn() -> kfi::Result<u32>);

fn closing(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Modules)?;
    let pair = Pair::new(env, Caps::MSG | Caps::RMA)?;
    let (domain, fabric) = (&pair.rig.domain, &pair.rig.fabric);
    let area = Area::plain(&pair.session, 4096)?;
    let session = &pair.session;
    // Closing a completion queue with what nobody has read, and an endpoint with what it has
    // posted.
    let counter = pair.rig.counter()?;
    let receives = || -> Result<_, Stop> {
        let mut end = crate::ends::End::open(
            domain,
            EpInfo::Entry(&pair.rig.info, 0),
            &crate::ends::Setup::default(),
        )?;
        end.enable()?;
        for context in 0..10 {
            end.recv(area.part(0, 8), context)?;
            let receive = Operation::new(Kind::RECV, Form::MSG).segment(area.part(8, 8));
            end.ep
                .post(&receive.trigger(&counter, 1 << 50).context(context))?;
        }
        Ok(end)
    };
    failing.each_of(
        "close an endpoint",
        Never,
        receives,
        |end| session.close_handle(end.ep.handle()),
        |end, ()| gone(end),
    )?;
    let kinds: [Make<'_>; 9] = [
        ("info", &|| Ok(session.getinfo(&query(env))?.into_handle())),
        ("fabric", &|| Ok(pair.rig.info.fabric(0)?.into_handle())),
        ("domain", &|| {
            Ok(fabric.domain(&pair.rig.info, 0)?.into_handle())
        }),
        ("counter", &|| {
            Ok(domain.counter(&CntrAttr::new())?.into_handle())
        }),
        ("completion queue", &|| {
            Ok(domain.completion_queue(&CqAttr::new())?.into_handle())
        }),
        ("event queue", &|| {
            Ok(fabric.event_queue(&EqAttr::new())?.into_handle())
        }),
        ("address vector", &|| {
            Ok(domain.address_vector(&AvAttr::default())?.into_handle())
        }),
        ("region", &|| {
            let attr = MrAttr::new(bits::REMOTE_READ, 4);
            Ok(domain.register(&[area.all()], &attr)?.into_handle())
        }),
        ("poll set", &|| Ok(domain.poll_set()?.into_handle())),
    ];
    for (what, make) in kinds {
        failing.each_of(
            &format!("close {what}"),
            Never,
            || Ok(make()?),
            |handle| session.close_handle(*handle),
            |_, ()| Ok(()),
        )?;
    }
    let (calls, failed) = (failing.calls, failing.failed);
    env.note(format!(
        "{failed} failures injected, in closing {calls} kinds"
    ));
    drop((failing, counter, area));
    pair.close()
}

/// A process that ends closes all that it has, whichever allocation fails then.
fn end_of_a_process(env: &Env) -> Outcome {
    let failing = Failing::new(Whose::Modules)?;
    for nth in 1..=env.scaled(20, 8) {
        let mut child = process::fork(|| {
            let build = || -> Outcome {
                let net = network(env, 64)?;
                let (trigger, target) = (net.counter()?, net.counter()?);
                for threshold in 1..20 {
                    let work = Work::add(&target, 1, &trigger, threshold);
                    net.rig.domain.queue_work(&work)?;
                    let receive = net.receive(0, 0, 64).context(threshold);
                    net.peers[0].ep.post(&receive)?;
                    let later = net.send(0, 1, 0, 64).context(threshold);
                    net.peers[0]
                        .ep
                        .post(&later.trigger(&trigger, 20 + threshold))?;
                }
                std::mem::forget((net, trigger, target));
                // This process' own, not that of the one that it comes from.
                let path = "/proc/thread-self/fail-nth";
                fs::write(path, nth.to_string())?;
                Ok(())
            };
            i32::from(build().is_err())
        })?;
        let status = child.wait()?;
        check_eq!(status, Status::Exited(0), "allocation {nth}");
    }
    drop(failing);
    // All of it is gone.
    let folder = "/sys/kernel/debug/kfi_soft";
    for what in ["domains", "pending"] {
        if let Ok(text) = fs::read_to_string(format!("{folder}/{what}")) {
            env.note(format!("{what}: {} lines", text.lines().count()));
        }
    }
    Rig::new(env)?.close()
}

/// Operations go on while allocations of the provider fail now and then, wherever that is.
fn traffic(env: &Env) -> Outcome {
    let mut failing = Failing::new(Whose::Provider)?;
    // Sockets have many to each of ours, and those of theirs fail that are made on our behalf.
    let percent = if module::is_over_network() { 2 } else { 20 };
    soak::traffic(env, || failing.now_and_then(percent))?;
    drop(failing);
    std::thread::sleep(Duration::from_millis(10));
    let net = network(env, 64)?;
    quiet(&net.peers[0].tx)?;
    net.close()
}

/// Requests of all kinds, sane and not, in any state.
fn random_requests(env: &Env) -> Outcome {
    let failing = Failing::new(Whose::Modules)?;
    let outcome = fuzz::fuzz(env, 1, Memory::Each);
    drop(failing);
    outcome
}
