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
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

use super::{
    bindings,
    control::Control,
    hold::Dependents,
    rcu, //
};

/// What a consumer wants to find again in events: a number or a pointer, never looked into.
#[derive(Clone, Copy)]
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

    /// Returns the context for C.
    pub(crate) fn as_raw(self) -> *mut c_void {
        self.0
    }
}

/// A class of objects, such as the counters.
///
/// # Safety
///
/// `Head` starts with a `struct kfid` and is valid when all its bytes are those that
/// [`Self::head`] made; [`Self::ops`] returns what [`Self::head`] was given.
pub(crate) unsafe trait Class: 'static {
    /// The head of the objects, such as `struct kfid_cntr`.
    type Head: 'static;
    /// The operations of the class, such as `struct kfi_ops_cntr`.
    type Ops: 'static;
    /// The number of the class, such as `KFI_CLASS_CNTR`.
    const FCLASS: usize;

    /// Makes a head.
    fn head(fid: bindings::kfid, ops: *mut Self::Ops) -> Self::Head;

    /// Returns the operations that a head names.
    ///
    /// # Safety
    ///
    /// `head` must be valid for reads.
    unsafe fn ops(head: *const Self::Head) -> *const Self::Ops;
}

/// What providers' objects of all classes have in common.
pub(crate) trait Object: OpsTable<Self::Class> + Send + Sync + Sized + 'static {
    /// The class of the objects.
    type Class: Class;

    /// Gives up every hold on other objects.
    ///
    /// Called once, by a successful close and before it returns, since the memory of the object
    /// may outlive the close. May sleep.
    fn release(&self);

    /// Binds `other` to the object.
    ///
    /// May sleep. `ENOSYS` where nothing can be bound.
    fn bind(this: ArcBorrow<'_, Fid<Self>>, other: AnyFid<'_>, flags: u64) -> Result {
        let _ = (this, other, flags);
        Err(ENOSYS)
    }

    /// Carries out a control command; `ENOSYS` for those that the class does not have (R-CTL-9).
    fn control(this: ArcBorrow<'_, Fid<Self>>, command: Control<'_>) -> Result {
        let _ = (this, command);
        Err(ENOSYS)
    }
}

/// The table of a class's operations, built from the operations trait of the class.
///
/// Implemented for every type that implements that trait; never by hand.
pub(crate) trait OpsTable<C: Class> {
    /// The table.
    const OPS: &'static C::Ops;
}

/// An object as C sees it.
///
/// # Invariants
///
/// - `head` comes first and was made by [`Class::head`] from the tables of `T`.
/// - When a pointer to the head was given to C by [`Fid::into_head`], C owns one reference of the
///   [`Arc`] around the object until it is closed.
#[repr(C)]
#[pin_data]
pub(crate) struct Fid<T: Object> {
    head: Opaque<<T::Class as Class>::Head>,
    dependents: Dependents,
    context: Context,
    #[pin]
    object: T,
}

// SAFETY: The head is written by its initialiser only and lives as long as the object; all other
// fields are `Send`.
unsafe impl<T: Object> Send for Fid<T> {}
// SAFETY: The head is only read; all other fields are `Sync`.
unsafe impl<T: Object> Sync for Fid<T> {}

impl<T: Object> core::ops::Deref for Fid<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Object> Fid<T> {
    const FID_OPS: bindings::kfi_ops = bindings::kfi_ops {
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
            ops: ptr::from_ref(&Self::FID_OPS).cast_mut(),
            ..pin_init::zeroed()
        };
        let head = <T::Class as Class>::head(fid, ptr::from_ref(T::OPS).cast_mut());

        Arc::try_pin_init(
            try_pin_init!(Self {
                // INVARIANT: Made from the tables of `T`.
                head: Opaque::new(head),
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
        Arc::into_raw(this).cast::<<T::Class as Class>::Head>().cast_mut()
    }

    /// Finds the object behind a head.
    ///
    /// # Safety
    ///
    /// `head` must come from [`Self::into_head`] of the same `T`, and the object must not be freed
    /// during `'a`.
    pub(crate) unsafe fn borrow<'a>(head: *mut <T::Class as Class>::Head) -> ArcBorrow<'a, Self> {
        // SAFETY: The head comes first in an object that an `Arc` owns and that stays for `'a`.
        unsafe { ArcBorrow::from_raw(head.cast_const().cast::<Self>()) }
    }

    /// Returns the dependents.
    pub(crate) fn dependents(&self) -> &Dependents {
        &self.dependents
    }

    /// Returns the consumer's context.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// # Safety
    ///
    /// `fid` must be the start of a head from [`Self::into_head`] of the same `T` that is open and
    /// that nobody uses or closes apart from operations that are about to return.
    unsafe extern "C" fn close_callback(fid: *mut bindings::kfid) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        if !this.dependents.close() {
            return EBUSY.to_errno();
        }

        // Operations that have taken effect may still be returning (R-CLOSE-3).
        rcu::synchronize_expedited();
        this.object.release();

        // SAFETY: `into_head` gave this reference to C, and C gives it back by this call. It can
        // not come back twice, as `close` succeeds once.
        drop(unsafe { Arc::from_raw(fid.cast_const().cast::<Self>()) });
        0
    }

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

    /// # Safety
    ///
    /// `fid` must be the start of an open head from [`Self::into_head`] of the same `T`. `arg` must
    /// be null or point to what `command` says.
    unsafe extern "C" fn control_callback(
        fid: *mut bindings::kfid,
        command: c_int,
        arg: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        from_result(|| {
            // SAFETY: By the safety requirements.
            T::control(this, unsafe { Control::from_raw(command, arg) }?)?;
            Ok(0)
        })
    }

    /// No object has further operations to open.
    ///
    /// # Safety
    ///
    /// None.
    unsafe extern "C" fn ops_open_callback(
        _fid: *mut bindings::kfid,
        _name: *const c_char,
        _flags: u64,
        _ops: *mut *mut c_void,
        _context: *mut c_void,
    ) -> c_int {
        ENOSYS.to_errno()
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
    pub(crate) fn downcast<T: Object>(self) -> Option<ArcBorrow<'a, Fid<T>>> {
        // SAFETY: The object is open by the type invariants.
        let fclass = unsafe { (*self.fid.as_ptr()).fclass };
        if fclass != <T::Class as Class>::FCLASS {
            return None;
        }
        let head = self.fid.cast::<<T::Class as Class>::Head>().as_ptr();
        // SAFETY: An object of this class has this head.
        let ops = unsafe { <T::Class as Class>::ops(head) };
        if !ptr::eq(ops, T::OPS) {
            return None;
        }
        // SAFETY: Only heads made for `T` name its table, and it is open for `'a`.
        Some(unsafe { Fid::borrow(head) })
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
