// SPDX-License-Identifier: GPL-2.0

//! TCP sockets of the kernel: over IPv4, in the initial network namespace.
//!
//! Nothing here waits for the other side. A call that cannot be done at once returns `EAGAIN` or
//! `EINPROGRESS`, and an object of the user is told when it is worth another try:
//!
//! ```ignore
//! struct Connection {
//!     socket: TcpSocket,
//!     #[pin]
//!     work: Work<Connection>,
//! }
//!
//! impl SocketEvents for Connection {
//!     fn readable(this: ArcBorrow<'_, Self>) {
//!         queue.queue::<Self, 0>(this.into());
//!     }
//!     // ...
//! }
//!
//! connection.socket.set_events(connection.clone())?;
//! // Nobody is told of data that was there before.
//! queue.queue(connection.clone());
//! // At the end: the socket holds the connection, which holds the socket.
//! connection.socket.clear_events();
//! ```
//!
//! All functions are for process context and may sleep: for the lock of the socket, which softirqs and
//! other threads hold for a short time, and for memory. They may be called by several threads at once.
//!
//! # Memory
//!
//! A socket allocates with `GFP_NOIO` what it needs to send, so it may be used by work that the reclaim
//! of memory waits for. To make a socket, to accept one, or to set the events of a listener allocates with
//! `GFP_KERNEL`; to set those of another socket does not wait for memory.
//!
//! # Calls of the events
//!
//! The functions of [`SocketEvents`] are called in softirqs, or by a thread that is within one of the
//! functions of the same socket, which then has its lock: so they must not sleep, must not call the
//! socket, nor take a lock under which it is called.
//!
//! None of them runs once [`TcpSocket::clear_events`] has returned, nor after the socket was dropped:
//!
//! - The kernel calls a socket through pointers, which it reads without a lock: it may call ours at any
//!   time after they were put there, also after they were taken away, and sockets that nobody has
//!   accepted yet have those of the listener. So they themselves touch nothing but the `sock`, which
//!   their caller keeps. They take `sk_callback_lock` for reading, look for the object of the user, and
//!   keep the lock while they call it.
//! - To take the object away the lock is taken for writing. So the calls that have found it are over by
//!   then, and the others find that there is none. Sockets that are accepted from a listener never
//!   have its object, as it is marked not to be copied.
//! - The code of the pointers is that of this module, which stays until the last socket has been
//!   dropped, and then until softirqs and threads that were in its code are out of it: see
//!   [`live`](super::live). With its listener the sockets go that nobody has accepted. They are
//!   orphans then, which are not called.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h),
//! [`include/linux/tcp.h`](srctree/include/linux/tcp.h).

use core::{
    marker::PhantomData,
    mem::size_of,
    net::{
        Ipv4Addr,
        SocketAddrV4, //
    },
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    alloc::Flags,
    error::to_result,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    task::might_sleep,
    time::Jiffies, //
};

use super::bindings;
use super::live::Findable;

/// The most bytes that are sent or received by one call: the kernel tells how many they were in an
/// `int`.
const MAX_LEN: usize = 1 << 30;

/// The calls by which a socket tells the object of its user that something has happened.
///
/// Each may also be made when there is nothing to be seen. For the context see the
/// [module](self#calls-of-the-events): they must not sleep, nor call the socket.
pub trait SocketEvents: Send + Sync + 'static {
    /// There is something to receive, or its end; of a listener, something to accept.
    fn readable(this: ArcBorrow<'_, Self>);

    /// There is room to send, after it had been told that there is none.
    fn writable(this: ArcBorrow<'_, Self>);

    /// It has been connected, or will not be; the other side sends no more; it is broken.
    fn changed(this: ArcBorrow<'_, Self>);
}

/// [`SocketEvents`] of an object of any type.
trait DynSocketEvents: Send + Sync {
    /// Calls the function of that name without `tell`.
    fn tell_readable(&self);
    /// Likewise.
    fn tell_writable(&self);
    /// Likewise.
    fn tell_changed(&self);
}

impl<E: SocketEvents> DynSocketEvents for Arc<E> {
    fn tell_readable(&self) {
        E::readable(self.as_arc_borrow());
    }

    fn tell_writable(&self) {
        E::writable(self.as_arc_borrow());
    }

    fn tell_changed(&self) {
        E::changed(self.as_arc_borrow());
    }
}

/// The part of a socket that its callbacks find.
struct Hook {
    events: KBox<dyn DynSocketEvents>,
    /// The callbacks that the socket has without it.
    callbacks: bindings::sock_callbacks,
}

/// A callback that runs.
///
/// # Invariants
///
/// `sk` is a socket, whose lock for callbacks is held for reading; `hook` is null, or valid so long.
struct Callback {
    sk: *mut bindings::sock,
    hook: *const Hook,
}

impl Callback {
    /// The callbacks of sockets that have a [`Hook`].
    const ALL: bindings::sock_callbacks = bindings::sock_callbacks {
        data_ready: Some(data_ready_callback),
        write_space: Some(write_space_callback),
        state_change: Some(state_change_callback),
    };

    /// Begins one.
    ///
    /// # Safety
    ///
    /// `sk` must be a socket that has, or had, the callbacks [`Self::ALL`], valid until the value is
    /// dropped.
    unsafe fn begin(sk: *mut bindings::sock) -> Self {
        // INVARIANT: The lock is taken here. The hook is null or was put there by
        // `Socket::exchange`, which takes the lock for writing before it gives it back.
        // SAFETY: By the safety requirements.
        let hook = unsafe { bindings::sock_lock_callbacks(sk) };
        Self {
            sk,
            hook: hook.cast(),
        }
    }

    /// Returns the hook, unless there is none any more, or the socket has not been accepted yet.
    fn hook(&self) -> Option<&Hook> {
        // SAFETY: By the type invariants.
        unsafe { self.hook.as_ref() }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::sock_unlock_callbacks(self.sk) };
    }
}

/// There is data.
///
/// # Safety
///
/// Must be called by the kernel, as a callback of `sk`.
unsafe extern "C" fn data_ready_callback(sk: *mut bindings::sock) {
    // SAFETY: By the safety requirements.
    let callback = unsafe { Callback::begin(sk) };
    // The one of before would wake threads that wait, and nobody does.
    if let Some(hook) = callback.hook() {
        hook.events.tell_readable();
    }
}

/// Something of what was sent has been acknowledged.
///
/// # Safety
///
/// Must be called by the kernel, as a callback of `sk`.
unsafe extern "C" fn write_space_callback(sk: *mut bindings::sock) {
    // SAFETY: By the safety requirements.
    let callback = unsafe { Callback::begin(sk) };
    let Some(hook) = callback.hook() else { return };
    // It takes away the mark that there is no room.
    if let Some(before) = hook.callbacks.write_space {
        // SAFETY: It is the callback of this socket, called as this one was. It is that of all
        // sockets of TCP (`sk_stream_write_space()`), which takes no lock but the wait queue's.
        unsafe { before(sk) };
    }
    // SAFETY: By the safety requirements.
    if unsafe { bindings::sk_stream_is_writeable(sk) } {
        hook.events.tell_writable();
    }
}

/// The state has changed.
///
/// # Safety
///
/// Must be called by the kernel, as a callback of `sk`.
unsafe extern "C" fn state_change_callback(sk: *mut bindings::sock) {
    // SAFETY: By the safety requirements.
    let callback = unsafe { Callback::begin(sk) };
    let Some(hook) = callback.hook() else { return };
    if let Some(before) = hook.callbacks.state_change {
        // SAFETY: It is the callback of this socket, called as this one was. It is that of all
        // sockets (`sock_def_wakeup()`), which takes no lock but the wait queue's.
        unsafe { before(sk) };
    }
    hook.events.tell_changed();
}

/// Memory to be sent.
#[repr(transparent)]
pub struct IoSlice<'a> {
    vec: bindings::kvec,
    _memory: PhantomData<&'a [u8]>,
}

