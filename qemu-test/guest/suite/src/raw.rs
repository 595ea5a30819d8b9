// SPDX-License-Identifier: GPL-2.0

//! Requests that no client library would make.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::NonNull;

use kfi::{uapi, Session};
use kfi_host::memory::Guarded;
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use zerocopy::IntoBytes;

use crate::requests;

/// Addresses at which no process has memory: page 0, the gap and the kernel's
/// half of the address space.
pub const BAD_ADDRESSES: [u64; 10] = [
    0,
    1,
    8,
    0xff8,
    0x0000_8000_0000_0000,
    0xdead_0000_0000_0000,
    0xffff_8880_0000_1000,
    0xffff_ffff_8100_0000,
    u64::MAX - 7,
    u64::MAX,
];

/// The largest structure that a request number can tell the size of.
pub const MAX_SIZE: usize = 0x3fff;

/// A request number with these parts.
pub fn number(direction: u32, kind: u32, nr: u32, size: usize) -> u32 {
    assert!(size <= MAX_SIZE);
    (direction & 3) << 30 | (size as u32) << 16 | (kind & 0xff) << 8 | nr & 0xff
}

/// The same request with another size.
pub fn resized(request: u32, size: usize) -> u32 {
    assert!(size <= MAX_SIZE);
    request & !(0x3fff << 16) | (size as u32) << 16
}

