// SPDX-License-Identifier: GPL-2.0

//! Endpoints that know each other, with queues, counters and memory.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kfi::{
    bits, uapi, AddressVector, AvAttr, Buffer, BufferKind, Completion, CompletionError,
    CompletionQueue, Counter, CqAttr, Endpoint, EpInfo, Error, Form, Handle, KfiErrno, Kind,
    MemoryRegion, MrAttr, Operation, Segment,
};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::check_eq;
use crate::env::Env;
use crate::rig::Rig;

/// So long nothing takes that works.
pub const LONG: Duration = Duration::from_secs(60);

/// As many completions are read at once.
pub const ROOM: usize = uapi::KFI_SHIM_CQ_READ_MAX as usize;

/// What the endpoints are like.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many.
    pub peers: usize,
    /// Bytes of memory of each.
    pub memory: u64,
    /// Operations under way; 0 for the provider's choice.
    pub tx_size: u64,
    /// Receives; 0 for the provider's choice.
    pub rx_size: u64,
    /// Completions of successes only if they are asked for.
    pub selective: bool,
    /// Entries of a completion queue.
    pub queue: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            peers: 2,
            memory: 64 << 10,
            tx_size: 0,
            rx_size: 0,
            selective: false,
            queue: 1024,
        }
    }
}

/// An endpoint with what belongs to it. Dropped, it closes in order.
#[derive(Debug)]
pub struct Peer {
    /// The endpoint.
    pub ep: Endpoint,
    /// What the others call it.
    pub addr: u64,
    /// Completions of what it sends, writes and reads.
    pub tx: CompletionQueue,
    /// Completions of what it receives.
    pub rx: CompletionQueue,
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
    pub av: AddressVector,
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
        let av = rig.domain.address_vector(&AvAttr::default())?;
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
            expect_none(&peer.tx)?;
            expect_none(&peer.rx)?;
        }
        let Self {
            peers,
            av,
            counters,
            rig,
        } = self;
        for peer in peers {
            peer.ep.close().map_err(|(_, error)| error)?;
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
        av.close().map_err(|(_, error)| error)?;
        rig.close()
    }
}

impl Peer {
    fn new(rig: &Rig, av: &AddressVector, setup: &Setup, key: u64) -> Result<Self, Stop> {
        let mut info = rig.info.entries()[0].clone();
        if setup.tx_size != 0 {
            info.tx_attr.size = setup.tx_size;
        }
        if setup.rx_size != 0 {
            info.rx_attr.size = setup.rx_size;
        }
        let ep = rig.domain.endpoint(EpInfo::Value(&info), 0)?;
        let attr = CqAttr::new().size(setup.queue);
        let tx = rig.domain.completion_queue(&attr)?;
        let rx = rig.domain.completion_queue(&attr)?;
        let selective = if setup.selective {
            bits::SELECTIVE_COMPLETION
        } else {
            0
        };
        ep.bind(av.handle(), 0)?;
        ep.bind(tx.handle(), bits::TRANSMIT | selective)?;
        ep.bind(rx.handle(), bits::RECV | selective)?;
        let sent = rig.counter()?;
        let received = rig.counter()?;
        let remote = rig.counter()?;
        ep.bind(sent.handle(), bits::SEND | bits::WRITE | bits::READ)?;
        ep.bind(received.handle(), bits::RECV)?;
        ep.bind(remote.handle(), bits::REMOTE_READ | bits::REMOTE_WRITE)?;
        ep.enable()?;
        let addr = av.insert(&ep.name()?)?;

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
            ep,
            addr,
            tx,
            rx,
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

/// Waits for one completion.
#[track_caller]
pub fn completion(queue: &CompletionQueue) -> Result<Completion, Stop> {
    match queue.sread(1, Some(LONG)) {
        Ok(entries) => entries
            .first()
            .copied()
            .ok_or_else(|| Stop::fail("no completion")),
        Err(Error::Fabric(KfiErrno::EAVAIL)) => {
            Err(Stop::fail(format!("an error: {:?}", queue.read_err()?)))
        }
        Err(error) => Err(Stop::fail(error)),
    }
}

/// Waits for the completion of this operation.
#[track_caller]
pub fn expect_completion(queue: &CompletionQueue, context: u64) -> Outcome {
    let is = completion(queue)?.op_context;
    if is != context {
        return Err(Stop::fail(format!(
            "completion of {is}, should be of {context}"
        )));
    }
    Ok(())
}

/// Waits for completions: the contexts.
pub fn contexts(queue: &CompletionQueue, count: usize) -> Result<Vec<u64>, Stop> {
    let mut contexts = Vec::new();
    while contexts.len() < count {
        match queue.sread((count - contexts.len()).min(ROOM), Some(LONG)) {
            Ok(entries) => contexts.extend(entries.iter().map(|entry| entry.op_context)),
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                return Err(Stop::fail(format!("an error: {:?}", queue.read_err()?)))
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(contexts)
}

/// Waits for the failure of an operation.
#[track_caller]
pub fn expect_error(
    queue: &CompletionQueue,
    context: u64,
    errno: Option<KfiErrno>,
) -> Result<CompletionError, Stop> {
    match queue.sread(1, Some(LONG)) {
        Err(Error::Fabric(KfiErrno::EAVAIL)) => {}
        other => return Err(Stop::fail(format!("{other:?}, should be an error"))),
    }
    let error = queue.read_err()?;
    let right = errno.is_none_or(|errno| KfiErrno::new(error.err) == errno);
    if error.entry.op_context != context || !right {
        return Err(Stop::fail(format!(
            "{error:?}, should be {errno:?} of {context}"
        )));
    }
    Ok(error)
}

/// There is no completion.
#[track_caller]
pub fn expect_none(queue: &CompletionQueue) -> Outcome {
    match queue.read(1) {
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(()),
        Err(Error::Fabric(KfiErrno::EAVAIL)) => {
            Err(Stop::fail(format!("an error: {:?}", queue.read_err()?)))
        }
        other => Err(Stop::fail(format!("{other:?}, should be nothing"))),
    }
}

/// Waits until a counter has got there, and is not beyond.
#[track_caller]
pub fn expect_count(counter: &Counter, success: u64, error: u64) -> Outcome {
    let end = std::time::Instant::now() + LONG;
    loop {
        let is = (counter.read()?, counter.read_err()?);
        if is == (success, error) {
            return Ok(());
        }
        let beyond = is.0 > success || is.1 > error;
        if beyond || std::time::Instant::now() > end {
            return Err(Stop::fail(format!(
                "counter is {is:?}, should be {:?}",
                (success, error)
            )));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// All is over that was begun: nothing is pending and nothing comes any more, as
/// far as a thread can tell that gives others time.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Waits for completions, in this order, and no more.
pub fn expect_contexts(queue: &CompletionQueue, should: &[u64]) -> Outcome {
    let is = contexts(queue, should.len())?;
    check_eq!(is, should, "order of completions");
    expect_none(queue)
}
