// SPDX-License-Identifier: GPL-2.0

//! Flag words of kfabric.
//!
//! The same bits mean different things in different words, so the kinds of words have types.

use super::bindings;

pub(crate) use bindings::KFI_EP_RDM;

/// Defines kinds of flag words.
macro_rules! flags {
    ($(
        $(#[$attr:meta])*
        $name:ident { $($(#[$flag_attr:meta])* $flag:ident = $value:ident,)* }
    )*) => {$(
        $(#[$attr])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(u64);

        impl $name {
            /// No flag.
            pub(crate) const NONE: Self = Self(0);
            $(
                $(#[$flag_attr])*
                // bindgen chooses the type of a constant by its value.
                #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
                pub(crate) const $flag: Self = Self(bindings::$value as u64);
            )*

            /// Takes a word from C.
            pub(crate) const fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            /// Returns the word for C.
            pub(crate) const fn as_raw(self) -> u64 {
                self.0
            }

            /// Returns whether all flags of `other` are set.
            pub(crate) const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns whether no flag is set.
            pub(crate) const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns the flags of both.
            pub(crate) const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }
    )*}
}

flags! {
    /// Capabilities.
    Caps {
        /// Reaches endpoints of the same node.
        LOCAL_COMM = KFI_LOCAL_COMM,
        /// Reaches endpoints of other nodes.
        REMOTE_COMM = KFI_REMOTE_COMM,
    }

    /// Flags of the attributes of queues.
    QueueFlags {
        /// The consumer writes to the queue.
        WRITE = KFI_WRITE,
        /// The vector says on which CPU the handler runs.
        AFFINITY = KFI_AFFINITY,
    }

    /// Flags of an operation.
    OpFlags {
        /// Gives a completion.
        COMPLETION = KFI_COMPLETION,
    }
}
