// SPDX-License-Identifier: GPL-2.0

//! Two machines, for somebody who watches: a message, a chain that crosses by itself, and what is told
//! of operations when the other machine is reset.
//!
//! The second machine knows by what it receives what to do. Every statement that is printed has been
//! checked before.

use std::ffi::CString;
use std::fs;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use kfi::{
    bits, AddressVector, AvAttr, Buffer, BufferKind, CntrAttr, CompletionQueue, Counter, CqAttr,
    Domain, Endpoint, EpInfo, Error, Fabric, Form, GetinfoFlags, InfoList, KfiErrno, Kind, OpType,
    Operation, Query, Session, WaitObj, Work,
};

use crate::Failure;

/// The port of both endpoints.
const SERVICE: &str = "77";
/// Far more than anything here takes, but for a boot.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often a slow machine is asked whether it is there.
const TRIES: usize = 1000;
/// Receives that are posted.
const RECEIVES: u64 = 32;
/// Bytes of each, and of each message's own memory.
const ROOM: u64 = 64;
/// The text that crosses.
const BALL: &str = "the ball";
/// How often the chain crosses.
const CROSSINGS: u64 = 8;
/// So many messages are sent while the second machine is reset, which is when it has got half of them.
const MESSAGES: u64 = 20;

/// The first message.
const HELLO: &str = "hello from machine 1";
/// The word of the second machine when its part of the chain is there.
const READY: &str = "ready";
/// The last message.
const AGAIN: &str = "hello again";

/// An endpoint, and what belongs to it. Fields are closed in this order.
struct Post {
    ep: Endpoint,
    peer: u64,
    sent: CompletionQueue,
    received: CompletionQueue,
    /// Counts what was received.
    count: Counter,
    outgoing: Buffer,
    incoming: Buffer,
    _av: AddressVector,
    domain: Domain,
    _fabric: Fabric,
    info: InfoList,
    _session: Session,
}

impl Post {
    fn open(own: Ipv4Addr, peer: Ipv4Addr) -> Result<Self, Failure> {
        let session = Session::open()?;
        let service = CString::new(SERVICE)?;
        let query = Query::new()
            .provider("kfi_soft")
            .flags(GetinfoFlags::SOURCE)
            .node(CString::new(own.to_string())?)
            .service(service.clone());
        let info = session.getinfo(&query)?;
        let fabric = info.fabric(0)?;
        let domain = fabric.domain(&info, 0)?;
        let av = domain.address_vector(&AvAttr::default())?;
        let sent = domain.completion_queue(&CqAttr::new())?;
        let received = domain.completion_queue(&CqAttr::new())?;
        let count = domain.counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?;
        let ep = domain.endpoint(EpInfo::Entry(&info, 0), 0)?;
        ep.bind(av.handle(), 0)?;
        ep.bind(sent.handle(), bits::TRANSMIT)?;
        ep.bind(received.handle(), bits::RECV)?;
        ep.bind(count.handle(), bits::RECV)?;
        ep.enable()?;
        let node = CString::new(peer.to_string())?;
        let post = Self {
            ep,
            peer: av.insert_service(&node, &service, 0)?.addrs[0],
            sent,
            received,
            count,
            outgoing: session.buffer(BufferKind::VMALLOC, (MESSAGES + 1) * ROOM)?,
            incoming: session.buffer(BufferKind::VMALLOC, RECEIVES * ROOM)?,
            _av: av,
            domain,
            _fabric: fabric,
            info,
            _session: session,
        };
        post.outgoing.write(0, BALL.as_bytes());
        for number in 0..RECEIVES {
            post.receive(number)?;
        }
        Ok(post)
    }

    fn receive(&self, number: u64) -> Result<(), Failure> {
        let at = number * ROOM;
        let operation = Operation::new(Kind::RECV, Form::PLAIN)
            .segment(self.incoming.segment(at..at + ROOM))
            .context(number);
        Ok(self.ep.post(&operation)?)
    }

