// SPDX-License-Identifier: GPL-2.0

//! The common part of open objects of all classes.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        UniqueArc, //
    }, //
};

use crate::kfi::{
    bindings,
    flags::OpFlags,
    linux::{
        live::Findable,
        wait_entry::{
            WaitEntry,
            Woken, //
        }, //
    },
    wait_obj::WaitObj, //
};

/// The classes of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectClass {
    /// `struct kfid_fabric`.
    Fabric,
    /// `struct kfid_domain`.
    Domain,
    /// `struct kfid_cntr`.
    Counter,
    /// `struct kfid_cq`.
    CompletionQueue,
    /// `struct kfid_eq`.
    EventQueue,
    /// `struct kfid_wait`.
    WaitSet,
    /// `struct kfid_poll`.
    PollSet,
    /// `struct kfid_av`.
    AddressVector,
    /// `struct kfid_mr`.
    MemoryRegion,
    /// `struct kfid_ep`.
    Endpoint,
    /// `struct kfid_pep`.
    PassiveEndpoint,
    /// `struct kfid_stx`.
    SharedTransmit,
    /// `struct kfid_mc`.
    Multicast,
}

/// Where an object belongs. Its fabric, and with it its provider, and its domain stay open as long as
/// it is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lineage {
    /// The address of its fabric.
    fabric: usize,
    /// The address of its domain, 0 for none.
    domain: usize,
}

impl Lineage {
    /// Of a fabric.
    pub(super) fn of_fabric(fabric: NonNull<bindings::kfid_fabric>) -> Self {
        Self {
            fabric: fabric.addr().get(),
            domain: 0,
        }
    }

    /// Of a domain of the fabric that this is the lineage of.
    pub(super) fn with_domain(self, domain: NonNull<bindings::kfid_domain>) -> Self {
        Self {
            fabric: self.fabric,
            domain: domain.addr().get(),
        }
    }

    /// Returns whether both are of one fabric.
    fn same_fabric(self, other: Self) -> bool {
        self.fabric == other.fabric
    }

    /// Returns whether both are of one domain.
    pub(super) fn same_domain(self, other: Self) -> bool {
        self.same_fabric(other) && self.domain != 0 && self.domain == other.domain
    }

    /// Returns whether they are of one fabric, and of one domain if both have one.
    fn fits(self, other: Self) -> bool {
        let anywhere = self.domain == 0 || other.domain == 0;
        self.same_fabric(other) && (anywhere || self.domain == other.domain)
    }
}

/// Identifies an object among all that there were: others may be opened where it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Serial(u64);

impl Serial {
    /// One that no object had.
    fn next() -> Self {
        /// The last one. Of this module, as its objects are: every module compiles this file.
        static LAST: Atomic<u64> = Atomic::new(0);
        // Relaxed: only that it is another one counts. It does not wrap while a machine runs.
        Self(LAST.fetch_add(1, ordering::Relaxed).wrapping_add(1))
    }
}

/// An open object.
///
/// # Invariants
///
/// `head` is the start of an object of `class`, at `lineage`, that is open as long as `open` is set,
/// and that is closed by nobody else. No other object has or had `serial`.
pub struct Object<H> {
    head: NonNull<H>,
    serial: Serial,
    class: ObjectClass,
    lineage: Lineage,
    open: bool,
}

// SAFETY: kfabric objects may be used from any thread.
unsafe impl<H> Send for Object<H> {}
// SAFETY: kfabric objects serialise themselves: those of a fabric always, those of a domain unless its
// provider says otherwise (`enum kfi_threading`), and such a domain is not opened.
unsafe impl<H> Sync for Object<H> {}

