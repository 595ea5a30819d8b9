// SPDX-License-Identifier: GPL-2.0

//! Memory of consumers that is sent through sockets, and received into, without a copy in between.

use core::array;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

use super::{
    Base,
    Cursor,
    Target, //
};
use crate::kfi::{
    bindings,
    linux::socket::{
        RawPieces,
        TcpSocket, //
    }, //
};

/// So many pieces of memory one call of the socket may be about; others are for the next call.
const PIECES: usize = 16;

impl<D> Cursor<'_, D> {
    /// Calls `act` with the next pieces of one kind, of up to `len` bytes, and moves on by as many bytes as that
    /// returns. `EINVAL` if there is none.
    fn pass(
        &mut self,
        len: usize,
        act: impl FnOnce(&RawPieces<'_>) -> Result<usize>,
    ) -> Result<usize> {
        let mut places: [bindings::kvec; PIECES] = array::from_fn(|_| bindings::kvec::default());
        let mut pages: [bindings::bio_vec; PIECES] =
            array::from_fn(|_| bindings::bio_vec::default());
        let (mut in_places, mut in_pages): (usize, usize) = (0, 0);
        let mut next = self.clone();
        let mut left = len.min(self.left);
        while left != 0 {
            let Some(piece) = next.piece() else {
                break;
            };
            let step = match piece.base {
                Base::Virtual(base) if in_pages == 0 => {
                    let Some(place) = places.get_mut(in_places) else {
                        break;
                    };
                    let step = piece.len.min(left);
                    (place.iov_base, place.iov_len) = (base.cast(), step);
                    in_places = in_places.wrapping_add(1);
                    step
                }
                Base::Page(page, offset) if in_places == 0 => {
                    let Some(place) = pages.get_mut(in_pages) else {
                        break;
                    };
                    // What is behind the page lies in those that follow it.
                    place.bv_page = page.wrapping_add(offset / PAGE_SIZE);
                    place.bv_offset = (offset % PAGE_SIZE) as u32;
                    place.bv_len = u32::try_from(piece.len.min(left)).unwrap_or(1 << 30);
                    in_pages = in_pages.wrapping_add(1);
                    place.bv_len as usize
                }
                _ => break,
            };
            next.advance(step);
            left = left.wrapping_sub(step);
        }
        let pieces = if in_pages == 0 {
            RawPieces::Virtual(places.get(..in_places).ok_or(EINVAL)?)
        } else {
            RawPieces::Pages(pages.get(..in_pages).ok_or(EINVAL)?)
        };
        if in_places == 0 && in_pages == 0 {
            return Err(EINVAL);
        }
        let count = act(&pieces)?;
        self.skip(count);
        Ok(count)
    }

    /// Sends up to `len` bytes, as [`TcpSocket::send`]; returns how many.
    pub fn send(&mut self, socket: &TcpSocket, len: usize, more: bool) -> Result<usize> {
        self.pass(len, |pieces| {
            // SAFETY: They are valid for reads by the type invariants.
            unsafe { socket.send_raw(pieces, more) }
        })
    }
}

impl Cursor<'_, Target> {
    /// Receives up to `len` bytes, as [`TcpSocket::receive`]; returns how many.
    pub fn receive(&mut self, socket: &TcpSocket, len: usize) -> Result<usize> {
        self.pass(len, |pieces| {
            // SAFETY: They are valid for writes by the type invariants.
            unsafe { socket.receive_raw(pieces) }
        })
    }
}
