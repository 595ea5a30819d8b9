// SPDX-License-Identifier: GPL-2.0

//! Files of our own: a character device, and descriptors without a name, both with poll.
//!
//! The kernel crate's `MiscDevice` has no `poll`.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h).

use core::{
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    ptr, //
};
use kernel::{
    build_error,
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    fs::{
        File,
        LocalFile, //
    },
    mm::virt::{
        flags as vma_flags,
        VmaNew, //
    },
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque,
    uaccess::UserPtr, //
};

use super::bindings;
use super::{
    linear::Linear,
    live::Findable,
    wait_queue::WaitQueue, //
};
use kernel::error::to_result;

/// The caller that polls a file.
///
/// `'a` is invariant: a queue that the poller waits for lives as long as the file's data.
pub struct Poller<'a> {
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
    _lifetime: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a> Poller<'a> {
    /// Has the poller woken by `queue`.
    pub fn wait(&self, queue: &'a WaitQueue) {
        // SAFETY: The file is open and the table valid or null. The queue lives in the file's data,
        // which is dropped when the file is released; by then its pollers are gone.
        unsafe { bindings::poll_wait(self.file, queue.as_raw(), self.table) };
    }
}

/// The operations that a file is ready for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ready(u32);

impl Ready {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// There is something to read.
    pub const READABLE: Self = Self(bindings::POLLIN | bindings::POLLRDNORM);
    /// There is an error.
    pub const ERROR: Self = Self(bindings::POLLERR);
}

impl core::ops::BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Memory that user space may map.
///
/// # Safety
///
/// If [`map`](Self::map) fails nothing is mapped when it returns, not even for other threads of the process:
/// they reach mapped pages by the page tables alone, and the memory may be freed right after.
pub unsafe trait Mappable: Send + Sync + 'static {
    /// Returns how many bytes there are, a multiple of the page size.
    fn room(&self) -> usize;

    /// Maps the memory from `offset` on.
    ///
    /// # Safety
    ///
    /// `vma` must be an area that is being mapped, and no longer than what is left from `offset`,
    /// which must be a multiple of the page size. This must not be dropped while it is mapped.
    unsafe fn map(&self, vma: *mut bindings::vm_area_struct, offset: usize) -> Result;
}

/// An area of user space's memory that is being mapped.
///
/// It is mapped once, at most: [`Area::map`] takes it.
///
/// # Invariants
///
/// `vma` is such an area during `'a`, that nothing is mapped to yet.
pub struct Area<'a> {
    vma: *mut bindings::vm_area_struct,
    _lifetime: PhantomData<&'a ()>,
    _once: Linear,
}

impl Area<'_> {
    /// Returns the offset that user space gave, in pages.
    pub fn page_offset(&self) -> usize {
        // SAFETY: By the type invariants.
        unsafe { (*self.vma).vm_pgoff }
    }

    /// Returns the length in bytes.
    fn len(&self) -> usize {
        // SAFETY: By the type invariants.
        unsafe {
            let anon = (*self.vma).__bindgen_anon_1.__bindgen_anon_1;
            anon.vm_end.saturating_sub(anon.vm_start)
        }
    }

    /// Maps memory from `offset` on, which is kept as long as it is mapped; `EINVAL` if the mapping
    /// is private or executable, or too long.
    pub fn map<T: Mappable>(self, memory: Arc<T>, offset: usize) -> Result {
        // SAFETY: By the type invariants.
        let new = unsafe { VmaNew::from_raw(self.vma) };
        if new.flags() & vma_flags::SHARED == 0 {
            return Err(EINVAL);
        }
        new.try_clear_mayexec()?;
        let end = offset.checked_add(self.len()).ok_or(EINVAL)?;
        if offset & (kernel::page::PAGE_SIZE - 1) != 0 || end > memory.room() {
            return Err(EINVAL);
        }
        new.set_dontexpand();
        // SAFETY: As above; the memory stays, since the area keeps it from here on. If this fails
        // nothing is mapped any more, by the promise of the trait, and the area is not told that it is closed.
        unsafe { memory.map(self.vma, offset) }?;
        // SAFETY: By the type invariants; nobody else knows the area yet, and it has no private data
        // of ours, as nothing was mapped to it.
        unsafe {
            (*self.vma).vm_private_data = Arc::into_raw(memory).cast_mut().cast();
            (*self.vma).vm_ops = &AreaTable::<T>::OPS;
        }
        Ok(())
    }
}

/// The table of operations of an area that keeps a `T`.
struct AreaTable<T>(PhantomData<T>);

impl<T: Mappable> AreaTable<T> {
    /// The table.
    const OPS: bindings::vm_operations_struct = bindings::vm_operations_struct {
        open: Some(Self::open_callback),
        close: Some(Self::close_callback),
        ..pin_init::zeroed()
    };

    /// Keeps the memory for another area.
    ///
    /// # Safety
    ///
    /// `vma` must be a copy of an area of this table.
    unsafe extern "C" fn open_callback(vma: *mut bindings::vm_area_struct) {
        // SAFETY: The private data is a leaked `Arc<T>`, which the area that was copied has.
        let memory = unsafe { ArcBorrow::from_raw((*vma).vm_private_data.cast::<T>()) };
        core::mem::forget(Arc::from(memory));
    }

