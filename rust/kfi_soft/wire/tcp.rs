// SPDX-License-Identifier: GPL-2.0

//! The wire between kernels: TCP, as `Documentation/wire-protocol.md` says.
//!
//! A NIC has an IPv4 address, the low 20 bits of which are its number; all NICs of a fabric have the
//! others in common. So the address of a target says where to connect to. Requests of one NIC to
//! another are an association: the initiator's side is an [`Association`], the target's a
//! [`Visitor`](target::Visitor).
//!
//! All that is done for one connection one work item does, one run after the other: it takes what was
//! received, and sends what is to be sent, without ever waiting for the other side. It is queued by the
//! callbacks of the socket, and by those who bring requests and answers, from any context. [`outgoing`] and
//! [`incoming`], which know of no sockets, decide what has to be sent and received when.
//!
//! Nothing that is needed for what others send waits for memory (`GFP_NOWAIT`): there may be some by what
//! they send next, such as the end of what is under way, and one thread reads all that is on a connection. A
//! request that there is no memory for is not taken, and comes again. The kernel itself waits when it makes a
//! socket, accepts one, or sends.

#![forbid(unsafe_code)]

use core::{
    net::{
        Ipv4Addr,
        SocketAddrV4, //
    },
    ops::ControlFlow, //
};
use kernel::{
    fmt,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    }, //
};

use super::{
    remote::Arrivals,
    Initiator,
    Packet,
    Payload,
    Request,
    Response,
    Wire, //
};
use crate::{
    address::{
        auth_key::AuthKeys,
        native::Address, //
    },
    budget::Budget,
    kfi::{
        linux::{
            interrupts::IrqGuard,
            no_io::NoIo,
            queue::Entry,
            random::random_u64,
            task::cond_resched,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue,
                WorkQueueFlags, //
            }, //
        },
        memory::RemoteMemory, //
    },
    limits,
    owner::{
        Owner,
        Unreached, //
    },
    share, //
};
use initiator::{
    Association,
    Fresh,
    Quiet, //
};
use listener::Listeners;
use secret::{
    Complaint,
    Complaints,
    Secret, //
};
use target::{
    Load,
    Visitors, //
};
use waiting::{
    Line,
    Lines, //
};

mod alarm;
mod connection;
mod frame;
mod idle;
mod incoming;
mod initiator;
mod listener;
mod outgoing;
mod pace;
mod retry;
pub(crate) mod secret;
mod stops;
mod stream;
mod target;
mod waiting;

pub(crate) use frame::FabricId;

/// Codes of `BYE`.
mod bye {
    /// No reason.
    pub(super) const NONE: u32 = 0;
    /// Another major version.
    pub(super) const VERSION: u32 = 1;
    /// Not for this NIC or fabric.
    pub(super) const STRANGER: u32 = 2;
    /// An old session.
    pub(super) const OLD: u32 = 3;
    /// The protocol was broken.
    pub(super) const BROKEN: u32 = 4;
    /// Too many connections.
    pub(super) const MANY: u32 = 5;
    /// A secret is wanted, and there is none here.
    pub(super) const SECRET: u32 = 6;
}

/// Up to as many bytes of data go with their request, and of results with their answer. They lie in memory
/// of the kernel at the target; those of longer operations go straight to where they belong.
const EAGER: usize = 16 << 10;

// A frame can say all that can be posted.
const _: () = {
    assert!(limits::MAX_MSG_SIZE as u64 <= frame::MAX_LEN);
    assert!(limits::RMA_IOV_LIMIT <= frame::MAX_RANGES);
    assert!(limits::MAX_AUTH_KEY_SIZE <= frame::MAX_KEY);
};

/// The most associations with others.
const MAX_ASSOCIATIONS: usize = 4096;

/// While fewer of a user's associations than these never had a connection, another one that nobody uses makes
/// place if there is no room, even if it has a connection.
const FEW_UNREACHED: usize = MAX_ASSOCIATIONS / 16;

/// When no association was found that never had a connection and that nobody uses, none is looked for during so
/// many milliseconds.
const LOOK_MILLIS: u64 = 10;

/// Associations that are looked at, or requests that are added to one, before others get the lock.
const STEP: usize = 64;

/// An association that nobody has used for so many times `peer_timeout` has no connection any more.
const QUIET_TIMES: u32 = 6;

/// The configuration of the wire.
pub(crate) struct TcpConfig {
    /// The addresses of all NICs, and where these listen.
    pub(crate) fabric: FabricId,
    /// For how many milliseconds a peer may be silent.
    pub(crate) peer_timeout: u32,
    /// Peers may be of this machine.
    pub(crate) local: bool,
    /// The receive contexts that requests of others come to.
    pub(crate) arrivals: Arc<dyn Arrivals>,
    /// The authorization keys of this node.
    pub(crate) keys: Arc<AuthKeys>,
    /// The secret that peers have to know, if any.
    pub(crate) secret: Option<Secret>,
}

