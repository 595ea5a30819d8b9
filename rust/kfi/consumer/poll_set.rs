// SPDX-License-Identifier: GPL-2.0

//! Poll sets.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    peak::{
        Peak,
        Taken, //
    },
    Domain, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

object! {
    /// An open poll set as C knows it.
    Set(kfid_poll, PollSet)
}

/// About how much a provider keeps of a member, for those that come next, too, until the set is
/// closed.
const MEMBER_SIZE: usize = 256;

/// An open poll set, with the places of its members.
pub struct PollSet {
    set: Set,
    places: Arc<Peak>,
}

impl core::ops::Deref for PollSet {
    type Target = Set;

    fn deref(&self) -> &Set {
        &self.set
    }
}

impl Closable for PollSet {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.set.close_with(permit)
    }
}

impl PollSet {
    /// Takes a place for a member; `EDQUOT` if there is not as much memory left. In process context; may
    /// sleep, also when the place is dropped.
    pub fn take_place(&self) -> Result<Taken> {
        kernel::task::might_sleep();
        Peak::take(&self.places)
    }

    /// Opens a poll set with flags. May sleep.
    pub fn open(domain: &Domain, flags: u64) -> Result<Self> {
        Self::open_with(domain, Some(flags))
    }

    /// As [`Self::open`], with a null pointer for the attributes.
    pub fn open_null(domain: &Domain) -> Result<Self> {
        Self::open_with(domain, None)
    }

    /// Opens a poll set with flags, or with a null pointer for the attributes.
    fn open_with(domain: &Domain, flags: Option<u64>) -> Result<Self> {
        let places = Peak::new(domain.contexts().quota(), MEMBER_SIZE)?;
        let mut attr = flags.map(|flags| bindings::kfi_poll_attr { flags });
        let mut set = ptr::null_mut();
        // SAFETY: `domain` is open, `attr` null or valid.
        to_result(unsafe {
            bindings::kfi_poll_open(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut set,
            )
        })?;
        let set = NonNull::new(set).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            set: unsafe { Set::new(set, domain.lineage()) },
            places,
        })
    }

    /// Adds a member, which cannot be closed meanwhile; `EINVAL` for what is no counter or queue of
    /// the domain. May sleep.
    pub fn add(&self, member: AnyObject<'_>, flags: u64) -> Result {
        let member = member.member(self.lineage())?;
        // SAFETY: Both are open and of one domain.
        to_result(unsafe { bindings::kfi_poll_add(self.as_raw(), member, flags) })
    }

    /// Removes a member; `EINVAL` as above. May sleep.
    pub fn del(&self, member: AnyObject<'_>, flags: u64) -> Result {
        let member = member.member(self.lineage())?;
        // SAFETY: Both are open and of one domain.
        to_result(unsafe { bindings::kfi_poll_del(self.as_raw(), member, flags) })
    }

    /// Stores the contexts of members with events and returns how many there are.
    ///
    /// `count` is passed on as it is; `EINVAL` if there is no room for as many. In process context; does
    /// not wait.
    pub fn poll(&self, contexts: &mut [Context], count: c_int) -> Result<usize> {
        if usize::try_from(count).is_ok_and(|count| count > contexts.len()) {
            return Err(EINVAL);
        }
        // SAFETY: There is room for `count` contexts.
        unsafe { self.poll_into(contexts.as_mut_ptr(), count) }
    }

    /// As [`Self::poll`], with a null pointer for the contexts.
    pub fn poll_null(&self, count: c_int) -> Result<usize> {
        // SAFETY: Null.
        unsafe { self.poll_into(ptr::null_mut(), count) }
    }

    /// Polls.
    ///
    /// # Safety
    ///
    /// `contexts` must be null, or valid for writes of `count` contexts.
    unsafe fn poll_into(&self, contexts: *mut Context, count: c_int) -> Result<usize> {
        // SAFETY: The set is open; the rest by the safety requirements, as each context is a pointer.
        let ret = unsafe { bindings::kfi_poll(self.as_raw(), contexts.cast(), count) };
        usize::try_from(ret).map_err(|_| Error::from_errno(ret))
    }
}
