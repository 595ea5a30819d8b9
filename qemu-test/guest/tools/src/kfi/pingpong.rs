// SPDX-License-Identifier: GPL-2.0

//! `kfi pingpong`

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use kfi::{
    AddressVector, AvAttr, Buffer, BufferKind, Caps, CompletionQueue, CqAttr, Domain, Endpoint,
    EpInfo, EpType, Error, Fabric, Form, InfoList, KfiErrno, Kind, Operation, Query, Session,
};
use serde::Serialize;

use crate::output::{open, print_json, Problem};

/// Measure latency and bandwidth between two endpoints
///
/// Sends messages of several sizes to and fro between two endpoints of this
/// machine, on two NICs if there are, and prints what fi_pingpong prints: time
/// per message in one direction, and bytes and messages per second. Every
/// message goes through /dev/kfi: a program pays for system calls what a consumer
/// in the kernel does not.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Type of the endpoints
    #[arg(short, long, value_enum, default_value = "rdm")]
    endpoint: Type,

    /// Kind of messages
    #[arg(short, long, value_enum, default_value = "msg")]
    mode: Mode,

    /// Round trips for each size
    #[arg(short = 'I', long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,

    /// One size in bytes, or all; else 64, 256, 1 Ki, 4 Ki, 64 Ki and 1 Mi
    #[arg(short = 'S', long, value_name = "SIZE|all", value_parser = parse_sizes)]
    size: Option<Sizes>,

    /// Check what arrives
    #[arg(short, long)]
    check: bool,

    /// Take the provider of this name, not the first one
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,

    /// Open both endpoints in this domain
    #[arg(short, long, value_name = "NAME")]
    domain: Option<String>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Type {
    /// Reliable datagrams
    Rdm,
    /// Connections
    Msg,
    /// Datagrams
    Dgram,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Mode {
    /// Without tags
    Msg,
    /// With tags
    Tagged,
}

/// Which sizes are measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sizes {
    All,
    One(u64),
}

/// The largest message that is measured.
const LARGEST: u64 = 8 << 20;
/// The tag of tagged messages.
const TAG: u64 = 0x006b_6669_7069_6e67;

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if text == "all" {
        return Ok(Sizes::All);
    }
    match text.parse() {
        Ok(size) if size <= LARGEST => Ok(Sizes::One(size)),
        Ok(_) => Err(format!("at most {LARGEST}")),
        Err(_) => Err(format!("{text:?} is neither a number of bytes nor all")),
    }
}

/// The sizes, in order.
fn sizes(wanted: Option<Sizes>) -> Vec<u64> {
    match wanted {
        Some(Sizes::One(size)) => vec![size],
        None => vec![64, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20],
        Some(Sizes::All) => {
            let powers = (0..=LARGEST.ilog2()).map(|shift| 1 << shift);
            let between = (1..LARGEST.ilog2()).map(|shift| 3 << (shift - 1));
            let mut all: Vec<u64> = powers.chain(between).collect();
            all.sort_unstable();
            all.dedup();
            all
        }
    }
}

/// The result of one size. The numbers are those of fi_pingpong: messages in both
/// directions count.
#[derive(Debug, Serialize)]
struct Row {
    bytes: u64,
    sent: u64,
    acknowledged: u64,
    total_bytes: u64,
    seconds: f64,
    megabytes_per_second: f64,
    microseconds_per_transfer: f64,
    megatransfers_per_second: f64,
}

impl Row {
    // All are far from where a float would not do.
    #[allow(clippy::cast_precision_loss)]
    fn new(bytes: u64, iterations: u64, time: Duration) -> Self {
        let transfers = 2 * iterations;
        let total_bytes = bytes * transfers;
        let micros = time.as_secs_f64() * 1e6;
        Self {
            bytes,
            sent: iterations,
            acknowledged: iterations,
            total_bytes,
            seconds: time.as_secs_f64(),
            megabytes_per_second: total_bytes as f64 / micros,
            microseconds_per_transfer: micros / transfers as f64,
            megatransfers_per_second: transfers as f64 / micros,
        }
    }
}

/// A number as fi_pingpong shortens it.
struct Short(u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut unit = 1;
        let mut letter = "";
        for next in ["k", "m", "g"] {
            if self.0 < unit << 10 {
                break;
            }
            unit <<= 10;
            letter = next;
        }
        let tenths = u128::from(self.0) * 10 / u128::from(unit);
        let text = if tenths % 10 == 0 || tenths >= 1000 {
            format!("{}{letter}", tenths / 10)
        } else {
            format!("{}.{}{letter}", tenths / 10, tenths % 10)
        };
        f.pad(&text)
    }
}

/// The heading of the table.
const HEADING: &str =
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<7} {:<7} ={:<7} {:<10} {:>6.2}s {:>10.2} {:>10.2} {:>10.2}",
            Short(self.bytes),
            Short(self.sent),
            Short(self.acknowledged),
            Short(self.total_bytes),
            self.seconds,
            self.megabytes_per_second,
            self.microseconds_per_transfer,
            self.megatransfers_per_second,
        )
    }
}

