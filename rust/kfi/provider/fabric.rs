// SPDX-License-Identifier: GPL-2.0

//! Fabrics.

use kernel::{
    error::from_result,
    prelude::*,
    str::CStr,
    sync::rcu, //
};

use super::{
    domain::DomainData,
    enosys::enosys4,
    event_queue::EventQueueData,
    DomainClass,
    DomainOps,
    EventQueueAttr,
    EventQueueClass,
    EventQueueOps,
    WaitSetAttr,
    WaitSetClass,
    WaitSetOps, //
};
use crate::kfi::{
    bindings,
    context::Context,
    fid::{
        open_into,
        AnyFids,
        Class,
        Fid,
        FidAddress,
        NewFid,
        Object,
        Opening,
        Tables, //
    },
    info::{
        FabricAttrMut,
        InfoRef, //
    }, //
};

/// The class of fabrics.
pub struct FabricClass;

// SAFETY: `struct kfid_fabric` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for FabricClass {
    type Head = bindings::kfid_fabric;
    type Tables = bindings::kfi_ops_fabric;
    type Data = FabricData;
    const FCLASS: usize = bindings::KFI_CLASS_FABRIC as usize;
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, data: &Self::Data) -> Self::Head {
        bindings::kfid_fabric {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
            api_version: data.api_version,
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// The data that the abstractions keep of a fabric.
#[derive(Default)]
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct FabricData {
    /// The version of the API that the consumer was written for.
    pub(super) api_version: u32,
}

/// The operations of a fabric (`struct kfi_ops_fabric`).
///
/// All may sleep, but for `trywait`, which is called from any context, hard interrupts included. The
/// calls that open objects can be defined in a line each: see [`open_calls!`](super::open_calls!).
/// Calls that are not defined answer `ENOSYS`; the type of a class that a provider does not have is
/// [`Absent`](super::Absent).
pub trait FabricOps: Object<Class = FabricClass> {
    /// The domains of the fabric.
    type Domain: DomainOps;
    /// The event queues of the fabric.
    type EventQueue: EventQueueOps;
    /// The wait sets of the fabric.
    type WaitSet: WaitSetOps;

    /// Opens a domain as `info` describes it.
    fn domain<'o>(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        opening: Opening<'o, DomainClass>,
    ) -> Result<NewFid<'o, Self::Domain>>;

    /// Opens an event queue.
    fn eq_open<'o>(
        this: &Fid<Self>,
        attr: EventQueueAttr<'_>,
        opening: Opening<'o, EventQueueClass>,
    ) -> Result<NewFid<'o, Self::EventQueue>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a wait set.
    fn wait_open<'o>(
        this: &Fid<Self>,
        attr: WaitSetAttr,
        opening: Opening<'o, WaitSetClass>,
    ) -> Result<NewFid<'o, Self::WaitSet>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Fails with `EAGAIN` if it is not safe to block on the wait objects of `fids`.
    ///
    /// Must not sleep: a caller may have set its state already (R-TRYWAIT-9). Runs in an RCU read-side
    /// critical section.
    fn trywait(this: &Fid<Self>, fids: AnyFids<'_>) -> Result {
        let _ = (this, fids);
        Err(ENOSYS)
    }
}

/// The attributes that a fabric is opened with (`struct kfi_fabric_attr`).
pub struct FabricAttr<'a>(&'a bindings::kfi_fabric_attr);

impl<'a> FabricAttr<'a> {
    /// Takes attributes from C.
    ///
    /// # Safety
    ///
    /// The names in `attr` must be null or texts that stay during `'a`.
    pub(super) unsafe fn new(attr: &'a bindings::kfi_fabric_attr) -> Self {
        Self(attr)
    }

    /// Returns the name of the fabric.
    pub fn name(&self) -> Option<&'a CStr> {
        // SAFETY: By the safety requirements of `new`.
        (!self.0.name.is_null()).then(|| unsafe { CStr::from_char_ptr(self.0.name) })
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: FabricOps> Tables<FabricClass> for T {
    const TABLES: &'static bindings::kfi_ops_fabric = &bindings::kfi_ops_fabric {
        size: size_of::<bindings::kfi_ops_fabric>(),
        domain: Some(domain_callback::<T>),
        passive_ep: Some(enosys4),
        eq_open: Some(eq_open_callback::<T>),
        wait_open: Some(wait_open_callback::<T>),
        trywait: Some(trywait_callback::<T>),
    };
}

