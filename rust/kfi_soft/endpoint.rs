// SPDX-License-Identifier: GPL-2.0

//! Endpoints, their contexts and their aliases.
//!
//! A plain endpoint is a transmit and a receive context in one object; a scalable endpoint has one
//! address and several contexts, each an object. All that these have in common is [`Core`].
//!
//! What is bound is collected until the object is enabled. Then a [`Transmitter`] and a
//! [`Receiver`] are made of it, which do not change any more.

#![deny(unsafe_code)]

mod alias;
mod scalable;
mod shared;
mod submitted;

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    }, //
};

use crate::{
    address::Address,
    address_vector::AddressVector,
    atomic,
    auth_key::{
        AuthKey,
        AuthKeys, //
    },
    completion_queue::CompletionQueue,
    counter::Counter,
    domain::Domain,
    event_queue::EventQueue,
    info,
    kfi::{
        control::Control,
        errno::{
            EBADFLAGS,
            ENOAV,
            ENOCQ, //
            EOPBADSTATE,
        },
        fid::{
            AnyFid,
            Context,
            Fid,
            Object, //
        },
        flags::{
            BindFlags,
            Caps,
            OpFlags, //
        },
        hold::Hold,
        info::InfoRef,
        provider::{
            kfi_datatype,
            kfi_op,
            kfi_rx_attr,
            kfi_tx_attr,
            AtomicCall,
            EndpointClass,
            EndpointOps,
            Kind,
            NoContext,
            Operation,
            PLAIN_NUMBER,
            RECEIVE_NUMBER,
            TRANSMIT_NUMBER, //
        },
        queue::Entry, //
    },
    limits,
    node::{
        Node,
        Port, //
    },
    place::{
        AddressBytes,
        Place, //
    },
    receive_queue::{
        Buffer,
        Claims,
        MultiBuffer,
        Posted,
        ReceiveQueue, //
    },
    receiver::{
        self,
        Receiver, //
    },
    reporter::{
        BoundQueue,
        Counters,
        Event,
        Reporter,
        Reservation, //
    },
    slots::RoomListener,
    transmitter::{
        self,
        Credits,
        RoomWatch,
        Transmitter, //
    },
    trigger, //
};

pub(crate) use alias::Alias;
pub(crate) use scalable::ScalableEndpoint;
pub(crate) use shared::{
    SharedReceiveContext,
    SharedTransmitContext, //
};
pub(crate) use submitted::prepare;

/// Default flags that operations of an alias may have, or that an endpoint may be given later.
const TRANSMIT_DEFAULTS: OpFlags = limits::TX_OP_FLAGS
    .union(OpFlags::TRIGGER)
    .union(OpFlags::FENCE)
    .union(OpFlags::MORE);

/// Flags that receives may have.
const RECEIVE_FLAGS: OpFlags = OpFlags::COMPLETION
    .union(OpFlags::TRIGGER)
    .union(OpFlags::MORE)
    .union(OpFlags::MULTI_RECV)
    .union(OpFlags::PEEK)
    .union(OpFlags::CLAIM)
    .union(OpFlags::DISCARD);

/// Counters of the transmit direction.
const TRANSMIT_EVENTS: [Event; 3] = [Event::Send, Event::Read, Event::Write];
/// Counters of the receive direction.
const RECEIVE_EVENTS: [Event; 3] = [Event::Receive, Event::RemoteRead, Event::RemoteWrite];

/// Which flag binds a counter for which event.
const EVENT_FLAGS: [(BindFlags, Event); Event::COUNT] = [
    (BindFlags::SEND, Event::Send),
    (BindFlags::RECV, Event::Receive),
    (BindFlags::READ, Event::Read),
    (BindFlags::WRITE, Event::Write),
    (BindFlags::REMOTE_READ, Event::RemoteRead),
    (BindFlags::REMOTE_WRITE, Event::RemoteWrite),
];

/// What an endpoint or context is opened with.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    /// What the endpoint is able to do.
    caps: Caps,
    /// What transmit contexts are able to do.
    tx_caps: Caps,
    /// What receive contexts are able to do.
    rx_caps: Caps,
    tx_flags: OpFlags,
    rx_flags: OpFlags,
    tx_size: usize,
    rx_size: usize,
    inject_size: usize,
    tx_iov_limit: usize,
    rx_iov_limit: usize,
    rma_iov_limit: usize,
}

