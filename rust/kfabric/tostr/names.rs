// SPDX-License-Identifier: GPL-2.0

//! The names of values and flags.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*, //
};

use crate::kfi::bindings;

/// A constant of the public headers.
struct Name {
    name: &'static str,
    value: u64,
}

/// The values of an enumeration.
pub(crate) struct Enum(&'static [Name]);

impl Enum {
    /// Finds the enumeration that kfi_tostr knows by this number.
    pub(crate) fn of(datatype: bindings::kfi_type) -> Option<&'static Self> {
        Some(match datatype {
            bindings::KFI_TYPE_EP_TYPE => &EP_TYPE,
            bindings::KFI_TYPE_ADDR_FORMAT => &ADDR_FORMAT,
            bindings::KFI_TYPE_THREADING => &THREADING,
            bindings::KFI_TYPE_PROGRESS => &PROGRESS,
            bindings::KFI_TYPE_PROTOCOL => &PROTOCOL,
            bindings::KFI_TYPE_AV_TYPE => &AV_TYPE,
            bindings::KFI_TYPE_ATOMIC_TYPE => &ATOMIC_TYPE,
            bindings::KFI_TYPE_ATOMIC_OP => &ATOMIC_OP,
            bindings::KFI_TYPE_EQ_EVENT => &EQ_EVENT,
            bindings::KFI_TYPE_OP_TYPE => &OP_TYPE,
            _ => return None,
        })
    }

    /// Shows a value by its name.
    pub(super) fn show(&'static self, value: u32) -> OneOf {
        OneOf { names: self, value }
    }
}

/// A value of an enumeration, to be shown.
pub(super) struct OneOf {
    names: &'static Enum,
    value: u32,
}

/// Values that only a provider knows have this bit set, KFI_PROV_SPECIFIC.
const PROV_SPECIFIC: u32 = 1 << 31;

impl fmt::Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        let known = |name: &&Name| name.value == u64::from(value);
        match self.names.0.iter().find(known) {
            Some(name) => f.write_str(name.name),
            None if value & PROV_SPECIFIC != 0 => write!(f, "Provider specific ({value:#x})"),
            None => write!(f, "Unknown ({value})"),
        }
    }
}

/// The flags of a word.
///
/// A name for several bits stands before the names of these bits. A name for 0 stands for no flag.
pub(crate) struct Flags(&'static [Name]);

impl Flags {
    /// Finds the 64-bit word that kfi_tostr knows by this number.
    pub(crate) fn of(datatype: bindings::kfi_type) -> Option<&'static Self> {
        Some(match datatype {
            bindings::KFI_TYPE_CAPS => &CAPS,
            bindings::KFI_TYPE_OP_FLAGS => &OP_FLAGS,
            bindings::KFI_TYPE_MSG_ORDER => &MSG_ORDER,
            bindings::KFI_TYPE_MODE => &MODE,
            bindings::KFI_TYPE_CQ_EVENT_FLAGS => &CQ_EVENT_FLAGS,
            _ => return None,
        })
    }

    /// Shows a set of flags by their names.
    pub(super) fn show(&'static self, value: u64) -> SetOf {
        SetOf { names: self, value }
    }
}

/// A set of flags, to be shown.
pub(super) struct SetOf {
    names: &'static Flags,
    value: u64,
}

impl fmt::Display for SetOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut separator = " ";
        // The flags that have not been shown.
        let mut rest = self.value;
        for name in self.names.0 {
            let set = match name.value {
                0 => self.value == 0,
                flags => rest & flags == flags,
            };
            if set {
                write!(f, "{separator}{}", name.name)?;
                separator = ", ";
                rest &= !name.value;
            }
        }
        if rest != 0 {
            write!(f, "{separator}{rest:#x}")?;
        }
        f.write_str(" ]")
    }
}

/// Modes of memory registration, to be shown. They are the only flags in an `int`.
pub(super) struct MrMode(pub(super) c_int);

impl fmt::Display for MrMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A negative value is not extended: it has 32 bits.
        MR_MODE.show(u64::from(self.0 as u32)).fmt(f)
    }
}

