// SPDX-License-Identifier: GPL-2.0

//! The contents of completions, all in one table: flags are compared by equality by consumers.

use kfi::{bits, uapi, Caps, CompletionQueue, Form, Kind, MrAttr, Operation};

use crate::check::Outcome;
use crate::ends::{done, expect, Area, End, Pair};
use crate::env::Env;
use crate::{check_eq, tests};

tests! {
    "flags" parallel;
    "exact-table" ["kfi_eq.h kfi_endpoint.h kfi_tagged.h kfi_rma.h kfi_atomic.h"] exact_table;
}

const DATA: u64 = 0x1122_3344_5566_7788;
const TAG: u64 = 0x77;
const KEY: u64 = 1;
/// The region that tells of what is done to it.
const LOUD: u64 = 2;
const LEN: u64 = 24;

/// A row: what is posted, and what either side is told, if anything.
struct Row {
    name: &'static str,
    /// The receive that the second end posts before.
    receive: Option<Operation>,
    /// The operation that the first end posts.
    operation: Operation,
    /// Flags of the completion at the first end.
    here: Option<u64>,
    /// Flags of the completion at the second end.
    there: Option<u64>,
    /// Whether there is data.
    data: bool,
}

/// Posts, and compares all that is told.
fn run(a: &End, b: &End, row: &Row) -> Outcome {
    if let Some(receive) = &row.receive {
        b.post(&receive.clone().context(3))?;
    }
    let context = if row.here.is_some() { 5 } else { 0 };
    a.post(&row.operation.clone().context(context))?;
    let told = |cq: &CompletionQueue, context, flags: Option<u64>| -> Outcome {
        let Some(flags) = flags else {
            return Ok(());
        };
        let entry = expect(cq, context, flags, LEN)?;
        let has_data = flags & bits::REMOTE_CQ_DATA != 0;
        check_eq!(entry.data, if has_data { DATA } else { 0 });
        Ok(())
    };
    let there = row.there.map(|flags| {
        if row.data {
            flags | bits::REMOTE_CQ_DATA
        } else {
            flags
        }
    });
    let context = if row.receive.is_some() { 3 } else { 0 };
    told(&b.rx, context, there)?;
    told(&a.tx, 5, row.here)?;
    a.quiet()?;
    b.quiet()
}

