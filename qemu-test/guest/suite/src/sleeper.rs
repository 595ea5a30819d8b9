// SPDX-License-Identifier: GPL-2.0

//! Threads that are expected to sleep in a system call.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::check::Stop;

/// A thread that makes one call.
#[derive(Debug)]
pub struct Sleeper<R> {
    tid: Pid,
    thread: JoinHandle<(R, Duration)>,
}

impl<R: Send + std::fmt::Debug + 'static> Sleeper<R> {
    /// Starts one, that may sleep or not.
    pub fn start(call: impl FnOnce() -> R + Send + 'static) -> Result<Self, Stop> {
        let tid = Arc::new(AtomicI32::new(0));
        let thread = thread::spawn({
            let tid = tid.clone();
            move || {
                let start = Instant::now();
                // Nothing that could sleep comes between this and the call, so
                // that the thread, seen asleep, is known to sleep there.
                tid.store(
                    kfi_host::thread::id().as_raw_nonzero().get(),
                    Ordering::Release,
                );
                let result = call();
                (result, start.elapsed())
            }
        });
        let tid = loop {
            if let Some(tid) = Pid::from_raw(tid.load(Ordering::Acquire)) {
                break tid;
            }
            kfi_host::thread::relax();
        };
        Ok(Self { tid, thread })
    }

    /// Starts one and returns when it sleeps.
    pub fn asleep(call: impl FnOnce() -> R + Send + 'static) -> Result<Self, Stop> {
        let sleeper = Self::start(call)?;
        if sleeper.sleeps()? {
            return Ok(sleeper);
        }
        let (result, _) = sleeper.join()?;
        Err(Stop::fail(format!("the call does not sleep: {result:?}")))
    }

    /// Waits until the thread sleeps: true, or has returned: false. Both are
    /// final if nobody touches what it waits for.
    pub fn sleeps(&self) -> Result<bool, Stop> {
        Ok(kfi_host::thread::until_asleep(
            rustix::process::getpid(),
            self.tid,
        )?)
    }

    /// The thread.
    pub fn tid(&self) -> Pid {
        self.tid
    }

    /// Waits until the call returns: what, and how long it took.
    pub fn join(self) -> Result<(R, Duration), Stop> {
        self.thread
            .join()
            .map_err(|_| Stop::fail("the sleeper panicked"))
    }
}
