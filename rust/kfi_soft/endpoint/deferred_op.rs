// SPDX-License-Identifier: GPL-2.0

//! Operations that were submitted to begin later: triggered operations and deferred work.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::{
    Alias,
    Endpoint,
    EndpointState,
    HasEndpointState,
    ReceiveContext,
    SharedReceiveContext,
    TransmitContext, //
};
use crate::{
    budget::{
        self,
        INLINE_LIMIT, //
    },
    counter::Counter,
    domain::Domain,
    info,
    kfi::{
        context::Context,
        errno::{
            EBADFLAGS,
            EOPBADSTATE, //
        },
        fid::{
            AnyFid,
            Fid, //
        },
        flags::{
            Caps,
            OpFlags, //
        },
        hold::Hold,
        linux::queue::Entry,
        provider::{
            Kind,
            Operation,
            Trigger, //
        }, //
    },
    transfer::{
        receive_queue::Posted,
        receiver::Receiver,
        transmitter::{
            Transmitter,
            Unsent, //
        }, //
    },
    trigger::{
        pending::{
            self,
            TriggeredOp, //
        },
        pending_table::PendingOwner, //
    },
    wire::atomics::Atomics, //
};

/// An operation of a transmit context that begins later.
struct DeferredSend {
    transmitter: Arc<Transmitter>,
    unsent: Entry<Unsent>,
    /// The endpoint.
    owner: PendingOwner,
    context: Context,
}

impl TriggeredOp for DeferredSend {
    fn begin(self: KBox<Self>, begun: &dyn Fn() -> bool) {
        let this = KBox::into_inner(self);
        Transmitter::start_fired(&this.transmitter, this.unsent, begun);
    }

    fn cancel(self: KBox<Self>) {
        let this = KBox::into_inner(self);
        Transmitter::cancel_fired(&this.transmitter, this.unsent);
    }

    fn owner(&self) -> PendingOwner {
        self.owner
    }

    fn bytes(&self) -> usize {
        // More is left to a work queue.
        budget::copied(self.unsent.len())
    }

    fn context(&self) -> Context {
        self.context
    }
}

/// A receive that is posted later.
struct DeferredRecv {
    receiver: Arc<Receiver>,
    posted: Entry<Posted>,
    /// The endpoint.
    owner: PendingOwner,
    context: Context,
}

impl TriggeredOp for DeferredRecv {
    fn begin(self: KBox<Self>, begun: &dyn Fn() -> bool) {
        let this = KBox::into_inner(self);
        if let Some(posted) = this.receiver.post_fired(this.posted, begun) {
            this.receiver.cancel_fired(posted);
        }
    }

    fn cancel(self: KBox<Self>) {
        let this = KBox::into_inner(self);
        this.receiver.cancel_fired(this.posted);
    }

    fn owner(&self) -> PendingOwner {
        self.owner
    }

    fn bytes(&self) -> usize {
        // A message may be waiting for it.
        INLINE_LIMIT
    }

    fn context(&self) -> Context {
        self.context
    }
}

/// How an operation that begins later was submitted.
enum SubmittedBy {
    /// By a post with a trigger.
    TriggeredPost,
    /// By a deferred work, with its completion counter.
    Work {
        completion_cntr: Option<Hold<Counter>>,
    },
}

