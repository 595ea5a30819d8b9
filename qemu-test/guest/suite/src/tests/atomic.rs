// SPDX-License-Identifier: GPL-2.0

//! Atomic operations.

use kfi::{bits, uapi, Caps, Error, Form, KfiErrno, Kind, MrAttr, OpType, Operation, Work};
use rand::RngExt;

use crate::check::{Outcome, Stop};
use crate::ends::{complete, done, expect, pattern, Area, Pair, Setup, KINDS};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin, Rig};
use crate::{check, check_eq, tests};

tests! {
    "atomic" parallel;
    "every-type-and-operation" ["kfi_atomic.h"] every_type_and_operation;
    "what-is-offered" ["kfi_atomic.h kfi_domain.h"] what_is_offered;
    "offered-as-allowed" ["kfi_atomic.h"] offered_as_allowed;
    "forms" ["kfi_atomic.h"] forms;
    "bad-operations" ["kfi_atomic.h"] bad_operations;
    "access" ["kfi_atomic.h"] access;
    "across-pages" ["kfi_atomic.h"] across_pages;
    alone "nothing-lost-across-pages" ["kfi_atomic.h"] nothing_lost_across_pages;
    alone "nothing-lost" ["kfi_atomic.h"] nothing_lost;
}

const CAPS: Caps = Caps::ATOMIC;

/// Integer types: number, bytes, whether they have a sign.
pub(super) const TYPES: [(u32, usize, bool); 8] = [
    (uapi::KFI_INT8, 1, true),
    (uapi::KFI_UINT8, 1, false),
    (uapi::KFI_INT16, 2, true),
    (uapi::KFI_UINT16, 2, false),
    (uapi::KFI_INT32, 4, true),
    (uapi::KFI_UINT32, 4, false),
    (uapi::KFI_INT64, 8, true),
    (uapi::KFI_UINT64, 8, false),
];

/// Operations with one operand.
pub(super) const PLAIN: [u32; 11] = [
    uapi::KFI_MIN,
    uapi::KFI_MAX,
    uapi::KFI_SUM,
    uapi::KFI_PROD,
    uapi::KFI_LOR,
    uapi::KFI_LAND,
    uapi::KFI_BOR,
    uapi::KFI_BAND,
    uapi::KFI_LXOR,
    uapi::KFI_BXOR,
    uapi::KFI_ATOMIC_WRITE,
];

/// Operations that compare.
pub(super) const COMPARE: [u32; 7] = [
    uapi::KFI_CSWAP,
    uapi::KFI_CSWAP_NE,
    uapi::KFI_CSWAP_LE,
    uapi::KFI_CSWAP_LT,
    uapi::KFI_CSWAP_GE,
    uapi::KFI_CSWAP_GT,
    uapi::KFI_MSWAP,
];

pub(super) const READ: u32 = uapi::KFI_ATOMIC_READ;

/// An element as a number.
pub(super) fn number(bytes: &[u8], signed: bool) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = i128::from_le_bytes(wide);
    let bits = bytes.len() * 8;
    if signed && value >> (bits - 1) & 1 == 1 {
        value - (1 << bits)
    } else {
        value
    }
}

