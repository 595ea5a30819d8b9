// SPDX-License-Identifier: GPL-2.0

//! Requests that wait for room in the completion queue of their receiver.
//!
//! They are not compared with posted receives before there is room, and their time does not run. What
//! arrives later goes behind them, until the last of them has been taken on: so they stay in order.
//! Messages that have waited for a receive, and for which there is no room when it comes, go in front
//! of what has arrived later.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    kfi::{
        queue::WalkableQueue,
        task::cond_resched, //
    },
    steps,
    transfer::Transfer,
    wire::{
        Carried,
        Packet, //
    }, //
};

/// What the lock protects.
struct State {
    /// Messages that have waited for a receive.
    stalled: WalkableQueue<Carried>,
    /// Requests that have arrived.
    arrived: WalkableQueue<Carried>,
    closed: bool,
}

/// Where requests wait.
#[pin_data]
pub(crate) struct Parking {
    /// Some wait, or the last of them is being taken on.
    occupied: Atomic<bool>,
    #[pin]
    state: SpinLockIrq<State>,
}

impl Parking {
    /// Nothing waits.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            occupied: Atomic::new(false),
            state <- new_spinlock_irq!(
                State {
                    stalled: WalkableQueue::walkable(),
                    arrived: WalkableQueue::walkable(),
                    closed: false,
                },
                "kfi_soft::Parking::state"
            ),
        })
    }

    /// Returns whether what arrives has to go behind what waits.
    pub(crate) fn is_occupied(&self) -> bool {
        // Acquire: pairs with `take`: what waited has been taken on.
        self.occupied.load(ordering::Acquire)
    }

    /// Adds a request; gives it back if none wait here any more. Drops it if its sender has given it
    /// up meanwhile, and not found it.
    pub(crate) fn add(&self, packet: Packet) -> core::result::Result<(), Packet> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(packet);
        }
        if !packet.transfer.is_waiting() {
            drop(state);
            return Ok(());
        }
        // Relaxed: the sender's next request comes after this one was parked.
        self.occupied.store(true, ordering::Relaxed);
        state.arrived.push_back(packet);
        Ok(())
    }

    /// Adds a message that has waited for a receive; gives it back if none wait here any more.
    pub(crate) fn stall(&self, packet: Packet) -> core::result::Result<(), Packet> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(packet);
        }
        // Relaxed: under the lock of the receive queue, which what comes later has to take.
        self.occupied.store(true, ordering::Relaxed);
        state.stalled.push_back(packet);
        Ok(())
    }

    /// Takes the first request out. One after the other: the caller has taken on the one before.
    pub(crate) fn take(&self) -> Option<Packet> {
        let mut state = self.state.lock();
        let packet = match state.stalled.pop_front() {
            Some(packet) => Some(packet),
            None => state.arrived.pop_front(),
        };
        if packet.is_none() {
            // Release: see `is_occupied`.
            self.occupied.store(false, ordering::Release);
        }
        packet
    }

    /// Takes out a request that its sender has given up, if it is here.
    pub(crate) fn forget(&self, transfer: &Arc<Transfer>) -> Option<Packet> {
        let same = |packet: &Carried| Arc::ptr_eq(&packet.transfer, transfer);
        steps::take(&self.state, |state| Some(&mut state.stalled), same)
            .or_else(|| steps::take(&self.state, |state| Some(&mut state.arrived), same))
    }

    /// Refuses what waits and what is still to come. May sleep.
    pub(crate) fn close(&self) {
        let queues = {
            let mut state = self.state.lock();
            state.closed = true;
            let State {
                stalled, arrived, ..
            } = &mut *state;
            [stalled, arrived].map(|queue| core::mem::replace(queue, WalkableQueue::walkable()))
        };
        for mut packets in queues {
            while let Some(packet) = packets.pop_front() {
                packet.transfer.refuse(EHOSTUNREACH);
                cond_resched();
            }
        }
    }
}
