// SPDX-License-Identifier: GPL-2.0

//! System calls that need unsafe code, behind safe functions.

#![allow(unsafe_code)]

use std::ffi::{c_void, CStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Pid, Signal};

/// The sides on which [`fork`] returns.
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks, if this process has one thread only.
///
/// Another thread might hold a lock, of the allocator for example, that nobody
/// would ever release in the child.
pub(crate) fn fork() -> io::Result<Fork> {
    if crate::thread::count()? != 1 {
        return Err(io::Error::other("a process with threads may not fork"));
    }
    // SAFETY: There is one thread, so all of the process goes on in the child,
    // as `count()` has just seen, and no other thread can start one meanwhile.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(
            Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?,
        )),
    }
}

/// Forks as [`fork`] does, into a process with this number, which nobody may have. For root only.
pub(crate) fn fork_as(number: Pid) -> io::Result<Fork> {
    if crate::thread::count()? != 1 {
        return Err(io::Error::other("a process with threads may not fork"));
    }
    let number = number.as_raw_pid();
    // SAFETY: Numbers, of which zero is one.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.set_tid = std::ptr::from_ref(&number) as u64;
    arguments.set_tid_size = 1;
    let size = size_of_val(&arguments);
    // SAFETY: As in `fork`: nothing is shared. The arguments and the number are there meanwhile.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        _ => Ok(Fork::Parent(
            Pid::from_raw(number).ok_or(io::ErrorKind::InvalidData)?,
        )),
    }
}

/// Ends the process, without running what is registered to run at exit: in a
/// child that belongs to its parent.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(status) }
}

