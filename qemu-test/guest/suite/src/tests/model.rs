// SPDX-License-Identifier: GPL-2.0

//! Random operations on counters and on what waits for them, against a model
//! that is too simple to be wrong.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

use kfi::{bits, uapi, Counter, Error, KfiErrno, OpType, Work, WorkId};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::check::{Outcome, Stop};
use crate::ends::{expect_error, quiet, settle, Net, Setup, LONG};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin};
use crate::tests::deferred::max_pending;
use crate::{check, check_eq, tests};

tests! {
    "model" parallel;
    "one-thread" ["R-TRIG-11 R-TRIG-13 R-TRIG-14 R-TRIG-15 R-TRIG-16 R-TRIG-18 R-TRIG-19 R-TRIG-26 R-DWQ-5 R-DWQ-6 R-DWQ-7 R-DWQ-18 R-DWQ-20 R-DWQ-30 R-DWQ-31 R-CTL-2 R-CTL-3 R-CTL-4 R-CNTR-20"] one_thread;
    alone "threads" ["R-TRIG-11 R-TRIG-14 R-TRIG-15 R-TRIG-16 R-DWQ-18 R-CTL-2 R-CTL-3 R-CTL-5"] threads;
}

/// Counters of a round.
const COUNTERS: usize = 4;
/// Steps of a round.
const STEPS: u64 = 5_000;
/// The number that is fetched and counted up, at the peer.
const CELL: u64 = 0;
/// The number that is added to it lies here.
const ONE: u64 = 0;
/// From here on are the results, one for each operation.
const RESULTS: u64 = 64;

/// The action when a threshold is reached.
#[derive(Clone, Copy, Debug)]
enum Action {
    Add {
        counter: usize,
        value: u64,
    },
    Set {
        counter: usize,
        value: u64,
    },
    /// Fetches the number into a slot, and completes into a counter.
    Fetch {
        slot: u64,
        done: Option<usize>,
    },
}

/// The name by which it can be taken back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name {
    Work(WorkId),
    Context(u64),
}

/// An operation that waits.
#[derive(Clone, Copy, Debug)]
struct Entry {
    trigger: usize,
    threshold: u64,
    /// Order of submission.
    sequence: u64,
    name: Name,
    action: Action,
}

impl Entry {
    fn is_classic(&self) -> bool {
        matches!(self.name, Name::Context(_))
    }
}

/// How it should be.
#[derive(Debug, Default)]
struct Model {
    success: [u64; COUNTERS],
    error: [u64; COUNTERS],
    /// By threshold and sequence.
    pending: Vec<Entry>,
    sequence: u64,
    /// Operations that have become due and were not done yet.
    due: VecDeque<Entry>,
    /// Slots in the order in which they were fetched.
    fetched: Vec<u64>,
}

impl Model {
    fn submit(&mut self, mut entry: Entry) {
        entry.sequence = self.sequence;
        self.sequence += 1;
        let key = (entry.threshold, entry.sequence);
        let at = self
            .pending
            .partition_point(|other| (other.threshold, other.sequence) < key);
        self.pending.insert(at, entry);
        self.look(entry.trigger);
        self.run();
    }

    /// Finds the operations that are due on a counter.
    fn look(&mut self, counter: usize) {
        let (success, error) = (self.success[counter], self.error[counter]);
        let is_due = |entry: &Entry| {
            let value = if entry.is_classic() {
                success
            } else {
                success.saturating_add(error)
            };
            entry.trigger == counter && entry.threshold <= value
        };
        let due = self.pending.iter().filter(|entry| is_due(entry));
        self.due.extend(due.copied());
        self.pending.retain(|entry| !is_due(entry));
    }

    fn change(&mut self, counter: usize, success: u64, error: u64) {
        self.success[counter] = success;
        self.error[counter] = error;
        self.look(counter);
        self.run();
    }

    /// Does the operations that are due, and those that become due by that.
    fn run(&mut self) {
        while let Some(entry) = self.due.pop_front() {
            let counter = match entry.action {
                Action::Add { counter, value } => {
                    self.success[counter] = self.success[counter].wrapping_add(value);
                    Some(counter)
                }
                Action::Set { counter, value } => {
                    self.success[counter] = value;
                    Some(counter)
                }
                Action::Fetch { slot, done } => {
                    self.fetched.push(slot);
                    if let Some(done) = done {
                        self.success[done] = self.success[done].wrapping_add(1);
                    }
                    done
                }
            };
            if let Some(counter) = counter {
                self.look(counter);
            }
        }
    }

