// SPDX-License-Identifier: GPL-2.0

//! Endpoints and contexts.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
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
        barrier::smp_mb,
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    }, //
};

use super::{
    buffer::{
        Buffer,
        Segment, //
    },
    contexts::{
        Condition,
        Contexts,
        Lasts,
        OwnerId, //
    },
    leftovers::Account,
    memory_region::{
        MemoryRegion,
        RegionUse, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        Ending,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    operation::{
        Form,
        Kind,
        Operation, //
    },
    peak::Peak,
    quota::{
        Charge,
        Quota, //
    },
    Answer,
    CompletionQueue,
    Domain,
    Fabric, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    info::InfoRef,
    wait_obj::WaitObj, //
};

mod iov_limits;
mod largest;

pub(super) use iov_limits::PENDING_SIZE;
pub use iov_limits::{
    DEPTH,
    RECEIVE_SIZE,
    TRANSMIT_SIZE, //
};

use iov_limits::{
    IovLimits,
    COMPLETION_SIZE,
    RECEIVE_KINDS, //
};
use largest::Largest;

object! {
    /// An open endpoint or context as C knows it.
    Ep(kfid_ep, Endpoint), own flags
}

object! {
    /// An open passive endpoint.
    PassiveEndpoint(kfid_pep, PassiveEndpoint)
}

object! {
    /// An open transmit context that endpoints share as C knows it.
    Stx(kfid_stx, SharedTransmit)
}

object! {
    /// A multicast group that was joined.
    Multicast(kfid_mc, Multicast)
}

/// The resources that operations on an endpoint may still use until it is closed.
#[pin_data]
pub(super) struct Uses {
    /// By their addresses, each with its part in the memory.
    #[pin]
    buffers: Mutex<RBTree<usize, (Arc<Buffer>, Charge)>>,
    /// Regions whose descriptors were handed over, by their addresses.
    #[pin]
    regions: Mutex<RBTree<usize, (RegionUse, Charge)>>,
    /// The memory that the provider may keep of operations that transmit.
    #[pin]
    transmits: Largest,
    /// The memory that it may keep of receives.
    #[pin]
    receives: Largest,
    /// Whether the endpoint is closed, with all operations on it and its aliases.
    closed: Atomic<bool>,
    /// Whether what is sent may be copied without asking for that.
    inject: Atomic<bool>,
    /// The operations that transmit whose success is told.
    told: ToldOf,
    /// The memory that counts for completions of a transmit context that is shared. Held while one
    /// is bound.
    #[pin]
    binding: Mutex<Charge>,
    /// The same of that context, whose queue stands in where the endpoint has none.
    shared: SetOnce<Arc<ToldOf>>,
    /// How many contexts there are for operations whose success nobody is told of.
    silent: Atomic<u64>,
    /// Whether a receive may take several messages without being asked to. An alias has the flags of
    /// its base in one direction, whatever these become.
    multi_recv: Atomic<bool>,
}

/// The memory of an entry of these.
const USE_SIZE: usize = 128;

/// Which operations that transmit a queue is told of if they succeed.
struct ToldOf {
    /// A queue is told of all.
    all: Atomic<bool>,
    /// A queue is told of those that ask for it.
    asked: Atomic<bool>,
    /// They may ask for it by default.
    by_default: Atomic<bool>,
}

impl ToldOf {
    /// No queue is told of any operation.
    const fn none() -> Self {
        Self {
            all: Atomic::new(false),
            asked: Atomic::new(false),
            by_default: Atomic::new(false),
        }
    }

    /// Notes that a queue was bound with these flags.
    fn note_queue(&self, flags: u64) {
        let which = match flags & SELECTIVE_FLAG != 0 {
            true => &self.asked,
            false => &self.all,
        };
        // Relaxed: it decides only how long a context is kept.
        which.store(true, ordering::Relaxed);
    }

    /// Returns whether a queue was bound.
    fn has_queue(&self) -> bool {
        // Relaxed: as above.
        self.all.load(ordering::Relaxed) || self.asked.load(ordering::Relaxed)
    }

    /// Returns whether there is a queue that is told of those only that ask for it.
    fn is_selective(&self) -> bool {
        // Relaxed: as above.
        self.asked.load(ordering::Relaxed) && !self.all.load(ordering::Relaxed)
    }
}

/// The kind of an endpoint for its provider, whose structures differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// An endpoint.
    Plain,
    /// The object that has contexts.
    Scalable,
    /// A transmit context.
    Transmit,
    /// A receive context, shared or not.
    Receive,
}

/// An endpoint, an alias of one, a scalable endpoint, or a context.
pub struct Endpoint {
    ep: Ep,
    role: Role,
    /// The owner of the operations, this or the object that it is an alias of.
    owner: OwnerId,
    /// The owner of those of the domain's deferred work.
    domain_owner: OwnerId,
    /// The remains of its operations; none of an alias.
    account: Option<Account>,
    limits: IovLimits,
    /// The contexts of operations. Kept until the endpoint is closed.
    contexts: Arc<Contexts>,
    /// The places of what waits for a counter of the domain.
    places: Arc<Peak>,
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
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.ep.close_with(permit)?;
        self.ended();
        Ok(())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.ep.end() {
            self.ended();
        } else {
            // Operations may still use the memory.
            core::mem::forget((self.uses.clone(), self.account.take()));
        }
    }
}

