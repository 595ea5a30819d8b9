// SPDX-License-Identifier: GPL-2.0

//! The registered providers.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        new_mutex,
        Mutex, //
    }, //
};

use crate::{
    abi_provider::{
        Provider,
        ProviderId,
        RawQuery, //
    },
    kfi::{
        info::Info,
        modules::Modules,
        provider::KFI_VERSION, //
    }, //
};

/// The registered providers, in the order of their registration.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    providers: Mutex<KVec<Provider>>,
}

impl Registry {
    /// No providers.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            providers <- new_mutex!(KVec::new(), "kfabric::Registry"),
        })
    }

    /// Registers a provider.
    ///
    /// `ENOSYS` if it was written for a later version of the API, `EEXIST` if there is one of its
    /// name.
    pub(crate) fn register(&self, provider: Provider) -> Result {
        if provider.api_version() > KFI_VERSION {
            return Err(ENOSYS);
        }
        let mut providers = self.providers.lock();
        if providers.iter().any(|other| other.name() == provider.name()) {
            return Err(EEXIST);
        }
        providers.push(provider, GFP_KERNEL)?;
        Ok(())
    }

    /// Removes a provider and waits until nobody uses it; `EINVAL` if it is not registered.
    pub(crate) fn deregister(&self, id: ProviderId) -> Result {
        let provider = {
            let mut providers = self.providers.lock();
            let at = providers.iter().position(|provider| provider.id() == id);
            providers.remove(at.ok_or(EINVAL)?).map_err(|_| EINVAL)?
        };
        // Outside of the lock: it waits for callbacks, which may call the core.
        provider.retire();
        Ok(())
    }

    /// Finds the provider of a name.
    pub(crate) fn find(&self, name: &CStr) -> Option<Provider> {
        let providers = self.providers.lock();
        let provider = providers.iter().find(|provider| provider.name() == name)?;
        Some(provider.clone())
    }

    /// Returns all providers.
    fn all(&self) -> Result<KVec<Provider>> {
        let providers = self.providers.lock();
        let mut all = KVec::with_capacity(providers.len(), GFP_KERNEL)?;
        for provider in &*providers {
            all.push(provider.clone(), GFP_KERNEL)?;
        }
        Ok(all)
    }

    /// Asks all providers, or the one of a name, and returns their answers in the order of
    /// registration.
    ///
    /// Who fails hides nobody else's answer. If there is no answer, `ENODATA` if any provider said
    /// so or there is none, else what the first one said.
    pub(crate) fn getinfo(
        &self,
        modules: &Modules,
        name: Option<&CStr>,
        query: RawQuery,
    ) -> Result<Info> {
        let mut answer: Option<Info> = None;
        let mut error = None;
        for provider in self.all()? {
            if name.is_some_and(|name| name != provider.name()) {
                continue;
            }
            match (provider.getinfo(modules, query), &mut answer) {
                (Ok(Some(info)), Some(answer)) => answer.append(info),
                (Ok(Some(info)), None) => answer = Some(info),
                (Ok(None), _) => error = Some(ENODATA),
                (Err(other), _) => {
                    if error.is_none() || other == ENODATA {
                        error = Some(other);
                    }
                }
            }
        }
        answer.ok_or(error.unwrap_or(ENODATA))
    }
}
