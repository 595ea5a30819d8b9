// SPDX-License-Identifier: GPL-2.0

//! Endpoints, and how a message goes from one to another.
//!
//! What has no counterpart yet waits in the [`Net`] of the fabric. A thread that takes something out
//! is done with it at the end of the same RCU read-side critical section. So an endpoint that is closed
//! first takes all of its own out, and then waits for such sections.

#![forbid(unsafe_code)]

use crate::prelude::*;

/// The capabilities.
pub(crate) const CAPS: Caps = Caps::MSG
    .union(Caps::SEND)
    .union(Caps::RECV)
    .union(Caps::SOURCE)
    .union(Caps::LOCAL_COMM);
/// So many operations wait at an endpoint, at most.
pub(crate) const SIZE: usize = 256;
/// The most bytes of what is injected.
pub(crate) const INJECT_SIZE: usize = 512;
/// The most pieces of memory that an operation has.
pub(crate) const IOV_LIMIT: usize = 512;
/// The most bytes of a message.
pub(crate) const MAX_MSG_SIZE: usize = 1 << 30;

/// The flags that receives may have.
const RECEIVE_FLAGS: OpFlags = OpFlags::COMPLETION.union(OpFlags::MORE);
/// The flags that sends may have: what has ended is delivered.
const SEND_FLAGS: OpFlags = RECEIVE_FLAGS
    .union(OpFlags::INJECT)
    .union(OpFlags::REMOTE_CQ_DATA)
    .union(OpFlags::INJECT_COMPLETE)
    .union(OpFlags::TRANSMIT_COMPLETE)
    .union(OpFlags::DELIVERY_COMPLETE);

/// The end of an operation that nothing is to be said of.
const NOTHING: Outcome = Outcome {
    flags: 0,
    len: 0,
    buf: Context::NONE,
    data: 0,
    tag: 0,
    src_addr: ADDR_NOTAVAIL,
};

/// The memory of an operation.
enum Use {
    Send(Lasting),
    Receive(Incoming),
}

/// An operation that was posted.
pub(crate) struct Posted {
    owner: Arc<Fid<Endpoint>>,
    context: Context,
    memory: Use,
    data: Option<u64>,
    /// Whether a success gives an entry.
    wants_entry: bool,
}

impl Posted {
    fn is_send(&self) -> bool {
        matches!(self.memory, Use::Send(_))
    }

    /// Tells the end, and how many bytes did not fit.
    fn end(this: Entry<Self>, outcome: Outcome, olen: usize, error: Option<Error>) {
        let (this, room) = this.empty();
        let (side, ended, flag) = match this.memory {
            Use::Send(memory) => (&this.owner.tx, memory.end(), CompletionFlags::SEND),
            Use::Receive(memory) => (&this.owner.rx, memory.end(), CompletionFlags::RECV),
        };
        let flags = (CompletionFlags::MSG | flag).as_raw() | outcome.flags;
        let counted = ended.counted();
        if let (Some((queue, _)), true) = (side.queue.as_ref(), this.wants_entry || error.is_some())
        {
            queue.push(room.fill(CompletionError {
                completion: ended.complete(&Outcome { flags, ..outcome }),
                failure: Failure {
                    olen,
                    err: error.map_or(0, |error| error.to_errno().wrapping_neg()),
                    prov_errno: 0,
                },
            }));
        }
        if let Some(counter) = side.counter.as_ref() {
            counter.count(counted, error.is_none());
        }
    }

    /// Copies a message.
    fn land(send: Entry<Self>, receive: Entry<Self>) {
        let (Use::Send(from), Use::Receive(to)) = (&send.memory, &receive.memory) else {
            return;
        };
        let from = from.source();
        let len = transfer(&mut to.cursor(0), &mut from.cursor(0), from.len());
        let cut = from.len().saturating_sub(len);
        let error = (cut != 0).then_some(EMSGSIZE);
        let data = send.data.map(|_| CompletionFlags::REMOTE_CQ_DATA.as_raw());
        let av = receive.owner.av.as_ref();
        let outcome = Outcome {
            flags: data.unwrap_or(0),
            len,
            buf: Context::from_number(to.address()),
            data: send.data.unwrap_or(0),
            src_addr: av.map_or(ADDR_NOTAVAIL, |av| av.find(send.owner.address).as_raw()),
            ..NOTHING
        };
        Self::end(receive, outcome, cut, error);
        Self::end(send, NOTHING, 0, error);
    }
}