fn exact_table(env: &Env) -> Outcome {
    let caps =
        Caps::MSG | Caps::TAGGED | Caps::RMA | Caps::ATOMIC | Caps::MULTI_RECV | Caps::TAGGED_RMA;
    let pair = Pair::new(env, caps)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 256)?;
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
    let silent = pair.region(&memory, KEY)?;
    let attr = MrAttr::new(access, LOUD).flags(bits::RMA_EVENT);
    let loud = pair.far.register(&[memory.all()], &attr)?;
    let min = (
        uapi::KFI_OPT_ENDPOINT as i32,
        uapi::KFI_OPT_MIN_MULTI_RECV as i32,
    );
    b.ep.set_option(min.0, min.1, &LEN.to_ne_bytes())?;

    let operation = |kind, form| {
        a.operation(kind, form)
            .segment(memory.part(0, LEN))
            .tag(TAG, 0)
    };
    let with_data = |kind, form: Form| {
        let operation = operation(kind, form).data(DATA);
        if form == Form::MSG {
            return operation.flags(bits::REMOTE_CQ_DATA);
        }
        operation
    };
    let receive = |kind| {
        Operation::new(kind, Form::MSG)
            .segment(memory.part(128, LEN))
            .tag(TAG, 0)
    };
    // With room for two of them, of which the second one is the last.
    let several = |kind| {
        Operation::new(kind, Form::MSG)
            .segment(memory.part(128, 2 * LEN + 4))
            .tag(TAG, 0)
            .flags(bits::MULTI_RECV)
    };
    let region = |operation: Operation, key| operation.rma(0, LEN, key);
    let atomic = |kind, form| {
        let count = LEN / 8;
        let elements = memory.elements(0, count);
        let operation = a
            .operation(kind, form)
            .segment(elements)
            .rma(64, count, KEY);
        match kind {
            Kind::ATOMIC => operation.atomic(uapi::KFI_UINT64, uapi::KFI_SUM),
            Kind::FETCH_ATOMIC => operation
                .atomic(uapi::KFI_UINT64, uapi::KFI_SUM)
                .result(memory.elements(192, count)),
            _ => operation
                .atomic(uapi::KFI_UINT64, uapi::KFI_CSWAP)
                .result(memory.elements(192, count))
                .compare(memory.elements(160, count)),
        }
    };
    let mut count = 0;
    let mut row = |name, receive, operation, here, there, data| -> Outcome {
        let row = Row {
            name,
            receive,
            operation,
            here,
            there,
            data,
        };
        count += 1;
        run(a, b, &row).map_err(|stop| crate::check::Stop::fail(format!("{}: {stop:?}", row.name)))
    };

    for (kind, other, here, there) in [
        (Kind::SEND, Kind::RECV, done::SEND_, done::RECV_),
        (
            Kind::TSEND,
            Kind::TRECV,
            done::TAGGED_SEND,
            done::TAGGED_RECV,
        ),
    ] {
        let last = there | bits::MULTI_RECV;
        let post = |receive: &dyn Fn(Kind) -> Operation| Some(receive(other));
        // None of the flags of a call gets into an entry.
        for flags in [
            0,
            bits::COMPLETION,
            bits::INJECT,
            bits::INJECT_COMPLETE,
            bits::TRANSMIT_COMPLETE,
            bits::DELIVERY_COMPLETE,
            bits::FENCE,
        ] {
            let send = operation(kind, Form::MSG).flags(flags);
            row(
                "message",
                post(&receive),
                send,
                Some(here),
                Some(there),
                false,
            )?;
        }
        let send = operation(kind, Form::INJECT);
        row("injected", post(&receive), send, None, Some(there), false)?;
        for form in [Form::DATA, Form::MSG] {
            let send = with_data(kind, form);
            row(
                "with data",
                post(&receive),
                send,
                Some(here),
                Some(there),
                true,
            )?;
        }
        let send = with_data(kind, Form::INJECT_DATA);
        row(
            "injected, with data",
            post(&receive),
            send,
            None,
            Some(there),
            true,
        )?;
        for (data, form) in [(false, Form::MSG), (true, Form::DATA)] {
            let send = || {
                if data {
                    with_data(kind, form)
                } else {
                    operation(kind, form)
                }
            };
            row(
                "one of several",
                post(&several),
                send(),
                Some(here),
                Some(there),
                data,
            )?;
            // The buffer is there already: each message has its context.
            a.post(&send().context(5))?;
            let more = if data { bits::REMOTE_CQ_DATA } else { 0 };
            expect(&b.rx, 3, last | more, LEN)?;
            expect(&a.tx, 5, here, LEN)?;
        }
    }

    for (kind, here, there) in [
        (Kind::WRITE, done::RMA_WRITE, done::WRITTEN),
        (Kind::READ, done::RMA_READ, done::HAS_BEEN_READ),
    ] {
        let plain = |key| region(operation(kind, Form::PLAIN), key);
        row("RMA", None, plain(KEY), Some(here), None, false)?;
        row(
            "RMA, told",
            None,
            plain(LOUD),
            Some(here),
            Some(there),
            false,
        )?;
    }
    for form in [Form::DATA, Form::MSG] {
        for key in [KEY, LOUD] {
            let write = region(with_data(Kind::WRITE, form), key);
            let (here, there) = (Some(done::RMA_WRITE), Some(done::WRITTEN));
            row("write with data", None, write, here, there, true)?;
        }
    }
    let write = region(with_data(Kind::WRITE, Form::INJECT_DATA), KEY);
    row(
        "injected write",
        None,
        write,
        None,
        Some(done::WRITTEN),
        true,
    )?;
    let write = region(operation(Kind::WRITE, Form::INJECT), LOUD);
    row(
        "injected write, told",
        None,
        write,
        None,
        Some(done::WRITTEN),
        false,
    )?;

    for (kind, here, there) in [
        (
            Kind::WRITE,
            done::TAGGED_RMA_WRITE,
            done::HIT_BY_TAGGED_WRITE,
        ),
        (Kind::READ, done::TAGGED_RMA_READ, done::HIT_BY_TAGGED_READ),
    ] {
        let hit = operation(kind, Form::MSG)
            .rma(0, LEN, TAG)
            .flags(bits::TAGGED);
        row(
            "tagged RMA",
            Some(receive(Kind::TRECV)),
            hit,
            Some(here),
            Some(there),
            false,
        )?;
    }

    for (kind, here) in [
        (Kind::ATOMIC, done::ATOMIC_WRITE),
        (Kind::FETCH_ATOMIC, done::ATOMIC_READ),
        (Kind::COMPARE_ATOMIC, done::ATOMIC_READ),
    ] {
        for form in [Form::PLAIN, Form::V, Form::MSG] {
            row("atomic", None, atomic(kind, form), Some(here), None, false)?;
        }
    }
    env.note(format!("{count} rows"));
    drop((silent, loud, memory));
    pair.close()
}