impl<'a> IoSlice<'a> {
    /// Names all of `memory`.
    pub fn new(memory: &'a [u8]) -> Self {
        Self {
            vec: bindings::kvec {
                iov_base: memory.as_ptr().cast_mut().cast(),
                iov_len: memory.len(),
            },
            _memory: PhantomData,
        }
    }
}

/// Memory to receive into.
#[repr(transparent)]
pub struct IoSliceMut<'a> {
    vec: bindings::kvec,
    _memory: PhantomData<&'a mut [u8]>,
}

impl<'a> IoSliceMut<'a> {
    /// Names all of `memory`.
    pub fn new(memory: &'a mut [u8]) -> Self {
        Self {
            vec: bindings::kvec {
                iov_base: memory.as_mut_ptr().cast(),
                iov_len: memory.len(),
            },
            _memory: PhantomData,
        }
    }
}

/// Memory that nobody has borrowed, in pieces of one kind: to be sent, or received into.
pub enum RawPieces<'a> {
    /// At virtual addresses of the kernel.
    Virtual(&'a [bindings::kvec]),
    /// In pages.
    Pages(&'a [bindings::bio_vec]),
}

impl RawPieces<'_> {
    /// Lets an iterator of a message go over them; returns how many bytes that are.
    ///
    /// # Safety
    ///
    /// They must stay where they are while the iterator is used.
    unsafe fn iterate(&self, message: &mut bindings::msghdr, direction: u32) -> usize {
        match self {
            Self::Virtual(pieces) => {
                let len = total(pieces.iter());
                // SAFETY: The iterator notes where the pieces are, which stay by the safety requirements.
                unsafe {
                    bindings::iov_iter_kvec(
                        &mut message.msg_iter,
                        direction,
                        pieces.as_ptr(),
                        pieces.len() as c_ulong,
                        len,
                    );
                }
                len
            }
            Self::Pages(pieces) => {
                let add = |sum: usize, piece: &bindings::bio_vec| {
                    sum.saturating_add(piece.bv_len as usize)
                };
                let len = pieces.iter().fold(0, add).min(MAX_LEN);
                // SAFETY: As above.
                unsafe {
                    bindings::iov_iter_bvec(
                        &mut message.msg_iter,
                        direction,
                        pieces.as_ptr(),
                        pieces.len() as c_ulong,
                        len,
                    );
                }
                len
            }
        }
    }
}

/// When the other side is asked whether it is still there, if nothing was heard of it.
pub struct KeepAlive {
    /// Seconds without a word before it is asked the first time, up to 32,767.
    pub idle: u32,
    /// Seconds from one question to the next, up to 32,767.
    pub interval: u32,
    /// After how many questions without an answer the connection is broken, up to 127. Of no effect with
    /// [`TcpSocket::set_user_timeout`].
    pub probes: u32,
}

/// A socket.
///
/// # Invariants
///
/// - `raw` is a TCP socket of the initial network namespace, with a `sock`, both of which stay until the
///   drop; nobody else uses it.
/// - `callbacks` are those it had when it was made.
/// - The user data of the `sock` is null, or the [`Hook`] of a leaked box. In the second case its
///   callbacks are [`Callback::ALL`].
struct Socket {
    raw: NonNull<bindings::socket>,
    callbacks: bindings::sock_callbacks,
    /// Dropped last: the module stays as long as the kernel may call the callbacks.
    _findable: Findable,
}

// SAFETY: Sockets may be used from any thread.
unsafe impl Send for Socket {}
// SAFETY: The functions of the kernel that are called for it take its locks.
unsafe impl Sync for Socket {}

impl Socket {
    /// Makes a socket that is not connected and does not listen.
    fn new() -> Result<Self> {
        let findable = Findable::new()?;
        let mut raw = ptr::null_mut();
        // SAFETY: The namespace always exists; the result goes to `raw`.
        to_result(unsafe {
            bindings::sock_create_kern(
                &raw mut bindings::init_net,
                bindings::AF_INET.cast_signed(),
                bindings::sock_type_SOCK_STREAM.cast_signed(),
                bindings::IPPROTO_TCP.cast_signed(),
                &mut raw,
            )
        })
        // It has no file, and nobody's limit: so the kernel says that there is no memory for it.
        .map_err(|error| match error {
            ENFILE => ENOMEM,
            error => error,
        })?;
        let mut callbacks = bindings::sock_callbacks::default();
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // SAFETY: It is new, so it has a `sock`, which nobody else knows.
        unsafe { bindings::sock_set_up((*raw.as_ptr()).sk, &mut callbacks) };
        // INVARIANT: As made above; it has no user data yet.
        Ok(Self {
            raw,
            callbacks,
            _findable: findable,
        })
    }

