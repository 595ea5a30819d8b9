// SPDX-License-Identifier: GPL-2.0

//! Deferred work.
//!
//! The rule of the API is that a request and all it names stays until its operation has completed or
//! it was cancelled. Only a successful cancellation is a certain end; so requests are kept by their
//! domain until then, or until the domain is closed.

use core::ptr;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::{
    budget::Charge,
    buffer::{
        Segment,
        Shape, //
    },
    object::AnyObject,
    operation::{
        Arrays,
        Operation, //
    },
    Domain, //
};
use crate::kfi::{
    bindings,
    errno::to_result, //
};

/// Requests that may be queued.
#[pin_data]
pub(super) struct Works {
    #[pin]
    queued: Mutex<RBTree<usize, Arc<DeferredWork>>>,
}

impl Works {
    /// Creates an empty collection.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                queued <- new_mutex!(RBTree::new(), "kfi::Works::queued"),
            }),
            GFP_KERNEL,
        )
    }
}

/// The objects that a request names, whatever their classes.
#[derive(Clone, Copy, Default)]
pub(crate) struct WorkObjects<'a> {
    /// The endpoint of a data transfer.
    pub(crate) ep: Option<AnyObject<'a>>,
    /// The counter that triggers.
    pub(crate) triggering_cntr: Option<AnyObject<'a>>,
    /// The counter of completions.
    pub(crate) completion_cntr: Option<AnyObject<'a>>,
    /// The counter that is changed.
    pub(crate) cntr: Option<AnyObject<'a>>,
}

impl WorkObjects<'_> {
    /// Returns where the objects are.
    fn addresses(&self) -> [usize; 4] {
        [
            self.ep,
            self.triggering_cntr,
            self.completion_cntr,
            self.cntr,
        ]
        .map(|object| object.map_or(0, AnyObject::address))
    }
}

