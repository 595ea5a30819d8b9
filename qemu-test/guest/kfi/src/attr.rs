// SPDX-License-Identifier: GPL-2.0

//! Attributes of objects.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::flags::numbers;
use crate::object::Handle;
use crate::uapi;

numbers! {
    /// The kind of object that a waiting thread sleeps on.
    WaitObj {
        NONE = KFI_WAIT_NONE,
        UNSPEC = KFI_WAIT_UNSPEC,
        SET = KFI_WAIT_SET,
        QUEUE = KFI_WAIT_QUEUE,
    }
}

/// Attributes of a counter: by default one that can be waited for with
/// [`Counter::wait`](crate::Counter::wait) only (`KFI_WAIT_UNSPEC`).
#[derive(Clone, Copy, Debug)]
pub struct CntrAttr {
    pub(crate) no_attr: bool,
    pub(crate) events: u32,
    pub(crate) wait_obj: WaitObj,
    pub(crate) wait_set: Handle,
    pub(crate) flags: u64,
    pub(crate) context: u64,
}

impl CntrAttr {
    /// The default.
    pub fn new() -> Self {
        Self {
            no_attr: false,
            events: uapi::KFI_CNTR_EVENTS_COMP,
            wait_obj: WaitObj::UNSPEC,
            wait_set: 0,
            flags: 0,
            context: 0,
        }
    }

    /// No attributes: the provider is given NULL.
    pub fn null() -> Self {
        Self {
            no_attr: true,
            ..Self::new()
        }
    }

    /// The kind of object that a waiting thread sleeps on.
    #[must_use]
    pub fn wait_obj(self, wait_obj: WaitObj) -> Self {
        Self { wait_obj, ..self }
    }

    /// The wait set, by its handle.
    #[must_use]
    pub fn wait_set(self, wait_set: Handle) -> Self {
        Self { wait_set, ..self }
    }

    /// The events that are counted; only `KFI_CNTR_EVENTS_COMP` is defined.
    #[must_use]
    pub fn events(self, events: u32) -> Self {
        Self { events, ..self }
    }

    /// Flags; none is defined.
    #[must_use]
    pub fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }

    /// Context of the counter.
    #[must_use]
    pub fn context(self, context: u64) -> Self {
        Self { context, ..self }
    }
}

impl Default for CntrAttr {
    fn default() -> Self {
        Self::new()
    }
}
