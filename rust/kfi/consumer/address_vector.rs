// SPDX-License-Identifier: GPL-2.0

//! Address vectors.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    contexts::{
        Contexts,
        Named,
        Owner, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        Ending,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    quota::{
        Charge,
        Quota, //
    },
    Answer,
    Domain, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// The attributes that an address vector is opened with.
pub struct AddressVectorAttr<'a> {
    /// The type (`enum kfi_av_type`).
    pub type_: u32,
    /// Top bits of an address that are set aside.
    pub rx_ctx_bits: c_int,
    /// Expected number of addresses.
    pub count: usize,
    /// Expected number of endpoints on each node.
    pub ep_per_node: usize,
    /// Name of a shared one.
    pub name: Option<&'a CStr>,
    /// Flags.
    pub flags: u64,
}

impl Default for AddressVectorAttr<'_> {
    fn default() -> Self {
        Self {
            type_: bindings::KFI_AV_UNSPEC,
            rx_ctx_bits: 0,
            count: 0,
            ep_per_node: 0,
            name: None,
            flags: 0,
        }
    }
}

object! {
    /// An open address vector as C knows it.
    Vector(kfid_av, AddressVector)
}

/// Arrays of an insertion, which the provider uses until the insertion ends.
struct Insertion {
    _addrs: KVVec<u8>,
    kfi_addrs: KVVec<u64>,
    _charge: Charge,
}

/// Insertions that complete by an event.
#[pin_data]
struct Insertions {
    /// The insertions by their numbers, and the number of the last one.
    #[pin]
    list: Mutex<(RBTree<u32, Insertion>, u32)>,
    /// The addresses that these, and all other insertions, have left in the vector.
    #[pin]
    addresses: Mutex<Addresses>,
}

/// The memory that a provider needs for an address.
const NODE_SIZE: usize = 80;

/// The memory that a provider needs for the place of an address, also when that is free again.
const PLACE_SIZE: usize = 16;

/// The memory that a provider needs for an address at first.
pub const ADDRESS_SIZE: usize = NODE_SIZE + PLACE_SIZE;

/// The addresses of a vector, and their part in the memory.
struct Addresses {
    /// Memory for so many was counted when the vector was opened.
    expected: usize,
    count: usize,
    /// The most that there were.
    most: usize,
    charge: Charge,
}

impl Addresses {
    /// Counts them; `EDQUOT` if there is no memory left for these.
    fn set(&mut self, count: usize) -> Result {
        let most = self.most.max(count);
        let beyond = |count: usize| count.saturating_sub(self.expected);
        let nodes = beyond(count).saturating_mul(NODE_SIZE);
        let places = beyond(most).saturating_mul(PLACE_SIZE);
        self.charge.set(nodes.saturating_add(places))?;
        (self.count, self.most) = (count, most);
        Ok(())
    }

    /// Counts more.
    fn add(&mut self, more: usize) -> Result {
        self.set(self.count.checked_add(more).ok_or(E2BIG)?)
    }

    /// Counts fewer.
    fn remove(&mut self, fewer: usize) {
        // Never refused, as it gives back.
        let _ = self.set(self.count.saturating_sub(fewer));
    }
}

/// An open address vector.
pub struct AddressVector {
    av: Vector,
    type_: u32,
    asynchronous: bool,
    /// Kept until the vector is closed.
    insertions: Arc<Insertions>,
    /// The owner of the contexts of events. Kept until the vector is closed.
    owner: Arc<Owner>,
}

impl core::ops::Deref for AddressVector {
    type Target = Vector;

    fn deref(&self) -> &Vector {
        &self.av
    }
}

impl Closable for AddressVector {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.av.close_with(permit)
    }
}

impl Drop for AddressVector {
    fn drop(&mut self) {
        if !self.av.end() {
            // The provider may still use the arrays.
            core::mem::forget((self.insertions.clone(), self.owner.clone()));
        }
    }
}

/// The addresses that are inserted.
pub enum Insert<'a> {
    /// Binary addresses: their bytes, with room for so many of any format.
    Binary(KVVec<u8>, usize),
    /// The address of a node and a service.
    Service(Option<&'a CStr>, Option<&'a CStr>),
    /// Addresses of so many nodes and services.
    Symmetric(Option<&'a CStr>, usize, Option<&'a CStr>, usize),
    /// As binary addresses, with NULL for these.
    Null(usize),
}

impl Insert<'_> {
    /// Returns how many addresses there are; `E2BIG` if they cannot be counted.
    pub fn count(&self) -> Result<usize> {
        match self {
            Self::Binary(_, count) | Self::Null(count) => Ok(*count),
            Self::Service(..) => Ok(1),
            Self::Symmetric(_, nodes, _, services) => nodes.checked_mul(*services).ok_or(E2BIG),
        }
    }
}

/// The result of an insertion.
pub struct Inserted {
    /// How many.
    pub count: usize,
    /// The addresses, if they were wanted and the insertion has ended.
    pub kfi_addrs: KVVec<u64>,
    /// The number of an insertion that goes on; else 0.
    pub number: u32,
}

