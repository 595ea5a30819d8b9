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

/// Readable when something has happened to its object since it was made, last
/// read, or last armed by [`Fabric::trywait`](crate::Fabric::trywait).
#[derive(Debug)]
pub struct WaitFd {
    // Before the object, that cannot be closed with an open descriptor.
    fd: OwnedFd,
    /// Known only if the descriptor was made here.
    object: Option<Arc<Object>>,
}

/// The record that a read of the descriptor returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct WaitEvent {
    /// Success value of a counter; for other objects how often their wait queue
    /// was woken since the descriptor was made.
    pub value: u64,
    /// Error value of a counter.
    pub error_value: u64,
}

impl WaitFd {
    pub(crate) fn new(fd: OwnedFd, object: Arc<Object>) -> Self {
        Self {
            fd,
            object: Some(object),
        }
    }

    /// Reads the values, and so ends the readable state. Sleeps while
    /// there is nothing new, or fails with `EAGAIN` if the descriptor is nonblocking.
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
            object: self.object.clone(),
        })
    }

    /// The descriptor alone. The object may then be dropped, and closes with
    /// its session.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// A descriptor that came from elsewhere, such as another process.
impl From<OwnedFd> for WaitFd {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, object: None }
    }
}

impl AsFd for WaitFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