/// The new value of an element, by a model.
pub(super) fn model(op: u32, old: i128, new: i128, compare: i128) -> i128 {
    let when = |condition| if condition { new } else { old };
    match u64::from(op) {
        op if op == u64::from(uapi::KFI_MIN) => old.min(new),
        op if op == u64::from(uapi::KFI_MAX) => old.max(new),
        op if op == u64::from(uapi::KFI_SUM) => old + new,
        op if op == u64::from(uapi::KFI_PROD) => old.wrapping_mul(new),
        op if op == u64::from(uapi::KFI_LOR) => i128::from(old != 0 || new != 0),
        op if op == u64::from(uapi::KFI_LAND) => i128::from(old != 0 && new != 0),
        op if op == u64::from(uapi::KFI_LXOR) => i128::from((old != 0) != (new != 0)),
        op if op == u64::from(uapi::KFI_BOR) => old | new,
        op if op == u64::from(uapi::KFI_BAND) => old & new,
        op if op == u64::from(uapi::KFI_BXOR) => old ^ new,
        op if op == u64::from(uapi::KFI_ATOMIC_WRITE) => new,
        op if op == u64::from(uapi::KFI_CSWAP) => when(compare == old),
        op if op == u64::from(uapi::KFI_CSWAP_NE) => when(compare != old),
        op if op == u64::from(uapi::KFI_CSWAP_LE) => when(compare <= old),
        op if op == u64::from(uapi::KFI_CSWAP_LT) => when(compare < old),
        op if op == u64::from(uapi::KFI_CSWAP_GE) => when(compare >= old),
        op if op == u64::from(uapi::KFI_CSWAP_GT) => when(compare > old),
        op if op == u64::from(uapi::KFI_MSWAP) => new & compare | old & !compare,
        _ => old,
    }
}

/// Memory of one operation.
struct Memory {
    operand: Area,
    compare: Area,
    result: Area,
    target: Area,
}

impl Memory {
    fn new(pair: &Pair, len: u64) -> Result<Self, Stop> {
        let area = || Area::plain(&pair.session, len);
        Ok(Self {
            operand: area()?,
            compare: area()?,
            result: area()?,
            target: area()?,
        })
    }

    /// An operation on the first elements.
    fn operation(&self, pair: &Pair, kind: Kind, form: Form, count: u64) -> Operation {
        let mut operation = pair
            .a
            .operation(kind, form)
            .segment(self.operand.elements(0, count))
            .rma(0, count, 1);
        if kind != Kind::ATOMIC {
            operation = operation.result(self.result.elements(0, count));
        }
        if kind == Kind::COMPARE_ATOMIC {
            operation = operation.compare(self.compare.elements(0, count));
        }
        operation
    }
}

