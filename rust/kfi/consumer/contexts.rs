// SPDX-License-Identifier: GPL-2.0

//! Contexts of operations.
//!
//! To a provider the context of an operation is a pointer: one that it does not look behind, or, if
//! the operation is triggered, that of a `struct kfi_triggered_context`. Which of both it is, flags
//! say that somebody else may be changing. So the context of an operation always is such a structure,
//! kept here, and never a number of the user's; without a condition it has the type of an event that
//! there is not, with which no provider takes the operation for a triggered one.
//!
//! The user knows an operation by a number. All operations of an owner with the same number have the
//! same structure, unless it has a condition. It is freed when as many completions were seen as there
//! are operations, or when its owner is gone.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::{
    budget::{
        Budget,
        Charge, //
    },
    object::{
        AnyObject,
        Lineage, //
    }, //
};
use crate::kfi::{
    bindings,
    fid::Context, //
};

/// The condition of a triggered operation, as it is handed over.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'a> {
    /// What is waited for (`enum kfi_trigger_event`).
    pub(crate) event: u32,
    /// The counter.
    pub(crate) cntr: Option<AnyObject<'a>>,
    /// The threshold.
    pub(crate) threshold: usize,
}

impl Condition<'_> {
    /// Returns the structure; `EINVAL` unless the counter is one of the domain.
    pub(super) fn raw(self, of: Lineage) -> Result<bindings::kfi_triggered_context2> {
        let mut raw: bindings::kfi_triggered_context2 = pin_init::zeroed();
        raw.event_type = self.event;
        raw.trigger.threshold = bindings::kfi_trigger_threshold {
            cntr: AnyObject::counter(self.cntr, of)?,
            threshold: self.threshold,
        };
        Ok(raw)
    }
}

/// The type of an event that there is not (`enum kfi_trigger_event`).
const NO_EVENT: u32 = u32::MAX;

/// How long an operation uses its context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasts {
    /// Until its completion.
    Once,
    /// Until its last completion, which says so, or until its owner is gone.
    Repeats,
    /// Until its owner is gone.
    Kept,
}

/// A pointer that a provider has told, once.
pub(crate) struct Told(usize);

impl Told {
    /// Takes what a provider has told.
    pub(super) fn new(address: usize) -> Self {
        Self(address)
    }

    /// Returns the pointer as a number, to compare it with others.
    pub(crate) fn address(&self) -> usize {
        self.0
    }
}

/// A structure for a provider.
struct Structure {
    raw: Opaque<bindings::kfi_triggered_context2>,
    _charge: Charge,
}

// SAFETY: The structure is the provider's, which may use it from any thread.
unsafe impl Send for Structure {}
// SAFETY: As above; it is not looked at from Rust.
unsafe impl Sync for Structure {}

/// The owner, the number that the user knows, and which of the structures for these.
type Key = (u32, u64, u64);

/// The owner of what belongs to no object in particular.
const NOBODY: u32 = 0;

/// That of operations with one completion.
const ONCE: u64 = 0;
/// That of operations with several.
const REPEATS: u64 = 1;
/// That of those that others refer to, or that nobody knows the end of.
const KEPT: u64 = 2;
/// From here on those with a condition.
const CONDITIONS: u64 = 3;

/// What a pointer means.
struct Entry {
    key: Key,
    /// Completions that are yet to be seen.
    uses: usize,
    lasts: Lasts,
    /// The structure at the pointer, if it is kept here.
    _structure: Option<KBox<Structure>>,
}

/// What a removed entry has had, to be dropped without the lock.
type Removed = (
    Option<RBTreeNode<usize, Entry>>,
    Option<RBTreeNode<Key, usize>>,
);

/// The entries.
struct Table {
    by_address: RBTree<usize, Entry>,
    /// The addresses of all of them.
    by_key: RBTree<Key, usize>,
    /// Owners that are gone but may have completions in queues with numbers up to the first one.
    orphans: RBTree<(u32, u32), ()>,
    /// The last number of a structure with a condition.
    last: u64,
}

