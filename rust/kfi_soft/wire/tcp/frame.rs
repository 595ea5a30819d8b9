// SPDX-License-Identifier: GPL-2.0

//! Frames of the wire protocol (`Documentation/wire-protocol.md`), taken apart and put together.
//!
//! All of what comes from the network goes through here before anything else looks at it. This file
//! uses nothing but `core`, allocates nothing and keeps nothing, so that it is the very same one that
//! tests and fuzzers run in user space.
//!
//! A frame that is taken apart is one that the protocol allows, as far as that can be told from
//! its header alone: lengths fit each other, and numbers are in their ranges. Its reader checks whether
//! it may come now, and keeps to the terms of its connection.

#![forbid(unsafe_code)]

use core::ops::Range as Bytes;

/// Bytes of the part that all headers have in common.
pub(crate) const COMMON: usize = 24;
/// The most bytes of a header.
pub(crate) const MAX_HEAD: usize = 1 << 14;
/// The most bytes of a body.
pub(crate) const MAX_BODY: usize = 1 << 20;
/// The most ranges of a request.
pub(crate) const MAX_RANGES: usize = 256;
/// The most bytes of an authorization key.
pub(crate) const MAX_KEY: usize = 64;
/// The most lanes of an association.
pub(crate) const MAX_LANES: u16 = 16;
/// The flows of a target that does not say how many it has.
pub(crate) const FEW_FLOWS: u32 = 64;
/// The most flows of a lane: their numbers have 16 bits.
pub(crate) const MAX_FLOWS: u32 = 1 << 16;
/// The most bytes of the elements of an atomic.
pub(crate) const MAX_ATOMIC: u64 = 4096;
/// The most bytes of an operation.
pub(crate) const MAX_LEN: u64 = 1 << 30;

/// The version of the protocol whose change ends all compatibility.
pub(crate) const MAJOR: u16 = 1;
/// The version that adds to the one before.
pub(crate) const MINOR: u16 = 0;

/// The first member of `HELLO` and `WELCOME`.
const MAGIC: [u8; 8] = *b"kfi-soft";

/// Of [`Response::status`]: the target is not ready, and nothing was done.
pub(crate) const NOT_READY: u32 = 1 << 31;
/// Of [`Response::status`]: the target has no room for it, and nothing was done.
pub(crate) const NO_ROOM: u32 = NOT_READY + 1;
/// The largest errno of a response.
const MAX_ERRNO: u32 = 4095;

/// Bytes of a range.
const RANGE: usize = 24;
/// Bytes of a request's header before its ranges.
const REQUEST: usize = 80;
/// The most bytes of a request's header, without what a later version adds.
pub(crate) const MAX_REQUEST: usize = REQUEST + MAX_RANGES * RANGE + MAX_KEY;
/// The most bytes of any other header.
pub(crate) const MAX_OTHER: usize = HELLO;
/// Bytes of `HELLO` and `WELCOME`.
pub(crate) const HELLO: usize = 160;
/// Where the code of a `WELCOME` is, which is that of what comes before.
pub(crate) const WELCOME_MAC: usize = 128;
/// Bytes of them that all versions have.
const ANY_HELLO: usize = 40;
/// Bytes of a fabric, as it is proved.
pub(crate) const FABRIC: usize = 8;

/// How a frame breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The header is shorter than its type has it, longer than any may be, or not a multiple of 8.
    Head,
    /// The body is longer than any may be, or has not the length that the header asks for.
    Body,
    /// A member has a value that it cannot have.
    Value,
    /// The ranges of a request do not add up to its length.
    Ranges,
    /// The frame is neither of this protocol nor of a later version of it.
    Magic,
}

/// The part that all headers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common {
    /// The type, as a number.
    pub(crate) kind: u8,
    /// The flags.
    pub(crate) flags: u8,
    /// Bytes of the header, with these.
    pub(crate) head: usize,
    /// Bytes of the body.
    pub(crate) body: usize,
    /// The request that it is about; else 0.
    pub(crate) id: u64,
    /// All requests below this one have been answered, or read.
    pub(crate) ack: u64,
}

