// SPDX-License-Identifier: GPL-2.0

//! Domains: a virtual NIC, opened.

#![forbid(unsafe_code)]

use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    }, //
};

use crate::{
    address::{
        place::{
            AddressFormat,
            Place, //
        },
        vector::AddressVector, //
    },
    counter::Counter,
    devices,
    endpoint::{
        Endpoint,
        ScalableEndpoint,
        SharedReceiveContext,
        SharedTransmitContext, //
    },
    fabric::Fabric,
    info,
    kfi::{
        addr,
        attr::{
            self,
            AvType,
            ResourceMgmt, //
        },
        fid::{
            AnyFid,
            ExtraOps,
            Fid,
            Object,
            OpsName, //
        },
        flags::{
            Caps,
            DomainBindFlags,
            MrMode, //
        },
        hold::Hold,
        info::InfoRef,
        linux::{
            dma_device::DmaDevice,
            work_queue::{
                WorkItem,
                WorkQueue,
                WorkQueueFlags, //
            }, //
        },
        memory::pieces::Reserve,
        provider::{
            cxi_domain_ops,
            datatype_size,
            domain_test_ops,
            kfi_datatype,
            kfi_op,
            open_calls,
            AtomicCall,
            CxiDomainOps,
            DeferredWork,
            DomainClass,
            DomainOps,
            WorkId, //
        }, //
    },
    late_work::LateWork,
    limits,
    memory_region::MemoryRegion,
    module_parameters,
    nic::{
        Nic,
        NicUse, //
    },
    open_objects,
    owner::Owner,
    personality::{
        self,
        Personality, //
    },
    poll_set::PollSet,
    queue::{
        completion_queue::CompletionQueue,
        event_queue::EventQueue, //
    },
    transfer::{
        atomic,
        region::Regions, //
    },
    trigger::{
        deferred,
        run_list::RunList, //
    }, //
};

/// The attributes that a domain was opened with.
pub(crate) struct DomainAttributes {
    /// The NIC, which stays as long as the domain is open.
    nic: NicUse,
    /// The format of all addresses.
    address_format: AddressFormat,
    /// The capabilities of its endpoints.
    caps: Caps,
    /// The mode of memory registration.
    mr_mode: MrMode,
    /// Bytes of a memory key.
    mr_key_size: usize,
    /// The party that keeps queues from overrunning.
    resource_mgmt: ResourceMgmt,
    /// The kind of address vectors for which none is chosen.
    av_type: AvType,
    /// The key of endpoints and regions that have none of their own; empty if there is none.
    auth_key: KVec<u8>,
}

impl DomainAttributes {
    /// Reads what kfi_getinfo has answered; `EINVAL` if it was not this provider, `ENODEV` if there
    /// is no such NIC, or another one has its name by now.
    pub(crate) fn new(info: InfoRef<'_>) -> Result<Self> {
        let attr = info.domain_attr().ok_or(EINVAL)?;
        let name = info.domain_name().ok_or(EINVAL)?;
        if info
            .prov_name()
            .is_some_and(|name| name != info::provider_name())
        {
            return Err(EINVAL);
        }
        let nic = Nic::find(name.to_bytes()).ok_or(ENODEV)?;
        let address_format = match info.get().addr_format {
            addr::FORMAT_UNSPEC => AddressFormat::Native,
            raw => AddressFormat::from_raw(raw).ok_or(EINVAL)?,
        };
        if let Some(bytes) = info.src_addr() {
            let place = Place::decode(address_format, bytes).ok_or(EINVAL)?;
            // The name is that of a place, where another NIC may have come since the answer. No
            // endpoint could be opened with that answer in a domain of this one.
            if place.nic != nic.number() {
                return Err(ENODEV);
            }
        }
        let caps = info::answered_caps(Caps::from_raw(info.get().caps)).ok_or(EINVAL)?;
        let mr_mode = MrMode::from_attr(attr.mr_mode);
        if !info::MR_MODES.contains(mr_mode)
            || !attr::is_threading(attr.threading)
            || !attr::is_progress(attr.control_progress)
            || !attr::is_progress(attr.data_progress)
            || !attr::is_traffic_class(attr.tclass)
            || attr.mr_key_size > limits::MR_KEY_SIZE
            || attr.cq_data_size > limits::CQ_DATA_SIZE
            || attr.auth_key_size > limits::MAX_AUTH_KEY_SIZE
            || !info::keys_make_sense(info)
        {
            return Err(EINVAL);
        }
        let mut auth_key = KVec::new();
        if attr.auth_key_size != 0 {
            auth_key.extend_from_slice(info.domain_auth_key().ok_or(EINVAL)?, GFP_KERNEL)?;
        }
        Ok(Self {
            nic: NicUse::new(nic)?,
            address_format,
            caps,
            mr_mode,
            mr_key_size: info::or(attr.mr_key_size, limits::MR_KEY_SIZE),
            resource_mgmt: ResourceMgmt::from_raw(attr.resource_mgmt)?
                .unwrap_or(ResourceMgmt::Enabled),
            av_type: AvType::from_raw(attr.av_type)?.unwrap_or(AvType::Table),
            auth_key,
        })
    }
}