    /// Accepts a connection, see [`TcpListener::accept`].
    fn accept(&self) -> Result<Self> {
        let findable = Findable::new()?;
        let mut raw = ptr::null_mut();
        // SAFETY: `self` is a socket by the type invariants; the result goes to `raw`.
        to_result(unsafe {
            bindings::kernel_accept(
                self.raw.as_ptr(),
                &mut raw,
                bindings::O_NONBLOCK.cast_signed(),
            )
        })?;
        // INVARIANT: The user data was not copied, so it is null. The callbacks were, and become those
        // of before; both sockets are of one kind, so they are those that it would have had.
        let socket = Self {
            raw: NonNull::new(raw).ok_or(ENOTCONN)?,
            callbacks: self.callbacks,
            _findable: findable,
        };
        socket.unhook();
        Ok(socket)
    }

    /// Returns what the protocol knows as the socket.
    fn sk(&self) -> *mut bindings::sock {
        // SAFETY: The socket exists, and its `sock` does not change, by the type invariants.
        unsafe { (*self.raw.as_ptr()).sk }
    }

    /// Has `events` told from now on, in place of what was told before.
    fn hook<E: SocketEvents>(&self, events: Arc<E>, flags: Flags) -> Result {
        let events: KBox<dyn DynSocketEvents> = KBox::new(events, flags)?;
        let hook = Hook {
            events,
            callbacks: self.callbacks,
        };
        let hook = KBox::into_raw(KBox::new(hook, flags)?);
        // SAFETY: From `into_raw`, with the callbacks that go with it.
        unsafe { self.exchange(hook, &Callback::ALL) };
        Ok(())
    }

    /// Has nobody told any more. After that no function of what was told runs.
    fn unhook(&self) {
        // SAFETY: These are the callbacks that it had without user data.
        unsafe { self.exchange(ptr::null_mut(), &self.callbacks) };
    }

    /// Puts a hook in the place of another, which is dropped once nobody uses it.
    ///
    /// # Safety
    ///
    /// `hook` must be null and `callbacks` those of the socket, or it is the caller's, from a box, and
    /// they are [`Callback::ALL`].
    unsafe fn exchange(&self, hook: *mut Hook, callbacks: &bindings::sock_callbacks) {
        // INVARIANT: By the safety requirements.
        // SAFETY: The `sock` stays by the type invariants. A box is aligned as what it holds, so that the
        // lowest bits of the address are free.
        let before =
            unsafe { bindings::sock_exchange_callbacks(self.sk(), hook.cast(), callbacks) };
        if !before.is_null() {
            // SAFETY: By the type invariants it is from a box, and has been taken out only here. All
            // callbacks that have found it held the lock that the exchange has taken for writing.
            drop(unsafe { KBox::from_raw(before.cast::<Hook>()) });
        }
    }

    /// Lets it have an address of which an earlier connection is not quite over yet.
    fn reuse_address(&self) {
        // SAFETY: The `sock` stays by the type invariants.
        unsafe { bindings::sock_set_reuseaddr(self.sk()) };
    }

    /// Gives it an address, see [`TcpSocket::bind`] and [`TcpListener::new`].
    fn bind(&self, address: SocketAddrV4) -> Result {
        let mut name = to_name(address);
        // SAFETY: The socket exists by the type invariants; the address is copied.
        to_result(unsafe {
            bindings::kernel_bind(self.raw.as_ptr(), (&raw mut name).cast(), NAME_LEN)
        })
    }

    /// Returns the address of this side. For tests.
    #[cfg(CONFIG_KUNIT = "y")]
    fn local_address(&self) -> Result<SocketAddrV4> {
        let mut name = bindings::sockaddr_in::default();
        // SAFETY: The socket exists by the type invariants. Addresses of its family have the size of
        // `name`.
        let ret =
            unsafe { bindings::kernel_getsockname(self.raw.as_ptr(), (&raw mut name).cast()) };
        from_name(ret, &name)
    }

    /// Returns the address of the other side, see [`TcpSocket::peer_address`].
    fn peer_address(&self) -> Result<SocketAddrV4> {
        let mut name = bindings::sockaddr_in::default();
        // SAFETY: As above.
        let ret =
            unsafe { bindings::kernel_getpeername(self.raw.as_ptr(), (&raw mut name).cast()) };
        from_name(ret, &name)
    }

    /// Sends what is in the iterator of `message`.
    ///
    /// # Safety
    ///
    /// The iterator must be valid as a source, and all memory that it names.
    unsafe fn send(&self, message: &mut bindings::msghdr, more: bool) -> Result<usize> {
        message.msg_flags = bindings::MSG_DONTWAIT | bindings::MSG_NOSIGNAL;
        if more {
            message.msg_flags |= bindings::MSG_MORE;
        }
        // SAFETY: The socket exists by the type invariants. The rest by the safety requirements; without
        // MSG_ZEROCOPY and MSG_SPLICE_PAGES the memory is not used afterwards.
        count(unsafe { bindings::sock_sendmsg(self.raw.as_ptr(), message) })
    }

    /// Receives into the iterator of `message`.
    ///
    /// # Safety
    ///
    /// The iterator must be valid as a destination, and all memory that it names.
    unsafe fn receive(&self, message: &mut bindings::msghdr, flags: u32) -> Result<usize> {
        let flags = flags | bindings::MSG_DONTWAIT | bindings::MSG_NOSIGNAL;
        // SAFETY: The socket exists by the type invariants; the rest by the safety requirements.
        count(unsafe { bindings::sock_recvmsg(self.raw.as_ptr(), message, flags.cast_signed()) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        might_sleep();
        // INVARIANT: No user data.
        self.unhook();
        // SAFETY: It is a socket by the type invariants, and is not used any more.
        unsafe { bindings::sock_release(self.raw.as_ptr()) };
    }
}

/// The size of an address.
const NAME_LEN: c_int = size_of::<bindings::sockaddr_in>() as c_int;

/// Returns an address as the kernel has it.
fn to_name(address: SocketAddrV4) -> bindings::sockaddr_in {
    bindings::sockaddr_in {
        sin_family: bindings::AF_INET as bindings::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: bindings::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        ..Default::default()
    }
}

/// Returns an address that the kernel has told: its length, or an error, and where it is.
fn from_name(ret: c_int, name: &bindings::sockaddr_in) -> Result<SocketAddrV4> {
    count(ret)?;
    if ret < NAME_LEN || u32::from(name.sin_family) != bindings::AF_INET {
        return Err(EAFNOSUPPORT);
    }
    let address = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
    Ok(SocketAddrV4::new(address, u16::from_be(name.sin_port)))
}

/// Returns the number that a function of the kernel has told, or its error.
fn count(ret: c_int) -> Result<usize> {
    usize::try_from(ret).map_err(|_| Error::from_errno(ret))
}

/// Returns a value for a function of the kernel; `EINVAL` if it is too large for one.
fn to_int(value: u32) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| EINVAL)
}

