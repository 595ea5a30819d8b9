// SPDX-License-Identifier: GPL-2.0

//! Domains.

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    address_vector::AddressVectorData,
    completion_queue::CompletionQueueData,
    deferred_work,
    endpoint::EndpointData,
    kfi_datatype,
    kfi_op,
    kfi_rx_attr,
    kfi_tx_attr,
    memory_region,
    AddressVectorAttr,
    AddressVectorClass,
    AddressVectorOps,
    CompletionQueueAttr,
    CompletionQueueClass,
    CompletionQueueOps,
    CounterAttr,
    CounterClass,
    CounterOps,
    DeferredWork,
    EndpointOps,
    MemoryRegionAttr,
    MemoryRegionClass,
    MemoryRegionOps,
    PlainClass,
    PollSetClass,
    PollSetOps,
    ScalableClass,
    SharedReceiveClass,
    SharedTransmitClass,
    SharedTransmitOps,
    WorkId, //
};
use crate::kfi::{
    addr::AddressFormat,
    bindings,
    context::Context,
    fid::{
        open_into,
        AnyFid,
        Class,
        Fid,
        FidAddress,
        NewFid,
        Object,
        Opening,
        Tables, //
    },
    info::{
        DomainAttrMut,
        InfoRef, //
    },
    linux::dma_device::DmaDevice, //
};

/// The class of domains.
pub struct DomainClass;

// SAFETY: `struct kfid_domain` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for DomainClass {
    type Head = bindings::kfid_domain;
    type Tables = DomainTables;
    type Data = DomainData;
    const FCLASS: usize = bindings::KFI_CLASS_DOMAIN as usize;
    // Changes of its counters run in such sections, and counters may outlive their close.
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &Self::Data) -> Self::Head {
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

    fn closing(data: &DomainData) {
        // Here, where it may sleep, and not when the last reference to the domain is dropped.
        drop(data.device.take());
    }
}

/// The data that the abstractions keep of a domain.
#[derive(Default)]
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct DomainData {
    /// The format of all addresses, if it is one that is known.
    pub(super) address_format: Option<AddressFormat>,
    /// The device that the consumer has been told, which stays until the domain is closed.
    pub(super) device: KeptDevice,
}

/// A device that is kept, once there is one.
///
/// # Invariants
///
/// Null, or a pointer of [`Arc::into_raw`] that this owns.
pub(super) struct KeptDevice(Atomic<*mut DmaDevice>, PhantomData<Arc<DmaDevice>>);

impl KeptDevice {
    /// None.
    const fn new() -> Self {
        // INVARIANT: Null.
        Self(Atomic::new(ptr::null_mut()), PhantomData)
    }

    /// Returns the device for C, which is there until [`Self::take`]. If there is none yet, the one that
    /// `new` returns is kept from now on; if several threads do this at the same time, one of theirs is.
    ///
    /// # Safety
    ///
    /// The device must not be taken out before this returns: the domain must be open until then, as it is
    /// during a call of its operations.
    pub(super) unsafe fn get_or(
        &self,
        new: impl FnOnce() -> Result<Arc<DmaDevice>>,
    ) -> Result<*mut bindings::device> {
        // Acquire: what has made it comes before its use.
        // See `qemu-test/litmus/KFI-kept-device.litmus`.
        let mut kept = self.0.load(ordering::Acquire);
        if kept.is_null() {
            let made = Arc::into_raw(new()?).cast_mut();
            // INVARIANT: It was null, and what `into_raw` has returned is given to it.
            // Full: as above, for this one and for those that find it.
            kept = match self.0.cmpxchg(ptr::null_mut(), made, ordering::Full) {
                Ok(_) => made,
                Err(others) => {
                    // SAFETY: By `into_raw`, and nobody has been given it.
                    drop(unsafe { Arc::from_raw(made) });
                    others
                }
            };
        }
        // SAFETY: By the type invariants, and by the safety requirements it is not taken meanwhile.
        Ok(unsafe { &*kept }.as_raw())
    }

    /// Takes the device out, once nobody uses it any more: the domain is being closed, or gone.
    fn take(&self) -> Option<Arc<DmaDevice>> {
        // INVARIANT: Null.
        // Full: all uses come before it is given up, once.
        // See `qemu-test/litmus/KFI-once.litmus`.
        let kept = self.0.xchg(ptr::null_mut(), ordering::Full);
        // SAFETY: By the type invariants, and this does not own it any more.
        (!kept.is_null()).then(|| unsafe { Arc::from_raw(kept) })
    }
}

impl Default for KeptDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for KeptDevice {
    fn drop(&mut self) {
        // Of a domain that was not opened; a close has taken it out.
        drop(self.take());
    }
}

impl DomainData {
    /// Of a domain of `T` that is opened with `info`.
    pub(super) fn new<T: DomainOps>(info: InfoRef<'_>) -> Self {
        Self {
            address_format: AddressFormat::from_raw(info.get().addr_format, T::ADDRESS_FORMAT),
            device: KeptDevice::new(),
        }
    }
}

