// SPDX-License-Identifier: GPL-2.0

//! The one core, which the exported functions find without being told.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    debugfs::CoreFiles,
    fabrics::Fabrics,
    kfi::linux::modules::Modules,
    registry::Registry, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Installed::new` before anything else of the module runs.
    unsafe(uninit) static CORE: Mutex<Option<Arc<Core>>> = None;
}

/// The parts of the core.
#[pin_data]
pub(crate) struct Core {
    /// The modules that a provider may belong to.
    #[pin]
    pub(crate) modules: Modules,
    /// The registered providers.
    #[pin]
    pub(crate) registry: Registry,
    /// The open fabrics.
    pub(crate) fabrics: Arc<Fabrics>,
}

/// Returns the core; `ENODEV` while the module is loaded or unloaded.
pub(crate) fn installed() -> Result<Arc<Core>> {
    CORE.lock().clone().ok_or(ENODEV)
}

/// The core while it can be found; dropped, it cannot any more.
pub(crate) struct Installed {
    /// The files of the core in debugfs.
    _files: CoreFiles,
}

impl Installed {
    /// Creates the core and lets it be found; `EBUSY` for all but the first. Called by the module's
    /// init, before there is anybody to look for it.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        static BEGUN: Atomic<bool> = Atomic::new(false);
        // Relaxed: one of the callers finds it false.
        if BEGUN.xchg(true, ordering::Relaxed) {
            return Err(EBUSY);
        }
        // SAFETY: Once, as nobody else gets here.
        unsafe { CORE.init() };
        let core = Arc::pin_init(
            try_pin_init!(Core {
                modules <- Modules::new(module),
                registry <- Registry::new(),
                fabrics: Fabrics::new()?,
            }? Error),
            GFP_KERNEL,
        )?;
        let files = CoreFiles::new(&core)?;
        *CORE.lock() = Some(core);
        Ok(Self { _files: files })
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let core = CORE.lock().take();
        // Outside of the lock: the last one to drop it waits for the notifier.
        drop(core);
    }
}
