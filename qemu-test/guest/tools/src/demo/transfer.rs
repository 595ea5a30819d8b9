// SPDX-License-Identifier: GPL-2.0

//! The part with data: a message, and a chain that goes by itself.

use std::time::{Duration, Instant};

use kfi::{
    bits, AvAttr, Buffer, BufferKind, Caps, CntrAttr, CompletionQueue, Counter, CqAttr, Domain,
    Endpoint, EpInfo, EpType, Form, InfoList, Kind, OpType, Operation, Query, Session, WaitObj,
    Work,
};

use crate::narrator::{ms, Demo, Narrator, Wrong};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// An endpoint with what belongs to it.
struct Peer {
    name: &'static str,
    endpoint: Endpoint,
    queue: CompletionQueue,
    /// Messages that have come.
    received: Counter,
    buffer: Buffer,
}

impl Peer {
    fn new(
        name: &'static str,
        session: &Session,
        domain: &Domain,
        info: &InfoList,
    ) -> Result<Self, Wrong> {
        let peer = Self {
            name,
            endpoint: domain.endpoint(EpInfo::Entry(info, 0), 0)?,
            queue: domain.completion_queue(&CqAttr::new())?,
            received: domain.counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?,
            buffer: session.buffer(BufferKind::KMALLOC, 64)?,
        };
        let both = bits::TRANSMIT | bits::RECV;
        peer.endpoint.bind(peer.queue.handle(), both)?;
        let receives = bits::RECV;
        peer.endpoint.bind(peer.received.handle(), receives)?;
        Ok(peer)
    }

    /// Posts a receive for all of the buffer.
    fn receive(&self) -> kfi::Result<()> {
        let receive = Operation::new(Kind::RECV, Form::PLAIN).segment(self.buffer.all());
        self.endpoint.post(&receive)
    }

    /// Takes one completion out.
    fn completion(&self) -> kfi::Result<u64> {
        let completions = self.queue.sread(1, Some(PATIENCE))?;
        Ok(completions.first().map_or(0, |completion| completion.len))
    }
}

/// Shows both.
pub(crate) fn show(tell: &mut Narrator, session: &Session, provider: Option<&str>) -> Demo {
    let mut query = Query::new()
        .caps(Caps::MSG | Caps::TRIGGER)
        .ep_type(EpType::RDM);
    if let Some(name) = provider {
        query = query.provider(name);
    }
    let info = session.getinfo(&query)?;
    let domain = info.fabric(0)?.domain(&info, 0)?;
    let vector = domain.address_vector(&AvAttr::default())?;

    tell.chapter("Two endpoints, and a message")?;
    let peers = [
        Peer::new("A", session, &domain, &info)?,
        Peer::new("B", session, &domain, &info)?,
    ];
    let mut addrs = [0; 2];
    for (peer, addr) in peers.iter().zip(&mut addrs) {
        peer.endpoint.bind(vector.handle(), 0)?;
        peer.endpoint.enable()?;
        let name = peer.endpoint.name()?;
        *addr = vector.insert(&name)?;
        let (text, _) = vector.straddr(&name, 64)?;
        tell.line(format!("{} has the address {text}", peer.name))?;
    }
    message(tell, &peers, addrs)?;
    chain(tell, &domain, &peers, addrs)
}

fn message(tell: &mut Narrator, [a, b]: &[Peer; 2], addrs: [u64; 2]) -> Demo {
    const TEXT: &str = "hello, fabric";

    b.receive()?;
    tell.line("B: kfi_recv, a buffer of 64 bytes")?;
    a.buffer.write(0, TEXT.as_bytes());
    let all = a.buffer.segment(0..TEXT.len() as u64);
    let send = Operation::new(Kind::SEND, Form::PLAIN).segment(all);
    a.endpoint.post(&send.to(addrs[1]))?;
    tell.line(format!("A: kfi_send, {} bytes to B", TEXT.len()))?;
    let len = b.completion()?;
    let bytes = b.buffer.bytes(0..TEXT.len());
    tell.check(
        len == TEXT.len() as u64 && bytes == TEXT.as_bytes(),
        format_args!("{len} bytes have come: {bytes:?}"),
    )?;
    a.completion()?;
    tell.line(format!(
        "B: kfi_cq_sread gives one completion of {len} bytes, and the buffer holds \"{}\"",
        String::from_utf8_lossy(&bytes)
    ))?;
    let received = b.received.read()?;
    tell.check(received == 1, format_args!("B has counted {received}"))?;
    tell.line("the counter that B's receives are bound to: 1")?;
    Ok(())
}

/// There and back, so often.
const PASSES: u64 = 8;

fn chain(tell: &mut Narrator, domain: &Domain, peers: &[Peer; 2], addrs: [u64; 2]) -> Demo {
    tell.chapter("A chain that goes by itself: deferred work")?;
    let [a, b] = peers;
    let ball = |peer: &Peer| peer.buffer.segment(0..8);
    for peer in peers {
        peer.received.set(0)?;
        for _ in 0..PASSES {
            let receive = Operation::new(Kind::RECV, Form::PLAIN).segment(ball(peer));
            peer.endpoint.post(&receive)?;
        }
    }
    let go = domain.counter(&CntrAttr::new())?;
    let pass = |from: &Peer, to: u64, trigger: &Counter, threshold| {
        let send = Operation::new(Kind::SEND, Form::MSG)
            .segment(ball(from))
            .to(to);
        let ep = from.endpoint.handle();
        domain.queue_work(&Work::transfer(OpType::SEND, ep, &send, trigger, threshold))
    };
    // A begins, and sends again whenever the ball has come back.
    pass(a, addrs[1], &go, 1)?;
    for turn in 1..=PASSES {
        pass(b, addrs[0], &b.received, turn)?;
        if turn < PASSES {
            pass(a, addrs[1], &a.received, turn)?;
        }
    }
    tell.line("queued, all before anything happens (KFI_QUEUE_WORK):")?;
    tell.line("   when go reaches 1: A sends a ball of 8 bytes to B")?;
    tell.line(format!(
        "   when B has received 1, 2, ... {PASSES}: B sends it to A"
    ))?;
    tell.line(format!(
        "   when A has received 1, 2, ... {}: A sends it to B",
        PASSES - 1
    ))?;
    let before = (a.received.read()?, b.received.read()?);
    tell.check(
        before == (0, 0),
        format_args!("{before:?} before the start"),
    )?;
    tell.line("nobody has received anything")?;

    a.buffer.write(0, b"the ball");
    b.buffer.write(0, &[0; 8]);
    let start = Instant::now();
    go.add(1)?;
    a.received.wait(PASSES, Some(PATIENCE))?;
    let took = start.elapsed();
    let after = (a.received.read()?, b.received.read()?);
    tell.check(
        after == (PASSES, PASSES),
        format_args!("{after:?} after the chain"),
    )?;
    tell.check(
        b.buffer.bytes(0..8) == b"the ball" && a.buffer.bytes(0..8) == b"the ball",
        "the ball is not what it was",
    )?;
    tell.line("kfi_cntr_add(go, 1), and nothing more")?;
    tell.line(format!(
        "{} messages later, after {}: A has received {}, B {}; the ball is back",
        2 * PASSES,
        ms(took),
        after.0,
        after.1
    ))?;
    Ok(())
}
