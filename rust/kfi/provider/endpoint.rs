// SPDX-License-Identifier: GPL-2.0

//! Endpoints, scalable endpoints and their contexts.
//!
//! They all have the same head and tables, and so one trait, [`EndpointOps`]. Each file below this
//! one has the functions of one table, which turn their arguments into an [`Operation`].

mod atomic;
#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
mod calls;
mod cm;
mod directions;
mod message;
mod rma;
mod tagged;

use core::ptr;
use kernel::{
    error::from_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        rcu,
        Arc, //
    }, //
};

use super::{
    answer,
    enosys::{
        enosys2_size,
        enosys5, //
    },
    Absent,
    Answer,
    AtomicCall,
    Operation,
    Trigger, //
};
use crate::kfi::{
    bindings,
    context::Context,
    errno::ETOOSMALL,
    fid::{
        open_into,
        Class,
        Fid,
        NewFid,
        Object,
        Opening,
        Tables, //
    },
    flags::OpFlags,
    info::InfoRef, //
};

pub use directions::Directions;

pub(super) use atomic::{
    AtomicMessage,
    SourceRanges,
    TargetRanges, //
};
pub use bindings::{
    kfi_rx_attr,
    kfi_tx_attr, //
};

/// The class of endpoints and contexts, by number.
pub struct EndpointClass<const FCLASS: u32>;

/// The number of the class of endpoints.
pub const PLAIN_NUMBER: u32 = bindings::KFI_CLASS_EP;
/// The number of the class of transmit contexts.
pub const TRANSMIT_NUMBER: u32 = bindings::KFI_CLASS_TX_CTX;
/// The number of the class of receive contexts.
pub const RECEIVE_NUMBER: u32 = bindings::KFI_CLASS_RX_CTX;

/// The class of endpoints.
pub type PlainClass = EndpointClass<{ bindings::KFI_CLASS_EP }>;
/// The class of scalable endpoints.
pub type ScalableClass = EndpointClass<{ bindings::KFI_CLASS_SEP }>;
/// The class of transmit contexts.
pub type TransmitClass = EndpointClass<{ bindings::KFI_CLASS_TX_CTX }>;
/// The class of receive contexts.
pub type ReceiveClass = EndpointClass<{ bindings::KFI_CLASS_RX_CTX }>;
/// The class of receive contexts that endpoints share.
pub type SharedReceiveClass = EndpointClass<{ bindings::KFI_CLASS_SRX_CTX }>;

// SAFETY: `struct kfid_ep` starts with its `fid`; `head` stores where the tables are, and `names`
// compares the first of them.
unsafe impl<const NUMBER: u32> Class for EndpointClass<NUMBER> {
    type Head = bindings::kfid_ep;
    type Tables = EndpointTables;
    type Data = EndpointData;
    // The classes whose heads are a `struct kfid_ep`: `names` looks at no others.
    const FCLASS: usize = {
        assert!(matches!(
            NUMBER,
            bindings::KFI_CLASS_EP
                | bindings::KFI_CLASS_SEP
                | bindings::KFI_CLASS_TX_CTX
                | bindings::KFI_CLASS_RX_CTX
                | bindings::KFI_CLASS_SRX_CTX
        ));
        NUMBER as usize
    };
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &Self::Data) -> Self::Head {
        bindings::kfid_ep {
            fid,
            // C declares the tables without `const`, and nobody writes to them.
            ops: ptr::from_ref(&tables.endpoint).cast_mut(),
            cm: ptr::from_ref(&tables.cm).cast_mut(),
            msg: ptr::from_ref(&tables.message).cast_mut(),
            rma: ptr::from_ref(&tables.rma).cast_mut(),
            tagged: ptr::from_ref(&tables.tagged).cast_mut(),
            atomic: ptr::from_ref(&tables.atomic).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        ptr::eq(unsafe { (*head).ops }, &tables.endpoint)
    }

    fn set_default_flags(data: &EndpointData, flags: OpFlags) -> Result {
        let direction = Direction::named(flags).ok_or(EINVAL)?;
        // An alias has no flags of the other direction.
        if matches!(&data.base, Some((own, _)) if *own != direction) {
            return Err(EINVAL);
        }
        data.set(direction, flags);
        Ok(())
    }

    fn alias_data<T: Object<Class = Self>>(this: &Fid<T>, flags: OpFlags) -> Result<EndpointData> {
        EndpointData::of_alias(this, flags)
    }
}