/// Kinds of endpoints on a domain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EndpointKind {
    /// kfi_endpoint.
    Plain,
    /// kfi_scalable_ep.
    Scalable,
}

/// The modes that a provider may demand of its consumer and that this one cannot follow. With
/// `KFI_LOCAL_MR` each piece of memory would need the descriptor of a region that it lies in, where a
/// [`Segment`] may be without, or have one of another region.
// bindgen chooses the type of a constant by its value.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
const DEMANDS: u64 = bindings::KFI_CONTEXT as u64
    | bindings::KFI_CONTEXT2 as u64
    | bindings::KFI_ASYNC_IOV as u64
    | bindings::KFI_MSG_PREFIX as u64
    | bindings::KFI_LOCAL_MR as u64;

/// Returns the default flags of operations; `EOPNOTSUPP` if contexts would have to be structures,
/// arrays to stay, messages to have a prefix, or local memory to be registered.
pub fn op_flags(info: InfoRef<'_>) -> Result<u64> {
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
        if attr.mr_mode.cast_unsigned() & bindings::KFI_MR_LOCAL != 0 {
            mode |= bindings::KFI_LOCAL_MR;
        }
    }
    refuse(mode)?;
    Ok(flags)
}

/// Checks a mode; `EOPNOTSUPP` for one that this consumer cannot serve.
pub fn refuse(mode: u64) -> Result {
    if mode & DEMANDS != 0 {
        return Err(EOPNOTSUPP);
    }
    Ok(())
}

/// Returns the object that a function has opened, or its error.
fn opened<H>(ret: c_int, head: *mut H) -> Result<NonNull<H>> {
    to_result(ret)?;
    NonNull::new(head).ok_or(EIO)
}