/// The tables that a domain names.
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct DomainTables {
    /// The domain's own operations.
    domain: bindings::kfi_ops_domain,
    /// Memory registration.
    mr: bindings::kfi_ops_mr,
}

/// The operations of a domain (`struct kfi_ops_domain`).
///
/// All may sleep. As in [`FabricOps`](super::FabricOps), the calls that open objects take a line each,
/// what is not defined answers `ENOSYS`, and [`Absent`](super::Absent) is the type of a class that a
/// provider does not have.
pub trait DomainOps: Object<Class = DomainClass> {
    /// The format of the addresses if the consumer has chosen none.
    const ADDRESS_FORMAT: AddressFormat;

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
    fn av_open<'o>(
        this: &Fid<Self>,
        attr: AddressVectorAttr,
        opening: Opening<'o, AddressVectorClass>,
    ) -> Result<NewFid<'o, Self::AddressVector>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a counter.
    fn cntr_open<'o>(
        this: &Fid<Self>,
        attr: CounterAttr<'_>,
        opening: Opening<'o, CounterClass>,
    ) -> Result<NewFid<'o, Self::Counter>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a completion queue.
    fn cq_open<'o>(
        this: &Fid<Self>,
        attr: CompletionQueueAttr<'_>,
        opening: Opening<'o, CompletionQueueClass>,
    ) -> Result<NewFid<'o, Self::CompletionQueue>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a poll set.
    fn poll_open<'o>(
        this: &Fid<Self>,
        flags: u64,
        opening: Opening<'o, PollSetClass>,
    ) -> Result<NewFid<'o, Self::PollSet>> {
        let _ = (this, flags, opening);
        Err(ENOSYS)
    }

    /// Opens an endpoint as `info` describes it.
    fn endpoint<'o>(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        opening: Opening<'o, PlainClass>,
    ) -> Result<NewFid<'o, Self::Endpoint>> {
        let _ = (this, info, opening);
        Err(ENOSYS)
    }

    /// Opens a scalable endpoint as `info` describes it.
    fn scalable_ep<'o>(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        opening: Opening<'o, ScalableClass>,
    ) -> Result<NewFid<'o, Self::ScalableEndpoint>> {
        let _ = (this, info, opening);
        Err(ENOSYS)
    }

    /// Opens a transmit context that endpoints share.
    fn stx_ctx<'o>(
        this: &Fid<Self>,
        attr: Option<&kfi_tx_attr>,
        opening: Opening<'o, SharedTransmitClass>,
    ) -> Result<NewFid<'o, Self::SharedTransmitContext>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a receive context that endpoints share.
    fn srx_ctx<'o>(
        this: &Fid<Self>,
        attr: Option<&kfi_rx_attr>,
        opening: Opening<'o, SharedReceiveClass>,
    ) -> Result<NewFid<'o, Self::SharedReceiveContext>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Registers memory.
    fn mr_reg<'o>(
        this: &Fid<Self>,
        attr: MemoryRegionAttr<'_>,
        opening: Opening<'o, MemoryRegionClass>,
    ) -> Result<NewFid<'o, Self::MemoryRegion>> {
        let _ = (this, attr, opening);
        Err(ENOSYS)
    }

    /// Returns the most elements of an atomic operation and the size of one in bytes; `EOPNOTSUPP`
    /// if there is no such operation.
    fn query_atomic(
        &self,
        datatype: kfi_datatype,
        op: kfi_op,
        flags: u64,
    ) -> Result<(usize, usize)> {
        let _ = (datatype, op, flags);
        Err(EOPNOTSUPP)
    }

    /// Queues deferred work (KFI_QUEUE_WORK); may sleep, as all three may (R-DWQ-23).
    ///
    /// The request was read, and is a copy but for the memory of its operation. One check is left to do:
    /// its objects have to be this provider's and of this domain ([`AnyFid::downcast`]), else `EINVAL`.
    /// They are held while it is pending, so that closing one answers `EBUSY`: the counter that it waits
    /// for and those that it changes or counts on; what waits on an endpoint is given up when that is
    /// closed, without completions.
    ///
    /// It begins when the sum of both values of the counter has reached the threshold, at once if it
    /// has already (R-DWQ-5, 6), in one order with the triggered operations on that counter
    /// (R-DWQ-18), once. How it ends is told as R-DWQ-7 to 12 say. Nothing of it is left after an
    /// error (R-DWQ-16): `EOPNOTSUPP` for a direction that the endpoint lacks, `EBADFLAGS`, `EMSGSIZE`,
    /// `EOPBADSTATE` for an endpoint that is not enabled, `ENOSYS` for an operation that this provider
    /// does not have (R-DWQ-17), `ENOSPC` beyond a limit, `EAGAIN` or `ENOMEM` if memory is short.
    fn queue_work(this: &Fid<Self>, work: DeferredWork<'_>) -> Result {
        let _ = (this, work);
        Err(ENOSYS)
    }

    /// Takes deferred work back (KFI_CANCEL_WORK): all that is pending of what was queued by this name,
    /// which may have been several times; `ENOENT` if nothing is.
    ///
    /// Work that has begun to change a counter (`DeferredOp::CounterSet`, `DeferredOp::CounterAdd`) has
    /// ended when this returns, with success or not: it *waits* for that. Consumers free the request
    /// then, and those of `rust/kfi/consumer` let go of what it names. The memory of a transfer that was
    /// pending is the consumer's again, too.
    fn cancel_work(this: &Fid<Self>, id: WorkId) -> Result {
        let _ = (this, id);
        Err(ENOSYS)
    }

    /// Takes all deferred work of the domain back, or that which waits for one counter
    /// (KFI_FLUSH_WORK); `EINVAL` for an object that is no counter of this domain, whatever it is.
    ///
    /// Nothing of it begins once this has returned, and what has begun on counters has ended, as after
    /// [`Self::cancel_work`]. Success if there was nothing.
    fn flush_work(this: &Fid<Self>, triggering: Option<AnyFid<'_>>) -> Result {
        let _ = (this, triggering);
        Err(ENOSYS)
    }
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

    unsafe fn control_of_class(
        this: &Fid<Self>,
        command: c_int,
        arg: *mut c_void,
    ) -> Option<Result> {
        // SAFETY: By the safety requirements.
        unsafe { deferred_work::control(this, command, arg) }
    }
}

