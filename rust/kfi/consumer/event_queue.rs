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
        OwnerId,
        Told, //
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

object! {
    /// An open event queue as C knows it.
    Queue(kfid_eq, EventQueue)
}

/// An open event queue, with whose the contexts are that its user writes.
pub struct EventQueue {
    queue: Handled<Queue, Owner>,
    /// How many events were taken out.
    taken: Atomic<u64>,
}

/// An event.
pub struct Event {
    /// Its type (`enum kfi_eq_event`).
    pub event: u32,
    /// The bytes that its entry has.
    pub len: usize,
    /// The beginning of its entry, if that is long enough.
    pub first: Option<Told>,
}

/// The bytes of a pointer.
const POINTER: usize = size_of::<usize>();

/// Where the description of a request for a connection is.
const INFO: usize = core::mem::offset_of!(bindings::kfi_eq_cm_entry, info);

/// Returns a pointer in an entry, if that is long enough.
fn pointer(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..)?.first_chunk::<POINTER>()?;
    Some(usize::from_ne_bytes(*bytes))
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
    /// With a handler that counts, what that counts is the context of the queue, and stands for the
    /// number given.
    pub fn open(
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
            // SAFETY: `fabric` is open; `attr` is null or valid, and its wait set null or open. What
            // the handler takes stays until the queue is closed, and so does the module with the
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

    /// Returns whose the contexts are that its user writes.
    pub fn owner(&self) -> OwnerId {
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

    /// Returns how many events were taken out. An event that was only looked at is there still if this
    /// has not changed since before.
    pub fn taken(&self) -> u64 {
        // Relaxed: a thread that ends the context of an event has counted it before, and one that
        // finds that ended has seen so under the same lock.
        self.taken.load(ordering::Relaxed)
    }

    /// Takes the first event out, with its type and length; sleeps for it if there is a timeout.
    pub fn read(&self, data: &mut [u8], flags: u64, timeout: Option<c_int>) -> Result<Event> {
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
        let len = size_result(ret)?.min(data.len());
        let entry = data.get(..len).unwrap_or(&[]);
        let first = pointer(entry, 0);
        let taken = flags & u64::from(bindings::KFI_PEEK) == 0;
        if taken {
            // Relaxed: before the context of the event is ended, and that is done under a lock.
            self.taken.fetch_add(1, ordering::Relaxed);
        }
        if let (bindings::KFI_CONNREQ, true, Some(first)) = (event, taken, first) {
            // An entry that this consumer has written begins with what stands for a number, until
            // that is read back, and what follows is no pointer.
            let written = self.contexts().read_back(self.owner(), first, false);
            if let (None, Some(info)) = (written, pointer(entry, INFO)) {
                // SAFETY: With the entry of such an event, which is the provider's, and is taken out
                // once, the consumer owns the description, or it is null.
                let info = unsafe { Info::from_raw(ptr::with_exposed_provenance_mut(info)) };
                // Nobody can make use of it here.
                drop(info);
            }
        }
        let first = first.map(Told::new);
        Ok(Event { event, len, first })
    }

    /// Adds an event; returns its length. What could be taken for a pointer at its beginning is one
    /// that stands for that, so that it is known again.
    pub fn write(&self, event: u32, data: &mut [u8], flags: u64) -> Result<Answer<usize>> {
        let mut context = None;
        if let Some(bytes) = data.first_chunk_mut::<POINTER>() {
            let number = usize::from_ne_bytes(*bytes) as u64;
            let written = self.contexts().written(self.owner(), number)?;
            *bytes = written.as_number().to_ne_bytes();
            context = Some(written);
        }
        let ret = self.write_raw(event, data, flags);
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

    /// Takes the first error out, with what the call returned.
    pub fn readerr(&self) -> Result<(bindings::kfi_eq_err_entry, usize)> {
        let mut entry = pin_init::zeroed();
        // SAFETY: The queue is open; `entry` is valid for writes.
        let ret = unsafe { bindings::kfi_eq_readerr(self.as_raw(), &mut entry, 0) };
        Ok((entry, size_result(ret)?))
    }

    /// Adds an error, if the provider is the software provider; its context is one that stands for
    /// `number`.
    pub fn write_error(&self, number: u64, entry: &bindings::kfi_eq_err_entry) -> Result<Answer> {
        // Found again when it is read.
        let context = self.contexts().written(self.owner(), number)?;
        let ret = self.write_error_raw(&bindings::kfi_eq_err_entry {
            context: context.as_raw(),
            ..*entry
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