    /// Returns the next message.
    fn next(&self) -> Result<String, Failure> {
        let entries = loop {
            match self.received.sread(1, Some(PATIENCE)) {
                Err(Error::Fabric(KfiErrno::ETIMEDOUT | KfiErrno::EAGAIN)) => {}
                result => break result?,
            }
        };
        let entry = entries.first().ok_or("no message")?;
        let at = (entry.op_context * ROOM) as usize;
        let bytes = self.incoming.bytes(at..at + entry.len as usize);
        self.receive(entry.op_context)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns a message, which stays where it is until it has ended. The number is not 0.
    fn message(&self, number: u64, text: &str) -> Operation {
        let at = number * ROOM;
        self.outgoing.write(at as usize, text.as_bytes());
        let segment = self.outgoing.segment(at..at + text.len() as u64);
        Operation::new(Kind::SEND, Form::MSG)
            .segment(segment)
            .to(self.peer)
            .context(number)
            .flags(bits::COMPLETION)
    }

    /// Returns what became of one operation: its context, and the error.
    fn end(&self) -> Result<(u64, Option<KfiErrno>), Failure> {
        match self.sent.sread(1, Some(PATIENCE)) {
            Ok(entries) => {
                let entry = entries.first().ok_or("no completion")?;
                Ok((entry.op_context, None))
            }
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = self.sent.read_err()?;
                Ok((error.entry.op_context, Some(KfiErrno::new(error.err))))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a text, as often as nobody is there; returns how long the last attempt took.
    fn send(&self, text: &str) -> Result<Duration, Failure> {
        for _ in 0..TRIES {
            let start = Instant::now();
            self.ep.post(&self.message(1, text))?;
            match self.end()? {
                (_, None) => return Ok(start.elapsed()),
                (_, Some(KfiErrno::EHOSTUNREACH)) => thread::sleep(Duration::from_millis(200)),
                (_, Some(error)) => return Err(error.into()),
            }
        }
        Err("nobody is there".into())
    }

    /// Has the ball sent when a counter comes to a threshold.
    fn throw(&self, trigger: &Counter, threshold: u64) -> Result<(), Failure> {
        let ball = Operation::new(Kind::SEND, Form::MSG)
            .segment(self.outgoing.segment(0..BALL.len() as u64))
            .to(self.peer)
            .flags(bits::COMPLETION);
        let ep = self.ep.handle();
        let work = Work::transfer(OpType::SEND, ep, &ball, trigger, threshold);
        self.domain.queue_work(&work)?;
        Ok(())
    }

    /// Takes the ball so often, and the completions of as many throws.
    fn balls(&self, count: u64) -> Result<(), Failure> {
        for _ in 0..count {
            let ball = self.next()?;
            if ball != BALL {
                return Err(format!("{ball:?} is no ball").into());
            }
            if let (_, Some(error)) = self.end()? {
                return Err(error.into());
            }
        }
        Ok(())
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The part of the first machine.
fn first(own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), Failure> {
    let post = Post::open(own, peer)?;
    let entry = &post.info.entries()[0];
    println!(
        "I am {own}: NIC {}, fabric {}",
        entry.domain_attr.name, entry.fabric_attr.name
    );
    println!("\n1. A message\n");
    let took = post.send(HELLO)?;
    println!("kfi_send to {peer}: {HELLO:?}; complete after {}", ms(took));

    println!("\n2. A chain that crosses {CROSSINGS} times by itself\n");
    let text = post.next()?;
    if text != READY {
        return Err(format!("{text:?}, not {READY:?}").into());
    }
    // Messages received up to now do not count.
    let before = post.count.read()?;
    let go = post.domain.counter(&CntrAttr::new())?;
    let turns = CROSSINGS / 2;
    post.throw(&go, 1)?;
    for turn in 1..turns {
        post.throw(&post.count, before + turn)?;
    }
    println!("queued: when \"go\" is 1, and whenever the ball has come back: send it");
    let start = Instant::now();
    go.add(1)?;
    post.count.wait(before + turns, Some(PATIENCE))?;
    let took = start.elapsed();
    post.balls(turns)?;
    println!("kfi_cntr_add(go, 1), and nothing more");
    println!("{} later the ball has crossed {CROSSINGS} times", ms(took));

    println!("\n3. The other machine is reset\n");
    println!(
        "{MESSAGES} messages, one every 20 ms; it resets itself when it has {}",
        MESSAGES / 2
    );
    let start = Instant::now();
    for number in 1..=MESSAGES {
        let text = format!("number {number}");
        post.ep.post(&post.message(number, &text))?;
        thread::sleep(Duration::from_millis(20));
    }
    let mut told = vec![None; MESSAGES as usize + 1];
    for _ in 0..MESSAGES {
        let (number, error) = post.end()?;
        let place = told.get_mut(number as usize).ok_or("no such operation")?;
        if place.replace((error, start.elapsed())).is_some() {
            return Err(format!("{number} has ended twice").into());
        }
    }
    let mut ends: Vec<_> = told.iter().enumerate().skip(1).collect();
    while let Some((from, Some((error, _)))) = ends.first().copied() {
        let same = |(_, one): &&(usize, &Option<(Option<KfiErrno>, Duration)>)| {
            one.is_some_and(|(other, _)| other == *error)
        };
        let count = ends.iter().take_while(same).count();
        let (to, last) = ends[count - 1];
        let time = last.map_or(0.0, |(_, time)| time.as_secs_f64());
        let what = error.map_or("success".to_owned(), |error| error.to_string());
        println!("{from} to {to}: {what}, the last one after {time:.1} s");
        ends.drain(..count);
    }
    let succeeded = told.iter().flatten().filter(|(error, _)| error.is_none());
    if succeeded.count() as u64 == MESSAGES {
        return Err("nothing has failed".into());
    }
    println!("Each has ended once. Waiting for the machine to come back.");
    let took = post.send(AGAIN)?;
    let time = start.elapsed().as_secs_f64();
    println!(
        "after {time:.1} s: kfi_send: {AGAIN:?}; complete after {}",
        ms(took)
    );
    Ok(())
}

/// The part of the second machine.
fn second(own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), Failure> {
    let post = Post::open(own, peer)?;
    println!("I am {own}");
    let mut others = 0;
    loop {
        let text = post.next()?;
        match text.as_str() {
            HELLO => {
                println!("kfi_recv: {text:?}");
                // The next message is the ball.
                let before = post.count.read()?;
                let turns = CROSSINGS / 2;
                for turn in 1..=turns {
                    post.throw(&post.count, before + turn)?;
                }
                println!("queued: whenever the ball has come: send it back");
                post.send(READY)?;
                post.balls(turns)?;
                println!("the ball was here {turns} times, and is gone");
            }
            AGAIN => {
                if others != 0 {
                    return Err(format!("{others} others have come after the reset").into());
                }
                println!("kfi_recv: {text:?}; nothing else has come since I was reset");
                return Ok(());
            }
            _ => {
                others += 1;
                let number: u64 = text.trim_start_matches("number ").parse()?;
                println!("kfi_recv: {text:?}");
                if number == MESSAGES / 2 {
                    println!("now I reset myself");
                    fs::write("/proc/sysrq-trigger", "b")?;
                }
            }
        }
    }
}

/// Plays the part of a machine.
pub(crate) fn play(machine: u32, leader: Ipv4Addr) -> Result<(), Failure> {
    let other = Ipv4Addr::from_bits(leader.to_bits() + 1);
    match machine {
        1 => first(leader, other),
        2 => second(other, leader),
        _ => Ok(()),
    }
}
