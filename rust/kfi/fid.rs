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
//! A call that opens an object brings an [`Opening`], from which the provider makes one object, a
//! [`NewFid`], and returns it from that very call. Neither can be had otherwise or kept, so what a
//! consumer is given is a new object of the class that it has asked for, and its own.
//!
//! An object is owned by an [`Arc`] that is leaked to C when it opens and reclaimed when it
//! closes. It is held only in between. Close succeeds only without dependents ([`Dependents`]), in
//! one atomic step. It then waits until the operations that were running have ended: those that may
//! be called from atomic context and have an effect run in RCU read-side critical sections, so a
//! consumer may close an object as soon as it has observed the effect of an operation that is still
//! returning on another CPU (R-CLOSE-3, `qemu-test/litmus/KFI-add-vs-close.litmus`). [`rcu`] says what
//! that demands of a provider's code. Operations that wait are dependents meanwhile. All others - that
//! read a counter, or that may sleep and open, bind or control something - must not run beside a close
//! that may succeed, which is the consumer's duty (`kfi_close()`).
//!
//! A consumer that shuts down may close thousands of counters, one after the other. Where such an
//! operation reaches nobody but the provider, close does not wait: the memory of the object does,
//! in the hands of a work item ([`Object::may_outlive_close`]), and what the object depended on waits
//! in its own close.
//!
//! The module stays until the memory of its last object is gone: see [`live_objects`](super::live_objects).

use core::{
    any::TypeId,
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    ptr, //
};
use kernel::{
    container_of,
    error::from_result,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

use super::{
    bindings,
    context::Context,
    control::{
        self,
        Control, //
    },
    flags::OpFlags,
    hold::Dependents,
    linux::{
        linear::Linear,
        rcu, //
    },
    live_objects::Live, //
};

/// Where an object is, to compare with where others are; never dereferenced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FidAddress(usize);

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
pub unsafe trait Class: 'static {
    /// The head of the objects, such as `struct kfid_cntr`.
    type Head: 'static;
    /// The tables of functions that a head names, such as `struct kfi_ops_cntr`.
    type Tables: 'static;
    /// The data that the abstractions keep of an object, from what it was opened with: nothing
    /// that the tables rely on is asked of the provider a second time.
    type Data: Default + Send + Sync + 'static;
    /// The number of the class, such as `KFI_CLASS_CNTR`.
    const FCLASS: usize;
    /// Whether close waits for RCU read-side critical sections: the class has operations that run in
    /// these, or objects that depend on its own have such, and may outlive their close.
    const RCU_OPERATIONS: bool;
    /// Whether the memory of an object may wait for these operations instead of close: they use
    /// nothing that is the consumer's, but for threads that wait for the object, nor any objects
    /// but this one and what it depends on, whose classes have [`Self::RCU_OPERATIONS`], too.
    const MAY_OUTLIVE_CLOSE: bool = false;

    /// Makes a head.
    fn head(fid: bindings::kfid, tables: &'static Self::Tables, data: &Self::Data) -> Self::Head;

    /// Returns whether a head names these tables.
    ///
    /// # Safety
    ///
    /// `head` must be valid for reads.
    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool;

    /// Starts what must not start before the object is open; called once, when it opens.
    fn opened(data: &Self::Data) {
        let _ = data;
    }

    /// Stops what must not start any more from here on; called by close, before the provider
    /// releases what it holds. May sleep.
    fn closing(data: &Self::Data) {
        let _ = data;
    }

    /// Takes default flags of operations that the provider has approved (KFI_SETOPSFLAG).
    fn set_default_flags(data: &Self::Data, flags: OpFlags) -> Result {
        let _ = (data, flags);
        Ok(())
    }

    /// Returns what an alias of an object with these data is opened with; `EINVAL` if the flags do
    /// not say of what, `ENOSYS` for objects that have none.
    fn alias_data<T: Object<Class = Self>>(this: &Fid<T>, flags: OpFlags) -> Result<Self::Data>
    where
        Self: Sized,
    {
        let _ = (this, flags);
        Err(ENOSYS)
    }
}

/// The common part of providers' objects of all classes.
pub trait Object: Tables<Self::Class> + Send + Sync + Sized + 'static {
    /// The class of the objects.
    type Class: Class;

    /// Tells others that the object is open.
    ///
    /// Called once, before the call that opens the object returns, and when its consumer can find
    /// it. A consumer that learns of the object may close it at once: `this` stays until this has
    /// returned, but may be closed. May sleep.
    fn opened(this: &Fid<Self>) {
        let _ = this;
    }

    /// Gives up every hold on other objects.
    ///
    /// Called once, by a successful close and before it returns, since the memory of the object
    /// may outlive the close: it is dropped with the last [`Fid::arc`], in the context of whoever has
    /// that, which may be atomic. So what may sleep, or takes long, is done here. May sleep.
    fn release(&self);

    /// Says of an object that is closed whether operations that have taken effect may return after
    /// close has, as nobody can notice it: see [`Class::MAY_OUTLIVE_CLOSE`].
    ///
    /// [`Self::release`] is called before they have returned then. Called once, by a close that has
    /// succeeded. May sleep.
    fn may_outlive_close(&self) -> bool {
        false
    }

    /// Says whether the caller may close the object at all.
    ///
    /// Called at the beginning of every close. `EBUSY` for a caller that close would wait for,
    /// such as a handler of the object itself. May sleep.
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

    /// Returns operations beyond those of the class; `ENOSYS` for unknown names. May sleep.
    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        let _ = (this, name);
        Err(ENOSYS)
    }

    /// Opens an alias (KFI_ALIAS); `flags` are its default flags, with the direction that they are
    /// for. May sleep. `ENOSYS` for objects that have none.
    fn alias<'o>(
        this: &Fid<Self>,
        flags: OpFlags,
        opening: Opening<'o, Self::Class>,
    ) -> Result<NewAlias<'o, Self::Class>> {
        let _ = (this, flags, opening);
        Err(ENOSYS)
    }

    /// Carries out a control command that is not one of its class; `ENOSYS` for those that the
    /// object does not have (R-CTL-9). May sleep.
    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        let _ = (this, command);
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
pub unsafe trait Tables<C: Class> {
    /// The tables.
    const TABLES: &'static C::Tables;