impl<H> Object<H> {
    /// Takes an object that has just been opened.
    ///
    /// # Safety
    ///
    /// `head` must start with a `struct kfid` and be an open object of `class`, opened on what
    /// `lineage` names, that nobody else closes.
    pub(super) unsafe fn new(head: NonNull<H>, class: ObjectClass, lineage: Lineage) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            head,
            serial: Serial::next(),
            class,
            lineage,
            open: true,
        }
    }

    /// Returns where the object belongs.
    pub(super) fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// Returns the object as one of any class.
    pub(super) fn any(&self) -> AnyObject<'_> {
        // INVARIANT: It is open while it is borrowed, and what the type invariants say.
        AnyObject {
            fid: self.fid(),
            serial: self.serial,
            class: self.class,
            lineage: self.lineage,
            _lifetime: PhantomData,
        }
    }

    /// Returns the object for C.
    pub(super) fn as_raw(&self) -> *mut H {
        self.head.as_ptr()
    }

    /// Returns what the head starts with.
    pub(super) fn fid(&self) -> NonNull<bindings::kfid> {
        self.head.cast()
    }

    /// Closes the object.
    fn close(&mut self) -> Result {
        // SAFETY: Open by the type invariants, and used by nobody, as it is borrowed exclusively.
        to_result(unsafe { bindings::kfi_close(self.fid().as_ptr()) })?;
        // INVARIANT: It is closed.
        self.open = false;
        Ok(())
    }

    /// Closes the object if it is still open, for the last time; returns whether it is closed.
    pub(super) fn end(&mut self) -> bool {
        if !self.open {
            return true;
        }
        let ret = self.close();
        if let Err(error) = ret {
            pr_err!("object left open: close failed: {:?}\n", error);
        }
        // INVARIANT: It is not closed by anybody.
        self.open = false;
        ret.is_ok()
    }

    /// Returns the default operation flags; of endpoints `asked` names the direction.
    pub(super) fn ops_flag(&self, asked: OpFlags) -> Result<OpFlags> {
        let mut flags = asked.as_raw();
        // SAFETY: Open by the type invariants; the command takes an `uint64_t *`.
        to_result(unsafe {
            bindings::kfi_control(
                self.fid().as_ptr(),
                bindings::KFI_GETOPSFLAG.cast_signed(),
                (&raw mut flags).cast(),
            )
        })?;
        Ok(OpFlags::from_raw(flags))
    }

    /// Changes the default operation flags.
    pub(super) fn set_ops_flag(&self, flags: OpFlags) -> Result {
        let mut flags = flags.as_raw();
        // SAFETY: As above.
        to_result(unsafe {
            bindings::kfi_control(
                self.fid().as_ptr(),
                bindings::KFI_SETOPSFLAG.cast_signed(),
                (&raw mut flags).cast(),
            )
        })
    }

    /// Returns the type of the wait object.
    pub(super) fn wait_obj(&self) -> Result<WaitObj> {
        let mut wait_obj: bindings::kfi_wait_obj = bindings::KFI_WAIT_NONE;
        // SAFETY: Open by the type invariants; the command takes an `enum kfi_wait_obj *`.
        to_result(unsafe {
            bindings::kfi_control(
                self.fid().as_ptr(),
                bindings::KFI_GETWAITOBJ.cast_signed(),
                (&raw mut wait_obj).cast(),
            )
        })?;
        WaitObj::try_from(wait_obj)
    }

    /// Returns the wait queue.
    pub(super) fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
        let mut queue: *mut c_void = core::ptr::null_mut();
        // SAFETY: Open by the type invariants; the command takes a `void **`.
        to_result(unsafe {
            bindings::kfi_control(
                self.fid().as_ptr(),
                bindings::KFI_GETWAIT.cast_signed(),
                (&raw mut queue).cast(),
            )
        })?;
        NonNull::new(queue.cast()).ok_or(EINVAL)
    }
}

impl<H> Drop for Object<H> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The right to close, which only [`close`] has: without it no object is closed that may still be
/// used.
#[allow(unnameable_types, reason = "only this makes one")]
pub struct ToClose(());

/// An object that can be closed.
pub trait Closable {
    /// Closes the object.
    fn close_with(&mut self, permit: ToClose) -> Result;
}

impl<H> Closable for Object<H> {
    fn close_with(&mut self, _: ToClose) -> Result {
        self.close()
    }
}

/// An open object of any class.
///
/// A provider finds its own structure around what it is handed, so that nobody may hand it an object
/// of another class, provider or domain than it expects: that is checked here.
///
/// # Invariants
///
/// `fid` is the start of an object of `class`, at `lineage`, that is open during `'a` and that alone
/// has `serial`.
#[derive(Clone, Copy)]
pub struct AnyObject<'a> {
    fid: NonNull<bindings::kfid>,
    serial: Serial,
    class: ObjectClass,
    lineage: Lineage,
    _lifetime: PhantomData<&'a bindings::kfid>,
}

