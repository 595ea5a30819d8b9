// SPDX-License-Identifier: GPL-2.0

//! Tests in user space of the parts of the trigger engine that need no kernel: the very same files,
//! with their unit tests, against models, and in all orders of what they do without a lock.
//!
//! `KFI_ENGINE_CASES` says how many sequences of calls each test of a model makes.

// These files know this crate by the name of the kernel's.
#[cfg(test)]
extern crate self as kernel;

#[cfg(test)]
mod alloc;
#[cfg(test)]
mod error;
#[cfg(test)]
mod prelude;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/attention.rs"]
mod attention;

#[cfg(test)]
#[allow(
    clippy::all,
    clippy::pedantic,
    reason = "the kernel has lints of its own"
)]
#[path = "../../../../rust/kfi_soft/grown.rs"]
mod grown;

#[cfg(test)]
#[allow(
    clippy::all,
    clippy::pedantic,
    reason = "the kernel has lints of its own"
)]
#[expect(dead_code, reason = "the kernel uses more")]
#[path = "../../../../rust/kfi_soft/trigger"]
mod trigger {
    pub(crate) mod due_queue;
    pub(crate) mod pending_table;
    pub(crate) mod threshold;

    /// Of what this has in the kernel, as much as the table knows of it.
    #[path = "."]
    pub(crate) mod pending {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum PendingKind {
            Triggered,
            Deferred,
        }
    }
}

#[cfg(test)]
mod attention_orders;
#[cfg(test)]
mod model;

#[cfg(test)]
#[macro_export]
/// Checks something while compiling.
macro_rules! static_assert {
    ($($condition:tt)*) => {
        const _: () = assert!($($condition)*);
    };
}