    /// Carries out a control command that only objects of this class have; `None` for all others.
    ///
    /// # Safety
    ///
    /// `arg` must be what `command` takes: where that is a pointer to something, null or exclusive
    /// during the call.
    unsafe fn control_of_class(this: &Fid<Self>, command: c_int, arg: *mut c_void) -> Option<Result>
    where
        Self: Object<Class = C>,
    {
        let _ = (this, command, arg);
        None
    }
}

/// Ties what a call hands out to that call: `'o` is invariant, so that nothing of another call, and
/// nothing that was kept, passes for it.
type Call<'o> = PhantomData<fn(&'o ()) -> &'o ()>;

/// The right to make one object, for the consumer that asks for it.
pub struct Opening<'o, C: Class> {
    context: Context,
    data: C::Data,
    _call: Call<'o>,
    _once: Linear,
}

impl<C: Class> Opening<'_, C> {
    /// A call that opens an object with a context, of which the abstractions know `data`.
    pub(super) fn new(context: Context, data: C::Data) -> Self {
        Self {
            context,
            data,
            _call: PhantomData,
            _once: Linear,
        }
    }
}

/// A new object, of which C does not know yet, and which nobody can hold before it is open.
///
/// # Invariants
///
/// The object has not been opened, and is not but by this.
pub struct NewFid<'o, T: Object> {
    fid: Arc<Fid<T>>,
    _call: Call<'o>,
}

impl<T: Object> core::ops::Deref for NewFid<'_, T> {
    type Target = Fid<T>;

    fn deref(&self) -> &Fid<T> {
        &self.fid
    }
}

