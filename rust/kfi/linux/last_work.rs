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
    module_use::ModuleUse, //
};

/// Work of a task, for `task_work_add()`.
#[repr(C)]
struct LastWork<F> {
    /// First, so that it has the address of the whole.
    base: bindings::last_work,
    f: F,
    /// Dropped last: the module stays as long as the kernel may call it, and `rmmod` is refused meanwhile.
    _module: ModuleUse,
}

/// Has the current task call `f` when it has released the files that are about to be released, and those that are
/// released with them; and again and again until that returns `true`.
///
/// For tasks that end, in whose files' release this is called. `f` runs in process context. It is told whether nothing
/// else is left: then it may sleep, for a moment, as what comes meanwhile is done after that. Else others wait. To be
/// called at one place of one module, as works of two kinds would wait for each other.
///
/// # Errors
///
/// `ENOMEM`; `ENODEV` if the module is going; `ESRCH` if the task has done its last work. `f` is not called then.
pub fn do_last<F: FnMut(bool) -> bool + Send + 'static>(f: F) -> Result {
    let work = KBox::new(
        LastWork {
            base: bindings::last_work {
                head: bindings::callback_head {
                    next: core::ptr::null_mut(),
                    func: Some(last_work_callback::<F>),
                },
                is_before_others: false,
            },
            f,
            _module: ModuleUse::new()?,
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
/// It must begin a [`LastWork`], and stay until its callback is called, which is once if this succeeds.
unsafe fn add(work: *mut bindings::last_work) -> Result {
    // SAFETY: The work is the kernel's from here on, by the safety requirements; whatever else of the task has this
    // callback begins such a structure, too.
    to_result(unsafe { bindings::add_last_work(work) })
}

/// Does the work, until it is over.
///
/// # Safety
///
/// Must be called by the kernel, once each time it was added, with the head of a [`LastWork<F>`] that was a box.
unsafe extern "C" fn last_work_callback<F: FnMut(bool) -> bool>(
    head: *mut bindings::callback_head,
) {
    // SAFETY: By the safety requirements; the head is what the structure begins with, and the kernel does not have
    // it any more.
    let mut work = unsafe { KBox::from_raw(head.cast::<LastWork<F>>()) };
    loop {
        // SAFETY: The kernel is just calling it, by the safety requirements.
        let is_last = unsafe { bindings::is_last_work(&raw mut work.base) };
        if (work.f)(is_last) {
            break;
        }
        // SAFETY: As above.
        if is_last && unsafe { bindings::is_last_work(&raw mut work.base) } {
            continue;
        }
        // What is left may release files, and so add more. If any was added, or is behind, this goes behind all that
        // these add; and so do others like it, as they find it there. When there are only such, none does.
        let added = KBox::into_raw(work);
        // SAFETY: It was a box, and is called once more if this succeeds.
        if unsafe { add(added.cast()) }.is_ok() {
            return;
        }
        // SAFETY: From `into_raw` above, and the kernel has not taken it.
        work = unsafe { KBox::from_raw(added) };
        break;
    }
    // The module last.
    let LastWork { f, _module, .. } = KBox::into_inner(work);
    drop(f);
}
