// SPDX-License-Identifier: GPL-2.0

//! The members of a collective: endpoints that know each other, arranged as a tree,
//! and memory that others write to.

use std::ops::Range;
use std::rc::Rc;

use kfi::{
    bits, uapi, AddressVector, Buffer, Caps, CompletionQueue, Endpoint, Error, Form, KfiErrno,
    Kind, MemoryRegion, MrAttr, OpType, Operation, Segment,
};

use super::graph::{Action, NamedCounter, Transfer};
use crate::output::{During, Problem};
use crate::setup::{insert, Choice, Place};

/// Bytes of an element.
pub(crate) const WORD: usize = size_of::<u64>();

/// The members.
///
/// Deferred work belongs to a domain, and so do the counters it uses; hence all
/// endpoints are of one domain.
#[derive(Debug)]
pub(crate) struct Team {
    endpoints: Vec<Endpoint>,
    addrs: Vec<u64>,
    errors: CompletionQueue,
    _vector: AddressVector,
    pub(crate) place: Place,
}

impl Team {
    /// Opens endpoints that know each other.
    pub(crate) fn new(choice: &Choice, size: usize) -> Result<Self, Problem> {
        let place = choice.open(Caps::RMA | Caps::ATOMIC | Caps::TRIGGER)?;
        let vector = place.address_vector()?;
        // Deferred work without KFI_COMPLETION leaves nothing in the queue if it
        // succeeds. Any entry here is an error.
        let errors = place.queue()?;
        let mut endpoints = Vec::new();
        for _ in 0..size {
            let endpoint = place.endpoint()?;
            let bound = endpoint.bind(errors.handle(), bits::TRANSMIT);
            bound.during("kfi_ep_bind")?;
            endpoint.bind(vector.handle(), 0).during("kfi_ep_bind")?;
            endpoint.enable().during("kfi_enable")?;
            endpoints.push(endpoint);
        }
        let addrs = insert(&vector, endpoints.iter())?;
        Ok(Self {
            endpoints,
            addrs,
            errors,
            _vector: vector,
            place,
        })
    }

    /// How many they are.
    pub(crate) fn size(&self) -> usize {
        self.endpoints.len()
    }

    /// The member above in the tree; none is above 0.
    pub(crate) fn parent(member: usize) -> Option<usize> {
        Some(member.checked_sub(1)? / 2)
    }

    /// The members below in the tree, up to two.
    pub(crate) fn children(&self, member: usize) -> Range<usize> {
        let first = (2 * member + 1).min(self.size());
        first..(first + 2).min(self.size())
    }

    /// Opens a counter for each member.
    pub(crate) fn counters(&self, name: &'static str) -> Result<Vec<Rc<NamedCounter>>, Problem> {
        (0..self.size())
            .map(|member| self.counter(member, name))
            .collect()
    }

    /// Opens a counter.
    pub(crate) fn counter(
        &self,
        member: usize,
        name: &'static str,
    ) -> Result<Rc<NamedCounter>, Problem> {
        Ok(Rc::new(NamedCounter {
            member,
            name,
            counter: self.place.counter()?,
        }))
    }

    /// Allocates as many bytes for each member.
    pub(crate) fn memory(&self, size: usize) -> Result<Vec<Buffer>, Problem> {
        (0..self.size())
            .map(|_| self.place.buffer(size as u64))
            .collect()
    }

    /// Lets others write to memory of a member. The counter goes up by 1 with
    /// each write or atomic that has arrived there: a window for each kind of
    /// message tells them apart.
    pub(crate) fn window(
        &self,
        member: usize,
        memory: Segment,
        arrivals: Option<&Rc<NamedCounter>>,
    ) -> Result<Window, Problem> {
        // Any that is not in use.
        static NEXT_KEY: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let key = NEXT_KEY.fetch_add(1, std::sync::atomic::Ordering::Relaxed);

        let mut attr = MrAttr::new(bits::REMOTE_WRITE, key);
        if arrivals.is_some() {
            attr = attr.flags(uapi::KFI_RMA_EVENT);
        }
        let region = self.place.domain.register(&[memory], &attr);
        let region = region.during("kfi_mr_regv")?;
        if let Some(counter) = arrivals {
            let flags = bits::REMOTE_WRITE;
            let bound = region.bind(counter.counter.handle(), flags);
            bound.during("kfi_mr_bind")?;
        }
        Ok(Window {
            member,
            len: memory.len,
            key: region.key().during("kfi_mr_key")?,
            _region: region,
            arrivals: arrivals.cloned(),
        })
    }

    /// Member `from` writes its memory to a window of as many bytes.
    pub(crate) fn write(&self, from: usize, memory: Segment, to: &Window) -> Transfer {
        let operation = Operation::new(Kind::WRITE, Form::MSG)
            .segment(memory)
            .rma(0, to.len, to.key)
            .to(self.addrs[to.member]);
        let text = format!("write {} bytes", to.len);
        self.transfer(OpType::WRITE, from, operation, to, text)
    }

    /// Member `from` adds its elements to those in a window, each in one step
    /// that nobody else can come between.
    pub(crate) fn sum(&self, from: usize, memory: Segment, to: &Window) -> Transfer {
        let count = to.len / WORD as u64;
        let elements = Segment {
            len: count,
            ..memory
        };
        let operation = Operation::new(Kind::ATOMIC, Form::MSG)
            .segment(elements)
            .rma(0, count, to.key)
            .to(self.addrs[to.member])
            .atomic(uapi::KFI_UINT64, uapi::KFI_SUM);
        let text = format!("sum {count} elements");
        self.transfer(OpType::ATOMIC, from, operation, to, text)
    }

    fn transfer(
        &self,
        op_type: OpType,
        from: usize,
        operation: Operation,
        to: &Window,
        text: String,
    ) -> Transfer {
        Transfer {
            op_type,
            endpoint: self.endpoints[from].handle(),
            operation,
            completion: None,
            arrival: to.arrivals.clone(),
            target: to.member,
            text,
        }
    }

    /// Fails if a transfer has failed.
    pub(crate) fn check_errors(&self) -> Result<(), Problem> {
        match self.errors.read_err() {
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(()),
            Err(error) => Err(Problem::Call("kfi_cq_readerr", error)),
            Ok(error) => {
                let errno = KfiErrno::new(error.err);
                Err(Problem::Wrong(format!("a transfer has failed: {errno}")))
            }
        }
    }
}

/// Memory of a member that others write to.
#[derive(Debug)]
pub(crate) struct Window {
    member: usize,
    len: u64,
    key: u64,
    _region: MemoryRegion,
    arrivals: Option<Rc<NamedCounter>>,
}

impl Transfer {
    /// With another text.
    pub(crate) fn called(self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..self
        }
    }

    /// With a counter that goes up when the transfer is over.
    pub(crate) fn then(self, completion: &Rc<NamedCounter>) -> Self {
        Self {
            completion: Some(completion.clone()),
            ..self
        }
    }
}

impl From<Transfer> for Action {
    fn from(transfer: Transfer) -> Self {
        Self::Transfer(Box::new(transfer))
    }
}
