// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use core::ptr;
use kernel::{
    cpu::CpuId,
    error::from_result,
    prelude::*,
    sync::rcu, //
};

use super::{
    handler::Handler,
    AddressVectorClass,
    Inserted,
    MemoryRegionClass,
    WaitAttr, //
};
use crate::kfi::{
    bindings,
    context::Context,
    fid::{
        Class,
        ExtraOps,
        Fid,
        Object,
        OpsName,
        Tables, //
    },
    hold::Hold,
    linux::timeout::Timeout, //
};

/// The class of event queues.
pub struct EventQueueClass;

// SAFETY: `struct kfid_eq` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for EventQueueClass {
    type Head = bindings::kfid_eq;
    type Tables = bindings::kfi_ops_eq;
    type Data = EventQueueData;
    const FCLASS: usize = bindings::KFI_CLASS_EQ as usize;
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, data: &Self::Data) -> Self::Head {
        bindings::kfid_eq {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
            event_handler: data.handler.function(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, tables)
    }

    fn opened(data: &Self::Data) {
        data.handler.opened();
    }

    fn closing(data: &Self::Data) {
        data.handler.closing();
    }
}

/// The data that the abstractions keep of a queue.
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct EventQueueData {
    handler: Handler<unsafe extern "C" fn(*mut bindings::kfid_eq, *mut c_void)>,
}

impl EventQueueData {
    /// Of a queue with a handler, if it has one.
    pub(super) fn new(handler: bindings::kfi_event_handler) -> Self {
        Self {
            handler: Handler::new(handler),
        }
    }
}

impl Default for EventQueueData {
    fn default() -> Self {
        Self::new(None)
    }
}

/// Bytes of the largest event.
pub const EVENT_MAX: usize = 128;

/// An event: its type and its entry, whatever that is.
///
/// It names the object that it is about if that is open when it is made; else it names none.
#[derive(Clone, Copy)]
pub struct Event {
    /// The type of the event.
    event: u32,
    /// The entry.
    data: [u8; EVENT_MAX],
    /// Bytes of the entry.
    len: usize,
}

impl Event {
    /// A memory region is registered, with a key. It is made when the region is open, as in
    /// [`Object::opened`], and has the context of the region.
    pub fn mr_complete(region: &Fid<impl Object<Class = MemoryRegionClass>>, key: u64) -> Self {
        let context = region.context();
        Self::new(bindings::KFI_MR_COMPLETE, pointer_to(region), context, key)
    }

    /// An insertion of addresses into a vector has ended; as many as `count` were inserted.
    pub fn av_complete(
        vector: &Fid<impl Object<Class = AddressVectorClass>>,
        insertion: Inserted,
        count: u64,
    ) -> Self {
        let context = insertion.context();
        Self::new(
            bindings::KFI_AV_COMPLETE,
            pointer_to(vector),
            context,
            count,
        )
    }

    /// Of no object, with a number.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn with_number(number: u64) -> Self {
        Self::new(
            bindings::KFI_MR_COMPLETE,
            Context::NONE,
            Context::NONE,
            number,
        )
    }

    /// Returns the bytes of the entry.
    pub fn bytes(&self) -> &[u8] {
        self.data.get(..self.len).unwrap_or(&self.data)
    }

    /// An event about an object that an operation with `context` has ended for.
    fn new(event: u32, fid: Context, context: Context, data: u64) -> Self {
        const {
            assert!(core::mem::offset_of!(bindings::kfi_eq_entry, fid) == 0);
            assert!(core::mem::offset_of!(bindings::kfi_eq_entry, context) == 8);
            assert!(core::mem::offset_of!(bindings::kfi_eq_entry, data) == 16);
            assert!(size_of::<bindings::kfi_eq_entry>() == 24);
        }
        let entry = [fid.as_number() as u64, context.as_number() as u64, data];
        let mut event = Self {
            event,
            data: [0; EVENT_MAX],
            len: size_of::<bindings::kfi_eq_entry>(),
        };
        for (to, from) in event
            .data
            .iter_mut()
            .zip(entry.iter().flat_map(|word| word.to_ne_bytes()))
        {
            *to = from;
        }
        event
    }
}

/// Returns the pointer that an event has to an object, null unless that is open: consumers follow it.
/// The object may be closed before they do, by themselves: a hold that kept it would have its close
/// refused.
fn pointer_to(object: &Fid<impl Object>) -> Context {
    if object.dependents().is_open() {
        Context::from_raw(object.head().cast())
    } else {
        Context::NONE
    }
}

