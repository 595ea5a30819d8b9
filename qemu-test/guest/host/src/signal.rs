// SPDX-License-Identifier: GPL-2.0

//! Signals.

use std::io;

use rustix::process::{Pid, Signal};

use crate::sys;

/// Has a signal counted from now on instead of ending the process. A system
/// call that it interrupts is started again only if `restart`.
pub fn count(signal: Signal, restart: bool) -> io::Result<()> {
    sys::count_signals(signal, restart)
}

/// How many signals were counted.
pub fn counted() -> usize {
    sys::signals_counted()
}

/// Sends a signal to one thread of this process.
pub fn send_to_thread(tid: Pid, signal: Signal) -> io::Result<()> {
    sys::signal_thread(tid, signal)
}