/// What is requested.
pub(crate) enum WorkOperation<'a> {
    /// Nothing: no structure for the operation.
    None,
    /// A data transfer, in the shape that arrays are to have.
    Transfer(Operation<'a>, Shape),
    /// A counter is set or added to.
    Counter(u64),
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
    /// Makes the structure for a type of operation.
    fn new(
        op_type: u32,
        operation: &WorkOperation<'_>,
        objects: &WorkObjects<'_>,
        arrays: Option<&Arrays>,
    ) -> Result<Self> {
        let ep = AnyObject::or_null(objects.ep).cast();
        Ok(match (operation, arrays) {
            (WorkOperation::Counter(value), _) => Self::Cntr(KBox::new(
                bindings::kfi_op_cntr {
                    cntr: AnyObject::or_null(objects.cntr).cast(),
                    value: *value,
                },
                GFP_KERNEL,
            )?),
            (WorkOperation::Transfer(operation, _), Some(arrays)) => {
                let flags = operation.flags;
                match op_type {
                    bindings::KFI_OP_RECV | bindings::KFI_OP_SEND => Self::Msg(KBox::new(
                        bindings::kfi_op_msg {
                            ep,
                            msg: operation.msg(arrays),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    bindings::KFI_OP_TRECV | bindings::KFI_OP_TSEND => Self::Tagged(KBox::new(
                        bindings::kfi_op_tagged {
                            ep,
                            msg: operation.msg_tagged(arrays),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    bindings::KFI_OP_READ | bindings::KFI_OP_WRITE => Self::Rma(KBox::new(
                        bindings::kfi_op_rma {
                            ep,
                            msg: operation.msg_rma(arrays),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    bindings::KFI_OP_ATOMIC => Self::Atomic(KBox::new(
                        bindings::kfi_op_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    bindings::KFI_OP_FETCH_ATOMIC => Self::FetchAtomic(KBox::new(
                        bindings::kfi_op_fetch_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            fetch: arrays.fetch(),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    bindings::KFI_OP_COMPARE_ATOMIC => Self::CompareAtomic(KBox::new(
                        bindings::kfi_op_compare_atomic {
                            ep,
                            msg: operation.msg_atomic(arrays),
                            fetch: arrays.fetch(),
                            compare: arrays.compare(),
                            flags,
                        },
                        GFP_KERNEL,
                    )?),
                    _ => Self::None,
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
/// While the lock holds `false`, the domain it was made for holds this.
#[pin_data]
pub(crate) struct DeferredWork {
    raw: KBox<Opaque<bindings::kfi_deferred_work>>,
    domain: usize,
    objects: [usize; 4],
    /// Whether nobody needs the request any more. Held while that may change.
    #[pin]
    idle: Mutex<bool>,
    _structure: Structure,
    _arrays: Option<Arrays>,
    _segments: KVec<Segment>,
    _charge: Charge,
}

// SAFETY: The structures are for C, which may use them from any thread.
unsafe impl Send for DeferredWork {}
// SAFETY: As above.
unsafe impl Sync for DeferredWork {}

impl DeferredWork {
    /// Returns about how much memory requests take beside their arrays.
    pub(crate) const SIZE: usize =
        size_of::<Self>() + size_of::<bindings::kfi_deferred_work>() + 256;

    /// Makes a request for a domain, of any type (`enum kfi_op_type`).
    pub(crate) fn new(
        domain: &Domain,
        op_type: u32,
        threshold: u64,
        objects: &WorkObjects<'_>,
        operation: &WorkOperation<'_>,
        charge: Charge,
    ) -> Result<Arc<Self>> {
        let mut segments = KVec::new();
        let arrays = match operation {
            WorkOperation::Transfer(operation, shape) => {
                let lists = [operation.segments, operation.results, operation.compares];
                for segment in lists.iter().flat_map(|list| list.iter()) {
                    segments.push(segment.clone(), GFP_KERNEL)?;
                }
                Some(operation.arrays(*shape)?)
            }
            _ => None,
        };
        let mut structure = Structure::new(op_type, operation, objects, arrays.as_ref())?;
        let raw = KBox::new(
            Opaque::new(bindings::kfi_deferred_work {
                context: pin_init::zeroed(),
                threshold,
                triggering_cntr: AnyObject::or_null(objects.triggering_cntr).cast(),
                completion_cntr: AnyObject::or_null(objects.completion_cntr).cast(),
                op_type,
                op: structure.as_raw(),
            }),
            GFP_KERNEL,
        )?;
        let (domain, objects) = (domain.as_raw().addr(), objects.addresses());
        Arc::pin_init(
            pin_init!(Self {
                raw,
                domain,
                objects,
                // INVARIANT: It was not queued yet.
                idle <- new_mutex!(true, "kfi::DeferredWork::idle"),
                _structure: structure,
                _arrays: arrays,
                _segments: segments,
                _charge: charge,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether nobody needs the request any more.
    pub(crate) fn is_idle(&self) -> bool {
        *self.idle.lock()
    }
}

impl Domain {
    /// Carries out a command about deferred work.
    fn work_command(&self, command: u32, arg: *mut c_void) -> Result {
        // SAFETY: The domain is open; the callers see to the argument.
        to_result(unsafe { bindings::kfi_control(self.any().as_raw(), command.cast_signed(), arg) })
    }

    /// Queues a request that was made for this domain and these objects; `EINVAL` if it was not. May
    /// sleep.
    pub(crate) fn queue_work(
        &self,
        work: &Arc<DeferredWork>,
        objects: &WorkObjects<'_>,
    ) -> Result<Result> {
        if work.domain != self.as_raw().addr() || work.objects != objects.addresses() {
            return Err(EINVAL);
        }
        let pointer = work.raw.get();
        let mut idle = work.idle.lock();
        if *idle {
            self.works.queued.lock().try_create_and_insert(
                pointer.addr(),
                work.clone(),
                GFP_KERNEL,
            )?;
        }
        let was_idle = core::mem::replace(&mut *idle, false);
        // The objects are open, as they are the ones given; the structures stay, by the type
        // invariants of the request.
        let ret = self.work_command(bindings::KFI_QUEUE_WORK, pointer.cast());
        if ret.is_err() && was_idle {
            *idle = true;
            let old = self.works.queued.lock().remove(&pointer.addr());
            drop(old);
        }
        Ok(ret)
    }

    /// Queues NULL.
    pub(crate) fn queue_null(&self) -> Result {
        self.work_command(bindings::KFI_QUEUE_WORK, ptr::null_mut())
    }

    /// Cancels a request, of this domain or another. May sleep.
    pub(crate) fn cancel_work(&self, work: &Arc<DeferredWork>) -> Result {
        let pointer = work.raw.get();
        let mut idle = work.idle.lock();
        let ret = self.work_command(bindings::KFI_CANCEL_WORK, pointer.cast());
        if ret.is_ok() && work.domain == self.as_raw().addr() {
            *idle = true;
            let old = self.works.queued.lock().remove(&pointer.addr());
            drop(old);
        }
        ret
    }

    /// Frees a request, whose last reference this must be, and cancels the pointer to it, for
    /// providers that do not look at it. `EBUSY` if somebody may need the request.
    pub(crate) fn cancel_stale(&self, work: Arc<DeferredWork>) -> Result<Result> {
        if !work.is_idle() {
            return Err(EBUSY);
        }
        let pointer: *mut bindings::kfi_deferred_work = work.raw.get();
        drop(work);
        Ok(self.work_command(bindings::KFI_CANCEL_WORK, pointer.cast()))
    }

    /// Cancels NULL.
    pub(crate) fn cancel_null(&self) -> Result {
        self.work_command(bindings::KFI_CANCEL_WORK, ptr::null_mut())
    }

    /// Cancels all requests, or those that an object, given as counter, is to trigger. May sleep.
    pub(crate) fn flush_work(&self, cntr: Option<AnyObject<'_>>) -> Result {
        self.work_command(bindings::KFI_FLUSH_WORK, AnyObject::or_null(cntr).cast())
    }
}
