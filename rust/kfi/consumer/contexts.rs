// SPDX-License-Identifier: GPL-2.0

//! Contexts of operations.
//!
//! To a provider the context of an operation is a pointer: one that it does not look behind, or, if
//! the operation is triggered, that of a `struct kfi_triggered_context`. Flags decide which of the two
//! it is, and another thread may be changing these. So the context of an operation always is such a
//! structure, kept here, and never a number of the user's; without a condition it has an event type
//! that does not exist, with which no provider takes the operation for a triggered one.
//!
//! The user knows an operation by a number. All operations of an owner with the same number have the
//! same structure, unless it has a condition. It is freed when as many completions were seen as there
//! are operations, or when its owner is gone; only then if an operation may have several completions,
//! as nobody knows in which order these are seen, nor by how many threads.

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
    leftovers::Leftovers,
    object::{
        AnyObject,
        Lineage, //
    },
    peak::Taken,
    quota::{
        Charge,
        Quota, //
    }, //
};
use crate::kfi::{
    bindings,
    context::Context, //
};

/// The condition of a triggered operation, as it is handed over.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    /// The event that is waited for (`enum kfi_trigger_event`).
    pub event: u32,
    /// The counter.
    pub cntr: Option<AnyObject<'a>>,
    /// The threshold.
    pub threshold: usize,
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

/// An event type that does not exist (`enum kfi_trigger_event`).
const NO_EVENT: u32 = u32::MAX;

/// How long an operation uses its context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasts {
    /// Until its completion.
    Once,
    /// Until its owner is gone, as there may be several completions.
    Repeats,
    /// Until its owner is gone.
    Kept,
}

/// A structure for a provider.
struct Structure {
    raw: Opaque<bindings::kfi_triggered_context2>,
    charge: Charge,
    /// Where the provider keeps an operation that waits for its condition.
    place: Option<Taken>,
}

// SAFETY: The structure is the provider's, which may use it from any thread.
unsafe impl Send for Structure {}
// SAFETY: As above; it is not looked at from Rust.
unsafe impl Sync for Structure {}

/// Identifies an owner among all that there were.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerId(u64);

/// The owner of what belongs to no object in particular.
const NOBODY: OwnerId = OwnerId(0);

/// An owner of contexts, which are forgotten when this is dropped.
pub(super) struct Owner {
    contexts: Arc<Contexts>,
    id: OwnerId,
}

impl Owner {
    /// Returns the owner.
    pub(super) fn id(&self) -> OwnerId {
        self.id
    }

    /// Returns the contexts.
    pub(super) fn contexts(&self) -> &Arc<Contexts> {
        &self.contexts
    }

    /// Leaves the contexts to be forgotten with [`Contexts::forget`].
    pub(super) fn keep(mut self) -> OwnerId {
        // The owner that this is dropped with has no contexts to be forgotten.
        core::mem::replace(&mut self.id, NOBODY)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.id != NOBODY {
            self.contexts.forget(self.id);
        }
    }
}

/// The owner, the number that the user knows, and which of the structures for these.
type Key = (OwnerId, u64, u64);

/// Third part of the key: an operation with one completion.
const ONCE: u64 = 0;
/// Third part of the key: an operation that may have several completions.
const REPEATS: u64 = 1;
/// Third part of the key: an operation that others refer to, or whose end is not told to anybody.
const KEPT: u64 = 2;
/// Third part of the key: a note.
const NOTED: u64 = 3;
/// Third part of the key: an operation whose success is not told to anybody.
const SILENT: u64 = 4;
/// Third part of the key from here on: an operation with a condition, or with a number that has come
/// again.
const CONDITIONS: u64 = 5;

/// The meaning of a pointer.
struct Entry {
    key: Key,
    /// Completions that are yet to be seen; of operations that may have several, those that were
    /// accepted.
    uses: usize,
    /// Operations that are being posted, of which nobody knows yet whether there are several for each;
    /// those that are being cancelled, too, if it is used for one number after the other.
    posting: usize,
    /// Completions that were seen meanwhile.
    early: usize,
    lasts: Lasts,
    /// When the owner's structures that are used for one number after the other are up again: the
    /// lowest is next.
    slot: Option<u64>,
    /// The key and the slot that it had before an operation is posted for whose number it was taken.
    before: Option<(Key, u64)>,
    /// The structure at the pointer, if it is kept here.
    structure: Option<KBox<Structure>>,
}

