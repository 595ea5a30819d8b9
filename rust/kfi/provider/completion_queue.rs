// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    cpu::CpuId,
    error::from_result,
    prelude::*,
    sync::rcu, //
};

use super::{
    handler::Handler,
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
    flags::CompletionFlags,
    hold::Hold,
    linux::{
        linear::Linear,
        timeout::Timeout, //
    }, //
};

/// The class of completion queues.
pub struct CompletionQueueClass;

// SAFETY: `struct kfid_cq` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for CompletionQueueClass {
    type Head = bindings::kfid_cq;
    type Tables = bindings::kfi_ops_cq;
    type Data = CompletionQueueData;
    const FCLASS: usize = bindings::KFI_CLASS_CQ as usize;
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, data: &Self::Data) -> Self::Head {
        bindings::kfid_cq {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
            comp_handler: data.handler.function(),
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
pub struct CompletionQueueData {
    /// The format of the entries.
    format: CompletionFormat,
    /// What the condition of a read that sleeps is.
    wait_cond: WaitCondition,
    handler: Handler<unsafe extern "C" fn(*mut bindings::kfid_cq, *mut c_void)>,
}

impl CompletionQueueData {
    /// Of a queue with such attributes and a handler, if it has one.
    pub(super) fn new(
        format: CompletionFormat,
        wait_cond: WaitCondition,
        handler: bindings::kfi_comp_handler,
    ) -> Self {
        Self {
            format,
            wait_cond,
            handler: Handler::new(handler),
        }
    }
}

impl Default for CompletionQueueData {
    fn default() -> Self {
        Self::new(CompletionFormat::Context, WaitCondition::None, None)
    }
}

/// What the condition of a read that sleeps is (`enum kfi_cq_wait_cond`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WaitCondition {
    /// Nothing.
    None,
    /// A number, as a pointer: of entries.
    Threshold,
}

impl WaitCondition {
    /// Returns for how many entries a reader with room for `room` waits, at least one.
    fn entries(self, cond: *const c_void, room: usize) -> usize {
        match self {
            Self::None => 1,
            Self::Threshold => cond.addr().clamp(1, room.max(1)),
        }
    }
}

impl TryFrom<bindings::kfi_cq_wait_cond> for WaitCondition {
    type Error = Error;

    fn try_from(raw: bindings::kfi_cq_wait_cond) -> Result<Self> {
        match raw {
            bindings::KFI_CQ_COND_NONE => Ok(Self::None),
            bindings::KFI_CQ_COND_THRESHOLD => Ok(Self::Threshold),
            _ => Err(EINVAL),
        }
    }
}

/// How much of a completion is told (`enum kfi_cq_format`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CompletionFormat {
    /// The operation's context.
    Context,
    /// As well its flags and length.
    Msg,
    /// As well the buffer and the data.
    Data,
    /// As well the tag.
    Tagged,
}

impl CompletionFormat {
    /// Returns the number that C knows.
    pub(super) fn as_raw(self) -> bindings::kfi_cq_format {
        match self {
            Self::Context => bindings::KFI_CQ_FORMAT_CONTEXT,
            Self::Msg => bindings::KFI_CQ_FORMAT_MSG,
            Self::Data => bindings::KFI_CQ_FORMAT_DATA,
            Self::Tagged => bindings::KFI_CQ_FORMAT_TAGGED,
        }
    }
}

impl TryFrom<bindings::kfi_cq_format> for CompletionFormat {
    type Error = Error;

    /// Takes a format from C; unspecified means the shortest.
    fn try_from(raw: bindings::kfi_cq_format) -> Result<Self> {
        match raw {
            bindings::KFI_CQ_FORMAT_UNSPEC | bindings::KFI_CQ_FORMAT_CONTEXT => Ok(Self::Context),
            bindings::KFI_CQ_FORMAT_MSG => Ok(Self::Msg),
            bindings::KFI_CQ_FORMAT_DATA => Ok(Self::Data),
            bindings::KFI_CQ_FORMAT_TAGGED => Ok(Self::Tagged),
            _ => Err(EINVAL),
        }
    }
}

/// The description of an operation in a completion.
///
/// By default there is nothing to be told, and nobody knows who sent it.
#[derive(Clone, Copy)]
pub struct Outcome {
    /// The flags that describe the operation; its kind need not stand in them.
    pub flags: u64,
    /// Bytes transferred.
    pub len: usize,
    /// Where received data lies; a number that is not looked into.
    pub buf: Context,
    /// Data that came along.
    pub data: u64,
    /// Tag of a message.
    pub tag: u64,
    /// The sender.
    pub src_addr: u64,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            flags: 0,
            len: 0,
            buf: Context::NONE,
            data: 0,
            tag: 0,
            src_addr: ADDR_NOTAVAIL,
        }
    }
}

