// SPDX-License-Identifier: GPL-2.0

//! A reduction whose result all get: sums, element by element.
//!
//! Four pieces of memory for each member, and four counters:
//!
//! * `entered` goes up by 1 when the member has put its numbers into `own`. They
//!   are added to `sum`, by an atomic operation of the member on itself, because
//!   numbers from below may come there at the same time;
//! * `summed` counts what has come to `sum`: the member's own numbers, and those
//!   from each one below, which adds its own `sum` when that is complete. At the
//!   top `sum` is the result then, and becomes the `result` of the top;
//! * `got` counts what has come to `result`, from above;
//! * `done` goes up when `sum` is 0 again, which is written there from `zero`.
//!   Only then the result is passed on, as in a broadcast. Without this step in
//!   between somebody below could have the result, and add the numbers of the
//!   next round to `sum` before it is cleared.
//!
//! The last one is how to put two works into an order: the completion counter of
//! the first triggers the second. Works that wait for the same threshold are
//! begun in the order in which they were queued, but the first one may still be
//! under way when the second one begins.

use std::rc::Rc;

use kfi::{Buffer, Segment};

use super::graph::{Graph, NamedCounter};
use super::team::{Team, Window, WORD};
use super::Collective;
use crate::output::Problem;

/// The pieces of a member's memory, in this order.
#[derive(Clone, Copy)]
enum Piece {
    Own,
    Sum,
    Result,
    Zero,
}

const PIECES: usize = 4;

/// The reduction.
#[derive(Debug)]
pub(crate) struct Allreduce {
    entered: Vec<Rc<NamedCounter>>,
    done: Vec<Rc<NamedCounter>>,
    _windows: [Vec<Window>; 3],
    memory: Vec<Buffer>,
    /// Elements.
    count: usize,
}

impl Allreduce {
    /// Builds it.
    pub(crate) fn new(team: &Team, graph: &mut Graph, count: usize) -> Result<Self, Problem> {
        let entered = team.counters("entered")?;
        let summed = team.counters("summed")?;
        let got = team.counters("got")?;
        let done = team.counters("done")?;
        let memory = team.memory(PIECES * count * WORD)?;
        let piece = |member: usize, piece: Piece| -> Segment {
            let size = (count * WORD) as u64;
            let start = piece as u64 * size;
            memory[member].segment(start..start + size)
        };
        let windows = |which: Piece, counters: Option<&[Rc<NamedCounter>]>| {
            (0..team.size())
                .map(|member| {
                    let counter = counters.map(|counters| &counters[member]);
                    team.window(member, piece(member, which), counter)
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let sums = windows(Piece::Sum, Some(&summed))?;
        let results = windows(Piece::Result, Some(&got))?;
        // The same memory once more, where nobody counts what comes.
        let cleared = windows(Piece::Sum, None)?;

        for member in 0..team.size() {
            let children = team.children(member);
            let all = 1 + children.len() as u64;
            let sum = piece(member, Piece::Sum);

            let own = team.sum(member, piece(member, Piece::Own), &sums[member]);
            graph.when(&entered[member], 1, own.into());

            let onwards = match Team::parent(member) {
                Some(parent) => team.sum(member, sum, &sums[parent]),
                None => team.write(member, sum, &results[member]),
            };
            graph.when(&summed[member], all, onwards.into());

            let clear = team.write(member, piece(member, Piece::Zero), &cleared[member]);
            let clear = clear.called("clear own sum").then(&done[member]);
            graph.when(&got[member], 1, clear.into());

            for child in children {
                let result = team.write(member, piece(member, Piece::Result), &results[child]);
                graph.when(&done[member], 1, result.into());
            }
        }
        Ok(Self {
            entered,
            done,
            _windows: [sums, results, cleared],
            memory,
            count,
        })
    }

    /// The number that a member brings to a round.
    fn number(round: u64, member: usize, element: usize) -> u64 {
        round * 1_000_000 + (member as u64 + 1) * 1_000 + element as u64
    }

    /// Where an element lies.
    fn offset(&self, piece: Piece, element: usize) -> usize {
        (piece as usize * self.count + element) * WORD
    }
}

impl Collective for Allreduce {
    fn enter(&self) -> &[Rc<NamedCounter>] {
        &self.entered
    }

    fn done(&self) -> &[Rc<NamedCounter>] {
        &self.done
    }

    fn prepare(&self, round: u64) {
        for (member, buffer) in self.memory.iter().enumerate() {
            for element in 0..self.count {
                let number = Self::number(round, member, element);
                let offset = self.offset(Piece::Own, element);
                buffer.write(offset, &number.to_ne_bytes());
            }
        }
    }

    fn verify(&self, round: u64) -> Result<(), String> {
        for element in 0..self.count {
            let members = 0..self.memory.len();
            let should: u64 = members.map(|m| Self::number(round, m, element)).sum();
            for (member, buffer) in self.memory.iter().enumerate() {
                let mut bytes = [0; WORD];
                buffer.read(self.offset(Piece::Result, element), &mut bytes);
                let is = u64::from_ne_bytes(bytes);
                if is != should {
                    return Err(format!(
                        "element {element} of member {member} is {is}, not {should}"
                    ));
                }
            }
        }
        Ok(())
    }
}
