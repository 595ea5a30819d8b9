// SPDX-License-Identifier: GPL-2.0

//! Where NICs listen, and connections that are not past their `HELLO`, or the `PROOF` that follows it.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        new_mutex,
        Arc,
        ArcBorrow,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

use super::{
    bye,
    connection::Connection,
    frame::{
        self,
        Frame,
        Hello, //
    },
    secret::{
        Complaint,
        Secret, //
    },
    stream::Part,
    target::{
        self,
        Greeting,
        Visitor,
        Visitors, //
    },
    Pair,
    Shared, //
};
use crate::kfi::linux::{
    hmac::{
        self,
        Mac, //
    },
    no_io::NoIo,
    socket::{
        SocketEvents,
        TcpListener,
        TcpSocket, //
    },
    work_queue::{
        new_work,
        Work,
        WorkItem, //
    }, //
};

/// For so many milliseconds a connection may be without `HELLO`, and its `PROOF` if that is wanted.
const HELLO_MILLIS: u32 = 5000;

/// The most connections that are.
const MAX_NEWCOMERS: usize = 64;
/// The most of one address.
const MAX_OF_ONE: usize = 4;

/// After so many milliseconds it is tried again to accept one, if that has failed.
const RETRY_MILLIS: u32 = 20;

/// Connections that wait to be accepted.
const BACKLOG: u16 = 64;

/// How far a connection has come.
#[derive(Clone, Copy)]
enum Stage {
    /// Nothing was said.
    Silent,
    /// A `HELLO` was answered with a `WELCOME`.
    Welcomed {
        /// The frame.
        hello: Hello,
        /// The `ack` of it.
        ack: u64,
        /// The birth of the session, as it was told.
        birth: u64,
        /// The code of the `PROOF` that is to come.
        proof: Mac,
    },
}

/// A frame that is said before all others.
enum Heard {
    Hello(Hello, u64),
    Proof(Mac),
}

/// Why a connection is not handed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The `HELLO` does not belong here: the answer is a `BYE` with this code.
    Bye(u32),
    /// Something else was said than what was to come. There is no answer.
    Wrong,
    /// Nothing more was said.
    Gone,
}

/// A connection without `HELLO` or `PROOF`.
#[pin_data]
struct Newcomer {
    listener: Arc<Listener>,
    /// The NICs, from the addresses that it has come from and to.
    pair: Pair,
    #[pin]
    connection: Mutex<Option<(Connection, Stage)>>,
    #[pin]
    work: Work<Newcomer>,
    /// Runs when it is late.
    #[pin]
    timer: Work<Newcomer, 1>,
}

impl Newcomer {
    /// Takes a connection.
    fn new(listener: &Arc<Listener>, socket: TcpSocket) -> Result<Arc<Self>> {
        let shared = &listener.shared;
        let source = shared.nic(&socket.peer_address()?).ok_or(EADDRNOTAVAIL)?;
        if !shared.config.local && socket.has_local_peer()? {
            // NICs of this machine reach each other without a network, and programs may not.
            return Err(EACCES);
        }
        let connection = Connection::new(socket, shared.config.peer_timeout)?;
        Arc::pin_init(
            pin_init!(Self {
                listener: listener.clone(),
                pair: (source, listener.nic),
                connection <- new_mutex!(
                    Some((connection, Stage::Silent)),
                    "kfi_soft::Newcomer::connection"
                ),
                work <- new_work!("kfi_soft::Newcomer::work"),
                timer <- new_work!("kfi_soft::Newcomer::timer"),
            }),
            GFP_NOWAIT,
        )
    }

    /// Has its work item run when there is something to be done.
    fn start(this: &Arc<Self>) -> Result {
        {
            let mut place = this.connection.lock();
            let Some((connection, _)) = &mut *place else {
                return Ok(());
            };
            connection.set_events(this.clone())?;
            // With the lock, without which nobody ends it: a thread that does finds the timer set, and cancels
            // it. Set later, it might be that of a newcomer which is in no list any more, and the end of
            // the queue would wait for it.
            let queue = &this.listener.shared.queue;
            queue.queue_delayed::<Self, 1>(this.clone(), msecs_to_jiffies(HELLO_MILLIS));
        }
        Self::wake(this);
        Ok(())
    }

