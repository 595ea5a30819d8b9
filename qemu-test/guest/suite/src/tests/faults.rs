// SPDX-License-Identifier: GPL-2.0

//! Faults on demand: each knob of debugfs has its effect, and nothing is lost by it.

#![allow(
    clippy::unused_self,
    clippy::used_underscore_binding,
    reason = "what a rig holds, it is asked for"
)]

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use kfi::{
    bits, uapi, AddressVector, AvAttr, Buffer, BufferKind, CompletionQueue, CqAttr, Endpoint,
    EpInfo, Error, Form, KfiErrno, Kind, MrAttr, OpType, Operation, Work,
};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::Rig;
use crate::{check, check_eq, tests};

tests! {
    "faults";
    "off" ["kfi_endpoint.h"] off;
    "nonsense-is-refused" ["kfi_endpoint.h"] nonsense;
    "read-back" ["kfi_endpoint.h"] read_back;
    "times" ["kfi_endpoint.h"] times;
    "drop" ["kfi_endpoint.h"] dropped;
    "delay" ["kfi_endpoint.h"] delayed;
    "reorder" ["kfi_endpoint.h"] reordered;
    "duplicate" ["kfi_endpoint.h"] duplicated;
    "again" ["kfi_endpoint.h"] again;
    "fail" ["kfi_endpoint.h"] failed;
    "not-ready" ["kfi_endpoint.h"] not_ready;
    "vanish" ["kfi_endpoint.h"] vanished;
    "chance-can-be-repeated" ["kfi_endpoint.h"] chance;
    "regions" ["kfi_endpoint.h"] regions;
    "deferred-work" ["R-TRIG-14"] deferred;
    "cancel-what-is-held" ["R-CLOSE-8"] cancelled;
    "close-with-what-is-held" ["R-CLOSE-8"] closed;
    "given-up-in-the-middle" ["R-CLOSE-8"] given_up;
    "all-at-once" ["kfi_endpoint.h"] all_at_once;
}

const NIC: &str = "/sys/kernel/debug/kfi_soft/nic0";

const NAMES: [&str; 8] = [
    "drop",
    "delay",
    "reorder",
    "duplicate",
    "again",
    "fail",
    "not_ready",
    "vanish",
];

/// Bytes of a message: its number, again and again.
const LEN: u64 = 64;

const CANCELED: i32 = Errno::CANCELED.raw_os_error();
const TIMEDOUT: i32 = Errno::TIMEDOUT.raw_os_error();
const IO: i32 = Errno::IO.raw_os_error();
const REMOTEIO: i32 = Errno::REMOTEIO.raw_os_error();
const HOSTUNREACH: i32 = Errno::HOSTUNREACH.raw_os_error();

/// Longer than anything here may take.
const BOUND: Duration = Duration::from_secs(20);

/// The knobs of a NIC; off when it ends.
struct Knobs;

impl Knobs {
    fn new() -> Result<Self, Stop> {
        if !std::path::Path::new(NIC).exists() {
            return Err(Stop::Skip(format!("no {NIC}")));
        }
        let knobs = Self;
        knobs.all_off()?;
        Ok(knobs)
    }

    fn set(&self, name: &str, text: &str) -> Outcome {
        fs::write(format!("{NIC}/{name}"), text)?;
        Ok(())
    }

    fn all_off(&self) -> Outcome {
        NAMES.iter().try_for_each(|name| self.set(name, "off"))
    }

    /// A number that a knob shows.
    fn number(&self, name: &str, key: &str) -> Result<u64, Stop> {
        let text = fs::read_to_string(format!("{NIC}/{name}"))?;
        text.split_whitespace()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
            .ok_or_else(|| Stop::Fail(format!("no {key} in {text:?}")))
    }

    fn injected(&self, name: &str) -> Result<u64, Stop> {
        self.number(name, "injected")
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        let _ = self.all_off();
    }
}

