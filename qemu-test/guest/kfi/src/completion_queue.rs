// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use zerocopy::FromZeros;

use crate::attr::WaitObj;
use crate::flags::numbers;
use crate::object::{millis, object, queue_flags, waitable, Domain, Handle, Object};
use crate::session::Session;
use crate::sys::{self, request};
use crate::uapi;
use crate::{Error, KfiErrno, Result};

numbers! {
    /// The format of the entries of a completion queue.
    CqFormat {
        UNSPEC = KFI_CQ_FORMAT_UNSPEC,
        CONTEXT = KFI_CQ_FORMAT_CONTEXT,
        MSG = KFI_CQ_FORMAT_MSG,
        DATA = KFI_CQ_FORMAT_DATA,
        TAGGED = KFI_CQ_FORMAT_TAGGED,
    }
}

/// Attributes of a completion queue: by default one that can be waited for with
/// [`CompletionQueue::sread`] only, with entries that tell everything.
#[derive(Clone, Copy, Debug)]
pub struct CqAttr {
    no_attr: bool,
    size: u64,
    format: CqFormat,
    wait_obj: WaitObj,
    wait_cond: u32,
    wait_set: Handle,
    flags: u64,
    context: u64,
    handler: bool,
    vector: i32,
}

impl CqAttr {
    /// The default.
    pub fn new() -> Self {
        Self {
            no_attr: false,
            size: 0,
            format: CqFormat::TAGGED,
            wait_obj: WaitObj::UNSPEC,
            wait_cond: 0,
            wait_set: 0,
            flags: 0,
            context: 0,
            handler: false,
            vector: 0,
        }
    }

    /// With a handler, whose calls [`CompletionQueue::handled`] counts.
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

    /// The format of the entries.
    #[must_use]
    pub fn format(self, format: CqFormat) -> Self {
        Self { format, ..self }
    }

    /// The kind of object that a waiting thread sleeps on.
    #[must_use]
    pub fn wait_obj(self, wait_obj: WaitObj) -> Self {
        Self { wait_obj, ..self }
    }

    /// The wait condition, one of `KFI_CQ_COND_*`.
    #[must_use]
    pub fn wait_cond(self, wait_cond: u32) -> Self {
        Self { wait_cond, ..self }
    }

    /// The wait set, by its handle.
    #[must_use]
    pub fn wait_set(self, wait_set: Handle) -> Self {
        Self { wait_set, ..self }
    }

    /// Flags; none is defined.
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

impl Default for CqAttr {
    fn default() -> Self {
        Self::new()
    }
}

/// An operation that has succeeded. Fields that the format of the queue lacks
/// are 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Completion {
    /// Context of the operation.
    pub op_context: u64,
    /// Flags that describe the operation.
    pub flags: u64,
    /// Bytes transferred.
    pub len: u64,
    /// Where received data lies: a buffer in the upper, an offset in the lower
    /// 32 bits.
    pub buf: u64,
    /// Data that came along.
    pub data: u64,
    /// Tag of a message.
    pub tag: u64,
    /// Address of the sender, or `KFI_ADDR_NOTAVAIL`; not told of errors.
    pub src_addr: u64,
}

impl From<uapi::kfi_shim_cq_entry> for Completion {
    fn from(entry: uapi::kfi_shim_cq_entry) -> Self {
        Self {
            op_context: entry.op_context,
            flags: entry.flags,
            len: entry.len,
            buf: entry.buf,
            data: entry.data,
            tag: entry.tag,
            src_addr: entry.src_addr,
        }
    }
}

impl From<Completion> for uapi::kfi_shim_cq_entry {
    fn from(entry: Completion) -> Self {
        Self {
            op_context: entry.op_context,
            flags: entry.flags,
            len: entry.len,
            buf: entry.buf,
            data: entry.data,
            tag: entry.tag,
            src_addr: entry.src_addr,
        }
    }
}

/// An operation that has failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct CompletionError {
    /// The operation.
    pub entry: Completion,
    /// Bytes that did not fit.
    pub olen: u64,
    /// Error number, positive.
    pub err: i32,
    /// Error number of the provider.
    pub prov_errno: i32,
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(crate) object: Arc<Object>,
}

object!(CompletionQueue);
waitable!(CompletionQueue);

