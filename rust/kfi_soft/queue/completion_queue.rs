// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! A completion never lacks room. An operation that has memory of its own ([`Vacant`]) queues up in
//! it behind the ring when that is full; one that has none takes a slot of the ring before it begins
//! ([`CompletionQueue::slot`]), see [`CqSpace`]. Everything is read in the order in which it was
//! told.
//!
//! While there is such a backlog, nothing more is posted that would end here, what arrives waits where
//! it has arrived, and so does what has waited for a receive, unless the receives that would report
//! it were posted for this queue alone: the backlog is bounded by these and by what is just on its
//! way. The operations that wait are [`Listeners`].

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use crate::{
    domain::Domain,
    kfi::{
        control::Control,
        fid::{
            ExtraOps,
            Fid,
            Object,
            OpsName, //
        },
        flags::QueueFlags,
        hold::Hold,
        linux::{
            interrupts::NoPreemption,
            queue::{
                EntryQueue,
                Spare,
                Vacant, //
            },
            timeout::Timeout, //
        },
        provider::{
            call_completion_handler,
            completion_queue_test_ops,
            queue::{
                Completions,
                Popped,
                Taker, //
            },
            CompletionBuffer,
            CompletionError,
            CompletionQueueAttr,
            CompletionQueueClass,
            CompletionQueueOps,
            CompletionQueueTestOps,
            ErrorBuffer, //
        }, //
    },
    queue::{
        cq_space::CqSpace,
        handler::{
            Handled,
            Handler,
            HandlerTarget, //
        },
        listeners::Listeners,
        wait_with,
        Queue, //
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 256;

/// The largest size.
const MAX_SIZE: usize = 1 << 20;

/// The largest ring, for which there is memory from the beginning. An entry that a larger queue takes
/// beyond it lies in the memory of its operation.
const MAX_RING: usize = 1 << 10;

/// So many entries are read or moved before others get the lock.
const CHUNK: usize = 32;

/// The flags that are known: on which CPU the handler runs.
const FLAGS: QueueFlags = QueueFlags::AFFINITY;

/// A completion queue. Errors lie among the completions, in order.
#[pin_data]
pub(crate) struct CompletionQueue {
    size: usize,
    space: CqSpace,
    /// Memory that an operation has left, for the next one.
    spare: Spare,
    #[pin]
    queue: Queue<Completions>,
    #[pin]
    handler: Handler<CompletionQueue>,
    listeners: Arc<Listeners>,
    domain: Hold<Domain>,
}

/// A slot of the ring that is promised to an operation. Dropping it frees the slot, which takes the
/// lock of the queue if there is a backlog.
pub(crate) struct RingSlot<'a>(&'a CompletionQueue);

impl RingSlot<'_> {
    /// An entry lies in it from now on.
    fn redeem(self) {
        core::mem::forget(self);
    }
}

impl Drop for RingSlot<'_> {
    fn drop(&mut self) {
        if self.0.space.give(1) {
            self.0.settle(1);
        }
    }
}

/// Where the entry of a completion lies until it is read.
pub(crate) enum EntryPlace<'a> {
    /// Nowhere, for all that is known here: there is no queue, or no entry is wanted, or the operation has
    /// memory for it.
    Nowhere,
    /// In the ring.
    Slot(RingSlot<'a>),
    /// In the ring if there is room, else in memory of its own.
    Own(Vacant),
}

