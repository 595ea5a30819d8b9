// SPDX-License-Identifier: GPL-2.0

//! Objects that C sees: their head, their owner and their life.
//!
//! A consumer knows an object by a pointer to its head (`struct kfid_domain`, `struct kfid_cntr`,
//! ...), which starts with a `struct kfid` and names tables of functions. A provider knows it as
//! its own type `T`. [`Fid<T>`] is both: the head first, then what every object needs, then the
//! provider's `T`. A provider implements [`Object`] and the operations of its class
//! ([`CounterOps`](super::provider::CounterOps) and so on) in safe code; the tables are built from
//! these traits.
//!
//! # Life
//!
//! An object is owned by an [`Arc`] that is leaked to C when it opens and reclaimed when it
//! closes. Close succeeds only without dependents ([`Dependents`]), in one atomic step. It then
//! waits until the operations that were running have ended: those that may be called from atomic
//! context run in RCU read-side critical sections, so a consumer may close an object as soon as it
//! has observed the effect of an operation that is still returning on another CPU (R-CLOSE-3).

use core::{
    any::TypeId,
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::from_result,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

use super::{
    bindings,
    control::{
        queues_work,
        Control, //
    },
    hold::Dependents,
    provider::DeferredWork,
    rcu, //
};

/// What a consumer wants to find again in events: a number or a pointer, never looked into.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Context(*mut c_void);

// SAFETY: The pointer is a token, it is never dereferenced.
unsafe impl Send for Context {}
// SAFETY: As above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of nobody.
    pub(crate) const NONE: Self = Self(ptr::null_mut());

    /// Takes a context from C.
    pub(crate) fn from_raw(context: *mut c_void) -> Self {
        Self(context)
    }

    /// A number for a context.
    pub(crate) fn from_number(number: usize) -> Self {
        Self(ptr::without_provenance_mut(number))
    }

    /// Returns the context as a number.
    pub(crate) fn as_number(self) -> usize {
        self.0.addr()
    }

    /// Returns the context for C.
    pub(crate) fn as_raw(self) -> *mut c_void {
        self.0
    }
}

/// Where an object is, to compare with where others are; never dereferenced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FidAddress(usize);

impl FidAddress {
    /// Takes a pointer from C; `None` for null.
    pub(super) fn from_raw<T>(pointer: *const T) -> Option<Self> {
        (!pointer.is_null()).then(|| Self(pointer.addr()))
    }
}

/// A class of objects, such as the counters.
///
/// # Safety
///
/// - `Head` starts with a `struct kfid`.
/// - [`Self::head`] returns a head that is valid with the `fid` and the tables that it was given.
/// - [`Self::names`] returns `true` for such a head and the same tables only.
pub(crate) unsafe trait Class: 'static {
    /// The head of the objects, such as `struct kfid_cntr`.
    type Head: 'static;
    /// The tables of functions that a head names, such as `struct kfi_ops_cntr`.
    type Tables: 'static;
    /// The number of the class, such as `KFI_CLASS_CNTR`.
    const FCLASS: usize;
    /// Whether the class has operations that run in RCU read-side critical sections, for which
    /// close waits.
    const RCU_OPERATIONS: bool;

    /// Makes a head.
    fn head(fid: bindings::kfid, tables: &'static Self::Tables) -> Self::Head;

    /// Returns whether a head names these tables.
    ///
    /// # Safety
    ///
    /// `head` must be valid for reads.
    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool;
}

