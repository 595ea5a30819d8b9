// SPDX-License-Identifier: GPL-2.0

//! Waits for completions and counters, and comparisons of what they say.

use std::time::Duration;

use kfi::{uapi, Completion, CompletionError, CompletionQueue, Counter, Error, KfiErrno};

use crate::check::{Outcome, Stop};
use crate::check_eq;

/// Flags of completions, all of them.
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

/// So long nothing takes that works.
pub const LONG: Duration = Duration::from_secs(60);

/// As many completions are read at once.
pub const ROOM: usize = uapi::KFI_SHIM_CQ_READ_MAX as usize;

/// Waits for a completion.
#[track_caller]
pub fn complete(cq: &CompletionQueue) -> Result<Completion, Stop> {
    match cq.sread(1, Some(LONG)) {
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

/// Waits for an error, and compares what it says: the context, and the errno unless it is `None`.
#[track_caller]
pub fn expect_error(
    cq: &CompletionQueue,
    context: u64,
    errno: impl Into<Option<KfiErrno>>,
) -> Result<CompletionError, Stop> {
    let errno = errno.into();
    match cq.sread(1, Some(LONG)) {
        Err(Error::Fabric(KfiErrno::EAVAIL)) => {}
        other => {
            return Err(Stop::fail(format!(
                "{other:?}, should be an error entry with {errno:?}"
            )));
        }
    }
    let error = cq.read_err()?;
    let right = errno.is_none_or(|errno| error.err == errno.number());
    if error.entry.op_context != context || !right {
        return Err(Stop::fail(format!(
            "{error:?}, should be {errno:?} of {context}"
        )));
    }
    Ok(error)
}

/// Waits for the completion of this operation.
#[track_caller]
pub fn expect_context(queue: &CompletionQueue, context: u64) -> Outcome {
    let is = complete(queue)?.op_context;
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
    quiet(queue)
}