/// The flag that tells the release of memory for several messages.
pub(super) const RELEASE: u64 = CompletionFlags::MULTI_RECV.as_raw();

/// The flags of what a peer did.
const REMOTE: u64 = CompletionFlags::RMA
    .union(CompletionFlags::ATOMIC)
    .union(CompletionFlags::REMOTE_READ)
    .union(CompletionFlags::REMOTE_WRITE)
    .union(CompletionFlags::REMOTE_CQ_DATA)
    .as_raw();

/// An operation that has ended, as it is told. It is neither made up nor copied, as its consumer may
/// free the memory of the operation: see [`Ended`]. No type ensures that it is told in a queue which is
/// bound for the operation, and before its endpoint is closed.
///
/// [`Ended`]: super::Ended
pub struct Completion {
    op_context: Context,
    outcome: Outcome,
    _once: Linear,
}

impl Completion {
    /// A completion of an operation with a context, with these flags and not those of the outcome.
    #[inline]
    pub(super) fn new(op_context: Context, flags: u64, outcome: &Outcome) -> Self {
        Self {
            op_context,
            outcome: Outcome { flags, ..*outcome },
            _once: Linear,
        }
    }

    /// Of something that a peer did, for which nothing was posted here. Flags of what was posted do not
    /// count.
    pub fn remote(outcome: &Outcome) -> Self {
        Self::new(Context::NONE, outcome.flags & REMOTE, outcome)
    }

    /// With a number for a context.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn with_number(number: usize, outcome: &Outcome) -> Self {
        Self::new(Context::from_number(number), outcome.flags, outcome)
    }

    /// Returns the context of the operation, for tests.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn op_context(&self) -> Context {
        self.op_context
    }

    /// Returns what was done, for tests.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// An operation that has ended, maybe with an error: a [`Completion`] without one, or what
/// [`Ended::fail`] returns.
///
/// [`Ended::fail`]: super::Ended::fail
pub struct CompletionError {
    /// The operation.
    pub(super) completion: Completion,
    /// The failure.
    pub(super) failure: Failure,
}

impl CompletionError {
    /// Returns the failure.
    #[allow(dead_code, reason = "not every provider has a queue of its own")]
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Returns the completion, without the failure.
    #[allow(dead_code, reason = "not every provider has a queue of its own")]
    #[inline]
    pub fn into_completion(self) -> Completion {
        self.completion
    }
}

impl From<Completion> for CompletionError {
    /// Of an operation that has succeeded.
    #[inline]
    fn from(completion: Completion) -> Self {
        Self {
            completion,
            failure: Failure::NONE,
        }
    }
}

/// The failure of an operation; by default there is none.
#[derive(Clone, Copy)]
pub struct Failure {
    /// Bytes that did not fit.
    pub olen: usize,
    /// A positive errno; 0 if nothing went wrong.
    pub err: c_int,
    /// An errno of the provider.
    pub prov_errno: c_int,
}

impl Failure {
    /// Nothing went wrong.
    pub const NONE: Self = Self {
        olen: 0,
        err: 0,
        prov_errno: 0,
    };
}

impl From<Error> for Failure {
    /// With an errno, and nothing else to be told.
    fn from(error: Error) -> Self {
        Self {
            err: error.to_errno().wrapping_neg(),
            ..Self::NONE
        }
    }
}

impl Default for Failure {
    fn default() -> Self {
        Self::NONE
    }
}

/// Where kfi_cq_readerr wants an error, which stays in the queue or not.
pub struct ErrorBuffer<'a> {
    entry: &'a mut bindings::kfi_cq_err_entry,
    peek: bool,
    is_filled: bool,
}

