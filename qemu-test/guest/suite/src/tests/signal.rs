// SPDX-License-Identifier: GPL-2.0

//! Counters, poll sets, wait sets and descriptors, driven by what endpoints do.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kfi::{
    bits, Caps, CntrAttr, CompletionQueue, Counter, CqAttr, Error, Form, KfiErrno, Kind, Operation,
    WaitFd, WaitObj, WaitSetAttr,
};
use kfi_host::sys::select;
use rand::RngExt;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};

use crate::check::{Outcome, Stop};
use crate::ends::{done, expect, expect_error, quiet, Area, Pair, Setup};
use crate::env::Env;
use crate::rig::{expect_busy, expect_fabric, in_threads, pin, until, Waiter};
use crate::{check, check_eq, tests};

tests! {
    "signal" parallel;
    "case-04-bind-matrix" ["R-CNTR-7 R-CNTR-3"] bind_matrix;
    "case-04-bind-errors" ["R-CNTR-7"] bind_errors;
    "case-04-counters-without-queues" ["R-CNTR-1"] counters_without_queues;
    "case-05-inject-and-selective" ["R-CNTR-6"] inject_and_selective;
    alone "case-05-credits" ["R-CNTR-2"] credits;
    "case-11-woken-by-completion" ["R-CNTR-30 R-CNTR-40"] woken_by_completion;
    "case-12-woken-by-failure" ["R-CNTR-31"] woken_by_failure;
    "case-54-poll-both-ways" ["R-POLL-4 R-POLL-5 R-POLL-8 R-POLL-11"] poll_both_ways;
    "case-55-back-to-the-same-value" ["R-POLL-6"] back_to_the_same_value;
    "case-56-failure-only" ["R-POLL-6 R-POLL-9"] failure_only;
    alone "case-62-wait-then-drain" ["R-WAIT-1 R-WAIT-6"] wait_then_drain;
    "case-65-domains-of-one-fabric" ["R-WAIT-10"] domains_of_one_fabric;
    "case-65-queues-of-two-domains" ["R-WAIT-6 R-WAIT-10"] queues_of_two_domains;
    alone "case-67-poll-with-completions" ["R-TRYWAIT-2 R-TRYWAIT-7 R-CTL-10"] poll_with_completions;
    alone "case-67-select-with-completions" ["R-TRYWAIT-2 R-TRYWAIT-7 R-CTL-10"] select_with_completions;
    alone "case-67-epoll-with-completions" ["R-TRYWAIT-2 R-TRYWAIT-7 R-CTL-10"] epoll_with_completions;
    "case-68-completion-then-nothing" ["R-TRYWAIT-1 R-TRYWAIT-7"] completion_then_nothing;
}

/// The flags that bind a counter, in the order of a [`Matrix`].
const EVENTS: [u64; 6] = [
    bits::SEND,
    bits::RECV,
    bits::READ,
    bits::WRITE,
    bits::REMOTE_READ,
    bits::REMOTE_WRITE,
];

/// A counter of each end for each event.
struct Matrix {
    a: Vec<Counter>,
    b: Vec<Counter>,
}

impl Matrix {
    fn new(pair: &Pair) -> Result<Self, Stop> {
        let mut matrix = Self {
            a: Vec::new(),
            b: Vec::new(),
        };
        for flag in EVENTS {
            let counter = pair.rig.domain.counter(&CntrAttr::new())?;
            pair.a.ep.bind(counter.handle(), flag)?;
            matrix.a.push(counter);
            let counter = pair.far.counter(&CntrAttr::new())?;
            pair.b.ep.bind(counter.handle(), flag)?;
            matrix.b.push(counter);
        }
        Ok(matrix)
    }

    /// The values, success and error, of both ends.
    fn values(&self) -> Result<[[(u64, u64); 6]; 2], Stop> {
        let mut values = [[(0, 0); 6]; 2];
        for (counters, values) in [&self.a, &self.b].into_iter().zip(&mut values) {
            for (counter, value) in counters.iter().zip(values) {
                *value = (counter.read()?, counter.read_err()?);
            }
        }
        Ok(values)
    }

