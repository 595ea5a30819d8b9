// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    contexts::{
        Contexts,
        Owner,
        OwnerId, //
    },
    handler::{
        Calls,
        Handled,
        Handler, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    size_result,
    Answer,
    Fabric, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    info::Info,
    wait_obj::WaitObj, //
};

/// The attributes that an event queue is opened with.
#[derive(Clone, Copy)]
pub struct EventQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub size: usize,
    /// Flags.
    pub flags: u64,
    /// The wait object (`enum kfi_wait_obj`).
    pub wait_obj: u32,
    /// The wait set.
    pub wait_set: Option<AnyObject<'a>>,
    /// The CPU of the handler.
    pub signaling_vector: c_int,
}

impl Default for EventQueueAttr<'_> {
    fn default() -> Self {
        Self {
            size: 0,
            flags: 0,
            wait_obj: bindings::KFI_WAIT_UNSPEC,
            wait_set: None,
            signaling_vector: 0,
        }
    }
}

object! {
    /// An open event queue as C knows it.
    Queue(kfid_eq, EventQueue)
}

/// An open event queue, with the owner of the contexts that its user writes.
pub struct EventQueue {
    queue: Handled<Queue, Owner>,
    /// How many events were taken out.
    taken: Atomic<u64>,
}

/// The beginning of the entry of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// There is too little.
    Nothing,
    /// A number that the user has written, which the entry begins with.
    Written(u64),
    /// The address of the object that the provider tells of, to compare it with others.
    Object(usize),
}

/// An event.
pub struct Event {
    /// Its type (`enum kfi_eq_event`).
    pub event: u32,
    /// The bytes that its entry has.
    pub len: usize,
    /// The beginning of its entry.
    pub first: First,
}

/// An error that an operation of an object has ended with.
pub struct EventError {
    /// The address of the object, to compare it with others.
    pub object: usize,
    /// The number that its context stands for; 0 if it means nothing to the user.
    pub context: u64,
    /// Data of the event.
    pub data: u64,
    /// The error.
    pub err: c_int,
    /// The provider's.
    pub prov_errno: c_int,
    /// The length that the call returned.
    pub len: usize,
}

/// The bytes of a pointer.
const POINTER: usize = size_of::<usize>();

/// Where the description of a request for a connection is.
const INFO: usize = core::mem::offset_of!(bindings::kfi_eq_cm_entry, info);

/// Returns the place of a pointer in an entry, if that is long enough.
fn pointer(data: &mut [u8], at: usize) -> Option<&mut [u8; POINTER]> {
    data.get_mut(at..)?.first_chunk_mut::<POINTER>()
}

impl core::ops::Deref for EventQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl Closable for EventQueue {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.queue.close_with(permit)
    }
}

// SAFETY: As for what it wraps, which is dropped with it.
unsafe impl HasWaitQueue for EventQueue {
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
        self.queue.wait_queue()
    }
}

impl EventQueue {
    /// Opens an event queue; without attributes it has the defaults. May sleep.
    ///
    /// With a handler that counts, its [`Calls`] are the context of the queue, and stand for the number
    /// given. `contexts` are those of the domains whose events come here: of others only 0 is told.
    pub fn open(
        fabric: &Fabric,
        attr: Option<EventQueueAttr<'_>>,
        context: Context,
        contexts: &Arc<Contexts>,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        let attr = Some(attr.unwrap_or_default());
        Self::open_with(fabric, attr, context, contexts, handler)
    }

    /// As [`Self::open`], with a null pointer for the attributes.
    pub fn open_null(
        fabric: &Fabric,
        context: Context,
        contexts: &Arc<Contexts>,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        Self::open_with(fabric, None, context, contexts, handler)
    }

