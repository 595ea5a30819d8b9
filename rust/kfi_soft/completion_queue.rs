// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

use crate::{
    domain::Domain,
    kfi::{
        control::Control,
        errno::EAVAIL,
        fid::{
            ExtraOps,
            Fid,
            Object, //
        },
        flags::QueueFlags,
        hold::Hold,
        provider::{
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
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 256;

/// The largest size.
const MAX_SIZE: usize = 1 << 16;

/// The flags that are known: on which CPU the handler runs, of which there is none yet.
const FLAGS: QueueFlags = QueueFlags::AFFINITY;

/// A completion queue. Errors lie among the completions, in order.
#[pin_data]
pub(crate) struct CompletionQueue {
    format: CompletionFormat,
    #[pin]
    queue: Queue<CompletionError>,
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
        // Nothing calls handlers yet.
        if attr.has_handler {
            return Err(ENOSYS);
        }
        let size = if attr.size == 0 {
            DEFAULT_SIZE
        } else {
            attr.size
        };
        let queue = Queue::new(size, WaitWith::new(attr.wait, domain.fabric())?)?;
        let format = attr.format;
        Ok(pin_init!(Self {
            format,
            queue <- queue,
            domain,
        }))
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns the entries.
    pub(crate) fn queue(&self) -> &Queue<CompletionError> {
        &self.queue
    }
}

impl Object for CompletionQueue {
    type Class = CompletionQueueClass;

    fn release(&self) {
        self.queue.release();
        self.domain.release();
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
        self.queue.capacity()
    }

    fn read(&self, buffer: &mut CompletionBuffer<'_>) -> Result {
        self.queue.take(|entries| {
            while let Some(entry) = entries.first() {
                if entry.err != 0 {
                    if buffer.len() == 0 {
                        return Err(EAVAIL.into());
                    }
                    break;
                }
                if !buffer.push(&entry.completion) {
                    break;
                }
                entries.pop();
            }
            if buffer.len() == 0 {
                return Err(EAGAIN);
            }
            Ok(())
        })
    }

    fn readerr(&self, peek: bool) -> Result<CompletionError> {
        self.queue.take(|entries| match entries.first() {
            Some(entry) if entry.err != 0 => {
                let error = *entry;
                if !peek {
                    entries.pop();
                }
                Ok(error)
            }
            _ => Err(EAGAIN),
        })
    }

    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        let _hold = Hold::new(this)?;
        this.queue.read_blocking(timeout, || this.read(buffer))
    }

    fn signal(&self) -> Result {
        self.queue.signal();
        Ok(())
    }

    fn strerror(_prov_errno: c_int) -> &'static CStr {
        c"No provider error"
    }

    fn write(&self, entry: &CompletionError) -> Result {
        self.queue.push(*entry).map_err(|_| ENOSPC)
    }
}
