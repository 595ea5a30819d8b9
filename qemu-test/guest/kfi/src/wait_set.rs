// SPDX-License-Identifier: GPL-2.0

//! Wait sets, and asking whether it is safe to block.

use std::sync::Arc;
use std::time::Duration;

use zerocopy::FromZeros;

use crate::attr::WaitObj;
use crate::object::{millis, object, waitable, Fabric, Handle, Object};
use crate::session::Session;
use crate::sys::request;
use crate::uapi;
use crate::{Error, KfiErrno, Result};

/// Attributes of a wait set: by default the provider chooses the wait object.
#[derive(Clone, Copy, Debug)]
pub struct WaitSetAttr {
    no_attr: bool,
    wait_obj: WaitObj,
    flags: u64,
}

impl WaitSetAttr {
    /// The default.
    pub fn new() -> Self {
        Self {
            no_attr: false,
            wait_obj: WaitObj::UNSPEC,
            flags: 0,
        }
    }

    /// No attributes: the provider is given NULL.
    pub fn null() -> Self {
        Self {
            no_attr: true,
            ..Self::new()
        }
    }

    /// The kind of object that a waiting thread sleeps on.
    #[must_use]
    pub fn wait_obj(self, wait_obj: WaitObj) -> Self {
        Self { wait_obj, ..self }
    }

    /// Flags; none is defined.
    #[must_use]
    pub fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }
}

impl Default for WaitSetAttr {
    fn default() -> Self {
        Self::new()
    }
}

/// A wait set: one place to wait for counters and queues that were opened with
/// its handle and [`WaitObj::SET`].
#[derive(Debug)]
pub struct WaitSet {
    object: Arc<Object>,
}

object!(WaitSet);
waitable!(WaitSet);

impl Fabric {
    /// Opens a wait set.
    pub fn wait_set(&self, attr: &WaitSetAttr) -> Result<WaitSet> {
        let mut argument = uapi::kfi_shim_wait_open {
            fabric: self.handle(),
            flags: if attr.no_attr {
                uapi::KFI_SHIM_NO_ATTR
            } else {
                0
            },
            attr_flags: attr.flags,
            wait_obj: attr.wait_obj.0,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::WAIT_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let session = self.session().clone();
        Ok(WaitSet {
            object: Object::new(session, argument.wait_set, Some(&self.object)),
        })
    }

    /// Asks whether it is safe to block on the descriptors of these objects:
    /// `KFI_EAGAIN` if there may be something to read first. Success arms the
    /// descriptors.
    pub fn trywait(&self, handles: &[Handle]) -> Result<()> {
        let mut argument = uapi::kfi_shim_trywait {
            fabric: self.handle(),
            count: u32::try_from(handles.len()).unwrap_or(u32::MAX),
            handles: handles.as_ptr() as u64,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::TRYWAIT, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}

impl WaitSet {
    /// Sleeps until something has happened to a member.
    ///
    /// `None` waits without end; otherwise `KFI_ETIMEDOUT` is the answer after
    /// that long, rounded up to milliseconds.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.wait_ms(millis(timeout))
    }

    /// As [`Self::wait`], with the timeout as kfabric takes it: milliseconds,
    /// negative for none.
    pub fn wait_ms(&self, timeout: i32) -> Result<()> {
        let mut argument = uapi::kfi_shim_wait {
            wait_set: self.handle(),
            timeout,
            result: 0,
            reserved: 0,
        };
        self.session().ioctl(request::WAIT, &mut argument)?;
        KfiErrno::check(argument.result)
    }
}
