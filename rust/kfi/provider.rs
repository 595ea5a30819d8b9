// SPDX-License-Identifier: GPL-2.0

//! The traits that a provider implements, and the tables of functions that C gets.
//!
//! Every class has a trait of its operations. A type that implements the trait and [`Object`]
//! becomes an object of that class; the table of functions, with every slot filled, is built from
//! the trait. Calls that a trait can do without have a default, which answers `ENOSYS` as a rule; [`Absent`]
//! is the type of a class that a provider does not have.
//!
//! Providers that are made of software need much of the same. That lies in parts of its own, which the
//! Kbuild of a crate names:
//!
//! | part | what it is |
//! | --- | --- |
//! | `provider_wait_source` | wait objects, with the answers to `KFI_GETWAIT` and `KFI_GETWAITOBJ` |
//! | `provider_counter_wait` | waiting on a counter, its error value, and the answers to its control commands |
//! | `provider_queue` | entries that threads wait for: those of a completion queue, or of any other |
//! | `provider_address_book` | addresses by index, and indices by address |
//! | `provider_ready` | counters, completion queues and address vectors that a provider can have as they are |
//! | `provider_prelude` | the names that the files of a provider use |
//!
//! [`Object`]: super::fid::Object

mod absent;
#[cfg(provider_address_book)]
pub mod address_book;
mod address_vector;
mod completion_queue;
mod counter;
#[cfg(provider_counter_wait)]
pub mod counter_wait;
mod cxi_ext;
mod deferred_work;
mod domain;
mod endpoint;
mod enosys;
mod event_queue;
mod fabric;
mod handler;
mod in_use;
mod memory_region;
mod open_calls;
mod operation;
mod poll_set;
#[cfg(provider_prelude)]
pub mod prelude;
#[cfg(provider_queue)]
pub mod queue;
#[cfg(any(provider_ready, all(unit_tests, CONFIG_KUNIT = "y")))]
#[allow(dead_code, reason = "where there are unit tests it is there for them")]
#[allow(unused_imports, reason = "as above")]
pub mod ready;
mod registration;
mod wait;
mod wait_set;
#[cfg(provider_wait_source)]
pub mod wait_source;

pub use absent::Absent;
pub use address_vector::{
    AddressVectorAttr,
    AddressVectorClass,
    AddressVectorOps,
    Addresses,
    FabricAddrs,
    Inserted,
    Insertion,
    Results, //
};
pub use completion_queue::{
    call_completion_handler,
    completion_queue_test_ops,
    Completion,
    CompletionBuffer,
    CompletionError,
    CompletionQueueAttr,
    CompletionQueueClass,
    CompletionQueueOps,
    CompletionQueueTestOps,
    ErrorBuffer,
    Failure,
    Outcome,
    ADDR_NOTAVAIL, //
};
#[allow(unused_imports, reason = "not every provider looks at them")]
pub use completion_queue::{
    CompletionFormat,
    WaitCondition, //
};
pub use counter::{
    counter_test_ops,
    CounterAttr,
    CounterClass,
    CounterEvents,
    CounterOps,
    CounterStatistics,
    CounterTestOps, //
};
pub use cxi_ext::{
    cxi_domain_ops,
    cxi_fabric_ops,
    CxiDomainOps,
    CxiFabricOps, //
};
pub use deferred_work::{
    domain_test_ops,
    DeferredOp,
    DeferredWork,
    WorkId, //
};
pub use domain::{
    DomainClass,
    DomainOps, //
};
pub use endpoint::{
    kfi_rx_attr,
    kfi_tx_attr,
    Direction,
    Directions,
    EndpointClass,
    EndpointOps,
    NoReceiveContext,
    NoTransmitContext,
    PlainClass,
    ReceiveClass,
    ScalableClass,
    SharedReceiveClass,
    SharedTransmitClass,
    SharedTransmitOps,
    TransmitClass,
    PLAIN_NUMBER,
    RECEIVE_NUMBER,
    TRANSMIT_NUMBER, //
};
pub use event_queue::{
    call_event_handler,
    event_queue_test_ops,
    Event,
    EventError,
    EventQueueAttr,
    EventQueueClass,
    EventQueueOps,
    EventQueueTestOps, //
};
pub use fabric::{
    FabricAttr,
    FabricClass,
    FabricOps, //
};
pub use in_use::{
    Counted,
    Ended,
    Incoming,
    Lasting,
    Left,
    Outgoing,
    SharedUse, //
};
pub use memory_region::{
    MemoryRegionAttr,
    MemoryRegionClass,
    MemoryRegionOps,
    RawKey, //
};
#[allow(unused_imports, reason = "a provider may define its calls by itself")]
pub(crate) use open_calls::open_calls;
pub use operation::{
    atomics,
    datatype_size,
    kfi_datatype,
    kfi_op,
    AtomicCall,
    AtomicForm,
    Atomics,
    Kind,
    Operation,
    Trigger, //
};
pub use poll_set::{
    PollBuffer,
    PollSetClass,
    PollSetOps, //
};
pub use registration::{
    Provider,
    Query,
    Registration, //
};
pub use wait::WaitAttr;
pub use wait_set::{
    WaitSetAttr,
    WaitSetClass,
    WaitSetOps, //
};

