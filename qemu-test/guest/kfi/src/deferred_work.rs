// SPDX-License-Identifier: GPL-2.0

//! Deferred work.

use std::fmt;

use serde::{Serialize, Serializer};
use zerocopy::FromZeros;

use crate::flags::numbers;
use crate::object::{Counter, Domain, Handle};
use crate::operation::{Operation, Raw};
use crate::session::Session;
use crate::sys::{self, request};
use crate::uapi;
use crate::{KfiErrno, Result};

numbers! {
    /// Type of the operation of a deferred work.
    OpType {
        RECV = KFI_OP_RECV,
        SEND = KFI_OP_SEND,
        TRECV = KFI_OP_TRECV,
        TSEND = KFI_OP_TSEND,
        READ = KFI_OP_READ,
        WRITE = KFI_OP_WRITE,
        ATOMIC = KFI_OP_ATOMIC,
        FETCH_ATOMIC = KFI_OP_FETCH_ATOMIC,
        COMPARE_ATOMIC = KFI_OP_COMPARE_ATOMIC,
        CNTR_SET = KFI_OP_CNTR_SET,
        CNTR_ADD = KFI_OP_CNTR_ADD,
    }
}

/// Work that is to be done when a counter reaches a threshold.
#[derive(Clone, Debug)]
pub struct Work {
    raw: uapi::kfi_shim_work,
    transfer: Option<(Operation, Handle)>,
}

impl Work {
    /// Something of any type, without operation.
    pub fn new(op_type: OpType, trigger: Handle, threshold: u64) -> Self {
        Self {
            raw: uapi::kfi_shim_work {
                op_type: op_type.0,
                triggering_cntr: trigger,
                threshold,
                ..FromZeros::new_zeroed()
            },
            transfer: None,
        }
    }

    /// A data transfer, of one of the message forms, on an endpoint.
    pub fn transfer(
        op_type: OpType,
        ep: Handle,
        operation: &Operation,
        trigger: &Counter,
        threshold: u64,
    ) -> Self {
        let mut work = Self::new(op_type, trigger.handle(), threshold);
        work.transfer = Some((operation.clone(), ep));
        work
    }

    /// Adds to a counter.
    pub fn add(counter: &Counter, value: u64, trigger: &Counter, threshold: u64) -> Self {
        Self::new(OpType::CNTR_ADD, trigger.handle(), threshold).counter(counter.handle(), value)
    }

    /// Sets a counter.
    pub fn set(counter: &Counter, value: u64, trigger: &Counter, threshold: u64) -> Self {
        Self::new(OpType::CNTR_SET, trigger.handle(), threshold).counter(counter.handle(), value)
    }

    /// With the counter to change.
    #[must_use]
    pub fn counter(mut self, counter: Handle, value: u64) -> Self {
        self.raw.cntr = counter;
        self.raw.value = value;
        self
    }

    /// With a counter of completions.
    #[must_use]
    pub fn completion(mut self, counter: Handle) -> Self {
        self.raw.completion_cntr = counter;
        self
    }

    /// With any type, for what it is not meant for.
    #[must_use]
    pub fn op_type(mut self, op_type: u32) -> Self {
        self.raw.op_type = op_type;
        self
    }

    /// With flags of the interface: `KFI_SHIM_WORK_*`.
    #[must_use]
    pub fn shim_flags(mut self, flags: u32) -> Self {
        self.raw.flags = flags;
        self
    }

    fn raw(&self, domain: &Domain) -> (Option<Box<Raw>>, uapi::kfi_shim_work) {
        let operation = self
            .transfer
            .as_ref()
            .map(|(operation, ep)| Box::new(operation.raw(*ep)));
        let mut raw = self.raw;
        raw.domain = domain.handle();
        if let Some(operation) = &operation {
            raw.op = std::ptr::from_ref(&operation.op) as u64;
            raw.op_size = size_of_val(&operation.op) as u32;
        }
        (operation, raw)
    }
}

/// Names a work in its session.
pub type WorkId = u64;

impl Domain {
    /// Queues a work. Of one that is refused there is an id, too.
    pub fn queue_work(&self, work: &Work) -> Result<WorkId> {
        let (id, result) = self.queue_work_raw(work)?;
        result.map(|()| id)
    }

    /// As [`Self::queue_work`], and tells the id in any case.
    pub fn queue_work_raw(&self, work: &Work) -> Result<(WorkId, Result<()>)> {
        let (operation, mut argument) = work.raw(self);
        self.session().ioctl(request::QUEUE_WORK, &mut argument)?;
        drop(operation);
        Ok((argument.id, KfiErrno::check(argument.result)))
    }

    /// Queues works in one request; returns ids and results of those that got to
    /// kfabric.
    pub fn queue_work_batch(&self, works: &[Work], stop: bool) -> Result<Vec<(WorkId, i32)>> {
        let raw: Vec<_> = works.iter().map(|work| work.raw(self)).collect();
        let mut array: Vec<_> = raw.iter().map(|(_, raw)| *raw).collect();
        let flags = if stop { uapi::KFI_SHIM_BATCH_STOP } else { 0 };
        let done = sys::batch(self.session(), request::QUEUE_WORK_BATCH, &mut array, flags)?;
        let done = array.iter().take(done);
        Ok(done.map(|work| (work.id, work.result)).collect())
    }

    /// Cancels a work; of another domain, if it was made for another one and the provider is the software
    /// provider: `KFI_ENOSYS` else.
    pub fn cancel_work(&self, id: WorkId, flags: u32) -> Result<()> {
        self.session().cancel_work(self.handle(), id, flags)
    }

    /// Cancels all works, or those that a counter is to trigger.
    pub fn flush_work(&self, counter: Option<&Counter>) -> Result<()> {
        self.flush_work_handle(counter.map_or(0, Counter::handle))
    }

    /// As [`Self::flush_work`], with the handle of any object.
    pub fn flush_work_handle(&self, cntr: Handle) -> Result<()> {
        let mut argument = uapi::kfi_shim_flush_work {
            domain: self.handle(),
            cntr,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::FLUSH_WORK, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}

impl Session {
    /// Queues a work again.
    pub fn requeue_work(&self, id: WorkId) -> Result<()> {
        let mut argument = uapi::kfi_shim_work {
            id,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::QUEUE_WORK, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Cancels a work, on its own domain if that is 0.
    pub fn cancel_work(&self, domain: Handle, id: WorkId, flags: u32) -> Result<()> {
        let mut argument = uapi::kfi_shim_cancel_work {
            domain,
            flags,
            id,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::CANCEL_WORK, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Frees a work.
    pub fn release_work(&self, id: WorkId) -> Result<()> {
        let mut argument = uapi::kfi_shim_cancel_work {
            id,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::RELEASE_WORK, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}
