// SPDX-License-Identifier: GPL-2.0

//! Good requests, to be spoilt: objects, and arguments that name them.

use std::sync::Arc;

use kfi::{
    Buffer, BufferKind, CntrAttr, CompletionQueue, Counter, CqAttr, EqAttr, Error, EventQueue,
    Handle, KfiErrno, PollSet, Session, WaitObj, WaitSet, WaitSetAttr,
};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::check_eq;
use crate::env::Env;
use crate::fuzz::generate::put;
use crate::raw;
use crate::requests::{self, Class, Member, Request, Takes, What, Zero};
use crate::rig::{expect_fabric, expect_os, Rig};

/// Values that are no handle: none, and numbers far from any that is.
pub(super) const NO_HANDLES: [Handle; 5] = [0, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];

/// A rig with an object of each class, to make good requests with.
pub(super) struct Scene {
    pub(super) poll_set: PollSet,
    pub(super) counter: Arc<Counter>,
    pub(super) cq: CompletionQueue,
    pub(super) eq: EventQueue,
    pub(super) wait_set: WaitSet,
    pub(super) buffer: Buffer,
    pub(super) rig: Rig,
}

impl Scene {
    pub(super) fn new(env: &Env) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        let queue = WaitObj::QUEUE;
        Ok(Self {
            poll_set: rig.domain.poll_set()?,
            counter: rig.counter()?,
            cq: rig
                .domain
                .completion_queue(&CqAttr::new().wait_obj(queue))?,
            eq: rig.fabric.event_queue(&EqAttr::new().wait_obj(queue))?,
            buffer: rig.session.buffer(BufferKind::VMALLOC, 10_000)?,
            wait_set: rig.fabric.wait_set(&WaitSetAttr::new().wait_obj(queue))?,
            rig,
        })
    }

    pub(super) fn session(&self) -> &Session {
        &self.rig.session
    }

    /// A handle of each class, if there is one.
    pub(super) fn handle(&self, class: Class) -> Option<Handle> {
        Some(match class {
            Class::Info => self.rig.info.handle(),
            Class::Buffer => self.buffer.handle(),
            Class::Fabric => self.rig.fabric.handle(),
            Class::Domain => self.rig.domain.handle(),
            Class::Counter => self.counter.handle(),
            Class::WaitSet => self.wait_set.handle(),
            Class::PollSet => self.poll_set.handle(),
            Class::CompletionQueue => self.cq.handle(),
            Class::EventQueue => self.eq.handle(),
            _ => return None,
        })
    }

    /// A handle with which the request is good.
    fn useful(&self, takes: &Takes) -> Option<Handle> {
        let known = takes.classes.iter().find_map(|class| self.handle(*class));
        known.or_else(|| takes.asks.then(|| self.counter.handle()))
    }

    /// Nothing has been changed, and nothing else is open.
    pub(super) fn end_untouched(self) -> Outcome {
        check_eq!((self.counter.read()?, self.counter.read_err()?), (0, 0));
        check_eq!(self.counter.ops_flags()?, 0);
        // `POLL_ADD` and `POLL_DEL` may have made it a member.
        let _ = self.poll_set.del_handle(self.counter.handle(), 0);
        self.poll_set.close().map_err(|(_, error)| error)?;
        drop(self.counter);
        expect_fabric(self.cq.read(1), KfiErrno::EAGAIN)?;
        self.cq.close().map_err(|(_, error)| error)?;
        expect_fabric(self.eq.read(128), KfiErrno::EAGAIN)?;
        self.eq.close().map_err(|(_, error)| error)?;
        self.wait_set.close().map_err(|(_, error)| error)?;
        self.rig.close()
    }
}

