// SPDX-License-Identifier: GPL-2.0

//! The requests of `/dev/kfi`: what is in each, for those who make random ones
//! ([`fuzz`](crate::fuzz)), bad ones (the area `hostile`), or any ([`raw`](crate::raw)).
//!
//! A new request is a line of [`REQUESTS`]. Its number, its type, reserved members and
//! where the result is come from the header.

use std::mem::offset_of;

use kfi::bits;
use kfi::uapi::{self, request, Declared};
use serde::{Deserialize, Serialize};

use What::{
    Address, Array, Bits, Context, Flag, Flags, Handle, Name, New, NewName, Of, Out, Pick, Result,
    Room, Set, Size, Text, Timeout, Up,
};

/// Kinds of objects that a slot can hold.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub enum Class {
    Info,
    Fabric,
    Domain,
    Counter,
    WaitSet,
    PollSet,
    CompletionQueue,
    EventQueue,
    AddressVector,
    Region,
    Buffer,
    Endpoint,
    Scalable,
    Passive,
    Transmit,
    Receive,
    Group,
    /// Deferred work, by its id.
    Work,
    /// Where a buffer can be mapped.
    Offset,
    /// A wait descriptor.
    Descriptor,
    /// An insertion of an address vector.
    Insertion,
    /// A key of a memory region.
    Key,
}

impl Class {
    /// Whether it has handles, which the system call looks up.
    pub fn has_handles(self) -> bool {
        !matches!(
            self,
            Self::Work | Self::Offset | Self::Descriptor | Self::Insertion | Self::Key
        )
    }

    /// Whether it is one of kfabric's objects.
    pub fn is_object(self) -> bool {
        self.has_handles() && !matches!(self, Self::Info | Self::Buffer)
    }
}

/// How often 0 stands in place of a handle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Zero {
    /// It is no handle: the system call refuses it.
    Never,
    /// It means none, which is possible.
    Sometimes,
    /// It means none, which is usual.
    Mostly,
}

/// The objects that a member names.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Classes with which the request can succeed; all if there is none.
    pub classes: &'static [Class],
    /// Of the others, objects of kfabric are left to kfabric to refuse.
    pub asks: bool,
    /// Whether there may be none.
    pub zero: Zero,
}

impl Takes {
    /// Whether the system call itself has nothing against this class.
    pub fn accepts(&self, class: Class) -> bool {
        let known = self.classes.is_empty() && !self.asks || self.classes.contains(&class);
        known || self.asks && class.is_object()
    }
}

/// The handle of an object of one of these classes; the system call refuses others.
const fn handle(classes: &'static [Class]) -> What {
    Handle(Takes {
        classes,
        asks: false,
        zero: Zero::Never,
    })
}

/// The handle of an object of kfabric, useful if it is of one of these classes.
const fn object(classes: &'static [Class]) -> What {
    Handle(Takes {
        classes,
        asks: true,
        zero: Zero::Never,
    })
}

/// The handle of anything.
const ANY: What = handle(&[]);

/// The content of a member of a structure.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// An open object.
    Handle(Takes),
    /// Receives an object.
    New(Class),
    /// One of these numbers.
    Pick(&'static [u64]),
    /// Any number up to this one, 0 and small ones more often.
    Up(u64),
    /// Some of these bits, most often none.
    Bits(&'static [u64]),
    /// Some of these bits, at least one.
    Of(&'static [u64]),
    /// 0, or now and then this.
    Flag(u64),
    /// Likewise: flags of the interface, and the system call refuses others.
    Flags(u32),
    /// Such flags that are useful if they are set.
    Set(u32),
    /// One of few numbers, so that something has it.
    Context,
    /// Milliseconds, few.
    Timeout,
    /// Bytes to allocate, not many.
    Size,
    /// Receives what kfabric says.
    Result,
    /// Address of an array; its length goes to this offset. The kernel writes to it if
    /// its entries have a result.
    Array(&'static Schema, usize),
    /// Address of a single structure; its size goes to this offset.
    Address(&'static Schema, usize),
    /// Address of a text, or 0.
    Text,
    /// Address of entries of this size that the kernel writes.
    Out(usize),
    /// Address of bytes that the kernel writes. How many there are goes to this offset,
    /// and this is the least.
    Room(usize, usize),
    /// The address of an endpoint, by value.
    Name,
    /// Receives the address of an endpoint.
    NewName,
}

impl What {
    const fn with(self, zero: Zero) -> Self {
        match self {
            Handle(takes) => Handle(Takes { zero, ..takes }),
            other => other,
        }
    }

    /// There may be none.
    const fn or_none(self) -> Self {
        self.with(Zero::Sometimes)
    }

    /// There is none as a rule.
    const fn rarely(self) -> Self {
        self.with(Zero::Mostly)
    }
}

/// A member that is not left 0.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Member {
    pub offset: usize,
    pub width: usize,
    pub what: What,
}

/// A structure.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Schema {
    pub size: usize,
    pub members: &'static [Member],
}

/// A number for a member.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Number {
    pub offset: usize,
    pub width: usize,
    pub value: u64,
}

/// Peculiarities of a request.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Bytes of the first version of its structure, if it has grown.
    pub first: Option<usize>,
    /// kfabric may answer anything to a good one, made of objects that nobody uses, not 0 alone.
    pub any_answer: bool,
    /// It needs more than an object of the right class, so that no such one succeeds.
    pub needs_more: bool,
}