    /// Checks that these counters have grown by one since then, and no others: end, event, success or
    /// not. A target may count a little later than its peer.
    fn grown(
        &self,
        before: &[[(u64, u64); 6]; 2],
        should: &[(usize, u64, bool)],
        what: &str,
    ) -> Outcome {
        let mut after = *before;
        for (end, event, success) in should {
            let at = EVENTS.iter().position(|flag| flag == event).unwrap_or(0);
            let value = &mut after[*end][at];
            *value = if *success {
                (value.0 + 1, value.1)
            } else {
                (value.0, value.1 + 1)
            };
        }
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        until(|| Ok(self.values()? == after || std::time::Instant::now() > end))?;
        check_eq!(self.values()?, after, "counters after {what}");
        Ok(())
    }
}

fn bind_matrix(env: &Env) -> Outcome {
    let caps = Caps::MSG | Caps::TAGGED | Caps::RMA | Caps::ATOMIC;
    let mut pair = Pair::prepare(env, caps, &Setup::default())?;
    let matrix = Matrix::new(&pair)?;
    pair.connect()?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let remote = Area::plain(&pair.session, 64)?;
    let region = pair.region(&remote, 1)?;
    let (u64_type, sum, read) = (
        kfi::uapi::KFI_UINT64,
        kfi::uapi::KFI_SUM,
        kfi::uapi::KFI_ATOMIC_READ,
    );
    let local = memory.part(0, 8);
    // Name, operation, whether a receive is needed, and what counts it: here and there.
    let message = |kind| a.operation(kind, Form::PLAIN).segment(local).tag(7, 0);
    let rma = |kind, key| a.operation(kind, Form::PLAIN).segment(local).rma(0, 8, key);
    let atomic = |kind, op, key| {
        let operation = a
            .operation(kind, Form::PLAIN)
            .segment(memory.elements(0, 1))
            .rma(0, 1, key)
            .atomic(u64_type, op);
        if kind == Kind::ATOMIC {
            operation
        } else {
            operation.result(memory.elements(8, 1))
        }
    };
    let compare = |key| {
        atomic(Kind::COMPARE_ATOMIC, kfi::uapi::KFI_CSWAP, key).compare(memory.elements(16, 1))
    };
    for (what, kind, recv) in [
        ("send", Kind::SEND, Kind::RECV),
        ("tagged send", Kind::TSEND, Kind::TRECV),
    ] {
        let before = matrix.values()?;
        let receive = |len| {
            b.post(
                &Operation::new(recv, Form::PLAIN)
                    .segment(remote.part(0, len))
                    .tag(7, 0),
            )
        };
        receive(8)?;
        a.post(&message(kind))?;
        let should = [(0, bits::SEND, true), (1, bits::RECV, true)];
        matrix.grown(&before, &should, what)?;
        // Cut off: the failure of both.
        let before = matrix.values()?;
        receive(4)?;
        a.post(&message(kind))?;
        let should = [(0, bits::SEND, false), (1, bits::RECV, false)];
        matrix.grown(&before, &should, &format!("{what}, cut off"))?;
        // Nobody receives.
        let before = matrix.values()?;
        a.post(&message(kind))?;
        let should = [(0, bits::SEND, false)];
        matrix.grown(&before, &should, &format!("{what}, refused"))?;
        // Cancelled.
        let before = matrix.values()?;
        b.post(
            &Operation::new(recv, Form::PLAIN)
                .segment(remote.all())
                .tag(7, 0)
                .context(99),
        )?;
        b.ep.cancel(99)?;
        let should = [(1, bits::RECV, false)];
        matrix.grown(&before, &should, &format!("{what}, receive cancelled"))?;
    }
    for (what, good, bad, here, there) in [
        (
            "read",
            rma(Kind::READ, 1),
            rma(Kind::READ, 2),
            bits::READ,
            bits::REMOTE_READ,
        ),
        (
            "write",
            rma(Kind::WRITE, 1),
            rma(Kind::WRITE, 2),
            bits::WRITE,
            bits::REMOTE_WRITE,
        ),
        (
            "atomic",
            atomic(Kind::ATOMIC, sum, 1),
            atomic(Kind::ATOMIC, sum, 2),
            bits::WRITE,
            bits::REMOTE_WRITE,
        ),
        (
            "fetching atomic",
            atomic(Kind::FETCH_ATOMIC, sum, 1),
            atomic(Kind::FETCH_ATOMIC, sum, 2),
            bits::READ,
            bits::REMOTE_WRITE,
        ),
        (
            "atomic read",
            atomic(Kind::FETCH_ATOMIC, read, 1),
            atomic(Kind::FETCH_ATOMIC, read, 2),
            bits::READ,
            bits::REMOTE_READ,
        ),
        (
            "comparing atomic",
            compare(1),
            compare(2),
            bits::READ,
            bits::REMOTE_WRITE,
        ),
    ] {
        let before = matrix.values()?;
        a.post(&good)?;
        matrix.grown(&before, &[(0, here, true), (1, there, true)], what)?;
        let before = matrix.values()?;
        a.post(&bad)?;
        let what = format!("{what} with a wrong key");
        matrix.grown(&before, &[(0, here, false)], &what)?;
    }
    drop((region, pair.a, pair.b, matrix, memory, remote));
    Ok(())
}