impl<'o, T: Object> NewFid<'o, T> {
    /// Creates the object that a consumer opens.
    pub fn new<E>(object: impl PinInit<T, E>, opening: Opening<'o, T::Class>) -> Result<Self>
    where
        Error: From<E>,
    {
        let Opening { context, data, .. } = opening;
        let fid = bindings::kfid {
            fclass: <T::Class as Class>::FCLASS,
            context: context.as_raw(),
            // C declares the tables without `const`, and nobody writes to them.
            ops: ptr::from_ref(const { &Fid::<T>::FID_OPS }).cast_mut(),
            ..pin_init::zeroed()
        };
        let head = <T::Class as Class>::head(fid, T::TABLES, &data);

        // INVARIANT: In an `Arc`.
        let fid = Arc::try_pin_init(
            try_pin_init!(Fid {
                // INVARIANT: Made from the tables of `T`.
                head: Opaque::new(head),
                type_id: TypeId::of::<T>(),
                // INVARIANT: Not open.
                dependents: Dependents::new(),
                context,
                data,
                ending: Opaque::uninit(),
                object <- object,
                _pin: PhantomPinned,
                _live: Live::new()?,
            }? Error),
            GFP_KERNEL,
        )?;
        // INVARIANT: Nobody else makes a `NewFid` of it.
        Ok(Self {
            fid,
            _call: PhantomData,
        })
    }

    /// Hands the object to C, which finds it in `out` and owns it until close.
    ///
    /// # Safety
    ///
    /// `out` must be valid for writes.
    unsafe fn open_into(self, out: *mut *mut <T::Class as Class>::Head) {
        // As soon as others learn of it, it may be closed.
        let this = self.fid.clone();
        // C owns the reference.
        let _ = Arc::into_raw(self.fid);
        // First, as a consumer that learns of the object may look for it there.
        // SAFETY: By the safety requirements.
        unsafe { out.write(this.head.get()) };
        this.open();
    }

    /// Makes an alias of it, to be returned by [`Object::alias`].
    pub fn into_alias(self) -> NewAlias<'o, T::Class> {
        // INVARIANT: As here.
        NewAlias {
            fid: self.fid,
            _call: PhantomData,
        }
    }
}

/// An object that is about to be opened, whatever its type is.
trait Unopened<C: Class>: Send + Sync {
    /// Opens the object; called once, when C owns a reference.
    fn open(&self);

    /// Returns the head.
    fn head(&self) -> *mut C::Head;
}

impl<T: Object> Unopened<T::Class> for Fid<T> {
    fn open(&self) {
        // INVARIANT: The caller sees to the reference.
        self.dependents.open();
        <T::Class as Class>::opened(&self.data);
        T::opened(self);
    }

    fn head(&self) -> *mut <T::Class as Class>::Head {
        self.head.get()
    }
}

/// A [`NewFid`] of a class that answers a request for an alias.
///
/// # Invariants
///
/// As those of [`NewFid`].
pub struct NewAlias<'o, C: Class> {
    fid: Arc<dyn Unopened<C>>,
    _call: Call<'o>,
}

impl<C: Class> NewAlias<'_, C> {
    /// Hands the object to C, which finds it in `out` and owns it until close.
    ///
    /// # Safety
    ///
    /// `out` must be valid for writes.
    unsafe fn open_into(self, out: *mut *mut bindings::kfid) {
        // As for `NewFid`.
        let this = self.fid.clone();
        let _ = Arc::into_raw(self.fid);
        // Every head starts with a `struct kfid`.
        // SAFETY: By the safety requirements.
        unsafe { out.write(this.head().cast()) };
        this.open();
    }
}

/// How many objects of this module have outlived their close and are yet to be freed.
static ENDING: Atomic<usize> = Atomic::new(0);

/// The most that may be: with as many, close waits again. Their memory counts for nobody any more, so
/// that a thread must not close objects faster than they are freed.
const MAX_ENDING: usize = 512;

/// An object as C sees it.
///
/// # Invariants
///
/// - `head` comes first and was made by [`Class::head`] from the tables of `T`; `type_id` is that of
///   `T`.
/// - Objects live in an [`Arc`].
/// - From when `dependents` are open until they are closed, C owns one reference of that `Arc` and
///   the pointer to the head.
#[repr(C)]
#[pin_data]
pub struct Fid<T: Object> {
    head: Opaque<<T::Class as Class>::Head>,
    type_id: TypeId,
    dependents: Dependents,
    context: Context,
    data: <T::Class as Class>::Data,
    /// Drops an object that has outlived its close; initialised then.
    ending: Opaque<bindings::rcu_work>,
    #[pin]
    object: T,
    /// The object does not move, even one that nobody has opened yet.
    #[pin]
    _pin: PhantomPinned,
    /// Dropped last: the object is dropped by code of this module.
    _live: Live,
}

