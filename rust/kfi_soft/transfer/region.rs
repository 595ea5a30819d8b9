// SPDX-License-Identifier: GPL-2.0

//! Registered memory, as requests find it.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::address::auth_key::{
    AuthKey,
    KeyNumber, //
};
use crate::counter::Counter;
use crate::kfi::{
    errno::{
        EKEYREJECTED,
        ENOKEY, //
    },
    flags::{
        AccessFlags,
        BindFlags, //
    },
    hold::Hold,
    linux::random::random_u64,
    memory::{
        region::{
            self,
            RegionBuffers,
            RegionMemory, //
        },
        RemoteMemory,
        RemoteRange, //
    },
    provider::Counted, //
};

/// Counters that arrivals at a region are counted in.
#[derive(Default)]
pub(crate) struct RegionCounters {
    /// Of reads.
    pub(crate) read: Option<Arc<Hold<Counter>>>,
    /// Of writes.
    pub(crate) write: Option<Arc<Hold<Counter>>>,
}

/// Memory that peers may use while it is open, and what belongs to it.
#[pin_data]
pub(crate) struct Region {
    /// The access that peers have.
    access: AccessFlags,
    /// The address by which peers name the first byte.
    base: u64,
    /// Every use is reported by an entry.
    pub(crate) event: bool,
    /// Peers need the same, if it has one.
    auth_key: Option<AuthKey>,
    /// The one receive context that may be asked for it, by [`Receiver::id`]; 0 for any.
    ///
    /// [`Receiver::id`]: crate::transfer::receiver::Receiver::id
    only: Atomic<usize>,
    /// Which one it is of those that have been added where it is found.
    serial: Atomic<u64>,
    /// Arrivals may be counted.
    counted: Atomic<bool>,
    #[pin]
    counters: SpinLockIrq<RegionCounters>,
}

/// Memory that peers may use while it is open.
pub(crate) type Registered = RegionMemory<Region>;

/// Registered memory in use, which is not closed meanwhile.
pub(crate) type RegionUse = region::RegionUse<Region>;

impl Region {
    /// Creates a region.
    pub(crate) fn new(
        memory: RegionBuffers<'_>,
        access: AccessFlags,
        base: u64,
        event: bool,
        auth_key: Option<AuthKey>,
    ) -> Result<Arc<Registered>> {
        memory.capture(
            pin_init!(Self {
                access,
                base,
                event,
                auth_key,
                only: Atomic::new(0),
                serial: Atomic::new(0),
                counted: Atomic::new(false),
                counters <- new_spinlock_irq!(
                    RegionCounters::default(),
                    "kfi_soft::Region::counters"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Lets only one receive context be asked for it, from the next request on.
    pub(crate) fn limit_to(&self, receiver: usize) {
        // Relaxed: a number that stands for itself.
        self.only.store(receiver, ordering::Relaxed);
    }

    /// Returns whether a receive context may be asked for it.
    fn is_of(&self, receiver: usize) -> bool {
        // Relaxed: as above.
        let only = self.only.load(ordering::Relaxed);
        only == 0 || only == receiver
    }

    /// Returns what peers call the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Checks a range of as many bytes as it has, and returns where it begins; `EACCES` if it may not
    /// be used so, or not with this authorization key.
    pub(crate) fn check(
        &self,
        len: usize,
        range: &RemoteRange,
        access: AccessFlags,
        auth_key: KeyNumber,
    ) -> Result<usize> {
        let of_others = |own: &AuthKey| own.number() != auth_key;
        if !self.access.contains(access) || self.auth_key.as_ref().is_some_and(of_others) {
            return Err(EACCES);
        }
        let start = range.addr.checked_sub(self.base).ok_or(EACCES)?;
        let start = usize::try_from(start).map_err(|_| EACCES)?;
        let end = start.checked_add(range.len).ok_or(EACCES)?;
        if end > len {
            return Err(EACCES);
        }
        Ok(start)
    }

    /// Lets arrivals be counted; `EINVAL` if they are already.
    pub(crate) fn bind(&self, counter: Arc<Hold<Counter>>, flags: BindFlags) -> Result {
        let mut counters = self.counters.lock();
        let read = flags.contains(BindFlags::REMOTE_READ);
        let write = flags.contains(BindFlags::REMOTE_WRITE);
        if (read && counters.read.is_some()) || (write && counters.write.is_some()) {
            return Err(EINVAL);
        }
        if read {
            counters.read = Some(counter.clone());
        }
        if write {
            counters.write = Some(counter);
        }
        // Relaxed: the counters are looked at with the lock.
        self.counted.store(true, ordering::Relaxed);
        Ok(())
    }

    /// Returns whether arrivals are counted.
    pub(crate) fn counts(&self) -> bool {
        // Relaxed: a peer that is told of the region after a counter was bound finds it.
        self.counted.load(ordering::Relaxed)
    }

    /// Counts an arrival; of the first region of an operation that counts, or of a later one.
    pub(crate) fn count(&self, write: bool, is_first: bool) {
        let counter = {
            let counters = self.counters.lock();
            if write {
                counters.write.clone()
            } else {
                counters.read.clone()
            }
        };
        match counter {
            Some(counter) if is_first => counter.complete(Counted::remote()),
            Some(counter) => counter.complete_next_region(Counted::remote()),
            None => {}
        }
    }

    /// Gives up the counters of a region that is no longer in use.
    pub(crate) fn release(&self) {
        let counters = core::mem::take(&mut *self.counters.lock());
        for counter in [&counters.read, &counters.write].into_iter().flatten() {
            counter.release();
        }
    }
}

/// The regions that there were at a moment.
///
/// A request keeps to the regions that there were when it began: if one of them is closed before the
/// end, the request fails, and does not go on in another one that has got the key since.
#[derive(Clone, Copy)]
pub(crate) struct Moment(u64);

/// The ranges that a request names, of the regions that there were at a moment.
#[derive(Clone, Copy)]
pub(crate) struct RegionRanges<'a> {
    pub(crate) remote: &'a RemoteMemory,
    pub(crate) moment: Moment,
}

/// The ranges that a request names and may use.
pub(crate) struct AllowedRanges<'a> {
    pub(crate) ranges: RegionRanges<'a>,
    /// An entry is to report it.
    pub(crate) told: bool,
    /// The region of the first range, if there is one.
    pub(crate) first: Option<RegionUse>,
}

/// Fewer keys than these can be tried out one after the other.
const FEW_KEYS: u64 = u32::MAX as u64;

/// So often a key is chosen at random. Only if nearly all are taken that does not find one that is free.
const TRIES: usize = 64;

/// Regions by their keys.
#[pin_data]
pub(crate) struct Regions {
    #[pin]
    regions: SpinLockIrq<RBTree<u64, Arc<Registered>>>,
    /// How many have been added.
    added: Atomic<u64>,
    /// Of how many every use is reported by an entry.
    reporting: Atomic<usize>,
    /// The key that is tried next when the provider chooses.
    next: Atomic<u64>,
}

impl Regions {
    /// No regions.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            regions <- new_spinlock_irq!(RBTree::new(), "kfi_soft::Regions::regions"),
            added: Atomic::new(0),
            reporting: Atomic::new(0),
            next: Atomic::new(0),
        })
    }