    /// Opens an event queue with attributes, or with a null pointer for them.
    fn open_with(
        fabric: &Fabric,
        attr: Option<EventQueueAttr<'_>>,
        context: Context,
        contexts: &Arc<Contexts>,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        let owner = Arc::new(Contexts::owner(contexts)?, GFP_KERNEL_ACCOUNT)?;
        let handler = Handler::new(contexts, owner.id(), handler)?;
        let lineage = fabric.lineage();
        let queue = Handled::open(handler, owner, context, |called, context| {
            let function: bindings::kfi_event_handler = match called {
                true => Some(Calls::event_handler),
                false => None,
            };
            let mut attr = match attr {
                None => None,
                Some(attr) => Some(bindings::kfi_eq_attr {
                    size: attr.size,
                    flags: attr.flags,
                    wait_obj: attr.wait_obj,
                    wait_set: AnyObject::wait_set(attr.wait_set, attr.wait_obj, lineage)?,
                    signaling_vector: attr.signaling_vector,
                }),
            };
            let mut eq = ptr::null_mut();
            // SAFETY: `fabric` is open; `attr` is null or valid, and its wait set null or open. The
            // argument of the handler stays until the queue is closed, and so does the module with the
            // handler.
            to_result(unsafe {
                bindings::kfi_eq_open(
                    fabric.as_raw(),
                    attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                    &mut eq,
                    function,
                    context,
                )
            })?;
            let eq = NonNull::new(eq).ok_or(EIO)?;
            // SAFETY: It has just been opened.
            Ok(unsafe { Queue::new(eq, lineage) })
        });
        Ok(queue.map(|queue| Self {
            queue,
            taken: Atomic::new(0),
        }))
    }

    /// Returns what the handler counts.
    pub fn handled(&self) -> Option<&Arc<Calls>> {
        self.queue.handled()
    }

    /// Returns the owner of the contexts that its user writes.
    fn owner(&self) -> OwnerId {
        self.queue.kept().id()
    }

    /// Returns the contexts.
    fn contexts(&self) -> &Arc<Contexts> {
        self.queue.kept().contexts()
    }

    /// Describes an errno of the provider; returns whether there is a description, of which as much
    /// is in `text` as fits. Without `len` the provider gets no room of its own.
    pub fn strerror(&self, prov_errno: c_int, text: &mut [u8], len: usize) -> bool {
        // SAFETY: The queue is open.
        super::describe(text, len, |buf, len| unsafe {
            bindings::kfi_eq_strerror(self.as_raw(), prov_errno, ptr::null(), buf, len)
        })
    }

    /// Takes the first event out, with its type and length, or only looks at it, with `KFI_PEEK`; sleeps
    /// for it if there is a timeout. `data` is 0 behind the event; `EINTR` for a signal. In
    /// process context; may sleep without a timeout, too, other than kfi_eq_read.
    pub fn read(&self, data: &mut [u8], flags: u64, timeout: Option<c_int>) -> Result<Event> {
        kernel::task::might_sleep();
        let peek = flags & u64::from(bindings::KFI_PEEK) != 0;
        loop {
            // Relaxed: a thread that ends the context of an event has counted it before, and one that
            // finds that ended has seen so under the same lock. Here and below.
            let taken = self.taken.load(ordering::Relaxed);
            data.fill(0);
            let (event, len) = self.read_raw(data, flags, timeout)?;
            if !peek {
                self.taken.fetch_add(1, ordering::Relaxed);
            }
            let entry = data.get_mut(..len).ok_or(EIO)?;
            let first = self.looked_up(event, entry, !peek);
            // An event that somebody else has taken out meanwhile may be one that the user has written
            // and that is already forgotten; it must not be taken for one of the provider's.
            if peek && self.taken.load(ordering::Relaxed) != taken {
                if kernel::current!().signal_pending() {
                    return Err(EINTR);
                }
                continue;
            }
            return Ok(Event { event, len, first });
        }
    }

    /// Takes the first event out as it is, with its type and length.
    fn read_raw(
        &self,
        data: &mut [u8],
        flags: u64,
        timeout: Option<c_int>,
    ) -> Result<(u32, usize)> {
        let mut event = 0;
        let (buf, len) = (data.as_mut_ptr().cast(), data.len());
        // SAFETY: The queue is open; there is room for `len` bytes.
        let ret = unsafe {
            match timeout {
                None => bindings::kfi_eq_read(self.as_raw(), &mut event, buf, len, flags),
                Some(timeout) => {
                    bindings::kfi_eq_sread(self.as_raw(), &mut event, buf, len, timeout, flags)
                }
            }
        };
        Ok((event, size_result(ret)?.min(data.len())))
    }

