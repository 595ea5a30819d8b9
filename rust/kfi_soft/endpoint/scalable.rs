// SPDX-License-Identifier: GPL-2.0

//! Scalable endpoints: one address, several contexts.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    choose,
    name_of,
    named_port,
    whereabouts,
    EndpointAttributes,
    EndpointConfig,
    ReceiveContext,
    TransmitContext, //
};
use crate::{
    address::{
        auth_key::AuthKey,
        vector::AddressVector, //
    },
    domain::Domain,
    kfi::{
        context::Context,
        control::Control,
        errno::{
            EBADFLAGS,
            ENOAV,
            EOPBADSTATE, //
        },
        fid::{
            AnyFid,
            Fid,
            NewFid,
            Object,
            Opening, //
        },
        hold::Hold,
        info::InfoRef,
        provider::{
            kfi_rx_attr,
            kfi_tx_attr,
            Answer,
            Direction,
            Directions,
            EndpointOps,
            Operation,
            ReceiveClass,
            ScalableClass,
            TransmitClass, //
        }, //
    },
    limits,
    node::Port, //
};

/// The part of a scalable endpoint that changes.
struct State {
    port: Arc<Port>,
    av: Option<Hold<AddressVector>>,
    enabled: bool,
    /// Which transmit contexts are open.
    tx: KVec<bool>,
    /// Which receive contexts are open.
    rx: KVec<bool>,
}

impl State {
    fn contexts(&mut self, direction: Direction) -> &mut KVec<bool> {
        match direction {
            Direction::Transmit => &mut self.tx,
            Direction::Receive => &mut self.rx,
        }
    }
}

/// A scalable endpoint.
#[pin_data]
pub(crate) struct ScalableEndpoint {
    domain: Hold<Domain>,
    auth_key: Arc<AuthKey>,
    attributes: EndpointAttributes,
    #[pin]
    state: Mutex<State>,
}

/// Returns as many contexts as are wanted, or as there can be, none open.
fn contexts(wanted: usize, limit: usize) -> Result<KVec<bool>> {
    let count = choose(wanted, limit, limit)?;
    let mut open = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        open.push(false, GFP_KERNEL)?;
    }
    Ok(open)
}

impl ScalableEndpoint {
    /// Opens a scalable endpoint.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        info: InfoRef<'_>,
        opening: Opening<'o, ScalableClass>,
    ) -> Result<NewFid<'o, Self>> {
        let attributes = EndpointAttributes::new(info, domain)?;
        let (tx, rx) = info
            .ep_attr()
            .map_or((0, 0), |attr| (attr.tx_ctx_cnt, attr.rx_ctx_cnt));
        let tx = contexts(tx, limits::MAX_TX_CONTEXTS)?;
        let rx = contexts(rx, limits::MAX_RX_CONTEXTS)?;
        let (port, auth_key) = whereabouts(domain, info, Some(rx.len()))?;
        let domain = Hold::new(domain)?;
        NewFid::new(
            pin_init!(Self {
                domain,
                auth_key,
                attributes,
                state <- new_mutex!(
                    State {
                        port,
                        av: None,
                        enabled: false,
                        tx,
                        rx,
                    },
                    "kfi_soft::ScalableEndpoint::state"
                ),
            }),
            opening,
        )
    }

    /// Returns the address vector.
    pub(crate) fn av(&self) -> Option<Arc<Fid<AddressVector>>> {
        self.state.lock().av.as_ref().map(|av| av.fid().clone())
    }

    /// Takes a context; `EINVAL` if there is none of that number, `EADDRINUSE` if it is open.
    fn take_context(&self, direction: Direction, index: usize) -> Result {
        let mut state = self.state.lock();
        let open = state.contexts(direction).get_mut(index).ok_or(EINVAL)?;
        if core::mem::replace(open, true) {
            return Err(EADDRINUSE);
        }
        Ok(())
    }

    /// Notes that a context is closed.
    pub(crate) fn forget_context(&self, direction: Direction, index: usize) {
        if let Some(open) = self.state.lock().contexts(direction).get_mut(index) {
            *open = false;
        }
    }

    /// Returns what a context is made of.
    fn config(
        this: &Fid<Self>,
        direction: Direction,
        index: usize,
        attributes: EndpointAttributes,
    ) -> Result<EndpointConfig> {
        Ok(EndpointConfig {
            domain: Hold::new(this.domain.fid())?,
            parent: Some(Hold::new(this)?),
            port: this.state.lock().port.clone(),
            index,
            auth_key: this.auth_key.clone(),
            attributes,
            directions: Directions::only(direction),
        })
    }
}

