// SPDX-License-Identifier: GPL-2.0

//! Finding and pinning the module that a function belongs to.
//!
//! The ABI of kfabric has no owner field, and the kernel does not let modules look up an address.
//! But whoever uses an exported symbol of this module is loaded after it, so a notifier sees them
//! all come and go.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h).

use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    prelude::*,
    sync::{
        new_mutex,
        Mutex, //
    },
    types::Opaque, //
};

use super::{
    bindings,
    errno::to_result, //
};

/// A module that cannot be unloaded meanwhile.
///
/// # Invariants
///
/// The pointer is to a module of which this owns one reference.
pub(crate) struct ModulePin(NonNull<bindings::module>);

// SAFETY: References to modules may be dropped by any thread.
unsafe impl Send for ModulePin {}
// SAFETY: There is nothing to do with a shared pin.
unsafe impl Sync for ModulePin {}

impl Drop for ModulePin {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::module_put(self.0.as_ptr()) };
    }
}

struct State {
    /// The modules that have come and not gone.
    modules: KVec<NonNull<bindings::module>>,
    /// A module is missing in `modules` for lack of memory.
    incomplete: bool,
}

// SAFETY: The pointers are used under the lock only.
unsafe impl Send for State {}

/// The modules that were loaded after this one, and this one.
///
/// # Invariants
///
/// - `notifier` is registered.
/// - The modules in `state` have been announced as coming and not yet as going.
#[pin_data(PinnedDrop)]
pub(crate) struct Modules {
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The notifier is used by the kernel only.
unsafe impl Send for Modules {}
// SAFETY: As above.
unsafe impl Sync for Modules {}

impl Modules {
    /// Begins to watch modules.
    pub(crate) fn new(this_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- {
                let mut modules = KVec::new();
                // INVARIANT: This module goes when its users, of which this is one, are gone.
                if let Some(module) = NonNull::new(this_module.as_ptr()) {
                    modules.push(module, GFP_KERNEL)?;
                }
                new_mutex!(State { modules, incomplete: false }, "kfi::Modules::state")
            },
            _pin: PhantomPinned,
            // Last, since it may be called from here on.
            // INVARIANT: Registered, or there is no `Modules`.
            notifier <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                let notifier = bindings::notifier_block {
                    notifier_call: Some(Self::notifier_callback),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(notifier) };
                // SAFETY: `slot` is initialised, pinned, and stays until it is unregistered.
                to_result(unsafe { bindings::register_module_notifier(slot) })
            }),
        })
    }

    /// Pins the module that `function` belongs to.
    ///
    /// `None` if it belongs to the kernel itself, which does not go. Fails with `ENOENT` if the
    /// module is about to go, with `ENOMEM` if it is unknown for lack of memory. May sleep.
    pub(crate) fn pin(&self, function: *const ()) -> Result<Option<ModulePin>> {
        let state = self.state.lock();
        for &module in &state.modules {
            // SAFETY: By the type invariants the module has not gone, and it cannot while the lock
            // is held, as its going is announced under the lock.
            let inside = unsafe { bindings::within_module(function.addr(), module.as_ptr()) };
            if !inside {
                continue;
            }
            // SAFETY: As above.
            if !unsafe { bindings::try_module_get(module.as_ptr()) } {
                return Err(ENOENT);
            }
            // INVARIANT: `try_module_get` took the reference.
            return Ok(Some(ModulePin(module)));
        }
        if state.incomplete {
            return Err(ENOMEM);
        }
        Ok(None)
    }

    /// # Safety
    ///
    /// `notifier` must be the notifier of a registered `Modules`, `data` a module.
    unsafe extern "C" fn notifier_callback(
        notifier: *mut bindings::notifier_block,
        action: c_ulong,
        data: *mut c_void,
    ) -> c_int {
        let notifier: *const Opaque<bindings::notifier_block> = Opaque::cast_from(notifier);
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(notifier, Self, notifier) };
        let Some(module) = NonNull::new(data.cast::<bindings::module>()) else {
            return bindings::NOTIFY_DONE.cast_signed();
        };
        let mut state = this.state.lock();
        match u32::try_from(action) {
            Ok(bindings::module_state_MODULE_STATE_COMING) => {
                // INVARIANT: It is coming.
                if state.modules.push(module, GFP_KERNEL).is_err() {
                    state.incomplete = true;
                }
            }
            // INVARIANT: What goes is removed.
            Ok(bindings::module_state_MODULE_STATE_GOING) => {
                state.modules.retain(|other| *other != module);
            }
            _ => (),
        }
        bindings::NOTIFY_OK.cast_signed()
    }
}

#[pinned_drop]
impl PinnedDrop for Modules {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariants. It waits for callbacks that are running.
        unsafe { bindings::unregister_module_notifier(self.notifier.get()) };
    }
}
