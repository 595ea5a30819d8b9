// SPDX-License-Identifier: GPL-2.0

//! Sessions: open files of the device.

use std::ffi::{c_void, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::flags::{Caps, EpType, GetinfoFlags};
use crate::info::{ApiVersion, InfoEntry};
use crate::object::{Handle, InfoList};
use crate::sys::{self, request, Request};
use crate::uapi;
use crate::{KfiErrno, Result};

/// Where the device is.
pub const DEVICE: &str = "/dev/kfi";

/// An open device: objects live in it, and end with it.
///
/// A clone is the same session. The file is closed when the last clone and the
/// last object of the session are gone.
#[derive(Clone, Debug)]
pub struct Session {
    file: Arc<OwnedFd>,
}

/// The versions at the other end of the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Version {
    /// Number of the ioctl interface.
    pub interface: u32,
    /// Version of the kfabric API.
    pub api: ApiVersion,
}

impl Session {
    /// Opens [`DEVICE`].
    pub fn open() -> Result<Self> {
        Self::open_at(DEVICE)
    }

    /// Opens the device at another place.
    pub fn open_at(path: impl AsRef<Path>) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path.as_ref(), flags, Mode::empty()).map(Self::from)?)
    }

    /// Asks for versions.
    pub fn version(&self) -> Result<Version> {
        let mut argument = uapi::kfi_shim_version::new_zeroed();
        self.ioctl(request::VERSION, &mut argument)?;
        Ok(Version {
            interface: argument.interface,
            api: ApiVersion(argument.api),
        })
    }

    /// Asks what there is: `kfi_getinfo`.
    pub fn getinfo(&self, query: &Query) -> Result<InfoList> {
        let hints = query.hints.as_ref().map(uapi::kfi_shim_info::from);
        let address = |text: &Option<CString>| text.as_ref().map_or(0, |t| t.as_ptr() as u64);
        let mut argument = uapi::kfi_shim_getinfo {
            version: query.version.0,
            flags: query.flags.bits(),
            node: address(&query.node),
            service: address(&query.service),
            ..FromZeros::new_zeroed()
        };
        if let Some(hints) = &hints {
            argument.hints = std::ptr::from_ref(hints) as u64;
            argument.hints_size = size_of_val(hints) as u32;
        }
        self.ioctl(request::GETINFO, &mut argument)?;
        KfiErrno::check(argument.result)?;
        InfoList::new(self.clone(), argument.info, argument.count)
    }

    /// Closes an object by its handle, behind the back of whoever owns it.
    pub fn close_handle(&self, handle: Handle) -> Result<()> {
        let mut argument = uapi::kfi_shim_close { handle, result: 0 };
        self.ioctl(request::CLOSE, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Calls `kfi_control` on any object, with a number for argument.
    pub fn control(&self, handle: Handle, command: u32, value: u64) -> Result<u64> {
        let mut argument = uapi::kfi_shim_control {
            handle,
            command,
            value,
            result: 0,
            reserved: 0,
        };
        self.ioctl(request::CONTROL, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(argument.value)
    }

    /// Binds an object to another: `kfi_ep_bind` and the like.
    pub fn bind(&self, handle: Handle, other: Handle, flags: u64) -> Result<()> {
        let mut argument = uapi::kfi_shim_bind {
            handle,
            other,
            flags,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::BIND, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Makes an object usable: `kfi_enable`, `kfi_mr_enable`.
    pub fn enable(&self, handle: Handle) -> Result<()> {
        let mut argument = uapi::kfi_shim_enable { handle, result: 0 };
        self.ioctl(request::ENABLE, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Waits until the handler of a queue was called so often; returns how often
    /// it was, and on which CPU last.
    pub fn handled(&self, queue: Handle, calls: u64, timeout: i32) -> Result<(u64, i32)> {
        let mut argument = uapi::kfi_shim_handled {
            queue,
            timeout,
            calls,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::HANDLED, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok((argument.calls, argument.cpu))
    }

    /// The text of a number: `kfi_tostr`, for a `KFI_TYPE_*` that is a number.
    pub fn tostr(&self, kfi_type: u32, value: u64) -> Result<String> {
        let mut argument = uapi::kfi_shim_tostr {
            type_: kfi_type,
            value,
            ..FromZeros::new_zeroed()
        };
        let mut room = vec![0; 4096];
        sys::text(
            self,
            request::TOSTR,
            &mut argument,
            |argument| (&mut argument.text, &mut argument.size),
            &mut room,
        )?;
        KfiErrno::check(argument.result)?;
        Ok(text_of(room))
    }

    /// Makes a request as it stands; those that write to an address in
    /// their argument, that nobody has checked, are refused with `EINVAL`.
    pub fn ioctl<T>(&self, request: Request<T>, argument: &mut T) -> Result<(), Errno>
    where
        T: FromBytes + IntoBytes,
    {
        sys::ioctl(self, request, argument)
    }

    /// Makes a request that has a number and no argument. There is none such:
    /// the answer is an error, for an unknown number `ENOTTY`.
    pub fn ioctl_without_argument(&self, number: u8) -> Result<(), Errno> {
        sys::ioctl_without_argument(self, number)
    }

    /// Makes the system call with any number and any address.
    ///
    /// # Safety
    ///
    /// The memory that the kernel writes for this number, behind `argument` and
    /// behind addresses in the structure there, must be free to change now, or
    /// not be mapped at all.
    #[allow(unsafe_code)]
    pub unsafe fn raw_ioctl(&self, number: u32, argument: *mut c_void) -> Result<(), Errno> {
        // SAFETY: The caller's promise.
        unsafe { sys::raw(self, number, argument) }
    }
}

/// The text in a buffer, up to its end.
pub(crate) fn text_of(mut room: Vec<u8>) -> String {
    let end = room.iter().position(|byte| *byte == 0);
    room.truncate(end.unwrap_or(room.len()));
    String::from_utf8_lossy(&room).into_owned()
}

impl From<OwnedFd> for Session {
    fn from(file: OwnedFd) -> Self {
        Self {
            file: Arc::new(file),
        }
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A question to [`Session::getinfo`]; the default asks for everything.
#[derive(Clone, Debug, Default)]
pub struct Query {
    version: ApiVersion,
    node: Option<CString>,
    service: Option<CString>,
    flags: GetinfoFlags,
    hints: Option<InfoEntry>,
}

impl Query {
    /// For everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Version of the API that the caller is written for; default 0, any.
    #[must_use]
    pub fn version(self, version: ApiVersion) -> Self {
        Self { version, ..self }
    }

    /// Device or address.
    #[must_use]
    pub fn node(self, node: CString) -> Self {
        Self {
            node: Some(node),
            ..self
        }
    }

    /// Port.
    #[must_use]
    pub fn service(self, service: CString) -> Self {
        Self {
            service: Some(service),
            ..self
        }
    }

    /// Flags.
    #[must_use]
    pub fn flags(self, flags: GetinfoFlags) -> Self {
        Self { flags, ..self }
    }

    /// The hints: properties that the entries of the answer must have.
    #[must_use]
    pub fn hints(self, hints: InfoEntry) -> Self {
        Self {
            hints: Some(hints),
            ..self
        }
    }

    /// Restricts the answer to one provider.
    #[must_use]
    pub fn provider(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hints.get_or_insert_default().fabric_attr.prov_name);
        self
    }

    /// Restricts the answer to fabrics of a name.
    #[must_use]
    pub fn fabric(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hints.get_or_insert_default().fabric_attr.name);
        self
    }

    /// Restricts the answer to domains of a name.
    #[must_use]
    pub fn domain(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hints.get_or_insert_default().domain_attr.name);
        self
    }

    /// Restricts the answer to what has capabilities.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.hints.get_or_insert_default().caps = caps;
        self
    }

    /// Restricts the answer to endpoints of a type.
    #[must_use]
    pub fn ep_type(mut self, ep_type: EpType) -> Self {
        self.hints.get_or_insert_default().ep_attr.r#type = ep_type;
        self
    }
}