use core::{
    marker::PhantomData,
    mem::MaybeUninit, //
};
use kernel::{
    cpu::CpuId,
    prelude::*,
    str::CStr, //
};

use super::{
    bindings,
    errno::ETOOSMALL,
    flags::QueueFlags,
    linux::linear::Linear, //
};

/// The text of providers that have no errnos of their own.
const NO_PROVIDER_ERROR: &CStr = c"No provider error";

/// The only flag of reading queues: what is read stays.
// bindgen chooses the type of a constant by its value.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
const PEEK: u64 = bindings::KFI_PEEK as u64;

/// Returns on which CPU a handler is to run, if that was asked for; `EINVAL` for one that cannot be.
fn affinity(flags: u64, vector: c_int) -> Result<Option<CpuId>> {
    if !QueueFlags::from_raw(flags).contains(QueueFlags::AFFINITY) {
        return Ok(None);
    }
    CpuId::from_i32(vector).ok_or(EINVAL).map(Some)
}

/// Writes an error entry for a consumer, and leaves the pointer at `kept` in it as it is: it may be that
/// of a buffer of the consumer's, or never have been set.
///
/// # Safety
///
/// `to` must be valid for reads and writes, and `kept` point to a field of it.
unsafe fn write_error<T>(to: *mut T, entry: T, kept: *mut *mut c_void) {
    let kept = kept.cast::<MaybeUninit<*mut c_void>>();
    // SAFETY: By the safety requirements; what may be uninitialised is only moved.
    unsafe {
        let pointer = kept.read();
        to.write(entry);
        kept.write(pointer);
    }
}

/// Tells a text: in `to`, cut so that it ends, if there is room, else where it is. Returns where.
///
/// # Safety
///
/// `to` must be null or valid for writes of `len` bytes.
unsafe fn tell_text(text: &'static CStr, to: *mut c_char, len: usize) -> *const c_char {
    let Some(room) = len.checked_sub(1).filter(|_| !to.is_null()) else {
        return text.as_char_ptr();
    };
    let bytes = text.to_bytes();
    let bytes = bytes.get(..room).unwrap_or(bytes);
    // SAFETY: `to` is valid for writes of more bytes than these.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        to.add(bytes.len()).write(0);
    }
    to
}

/// The place where a caller wants a value, and the room there. The value is told once.
///
/// # Invariants
///
/// `len` is null or valid, and `to` null or valid for writes of that many bytes.
pub struct Answer<'a> {
    to: *mut c_void,
    len: *mut usize,
    _lifetime: PhantomData<&'a mut usize>,
    _once: Linear,
}

impl Answer<'_> {
    /// Takes the place from C.
    ///
    /// # Safety
    ///
    /// As the type invariants say, for as long as this is used.
    pub(super) unsafe fn new(to: *mut c_void, len: *mut usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            to,
            len,
            _lifetime: PhantomData,
            _once: Linear,
        }
    }

    /// Tells the value, cut if there is no room, and its length; `ETOOSMALL` if it was cut.
    pub fn tell(self, value: &[u8]) -> Result {
        // The length is where the room was told: nobody looks for that again, as `self` is gone.
        // SAFETY: By the type invariants.
        unsafe { answer(value, self.to, self.len) }
    }
}

/// Copies a value to a caller, cut if there is no room, and tells its length; `ETOOSMALL` if it was
/// cut.
///
/// # Safety
///
/// `len` must be null or valid, and `to` null or valid for writes of that many bytes.
unsafe fn answer(value: &[u8], to: *mut c_void, len: *mut usize) -> Result {
    if len.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: `len` is valid, as it is not null.
    let room = unsafe { len.read() }.min(value.len());
    if to.is_null() && room != 0 {
        return Err(EINVAL);
    }
    // SAFETY: As above.
    unsafe { len.write(value.len()) };
    if room != 0 {
        // SAFETY: There are `room` bytes at both, and nobody else has `value`.
        unsafe { core::ptr::copy_nonoverlapping(value.as_ptr(), to.cast(), room) };
    }
    if room < value.len() {
        return Err(ETOOSMALL.into());
    }
    Ok(())
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_answer)]
mod tests {
    use super::*;

    #[test]
    fn short_answers_tell_the_length() {
        let value = [1, 2, 3, 4];
        for room in 0..8 {
            let mut to = [0u8; 8];
            let mut len = room;
            // SAFETY: There is more room than told.
            let result = unsafe { answer(&value, to.as_mut_ptr().cast(), &mut len) };

            assert_eq!(len, value.len());
            assert_eq!(result.is_ok(), room >= value.len());
            let written = room.min(value.len());
            assert!(to.iter().take(written).eq(value.iter().take(written)));
            assert!(to.iter().skip(written).all(|&byte| byte == 0));
        }
    }
}