/// The part that all connections have in common.
#[pin_data]
struct Shared {
    config: TcpConfig,
    /// Tells this node from the one that was there before.
    incarnation: u64,
    /// When it began.
    beginning: Instant<Monotonic>,
    /// How many sessions have been numbered.
    sessions: Atomic<u64>,
    /// Connections of others are accepted.
    accepts: Atomic<bool>,
    /// The complaints of peers that the log is told.
    #[pin]
    complaints: Complaints,
    #[pin]
    queue: WorkQueue,
    /// The peers that ask this node for something.
    #[pin]
    visitors: Visitors,
    /// The load that these are.
    load: Load,
}

impl Shared {
    /// Returns the address of a NIC, with a port.
    fn address(&self, nic: u32, port: u16) -> SocketAddrV4 {
        let address = self.config.fabric.prefix | (nic & Address::MAX_NIC);
        SocketAddrV4::new(Ipv4Addr::from_bits(address), port)
    }

    /// Tells the log that a NIC of another machine, or this one, does not get on.
    fn complain(&self, complaint: Complaint, nic: u32) {
        self.complaints.tell(complaint, *self.address(nic, 0).ip());
    }

    /// Returns the milliseconds that have passed since the wire was made.
    fn now(&self) -> u64 {
        // Time does not run backwards.
        u64::try_from(self.beginning.elapsed().as_millis()).unwrap_or(0)
    }

    /// Returns the number of a new session. A later one has a higher number, also when an association was
    /// forgotten meanwhile.
    fn next_session(&self) -> u64 {
        // Relaxed: the numbers of an association are asked for one after the other.
        let before = self.sessions.fetch_add(1, ordering::Relaxed);
        before.wrapping_add(1)
    }

    /// Has the work item of a connection run soon, of which its socket tells; `is_bulk` says whether there is much to
    /// be copied. From any context.
    ///
    /// This CPU carries out TCP for the bytes that have come, and has sent them, too, if the other side is in this
    /// kernel. So copying is left to another one. Of CPUs that share a cache the kernel takes the one that it likes.
    fn queue_told<T: WorkItem>(&self, item: Arc<T>, is_bulk: bool) {
        if is_bulk {
            self.queue.queue_elsewhere::<T, 0>(item);
        } else {
            self.queue.queue::<T, 0>(item);
        }
    }

    /// Returns the NIC of an address; none if that is not one of the fabric.
    fn nic(&self, address: &SocketAddrV4) -> Option<u32> {
        let bits = address.ip().to_bits();
        let ours = bits & !Address::MAX_NIC == self.config.fabric.prefix;
        ours.then_some(bits & Address::MAX_NIC)
    }
}

/// Returns a random number that is not 0.
fn random() -> u64 {
    loop {
        let number = random_u64();
        if number != 0 {
            return number;
        }
    }
}

/// Returns random bytes that a side says of itself.
fn nonce() -> [u8; 32] {
    let mut nonce = [0; 32];
    for bytes in nonce.chunks_exact_mut(8) {
        bytes.copy_from_slice(&random_u64().to_le_bytes());
    }
    nonce
}

/// An association, by the numbers of its NICs: the source, and the target.
type Pair = (u32, u32);

/// The number of the user who has posted a request; none if that is none of this kernel.
type User = Option<u32>;

/// The requests of a user that are for one association.
type Key = (Pair, User);

/// An association that was taken out of these.
type KnownNode<O> = RBTreeNode<Pair, Arc<Association<O>>>;

/// The associations of this node with others.
struct Associations<O: Initiator + Send + Sync + 'static> {
    known: RBTree<Pair, Arc<Association<O>>>,
    /// How many these are.
    count: usize,
    /// Requests of others, which a work queue is about to make: for each of them a line of each user, so that
    /// nobody stands behind what another user has posted.
    ///
    /// All that a user posts while it has a line goes there, whatever is known by then: so it stays in order.
    waiting: Lines<Key, Fresh<O>>,
    /// When none was found that nobody uses, but for some that had a connection.
    all_used: Option<u64>,
    /// When none was found that nobody uses.
    none_quiet: Option<u64>,
    closed: bool,
}

/// The part that work items have.
#[pin_data]
struct Inner<O: Initiator + Send + Sync + 'static> {
    shared: Arc<Shared>,
    /// Outside of the locks of associations.
    #[pin]
    associations: SpinLockIrq<Associations<O>>,
    /// Makes associations.
    #[pin]
    make: Work<Inner<O>>,
    /// Forgets those that nobody uses.
    #[pin]
    sweep: Work<Inner<O>, 1>,
    #[pin]
    listeners: Listeners,
}