/// Returns the first IPv4 address of a network device of the initial namespace. Any context.
///
/// # Errors
///
/// `ENODEV` if there is no device of that name; `EADDRNOTAVAIL` if it has no address.
pub fn inet_of_device(name: &[u8]) -> Result<Ipv4Addr> {
    // With a null at its end.
    let mut text = [0; bindings::IFNAMSIZ as usize];
    let (_, place) = text.split_last_mut().ok_or(ENODEV)?;
    place
        .get_mut(..name.len())
        .ok_or(ENODEV)?
        .copy_from_slice(name);
    let name = CStr::from_bytes_until_nul(&text).map_err(|_| ENODEV)?;
    let mut address = 0;
    // SAFETY: The name ends with a null and stays during the call; there is room for an address.
    to_result(unsafe { bindings::inet_of_device(name.as_char_ptr(), &raw mut address) })?;
    Ok(Ipv4Addr::from(address.to_ne_bytes()))
}

/// A socket that takes connections.
///
/// When it is dropped, which may sleep, connections that nobody has accepted are reset.
pub struct TcpListener(Socket);

impl TcpListener {
    /// Listens at `address`; port 0 is one that the kernel chooses. Up to `backlog` connections wait to
    /// be accepted, and as many as `net.core.somaxconn` says.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE`; `EADDRNOTAVAIL` if the machine does not have the address.
    pub fn new(address: SocketAddrV4, backlog: u16) -> Result<Self> {
        let socket = Socket::new()?;
        // Connections of before that are not quite over do not matter.
        socket.reuse_address();
        socket.bind(address)?;
        // SAFETY: The socket exists by its type invariants.
        to_result(unsafe { bindings::kernel_listen(socket.raw.as_ptr(), c_int::from(backlog)) })?;
        Ok(Self(socket))
    }

    /// Returns where it listens. For tests.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn local_address(&self) -> Result<SocketAddrV4> {
        self.0.local_address()
    }

    /// Has `readable` of `events` called when there is something to accept, until
    /// [`Self::clear_events`] or another call of this.
    ///
    /// Connections that are there already are not reported: look once afterwards.
    pub fn set_events<E: SocketEvents>(&self, events: Arc<E>) -> Result {
        self.0.hook(events, GFP_KERNEL)
    }

    /// Has nobody told any more, and drops the reference. No function of the events runs when this
    /// returns. Must not be called by one of them.
    pub fn clear_events(&self) {
        self.0.unhook();
    }

    /// Accepts a connection; nobody is told of it until its own [`TcpSocket::set_events`].
    ///
    /// # Errors
    ///
    /// `EAGAIN` if there is none.
    pub fn accept(&self) -> Result<TcpSocket> {
        self.0.accept().map(TcpSocket)
    }
}

/// One side of a connection, or what is to become one.
///
/// To drop it releases it, which may sleep: what was sent still goes out, and then the other side is
/// told that this was all. But if something is left that was not received, the connection is reset,
/// and what was sent may be lost.
pub struct TcpSocket(Socket);

impl TcpSocket {
    /// Makes a socket that is not connected.
    pub fn new() -> Result<Self> {
        Socket::new().map(Self)
    }

    /// Gives it the address that it connects from; port 0 is one that the kernel chooses when it connects,
    /// and that others may have who connect elsewhere.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE`; `EADDRNOTAVAIL` if the machine does not have the address; `EINVAL` if it has one
    /// already.
    pub fn bind(&self, address: SocketAddrV4) -> Result {
        if address.port() == 0 {
            // SAFETY: The `sock` stays by the type invariants of `Socket`.
            unsafe { bindings::inet_port_at_connect(self.0.sk()) };
        }
        self.0.bind(address)
    }

    /// Has `events` told from now on, until [`Self::clear_events`] or another call of this.
    ///
    /// Data that is there already is not reported: look once afterwards. The socket holds a
    /// reference: if `events` owns the socket, neither goes before `clear_events`.
    ///
    /// Does not wait for memory: `ENOMEM` if there is none at once.
    pub fn set_events<E: SocketEvents>(&self, events: Arc<E>) -> Result {
        self.0.hook(events, GFP_NOWAIT)
    }

    /// Has nobody told any more, and drops the reference. No function of the events runs when this
    /// returns. Must not be called by one of them.
    pub fn clear_events(&self) {
        self.0.unhook();
    }

    /// Begins to connect; `changed` is called when it is known how that went, and
    /// [`Self::is_connected`] tells. If that is no, the socket is of no more use.
    ///
    /// # Errors
    ///
    /// Errors that are known at once, such as `ENETUNREACH`, or `EADDRNOTAVAIL` if there is no port left.
    pub fn connect(&self, to: SocketAddrV4) -> Result {
        let mut name = to_name(to);
        // SAFETY: The socket exists by its type invariants; the address is copied.
        let ret = unsafe {
            bindings::kernel_connect(
                self.0.raw.as_ptr(),
                (&raw mut name).cast(),
                NAME_LEN,
                bindings::O_NONBLOCK.cast_signed(),
            )
        };
        match to_result(ret) {
            Err(EINPROGRESS) => Ok(()),
            result => result,
        }
    }

    /// Returns whether it is connected by now; also when the other side has said that it sends no more,
    /// or this one has.
    ///
    /// # Errors
    ///
    /// Why it is not and will not be: `ECONNREFUSED`, `ECONNRESET`, `ETIMEDOUT`, `EHOSTUNREACH` ... These
    /// are told once, by this or by the functions that send and receive; then it is `ENOTCONN`.
    pub fn is_connected(&self) -> Result<bool> {
        // SAFETY: The `sock` stays by the type invariants of `Socket`.
        let ret = unsafe { bindings::tcp_is_connected(self.0.sk()) };
        count(ret).map(|connected| connected != 0)
    }

