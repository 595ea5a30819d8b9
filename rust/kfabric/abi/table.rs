// SPDX-License-Identifier: GPL-2.0

//! The table of registered providers: each is in it once at most.

use kernel::prelude::*;

use crate::abi::provider::{
    Candidate,
    Provider,
    ProviderId,
    Retired, //
};

/// A row of the table.
struct Row<T> {
    /// Which provider this is.
    id: ProviderId,
    /// The registration's reference, `None` while the provider is being deregistered.
    provider: Option<Provider>,
    /// The registry's note about it.
    note: T,
}

/// The registered providers and those that are being deregistered, with a note to each.
///
/// # Invariants
///
/// Every provider of which there are references has a row, and no provider has two.
pub(crate) struct Table<T>(KVec<Row<T>>);

impl<T> Table<T> {
    /// No providers.
    pub(crate) const fn new() -> Self {
        Self(KVec::new())
    }

    /// Returns the registered providers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Provider, &T)> {
        self.0
            .iter()
            .filter_map(|row| Some((row.provider.as_ref()?, &row.note)))
    }

    /// Returns the registered providers, to change the notes.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Provider, &mut T)> {
        self.0
            .iter_mut()
            .filter_map(|row| Some((row.provider.as_ref()?, &mut row.note)))
    }

    /// Returns whether a provider is registered or being deregistered.
    pub(crate) fn contains(&self, id: ProviderId) -> bool {
        self.0.iter().any(|row| row.id == id)
    }

    /// Registers a provider; `EEXIST` if it is in the table.
    ///
    /// Nothing is written to a provider that is refused.
    pub(crate) fn insert(&mut self, candidate: Candidate, note: T) -> Result {
        if self.contains(candidate.id()) {
            return Err(EEXIST);
        }
        let row = Row {
            id: candidate.id(),
            provider: None,
            note,
        };
        // INVARIANT: The provider has no other row.
        self.0.push(row, GFP_KERNEL)?;
        if let Some(row) = self.0.last_mut() {
            // SAFETY: The provider was not in the table, so there are no references to it by the
            // type invariants.
            row.provider = Some(unsafe { candidate.into_provider() });
        }
        Ok(())
    }

    /// Takes out the reference of a registered provider, to retire it; the row stays meanwhile.
    pub(crate) fn take(&mut self, id: ProviderId) -> Option<Provider> {
        self.0.iter_mut().find(|row| row.id == id)?.provider.take()
    }

    /// Forgets a provider that is retired.
    pub(crate) fn remove(&mut self, retired: Retired) {
        // INVARIANT: There are no references to it.
        self.0.retain(|row| row.id != retired.id());
    }
}