impl Object for ScalableEndpoint {
    type Class = ScalableClass;

    fn release(&self) {
        let (av, port) = {
            let mut state = self.state.lock();
            (state.av.take(), state.port.clone())
        };
        port.close();
        if let Some(av) = &av {
            av.release();
        }
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        let av = other.downcast::<AddressVector>().ok_or(EINVAL)?;
        if flags != 0 {
            return Err(EBADFLAGS.into());
        }
        let mut state = this.state.lock();
        if state.enabled {
            return Err(EOPBADSTATE.into());
        }
        if state.av.is_some() || !Arc::ptr_eq(av.domain(), this.domain.fid()) {
            return Err(EINVAL);
        }
        state.av = Some(Hold::new(av)?);
        Ok(())
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            // Its contexts are enabled one by one, before or after this.
            Control::Enable => {
                let mut state = this.state.lock();
                if state.enabled {
                    return Err(EOPBADSTATE.into());
                }
                if state.av.is_none() {
                    return Err(ENOAV.into());
                }
                state.enabled = true;
                Ok(())
            }
            _ => Err(ENOSYS),
        }
    }
}

impl EndpointOps for ScalableEndpoint {
    type TransmitContext = TransmitContext;
    type ReceiveContext = ReceiveContext;

    /// Operations are posted to its contexts.
    fn post(_this: &Fid<Self>, _operation: Operation<'_>) -> Result {
        Err(EOPNOTSUPP)
    }

    fn cancel(&self, _context: Context) -> Result {
        Err(ENOENT)
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        let port = self.state.lock().port.clone();
        answer.tell(&name_of(&port, &self.domain))
    }

    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        let mut state = this.state.lock();
        if state.enabled {
            return Err(EOPBADSTATE.into());
        }
        // Contexts have the address that they were opened with.
        if state.tx.contains(&true) || state.rx.contains(&true) {
            return Err(EBUSY);
        }
        let node = this.domain.fabric().node();
        let new = named_port(
            node,
            &this.auth_key,
            &this.domain,
            name,
            &state.port,
            Some(state.rx.len()),
        )?;
        if let Some(new) = new {
            let old = core::mem::replace(&mut state.port, new);
            drop(state);
            old.close();
        }
        Ok(())
    }

    fn tx_context<'o>(
        this: &Fid<Self>,
        index: usize,
        attr: Option<&kfi_tx_attr>,
        opening: Opening<'o, TransmitClass>,
    ) -> Result<NewFid<'o, TransmitContext>> {
        let mut attributes = this.attributes;
        if let Some(attr) = attr {
            attributes = attributes.with_tx(attr)?;
        }
        this.take_context(Direction::Transmit, index)?;
        Self::config(this, Direction::Transmit, index, attributes)
            .and_then(|config| NewFid::new(TransmitContext::new(config), opening))
            .inspect_err(|_| this.forget_context(Direction::Transmit, index))
    }

    fn rx_context<'o>(
        this: &Fid<Self>,
        index: usize,
        attr: Option<&kfi_rx_attr>,
        opening: Opening<'o, ReceiveClass>,
    ) -> Result<NewFid<'o, ReceiveContext>> {
        let mut attributes = this.attributes;
        if let Some(attr) = attr {
            attributes = attributes.with_rx(attr)?;
        }
        this.take_context(Direction::Receive, index)?;
        Self::config(this, Direction::Receive, index, attributes)
            .and_then(|config| NewFid::new(ReceiveContext::new(config), opening))
            .inspect_err(|_| this.forget_context(Direction::Receive, index))
    }
}
