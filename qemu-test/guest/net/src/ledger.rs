// SPDX-License-Identifier: GPL-2.0

//! The messages received, by sender: each once, in order.

use std::collections::{BTreeMap, HashMap};

use crate::control::{Life, Received};
use crate::message::{Header, Lane};

/// So many complaints are kept.
const COMPLAINTS: usize = 20;

/// So many messages of a sender are remembered: more than are ever under way.
const REMEMBERED: usize = 1000;

/// Messages of one sender through one queue.
#[derive(Debug, Default)]
struct Flow {
    /// Which receive each of the last ones has found, by its number.
    found: BTreeMap<u64, u64>,
    /// The last one that was forgotten.
    forgotten: u64,
}

impl Flow {
    /// Notes a message, and which receive it has found; says what is wrong with that.
    ///
    /// They are told of as they are complete, and long ones take their time; but earlier ones have found
    /// earlier receives. Some may be lost when a machine is reset; which, the sender knows.
    fn note(&mut self, sequence: u64, receive: u64) -> Result<(), &'static str> {
        if sequence <= self.forgotten {
            return Err("came long after others, or twice");
        }
        if self.found.contains_key(&sequence) {
            return Err("came twice");
        }
        let before = self.found.range(..sequence).next_back();
        let after = self.found.range(sequence..).next();
        if before.is_some_and(|(_, found)| *found > receive)
            || after.is_some_and(|(_, found)| *found < receive)
        {
            return Err("came out of order");
        }
        self.found.insert(sequence, receive);
        if self.found.len() > REMEMBERED {
            if let Some((sequence, _)) = self.found.pop_first() {
                self.forgotten = sequence;
            }
        }
        Ok(())
    }
}

/// Messages that were received.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    flows: HashMap<(Life, Lane), Flow>,
    counts: HashMap<Life, u64>,
    wrong: Vec<String>,
}

impl Ledger {
    /// Notes something that should not be.
    pub(crate) fn complain(&mut self, text: String) {
        if self.wrong.len() < COMPLAINTS {
            self.wrong.push(text);
        }
    }

    /// Notes a message that has come to a machine by a queue: `receive` counts the receives there.
    pub(crate) fn note(&mut self, machine: u32, lane: Lane, receive: u64, bytes: &[u8]) {
        let header = match Header::check(bytes) {
            Ok(header) => header,
            Err(error) => return self.complain(error),
        };
        if header.to != machine || header.lane != lane {
            return self.complain(format!("{header:?} came to {machine}, {lane:?}"));
        }
        let flow = self.flows.entry((header.from, lane)).or_default();
        if let Err(what) = flow.note(header.sequence, receive) {
            return self.complain(format!("{header:?} {what}"));
        }
        *self.counts.entry(header.from).or_default() += 1;
    }

    /// Returns what was noted.
    pub(crate) fn received(&self) -> Received {
        Received {
            from: self
                .counts
                .iter()
                .map(|(life, count)| (*life, *count))
                .collect(),
            wrong: self.wrong.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> Vec<u8> {
        let from = Life {
            machine: 1,
            number: 5,
        };
        let header = Header {
            from,
            to: 2,
            lane: Lane::Plain,
            sequence,
        };
        header.message(100)
    }

    fn ledger(messages: &[(u64, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (sequence, receive) in messages {
            ledger.note(2, Lane::Plain, *receive, &message(*sequence));
        }
        ledger
    }

    #[test]
    fn long_ones_may_end_late() {
        let received = ledger(&[(1, 10), (4, 13), (2, 11), (7, 14)]).received();
        assert_eq!(received.wrong, Vec::<String>::new());
        assert_eq!(received.from[0].1, 4);
    }

    #[test]
    fn doubles_and_disorder_are_seen() {
        let cases: [&[_]; 4] = [
            &[(1, 10), (2, 11), (2, 12)],
            &[(1, 10), (3, 11), (2, 12)],
            &[(2, 11), (3, 13), (1, 12)],
            &[(2, 11), (1, 12)],
        ];
        for case in cases {
            let received = ledger(case).received();
            assert_eq!(received.wrong.len(), 1, "{case:?}");
            assert_eq!(received.from[0].1, case.len() as u64 - 1, "{case:?}");
        }
    }

    #[test]
    fn late_doubles_are_seen() {
        let all: Vec<_> = (1..=3 * REMEMBERED as u64).map(|one| (one, one)).collect();
        let mut ledger = ledger(&all);
        assert!(ledger.received().wrong.is_empty());
        ledger.note(2, Lane::Plain, 10_000, &message(1));
        assert_eq!(ledger.received().wrong.len(), 1);
    }

    #[test]
    fn others_messages_are_seen() {
        let mut ledger = Ledger::default();
        ledger.note(2, Lane::Tagged, 1, &message(5));
        ledger.note(1, Lane::Plain, 1, &message(5));
        ledger.note(2, Lane::Plain, 1, &message(5)[..99]);
        assert_eq!(ledger.received().wrong.len(), 3);
        assert!(ledger.received().from.is_empty());
    }
}