impl ErrorBuffer<'_> {
    /// Reads an error as kfi_cq_readerr does, and returns its context, as a number, and its errno.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub(super) fn with(
        peek: bool,
        read: impl FnOnce(&mut ErrorBuffer<'_>) -> Result,
    ) -> Result<Option<(usize, c_int)>> {
        let mut entry = pin_init::zeroed();
        let mut buffer = ErrorBuffer {
            entry: &mut entry,
            peek,
            is_filled: false,
        };
        read(&mut buffer)?;
        let is_filled = buffer.is_filled;
        Ok(is_filled.then_some((entry.op_context.addr(), entry.err)))
    }

    /// Returns whether the error stays in the queue.
    pub fn is_peek(&self) -> bool {
        self.peek
    }

    /// Fills the entry in.
    fn fill(&mut self, completion: &Completion, failure: &Failure) {
        let outcome = &completion.outcome;
        *self.entry = bindings::kfi_cq_err_entry {
            op_context: completion.op_context.as_raw(),
            flags: outcome.flags,
            len: outcome.len,
            buf: outcome.buf.as_raw(),
            data: outcome.data,
            tag: outcome.tag,
            olen: failure.olen,
            err: failure.err,
            prov_errno: failure.prov_errno,
            err_data: ptr::null_mut(),
            err_data_size: 0,
        };
        self.is_filled = true;
    }

    /// Shows an error that stays in the queue, if that is asked for.
    #[allow(dead_code, reason = "not every provider has a queue of its own")]
    pub fn show(&mut self, error: &CompletionError) {
        self.show_parts(&error.completion, &error.failure);
    }

    /// As [`Self::show`], if what an error has lies in two places.
    pub(super) fn show_parts(&mut self, completion: &Completion, failure: &Failure) {
        if self.peek {
            self.fill(completion, failure);
        }
    }

    /// Tells an error that was taken out.
    pub fn tell(&mut self, error: CompletionError) {
        self.fill(&error.completion, &error.failure);
    }
}

/// Where kfi_cq_read wants completions.
pub struct CompletionBuffer<'a> {
    entries: *mut c_void,
    src_addr: *mut bindings::kfi_addr_t,
    capacity: usize,
    len: usize,
    threshold: usize,
    format: CompletionFormat,
    _lifetime: PhantomData<&'a mut c_void>,
}

impl CompletionBuffer<'_> {
    /// Reads contexts, as numbers, as kfi_cq_read does, and returns how many.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub(super) fn with(
        contexts: &mut [usize],
        read: impl FnOnce(&mut CompletionBuffer<'_>) -> Result,
    ) -> Result<usize> {
        let format = CompletionFormat::Context;
        let (buf, count) = (contexts.as_mut_ptr().cast(), contexts.len());
        // SAFETY: An entry of that format is a pointer, which is as large as a number.
        let ret = unsafe { read_into(format, buf, count, ptr::null_mut(), 1, read) };
        usize::try_from(ret).map_err(|_| Error::from_errno(ret as c_int))
    }

    /// Returns whether there is no room.
    pub fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Returns the number of completions in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns for how many completions a reader that sleeps waits (`KFI_CQ_COND_THRESHOLD`): at least one, and no
    /// more than there is room for. A hint.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Writes an entry behind those that are there.
    ///
    /// # Safety
    ///
    /// There must be room for one more entry, and `T` must be the entry of the format.
    unsafe fn write<T>(&mut self, entry: T) {
        // SAFETY: By the safety requirements and by `read_into`.
        unsafe { self.entries.cast::<T>().add(self.len).write(entry) };
    }

    /// Adds a completion; gives it back if there is no room.
    #[inline]
    pub fn push(&mut self, completion: Completion) -> core::result::Result<(), Completion> {
        if self.is_full() {
            return Err(completion);
        }
        let Completion {
            op_context,
            outcome:
                Outcome {
                    flags,
                    len,
                    buf,
                    data,
                    tag,
                    src_addr,
                },
            _once,
        } = completion;
        let op_context = op_context.as_raw();
        let buf = buf.as_raw();
        // SAFETY: There is room, and each entry is that of its format.
        unsafe {
            match self.format {
                CompletionFormat::Context => self.write(bindings::kfi_cq_entry { op_context }),
                CompletionFormat::Msg => self.write(bindings::kfi_cq_msg_entry {
                    op_context,
                    flags,
                    len,
                }),
                CompletionFormat::Data => self.write(bindings::kfi_cq_data_entry {
                    op_context,
                    flags,
                    len,
                    buf,
                    data,
                }),
                CompletionFormat::Tagged => self.write(bindings::kfi_cq_tagged_entry {
                    op_context,
                    flags,
                    len,
                    buf,
                    data,
                    tag,
                }),
            }
        }
        if !self.src_addr.is_null() {
            // SAFETY: `read_into` was given room for as many addresses as completions.
            unsafe { self.src_addr.add(self.len).write(src_addr) };
        }
        self.len += 1;
        Ok(())
    }
}

