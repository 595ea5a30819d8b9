// SPDX-License-Identifier: GPL-2.0

//! Endpoints, their contexts and their aliases.
//!
//! A plain endpoint is a transmit and a receive context in one object; a scalable endpoint has one
//! address and several contexts, each an object. All that these have in common is
//! [`EndpointState`].
//!
//! Bound objects are collected until the object is enabled. Then a [`Transmitter`] and a
//! [`Receiver`] are made of them, which do not change any more.

#![forbid(unsafe_code)]

mod alias;
mod binds;
mod deferred_op;
mod scalable;
mod shared;

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
    address::{
        auth_key::AuthKey,
        native::Address,
        place::{
            AddressBytes,
            Place, //
        },
        vector::AddressVector, //
    },
    domain::Domain,
    info,
    kfi::{
        context::Context,
        control::Control,
        errno::{
            EBADFLAGS,
            ENOAV,
            ENOCQ,
            EOPBADSTATE, //
        },
        fid::{
            AnyFid,
            Fid,
            NewAlias,
            NewFid,
            Object,
            Opening, //
        },
        flags::{
            BindFlags,
            Caps,
            OpFlags, //
        },
        hold::Hold,
        info::InfoRef,
        linux::{
            interrupts::NoPreemption,
            queue::{
                Entry,
                Vacant, //
            }, //
        },
        provider::{
            kfi_datatype,
            kfi_op,
            kfi_rx_attr,
            kfi_tx_attr,
            Answer,
            AtomicCall,
            Direction,
            Directions,
            EndpointClass,
            EndpointOps,
            Incoming,
            Kind,
            NoReceiveContext,
            NoTransmitContext,
            Operation,
            PlainClass,
            PLAIN_NUMBER,
            RECEIVE_NUMBER,
            TRANSMIT_NUMBER, //
        }, //
    },
    limits,
    node::{
        Node,
        Port, //
    },
    queue::{
        event_queue::EventQueue,
        listeners::ListenerId, //
    },
    transfer::{
        atomic,
        completer::Completer,
        credits::Credits,
        multi_buffer::MultiUse,
        receive_queue::{
            Posted,
            ReceiveBuffer,
            ReceiveQueue, //
        },
        receiver::{
            self,
            Receiver,
            SpaceWatch, //
        },
        transmitter::{
            self,
            CancelledBegun,
            Transmitter, //
        }, //
    },
    trigger::{
        pending,
        pending_table::PendingOwner, //
    }, //
};

pub(crate) use alias::Alias;
pub(crate) use deferred_op::prepare;
pub(crate) use scalable::ScalableEndpoint;
pub(crate) use shared::{
    SharedReceiveContext,
    SharedTransmitContext, //
};

use binds::Binds;

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

/// The attributes that an endpoint or context is opened with.
#[derive(Clone, Copy)]
pub(crate) struct EndpointAttributes {
    /// The capabilities of the endpoint.
    caps: Caps,
    /// The capabilities of transmit contexts.
    tx_caps: Caps,
    /// The capabilities of receive contexts.
    rx_caps: Caps,
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

impl EndpointAttributes {
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

    /// The attributes of contexts that can do whatever the domain can.
    pub(crate) fn of_domain(domain: &Domain) -> Result<Self> {
        Self::with_caps(domain.caps())
    }