impl CompletionQueue {
    /// Creates an empty queue.
    pub(crate) fn new(
        domain: Hold<Domain>,
        attr: CompletionQueueAttr<'_>,
    ) -> Result<impl PinInit<Self>> {
        if !FLAGS.contains(QueueFlags::from_raw(attr.flags)) || attr.size > MAX_SIZE {
            return Err(EINVAL);
        }
        let size = if attr.size == 0 {
            DEFAULT_SIZE
        } else {
            attr.size
        };
        let wait = wait_with(attr.wait, domain.fabric())?;
        let ring = size.min(MAX_RING);
        let entries = Completions::new(ring)?;
        let target = HandlerTarget::new(attr.has_handler, attr.affinity, domain.fabric())?;
        let listeners = Listeners::new(domain.fabric().node().clone())?;
        Ok(pin_init!(Self {
            size,
            space: CqSpace::new(ring, size.saturating_sub(ring)),
            spare: Spare::new(),
            queue <- Queue::new(entries, wait),
            handler <- Handler::new(target),
            listeners,
            domain,
        }))
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns the entries.
    pub(crate) fn queue(&self) -> &Queue<Completions> {
        &self.queue
    }

    /// Returns the listeners that wait for space.
    pub(crate) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Returns memory for an operation and its entry; `ENOMEM` if there is none. From any context.
    pub(crate) fn memory(&self, flags: Flags) -> Result<Vacant> {
        self.spare.take(flags)
    }

    /// Returns whether it is so full that nothing more is to come.
    pub(crate) fn is_crowded(&self) -> bool {
        self.space.is_crowded()
    }

    /// Takes a slot of the ring; `None` if there is none. From any context.
    pub(crate) fn slot(&self) -> Option<RingSlot<'_>> {
        self.space.take().then(|| RingSlot(self))
    }

