// SPDX-License-Identifier: GPL-2.0

//! Classes of which a provider has no objects.

use core::marker::PhantomData;
use kernel::prelude::*;

use super::{
    AddressVectorClass,
    AddressVectorOps,
    CompletionBuffer,
    CompletionQueueClass,
    CompletionQueueOps,
    CounterClass,
    CounterOps,
    EndpointClass,
    EndpointOps,
    ErrorBuffer,
    Event,
    EventError,
    EventQueueClass,
    EventQueueOps,
    Insertion,
    MemoryRegionClass,
    MemoryRegionOps,
    NoReceiveContext,
    NoTransmitContext,
    Operation,
    PollBuffer,
    PollSetClass,
    PollSetOps,
    SharedTransmitClass,
    SharedTransmitOps,
    WaitSetClass,
    WaitSetOps, //
};
use crate::kfi::{
    attr::AvType,
    fid::{
        AnyFid,
        Fid,
        Object, //
    },
    linux::{
        timeout::Timeout,
        wait_queue::WaitQueue, //
    },
    tally::Tally, //
};

/// No value at all.
enum Never {}

/// An object of a class of which the provider has none: there is no such object.
///
/// It is the associated type for such a class in [`FabricOps`] and [`DomainOps`], whose calls that
/// open objects answer `ENOSYS` where a provider does not define them.
///
/// [`FabricOps`]: super::FabricOps
/// [`DomainOps`]: super::DomainOps
pub struct Absent<C>(Never, PhantomData<fn() -> C>);

impl<C> Absent<C> {
    /// Stands for any result of an object that cannot exist.
    pub(super) fn never(&self) -> ! {
        match self.0 {}
    }
}

/// Makes [`Absent`] an object of each of these classes.
macro_rules! absent {
    ($([$($generic:tt)*] $class:ty;)*) => {$(
        impl<$($generic)*> Object for Absent<$class> {
            type Class = $class;

            fn release(&self) {
                self.never()
            }
        }
    )*}
}

absent! {
    [] AddressVectorClass;
    [] CompletionQueueClass;
    [] CounterClass;
    [const NUMBER: u32] EndpointClass<NUMBER>;
    [] EventQueueClass;
    [] MemoryRegionClass;
    [] PollSetClass;
    [] SharedTransmitClass;
    [] WaitSetClass;
}

impl AddressVectorOps for Absent<AddressVectorClass> {
    fn av_type(&self) -> AvType {
        self.never()
    }

    fn insert(this: &Fid<Self>, _insertion: Insertion<'_>) -> Result<usize> {
        this.never()
    }
}

impl CompletionQueueOps for Absent<CompletionQueueClass> {
    fn size(&self) -> usize {
        self.never()
    }

    fn read(this: &Fid<Self>, _buffer: &mut CompletionBuffer<'_>) -> Result {
        this.never()
    }

    fn readerr(&self, _buffer: &mut ErrorBuffer<'_>) -> Result {
        self.never()
    }
}

impl CounterOps for Absent<CounterClass> {
    fn read(&self) -> u64 {
        self.never()
    }

    fn readerr(&self) -> u64 {
        self.never()
    }

    fn tally(&self) -> &Tally {
        self.never()
    }

    fn reached(&self, _value: u64, _sum: u64, _events: u64) {
        self.never()
    }

    fn add_locked(&self, _value: u64) {
        self.never()
    }
}

impl<const NUMBER: u32> EndpointOps for Absent<EndpointClass<NUMBER>> {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, _operation: Operation<'_>) -> Result {
        this.never()
    }
}

impl EventQueueOps for Absent<EventQueueClass> {
    fn size(&self) -> usize {
        self.never()
    }

    fn read(this: &Fid<Self>, _len: usize, _peek: bool) -> Result<Event> {
        this.never()
    }

    fn readerr(&self, _peek: bool) -> Result<EventError> {
        self.never()
    }
}

impl MemoryRegionOps for Absent<MemoryRegionClass> {}

impl PollSetOps for Absent<PollSetClass> {
    fn poll(&self, _contexts: &mut PollBuffer<'_>) {
        self.never()
    }

    fn add(this: &Fid<Self>, _member: AnyFid<'_>, _flags: u64) -> Result {
        this.never()
    }

    fn del(this: &Fid<Self>, _member: AnyFid<'_>, _flags: u64) -> Result {
        this.never()
    }
}

impl SharedTransmitOps for Absent<SharedTransmitClass> {}

impl WaitSetOps for Absent<WaitSetClass> {
    fn wait(this: &Fid<Self>, _timeout: Timeout) -> Result {
        this.never()
    }

    fn wait_queue(&self) -> Result<&WaitQueue> {
        self.never()
    }
}
