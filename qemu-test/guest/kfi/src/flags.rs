// SPDX-License-Identifier: GPL-2.0

//! Flag words and numbers with names.

// A constant of the headers has the type that its value needs.
#![allow(clippy::unnecessary_cast, clippy::cast_lossless)]

use std::fmt;

use serde::{Serialize, Serializer};

use crate::uapi;

/// The flags of kfabric as 64-bit numbers, out of the headers.
pub mod bits {
    use crate::uapi;

    include!(concat!(env!("OUT_DIR"), "/flags.rs"));
}

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

/// A name without what kfabric's names begin with, or what libfabric's do.
pub(crate) fn bare(text: &str, prefix: &str) -> String {
    let upper = text.to_ascii_uppercase();
    let plain = upper
        .strip_prefix(prefix)
        .or(upper.strip_prefix(prefix.trim_start_matches('K')));
    plain.unwrap_or(&upper).to_owned()
}

/// The flag of a name in a type of flag words.
macro_rules! bit {
    ($Name:ident) => {
        bits::$Name
    };
    ($Name:ident, $other:ident) => {
        bits::$other
    };
}

/// Defines types of flag words: the flags, with their names in [`bits`] where these are
/// longer.
macro_rules! flag_words {
    ($($(#[$doc:meta])* $Type:ident $prefix:literal { $($Name:ident $(= $other:ident)?,)* })*) => {$(
        bitflags::bitflags! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
            pub struct $Type: u64 {
                $(
                    #[doc = concat!("`", $prefix, stringify!($Name), "`")]
                    const $Name = bit!($Name $(, $other)?);
                )*
                const _ = !0;
            }
        }

        impl $Type {
            /// The flag of a name, which may lack what all names begin with.
            pub fn by_name(text: &str) -> Option<Self> {
                Self::from_name(&bare(text, $prefix))
            }

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
        MSG,
        RMA,
        TAGGED,
        ATOMIC,
        MULTICAST,
        TAGGED_RMA,
        READ,
        WRITE,
        RECV,
        SEND,
        REMOTE_READ,
        REMOTE_WRITE,
        MULTI_RECV,
        REMOTE_CQ_DATA,
        TRIGGER,
        FENCE,
        TAGGED_MULTI_RECV,
        RMA_PMEM,
        SOURCE_ERR,
        LOCAL_COMM,
        REMOTE_COMM,
        SHARED_AV,
        RMA_EVENT,
        SOURCE,
        NAMED_RX_CTX,
        DIRECTED_RECV,
    }

    /// Mode bits: what a provider demands of its caller.
    Mode "KFI_" {
        CONTEXT,
        MSG_PREFIX,
        ASYNC_IOV,
        RX_CQ_DATA,
        LOCAL_MR,
        NOTIFY_FLAGS_ONLY,
        RESTRICTED_COMP,
        CONTEXT2,
    }

    /// Flags of single operations.
    OpFlags "KFI_" {
        MULTI_RECV,
        REMOTE_CQ_DATA,
        MORE,
        PEEK,
        TRIGGER,
        FENCE,
        COMPLETION,
        INJECT,
        INJECT_COMPLETE,
        TRANSMIT_COMPLETE,
        DELIVERY_COMPLETE,
        COMMIT_COMPLETE,
    }

    /// Operations that stay in order: `RAW` is a read after a write, and so on.
    Order "KFI_ORDER_" {
        RAR = ORDER_RAR,
        RAW = ORDER_RAW,
        RAS = ORDER_RAS,
        WAR = ORDER_WAR,
        WAW = ORDER_WAW,
        WAS = ORDER_WAS,
        SAR = ORDER_SAR,
        SAW = ORDER_SAW,
        SAS = ORDER_SAS,
        DATA = ORDER_DATA,
    }

    /// Memory registration modes.
    MrMode "KFI_MR_" {
        LOCAL = MR_LOCAL,
        RAW = MR_RAW,
        VIRT_ADDR = MR_VIRT_ADDR,
        PROV_KEY = MR_PROV_KEY,
        RMA_EVENT = MR_RMA_EVENT,
        ENDPOINT = MR_ENDPOINT,
    }

    /// Flags of `kfi_getinfo`.
    GetinfoFlags "KFI_" {
        PROV_ATTR_ONLY,
        NUMERICHOST,
        SOURCE,
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

            /// The number of a name, which may lack what the names of kfabric begin with.
            pub fn by_name(text: &str) -> Option<Self> {
                [$((Self::$Name, stringify!($Name), stringify!($value)),)*]
                    .into_iter()
                    .find(|(_, short, long)| {
                        crate::flags::bare(text, long.strip_suffix(short).unwrap_or("KFI_")) == *short
                    })
                    .map(|(known, _, _)| known)
            }

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

    /// How progress is driven: by the provider itself, or by calls.
    Progress {
        UNSPEC = KFI_PROGRESS_UNSPEC,
        AUTO = KFI_PROGRESS_AUTO,
        MANUAL = KFI_PROGRESS_MANUAL,
    }

    /// The calls that the caller serialises.
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
    fn names_have_flags() {
        for name in ["rma", "RMA", "KFI_RMA", "fi_rma"] {
            assert_eq!(Caps::by_name(name), Some(Caps::RMA), "{name}");
        }
        assert_eq!(Caps::by_name("KFI_NONE"), None);
        assert_eq!(Order::by_name("KFI_ORDER_RAW"), Some(Order::RAW));
        for name in ["rdm", "KFI_EP_RDM", "FI_EP_RDM"] {
            assert_eq!(EpType::by_name(name), Some(EpType::RDM), "{name}");
        }
        assert_eq!(EpType::by_name("KFI_RDM"), None);
        assert_eq!((bits::RECV, bits::CLAIM), (1 << 10, 1 << 59));
        assert_eq!(bits::TRANSMIT, bits::SEND);
    }

    #[test]
    fn numbers_have_names() {
        assert_eq!(EpType::RDM.to_string(), "KFI_EP_RDM");
        assert_eq!(Protocol(77).to_string(), "0x4d");
        assert_eq!(Tclass(0x200).to_string(), "KFI_TC_BEST_EFFORT");
    }
}
