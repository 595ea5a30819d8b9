// SPDX-License-Identifier: GPL-2.0

//! Finding and pinning the module that a function belongs to.
//!
//! An ABI may have no owner field, and the kernel does not let modules look up an address.
//! But a module that uses an exported symbol of this one is loaded after it, so a notifier sees
//! them all come and go. Modules that were there before stay unknown: they can have found the
//! symbol at run time only (`symbol_get()`), and nothing of theirs can be pinned.
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
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Mutex, //
    },
    types::Opaque, //
};

use super::bindings;
use super::live::Findable;
use kernel::error::to_result;

/// A module that cannot be unloaded meanwhile, but may not be live yet.
///
/// # Invariants
///
/// The pointer is to a module that stays, and of which this owns one reference.
pub struct ModulePin(NonNull<bindings::module>);

/// A live module, which cannot be unloaded meanwhile.
pub struct LivePin {
    _pin: ModulePin,
}

// SAFETY: References to modules may be dropped by any thread.
unsafe impl Send for ModulePin {}
// SAFETY: Threads that share a pin only read the state of the module, atomically.
unsafe impl Sync for ModulePin {}

impl ModulePin {
    /// Keeps the module for as long as it takes, if its init has succeeded; `None` if it has not.
    pub fn into_live(self) -> Option<LivePin> {
        // SAFETY: The module stays by the type invariants.
        let state = unsafe { &raw mut (*self.0.as_ptr()).state };
        // Relaxed: nothing that the module has written is read because of it.
        // SAFETY: As above. The kernel writes the state in one piece.
        let state = unsafe { Atomic::from_ptr(state) }.load(ordering::Relaxed);
        (state == bindings::module_state_MODULE_STATE_LIVE).then_some(LivePin { _pin: self })
    }
}

impl Drop for ModulePin {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::module_put(self.0.as_ptr()) };
    }
}

/// Identifies a module, whether it is there any more or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ModuleId(usize);

/// The modules that are known.
///
/// # Invariants
///
/// They have been announced as coming and not yet as going.
struct Known(KVec<NonNull<bindings::module>>);

// SAFETY: The pointers are to modules, which belong to no thread.
unsafe impl Send for Known {}

impl Known {
    /// Finds the module that a function belongs to.
    fn find(&self, function: *const ()) -> Option<NonNull<bindings::module>> {
        self.0
            .iter()
            .copied()
            // SAFETY: By the type invariants the module has not gone, and it cannot while this is
            // borrowed, as its going is announced and changes this before.
            .find(|module| unsafe { bindings::within_module(function.addr(), module.as_ptr()) })
    }
}

/// The modules that were loaded after this one, and this one.
///
/// # Invariants
///
/// `notifier` is registered.
#[pin_data(PinnedDrop)]
pub struct Modules {
    /// Tells about modules that come and go.
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    /// The modules, behind the lock.
    #[pin]
    known: Mutex<Known>,
    /// The notifier is in a list of the kernel.
    #[pin]
    _pin: PhantomPinned,
    /// Dropped last: it names code of this module.
    _findable: Findable,
}

// SAFETY: The notifier is used by the kernel only.
unsafe impl Send for Modules {}
// SAFETY: As above.
unsafe impl Sync for Modules {}

impl Modules {
    /// Begins to watch modules.
    pub fn new(this_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _findable: Findable::new()?,
            known <- {
                let mut modules = KVec::new();
                // INVARIANT: This module goes when its users, of which this is one, are gone.
                if let Some(module) = NonNull::new(this_module.as_ptr()) {
                    modules.push(module, GFP_KERNEL)?;
                }
                new_mutex!(Known(modules), "Modules::known")
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

    /// Returns which module `function` belongs to, `None` if that is unknown.
    ///
    /// May sleep.
    pub fn find(&self, function: *const ()) -> Option<ModuleId> {
        let module = self.known.lock().find(function)?;
        Some(ModuleId(module.addr().get()))
    }

    /// Pins the module that `function` belongs to.
    ///
    /// `None` if the module is about to go or unknown. May sleep.
    ///
    /// # Safety
    ///
    /// A module whose init fails is freed, even if it is pinned: if it is not live yet, the pin
    /// must be dropped or [`ModulePin::into_live`] before its init, if it fails, has ended.
    pub unsafe fn pin(&self, function: *const ()) -> Option<ModulePin> {
        let known = self.known.lock();
        let module = known.find(function)?;
        // SAFETY: The module cannot go while the lock is held, see `Known::find`.
        let pinned = unsafe { bindings::try_module_get(module.as_ptr()) };
        // INVARIANT: `try_module_get` took the reference. A module that is live stays for that; one
        // that is not stays by the safety requirements.
        pinned.then(|| ModulePin(module))
    }

    /// Keeps the known modules up to date.
    ///
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
        let mut known = this.known.lock();
        let answer = match u32::try_from(action) {
            // INVARIANT: It is coming.
            Ok(bindings::module_state_MODULE_STATE_COMING) => {
                match known.0.push(module, GFP_KERNEL) {
                    Ok(()) => bindings::NOTIFY_OK,
                    // As notifier_from_errno() makes it. The module is not loaded, and its going
                    // is not announced to us.
                    Err(_) => bindings::NOTIFY_STOP_MASK | (bindings::NOTIFY_OK + bindings::ENOMEM),
                }
            }
            // INVARIANT: A module that goes is removed.
            Ok(bindings::module_state_MODULE_STATE_GOING) => {
                known.0.retain(|other| *other != module);
                bindings::NOTIFY_OK
            }
            _ => bindings::NOTIFY_DONE,
        };
        answer.cast_signed()
    }
}

#[pinned_drop]
impl PinnedDrop for Modules {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariants. It waits for callbacks that are running.
        unsafe { bindings::unregister_module_notifier(self.notifier.get()) };
    }
}
