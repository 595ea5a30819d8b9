// SPDX-License-Identifier: GPL-2.0

//! Random traffic for a while.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kfi::{Caps, CompletionQueue, Error, Form, KfiErrno, Kind, MemoryRegion, Operation};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::pair::{bits, done, Area, End, Pair};
use crate::rig::{in_threads, pin};
use crate::{check, check_eq, tests};

tests! {
    "soak";
    "random-traffic" ["kfi_endpoint.h kfi_tagged.h kfi_rma.h"] random_traffic;
}

/// Operations that each side has under way.
const SLOTS: u64 = 32;
/// Operations that each side does at least.
const ENOUGH: u64 = 200;
/// Bytes for each.
const ROOM: u64 = 128 << 10;

/// What one side does.
struct Side<'a> {
    end: &'a End,
    /// What it sends, writes, and reads into: a slot for each operation.
    local: &'a Area,
    /// What arrives: a slot for each receive.
    inbox: &'a Area,
    /// What the other side lets it read and write, a slot for each operation.
    remote: &'a Area,
    /// Its key.
    key: u64,
    rng: SmallRng,
    /// Operations that were begun.
    begun: u64,
    /// Operations under way: what, how long, seed.
    active: HashMap<u64, (Kind, u64, u64)>,
    counts: HashMap<&'static str, u64>,
}

/// The context of a receive.
const RECEIVE: u64 = 1 << 32;

/// A length: often small, sometimes large.
fn length(rng: &mut SmallRng) -> u64 {
    match rng.random_range(0..10) {
        0 => 0,
        1..5 => rng.random_range(1..256),
        5..8 => rng.random_range(256..8192),
        _ => rng.random_range(8192..=ROOM - 8),
    }
}