impl Entry {
    /// Uses it once more.
    fn use_again(&mut self, posting: bool) {
        self.uses = self.uses.saturating_add(1);
        self.posting = self.posting.saturating_add(posting.into());
    }

    /// Notes that the provider keeps nothing of the operation any more.
    fn give_back(&mut self) {
        if let Some(structure) = &mut self.structure {
            // Never refused, as it gives back.
            let _ = structure.charge.set(ENTRY_SIZE);
            structure.place = None;
        }
    }
}

/// The content of a removed entry, to be dropped without the lock.
type Removed = (
    Option<RBTreeNode<usize, Entry>>,
    Option<RBTreeNode<Key, usize>>,
    Option<RBTreeNode<(OwnerId, u64), usize>>,
);

/// Nothing.
const NOTHING: Removed = (None, None, None);

/// The entries.
struct Table {
    by_address: RBTree<usize, Entry>,
    /// The addresses of all of them.
    by_key: RBTree<Key, usize>,
    /// The addresses of structures that are used for one number after the other, by owner and slot.
    slots: RBTree<(OwnerId, u64), usize>,
    /// The first and the last slot of these.
    ends: (u64, u64),
    /// The last of the structures from [`CONDITIONS`] on.
    last: u64,
    /// The last owner.
    last_owner: u64,
}

impl Table {
    /// Removes the entry of a key.
    fn remove(&mut self, key: Key) -> Removed {
        let Some(&address) = self.by_key.get(&key) else {
            return NOTHING;
        };
        let index = self.by_key.remove_node(&key);
        let slot = match self.by_address.get(&address) {
            Some(entry) if entry.key == key => entry.slot,
            _ => return (None, index, None),
        };
        let slot = slot.and_then(|slot| self.slots.remove_node(&(key.0, slot)));
        (self.by_address.remove_node(&address), index, slot)
    }

    /// Returns the first key from one on with its address, if that has the same owner.
    fn next(&self, from: Key) -> Option<(Key, usize)> {
        let (&key, &address) = self.by_key.cursor_lower_bound(&from)?.current();
        (key.0 == from.0).then_some((key, address))
    }

    /// Returns a slot behind all others.
    fn last_slot(&mut self) -> u64 {
        // It does not wrap while a machine runs, here and below.
        self.ends.1 = self.ends.1.wrapping_add(1);
        self.ends.1
    }

    /// Returns a slot before all others.
    fn first_slot(&mut self) -> u64 {
        self.ends.0 = self.ends.0.wrapping_sub(1);
        self.ends.0
    }

    /// Lets an entry have the number and the slot again that it had before operations that were refused.
    fn restore(&mut self, address: usize) {
        let Some(entry) = self.by_address.get_mut(&address) else {
            return;
        };
        let (Some(now), Some((mut key, slot))) = (entry.slot, entry.before.take()) else {
            return;
        };
        if key != entry.key {
            if self.by_key.get(&key).is_some() {
                // Its number has come again meanwhile: this is another one of it, of which there is
                // none. It does not wrap, either.
                self.last = self.last.wrapping_add(1);
                key.2 = self.last;
            }
            if let Some(node) = self.by_key.remove_node(&entry.key) {
                let node = node.into_reservation().into_node(key, address);
                self.by_key.insert(node);
            }
            entry.key = key;
        }
        entry.slot = Some(slot);
        if let Some(node) = self.slots.remove_node(&(key.0, now)) {
            let node = node.into_reservation().into_node((key.0, slot), address);
            self.slots.insert(node);
        }
    }

    /// Notes that one less is posted or cancelled, and that it was refused or has ended.
    fn settle(&mut self, address: usize, accepted: bool) -> Removed {
        let Some(entry) = self.by_address.get_mut(&address) else {
            return NOTHING;
        };
        entry.posting = entry.posting.saturating_sub(1);
        if accepted {
            entry.before = None;
        }
        let refused = entry.before.is_some() && entry.posting == 0;
        let mut ended = usize::from(!accepted);
        if entry.posting == 0 {
            let early = core::mem::take(&mut entry.early);
            if entry.lasts == Lasts::Once {
                ended = ended.saturating_add(early);
            }
        }
        if refused {
            self.restore(address);
        }
        self.end_uses(address, ended)
    }