    /// Takes back; how many there were.
    fn take_back(&mut self, which: impl Fn(&Entry) -> bool) -> usize {
        let before = self.pending.len();
        self.pending.retain(|entry| !which(entry));
        before - self.pending.len()
    }
}

/// A value near another one, or any.
fn near(rng: &mut SmallRng, value: u64) -> u64 {
    match rng.random_range(0..20) {
        0 => rng.random(),
        1 => 0,
        2 => value.wrapping_add(rng.random_range(0..6)).wrapping_sub(3),
        _ => value.wrapping_add(rng.random_range(0..12)),
    }
}

/// A value to add.
fn amount(rng: &mut SmallRng) -> u64 {
    match rng.random_range(0..40) {
        0 => rng.random(),
        1..5 => rng.random_range(0_u64..4).wrapping_neg(),
        5..8 => rng.random_range(0..100),
        _ => rng.random_range(0..4),
    }
}

/// One round in a domain of its own.
struct Round<'a> {
    net: &'a Net,
    counters: [Arc<Counter>; COUNTERS],
    model: Model,
    /// All works on counters, to be queued again.
    works: Vec<Entry>,
    /// All that was ever submitted, to be taken back.
    names: Vec<Name>,
    slots: u64,
    /// How many of the fetched numbers were compared.
    compared: usize,
    /// How often something was not done at once.
    waited: u64,
}

