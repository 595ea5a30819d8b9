// SPDX-License-Identifier: GPL-2.0

//! Domains.

use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    completion_queue::set_handler,
    enosys::enosys4,
    kfi_datatype,
    kfi_op,
    kfi_rx_attr,
    kfi_tx_attr,
    memory_region,
    AddressVectorAttr,
    AddressVectorOps,
    CompletionQueueAttr,
    CompletionQueueOps,
    CounterAttr,
    CounterOps,
    EndpointOps,
    MemoryRegionAttr,
    MemoryRegionOps,
    PlainClass,
    PollSetOps,
    ScalableClass,
    SharedReceiveClass,
    SharedTransmitOps, //
};
use crate::kfi::{
    bindings,
    fid::{
        open_into,
        Class,
        Context,
        Fid,
        Object,
        Tables, //
    },
    info::InfoRef, //
};

/// The class of domains.
pub(crate) struct DomainClass;

// SAFETY: `struct kfid_domain` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for DomainClass {
    type Head = bindings::kfid_domain;
    type Tables = DomainTables;
    const FCLASS: usize = bindings::KFI_CLASS_DOMAIN as usize;
    const RCU_OPERATIONS: bool = false;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables) -> Self::Head {
        bindings::kfid_domain {
            fid,
            // C declares the tables without `const`, and nobody writes to them.
            ops: core::ptr::from_ref(&tables.domain).cast_mut(),
            mr: core::ptr::from_ref(&tables.mr).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, &tables.domain)
    }
}

/// The tables that a domain names.
pub(crate) struct DomainTables {
    /// The domain's own operations.
    domain: bindings::kfi_ops_domain,
    /// Memory registration.
    mr: bindings::kfi_ops_mr,
}

/// The operations of a domain (`struct kfi_ops_domain`).
///
/// All may sleep.
pub(crate) trait DomainOps: Object<Class = DomainClass> {
    /// The address vectors of the domain.
    type AddressVector: AddressVectorOps;
    /// The counters of the domain.
    type Counter: CounterOps;
    /// The completion queues of the domain.
    type CompletionQueue: CompletionQueueOps;
    /// The poll sets of the domain.
    type PollSet: PollSetOps;
    /// The endpoints of the domain.
    type Endpoint: EndpointOps<Class = PlainClass>;
    /// The scalable endpoints of the domain.
    type ScalableEndpoint: EndpointOps<Class = ScalableClass>;
    /// The transmit contexts that endpoints of the domain share.
    type SharedTransmitContext: SharedTransmitOps;
    /// The receive contexts that endpoints of the domain share.
    type SharedReceiveContext: EndpointOps<Class = SharedReceiveClass>;
    /// The memory regions of the domain.
    type MemoryRegion: MemoryRegionOps;

    /// Opens an address vector.
    fn av_open(
        this: &Fid<Self>,
        attr: AddressVectorAttr,
        context: Context,
    ) -> Result<Arc<Fid<Self::AddressVector>>>;