/// The data that the abstractions keep of an endpoint or context: the default flags of its
/// operations.
///
/// They are the consumer's, and one of them says that a context is a pointer. So what a provider says
/// about them does not count.
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct EndpointData {
    /// Of what is transmitted.
    tx_flags: Atomic<u64>,
    /// Of what is received.
    rx_flags: Atomic<u64>,
    /// Of an alias: which direction its flags are for, and what has those of the other one.
    base: Option<(Direction, Arc<dyn DefaultFlags>)>,
}

/// A direction of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Operations that the endpoint begins.
    Transmit,
    /// Operations that peers begin.
    Receive,
}

impl Direction {
    /// The direction that flags name; `None` if it is none or both.
    pub fn named(flags: OpFlags) -> Option<Self> {
        match (
            flags.contains(OpFlags::TRANSMIT),
            flags.contains(OpFlags::RECV),
        ) {
            (true, false) => Some(Self::Transmit),
            (false, true) => Some(Self::Receive),
            _ => None,
        }
    }
}

/// An object with default flags, whatever its type.
trait DefaultFlags: Send + Sync {
    /// Returns those of a direction.
    fn get(&self, direction: Direction) -> OpFlags;
}

impl<T: Object<Class: AnyEndpointClass>> DefaultFlags for Fid<T> {
    fn get(&self, direction: Direction) -> OpFlags {
        self.data().get(direction)
    }
}

impl Default for EndpointData {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl EndpointData {
    /// With these flags.
    fn new(tx_flags: u64, rx_flags: u64) -> Self {
        Self {
            tx_flags: Atomic::new(tx_flags),
            rx_flags: Atomic::new(rx_flags),
            base: None,
        }
    }

    /// Of an endpoint that is opened with `info`.
    pub(super) fn of(info: InfoRef<'_>) -> Self {
        Self::new(
            info.tx_attr().map_or(0, |attr| attr.op_flags),
            info.rx_attr().map_or(0, |attr| attr.op_flags),
        )
    }

    /// Of a receive context that is opened with `attr`.
    pub(super) fn of_receive(attr: Option<&kfi_rx_attr>) -> Self {
        Self::new(0, attr.map_or(0, |attr| attr.op_flags))
    }

    /// Of an alias with `flags`, which name a direction.
    fn of_alias<T: Object<Class: AnyEndpointClass>>(this: &Fid<T>, flags: OpFlags) -> Result<Self> {
        let direction = Direction::named(flags).ok_or(EINVAL)?;
        let base: Arc<dyn DefaultFlags> = match &this.data().base {
            Some((_, base)) => base.clone(),
            None => this.arc(),
        };
        let data = Self {
            base: Some((direction, base)),
            ..Self::new(0, 0)
        };
        data.set(direction, flags);
        Ok(data)
    }

    /// Returns the flags of a direction.
    #[inline]
    fn get(&self, direction: Direction) -> OpFlags {
        match &self.base {
            Some((own, base)) if *own != direction => base.get(direction),
            // Relaxed: a number that stands for itself.
            _ => OpFlags::from_raw(self.flags(direction).load(ordering::Relaxed)),
        }
    }

    /// Changes the flags of a direction.
    fn set(&self, direction: Direction, flags: OpFlags) {
        let flags = flags.without(OpFlags::TRANSMIT | OpFlags::RECV);
        // Relaxed: as above.
        self.flags(direction)
            .store(flags.as_raw(), ordering::Relaxed);
    }

    /// Returns where the flags of a direction are.
    #[inline]
    fn flags(&self, direction: Direction) -> &Atomic<u64> {
        match direction {
            Direction::Transmit => &self.tx_flags,
            Direction::Receive => &self.rx_flags,
        }
    }
}

impl<T: EndpointOps> Fid<T> {
    /// Returns the default flags of the operations of one direction: those that the consumer has
    /// opened the object with, or set since. From any context.
    #[inline]
    pub fn default_flags(&self, direction: Direction) -> OpFlags {
        self.data().get(direction)
    }
}

/// The classes of endpoints and contexts, whatever their number.
#[allow(unnameable_types, reason = "all numbers have it, and nothing else has")]
pub trait AnyEndpointClass:
    Class<Head = bindings::kfid_ep, Tables = EndpointTables, Data = EndpointData>
{
}

impl<const NUMBER: u32> AnyEndpointClass for EndpointClass<NUMBER> {}

/// The tables that an endpoint names.
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct EndpointTables {
    /// The tables that all kinds have.
    endpoint: bindings::kfi_ops_ep,
    /// Names and connections.
    cm: bindings::kfi_ops_cm,
    /// Messages.
    message: bindings::kfi_ops_msg,
    /// Remote memory access.
    rma: bindings::kfi_ops_rma,
    /// Tagged messages.
    tagged: bindings::kfi_ops_tagged,
    /// Atomic operations.
    atomic: bindings::kfi_ops_atomic,
}

/// The operations of an endpoint, scalable endpoint or context (`struct kfi_ops_ep` and the tables
/// of the families of operations).
///
/// All but [`Self::post`], [`Self::cancel`] and [`Self::atomic_limit`] may sleep. Enabling comes
/// through [`Object::control`], aliases through [`Object::alias`].
pub trait EndpointOps: Object<Class: AnyEndpointClass> {
    /// The transmit contexts of a scalable endpoint; [`NoTransmitContext`] for all others.
    type TransmitContext: EndpointOps<Class = TransmitClass>;
    /// The receive contexts of a scalable endpoint; [`NoReceiveContext`] for all others.
    type ReceiveContext: EndpointOps<Class = ReceiveClass>;

