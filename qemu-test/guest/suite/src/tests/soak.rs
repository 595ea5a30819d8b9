// SPDX-License-Identifier: GPL-2.0

//! Random traffic for a while: operations of all kinds, forms and sizes at once, some of them
//! cancelled, with everything that arrives compared with what was sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kfi::{
    bits, uapi, BufferKind, Caps, CntrAttr, Completion, CompletionError, CompletionQueue, Counter,
    Error, Form, KfiErrno, Kind, MemoryRegion, MrAttr, Operation, Segment,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::atomic::{model, number, COMPARE, PLAIN, READ, TYPES};
use super::module::Modules;
use crate::check::{Outcome, Stop};
use crate::ends::{
    carries_data, done, expect, expect_count, injects, pattern, takes_pages, takes_pieces, Area,
    End, Pair, Setup, FORMS,
};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin};
use crate::{check, check_eq, tests};

tests! {
    "soak";
    "random-traffic" ["kfi_endpoint.h kfi_tagged.h kfi_rma.h kfi_atomic.h R-CNTR-6 R-CNTR-7"]
        random_traffic;
    "nothing-is-left" ["R-CLOSE-1"] nothing_is_left;
}

/// Operations that each side has under way.
const SLOTS: usize = 32;
/// Operations that each side does at least.
const ENOUGH: u64 = 600;
/// Bytes for each.
const ROOM: u64 = 96 << 10;
/// Receives that each side has posted, of each sort.
const RECEIVES: usize = 8;
/// How many kinds of messages there are, told apart by the lowest bits of their tags.
const CLASSES: u64 = 2;
/// In the tags of receives that are written to and read from, and of nothing else.
const OPEN: u64 = 1 << 63;
/// Bytes of the elements of an operation.
const CELL: u64 = 64;
/// The key of the elements; the regions of operations have those from 1 on.
const CELLS: u64 = 1000;
/// Completions of what the other side does that may be unread: nobody has kept room for them.
const UNREAD: u64 = 256;
/// Entries of a queue: for all of them, and for all that is posted.
const QUEUE: u64 = 1024;
/// The context of a receive.
const RECEIVE: u64 = 1 << 32;

/// The bytes of a message: as far as there is room they say how to check the others.
fn content(seed: u64, len: u64) -> Vec<u8> {
    let mut bytes = pattern(if len < 8 { 0 } else { seed }, 0, len as usize);
    if len >= 8 {
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
    }
    bytes
}

/// A length: often small, sometimes large.
fn length(rng: &mut SmallRng, most: u64) -> u64 {
    let len = match rng.random_range(0..10) {
        0 => 0,
        1..5 => rng.random_range(1..256),
        5..8 => rng.random_range(256..8192),
        _ => rng.random_range(8192..=ROOM),
    };
    len.min(most)
}

/// One element of a list.
fn one_of<T: Copy>(rng: &mut SmallRng, list: &[T]) -> T {
    list[rng.random_range(0..list.len())]
}

/// How memory is allocated, different from slot to slot.
fn memory(pair: &Pair, slot: usize) -> Result<Area, Stop> {
    let kinds = [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES];
    Area::new(
        &pair.session,
        kinds[slot % 3],
        slot as u64 * 37 % 4096,
        ROOM,
    )
}

/// A form that the memory can take.
fn form(rng: &mut SmallRng, area: &Area, forms: &[Form]) -> Form {
    loop {
        let form = one_of(rng, forms);
        if area.kind != BufferKind::PAGES || takes_pages(form) {
            return form;
        }
    }
}

/// The first bytes of an area, in as many pieces as a form may have.
fn pieces(rng: &mut SmallRng, area: &Area, len: u64, form: Form) -> Vec<Segment> {
    let count = if takes_pieces(form) {
        rng.random_range(1..8)
    } else {
        1
    };
    area.pieces(len, count)
}

/// Forms of calls that take flags.
fn takes_flags(form: Form) -> bool {
    [Form::MSG, Form::MSG_BV, Form::MSG_SGL].contains(&form)
}

/// An atomic operation.
#[derive(Clone, Debug)]
struct Atomic {
    kind: Kind,
    /// The old elements, if they are fetched.
    old: Vec<u8>,
    new: Vec<u8>,
}

/// The kind of an operation, for the check of its end.
#[derive(Clone, Debug)]
enum What {
    /// Sent, with or without a tag.
    Sent { tagged: bool },
    /// Written to the region of the slot at an offset.
    Written { at: u64, told: bool },
    /// Read from there.
    Read { at: u64 },
    /// A read that waits for a write that nobody tells of.
    ReadBack { at: u64 },
    /// Written to the other side's open receive at an offset, or read from it.
    Accessed { open: usize, at: u64, write: bool },
    /// Elements were changed.
    Atomic(Atomic),
    /// Something was added to the number that both sides add to.
    Added,
}

/// An operation under way.
#[derive(Clone, Debug)]
struct Active {
    what: What,
    len: u64,
    seed: u64,
}

/// Memory of an operation.
struct Slot {
    /// Memory that is sent, written, and read into.
    local: Area,
    /// Memory that is written to and read from at the other side.
    remote: Area,
    _region: MemoryRegion,
    active: Option<Active>,
}

/// A receive, posted again whenever it has ended.
struct Receive {
    area: Arc<Area>,
    /// Several messages to one buffer.
    multi: bool,
    /// Class of the tags, if it is for tagged messages.
    class: Option<u64>,
    /// The tag, if the other side writes to it or reads from it, once.
    open: Option<u64>,
    /// Bytes that are posted.
    room: u64,
}

