// SPDX-License-Identifier: GPL-2.0

//! How much memory a provider is taken to need for what it is asked to open.
//!
//! Only the provider knows what it needs, but a user that asks for much is to have much counted.

#![forbid(unsafe_code)]

use crate::kfi::{
    consumer::{
        ADDRESS_SIZE,
        DEPTH,
        LEFT_SIZE,
        RECEIVE_SIZE,
        TRANSMIT_SIZE, //
    },
    info::InfoRef, //
};

/// The memory that an object needs.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// Bytes of memory.
    pub(crate) memory: usize,
    /// Objects with work queues of their own, and so with threads of the kernel.
    pub(crate) with_threads: usize,
    /// Endpoints that have an address.
    pub(crate) endpoints: usize,
}

impl Needs {
    /// The needs of an endpoint that has an address.
    pub(crate) fn of_endpoint(memory: usize) -> Self {
        Self {
            endpoints: 1,
            ..Self::from(memory)
        }
    }
}

impl From<usize> for Needs {
    fn from(memory: usize) -> Self {
        Self {
            memory,
            with_threads: 0,
            endpoints: 0,
        }
    }
}

/// An object, with its head, its names and what the shim keeps of it.
pub(crate) const OBJECT: usize = 2048;

/// A counter: with room for the first operations of either kind that wait for it, which it keeps.
pub(crate) const COUNTER: usize = OBJECT + 1024;

/// A work queue: the thread that comes to its rescue, with its stack, and a part for each CPU.
const WORK_QUEUE: usize = 1 << 16;

/// The needs of a fabric, which has a work queue for the handlers of its queues.
pub(crate) const FABRIC: Needs = Needs {
    memory: WORK_QUEUE,
    with_threads: 1,
    endpoints: 0,
};

/// The work queues of a domain: one for operations that are due, one for its endpoints.
const WORK_QUEUES_OF_DOMAIN: usize = 2;

/// A wait descriptor, with its file and what wakes those who wait.
pub(crate) const DESCRIPTOR: usize = 1536;

/// Entries of a queue for which nobody has said how many there are to be.
const ENTRIES: usize = 1024;

/// An entry of a queue, also of a large one, whose entries are allocated one by one.
const ENTRY: usize = 256;

/// A context that an endpoint leads to.
const CONTEXT: usize = 64;

/// Contexts of one direction of a scalable endpoint for which nobody has said how many there are to
/// be.
const CONTEXTS: usize = 256;

/// The memory that is kept of an authorization key, and of the ports of one of its users.
const AUTH_KEY: usize = 6 << 10;

/// The memory of all ports of a NIC, for those with one key.
const PORTS: usize = 130 << 10;

/// The parts of an endpoint or context for one direction.
const DIRECTION: usize = 1536;

/// An operation that transmits that an endpoint or context takes at a time, without its arrays.
pub(crate) const TRANSMIT: usize = TRANSMIT_SIZE;

/// A receive, likewise.
pub(crate) const RECEIVE: usize = RECEIVE_SIZE;

/// The remains of an endpoint or context that is closed.
pub(crate) const LEFT: usize = LEFT_SIZE;

/// An entry of an answer of kfi_getinfo, with its attributes and names.
const INFO: usize = 2048;

/// Returns how much `count` things need, or `default` of them if it is 0.
fn many(count: usize, default: usize, size: usize) -> usize {
    let count = if count == 0 { default } else { count };
    count.saturating_mul(size).saturating_add(OBJECT)
}

/// Returns what a queue needs.
pub(crate) fn queue(entries: usize) -> usize {
    many(entries, ENTRIES, ENTRY)
}

/// The tables of an address vector, for its first addresses.
const TABLES: usize = 10 << 10;

/// Returns what an address vector needs.
pub(crate) fn address_vector(addresses: usize) -> usize {
    many(addresses, 0, ADDRESS_SIZE).saturating_add(TABLES)
}

/// Returns what the operations of a context of one direction need, of which one needs `each`, and
/// what the context leaves over.
fn context(operations: usize, each: usize) -> usize {
    let operations = if operations == 0 { DEPTH } else { operations };
    operations
        .saturating_mul(each)
        .saturating_add(DIRECTION)
        .saturating_add(LEFT)
}

/// Returns what the operations of a context need whose depth was asked for, or is `default` as nobody has.
pub(crate) fn context_of(asked: Option<usize>, default: usize, each: usize) -> usize {
    let operations = match asked {
        // The provider's own, or what there was.
        Some(0) => default.max(DEPTH),
        Some(depth) => depth,
        None => default,
    };
    context(operations, each)
}

/// Returns what the operations of an endpoint need that is opened as an entry says.
pub(crate) fn endpoint(info: InfoRef<'_>) -> usize {
    let tx = context(info.tx_attr().map_or(0, |attr| attr.size), TRANSMIT);
    let rx = context(info.rx_attr().map_or(0, |attr| attr.size), RECEIVE);
    tx.saturating_add(rx).saturating_add(auth_key(info))
}

/// Returns what a domain needs that is opened as an entry says: with an authorization key also the
/// ports of endpoints that have it from the domain.
pub(crate) fn domain(info: InfoRef<'_>) -> Needs {
    let ports = match info.domain_auth_key() {
        Some(key) if !key.is_empty() => PORTS,
        _ => 0,
    };
    Needs {
        memory: WORK_QUEUE
            .saturating_mul(WORK_QUEUES_OF_DOMAIN)
            .saturating_add(ports),
        with_threads: 1,
        endpoints: 0,
    }
}

/// Returns what the authorization key of an endpoint needs, if it is opened with one.
fn auth_key(info: InfoRef<'_>) -> usize {
    match info.ep_auth_key() {
        Some(key) if !key.is_empty() => AUTH_KEY,
        _ => 0,
    }
}

/// Returns what an endpoint needs that leads to contexts only.
pub(crate) fn scalable_endpoint(info: InfoRef<'_>) -> usize {
    let (tx, rx) = info
        .ep_attr()
        .map_or((0, 0), |attr| (attr.tx_ctx_cnt, attr.rx_ctx_cnt));
    let asked = |count: usize| if count == 0 { CONTEXTS } else { count };
    many(asked(tx).saturating_add(asked(rx)), 0, CONTEXT).saturating_add(auth_key(info))
}

/// Returns what an answer with so many entries needs.
pub(crate) fn info(entries: usize) -> usize {
    many(entries, 0, INFO)
}