    /// Returns room for what comes of no operation; `None` if there is none. From any context.
    fn place(&self) -> Option<EntryPlace<'_>> {
        if let Some(slot) = self.slot() {
            return Some(EntryPlace::Slot(slot));
        }
        // Another thread may take it meanwhile; then there is one more than there should be.
        let allowed = self
            .queue
            .take(|entries| entries.backlog_len() < self.space.allowance());
        if !allowed {
            return None;
        }
        Some(EntryPlace::Own(Vacant::new(GFP_NOWAIT).ok()?))
    }

    /// Adds what `entry` returns, if anything; returns whether it is something. From any context.
    ///
    /// `entry` runs with the lock held, so that what it decides and the order of entries agree.
    pub(crate) fn report(
        this: &Fid<Self>,
        place: EntryPlace<'_>,
        entry: impl FnOnce() -> Option<CompletionError>,
    ) -> bool {
        Self::report_with(this, place, false, entry)
    }

    /// As [`Self::report`], where a reader of another queue may learn of the entry by what `entry` does, before it is
    /// there.
    pub(crate) fn report_announced(
        this: &Fid<Self>,
        place: EntryPlace<'_>,
        entry: impl FnOnce() -> Option<CompletionError>,
    ) -> bool {
        Self::report_with(this, place, true, entry)
    }

    #[inline]
    fn report_with(
        this: &Fid<Self>,
        place: EntryPlace<'_>,
        announced: bool,
        entry: impl FnOnce() -> Option<CompletionError>,
    ) -> bool {
        let mut place = Some(place);
        // Given back without the lock.
        let mut spare = None;
        // It is up to this thread to wake those that wait for the entry.
        let _preemption = NoPreemption::begin();
        let add = |entries: &mut Completions| {
            let Some(entry) = entry() else {
                return false;
            };
            // Closed: it is not missed.
            if entries.capacity() == 0 {
                return true;
            }
            match place.take() {
                Some(EntryPlace::Slot(slot)) => {
                    slot.redeem();
                    entries.push(entry);
                }
                Some(EntryPlace::Own(memory)) => spare = this.push_own(entries, entry, memory),
                Some(EntryPlace::Nowhere) | None => {}
            }
            true
        };
        let told = if announced {
            this.queue.take_announced(add)
        } else {
            this.queue.take(add)
        };
        drop(place);
        if let Some(spare) = spare {
            this.spare.give(spare);
        }
        if told {
            this.queue.wake();
            this.handler.fire(this);
        }
        told
    }

    /// Adds an entry that has memory of its own, with the lock held; returns what memory is left.
    fn push_own(
        &self,
        entries: &mut Completions,
        entry: CompletionError,
        memory: Vacant,
    ) -> Option<Vacant> {
        if !entries.has_backlog() && self.space.take() {
            entries.push(entry);
            return Some(memory);
        }
        entries.push_own(entry, memory);
        // Once more, see the top of cq_space.rs.
        if !self.space.begin_backlog() || !self.space.take() {
            // The backlog has one more entry: no thread can go on that could not before.
            self.space.note_backlog(entries.backlog_len());
            return None;
        }
        let memory = entries.move_up();
        self.space.end_backlog();
        memory
    }

    /// Moves entries up, into at most as many slots as were given back, with the lock held; their
    /// memory is left in `spare`. Returns whether there is space now for operations that have
    /// waited.
    fn move_up(&self, entries: &mut Completions, count: usize, spare: &mut EntryQueue<()>) -> bool {
        for _ in 0..count {
            if !entries.has_backlog() || !self.space.take() {
                break;
            }
            if let Some(memory) = entries.move_up() {
                spare.push_back(memory.fill(()));
            }
        }
        self.end_backlog(entries)
    }

    /// Notes, with the lock held, what of the backlog is left; returns whether there is room now for
    /// those who have waited.
    fn end_backlog(&self, entries: &Completions) -> bool {
        if !entries.has_backlog() && self.space.is_backlogged() {
            self.space.end_backlog();
        }
        self.space.note_backlog(entries.backlog_len())
    }

    /// Moves entries up after slots were given back. From any context.
    #[cold]
    fn settle(&self, count: usize) {
        let mut spare = EntryQueue::new();
        // As in `read_some`.
        let _preemption = NoPreemption::begin();
        let ended = self
            .queue
            .take(|entries| self.move_up(entries, count, &mut spare));
        drop(spare);
        if ended {
            self.listeners.notify();
        }
    }

    /// Returns an entry that was taken out, with the lock held.
    fn popped(popped: Popped, taken: &mut Taken) -> Option<CompletionError> {
        match popped {
            Popped::Slot(entry) => {
                taken.slots = taken.slots.wrapping_add(1);
                Some(entry)
            }
            Popped::Own(entry) => {
                let (entry, memory) = entry.empty();
                taken.spare.push_back(memory.fill(()));
                Some(entry)
            }
            Popped::Nothing => None,
        }
    }

    /// Gives the room of what was taken out to others, with the lock held.
    fn give(&self, entries: &mut Completions, taken: &mut Taken) {
        if self.space.give(taken.slots) {
            taken.ended = self.move_up(entries, taken.slots, &mut taken.spare);
        }
    }

    /// Reads some entries, with the lock; `false` if there may be more.
    fn read_some(&self, buffer: &mut CompletionBuffer<'_>) -> Result<bool> {
        let mut taken = Taken::new();
        // Operations that wait for space are left to the thread that makes it.
        let _preemption = NoPreemption::begin();
        let ret = self.queue.take(|entries| {
            let ret = self.read_locked(entries, buffer, &mut taken);
            self.give(entries, &mut taken);
            ret
        });
        taken.settle(self);
        ret
    }

    /// As [`Self::read_some`], with the lock held.
    fn read_locked(
        &self,
        entries: &mut Completions,
        buffer: &mut CompletionBuffer<'_>,
        taken: &mut Taken,
    ) -> Result<bool> {
        for _ in 0..CHUNK {
            if !entries.is_for(buffer)? {
                return Ok(true);
            }
            // Another reader may have it by now.
            if let Some(entry) = Self::popped(entries.pop_completion(), taken) {
                // There is room.
                let _ = buffer.push(entry.into_completion());
            }
        }
        Ok(false)
    }

    /// Reads some completions from the front, without the lock; `false` if there may be more.
    #[inline]
    fn read_front(&self, front: &Taker, buffer: &mut CompletionBuffer<'_>) -> bool {
        let mut slots: usize = 0;
        // As in `read_some`.
        let _preemption = NoPreemption::begin();
        let ended = loop {
            if buffer.is_full() {
                break true;
            }
            if slots == CHUNK {
                break false;
            }
            let Some(completion) = front.take() else {
                break true;
            };
            slots = slots.wrapping_add(1);
            // There is room.
            let _ = buffer.push(completion);
        };
        if slots != 0 && self.space.give(slots) {
            self.settle(slots);
        }
        ended
    }

    /// Reads without arming the handler.
    fn read_entries(&self, buffer: &mut CompletionBuffer<'_>) -> Result {
        if let Some(Some(front)) = self.queue.front() {
            while !self.read_front(front, buffer) {}
            // As a rule there is one, and the buffer is full then.
            if buffer.is_full() && buffer.len() != 0 {
                return Ok(());
            }
            match (self.queue.may_be_ready(), buffer.len()) {
                (true, _) => (),
                (false, 0) => return Err(EAGAIN),
                (false, _) => return Ok(()),
            }
        }
        while !self.read_some(buffer)? {}
        Ok(())
    }

    /// Arms the handler if a read has found nothing.
    fn arm_after(this: &Fid<Self>, ret: Result) -> Result {
        if ret == Err(EAGAIN) {
            this.handler.arm(this);
        }
        ret
    }
}