impl Traits {
    /// The first version of its structure had so many bytes.
    const fn first(self, size: usize) -> Self {
        Self {
            first: Some(size),
            ..self
        }
    }
}

const PLAIN: Traits = Traits {
    first: None,
    any_answer: false,
    needs_more: false,
};
const ANY_ANSWER: Traits = Traits {
    any_answer: true,
    ..PLAIN
};
const NEEDS_MORE: Traits = Traits {
    needs_more: true,
    ..PLAIN
};

/// A request.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Request {
    pub name: &'static str,
    pub number: u32,
    pub argument: Schema,
    /// How often it is made, compared to others.
    pub weight: u32,
    /// Numbers that a good one has beside handles and addresses.
    pub good: &'static [Number],
    pub traits: Traits,
}

impl Request {
    /// Its declaration in the header.
    pub fn declared(&self) -> &'static Declared {
        let same = |declared: &&Declared| declared.number == self.number;
        // By construction: the number comes from there.
        uapi::REQUESTS
            .iter()
            .find(same)
            .unwrap_or(&uapi::REQUESTS[0])
    }

    /// Addresses in it that the kernel writes to: where they are, and the least that
    /// is written there.
    pub fn written(&self) -> impl Iterator<Item = (usize, usize)> {
        self.argument.members.iter().filter_map(|member| {
            let least = match member.what {
                Out(size) => size,
                Room(_, least) => least,
                Array(entry, _) if entry.has_result() => entry.size,
                _ => return None,
            };
            Some((member.offset, least))
        })
    }

    /// Whether it makes others: an array of arguments.
    pub fn is_batch(&self) -> bool {
        let array = |member: &Member| matches!(member.what, Array(entry, _) if entry.has_result());
        self.argument.members.iter().any(array)
    }
}

impl Schema {
    fn has_result(&self) -> bool {
        let result = |member: &Member| matches!(member.what, Result);
        self.members.iter().any(result)
    }
}

/// Each request once: of several with a name, the first.
pub fn each() -> impl Iterator<Item = &'static Request> {
    let named = |name| REQUESTS.iter().position(|other| other.name == name);
    let firsts = REQUESTS.iter().enumerate();
    firsts.filter_map(move |(at, request)| (named(request.name) == Some(at)).then_some(request))
}

/// The request that a number means, whatever the direction and the size in it.
pub fn of_number(number: u32) -> Option<&'static Request> {
    REQUESTS
        .iter()
        .find(|request| request.number & 0xffff == number & 0xffff)
}

const fn width_of<S, T>(_: fn(&S) -> &T) -> usize {
    size_of::<T>()
}

/// The schema of a structure: members and what to put there.
macro_rules! schema {
    ($structure:ident { $($member:ident: $what:expr),* $(,)? }) => {
        Schema {
            size: size_of::<uapi::$structure>(),
            members: &[$(Member {
                offset: offset_of!(uapi::$structure, $member),
                width: width_of(|all: &uapi::$structure| &all.$member),
                what: $what,
            }),*],
        }
    };
}

/// The numbers of a good request: of some members.
macro_rules! good {
    ($structure:ident { $($member:ident: $value:expr),* $(,)? }) => {
        &[$(Number {
            offset: offset_of!(uapi::$structure, $member),
            width: width_of(|all: &uapi::$structure| &all.$member),
            value: $value as u64,
        }),*]
    };
}

/// The requests: name, weight, argument; what a good one has, what is special about it.
macro_rules! requests {
    ($(
        $name:ident $weight:literal $structure:ident { $($body:tt)* }
        $(good { $($good:tt)* })? $(is $traits:expr)?;
    )*) => {
        /// All requests of the interface. Some have a line for each of several uses, of
        /// which the first describes the request.
        pub static REQUESTS: &[Request] = &[$(Request {
            name: stringify!($name),
            number: request::$name.number(),
            argument: schema!($structure { $($body)* }),
            weight: $weight,
            good: {
                #[allow(unused_mut, unused_assignments)]
                let mut good: &'static [Number] = &[];
                $(good = good!($structure { $($good)* });)?
                good
            },
            traits: {
                #[allow(unused_mut, unused_assignments)]
                let mut traits = PLAIN;
                $(traits = $traits;)?
                traits
            },
        }),*];
    };
}

/// Where a member is.
macro_rules! at {
    ($structure:ident . $member:ident) => {
        offset_of!(uapi::$structure, $member)
    };
}

