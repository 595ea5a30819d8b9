// SPDX-License-Identifier: GPL-2.0

//! Entries pending on a counter, and the order in which they run when due: by batches as they became
//! due, in each by threshold and then by submission, whichever of the two sets it was in.

use std::collections::{BTreeSet, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{config, number};
use crate::alloc::{KBox, GFP_KERNEL};
use crate::trigger::due_queue::DueQueue;
use crate::trigger::pending::PendingKind;
use crate::trigger::pending_table::{Entered, PendingOwner, PendingTable};
use crate::trigger::threshold::{detach_due, Block, Emptied, Entry, Key, ThresholdSet, Tree};

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit {
        deferred: bool,
        threshold: u64,
        /// How many, and how far their thresholds are apart: more than a block takes, at times.
        count: u64,
        step: u64,
    },
    Cancel {
        deferred: bool,
        which: Index,
    },
    /// Those that follow one.
    CancelMany {
        deferred: bool,
        which: Index,
        count: usize,
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
    /// Some that are due, one by one, and not those next to them.
    FireSome {
        deferred: bool,
        every: usize,
    },
    Flush {
        deferred: bool,
    },
    /// As many as that, and up to one that may not run now.
    Run {
        count: usize,
        refused: Option<Index>,
    },
    Look {
        deferred: bool,
        after: Option<(u64, Index)>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let deferred = any::<bool>();
    let many = prop_oneof![3 => Just(1), 1 => 1..80_u64];
    prop_oneof![
        8 => (deferred, number(), many, 0..3_u64).prop_map(|(deferred, threshold, count, step)| {
            Step::Submit { deferred, threshold, count, step }
        }),
        3 => (deferred, any::<Index>()).prop_map(|(deferred, which)| Step::Cancel { deferred, which }),
        1 => (deferred, any::<Index>(), 0..80_usize)
            .prop_map(|(deferred, which, count)| Step::CancelMany { deferred, which, count }),
        1 => (deferred, number())
            .prop_map(|(deferred, threshold)| Step::CancelOther { deferred, threshold }),
        2 => (number(), 0..3_u64).prop_map(|(success, error)| Step::Fire { success, error }),
        1 => (deferred, 1..4_usize).prop_map(|(deferred, every)| Step::FireSome { deferred, every }),
        1 => deferred.prop_map(|deferred| Step::Flush { deferred }),
        3 => (0..100_usize, proptest::option::of(any::<Index>()))
            .prop_map(|(count, refused)| Step::Run { count, refused }),
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
    /// Batches of which something is left.
    due: VecDeque<VecDeque<(u64, u64)>>,
    /// How many have left.
    left: u64,
}

impl Model {
    fn append(&mut self, batch: Pending) {
        if !batch.is_empty() {
            self.due.push_back(batch.into_iter().collect());
        }
    }

    fn fire(&mut self, success: u64, error: u64) {
        let values = [success, success.saturating_add(error)];
        let mut batch = Pending::new();
        for (pending, value) in self.pending.iter_mut().zip(values) {
            let due = |(threshold, _): &(u64, u64)| *threshold <= value;
            batch.extend(pending.iter().copied().filter(due));
            pending.retain(|entry| !due(entry));
        }
        self.append(batch);
    }

    fn run(&mut self) -> Option<(u64, u64)> {
        let batch = self.due.front_mut()?;
        let entry = batch.pop_front();
        if batch.is_empty() {
            self.due.pop_front();
            self.left += 1;
        }
        entry
    }

    fn next(&self) -> Option<(u64, u64)> {
        self.due.front()?.front().copied()
    }
}

/// Each operation is the number of its submission.
struct Real {
    pending: [ThresholdSet; 2],
    table: PendingTable<u64, ()>,
    queue: DueQueue,
}

fn key((threshold, sequence): (u64, u64)) -> Key {
    Key {
        threshold,
        sequence,
    }
}

fn what(entry: Entry) -> (u64, u64) {
    (entry.key.threshold, entry.key.sequence)
}

impl Real {
    fn new(seed: u64) -> Self {
        Self {
            pending: [ThresholdSet::new(seed), ThresholdSet::new(!seed)],
            table: PendingTable::new(1 << 20, seed).expect("memory"),
            queue: DueQueue::new(),
        }
    }

    fn submit(&mut self, deferred: bool, threshold: u64) {
        let entered = Entered {
            id: 7,
            owner: PendingOwner::NOBODY,
            kind: PendingKind::Deferred,
            counter: &(),
            threshold,
        };
        let mut value = Some(self.table.next_sequence());
        let (number, key) = loop {
            let inserted = self.table.insert(&entered, &mut value);
            if let Some(inserted) = inserted.expect("not too many") {
                break inserted;
            }
            let wanted = self.table.wanted(PendingOwner::NOBODY);
            let chunk = PendingTable::new_chunk(&wanted, GFP_KERNEL).expect("memory");
            drop(self.table.grow(chunk));
        };
        let set = &mut self.pending[usize::from(deferred)];
        let mut blocks = Emptied::new();
        for _ in 0..set.blocks_wanted() {
            blocks.push(Block::new(GFP_KERNEL).expect("memory"));
        }
        set.add_blocks(&mut blocks);
        assert!(set.insert(Entry { key, number }));
    }

    /// Frees a slot, and returns what was there.
    fn free(&mut self, number: u32) -> (u64, u64) {
        let removed = self.table.remove(number).expect("it is in use");
        assert_eq!(removed.key.sequence, removed.value);
        (removed.key.threshold, removed.value)
    }

    fn remove(&mut self, deferred: bool, entry: (u64, u64)) -> Option<u32> {
        let (number, block) = self.pending[usize::from(deferred)].remove(key(entry))?;
        drop::<Option<KBox<Block>>>(block);
        Some(number)
    }

    fn fire(&mut self, success: u64, error: u64) {
        let Self {
            pending: [triggered, deferred],
            table,
            queue,
        } = self;
        let sum = success.saturating_add(error);
        // As a counter does.
        let single = match (triggered.is_due(success), deferred.is_due(sum)) {
            (true, false) => triggered.pop_single_due(success),
            (false, true) => deferred.pop_single_due(sum),
            _ => None,
        };
        if let Some(entry) = single {
            assert!(!triggered.is_due(success) && !deferred.is_due(sum));
            assert!(!triggered.is_empty() || !deferred.is_empty());
            queue.append_single(table, entry);
            return;
        }
        let detached = detach_due((triggered, success), (deferred, sum), |all, trees, rest| {
            queue.append(table, trees, rest);
            all
        });
        if let Some((_, all)) = detached {
            assert_eq!(all, triggered.is_empty() && deferred.is_empty());
        }
    }

    /// Takes what is due, if it is a single one and not refused.
    fn run_single(&mut self, refused: Option<u64>) -> Option<(u64, u64)> {
        let allowed = |value: &u64| Some(*value) != refused;
        let removed = self.queue.take_single(&mut self.table, allowed)?;
        Some((removed.key.threshold, removed.value))
    }

    /// Takes so many of what is due, up to one that is refused.
    fn run(&mut self, count: usize, refused: Option<u64>) -> Vec<(u64, u64)> {
        let mut places: Vec<_> = (0..count).map(|_| None).collect();
        let mut emptied = Emptied::new();
        let allowed = |value: &u64| Some(*value) != refused;
        let taken = self
            .queue
            .take(&mut self.table, &mut places, &mut emptied, allowed);
        let removed: Vec<_> = places.into_iter().flatten().collect();
        assert_eq!(removed.len(), taken as usize);
        removed
            .into_iter()
            .map(|removed| (removed.key.threshold, removed.value))
            .collect()
    }
}

fn cancel(model: &mut Model, real: &mut Real, deferred: bool, entry: (u64, u64)) {
    model.pending[usize::from(deferred)].remove(&entry);
    let number = real.remove(deferred, entry).expect("it is there");
    assert_eq!(real.free(number), entry);
}

fn run(model: &mut Model, real: &mut Real, count: usize, refused: Option<u64>) {
    if let Some(single) = (count != 0).then(|| real.run_single(refused)).flatten() {
        assert_eq!(model.run(), Some(single));
        assert_eq!(model.next(), None);
        return;
    }
    let mut taken = real.run(count, refused).into_iter();
    for _ in 0..count {
        let next = model.next();
        if next.is_none() || next.map(|(_, sequence)| sequence) == refused {
            break;
        }
        assert_eq!(taken.next(), model.run());
    }
    assert_eq!(taken.next(), None);
}

fn take_step(model: &mut Model, real: &mut Real, step: Step) {
    match step {
        Step::Submit {
            deferred,
            threshold,
            count,
            step,
        } => {
            for i in 0..count {
                let threshold = threshold.wrapping_add(i.wrapping_mul(step));
                let sequence = model.submitted;
                model.submitted += 1;
                model.pending[usize::from(deferred)].insert((threshold, sequence));
                real.submit(deferred, threshold);
            }
        }
        Step::Cancel { deferred, which } => {
            let pending = &model.pending[usize::from(deferred)];
            if !pending.is_empty() {
                let entry = **which.get(&pending.iter().collect::<Vec<_>>());
                cancel(model, real, deferred, entry);
            }
        }
        Step::CancelMany {
            deferred,
            which,
            count,
        } => {
            let pending = &model.pending[usize::from(deferred)];
            let skipped = which.index(pending.len() + 1);
            let entries: Vec<_> = pending.iter().skip(skipped).take(count).copied().collect();
            for entry in entries {
                cancel(model, real, deferred, entry);
            }
        }
        Step::CancelOther {
            deferred,
            threshold,
        } => {
            let other = (threshold, model.submitted);
            assert!(real.remove(deferred, other).is_none());
        }
        Step::Fire { success, error } => {
            model.fire(success, error);
            real.fire(success, error);
        }
        Step::FireSome { deferred, every } => {
            let pending = &model.pending[usize::from(deferred)];
            let entries: Vec<_> = pending.iter().step_by(every).take(16).copied().collect();
            let mut row = Vec::new();
            for entry in &entries {
                model.pending[usize::from(deferred)].remove(entry);
                let number = real.remove(deferred, *entry).expect("it is there");
                let key = key(*entry);
                row.push(Entry { key, number });
            }
            if !row.is_empty() {
                let none = [const { Tree::new() }; 2];
                real.queue.append(&mut real.table, none, row.into_iter());
            }
            model.append(entries.into_iter().collect());
        }
        Step::Flush { deferred } => {
            let mut batch = real.pending[usize::from(deferred)].detach_all();
            for entry in std::mem::take(&mut model.pending[usize::from(deferred)]) {
                let (popped, _) = batch.pop().expect("there is another one");
                assert_eq!(what(popped), entry);
                assert_eq!(real.free(popped.number), entry);
            }
            assert!(batch.is_empty() && batch.pop().is_none());
        }
        Step::Run { count, refused } => {
            let due: Vec<_> = model.due.iter().flatten().collect();
            let refused = refused.filter(|_| !due.is_empty());
            let refused = refused.map(|refused| refused.get(&due).1);
            run(model, real, count, refused);
        }
        Step::Look { deferred, after } => {
            let pending = &model.pending[usize::from(deferred)];
            let after = after.map(|(threshold, which)| (threshold, which.index(1000) as u64 % 64));
            let next = pending.iter().find(|entry| Some(**entry) > after);
            let found = real.pending[usize::from(deferred)].next_after(after.map(key));
            assert_eq!(found.map(what), next.copied());
        }
    }
}

fn check(seed: u64, steps: Vec<Step>) {
    let mut model = Model::default();
    let mut real = Real::new(seed);
    for step in steps {
        take_step(&mut model, &mut real, step);
        for (pending, real) in model.pending.iter().zip(&real.pending) {
            let first = pending.first().map(|(threshold, _)| *threshold);
            assert_eq!(real.first_threshold(), first);
            assert_eq!(real.is_empty(), pending.is_empty());
        }
        let due = model.due.iter().flatten().count();
        assert_eq!(real.queue.is_empty(), due == 0);
        assert_eq!(real.queue.left(&real.table), model.left);
    }
    // The entries that are left, of both, in order.
    model.fire(u64::MAX, 0);
    real.fire(u64::MAX, 0);
    while !model.due.is_empty() {
        run(&mut model, &mut real, 1000, None);
    }
    assert!(real.queue.is_empty());
    assert!(real.table.take_memory().is_some());
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn runs_in_the_order_of_the_model(seed: u64, steps in vec(step(), 0..400)) {
        check(seed, steps);
    }
}
