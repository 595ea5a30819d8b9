// SPDX-License-Identifier: GPL-2.0

//! Objects: handles that close themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use zerocopy::FromZeros;

use crate::attr::{CntrAttr, WaitObj};
use crate::info::InfoEntry;
use crate::session::{text_of, Session};
use crate::sys::{self, request, Request};
use crate::uapi;
use crate::wait_fd::WaitFd;
use crate::{Error, KfiErrno, Result};

/// Names an object in its session; never 0.
pub type Handle = u32;

/// The object behind a handle.
///
/// It keeps its parent, so that dropping closes dependents first whatever the
/// order in which the variables go.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) session: Session,
    pub(crate) handle: Handle,
    gone: AtomicBool,
    _parent: Option<Arc<Object>>,
}

impl Object {
    pub(crate) fn new(session: Session, handle: Handle, parent: Option<&Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            session,
            handle,
            gone: AtomicBool::new(false),
            _parent: parent.cloned(),
        })
    }

    /// Closes now, whoever else keeps this object.
    pub(crate) fn close(&self) -> Result<()> {
        self.session.close_handle(self.handle)?;
        self.forget();
        Ok(())
    }

    /// From here on somebody else closes it.
    pub(crate) fn forget(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Whether somebody else closes it, or has closed it.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// The kind of object that waiting threads sleep on.
    pub(crate) fn wait_obj(&self) -> Result<WaitObj> {
        let value = self.session.control(self.handle, uapi::KFI_GETWAITOBJ, 0)?;
        Ok(WaitObj(value as u32))
    }

    /// Makes a descriptor.
    pub(crate) fn wait_fd(self: &Arc<Self>, flags: u32) -> Result<WaitFd> {
        let mut argument = uapi::kfi_shim_wait_fd {
            handle: self.handle,
            flags,
            result: 0,
            fd: 0,
        };
        let fd = sys::wait_fd(&self.session, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let fd = fd.ok_or(Errno::BADF)?;
        Ok(WaitFd::new(fd, self.clone()))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.is_gone() {
            // If that fails the object ends with its session.
            let _ = self.session.close_handle(self.handle);
        }
    }
}

/// Methods of all objects.
macro_rules! object {
    ($Type:ident) => {
        impl $Type {
            /// The handle.
            pub fn handle(&self) -> Handle {
                self.object.handle
            }

            /// The session.
            pub fn session(&self) -> &Session {
                &self.object.session
            }

            /// Closes the object, or gives it back with the reason why not.
            pub fn close(self) -> Result<(), (Self, Error)> {
                match self.object.close() {
                    Ok(()) => Ok(()),
                    Err(error) => Err((self, error)),
                }
            }

            /// Gives up ownership: the object stays open until its handle is
            /// closed, or the session.
            pub fn into_handle(self) -> Handle {
                self.object.forget();
                self.object.handle
            }
        }
    };
}

pub(crate) use object;

/// Methods of the objects that threads can wait for.
macro_rules! waitable {
    ($Type:ident) => {
        impl $Type {
            /// The kind of object that waiting threads sleep on: `KFI_GETWAITOBJ`.
            pub fn wait_obj(&self) -> Result<$crate::WaitObj> {
                self.object.wait_obj()
            }

            /// Makes a descriptor that is readable when something has happened.
            pub fn wait_fd(&self) -> Result<$crate::WaitFd> {
                self.object.wait_fd(0)
            }

            /// As [`Self::wait_fd`], and reading it never sleeps.
            pub fn wait_fd_nonblock(&self) -> Result<$crate::WaitFd> {
                self.object.wait_fd($crate::uapi::KFI_SHIM_WAIT_NONBLOCK)
            }
        }
    };
}

pub(crate) use waitable;

/// An answer of `kfi_getinfo`.
#[derive(Debug)]
pub struct InfoList {
    object: Arc<Object>,
    entries: Vec<InfoEntry>,
}

object!(InfoList);

impl InfoList {
    pub(crate) fn new(session: Session, handle: Handle, count: u32) -> Result<Self> {
        let object = Object::new(session, handle, None);
        let mut entries = Vec::new();
        for index in 0..count {
            let mut entry = uapi::kfi_shim_info::new_zeroed();
            sys::read_info(&object.session, handle, index, &mut entry)?;
            entries.push(InfoEntry::from(&entry));
        }
        Ok(Self { object, entries })
    }

    /// The entries, best first.
    pub fn entries(&self) -> &[InfoEntry] {
        &self.entries
    }

    /// The text of an entry: `kfi_tostr`.
    pub fn text(&self, index: usize) -> Result<String> {
        let mut room = vec![0; 8192];
        loop {
            let mut argument = uapi::kfi_shim_info_text {
                info: self.handle(),
                index: index as u32,
                ..FromZeros::new_zeroed()
            };
            sys::text(
                self.session(),
                request::INFO_TEXT,
                &mut argument,
                |argument| (&mut argument.text, &mut argument.size),
                &mut room,
            )?;
            if argument.len as usize <= room.len() {
                return Ok(text_of(room));
            }
            room.resize(argument.len as usize, 0);
        }
    }

    /// Opens the fabric of an entry.
    pub fn fabric(&self, index: usize) -> Result<Fabric> {
        self.fabric_with(index, 0)
    }

    /// Opens the fabric of an entry, with a context.
    pub fn fabric_with(&self, index: usize, context: u64) -> Result<Fabric> {
        let mut argument = uapi::kfi_shim_fabric {
            info: self.handle(),
            index: index as u32,
            context,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::FABRIC, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(Fabric {
            object: Object::new(self.session().clone(), argument.fabric, None),
        })
    }
}

/// A fabric.
#[derive(Debug)]
pub struct Fabric {
    pub(crate) object: Arc<Object>,
}

object!(Fabric);

impl Fabric {
    /// Opens the domain of an entry.
    pub fn domain(&self, info: &InfoList, index: usize) -> Result<Domain> {
        self.domain_with(info, index, 0)
    }

    /// Opens the domain of an entry, with a context.
    pub fn domain_with(&self, info: &InfoList, index: usize, context: u64) -> Result<Domain> {
        let mut argument = uapi::kfi_shim_domain {
            fabric: self.handle(),
            info: info.handle(),
            index: index as u32,
            context,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::DOMAIN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(Domain {
            object: Object::new(self.session().clone(), argument.domain, Some(&self.object)),
        })
    }
}

/// A domain: counters, completion queues and poll sets are opened there.
#[derive(Debug)]
pub struct Domain {
    pub(crate) object: Arc<Object>,
}

object!(Domain);

impl Domain {
    /// Opens a counter.
    pub fn counter(&self, attr: &CntrAttr) -> Result<Counter> {
        let mut argument = uapi::kfi_shim_cntr_open {
            domain: self.handle(),
            flags: if attr.no_attr {
                uapi::KFI_SHIM_CNTR_NO_ATTR
            } else {
                0
            },
            events: attr.events,
            wait_obj: attr.wait_obj.0,
            attr_flags: attr.flags,
            context: attr.context,
            wait_set: attr.wait_set,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::CNTR_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(Counter {
            object: Object::new(self.session().clone(), argument.cntr, Some(&self.object)),
        })
    }
}

/// A counter: a success value and an error value, 64 bits each.
#[derive(Debug)]
pub struct Counter {
    pub(crate) object: Arc<Object>,
}

object!(Counter);
waitable!(Counter);

impl Counter {
    /// The success value.
    pub fn read(&self) -> Result<u64> {
        self.access(request::CNTR_READ, 0)
    }

    /// The error value.
    pub fn read_err(&self) -> Result<u64> {
        self.access(request::CNTR_READERR, 0)
    }

    /// Adds to the success value.
    pub fn add(&self, value: u64) -> Result<()> {
        self.access(request::CNTR_ADD, value).map(drop)
    }

    /// Adds to the error value.
    pub fn add_err(&self, value: u64) -> Result<()> {
        self.access(request::CNTR_ADDERR, value).map(drop)
    }

    /// Sets the success value.
    pub fn set(&self, value: u64) -> Result<()> {
        self.access(request::CNTR_SET, value).map(drop)
    }

    /// Sets the error value.
    pub fn set_err(&self, value: u64) -> Result<()> {
        self.access(request::CNTR_SETERR, value).map(drop)
    }

    fn access(&self, request: Request<uapi::kfi_shim_cntr>, value: u64) -> Result<u64> {
        let mut argument = uapi::kfi_shim_cntr {
            cntr: self.handle(),
            result: 0,
            value,
        };
        self.session().ioctl(request, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(argument.value)
    }

    /// Sleeps until the success value is `threshold` or more.
    ///
    /// `None` waits without end; otherwise `KFI_ETIMEDOUT` is the answer after
    /// that long, rounded up to milliseconds. `KFI_EAVAIL` says that the error
    /// value has changed meanwhile.
    pub fn wait(&self, threshold: u64, timeout: Option<Duration>) -> Result<()> {
        self.wait_ms(threshold, millis(timeout))
    }

    /// As [`Self::wait`], with the timeout as kfabric takes it: milliseconds,
    /// negative for none.
    pub fn wait_ms(&self, threshold: u64, timeout: i32) -> Result<()> {
        let mut argument = uapi::kfi_shim_cntr_wait {
            cntr: self.handle(),
            timeout,
            threshold,
            result: 0,
            reserved: 0,
        };
        self.session().ioctl(request::CNTR_WAIT, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Default operation flags: `KFI_GETOPSFLAG`.
    pub fn ops_flags(&self) -> Result<u64> {
        self.session()
            .control(self.handle(), uapi::KFI_GETOPSFLAG, 0)
    }

    /// Sets the default operation flags: `KFI_SETOPSFLAG`.
    pub fn set_ops_flags(&self, flags: u64) -> Result<()> {
        self.session()
            .control(self.handle(), uapi::KFI_SETOPSFLAG, flags)
            .map(drop)
    }
}

/// Flags of the interface for opening a queue.
pub(crate) fn queue_flags(no_attr: bool, handler: bool) -> u32 {
    let mut flags = 0;
    if no_attr {
        flags |= uapi::KFI_SHIM_NO_ATTR;
    }
    if handler {
        flags |= uapi::KFI_SHIM_HANDLER;
    }
    flags
}

/// A timeout as kfabric takes it: never shorter than asked for.
pub(crate) fn millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |timeout| {
        let nanos = timeout.as_nanos();
        i32::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_never_shorter() {
        assert_eq!(millis(None), -1);
        assert_eq!(millis(Some(Duration::ZERO)), 0);
        assert_eq!(millis(Some(Duration::from_nanos(1))), 1);
        assert_eq!(millis(Some(Duration::from_millis(50))), 50);
        assert_eq!(millis(Some(Duration::from_micros(50_001))), 51);
        assert_eq!(millis(Some(Duration::MAX)), i32::MAX);
    }
}
