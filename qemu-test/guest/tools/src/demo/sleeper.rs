// SPDX-License-Identifier: GPL-2.0

//! Another process, that sleeps in `kfi_cntr_wait`.

use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use kfi::{Counter, Error};
use kfi_host::process::{self, Child};
use kfi_host::thread;
use rustix::pipe::PipeFlags;

use crate::narrator::{Demo, Wrong};

/// The process; it has inherited the session.
#[derive(Debug)]
pub(crate) struct Sleeper {
    child: Child,
    report: File,
}

/// Its report when it is awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Of the wait: 0, or a kfabric error.
    pub(crate) result: i32,
    /// Success value after the wait.
    pub(crate) value: u64,
    /// How long the wait has taken.
    pub(crate) slept: Duration,
}

/// A result that is no answer of kfabric.
const SYSTEM_CALL_FAILED: i32 = i32::MIN;

impl Report {
    fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&self.result.to_ne_bytes());
        bytes[4..12].copy_from_slice(&self.value.to_ne_bytes());
        let nanos = self.slept.as_nanos() as u64;
        bytes[12..].copy_from_slice(&nanos.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; 20]) -> Self {
        let number = |from: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[from..from + 8]);
            u64::from_ne_bytes(number)
        };
        let [a, b, c, d, ..] = bytes;
        Self {
            result: i32::from_ne_bytes([a, b, c, d]),
            value: number(4),
            slept: Duration::from_nanos(number(12)),
        }
    }
}

impl Sleeper {
    /// Starts the process, and returns when it sleeps.
    pub(crate) fn start(counter: &Counter, threshold: u64, timeout: i32) -> Result<Self, Wrong> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let child = process::fork(|| {
            let start = Instant::now();
            let result = match counter.wait_ms(threshold, timeout) {
                Ok(()) => 0,
                Err(Error::Fabric(errno)) => errno.number(),
                Err(Error::Os(_)) => SYSTEM_CALL_FAILED,
            };
            let report = Report {
                result,
                slept: start.elapsed(),
                value: counter.read().unwrap_or(0),
            };
            i32::from(File::from(writer).write_all(&report.to_bytes()).is_err())
        })?;
        let sleeper = Self {
            child,
            report: reader.into(),
        };
        sleeper.must_sleep()?;
        Ok(sleeper)
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// It sleeps still.
    pub(crate) fn must_sleep(&self) -> Demo {
        if thread::until_asleep(self.child.pid(), self.child.pid())? {
            Ok(())
        } else {
            Err(Wrong::new(format!("process {} does not sleep", self.pid())))
        }
    }

    /// Waits for its report.
    pub(crate) fn wake(&mut self) -> Result<Report, Wrong> {
        let mut bytes = [0; 20];
        self.report.read_exact(&mut bytes)?;
        self.child.wait()?;
        Ok(Report::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_through() {
        let report = Report {
            result: -259,
            value: u64::MAX - 1,
            slept: Duration::from_nanos(1_234_567_891),
        };
        let back = Report::from_bytes(report.to_bytes());
        assert_eq!(
            (back.result, back.value, back.slept),
            (report.result, report.value, report.slept)
        );
    }
}