/// Endpoints, the last of which is sent to by the others.
struct Net {
    endpoints: Vec<Endpoint>,
    target: u64,
    sent: CompletionQueue,
    received: CompletionQueue,
    from: Buffer,
    to: Buffer,
    _av: AddressVector,
    rig: Rig,
}

/// How a number of sends has ended.
#[derive(Default, Debug)]
struct Ended {
    /// By context, 0 or the errno.
    sends: BTreeMap<u64, i32>,
    /// The numbers of the messages, in the order of the receives.
    messages: Vec<u64>,
    /// Posts that were refused.
    refused: u64,
    /// From the first post to the last completion.
    took: Duration,
}

impl Ended {
    fn good(&self) -> usize {
        self.sends.values().filter(|err| **err == 0).count()
    }

    /// So many ended with this errno.
    fn with(&self, errno: i32) -> usize {
        self.sends.values().filter(|err| **err == errno).count()
    }
}

impl Net {
    fn new(env: &Env, count: usize) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        let av = rig.domain.address_vector(&AvAttr::default())?;
        let attr = CqAttr::new().size(4096);
        let sent = rig.domain.completion_queue(&attr)?;
        let received = rig.domain.completion_queue(&attr)?;
        let mut endpoints = Vec::new();
        for _ in 0..count {
            let ep = rig.domain.endpoint(EpInfo::Entry(&rig.info, 0), 0)?;
            ep.bind(av.handle(), 0)?;
            ep.bind(sent.handle(), bits::TRANSMIT)?;
            ep.bind(received.handle(), bits::RECV)?;
            ep.enable()?;
            endpoints.push(ep);
        }
        let last = endpoints.last().ok_or_else(|| Stop::fail("none"))?;
        let target = av.insert(&last.name()?)?;
        Ok(Self {
            target,
            sent,
            received,
            from: rig.session.buffer(BufferKind::VMALLOC, LEN * 1024)?,
            to: rig.session.buffer(BufferKind::VMALLOC, LEN * 1024)?,
            endpoints,
            _av: av,
            rig,
        })
    }

    fn place(number: u64) -> std::ops::Range<u64> {
        number * LEN..(number + 1) * LEN
    }

    fn write(&self, number: u64) {
        let bytes: Vec<u8> = (0..LEN / 8).flat_map(|_| number.to_le_bytes()).collect();
        self.from.write((number * LEN) as usize, &bytes);
    }

    /// The number of the message in a place, which must be whole.
    fn read(&self, place: u64) -> Result<u64, Stop> {
        let bytes = self
            .to
            .bytes((place * LEN) as usize..((place + 1) * LEN) as usize);
        let number = u64::from_le_bytes(bytes[..8].try_into().map_err(|_| Stop::fail("8"))?);
        let whole = bytes.chunks(8).all(|chunk| chunk == number.to_le_bytes());
        check!(whole, "message {number} at {place} is torn: {bytes:?}");
        Ok(number)
    }

    /// Posts, again and again while the answer is "again".
    fn post(&self, ep: usize, operation: &Operation, refused: &mut u64) -> Outcome {
        let end = Instant::now() + BOUND;
        loop {
            match self.endpoints[ep].post(operation) {
                Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                    *refused += 1;
                    check!(Instant::now() < end, "no post is accepted");
                }
                result => return Ok(result?),
            }
        }
    }

    /// All that there is in a queue: contexts and errnos.
    fn drain(&self, cq: &CompletionQueue, wait: i32) -> Result<Vec<(u64, i32)>, Stop> {
        match cq.sread_ms(64, wait) {
            Ok(entries) => Ok(entries.iter().map(|entry| (entry.op_context, 0)).collect()),
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = cq.read_err()?;
                Ok(vec![(error.entry.op_context, error.err)])
            }
            Err(Error::Fabric(KfiErrno::EAGAIN | KfiErrno::ETIMEDOUT)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends `count` messages, each sender in turn, and checks that each post completes once,
    /// that what was sent well is received once, whole and in order, and nothing else is.
    fn exchange(&self, count: u64) -> Result<Ended, Stop> {
        let mut ended = Ended::default();
        let (target, senders) = (self.endpoints.len() - 1, self.endpoints.len() as u64 - 1);
        let senders = senders.max(1);
        for place in 0..count {
            let receive = Operation::new(Kind::RECV, Form::PLAIN)
                .segment(self.to.segment(Self::place(place)))
                .context(place);
            self.post(target, &receive, &mut ended.refused)?;
        }
        let start = Instant::now();
        for number in 0..count {
            self.write(number);
            let send = Operation::new(Kind::SEND, Form::PLAIN)
                .segment(self.from.segment(Self::place(number)))
                .to(self.target)
                .context(number);
            self.post((number % senders) as usize, &send, &mut ended.refused)?;
        }
        let mut receives = Vec::new();
        loop {
            let good = ended.good();
            if ended.sends.len() as u64 == count && receives.len() == good {
                break;
            }
            check!(start.elapsed() < BOUND, "after {BOUND:?}: {ended:?}");
            for (context, err) in self.drain(&self.sent, 10)? {
                check!(context < count, "completion of {context}");
                let before = ended.sends.insert(context, err);
                check_eq!(before, None, "completion of send {context} before");
            }
            for (context, err) in self.drain(&self.received, 0)? {
                check_eq!(err, 0, "receive {context}");
                receives.push(context);
            }
            ended.took = start.elapsed();
        }
        // Anything that comes too often comes now.
        check_eq!(self.drain(&self.sent, 20)?, []);
        check_eq!(self.drain(&self.received, 20)?, []);

        // The other receives are still there.
        for context in receives.len() as u64..count {
            self.endpoints[target].cancel(context)?;
            let cancelled = self.drain(&self.received, 5_000)?;
            check_eq!(cancelled, [(context, CANCELED)]);
        }
        receives.sort_unstable();
        let wanted: Vec<_> = (0..receives.len() as u64).collect();
        check_eq!(receives, wanted, "receives are used in order, once");
        for place in wanted {
            ended.messages.push(self.read(place)?);
        }
        // Each once, and those of one sender in order.
        let mut sorted = ended.messages.clone();
        sorted.sort_unstable();
        let good = ended.sends.iter().filter(|(_, err)| **err == 0);
        check_eq!(sorted, good.map(|(number, _)| *number).collect::<Vec<_>>());
        for sender in 0..senders {
            let its = ended
                .messages
                .iter()
                .filter(|number| **number % senders == sender);
            check!(its.is_sorted(), "sender {sender}: {:?}", ended.messages);
        }
        Ok(ended)
    }

    fn close(self) -> Outcome {
        for ep in self.endpoints {
            ep.close().map_err(|(_, error)| error)?;
        }
        drop((self._av, self.sent, self.received, self.from, self.to));
        self.rig.close()
    }
}

fn off(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let ended = net.exchange(100)?;
    check_eq!((ended.good(), ended.refused), (100, 0));
    for name in NAMES {
        check_eq!(knobs.number(name, "seen")?, 0, "{name}");
    }
    let all = fs::read_to_string(format!("{NIC}/faults"))?;
    check_eq!(all.lines().count(), NAMES.len(), "{all}");
    for (line, name) in all.lines().zip(NAMES) {
        check!(line.starts_with(&format!("{name} off ")), "{line}");
    }
    net.close()
}

fn nonsense(_: &Env) -> Outcome {
    let _knobs = Knobs::new()?;
    for (name, text) in [
        ("drop", ""),
        ("drop", "some"),
        ("drop", "every=-1"),
        ("drop", "every=4294967296"),
        ("drop", "every=1 ms=60001"),
        ("drop", "every=1 permille=1"),
        ("drop", "every=1 errno=5"),
        ("fail", "every=1 errno=0"),
        ("fail", "every=1 errno=4096"),
        ("vanish", "every=1 port=4097"),
    ] {
        let result = fs::write(format!("{NIC}/{name}"), text);
        // An empty write is none.
        if !text.is_empty() {
            let errno = result.map_err(|error| error.raw_os_error());
            check_eq!(
                errno,
                Err(Some(Errno::INVAL.raw_os_error())),
                "{name} {text}"
            );
        }
    }
    let long = "every=1 ".repeat(1000);
    check!(
        fs::write(format!("{NIC}/drop"), long).is_err(),
        "8000 bytes"
    );
    let text = fs::read_to_string(format!("{NIC}/drop"))?;
    check!(text.starts_with("off "), "{text}");
    Ok(())
}

/// A knob shows what it was turned to; what was refused has not turned it.
fn read_back(_: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let shows = |name: &str, shown: &str| {
        let text = fs::read_to_string(format!("{NIC}/{name}"))?;
        let all = fs::read_to_string(format!("{NIC}/faults"))?;
        check!(
            text.starts_with(&format!("{shown} seen=0 injected=0")),
            "{name}: {text}"
        );
        let line = format!("{name} {text}");
        check!(all.contains(&line), "{line} is not in {all}");
        Ok(())
    };
    for (name, written, shown) in [
        ("drop", "7", "every=7 ms=500"),
        ("drop", "every=7 ms=9", "every=7 ms=9"),
        ("drop", "times=2 every=7", "every=7 times=2 ms=500"),
        ("drop", "permille=1000", "permille=1000 seed=1 ms=500"),
        (
            "delay",
            "permille=20 seed=5 times=3 ms=0",
            "permille=20 seed=5 times=3 ms=0",
        ),
        ("reorder", "every=1\n", "every=1 ms=20"),
        ("duplicate", " every=2 value=0 ", "every=2 value=0"),
        (
            "again",
            "every=4294967295 burst=3",
            "every=4294967295 burst=3",
        ),
        ("fail", "every=1 errno=4095", "every=1 errno=4095"),
        ("not_ready", "every=3", "every=3 ms=60000"),
        ("vanish", "every=1 port=7", "every=1 port=7"),
        ("vanish", "every=1", "every=1 port=4096"),
        ("vanish", "every=5 off", "off port=4096"),
        ("vanish", "times=4", "off times=4 port=4096"),
    ] {
        knobs.set(name, written)?;
        shows(name, shown)?;
        let refused = fs::write(format!("{NIC}/{name}"), "every=9 what=1");
        let errno = refused.map_err(|error| error.raw_os_error());
        check_eq!(errno, Err(Some(Errno::INVAL.raw_os_error())), "{name}");
        shows(name, shown)?;
    }
    Ok(())
}

/// So many are hit and no more, by count or by chance; of bursts so many begin. Turned again, it begins anew.
fn times(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    for text in ["every=2 times=3", "permille=900 seed=3 times=3"] {
        for _ in 0..2 {
            knobs.set("fail", text)?;
            let ended = net.exchange(50)?;
            check_eq!((ended.good(), ended.with(IO)), (47, 3), "{text}");
            let (seen, injected) = (knobs.number("fail", "seen")?, knobs.injected("fail")?);
            check_eq!(injected, 3, "{text}");
            // When it has hit the last one it is off.
            check!((3..10).contains(&seen), "{text}: {seen} were seen");
            check_eq!(knobs.number("fail", "times")?, 0, "{text}");
        }
    }
    knobs.set("fail", "every=1 times=0")?;
    check_eq!(net.exchange(20)?.good(), 20);
    knobs.set("fail", "off")?;
    knobs.set("again", "every=3 burst=4 times=2")?;
    let ended = net.exchange(50)?;
    check_eq!((ended.good(), ended.refused), (50, 8));
    check_eq!(knobs.injected("again")?, 8);
    net.close()
}

fn dropped(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    knobs.set("drop", "every=5 ms=200")?;
    let ended = net.exchange(100)?;
    check_eq!(ended.with(TIMEDOUT), 20);
    check_eq!(ended.good(), 80);
    check_eq!(knobs.injected("drop")?, 20);
    env.note(format!("20 of 100 lost, told within {:?}", ended.took));
    knobs.all_off()?;
    check_eq!(net.exchange(100)?.good(), 100, "afterwards");
    net.close()
}

fn delayed(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 3)?;
    knobs.set("delay", "every=10 ms=100")?;
    let ended = net.exchange(100)?;
    check_eq!(ended.good(), 100);
    check_eq!(knobs.injected("delay")?, 10);
    env.note(format!("10 of 100 late, all told within {:?}", ended.took));
    // Turned off while something is held, nothing overtakes it.
    knobs.set("delay", "every=1 times=1 ms=100")?;
    let hold = Operation::new(Kind::SEND, Form::PLAIN)
        .segment(net.from.segment(0..LEN))
        .to(net.target)
        .context(0);
    for place in 0..2 {
        let receive =
            Operation::new(Kind::RECV, Form::PLAIN).segment(net.to.segment(Net::place(place)));
        net.endpoints[2].post(&receive.context(place))?;
    }
    net.write(1);
    net.endpoints[0].post(&hold)?;
    knobs.all_off()?;
    let second = Operation::new(Kind::SEND, Form::PLAIN)
        .segment(net.from.segment(Net::place(1)))
        .to(net.target)
        .context(1);
    net.endpoints[0].post(&second)?;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let some = net.drain(&net.received, 5_000)?;
        check!(!some.is_empty(), "no completion");
        seen.extend(some);
    }
    check_eq!((net.read(0)?, net.read(1)?), (0, 1));
    net.close()
}