impl<'a> AnyObject<'a> {
    /// Returns the object for C.
    pub(super) fn as_raw(self) -> *mut bindings::kfid {
        self.fid.as_ptr()
    }

    /// Returns which object it is.
    pub(super) fn serial(self) -> Serial {
        self.serial
    }

    /// Returns where the object is, to compare it with what a provider says.
    pub fn address(self) -> usize {
        self.fid.addr().get()
    }

    /// Returns the object for C, null for none; `EINVAL` unless it is what `allowed` says.
    fn checked<T>(this: Option<Self>, allowed: impl FnOnce(Self) -> bool) -> Result<*mut T> {
        match this {
            None => Ok(core::ptr::null_mut()),
            Some(object) if allowed(object) => Ok(object.as_raw().cast()),
            Some(_) => Err(EINVAL),
        }
    }

    /// Returns a counter for C, null for none; `EINVAL` unless it is one of this domain.
    pub(super) fn counter(this: Option<Self>, of: Lineage) -> Result<*mut bindings::kfid_cntr> {
        Self::checked(this, |object| {
            object.class == ObjectClass::Counter && object.lineage.same_domain(of)
        })
    }

    /// Returns an endpoint for C, null for none; `EINVAL` unless it is one of this domain.
    pub(super) fn endpoint(this: Option<Self>, of: Lineage) -> Result<*mut bindings::kfid_ep> {
        Self::checked(this, |object| {
            object.class == ObjectClass::Endpoint && object.lineage.same_domain(of)
        })
    }

    /// Returns a wait set for C, null for none; `EINVAL` unless it is one of this fabric. With another
    /// wait object (`enum kfi_wait_obj`) it is not looked at, and not handed over either.
    pub(super) fn wait_set(
        this: Option<Self>,
        wait_obj: u32,
        of: Lineage,
    ) -> Result<*mut bindings::kfid_wait> {
        let this = this.filter(|_| wait_obj == bindings::KFI_WAIT_SET);
        Self::checked(this, |object| {
            object.class == ObjectClass::WaitSet && object.lineage.same_fabric(of)
        })
    }

    /// Returns a member of poll sets of this domain for C; `EINVAL` unless it can be one.
    pub(super) fn member(self, of: Lineage) -> Result<*mut bindings::kfid> {
        Self::checked(Some(self), |object| {
            let fits = matches!(
                object.class,
                ObjectClass::Counter | ObjectClass::CompletionQueue | ObjectClass::EventQueue
            );
            fits && object.lineage.fits(of)
        })
    }

    /// Returns what may have a wait object for C; `EINVAL` unless it is one of this fabric.
    pub(super) fn waitable(self, of: Lineage) -> Result<*mut bindings::kfid> {
        Self::checked(Some(self), |object| {
            let fits = matches!(
                object.class,
                ObjectClass::Counter
                    | ObjectClass::CompletionQueue
                    | ObjectClass::EventQueue
                    | ObjectClass::WaitSet
            );
            fits && object.lineage.same_fabric(of)
        })
    }

    /// Returns whether objects of another class can be bound to one of this class, or whether the
    /// class has no function that would look at them.
    fn takes(self, other: ObjectClass) -> bool {
        use ObjectClass::*;
        match self.class {
            Endpoint => matches!(
                other,
                CompletionQueue
                    | EventQueue
                    | Counter
                    | AddressVector
                    | SharedTransmit
                    | Endpoint
                    | MemoryRegion
            ),
            MemoryRegion => matches!(other, Endpoint | Counter),
            Domain | AddressVector | PassiveEndpoint => other == EventQueue,
            _ => true,
        }
    }

    /// Binds another object; `EINVAL` for one of another domain, or of a class that is never bound
    /// to this one. May sleep.
    pub fn bind(self, other: AnyObject<'_>, flags: u64) -> Result {
        if !self.lineage.fits(other.lineage) || !self.takes(other.class) {
            return Err(EINVAL);
        }
        // SAFETY: Both are open, and of one provider. The functions to bind of all classes differ in
        // the type of the object only, and tell what they are given by the `struct kfid` that all
        // begin with.
        to_result(unsafe { bindings::kfi_ep_bind(self.as_raw().cast(), other.as_raw(), flags) })
    }