fn bind_errors(env: &Env) -> Outcome {
    let pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let counter = pair.rig.domain.counter(&CntrAttr::new())?;
    let bind = |flags| pair.a.ep.bind(counter.handle(), flags);
    for flags in [0, 1 << 50, bits::SEND | 1 << 50] {
        expect_fabric(bind(flags), KfiErrno::EBADFLAGS)?;
    }
    bind(bits::SEND)?;
    expect_fabric(bind(bits::SEND), KfiErrno::EINVAL)?;
    expect_fabric(bind(bits::SEND | bits::RECV), KfiErrno::EINVAL)?;
    bind(bits::RECV | bits::READ)?;
    expect_fabric(bind(bits::RECV), KfiErrno::EINVAL)?;
    let stranger = pair.far.counter(&CntrAttr::new())?;
    let result = pair.a.ep.bind(stranger.handle(), bits::WRITE);
    expect_fabric(result, KfiErrno::EINVAL)?;
    drop((pair.a, counter, stranger));
    Ok(())
}

/// An endpoint with a counter and no queue at all.
fn counters_without_queues(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let b = &pair.b;
    let ep = pair
        .rig
        .domain
        .endpoint(kfi::EpInfo::Entry(&pair.rig.info, 0), 0)?;
    let counter = pair.rig.counter()?;
    let arrivals = pair.rig.counter()?;
    ep.bind(pair.a.av.handle(), 0)?;
    expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
    ep.bind(counter.handle(), bits::SEND)?;
    expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
    ep.bind(arrivals.handle(), bits::RECV)?;
    ep.enable()?;
    let memory = Area::plain(&pair.session, 64)?;
    let back = b.av.insert(&ep.name()?)?;
    for i in 1..=100 {
        b.recv(memory.part(0, 8), 0)?;
        let send = Operation::new(Kind::SEND, Form::PLAIN);
        ep.post(&send.segment(memory.part(8, 8)).to(pair.a.peer))?;
        counter.wait_ms(i, 20_000)?;
        expect(&b.rx, 0, done::RECV_, 8)?;
        ep.post(&Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(16, 8)))?;
        let send = Operation::new(Kind::SEND, Form::PLAIN);
        b.post(&send.segment(memory.part(24, 8)).to(back))?;
        arrivals.wait_ms(i, 20_000)?;
        expect(&b.tx, 0, done::SEND_, 8)?;
    }
    check_eq!((counter.read()?, counter.read_err()?), (100, 0));
    check_eq!((arrivals.read()?, arrivals.read_err()?), (100, 0));
    drop((ep, counter, arrivals, memory));
    pair.close()
}

fn inject_and_selective(env: &Env) -> Outcome {
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        rx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let mut pair = Pair::prepare(env, Caps::MSG | Caps::RMA, &setup)?;
    let matrix = Matrix::new(&pair)?;
    pair.connect()?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let region = pair.region(&memory, 1)?;
    let local = memory.part(0, 8);
    for form in [Form::PLAIN, Form::MSG, Form::INJECT] {
        let before = matrix.values()?;
        b.post(&Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(8, 8)))?;
        a.post(&a.operation(Kind::SEND, form).segment(local))?;
        let should = [(0, bits::SEND, true), (1, bits::RECV, true)];
        matrix.grown(&before, &should, &format!("send {form}"))?;
        let before = matrix.values()?;
        let write = a.operation(Kind::WRITE, form);
        a.post(&write.segment(local).rma(8, 8, 1))?;
        let should = [(0, bits::WRITE, true), (1, bits::REMOTE_WRITE, true)];
        matrix.grown(&before, &should, &format!("write {form}"))?;
    }
    // No word of all that in the queues.
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((region, pair.a, pair.b, matrix, memory));
    Ok(())
}

