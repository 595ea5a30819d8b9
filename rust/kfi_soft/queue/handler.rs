// SPDX-License-Identifier: GPL-2.0

//! Handlers of queues: called when there is something to read.
//!
//! A handler is one-shot. It is armed when the queue is opened, and again when a read finds
//! nothing (returns `EAGAIN`). It runs as a work item, in process context and without locks.
//!
//! # Why no entry is missed
//!
//! A thread that adds an entry makes the queue ready first and then looks whether the handler is
//! armed; a thread that arms it does that first and then looks whether the queue is ready. Each
//! step is fully ordered before the look, so that one of the two sees what the other has done, and
//! fires (`qemu-test/litmus/KFI-handler-arm.litmus`). If both do, `state` decides, so that the handler
//! is called once.
//!
//! If the item is still queued when it is fired again, it has not begun to run: its one run comes
//! after both entries.
//!
//! # Close
//!
//! Close disarms the handler for good and waits until it does not run. From within the handler
//! that would be a wait for itself: the queue's own handler gets `EBUSY`.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    fabric::Fabric,
    kfi::{
        fid::{
            Fid,
            Object, //
        },
        linux::{
            interrupts::NoPreemption,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue, //
            }, //
        }, //
    }, //
};

/// A queue that may have a handler.
pub(crate) trait Handled: Object {
    /// Returns the handler.
    fn handler(&self) -> &Handler<Self>;

    /// Returns whether there is something to read.
    fn is_ready(&self) -> bool;

    /// Calls the consumer's function.
    fn call_handler(this: &Fid<Self>);
}

/// Where a handler runs.
pub(crate) struct HandlerTarget {
    /// The work queue.
    queue: Arc<WorkQueue>,
    /// The CPU, if it was asked for one. While it is offline the handler runs anywhere.
    cpu: Option<CpuId>,
}

impl HandlerTarget {
    /// Where the handler of a queue of `fabric` runs, if it has one; may sleep.
    pub(crate) fn new(
        has_handler: bool,
        affinity: Option<CpuId>,
        fabric: &Fabric,
    ) -> Result<Option<Self>> {
        if !has_handler {
            return Ok(None);
        }
        Ok(Some(Self {
            queue: fabric.handlers()?,
            cpu: affinity,
        }))
    }
}

/// Not armed.
const IDLE: u32 = 0;
/// The next entry calls the handler.
const ARMED: u32 = 1;
/// The queue is closed.
const CLOSED: u32 = 2;

/// When the handler of a queue is called.
#[pin_data]
pub(crate) struct Handler<T: Handled> {
    /// Where it runs; `None` if the queue has no handler.
    target: Option<HandlerTarget>,
    /// `CLOSED` is final.
    state: Atomic<u32>,
    #[pin]
    work: Work<Fid<T>>,
}

impl<T: Handled> Handler<T> {
    /// An armed handler, or none.
    pub(crate) fn new(target: Option<HandlerTarget>) -> impl PinInit<Self> {
        pin_init!(Self {
            target,
            state: Atomic::new(ARMED),
            work <- new_work!("kfi_soft::Handler::work"),
        })
    }

    /// Calls the handler if it is armed; `queue` has just become ready. From any context.
    #[inline]
    pub(crate) fn fire(&self, queue: &Fid<T>) {
        if let Some(target) = &self.target {
            self.fire_at(target, queue);
        }
    }

    /// As [`Self::fire`], if there is one.
    fn fire_at(&self, target: &HandlerTarget, queue: &Fid<T>) {
        // Relaxed: `Queue::add` has made the queue ready, fully ordered.
        if self.state.load(ordering::Relaxed) != ARMED {
            return;
        }
        // All others leave the run to the thread that takes the state from armed.
        let _preemption = NoPreemption::begin();
        // Full: the entry comes before the run.
        // See `qemu-test/litmus/KFI-handler-once.litmus`.
        if self.state.cmpxchg(ARMED, IDLE, ordering::Full).is_ok() {
            target.queue.queue_on::<_, 0>(queue.arc(), target.cpu);
        }
    }

    /// Arms the handler; a read of `queue` has found nothing. From any context.
    pub(crate) fn arm(&self, queue: &Fid<T>) {
        if self.target.is_none() {
            return;
        }
        // Full: before the look at the queue, see the top of this file. If it is armed already, the
        // one who did that looks, or has.
        if self.state.cmpxchg(IDLE, ARMED, ordering::Full).is_ok() && queue.is_ready() {
            self.fire(queue);
        }
    }

    /// Returns whether the caller is the handler.
    pub(crate) fn is_caller(&self) -> bool {
        self.target.is_some() && self.work.is_current()
    }

    /// Disarms the handler for good and waits until it does not run; may sleep.
    pub(crate) fn close(&self) {
        if self.target.is_none() {
            return;
        }
        // Full: a thread that arms or fires it from here on does not queue the work. Nobody is in
        // between: operations have ended when a queue is released, but those of the handler, which
        // is waited for.
        self.state.xchg(CLOSED, ordering::Full);
        self.work.cancel_sync();
    }
}

impl<T: Handled> WorkItem for Fid<T> {
    fn work(&self) -> &Work<Self> {
        &self.handler().work
    }

    fn run(this: Arc<Self>) {
        T::call_handler(&this);
    }
}