/// A frame without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// The first one of an initiator.
    Hello(Hello),
    /// The first one of a target, with what proves that it knows the secret.
    Welcome(Hello, [u8; 32]),
    /// The code that proves that the initiator does.
    Proof([u8; 32]),
    /// The last one.
    Bye(u32),
    /// A request.
    Request(Request<'a>),
    /// A part of the data of a request follows, from this byte of it on.
    Data(u64),
    /// The initiator does not want the request any more.
    Withdraw,
    /// Nothing but what all headers have.
    Ack,
    /// All data of a request that reads have come.
    Landed,
    /// The answer to a request.
    Response(Response),
    /// The target wants data of a request.
    Pull {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A flow goes on of which requests were not taken.
    Go(u16),
    /// A type of a later version.
    Unknown,
}

/// The members in which both sides introduce themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The major version.
    pub(crate) major: u16,
    /// The minor version.
    pub(crate) minor: u16,
    /// Which lane of the association it is.
    pub(crate) lane: u16,
    /// How many there are.
    pub(crate) lanes: u16,
    /// NIC of the initiator.
    pub(crate) source: u32,
    /// NIC of the target.
    pub(crate) target: u32,
    /// Incarnation of the sender.
    pub(crate) incarnation: u64,
    /// Incarnation of the receiver, if it is known; else 0.
    pub(crate) expected: u64,
    /// The session.
    pub(crate) session: u64,
    /// A random number of when the target began to know the session; 0 if the sender does not know it.
    pub(crate) birth: u64,
    /// The most bytes that a request may bring to the sender.
    pub(crate) eager: u32,
    /// How many requests of the lane may be without an `ack` that they are over.
    pub(crate) window: u32,
    /// How many flows a lane has.
    pub(crate) flows: u32,
    /// Whether the sender wants proof.
    pub(crate) proof: bool,
    /// A random number.
    pub(crate) nonce: [u8; 32],
}

/// The fabric that a connection belongs to.
///
/// It is in no frame, as it follows from the addresses and the port of the connection; but where there is a
/// secret both sides prove that they mean the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FabricId {
    /// The upper bits, which the addresses of all NICs have in common; the low 20 bits are 0.
    pub(crate) prefix: u32,
    /// Where all of them listen.
    pub(crate) port: u16,
}

impl FabricId {
    /// Returns it as it is proved.
    pub(crate) fn bytes(self) -> [u8; FABRIC] {
        ((u64::from(self.port) << 32) | u64::from(self.prefix)).to_le_bytes()
    }
}

/// A range of the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Where it begins, as the region has it.
    pub(crate) addr: u64,
    /// How many bytes it has.
    pub(crate) len: u64,
    /// The key of the region.
    pub(crate) key: u64,
}

/// Ranges as they lie in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranges<'a>(&'a [u8]);

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To be received.
    Message,
    /// To be received by a receive that wants the tag.
    Tagged,
    /// To be written to memory regions.
    Write,
    /// To be read from memory regions.
    Read,
    /// To be written to a posted tagged receive.
    TaggedWrite,
    /// To be read from a posted tagged receive.
    TaggedRead,
    /// To change elements in memory regions.
    Atomic {
        /// 0 plain, 1 fetch, 2 compare.
        form: u8,
        /// The operation.
        op: u8,
        /// The type of the elements.
        datatype: u8,
    },
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Port of the initiator.
    pub(crate) from: u16,
    /// Port of the target.
    pub(crate) to: u16,
    /// The receive context, or that of the transmit context.
    pub(crate) context: u16,
    /// Whether it is the receive context.
    pub(crate) named: bool,
    /// Requests of a flow stay in order, and are stopped together.
    pub(crate) flow: u16,
    /// The authorization key; empty for none.
    pub(crate) key: &'a [u8],
    /// The tag.
    pub(crate) tag: u64,
    /// Remote completion data.
    pub(crate) data: Option<u64>,
    /// Bytes of the operation.
    pub(crate) len: u64,
    /// Where in the receive, of tagged RMA.
    pub(crate) offset: u64,
    /// The target's memory.
    pub(crate) ranges: Ranges<'a>,
    /// The body has the data.
    pub(crate) eager: bool,
    /// It is the first one after the flow was stopped.
    pub(crate) restarts: bool,
    /// For how many milliseconds it has waited for its receiver before it was not taken.
    pub(crate) waited: u32,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// 0, an errno, [`NOT_READY`], or [`NO_ROOM`].
    pub(crate) status: u32,
    /// Bytes that were transferred.
    pub(crate) len: u64,
    /// For how many milliseconds it has waited for its receiver, if that was not ready.
    pub(crate) waited: u32,
}

/// Flags of a request.
mod flag {
    pub(super) const NAMED: u8 = 1 << 0;
    pub(super) const DATA: u8 = 1 << 1;
    pub(super) const EAGER: u8 = 1 << 2;
    pub(super) const RESTARTS: u8 = 1 << 3;
}