    /// Posts an operation.
    ///
    /// From any context; must not sleep. Runs in an RCU read-side critical section.
    ///
    /// `EAGAIN` means that the consumer may try again; it learns of `ENOMEM` as `EAGAIN`, too.
    ///
    /// An operation is refused, or it is accepted and ends once (a receive for several messages reports
    /// each of them, and its release once). An operation that was ended here has been accepted: return `Ok`
    /// whatever goes wrong afterwards. The end gives the context back to the consumer, and an error would
    /// give it back a second time.
    ///
    /// An operation that transmits has to end in bounded time after it has begun, unless the receiver
    /// leaves its completion queue full; a receive waits for its message, and a triggered operation for its
    /// counter. Only when the endpoint is closed may an operation be dropped instead of ended: the
    /// consumer never hears of it. No type ensures any of this.
    ///
    /// The memory of the operation is the consumer's again when its completion is read; that of a receive
    /// for several messages when the completion is read that tells the release, or that it was cancelled.
    /// Types ensure that, but for which receives are for several messages: see [`SharedUse::take`]. It is
    /// the consumer's also when this fails, when [`Object::release`] of the endpoint has returned, and when
    /// a call that takes deferred work back has returned: by then all that has the memory ([`Outgoing`],
    /// [`Lasting`], [`Incoming`], [`SharedUse`], and anything made of these) must have been dropped. No
    /// type ensures that: one that is kept longer uses freed memory.
    ///
    /// [`Outgoing`]: super::Outgoing
    /// [`Lasting`]: super::Lasting
    /// [`Incoming`]: super::Incoming
    /// [`SharedUse`]: super::SharedUse
    /// [`SharedUse::take`]: super::SharedUse::take
    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result;

    /// Cancels an operation; `ENOENT` if there is none with that context.
    ///
    /// From any context; must not sleep. Runs in an RCU read-side critical section.
    fn cancel(&self, context: Context) -> Result {
        let _ = context;
        Err(ENOSYS)
    }

    /// Returns the room in bytes below which a buffer for several messages is given back.
    fn min_multi_recv(&self) -> Result<usize> {
        Err(ENOPROTOOPT)
    }

    /// Changes the room below which a buffer for several messages is given back; `E2BIG` if it is too
    /// much.
    fn set_min_multi_recv(&self, size: usize) -> Result {
        let _ = size;
        Err(ENOPROTOOPT)
    }

    /// Answers with the address, and returns what [`Answer::tell`] returns.
    fn name(&self, answer: Answer<'_>) -> Result {
        let _ = answer;
        Err(ENOSYS)
    }

    /// Changes the address.
    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        let _ = (this, name);
        Err(ENOSYS)
    }

    /// Opens a transmit context.
    fn tx_context<'o>(
        this: &Fid<Self>,
        index: usize,
        attr: Option<&kfi_tx_attr>,
        opening: Opening<'o, TransmitClass>,
    ) -> Result<NewFid<'o, Self::TransmitContext>> {
        let _ = (this, index, attr, opening);
        Err(ENOSYS)
    }

    /// Opens a receive context.
    fn rx_context<'o>(
        this: &Fid<Self>,
        index: usize,
        attr: Option<&kfi_rx_attr>,
        opening: Opening<'o, ReceiveClass>,
    ) -> Result<NewFid<'o, Self::ReceiveContext>> {
        let _ = (this, index, attr, opening);
        Err(ENOSYS)
    }

    /// Returns the most elements of an atomic operation; `EOPNOTSUPP` if there is no such
    /// operation. From any context.
    fn atomic_limit(
        &self,
        call: AtomicCall,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
    ) -> Result<usize> {
        let _ = (call, datatype, op);
        Err(EOPNOTSUPP)
    }
}

