// SPDX-License-Identifier: GPL-2.0

//! The offers of providers.

use core::ops::Deref;
use kernel::prelude::*;

use crate::kfi::{
    bindings,
    info::{
        Info,
        InfoRef, //
    }, //
};

/// The offers of providers: a chain of at least one entry.
///
/// What a provider demands of its consumer stands in its entry, where [`Domain::open`] looks for it. So
/// nothing changes that. What a consumer wants to have otherwise it says in its hints, or in
/// [a copy](Offer::to_info) with which it opens an endpoint.
///
/// [`Domain::open`]: super::Domain::open
///
/// # Invariants
///
/// The entries are as a provider has answered them, but that they name no open objects.
pub struct Offers(Info);

impl Offers {
    /// Takes an answer.
    ///
    /// # Safety
    ///
    /// `info` must be what kfi_getinfo has answered, but for the open objects, which it must not name.
    pub(super) unsafe fn new(info: Info) -> Self {
        // INVARIANT: By the safety requirements.
        Self(info)
    }

    /// Returns the offers, the best one first.
    pub fn iter(&self) -> impl Iterator<Item = Offer<'_>> {
        // INVARIANT: The entry is one of the chain.
        self.0.iter().map(Offer)
    }

    /// Returns the best offer.
    #[allow(dead_code, reason = "programs say which one they want")]
    pub fn first(&self) -> Offer<'_> {
        // INVARIANT: The entry is one of the chain.
        Offer(self.0.first())
    }
}

/// The offer of a provider.
///
/// # Invariants
///
/// The entry is as the provider has answered it, but that it names no open objects.
#[derive(Clone, Copy)]
pub struct Offer<'a>(InfoRef<'a>);

impl<'a> Deref for Offer<'a> {
    type Target = InfoRef<'a>;

    fn deref(&self) -> &InfoRef<'a> {
        &self.0
    }
}

impl Offer<'_> {
    /// Copies the entry, to be changed: for hints, or to open an endpoint with. May sleep.
    #[allow(dead_code, reason = "programs change copies of their own")]
    pub fn to_info(self) -> Result<Info> {
        // SAFETY: The entry is valid.
        let copy = unsafe { bindings::kfi_dupinfo(self.0.as_raw()) };
        // SAFETY: The caller owns the copy.
        unsafe { Info::from_raw(copy) }.ok_or(ENOMEM)
    }
}