    /// Notes that uses of an entry have ended.
    fn end_uses(&mut self, address: usize, uses: usize) -> Removed {
        if let Some(entry) = self.by_address.get_mut(&address) {
            entry.uses = entry.uses.saturating_sub(uses);
            if entry.uses == 0 && entry.posting == 0 && entry.lasts != Lasts::Kept {
                let key = entry.key;
                return self.remove(key);
            }
        }
        NOTHING
    }
}

/// The contexts of a consumer's operations.
#[pin_data]
pub struct Contexts {
    #[pin]
    table: Mutex<Table>,
    quota: Arc<Quota>,
    /// The remains of objects that are closed.
    #[pin]
    leftovers: Leftovers,
    /// A context that no operation has.
    unused: KBox<Structure>,
}

/// Returns whether a number that a provider has told could be the address of something in the kernel.
pub fn is_address(number: usize) -> bool {
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
    /// Makes a structure whose memory counts in `quota`, with `more` that the provider takes.
    fn new(
        raw: bindings::kfi_triggered_context2,
        quota: &Arc<Quota>,
        more: usize,
        place: Option<Taken>,
    ) -> Result<KBox<Self>> {
        let charge = Quota::charge(quota, ENTRY_SIZE.saturating_add(more))?;
        let structure = Self {
            raw: Opaque::new(raw),
            charge,
            place,
        };
        Ok(KBox::new(structure, GFP_KERNEL_ACCOUNT)?)
    }
}

/// The memory of a structure and its nodes, those of an orphaned owner included.
const ENTRY_SIZE: usize = 2 * size_of::<Structure>() + 4 * 64;

/// Entries that are removed while the lock is held once.
const BATCH: usize = 64;

impl Contexts {
    /// Creates an empty collection whose memory counts in `quota`.
    pub fn new(quota: Arc<Quota>) -> Result<Arc<Self>> {
        let unused = Structure::new(unconditional(), &quota, 0, None)?;
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(
                    Table {
                        by_address: RBTree::new(),
                        by_key: RBTree::new(),
                        slots: RBTree::new(),
                        ends: (u64::MAX / 2, u64::MAX / 2),
                        last: CONDITIONS,
                        last_owner: 0,
                    },
                    "kfi::Contexts::table"
                ),
                quota,
                leftovers <- Leftovers::new(),
                unused,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns where the memory of operations counts.
    pub(super) fn quota(&self) -> &Arc<Quota> {
        &self.quota
    }

    /// Returns what objects that are closed have left over.
    pub(super) fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }

    /// Returns an owner that there was not yet.
    pub(super) fn owner(this: &Arc<Self>) -> Result<Owner> {
        let id = {
            let mut table = this.table.lock();
            table.last_owner = table.last_owner.checked_add(1).ok_or(ENOSPC)?;
            OwnerId(table.last_owner)
        };
        Ok(Owner {
            contexts: this.clone(),
            id,
        })
    }

    /// Finds the shared structure of a key and uses it once more, for an operation that is `posting` or
    /// not.
    fn reuse(&self, key: Key, posting: bool) -> Option<usize> {
        let mut table = self.table.lock();
        let address = *table.by_key.get(&key)?;
        let entry = table.by_address.get_mut(&address)?;
        entry.use_again(posting);
        Some(address)
    }

