// SPDX-License-Identifier: GPL-2.0

//! The last work of a task that ends: when all files that it has closed have been released.
//!
//! The kernel releases the files of a task that ends one after the other, and those that lie in a socket's queue when
//! that has been released, and so on. To wait for something in each of these would add up; here all have been
//! released before the first wait begins.
//!
//! C header: [`include/linux/task_work.h`](srctree/include/linux/task_work.h).

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    bindings,
    live::Findable, //
};

/// Work of a task, for `task_work_add()`.
#[repr(C)]
struct LastWork<F> {
    /// First, so that it has the address of the whole.
    head: bindings::callback_head,
    f: F,
    /// Dropped last: the module stays as long as the kernel may call it.
    _findable: Findable,
}

/// Has the current task call `f` when it has released the files that are about to be released, and those that are
/// released with them.
///
/// For tasks that end, in whose files' release this is called. `f` runs in process context and may sleep.
///
/// # Errors
///
/// `ENOMEM`; `ESRCH` if the task has done its last work. `f` is not called then.
pub fn do_last<F: FnOnce() + Send + 'static>(f: F) -> Result {
    let work = KBox::new(
        LastWork {
            head: bindings::callback_head {
                next: core::ptr::null_mut(),
                func: Some(last_work_callback::<F>),
            },
            f,
            _findable: Findable::new()?,
        },
        GFP_KERNEL,
    )?;
    let work = KBox::into_raw(work);
    // SAFETY: The work is from a box, and stays until the callback takes it back.
    unsafe { add(work.cast()) }.inspect_err(|_| {
        // SAFETY: From `into_raw` above, and the kernel has not taken it.
        drop(unsafe { KBox::from_raw(work) });
    })
}

/// Gives work to the current task; `ESRCH` if that has done its last.
///
/// # Safety
///
/// The work must stay until its callback is called, which is once if this succeeds.
unsafe fn add(head: *mut bindings::callback_head) -> Result {
    // SAFETY: The task is there, as it is the current one. The work is the kernel's from here on, by the safety
    // requirements.
    to_result(unsafe {
        bindings::task_work_add(
            kernel::current!().as_ptr(),
            head,
            bindings::task_work_notify_mode_TWA_NONE,
        )
    })
}

/// Does the work, when nothing else is left.
///
/// # Safety
///
/// Must be called by the kernel, once each time it was added, with the head of a [`LastWork<F>`] that was a box.
unsafe extern "C" fn last_work_callback<F: FnOnce()>(head: *mut bindings::callback_head) {
    // What is left may release files, and so add more. Once more for each time that something else is: this ends
    // when that does.
    // SAFETY: The kernel is just calling it, by the safety requirements; it is called once more if it was added.
    if unsafe { bindings::has_other_task_work(head) && add(head).is_ok() } {
        return;
    }
    // SAFETY: By the safety requirements; the head is what the structure begins with, and the kernel has it no more.
    let work = unsafe { KBox::from_raw(head.cast::<LastWork<F>>()) };
    let LastWork { f, _findable, .. } = KBox::into_inner(work);
    f();
}
