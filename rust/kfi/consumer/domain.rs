// SPDX-License-Identifier: GPL-2.0

//! Domains.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::Arc, //
};

use super::{
    contexts::{
        Contexts,
        Owner,
        OwnerId, //
    },
    deferred_work::Works,
    endpoint::op_flags,
    object::{
        object,
        AnyObject,
        Closable,
        Ending,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    Fabric,
    Offer, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    info::InfoRef,
    wait_obj::WaitObj, //
};

object! {
    /// An open domain as C knows it.
    DomainObject(kfid_domain, Domain)
}

/// An open domain, with the deferred work that may be queued on it.
pub struct Domain {
    domain: DomainObject,
    /// The owner of its deferred work, with the contexts of operations. Kept until the domain is
    /// closed.
    owner: Arc<Owner>,
    /// The name of its provider.
    provider: CString,
    /// Kept until the domain is closed.
    pub(super) works: Arc<Works>,
}

impl core::ops::Deref for Domain {
    type Target = DomainObject;

    fn deref(&self) -> &DomainObject {
        &self.domain
    }
}

impl Closable for Domain {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.domain.close_with(permit)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if !self.domain.end() {
            // The provider may still use the requests.
            core::mem::forget((self.works.clone(), self.owner.clone()));
        }
    }
}

impl Domain {
    /// Opens the domain that a provider offers; `EINVAL` for that of another provider, `EOPNOTSUPP` if
    /// its objects are not for several threads at a time, as ours may be used, or if that demands what
    /// this consumer cannot give, whatever is asked of its endpoints. `contexts` are those of all
    /// operations on it.
    ///
    /// What is demanded of the consumer of its endpoints is believed to stand in the offer, whichever
    /// entry these are opened with.
    ///
    /// May sleep.
    pub fn open(
        fabric: &Fabric,
        offer: Offer<'_>,
        context: Context,
        contexts: &Arc<Contexts>,
    ) -> Result<Self> {
        // As the provider has answered it, by functions that are there.
        let info: InfoRef<'_> = *offer;
        op_flags(info)?;
        if info.prov_name() != Some(fabric.provider()) {
            return Err(EINVAL);
        }
        if !info.is_thread_safe() {
            return Err(EOPNOTSUPP);
        }
        let provider = CString::try_from(fabric.provider())?;
        // Before the domain, which could not be closed without.
        let works = Works::new(contexts.quota())?;
        let owner = Arc::new(Contexts::owner(contexts)?, GFP_KERNEL_ACCOUNT)?;
        let mut domain = ptr::null_mut();
        // SAFETY: `fabric` is open, `info` is valid; the provider only reads it.
        to_result(unsafe {
            bindings::kfi_domain(
                fabric.as_raw(),
                info.as_raw(),
                &mut domain,
                context.as_raw(),
            )
        })?;
        let domain = NonNull::new(domain).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            domain: unsafe { DomainObject::new(domain, fabric.lineage().with_domain(domain)) },
            owner,
            provider,
            works,
        })
    }

    /// Returns the owner of its deferred work.
    pub(super) fn owner(&self) -> OwnerId {
        self.owner.id()
    }

    /// Returns the contexts of operations.
    pub(super) fn contexts(&self) -> &Arc<Contexts> {
        self.owner.contexts()
    }

    /// Returns the name of its provider.
    pub fn provider(&self) -> &CStr {
        &self.provider
    }
}

impl InfoRef<'_> {
    /// Returns whether threads may use the objects of the domain at the same time: the provider has
    /// said so, or has not said anything.
    fn is_thread_safe(self) -> bool {
        let safe = [bindings::KFI_THREAD_SAFE, bindings::KFI_THREAD_UNSPEC];
        self.domain_attr()
            .is_none_or(|attr| safe.contains(&attr.threading))
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_info)]
mod tests {
    use super::*;
    use crate::kfi::info::Info;

    #[test]
    fn only_what_is_safe_is_for_several_threads() -> Result {
        for threading in 0..=bindings::KFI_THREAD_ENDPOINT + 1 {
            let mut info = Info::new()?;
            info.first_mut().domain_attr()?.threading(threading);
            let safe = matches!(
                threading,
                bindings::KFI_THREAD_SAFE | bindings::KFI_THREAD_UNSPEC
            );
            assert_eq!(info.first().is_thread_safe(), safe);
        }
        Ok(())
    }
}