    /// Lets the memory go.
    ///
    /// # Safety
    ///
    /// `vma` must be an area of this table that ends.
    unsafe extern "C" fn close_callback(vma: *mut bindings::vm_area_struct) {
        // SAFETY: The private data is a leaked `Arc<T>`, one for each area.
        drop(unsafe { Arc::from_raw((*vma).vm_private_data.cast::<T>()) });
    }
}

/// The operations of a file. All run in process context and may sleep.
#[vtable]
pub trait FileOps: Send + Sync + Sized + 'static {
    /// Handles an ioctl.
    fn ioctl(this: ArcBorrow<'_, Self>, command: u32, arg: UserPtr) -> Result<isize> {
        let _ = (this, command, arg);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Fills `buffer` of `len` bytes; `nonblock` as O_NONBLOCK says. Returns the bytes written.
    fn read(&self, buffer: UserPtr, len: usize, nonblock: bool) -> Result<usize> {
        let _ = (buffer, len, nonblock);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Maps memory.
    fn mmap(this: ArcBorrow<'_, Self>, area: Area<'_>) -> Result {
        let _ = (this, area);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Returns what the file is ready for, and has the poller woken when that changes.
    fn poll<'a>(&'a self, poller: &Poller<'a>) -> Ready {
        let _ = poller;
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// Returns an error as system calls return it.
fn errno_of(error: Error) -> c_long {
    // Errnos are small.
    c_long::try_from(error.to_errno()).unwrap_or(c_long::MIN)
}

/// The table of file operations of `T`, whose private data is a leaked `Arc<T>`.
struct Table<T, M>(PhantomData<(T, M)>);

impl<T: FileOps, M: kernel::ModuleMetadata> Table<T, M> {
    /// The table.
    const OPS: bindings::file_operations = bindings::file_operations {
        owner: kernel::module::this_module::<M>().as_ptr(),
        unlocked_ioctl: if T::HAS_IOCTL {
            Some(Self::ioctl_callback)
        } else {
            None
        },
        // All structures have the same layout for 32-bit programs.
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: if T::HAS_IOCTL {
            Some(bindings::compat_ptr_ioctl)
        } else {
            None
        },
        read: if T::HAS_READ {
            Some(Self::read_callback)
        } else {
            None
        },
        poll: if T::HAS_POLL {
            Some(Self::poll_callback)
        } else {
            None
        },
        mmap: if T::HAS_MMAP {
            Some(Self::mmap_callback)
        } else {
            None
        },
        release: Some(Self::release_callback),
        llseek: Some(bindings::noop_llseek),
        ..pin_init::zeroed()
    };

    /// Returns the data of a file.
    ///
    /// # Safety
    ///
    /// `file` must be a file of this table that is not released during `'a`.
    unsafe fn data<'a>(file: *mut bindings::file) -> ArcBorrow<'a, T> {
        // SAFETY: The private data of such a file is a leaked `Arc<T>`.
        unsafe { ArcBorrow::from_raw((*file).private_data.cast::<T>()) }
    }

    /// Handles an ioctl.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of this table.
    unsafe extern "C" fn ioctl_callback(
        file: *mut bindings::file,
        command: c_uint,
        arg: c_ulong,
    ) -> c_long {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::data(file) };
        match T::ioctl(this, command, UserPtr::from_addr(arg)) {
            Ok(ret) => ret,
            Err(error) => errno_of(error),
        }
    }

    /// Reads.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of this table.
    unsafe extern "C" fn read_callback(
        file: *mut bindings::file,
        buffer: *mut c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::data(file) };
        // SAFETY: The file is open; the reference is not shared with other threads.
        let flags = unsafe { LocalFile::from_raw_file(file) }.flags();
        let nonblock = flags & kernel::fs::file::flags::O_NONBLOCK != 0;
        match this.read(UserPtr::from_ptr(buffer.cast()), len, nonblock) {
            Ok(read) => isize::try_from(read).unwrap_or(isize::MAX),
            Err(error) => errno_of(error),
        }
    }

    /// Polls.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of this table, `table` null or a poll table.
    unsafe extern "C" fn poll_callback(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: By the safety requirements.
        let this = unsafe { Self::data(file) };
        let poller = Poller {
            file,
            table,
            _lifetime: PhantomData,
        };
        // A variable of the right lifetime, that of the data.
        let data: &T = &this;
        data.poll(&poller).0
    }

    /// Maps memory.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of this table, `vma` an area that is being mapped to it.
    unsafe extern "C" fn mmap_callback(
        file: *mut bindings::file,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            let this = unsafe { Self::data(file) };
            // INVARIANT: By the safety requirements; this is the only one that is made of it.
            let area = Area {
                vma,
                _lifetime: PhantomData,
                _once: Linear,
            };
            T::mmap(this, area)?;
            Ok(0)
        })
    }

    /// Drops the data of a file.
    ///
    /// # Safety
    ///
    /// `file` must be a file of this table that nobody uses any more.
    unsafe extern "C" fn release_callback(
        _inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> c_int {
        // SAFETY: The private data is a leaked `Arc<T>`, which is taken back once.
        drop(unsafe { Arc::from_raw((*file).private_data.cast::<T>()) });
        0
    }
}

