// SPDX-License-Identifier: GPL-2.0

//! Where NICs listen, and connections that are not past their `HELLO`.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
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
    stream::Part,
    target::{
        Visitor,
        Visitors, //
    },
    Pair,
    Shared, //
};
use crate::kfi::linux::{
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

/// For so many milliseconds a connection may be without `HELLO`.
const HELLO_MILLIS: u32 = 5000;

/// The most connections that are.
const MAX_NEWCOMERS: usize = 64;
/// The most of one address.
const MAX_OF_ONE: usize = 4;

/// After so many milliseconds it is tried again to accept one, if that has failed.
const RETRY_MILLIS: u32 = 20;

/// Connections that wait to be accepted.
const BACKLOG: u16 = 64;

/// A connection without `HELLO`.
#[pin_data]
struct Newcomer {
    listener: Arc<Listener>,
    /// The NICs, from the addresses that it has come from and to.
    pair: Pair,
    #[pin]
    connection: Mutex<Option<Connection>>,
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
                connection <- new_mutex!(Some(connection), "kfi_soft::Newcomer::connection"),
                work <- new_work!("kfi_soft::Newcomer::work"),
                timer <- new_work!("kfi_soft::Newcomer::timer"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has its work item run when there is something to be done.
    fn start(this: &Arc<Self>) -> Result {
        let queue = &this.listener.shared.queue;
        if let Some(connection) = &*this.connection.lock() {
            connection.set_events(this.clone())?;
        }
        queue.queue_delayed::<Self, 1>(this.clone(), msecs_to_jiffies(HELLO_MILLIS));
        Self::wake(this);
        Ok(())
    }

    fn wake(this: &Arc<Self>) {
        this.listener.shared.queue.queue::<Self, 0>(this.clone());
    }

    /// Looks for a `HELLO`; returns it with its `ack`. `None` if it has not come yet; an error if something
    /// else has.
    fn hello(connection: &mut Connection) -> Result<Option<(Hello, u64)>> {
        if !connection.receive().map_err(|_| ECONNRESET)? {
            return Ok(None);
        }
        match connection.input.next() {
            Ok(None) => Ok(None),
            Ok(Some(Part::Head(common, Frame::Hello(hello)))) => Ok(Some((hello, common.ack))),
            _ => Err(EPROTO),
        }
    }

    /// Returns the code of the `BYE` that is the answer to what does not belong here.
    fn check(&self, hello: &Hello) -> Result<(), u32> {
        if hello.major != frame::MAJOR {
            return Err(bye::VERSION);
        }
        if (hello.source, hello.target) != self.pair {
            return Err(bye::STRANGER);
        }
        if (hello.lane, hello.lanes) != (0, 1) {
            return Err(bye::MANY);
        }
        Ok(())
    }

    /// Hands the connection on.
    fn enter(&self, connection: Connection, hello: &Hello, ack: u64) {
        let shared = &self.listener.shared;
        if let Err(code) = self.check(hello) {
            connection.bye(code);
            return;
        }
        match Visitors::find(shared, self.pair) {
            Ok(visitor) => Visitor::attach(&visitor, connection, hello, ack),
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
        if let Some(connection) = connection {
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
        let Some(connection) = &mut *place else {
            return;
        };
        let heard = match Self::hello(connection) {
            Ok(None) => return,
            Ok(heard) => heard,
            // Nothing is told to those who say nothing that is known.
            Err(_) => None,
        };
        let connection = place.take();
        drop(place);
        match (connection, heard) {
            (Some(connection), Some((hello, ack))) => this.enter(connection, &hello, ack),
            (Some(connection), None) => connection.close(),
            (None, _) => {}
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
        if let Some(connection) = late {
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
        let socket = TcpListener::new(shared.address(nic, shared.config.port), BACKLOG)?;
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
            newcomers.push(newcomer.clone(), GFP_KERNEL)?;
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
            // Whoever is not taken finds the connection closed.
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

    /// Ends all. May sleep.
    pub(super) fn close(&self) {
        let list = core::mem::replace(&mut *self.list.lock(), KVec::new());
        for listener in &list {
            Listener::close(listener);
        }
    }
}