    /// Makes the object usable (KFI_ENABLE). May sleep.
    pub fn enable(self) -> Result {
        // SAFETY: The object is open; the command takes no argument.
        to_result(unsafe {
            bindings::kfi_control(
                self.as_raw(),
                bindings::KFI_ENABLE.cast_signed(),
                core::ptr::null_mut(),
            )
        })
    }

    /// Opens operations beyond those of the class.
    ///
    /// # Safety
    ///
    /// `T` must be what the provider calls `name`.
    pub(super) unsafe fn open_ops<T>(self, name: &CStr) -> Result<&'a T> {
        let mut ops = core::ptr::null_mut();
        // SAFETY: The object is open; `ops` is valid for writes.
        to_result(unsafe {
            bindings::kfi_open_ops(
                self.as_raw(),
                name.as_char_ptr(),
                0,
                &mut ops,
                core::ptr::null_mut(),
            )
        })?;
        // SAFETY: It is a table of the provider's module, which stays while an object is open.
        unsafe { ops.cast::<T>().as_ref() }.ok_or(EIO)
    }
}

/// An object that may have a wait queue.
///
/// # Safety
///
/// [`Self::wait_queue`] must return a wait queue that stays until this is dropped.
pub unsafe trait HasWaitQueue: Send + Sync + 'static {
    /// Returns the wait queue, which stays until the object is closed.
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>>;
}

/// A listener to the wait queue of an object, which stays open meanwhile.
///
/// [`Woken::woken`] is called with the lock of that queue held and interrupts disabled. It may read counters
/// (`Counter::read`, `Counter::readerr`), wake threads of its own and queue work items, and calls nothing
/// else of this consumer, whatever context that may be called from: any other function may wake the same
/// queue, and would wait for itself. Whoever changes a counter may run what that and other threads have made
/// due, which may change any counter of the domain. No lock that it takes may be held around any other
/// function of this consumer either.
///
/// An event after [`Listener::new`] calls it; whoever looks after that sees an earlier one.
#[pin_data]
pub struct Listener<O: HasWaitQueue, T: Woken> {
    // Dropped before the object.
    #[pin]
    entry: WaitEntry<T>,
    object: Arc<O>,
    /// Dropped last: the entry names code of this module.
    _findable: Findable,
}

impl<O: HasWaitQueue, T: Woken> Listener<O, T> {
    /// Returns a number that the wait queue of an object alone has, only to be compared; fails as
    /// KFI_GETWAIT does.
    pub fn queue_of(object: &O) -> Result<usize> {
        Ok(object.wait_queue()?.as_ptr().addr())
    }

    /// Begins to listen; fails as KFI_GETWAIT does.
    pub fn new(object: Arc<O>, listener: Arc<T>) -> Result<impl PinInit<Self>> {
        let queue = object.wait_queue()?;
        let findable = Findable::new()?;
        Ok(pin_init!(Self {
            // SAFETY: The queue stays until the object is dropped, by the safety requirements of the
            // trait, and `object` is dropped after the entry.
            entry <- unsafe { WaitEntry::new(queue, listener) },
            object,
            _findable: findable,
        }))
    }

    /// Returns the object.
    pub fn object(&self) -> &O {
        &self.object
    }
}

/// Closes an object that has no other users; gives it back when kfabric refuses.
pub fn close<T: Closable>(
    mut object: UniqueArc<T>,
) -> core::result::Result<(), (UniqueArc<T>, Error)> {
    match object.close_with(ToClose(())) {
        Ok(()) => Ok(()),
        Err(error) => Err((object, error)),
    }
}

/// An object that is closed for the last time.
#[allow(dead_code, reason = "for those that keep something for the provider")]
pub(super) trait Ending {
    /// Closes the object if it is still open, for the last time; returns whether it is closed.
    fn end(&mut self) -> bool;
}

