// SPDX-License-Identifier: GPL-2.0

//! Poll sets: which of many counters and completion queues have something new?
//!
//! Every member of every set has a baseline of its own, so that what one set has told of is still
//! news to another. Baselines are numbers of changes, never values (R-POLL-6).

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use crate::{
    completion_queue::CompletionQueue,
    counter::Counter,
    domain::Domain,
    kfi::{
        fid::{
            AnyFid,
            Fid,
            Object, //
        },
        hold::Hold,
        provider::{
            Contexts,
            PollSetClass,
            PollSetOps, //
        }, //
    }, //
};

/// What a member is.
enum Member {
    /// A counter, and the number of its events that this set has told of.
    Counter { hold: Hold<Counter>, told: u64 },
    /// A completion queue.
    CompletionQueue(Hold<CompletionQueue>),
}

impl Member {
    /// Makes a member of an object; `EINVAL` if it cannot be one of a set of `domain`.
    fn new(fid: AnyFid<'_>, domain: &Arc<Fid<Domain>>) -> Result<Self> {
        if let Some(counter) = fid.downcast::<Counter>() {
            if !Arc::ptr_eq(counter.domain(), domain) {
                return Err(EINVAL);
            }
            let hold = Hold::new(counter)?;
            hold.watch();
            return Ok(Self::Counter { hold, told: 0 });
        }
        let queue = fid.downcast::<CompletionQueue>().ok_or(EINVAL)?;
        if !Arc::ptr_eq(queue.domain(), domain) {
            return Err(EINVAL);
        }
        Ok(Self::CompletionQueue(Hold::new(queue)?))
    }

    /// Returns whether this is the member `fid`.
    fn is(&self, fid: AnyFid<'_>) -> bool {
        match self {
            Self::Counter { hold, .. } => fid.is(hold.fid()),
            Self::CompletionQueue(hold) => fid.is(hold.fid()),
        }
    }

    /// Returns the context if there is something new and there is room to tell of it.
    fn poll(&mut self, contexts: &mut Contexts<'_>) -> bool {
        match self {
            Self::Counter { hold, told } => match hold.events_since(*told) {
                Some(events) if contexts.push(hold.fid().context()) => {
                    *told = events;
                    true
                }
                _ => false,
            },
            Self::CompletionQueue(hold) => {
                hold.queue().is_ready() && contexts.push(hold.fid().context())
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Self::Counter { hold, .. } = self {
            hold.unwatch();
        }
    }
}

/// A member, which makes the set its own dependent: with members it cannot be closed (R-CLOSE-7).
struct Entry {
    member: Member,
    _set: Hold<PollSet>,
}

struct Members {
    entries: KVVec<Entry>,
    /// Where the next poll begins, so that everybody gets their turn (R-POLL-7).
    next: usize,
}

/// A poll set.
#[pin_data]
pub(crate) struct PollSet {
    /// Taken by whoever adds or removes members, outside of `members`.
    #[pin]
    change: Mutex<()>,
    #[pin]
    members: SpinLockIrq<Members>,
    domain: Hold<Domain>,
}

impl PollSet {
    /// Creates a poll set without members.
    pub(crate) fn new(domain: Hold<Domain>) -> impl PinInit<Self> {
        pin_init!(Self {
            change <- new_mutex!((), "kfi_soft::PollSet::change"),
            members <- new_spinlock_irq!(
                Members {
                    entries: KVVec::new(),
                    next: 0,
                },
                "kfi_soft::PollSet::members"
            ),
            domain,
        })
    }
}

impl Object for PollSet {
    type Class = PollSetClass;

    fn release(&self) {
        // There are no members any more, but there may be memory for some; to free it may sleep,
        // and later nothing may.
        let entries = {
            let mut members = self.members.lock();
            core::mem::replace(&mut members.entries, KVVec::new())
        };
        drop(entries);
        self.domain.release();
    }
}

impl PollSetOps for PollSet {
    fn poll(&self, contexts: &mut Contexts<'_>) {
        let mut members = self.members.lock();
        let count = members.entries.len();
        let first = members.next;
        for at in Iterator::chain(first..count, 0..first.min(count)) {
            if contexts.is_full() {
                break;
            }
            if let Some(entry) = members.entries.get_mut(at) {
                if entry.member.poll(contexts) {
                    members.next = at.wrapping_add(1);
                }
            }
        }
    }

    fn add(this: &Fid<Self>, fid: AnyFid<'_>, flags: u64) -> Result {
        if flags != 0 {
            return Err(EINVAL);
        }
        let _change = this.change.lock();
        let (count, known) = {
            let members = this.members.lock();
            (
                members.entries.len(),
                members.entries.iter().any(|entry| entry.member.is(fid)),
            )
        };
        if known {
            return Ok(());
        }
        // Nobody else changes the members, so that this is room enough for all and one more.
        let mut entries = KVVec::with_capacity(count.wrapping_add(1), GFP_KERNEL | __GFP_NOWARN)?;
        let entry = Entry {
            member: Member::new(fid, this.domain.fid())?,
            _set: Hold::new(this)?,
        };
        let mut members = this.members.lock();
        for old in members.entries.drain_all() {
            if let Err(error) = entries.push_within_capacity(old) {
                // There is room for all.
                drop(error);
            }
        }
        let pushed = entries.push_within_capacity(entry);
        core::mem::swap(&mut members.entries, &mut entries);
        drop(members);
        // The old memory, outside of the lock.
        drop(entries);
        pushed.map_err(|_| ENOMEM)
    }

    fn del(this: &Fid<Self>, fid: AnyFid<'_>, flags: u64) -> Result {
        if flags != 0 {
            return Err(EINVAL);
        }
        let _change = this.change.lock();
        let entry = {
            let mut members = this.members.lock();
            let at = members
                .entries
                .iter()
                .position(|entry| entry.member.is(fid));
            let at = at.ok_or(EINVAL)?;
            if at < members.next {
                members.next = members.next.wrapping_sub(1);
            }
            members.entries.remove(at).map_err(|_| EINVAL)?
        };
        // Outside of the lock, as it takes the counter's.
        drop(entry);
        Ok(())
    }
}