/// Entries and slots that readers have taken out under the lock, to be dealt with after it.
struct Taken {
    /// Slots of the ring.
    slots: usize,
    /// Memory of entries that were behind the ring.
    spare: EntryQueue<()>,
    /// Whether the entries taken out were the end of a backlog.
    ended: bool,
}

impl Taken {
    const fn new() -> Self {
        Self {
            slots: 0,
            spare: EntryQueue::new(),
            ended: false,
        }
    }

    /// Frees the memory, and lets operations go on that have waited.
    #[inline]
    fn settle(self, queue: &CompletionQueue) {
        drop(self.spare);
        if self.ended {
            queue.listeners.notify();
        }
    }
}

impl Handled for CompletionQueue {
    fn handler(&self) -> &Handler<Self> {
        &self.handler
    }

    fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    fn call_handler(this: &Fid<Self>) {
        call_completion_handler(this);
    }
}

impl Object for CompletionQueue {
    type Class = CompletionQueueClass;

    fn release(&self) {
        self.handler.close();
        self.listeners.close();
        self.queue.release();
        self.domain.release();
    }

    fn may_close(&self) -> Result {
        if self.handler.is_caller() {
            return Err(EBUSY);
        }
        Ok(())
    }

    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        completion_queue_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.queue.control(command)
    }
}

impl CompletionQueueOps for CompletionQueue {
    fn size(&self) -> usize {
        self.size
    }

    fn read(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>) -> Result {
        Self::arm_after(this, this.read_entries(buffer))
    }

    fn readerr(&self, buffer: &mut ErrorBuffer<'_>) -> Result {
        let mut taken = Taken::new();
        // As in `read_some`.
        let _preemption = NoPreemption::begin();
        let ret = self.queue.take(|entries| {
            if entries.is_error_for(buffer)? {
                if let Some(error) = Self::popped(entries.pop(), &mut taken) {
                    buffer.tell(error);
                }
                self.give(entries, &mut taken);
            }
            Ok(())
        });
        taken.settle(self);
        ret
    }

    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        // More are never in the ring, and what comes then is behind it, which ends the wait.
        let count = buffer.threshold().min(this.size).min(MAX_RING);
        let ret = this
            .queue
            .read_blocking(timeout, count, || this.read_entries(buffer));
        Self::arm_after(this, ret)
    }

    fn signal(&self) -> Result {
        self.queue.signal();
        Ok(())
    }
}

impl CompletionQueueTestOps for CompletionQueue {
    fn write(this: &Fid<Self>, entry: CompletionError) -> Result {
        let place = this.place().ok_or(ENOSPC)?;
        Self::report(this, place, || Some(entry));
        Ok(())
    }

    fn write_unreserved(this: &Fid<Self>, entry: CompletionError) {
        match this.place() {
            Some(place) => {
                Self::report(this, place, || Some(entry));
            }
            None => {
                this.queue.add(Completions::lose);
                this.handler.fire(this);
            }
        }
    }
}
