// SPDX-License-Identifier: GPL-2.0

//! Endpoints, and how a message goes from one to another.
//!
//! A message without a counterpart waits in the [`Net`] of the fabric. A thread that takes one out is
//! done with it at the end of the same RCU read-side critical section. So an endpoint that is closed
//! first takes all of its own out, and then waits for such sections.

#![forbid(unsafe_code)]

use crate::{
    kfi::provider::prelude::*,
    provider::Domain, //
};

/// The capabilities.
pub(crate) const CAPS: Caps = Caps::MSG
    .union(Caps::SEND)
    .union(Caps::RECV)
    .union(Caps::SOURCE)
    .union(Caps::LOCAL_COMM);

/// The limits of receives.
pub(crate) const RECEIVES: Limits = Limits {
    flags: OpFlags::COMPLETION.union(OpFlags::MORE),
    size: 256,
    iov_limit: 512,
    max_msg_size: 1 << 30,
    inject_size: 0,
};

/// The limits of sends, which have been delivered when they end.
pub(crate) const SENDS: Limits = Limits {
    flags: RECEIVES
        .flags
        .union(OpFlags::INJECT)
        .union(OpFlags::REMOTE_CQ_DATA)
        .union(OpFlags::INJECT_COMPLETE)
        .union(OpFlags::TRANSMIT_COMPLETE)
        .union(OpFlags::DELIVERY_COMPLETE),
    inject_size: 512,
    ..RECEIVES
};

/// A message that waits.
pub(crate) struct Posted {
    owner: Arc<Fid<Endpoint>>,
    message: InFlight,
}

impl Posted {
    /// Tells how it has ended.
    fn end(this: Entry<Self>, outcome: Outcome, failure: Failure) {
        let (Self { owner, message }, memory) = this.empty();
        owner.binds.tell(message, outcome, failure, memory);
    }

    /// Gives it up.
    fn fail(this: Entry<Self>, error: Error) {
        Self::end(this, Outcome::default(), error.into());
    }

    /// Lets a send meet a receive.
    fn land(send: Entry<Self>, receive: Entry<Self>) {
        let (mut outcome, failure) = receive.message.receive(&send.message);
        let sender = receive
            .owner
            .binds
            .av()
            .map(|av| av.find(send.owner.address));
        outcome.src_addr = sender.unwrap_or(FabricAddr::NOTAVAIL).as_raw();
        Self::end(receive, outcome, failure);
        Self::end(send, Outcome::default(), Failure { olen: 0, ..failure });
    }
}

/// An endpoint and the messages that wait there: sends to it, or its receives, never both.
pub(crate) struct End {
    address: NonZeroU64,
    waiting: EntryQueue<Posted>,
}

/// The endpoints that are enabled.
pub(crate) type Net = EntryQueue<End>;

/// An endpoint.
pub(crate) struct Endpoint {
    address: NonZeroU64,
    is_enabled: Atomic<bool>,
    binds: Binds<Domain, NonZeroU64>,
    domain: Hold<Domain>,
}

impl Endpoint {
    pub(crate) fn new(domain: Hold<Domain>, info: InfoRef<'_>) -> Result<Self> {
        let caps = Caps::from_raw(info.get().caps);
        if !CAPS.contains(caps)
            || !SENDS.allow_tx(info.tx_attr())
            || !RECEIVES.allow_rx(info.rx_attr())
        {
            return Err(EINVAL);
        }
        let address = domain.fabric.addresses.fetch_add(1, Relaxed);
        Ok(Self {
            address: NonZeroU64::new(address).ok_or(ENOSPC)?,
            is_enabled: Atomic::new(false),
            binds: Binds::new(),
            domain,
        })
    }

    fn enable(&self) -> Result {
        self.binds.check()?;
        let end = End {
            address: self.address,
            waiting: EntryQueue::new(),
        };
        let end = Entry::new(end, GFP_KERNEL)?;
        let mut net = self.domain.fabric.net.lock();
        if self.is_enabled.xchg(true, Full) {
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

    /// Posts an operation at the endpoint with an address, or takes what it has waited for out.
    fn meet(&self, address: NonZeroU64, posted: Entry<Posted>) -> Result {
        let direction = posted.message.direction();
        let mut net = self.domain.fabric.net.lock();
        let other = match net.find(|end| end.address == address) {
            Some(mut end) => match end.waiting.front() {
                Some(first) if first.message.direction() != direction => end.waiting.pop_front(),
                _ if end.waiting.len() >= RECEIVES.size => return Err(EAGAIN),
                _ => {
                    end.waiting.push_back(posted);
                    return Ok(());
                }
            },
            None => None,
        };
        drop(net);
        match other {
            Some(other) if direction == Direction::Transmit => Posted::land(posted, other),
            Some(other) => Posted::land(other, posted),
            None => Posted::fail(posted, EHOSTUNREACH),
        }
        Ok(())
    }
}

impl Object for Endpoint {
    type Class = PlainClass;

    fn release(&self) {
        while self.take(|_| true).is_some() {}
        let section = rcu::read_lock();
        let mut net = self.domain.fabric.net.lock();
        let end = net.take(|end| end.address == self.address);
        drop(net);
        if let Some(mut end) = end {
            while let Some(send) = end.waiting.pop_front() {
                Posted::fail(send, EHOSTUNREACH);
            }
        }
        drop(section);
        synchronize_expedited();
        self.binds.release();
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        if this.is_enabled.load(Relaxed) {
            return Err(EOPBADSTATE.into());
        }
        this.binds.bind(this.domain.fid(), other, flags)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::Enable => this.enable(),
            _ => Err(ENOSYS),
        }
    }
}

impl EndpointOps for Endpoint {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        let limits = match operation.kind() {
            _ if !this.is_enabled.load(Acquire) => return Err(EOPBADSTATE.into()),
            Kind::Send => SENDS,
            Kind::Receive => RECEIVES,
            _ => return Err(EOPNOTSUPP),
        };
        limits.check(&operation)?;
        if this.binds.is_full(&operation) {
            return Err(EAGAIN);
        }
        let address = match operation.kind() {
            Kind::Receive => Some(this.address),
            _ => this.binds.av().and_then(|av| av.resolve(operation.addr)),
        };
        let wants_entry = this.binds.wants_entry(&operation);
        let posted = Posted {
            owner: this.arc(),
            message: InFlight::take(operation, wants_entry, GFP_NOWAIT)?,
        };
        this.meet(address.ok_or(EINVAL)?, Entry::new(posted, GFP_NOWAIT)?)
    }

    fn cancel(&self, context: Context) -> Result {
        let same = |posted: &Posted| posted.message.context().as_number() == context.as_number();
        Posted::fail(self.take(same).ok_or(ENOENT)?, ECANCELED);
        Ok(())
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        answer.tell(&self.address.get().to_le_bytes())
    }
}