impl Table {
    /// Removes an entry.
    fn remove(&mut self, address: usize) -> Removed {
        let Some(key) = self.by_address.get(&address).map(|entry| entry.key) else {
            return (None, None);
        };
        (
            self.by_address.remove_node(&address),
            self.by_key.remove_node(&key),
        )
    }

    /// Returns the address of the first entry from a key on, if that has the same owner.
    fn next(&self, from: Key) -> Option<(Key, usize)> {
        let (&key, &address) = self.by_key.cursor_lower_bound(&from)?.current();
        (key.0 == from.0).then_some((key, address))
    }

    /// Notes that a use of an entry has ended.
    fn end_use(&mut self, address: usize) -> Removed {
        if let Some(entry) = self.by_address.get_mut(&address) {
            entry.uses = entry.uses.saturating_sub(1);
            if entry.uses == 0 && entry.lasts != Lasts::Kept {
                return self.remove(address);
            }
        }
        (None, None)
    }
}

/// The contexts of a consumer's operations.
#[pin_data]
pub(crate) struct Contexts {
    #[pin]
    table: Mutex<Table>,
    budget: Arc<Budget>,
    /// A context that no operation has.
    unused: KBox<Structure>,
}

/// Returns whether a number could be the address of something in the kernel.
pub(crate) fn is_address(number: usize) -> bool {
    // SAFETY: Callable from any context.
    number >= unsafe { bindings::first_kernel_address() }
}

/// Returns a structure without a condition.
fn unconditional() -> bindings::kfi_triggered_context2 {
    let mut raw: bindings::kfi_triggered_context2 = pin_init::zeroed();
    raw.event_type = NO_EVENT;
    raw
}

impl Structure {
    /// Makes a structure whose memory counts in `budget`, with `more` that the provider takes.
    fn new(
        raw: bindings::kfi_triggered_context2,
        budget: &Arc<Budget>,
        more: usize,
    ) -> Result<KBox<Self>> {
        let charge = Budget::charge(budget, ENTRY_SIZE.saturating_add(more))?;
        let structure = Self {
            raw: Opaque::new(raw),
            _charge: charge,
        };
        Ok(KBox::new(structure, GFP_KERNEL_ACCOUNT)?)
    }
}

/// What a structure and its nodes take, those of an orphaned owner included.
const ENTRY_SIZE: usize = 2 * size_of::<Structure>() + 4 * 64;

/// What a provider takes for an operation that waits for its condition.
const PENDING_SIZE: usize = 512;

/// Entries that are removed while the lock is held once.
const BATCH: usize = 64;

impl Contexts {
    /// Creates an empty collection whose memory counts in `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> Result<Arc<Self>> {
        let unused = Structure::new(unconditional(), &budget, 0)?;
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(
                    Table {
                        by_address: RBTree::new(),
                        by_key: RBTree::new(),
                        orphans: RBTree::new(),
                        last: CONDITIONS,
                    },
                    "kfi::Contexts::table"
                ),
                budget,
                unused,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns where the memory of operations counts.
    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Finds the shared structure of a key and uses it once more.
    fn reuse(&self, key: Key) -> Option<usize> {
        let mut table = self.table.lock();
        let address = *table.by_key.get(&key)?;
        let entry = table.by_address.get_mut(&address)?;
        entry.uses = entry.uses.saturating_add(1);
        Some(address)
    }

