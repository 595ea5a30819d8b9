// SPDX-License-Identifier: GPL-2.0

//! The open fabrics, for debugfs and the like.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

/// Identifies a registration of a provider; never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Serial(pub(crate) u64);

/// The description of a fabric.
struct Fabric {
    /// The registration that it was opened through, which may have ended.
    registration: Serial,
    /// The name of its provider, which may have gone.
    provider: CString,
    /// Its own name.
    name: CString,
}

/// The open fabrics, in the order of their opening.
#[pin_data]
pub(crate) struct Fabrics {
    /// The fabrics.
    #[pin]
    list: Mutex<KVec<Arc<Fabric>>>,
}

impl Fabrics {
    /// No fabrics.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                list <- new_mutex!(KVec::new(), "kfabric::Fabrics"),
            }),
            GFP_KERNEL,
        )
    }

    /// Lists a fabric that is about to be opened.
    pub(crate) fn add(
        this: &Arc<Self>,
        registration: Serial,
        provider: &CStr,
        name: Option<&CStr>,
    ) -> Result<Listed> {
        let fabric = Arc::new(
            Fabric {
                registration,
                provider: CString::try_from(provider)?,
                name: CString::try_from(name.unwrap_or_default())?,
            },
            GFP_KERNEL,
        )?;
        this.list.lock().push(fabric.clone(), GFP_KERNEL)?;
        Ok(Listed {
            fabrics: this.clone(),
            fabric,
        })
    }

    /// Counts the fabrics that were opened through a registration.
    pub(crate) fn count(&self, registration: Serial) -> usize {
        let list = self.list.lock();
        list.iter()
            .filter(|fabric| fabric.registration == registration)
            .count()
    }
}

impl fmt::Display for Fabrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fabric in &*self.list.lock() {
            f.write_fmt(fmt!("{} {}\n", &*fabric.provider, &*fabric.name))?;
        }
        Ok(())
    }
}

/// A fabric's place in the list; dropped, it is off the list.
pub(crate) struct Listed {
    /// The list.
    fabrics: Arc<Fabrics>,
    /// The fabric in the list.
    fabric: Arc<Fabric>,
}

impl Listed {
    /// Returns the name of the fabric's provider.
    pub(crate) fn provider(&self) -> &CStr {
        &self.fabric.provider
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = self.fabrics.list.lock();
        list.retain(|fabric| !Arc::ptr_eq(fabric, &self.fabric));
    }
}
