// SPDX-License-Identifier: GPL-2.0

//! Wait sets: one place to wait for counters, completion queues and event queues.
//!
//! Members join when they are opened and leave when they are closed. The set knows how many of its
//! queues have entries, and how often its counters have changed: that is all it needs to say
//! whether it is ready, however many members it has.
//!
//! # Why no wake-up is lost
//!
//! Every change of a member is counted, that of queues in `events` and that of counters in
//! `counter_changes`, before the wait queue is woken. A thread notes both numbers first, then looks
//! whether the set is ready, and sleeps until one of them has moved on. A change from before the note is
//! seen by the look; a change after it ends the sleep, for every thread, even if another one has
//! meanwhile read what there was (R-WAIT-8). See `qemu-test/litmus/KFI-wait-set.litmus`.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
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
        control::{
            Control,
            KeptOpFlags, //
        },
        fid::{
            Fid,
            Object, //
        },
        hold::Hold,
        linux::{
            sleep::Wakeup,
            timeout::Timeout,
            wait_queue::WaitQueue, //
        },
        provider::{
            queue::QueueSet,
            WaitSetAttr,
            WaitSetClass,
            WaitSetOps, //
        },
        wait_obj::WaitObj, //
    }, //
};

/// A wait set.
#[pin_data]
pub(crate) struct WaitSet {
    /// How often a counter of the set has changed.
    counter_changes: Atomic<u64>,
    /// The changes of counters that kfi_wait has reported.
    counter_changes_told: Atomic<u64>,
    /// The changes of counters that trywait has reported.
    counter_changes_tried: Atomic<u64>,
    /// Queues of the set that have entries.
    ready_queues: Atomic<usize>,
    /// How often anything has happened.
    events: Atomic<u64>,
    op_flags: KeptOpFlags,
    wait_obj: WaitObj,
    #[pin]
    queue: WaitQueue,
    fabric: Hold<Fabric>,
}

impl WaitSet {
    /// Creates a wait set without members, if the attributes allow (R-WAIT-2, R-WAIT-4).
    pub(crate) fn new(fabric: Hold<Fabric>, attr: WaitSetAttr) -> Result<impl PinInit<Self>> {
        let wait_obj = attr.wait_obj;
        if attr.flags != 0 || matches!(wait_obj, WaitObj::None | WaitObj::Set) {
            return Err(EINVAL);
        }
        Ok(pin_init!(Self {
            counter_changes: Atomic::new(0),
            counter_changes_told: Atomic::new(0),
            counter_changes_tried: Atomic::new(0),
            ready_queues: Atomic::new(0),
            events: Atomic::new(0),
            op_flags: KeptOpFlags::new(),
            wait_obj,
            queue <- WaitQueue::new(c"kfi_soft::WaitSet::queue", static_lock_class!()),
            fabric,
        }))
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Arc<Fid<Fabric>> {
        self.fabric.fid()
    }

    /// A counter of the set has changed.
    pub(crate) fn signal_counter(&self) {
        // Full: after the change, before the wake-up. One number for what a wait reports and what
        // it sleeps for, so that no thread is woken for a change that was reported before.
        self.counter_changes.fetch_add(1, ordering::Full);
        self.queue.wake_up_all();
    }

    /// Notes in `told` that the counters were reported as they are now; returns whether that was
    /// news.
    fn tell_counters(&self, told: &Atomic<u64>) -> bool {
        // Acquire: a thread that gets the report sees the changes.
        // See `qemu-test/litmus/KFI-wait-set-change.litmus`.
        let changes = self.counter_changes.load(ordering::Acquire);
        let mut before = told.load(ordering::Relaxed);
        // Changes are counted in 64 bits, so that a larger number is a later one.
        while before < changes {
            // Relaxed: nothing but the number itself is passed on.
            match told.cmpxchg(before, changes, ordering::Relaxed) {
                Ok(_) => return true,
                Err(current) => before = current,
            }
        }
        false
    }

    /// Returns whether a queue of the set has entries.
    fn has_ready_queues(&self) -> bool {
        // Acquire: a thread that sees an entry counted finds it.
        self.ready_queues.load(ordering::Acquire) != 0
    }

    /// `EAGAIN` if there is something that neither this nor kfi_wait has reported (R-TRYWAIT-6,
    /// R-TRYWAIT-7).
    pub(crate) fn trywait(&self) -> Result {
        // Relaxed: only compared.
        let told = self.counter_changes_told.load(ordering::Relaxed);
        let tried = self.counter_changes_tried.load(ordering::Relaxed);
        let news = self.tell_counters(&self.counter_changes_tried);
        // A change that kfi_wait has reported since is no news, unless more has happened.
        // Relaxed: only compared.
        let now = self.counter_changes_tried.load(ordering::Relaxed);
        if (news && now > told.max(tried)) || self.has_ready_queues() {
            return Err(EAGAIN);
        }
        Ok(())
    }
}

impl QueueSet for WaitSet {
    fn member_ready(&self) {
        // Relaxed: `signal_queue` follows.
        self.ready_queues.add(1, ordering::Relaxed);
    }

    fn member_idle(&self) {
        // Relaxed: nobody waits for that.
        self.ready_queues.fetch_sub(1, ordering::Relaxed);
    }

    fn signal_queue(&self) {
        // Full: after the entry, before the wake-up.
        self.events.fetch_add(1, ordering::Full);
        self.queue.wake_up_all();
    }
}

impl Object for WaitSet {
    type Class = WaitSetClass;

    fn release(&self) {
        self.fabric.release();
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        let Some(command) = this.op_flags.answer(command) else {
            return Ok(());
        };
        match command {
            Control::GetWait(out) => out.set(this.wait_queue()?),
            // Its real kind, also if none was specified (R-CTL-8).
            Control::GetWaitObj(out) => out.set(WaitObj::Queue),
            _ => return Err(ENOSYS),
        }
        Ok(())
    }
}

impl WaitSetOps for WaitSet {
    fn wait(this: &Fid<Self>, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        let deadline = timeout.deadline();
        // Acquire: before the look at the members, see the top.
        let events = this.events.load(ordering::Acquire);
        let changes = this.counter_changes.load(ordering::Acquire);
        if this.tell_counters(&this.counter_changes_told) || this.has_ready_queues() {
            return Ok(());
        }
        if timeout == Timeout::Millis(0) {
            return Err(ETIMEDOUT);
        }
        let wakeup = this.queue.wait_until(deadline, || {
            // Acquire: as above.
            this.events.load(ordering::Acquire) != events
                || this.counter_changes.load(ordering::Acquire) != changes
        });
        match wakeup {
            Wakeup::NotNeeded | Wakeup::Woken => {
                this.tell_counters(&this.counter_changes_told);
                Ok(())
            }
            Wakeup::Expired => Err(ETIMEDOUT),
            Wakeup::Interrupted => Err(EINTR),
        }
    }

    fn wait_queue(&self) -> Result<&WaitQueue> {
        match self.wait_obj {
            WaitObj::Queue => Ok(&self.queue),
            _ => Err(ENOSYS),
        }
    }
}
