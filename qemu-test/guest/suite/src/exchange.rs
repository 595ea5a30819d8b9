// SPDX-License-Identifier: GPL-2.0

//! One operation of any kind between the first two endpoints of a [`Net`], with
//! memory that shows when its data were read and written.

use kfi::{uapi, CompletionQueue, Counter, Form, Kind, OpType, Operation};

use crate::check::Outcome;
use crate::ends::{complete, expect_context, quiet, Net};

/// All kinds, with the types of deferred work that do the same.
pub const KINDS: [(Kind, OpType); 9] = [
    (Kind::SEND, OpType::SEND),
    (Kind::RECV, OpType::RECV),
    (Kind::TSEND, OpType::TSEND),
    (Kind::TRECV, OpType::TRECV),
    (Kind::READ, OpType::READ),
    (Kind::WRITE, OpType::WRITE),
    (Kind::ATOMIC, OpType::ATOMIC),
    (Kind::FETCH_ATOMIC, OpType::FETCH_ATOMIC),
    (Kind::COMPARE_ATOMIC, OpType::COMPARE_ATOMIC),
];

/// Contents of the memory: of the source when the operation is submitted, and
/// when it is fired; and of the target.
const STALE: u8 = 0x11;
const FRESH: u8 = 0x22;
const TARGET: u8 = 0x03;

/// The context of the other endpoint's operation.
const OTHER: u64 = 990_099;
const TAG: u64 = 0x7a9;

/// Memory that an endpoint needs for operations of up to so many bytes.
pub const fn memory(len: u64) -> u64 {
    4 * len
}

/// An operation of the first endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    net: &'a Net,
    kind: Kind,
    len: u64,
    /// From one piece of memory to the next.
    step: u64,
}

/// Sizes that are transferred in different ways.
pub fn sizes(kind: Kind) -> [u64; 2] {
    if is_atomic(kind) {
        [8, 4096]
    } else {
        [64, 300_000]
    }
}

fn is_atomic(kind: Kind) -> bool {
    [Kind::ATOMIC, Kind::FETCH_ATOMIC, Kind::COMPARE_ATOMIC].contains(&kind)
}

impl<'a> Exchange<'a> {
    /// Prepares memory, and what the other endpoint has to do before.
    pub fn new(net: &'a Net, kind: Kind, len: u64) -> Result<Self, crate::check::Stop> {
        let this = Self {
            net,
            kind,
            len,
            step: net.peers[0].memory.size() / 4,
        };
        for peer in &net.peers[..2] {
            peer.fill(0..len, STALE);
            for piece in 1..4 {
                peer.fill(piece * this.step..piece * this.step + len, TARGET);
            }
        }
        let receive = match kind {
            Kind::SEND => Kind::RECV,
            Kind::TSEND => Kind::TRECV,
            _ => return Ok(this),
        };
        let receive = Operation::new(receive, Form::MSG)
            .segment(net.peers[1].segment(this.step..this.step + len))
            .tag(TAG, 0)
            .context(OTHER);
        net.peers[1].ep.post(&receive)?;
        Ok(this)
    }

    /// The operation.
    pub fn operation(&self, form: Form) -> Operation {
        let [this, other] = [&self.net.peers[0], &self.net.peers[1]];
        let operation = Operation::new(self.kind, form).tag(TAG, 0);
        let source = this.segment(0..self.len);
        let target = this.segment(self.step..self.step + self.len);
        let count = self.len / 8;
        let elements = |piece| this.memory.elements(piece * self.step, count);
        let atomic = |op| {
            operation
                .clone()
                .atomic(uapi::KFI_UINT64, op)
                .segment(elements(0))
                .rma(self.step, count, other.key())
                .to(other.addr)
        };
        match self.kind {
            Kind::SEND | Kind::TSEND => operation.segment(source).to(other.addr),
            Kind::RECV | Kind::TRECV => operation.segment(target),
            Kind::WRITE => operation
                .segment(source)
                .rma(self.step, self.len, other.key())
                .to(other.addr),
            Kind::READ => operation
                .segment(target)
                .rma(0, self.len, other.key())
                .to(other.addr),
            Kind::ATOMIC => atomic(uapi::KFI_SUM),
            Kind::FETCH_ATOMIC => atomic(uapi::KFI_SUM).result(elements(2)),
            _ => atomic(uapi::KFI_CSWAP)
                .result(elements(2))
                .compare(elements(3)),
        }
    }

    /// Changes what the operation reads: it shows when it has done so.
    pub fn refresh(&self) {
        for peer in &self.net.peers[..2] {
            peer.fill(0..self.len, FRESH);
        }
    }

    /// Nothing has happened so far.
    pub fn expect_untouched(&self) -> Outcome {
        for peer in &self.net.peers[..2] {
            peer.expect_filled(self.step..self.step + self.len, TARGET)?;
        }
        quiet(self.queue())
    }

    /// Does the other endpoint's part after the operation was fired.
    pub fn answer(&self) -> Outcome {
        let send = match self.kind {
            Kind::RECV => Kind::SEND,
            Kind::TRECV => Kind::TSEND,
            _ => return Ok(()),
        };
        let [this, other] = [&self.net.peers[0], &self.net.peers[1]];
        let send = Operation::new(send, Form::MSG)
            .segment(other.segment(0..self.len))
            .to(this.addr)
            .tag(TAG, 0)
            .context(OTHER);
        Ok(other.ep.post(&send)?)
    }

    /// The other endpoint has seen what it should, which it may see later.
    pub fn expect_other(&self) -> Outcome {
        let other = &self.net.peers[1];
        match self.kind {
            Kind::RECV | Kind::TRECV => expect_context(&other.tx, OTHER),
            Kind::SEND | Kind::TSEND => {
                let is = complete(&other.rx)?;
                crate::check_eq!((is.op_context, is.len), (OTHER, self.len));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The operation has had its effect, with the data from after [`Self::refresh`].
    pub fn expect_done(&self) -> Outcome {
        let [this, other] = [&self.net.peers[0], &self.net.peers[1]];
        let target = self.step..self.step + self.len;
        let result = 2 * self.step..2 * self.step + self.len;
        match self.kind {
            Kind::RECV | Kind::TRECV | Kind::READ => this.expect_filled(target, FRESH),
            Kind::SEND | Kind::TSEND | Kind::WRITE => other.expect_filled(target, FRESH),
            Kind::ATOMIC => other.expect_filled(target, FRESH + TARGET),
            Kind::FETCH_ATOMIC => {
                other.expect_filled(target, FRESH + TARGET)?;
                this.expect_filled(result, TARGET)
            }
            _ => {
                other.expect_filled(target, FRESH)?;
                this.expect_filled(result, TARGET)
            }
        }
    }

    /// Whether it is a receive.
    pub fn is_receive(&self) -> bool {
        [Kind::RECV, Kind::TRECV].contains(&self.kind)
    }

    /// Where its completion comes.
    pub fn queue(&self) -> &'a CompletionQueue {
        let this = &self.net.peers[0];
        if self.is_receive() {
            &this.rx
        } else {
            &this.tx
        }
    }

    /// The counter that counts it.
    pub fn counter(&self) -> &'a Counter {
        let this = &self.net.peers[0];
        if self.is_receive() {
            &this.received
        } else {
            &this.sent
        }
    }
}