/// Classes of which a scene has an object.
pub(super) const CLASSES: [Class; 9] = [
    Class::Info,
    Class::Buffer,
    Class::Fabric,
    Class::Domain,
    Class::Counter,
    Class::WaitSet,
    Class::PollSet,
    Class::CompletionQueue,
    Class::EventQueue,
];

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Form(&'static Request);

/// The requests of which a scene has the objects. None of them changes these as it is
/// made here, other than to make the counter a member of the poll set.
pub(super) fn forms() -> impl Iterator<Item = Form> {
    all().filter(|form| form.is_for_scenes())
}

/// The requests on address vectors, memory regions and endpoints, of which there is none
/// in a scene, and those that a scene has not all for.
pub(super) fn others() -> impl Iterator<Item = Form> {
    all().filter(|form| !form.is_for_scenes())
}

/// All but those that are several in one.
fn all() -> impl Iterator<Item = Form> {
    requests::each()
        .filter(|request| !request.is_batch())
        .map(Form)
}

/// One of [`forms`].
pub(super) fn form(name: &str) -> Form {
    forms()
        .find(|form| form.name() == name)
        .expect("a form of that name")
}

impl Form {
    pub(super) fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn number(self) -> u32 {
        self.0.number
    }

    pub(super) fn size(self) -> usize {
        self.0.argument.size
    }

    /// The bytes of the first version of its structure.
    pub(super) fn first_size(self) -> usize {
        self.0.traits.first.unwrap_or(self.size())
    }

    pub(super) fn members(self) -> &'static [Member] {
        self.0.argument.members
    }

    /// Where the reserved members are.
    pub(super) fn reserved(self) -> &'static [usize] {
        self.0.declared().reserved
    }

    /// Where the handle of a new object is.
    pub(super) fn opens(self) -> Option<usize> {
        let new = |member: &&Member| matches!(member.what, What::New(class) if class.has_handles());
        self.members().iter().find(new).map(|member| member.offset)
    }

    /// Whether the kernel writes to an address in its argument.
    pub(super) fn writes_elsewhere(self) -> bool {
        self.0.written().next().is_some()
    }

    /// Where the handle of the object is that it is about.
    pub(super) fn object(self) -> Option<(usize, Takes)> {
        self.members().iter().find_map(|member| match member.what {
            What::Handle(takes) => Some((member.offset, takes)),
            _ => None,
        })
    }

    /// Handles in its argument.
    pub(super) fn handles(self) -> impl Iterator<Item = (usize, Takes)> {
        let handles = self
            .members()
            .iter()
            .filter_map(|member| match member.what {
                What::Handle(takes) => Some((member.offset, takes)),
                _ => None,
            });
        handles.filter(|(_, takes)| takes.classes.iter().all(|class| class.has_handles()))
    }

    fn is_for_scenes(self) -> bool {
        let known = |takes: Takes| {
            takes.classes.is_empty()
                || takes.asks
                || takes.classes.iter().any(|class| CLASSES.contains(class))
        };
        !self.0.traits.needs_more && self.object().is_none_or(|(_, takes)| known(takes))
    }

    /// An argument with what a good one has beside handles and addresses.
    fn blank(self) -> Vec<u8> {
        let mut argument = vec![0; self.size()];
        for number in self.0.good {
            put(&mut argument, number.offset, number.width, number.value);
        }
        argument
    }

    /// An argument that is good but for the object.
    pub(super) fn about(self, handle: Handle) -> Vec<u8> {
        let mut argument = self.blank();
        if let Some((offset, _)) = self.object() {
            write_u32(&mut argument, offset, handle);
        }
        argument
    }

    /// An argument with which it succeeds.
    pub(super) fn make(self, scene: &Scene) -> Result<Vec<u8>, Stop> {
        let mut argument = self.blank();
        for (offset, takes) in self.handles() {
            if takes.zero == Zero::Mostly {
                continue;
            }
            let handle = if self.name() == "CLOSE" {
                Some(scene.rig.domain.counter(&CntrAttr::new())?.into_handle())
            } else {
                scene.useful(&takes)
            };
            write_u32(&mut argument, offset, handle.unwrap_or_default());
        }
        for member in self.members() {
            if let What::Room(size, least) = member.what {
                write_u32(&mut argument, size, least as u32);
            }
        }
        for (offset, _) in self.0.written() {
            write_u64(&mut argument, offset, raw::SCRATCH);
        }
        Ok(argument)
    }

    /// A good request; the system call and kfabric must accept it.
    pub(super) fn succeed(self, session: &Session, number: u32, argument: &mut [u8]) -> Outcome {
        if let Err(errno) = raw::bytes(session, number, argument) {
            let error = Error::Os(errno);
            return Err(Stop::fail(format!(
                "{} of {} bytes: {error}",
                self.name(),
                argument.len()
            )));
        }
        let declared = self.0.declared().result;
        if let Some(offset) = declared.filter(|_| !self.0.traits.any_answer) {
            let result = read_u32(argument, offset) as i32;
            check_eq!(result, 0, "result of {}", self.name());
        }
        Ok(())
    }

    /// A bad request; the system call must fail so.
    #[track_caller]
    pub(super) fn fail(
        self,
        session: &Session,
        number: u32,
        argument: &mut [u8],
        errno: Errno,
    ) -> Outcome {
        let result = raw::bytes(session, number, argument);
        expect_os(result.map_err(Error::Os), errno).map_err(|stop| within(stop, self.name()))
    }
}

/// Says in what a check has failed.
pub(super) fn within(stop: Stop, what: impl std::fmt::Display) -> Stop {
    match stop {
        Stop::Fail(why) => Stop::Fail(format!("{why} ({what})")),
        skip @ Stop::Skip(_) => skip,
    }
}

pub(super) fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    let bytes = &bytes[offset..offset + 4];
    u32::from_ne_bytes(bytes.try_into().expect("4 bytes"))
}

pub(super) fn write_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
}

pub(super) fn write_u64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::{forms, others, requests};

    #[test]
    fn no_request_is_left_out() {
        let batches = requests::each().filter(|request| request.is_batch());
        let made = forms().count() + others().count();
        assert_eq!(made + batches.count(), kfi::uapi::REQUESTS.len());
        assert!(forms().count() >= 50, "{}", forms().count());
        for form in others() {
            assert!(form.object().is_some(), "{}", form.name());
        }
    }
}