impl Round<'_> {
    fn queue(&mut self, rng: &mut SmallRng) -> Outcome {
        let trigger = rng.random_range(0..COUNTERS);
        let base = self.model.success[trigger].saturating_add(self.model.error[trigger]);
        let threshold = near(rng, base);
        let counter = rng.random_range(0..COUNTERS);
        let ours = &self.counters;
        let [source, target] = [&ours[trigger], &ours[counter]];
        let (work, action) = match rng.random_range(0..6) {
            0..2 => {
                let value = amount(rng);
                let work = Work::add(target, value, source, threshold);
                (work, Action::Add { counter, value })
            }
            2 => {
                let value = near(rng, self.model.success[counter]);
                let work = Work::set(target, value, source, threshold);
                (work, Action::Set { counter, value })
            }
            _ => {
                let slot = self.slot();
                let fetch = self.fetch(slot);
                let ep = self.net.peers[0].ep.handle();
                let source = &self.counters[trigger];
                let mut work = Work::transfer(OpType::FETCH_ATOMIC, ep, &fetch, source, threshold);
                let done = rng.random_bool(0.5).then_some(counter);
                if let Some(done) = done {
                    work = work.completion(self.counters[done].handle());
                }
                (work, Action::Fetch { slot, done })
            }
        };
        let name = Name::Work(self.net.rig.domain.queue_work(&work)?);
        let entry = Entry {
            trigger,
            threshold,
            sequence: 0,
            name,
            action,
        };
        if !matches!(action, Action::Fetch { .. }) {
            self.works.push(entry);
        }
        self.names.push(name);
        self.model.submit(entry);
        Ok(())
    }

    fn slot(&mut self) -> u64 {
        self.slots += 1;
        self.slots - 1
    }

    fn fetch(&self, slot: u64) -> kfi::Operation {
        self.net.fetch_add((0, 1), ONE, CELL, RESULTS + 8 * slot)
    }

    fn post(&mut self, rng: &mut SmallRng) -> Outcome {
        let trigger = rng.random_range(0..COUNTERS);
        let threshold = near(rng, self.model.success[trigger]);
        let slot = self.slot();
        // No context is 0.
        let context = slot + 1;
        let fetch = self.fetch(slot).flags(bits::TRIGGER).context(context);
        let fetch = fetch.trigger(&self.counters[trigger], threshold);
        self.net.peers[0].ep.post(&fetch)?;
        let name = Name::Context(context);
        self.names.push(name);
        self.model.submit(Entry {
            trigger,
            threshold,
            sequence: 0,
            name,
            action: Action::Fetch { slot, done: None },
        });
        Ok(())
    }

    fn requeue(&mut self, rng: &mut SmallRng) -> Outcome {
        let Some(entry) = pick(rng, &self.works) else {
            return Ok(());
        };
        if let Name::Work(id) = entry.name {
            self.net.rig.session.requeue_work(id)?;
        }
        self.model.submit(entry);
        Ok(())
    }

    fn take_back(&mut self, rng: &mut SmallRng) -> Outcome {
        // Mostly one that is pending.
        let name = if rng.random_bool(0.7) {
            pick(rng, &self.model.pending).map(|entry| entry.name)
        } else {
            pick(rng, &self.names)
        };
        let Some(name) = name else {
            return Ok(());
        };
        let found = self.model.take_back(|entry| entry.name == name) != 0;
        let this = &self.net.peers[0];
        let result = match name {
            Name::Work(id) => self.net.rig.domain.cancel_work(id, 0),
            Name::Context(context) => this.ep.cancel(context),
        };
        if !found {
            return expect_fabric(result, KfiErrno::ENOENT);
        }
        check_eq!(result, Ok(()), "taking back {name:?}");
        if let Name::Context(context) = name {
            expect_error(&this.tx, context, KfiErrno::ECANCELED)?;
        }
        Ok(())
    }

    fn flush(&mut self, rng: &mut SmallRng) -> Outcome {
        let which = rng.random_range(0..2 * COUNTERS);
        let counter = self.counters.get(which);
        self.net.rig.domain.flush_work(counter.map(|c| &**c))?;
        self.model.take_back(|entry| {
            !entry.is_classic() && (which >= COUNTERS || entry.trigger == which)
        });
        Ok(())
    }

    fn step(&mut self, rng: &mut SmallRng) -> Outcome {
        let which = rng.random_range(0..COUNTERS);
        let counter = self.counters[which].clone();
        let (success, error) = (self.model.success[which], self.model.error[which]);
        match rng.random_range(0..100) {
            0..25 => self.queue(rng)?,
            25..40 => self.post(rng)?,
            40..48 => self.requeue(rng)?,
            48..60 => self.take_back(rng)?,
            60..61 => self.flush(rng)?,
            61..80 => {
                let value = amount(rng);
                counter.add(value)?;
                self.model.change(which, success.wrapping_add(value), error);
            }
            80..88 => {
                let value = amount(rng);
                counter.add_err(value)?;
                self.model.change(which, success, error.wrapping_add(value));
            }
            88..94 => {
                // Now and then back to where things happen.
                let value = if rng.random_bool(0.3) {
                    rng.random_range(0..50)
                } else {
                    near(rng, success)
                };
                counter.set(value)?;
                self.model.change(which, value, error);
            }
            94..98 => {
                let value = rng.random_range(0..10);
                counter.set_err(value)?;
                self.model.change(which, success, value);
            }
            _ => {
                let value = near(rng, success);
                let result = counter.wait_ms(value, 0);
                if value <= success {
                    check_eq!(result, Ok(()));
                } else {
                    expect_fabric(result, KfiErrno::ETIMEDOUT)?;
                }
            }
        }
        self.compare()
    }

    /// The difference, if there is one.
    fn difference(&self) -> Result<Option<String>, Stop> {
        for (which, counter) in self.counters.iter().enumerate() {
            let is = (counter.read()?, counter.read_err()?);
            let should = (self.model.success[which], self.model.error[which]);
            if is != should {
                return Ok(Some(format!(
                    "counter {which} is {is:?}, should be {should:?}"
                )));
            }
        }
        let [this, other] = [&self.net.peers[0], &self.net.peers[1]];
        let fetched = self.model.fetched.len() as u64;
        if other.number(CELL) != fetched {
            return Ok(Some(format!(
                "{} have been fetched, should be {fetched}",
                other.number(CELL)
            )));
        }
        for (rank, slot) in self.model.fetched.iter().enumerate().skip(self.compared) {
            let is = this.number(RESULTS + 8 * slot);
            if is != rank as u64 {
                return Ok(Some(format!(
                    "slot {slot} is number {is}, should be {rank}"
                )));
            }
        }
        Ok(None)
    }

    fn compare(&mut self) -> Outcome {
        if let Some(first) = self.difference()? {
            // Long cascades are left to a work queue.
            self.waited += 1;
            let end = Instant::now() + LONG / 6;
            while let Some(difference) = self.difference()? {
                if Instant::now() > end {
                    return Err(Stop::fail(format!("{difference}; at first: {first}")));
                }
                settle();
            }
        }
        self.compared = self.model.fetched.len();
        Ok(())
    }
}

