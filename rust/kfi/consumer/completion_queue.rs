// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;

use super::{
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
}

object! {
    /// An open completion queue, whatever its format.
    Queue(kfid_cq)
}

/// An open completion queue.
pub(crate) struct CompletionQueue {
    queue: Queue,
    format: u32,
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
    pub(crate) fn open(
        domain: &Domain,
        attr: Option<CompletionQueueAttr<'_>>,
        context: Context,
    ) -> Result<Self> {
        let mut attr = attr.map(|attr| bindings::kfi_cq_attr {
            size: attr.size,
            flags: attr.flags,
            format: attr.format,
            wait_obj: attr.wait_obj,
            wait_cond: attr.wait_cond,
            wait_set: attr
                .wait_set
                .map_or(ptr::null_mut(), |object| object.as_raw().cast()),
            ..pin_init::zeroed()
        });
        let mut cq = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid, and its wait set null or open.
        to_result(unsafe {
            bindings::kfi_cq_open(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut cq,
                None,
                context.as_raw(),
            )
        })?;
        let cq = NonNull::new(cq).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            queue: Queue(unsafe { Object::new(cq) }),
            // What the provider has chosen.
            format: attr.map_or(0, |attr| attr.format),
        })
    }

    /// Takes up to `count` completions out; sleeps for them if there is a timeout.
    pub(crate) fn read(&self, count: usize, timeout: Option<c_int>) -> Result<KVec<Completion>> {
        // Room for the longest format, whichever it is.
        let mut entries =
            KVec::<bindings::kfi_cq_tagged_entry>::with_capacity(count.max(1), GFP_KERNEL)?;
        let mut addrs = KVec::<u64>::with_capacity(count.max(1), GFP_KERNEL)?;
        let mut completions = KVec::with_capacity(count, GFP_KERNEL)?;
        let raw = entries.as_mut_ptr();
        let addr = addrs.as_mut_ptr();
        // SAFETY: The queue is open; there is room for `count` entries and addresses.
        let ret = unsafe {
            match timeout {
                None => bindings::kfi_cq_readfrom(self.as_raw(), raw.cast(), count, addr),
                Some(timeout) => bindings::kfi_cq_sreadfrom(
                    self.as_raw(),
                    raw.cast(),
                    count,
                    addr,
                    ptr::null(),
                    timeout,
                ),
            }
        };
        let read = usize::try_from(ret)
            .map_err(|_| Error::from_errno(c_int::try_from(ret).unwrap_or(c_int::MIN)))?;
        for i in 0..read.min(count) {
            // SAFETY: kfabric has written as many entries of the format, and addresses.
            let completion = unsafe { (Self::entry(self.format, raw.cast(), i), *addr.add(i)) };
            completions.push(completion, GFP_KERNEL)?;
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