/// Types of frames.
mod number {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const PROOF: u8 = 3;
    pub(super) const BYE: u8 = 4;
    pub(super) const REQUEST: u8 = 17;
    pub(super) const DATA: u8 = 18;
    pub(super) const WITHDRAW: u8 = 19;
    pub(super) const ACK: u8 = 20;
    pub(super) const LANDED: u8 = 21;
    pub(super) const RESPONSE: u8 = 32;
    pub(super) const PULL: u8 = 33;
    pub(super) const GO: u8 = 34;
}

/// Reads members of a header; those beyond its end are 0.
#[derive(Clone, Copy)]
struct Members<'a>(&'a [u8]);

impl Members<'_> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let there = self.0.get(at..).and_then(|there| there.first_chunk());
        there.copied().unwrap_or([0; N])
    }

    fn u8(self, at: usize) -> u8 {
        u8::from_le_bytes(self.array(at))
    }

    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}

impl Common {
    /// Reads the first bytes of a frame.
    pub(crate) fn parse(bytes: &[u8; COMMON]) -> Result<Self, Broken> {
        let members = Members(bytes);
        let head = usize::from(members.u16(2));
        let body = usize::try_from(members.u32(4)).unwrap_or(usize::MAX);
        if !(COMMON..=MAX_HEAD).contains(&head) || head % 8 != 0 {
            return Err(Broken::Head);
        }
        if body > MAX_BODY {
            return Err(Broken::Body);
        }
        Ok(Self {
            kind: members.u8(0),
            flags: members.u8(1),
            head,
            body,
            id: members.u64(8),
            ack: members.u64(16),
        })
    }

    /// Writes them; returns all of the header, the rest of which is 0.
    fn write<'a>(&self, bytes: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let header = bytes.get_mut(..self.head)?;
        header.fill(0);
        put(header, 0, &[self.kind, self.flags])?;
        put(header, 2, &u16::try_from(self.head).ok()?.to_le_bytes())?;
        put(header, 4, &u32::try_from(self.body).ok()?.to_le_bytes())?;
        put(header, 8, &self.id.to_le_bytes())?;
        put(header, 16, &self.ack.to_le_bytes())?;
        Some(header)
    }
}

