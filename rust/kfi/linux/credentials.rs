// SPDX-License-Identifier: GPL-2.0

//! Acting for somebody else.
//!
//! C header: [`include/linux/cred.h`](srctree/include/linux/cred.h).

use kernel::{
    cred::Credential,
    sync::aref::ARef, //
};

use super::bindings;

/// The credentials of a task, as they were.
pub struct Credentials(ARef<Credential>);

impl Credentials {
    /// Keeps those with which the current task acts.
    pub fn current() -> Self {
        // SAFETY: In process context a task has credentials, which only that task itself exchanges.
        let current = unsafe { Credential::from_ptr(bindings::current_cred()) };
        Self(current.into())
    }

    /// Has the current task act with these while `act` runs, which may sleep.
    pub fn during<R>(&self, act: impl FnOnce() -> R) -> R {
        // SAFETY: They are kept until the task has its own ones back, which `own` refers to meanwhile.
        let own = unsafe { bindings::override_creds(self.0.as_ptr()) };
        let result = act();
        // SAFETY: These are what the task had before; whoever exchanges them in `act` has put them back.
        unsafe { bindings::revert_creds(own) };
        result
    }
}