/// A transmit context of what has none.
pub type NoTransmitContext = Absent<TransmitClass>;
/// A receive context of what has none.
pub type NoReceiveContext = Absent<ReceiveClass>;

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: EndpointOps, const NUMBER: u32> Tables<EndpointClass<NUMBER>> for T {
    const TABLES: &'static EndpointTables = &EndpointTables {
        endpoint: bindings::kfi_ops_ep {
            size: size_of::<bindings::kfi_ops_ep>(),
            cancel: Some(cancel_callback::<T>),
            getopt: Some(getopt_callback::<T>),
            setopt: Some(setopt_callback::<T>),
            tx_ctx: Some(tx_ctx_callback::<T>),
            rx_ctx: Some(rx_ctx_callback::<T>),
        },
        cm: cm::table::<T>(),
        message: message::table::<T>(),
        rma: rma::table::<T>(),
        tagged: tagged::table::<T>(),
        atomic: atomic::table::<T>(),
    };
}

/// The class of transmit contexts that endpoints share.
pub struct SharedTransmitClass;

// SAFETY: `struct kfid_stx` starts with its `fid`; `head` stores where the table is, and `names`
// compares that.
unsafe impl Class for SharedTransmitClass {
    type Head = bindings::kfid_stx;
    type Tables = bindings::kfi_ops_ep;
    type Data = ();
    const FCLASS: usize = bindings::KFI_CLASS_STX_CTX as usize;
    const RCU_OPERATIONS: bool = false;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &()) -> Self::Head {
        bindings::kfid_stx {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: ptr::from_ref(tables).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// The operations of a shared transmit context, which has none: it is bound to endpoints.
pub trait SharedTransmitOps: Object<Class = SharedTransmitClass> {}

// SAFETY: The functions look at nothing.
unsafe impl<T: SharedTransmitOps> Tables<SharedTransmitClass> for T {
    const TABLES: &'static bindings::kfi_ops_ep = &bindings::kfi_ops_ep {
        size: size_of::<bindings::kfi_ops_ep>(),
        cancel: Some(enosys2_size),
        getopt: Some(enosys5),
        setopt: Some(enosys5),
        tx_ctx: Some(enosys5),
        rx_ctx: Some(enosys5),
    };
}

/// How an operation is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By a call that has no flags.
    Plain,
    /// By an inject call, which has neither flags nor a context.
    Inject,
    /// By a call that has flags.
    Message,
}

impl Form {
    /// Returns the flags that an operation has in the end.
    ///
    /// `call` are the flags of the call or, if it has none, what its form implies.
    fn flags(self, call: OpFlags, default: OpFlags) -> Result<OpFlags> {
        let flags = match self {
            // Only calls that have the data can send it.
            Self::Plain => default.without(OpFlags::REMOTE_CQ_DATA) | call,
            Self::Inject => {
                // Nothing says what it would wait for (R-TRIG-6).
                if default.contains(OpFlags::TRIGGER) {
                    return Err(ENOSYS);
                }
                default.without(OpFlags::REMOTE_CQ_DATA | OpFlags::COMPLETION)
                    | call
                    | OpFlags::INJECT
            }
            // On a triggerable endpoint everything is deferred (R-TRIG-4).
            Self::Message if default.contains(OpFlags::TRIGGER) => call | OpFlags::TRIGGER,
            Self::Message => call,
        };
        if flags.contains(OpFlags::INJECT | OpFlags::TRIGGER) {
            return Err(EINVAL);
        }
        Ok(flags)
    }
}