    /// Adds an entry, or uses the one that is there; returns its address.
    fn add(
        &self,
        key: Key,
        lasts: Lasts,
        structure: Option<KBox<Structure>>,
        address: usize,
        uses: usize,
    ) -> Result<usize> {
        let index = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNode::new(
            address,
            Entry {
                key,
                uses,
                lasts,
                _structure: structure,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut table = self.table.lock();
        let Table {
            by_address, by_key, ..
        } = &mut *table;
        if let Some(&known) = by_key.get(&key) {
            if let Some(entry) = by_address.get_mut(&known) {
                // Another thread was faster.
                entry.uses = entry.uses.saturating_add(uses);
                drop(table);
                return Ok(known);
            }
        }
        let old = by_address.insert(node);
        let other = by_key.insert(index.into_node(key, address));
        drop(table);
        drop((old, other));
        Ok(address)
    }

    /// Returns the context for operations without a condition, to be given back with
    /// [`Self::release`] if the operation was refused.
    pub(super) fn acquire(&self, owner: u32, number: u64, lasts: Lasts) -> Result<Context> {
        let which = match lasts {
            Lasts::Once => ONCE,
            Lasts::Repeats => REPEATS,
            Lasts::Kept => KEPT,
        };
        let key = (owner, number, which);
        let address = match self.reuse(key) {
            Some(address) => address,
            None => {
                let structure = Structure::new(unconditional(), &self.budget, 0)?;
                let address = structure.raw.get().addr();
                self.add(key, lasts, Some(structure), address, 1)?
            }
        };
        Ok(Context::from_number(address))
    }

    /// Returns a context with a condition; it is in use twice, the second time by the caller. The
    /// provider keeps about `kept` bytes of the operation's arrays.
    pub(super) fn acquire_with(
        &self,
        owner: u32,
        number: u64,
        lasts: Lasts,
        raw: bindings::kfi_triggered_context2,
        kept: usize,
    ) -> Result<Context> {
        let structure = Structure::new(raw, &self.budget, PENDING_SIZE.saturating_add(kept))?;
        let address = structure.raw.get().addr();
        let which = {
            let mut table = self.table.lock();
            table.last = table.last.checked_add(1).ok_or(ENOSPC)?;
            table.last
        };
        let key = (owner, number, which);
        self.add(key, lasts, Some(structure), address, 2)?;
        Ok(Context::from_number(address))
    }

    /// Notes that the operation of a context may have more than one completion.
    pub(super) fn may_repeat(&self, context: Context) {
        let mut table = self.table.lock();
        if let Some(entry) = table.by_address.get_mut(&context.as_number()) {
            if entry.lasts == Lasts::Once {
                entry.lasts = Lasts::Repeats;
            }
        }
    }

    /// Takes back the context of an operation that was refused, or what the caller of
    /// [`Self::acquire_with`] has of it.
    pub(super) fn release(&self, context: Context) {
        let removed = self.table.lock().end_use(context.as_number());
        drop(removed);
    }

    /// Returns the context for something that is no operation, which is the number itself unless it
    /// could be an address; until the owner is gone.
    pub(crate) fn number(&self, owner: u32, number: u64) -> Result<Context> {
        let plain = usize::try_from(number)?;
        if is_address(plain) {
            self.acquire(owner, number, Lasts::Kept)
        } else {
            Ok(Context::from_number(plain))
        }
    }

    /// As [`Self::number`], until what is returned is dropped.
    pub(crate) fn named(this: &Arc<Self>, number: u64) -> Result<Named> {
        let plain = usize::try_from(number)?;
        let context = if is_address(plain) {
            this.acquire(NOBODY, number, Lasts::Once)?
        } else {
            Context::from_number(plain)
        };
        Ok(Named {
            contexts: this.clone(),
            context,
        })
    }

    /// Returns the context for something that is told back once, in an event or a completion that
    /// the user writes.
    pub(super) fn written(&self, owner: u32, number: u64) -> Result<Context> {
        self.acquire(owner, number, Lasts::Once)
    }

    /// Lets the address of something that an owner keeps stand for a number until the owner is gone.
    pub(super) fn note(&self, owner: u32, number: u64, address: usize) -> Result {
        self.add((owner, number, KEPT), Lasts::Kept, None, address, 1)?;
        Ok(())
    }

    /// Returns the number that a pointer stands for; 0 if it means nothing to the user.
    pub(crate) fn number_of(&self, address: usize) -> u64 {
        if !is_address(address) {
            return address as u64;
        }
        let table = self.table.lock();
        table
            .by_address
            .get(&address)
            .map_or(0, |entry| entry.key.1)
    }

    /// Returns the number that a pointer stands for, if that is known, which is told once more.
    pub(crate) fn peek(&self, told: &Told) -> Option<u64> {
        let table = self.table.lock();
        table.by_address.get(&told.0).map(|entry| entry.key.1)
    }

    /// Returns the number that a pointer in a completion stands for, if that is known; `last` says
    /// whether the provider has told that it is the last one of several.
    pub(crate) fn complete(&self, told: Told, last: bool) -> Option<u64> {
        if !is_address(told.0) {
            return Some(told.0 as u64);
        }
        let mut table = self.table.lock();
        let entry = table.by_address.get(&told.0)?;
        let number = entry.key.1;
        let ends = match entry.lasts {
            Lasts::Once => true,
            Lasts::Repeats => last,
            Lasts::Kept => false,
        };
        let removed = if ends {
            table.end_use(told.0)
        } else {
            (None, None)
        };
        drop(table);
        drop(removed);
        Some(number)
    }

    /// Returns the next context from a key on with its owner and number, which is in use once more.
    fn next_to_cancel(&self, from: Key) -> Option<(Key, Context)> {
        let mut table = self.table.lock();
        let (key, address) = table.next(from).filter(|(key, _)| key.1 == from.1)?;
        let entry = table.by_address.get_mut(&address)?;
        // It must not become that of another operation meanwhile.
        entry.uses = entry.uses.saturating_add(1);
        Some((key, Context::from_number(address)))
    }

    /// Calls `cancel` with every context that an operation of the owners with this number could
    /// have, the oldest condition first, until it succeeds; `EINTR` for a signal.
    pub(super) fn cancel(
        &self,
        owners: [u32; 2],
        number: u64,
        cancel: impl Fn(Context) -> Result,
    ) -> Result {
        let mut asked = false;
        for owner in owners {
            let mut from = (owner, number, 0);
            while let Some((key, context)) = self.next_to_cancel(from) {
                let ret = cancel(context);
                self.release(context);
                match ret {
                    Err(error) if error == ENOENT => asked = true,
                    ret => return ret,
                }
                if kernel::current!().signal_pending() {
                    return Err(EINTR);
                }
                let Some(which) = key.2.checked_add(1) else {
                    break;
                };
                from = (owner, number, which);
            }
        }
        if asked {
            return Err(ENOENT);
        }
        // What the provider says of an operation that there is not.
        cancel(Context::from_raw(self.unused.raw.get().cast()))
    }

    /// Forgets what an owner has that is closed; if there are completion queues, with numbers up to
    /// `last`, that may hold completions, only when these are closed.
    pub(crate) fn end(&self, owner: u32, last: Option<u32>) {
        let Some(last) = last else {
            return self.remove_all(owner);
        };
        // Without memory for that, until everything ends.
        let Ok(node) = RBTreeNode::new((last, owner), (), GFP_KERNEL_ACCOUNT) else {
            return;
        };
        let mut table = self.table.lock();
        if table.next((owner, 0, 0)).is_none() {
            drop(table);
            return;
        }
        let old = table.orphans.insert(node);
        drop(table);
        drop(old);
    }

    /// Removes what an owner has.
    fn remove_all(&self, owner: u32) {
        loop {
            let mut batch: [Removed; BATCH] = core::array::from_fn(|_| (None, None));
            let mut table = self.table.lock();
            for removed in &mut batch {
                let Some((_, address)) = table.next((owner, 0, 0)) else {
                    drop(table);
                    return;
                };
                *removed = table.remove(address);
            }
            drop(table);
            drop(batch);
            // Others want the CPU, too.
            kernel::task::might_sleep();
        }
    }

    /// Forgets what was left over for completion queues; the first one that is open has the number
    /// `first`.
    pub(crate) fn settle(&self, first: Option<u32>) {
        loop {
            let mut table = self.table.lock();
            let Some(cursor) = table.orphans.cursor_front() else {
                return;
            };
            let (&(last, owner), ()) = cursor.current();
            if first.is_some_and(|first| first <= last) {
                return;
            }
            let node = table.orphans.remove_node(&(last, owner));
            drop(table);
            drop(node);
            self.remove_all(owner);
        }
    }
}

/// A number as a context, until this is dropped.
pub(crate) struct Named {
    contexts: Arc<Contexts>,
    context: Context,
}

impl Named {
    /// Returns the context.
    pub(crate) fn context(&self) -> Context {
        self.context
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if is_address(self.context.as_number()) {
            self.contexts.release(self.context);
        }
    }
}
