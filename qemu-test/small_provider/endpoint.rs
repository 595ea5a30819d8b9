// SPDX-License-Identifier: GPL-2.0

//! Endpoints, and how a message goes from one to another.
//!
//! A message without a counterpart waits in the [`Net`] of the fabric, with the endpoint that has
//! posted it. Under the lock of that nobody looks at more messages than one endpoint may have. A thread
//! that takes one out is done with it at the end of the same RCU read-side critical section. So an
//! endpoint that is closed first takes all of its own out, and then waits for such sections.

#![forbid(unsafe_code)]

use crate::{
    kfi::provider::prelude::*,
    provider::*, //
};

/// The limits of receives. All of a message is copied by the call that finds the counterpart.
pub(crate) const RECEIVES: Limits = Limits {
    flags: OpFlags::COMPLETION.union(OpFlags::MORE),
    size: 256,
    iov_limit: 512,
    max_msg_size: 1 << 20,
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
    /// The endpoint that it goes to; of a receive its own.
    to: NonZeroU64,
    message: InFlight,
}

impl Posted {
    /// Tells how it has ended.
    fn end(this: Entry<Self>, outcome: Outcome, failure: Failure) {
        let (Self { owner, message, .. }, memory) = this.empty();
        owner.binds.tell(message, outcome, failure, memory);
    }

    /// Gives it up.
    fn fail(this: Entry<Self>, error: Error) {
        Self::end(this, Outcome::default(), error.into());
    }

    /// Lets a send meet a receive.
    fn land(send: Entry<Self>, receive: Entry<Self>) {
        let (mut outcome, failure) = receive.message.receive(&send.message);
        outcome.src_addr = receive.owner.binds.find(send.owner.address).as_raw();
        Self::end(receive, outcome, failure);
        Self::end(send, Outcome::default(), Failure { olen: 0, ..failure });
    }
}

/// An endpoint and its messages that wait.
pub(crate) struct End {
    address: NonZeroU64,
    sends: EntryQueue<Posted>,
    receives: EntryQueue<Posted>,
    /// The endpoints whose sends wait for a receive here, once for each send. If there are some, there
    /// are no receives.
    senders: EntryQueue<NonZeroU64>,
}

impl Named for End {
    type Name = NonZeroU64;

    fn name(&self) -> NonZeroU64 {
        self.address
    }
}

/// The endpoints that are enabled.
pub(crate) type Net = EntryQueue<End>;

/// Takes the first send out that waits at one endpoint for another one.
fn take_send(net: &mut Net, from: NonZeroU64, to: NonZeroU64) -> Option<Entry<Posted>> {
    net.find_exact(&from)?.sends.take(|send| send.to == to)
}

/// Takes the note of a send out.
fn take_note(net: &mut Net, from: NonZeroU64, to: NonZeroU64) -> Option<Entry<NonZeroU64>> {
    net.find_exact(&to)?.senders.take(|sender| *sender == from)
}

/// An endpoint.
pub(crate) struct Endpoint {
    address: NonZeroU64,
    binds: Binds<Domain, NonZeroU64>,
    domain: Hold<Domain>,
}

impl Endpoint {
    pub(crate) fn new(domain: Hold<Domain>, info: InfoRef<'_>) -> Result<Self> {
        if !OFFER.fits(info) {
            return Err(EINVAL);
        }
        let address = domain.fabric.addresses.fetch_add(1, Relaxed);
        Ok(Self {
            address: NonZeroU64::new(address).ok_or(ENOSPC)?,
            binds: Binds::new(OFFER.endpoint_caps(info)),
            domain,
        })
    }

    /// Lets a message meet its counterpart, or wait for it; `note` is for a send that waits.
    fn meet(&self, posted: Entry<Posted>, note: Entry<NonZeroU64>) -> Result {
        let is_send = posted.message.direction() == Direction::Transmit;
        let mut net = self.domain.fabric.net.lock();
        let own = net.find_exact(&self.address).ok_or(EAGAIN)?;
        let waiting = if is_send { &own.sends } else { &own.receives };
        let is_full = waiting.len() >= RECEIVES.size;
        let (other, found) = match net.find_exact(&posted.to) {
            Some(mut to) if is_send => match to.receives.pop_front() {
                None if is_full || to.senders.len() >= SENDS.size => return Err(EAGAIN),
                None => {
                    to.senders.push_back(note);
                    let mut own = net.find_exact(&self.address).ok_or(EAGAIN)?;
                    own.sends.push_back(posted);
                    return Ok(());
                }
                receive => (receive, None),
            },
            Some(mut to) => match to.senders.pop_front() {
                None if is_full => return Err(EAGAIN),
                None => {
                    to.receives.push_back(posted);
                    return Ok(());
                }
                Some(from) => (take_send(&mut net, *from, self.address), Some(from)),
            },
            None => (None, None),
        };
        drop(net);
        match other {
            Some(receive) if is_send => Posted::land(posted, receive),
            Some(send) => Posted::land(send, posted),
            // Without the send that it was for: its endpoint is being closed.
            None if found.is_some() => return Err(EAGAIN),
            None => Posted::fail(posted, EHOSTUNREACH),
        }
        Ok(())
    }
}

impl Object for Endpoint {
    type Class = PlainClass;

    fn release(&self) {
        let (own, net) = (self.address, &self.domain.fabric.net);
        let end = net.lock().find_exact(&own).map(FoundEntry::take);
        if let Some(mut end) = end {
            while let Some(send) = end.sends.pop_front() {
                let note = take_note(&mut net.lock(), own, send.to);
                drop(note);
            }
            while let Some(sender) = end.senders.pop_front() {
                let _section = rcu::read_lock();
                let send = take_send(&mut net.lock(), *sender, own);
                if let Some(send) = send {
                    Posted::fail(send, EHOSTUNREACH);
                }
            }
        }
        synchronize_expedited();
        self.binds.release();
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        this.binds.bind(this.domain.fid(), other, flags)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        let Control::Enable = command else {
            return Err(ENOSYS);
        };
        let end = End {
            address: this.address,
            sends: EntryQueue::new(),
            receives: EntryQueue::new(),
            senders: EntryQueue::new(),
        };
        let end = Entry::new(end, GFP_KERNEL)?;
        this.binds.enable()?;
        this.domain.fabric.net.lock().push_named(end);
        Ok(())
    }
}

impl EndpointOps for Endpoint {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        let (limits, to) = match operation.kind() {
            Kind::Send => (SENDS, this.binds.resolve(operation.addr)),
            Kind::Receive => (RECEIVES, Some(this.address)),
            _ => return Err(EOPNOTSUPP),
        };
        let posted = Posted {
            owner: this.arc(),
            message: this.binds.take(operation, &limits, GFP_NOWAIT)?,
            to: to.ok_or(EINVAL)?,
        };
        let note = Entry::new(this.address, GFP_NOWAIT)?;
        this.meet(Entry::new(posted, GFP_NOWAIT)?, note)
    }

    fn cancel(&self, context: Context) -> Result {
        let same = |posted: &Posted| posted.message.context().as_number() == context.as_number();
        let mut net = self.domain.fabric.net.lock();
        let mut own = net.find_exact(&self.address).ok_or(ENOENT)?;
        let receive = own.receives.take(same);
        let found = receive.or_else(|| own.sends.take(same)).ok_or(ENOENT)?;
        // There is none of a receive: while one waits here, there are no notes here.
        let note = take_note(&mut net, self.address, found.to);
        drop(net);
        drop(note);
        Posted::fail(found, ECANCELED);
        Ok(())
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        answer.tell(&self.address.get().to_le_bytes())
    }
}
