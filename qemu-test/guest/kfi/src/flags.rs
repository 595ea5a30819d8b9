// SPDX-License-Identifier: GPL-2.0

//! Flag words and numbers with names.

// A constant of the headers has the type that its value needs.
#![allow(clippy::unnecessary_cast, clippy::cast_lossless)]

use std::fmt;

use serde::{Serialize, Serializer};

use crate::uapi;

/// The names of the bits that are set, unknown bits as one number.
fn bit_names<'a>(
    prefix: &str,
    bits: u64,
    known: impl Iterator<Item = (&'a str, u64)>,
) -> Vec<String> {
    let mut rest = bits;
    let mut names = Vec::new();
    for (name, bit) in known {
        if rest & bit == bit {
            names.push(format!("{prefix}{name}"));
            rest &= !bit;
        }
    }
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    names
}

/// Defines types of flag words.
macro_rules! flag_words {
    ($($(#[$doc:meta])* $Type:ident $prefix:literal { $($Name:ident = $value:ident,)* })*) => {$(
        bitflags::bitflags! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
            pub struct $Type: u64 {
                $(
                    #[doc = concat!("`", stringify!($value), "`")]
                    const $Name = uapi::$value as u64;
                )*
                const _ = !0;
            }
        }

        impl $Type {
            /// The names of the flags that are set, unknown bits as one number.
            pub fn names(self) -> Vec<String> {
                let known = Self::all().iter_names().map(|(name, flag)| (name, flag.bits()));
                bit_names($prefix, self.bits(), known)
            }
        }

        impl From<u64> for $Type {
            fn from(bits: u64) -> Self {
                Self::from_bits_retain(bits)
            }
        }

        /// As kfabric prints it: `[ KFI_MSG, KFI_RMA ]`.
        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_empty() {
                    return f.write_str("[ ]");
                }
                write!(f, "[ {} ]", self.names().join(", "))
            }
        }

        impl Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.names())
            }
        }
    )*};
}

flag_words! {
    /// Capabilities.
    Caps "KFI_" {
        MSG = KFI_MSG,
        RMA = KFI_RMA,
        TAGGED = KFI_TAGGED,
        ATOMIC = KFI_ATOMIC,
        MULTICAST = KFI_MULTICAST,
        TAGGED_RMA = KFI_TAGGED_RMA,
        READ = KFI_READ,
        WRITE = KFI_WRITE,
        RECV = KFI_RECV,
        SEND = KFI_SEND,
        REMOTE_READ = KFI_REMOTE_READ,
        REMOTE_WRITE = KFI_REMOTE_WRITE,
        MULTI_RECV = KFI_MULTI_RECV,
        REMOTE_CQ_DATA = KFI_REMOTE_CQ_DATA,
        TRIGGER = KFI_TRIGGER,
        FENCE = KFI_FENCE,
        TAGGED_MULTI_RECV = KFI_TAGGED_MULTI_RECV,
        RMA_PMEM = KFI_RMA_PMEM,
        SOURCE_ERR = KFI_SOURCE_ERR,
        LOCAL_COMM = KFI_LOCAL_COMM,
        REMOTE_COMM = KFI_REMOTE_COMM,
        SHARED_AV = KFI_SHARED_AV,
        RMA_EVENT = KFI_RMA_EVENT,
        SOURCE = KFI_SOURCE,
        NAMED_RX_CTX = KFI_NAMED_RX_CTX,
        DIRECTED_RECV = KFI_DIRECTED_RECV,
    }

    /// Mode bits: what a provider demands of its caller.
    Mode "KFI_" {
        CONTEXT = KFI_CONTEXT,
        MSG_PREFIX = KFI_MSG_PREFIX,
        ASYNC_IOV = KFI_ASYNC_IOV,
        RX_CQ_DATA = KFI_RX_CQ_DATA,
        LOCAL_MR = KFI_LOCAL_MR,
        NOTIFY_FLAGS_ONLY = KFI_NOTIFY_FLAGS_ONLY,
        RESTRICTED_COMP = KFI_RESTRICTED_COMP,
        CONTEXT2 = KFI_CONTEXT2,
    }

    /// Flags of single operations.
    OpFlags "KFI_" {
        MULTI_RECV = KFI_MULTI_RECV,
        REMOTE_CQ_DATA = KFI_REMOTE_CQ_DATA,
        MORE = KFI_MORE,
        PEEK = KFI_PEEK,
        TRIGGER = KFI_TRIGGER,
        FENCE = KFI_FENCE,
        COMPLETION = KFI_COMPLETION,
        INJECT = KFI_INJECT,
        INJECT_COMPLETE = KFI_INJECT_COMPLETE,
        TRANSMIT_COMPLETE = KFI_TRANSMIT_COMPLETE,
        DELIVERY_COMPLETE = KFI_DELIVERY_COMPLETE,
        COMMIT_COMPLETE = KFI_COMMIT_COMPLETE,
    }

    /// What is ordered after what.
    Order "KFI_ORDER_" {
        RAR = KFI_ORDER_RAR,
        RAW = KFI_ORDER_RAW,
        RAS = KFI_ORDER_RAS,
        WAR = KFI_ORDER_WAR,
        WAW = KFI_ORDER_WAW,
        WAS = KFI_ORDER_WAS,
        SAR = KFI_ORDER_SAR,
        SAW = KFI_ORDER_SAW,
        SAS = KFI_ORDER_SAS,
        DATA = KFI_ORDER_DATA,
    }

    /// Memory registration modes.
    MrMode "KFI_MR_" {
        LOCAL = KFI_MR_LOCAL,
        RAW = KFI_MR_RAW,
        VIRT_ADDR = KFI_MR_VIRT_ADDR,
        PROV_KEY = KFI_MR_PROV_KEY,
        RMA_EVENT = KFI_MR_RMA_EVENT,
        ENDPOINT = KFI_MR_ENDPOINT,
    }

    /// Flags of `kfi_getinfo`.
    GetinfoFlags "KFI_" {
        PROV_ATTR_ONLY = KFI_PROV_ATTR_ONLY,
        NUMERICHOST = KFI_NUMERICHOST,
        SOURCE = KFI_SOURCE,
    }
}

