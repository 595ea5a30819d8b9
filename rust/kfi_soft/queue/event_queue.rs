// SPDX-License-Identifier: GPL-2.0

//! Event queues.
//!
//! No event is lost: an operation that ends with events takes a slot for each of them
//! first ([`EventQueue::reserve`]), and does not begin (`EAGAIN`) if there is none.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    fabric::Fabric,
    kfi::{
        control::Control,
        errno::{
            EAVAIL,
            ETOOSMALL, //
        },
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
            timeout::Timeout, //
        },
        provider::{
            call_event_handler,
            event_queue_test_ops,
            queue::{
                Entries,
                Ring, //
            },
            Event,
            EventError,
            EventQueueAttr,
            EventQueueClass,
            EventQueueOps,
            EventQueueTestOps, //
        }, //
    },
    queue::{
        eq_slots::{
            Bounded,
            EqSlots,
            Reservation, //
        },
        handler::{
            Handled,
            Handler,
            HandlerTarget, //
        },
        wait_with,
        Queue, //
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 64;

/// The largest size.
const MAX_SIZE: usize = 1 << 14;

/// The flags that are known: that the queue may be written to, as it may anyhow, and on which CPU the
/// handler runs.
const FLAGS: QueueFlags = QueueFlags::WRITE.union(QueueFlags::AFFINITY);

/// An entry of an event queue.
pub(crate) enum QueuedEvent {
    /// An event.
    Event(Event),
    /// An error.
    Error(EventError),
}

impl Entries for Ring<QueuedEvent> {
    type Front = ();

    fn none() -> Self {
        Ring::none()
    }

    fn front(&self) {}

    fn is_ready(&self) -> bool {
        !self.is_empty()
    }

    fn is_ready_behind(&self) -> bool {
        !self.is_empty()
    }
}

/// An event queue. Errors lie among the events, in order.
#[pin_data]
pub(crate) struct EventQueue {
    capacity: usize,
    #[pin]
    queue: Queue<Ring<QueuedEvent>>,
    slots: EqSlots,
    #[pin]
    handler: Handler<EventQueue>,
    fabric: Hold<Fabric>,
}

impl EventQueue {
    /// Creates an empty queue.
    pub(crate) fn new(
        fabric: Hold<Fabric>,
        attr: EventQueueAttr<'_>,
    ) -> Result<impl PinInit<Self>> {
        if !FLAGS.contains(QueueFlags::from_raw(attr.flags)) || attr.size > MAX_SIZE {
            return Err(EINVAL);
        }
        let size = if attr.size == 0 {
            DEFAULT_SIZE
        } else {
            attr.size
        };
        let wait = wait_with(attr.wait, fabric.fid())?;
        let entries = Ring::new(size)?;
        let target = HandlerTarget::new(attr.has_handler, attr.affinity, fabric.fid())?;
        let capacity = entries.capacity();
        Ok(pin_init!(Self {
            capacity,
            queue <- Queue::new(entries, wait),
            slots: EqSlots::new(*capacity),
            handler <- Handler::new(target),
            fabric,
        }))
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Arc<Fid<Fabric>> {
        self.fabric.fid()
    }

    /// Returns the entries.
    pub(crate) fn queue(&self) -> &Queue<Ring<QueuedEvent>> {
        &self.queue
    }

    /// Takes a slot for an event; `None` if there is none. From any context.
    ///
    /// A reservation that is dropped gives the slot back.
    pub(crate) fn reserve(this: &Fid<Self>) -> Option<Reservation<Self>> {
        Reservation::new(this)
    }

    /// Adds an entry to a slot that was taken.
    fn add(this: &Fid<Self>, entry: QueuedEvent) {
        // It is up to this thread to wake those that wait for the entry.
        let _preemption = NoPreemption::begin();
        // There is room, unless the queue is closed: then it is not missed.
        this.queue.add(|entries| entries.push(entry).is_ok());
        this.handler.fire(this);
    }

    /// Reads without arming the handler.
    fn read_event(&self, len: usize, peek: bool) -> Result<Event> {
        let event = self.queue.take(|entries| match entries.first() {
            None => Err(EAGAIN),
            Some(QueuedEvent::Error(_)) => Err(EAVAIL.into()),
            Some(QueuedEvent::Event(event)) if event.bytes().len() > len => Err(ETOOSMALL.into()),
            Some(QueuedEvent::Event(event)) => {
                let event = *event;
                if !peek {
                    entries.pop();
                }
                Ok(event)
            }
        })?;
        if !peek {
            self.slots.give(1);
        }
        Ok(event)
    }

    /// Arms the handler if a read has found nothing.
    fn arm_after(this: &Fid<Self>, ret: Result<Event>) -> Result<Event> {
        if matches!(ret, Err(error) if error == EAGAIN) {
            this.handler.arm(this);
        }
        ret
    }
}

impl Reservation<EventQueue> {
    /// Writes an event. From any context.
    pub(crate) fn post(self, event: &Event) {
        self.redeem(|queue| EventQueue::add(queue, QueuedEvent::Event(*event)));
    }

    /// Writes an error. From any context.
    pub(crate) fn post_error(self, error: &EventError) {
        self.redeem(|queue| EventQueue::add(queue, QueuedEvent::Error(*error)));
    }
}

impl Bounded for EventQueue {
    fn slots(&self) -> &EqSlots {
        &self.slots
    }
}

impl Handled for EventQueue {
    fn handler(&self) -> &Handler<Self> {
        &self.handler
    }

    fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    fn call_handler(this: &Fid<Self>) {
        call_event_handler(this);
    }
}

impl Object for EventQueue {
    type Class = EventQueueClass;

    fn release(&self) {
        self.handler.close();
        self.queue.release();
        self.fabric.release();
    }

    fn may_close(&self) -> Result {
        if self.handler.is_caller() {
            return Err(EBUSY);
        }
        Ok(())
    }

    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        event_queue_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.queue.control(command)
    }
}

impl EventQueueOps for EventQueue {
    fn size(&self) -> usize {
        self.capacity
    }

    fn read(this: &Fid<Self>, len: usize, peek: bool) -> Result<Event> {
        Self::arm_after(this, this.read_event(len, peek))
    }

    fn readerr(&self, peek: bool) -> Result<EventError> {
        let error = self.queue.take(|entries| match entries.first() {
            Some(QueuedEvent::Error(error)) => {
                let error = *error;
                if !peek {
                    entries.pop();
                }
                Ok(error)
            }
            _ => Err(EAGAIN),
        })?;
        if !peek {
            self.slots.give(1);
        }
        Ok(error)
    }

    fn write(this: &Fid<Self>, event: &Event) -> Result {
        Self::reserve(this).ok_or(EAGAIN)?.post(event);
        Ok(())
    }

    fn sread(this: &Fid<Self>, len: usize, peek: bool, timeout: Timeout) -> Result<Event> {
        kernel::task::might_sleep();
        let ret = this
            .queue
            .read_blocking(timeout, 1, || this.read_event(len, peek));
        Self::arm_after(this, ret)
    }
}

impl EventQueueTestOps for EventQueue {
    fn write_error(this: &Fid<Self>, error: &EventError) -> Result {
        Self::reserve(this).ok_or(EAGAIN)?.post_error(error);
        Ok(())
    }
}

#[kunit_tests(kfi_soft_event_queue)]
mod tests {
    use super::*;
    use crate::{
        kfi::{
            context::Context,
            fid::TestFid,
            provider::WaitAttr, //
        },
        node, //
    };

    /// Opens a queue, and the fabric that it is of, which is to be dropped later.
    fn queue(size: usize) -> Result<(TestFid<Fabric>, TestFid<EventQueue>)> {
        let fabric = TestFid::open(Fabric::new(node::current()?), Context::NONE)?;
        let attr = EventQueueAttr {
            size,
            wait: WaitAttr::None,
            ..EventQueueAttr::default()
        };
        let queue = EventQueue::new(Hold::new(&fabric)?, attr)?;
        Ok((fabric, TestFid::open(queue, Context::NONE)?))
    }

    fn event(data: u64) -> Event {
        Event::with_number(data)
    }

    /// Takes an event out and returns its data.
    fn take(queue: &Fid<EventQueue>) -> Result<u64> {
        let event = EventQueue::read(queue, usize::MAX, false)?;
        let data = event.bytes().get(16..24).ok_or(EINVAL)?;
        Ok(u64::from_ne_bytes(data.try_into().map_err(|_| EINVAL)?))
    }

    #[test]
    fn reserved_always_fits() -> Result {
        let (_fabric, queue) = queue(3)?;
        let first = EventQueue::reserve(&queue).ok_or(EINVAL)?;
        let second = EventQueue::reserve(&queue).ok_or(EINVAL)?;
        assert_eq!(EventQueue::write(&queue, &event(1)), Ok(()));
        assert_eq!(EventQueue::write(&queue, &event(9)), Err(EAGAIN));
        assert!(EventQueue::reserve(&queue).is_none());
        second.post(&event(2));
        first.post(&event(3));
        // Written, but not read: no room.
        assert!(EventQueue::reserve(&queue).is_none());
        assert!(EventQueue::read(&queue, usize::MAX, true).is_ok());
        assert!(EventQueue::reserve(&queue).is_none());
        for number in 1..4 {
            assert_eq!(take(&queue), Ok(number));
            assert_eq!(queue.slots.free() as u64, number);
        }
        assert_eq!(take(&queue), Err(EAGAIN));
        assert_eq!(queue.slots.free(), 3);
        Ok(())
    }

    #[test]
    fn dropped_gives_the_slot_back() -> Result {
        let (_fabric, queue) = queue(1)?;
        for _ in 0..3 {
            let reservation = EventQueue::reserve(&queue).ok_or(EINVAL)?;
            assert!(EventQueue::reserve(&queue).is_none());
            drop(reservation);
        }
        assert_eq!(EventQueue::write(&queue, &event(1)), Ok(()));
        Ok(())
    }

    #[test]
    fn after_close_nothing_is_written() -> Result {
        let (_fabric, queue) = queue(2)?;
        let reservation = EventQueue::reserve(&queue).ok_or(EINVAL)?;
        let other = EventQueue::reserve(&queue).ok_or(EINVAL)?;
        let memory = queue.arc();
        drop(queue);
        reservation.post(&event(1));
        drop(other);
        assert!(!memory.queue.is_ready());
        Ok(())
    }
}