/// Something that has failed.
#[derive(Clone, Copy)]
pub struct EventError {
    /// The object concerned, a pointer that consumers follow, or null.
    fid: Context,
    /// The context of the operation or object.
    pub context: Context,
    /// Data of the event.
    pub data: u64,
    /// A positive errno.
    pub err: c_int,
    /// An errno of the provider.
    pub prov_errno: c_int,
}

impl EventError {
    /// An operation on an object has failed, without an errno of the provider. The object is named if
    /// it is open when this is made; the context is that of the operation.
    pub fn new(object: &Fid<impl Object>, context: Context, data: u64, error: Error) -> Self {
        Self {
            fid: pointer_to(object),
            context,
            data,
            err: error.to_errno().wrapping_neg(),
            prov_errno: 0,
        }
    }
}

/// The operations of an event queue (`struct kfi_ops_eq`).
///
/// All but [`Self::sread`] may be called from any context and must not sleep.
///
/// A handler that the queue was opened with ([`EventQueueAttr::has_handler`]) is called once for each
/// time that it is armed: when the queue is opened, and by a read that answers `EAGAIN`. It is due when
/// there is an event and it is armed; the provider has [`call_event_handler`] called then, in process
/// context.
///
/// An event, written here or by a consumer, is read only from the queue that it was written to, and only
/// once; a peek does not count. [`Event`] and [`EventError`] can be copied, so no type ensures that. Reading
/// an event gives its context back to the consumer: so it has the context of its own object or operation,
/// which has ended. A registration that the call then refuses must have no event, and no event may be
/// written after the object that it names was closed.
pub trait EventQueueOps: Object<Class = EventQueueClass> {
    /// Returns the number of entries that there is room for.
    fn size(&self) -> usize;

    /// Takes the first event of up to `len` bytes out, or copies it if `peek`; `EAGAIN` if there is
    /// none, `EAVAIL` if an error comes first, `ETOOSMALL` if it is larger.
    fn read(this: &Fid<Self>, len: usize, peek: bool) -> Result<Event>;

    /// Takes the first error out, or copies it if `peek`; `EAGAIN` if none comes first.
    fn readerr(&self, peek: bool) -> Result<EventError>;

    /// Adds an event; `EAGAIN` if the queue is full.
    fn write(this: &Fid<Self>, event: &Event) -> Result {
        let _ = (this, event);
        Err(ENOSYS)
    }

    /// As [`Self::read`], but sleeps while there is nothing.
    fn sread(this: &Fid<Self>, len: usize, peek: bool, timeout: Timeout) -> Result<Event> {
        let _ = (this, len, peek, timeout);
        Err(ENOSYS)
    }

    /// Returns a text for an errno of the provider.
    fn strerror(prov_errno: c_int) -> &'static CStr {
        let _ = prov_errno;
        super::NO_PROVIDER_ERROR
    }
}

/// Event queues that tests write errors to. From any context; must not sleep.
pub trait EventQueueTestOps: EventQueueOps {
    /// Adds an error; `EAGAIN` if the queue is full.
    fn write_error(this: &Fid<Self>, error: &EventError) -> Result;
}

/// The attributes that an event queue is opened with (`struct kfi_eq_attr`).
pub struct EventQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub size: usize,
    /// Flags, yet to be checked.
    pub flags: u64,
    /// How threads want to wait.
    pub wait: WaitAttr<'a>,
    /// Whether there is a handler, for [`call_event_handler`].
    pub has_handler: bool,
    /// Where the handler runs.
    pub affinity: Option<CpuId>,
}

impl Default for EventQueueAttr<'_> {
    /// As C has it without attributes.
    fn default() -> Self {
        Self {
            size: 0,
            flags: 0,
            wait: WaitAttr::Unspec,
            has_handler: false,
            affinity: None,
        }
    }
}

impl EventQueueAttr<'_> {
    /// Reads attributes from C; null means the defaults.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid, and its wait set null or an open object if it asks for one.
    pub(super) unsafe fn from_raw(
        attr: *const bindings::kfi_eq_attr,
        handler: bindings::kfi_event_handler,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let Some(attr) = (unsafe { attr.as_ref() }) else {
            return Ok(Self {
                has_handler: handler.is_some(),
                ..Self::default()
            });
        };
        Ok(Self {
            size: attr.size,
            flags: attr.flags,
            // SAFETY: By the safety requirements.
            wait: unsafe { WaitAttr::from_raw(attr.wait_obj, attr.wait_set) }?,
            has_handler: handler.is_some(),
            affinity: super::affinity(attr.flags, attr.signaling_vector)?,
        })
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: EventQueueOps> Tables<EventQueueClass> for T {
    const TABLES: &'static bindings::kfi_ops_eq = &bindings::kfi_ops_eq {
        size: size_of::<bindings::kfi_ops_eq>(),
        read: Some(read_callback::<T>),
        readerr: Some(readerr_callback::<T>),
        write: Some(write_callback::<T>),
        sread: Some(sread_callback::<T>),
        strerror: Some(strerror_callback::<T>),
    };
}

