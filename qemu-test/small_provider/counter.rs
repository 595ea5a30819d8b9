// SPDX-License-Identifier: GPL-2.0

//! Counters. Every change wakes all threads that wait, and each looks whether it is due.

#![forbid(unsafe_code)]

use crate::prelude::*;

/// A counter.
#[pin_data]
pub(crate) struct Counter {
    tally: Tally,
    errors: Atomic<u64>,
    /// How often the error value has changed.
    error_changes: Atomic<u64>,
    op_flags: Atomic<u64>,
    #[pin]
    waiting: Waiting,
    pub(crate) domain: Hold<Domain>,
}

impl Counter {
    pub(crate) fn new(domain: Hold<Domain>, attr: CounterAttr<'_>) -> Result<impl PinInit<Self>> {
        if attr.flags != 0 {
            return Err(EINVAL);
        }
        let waiting = Waiting::new(attr.wait)?;
        Ok(pin_init!(Self {
            // Every addition is attended to.
            tally: Tally::new(0),
            errors: Atomic::new(0),
            error_changes: Atomic::new(0),
            op_flags: Atomic::new(0),
            waiting <- waiting,
            domain,
        }))
    }

    /// Counts the end of an operation.
    pub(crate) fn count(&self, _counted: Counted, is_success: bool) {
        match is_success {
            true => self.add_locked(1),
            false => drop(self.adderr(1)),
        }
    }

    /// Ends waits after the error value was written, if that has changed it.
    fn error_changed(&self, changed: bool) -> Result {
        if changed {
            self.error_changes.fetch_add(1, Full);
            self.waiting.queue.wake_up_all();
        }
        Ok(())
    }
}

impl Object for Counter {
    type Class = CounterClass;

    fn release(&self) {
        self.domain.release();
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            // Relaxed: a number that nothing depends on.
            Control::GetOpsFlag(out) => out.set(OpFlags::from_raw(this.op_flags.load(Relaxed))),
            Control::SetOpsFlag(flags) => this.op_flags.store(flags.as_raw(), Relaxed),
            command => return this.waiting.control(command),
        }
        Ok(())
    }
}

// Relaxed: each value stands for itself; what wakes others is ordered by the wait queue.
impl CounterOps for Counter {
    fn read(&self) -> u64 {
        self.tally.value.load(Relaxed)
    }

    fn readerr(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn reached(&self, _value: u64, _sum: u64) {
        self.waiting.queue.wake_up_all();
    }

    fn add_locked(&self, value: u64) {
        self.tally.value.fetch_add(value, Full);
        self.waiting.queue.wake_up_all();
    }

    fn set(&self, value: u64) -> Result {
        self.tally.value.xchg(value, Full);
        self.waiting.queue.wake_up_all();
        Ok(())
    }

    fn adderr(&self, value: u64) -> Result {
        self.errors.fetch_add(value, Full);
        self.error_changed(value != 0)
    }

    fn seterr(&self, value: u64) -> Result {
        let before = self.errors.xchg(value, Full);
        self.error_changed(before != value)
    }

    fn begin_wait(&self, threshold: u64) -> Result<Option<u64>> {
        self.waiting.check()?;
        let since = self.error_changes.load(Relaxed);
        Ok((self.read() < threshold).then_some(since))
    }

    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        let mut reached = false;
        let wakeup = this.waiting.queue.wait_until(timeout.deadline(), || {
            reached = this.read() >= threshold;
            reached || this.error_changes.load(Relaxed) != since
        });
        match wakeup {
            _ if reached => Ok(()),
            Wakeup::Expired => Err(ETIMEDOUT),
            Wakeup::Interrupted => Err(EINTR),
            Wakeup::NotNeeded | Wakeup::Woken => Err(EAVAIL.into()),
        }
    }
}
