// SPDX-License-Identifier: GPL-2.0

//! Two endpoints that know each other, and memory with a pattern in it.

use std::ops::Deref;

use kfi::{
    bits, AddressVector, AvAttr, Buffer, BufferKind, Caps, Completion, CompletionError,
    CompletionQueue, CqAttr, Domain, Endpoint, EpInfo, Error, Form, InfoEntry, KfiErrno, Kind,
    MemoryRegion, MrAttr, Operation, Segment, Session,
};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::Rig;
use crate::{check, check_eq};

/// What completions say, exactly.
#[allow(missing_docs)]
pub mod done {
    use kfi::bits::{ATOMIC, MSG, READ, RECV, REMOTE_READ, REMOTE_WRITE, RMA, SEND, TAGGED, WRITE};

    pub const SEND_: u64 = MSG | SEND;
    pub const RECV_: u64 = MSG | RECV;
    pub const TAGGED_SEND: u64 = TAGGED | SEND;
    pub const TAGGED_RECV: u64 = TAGGED | RECV;
    pub const RMA_WRITE: u64 = RMA | WRITE;
    pub const RMA_READ: u64 = RMA | READ;
    pub const TAGGED_RMA_WRITE: u64 = TAGGED | RMA | WRITE | SEND;
    pub const TAGGED_RMA_READ: u64 = TAGGED | RMA | READ | SEND;
    pub const HIT_BY_TAGGED_WRITE: u64 = TAGGED | RMA | WRITE | RECV;
    pub const HIT_BY_TAGGED_READ: u64 = TAGGED | RMA | READ | RECV;
    pub const WRITTEN: u64 = RMA | REMOTE_WRITE;
    pub const HAS_BEEN_READ: u64 = RMA | REMOTE_READ;
    pub const ATOMIC_WRITE: u64 = ATOMIC | WRITE;
    pub const ATOMIC_READ: u64 = ATOMIC | READ;
}

/// Kinds of memory.
pub const KINDS: [BufferKind; 3] = [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES];

/// So long nothing takes that works, in milliseconds.
const LONG: i32 = 20_000;

/// Ends the test unless the provider has these capabilities.
pub fn needs(entry: &InfoEntry, caps: Caps) -> Outcome {
    let missing = caps - entry.caps;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::Skip(format!("the provider does not have {missing}")))
}

/// How an endpoint is to be; by default as the provider likes it.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Attributes, if not those of the answer.
    pub entry: Option<InfoEntry>,
    /// Further flags for the queue of the transmit direction.
    pub tx_bind: u64,
    /// Further flags for the queue of the receive direction.
    pub rx_bind: u64,
    /// Entries of the queues.
    pub cq_size: u64,
    /// Of the address vector.
    pub rx_ctx_bits: i32,
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
    /// Whom it knows.
    pub av: AddressVector,
    /// The address of the other end, once they are connected.
    pub peer: u64,
    /// Its own address, as others know it.
    pub name: Vec<u8>,
}

impl End {
    /// Opens an endpoint that is not enabled yet.
    pub fn open(domain: &Domain, info: EpInfo<'_>, setup: &Setup) -> Result<Self, Stop> {
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
            av: domain.address_vector(&AvAttr {
                rx_ctx_bits: setup.rx_ctx_bits,
                ..AvAttr::default()
            })?,
            peer: 0,
            name: Vec::new(),
        };
        end.ep.bind(end.av.handle(), 0)?;
        end.ep
            .bind(end.tx.handle(), bits::TRANSMIT | setup.tx_bind)?;
        end.ep.bind(end.rx.handle(), bits::RECV | setup.rx_bind)?;
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

/// Two ends, on two NICs if there are, and where they are.
#[derive(Debug)]
pub struct Pair {
    /// On the first NIC.
    pub a: End,
    /// On the last NIC.
    pub b: End,
    /// The domain of the second end.
    pub far: Domain,
    /// With the domain of the first end.
    pub rig: Rig,
}

impl Deref for Pair {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl Pair {
    /// Two ends that are connected.
    pub fn new(env: &Env, caps: Caps) -> Result<Self, Stop> {
        Self::with(env, caps, &Setup::default())
    }

    /// Two that are to be in some way.
    pub fn with(env: &Env, caps: Caps, setup: &Setup) -> Result<Self, Stop> {
        let mut pair = Self::prepare(env, caps, setup)?;
        pair.connect()?;
        Ok(pair)
    }

