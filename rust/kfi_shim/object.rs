// SPDX-License-Identifier: GPL-2.0

//! The objects that a session holds.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    consumer::{
        self,
        AnyObject,
        Closable,
        CompletionQueue,
        Counter,
        Domain,
        EventQueue,
        Fabric,
        PollSet,
        WaitSet, //
    },
    info::Info, //
};

/// An object of any class.
#[derive(Clone)]
pub(crate) enum Object {
    /// An answer of kfi_getinfo.
    Info(Arc<Info>),
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
    Info,
    Fabric,
    Domain,
    Counter,
    CompletionQueue,
    EventQueue,
    WaitSet,
    PollSet
);

/// Closes an object of a class; gives it back when kfabric refuses.
fn close<T: Closable + Class + Unpin>(object: Arc<T>) -> core::result::Result<(), (Object, Error)> {
    // Nobody else has it, or the last one closes it when it is dropped.
    let Some(object) = Arc::into_unique_or_drop(object) else {
        return Ok(());
    };
    consumer::close(Pin::into_inner(object))
        .map_err(|(object, error)| (T::into_object(object.into()), error))
}

impl Object {
    /// Closes the object; gives it back when kfabric refuses.
    pub(crate) fn close(self) -> core::result::Result<(), (Self, Error)> {
        match self {
            Self::Info(info) => {
                drop(info);
                Ok(())
            }
            Self::Fabric(fabric) => close(fabric),
            Self::Domain(domain) => close(domain),
            Self::Counter(counter) => close(counter),
            Self::CompletionQueue(queue) => close(queue),
            Self::EventQueue(queue) => close(queue),
            Self::WaitSet(set) => close(set),
            Self::PollSet(set) => close(set),
        }
    }

    /// Returns the object as kfabric knows it; none for an answer of kfi_getinfo.
    pub(crate) fn any(&self) -> Option<AnyObject<'_>> {
        match self {
            Self::Info(_) => None,
            Self::Fabric(fabric) => Some(fabric.any()),
            Self::Domain(domain) => Some(domain.any()),
            Self::Counter(counter) => Some(counter.any()),
            Self::CompletionQueue(queue) => Some(queue.any()),
            Self::EventQueue(queue) => Some(queue.any()),
            Self::WaitSet(set) => Some(set.any()),
            Self::PollSet(set) => Some(set.any()),
        }
    }
}