/// An endpoint with all that it needs.
struct End {
    ep: Endpoint,
    tx: CompletionQueue,
    rx: CompletionQueue,
    av: AddressVector,
    peer: u64,
    outgoing: Buffer,
    incoming: Buffer,
}

/// Names the call that has failed.
fn call<T>(name: &'static str, result: kfi::Result<T>) -> Result<T, Problem> {
    result.map_err(|error| Problem::Call(name, error))
}

impl End {
    fn new(session: &Session, domain: &Domain, info: EpInfo<'_>) -> Result<Self, Problem> {
        let ep = call("kfi_endpoint", domain.endpoint(info, 0))?;
        let cq = || call("kfi_cq_open", domain.completion_queue(&CqAttr::new()));
        let buffer = || call("buffer", session.buffer(BufferKind::VMALLOC, LARGEST));
        let end = Self {
            ep,
            tx: cq()?,
            rx: cq()?,
            av: call("kfi_av_open", domain.address_vector(&AvAttr::default()))?,
            peer: 0,
            outgoing: buffer()?,
            incoming: buffer()?,
        };
        let bind = |handle, flags| call("kfi_ep_bind", end.ep.bind(handle, flags));
        bind(end.av.handle(), 0)?;
        bind(end.tx.handle(), Caps::SEND.bits())?;
        bind(end.rx.handle(), Caps::RECV.bits())?;
        call("kfi_enable", end.ep.enable())?;
        Ok(end)
    }

    /// Makes the other one its peer.
    fn connect(&mut self, other: &Self) -> Result<(), Problem> {
        let name = call("kfi_getname", other.ep.name())?;
        self.peer = call("kfi_av_insert", self.av.insert(&name))?;
        Ok(())
    }

    /// Posts an operation as soon as there is room.
    fn post(&self, name: &'static str, operation: &Operation) -> Result<(), Problem> {
        loop {
            match self.ep.post(operation) {
                Err(Error::Fabric(KfiErrno::EAGAIN)) => std::thread::yield_now(),
                result => return call(name, result),
            }
        }
    }

    fn receive(&self, mode: Mode, size: u64) -> Result<(), Problem> {
        let segment = self.incoming.segment(0..size);
        match mode {
            Mode::Msg => {
                let recv = Operation::new(Kind::RECV, Form::PLAIN);
                self.post("kfi_recv", &recv.segment(segment))
            }
            Mode::Tagged => {
                let recv = Operation::new(Kind::TRECV, Form::PLAIN).tag(TAG, 0);
                self.post("kfi_trecv", &recv.segment(segment))
            }
        }
    }

    fn send(&self, mode: Mode, size: u64) -> Result<(), Problem> {
        let segment = self.outgoing.segment(0..size);
        match mode {
            Mode::Msg => {
                let send = Operation::new(Kind::SEND, Form::PLAIN).to(self.peer);
                self.post("kfi_send", &send.segment(segment))
            }
            Mode::Tagged => {
                let send = Operation::new(Kind::TSEND, Form::PLAIN).to(self.peer);
                self.post("kfi_tsend", &send.tag(TAG, 0).segment(segment))
            }
        }
    }
}

/// Waits for a completion: asks a few times, then sleeps.
fn complete(cq: &CompletionQueue) -> Result<(), Problem> {
    for _ in 0..20 {
        match cq.read_without_source(1) {
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
            Ok(_) => return Ok(()),
            result => return failed(cq, result.map(drop)),
        }
    }
    let result = cq.sread_ms(1, 60_000).map(drop);
    failed(cq, result)
}

/// Tells what an error entry says.
fn failed(cq: &CompletionQueue, result: kfi::Result<()>) -> Result<(), Problem> {
    if let Err(Error::Fabric(KfiErrno::EAVAIL)) = result {
        let entry = call("kfi_cq_readerr", cq.read_err())?;
        let error = Error::Fabric(KfiErrno::new(entry.err));
        return Err(Problem::Call("completion", error));
    }
    call("kfi_cq_sread", result)
}

/// Bytes that differ from message to message.
fn pattern(seed: u64, size: u64) -> Vec<u8> {
    (0..size)
        .map(|i| (i.wrapping_mul(31) ^ i >> 8 ^ seed.wrapping_mul(17)) as u8)
        .collect()
}

/// One message, from one to the other.
fn one_way(
    from: &End,
    to: &End,
    arguments: &Arguments,
    size: u64,
    seed: u64,
) -> Result<(), Problem> {
    let check = arguments.check;
    if check {
        from.outgoing.write(0, &pattern(seed, size));
    }
    to.receive(arguments.mode, size)?;
    from.send(arguments.mode, size)?;
    complete(&to.rx)?;
    complete(&from.tx)?;
    if check && to.incoming.bytes(0..size as usize) != pattern(seed, size) {
        let text = format!("message {seed} of {size} bytes arrives changed");
        return Err(Problem::Nothing(text));
    }
    Ok(())
}