const ENDPOINTS: &[Class] = &[Class::Endpoint, Class::Transmit, Class::Receive];
const NAMED: &[Class] = &[Class::Endpoint, Class::Scalable, Class::Passive];
const COUNTERS: &[Class] = &[Class::Counter];
const WAITABLE: &[Class] = &[
    Class::Counter,
    Class::CompletionQueue,
    Class::EventQueue,
    Class::WaitSet,
];
const WAIT_OBJECTS: &[u64] = &[0, 1, 2, 3, 3, 3, 3];
const OPEN_FLAGS: u32 = uapi::KFI_SHIM_NO_ATTR;
const CANCEL_FLAGS: u32 = uapi::KFI_SHIM_WORK_RELEASE | uapi::KFI_SHIM_WORK_STALE;
const QUEUE_FLAGS: u32 = OPEN_FLAGS | uapi::KFI_SHIM_HANDLER;
const WORK_FLAGS: u32 =
    uapi::KFI_SHIM_WORK_PREPARE | uapi::KFI_SHIM_WORK_NULL | uapi::KFI_SHIM_WORK_NO_OP;
/// Rights of regions, and bindings of counters and queues.
const DIRECTIONS: &[u64] = &[
    bits::SEND,
    bits::RECV,
    bits::READ,
    bits::WRITE,
    bits::REMOTE_READ,
    bits::REMOTE_WRITE,
];
const OP_FLAGS: &[u64] = &[
    bits::COMPLETION,
    bits::INJECT,
    bits::MORE,
    bits::TRIGGER,
    bits::FENCE,
    bits::TRANSMIT_COMPLETE,
    bits::DELIVERY_COMPLETE,
    bits::REMOTE_CQ_DATA,
    bits::MULTI_RECV,
    bits::PEEK,
    bits::CLAIM,
    bits::DISCARD,
];
/// Peers: indices of an address vector, and `KFI_ADDR_UNSPEC`.
const PEERS: &[u64] = &[0, 0, 0, 1, 1, 2, u64::MAX];
const COMMANDS: &[u64] = &[
    uapi::KFI_GETOPSFLAG as u64,
    uapi::KFI_SETOPSFLAG as u64,
    uapi::KFI_GETWAITOBJ as u64,
];
/// Room for so many entries is where the kernel writes some.
pub const ENTRIES: usize = 64;

static NUMBER: Schema = Schema {
    size: 8,
    members: &[Member {
        offset: 0,
        width: 8,
        what: Up(3),
    }],
};

static HANDLE: Schema = Schema {
    size: 4,
    members: &[Member {
        offset: 0,
        width: 4,
        what: handle(WAITABLE),
    }],
};

static NAME: Schema = Schema {
    size: uapi::KFI_SHIM_ADDR_MAX as usize,
    members: &[Member {
        offset: 0,
        width: uapi::KFI_SHIM_ADDR_MAX as usize,
        what: Name,
    }],
};

static SEGMENT: Schema = schema!(kfi_shim_segment {
    buffer: handle(&[Class::Buffer]),
    mr: handle(&[Class::Region]).rarely(),
    offset: Pick(&[0, 0, 8, 64, 4096, 4095]),
    len: Pick(&[0, 1, 8, 8, 64, 64, 256, 4096, 20_000]),
});

static PIECE: Schema = schema!(kfi_shim_segment {
    buffer: handle(&[Class::Buffer]),
    offset: Pick(&[0, 0, 8, 64, 4096, 4095]),
    len: Pick(&[0, 1, 8, 64, 256, 4096, 20_000]),
});

static REMOTE: Schema = schema!(kfi_shim_rma_segment {
    addr: Pick(&[0, 0, 0, 8, 4096]),
    len: Pick(&[0, 1, 8, 8, 64, 64, 4096]),
    key: handle(&[Class::Key]),
});

static INFO: Schema = schema!(kfi_shim_info {
    caps: Bits(DIRECTIONS),
    mode: Flag(u64::MAX),
    addr_format: Up(20),
    src_addrlen: Flag(64),
    dest_addrlen: Flag(64),
});

static OPERATION: Schema = schema!(kfi_shim_op {
    ep: handle(ENDPOINTS),
    kind: Pick(&[1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9]),
    form: Pick(&[1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]),
    shim_flags: Flag(uapi::KFI_SHIM_OP_TRIGGERED as u64),
    flags: Bits(OP_FLAGS),
    addr: Pick(PEERS),
    context: Context,
    data: Up(3),
    tag: Up(3),
    ignore: Pick(&[0, 0, 0, u64::MAX]),
    segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
    results: Array(&SEGMENT, at!(kfi_shim_op.result_count)),
    compares: Array(&SEGMENT, at!(kfi_shim_op.compare_count)),
    rma_segments: Array(&REMOTE, at!(kfi_shim_op.rma_segment_count)),
    datatype: Up(14),
    atomic_op: Up(19),
    trigger_event: Flag(1),
    trigger_cntr: handle(COUNTERS),
    threshold: Up(8),
    result: Result,
});