/// Returns a text for C, null for none.
fn text(text: Option<&CStr>) -> *const c_char {
    text.map_or(ptr::null(), CStr::as_char_ptr)
}

impl AddressVector {
    /// Opens an address vector; without attributes it has the defaults. May sleep.
    pub fn open(
        domain: &Domain,
        attr: Option<AddressVectorAttr<'_>>,
        context: Context,
    ) -> Result<Self> {
        Self::open_with(domain, Some(attr.unwrap_or_default()), context)
    }

    /// As [`Self::open`], with a null pointer for the attributes.
    pub fn open_null(domain: &Domain, context: Context) -> Result<Self> {
        Self::open_with(domain, None, context)
    }

    /// Opens an address vector with attributes, or with a null pointer for them.
    fn open_with(
        domain: &Domain,
        attr: Option<AddressVectorAttr<'_>>,
        context: Context,
    ) -> Result<Self> {
        let expected = attr.as_ref().map_or(0, |attr| attr.count);
        let asynchronous = attr
            .as_ref()
            .is_some_and(|attr| attr.flags & u64::from(bindings::KFI_COMPLETION) != 0);
        let mut attr = attr.map(|attr| bindings::kfi_av_attr {
            type_: attr.type_,
            rx_ctx_bits: attr.rx_ctx_bits,
            count: attr.count,
            ep_per_node: attr.ep_per_node,
            name: text(attr.name),
            map_addr: ptr::null_mut(),
            flags: attr.flags,
        });
        // Before the vector, which could not be closed without.
        let insertions = Arc::pin_init(
            pin_init!(Insertions {
                list <- new_mutex!((RBTree::new(), 0), "kfi::Insertions::list"),
                addresses <- new_mutex!(
                    Addresses {
                        expected,
                        count: 0,
                        most: 0,
                        charge: Quota::nothing(domain.contexts().quota()),
                    },
                    "kfi::Insertions::addresses"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let owner = Arc::new(Contexts::owner(domain.contexts())?, GFP_KERNEL_ACCOUNT)?;
        let mut av = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid.
        to_result(unsafe {
            bindings::kfi_av_open(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut av,
                context.as_raw(),
            )
        })?;
        let av = NonNull::new(av).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            av: unsafe { Vector::new(av, domain.lineage()) },
            // The type that the provider has chosen.
            type_: attr.map_or(0, |attr| attr.type_),
            asynchronous,
            insertions,
            owner,
        })
    }

    /// Returns the type.
    pub fn type_(&self) -> u32 {
        self.type_
    }

    /// Returns whether insertions complete by an event.
    pub fn is_asynchronous(&self) -> bool {
        self.asynchronous
    }

    /// Returns the context for an insertion: of the event that tells it, if one does, and that of the
    /// insertion itself otherwise.
    pub fn context_of(&self, number: u64) -> Result<Named> {
        if self.asynchronous {
            Contexts::named_by(&self.owner, number)
        } else {
            Contexts::named(self.owner.contexts(), number)
        }
    }

    /// Leaves the context of an insertion that was accepted to the event, which may come until the vector is
    /// closed.
    pub fn keep(&self, mut context: Named) {
        if self.asynchronous {
            context.keep();
        }
    }

    /// Inserts addresses. `errors` is for `KFI_SYNC_ERR`, and has an element for each; `charge` counts
    /// the arrays. May sleep.
    ///
    /// `EINVAL` if there are fewer bytes or errors than addresses, or if errors are asked for where
    /// events tell of insertions; `E2BIG` if the addresses cannot be counted, `EDQUOT` if there is not as
    /// much memory left for them. The answer is that of kfabric.
    pub fn insert(
        &self,
        what: Insert<'_>,
        want_addrs: bool,
        flags: u64,
        context: Context,
        errors: Option<&mut [c_int]>,
        charge: Charge,
    ) -> Result<Answer<Inserted>> {
        let count = what.count()?;
        if let Insert::Binary(bytes, count) = &what {
            if count.checked_mul(ADDR_MAX).ok_or(E2BIG)? > bytes.len() {
                return Err(EINVAL);
            }
        }
        let context = match errors {
            // The meaning of the context must not change while the provider works.
            _ if flags & bindings::KFI_SYNC_ERR == 0 => context,
            _ if self.asynchronous => return Err(EINVAL),
            Some(errors) if errors.len() >= count => Context::from_raw(errors.as_mut_ptr().cast()),
            _ => return Err(EINVAL),
        };
        let mut kfi_addrs = KVVec::new();
        if want_addrs {
            kfi_addrs = KVVec::from_elem(u64::MAX, count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        }
        let to = if kfi_addrs.is_empty() {
            ptr::null_mut()
        } else {
            kfi_addrs.as_mut_ptr()
        };
        let (what, addrs) = match what {
            Insert::Binary(bytes, count) => (Insert::Null(count), bytes),
            other => (other, KVVec::new()),
        };
        let from = if addrs.is_empty() {
            ptr::null()
        } else {
            addrs.as_ptr()
        };
        // The arrays stay where they are, whatever owns them.
        let (mine, number) = if self.asynchronous {
            let insertion = Insertion {
                _addrs: addrs,
                kfi_addrs,
                _charge: charge,
            };
            (None, self.note_insertion(insertion)?)
        } else {
            (Some((addrs, kfi_addrs)), 0)
        };
        // Each may be one of its own, also if the address is known.
        let room = self.insertions.addresses.lock().add(count);
        if let Err(error) = room {
            self.forget_insertion(number);
            return Err(error);
        }
        let (av, context) = (self.as_raw(), context.as_raw());
        // SAFETY: The vector is open. There are `count` addresses of any format, and room for as
        // many results and errors; what an insertion needs that goes on stays until the vector is
        // closed.
        let ret = unsafe {
            match what {
                Insert::Null(count) | Insert::Binary(_, count) => {
                    bindings::kfi_av_insert(av, from.cast(), count, to, flags, context)
                }
                Insert::Service(node, service) => {
                    bindings::kfi_av_insertsvc(av, text(node), text(service), to, flags, context)
                }
                Insert::Symmetric(node, nodes, service, services) => bindings::kfi_av_insertsym(
                    av,
                    text(node),
                    nodes,
                    text(service),
                    services,
                    to,
                    flags,
                    context,
                ),
            }
        };
        match usize::try_from(ret) {
            Ok(inserted) => {
                if !self.asynchronous {
                    let failed = count.saturating_sub(inserted);
                    self.insertions.addresses.lock().remove(failed);
                }
                Ok(Ok(Inserted {
                    count: inserted,
                    kfi_addrs: mine.map_or(KVVec::new(), |(_, kfi_addrs)| kfi_addrs),
                    number: if want_addrs { number } else { 0 },
                }))
            }
            Err(_) => {
                self.insertions.addresses.lock().remove(count);
                self.forget_insertion(number);
                Ok(Err(Error::from_errno(ret)))
            }
        }
    }

    /// Keeps the arrays of an insertion that goes on after its call; returns its number.
    fn note_insertion(&self, insertion: Insertion) -> Result<u32> {
        let room = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut list = self.insertions.list.lock();
        let number = list.1.checked_add(1).ok_or(ENOSPC)?;
        let old = list.0.insert(room.into_node(number, insertion));
        // There is none, as numbers are not used again.
        drop(old);
        list.1 = number;
        Ok(number)
    }

    /// Forgets an insertion that was refused; 0 for none.
    fn forget_insertion(&self, number: u32) {
        if number != 0 {
            let old = self.insertions.list.lock().0.remove(&number);
            drop(old);
        }
    }

    /// Hands the addresses that an insertion has given so far to `take`; `EBADF` if there is none of
    /// that number.
    pub fn inserted<T>(
        &self,
        number: u32,
        take: impl FnOnce(usize, &mut dyn Iterator<Item = u64>) -> T,
    ) -> Result<T> {
        let list = self.insertions.list.lock();
        let addrs = &list.0.get(&number).ok_or(EBADF)?.kfi_addrs;
        let first = addrs.as_ptr();
        let mut values = (0..addrs.len()).map(|at| {
            // SAFETY: Within the array. The provider may be writing, hence volatile.
            unsafe { first.add(at).read_volatile() }
        });
        Ok(take(addrs.len(), &mut values))
    }

    /// Removes addresses, `None` for NULL. May sleep.
    pub fn remove(&self, kfi_addrs: Option<&mut [u64]>, count: usize, flags: u64) -> Result {
        let array = match kfi_addrs {
            None => ptr::null_mut(),
            Some(array) if array.len() >= count => array.as_mut_ptr(),
            Some(_) => return Err(EINVAL),
        };
        // SAFETY: The vector is open; there are `count` addresses, or NULL.
        to_result(unsafe { bindings::kfi_av_remove(self.as_raw(), array, count, flags) })?;
        self.insertions.addresses.lock().remove(count);
        Ok(())
    }

    /// Looks an address up; returns how long its binary form is. May sleep.
    pub fn lookup(&self, kfi_addr: u64, addr: &mut [u8]) -> Result<usize> {
        let mut len = addr.len();
        // SAFETY: The vector is open; there is room for `len` bytes.
        to_result(unsafe {
            bindings::kfi_av_lookup(self.as_raw(), kfi_addr, addr.as_mut_ptr().cast(), &mut len)
        })?;
        Ok(len)
    }

    /// Prints an address, given with room for any format; returns the length of the text, or none if
    /// it is malformed. May sleep.
    pub fn straddr(&self, addr: &[u8; ADDR_MAX], text: &mut [u8]) -> Option<usize> {
        let mut len = text.len();
        // SAFETY: The vector is open; there is an address of any format, and room for `len` bytes.
        let ret = unsafe {
            bindings::kfi_av_straddr(
                self.as_raw(),
                addr.as_ptr().cast(),
                text.as_mut_ptr(),
                &mut len,
            )
        };
        (!ret.is_null()).then_some(len)
    }
}

/// The bytes of the longest address of any format.
pub const ADDR_MAX: usize = 64;