fn measure(ends: &[End; 2], arguments: &Arguments, size: u64) -> Result<Row, Problem> {
    let [a, b] = ends;
    let round_trip = |seed| {
        one_way(a, b, arguments, size, seed)?;
        one_way(b, a, arguments, size, seed + 1)
    };
    for seed in 0..(arguments.iterations / 10).min(10) {
        round_trip(seed)?;
    }
    let start = Instant::now();
    for i in 0..arguments.iterations {
        round_trip(2 * i)?;
    }
    Ok(Row::new(size, arguments.iterations, start.elapsed()))
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    provider: &'a str,
    domains: [&'a str; 2],
    mode: &'a str,
    checked: bool,
    sizes: Vec<Row>,
}

fn query(arguments: &Arguments) -> Query {
    let (ep_type, caps) = (
        match arguments.endpoint {
            Type::Rdm => EpType::RDM,
            Type::Msg => EpType::MSG,
            Type::Dgram => EpType::DGRAM,
        },
        match arguments.mode {
            Mode::Msg => Caps::MSG,
            Mode::Tagged => Caps::TAGGED,
        },
    );
    let mut query = Query::new().ep_type(ep_type).caps(caps);
    if let Some(name) = &arguments.provider {
        query = query.provider(name);
    }
    if let Some(name) = &arguments.domain {
        query = query.domain(name);
    }
    query
}

/// The first entry, and the last one of the same fabric.
fn pick(info: &InfoList) -> Result<[usize; 2], Problem> {
    let entries = info.entries();
    let Some(first) = entries.first() else {
        return Err(Problem::Nothing("there is no such endpoint".to_owned()));
    };
    let same = |entry: &kfi::InfoEntry| {
        let (is, should) = (&entry.fabric_attr, &first.fabric_attr);
        is.prov_name == should.prov_name && is.name == should.name
    };
    Ok([0, entries.iter().rposition(same).unwrap_or(0)])
}

fn open_ends(info: &InfoList, fabric: &Fabric, picked: [usize; 2]) -> Result<[End; 2], Problem> {
    let open = |index| {
        let domain = call("kfi_domain", fabric.domain(info, index))?;
        End::new(info.session(), &domain, EpInfo::Entry(info, index))
    };
    let mut ends = [open(picked[0])?, open(picked[1])?];
    let [a, b] = &mut ends;
    a.connect(b)?;
    b.connect(a)?;
    Ok(ends)
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let info = call("kfi_getinfo", open()?.getinfo(&query(arguments)))?;
    let picked = pick(&info)?;
    let fabric = call("kfi_fabric", info.fabric(0))?;
    let ends = open_ends(&info, &fabric, picked)?;
    let limit = info.entries()[0].ep_attr.max_msg_size;
    let mut rows = Vec::new();
    if !arguments.json {
        println!("{HEADING}");
    }
    for size in sizes(arguments.size) {
        if size > limit {
            continue;
        }
        let row = measure(&ends, arguments, size)?;
        if arguments.json {
            rows.push(row);
        } else {
            println!("{row}");
        }
    }
    if arguments.json {
        let name = |index: usize| info.entries()[index].domain_attr.name.as_str();
        print_json(&Report {
            provider: &info.entries()[0].fabric_attr.prov_name,
            domains: picked.map(name),
            mode: match arguments.mode {
                Mode::Msg => "msg",
                Mode::Tagged => "tagged",
            },
            checked: arguments.check,
            sizes: rows,
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_command_line() {
        assert_eq!(parse_sizes("all"), Ok(Sizes::All));
        assert_eq!(parse_sizes("0"), Ok(Sizes::One(0)));
        assert!(parse_sizes("8388609").is_err());
        assert!(parse_sizes("x").is_err());
        let all = sizes(Some(Sizes::All));
        assert_eq!(all[..6], [1, 2, 3, 4, 6, 8]);
        assert_eq!(all.last(), Some(&LARGEST));
    }

    #[test]
    fn numbers_are_short() {
        let short = |number| Short(number).to_string();
        assert_eq!(short(64), "64");
        assert_eq!(short(1024), "1k");
        assert_eq!(short(1280), "1.2k");
        assert_eq!(short(1 << 20), "1m");
        assert_eq!(short(3 << 30), "3g");
    }

    #[test]
    fn rows_line_up() {
        let row = Row::new(64, 1000, Duration::from_millis(4));
        assert!((row.microseconds_per_transfer - 2.0).abs() < 1e-9);
        assert!((row.megabytes_per_second - 32.0).abs() < 1e-9);
        assert!(row
            .to_string()
            .starts_with("64      1000    =1000    125k "));
    }
}