/// Counts of ends, by success and error.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Ends {
    good: u64,
    bad: u64,
}

/// The operations that a side has done and seen.
#[derive(Clone, Debug, Default)]
struct Tally {
    send: Ends,
    receive: Ends,
    write: Ends,
    read: Ends,
    /// Operations that the other side will count.
    written: u64,
    has_been_read: u64,
    /// Messages that arrived, whole or cut off.
    arrived: u64,
    /// Messages that were cut off at the other side.
    cut_off: u64,
    /// Accesses to receives of the other side, and by the other side to those of this one.
    accesses: u64,
    accessed: u64,
    /// Posted without being told the end.
    injected: u64,
    /// The sum of all that was added for both.
    added: u64,
    notes: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn note(&mut self, what: &'static str) {
        *self.notes.entry(what).or_default() += 1;
    }
}

/// State that both sides share.
#[derive(Default)]
struct Shared {
    failed: AtomicBool,
    finished: AtomicUsize,
    /// Writes with data that each side has told the other of, and those that were seen.
    told: [AtomicU64; 2],
    seen: [AtomicU64; 2],
    /// Memory of the open receives of each side.
    open: [Vec<Arc<Area>>; 2],
}

/// Elements at the other side, and what is needed to change them.
struct Cells<'a> {
    target: &'a Area,
    operands: Area,
    compares: Area,
    results: Area,
}

/// One side, and all that it uses.
struct Side<'a> {
    which: usize,
    end: &'a End,
    /// The address of the side with the number that both add to.
    home: u64,
    inject_size: u64,
    slots: Vec<Slot>,
    receives: Vec<Receive>,
    cells: Cells<'a>,
    /// Valid atomic operations: kind, type, bytes, whether it has a sign, operation.
    atomics: Vec<(Kind, u32, usize, bool, u32)>,
    shared: &'a Shared,
    rng: SmallRng,
    begun: u64,
    tally: Tally,
}