/// Returns what is wanted, or the default if nothing is; `EINVAL` for more than the limit.
fn choose(wanted: usize, default: usize, limit: usize) -> Result<usize> {
    match wanted {
        0 => Ok(default),
        _ if wanted > limit => Err(EINVAL),
        _ => Ok(wanted),
    }
}

impl Attributes {
    /// Reads the attributes from a description.
    pub(crate) fn new(info: InfoRef<'_>, domain: &Domain) -> Result<Self> {
        let caps = info::answered_caps(Caps::from_raw(info.get().caps)).ok_or(EINVAL)?;
        if !domain.caps().contains(caps) {
            return Err(EINVAL);
        }
        if info
            .ep_attr()
            .is_some_and(|attr| !info::is_offered(attr.type_))
        {
            return Err(EINVAL);
        }
        let mut attributes = Self::with_caps(caps)?;
        if let Some(attr) = info.tx_attr() {
            attributes = attributes.with_tx(attr)?;
        }
        if let Some(attr) = info.rx_attr() {
            attributes = attributes.with_rx(attr)?;
        }
        Ok(attributes)
    }

    /// Those of contexts that are able to do what the domain is.
    pub(crate) fn of_domain(domain: &Domain) -> Result<Self> {
        Self::with_caps(domain.caps())
    }

    /// The defaults.
    fn with_caps(caps: Caps) -> Result<Self> {
        Ok(Self {
            caps,
            tx_caps: info::tx_caps(0, caps).ok_or(EINVAL)?,
            rx_caps: info::rx_caps(0, caps).ok_or(EINVAL)?,
            tx_flags: OpFlags::NONE,
            rx_flags: OpFlags::NONE,
            tx_size: limits::TX_SIZE,
            rx_size: limits::RX_SIZE,
            inject_size: limits::INJECT_SIZE,
            tx_iov_limit: limits::IOV_LIMIT,
            rx_iov_limit: limits::IOV_LIMIT,
            rma_iov_limit: limits::RMA_IOV_LIMIT,
        })
    }

    /// Changes those of transmit contexts.
    fn with_tx(mut self, attr: &kfi_tx_attr) -> Result<Self> {
        self.tx_caps = info::tx_caps(attr.caps, self.caps).ok_or(EINVAL)?;
        let flags = OpFlags::from_raw(attr.op_flags);
        if !limits::TX_OP_FLAGS.contains(flags) {
            return Err(EINVAL);
        }
        self.tx_flags = flags;
        self.tx_size = choose(attr.size, limits::TX_SIZE, limits::MAX_TX_SIZE)?;
        self.inject_size = choose(attr.inject_size, limits::INJECT_SIZE, limits::INJECT_SIZE)?;
        self.tx_iov_limit = choose(attr.iov_limit, limits::IOV_LIMIT, limits::IOV_LIMIT)?;
        self.rma_iov_limit = choose(
            attr.rma_iov_limit,
            limits::RMA_IOV_LIMIT,
            limits::RMA_IOV_LIMIT,
        )?;
        Ok(self)
    }

    /// Changes those of receive contexts.
    fn with_rx(mut self, attr: &kfi_rx_attr) -> Result<Self> {
        self.rx_caps = info::rx_caps(attr.caps, self.caps).ok_or(EINVAL)?;
        let flags = OpFlags::from_raw(attr.op_flags);
        if !limits::RX_OP_FLAGS.contains(flags) {
            return Err(EINVAL);
        }
        self.rx_flags = flags;
        self.rx_size = choose(attr.size, limits::RX_SIZE, limits::MAX_RX_SIZE)?;
        self.rx_iov_limit = choose(attr.iov_limit, limits::IOV_LIMIT, limits::IOV_LIMIT)?;
        Ok(self)
    }
}

/// What was bound to an object that is not enabled yet.
#[derive(Default)]
struct Setup {
    enabled: bool,
    av: Option<Hold<AddressVector>>,
    tx_queue: Option<Arc<BoundQueue>>,
    rx_queue: Option<Arc<BoundQueue>>,
    counters: Counters,
    eq: Option<Hold<EventQueue>>,
    stx: Option<Hold<SharedTransmitContext>>,
    srx: Option<Hold<SharedReceiveContext>>,
    /// Where the transmit context listens for room in its completion queue.
    room: Option<RoomListener>,
}

