// SPDX-License-Identifier: GPL-2.0

//! Additions against threads that join a counter, in all orders that their reads and writes can have.
//!
//! The lock protects the same state here as in the counter; the words, and in which order they are
//! written and read, are those of the kernel's file. Only the addition itself is written anew, as that
//! is C in the kernel.

use loom::sync::atomic::{
    fence, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::attention::{self, Words};

/// Nothing is due.
const NEVER: u64 = 1 << 63;

/// The part that the lock protects.
#[derive(Default)]
struct State {
    /// Thresholds for the success value, and for its sum with the error value.
    triggered: Vec<u64>,
    deferred: Vec<u64>,
    /// How many have fired.
    fired: usize,
    /// There may be a listener that has to see every change.
    watched: bool,
}

struct Counter {
    success: AtomicU64,
    attention: AtomicU64,
    due: AtomicU64,
    error: AtomicU64,
    /// Somebody listens to the wait queue, and how often that was woken.
    listening: AtomicUsize,
    woken: AtomicUsize,
    state: Mutex<State>,
    /// Whether the barrier is one.
    barrier: bool,
    /// Whether additions are fully ordered.
    ordered: bool,
}

impl Words for Counter {
    fn success(&self) -> u64 {
        self.success.load(Relaxed)
    }

    fn due(&self) -> u64 {
        self.due.load(Relaxed)
    }

    fn publish(&self, due: u64, attention: u64) {
        self.due.store(due, Relaxed);
        self.attention.store(attention, Relaxed);
    }

    fn full_barrier(&self) {
        if self.barrier {
            fence(SeqCst);
        }
    }
}

impl Counter {
    fn new(barrier: bool, ordered: bool) -> Arc<Self> {
        Arc::new(Self {
            success: AtomicU64::new(0),
            attention: AtomicU64::new(NEVER),
            due: AtomicU64::new(NEVER),
            error: AtomicU64::new(0),
            listening: AtomicUsize::new(0),
            woken: AtomicUsize::new(0),
            state: Mutex::new(State::default()),
            barrier,
            ordered,
        })
    }

    fn first(&self, state: &State) -> u64 {
        let error = self.error.load(Relaxed);
        let triggered = state.triggered.iter().copied();
        let deferred = state.deferred.iter().map(|sum| sum.saturating_sub(error));
        triggered.chain(deferred).min().unwrap_or(NEVER)
    }

    /// Lets what is due at these values fire, and publishes what is left; under the lock.
    fn fire(&self, state: &mut State, success: u64, error: u64) {
        let before = state.triggered.len() + state.deferred.len();
        state.triggered.retain(|threshold| *threshold > success);
        state.deferred.retain(|sum| *sum > success + error);
        state.fired += before - state.triggered.len() - state.deferred.len();
        attention::publish(self, self.first(state), state.watched);
    }

    /// `kfi_rust_helper_tally_add()`, and `Counter::attend_late`.
    fn add(&self, value: u64) {
        if self.ordered {
            fence(SeqCst);
        }
        let sum = self.success.fetch_add(value, Relaxed) + value;
        if self.ordered {
            fence(SeqCst);
        }
        if sum < self.attention.load(Relaxed) && sum >= value {
            return;
        }
        if attention::needs_lock(self, value, sum) {
            let mut state = self.state.lock().expect("the lock");
            let now = self.success.load(Relaxed);
            let error = self.error.load(Relaxed);
            self.fire(&mut state, now, error);
        }
        self.tell();
    }

    /// `Counter::tell`.
    fn tell(&self) {
        if self.listening.load(Relaxed) != 0 {
            self.woken.fetch_add(1, Release);
        }
    }

    /// `Counter::enqueue`.
    fn submit(&self, deferred: bool, threshold: u64) {
        let mut state = self.state.lock().expect("the lock");
        if deferred {
            state.deferred.push(threshold);
        } else {
            state.triggered.push(threshold);
        }
        let first = self.first(&state);
        let joins = || attention::join(self, first, state.watched);
        let value = attention::look_after_submit(self, first, joins);
        if first <= value {
            let error = self.error.load(Relaxed);
            self.fire(&mut state, value, error);
        }
    }

    /// `Counter::change_error`.
    fn fail(&self) {
        {
            let mut state = self.state.lock().expect("the lock");
            let error = self.error.load(Relaxed) + 1;
            self.error.store(error, Release);
            attention::join(self, self.first(&state), state.watched);
            let value = self.success.load(Relaxed);
            self.fire(&mut state, value, error);
        }
        self.tell();
    }

    /// Listens to the wait queue, and asks by trywait whether it may block; returns whether it does.
    fn listen(&self) -> bool {
        self.listening.store(1, Relaxed);
        let mut state = self.state.lock().expect("the lock");
        state.watched = true;
        attention::join(self, 0, true);
        drop(state);
        self.success.load(Acquire) == 0 && self.error.load(Acquire) == 0
    }

    /// Asks for the wait queue, and then listens to it as a thread does that knows nothing of trywait;
    /// returns whether it blocks.
    fn ask_and_listen(&self) -> bool {
        let mut state = self.state.lock().expect("the lock");
        state.watched = true;
        attention::join(self, self.first(&state), true);
        drop(state);
        self.listening.store(1, Relaxed);
        // The barrier of prepare_to_wait().
        fence(SeqCst);
        self.success.load(Acquire) == 0
    }

    fn fired(&self) -> usize {
        self.state.lock().expect("the lock").fired
    }
}

/// Runs `threads` on a counter in all orders, and then `check`. Returns whether that found nothing wrong.
///
/// Of three threads, in those in which no more than two times one of them stops where it could have
/// gone on: all would take minutes.
fn holds(
    (barrier, ordered): (bool, bool),
    threads: &'static [fn(&Counter)],
    check: fn(&Counter) -> bool,
) -> bool {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (threads.len() > 2).then_some(2);
    let all = std::panic::catch_unwind(|| {
        model.check(move || {
            let counter = Counter::new(barrier, ordered);
            let (here, beside) = threads.split_first().expect("a thread");
            let beside: Vec<_> = beside
                .iter()
                .map(|run| {
                    let counter = counter.clone();
                    thread::spawn(move || run(&counter))
                })
                .collect();
            here(&counter);
            for thread in beside {
                thread.join().expect("a thread that ends");
            }
            assert!(check(&counter), "something was lost");
        });
    });
    all.is_ok()
}

/// Checks that it holds, and does not without the barrier or with an addition that is not fully
/// ordered.
fn holds_by_its_orders(threads: &'static [fn(&Counter)], check: fn(&Counter) -> bool) {
    assert!(holds((true, true), threads, check));
    assert!(!holds((false, true), threads, check), "without the barrier");
    assert!(!holds((true, false), threads, check), "without order");
}

#[test]
fn what_is_submitted_fires() {
    holds_by_its_orders(
        &[|counter| counter.add(1), |counter| counter.submit(false, 1)],
        |counter| counter.fired() == 1,
    );
}

#[test]
fn what_is_submitted_second_fires() {
    holds_by_its_orders(
        &[
            |counter| counter.add(1),
            |counter| counter.submit(false, 1),
            |counter| counter.submit(false, 1),
        ],
        |counter| counter.fired() == 2,
    );
}

#[test]
fn two_additions_fire_what_both_make_due() {
    holds_by_its_orders(
        &[
            |counter| counter.add(1),
            |counter| counter.add(1),
            |counter| counter.submit(false, 2),
        ],
        |counter| counter.fired() == 1,
    );
}

#[test]
fn error_and_addition_fire_what_both_make_due() {
    holds_by_its_orders(
        &[
            |counter| {
                counter.submit(true, 2);
                counter.add(1);
            },
            Counter::fail,
        ],
        |counter| counter.fired() == 1,
    );
}

#[test]
fn a_listener_hears_of_an_addition() {
    // A wake-up, or the value, of which it knows; `woken` is 1 if it did not block.
    holds_by_its_orders(
        &[
            |counter| counter.add(1),
            |counter| {
                if !counter.listen() {
                    counter.woken.fetch_add(1, Release);
                }
            },
        ],
        |counter| counter.woken.load(Acquire) != 0,
    );
}

#[test]
fn a_listener_without_trywait_hears_of_an_addition() {
    // Has a barrier of its own.
    const THREADS: &[fn(&Counter)] = &[
        |counter| counter.add(1),
        |counter| {
            if !counter.ask_and_listen() {
                counter.woken.fetch_add(1, Release);
            }
        },
    ];
    let check: fn(&Counter) -> bool = |counter| counter.woken.load(Acquire) != 0;
    assert!(holds((true, true), THREADS, check));
    assert!(!holds((true, false), THREADS, check), "without order");
}
