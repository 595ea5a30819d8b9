// SPDX-License-Identifier: GPL-2.0

//! Requests that take long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kfi::{
    bits, uapi, AvAttr, BufferKind, Caps, CqAttr, Endpoint, EpInfo, Error, Form, KfiErrno, Kind,
    MrAttr, OpType, Operation, Work,
};
use kfi_host::process::{self, Status};
use kfi_host::signal;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::ends::{done, expect, Area, Pair, Setup};
use crate::env::Env;
use crate::rig::Rig;
use crate::{check_eq, raw};

/// Repeats a request while signals are sent, until one of them ends it.
fn until_interrupted(
    env: &Env,
    what: &str,
    mut request: impl FnMut() -> Result<bool, Stop>,
) -> Outcome {
    const MOST: usize = 20_000;
    let stop = AtomicBool::new(false);
    let tid = rustix::thread::gettid();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = signal::send_to_thread(tid, Signal::USR1);
                thread::yield_now();
            }
        });
        let mut outcome = Err(Stop::fail(format!("no signal ends {what}")));
        for round in 0..MOST {
            match request() {
                Ok(false) => {}
                Ok(true) => {
                    env.note(format!("{what}: ended in round {round}"));
                    outcome = Ok(());
                    break;
                }
                Err(stop) => {
                    outcome = Err(stop);
                    break;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Works of an endpoint that is closed are released.
fn release_all(rig: &Rig, works: Vec<kfi::WorkId>) -> Outcome {
    rig.domain.flush_work(None)?;
    for id in works {
        rig.session.release_work(id)?;
    }
    Ok(())
}

/// A request that takes long because much was asked for is ended by a signal.
pub(super) fn long_requests(env: &Env) -> Outcome {
    signal::count(Signal::USR1, false)?;
    let setup = Setup {
        cq_size: 1000,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG | Caps::SEND | Caps::RECV, &setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let counter = pair.rig.counter()?;
    let interrupted = |result: kfi::Result<()>| match result {
        Err(Error::Fabric(KfiErrno::EINTR) | Error::Os(Errno::INTR)) => Ok(true),
        Err(error) => Err(Stop::from(error)),
        Ok(()) => Ok(false),
    };

    // Works that are looked at by each flush, as their endpoint is open.
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.segment(0..64))
        .flags(bits::COMPLETION)
        .context(9);
    let ready = pair.rig.counter()?;
    let work = Work::transfer(OpType::RECV, pair.a.ep.handle(), &receive, &ready, 0);
    let works = (0..env.scaled(4_000, 1_000))
        .map(|_| pair.domain.queue_work(&work))
        .collect::<Result<Vec<_>, _>>()?;
    until_interrupted(env, "a flush", || interrupted(pair.domain.flush_work(None)))?;
    pair.domain.flush_work(None)?;

    // Receives of one number that have ended, but nobody has read that.
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.segment(0..64))
        .flags(bits::TRIGGER | bits::COMPLETION)
        .context(5);
    for _ in 0..500 {
        pair.a.post(&receive.clone().trigger(&counter, 1_000_000))?;
    }
    let mut there = 500;
    while there > 0 {
        if !interrupted(pair.a.ep.cancel(5))? {
            there -= 1;
        }
    }
    until_interrupted(env, "a cancel by number", || match pair.a.ep.cancel(5) {
        Err(Error::Fabric(KfiErrno::ENOENT)) => Ok(false),
        result => interrupted(result),
    })?;

    // Segments.
    let at = uapi::kfi_shim_segment {
        buffer: buffer.handle(),
        ..FromZeros::new_zeroed()
    };
    let list = vec![at; uapi::KFI_SHIM_SEGMENTS_MAX as usize];
    let operation = uapi::kfi_shim_op {
        ep: pair.a.ep.handle(),
        kind: uapi::KFI_SHIM_OP_SEND,
        form: uapi::KFI_SHIM_FORM_MSG,
        segments: list.as_ptr().addr() as u64,
        segment_count: uapi::KFI_SHIM_SEGMENTS_MAX,
        ..FromZeros::new_zeroed()
    };
    until_interrupted(env, "a list of segments", || {
        let mut operation = operation;
        match raw::bytes(
            &pair.session,
            uapi::KFI_REQUEST_POST,
            operation.as_mut_bytes(),
        ) {
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(Stop::fail(format!("{error} for the list"))),
            Ok(()) => Ok(false),
        }
    })?;
    drop((list, buffer));
    let Pair { a, b, far, rig } = pair;
    drop((a, b));
    release_all(&rig, works)?;
    drop((counter, ready));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Writes of a GiB by more endpoints than items of a work queue run at once, but where all is slow by as
/// many as there are after some seconds.
fn copy_much(env: &Env) -> Result<(Rig, Vec<Endpoint>), Stop> {
    const ENDPOINTS: usize = 1_100;
    const PIECES: usize = 256;
    const PIECE: u64 = 4 << 20;
    let end = Instant::now() + Duration::from_secs(20);
    let rig = Rig::new(env)?;
    let mut info = rig.info.entries()[0].clone();
    (info.tx_attr.size, info.rx_attr.size) = (4, 4);
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let memory = rig.session.buffer(BufferKind::VMALLOC, PIECE)?;
    let attr = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, 1);
    let region = rig.domain.register(&[memory.all()], &attr)?;
    let mut endpoints = Vec::new();
    while endpoints.len() < ENDPOINTS && Instant::now() < end {
        let ep = rig.domain.endpoint(EpInfo::Value(&info), 0)?;
        ep.bind(av.handle(), 0)?;
        ep.bind(cq.handle(), bits::TRANSMIT | bits::RECV)?;
        ep.enable()?;
        endpoints.push(ep);
    }
    let target = endpoints.first().ok_or_else(|| Stop::fail("no endpoint"))?;
    let mut write = Operation::new(Kind::WRITE, Form::MSG)
        .segments(&vec![memory.all(); PIECES])
        .to(av.insert(&target.name()?)?);
    for _ in 0..PIECES {
        write = write.rma(0, PIECE, region.key()?);
    }
    for ep in &endpoints {
        ep.post(&write)?;
        if Instant::now() > end + Duration::from_secs(20) {
            break;
        }
    }
    std::mem::forget((av, cq, memory, region));
    Ok((rig, endpoints))
}

/// Copies that one session leaves to the work queue keep no other session waiting.
pub(super) fn copies(env: &Env) -> Outcome {
    const ROUNDS: u64 = 50;
    let (reader, writer) = rustix::pipe::pipe()?;
    let mut child = process::fork(move || {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        match copy_much(env) {
            Ok(_much) => {
                let _ = rustix::io::write(&writer, b"y");
                loop {
                    thread::park();
                }
            }
            Err(stop) => {
                let _ = rustix::io::write(&writer, format!("{stop:?}").as_bytes());
                1
            }
        }
    })?;
    let mut text = [0; 200];
    let count = rustix::io::read(&reader, &mut text)?;
    let text = String::from_utf8_lossy(&text[..count]);
    check_eq!(text, "y", "what the child could post");
    // From domain to domain, so that each goes by a work queue.
    let pair = Pair::new(env, Caps::MSG)?;
    let memory = Area::plain(&pair.session, 100)?;
    for round in 0..ROUNDS {
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            to.recv(memory.all(), round)?;
            from.send(memory.all(), round)?;
            expect(&to.rx, round, done::RECV_, 100)?;
            expect(&from.tx, round, done::SEND_, 100)?;
        }
    }
    drop(memory);
    pair.close()?;
    child.kill(Signal::KILL)?;
    check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    Ok(())
}