    /// Returns the address of this side. For tests.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn local_address(&self) -> Result<SocketAddrV4> {
        self.0.local_address()
    }

    /// Returns the address of the other side; `ENOTCONN` if it is not connected.
    pub fn peer_address(&self) -> Result<SocketAddrV4> {
        self.0.peer_address()
    }

    /// Returns whether the other side has an address of this machine; `ENOTCONN` if it is not connected.
    pub fn has_local_peer(&self) -> Result<bool> {
        let address = u32::from_ne_bytes(self.peer_address()?.ip().octets());
        // SAFETY: Any number will do.
        Ok(unsafe { bindings::inet_is_local(address) })
    }

    /// Receives what is there, up to the length of `into`, and returns how much that was: 0 if the other
    /// side has sent all it will.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: nothing is there; `readable` is called when that changes.
    /// - `EINVAL`: there is nowhere to put it.
    /// - Others: the connection is broken.
    pub fn receive(&self, into: &mut [u8]) -> Result<usize> {
        self.receive_vectored(&mut [IoSliceMut::new(into)])
    }

    /// As [`Self::receive`], into several pieces, one after the other.
    pub fn receive_vectored(&self, into: &mut [IoSliceMut<'_>]) -> Result<usize> {
        // SAFETY: `IoSliceMut` is transparent.
        let into = unsafe { slice::from_raw_parts(into.as_ptr().cast(), into.len()) };
        // SAFETY: The pieces are valid, and the caller's alone, while they are borrowed.
        unsafe { self.receive_raw(&RawPieces::Virtual(into)) }
    }

    /// As [`Self::receive`], but what is there, up to `len` bytes, is dropped. For tests.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn discard(&self, len: usize) -> Result<usize> {
        if len == 0 {
            return Err(EINVAL);
        }
        let mut message = bindings::msghdr::default();
        // SAFETY: The iterator has no memory, and with MSG_TRUNC nothing is copied.
        unsafe {
            bindings::iov_iter_discard(
                &mut message.msg_iter,
                bindings::ITER_DEST,
                len.min(MAX_LEN),
            );
            self.0.receive(&mut message, bindings::MSG_TRUNC)
        }
    }

    /// Sends the pieces, one after the other, as far as there is room, and returns how many bytes that
    /// were. The memory is the caller's again when this returns.
    ///
    /// With `more` it may be kept back until there is enough for a segment, or more is sent without
    /// that.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: there is no room, or no memory, or it is not connected yet. After that, and after less
    ///   than all was sent, `writable` is called when it is worth another try; possibly at once, by the
    ///   thread that sends. Before it is connected `changed` is called instead.
    /// - `EPIPE`: this side has said that it sends no more.
    /// - Others: the connection is broken.
    pub fn send_vectored(&self, pieces: &[IoSlice<'_>], more: bool) -> Result<usize> {
        // SAFETY: `IoSlice` is transparent.
        let pieces = unsafe { slice::from_raw_parts(pieces.as_ptr().cast(), pieces.len()) };
        // SAFETY: The pieces are valid while they are borrowed, and are only read.
        unsafe { self.send_raw(&RawPieces::Virtual(pieces), more) }
    }

    /// As [`Self::send_vectored`], from one piece.
    pub fn send(&self, from: &[u8], more: bool) -> Result<usize> {
        self.send_vectored(&[IoSlice::new(from)], more)
    }

    /// As [`Self::receive_vectored`], into memory that nobody has borrowed.
    ///
    /// # Safety
    ///
    /// It must be valid for writes.
    pub unsafe fn receive_raw(&self, into: &RawPieces<'_>) -> Result<usize> {
        let mut message = bindings::msghdr::default();
        // SAFETY: The pieces are borrowed as long as the iterator is used.
        let len = unsafe { into.iterate(&mut message, bindings::ITER_DEST) };
        if len == 0 {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirements.
        unsafe { self.0.receive(&mut message, 0) }
    }

    /// As [`Self::send_vectored`], from memory that nobody has borrowed, and that may change meanwhile.
    ///
    /// # Safety
    ///
    /// It must be valid for reads.
    pub unsafe fn send_raw(&self, pieces: &RawPieces<'_>, more: bool) -> Result<usize> {
        let mut message = bindings::msghdr::default();
        // SAFETY: The pieces are borrowed as long as the iterator is used.
        let len = unsafe { pieces.iterate(&mut message, bindings::ITER_SOURCE) };
        if len == 0 {
            return Ok(0);
        }
        // SAFETY: By the safety requirements.
        unsafe { self.0.send(&mut message, more) }
    }

    /// Sends small pieces at once, although others have not been acknowledged.
    pub fn set_nodelay(&self) {
        // SAFETY: The `sock` stays by the type invariants of `Socket`.
        unsafe { bindings::tcp_sock_set_nodelay(self.0.sk()) };
    }

    /// Has pieces that do not fill a segment wait for more, for 200 ms at the most, until it is told not to: then what
    /// has waited is sent.
    pub fn set_cork(&self, on: bool) {
        // SAFETY: The `sock` stays by the type invariants of `Socket`.
        unsafe { bindings::tcp_sock_set_cork(self.0.sk(), on) };
    }

    /// Asks the other side now and then whether it is still there, and breaks the connection if not.
    ///
    /// # Errors
    ///
    /// `EINVAL`: one of the values is 0 or too large.
    pub fn set_keepalive(&self, keepalive: &KeepAlive) -> Result {
        let sk = self.0.sk();
        // SAFETY: The `sock` stays by the type invariants of `Socket`, and is of TCP; so below.
        to_result(unsafe { bindings::tcp_sock_set_keepidle(sk, to_int(keepalive.idle)?) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::tcp_sock_set_keepintvl(sk, to_int(keepalive.interval)?) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::tcp_sock_set_keepcnt(sk, to_int(keepalive.probes)?) })?;
        // SAFETY: As above.
        unsafe { bindings::sock_set_keepalive(sk) };
        Ok(())
    }

    /// Breaks the connection, with `ETIMEDOUT`, if what was sent has not been acknowledged after so many
    /// milliseconds; 0 is what the machine does anyhow.
    ///
    /// # Errors
    ///
    /// `EINVAL`: more than 2^31 - 1.
    pub fn set_user_timeout(&self, milliseconds: u32) -> Result {
        let timeout = to_int(milliseconds)?;
        // SAFETY: The `sock` stays by the type invariants of `Socket`, and is of TCP.
        to_result(unsafe { bindings::tcp_sock_set_user_timeout(self.0.sk(), timeout) })
    }

    /// Returns since when nothing has come from the other side, not even an acknowledgement of what was sent
    /// or the answer to a question of [`Self::set_keepalive`]. For one that is connected, or was.
    pub fn silence(&self) -> Jiffies {
        // SAFETY: The `sock` stays by the type invariants of `Socket`, and is of TCP.
        let silence = unsafe { bindings::tcp_silence(self.0.sk()) };
        Jiffies::try_from(silence).unwrap_or(Jiffies::MAX)
    }

    /// Returns how many bytes were sent of which the other side has not said that it has them: they take memory, also
    /// when this is dropped.
    pub fn unacknowledged(&self) -> usize {
        // SAFETY: The `sock` stays by the type invariants of `Socket`, and is of TCP.
        let count = unsafe { bindings::tcp_unacknowledged(self.0.sk()) };
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// Resets the connection, and drops this: what was sent, and is not with the other side yet, is lost, and takes no
    /// memory any more.
    pub fn reset(self) {
        // SAFETY: The `sock` stays by the type invariants of `Socket`.
        unsafe { bindings::sock_no_linger(self.0.sk()) };
    }

    /// Returns whether there is, behind data that was received, what nobody is told of again: the end of what the
    /// other side sends, an error, or urgent data, at which a call that receives ends although more is there. If
    /// not, and such a call has returned less than there was room for, `readable` or `changed` is called before
    /// another one returns anything.
    pub fn has_more_to_tell(&self) -> bool {
        // SAFETY: The `sock` stays by the type invariants of `Socket`, and is of TCP.
        unsafe { bindings::tcp_has_more_to_tell(self.0.sk()) }
    }

    /// Returns what [`Self::set_user_timeout`] has set. For tests.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn user_timeout(&self) -> u32 {
        // SAFETY: As above.
        unsafe { bindings::tcp_user_timeout(self.0.sk()) }
    }
}

/// Returns how many bytes several pieces have, or as many as one call takes.
fn total<'a>(pieces: impl Iterator<Item = &'a bindings::kvec>) -> usize {
    pieces
        .fold(0, |sum: usize, piece| sum.saturating_add(piece.iov_len))
        .min(MAX_LEN)
}