/// Defines an object of a class; with `own flags`, one that is wrapped, where what wraps it has to
/// know the default flags of operations.
macro_rules! object {
    ($(#[$attr:meta])* $name:ident($head:ident, $class:ident)) => {
        object!(@pub, $(#[$attr])* $name($head, $class));
    };
    ($(#[$attr:meta])* $name:ident($head:ident, $class:ident), own flags) => {
        object!(@, $(#[$attr])* $name($head, $class));
    };
    (@$flags:vis, $(#[$attr:meta])* $name:ident($head:ident, $class:ident)) => {
        $(#[$attr])*
        #[allow(unnameable_types, reason = "some are what a type of the interface is made of")]
        pub struct $name(Object<bindings::$head>);

        impl Closable for $name {
            fn close_with(&mut self, permit: ToClose) -> Result {
                self.0.close_with(permit)
            }
        }

        impl super::object::Ending for $name {
            fn end(&mut self) -> bool {
                self.0.end()
            }
        }

        // SAFETY: The queue of an object stays until it is closed, which it is when it is dropped.
        unsafe impl HasWaitQueue for $name {
            fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
                self.0.wait_queue()
            }
        }

        impl $name {
            /// Takes an object that has just been opened.
            ///
            /// # Safety
            ///
            /// `head` must be an open object, opened on what `lineage` names, that nobody else
            /// closes.
            unsafe fn new(head: NonNull<bindings::$head>, lineage: Lineage) -> Self {
                // SAFETY: By the safety requirements; the head tells the class.
                Self(unsafe { Object::new(head, ObjectClass::$class, lineage) })
            }

            /// Returns the object for C.
            #[allow(dead_code, reason = "not every class is handed to others")]
            pub fn as_raw(&self) -> *mut bindings::$head {
                self.0.as_raw()
            }

            /// Returns where the object belongs.
            #[allow(dead_code, reason = "not every class has dependents")]
            pub fn lineage(&self) -> Lineage {
                self.0.lineage()
            }

            /// Returns the object as one of any class.
            pub fn any(&self) -> AnyObject<'_> {
                self.0.any()
            }

            /// Returns the default operation flags (KFI_GETOPSFLAG).
            pub fn ops_flag(&self, asked: OpFlags) -> Result<OpFlags> {
                self.0.ops_flag(asked)
            }

            /// Changes the default operation flags (KFI_SETOPSFLAG).
            $flags fn set_ops_flag(&self, flags: OpFlags) -> Result {
                self.0.set_ops_flag(flags)
            }

            /// Returns the type of the wait object (KFI_GETWAITOBJ).
            pub fn wait_obj(&self) -> Result<WaitObj> {
                self.0.wait_obj()
            }
        }
    };
}
pub(super) use object;

#[cfg(consumer_tests)]
#[kunit_tests(kfi_object)]
mod tests {
    use super::*;
    use crate::kfi::consumer::WorkObjects;
    use core::mem::ManuallyDrop;

    /// An object of a class at the place of `head`, which is never closed.
    fn at(head: &mut bindings::kfid, class: ObjectClass) -> ManuallyDrop<Object<bindings::kfid>> {
        let lineage = Lineage {
            fabric: 1,
            domain: 2,
        };
        // SAFETY: Nobody else does anything with it, and nothing but its place is asked for.
        ManuallyDrop::new(unsafe { Object::new(NonNull::from(head), class, lineage) })
    }

    #[test]
    fn another_object_at_the_same_place_is_another() {
        let mut head = pin_init::zeroed();
        let (serial, address) = {
            let first = at(&mut head, ObjectClass::Counter);
            assert!(first.any().serial() == first.any().serial());
            (first.any().serial(), first.any().address())
        };
        for class in [ObjectClass::Counter, ObjectClass::CompletionQueue] {
            let other = at(&mut head, class);
            assert_eq!(other.any().address(), address);
            assert!(other.any().serial() != serial);
        }
    }

    #[test]
    fn works_tell_objects_apart_that_were_at_the_same_place() {
        let mut head = pin_init::zeroed();
        let serials = |object: &Object<bindings::kfid>| {
            let objects = WorkObjects {
                triggering_cntr: Some(object.any()),
                ..WorkObjects::default()
            };
            objects.serials()
        };
        let first = serials(&at(&mut head, ObjectClass::Counter));
        let second = serials(&at(&mut head, ObjectClass::CompletionQueue));
        assert!(first != second);
    }
}
