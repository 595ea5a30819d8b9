// SPDX-License-Identifier: GPL-2.0

//! Default flags are the consumer's: one of them says that a context is a pointer.

use crate::{
    kfi::{
        fid::Fid,
        flags::OpFlags,
        provider::Direction, //
    },
    provider::Endpoint, //
};

fn invent(endpoint: &Fid<Endpoint>) -> OpFlags {
    #[cfg(wrong)]
    endpoint.data().set(Direction::Transmit, OpFlags::TRIGGER); //~ E0624
    endpoint.default_flags(Direction::Transmit)
}
