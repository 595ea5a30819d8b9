// SPDX-License-Identifier: GPL-2.0

//! Poll sets: which of many counters and completion queues have something new?
//!
//! Every member of every set has a baseline of its own, so that what one set has reported is still
//! news to another. Baselines are numbers of changes, never values (R-POLL-6).
//!
//! Polls look at some members at a time with the lock held, however many there are. Where a member
//! stands is known to those who add and remove members, who sleep; what they do with the lock held
//! does not depend on how many there are either.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use crate::{
    counter::{
        Counter,
        EventCounts, //
    },
    domain::Domain,
    grown::Grown,
    kfi::{
        fid::{
            AnyFid,
            Fid,
            FidAddress,
            Object, //
        },
        hold::Hold,
        provider::{
            PollBuffer,
            PollSetClass,
            PollSetOps, //
        }, //
    },
    queue::completion_queue::CompletionQueue, //
};

/// The kinds of members.
enum Member {
    /// A counter, and the number of its events that this set has reported.
    Counter {
        hold: Hold<Counter>,
        told: EventCounts,
    },
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
            let told = EventCounts::default();
            return Ok(Self::Counter { hold, told });
        }
        let queue = fid.downcast::<CompletionQueue>().ok_or(EINVAL)?;
        if !Arc::ptr_eq(queue.domain(), domain) {
            return Err(EINVAL);
        }
        Ok(Self::CompletionQueue(Hold::new(queue)?))
    }

    /// Returns where the member is.
    fn address(&self) -> FidAddress {
        match self {
            Self::Counter { hold, .. } => hold.fid().address(),
            Self::CompletionQueue(hold) => hold.fid().address(),
        }
    }

    /// Returns the context if there is something new and there is room to report it.
    fn poll(&mut self, contexts: &mut PollBuffer<'_>) -> bool {
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
struct MemberEntry {
    member: Member,
    _set: Hold<PollSet>,
}

/// Members that are looked at with the lock held.
const STEP: usize = 32;

struct Members {
    entries: Grown<MemberEntry>,
    /// Where the next poll begins, so that everybody gets their turn (R-POLL-7).
    next: usize,
}

/// Where members stand.
type Places = RBTree<FidAddress, usize>;

/// A poll set.
#[pin_data]
pub(crate) struct PollSet {
    /// Held to add or remove members, outside of `members`.
    #[pin]
    places: Mutex<Places>,
    #[pin]
    members: SpinLockIrq<Members>,
    domain: Hold<Domain>,
}

impl PollSet {
    /// Creates a poll set without members; there are no flags.
    pub(crate) fn new(domain: Hold<Domain>, flags: u64) -> Result<impl PinInit<Self>> {
        if flags != 0 {
            return Err(EINVAL);
        }
        Ok(pin_init!(Self {
            places <- new_mutex!(RBTree::new(), "kfi_soft::PollSet::places"),
            members <- new_spinlock_irq!(
                Members {
                    entries: Grown::new(),
                    next: 0,
                },
                "kfi_soft::PollSet::members"
            ),
            domain,
        }))
    }
}

impl Object for PollSet {
    type Class = PollSetClass;

    fn release(&self) {
        // There are no members any more, but there may be memory for some; to free it may sleep,
        // and later nothing may.
        let entries = {
            let mut members = self.members.lock();
            core::mem::replace(&mut members.entries, Grown::new())
        };
        drop(entries);
        self.domain.release();
    }
}

impl PollSetOps for PollSet {
    fn poll(&self, contexts: &mut PollBuffer<'_>) {
        let mut left = None;
        let mut at = 0;
        loop {
            let mut members = self.members.lock();
            let count = members.entries.len();
            // All there are when it begins; more or less if there are more or less meanwhile.
            let rest = match left {
                Some(rest) => rest,
                None => {
                    at = members.next;
                    count
                }
            };
            for _ in 0..rest.min(STEP) {
                if at >= count {
                    at = 0;
                }
                let told = members.entries.get_mut(at);
                at = at.wrapping_add(1);
                if told.is_some_and(|entry| entry.member.poll(contexts)) {
                    members.next = at;
                }
                if contexts.is_full() {
                    return;
                }
            }
            if rest <= STEP {
                return;
            }
            left = Some(rest.saturating_sub(STEP));
        }
    }

    fn add(this: &Fid<Self>, fid: AnyFid<'_>, flags: u64) -> Result {
        if flags != 0 {
            return Err(EINVAL);
        }
        let mut places = this.places.lock();
        let address = fid.address();
        if places.get(&address).is_some() {
            return Ok(());
        }
        let place = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let wanted = {
            let members = this.members.lock();
            members.entries.is_full().then(|| members.entries.len())
        };
        if let Some(len) = wanted {
            let more = Grown::allocate(len)?;
            let left = this.members.lock().entries.grow(more);
            drop(left);
        }
        let entry = MemberEntry {
            member: Member::new(fid, this.domain.fid())?,
            _set: Hold::new(this)?,
        };
        let (at, pushed) = {
            let mut members = this.members.lock();
            (
                members.entries.len(),
                members.entries.push_within_capacity(entry),
            )
        };
        // There is room, as nobody else adds any; what there is none for is dropped without the lock.
        pushed.map_err(|_| ENOMEM)?;
        drop(places.insert(place.into_node(address, at)));
        Ok(())
    }

    fn del(this: &Fid<Self>, fid: AnyFid<'_>, flags: u64) -> Result {
        if flags != 0 {
            return Err(EINVAL);
        }
        let mut places = this.places.lock();
        let place = places.remove_node(&fid.address()).ok_or(EINVAL)?;
        let (_, at) = place.to_key_value();
        let (entry, moved) = {
            let mut members = this.members.lock();
            let entry = members.entries.swap_remove(at);
            let moved = members.entries.get_mut(at);
            (entry, moved.map(|entry| entry.member.address()))
        };
        // The last one has taken its place.
        if let Some(place) = moved.and_then(|moved| places.get_mut(&moved)) {
            *place = at;
        }
        // Outside of the lock, as it takes the counter's.
        drop(entry);
        Ok(())
    }
}