/// The wire to other kernels.
pub(crate) struct Tcp<O: Initiator + Send + Sync + 'static>(Arc<Inner<O>>);

impl<O: Initiator + Send + Sync + 'static> Tcp<O> {
    /// A wire without connections, and that listens nowhere.
    pub(crate) fn new(config: TcpConfig) -> Result<Self> {
        let load = Load::new()?;
        let shared = Arc::try_pin_init(
            try_pin_init!(Shared {
                config,
                incarnation: random(),
                beginning: Instant::now(),
                sessions: Atomic::new(0),
                accepts: Atomic::new(false),
                complaints <- Complaints::new(),
                queue <- WorkQueue::new(
                    c"kfi_soft_tcp",
                    WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM)
                ),
                visitors <- Visitors::new(),
                load,
            }? Error),
            GFP_KERNEL,
        )?;
        let inner = Arc::pin_init(
            pin_init!(Inner {
                shared,
                associations <- new_spinlock_irq!(
                    Associations {
                        known: RBTree::new(),
                        count: 0,
                        waiting: Lines::new(),
                        all_used: None,
            none_quiet: None,
                        closed: false,
                    },
                    "kfi_soft::Tcp::associations"
                ),
                make <- new_work!("kfi_soft::Tcp::make"),
                sweep <- new_work!("kfi_soft::Tcp::sweep"),
                listeners <- Listeners::new(),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self(inner))
    }

    /// Listens at the address of a NIC, which others reach once connections are accepted. May sleep.
    pub(crate) fn listen(&self, nic: u32) -> Result {
        self.0.listeners.add(&self.0.shared, nic)
    }

    /// Accepts connections of others from here on: nothing that these say is read before. May sleep.
    pub(crate) fn accept(&self) {
        // Relaxed: the work items that are queued after this see it.
        self.0.shared.accepts.store(true, ordering::Relaxed);
        self.0.listeners.wake();
    }

    /// Lets a NIC, which has no endpoints, not be reached any more, and ends what is between it and others:
    /// what these have asked for is lost to them, as when this node begins anew. May sleep.
    pub(crate) fn leave(&self, nic: u32) {
        // First: then there are no new visitors.
        self.0.listeners.remove(nic);
        self.0.shared.visitors.remove(nic);
        self.0.remove(nic);
    }

    /// Shows the peers of this node, in a line each, and first what is in that. May sleep.
    pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "direction source target state session incarnation connections retries open queued \
             bytes kept number\n",
        )?;
        let mut next = (0, 0);
        loop {
            let association = {
                let associations = self.0.associations.lock();
                let Some(cursor) = associations.known.cursor_lower_bound(&next) else {
                    break;
                };
                cursor.current().1.clone()
            };
            association.show(f)?;
            let (source, target) = association.pair();
            next = (source, target.saturating_add(1));
        }
        self.0.shared.visitors.show(f)
    }

    /// Ends everything: all that is under way fails with `EHOSTUNREACH`. May sleep.
    ///
    /// Later requests fail.
    pub(crate) fn close(&self) {
        let inner = &self.0;
        inner.listeners.close();
        inner.shared.visitors.close();
        inner.make.cancel_sync();
        let (known, mut waiting) = {
            let mut associations = inner.associations.lock();
            associations.closed = true;
            (
                core::mem::replace(&mut associations.known, RBTree::new()),
                core::mem::replace(&mut associations.waiting, Lines::new()),
            )
        };
        // It is not queued any more.
        inner.sweep.cancel_sync();
        while let Some(key) = waiting.first().map(|(key, _)| key) {
            if let Some(line) = waiting.take_line(key) {
                refuse(line);
            }
        }
        for association in known.values() {
            Association::close(association);
        }
        inner.shared.queue.destroy();
    }
}

impl<O: Initiator + Send + Sync + 'static> Inner<O> {
    /// Returns which requests one belongs to.
    fn key(origin: &O) -> Key {
        let request = origin.request();
        let pair = (request.source.nic(), request.destination.nic());
        (pair, origin.owner().map(|owner| owner.number()))
    }
}

