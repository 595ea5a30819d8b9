// SPDX-License-Identifier: GPL-2.0

//! Endpoints and contexts.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    buffer::{
        Buffer,
        Segment, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Object, //
    },
    Domain,
    Fabric, //
};
use crate::kfi::{
    bindings,
    errno::to_result,
    fid::Context,
    flags::OpFlags,
    info::InfoRef,
    wait_obj::WaitObj, //
};

object! {
    /// An open endpoint or context as C knows it.
    Ep(kfid_ep)
}

object! {
    /// An open passive endpoint.
    PassiveEndpoint(kfid_pep)
}

object! {
    /// An open transmit context that endpoints share.
    SharedTransmit(kfid_stx)
}

object! {
    /// A multicast group that was joined.
    Multicast(kfid_mc)
}

/// What the operations on an endpoint may still use until it is closed.
#[pin_data]
struct Uses {
    #[pin]
    buffers: Mutex<RBTree<u32, Arc<Buffer>>>,
}

/// An endpoint, an alias of one, a scalable endpoint, or a context.
pub(crate) struct Endpoint {
    ep: Ep,
    /// Who the operations belong to, an alias or what it is an alias of.
    owner: u32,
    is_alias: bool,
    /// Whether operations may be triggered without being asked to.
    triggers: Atomic<bool>,
    /// Whether a receive may take several messages without being asked to.
    multi_recv: Atomic<bool>,
    /// Shared with its aliases. Kept until the endpoint is closed.
    uses: Arc<Uses>,
}

impl core::ops::Deref for Endpoint {
    type Target = Ep;

    fn deref(&self) -> &Ep {
        &self.ep
    }
}

impl Closable for Endpoint {
    type Head = bindings::kfid_ep;

    fn object(&mut self) -> &mut Object<bindings::kfid_ep> {
        self.ep.object()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.ep.object().end() {
            // Operations may still use the memory.
            core::mem::forget(self.uses.clone());
        }
    }
}

/// Kinds of endpoints on a domain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointKind {
    /// kfi_endpoint.
    Plain,
    /// kfi_scalable_ep.
    Scalable,
}

/// What a provider may demand of its consumer that this one cannot give.
// bindgen chooses the type of a constant by its value.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
const DEMANDS: u64 = bindings::KFI_CONTEXT as u64
    | bindings::KFI_CONTEXT2 as u64
    | bindings::KFI_ASYNC_IOV as u64
    | bindings::KFI_MSG_PREFIX as u64;

/// Returns the default flags of operations; `EOPNOTSUPP` if contexts would have to be structures,
/// arrays to stay, or messages to have a prefix.
pub(crate) fn op_flags(info: InfoRef<'_>) -> Result<u64> {
    let mut mode = info.get().mode;
    let mut flags = 0;
    if let Some(attr) = info.tx_attr() {
        mode |= attr.mode;
        flags |= attr.op_flags;
    }
    if let Some(attr) = info.rx_attr() {
        mode |= attr.mode;
        flags |= attr.op_flags;
    }
    if let Some(attr) = info.domain_attr() {
        mode |= attr.mode;
    }
    refuse(mode)?;
    Ok(flags)
}

/// `EOPNOTSUPP` for a mode that this consumer cannot serve.
pub(crate) fn refuse(mode: u64) -> Result {
    if mode & DEMANDS != 0 {
        return Err(EOPNOTSUPP);
    }
    Ok(())
}

/// Returns what a function returned that opens something.
fn opened<H>(ret: c_int, head: *mut H) -> Result<NonNull<H>> {
    to_result(ret)?;
    NonNull::new(head).ok_or(EIO)
}