/// The size that a request number tells.
pub fn size_of_request(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// In place of an address to which the kernel writes: memory for one entry of
/// an answer, one context or one completion, and none behind it.
pub const SCRATCH: u64 = 0x5c7a_7c48_0000_0000;

/// Makes a request with some bytes for argument, and takes what the kernel
/// writes there.
///
/// Panics if the kernel could write elsewhere: if there is an address in the
/// argument of a request that writes there, neither bad nor [`SCRATCH`].
pub fn bytes(session: &Session, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
    // The kernel believes the size in the number, whatever the slice has. Some
    // requests that are not ours have no size in theirs.
    let size = argument.len().max(size_of_request(request)).max(128);
    // As words, to be as aligned as anything.
    let mut words = vec![0_u64; size.div_ceil(8)];
    let copy = words.as_mut_bytes();
    copy[..argument.len()].copy_from_slice(argument);

    let mut scratch = Vec::new();
    for (offset, size) in written_addresses(request) {
        let buffer = &mut copy[offset..offset + 8];
        match u64::from_ne_bytes(buffer.try_into().expect("8 bytes")) {
            SCRATCH => {
                let mut memory = Guarded::new(&vec![0; size])?;
                buffer.copy_from_slice(&(memory.address() as u64).to_ne_bytes());
                scratch.push(memory);
            }
            address => assert!(BAD_ADDRESSES.contains(&address), "{address:#x}"),
        }
    }
    // SAFETY: Behind the argument is as much memory as the number says. If there
    // are addresses in it that the kernel writes to, they are where there is no
    // memory, or `scratch`, behind which there is none.
    let result = unsafe { session.raw_ioctl(request, words.as_mut_ptr().cast::<c_void>()) };

    let copy = words.as_mut_bytes();
    for (offset, _) in written_addresses(request) {
        if argument.len() >= offset + 8 {
            copy[offset..offset + 8].copy_from_slice(&argument[offset..offset + 8]);
        }
    }
    argument.copy_from_slice(&copy[..argument.len()]);
    result
}

/// For requests with addresses in their argument that the kernel writes to, where
/// these are, and what the least is that is written there.
pub fn written_addresses(request: u32) -> Vec<(usize, usize)> {
    let request = requests::of_number(request);
    request.map_or_else(Vec::new, |request| request.written().collect())
}

/// Makes a request with one of the bad addresses for argument.
pub fn bad_address(session: &Session, request: u32, address: u64) -> Result<(), Errno> {
    assert!(BAD_ADDRESSES.contains(&address));
    // SAFETY: There is no memory at this address.
    unsafe { session.raw_ioctl(request, std::ptr::without_provenance_mut(address as usize)) }
}

/// Makes a request with an argument that lies at the end of mapped memory.
///
/// Not for requests that write elsewhere.
pub fn guarded(session: &Session, request: u32, argument: &mut Guarded) -> Result<(), Errno> {
    assert!(written_addresses(request).is_empty());
    // SAFETY: The kernel writes to the memory of `argument`, which is borrowed
    // for that, or beyond, where there is none, and nowhere else.
    unsafe { session.raw_ioctl(request, argument.address()) }
}

/// `READ_INFO` into memory that ends at the end of mapped memory, with any
/// `buffer_size`.
pub fn read_info(
    session: &Session,
    info: u32,
    index: u32,
    buffer: &mut Guarded,
    buffer_size: u32,
) -> Result<(), Errno> {
    let mut argument = uapi::kfi_shim_read_info {
        info,
        index,
        buffer: buffer.address() as u64,
        buffer_size,
        reserved: 0,
    };
    let argument = std::ptr::from_mut(&mut argument).cast();
    // SAFETY: The argument has the size that the number says. The kernel writes
    // from the start of `buffer`, which is borrowed for that, and finds no
    // memory behind its end.
    unsafe { session.raw_ioctl(uapi::KFI_REQUEST_READ_INFO, argument) }
}

/// Makes a request whose argument points to memory, each piece at an offset.
///
/// Other addresses to which the kernel would write are replaced by bad ones. A piece at an
/// offset that no address has is left out.
pub fn with_memory(
    session: &Session,
    request: u32,
    argument: &mut [u8],
    memory: &mut [(usize, Guarded)],
) -> Result<(), Errno> {
    let size = argument.len().max(size_of_request(request)).max(128);
    let mut words = vec![0_u64; size.div_ceil(8)];
    let copy = words.as_mut_bytes();
    copy[..argument.len()].copy_from_slice(argument);
    for (offset, _) in written_addresses(request) {
        copy[offset..offset + 8].copy_from_slice(&BAD_ADDRESSES[1].to_ne_bytes());
    }
    for (offset, piece) in memory.iter_mut() {
        // All of an address is replaced, or nothing of it.
        let end = offset.checked_add(8).filter(|_| *offset % 8 == 0);
        if let Some(place) = end.and_then(|end| copy.get_mut(*offset..end)) {
            place.copy_from_slice(&(piece.address() as u64).to_ne_bytes());
        }
    }
    // SAFETY: Behind the argument is as much memory as the number says. Each
    // address that the kernel writes to is bad or that of a piece of `memory`,
    // borrowed for that, and behind the end of a piece there is no memory: all
    // addresses are at multiples of 8, so none is made of two.
    let result = unsafe { session.raw_ioctl(request, words.as_mut_ptr().cast::<c_void>()) };
    argument.copy_from_slice(&words.as_bytes()[..argument.len()]);
    result
}

/// A page of a buffer of the session, mapped.
#[derive(Debug)]
pub struct MappedPage(NonNull<c_void>);

impl MappedPage {
    const SIZE: usize = 4096;

    /// Maps the page that has this offset.
    pub fn new(session: &Session, offset: u64) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: The kernel chooses an address where nothing is yet.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                Self::SIZE,
                protection,
                MapFlags::SHARED,
                session,
                offset,
            )
        }?;
        NonNull::new(address).map(Self).ok_or(Errno::FAULT)
    }

    /// Changes a byte; a signal ends the process if the memory is gone.
    pub fn touch(&self) {
        let byte = self.0.cast::<u8>();
        // SAFETY: Mapped until `self` is dropped, and no reference to it exists.
        unsafe { byte.write_volatile(byte.read_volatile().wrapping_add(1)) };
    }
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        // SAFETY: Nobody else knows the address.
        let _ = unsafe { munmap(self.0.as_ptr(), Self::SIZE) };
    }
}

/// Takes a descriptor that a request has made.
pub fn own(fd: i32) -> Option<OwnedFd> {
    // SAFETY: The kernel made it for this request, so that nobody else has it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
