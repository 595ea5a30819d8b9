// SPDX-License-Identifier: GPL-2.0

//! The public API for consumers in Rust.
//!
//! Objects close when they are dropped. A caller that wants to know whether that succeeds closes
//! explicitly, by [`close`]: an object with dependents refuses and is given back.
//!
//! # Order
//!
//! Dependents go first, and it is the consumer that sees to that. Local variables are dropped in the
//! opposite order of their declaration, which is right by itself; fields of a struct in the order of
//! their declaration. So in a struct what depends on others is declared *before* them:
//!
//! ```ignore
//! struct Connection {
//!     endpoint: Endpoint,
//!     addresses: AddressVector,
//!     queue: CompletionQueue,
//!     domain: Domain,
//!     fabric: Fabric,
//! }
//! ```
//!
//! An object that is dropped before its dependents cannot be closed, then or later: the log says "object
//! left open", it keeps its provider's module until the machine goes down, and what the provider may
//! still call or write to is leaked. Of a queue with a handler that keeps the consumer's own module,
//! too, whose end then waits for ever (`linux::live`).
//!
//! # Contexts
//!
//! Functions are called in process context and may sleep, unless they say "from any context", as those of
//! a [`Counter`] do but for `open` and `wait`. So other than in C *posting, cancelling and reading queues
//! may sleep*: they keep the memory of operations and what their contexts stand for, by locks that sleep
//! and allocations that do. To drop an object, a [`Segment`], a [`Buffer`] or a context may sleep as well.
//! No type of the kernel's Rust code keeps a caller from using them where that must not be, such as in
//! [`Woken::woken`], with a spinlock held or with interrupts disabled; kernels with
//! `CONFIG_DEBUG_ATOMIC_SLEEP` tell. They allocate with `GFP_KERNEL`, so they are not for code that memory
//! reclaim waits for.
//!
//! # Null pointers
//!
//! For tests of providers some functions hand over null where the API has a pointer: those with `null` in
//! their names, [`Insert::Null`], those that take `None` for addresses, a node or a counter, and objects
//! whose wait object is a wait set that is `None`. Providers made with `rust/kfi` refuse null, or have
//! defaults for it where it stands for attributes; one in C that trusts its callers may follow it. `None`
//! for attributes is not null, but the defaults spelled out.
//!
//! # Numbers
//!
//! Addresses, keys, and the levels, names and values of options reach the provider as they are. One that
//! takes an address or a key for a pointer without a check is not for consumers that make them up.
//!
//! [`Woken::woken`]: crate::kfi::linux::wait_entry::Woken::woken

mod address_vector;
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
mod hints;
mod leftovers;
mod memory_region;
mod object;
mod offers;
mod operation;
mod peak;
mod poll_set;
mod quota;
mod text;
mod wait_set;

pub use address_vector::{
    AddressVector,
    AddressVectorAttr,
    Insert,
    ADDRESS_SIZE,
    ADDR_MAX, //
};
pub use buffer::{
    Buffer,
    BufferKind,
    Places,
    Segment,
    Shape, //
};

pub use completion_queue::{
    Completion,
    CompletionQueue,
    CompletionQueueAttr,
    Place,
    Written, //
};
pub use contexts::{
    is_address,
    Condition,
    Contexts,
    Named as NamedContext, //
};
pub use counter::{
    Counter,
    CounterAttr, //
};
pub use deferred_work::{
    DeferredWork,
    WorkObjects,
    WorkOperation, //
};
pub use domain::Domain;
pub use endpoint::{
    op_flags,
    refuse,
    Endpoint,
    EndpointKind,
    HasName,
    Multicast,
    PassiveEndpoint,
    SharedTransmit,
    DEPTH,
    RECEIVE_SIZE,
    TRANSMIT_SIZE, //
};
pub use event_queue::{
    Event,
    EventQueue,
    EventQueueAttr,
    First, //
};
pub use fabric::{
    getinfo,
    Fabric, //
};
pub use hints::Hints;
pub use leftovers::LEFT_SIZE;
pub use memory_region::{
    MemoryRegion,
    Register,
    RegisterForm, //
};
pub use object::{
    close,
    AnyObject,
    Closable,
    HasWaitQueue,
    Listener, //
};
pub use offers::{
    Offer,
    Offers, //
};
pub use operation::{
    element_size,
    ignores_operand,
    Form,
    Kind,
    OpContext,
    Operation,
    RmaSegment, //
};
pub use peak::Taken;
pub use poll_set::PollSet;
pub use quota::{
    half_of_memory,
    Charge,
    Quota, //
};
pub use text::Text;
pub use wait_set::WaitSet;

// The types that functions return, by their names.
#[allow(unused_imports, reason = "not every consumer writes these names")]
pub use self::{
    address_vector::Inserted,
    completion_queue::Failure,
    event_queue::EventError,
    handler::Calls,
    object::Lineage, //
};

use kernel::prelude::*;

use super::bindings;

/// The answer of kfabric, which a function passes on that has errors of its own, too: with `??` a caller
/// takes both for one.
pub type Answer<T = ()> = Result<T>;

/// Returns the version of the API that the core implements, major in the upper, minor in the lower
/// 16 bits.
pub fn version() -> u32 {
    // SAFETY: Callable from any context.
    unsafe { bindings::kfi_version() }
}

/// Returns the size, or the error, that a call has returned.
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