    /// Adds an entry, or uses the one that is there; returns its address.
    fn add(
        &self,
        key: Key,
        lasts: Lasts,
        structure: Option<KBox<Structure>>,
        address: usize,
        posting: bool,
    ) -> Result<usize> {
        let index = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNode::new(
            address,
            Entry {
                key,
                uses: 1,
                posting: posting.into(),
                early: 0,
                lasts,
                slot: None,
                before: None,
                structure,
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
                entry.use_again(posting);
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

    /// Returns a context without a condition that is in use once more, to be ended by a completion or
    /// with [`Self::release`], or settled with [`Self::posted`] if it is for `posting`.
    ///
    /// Every number costs the same: which numbers could be addresses of this kernel is
    /// not told.
    fn acquire_for(
        &self,
        owner: OwnerId,
        number: u64,
        lasts: Lasts,
        posting: bool,
    ) -> Result<Context> {
        let which = match lasts {
            Lasts::Once => ONCE,
            Lasts::Repeats => REPEATS,
            Lasts::Kept => KEPT,
        };
        let key = (owner, number, which);
        let address = match self.reuse(key, posting) {
            Some(address) => address,
            None => {
                let structure = Structure::new(unconditional(), &self.quota, 0, None)?;
                let address = structure.raw.get().addr();
                self.add(key, lasts, Some(structure), address, posting)?
            }
        };
        Ok(Context::from_number(address))
    }

    /// Returns the context of something that is told once, or kept.
    pub(super) fn acquire(&self, owner: OwnerId, number: u64, lasts: Lasts) -> Result<Context> {
        self.acquire_for(owner, number, lasts, false)
    }

    /// Returns the context of an operation without a condition, to be settled with
    /// [`Self::posted`].
    pub(super) fn acquire_to_post(
        &self,
        owner: OwnerId,
        number: u64,
        lasts: Lasts,
    ) -> Result<Context> {
        self.acquire_for(owner, number, lasts, true)
    }

    /// Returns the context of an operation without a condition whose success nobody is told of, so that
    /// nobody learns when it is not in use any more; to be settled with [`Self::posted`]. It stays until
    /// the owner is gone, but if there may not be one more, asked by `may_add`, the oldest becomes that
    /// of the new number: a caller that fails thereafter has that one.
    pub(super) fn acquire_silent(
        &self,
        owner: OwnerId,
        number: u64,
        may_add: impl FnOnce() -> bool,
    ) -> Result<Context> {
        let key = (owner, number, SILENT);
        if let Some(address) = self.reuse(key, true) {
            return Ok(Context::from_number(address));
        }
        if !may_add() {
            if let Some(context) = self.take_oldest(key) {
                return Ok(context);
            }
            // Each of them is posted or cancelled by a thread at this time: there may be one more.
        }
        let index = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let place = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let structure = Structure::new(unconditional(), &self.quota, 0, None)?;
        let address = structure.raw.get().addr();
        let (slot, first) = {
            let mut table = self.table.lock();
            (table.last_slot(), table.first_slot())
        };
        let node = RBTreeNode::new(
            address,
            Entry {
                key,
                uses: 1,
                posting: 1,
                early: 0,
                lasts: Lasts::Kept,
                slot: Some(slot),
                // If it is refused this is the first one to be taken for another.
                before: Some((key, first)),
                structure: Some(structure),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut table = self.table.lock();
        let Table {
            by_address, by_key, ..
        } = &mut *table;
        if let Some(&other) = by_key.get(&key) {
            // Another thread was faster.
            if let Some(entry) = by_address.get_mut(&other) {
                entry.use_again(true);
            }
            drop(table);
            return Ok(Context::from_number(other));
        }
        let old = (
            table.by_address.insert(node),
            table.by_key.insert(index.into_node(key, address)),
            table.slots.insert(place.into_node((owner, slot), address)),
        );
        drop(table);
        drop(old);
        Ok(Context::from_number(address))
    }

    /// Takes the oldest of an owner's structures that are used for one number after the other for a key;
    /// none if all are those of operations that are being posted or cancelled.
    fn take_oldest(&self, key: Key) -> Option<Context> {
        let mut table = self.table.lock();
        let last = table.last_slot();
        let Table {
            by_address,
            by_key,
            slots,
            ..
        } = &mut *table;
        if let Some(&known) = by_key.get(&key) {
            if let Some(entry) = by_address.get_mut(&known) {
                // Another thread was faster.
                entry.use_again(true);
                return Some(Context::from_number(known));
            }
        }
        // No more structures are being posted than there are threads: the loop is short.
        let mut from = (key.0, 0);
        let (slot, address) = loop {
            let (&(owner, slot), &address) = slots.cursor_lower_bound(&from)?.current();
            if owner != key.0 {
                return None;
            }
            if by_address.get(&address)?.posting == 0 {
                break (slot, address);
            }
            from.1 = slot.checked_add(1)?;
        };
        let entry = by_address.get_mut(&address)?;
        let nodes = (
            by_key.remove_node(&entry.key),
            slots.remove_node(&(key.0, slot)),
        );
        if let (Some(index), Some(place)) = nodes {
            by_key.insert(index.into_reservation().into_node(key, address));
            let place = place.into_reservation();
            slots.insert(place.into_node((key.0, last), address));
        }
        entry.before = Some((entry.key, slot));
        entry.key = key;
        entry.slot = Some(last);
        entry.use_again(true);
        Some(Context::from_number(address))
    }

    /// Returns the context of an operation with a condition, to be settled with [`Self::posted`]. The
    /// provider keeps about `kept` bytes of the operation, in `place` among others.
    pub(super) fn acquire_with(
        &self,
        owner: OwnerId,
        number: u64,
        lasts: Lasts,
        raw: bindings::kfi_triggered_context2,
        kept: usize,
        place: Taken,
    ) -> Result<Context> {
        let structure = Structure::new(raw, &self.quota, kept, Some(place))?;
        let address = structure.raw.get().addr();
        let which = {
            let mut table = self.table.lock();
            table.last = table.last.checked_add(1).ok_or(ENOSPC)?;
            table.last
        };
        let key = (owner, number, which);
        self.add(key, lasts, Some(structure), address, true)?;
        Ok(Context::from_number(address))
    }

    /// Settles the context of an operation that was posted: whether it was accepted, and whether it
    /// may have several completions. Until here those that were seen are counted only, however many
    /// there were, so that none could free it.
    pub(super) fn posted(&self, context: Context, accepted: bool, repeats: bool) {
        let address = context.as_number();
        let mut table = self.table.lock();
        if let Some(entry) = table.by_address.get_mut(&address) {
            if accepted && repeats && entry.lasts == Lasts::Once {
                entry.lasts = Lasts::Repeats;
            }
        }
        let removed = table.settle(address, accepted);
        drop(table);
        drop(removed);
    }

    /// Takes back a context that is not in use any more.
    pub(super) fn release(&self, context: Context) {
        let removed = self.table.lock().end_uses(context.as_number(), 1);
        drop(removed);
    }

    /// Returns the context for something that is no operation, until what is returned is dropped. May
    /// sleep, and so may that.
    pub fn named(this: &Arc<Self>, number: u64) -> Result<Named> {
        Ok(Named {
            context: this.acquire(NOBODY, number, Lasts::Once)?,
            contexts: this.clone(),
            kept: false,
            _owner: None,
        })
    }

    /// As [`Self::named`], of an owner, and for something that is told in an event unless it is refused:
    /// after [`Named::keep`] it lasts until the owner is gone.
    pub(super) fn named_by(owner: &Arc<Owner>, number: u64) -> Result<Named> {
        let contexts = owner.contexts();
        Ok(Named {
            context: contexts.acquire(owner.id(), number, Lasts::Repeats)?,
            contexts: contexts.clone(),
            kept: false,
            _owner: Some(owner.clone()),
        })
    }

    /// Returns the context for something that is told back once, in an event or a completion that
    /// the user writes.
    pub(super) fn written(&self, owner: OwnerId, number: u64) -> Result<Context> {
        self.acquire(owner, number, Lasts::Once)
    }

    /// Lets the address of something that an owner keeps stand for a number until what is returned is
    /// dropped, which has to be before something else can be there.
    pub(super) fn note(
        this: &Arc<Self>,
        owner: OwnerId,
        number: u64,
        address: usize,
    ) -> Result<Note> {
        let key = (owner, number, NOTED);
        this.add(key, Lasts::Kept, None, address, false)?;
        Ok(Note {
            contexts: this.clone(),
            key,
        })
    }

    /// Returns the number that a pointer stands for; 0 if it means nothing to the user. May sleep.
    pub fn number_of(&self, address: usize) -> u64 {
        let table = self.table.lock();
        match table.by_address.get(&address) {
            Some(entry) => entry.key.1,
            None if is_address(address) => 0,
            None => address as u64,
        }
    }

    /// Returns the number that a pointer stands for which was made for what the user writes to a
    /// queue; none if it was not. `done` says that it is told for the last time.
    ///
    /// Other pointers are not looked for. Where something was received may be the place of anything by
    /// now, and nobody may end the use of that.
    ///
    /// Only for what a provider has just told: each call with `done` ends a use, here and in
    /// [`Self::complete`].
    pub(super) fn read_back(&self, queue: OwnerId, address: usize, done: bool) -> Option<u64> {
        let mut table = self.table.lock();
        let entry = table.by_address.get(&address)?;
        let (owner, number, _) = entry.key;
        if owner != queue {
            return None;
        }
        let removed = if done {
            table.end_uses(address, 1)
        } else {
            NOTHING
        };
        drop(table);
        drop(removed);
        Some(number)
    }

    /// Returns the number that the context in a completion of a queue stands for, if that is known,
    /// and whether the user has written the completion; `last` says whether the provider has told
    /// that it is the last one of several.
    ///
    /// An operation that has a completion in a queue has its context kept until that is read, so
    /// that it is not used for anything else.
    pub(super) fn complete(
        &self,
        queue: OwnerId,
        address: usize,
        last: bool,
    ) -> Option<(u64, bool)> {
        let mut table = self.table.lock();
        let Some(entry) = table.by_address.get_mut(&address) else {
            return (!is_address(address)).then_some((address as u64, false));
        };
        let (owner, number, _) = entry.key;
        let mut removed = NOTHING;
        match entry.lasts {
            Lasts::Once if entry.posting != 0 => entry.early = entry.early.saturating_add(1),
            Lasts::Once => removed = table.end_uses(address, 1),
            // The provider has nothing of it any more, but others of its completions may be read yet.
            Lasts::Repeats if last => entry.give_back(),
            Lasts::Repeats | Lasts::Kept => {}
        }
        drop(table);
        drop(removed);
        Some((number, owner == queue))
    }

    /// Returns the next context from a key on with its owner and number, which is in use once more, until
    /// [`Self::cancelled`].
    fn next_to_cancel(&self, from: Key) -> Option<(Key, Context)> {
        let mut table = self.table.lock();
        let (key, address) = table.next(from).filter(|(key, _)| key.1 == from.1)?;
        let entry = table.by_address.get_mut(&address)?;
        // It must not become that of another operation meanwhile.
        entry.use_again(entry.slot.is_some());
        Some((key, Context::from_number(address)))
    }

    /// Notes that a context of [`Self::next_to_cancel`] is not looked at any more.
    fn cancelled(&self, context: Context) {
        let address = context.as_number();
        let mut table = self.table.lock();
        let slot = table.by_address.get(&address).and_then(|entry| entry.slot);
        let removed = match slot {
            Some(_) => table.settle(address, false),
            None => table.end_uses(address, 1),
        };
        drop(table);
        drop(removed);
    }

    /// Calls `cancel` with every context that an operation of the owners with this number could
    /// have, the oldest condition first, until it succeeds; `EINTR` for a signal.
    pub(super) fn cancel(
        &self,
        owners: [OwnerId; 2],
        number: u64,
        cancel: impl Fn(Context) -> Result,
    ) -> Result {
        let mut asked = false;
        for owner in owners {
            let mut from = (owner, number, 0);
            while let Some((key, context)) = self.next_to_cancel(from) {
                let ret = cancel(context);
                self.cancelled(context);
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
        // The provider's answer for an operation that does not exist.
        cancel(Context::from_raw(self.unused.raw.get().cast()))
    }

    /// Forgets what an owner has that is closed.
    pub(super) fn forget(&self, owner: OwnerId) {
        loop {
            let mut batch: [Removed; BATCH] = [const { NOTHING }; BATCH];
            let mut table = self.table.lock();
            for removed in &mut batch {
                let Some((key, _)) = table.next((owner, 0, 0)) else {
                    drop(table);
                    return;
                };
                *removed = table.remove(key);
            }
            drop(table);
            drop(batch);
            // Others want the CPU, too.
            kernel::task::might_sleep();
        }
    }
}

/// A number as a context, until this is dropped.
pub struct Named {
    contexts: Arc<Contexts>,
    context: Context,
    /// Whether it is left to its owner.
    kept: bool,
    /// Its owner, if that goes before all contexts do: its context may be that of something else then.
    _owner: Option<Arc<Owner>>,
}

impl Named {
    /// Returns the context.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Leaves the context in use until its owner is gone, if it has one that goes.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if !self.kept {
            self.contexts.release(self.context);
        }
    }
}

/// An address that stands for a number until this is dropped.
pub(super) struct Note {
    contexts: Arc<Contexts>,
    key: Key,
}

impl Drop for Note {
    fn drop(&mut self) {
        let removed = self.contexts.table.lock().remove(self.key);
        drop(removed);
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_contexts)]
mod tests {
    use super::*;
    use crate::kfi::consumer::peak::Peak;
    use kernel::sync::atomic::{
        ordering,
        Atomic, //
    };

    #[test]
    fn what_is_refused_leaves_no_context() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Arc::new(Contexts::owner(&contexts)?, GFP_KERNEL)?;
        let named = || Contexts::named_by(&owner, 7);
        let known = |context: Context| contexts.number_of(context.as_number()) == 7;
        let refused = named()?;
        let context = refused.context();
        assert!(known(context));
        drop(refused);
        assert!(!known(context));
        // One that is refused does not take that of another of the same number.
        let mut accepted = named()?;
        let refused = named()?;
        let context = accepted.context();
        assert!(context.as_number() == refused.context().as_number());
        accepted.keep();
        drop(accepted);
        drop(refused);
        assert!(known(context));
        // What is given back late is not that of something else.
        let late = named()?;
        drop(owner);
        assert!(known(context));
        drop(late);
        assert!(!known(context));
        Ok(())
    }

    #[test]
    fn completions_seen_while_posting_do_not_free() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Contexts::owner(&contexts)?;
        let queue = Contexts::owner(&contexts)?;
        let seen = |context: Context| contexts.complete(queue.id(), context.as_number(), false);
        // A receive turns out to be one for several messages, two of which were seen by then.
        let context = contexts.acquire_to_post(owner.id(), 7, Lasts::Once)?;
        for _ in 0..3 {
            assert_eq!(seen(context), Some((7, false)));
        }
        contexts.posted(context, true, true);
        assert_eq!(seen(context), Some((7, false)));
        // Nor does one that is refused, whatever it would have been.
        for repeats in [false, true] {
            let other = contexts.acquire_to_post(owner.id(), 7, Lasts::Once)?;
            assert_eq!(other.as_number(), context.as_number());
            contexts.posted(other, false, repeats);
            assert_eq!(seen(context), Some((7, false)));
        }
        drop(owner);
        assert_eq!(seen(context), None);
        Ok(())
    }

    #[test]
    fn refused_operations_leave_nothing() -> Result {
        let quota = Quota::new(usize::MAX, None)?;
        let places = Peak::new(&quota, 1)?;
        let contexts = Contexts::new(quota)?;
        let owner = Contexts::owner(&contexts)?;
        for lasts in [Lasts::Once, Lasts::Repeats] {
            let context = contexts.acquire_to_post(owner.id(), 7, lasts)?;
            contexts.posted(context, false, true);
            assert_eq!(contexts.number_of(context.as_number()), 0);
            let raw = unconditional();
            let place = Peak::take(&places)?;
            let context = contexts.acquire_with(owner.id(), 7, lasts, raw, 0, place)?;
            contexts.posted(context, false, true);
            assert_eq!(contexts.number_of(context.as_number()), 0);
        }
        Ok(())
    }

    #[test]
    fn refused_operations_take_no_number() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Contexts::owner(&contexts)?;
        let begin = silent(&contexts, owner.id(), 4);
        let post = |number, accepted| {
            let context = begin(number)?;
            assert_eq!(contexts.number_of(context.as_number()), number);
            contexts.posted(context, accepted, false);
            Ok::<_, Error>(context.as_number())
        };
        let (first, second) = (post(1, true)?, post(2, true)?);
        for number in 100..110 {
            post(number, false)?;
        }
        let told = |address| contexts.number_of(address);
        assert_eq!((told(first), told(second)), (1, 2));
        // A structure that is free is taken first, and then the oldest one.
        let (third, fourth) = (post(3, true)?, post(4, true)?);
        assert_eq!([first, second, third, fourth].map(told), [1, 2, 3, 4]);
        post(200, false)?;
        assert_eq!([first, second, third, fourth].map(told), [1, 2, 3, 4]);
        post(5, true)?;
        assert_eq!([first, second, third, fourth].map(told), [5, 2, 3, 4]);
        post(201, false)?;
        post(2, true)?;
        post(6, true)?;
        assert_eq!([first, third, fourth].map(told), [5, 3, 4]);
        Ok(())
    }

    /// Posts operations whose success nobody is told of, of which there may be `most` at a time.
    fn silent(
        contexts: &Arc<Contexts>,
        owner: OwnerId,
        most: usize,
    ) -> impl Fn(u64) -> Result<Context> + '_ {
        let count = Atomic::new(0);
        move |number| {
            // Relaxed: there is one thread only.
            let may_add = || count.fetch_add(1, ordering::Relaxed) < most;
            contexts.acquire_silent(owner, number, may_add)
        }
    }

    #[test]
    fn cancelled_operations_keep_their_number() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Contexts::owner(&contexts)?;
        let post = silent(&contexts, owner.id(), 2);
        let post = |number| -> Result<usize> {
            let context = post(number)?;
            contexts.posted(context, true, false);
            Ok(context.as_number())
        };
        let first = post(1)?;
        contexts.cancel([owner.id(), NOBODY], 1, |context| {
            assert_eq!(context.as_number(), first);
            // As many meanwhile as there may be, and one more.
            let (second, third) = (post(2)?, post(3)?);
            assert_eq!(second, third);
            assert_eq!(contexts.number_of(first), 1);
            // And one that finds none that is free.
            contexts.cancel([owner.id(), NOBODY], 3, |_| {
                let fourth = post(4)?;
                let told = [first, third, fourth].map(|address| contexts.number_of(address));
                assert_eq!(told, [1, 3, 4]);
                Ok(())
            })
        })?;
        // Then it is the oldest.
        assert_eq!(post(5)?, first);
        Ok(())
    }