/// An event queue, and the events of the domain that it reports.
struct Events {
    queue: Hold<EventQueue>,
    flags: DomainBindFlags,
}

/// Pages of a reserve: an atomic operation has up to three vectors, and as many as two pages of ranges at
/// the peer.
const RESERVE: u16 = 5;

/// An open domain.
#[pin_data]
pub(crate) struct Domain {
    /// The operations that are due and yet to be run, and the table of those that are pending.
    run_list: Arc<RunList>,
    /// Goes on with what is too much for the caller.
    work_queue: Arc<WorkQueue>,
    /// Copies what is too large for the poster, and watches deadlines: for the endpoints of this domain
    /// only, so that those of others do not wait behind them. From when there is the first.
    #[pin]
    late_work: Mutex<Option<Arc<LateWork>>>,
    fabric: Hold<Fabric>,
    /// The user who has opened it.
    owner: Arc<Owner>,
    attributes: DomainAttributes,
    events: SetOnce<Events>,
    /// Pages for what is posted, if there are no others.
    ///
    /// So do the looks at deadlines: `rnr_timeout` is the least time that a message waits, and the end of
    /// it is told when all lists of the domain that have something to copy just then have had a turn
    /// ([`LateDeliveries`](crate::transfer::late_deliveries::LateDeliveries)). A queue of their own would
    /// be another thread for each domain, and a look compares and receives, which is to be limited as well.
    reserve: Arc<Reserve>,
    /// The regions that all its endpoints have.
    #[pin]
    regions: Regions,
}

impl Domain {
    /// A domain of a fabric.
    pub(crate) fn new(
        fabric: Hold<Fabric>,
        attributes: DomainAttributes,
    ) -> Result<impl PinInit<Self>> {
        let work_queue = Arc::pin_init(
            // On any CPU, as the caller's may be busy: see `RunList`.
            WorkQueue::new(
                c"kfi_soft",
                WorkQueueFlags::UNBOUND
                    .union(WorkQueueFlags::HIGH_PRIORITY)
                    .union(WorkQueueFlags::MEM_RECLAIM),
            ),
            GFP_KERNEL,
        )?;
        let limit = *module_parameters::pending.value_ref();
        let run_list = RunList::new(work_queue.clone(), limit)?;
        let reserve = Reserve::new(RESERVE)?;
        let owner = fabric.node().owners.current()?;
        Ok(pin_init!(Self {
            run_list,
            work_queue,
            late_work <- new_mutex!(None, "kfi_soft::Domain::late_work"),
            reserve,
            fabric,
            owner,
            attributes,
            events: SetOnce::new(),
            regions <- Regions::new(),
        }))
    }

    /// Returns the pages for what is posted, if there are no others.
    pub(crate) fn reserve(&self) -> &Arc<Reserve> {
        &self.reserve
    }

    /// Returns what is due and yet to be run.
    pub(crate) fn run_list(&self) -> &Arc<RunList> {
        &self.run_list
    }

    /// Lets an item go on with what is too much for the caller. From any context.
    pub(crate) fn go_on_later<T: WorkItem>(&self, item: Arc<T>) {
        self.work_queue.queue::<_, 0>(item);
    }

    /// Returns where its endpoints copy what is too large for the poster, and watch deadlines; may
    /// sleep.
    pub(crate) fn late_work(&self) -> Result<Arc<LateWork>> {
        let mut late_work = self.late_work.lock();
        if let Some(queue) = &*late_work {
            return Ok(queue.clone());
        }
        let queue = Arc::pin_init(LateWork::new(), GFP_KERNEL)?;
        *late_work = Some(queue.clone());
        Ok(queue)
    }