/// One of them.
fn pick<T: Copy>(rng: &mut SmallRng, from: &[T]) -> Option<T> {
    if from.is_empty() {
        return None;
    }
    Some(from[rng.random_range(0..from.len())])
}

fn one_thread(env: &Env) -> Outcome {
    let steps = env.scaled(30_000, 2 * STEPS);
    let (mut fired, mut waited) = (0, 0);
    for round in 0..steps.div_ceil(STEPS) {
        // Each round can be had alone, as the first one.
        let seed = env.settings.seed.wrapping_add(round);
        let mut rng = SmallRng::seed_from_u64(seed);
        let setup = Setup {
            selective: true,
            memory: RESULTS + 8 * STEPS,
            ..Setup::default()
        };
        let net = Net::new(env, &setup)?;
        net.peers[0].set_number(ONE, 1);
        let mut counters = Vec::new();
        for _ in 0..COUNTERS {
            counters.push(net.counter()?);
        }
        let counters = counters
            .try_into()
            .map_err(|_| Stop::fail("not as many counters"))?;
        let mut state = Round {
            net: &net,
            counters,
            model: Model::default(),
            works: Vec::new(),
            names: Vec::new(),
            slots: 0,
            compared: 0,
            waited: 0,
        };
        for step in 0..STEPS {
            state.step(&mut rng).map_err(|stop| match stop {
                Stop::Fail(why) => Stop::Fail(format!("--seed {seed}, step {step}: {why}")),
                skip @ Stop::Skip(_) => skip,
            })?;
        }
        fired += state.model.sequence - state.model.pending.len() as u64;
        waited += state.waited;
        // Operations that are left are given up.
        net.rig.domain.flush_work(None)?;
        let left = state.model.pending.iter().filter_map(|e| match e.name {
            Name::Context(context) => Some(context),
            Name::Work(_) => None,
        });
        for context in left {
            net.peers[0].ep.cancel(context)?;
            expect_error(&net.peers[0].tx, context, None)?;
        }
        drop(state);
        net.close()?;
    }
    env.note(format!(
        "{fired} begun or taken back, {waited} steps waited"
    ));
    Ok(())
}

/// A work that a thread has submitted.
struct Submitted {
    trigger: usize,
    threshold: u64,
    slot: u64,
    id: WorkId,
    /// It was pending before anybody added anything.
    early: bool,
}

/// A counter that is flushed while others use it; the rest is not.
const FLUSHED: usize = 0;

fn threads(env: &Env) -> Outcome {
    let rounds = env.scaled(10, 3);
    let count = 1_500.min(max_pending() / 4);
    let mut sum = (0, 0);
    for round in 0..rounds {
        let seed = env.settings.seed.wrapping_add(round);
        let result = threads_once(env, count, seed);
        let (fired, cancelled) = result.map_err(|stop| match stop {
            Stop::Fail(why) => Stop::Fail(format!("--seed {seed}: {why}")),
            skip @ Stop::Skip(_) => skip,
        })?;
        sum.0 += fired;
        sum.1 += cancelled;
    }
    env.note(format!("{} fired, {} cancelled", sum.0, sum.1));
    Ok(())
}

