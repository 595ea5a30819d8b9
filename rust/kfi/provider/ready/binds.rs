// SPDX-License-Identifier: GPL-2.0

//! The objects that an endpoint is bound to, which tell the ends of its operations.

use core::ptr;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        SetOnce, //
    }, //
};

use super::{
    AddressVector,
    CompletionQueue,
    Counter,
    InFlight,
    Limits, //
};
use crate::kfi::{
    addr::FabricAddr,
    errno::{
        EBADFLAGS,
        ENOAV,
        ENOCQ,
        EOPBADSTATE, //
    },
    fid::{
        AnyFid,
        Fid,
        Object, //
    },
    flags::{
        BindFlags,
        Caps,
        OpFlags, //
    },
    hold::Hold,
    linux::queue::Vacant,
    provider::{
        address_book::BookAddress,
        Direction,
        Directions,
        DomainOps,
        Failure,
        Kind,
        Operation,
        Outcome, //
    }, //
};

/// A completion queue that is bound.
struct BoundQueue<D: DomainOps> {
    queue: Hold<CompletionQueue<D>>,
    /// Whether it is told only of the successes that are asked for.
    is_selective: bool,
}

/// The queue and the counter that are bound for the operations of one direction.
struct Side<D: DomainOps> {
    queue: SetOnce<BoundQueue<D>>,
    counter: SetOnce<Hold<Counter<D>>>,
}

impl<D: DomainOps> Side<D> {
    const fn new() -> Self {
        Self {
            queue: SetOnce::new(),
            counter: SetOnce::new(),
        }
    }
}

/// The objects that an endpoint of a domain `D` is bound to: an address vector of addresses `A`, and for each
/// direction that it has a completion queue, a counter, or both. Nothing is bound twice. All three
/// classes are those of this part, whether or not the domain opens objects of each.
pub struct Binds<D: DomainOps, A: BookAddress> {
    caps: Caps,
    av: SetOnce<Hold<AddressVector<D, A>>>,
    transmit: Side<D>,
    receive: Side<D>,
    /// The places that are taken, by their bits: each is filled by the call that has set its bit. And
    /// whether the endpoint is enabled.
    taken: Atomic<u32>,
}

/// The bits of the places, and of an endpoint that is enabled.
const AV: u32 = 1;
const TRANSMIT_QUEUE: u32 = 1 << 1;
const RECEIVE_QUEUE: u32 = 1 << 2;
const TRANSMIT_COUNTER: u32 = 1 << 3;
const RECEIVE_COUNTER: u32 = 1 << 4;
const ENABLED: u32 = 1 << 31;