/// Receives are credits: a sender sends as many as its counter allows, and receivers add.
fn credits(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let arrived = Arc::new(
        pair.far
            .counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?,
    );
    pair.b.ep.bind(arrived.handle(), bits::RECV)?;
    pair.connect()?;
    let granted = pair.rig.counter()?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let total = env.scaled(5_000, 500);
    let window = 16;
    in_threads([0_usize, 1], |which| {
        pin(which)?;
        for i in 1..=total {
            if which == 0 {
                granted.wait_ms(i, 20_000)?;
                a.send(memory.part(0, 8), i)?;
                expect(&a.tx, i, done::SEND_, 8)?;
            } else {
                if i == 1 {
                    for _ in 0..window {
                        b.recv(memory.part(8, 8), 0)?;
                    }
                    granted.add(window)?;
                }
                arrived.wait_ms(i, 20_000)?;
                expect(&b.rx, 0, done::RECV_, 8)?;
                if i + window <= total {
                    b.recv(memory.part(8, 8), 0)?;
                    granted.add(1)?;
                }
            }
        }
        Ok(())
    })?;
    check_eq!((arrived.read()?, arrived.read_err()?), (total, 0));
    // Nothing was ever refused for want of a receive.
    pair.a.quiet()?;
    drop((pair.a, pair.b, arrived, memory));
    Ok(())
}

/// A pair with a counter for what arrives at the first end.
fn counted(env: &Env, caps: Caps) -> Result<(Pair, Arc<Counter>), Stop> {
    let mut pair = Pair::prepare(env, caps, &Setup::default())?;
    let counter = pair.rig.counter()?;
    pair.a.ep.bind(counter.handle(), bits::RECV | bits::SEND)?;
    pair.connect()?;
    Ok((pair, counter))
}

