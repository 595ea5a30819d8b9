// SPDX-License-Identifier: GPL-2.0

//! Contexts that endpoints of a domain share.
//!
//! A shared transmit context is the number of operations that may be under way in all endpoints
//! that are bound to it. A shared receive context is a queue of receives, from which all endpoints
//! that are bound to it take. Completions are reported by the objects bound to the endpoint that
//! has sent or received, or by what was bound to the shared context before that endpoint was
//! enabled.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    binds::{
        SharedBinds, //
    },
    prepare_receive,
    EndpointAttributes,
    MinMultiRecv, //
};
use crate::{
    domain::Domain,
    info,
    kfi::{
        addr::FabricAddr,
        context::Context,
        control::Control,
        errno::EBADFLAGS,
        fid::{
            AnyFid,
            Fid,
            NewFid,
            Object,
            Opening, //
        },
        flags::{
            Caps,
            OpFlags, //
        },
        hold::Hold,
        provider::{
            kfi_rx_attr,
            kfi_tx_attr,
            Direction,
            EndpointOps,
            NoReceiveContext,
            NoTransmitContext,
            Operation,
            SharedReceiveClass,
            SharedTransmitClass,
            SharedTransmitOps, //
        }, //
    },
    transfer::{
        completer::Completer,
        credits::Credits,
        receive_queue::{
            report_cancelled,
            ReceiveQueue, //
        }, //
    }, //
};

/// A transmit context that endpoints share.
#[pin_data]
pub(crate) struct SharedTransmitContext {
    domain: Hold<Domain>,
    credits: Arc<Credits>,
    #[pin]
    binds: SharedBinds,
}

impl SharedTransmitContext {
    /// Opens a shared transmit context.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        attr: Option<&kfi_tx_attr>,
        opening: Opening<'o, SharedTransmitClass>,
    ) -> Result<NewFid<'o, Self>> {
        let mut attributes = EndpointAttributes::of_domain(domain)?;
        if let Some(attr) = attr {
            attributes = attributes.with_tx(attr)?;
        }
        let credits = Credits::new_shared(attributes.tx_size)?;
        let domain = Hold::new(domain)?;
        NewFid::new(
            pin_init!(Self {
                domain,
                credits,
                binds <- SharedBinds::new(Direction::Transmit),
            }),
            opening,
        )
    }

    /// Returns what is bound to it.
    pub(super) fn binds(&self) -> &SharedBinds {
        &self.binds
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns what is shared.
    pub(crate) fn credits(&self) -> &Arc<Credits> {
        &self.credits
    }
}

impl Object for SharedTransmitContext {
    type Class = SharedTransmitClass;

    fn release(&self) {
        self.binds.release();
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        this.binds.bind(this.domain(), other, flags)
    }
}

impl SharedTransmitOps for SharedTransmitContext {}

/// A receive context that endpoints share.
#[pin_data]
pub(crate) struct SharedReceiveContext {
    domain: Hold<Domain>,
    queue: Arc<ReceiveQueue>,
    attributes: EndpointAttributes,
    min_multi_recv: MinMultiRecv,
    #[pin]
    binds: SharedBinds,
}

impl SharedReceiveContext {
    /// Opens a shared receive context.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        attr: Option<&kfi_rx_attr>,
        opening: Opening<'o, SharedReceiveClass>,
    ) -> Result<NewFid<'o, Self>> {
        let mut attributes = EndpointAttributes::of_domain(domain)?;
        if let Some(attr) = attr {
            attributes = attributes.with_rx(attr)?;
        }
        let queue = ReceiveQueue::new(domain, attributes.rx_size)?;
        let domain = Hold::new(domain)?;
        NewFid::new(
            pin_init!(Self {
                domain,
                queue,
                attributes,
                min_multi_recv: MinMultiRecv::new(),
                binds <- SharedBinds::new(Direction::Receive),
            }),
            opening,
        )
    }

    /// Returns what is bound to it.
    pub(super) fn binds(&self) -> &SharedBinds {
        &self.binds
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns the queue.
    pub(crate) fn queue(&self) -> &Arc<ReceiveQueue> {
        &self.queue
    }
}

impl Object for SharedReceiveContext {
    type Class = SharedReceiveClass;

    fn release(&self) {
        self.queue.close();
        self.binds.release();
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        this.binds.bind(this.domain(), other, flags)
    }

    fn control<'a>(_this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            // It is ready when it is opened.
            Control::Enable => Ok(()),
            _ => Err(ENOSYS),
        }
    }
}

impl EndpointOps for SharedReceiveContext {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        if !operation.kind().is_receive() {
            return Err(EOPNOTSUPP);
        }
        // There is no completion queue that would report it.
        let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD | OpFlags::TRIGGER;
        if operation.flags().intersects(looks) {
            return Err(EBADFLAGS.into());
        }
        // Peers have addresses in the vector of an endpoint, and no endpoint is named.
        let directed = info::allowed(this.attributes.rx_caps).contains(Caps::DIRECTED_RECV);
        if directed && operation.addr != FabricAddr::UNSPEC {
            return Err(EOPNOTSUPP);
        }
        // Cancelled receives are reported there.
        let completer = this.binds.completer();
        if let Some(completer) = &completer {
            completer.check_room()?;
        }
        let posted = prepare_receive(
            operation,
            &this.attributes,
            this.min_multi_recv.get(),
            None,
            GFP_NOWAIT,
            completer.as_deref(),
        )?;
        this.queue.post(posted)
    }

    fn min_multi_recv(&self) -> Result<usize> {
        Ok(self.min_multi_recv.get())
    }

    fn set_min_multi_recv(&self, size: usize) -> Result {
        self.min_multi_recv.set(size)
    }

    /// The objects bound to the context report it. Without a queue there the receive is gone when
    /// this returns 0; `EBUSY` if messages are being delivered to it, the last of which reports the
    /// release where the others are reported.
    fn cancel(&self, context: Context) -> Result {
        let posted = self.queue.take(context).ok_or(ENOENT)?;
        let completer = self.binds.completer();
        let ended = match &completer {
            Some(completer) => report_cancelled(completer, posted),
            None => report_cancelled(&Completer::none(), posted),
        };
        if ended || completer.is_some_and(|completer| completer.has_queue()) {
            Ok(())
        } else {
            Err(EBUSY)
        }
    }
}
