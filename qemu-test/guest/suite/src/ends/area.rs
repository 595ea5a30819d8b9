// SPDX-License-Identifier: GPL-2.0

//! Memory with a pattern in it.

use kfi::{Buffer, BufferKind, Segment, Session};

use crate::check;
use crate::check::{Outcome, Stop};

/// Kinds of memory.
pub const KINDS: [BufferKind; 3] = [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES];

/// Bytes that no other seed has, and no other place.
pub fn pattern(seed: u64, from: usize, len: usize) -> Vec<u8> {
    let first = from / 8;
    let last = (from + len).div_ceil(8);
    let mut bytes = Vec::with_capacity((last - first) * 8);
    for word in first..last {
        let mixed = (word as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(seed.wrapping_mul(0xd134_2543_de82_ef95));
        bytes.extend_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    let skip = from - first * 8;
    bytes.drain(..skip);
    bytes.truncate(len);
    bytes
}

/// The byte around those of an area.
const FILL: u8 = 0xee;
/// How many bytes of it are checked.
const GUARD: u64 = 64;

/// A part of a buffer, with something around it that must not change.
#[derive(Debug)]
pub struct Area {
    /// The buffer.
    pub buffer: Buffer,
    /// How it is allocated.
    pub kind: BufferKind,
    /// Where the part begins.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
}

impl Area {
    /// Memory of a kind, at an offset from where memory begins.
    pub fn new(session: &Session, kind: BufferKind, offset: u64, len: u64) -> Result<Self, Stop> {
        let area = Self {
            buffer: session.buffer(kind, GUARD + offset + len + GUARD)?,
            kind,
            offset: GUARD + offset,
            len,
        };
        area.buffer.fill(FILL);
        Ok(area)
    }

    /// Plain memory.
    pub fn plain(session: &Session, len: u64) -> Result<Self, Stop> {
        Self::new(session, BufferKind::VMALLOC, 0, len)
    }

    /// All of it.
    pub fn all(&self) -> Segment {
        self.part(0, self.len)
    }

    /// A part of it.
    pub fn part(&self, from: u64, len: u64) -> Segment {
        self.buffer
            .segment(self.offset + from..self.offset + from + len)
    }

    /// A number of elements, for atomic operations.
    pub fn elements(&self, from: u64, count: u64) -> Segment {
        self.buffer.elements(self.offset + from, count)
    }

    /// The beginning of it, in so many pieces, as far as there are bytes.
    pub fn pieces(&self, len: u64, count: u64) -> Vec<Segment> {
        let step = (len / count).max(1);
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < len && (pieces.len() as u64) + 1 < count {
            pieces.push(self.part(at, step.min(len - at)));
            at += step.min(len - at);
        }
        if at < len || pieces.is_empty() {
            pieces.push(self.part(at, len - at));
        }
        pieces
    }

    /// Bytes of it.
    pub fn bytes(&self, from: u64, len: u64) -> Vec<u8> {
        let from = (self.offset + from) as usize;
        self.buffer.bytes(from..from + len as usize)
    }

    /// Changes bytes of it.
    pub fn write(&self, from: u64, bytes: &[u8]) {
        self.buffer.write((self.offset + from) as usize, bytes);
    }

    /// The bytes around it have not changed.
    pub fn intact(&self) -> Outcome {
        let end = (self.offset + self.len) as usize;
        let before = self
            .buffer
            .bytes((self.offset - GUARD) as usize..self.offset as usize);
        let after = self.buffer.bytes(end..end + GUARD as usize);
        let changed = before.iter().chain(&after).any(|byte| *byte != FILL);
        check!(!changed, "bytes around {} were changed", self.len);
        Ok(())
    }

    /// Fills it with a pattern.
    pub fn fill(&self, seed: u64) {
        self.write(0, &pattern(seed, 0, self.len as usize));
    }

    /// Fills it with what no pattern is.
    pub fn clear(&self) {
        self.buffer.fill(FILL);
    }

    /// A part has the bytes of a pattern.
    #[track_caller]
    pub fn has(&self, from: u64, len: u64, seed: u64, pattern_from: u64) -> Outcome {
        let should = pattern(seed, pattern_from as usize, len as usize);
        let is = self.bytes(from, len);
        if is == should {
            return Ok(());
        }
        let at = is.iter().zip(&should).position(|(is, should)| is != should);
        let at = at.unwrap_or_default();
        Err(Stop::fail(format!(
            "byte {at} of {len} is {:#x}, should be {:#x}",
            is[at], should[at]
        )))
    }

    /// It begins with a pattern of that length, and nothing else has changed.
    #[track_caller]
    pub fn has_only(&self, len: u64, seed: u64) -> Outcome {
        self.has(0, len, seed, 0)?;
        let size = self.buffer.size();
        let end = self.offset + len;
        for range in [
            self.offset - GUARD..self.offset,
            end..(end + GUARD + 8).min(size),
        ] {
            let bytes = self.buffer.bytes(range.start as usize..range.end as usize);
            if bytes.iter().any(|byte| *byte != FILL) {
                return Err(Stop::fail(format!(
                    "bytes around {len} were changed: {bytes:x?}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn patterns_are_places() {
        let all = pattern(3, 0, 100);
        assert_eq!(all.len(), 100);
        assert_eq!(pattern(3, 13, 50), all[13..63]);
        assert_ne!(pattern(4, 0, 100), all);
        assert!(pattern(3, 5, 0).is_empty());
    }
}
