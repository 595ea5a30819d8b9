// SPDX-License-Identifier: GPL-2.0

//! Event queues.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
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
            Object, //
        },
        flags::QueueFlags,
        hold::Hold,
        provider::{
            event_queue_test_ops,
            Event,
            EventError,
            EventQueueAttr,
            EventQueueClass,
            EventQueueOps, //
        },
        timeout::Timeout, //
    },
    queue::{
        Queue,
        WaitWith, //
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 64;

/// The largest size.
const MAX_SIZE: usize = 1 << 14;

/// The flags that are known: that the queue may be written to, as it may anyhow, and on which CPU the
/// handler runs, of which there is none yet.
const FLAGS: QueueFlags = QueueFlags::WRITE.union(QueueFlags::AFFINITY);

/// What lies in a queue.
pub(crate) enum Entry {
    /// An event.
    Event(Event),
    /// An error.
    Error(EventError),
}

/// An event queue. Errors lie among the events, in order.
#[pin_data]
pub(crate) struct EventQueue {
    #[pin]
    queue: Queue<Entry>,
    fabric: Hold<Fabric>,
}

impl EventQueue {
    /// Creates an empty queue.
    pub(crate) fn new(
        fabric: Hold<Fabric>,
        attr: &EventQueueAttr<'_>,
    ) -> Result<impl PinInit<Self>> {
        if !FLAGS.contains(QueueFlags::from_raw(attr.flags)) || attr.size > MAX_SIZE {
            return Err(EINVAL);
        }
        // Nothing calls handlers yet.
        if attr.has_handler {
            return Err(ENOSYS);
        }
        let size = if attr.size == 0 {
            DEFAULT_SIZE
        } else {
            attr.size
        };
        let queue = Queue::new(size, WaitWith::new(attr.wait, fabric.fid())?)?;
        Ok(pin_init!(Self {
            queue <- queue,
            fabric,
        }))
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Arc<Fid<Fabric>> {
        self.fabric.fid()
    }

    /// Returns the entries.
    pub(crate) fn queue(&self) -> &Queue<Entry> {
        &self.queue
    }
}

impl Object for EventQueue {
    type Class = EventQueueClass;

    fn release(&self) {
        self.queue.release();
        self.fabric.release();
    }

    fn ops_open(this: &Fid<Self>, name: &CStr) -> Result<ExtraOps> {
        event_queue_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.queue.control(command)
    }
}

impl EventQueueOps for EventQueue {
    fn size(&self) -> usize {
        self.queue.capacity()
    }

    fn read(&self, len: usize, peek: bool) -> Result<Event> {
        self.queue.take(|entries| match entries.first() {
            None => Err(EAGAIN),
            Some(Entry::Error(_)) => Err(EAVAIL.into()),
            Some(Entry::Event(event)) if event.len > len => Err(ETOOSMALL.into()),
            Some(Entry::Event(event)) => {
                let event = *event;
                if !peek {
                    entries.pop();
                }
                Ok(event)
            }
        })
    }

    fn readerr(&self, peek: bool) -> Result<EventError> {
        self.queue.take(|entries| match entries.first() {
            Some(Entry::Error(error)) => {
                let error = *error;
                if !peek {
                    entries.pop();
                }
                Ok(error)
            }
            _ => Err(EAGAIN),
        })
    }

    fn write(&self, event: &Event) -> Result {
        self.queue.push(Entry::Event(*event)).map_err(|_| EAGAIN)
    }

    fn write_error(&self, error: &EventError) -> Result {
        self.queue.push(Entry::Error(*error)).map_err(|_| EAGAIN)
    }

    fn sread(this: &Fid<Self>, len: usize, peek: bool, timeout: Timeout) -> Result<Event> {
        kernel::task::might_sleep();
        let _hold = Hold::new(this)?;
        this.queue.read_blocking(timeout, || this.read(len, peek))
    }

    fn strerror(_prov_errno: c_int) -> &'static CStr {
        c"No provider error"
    }
}
