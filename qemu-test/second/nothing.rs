// SPDX-License-Identifier: GPL-2.0

//! Objects of classes that the provider does not have. There are none.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::{
    fmt,
    prelude::*,
    str::CStr, //
};

use crate::kfi::{
    addr::FabricAddr,
    attr::AvType,
    context::Context,
    fid::{
        AnyFid,
        Fid,
        Object, //
    },
    linux::timeout::Timeout,
    provider::*, //
};

/// What there is not.
enum Never {}

/// An object of a class of which there are none.
pub(crate) struct Nothing<C>(Never, PhantomData<fn() -> C>);

/// Makes objects of classes.
macro_rules! objects {
    ($([$($generic:tt)*] $class:ty;)*) => {$(
        impl<$($generic)*> Object for Nothing<$class> {
            type Class = $class;

            fn release(&self) {
                match self.0 {}
            }
        }
    )*}
}

objects! {
    [] EventQueueClass;
    [] WaitSetClass;
    [] AddressVectorClass;
    [] CompletionQueueClass;
    [] PollSetClass;
    [const NUMBER: u32] EndpointClass<NUMBER>;
    [] SharedTransmitClass;
    [] MemoryRegionClass;
}

impl EventQueueOps for Nothing<EventQueueClass> {
    fn size(&self) -> usize {
        match self.0 {}
    }

    fn read(this: &Fid<Self>, _len: usize, _peek: bool) -> Result<Event> {
        match this.0 {}
    }

    fn readerr(&self, _peek: bool) -> Result<EventError> {
        match self.0 {}
    }

    fn write(this: &Fid<Self>, _event: &Event) -> Result {
        match this.0 {}
    }

    fn write_error(this: &Fid<Self>, _error: &EventError) -> Result {
        match this.0 {}
    }

    fn sread(this: &Fid<Self>, _len: usize, _peek: bool, _timeout: Timeout) -> Result<Event> {
        match this.0 {}
    }

    fn strerror(_prov_errno: c_int) -> &'static CStr {
        c""
    }
}

impl WaitSetOps for Nothing<WaitSetClass> {
    fn wait(this: &Fid<Self>, _timeout: Timeout) -> Result {
        match this.0 {}
    }
}

impl AddressVectorOps for Nothing<AddressVectorClass> {
    fn av_type(&self) -> AvType {
        match self.0 {}
    }

    fn insert(this: &Fid<Self>, _insertion: Insertion<'_>) -> Result<usize> {
        match this.0 {}
    }

    fn remove(&self, _addresses: FabricAddrs<'_>) -> Result {
        match self.0 {}
    }

    fn lookup(&self, _addr: FabricAddr, _found: impl FnOnce(&[u8])) -> Result {
        match self.0 {}
    }

    fn text(&self, _address: &[u8]) -> Option<impl fmt::Display> {
        None::<&str>
    }
}

impl CompletionQueueOps for Nothing<CompletionQueueClass> {
    fn size(&self) -> usize {
        match self.0 {}
    }

    fn read(this: &Fid<Self>, _buffer: &mut CompletionBuffer<'_>) -> Result {
        match this.0 {}
    }

    fn readerr(&self, _buffer: &mut ErrorBuffer<'_>) -> Result {
        match self.0 {}
    }

    fn sread(this: &Fid<Self>, _buffer: &mut CompletionBuffer<'_>, _timeout: Timeout) -> Result {
        match this.0 {}
    }

    fn signal(&self) -> Result {
        match self.0 {}
    }

    fn strerror(_prov_errno: c_int) -> &'static CStr {
        c""
    }

    fn write(this: &Fid<Self>, _entry: CompletionError) -> Result {
        match this.0 {}
    }

    fn write_unreserved(this: &Fid<Self>, _entry: CompletionError) {
        match this.0 {}
    }
}

impl PollSetOps for Nothing<PollSetClass> {
    fn poll(&self, _contexts: &mut Contexts<'_>) {
        match self.0 {}
    }

    fn add(this: &Fid<Self>, _member: AnyFid<'_>, _flags: u64) -> Result {
        match this.0 {}
    }

    fn del(this: &Fid<Self>, _member: AnyFid<'_>, _flags: u64) -> Result {
        match this.0 {}
    }
}

impl<const NUMBER: u32> EndpointOps for Nothing<EndpointClass<NUMBER>> {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, _operation: Operation<'_>) -> Result {
        match this.0 {}
    }

    fn cancel(&self, _context: Context) -> Result {
        match self.0 {}
    }
}

impl SharedTransmitOps for Nothing<SharedTransmitClass> {}

impl MemoryRegionOps for Nothing<MemoryRegionClass> {}
