// SPDX-License-Identifier: GPL-2.0

//! Memory for operations and memory regions.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use zerocopy::FromZeros;

use crate::flags::numbers;
use crate::memory_region::MemoryRegion;
use crate::object::{object, Handle, Object};
use crate::session::Session;
use crate::sys::{request, Map};
use crate::uapi;
use crate::{Error, Result};

numbers! {
    /// How the memory of a buffer is allocated.
    BufferKind {
        KMALLOC = KFI_SHIM_BUFFER_KMALLOC,
        VMALLOC = KFI_SHIM_BUFFER_VMALLOC,
        PAGES = KFI_SHIM_BUFFER_PAGES,
    }
}

/// A buffer of the kernel, mapped.
#[derive(Debug)]
pub struct Buffer {
    object: Arc<Object>,
    size: u64,
    offset: u64,
    map: Map,
}

object!(Buffer);

impl Session {
    /// Allocates a buffer and maps it. `EDQUOT` if the session has as much
    /// memory as it may.
    pub fn buffer(&self, kind: BufferKind, size: u64) -> Result<Buffer> {
        let mut argument = uapi::kfi_shim_buffer {
            kind: kind.0,
            size,
            ..FromZeros::new_zeroed()
        };
        self.ioctl(request::BUFFER, &mut argument)?;
        let object = Object::new(self.clone(), argument.buffer, None);
        Ok(Buffer {
            map: Map::new(self, argument.offset, size as usize, true)?,
            object,
            size,
            offset: argument.offset,
        })
    }
}

impl Buffer {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The offset of the device where its memory is.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Copies bytes out. Panics if there are not as many.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        self.map.read(offset, to);
    }

    /// Returns bytes. Panics if there are not as many.
    pub fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        self.read(range.start, &mut bytes);
        bytes
    }

    /// Copies bytes in. Panics if there is not as much room.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.map.write(offset, from);
    }

    /// Writes the same byte everywhere.
    pub fn fill(&self, byte: u8) {
        let part = [byte; 4096];
        let size = self.size as usize;
        for offset in (0..size).step_by(part.len()) {
            self.write(offset, &part[..part.len().min(size - offset)]);
        }
    }

    /// Maps a part of it once more, and drops the mapping; tells how that went.
    pub fn map_part(&self, offset: u64, len: usize, writable: bool) -> Result<()> {
        Map::new(self.session(), self.offset + offset, len, writable)?;
        Ok(())
    }

    /// A piece of it.
    pub fn segment(&self, range: Range<u64>) -> Segment {
        Segment {
            buffer: self.handle(),
            mr: 0,
            offset: range.start,
            len: range.end - range.start,
        }
    }

    /// All of it.
    pub fn all(&self) -> Segment {
        self.segment(0..self.size)
    }

    /// Some elements of a type, for atomic operations.
    pub fn elements(&self, offset: u64, count: u64) -> Segment {
        Segment {
            buffer: self.handle(),
            mr: 0,
            offset,
            len: count,
        }
    }
}

/// A piece of a buffer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Segment {
    /// The buffer; 0 for NULL.
    pub buffer: Handle,
    /// The region whose descriptor is handed over; 0 for none.
    pub mr: Handle,
    /// Where it begins.
    pub offset: u64,
    /// Bytes, or elements of atomic operations.
    pub len: u64,
}

impl Segment {
    /// Nothing at NULL.
    pub const NULL: Self = Self {
        buffer: 0,
        mr: 0,
        offset: 0,
        len: 0,
    };

    /// With the descriptor of a region.
    #[must_use]
    pub fn desc(self, mr: &MemoryRegion) -> Self {
        Self {
            mr: mr.handle(),
            ..self
        }
    }
}

impl From<Segment> for uapi::kfi_shim_segment {
    fn from(segment: Segment) -> Self {
        Self {
            buffer: segment.buffer,
            mr: segment.mr,
            offset: segment.offset,
            len: segment.len,
        }
    }
}

/// Segments as the interface takes them.
pub(crate) fn raw_segments(segments: &[Segment]) -> Vec<uapi::kfi_shim_segment> {
    segments.iter().copied().map(Into::into).collect()
}
