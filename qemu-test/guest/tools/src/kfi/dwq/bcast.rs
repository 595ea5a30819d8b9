// SPDX-License-Identifier: GPL-2.0

//! A broadcast: all get what one has.
//!
//! One counter for each member: `received`. A member that has received writes to
//! those below in the tree, whose `received` counts what arrives there. The top
//! receives from nobody: it adds 1 itself when its data is in place.
//!
//! The data of the next round goes to the same memory, and so the top must not
//! begin with it before all have passed on what they have. Here it waits until
//! all have received.

use std::rc::Rc;

use kfi::Buffer;

use super::graph::{Graph, NamedCounter};
use super::team::{Team, Window};
use super::Collective;
use crate::output::Problem;

/// The broadcast.
#[derive(Debug)]
pub(crate) struct Bcast {
    received: Vec<Rc<NamedCounter>>,
    _windows: Vec<Window>,
    memory: Vec<Buffer>,
}

impl Bcast {
    /// Builds it.
    pub(crate) fn new(team: &Team, graph: &mut Graph, size: usize) -> Result<Self, Problem> {
        let received = team.counters("received")?;
        let memory = team.memory(size)?;
        let windows = received
            .iter()
            .zip(&memory)
            .map(|(counter, buffer)| team.window(counter.member, buffer.all(), Some(counter)))
            .collect::<Result<Vec<_>, _>>()?;

        for member in 0..team.size() {
            for child in team.children(member) {
                let onwards = team.write(member, memory[member].all(), &windows[child]);
                graph.when(&received[member], 1, onwards.into());
            }
        }
        Ok(Self {
            received,
            _windows: windows,
            memory,
        })
    }

    /// The data of a round.
    fn data(round: u64, size: u64) -> Vec<u8> {
        let byte = |i: u64| (round.wrapping_mul(31) ^ i ^ (i >> 8)) as u8;
        (0..size).map(byte).collect()
    }
}

impl Collective for Bcast {
    fn enter(&self) -> &[Rc<NamedCounter>] {
        &self.received[..1]
    }

    fn done(&self) -> &[Rc<NamedCounter>] {
        &self.received
    }

    fn prepare(&self, round: u64) {
        let top = &self.memory[0];
        top.write(0, &Self::data(round, top.size()));
    }

    fn verify(&self, round: u64) -> Result<(), String> {
        for (member, buffer) in self.memory.iter().enumerate() {
            let size = buffer.size();
            if buffer.bytes(0..size as usize) != Self::data(round, size) {
                return Err(format!("member {member} has other data than the top"));
            }
        }
        Ok(())
    }
}
