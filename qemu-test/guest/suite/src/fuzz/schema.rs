// SPDX-License-Identifier: GPL-2.0

//! What is in each request, as far as a generator has to know.

use std::mem::offset_of;

use kfi::uapi::{self, request};

use What::{
    Address, Any, Array, Bits, Context, Flag, Handle, Name, New, NewName, Of, Optional, Out, Pick,
    Result, Room, Size, Text, Timeout, Up,
};

/// Kinds of objects that a slot can hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

/// What to put into a member of a structure.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// An open object of one of these classes.
    Handle(&'static [Class]),
    /// Likewise, or 0.
    Optional(&'static [Class]),
    /// An object of any class.
    Any,
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
    /// One of few numbers, so that something has it.
    Context,
    /// Milliseconds, few.
    Timeout,
    /// Bytes to allocate, not many.
    Size,
    /// Receives what kfabric says.
    Result,
    /// Address of an array; its length goes to this offset.
    Array(&'static Schema, usize),
    /// Address of a single structure; its size goes to this offset.
    Address(&'static Schema, usize),
    /// Address of a text, or 0.
    Text,
    /// Address of so many bytes that the kernel writes.
    Out(usize),
    /// Likewise; the number of bytes goes to this offset.
    Room(usize),
    /// The address of an endpoint, by value.
    Name,
    /// Receives the address of an endpoint.
    NewName,
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

/// A request.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Request {
    pub name: &'static str,
    pub number: u32,
    pub argument: Schema,
    /// How often it is made, compared to others.
    pub weight: u32,
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

/// The requests: name, weight, argument.
macro_rules! requests {
    ($($name:ident $weight:literal $structure:ident { $($body:tt)* })*) => {
        /// All requests of the interface.
        pub static REQUESTS: &[Request] = &[$(Request {
            name: stringify!($name),
            number: request::$name.number(),
            argument: schema!($structure { $($body)* }),
            weight: $weight,
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
const OPEN_FLAGS: u64 = uapi::KFI_SHIM_NO_ATTR as u64;
/// Rights of regions, and bindings of counters and queues.
const DIRECTIONS: &[u64] = &[
    uapi::KFI_SEND as u64,
    uapi::KFI_RECV as u64,
    uapi::KFI_READ as u64,
    uapi::KFI_WRITE as u64,
    uapi::KFI_REMOTE_READ as u64,
    uapi::KFI_REMOTE_WRITE as u64,
];
const OP_FLAGS: &[u64] = &[
    uapi::KFI_COMPLETION as u64,
    uapi::KFI_INJECT as u64,
    uapi::KFI_MORE as u64,
    uapi::KFI_TRIGGER as u64,
    uapi::KFI_FENCE as u64,
    uapi::KFI_TRANSMIT_COMPLETE as u64,
    uapi::KFI_DELIVERY_COMPLETE as u64,
    uapi::KFI_REMOTE_CQ_DATA as u64,
    uapi::KFI_MULTI_RECV as u64,
    uapi::KFI_PEEK as u64,
    uapi::KFI_CLAIM,
    uapi::KFI_DISCARD,
];
/// Peers: indices of an address vector, and `KFI_ADDR_UNSPEC`.
const PEERS: &[u64] = &[0, 0, 0, 1, 1, 2, u64::MAX];
const COMMANDS: &[u64] = &[
    uapi::KFI_GETOPSFLAG as u64,
    uapi::KFI_SETOPSFLAG as u64,
    uapi::KFI_GETWAITOBJ as u64,
];
/// So many entries of an array that the kernel writes.
const ENTRIES: usize = 64;

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
        what: Handle(WAITABLE),
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
    buffer: Handle(&[Class::Buffer]),
    mr: Optional(&[Class::Region]),
    offset: Pick(&[0, 0, 8, 64, 4096, 4095]),
    len: Pick(&[0, 1, 8, 8, 64, 64, 256, 4096, 20_000]),
});

static PIECE: Schema = schema!(kfi_shim_segment {
    buffer: Handle(&[Class::Buffer]),
    offset: Pick(&[0, 0, 8, 64, 4096, 4095]),
    len: Pick(&[0, 1, 8, 64, 256, 4096, 20_000]),
});

static REMOTE: Schema = schema!(kfi_shim_rma_segment {
    addr: Pick(&[0, 0, 0, 8, 4096]),
    len: Pick(&[0, 1, 8, 8, 64, 64, 4096]),
    key: Handle(&[Class::Key]),
});

static INFO: Schema = schema!(kfi_shim_info {
    caps: Bits(DIRECTIONS),
    mode: Flag(u64::MAX),
    addr_format: Up(20),
    src_addrlen: Flag(64),
    dest_addrlen: Flag(64),
});

static OPERATION: Schema = schema!(kfi_shim_op {
    ep: Handle(ENDPOINTS),
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
    trigger_cntr: Handle(COUNTERS),
    threshold: Up(8),
    result: Result,
});

static WORK: Schema = schema!(kfi_shim_work {
    domain: Handle(&[Class::Domain]),
    flags: Flag(7),
    op: Address(&OPERATION, at!(kfi_shim_work.op_size)),
    op_type: Pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10, 10, 10, 11]),
    triggering_cntr: Handle(COUNTERS),
    completion_cntr: Optional(COUNTERS),
    cntr: Handle(COUNTERS),
    value: Up(8),
    threshold: Up(12),
    result: Result,
});

requests! {
    VERSION 1 kfi_shim_version {}
    CLOSE 12 kfi_shim_close { handle: Any, result: Result }
    GETINFO 1 kfi_shim_getinfo {
        flags: Flag(u64::MAX),
        node: Text,
        service: Text,
        hints: Address(&INFO, at!(kfi_shim_getinfo.hints_size)),
        result: Result,
        info: New(Class::Info),
    }
    READ_INFO 1 kfi_shim_read_info {
        info: Handle(&[Class::Info]),
        index: Up(2),
        buffer: Room(at!(kfi_shim_read_info.buffer_size)),
    }
    CONTROL 2 kfi_shim_control { handle: Any, command: Pick(COMMANDS), value: Bits(OP_FLAGS), result: Result }
    WAIT_FD 3 kfi_shim_wait_fd {
        handle: Handle(WAITABLE),
        flags: Pick(&[uapi::KFI_SHIM_WAIT_NONBLOCK as u64]),
        result: Result,
        fd: New(Class::Descriptor),
    }
    FABRIC 1 kfi_shim_fabric {
        info: Handle(&[Class::Info]), index: Up(1), context: Context, result: Result,
        fabric: New(Class::Fabric),
    }
    DOMAIN 1 kfi_shim_domain {
        fabric: Handle(&[Class::Fabric]), info: Handle(&[Class::Info]), index: Up(1),
        context: Context, result: Result, domain: New(Class::Domain),
    }
    CNTR_OPEN 5 kfi_shim_cntr_open {
        domain: Handle(&[Class::Domain]), flags: Flag(OPEN_FLAGS), events: Flag(1),
        wait_obj: Pick(WAIT_OBJECTS), attr_flags: Flag(1), context: Context,
        wait_set: Optional(&[Class::WaitSet]), result: Result, cntr: New(Class::Counter),
    }
    CNTR_READ 3 kfi_shim_cntr { cntr: Handle(COUNTERS), result: Result }
    CNTR_READERR 2 kfi_shim_cntr { cntr: Handle(COUNTERS), result: Result }
    CNTR_ADD 8 kfi_shim_cntr { cntr: Handle(COUNTERS), value: Up(4), result: Result }
    CNTR_ADDERR 3 kfi_shim_cntr { cntr: Handle(COUNTERS), value: Up(2), result: Result }
    CNTR_SET 3 kfi_shim_cntr { cntr: Handle(COUNTERS), value: Up(10), result: Result }
    CNTR_SETERR 2 kfi_shim_cntr { cntr: Handle(COUNTERS), value: Up(3), result: Result }
    CNTR_WAIT 3 kfi_shim_cntr_wait {
        cntr: Handle(COUNTERS), timeout: Timeout, threshold: Up(10), result: Result,
    }
    WAIT_OPEN 2 kfi_shim_wait_open {
        fabric: Handle(&[Class::Fabric]), flags: Flag(OPEN_FLAGS), attr_flags: Flag(1),
        wait_obj: Pick(&[1, 3, 3, 3]), result: Result, wait_set: New(Class::WaitSet),
    }
    WAIT 2 kfi_shim_wait { wait_set: Handle(&[Class::WaitSet]), timeout: Timeout, result: Result }
    TRYWAIT 3 kfi_shim_trywait {
        fabric: Handle(&[Class::Fabric]),
        handles: Array(&HANDLE, at!(kfi_shim_trywait.count)), result: Result,
    }
    POLL_OPEN 2 kfi_shim_poll_open {
        domain: Handle(&[Class::Domain]), flags: Flag(OPEN_FLAGS), attr_flags: Flag(1),
        result: Result, poll_set: New(Class::PollSet),
    }
    POLL_ADD 4 kfi_shim_poll_member {
        poll_set: Handle(&[Class::PollSet]),
        member: Handle(&[Class::Counter, Class::CompletionQueue]), flags: Flag(1), result: Result,
    }
    POLL_DEL 3 kfi_shim_poll_member {
        poll_set: Handle(&[Class::PollSet]),
        member: Handle(&[Class::Counter, Class::CompletionQueue]), flags: Flag(1), result: Result,
    }
    POLL 3 kfi_shim_poll {
        poll_set: Handle(&[Class::PollSet]), count: Up(ENTRIES as u64),
        contexts: Out(8 * ENTRIES), result: Result,
    }
    CQ_OPEN 3 kfi_shim_cq_open {
        domain: Handle(&[Class::Domain]), flags: Flag(3), size: Pick(&[1, 2, 64, 8, 0]),
        attr_flags: Flag(1), context: Context, format: Up(5), wait_obj: Pick(WAIT_OBJECTS),
        wait_cond: Flag(1), wait_set: Optional(&[Class::WaitSet]), signaling_vector: Flag(1),
        result: Result, cq: New(Class::CompletionQueue),
    }
    CQ_READ 4 kfi_shim_cq_read {
        cq: Handle(&[Class::CompletionQueue]), count: Up(ENTRIES as u64),
        entries: Out(ENTRIES * size_of::<uapi::kfi_shim_cq_entry>()), flags: Flag(1), result: Result,
    }
    CQ_SREAD 2 kfi_shim_cq_read {
        cq: Handle(&[Class::CompletionQueue]), count: Up(ENTRIES as u64),
        entries: Out(ENTRIES * size_of::<uapi::kfi_shim_cq_entry>()), timeout: Timeout,
        cond: Up(4), flags: Flag(1), result: Result,
    }
    CQ_READERR 3 kfi_shim_cq_error { cq: Handle(&[Class::CompletionQueue]), result: Result }
    CQ_WRITE 3 kfi_shim_cq_error {
        cq: Handle(&[Class::CompletionQueue]), olen: Up(3), err: Up(20), prov_errno: Up(5),
        result: Result,
    }
    CQ_SIGNAL 1 kfi_shim_cq_signal { cq: Handle(&[Class::CompletionQueue]), result: Result }
    EQ_OPEN 2 kfi_shim_eq_open {
        fabric: Handle(&[Class::Fabric]), flags: Flag(3), size: Pick(&[1, 2, 64, 8, 0]),
        attr_flags: Flag(1), context: Context, wait_obj: Pick(WAIT_OBJECTS),
        wait_set: Optional(&[Class::WaitSet]), result: Result, eq: New(Class::EventQueue),
    }
    EQ_READ 2 kfi_shim_eq_event {
        eq: Handle(&[Class::EventQueue]), flags: Flag(1), len: Up(128), result: Result,
    }
    EQ_SREAD 1 kfi_shim_eq_event {
        eq: Handle(&[Class::EventQueue]), flags: Flag(1), len: Up(128), timeout: Timeout,
        result: Result,
    }
    EQ_WRITE 2 kfi_shim_eq_event {
        eq: Handle(&[Class::EventQueue]), event: Up(6), flags: Flag(1), len: Up(128),
        result: Result,
    }
    EQ_READERR 1 kfi_shim_eq_error { eq: Handle(&[Class::EventQueue]), result: Result }
    EQ_WRITE_ERROR 1 kfi_shim_eq_error {
        eq: Handle(&[Class::EventQueue]), context: Context, data: Up(3), err: Up(20),
        prov_errno: Up(5), result: Result,
    }
    STRERROR 1 kfi_shim_strerror {
        queue: Handle(&[Class::CompletionQueue, Class::EventQueue]), prov_errno: Up(300),
        len: Up(256), result: Result,
    }
    INFO_TEXT 1 kfi_shim_info_text {
        info: Handle(&[Class::Info]), index: Up(1), text: Room(at!(kfi_shim_info_text.size)),
    }
    TOSTR 1 kfi_shim_tostr {
        type_: Up(30), text: Room(at!(kfi_shim_tostr.size)), value: Up(u64::MAX), result: Result,
    }
    BIND 8 kfi_shim_bind {
        handle: Handle(&[
            Class::Endpoint, Class::Endpoint, Class::Transmit, Class::Receive, Class::Region,
            Class::AddressVector, Class::Scalable, Class::Domain,
        ]),
        other: Handle(&[
            Class::CompletionQueue, Class::CompletionQueue, Class::Counter, Class::Counter,
            Class::AddressVector, Class::EventQueue, Class::Receive, Class::Transmit,
        ]),
        flags: Of(DIRECTIONS),
        result: Result,
    }
    ENABLE 4 kfi_shim_enable {
        handle: Handle(&[
            Class::Endpoint, Class::Endpoint, Class::Region, Class::Scalable, Class::Transmit,
            Class::Receive,
        ]),
        result: Result,
    }
    HANDLED 1 kfi_shim_handled {
        queue: Handle(&[Class::CompletionQueue, Class::EventQueue]), timeout: Timeout,
        calls: Up(2), result: Result,
    }
    BUFFER 3 kfi_shim_buffer {
        kind: Pick(&[1, 2, 3]), size: Size, buffer: New(Class::Buffer), offset: New(Class::Offset),
    }
    AV_OPEN 2 kfi_shim_av_open {
        domain: Handle(&[Class::Domain]), flags: Flag(OPEN_FLAGS), type_: Pick(&[0, 1, 2, 2, 3]), rx_ctx_bits: Up(4),
        count: Up(100), attr_flags: Flag(uapi::KFI_EVENT as u64), context: Context, result: Result,
        av: New(Class::AddressVector),
    }
    AV_INSERT 3 kfi_shim_av_insert {
        av: Handle(&[Class::AddressVector]), addr_len: Pick(&[128, 192, 64, 256, 64]),
        flags: Flag(uapi::KFI_SYNC_ERR), context: Context,
        addr: Array(&NAME, at!(kfi_shim_av_insert.count)),
        kfi_addrs: Out(8 * ENTRIES), errors: Out(4 * ENTRIES), result: Result,
        insertion: New(Class::Insertion),
    }
    AV_INSERTSVC 1 kfi_shim_av_insert {
        av: Handle(&[Class::AddressVector]), flags: Flag(uapi::KFI_SYNC_ERR),
        context: Context, node: Text, service: Text, kfi_addrs: Out(8 * ENTRIES),
        errors: Out(4 * ENTRIES), result: Result, insertion: New(Class::Insertion),
    }
    AV_INSERTSYM 1 kfi_shim_av_insert {
        av: Handle(&[Class::AddressVector]), flags: Flag(uapi::KFI_SYNC_ERR),
        context: Context, node: Text, service: Text, count: Up(4), service_count: Up(8),
        kfi_addrs: Out(8 * ENTRIES), errors: Out(4 * ENTRIES), result: Result,
        insertion: New(Class::Insertion),
    }
    AV_INSERTED 1 kfi_shim_av_inserted {
        av: Handle(&[Class::AddressVector]), insertion: Handle(&[Class::Insertion]),
        kfi_addrs: Out(8 * ENTRIES), count: Up(ENTRIES as u64),
    }
    AV_REMOVE 1 kfi_shim_av_remove {
        av: Handle(&[Class::AddressVector]),
        kfi_addrs: Array(&NUMBER, at!(kfi_shim_av_remove.count)), flags: Flag(1), result: Result,
    }
    AV_LOOKUP 1 kfi_shim_av_lookup {
        av: Handle(&[Class::AddressVector]), addr_len: Up(64), kfi_addr: Up(4), result: Result,
    }
    AV_STRADDR 1 kfi_shim_av_straddr {
        av: Handle(&[Class::AddressVector]), len: Up(256), addr: Name, result: Result,
    }
    MR 3 kfi_shim_mr {
        domain: Handle(&[Class::Domain]), form: Pick(&[1, 2, 3, 4, 5, 6, 7]),
        segments: Array(&PIECE, at!(kfi_shim_mr.segment_count)), access: Of(DIRECTIONS),
        requested_key: Up(1000), flags: Flag(1), context: Context, result: Result,
        mr: New(Class::Region), key: New(Class::Key),
    }
    MR_KEY 1 kfi_shim_mr_key { mr: Handle(&[Class::Region]) }
    MR_REFRESH 1 kfi_shim_mr_refresh {
        mr: Handle(&[Class::Region]),
        segments: Array(&PIECE, at!(kfi_shim_mr_refresh.segment_count)), flags: Flag(1),
        result: Result,
    }
    MR_RAW_ATTR 1 kfi_shim_raw_key {
        handle: Handle(&[Class::Region]), key_size: Up(256), flags: Flag(1), result: Result,
    }
    MR_MAP_RAW 1 kfi_shim_raw_key {
        handle: Handle(&[Class::Domain]), key_size: Up(256), base_addr: Up(4096), flags: Flag(1),
        result: Result,
    }
    MR_UNMAP_KEY 1 kfi_shim_raw_key {
        handle: Handle(&[Class::Domain]), key: Up(1000), result: Result,
    }
    EP_OPEN 4 kfi_shim_ep_open {
        parent: Handle(&[Class::Domain]), kind: Pick(&[1]), info: Handle(&[Class::Info]),
        index: Up(1), context: Context, result: Result, ep: New(Class::Endpoint),
    }
    EP_OPEN 1 kfi_shim_ep_open {
        parent: Handle(&[Class::Domain]), kind: Pick(&[2]), info: Handle(&[Class::Info]),
        index: Up(1), context: Context, result: Result, ep: New(Class::Scalable),
    }
    EP_OPEN 1 kfi_shim_ep_open {
        parent: Handle(&[Class::Fabric, Class::Domain]), kind: Pick(&[3]),
        info: Handle(&[Class::Info]), index: Up(1), context: Context, result: Result,
        ep: New(Class::Passive),
    }
    EP_OPEN 1 kfi_shim_ep_open {
        parent: Handle(&[Class::Domain]), kind: Pick(&[1, 2]),
        attr: Address(&INFO, at!(kfi_shim_ep_open.attr_size)), context: Context, result: Result,
        ep: New(Class::Endpoint),
    }
    TX_CONTEXT 1 kfi_shim_tx_context {
        parent: Handle(&[Class::Scalable]), index: Up(4), flags: Pick(&[OPEN_FLAGS]),
        context: Context, result: Result, ep: New(Class::Transmit),
    }
    RX_CONTEXT 1 kfi_shim_rx_context {
        parent: Handle(&[Class::Scalable]), index: Up(4), flags: Pick(&[OPEN_FLAGS]),
        context: Context, result: Result, ep: New(Class::Receive),
    }
    STX_CONTEXT 1 kfi_shim_tx_context {
        parent: Handle(&[Class::Domain]), flags: Pick(&[OPEN_FLAGS]), context: Context,
        result: Result, ep: New(Class::Transmit),
    }
    SRX_CONTEXT 1 kfi_shim_rx_context {
        parent: Handle(&[Class::Domain]), flags: Pick(&[OPEN_FLAGS]), context: Context,
        result: Result, ep: New(Class::Receive),
    }
    EP_ALIAS 2 kfi_shim_ep_alias {
        ep: Handle(ENDPOINTS),
        flags: Pick(&[
            uapi::KFI_SEND as u64 | uapi::KFI_TRIGGER as u64,
            uapi::KFI_RECV as u64 | uapi::KFI_TRIGGER as u64,
            uapi::KFI_SEND as u64 | uapi::KFI_COMPLETION as u64,
            uapi::KFI_TRIGGER as u64,
            0,
        ]),
        result: Result, alias: New(Class::Endpoint),
    }
    CANCEL 3 kfi_shim_cancel { ep: Handle(ENDPOINTS), context: Context, result: Result }
    GETOPT 1 kfi_shim_opt {
        ep: Handle(ENDPOINTS), level: Up(1), optname: Up(3), optlen: Up(64), result: Result,
    }
    SETOPT 1 kfi_shim_opt {
        ep: Handle(ENDPOINTS), level: Up(1), optname: Up(3), optlen: Pick(&[0, 4, 8, 64]),
        result: Result,
    }
    GETNAME 2 kfi_shim_name {
        ep: Handle(NAMED), addr_len: Pick(&[64, 64, 64, 8, 0]), addr: NewName, result: Result,
    }
    SETNAME 1 kfi_shim_name { ep: Handle(NAMED), addr_len: Up(64), addr: Name, result: Result }
    GETPEER 1 kfi_shim_name { ep: Handle(NAMED), addr_len: Up(64), result: Result }
    LISTEN 1 kfi_shim_cm { ep: Handle(NAMED), param_len: Up(256), result: Result }
    CONNECT 1 kfi_shim_cm { ep: Handle(NAMED), param_len: Up(256), addr: Name, result: Result }
    ACCEPT 1 kfi_shim_cm { ep: Handle(NAMED), param_len: Up(256), result: Result }
    REJECT 1 kfi_shim_cm { ep: Handle(NAMED), param_len: Up(256), result: Result }
    SHUTDOWN 1 kfi_shim_cm { ep: Handle(NAMED), flags: Flag(1), result: Result }
    JOIN 1 kfi_shim_join {
        ep: Handle(ENDPOINTS), flags: Flag(1), context: Context, addr: Name, result: Result,
        mc: New(Class::Group),
    }
    POST 24 kfi_shim_op {
        ep: Handle(ENDPOINTS),
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
        trigger_cntr: Handle(COUNTERS),
        threshold: Up(8),
        result: Result,
    }
    // Messages that are likely to go through.
    POST 16 kfi_shim_op {
        ep: Handle(&[Class::Endpoint]), kind: Pick(&[1, 2]), form: Pick(&[1]), addr: Pick(&[0, 1]),
        context: Context, segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
        result: Result,
    }
    // Messages that wait for a counter.
    POST 8 kfi_shim_op {
        ep: Handle(&[Class::Endpoint]), kind: Pick(&[1, 2, 3, 4]), form: Pick(&[5]),
        shim_flags: Pick(&[uapi::KFI_SHIM_OP_TRIGGERED as u64]),
        flags: Pick(&[uapi::KFI_TRIGGER as u64]), addr: Pick(&[0, 1]), context: Context,
        segments: Array(&SEGMENT, at!(kfi_shim_op.segment_count)),
        trigger_cntr: Handle(COUNTERS), threshold: Up(12), result: Result,
    }
    POST_BATCH 2 kfi_shim_batch {
        array: Array(&OPERATION, at!(kfi_shim_batch.count)),
        size: Pick(&[size_of::<uapi::kfi_shim_op>() as u64]), flags: Flag(1),
    }
    QUERY_ATOMIC 1 kfi_shim_query_atomic {
        domain: Handle(&[Class::Domain]), datatype: Up(14), op: Up(19), flags: Flag(1),
        result: Result,
    }
    ATOMIC_VALID 1 kfi_shim_atomic_valid {
        ep: Handle(ENDPOINTS), kind: Pick(&[7, 8, 9]), datatype: Up(14), op: Up(19),
        result: Result,
    }
    QUEUE_WORK 8 kfi_shim_work {
        domain: Handle(&[Class::Domain]), flags: Flag(7), id: New(Class::Work),
        op: Address(&OPERATION, at!(kfi_shim_work.op_size)),
        op_type: Pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10, 10, 10, 11]),
        triggering_cntr: Handle(COUNTERS), completion_cntr: Optional(COUNTERS),
        cntr: Handle(COUNTERS), value: Up(8), threshold: Up(12), result: Result,
    }
    // Operations on counters, which make cascades.
    QUEUE_WORK 8 kfi_shim_work {
        domain: Handle(&[Class::Domain]), id: New(Class::Work), op_type: Pick(&[9, 10, 10]),
        triggering_cntr: Handle(COUNTERS), cntr: Handle(COUNTERS), value: Up(4),
        threshold: Up(12), result: Result,
    }
    // Once more.
    QUEUE_WORK 3 kfi_shim_work { id: Handle(&[Class::Work]), result: Result }
    QUEUE_WORK_BATCH 2 kfi_shim_batch {
        array: Array(&WORK, at!(kfi_shim_batch.count)),
        size: Pick(&[size_of::<uapi::kfi_shim_work>() as u64]), flags: Flag(1),
    }
    CANCEL_WORK 4 kfi_shim_cancel_work {
        domain: Optional(&[Class::Domain]), flags: Flag(3), id: Handle(&[Class::Work]),
        result: Result,
    }
    RELEASE_WORK 2 kfi_shim_cancel_work { id: Handle(&[Class::Work]), result: Result }
    FLUSH_WORK 2 kfi_shim_flush_work {
        domain: Handle(&[Class::Domain]), cntr: Optional(COUNTERS), result: Result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_of_the_header_is_there() {
        let header = include_str!("../../../../../include/uapi/kfi_shim.h");
        let names: Vec<&str> = header
            .lines()
            .filter(|line| line.contains("_IO") && line.contains("KFI_SHIM_IOC_MAGIC,"))
            .filter_map(|line| line.split_whitespace().nth(1)?.strip_prefix("KFI_SHIM_"))
            .collect();
        assert!(names.len() > 80, "{}", names.len());
        for name in names {
            assert!(
                REQUESTS.iter().any(|request| request.name == name),
                "{name}"
            );
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
