// SPDX-License-Identifier: GPL-2.0

//! Tracepoints, see `trace.h`.

use crate::trigger::{
    pending::PendingKind,
    threshold::Key, //
};

/// Emits an event if it is enabled.
macro_rules! emit {
    ($point:ident, $emit:ident, $($arg:expr),*) => {
        #[cfg(CONFIG_TRACEPOINTS)]
        {
            use crate::kfi::bindings;

            // SAFETY: The static key of a tracepoint may always be looked at.
            let enabled = unsafe {
                kernel::jump_label::static_branch_unlikely!(
                    bindings::$point,
                    kernel::bindings::tracepoint,
                    key
                )
            };
            if enabled {
                // SAFETY: All arguments are numbers.
                unsafe { bindings::$emit($($arg),*) };
            }
        }
        #[cfg(not(CONFIG_TRACEPOINTS))]
        let _ = ($($arg),*);
    };
}

/// Something was submitted.
#[inline]
pub(crate) fn submit(counter: u64, key: Key, kind: PendingKind) {
    emit!(
        __tracepoint_kfi_soft_submit,
        rust_do_trace_kfi_soft_submit,
        counter,
        key.threshold,
        key.sequence,
        kind == PendingKind::Deferred
    );
}

/// Something was cancelled.
#[inline]
pub(crate) fn cancel(counter: u64, key: Key, kind: PendingKind) {
    emit!(
        __tracepoint_kfi_soft_cancel,
        rust_do_trace_kfi_soft_cancel,
        counter,
        key.threshold,
        key.sequence,
        kind == PendingKind::Deferred
    );
}

/// Something that was due runs now.
#[inline]
pub(crate) fn fire(counter: u64, key: Key) {
    emit!(
        __tracepoint_kfi_soft_fire,
        rust_do_trace_kfi_soft_fire,
        counter,
        key.threshold,
        key.sequence
    );
}

/// So many entries were flushed.
#[inline]
pub(crate) fn flush(entries: u64) {
    emit!(
        __tracepoint_kfi_soft_flush,
        rust_do_trace_kfi_soft_flush,
        entries
    );
}

/// A drainer has ended, which has spent so much (see `trace.h`); something may be left to the work queue.
#[inline]
pub(crate) fn drain(spent: u64, left: bool) {
    emit!(
        __tracepoint_kfi_soft_drain,
        rust_do_trace_kfi_soft_drain,
        spent,
        left
    );
}
