// SPDX-License-Identifier: GPL-2.0

//! Random traffic to all peers, and the check of all that can be checked from this side.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kfi::{uapi, Error, Form, KfiErrno, Kind, Operation};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::control::{Done, Life, Peer, Plan, Sent};
use crate::message::{self, Header, Lane, SHORTEST};
use crate::place::{self, Place, KEY, SHARE, SLOTS};
use crate::Failure;

/// So many complaints are kept.
const COMPLAINTS: usize = 20;
/// The number for atomic operations in a share.
const COUNTER: u64 = 0;
/// Offset of the bytes for writes.
const DATA: u64 = 64;
const DATA_LEN: usize = (SHARE - DATA) as usize;
/// Operations end within this time, whatever happens.
const END: Duration = Duration::from_secs(60);

/// Contents of this machine's share in the memory of a peer, as far as they are known.
#[derive(Clone, Debug, Default)]
struct Known {
    /// In which life of the peer that is, by its number.
    life: Option<u64>,
    counter: Option<u64>,
    data: Option<Vec<u8>>,
    /// The counter began anew, so the life should be another one.
    anew: bool,
}

/// A peer.
struct Remote {
    life: Life,
    addr: u64,
    name: Vec<u8>,
    /// Numbers of the last messages.
    sequences: [u64; 2],
    sent: BTreeMap<Life, (u64, u64)>,
    known: Known,
    /// An access to its memory is under way: one at a time.
    busy: bool,
    /// The next access is to see all of it.
    in_doubt: bool,
}

/// An operation that is under way.
#[derive(Debug)]
enum Under {
    Message { to: Life },
    Add,
    Write { at: usize, bytes: Vec<u8> },
    Read { at: usize, len: usize },
}

struct Slot {
    peer: u32,
    under: Under,
}

/// Makes traffic.
pub(crate) struct Traffic<'a> {
    own: Life,
    place: &'a Place,
    rng: SmallRng,
    longest: u64,
    remotes: BTreeMap<u32, Remote>,
    slots: Vec<Option<Slot>>,
    done: Done,
}

impl<'a> Traffic<'a> {
    /// None yet.
    pub(crate) fn new(own: Life, place: &'a Place) -> Self {
        Self {
            own,
            place,
            rng: SmallRng::seed_from_u64(own.number),
            longest: SHORTEST,
            remotes: BTreeMap::new(),
            slots: (0..SLOTS).map(|_| None).collect(),
            done: Done::default(),
        }
    }

    fn complain(&mut self, text: String) {
        if self.done.wrong.len() < COMPLAINTS {
            self.done.wrong.push(text);
        }
    }

    /// These are the peers.
    pub(crate) fn meet(&mut self, peers: &[Peer]) -> Result<(), Failure> {
        for peer in peers {
            let machine = peer.life.machine;
            if machine == self.own.machine {
                continue;
            }
            if let Some(remote) = self.remotes.get_mut(&machine) {
                if remote.name != peer.name {
                    // Operations under way go to the old one, in vain.
                    remote.addr = self.place.av.insert(&peer.name)?;
                    remote.name.clone_from(&peer.name);
                }
                remote.life = peer.life;
                continue;
            }
            let remote = Remote {
                life: peer.life,
                addr: self.place.av.insert(&peer.name)?,
                name: peer.name.clone(),
                sequences: [0; 2],
                sent: BTreeMap::new(),
                known: Known::default(),
                busy: false,
                // An earlier life of this machine may have left something there.
                in_doubt: true,
            };
            self.remotes.insert(machine, remote);
        }
        Ok(())
    }

