// SPDX-License-Identifier: GPL-2.0

//! The objects that a session holds.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::consumer::{
    self,
    AddressVector,
    AnyObject,
    Buffer,
    Charge,
    Closable,
    CompletionQueue,
    Counter,
    Domain,
    Endpoint,
    EventQueue,
    Fabric,
    MemoryRegion,
    Multicast,
    Offers,
    PassiveEndpoint,
    PollSet,
    SharedTransmit,
    WaitSet, //
};

/// An answer of kfi_getinfo, and its part in the memory.
pub(crate) struct Answer {
    offers: Offers,
    _charge: Charge,
}

impl Answer {
    /// Keeps an answer.
    pub(crate) fn new(offers: Offers, charge: Charge) -> Self {
        Self {
            offers,
            _charge: charge,
        }
    }
}

impl core::ops::Deref for Answer {
    type Target = Offers;

    fn deref(&self) -> &Offers {
        &self.offers
    }
}

/// An object of any class.
#[derive(Clone)]
pub(crate) enum Object {
    /// An answer of kfi_getinfo.
    Answer(Arc<Answer>),
    /// A fabric.
    Fabric(Arc<Fabric>),
    /// A domain.
    Domain(Arc<Domain>),
    /// A counter.
    Counter(Arc<Counter>),
    /// A completion queue.
    CompletionQueue(Arc<CompletionQueue>),
    /// An event queue.
    EventQueue(Arc<EventQueue>),
    /// A wait set.
    WaitSet(Arc<WaitSet>),
    /// A poll set.
    PollSet(Arc<PollSet>),
    /// A buffer.
    Buffer(Arc<Buffer>),
    /// An address vector.
    AddressVector(Arc<AddressVector>),
    /// A memory region.
    MemoryRegion(Arc<MemoryRegion>),
    /// An endpoint, an alias, or a context.
    Endpoint(Arc<Endpoint>),
    /// A passive endpoint.
    PassiveEndpoint(Arc<PassiveEndpoint>),
    /// A transmit context that is shared.
    SharedTransmit(Arc<SharedTransmit>),
    /// A multicast group.
    Multicast(Arc<Multicast>),
}

/// A class of objects.
pub(crate) trait Class: Sized {
    /// Puts an object of the class among those of any class.
    fn into_object(this: Arc<Self>) -> Object;

    /// Returns the object if it is of the class.
    fn from_object(object: &Object) -> Option<&Arc<Self>>;
}

/// Puts classes among objects of any class.
macro_rules! classes {
    ($($class:ident),*) => {$(
        impl Class for $class {
            fn into_object(this: Arc<Self>) -> Object {
                Object::$class(this)
            }

            fn from_object(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$class(this) => Some(this),
                    _ => None,
                }
            }
        }
    )*}
}

classes!(
    Answer,
    Fabric,
    Domain,
    Counter,
    CompletionQueue,
    EventQueue,
    WaitSet,
    PollSet,
    Buffer,
    AddressVector,
    MemoryRegion,
    Endpoint,
    PassiveEndpoint,
    SharedTransmit,
    Multicast
);

/// Closes an object of a class; gives it back when kfabric refuses.
fn close<T: Closable + Class + Unpin>(object: Arc<T>) -> core::result::Result<(), (Object, Error)> {
    // If another thread has it too, the last one closes it by dropping it.
    let Some(object) = Arc::into_unique_or_drop(object) else {
        return Ok(());
    };
    consumer::close(Pin::into_inner(object))
        .map_err(|(object, error)| (T::into_object(object.into()), error))
}

/// Does the same with an object of any class of kfabric; something else with what kfabric does not
/// know.
macro_rules! for_object {
    ($object:expr, $this:ident => $do:expr, $other:expr) => {
        match $object {
            Object::Answer(_) | Object::Buffer(_) => $other,
            Object::Fabric($this) => $do,
            Object::Domain($this) => $do,
            Object::Counter($this) => $do,
            Object::CompletionQueue($this) => $do,
            Object::EventQueue($this) => $do,
            Object::WaitSet($this) => $do,
            Object::PollSet($this) => $do,
            Object::AddressVector($this) => $do,
            Object::MemoryRegion($this) => $do,
            Object::Endpoint($this) => $do,
            Object::PassiveEndpoint($this) => $do,
            Object::SharedTransmit($this) => $do,
            Object::Multicast($this) => $do,
        }
    };
}
pub(crate) use for_object;

impl Object {
    /// Closes the object; gives it back when kfabric refuses.
    pub(crate) fn close(self) -> core::result::Result<(), (Self, Error)> {
        for_object!(self, object => close(object), {
            drop(self);
            Ok(())
        })
    }

    /// Returns the object as kfabric knows it; none for an answer of kfi_getinfo or a buffer.
    pub(crate) fn any(&self) -> Option<AnyObject<'_>> {
        for_object!(self, object => Some(object.any()), None)
    }

    /// Returns whether it is a memory region, which may be bound to an endpoint.
    pub(crate) fn is_memory_region(&self) -> bool {
        matches!(self, Self::MemoryRegion(_))
    }

    /// Returns whether it posts operations.
    pub(crate) fn is_endpoint(&self) -> bool {
        matches!(self, Self::Endpoint(_) | Self::PassiveEndpoint(_))
    }
}