static WORK: Schema = schema!(kfi_shim_work {
    domain: handle(&[Class::Domain]),
    flags: Flags(WORK_FLAGS),
    op: Address(&OPERATION, at!(kfi_shim_work.op_size)),
    op_type: Pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10, 10, 10, 11]),
    triggering_cntr: handle(COUNTERS),
    completion_cntr: handle(COUNTERS).rarely(),
    cntr: handle(COUNTERS),
    value: Up(8),
    threshold: Up(12),
    result: Result,
});

requests! {
    VERSION 1 kfi_shim_version {};
    CLOSE 12 kfi_shim_close { handle: ANY, result: Result };
    GETINFO 1 kfi_shim_getinfo {
        flags: Flag(u64::MAX),
        node: Text,
        service: Text,
        hints: Address(&INFO, at!(kfi_shim_getinfo.hints_size)),
        result: Result,
        info: New(Class::Info),
    };
    READ_INFO 1 kfi_shim_read_info {
        info: handle(&[Class::Info]),
        index: Up(2),
        buffer: Room(at!(kfi_shim_read_info.buffer_size), size_of::<uapi::kfi_shim_info>()),
    };
    CONTROL 2 kfi_shim_control { handle: object(&[]), command: Pick(COMMANDS), value: Bits(OP_FLAGS), result: Result } good { command: uapi::KFI_GETOPSFLAG };
    WAIT_FD 3 kfi_shim_wait_fd {
        handle: handle(WAITABLE),
        flags: Set(uapi::KFI_SHIM_WAIT_NONBLOCK),
        result: Result,
        fd: New(Class::Descriptor),
    };
    FABRIC 1 kfi_shim_fabric {
        info: handle(&[Class::Info]), index: Up(1), context: Context, result: Result,
        fabric: New(Class::Fabric),
    };
    DOMAIN 1 kfi_shim_domain {
        fabric: handle(&[Class::Fabric]), info: handle(&[Class::Info]), index: Up(1),
        context: Context, result: Result, domain: New(Class::Domain),
    };
    CNTR_OPEN 5 kfi_shim_cntr_open {
        domain: handle(&[Class::Domain]), flags: Flags(OPEN_FLAGS), events: Flag(1),
        wait_obj: Pick(WAIT_OBJECTS), attr_flags: Flag(1), context: Context,
        wait_set: object(&[Class::WaitSet]).rarely(), result: Result, cntr: New(Class::Counter),
    };
    CNTR_READ 3 kfi_shim_cntr { cntr: handle(COUNTERS), result: Result };
    CNTR_READERR 2 kfi_shim_cntr { cntr: handle(COUNTERS), result: Result };
    CNTR_ADD 8 kfi_shim_cntr { cntr: handle(COUNTERS), value: Up(4), result: Result };
    CNTR_ADDERR 3 kfi_shim_cntr { cntr: handle(COUNTERS), value: Up(2), result: Result };
    CNTR_SET 3 kfi_shim_cntr { cntr: handle(COUNTERS), value: Up(10), result: Result };
    CNTR_SETERR 2 kfi_shim_cntr { cntr: handle(COUNTERS), value: Up(3), result: Result };
    CNTR_WAIT 3 kfi_shim_cntr_wait {
        cntr: handle(COUNTERS), timeout: Timeout, threshold: Up(10), result: Result,
    };
    WAIT_OPEN 2 kfi_shim_wait_open {
        fabric: handle(&[Class::Fabric]), flags: Flags(OPEN_FLAGS), attr_flags: Flag(1),
        wait_obj: Pick(&[1, 3, 3, 3]), result: Result, wait_set: New(Class::WaitSet),
    } good { wait_obj: uapi::KFI_WAIT_QUEUE };
    WAIT 2 kfi_shim_wait { wait_set: handle(&[Class::WaitSet]), timeout: Timeout, result: Result } is ANY_ANSWER;
    TRYWAIT 3 kfi_shim_trywait {
        fabric: handle(&[Class::Fabric]),
        handles: Array(&HANDLE, at!(kfi_shim_trywait.count)), result: Result,
    };
    POLL_OPEN 2 kfi_shim_poll_open {
        domain: handle(&[Class::Domain]), flags: Flags(OPEN_FLAGS), attr_flags: Flag(1),
        result: Result, poll_set: New(Class::PollSet),
    };
    POLL_ADD 4 kfi_shim_poll_member {
        poll_set: handle(&[Class::PollSet]),
        member: object(&[Class::Counter, Class::CompletionQueue]), flags: Flag(1), result: Result,
    };
    POLL_DEL 3 kfi_shim_poll_member {
        poll_set: handle(&[Class::PollSet]),
        member: object(&[Class::Counter, Class::CompletionQueue]), flags: Flag(1), result: Result,
    } is ANY_ANSWER;
    POLL 3 kfi_shim_poll {
        poll_set: handle(&[Class::PollSet]), count: Up(ENTRIES as u64),
        contexts: Out(8), result: Result,
    } good { count: 1 };
    CQ_OPEN 3 kfi_shim_cq_open {
        domain: handle(&[Class::Domain]), flags: Flags(QUEUE_FLAGS), size: Pick(&[1, 2, 64, 8, 0]),
        attr_flags: Flag(1), context: Context, format: Up(5), wait_obj: Pick(WAIT_OBJECTS),
        wait_cond: Flag(1), wait_set: object(&[Class::WaitSet]).rarely(), signaling_vector: Flag(1),
        result: Result, cq: New(Class::CompletionQueue),
    } is PLAIN.first(56);
    CQ_READ 4 kfi_shim_cq_read {
        cq: handle(&[Class::CompletionQueue]), count: Up(ENTRIES as u64),
        entries: Out(size_of::<uapi::kfi_shim_cq_entry>()), flags: Flags(uapi::KFI_SHIM_CQ_NO_SOURCE), result: Result,
    } good { count: 1 } is ANY_ANSWER.first(24);
    CQ_SREAD 2 kfi_shim_cq_read {
        cq: handle(&[Class::CompletionQueue]), count: Up(ENTRIES as u64),
        entries: Out(size_of::<uapi::kfi_shim_cq_entry>()), timeout: Timeout,
        cond: Up(4), flags: Flags(uapi::KFI_SHIM_CQ_NO_SOURCE), result: Result,
    } good { count: 1 } is ANY_ANSWER.first(24);
    CQ_READERR 3 kfi_shim_cq_error { cq: handle(&[Class::CompletionQueue]), result: Result } is ANY_ANSWER;
    // Which kfabric refuses, so that the good ones change nothing; as those of EQ_WRITE do.
    CQ_WRITE 3 kfi_shim_cq_error {
        cq: handle(&[Class::CompletionQueue]), olen: Up(3), err: Up(20), prov_errno: Up(5),
        result: Result,
    } good { err: u32::MAX } is ANY_ANSWER;
    CQ_SIGNAL 1 kfi_shim_cq_signal { cq: handle(&[Class::CompletionQueue]), result: Result };
    EQ_OPEN 2 kfi_shim_eq_open {
        fabric: handle(&[Class::Fabric]), flags: Flags(QUEUE_FLAGS), size: Pick(&[1, 2, 64, 8, 0]),
        attr_flags: Flag(1), context: Context, wait_obj: Pick(WAIT_OBJECTS),
        wait_set: object(&[Class::WaitSet]).rarely(), result: Result, eq: New(Class::EventQueue),
    } is PLAIN.first(48);
    EQ_READ 2 kfi_shim_eq_event {
        eq: handle(&[Class::EventQueue]), flags: Flag(1), len: Up(128), result: Result,
    } good { len: 128 } is ANY_ANSWER.first(160);
    EQ_SREAD 1 kfi_shim_eq_event {
        eq: handle(&[Class::EventQueue]), flags: Flag(1), len: Up(128), timeout: Timeout,
        result: Result,
    } good { len: 128 } is ANY_ANSWER.first(160);
    EQ_WRITE 2 kfi_shim_eq_event {
        eq: handle(&[Class::EventQueue]), event: Up(6), flags: Flag(1), len: Up(128),
        result: Result,
    } good { flags: u64::MAX } is ANY_ANSWER.first(160);
    EQ_READERR 1 kfi_shim_eq_error { eq: handle(&[Class::EventQueue]), result: Result } is ANY_ANSWER.first(32);
    EQ_WRITE_ERROR 1 kfi_shim_eq_error {
        eq: handle(&[Class::EventQueue]), context: Context, data: Up(3), err: Up(20),
        prov_errno: Up(5), result: Result,
    } good { err: u32::MAX } is ANY_ANSWER.first(32);
    STRERROR 1 kfi_shim_strerror {
        queue: handle(&[Class::CompletionQueue, Class::EventQueue]), prov_errno: Up(300),
        len: Up(256), result: Result,
    } good { len: 64 } is ANY_ANSWER;
    INFO_TEXT 1 kfi_shim_info_text {
        info: handle(&[Class::Info]), index: Up(1), text: Room(at!(kfi_shim_info_text.size), 1),
    };
    TOSTR 1 kfi_shim_tostr {
        type_: Up(30), text: Room(at!(kfi_shim_tostr.size), 1), value: Up(u64::MAX), result: Result,
    } good { type_: uapi::KFI_TYPE_EP_TYPE };
    BIND 8 kfi_shim_bind {
        handle: object(&[
            Class::Endpoint, Class::Endpoint, Class::Transmit, Class::Receive, Class::Region,
            Class::AddressVector, Class::Scalable, Class::Domain,
        ]),
        other: object(&[
            Class::CompletionQueue, Class::CompletionQueue, Class::Counter, Class::Counter,
            Class::AddressVector, Class::EventQueue, Class::Receive, Class::Transmit,
        ]),
        flags: Of(DIRECTIONS),
        result: Result,
    } is ANY_ANSWER;
    ENABLE 4 kfi_shim_enable {
        handle: object(&[
            Class::Endpoint, Class::Endpoint, Class::Region, Class::Scalable, Class::Transmit,
            Class::Receive,
        ]),
        result: Result,
    } is ANY_ANSWER;
    HANDLED 1 kfi_shim_handled {
        queue: handle(&[Class::CompletionQueue, Class::EventQueue]), timeout: Timeout,
        calls: Up(2), result: Result,
    } is NEEDS_MORE;
    BUFFER 3 kfi_shim_buffer {
        kind: Pick(&[1, 2, 3]), size: Size, flags: Flags(0), buffer: New(Class::Buffer), offset: New(Class::Offset),
    } good { kind: uapi::KFI_SHIM_BUFFER_KMALLOC, size: 1 };
    AV_OPEN 2 kfi_shim_av_open {
        domain: handle(&[Class::Domain]), flags: Flags(OPEN_FLAGS), type_: Pick(&[0, 1, 2, 2, 3]), rx_ctx_bits: Up(4),
        count: Up(100), attr_flags: Flag(bits::EVENT), context: Context, result: Result,
        av: New(Class::AddressVector),
    } is ANY_ANSWER;
    AV_INSERT 3 kfi_shim_av_insert {
        av: handle(&[Class::AddressVector]), addr_len: Pick(&[128, 192, 64, 256, 64]),
        flags: Flag(bits::SYNC_ERR), context: Context,
        addr: Array(&NAME, at!(kfi_shim_av_insert.count)),
        kfi_addrs: Out(8), errors: Out(4), result: Result,
        insertion: New(Class::Insertion),
    };
    AV_INSERTSVC 1 kfi_shim_av_insert {
        av: handle(&[Class::AddressVector]), flags: Flag(bits::SYNC_ERR),
        context: Context, node: Text, service: Text, kfi_addrs: Out(8),
        errors: Out(4), result: Result, insertion: New(Class::Insertion),
    };
    AV_INSERTSYM 1 kfi_shim_av_insert {
        av: handle(&[Class::AddressVector]), flags: Flag(bits::SYNC_ERR),
        context: Context, node: Text, service: Text, count: Up(4), service_count: Up(8),
        kfi_addrs: Out(8), errors: Out(4), result: Result,
        insertion: New(Class::Insertion),
    };
    AV_INSERTED 1 kfi_shim_av_inserted {
        av: handle(&[Class::AddressVector]), insertion: handle(&[Class::Insertion]),
        kfi_addrs: Out(8), count: Up(ENTRIES as u64),
    };
    AV_REMOVE 1 kfi_shim_av_remove {
        av: handle(&[Class::AddressVector]),
        kfi_addrs: Array(&NUMBER, at!(kfi_shim_av_remove.count)), flags: Flag(1), result: Result,
    };
    AV_LOOKUP 1 kfi_shim_av_lookup {
        av: handle(&[Class::AddressVector]), addr_len: Up(64), kfi_addr: Up(4), result: Result,
    };
    AV_STRADDR 1 kfi_shim_av_straddr {
        av: handle(&[Class::AddressVector]), len: Up(256), addr: Name, result: Result,
    };
    MR 3 kfi_shim_mr {
        domain: handle(&[Class::Domain]), form: Pick(&[1, 2, 3, 4, 5, 6, 7]),
        segments: Array(&PIECE, at!(kfi_shim_mr.segment_count)), access: Of(DIRECTIONS),
        requested_key: Up(1000), flags: Flag(1), context: Context, result: Result,
        mr: New(Class::Region), key: New(Class::Key),
    } good { form: uapi::KFI_SHIM_FORM_V } is ANY_ANSWER;
    MR_KEY 1 kfi_shim_mr_key { mr: handle(&[Class::Region]) };
    MR_REFRESH 1 kfi_shim_mr_refresh {
        mr: handle(&[Class::Region]),
        segments: Array(&PIECE, at!(kfi_shim_mr_refresh.segment_count)), flags: Flag(1),
        result: Result,
    };
    MR_RAW_ATTR 1 kfi_shim_raw_key {
        handle: handle(&[Class::Region]), key_size: Up(256), flags: Flag(1), result: Result,
    };
    MR_MAP_RAW 1 kfi_shim_raw_key {
        handle: handle(&[Class::Domain]), key_size: Up(256), base_addr: Up(4096), flags: Flag(1),
        result: Result,
    } is NEEDS_MORE;
    MR_UNMAP_KEY 1 kfi_shim_raw_key {
        handle: handle(&[Class::Domain]), key: Up(1000), result: Result,
    } is NEEDS_MORE;
    EP_OPEN 4 kfi_shim_ep_open {
        parent: handle(&[Class::Domain]), kind: Pick(&[1]), info: handle(&[Class::Info]).or_none(),
        index: Up(1), context: Context, result: Result, ep: New(Class::Endpoint),
    } good { kind: uapi::KFI_SHIM_EP } is ANY_ANSWER;
    EP_OPEN 1 kfi_shim_ep_open {
        parent: handle(&[Class::Domain]), kind: Pick(&[2]), info: handle(&[Class::Info]),
        index: Up(1), context: Context, result: Result, ep: New(Class::Scalable),
    };
    EP_OPEN 1 kfi_shim_ep_open {
        parent: handle(&[Class::Fabric, Class::Domain]), kind: Pick(&[3]),
        info: handle(&[Class::Info]), index: Up(1), context: Context, result: Result,
        ep: New(Class::Passive),
    };
    EP_OPEN 1 kfi_shim_ep_open {
        parent: handle(&[Class::Domain]), kind: Pick(&[1, 2]),
        attr: Address(&INFO, at!(kfi_shim_ep_open.attr_size)), context: Context, result: Result,
        ep: New(Class::Endpoint),
    };
    TX_CONTEXT 1 kfi_shim_tx_context {
        parent: handle(&[Class::Scalable]), index: Up(4), flags: Set(OPEN_FLAGS),
        context: Context, result: Result, ep: New(Class::Transmit),
    };
    RX_CONTEXT 1 kfi_shim_rx_context {
        parent: handle(&[Class::Scalable]), index: Up(4), flags: Set(OPEN_FLAGS),
        context: Context, result: Result, ep: New(Class::Receive),
    };
    STX_CONTEXT 1 kfi_shim_tx_context {
        parent: handle(&[Class::Domain]), flags: Set(OPEN_FLAGS), context: Context,
        result: Result, ep: New(Class::Transmit),
    } is ANY_ANSWER;
    SRX_CONTEXT 1 kfi_shim_rx_context {
        parent: handle(&[Class::Domain]), flags: Set(OPEN_FLAGS), context: Context,
        result: Result, ep: New(Class::Receive),
    } is ANY_ANSWER;
    EP_ALIAS 2 kfi_shim_ep_alias {
        ep: handle(ENDPOINTS),
        flags: Pick(&[
            bits::SEND | bits::TRIGGER,
            bits::RECV | bits::TRIGGER,
            bits::SEND | bits::COMPLETION,
            bits::TRIGGER,
            0,
        ]),
        result: Result, alias: New(Class::Endpoint),
    };
    CANCEL 3 kfi_shim_cancel { ep: handle(ENDPOINTS), context: Context, result: Result };
    GETOPT 1 kfi_shim_opt {
        ep: handle(ENDPOINTS), level: Up(1), optname: Up(3), optlen: Up(64), result: Result,
    };
    SETOPT 1 kfi_shim_opt {
        ep: handle(ENDPOINTS), level: Up(1), optname: Up(3), optlen: Pick(&[0, 4, 8, 64]),
        result: Result,
    };
    GETNAME 2 kfi_shim_name {
        ep: handle(NAMED), addr_len: Pick(&[64, 64, 64, 8, 0]), addr: NewName, result: Result,
    };
    SETNAME 1 kfi_shim_name { ep: handle(NAMED), addr_len: Up(64), addr: Name, result: Result };
    GETPEER 1 kfi_shim_name { ep: handle(NAMED), addr_len: Up(64), result: Result };
    LISTEN 1 kfi_shim_cm { ep: handle(NAMED), param_len: Up(256), result: Result };
    CONNECT 1 kfi_shim_cm { ep: handle(NAMED), param_len: Up(256), addr: Name, result: Result };
    ACCEPT 1 kfi_shim_cm { ep: handle(NAMED), param_len: Up(256), result: Result };
    REJECT 1 kfi_shim_cm { ep: handle(NAMED), param_len: Up(256), result: Result };
    SHUTDOWN 1 kfi_shim_cm { ep: handle(NAMED), flags: Flag(1), result: Result };
    JOIN 1 kfi_shim_join {
        ep: handle(ENDPOINTS), flags: Flag(1), context: Context, addr: Name, result: Result,
        mc: New(Class::Group),
    };
    POST 24 kfi_shim_op {
        ep: handle(ENDPOINTS),
        kind: Pick(&[1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9]),
        form: Pick(&[1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10]),
        shim_flags: Flag(uapi::KFI_SHIM_OP_TRIGGERED as u64),
        flags: Bits(OP_FLAGS),
        addr: Pick(PEERS),
        context: Context,
        data: Up(3),
        tag: Up(3),
        ignore: Pick(&[0, 0, 0, u64::MAX]),
        segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
        results: Array(&SEGMENT, at!(kfi_shim_op.result_count)),
        compares: Array(&SEGMENT, at!(kfi_shim_op.compare_count)),
        rma_segments: Array(&REMOTE, at!(kfi_shim_op.rma_segment_count)),
        datatype: Up(14),
        atomic_op: Up(19),
        trigger_event: Flag(1),
        trigger_cntr: handle(COUNTERS),
        threshold: Up(8),
        result: Result,
    } good { kind: uapi::KFI_SHIM_OP_SEND, form: uapi::KFI_SHIM_FORM_MSG };
    // Messages that are likely to go through.
    POST 16 kfi_shim_op {
        ep: handle(&[Class::Endpoint]), kind: Pick(&[1, 2]), form: Pick(&[1]), addr: Pick(&[0, 1]),
        context: Context, segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
        result: Result,
    };
    // Messages that wait for a counter.
    POST 8 kfi_shim_op {
        ep: handle(&[Class::Endpoint]), kind: Pick(&[1, 2, 3, 4]), form: Pick(&[5]),
        shim_flags: Pick(&[uapi::KFI_SHIM_OP_TRIGGERED as u64]),
        flags: Pick(&[bits::TRIGGER]), addr: Pick(&[0, 1]), context: Context,
        segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
        trigger_cntr: handle(COUNTERS), threshold: Up(12), result: Result,
    };
    POST_BATCH 2 kfi_shim_batch {
        array: Array(&OPERATION, at!(kfi_shim_batch.count)),
        size: Pick(&[size_of::<uapi::kfi_shim_op>() as u64]), flags: Flag(1),
    };
    QUERY_ATOMIC 1 kfi_shim_query_atomic {
        domain: handle(&[Class::Domain]), datatype: Up(14), op: Up(19), flags: Flag(1),
        result: Result,
    } is ANY_ANSWER;
    ATOMIC_VALID 1 kfi_shim_atomic_valid {
        ep: handle(ENDPOINTS), kind: Pick(&[7, 8, 9]), datatype: Up(14), op: Up(19),
        result: Result,
    };
    QUEUE_WORK 8 kfi_shim_work {
        domain: handle(&[Class::Domain]), flags: Flags(WORK_FLAGS), id: New(Class::Work),
        op: Address(&OPERATION, at!(kfi_shim_work.op_size)),
        op_type: Pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10, 10, 10, 11]),
        triggering_cntr: object(COUNTERS).or_none(), completion_cntr: object(COUNTERS).rarely(),
        cntr: object(COUNTERS).or_none(), value: Up(8), threshold: Up(12), result: Result,
    } good { flags: uapi::KFI_SHIM_WORK_PREPARE, op_type: uapi::KFI_OP_CNTR_ADD };
    // Operations on counters, which make cascades.
    QUEUE_WORK 8 kfi_shim_work {
        domain: handle(&[Class::Domain]), id: New(Class::Work), op_type: Pick(&[9, 10, 10]),
        triggering_cntr: handle(COUNTERS), cntr: handle(COUNTERS), value: Up(4),
        threshold: Up(12), result: Result,
    };
    // Once more.
    QUEUE_WORK 3 kfi_shim_work { id: handle(&[Class::Work]), result: Result };
    QUEUE_WORK_BATCH 2 kfi_shim_batch {
        array: Array(&WORK, at!(kfi_shim_batch.count)),
        size: Pick(&[size_of::<uapi::kfi_shim_work>() as u64]), flags: Flag(1),
    };
    CANCEL_WORK 2 kfi_shim_cancel_work {
        domain: handle(&[Class::Domain]), flags: Flags(CANCEL_FLAGS), id: handle(&[Class::Work]),
        result: Result,
    } is ANY_ANSWER;
    // The answer is that of the work.
    CANCEL_WORK 2 kfi_shim_cancel_work {
        flags: Flags(CANCEL_FLAGS), id: handle(&[Class::Work]), result: Result,
    };
    RELEASE_WORK 2 kfi_shim_cancel_work { id: handle(&[Class::Work]), result: Result };
    FLUSH_WORK 2 kfi_shim_flush_work {
        domain: handle(&[Class::Domain]), cntr: object(COUNTERS).rarely(), result: Result,
    } is ANY_ANSWER;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_of_the_header_is_there() {
        for declared in uapi::REQUESTS {
            let named = |request: &Request| request.name == declared.name;
            assert!(REQUESTS.iter().any(named), "{}", declared.name);
        }
    }

    #[test]
    fn what_is_written_is_known_to_the_library() {
        for request in each() {
            let written = request.written().next().is_some();
            let number = request.number;
            assert_eq!(uapi::writes_elsewhere(number), written, "{}", request.name);
        }
    }

    #[test]
    fn members_fit() {
        for request in REQUESTS {
            assert_eq!(
                request.argument.size as u32,
                request.number >> 16 & 0x3fff,
                "{}",
                request.name
            );
            for member in request.argument.members {
                assert!(
                    matches!(member.what, Name | NewName) || matches!(member.width, 4 | 8),
                    "{}",
                    request.name
                );
            }
        }
    }
}