    /// Two ends that are not enabled yet.
    pub fn prepare(env: &Env, caps: Caps, setup: &Setup) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        needs(&rig.info.entries()[0], caps)?;
        let fabric = &rig.info.entries()[0].fabric_attr;
        let far_index = rig
            .info
            .entries()
            .iter()
            .rposition(|entry| {
                entry.fabric_attr.name == fabric.name
                    && entry.fabric_attr.prov_name == fabric.prov_name
            })
            .unwrap_or(0);
        let far = rig.fabric.domain(&rig.info, far_index)?;
        let far_setup = Setup {
            entry: setup.entry.clone().map(|entry| InfoEntry {
                src_addr: rig.info.entries()[far_index].src_addr.clone(),
                ..entry
            }),
            ..setup.clone()
        };
        Ok(Self {
            a: End::open(&rig.domain, EpInfo::Entry(&rig.info, 0), setup)?,
            b: End::open(&far, EpInfo::Entry(&rig.info, far_index), &far_setup)?,
            far,
            rig,
        })
    }

    /// Enables both and has them know each other.
    pub fn connect(&mut self) -> Outcome {
        self.a.enable()?;
        self.b.enable()?;
        self.a.connect(&self.b)?;
        self.b.connect(&self.a)
    }

    /// What the provider has said about the first end.
    pub fn entry(&self) -> &InfoEntry {
        &self.rig.info.entries()[0]
    }

    /// Sizes where something could be different.
    pub fn sizes(&self) -> Vec<u64> {
        let inject = self.entry().tx_attr.inject_size;
        let limit = self.entry().ep_attr.max_msg_size;
        let mut sizes = vec![0, 1, 7, inject, 4095, 4096, 4097, 65_536, (1 << 20) + 3];
        sizes.retain(|size| *size <= limit);
        sizes
    }

    /// Memory of the second end that the first one may read and write.
    pub fn region(&self, area: &Area, key: u64) -> Result<MemoryRegion, Stop> {
        self.region_of(area, area.len, key)
    }

    /// As [`Self::region`], of the first bytes.
    pub fn region_of(&self, area: &Area, len: u64, key: u64) -> Result<MemoryRegion, Stop> {
        let form = if area.kind == BufferKind::PAGES {
            Form::BV
        } else {
            Form::V
        };
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
        let attr = MrAttr::new(access, key).form(form);
        Ok(self.far.register(&[area.part(0, len)], &attr)?)
    }