impl Domain {
    /// Opens a completion queue.
    pub fn completion_queue(&self, attr: &CqAttr) -> Result<CompletionQueue> {
        let mut argument = uapi::kfi_shim_cq_open {
            domain: self.handle(),
            flags: queue_flags(attr.no_attr, attr.handler),
            signaling_vector: attr.vector,
            size: attr.size,
            attr_flags: attr.flags,
            context: attr.context,
            format: attr.format.0,
            wait_obj: attr.wait_obj.0,
            wait_cond: attr.wait_cond,
            wait_set: attr.wait_set,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::CQ_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let session = self.session().clone();
        Ok(CompletionQueue {
            object: Object::new(session, argument.cq, Some(&self.object)),
        })
    }
}

impl CompletionQueue {
    /// Takes completions out, `room` at most. `KFI_EAGAIN` says that there is
    /// none, `KFI_EAVAIL` that an error comes first.
    pub fn read(&self, room: usize) -> Result<Vec<Completion>> {
        self.take(room, None, 0, 0)
    }

    /// As [`Self::read`], without asking who sent what.
    pub fn read_without_source(&self, room: usize) -> Result<Vec<Completion>> {
        self.take(room, None, 0, uapi::KFI_SHIM_CQ_NO_SOURCE)
    }

    /// As [`Self::read`], but sleeps while there is nothing.
    ///
    /// `None` waits without end; otherwise `KFI_ETIMEDOUT` is the answer after
    /// that long, rounded up to milliseconds.
    pub fn sread(&self, room: usize, timeout: Option<Duration>) -> Result<Vec<Completion>> {
        self.sread_ms(room, millis(timeout))
    }

    /// As [`Self::sread`], with the timeout as kfabric takes it: milliseconds,
    /// negative for none.
    pub fn sread_ms(&self, room: usize, timeout: i32) -> Result<Vec<Completion>> {
        self.take(room, Some(timeout), 0, 0)
    }

    /// As [`Self::sread_ms`], with a condition.
    pub fn sread_cond(&self, room: usize, cond: u64, timeout: i32) -> Result<Vec<Completion>> {
        self.take(room, Some(timeout), cond, 0)
    }

    /// Waits until the handler was called so often; returns how often it was.
    pub fn handled(&self, calls: u64, timeout: Option<Duration>) -> Result<u64> {
        let handled = self
            .session()
            .handled(self.handle(), calls, millis(timeout));
        handled.map(|(calls, _)| calls)
    }

    fn take(
        &self,
        room: usize,
        timeout: Option<i32>,
        cond: u64,
        flags: u32,
    ) -> Result<Vec<Completion>> {
        let mut entries = vec![uapi::kfi_shim_cq_entry::new_zeroed(); room];
        let result = sys::cq_read(
            self.session(),
            self.handle(),
            &mut entries,
            timeout,
            cond,
            flags,
        )?;
        entries.truncate(KfiErrno::check_number(result)?);
        Ok(entries.into_iter().map(Completion::from).collect())
    }

    /// Takes an error out; `KFI_EAGAIN` if none comes first.
    pub fn read_err(&self) -> Result<CompletionError> {
        let mut argument = uapi::kfi_shim_cq_error {
            cq: self.handle(),
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::CQ_READERR, &mut argument)?;
        KfiErrno::check_number(argument.result)?;
        Ok(CompletionError {
            entry: argument.entry.into(),
            olen: argument.olen,
            err: argument.err,
            prov_errno: argument.prov_errno,
        })
    }

    /// Adds a completion, if the provider lets tests do that.
    pub fn write(&self, entry: &Completion) -> Result<()> {
        self.write_err(&CompletionError {
            entry: *entry,
            ..CompletionError::default()
        })
    }

    /// Adds an error, or a completion if there is no error number.
    pub fn write_err(&self, error: &CompletionError) -> Result<()> {
        let mut argument = uapi::kfi_shim_cq_error {
            cq: self.handle(),
            result: 0,
            entry: error.entry.into(),
            olen: error.olen,
            err: error.err,
            prov_errno: error.prov_errno,
        };
        self.session().ioctl(request::CQ_WRITE, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Ends the sleep of all threads that wait for completions; they are told
    /// `KFI_EAGAIN`.
    pub fn signal(&self) -> Result<()> {
        let mut argument = uapi::kfi_shim_cq_signal {
            cq: self.handle(),
            result: 0,
        };
        self.session().ioctl(request::CQ_SIGNAL, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}