#[kunit_tests(linux_socket)]
mod tests {
    use super::super::{
        work_queue::{
            new_work,
            Work,
            WorkItem,
            WorkQueue,
            WorkQueueFlags, //
        }, //
    };
    use super::*;
    use kernel::{
        cpu::CpuId,
        sync::atomic::{
            ordering,
            Atomic, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// Counts what it is told.
    struct Counting {
        readable: Atomic<usize>,
        writable: Atomic<usize>,
        changed: Atomic<usize>,
    }

    impl Counting {
        fn new() -> Result<Arc<Self>> {
            Ok(Arc::new(
                Self {
                    readable: Atomic::new(0),
                    writable: Atomic::new(0),
                    changed: Atomic::new(0),
                },
                GFP_KERNEL,
            )?)
        }

        fn readable(&self) -> usize {
            self.readable.load(ordering::Acquire)
        }

        fn writable(&self) -> usize {
            self.writable.load(ordering::Acquire)
        }

        fn changed(&self) -> usize {
            self.changed.load(ordering::Acquire)
        }

        fn all(&self) -> usize {
            self.readable() + self.writable() + self.changed()
        }
    }

    impl SocketEvents for Counting {
        fn readable(this: ArcBorrow<'_, Self>) {
            this.readable.fetch_add(1, ordering::Full);
        }

        fn writable(this: ArcBorrow<'_, Self>) {
            this.writable.fetch_add(1, ordering::Full);
        }

        fn changed(this: ArcBorrow<'_, Self>) {
            this.changed.fetch_add(1, ordering::Full);
        }
    }

    /// Returns whether nothing but `this` refers to the object.
    fn is_alone(this: Arc<Counting>) -> bool {
        Arc::into_unique_or_drop(this).is_some()
    }

    fn pause() {
        fsleep(Delta::from_millis(1));
    }

    /// Waits for a condition, for a very long time.
    fn until(mut condition: impl FnMut() -> bool) -> Result {
        for _ in 0..30_000 {
            if condition() {
                return Ok(());
            }
            pause();
        }
        Err(ETIME)
    }

    const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

    /// Listens at a port of the loopback device; none if that is down.
    fn listen() -> Result<Option<TcpListener>> {
        match TcpListener::new(LOOPBACK, 4) {
            Err(EADDRNOTAVAIL) => {
                pr_info!("skipped: the loopback device is down\n");
                Ok(None)
            }
            listener => listener.map(Some),
        }
    }

    /// Accepts a connection that is under way.
    fn accept(listener: &TcpListener) -> Result<TcpSocket> {
        let mut accepted = Err(EAGAIN);
        until(|| {
            accepted = listener.accept();
            !matches!(accepted, Err(EAGAIN))
        })?;
        accepted
    }

    /// Connects, and returns both sides, the one that connected first.
    fn connect(listener: &TcpListener) -> Result<(TcpSocket, TcpSocket)> {
        let socket = TcpSocket::new()?;
        socket.connect(listener.local_address()?)?;
        let accepted = accept(listener)?;
        until(|| !matches!(socket.is_connected(), Ok(false)))?;
        assert!(socket.is_connected()?);
        Ok((socket, accepted))
    }

    /// Receives until all of `into` is there.
    fn receive_all(socket: &TcpSocket, into: &mut [u8]) -> Result {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match socket.receive(rest) {
                Ok(0) => return Err(EPIPE),
                Ok(received) => done += received,
                Err(EAGAIN) => pause(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[test]
    fn connect_accept_and_echo() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        assert_eq!(listener.accept().err(), Some(EAGAIN));
        let arrivals = Counting::new()?;
        listener.set_events(arrivals.clone())?;

        let socket = TcpSocket::new()?;
        let events = Counting::new()?;
        socket.set_events(events.clone())?;
        assert_eq!(socket.peer_address().err(), Some(ENOTCONN));
        assert_eq!(socket.is_connected().err(), Some(ENOTCONN));
        socket.bind(LOOPBACK)?;
        socket.connect(listener.local_address()?)?;
        until(|| events.changed() > 0)?;
        assert!(socket.is_connected()?);
        until(|| arrivals.readable() > 0)?;
        let accepted = accept(&listener)?;
        assert!(accepted.is_connected()?);
        assert_eq!(listener.accept().err(), Some(EAGAIN));

        assert!(socket.has_local_peer()?);
        assert_eq!(socket.peer_address()?, listener.local_address()?);
        assert_eq!(socket.local_address()?, accepted.peer_address()?);
        assert_eq!(socket.peer_address()?, accepted.local_address()?);
        assert_eq!(*socket.local_address()?.ip(), Ipv4Addr::LOCALHOST);

        // The listener is not told of what its connections do.
        let before = arrivals.all();
        let other = Counting::new()?;
        accepted.set_events(other.clone())?;
        assert_eq!(accepted.receive(&mut [0; 4]).err(), Some(EAGAIN));
        assert_eq!(socket.send(b"to be echoed", false)?, 12);
        until(|| other.readable() > 0)?;
        let mut text = [0; 12];
        receive_all(&accepted, &mut text)?;
        assert_eq!(accepted.send(&text, false)?, 12);
        until(|| events.readable() > 0)?;
        let mut text = [0; 12];
        receive_all(&socket, &mut text)?;
        assert!(&text == b"to be echoed");
        assert_eq!(arrivals.all(), before);

        drop((listener, socket, accepted));
        assert!(is_alone(arrivals));
        assert!(is_alone(events));
        assert!(is_alone(other));
        Ok(())
    }

    #[test]
    fn pieces_are_one_stream() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let (socket, accepted) = connect(&listener)?;
        let pieces = [
            IoSlice::new(b"head"),
            IoSlice::new(b""),
            IoSlice::new(b", body"),
        ];
        assert_eq!(socket.send_vectored(&pieces, true)?, 10);
        assert_eq!(socket.send(b", what is dropped, tail", false)?, 23);
        assert_eq!(socket.send(b"", false)?, 0);
        assert_eq!(accepted.receive(&mut []).err(), Some(EINVAL));
        assert_eq!(accepted.discard(0).err(), Some(EINVAL));

        let (mut head, mut body) = ([0; 4], [0; 6]);
        // All of it has to be there, for one call to fill both.
        until(|| available(&accepted) >= 33)?;
        assert!(!accepted.has_more_to_tell());
        let mut into = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
        assert_eq!(accepted.receive_vectored(&mut into)?, 10);
        assert!(&head == b"head" && &body == b", body");
        assert_eq!(accepted.discard(19)?, 19);
        let mut tail = [0; 9];
        assert_eq!(accepted.receive(&mut tail)?, 4);
        assert!(tail.starts_with(b"tail"));
        assert_eq!(accepted.discard(9).err(), Some(EAGAIN));
        Ok(())
    }

    #[test]
    fn what_a_cork_keeps_comes_without_it() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let (socket, accepted) = connect(&listener)?;
        for _ in 0..2 {
            socket.set_cork(true);
            assert_eq!(socket.send(b"some", false)?, 4);
            assert_eq!(socket.send(b" more", true)?, 5);
            socket.set_cork(false);
            // Far sooner than it would come anyway, which is no part of the test.
            until(|| available(&accepted) >= 9)?;
            let mut text = [0; 9];
            assert_eq!(accepted.receive(&mut text)?, 9);
            assert!(&text == b"some more");
        }
        Ok(())
    }

    /// Returns how much there is to receive, without receiving it.
    fn available(socket: &TcpSocket) -> usize {
        let mut message = bindings::msghdr::default();
        // SAFETY: The iterator has no memory; as in `discard`.
        unsafe {
            bindings::iov_iter_discard(&mut message.msg_iter, bindings::ITER_DEST, MAX_LEN);
            let flags = bindings::MSG_TRUNC | bindings::MSG_PEEK;
            socket.0.receive(&mut message, flags).unwrap_or(0)
        }
    }

    #[test]
    fn full_and_writable_again() -> Result {
        /// More than a socket has room for.
        const MUCH: usize = 8 << 20;
        /// The stream repeats itself after so many bytes.
        const PERIOD: usize = 251;

        /// Returns `len` bytes of the stream from `at` on.
        fn stream(pattern: &[u8], at: usize, len: usize) -> Result<&[u8]> {
            let from = at % PERIOD;
            pattern.get(from..from + len).ok_or(EINVAL)
        }

        let Some(listener) = listen()? else {
            return Ok(());
        };
        let (socket, accepted) = connect(&listener)?;
        let events = Counting::new()?;
        socket.set_events(events.clone())?;
        let mut pattern = VVec::from_elem(0u8, MUCH + PERIOD, GFP_KERNEL)?;
        for (at, to) in pattern.iter_mut().enumerate() {
            *to = (at % PERIOD) as u8;
        }
        let mut chunk = KVec::from_elem(0u8, 64 << 10, GFP_KERNEL)?;
        let (mut sent, mut received) = (0, 0);
        // Twice, as it has to be told each time.
        for _ in 0..2 {
            let mut partial = false;
            let before = loop {
                let before = events.writable();
                match socket.send(stream(&pattern, sent, MUCH)?, false) {
                    Ok(count) => {
                        partial |= count < MUCH;
                        sent += count;
                    }
                    Err(EAGAIN) => break before,
                    Err(error) => return Err(error),
                }
            };
            assert!(partial);
            while received < sent {
                let count = match accepted.receive(&mut chunk) {
                    Err(EAGAIN) => {
                        pause();
                        continue;
                    }
                    result => result?,
                };
                assert!(chunk.get(..count) == Some(stream(&pattern, received, count)?));
                received += count;
            }
            until(|| events.writable() > before)?;
        }
        assert_eq!(received, sent);
        Ok(())
    }

    #[test]
    fn closed_by_the_other_side() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let (socket, accepted) = connect(&listener)?;
        let events = Counting::new()?;
        socket.set_events(events.clone())?;
        accepted.send(b"last", false)?;
        drop(accepted);
        until(|| events.changed() > 0)?;
        let told = events.all();
        let mut text = [0; 5];
        // There was room for more, and its end, of which nobody is told again, stands behind that.
        assert_eq!(socket.receive(&mut text)?, 4);
        assert!(text.starts_with(b"last"));
        assert!(socket.has_more_to_tell());
        assert_eq!(socket.receive(&mut text)?, 0);
        assert_eq!(events.all(), told);
        assert_eq!(socket.discard(4)?, 0);

        // Data that is sent now finds nobody, and a reset comes back.
        let before = events.changed();
        assert_eq!(socket.send(b"late", false)?, 4);
        until(|| events.changed() > before)?;
        assert!(socket.is_connected().is_err());
        assert_eq!(socket.send(b"later", false).err(), Some(EPIPE));
        Ok(())
    }

    #[test]
    fn reset_with_unread_data() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        for resets in [false, true] {
            let (socket, accepted) = connect(&listener)?;
            assert_eq!(socket.unacknowledged(), 0);
            assert_eq!(socket.send(b"some", false)?, 4);
            until(|| socket.unacknowledged() == 0)?;
            let events = Counting::new()?;
            accepted.set_events(events.clone())?;
            let chunk = KVec::from_elem(0u8, 64 << 10, GFP_KERNEL)?;
            while socket.send(&chunk, false).is_ok() {}
            // Nobody receives that.
            assert!(socket.unacknowledged() > 0);
            let is_reset = || matches!(accepted.is_connected(), Err(ECONNRESET));
            if resets {
                socket.reset();
                until(is_reset)?;
            } else {
                drop(socket);
                pause();
                assert!(!is_reset());
            }
        }
        Ok(())
    }

