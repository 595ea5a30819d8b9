// SPDX-License-Identifier: GPL-2.0

//! Operations on peers, from the transmit context where they begin to the receive context or the
//! region where they end.

#![forbid(unsafe_code)]

pub(crate) mod atomic;
pub(crate) mod budget;
pub(crate) mod completer;
pub(crate) mod matching;
pub(crate) mod multi_buffer;
pub(crate) mod packet;
pub(crate) mod parking;
pub(crate) mod receive_queue;
pub(crate) mod receiver;
pub(crate) mod region;
pub(crate) mod stripes;
pub(crate) mod transmitter;
