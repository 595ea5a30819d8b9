// SPDX-License-Identifier: GPL-2.0

//! The users whose domains a node has, and what each takes of what all of them share.
//!
//! A domain is that of the real user who has opened it. Consumers in the kernel are users as well: mostly
//! root.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

use crate::{
    kfi::linux::{
        registry::{
            Registered,
            Registry, //
        },
        user, //
    },
    sum::Sum, //
};

/// The users who have domains, by their numbers, with [`Owner::unreached`] of each.
pub(crate) struct Owners(Arc<Registry<u32, Sum>>);

impl Owners {
    /// None.
    pub(crate) fn new() -> Result<Self> {
        Registry::new(c"kfi_soft::Owners", static_lock_class!()).map(Self)
    }

    /// Notes a domain of the current task's user. May sleep.
    pub(crate) fn current(&self) -> Result<Owner> {
        self.0
            .get(user::current().into_raw().val, Sum::new()?)
            .map(Owner)
    }
}

/// The user of a domain.
pub(crate) struct Owner(Registered<u32, Sum>);

impl Owner {
    /// Returns how many associations there are that were made for requests of the user, and that never had a
    /// connection.
    pub(crate) fn unreached(&self) -> &Sum {
        self.0.value()
    }
}