impl<'a> Frame<'a> {
    /// Reads a header, all of it.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<(Common, Self), Broken> {
        let first = bytes.first_chunk().ok_or(Broken::Head)?;
        let common = Common::parse(first)?;
        if bytes.len() != common.head {
            return Err(Broken::Head);
        }
        let members = Members(bytes);
        let at_least = |len: usize| {
            if common.head < len {
                return Err(Broken::Head);
            }
            Ok(())
        };
        let body = |allowed: Bytes<usize>| {
            if !allowed.contains(&common.body) {
                return Err(Broken::Body);
            }
            Ok(())
        };
        let of_request = || {
            if common.id == 0 {
                return Err(Broken::Value);
            }
            Ok(())
        };
        let frame = match common.kind {
            number::HELLO | number::WELCOME => {
                at_least(ANY_HELLO)?;
                body(0..1)?;
                // The rest of it is the business of another version.
                if members.u16(32) == MAJOR {
                    at_least(HELLO)?;
                }
                let hello = Hello::parse(members)?;
                if common.kind == number::HELLO {
                    Self::Hello(hello)
                } else {
                    Self::Welcome(hello, members.array(WELCOME_MAC))
                }
            }
            number::PROOF => {
                at_least(56)?;
                body(0..1)?;
                Self::Proof(members.array(24))
            }
            number::BYE => {
                at_least(32)?;
                body(0..1)?;
                Self::Bye(members.u32(24))
            }
            number::REQUEST => {
                at_least(REQUEST)?;
                Self::Request(Request::parse(&common, members)?)
            }
            number::DATA => {
                at_least(32)?;
                body(1..MAX_BODY + 1)?;
                of_request()?;
                let offset = members.u64(24);
                if offset > MAX_LEN {
                    return Err(Broken::Value);
                }
                Self::Data(offset)
            }
            number::WITHDRAW => {
                body(0..1)?;
                of_request()?;
                Self::Withdraw
            }
            number::ACK => {
                body(0..1)?;
                Self::Ack
            }
            number::LANDED => {
                body(0..1)?;
                of_request()?;
                Self::Landed
            }
            number::RESPONSE => {
                at_least(48)?;
                body(0..MAX_ATOMIC as usize + 1)?;
                of_request()?;
                let status = members.u32(24);
                if status > MAX_ERRNO && status != NOT_READY && status != NO_ROOM {
                    return Err(Broken::Value);
                }
                if status != 0 && common.body != 0 {
                    return Err(Broken::Body);
                }
                Self::Response(Response {
                    status,
                    len: members.u64(32),
                    waited: members.u32(28),
                })
            }
            number::PULL => {
                at_least(40)?;
                body(0..1)?;
                of_request()?;
                let (offset, len) = (members.u64(24), members.u64(32));
                if len == 0 || offset.checked_add(len).is_none_or(|end| end > MAX_LEN) {
                    return Err(Broken::Value);
                }
                Self::Pull { offset, len }
            }
            number::GO => {
                at_least(32)?;
                body(0..1)?;
                Self::Go(members.u16(24))
            }
            _ => Self::Unknown,
        };
        Ok((common, frame))
    }

    /// Writes a header that `body` bytes follow; returns how long it is. `None` if `bytes` has no room
    /// for it, or it could not be read.
    pub(crate) fn write(&self, id: u64, ack: u64, body: usize, bytes: &mut [u8]) -> Option<usize> {
        if let Self::Request(request) = self {
            return request.write(id, ack, body, request.ranges.iter(), bytes);
        }
        let (kind, head) = match self {
            Self::Hello(_) => (number::HELLO, HELLO),
            Self::Welcome(..) => (number::WELCOME, HELLO),
            Self::Proof(_) => (number::PROOF, 56),
            Self::Bye(_) => (number::BYE, 32),
            Self::Data(_) => (number::DATA, 32),
            Self::Withdraw => (number::WITHDRAW, COMMON),
            Self::Ack => (number::ACK, COMMON),
            Self::Landed => (number::LANDED, COMMON),
            Self::Response(_) => (number::RESPONSE, 48),
            Self::Pull { .. } => (number::PULL, 40),
            Self::Go(_) => (number::GO, 32),
            Self::Request(_) | Self::Unknown => return None,
        };
        let common = Common {
            kind,
            flags: 0,
            head,
            body,
            id,
            ack,
        };
        let header = common.write(bytes)?;
        match self {
            Self::Hello(hello) => hello.write(header)?,
            Self::Welcome(hello, mac) => {
                hello.write(header)?;
                put(header, WELCOME_MAC, mac)?;
            }
            Self::Proof(mac) => put(header, 24, mac)?,
            Self::Bye(code) => {
                put(header, 24, &code.to_le_bytes())?;
                put(header, 28, &MAJOR.to_le_bytes())?;
            }
            Self::Data(offset) => put(header, 24, &offset.to_le_bytes())?,
            Self::Response(response) => {
                put(header, 24, &response.status.to_le_bytes())?;
                put(header, 28, &response.waited.to_le_bytes())?;
                put(header, 32, &response.len.to_le_bytes())?;
            }
            Self::Pull { offset, len } => {
                put(header, 24, &offset.to_le_bytes())?;
                put(header, 32, &len.to_le_bytes())?;
            }
            Self::Go(flow) => put(header, 24, &flow.to_le_bytes())?,
            Self::Withdraw | Self::Ack | Self::Landed | Self::Request(_) | Self::Unknown => {}
        }
        // A frame that the other side would not take is not sent.
        Frame::parse(header).ok()?;
        Some(head)
    }
}

/// Writes a member.
fn put(header: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    let end = at.checked_add(bytes.len())?;
    header.get_mut(at..end)?.copy_from_slice(bytes);
    Some(())
}

impl Hello {
    fn parse(members: Members<'_>) -> Result<Self, Broken> {
        if members.array(24) != MAGIC {
            return Err(Broken::Magic);
        }
        let hello = Self {
            major: members.u16(32),
            minor: members.u16(34),
            lane: members.u16(36),
            lanes: members.u16(38),
            source: members.u32(40),
            target: members.u32(44),
            incarnation: members.u64(48),
            expected: members.u64(56),
            session: members.u64(64),
            birth: members.u64(72),
            eager: members.u32(80),
            window: members.u32(84),
            proof: members.u32(88) == 1,
            flows: match members.u32(92) {
                0 => FEW_FLOWS,
                flows => flows,
            },
            nonce: members.array(96),
        };
        // The meaning of the rest is the business of another version.
        let known = hello.major == MAJOR;
        let lanes = (1..=MAX_LANES).contains(&hello.lanes) && hello.lane < hello.lanes;
        let eager = usize::try_from(hello.eager).is_ok_and(|eager| eager <= MAX_BODY);
        let named = hello.incarnation != 0 && hello.session != 0;
        let flows = (FEW_FLOWS..=MAX_FLOWS).contains(&hello.flows);
        if known && (!lanes || !eager || !named || !flows || members.u32(88) > 1) {
            return Err(Broken::Value);
        }
        Ok(hello)
    }