    fn wake(this: &Arc<Self>) {
        this.listener.shared.queue.queue::<Self, 0>(this.clone());
    }

    /// Looks for the next frame. `None` if it has not come yet.
    fn hear(connection: &mut Connection) -> Result<Option<Heard>, Refusal> {
        loop {
            match connection.input.next() {
                Ok(None) => {}
                Ok(Some(Part::Head(common, Frame::Hello(hello)))) => {
                    return Ok(Some(Heard::Hello(hello, common.ack)));
                }
                Ok(Some(Part::Head(_, Frame::Proof(mac)))) => return Ok(Some(Heard::Proof(mac))),
                _ => return Err(Refusal::Wrong),
            }
            // No more than what a header may have: then it is there, or is none.
            if !connection.receive().map_err(|_| Refusal::Gone)? {
                return Ok(None);
            }
        }
    }

    /// Goes on with what was said; returns what is to be handed on, and nothing if more is to come.
    fn go_on(
        &self,
        connection: &mut Connection,
        stage: &mut Stage,
    ) -> Result<Option<Greeting>, Refusal> {
        loop {
            let heard = Self::hear(connection)?;
            match (*stage, heard) {
                (_, None) => return Ok(None),
                (Stage::Silent, Some(Heard::Hello(hello, ack))) => {
                    self.check(&hello)?;
                    let Some(secret) = &self.listener.shared.config.secret else {
                        return Ok(Some(Greeting {
                            hello,
                            ack,
                            promised: None,
                        }));
                    };
                    *stage = self.welcome(connection, secret, hello, ack)?;
                }
                (
                    Stage::Welcomed {
                        hello,
                        ack,
                        birth,
                        proof,
                    },
                    Some(Heard::Proof(mac)),
                ) => {
                    if !hmac::is_same(&mac, &proof) {
                        return Err(Refusal::Wrong);
                    }
                    return Ok(Some(Greeting {
                        hello,
                        ack,
                        promised: Some(birth),
                    }));
                }
                _ => return Err(Refusal::Wrong),
            }
        }
    }

    /// Answers a `HELLO` where a secret is shared, which is all that a stranger gets. Nothing changes
    /// before there is proof that it is none.
    fn welcome(
        &self,
        connection: &mut Connection,
        secret: &Secret,
        hello: Hello,
        ack: u64,
    ) -> Result<Stage, Refusal> {
        let shared = &self.listener.shared;
        let birth = Visitors::birth(shared, self.pair, &hello);
        let welcome = target::welcome(shared, &hello, birth);
        let (mac, proof) = secret.prove(connection.input.header(), welcome, 0);
        connection.put(&Frame::Welcome(welcome, mac), 0, 0);
        let sent = connection.flush(false).map_err(|_| Refusal::Gone)?;
        if !hello.proof {
            self.complain(Complaint::Initiator);
            return Err(Refusal::Wrong);
        }
        if !sent {
            // There is always room for it.
            return Err(Refusal::Gone);
        }
        Ok(Stage::Welcomed {
            hello,
            ack,
            birth,
            proof,
        })
    }

    /// There is no proof, or none that is right: tells the log. But an initiator that has learned that it
    /// means a session which is over says nothing more, whatever secret it has.
    fn accuse(&self, stage: &Stage, refusal: Refusal) {
        if let Stage::Welcomed { hello, birth, .. } = stage {
            let is_over = hello.birth != 0 && hello.birth != *birth;
            if !is_over || refusal != Refusal::Gone {
                self.complain(Complaint::Initiator);
            }
        }
    }

    /// Tells the log of the initiator.
    fn complain(&self, complaint: Complaint) {
        let (source, _) = self.pair;
        self.listener.shared.complain(complaint, source);
    }