/// What waits at an endpoint: sends to it, or its receives, never both.
pub(crate) struct End {
    address: u64,
    waiting: EntryQueue<Posted>,
}

/// The endpoints that are enabled.
pub(crate) type Net = EntryQueue<End>;

/// What is told of the operations of one direction.
#[derive(Default)]
struct Side {
    /// The queue, and whether it is told only of the successes that are asked for.
    queue: SetOnce<(Hold<CompletionQueue>, bool)>,
    counter: SetOnce<Hold<Counter>>,
}

impl Side {
    fn is_bound(&self) -> bool {
        self.queue.as_ref().is_some() || self.counter.as_ref().is_some()
    }
}

/// An endpoint.
pub(crate) struct Endpoint {
    address: u64,
    is_enabled: Atomic<bool>,
    av: SetOnce<Hold<AddressVector>>,
    tx: Side,
    rx: Side,
    domain: Hold<Domain>,
}

impl Endpoint {
    pub(crate) fn new(domain: Hold<Domain>, info: InfoRef<'_>) -> Result<Self> {
        let fits = CAPS.contains(Caps::from_raw(info.get().caps))
            && info.tx_attr().is_none_or(|attr| {
                SEND_FLAGS.contains(OpFlags::from_raw(attr.op_flags))
                    && (attr.size <= SIZE && attr.inject_size <= INJECT_SIZE)
                    && (attr.iov_limit <= IOV_LIMIT && attr.rma_iov_limit == 0)
            })
            && info.rx_attr().is_none_or(|attr| {
                RECEIVE_FLAGS.contains(OpFlags::from_raw(attr.op_flags))
                    && (attr.size <= SIZE && attr.iov_limit <= IOV_LIMIT)
            });
        if !fits {
            return Err(EINVAL);
        }
        Ok(Self {
            address: domain.fabric.addresses.fetch_add(1, Relaxed),
            is_enabled: Atomic::new(false),
            av: SetOnce::new(),
            tx: Side::default(),
            rx: Side::default(),
            domain,
        })
    }

    /// Fills those places of a binding that are wanted; `EINVAL` if one of them is not free.
    fn fill<T, const N: usize>(
        &self,
        domain: &Hold<Domain>,
        places: [(bool, &SetOnce<T>); N],
        new: impl Fn() -> Result<T>,
    ) -> Result {
        let mut wanted = places
            .iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, place)| place);
        if !Arc::ptr_eq(domain.fid(), self.domain.fid())
            || wanted.clone().any(|place| place.as_ref().is_some())
        {
            return Err(EINVAL);
        }
        wanted.try_for_each(|place| place.populate(new()?).then_some(()).ok_or(EINVAL))
    }

    fn enable(this: &Fid<Self>) -> Result {
        let _ = this.av.as_ref().ok_or(ENOAV)?;
        if !this.tx.is_bound() || !this.rx.is_bound() {
            return Err(ENOCQ.into());
        }
        let end = End {
            address: this.address,
            waiting: EntryQueue::new(),
        };
        let end = Entry::new(end, GFP_KERNEL)?;
        let mut net = this.domain.fabric.net.lock();
        if this.is_enabled.xchg(true, Full) {
            return Err(EOPBADSTATE.into());
        }
        net.push_back(end);
        Ok(())
    }

    /// Takes an operation of this endpoint out of the net.
    fn take(&self, which: impl Fn(&Posted) -> bool) -> Option<Entry<Posted>> {
        let mine = |posted: &Posted| posted.owner.address == self.address && which(posted);
        let mut net = self.domain.fabric.net.lock();
        let mut end = net.find(|end| end.waiting.iter().any(mine))?;
        end.waiting.take(mine)
    }
}

impl Object for Endpoint {
    type Class = PlainClass;

