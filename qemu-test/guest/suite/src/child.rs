// SPDX-License-Identifier: GPL-2.0

//! Something that runs in a process of its own.

use kfi_host::process::{self, Status};

use crate::check::{Outcome, Stop};

/// Enough for what a failure says.
const TEXT: usize = 500;

/// Runs something in a child process and waits for its end. Returns how it ended, with status 0 if
/// the outcome was good, and what was wrong.
pub fn run(run: impl FnOnce() -> Outcome) -> Result<(Status, String), Stop> {
    let (reader, writer) = rustix::pipe::pipe()?;
    let mut child = process::fork(move || match run() {
        Ok(()) => 0,
        Err(stop) => {
            let _ = rustix::io::write(&writer, format!("{stop:?}").as_bytes());
            1
        }
    })?;
    let mut text = [0; TEXT];
    let length = rustix::io::retry_on_intr(|| rustix::io::read(&reader, &mut text))?;
    let text = String::from_utf8_lossy(&text[..length]).into_owned();
    Ok((child.wait()?, text))
}
