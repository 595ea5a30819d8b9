// SPDX-License-Identifier: GPL-2.0

//! A barrier: nobody goes on before all have arrived.
//!
//! Two counters for each member. `arrived` counts, in each round, the member
//! itself, which adds 1, and those directly below, each of which writes a word when
//! all of its own part of the tree has arrived. When the top has them all it
//! turns round: `released` goes up at the top, and a member that is released writes
//! a word to those below.
//!
//! ```text
//!          0                          0
//!        /   \     arrived          /   \     released
//!       1     2    ^               1     2    |
//!      / \   /     |              / \   /     v
//!     3   4 5                    3   4 5
//! ```
//!
//! No round can be taken for another. Those below come with round k+1 only after
//! they were released from round k, and at that time `arrived` of the member
//! above has done its work for round k. So at (children + 1) * k exactly k
//! rounds of all of them are in.

use std::rc::Rc;

use kfi::Buffer;

use super::graph::{Action, Graph, NamedCounter};
use super::team::{Team, Window, WORD};
use super::Collective;
use crate::output::Problem;

/// The barrier.
#[derive(Debug)]
pub(crate) struct Barrier {
    arrived: Vec<Rc<NamedCounter>>,
    released: Vec<Rc<NamedCounter>>,
    _windows: [Vec<Window>; 2],
    _memory: Vec<Buffer>,
}

impl Barrier {
    /// Builds it.
    pub(crate) fn new(team: &Team, graph: &mut Graph) -> Result<Self, Problem> {
        let arrived = team.counters("arrived")?;
        let released = team.counters("released")?;
        // The contents of the words mean nothing; that they come is counted.
        let memory = team.memory(WORD)?;
        let windows = |counters: &[Rc<NamedCounter>]| {
            counters
                .iter()
                .zip(&memory)
                .map(|(counter, word)| team.window(counter.member, word.all(), Some(counter)))
                .collect::<Result<Vec<_>, _>>()
        };
        let from_below = windows(&arrived)?;
        let from_above = windows(&released)?;

        for member in 0..team.size() {
            let word = memory[member].all();
            let children = team.children(member);
            let all = 1 + children.len() as u64;
            let onwards = match Team::parent(member) {
                Some(parent) => team.write(member, word, &from_below[parent]).into(),
                None => Action::Add(released[member].clone()),
            };
            graph.when(&arrived[member], all, onwards);
            for child in children {
                let release = team.write(member, word, &from_above[child]);
                graph.when(&released[member], 1, release.into());
            }
        }
        Ok(Self {
            arrived,
            released,
            _windows: [from_below, from_above],
            _memory: memory,
        })
    }
}

impl Collective for Barrier {
    fn enter(&self) -> &[Rc<NamedCounter>] {
        &self.arrived
    }

    fn done(&self) -> &[Rc<NamedCounter>] {
        &self.released
    }
}