/// Posts what `operation` returns.
///
/// # Safety
///
/// `ep` must be an endpoint of `T` that is open when the call begins; it may be closed as soon as
/// the operation is seen to have completed. If the operation is triggered, its context must be null
/// or a `struct kfi_triggered_context` with a counter that is null or open.
unsafe fn post<'a, T: EndpointOps>(
    ep: *mut bindings::kfid_ep,
    form: Form,
    operation: impl FnOnce() -> Result<Operation<'a>>,
) -> isize {
    // Close waits for this section, so that the endpoint stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements; see above for the end.
    let this = unsafe { Fid::<T>::borrow(ep) };
    from_result(|| {
        let mut operation = operation()?;
        let default = this.default_flags(operation.kind.direction());
        let default = if operation.kind.can_be_injected() {
            default
        } else {
            default.without(OpFlags::INJECT)
        };
        operation.flags = form.flags(operation.flags, default)?;
        operation.own_flags = form == Form::Message;
        operation.inject = form == Form::Inject;
        if operation.flags.contains(OpFlags::TRIGGER) {
            // SAFETY: By the safety requirements.
            let trigger = unsafe { Trigger::from_context(operation.context.as_raw()) }?;
            operation.trigger = Some(trigger);
        }
        T::post(this, operation).map_err(|error| {
            // The only error that a consumer repeats the call for.
            if error == ENOMEM {
                EAGAIN
            } else {
                error
            }
        })?;
        Ok(0)
    })
}

/// Defines functions of tables that post an operation: name, arguments, [`Form`], what of the
/// arguments is taken by unsafe functions, and how the operation is made of it.
///
/// The names and functions in brackets are all that gets into unsafe blocks.
macro_rules! post_callbacks {
    ($(
        $(#[$attr:meta])*
        $name:ident($($arg:ident: $ty:ty),* $(,)?) => $form:ident,
            [$($taken:ident = $($function:ident)::+($($from:ident),*)),*]
            $operation:expr;
    )*) => {$(
        $(#[$attr])*
        ///
        /// # Safety
        ///
        /// As for [`post`]. Pointers must be null or, for as many bytes or entries as stands beside
        /// them, as [`Buffers`] says; those to messages null or valid.
        ///
        /// [`post`]: crate::kfi::provider::endpoint::post
        /// [`Buffers`]: crate::kfi::memory::Buffers
        unsafe extern "C" fn $name<T: EndpointOps>(
            ep: *mut bindings::kfid_ep,
            $($arg: $ty,)*
        ) -> isize {
            $(
                // SAFETY: By the safety requirements.
                let $taken = unsafe { $($function)::+($($from),*) };
            )*
            let operation = || $operation;
            // SAFETY: By the safety requirements.
            unsafe { post::<T>(ep, Form::$form, operation) }
        }
    )*}
}
use post_callbacks;

/// Cancels an operation.
///
/// # Safety
///
/// `fid` must be the start of an endpoint of `T` that is open when the call begins. It may be closed
/// as soon as the operation is seen to have completed.
unsafe extern "C" fn cancel_callback<T: EndpointOps>(
    fid: *mut bindings::kfid,
    context: *mut c_void,
) -> isize {
    // Close waits for this section, so that the endpoint stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        this.cancel(Context::from_raw(context))?;
        Ok(0)
    })
}

/// An option of endpoints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndpointOption {
    /// The room below which a buffer for several messages is given back.
    MinMultiRecv,
    /// The most data that connecting can carry.
    CmDataSize,
}

impl EndpointOption {
    /// Takes an option from C; `ENOPROTOOPT` for one that is not known.
    fn from_raw(level: c_int, name: c_int) -> Result<Self> {
        match (u32::try_from(level), u32::try_from(name)) {
            (Ok(bindings::KFI_OPT_ENDPOINT), Ok(bindings::KFI_OPT_MIN_MULTI_RECV)) => {
                Ok(Self::MinMultiRecv)
            }
            (Ok(bindings::KFI_OPT_ENDPOINT), Ok(bindings::KFI_OPT_CM_DATA_SIZE)) => {
                Ok(Self::CmDataSize)
            }
            _ => Err(ENOPROTOOPT),
        }
    }
}

/// Reads an option.
///
/// # Safety
///
/// `fid` must be the start of an open endpoint of `T`, `optlen` null or valid, and `optval` null or
/// valid for writes of that many bytes.
unsafe extern "C" fn getopt_callback<T: EndpointOps>(
    fid: *mut bindings::kfid,
    level: c_int,
    name: c_int,
    optval: *mut c_void,
    optlen: *mut usize,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        let value = match EndpointOption::from_raw(level, name)? {
            EndpointOption::MinMultiRecv => this.min_multi_recv()?,
            EndpointOption::CmDataSize => 0,
        };
        // SAFETY: By the safety requirements.
        unsafe { answer(&value.to_ne_bytes(), optval, optlen) }?;
        Ok(0)
    })
}