    fn write(&self, header: &mut [u8]) -> Option<()> {
        put(header, 24, &MAGIC)?;
        put(header, 32, &self.major.to_le_bytes())?;
        put(header, 34, &self.minor.to_le_bytes())?;
        put(header, 36, &self.lane.to_le_bytes())?;
        put(header, 38, &self.lanes.to_le_bytes())?;
        put(header, 40, &self.source.to_le_bytes())?;
        put(header, 44, &self.target.to_le_bytes())?;
        put(header, 48, &self.incarnation.to_le_bytes())?;
        put(header, 56, &self.expected.to_le_bytes())?;
        put(header, 64, &self.session.to_le_bytes())?;
        put(header, 72, &self.birth.to_le_bytes())?;
        put(header, 80, &self.eager.to_le_bytes())?;
        put(header, 84, &self.window.to_le_bytes())?;
        put(header, 88, &u32::from(self.proof).to_le_bytes())?;
        put(header, 92, &self.flows.to_le_bytes())?;
        put(header, 96, &self.nonce)
    }
}

impl Range {
    /// Writes a range behind those that are in `bytes` already, as headers have them; returns how
    /// many bytes there are then.
    pub(crate) fn append(&self, bytes: &mut [u8], at: usize) -> Option<usize> {
        put(bytes, at, &self.addr.to_le_bytes())?;
        put(bytes, at.checked_add(8)?, &self.len.to_le_bytes())?;
        put(bytes, at.checked_add(16)?, &self.key.to_le_bytes())?;
        at.checked_add(RANGE)
    }
}

impl<'a> Ranges<'a> {
    /// None.
    pub(crate) const NONE: Self = Self(&[]);

    /// Returns how many there are.
    pub(crate) fn count(self) -> usize {
        self.0.len() / RANGE
    }

    /// Returns them.
    pub(crate) fn iter(self) -> impl Iterator<Item = Range> + Clone + 'a {
        self.0.chunks_exact(RANGE).map(|bytes| {
            let members = Members(bytes);
            Range {
                addr: members.u64(0),
                len: members.u64(8),
                key: members.u64(16),
            }
        })
    }

    /// Returns how many bytes they have; `None` if that is no number.
    fn bytes(self) -> Option<u64> {
        self.iter()
            .try_fold(0u64, |sum, range| sum.checked_add(range.len))
    }
}

impl Kind {
    fn parse(members: Members<'_>) -> Result<Self, Broken> {
        let (form, op, datatype) = (members.u8(25), members.u8(26), members.u8(27));
        let kind = match members.u8(24) {
            1 => Self::Message,
            2 => Self::Tagged,
            3 => Self::Write,
            4 => Self::Read,
            5 => Self::TaggedWrite,
            6 => Self::TaggedRead,
            7 if form <= 2 => {
                return Ok(Self::Atomic { form, op, datatype });
            }
            _ => return Err(Broken::Value),
        };
        if (form, op, datatype) != (0, 0, 0) {
            return Err(Broken::Value);
        }
        Ok(kind)
    }

    fn numbers(self) -> [u8; 4] {
        match self {
            Self::Message => [1, 0, 0, 0],
            Self::Tagged => [2, 0, 0, 0],
            Self::Write => [3, 0, 0, 0],
            Self::Read => [4, 0, 0, 0],
            Self::TaggedWrite => [5, 0, 0, 0],
            Self::TaggedRead => [6, 0, 0, 0],
            Self::Atomic { form, op, datatype } => [7, form, op, datatype],
        }
    }

    /// Returns whether ranges of the target's memory are named.
    fn has_ranges(self) -> bool {
        matches!(self, Self::Write | Self::Read | Self::Atomic { .. })
    }

    /// Returns whether the initiator has data to send.
    fn sends(self) -> bool {
        !matches!(self, Self::Read | Self::TaggedRead)
    }
}