    /// Refuses a `HELLO` that does not belong here.
    fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        if hello.major != frame::MAJOR {
            return Err(Refusal::Bye(bye::VERSION));
        }
        if (hello.source, hello.target) != self.pair {
            return Err(Refusal::Bye(bye::STRANGER));
        }
        if (hello.lane, hello.lanes) != (0, 1) {
            return Err(Refusal::Bye(bye::MANY));
        }
        if hello.proof && self.listener.shared.config.secret.is_none() {
            self.complain(Complaint::InitiatorWants);
            return Err(Refusal::Bye(bye::SECRET));
        }
        Ok(())
    }

    /// Hands the connection on.
    fn enter(&self, connection: Connection, greeting: &Greeting) {
        let shared = &self.listener.shared;
        match Visitors::find(shared, self.pair) {
            Ok(visitor) => Visitor::attach(&visitor, connection, greeting),
            Err(_) => connection.bye(bye::MANY),
        }
    }

    /// It is none any more.
    fn end(this: &Arc<Self>) {
        this.timer.cancel();
        this.listener.forget(this);
    }

    /// Ends it. May sleep.
    fn close(this: &Arc<Self>) {
        let connection = this.connection.lock().take();
        if let Some((connection, _)) = connection {
            connection.close();
        }
        this.timer.cancel_sync();
        this.work.cancel_sync();
    }
}

impl SocketEvents for Newcomer {
    fn readable(this: ArcBorrow<'_, Self>) {
        Self::wake(&this.into());
    }

    fn writable(_this: ArcBorrow<'_, Self>) {}

    fn changed(this: ArcBorrow<'_, Self>) {
        Self::wake(&this.into());
    }
}

impl WorkItem for Newcomer {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let _no_io = NoIo::new();
        let mut place = this.connection.lock();
        let Some((connection, stage)) = &mut *place else {
            return;
        };
        let said = match this.go_on(connection, stage) {
            Ok(None) => return,
            Ok(Some(greeting)) => Ok(greeting),
            Err(refusal) => {
                this.accuse(stage, refusal);
                Err(refusal)
            }
        };
        let connection = place.take();
        drop(place);
        if let Some((connection, _)) = connection {
            match said {
                Ok(greeting) => this.enter(connection, &greeting),
                Err(Refusal::Bye(code)) => connection.bye(code),
                Err(Refusal::Wrong | Refusal::Gone) => connection.close(),
            }
        }
        Self::end(&this);
    }
}

impl WorkItem<1> for Newcomer {
    fn work(&self) -> &Work<Self, 1> {
        &self.timer
    }

    fn run(this: Arc<Self>) {
        let late = this.connection.lock().take();
        if let Some((connection, stage)) = late {
            this.accuse(&stage, Refusal::Gone);
            connection.close();
            this.listener.forget(&this);
        }
    }
}

/// Where a NIC listens.
#[pin_data]
struct Listener {
    shared: Arc<Shared>,
    nic: u32,
    #[pin]
    socket: Mutex<Option<TcpListener>>,
    #[pin]
    newcomers: Mutex<KVec<Arc<Newcomer>>>,
    #[pin]
    work: Work<Listener>,
}

impl Listener {
    /// Listens at the address of a NIC.
    fn new(shared: &Arc<Shared>, nic: u32) -> Result<Arc<Self>> {
        let socket = TcpListener::new(shared.address(nic, shared.config.fabric.port), BACKLOG)?;
        let this = Arc::pin_init(
            pin_init!(Self {
                shared: shared.clone(),
                nic,
                socket <- new_mutex!(Some(socket), "kfi_soft::Listener::socket"),
                newcomers <- new_mutex!(KVec::new(), "kfi_soft::Listener::newcomers"),
                work <- new_work!("kfi_soft::Listener::work"),
            }),
            GFP_KERNEL,
        )?;
        if let Some(socket) = &*this.socket.lock() {
            socket.set_events(this.clone())?;
        }
        Self::wake(&this);
        Ok(this)
    }

    fn wake(this: &Arc<Self>) {
        this.shared.queue.queue::<Self, 0>(this.clone());
    }