impl Side<'_> {
    /// Posts a receive into a slot, for messages with the slot's tag or any message.
    fn receive(&mut self, slot: u64) -> Outcome {
        let segment = self.inbox.part(slot * ROOM, ROOM);
        let context = RECEIVE | slot;
        // Half of them are for tagged messages.
        let operation = if slot % 2 == 0 {
            Operation::new(Kind::RECV, Form::PLAIN)
        } else {
            Operation::new(Kind::TRECV, Form::PLAIN).tag(0, u64::MAX)
        };
        self.end.post(&operation.segment(segment).context(context))
    }

    /// Begins an operation of some kind, if there is room.
    fn begin(&mut self) -> Outcome {
        let slot = self.rng.random_range(0..SLOTS);
        if self.active.contains_key(&slot) {
            return Ok(());
        }
        let kind = [Kind::SEND, Kind::TSEND, Kind::WRITE, Kind::READ][self.rng.random_range(0..4)];
        let len = length(&mut self.rng);
        let seed = self.rng.random_range(0..1 << 40);
        let at = slot * ROOM;
        // The first bytes of a message say how to check the others.
        let bytes = crate::pair::pattern(seed, 0, len as usize);
        if kind == Kind::READ {
            self.remote.write(at, &bytes);
        } else {
            self.local.write(at, &bytes);
        }
        let form = if [Kind::SEND, Kind::TSEND].contains(&kind) {
            Form::DATA
        } else {
            [Form::PLAIN, Form::V, Form::MSG][self.rng.random_range(0..3)]
        };
        let segment = self.local.part(at, len);
        let mut operation = self
            .end
            .operation(kind, form)
            .segment(segment)
            .context(slot);
        operation = match kind {
            Kind::SEND => operation.data(seed),
            Kind::TSEND => operation.data(seed).tag(seed, 0),
            _ => operation.rma(at, len, self.key),
        };
        match self.end.ep.post(&operation) {
            Ok(()) => {
                self.active.insert(slot, (kind, len, seed));
                self.begun += 1;
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                *self.counts.entry("no room").or_default() += 1;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads completions; whether there were any.
    fn progress(&mut self, cq: &CompletionQueue) -> Result<bool, Stop> {
        let entries = match cq.read(8) {
            Ok(entries) => entries,
            Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok(false),
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = cq.read_err()?;
                // On a busy machine the other side may be away for longer than messages wait.
                let message = match self.active.get(&error.entry.op_context) {
                    Some((kind, ..)) => [Kind::SEND, Kind::TSEND].contains(kind),
                    None => false,
                };
                if !message || error.err != KfiErrno::EREMOTEIO.number() {
                    return Err(Stop::fail(format!("{error:?}")));
                }
                self.active.remove(&error.entry.op_context);
                *self.counts.entry("given up").or_default() += 1;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            if entry.op_context & RECEIVE != 0 {
                let slot = entry.op_context & !RECEIVE;
                let should = if slot % 2 == 0 {
                    done::RECV_
                } else {
                    done::TAGGED_RECV
                };
                check_eq!(entry.flags, should | bits::REMOTE_CQ_DATA);
                self.inbox.has(slot * ROOM, entry.len, entry.data, 0)?;
                *self.counts.entry("received").or_default() += 1;
                self.receive(slot)?;
                continue;
            }
            let slot = entry.op_context;
            let Some((kind, len, seed)) = self.active.remove(&slot) else {
                return Err(Stop::fail(format!("{slot} is not under way: {entry:?}")));
            };
            let (name, flags) = match kind {
                Kind::SEND => ("send", done::SEND_),
                Kind::TSEND => ("tagged send", done::TAGGED_SEND),
                Kind::WRITE => ("write", done::RMA_WRITE),
                _ => ("read", done::RMA_READ),
            };
            check_eq!((entry.flags, entry.len), (flags, len), "{name}");
            match kind {
                Kind::WRITE => self.remote.has(slot * ROOM, len, seed, 0)?,
                Kind::READ => self.local.has(slot * ROOM, len, seed, 0)?,
                _ => {}
            }
            *self.counts.entry(name).or_default() += 1;
        }
        Ok(true)
    }
}

fn random_traffic(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::TAGGED | Caps::RMA)?;
    let time = Duration::from_secs_f64(env.settings.soak * env.settings.scale.clamp(0.1, 1.0));
    let area = || Area::plain(&pair.session, SLOTS * ROOM);
    let (inbox, local, exposed) = ([area()?, area()?], [area()?, area()?], [area()?, area()?]);
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
    let attr = kfi::MrAttr::new(access, 1);
    let regions: [MemoryRegion; 2] = [
        pair.rig.domain.register(&[exposed[0].all()], &attr)?,
        pair.far.register(&[exposed[1].all()], &attr)?,
    ];
    let failed = AtomicBool::new(false);
    let finished = std::sync::atomic::AtomicUsize::new(0);
    let start = Instant::now();
    let sides = in_threads([0_usize, 1], |which| {
        pin(which)?;
        let mut side = Side {
            end: [&pair.a, &pair.b][which],
            local: &local[which],
            inbox: &inbox[which],
            remote: &exposed[1 - which],
            key: 1,
            rng: SmallRng::seed_from_u64(env.settings.seed.wrapping_add(which as u64)),
            begun: 0,
            active: HashMap::new(),
            counts: HashMap::new(),
        };
        let mut run = || -> Outcome {
            for slot in 0..SLOTS {
                side.receive(slot)?;
            }
            // The other side needs its answers until it is through, too.
            let mut told = false;
            loop {
                if failed.load(Ordering::Relaxed) {
                    return Err(Stop::fail("the other side has failed"));
                }
                // A side that has hardly had a CPU has some to go.
                let over = start.elapsed() >= time && side.begun >= ENOUGH;
                if over && side.active.is_empty() && !told {
                    told = true;
                    finished.fetch_add(1, Ordering::SeqCst);
                }
                // Asked before the queues are: what both have sent is there by then.
                let both = told && finished.load(Ordering::SeqCst) == 2;
                if !over {
                    side.begin()?;
                }
                let mut idle = true;
                for cq in [&side.end.tx, &side.end.rx] {
                    idle &= !side.progress(cq)?;
                }
                if both && idle {
                    return Ok(());
                }
                if over && idle {
                    kfi_host::thread::relax();
                }
                check!(
                    start.elapsed() < time + Duration::from_secs(60),
                    "{} operations do not end: {:?}",
                    side.active.len(),
                    side.active
                );
            }
        };
        let result = run();
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        result?;
        Ok(side.counts)
    })?;
    let count = |side: usize, name| sides[side].get(name).copied().unwrap_or(0);
    for (side, done) in sides.iter().enumerate() {
        let mut counts: Vec<_> = done.iter().collect();
        counts.sort_unstable();
        env.note(format!("side {side}: {counts:?}"));
        check_eq!(
            count(side, "send") + count(side, "tagged send"),
            count(1 - side, "received"),
            "messages of side {side}"
        );
        check!(count(side, "write") > 0, "side {side} has written nothing");
    }
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((regions, inbox, local, exposed));
    pair.close()
}