// SAFETY: The head is C's, which may use it from any thread; all other fields are `Send`.
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

    /// Returns the head. A caller that reads or writes it has to know that C does not.
    pub(super) fn head(&self) -> *mut <T::Class as Class>::Head {
        self.head.get()
    }

    /// Returns the data that the abstractions keep of the object.
    pub(super) fn data(&self) -> &<T::Class as Class>::Data {
        &self.data
    }

    /// Finds the object behind a head.
    ///
    /// # Safety
    ///
    /// `head` must be that of a `Fid<T>` that is not freed during `'a`.
    pub unsafe fn borrow<'a>(head: *mut <T::Class as Class>::Head) -> &'a Self {
        // SAFETY: The head comes first in an object that stays for `'a`.
        unsafe { &*head.cast_const().cast::<Self>() }
    }

    /// Returns a reference that keeps the object's memory.
    pub fn arc(&self) -> Arc<Self> {
        // SAFETY: Objects live in an `Arc` by the type invariants.
        unsafe { ArcBorrow::from_raw(self) }.into()
    }

    /// Returns where C finds the object.
    pub fn address(&self) -> FidAddress {
        FidAddress(self.head().addr())
    }

    /// Returns the dependents.
    pub(super) fn dependents(&self) -> &Dependents {
        &self.dependents
    }

    /// Returns how many depend on the object. For diagnostics.
    pub fn dependent_count(&self) -> usize {
        self.dependents.count()
    }

    /// Returns the consumer's context.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Closes an object, unless it has dependents.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of the head of an open object of `T`, and no other close of it may
    /// succeed meanwhile. Operations that are under way must either make dependents of the object,
    /// or run in RCU read-side critical sections.
    unsafe extern "C" fn close_callback(fid: *mut bindings::kfid) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        if let Err(error) = this.object.may_close() {
            return error.to_errno();
        }
        if !this.dependents.close() {
            return EBUSY.to_errno();
        }

        <T::Class as Class>::closing(&this.data);
        // INVARIANT: C gives it back by this call.
        // SAFETY: C has owned this reference since the object was opened, by the type invariants. It
        // cannot come back twice, as `close` succeeds once.
        let this = unsafe { Arc::from_raw(fid.cast_const().cast::<Self>()) };
        // Operations that have taken effect may still be returning (R-CLOSE-3).
        if <T::Class as Class>::MAY_OUTLIVE_CLOSE && this.object.may_outlive_close() {
            // Relaxed, both: a limit that need not be exact.
            if ENDING.load(ordering::Relaxed) < MAX_ENDING {
                ENDING.fetch_add(1, ordering::Relaxed);
                this.object.release();
                let work = this.ending.get();
                // The work owns the reference, and with it the memory until they are over.
                let _ = Arc::into_raw(this);
                // SAFETY: The object stays in place until the callback takes the reference back,
                // and nobody else uses its `ending`. The module stays until the object is gone and
                // the thread that has dropped it has returned: see `live_objects`.
                unsafe { rcu::call_after_sections(work, Self::ending_callback) };
                return 0;
            }
            // They are freed after a grace period, each, which is not for everybody to wait for.
            rcu::synchronize_expedited();
        } else if <T::Class as Class>::RCU_OPERATIONS {
            rcu::synchronize_expedited();
        }
        // This and the drop may sleep with the last hold given up and the fabric closed, and so the
        // module without a user: it stays, as there is this object.
        this.object.release();
        drop(this);
        0
    }

    /// Drops an object that has outlived its close.
    ///
    /// # Safety
    ///
    /// `work` must be the start of the `ending` of a `Fid<T>`, and own a reference of it.
    unsafe extern "C" fn ending_callback(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements.
        let work = unsafe { container_of!(work, bindings::rcu_work, work) };
        let work: *const Opaque<bindings::rcu_work> = Opaque::cast_from(work);
        // SAFETY: By the safety requirements.
        let this = unsafe { container_of!(work, Self, ending) };
        // Relaxed: as where it was added.
        ENDING.fetch_sub(1, ordering::Relaxed);
        // SAFETY: By the safety requirements.
        drop(unsafe { Arc::from_raw(this) });
    }

    /// Binds an object to another.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of the head of an open object of `T`. `bfid`
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
    /// `fid` must be the start of the head of an open object of `T`. `arg` must be as
    /// [`Control::from_raw`] says, or as [`Tables::control_of_class`] does for a command of the
    /// class.
    unsafe extern "C" fn control_callback(
        fid: *mut bindings::kfid,
        command: c_int,
        arg: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::borrow(fid.cast()) };
        from_result(|| {
            // SAFETY: By the safety requirements.
            if let Some(result) = unsafe { T::control_of_class(this, command, arg) } {
                return result.map(|()| 0);
            }
            if control::wants_alias(command) {
                // SAFETY: By the safety requirements.
                let (flags, out) = unsafe { control::alias(arg) }?;
                let data = <T::Class as Class>::alias_data(this, flags)?;
                let alias = T::alias(this, flags, Opening::new(this.context, data))?;
                // SAFETY: `out` is valid for writes by the safety requirements.
                unsafe { alias.open_into(out) };
                return Ok(0);
            }
            // SAFETY: By the safety requirements.
            let command = unsafe { Control::from_raw(command, arg) }?;
            let defaults = match &command {
                Control::SetOpsFlag(flags) => Some(*flags),
                _ => None,
            };
            T::control(this, command)?;
            if let Some(flags) = defaults {
                <T::Class as Class>::set_default_flags(&this.data, flags)?;
            }
            Ok(0)
        })
    }

    /// Opens further operations.
    ///
    /// # Safety
    ///
    /// `fid` must be the start of the head of an open object of `T`. `name` must
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
            let name = OpsName(unsafe { CStr::from_char_ptr(name) }, PhantomData);
            let opened = T::ops_open(this, name)?;
            // SAFETY: `ops` is valid for writes, as it is not null.
            unsafe { ops.write(opened.table.cast_mut()) };
            Ok(0)
        })
    }
}