impl<O: Initiator + Send + Sync + 'static> Wire for Tcp<O> {
    type Origin = O;

    fn try_now(
        &self,
        _request: &Request,
        _remote: &RemoteMemory,
        _payload: Payload<'_>,
        _irqs: &mut IrqGuard,
    ) -> Option<Response> {
        None
    }

    fn carry(&self, packet: Packet<O>, budget: &mut Budget) {
        let inner = &self.0;
        let mut associations = inner.associations.lock();
        if associations.closed {
            drop(associations);
            packet.origin.refuse(EHOSTUNREACH, budget);
            return;
        }
        // With the lock: a thread that has ended it before has not found it, and does not look again.
        if !packet.origin.is_waiting() {
            drop(associations);
            // Without the lock, as it may be the last that keeps its domain.
            drop(packet);
            return;
        }
        if !associations.add(Fresh::new(packet)) {
            return;
        }
        drop(associations);
        inner.shared.queue.queue::<Inner<O>, 0>(inner.clone());
    }

    fn withdraw(&self, origin: &O) {
        let key = Inner::<O>::key(origin);
        let number = origin.number();
        let taken = {
            let mut associations = self.0.associations.lock();
            let same = |fresh: &Fresh<O>| fresh.origin.number() == number;
            let waiting = associations.waiting.take(key, &number, same);
            // With the lock, under which it stays: a thread with the last reference to one may have to sleep.
            waiting.or_else(|| {
                let association = associations.known.get(&key.0)?;
                Association::withdraw(association, origin)
            })
        };
        // Without the lock.
        drop(taken);
    }
}

impl<O: Initiator + Send + Sync + 'static> WorkItem for Inner<O> {
    fn work(&self) -> &Work<Self> {
        &self.make
    }

    fn run(this: Arc<Self>) {
        let _no_io = NoIo::new();
        // Once there was no memory: how many lines are yet to have a turn. Those that need none go on.
        let mut left = None;
        while left != Some(0) {
            let turn = this.associations.lock().turn();
            let put_off = match turn {
                Turn::Nobody => return,
                Turn::Added => None,
                Turn::Anew(taken) => {
                    close(taken);
                    None
                }
                Turn::Free(key, unreached) => {
                    let made = left.is_none() && this.make(key, unreached).is_ok();
                    (!made).then_some(key)
                }
                Turn::Full(key, _) if left.is_some() => Some(key),
                Turn::Full(key, unreached) => {
                    if !this.make_place(unreached) {
                        this.refuse_waiting(key);
                    }
                    None
                }
            };
            if let Some(key) = put_off {
                let lines = this.put_off(key, this.shared.now());
                left = Some(left.map_or(lines, |left: usize| left.saturating_sub(1)));
            }
            cond_resched();
        }
        // Nothing is lost: requests that wait have all that they need.
        this.shared.queue.queue_delayed::<Self, 0>(this.clone(), 10);
    }
}

impl<O: Initiator + Send + Sync + 'static> WorkItem<1> for Inner<O> {
    fn work(&self) -> &Work<Self, 1> {
        &self.sweep
    }

    fn run(this: Arc<Self>) {
        if this.sweep() {
            this.sweep_later();
        }
    }
}

/// The next thing to be done, for the line of requests that has waited for longest.
enum Turn<O: Initiator + Send + Sync + 'static> {
    /// There is none.
    Nobody,
    /// Nothing: requests were added to their association.
    Added,
    /// This association, if there is one, makes place for one that is to be made anew.
    Anew(Option<KnownNode<O>>),
    /// An association is to be made for it. There is room for one, which this counts until it has a connection.
    Free(Key, Option<Unreached>),
    /// As before, but there is no room for a user who has so many others that never had a connection.
    Full(Key, usize),
}

/// Returns whether there is room for an association, besides so many, for a user of whose others so many never
/// had a connection.
///
/// These are no more than there is room left. So a user that sends to addresses where nobody is takes half of
/// what there is, the next one half of the rest, and so on; one that reaches its peers takes what it needs.
fn has_room(known: usize, unreached: usize) -> bool {
    share::has_room(MAX_ASSOCIATIONS, known, unreached, FEW_UNREACHED)
}