impl<'a> Side<'a> {
    fn new(
        env: &Env,
        pair: &'a Pair,
        which: usize,
        (target, home): (&'a Area, u64),
        shared: &'a Shared,
    ) -> Result<Self, Stop> {
        let end = [&pair.a, &pair.b][which];
        let far = [&pair.far, &pair.rig.domain][which];
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
        let slots = (0..SLOTS)
            .map(|slot| {
                let remote = memory(pair, slot + 1)?;
                let form = match (remote.kind, slot % 2) {
                    (BufferKind::PAGES, 0) => Form::BV,
                    (BufferKind::PAGES, _) => Form::SGL,
                    _ => Form::V,
                };
                let attr = MrAttr::new(access, slot as u64 + 1).form(form);
                Ok(Slot {
                    local: memory(pair, slot)?,
                    _region: far.register(&remote.pieces(ROOM, 3), &attr)?,
                    remote,
                    active: None,
                })
            })
            .collect::<Result<_, Stop>>()?;
        let mut receives = Vec::new();
        for index in 0..RECEIVES {
            let classes = std::iter::once(None).chain((0..CLASSES).map(Some));
            for (sort, class) in classes.enumerate() {
                let multi = index % 4 == 3;
                let area = if multi {
                    // Completions tell where a message has landed, if the memory has an address.
                    Area::plain(&pair.session, ROOM)?
                } else {
                    memory(pair, index + sort)?
                };
                receives.push(Receive {
                    area: Arc::new(area),
                    multi,
                    class,
                    open: None,
                    room: 0,
                });
            }
        }
        for (index, area) in shared.open[which].iter().enumerate() {
            receives.push(Receive {
                area: area.clone(),
                multi: false,
                class: None,
                open: Some(OPEN | index as u64),
                room: 0,
            });
        }
        let mut atomics = Vec::new();
        for (datatype, size, signed) in TYPES {
            let plain = PLAIN
                .iter()
                .flat_map(|op| [Kind::ATOMIC, Kind::FETCH_ATOMIC].map(|kind| (kind, *op)));
            let compare = COMPARE.iter().map(|op| (Kind::COMPARE_ATOMIC, *op));
            for (kind, op) in plain.chain(compare).chain([(Kind::FETCH_ATOMIC, READ)]) {
                if end.ep.atomic_valid(kind, datatype, op).is_ok() {
                    atomics.push((kind, datatype, size, signed, op));
                }
            }
        }
        let cells = || Area::plain(&pair.session, CELL * SLOTS as u64);
        Ok(Self {
            which,
            end,
            home,
            inject_size: pair.entry().tx_attr.inject_size,
            slots,
            receives,
            cells: Cells {
                target,
                operands: cells()?,
                compares: cells()?,
                results: cells()?,
            },
            atomics,
            shared,
            rng: SmallRng::seed_from_u64(env.settings.seed.wrapping_add(which as u64)),
            begun: 0,
            tally: Tally::default(),
        })
    }

    /// Posts a receive, for one message or several.
    fn receive(&mut self, index: usize) -> Outcome {
        let rng = &mut self.rng;
        let receive = &mut self.receives[index];
        // Most have room for everything.
        let needs_all = receive.multi || receive.open.is_some();
        receive.room = if needs_all || rng.random_ratio(3, 4) {
            ROOM
        } else {
            length(rng, ROOM)
        };
        let forms = [
            Form::PLAIN,
            Form::V,
            Form::BV,
            Form::SGL,
            Form::MSG,
            Form::MSG_BV,
            Form::MSG_SGL,
        ];
        let form = if receive.multi {
            Form::MSG
        } else {
            form(rng, &receive.area, &forms)
        };
        let kind = if receive.class.or(receive.open).is_some() {
            Kind::TRECV
        } else {
            Kind::RECV
        };
        let mut operation = Operation::new(kind, form).context(RECEIVE | index as u64);
        operation = if receive.multi {
            operation
                .flags(bits::MULTI_RECV)
                .segment(receive.area.part(0, receive.room))
        } else {
            operation.segments(&pieces(rng, &receive.area, receive.room, form))
        };
        if let Some(class) = receive.class {
            operation = operation.tag(class, !(OPEN | (CLASSES - 1)));
        }
        if let Some(tag) = receive.open {
            operation = operation.tag(tag, 0);
        }
        self.end.post(&operation)
    }

    /// Begins an operation of some kind in some slot.
    fn begin(&mut self) -> Outcome {
        let index = self.rng.random_range(0..SLOTS);
        if self.slots[index].active.is_some() {
            return Ok(());
        }
        match self.rng.random_range(0..17) {
            0..6 => self.begin_message(index),
            6..9 => self.begin_write(index),
            9..11 => self.begin_read(index),
            11 => self.begin_injected_write(index),
            12..15 => self.begin_atomic(index),
            15 => self.begin_access(index),
            _ => self.begin_add(index),
        }
    }

    /// Posts an operation; whether there was room.
    fn try_post(&mut self, operation: &Operation) -> Result<bool, Stop> {
        match self.end.ep.post(operation) {
            Ok(()) => {
                self.begun += 1;
                Ok(true)
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                self.tally.note("no room");
                Ok(false)
            }
            Err(error) => Err(Stop::fail(format!("{error}: {operation:?}"))),
        }
    }

    /// Posts an operation of a slot whose end is told.
    fn post(&mut self, index: usize, operation: &Operation, active: Active) -> Outcome {
        // Before: the other thread may see what comes of it at once.
        self.slots[index].active = Some(active);
        if !self.try_post(operation)? {
            self.slots[index].active = None;
        }
        Ok(())
    }

    /// Flags of a call.
    fn flags(&mut self, len: u64) -> u64 {
        let inject = if len <= self.inject_size {
            bits::INJECT
        } else {
            0
        };
        let flags = [
            0,
            0,
            bits::COMPLETION,
            inject,
            bits::INJECT_COMPLETE,
            bits::TRANSMIT_COMPLETE,
            bits::DELIVERY_COMPLETE,
        ];
        let fence = if self.rng.random_ratio(1, 50) {
            bits::FENCE
        } else {
            0
        };
        one_of(&mut self.rng, &flags) | fence
    }

    fn begin_message(&mut self, index: usize) -> Outcome {
        let rng = &mut self.rng;
        let tagged = rng.random();
        let form = form(rng, &self.slots[index].local, &FORMS);
        let most = if injects(form) {
            self.inject_size
        } else {
            ROOM
        };
        let len = length(rng, most);
        // The lowest bit says whether there is data.
        let data = carries_data(form) || takes_flags(form) && rng.random();
        let seed = rng.random_range(0..1 << 62) << 1 | u64::from(data);
        self.slots[index].local.write(0, &content(seed, len));
        let segments = pieces(&mut self.rng, &self.slots[index].local, len, form);
        let kind = if tagged { Kind::TSEND } else { Kind::SEND };
        let mut operation = self.end.operation(kind, form).segments(&segments);
        if tagged {
            // All that is not the class may be anything.
            operation = operation.tag(seed >> 1, 0);
        }
        let mut injected = injects(form);
        if takes_flags(form) {
            let flags = self.flags(len);
            injected |= flags & bits::INJECT != 0;
            let data = if data { bits::REMOTE_CQ_DATA } else { 0 };
            operation = operation.flags(flags | data);
        }
        if data {
            operation = operation.data(seed);
        }
        if injects(form) {
            if self.try_post(&operation)? {
                self.tally.injected += 1;
                self.tally.note("injected messages");
            }
        } else {
            let operation = operation.context(index as u64 + 1);
            let what = What::Sent { tagged };
            self.post(index, &operation, Active { what, len, seed })?;
        }
        if injected {
            // It is free.
            self.slots[index].local.write(0, &vec![0x55; len as usize]);
        }
        Ok(())
    }

    /// A place in the region of a slot.
    fn place(&mut self, index: usize, most: u64) -> (u64, u64, u64) {
        let len = length(&mut self.rng, most);
        let at = self.rng.random_range(0..=ROOM - len);
        (at, len, index as u64 + 1)
    }

    fn begin_write(&mut self, index: usize) -> Outcome {
        let forms = &FORMS[..];
        let mut form = form(&mut self.rng, &self.slots[index].local, forms);
        if injects(form) {
            form = Form::MSG_SGL;
        }
        let (at, len, key) = self.place(index, ROOM);
        let seed = self.rng.random_range(0..1 << 40);
        let flags = if takes_flags(form) {
            self.flags(len) & !bits::INJECT
        } else {
            0
        };
        let data = carries_data(form) || takes_flags(form) && self.rng.random_ratio(1, 3);
        if data && !self.may_tell() {
            return Ok(());
        }
        let slot = &self.slots[index];
        slot.local.write(0, &pattern(seed, 0, len as usize));
        let segments = pieces(&mut self.rng, &slot.local, len, form);
        let mut operation = self
            .end
            .operation(Kind::WRITE, form)
            .segments(&segments)
            .rma(at, len, key)
            .context(key)
            .flags(flags);
        if data {
            operation = operation.data(seed << 20 | len);
            if takes_flags(form) {
                operation = operation.flags(flags | bits::REMOTE_CQ_DATA);
            }
        }
        let begun = self.begun;
        let what = What::Written { at, told: data };
        self.post(index, &operation, Active { what, len, seed })?;
        if data && self.begun != begun {
            self.shared.told[self.which].fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Whether the other side may be told of something that it has kept no room for.
    fn may_tell(&self) -> bool {
        let told = self.shared.told[self.which].load(Ordering::SeqCst);
        let seen = self.shared.seen[self.which].load(Ordering::SeqCst);
        told < seen + UNREAD
    }

    fn begin_read(&mut self, index: usize) -> Outcome {
        let forms = [
            Form::PLAIN,
            Form::V,
            Form::BV,
            Form::SGL,
            Form::MSG,
            Form::MSG_BV,
            Form::MSG_SGL,
        ];
        let form = form(&mut self.rng, &self.slots[index].local, &forms);
        let (at, len, key) = self.place(index, ROOM);
        let seed = self.rng.random_range(0..1 << 40);
        let flags = if takes_flags(form) {
            self.flags(len) & !bits::INJECT
        } else {
            0
        };
        let slot = &self.slots[index];
        slot.remote.write(at, &pattern(seed, 0, len as usize));
        let segments = pieces(&mut self.rng, &slot.local, len, form);
        let operation = self
            .end
            .operation(Kind::READ, form)
            .segments(&segments)
            .rma(at, len, key)
            .context(key)
            .flags(flags);
        let what = What::Read { at };
        self.post(index, &operation, Active { what, len, seed })
    }

    /// A write that nobody tells of, and a read that begins when it has ended.
    fn begin_injected_write(&mut self, index: usize) -> Outcome {
        // Addresses are needed.
        if self.slots[index].local.kind == BufferKind::PAGES {
            return Ok(());
        }
        let (at, len, key) = self.place(index, self.inject_size);
        let seed = self.rng.random_range(0..1 << 40);
        let slot = &self.slots[index];
        slot.local.write(0, &pattern(seed, 0, len as usize));
        let write = self
            .end
            .operation(Kind::WRITE, Form::INJECT)
            .segment(slot.local.part(0, len))
            .rma(at, len, key);
        let read = self
            .end
            .operation(Kind::READ, Form::MSG)
            .segment(slot.local.part(0, len))
            .rma(at, len, key)
            .context(key)
            .flags(bits::FENCE);
        if !self.try_post(&write)? {
            return Ok(());
        }
        self.tally.write.good += 1;
        self.tally.written += 1;
        self.tally.note("injected writes");
        self.slots[index].local.write(0, &vec![0x55; len as usize]);
        let what = What::ReadBack { at };
        self.slots[index].active = Some(Active { what, len, seed });
        // The slot is not free before the write has ended.
        while !self.try_post(&read)? {
            self.progress(&self.end.tx)?;
            self.progress(&self.end.rx)?;
        }
        Ok(())
    }

    /// A write to a receive of the other side, or a read from it.
    fn begin_access(&mut self, index: usize) -> Outcome {
        let wanted = self.rng.random_range(0..RECEIVES);
        let is_busy = |slot: &Slot| match &slot.active {
            Some(active) => {
                matches!(active.what, What::Accessed { open, .. } if open == wanted)
            }
            None => false,
        };
        if self.slots.iter().any(is_busy) {
            return Ok(());
        }
        let (at, len, context) = self.place(index, ROOM);
        let seed = self.rng.random_range(0..1 << 40);
        let forms = [Form::MSG, Form::MSG_BV, Form::MSG_SGL];
        let form = form(&mut self.rng, &self.slots[index].local, &forms);
        let flags = self.flags(len) & !bits::INJECT | bits::TAGGED;
        let write = self.rng.random();
        let slot = &self.slots[index];
        let (kind, source, from) = if write {
            (Kind::WRITE, &slot.local, 0)
        } else {
            (Kind::READ, &*self.shared.open[1 - self.which][wanted], at)
        };
        source.write(from, &pattern(seed, 0, len as usize));
        let segments = pieces(&mut self.rng, &slot.local, len, form);
        let operation = self
            .end
            .operation(kind, form)
            .segments(&segments)
            .rma(at, len, OPEN | wanted as u64)
            .context(context)
            .flags(flags);
        let open = wanted;
        let what = What::Accessed { open, at, write };
        self.post(index, &operation, Active { what, len, seed })
    }

    fn begin_atomic(&mut self, index: usize) -> Outcome {
        let (kind, datatype, size, signed, op) = one_of(&mut self.rng, &self.atomics);
        let count = self.rng.random_range(1..=CELL / size as u64);
        let len = count * size as u64;
        let at = index as u64 * CELL;
        let mut random = || -> Vec<u8> { (0..len).map(|_| self.rng.random()).collect() };
        let (operand, mut compare) = (random(), random());
        let form = one_of(&mut self.rng, &[Form::PLAIN, Form::V, Form::MSG]);
        let flags = if takes_flags(form) {
            self.flags(CELL * 1000)
        } else {
            0
        };
        // Nobody else changes them.
        let old = self.cells.target.bytes(at, len);
        if self.rng.random() {
            compare.clone_from(&old);
        }
        let cells = &self.cells;
        cells.operands.write(at, &operand);
        cells.compares.write(at, &compare);
        cells.results.write(at, &vec![0x55; len as usize]);
        let new = old
            .chunks(size)
            .zip(operand.chunks(size))
            .zip(compare.chunks(size))
            .flat_map(|((old, operand), compare)| {
                let [old, operand, compare] =
                    [old, operand, compare].map(|bytes| number(bytes, signed));
                model(op, old, operand, compare).to_le_bytes()[..size].to_vec()
            })
            .collect();
        let mut operation = self
            .end
            .operation(kind, form)
            .atomic(datatype, op)
            .segment(cells.operands.elements(at, count))
            .rma(at, count, CELLS)
            .context(index as u64 + 1)
            .flags(flags);
        if kind != Kind::ATOMIC {
            operation = operation.result(cells.results.elements(at, count));
        }
        if kind == Kind::COMPARE_ATOMIC {
            operation = operation.compare(cells.compares.elements(at, count));
        }
        let seed = u64::from(op == READ);
        let what = What::Atomic(Atomic { kind, old, new });
        self.post(index, &operation, Active { what, len, seed })
    }

    /// Adds to the number that the other side adds to as well.
    fn begin_add(&mut self, index: usize) -> Outcome {
        let value = self.rng.random_range(0..1000_u64);
        let at = index as u64 * CELL;
        self.cells.operands.write(at, &value.to_le_bytes());
        let operation = Operation::new(Kind::ATOMIC, Form::PLAIN)
            .to(self.home)
            .atomic(uapi::KFI_UINT64, uapi::KFI_SUM)
            .segment(self.cells.operands.elements(at, 1))
            .rma(SLOTS as u64 * CELL, 1, CELLS)
            .context(index as u64 + 1);
        let active = Active {
            what: What::Added,
            len: 8,
            seed: value,
        };
        self.post(index, &operation, active)
    }

    /// Tries to cancel something, which may have ended.
    fn cancel(&mut self) -> Outcome {
        let context = if self.rng.random() {
            RECEIVE | self.rng.random_range(0..self.receives.len() as u64)
        } else {
            self.rng.random_range(1..=SLOTS as u64)
        };
        // A read that waits for a write that nobody tells of has to go on.
        let slot = context
            .checked_sub(1)
            .and_then(|slot| self.slots.get(slot as usize));
        let what = slot.and_then(|slot| slot.active.as_ref().map(|active| &active.what));
        if matches!(what, Some(What::ReadBack { .. })) {
            return Ok(());
        }
        match self.end.ep.cancel(context) {
            Ok(()) => self.tally.note("cancel calls that found something"),
            result => expect_fabric(result, KfiErrno::ENOENT)?,
        }
        Ok(())
    }

    /// Reads completions; whether there were any.
    fn progress(&mut self, cq: &CompletionQueue) -> Result<bool, Stop> {
        let entries = match cq.read(8) {
            Ok(entries) => entries,
            Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok(false),
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = cq.read_err()?;
                self.fails(&error)
                    .map_err(|stop| Stop::fail(format!("{stop:?}: {error:?}")))?;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let ended = if entry.op_context & RECEIVE != 0 {
                self.arrives(&entry)
            } else if entry.op_context == 0 {
                self.is_told(&entry)
            } else {
                self.ends(&entry)
            };
            ended.map_err(|stop| Stop::fail(format!("{stop:?}: {entry:?}")))?;
        }
        Ok(true)
    }

    /// The other side has written, with data.
    fn is_told(&mut self, entry: &Completion) -> Outcome {
        check_eq!(entry.flags, done::WRITTEN | bits::REMOTE_CQ_DATA);
        check_eq!(entry.data & 0xf_ffff, entry.len, "the length in the data");
        self.shared.seen[1 - self.which].fetch_add(1, Ordering::SeqCst);
        self.tally.note("told of writes");
        Ok(())
    }

    /// A message has arrived, of which so many bytes have found room.
    fn check_message(&mut self, entry: &Completion, len: u64, placed: u64) -> Outcome {
        let receive = &self.receives[(entry.op_context & !RECEIVE) as usize];
        let has_data = entry.flags & bits::REMOTE_CQ_DATA != 0;
        let (tagged, mut flags) = match receive.class {
            None => (false, done::RECV_),
            Some(_) => (true, done::TAGGED_RECV),
        };
        if has_data {
            flags |= bits::REMOTE_CQ_DATA;
        }
        if receive.multi {
            flags |= entry.flags & bits::MULTI_RECV;
        }
        check_eq!(entry.flags, flags);
        check_eq!(entry.src_addr, self.end.peer, "source");
        let at = if receive.multi {
            check_eq!(entry.buf >> 32, u64::from(receive.area.buffer.handle()));
            let at = (entry.buf & 0xffff_ffff).checked_sub(receive.area.offset);
            match at {
                Some(at) if at + placed <= receive.room => at,
                _ => return Err(Stop::fail("outside of the buffer")),
            }
        } else {
            check!(placed <= receive.room, "more than {}", receive.room);
            0
        };
        let bytes = receive.area.bytes(at, placed);
        let seed = match bytes.first_chunk::<8>() {
            Some(seed) if len >= 8 => u64::from_le_bytes(*seed),
            // Short ones all are the same, of others nothing is known.
            _ if len < 8 => 0,
            _ => return Ok(()),
        };
        check!(
            bytes == content(seed, len)[..placed as usize],
            "the {placed} bytes of {seed:x}"
        );
        if len >= 8 {
            check_eq!(seed & 1 == 1, has_data, "whether there is data");
            if has_data {
                check_eq!(entry.data, seed, "data");
            }
            if tagged {
                check_eq!(entry.tag, seed >> 1, "tag");
            }
        }
        if let Some(class) = receive.class {
            check_eq!(entry.tag % CLASSES, class, "class of the tag");
        }
        Ok(())
    }

    /// A receive was written to or read from: the other side knows its contents.
    fn is_accessed(&mut self, entry: &Completion, index: usize, tag: u64) -> Outcome {
        let flags = [done::HIT_BY_TAGGED_WRITE, done::HIT_BY_TAGGED_READ];
        check!(flags.contains(&entry.flags), "flags");
        check_eq!(entry.tag, tag, "tag");
        self.tally.receive.good += 1;
        self.tally.accessed += 1;
        self.receive(index)
    }

    /// A message has arrived.
    fn arrives(&mut self, entry: &Completion) -> Outcome {
        let index = (entry.op_context & !RECEIVE) as usize;
        if let Some(tag) = self.receives[index].open {
            return self.is_accessed(entry, index, tag);
        }
        self.check_message(entry, entry.len, entry.len)?;
        self.tally.receive.good += 1;
        self.tally.arrived += 1;
        if !self.receives[index].multi || entry.flags & bits::MULTI_RECV != 0 {
            self.receive(index)?;
        }
        Ok(())
    }

    /// An operation of this side has ended well.
    fn ends(&mut self, entry: &Completion) -> Outcome {
        let index = entry.op_context as usize - 1;
        let Some(Active { what, len, seed }) = self
            .slots
            .get_mut(index)
            .and_then(|slot| slot.active.take())
        else {
            return Err(Stop::fail("not under way"));
        };
        let slot = &self.slots[index];
        let (name, flags) = match &what {
            What::Sent { tagged: false } => ("messages", done::SEND_),
            What::Sent { tagged: true } => ("tagged messages", done::TAGGED_SEND),
            What::Written { .. } => ("writes", done::RMA_WRITE),
            What::Read { .. } | What::ReadBack { .. } => ("reads", done::RMA_READ),
            What::Accessed { write: true, .. } => ("writes to receives", done::TAGGED_RMA_WRITE),
            What::Accessed { write: false, .. } => ("reads from receives", done::TAGGED_RMA_READ),
            What::Atomic(Atomic { kind, .. }) => match *kind {
                Kind::ATOMIC => ("atomics", done::ATOMIC_WRITE),
                Kind::FETCH_ATOMIC => ("fetching atomics", done::ATOMIC_READ),
                _ => ("comparing atomics", done::ATOMIC_READ),
            },
            What::Added => ("additions", done::ATOMIC_WRITE),
        };
        let told = if matches!(what, What::Sent { .. }) {
            0
        } else {
            len
        };
        check_eq!((entry.flags, entry.len), (flags, told), "{name}");
        let tally = &mut self.tally;
        tally.note(name);
        match what {
            What::Sent { .. } => tally.send.good += 1,
            What::Written { at, .. } => {
                slot.remote.has(at, len, seed, 0)?;
                tally.write.good += 1;
                tally.written += 1;
            }
            What::Read { at } | What::ReadBack { at } => {
                slot.local.has(0, len, seed, 0)?;
                slot.remote.has(at, len, seed, 0)?;
                tally.read.good += 1;
                tally.has_been_read += 1;
            }
            What::Accessed { open, at, write } => {
                self.shared.open[1 - self.which][open].has(at, len, seed, 0)?;
                if write {
                    tally.write.good += 1;
                } else {
                    slot.local.has(0, len, seed, 0)?;
                    tally.read.good += 1;
                }
                tally.accesses += 1;
            }
            What::Atomic(Atomic { kind, old, new }) => {
                let at = index as u64 * CELL;
                check_eq!(self.cells.target.bytes(at, len), new, "elements");
                if kind == Kind::ATOMIC {
                    tally.write.good += 1;
                } else {
                    check_eq!(self.cells.results.bytes(at, len), old, "what was fetched");
                    tally.read.good += 1;
                }
                // Operations that only read.
                if seed == 1 {
                    tally.has_been_read += 1;
                } else {
                    tally.written += 1;
                }
            }
            What::Added => {
                tally.write.good += 1;
                tally.added += seed;
            }
        }
        Ok(())
    }

    /// Something has failed: cancelled, cut off or not received in time.
    fn fails(&mut self, error: &CompletionError) -> Outcome {
        let CompletionError {
            entry, olen, err, ..
        } = error;
        let errno = KfiErrno::new(*err);
        if entry.op_context & RECEIVE != 0 {
            let index = (entry.op_context & !RECEIVE) as usize;
            self.tally.receive.bad += 1;
            let mut released = true;
            if errno == KfiErrno::EMSGSIZE {
                self.check_message(entry, entry.len + olen, entry.len)?;
                self.tally.arrived += 1;
                self.tally.note("cut off");
                released = !self.receives[index].multi || entry.flags & bits::MULTI_RECV != 0;
            } else if errno == KfiErrno::EHOSTUNREACH {
                // Over a network: the other side has cancelled it while its bytes came.
                self.tally.note("receives given up");
                released = !self.receives[index].multi || entry.flags & bits::MULTI_RECV != 0;
            } else {
                check_eq!(errno, KfiErrno::ECANCELED);
                self.tally.note("receives cancelled");
            }
            if released {
                self.receive(index)?;
            }
            return Ok(());
        }
        // On a busy machine the other side may be away for longer than messages wait.
        let given_up = errno == KfiErrno::EREMOTEIO;
        let cut_off = errno == KfiErrno::EMSGSIZE;
        check!(
            given_up || cut_off || errno == KfiErrno::ECANCELED,
            "an operation has failed"
        );
        self.tally.note(if given_up {
            "given up"
        } else if cut_off {
            "cut off at the other side"
        } else {
            "operations cancelled"
        });
        self.tally.cut_off += u64::from(cut_off);
        if entry.op_context == 0 {
            check!(
                given_up || cut_off,
                "an injected message cannot be cancelled"
            );
            self.tally.injected -= 1;
            self.tally.send.bad += 1;
            return Ok(());
        }
        let index = entry.op_context as usize - 1;
        let Some(Active { what, len, .. }) = self
            .slots
            .get_mut(index)
            .and_then(|slot| slot.active.take())
        else {
            return Err(Stop::fail("not under way"));
        };
        let tally = &mut self.tally;
        match what {
            What::Sent { .. } => tally.send.bad += 1,
            What::Accessed { write: true, .. } => tally.write.bad += 1,
            What::Accessed { write: false, .. } => tally.read.bad += 1,
            _ if given_up || cut_off => return Err(Stop::fail("not for a receive")),
            What::Written { told, .. } => {
                tally.write.bad += 1;
                // The other side will not see it.
                self.shared.seen[self.which].fetch_add(u64::from(told), Ordering::SeqCst);
            }
            What::Read { .. } | What::ReadBack { .. } => tally.read.bad += 1,
            What::Added => tally.write.bad += 1,
            What::Atomic(Atomic { kind, old, .. }) => {
                // Nothing is half done.
                let is = self.cells.target.bytes(index as u64 * CELL, len);
                check_eq!(is, old, "elements that should not change");
                if kind == Kind::ATOMIC {
                    tally.write.bad += 1;
                } else {
                    tally.read.bad += 1;
                }
            }
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.active.is_none())
    }

    /// Goes on until both sides are through.
    fn run(&mut self, time: Duration) -> Outcome {
        let start = Instant::now();
        for index in 0..self.receives.len() {
            self.receive(index)?;
        }
        // The other side needs its answers until it is through, too.
        let mut told = false;
        loop {
            if self.shared.failed.load(Ordering::Relaxed) {
                return Err(Stop::fail("the other side has failed"));
            }
            // A side that has hardly had a CPU has some to go.
            let over = start.elapsed() >= time && self.begun >= ENOUGH;
            if over && self.is_idle() && !told {
                told = true;
                self.shared.finished.fetch_add(1, Ordering::SeqCst);
            }
            // Asked before the queues are: all that both have sent is there by then.
            let both = told && self.shared.finished.load(Ordering::SeqCst) == 2;
            if !over {
                self.begin()?;
                if self.rng.random_ratio(1, 16) {
                    self.cancel()?;
                }
            }
            let mut idle = true;
            for cq in [&self.end.tx, &self.end.rx] {
                idle &= !self.progress(cq)?;
            }
            if both && idle {
                return Ok(());
            }
            if over && idle {
                kfi_host::thread::relax();
            }
            check!(
                start.elapsed() < time + Duration::from_secs(60),
                "operations do not end: {:?}",
                self.slots
                    .iter()
                    .filter_map(|slot| slot.active.as_ref())
                    .collect::<Vec<_>>()
            );
        }
    }

    /// Nothing around the memory has changed.
    fn check_memory(&self) -> Outcome {
        for slot in &self.slots {
            slot.local.intact()?;
            slot.remote.intact()?;
        }
        for receive in &self.receives {
            receive.area.intact()?;
        }
        let Cells {
            target,
            operands,
            compares,
            results,
        } = &self.cells;
        for area in [target, operands, compares, results] {
            area.intact()?;
        }
        Ok(())
    }
}

/// The kinds of operations that counters of an endpoint count.
const COUNTED: [u64; 6] = [
    bits::SEND,
    bits::RECV,
    bits::WRITE,
    bits::READ,
    bits::REMOTE_WRITE,
    bits::REMOTE_READ,
];

/// Messages that were posted without being told the end may still be on their way when both sides
/// are through: they are received here.
fn settle(sides: &mut [Side<'_>; 2]) -> Outcome {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let arrived: u64 = sides
            .iter()
            .map(|side| side.tally.arrived + side.tally.accessed)
            .sum();
        let sent: u64 = sides
            .iter()
            .map(|side| &side.tally)
            .map(|tally| tally.send.good + tally.injected + tally.cut_off + tally.accesses)
            .sum();
        if arrived == sent {
            return Ok(());
        }
        check!(
            Instant::now() < end,
            "{arrived} of {sent} messages and accesses have arrived"
        );
        for side in &mut *sides {
            for cq in [&side.end.tx, &side.end.rx] {
                side.progress(cq)?;
            }
        }
        kfi_host::thread::relax();
    }
}

/// Sends messages between the NICs, each to the others and to itself: what has failing allocations hardly ever gets a
/// connection, which is there then.
fn connect(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let area = Area::plain(&pair.session, 8)?;
    let own = pair.a.av.insert(&pair.a.name)?;
    for (from, to, peer) in [
        (&pair.a, &pair.b, pair.a.peer),
        (&pair.b, &pair.a, pair.b.peer),
        (&pair.a, &pair.a, own),
    ] {
        to.recv(area.all(), 1)?;
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(area.all());
        from.post(&send.to(peer).context(2))?;
        expect(&to.rx, 1, done::RECV_, 8)?;
        expect(&from.tx, 2, done::SEND_, 8)?;
    }
    drop(area);
    pair.close()
}

/// Random traffic; `begin` runs when all is open.
pub(super) fn traffic(env: &Env, begin: impl FnOnce() -> Outcome) -> Outcome {
    let caps = Caps::MSG
        | Caps::TAGGED
        | Caps::RMA
        | Caps::TAGGED_RMA
        | Caps::ATOMIC
        | Caps::MULTI_RECV
        | Caps::SOURCE
        | Caps::FENCE;
    let setup = Setup {
        cq_size: QUEUE,
        ..Setup::default()
    };
    let mut pair = Pair::prepare(env, caps, &setup)?;
    let mut counters: Vec<Vec<Counter>> = Vec::new();
    for (end, domain) in [(&pair.a, &pair.rig.domain), (&pair.b, &pair.far)] {
        let mut bound = Vec::new();
        for flags in COUNTED {
            let counter = domain.counter(&CntrAttr::new())?;
            end.ep.bind(counter.handle(), flags)?;
            bound.push(counter);
        }
        counters.push(bound);
    }
    pair.connect()?;
    let time = Duration::from_secs_f64(env.settings.soak * env.settings.scale.clamp(0.1, 1.0));
    env.note(format!(
        "{:.1} s, repeat with --seed {}",
        time.as_secs_f64(),
        env.settings.seed
    ));
    // Elements of the second and of the first side; the latter have the number that both add to.
    let cells = |domain: &kfi::Domain| -> Result<(Area, MemoryRegion), Stop> {
        let area = Area::plain(&pair.session, SLOTS as u64 * CELL + 8)?;
        area.write(0, &vec![0; area.len as usize]);
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
        let region = domain.register(&[area.all()], &MrAttr::new(access, CELLS))?;
        Ok((area, region))
    };
    let near = cells(&pair.rig.domain)?;
    let far = cells(&pair.far)?;
    let own = pair.a.av.insert(&pair.a.name)?;
    let open = || -> Result<Vec<_>, Stop> {
        (0..RECEIVES)
            .map(|index| Ok(Arc::new(memory(&pair, index)?)))
            .collect()
    };
    let shared = Shared {
        open: [open()?, open()?],
        ..Shared::default()
    };
    let sides = [
        Side::new(env, &pair, 0, (&far.0, own), &shared)?,
        Side::new(env, &pair, 1, (&near.0, pair.b.peer), &shared)?,
    ];
    connect(env)?;
    begin()?;
    let sides = in_threads(sides, |mut side| {
        pin(side.which)?;
        let result = side.run(time);
        if let Err(stop) = &result {
            // The first one says what has gone wrong.
            if !shared.failed.swap(true, Ordering::SeqCst) {
                env.note(format!("side {}: {stop:?}", side.which));
            }
        }
        result?;
        Ok(side)
    })?;
    let mut sides: [Side<'_>; 2] = sides
        .try_into()
        .map_err(|_| Stop::fail("there are not two sides"))?;
    settle(&mut sides)?;

    for side in &sides {
        let notes = &side.tally.notes;
        env.note(format!(
            "side {}: {} begun, {notes:?}",
            side.which, side.begun
        ));
        side.check_memory()?;
        check_eq!(
            side.tally.send.good + side.tally.injected + side.tally.cut_off,
            sides[1 - side.which].tally.arrived,
            "messages of side {}",
            side.which
        );
        let kinds = [
            "messages",
            "tagged messages",
            "injected messages",
            "writes",
            "injected writes",
            "told of writes",
            "reads",
            "writes to receives",
            "reads from receives",
            "atomics",
            "fetching atomics",
            "comparing atomics",
            "additions",
            "cut off",
        ];
        for kind in kinds {
            check!(notes.contains_key(kind), "side {}: no {kind}", side.which);
        }
    }
    check!(
        sides
            .iter()
            .any(|side| side.tally.notes.contains_key("receives cancelled")),
        "no receive was cancelled"
    );
    let sum = u64::from_le_bytes(near.0.bytes(SLOTS as u64 * CELL, 8)[..].try_into()?);
    check_eq!(
        sum,
        sides[0].tally.added + sides[1].tally.added,
        "what both have added"
    );
    // Every one of them was counted once (contract, section 5).
    let additions = |side: usize| {
        let notes = &sides[side].tally.notes;
        notes.get("additions").copied().unwrap_or(0)
    };
    for (which, side) in sides.iter().enumerate() {
        let (mine, other) = (&side.tally, &sides[1 - which].tally);
        // All additions are to the first side.
        let added = [additions(0) + additions(1), 0][which];
        let should = [
            (mine.send.good + mine.injected, mine.send.bad),
            (mine.receive.good, mine.receive.bad),
            (mine.write.good, mine.write.bad),
            (mine.read.good, mine.read.bad),
            (other.written + added, 0),
            (other.has_been_read, 0),
        ];
        for ((counter, (good, bad)), flags) in counters[which].iter().zip(should).zip(COUNTED) {
            expect_count(counter, good, bad).map_err(|stop| {
                Stop::fail(format!("counter {flags:#x} of side {which}: {stop:?}"))
            })?;
        }
    }
    drop(sides);
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((near, far));
    let Pair { a, b, far, rig } = pair;
    drop((a, b, counters));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn random_traffic(env: &Env) -> Outcome {
    traffic(env, || Ok(()))
}

/// After all that the modules can be unloaded, and work when they are loaded again.
fn nothing_is_left(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    for _ in 0..2 {
        let mut short = env.settings.clone();
        short.soak = env.settings.soak.min(1.0);
        traffic(&env.with(short)?, || Ok(()))?;
        Modules::unload_all()?;
        modules.load_all()?;
    }
    Ok(())
}