    /// Adds a region; `ENOKEY` if the key is taken.
    pub(crate) fn insert(&self, key: u64, region: &Arc<Registered>) -> Result {
        let node = RBTreeNode::new(key, region.clone(), GFP_KERNEL)?;
        let mut regions = self.regions.lock();
        if regions.get(&key).is_some() {
            drop(regions);
            drop(node);
            return Err(ENOKEY.into());
        }
        // Relaxed, all: written under the lock, and the one of the region before that is found.
        let serial = self.added.load(ordering::Relaxed).wrapping_add(1);
        region.serial.store(serial, ordering::Relaxed);
        if region.event {
            // Relaxed: a peer that is told of the region finds it.
            self.reporting.fetch_add(1, ordering::Relaxed);
        }
        let old = regions.insert(node);
        self.added.store(serial, ordering::Relaxed);
        drop(regions);
        drop(old);
        Ok(())
    }

    /// Adds a region under a key that is free, up to `last`; returns the key. `ENOKEY` if all are
    /// taken.
    ///
    /// The key is all that a peer needs to use the region, so it is one that nobody guesses, if there
    /// are enough of them. If there are not, it is one that was not used for as long as possible.
    pub(crate) fn insert_anywhere(&self, region: &Arc<Registered>, last: u64) -> Result<u64> {
        if last >= FEW_KEYS {
            // Of all bits that one has.
            let mask = u64::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
            for _ in 0..TRIES {
                let key = random_u64() & mask;
                if key > last {
                    continue;
                }
                match self.insert(key, region) {
                    Err(error) if error == ENOKEY.into() => {}
                    result => return result.map(|()| key),
                }
            }
        }
        let mut left = last;
        loop {
            // Relaxed: only a place to begin at.
            let next = self.next.fetch_add(1, ordering::Relaxed);
            if next > last {
                // Other threads may do so too; then keys are looked at twice, or not at all.
                self.next.store(0, ordering::Relaxed);
                continue;
            }
            match self.insert(next, region) {
                Err(error) if error == ENOKEY.into() => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(next),
            }
            left = left.checked_sub(1).ok_or(ENOKEY)?;
        }
    }

    /// Removes a region.
    pub(crate) fn remove(&self, key: u64) {
        let node = self.regions.lock().remove_node(&key);
        let region = node.map(|node| node.to_key_value().1);
        if region.is_some_and(|region| region.event) {
            // Relaxed: it is not found any more.
            self.reporting.fetch_sub(1, ordering::Relaxed);
        }
    }

    /// Returns whether there may be a region of which every use is reported by an entry.
    pub(crate) fn may_report(&self) -> bool {
        // Relaxed: see `insert`.
        self.reporting.load(ordering::Relaxed) != 0
    }

    /// Returns this moment.
    pub(crate) fn moment(&self) -> Moment {
        // Relaxed: what a thread has learned of comes before. Others may be found or not.
        Moment(self.added.load(ordering::Relaxed))
    }

    /// Returns the region that had a key at a moment, for a receive context; `EKEYREJECTED` if there was
    /// none, or it is closed.
    pub(crate) fn find(&self, key: u64, receiver: usize, moment: Moment) -> Result<RegionUse> {
        let region = self.regions.lock().get(&key).cloned();
        region
            // Relaxed: written before the region could be found.
            .filter(|region| region.serial.load(ordering::Relaxed) <= moment.0)
            .filter(|region| region.is_of(receiver))
            .and_then(|region| RegionMemory::enter(&region))
            .ok_or_else(|| EKEYREJECTED.into())
    }
}