impl<D, A> Binds<D, A>
where
    D: DomainOps<
        Counter = Counter<D>,
        CompletionQueue = CompletionQueue<D>,
        AddressVector = AddressVector<D, A>,
    >,
    A: BookAddress,
{
    /// Nothing is bound to an endpoint with these capabilities. [`Caps::SEND`] and [`Caps::RECV`] are the
    /// directions that it has, [`Caps::MSG`] and [`Caps::TAGGED`] the messages that it takes;
    /// [`Offer::endpoint_caps`] says which an entry means.
    ///
    /// [`Offer::endpoint_caps`]: super::Offer::endpoint_caps
    pub const fn new(caps: Caps) -> Self {
        Self {
            caps,
            av: SetOnce::new(),
            transmit: Side::new(),
            receive: Side::new(),
            taken: Atomic::new(0),
        }
    }

    /// Returns the directions of the endpoint. From any context.
    pub fn directions(&self) -> Directions {
        Directions {
            transmit: self.caps.contains(Caps::SEND),
            receive: self.caps.contains(Caps::RECV),
        }
    }

    /// Returns what is bound for a direction.
    fn side(&self, direction: Direction) -> &Side<D> {
        match direction {
            Direction::Transmit => &self.transmit,
            Direction::Receive => &self.receive,
        }
    }

    /// Claims places, all or none: `EINVAL` if one of them is taken, `EOPBADSTATE` once the endpoint
    /// is enabled.
    fn claim(&self, places: u32) -> Result {
        // Relaxed: `cmpxchg` validates the value.
        let mut taken = self.taken.load(ordering::Relaxed);
        loop {
            if taken & ENABLED != 0 {
                return Err(EOPBADSTATE.into());
            }
            if taken & places != 0 {
                return Err(EINVAL);
            }
            // Relaxed: what comes into a place is published by that itself.
            match self.taken.cmpxchg(taken, taken | places, ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(current) => taken = current,
            }
        }
    }

    /// Binds an object to those places that are wanted, by their bits: all or none.
    fn fill<T: Object, P, const N: usize>(
        &self,
        object: &Fid<T>,
        places: [(bool, u32, &SetOnce<P>); N],
        new: impl Fn(Hold<T>) -> P,
    ) -> Result {
        let mut made = [const { None }; N];
        let mut wanted = 0;
        for ((is_wanted, bit, _), made) in places.iter().zip(&mut made) {
            if *is_wanted {
                *made = Some(new(Hold::new(object)?));
                wanted |= bit;
            }
        }
        self.claim(wanted)?;
        for ((_, _, place), made) in places.iter().zip(made) {
            if let Some(made) = made {
                // No other thread fills a place that was claimed here.
                let _ = place.populate(made);
            }
        }
        Ok(())
    }

    /// Binds an object of the same domain: `EINVAL` for one of another class, whatever the flags, for one of
    /// a kind that is bound already, and for a direction that the endpoint does not have; `EOPBADSTATE` for
    /// an endpoint that is enabled. May sleep.
    pub fn bind(&self, domain: &Fid<D>, other: AnyFid<'_>, flags: u64) -> Result {
        if self.is_enabled() {
            return Err(EOPBADSTATE.into());
        }
        let flags = BindFlags::from_raw(flags);
        let both = BindFlags::SEND | BindFlags::RECV;
        let transmit = flags.contains(BindFlags::SEND);
        let receive = flags.contains(BindFlags::RECV);
        let known = |known: BindFlags, is_one_needed: bool| {
            let is_known = known.contains(flags) && (!is_one_needed || both.intersects(flags));
            is_known.then_some(()).ok_or(EBADFLAGS)
        };
        let same = |of: &Fid<D>| ptr::eq(of, domain).then_some(()).ok_or(EINVAL);
        let directions = self.directions();
        let lacks_one = transmit && !directions.has(Direction::Transmit)
            || receive && !directions.has(Direction::Receive);
        let there = || (!lacks_one).then_some(()).ok_or(EINVAL);
        if let Some(av) = other.downcast::<AddressVector<D, A>>() {
            known(BindFlags::NONE, false)?;
            same(av.domain())?;
            self.fill(av, [(true, AV, &self.av)], |av| av)
        } else if let Some(queue) = other.downcast::<CompletionQueue<D>>() {
            known(both | BindFlags::SELECTIVE_COMPLETION, true)?;
            same(queue.domain())?;
            there()?;
            let places = [
                (transmit, TRANSMIT_QUEUE, &self.transmit.queue),
                (receive, RECEIVE_QUEUE, &self.receive.queue),
            ];
            self.fill(queue, places, |queue| BoundQueue {
                queue,
                is_selective: flags.contains(BindFlags::SELECTIVE_COMPLETION),
            })
        } else if let Some(counter) = other.downcast::<Counter<D>>() {
            known(both, true)?;
            same(counter.domain())?;
            there()?;
            let places = [
                (transmit, TRANSMIT_COUNTER, &self.transmit.counter),
                (receive, RECEIVE_COUNTER, &self.receive.counter),
            ];
            self.fill(counter, places, |counter| counter)
        } else {
            Err(EINVAL)
        }
    }

    /// Enables the endpoint: nothing is bound from here on. `ENOAV` without an address vector, `ENOCQ`
    /// if nothing would hear of the operations of a direction that it has, `EOPBADSTATE` the second time.
    /// From any context.
    pub fn enable(&self) -> Result {
        self.av.as_ref().ok_or(ENOAV)?;
        for direction in [Direction::Transmit, Direction::Receive] {
            let side = self.side(direction);
            let hears = side.queue.as_ref().is_some() || side.counter.as_ref().is_some();
            if !hears && self.directions().has(direction) {
                return Err(ENOCQ.into());
            }
        }
        // Relaxed: `cmpxchg` validates the value.
        let mut taken = self.taken.load(ordering::Relaxed);
        while taken & ENABLED == 0 {
            // Full: what was done to enable it comes before operations are posted.
            // See `qemu-test/litmus/KFI-enable.litmus`.
            match self.taken.cmpxchg(taken, taken | ENABLED, ordering::Full) {
                Ok(_) => return Ok(()),
                Err(current) => taken = current,
            }
        }
        Err(EOPBADSTATE.into())
    }

    /// Returns whether [`Self::enable`] has succeeded. From any context.
    pub fn is_enabled(&self) -> bool {
        // Acquire: see there.
        self.taken.load(ordering::Acquire) & ENABLED != 0
    }

    /// Returns the address vector. From any context.
    pub fn av(&self) -> Option<&AddressVector<D, A>> {
        self.av.as_ref().map(|av| &**av)
    }

    /// Returns the address of a peer in the address vector; `None` if it is not there. From any context.
    pub fn resolve(&self, addr: FabricAddr) -> Option<A> {
        self.av()?.resolve(addr)
    }

    /// Returns what an address is in the address vector, [`FabricAddr::NOTAVAIL`] if it is not there.
    /// From any context.
    pub fn find(&self, address: A) -> FabricAddr {
        self.av()
            .map_or(FabricAddr::NOTAVAIL, |av| av.find(address))
    }

    /// Returns whether the queue that would hear of an operation is full, so that it is not to be
    /// posted now. From any context.
    pub fn is_full(&self, operation: &Operation<'_>) -> bool {
        let side = self.side(operation.kind().direction());
        side.queue
            .as_ref()
            .is_some_and(|bound| bound.queue.is_full())
    }

    /// Returns whether the success of an operation is to give an entry. From any context.
    pub fn wants_entry(&self, operation: &Operation<'_>) -> bool {
        let side = self.side(operation.kind().direction());
        let is_asked = operation.flags().contains(OpFlags::COMPLETION);
        !operation.is_injected()
            && side
                .queue
                .as_ref()
                .is_some_and(|bound| is_asked || !bound.is_selective)
    }

    /// Takes a message that a consumer posts: `EOPBADSTATE` before the endpoint is enabled, `EOPNOTSUPP`
    /// if it is no message, or of a kind or a direction that the endpoint does not have, what
    /// [`Limits::check`] says, `EAGAIN` if the queue that would hear of it is full. From any context, with
    /// `gfp` as that demands.
    pub fn take(&self, operation: Operation<'_>, limits: &Limits, gfp: Flags) -> Result<InFlight> {
        if !self.is_enabled() {
            return Err(EOPBADSTATE.into());
        }
        let kind = match operation.kind() {
            Kind::Send | Kind::Receive => Caps::MSG,
            Kind::TaggedSend { .. } | Kind::TaggedReceive { .. } => Caps::TAGGED,
            _ => return Err(EOPNOTSUPP),
        };
        if !self.caps.contains(kind) || !self.directions().has(operation.kind().direction()) {
            return Err(EOPNOTSUPP);
        }
        limits.check(&operation)?;
        if self.is_full(&operation) {
            return Err(EAGAIN);
        }
        let wants_entry = self.wants_entry(&operation);
        InFlight::take(operation, wants_entry, gfp)
    }

    /// Ends a message: tells its consumer of it, by an entry in `memory` if there is to be one, and
    /// counts it. `memory` is that of the `Entry` in which the message has waited, or another one that was
    /// allocated when it was posted: so an end needs none, and cannot fail. `Entry::empty` gives it. The
    /// kind of the message need not stand in `outcome`. From any context.
    pub fn tell(&self, message: InFlight, outcome: Outcome, failure: Failure, memory: Vacant) {
        let side = self.side(message.direction());
        let is_success = failure.err == 0;
        let wants_entry = message.wants_entry() || !is_success;
        let ended = message.end();
        let counted = ended.counted();
        if let Some(bound) = side.queue.as_ref().filter(|_| wants_entry) {
            let entry = ended.fail(&outcome, failure);
            bound.queue.push(entry, memory);
        }
        // Last: a consumer that has seen the count finds the entry.
        if let Some(counter) = side.counter.as_ref() {
            counter.count(counted, is_success);
        }
    }

    /// Gives all of it up; the endpoint is being closed, and no message of it is left. From any context.
    pub fn release(&self) {
        for side in [&self.transmit, &self.receive] {
            if let Some(bound) = side.queue.as_ref() {
                bound.queue.release();
            }
            if let Some(counter) = side.counter.as_ref() {
                counter.release();
            }
        }
        if let Some(av) = self.av.as_ref() {
            av.release();
        }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_binds)]
