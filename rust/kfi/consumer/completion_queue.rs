// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    contexts::OwnerId,
    handler::{
        Calls,
        Handled,
        Handler, //
    },
    leftovers::Reads,
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
    Answer,
    Domain, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// The attributes that a completion queue is opened with.
#[derive(Clone, Copy)]
pub struct CompletionQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub size: usize,
    /// Flags.
    pub flags: u64,
    /// The format (`enum kfi_cq_format`).
    pub format: u32,
    /// The wait object (`enum kfi_wait_obj`).
    pub wait_obj: u32,
    /// The condition (`enum kfi_cq_wait_cond`).
    pub wait_cond: u32,
    /// The wait set.
    pub wait_set: Option<AnyObject<'a>>,
    /// The CPU of the handler.
    pub signaling_vector: c_int,
}

impl Default for CompletionQueueAttr<'_> {
    fn default() -> Self {
        Self {
            size: 0,
            flags: 0,
            format: bindings::KFI_CQ_FORMAT_CONTEXT,
            wait_obj: bindings::KFI_WAIT_UNSPEC,
            wait_cond: bindings::KFI_CQ_COND_NONE,
            wait_set: None,
            signaling_vector: 0,
        }
    }
}

object! {
    /// An open completion queue, whatever its format.
    Queue(kfid_cq, CompletionQueue)
}

/// An open completion queue.
pub struct CompletionQueue {
    queue: Handled<Queue, Reads>,
    /// The length of an entry; none if the provider has not said which format it has chosen.
    entry_size: Option<usize>,
}

impl core::ops::Deref for CompletionQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl Closable for CompletionQueue {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.queue.close_with(permit)
    }
}

// SAFETY: As for what it wraps, which is dropped with it.
unsafe impl HasWaitQueue for CompletionQueue {
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
        self.queue.wait_queue()
    }
}

/// Where something was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The number that the user has written.
    Written(u64),
    /// An address as the provider tells it, to be looked for with
    /// [`Places::find`](super::Places::find).
    Address(usize),
}

/// A completion.
pub struct Completion {
    /// The number that the context of the operation stands for, if that is known.
    pub context: Option<u64>,
    /// The flags.
    pub flags: u64,
    /// How much was received.
    pub len: usize,
    /// Where that is.
    pub buf: Place,
    /// Data that came along.
    pub data: u64,
    /// The tag.
    pub tag: u64,
    /// The sender.
    pub src_addr: u64,
}

/// The result of an operation that failed, beyond what completions report.
pub struct Failure {
    /// The fields of a completion.
    pub completion: Completion,
    /// Bytes that had no room.
    pub olen: usize,
    /// The error.
    pub err: c_int,
    /// The provider's.
    pub prov_errno: c_int,
}

/// An entry that the user writes, with numbers for its pointers.
pub struct Written {
    /// For the context.
    pub context: u64,
    /// For where something was received.
    pub buf: u64,
    /// The flags.
    pub flags: u64,
    /// How much was received.
    pub len: usize,
    /// Data that came along.
    pub data: u64,
    /// The tag.
    pub tag: u64,
    /// Bytes that had no room.
    pub olen: usize,
    /// The error, 0 for none.
    pub err: c_int,
    /// The provider's.
    pub prov_errno: c_int,
}

impl CompletionQueue {
    /// Opens a completion queue; without attributes it has the defaults. May sleep.
    ///
    /// With a handler that counts, its [`Calls`] are the context of the queue, and stand for the number
    /// given.
    pub fn open(
        domain: &Domain,
        attr: Option<CompletionQueueAttr<'_>>,
        context: Context,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        Self::open_with(domain, Some(attr.unwrap_or_default()), context, handler)
    }

    /// As [`Self::open`], with a null pointer for the attributes. The provider is believed to choose
    /// `KFI_CQ_FORMAT_CONTEXT` then.
    pub fn open_null(
        domain: &Domain,
        context: Context,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        Self::open_with(domain, None, context, handler)
    }

