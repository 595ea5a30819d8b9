// SPDX-License-Identifier: GPL-2.0

//! The system calls: the only file of this crate with unsafe code.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use zerocopy::{FromBytes, IntoBytes};

/// Types and numbers out of the C headers, by bindgen.
#[allow(missing_docs, non_camel_case_types, clippy::pedantic, unreachable_pub)]
pub mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

use bindings as uapi;

/// A request of the interface and the type of its argument.
///
/// They are made here only, one for each request, and building this crate fails
/// if a number does not carry the size of its type.
#[derive(Debug)]
pub struct Request<T> {
    number: u32,
    argument: PhantomData<fn(&mut T)>,
}

impl<T> Clone for Request<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Request<T> {}

impl<T> Request<T> {
    const fn new(number: u32) -> Self {
        assert!(((number >> 16) & 0x3fff) as usize == size_of::<T>());
        Self {
            number,
            argument: PhantomData,
        }
    }

    /// The number that the system call takes.
    pub const fn number(self) -> u32 {
        self.number
    }
}

/// The requests of the interface.
#[allow(missing_docs)]
pub mod request {
    use super::bindings::{
        kfi_shim_close, kfi_shim_cntr, kfi_shim_cntr_open, kfi_shim_cntr_wait, kfi_shim_control,
        kfi_shim_domain, kfi_shim_fabric, kfi_shim_getinfo, kfi_shim_read_info, kfi_shim_version,
        kfi_shim_wait_fd, KFI_REQUEST_CLOSE, KFI_REQUEST_CNTR_ADD, KFI_REQUEST_CNTR_ADDERR,
        KFI_REQUEST_CNTR_OPEN, KFI_REQUEST_CNTR_READ, KFI_REQUEST_CNTR_READERR,
        KFI_REQUEST_CNTR_SET, KFI_REQUEST_CNTR_SETERR, KFI_REQUEST_CNTR_WAIT, KFI_REQUEST_CONTROL,
        KFI_REQUEST_DOMAIN, KFI_REQUEST_FABRIC, KFI_REQUEST_GETINFO, KFI_REQUEST_READ_INFO,
        KFI_REQUEST_VERSION, KFI_REQUEST_WAIT_FD,
    };
    use super::Request;

    pub const VERSION: Request<kfi_shim_version> = Request::new(KFI_REQUEST_VERSION);
    pub const CLOSE: Request<kfi_shim_close> = Request::new(KFI_REQUEST_CLOSE);
    pub const GETINFO: Request<kfi_shim_getinfo> = Request::new(KFI_REQUEST_GETINFO);
    pub const READ_INFO: Request<kfi_shim_read_info> = Request::new(KFI_REQUEST_READ_INFO);
    pub const CONTROL: Request<kfi_shim_control> = Request::new(KFI_REQUEST_CONTROL);
    pub const WAIT_FD: Request<kfi_shim_wait_fd> = Request::new(KFI_REQUEST_WAIT_FD);
    pub const FABRIC: Request<kfi_shim_fabric> = Request::new(KFI_REQUEST_FABRIC);
    pub const DOMAIN: Request<kfi_shim_domain> = Request::new(KFI_REQUEST_DOMAIN);
    pub const CNTR_OPEN: Request<kfi_shim_cntr_open> = Request::new(KFI_REQUEST_CNTR_OPEN);
    pub const CNTR_READ: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_READ);
    pub const CNTR_READERR: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_READERR);
    pub const CNTR_ADD: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_ADD);
    pub const CNTR_ADDERR: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_ADDERR);
    pub const CNTR_SET: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_SET);
    pub const CNTR_SETERR: Request<kfi_shim_cntr> = Request::new(KFI_REQUEST_CNTR_SETERR);
    pub const CNTR_WAIT: Request<kfi_shim_cntr_wait> = Request::new(KFI_REQUEST_CNTR_WAIT);
}

/// An ioctl as it is: any number, any address.
struct Raw {
    number: u32,
    argument: *mut c_void,
}

// SAFETY: `opcode` and `as_ptr` hand out the two members unchanged; that they
// may be used together is the promise of whoever builds a `Raw`. There is no
// output besides the memory behind the pointer.
unsafe impl Ioctl for Raw {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        Opcode::from(self.number)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Makes the system call with a number and an address that nobody has checked.
///
/// # Safety
///
/// What the kernel writes for this number behind `argument`, and behind
/// addresses in the structure there, must be memory that may change now, or
/// must not be mapped at all.
pub(crate) unsafe fn raw(fd: impl AsFd, number: u32, argument: *mut c_void) -> Result<(), Errno> {
    // SAFETY: The caller's promise.
    unsafe { rustix::ioctl::ioctl(fd, Raw { number, argument }) }
}

/// Makes a request whose answer is in its argument only.
fn call<T>(fd: impl AsFd, request: Request<T>, argument: &mut T) -> Result<(), Errno>
where
    T: FromBytes + IntoBytes,
{
    // SAFETY: The kernel reads and writes as many bytes as the number says,
    // and `Request::new` has seen that this is the size of `T`. `T` can hold
    // any bytes. Only `READ_INFO` has an address to write to in its argument
    // and it does not come through here but through `read_info()`.
    unsafe { raw(fd, request.number, std::ptr::from_mut(argument).cast()) }
}

/// Makes a request other than [`request::READ_INFO`].
pub(crate) fn ioctl<T>(fd: impl AsFd, request: Request<T>, argument: &mut T) -> Result<(), Errno>
where
    T: FromBytes + IntoBytes,
{
    if request.number == uapi::KFI_REQUEST_READ_INFO {
        return Err(Errno::INVAL);
    }
    call(fd, request, argument)
}

/// Makes a request that has a number only.
pub(crate) fn ioctl_without_argument(fd: impl AsFd, number: u8) -> Result<(), Errno> {
    let number = uapi::KFI_SHIM_IOC_MAGIC << 8 | u32::from(number);
    // SAFETY: There is no memory at address 0, and what is not there the kernel
    // cannot write to.
    unsafe { raw(fd, number, std::ptr::null_mut()) }
}

/// [`request::READ_INFO`].
pub(crate) fn read_info(
    fd: impl AsFd,
    info: u32,
    index: u32,
    entry: &mut uapi::kfi_shim_info,
) -> Result<(), Errno> {
    let mut argument = uapi::kfi_shim_read_info {
        info,
        index,
        buffer: std::ptr::from_mut(entry) as u64,
        buffer_size: size_of_val(entry) as u32,
        reserved: 0,
    };
    let argument = std::ptr::from_mut(&mut argument).cast();

    // SAFETY: The kernel reads the argument, of the right size as
    // `Request::new` has seen, and writes at most `buffer_size` bytes to
    // `entry`, which is borrowed for that and can hold any bytes.
    unsafe { raw(fd, uapi::KFI_REQUEST_READ_INFO, argument) }
}

/// Takes the descriptor that a request has made.
pub(crate) fn wait_fd(
    fd: impl AsFd,
    argument: &mut uapi::kfi_shim_wait_fd,
) -> Result<Option<OwnedFd>, Errno> {
    argument.fd = -1;
    call(fd, request::WAIT_FD, argument)?;
    if argument.result != 0 || argument.fd < 0 {
        return Ok(None);
    }
    // SAFETY: The kernel has just made this descriptor for us, nobody else
    // knows of it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(argument.fd) }))
}
