// SPDX-License-Identifier: GPL-2.0

//! Messages from when they are posted until their ends are told.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::kfi::{
    context::Context,
    flags::CompletionFlags,
    memory::transfer,
    provider::{
        Direction,
        Ended,
        Failure,
        Incoming,
        Kind,
        Lasting,
        Operation,
        Outcome,
        Outgoing, //
    }, //
};

/// The memory of a message.
enum Memory {
    /// It is sent.
    Send(Lasting),
    /// It is received here.
    Receive(Incoming),
}

/// A send or a receive that was posted and has not ended. It is ended by [`Binds::tell`]; what is
/// dropped instead is given up without a word, and its consumer never hears of it. That is right
/// where the post of it fails, and where the endpoint is released; anywhere else it is to be ended.
///
/// It has to be dropped where its memory is the consumer's again: before [`EndpointOps::post`] returns
/// an error, and before [`Object::release`] of the endpoint returns. One that is kept beyond that
/// uses freed memory.
///
/// [`Binds::tell`]: super::Binds::tell
/// [`EndpointOps::post`]: crate::kfi::provider::EndpointOps::post
/// [`Object::release`]: crate::kfi::fid::Object::release
#[must_use = "its consumer waits for its end"]
pub struct InFlight {
    memory: Memory,
    context: Context,
    /// The tag; 0 if it has none.
    tag: u64,
    /// The bits of the tag that need not match; of a receive.
    ignore: u64,
    /// Data that go along.
    data: Option<u64>,
    /// Whether it has a tag.
    is_tagged: bool,
    /// Whether its success gives an entry.
    wants_entry: bool,
}

impl InFlight {
    /// Takes a message that a consumer posts; `EOPNOTSUPP` for all else. Whether its success gives an
    /// entry, [`Binds::wants_entry`] says; [`Binds::take`] does it with all that belongs to it. From
    /// any context, with `gfp` as that demands.
    ///
    /// [`Binds::wants_entry`]: super::Binds::wants_entry
    /// [`Binds::take`]: super::Binds::take
    pub fn take(operation: Operation<'_>, wants_entry: bool, gfp: Flags) -> Result<Self> {
        let (is_tagged, tag, ignore) = match operation.kind() {
            Kind::Send | Kind::Receive => (false, 0, 0),
            Kind::TaggedSend { tag } => (true, tag, 0),
            Kind::TaggedReceive { tag, ignore } => (true, tag, ignore),
            _ => return Err(EOPNOTSUPP),
        };
        let (context, data) = (operation.context(), operation.data);
        let memory = if operation.kind().is_receive() {
            Memory::Receive(Incoming::take(operation, gfp)?)
        } else {
            Memory::Send(Outgoing::take(operation, gfp, None)?.keep(gfp)?)
        };
        Ok(Self {
            memory,
            context,
            tag,
            ignore,
            data,
            is_tagged,
            wants_entry,
        })
    }

    /// Returns the context.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Returns the direction.
    pub fn direction(&self) -> Direction {
        match self.memory {
            Memory::Send(_) => Direction::Transmit,
            Memory::Receive(_) => Direction::Receive,
        }
    }

    /// Returns whether this is a receive for such a message as `from` is: both have a tag, and the tags
    /// differ in bits that the receive ignores, if at all; or neither has one. The provider looks at the
    /// sender itself. From any context.
    pub fn matches(&self, from: &Self) -> bool {
        self.direction() == Direction::Receive
            && from.direction() == Direction::Transmit
            && self.is_tagged == from.is_tagged
            && (self.tag ^ from.tag) & !self.ignore == 0
    }

    /// Receives what `from` sends, as much as there is room for. Returns what is to be told of the
    /// receive, but for the sender: what has come, and `EMSGSIZE` if that is not all. Whether they
    /// belong together, [`Self::matches`] says.
    ///
    /// From any context. All of it is copied before this returns, so in [`EndpointOps::post`] messages
    /// have to be short, or are left to a work queue.
    ///
    /// [`EndpointOps::post`]: crate::kfi::provider::EndpointOps::post
    pub fn receive(&self, from: &Self) -> (Outcome, Failure) {
        let (Memory::Receive(to), Memory::Send(memory)) = (&self.memory, &from.memory) else {
            return (Outcome::default(), EINVAL.into());
        };
        let source = memory.source();
        let len = transfer(&mut to.cursor(0), &mut source.cursor(0), source.len());
        let data = from.data.map(|_| CompletionFlags::REMOTE_CQ_DATA);
        let outcome = Outcome {
            flags: data.map_or(0, CompletionFlags::as_raw),
            len,
            // Told of receives for several messages only, which these are not.
            buf: Context::NONE,
            data: from.data.unwrap_or(0),
            tag: from.tag,
            ..Outcome::default()
        };
        let failure = match source.len().saturating_sub(len) {
            0 => Failure::NONE,
            olen => Failure {
                olen,
                ..EMSGSIZE.into()
            },
        };
        (outcome, failure)
    }

