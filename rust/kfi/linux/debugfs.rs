// SPDX-License-Identifier: GPL-2.0

//! Folders and files of debugfs.
//!
//! The files that the kernel crate makes name no owner: a thread that has one open does not keep the
//! module, and the kernel looks into the module's memory when it is closed.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h).

use core::marker::{
    PhantomData,
    PhantomPinned, //
};
use kernel::{
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    str::CStr,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice,
        UserSliceReader, //
    }, //
};

use super::bindings;
use super::live::Findable;

/// An entry of debugfs, or an error pointer, with which the kernel does nothing.
///
/// # Invariants
///
/// The result of `debugfs_create_dir` or `debugfs_create_file_full`, in the folder `_parent` if
/// there is one; nobody else removes it.
struct Entry {
    dentry: *mut bindings::dentry,
    /// The folder that it is in, which goes later: with a folder debugfs removes all that is in it.
    _parent: Option<Arc<Entry>>,
    /// Dropped last: a file names a table of this module.
    _findable: Findable,
}

// SAFETY: debugfs does its own locking.
unsafe impl Send for Entry {}
// SAFETY: As above.
unsafe impl Sync for Entry {}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. Waits until nobody is in a callback any more.
        unsafe { bindings::debugfs_remove(self.dentry) };
    }
}

/// A folder, which goes with the last clone of this and the last file and folder in it.
#[derive(Clone)]
pub struct Dir(Arc<Entry>);

impl Dir {
    /// Creates a folder; where there is no debugfs there is none.
    pub fn new(name: &CStr) -> Result<Self> {
        Self::create(name, None)
    }

    /// Creates a folder in this one.
    pub fn subdir(&self, name: &CStr) -> Result<Self> {
        Self::create(name, Some(&self.0))
    }

    /// Creates a folder in `parent`, or at the top of debugfs without one.
    fn create(name: &CStr, parent: Option<&Arc<Entry>>) -> Result<Self> {
        let above = parent.map_or(core::ptr::null_mut(), |parent| parent.dentry);
        let findable = Findable::new()?;
        // SAFETY: The name is copied, and the parent null or a folder, or an error pointer.
        let dentry = unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), above) };
        // INVARIANT: As created.
        let entry = Entry {
            dentry,
            _parent: parent.cloned(),
            _findable: findable,
        };
        Ok(Self(Arc::new(entry, GFP_KERNEL)?))
    }

    /// A file that shows `data`.
    pub fn read_callback_file<'a, T: Send + Sync + 'static>(
        &'a self,
        name: &'a CStr,
        data: T,
        show: Show<T>,
    ) -> impl PinInit<File<T>, Error> + 'a {
        File::create(self, name, data, show, None)
    }

    /// A file that shows `data`, and that can be written to.
    pub fn read_write_callback_file<'a, T: Send + Sync + 'static>(
        &'a self,
        name: &'a CStr,
        data: T,
        show: Show<T>,
        take: Take<T>,
    ) -> impl PinInit<File<T>, Error> + 'a {
        File::create(self, name, data, show, Some(take))
    }
}

/// Writes what a file shows.
pub type Show<T> = fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result;

/// Takes what is written to a file.
pub type Take<T> = fn(&T, &mut UserSliceReader) -> Result;

/// A file; dropped, it is gone, and nobody is in its functions any more. As long as somebody has it
/// open the module stays.
///
/// # Invariants
///
/// The file's private data is `content`.
#[pin_data]
pub struct File<T: Send + Sync + 'static> {
    /// Dropped first: then nobody is in the functions any more.
    _entry: Entry,
    content: Content<T>,
    /// The functions refer to `content`.
    #[pin]
    _pin: PhantomPinned,
}

/// The data that the functions of a file see.
struct Content<T> {
    data: T,
    show: Show<T>,
    take: Option<Take<T>>,
}

impl<T: Send + Sync + 'static> File<T> {
    /// Creates a file; without `take` it is read-only.
    fn create<'a>(
        dir: &'a Dir,
        name: &'a CStr,
        data: T,
        show: Show<T>,
        take: Option<Take<T>>,
    ) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(&this in Self {
            content: Content { data, show, take },
            _pin: PhantomPinned,
            // Last: a thread that opens it finds what the functions see.
            // INVARIANT: As created.
            _entry: Entry {
                _findable: Findable::new()?,
                _parent: Some(dir.0.clone()),
                // SAFETY: The name is copied, the parent a folder or an error pointer, and the
                // table is for files whose private data is a `Content<T>`: that is initialised,
                // pinned as a part of this, and goes after the file.
                dentry: unsafe {
                    bindings::debugfs_create_file_full(
                        name.as_char_ptr(),
                        if take.is_some() { 0o600 } else { 0o400 },
                        dir.0.dentry,
                        (&raw mut (*this.as_ptr()).content).cast(),
                        core::ptr::null(),
                        &Table::<T>::OPS,
                    )
                },
            },
        })
    }
}

/// The text that a file shows, for `seq_print!`.
struct Shown<'a, T>(&'a Content<T>);

impl<T> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0.show)(&self.0.data, f)
    }
}

/// The functions of a file whose private data is a `Content<T>`.
struct Table<T>(PhantomData<T>);

impl<T: Send + Sync + 'static> Table<T> {
    /// The table.
    const OPS: bindings::file_operations = bindings::file_operations {
        owner: kernel::module::this_module::<crate::LocalModule>().as_ptr(),
        open: Some(Self::open_callback),
        read: Some(bindings::seq_read),
        write: Some(Self::write_callback),
        llseek: Some(bindings::seq_lseek),
        release: Some(bindings::single_release),
        ..pin_init::zeroed()
    };

    /// Opens.
    ///
    /// # Safety
    ///
    /// `inode` must be that of a file of this table, and `file` one that is being opened.
    unsafe extern "C" fn open_callback(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> c_int {
        // SAFETY: By the safety requirements; debugfs calls this and what it sets up only while the
        // file is there, and so the private data.
        unsafe { bindings::single_open(file, Some(Self::show_callback), (*inode).i_private) }
    }

    /// Shows.
    ///
    /// # Safety
    ///
    /// `seq` must be what `open_callback` has set up.
    unsafe extern "C" fn show_callback(seq: *mut bindings::seq_file, _: *mut c_void) -> c_int {
        // SAFETY: By the safety requirements the private data is that of a file of this table, which
        // is there as long as anybody is in its functions.
        let this = unsafe { &*(*seq).private.cast::<Content<T>>() };
        // SAFETY: As above; the caller has it to itself.
        let seq = unsafe { SeqFile::from_raw(seq) };
        seq_print!(seq, "{}", Shown(this));
        0
    }

    /// Writes.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of this table.
    unsafe extern "C" fn write_callback(
        file: *mut bindings::file,
        buffer: *const c_char,
        len: usize,
        _offset: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: By the safety requirements `single_open` has set it up.
        let seq = unsafe { (*file).private_data.cast::<bindings::seq_file>() };
        // SAFETY: As above; it is the private data of the file, which is there as long as anybody is
        // in its functions.
        let this = unsafe { &*(*seq).private.cast::<Content<T>>() };
        let Some(take) = this.take else {
            return errno_of(EINVAL);
        };
        let mut reader = UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), len).reader();
        match take(&this.data, &mut reader) {
            Ok(()) => isize::try_from(len).unwrap_or(isize::MAX),
            Err(error) => errno_of(error),
        }
    }
}

/// Returns an error as system calls return it.
fn errno_of(error: Error) -> isize {
    // Errnos are small.
    isize::try_from(error.to_errno()).unwrap_or(isize::MIN)
}