/// The operations of a completion queue (`struct kfi_ops_cq`).
///
/// All but [`Self::sread`] may be called from any context and must not sleep, not even `size` and
/// `strerror`. Those that read or signal run in RCU read-side critical sections.
///
/// A handler that the queue was opened with ([`CompletionQueueAttr::has_handler`]) is called once for
/// each time that it is armed: when the queue is opened, and by a read that answers `EAGAIN`. It is due
/// when there is an entry and it is armed; the provider has [`call_completion_handler`] called then, in
/// process context.
pub trait CompletionQueueOps: Object<Class = CompletionQueueClass> {
    /// Returns the number of entries that there is room for.
    fn size(&self) -> usize;

    /// Takes completions out, at least one; `EAGAIN` if there is none, `EAVAIL` if an error comes
    /// first, `EOVERRUN` once where entries were lost. If there is no room it only looks, and takes nothing:
    /// that entries were lost is told again.
    fn read(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>) -> Result;

    /// Takes the first error out, or shows it if that is asked for; `EAGAIN` if none comes first.
    fn readerr(&self, buffer: &mut ErrorBuffer<'_>) -> Result;

    /// As [`Self::read`], but sleeps while there is nothing, or less than [`CompletionBuffer::threshold`].
    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        let _ = (this, buffer, timeout);
        Err(ENOSYS)
    }

    /// Ends the sleep of the threads in [`Self::sread`].
    fn signal(&self) -> Result {
        Err(ENOSYS)
    }

    /// Returns a text for an errno of the provider.
    fn strerror(prov_errno: c_int) -> &'static CStr {
        let _ = prov_errno;
        super::NO_PROVIDER_ERROR
    }
}

/// Completion queues that tests write to. From any context; must not sleep.
pub trait CompletionQueueTestOps: CompletionQueueOps {
    /// Adds a completion, or an error if `err` is not 0; `ENOSPC` if the queue is full.
    fn write(this: &Fid<Self>, entry: CompletionError) -> Result;

    /// As [`Self::write`], but a queue that is full overruns.
    fn write_unreserved(this: &Fid<Self>, entry: CompletionError);
}

/// The attributes that a completion queue is opened with (`struct kfi_cq_attr`).
pub struct CompletionQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub size: usize,
    /// Flags, yet to be checked.
    pub flags: u64,
    /// The format of the entries.
    pub format: CompletionFormat,
    /// What the condition of a read that sleeps is; a buffer knows it ([`CompletionBuffer::threshold`]).
    pub wait_cond: WaitCondition,
    /// How threads want to wait.
    pub wait: WaitAttr<'a>,
    /// Whether there is a handler, for [`call_completion_handler`].
    pub has_handler: bool,
    /// Where the handler runs.
    pub affinity: Option<CpuId>,
}

impl Default for CompletionQueueAttr<'_> {
    /// As C has it without attributes.
    fn default() -> Self {
        Self {
            size: 0,
            flags: 0,
            format: CompletionFormat::Context,
            wait_cond: WaitCondition::None,
            wait: WaitAttr::Unspec,
            has_handler: false,
            affinity: None,
        }
    }
}

impl CompletionQueueAttr<'_> {
    /// Reads attributes from C; null means the defaults.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid, and its wait set null or an open object if it asks for one.
    pub(super) unsafe fn from_raw(
        attr: *const bindings::kfi_cq_attr,
        handler: bindings::kfi_comp_handler,
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
            format: CompletionFormat::try_from(attr.format)?,
            wait_cond: WaitCondition::try_from(attr.wait_cond)?,
            // SAFETY: By the safety requirements.
            wait: unsafe { WaitAttr::from_raw(attr.wait_obj, attr.wait_set) }?,
            has_handler: handler.is_some(),
            affinity: super::affinity(attr.flags, attr.signaling_vector)?,
        })
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: CompletionQueueOps> Tables<CompletionQueueClass> for T {
    const TABLES: &'static bindings::kfi_ops_cq = &bindings::kfi_ops_cq {
        size: size_of::<bindings::kfi_ops_cq>(),
        read: Some(read_callback::<T>),
        readfrom: Some(readfrom_callback::<T>),
        readerr: Some(readerr_callback::<T>),
        sread: Some(sread_callback::<T>),
        sreadfrom: Some(sreadfrom_callback::<T>),
        signal: Some(signal_callback::<T>),
        strerror: Some(strerror_callback::<T>),
    };
}

