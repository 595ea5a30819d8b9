// SPDX-License-Identifier: GPL-2.0

//! The completion queues and counters that are bound to an endpoint or context.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq,
        UniqueArc, //
    }, //
};

use crate::{
    counter::Counter,
    domain::Domain,
    kfi::{
        errno::EBADFLAGS,
        fid::{
            AnyFid,
            Fid, //
        },
        flags::BindFlags,
        hold::Hold,
        provider::{
            Direction,
            Directions, //
        }, //
    },
    queue::completion_queue::CompletionQueue,
    transfer::completer::{
        BoundCounters,
        BoundQueue,
        Completer,
        CountedEvent, //
    }, //
};

/// Which flag binds a counter for which event.
const EVENT_FLAGS: [(BindFlags, CountedEvent); CountedEvent::COUNT] = [
    (BindFlags::SEND, CountedEvent::Send),
    (BindFlags::RECV, CountedEvent::Receive),
    (BindFlags::READ, CountedEvent::Read),
    (BindFlags::WRITE, CountedEvent::Write),
    (BindFlags::REMOTE_READ, CountedEvent::RemoteRead),
    (BindFlags::REMOTE_WRITE, CountedEvent::RemoteWrite),
];

impl Direction {
    /// Returns the events that counters of the direction count.
    const fn events(self) -> [CountedEvent; 3] {
        match self {
            Self::Transmit => [CountedEvent::Send, CountedEvent::Read, CountedEvent::Write],
            Self::Receive => [
                CountedEvent::Receive,
                CountedEvent::RemoteRead,
                CountedEvent::RemoteWrite,
            ],
        }
    }
}

/// The queues and counters that are bound.
#[derive(Clone, Default)]
pub(super) struct Binds {
    tx_queue: Option<Arc<BoundQueue>>,
    rx_queue: Option<Arc<BoundQueue>>,
    counters: BoundCounters,
}

/// Binds a queue on its own.
fn bound_queue(queue: &Fid<CompletionQueue>, selective: bool) -> Result<Arc<BoundQueue>> {
    let queue = Hold::new(queue)?;
    Ok(Arc::new(BoundQueue { queue, selective }, GFP_KERNEL)?)
}

impl Binds {
    /// Returns where the queue of a direction is.
    fn queue_mut(&mut self, direction: Direction) -> &mut Option<Arc<BoundQueue>> {
        match direction {
            Direction::Transmit => &mut self.tx_queue,
            Direction::Receive => &mut self.rx_queue,
        }
    }

    /// Returns the queue of a direction.
    pub(super) fn queue(&self, direction: Direction) -> Option<&Arc<BoundQueue>> {
        match direction {
            Direction::Transmit => self.tx_queue.as_ref(),
            Direction::Receive => self.rx_queue.as_ref(),
        }
    }

    /// Returns the counter of an event.
    fn counter(&self, event: CountedEvent) -> Option<&Arc<Hold<Counter>>> {
        self.counters.get(event as usize)?.as_ref()
    }

    /// Binds a queue or a counter of the domain; `None` if `other` is something else.
    pub(super) fn bind(
        &mut self,
        domain: &Arc<Fid<Domain>>,
        has: Directions,
        other: AnyFid<'_>,
        flags: BindFlags,
    ) -> Option<Result> {
        if let Some(queue) = other.downcast::<CompletionQueue>() {
            return Some(self.bind_queue(domain, has, queue, flags));
        }
        let counter = other.downcast::<Counter>()?;
        Some(self.bind_counter(domain, has, counter, flags))
    }

    /// Binds a queue to the directions that the flags name, or to that of a context if they name
    /// none.
    fn bind_queue(
        &mut self,
        domain: &Arc<Fid<Domain>>,
        has: Directions,
        queue: &Fid<CompletionQueue>,
        flags: BindFlags,
    ) -> Result {
        let known = BindFlags::TRANSMIT | BindFlags::RECV | BindFlags::SELECTIVE_COMPLETION;
        let mut wanted = Directions {
            transmit: flags.contains(BindFlags::TRANSMIT),
            receive: flags.contains(BindFlags::RECV),
        };
        if !known.contains(flags) {
            return Err(EBADFLAGS.into());
        }
        if !wanted.transmit && !wanted.receive {
            wanted = Directions::only(has.single().ok_or(EBADFLAGS)?);
        }
        let both = [Direction::Transmit, Direction::Receive];
        let wanted = || both.into_iter().filter(|direction| wanted.has(*direction));
        if !Arc::ptr_eq(queue.domain(), domain)
            || wanted().any(|direction| !has.has(direction) || self.queue(direction).is_some())
        {
            return Err(EINVAL);
        }
        let selective = flags.contains(BindFlags::SELECTIVE_COMPLETION);
        // All that may fail comes first; a hold that is dropped is given up.
        let mut bound = [None, None];
        for (direction, bound) in wanted().zip(&mut bound) {
            *bound = Some((direction, bound_queue(queue, selective)?));
        }
        for (direction, queue) in bound.into_iter().flatten() {
            *self.queue_mut(direction) = Some(queue);
        }
        Ok(())
    }