    fn release(&self) {
        while self.take(|_| true).is_some() {}
        let section = rcu::read_lock();
        let end = self
            .domain
            .fabric
            .net
            .lock()
            .take(|end| end.address == self.address);
        if let Some(mut end) = end {
            while let Some(send) = end.waiting.pop_front() {
                Posted::end(send, NOTHING, 0, Some(EHOSTUNREACH));
            }
        }
        drop(section);
        synchronize_expedited();
        for side in [&self.tx, &self.rx] {
            let _ = side.queue.as_ref().map(|(queue, _)| queue.release());
            let _ = side.counter.as_ref().map(Hold::release);
        }
        let _ = self.av.as_ref().map(Hold::release);
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        let flags = BindFlags::from_raw(flags);
        let (send, receive) = (BindFlags::SEND, BindFlags::RECV);
        let (tx, rx) = (flags.contains(send), flags.contains(receive));
        let selective = flags.contains(BindFlags::SELECTIVE_COMPLETION);
        let rest = flags.without(send | receive | BindFlags::SELECTIVE_COMPLETION);
        if this.is_enabled.load(Relaxed) {
            return Err(EOPBADSTATE.into());
        }
        if let Some(av) = other.downcast::<AddressVector>() {
            if !flags.is_empty() {
                return Err(EBADFLAGS.into());
            }
            return this.fill(&av.domain, [(true, &this.av)], || Hold::new(av));
        }
        if !rest.is_empty() || !(tx || rx) {
            return Err(EBADFLAGS.into());
        }
        if let Some(queue) = other.downcast::<CompletionQueue>() {
            let places = [(tx, &this.tx.queue), (rx, &this.rx.queue)];
            return this.fill(&queue.domain, places, || Ok((Hold::new(queue)?, selective)));
        }
        let counter = other.downcast::<Counter>().ok_or(EINVAL)?;
        let places = [(tx, &this.tx.counter), (rx, &this.rx.counter)];
        this.fill(&counter.domain, places, || Hold::new(counter))
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::Enable => Self::enable(this),
            _ => Err(ENOSYS),
        }
    }
}

impl EndpointOps for Endpoint {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        let (flags, data, context) = (operation.flags(), operation.data, operation.context());
        let (side, known) = match operation.kind() {
            _ if !this.is_enabled.load(Acquire) => return Err(EOPBADSTATE.into()),
            Kind::Send => (&this.tx, SEND_FLAGS),
            Kind::Receive => (&this.rx, RECEIVE_FLAGS),
            _ => return Err(EOPNOTSUPP),
        };
        let inject = flags.contains(OpFlags::INJECT);
        let most = if inject { INJECT_SIZE } else { MAX_MSG_SIZE };
        let queue = side.queue.as_ref();
        if !known.contains(flags) {
            return Err(EBADFLAGS.into());
        } else if operation.local().count() > IOV_LIMIT {
            return Err(EINVAL);
        } else if operation.local().len()? > most {
            return Err(EMSGSIZE);
        } else if queue.is_some_and(|(queue, _)| queue.is_full()) {
            return Err(EAGAIN);
        }
        let is_asked = flags.contains(OpFlags::COMPLETION);
        let wants_entry = queue.is_some_and(|(_, selective)| !selective || is_asked);
        let wants_entry = wants_entry && !operation.is_injected();
        let (address, memory) = match operation.kind() {
            Kind::Receive => (
                this.address,
                Use::Receive(Incoming::take(operation, GFP_NOWAIT)?),
            ),
            _ => {
                let address = this.av.as_ref().ok_or(EINVAL)?.get(operation.addr)?;
                let memory = Outgoing::take(operation, GFP_NOWAIT, None)?;
                (address, Use::Send(memory.keep(GFP_NOWAIT)?))
            }
        };
        let posted = Posted {
            owner: this.arc(),
            context,
            memory,
            data,
            wants_entry,
        };
        let posted = Entry::new(posted, GFP_NOWAIT)?;
        let other = {
            let mut net = this.domain.fabric.net.lock();
            match net.find(|end| end.address == address) {
                Some(mut end) => match end.waiting.front() {
                    Some(first) if first.is_send() != posted.is_send() => end.waiting.pop_front(),
                    _ if end.waiting.len() >= SIZE => return Err(EAGAIN),
                    _ => {
                        end.waiting.push_back(posted);
                        return Ok(());
                    }
                },
                None => None,
            }
        };
        match other {
            Some(other) if posted.is_send() => Posted::land(posted, other),
            Some(other) => Posted::land(other, posted),
            None => Posted::end(posted, NOTHING, 0, Some(EHOSTUNREACH)),
        }
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result {
        let same = |posted: &Posted| posted.context.as_number() == context.as_number();
        Posted::end(self.take(same).ok_or(ENOENT)?, NOTHING, 0, Some(ECANCELED));
        Ok(())
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        answer.tell(&self.address.to_le_bytes())
    }
}