/// Runs `read` with a buffer and returns how many completions it took.
///
/// # Safety
///
/// `buf` must be null or valid for writes of `count` entries of `format`, `src_addr` null or valid
/// for writes of `count` addresses.
unsafe fn read_into(
    format: CompletionFormat,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut bindings::kfi_addr_t,
    threshold: usize,
    read: impl FnOnce(&mut CompletionBuffer<'_>) -> Result,
) -> isize {
    from_result(|| {
        if buf.is_null() && count != 0 {
            return Err(EINVAL);
        }
        let mut buffer = CompletionBuffer {
            entries: buf,
            src_addr,
            capacity: count,
            len: 0,
            threshold,
            format,
            _lifetime: PhantomData,
        };
        read(&mut buffer)?;
        isize::try_from(buffer.len).map_err(|_| EOVERFLOW)
    })
}

/// Takes completions out.
///
/// # Safety
///
/// `cq` must be an open queue of `T`, and `buf` as for [`read_into`].
unsafe extern "C" fn read_callback<T: CompletionQueueOps>(
    cq: *mut bindings::kfid_cq,
    buf: *mut c_void,
    count: usize,
) -> isize {
    // SAFETY: By the safety requirements.
    unsafe { readfrom_callback::<T>(cq, buf, count, ptr::null_mut()) }
}

/// Takes completions out, with their senders.
///
/// # Safety
///
/// `cq` must be an open queue of `T`, `buf` and `src_addr` as for [`read_into`].
unsafe extern "C" fn readfrom_callback<T: CompletionQueueOps>(
    cq: *mut bindings::kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut bindings::kfi_addr_t,
) -> isize {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(cq) };
    // SAFETY: By the safety requirements.
    unsafe {
        read_into(this.data().format, buf, count, src_addr, 1, |buffer| {
            T::read(this, buffer)
        })
    }
}

/// Takes an error out.
///
/// # Safety
///
/// `cq` must be an open queue of `T`, `buf` null or valid.
unsafe extern "C" fn readerr_callback<T: CompletionQueueOps>(
    cq: *mut bindings::kfid_cq,
    buf: *mut bindings::kfi_cq_err_entry,
    flags: u64,
) -> isize {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(cq) };
    from_result(|| {
        if buf.is_null() || flags & !super::PEEK != 0 {
            return Err(EINVAL);
        }
        let mut entry = pin_init::zeroed();
        let mut buffer = ErrorBuffer {
            entry: &mut entry,
            peek: flags & super::PEEK != 0,
            is_filled: false,
        };
        this.readerr(&mut buffer)?;
        if !buffer.is_filled {
            return Err(EAGAIN);
        }
        // SAFETY: `buf` is not null, so that it is valid.
        unsafe { super::write_error(buf, entry, &raw mut (*buf).err_data) };
        Ok(1)
    })
}

/// Waits for completions.
///
/// # Safety
///
/// As for [`read_callback`].
unsafe extern "C" fn sread_callback<T: CompletionQueueOps>(
    cq: *mut bindings::kfid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: By the safety requirements.
    unsafe { sreadfrom_callback::<T>(cq, buf, count, ptr::null_mut(), cond, timeout) }
}

/// Waits for completions, with their senders.
///
/// # Safety
///
/// As for [`readfrom_callback`].
unsafe extern "C" fn sreadfrom_callback<T: CompletionQueueOps>(
    cq: *mut bindings::kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut bindings::kfi_addr_t,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    // Close waits for this section, so that the queue stays until it is held.
    let section = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(cq) };
    let format = this.data().format;
    let threshold = this.data().wait_cond.entries(cond, count);
    // A queue with a thread in here cannot be closed.
    let hold = Hold::new(this);
    drop(section);
    // SAFETY: By the safety requirements.
    unsafe {
        read_into(format, buf, count, src_addr, threshold, |buffer| {
            let hold = hold?;
            // Nobody waits for none.
            if buffer.is_full() {
                return Err(EINVAL);
            }
            T::sread(hold.fid(), buffer, Timeout::from_raw(timeout))
        })
    }
}

/// Ends a wait.
///
/// # Safety
///
/// `cq` must be an open queue of `T`.
unsafe extern "C" fn signal_callback<T: CompletionQueueOps>(cq: *mut bindings::kfid_cq) -> c_int {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(cq) };
    from_result(|| {
        this.signal()?;
        Ok(0)
    })
}

/// Returns a text.
///
/// # Safety
///
/// `buf` must be null or valid for writes of `len` bytes.
unsafe extern "C" fn strerror_callback<T: CompletionQueueOps>(
    _cq: *mut bindings::kfid_cq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: By the safety requirements.
    unsafe { super::tell_text(T::strerror(prov_errno), buf, len) }
}