impl DomainAttrMut<'_> {
    /// Names a domain, if it is open. It may be closed before the answer is looked at: a hold that
    /// kept it would have its close refused.
    pub fn domain(self, domain: &Fid<impl Object<Class = DomainClass>>) -> Self {
        if domain.dependents().is_open() {
            self.0.domain = domain.head();
        }
        self
    }
}

impl InfoRef<'_> {
    /// Returns where the open domain is that the entry names; there may be none any more.
    pub fn domain(self) -> Option<FidAddress> {
        FidAddress::from_raw(self.domain_attr()?.domain)
    }
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
            let data = AddressVectorData {
                address_format: this.data().address_format.ok_or(EINVAL)?,
            };
            let opening = Opening::new(Context::from_raw(context), data);
            let opened = T::av_open(this, wanted, opening)?;
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
            let opening = Opening::new(Context::from_raw(context), ());
            T::cntr_open(this, CounterAttr::from_raw(attr)?, opening)
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
            let format = wanted.format;
            let data = CompletionQueueData::new(format, wanted.wait_cond, comp_handler);
            let opening = Opening::new(Context::from_raw(context), data);
            let opened = T::cq_open(this, wanted, opening)?;
            if let Some(attr) = attr.as_mut() {
                attr.size = opened.size();
                attr.format = format.as_raw();
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
    unsafe {
        open_into(pollset, || {
            T::poll_open(this, flags, Opening::new(Context::NONE, ()))
        })
    }
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
            let info = info.ok_or(EINVAL)?;
            let opening = Opening::new(Context::from_raw(context), EndpointData::of(info));
            T::endpoint(this, info, opening)
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
            let info = info.ok_or(EINVAL)?;
            let opening = Opening::new(Context::from_raw(context), EndpointData::of(info));
            T::scalable_ep(this, info, opening)
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
    unsafe {
        open_into(stx, || {
            T::stx_ctx(this, attr, Opening::new(Context::from_raw(context), ()))
        })
    }
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
    unsafe {
        open_into(rx_ep, || {
            let data = EndpointData::of_receive(attr);
            T::srx_ctx(this, attr, Opening::new(Context::from_raw(context), data))
        })
    }
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

#[cfg(unit_tests)]
#[kunit_tests(kfi_domain)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_kept_until_the_domain_is_closed() -> Result {
        let data = DomainData::default();
        // SAFETY: Nobody takes it out meanwhile, here and below.
        let get_or = |new: Result<Arc<DmaDevice>>| unsafe { data.device.get_or(|| new) };
        assert_eq!(get_or(Err(EIO)), Err(EIO));
        assert!(data.device.take().is_none());
        let device = match DmaDevice::new(c"kfi_domain_test") {
            // There is no such DMA everywhere. Any other failure is one.
            Err(EOPNOTSUPP) => return Ok(()),
            device => Arc::new(device?, GFP_KERNEL)?,
        };
        let raw = device.as_raw();
        assert_eq!(get_or(Ok(device.clone())), Ok(raw));
        // It is that one from then on.
        assert_eq!(get_or(Err(EIO)), Ok(raw));
        DomainClass::closing(&data);
        assert!(data.device.take().is_none());
        // Nothing else has the device: what has kept it has given it up.
        assert!(Arc::into_unique_or_drop(device).is_some());
        Ok(())
    }
}