    /// Opens a completion queue with attributes, or with a null pointer for them.
    fn open_with(
        domain: &Domain,
        attr: Option<CompletionQueueAttr<'_>>,
        context: Context,
        handler: Option<u64>,
    ) -> Result<Answer<Self>> {
        let reads = Arc::new(Reads::new(domain.contexts())?, GFP_KERNEL_ACCOUNT)?;
        let handler = Handler::new(domain.contexts(), reads.owner(), handler)?;
        let lineage = domain.lineage();
        // The format that the provider has chosen.
        let mut format = bindings::KFI_CQ_FORMAT_CONTEXT;
        let queue = Handled::open(handler, reads, context, |called, context| {
            let function: bindings::kfi_comp_handler = match called {
                true => Some(Calls::comp_handler),
                false => None,
            };
            let mut attr = match attr {
                None => None,
                Some(attr) => Some(bindings::kfi_cq_attr {
                    size: attr.size,
                    flags: attr.flags,
                    format: attr.format,
                    wait_obj: attr.wait_obj,
                    wait_cond: attr.wait_cond,
                    signaling_vector: attr.signaling_vector,
                    wait_set: AnyObject::wait_set(attr.wait_set, attr.wait_obj, lineage)?,
                }),
            };
            let mut cq = ptr::null_mut();
            // SAFETY: `domain` is open; `attr` is null or valid, and its wait set null or open. The
            // argument of the handler stays until the queue is closed, and so does the module with the
            // handler.
            to_result(unsafe {
                bindings::kfi_cq_open(
                    domain.as_raw(),
                    attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                    &mut cq,
                    function,
                    context,
                )
            })?;
            let cq = NonNull::new(cq).ok_or(EIO)?;
            format = attr.map_or(format, |attr| attr.format);
            // SAFETY: It has just been opened.
            Ok(unsafe { Queue::new(cq, lineage) })
        });
        Ok(queue.map(|queue| Self {
            queue,
            entry_size: entry_size(format),
        }))
    }

    /// Returns what the handler counts.
    pub fn handled(&self) -> Option<&Arc<Calls>> {
        self.queue.handled()
    }

    /// Returns the owner of the contexts that its user writes.
    fn owner(&self) -> OwnerId {
        self.queue.kept().owner()
    }

    /// Returns an entry that was taken out, which ends a use of its context.
    ///
    /// To be called in a [`Reading`](super::leftovers::Reading) of the queue that has begun before the
    /// entry was taken out: until its end nothing is forgotten that the entry names.
    fn looked_up(&self, entry: &bindings::kfi_cq_tagged_entry, src_addr: u64) -> Completion {
        let (contexts, owner) = (self.queue.kept().contexts(), self.owner());
        let last = entry.flags & u64::from(bindings::KFI_MULTI_RECV) != 0;
        let (context, written) = match contexts.complete(owner, entry.op_context.addr(), last) {
            Some((number, written)) => (Some(number), written),
            None => (None, false),
        };
        let buf = entry.buf.addr();
        // A provider's place may be that of something else by now.
        let number = match written {
            true => contexts.read_back(owner, buf, true),
            false => None,
        };
        Completion {
            context,
            flags: entry.flags,
            len: entry.len,
            buf: number.map_or(Place::Address(buf), Place::Written),
            data: entry.data,
            tag: entry.tag,
            src_addr,
        }
    }