/// The name of operations beyond those of a class that a consumer asks for.
#[derive(Clone, Copy)]
pub struct OpsName<'o>(&'o CStr, Call<'o>);

/// A table of operations beyond those of the class of `T`, which lives as long as the module.
///
/// # Invariants
///
/// The table is what the name means that a consumer has asked for in the call `'o`, and expects
/// objects of `T`.
pub struct ExtraOps<'o, T: Object> {
    table: *const c_void,
    _call: Call<'o>,
    _object: PhantomData<fn(&T)>,
}

impl<'o, T: Object> ExtraOps<'o, T> {
    /// Answers with a table if it is `name` that was asked for; `None` if it is not.
    ///
    /// # Safety
    ///
    /// The table must be what `name`, which ends with a 0, means, and expect objects of `T`.
    pub(super) unsafe fn new<O>(
        asked: OpsName<'o>,
        name: &[u8],
        table: &'static O,
    ) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        (asked.0.to_bytes_with_nul() == name).then_some(Self {
            table: ptr::from_ref(table).cast(),
            _call: PhantomData,
            _object: PhantomData,
        })
    }
}

/// An open object of any class and any provider.
///
/// # Invariants
///
/// The pointer is to an open object for `'a`.
#[derive(Clone, Copy)]
pub struct AnyFid<'a> {
    fid: ptr::NonNull<bindings::kfid>,
    _lifetime: PhantomData<&'a bindings::kfid>,
}

impl<'a> AnyFid<'a> {
    /// Takes an object from C, `None` for null.
    ///
    /// # Safety
    ///
    /// `fid` must be null or an open object for `'a`.
    pub unsafe fn from_raw(fid: *mut bindings::kfid) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            fid: ptr::NonNull::new(fid)?,
            _lifetime: PhantomData,
        })
    }

    /// Returns the object if it is a `T` of this provider.
    pub fn downcast<T: Object>(self) -> Option<&'a Fid<T>> {
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

    /// Returns where the object is.
    pub fn address(self) -> FidAddress {
        FidAddress(self.fid.as_ptr().addr())
    }
}

/// Several open objects.
///
/// # Invariants
///
/// The pointers are to open objects for `'a`.
#[derive(Clone, Copy)]
pub struct AnyFids<'a>(&'a [ptr::NonNull<bindings::kfid>]);

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
    pub fn iter(self) -> impl Iterator<Item = AnyFid<'a>> {
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
pub(super) unsafe fn open_into<'o, T: Object>(
    out: *mut *mut <T::Class as Class>::Head,
    open: impl FnOnce() -> Result<NewFid<'o, T>>,
) -> c_int {
    from_result(|| {
        if out.is_null() {
            return Err(EINVAL);
        }
        let new = open()?;
        // SAFETY: `out` is not null, so that it is valid for writes by the safety requirements.
        unsafe { new.open_into(out) };
        Ok(0)
    })
}

/// An object that a test has open. Dropped, it is closed.
///
/// # Invariants
///
/// The head is that of an open object, which nobody else closes.
#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
pub struct TestFid<T: Object>(ptr::NonNull<Fid<T>>);

#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
impl<T: Object> TestFid<T> {
    /// Opens an object with a context and what is default for its class.
    pub fn open<E>(object: impl PinInit<T, E>, context: Context) -> Result<Self>
    where
        Error: From<E>,
    {
        Self::open_with(object, context, Default::default())
    }

