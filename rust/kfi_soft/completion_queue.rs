// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! Whoever posts an operation takes a slot for its completion first
//! ([`CompletionQueue::reserve`]), so that the completion always fits; the slot is free again when
//! the completion is read out. What nobody has asked for, such as events of remote operations,
//! takes a free slot, or is lost: then the queue has overrun, and a reader gets `EOVERRUN` once, in
//! the place of the first entry that was lost. Entries before and after it are read as usual.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

use crate::{
    completions::{
        Completions,
        First, //
    },
    domain::Domain,
    handler::{
        Handled,
        Handler,
        HandlerTarget, //
    },
    kfi::{
        control::Control,
        errno::{
            EAVAIL,
            EOVERRUN, //
        },
        fid::{
            ExtraOps,
            Fid,
            Object, //
        },
        flags::QueueFlags,
        hold::Hold,
        provider::{
            call_completion_handler,
            completion_queue_test_ops,
            CompletionBuffer,
            CompletionError,
            CompletionFormat,
            CompletionQueueAttr,
            CompletionQueueClass,
            CompletionQueueOps, //
        },
        timeout::Timeout, //
    },
    queue::{
        Queue,
        WaitWith, //
    },
    slots::{
        Bounded,
        Reservation,
        Room,
        RoomListener,
        Slots, //
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 256;

/// The largest size.
const MAX_SIZE: usize = 1 << 16;

/// The flags that are known: on which CPU the handler runs.
const FLAGS: QueueFlags = QueueFlags::AFFINITY;

/// A completion queue. Errors lie among the completions, in order.
#[pin_data]
pub(crate) struct CompletionQueue {
    format: CompletionFormat,
    capacity: usize,
    #[pin]
    queue: Queue<Completions>,
    #[pin]
    slots: Slots,
    #[pin]
    handler: Handler<CompletionQueue>,
    domain: Hold<Domain>,
}

impl CompletionQueue {
    /// Creates an empty queue.
    pub(crate) fn new(
        domain: Hold<Domain>,
        attr: &CompletionQueueAttr<'_>,
    ) -> Result<impl PinInit<Self>> {
        if !FLAGS.contains(QueueFlags::from_raw(attr.flags)) || attr.size > MAX_SIZE {
            return Err(EINVAL);
        }
        let size = if attr.size == 0 {
            DEFAULT_SIZE
        } else {
            attr.size
        };
        let wait = WaitWith::new(attr.wait, domain.fabric())?;
        let entries = Completions::new(size)?;
        let target = HandlerTarget::new(attr.has_handler, attr.affinity, domain.fabric())?;
        let capacity = entries.capacity();
        let format = attr.format;
        Ok(pin_init!(Self {
            format,
            capacity,
            queue <- Queue::new(entries, wait),
            slots <- Slots::new(*capacity),
            handler <- Handler::new(target),
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

    /// Takes a slot for the completion of an operation; `None` if there is none. From any context.
    ///
    /// What is dropped gives the slot back, and so must not be dropped with a lock held that a
    /// listener could want.
    pub(crate) fn reserve(this: &Fid<Self>) -> Option<Reservation<Self>> {
        Reservation::new(this)
    }

    /// As [`Self::reserve`], but if there is none, the listeners are told when there is.
    pub(crate) fn reserve_or_starve(this: &Fid<Self>) -> Option<Reservation<Self>> {
        Reservation::new_or_starve(this)
    }

    /// Adds somebody who is told when there is room again, after
    /// [`Self::reserve_or_starve`] has found none; may sleep.
    ///
    /// To be undone by [`Self::ignore_room`] before the queue may be closed.
    pub(crate) fn on_room(&self, listener: Arc<dyn Room>) -> Result<RoomListener> {
        self.slots.listen(listener)
    }

    /// Undoes [`Self::on_room`]; the listener may be just being told.
    pub(crate) fn ignore_room(&self, listener: &RoomListener) {
        self.slots.ignore(listener);
    }

    /// Adds an entry to a slot that was taken.
    fn add(this: &Fid<Self>, entry: &CompletionError) {
        // There is room, unless the queue is closed: then nobody misses it.
        this.queue.add(|entries| entries.push(entry));
        this.handler.fire(this);
    }

    /// Reads without arming the handler.
    fn read_entries(&self, buffer: &mut CompletionBuffer<'_>) -> Result {
        let mut freed = 0usize;
        let ret = self.queue.take(|entries| loop {
            let error: Error = match entries.first() {
                First::Completion(completion) => {
                    if !buffer.push(completion) {
                        return Ok(());
                    }
                    freed = freed.wrapping_add(entries.pop());
                    continue;
                }
                // What was read before comes first.
                _ if buffer.len() != 0 => return Ok(()),
                First::Nothing => EAGAIN,
                First::Error => EAVAIL.into(),
                First::Overrun => {
                    entries.pop();
                    EOVERRUN.into()
                }
            };
            return Err(error);
        });
        self.slots.give(freed);
        ret
    }

    /// Arms the handler if a read has found nothing.
    fn arm_after(this: &Fid<Self>, ret: Result) -> Result {
        if ret == Err(EAGAIN) {
            this.handler.arm(this);
        }
        ret
    }
}

impl Reservation<CompletionQueue> {
    /// Writes a completion, or an error if `err` is not 0. From any context.
    pub(crate) fn complete(self, entry: &CompletionError) {
        self.redeem(|queue| CompletionQueue::add(queue, entry));
    }
}

impl Bounded for CompletionQueue {
    fn slots(&self) -> &Slots {
        &self.slots
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
        self.slots.clear();
        self.queue.release();
        self.domain.release();
    }

    fn may_close(&self) -> Result {
        if self.handler.is_caller() {
            return Err(EBUSY);
        }
        Ok(())
    }

    fn ops_open(this: &Fid<Self>, name: &CStr) -> Result<ExtraOps> {
        completion_queue_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.queue.control(command)
    }
}

impl CompletionQueueOps for CompletionQueue {
    fn format(&self) -> CompletionFormat {
        self.format
    }

    fn size(&self) -> usize {
        self.capacity
    }

    fn read(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>) -> Result {
        Self::arm_after(this, this.read_entries(buffer))
    }

    fn readerr(&self, peek: bool) -> Result<CompletionError> {
        let (error, freed) = self.queue.take(|entries| {
            let error = entries.first_error().ok_or(EAGAIN)?;
            let freed = if peek { 0 } else { entries.pop() };
            Ok::<_, Error>((error, freed))
        })?;
        self.slots.give(freed);
        Ok(error)
    }

    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        let _hold = Hold::new(this)?;
        let ret = this
            .queue
            .read_blocking(timeout, || this.read_entries(buffer));
        Self::arm_after(this, ret)
    }

    fn signal(&self) -> Result {
        self.queue.signal();
        Ok(())
    }

    fn strerror(_prov_errno: c_int) -> &'static CStr {
        c"No provider error"
    }

    fn write(this: &Fid<Self>, entry: &CompletionError) -> Result {
        Self::reserve(this).ok_or(ENOSPC)?.complete(entry);
        Ok(())
    }

    fn write_unreserved(this: &Fid<Self>, entry: &CompletionError) {
        match Self::reserve(this) {
            Some(reservation) => reservation.complete(entry),
            None => {
                this.queue.add(Completions::lose);
                this.handler.fire(this);
            }
        }
    }
}
