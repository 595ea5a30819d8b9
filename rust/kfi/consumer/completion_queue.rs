// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    handler::Calls,
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Object, //
    },
    Domain, //
};
use crate::kfi::{
    bindings,
    errno::to_result,
    fid::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// What a completion queue is opened with.
#[derive(Clone, Copy)]
pub(crate) struct CompletionQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub(crate) size: usize,
    /// Flags.
    pub(crate) flags: u64,
    /// The format (`enum kfi_cq_format`).
    pub(crate) format: u32,
    /// The wait object (`enum kfi_wait_obj`).
    pub(crate) wait_obj: u32,
    /// The condition (`enum kfi_cq_wait_cond`).
    pub(crate) wait_cond: u32,
    /// The wait set.
    pub(crate) wait_set: Option<AnyObject<'a>>,
    /// The CPU of the handler.
    pub(crate) signaling_vector: c_int,
}

object! {
    /// An open completion queue, whatever its format.
    Queue(kfid_cq)
}

/// An open completion queue.
pub(crate) struct CompletionQueue {
    queue: Queue,
    format: u32,
    /// What its handler counts, until the queue is closed.
    calls: Option<Arc<Calls>>,
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        if !self.queue.object().end() {
            // The handler may still be called.
            core::mem::forget(self.calls.take());
        }
    }
}

impl core::ops::Deref for CompletionQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl Closable for CompletionQueue {
    type Head = bindings::kfid_cq;

    fn object(&mut self) -> &mut Object<bindings::kfid_cq> {
        self.queue.object()
    }
}

impl HasWaitQueue for CompletionQueue {
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
        self.queue.wait_queue()
    }
}

/// The longest entry, and who sent it.
pub(crate) type Completion = (bindings::kfi_cq_tagged_entry, u64);

impl CompletionQueue {
    /// Opens a completion queue; without attributes it has the defaults. May sleep.
    ///
    /// With a handler that counts, its context is the address that [`Self::handled`] tells instead.
    pub(crate) fn open(
        domain: &Domain,
        attr: Option<CompletionQueueAttr<'_>>,
        context: Context,
        with_handler: bool,
    ) -> Result<Self> {
        let calls = if with_handler {
            Some(Calls::new()?)
        } else {
            None
        };
        let handler: bindings::kfi_comp_handler = match &calls {
            Some(_) => Some(Calls::comp_handler),
            None => None,
        };
        let context = calls.as_ref().map_or(context.as_raw(), Calls::address);
        let mut attr = attr.map(|attr| bindings::kfi_cq_attr {
            size: attr.size,
            flags: attr.flags,
            format: attr.format,
            wait_obj: attr.wait_obj,
            wait_cond: attr.wait_cond,
            signaling_vector: attr.signaling_vector,
            wait_set: attr
                .wait_set
                .map_or(ptr::null_mut(), |object| object.as_raw().cast()),
        });
        let mut cq = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid, and its wait set null or open. What the
        // handler takes stays until the queue is closed.
        to_result(unsafe {
            bindings::kfi_cq_open(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut cq,
                handler,
                context,
            )
        })?;
        let cq = NonNull::new(cq).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            queue: Queue(unsafe { Object::new(cq) }),
            // What the provider has chosen.
            format: attr.map_or(0, |attr| attr.format),
            calls,
        })
    }

    /// Returns what the handler counts, and the context of the queue.
    pub(crate) fn handled(&self) -> Option<(&Arc<Calls>, usize)> {
        let calls = self.calls.as_ref()?;
        Some((calls, Calls::address(calls).addr()))
    }

    /// Takes up to `count` completions out; sleeps for them if there is a timeout, with a condition.
    /// Without `source` who sent them is not asked for.
    pub(crate) fn read(
        &self,
        count: usize,
        timeout: Option<c_int>,
        cond: usize,
        source: bool,
    ) -> Result<KVec<Completion>> {
        let cond = ptr::without_provenance(cond);
        // Room for the longest format, whichever it is.
        let mut entries = KVec::<bindings::kfi_cq_tagged_entry>::with_capacity(
            count.max(1),
            GFP_KERNEL | __GFP_NOWARN,
        )?;
        let mut addrs = KVec::<u64>::with_capacity(count.max(1), GFP_KERNEL | __GFP_NOWARN)?;
        let mut completions = KVec::with_capacity(count, GFP_KERNEL | __GFP_NOWARN)?;
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
            .map_err(|_| Error::from_errno(c_int::try_from(ret).unwrap_or(c_int::MIN)))?;
        for i in 0..read.min(count) {
            // SAFETY: kfabric has written as many entries of the format.
            let entry = unsafe { Self::entry(self.format, raw.cast(), i) };
            let addr = match source {
                // SAFETY: And as many addresses, if it was asked for them.
                true => unsafe { *addr.add(i) },
                false => u64::MAX,
            };
            completions.push((entry, addr), GFP_KERNEL)?;
        }
        Ok(completions)
    }

    /// Returns an entry of an array; what the format does not tell is 0.
    ///
    /// # Safety
    ///
    /// There must be an entry `i` of the format `format`.
    unsafe fn entry(format: u32, array: *const u8, i: usize) -> bindings::kfi_cq_tagged_entry {
        let size = match format {
            bindings::KFI_CQ_FORMAT_MSG => size_of::<bindings::kfi_cq_msg_entry>(),
            bindings::KFI_CQ_FORMAT_DATA => size_of::<bindings::kfi_cq_data_entry>(),
            bindings::KFI_CQ_FORMAT_TAGGED => size_of::<bindings::kfi_cq_tagged_entry>(),
            _ => size_of::<bindings::kfi_cq_entry>(),
        };
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

    /// Takes the first error out.
    pub(crate) fn readerr(&self) -> Result<bindings::kfi_cq_err_entry> {
        let mut entry = pin_init::zeroed();
        // SAFETY: The queue is open; `entry` is valid for writes.
        let ret = unsafe { bindings::kfi_cq_readerr(self.as_raw(), &mut entry, 0) };
        match c_int::try_from(ret) {
            Ok(1..) => Ok(entry),
            Ok(0) => Err(EAGAIN),
            Ok(error) => Err(Error::from_errno(error)),
            Err(_) => Err(EIO),
        }
    }

    /// Describes an errno of the provider; returns whether there is a description, of which as much
    /// is in `text` as fits. Without `len` the provider gets no room of its own.
    pub(crate) fn strerror(&self, prov_errno: c_int, text: &mut [u8], len: usize) -> bool {
        // SAFETY: The queue is open.
        super::describe(text, len, |buf, len| unsafe {
            bindings::kfi_cq_strerror(self.as_raw(), prov_errno, ptr::null(), buf, len)
        })
    }

    /// Ends the waits in [`Self::read`].
    pub(crate) fn signal(&self) -> Result {
        // SAFETY: The queue is open.
        to_result(unsafe { bindings::kfi_cq_signal(self.as_raw()) })
    }

    /// Adds a completion or an error, if the provider is the software provider.
    pub(crate) fn write(&self, entry: &bindings::kfi_cq_err_entry) -> Result {
        // SAFETY: That is what the software provider calls it; others do not know the name.
        let ops: &bindings::kfi_soft_cq_ops = unsafe { self.any().open_ops(CQ_OPS) }?;
        let write = ops.write.ok_or(ENOSYS)?;
        // SAFETY: The queue is open; `entry` is valid.
        to_result(unsafe { write(self.any().as_raw(), entry) })
    }
}

/// `KFI_SOFT_CQ_OPS_1`.
const CQ_OPS: &CStr = c"kfi_soft_cq_ops_v1";
