// SPDX-License-Identifier: GPL-2.0

//! Flag words of kfabric.
//!
//! The same bits mean different things in different words, so the kinds of words have types.

#[cfg(kfi_provider)]
use kernel::prelude::*;

use super::bindings;

#[cfg(kfi_provider)]
pub use bindings::{
    KFI_EP_RDM,
    KFI_PROTO_CXI, //
};

/// A number of contexts that means one which endpoints share.
#[cfg(kfi_provider)]
#[allow(clippy::unnecessary_cast, reason = "as bindgen chooses the type")]
pub const SHARED_CONTEXT: usize = bindings::KFI_SHARED_CONTEXT as usize;

/// Set in values that only one provider defines (`KFI_PROV_SPECIFIC`).
// bindgen makes a negative number of it.
#[cfg(kfi_provider)]
pub const PROV_SPECIFIC: u32 = 1 << 31;

/// Defines kinds of flag words.
macro_rules! flags {
    ($(
        $(#[$attr:meta])*
        $name:ident { $($(#[$flag_attr:meta])* $flag:ident = $value:ident,)* }
    )*) => {$(
        $(#[$attr])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name(u64);

        #[allow(dead_code, reason = "words of all kinds have the same operations")]
        impl $name {
            /// No flag.
            pub const NONE: Self = Self(0);
            $(
                $(#[$flag_attr])*
                // bindgen chooses the type of a constant by its value.
                #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
                pub const $flag: Self = Self(bindings::$value as u64);
            )*

            /// Takes a word from C.
            pub const fn from_raw(raw: u64) -> Self {
                Self(raw)
            }

            /// Returns the word for C.
            pub const fn as_raw(self) -> u64 {
                self.0
            }

            /// Returns whether all flags of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns whether any flag of `other` is set.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Returns whether no flag is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns the flags that both have.
            pub const fn intersection(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// Returns the flags of both.
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns the flags that are not in `other`.
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
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
        /// Untagged messages.
        MSG = KFI_MSG,
        /// Remote memory access.
        RMA = KFI_RMA,
        /// Tagged messages.
        TAGGED = KFI_TAGGED,
        /// Remote atomic operations.
        ATOMIC = KFI_ATOMIC,
        /// RMA to tagged receives.
        TAGGED_RMA = KFI_TAGGED_RMA,
        /// Starts reads.
        READ = KFI_READ,
        /// Starts writes.
        WRITE = KFI_WRITE,
        /// Receives messages.
        RECV = KFI_RECV,
        /// Sends messages.
        SEND = KFI_SEND,
        /// Is read by peers.
        REMOTE_READ = KFI_REMOTE_READ,
        /// Is written by peers.
        REMOTE_WRITE = KFI_REMOTE_WRITE,
        /// One buffer takes many messages.
        MULTI_RECV = KFI_MULTI_RECV,
        /// One buffer takes many tagged messages.
        TAGGED_MULTI_RECV = KFI_TAGGED_MULTI_RECV,
        /// Operations that wait for a counter.
        TRIGGER = KFI_TRIGGER,
        /// Operations that wait for all earlier ones.
        FENCE = KFI_FENCE,
        /// Events on the target of RMA.
        RMA_EVENT = KFI_RMA_EVENT,
        /// Completions tell the source.
        SOURCE = KFI_SOURCE,
        /// Reaches endpoints of the same node.
        LOCAL_COMM = KFI_LOCAL_COMM,
        /// Reaches endpoints of other nodes.
        REMOTE_COMM = KFI_REMOTE_COMM,
        /// Addresses that say which receive context is meant.
        NAMED_RX_CTX = KFI_NAMED_RX_CTX,
        /// Receives from one source.
        DIRECTED_RECV = KFI_DIRECTED_RECV,
    }

    /// Flags of an operation.
    OpFlags {
        /// Gives a completion.
        COMPLETION = KFI_COMPLETION,
        /// The buffer is free again when the call returns.
        INJECT = KFI_INJECT,
        /// Begins when a counter reaches a threshold.
        TRIGGER = KFI_TRIGGER,
        /// Another operation follows at once.
        MORE = KFI_MORE,
        /// Begins after all earlier operations.
        FENCE = KFI_FENCE,
        /// Carries data for the peer's completion.
        REMOTE_CQ_DATA = KFI_REMOTE_CQ_DATA,
        /// Is complete when the buffer may be used again.
        INJECT_COMPLETE = KFI_INJECT_COMPLETE,
        /// Is complete when the data has arrived at the peer.
        TRANSMIT_COMPLETE = KFI_TRANSMIT_COMPLETE,
        /// Is complete when the data is in the peer's memory.
        DELIVERY_COMPLETE = KFI_DELIVERY_COMPLETE,
        /// Is complete when the data is in durable memory.
        COMMIT_COMPLETE = KFI_COMMIT_COMPLETE,
        /// The buffer receives messages until it is full.
        MULTI_RECV = KFI_MULTI_RECV,
        /// As [`Self::MULTI_RECV`], for tagged messages.
        TAGGED_MULTI_RECV = KFI_TAGGED_MULTI_RECV,
        /// Looks for a message and does not receive it.
        PEEK = KFI_PEEK,
        /// Sets the message aside, or receives one that was.
        CLAIM = KFI_CLAIM,
        /// Drops the message.
        DISCARD = KFI_DISCARD,
        /// Of tagged messages.
        TAGGED = KFI_TAGGED,
        /// An alias for what is transmitted.
        TRANSMIT = KFI_TRANSMIT,
        /// An alias for what is received.
        RECV = KFI_RECV,
    }
}

#[cfg(kfi_provider)]
flags! {
    /// Flags of the attributes of queues.
    QueueFlags {
        /// The consumer writes to the queue.
        WRITE = KFI_WRITE,
        /// The vector says on which CPU the handler runs.
        AFFINITY = KFI_AFFINITY,
    }

    /// Flags of binding a queue or a counter to an endpoint, context or region.
    BindFlags {
        /// Counts sent messages.
        SEND = KFI_SEND,
        /// Counts received messages; of a queue, all that is received.
        RECV = KFI_RECV,
        /// Counts reads.
        READ = KFI_READ,
        /// Counts writes.
        WRITE = KFI_WRITE,
        /// Counts reads by peers.
        REMOTE_READ = KFI_REMOTE_READ,
        /// Counts writes by peers.
        REMOTE_WRITE = KFI_REMOTE_WRITE,
        /// Of a queue, all that is transmitted; the same bit as [`Self::SEND`].
        TRANSMIT = KFI_TRANSMIT,
        /// Only operations with [`OpFlags::COMPLETION`] give a completion.
        SELECTIVE_COMPLETION = KFI_SELECTIVE_COMPLETION,
    }

    /// The access that is allowed to a memory region.
    AccessFlags {
        /// To send from it.
        SEND = KFI_SEND,
        /// To receive to it.
        RECV = KFI_RECV,
        /// To read to it.
        READ = KFI_READ,
        /// To write from it.
        WRITE = KFI_WRITE,
        /// Peers may read it.
        REMOTE_READ = KFI_REMOTE_READ,
        /// Peers may write it.
        REMOTE_WRITE = KFI_REMOTE_WRITE,
    }

    /// Flags of registering a memory region.
    RegionFlags {
        /// Operations of a peer give completions.
        RMA_EVENT = KFI_RMA_EVENT,
    }

    /// The flags in which a completion describes the operation.
    CompletionFlags {
        /// A message.
        MSG = KFI_MSG,
        /// A tagged message.
        TAGGED = KFI_TAGGED,
        /// Remote memory access.
        RMA = KFI_RMA,
        /// An atomic operation.
        ATOMIC = KFI_ATOMIC,
        /// Was sent.
        SEND = KFI_SEND,
        /// Was received.
        RECV = KFI_RECV,
        /// Read.
        READ = KFI_READ,
        /// Wrote.
        WRITE = KFI_WRITE,
        /// A peer has read.
        REMOTE_READ = KFI_REMOTE_READ,
        /// A peer has written.
        REMOTE_WRITE = KFI_REMOTE_WRITE,
        /// Data came along.
        REMOTE_CQ_DATA = KFI_REMOTE_CQ_DATA,
        /// The buffer is given back.
        MULTI_RECV = KFI_MULTI_RECV,
    }

    /// Flags of kfi_getinfo.
    InfoFlags {
        /// Node and service are the local address.
        SOURCE = KFI_SOURCE,
        /// The node is numeric.
        NUMERICHOST = KFI_NUMERICHOST,
        /// Ask which providers there are, rather than what they offer.
        PROV_ATTR_ONLY = KFI_PROV_ATTR_ONLY,
    }

    /// Orders between operations, or between completions.
    Order {
        /// A send is after an earlier send.
        SEND_AFTER_SEND = KFI_ORDER_SAS,
    }

    /// The modes of memory registration that the consumer has to follow, or is willing to follow.
    MrMode {
        /// Register local buffers.
        LOCAL = KFI_MR_LOCAL,
        /// Handle keys of more than 64 bits.
        RAW = KFI_MR_RAW,
        /// Name remote memory by its address.
        VIRT_ADDR = KFI_MR_VIRT_ADDR,
        /// Take the keys that the provider chooses.
        PROV_KEY = KFI_MR_PROV_KEY,
        /// Say in advance which regions have events.
        RMA_EVENT = KFI_MR_RMA_EVENT,
        /// Bind regions to endpoints.
        ENDPOINT = KFI_MR_ENDPOINT,
    }

    /// Flags of the attributes of address vectors.
    AddressVectorFlags {
        /// Insertions are reported by events.
        EVENT = KFI_EVENT,
        /// A named vector is only read.
        READ = KFI_READ,
        /// All nodes are alike.
        SYMMETRIC = KFI_SYMMETRIC,
    }

    /// Flags of an insertion into an address vector.
    InsertFlags {
        /// More insertions follow.
        MORE = KFI_MORE,
        /// Errors are told address by address.
        SYNC_ERR = KFI_SYNC_ERR,
    }

    /// Flags of binding an event queue to a domain.
    DomainBindFlags {
        /// Registrations of memory are reported by events.
        REG_MR = KFI_REG_MR,
    }
}

#[cfg(kfi_provider)]
impl MrMode {
    /// Takes the mode of a domain's attributes.
    pub const fn from_attr(mode: c_int) -> Self {
        Self(mode.cast_unsigned() as u64)
    }

    /// Returns the mode for a domain's attributes.
    pub const fn as_attr(self) -> c_int {
        // All modes are among the lowest bits.
        self.0 as c_int
    }
}

#[cfg(kfi_provider)]
impl Caps {
    /// Messages, without tags and with them.
    pub const MESSAGES: Self = Self::MSG.union(Self::TAGGED);
    /// The directions of messages.
    pub const MESSAGE_DIRECTIONS: Self = Self::SEND.union(Self::RECV);
    /// Transfers from and to memory of a target.
    pub const REMOTE_ACCESS: Self = Self::RMA.union(Self::ATOMIC).union(Self::TAGGED_RMA);
    /// The directions of these.
    pub const REMOTE_ACCESS_DIRECTIONS: Self = Self::READ
        .union(Self::WRITE)
        .union(Self::REMOTE_READ)
        .union(Self::REMOTE_WRITE);
    /// How far endpoints reach, which is a capability of the domain, too.
    pub const COMM: Self = Self::LOCAL_COMM.union(Self::REMOTE_COMM);
    /// Capabilities that both transmit and receive contexts can have.
    const CONTEXT: Self = Self::MESSAGES
        .union(Self::REMOTE_ACCESS)
        .union(Self::TRIGGER);
    /// Capabilities that transmit contexts can have.
    pub const TX: Self = Self::CONTEXT
        .union(Self::SEND)
        .union(Self::READ)
        .union(Self::WRITE)
        .union(Self::FENCE)
        .union(Self::NAMED_RX_CTX);
    /// Capabilities that receive contexts can have.
    pub const RX: Self = Self::CONTEXT
        .union(Self::RECV)
        .union(Self::REMOTE_READ)
        .union(Self::REMOTE_WRITE)
        .union(Self::MULTI_RECV)
        .union(Self::TAGGED_MULTI_RECV)
        .union(Self::RMA_EVENT)
        .union(Self::SOURCE)
        .union(Self::DIRECTED_RECV);

    /// Adds the directions of kinds of transfers for which none is named, as far as they are offered.
    fn with_directions(self, offered: Self) -> Self {
        let mut caps = self;
        for (kinds, directions) in [
            (Self::MESSAGES, Self::MESSAGE_DIRECTIONS),
            (Self::REMOTE_ACCESS, Self::REMOTE_ACCESS_DIRECTIONS),
        ] {
            if self.intersects(kinds) && !self.intersects(directions) {
                caps = caps | offered.intersection(directions);
            }
        }
        caps
    }

    /// Returns the capabilities of an endpoint for which these are asked: these, with those that go
    /// without saying, as far as they are offered. Those are the directions of kinds of transfers for
    /// which none is named, and how far the endpoint reaches.
    pub fn completed(self, offered: Self) -> Self {
        let caps = self.with_directions(offered);
        if caps.intersects(Self::COMM) {
            caps
        } else {
            caps | offered.intersection(Self::COMM)
        }
    }

    /// Returns the capabilities of a context, or domain, for which these are asked: of an endpoint with
    /// `endpoint`, and of those in `kind`. Without any it is all that there are.
    pub fn of_context(self, endpoint: Self, kind: Self) -> Self {
        let caps = if self.is_empty() {
            endpoint
        } else {
            self.with_directions(endpoint)
        };
        caps.intersection(endpoint).intersection(kind)
    }
}