impl<O: Initiator + Send + Sync + 'static> Associations<O> {
    /// Looks at some associations that nobody uses, from `next` on, which is behind all that were looked
    /// at then, up to one of which `found` says so. Breaks with that, or when there are no more.
    fn look(
        &mut self,
        next: &mut Pair,
        mut found: impl FnMut(Pair, Quiet) -> bool,
    ) -> ControlFlow<Option<Pair>> {
        let mut at = self.known.cursor_lower_bound_mut(next);
        for _ in 0..STEP {
            let Some(cursor) = at else {
                return ControlFlow::Break(None);
            };
            let (&pair, association) = cursor.current();
            *next = (pair.0, pair.1.saturating_add(1));
            if association.quiet().is_some_and(|quiet| found(pair, quiet)) {
                return ControlFlow::Break(Some(pair));
            }
            at = cursor.move_next();
        }
        ControlFlow::Continue(())
    }

    /// Takes an association out, if nobody uses it.
    fn take_quiet(&mut self, pair: Pair) -> Option<KnownNode<O>> {
        self.known.get(&pair)?.quiet()?;
        self.count = self.count.saturating_sub(1);
        self.known.remove_node(&pair)
    }

    /// Adds a request to its association, or to those that wait for one; returns whether it waits.
    fn add(&mut self, fresh: FreshEntry<O>) -> bool {
        let key = Inner::key(&fresh.origin);
        let (pair, user) = key;
        let mut fresh = Some(fresh);
        let known = self.known.get(&pair);
        if let Some(association) = known.filter(|_| !self.waiting.has(key)) {
            // If it has to be made anew, nothing is taken.
            Association::add(association, user, || fresh.take());
        }
        let Some(fresh) = fresh else {
            return false;
        };
        self.waiting.push(key, fresh);
        true
    }

    /// Looks at the line of requests that has waited for longest; returns what is to be done for it.
    fn turn(&mut self) -> Turn<O> {
        let Some((key, first)) = self.waiting.first() else {
            return Turn::Nobody;
        };
        let (pair, user) = key;
        if let Some(association) = self.known.get(&pair) {
            let mut left = STEP;
            let waiting = &mut self.waiting;
            let next = || {
                left = left.checked_sub(1)?;
                waiting.pop(key)
            };
            if !Association::add(association, user, next) {
                return Turn::Anew(self.take_quiet(pair));
            }
            // More of them have another turn, so that nobody waits for as long as one user posts. They do not
            // lack memory any more: if they do again, it is from then on that they wait for it.
            self.waiting.forget(key);
            self.waiting.send_back(key);
            return Turn::Added;
        }
        let owner = first.origin.owner();
        let unreached = owner.map_or(0, |owner| owner.unreached().sum());
        if has_room(self.count, unreached) {
            Turn::Free(key, owner.map(Owner::reach))
        } else {
            Turn::Full(key, unreached)
        }
    }
}

impl<O: Initiator + Send + Sync + 'static> Inner<O> {
    /// Refuses the requests of a user that wait for an association for which there is no place, and no others.
    fn refuse_waiting(&self, key: Key) {
        let line = self.associations.lock().waiting.take_line(key);
        // Without the lock.
        if let Some(line) = line {
            refuse(line);
        }
    }

    /// There is no memory for the association that a line of requests waits for: it is put behind the others,
    /// or, when that has been so for as long as a peer may be silent, its requests are refused. `now` is in
    /// milliseconds. Returns how many lines there are.
    fn put_off(&self, key: Key, now: u64) -> usize {
        let timeout = u64::from(self.shared.config.peer_timeout);
        let (late, lines) = {
            let mut associations = self.associations.lock();
            let waiting = &mut associations.waiting;
            let since = waiting.note(key, now).unwrap_or(now);
            let late = if now.saturating_sub(since) < timeout {
                waiting.send_back(key);
                None
            } else {
                waiting.take_line(key)
            };
            (late, waiting.len())
        };
        // Without the lock.
        if let Some(line) = late {
            refuse(line);
        }
        lines
    }

    /// Makes an association for a user, if there is memory at once, which takes on the requests of this one that
    /// wait for it; those of others have turns of their own. `unreached` counts it until it has a connection.
    fn make(self: &Arc<Self>, key: Key, unreached: Option<Unreached>) -> Result {
        let (pair, _) = key;
        let association = Association::new(self.shared.clone(), pair, unreached)?;
        let node = RBTreeNodeReservation::new(GFP_NOWAIT)?;
        let mut associations = self.associations.lock();
        // If none is left, or this ends, there is nobody who would use it.
        if let Some(line) = associations.waiting.take_line(key) {
            Association::take_on(&association, line);
            associations.count = associations.count.saturating_add(1);
            // There was none, and nobody else makes any.
            let _ = associations.known.insert(node.into_node(pair, association));
            self.sweep_later();
        }
        Ok(())
    }

    /// Lets those be forgotten that nobody uses, in a while.
    fn sweep_later(self: &Arc<Self>) {
        let delay = msecs_to_jiffies(self.shared.config.peer_timeout);
        self.shared
            .queue
            .queue_delayed::<Self, 1>(self.clone(), delay);
    }

    /// Forgets the associations that nobody uses and that have no connection, or that nobody has used for
    /// long; returns whether there are others.
    fn sweep(&self) -> bool {
        let long = self.shared.config.peer_timeout.saturating_mul(QUIET_TIMES);
        self.forget(|_, quiet| !quiet.connected || quiet.since.left(long).is_none());
        let associations = self.associations.lock();
        associations.count != 0 && !associations.closed
    }

    /// Forgets the associations that nobody uses of which `over` says so; returns whether there was one.
    fn forget(&self, mut over: impl FnMut(Pair, Quiet) -> bool) -> bool {
        let mut next = (0, 0);
        let mut any = false;
        loop {
            let (looked, forgotten) = {
                let mut associations = self.associations.lock();
                let looked = associations.look(&mut next, &mut over);
                let forgotten = match looked {
                    ControlFlow::Break(Some(pair)) => associations.take_quiet(pair),
                    _ => None,
                };
                (looked, forgotten)
            };
            any |= forgotten.is_some();
            // Without the lock.
            close(forgotten);
            if let ControlFlow::Break(None) = looked {
                return any;
            }
            cond_resched();
        }
    }

    /// Ends the associations of a NIC that has no endpoints.
    fn remove(&self, nic: u32) {
        loop {
            let removed = {
                let mut associations = self.associations.lock();
                let cursor = associations.known.cursor_lower_bound(&(nic, 0));
                let Some(pair) = cursor.map(|cursor| *cursor.current().0) else {
                    return;
                };
                if pair.0 != nic {
                    return;
                }
                associations.count = associations.count.saturating_sub(1);
                associations.known.remove_node(&pair)
            };
            // Without the lock.
            close(removed);
            cond_resched();
        }
    }

    /// Forgets associations that nobody uses, for a user of whose others so many never had a connection. If these
    /// are few: all that have no connection, or else the one that nobody has used for longest; else all that never
    /// had any. Returns whether there is room, or may be.
    fn make_place(&self, unreached: usize) -> bool {
        let few = unreached < FEW_UNREACHED;
        let now = self.shared.now();
        let soon = |then: u64| now.saturating_sub(then) < LOOK_MILLIS;
        {
            let associations = self.associations.lock();
            let known = if few {
                associations.none_quiet
            } else {
                associations.all_used
            };
            if known.is_some_and(soon) {
                // So those that are to be refused keep nobody waiting, however many they are. But another thread may
                // have forgotten some.
                return has_room(associations.count, unreached);
            }
        }
        let mut best: Option<(Pair, Quiet)> = None;
        let any = self.forget(|pair, quiet| {
            if best.is_none_or(|(_, other)| quiet.since.age() > other.since.age()) {
                best = Some((pair, quiet));
            }
            // All of these at once: to look at all others for each would take long.
            !quiet.connected && (few || !quiet.reached)
        });
        if any {
            return true;
        }
        let is_none = best.is_none();
        let Some((pair, _)) = best.filter(|_| few) else {
            let mut associations = self.associations.lock();
            if has_room(associations.count, unreached) {
                // Another thread has forgotten some.
                return true;
            }
            associations.all_used = Some(now);
            if is_none {
                associations.none_quiet = Some(now);
            }
            return false;
        };
        // If somebody has used it meanwhile, there is another one, or there is none.
        let taken = self.associations.lock().take_quiet(pair);
        close(taken);
        true
    }
}

