// SPDX-License-Identifier: GPL-2.0

//! Contexts of operations that are structures.
//!
//! To a provider the context of an operation is a pointer: a number that nobody looks into, or, if
//! the operation is triggered, a `struct kfi_triggered_context`. This keeps such structures, and
//! finds the number that an operation is known by when its completion shows the pointer.
//!
//! A number that could be the address of such a structure gets one, too. So numbers and addresses do
//! not meet, and no number that somebody has thought of ends the life of a structure.

use kernel::{
    prelude::*,
    rbtree::RBTree,
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
    object::AnyObject, //
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

/// What the context of an operation is to be.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// The number itself, unless it could be an address.
    Number,
    /// A structure with a condition.
    Condition(Condition<'a>),
    /// A structure without a counter, or null if the number is 0.
    NoCondition,
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

/// What a pointer means.
struct Entry {
    /// The number that the user knows.
    number: u64,
    /// Whose it is.
    owner: u32,
    /// Whether the first completion is the last one.
    once: bool,
    /// The structure at the pointer, if it is kept here.
    _structure: Option<KBox<Structure>>,
}

/// The entries.
struct Table {
    by_address: RBTree<usize, Entry>,
    /// All of `by_address`, by owner and number.
    by_number: RBTree<(u32, u64, usize), ()>,
    /// Owners that are gone but may have completions in queues with numbers up to the second one.
    orphans: KVec<(u32, u32)>,
}

impl Table {
    /// Adds an entry.
    fn add(&mut self, address: usize, entry: Entry) -> Result {
        let index = (entry.owner, entry.number, address);
        self.by_number
            .try_create_and_insert(index, (), GFP_KERNEL)?;
        if let Err(error) = self
            .by_address
            .try_create_and_insert(address, entry, GFP_KERNEL)
        {
            self.by_number.remove(&index);
            return Err(error);
        }
        Ok(())
    }

    /// Removes an entry.
    fn remove(&mut self, address: usize) {
        if let Some(entry) = self.by_address.remove(&address) {
            self.by_number.remove(&(entry.owner, entry.number, address));
        }
    }

    /// Returns the first entry of an owner from a number and an address on.
    fn next(&self, owner: u32, number: u64, address: usize) -> Option<(u64, usize)> {
        let from = (owner, number, address);
        let (&(found, number, address), ()) = self.by_number.cursor_lower_bound(&from)?.current();
        (found == owner).then_some((number, address))
    }

    /// Removes what an owner has.
    fn remove_all(&mut self, owner: u32) {
        while let Some((_, address)) = self.next(owner, 0, 0) {
            self.remove(address);
        }
    }
}

/// The contexts of a consumer's operations.
#[pin_data]
pub(crate) struct Contexts {
    #[pin]
    table: Mutex<Table>,
    budget: Arc<Budget>,
}

/// Returns whether a number could be the address of something in the kernel.
pub(crate) fn is_address(number: usize) -> bool {
    // SAFETY: Callable from any context.
    number >= unsafe { bindings::first_kernel_address() }
}

impl Contexts {
    /// Creates an empty collection whose memory counts in `budget`.
    pub(crate) fn new(budget: Arc<Budget>) -> impl PinInit<Self> {
        pin_init!(Self {
            table <- new_mutex!(
                Table {
                    by_address: RBTree::new(),
                    by_number: RBTree::new(),
                    orphans: KVec::new(),
                },
                "kfi::Contexts::table"
            ),
            budget,
        })
    }

    /// Returns the context for an operation that its user knows by a number.
    ///
    /// A structure is kept until [`Self::resolve`] has seen its completion, if that is the only one
    /// (`once`), or until the owner is gone. To be given back with [`Self::forget`] if the operation
    /// was refused.
    pub(crate) fn context(
        &self,
        owner: u32,
        number: u64,
        wanted: Wanted<'_>,
        once: bool,
    ) -> Result<Context> {
        let plain = usize::try_from(number)?;
        let mut raw: bindings::kfi_triggered_context2 = pin_init::zeroed();
        match wanted {
            Wanted::Number if !is_address(plain) => return Ok(Context::from_number(plain)),
            Wanted::NoCondition if plain == 0 => return Ok(Context::NONE),
            Wanted::Number | Wanted::NoCondition => {}
            Wanted::Condition(condition) => {
                raw.event_type = condition.event;
                raw.trigger.threshold = bindings::kfi_trigger_threshold {
                    cntr: AnyObject::or_null(condition.cntr).cast(),
                    threshold: condition.threshold,
                };
            }
        }
        let charge = Budget::charge(&self.budget, size_of::<Structure>())?;
        let structure = KBox::new(
            Structure {
                raw: Opaque::new(raw),
                _charge: charge,
            },
            GFP_KERNEL,
        )?;
        let pointer = structure.raw.get();
        let entry = Entry {
            number,
            owner,
            once,
            _structure: Some(structure),
        };
        self.table.lock().add(pointer.addr(), entry)?;
        Ok(Context::from_raw(pointer.cast()))
    }

    /// Lets an address stand for a number until the owner is gone.
    pub(crate) fn note(&self, owner: u32, number: u64, address: usize) -> Result {
        self.table.lock().add(
            address,
            Entry {
                number,
                owner,
                once: false,
                _structure: None,
            },
        )
    }

    /// Takes back the context of an operation that was refused.
    pub(crate) fn forget(&self, context: Context) {
        if is_address(context.as_number()) {
            self.table.lock().remove(context.as_number());
        }
    }

    /// Returns the number that a pointer stands for, and whether that is known; if it is the context
    /// of a completion, `done` ends the life of the structure.
    pub(crate) fn resolve(&self, pointer: usize, done: bool) -> Option<u64> {
        if !is_address(pointer) {
            return Some(pointer as u64);
        }
        let mut table = self.table.lock();
        let entry = table.by_address.get(&pointer)?;
        let (number, once) = (entry.number, entry.once);
        if done && once {
            table.remove(pointer);
        }
        Some(number)
    }

    /// Calls `cancel` with every context that an operation of the owner with this number could have,
    /// until it succeeds.
    pub(crate) fn cancel(
        &self,
        owner: u32,
        number: u64,
        cancel: impl Fn(Context) -> Result,
    ) -> Result<Result> {
        let mut from = 0;
        loop {
            let next = self.table.lock().next(owner, number, from);
            let Some((_, address)) = next.filter(|(found, _)| *found == number) else {
                break;
            };
            match cancel(Context::from_number(address)) {
                Err(error) if error == ENOENT => {}
                ret => return Ok(ret),
            }
            from = address.wrapping_add(1);
        }
        let plain = usize::try_from(number)?;
        if is_address(plain) {
            return Ok(Err(ENOENT));
        }
        Ok(cancel(Context::from_number(plain)))
    }

    /// Forgets what an owner has that is closed; if there are completion queues, with numbers up to
    /// `last`, that may hold completions, only when these are closed.
    pub(crate) fn end(&self, owner: u32, last: Option<u32>) {
        let mut table = self.table.lock();
        match last {
            None => table.remove_all(owner),
            Some(last) => {
                if table.next(owner, 0, 0).is_some() {
                    // Without memory for that, until everything ends.
                    let _ = table.orphans.push((owner, last), GFP_KERNEL);
                }
            }
        }
    }

    /// Forgets what was left over for completion queues; the first one that is open has the number
    /// `first`.
    pub(crate) fn settle(&self, first: Option<u32>) {
        let mut table = self.table.lock();
        let mut at = 0;
        while let Some(&(owner, last)) = table.orphans.get(at) {
            if first.is_some_and(|first| first <= last) {
                at += 1;
                continue;
            }
            table.remove_all(owner);
            if table.orphans.remove(at).is_err() {
                return;
            }
        }
    }
}
