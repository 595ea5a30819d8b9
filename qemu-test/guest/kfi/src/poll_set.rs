// SPDX-License-Identifier: GPL-2.0

//! Poll sets.

use std::sync::{Arc, Mutex, PoisonError};

use zerocopy::FromZeros;

use crate::completion_queue::CompletionQueue;
use crate::object::{object, Counter, Domain, Handle, Object};
use crate::session::Session;
use crate::sys::{self, request, Request};
use crate::uapi;
use crate::{Error, KfiErrno, Result};

/// An object that can be a member of a poll set.
pub trait PollMember: sealed::HasObject {}

impl PollMember for Counter {}
impl PollMember for CompletionQueue {}

/// Keeps what has no object out.
pub(crate) mod sealed {
    use std::sync::Arc;

    use crate::object::Object;

    /// Has an object.
    pub trait HasObject {
        /// The object.
        #[allow(private_interfaces)]
        fn object(&self) -> &Arc<Object>;
    }
}

impl sealed::HasObject for Counter {
    #[allow(private_interfaces)]
    fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl sealed::HasObject for CompletionQueue {
    #[allow(private_interfaces)]
    fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

/// A poll set: tells which of its members have something new.
///
/// It keeps its members alive, and removes them when it is dropped.
#[derive(Debug)]
pub struct PollSet {
    object: Arc<Object>,
    members: Mutex<Vec<Arc<Object>>>,
}

object!(PollSet);

impl Domain {
    /// Opens a poll set without members.
    pub fn poll_set(&self) -> Result<PollSet> {
        self.poll_set_with(Some(0))
    }

    /// As [`Self::poll_set`], with flags in the attributes, of which none is
    /// defined, or no attributes: the provider is given NULL.
    pub fn poll_set_with(&self, flags: Option<u64>) -> Result<PollSet> {
        let mut argument = uapi::kfi_shim_poll_open {
            domain: self.handle(),
            flags: match flags {
                Some(_) => 0,
                None => uapi::KFI_SHIM_NO_ATTR,
            },
            attr_flags: flags.unwrap_or(0),
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::POLL_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let session = self.session().clone();
        Ok(PollSet {
            object: Object::new(session, argument.poll_set, Some(&self.object)),
            members: Mutex::default(),
        })
    }
}

impl PollSet {
    /// Adds a member; nothing happens if it is one.
    pub fn add(&self, member: &impl PollMember) -> Result<()> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let object = member.object();
        self.add_handle(object.handle, 0)?;
        if !members.iter().any(|known| Arc::ptr_eq(known, object)) {
            members.push(object.clone());
        }
        Ok(())
    }

    /// Removes a member.
    pub fn del(&self, member: &impl PollMember) -> Result<()> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let object = member.object();
        self.del_handle(object.handle, 0)?;
        members.retain(|known| !Arc::ptr_eq(known, object));
        Ok(())
    }

    /// Adds any object, with any flags; its owner has to remove it.
    pub fn add_handle(&self, member: Handle, flags: u64) -> Result<()> {
        self.change(request::POLL_ADD, member, flags)
    }

    /// Removes any object, with any flags.
    pub fn del_handle(&self, member: Handle, flags: u64) -> Result<()> {
        self.change(request::POLL_DEL, member, flags)
    }

    fn change(
        &self,
        request: Request<uapi::kfi_shim_poll_member>,
        member: Handle,
        flags: u64,
    ) -> Result<()> {
        let mut argument = uapi::kfi_shim_poll_member {
            poll_set: self.handle(),
            member,
            flags,
            result: 0,
            reserved: 0,
        };
        self.session().ioctl(request, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// The contexts of members that have something new, `room` at most.
    pub fn poll(&self, room: usize) -> Result<Vec<u64>> {
        let mut contexts = vec![0; room];
        let count = i32::try_from(room).unwrap_or(i32::MAX);
        let found = self.poll_raw(count, Some(&mut contexts))?;
        contexts.truncate(found);
        Ok(contexts)
    }

    /// As kfabric takes it: with any count, as long as the contexts have room
    /// for so many or are NULL. Returns how many were written.
    pub fn poll_raw(&self, count: i32, contexts: Option<&mut [u64]>) -> Result<usize> {
        let result = sys::poll(self.session(), self.handle(), count, contexts)?;
        KfiErrno::check_number(result)
    }
}

impl Drop for PollSet {
    fn drop(&mut self) {
        if self.object.is_gone() {
            return;
        }
        let members = self.members.get_mut();
        for member in std::mem::take(members.unwrap_or_else(PoisonError::into_inner)) {
            // If that fails it ends with the session.
            let _ = self.del_handle(member.handle, 0);
        }
    }
}
