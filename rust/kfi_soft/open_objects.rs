// SPDX-License-Identifier: GPL-2.0

//! The open fabrics and domains, which hints may name.

#![forbid(unsafe_code)]

use core::ptr;
use kernel::{
    fmt,
    prelude::*,
    sync::Arc, //
};

use crate::{
    domain::Domain,
    fabric::Fabric,
    kfi::{
        fid::{
            Fid,
            Object, //
        },
        linux::debugfs::{
            Dir,
            File, //
        }, //
    },
    nic::Nic,
    OPEN_OBJECTS, //
};

/// Objects of one class in the order of their opening.
pub(crate) struct ObjectList<T: Object>(KVec<Arc<Fid<T>>>);

impl<T: Object> ObjectList<T> {
    /// Adds an object.
    fn add(&mut self, fid: Arc<Fid<T>>) -> Result {
        Ok(self.0.push(fid, GFP_KERNEL)?)
    }

    /// Takes an object out.
    fn remove(&mut self, object: &T) -> Option<Arc<Fid<T>>> {
        let at = self
            .0
            .iter()
            .position(|fid| ptr::eq::<T>(&***fid, object))?;
        let fid = self.0.remove(at).ok();
        if self.0.is_empty() {
            // A static is never dropped: without objects it must be without memory.
            self.0 = KVec::new();
        }
        fid
    }

    /// Finds the first object that `is_it`.
    fn find(&self, mut is_it: impl FnMut(&Fid<T>) -> bool) -> Option<Arc<Fid<T>>> {
        self.0.iter().find(|fid| is_it(fid)).cloned()
    }
}

/// The open objects.
pub(crate) struct OpenObjects {
    fabrics: ObjectList<Fabric>,
    domains: ObjectList<Domain>,
}

impl OpenObjects {
    /// None.
    pub(crate) const fn new() -> Self {
        Self {
            fabrics: ObjectList(KVec::new()),
            domains: ObjectList(KVec::new()),
        }
    }
}

/// Adds a fabric that is being opened, if it `is_there`, which does not change meanwhile
/// ([`unless_open`]); `ENODEV` if not.
pub(crate) fn add_fabric(fabric: Arc<Fid<Fabric>>, is_there: impl FnOnce() -> bool) -> Result {
    let mut open = OPEN_OBJECTS.lock();
    if !is_there() {
        return Err(ENODEV);
    }
    open.fabrics.add(fabric)
}

/// Changes what fabric there is, while none is open, nor is being opened; `EBUSY` if one is.
pub(crate) fn unless_open<T>(change: impl FnOnce() -> Result<T>) -> Result<T> {
    let open = OPEN_OBJECTS.lock();
    if !open.fabrics.0.is_empty() {
        return Err(EBUSY);
    }
    change()
}

/// Takes out a fabric that is being closed.
pub(crate) fn remove_fabric(fabric: &Fabric) {
    let removed = OPEN_OBJECTS.lock().fabrics.remove(fabric);
    // Outside of the lock.
    drop(removed);
}

/// Adds a domain that is being opened.
pub(crate) fn add_domain(domain: Arc<Fid<Domain>>) -> Result {
    OPEN_OBJECTS.lock().domains.add(domain)
}

/// Takes out a domain that is being closed.
pub(crate) fn remove_domain(domain: &Domain) {
    let removed = OPEN_OBJECTS.lock().domains.remove(domain);
    // Outside of the lock.
    drop(removed);
}

/// Returns the first open fabric that `is_it`.
pub(crate) fn fabric(is_it: impl FnMut(&Fid<Fabric>) -> bool) -> Option<Arc<Fid<Fabric>>> {
    OPEN_OBJECTS.lock().fabrics.find(is_it)
}

/// Returns the first open domain that `is_it`.
pub(crate) fn domain(is_it: impl FnMut(&Fid<Domain>) -> bool) -> Option<Arc<Fid<Domain>>> {
    OPEN_OBJECTS.lock().domains.find(is_it)
}

/// Returns the first open domain on a NIC that `is_it`, among those of a fabric if one is given.
pub(crate) fn domain_on(
    nic: Nic,
    fabric: Option<&Arc<Fid<Fabric>>>,
    is_it: impl Fn(&Fid<Domain>) -> bool,
) -> Option<Arc<Fid<Domain>>> {
    domain(|domain| {
        domain.nic() == nic
            && fabric.is_none_or(|fabric| Arc::ptr_eq(domain.fabric(), fabric))
            && is_it(domain)
    })
}

/// The file of debugfs that shows them, `kfi_soft/domains`; dropped, it is gone and nobody reads it
/// any more.
pub(crate) struct DomainsFile {
    /// The open domains.
    _domains: Pin<KBox<File<()>>>,
}

impl DomainsFile {
    /// Creates the file. Where there is no debugfs nothing is shown.
    pub(crate) fn new(dir: &Dir) -> Result<Self> {
        Ok(Self {
            _domains: KBox::pin_init(
                dir.read_callback_file(c"domains", (), show_domains),
                GFP_KERNEL,
            )?,
        })
    }
}

/// Shows one domain a line, in the order of opening.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as debugfs calls it")]
fn show_domains(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("nic fabric dependents\n")?;
    let open = OPEN_OBJECTS.lock();
    for domain in &open.domains.0 {
        let is_its = |fabric: &&Arc<Fid<Fabric>>| Arc::ptr_eq(fabric, domain.fabric());
        let fabric = open.fabrics.0.iter().position(|fabric| is_its(&fabric));
        f.write_fmt(fmt!(
            "{} {} {}\n",
            domain.nic().number(),
            fabric.unwrap_or(0),
            domain.dependent_count(),
        ))?;
    }
    Ok(())
}
