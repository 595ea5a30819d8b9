// SPDX-License-Identifier: GPL-2.0

//! The files in debugfs: `kfabric/providers` and `kfabric/fabrics`.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    sync::Arc, //
};

use crate::{
    abi::installed::Core,
    fabrics::Serial,
    kfi::linux::debugfs::{
        Dir,
        File, //
    }, //
};

/// The files; dropped, they are gone and nobody reads them any more.
pub(crate) struct CoreFiles {
    /// The registered providers.
    _providers: Pin<KBox<File<Arc<Core>>>>,
    /// The open fabrics.
    _fabrics: Pin<KBox<File<Arc<Core>>>>,
}

impl CoreFiles {
    /// Creates the files. Where there is no debugfs nothing is shown.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Self> {
        let dir = Dir::new(c"kfabric")?;
        Ok(Self {
            _providers: KBox::pin_init(
                dir.read_callback_file(c"providers", core.clone(), show_providers),
                GFP_KERNEL,
            )?,
            _fabrics: KBox::pin_init(
                dir.read_callback_file(c"fabrics", core.clone(), show_fabrics),
                GFP_KERNEL,
            )?,
        })
    }
}

/// A version as people write it.
struct Version(u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{}.{}", self.0 >> 16, self.0 & 0xffff))
    }
}

/// Shows one provider a line, in the order of registration.
fn show_providers(core: &Arc<Core>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("name version api state fabrics\n")?;
    let mut serial = Serial(0);
    while let Some(listed) = core.registry.after(serial) {
        serial = listed.serial;
        f.write_fmt(fmt!(
            "{} {} {} {} {}\n",
            listed.provider.name(),
            Version(listed.provider.version()),
            Version(listed.provider.api_version()),
            if listed.replaced {
                "replaced"
            } else {
                "active"
            },
            core.fabrics.count(serial),
        ))?;
    }
    Ok(())
}

/// Shows one fabric a line, in the order of opening.
fn show_fabrics(core: &Arc<Core>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("provider fabric\n")?;
    f.write_fmt(fmt!("{}", &*core.fabrics))
}