/// What providers' objects of all classes have in common.
pub(crate) trait Object: Tables<Self::Class> + Send + Sync + Sized + 'static {
    /// The class of the objects.
    type Class: Class;

    /// Gives up every hold on other objects.
    ///
    /// Called once, by a successful close and before it returns, since the memory of the object
    /// may outlive the close. Neither this, once the first hold was given up, nor dropping the
    /// object may sleep: with the last dependent of a fabric gone the module may be unloaded, and
    /// that waits for tasks that were preempted in its code but not for those that sleep there.
    fn release(&self);

    /// Says whether the caller may close the object at all.
    ///
    /// Called at the beginning of every close. `EBUSY` for a caller that close would wait for,
    /// such as a handler of the object itself.
    fn may_close(&self) -> Result {
        Ok(())
    }

    /// Binds `other` to the object.
    ///
    /// May sleep. `ENOSYS` where nothing can be bound.
    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        let _ = (this, other, flags);
        Err(ENOSYS)
    }

    /// Returns operations beyond those of the class; `ENOSYS` for unknown names.
    fn ops_open(this: &Fid<Self>, name: &CStr) -> Result<ExtraOps> {
        let _ = (this, name);
        Err(ENOSYS)
    }

    /// Carries out a control command; `ENOSYS` for those that the class does not have (R-CTL-9).
    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        let _ = (this, command);
        Err(ENOSYS)
    }

    /// Queues deferred work on a domain (KFI_QUEUE_WORK).
    fn queue_work(this: &Fid<Self>, work: &DeferredWork<'_>) -> Result {
        let _ = (this, work);
        Err(ENOSYS)
    }
}

/// The tables of functions of a type, built from the operations trait of its class.
///
/// Implemented for every type that implements that trait.
///
/// # Safety
///
/// The functions in the tables must expect heads of `Fid<Self>`. No other type has these tables.
pub(crate) unsafe trait Tables<C: Class> {
    /// The tables.
    const TABLES: &'static C::Tables;
}

/// An object as C sees it.
///
/// # Invariants
///
/// - `head` comes first and was made by [`Class::head`] from the tables of `T`; `type_id` is that of
///   `T`.
/// - Objects live in an [`Arc`].
/// - When a pointer to the head was given to C by [`Fid::into_head`], C owns one reference of that
///   `Arc` until the object is closed.
#[repr(C)]
#[pin_data]
pub(crate) struct Fid<T: Object> {
    head: Opaque<<T::Class as Class>::Head>,
    type_id: TypeId,
    dependents: Dependents,
    context: Context,
    #[pin]
    object: T,
}

// SAFETY: The head is C's, who may use it from any thread; all other fields are `Send`.
unsafe impl<T: Object> Send for Fid<T> {}
// SAFETY: As above; all other fields are `Sync`.
unsafe impl<T: Object> Sync for Fid<T> {}

impl<T: Object> core::ops::Deref for Fid<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Object> Fid<T> {
    /// The functions that all objects have.
    pub(super) const FID_OPS: bindings::kfi_ops = bindings::kfi_ops {
        size: size_of::<bindings::kfi_ops>(),
        close: Some(Self::close_callback),
        bind: Some(Self::bind_callback),
        control: Some(Self::control_callback),
        ops_open: Some(Self::ops_open_callback),
    };