mod tests {
    use super::*;
    use crate::kfi::{
        context::Context,
        fid::TestFid,
        provider::{
            ready::tests::{
                domain,
                receive,
                send,
                Domain, //
            },
            AddressVectorAttr,
            CompletionQueueAttr,
            CounterAttr,
            CounterOps, //
        }, //
    };
    use core::num::NonZeroU64;

    const SEND: u64 = BindFlags::SEND.as_raw();
    const RECV: u64 = BindFlags::RECV.as_raw();
    const SELECTIVE: u64 = BindFlags::SELECTIVE_COMPLETION.as_raw();

    type TestBinds = Binds<Domain, NonZeroU64>;

    /// The capabilities of endpoints for messages without tags.
    const MESSAGES: Caps = Caps::MSG.union(Caps::SEND).union(Caps::RECV);

    /// The object as a consumer passes it.
    fn any<T: Object>(fid: &Fid<T>) -> Result<AnyFid<'_>> {
        // SAFETY: The tests keep it open.
        unsafe { AnyFid::from_raw(fid.head().cast()) }.ok_or(EINVAL)
    }

    fn queue(domain: &Fid<Domain>) -> Result<TestFid<CompletionQueue<Domain>>> {
        let attr = CompletionQueueAttr {
            size: 1,
            ..CompletionQueueAttr::default()
        };
        let queue = CompletionQueue::new(Hold::new(domain)?, attr)?;
        TestFid::open(queue, Context::NONE)
    }

    fn counter(domain: &Fid<Domain>) -> Result<TestFid<Counter<Domain>>> {
        let counter = Counter::new(Hold::new(domain)?, CounterAttr::default())?;
        TestFid::open(counter, Context::NONE)
    }

    #[test]
    fn nothing_is_bound_twice_or_from_elsewhere() -> Result {
        let (domain, elsewhere) = (domain()?, domain()?);
        let attr = AddressVectorAttr::default();
        let av = AddressVector::<_, NonZeroU64>::new(Hold::new(&domain)?, attr)?;
        let av = TestFid::open(av, Context::NONE)?;
        let (spare, foreign) = (queue(&domain)?, queue(&elsewhere)?);
        let queue = queue(&domain)?;
        let counter = counter(&domain)?;
        let binds = TestBinds::new(MESSAGES);
        let bind = |other, flags| binds.bind(&domain, other, flags);

        assert_eq!(binds.enable(), Err(ENOAV.into()));
        // The class comes before the flags.
        for flags in [0, SEND, 1 << 60] {
            assert_eq!(bind(any(&domain)?, flags), Err(EINVAL));
        }
        assert_eq!(bind(any(&av)?, SEND), Err(EBADFLAGS.into()));
        assert_eq!(bind(any(&av)?, 0), Ok(()));
        assert_eq!(bind(any(&av)?, 0), Err(EINVAL));
        assert!(binds.av().is_some());
        assert_eq!(binds.enable(), Err(ENOCQ.into()));
        for flags in [0, SELECTIVE, SEND | 1 << 60] {
            assert_eq!(bind(any(&queue)?, flags), Err(EBADFLAGS.into()));
        }
        assert_eq!(bind(any(&foreign)?, SEND), Err(EINVAL));
        assert_eq!(bind(any(&queue)?, SEND | SELECTIVE), Ok(()));
        // All that is asked for, or nothing: not even a hold is left.
        let holds = spare.dependents().count();
        assert_eq!(bind(any(&spare)?, SEND | RECV), Err(EINVAL));
        assert_eq!(spare.dependents().count(), holds);
        assert_eq!(binds.enable(), Err(ENOCQ.into()));
        assert_eq!(
            bind(any(&counter)?, RECV | SELECTIVE),
            Err(EBADFLAGS.into())
        );
        assert_eq!(bind(any(&counter)?, RECV), Ok(()));
        assert_eq!(bind(any(&counter)?, RECV), Err(EINVAL));
        assert!(!binds.is_enabled());
        assert_eq!(binds.enable(), Ok(()));
        assert!(binds.is_enabled());
        assert_eq!(binds.enable(), Err(EOPBADSTATE.into()));
        assert_eq!(bind(any(&spare)?, RECV), Err(EOPBADSTATE.into()));
        Ok(())
    }

    #[test]
    fn messages_are_taken_of_an_endpoint_that_is_enabled() -> Result {
        let domain = domain()?;
        let attr = AddressVectorAttr::default();
        let av = AddressVector::<_, NonZeroU64>::new(Hold::new(&domain)?, attr)?;
        let av = TestFid::open(av, Context::NONE)?;
        let (queue, from) = (queue(&domain)?, [1u8; 2]);
        let limits = Limits {
            flags: OpFlags::NONE,
            size: 4,
            iov_limit: 1,
            max_msg_size: 2,
            inject_size: 0,
        };
        let binds = TestBinds::new(MESSAGES);
        let take = |limits: &Limits| {
            let message = binds.take(send(&from), limits, GFP_KERNEL)?;
            binds.tell(
                message,
                Outcome::default(),
                EIO.into(),
                Vacant::new(GFP_KERNEL)?,
            );
            Ok(())
        };
        assert_eq!(binds.resolve(FabricAddr::from(0)), None);
        binds.bind(&domain, any(&av)?, 0)?;
        assert_eq!(binds.resolve(FabricAddr::from(0)), None);
        assert_eq!(binds.find(NonZeroU64::MIN), FabricAddr::NOTAVAIL);
        binds.bind(&domain, any(&queue)?, SEND | RECV)?;
        assert_eq!(take(&limits), Err(EOPBADSTATE.into()));
        binds.enable()?;
        let less = Limits {
            max_msg_size: 1,
            ..limits
        };
        assert_eq!(take(&less), Err(EMSGSIZE));
        // Nor are those with a tag, which it was not opened for.
        let mut tagged = send(&from);
        tagged.kind = Kind::TaggedSend { tag: 0 };
        let taken = binds.take(tagged, &limits, GFP_KERNEL);
        assert_eq!(taken.err(), Some(EOPNOTSUPP));
        assert_eq!(take(&limits), Ok(()));
        // There is room for one entry.
        assert_eq!(take(&limits), Err(EAGAIN));
        binds.release();
        Ok(())
    }

    #[test]
    fn what_only_sends_has_nothing_for_receives() -> Result {
        let domain = domain()?;
        let attr = AddressVectorAttr::default();
        let av = AddressVector::<_, NonZeroU64>::new(Hold::new(&domain)?, attr)?;
        let av = TestFid::open(av, Context::NONE)?;
        let (queue, counter) = (queue(&domain)?, counter(&domain)?);
        let binds = TestBinds::new(MESSAGES.without(Caps::RECV));
        let bind = |other, flags| binds.bind(&domain, other, flags);
        bind(any(&av)?, 0)?;
        for flags in [RECV, SEND | RECV] {
            assert_eq!(bind(any(&queue)?, flags), Err(EINVAL));
            assert_eq!(bind(any(&counter)?, flags), Err(EINVAL));
        }
        assert_eq!(binds.enable(), Err(ENOCQ.into()));
        bind(any(&queue)?, SEND)?;
        assert_eq!(binds.enable(), Ok(()));
        let limits = Limits {
            flags: OpFlags::NONE,
            size: 1,
            iov_limit: 1,
            max_msg_size: 8,
            inject_size: 0,
        };
        let mut to = [0u8; 2];
        let taken = binds.take(receive(&mut to), &limits, GFP_KERNEL);
        assert_eq!(taken.err(), Some(EOPNOTSUPP));
        assert!(binds.take(send(&[1]), &limits, GFP_KERNEL).is_ok());
        binds.release();
        Ok(())
    }

    #[test]
    fn ends_are_told_and_counted() -> Result {
        let domain = domain()?;
        let queue = queue(&domain)?;
        let counter = counter(&domain)?;
        let binds = TestBinds::new(MESSAGES);
        binds.bind(&domain, any(&queue)?, SEND | SELECTIVE)?;
        binds.bind(&domain, any(&counter)?, SEND | RECV)?;
        let from = [1u8; 2];
        let mut to = [0u8; 2];

        // Successes give entries only if they are asked for.
        let mut asked = send(&from);
        asked.flags = OpFlags::COMPLETION;
        assert!(binds.wants_entry(&asked) && !binds.wants_entry(&send(&from)));
        assert!(!binds.wants_entry(&receive(&mut to)));
        let tell = |operation, wants_entry, failure: Failure| -> Result<bool> {
            let message = InFlight::take(operation, wants_entry, GFP_KERNEL)?;
            let memory = Vacant::new(GFP_KERNEL)?;
            binds.tell(message, Outcome::default(), failure, memory);
            Ok(binds.is_full(&send(&from)))
        };
        assert_eq!(tell(send(&from), false, Failure::NONE), Ok(false));
        assert_eq!(tell(receive(&mut to), false, Failure::NONE), Ok(false));
        assert_eq!((counter.read(), counter.readerr()), (2, 0));
        assert_eq!(tell(send(&from), false, EIO.into()), Ok(true));
        assert_eq!((counter.read(), counter.readerr()), (2, 1));
        binds.release();
        Ok(())
    }
}