    /// Takes up to `count` completions out; sleeps for them if there is a timeout, with a condition.
    /// Without `source` the senders are not asked for. In process context; may sleep without a timeout,
    /// too, other than kfi_cq_read.
    ///
    /// [`EAVAIL`] if the next entry is that of an operation that has failed, which [`Self::readerr`]
    /// takes out. If there is none: `EAGAIN`, also if [`Self::signal`] ended the sleep; `ETIMEDOUT` once
    /// the time has passed; `EINTR` if a signal ended the sleep. `EIO`, with nothing taken out, of a
    /// provider that has not said which format it has chosen.
    ///
    /// [`EAVAIL`]: crate::kfi::errno::EAVAIL
    pub fn read(
        &self,
        count: usize,
        timeout: Option<c_int>,
        cond: usize,
        source: bool,
    ) -> Result<KVec<Completion>> {
        kernel::task::might_sleep();
        let entry_size = self.entry_size.ok_or(EIO)?;
        let cond = ptr::without_provenance(cond);
        // Room for the longest format, whichever it is, without anything that a provider with a
        // shorter one would leave there.
        let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_ZERO;
        let mut entries =
            KVec::<bindings::kfi_cq_tagged_entry>::with_capacity(count.max(1), flags)?;
        let mut addrs = KVec::<u64>::with_capacity(count.max(1), flags)?;
        let mut completions = KVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        let mut reading = self.queue.kept().begin();
        let raw = entries.as_mut_ptr();
        let addr = addrs.as_mut_ptr();
        // SAFETY: The queue is open; there is room for `count` entries and addresses.
        let ret = unsafe {
            match (timeout, source) {
                (None, true) => bindings::kfi_cq_readfrom(self.as_raw(), raw.cast(), count, addr),
                (None, false) => bindings::kfi_cq_read(self.as_raw(), raw.cast(), count),
                (Some(timeout), true) => bindings::kfi_cq_sreadfrom(
                    self.as_raw(),
                    raw.cast(),
                    count,
                    addr,
                    cond,
                    timeout,
                ),
                (Some(timeout), false) => {
                    bindings::kfi_cq_sread(self.as_raw(), raw.cast(), count, cond, timeout)
                }
            }
        };
        let read = usize::try_from(ret)
            .map_err(|_| Error::from_errno(c_int::try_from(ret).unwrap_or(c_int::MIN)));
        if timeout.is_none() && count != 0 {
            reading.note(&read);
        }
        let read = read?;
        for i in 0..read.min(count) {
            // SAFETY: kfabric has written as many entries of the format, which are that long.
            let entry = unsafe { Self::entry(entry_size, raw.cast(), i) };
            let src_addr = match source {
                // SAFETY: And as many addresses, if it was asked for them.
                true => unsafe { *addr.add(i) },
                false => u64::MAX,
            };
            completions.push(self.looked_up(&entry, src_addr), GFP_KERNEL_ACCOUNT)?;
        }
        drop(reading);
        Ok(completions)
    }

    /// Returns an entry of an array; what the format does not tell is 0.
    ///
    /// # Safety
    ///
    /// There must be an entry `i` of a format whose entries have `size` bytes.
    unsafe fn entry(size: usize, array: *const u8, i: usize) -> bindings::kfi_cq_tagged_entry {
        let mut entry: bindings::kfi_cq_tagged_entry = pin_init::zeroed();
        // SAFETY: By the safety requirements. Every format is the beginning of the longest one.
        unsafe {
            ptr::copy_nonoverlapping(
                array.add(i.wrapping_mul(size)),
                (&raw mut entry).cast::<u8>(),
                size,
            );
        }
        entry
    }

    /// Takes the first error out, which says how the operation has failed; `EAGAIN` if there is none. In
    /// process context; may sleep.
    pub fn readerr(&self) -> Result<Failure> {
        kernel::task::might_sleep();
        let _reading = self.queue.kept().begin();
        let mut entry: bindings::kfi_cq_err_entry = pin_init::zeroed();
        // SAFETY: The queue is open; `entry` is valid for writes.
        let ret = unsafe { bindings::kfi_cq_readerr(self.as_raw(), &mut entry, 0) };
        match c_int::try_from(ret) {
            Ok(1..) => Ok(Failure {
                completion: self.looked_up(
                    &bindings::kfi_cq_tagged_entry {
                        op_context: entry.op_context,
                        flags: entry.flags,
                        len: entry.len,
                        buf: entry.buf,
                        data: entry.data,
                        tag: entry.tag,
                    },
                    0,
                ),
                olen: entry.olen,
                err: entry.err,
                prov_errno: entry.prov_errno,
            }),
            Ok(0) => Err(EAGAIN),
            Ok(error) => Err(Error::from_errno(error)),
            Err(_) => Err(EIO),
        }
    }