fn reordered(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 4)?;
    knobs.set("reorder", "every=4 ms=50")?;
    let ended = net.exchange(99)?;
    check_eq!(ended.good(), 99);
    check!(knobs.injected("reorder")? > 0, "nothing was reordered");
    check!(!ended.messages.is_sorted(), "{:?}", ended.messages);
    let backwards = ended.messages.windows(2).filter(|pair| pair[0] > pair[1]);
    env.note(format!("{} were overtaken", backwards.count()));
    knobs.all_off()?;
    // With one pair only nobody overtakes: they wait for their time.
    let alone = Net::new(env, 2)?;
    knobs.set("reorder", "every=10 ms=30")?;
    let ended = alone.exchange(50)?;
    check!(ended.messages.is_sorted(), "{:?}", ended.messages);
    check_eq!(ended.good(), 50);
    alone.close()?;
    net.close()
}

fn duplicated(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let before = knobs.number("duplicate", "suppressed")?;
    knobs.set("duplicate", "every=2")?;
    let ended = net.exchange(100)?;
    check_eq!(ended.good(), 100);
    check_eq!(knobs.injected("duplicate")?, 50);
    check_eq!(knobs.number("duplicate", "suppressed")? - before, 50);
    net.close()
}

fn again(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    knobs.set("again", "every=10 burst=7")?;
    let ended = net.exchange(100)?;
    check_eq!(ended.good(), 100);
    check!(ended.refused > 100, "refused {}", ended.refused);
    check_eq!(knobs.injected("again")?, ended.refused);
    net.close()
}