    /// Makes traffic for a while; `peers` returns them if these have changed. Returns what was done,
    /// when all of it has ended.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        mut peers: impl FnMut() -> Option<Vec<Peer>>,
    ) -> Result<Done, Failure> {
        self.rng = SmallRng::seed_from_u64(plan.seed ^ u64::from(self.own.machine) << 32);
        self.longest = plan.longest;
        let end = Instant::now() + Duration::from_millis(plan.millis);
        while Instant::now() < end {
            if let Some(peers) = peers() {
                self.meet(&peers)?;
            }
            let posted = self.post()?;
            self.complete(if posted {
                Duration::ZERO
            } else {
                Duration::from_millis(20)
            })?;
        }
        let end = Instant::now() + END;
        while self.slots.iter().any(Option::is_some) {
            if Instant::now() > end {
                let left: Vec<_> = self
                    .slots
                    .iter()
                    .flatten()
                    .map(|slot| (slot.peer, &slot.under))
                    .collect();
                let text = format!("operations without an end: {left:?}");
                self.complain(text);
                break;
            }
            self.complete(Duration::from_millis(100))?;
        }
        let mut done = std::mem::take(&mut self.done);
        for remote in self.remotes.values_mut() {
            for (to, (succeeded, failed)) in std::mem::take(&mut remote.sent) {
                done.sent.push(Sent {
                    to,
                    succeeded,
                    failed,
                });
            }
        }
        Ok(done)
    }

    /// Begins an operation, if there is room for one.
    fn post(&mut self) -> Result<bool, Failure> {
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return Ok(false);
        };
        let machines: Vec<u32> = self.remotes.keys().copied().collect();
        if machines.is_empty() {
            return Ok(false);
        }
        let machine = machines[self.rng.random_range(0..machines.len())];
        match self.rng.random_range(0..10) {
            0..=5 => self.post_message(slot, machine),
            _ => self.post_access(slot, machine),
        }
    }

    fn post_message(&mut self, slot: usize, machine: u32) -> Result<bool, Failure> {
        // Mostly short ones.
        let longest = match self.rng.random_range(0..4) {
            0 => self.longest,
            1 => self.longest.min(4096),
            _ => SHORTEST + 32,
        };
        let len = self.rng.random_range(SHORTEST..=longest.max(SHORTEST));
        let lane = if self.rng.random_range(0..2) == 0 {
            Lane::Plain
        } else {
            Lane::Tagged
        };
        let Some(remote) = self.remotes.get_mut(&machine) else {
            return Ok(false);
        };
        let sequence = remote.sequences[lane as usize] + 1;
        let header = Header {
            from: self.own,
            to: machine,
            lane,
            sequence,
        };
        let at = self.place.slot(slot as u64);
        self.place.outgoing.write(at as usize, &header.message(len));
        let kind = match lane {
            Lane::Plain => Kind::SEND,
            Lane::Tagged => Kind::TSEND,
        };
        let operation = Operation::new(kind, Form::PLAIN)
            .segment(self.place.outgoing.segment(at..at + len))
            .to(remote.addr)
            .tag(sequence, 0)
            .context(slot as u64);
        if !self.place.post(&operation)? {
            return Ok(false);
        }
        remote.sequences[lane as usize] = sequence;
        let under = Under::Message { to: remote.life };
        self.slots[slot] = Some(Slot {
            peer: machine,
            under,
        });
        Ok(true)
    }

    fn post_access(&mut self, slot: usize, machine: u32) -> Result<bool, Failure> {
        let (choice, at, len) = (
            self.rng.random_range(0..3),
            self.rng.random_range(0..DATA_LEN),
            self.rng.random_range(1..=DATA_LEN),
        );
        let seed = self.rng.random();
        let base = place::share(self.own.machine);
        let from = self.place.slot(slot as u64);
        let outgoing = &self.place.outgoing;
        let Some(remote) = self.remotes.get_mut(&machine).filter(|remote| !remote.busy) else {
            return Ok(false);
        };
        let len = len.min(DATA_LEN - at);
        let (under, operation) = if remote.in_doubt || choice == 0 {
            let (at, len) = if remote.in_doubt {
                (0, DATA_LEN)
            } else {
                (at, len)
            };
            // With the number of its life, to know whose memory it is.
            let operation = Operation::new(Kind::READ, Form::MSG)
                .segment(outgoing.segment(from..from + 8 + len as u64))
                .rma(0, 8, KEY)
                .rma(base + DATA + at as u64, len as u64, KEY);
            (Under::Read { at, len }, operation)
        } else if choice == 1 {
            outgoing.write(from as usize, &1_u64.to_le_bytes());
            let operation = Operation::new(Kind::FETCH_ATOMIC, Form::MSG)
                .segment(outgoing.elements(from, 1))
                .result(outgoing.elements(from + 8, 1))
                .rma(base + COUNTER, 1, KEY)
                .atomic(uapi::KFI_UINT64, uapi::KFI_SUM);
            (Under::Add, operation)
        } else {
            let bytes = message::pattern(seed, len);
            outgoing.write(from as usize, &bytes);
            let operation = Operation::new(Kind::WRITE, Form::MSG)
                .segment(outgoing.segment(from..from + len as u64))
                .rma(base + DATA + at as u64, len as u64, KEY);
            (Under::Write { at, bytes }, operation)
        };
        let operation = operation.to(remote.addr).context(slot as u64);
        if !self.place.post(&operation)? {
            return Ok(false);
        }
        remote.busy = true;
        self.slots[slot] = Some(Slot {
            peer: machine,
            under,
        });
        Ok(true)
    }

    /// Looks after what has ended, and waits so long for some.
    fn complete(&mut self, patience: Duration) -> Result<(), Failure> {
        let result = if patience.is_zero() {
            self.place.sent.read(16)
        } else {
            self.place.sent.sread(16, Some(patience))
        };
        match result {
            Ok(entries) => {
                for entry in entries {
                    self.end(entry.op_context, None);
                }
            }
            Err(Error::Fabric(KfiErrno::EAGAIN | KfiErrno::ETIMEDOUT | KfiErrno::EINTR)) => {}
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = self.place.sent.read_err()?;
                self.end(error.entry.op_context, Some(KfiErrno::new(error.err)));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Notes the end of an operation.
    fn end(&mut self, context: u64, error: Option<KfiErrno>) {
        let slot = self.slots.get_mut(context as usize).and_then(Option::take);
        let Some(Slot { peer, under }) = slot else {
            return self.complain(format!("a completion of {context}, which is not under way"));
        };
        // Of another machine, or the way to it; and of memory that is closed before its endpoint is.
        let may_be = |error| match error {
            KfiErrno::EHOSTUNREACH => true,
            KfiErrno::EACCES => !matches!(under, Under::Message { .. }),
            _ => false,
        };
        if let Some(error) = error.filter(|error| !may_be(*error)) {
            self.complain(format!("{under:?} to machine {peer} has failed: {error}"));
        }
        let from = self.place.slot(context) as usize;
        let outgoing = &self.place.outgoing;
        let Some(remote) = self.remotes.get_mut(&peer) else {
            return;
        };
        let known = &mut remote.known;
        let mut wrong = None;
        match under {
            Under::Message { to } => {
                let (succeeded, failed) = remote.sent.entry(to).or_default();
                *if error.is_none() { succeeded } else { failed } += 1;
                return;
            }
            Under::Add if error.is_none() => {
                let mut old = [0; 8];
                outgoing.read(from + 8, &mut old);
                let old = u64::from_le_bytes(old);
                if known.counter.is_some_and(|counter| counter != old) {
                    if old == 0 {
                        // Perhaps the peer was reset: the next access tells.
                        known.anew = true;
                        remote.in_doubt = true;
                    } else {
                        wrong = Some(format!("{old} was counted, should be {:?}", known.counter));
                    }
                }
                known.counter = Some(old + 1);
            }
            Under::Write { at, bytes } if error.is_none() => {
                if let Some(data) = &mut known.data {
                    data[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
            Under::Read { at, len } if error.is_none() => {
                let bytes = outgoing.bytes(from..from + 8 + len);
                let (life, bytes) = bytes.split_at(8);
                let life = u64::from_le_bytes(life.try_into().unwrap_or_default());
                let whole = len == DATA_LEN;
                if known.life != Some(life) {
                    // Writes to the earlier life are gone, and it is not known which of them went to
                    // this one.
                    *known = Known {
                        life: Some(life),
                        ..Known::default()
                    };
                } else if std::mem::take(&mut known.anew) {
                    wrong = Some("counts were lost".to_owned());
                }
                if let Some(data) = &known.data {
                    let should = &data[at..at + len];
                    if let Some(place) = (0..len).find(|place| bytes[*place] != should[*place]) {
                        wrong = Some(format!(
                            "byte {} at machine {peer} is {:#x}, should be {:#x}",
                            at + place,
                            bytes[place],
                            should[place]
                        ));
                    }
                }
                if whole {
                    known.data = Some(bytes.to_vec());
                    remote.in_doubt = false;
                } else if known.data.is_none() {
                    remote.in_doubt = true;
                }
            }
            // It was done or not.
            Under::Add => known.counter = None,
            Under::Write { .. } => {
                known.data = None;
                remote.in_doubt = true;
            }
            Under::Read { .. } => {}
        }
        remote.busy = false;
        if error.is_none() {
            self.done.accesses += 1;
        } else {
            self.done.failed_accesses += 1;
        }
        if let Some(wrong) = wrong {
            self.complain(wrong);
        }
    }
}
