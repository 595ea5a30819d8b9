// SPDX-License-Identifier: GPL-2.0

//! An endpoint and what is bound to it.

use std::sync::Arc;

use kfi::{
    bits, AddressVector, AvAttr, Caps, CompletionQueue, CqAttr, Domain, Endpoint, EpInfo, Error,
    Form, InfoEntry, KfiErrno, Kind, Operation, Segment,
};

use super::quiet;
use crate::check::{Outcome, Stop};

/// Ends the test unless the provider has these capabilities.
pub fn needs(entry: &InfoEntry, caps: Caps) -> Outcome {
    let missing = caps - entry.caps;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::Skip(format!("the provider does not have {missing}")))
}

/// How endpoints are to be; by default as the provider likes it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Attributes, if not those of the answer.
    pub entry: Option<InfoEntry>,
    /// Further flags for the queue of the transmit direction.
    pub tx_bind: u64,
    /// Further flags for the queue of the receive direction.
    pub rx_bind: u64,
    /// Completions of successes only if they are asked for.
    pub selective: bool,
    /// Entries of the queues.
    pub cq_size: u64,
    /// Of the address vector.
    pub rx_ctx_bits: i32,
    /// Operations under way in a [`Net`](super::Net); 0 for the provider's choice.
    pub tx_size: u64,
    /// Receives in a [`Net`](super::Net); 0 for the provider's choice.
    pub rx_size: u64,
    /// How many there are in a [`Net`](super::Net).
    pub peers: usize,
    /// Bytes of memory of each in a [`Net`](super::Net).
    pub memory: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            entry: None,
            tx_size: 0,
            rx_size: 0,
            tx_bind: 0,
            rx_bind: 0,
            selective: false,
            cq_size: 0,
            rx_ctx_bits: 0,
            peers: 2,
            memory: 64 << 10,
        }
    }
}

/// An endpoint and what is bound to it.
#[derive(Debug)]
pub struct End {
    /// The endpoint.
    pub ep: Endpoint,
    /// Completions of the transmit direction.
    pub tx: CompletionQueue,
    /// Completions of the receive direction.
    pub rx: CompletionQueue,
    /// The addresses that it knows.
    pub av: Arc<AddressVector>,
    /// The address of the other end, once they are connected.
    pub peer: u64,
    /// Its own address, as others know it.
    pub name: Vec<u8>,
}

impl End {
    /// Opens an endpoint that is not enabled yet.
    pub fn open(domain: &Domain, info: EpInfo<'_>, setup: &Setup) -> Result<Self, Stop> {
        Self::open_with(domain, info, setup, || {
            Ok(Arc::new(domain.address_vector(&AvAttr {
                rx_ctx_bits: setup.rx_ctx_bits,
                ..AvAttr::default()
            })?))
        })
    }

    /// Opens one with an address vector that others may have, too.
    pub(super) fn open_with(
        domain: &Domain,
        info: EpInfo<'_>,
        setup: &Setup,
        av: impl FnOnce() -> Result<Arc<AddressVector>, Stop>,
    ) -> Result<Self, Stop> {
        let info = setup.entry.as_ref().map_or(info, EpInfo::Value);
        let ep = match domain.endpoint(info, 0) {
            Err(Error::Fabric(KfiErrno::ENOSYS)) => {
                return Err(Stop::Skip("the provider has no endpoints".to_owned()));
            }
            ep => ep?,
        };
        let cq = CqAttr::new().size(setup.cq_size);
        let end = Self {
            ep,
            tx: domain.completion_queue(&cq)?,
            rx: domain.completion_queue(&cq)?,
            av: av()?,
            peer: 0,
            name: Vec::new(),
        };
        let selective = if setup.selective {
            bits::SELECTIVE_COMPLETION
        } else {
            0
        };
        end.ep.bind(end.av.handle(), 0)?;
        end.ep
            .bind(end.tx.handle(), bits::TRANSMIT | selective | setup.tx_bind)?;
        end.ep
            .bind(end.rx.handle(), bits::RECV | selective | setup.rx_bind)?;
        Ok(end)
    }

    /// Enables it.
    pub fn enable(&mut self) -> Outcome {
        self.ep.enable()?;
        self.name = self.ep.name()?;
        Ok(())
    }

    /// Makes another one known to this one, as its peer.
    pub fn connect(&mut self, other: &Self) -> Outcome {
        self.peer = self.av.insert(&other.name)?;
        Ok(())
    }

    /// Posts an operation, again and again while there is no room.
    pub fn post(&self, operation: &Operation) -> Outcome {
        loop {
            match self.ep.post(operation) {
                Err(Error::Fabric(KfiErrno::EAGAIN)) => kfi_host::thread::relax(),
                result => return Ok(result?),
            }
        }
    }

    /// A plain send to the peer.
    pub fn send(&self, segment: Segment, context: u64) -> Outcome {
        self.post(
            &Operation::new(Kind::SEND, Form::PLAIN)
                .segment(segment)
                .to(self.peer)
                .context(context),
        )
    }

    /// A plain receive, from anybody.
    pub fn recv(&self, segment: Segment, context: u64) -> Outcome {
        self.post(
            &Operation::new(Kind::RECV, Form::PLAIN)
                .segment(segment)
                .context(context),
        )
    }

    /// An operation on the peer.
    pub fn operation(&self, kind: Kind, form: Form) -> Operation {
        Operation::new(kind, form).to(self.peer)
    }

    /// Nothing is to be read from the queues.
    pub fn quiet(&self) -> Outcome {
        quiet(&self.tx)?;
        quiet(&self.rx)
    }
}
