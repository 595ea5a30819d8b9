// SPDX-License-Identifier: GPL-2.0

//! What open objects of all classes have in common.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

use crate::kfi::{
    bindings,
    errno::to_result,
    flags::OpFlags,
    wait_obj::WaitObj,
    wait_queue::{
        WaitEntry,
        Woken, //
    }, //
};

/// An open object.
///
/// # Invariants
///
/// `fid` is the start of an object that is open as long as `open` is set, and that is closed by
/// nobody else.
pub(crate) struct Object<H> {
    head: NonNull<H>,
    open: bool,
}

// SAFETY: kfabric objects may be used from any thread.
unsafe impl<H> Send for Object<H> {}
// SAFETY: kfabric objects serialise themselves.
unsafe impl<H> Sync for Object<H> {}

impl<H> Object<H> {
    /// Takes an object that has just been opened.
    ///
    /// # Safety
    ///
    /// `head` must start with a `struct kfid` and be an open object that nobody else closes.
    pub(super) unsafe fn new(head: NonNull<H>) -> Self {
        // INVARIANT: By the safety requirements.
        Self { head, open: true }
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

/// An object that can be closed.
pub(crate) trait Closable {
    /// The head that C knows.
    type Head;

    /// Returns the object.
    fn object(&mut self) -> &mut Object<Self::Head>;
}

/// An open object of any class.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct AnyObject<'a>(NonNull<bindings::kfid>, PhantomData<&'a bindings::kfid>);

impl AnyObject<'_> {
    /// Takes the start of a head.
    ///
    /// # Safety
    ///
    /// The object must be open as long as this is used.
    pub(super) unsafe fn new(fid: NonNull<bindings::kfid>) -> Self {
        Self(fid, PhantomData)
    }

    /// Returns the object for C.
    pub(super) fn as_raw(self) -> *mut bindings::kfid {
        self.0.as_ptr()
    }

    /// Returns the object for C, null for none.
    pub(super) fn or_null(this: Option<Self>) -> *mut bindings::kfid {
        this.map_or(core::ptr::null_mut(), Self::as_raw)
    }

    /// Returns where the object is, to compare it with what a provider says.
    pub(crate) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Binds another object. May sleep.
    pub(crate) fn bind(self, other: AnyObject<'_>, flags: u64) -> Result {
        // SAFETY: Both are open. The functions to bind of all classes differ in the type of the
        // object only, and look at nothing but the `struct kfid` that all begin with.
        to_result(unsafe { bindings::kfi_ep_bind(self.as_raw().cast(), other.as_raw(), flags) })
    }

    /// Makes the object usable (KFI_ENABLE). May sleep.
    pub(crate) fn enable(self) -> Result {
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
    pub(super) unsafe fn open_ops<T>(self, name: &CStr) -> Result<&'static T> {
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
pub(crate) trait HasWaitQueue: Send + Sync + 'static {
    /// Returns the wait queue, which stays until the object is closed.
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>>;
}

/// Somebody who listens to the wait queue of an object, which stays open meanwhile.
#[pin_data]
pub(crate) struct Listener<O: HasWaitQueue, T: Woken> {
    // Dropped before the object.
    #[pin]
    entry: WaitEntry<T>,
    object: Arc<O>,
}

impl<O: HasWaitQueue, T: Woken> Listener<O, T> {
    /// Begins to listen; fails as KFI_GETWAIT does.
    pub(crate) fn new(object: Arc<O>, listener: Arc<T>) -> Result<impl PinInit<Self>> {
        let queue = object.wait_queue()?;
        Ok(pin_init!(Self {
            // SAFETY: The queue stays until the object is closed, and `object` is dropped after the
            // entry.
            entry <- unsafe { WaitEntry::new(queue, listener) },
            object,
        }))
    }

    /// Returns the object.
    pub(crate) fn object(&self) -> &O {
        &self.object
    }
}

/// Closes an object that has no other users; gives it back when kfabric refuses.
pub(crate) fn close<T: Closable>(
    mut object: UniqueArc<T>,
) -> core::result::Result<(), (UniqueArc<T>, Error)> {
    match object.object().close() {
        Ok(()) => Ok(()),
        Err(error) => Err((object, error)),
    }
}

/// Defines an object of a class.
macro_rules! object {
    ($(#[$attr:meta])* $name:ident($head:ident)) => {
        $(#[$attr])*
        pub(crate) struct $name(Object<bindings::$head>);

        impl Closable for $name {
            type Head = bindings::$head;

            fn object(&mut self) -> &mut Object<bindings::$head> {
                &mut self.0
            }
        }

        impl HasWaitQueue for $name {
            fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
                self.0.wait_queue()
            }
        }

        impl $name {
            /// Returns the object for C.
            pub(crate) fn as_raw(&self) -> *mut bindings::$head {
                self.0.as_raw()
            }

            /// Returns the object as one of any class.
            pub(crate) fn any(&self) -> AnyObject<'_> {
                // SAFETY: It is open while it is borrowed.
                unsafe { AnyObject::new(self.0.fid()) }
            }

            /// Returns the default operation flags (KFI_GETOPSFLAG).
            pub(crate) fn ops_flag(&self, asked: OpFlags) -> Result<OpFlags> {
                self.0.ops_flag(asked)
            }

            /// Changes the default operation flags (KFI_SETOPSFLAG).
            pub(crate) fn set_ops_flag(&self, flags: OpFlags) -> Result {
                self.0.set_ops_flag(flags)
            }

            /// Returns the type of the wait object (KFI_GETWAITOBJ).
            pub(crate) fn wait_obj(&self) -> Result<WaitObj> {
                self.0.wait_obj()
            }
        }
    };
}
pub(super) use object;
