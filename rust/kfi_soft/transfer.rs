// SPDX-License-Identifier: GPL-2.0

//! Operations on peers, from the transmit context where they begin to the receive context or the
//! region where they end.

#![forbid(unsafe_code)]

use crate::{
    budget::INLINE_LIMIT,
    kfi::linux::interrupts,
    wire::{
        Request,
        RequestKind, //
    }, //
};

pub(crate) mod accepted;
pub(crate) mod atomic;
pub(crate) mod completer;
pub(crate) mod credits;
pub(crate) mod inbound;
pub(crate) mod landing;
pub(crate) mod late_deliveries;
pub(crate) mod matching;
pub(crate) mod multi_buffer;
pub(crate) mod origin;
pub(crate) mod outstanding;
pub(crate) mod parking;
pub(crate) mod receive_queue;
pub(crate) mod receiver;
pub(crate) mod region;
pub(crate) mod stripes;
pub(crate) mod targets;
pub(crate) mod transmitter;

/// Up to as many bytes are copied with interrupts disabled.
const SECTION_LIMIT: usize = 2 << 10;

/// Returns whether a request is so small that it may be carried out with interrupts disabled.
fn is_small(request: &Request) -> bool {
    match request.kind {
        RequestKind::Atomic(atomics) => {
            request.len <= stripes::CHUNK.saturating_mul(atomics.size())
        }
        _ => request.len <= SECTION_LIMIT,
    }
}

/// Returns whether a request is carried out in the poster's context, not by the work queue.
///
/// An element takes much longer than a byte that is copied, and others get the locks of some, but
/// not an interrupt.
fn is_inline(request: &Request) -> bool {
    match request.kind {
        RequestKind::Atomic(_) if interrupts::are_disabled() => is_small(request),
        _ => request.len <= INLINE_LIMIT,
    }
}
