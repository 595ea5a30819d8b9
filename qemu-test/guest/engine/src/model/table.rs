// SPDX-License-Identifier: GPL-2.0

//! Where to find what is pending.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::config;
use crate::alloc::GFP_KERNEL;
use crate::error::ENOSPC;
use crate::grown::Grown;
use crate::trigger::pending::PendingKind;
use crate::trigger::pending_table::{Entered, FoundWork, PendingName, PendingOwner, PendingTable};
use crate::trigger::threshold::Key;

/// Shows whether one is kept that should not be.
type Counter = Rc<u64>;

#[derive(Clone, Copy, Debug)]
enum Step {
    AddOwner,
    RemoveOwner(Index),
    Insert {
        id: usize,
        kind: PendingKind,
        owner: Option<Index>,
    },
    /// It has run, or was taken back.
    Remove(Index),
    /// Looks for one, and keeps what was found.
    Find {
        id: usize,
        kind: PendingKind,
        owner: Option<Index>,
    },
    /// Of what was found at some time.
    PassOver(Index),
    Cancel(Index),
    TakeOwned(Index),
    Deferred,
}

/// Few, so that some are equal; and pointers into an array, or anywhere.
fn id() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0..4_usize,
        3 => (0..200_usize).prop_map(|at| 0xffff_8880_1234_0000 + at * 64),
        1 => any::<usize>(),
    ]
}

fn kind() -> impl Strategy<Value = PendingKind> {
    prop_oneof![Just(PendingKind::Deferred), Just(PendingKind::Triggered)]
}

fn step() -> impl Strategy<Value = Step> {
    let owner = || proptest::option::of(any::<Index>());
    prop_oneof![
        1 => Just(Step::AddOwner),
        1 => any::<Index>().prop_map(Step::RemoveOwner),
        12 => (id(), kind(), owner()).prop_map(|(id, kind, owner)| Step::Insert { id, kind, owner }),
        5 => any::<Index>().prop_map(Step::Remove),
        4 => (id(), kind(), owner()).prop_map(|(id, kind, owner)| Step::Find { id, kind, owner }),
        2 => any::<Index>().prop_map(Step::PassOver),
        2 => any::<Index>().prop_map(Step::Cancel),
        2 => any::<Index>().prop_map(Step::TakeOwned),
        1 => Just(Step::Deferred),
    ]
}

/// Something pending, in the order of submission.
struct Row {
    slot: u32,
    name: PendingName,
    owner: PendingOwner,
    key: Key,
    /// It can be found by its name, and by its endpoint.
    listed: bool,
    owned: bool,
    cancelled: bool,
}

struct Both {
    rows: Vec<Row>,
    owners: Vec<PendingOwner>,
    found: Vec<FoundWork<Counter>>,
    counter: Counter,
    limit: usize,
    submitted: u64,
    /// Each operation is the number of its submission, and shows whether one is kept that should not be.
    table: PendingTable<Rc<u64>, Counter>,
}

fn same(found: Option<&FoundWork<Counter>>, row: Option<&Row>) {
    let found = found.map(|found| (found.key.sequence, found.key.threshold, found.kind));
    let row = row.map(|row| (row.key.sequence, row.key.threshold, row.name.kind));
    assert_eq!(found, row);
}

impl Both {
    fn new(limit: usize, secret: u64) -> Self {
        Self {
            rows: Vec::new(),
            owners: Vec::new(),
            found: Vec::new(),
            counter: Rc::new(7),
            limit,
            submitted: 0,
            table: PendingTable::new(limit, secret).expect("memory"),
        }
    }

    fn owner(&self, owner: Option<&Index>) -> PendingOwner {
        match owner {
            Some(owner) if !self.owners.is_empty() => *owner.get(&self.owners),
            _ => PendingOwner::NOBODY,
        }
    }

    fn add_owner(&mut self) {
        if let Some(len) = self.table.owners_wanted() {
            let more = Grown::allocate(len).expect("memory");
            assert_eq!(self.table.grow_owners(more).capacity(), 0);
        }
        let owner = self.table.add_owner().expect("there is memory");
        assert!(!self.owners.contains(&owner));
        self.owners.push(owner);
    }

    fn remove_owner(&mut self, which: Index) {
        if self.owners.is_empty() {
            return;
        }
        let at = which.index(self.owners.len());
        let owner = self.owners[at];
        // Of which there is nothing in the table.
        if self.rows.iter().all(|row| row.owner != owner) {
            self.owners.swap_remove(at);
            self.table.remove_owner(owner);
        }
    }

