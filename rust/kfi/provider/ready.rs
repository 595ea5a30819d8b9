// SPDX-License-Identifier: GPL-2.0

//! Objects that a provider made of software can have as they are: for its domain `D`, the associated
//! types in [`DomainOps`](super::DomainOps) name them, and their `new` opens them. Beside these are
//! parts for the provider's own endpoints: [`Limits`], [`Binds`] and [`InFlight`]; and [`Offer`], its
//! answer to kfi_getinfo.
//!
//! A provider that wants more than one of them does takes the parts that it is made of.

mod address_vector;
mod binds;
mod completion_queue;
mod counter;
mod in_flight;
mod limits;
mod offer;

pub use address_vector::AddressVector;
pub use binds::Binds;
pub use completion_queue::CompletionQueue;
pub use counter::Counter;
pub use in_flight::InFlight;
pub use limits::Limits;
pub use offer::Offer;

#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
mod tests {
    use super::{
        AddressVector,
        CompletionQueue,
        Counter, //
    };
    use crate::kfi::{
        addr::AddressFormat,
        context::Context,
        fid::{
            Object,
            TestFid, //
        },
        memory::{
            SourceBuffers,
            TargetBuffers, //
        },
        provider::*, //
    };
    use core::{
        num::NonZeroU64,
        ptr, //
    };
    use kernel::prelude::*;

    /// A domain that opens nothing.
    pub(super) struct Domain;

    impl Object for Domain {
        type Class = DomainClass;

        fn release(&self) {}
    }

    impl DomainOps for Domain {
        const ADDRESS_FORMAT: AddressFormat = AddressFormat::Cxi;

        type AddressVector = AddressVector<Self, NonZeroU64>;
        type Counter = Counter<Self>;
        type CompletionQueue = CompletionQueue<Self>;
        type PollSet = Absent<PollSetClass>;
        type Endpoint = Absent<PlainClass>;
        type ScalableEndpoint = Absent<ScalableClass>;
        type SharedTransmitContext = Absent<SharedTransmitClass>;
        type SharedReceiveContext = Absent<SharedReceiveClass>;
        type MemoryRegion = Absent<MemoryRegionClass>;
    }

    /// Opens a domain.
    pub(super) fn domain() -> Result<TestFid<Domain>> {
        TestFid::open(Domain, Context::NONE)
    }

    /// A send of these bytes.
    pub(super) fn send(from: &[u8]) -> Operation<'_> {
        // SAFETY: The tests keep what they send until it has ended.
        let buffers = unsafe { SourceBuffers::one(from.as_ptr().cast(), from.len()) };
        Operation::new(Kind::Send, buffers, 0, ptr::null_mut())
    }

    /// A receive into these bytes.
    pub(super) fn receive(to: &mut [u8]) -> Operation<'_> {
        // SAFETY: As above.
        let buffers = unsafe { TargetBuffers::one(to.as_mut_ptr().cast(), to.len()) };
        Operation::new(Kind::Receive, buffers, 0, ptr::null_mut())
    }
}
