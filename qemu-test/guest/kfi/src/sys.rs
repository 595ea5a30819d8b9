// SPDX-License-Identifier: GPL-2.0

//! The system calls: the only file of this crate with unsafe code.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use zerocopy::{FromBytes, IntoBytes};

/// Types and numbers out of the C headers, by bindgen.
#[allow(missing_docs, non_camel_case_types, clippy::pedantic, unreachable_pub)]
pub mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

use bindings as uapi;

/// A request of the interface and the type of its argument.
///
/// They are made by `build.rs` only, one for each request of the header, and building
/// this crate fails if a number does not carry the size of its type.
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

/// The requests of the interface, out of the header.
pub mod request {
    use super::bindings as uapi;
    use super::Request;

    include!(concat!(env!("OUT_DIR"), "/requests.rs"));
}

/// A request as the header declares it, without its type.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The name, without what all have in common.
    pub name: &'static str,
    /// The number.
    pub number: u32,
    /// Where the members of its structure are that must be 0.
    pub reserved: &'static [usize],
    /// Where the answer of kfabric is, if there is one.
    pub result: Option<usize>,
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
/// The memory that the kernel writes for this number, behind `argument` and
/// behind addresses in the structure there, must be free to change now, or
/// not be mapped at all.
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
    // any bytes. Requests with an address to write to in their argument do not
    // come through here, see `writes_elsewhere()`.
    unsafe { raw(fd, request.number, std::ptr::from_mut(argument).cast()) }
}

/// Whether the kernel writes to an address in the argument. Such a request has a
/// function of its own here.
pub const fn writes_elsewhere(number: u32) -> bool {
    matches!(
        number,
        uapi::KFI_REQUEST_READ_INFO
            | uapi::KFI_REQUEST_POLL
            | uapi::KFI_REQUEST_CQ_READ
            | uapi::KFI_REQUEST_CQ_SREAD
            | uapi::KFI_REQUEST_INFO_TEXT
            | uapi::KFI_REQUEST_TOSTR
            | uapi::KFI_REQUEST_AV_INSERT
            | uapi::KFI_REQUEST_AV_INSERTSVC
            | uapi::KFI_REQUEST_AV_INSERTSYM
            | uapi::KFI_REQUEST_AV_INSERTED
            | uapi::KFI_REQUEST_POST_BATCH
            | uapi::KFI_REQUEST_QUEUE_WORK_BATCH
    )
}

/// Makes a request that does not write elsewhere.
pub(crate) fn ioctl<T>(fd: impl AsFd, request: Request<T>, argument: &mut T) -> Result<(), Errno>
where
    T: FromBytes + IntoBytes,
{
    if writes_elsewhere(request.number) {
        return Err(Errno::INVAL);
    }
    call(fd, request, argument)
}

/// Makes a request that has a number only.
pub(crate) fn ioctl_without_argument(fd: impl AsFd, number: u8) -> Result<(), Errno> {
    let number = uapi::KFI_SHIM_IOC_MAGIC << 8 | u32::from(number);
    // SAFETY: There is no memory at address 0, and the kernel cannot write
    // to memory that is not there.
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

/// [`request::POLL`]: for a number of contexts there is room for, or any number
/// if the contexts are NULL. Returns what kfabric returned.
pub(crate) fn poll(
    fd: impl AsFd,
    poll_set: u32,
    count: i32,
    contexts: Option<&mut [u64]>,
) -> Result<i32, Errno> {
    let address = match contexts {
        None => 0,
        Some(contexts) if usize::try_from(count).unwrap_or(0) <= contexts.len() => {
            contexts.as_mut_ptr() as u64
        }
        Some(_) => return Err(Errno::INVAL),
    };
    let mut argument = uapi::kfi_shim_poll {
        poll_set,
        count,
        contexts: address,
        result: 0,
        reserved: 0,
    };
    // SAFETY: The argument has the size that the number says, and the kernel
    // writes at most `count` numbers to `contexts`, which are borrowed for that,
    // or finds address 0, where there is no memory.
    unsafe { raw(fd, uapi::KFI_REQUEST_POLL, (&raw mut argument).cast()) }?;
    Ok(argument.result)
}

/// [`request::CQ_READ`], or with a timeout [`request::CQ_SREAD`]. Returns what
/// kfabric returned.
pub(crate) fn cq_read(
    fd: impl AsFd,
    cq: u32,
    entries: &mut [uapi::kfi_shim_cq_entry],
    timeout: Option<i32>,
    cond: u64,
    flags: u32,
) -> Result<i32, Errno> {
    let mut argument = uapi::kfi_shim_cq_read {
        cq,
        count: u32::try_from(entries.len()).map_err(|_| Errno::TOOBIG)?,
        entries: entries.as_mut_ptr() as u64,
        timeout: timeout.unwrap_or(0),
        result: 0,
        cond,
        flags,
        reserved: 0,
    };
    let number = match timeout {
        None => uapi::KFI_REQUEST_CQ_READ,
        Some(_) => uapi::KFI_REQUEST_CQ_SREAD,
    };
    // SAFETY: The argument has the size that the number says, and the kernel
    // writes at most `count` entries, which are borrowed for that and can hold
    // any bytes.
    unsafe { raw(fd, number, (&raw mut argument).cast()) }?;
    Ok(argument.result)
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

/// Memory of a buffer, mapped.
#[derive(Debug)]
pub(crate) struct Map {
    address: *mut c_void,
    len: usize,
}

// SAFETY: Memory that any thread may use; it is copied from and to only.
unsafe impl Send for Map {}
// SAFETY: As above: a thread that reads while another one writes gets such
// bytes as it would if the kernel wrote.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `len` bytes of a buffer from an offset of the device on.
    pub(crate) fn new(
        fd: impl AsFd,
        offset: u64,
        len: usize,
        writable: bool,
    ) -> Result<Self, Errno> {
        let mut protection = ProtFlags::READ;
        if writable {
            protection |= ProtFlags::WRITE;
        }
        // SAFETY: The kernel chooses an address where nothing is yet.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                fd,
                offset,
            )
        }?;
        Ok(Self { address, len })
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        self.address.cast::<u8>().wrapping_add(offset)
    }

    /// Copies bytes out. Panics if there are not as many.
    pub(crate) fn read(&self, offset: usize, to: &mut [u8]) {
        // SAFETY: Mapped, by the check; `to` is ours, and elsewhere.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(offset, to.len()), to.as_mut_ptr(), to.len());
        };
    }

    /// Copies bytes in. Panics if there is not as much room, or if the memory
    /// is not writable by a signal.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        // SAFETY: As above.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.at(offset, from.len()), from.len());
        };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: Nobody else knows the address.
        let _ = unsafe { munmap(self.address, self.len) };
    }
}

