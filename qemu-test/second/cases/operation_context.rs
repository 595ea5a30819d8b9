// SPDX-License-Identifier: GPL-2.0

//! The context of an operation that a provider gets, in which a triggered one has its condition, is made
//! by the client in the abstractions, and never of a number.

use crate::kfi::{
    consumer::OpContext,
    context::Context, //
};

fn post(number: usize) -> OpContext {
    #[cfg(wrong)]
    {
        let _ = OpContext(Context::from_number(number)); //~ E0423
        let _ = OpContext::new(Context::from_number(number)); //~ E0624
    }
    OpContext::NONE
}