fn threads_once(env: &Env, count: u64, seed: u64) -> Result<(usize, usize), Stop> {
    let setup = Setup {
        selective: true,
        memory: RESULTS + 16 * count,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let domain = &net.rig.domain;
    let [this, other] = [&net.peers[0], &net.peers[1]];
    // Each fetch finds 1 or more.
    this.set_number(ONE, 1);
    other.set_number(CELL, 1);
    let mut counters = Vec::new();
    for _ in 0..COUNTERS {
        counters.push(net.counter()?);
    }
    let submit = |rng: &mut SmallRng, slot: u64, early: bool| -> Result<Submitted, Stop> {
        let trigger = rng.random_range(0..COUNTERS);
        let threshold = rng.random_range(1..=count);
        let fetch = net.fetch_add((0, 1), ONE, CELL, RESULTS + 8 * slot);
        let ep = this.ep.handle();
        let counter = &counters[trigger];
        let work = Work::transfer(OpType::FETCH_ATOMIC, ep, &fetch, counter, threshold);
        Ok(Submitted {
            trigger,
            threshold,
            slot,
            id: domain.queue_work(&work)?,
            early,
        })
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut early = Vec::new();
    for slot in 0..count {
        early.push(submit(&mut rng, slot, true)?);
    }
    let done = AtomicBool::new(false);
    let results = in_threads(0..5_u64, |role| {
        pin(role as usize)?;
        let mut rng = SmallRng::seed_from_u64(seed ^ (role + 1) << 32);
        let mut late = Vec::new();
        let mut cancelled = Vec::new();
        match role {
            0 | 1 => {
                for _ in 0..count {
                    let counter = &counters[rng.random_range(0..COUNTERS)];
                    if rng.random_bool(0.2) {
                        counter.add_err(1)?;
                    } else {
                        counter.add(rng.random_range(0..3))?;
                    }
                }
            }
            2 => {
                for slot in count..2 * count {
                    late.push(submit(&mut rng, slot, false)?);
                }
                done.store(true, Ordering::Release);
            }
            3 => {
                for _ in 0..count / 2 {
                    let work = &early[rng.random_range(0..early.len())];
                    match domain.cancel_work(work.id, 0) {
                        Ok(()) => cancelled.push(work.id),
                        Err(error) => check_eq!(error, Error::Fabric(KfiErrno::ENOENT)),
                    }
                }
            }
            _ => {
                while !done.load(Ordering::Acquire) {
                    domain.flush_work(Some(&counters[FLUSHED]))?;
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
        }
        Ok((late, cancelled))
    })?;
    let mut all = early;
    let mut cancelled = Vec::new();
    for (late, ids) in results {
        all.extend(late);
        cancelled.extend(ids);
    }
    let mut unique = cancelled.clone();
    unique.sort_unstable();
    unique.dedup();
    check_eq!(unique.len(), cancelled.len(), "cancelled once each");

    // Nobody does anything any more; operations that are due come to their end.
    let mut last = 0;
    loop {
        settle();
        let now = other.number(CELL);
        if now == last {
            break;
        }
        last = now;
    }
    let mut finals = Vec::new();
    for counter in &counters {
        finals.push(counter.read()?.saturating_add(counter.read_err()?));
    }
    let mut fired = 0;
    for work in &all {
        let rank = this.number(RESULTS + 8 * work.slot);
        let is_cancelled = unique.binary_search(&work.id).is_ok();
        let is_due = work.threshold <= finals[work.trigger];
        let has_fired = rank != 0;
        fired += usize::from(has_fired);
        let what = format!(
            "threshold {} of {}, cancelled {is_cancelled}, early {}",
            work.threshold, finals[work.trigger], work.early
        );
        check!(!(has_fired && is_cancelled), "fired: {what}");
        check!(!has_fired || is_due, "fired: {what}");
        if work.trigger != FLUSHED && !is_cancelled {
            check_eq!(has_fired, is_due, "{what}");
            // A work that has not fired is still there.
            let result = domain.cancel_work(work.id, uapi::KFI_SHIM_WORK_RELEASE);
            if has_fired {
                expect_fabric(result, KfiErrno::ENOENT)?;
            } else {
                check_eq!(result, Ok(()), "{what}");
            }
        }
    }
    // None twice.
    check_eq!(other.number(CELL), 1 + fired as u64);
    // In the order of each counter.
    for trigger in 0..COUNTERS {
        let mut order: Vec<_> = all
            .iter()
            .filter(|work| work.early && work.trigger == trigger)
            .map(|work| {
                let rank = this.number(RESULTS + 8 * work.slot);
                (work.threshold, work.slot, rank)
            })
            .filter(|(_, _, rank)| *rank != 0)
            .collect();
        order.sort_unstable();
        let sorted = order.is_sorted_by_key(|(_, _, rank)| *rank);
        check!(sorted, "order of counter {trigger}: {order:?}");
    }
    quiet(&this.tx)?;
    domain.flush_work(None)?;
    let cancelled = cancelled.len();
    drop(counters);
    net.close()?;
    Ok((fired, cancelled))
}
