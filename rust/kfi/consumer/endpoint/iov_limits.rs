// SPDX-License-Identifier: GPL-2.0

//! How large operations may be, how many there may be, and what a provider is taken to keep of them.

use crate::kfi::{
    bindings,
    consumer::{
        buffer::{
            Local,
            Shape, //
        },
        operation::Operation, //
    }, //
};

/// The most entries that the arrays of an operation may have.
#[derive(Clone, Copy)]
pub(in crate::kfi::consumer) struct IovLimits {
    /// Of what is sent, read, written.
    pub(super) transmit: usize,
    /// Of a receive.
    pub(super) receive: usize,
    /// Of a peer's memory.
    pub(super) remote: usize,
    /// Operations that transmit that there may be at a time.
    pub(super) transmits: usize,
    /// Receives that there may be at a time.
    pub(super) receives: usize,
    /// Bytes that may be copied of what is sent.
    pub(super) inject: usize,
}

/// The number of bytes that a provider copies by itself when it sends, unless the consumer has said
/// how many.
const INJECT: usize = 1024;

/// Operations that a provider is taken to have room for in one direction, if nobody has said how many.
pub const DEPTH: usize = 256;

/// The estimate of a completion in a queue, which is also most of a receive.
pub(super) const COMPLETION_SIZE: usize = 256;

/// Kinds of receives of which an endpoint may have as many each: those of messages, those of tagged
/// ones, and those that only look for such.
pub(super) const RECEIVE_KINDS: usize = 3;

/// The estimate of a receive, beside its arrays: the receive with its completion, and the part that
/// several messages share.
pub const RECEIVE_SIZE: usize = RECEIVE_KINDS * (COMPLETION_SIZE + 128);

/// The estimate of an operation that transmits, beside its arrays: its state under way, the node
/// that it is found by, and the completion.
pub const TRANSMIT_SIZE: usize = 832 + COMPLETION_SIZE;

/// The estimate of an operation that waits for a counter, of either direction, beside its arrays:
/// also the entry it waits in, and its place in a table.
pub(in crate::kfi::consumer) const PENDING_SIZE: usize = TRANSMIT_SIZE + 256;

/// The memory that a provider keeps of an entry of an array: twice its size, as arrays are rounded
/// up to powers of two.
const ENTRY_SIZE: usize = 2 * 24;

impl IovLimits {
    /// The limits where the consumer has not said anything.
    pub(super) const NONE: Self = Self {
        transmit: usize::MAX,
        receive: usize::MAX,
        remote: usize::MAX,
        transmits: DEPTH,
        receives: DEPTH,
        inject: INJECT,
    };

    /// Returns a limit that a provider has told, where 0 leaves what there was.
    fn choose(told: usize, before: usize) -> usize {
        if told == 0 {
            before
        } else {
            told
        }
    }

    /// Returns a depth that was asked for; a provider may take 0 for its own, or leave what there was.
    fn depth(told: usize, before: usize) -> usize {
        Self::choose(told, before.max(DEPTH))
    }

    /// Returns them with those of attributes.
    pub(super) fn with(
        self,
        tx: Option<&bindings::kfi_tx_attr>,
        rx: Option<&bindings::kfi_rx_attr>,
    ) -> Self {
        Self {
            transmit: tx.map_or(self.transmit, |attr| {
                Self::choose(attr.iov_limit, self.transmit)
            }),
            receive: rx.map_or(self.receive, |attr| {
                Self::choose(attr.iov_limit, self.receive)
            }),
            remote: tx.map_or(self.remote, |attr| {
                Self::choose(attr.rma_iov_limit, self.remote)
            }),
            transmits: tx.map_or(self.transmits, |attr| {
                Self::depth(attr.size, self.transmits)
            }),
            receives: rx.map_or(self.receives, |attr| Self::depth(attr.size, self.receives)),
            inject: tx.map_or(self.inject, |attr| {
                Self::choose(attr.inject_size, self.inject.max(INJECT))
            }),
        }
    }

    /// Returns how much a provider may keep of the arrays of an operation.
    pub(in crate::kfi::consumer) fn kept_of(operation: &Operation<'_>, shape: Shape) -> usize {
        let lists = [
            Local::entries(operation.segments, shape),
            operation.results.len(),
            operation.compares.len(),
            operation.rma.len(),
        ];
        let entries = lists
            .iter()
            .fold(0, |sum: usize, len| sum.saturating_add(*len));
        entries.saturating_mul(ENTRY_SIZE)
    }

    /// Returns whether an operation keeps to them.
    pub(in crate::kfi::consumer) fn allow(self, operation: &Operation<'_>, shape: Shape) -> bool {
        let local = if operation.kind.is_receive() {
            self.receive
        } else {
            self.transmit
        };
        let entries = |segments| Local::entries(segments, shape);
        entries(operation.segments) <= local
            && operation.results.len() <= local
            && operation.compares.len() <= local
            && operation.rma.len() <= self.remote
    }
}