macro_rules! tables {
    ($(
        $(#[$attr:meta])*
        $table:ident: $kind:ident { $($name:ident,)* }
    )*) => {$(
        $(#[$attr])*
        // bindgen chooses the type of a constant by its value.
        #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
        pub(super) static $table: $kind = $kind(&[$(
            Name {
                name: stringify!($name),
                value: bindings::$name as u64,
            },
        )*]);
    )*}
}

tables! {
    /// Kinds of endpoint.
    EP_TYPE: Enum {
        KFI_EP_UNSPEC,
        KFI_EP_MSG,
        KFI_EP_DGRAM,
        KFI_EP_RDM,
        KFI_EP_SOCK_STREAM,
        KFI_EP_SOCK_DGRAM,
    }

    /// Formats of addresses.
    ADDR_FORMAT: Enum {
        KFI_FORMAT_UNSPEC,
        KFI_SOCKADDR,
        KFI_SOCKADDR_IN,
        KFI_SOCKADDR_IN6,
        KFI_SOCKADDR_IB,
        KFI_ADDR_GNI,
        KFI_ADDR_CXI,
    }

    /// Calls that the consumer serializes.
    THREADING: Enum {
        KFI_THREAD_UNSPEC,
        KFI_THREAD_SAFE,
        KFI_THREAD_FID,
        KFI_THREAD_DOMAIN,
        KFI_THREAD_COMPLETION,
        KFI_THREAD_ENDPOINT,
    }

    /// The party that moves operations forward.
    PROGRESS: Enum {
        KFI_PROGRESS_UNSPEC,
        KFI_PROGRESS_AUTO,
        KFI_PROGRESS_MANUAL,
    }

    /// The party that keeps queues from overrunning.
    RESOURCE_MGMT: Enum {
        KFI_RM_UNSPEC,
        KFI_RM_DISABLED,
        KFI_RM_ENABLED,
    }

    /// Wire protocols.
    PROTOCOL: Enum {
        KFI_PROTO_UNSPEC,
        KFI_PROTO_RDMA_CM_IB_RC,
        KFI_PROTO_IWARP,
        KFI_PROTO_IB_UD,
        KFI_PROTO_UDP,
        KFI_PROTO_SOCK_TCP,
        KFI_PROTO_IWARP_RDM,
        KFI_PROTO_IB_RDM,
        KFI_PROTO_GNI,
        KFI_PROTO_CXI,
    }

    /// Kinds of address vector.
    AV_TYPE: Enum {
        KFI_AV_UNSPEC,
        KFI_AV_MAP,
        KFI_AV_TABLE,
    }

    /// Traffic classes, but for those that hold a DSCP.
    TRAFFIC_CLASS: Enum {
        KFI_TC_UNSPEC,
        KFI_TC_BEST_EFFORT,
        KFI_TC_LOW_LATENCY,
        KFI_TC_DEDICATED_ACCESS,
        KFI_TC_BULK_DATA,
        KFI_TC_SCAVENGER,
        KFI_TC_NETWORK_CTRL,
    }

    /// Types of the elements of atomic operations.
    ATOMIC_TYPE: Enum {
        KFI_INT8,
        KFI_UINT8,
        KFI_INT16,
        KFI_UINT16,
        KFI_INT32,
        KFI_UINT32,
        KFI_INT64,
        KFI_UINT64,
        KFI_FLOAT,
        KFI_DOUBLE,
        KFI_FLOAT_COMPLEX,
        KFI_DOUBLE_COMPLEX,
        KFI_LONG_DOUBLE,
        KFI_LONG_DOUBLE_COMPLEX,
    }

    /// Atomic operations.
    ATOMIC_OP: Enum {
        KFI_MIN,
        KFI_MAX,
        KFI_SUM,
        KFI_PROD,
        KFI_LOR,
        KFI_LAND,
        KFI_BOR,
        KFI_BAND,
        KFI_LXOR,
        KFI_BXOR,
        KFI_ATOMIC_READ,
        KFI_ATOMIC_WRITE,
        KFI_CSWAP,
        KFI_CSWAP_NE,
        KFI_CSWAP_LE,
        KFI_CSWAP_LT,
        KFI_CSWAP_GE,
        KFI_CSWAP_GT,
        KFI_MSWAP,
    }

    /// Events of event queues.
    EQ_EVENT: Enum {
        KFI_NOTIFY,
        KFI_CONNREQ,
        KFI_CONNECTED,
        KFI_SHUTDOWN,
        KFI_MR_COMPLETE,
        KFI_AV_COMPLETE,
        KFI_JOIN_COMPLETE,
    }

    /// Operations of deferred work.
    OP_TYPE: Enum {
        KFI_OP_RECV,
        KFI_OP_SEND,
        KFI_OP_TRECV,
        KFI_OP_TSEND,
        KFI_OP_READ,
        KFI_OP_WRITE,
        KFI_OP_ATOMIC,
        KFI_OP_FETCH_ATOMIC,
        KFI_OP_COMPARE_ATOMIC,
        KFI_OP_CNTR_SET,
        KFI_OP_CNTR_ADD,
    }

    /// Capabilities.
    CAPS: Flags {
        KFI_MSG,
        KFI_RMA,
        KFI_TAGGED,
        KFI_ATOMIC,
        KFI_MULTICAST,
        KFI_TAGGED_RMA,
        KFI_READ,
        KFI_WRITE,
        KFI_RECV,
        KFI_SEND,
        KFI_REMOTE_READ,
        KFI_REMOTE_WRITE,
        KFI_MULTI_RECV,
        KFI_REMOTE_CQ_DATA,
        KFI_MORE,
        KFI_PEEK,
        KFI_TRIGGER,
        KFI_FENCE,
        KFI_COMPLETION,
        KFI_INJECT,
        KFI_INJECT_COMPLETE,
        KFI_TRANSMIT_COMPLETE,
        KFI_DELIVERY_COMPLETE,
        KFI_AFFINITY,
        KFI_COMMIT_COMPLETE,
        KFI_TAGGED_MULTI_RECV,
        KFI_RMA_PMEM,
        KFI_SOURCE_ERR,
        KFI_LOCAL_COMM,
        KFI_REMOTE_COMM,
        KFI_SHARED_AV,
        KFI_RMA_EVENT,
        KFI_SOURCE,
        KFI_NAMED_RX_CTX,
        KFI_DIRECTED_RECV,
    }

    /// Flags of operations.
    OP_FLAGS: Flags {
        KFI_MSG,
        KFI_RMA,
        KFI_TAGGED,
        KFI_ATOMIC,
        KFI_MULTICAST,
        KFI_TAGGED_RMA,
        KFI_READ,
        KFI_WRITE,
        KFI_RECV,
        KFI_SEND,
        KFI_REMOTE_READ,
        KFI_REMOTE_WRITE,
        KFI_MULTI_RECV,
        KFI_REMOTE_CQ_DATA,
        KFI_MORE,
        KFI_PEEK,
        KFI_TRIGGER,
        KFI_FENCE,
        KFI_COMPLETION,
        KFI_INJECT,
        KFI_INJECT_COMPLETE,
        KFI_TRANSMIT_COMPLETE,
        KFI_DELIVERY_COMPLETE,
        KFI_AFFINITY,
        KFI_COMMIT_COMPLETE,
        KFI_TAGGED_MULTI_RECV,
        KFI_DISCARD,
        KFI_CLAIM,
    }

    /// Flags of completions.
    CQ_EVENT_FLAGS: Flags {
        KFI_MSG,
        KFI_RMA,
        KFI_TAGGED,
        KFI_ATOMIC,
        KFI_MULTICAST,
        KFI_TAGGED_RMA,
        KFI_READ,
        KFI_WRITE,
        KFI_RECV,
        KFI_SEND,
        KFI_REMOTE_READ,
        KFI_REMOTE_WRITE,
        KFI_MULTI_RECV,
        KFI_REMOTE_CQ_DATA,
        KFI_MORE,
        KFI_TAGGED_MULTI_RECV,
        KFI_DISCARD,
        KFI_CLAIM,
    }

    /// Orders of messages and completions.
    MSG_ORDER: Flags {
        KFI_ORDER_NONE,
        KFI_ORDER_STRICT,
        KFI_ORDER_RAR,
        KFI_ORDER_RAW,
        KFI_ORDER_RAS,
        KFI_ORDER_WAR,
        KFI_ORDER_WAW,
        KFI_ORDER_WAS,
        KFI_ORDER_SAR,
        KFI_ORDER_SAW,
        KFI_ORDER_SAS,
        KFI_ORDER_DATA,
    }

    /// Mode bits.
    MODE: Flags {
        KFI_CONTEXT2,
        KFI_RESTRICTED_COMP,
        KFI_NOTIFY_FLAGS_ONLY,
        KFI_LOCAL_MR,
        KFI_RX_CQ_DATA,
        KFI_ASYNC_IOV,
        KFI_MSG_PREFIX,
        KFI_CONTEXT,
    }

    /// Modes of memory registration.
    MR_MODE: Flags {
        KFI_MR_LOCAL,
        KFI_MR_RAW,
        KFI_MR_VIRT_ADDR,
        KFI_MR_PROV_KEY,
        KFI_MR_RMA_EVENT,
        KFI_MR_ENDPOINT,
    }
}

#[kunit_tests(kfabric_tostr_names)]
mod tests {
    use super::*;

    /// Returns whether no name hides another one.
    fn distinct(flags: &Flags) -> bool {
        let mut named = 0;
        // Names for several bits stand first, so that they hide those of the bits on purpose.
        let mut single = flags.0.iter().filter(|name| name.value.is_power_of_two());
        single.all(|name| {
            let hidden = named & name.value != 0;
            named |= name.value;
            !hidden
        })
    }

    #[test]
    fn every_flag_can_be_shown() {
        let all = [
            &CAPS,
            &OP_FLAGS,
            &CQ_EVENT_FLAGS,
            &MSG_ORDER,
            &MODE,
            &MR_MODE,
        ];
        for flags in all {
            assert!(distinct(flags));
        }
    }

    #[test]
    fn every_value_has_one_name() {
        for names in [
            &EP_TYPE,
            &ADDR_FORMAT,
            &THREADING,
            &PROGRESS,
            &RESOURCE_MGMT,
            &PROTOCOL,
            &AV_TYPE,
            &TRAFFIC_CLASS,
            &ATOMIC_TYPE,
            &ATOMIC_OP,
            &EQ_EVENT,
            &OP_TYPE,
        ] {
            for (index, name) in names.0.iter().enumerate() {
                let mut others = names.0[..index].iter();
                assert!(others.all(|other| other.value != name.value));
            }
        }
    }
}
