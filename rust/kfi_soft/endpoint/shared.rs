// SPDX-License-Identifier: GPL-2.0

//! Contexts that endpoints of a domain share.
//!
//! A shared transmit context is the number of operations that may be under way in all endpoints
//! that are bound to it. A shared receive context is a queue of receives, from which all endpoints
//! that are bound to it take; completions are told by the queue of the endpoint that has received.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    prepare_receive,
    Attributes, //
};
use crate::{
    domain::Domain,
    kfi::{
        control::Control,
        errno::EBADFLAGS,
        fid::{
            Context,
            Fid,
            Object, //
        },
        flags::OpFlags,
        hold::Hold,
        provider::{
            kfi_rx_attr,
            kfi_tx_attr,
            EndpointOps,
            NoContext,
            Operation,
            SharedReceiveClass,
            SharedTransmitClass,
            SharedTransmitOps, //
        },
        queue::Entry, //
    },
    limits,
    receive_queue::ReceiveQueue,
    transmitter::Credits, //
};

/// A transmit context that endpoints share.
pub(crate) struct SharedTransmitContext {
    domain: Hold<Domain>,
    credits: Arc<Credits>,
}

impl SharedTransmitContext {
    /// Opens a shared transmit context.
    pub(crate) fn open(
        domain: &Fid<Domain>,
        attr: Option<&kfi_tx_attr>,
        context: Context,
    ) -> Result<Arc<Fid<Self>>> {
        let mut attributes = Attributes::of_domain(domain)?;
        if let Some(attr) = attr {
            attributes = attributes.with_tx(attr)?;
        }
        let credits = Credits::new(attributes.tx_size)?;
        Fid::new(
            Self {
                domain: Hold::new(domain)?,
                credits,
            },
            context,
        )
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
        self.domain.release();
    }
}

impl SharedTransmitOps for SharedTransmitContext {}

/// A receive context that endpoints share.
pub(crate) struct SharedReceiveContext {
    domain: Hold<Domain>,
    queue: Arc<ReceiveQueue>,
    attributes: Attributes,
}

impl SharedReceiveContext {
    /// Opens a shared receive context.
    pub(crate) fn open(
        domain: &Fid<Domain>,
        attr: Option<&kfi_rx_attr>,
        context: Context,
    ) -> Result<Arc<Fid<Self>>> {
        let mut attributes = Attributes::of_domain(domain)?;
        if let Some(attr) = attr {
            attributes = attributes.with_rx(attr)?;
        }
        let queue = ReceiveQueue::new(domain.fabric().node().clone(), attributes.rx_size)?;
        Fid::new(
            Self {
                domain: Hold::new(domain)?,
                queue,
                attributes,
            },
            context,
        )
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
        self.domain.release();
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
    type TransmitContext = NoContext;
    type ReceiveContext = NoContext;

    fn default_flags(&self, receive: bool) -> OpFlags {
        if receive {
            self.attributes.rx_flags
        } else {
            OpFlags::NONE
        }
    }

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        if !operation.kind.is_receive() {
            return Err(EOPNOTSUPP);
        }
        // Whose completion queue would tell?
        let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD | OpFlags::TRIGGER;
        if operation.flags.intersects(looks) {
            return Err(EBADFLAGS.into());
        }
        let posted = prepare_receive(
            &operation,
            &this.attributes,
            limits::MIN_MULTI_RECV,
            None,
            GFP_NOWAIT,
            || Ok(None),
        )?;
        let entry = Entry::new(posted, GFP_NOWAIT).map_err(|_| EAGAIN)?;
        this.queue.post(entry)
    }

    /// Nobody tells the end of a receive that no endpoint has used: it is gone when this returns.
    fn cancel(&self, context: Context) -> Result {
        let posted = self.queue.take(context).ok_or(ENOENT)?;
        posted.give_up();
        Ok(())
    }
}