fn failed(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    for errno in [IO, 11, 110, 4095] {
        knobs.set("fail", &format!("every=4 errno={errno}"))?;
        let ended = net.exchange(100)?;
        check_eq!((ended.good(), ended.with(errno)), (75, 25), "{errno}");
        check_eq!(knobs.injected("fail")?, 25);
    }
    net.close()
}

fn not_ready(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    // Ready in time.
    knobs.set("not_ready", "every=10 ms=50")?;
    let ended = net.exchange(100)?;
    check_eq!(ended.good(), 100);
    check_eq!(knobs.injected("not_ready")?, 10);
    env.note(format!("10 of 100 wait, all told within {:?}", ended.took));
    // Never ready.
    knobs.set("not_ready", "every=10")?;
    let ended = net.exchange(100)?;
    check_eq!((ended.good(), ended.with(REMOTEIO)), (90, 10));
    net.close()
}

fn vanished(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let unreachable = HOSTUNREACH;
    knobs.set("vanish", "every=1")?;
    let ended = net.exchange(50)?;
    check_eq!((ended.good(), ended.with(unreachable)), (0, 50));
    // One port only, and it comes back.
    let name = net.endpoints[1].name()?;
    let address = u64::from_le_bytes(name[..].try_into().map_err(|_| Stop::fail("8 bytes"))?);
    let port = address & 0xfff;
    knobs.set("vanish", &format!("every=1 times=20 port={port}"))?;
    let ended = net.exchange(50)?;
    check_eq!((ended.good(), ended.with(unreachable)), (30, 20));
    knobs.set("vanish", &format!("every=1 port={}", (port + 1000) & 0xfff))?;
    check_eq!(net.exchange(50)?.good(), 50, "another port");
    net.close()
}