/// Stores what `read` returns and returns its length.
///
/// # Safety
///
/// `event` must be null or valid for writes, `buf` null or valid for writes of `len` bytes.
unsafe fn read_into(
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
    read: impl FnOnce(bool) -> Result<Event>,
) -> isize {
    from_result(|| {
        if event.is_null() || (buf.is_null() && len != 0) || flags & !super::PEEK != 0 {
            return Err(EINVAL);
        }
        let entry = read(flags & super::PEEK != 0)?;
        let data = entry.data.get(..entry.len.min(len)).unwrap_or(&[]);
        // SAFETY: Both are valid for writes, as they are not null, and `data` is no more than `len`
        // bytes; nothing is written to a null `buf`, as `len` is 0 then.
        unsafe {
            event.write(entry.event);
            ptr::copy_nonoverlapping(data.as_ptr(), buf.cast(), data.len());
        }
        isize::try_from(data.len()).map_err(|_| EOVERFLOW)
    })
}

/// Takes an event out.
///
/// # Safety
///
/// `eq` must be an open queue of `T`, `event` and `buf` as for [`read_into`].
unsafe extern "C" fn read_callback<T: EventQueueOps>(
    eq: *mut bindings::kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(eq) };
    // SAFETY: By the safety requirements.
    unsafe { read_into(event, buf, len, flags, |peek| T::read(this, len, peek)) }
}

/// Waits for an event.
///
/// # Safety
///
/// As for [`read_callback`].
unsafe extern "C" fn sread_callback<T: EventQueueOps>(
    eq: *mut bindings::kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    // Close waits for this section, so that the queue stays until it is held.
    let section = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(eq) };
    // A queue with a thread in here cannot be closed.
    let hold = Hold::new(this);
    drop(section);
    // SAFETY: By the safety requirements.
    unsafe {
        read_into(event, buf, len, flags, |peek| {
            let hold = hold?;
            T::sread(hold.fid(), len, peek, Timeout::from_raw(timeout))
        })
    }
}

/// Takes an error out.
///
/// # Safety
///
/// `eq` must be an open queue of `T`, `buf` null or valid.
unsafe extern "C" fn readerr_callback<T: EventQueueOps>(
    eq: *mut bindings::kfid_eq,
    buf: *mut bindings::kfi_eq_err_entry,
    flags: u64,
) -> isize {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(eq) };
    from_result(|| {
        if buf.is_null() || flags & !super::PEEK != 0 {
            return Err(EINVAL);
        }
        let error = this.readerr(flags & super::PEEK != 0)?;
        let entry = bindings::kfi_eq_err_entry {
            fid: error.fid.as_raw().cast(),
            context: error.context.as_raw(),
            data: error.data,
            err: error.err,
            prov_errno: error.prov_errno,
            err_data: ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: `buf` is not null, so that it is valid.
        unsafe { super::write_error(buf, entry, &raw mut (*buf).err_data) };
        // As libfabric does: the bytes of the entry, as for other events.
        isize::try_from(size_of::<bindings::kfi_eq_err_entry>()).map_err(|_| EOVERFLOW)
    })
}

/// Adds an event.
///
/// # Safety
///
/// `eq` must be an open queue of `T`, `buf` null or valid for reads of `len` bytes.
unsafe extern "C" fn write_callback<T: EventQueueOps>(
    eq: *mut bindings::kfid_eq,
    event: u32,
    buf: *const c_void,
    len: usize,
    flags: u64,
) -> isize {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(eq) };
    from_result(|| {
        if flags != 0 || len > EVENT_MAX || (buf.is_null() && len != 0) {
            return Err(EINVAL);
        }
        let mut entry = Event {
            event,
            data: [0; EVENT_MAX],
            len,
        };
        // SAFETY: `buf` is valid for reads of `len` bytes, as it is not null or `len` is 0, and
        // there is room for `EVENT_MAX`.
        unsafe { ptr::copy_nonoverlapping(buf.cast(), entry.data.as_mut_ptr(), len) };
        T::write(this, &entry)?;
        isize::try_from(len).map_err(|_| EOVERFLOW)
    })
}