impl Endpoint {
    /// Makes the collection of what operations use.
    fn new_uses() -> Result<Arc<Uses>> {
        Arc::pin_init(
            pin_init!(Uses {
                buffers <- new_mutex!(RBTree::new(), "kfi::Uses::buffers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes an endpoint that has just been opened.
    fn new(head: NonNull<bindings::kfid_ep>, owner: u32, flags: u64, uses: Arc<Uses>) -> Self {
        let this = Self {
            // SAFETY: By the contract of this function, which is private.
            ep: Ep(unsafe { Object::new(head) }),
            owner,
            is_alias: false,
            triggers: Atomic::new(false),
            multi_recv: Atomic::new(false),
            uses,
        };
        this.note_flags(flags);
        this
    }

    /// Opens an endpoint; `owner` is a number of the caller's for it. May sleep.
    pub(crate) fn open(
        domain: &Domain,
        kind: EndpointKind,
        info: InfoRef<'_>,
        context: Context,
        owner: u32,
    ) -> Result<Self> {
        let flags = op_flags(info)?;
        let uses = Self::new_uses()?;
        let mut ep = ptr::null_mut();
        // SAFETY: `domain` is open, `info` is valid; the provider only reads it.
        let ret = unsafe {
            match kind {
                EndpointKind::Plain => bindings::kfi_endpoint(
                    domain.as_raw(),
                    info.as_raw(),
                    &mut ep,
                    context.as_raw(),
                ),
                EndpointKind::Scalable => bindings::kfi_scalable_ep(
                    domain.as_raw(),
                    info.as_raw(),
                    &mut ep,
                    context.as_raw(),
                ),
            }
        };
        Ok(Self::new(opened(ret, ep)?, owner, flags, uses))
    }

    /// Opens a transmit context of a scalable endpoint. May sleep.
    pub(crate) fn tx_context(
        &self,
        index: c_int,
        mut attr: Option<bindings::kfi_tx_attr>,
        context: Context,
        owner: u32,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let uses = Self::new_uses()?;
        let mut ep = ptr::null_mut();
        // SAFETY: The endpoint is open; `attr` is null or valid.
        let ret = unsafe {
            bindings::kfi_tx_context(
                self.as_raw(),
                index,
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut ep,
                context.as_raw(),
            )
        };
        let this = Self::new(opened(ret, ep)?, owner, flags, uses);
        this.inherit(self);
        Ok(this)
    }

    /// Opens a receive context of a scalable endpoint. May sleep.
    pub(crate) fn rx_context(
        &self,
        index: c_int,
        mut attr: Option<bindings::kfi_rx_attr>,
        context: Context,
        owner: u32,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let uses = Self::new_uses()?;
        let mut ep = ptr::null_mut();
        // SAFETY: The endpoint is open; `attr` is null or valid.
        let ret = unsafe {
            bindings::kfi_rx_context(
                self.as_raw(),
                index,
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut ep,
                context.as_raw(),
            )
        };
        let this = Self::new(opened(ret, ep)?, owner, flags, uses);
        this.inherit(self);
        Ok(this)
    }

    /// Opens a receive context that endpoints share. May sleep.
    pub(crate) fn srx_context(
        domain: &Domain,
        mut attr: Option<bindings::kfi_rx_attr>,
        context: Context,
        owner: u32,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let uses = Self::new_uses()?;
        let mut ep = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid.
        let ret = unsafe {
            bindings::kfi_srx_context(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut ep,
                context.as_raw(),
            )
        };
        Ok(Self::new(opened(ret, ep)?, owner, flags, uses))
    }

    /// Opens an alias. May sleep.
    pub(crate) fn alias(&self, flags: u64) -> Result<Self> {
        let mut ep = ptr::null_mut();
        // SAFETY: The endpoint is open.
        let ret = unsafe { bindings::kfi_ep_alias(self.as_raw(), &mut ep, flags) };
        let mut this = Self::new(opened(ret, ep)?, self.owner, flags, self.uses.clone());
        this.inherit(self);
        this.is_alias = true;
        Ok(this)
    }

    /// Takes over what may be true of operations on another endpoint.
    fn inherit(&self, other: &Self) {
        // Relaxed: as for `note_flags`.
        if other.triggers.load(ordering::Relaxed) {
            self.triggers.store(true, ordering::Relaxed);
        }
        if other.multi_recv.load(ordering::Relaxed) {
            self.multi_recv.store(true, ordering::Relaxed);
        }
    }

    /// Notes flags that operations may have by default.
    pub(crate) fn note_flags(&self, flags: u64) {
        // Relaxed: set before the provider is told, and never cleared. Who posts operations while
        // another thread changes the default must not be sure of anything.
        if flags & u64::from(bindings::KFI_TRIGGER) != 0 {
            self.triggers.store(true, ordering::Relaxed);
        }
        if flags & MULTI_RECV != 0 {
            self.multi_recv.store(true, ordering::Relaxed);
        }
    }

    /// Returns whether an operation may be triggered; `flags` are those of a call that takes some.
    pub(crate) fn may_trigger(&self, flags: u64) -> bool {
        // Relaxed: as above.
        flags & u64::from(bindings::KFI_TRIGGER) != 0 || self.triggers.load(ordering::Relaxed)
    }

    /// Returns whether a receive may have several completions.
    pub(crate) fn may_repeat(&self, flags: u64) -> bool {
        // Relaxed: as above.
        flags & MULTI_RECV != 0 || self.multi_recv.load(ordering::Relaxed)
    }

    /// Returns who the operations belong to.
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns whether it is an alias.
    pub(crate) fn is_alias(&self) -> bool {
        self.is_alias
    }

    /// Keeps the buffers of segments until the endpoint is closed.
    pub(super) fn hold(&self, segments: &[Segment]) -> Result {
        for buffer in segments.iter().filter_map(Segment::buffer) {
            let number = buffer.number();
            if self.uses.buffers.lock().get(&number).is_some() {
                continue;
            }
            let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(number, buffer.clone());
            let old = self.uses.buffers.lock().insert(node);
            drop(old);
        }
        Ok(())
    }

    /// Returns the buffer that an address lies in, and where.
    pub(crate) fn find(&self, address: usize) -> Option<(u32, usize)> {
        let buffers = self.uses.buffers.lock();
        let found = buffers.values().find_map(|buffer| {
            let offset = buffer.offset_of(address)?;
            Some((buffer.number(), offset))
        });
        found
    }

    /// Returns whether there are operations of endpoints; a context may lack some tables.
    pub(super) fn tables(&self) -> &bindings::kfid_ep {
        // SAFETY: The endpoint is open; its tables do not change.
        unsafe { &*self.as_raw() }
    }

    /// Cancels an operation.
    pub(crate) fn cancel(&self, context: Context) -> Result {
        if self.tables().ops.is_null() {
            return Err(ENOSYS);
        }
        // SAFETY: The endpoint is open; contexts are compared only.
        let ret = unsafe { bindings::kfi_cancel(self.any().as_raw(), context.as_raw()) };
        super::size_result(ret).map(|_| ())
    }

    /// Reads an option; returns how long it is, even if there is not as much room. May sleep.
    pub(crate) fn getopt(&self, level: c_int, name: c_int, value: &mut [u8]) -> (Result, usize) {
        let mut len = value.len();
        if self.tables().ops.is_null() {
            return (Err(ENOSYS), len);
        }
        // SAFETY: The endpoint is open; there is room for `len` bytes.
        let ret = to_result(unsafe {
            bindings::kfi_getopt(
                self.any().as_raw(),
                level,
                name,
                value.as_mut_ptr().cast(),
                &mut len,
            )
        });
        (ret, len)
    }

    /// Sets an option. May sleep.
    pub(crate) fn setopt(&self, level: c_int, name: c_int, value: &[u8]) -> Result {
        if self.tables().ops.is_null() {
            return Err(ENOSYS);
        }
        // SAFETY: The endpoint is open; there are as many bytes.
        to_result(unsafe {
            bindings::kfi_setopt(
                self.any().as_raw(),
                level,
                name,
                value.as_ptr().cast(),
                value.len(),
            )
        })
    }

    /// Returns what an endpoint needs for names and connections; `ENOSYS` if it has none of that.
    fn cm(&self) -> Result<*mut bindings::kfid_ep> {
        if self.tables().cm.is_null() {
            return Err(ENOSYS);
        }
        Ok(self.as_raw())
    }

    /// Returns the length of the address of the peer, even if there is not as much room. May sleep.
    pub(crate) fn getpeer(&self, addr: &mut [u8]) -> (Result, usize) {
        let mut len = addr.len();
        let ret = self.cm().and_then(|ep| {
            // SAFETY: The endpoint is open; there is room for `len` bytes.
            to_result(unsafe { bindings::kfi_getpeer(ep, addr.as_mut_ptr().cast(), &mut len) })
        });
        (ret, len)
    }

    /// Requests a connection to an address, given with room for any format. May sleep.
    pub(crate) fn connect(&self, addr: &[u8; super::ADDR_MAX], param: &[u8]) -> Result {
        let ep = self.cm()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open; there are an address and as many bytes.
        to_result(unsafe { bindings::kfi_connect(ep, addr.as_ptr().cast(), param, len) })
    }

    /// Accepts a connection. May sleep.
    pub(crate) fn accept(&self, param: &[u8]) -> Result {
        let ep = self.cm()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open; there are as many bytes.
        to_result(unsafe { bindings::kfi_accept(ep, param, len) })
    }

    /// Ends a connection. May sleep.
    pub(crate) fn shutdown(&self, flags: u64) -> Result {
        // SAFETY: The endpoint is open.
        to_result(unsafe { bindings::kfi_shutdown(self.cm()?, flags) })
    }

    /// Joins a multicast group at an address, given with room for any format. May sleep.
    pub(crate) fn join(
        &self,
        addr: &[u8; super::ADDR_MAX],
        flags: u64,
        context: Context,
    ) -> Result<Multicast> {
        let mut mc = ptr::null_mut();
        let ep = self.cm()?;
        // SAFETY: The endpoint is open; there is an address.
        let ret = unsafe {
            bindings::kfi_join(ep, addr.as_ptr().cast(), flags, &mut mc, context.as_raw())
        };
        // SAFETY: It has just been opened.
        Ok(Multicast(unsafe { Object::new(opened(ret, mc)?) }))
    }
}

/// Flags with which a receive takes several messages.
const MULTI_RECV: u64 = bindings::KFI_MULTI_RECV as u64 | bindings::KFI_TAGGED_MULTI_RECV as u64;

/// Returns data for a peer, null for none.
fn param_of(param: &[u8]) -> (*const c_void, usize) {
    if param.is_empty() {
        return (ptr::null(), 0);
    }
    (param.as_ptr().cast(), param.len())
}

/// What has a name: endpoints, contexts and passive endpoints.
pub(crate) trait Named {
    /// Returns the object, if it has functions for names.
    fn named(&self) -> Result<AnyObject<'_>>;

    /// Sets the source address. May sleep.
    fn setname(&self, addr: &mut [u8]) -> Result {
        let fid = self.named()?.as_raw();
        // SAFETY: The object is open and has the functions; there are as many bytes.
        to_result(unsafe { bindings::kfi_setname(fid, addr.as_mut_ptr().cast(), addr.len()) })
    }

    /// Returns the length of the source address, even if there is not as much room. May sleep.
    fn getname(&self, addr: &mut [u8]) -> (Result, usize) {
        let mut len = addr.len();
        let ret = self.named().and_then(|object| {
            // SAFETY: The object is open and has the functions; there is room for `len` bytes.
            to_result(unsafe {
                bindings::kfi_getname(object.as_raw(), addr.as_mut_ptr().cast(), &mut len)
            })
        });
        (ret, len)
    }
}

impl Named for Endpoint {
    fn named(&self) -> Result<AnyObject<'_>> {
        self.cm()?;
        Ok(self.any())
    }
}

impl Named for PassiveEndpoint {
    fn named(&self) -> Result<AnyObject<'_>> {
        // SAFETY: The endpoint is open; its tables do not change.
        if unsafe { (*self.as_raw()).cm.is_null() } {
            return Err(ENOSYS);
        }
        // It begins as endpoints do.
        Ok(self.any())
    }
}

impl PassiveEndpoint {
    /// Opens a passive endpoint. May sleep.
    pub(crate) fn open(fabric: &Fabric, info: InfoRef<'_>, context: Context) -> Result<Self> {
        op_flags(info)?;
        let mut pep = ptr::null_mut();
        // SAFETY: `fabric` is open, `info` is valid; the provider only reads it.
        let ret = unsafe {
            bindings::kfi_passive_ep(fabric.as_raw(), info.as_raw(), &mut pep, context.as_raw())
        };
        // SAFETY: It has just been opened.
        Ok(Self(unsafe { Object::new(opened(ret, pep)?) }))
    }

    /// Begins to listen. May sleep.
    pub(crate) fn listen(&self) -> Result {
        self.named()?;
        // SAFETY: The endpoint is open and has the function.
        to_result(unsafe { bindings::kfi_listen(self.as_raw()) })
    }

    /// Rejects no request. May sleep.
    pub(crate) fn reject_null(&self, param: &[u8]) -> Result {
        self.named()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open and has the function; there are as many bytes.
        to_result(unsafe { bindings::kfi_reject(self.as_raw(), ptr::null_mut(), param, len) })
    }
}

impl SharedTransmit {
    /// Opens a transmit context that endpoints share. May sleep.
    pub(crate) fn open(
        domain: &Domain,
        mut attr: Option<bindings::kfi_tx_attr>,
        context: Context,
    ) -> Result<Self> {
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let mut stx = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid.
        let ret = unsafe {
            bindings::kfi_stx_context(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut stx,
                context.as_raw(),
            )
        };
        // SAFETY: It has just been opened.
        Ok(Self(unsafe { Object::new(opened(ret, stx)?) }))
    }
}
