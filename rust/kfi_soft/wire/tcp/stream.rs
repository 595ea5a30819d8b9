// SPDX-License-Identifier: GPL-2.0

//! Frames out of the bytes of a connection, however these come.
//!
//! As [`frame`](super::frame) this uses nothing but `core`, so that it is tested in user space.

#![forbid(unsafe_code)]

use core::ops::DerefMut;

use super::frame::{
    Broken,
    Common,
    Frame,
    COMMON,
    MAX_HEAD, //
};

/// Bytes that were received and not used yet.
///
/// The memory is the caller's, at least [`MAX_HEAD`] bytes, so that any header fits.
pub(crate) struct Stream<M> {
    memory: M,
    /// Where the bytes begin that were not used.
    start: usize,
    /// Where they end.
    end: usize,
    /// How many bytes of the body of the last frame are still to come.
    body: usize,
    /// How many bytes the last header had.
    head: usize,
}

/// The next part of a stream.
pub(crate) enum Part<'a> {
    /// A header, and whether a body follows.
    Head(Common, Frame<'a>),
    /// Some of the body, and whether that was the last of it.
    Body(&'a [u8], bool),
}

impl<M: DerefMut<Target = [u8]>> Stream<M> {
    /// Nothing was received.
    pub(crate) fn new(memory: M) -> Self {
        Self {
            memory,
            start: 0,
            end: 0,
            body: 0,
            head: 0,
        }
    }

    /// Returns room for more bytes, which is never empty when [`Self::next`] has returned nothing.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start != 0 && self.memory.len().saturating_sub(self.end) < MAX_HEAD / 4 {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end.saturating_sub(self.start));
        }
        self.memory.get_mut(self.end..).unwrap_or(&mut [])
    }

    /// So many bytes were put there.
    pub(crate) fn received(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.memory.len());
    }

    /// Returns whether no frame has begun to come that is not there in full, when [`Self::next`] has
    /// returned nothing.
    pub(crate) fn is_between(&self) -> bool {
        self.body == 0 && self.start == self.end
    }

    /// Returns how many bytes of a body come next, if all that was received has been used.
    pub(crate) fn body_to_come(&self) -> usize {
        if self.start == self.end {
            self.body
        } else {
            0
        }
    }

    /// So many bytes of a body were received elsewhere, when [`Self::body_to_come`] has told that these come next.
    pub(crate) fn pass(&mut self, count: usize) {
        self.body = self.body.saturating_sub(count);
    }

    /// Returns the header that [`Self::next`] has just returned, as it was received.
    pub(crate) fn header(&self) -> &[u8] {
        let start = self.start.saturating_sub(self.head);
        self.memory.get(start..self.start).unwrap_or(&[])
    }

    /// Returns the next part, once that is there; none if more has to be received first.
    pub(crate) fn next(&mut self) -> Result<Option<Part<'_>>, Broken> {
        let unused = self.memory.get(self.start..self.end).unwrap_or(&[]);
        if self.body != 0 {
            let len = unused.len().min(self.body);
            if len == 0 {
                return Ok(None);
            }
            self.start = self.start.saturating_add(len);
            self.body = self.body.saturating_sub(len);
            let piece = unused.get(..len).unwrap_or(&[]);
            return Ok(Some(Part::Body(piece, self.body == 0)));
        }
        let Some(first) = unused.first_chunk::<COMMON>() else {
            return Ok(None);
        };
        let head = Common::parse(first)?.head;
        let Some(header) = unused.get(..head) else {
            return Ok(None);
        };
        let (common, frame) = Frame::parse(header)?;
        self.start = self.start.saturating_add(head);
        (self.body, self.head) = (common.body, head);
        Ok(Some(Part::Head(common, frame)))
    }
}
