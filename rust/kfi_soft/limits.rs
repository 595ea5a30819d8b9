// SPDX-License-Identifier: GPL-2.0

//! How much of everything there is: what kfi_getinfo offers and what the objects keep to.

#![forbid(unsafe_code)]

use crate::kfi::flags::{
    OpFlags,
    Order, //
};

/// Virtual NICs of a machine.
pub(crate) const MAX_NICS: u32 = 64;

/// How long a machine may not be heard of before it is given up, in milliseconds: TCP asks it in seconds.
pub(crate) const PEER_TIMEOUTS: core::ops::RangeInclusive<u32> = 2000..=600_000;

/// Ports of a NIC, from 0.
pub(crate) const PORTS: usize = 1 << 12;

/// Operations that a transmit context takes if no other depth was asked for.
pub(crate) const TX_SIZE: usize = 256;
/// The deepest transmit context.
pub(crate) const MAX_TX_SIZE: usize = 1 << 16;

/// Operations that a receive context takes if no other depth was asked for.
pub(crate) const RX_SIZE: usize = 256;
/// The deepest receive context.
pub(crate) const MAX_RX_SIZE: usize = 1 << 16;

/// Entries of a local vector.
pub(crate) const IOV_LIMIT: usize = 256;
/// Entries of a remote vector.
pub(crate) const RMA_IOV_LIMIT: usize = 256;
/// Entries of the vector of a memory region.
pub(crate) const MR_IOV_LIMIT: usize = 256;

/// Operations of a context that have fired and wait for room, after which no more are taken.
pub(crate) const MAX_FIRED: usize = 1 << 16;
/// Room below which a buffer for several messages is given back, in bytes, unless it is changed.
pub(crate) const MIN_MULTI_RECV: usize = 64;
/// The longest message that can be injected, in bytes.
pub(crate) const INJECT_SIZE: usize = 1024;
/// The longest transfer, in bytes.
pub(crate) const MAX_MSG_SIZE: usize = 1 << 30;
/// Bytes that are kept of messages that no receive was posted for: none, they are retried.
pub(crate) const TOTAL_BUFFERED_RECV: usize = 0;

/// Bytes of a memory key.
pub(crate) const MR_KEY_SIZE: usize = 8;
/// Bytes of remote completion data.
pub(crate) const CQ_DATA_SIZE: usize = 8;
/// Bytes of provider data in an error entry.
pub(crate) const MAX_ERR_DATA: usize = 0;
/// Bytes of an authorization key. A consumer that names no key has the empty one.
pub(crate) const MAX_AUTH_KEY_SIZE: usize = 64;

/// Transmit contexts of an endpoint.
pub(crate) const MAX_TX_CONTEXTS: usize = 256;
/// Receive contexts of an endpoint.
pub(crate) const MAX_RX_CONTEXTS: usize = 256;
/// Bits of an address that may say which receive context is meant.
pub(crate) const MAX_RX_CONTEXT_BITS: u32 = MAX_RX_CONTEXTS.ilog2();

/// Endpoints of a domain: each has a port.
pub(crate) const ENDPOINTS: usize = PORTS;
/// Transmit contexts of a domain; memory is what limits them.
pub(crate) const DOMAIN_TX_CONTEXTS: usize = 1 << 16;
/// Receive contexts of a domain; memory is what limits them.
pub(crate) const DOMAIN_RX_CONTEXTS: usize = 1 << 16;
/// Counters of a domain; memory is what limits them.
pub(crate) const COUNTERS: usize = 1 << 20;
/// Completion queues of a domain; memory is what limits them.
pub(crate) const QUEUES: usize = 1 << 16;
/// Memory regions of a domain; memory is what limits them.
pub(crate) const MEMORY_REGIONS: usize = 1 << 20;

/// The default flags of a transmit context's operations.
pub(crate) const TX_OP_FLAGS: OpFlags = OpFlags::COMPLETION
    .union(OpFlags::INJECT)
    .union(OpFlags::INJECT_COMPLETE)
    .union(OpFlags::TRANSMIT_COMPLETE)
    .union(OpFlags::DELIVERY_COMPLETE);
/// The default flags of a receive context's operations.
pub(crate) const RX_OP_FLAGS: OpFlags = OpFlags::COMPLETION.union(OpFlags::MULTI_RECV);

/// The order in which a receiver sees operations.
pub(crate) const MSG_ORDER: Order = Order::SEND_AFTER_SEND;
/// The order of completions: none.
pub(crate) const COMP_ORDER: Order = Order::NONE;
