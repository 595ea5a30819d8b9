// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

#![forbid(unsafe_code)]

use crate::prelude::*;

/// A wait queue, which a consumer may have asked for.
#[pin_data]
pub(crate) struct Waiting {
    wait_obj: WaitObj,
    #[pin]
    pub(crate) queue: WaitQueue,
}

impl Waiting {
    pub(crate) fn new(attr: WaitAttr<'_>) -> Result<impl PinInit<Self>> {
        let wait_obj = match attr {
            WaitAttr::None => WaitObj::None,
            WaitAttr::Unspec => WaitObj::Unspec,
            WaitAttr::Queue => WaitObj::Queue,
            WaitAttr::Set(_) => return Err(EINVAL),
        };
        Ok(pin_init!(Self {
            wait_obj,
            queue <- WaitQueue::new(c"kfi_small::Waiting::queue", static_lock_class!()),
        }))
    }

    /// `EINVAL` if nobody can wait here.
    pub(crate) fn check(&self) -> Result {
        match self.wait_obj {
            WaitObj::None => Err(EINVAL),
            _ => Ok(()),
        }
    }

    /// Answers what a consumer asks about it.
    pub(crate) fn control<'a>(&'a self, command: Control<'a>) -> Result {
        match (command, self.wait_obj) {
            (Control::GetWait(out), WaitObj::Queue) => out.set(&self.queue),
            (Control::GetWait(_), WaitObj::None) => return Err(EINVAL),
            // What it can be taken for.
            (Control::GetWaitObj(out), WaitObj::Unspec) => out.set(WaitObj::Queue),
            (Control::GetWaitObj(out), wait_obj) => out.set(wait_obj),
            _ => return Err(ENOSYS),
        }
        Ok(())
    }
}

/// A completion queue. Entries lie in the memory of the operations that they tell of, so that there
/// is room for each.
#[pin_data]
pub(crate) struct CompletionQueue {
    size: usize,
    #[pin]
    entries: SpinLockIrq<EntryQueue<CompletionError>>,
    /// How often the threads that wait were asked to give up.
    signals: Atomic<u64>,
    #[pin]
    waiting: Waiting,
    pub(crate) domain: Hold<Domain>,
}

impl CompletionQueue {
    pub(crate) fn new(
        domain: Hold<Domain>,
        attr: CompletionQueueAttr<'_>,
    ) -> Result<impl PinInit<Self, Error>> {
        if attr.flags != 0 || attr.size > 1 << 20 || attr.has_handler {
            return Err(EINVAL);
        }
        let waiting = Waiting::new(attr.wait)?;
        Ok(try_pin_init!(Self {
            size: if attr.size == 0 { 256 } else { attr.size },
            entries <- new_spinlock_irq!(EntryQueue::new(), "kfi_small::CompletionQueue::entries"),
            signals: Atomic::new(0),
            waiting <- waiting,
            domain,
        }? Error))
    }

    /// Returns whether it is so full that nothing more is to be posted that would end here.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.lock().len() >= self.size
    }

    pub(crate) fn push(&self, entry: Entry<CompletionError>) {
        self.entries.lock().push_back(entry);
        self.waiting.queue.wake_up_all();
    }
}

impl Object for CompletionQueue {
    type Class = CompletionQueueClass;

    fn release(&self) {
        self.domain.release();
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.waiting.control(command)
    }
}

impl CompletionQueueOps for CompletionQueue {
    fn size(&self) -> usize {
        self.size
    }

    fn read(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>) -> Result {
        loop {
            let mut entries = this.entries.lock();
            match entries.front() {
                Some(first) if first.failure.err == 0 && !buffer.is_full() => {}
                _ if buffer.len() != 0 => return Ok(()),
                Some(_) => return Err(EAVAIL.into()),
                None => return Err(EAGAIN),
            }
            let first = entries.pop_front();
            drop(entries);
            // There is room.
            let _ = first.map(|entry| buffer.push(entry.into_inner().completion));
        }
    }

    fn readerr(&self, buffer: &mut ErrorBuffer<'_>) -> Result {
        let mut entries = self.entries.lock();
        match entries.front() {
            Some(first) if first.failure.err != 0 => buffer.show(&first.completion, &first.failure),
            _ => return Err(EAGAIN),
        }
        if !buffer.is_peek() {
            let first = entries.pop_front();
            drop(entries);
            let _ = first.map(|entry| buffer.tell(entry.into_inner()));
        }
        Ok(())
    }

    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        this.waiting.check()?;
        let (deadline, signals) = (timeout.deadline(), this.signals.load(Relaxed));
        loop {
            let ret = Self::read(this, buffer);
            let is_signalled = || this.signals.load(Relaxed) != signals;
            if ret != Err(EAGAIN) || is_signalled() {
                return ret;
            }
            let is_due = || is_signalled() || !this.entries.lock().is_empty();
            match this.waiting.queue.wait_until(deadline, is_due) {
                Wakeup::Expired => return Err(ETIMEDOUT),
                Wakeup::Interrupted => return Err(EINTR),
                Wakeup::NotNeeded | Wakeup::Woken => {}
            }
        }
    }

    fn signal(&self) -> Result {
        self.signals.fetch_add(1, Full);
        self.waiting.queue.wake_up_all();
        Ok(())
    }
}