    fn insert(&mut self, id: usize, kind: PendingKind, owner: PendingOwner) {
        let threshold = id as u64 ^ self.submitted;
        let entered = Entered {
            id,
            owner,
            kind,
            counter: &self.counter.clone(),
            threshold,
        };
        let mut grown = false;
        let mut value = Some(Rc::new(self.submitted));
        let noted = loop {
            match self.table.insert(&entered, &mut value) {
                Ok(Some(noted)) => break noted,
                Ok(None) => {
                    assert!(!grown, "more slots have not helped");
                    grown = true;
                    let wanted = self.table.wanted(owner);
                    let chunk = PendingTable::new_chunk(&wanted, GFP_KERNEL).expect("memory");
                    drop(self.table.grow(chunk));
                }
                Err(error) => {
                    assert_eq!(error, ENOSPC);
                    assert!(value.is_some());
                    assert_eq!(self.rows.len(), self.limit);
                    return;
                }
            }
        };
        let (slot, key) = noted;
        assert!(value.is_none());
        assert!(self.rows.len() < self.limit);
        assert!(self.rows.iter().all(|row| row.slot != slot));
        assert_eq!((key.threshold, key.sequence), (threshold, self.submitted));
        self.submitted += 1;
        let name = PendingName {
            id,
            owner: match kind {
                PendingKind::Triggered => owner,
                PendingKind::Deferred => PendingOwner::NOBODY,
            },
            kind,
        };
        self.rows.push(Row {
            slot,
            name,
            owner,
            key,
            listed: true,
            owned: owner != PendingOwner::NOBODY,
            cancelled: false,
        });
    }

    fn remove(&mut self, at: usize) {
        let row = self.rows.remove(at);
        let removed = self.table.remove(row.slot).expect("it is there");
        assert_eq!(removed.cancelled, row.cancelled);
        assert!(removed.key == row.key);
        assert_eq!(*removed.value, row.key.sequence);
        assert_eq!(Rc::strong_count(&removed.value), 1);
        // Not twice.
        assert!(self.table.remove(row.slot).is_none());
    }

    fn find(&mut self, name: PendingName) {
        let found = self.table.find(name);
        let last = |row: &&Row| row.listed && row.name == name;
        same(found.as_ref(), self.rows.iter().rev().find(last));
        self.found.extend(found);
    }

    /// Returns what was found, and the row if it is still there.
    fn found(&mut self, which: Index) -> Option<(FoundWork<Counter>, Option<usize>)> {
        if self.found.is_empty() {
            return None;
        }
        let at = which.index(self.found.len());
        let found = self.found.swap_remove(at);
        let sequence = found.key.sequence;
        let row = self
            .rows
            .iter()
            .position(|row| row.key.sequence == sequence);
        Some((found, row))
    }

    fn deferred(&self) {
        let mut found = Vec::new();
        let mut at = Some(0);
        while let Some(begin) = at {
            let one;
            (at, one) = self.table.next_deferred(begin);
            found.extend(one.map(|one| one.key.sequence));
        }
        found.sort_unstable();
        let deferred = |row: &&Row| row.name.kind == PendingKind::Deferred;
        let rows = self.rows.iter().filter(deferred);
        assert!(rows.map(|row| row.key.sequence).eq(found));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::AddOwner => self.add_owner(),
            Step::RemoveOwner(which) => self.remove_owner(which),
            Step::Insert { id, kind, owner } => {
                let owner = self.owner(owner.as_ref());
                self.insert(id, kind, owner);
            }
            Step::Remove(which) => {
                if !self.rows.is_empty() {
                    self.remove(which.index(self.rows.len()));
                }
            }
            Step::Find { id, kind, owner } => {
                let owner = match kind {
                    PendingKind::Triggered => self.owner(owner.as_ref()),
                    PendingKind::Deferred => PendingOwner::NOBODY,
                };
                self.find(PendingName { id, owner, kind });
            }
            Step::PassOver(which) => {
                if let Some((found, row)) = self.found(which) {
                    self.table.pass_over(&found);
                    if let Some(row) = row {
                        self.rows[row].listed = false;
                    }
                }
            }
            Step::Cancel(which) => {
                if let Some((found, row)) = self.found(which) {
                    self.table.cancel(&found);
                    if let Some(row) = row {
                        self.rows[row].listed = false;
                        self.rows[row].cancelled = true;
                    }
                }
            }
            Step::TakeOwned(which) => {
                if !self.owners.is_empty() {
                    let owner = *which.get(&self.owners);
                    let found = self.table.take_owned(owner);
                    let last = |row: &&mut Row| row.owned && row.owner == owner;
                    let row = self.rows.iter_mut().rev().find(last);
                    same(found.as_ref(), row.as_deref());
                    if let Some(row) = row {
                        row.owned = false;
                    }
                }
            }
            Step::Deferred => self.deferred(),
        }
        assert_eq!(self.table.next_sequence(), self.submitted);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn finds_what_the_model_finds(
        limit in prop_oneof![0..4_usize, Just(300), Just(100_000)],
        secret: u64,
        steps in vec(step(), 0..600),
    ) {
        let mut both = Both::new(limit, secret);
        for step in steps {
            both.step(step);
        }
        // All names, and then nothing is left.
        for name in both.rows.iter().map(|row| row.name).collect::<Vec<_>>() {
            both.find(name);
        }
        while !both.rows.is_empty() {
            assert!(both.table.take_memory().is_none());
            both.remove(both.rows.len() / 2);
        }
        both.found.clear();
        assert_eq!(Rc::strong_count(&both.counter), 1);
        assert!(both.table.take_memory().is_some());
    }
}