    /// Returns the regions that all its endpoints have.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Arc<Fid<Fabric>> {
        self.fabric.fid()
    }

    /// Returns the NIC.
    pub(crate) fn nic(&self) -> Nic {
        self.attributes.nic.nic()
    }

    /// Returns the format of all addresses.
    pub(crate) fn address_format(&self) -> AddressFormat {
        self.attributes.address_format
    }

    /// Returns what endpoints of the domain may do.
    pub(crate) fn caps(&self) -> Caps {
        self.attributes.caps
    }

    /// Returns what the consumer does for memory registration.
    pub(crate) fn mr_mode(&self) -> MrMode {
        self.attributes.mr_mode
    }

    /// Returns whether endpoints may do so much in it, with memory keys of that many bytes.
    pub(crate) fn serves(&self, caps: Caps, mr_key_size: usize) -> bool {
        self.caps().contains(caps) && mr_key_size <= self.mr_key_size()
    }

    /// Returns the bytes of a memory key.
    pub(crate) fn mr_key_size(&self) -> usize {
        self.attributes.mr_key_size
    }

    /// Returns the party that keeps queues from overrunning.
    pub(crate) fn resource_mgmt(&self) -> ResourceMgmt {
        self.attributes.resource_mgmt
    }

    /// Returns the kind of address vectors for which none is chosen.
    pub(crate) fn av_type(&self) -> AvType {
        self.attributes.av_type
    }

    /// Returns the user who has opened it.
    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Returns the key of endpoints and regions that have none of their own; empty if there is none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.attributes.auth_key
    }

    /// Returns the event queue, and with which flags it was bound.
    pub(crate) fn event_queue(&self) -> Option<(&Arc<Fid<EventQueue>>, DomainBindFlags)> {
        let events = self.events.as_ref()?;
        Some((events.queue.fid(), events.flags))
    }
}

impl Object for Domain {
    type Class = DomainClass;

    fn release(&self) {
        // First, as these may sleep. Nothing is due any more, but the thread that has run it may be
        // about to return.
        let late_work = self.late_work.lock().take();
        if let Some(late_work) = late_work {
            late_work.queue().destroy();
        }
        self.work_queue.destroy();
        self.run_list.release();
        open_objects::remove_domain(self);
        if let Some(events) = self.events.as_ref() {
            events.queue.release();
        }
        self.attributes.nic.release();
        self.fabric.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        let flags = DomainBindFlags::from_raw(flags);
        if !DomainBindFlags::REG_MR.contains(flags) {
            return Err(EINVAL);
        }
        let queue = other.downcast::<EventQueue>().ok_or(EINVAL)?;
        if !ptr::eq(&**queue.fabric(), &**this.fabric()) {
            return Err(EINVAL);
        }
        let queue = Hold::new(queue)?;
        if !this.events.populate(Events { queue, flags }) {
            return Err(EINVAL);
        }
        Ok(())
    }

    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        if let Ok(ops) = domain_test_ops(this, name) {
            return Ok(ops);
        }
        match (personality::current(), cxi_domain_ops(this, name)) {
            // No other extension but the device, and that only if there is one.
            (Personality::Soft, Err(_)) => Err(ENOSYS),
            (Personality::Soft, Ok(_)) if devices::find(this.nic()).is_none() => Err(ENOSYS),
            (_, ret) => ret,
        }
    }
}

impl CxiDomainOps for Domain {
    fn device(&self) -> Result<Arc<DmaDevice>> {
        devices::find(self.nic()).ok_or(ENODEV)
    }
}

impl DomainOps for Domain {
    const ADDRESS_FORMAT: addr::AddressFormat = addr::AddressFormat::Cxi;

    type AddressVector = AddressVector;
    type Counter = Counter;
    type CompletionQueue = CompletionQueue;
    type PollSet = PollSet;
    type Endpoint = Endpoint;
    type ScalableEndpoint = ScalableEndpoint;
    type SharedTransmitContext = SharedTransmitContext;
    type SharedReceiveContext = SharedReceiveContext;
    type MemoryRegion = MemoryRegion;

    open_calls! {
        av_open = AddressVector::new;
        cntr_open => Counter::open;
        cq_open = CompletionQueue::new;
        poll_open = PollSet::new;
        endpoint => Endpoint::open;
        scalable_ep => ScalableEndpoint::open;
        stx_ctx => SharedTransmitContext::open;
        srx_ctx => SharedReceiveContext::open;
        mr_reg => MemoryRegion::open;
    }

    fn query_atomic(
        &self,
        datatype: kfi_datatype,
        op: kfi_op,
        flags: u64,
    ) -> Result<(usize, usize)> {
        if flags != 0 {
            return Err(EINVAL);
        }
        // The form follows from the operation.
        let limit = |call| atomic::limit(datatype, op, call);
        let count = limit(AtomicCall::Plain)
            .or_else(|_| limit(AtomicCall::Fetch))
            .or_else(|_| limit(AtomicCall::Compare))?;
        let size = datatype_size(datatype).ok_or(EOPNOTSUPP)?;
        Ok((count, size))
    }

    fn queue_work(this: &Fid<Self>, work: DeferredWork<'_>) -> Result {
        deferred::queue(this, work)
    }

    fn cancel_work(this: &Fid<Self>, id: WorkId) -> Result {
        deferred::cancel(this, id)
    }

    fn flush_work(this: &Fid<Self>, triggering: Option<AnyFid<'_>>) -> Result {
        deferred::flush(this, triggering)
    }
}