    #[test]
    fn numbers_that_come_again_are_told() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Contexts::owner(&contexts)?;
        let post = silent(&contexts, owner.id(), 1);
        let first = post(1)?;
        contexts.posted(first, true, false);
        let refused = post(100)?;
        assert_eq!(refused.as_number(), first.as_number());
        let again = post(1)?;
        assert_ne!(again.as_number(), first.as_number());
        contexts.posted(again, true, false);
        contexts.posted(refused, false, false);
        for context in [first, again] {
            assert_eq!(contexts.number_of(context.as_number()), 1);
        }
        // Both are found, and neither by the other number.
        let asked = Atomic::new(0);
        let count = |number| {
            // Relaxed: as above.
            asked.store(0, ordering::Relaxed);
            let ret = contexts.cancel([owner.id(), NOBODY], number, |_| {
                asked.fetch_add(1, ordering::Relaxed);
                Err(ENOENT)
            });
            assert_eq!(ret, Err(ENOENT));
            asked.load(ordering::Relaxed)
        };
        assert_eq!(count(1), 2);
        // No operation has this number: the provider is asked once, with the context of none.
        assert_eq!(count(100), 1);
        Ok(())
    }

    #[test]
    fn as_many_completions_as_operations() -> Result {
        let contexts = Contexts::new(Quota::new(usize::MAX, None)?)?;
        let owner = Contexts::owner(&contexts)?;
        let queue = Contexts::owner(&contexts)?;
        let post = || contexts.acquire_to_post(owner.id(), 7, Lasts::Once);
        let seen = |context: Context| contexts.complete(queue.id(), context.as_number(), false);
        let context = post()?;
        assert_eq!(post()?.as_number(), context.as_number());
        // One is refused, the other one completes before its post returns.
        assert_eq!(seen(context), Some((7, false)));
        contexts.posted(context, false, false);
        assert_eq!(contexts.number_of(context.as_number()), 7);
        contexts.posted(context, true, false);
        assert_eq!(seen(context), None);
        // And one after it.
        let context = post()?;
        contexts.posted(context, true, false);
        assert_eq!(seen(context), Some((7, false)));
        assert_eq!(seen(context), None);
        Ok(())
    }
}
