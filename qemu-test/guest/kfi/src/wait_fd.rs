// SPDX-License-Identifier: GPL-2.0

//! Descriptors of wait objects, for poll(2) and its kin.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use serde::Serialize;
use zerocopy::{FromZeros, IntoBytes};

use crate::object::Object;
use crate::uapi;
use crate::Result;

/// Readable when its counter has changed since it was made or last read.
#[derive(Debug)]
pub struct WaitFd {
    // Before the object: a counter with an open descriptor cannot be closed.
    fd: OwnedFd,
    /// Known only if the descriptor was made here.
    counter: Option<Arc<Object>>,
}

/// What reading the descriptor returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct WaitEvent {
    /// Success value of the counter.
    pub value: u64,
    /// Error value of the counter.
    pub error_value: u64,
}

impl WaitFd {
    pub(crate) fn new(fd: OwnedFd, counter: Arc<Object>) -> Self {
        Self {
            fd,
            counter: Some(counter),
        }
    }

    /// Reads the values, and so ends the readable state. Sleeps while there is
    /// no change, or fails with `EAGAIN` if the descriptor is nonblocking.
    pub fn read(&self) -> Result<WaitEvent> {
        let mut event = uapi::kfi_shim_wait_event::new_zeroed();
        let length = rustix::io::read(&self.fd, event.as_mut_bytes())?;
        if length != size_of_val(&event) {
            return Err(Errno::IO.into());
        }
        Ok(WaitEvent {
            value: event.value,
            error_value: event.error_value,
        })
    }

    /// A second descriptor for the same open file.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            fd: rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?,
            counter: self.counter.clone(),
        })
    }

    /// The descriptor alone. The counter may then be dropped, and closes with
    /// its session.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// A descriptor that came from elsewhere, such as another process.
impl From<OwnedFd> for WaitFd {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, counter: None }
    }
}

impl AsFd for WaitFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
