// SPDX-License-Identifier: GPL-2.0

//! The messages sent, compared with those received.

use std::collections::BTreeMap;

use crate::control::Life;
use crate::leader::Books;

/// Of all scenarios up to now.
#[derive(Default)]
pub(crate) struct Accounts {
    /// From whom to whom: messages of which success was told, and others.
    sent: BTreeMap<(Life, Life), (u64, u64)>,
}

/// Sums of one scenario, for people.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) accesses: u64,
    pub(crate) failed_accesses: u64,
}

impl Accounts {
    /// Adds what was done in a scenario; returns what is wrong. If it was `calm` nothing may fail.
    pub(crate) fn settle(&mut self, books: &Books, calm: bool, sums: &mut Sums) -> Vec<String> {
        let mut wrong = Vec::new();
        let complaints = books.done.iter().map(|(life, done)| (life, &done.wrong));
        let received = books.received.iter();
        for (life, texts) in complaints.chain(received.map(|(life, one)| (life, &one.wrong))) {
            let texts = texts.iter();
            wrong.extend(texts.map(|text| format!("machine {}: {text}", life.machine)));
        }
        for (from, done) in &books.done {
            sums.accesses += done.accesses;
            sums.failed_accesses += done.failed_accesses;
            for sent in &done.sent {
                let (succeeded, failed) = self.sent.entry((*from, sent.to)).or_default();
                *succeeded += sent.succeeded;
                *failed += sent.failed;
                sums.succeeded += sent.succeeded;
                sums.failed += sent.failed;
            }
        }
        for (to, received) in &books.received {
            for from in books.done.keys().filter(|from| from.machine != to.machine) {
                let count = received.from.iter().find(|(life, _)| life == from);
                let count = count.map_or(0, |(_, count)| *count);
                let (least, most) = self.bounds(*from, *to);
                if !(least..=most).contains(&count) {
                    wrong.push(format!(
                        "{to:?} should have received {least} to {most} messages of {from:?}, not {count}"
                    ));
                }
            }
        }
        let failed = sums.failed + sums.failed_accesses;
        if calm && failed != 0 {
            wrong.push(format!("{failed} operations have failed"));
        }
        wrong
    }

    /// Returns how many messages the one has received of the other, at least and at most.
    fn bounds(&self, from: Life, to: Life) -> (u64, u64) {
        let (succeeded, failed) = self.sent.get(&(from, to)).copied().unwrap_or_default();
        // The sender may have learned of this life later than messages came to it.
        let earlier = self.sent.iter().filter(|((sender, receiver), _)| {
            *sender == from && receiver.machine == to.machine && *receiver != to
        });
        let earlier: u64 = earlier.map(|(_, (one, other))| one + other).sum();
        (succeeded, succeeded + failed + earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Done, Received, Sent};

    const ONE: Life = Life {
        machine: 1,
        number: 11,
    };
    const TWO: Life = Life {
        machine: 2,
        number: 22,
    };
    const AGAIN: Life = Life {
        machine: 2,
        number: 23,
    };

    fn books(sent: &[(Life, u64, u64)], received: (Life, u64)) -> Books {
        let sent = sent.iter().map(|(to, succeeded, failed)| Sent {
            to: *to,
            succeeded: *succeeded,
            failed: *failed,
        });
        let done = Done {
            sent: sent.collect(),
            ..Done::default()
        };
        let (to, count) = received;
        let received = Received {
            from: vec![(ONE, count)],
            wrong: Vec::new(),
        };
        Books {
            done: BTreeMap::from([(ONE, done)]),
            received: BTreeMap::from([(to, received)]),
        }
    }

    fn settle(sent: &[(Life, u64, u64)], received: (Life, u64), calm: bool) -> usize {
        let mut accounts = Accounts::default();
        let books = books(sent, received);
        accounts.settle(&books, calm, &mut Sums::default()).len()
    }

    #[test]
    fn what_succeeded_has_come() {
        assert_eq!(settle(&[(TWO, 5, 0)], (TWO, 5), true), 0);
        assert_eq!(settle(&[(TWO, 5, 0)], (TWO, 4), true), 1);
        assert_eq!(settle(&[(TWO, 5, 0)], (TWO, 6), true), 1);
    }

    #[test]
    fn what_failed_may_have_come() {
        for (count, wrong) in [(4, 1), (5, 0), (7, 0), (8, 1)] {
            assert_eq!(
                settle(&[(TWO, 5, 2)], (TWO, count), false),
                wrong,
                "{count}"
            );
        }
        assert_eq!(settle(&[(TWO, 5, 2)], (TWO, 5), true), 1);
    }

    #[test]
    fn what_was_for_an_earlier_life_may_have_come() {
        let sent = [(TWO, 3, 1), (AGAIN, 5, 2)];
        for (count, wrong) in [(4, 1), (5, 0), (11, 0), (12, 1)] {
            assert_eq!(settle(&sent, (AGAIN, count), false), wrong, "{count}");
        }
    }

    #[test]
    fn scenarios_add_up() {
        let mut accounts = Accounts::default();
        for count in [5, 10] {
            let books = books(&[(TWO, 5, 0)], (TWO, count));
            assert!(accounts
                .settle(&books, true, &mut Sums::default())
                .is_empty());
        }
    }
}