/// Returns a text.
///
/// # Safety
///
/// `buf` must be null or valid for writes of `len` bytes.
unsafe extern "C" fn strerror_callback<T: EventQueueOps>(
    _eq: *mut bindings::kfid_eq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: By the safety requirements.
    unsafe { super::tell_text(T::strerror(prov_errno), buf, len) }
}

/// Adds an error.
///
/// # Safety
///
/// `eq` must be the start of an open queue of `T`, `entry` null or valid.
unsafe extern "C" fn write_error_callback<T: EventQueueTestOps>(
    eq: *mut bindings::kfid,
    entry: *const bindings::kfi_eq_err_entry,
) -> c_int {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(eq.cast()) };
    // SAFETY: By the safety requirements.
    let entry = unsafe { entry.as_ref() };
    from_result(|| {
        let entry = entry.ok_or(EINVAL)?;
        if entry.err <= 0 {
            return Err(EINVAL);
        }
        let error = EventError {
            fid: Context::from_raw(entry.fid.cast()),
            context: Context::from_raw(entry.context),
            data: entry.data,
            err: entry.err,
            prov_errno: entry.prov_errno,
        };
        T::write_error(this, &error)?;
        Ok(0)
    })
}

/// Calls the handler that a queue was opened with, if there is one and the queue is open.
///
/// In process context, without locks: the handler may sleep. Close waits for it; a handler that
/// closes its own queue is refused by [`Object::may_close`], or waits for itself.
pub fn call_event_handler<T: EventQueueOps>(eq: &Fid<T>) {
    eq.data().handler.call(|handler| {
        // SAFETY: The handler came with the queue from C, to be called while the queue is open, which
        // it is during this call.
        unsafe { handler(eq.head(), eq.context().as_raw()) };
    });
}

/// Returns the table that lets tests write errors to a queue of `T`, if that is what `name` asks
/// for.
pub fn event_queue_test_ops<'o, T: EventQueueTestOps>(
    _eq: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: EventQueueTestOps> Table<T> {
        const OPS: bindings::kfi_soft_eq_ops = bindings::kfi_soft_eq_ops {
            size: size_of::<bindings::kfi_soft_eq_ops>(),
            write_error: Some(write_error_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects queues of `T`.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_SOFT_EQ_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(ENOSYS)
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_event_queue)]
mod tests {
    use super::*;
    use crate::kfi::{
        fid::{
            NewFid,
            Opening,
            TestFid, //
        },
        provider::{
            handler::tests::{
                count,
                is_called_while_open, //
            },
            MemoryRegionOps, //
        }, //
    };

    /// A queue without anything in it.
    struct Queue;

    impl Object for Queue {
        type Class = EventQueueClass;

        fn release(&self) {}
    }

    impl EventQueueOps for Queue {
        fn size(&self) -> usize {
            0
        }

        fn read(_this: &Fid<Self>, _len: usize, _peek: bool) -> Result<Event> {
            Err(EAGAIN)
        }

        fn readerr(&self, _peek: bool) -> Result<EventError> {
            Err(EAGAIN)
        }
    }

    #[test]
    fn handler_is_called_while_the_queue_is_open() -> Result {
        is_called_while_open(
            || Queue,
            || EventQueueData::new(Some(count)),
            call_event_handler,
        )
    }

    /// A region.
    struct Region;

    impl Object for Region {
        type Class = MemoryRegionClass;

        fn release(&self) {}
    }

    impl MemoryRegionOps for Region {}

    /// Returns the addresses of the objects that an event and an error about a region name.
    fn named(region: &Fid<Region>) -> [Option<usize>; 2] {
        let event = Event::mr_complete(region, 7);
        let word = event.bytes().first_chunk().copied();
        let error = EventError::new(region, Context::NONE, 0, EINVAL);
        [word.map(usize::from_ne_bytes), Some(error.fid.as_number())]
    }

    #[test]
    fn no_event_names_what_is_not_open() -> Result {
        // Not yet, and never, as the call that has made it fails.
        let new = NewFid::<Region>::new(Region, Opening::new(Context::NONE, Default::default()))?;
        assert_eq!(named(&new), [Some(0); 2]);
        drop(new);

        let region = TestFid::open(Region, Context::NONE)?;
        let memory = region.arc();
        assert_eq!(named(&region), [Some(region.head().addr()); 2]);
        // No more.
        drop(region);
        assert_eq!(named(&memory), [Some(0); 2]);
        Ok(())
    }
}