    /// Binds a counter to the events that the flags name, or to all of the direction of a context if
    /// they name none.
    fn bind_counter(
        &mut self,
        domain: &Arc<Fid<Domain>>,
        has: Directions,
        counter: &Fid<Counter>,
        flags: BindFlags,
    ) -> Result {
        let known = EVENT_FLAGS
            .iter()
            .fold(BindFlags::NONE, |known, (flag, _)| known | *flag);
        if !known.contains(flags) {
            return Err(EBADFLAGS.into());
        }
        let all = match flags.is_empty() {
            true => Some(has.single().ok_or(EBADFLAGS)?.events()),
            false => None,
        };
        if !Arc::ptr_eq(counter.domain(), domain) {
            return Err(EINVAL);
        }
        let wanted = || {
            EVENT_FLAGS
                .iter()
                .filter(|(flag, event)| match &all {
                    Some(all) => all.contains(event),
                    None => flags.contains(*flag),
                })
                .map(|(_, event)| *event)
        };
        let both = [Direction::Transmit, Direction::Receive];
        for event in wanted() {
            let direction = both
                .into_iter()
                .find(|direction| direction.events().contains(&event));
            if !direction.is_some_and(|direction| has.has(direction))
                || self.counter(event).is_some()
            {
                return Err(EINVAL);
            }
        }
        // Without memory the hold is gone, and with it what it counted for.
        let hold = Arc::new(Hold::new(counter)?, GFP_KERNEL)?;
        for event in wanted() {
            if let Some(bound) = self.counters.get_mut(event as usize) {
                *bound = Some(hold.clone());
            }
        }
        Ok(())
    }

    /// Adds to `other` what it lacks, with holds of its own.
    fn complete(&self, other: &mut Self) -> Result {
        for direction in [Direction::Transmit, Direction::Receive] {
            if let (Some(bound), None) = (self.queue(direction), other.queue(direction)) {
                let bound = bound_queue(bound.queue.fid(), bound.selective)?;
                *other.queue_mut(direction) = Some(bound);
            }
        }
        for (own, other) in self.counters.iter().zip(&mut other.counters) {
            if let (Some(counter), None) = (own, &other) {
                *other = Some(Arc::new(Hold::new(counter.fid())?, GFP_KERNEL)?);
            }
        }
        Ok(())
    }

    /// Returns whether operations of a direction are reported.
    pub(super) fn tells(&self, direction: Direction) -> bool {
        self.queue(direction).is_some()
            || direction
                .events()
                .into_iter()
                .any(|event| self.counter(event).is_some())
    }

    /// Returns the completer of a direction.
    pub(super) fn completer(&self, direction: Direction) -> Completer {
        let mut counters = BoundCounters::default();
        for event in direction.events() {
            if let Some(place) = counters.get_mut(event as usize) {
                *place = self.counter(event).cloned();
            }
        }
        Completer::new(self.queue(direction).cloned(), counters)
    }

    /// Gives the holds up.
    pub(super) fn release(&self) {
        for bound in [&self.tx_queue, &self.rx_queue].into_iter().flatten() {
            bound.queue.release();
        }
        for counter in self.counters.iter().flatten() {
            counter.release();
        }
    }
}

/// The objects bound to a context that endpoints share: they report for those endpoints that
/// are bound to nothing themselves.
#[pin_data]
pub(super) struct SharedBinds {
    direction: Direction,
    #[pin]
    binds: Mutex<Binds>,
    /// The completer of receives that no endpoint has used; from any context.
    #[pin]
    completer: SpinLockIrq<Option<Arc<Completer>>>,
}

impl SharedBinds {
    /// Nothing is bound.
    pub(super) fn new(direction: Direction) -> impl PinInit<Self> {
        pin_init!(Self {
            direction,
            binds <- new_mutex!(Binds::default(), "kfi_soft::SharedBinds::binds"),
            completer <- new_spinlock_irq!(None, "kfi_soft::SharedBinds::completer"),
        })
    }

    /// Binds a queue or a counter, for the endpoints that are enabled later.
    pub(super) fn bind(&self, domain: &Arc<Fid<Domain>>, other: AnyFid<'_>, flags: u64) -> Result {
        let has = Directions::only(self.direction);
        let flags = BindFlags::from_raw(flags);
        let room = UniqueArc::<Completer>::new_uninit(GFP_KERNEL)?;
        let mut binds = self.binds.lock();
        binds
            .bind(domain, has, other, flags)
            .unwrap_or(Err(EINVAL))?;
        let completer = room.write(binds.completer(self.direction)).into();
        let old = self.completer.lock().replace(completer);
        // Without the spinlock.
        drop(old);
        Ok(())
    }

    /// Returns the completer of receives that no endpoint has used, if anything is bound.
    pub(super) fn completer(&self) -> Option<Arc<Completer>> {
        self.completer.lock().clone()
    }

    /// Adds to what is bound to an endpoint what that lacks.
    pub(super) fn complete(&self, binds: &mut Binds) -> Result {
        self.binds.lock().complete(binds)
    }

    /// Gives the holds up.
    pub(super) fn release(&self) {
        let completer = self.completer.lock().take();
        drop(completer);
        let binds = core::mem::take(&mut *self.binds.lock());
        binds.release();
    }
}

#[kunit_tests(kfi_soft_binds)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_one_direction() {
        for (_, event) in EVENT_FLAGS {
            let transmit = Direction::Transmit.events().contains(&event);
            let receive = Direction::Receive.events().contains(&event);
            assert!(transmit != receive);
        }
    }
}
