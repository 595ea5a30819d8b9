// SPDX-License-Identifier: GPL-2.0

//! The answers of providers to kfi_getinfo, before consumers see them.

use kernel::prelude::*;

use crate::{
    abi::{
        info,
        provider::Provider, //
    },
    kfi::{
        bindings,
        info::Info, //
    }, //
};

/// Completes the chain that a provider has given; `None` if nothing is left of it.
///
/// An entry without attributes of the fabric cannot be opened and is dropped. The name of the
/// provider is filled in where it is missing, and with it the version; so is the version of the
/// API that the consumer was written for.
///
/// # Safety
///
/// `chain` must be null or a chain that the caller owns.
pub(crate) unsafe fn complete(
    chain: *mut bindings::kfi_info,
    provider: &Provider,
    api_version: u32,
) -> Result<Option<Info>> {
    let mut first = chain;
    // Where the pointer to the current entry is kept.
    let mut link = &raw mut first;
    loop {
        // SAFETY: `link` is `first`, or in an entry of the chain.
        let entry = unsafe { *link };
        if entry.is_null() {
            break;
        }
        // SAFETY: The chain is valid by the safety requirements, and owned.
        let attr = unsafe { (*entry).fabric_attr };
        if attr.is_null() {
            kernel::pr_warn_once!(
                "{}: an answer without attributes of the fabric\n",
                provider.name()
            );
            // SAFETY: As above; the entry is taken out of the chain, and freed.
            unsafe {
                *link = (*entry).next;
                info::free(entry);
            }
            continue;
        }
        // SAFETY: As above.
        if let Err(error) = unsafe { complete_attr(attr, provider, api_version) } {
            // SAFETY: As above; what is left of the chain is freed.
            drop(unsafe { Info::from_raw(first) });
            return Err(error);
        }
        // SAFETY: As above.
        link = unsafe { &raw mut (*entry).next };
    }
    // SAFETY: As above.
    Ok(unsafe { Info::from_raw(first) })
}

/// Fills in what the attributes of a fabric lack.
///
/// # Safety
///
/// `attr` must be valid and owned by the caller.
unsafe fn complete_attr(
    attr: *mut bindings::kfi_fabric_attr,
    provider: &Provider,
    api_version: u32,
) -> Result {
    // SAFETY: By the safety requirements.
    let attr = unsafe { &mut *attr };
    if attr.api_version == 0 {
        attr.api_version = api_version;
    }
    // SAFETY: A name is null or a text by the safety requirements.
    let named = unsafe { attr.prov_name.as_ref() }.is_some_and(|first| *first != 0);
    if !named {
        // SAFETY: The name of a provider is a text.
        let name = unsafe { info::copy_text(provider.name().as_char_ptr()) }?;
        // SAFETY: The old name is null or owned by the safety requirements.
        unsafe { bindings::kfree(attr.prov_name.cast()) };
        attr.prov_name = name;
        attr.prov_version = provider.version();
    }
    Ok(())
}