impl FabricAttrMut<'_> {
    /// Names a fabric, if it is open. It may be closed before the answer is looked at: a hold that
    /// kept it would have its close refused.
    pub fn fabric(self, fabric: &Fid<impl Object<Class = FabricClass>>) -> Self {
        if fabric.dependents().is_open() {
            self.0.fabric = fabric.head();
        }
        self
    }
}

impl InfoRef<'_> {
    /// Returns whether there is a connection request or passive endpoint.
    pub fn has_handle(self) -> bool {
        !self.get().handle.is_null()
    }

    /// Returns where the open fabric is that the entry names; there may be none any more.
    pub fn fabric(self) -> Option<FidAddress> {
        FidAddress::from_raw(self.fabric_attr()?.fabric)
    }
}

/// Opens a domain.
///
/// # Safety
///
/// `fabric` must be an open fabric of `T`. `info` must be null or valid. `domain` must be null or
/// valid for writes.
unsafe extern "C" fn domain_callback<T: FabricOps>(
    fabric: *mut bindings::kfid_fabric,
    info: *mut bindings::kfi_info,
    domain: *mut *mut bindings::kfid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(fabric) };
    // SAFETY: By the safety requirements.
    let info = unsafe { InfoRef::from_raw(info) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(domain, || {
            let info = info.ok_or(EINVAL)?;
            let opening = Opening::new(
                Context::from_raw(context),
                DomainData::new::<T::Domain>(info),
            );
            T::domain(this, info, opening)
        })
    }
}

/// Opens an event queue.
///
/// # Safety
///
/// `fabric` must be an open fabric of `T`. `attr` must be null or valid, and its wait set an open
/// object if it asks for one. `eq` must be null or valid for writes.
unsafe extern "C" fn eq_open_callback<T: FabricOps>(
    fabric: *mut bindings::kfid_fabric,
    attr: *mut bindings::kfi_eq_attr,
    eq: *mut *mut bindings::kfid_eq,
    event_handler: bindings::kfi_event_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(fabric) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(eq, || {
            let wanted = EventQueueAttr::from_raw(attr, event_handler)?;
            let data = EventQueueData::new(event_handler);
            let opening = Opening::new(Context::from_raw(context), data);
            let opened = T::eq_open(this, wanted, opening)?;
            if let Some(attr) = attr.as_mut() {
                attr.size = opened.size();
            }
            Ok(opened)
        })
    }
}

/// Opens a wait set.
///
/// # Safety
///
/// `fabric` must be an open fabric of `T`, `attr` null or valid, `waitset` null or valid for writes.
unsafe extern "C" fn wait_open_callback<T: FabricOps>(
    fabric: *mut bindings::kfid_fabric,
    attr: *mut bindings::kfi_wait_attr,
    waitset: *mut *mut bindings::kfid_wait,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(fabric) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(waitset, || {
            let opening = Opening::new(Context::NONE, ());
            T::wait_open(this, WaitSetAttr::from_raw(attr)?, opening)
        })
    }
}

/// Says whether it is safe to block.
///
/// # Safety
///
/// `fabric` must be an open fabric of `T`, `fids` null or `count` pointers that are null or open
/// objects.
unsafe extern "C" fn trywait_callback<T: FabricOps>(
    fabric: *mut bindings::kfid_fabric,
    fids: *mut *mut bindings::kfid,
    count: c_int,
) -> c_int {
    // Close waits for this section, so that all of them stay until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(fabric) };
    from_result(|| {
        let count = usize::try_from(count).map_err(|_| EINVAL)?;
        // SAFETY: By the safety requirements.
        T::trywait(this, unsafe { AnyFids::from_raw(fids, count) }?)?;
        Ok(0)
    })
}
