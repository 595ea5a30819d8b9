// SPDX-License-Identifier: GPL-2.0

//! Child processes.

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use crate::sys::{self, Fork};

/// The status of a child whose closure panicked.
pub const PANICKED: i32 = 101;

/// A child process; it is killed and reaped when dropped.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    status: Option<Status>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// It returned this.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Signaled(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Runs a closure in a child process, that ends with the status the closure
/// returns. All descriptors are inherited. Values that the closure has captured
/// are dropped in both processes: one that closes an object of a session
/// with it is better shared with the parent.
///
/// Fails if this process has more than one thread.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<Child> {
    fork_by(sys::fork, child)
}

/// The same in a process with the number of one that is gone. For root only.
pub fn fork_as(number: Pid, child: impl FnOnce() -> i32) -> io::Result<Child> {
    fork_by(|| sys::fork_as(number), child)
}

fn fork_by(
    fork: impl FnOnce() -> io::Result<Fork>,
    child: impl FnOnce() -> i32,
) -> io::Result<Child> {
    // Buffered output would else be written twice.
    io::stdout().flush()?;
    match fork()? {
        Fork::Parent(pid) => Ok(Child { pid, status: None }),
        Fork::Child => {
            let status = panic::catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            let _ = io::stdout().flush();
            sys::exit_now(status)
        }
    }
}

impl Child {
    /// The process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal, if it has not been waited for.
    pub fn kill(&self, signal: Signal) -> io::Result<()> {
        if self.status.is_some() {
            return Err(Errno::SRCH.into());
        }
        Ok(rustix::process::kill_process(self.pid, signal)?)
    }

    /// Sends a signal to its process group, of which it must be the leader.
    pub fn kill_group(&self, signal: Signal) -> io::Result<()> {
        Ok(rustix::process::kill_process_group(self.pid, signal)?)
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> io::Result<Status> {
        loop {
            if let Some(status) = self.reap(WaitOptions::empty())? {
                return Ok(status);
            }
        }
    }

    /// Waits until it ends, or the time is over.
    pub fn wait_for(&mut self, time: Duration) -> io::Result<Option<Status>> {
        if self.status.is_none() {
            let pidfd = rustix::process::pidfd_open(self.pid, PidfdFlags::empty())?;
            let end = Instant::now() + time;
            poll_until(&mut [PollFd::new(&pidfd, PollFlags::IN)], end)?;
        }
        self.reap(WaitOptions::NOHANG)
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> io::Result<bool> {
        Ok(self.reap(WaitOptions::NOHANG)?.is_none())
    }

    fn reap(&mut self, options: WaitOptions) -> io::Result<Option<Status>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        match rustix::process::waitpid(Some(self.pid), options) {
            Ok(Some((_, status))) => {
                self.status = status
                    .exit_status()
                    .map(Status::Exited)
                    .or_else(|| status.terminating_signal().map(Status::Signaled));
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.kill(Signal::KILL).is_ok() {
            let _ = self.wait();
        }
    }
}

/// poll(2) until something is ready or the time has come: then 0.
pub fn poll_until(fds: &mut [PollFd<'_>], end: Instant) -> io::Result<usize> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match rustix::event::poll(fds, Some(&left)) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}