    /// The defaults.
    fn with_caps(caps: Caps) -> Result<Self> {
        Ok(Self {
            caps,
            tx_caps: info::tx_caps(0, caps).ok_or(EINVAL)?,
            rx_caps: info::rx_caps(0, caps).ok_or(EINVAL)?,
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
        if !limits::TX_OP_FLAGS.contains(OpFlags::from_raw(attr.op_flags)) {
            return Err(EINVAL);
        }
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
        if !limits::RX_OP_FLAGS.contains(OpFlags::from_raw(attr.op_flags)) {
            return Err(EINVAL);
        }
        self.rx_size = choose(attr.size, limits::RX_SIZE, limits::MAX_RX_SIZE)?;
        self.rx_iov_limit = choose(attr.iov_limit, limits::IOV_LIMIT, limits::IOV_LIMIT)?;
        Ok(self)
    }
}

/// The room below which buffers for several messages are given back, in bytes.
struct MinMultiRecv(Atomic<usize>);

impl MinMultiRecv {
    /// The default.
    fn new() -> Self {
        Self(Atomic::new(limits::MIN_MULTI_RECV))
    }

    fn get(&self) -> usize {
        // Relaxed: a number that stands for itself.
        self.0.load(ordering::Relaxed)
    }

    /// Changes it; `E2BIG` if no message is as long.
    fn set(&self, size: usize) -> Result {
        if size > limits::MAX_MSG_SIZE {
            return Err(E2BIG);
        }
        // Relaxed: as above.
        self.0.store(size, ordering::Relaxed);
        Ok(())
    }
}

/// The objects bound to an endpoint or context that is not enabled yet.
#[derive(Default)]
struct Setup {
    enabled: bool,
    av: Option<Hold<AddressVector>>,
    binds: Binds,
    eq: Option<Hold<EventQueue>>,
    stx: Option<Hold<SharedTransmitContext>>,
    srx: Option<Hold<SharedReceiveContext>>,
    /// The receive context as a listener for space in its completion queue.
    listener: Option<ListenerId>,
}

/// The state that endpoints and contexts have in common.
#[pin_data]
pub(crate) struct EndpointState {
    domain: Hold<Domain>,
    /// The scalable endpoint that it is a context of.
    parent: Option<Hold<ScalableEndpoint>>,
    #[pin]
    port: Mutex<Arc<Port>>,
    /// The number of the context; 0 for a plain endpoint.
    index: usize,
    auth_key: Arc<AuthKey>,
    attributes: EndpointAttributes,
    directions: Directions,
    min_multi_recv: MinMultiRecv,
    #[pin]
    setup: Mutex<Setup>,
    transmitter: SetOnce<Arc<Transmitter>>,
    receiver: SetOnce<Arc<Receiver>>,
    av: SetOnce<Arc<Fid<AddressVector>>>,
    /// Its name in the table of pending operations.
    owner: SetOnce<PendingOwner>,
}

/// The configuration that the state of an endpoint or context is created from.
pub(crate) struct EndpointConfig {
    domain: Hold<Domain>,
    parent: Option<Hold<ScalableEndpoint>>,
    port: Arc<Port>,
    index: usize,
    auth_key: Arc<AuthKey>,
    attributes: EndpointAttributes,
    directions: Directions,
}

impl EndpointState {
    fn new(config: EndpointConfig) -> impl PinInit<Self> {
        let EndpointConfig {
            domain,
            parent,
            port,
            index,
            auth_key,
            attributes,
            directions,
        } = config;
        pin_init!(Self {
            domain,
            parent,
            port <- new_mutex!(port, "kfi_soft::EndpointState::port"),
            index,
            auth_key,
            attributes,
            directions,
            min_multi_recv: MinMultiRecv::new(),
            setup <- new_mutex!(Setup::default(), "kfi_soft::EndpointState::setup"),
            transmitter: SetOnce::new(),
            receiver: SetOnce::new(),
            av: SetOnce::new(),
            owner: SetOnce::new(),
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
        let present = self.port();
        let new = named_port(node, &self.auth_key, &self.domain, name, &present, None)?;
        if let Some(new) = new {
            *self.port.lock() = new;
            present.close();
        }
        Ok(())
    }

    /// Returns what stands for this object where what is pending is looked up; `EOPBADSTATE` before
    /// it is enabled.
    fn owner(&self) -> Result<PendingOwner> {
        self.owner.as_ref().copied().ok_or(EOPBADSTATE.into())
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
        let binds = &mut setup.binds;
        if let Some(ret) = binds.bind(self.domain(), self.directions, other, flags) {
            return ret;
        }
        // Of what can be bound at all.
        let without_flags = || match flags.is_empty() {
            true => Ok(()),
            false => Err(EBADFLAGS),
        };
        if let Some(eq) = other.downcast::<EventQueue>() {
            without_flags()?;
            if setup.eq.is_some() || !Arc::ptr_eq(eq.fabric(), self.domain.fabric()) {
                return Err(EINVAL);
            }
            setup.eq = Some(Hold::new(eq)?);
            return Ok(());
        }
        if let Some(stx) = other.downcast::<SharedTransmitContext>() {
            without_flags()?;
            if setup.stx.is_some()
                || !self.directions.transmit
                || !Arc::ptr_eq(stx.domain(), self.domain())
            {
                return Err(EINVAL);
            }
            setup.stx = Some(Hold::new(stx)?);
            return Ok(());
        }
        if let Some(srx) = other.downcast::<SharedReceiveContext>() {
            without_flags()?;
            if setup.srx.is_some()
                || !self.directions.receive
                || !Arc::ptr_eq(srx.domain(), self.domain())
            {
                return Err(EINVAL);
            }
            setup.srx = Some(Hold::new(srx)?);
            return Ok(());
        }
        Err(EINVAL)
    }

    /// Returns the objects that hear of operations, those that are bound to shared contexts included:
    /// these stand in for those that the endpoint itself lacks. `ENOCQ` if a direction has none.
    fn completed_binds(&self, setup: &Setup) -> Result<Binds> {
        let EndpointAttributes {
            tx_caps, rx_caps, ..
        } = self.attributes;
        let mut binds = setup.binds.clone();
        if let Some(stx) = &setup.stx {
            stx.binds().complete(&mut binds)?;
        }
        if let Some(srx) = &setup.srx {
            srx.binds().complete(&mut binds)?;
        }
        let sends =
            self.directions.transmit && tx_caps.intersects(Caps::SEND | Caps::READ | Caps::WRITE);
        if sends && !binds.tells(Direction::Transmit) {
            return Err(ENOCQ.into());
        }
        let receives = self.directions.receive && rx_caps.contains(Caps::RECV);
        if receives && !binds.tells(Direction::Receive) {
            return Err(ENOCQ.into());
        }
        Ok(binds)
    }

    /// Makes the side that transmits, if there is one.
    fn new_transmitter(
        &self,
        setup: &Setup,
        binds: &Binds,
        port: &Port,
        av: &Arc<Fid<AddressVector>>,
    ) -> Result<Option<Arc<Transmitter>>> {
        if !self.directions.transmit {
            return Ok(None);
        }
        let credits = match &setup.stx {
            Some(stx) => stx.credits().clone(),
            None => Credits::new(self.attributes.tx_size)?,
        };
        let transmitter = Transmitter::new(transmitter::TxConfig {
            completer: binds.completer(Direction::Transmit),
            domain: self.domain().clone(),
            node: port.node().clone(),
            source: port.address(),
            index: self.index,
            av: av.clone(),
            auth_key: self.auth_key.clone(),
            caps: info::allowed(self.attributes.tx_caps),
            credits,
            iov_limit: self.attributes.tx_iov_limit,
            rma_iov_limit: self.attributes.rma_iov_limit,
            inject_size: self.attributes.inject_size,
        })?;
        Ok(Some(transmitter))
    }

    /// Makes the side that receives, if there is one.
    fn new_receiver(
        &self,
        setup: &Setup,
        binds: &Binds,
        port: &Port,
        av: &Arc<Fid<AddressVector>>,
    ) -> Result<Option<Arc<Receiver>>> {
        if !self.directions.receive {
            return Ok(None);
        }
        let queue = match &setup.srx {
            Some(srx) => srx.queue().clone(),
            None => ReceiveQueue::new(&self.domain, self.attributes.rx_size)?,
        };
        let rx_caps = self.attributes.rx_caps;
        let receiver = Receiver::new(receiver::RxConfig {
            queue,
            shared: setup.srx.is_some(),
            completer: binds.completer(Direction::Receive),
            domain: self.domain().clone(),
            node: port.node().clone(),
            nic: port.address().nic(),
            sources: rx_caps.contains(Caps::SOURCE).then(|| av.clone()),
            caps: info::allowed(rx_caps),
        })?;
        Ok(Some(receiver))
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
        let binds = self.completed_binds(&setup)?;

        // All that may fail comes first. A caller that enables it again after a failure has the
        // number already.
        if self.owner.as_ref().is_none() {
            self.owner.populate(self.domain.run_list().add_owner()?);
        }
        let port = self.port();
        let transmitter = self.new_transmitter(&setup, &binds, &port, &av)?;
        let receiver = self.new_receiver(&setup, &binds, &port, &av)?;
        let listener = match (&receiver, binds.queue(Direction::Receive)) {
            (Some(receiver), Some(bound)) => {
                let watch = Arc::new(SpaceWatch(receiver.clone()), GFP_KERNEL)?;
                Some(bound.queue.listeners().listen(watch)?)
            }
            _ => None,
        };

        setup.binds = binds;
        setup.listener = listener;
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
    fn post(&self, mut operation: Operation<'_>) -> Result {
        if let Some(trigger) = operation.trigger.take() {
            return self.post_triggered(operation, &trigger);
        }
        if operation.kind().is_receive() {
            return self.post_receive(operation);
        }
        if !self.directions.transmit {
            return Err(EOPNOTSUPP);
        }
        let transmitter = self.transmitter.as_ref().ok_or(EOPBADSTATE)?;
        let reserve = Some(self.domain.reserve());
        // Operations that have memory of the reserve give it back soon.
        let _preemption = NoPreemption::begin();
        let begin = |prepared| Transmitter::start(transmitter, prepared);
        match transmitter.prepare_for(operation, false, GFP_NOWAIT, reserve, begin) {
            Ok(ret) => ret,
            Err(error) => {
                // This one cannot come, for which others may be held back.
                transmitter.let_go();
                Err(error)
            }
        }
    }

    /// Returns the receive context, to which receives are posted. `EOPNOTSUPP` if endpoints share
    /// the receives: these are posted where they are shared, as it is not known whose they are.
    fn own_receiver(&self) -> Result<&Arc<Receiver>> {
        if !self.directions.receive {
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
        let flags = operation.flags();
        let claim = flags.contains(OpFlags::CLAIM);
        let peek = flags.contains(OpFlags::PEEK);
        let discard = flags.contains(OpFlags::DISCARD);
        // The result of a look is reported by an entry only: without a queue it would be lost.
        if (peek || claim || discard) && !receiver.completer().has_queue() {
            return Err(EBADFLAGS.into());
        }
        let posted = self.prepare_receive(receiver, operation, GFP_NOWAIT)?;
        if peek {
            return Receiver::peek(receiver, posted);
        }
        if claim {
            if !discard {
                return Receiver::receive_aside(receiver, posted);
            }
            receiver.discard_aside(posted);
            return Ok(());
        }
        receiver.post(posted)
    }

    /// Checks a receive and copies its description.
    pub(self) fn prepare_receive(
        &self,
        receiver: &Receiver,
        operation: Operation<'_>,
        flags: Flags,
    ) -> Result<Entry<Posted>> {
        let av = self.av.as_ref().ok_or(EOPBADSTATE)?;
        let source = receiver.directed(operation.addr, av)?;
        prepare_receive(
            operation,
            &self.attributes,
            self.min_multi_recv.get(),
            source,
            flags,
            Some(receiver.completer()),
        )
    }

    /// Cancels an operation; `ENOENT` if there is none with that context.
    fn cancel(&self, context: Context) -> Result {
        let begun = self.cancel_begun(context)?;
        if begun == Some(CancelledBegun::Now) {
            return Ok(());
        }
        if let Ok(owner) = self.owner() {
            match pending::cancel(self.domain(), owner, context) {
                Err(error) if error == ENOENT => {}
                ret => return ret,
            }
        }
        // An operation that has just begun was not there at the first look, and is no longer pending at
        // the second.
        match begun.or(self.cancel_begun(context)?) {
            Some(_) => Ok(()),
            None => Err(ENOENT),
        }
    }

    /// Cancels an operation that is not pending any more. If all with that context are ending, it tells so: there
    /// may be another one that is pending.
    fn cancel_begun(&self, context: Context) -> Result<Option<CancelledBegun>> {
        let mut begun = None;
        if let Some(transmitter) = self.transmitter.as_ref() {
            begun = transmitter.cancel(context);
            if begun == Some(CancelledBegun::Now) {
                return Ok(begun);
            }
        }
        if let Some(receiver) = self.receiver.as_ref() {
            match receiver.cancel(context) {
                Err(error) if error == ENOENT => {}
                ret => {
                    ret?;
                    return Ok(Some(CancelledBegun::Now));
                }
            }
        }
        Ok(begun)
    }

    /// Gives everything up.
    fn release(&self) {
        // First: what has fired may still begin.
        if let Ok(owner) = self.owner() {
            self.domain.run_list().remove_owner(owner);
        }
        if let Some(receiver) = self.receiver.as_ref() {
            self.port().detach(self.index);
            Receiver::close(receiver);
        }
        if let Some(transmitter) = self.transmitter.as_ref() {
            Transmitter::close(transmitter);
        }
        let setup = core::mem::take(&mut *self.setup.lock());
        if let (Some(bound), Some(listener)) =
            (setup.binds.queue(Direction::Receive), &setup.listener)
        {
            bound.queue.listeners().ignore(listener);
        }
        match &self.parent {
            // The last that may sleep: from here on holds are given up.
            Some(parent) => {
                if let Some(direction) = self.directions.single() {
                    parent.forget_context(direction, self.index);
                }
            }
            None => self.port().close(),
        }
        if let Some(receiver) = self.receiver.as_ref() {
            receiver.completer().release();
        }
        if let Some(transmitter) = self.transmitter.as_ref() {
            transmitter.completer().release();
        }
        setup.binds.release();
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

    /// Answers control commands, but for those that ask for what an alias has of its own.
    fn control(&self, command: Control<'_>) -> Result {
        match command {
            Control::Enable => self.enable(),
            Control::SetOpsFlag(flags) => {
                let direction = direction(flags)?;
                self.check_direction(direction)?;
                check_defaults(direction, flags)
            }
            _ => Err(ENOSYS),
        }
    }

    /// `EINVAL` unless it has the direction.
    fn check_direction(&self, direction: Direction) -> Result {
        self.directions.has(direction).then_some(()).ok_or(EINVAL)
    }
}

/// Returns the direction that flags name; `EINVAL` unless it is exactly one.
fn direction(flags: OpFlags) -> Result<Direction> {
    Direction::named(flags).ok_or(EINVAL)
}

/// Checks default flags that are given together with a direction; `EINVAL` for those that it does not
/// have.
fn check_defaults(direction: Direction, flags: OpFlags) -> Result {
    let flags = flags.without(OpFlags::TRANSMIT | OpFlags::RECV);
    let known = match direction {
        Direction::Transmit => TRANSMIT_DEFAULTS,
        Direction::Receive => {
            RECEIVE_FLAGS.without(OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD)
        }
    };
    if !known.contains(flags) {
        return Err(EINVAL);
    }
    Ok(())
}

/// Checks a receive and copies its description, to memory that `completer` may have left of another one.
fn prepare_receive(
    operation: Operation<'_>,
    attributes: &EndpointAttributes,
    min_multi_recv: usize,
    source: Option<Address>,
    gfp: Flags,
    completer: Option<&Completer>,
) -> Result<Entry<Posted>> {
    let flags = operation.flags();
    if !RECEIVE_FLAGS.contains(flags) {
        return Err(EBADFLAGS.into());
    }
    let (needed, multi_needed, tag) = match operation.kind() {
        Kind::Receive => (Caps::MSG | Caps::RECV, Caps::MULTI_RECV, None),
        Kind::TaggedReceive { tag, ignore } => (
            Caps::TAGGED | Caps::RECV,
            Caps::TAGGED_MULTI_RECV,
            Some((tag, ignore)),
        ),
        _ => return Err(EINVAL),
    };
    let caps = info::allowed(attributes.rx_caps);
    if !caps.contains(needed) {
        return Err(EOPNOTSUPP);
    }
    let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD;
    if flags.intersects(looks) && (tag.is_none() || flags.contains(OpFlags::MULTI_RECV)) {
        return Err(EBADFLAGS.into());
    }
    if flags.contains(OpFlags::DISCARD) && !flags.intersects(OpFlags::PEEK | OpFlags::CLAIM) {
        return Err(EBADFLAGS.into());
    }
    let mut multi = flags.contains(OpFlags::MULTI_RECV);
    if multi && !caps.contains(multi_needed) {
        if operation.own_flags {
            return Err(EOPNOTSUPP);
        }
        // The default is meant for receives of the other kind.
        multi = false;
    }
    if operation.local().count() > attributes.rx_iov_limit {
        return Err(EINVAL);
    }
    let context = operation.context();
    let buffer = if multi {
        let buffer = MultiUse::take(operation, min_multi_recv, gfp);
        ReceiveBuffer::Multi(buffer.map_err(transmitter::enomem_to_eagain)?, 0)
    } else {
        let memory = Incoming::take(operation, gfp);
        ReceiveBuffer::One(memory.map_err(transmitter::enomem_to_eagain)?)
    };
    let memory = match completer {
        Some(completer) => completer.receive_memory(gfp)?,
        None => Vacant::new(gfp).map_err(transmitter::enomem_to_eagain)?,
    };
    Ok(memory.fill(Posted {
        buffer,
        tag,
        source,
        context,
        flags,
        deferred: false,
        since: 0,
        notify: None,
        asks: None,
    }))
}

/// Returns the address of a port, as addresses of the domain lie in memory.
fn name_of(port: &Port, domain: &Domain) -> AddressBytes {
    Place::from(port.address()).encode(domain.address_format())
}

/// Takes the port that a name names, unless it is the present one.
fn named_port(
    node: &Arc<Node>,
    key: &Arc<AuthKey>,
    domain: &Domain,
    name: &[u8],
    present: &Port,
    contexts: Option<usize>,
) -> Result<Option<Arc<Port>>> {
    let place = Place::decode(domain.address_format(), name).ok_or(EINVAL)?;
    let nic = domain.nic().number();
    let port = place.port.filter(|_| place.nic == nic).ok_or(EINVAL)?;
    if port == present.address().port() {
        return Ok(None);
    }
    let port = Node::take_port(node, key, nic, Some(port), contexts)?;
    Ok(Some(Arc::new(port, GFP_KERNEL)?))
}

/// Returns the address that a description asks for, and the key that it has.
fn whereabouts(
    domain: &Domain,
    info: InfoRef<'_>,
    contexts: Option<usize>,
) -> Result<(Arc<Port>, Arc<AuthKey>)> {
    let node = domain.fabric().node();
    let nic = domain.nic().number();
    // Bytes whose length is given have to be there: without its key the endpoint would be visible to
    // others.
    let no_address = info.src_addr().is_none();
    if !info::keys_make_sense(info) || (no_address && info.get().src_addrlen != 0) {
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
    let key = Arc::new(node.auth_keys.get(key)?, GFP_KERNEL)?;
    let port = Node::take_port(node, &key, nic, port, contexts)?;
    let port = Arc::new(port, GFP_KERNEL)?;
    Ok((port, key))
}

/// An object that is an endpoint or a context.
pub(crate) trait HasEndpointState: EndpointOps {
    /// Returns the state that it has in common with the others.
    fn endpoint_state(&self) -> &EndpointState;
}

/// An endpoint or a context, by the number of its class.
#[pin_data]
pub(crate) struct EndpointObject<const NUMBER: u32> {
    #[pin]
    state: EndpointState,
}

/// A plain endpoint.
pub(crate) type Endpoint = EndpointObject<{ PLAIN_NUMBER }>;
/// A transmit context of a scalable endpoint.
pub(crate) type TransmitContext = EndpointObject<{ TRANSMIT_NUMBER }>;
/// A receive context of a scalable endpoint.
pub(crate) type ReceiveContext = EndpointObject<{ RECEIVE_NUMBER }>;

impl<const NUMBER: u32> EndpointObject<NUMBER> {
    /// Creates it.
    fn new(config: EndpointConfig) -> impl PinInit<Self> {
        pin_init!(Self {
            state <- EndpointState::new(config),
        })
    }
}

impl<const NUMBER: u32> HasEndpointState for EndpointObject<NUMBER> {
    fn endpoint_state(&self) -> &EndpointState {
        &self.state
    }
}

impl<const NUMBER: u32> Object for EndpointObject<NUMBER> {
    type Class = EndpointClass<NUMBER>;

    fn release(&self) {
        self.state.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        this.state.bind(other, flags)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::GetOpsFlag(out) => {
                let direction = direction(out.asked())?;
                this.state.check_direction(direction)?;
                check_defaults(direction, out.asked())?;
                out.set(this.default_flags(direction));
                Ok(())
            }
            command => this.state.control(command),
        }
    }

    fn alias<'o>(
        this: &Fid<Self>,
        flags: OpFlags,
        opening: Opening<'o, Self::Class>,
    ) -> Result<NewAlias<'o, Self::Class>> {
        Ok(Alias::open(this, flags, opening)?.into_alias())
    }
}

impl<const NUMBER: u32> EndpointOps for EndpointObject<NUMBER> {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        this.state.post(operation)
    }

    fn cancel(&self, context: Context) -> Result {
        self.state.cancel(context)
    }

    fn min_multi_recv(&self) -> Result<usize> {
        Ok(self.state.min_multi_recv()?.get())
    }

    fn set_min_multi_recv(&self, size: usize) -> Result {
        self.state.min_multi_recv()?.set(size)
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        answer.tell(&name_of(&self.state.port(), &self.state.domain))
    }

    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        this.state.set_name(name)
    }

    fn atomic_limit(&self, call: AtomicCall, datatype: kfi_datatype, op: kfi_op) -> Result<usize> {
        self.state.atomic_limit(call, datatype, op)
    }
}

impl EndpointState {
    /// Returns the most elements of an atomic operation; `EOPNOTSUPP` if it could not be posted here.
    fn atomic_limit(&self, call: AtomicCall, datatype: kfi_datatype, op: kfi_op) -> Result<usize> {
        let caps = info::allowed(self.attributes.tx_caps);
        if !self.directions.transmit || !caps.contains(atomic::needed_to_post(call)) {
            return Err(EOPNOTSUPP);
        }
        atomic::limit(datatype, op, call)
    }

    /// Returns the option of objects that receive; `ENOPROTOOPT` for others.
    fn min_multi_recv(&self) -> Result<&MinMultiRecv> {
        if !self.directions.receive {
            return Err(ENOPROTOOPT);
        }
        Ok(&self.min_multi_recv)
    }
}

impl Endpoint {
    /// Opens a plain endpoint.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        info: InfoRef<'_>,
        opening: Opening<'o, PlainClass>,
    ) -> Result<NewFid<'o, Self>> {
        let attributes = EndpointAttributes::new(info, domain)?;
        let (port, auth_key) = whereabouts(domain, info, None)?;
        let config = EndpointConfig {
            domain: Hold::new(domain)?,
            parent: None,
            port,
            index: 0,
            auth_key,
            attributes,
            directions: Directions::BOTH,
        };
        NewFid::new(Self::new(config), opening)
    }
}