    /// Creates an object.
    pub(crate) fn new<E>(object: impl PinInit<T, E>, context: Context) -> Result<Arc<Self>>
    where
        Error: From<E>,
    {
        let fid = bindings::kfid {
            fclass: <T::Class as Class>::FCLASS,
            context: context.as_raw(),
            // C declares the tables without `const`, and nobody writes to them.
            ops: ptr::from_ref(const { &Self::FID_OPS }).cast_mut(),
            ..pin_init::zeroed()
        };
        let head = <T::Class as Class>::head(fid, T::TABLES);

        // INVARIANT: In an `Arc`.
        Arc::try_pin_init(
            try_pin_init!(Self {
                // INVARIANT: Made from the tables of `T`.
                head: Opaque::new(head),
                type_id: TypeId::of::<T>(),
                dependents: Dependents::new(),
                context,
                object <- object,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Hands the object to C, which owns it until close.
    pub(crate) fn into_head(this: Arc<Self>) -> *mut <T::Class as Class>::Head {
        // The head comes first by the type invariants.
        Arc::into_raw(this)
            .cast::<<T::Class as Class>::Head>()
            .cast_mut()
    }

    /// Returns the head. Who reads or writes it has to know that C does not.
    pub(super) fn head(&self) -> *mut <T::Class as Class>::Head {
        self.head.get()
    }

    /// Returns the object as an event names it.
    pub(crate) fn as_context(&self) -> Context {
        Context(self.head.get().cast())
    }

    /// Finds the object behind a head.
    ///
    /// # Safety
    ///
    /// `head` must come from [`Self::into_head`] of the same `T`, and the object must not be freed
    /// during `'a`.
    pub(crate) unsafe fn borrow<'a>(head: *mut <T::Class as Class>::Head) -> &'a Self {
        // SAFETY: The head comes first in an object that stays for `'a`.
        unsafe { &*head.cast_const().cast::<Self>() }
    }

    /// Returns a reference that keeps the object's memory.
    pub(crate) fn arc(&self) -> Arc<Self> {
        // SAFETY: Objects live in an `Arc` by the type invariants.
        unsafe { ArcBorrow::from_raw(self) }.into()
    }

    /// Returns where C finds the object.
    pub(crate) fn address(&self) -> FidAddress {
        FidAddress(self.head().addr())
    }

    /// Returns the dependents.
    pub(super) fn dependents(&self) -> &Dependents {
        &self.dependents
    }

    /// Returns how many depend on the object. For diagnostics.
    pub(crate) fn dependent_count(&self) -> usize {
        self.dependents.count()
    }

    /// Returns the consumer's context.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Closes an object, unless it has dependents.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of an open head from [`Self::into_head`] of the same `T`, and no
    /// other close of it may succeed meanwhile. Operations that are under way must either make the
    /// object's dependents, or run in RCU read-side critical sections.
    unsafe extern "C" fn close_callback(fid: *mut bindings::kfid) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        if let Err(error) = this.object.may_close() {
            return error.to_errno();
        }
        if !this.dependents.close() {
            return EBUSY.to_errno();
        }

        if <T::Class as Class>::RCU_OPERATIONS {
            // Operations that have taken effect may still be returning (R-CLOSE-3).
            rcu::synchronize_expedited();
        }
        // Before the holds are given up: from then on nothing may sleep.
        // SAFETY: `into_head` gave this reference to C, and C gives it back by this call. It can
        // not come back twice, as `close` succeeds once.
        let this = unsafe { Arc::from_raw(fid.cast_const().cast::<Self>()) };
        this.object.release();
        0
    }

    /// Binds an object to another.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of an open head from [`Self::into_head`] of the same `T`. `bfid`
    /// must be null or an open object.
    unsafe extern "C" fn bind_callback(
        fid: *mut bindings::kfid,
        bfid: *mut bindings::kfid,
        flags: u64,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        // SAFETY: By the safety requirements.
        let other = unsafe { AnyFid::from_raw(bfid) };
        from_result(|| {
            T::bind(this, other.ok_or(EINVAL)?, flags)?;
            Ok(0)
        })
    }

    /// Carries out a control command.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of an open head from [`Self::into_head`] of the same `T`. `arg` must
    /// be as [`Control::from_raw`] says; that of KFI_QUEUE_WORK as [`DeferredWork::from_raw`] does.
    unsafe extern "C" fn control_callback(
        fid: *mut bindings::kfid,
        command: c_int,
        arg: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        from_result(|| {
            if queues_work(<T::Class as Class>::FCLASS, command) {
                // SAFETY: By the safety requirements.
                match unsafe { &DeferredWork::from_raw(arg.cast()) } {
                    Ok(work) => T::queue_work(this, work)?,
                    Err(error) => return Err(*error),
                }
                return Ok(0);
            }
            // SAFETY: By the safety requirements.
            let command = unsafe { Control::from_raw(<T::Class as Class>::FCLASS, command, arg) }?;
            T::control(this, command)?;
            Ok(0)
        })
    }

    /// Opens further operations.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of an open head from [`Self::into_head`] of the same `T`. `name` must
    /// be null or a text, `ops` null or valid for writes.
    unsafe extern "C" fn ops_open_callback(
        fid: *mut bindings::kfid,
        name: *const c_char,
        _flags: u64,
        ops: *mut *mut c_void,
        _context: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        from_result(|| {
            if name.is_null() || ops.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: `name` is a text, as it is not null.
            let opened = T::ops_open(this, unsafe { CStr::from_char_ptr(name) })?;
            // SAFETY: `ops` is valid for writes, as it is not null.
            unsafe { ops.write(opened.0.cast_mut()) };
            Ok(0)
        })
    }
}

/// A table of operations beyond those of the class, which lives as long as the module.
pub(crate) struct ExtraOps(*const c_void);

impl ExtraOps {
    /// Answers with a table.
    ///
    /// # Safety
    ///
    /// The table must expect the objects that answer with it.
    pub(super) unsafe fn new<O>(table: &'static O) -> Self {
        Self(ptr::from_ref(table).cast())
    }
}

/// An open object of any class and any provider.
///
/// # Invariants
///
/// The pointer is to an open object for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct AnyFid<'a> {
    fid: ptr::NonNull<bindings::kfid>,
    _lifetime: PhantomData<&'a bindings::kfid>,
}

impl<'a> AnyFid<'a> {
    /// Takes an object from C, `None` for null.
    ///
    /// # Safety
    ///
    /// `fid` must be null or an open object for `'a`.
    pub(crate) unsafe fn from_raw(fid: *mut bindings::kfid) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            fid: ptr::NonNull::new(fid)?,
            _lifetime: PhantomData,
        })
    }

    /// Returns the object if it is a `T` of this provider.
    pub(crate) fn downcast<T: Object>(self) -> Option<&'a Fid<T>> {
        // SAFETY: The object is open by the type invariants.
        let fclass = unsafe { (*self.fid.as_ptr()).fclass };
        if fclass != <T::Class as Class>::FCLASS {
            return None;
        }
        let head = self.fid.cast::<<T::Class as Class>::Head>().as_ptr();
        // SAFETY: An object of this class has this head.
        if !unsafe { <T::Class as Class>::names(head, T::TABLES) } {
            return None;
        }
        // SAFETY: Only objects of this module have tables of this module, so it is some `Fid`,
        // whose `type_id` lies where that of a `Fid<T>` does, as the heads of a class are alike.
        let type_id = unsafe { ptr::addr_of!((*head.cast::<Fid<T>>()).type_id).read() };
        if type_id != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: It is a `Fid<T>`, and open for `'a`.
        Some(unsafe { Fid::borrow(head) })
    }

    /// Returns whether it is the object that begins at an address.
    pub(crate) fn is(self, fid: &Fid<impl Object>) -> bool {
        ptr::addr_eq(self.fid.as_ptr(), fid.head())
    }
}