/// Defines types of numbers with names.
macro_rules! numbers {
    ($($(#[$doc:meta])* $Type:ident { $($Name:ident = $value:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        pub struct $Type(pub u32);

        impl $Type {
            $(
                #[doc = concat!("`", stringify!($value), "`")]
                pub const $Name: Self = Self(uapi::$value as u32);
            )*

            /// The name, if it is a known number.
            pub fn name(self) -> Option<&'static str> {
                [$((Self::$Name, stringify!($value)),)*]
                    .into_iter()
                    .find(|(known, _)| *known == self)
                    .map(|(_, name)| name)
            }
        }

        impl From<u32> for $Type {
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
pub(crate) use numbers;

numbers! {
    /// Format of addresses.
    AddrFormat {
        UNSPEC = KFI_FORMAT_UNSPEC,
        SOCKADDR = KFI_SOCKADDR,
        SOCKADDR_IN = KFI_SOCKADDR_IN,
        SOCKADDR_IN6 = KFI_SOCKADDR_IN6,
        SOCKADDR_IB = KFI_SOCKADDR_IB,
        GNI = KFI_ADDR_GNI,
        CXI = KFI_ADDR_CXI,
    }

    /// Type of an address vector.
    AvType {
        UNSPEC = KFI_AV_UNSPEC,
        MAP = KFI_AV_MAP,
        TABLE = KFI_AV_TABLE,
    }

    /// Who drives progress.
    Progress {
        UNSPEC = KFI_PROGRESS_UNSPEC,
        AUTO = KFI_PROGRESS_AUTO,
        MANUAL = KFI_PROGRESS_MANUAL,
    }

    /// What the caller serialises.
    Threading {
        UNSPEC = KFI_THREAD_UNSPEC,
        SAFE = KFI_THREAD_SAFE,
        FID = KFI_THREAD_FID,
        DOMAIN = KFI_THREAD_DOMAIN,
        COMPLETION = KFI_THREAD_COMPLETION,
        ENDPOINT = KFI_THREAD_ENDPOINT,
    }

    /// Whether the provider protects against overruns.
    ResourceMgmt {
        UNSPEC = KFI_RM_UNSPEC,
        DISABLED = KFI_RM_DISABLED,
        ENABLED = KFI_RM_ENABLED,
    }

    /// Type of endpoints.
    EpType {
        UNSPEC = KFI_EP_UNSPEC,
        MSG = KFI_EP_MSG,
        DGRAM = KFI_EP_DGRAM,
        RDM = KFI_EP_RDM,
        SOCK_STREAM = KFI_EP_SOCK_STREAM,
        SOCK_DGRAM = KFI_EP_SOCK_DGRAM,
    }

    /// Wire protocol.
    Protocol {
        UNSPEC = KFI_PROTO_UNSPEC,
        RDMA_CM_IB_RC = KFI_PROTO_RDMA_CM_IB_RC,
        IWARP = KFI_PROTO_IWARP,
        IB_UD = KFI_PROTO_IB_UD,
        UDP = KFI_PROTO_UDP,
        SOCK_TCP = KFI_PROTO_SOCK_TCP,
        IWARP_RDM = KFI_PROTO_IWARP_RDM,
        IB_RDM = KFI_PROTO_IB_RDM,
        GNI = KFI_PROTO_GNI,
        CXI = KFI_PROTO_CXI,
    }

    /// Traffic class.
    Tclass {
        UNSPEC = KFI_TC_UNSPEC,
        BEST_EFFORT = KFI_TC_BEST_EFFORT,
        LOW_LATENCY = KFI_TC_LOW_LATENCY,
        DEDICATED_ACCESS = KFI_TC_DEDICATED_ACCESS,
        BULK_DATA = KFI_TC_BULK_DATA,
        SCAVENGER = KFI_TC_SCAVENGER,
        NETWORK_CTRL = KFI_TC_NETWORK_CTRL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names() {
        assert_eq!(Caps::empty().to_string(), "[ ]");
        assert_eq!((Caps::MSG | Caps::RMA).to_string(), "[ KFI_MSG, KFI_RMA ]");
        assert_eq!(
            (Order::RAW | Order::DATA).to_string(),
            "[ KFI_ORDER_RAW, KFI_ORDER_DATA ]"
        );
    }

    #[test]
    fn unknown_bits_stay_visible() {
        let caps = Caps::from(1 << 1 | 1 << 63 | 1 << 40);
        assert_eq!(caps.to_string(), "[ KFI_MSG, 0x8000010000000000 ]");
        assert_eq!(caps.bits(), 1 << 1 | 1 << 63 | 1 << 40);
    }

    #[test]
    fn every_bit_is_one_name() {
        let names = Caps::from(!0).names();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        for name in &names[..names.len() - 1] {
            assert!(name.starts_with("KFI_"), "{name}");
        }
    }

    #[test]
    fn numbers_have_names() {
        assert_eq!(EpType::RDM.to_string(), "KFI_EP_RDM");
        assert_eq!(Protocol(77).to_string(), "0x4d");
        assert_eq!(Tclass(0x200).to_string(), "KFI_TC_BEST_EFFORT");
    }
}
