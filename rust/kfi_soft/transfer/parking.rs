// SPDX-License-Identifier: GPL-2.0

//! Requests that wait for room in the completion queue of their receiver.
//!
//! They are not compared with posted receives before there is room, and their time does not run.
//! Requests that arrive later go behind them, until the last of them has been taken on: so they stay in
//! order.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        SpinLockIrq, //
    }, //
};

use crate::{
    budget::Budget,
    kfi::linux::{
        interrupts::NoPreemption,
        queue::{
            Entry,
            EntryQueue, //
        },
        task::cond_resched, //
    },
    transfer::{
        inbound::Inbound,
        origin::Origin, //
    },
    wire::Initiator, //
};

/// The part that the lock protects.
struct State {
    requests: EntryQueue<Inbound>,
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
                    requests: EntryQueue::new(),
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
    pub(crate) fn add(&self, inbound: Entry<Inbound>) -> core::result::Result<(), Entry<Inbound>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(inbound);
        }
        if !inbound.origin.is_waiting() {
            drop(state);
            return Ok(());
        }
        // Relaxed: the sender's next request comes after this one was parked.
        // See `qemu-test/litmus/KFI-receive-room.litmus`.
        self.occupied.store(true, ordering::Relaxed);
        state.requests.push_named(inbound);
        Ok(())
    }

    /// Takes the first request out. One after the other: the caller has taken on the one before.
    pub(crate) fn take(&self) -> Option<Entry<Inbound>> {
        let mut state = self.state.lock();
        let inbound = state.requests.pop_front();
        if inbound.is_none() {
            // Release: see `is_occupied`.
            // See `qemu-test/litmus/KFI-parking.litmus`.
            self.occupied.store(false, ordering::Release);
        }
        inbound
    }

    /// Takes out a request that its sender has given up, if it is here.
    pub(crate) fn withdraw(&self, origin: &Origin) -> Option<Entry<Inbound>> {
        let mut state = self.state.lock();
        state
            .requests
            .take_named(&Inbound::name_of(origin), |inbound| inbound.is_of(origin))
    }

    /// Refuses what waits and what is still to come. May sleep.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        loop {
            // Its sender waits for the thread that has taken it out.
            let preemption = NoPreemption::begin();
            let Some(inbound) = self.take() else {
                return;
            };
            let budget = &mut Budget::thread();
            inbound.origin.refuse(EHOSTUNREACH, budget);
            drop(inbound);
            drop(preemption);
            cond_resched();
        }
    }
}