    /// Closes everything, in order.
    pub fn close(self) -> Outcome {
        let Self { a, b, far, rig } = self;
        drop((a, b));
        far.close().map_err(|(_, error)| error)?;
        rig.close()
    }
}

/// Waits for a completion.
#[track_caller]
pub fn complete(cq: &CompletionQueue) -> Result<Completion, Stop> {
    match cq.sread_ms(1, LONG) {
        Ok(mut entries) => entries
            .pop()
            .ok_or_else(|| Stop::fail("sread returns nothing")),
        Err(Error::Fabric(KfiErrno::EAVAIL)) => Err(Stop::fail(format!(
            "an error instead of a completion: {:?}",
            cq.read_err()
        ))),
        Err(error) => Err(Stop::fail(format!("no completion: {error}"))),
    }
}

/// Waits for a completion, and compares what it says. Those of messages that were sent say nothing
/// of what was sent.
#[track_caller]
pub fn expect(
    cq: &CompletionQueue,
    context: u64,
    flags: u64,
    len: u64,
) -> Result<Completion, Stop> {
    let entry = complete(cq)?;
    let sent = flags == done::SEND_ || flags == done::TAGGED_SEND;
    if sent && (entry.buf, entry.tag) != (0, 0) {
        return Err(Stop::fail(format!("{entry:?} says what was sent")));
    }
    let (is, should) = (
        (entry.op_context, entry.flags, entry.len),
        (context, flags, if sent { 0 } else { len }),
    );
    if is != should {
        return Err(Stop::fail(format!(
            "completion has (context, flags, length) {is:x?}, should be {should:x?}"
        )));
    }
    Ok(entry)
}

/// Waits for an error, and compares what it says.
#[track_caller]
pub fn expect_error(
    cq: &CompletionQueue,
    context: u64,
    errno: KfiErrno,
) -> Result<CompletionError, Stop> {
    match cq.sread_ms(1, LONG) {
        Err(Error::Fabric(KfiErrno::EAVAIL)) => {}
        other => {
            return Err(Stop::fail(format!(
                "{other:?}, should be an error entry with {errno}"
            )));
        }
    }
    let error = cq.read_err()?;
    let (is, should) = (
        (error.entry.op_context, error.err),
        (context, errno.number()),
    );
    if is != should {
        return Err(Stop::fail(format!(
            "error has (context, err) {is:?}, should be {should:?}: {error:?}"
        )));
    }
    Ok(error)
}

/// There is nothing to be read.
#[track_caller]
pub fn quiet(cq: &CompletionQueue) -> Outcome {
    match cq.read(8) {
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(()),
        Err(Error::Fabric(KfiErrno::EAVAIL)) => Err(Stop::fail(format!(
            "an error that should not be: {:?}",
            cq.read_err()
        ))),
        other => Err(Stop::fail(format!("{other:?}, should be nothing"))),
    }
}

/// Bytes that no other seed has, and no other place.
pub fn pattern(seed: u64, from: usize, len: usize) -> Vec<u8> {
    let first = from / 8;
    let last = (from + len).div_ceil(8);
    let mut bytes = Vec::with_capacity((last - first) * 8);
    for word in first..last {
        let mixed = (word as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(seed.wrapping_mul(0xd134_2543_de82_ef95));
        bytes.extend_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    let skip = from - first * 8;
    bytes.drain(..skip);
    bytes.truncate(len);
    bytes
}

/// What is around the bytes of an area.
const FILL: u8 = 0xee;
/// How many bytes of it are checked.
const GUARD: u64 = 64;

/// A part of a buffer, with something around it that must not change.
#[derive(Debug)]
pub struct Area {
    /// The buffer.
    pub buffer: Buffer,
    /// How it is allocated.
    pub kind: BufferKind,
    /// Where the part begins.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
}

impl Area {
    /// Memory of a kind, at an offset from where memory begins.
    pub fn new(session: &Session, kind: BufferKind, offset: u64, len: u64) -> Result<Self, Stop> {
        let area = Self {
            buffer: session.buffer(kind, GUARD + offset + len + GUARD)?,
            kind,
            offset: GUARD + offset,
            len,
        };
        area.buffer.fill(FILL);
        Ok(area)
    }

    /// Plain memory.
    pub fn plain(session: &Session, len: u64) -> Result<Self, Stop> {
        Self::new(session, BufferKind::VMALLOC, 0, len)
    }

    /// All of it.
    pub fn all(&self) -> Segment {
        self.part(0, self.len)
    }

    /// A part of it.
    pub fn part(&self, from: u64, len: u64) -> Segment {
        self.buffer
            .segment(self.offset + from..self.offset + from + len)
    }

    /// A number of elements, for atomic operations.
    pub fn elements(&self, from: u64, count: u64) -> Segment {
        self.buffer.elements(self.offset + from, count)
    }

    /// The beginning of it, in so many pieces, as far as there are bytes.
    pub fn pieces(&self, len: u64, count: u64) -> Vec<Segment> {
        let step = (len / count).max(1);
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < len && (pieces.len() as u64) + 1 < count {
            pieces.push(self.part(at, step.min(len - at)));
            at += step.min(len - at);
        }
        if at < len || pieces.is_empty() {
            pieces.push(self.part(at, len - at));
        }
        pieces
    }

    /// Bytes of it.
    pub fn bytes(&self, from: u64, len: u64) -> Vec<u8> {
        let from = (self.offset + from) as usize;
        self.buffer.bytes(from..from + len as usize)
    }

    /// Changes bytes of it.
    pub fn write(&self, from: u64, bytes: &[u8]) {
        self.buffer.write((self.offset + from) as usize, bytes);
    }

    /// What is around it has not changed.
    pub fn intact(&self) -> Outcome {
        let end = (self.offset + self.len) as usize;
        let before = self
            .buffer
            .bytes((self.offset - GUARD) as usize..self.offset as usize);
        let after = self.buffer.bytes(end..end + GUARD as usize);
        let changed = before.iter().chain(&after).any(|byte| *byte != FILL);
        check!(!changed, "bytes around {} were changed", self.len);
        Ok(())
    }

    /// Fills it with a pattern.
    pub fn fill(&self, seed: u64) {
        self.write(0, &pattern(seed, 0, self.len as usize));
    }

    /// Fills it with what no pattern is.
    pub fn clear(&self) {
        self.buffer.fill(FILL);
    }

    /// A part has the bytes of a pattern.
    #[track_caller]
    pub fn has(&self, from: u64, len: u64, seed: u64, pattern_from: u64) -> Outcome {
        let should = pattern(seed, pattern_from as usize, len as usize);
        let is = self.bytes(from, len);
        if is == should {
            return Ok(());
        }
        let at = is.iter().zip(&should).position(|(is, should)| is != should);
        let at = at.unwrap_or_default();
        Err(Stop::fail(format!(
            "byte {at} of {len} is {:#x}, should be {:#x}",
            is[at], should[at]
        )))
    }

    /// It begins with a pattern of that length, and nothing else has changed.
    #[track_caller]
    pub fn has_only(&self, len: u64, seed: u64) -> Outcome {
        self.has(0, len, seed, 0)?;
        let size = self.buffer.size();
        let end = self.offset + len;
        for range in [
            self.offset - GUARD..self.offset,
            end..(end + GUARD + 8).min(size),
        ] {
            let bytes = self.buffer.bytes(range.start as usize..range.end as usize);
            if bytes.iter().any(|byte| *byte != FILL) {
                return Err(Stop::fail(format!(
                    "bytes around {len} were changed: {bytes:x?}"
                )));
            }
        }
        Ok(())
    }
}

/// Forms that take several pieces of memory.
pub fn takes_pieces(form: Form) -> bool {
    [
        Form::V,
        Form::BV,
        Form::SGL,
        Form::MSG,
        Form::MSG_BV,
        Form::MSG_SGL,
    ]
    .contains(&form)
}

/// Forms that take memory without an address.
pub fn takes_pages(form: Form) -> bool {
    [Form::BV, Form::SGL, Form::MSG_BV, Form::MSG_SGL].contains(&form)
}

/// Forms that take memory which is free on return, and never complete well.
pub fn injects(form: Form) -> bool {
    [Form::INJECT, Form::INJECT_DATA].contains(&form)
}

/// Forms that carry data to the peer's queue.
pub fn carries_data(form: Form) -> bool {
    [Form::DATA, Form::INJECT_DATA].contains(&form)
}

/// All forms of an operation.
pub const FORMS: [Form; 10] = [
    Form::PLAIN,
    Form::V,
    Form::BV,
    Form::SGL,
    Form::MSG,
    Form::MSG_BV,
    Form::MSG_SGL,
    Form::INJECT,
    Form::DATA,
    Form::INJECT_DATA,
];

/// Runs a check for all kinds and offsets of memory, sizes and forms; returns how often.
pub fn in_all_forms(
    pair: &Pair,
    mut check: impl FnMut(&Area, &Area, u64, Form) -> Outcome,
) -> Result<u64, Stop> {
    let mut count = 0;
    let sizes = pair.sizes();
    let largest = sizes.iter().copied().max().unwrap_or_default();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let offset = [0, 1, 4093][index];
        let from = Area::new(&pair.rig.session, kind, offset, largest)?;
        let to = Area::new(&pair.rig.session, kind, 4096 - offset, largest)?;
        for size in &sizes {
            for form in FORMS {
                // Pages that do not lie together are a piece each, and some are cut.
                let pages = (from.offset + *size).div_ceil(4096) + 8;
                if kind == BufferKind::PAGES && !takes_pages(form)
                    || injects(form) && *size > pair.entry().tx_attr.inject_size
                    || takes_pages(form)
                        && kind != BufferKind::KMALLOC
                        && pages > pair.entry().tx_attr.iov_limit
                {
                    continue;
                }
                check(&from, &to, *size, form).map_err(|stop| match stop {
                    Stop::Fail(why) => Stop::Fail(format!("{kind} {form} {size} bytes: {why}")),
                    skip @ Stop::Skip(_) => skip,
                })?;
                count += 1;
            }
        }
    }
    check!(count > 0, "nothing was checked");
    check_eq!(pair.a.quiet().is_ok(), true, "the first end is quiet");
    check_eq!(pair.b.quiet().is_ok(), true, "the second end is quiet");
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn patterns_are_places() {
        let all = pattern(3, 0, 100);
        assert_eq!(all.len(), 100);
        assert_eq!(pattern(3, 13, 50), all[13..63]);
        assert_ne!(pattern(4, 0, 100), all);
        assert!(pattern(3, 5, 0).is_empty());
    }
}
