// SPDX-License-Identifier: GPL-2.0

//! A machine's place in the fabric: an endpoint, and what belongs to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kfi::{
    bits, AddressVector, AvAttr, Buffer, BufferKind, CompletionQueue, CqAttr, Domain, Endpoint,
    EpInfo, Error, Fabric, Form, InfoList, KfiErrno, Kind, MemoryRegion, MrAttr, Operation, Query,
    Session,
};

use crate::control::Life;
use crate::message::Lane;
use crate::Failure;

/// The key of the memory that peers write to.
pub(crate) const KEY: u64 = 7;
/// Bytes of it that each peer has for itself: a number for atomic operations, and what is written.
pub(crate) const SHARE: u64 = 32 << 10;
/// Where the shares begin; before that the machine says which of its lives that is.
pub(crate) const SHARES: u64 = 64;

/// Receives of each queue that are posted.
const RECEIVES: u64 = 24;
/// Operations that may be under way.
pub(crate) const SLOTS: u64 = 24;
/// Entries of the queues.
const QUEUE: u64 = 512;

/// Completions that are read at once.
const ROOM: usize = 16;

/// A message that a receive has brought.
pub(crate) struct Arrival<'a> {
    /// Which queue it came by.
    pub(crate) lane: Lane,
    /// Counts the receives, in the order in which they were posted.
    pub(crate) receive: u64,
    /// All of it.
    pub(crate) bytes: &'a [u8],
}

/// An endpoint, and what belongs to it. Fields are closed in this order.
pub(crate) struct Place {
    ep: Endpoint,
    _region: MemoryRegion,
    /// Completions of what was sent.
    pub(crate) sent: CompletionQueue,
    /// Completions of what was received.
    pub(crate) received: CompletionQueue,
    /// Peers.
    pub(crate) av: AddressVector,
    /// Memory that messages are sent from and reads go to: a part for each slot.
    pub(crate) outgoing: Buffer,
    incoming: Buffer,
    /// Memory that peers write to.
    _window: Buffer,
    /// Its address.
    pub(crate) name: Vec<u8>,
    longest: u64,
    /// How many receives were posted.
    posted: AtomicU64,
    _domain: Domain,
    _fabric: Fabric,
    _info: InfoList,
    _session: Session,
}

/// Where the share of a machine is in the memory of each peer.
pub(crate) fn share(machine: u32) -> u64 {
    SHARES + u64::from(machine - 1) * SHARE
}

impl Place {
    /// Opens one, with receives posted.
    pub(crate) fn open(life: Life, machines: u32, longest: u64) -> Result<Self, Failure> {
        let session = Session::open()?;
        let info = session.getinfo(&Query::new().provider("kfi_soft"))?;
        let fabric = info.fabric(0)?;
        let domain = fabric.domain(&info, 0)?;
        let av = domain.address_vector(&AvAttr::default())?;
        let attr = CqAttr::new().size(QUEUE);
        let sent = domain.completion_queue(&attr)?;
        let received = domain.completion_queue(&attr)?;

        // Before anybody can reach it.
        let window = session.buffer(BufferKind::VMALLOC, share(machines + 1))?;
        window.write(0, &life.number.to_le_bytes());
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
        let region = domain.register(&[window.all()], &MrAttr::new(access, KEY))?;

        let ep = domain.endpoint(EpInfo::Entry(&info, 0), 0)?;
        ep.bind(av.handle(), 0)?;
        ep.bind(sent.handle(), bits::TRANSMIT)?;
        ep.bind(received.handle(), bits::RECV)?;
        ep.enable()?;
        let name = ep.name()?;
        let outgoing = session.buffer(BufferKind::VMALLOC, SLOTS * longest.max(SHARE))?;
        let incoming = session.buffer(BufferKind::VMALLOC, 2 * RECEIVES * longest)?;
        let place = Self {
            ep,
            _region: region,
            sent,
            received,
            av,
            outgoing,
            incoming,
            _window: window,
            name,
            longest,
            posted: AtomicU64::new(0),
            _domain: domain,
            _fabric: fabric,
            _info: info,
            _session: session,
        };
        for number in 0..2 * RECEIVES {
            place.receive(number)?;
        }
        Ok(place)
    }

    /// Posts an operation; `false` if there is no room.
    pub(crate) fn post(&self, operation: &Operation) -> Result<bool, Failure> {
        match self.ep.post(operation) {
            Ok(()) => Ok(true),
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the memory of a slot begins.
    pub(crate) fn slot(&self, slot: u64) -> u64 {
        slot * self.longest.max(SHARE)
    }

    /// Posts a receive, to that part of the memory for them.
    fn receive(&self, number: u64) -> Result<(), Failure> {
        let from = number * self.longest;
        let kind = if number < RECEIVES {
            Kind::RECV
        } else {
            Kind::TRECV
        };
        // Relaxed: one thread posts them.
        let count = self.posted.fetch_add(1, Ordering::Relaxed);
        let operation = Operation::new(kind, Form::PLAIN)
            .segment(self.incoming.segment(from..from + self.longest))
            .tag(0, u64::MAX)
            .context(count * (2 * RECEIVES) + number);
        while !self.post(&operation)? {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Gives `note` what has come, for so long, and posts each receive again; returns whether there was
    /// anything.
    pub(crate) fn read(
        &self,
        patience: Duration,
        mut note: impl FnMut(Arrival<'_>),
    ) -> Result<bool, Failure> {
        let entries = match self.received.sread(ROOM, Some(patience)) {
            Ok(entries) => entries,
            Err(Error::Fabric(KfiErrno::ETIMEDOUT | KfiErrno::EAGAIN | KfiErrno::EINTR)) => {
                return Ok(false);
            }
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = self.received.read_err()?;
                if KfiErrno::new(error.err) != KfiErrno::EHOSTUNREACH {
                    return Err(format!("a receive has failed: {error:?}").into());
                }
                // The sender was gone before all of the message had come: it does not count.
                self.receive(error.entry.op_context % (2 * RECEIVES))?;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        for entry in &entries {
            let number = entry.op_context % (2 * RECEIVES);
            let from = (number * self.longest) as usize;
            let lane = if number < RECEIVES {
                Lane::Plain
            } else {
                Lane::Tagged
            };
            note(Arrival {
                lane,
                receive: entry.op_context / (2 * RECEIVES),
                bytes: &self.incoming.bytes(from..from + entry.len as usize),
            });
            self.receive(number)?;
        }
        Ok(!entries.is_empty())
    }
}