fn woken_by_completion(env: &Env) -> Outcome {
    let (pair, counter) = counted(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let first = Waiter::asleep(&counter, 1, -1)?;
    let second = Waiter::asleep(&counter, 2, 1_000_000)?;
    for i in 0..2 {
        a.recv(memory.part(0, 8), i)?;
    }
    check!(first.sleeps()?, "posting wakes");
    b.send(memory.part(8, 8), 0)?;
    first.join()?.expect_ok()?;
    check!(second.sleeps()?, "one message is enough for two");
    b.send(memory.part(8, 8), 1)?;
    second.join()?.expect_ok()?;
    // By the transmit direction just as well.
    let third = Waiter::asleep(&counter, 3, -1)?;
    b.recv(memory.part(0, 8), 5)?;
    a.send(memory.part(8, 8), 6)?;
    third.join()?.expect_ok()?;
    drop((pair, counter, memory));
    Ok(())
}

fn woken_by_failure(env: &Env) -> Outcome {
    let (pair, counter) = counted(env, Caps::MSG)?;
    let a = &pair.a;
    let memory = Area::plain(&pair.session, 64)?;
    let waiter = Waiter::asleep(&counter, 1, -1)?;
    // Nobody receives, which is found after a while.
    a.send(memory.part(0, 8), 1)?;
    waiter.join()?.expect(KfiErrno::EAVAIL)?;
    check_eq!((counter.read()?, counter.read_err()?), (0, 1));
    expect_error(&a.tx, 1, KfiErrno::EREMOTEIO)?;
    let waiter = Waiter::asleep(&counter, 1, -1)?;
    a.recv(memory.part(0, 8), 2)?;
    check!(waiter.sleeps()?, "posting wakes");
    a.ep.cancel(2)?;
    waiter.join()?.expect(KfiErrno::EAVAIL)?;
    check_eq!((counter.read()?, counter.read_err()?), (0, 2));
    drop((pair, counter, memory));
    Ok(())
}

/// A pair whose first end has queues and a counter with contexts, in a poll set.
fn poll_both_ways(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let counter = pair.rig.domain.counter(&CntrAttr::new().context(3))?;
    pair.a.ep.bind(counter.handle(), bits::RECV | bits::SEND)?;
    let own = pair
        .rig
        .domain
        .completion_queue(&CqAttr::new().context(4))?;
    pair.connect()?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let set = pair.rig.domain.poll_set()?;
    set.add(&counter)?;
    set.add(&a.tx)?;
    set.add(&a.rx)?;
    set.add(&own)?;
    let nothing: [u64; 0] = [];
    check_eq!(set.poll(8)?, nothing, "before anything");
    // A change may be told when its value has been read already (R-POLL-8), but only once.
    let mut reports = 0;
    for round in 0..env.scaled(200, 20) {
        a.recv(memory.part(0, 8), 1)?;
        b.recv(memory.part(8, 8), 1)?;
        let told = set.poll(8)?;
        check!(
            told.is_empty() || told == [3],
            "{told:?} after receives were posted"
        );
        reports += told.len() as u64;
        check!(reports <= 2 * round, "receives are no events");
        a.send(memory.part(16, 8), 2)?;
        b.send(memory.part(24, 8), 2)?;
        // Wait for both entries and both counts.
        let (mut queued, mut counted) = (0, 0);
        until(|| {
            for context in set.poll(8)? {
                match context {
                    // All that the counter says is to be found in the queues. It may have been read already.
                    3 => {
                        reports += 1;
                        let value = counter.read()?;
                        check!(value >= counted, "it has gone back");
                        counted = value;
                    }
                    0 => {
                        for cq in [&a.tx, &a.rx] {
                            queued += cq.read(8).map_or(0, |entries| entries.len() as u64);
                        }
                    }
                    other => return Err(Stop::fail(format!("context {other}"))),
                }
            }
            check!(
                counter.read()? <= 2 * round + 2,
                "the counter is ahead of the traffic"
            );
            Ok(queued == 2 && counted == 2 * round + 2)
        })?;
        expect(&b.tx, 2, done::SEND_, 8)?;
        expect(&b.rx, 1, done::RECV_, 8)?;
        let told = set.poll(8)?;
        check!(
            told.is_empty() || told == [3],
            "{told:?} after all was read"
        );
        reports += told.len() as u64;
        check!(
            reports <= 2 * round + 2,
            "{reports} reports in round {round}"
        );
    }
    check_eq!(counter.read_err()?, 0);
    drop((set, own, pair.a, pair.b, counter, memory));
    Ok(())
}

/// 497, set to 495, two completions: 497 again, and that is an event.
fn back_to_the_same_value(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let counter = pair.rig.domain.counter(&CntrAttr::new().context(9))?;
    pair.a.ep.bind(counter.handle(), bits::RECV)?;
    pair.connect()?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let (set, other) = (pair.rig.domain.poll_set()?, pair.rig.domain.poll_set()?);
    set.add(&counter)?;
    other.add(&counter)?;
    let nothing: [u64; 0] = [];
    let arrive = |count| -> Outcome {
        for _ in 0..count {
            a.recv(memory.part(0, 8), 1)?;
            b.send(memory.part(8, 8), 2)?;
            expect(&a.rx, 1, done::RECV_, 8)?;
            expect(&b.tx, 2, done::SEND_, 8)?;
            // The value can be read before it is told.
            until(|| Ok(other.poll(4)? == [9]))?;
        }
        Ok(())
    };
    counter.set(497)?;
    check_eq!(set.poll(4)?, nothing, "what the application sets");
    counter.set(495)?;
    arrive(2)?;
    check_eq!(counter.read()?, 497);
    check_eq!(set.poll(4)?, [9]);
    check_eq!(set.poll(4)?, nothing, "once");
    // A change by the application starts anew.
    arrive(1)?;
    counter.add(1)?;
    check_eq!(set.poll(4)?, nothing, "after the application's own change");
    arrive(1)?;
    check_eq!(set.poll(4)?, [9]);
    drop((set, other, pair.a, pair.b, counter, memory));
    Ok(())
}

fn failure_only(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let counter = pair.rig.domain.counter(&CntrAttr::new().context(9))?;
    pair.a.ep.bind(counter.handle(), bits::RECV)?;
    pair.connect()?;
    let a = &pair.a;
    let memory = Area::plain(&pair.session, 64)?;
    let set = pair.rig.domain.poll_set()?;
    set.add(&counter)?;
    set.add(&a.rx)?;
    let nothing: [u64; 0] = [];
    for _ in 0..3 {
        a.recv(memory.all(), 1)?;
        a.ep.cancel(1)?;
        let mut contexts = set.poll(4)?;
        contexts.sort_unstable();
        check_eq!(contexts, [0, 9], "a cancelled receive");
        // The queue as long as the error is there, the counter once.
        check_eq!(set.poll(4)?, [0]);
        expect_error(&a.rx, 1, KfiErrno::ECANCELED)?;
        check_eq!(set.poll(4)?, nothing);
    }
    check_eq!((counter.read()?, counter.read_err()?), (0, 3));
    drop((set, pair.a, pair.b, counter, memory));
    Ok(())
}

/// Reads all that is there; how much.
fn drained(cq: &CompletionQueue) -> Result<u64, Stop> {
    let mut count = 0;
    loop {
        match cq.read(4) {
            Ok(entries) => count += entries.len() as u64,
            Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends so many messages to the first end, never further ahead than it has receives.
fn feed(pair: &Pair, memory: &Area, total: u64, read: &Counter, env: &Env) -> Outcome {
    let mut rng = env.rng();
    for i in 1..=total {
        let len = [0, 8, 20_000][rng.random_range(0..3)];
        pair.a.recv(memory.part(0, 20_000), i)?;
        pair.b.send(memory.part(20_000, len), i)?;
        expect(&pair.b.tx, i, done::SEND_, len)?;
        if rng.random_ratio(1, 2) || i % 32 == 0 {
            // Let the other fall asleep.
            read.wait_ms(i, 60_000)?;
        }
    }
    Ok(())
}

fn wait_then_drain(env: &Env) -> Outcome {
    let rig_pair = Pair::new(env, Caps::MSG)?;
    let set = rig_pair.rig.fabric.wait_set(&WaitSetAttr::new())?;
    // A second pair of endpoints whose queues are in the set.
    let attr = CqAttr::new().wait_obj(WaitObj::SET).wait_set(set.handle());
    let domain = &rig_pair.rig.domain;
    let (tx, rx) = (
        domain.completion_queue(&attr)?,
        domain.completion_queue(&attr)?,
    );
    let ep = domain.endpoint(kfi::EpInfo::Entry(&rig_pair.rig.info, 0), 0)?;
    ep.bind(rig_pair.a.av.handle(), 0)?;
    ep.bind(tx.handle(), bits::TRANSMIT)?;
    ep.bind(rx.handle(), bits::RECV)?;
    ep.enable()?;
    let to = rig_pair.b.av.insert(&ep.name()?)?;
    let memory = Area::plain(&rig_pair.session, 64)?;
    let total = env.scaled(1_000, 200);
    in_threads([0_usize, 1], |which| {
        pin(which)?;
        if which == 0 {
            let b = &rig_pair.b;
            for i in 0..total {
                b.recv(memory.part(0, 8), i)?;
                b.post(
                    &Operation::new(Kind::SEND, Form::PLAIN)
                        .segment(memory.part(8, 8))
                        .to(to),
                )?;
                expect(&b.tx, 0, done::SEND_, 8)?;
                expect(&b.rx, i, done::RECV_, 8)?;
            }
            return Ok(());
        }
        let (mut posted, mut sent, mut received) = (0, 0, 0);
        let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(16, 8));
        while sent < total || received < total {
            while posted < total && posted < received + 8 {
                ep.post(&recv)?;
                posted += 1;
            }
            set.wait_ms(60_000)?;
            sent += drained(&tx)?;
            let new = drained(&rx)?;
            received += new;
            // An answer to each.
            for _ in 0..new {
                ep.post(
                    &Operation::new(Kind::SEND, Form::PLAIN)
                        .segment(memory.part(24, 8))
                        .to(rig_pair.a.peer),
                )?;
            }
        }
        Ok(())
    })?;
    drop((ep, tx, rx, memory));
    set.close().map_err(|(_, error)| error)?;
    rig_pair.close()
}

/// One set, members of two domains, events from both.
fn domains_of_one_fabric(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let set = pair.rig.fabric.wait_set(&WaitSetAttr::new())?;
    let attr = CntrAttr::new()
        .wait_obj(WaitObj::SET)
        .wait_set(set.handle());
    let here = pair.rig.domain.counter(&attr)?;
    let there = pair.far.counter(&attr)?;
    pair.a.ep.bind(here.handle(), bits::RECV)?;
    pair.b.ep.bind(there.handle(), bits::RECV)?;
    pair.connect()?;
    let memory = Area::plain(&pair.session, 64)?;
    expect_fabric(set.wait_ms(0), KfiErrno::ETIMEDOUT)?;
    for round in 1..=env.scaled(200, 20) {
        for (from, to, counter) in [(&pair.a, &pair.b, &there), (&pair.b, &pair.a, &here)] {
            to.recv(memory.part(0, 8), 1)?;
            from.send(memory.part(8, 8), 2)?;
            set.wait_ms(20_000)?;
            check_eq!(counter.read()?, round);
            expect_fabric(set.wait_ms(0), KfiErrno::ETIMEDOUT)?;
            expect(&to.rx, 1, done::RECV_, 8)?;
            expect(&from.tx, 2, done::SEND_, 8)?;
        }
    }
    drop((pair.a, pair.b, here, there, set, memory));
    Ok(())
}

fn queues_of_two_domains(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let set = pair.rig.fabric.wait_set(&WaitSetAttr::new())?;
    let attr = CqAttr::new().wait_obj(WaitObj::SET).wait_set(set.handle());
    // Other endpoints in place of those that there are, with queues in the set.
    let entries = pair.rig.info.entries();
    let far = entries
        .iter()
        .position(|entry| entry.src_addr != entries[0].src_addr)
        .unwrap_or(0);
    let rig = &pair.rig;
    for (domain, end, index) in [(&rig.domain, &mut pair.a, 0), (&pair.far, &mut pair.b, far)] {
        let rx = domain.completion_queue(&attr)?;
        let ep = domain.endpoint(kfi::EpInfo::Entry(&rig.info, index), 0)?;
        ep.bind(end.av.handle(), 0)?;
        ep.bind(end.tx.handle(), bits::TRANSMIT)?;
        ep.bind(rx.handle(), bits::RECV)?;
        end.ep = ep;
        end.rx = rx;
    }
    pair.connect()?;
    let memory = Area::plain(&pair.session, 64)?;
    let waits = |ms| set.wait_ms(ms);
    expect_fabric(waits(0), KfiErrno::ETIMEDOUT)?;
    for round in 0..env.scaled(200, 20) {
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            to.recv(memory.part(0, 8), round)?;
            from.send(memory.part(8, 8), round)?;
            // Ready until it is read, whichever domain it belongs to.
            waits(20_000)?;
            waits(0)?;
            // sread is not for a queue in a set.
            let entries = to.rx.read(4)?;
            check_eq!(entries.len(), 1);
            check_eq!((entries[0].op_context, entries[0].len), (round, 8));
            expect_fabric(waits(0), KfiErrno::ETIMEDOUT)?;
            expect(&from.tx, round, done::SEND_, 8)?;
        }
        // Both at once: one wait may tell of both.
        for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            to.recv(memory.part(0, 8), round)?;
            from.send(memory.part(8, 8), round)?;
        }
        let mut count = 0;
        while count < 2 {
            waits(20_000)?;
            count += drained(&pair.a.rx)? + drained(&pair.b.rx)?;
        }
        check_eq!(count, 2);
        expect_fabric(waits(0), KfiErrno::ETIMEDOUT)?;
        for from in [&pair.a, &pair.b] {
            expect(&from.tx, round, done::SEND_, 8)?;
        }
    }
    // A set with members stays.
    expect_busy(pair.session.close_handle(set.handle()))?;
    drop((pair.a, pair.b, set, memory));
    Ok(())
}

/// A pair whose first end receives into a queue with a descriptor, and counts.
fn described(env: &Env) -> Result<(Pair, CompletionQueue, Arc<Counter>), Stop> {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    let rx = pair
        .rig
        .domain
        .completion_queue(&CqAttr::new().wait_obj(WaitObj::QUEUE))?;
    let counter = pair.rig.counter()?;
    // Another endpoint in place of the first.
    let ep = pair
        .rig
        .domain
        .endpoint(kfi::EpInfo::Entry(&pair.rig.info, 0), 0)?;
    ep.bind(pair.a.av.handle(), 0)?;
    ep.bind(pair.a.tx.handle(), bits::TRANSMIT)?;
    ep.bind(rx.handle(), bits::RECV)?;
    ep.bind(counter.handle(), bits::RECV)?;
    pair.a.ep = ep;
    pair.connect()?;
    Ok((pair, rx, counter))
}

/// Until something is to be read, at most so many milliseconds.
const PATIENCE: u32 = 30_000;

fn poll_with_completions(env: &Env) -> Outcome {
    loop_with_completions(env, |fds| {
        let mut polled: Vec<_> = fds
            .iter()
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        let time = Timespec {
            tv_sec: i64::from(PATIENCE / 1000),
            tv_nsec: 0,
        };
        Ok(rustix::event::poll(&mut polled, Some(&time))? > 0)
    })
}

/// The two descriptors as one.
fn together(fds: &[WaitFd]) -> Result<OwnedFd, Stop> {
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    for fd in fds {
        epoll::add(&set, fd, EventData::new_u64(1), EventFlags::IN)?;
    }
    Ok(set)
}

fn select_with_completions(env: &Env) -> Outcome {
    // One descriptor that stands for both.
    loop_with_completions(
        env,
        |fds| Ok(select(together(fds)?.as_fd(), PATIENCE)?.read),
    )
}

fn epoll_with_completions(env: &Env) -> Outcome {
    loop_with_completions(env, |fds| {
        let mut events = [MaybeUninit::uninit(); 4];
        let time = Timespec {
            tv_sec: i64::from(PATIENCE / 1000),
            tv_nsec: 0,
        };
        let (events, _) = epoll::wait(&together(fds)?, &mut events, Some(&time))?;
        for event in &*events {
            check_eq!({ event.flags }, EventFlags::IN);
        }
        Ok(!events.is_empty())
    })
}

/// The documented loop over a queue and a counter, whose messages another thread sends. `block`
/// says whether there is something to read.
fn loop_with_completions(
    env: &Env,
    block: impl Fn(&[WaitFd]) -> Result<bool, Stop> + Sync,
) -> Outcome {
    let (pair, rx, counter) = described(env)?;
    let memory = Area::plain(&pair.session, 40_000)?;
    let read = pair.rig.counter()?;
    let total = env.scaled(1_000, 100);
    let fds = [rx.wait_fd()?, counter.wait_fd()?];
    let handles = [rx.handle(), counter.handle()];
    let blocked = in_threads([0_usize, 1], |which| {
        pin(which)?;
        if which == 0 {
            feed(&pair, &memory, total, &read, env)?;
            return Ok(0);
        }
        let (mut count, mut blocked) = (0, 0_u64);
        while count < total || counter.read()? < total {
            match pair.rig.fabric.trywait(&handles) {
                Ok(()) => {
                    check!(block(&fds)?, "asleep with {count} of {total} read");
                    blocked += 1;
                }
                result => expect_fabric(result, KfiErrno::EAGAIN)?,
            }
            count += drained(&rx)?;
            read.set(count)?;
        }
        Ok(blocked)
    })?;
    env.note(format!("{total} messages, blocked {} times", blocked[1]));
    check_eq!(counter.read()?, total);
    drop((fds, pair.a, pair.b, rx, counter, memory));
    Ok(())
}

fn completion_then_nothing(env: &Env) -> Outcome {
    let (pair, rx, counter) = described(env)?;
    let memory = Area::plain(&pair.session, 64)?;
    let trywait = |handle| pair.rig.fabric.trywait(&[handle]);
    for round in 1..=5 {
        trywait(rx.handle())?;
        trywait(counter.handle())?;
        pair.a.recv(memory.part(0, 8), 1)?;
        trywait(rx.handle())?;
        pair.b.send(memory.part(8, 8), 2)?;
        expect(&pair.b.tx, 2, done::SEND_, 8)?;
        counter.wait_ms(round, 20_000)?;
        // Until it is read.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        until(|| Ok(trywait(rx.handle()).is_err() || std::time::Instant::now() > end))?;
        for _ in 0..2 {
            expect_fabric(trywait(rx.handle()), KfiErrno::EAGAIN)?;
        }
        check_eq!(drained(&rx)?, 1);
        trywait(rx.handle())?;
        // Once for each change.
        expect_fabric(trywait(counter.handle()), KfiErrno::EAGAIN)?;
        trywait(counter.handle())?;
        // An error is something to be read, too.
        pair.a.recv(memory.part(0, 8), 3)?;
        pair.a.ep.cancel(3)?;
        expect_fabric(trywait(rx.handle()), KfiErrno::EAGAIN)?;
        expect_fabric(trywait(counter.handle()), KfiErrno::EAGAIN)?;
        expect_error(&rx, 3, KfiErrno::ECANCELED)?;
        trywait(rx.handle())?;
        trywait(counter.handle())?;
    }
    quiet(&rx)?;
    drop((pair.a, pair.b, rx, counter, memory));
    Ok(())
}