/// What endpoints and contexts have in common.
#[pin_data]
pub(crate) struct Core {
    domain: Hold<Domain>,
    /// The scalable endpoint that it is a context of.
    parent: Option<Hold<ScalableEndpoint>>,
    #[pin]
    port: Mutex<Arc<Port>>,
    /// The number of the context; 0 for a plain endpoint.
    index: usize,
    auth_key: Arc<AuthKey>,
    attributes: Attributes,
    transmits: bool,
    receives: bool,
    /// The default flags of operations of each direction.
    tx_flags: Atomic<u64>,
    rx_flags: Atomic<u64>,
    min_multi_recv: Atomic<usize>,
    #[pin]
    setup: Mutex<Setup>,
    transmitter: SetOnce<Arc<Transmitter>>,
    receiver: SetOnce<Arc<Receiver>>,
    av: SetOnce<Arc<Fid<AddressVector>>>,
}

/// What a core is made of.
pub(crate) struct Parts {
    domain: Hold<Domain>,
    parent: Option<Hold<ScalableEndpoint>>,
    port: Arc<Port>,
    index: usize,
    auth_key: Arc<AuthKey>,
    attributes: Attributes,
    transmits: bool,
    receives: bool,
}

impl Core {
    fn new(parts: Parts) -> impl PinInit<Self> {
        let Parts {
            domain,
            parent,
            port,
            index,
            auth_key,
            attributes,
            transmits,
            receives,
        } = parts;
        pin_init!(Self {
            domain,
            parent,
            port <- new_mutex!(port, "kfi_soft::Core::port"),
            index,
            auth_key,
            attributes,
            transmits,
            receives,
            tx_flags: Atomic::new(attributes.tx_flags.as_raw()),
            rx_flags: Atomic::new(attributes.rx_flags.as_raw()),
            min_multi_recv: Atomic::new(limits::MIN_MULTI_RECV),
            setup <- new_mutex!(Setup::default(), "kfi_soft::Core::setup"),
            transmitter: SetOnce::new(),
            receiver: SetOnce::new(),
            av: SetOnce::new(),
        })
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns the receive context, once it is enabled.
    pub(crate) fn receiver(&self) -> Option<&Arc<Receiver>> {
        self.receiver.as_ref()
    }

    /// Returns the port.
    fn port(&self) -> Arc<Port> {
        self.port.lock().clone()
    }

    /// Changes the address, before the endpoint is enabled.
    fn set_name(&self, name: &[u8]) -> Result {
        // A context has the address of its endpoint.
        if self.parent.is_some() {
            return Err(EINVAL);
        }
        let setup = self.setup.lock();
        if setup.enabled {
            return Err(EOPBADSTATE.into());
        }
        let node = self.domain.fabric().node();
        let new = named_port(node, &self.domain, name, None)?;
        let old = core::mem::replace(&mut *self.port.lock(), new);
        old.close();
        Ok(())
    }

    /// Returns what stands for this object where it is only compared.
    pub(crate) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Binds an object.
    fn bind(&self, other: AnyFid<'_>, flags: u64) -> Result {
        let mut setup = self.setup.lock();
        if setup.enabled {
            return Err(EOPBADSTATE.into());
        }
        let flags = BindFlags::from_raw(flags);
        if let Some(av) = other.downcast::<AddressVector>() {
            if !flags.is_empty() {
                return Err(EBADFLAGS.into());
            }
            if setup.av.is_some() || !Arc::ptr_eq(av.domain(), self.domain.fid()) {
                return Err(EINVAL);
            }
            setup.av = Some(Hold::new(av)?);
            return Ok(());
        }
        if let Some(queue) = other.downcast::<CompletionQueue>() {
            return self.bind_queue(&mut setup, queue, flags);
        }
        if let Some(counter) = other.downcast::<Counter>() {
            return self.bind_counter(&mut setup, counter, flags);
        }
        if !flags.is_empty() {
            return Err(EBADFLAGS.into());
        }
        if let Some(eq) = other.downcast::<EventQueue>() {
            if setup.eq.is_some() || !Arc::ptr_eq(eq.fabric(), self.domain.fabric()) {
                return Err(EINVAL);
            }
            setup.eq = Some(Hold::new(eq)?);
            return Ok(());
        }
        if let Some(stx) = other.downcast::<SharedTransmitContext>() {
            if setup.stx.is_some() || !self.transmits || !Arc::ptr_eq(stx.domain(), self.domain()) {
                return Err(EINVAL);
            }
            setup.stx = Some(Hold::new(stx)?);
            return Ok(());
        }
        if let Some(srx) = other.downcast::<SharedReceiveContext>() {
            if setup.srx.is_some() || !self.receives || !Arc::ptr_eq(srx.domain(), self.domain()) {
                return Err(EINVAL);
            }
            setup.srx = Some(Hold::new(srx)?);
            return Ok(());
        }
        Err(EINVAL)
    }

    /// Binds a completion queue.
    fn bind_queue(
        &self,
        setup: &mut Setup,
        queue: &Fid<CompletionQueue>,
        flags: BindFlags,
    ) -> Result {
        let known = BindFlags::TRANSMIT | BindFlags::RECV | BindFlags::SELECTIVE_COMPLETION;
        let transmit = flags.contains(BindFlags::TRANSMIT);
        let receive = flags.contains(BindFlags::RECV);
        if !known.contains(flags) || !(transmit || receive) {
            return Err(EBADFLAGS.into());
        }
        if (transmit && (!self.transmits || setup.tx_queue.is_some()))
            || (receive && (!self.receives || setup.rx_queue.is_some()))
            || !Arc::ptr_eq(queue.domain(), self.domain())
        {
            return Err(EINVAL);
        }
        let bound = || -> Result<Arc<BoundQueue>> {
            let bound = BoundQueue {
                queue: Hold::new(queue)?,
                selective: flags.contains(BindFlags::SELECTIVE_COMPLETION),
            };
            Ok(Arc::new(bound, GFP_KERNEL)?)
        };
        let tx_queue = if transmit { Some(bound()?) } else { None };
        if receive {
            match bound() {
                Ok(bound) => setup.rx_queue = Some(bound),
                Err(error) => {
                    if let Some(bound) = tx_queue {
                        bound.queue.release();
                    }
                    return Err(error);
                }
            }
        }
        if tx_queue.is_some() {
            setup.tx_queue = tx_queue;
        }
        Ok(())
    }

    /// Binds a counter.
    fn bind_counter(&self, setup: &mut Setup, counter: &Fid<Counter>, flags: BindFlags) -> Result {
        let known = EVENT_FLAGS
            .iter()
            .fold(BindFlags::NONE, |known, (flag, _)| known | *flag);
        if !known.contains(flags) || flags.is_empty() {
            return Err(EBADFLAGS.into());
        }
        if !Arc::ptr_eq(counter.domain(), self.domain()) {
            return Err(EINVAL);
        }
        let wanted = || {
            EVENT_FLAGS
                .iter()
                .filter(|(flag, _)| flags.contains(*flag))
                .map(|(_, event)| *event)
        };
        for event in wanted() {
            let side = if TRANSMIT_EVENTS.contains(&event) {
                self.transmits
            } else {
                self.receives
            };
            let taken = setup
                .counters
                .get(event as usize)
                .is_none_or(|bound| bound.is_some());
            if !side || taken {
                return Err(EINVAL);
            }
        }
        let hold = Hold::new(counter)?;
        let hold = match Arc::new(hold, GFP_KERNEL) {
            Ok(hold) => hold,
            Err(_) => {
                // The hold is gone with its memory, and with it what it counted for.
                return Err(ENOMEM);
            }
        };
        for event in wanted() {
            if let Some(bound) = setup.counters.get_mut(event as usize) {
                *bound = Some(hold.clone());
            }
        }
        Ok(())
    }

    /// Makes the object ready for operations.
    fn enable(&self) -> Result {
        let mut setup = self.setup.lock();
        if setup.enabled {
            return Err(EOPBADSTATE.into());
        }
        let av = match (&setup.av, &self.parent) {
            (Some(av), _) => av.fid().clone(),
            (None, Some(parent)) => parent.av().ok_or(ENOAV)?,
            (None, None) => return Err(ENOAV.into()),
        };
        let Attributes {
            tx_caps, rx_caps, ..
        } = self.attributes;
        let has_counter = |events: &[Event]| {
            events.iter().any(|event| {
                setup
                    .counters
                    .get(*event as usize)
                    .is_some_and(Option::is_some)
            })
        };
        let sends = self.transmits && tx_caps.intersects(Caps::SEND | Caps::READ | Caps::WRITE);
        if sends && setup.tx_queue.is_none() && !has_counter(&TRANSMIT_EVENTS) {
            return Err(ENOCQ.into());
        }
        let receives = self.receives && rx_caps.contains(Caps::RECV);
        if receives && setup.rx_queue.is_none() && !has_counter(&RECEIVE_EVENTS) {
            return Err(ENOCQ.into());
        }

        let pick = |events: &[Event]| {
            let mut counters = Counters::default();
            for event in events {
                let bound = setup.counters.get(*event as usize).and_then(Clone::clone);
                if let Some(place) = counters.get_mut(*event as usize) {
                    *place = bound;
                }
            }
            counters
        };
        let port = self.port();
        let node = port.node();
        let queue = match &setup.srx {
            Some(srx) => srx.queue().clone(),
            None => ReceiveQueue::new(node.clone(), self.attributes.rx_size)?,
        };
        let credits = match &setup.stx {
            Some(stx) => stx.credits().clone(),
            None => Credits::new(self.attributes.tx_size)?,
        };
        let tx_counters = pick(&TRANSMIT_EVENTS);
        let rx_counters = pick(&RECEIVE_EVENTS);

        // All that may fail comes first.
        let transmitter = if self.transmits {
            Some(Transmitter::new(transmitter::Parts {
                reporter: Reporter::new(setup.tx_queue.clone(), tx_counters),
                domain: self.domain().clone(),
                node: node.clone(),
                source: port.address(),
                av: av.clone(),
                auth_key: self.auth_key.number(),
                caps: tx_caps,
                credits,
                shares_credits: setup.stx.is_some(),
                iov_limit: self.attributes.tx_iov_limit,
                rma_iov_limit: self.attributes.rma_iov_limit,
                inject_size: self.attributes.inject_size,
            })?)
        } else {
            None
        };
        let receiver = if self.receives {
            Some(Receiver::new(receiver::Parts {
                queue,
                shared: setup.srx.is_some(),
                reporter: Reporter::new(setup.rx_queue.clone(), rx_counters),
                domain: self.domain().clone(),
                node: node.clone(),
                nic: port.address().nic(),
                sources: rx_caps.contains(Caps::SOURCE).then(|| av.clone()),
                auth_key: self.auth_key.number(),
                caps: rx_caps,
            })?)
        } else {
            None
        };
        let room = match (&transmitter, &setup.tx_queue) {
            (Some(transmitter), Some(bound)) => {
                let watch = Arc::new(RoomWatch(transmitter.clone()), GFP_KERNEL)?;
                Some(bound.queue.on_room(watch)?)
            }
            _ => None,
        };

        setup.room = room;
        setup.enabled = true;
        self.av.populate(av);
        if let Some(transmitter) = transmitter {
            self.transmitter.populate(transmitter);
        }
        match receiver {
            Some(receiver) => {
                self.receiver.populate(receiver.clone());
                // Last: requests may come from here on.
                port.attach(self.index, receiver)
            }
            None => Ok(()),
        }
    }

    /// Posts an operation.
    fn post(&self, operation: Operation<'_>) -> Result {
        if let Some(trigger) = &operation.trigger {
            return self.post_triggered(&operation, trigger);
        }
        if operation.kind.is_receive() {
            return self.post_receive(operation);
        }
        if !self.transmits {
            return Err(EOPNOTSUPP);
        }
        let transmitter = self.transmitter.as_ref().ok_or(EOPBADSTATE)?;
        let prepared = transmitter.prepare(&operation, false, GFP_NOWAIT)?;
        Transmitter::start(transmitter, prepared)
    }

    /// Returns the receive context, to which receives are posted. `EOPNOTSUPP` if endpoints share
    /// the receives: these are posted where they are shared, as nobody knows whose they are.
    fn own_receiver(&self) -> Result<&Arc<Receiver>> {
        if !self.receives {
            return Err(EOPNOTSUPP);
        }
        let receiver = self.receiver.as_ref().ok_or(EOPBADSTATE)?;
        if receiver.is_shared() {
            return Err(EOPNOTSUPP);
        }
        Ok(receiver)
    }

    /// Posts a receive.
    fn post_receive(&self, operation: Operation<'_>) -> Result {
        let receiver = self.own_receiver()?;
        receiver.check_post()?;
        let flags = operation.flags;
        let claim = flags.contains(OpFlags::CLAIM);
        let peek = flags.contains(OpFlags::PEEK);
        let discard = flags.contains(OpFlags::DISCARD);
        let posted =
            self.prepare_receive(receiver, &operation, GFP_NOWAIT, || receiver.reserve())?;
        if peek {
            receiver.peek(posted, claim, discard);
            return Ok(());
        }
        if claim {
            return if discard {
                receiver.discard_claimed(posted)
            } else {
                Receiver::receive_claimed(receiver, posted)
            };
        }
        let entry = Entry::new(posted, GFP_NOWAIT).map_err(|_| EAGAIN)?;
        receiver.post(entry)
    }

    /// Checks a receive, copies its description and reserves room for its completion.
    pub(self) fn prepare_receive(
        &self,
        receiver: &Receiver,
        operation: &Operation<'_>,
        flags: Flags,
        reserve: impl FnOnce() -> Result<Option<Reservation>>,
    ) -> Result<Posted> {
        let av = self.av.as_ref().ok_or(EOPBADSTATE)?;
        let source = receiver.directed(operation.addr, av)?;
        prepare_receive(
            operation,
            &self.attributes,
            // Relaxed: a number that stands for itself.
            self.min_multi_recv.load(ordering::Relaxed),
            source,
            flags,
            reserve,
        )
    }

    /// Cancels an operation.
    fn cancel(&self, context: Context) -> Result {
        if let Some(transmitter) = self.transmitter.as_ref() {
            match transmitter.cancel(context) {
                Err(error) if error == ENOENT => {}
                ret => return ret,
            }
        }
        if let Some(receiver) = self.receiver.as_ref() {
            match receiver.cancel(context) {
                Err(error) if error == ENOENT => {}
                ret => return ret,
            }
        }
        trigger::cancel(self.domain(), self.id(), context)
    }

    /// Gives everything up.
    fn release(&self) {
        trigger::discard(self.domain(), self.id());
        if let Some(receiver) = self.receiver.as_ref() {
            self.port().detach(self.index);
            Receiver::close(receiver);
        }
        if let Some(transmitter) = self.transmitter.as_ref() {
            Transmitter::close(transmitter);
        }
        let setup = core::mem::take(&mut *self.setup.lock());
        if let (Some(transmitter), Some(room)) = (self.transmitter.as_ref(), &setup.room) {
            if let Some(queue) = transmitter.reporter().queue() {
                queue.ignore_room(room);
            }
        }
        match &self.parent {
            // The last that may sleep: from here on holds are given up.
            Some(parent) => parent.forget_context(self.transmits, self.index),
            None => self.port().close(),
        }
        if let Some(receiver) = self.receiver.as_ref() {
            receiver.reporter().release();
        }
        if let Some(transmitter) = self.transmitter.as_ref() {
            transmitter.reporter().release();
        }
        for bound in [&setup.tx_queue, &setup.rx_queue].into_iter().flatten() {
            bound.queue.release();
        }
        for counter in setup.counters.iter().flatten() {
            counter.release();
        }
        if let Some(av) = &setup.av {
            av.release();
        }
        if let Some(eq) = &setup.eq {
            eq.release();
        }
        if let Some(stx) = &setup.stx {
            stx.release();
        }
        if let Some(srx) = &setup.srx {
            srx.release();
        }
        if let Some(parent) = &self.parent {
            parent.release();
        }
        self.domain.release();
    }

    /// Answers control commands, except for aliases.
    fn control(&self, command: Control<'_>) -> Result {
        match command {
            Control::Enable => self.enable(),
            Control::GetOpsFlag(out) => {
                let receive = self.direction(out.asked())?;
                out.set(self.default_flags(receive));
                Ok(())
            }
            Control::SetOpsFlag(flags) => {
                let receive = self.direction(flags)?;
                let defaults = defaults(receive, flags)?;
                // Relaxed: a number that stands for itself.
                self.flags(receive)
                    .store(defaults.as_raw(), ordering::Relaxed);
                Ok(())
            }
            _ => Err(ENOSYS),
        }
    }

    /// Returns whether it is the receive direction that flags name: exactly one, which need not be
    /// named if there is but one.
    fn direction(&self, flags: OpFlags) -> Result<bool> {
        let named = (
            flags.contains(OpFlags::TRANSMIT),
            flags.contains(OpFlags::RECV),
        );
        match (named, self.transmits, self.receives) {
            ((true, false), true, _) | ((false, false), true, false) => Ok(false),
            ((false, true), _, true) | ((false, false), false, true) => Ok(true),
            _ => Err(EINVAL),
        }
    }
}

/// Returns the default flags that are given together with a direction.
fn defaults(receive: bool, flags: OpFlags) -> Result<OpFlags> {
    let flags = flags.without(OpFlags::TRANSMIT | OpFlags::RECV);
    let known = if receive {
        RECEIVE_FLAGS.without(OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD)
    } else {
        TRANSMIT_DEFAULTS
    };
    if !known.contains(flags) {
        return Err(EBADFLAGS.into());
    }
    Ok(flags)
}

/// Checks a receive, copies its description and reserves room for its completion.
fn prepare_receive(
    operation: &Operation<'_>,
    attributes: &Attributes,
    min_multi_recv: usize,
    source: Option<Address>,
    gfp: Flags,
    reserve: impl FnOnce() -> Result<Option<Reservation>>,
) -> Result<Posted> {
    let flags = operation.flags;
    if !RECEIVE_FLAGS.contains(flags) {
        return Err(EBADFLAGS.into());
    }
    let (needed, multi_needed, tag) = match operation.kind {
        Kind::Receive => (Caps::MSG | Caps::RECV, Caps::MULTI_RECV, None),
        Kind::TaggedReceive { tag, ignore } => (
            Caps::TAGGED | Caps::RECV,
            Caps::TAGGED_MULTI_RECV,
            Some((tag, ignore)),
        ),
        _ => return Err(EINVAL),
    };
    if !attributes.rx_caps.contains(needed) {
        return Err(EOPNOTSUPP);
    }
    let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD;
    if flags.intersects(looks) && (tag.is_none() || flags.contains(OpFlags::MULTI_RECV)) {
        return Err(EBADFLAGS.into());
    }
    if flags.contains(OpFlags::DISCARD) && !flags.intersects(OpFlags::PEEK | OpFlags::CLAIM) {
        return Err(EBADFLAGS.into());
    }
    let multi = flags.contains(OpFlags::MULTI_RECV);
    if multi && !attributes.rx_caps.contains(multi_needed) {
        return Err(EBADFLAGS.into());
    }
    if operation.local.count() > attributes.rx_iov_limit {
        return Err(EINVAL);
    }
    let memory = operation.local.capture(gfp).map_err(transmitter::again)?;
    if multi && memory.len() == 0 {
        return Err(EINVAL);
    }
    let claims = Claims {
        notify: None,
        reservation: reserve()?,
    };
    let buffer = if multi {
        let buffer = MultiBuffer::new(memory, min_multi_recv, claims, gfp);
        Buffer::Multi(buffer.map_err(transmitter::again)?, 0)
    } else {
        Buffer::One(memory, claims)
    };
    Ok(Posted {
        buffer,
        tag,
        source,
        context: operation.context,
        flags,
        deferred: false,
        fired_for: None,
    })
}

/// Returns the address of a port, as addresses of the domain lie in memory.
fn name_of(port: &Port, domain: &Domain) -> AddressBytes {
    Place::from(port.address()).encode(domain.address_format())
}

/// Takes the port that a name names.
fn named_port(
    node: &Arc<Node>,
    domain: &Domain,
    name: &[u8],
    contexts: Option<usize>,
) -> Result<Arc<Port>> {
    let place = Place::decode(domain.address_format(), name).ok_or(EINVAL)?;
    let nic = domain.nic().number();
    let port = place.port.filter(|_| place.nic == nic).ok_or(EINVAL)?;
    let port = Node::take_port(node, nic, Some(port), contexts)?;
    Ok(Arc::new(port, GFP_KERNEL)?)
}

/// Returns the address that a description asks for, and the key that it has.
fn whereabouts(
    domain: &Domain,
    info: InfoRef<'_>,
    contexts: Option<usize>,
) -> Result<(Arc<Port>, Arc<AuthKey>)> {
    let node = domain.fabric().node();
    let nic = domain.nic().number();
    // Bytes that are told of have to be there: without a key it would be visible to others.
    let no_key = info.ep_auth_key().is_none();
    let key_size = info.ep_attr().map_or(0, |attr| attr.auth_key_size);
    let no_address = info.src_addr().is_none();
    if (no_key && key_size != 0) || (no_address && info.get().src_addrlen != 0) {
        return Err(EINVAL);
    }
    let port = match info.src_addr() {
        Some(bytes) => {
            let place = Place::decode(domain.address_format(), bytes).ok_or(EINVAL)?;
            if place.nic != nic {
                return Err(EINVAL);
            }
            place.port
        }
        None => None,
    };
    let key = info.ep_auth_key().unwrap_or(domain.auth_key());
    if key.len() > limits::MAX_AUTH_KEY_SIZE {
        return Err(EINVAL);
    }
    let key = Arc::new(AuthKeys::get(&node.auth_keys, key)?, GFP_KERNEL)?;
    let port = Arc::new(Node::take_port(node, nic, port, contexts)?, GFP_KERNEL)?;
    Ok((port, key))
}

/// An object that is an endpoint or a context.
pub(crate) trait HasCore: EndpointOps {
    /// Returns what it has in common with the others.
    fn core(&self) -> &Core;
}

/// An endpoint or a context, by the number of its class.
#[pin_data]
pub(crate) struct CoreObject<const NUMBER: u32> {
    #[pin]
    core: Core,
}

/// A plain endpoint.
pub(crate) type Endpoint = CoreObject<{ PLAIN_NUMBER }>;
/// A transmit context of a scalable endpoint.
pub(crate) type TransmitContext = CoreObject<{ TRANSMIT_NUMBER }>;
/// A receive context of a scalable endpoint.
pub(crate) type ReceiveContext = CoreObject<{ RECEIVE_NUMBER }>;

impl<const NUMBER: u32> CoreObject<NUMBER> {
    /// Creates it.
    fn new(parts: Parts) -> impl PinInit<Self> {
        pin_init!(Self {
            core <- Core::new(parts),
        })
    }
}

impl<const NUMBER: u32> HasCore for CoreObject<NUMBER> {
    fn core(&self) -> &Core {
        &self.core
    }
}

impl<const NUMBER: u32> Object for CoreObject<NUMBER> {
    type Class = EndpointClass<NUMBER>;

