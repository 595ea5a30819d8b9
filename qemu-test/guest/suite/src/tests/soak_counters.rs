// SPDX-License-Identifier: GPL-2.0

//! Counters and deferred work for a while: adders, waiters, submitters, cancellers, flushers and
//! closers on all CPUs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kfi::{CntrAttr, Counter, Error, KfiErrno, Work, WorkId};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{in_threads, is_busy, pin, Rig};
use crate::{check, check_eq, tests};

tests! {
    "soak";
    "counters-and-works" ["R-CNTR-7 R-DWQ-1 R-CTL-2 R-CTL-3 R-CLOSE-2"] counters_and_works;
}

/// Counters that everybody uses.
const COUNTERS: usize = 12;
/// Works are due so far above a counter's value, at most.
const NEAR: u64 = 40;
/// Works that are remembered, to be cancelled.
const REMEMBERED: usize = 256;
/// Steps of each thread in a round, at least.
const ENOUGH: u64 = 200;
/// Two for each CPU of the machine.
const THREADS: usize = 4;
/// Their roles: change, wait, submit, cancel, flush, close. Each does it all, in any order.
const ROLES: [usize; 16] = [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5];
/// A round has a domain of its own, as works are kept until it is closed.
const ROUND: Duration = Duration::from_millis(700);

/// State that all threads of a round share.
struct Field<'a> {
    rig: &'a Rig,
    /// Counters that are replaced when they are closed.
    counters: Vec<Mutex<Arc<Counter>>>,
    /// The counter that each work adds one to.
    sum: Arc<Counter>,
    /// Works that may be pending.
    works: Mutex<Vec<WorkId>>,
    /// Whether works are also flushed, so that nobody can say how many.
    flushes: bool,
    over: AtomicBool,
    accepted: AtomicU64,
    cancelled: AtomicU64,
    done: [AtomicU64; 6],
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Field<'_> {
    fn any(&self, rng: &mut SmallRng) -> Arc<Counter> {
        lock(&self.counters[rng.random_range(0..COUNTERS)]).clone()
    }

    /// One step of somebody.
    fn act(&self, role: usize, rng: &mut SmallRng) -> kfi::Result<()> {
        let counter = self.any(rng);
        match role {
            0 => match rng.random_range(0..20) {
                0 => counter.add_err(1),
                1 => counter.set(counter.read()? + rng.random_range(0..NEAR)),
                2 => counter.set(counter.read()?.saturating_sub(3)),
                _ => counter.add(rng.random_range(1..3)),
            },
            1 => {
                let near = counter.read()? + rng.random_range(0..NEAR);
                counter.wait_ms(near, rng.random_range(0..3))
            }
            2 => {
                let threshold = counter.read()? + rng.random_range(0..NEAR);
                let work = Work::add(&self.sum, 1, &counter, threshold);
                self.rig.domain.queue_work(&work).map(|id| {
                    self.accepted.fetch_add(1, Ordering::SeqCst);
                    let mut works = lock(&self.works);
                    if works.len() < REMEMBERED {
                        works.push(id);
                    } else {
                        works[rng.random_range(0..REMEMBERED)] = id;
                    }
                })
            }
            3 => {
                let id = lock(&self.works).pop();
                id.map_or(Ok(()), |id| {
                    let flags = kfi::uapi::KFI_SHIM_WORK_RELEASE;
                    let cancelled = self.rig.domain.cancel_work(id, flags);
                    if cancelled.is_ok() {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                    }
                    cancelled
                })
            }
            4 if self.flushes => {
                let one = rng.random_bool(0.9).then_some(&*counter);
                self.rig.domain.flush_work(one)
            }
            4 => counter.read_err().map(|_| ()),
            _ => {
                let new = Arc::new(self.rig.domain.counter(&CntrAttr::new())?);
                let slot = &self.counters[rng.random_range(0..COUNTERS)];
                let old = lock(slot).clone();
                let closed = self.rig.session.close_handle(old.handle());
                if closed.is_ok() {
                    *lock(slot) = new;
                }
                closed
            }
        }
    }

    /// One step of somebody; an object that is closed meanwhile is no error.
    fn step(&self, role: usize, rng: &mut SmallRng) -> Outcome {
        let result = self.act(role, rng);
        self.done[role].fetch_add(1, Ordering::Relaxed);
        match result {
            // Pending works and waiters keep a counter, and one that is gone is gone.
            Err(error) if is_busy(&error) => Ok(()),
            Ok(()) | Err(Error::Os(Errno::BADF | Errno::INTR)) => Ok(()),
            Err(Error::Fabric(errno)) => {
                let fine = [
                    KfiErrno::ETIMEDOUT,
                    KfiErrno::EAVAIL,
                    KfiErrno::ENOENT,
                    KfiErrno::ENOSPC,
                    KfiErrno::EAGAIN,
                ];
                check!(fine.contains(&errno), "role {role}: {errno}");
                Ok(())
            }
            Err(error) => Err(Stop::fail(format!("role {role}: {error}"))),
        }
    }
}

/// Adders, waiters, submitters, cancellers, flushers and closers on all CPUs: each work that was
/// accepted is done once, or was cancelled.
fn counters_and_works(env: &Env) -> Outcome {
    let time = Duration::from_secs_f64(env.settings.soak * env.settings.scale.clamp(0.1, 1.0));
    let start = Instant::now();
    let mut totals = [0; 6];
    let (mut rounds, mut accepted, mut cancelled) = (0_u64, 0, 0);
    while rounds < 2 || start.elapsed() < time {
        let rig = Rig::new(env)?;
        let mut counters = Vec::new();
        for _ in 0..COUNTERS {
            counters.push(Mutex::new(rig.counter()?));
        }
        let field = Field {
            counters,
            sum: rig.counter()?,
            works: Mutex::default(),
            flushes: rounds % 2 == 1,
            over: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            done: Default::default(),
            rig: &rig,
        };
        let begin = Instant::now();
        in_threads(0..THREADS, |thread| {
            pin(thread)?;
            let seed = env.settings.seed ^ (rounds << 8) ^ thread as u64;
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut steps = 0;
            loop {
                if field.over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                // A thread that has hardly had a CPU has some to go.
                if begin.elapsed() >= ROUND && steps >= ENOUGH {
                    return Ok(());
                }
                let role = ROLES[rng.random_range(0..ROLES.len())];
                field.step(role, &mut rng).inspect_err(|_| {
                    field.over.store(true, Ordering::Relaxed);
                })?;
                steps += 1;
            }
        })?;
        // All works that are still pending are due now.
        for counter in &field.counters {
            let counter = lock(counter).clone();
            counter.add(1 << 32)?;
        }
        let is = field.accepted.load(Ordering::SeqCst);
        let taken = field.cancelled.load(Ordering::SeqCst);
        if field.flushes {
            field.rig.domain.flush_work(None)?;
            check!(field.sum.read()? <= is - taken, "works were done twice");
        } else {
            field.sum.wait_ms(is - taken, 60_000)?;
            check_eq!(field.sum.read()?, is - taken, "works that were done");
        }
        accepted += is;
        cancelled += taken;
        for (total, done) in totals.iter_mut().zip(&field.done) {
            *total += done.load(Ordering::Relaxed);
        }
        rounds += 1;
        drop(field);
        rig.close()?;
    }
    let [added, waited, submitted, cancels, flushed, closed] = totals;
    env.note(format!(
        "{rounds} rounds: {added} changes, {waited} waits, {submitted} submissions ({accepted} \
         accepted), {cancels} cancellations ({cancelled} in time), {flushed} flushes or reads, \
         {closed} closes"
    ));
    Ok(())
}
