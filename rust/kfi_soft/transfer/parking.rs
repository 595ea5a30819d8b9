// SPDX-License-Identifier: GPL-2.0

//! Requests that wait for room in the completion queue of their receiver.
//!
//! They are not compared with posted receives before there is room, and their time does not run. What
//! arrives later goes behind them, until the last of them has been taken on: so they stay in order.

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
    kfi::linux::{
        interrupts::NoPreemption,
        queue::EntryQueue,
        task::cond_resched, //
    },
    transfer::{
        budget::Budget,
        packet::Transfer, //
    },
    wire::{
        Packet,
        QueuedPacket, //
    }, //
};

/// The part that the lock protects.
struct State {
    packets: EntryQueue<Packet>,
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
                    packets: EntryQueue::new(),
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
    pub(crate) fn add(&self, packet: QueuedPacket) -> core::result::Result<(), QueuedPacket> {
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
        state.packets.push_named(packet);
        Ok(())
    }

    /// Takes the first request out. One after the other: the caller has taken on the one before.
    pub(crate) fn take(&self) -> Option<QueuedPacket> {
        let mut state = self.state.lock();
        let packet = state.packets.pop_front();
        if packet.is_none() {
            // Release: see `is_occupied`.
            self.occupied.store(false, ordering::Release);
        }
        packet
    }

    /// Takes out a request that its sender has given up, if it is here.
    pub(crate) fn forget(&self, transfer: &Arc<Transfer>) -> Option<QueuedPacket> {
        let name = Transfer::name(transfer);
        let mut state = self.state.lock();
        state
            .packets
            .take_named(&name, |packet| packet.is_of(transfer))
    }

    /// Refuses what waits and what is still to come. May sleep.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        loop {
            // Its sender waits for the thread that has taken it out.
            let preemption = NoPreemption::begin();
            let Some(packet) = self.take() else {
                return;
            };
            packet.transfer.refuse(EHOSTUNREACH, &mut Budget::thread());
            drop(packet);
            drop(preemption);
            cond_resched();
        }
    }
}
