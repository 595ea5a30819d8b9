// SPDX-License-Identifier: GPL-2.0

//! Operations: all functions that transfer data.

use std::fmt;

use serde::{Serialize, Serializer};
use zerocopy::FromZeros;

use crate::buffer::{raw_segments, Segment};
use crate::flags::numbers;
use crate::object::{Counter, Handle};
use crate::uapi;

numbers! {
    /// The kind of an operation.
    Kind {
        SEND = KFI_SHIM_OP_SEND,
        RECV = KFI_SHIM_OP_RECV,
        TSEND = KFI_SHIM_OP_TSEND,
        TRECV = KFI_SHIM_OP_TRECV,
        READ = KFI_SHIM_OP_READ,
        WRITE = KFI_SHIM_OP_WRITE,
        ATOMIC = KFI_SHIM_OP_ATOMIC,
        FETCH_ATOMIC = KFI_SHIM_OP_FETCH_ATOMIC,
        COMPARE_ATOMIC = KFI_SHIM_OP_COMPARE_ATOMIC,
    }

    /// Which of the functions for an operation is called.
    Form {
        PLAIN = KFI_SHIM_FORM_PLAIN,
        V = KFI_SHIM_FORM_V,
        BV = KFI_SHIM_FORM_BV,
        SGL = KFI_SHIM_FORM_SGL,
        MSG = KFI_SHIM_FORM_MSG,
        MSG_BV = KFI_SHIM_FORM_MSG_BV,
        MSG_SGL = KFI_SHIM_FORM_MSG_SGL,
        INJECT = KFI_SHIM_FORM_INJECT,
        DATA = KFI_SHIM_FORM_DATA,
        INJECT_DATA = KFI_SHIM_FORM_INJECT_DATA,
    }
}

/// An operation: what [`Endpoint::post`](crate::Endpoint::post) takes.
///
/// ```
/// # use kfi::{Form, Kind, Operation, Segment};
/// Operation::new(Kind::SEND, Form::MSG)
///     .segment(Segment::NULL)
///     .to(0)
///     .context(7);
/// ```
#[derive(Clone, Debug)]
pub struct Operation {
    op: uapi::kfi_shim_op,
    segments: Vec<Segment>,
    results: Vec<Segment>,
    compares: Vec<Segment>,
    rma: Vec<uapi::kfi_shim_rma_segment>,
}

/// An operation as the interface takes it, with what it points to.
pub(crate) struct Raw {
    pub(crate) op: uapi::kfi_shim_op,
    _lists: [Vec<uapi::kfi_shim_segment>; 3],
    _rma: Vec<uapi::kfi_shim_rma_segment>,
}

impl Operation {
    /// One without memory, peer and context.
    pub fn new(kind: Kind, form: Form) -> Self {
        Self {
            op: uapi::kfi_shim_op {
                kind: kind.0,
                form: form.0,
                addr: u64::MAX,
                ..FromZeros::new_zeroed()
            },
            segments: Vec::new(),
            results: Vec::new(),
            compares: Vec::new(),
            rma: Vec::new(),
        }
    }

    /// With one more piece of local memory.
    #[must_use]
    pub fn segment(mut self, segment: Segment) -> Self {
        self.segments.push(segment);
        self
    }

    /// With more pieces of local memory.
    #[must_use]
    pub fn segments(mut self, segments: &[Segment]) -> Self {
        self.segments.extend_from_slice(segments);
        self
    }

    /// With one more piece for results.
    #[must_use]
    pub fn result(mut self, segment: Segment) -> Self {
        self.results.push(segment);
        self
    }

    /// With one more piece to compare with.
    #[must_use]
    pub fn compare(mut self, segment: Segment) -> Self {
        self.compares.push(segment);
        self
    }

    /// With one more piece of the peer's memory.
    #[must_use]
    pub fn rma(mut self, addr: u64, len: u64, key: u64) -> Self {
        self.rma.push(uapi::kfi_shim_rma_segment { addr, len, key });
        self
    }

    /// To or from a peer; by default `KFI_ADDR_UNSPEC`.
    #[must_use]
    pub fn to(mut self, addr: u64) -> Self {
        self.op.addr = addr;
        self
    }

    /// With a context.
    #[must_use]
    pub fn context(mut self, context: u64) -> Self {
        self.op.context = context;
        self
    }

    /// With flags.
    #[must_use]
    pub fn flags(mut self, flags: u64) -> Self {
        self.op.flags = flags;
        self
    }

    /// With data that comes along.
    #[must_use]
    pub fn data(mut self, data: u64) -> Self {
        self.op.data = data;
        self
    }

    /// With a tag, of which some bits do not count.
    #[must_use]
    pub fn tag(mut self, tag: u64, ignore: u64) -> Self {
        self.op.tag = tag;
        self.op.ignore = ignore;
        self
    }

    /// With a type of elements and an atomic operation.
    #[must_use]
    pub fn atomic(mut self, datatype: u32, op: u32) -> Self {
        self.op.datatype = datatype;
        self.op.atomic_op = op;
        self
    }

    /// With a condition for its start, for which `KFI_TRIGGER` must be in effect.
    #[must_use]
    pub fn trigger(self, counter: &Counter, threshold: u64) -> Self {
        self.trigger_handle(counter.handle(), uapi::KFI_TRIGGER_THRESHOLD, threshold)
    }

    /// With any condition for its start.
    #[must_use]
    pub fn trigger_handle(mut self, cntr: Handle, event: u32, threshold: u64) -> Self {
        self.op.shim_flags |= uapi::KFI_SHIM_OP_TRIGGERED;
        self.op.trigger_event = event;
        self.op.trigger_cntr = cntr;
        self.op.threshold = threshold;
        self
    }

    pub(crate) fn raw(&self, ep: Handle) -> Raw {
        let lists = [&self.segments, &self.results, &self.compares].map(|list| raw_segments(list));
        let rma = self.rma.clone();
        let op = uapi::kfi_shim_op {
            ep,
            segments: lists[0].as_ptr() as u64,
            results: lists[1].as_ptr() as u64,
            compares: lists[2].as_ptr() as u64,
            rma_segments: rma.as_ptr() as u64,
            segment_count: lists[0].len() as u32,
            result_count: lists[1].len() as u32,
            compare_count: lists[2].len() as u32,
            rma_segment_count: rma.len() as u32,
            ..self.op
        };
        Raw {
            op,
            _lists: lists,
            _rma: rma,
        }
    }
}