    /// Returns whether there is to be an entry of its success.
    pub(super) fn wants_entry(&self) -> bool {
        self.wants_entry
    }

    /// Ends the use of the memory.
    pub(super) fn end(self) -> Ended {
        match self.memory {
            Memory::Send(memory) => memory.end(),
            Memory::Receive(memory) => memory.end(),
        }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_in_flight)]
mod tests {
    use super::*;
    use crate::kfi::{
        memory::RemoteRanges,
        provider::ready::tests::{
            receive,
            send, //
        }, //
    };

    #[test]
    fn a_message_comes_as_far_as_there_is_room() -> Result {
        let from = [1u8, 2, 3, 4];
        for (room, len, olen) in [(6, 4, 0), (4, 4, 0), (3, 3, 1), (0, 0, 4)] {
            let mut to = [9u8; 6];
            let sent = InFlight::take(send(&from).with_data(7), false, GFP_KERNEL)?;
            let into = to.get_mut(..room).ok_or(EINVAL)?;
            let received = InFlight::take(receive(into), false, GFP_KERNEL)?;
            assert!(sent.direction() == Direction::Transmit);
            assert!(received.direction() == Direction::Receive);
            let (outcome, failure) = received.receive(&sent);
            assert_eq!((outcome.len, failure.olen), (len, olen));
            assert_eq!((failure.err != 0), (olen != 0));
            assert_eq!(outcome.data, 7);
            assert_eq!(outcome.buf.as_number(), 0);
            assert_eq!(outcome.flags, CompletionFlags::REMOTE_CQ_DATA.as_raw());
            drop(received);
            assert!(to.iter().take(len).eq(from.iter().take(len)));
            assert!(to.iter().skip(len).all(|byte| *byte == 9));
        }
        Ok(())
    }

    #[test]
    fn a_tag_matches_but_for_what_is_ignored() -> Result {
        let (from, mut to) = ([1u8; 2], [0u8; 2]);
        let plain = InFlight::take(send(&from), true, GFP_KERNEL)?;
        let mut operation = send(&from);
        operation.kind = Kind::TaggedSend { tag: 0x51 };
        let tagged = InFlight::take(operation, true, GFP_KERNEL)?;
        let mut matches = |kind: Kind<'static>| -> Result<(bool, bool)> {
            let mut operation = receive(&mut to);
            operation.kind = kind;
            let receive = InFlight::take(operation, true, GFP_KERNEL)?;
            Ok((receive.matches(&plain), receive.matches(&tagged)))
        };
        assert_eq!(matches(Kind::Receive)?, (true, false));
        for (tag, ignore, is_wanted) in [
            (0x51, 0, true),
            (0x50, 0, false),
            (0x50, 1, true),
            (0x11, 0x40, true),
            (0x11, 1, false),
            (0, u64::MAX, true),
        ] {
            let kind = Kind::TaggedReceive { tag, ignore };
            assert_eq!(matches(kind)?, (false, is_wanted));
        }
        assert!(!plain.matches(&plain) && !tagged.matches(&plain));
        Ok(())
    }

    #[test]
    fn nothing_but_messages_is_taken() {
        let mut operation = send(&[1]);
        operation.kind = Kind::Write {
            remote: RemoteRanges::one(0, 1, 0),
        };
        let taken = InFlight::take(operation, true, GFP_KERNEL);
        assert!(taken.err() == Some(EOPNOTSUPP));
    }

    #[test]
    fn nothing_is_received_the_wrong_way() -> Result {
        let from = [1u8; 2];
        let one = InFlight::take(send(&from), true, GFP_KERNEL)?;
        let other = InFlight::take(send(&from), true, GFP_KERNEL)?;
        let (outcome, failure) = one.receive(&other);
        assert_eq!(outcome.len, 0);
        assert!(failure.err != 0);
        Ok(())
    }
}
