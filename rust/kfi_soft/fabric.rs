// SPDX-License-Identifier: GPL-2.0

//! Fabrics: the virtual NICs of this kernel see each other through one.

#![forbid(unsafe_code)]

use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    counter::Counter,
    domain::{
        Domain, //
        DomainAttributes,
    },
    kfi::{
        fid::{
            AnyFid,
            AnyFids,
            ExtraOps,
            Fid,
            NewFid,
            Object,
            Opening,
            OpsName, //
        },
        hold::Hold,
        info::InfoRef,
        linux::work_queue::{
            WorkQueue,
            WorkQueueFlags, //
        },
        provider::{
            cxi_fabric_ops, open_calls, queue::Entries, CxiFabricOps, DomainClass, FabricClass,
            FabricOps,
        },
        wait_obj::WaitObj, //
    },
    node::Node,
    open_objects,
    personality::{
        self,
        Personality, //
    },
    queue::{
        completion_queue::CompletionQueue,
        event_queue::EventQueue,
        Queue, //
    },
    wait_set::WaitSet, //
};

/// An open fabric.
#[pin_data]
pub(crate) struct Fabric {
    node: Arc<Node>,
    /// Where the handlers of queues run, from when there is the first.
    #[pin]
    handlers: Mutex<Option<Arc<WorkQueue>>>,
}

impl Fabric {
    /// A fabric.
    pub(crate) fn new(node: Arc<Node>) -> impl PinInit<Self> {
        pin_init!(Self {
            node,
            handlers <- new_mutex!(None, "kfi_soft::Fabric::handlers"),
        })
    }

    /// Returns where the handlers of queues run; may sleep.
    ///
    /// They run on the CPU that asked for it, may run for long, and may be what somebody who frees
    /// memory waits for.
    pub(crate) fn handlers(&self) -> Result<Arc<WorkQueue>> {
        let mut handlers = self.handlers.lock();
        if let Some(queue) = &*handlers {
            return Ok(queue.clone());
        }
        let flags = WorkQueueFlags::PER_CPU
            .union(WorkQueueFlags::CPU_INTENSIVE)
            .union(WorkQueueFlags::MEM_RECLAIM);
        let queue = Arc::pin_init(WorkQueue::new(c"kfi_soft_handlers", flags), GFP_KERNEL)?;
        *handlers = Some(queue.clone());
        Ok(queue)
    }

    /// Returns the node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }
}

impl Object for Fabric {
    type Class = FabricClass;

    fn release(&self) {
        open_objects::remove_fabric(self);
        let handlers = self.handlers.lock().take();
        if let Some(queue) = handlers {
            // The queues that had handlers are closed.
            queue.destroy();
        }
    }

    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        match personality::current() {
            Personality::Soft => Err(ENOSYS),
            Personality::Kcxi => cxi_fabric_ops(this, name),
        }
    }
}

impl CxiFabricOps for Fabric {
    fn enable_dynamic_rsrc_alloc(&self, _enable: bool) -> Result {
        // There is nothing to be taken in advance.
        Ok(())
    }
}

impl FabricOps for Fabric {
    type Domain = Domain;
    type EventQueue = EventQueue;
    type WaitSet = WaitSet;

    fn domain<'o>(
        this: &Fid<Self>,
        info: InfoRef<'_>,
        opening: Opening<'o, DomainClass>,
    ) -> Result<NewFid<'o, Domain>> {
        let attributes = DomainAttributes::new(info)?;
        let domain = NewFid::new(Domain::new(Hold::new(this)?, attributes)?, opening)?;
        open_objects::add_domain(domain.arc())?;
        Ok(domain)
    }

    open_calls! {
        eq_open = EventQueue::new;
        wait_open = WaitSet::new;
    }

    fn trywait(this: &Fid<Self>, fids: AnyFids<'_>) -> Result {
        // All are checked before any is reported (R-TRYWAIT-3 to 5).
        let mut common = None;
        for fid in fids.iter() {
            let waitable = Waitable::new(fid)?;
            if !ptr::eq(&**waitable.fabric(), this) {
                return Err(EINVAL);
            }
            let wait_obj = waitable.wait_obj()?;
            if *common.get_or_insert(wait_obj) != wait_obj {
                return Err(EINVAL);
            }
        }
        // Each is asked, so that what has changed in the others is not asked for again.
        let mut ret = Ok(());
        for fid in fids.iter() {
            if let Err(error) = Waitable::new(fid)?.trywait() {
                ret = Err(error);
            }
        }
        ret
    }
}

/// An object that has a wait object.
enum Waitable<'a> {
    /// A counter.
    Counter(&'a Fid<Counter>),
    /// A completion queue.
    CompletionQueue(&'a Fid<CompletionQueue>),
    /// An event queue.
    EventQueue(&'a Fid<EventQueue>),
    /// A wait set.
    WaitSet(&'a Fid<WaitSet>),
}

impl<'a> Waitable<'a> {
    /// Finds out what an object is; `EINVAL` if it has no wait object.
    fn new(fid: AnyFid<'a>) -> Result<Self> {
        if let Some(counter) = fid.downcast() {
            return Ok(Self::Counter(counter));
        }
        if let Some(queue) = fid.downcast() {
            return Ok(Self::CompletionQueue(queue));
        }
        if let Some(queue) = fid.downcast() {
            return Ok(Self::EventQueue(queue));
        }
        Ok(Self::WaitSet(fid.downcast().ok_or(EINVAL)?))
    }

    /// Returns the fabric of the object.
    fn fabric(&self) -> &Arc<Fid<Fabric>> {
        match self {
            Self::Counter(counter) => counter.domain().fabric(),
            Self::CompletionQueue(queue) => queue.domain().fabric(),
            Self::EventQueue(queue) => queue.fabric(),
            Self::WaitSet(set) => set.fabric(),
        }
    }

    /// Returns the type of the wait object; `EINVAL` if there is none.
    fn wait_obj(&self) -> Result<WaitObj> {
        let wait_obj = match self {
            Self::Counter(counter) => counter.source().shown(),
            Self::CompletionQueue(queue) => queue.queue().source().shown(),
            Self::EventQueue(queue) => queue.queue().source().shown(),
            Self::WaitSet(_) => WaitObj::Queue,
        };
        match wait_obj {
            WaitObj::None => Err(EINVAL),
            wait_obj => Ok(wait_obj),
        }
    }

    /// `EAGAIN` if there is something to read.
    fn trywait(&self) -> Result {
        fn queue<T: Entries>(queue: &Queue<T>) -> Result {
            match queue.source().set() {
                Some(set) => set.trywait(),
                None if queue.is_ready() => Err(EAGAIN),
                None => Ok(()),
            }
        }

        match self {
            Self::Counter(counter) => counter.trywait(),
            Self::CompletionQueue(cq) => queue(cq.queue()),
            Self::EventQueue(eq) => queue(eq.queue()),
            Self::WaitSet(set) => set.trywait(),
        }
    }
}