    /// Opens a counter.
    fn cntr_open(
        this: &Fid<Self>,
        attr: CounterAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::Counter>>>;

    /// Opens a completion queue.
    fn cq_open(
        this: &Fid<Self>,
        attr: CompletionQueueAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::CompletionQueue>>>;

    /// Opens a poll set.
    fn poll_open(this: &Fid<Self>, flags: u64) -> Result<Arc<Fid<Self::PollSet>>>;

    /// Opens an endpoint as `info` describes it.
    fn endpoint(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::Endpoint>>>;

    /// Opens a scalable endpoint as `info` describes it.
    fn scalable_ep(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::ScalableEndpoint>>>;

    /// Opens a transmit context that endpoints share.
    fn stx_ctx(
        this: &Fid<Self>,
        attr: Option<&kfi_tx_attr>,
        context: Context,
    ) -> Result<Arc<Fid<Self::SharedTransmitContext>>>;

    /// Opens a receive context that endpoints share.
    fn srx_ctx(
        this: &Fid<Self>,
        attr: Option<&kfi_rx_attr>,
        context: Context,
    ) -> Result<Arc<Fid<Self::SharedReceiveContext>>>;

    /// Registers memory.
    fn mr_reg(this: &Fid<Self>, attr: MemoryRegionAttr<'_>)
        -> Result<Arc<Fid<Self::MemoryRegion>>>;

    /// Returns the most elements of an atomic operation and the size of one in bytes; `EOPNOTSUPP`
    /// if there is no such operation.
    fn query_atomic(
        &self,
        datatype: kfi_datatype,
        op: kfi_op,
        flags: u64,
    ) -> Result<(usize, usize)>;
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: DomainOps> Tables<DomainClass> for T {
    const TABLES: &'static DomainTables = &DomainTables {
        domain: bindings::kfi_ops_domain {
            size: size_of::<bindings::kfi_ops_domain>(),
            av_open: Some(av_open_callback::<T>),
            cq_open: Some(cq_open_callback::<T>),
            endpoint: Some(endpoint_callback::<T>),
            scalable_ep: Some(scalable_ep_callback::<T>),
            cntr_open: Some(cntr_open_callback::<T>),
            poll_open: Some(poll_open_callback::<T>),
            stx_ctx: Some(stx_ctx_callback::<T>),
            srx_ctx: Some(srx_ctx_callback::<T>),
            query_atomic: Some(query_atomic_callback::<T>),
        },
        mr: memory_region::table::<T>(),
    };
}

/// Opens an address vector.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid, `av` null or valid for writes.
unsafe extern "C" fn av_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_av_attr,
    av: *mut *mut bindings::kfid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(av, || {
            let wanted = AddressVectorAttr::from_raw(attr)?;
            let opened = T::av_open(this, wanted, Context::from_raw(context))?;
            if let Some(attr) = attr.as_mut() {
                attr.type_ = opened.av_type().as_raw();
            }
            Ok(opened)
        })
    }
}

/// Opens a counter.
///
/// # Safety
///
/// `domain` must be an open domain of `T`. `attr` must be null or valid, and its wait set an open
/// object if it asks for one. `cntr` must be null or valid for writes.
unsafe extern "C" fn cntr_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_cntr_attr,
    cntr: *mut *mut bindings::kfid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(cntr, || {
            T::cntr_open(
                this,
                CounterAttr::from_raw(attr)?,
                Context::from_raw(context),
            )
        })
    }
}

/// Opens a completion queue.
///
/// # Safety
///
/// `domain` must be an open domain of `T`. `attr` must be null or valid, and its wait set an open
/// object if it asks for one. `cq` must be null or valid for writes.
unsafe extern "C" fn cq_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_cq_attr,
    cq: *mut *mut bindings::kfid_cq,
    comp_handler: bindings::kfi_comp_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(cq, || {
            let wanted = CompletionQueueAttr::from_raw(attr, comp_handler)?;
            let opened = T::cq_open(this, wanted, Context::from_raw(context))?;
            set_handler(&opened, comp_handler);
            if let Some(attr) = attr.as_mut() {
                attr.size = opened.size();
                attr.format = opened.format().as_raw();
            }
            Ok(opened)
        })
    }
}

/// Opens a poll set.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid, `pollset` null or valid for writes.
unsafe extern "C" fn poll_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_poll_attr,
    pollset: *mut *mut bindings::kfid_poll,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let flags = unsafe { attr.as_ref() }.map_or(0, |attr| attr.flags);
    // SAFETY: By the safety requirements.
    unsafe { open_into(pollset, || T::poll_open(this, flags)) }
}

/// Opens an endpoint.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `info` null or valid, `ep` null or valid for writes.
unsafe extern "C" fn endpoint_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    info: *mut bindings::kfi_info,
    ep: *mut *mut bindings::kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let info = unsafe { InfoRef::from_raw(info) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(ep, || {
            T::endpoint(this, info.ok_or(EINVAL)?, Context::from_raw(context))
        })
    }
}

/// Opens a scalable endpoint.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `info` null or valid, `sep` null or valid for writes.
unsafe extern "C" fn scalable_ep_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    info: *mut bindings::kfi_info,
    sep: *mut *mut bindings::kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let info = unsafe { InfoRef::from_raw(info) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(sep, || {
            T::scalable_ep(this, info.ok_or(EINVAL)?, Context::from_raw(context))
        })
    }
}

/// Opens a transmit context that endpoints share.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid, `stx` null or valid for writes.
unsafe extern "C" fn stx_ctx_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut kfi_tx_attr,
    stx: *mut *mut bindings::kfid_stx,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let attr = unsafe { attr.as_ref() };
    // SAFETY: By the safety requirements.
    unsafe { open_into(stx, || T::stx_ctx(this, attr, Context::from_raw(context))) }
}

/// Opens a receive context that endpoints share.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid, `rx_ep` null or valid for writes.
unsafe extern "C" fn srx_ctx_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut kfi_rx_attr,
    rx_ep: *mut *mut bindings::kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let attr = unsafe { attr.as_ref() };
    // SAFETY: By the safety requirements.
    unsafe { open_into(rx_ep, || T::srx_ctx(this, attr, Context::from_raw(context))) }
}

/// Says whether and how there is an atomic operation.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid for writes.
unsafe extern "C" fn query_atomic_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    datatype: kfi_datatype,
    op: kfi_op,
    attr: *mut bindings::kfi_atomic_attr,
    flags: u64,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    from_result(|| {
        if attr.is_null() {
            return Err(EINVAL);
        }
        let (count, size) = this.query_atomic(datatype, op, flags)?;
        // SAFETY: `attr` is valid for writes, as it is not null.
        unsafe { attr.write(bindings::kfi_atomic_attr { count, size }) };
        Ok(0)
    })
}