    /// Takes a connection, if there are not too many.
    fn take(this: &Arc<Self>, socket: TcpSocket) -> Result {
        let newcomer = Newcomer::new(this, socket)?;
        {
            let mut newcomers = this.newcomers.lock();
            let of_same = |other: &&Arc<Newcomer>| other.pair == newcomer.pair;
            let of_one = newcomers.iter().filter(of_same).count();
            if newcomers.len() >= MAX_NEWCOMERS || of_one >= MAX_OF_ONE {
                return Err(EBUSY);
            }
            newcomers.push(newcomer.clone(), GFP_NOWAIT)?;
        }
        Newcomer::start(&newcomer).inspect_err(|_| this.forget(&newcomer))
    }

    /// Forgets a newcomer.
    fn forget(&self, newcomer: &Arc<Newcomer>) {
        let mut newcomers = self.newcomers.lock();
        newcomers.retain(|other| !Arc::ptr_eq(other, newcomer));
    }

    /// Ends it. May sleep.
    fn close(this: &Arc<Self>) {
        let socket = this.socket.lock().take();
        if let Some(socket) = socket {
            socket.clear_events();
        }
        this.work.cancel_sync();
        let newcomers = core::mem::replace(&mut *this.newcomers.lock(), KVec::new());
        for newcomer in &newcomers {
            Newcomer::close(newcomer);
        }
    }
}

impl SocketEvents for Listener {
    fn readable(this: ArcBorrow<'_, Self>) {
        Self::wake(&this.into());
    }

    fn writable(_this: ArcBorrow<'_, Self>) {}

    fn changed(_this: ArcBorrow<'_, Self>) {}
}

impl WorkItem for Listener {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        // Relaxed: it is queued again after that has changed.
        if !this.shared.accepts.load(ordering::Relaxed) {
            return;
        }
        let _no_io = NoIo::new();
        for _ in 0..BACKLOG {
            let accepted = match &*this.socket.lock() {
                Some(socket) => socket.accept(),
                None => return,
            };
            let socket = match accepted {
                Ok(socket) => socket,
                Err(EAGAIN) => return,
                Err(_) => {
                    // There is no memory, or that one has gone already.
                    let soon = msecs_to_jiffies(RETRY_MILLIS);
                    this.shared
                        .queue
                        .queue_delayed::<Self, 0>(this.clone(), soon);
                    return;
                }
            };
            // A peer that is not taken finds the connection closed.
            let _ = Self::take(&this, socket);
        }
        Self::wake(&this);
    }
}

/// All of the node.
#[pin_data]
pub(super) struct Listeners {
    #[pin]
    list: Mutex<KVec<Arc<Listener>>>,
}

impl Listeners {
    /// None.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(KVec::new(), "kfi_soft::TcpListeners::list"),
        })
    }

    /// Listens at the address of a NIC.
    pub(super) fn add(&self, shared: &Arc<Shared>, nic: u32) -> Result {
        let mut list = self.list.lock();
        list.reserve(1, GFP_KERNEL)?;
        list.push(Listener::new(shared, nic)?, GFP_KERNEL)?;
        Ok(())
    }

    /// Has all of them accept connections, which is allowed from now on. May sleep.
    pub(super) fn wake(&self) {
        for listener in &*self.list.lock() {
            Listener::wake(listener);
        }
    }

    /// Does not listen any more at the address of a NIC. May sleep.
    ///
    /// When this returns, peers that have connected there have become visitors, or never will.
    pub(super) fn remove(&self, nic: u32) {
        let removed = {
            let mut list = self.list.lock();
            let at = list.iter().position(|listener| listener.nic == nic);
            at.and_then(|at| list.remove(at).ok())
        };
        // Without the lock.
        if let Some(listener) = removed {
            Listener::close(&listener);
        }
    }

    /// Ends all. May sleep.
    pub(super) fn close(&self) {
        let list = core::mem::replace(&mut *self.list.lock(), KVec::new());
        for listener in &list {
            Listener::close(listener);
        }
    }
}
