// SPDX-License-Identifier: GPL-2.0

//! Something that runs in a process of its own.

use std::os::fd::OwnedFd;

use kfi_host::process::{self, Child, Status};

use crate::check::{Outcome, Stop};

/// Enough for what a failure says.
const TEXT: usize = 500;

/// A process that runs something beside this one.
pub struct Running {
    child: Child,
    reader: OwnedFd,
}

/// Begins to run something in a child process.
pub fn begin(run: impl FnOnce() -> Outcome) -> Result<Running, Stop> {
    let (reader, writer) = rustix::pipe::pipe()?;
    let child = process::fork(move || match run() {
        Ok(()) => 0,
        Err(stop) => {
            let _ = rustix::io::write(&writer, format!("{stop:?}").as_bytes());
            1
        }
    })?;
    Ok(Running { child, reader })
}

impl Running {
    /// Waits for its end. Returns how it ended, with status 0 if the outcome was good, and what was wrong.
    pub fn end(mut self) -> Result<(Status, String), Stop> {
        let mut text = [0; TEXT];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&self.reader, &mut text))?;
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        Ok((self.child.wait()?, text))
    }
}

/// Runs something in a child process and waits for its end, as [`Running::end`].
pub fn run(run: impl FnOnce() -> Outcome) -> Result<(Status, String), Stop> {
    begin(run)?.end()
}
