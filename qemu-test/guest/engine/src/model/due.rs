// SPDX-License-Identifier: GPL-2.0

//! Entries pending on a counter, and the order in which they run when due: by batches as they became
//! due, in each by threshold and then by submission, whichever of the two sets it was in.

use std::collections::{BTreeSet, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{config, number};
use crate::alloc::{KBox, GFP_KERNEL};
use crate::trigger::threshold::{BatchQueue, BatchStack, Key, ThresholdEntry, ThresholdSet};

#[derive(Clone, Debug)]
enum Step {
    Submit {
        deferred: bool,
        threshold: u64,
    },
    Cancel {
        deferred: bool,
        which: Index,
    },
    /// Of one that was never there, or is not any more.
    CancelOther {
        deferred: bool,
        threshold: u64,
    },
    Fire {
        success: u64,
        error: u64,
    },
    Flush {
        deferred: bool,
    },
    Run {
        count: usize,
        put_back: bool,
    },
    Look {
        deferred: bool,
        after: Option<(u64, Index)>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let deferred = any::<bool>();
    prop_oneof![
        8 => (deferred, number()).prop_map(|(deferred, threshold)| Step::Submit { deferred, threshold }),
        3 => (deferred, any::<Index>()).prop_map(|(deferred, which)| Step::Cancel { deferred, which }),
        1 => (deferred, number())
            .prop_map(|(deferred, threshold)| Step::CancelOther { deferred, threshold }),
        2 => (number(), 0..3_u64).prop_map(|(success, error)| Step::Fire { success, error }),
        1 => deferred.prop_map(|deferred| Step::Flush { deferred }),
        3 => (0..20_usize, any::<bool>()).prop_map(|(count, put_back)| Step::Run { count, put_back }),
        2 => (deferred, proptest::option::of((number(), any::<Index>())))
            .prop_map(|(deferred, after)| Step::Look { deferred, after }),
    ]
}

/// A pending entry is known by its threshold and number.
type Pending = BTreeSet<(u64, u64)>;

#[derive(Default)]
struct Model {
    pending: [Pending; 2],
    submitted: u64,
    due: VecDeque<(u64, u64)>,
}

impl Model {
    fn fire(&mut self, success: u64, error: u64) {
        let values = [success, success.saturating_add(error)];
        let mut batch = Pending::new();
        for (pending, value) in self.pending.iter_mut().zip(values) {
            let due = |(threshold, _): &(u64, u64)| *threshold <= value;
            batch.extend(pending.iter().copied().filter(due));
            pending.retain(|entry| !due(entry));
        }
        self.due.extend(batch);
    }
}

struct Real {
    pending: [ThresholdSet<u64>; 2],
    stack: BatchStack<u64>,
    queue: BatchQueue<u64>,
}

fn key((threshold, sequence): (u64, u64)) -> Key {
    Key {
        threshold,
        sequence,
    }
}

fn what(entry: &ThresholdEntry<u64>) -> (u64, u64) {
    assert_eq!(entry.key().sequence, entry.value);
    (entry.key().threshold, entry.value)
}

impl Real {
    fn new(seed: u64) -> Self {
        Self {
            pending: [ThresholdSet::new(seed), ThresholdSet::new(!seed)],
            stack: BatchStack::new(),
            queue: BatchQueue::new(),
        }
    }

    fn fire(&mut self, success: u64, error: u64) {
        let [triggered, deferred] = &mut self.pending;
        let one = triggered.detach_due(success);
        let other = deferred.detach_due(success.saturating_add(error));
        self.stack.push(one, other);
    }

    /// As a drainer does, which takes what has become due only when it has run all from before.
    fn run(&mut self) -> Option<KBox<ThresholdEntry<u64>>> {
        if self.queue.is_empty() {
            self.queue = self.stack.take();
        }
        self.queue.pop()
    }
}

fn check(seed: u64, steps: Vec<Step>) {
    let mut model = Model::default();
    let mut real = Real::new(seed);
    for step in steps {
        match step {
            Step::Submit {
                deferred,
                threshold,
            } => {
                let sequence = model.submitted;
                model.submitted += 1;
                model.pending[usize::from(deferred)].insert((threshold, sequence));
                let entry = ThresholdEntry::new(sequence, GFP_KERNEL).expect("memory");
                real.pending[usize::from(deferred)].insert(entry, key((threshold, sequence)));
            }
            Step::Cancel { deferred, which } => {
                let pending = &mut model.pending[usize::from(deferred)];
                if !pending.is_empty() {
                    let entry = *which.get(&pending.iter().collect::<Vec<_>>());
                    let entry = *entry;
                    pending.remove(&entry);
                    let removed = real.pending[usize::from(deferred)].remove(key(entry));
                    assert_eq!(removed.map(|removed| what(&removed)), Some(entry));
                }
            }
            Step::CancelOther {
                deferred,
                threshold,
            } => {
                let other = key((threshold, model.submitted));
                assert!(real.pending[usize::from(deferred)].remove(other).is_none());
            }
            Step::Fire { success, error } => {
                model.fire(success, error);
                real.fire(success, error);
            }
            Step::Flush { deferred } => {
                let mut batch = real.pending[usize::from(deferred)].detach_all();
                for entry in std::mem::take(&mut model.pending[usize::from(deferred)]) {
                    assert_eq!(batch.pop().map(|popped| what(&popped)), Some(entry));
                }
                assert!(batch.is_empty() && batch.pop().is_none());
            }
            Step::Run { count, put_back } => {
                for _ in 0..count {
                    let mut entry = real.run();
                    if put_back {
                        if let Some(entry) = entry.take() {
                            real.queue.put_back(entry);
                        }
                        entry = real.run();
                    }
                    assert_eq!(entry.map(|entry| what(&entry)), model.due.pop_front());
                }
            }
            Step::Look { deferred, after } => {
                let pending = &model.pending[usize::from(deferred)];
                let after =
                    after.map(|(threshold, which)| (threshold, which.index(1000) as u64 % 64));
                let next = pending.iter().find(|entry| Some(**entry) > after);
                let found = real.pending[usize::from(deferred)].next_after(after.map(key));
                assert_eq!(found.map(what), next.copied());
            }
        }
        for (pending, real) in model.pending.iter().zip(&real.pending) {
            let first = pending.first().map(|(threshold, _)| *threshold);
            assert_eq!(real.first_threshold(), first);
            assert_eq!(real.is_empty(), pending.is_empty());
        }
    }
    // The entries that are left, of both, in order.
    model.fire(u64::MAX, 0);
    real.fire(u64::MAX, 0);
    while let Some(entry) = real.run() {
        assert_eq!(Some(what(&entry)), model.due.pop_front());
    }
    assert!(model.due.is_empty());
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn runs_in_the_order_of_the_model(seed: u64, steps in vec(step(), 0..400)) {
        check(seed, steps);
    }
}