    fn release(&self) {
        self.core.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        this.core.bind(other, flags)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::Alias(request) => {
                let alias = Alias::open(this, request.flags())?;
                request.answer(alias);
                Ok(())
            }
            command => this.core.control(command),
        }
    }
}

impl<const NUMBER: u32> EndpointOps for CoreObject<NUMBER> {
    type TransmitContext = NoContext;
    type ReceiveContext = NoContext;

    fn default_flags(&self, receive: bool) -> OpFlags {
        self.core.default_flags(receive)
    }

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        this.core.post(operation)
    }

    fn cancel(&self, context: Context) -> Result {
        self.core.cancel(context)
    }

    fn min_multi_recv(&self) -> Result<usize> {
        // Relaxed: a number that stands for itself.
        Ok(self.core.min_multi_recv.load(ordering::Relaxed))
    }

    fn set_min_multi_recv(&self, size: usize) -> Result {
        // Relaxed: as above.
        self.core.min_multi_recv.store(size, ordering::Relaxed);
        Ok(())
    }

    fn name(&self, tell: &mut dyn FnMut(&[u8]) -> Result) -> Result {
        tell(&name_of(&self.core.port(), &self.core.domain))
    }

    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        this.core.set_name(name)
    }

    fn atomic_limit(&self, call: AtomicCall, datatype: kfi_datatype, op: kfi_op) -> Result<usize> {
        atomic::limit(datatype, op, call)
    }
}

impl Core {
    /// Returns the default flags of operations.
    fn default_flags(&self, receive: bool) -> OpFlags {
        // Relaxed: a number that stands for itself.
        OpFlags::from_raw(self.flags(receive).load(ordering::Relaxed))
    }

    /// Returns where the default flags of a direction are.
    fn flags(&self, receive: bool) -> &Atomic<u64> {
        if receive {
            &self.rx_flags
        } else {
            &self.tx_flags
        }
    }
}

impl Endpoint {
    /// Opens a plain endpoint.
    pub(crate) fn open(
        domain: &Fid<Domain>,
        info: InfoRef<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self>>> {
        let attributes = Attributes::new(info, domain)?;
        let (port, auth_key) = whereabouts(domain, info, None)?;
        let parts = Parts {
            domain: Hold::new(domain)?,
            parent: None,
            port,
            index: 0,
            auth_key,
            attributes,
            transmits: true,
            receives: true,
        };
        Fid::new(Self::new(parts), context)
    }
}