impl Uses {
    /// Makes the collection of what operations use, which counts in `quota`.
    fn new(quota: &Arc<Quota>) -> Result<Arc<Self>> {
        let completions = Quota::nothing(quota);
        Arc::pin_init(
            pin_init!(Self {
                buffers <- new_mutex!(RBTree::new(), "kfi::Uses::buffers"),
                regions <- new_mutex!(RBTree::new(), "kfi::Uses::regions"),
                transmits <- Largest::new(quota),
                receives <- Largest::new(quota),
                closed: Atomic::new(false),
                inject: Atomic::new(false),
                told: ToldOf::none(),
                binding <- new_mutex!(completions, "kfi::Uses::binding"),
                shared: SetOnce::new(),
                silent: Atomic::new(0),
                multi_recv: Atomic::new(false),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Keeps a buffer. It is known by its address, which no other has as long as it is kept: its user may
    /// give the same number to several.
    fn hold_buffer(&self, buffer: &Arc<Buffer>, quota: &Arc<Quota>) -> Result {
        let address = Arc::as_ptr(buffer).addr();
        if self.buffers.lock().get(&address).is_some() {
            return Ok(());
        }
        let charge = Quota::charge(quota, USE_SIZE)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let node = node.into_node(address, (buffer.clone(), charge));
        let old = self.buffers.lock().insert(node);
        drop(old);
        Ok(())
    }

    /// Returns whether all operations have ended.
    pub(super) fn has_ended(&self) -> bool {
        // Acquire: after whatever the provider has done for them.
        self.closed.load(ordering::Acquire)
    }

    /// Lets everything go, as all operations have ended; returns what counts for what the provider may
    /// have kept of them, and for their completions.
    fn end(&self) -> [Charge; 3] {
        // Release: pairs with the above.
        // See `qemu-test/litmus/KFI-last-use.litmus`.
        self.closed.store(true, ordering::Release);
        let buffers = core::mem::take(&mut *self.buffers.lock());
        let regions = core::mem::take(&mut *self.regions.lock());
        drop((buffers, regions));
        let completions = self.binding.lock().take();
        [self.transmits.take(), self.receives.take(), completions]
    }
}

/// The parts of an endpoint that is being opened.
struct Opening {
    account: Option<Account>,
    owner: OwnerId,
    domain_owner: OwnerId,
    lineage: Lineage,
    role: Role,
    limits: IovLimits,
    contexts: Arc<Contexts>,
    places: Arc<Peak>,
    uses: Arc<Uses>,
}

impl Opening {
    /// For an endpoint of a domain for whose operations `charge` counts.
    fn of(domain: &Domain, role: Role, charge: Charge) -> Result<Self> {
        let account = Account::new(domain.contexts(), charge)?;
        Ok(Self {
            role,
            owner: account.owner(),
            account: Some(account),
            domain_owner: domain.owner(),
            lineage: domain.lineage(),
            limits: IovLimits::NONE,
            contexts: domain.contexts().clone(),
            places: domain.works.places.clone(),
            uses: Uses::new(domain.contexts().quota())?,
        })
    }

    /// For a context of a scalable endpoint; `EINVAL` for one of anything else, which a provider may
    /// take for such, `ENOSYS` if there is no function for that.
    fn with(ep: &Endpoint, role: Role, charge: Charge) -> Result<Self> {
        if ep.role != Role::Scalable {
            return Err(EINVAL);
        }
        if !ep.has(Table::Endpoint) {
            return Err(ENOSYS);
        }
        let account = Account::new(&ep.contexts, charge)?;
        Ok(Self {
            role,
            owner: account.owner(),
            account: Some(account),
            uses: Uses::new(ep.quota())?,
            ..Self::alias(ep)
        })
    }

    /// For an alias of an endpoint.
    fn alias(ep: &Endpoint) -> Self {
        Self {
            account: None,
            owner: ep.owner,
            domain_owner: ep.domain_owner,
            lineage: ep.lineage(),
            role: ep.role,
            limits: ep.limits,
            contexts: ep.contexts.clone(),
            places: ep.places.clone(),
            uses: ep.uses.clone(),
        }
    }
}

impl Endpoint {
    /// Returns how many bytes [`Self::open`] is to be given for the operations of an endpoint that is
    /// opened as an entry says.
    #[allow(dead_code, reason = "for a program, more than this is counted")]
    pub fn operations_size(info: InfoRef<'_>) -> usize {
        let limits = IovLimits::NONE.with(info.tx_attr(), info.rx_attr());
        let transmits = limits.transmits.saturating_mul(TRANSMIT_SIZE);
        let receives = limits.receives.saturating_mul(RECEIVE_SIZE);
        transmits
            .saturating_add(receives)
            .saturating_add(super::LEFT_SIZE)
    }

    /// Takes an endpoint with these default flags.
    ///
    /// # Safety
    ///
    /// It must have just been opened, on what `opening` was made for.
    unsafe fn new(head: NonNull<bindings::kfid_ep>, opening: Opening, flags: u64) -> Self {
        let this = Self {
            // SAFETY: By the safety requirements.
            ep: unsafe { Ep::new(head, opening.lineage) },
            role: opening.role,
            owner: opening.owner,
            domain_owner: opening.domain_owner,
            account: opening.account,
            limits: opening.limits,
            contexts: opening.contexts,
            places: opening.places,
            uses: opening.uses,
        };
        this.note_flags(flags);
        this
    }

    /// Takes note that it is closed, and with it all operations have ended.
    fn ended(&mut self) {
        if let Some(account) = self.account.take() {
            account.close(self.uses.end());
        }
    }

    /// Takes over the default flags of the endpoint that it is a context of.
    fn inherit(self, base: &Self) -> Self {
        // All flags that the provider has seen of the base were noted before; pairs with the one
        // in `set_ops_flag`.
        smp_mb(ordering::Full);
        // Relaxed: as for `note_flags`.
        if base.uses.multi_recv.load(ordering::Relaxed) {
            self.uses.multi_recv.store(true, ordering::Relaxed);
        }
        if base.uses.inject.load(ordering::Relaxed) {
            self.uses.inject.store(true, ordering::Relaxed);
        }
        if base.uses.told.by_default.load(ordering::Relaxed) {
            self.uses.told.by_default.store(true, ordering::Relaxed);
        }
        self
    }

    /// Opens an endpoint. `info` may be an entry that its consumer has made: what the provider demands
    /// was looked for when the domain was opened, and here again. `charge` is what counts for its
    /// operations, until it is closed and none of their completions is in a queue any more: at least
    /// [`Self::operations_size`], or else a budget says less than there is. May sleep.
    pub fn open(
        domain: &Domain,
        kind: EndpointKind,
        info: InfoRef<'_>,
        context: Context,
        charge: Charge,
    ) -> Result<Self> {
        let flags = op_flags(info)?;
        let role = match kind {
            EndpointKind::Plain => Role::Plain,
            EndpointKind::Scalable => Role::Scalable,
        };
        let mut opening = Opening::of(domain, role, charge)?;
        opening.limits = IovLimits::NONE.with(info.tx_attr(), info.rx_attr());
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
        // SAFETY: It has just been opened, on the domain.
        Ok(unsafe { Self::new(opened(ret, ep)?, opening, flags) })
    }

    /// Opens a transmit context of a scalable endpoint. May sleep.
    pub fn tx_context(
        &self,
        index: c_int,
        mut attr: Option<bindings::kfi_tx_attr>,
        context: Context,
        charge: Charge,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let mut opening = Opening::with(self, Role::Transmit, charge)?;
        opening.limits = opening.limits.with(attr.as_ref(), None);
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
        // SAFETY: It has just been opened, on the domain of this endpoint.
        let this = unsafe { Self::new(opened(ret, ep)?, opening, flags) };
        Ok(this.inherit(self))
    }

    /// Opens a receive context of a scalable endpoint. May sleep.
    pub fn rx_context(
        &self,
        index: c_int,
        mut attr: Option<bindings::kfi_rx_attr>,
        context: Context,
        charge: Charge,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let mut opening = Opening::with(self, Role::Receive, charge)?;
        opening.limits = opening.limits.with(None, attr.as_ref());
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
        // SAFETY: It has just been opened, on the domain of this endpoint.
        let this = unsafe { Self::new(opened(ret, ep)?, opening, flags) };
        Ok(this.inherit(self))
    }

    /// Opens a receive context that endpoints share. May sleep.
    pub fn srx_context(
        domain: &Domain,
        mut attr: Option<bindings::kfi_rx_attr>,
        context: Context,
        charge: Charge,
    ) -> Result<Self> {
        let flags = attr.as_ref().map_or(0, |attr| attr.op_flags);
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let mut opening = Opening::of(domain, Role::Receive, charge)?;
        opening.limits = opening.limits.with(None, attr.as_ref());
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
        // SAFETY: It has just been opened, on the domain.
        Ok(unsafe { Self::new(opened(ret, ep)?, opening, flags) })
    }

    /// Opens an alias. May sleep.
    pub fn alias(&self, flags: u64) -> Result<Self> {
        let mut ep = ptr::null_mut();
        // SAFETY: The endpoint is open.
        let ret = unsafe { bindings::kfi_ep_alias(self.as_raw(), &mut ep, flags) };
        // SAFETY: It has just been opened, on the domain of this endpoint.
        Ok(unsafe { Self::new(opened(ret, ep)?, Opening::alias(self), flags) })
    }

    /// Notes flags that operations may have by default.
    fn note_flags(&self, flags: u64) {
        if flags & MULTI_RECV != 0 {
            // Relaxed: never cleared. See `may_repeat_by_now` for threads that post meanwhile.
            self.uses.multi_recv.store(true, ordering::Relaxed);
        }
        if flags & COMPLETION_FLAG != 0 {
            // Relaxed: it decides only how long a context is kept.
            self.uses.told.by_default.store(true, ordering::Relaxed);
        }
        if flags & INJECT_FLAG != 0 {
            // Relaxed: as above; what is copied meanwhile is not counted.
            self.uses.inject.store(true, ordering::Relaxed);
        }
    }

    /// Binds a completion queue. May sleep.
    ///
    /// Unlike [`AnyObject::bind`] it takes note of whether the success of an operation is told, and with
    /// that the number of each.
    pub fn bind_queue(&self, queue: &CompletionQueue, flags: u64) -> Result {
        self.any().bind(queue.any(), flags)?;
        self.note_queue(flags);
        Ok(())
    }

    /// Notes that a completion queue was bound.
    fn note_queue(&self, flags: u64) {
        let both = u64::from(bindings::KFI_TRANSMIT) | u64::from(bindings::KFI_RECV);
        let transmits = match flags & both {
            // The direction of the context itself.
            0 => self.role == Role::Transmit,
            directions => directions & u64::from(bindings::KFI_TRANSMIT) != 0,
        };
        if transmits {
            self.uses.told.note_queue(flags);
        }
    }

    /// Binds a transmit context that is shared: there may be as many operations as that has, and where
    /// the endpoint has no queue the one of the context stands in. As the operations have ended while
    /// their completions are in queues, and others may be posted instead on other endpoints, as many
    /// completions count for each endpoint. May sleep.
    pub fn bind_shared(&self, stx: &SharedTransmit, flags: u64) -> Result<Answer> {
        // The former amount is restored, unless another thread changes it meanwhile.
        let mut completions = self.uses.binding.lock();
        let most = stx.depth.saturating_mul(COMPLETION_SIZE);
        completions.grow(most)?;
        let before = self
            .uses
            .transmits
            .deepen(stx.depth)
            .inspect_err(|_| completions.shrink(most))?;
        let ret = self.any().bind(stx.any(), flags);
        if ret.is_ok() {
            self.uses.shared.populate(stx.told.clone());
        } else {
            // Other threads may have posted meanwhile.
            let own = before.max(self.limits.transmits);
            self.uses.transmits.restore(own);
            completions.shrink(most);
        }
        Ok(ret)
    }

    /// Returns whether nobody is told of the success of an operation, by what is known of queues and
    /// flags; if that is wrong only its number may be. That of a receive is known always, as it may
    /// wait for long, while others come and go.
    fn is_silent(&self, operation: &Operation<'_>) -> bool {
        if operation.kind.is_receive() || operation.flags & COMPLETION_FLAG != 0 {
            return false;
        }
        let told = &self.uses.told;
        // Relaxed: as for `note_flags`.
        if told.by_default.load(ordering::Relaxed) {
            return false;
        }
        match self.uses.shared.as_ref() {
            Some(shared) if !told.has_queue() => shared.is_selective(),
            _ => told.is_selective(),
        }
    }

    /// Returns whether there may be one more context for operations whose success nobody is told of.
    /// There are twice as many as there may be operations.
    fn may_add_silent(&self) -> bool {
        let depth = self.limits.transmits.max(self.uses.transmits.depth());
        let most = depth.saturating_mul(2).max(1) as u64;
        let silent = &self.uses.silent;
        // Relaxed: a number that nothing else hangs on; some more do no harm.
        silent.load(ordering::Relaxed) < most && silent.fetch_add(1, ordering::Relaxed) < most
    }

    /// Changes the default operation flags (KFI_SETOPSFLAG).
    pub fn set_ops_flag(&self, flags: OpFlags) -> Result {
        self.note_flags(flags.as_raw());
        // Before the provider is told; pairs with the barrier of `may_repeat_by_now`.
        // See `qemu-test/litmus/KFI-default-flags.litmus`.
        smp_mb(ordering::Full);
        self.ep.set_ops_flag(flags)
    }

    /// Returns whether a receive may have several completions, by what is known before it is posted.
    fn may_repeat(&self, operation: &Operation<'_>) -> bool {
        // Relaxed: see `note_flags`.
        let by_default = self.uses.multi_recv.load(ordering::Relaxed);
        operation.kind.is_receive() && (operation.flags & MULTI_RECV != 0 || by_default)
    }

    /// Returns whether a receive that was posted may have several completions: if the provider has
    /// seen flags, this does.
    fn may_repeat_by_now(&self, operation: &Operation<'_>) -> bool {
        if !operation.kind.is_receive() {
            return false;
        }
        smp_mb(ordering::Full);
        self.may_repeat(operation)
    }

    /// Returns the context for an operation, to be settled with [`Self::posted`].
    pub(super) fn context_for(
        &self,
        operation: &Operation<'_>,
        condition: Option<Condition<'_>>,
    ) -> Result<Answer<Context>> {
        let claims = bindings::KFI_CLAIM;
        let lasts = if self.may_repeat(operation) {
            Lasts::Repeats
        } else if operation.flags & claims != 0 {
            // The operation that claims has the context of the one that has looked.
            Lasts::Kept
        } else {
            Lasts::Once
        };
        let number = operation.number;
        if condition.is_none() && lasts == Lasts::Once && self.is_silent(operation) {
            let may_add = || self.may_add_silent();
            return Ok(Ok(self
                .contexts
                .acquire_silent(self.owner, number, may_add)?));
        }
        match condition.map(|condition| condition.raw(self.lineage())) {
            None => Ok(Ok(self
                .contexts
                .acquire_to_post(self.owner, number, lasts)?)),
            Some(Ok(raw)) => {
                let kept = PENDING_SIZE.saturating_add(self.kept_of(operation));
                let contexts = &self.contexts;
                let place = Peak::take(&self.places)?;
                let context = contexts.acquire_with(self.owner, number, lasts, raw, kept, place)?;
                Ok(Ok(context))
            }
            Some(Err(error)) => Ok(Err(error)),
        }
    }

    /// Takes note of what has become of an operation with a context.
    pub(super) fn posted(&self, operation: &Operation<'_>, context: Context, accepted: bool) {
        let repeats = self.may_repeat_by_now(operation);
        self.contexts.posted(context, accepted, repeats);
    }

    /// Returns how many entries arrays may have.
    pub(super) fn limits(&self) -> IovLimits {
        self.limits
    }

    /// Returns where the memory of operations counts.
    pub(super) fn quota(&self) -> &Arc<Quota> {
        self.contexts.quota()
    }

    /// Keeps the buffers of segments, and the regions whose descriptors they have, until the endpoint
    /// is closed.
    pub(super) fn hold(&self, segments: &[Segment]) -> Result {
        let mut last = None;
        for segment in segments {
            if let Some(buffer) = segment.buffer() {
                let address = Arc::as_ptr(buffer).addr();
                // Pieces of one buffer often come one behind the other.
                if last.replace(address) != Some(address) {
                    self.uses.hold_buffer(buffer, self.quota())?;
                }
            }
            if let Some(region) = segment.region() {
                self.hold_region(region)?;
            }
        }
        Ok(())
    }

    /// Returns how much the provider may keep of an operation: its arrays, and what it copies.
    pub(super) fn kept_of(&self, operation: &Operation<'_>) -> usize {
        let arrays = match operation.form {
            Form::Array(shape) | Form::Msg(shape) => IovLimits::kept_of(operation, shape),
            _ => 0,
        };
        // Relaxed: see `note_flags`.
        let copies = !operation.kind.is_receive()
            && (matches!(operation.form, Form::Inject | Form::InjectData)
                || operation.flags & INJECT_FLAG != 0
                || self.uses.inject.load(ordering::Relaxed));
        if !copies {
            return arrays;
        }
        let len = operation
            .segments
            .iter()
            .fold(0, |sum: usize, segment| sum.saturating_add(segment.len()));
        // More is refused.
        arrays.saturating_add(if len > self.limits.inject { 0 } else { len })
    }

    /// Counts what the provider may keep of operations that are as large as this one.
    pub(super) fn widen(&self, operation: &Operation<'_>) -> Result {
        let (uses, limits) = (&self.uses, self.limits);
        let kept = self.kept_of(operation);
        if operation.kind.is_receive() {
            let receives = limits.receives.saturating_mul(RECEIVE_KINDS);
            uses.receives.widen(kept, receives)
        } else {
            uses.transmits.widen(kept, limits.transmits)
        }
    }

    /// Returns how many operations that transmit, and how many receives, there may be at a time on a
    /// context of it for which nobody says that.
    pub fn depths(&self) -> (usize, usize) {
        (self.limits.transmits, self.limits.receives)
    }

    /// Returns whether there are functions for operations of a kind.
    pub(super) fn can(&self, kind: Kind) -> bool {
        self.has(match kind {
            Kind::Send | Kind::Recv => Table::Message,
            Kind::TaggedSend | Kind::TaggedRecv => Table::Tagged,
            Kind::Read | Kind::Write => Table::Rma,
            Kind::Atomic | Kind::FetchAtomic | Kind::CompareAtomic => Table::Atomic,
        })
    }

    /// Returns whether a provider may be told to carry out an operation of a kind on this: whether it
    /// has such operations, and it is what it takes it for.
    pub(super) fn can_be_told(&self, kind: Kind) -> bool {
        let role = match kind.is_receive() {
            true => Role::Receive,
            false => Role::Transmit,
        };
        self.can(kind) && (self.role == Role::Plain || self.role == role)
    }

    /// Returns whether the regions whose descriptors an operation hands over are those of the domain:
    /// a provider finds its own structures there.
    pub(super) fn owns_regions(&self, operation: &Operation<'_>) -> bool {
        let lists = [operation.segments, operation.results, operation.compares];
        lists
            .iter()
            .flat_map(|list| list.iter())
            .filter_map(Segment::region)
            .all(|region| region.lineage().same_domain(self.lineage()))
    }

    /// Returns what its operations use, which tells when these have ended.
    pub(super) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }

    /// Keeps a region.
    fn hold_region(&self, region: &Arc<MemoryRegion>) -> Result {
        let address = region.as_raw().addr();
        if self.uses.regions.lock().get(&address).is_some() {
            return Ok(());
        }
        let charge = Quota::charge(self.quota(), USE_SIZE)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let node = node.into_node(address, (RegionUse::new(region), charge));
        let old = self.uses.regions.lock().insert(node);
        drop(old);
        Ok(())
    }

    /// Returns whether there is a table of operations; a context may lack some of them.
    fn has(&self, table: Table) -> bool {
        let ep = self.as_raw();
        // SAFETY: The endpoint is open; its tables do not change. No reference is made to the head, of which
        // the provider may change other fields meanwhile.
        let is_null = unsafe {
            match table {
                Table::Endpoint => (*ep).ops.is_null(),
                Table::Cm => (*ep).cm.is_null(),
                Table::Message => (*ep).msg.is_null(),
                Table::Tagged => (*ep).tagged.is_null(),
                Table::Rma => (*ep).rma.is_null(),
                Table::Atomic => (*ep).atomic.is_null(),
            }
        };
        !is_null
    }

    /// Cancels an operation that its user knows by a number; `EINTR` for a signal, if there are many
    /// of that number. In process context; may sleep, other than kfi_cancel.
    pub fn cancel(&self, number: u64) -> Result {
        kernel::task::might_sleep();
        if !self.has(Table::Endpoint) {
            return Err(ENOSYS);
        }
        let owners = [self.owner, self.domain_owner];
        self.contexts.cancel(owners, number, |context| {
            // SAFETY: The endpoint is open; contexts are compared only.
            let ret = unsafe { bindings::kfi_cancel(self.any().as_raw(), context.as_raw()) };
            super::size_result(ret).map(|_| ())
        })
    }

    /// Reads an option; returns how long it is, even if there is not as much room. May sleep.
    pub fn getopt(&self, level: c_int, name: c_int, value: &mut [u8]) -> (Result, usize) {
        let mut len = value.len();
        if !self.has(Table::Endpoint) {
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
    pub fn setopt(&self, level: c_int, name: c_int, value: &[u8]) -> Result {
        if !self.has(Table::Endpoint) {
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
        if !self.has(Table::Cm) {
            return Err(ENOSYS);
        }
        Ok(self.as_raw())
    }

    /// Returns the length of the address of the peer, even if there is not as much room. May sleep.
    pub fn getpeer(&self, addr: &mut [u8]) -> (Result, usize) {
        let mut len = addr.len();
        let ret = self.cm().and_then(|ep| {
            // SAFETY: The endpoint is open; there is room for `len` bytes.
            to_result(unsafe { bindings::kfi_getpeer(ep, addr.as_mut_ptr().cast(), &mut len) })
        });
        (ret, len)
    }

    /// Requests a connection to an address, given with room for any format. May sleep.
    pub fn connect(&self, addr: &[u8; super::ADDR_MAX], param: &[u8]) -> Result {
        let ep = self.cm()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open; there are an address and as many bytes.
        to_result(unsafe { bindings::kfi_connect(ep, addr.as_ptr().cast(), param, len) })
    }

    /// Accepts a connection. May sleep.
    pub fn accept(&self, param: &[u8]) -> Result {
        let ep = self.cm()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open; there are as many bytes.
        to_result(unsafe { bindings::kfi_accept(ep, param, len) })
    }

    /// Ends a connection. May sleep.
    pub fn shutdown(&self, flags: u64) -> Result {
        // SAFETY: The endpoint is open.
        to_result(unsafe { bindings::kfi_shutdown(self.cm()?, flags) })
    }

    /// Joins a multicast group at an address, given with room for any format. May sleep.
    pub fn join(
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
        Ok(unsafe { Multicast::new(opened(ret, mc)?, self.lineage()) })
    }
}

/// A table of operations of an endpoint or context.
#[derive(Clone, Copy)]
enum Table {
    /// Of all of them.
    Endpoint,
    /// Names and connections.
    Cm,
    /// Messages.
    Message,
    /// Tagged messages.
    Tagged,
    /// Remote memory access.
    Rma,
    /// Atomic operations.
    Atomic,
}

/// Flags with which a receive takes several messages.
const MULTI_RECV: u64 = bindings::KFI_MULTI_RECV as u64 | bindings::KFI_TAGGED_MULTI_RECV as u64;

/// The flag with which success is told.
const COMPLETION_FLAG: u64 = bindings::KFI_COMPLETION as u64;

/// The flag of a queue that is told of such only.
const SELECTIVE_FLAG: u64 = bindings::KFI_SELECTIVE_COMPLETION;

/// The flag with which what is sent is copied.
const INJECT_FLAG: u64 = bindings::KFI_INJECT as u64;

/// Returns data for a peer, null for none.
fn param_of(param: &[u8]) -> (*const c_void, usize) {
    if param.is_empty() {
        return (ptr::null(), 0);
    }
    (param.as_ptr().cast(), param.len())
}

/// Objects that have a name: endpoints, contexts and passive endpoints.
///
/// # Safety
///
/// [`Self::named`] must return an endpoint, a context or a passive endpoint whose `cm` is not null.
pub unsafe trait HasName {
    /// Returns the object, if it has functions for names.
    fn named(&self) -> Result<AnyObject<'_>>;

    /// Sets the source address. May sleep.
    fn setname(&self, addr: &mut [u8]) -> Result {
        let fid = self.named()?.as_raw();
        // SAFETY: The object is open, and has the functions by the safety requirements of this trait;
        // there are as many bytes.
        to_result(unsafe { bindings::kfi_setname(fid, addr.as_mut_ptr().cast(), addr.len()) })
    }

    /// Returns the length of the source address, even if there is not as much room. May sleep.
    fn getname(&self, addr: &mut [u8]) -> (Result, usize) {
        let mut len = addr.len();
        let ret = self.named().and_then(|object| {
            // SAFETY: The object is open, and has the functions by the safety requirements of this
            // trait; there is room for `len` bytes.
            to_result(unsafe {
                bindings::kfi_getname(object.as_raw(), addr.as_mut_ptr().cast(), &mut len)
            })
        });
        (ret, len)
    }
}

// SAFETY: It is an endpoint or a context, and `cm` fails where that is null.
unsafe impl HasName for Endpoint {
    fn named(&self) -> Result<AnyObject<'_>> {
        self.cm()?;
        Ok(self.any())
    }
}

// SAFETY: It is a passive endpoint, and its `cm` has been looked at.
unsafe impl HasName for PassiveEndpoint {
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
    pub fn open(fabric: &Fabric, info: InfoRef<'_>, context: Context) -> Result<Self> {
        op_flags(info)?;
        let mut pep = ptr::null_mut();
        // SAFETY: `fabric` is open, `info` is valid; the provider only reads it.
        let ret = unsafe {
            bindings::kfi_passive_ep(fabric.as_raw(), info.as_raw(), &mut pep, context.as_raw())
        };
        // SAFETY: It has just been opened.
        Ok(unsafe { Self::new(opened(ret, pep)?, fabric.lineage()) })
    }

    /// Begins to listen. May sleep.
    pub fn listen(&self) -> Result {
        self.named()?;
        // SAFETY: The endpoint is open and has the function.
        to_result(unsafe { bindings::kfi_listen(self.as_raw()) })
    }

    /// Calls kfi_reject with NULL for the request. May sleep.
    pub fn reject_null(&self, param: &[u8]) -> Result {
        self.named()?;
        let (param, len) = param_of(param);
        // SAFETY: The endpoint is open and has the function; there are as many bytes.
        to_result(unsafe { bindings::kfi_reject(self.as_raw(), ptr::null_mut(), param, len) })
    }
}

/// An open transmit context that endpoints share.
pub struct SharedTransmit {
    stx: Stx,
    /// How many operations there may be at a time in all of them.
    depth: usize,
    /// The operations whose success the queue that is bound is told of.
    told: Arc<ToldOf>,
    /// The remains of the operations.
    account: Option<Account>,
    /// Kept until the context is closed.
    quota: Arc<Quota>,
}

impl core::ops::Deref for SharedTransmit {
    type Target = Stx;

    fn deref(&self) -> &Stx {
        &self.stx
    }
}

impl Closable for SharedTransmit {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.stx.close_with(permit)?;
        self.ended();
        Ok(())
    }
}

impl Drop for SharedTransmit {
    fn drop(&mut self) {
        if self.stx.end() {
            self.ended();
        } else {
            // Completions may still be told.
            core::mem::forget(self.account.take());
        }
    }
}

impl SharedTransmit {
    /// Opens a transmit context that endpoints share; `charge` is as for [`Endpoint::open`]. May
    /// sleep.
    pub fn open(
        domain: &Domain,
        mut attr: Option<bindings::kfi_tx_attr>,
        context: Context,
        charge: Charge,
    ) -> Result<Self> {
        refuse(attr.as_ref().map_or(0, |attr| attr.mode))?;
        let depth = IovLimits::NONE.with(attr.as_ref(), None).transmits;
        let told = Arc::new(ToldOf::none(), GFP_KERNEL_ACCOUNT)?;
        let account = Account::new(domain.contexts(), charge)?;
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
        Ok(Self {
            // SAFETY: It has just been opened.
            stx: unsafe { Stx::new(opened(ret, stx)?, domain.lineage()) },
            depth,
            told,
            account: Some(account),
            quota: domain.contexts().quota().clone(),
        })
    }

    /// Binds a completion queue, as [`Endpoint::bind_queue`]. May sleep.
    pub fn bind_queue(&self, queue: &CompletionQueue, flags: u64) -> Result {
        self.any().bind(queue.any(), flags)?;
        self.told.note_queue(flags);
        Ok(())
    }

    /// Takes note that it is closed.
    fn ended(&mut self) {
        if let Some(account) = self.account.take() {
            let none = || Quota::nothing(&self.quota);
            account.close([none(), none(), none()]);
        }
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_endpoint_uses)]
mod tests {
    use super::*;
    use crate::kfi::{
        consumer::{
            BufferKind,
            Places, //
        },
        info::{
            Info,
            InfoMut, //
        }, //
    };

    /// Returns whether an entry is refused in which something is demanded.
    fn is_refused(demand: impl FnOnce(&mut InfoMut<'_>) -> Result) -> Result<bool> {
        let mut info = Info::new()?;
        demand(&mut info.first_mut())?;
        match op_flags(info.first()) {
            Ok(_) => Ok(false),
            Err(error) if error == EOPNOTSUPP => Ok(true),
            Err(error) => Err(error),
        }
    }

    #[test]
    fn what_is_demanded_is_found_wherever_it_stands() -> Result {
        for bit in 0..u64::BITS {
            let mode = 1 << bit;
            let refused = DEMANDS & mode != 0;
            let found = [
                is_refused(|info| {
                    info.mode(mode);
                    Ok(())
                })?,
                is_refused(|info| {
                    info.tx_attr()?.mode = mode;
                    Ok(())
                })?,
                is_refused(|info| {
                    info.rx_attr()?.mode = mode;
                    Ok(())
                })?,
                is_refused(|info| {
                    info.domain_attr()?.mode(mode);
                    Ok(())
                })?,
            ];
            assert_eq!(found, [refused; 4]);
        }
        for bit in 0..i32::BITS {
            let mr_mode = 1u32 << bit;
            let found = is_refused(|info| {
                info.domain_attr()?.mr_mode(mr_mode.cast_signed());
                Ok(())
            })?;
            assert_eq!(found, mr_mode == bindings::KFI_MR_LOCAL);
        }
        Ok(())
    }

    #[test]
    fn buffers_of_one_number_are_all_kept() -> Result {
        let quota = Quota::new(usize::MAX, None)?;
        let places = Places::new()?;
        let buffer = || {
            let charge = Quota::charge(&quota, 0)?;
            let buffer = Buffer::new(BufferKind::Kmalloc, 4096, 1, charge, &places)?;
            Ok::<_, Error>(Arc::new(buffer, GFP_KERNEL)?)
        };
        let uses = Uses::new(&quota)?;
        let (first, second) = (buffer()?, buffer()?);
        for buffer in [&first, &second, &first] {
            uses.hold_buffer(buffer, &quota)?;
        }
        let held = |buffer: &Arc<Buffer>| {
            let address = Arc::as_ptr(buffer).addr();
            uses.buffers.lock().get(&address).is_some()
        };
        assert!(held(&first) && held(&second));
        uses.end();
        // Nothing else keeps the buffers.
        assert!(Arc::into_unique_or_drop(first).is_some());
        assert!(Arc::into_unique_or_drop(second).is_some());
        Ok(())
    }
}
