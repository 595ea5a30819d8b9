// SPDX-License-Identifier: GPL-2.0

//! Several endpoints of one domain.

use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};

use kfi::{
    bits, uapi, AddressVector, AvAttr, Buffer, BufferKind, Counter, EpInfo, Error, Form, Handle,
    Kind, MemoryRegion, MrAttr, Operation, Segment,
};
use rustix::io::Errno;

use super::{End, Setup};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{unshare, Rig};

/// Entries of a queue, if it does not matter.
const QUEUE: u64 = 1024;

/// An endpoint with what belongs to it. Dropped, it closes in order.
#[derive(Debug)]
pub struct Peer {
    /// The endpoint.
    pub end: End,
    /// Its address in the vector that all have.
    pub addr: u64,
    /// Counts what it has sent, written and read.
    pub sent: Arc<Counter>,
    /// Counts what it has received.
    pub received: Arc<Counter>,
    /// Counts what others have written and read.
    pub remote: Arc<Counter>,
    /// Where others may write and read: all of `memory`.
    pub region: MemoryRegion,
    /// Its memory.
    pub memory: Buffer,
    key: u64,
}

/// Several endpoints of one domain.
#[derive(Debug)]
pub struct Net {
    /// The endpoints.
    pub peers: Vec<Peer>,
    /// Where their addresses are.
    pub av: Arc<AddressVector>,
    /// Handles of counters.
    counters: Mutex<Vec<Handle>>,
    /// The domain.
    pub rig: Rig,
}

impl Net {
    /// Opens two.
    pub fn pair(env: &Env) -> Result<Self, Stop> {
        Self::new(env, &Setup::default())
    }