    /// Describes an errno of the provider; returns whether there is a description, of which as much
    /// is in `text` as fits. Without `len` the provider gets no room of its own.
    pub fn strerror(&self, prov_errno: c_int, text: &mut [u8], len: usize) -> bool {
        // SAFETY: The queue is open.
        super::describe(text, len, |buf, len| unsafe {
            bindings::kfi_cq_strerror(self.as_raw(), prov_errno, ptr::null(), buf, len)
        })
    }

    /// Ends the waits in [`Self::read`]; from any context.
    pub fn signal(&self) -> Result {
        // SAFETY: The queue is open.
        to_result(unsafe { bindings::kfi_cq_signal(self.as_raw()) })
    }

    /// Adds a completion or an error, if the provider is the software provider. In process context; may
    /// sleep.
    pub fn write(&self, written: &Written) -> Result<Answer> {
        kernel::task::might_sleep();
        // Found again when they are read.
        let (contexts, owner) = (self.queue.kept().contexts(), self.owner());
        let context = contexts.written(owner, written.context)?;
        let buf = contexts
            .written(owner, written.buf)
            .inspect_err(|_| contexts.release(context))?;
        let ret = self.write_raw(&bindings::kfi_cq_err_entry {
            op_context: context.as_raw(),
            flags: written.flags,
            len: written.len,
            buf: buf.as_raw(),
            data: written.data,
            tag: written.tag,
            olen: written.olen,
            err: written.err,
            prov_errno: written.prov_errno,
            ..pin_init::zeroed()
        });
        if ret.is_err() {
            contexts.release(context);
            contexts.release(buf);
        }
        Ok(ret)
    }

    /// Adds an entry.
    fn write_raw(&self, entry: &bindings::kfi_cq_err_entry) -> Result {
        // SAFETY: That is what the software provider calls it; others do not know the name.
        let ops: &bindings::kfi_soft_cq_ops = unsafe { self.any().open_ops(CQ_OPS) }?;
        let write = ops.write.ok_or(ENOSYS)?;
        // SAFETY: The queue is open; `entry` is valid.
        to_result(unsafe { write(self.any().as_raw(), entry) })
    }
}

/// Returns the length of the entries of a format (`enum kfi_cq_format`); `None` if it has none.
fn entry_size(format: u32) -> Option<usize> {
    match format {
        bindings::KFI_CQ_FORMAT_CONTEXT => Some(size_of::<bindings::kfi_cq_entry>()),
        bindings::KFI_CQ_FORMAT_MSG => Some(size_of::<bindings::kfi_cq_msg_entry>()),
        bindings::KFI_CQ_FORMAT_DATA => Some(size_of::<bindings::kfi_cq_data_entry>()),
        bindings::KFI_CQ_FORMAT_TAGGED => Some(size_of::<bindings::kfi_cq_tagged_entry>()),
        _ => None,
    }
}

/// `KFI_SOFT_CQ_OPS_1`.
const CQ_OPS: &CStr = c"kfi_soft_cq_ops_v1";

#[cfg(consumer_tests)]
#[kunit_tests(kfi_queue_entries)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_an_unknown_format_have_no_length() {
        assert!(entry_size(bindings::KFI_CQ_FORMAT_UNSPEC).is_none());
        assert!(entry_size(bindings::KFI_CQ_FORMAT_TAGGED + 1).is_none());
        let attr = CompletionQueueAttr::default();
        assert_eq!(entry_size(attr.format), Some(size_of::<usize>()));
    }
}