/// Ends an association that was taken out of the others, if there is one. May sleep.
fn close<O: Initiator + Send + Sync + 'static>(taken: Option<KnownNode<O>>) {
    if let Some(taken) = taken {
        let (_, association) = taken.to_key_value();
        Association::close(&association);
    }
}

/// A request in a queue.
type FreshEntry<O> = Entry<Fresh<O>>;

/// Refuses requests that were not sent. The consequences are left to others: nobody waits behind what an end
/// sets going at another user.
fn refuse<O: Initiator>(mut line: Line<Fresh<O>>) {
    while let Some(fresh) = line.pop() {
        let (fresh, memory) = fresh.empty();
        fresh.origin.refuse_later(EHOSTUNREACH, memory);
        cond_resched();
    }
}

#[kunit_tests(kfi_soft_associations)]
mod tests {
    use super::*;
    use crate::{
        kfi::linux::queue::Vacant,
        owner::Owners,
        transfer::targets::Targets,
        wire::{
            ContextIndex,
            LentMemory,
            RequestKind, //
        }, //
    };

    /// The number of a NIC here, and of one elsewhere.
    const PAIR: Pair = (1, 9);

    /// Memory that nobody lends.
    enum NoMemory {}

    impl LentMemory for NoMemory {
        fn payload(&self) -> Payload<'_> {
            match *self {}
        }

        fn responds_shortly(&self) -> bool {
            match *self {}
        }