/// Several open objects.
///
/// # Invariants
///
/// The pointers are to open objects for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct AnyFids<'a>(&'a [ptr::NonNull<bindings::kfid>]);

impl<'a> AnyFids<'a> {
    /// Takes objects from C; `EINVAL` if there is a null pointer.
    ///
    /// # Safety
    ///
    /// `fids` must be null or `count` pointers that stay during `'a` and are null or open objects
    /// for `'a`.
    pub(super) unsafe fn from_raw(fids: *mut *mut bindings::kfid, count: usize) -> Result<Self> {
        if count == 0 {
            return Ok(Self(&[]));
        }
        if fids.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirements.
        let raw = unsafe { core::slice::from_raw_parts(fids, count) };
        if raw.iter().any(|fid| fid.is_null()) {
            return Err(EINVAL);
        }
        // INVARIANT: By the safety requirements, none being null.
        // SAFETY: `NonNull` has the layout of a pointer, and none is null.
        Ok(Self(unsafe {
            core::slice::from_raw_parts(fids.cast(), count)
        }))
    }

    /// Returns the objects.
    pub(crate) fn iter(self) -> impl Iterator<Item = AnyFid<'a>> {
        self.0.iter().map(|&fid| AnyFid {
            // INVARIANT: By the type invariants.
            fid,
            _lifetime: PhantomData,
        })
    }
}

/// Runs `open` and stores the object that it made.
///
/// Nothing is stored when it fails. A null `out` is refused before anything is done.
///
/// # Safety
///
/// `out` must be null or valid for writes.
pub(crate) unsafe fn open_into<T: Object>(
    out: *mut *mut <T::Class as Class>::Head,
    open: impl FnOnce() -> Result<Arc<Fid<T>>>,
) -> c_int {
    from_result(|| {
        if out.is_null() {
            return Err(EINVAL);
        }
        let head = Fid::into_head(open()?);
        // SAFETY: `out` is not null, so that it is valid for writes by the safety requirements.
        unsafe { out.write(head) };
        Ok(0)
    })
}