/// A character device whose files are made by [`Device::open`].
pub trait Device: FileOps {
    /// The module that it belongs to.
    type Module: kernel::ModuleMetadata + 'static;
    /// The name below /dev.
    const NAME: &'static CStr;

    /// Makes the data of a file that is being opened.
    fn open() -> Result<Arc<Self>>;
}

/// The registration of a character device; dropped, it is removed.
///
/// # Invariants
///
/// `device` is registered.
#[pin_data(PinnedDrop)]
pub struct DeviceRegistration<T: Device> {
    #[pin]
    device: Opaque<bindings::miscdevice>,
    #[pin]
    _pin: PhantomPinned,
    _data: PhantomData<T>,
    /// Dropped last: the device names a table of this module.
    _findable: Findable,
}

// SAFETY: The device is the kernel's until it is deregistered.
unsafe impl<T: Device> Send for DeviceRegistration<T> {}
// SAFETY: As above.
unsafe impl<T: Device> Sync for DeviceRegistration<T> {}

impl<T: Device> DeviceRegistration<T> {
    /// The table of the device.
    const OPS: bindings::file_operations = bindings::file_operations {
        open: Some(Self::open_callback),
        ..Table::<T, T::Module>::OPS
    };

    /// Registers the device, readable and writable by root.
    pub fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _findable: Findable::new()?,
            // INVARIANT: Registered, or there is no registration.
            device <- Opaque::try_ffi_init(|slot: *mut bindings::miscdevice| {
                let device = bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR.cast_signed(),
                    name: T::NAME.as_char_ptr(),
                    fops: const { &Self::OPS },
                    mode: 0o600,
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(device) };
                // SAFETY: `slot` is initialised, pinned, and stays until it is deregistered, as does
                // what it names.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
            _pin: PhantomPinned,
            _data: PhantomData,
        })
    }

    /// Opens a file.
    ///
    /// # Safety
    ///
    /// `file` must be a file of this device that is being opened.
    unsafe extern "C" fn open_callback(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> c_int {
        from_result(|| {
            let data = T::open()?;
            // SAFETY: By the safety requirements.
            to_result(unsafe { bindings::nonseekable_open(inode, file) })?;
            // SAFETY: As above. `release_callback` takes the reference back.
            unsafe { (*file).private_data = Arc::into_raw(data).cast_mut().cast() };
            Ok(0)
        })
    }
}

#[pinned_drop]
impl<T: Device> PinnedDrop for DeviceRegistration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariants.
        unsafe { bindings::misc_deregister(self.device.get()) };
    }
}

/// A descriptor that is reserved, but refers to no file yet.
pub struct Descriptor(kernel::fs::file::FileDescriptorReservation);

impl Descriptor {
    /// Reserves a descriptor of the current process that is closed on exec.
    pub fn reserve() -> Result<Self> {
        let flags = kernel::fs::file::flags::O_CLOEXEC;
        Ok(Self(
            kernel::fs::file::FileDescriptorReservation::get_unused_fd_flags(flags)?,
        ))
    }

    /// Returns its number.
    pub fn number(&self) -> u32 {
        self.0.reserved_fd()
    }

    /// Makes it refer to `file`; from here on user space may use it.
    pub fn install(self, file: AnonymousFile) {
        self.0.fd_install(file.0);
    }
}

/// A file without a name.
pub struct AnonymousFile(kernel::sync::aref::ARef<File>);

impl AnonymousFile {
    /// Creates a file whose operations are those of `T`, for a module `M`.
    ///
    /// `name` is what /proc shows.
    pub fn new<T: FileOps, M: kernel::ModuleMetadata + 'static>(
        name: &CStr,
        data: Arc<T>,
        nonblock: bool,
    ) -> Result<Self> {
        // Read-only: there is nothing to write.
        let mut flags = bindings::O_RDONLY | bindings::O_CLOEXEC;
        if nonblock {
            flags |= bindings::O_NONBLOCK;
        }
        let data = Arc::into_raw(data);
        // SAFETY: The table is static, and its private data is a leaked `Arc<T>`.
        let file = kernel::error::from_err_ptr(unsafe {
            bindings::anon_inode_getfile(
                name.as_char_ptr(),
                const { &Table::<T, M>::OPS },
                data.cast_mut().cast(),
                flags.cast_signed(),
            )
        })
        .inspect_err(|_| {
            // SAFETY: There is no file that could take the reference back.
            drop(unsafe { Arc::from_raw(data) });
        })?;
        let file = ptr::NonNull::new(file).ok_or(EIO)?;
        // SAFETY: The file is new and its reference is ours; nobody else has it, so that nobody is
        // in `fdget_pos`.
        Ok(Self(unsafe {
            LocalFile::assume_no_fdget_pos(kernel::sync::aref::ARef::from_raw(file.cast()))
        }))
    }
}