/// A request that writes a text to memory of its own; `argument` gets its
/// address and size in `at`.
pub(crate) fn text<T: IntoBytes + FromBytes>(
    fd: impl AsFd,
    request: Request<T>,
    argument: &mut T,
    at: impl FnOnce(&mut T) -> (&mut u64, &mut u32),
    room: &mut [u8],
) -> Result<(), Errno> {
    let (address, size) = at(argument);
    *address = room.as_mut_ptr() as u64;
    *size = u32::try_from(room.len()).map_err(|_| Errno::TOOBIG)?;
    assert!(matches!(
        request.number,
        uapi::KFI_REQUEST_INFO_TEXT | uapi::KFI_REQUEST_TOSTR
    ));
    // SAFETY: The argument has the size that the number says; the kernel writes
    // at most as many bytes to `room`, which is borrowed for that.
    unsafe { raw(fd, request.number, std::ptr::from_mut(argument).cast()) }
}

/// Makes several requests in one; returns how many were made.
pub(crate) fn batch<T: IntoBytes + FromBytes>(
    fd: impl AsFd,
    request: Request<uapi::kfi_shim_batch>,
    array: &mut [T],
    flags: u32,
) -> Result<usize, Errno> {
    let mut argument = uapi::kfi_shim_batch {
        count: u32::try_from(array.len()).map_err(|_| Errno::TOOBIG)?,
        size: size_of::<T>() as u32,
        array: array.as_mut_ptr() as u64,
        flags,
        done: 0,
    };
    // SAFETY: The argument has the size that the number says; the kernel writes
    // to the array, which is borrowed for that and can hold any bytes. If `T` is
    // not what the request takes it has another size, or holds numbers all the same.
    unsafe { raw(fd, request.number, (&raw mut argument).cast()) }?;
    Ok(argument.done as usize)
}

/// [`request::AV_INSERT`] and its forms. The arrays are as long as there are
/// addresses, or empty for NULL.
pub(crate) fn av_insert(
    fd: impl AsFd,
    request: Request<uapi::kfi_shim_av_insert>,
    argument: &mut uapi::kfi_shim_av_insert,
    kfi_addrs: &mut [u64],
    errors: &mut [i32],
) -> Result<(), Errno> {
    let count = match request.number {
        uapi::KFI_REQUEST_AV_INSERT => u64::from(argument.count),
        uapi::KFI_REQUEST_AV_INSERTSVC => 1,
        _ => u64::from(argument.count) * u64::from(argument.service_count),
    };
    argument.kfi_addrs = 0;
    if !kfi_addrs.is_empty() {
        assert!(kfi_addrs.len() as u64 >= count);
        argument.kfi_addrs = kfi_addrs.as_mut_ptr() as u64;
    }
    argument.errors = 0;
    if !errors.is_empty() {
        assert!(errors.len() as u64 >= count);
        argument.errors = errors.as_mut_ptr() as u64;
    }
    // SAFETY: The argument has the size that the number says; the kernel writes
    // `count` numbers to the arrays, which are borrowed for that, and finds no
    // memory at address 0.
    unsafe { raw(fd, request.number, std::ptr::from_mut(argument).cast()) }
}

/// [`request::AV_INSERTED`]; returns how many addresses there are.
pub(crate) fn av_inserted(
    fd: impl AsFd,
    av: u32,
    insertion: u32,
    kfi_addrs: &mut [u64],
) -> Result<usize, Errno> {
    let mut argument = uapi::kfi_shim_av_inserted {
        av,
        insertion,
        kfi_addrs: kfi_addrs.as_mut_ptr() as u64,
        count: u32::try_from(kfi_addrs.len()).map_err(|_| Errno::TOOBIG)?,
        reserved: 0,
    };
    // SAFETY: The argument has the size that the number says; the kernel writes
    // at most `count` numbers, which are borrowed for that.
    unsafe {
        raw(
            fd,
            uapi::KFI_REQUEST_AV_INSERTED,
            (&raw mut argument).cast(),
        )
    }?;
    Ok(argument.count as usize)
}
