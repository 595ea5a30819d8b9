// SPDX-License-Identifier: GPL-2.0

//! The public API for consumers in Rust.
//!
//! Objects close when they are dropped. A caller that wants to know whether that succeeds closes
//! explicitly: an object with dependents refuses and is given back. Dependents must therefore go
//! first.

mod address_vector;
mod budget;
mod buffer;
mod completion_queue;
mod contexts;
mod counter;
mod deferred_work;
mod domain;
mod endpoint;
mod event_queue;
mod fabric;
mod handler;
mod leftovers;
mod memory_region;
mod object;
mod operation;
mod peak;
mod poll_set;
mod text;
mod wait_set;

pub(crate) use address_vector::{
    AddressVector,
    AddressVectorAttr,
    Insert,
    Inserted,
    ADDRESS_SIZE,
    ADDR_MAX, //
};
pub(crate) use budget::{
    half_of_memory,
    Budget,
    Charge, //
};
pub(crate) use buffer::{
    Buffer,
    BufferKind,
    Places,
    Segment,
    Shape, //
};

pub(crate) use completion_queue::{
    Completion,
    CompletionQueue,
    CompletionQueueAttr,
    Written, //
};
pub(crate) use contexts::{
    is_address,
    Condition,
    Contexts,
    Named as NamedContext,
    OwnerId,
    Told, //
};
pub(crate) use counter::{
    Counter,
    CounterAttr, //
};
pub(crate) use deferred_work::{
    DeferredWork,
    WorkObjects,
    WorkOperation, //
};
pub(crate) use domain::Domain;
pub(crate) use endpoint::{
    op_flags,
    refuse,
    Endpoint,
    EndpointKind,
    Multicast,
    Named,
    PassiveEndpoint,
    SharedTransmit,
    DEPTH,
    RECEIVE_SIZE,
    TRANSMIT_SIZE, //
};
pub(crate) use event_queue::{
    Event,
    EventQueue,
    EventQueueAttr, //
};
pub(crate) use fabric::{
    getinfo,
    Fabric, //
};
pub(crate) use handler::Calls;
pub(crate) use leftovers::{
    Reading,
    LEFT_SIZE, //
};
pub(crate) use memory_region::{
    MemoryRegion,
    Register,
    RegisterForm, //
};
pub(crate) use object::{
    close,
    AnyObject,
    Closable,
    HasWaitQueue,
    Listener,
    ObjectClass, //
};
pub(crate) use operation::{
    element_size,
    ignores_operand,
    Form,
    Kind,
    OpContext,
    Operation,
    RmaSegment, //
};
pub(crate) use peak::Taken;
pub(crate) use poll_set::PollSet;
pub(crate) use text::Text;
pub(crate) use wait_set::WaitSet;

use kernel::prelude::*;

use super::bindings;

/// Returns the version of the API that the core implements, major in the upper, minor in the lower
/// 16 bits.
pub(crate) fn version() -> u32 {
    // SAFETY: Callable from any context.
    unsafe { bindings::kfi_version() }
}

/// Returns what a call returned that returns a size.
fn size_result(ret: isize) -> Result<usize> {
    usize::try_from(ret).map_err(|_| Error::from_errno(c_int::try_from(ret).unwrap_or(c_int::MIN)))
}

/// Has a provider describe something in a text that ends; returns whether it did. `len` says how
/// much room the provider gets, 0 for none.
fn describe(
    text: &mut [u8],
    len: usize,
    describe: impl FnOnce(*mut c_char, usize) -> *const c_char,
) -> bool {
    let Some((last, room)) = text.split_last_mut() else {
        return false;
    };
    *last = 0;
    let len = len.min(room.len());
    let buf = if len == 0 {
        core::ptr::null_mut()
    } else {
        room.as_mut_ptr()
    };
    let ret = describe(buf, len);
    if ret.is_null() {
        return false;
    }
    if !core::ptr::eq(ret, buf) {
        // SAFETY: It is a constant text, or one in the room.
        let bytes = unsafe { CStr::from_char_ptr(ret) }.to_bytes();
        let len = bytes.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
        }
    }
    true
}
