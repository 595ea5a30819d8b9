// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use zerocopy::FromZeros;

use crate::attr::WaitObj;
use crate::object::{millis, object, queue_flags, waitable, Fabric, Handle, Object};
use crate::session::Session;
use crate::sys::{request, Request};
use crate::{bits, uapi};
use crate::{Error, KfiErrno, Result};

/// Attributes of an event queue: by default one that can be waited for with
/// [`EventQueue::sread`] only.
#[derive(Clone, Copy, Debug)]
pub struct EqAttr {
    no_attr: bool,
    size: u64,
    wait_obj: WaitObj,
    wait_set: Handle,
    flags: u64,
    context: u64,
    handler: bool,
    vector: i32,
}

impl EqAttr {
    /// The default.
    pub fn new() -> Self {
        Self {
            no_attr: false,
            size: 0,
            wait_obj: WaitObj::UNSPEC,
            wait_set: 0,
            flags: bits::WRITE,
            context: 0,
            handler: false,
            vector: 0,
        }
    }

    /// With a handler, whose calls [`EventQueue::handled`] counts.
    #[must_use]
    pub fn handler(self) -> Self {
        Self {
            handler: true,
            ..self
        }
    }

    /// With a CPU for the handler; needs `KFI_AFFINITY` in the flags.
    #[must_use]
    pub fn vector(self, vector: i32) -> Self {
        Self { vector, ..self }
    }

    /// No attributes: the provider is given NULL.
    pub fn null() -> Self {
        Self {
            no_attr: true,
            ..Self::new()
        }
    }

    /// Number of entries; 0 leaves it to the provider.
    #[must_use]
    pub fn size(self, size: u64) -> Self {
        Self { size, ..self }
    }

    /// The kind of object that a waiting thread sleeps on.
    #[must_use]
    pub fn wait_obj(self, wait_obj: WaitObj) -> Self {
        Self { wait_obj, ..self }
    }

    /// The wait set, by its handle.
    #[must_use]
    pub fn wait_set(self, wait_set: Handle) -> Self {
        Self { wait_set, ..self }
    }

    /// Flags; by default `KFI_WRITE`.
    #[must_use]
    pub fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }

    /// Context of the queue.
    #[must_use]
    pub fn context(self, context: u64) -> Self {
        Self { context, ..self }
    }
}

impl Default for EqAttr {
    fn default() -> Self {
        Self::new()
    }
}

/// An event: its type, and its entry as it was written.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Event {
    /// Type of the event.
    pub event: u32,
    /// The entry.
    pub data: Vec<u8>,
    /// The object that it is about, 0 if that is not known.
    pub object: Handle,
}

/// Something that has failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct EventError {
    /// Context of the operation or object.
    pub context: u64,
    /// Data of the event.
    pub data: u64,
    /// Error number, positive.
    pub err: i32,
    /// Error number of the provider.
    pub prov_errno: i32,
    /// The object that it is about, 0 if that is not known.
    pub object: Handle,
}

/// An event queue.
#[derive(Debug)]
pub struct EventQueue {
    object: Arc<Object>,
}

object!(EventQueue);
waitable!(EventQueue);

impl Fabric {
    /// Opens an event queue.
    pub fn event_queue(&self, attr: &EqAttr) -> Result<EventQueue> {
        let mut argument = uapi::kfi_shim_eq_open {
            fabric: self.handle(),
            flags: queue_flags(attr.no_attr, attr.handler),
            signaling_vector: attr.vector,
            size: attr.size,
            attr_flags: attr.flags,
            context: attr.context,
            wait_obj: attr.wait_obj.0,
            wait_set: attr.wait_set,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::EQ_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let session = self.session().clone();
        Ok(EventQueue {
            object: Object::new(session, argument.eq, Some(&self.object)),
        })
    }
}

impl EventQueue {
    /// Takes an event out whose entry has `room` bytes at most, or else answers
    /// `KFI_ETOOSMALL`. `KFI_EAGAIN` says that there is none, `KFI_EAVAIL` that
    /// an error comes first.
    pub fn read(&self, room: usize) -> Result<Event> {
        self.take(request::EQ_READ, room, 0, 0)
    }

    /// As [`Self::read`], and leaves the event where it is.
    pub fn peek(&self, room: usize) -> Result<Event> {
        self.take(request::EQ_READ, room, bits::PEEK, 0)
    }

    /// As [`Self::read`], but sleeps while there is nothing.
    ///
    /// `None` waits without end; otherwise `KFI_ETIMEDOUT` is the answer after
    /// that long, rounded up to milliseconds.
    pub fn sread(&self, room: usize, timeout: Option<Duration>) -> Result<Event> {
        self.sread_ms(room, millis(timeout))
    }

    /// As [`Self::sread`], with the timeout as kfabric takes it: milliseconds,
    /// negative for none.
    pub fn sread_ms(&self, room: usize, timeout: i32) -> Result<Event> {
        self.take(request::EQ_SREAD, room, 0, timeout)
    }

    fn take(
        &self,
        request: Request<uapi::kfi_shim_eq_event>,
        room: usize,
        flags: u64,
        timeout: i32,
    ) -> Result<Event> {
        let mut argument = uapi::kfi_shim_eq_event {
            eq: self.handle(),
            flags,
            len: u32::try_from(room).unwrap_or(u32::MAX),
            timeout,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request, &mut argument)?;
        let len = KfiErrno::check_number(argument.result)?;
        Ok(Event {
            event: argument.event,
            object: argument.object,
            data: argument.data[..len.min(argument.data.len())].to_vec(),
        })
    }

    /// Waits until the handler was called so often; returns how often it was.
    pub fn handled(&self, calls: u64, timeout: Option<Duration>) -> Result<u64> {
        let handled = self
            .session()
            .handled(self.handle(), calls, millis(timeout));
        handled.map(|(calls, _)| calls)
    }

    /// Adds an event; `KFI_EAGAIN` if the queue is full. `E2BIG` if the entry is
    /// longer than any may be, `EINVAL` for `KFI_CONNREQ`.
    pub fn write(&self, event: u32, data: &[u8]) -> Result<usize> {
        let mut argument = uapi::kfi_shim_eq_event {
            eq: self.handle(),
            event,
            len: u32::try_from(data.len()).unwrap_or(u32::MAX),
            ..FromZeros::new_zeroed()
        };
        let len = data.len().min(argument.data.len());
        argument.data[..len].copy_from_slice(&data[..len]);
        self.session().ioctl(request::EQ_WRITE, &mut argument)?;
        KfiErrno::check_number(argument.result)
    }

    /// Takes an error out; `KFI_EAGAIN` if none comes first.
    pub fn read_err(&self) -> Result<EventError> {
        let mut argument = uapi::kfi_shim_eq_error {
            eq: self.handle(),
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::EQ_READERR, &mut argument)?;
        KfiErrno::check_number(argument.result)?;
        Ok(EventError {
            context: argument.context,
            data: argument.data,
            err: argument.err,
            prov_errno: argument.prov_errno,
            object: argument.object,
        })
    }

    /// Adds an error, if the provider lets tests do that.
    pub fn write_err(&self, error: &EventError) -> Result<()> {
        let mut argument = uapi::kfi_shim_eq_error {
            eq: self.handle(),
            context: error.context,
            data: error.data,
            err: error.err,
            prov_errno: error.prov_errno,
            ..FromZeros::new_zeroed()
        };
        self.session()
            .ioctl(request::EQ_WRITE_ERROR, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}
