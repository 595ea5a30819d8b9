// SPDX-License-Identifier: GPL-2.0

//! What a request waits for at its receiver. Runs in user space, too.

#![forbid(unsafe_code)]

/// The reason why a request has waited until it was taken back from its receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Room for its completion, while which its time does not run.
    Room,
    /// A receive.
    Receive {
        /// For how many milliseconds, with those of which its initiator has said so.
        millis: u32,
        /// No receive that is posted wants it; else some are yet to be compared with it.
        compared: bool,
        /// It has waited for as long as it may.
        over: bool,
    },
}