/// Reads an entry that a test wants to add; `EINVAL` for a null or nonsensical one.
///
/// # Safety
///
/// `entry` must be null or valid.
unsafe fn read_entry(entry: *const bindings::kfi_cq_err_entry) -> Result<CompletionError> {
    // SAFETY: By the safety requirements.
    let entry = unsafe { entry.as_ref() }.ok_or(EINVAL)?;
    if entry.err < 0 {
        return Err(EINVAL);
    }
    let outcome = Outcome {
        flags: entry.flags,
        len: entry.len,
        buf: Context::from_raw(entry.buf),
        data: entry.data,
        tag: entry.tag,
        ..Outcome::default()
    };
    Ok(CompletionError {
        completion: Completion::new(Context::from_raw(entry.op_context), entry.flags, &outcome),
        failure: Failure {
            olen: entry.olen,
            err: entry.err,
            prov_errno: entry.prov_errno,
        },
    })
}

/// Adds a completion or an error.
///
/// # Safety
///
/// `cq` must be the start of an open queue of `T`, `entry` null or valid.
unsafe extern "C" fn write_callback<T: CompletionQueueTestOps>(
    cq: *mut bindings::kfid,
    entry: *const bindings::kfi_cq_err_entry,
) -> c_int {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(cq.cast()) };
    from_result(|| {
        // SAFETY: By the safety requirements.
        T::write(this, unsafe { read_entry(entry) }?)?;
        Ok(0)
    })
}

/// Adds a completion or an error, or overruns.
///
/// # Safety
///
/// As for [`write_callback`].
unsafe extern "C" fn write_unreserved_callback<T: CompletionQueueTestOps>(
    cq: *mut bindings::kfid,
    entry: *const bindings::kfi_cq_err_entry,
) -> c_int {
    // Close waits for this section, so that the queue stays until the call has ended.
    let _guard = rcu::read_lock();
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(cq.cast()) };
    from_result(|| {
        // SAFETY: By the safety requirements.
        T::write_unreserved(this, unsafe { read_entry(entry) }?);
        Ok(0)
    })
}

/// Calls the handler that a queue was opened with, if there is one and the queue is open.
///
/// In process context, without locks: the handler may sleep. Close waits for it; a handler that
/// closes its own queue is refused by [`Object::may_close`], or waits for itself.
pub fn call_completion_handler<T: CompletionQueueOps>(cq: &Fid<T>) {
    cq.data().handler.call(|handler| {
        // SAFETY: The handler came with the queue from C, to be called while the queue is open, which
        // it is during this call.
        unsafe { handler(cq.head(), cq.context().as_raw()) };
    });
}

/// The address of a sender that is not known (`KFI_ADDR_NOTAVAIL`).
pub const ADDR_NOTAVAIL: u64 = u64::MAX;

/// Returns the table that lets tests write to a queue of `T`, if that is what `name` asks for.
pub fn completion_queue_test_ops<'o, T: CompletionQueueTestOps>(
    _cq: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: CompletionQueueTestOps> Table<T> {
        const OPS: bindings::kfi_soft_cq_ops = bindings::kfi_soft_cq_ops {
            size: size_of::<bindings::kfi_soft_cq_ops>(),
            write: Some(write_callback::<T>),
            write_unreserved: Some(write_unreserved_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects queues of `T`.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_SOFT_CQ_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(ENOSYS)
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_completion_queue)]
mod tests {
    use super::*;
    use crate::kfi::provider::handler::tests::{
        count,
        is_called_while_open, //
    };

    /// A queue without anything in it.
    struct Queue;

    impl Object for Queue {
        type Class = CompletionQueueClass;

        fn release(&self) {}
    }

    impl CompletionQueueOps for Queue {
        fn size(&self) -> usize {
            0
        }

        fn read(_this: &Fid<Self>, _buffer: &mut CompletionBuffer<'_>) -> Result {
            Err(EAGAIN)
        }

        fn readerr(&self, _buffer: &mut ErrorBuffer<'_>) -> Result {
            Err(EAGAIN)
        }
    }

    #[test]
    fn handler_is_called_while_the_queue_is_open() -> Result {
        is_called_while_open(
            || Queue,
            || {
                let format = CompletionFormat::Context;
                CompletionQueueData::new(format, WaitCondition::None, Some(count))
            },
            call_completion_handler,
        )
    }
}
