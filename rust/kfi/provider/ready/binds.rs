// SPDX-License-Identifier: GPL-2.0

//! The objects that an endpoint is bound to, which tell the ends of its operations.

use core::ptr;
use kernel::{
    prelude::*,
    sync::SetOnce, //
};

use super::{
    AddressVector,
    CompletionQueue,
    Counter,
    InFlight, //
};
use crate::kfi::{
    errno::{
        EBADFLAGS,
        ENOAV,
        ENOCQ, //
    },
    fid::{
        AnyFid,
        Fid, //
    },
    flags::{
        BindFlags,
        OpFlags, //
    },
    hold::Hold,
    linux::queue::Vacant,
    provider::{
        address_book::BookAddress,
        CompletionError,
        Direction,
        DomainOps,
        Failure,
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
/// direction a completion queue, a counter, or both. Nothing is bound twice.
pub struct Binds<D: DomainOps, A: BookAddress> {
    av: SetOnce<Hold<AddressVector<D, A>>>,
    transmit: Side<D>,
    receive: Side<D>,
}

/// Fills those places that are wanted; `EINVAL` if one of them is not free.
fn fill<T, const N: usize>(
    places: [(bool, &SetOnce<T>); N],
    new: impl Fn() -> Result<T>,
) -> Result {
    let mut wanted = places.iter().filter(|(is_wanted, _)| *is_wanted);
    if wanted.clone().any(|(_, place)| place.as_ref().is_some()) {
        return Err(EINVAL);
    }
    wanted.try_for_each(|(_, place)| place.populate(new()?).then_some(()).ok_or(EINVAL))
}

impl<D: DomainOps, A: BookAddress> Binds<D, A> {
    /// Nothing is bound.
    pub const fn new() -> Self {
        Self {
            av: SetOnce::new(),
            transmit: Side::new(),
            receive: Side::new(),
        }
    }

    /// Returns what is bound for a direction.
    fn side(&self, direction: Direction) -> &Side<D> {
        match direction {
            Direction::Transmit => &self.transmit,
            Direction::Receive => &self.receive,
        }
    }

    /// Binds an object of the same domain; for an endpoint that is not enabled yet.
    pub fn bind(&self, domain: &Fid<D>, other: AnyFid<'_>, flags: u64) -> Result {
        let flags = BindFlags::from_raw(flags);
        let is_other = |of: &Fid<D>| !ptr::eq(of, domain);
        if let Some(av) = other.downcast::<AddressVector<D, A>>() {
            if !flags.is_empty() {
                return Err(EBADFLAGS.into());
            }
            if is_other(av.domain()) {
                return Err(EINVAL);
            }
            return fill([(true, &self.av)], || Hold::new(av));
        }
        let is_selective = flags.contains(BindFlags::SELECTIVE_COMPLETION);
        let transmit = flags.contains(BindFlags::SEND);
        let receive = flags.contains(BindFlags::RECV);
        let both = BindFlags::SEND | BindFlags::RECV;
        let known = both | BindFlags::SELECTIVE_COMPLETION;
        if !known.contains(flags) || !both.intersects(flags) {
            return Err(EBADFLAGS.into());
        }
        if let Some(queue) = other.downcast::<CompletionQueue<D>>() {
            if is_other(queue.domain()) {
                return Err(EINVAL);
            }
            let places = [
                (transmit, &self.transmit.queue),
                (receive, &self.receive.queue),
            ];
            return fill(places, || {
                let queue = Hold::new(queue)?;
                Ok(BoundQueue {
                    queue,
                    is_selective,
                })
            });
        }
        let counter = other.downcast::<Counter<D>>().ok_or(EINVAL)?;
        if is_selective {
            return Err(EBADFLAGS.into());
        }
        if is_other(counter.domain()) {
            return Err(EINVAL);
        }
        let places = [
            (transmit, &self.transmit.counter),
            (receive, &self.receive.counter),
        ];
        fill(places, || Hold::new(counter))
    }

    /// Returns whether an endpoint has what it takes to be enabled: `ENOAV` without an address vector,
    /// `ENOCQ` if nothing would hear of the operations of one direction.
    pub fn check(&self) -> Result {
        self.av.as_ref().ok_or(ENOAV)?;
        for side in [&self.transmit, &self.receive] {
            if side.queue.as_ref().is_none() && side.counter.as_ref().is_none() {
                return Err(ENOCQ.into());
            }
        }
        Ok(())
    }

    /// Returns the address vector.
    pub fn av(&self) -> Option<&AddressVector<D, A>> {
        self.av.as_ref().map(|av| &**av)
    }

    /// Returns whether the queue that would hear of an operation is full, so that it is not to be
    /// posted now. From any context.
    pub fn is_full(&self, operation: &Operation<'_>) -> bool {
        let side = self.side(operation.kind().direction());
        side.queue
            .as_ref()
            .is_some_and(|bound| bound.queue.is_full())
    }

    /// Returns whether the success of an operation is to give an entry.
    pub fn wants_entry(&self, operation: &Operation<'_>) -> bool {
        let side = self.side(operation.kind().direction());
        let is_asked = operation.flags().contains(OpFlags::COMPLETION);
        !operation.is_injected()
            && side
                .queue
                .as_ref()
                .is_some_and(|bound| is_asked || !bound.is_selective)
    }

    /// Ends a message: tells its consumer of it, by an entry in `memory` if there is to be one, and
    /// counts it. What the message is need not stand in `outcome`. From any context.
    pub fn tell(&self, message: InFlight, outcome: Outcome, failure: Failure, memory: Vacant) {
        let side = self.side(message.direction());
        let is_success = failure.err == 0;
        let wants_entry = message.wants_entry() || !is_success;
        let (ended, flags) = message.end();
        let counted = ended.counted();
        if let Some(bound) = side.queue.as_ref().filter(|_| wants_entry) {
            let flags = flags.as_raw() | outcome.flags;
            let completion = ended.complete(&Outcome { flags, ..outcome });
            let entry = CompletionError {
                completion,
                failure,
            };
            bound.queue.push(entry, memory);
        }
        // Last: a consumer that has seen the count finds the entry.
        if let Some(counter) = side.counter.as_ref() {
            counter.count(counted, is_success);
        }
    }

    /// Gives all of it up; the endpoint is being closed.
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
        fid::{
            Object,
            TestFid, //
        },
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
        let (queue, foreign) = (queue(&domain)?, queue(&elsewhere)?);
        let counter = counter(&domain)?;
        let binds = TestBinds::new();
        let bind = |other, flags| binds.bind(&domain, other, flags);

        assert_eq!(binds.check(), Err(ENOAV.into()));
        assert_eq!(bind(any(&av)?, SEND), Err(EBADFLAGS.into()));
        assert_eq!(bind(any(&av)?, 0), Ok(()));
        assert_eq!(bind(any(&av)?, 0), Err(EINVAL));
        assert!(binds.av().is_some());
        assert_eq!(binds.check(), Err(ENOCQ.into()));
        for flags in [0, SELECTIVE, SEND | 1 << 60] {
            assert_eq!(bind(any(&queue)?, flags), Err(EBADFLAGS.into()));
        }
        assert_eq!(bind(any(&foreign)?, SEND), Err(EINVAL));
        assert_eq!(bind(any(&domain)?, SEND), Err(EINVAL));
        assert_eq!(bind(any(&queue)?, SEND | SELECTIVE), Ok(()));
        // All that is asked for, or nothing.
        assert_eq!(bind(any(&queue)?, SEND | RECV), Err(EINVAL));
        assert_eq!(binds.check(), Err(ENOCQ.into()));
        assert_eq!(
            bind(any(&counter)?, RECV | SELECTIVE),
            Err(EBADFLAGS.into())
        );
        assert_eq!(bind(any(&counter)?, RECV), Ok(()));
        assert_eq!(bind(any(&counter)?, RECV), Err(EINVAL));
        assert_eq!(binds.check(), Ok(()));
        Ok(())
    }

    #[test]
    fn ends_are_told_and_counted() -> Result {
        let domain = domain()?;
        let queue = queue(&domain)?;
        let counter = counter(&domain)?;
        let binds = TestBinds::new();
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