    /// As [`Self::open`], with these data.
    pub(super) fn open_with<E>(
        object: impl PinInit<T, E>,
        context: Context,
        data: <T::Class as Class>::Data,
    ) -> Result<Self>
    where
        Error: From<E>,
    {
        let new = NewFid::new(object, Opening::new(context, data))?;
        let mut head = ptr::null_mut();
        // SAFETY: `head` is valid for writes.
        unsafe { new.open_into(&mut head) };
        // INVARIANT: It is open, and its head, which comes first, is given to nobody.
        Ok(Self(ptr::NonNull::new(head.cast()).ok_or(EINVAL)?))
    }
}

#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
impl<T: Object> core::ops::Deref for TestFid<T> {
    type Target = Fid<T>;

    fn deref(&self) -> &Fid<T> {
        // SAFETY: It is open by the type invariants.
        unsafe { self.0.as_ref() }
    }
}

#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
impl<T: Object> Drop for TestFid<T> {
    fn drop(&mut self) {
        // SAFETY: It is open by the type invariants.
        let ret = unsafe { Fid::<T>::close_callback(self.0.as_ptr().cast()) };
        // It stays if something depends on it.
        assert_eq!(ret, 0);
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_fid)]
mod tests {
    use super::*;
    use crate::kfi::{
        hold::Hold,
        provider::{
            SharedTransmitClass,
            SharedTransmitOps, //
        }, //
    };

    /// An object.
    struct Thing;

    impl Object for Thing {
        type Class = SharedTransmitClass;

        fn release(&self) {}
    }

    /// An object that looks at itself when others may learn of it.
    struct Announced(Atomic<*mut *mut bindings::kfid_stx>, Atomic<u32>);

    impl Object for Announced {
        type Class = SharedTransmitClass;

        fn opened(this: &Fid<Self>) {
            let out = this.0.load(ordering::Relaxed);
            // SAFETY: The test below waits for this.
            let found = !out.is_null() && unsafe { out.read() } == this.head();
            if found && Hold::new(this).is_ok() {
                this.1.fetch_add(1, ordering::Relaxed);
            }
        }

        fn release(&self) {}
    }

    impl SharedTransmitOps for Announced {}

    impl SharedTransmitOps for Thing {}

    #[test]
    fn nobody_holds_what_is_not_open() -> Result {
        let new = NewFid::new(Thing, Opening::new(Context::NONE, ()))?;
        assert!(Hold::new(&new).is_err());
        let memory = new.arc();
        drop(new);
        // Nor what never was.
        assert!(Hold::new(&memory).is_err());
        Ok(())
    }

    #[test]
    fn nobody_holds_what_is_closed() -> Result {
        let thing = TestFid::open(Thing, Context::NONE)?;
        let hold = Hold::new(&thing)?;
        let memory = thing.arc();
        hold.release();
        drop(thing);
        assert!(Hold::new(&memory).is_err());
        Ok(())
    }

    #[test]
    fn others_hear_of_it_when_it_is_open_and_where_its_consumer_looks() -> Result {
        let mut head = ptr::null_mut();
        let place = Atomic::new(&raw mut head);
        let thing = Announced(place, Atomic::new(0));
        let new = NewFid::new(thing, Opening::new(Context::NONE, ()))?;
        let memory = new.arc();
        assert_eq!(memory.1.load(ordering::Relaxed), 0);
        // SAFETY: `head` is valid for writes.
        unsafe { new.open_into(memory.0.load(ordering::Relaxed)) };
        assert_eq!(memory.1.load(ordering::Relaxed), 1);
        // SAFETY: It is open.
        let ret = unsafe { Fid::<Announced>::close_callback(memory.head().cast()) };
        assert_eq!(ret, 0);
        assert_eq!(memory.1.load(ordering::Relaxed), 1);
        Ok(())
    }

    #[test]
    fn what_is_held_is_not_closed() -> Result {
        let new = NewFid::new(Thing, Opening::new(Context::NONE, ()))?;
        let memory = new.arc();
        let mut head = ptr::null_mut();
        // SAFETY: `head` is valid for writes.
        unsafe { new.open_into(&mut head) };
        let fid: *mut bindings::kfid = head.cast();
        let hold = Hold::new(&memory)?;
        // SAFETY: It is open.
        let ret = unsafe { Fid::<Thing>::close_callback(fid) };
        assert_eq!(ret, EBUSY.to_errno());
        drop(hold);
        // SAFETY: As above.
        assert_eq!(unsafe { Fid::<Thing>::close_callback(fid) }, 0);
        Ok(())
    }
}