fn chance(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let mut bad = Vec::new();
    for seed in [5, 5, 6] {
        knobs.set("fail", &format!("permille=300 seed={seed}"))?;
        let ended = net.exchange(200)?;
        check_eq!(ended.good() as u64 + knobs.injected("fail")?, 200);
        bad.push(ended.sends);
    }
    check!(bad[0] == bad[1], "the same seed");
    check!(bad[0] != bad[2], "another seed");
    net.close()
}

fn regions(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let access = bits::REMOTE_WRITE | bits::REMOTE_READ;
    let region = net
        .rig
        .domain
        .register(&[net.to.all()], &MrAttr::new(access, 7))?;
    let key = region.key()?;
    knobs.set("drop", "every=7 ms=100")?;
    knobs.set("duplicate", "every=3")?;
    knobs.set("delay", "every=5 ms=20")?;
    let count = 200;
    let mut refused = 0;
    for number in 0..count {
        net.write(number);
        let write = Operation::new(Kind::WRITE, Form::PLAIN)
            .segment(net.from.segment(Net::place(number)))
            .rma(number * LEN, LEN, key)
            .to(net.target)
            .context(number);
        net.post(0, &write, &mut refused)?;
    }
    let mut ended = BTreeMap::new();
    while ended.len() < count as usize {
        let some = net.drain(&net.sent, 5_000)?;
        check!(
            !some.is_empty(),
            "{} of {count} have completed",
            ended.len()
        );
        for (context, err) in some {
            check_eq!(ended.insert(context, err), None, "{context} before");
        }
    }
    check_eq!(net.drain(&net.sent, 20)?, []);
    for (number, err) in ended {
        // A write that was lost has not arrived.
        let is = net.read(number)?;
        check_eq!(is, if err == 0 { number } else { 0 }, "{number}: {err}");
        check!(err == 0 || err == TIMEDOUT, "{number}: {err}");
    }
    knobs.all_off()?;
    // An atomic that arrives twice counts once.
    net.to.write(0, &[0; 8]);
    net.from.write(0, &1_u64.to_le_bytes());
    knobs.set("duplicate", "every=1")?;
    for context in 0..100 {
        let add = Operation::new(Kind::ATOMIC, Form::PLAIN)
            .segment(net.from.elements(0, 1))
            .rma(0, 1, key)
            .atomic(uapi::KFI_UINT64, uapi::KFI_SUM)
            .to(net.target)
            .context(context);
        net.post(0, &add, &mut refused)?;
        check_eq!(net.drain(&net.sent, 5_000)?, [(context, 0)]);
    }
    check_eq!(net.to.bytes(0..8), 100_u64.to_le_bytes());
    region.close().map_err(|(_, error)| error)?;
    net.close()
}