    /// Turns the beginning of an entry that was just read back into the number that was written, if it
    /// was. `taken` says that the event is not in the queue any more.
    ///
    /// An entry that the user has written begins with what stands for a number from before it is
    /// in the queue until it was taken out, once: nobody else can end that.
    fn looked_up(&self, event: u32, entry: &mut [u8], taken: bool) -> First {
        let Some(bytes) = pointer(entry, 0) else {
            return First::Nothing;
        };
        let address = usize::from_ne_bytes(*bytes);
        if let Some(number) = self.contexts().read_back(self.owner(), address, taken) {
            *bytes = (number as usize).to_ne_bytes();
            return First::Written(number);
        }
        if let (bindings::KFI_CONNREQ, Some(bytes)) = (event, pointer(entry, INFO)) {
            // A consumer in Rust can make no use of the description.
            let info = usize::from_ne_bytes(core::mem::take(bytes));
            if taken {
                // SAFETY: The event is the provider's: the user writes events by `write` alone, which refuses
                // this type. With its entry, which is taken out once, the consumer owns the description,
                // or it is null.
                let info = unsafe { Info::from_raw(ptr::with_exposed_provenance_mut(info)) };
                drop(info);
            }
        }
        First::Object(address)
    }

    /// Adds an event and returns its length. The first word could be taken for a pointer, so one that
    /// stands for it is handed over, and turned back when the event is read. `EINVAL` for `KFI_CONNREQ`:
    /// a reader of such an event owns the description in it, which only a provider can make. In process
    /// context; may sleep, other than kfi_eq_write.
    pub fn write(&self, event: u32, data: &[u8], flags: u64) -> Result<Answer<usize>> {
        kernel::task::might_sleep();
        if event == bindings::KFI_CONNREQ {
            return Err(EINVAL);
        }
        let mut copy = KVVec::with_capacity(data.len(), GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        copy.extend_from_slice(data, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        let mut context = None;
        if let Some(bytes) = pointer(&mut copy, 0) {
            let number = usize::from_ne_bytes(*bytes) as u64;
            let written = self.contexts().written(self.owner(), number)?;
            *bytes = written.as_number().to_ne_bytes();
            context = Some(written);
        }
        let ret = self.write_raw(event, &copy, flags);
        if let (Some(context), true) = (context, ret.is_err()) {
            self.contexts().release(context);
        }
        Ok(ret)
    }

    /// Adds an event as it is.
    fn write_raw(&self, event: u32, data: &[u8], flags: u64) -> Result<usize> {
        let (buf, len) = (data.as_ptr().cast(), data.len());
        // SAFETY: The queue is open; there are `len` bytes.
        size_result(unsafe { bindings::kfi_eq_write(self.as_raw(), event, buf, len, flags) })
    }

    /// Takes the first error out. In process context; may sleep.
    pub fn readerr(&self) -> Result<EventError> {
        kernel::task::might_sleep();
        let mut entry: bindings::kfi_eq_err_entry = pin_init::zeroed();
        // SAFETY: The queue is open; `entry` is valid for writes.
        let ret = unsafe { bindings::kfi_eq_readerr(self.as_raw(), &mut entry, 0) };
        let len = size_result(ret)?;
        let context = entry.context.addr();
        let written = self.contexts().read_back(self.owner(), context, true);
        Ok(EventError {
            object: entry.fid.addr(),
            context: written.unwrap_or_else(|| self.contexts().number_of(context)),
            data: entry.data,
            err: entry.err,
            prov_errno: entry.prov_errno,
            len,
        })
    }

    /// Adds an error, if the provider is the software provider; its context is one that stands for
    /// `number`. In process context; may sleep.
    pub fn write_error(
        &self,
        number: u64,
        data: u64,
        err: c_int,
        prov_errno: c_int,
    ) -> Result<Answer> {
        kernel::task::might_sleep();
        // Found again when it is read.
        let context = self.contexts().written(self.owner(), number)?;
        let ret = self.write_error_raw(&bindings::kfi_eq_err_entry {
            context: context.as_raw(),
            data,
            err,
            prov_errno,
            ..pin_init::zeroed()
        });
        if ret.is_err() {
            self.contexts().release(context);
        }
        Ok(ret)
    }

    /// Adds an error as it is.
    fn write_error_raw(&self, entry: &bindings::kfi_eq_err_entry) -> Result {
        // SAFETY: That is what the software provider calls it; others do not know the name.
        let ops: &bindings::kfi_soft_eq_ops = unsafe { self.any().open_ops(EQ_OPS) }?;
        let write = ops.write_error.ok_or(ENOSYS)?;
        // SAFETY: The queue is open; `entry` is valid.
        to_result(unsafe { write(self.any().as_raw(), entry) })
    }
}

/// `KFI_SOFT_EQ_OPS_1`.
const EQ_OPS: &CStr = c"kfi_soft_eq_ops_v1";