/// How often a handler installed by [`count_signals`] has run.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Has a signal counted; `restart` is `SA_RESTART`.
pub(crate) fn count_signals(signal: Signal, restart: bool) -> io::Result<()> {
    // SAFETY: All zeros is a valid sigaction: SIG_DFL with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count_signal as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
    // SAFETY: `action` is valid, and the handler does nothing but add to an
    // atomic, which it may at any time.
    match unsafe { libc::sigaction(signal.as_raw(), &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(crate) fn signals_counted() -> usize {
    SIGNALS.load(Ordering::Relaxed)
}

/// Sends a signal to one thread of this process.
pub(crate) fn signal_thread(tid: Pid, signal: Signal) -> io::Result<()> {
    let pid = rustix::process::getpid();
    let (pid, tid) = (pid.as_raw_nonzero().get(), tid.as_raw_nonzero().get());
    // SAFETY: tgkill takes three numbers and touches no memory.
    match unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal.as_raw()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The keyring of the user, as keyctl(2) has it.
const USER_KEYRING: i32 = -4;

/// Gives the kernel a key, in the keyring of the user; returns its number.
pub(crate) fn add_key(kind: &CStr, description: &CStr, payload: &[u8]) -> io::Result<i32> {
    // SAFETY: Both texts end with a null, and the payload has so many bytes; the kernel copies all
    // of them.
    let key = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            kind.as_ptr(),
            description.as_ptr(),
            payload.as_ptr(),
            payload.len(),
            USER_KEYRING,
        )
    };
    match i32::try_from(key) {
        Ok(key) if key > 0 => Ok(key),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Does something to a key that keyctl(2) has this number for.
fn change_key(what: i32, key: i32, keyring: i32) -> io::Result<()> {
    // SAFETY: keyctl takes numbers here and touches no memory.
    match unsafe { libc::syscall(libc::SYS_keyctl, what, key, keyring) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a key of no use.
pub(crate) fn revoke_key(key: i32) -> io::Result<()> {
    const REVOKE: i32 = 3;
    change_key(REVOKE, key, 0)
}

/// Takes a key out of the keyring of the user.
pub(crate) fn unlink_key(key: i32) -> io::Result<()> {
    const UNLINK: i32 = 9;
    change_key(UNLINK, key, USER_KEYRING)
}

/// The answer of select(2) for one descriptor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Selected {
    /// In the set of readable ones.
    pub read: bool,
    /// In the set of exceptional ones.
    pub except: bool,
}

/// select(2) with one descriptor and a timeout in milliseconds.
pub fn select(fd: BorrowedFd<'_>, timeout: u32) -> io::Result<Selected> {
    let number = fd.as_raw_fd();
    if !(0..libc::FD_SETSIZE as i32).contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: All zeros is an empty set.
    let (mut read, mut except): (libc::fd_set, libc::fd_set) = unsafe { std::mem::zeroed() };
    // SAFETY: The descriptor fits in a set, as seen above.
    unsafe {
        libc::FD_SET(number, &raw mut read);
        libc::FD_SET(number, &raw mut except);
    }
    let mut time = libc::timeval {
        tv_sec: i64::from(timeout / 1000),
        tv_usec: i64::from(timeout % 1000) * 1000,
    };
    let null = ptr::null_mut();
    // SAFETY: Sets and time are valid, and live until the call returns.
    let count = unsafe {
        libc::select(
            number + 1,
            &raw mut read,
            null,
            &raw mut except,
            &raw mut time,
        )
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: The descriptor fits in a set, as seen above.
    unsafe {
        Ok(Selected {
            read: libc::FD_ISSET(number, &raw const read),
            except: libc::FD_ISSET(number, &raw const except),
        })
    }
}

/// Whole pages, and behind them one that cannot be accessed.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<c_void>,
    size: usize,
    guard: usize,
}

// SAFETY: The mapping belongs to nobody else, like a `Box`.
unsafe impl Send for Pages {}

impl Pages {
    pub(crate) fn new(size: usize) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let size = size.div_ceil(page).max(1) * page;
        let total = size + page;
        let rw = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: A new mapping wherever there is room disturbs nobody.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), total, rw, MapFlags::PRIVATE) }?;
        let pages = Self {
            start: NonNull::new(start).ok_or(Errno::FAULT)?,
            size,
            guard: page,
        };
        // SAFETY: The last page is part of the mapping just made, and nothing
        // refers to it.
        unsafe { rustix::mm::mprotect(start.byte_add(size), page, MprotectFlags::empty()) }?;
        Ok(pages)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `size` bytes are mapped and can be read, also when they are
        // read-only; they only change through `&mut self`, or by the kernel
        // in a system call that was given the address.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.size) }
    }

    /// The bytes as they can be given to a system call.
    pub(crate) fn address(&self) -> *mut c_void {
        self.start.as_ptr()
    }

    /// Writes, whatever the protection was, and leaves the pages writable.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        self.protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        let room = self.size.checked_sub(offset).ok_or(Errno::INVAL)?;
        if bytes.len() > room {
            return Err(Errno::INVAL);
        }
        // SAFETY: The target is in the mapping, which is writable now, and
        // `&mut self` says that nobody else looks at it.
        unsafe {
            let target = self.start.as_ptr().byte_add(offset).cast::<u8>();
            ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
        Ok(())
    }

    pub(crate) fn set_read_only(&mut self) -> Result<(), Errno> {
        self.protect(MprotectFlags::READ)
    }

    fn protect(&mut self, flags: MprotectFlags) -> Result<(), Errno> {
        // SAFETY: The mapping is ours, `&mut self` says that no slice of it is
        // in use.
        unsafe { rustix::mm::mprotect(self.start.as_ptr(), self.size, flags) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: The mapping is ours and nothing refers to it any more. If
        // unmapping fails there is nothing to be done.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.size + self.guard) };
    }
}

/// Lets this thread run before all that have no such priority, as soon as it can.
pub(crate) fn run_first() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: The parameter is valid.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Addresses at which nothing is mapped, as long as nobody else maps there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    start: *mut c_void,
    size: usize,
}

// SAFETY: It is no more than addresses, which are the same for all threads.
unsafe impl Send for Hole {}
// SAFETY: As above.
unsafe impl Sync for Hole {}

impl Hole {
    /// Finds so many bytes, far from where the kernel puts what may be anywhere, as are stacks.
    pub(crate) fn new(size: usize) -> Result<Self, Errno> {
        const FAR: usize = 1 << 40;
        let far = ptr::without_provenance_mut(FAR);
        let none = ProtFlags::empty();
        // SAFETY: A new mapping where there is room disturbs nobody, and nothing refers to it.
        let start = unsafe {
            let start = rustix::mm::mmap_anonymous(far, size, none, MapFlags::PRIVATE)?;
            rustix::mm::munmap(start, size)?;
            start
        };
        Ok(Self { start, size })
    }

    /// Returns the first address.
    pub(crate) fn start(self) -> usize {
        self.start.addr()
    }

    /// The address of some bytes in it.
    fn at(self, offset: usize, len: usize) -> Result<*mut c_void, Errno> {
        let end = offset.checked_add(len).filter(|end| *end <= self.size);
        end.map(|_| self.start.wrapping_byte_add(offset))
            .ok_or(Errno::INVAL)
    }

    /// Maps a part of a file there, and takes it back at once.
    pub(crate) fn try_map(
        self,
        offset: usize,
        len: usize,
        fd: BorrowedFd<'_>,
        from: u64,
    ) -> Result<(), Errno> {
        let rw = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        let at = self.at(offset, len)?;
        // SAFETY: If something is there already, nothing is mapped; nothing refers to what is mapped.
        unsafe {
            rustix::mm::mmap(at, len, rw, flags, fd, from)?;
            rustix::mm::munmap(at, len)
        }
    }

    /// Copies a byte out of it by a system call, which fails with `EFAULT` if nothing is there.
    pub(crate) fn send(self, offset: usize, pipe: BorrowedFd<'_>) -> Result<(), Errno> {
        let at = self.at(offset, 1)?;
        // SAFETY: The kernel reads a byte, if there is one.
        match unsafe { libc::write(pipe.as_raw_fd(), at, 1) } {
            1 => Ok(()),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}