fn deferred(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    let (trigger, done) = (net.rig.counter()?, net.rig.counter()?);
    knobs.set("fail", "every=4")?;
    knobs.set("again", "every=1")?;
    knobs.set("delay", "every=3 ms=20")?;
    let count = 40;
    for number in 0..count {
        knobs.set("again", "off")?;
        let receive = Operation::new(Kind::RECV, Form::MSG)
            .segment(net.to.segment(Net::place(number)))
            .context(number);
        net.endpoints[1].post(&receive)?;
        knobs.set("again", "every=1")?;
        net.write(number);
        let send = Operation::new(Kind::SEND, Form::MSG)
            .segment(net.from.segment(Net::place(number)))
            .to(net.target)
            .context(number);
        let ep = net.endpoints[0].handle();
        let work = Work::transfer(OpType::SEND, ep, &send, &trigger, 1);
        net.rig.domain.queue_work(&work.completion(done.handle()))?;
    }
    trigger.add(1)?;
    // Works that fire are not refused, and failures are counted, too.
    let end = Instant::now() + BOUND;
    while done.read()? + done.read_err()? < count {
        check!(
            Instant::now() < end,
            "{} and {}",
            done.read()?,
            done.read_err()?
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    check_eq!((done.read()?, done.read_err()?), (30, 10));
    drop((trigger, done));
    net.close()
}

fn cancelled(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 2)?;
    for (name, text) in [
        ("drop", "every=1 ms=60000"),
        ("delay", "every=1 ms=60000"),
        ("reorder", "every=1 ms=60000"),
    ] {
        knobs.set(name, text)?;
        for context in 0..50 {
            let send = Operation::new(Kind::SEND, Form::PLAIN)
                .segment(net.from.segment(0..LEN))
                .to(net.target)
                .context(context);
            net.endpoints[0].post(&send)?;
        }
        check_eq!(net.drain(&net.sent, 20)?, [], "{name}");
        for context in (0..50).rev() {
            net.endpoints[0].cancel(context)?;
            let cancelled = net.drain(&net.sent, 5_000)?;
            check_eq!(cancelled, [(context, CANCELED)], "{name}");
        }
        knobs.all_off()?;
    }
    check_eq!(net.exchange(100)?.good(), 100, "afterwards");
    net.close()
}

fn closed(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    for (name, text) in [
        ("drop", "every=2 ms=60000"),
        ("delay", "every=2 ms=60000"),
        ("reorder", "every=2 ms=60000"),
    ] {
        let net = Net::new(env, 3)?;
        knobs.set(name, text)?;
        for context in 0..100 {
            let send = Operation::new(Kind::SEND, Form::PLAIN)
                .segment(net.from.segment(0..LEN))
                .to(net.target)
                .context(context);
            net.endpoints[0].post(&send)?;
        }
        let start = Instant::now();
        net.close()?;
        let took = start.elapsed();
        check!(took < BOUND, "{name}: closed after {took:?}");
        knobs.all_off()?;
    }
    Ok(())
}

/// Of much that is held, for different times and in several pairs, some is cancelled wherever it is. The rest
/// arrives, once and in order, as if that had never been.
fn given_up(env: &Env) -> Outcome {
    // As many receives as are posted.
    const COUNT: u64 = 240;
    const SENDERS: u64 = 3;
    let knobs = Knobs::new()?;
    let net = Net::new(env, SENDERS as usize + 1)?;
    let mut refused = 0;
    for place in 0..COUNT {
        let receive = Operation::new(Kind::RECV, Form::PLAIN)
            .segment(net.to.segment(Net::place(place)))
            .context(place);
        net.post(SENDERS as usize, &receive, &mut refused)?;
    }
    // The first ones are held until all the others are, which wait behind them.
    knobs.set("delay", "every=1 ms=2000")?;
    for number in 0..COUNT {
        if number == COUNT / 2 {
            knobs.set("delay", "every=2 ms=2500")?;
        }
        net.write(number);
        let send = Operation::new(Kind::SEND, Form::PLAIN)
            .segment(net.from.segment(Net::place(number)))
            .to(net.target)
            .context(number);
        net.post((number % SENDERS) as usize, &send, &mut refused)?;
    }
    // The first one of the first sender, the last one of the last, and many between.
    let is_cancelled = |number: u64| number % 4 == 0 || number == COUNT - 1;
    for number in (0..COUNT).filter(|number| is_cancelled(*number)) {
        match net.endpoints[(number % SENDERS) as usize].cancel(number) {
            // It has come to its end before.
            Ok(()) | Err(Error::Fabric(KfiErrno::ENOENT)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    knobs.all_off()?;
    let start = Instant::now();
    let (mut ended, mut receives) = (BTreeMap::new(), Vec::new());
    let wanted = |ended: &BTreeMap<u64, i32>| ended.values().filter(|err| **err == 0).count();
    while ended.len() < COUNT as usize || receives.len() < wanted(&ended) {
        check!(start.elapsed() < BOUND, "{} have completed", ended.len());
        for (context, err) in net.drain(&net.sent, 10)? {
            check_eq!(ended.insert(context, err), None, "{context} before");
        }
        for (context, err) in net.drain(&net.received, 0)? {
            check_eq!(err, 0, "receive {context}");
            receives.push(context);
        }
    }
    let mut cancelled = 0;
    for (number, err) in &ended {
        // One that was carried before its cancel came has arrived.
        check!([0, CANCELED].contains(err), "{number}: {err}");
        check!(*err == 0 || is_cancelled(*number), "{number} was cancelled");
        cancelled += usize::from(*err != 0);
    }
    check!(cancelled > 0, "all have come to their end");
    env.note(format!("{cancelled} of {COUNT} were given up"));
    receives.sort_unstable();
    check_eq!(receives, (0..receives.len() as u64).collect::<Vec<_>>());
    let mut messages = Vec::new();
    for place in receives {
        messages.push(net.read(place)?);
    }
    for sender in 0..SENDERS {
        let its = messages
            .iter()
            .filter(|number| **number % SENDERS == sender);
        check!(its.is_sorted(), "sender {sender}: {messages:?}");
    }
    messages.sort_unstable();
    let good = ended.iter().filter(|(_, err)| **err == 0);
    check_eq!(
        messages,
        good.map(|(number, _)| *number).collect::<Vec<_>>()
    );
    net.close()
}

fn all_at_once(env: &Env) -> Outcome {
    let knobs = Knobs::new()?;
    let net = Net::new(env, 5)?;
    let (mut operations, mut good) = (0, 0);
    let rounds = env.scaled(20, 2);
    for seed in 1..=rounds {
        let seed = seed + env.settings.seed * 1000;
        knobs.set("drop", &format!("permille=50 ms=50 seed={seed}"))?;
        knobs.set("delay", &format!("permille=100 ms=10 seed={}", seed + 1))?;
        knobs.set("reorder", &format!("permille=200 ms=10 seed={}", seed + 2))?;
        knobs.set("duplicate", &format!("permille=300 seed={}", seed + 3))?;
        knobs.set("again", &format!("permille=50 burst=5 seed={}", seed + 4))?;
        knobs.set("fail", &format!("permille=50 seed={}", seed + 5))?;
        knobs.set("not_ready", &format!("permille=50 ms=20 seed={}", seed + 6))?;
        knobs.set("vanish", &format!("permille=20 seed={}", seed + 7))?;
        let ended = net.exchange(200)?;
        operations += 200;
        good += ended.good();
    }
    env.note(format!("{operations} operations, {good} of them well"));
    net.close()
}