/// Changes an option.
///
/// # Safety
///
/// `fid` must be the start of an open endpoint of `T`, `optval` null or valid for reads of `optlen`
/// bytes.
unsafe extern "C" fn setopt_callback<T: EndpointOps>(
    fid: *mut bindings::kfid,
    level: c_int,
    name: c_int,
    optval: *const c_void,
    optlen: usize,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        if EndpointOption::from_raw(level, name)? == EndpointOption::CmDataSize {
            // It can only be read.
            return Err(ENOPROTOOPT);
        }
        if optval.is_null() {
            return Err(EINVAL);
        }
        if optlen < size_of::<usize>() {
            return Err(ETOOSMALL.into());
        }
        // SAFETY: `optval` is valid for reads of that many bytes.
        this.set_min_multi_recv(unsafe { optval.cast::<usize>().read_unaligned() })?;
        Ok(0)
    })
}

/// Opens a transmit context.
///
/// # Safety
///
/// `sep` must be an open endpoint of `T`, `attr` null or valid, `tx_ep` null or valid for writes.
unsafe extern "C" fn tx_ctx_callback<T: EndpointOps>(
    sep: *mut bindings::kfid_ep,
    index: c_int,
    attr: *mut kfi_tx_attr,
    tx_ep: *mut *mut bindings::kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(sep) };
    // SAFETY: By the safety requirements.
    let attr = unsafe { attr.as_ref() };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(tx_ep, || {
            let index = usize::try_from(index).map_err(|_| EINVAL)?;
            let data = EndpointData::new(
                attr.map_or(this.default_flags(Direction::Transmit).as_raw(), |attr| {
                    attr.op_flags
                }),
                0,
            );
            let opening = Opening::new(Context::from_raw(context), data);
            T::tx_context(this, index, attr, opening)
        })
    }
}

/// Opens a receive context.
///
/// # Safety
///
/// `sep` must be an open endpoint of `T`, `attr` null or valid, `rx_ep` null or valid for writes.
unsafe extern "C" fn rx_ctx_callback<T: EndpointOps>(
    sep: *mut bindings::kfid_ep,
    index: c_int,
    attr: *mut kfi_rx_attr,
    rx_ep: *mut *mut bindings::kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(sep) };
    // SAFETY: By the safety requirements.
    let attr = unsafe { attr.as_ref() };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(rx_ep, || {
            let index = usize::try_from(index).map_err(|_| EINVAL)?;
            let data = EndpointData::new(
                0,
                attr.map_or(this.default_flags(Direction::Receive).as_raw(), |attr| {
                    attr.op_flags
                }),
            );
            let opening = Opening::new(Context::from_raw(context), data);
            T::rx_context(this, index, attr, opening)
        })
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_endpoint)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_call_replace_the_default_flags() -> Result {
        let default = OpFlags::COMPLETION | OpFlags::REMOTE_CQ_DATA;
        let data = OpFlags::REMOTE_CQ_DATA;

        assert!(Form::Message.flags(OpFlags::FENCE, default)? == OpFlags::FENCE);
        assert!(Form::Plain.flags(OpFlags::NONE, default)? == OpFlags::COMPLETION);
        assert!(Form::Plain.flags(data, OpFlags::NONE)? == data);
        assert!(Form::Inject.flags(OpFlags::NONE, default)? == OpFlags::INJECT);
        assert!(Form::Inject.flags(data, default)? == data | OpFlags::INJECT);
        Ok(())
    }

    #[test]
    fn triggerable_endpoints_defer_everything() -> Result {
        let trigger = OpFlags::TRIGGER;

        assert!(Form::Plain.flags(OpFlags::NONE, trigger)? == trigger);
        assert!(Form::Message.flags(OpFlags::MORE, trigger)? == trigger | OpFlags::MORE);
        assert!(Form::Message.flags(trigger, OpFlags::NONE)? == trigger);
        assert!(Form::Inject.flags(OpFlags::NONE, trigger) == Err(ENOSYS));
        for (call, default) in [
            (trigger | OpFlags::INJECT, OpFlags::NONE),
            (OpFlags::INJECT, trigger),
        ] {
            assert!(Form::Message.flags(call, default) == Err(EINVAL));
        }
        Ok(())
    }

    #[test]
    fn unknown_options_are_refused() -> Result {
        assert!(EndpointOption::from_raw(0, 0)? == EndpointOption::MinMultiRecv);
        assert!(EndpointOption::from_raw(0, 1)? == EndpointOption::CmDataSize);
        for (level, name) in [(0, 2), (0, -1), (1, 0), (-1, 0)] {
            assert!(EndpointOption::from_raw(level, name) == Err(ENOPROTOOPT));
        }
        Ok(())
    }
}