    #[test]
    fn refused() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let address = listener.local_address()?;
        assert_eq!(TcpListener::new(address, 1).err(), Some(EADDRINUSE));
        drop(listener);
        let socket = TcpSocket::new()?;
        let events = Counting::new()?;
        socket.set_events(events.clone())?;
        socket.connect(address)?;
        until(|| events.changed() > 0)?;
        assert_eq!(socket.is_connected().err(), Some(ECONNREFUSED));
        // An error is told once.
        assert_eq!(socket.is_connected().err(), Some(ENOTCONN));
        Ok(())
    }

    #[test]
    fn nobody_has_accepted() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let arrivals = Counting::new()?;
        listener.set_events(arrivals.clone())?;
        let socket = TcpSocket::new()?;
        let events = Counting::new()?;
        socket.connect(listener.local_address()?)?;
        until(|| arrivals.readable() > 0)?;
        // Data for a socket that has the callbacks of the listener, and nobody to tell.
        until(|| socket.send(b"early", false) == Ok(5))?;
        let told = arrivals.all();
        socket.set_events(events.clone())?;
        pause();
        assert_eq!(arrivals.all(), told);
        drop(listener);
        assert!(is_alone(arrivals));
        until(|| events.changed() > 0)?;
        assert_eq!(socket.is_connected().err(), Some(ECONNRESET));
        Ok(())
    }

    #[test]
    fn options_are_set() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let (socket, accepted) = connect(&listener)?;
        for socket in [&socket, &accepted] {
            assert_eq!(socket.user_timeout(), 0);
            socket.set_user_timeout(12_345)?;
            assert_eq!(socket.user_timeout(), 12_345);
            assert_eq!(socket.set_user_timeout(1 << 31).err(), Some(EINVAL));
            assert_eq!(socket.user_timeout(), 12_345);
            socket.set_nodelay();
            socket.set_keepalive(&KeepAlive {
                idle: 1,
                interval: 2,
                probes: 3,
            })?;
            for (idle, interval, probes) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (40_000, 1, 1)] {
                let keepalive = KeepAlive {
                    idle,
                    interval,
                    probes,
                };
                assert_eq!(socket.set_keepalive(&keepalive).err(), Some(EINVAL));
            }
        }
        // It works as before.
        assert_eq!(socket.send(b"data", false)?, 4);
        let mut text = [0; 4];
        receive_all(&accepted, &mut text)?;
        assert!(&text == b"data");

        // Once it has a port; any is chosen when it connects.
        let other = TcpSocket::new()?;
        other.bind(LOOPBACK)?;
        assert_eq!(other.local_address()?.port(), 0);
        assert_eq!(socket.bind(LOOPBACK).err(), Some(EINVAL));
        let elsewhere = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0);
        assert_eq!(TcpSocket::new()?.bind(elsewhere).err(), Some(EADDRNOTAVAIL));
        Ok(())
    }

    #[test]
    fn network_devices_have_names() {
        for name in [
            &b""[..],
            b"no-such-device",
            b"a-name-of-15-by",
            b"a-name-of-16-byt",
            b"a-name-that-is-too-long-for-a-device",
        ] {
            assert_eq!(inet_of_device(name).err(), Some(ENODEV));
        }
        match inet_of_device(b"lo") {
            Ok(address) => assert!(address.is_loopback()),
            // It is there, and yet to be set up.
            Err(error) => assert_eq!(error, EADDRNOTAVAIL),
        }
    }

    /// Sends as much as it can.
    #[pin_data]
    struct Sender {
        socket: TcpSocket,
        stop: Atomic<bool>,
        #[pin]
        work: Work<Sender>,
    }

    impl WorkItem for Sender {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            // Relaxed: it will see it in the end.
            while !this.stop.load(ordering::Relaxed) {
                match this.socket.send(&[0; 512], false) {
                    Ok(_) => (),
                    Err(EAGAIN) => fsleep(Delta::from_micros(50)),
                    Err(_) => break,
                }
            }
        }
    }

    #[test]
    fn nothing_is_told_after_the_end() -> Result {
        let Some(listener) = listen()? else {
            return Ok(());
        };
        let queue = WorkQueue::new(c"linux_test", WorkQueueFlags::PER_CPU);
        let queue = Arc::pin_init(queue, GFP_KERNEL)?;
        let mut told = 0;
        for round in 0..40 {
            let (socket, accepted) = connect(&listener)?;
            let sender = Arc::pin_init(
                pin_init!(Sender {
                    socket,
                    stop: Atomic::new(false),
                    work <- new_work!("socket test"),
                }),
                GFP_KERNEL,
            )?;
            queue.queue_on::<_, 0>(sender.clone(), CpuId::from_u32(round % 2));
            for _ in 0..20 {
                let events = Counting::new()?;
                accepted.set_events(events.clone())?;
                for _ in 0..5 {
                    let _ = accepted.discard(4096);
                }
                accepted.clear_events();
                let before = events.all();
                for _ in 0..5 {
                    let _ = accepted.discard(4096);
                }
                assert_eq!(events.all(), before);
                assert!(is_alone(events));
                told += before;
            }
            // The same where the socket goes while it is called.
            let events = Counting::new()?;
            accepted.set_events(events.clone())?;
            let _ = accepted.discard(MAX_LEN);
            drop(accepted);
            let before = events.all();
            fsleep(Delta::from_micros(100));
            assert_eq!(events.all(), before);
            assert!(is_alone(events));
            sender.stop.store(true, ordering::Relaxed);
        }
        queue.destroy();
        // Or nothing was tried.
        assert!(told > 0);
        Ok(())
    }
}