fn every_type_and_operation(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let Pair { a, b, .. } = &pair;
    let mut rng = env.rng();
    let memory = Memory::new(&pair, 4096)?;
    let region = pair.region(&memory.target, 1)?;
    let mut done_so_far = 0;
    let mut cases: Vec<(Kind, u32)> = vec![(Kind::FETCH_ATOMIC, READ)];
    cases.extend(PLAIN.map(|op| (Kind::ATOMIC, op)));
    cases.extend(PLAIN.map(|op| (Kind::FETCH_ATOMIC, op)));
    cases.extend(COMPARE.map(|op| (Kind::COMPARE_ATOMIC, op)));
    for (datatype, size, signed) in TYPES {
        for (kind, op) in &cases {
            let limit = match a.ep.atomic_valid(*kind, datatype, *op) {
                Err(Error::Fabric(KfiErrno::EOPNOTSUPP)) => continue,
                limit => limit?,
            };
            for count in [1, 3, limit.min(4096 / size as u64)] {
                let len = count * size as u64;
                // Small numbers meet, large ones overflow.
                let mut random = |area: &Area| {
                    let bytes: Vec<u8> = (0..len)
                        .map(|i| match i % size as u64 {
                            0 => rng.random_range(0..4),
                            _ => [0, 0xff, rng.random()][rng.random_range(0..3)],
                        })
                        .collect();
                    area.clear();
                    area.write(0, &bytes);
                    bytes
                };
                let old = random(&memory.target);
                let new = random(&memory.operand);
                let compare = random(&memory.compare);
                memory.result.clear();
                a.post(
                    &memory
                        .operation(&pair, *kind, Form::PLAIN, count)
                        .atomic(datatype, *op)
                        .context(5),
                )?;
                let flags = if *kind == Kind::ATOMIC {
                    done::ATOMIC_WRITE
                } else {
                    done::ATOMIC_READ
                };
                expect(&a.tx, 5, flags, len)?;
                let is = memory.target.bytes(0, len);
                let elements = old
                    .chunks(size)
                    .zip(new.chunks(size))
                    .zip(compare.chunks(size));
                let should: Vec<u8> = elements
                    .flat_map(|((old, new), compare)| {
                        let value = model(
                            *op,
                            number(old, signed),
                            number(new, signed),
                            number(compare, signed),
                        );
                        value.to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                check!(
                    is == should,
                    "{kind} type {datatype} operation {op}, {count} elements: {is:x?} from \
                     {old:x?} {new:x?} {compare:x?}, should be {should:x?}"
                );
                check_eq!(memory.target.bytes(len, 1), [0xee], "the byte after");
                if *kind != Kind::ATOMIC {
                    check_eq!(memory.result.bytes(0, len), old, "what was fetched");
                }
                done_so_far += 1;
            }
        }
    }
    check!(done_so_far > 0, "no operation is valid");
    env.note(format!("{done_so_far} operations"));
    b.quiet()?;
    drop((region, memory));
    pair.close()
}

fn what_is_offered(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let floats = [
        uapi::KFI_FLOAT,
        uapi::KFI_DOUBLE,
        uapi::KFI_FLOAT_COMPLEX,
        uapi::KFI_DOUBLE_COMPLEX,
        uapi::KFI_LONG_DOUBLE,
        uapi::KFI_LONG_DOUBLE_COMPLEX,
        1000,
    ];
    for kind in [Kind::ATOMIC, Kind::FETCH_ATOMIC, Kind::COMPARE_ATOMIC] {
        // There is no floating point in the kernel.
        for datatype in floats {
            for op in [uapi::KFI_SUM, uapi::KFI_CSWAP] {
                let result = pair.a.ep.atomic_valid(kind, datatype, op);
                expect_fabric(result, KfiErrno::EOPNOTSUPP)?;
                let result = pair.rig.domain.query_atomic(datatype, op, 0);
                expect_fabric(result, KfiErrno::EOPNOTSUPP)?;
            }
        }
        for (datatype, size, _) in TYPES {
            for op in PLAIN.into_iter().chain(COMPARE).chain([READ, 1000]) {
                let valid = pair.a.ep.atomic_valid(kind, datatype, op);
                let query = pair.rig.domain.query_atomic(datatype, op, 0);
                let is_compare = COMPARE.contains(&op);
                let exists = match kind {
                    Kind::COMPARE_ATOMIC => is_compare,
                    Kind::FETCH_ATOMIC => !is_compare && op != 1000,
                    _ => !is_compare && op != READ && op != 1000,
                };
                if exists {
                    // Both say the same.
                    check_eq!(query?, (valid?, size as u64), "{kind} {datatype} {op}");
                } else {
                    expect_fabric(valid, KfiErrno::EOPNOTSUPP)?;
                }
                if op == 1000 {
                    expect_fabric(query, KfiErrno::EOPNOTSUPP)?;
                }
            }
        }
    }
    pair.close()
}

/// An endpoint offers the forms that it has the capabilities for, and takes these.
fn offered_as_allowed(env: &Env) -> Outcome {
    let entry = Rig::new(env)?.info.entries()[0].clone();
    let (u64_type, sum) = (uapi::KFI_UINT64, uapi::KFI_SUM);
    for (caps, plain, others) in [
        (Caps::MSG | Caps::SEND, false, false),
        (Caps::RMA | Caps::READ | Caps::WRITE, false, false),
        (Caps::ATOMIC | Caps::WRITE, true, false),
        (Caps::ATOMIC | Caps::READ, false, true),
        (Caps::ATOMIC | Caps::READ | Caps::WRITE, true, true),
    ] {
        let mut entry = entry.clone();
        entry.tx_attr.caps = caps;
        let setup = Setup {
            entry: Some(entry),
            ..Setup::default()
        };
        let pair = Pair::with(env, CAPS, &setup)?;
        let a = &pair.a;
        let memory = Memory::new(&pair, 64)?;
        let region = pair.region(&memory.target, 1)?;
        for (kind, op, allowed) in [
            (Kind::ATOMIC, sum, plain),
            (Kind::FETCH_ATOMIC, sum, others),
            (Kind::COMPARE_ATOMIC, uapi::KFI_CSWAP, others),
        ] {
            let valid = a.ep.atomic_valid(kind, u64_type, op);
            let operation = memory.operation(&pair, kind, Form::PLAIN, 1);
            let posted = a.ep.post(&operation.atomic(u64_type, op).context(1));
            // Providers may allow more than was asked for.
            if valid.is_err() || posted.is_err() {
                check!(!allowed, "{kind} with {caps}: {valid:?}, {posted:?}");
                expect_fabric(valid, KfiErrno::EOPNOTSUPP)?;
                expect_fabric(posted, KfiErrno::EOPNOTSUPP)?;
            } else {
                check_eq!(complete(&a.tx)?.op_context, 1);
            }
        }
        drop((region, memory));
        pair.close()?;
    }
    Ok(())
}

fn forms(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let Pair { a, .. } = &pair;
    let memory = Memory::new(&pair, 64)?;
    let region = pair.region(&memory.target, 1)?;
    memory.target.write(0, &[0; 64]);
    memory.operand.write(0, &1_u64.to_le_bytes().repeat(8));
    let (u64_type, sum) = (uapi::KFI_UINT64, uapi::KFI_SUM);
    let mut total = 0_u64;
    for form in [Form::PLAIN, Form::V, Form::MSG] {
        a.post(
            &memory
                .operation(&pair, Kind::ATOMIC, form, 8)
                .atomic(u64_type, sum)
                .context(1),
        )?;
        expect(&a.tx, 1, done::ATOMIC_WRITE, 64)?;
        total += 1;
        a.post(
            &memory
                .operation(&pair, Kind::FETCH_ATOMIC, form, 8)
                .atomic(u64_type, sum)
                .context(2),
        )?;
        expect(&a.tx, 2, done::ATOMIC_READ, 64)?;
        check_eq!(memory.result.bytes(0, 64), total.to_le_bytes().repeat(8));
        total += 1;
    }
    // In pieces, here and there.
    let mut pieces = a
        .operation(Kind::ATOMIC, Form::MSG)
        .atomic(u64_type, sum)
        .context(3);
    for i in 0..4 {
        pieces = pieces
            .segment(memory.operand.elements(i * 16, 2))
            .rma((3 - i) * 16, 2, 1);
    }
    a.post(&pieces)?;
    expect(&a.tx, 3, done::ATOMIC_WRITE, 64)?;
    total += 1;
    // Injected.
    a.post(
        &a.operation(Kind::ATOMIC, Form::INJECT)
            .segment(memory.operand.elements(0, 8))
            .rma(0, 8, 1)
            .atomic(u64_type, sum),
    )?;
    total += 1;
    a.post(
        &memory
            .operation(&pair, Kind::FETCH_ATOMIC, Form::MSG, 8)
            .atomic(u64_type, READ)
            .flags(bits::FENCE)
            .context(4),
    )?;
    expect(&a.tx, 4, done::ATOMIC_READ, 64)?;
    check_eq!(memory.result.bytes(0, 64), total.to_le_bytes().repeat(8));
    // With data the peer hears of it.
    let (written, read) = (bits::REMOTE_WRITE, bits::REMOTE_READ);
    for (kind, op, here, there) in [
        (Kind::ATOMIC, sum, done::ATOMIC_WRITE, written),
        (Kind::FETCH_ATOMIC, sum, done::ATOMIC_READ, written),
        (Kind::FETCH_ATOMIC, READ, done::ATOMIC_READ, read),
    ] {
        a.post(
            &memory
                .operation(&pair, kind, Form::MSG, 8)
                .atomic(u64_type, op)
                .flags(bits::REMOTE_CQ_DATA)
                .data(77)
                .context(5),
        )?;
        expect(&a.tx, 5, here, 64)?;
        let flags = bits::ATOMIC | there | bits::REMOTE_CQ_DATA;
        check_eq!(expect(&pair.b.rx, 0, flags, 64)?.data, 77);
    }
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((region, memory));
    pair.close()
}

fn bad_operations(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let memory = Memory::new(&pair, 8192)?;
    let region = pair.region(&memory.target, 1)?;
    let (kind, form) = (Kind::ATOMIC, Form::MSG);
    let (u64_type, sum) = (uapi::KFI_UINT64, uapi::KFI_SUM);
    let fails = |operation: Operation, errno| expect_fabric(a.ep.post(&operation), errno);
    let plain = || memory.operation(&pair, kind, form, 8);
    fails(plain().atomic(uapi::KFI_DOUBLE, sum), KfiErrno::EOPNOTSUPP)?;
    fails(
        plain().atomic(u64_type, uapi::KFI_CSWAP),
        KfiErrno::EOPNOTSUPP,
    )?;
    fails(plain().atomic(u64_type, READ), KfiErrno::EOPNOTSUPP)?;
    // None, more than there may be, and not as many here as there.
    fails(
        memory.operation(&pair, kind, form, 0).atomic(u64_type, sum),
        KfiErrno::EINVAL,
    )?;
    let limit = a.ep.atomic_valid(kind, u64_type, sum)?;
    if limit < 1024 {
        fails(
            memory
                .operation(&pair, kind, form, limit + 1)
                .atomic(u64_type, sum),
            KfiErrno::EMSGSIZE,
        )?;
    }
    fails(
        plain().rma(64, 1, 1).atomic(u64_type, sum),
        KfiErrno::EINVAL,
    )?;
    // The same of each list of those that have several, and later.
    let domain = &pair.rig.domain;
    let counter = pair.rig.counter()?;
    let one = memory.operand.elements(4096, 1);
    for (kind, op, op_type) in [
        (Kind::FETCH_ATOMIC, sum, OpType::FETCH_ATOMIC),
        (
            Kind::COMPARE_ATOMIC,
            uapi::KFI_CSWAP,
            OpType::COMPARE_ATOMIC,
        ),
    ] {
        for form in [Form::V, Form::MSG] {
            let right = memory.operation(&pair, kind, form, 7).atomic(u64_type, op);
            let mut wrong = vec![right.clone().segment(one), right.clone().result(one)];
            if kind == Kind::COMPARE_ATOMIC {
                wrong.push(right.clone().compare(one));
            }
            if form == Form::MSG {
                wrong.push(right.clone().rma(64, 1, 1));
            }
            for operation in wrong {
                if form == Form::MSG {
                    let work = Work::transfer(op_type, a.ep.handle(), &operation, &counter, 1);
                    expect_fabric(domain.queue_work(&work), KfiErrno::EINVAL)?;
                }
                fails(operation, KfiErrno::EINVAL)?;
            }
        }
    }
    drop(counter);
    a.quiet()?;
    check_eq!(memory.target.bytes(0, 64), [0xee; 64].to_vec());
    drop((region, memory));
    pair.close()
}

fn access(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    let memory = Memory::new(&pair, 64)?;
    let (u64_type, sum) = (uapi::KFI_UINT64, uapi::KFI_SUM);
    for (access, kind, op, allowed) in [
        (bits::REMOTE_READ, Kind::ATOMIC, sum, false),
        (bits::REMOTE_READ, Kind::FETCH_ATOMIC, sum, false),
        (bits::REMOTE_READ, Kind::FETCH_ATOMIC, READ, true),
        (bits::REMOTE_WRITE, Kind::ATOMIC, sum, true),
        (bits::REMOTE_WRITE, Kind::FETCH_ATOMIC, sum, false),
        (bits::REMOTE_WRITE, Kind::FETCH_ATOMIC, READ, false),
    ] {
        let attr = MrAttr::new(access, 1);
        let region = pair.far.register(&[memory.target.all()], &attr)?;
        memory.target.clear();
        a.post(
            &memory
                .operation(&pair, kind, Form::PLAIN, 1)
                .atomic(u64_type, op)
                .context(1),
        )?;
        let result = a.tx.sread_ms(1, 20_000);
        check_eq!(
            result.is_ok(),
            allowed,
            "{kind} operation {op} with access {access:#x}"
        );
        if !allowed {
            check_eq!(a.tx.read_err()?.entry.op_context, 1);
            check_eq!(memory.target.bytes(0, 8), [0xee; 8]);
        }
        drop(region);
    }
    drop(memory);
    pair.close()
}

/// Where a page ends in an area that begins where memory does: 64 bytes are before it.
const PAGE_END: u64 = 4096 - 64;

/// Elements that lie in two pages, which may be anywhere, and those before and behind them.
fn across_pages(env: &Env) -> Outcome {
    const COUNT: u64 = 100;
    let pair = Pair::new(env, CAPS)?;
    let a = &pair.a;
    for kind in KINDS {
        let target = Area::new(&pair.session, kind, 0, 8192)?;
        let memory = Memory {
            target,
            ..Memory::new(&pair, 1024)?
        };
        let region = pair.region(&memory.target, 1)?;
        for (datatype, size, signed) in TYPES {
            let size_u64 = size as u64;
            // So many bytes of one of them are in the first page.
            for inside in [1, size_u64 / 2, size_u64 - 1] {
                if inside == 0 || inside >= size_u64 {
                    continue;
                }
                let first = PAGE_END - inside - COUNT / 2 * size_u64;
                let len = COUNT * size_u64;
                memory.target.clear();
                let old = pattern(inside, 0, len as usize);
                memory.target.write(first, &old);
                let new = pattern(inside + 100, 0, len as usize);
                memory.operand.write(0, &new);
                memory.compare.write(0, &old);
                // The half of them is not what is compared with.
                memory.compare.write(0, &new[..len as usize / 2]);
                for (kind, op) in [
                    (Kind::FETCH_ATOMIC, READ),
                    (Kind::FETCH_ATOMIC, uapi::KFI_SUM),
                    (Kind::ATOMIC, uapi::KFI_BXOR),
                    (Kind::COMPARE_ATOMIC, uapi::KFI_CSWAP),
                ] {
                    let before = memory.target.bytes(first, len);
                    let mut operation = a
                        .operation(kind, Form::PLAIN)
                        .segment(memory.operand.elements(0, COUNT))
                        .rma(first, COUNT, 1)
                        .atomic(datatype, op)
                        .context(3);
                    if kind != Kind::ATOMIC {
                        operation = operation.result(memory.result.elements(0, COUNT));
                    }
                    if kind == Kind::COMPARE_ATOMIC {
                        operation = operation.compare(memory.compare.elements(0, COUNT));
                    }
                    a.post(&operation)?;
                    complete(&a.tx)?;
                    let compare = memory.compare.bytes(0, len);
                    let elements = before
                        .chunks(size)
                        .zip(new.chunks(size))
                        .zip(compare.chunks(size));
                    let should: Vec<u8> = elements
                        .flat_map(|((old, new), compare)| {
                            let [old, new, compare] =
                                [old, new, compare].map(|bytes| number(bytes, signed));
                            model(op, old, new, compare).to_le_bytes()[..size].to_vec()
                        })
                        .collect();
                    let is = memory.target.bytes(first, len);
                    check!(
                        is == should,
                        "{kind} type {datatype} operation {op} at {first}"
                    );
                    if kind != Kind::ATOMIC {
                        check_eq!(memory.result.bytes(0, len), before, "what was fetched");
                    }
                    for around in [first - 1, first + len] {
                        check_eq!(memory.target.bytes(around, 1), [0xee], "at {around}");
                    }
                }
            }
        }
        drop((region, memory));
    }
    a.quiet()?;
    pair.b.quiet()?;
    pair.close()
}

/// Two threads, by two endpoints, add to numbers that lie across the end of a page, and where two places
/// meet whose locks are held one after the other.
fn nothing_lost_across_pages(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let rounds = env.scaled(5_000, 500);
    let to_itself = pair.b.av.insert(&pair.b.name)?;
    for kind in KINDS {
        let target = Area::new(&pair.session, kind, 0, 3 * 4096)?;
        target.write(0, &vec![0; 3 * 4096]);
        let region = pair.region(&target, 1)?;
        let numbers = [PAGE_END - 4, PAGE_END + 252];
        in_threads([0_usize, 1], |which| {
            pin(which)?;
            let (end, to) = if which == 0 {
                (&pair.a, pair.a.peer)
            } else {
                (&pair.b, to_itself)
            };
            let memory = Memory::new(&pair, 8)?;
            memory.operand.write(0, &1_u64.to_le_bytes());
            let mut last = [0; 2];
            for round in 0..rounds {
                let at = (round as usize + which) % 2;
                let operation = Operation::new(Kind::FETCH_ATOMIC, Form::PLAIN)
                    .to(to)
                    .segment(memory.operand.elements(0, 1))
                    .result(memory.result.elements(0, 1))
                    .rma(numbers[at], 1, 1)
                    .atomic(uapi::KFI_UINT64, uapi::KFI_SUM);
                end.post(&operation)?;
                expect(&end.tx, 0, done::ATOMIC_READ, 8)?;
                let mut old = [0; 8];
                old.copy_from_slice(&memory.result.bytes(0, 8));
                let old = u64::from_le_bytes(old);
                check!(old >= last[at], "{old} after {}", last[at]);
                last[at] = old;
            }
            Ok(())
        })?;
        for at in numbers {
            check_eq!(
                target.bytes(at, 8),
                rounds.to_le_bytes(),
                "{rounds} at {at}"
            );
        }
        drop((region, target));
    }
    pair.close()
}

/// Two endpoints, two threads, one target: additions and exchanges.
fn nothing_lost(env: &Env) -> Outcome {
    let pair = Pair::new(env, CAPS)?;
    let rounds = env.scaled(10_000, 500);
    let target = Area::plain(&pair.session, 16)?;
    target.write(0, &[0; 16]);
    let region = pair.region(&target, 1)?;
    let to_itself = pair.b.av.insert(&pair.b.name)?;
    let u64_type = uapi::KFI_UINT64;
    in_threads([0_usize, 1], |which| {
        pin(which)?;
        let (end, to) = if which == 0 {
            (&pair.a, pair.a.peer)
        } else {
            (&pair.b, to_itself)
        };
        let memory = Memory::new(&pair, 8)?;
        let round_trip = |kind, op: u32, addr, operand: u64, compare: u64| {
            memory.operand.write(0, &operand.to_le_bytes());
            memory.compare.write(0, &compare.to_le_bytes());
            let mut operation = Operation::new(kind, Form::PLAIN)
                .to(to)
                .segment(memory.operand.elements(0, 1))
                .result(memory.result.elements(0, 1))
                .rma(addr, 1, 1)
                .atomic(u64_type, op);
            if kind == Kind::COMPARE_ATOMIC {
                operation = operation.compare(memory.compare.elements(0, 1));
            }
            end.post(&operation)?;
            expect(&end.tx, 0, done::ATOMIC_READ, 8)?;
            let mut old = [0; 8];
            old.copy_from_slice(&memory.result.bytes(0, 8));
            Ok::<u64, Stop>(u64::from_le_bytes(old))
        };
        let mut last = 0;
        for _ in 0..rounds {
            let old = round_trip(Kind::FETCH_ATOMIC, uapi::KFI_SUM, 0, 1, 0)?;
            check!(old == 0 || old >= last, "{old} after {last}");
            last = old;
            // The same with an exchange, until it works.
            let mut is = old;
            loop {
                let cswap = uapi::KFI_CSWAP;
                let found = round_trip(Kind::COMPARE_ATOMIC, cswap, 8, is + 1, is)?;
                if found == is {
                    break;
                }
                is = found;
            }
        }
        Ok(())
    })?;
    let both = (2 * rounds).to_le_bytes();
    check_eq!(target.bytes(0, 8), both, "after {rounds} additions each");
    check_eq!(target.bytes(8, 8), both, "after {rounds} exchanges each");
    drop((region, target));
    pair.close()
}
