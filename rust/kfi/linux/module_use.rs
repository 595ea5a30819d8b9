// SPDX-License-Identifier: GPL-2.0

//! Uses of this module, beside those that the kernel counts itself.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h).

use kernel::{
    module::this_module,
    prelude::*, //
};

use super::{
    bindings,
    live::Findable, //
};

/// A use of this module. As long as there is one the kernel refuses to unload the module, at once, instead of having
/// its end wait.
///
/// # Invariants
///
/// It owns a reference of this module.
pub struct ModuleUse {
    /// Dropped last: the code that drops the reference stays until that has been done.
    _findable: Findable,
}

impl ModuleUse {
    /// One more; `ENODEV` if the module is going, or is not [`Rooted`](super::live::Rooted). From any context.
    pub fn new() -> Result<Self> {
        let findable = Findable::new()?;
        let module = this_module::<crate::LocalModule>().as_ptr();
        // SAFETY: The module stays, as it has a `Findable`.
        if !unsafe { bindings::try_module_get(module) } {
            return Err(ENODEV);
        }
        // INVARIANT: From above.
        Ok(Self {
            _findable: findable,
        })
    }
}

impl Drop for ModuleUse {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::module_put(this_module::<crate::LocalModule>().as_ptr()) };
    }
}