impl EndpointState {
    /// Checks an operation and copies all of its arguments.
    ///
    /// `EAGAIN` if too many have fired already and wait for room, or there is no memory.
    fn prepare_deferred(
        &self,
        operation: Operation<'_>,
        by: SubmittedBy,
        flags: Flags,
    ) -> Result<KBox<dyn TriggeredOp>> {
        let (is_deferred, completion_cntr) = match by {
            SubmittedBy::TriggeredPost => (false, None),
            SubmittedBy::Work { completion_cntr } => (true, completion_cntr),
        };
        let context = operation.context();
        let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD;
        if operation.kind().is_receive() {
            let receiver = self.own_receiver()?;
            // They look at what is there now.
            if operation.flags().intersects(looks) {
                return Err(EBADFLAGS.into());
            }
            if receiver.is_backed_up() {
                return Err(EAGAIN);
            }
            let mut posted = self.prepare_receive(receiver, operation, flags)?;
            posted.deferred = is_deferred;
            posted.set_notify(completion_cntr);
            let deferred = DeferredRecv {
                receiver: receiver.clone(),
                posted,
                owner: self.owner()?,
                context,
            };
            let deferred: KBox<dyn TriggeredOp> = KBox::new(deferred, flags).map_err(|_| EAGAIN)?;
            Ok(deferred)
        } else {
            if !self.directions.transmit {
                return Err(EOPNOTSUPP);
            }
            let transmitter = self.transmitter.as_ref().ok_or(EOPBADSTATE)?;
            if transmitter.is_backed_up() {
                return Err(EAGAIN);
            }
            let mut prepared = transmitter.prepare(operation, is_deferred, flags, None)?;
            prepared.set_notify(completion_cntr);
            let deferred = DeferredSend {
                unsent: Transmitter::pack(transmitter, prepared, flags)?,
                transmitter: transmitter.clone(),
                owner: self.owner()?,
                context,
            };
            let deferred: KBox<dyn TriggeredOp> = KBox::new(deferred, flags).map_err(|_| EAGAIN)?;
            Ok(deferred)
        }
    }

    /// Posts an operation that waits for a counter.
    pub(super) fn post_triggered(&self, operation: Operation<'_>, trigger: &Trigger<'_>) -> Result {
        if !info::allowed(self.attributes.caps).contains(Caps::TRIGGER) {
            return Err(EOPNOTSUPP);
        }
        let counter = trigger.counter.downcast::<Counter>().ok_or(EINVAL)?;
        if !Arc::ptr_eq(counter.domain(), self.domain()) {
            return Err(EINVAL);
        }
        let by = SubmittedBy::TriggeredPost;
        let transfer = self.prepare_deferred(operation, by, GFP_NOWAIT)?;
        pending::submit_triggered(counter, trigger.threshold, transfer)
    }
}

/// Returns what an object is that is an endpoint or a context, or an alias of one.
fn state_of(fid: AnyFid<'_>) -> Option<&EndpointState> {
    fn of<'a, T: HasEndpointState>(fid: AnyFid<'a>) -> Option<&'a EndpointState> {
        fid.downcast::<T>().map(|fid| fid.endpoint_state())
    }
    of::<Endpoint>(fid)
        .or_else(|| of::<TransmitContext>(fid))
        .or_else(|| of::<ReceiveContext>(fid))
        .or_else(|| {
            fid.downcast::<Alias<Endpoint>>()
                .map(|fid| fid.base().endpoint_state())
        })
        .or_else(|| {
            fid.downcast::<Alias<TransmitContext>>()
                .map(|fid| fid.base().endpoint_state())
        })
        .or_else(|| {
            fid.downcast::<Alias<ReceiveContext>>()
                .map(|fid| fid.base().endpoint_state())
        })
}

/// Prepares a data transfer of deferred work (R-DWQ-16, R-DWQ-17).
pub(crate) fn prepare(
    endpoint: AnyFid<'_>,
    operation: Operation<'_>,
    completion: Option<Hold<Counter>>,
    domain: &Fid<Domain>,
) -> Result<KBox<dyn TriggeredOp>> {
    let Some(state) = state_of(endpoint) else {
        let shared = endpoint.downcast::<SharedReceiveContext>().ok_or(EINVAL)?;
        // There is no endpoint that has the capabilities and that could report.
        let known = core::ptr::eq(&**shared.domain(), domain) && operation.kind().is_receive();
        return Err(if known { ENOSYS } else { EINVAL });
    };
    if !core::ptr::eq(&**state.domain(), domain) {
        return Err(EINVAL);
    }
    if let Kind::Atomic(atomics) = operation.kind() {
        Atomics::new(atomics.datatype, atomics.op, atomics.form.call()).map_err(|_| ENOSYS)?;
    }
    let by = SubmittedBy::Work {
        completion_cntr: completion,
    };
    state.prepare_deferred(operation, by, GFP_KERNEL)
}
