// SPDX-License-Identifier: GPL-2.0

//! Deferred work.
//!
//! The rule of the API is that a request and all it names stays until its operation has completed or
//! it was cancelled. It is certain that nothing is pending any more after a cancellation, whether it
//! has found something or not, and after a flush; then all operations on counters have ended, and
//! those on an endpoint have when that is closed. Requests are kept by their domain until then, or
//! until the domain is closed.

use core::ptr;
use kernel::{
    error::to_result,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        new_mutex,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::{
    buffer::{
        Buffers,
        Shape, //
    },
    contexts::Lasts,
    endpoint::{
        Uses,
        PENDING_SIZE, //
    },
    leftovers::{
        Account,
        LEFT_SIZE, //
    },
    object::{
        AnyObject,
        Lineage,
        Serial, //
    },
    operation::{
        Arrays,
        Kind,
        OpContext,
        Operation, //
    },
    peak::{
        Peak,
        Taken, //
    },
    quota::{
        Charge,
        Quota, //
    },
    Answer,
    Domain,
    Endpoint, //
};
use crate::kfi::{
    bindings, //
};

/// Requests that may be queued.
#[pin_data]
pub(super) struct Works {
    #[pin]
    queued: Mutex<RBTree<usize, Arc<DeferredWork>>>,
    /// How many flushes have begun.
    flushes: Atomic<u64>,
    /// The places of what is queued or waits for a condition.
    pub(super) places: Arc<Peak>,
}

/// The memory that a provider keeps for operations that wait for a counter, for others to come,
/// too, until the domain is closed.
const PLACE_SIZE: usize = 104;

impl Works {
    /// Creates an empty collection.
    pub(super) fn new(quota: &Arc<Quota>) -> Result<Arc<Self>> {
        let places = Peak::new(quota, PLACE_SIZE)?;
        Arc::pin_init(
            pin_init!(Self {
                queued <- new_mutex!(RBTree::new(), "kfi::Works::queued"),
                flushes: Atomic::new(0),
                places,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the first request from an address on.
    fn next(&self, from: usize) -> Option<Arc<DeferredWork>> {
        let queued = self.queued.lock();
        let cursor = queued.cursor_lower_bound(&from)?;
        Some(cursor.current().1.clone())
    }
}

/// The times that a request was queued.
struct Queued {
    /// How often, less those of which it is known that they have ended.
    count: usize,
    /// Whether it is about to be freed.
    released: bool,
    /// Flushes that had begun when it was queued the last time.
    flushes: u64,
    /// The memory that the provider keeps for all, or for the first to come.
    charge: Charge,
    /// Where the provider keeps them.
    places: Taken,
    /// The remains of a data transfer.
    account: Option<Account>,
}

impl Queued {
    /// Notes how often it was queued without a known end; `EDQUOT` if there is not as much memory left.
    fn set(&mut self, count: usize, each: usize) -> Result {
        self.places.set(count)?;
        let charged = self.charge.set(count.max(1).saturating_mul(each));
        if charged.is_err() {
            // Never refused, as it gives back.
            let _ = self.places.set(self.count);
        }
        charged?;
        self.count = count;
        Ok(())
    }

    /// Notes that some have ended.
    fn end(&mut self, count: usize, each: usize) {
        // Never refused, as it gives back.
        let _ = self.set(self.count.saturating_sub(count), each);
    }

    /// Notes that all have ended, as the endpoint is closed, on which the request is not queued again.
    fn leave(&mut self, quota: &Arc<Quota>) {
        self.count = 0;
        // Never refused, as it gives back.
        let _ = self.places.set(0);
        if let Some(account) = self.account.take() {
            // Completions may be in queues.
            let none = || Quota::nothing(quota);
            account.close([self.charge.take(), none(), none()]);
        }
    }
}

/// The objects that a request names, whatever their classes.
#[derive(Clone, Copy, Default)]
pub struct WorkObjects<'a> {
    /// The endpoint of a data transfer.
    pub ep: Option<AnyObject<'a>>,
    /// The counter that triggers.
    pub triggering_cntr: Option<AnyObject<'a>>,
    /// The counter of completions.
    pub completion_cntr: Option<AnyObject<'a>>,
    /// The counter that is changed.
    pub cntr: Option<AnyObject<'a>>,
}

/// These objects, for C.
struct Checked {
    ep: *mut bindings::kfid_ep,
    triggering_cntr: *mut bindings::kfid_cntr,
    completion_cntr: *mut bindings::kfid_cntr,
    cntr: *mut bindings::kfid_cntr,
}

impl Checked {
    /// None of them.
    const NONE: Self = Self {
        ep: ptr::null_mut(),
        triggering_cntr: ptr::null_mut(),
        completion_cntr: ptr::null_mut(),
        cntr: ptr::null_mut(),
    };
}

impl WorkObjects<'_> {
    /// Returns them for C; `EINVAL` unless they are an endpoint and counters of this domain.
    fn checked(&self, of: Lineage) -> Result<Checked> {
        Ok(Checked {
            ep: AnyObject::endpoint(self.ep, of)?,
            triggering_cntr: AnyObject::counter(self.triggering_cntr, of)?,
            completion_cntr: AnyObject::counter(self.completion_cntr, of)?,
            cntr: AnyObject::counter(self.cntr, of)?,
        })
    }

    /// Returns which objects they are.
    pub(super) fn serials(&self) -> [Option<Serial>; 4] {
        [
            self.ep,
            self.triggering_cntr,
            self.completion_cntr,
            self.cntr,
        ]
        .map(|object| object.map(AnyObject::serial))
    }

    /// Returns whether the provider may see an operation on these objects: the endpoint that keeps the
    /// regions whose descriptors are named is the one that the work names, and takes so many entries, of
    /// which all lists have as much.
    fn allow(&self, ep: Option<&Endpoint>, operation: &Operation<'_>, shape: Shape) -> bool {
        let (Some(ep), Some(named)) = (ep, self.ep) else {
            return false;
        };
        ep.any().serial() == named.serial()
            && ep.can_be_told(operation.kind)
            && ep.owns_regions(operation)
            && ep.limits().allow(operation, shape)
            && operation.has_equal_totals(true)
    }
}

/// The operation that is requested. Its type (`enum kfi_op_type`) says which structure there is,
/// so it is derived from the parts of that.
pub enum WorkOperation<'a> {
    /// An operation of a type without its structure: null.
    None(u32),
    /// A data transfer, in the shape that arrays are to have.
    Transfer(Operation<'a>, Shape),
    /// A counter is set.
    CounterSet(u64),
    /// A counter is added to.
    CounterAdd(u64),
}

impl WorkOperation<'_> {
    /// Returns the type of the operation.
    fn op_type(&self) -> u32 {
        match self {
            Self::None(op_type) => *op_type,
            Self::Transfer(operation, _) => operation.kind.op_type(),
            Self::CounterSet(_) => bindings::KFI_OP_CNTR_SET,
            Self::CounterAdd(_) => bindings::KFI_OP_CNTR_ADD,
        }
    }
}

/// The structure of an operation.
enum Structure {
    None,
    Msg(KBox<bindings::kfi_op_msg>),
    Tagged(KBox<bindings::kfi_op_tagged>),
    Rma(KBox<bindings::kfi_op_rma>),
    Atomic(KBox<bindings::kfi_op_atomic>),
    FetchAtomic(KBox<bindings::kfi_op_fetch_atomic>),
    CompareAtomic(KBox<bindings::kfi_op_compare_atomic>),
    Cntr(KBox<bindings::kfi_op_cntr>),
}

impl Structure {
    /// Makes the structure of an operation.
    fn new(
        operation: &WorkOperation<'_>,
        objects: &Checked,
        arrays: Option<&Arrays>,
    ) -> Result<Self> {
        let ep = objects.ep;
        Ok(match (operation, arrays) {
            (WorkOperation::CounterSet(value) | WorkOperation::CounterAdd(value), _) => {
                Self::Cntr(KBox::new(
                    bindings::kfi_op_cntr {
                        cntr: objects.cntr,
                        value: *value,
                    },
                    GFP_KERNEL_ACCOUNT,
                )?)
            }
            (WorkOperation::Transfer(operation, _), Some(arrays)) => {
                let flags = operation.flags;
                match operation.kind {
                    Kind::Recv | Kind::Send => Self::Msg(KBox::new(
                        bindings::kfi_op_msg {
                            ep,
                            msg: operation.msg(arrays),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                    Kind::TaggedRecv | Kind::TaggedSend => Self::Tagged(KBox::new(
                        bindings::kfi_op_tagged {
                            ep,
                            msg: operation.msg_tagged(arrays),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                    Kind::Read | Kind::Write => Self::Rma(KBox::new(
                        bindings::kfi_op_rma {
                            ep,
                            msg: operation.msg_rma(arrays),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                    Kind::Atomic => Self::Atomic(KBox::new(
                        bindings::kfi_op_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                    Kind::FetchAtomic => Self::FetchAtomic(KBox::new(
                        bindings::kfi_op_fetch_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            fetch: arrays.fetch(),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                    Kind::CompareAtomic => Self::CompareAtomic(KBox::new(
                        bindings::kfi_op_compare_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            fetch: arrays.fetch(),
                            compare: arrays.compare(),
                            flags,
                        },
                        GFP_KERNEL_ACCOUNT,
                    )?),
                }
            }
            _ => Self::None,
        })
    }

    /// Returns the structure for C.
    fn as_raw(&mut self) -> bindings::kfi_deferred_work__bindgen_ty_1 {
        let pointer: *mut c_void = match self {
            Self::None => ptr::null_mut(),
            Self::Msg(op) => ptr::from_mut(&mut **op).cast(),
            Self::Tagged(op) => ptr::from_mut(&mut **op).cast(),
            Self::Rma(op) => ptr::from_mut(&mut **op).cast(),
            Self::Atomic(op) => ptr::from_mut(&mut **op).cast(),
            Self::FetchAtomic(op) => ptr::from_mut(&mut **op).cast(),
            Self::CompareAtomic(op) => ptr::from_mut(&mut **op).cast(),
            Self::Cntr(op) => ptr::from_mut(&mut **op).cast(),
        };
        // All members are pointers.
        bindings::kfi_deferred_work__bindgen_ty_1 {
            msg: pointer.cast(),
        }
    }
}

/// A request.
///
/// # Invariants
///
/// While the count under the lock is more than 0, the domain it was made for holds this.
#[pin_data]
pub struct DeferredWork {
    raw: KBox<Opaque<bindings::kfi_deferred_work>>,
    domain: Serial,
    objects: [Option<Serial>; 4],
    /// Whether the provider may see it: not if an object is of another class or domain, if there is no
    /// endpoint that such operations are for, if there are more entries than it takes, or if lists differ
    /// in how much they have.
    valid: bool,
    /// The resources of the operations, but for those on counters.
    uses: Option<Arc<Uses>>,
    /// The memory that a provider keeps each time that it is queued.
    each: usize,
    /// How often it was queued. Held while that may change.
    #[pin]
    queued: Mutex<Queued>,
    _structure: Structure,
    _arrays: Option<Arrays>,
    _buffers: Buffers,
    _charge: Charge,
}

// SAFETY: The structures are for C, which may use them from any thread.
unsafe impl Send for DeferredWork {}
// SAFETY: As above.
unsafe impl Sync for DeferredWork {}

impl DeferredWork {
    /// About how much memory a request takes beside its arrays.
    const SIZE: usize = size_of::<Self>() + size_of::<bindings::kfi_deferred_work>() + 256;

    /// About how much a provider keeps of an operation on a counter that is queued.
    const COUNTER_SIZE: usize = 256;

    /// Makes a request for a domain. The endpoint of a transfer is told beside the objects, if there is
    /// one, as it is what keeps the regions that are named.
    ///
    /// With objects or arrays that no provider may see it is made all the same, and refused when it
    /// is queued. In process context; may sleep.
    pub fn new(
        domain: &Domain,
        threshold: u64,
        objects: &WorkObjects<'_>,
        ep: Option<&Endpoint>,
        mut operation: WorkOperation<'_>,
    ) -> Result<Arc<Self>> {
        kernel::task::might_sleep();
        let quota = domain.contexts().quota();
        let op_type = operation.op_type();
        let checked = objects.checked(domain.lineage());
        let mut valid = checked.is_ok();
        let mut buffers = Buffers::none(quota);
        if let WorkOperation::Transfer(operation, shape) = &operation {
            valid &= objects.allow(ep, operation, *shape);
        }
        let mut each = Self::COUNTER_SIZE;
        let mut uses = None;
        let mut account = None;
        let mut arrays = None;
        match &mut operation {
            WorkOperation::Transfer(operation, shape) if valid => {
                let lists = [operation.segments, operation.results, operation.compares];
                for list in lists {
                    buffers.keep(list)?;
                }
                if let Some(ep) = ep {
                    for list in lists {
                        ep.hold(list)?;
                    }
                    each = PENDING_SIZE.saturating_add(ep.kept_of(operation));
                    uses = Some(ep.uses().clone());
                    let left = Quota::charge(quota, LEFT_SIZE)?;
                    account = Some(Account::new(domain.contexts(), left)?);
                }
                // Completions may come as often as the work is queued.
                let contexts = domain.contexts();
                let context = contexts.acquire(domain.owner(), operation.number, Lasts::Kept)?;
                operation.context = OpContext::new(context);
                arrays = Some(operation.arrays(*shape, quota)?);
            }
            WorkOperation::Transfer(..) => operation = WorkOperation::None(op_type),
            _ => {}
        }
        let charge = Quota::charge(quota, Self::SIZE)?;
        let first = Quota::charge(quota, each)?;
        let checked = checked.unwrap_or(Checked::NONE);
        let mut structure = Structure::new(&operation, &checked, arrays.as_ref())?;
        let raw = KBox::new(
            Opaque::new(bindings::kfi_deferred_work {
                context: pin_init::zeroed(),
                threshold,
                triggering_cntr: checked.triggering_cntr,
                completion_cntr: checked.completion_cntr,
                op_type,
                op: structure.as_raw(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let places = Peak::none(&domain.works.places);
        let (domain, objects) = (domain.any().serial(), objects.serials());
        Arc::pin_init(
            pin_init!(Self {
                raw,
                domain,
                objects,
                valid,
                uses,
                each,
                // INVARIANT: It was not queued yet.
                queued <- new_mutex!(
                    Queued {
                        count: 0,
                        released: false,
                        flushes: 0,
                        charge: first,
                        places,
                        account,
                    },
                    "kfi::DeferredWork::queued"
                ),
                _structure: structure,
                _arrays: arrays,
                _buffers: buffers,
                _charge: charge,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns whether nobody needs the request any more, as all that was queued has ended. A data
    /// transfer that has fired may be using its memory until the endpoint is closed, whatever is queued
    /// afterwards. In process context; may sleep.
    pub fn is_idle(&self) -> bool {
        kernel::task::might_sleep();
        self.queued.lock().count == 0
    }

    /// Lets the request be queued no more; `EBUSY` if somebody may need it. In process context; may
    /// sleep.
    pub fn release(&self) -> Result {
        kernel::task::might_sleep();
        let mut queued = self.queued.lock();
        if queued.count != 0 {
            return Err(EBUSY);
        }
        queued.released = true;
        Ok(())
    }

    /// Returns whether nothing of it is carried out any more that is not pending: it is about counters,
    /// or its endpoint is closed.
    fn ends_when_taken_back(&self) -> bool {
        self.uses.as_ref().is_none_or(|uses| uses.has_ended())
    }

    /// Returns whether its endpoint is closed, so that a cancellation makes it idle.
    pub fn has_no_endpoint(&self) -> bool {
        self.uses.as_ref().is_some_and(|uses| uses.has_ended())
    }
}

impl Domain {
    /// Carries out a command about deferred work.
    ///
    /// # Safety
    ///
    /// `arg` must be null or what `command` takes. A request that is queued must stay as long as the
    /// provider may use it.
    unsafe fn work_command(&self, command: u32, arg: *mut c_void) -> Result {
        // SAFETY: The domain is open; see above for the argument.
        to_result(unsafe { bindings::kfi_control(self.any().as_raw(), command.cast_signed(), arg) })
    }

    /// Queues a request that was made for this domain and these objects; `EINVAL` if it was not, `EBADF`
    /// if it was released. May sleep.
    pub fn queue_work(
        &self,
        work: &Arc<DeferredWork>,
        objects: &WorkObjects<'_>,
    ) -> Result<Answer> {
        // They are those that were checked when the work was made, and not others at their places.
        if work.domain != self.any().serial() || work.objects != objects.serials() {
            return Err(EINVAL);
        }
        if !work.valid {
            return Ok(Err(EINVAL));
        }
        let pointer = work.raw.get();
        let mut queued = work.queued.lock();
        if queued.released {
            return Err(EBADF);
        }
        let more = queued.count.checked_add(1).ok_or(ENOSPC)?;
        if queued.count == 0 {
            let node = RBTreeNode::new(pointer.addr(), work.clone(), GFP_KERNEL_ACCOUNT)?;
            let old = self.works.queued.lock().insert(node);
            drop(old);
        }
        // INVARIANT: The domain holds the request.
        if let Err(error) = queued.set(more, work.each) {
            self.forget_unless_queued(work, &queued);
            return Err(error);
        }
        // SAFETY: The objects are open, as they are the ones given; the structures stay, as the domain
        // holds them.
        let ret = unsafe { self.work_command(bindings::KFI_QUEUE_WORK, pointer.cast()) };
        if ret.is_err() {
            queued.end(1, work.each);
            self.forget_unless_queued(work, &queued);
        }
        // A flush that has not begun yet finds what was queued; pairs with the one in `flush_work`.
        smp_mb(ordering::Full);
        // Relaxed: ordered by the barrier.
        queued.flushes = self.works.flushes.load(ordering::Relaxed);
        Ok(ret)
    }

    /// Queues NULL. May sleep.
    pub fn queue_null(&self) -> Result {
        // SAFETY: Null.
        unsafe { self.work_command(bindings::KFI_QUEUE_WORK, ptr::null_mut()) }
    }

    /// Cancels a request. May sleep.
    ///
    /// In any case none of it is pending then, and what was begun of operations on counters
    /// has ended. Of data transfers success says that at least one was pending; the provider does not
    /// tell how many. So one is counted, and a request that was queued several times may be kept for
    /// longer than it is needed.
    ///
    /// A request that was made for another domain goes to the software provider only, for tests; `ENOSYS`
    /// for other providers.
    pub fn cancel_work(&self, work: &Arc<DeferredWork>) -> Result {
        let pointer = work.raw.get();
        if work.domain != self.any().serial() {
            return self.cancel_any(pointer.cast());
        }
        let mut queued = work.queued.lock();
        // SAFETY: The request is there, and one of this domain; it may be one that is not queued.
        let ret = unsafe { self.work_command(bindings::KFI_CANCEL_WORK, pointer.cast()) };
        if ret.is_ok() || ret == Err(ENOENT) {
            if work.ends_when_taken_back() {
                self.end_all_of(work, &mut queued);
            } else if ret.is_ok() {
                queued.end(1, work.each);
                self.forget_unless_queued(work, &queued);
            }
        }
        ret
    }

    /// Notes that all has ended that was queued with a request of this domain.
    fn end_all_of(&self, work: &DeferredWork, queued: &mut Queued) {
        if work.has_no_endpoint() {
            queued.leave(self.contexts().quota());
        } else {
            queued.end(usize::MAX, work.each);
        }
        self.forget_unless_queued(work, queued);
    }

    /// Lets go of a request if nothing is queued with it.
    fn forget_unless_queued(&self, work: &DeferredWork, queued: &Queued) {
        if queued.count == 0 {
            let old = self.works.queued.lock().remove(&work.raw.get().addr());
            drop(old);
        }
    }

    /// Cancels what was queued with a pointer, whatever is there, at the software provider, which does not
    /// look behind it; `ENOSYS` for others, which do not get the pointer, as they may. May sleep.
    fn cancel_any(&self, pointer: *const c_void) -> Result {
        // SAFETY: That is what the software provider calls it; others do not know the name.
        let ops: &bindings::kfi_soft_dom_ops =
            unsafe { self.any().open_ops(DOMAIN_OPS) }.map_err(|_| ENOSYS)?;
        let cancel = ops.cancel_work.ok_or(ENOSYS)?;
        // SAFETY: The domain is open; any pointer may be cancelled, as it is never dereferenced.
        to_result(unsafe { cancel(self.any().as_raw(), pointer) })
    }

    /// Frees a request that is released, whose last reference this is unless somebody has tried to
    /// queue it, and cancels the pointer to it, at the software provider; others do not get it, and the
    /// answer is `ENOSYS`. `EBUSY` if somebody may need the request. For tests. May sleep.
    pub fn cancel_stale(&self, work: Arc<DeferredWork>) -> Result<Answer> {
        work.release()?;
        let pointer: *mut bindings::kfi_deferred_work = work.raw.get();
        drop(work);
        Ok(self.cancel_any(pointer.cast()))
    }

    /// Cancels NULL. May sleep.
    pub fn cancel_null(&self) -> Result {
        // SAFETY: Null.
        unsafe { self.work_command(bindings::KFI_CANCEL_WORK, ptr::null_mut()) }
    }

    /// Cancels all requests, or those that a counter is to trigger; `EINVAL` for an object that is no
    /// counter of this domain. `EINTR` if a signal came before it was noted which have ended: none is
    /// pending then either. May sleep.
    pub fn flush_work(&self, cntr: Option<AnyObject<'_>>) -> Result {
        let which = cntr.map(AnyObject::serial);
        let cntr = AnyObject::counter(cntr, self.lineage())?;
        // Relaxed: ordered by the barriers.
        let before = self.works.flushes.fetch_add(1, ordering::Relaxed);
        // A thread that notes a lower number has queued before the flush begins; pairs with the one
        // in `queue_work`.
        // See `qemu-test/litmus/KFI-work-flush.litmus`.
        smp_mb(ordering::Full);
        // SAFETY: Null or an open counter, as was just seen.
        unsafe { self.work_command(bindings::KFI_FLUSH_WORK, cntr.cast()) }?;
        let mut from = 0;
        while let Some(work) = self.works.next(from) {
            if from != 0 && kernel::current!().signal_pending() {
                return Err(EINTR);
            }
            let address = work.raw.get().addr();
            let [_, trigger, ..] = work.objects;
            let flushed = which.is_none() || which == trigger;
            if flushed && work.ends_when_taken_back() {
                let mut queued = work.queued.lock();
                if queued.flushes <= before {
                    self.end_all_of(&work, &mut queued);
                }
            }
            let Some(next) = address.checked_add(1) else {
                break;
            };
            from = next;
            // Others want the CPU, too.
            kernel::task::might_sleep();
        }
        Ok(())
    }
}

/// `KFI_SOFT_DOM_OPS_1`.
const DOMAIN_OPS: &CStr = c"kfi_soft_dom_ops_v1";