        fn respond(self, _response: Response, _budget: &mut Budget) {
            match self {}
        }
    }

    /// A request that a user has posted, and that is never sent.
    struct Posted {
        owner: Arc<Owner>,
        number: usize,
        request: Request,
        remote: RemoteMemory,
    }

    #[derive(Clone)]
    struct Poster(Arc<Posted>);

    impl Initiator for Poster {
        type Lent = NoMemory;

        fn request(&self) -> &Request {
            &self.0.request
        }

        fn remote(&self) -> &RemoteMemory {
            &self.0.remote
        }

        fn auth_key(&self) -> &[u8] {
            &[]
        }

        fn owner(&self) -> Option<&Arc<Owner>> {
            Some(&self.0.owner)
        }

        fn send_out(&self) -> Option<NoMemory> {
            None
        }

        fn is_waiting(&self) -> bool {
            true
        }

        fn number(&self) -> usize {
            self.0.number
        }

        fn lane(&self) -> u64 {
            0
        }

        fn refuse(&self, _error: Error, _budget: &mut Budget) {}

        fn refuse_later(self, _error: Error, _memory: Vacant) {}
    }

    /// Returns which requests of a user go to the NIC elsewhere.
    fn key_of(owner: &Owner) -> Key {
        (PAIR, Some(owner.number()))
    }

    /// A wire on which nothing runs.
    fn still() -> Result<Tcp<Poster>> {
        let tcp = Tcp::new(TcpConfig {
            fabric: FabricId {
                prefix: 127 << 24,
                port: 1,
            },
            peer_timeout: 10_000,
            local: false,
            arrivals: Targets::new(1)?,
            keys: AuthKeys::new()?,
            secret: None,
        })?;
        tcp.0.shared.queue.destroy();
        Ok(tcp)
    }

    /// Lets an association be known that was made for a user, and that nobody uses.
    fn add_idle(tcp: &Tcp<Poster>, owner: &Arc<Owner>) -> Result<Arc<Association<Poster>>> {
        let shared = tcp.0.shared.clone();
        let association = Association::new(shared, PAIR, Some(Owner::reach(owner)))?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let mut associations = tcp.0.associations.lock();
        associations.count = 1;
        // There was none.
        let _ = associations
            .known
            .insert(node.into_node(PAIR, association.clone()));
        Ok(association)
    }

    /// Returns a message of a user to the NIC elsewhere.
    fn posted(owner: &Arc<Owner>, number: usize) -> Result<FreshEntry<Poster>> {
        let (source, target) = PAIR;
        let address = |nic| Address::new(nic, 1).ok_or(EINVAL);
        let request = Request {
            source: address(source)?,
            destination: address(target)?,
            context: ContextIndex::Named(0),
            auth_key: AuthKeys::new()?.find(b""),
            kind: RequestKind::Message,
            data: None,
            len: 0,
        };
        let posted = Posted {
            owner: owner.clone(),
            number,
            request,
            remote: RemoteMemory::collect(0, core::iter::empty(), GFP_KERNEL)?,
        };
        Ok(Fresh::new(Packet {
            origin: Poster(Arc::new(posted, GFP_KERNEL)?),
            memory: Vacant::new(GFP_KERNEL)?,
        }))
    }

    #[test]
    fn a_user_without_room_stands_before_nobody() -> Result {
        let owners = Owners::new()?;
        let (one, other) = (Owners::get(&owners, 7)?, Owners::get(&owners, 8)?);
        let mut associations = Associations {
            known: RBTree::new(),
            count: MAX_ASSOCIATIONS - FEW_UNREACHED,
            waiting: Lines::new(),
            all_used: None,
            none_quiet: None,
            closed: false,
        };
        let many = one.unreached().count(FEW_UNREACHED);
        for (number, owner) in [&one, &one, &other, &one].into_iter().enumerate() {
            assert!(associations.add(posted(owner, number)?));
        }
        let (first, second) = (key_of(&one), key_of(&other));
        let is_full =
            |turn: &Turn<_>| matches!(turn, Turn::Full(key, FEW_UNREACHED) if *key == first);
        assert!(is_full(&associations.turn()));
        // Its turn is the same one when its first request is cancelled.
        assert!(associations.waiting.take(first, &0, |_| true).is_some());
        assert!(is_full(&associations.turn()));
        // It is refused what it has, and nobody else is.
        let refused = associations.waiting.take_line(first).ok_or(EINVAL)?;
        assert_eq!(refused.len(), 2);
        let turn = associations.turn();
        assert!(matches!(&turn, Turn::Free(key, Some(_)) if *key == second));
        assert_eq!(other.unreached().sum(), 1);
        assert_eq!(one.unreached().sum(), FEW_UNREACHED);
        drop((turn, many));
        assert_eq!(other.unreached().sum(), 0);
        let taken_on = associations.waiting.take_line(second).ok_or(EINVAL)?;
        assert_eq!(taken_on.len(), 1);
        assert!(matches!(associations.turn(), Turn::Nobody));
        Ok(())
    }

    #[test]
    fn a_line_without_memory_stands_before_nobody() -> Result {
        let tcp = still()?;
        let owners = Owners::new()?;
        let (one, other) = (Owners::get(&owners, 7)?, Owners::get(&owners, 8)?);
        let (first, second) = (key_of(&one), key_of(&other));
        for (number, owner) in [&one, &other, &one].into_iter().enumerate() {
            let fresh = posted(owner, number)?;
            assert!(tcp.0.associations.lock().add(fresh));
        }
        let next = || {
            let associations = tcp.0.associations.lock();
            associations.waiting.first().map(|(key, _)| key)
        };
        assert_eq!(tcp.0.put_off(first, 100), 2);
        assert_eq!(next(), Some(second));
        assert_eq!(tcp.0.put_off(second, 200), 2);
        assert_eq!(next(), Some(first));
        // All of it is refused in the end, and nobody else is.
        assert_eq!(tcp.0.put_off(first, 10_099), 2);
        assert_eq!(tcp.0.put_off(first, 10_100), 1);
        assert_eq!(next(), Some(second));
        assert_eq!(tcp.0.put_off(second, 10_199), 1);
        assert_eq!(tcp.0.put_off(second, 10_200), 0);
        assert_eq!(next(), None);
        Ok(())
    }

    #[test]
    fn an_idle_association_of_another_user_is_made_anew() -> Result {
        let tcp = still()?;
        let owners = Owners::new()?;
        let (one, other) = (Owners::get(&owners, 7)?, Owners::get(&owners, 8)?);
        let association = add_idle(&tcp, &one)?;
        let (first, second) = (posted(&other, 0)?, posted(&other, 1)?);
        let add = |fresh| tcp.0.associations.lock().add(fresh);
        let turn = || tcp.0.associations.lock().turn();
        assert!(add(first));
        let goes = turn();
        assert!(matches!(&goes, Turn::Anew(Some(_))));
        drop((goes, association));
        assert_eq!(one.unreached().sum(), 0);
        let place = turn();
        assert!(matches!(&place, Turn::Free(key, Some(_)) if *key == key_of(&other)));
        assert_eq!(other.unreached().sum(), 1);
        drop(place);
        // An association of the same user is as good as a new one.
        let line = tcp.0.associations.lock().waiting.take_line(key_of(&other));
        drop(line);
        let association = add_idle(&tcp, &other)?;
        assert!(!add(second));
        // And one that is used is everybody's.
        let third = posted(&one, 2)?;
        let origin = third.origin.clone();
        assert!(!add(third));
        assert!(Association::withdraw(&association, &origin).is_some());
        assert_eq!((one.unreached().sum(), other.unreached().sum()), (0, 1));
        Ok(())
    }

    #[test]
    fn what_has_waited_is_added_in_steps() -> Result {
        const MANY: usize = STEP + 2;
        let tcp = still()?;
        let owners = Owners::new()?;
        let (one, other) = (Owners::get(&owners, 7)?, Owners::get(&owners, 8)?);
        let add = |fresh| tcp.0.associations.lock().add(fresh);
        let turn = || tcp.0.associations.lock().turn();
        let mut origins = KVec::new();
        let mut made = None;
        for number in 0..=MANY {
            if number == MANY {
                // One is made for another user meanwhile, and requests that come now go behind those that wait.
                made = Some(add_idle(&tcp, &one)?);
                assert!(!add(posted(&one, MANY + 1)?));
            }
            let fresh = posted(&other, number)?;
            origins.push(fresh.origin.clone(), GFP_KERNEL)?;
            assert!(add(fresh));
        }
        for left in [true, false] {
            assert!(matches!(turn(), Turn::Added));
            let has = tcp.0.associations.lock().waiting.has(key_of(&other));
            assert_eq!(has, left);
        }
        assert!(matches!(turn(), Turn::Nobody));
        // All are with the association now.
        let association = made.ok_or(EINVAL)?;
        for origin in &origins {
            assert!(Association::withdraw(&association, origin).is_some());
        }
        Ok(())
    }

    /// Returns how many associations a user gets who reaches nobody, besides so many of others.
    fn most(others: usize) -> usize {
        (0..=MAX_ASSOCIATIONS)
            .find(|own| !has_room(others.saturating_add(*own), *own))
            .unwrap_or(usize::MAX)
    }

    #[test]
    fn addresses_without_anybody_leave_room() {
        let half = MAX_ASSOCIATIONS / 2;
        assert_eq!(most(0), half);
        assert_eq!(most(half), half / 2);
        // There is some for those that have few.
        assert!(has_room(MAX_ASSOCIATIONS - 1, FEW_UNREACHED - 1));
        assert!(!has_room(MAX_ASSOCIATIONS - 1, FEW_UNREACHED));
        assert!(!has_room(MAX_ASSOCIATIONS, 0));
    }

    #[test]
    fn those_that_are_reached_take_all() {
        for known in 0..MAX_ASSOCIATIONS {
            assert!(has_room(known, 0));
        }
    }
}
