// SPDX-License-Identifier: GPL-2.0

//! Registered memory, as requests find it.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
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
    memory::{
        Memory,
        RemoteRange, //
    },
    wait_queue::WaitQueue, //
};

/// Counters that arrivals at a region are counted in.
#[derive(Default)]
pub(crate) struct RegionCounters {
    /// Of reads.
    pub(crate) read: Option<Arc<Hold<Counter>>>,
    /// Of writes.
    pub(crate) write: Option<Arc<Hold<Counter>>>,
}

/// Memory that peers may use while it is open.
#[pin_data]
pub(crate) struct Region {
    memory: Memory,
    /// What peers may do.
    access: AccessFlags,
    /// What peers call the first byte.
    base: u64,
    /// Every use is told by an entry.
    pub(crate) event: bool,
    /// The one receive context that may be asked for it, by [`Receiver::id`]; 0 for any.
    ///
    /// [`Receiver::id`]: crate::receiver::Receiver::id
    only: Atomic<usize>,
    #[pin]
    counters: SpinLockIrq<RegionCounters>,
    /// Requests that are using it.
    users: Atomic<usize>,
    closed: Atomic<bool>,
    #[pin]
    idle: WaitQueue,
}

/// A region in use, which is not closed meanwhile.
pub(crate) struct RegionUse(Arc<Region>);

impl core::ops::Deref for RegionUse {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.0
    }
}

impl Drop for RegionUse {
    fn drop(&mut self) {
        // Full: what was done to the memory comes before, the look at `closed` after.
        if self.0.users.fetch_sub(1, ordering::Full) == 1 && self.0.closed.load(ordering::Relaxed) {
            self.0.idle.wake_up_all();
        }
    }
}

impl Region {
    /// Creates a region.
    pub(crate) fn new(
        memory: Memory,
        access: AccessFlags,
        base: u64,
        event: bool,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                memory,
                access,
                base,
                event,
                only: Atomic::new(0),
                counters <- new_spinlock_irq!(
                    RegionCounters::default(),
                    "kfi_soft::Region::counters"
                ),
                users: Atomic::new(0),
                closed: Atomic::new(false),
                idle <- WaitQueue::new(c"kfi_soft::Region::idle", static_lock_class!()),
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

    /// Returns the memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Begins to use the region; `None` if it is closed.
    fn enter(this: &Arc<Self>) -> Option<RegionUse> {
        // Full: pairs with `close`, store before load on both sides: one sees the other.
        this.users.fetch_add(1, ordering::Full);
        let entered = RegionUse(this.clone());
        // Relaxed: ordered by the above.
        if this.closed.load(ordering::Relaxed) {
            return None;
        }
        Some(entered)
    }

    /// Checks a range and returns where it begins; `EACCES` if it may not be used so.
    pub(crate) fn check(&self, range: &RemoteRange, access: AccessFlags) -> Result<usize> {
        if !self.access.contains(access) {
            return Err(EACCES);
        }
        let start = range.addr.checked_sub(self.base).ok_or(EACCES)?;
        let start = usize::try_from(start).map_err(|_| EACCES)?;
        let end = start.checked_add(range.len).ok_or(EACCES)?;
        if end > self.memory.len() {
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
        Ok(())
    }

    /// Returns whether arrivals are counted.
    pub(crate) fn counts(&self) -> bool {
        let counters = self.counters.lock();
        counters.read.is_some() || counters.write.is_some()
    }

    /// Counts an arrival.
    pub(crate) fn count(&self, write: bool) {
        let counter = {
            let counters = self.counters.lock();
            if write {
                counters.write.clone()
            } else {
                counters.read.clone()
            }
        };
        if let Some(counter) = counter {
            counter.complete();
        }
    }

    /// Closes the region: waits until nobody uses it, and nobody will.
    pub(crate) fn close(&self) {
        // Relaxed, and a full barrier: see `enter`.
        self.closed.store(true, ordering::Relaxed);
        smp_mb(ordering::Full);
        self.idle.wait_uninterruptible(|| {
            // Acquire: what users did to the memory is over.
            self.users.load(ordering::Acquire) == 0
        });
        let counters = core::mem::take(&mut *self.counters.lock());
        for counter in [&counters.read, &counters.write].into_iter().flatten() {
            counter.release();
        }
    }
}

/// Regions by their keys.
#[pin_data]
pub(crate) struct Regions {
    #[pin]
    regions: SpinLockIrq<RBTree<u64, Arc<Region>>>,
    /// The key that is tried next when the provider chooses.
    next: Atomic<u64>,
}

impl Regions {
    /// No regions.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            regions <- new_spinlock_irq!(RBTree::new(), "kfi_soft::Regions::regions"),
            next: Atomic::new(0),
        })
    }

    /// Adds a region; `ENOKEY` if the key is taken.
    pub(crate) fn insert(&self, key: u64, region: Arc<Region>) -> Result {
        let node = RBTreeNode::new(key, region, GFP_KERNEL)?;
        let mut regions = self.regions.lock();
        if regions.get(&key).is_some() {
            drop(regions);
            drop(node);
            return Err(ENOKEY.into());
        }
        let old = regions.insert(node);
        drop(regions);
        drop(old);
        Ok(())
    }

    /// Adds a region under a key that is free, up to `last`; returns the key. `ENOKEY` if all are
    /// taken.
    pub(crate) fn insert_anywhere(&self, region: &Arc<Region>, last: u64) -> Result<u64> {
        let mut left = last;
        loop {
            // Relaxed: only a place to begin at.
            let next = self.next.fetch_add(1, ordering::Relaxed);
            if next > last {
                // Somebody else may do so too; then keys are looked at twice, or not at all.
                self.next.store(0, ordering::Relaxed);
                continue;
            }
            match self.insert(next, region.clone()) {
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
        drop(node);
    }

    /// Returns the region of a key, for a receive context; `EKEYREJECTED` if there is none.
    pub(crate) fn find(&self, key: u64, receiver: usize) -> Result<RegionUse> {
        let region = self.regions.lock().get(&key).cloned();
        region
            .filter(|region| region.is_of(receiver))
            .and_then(|region| Region::enter(&region))
            .ok_or_else(|| EKEYREJECTED.into())
    }
}
