// SPDX-License-Identifier: GPL-2.0

//! Memory that ends where it should.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::sys::{self, Pages};

/// Bytes that end where mapped memory ends: the one after the last cannot be
/// accessed.
#[derive(Debug)]
pub struct Guarded {
    pages: Pages,
    length: usize,
}

impl Guarded {
    /// A copy of some bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, Errno> {
        let mut guarded = Self {
            pages: Pages::new(bytes.len())?,
            length: bytes.len(),
        };
        guarded.write(bytes)?;
        Ok(guarded)
    }

    /// Replaces the last bytes, and makes them writable.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let end = self.pages.bytes().len();
        let start = end.checked_sub(bytes.len()).ok_or(Errno::INVAL)?;
        self.pages.write(start, bytes)
    }

    /// Makes the kernel fail if it writes here.
    pub fn set_read_only(&mut self) -> Result<(), Errno> {
        self.pages.set_read_only()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let all = self.pages.bytes();
        &all[all.len() - self.length..]
    }

    /// The address of the first byte, for a system call. Bytes that the kernel
    /// writes, up to `length` from here, are seen by the next [`Self::bytes`].
    pub fn address(&mut self) -> *mut c_void {
        let skip = self.pages.bytes().len() - self.length;
        self.pages.address().wrapping_byte_add(skip)
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Addresses at which nothing is mapped, as long as nobody else maps there.
#[derive(Clone, Copy, Debug)]
pub struct Hole(sys::Hole);

impl Hole {
    /// Finds so many bytes.
    pub fn new(size: usize) -> Result<Self, Errno> {
        sys::Hole::new(size).map(Self)
    }

    /// The first address.
    pub fn start(self) -> usize {
        self.0.start()
    }

    /// Maps `len` bytes of a file, which are at `from`, in place of those at `offset`, and takes that back
    /// at once.
    pub fn try_map(
        self,
        offset: usize,
        len: usize,
        fd: BorrowedFd<'_>,
        from: u64,
    ) -> Result<(), Errno> {
        self.0.try_map(offset, len, fd, from)
    }

    /// Has the kernel copy the byte at `offset` into a pipe; `EFAULT` if nothing is there.
    pub fn send(self, offset: usize, pipe: BorrowedFd<'_>) -> Result<(), Errno> {
        self.0.send(offset, pipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_a_page_boundary() {
        let mut memory = Guarded::new(b"0123456").unwrap();
        assert_eq!(memory.bytes(), b"0123456");
        assert_eq!(memory.len(), 7);
        let page = rustix::param::page_size();
        assert_eq!((memory.address() as usize + memory.len()) % page, 0);
    }

    #[test]
    fn protection_and_writes() {
        let mut memory = Guarded::new(&[1; 64]).unwrap();
        memory.set_read_only().unwrap();
        assert_eq!(memory.bytes(), [1; 64]);
        memory.write(&[2; 10]).unwrap();
        assert_eq!(memory.bytes()[53..55], [1, 2]);
        assert!(memory.write(&vec![0; 1 << 20]).is_err());
    }
}