    /// Opens endpoints.
    pub fn new(env: &Env, setup: &Setup) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        let av = Arc::new(rig.domain.address_vector(&AvAttr::default())?);
        let mut peers = Vec::new();
        for index in 0..setup.peers {
            peers.push(Peer::new(&rig, &av, setup, index as u64)?);
        }
        Ok(Self {
            peers,
            av,
            counters: Mutex::new(Vec::new()),
            rig,
        })
    }

    /// A counter of the same domain.
    pub fn counter(&self) -> Result<Arc<Counter>, Stop> {
        let counter = self.rig.counter()?;
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.push(counter.handle());
        Ok(counter)
    }

    /// A write from one to another: in their memories, so many bytes.
    pub fn write(&self, from: usize, to: usize, source: u64, target: u64, len: u64) -> Operation {
        let (from, to) = (&self.peers[from], &self.peers[to]);
        Operation::new(Kind::WRITE, Form::MSG)
            .segment(from.segment(source..source + len))
            .rma(target, len, to.key)
            .to(to.addr)
    }

    /// A read by one from another.
    pub fn read(&self, by: usize, from: usize, target: u64, source: u64, len: u64) -> Operation {
        let (by, from) = (&self.peers[by], &self.peers[from]);
        Operation::new(Kind::READ, Form::MSG)
            .segment(by.segment(target..target + len))
            .rma(source, len, from.key)
            .to(from.addr)
    }

    /// A message from one to another.
    pub fn send(&self, from: usize, to: usize, source: u64, len: u64) -> Operation {
        Operation::new(Kind::SEND, Form::MSG)
            .segment(self.peers[from].segment(source..source + len))
            .to(self.peers[to].addr)
    }

    /// A receive.
    pub fn receive(&self, by: usize, target: u64, len: u64) -> Operation {
        Operation::new(Kind::RECV, Form::MSG).segment(self.peers[by].segment(target..target + len))
    }

    /// An atomic operation of a kind on so many 64-bit numbers: `source` has the
    /// operands and `target` is at the other end.
    pub fn atomic(
        &self,
        kind: Kind,
        op: u32,
        ends: (usize, usize),
        source: u64,
        target: u64,
        count: u64,
    ) -> Operation {
        let (from, to) = (&self.peers[ends.0], &self.peers[ends.1]);
        Operation::new(kind, Form::MSG)
            .segment(from.memory.elements(source, count))
            .rma(target, count, to.key)
            .atomic(uapi::KFI_UINT64, op)
            .to(to.addr)
    }

    /// Adds the number at `source` to that at `target`, and fetches what it was.
    pub fn fetch_add(&self, ends: (usize, usize), source: u64, target: u64, to: u64) -> Operation {
        self.atomic(Kind::FETCH_ATOMIC, uapi::KFI_SUM, ends, source, target, 1)
            .result(self.peers[ends.0].memory.elements(to, 1))
    }

    /// Nobody has completions left, and all closes, the counters of the test
    /// included: nothing is pending on them.
    pub fn close(self) -> Outcome {
        for peer in &self.peers {
            peer.quiet()?;
        }
        let Self {
            peers,
            av,
            counters,
            rig,
        } = self;
        for peer in peers {
            peer.end.ep.close().map_err(|(_, error)| error)?;
            peer.region.close().map_err(|(_, error)| error)?;
        }
        let counters = counters.into_inner();
        for handle in counters.unwrap_or_else(PoisonError::into_inner) {
            match rig.session.close_handle(handle) {
                // The test may have closed it.
                Ok(()) | Err(Error::Os(Errno::BADF)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        unshare(av)?.close().map_err(|(_, error)| error)?;
        rig.close()
    }
}

impl Deref for Peer {
    type Target = End;

    fn deref(&self) -> &End {
        &self.end
    }
}

impl Peer {
    fn new(rig: &Rig, av: &Arc<AddressVector>, setup: &Setup, key: u64) -> Result<Self, Stop> {
        let mut info = rig.info.entries()[0].clone();
        if setup.tx_size != 0 {
            info.tx_attr.size = setup.tx_size;
        }
        if setup.rx_size != 0 {
            info.rx_attr.size = setup.rx_size;
        }
        let setup = Setup {
            cq_size: if setup.cq_size == 0 {
                QUEUE
            } else {
                setup.cq_size
            },
            ..setup.clone()
        };
        let mut end = End::open_with(&rig.domain, EpInfo::Value(&info), &setup, || Ok(av.clone()))?;
        let sent = rig.counter()?;
        let received = rig.counter()?;
        let remote = rig.counter()?;
        end.ep
            .bind(sent.handle(), bits::SEND | bits::WRITE | bits::READ)?;
        end.ep.bind(received.handle(), bits::RECV)?;
        end.ep
            .bind(remote.handle(), bits::REMOTE_READ | bits::REMOTE_WRITE)?;
        end.enable()?;
        let addr = av.insert(&end.name)?;

        let memory = rig.session.buffer(BufferKind::VMALLOC, setup.memory)?;
        let access = bits::SEND
            | bits::RECV
            | bits::READ
            | bits::WRITE
            | bits::REMOTE_READ
            | bits::REMOTE_WRITE;
        let attr = MrAttr::new(access, key);
        let region = rig.domain.register(&[memory.all()], &attr)?;
        Ok(Self {
            key: region.key()?,
            end,
            addr,
            sent,
            received,
            remote,
            region,
            memory,
        })
    }

    /// A piece of its memory.
    pub fn segment(&self, range: Range<u64>) -> Segment {
        self.memory.segment(range)
    }

    /// The key of its memory.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// A number in its memory.
    pub fn number(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(offset as usize, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// Writes a number to its memory.
    pub fn set_number(&self, offset: u64, number: u64) {
        self.memory.write(offset as usize, &number.to_ne_bytes());
    }

    /// Fills some of its memory.
    pub fn fill(&self, range: Range<u64>, byte: u8) {
        let len = (range.end - range.start) as usize;
        self.memory.write(range.start as usize, &vec![byte; len]);
    }

    /// Some of its memory is all of this.
    #[track_caller]
    pub fn expect_filled(&self, range: Range<u64>, byte: u8) -> Outcome {
        let bytes = self.memory.bytes(range.start as usize..range.end as usize);
        match bytes.iter().position(|other| *other != byte) {
            None => Ok(()),
            Some(at) => Err(Stop::fail(format!(
                "byte {at} of {} is {:#x}, should be {byte:#x}",
                bytes.len(),
                bytes[at]
            ))),
        }
    }
}