impl<'a> Request<'a> {
    fn parse(common: &Common, members: Members<'a>) -> Result<Self, Broken> {
        let kind = Kind::parse(members)?;
        let count = usize::from(members.u16(34));
        if count > MAX_RANGES || (count != 0 && !kind.has_ranges()) || common.id == 0 {
            return Err(Broken::Value);
        }
        let end = count
            .checked_mul(RANGE)
            .and_then(|bytes| bytes.checked_add(REQUEST))
            .ok_or(Broken::Head)?;
        let ranges = Ranges(members.0.get(REQUEST..end).ok_or(Broken::Head)?);
        let key_len = usize::from(members.u16(36));
        if key_len > MAX_KEY {
            return Err(Broken::Value);
        }
        let key_end = end.checked_add(key_len).ok_or(Broken::Head)?;
        let key = members.0.get(end..key_end).ok_or(Broken::Head)?;
        let has = |flag: u8| common.flags & flag != 0;
        let request = Self {
            kind,
            from: members.u16(28),
            to: members.u16(30),
            context: members.u16(32),
            named: has(flag::NAMED),
            flow: members.u16(38),
            key,
            tag: members.u64(40),
            data: has(flag::DATA).then_some(members.u64(48)),
            len: members.u64(56),
            offset: members.u64(64),
            ranges,
            eager: has(flag::EAGER),
            restarts: has(flag::RESTARTS),
            waited: members.u32(72),
        };
        if request.len > MAX_LEN {
            return Err(Broken::Value);
        }
        if kind.has_ranges() && ranges.bytes() != Some(request.len) {
            return Err(Broken::Ranges);
        }
        request.check_body(common.body)?;
        Ok(request)
    }

    /// Checks that the body has as many bytes as the rest says.
    fn check_body(&self, body: usize) -> Result<(), Broken> {
        let body = u64::try_from(body).unwrap_or(u64::MAX);
        let allowed = match self.kind {
            Kind::Atomic { form, .. } => {
                if self.len == 0 || self.len > MAX_ATOMIC || !self.eager {
                    return Err(Broken::Value);
                }
                // An atomic that only fetches has no operands.
                let both = self.len.saturating_mul(2);
                match form {
                    2 => body == both,
                    1 => body == self.len || body == 0,
                    _ => body == self.len,
                }
            }
            kind if self.eager => kind.sends() && body == self.len,
            // There is nothing to pull.
            kind => body == 0 && (self.len != 0 || !kind.sends()),
        };
        if allowed {
            Ok(())
        } else {
            Err(Broken::Body)
        }
    }

    /// Returns how long the header is with so many ranges.
    fn head(&self, ranges: usize) -> Option<usize> {
        let key = self.key.len().checked_next_multiple_of(8)?;
        ranges
            .checked_mul(RANGE)?
            .checked_add(REQUEST)?
            .checked_add(key)
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(self.named, flag::NAMED)
            | flag(self.data.is_some(), flag::DATA)
            | flag(self.eager, flag::EAGER)
            | flag(self.restarts, flag::RESTARTS)
    }

    /// As [`Frame::write`], with these ranges in place of its own.
    pub(crate) fn write(
        &self,
        id: u64,
        ack: u64,
        body: usize,
        ranges: impl Iterator<Item = Range> + Clone,
        bytes: &mut [u8],
    ) -> Option<usize> {
        let count = ranges.clone().count();
        let head = self.head(count)?;
        let common = Common {
            kind: number::REQUEST,
            flags: self.flags(),
            head,
            body,
            id,
            ack,
        };
        let header = common.write(bytes)?;
        put(header, 24, &self.kind.numbers())?;
        put(header, 28, &self.from.to_le_bytes())?;
        put(header, 30, &self.to.to_le_bytes())?;
        put(header, 32, &self.context.to_le_bytes())?;
        put(header, 34, &u16::try_from(count).ok()?.to_le_bytes())?;
        let key_len = u16::try_from(self.key.len()).ok()?;
        put(header, 36, &key_len.to_le_bytes())?;
        put(header, 38, &self.flow.to_le_bytes())?;
        put(header, 40, &self.tag.to_le_bytes())?;
        put(header, 48, &self.data.unwrap_or(0).to_le_bytes())?;
        put(header, 56, &self.len.to_le_bytes())?;
        put(header, 64, &self.offset.to_le_bytes())?;
        put(header, 72, &self.waited.to_le_bytes())?;
        let mut at = REQUEST;
        for range in ranges {
            at = range.append(header, at)?;
        }
        put(header, at, self.key)?;
        // A frame that the other side would not take is not sent.
        Frame::parse(header).ok()?;
        Some(head)
    }
}
