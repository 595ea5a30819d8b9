// SPDX-License-Identifier: GPL-2.0

//! Triggered operations.

use std::sync::atomic::{AtomicBool, Ordering};

use kfi::{bits, uapi, Error, Form, KfiErrno, Kind, Operation};
use rand::RngExt;

use crate::check::{Outcome, Stop};
use crate::ends::{
    complete, contexts, expect_context, expect_contexts, expect_count, expect_error, quiet, settle,
    Net, Setup, LONG,
};
use crate::env::Env;
use crate::exchange::{self, Exchange};
use crate::rig::{expect_busy, expect_fabric, in_threads, pin, unshare, Rig};
use crate::{check, check_eq, tests};

tests! {
    "trigger" parallel;
    "case-19-by-flag" ["R-TRIG-1 R-TRIG-2 R-TRIG-5 R-TRIG-21 R-TRIG-22"] by_flag;
    "case-19-by-alias" ["R-TRIG-3 R-TRIG-4 R-TRIG-5 R-TRIG-23"] by_alias;
    "case-19-selective-completion" ["R-TRIG-21"] selective;
    "case-19-forward-what-was-received" ["R-TRIG-1 R-TRIG-20"] forward;
    "case-19-chain-on-own-counter" ["R-TRIG-20"] chain;
    "case-20-order" ["R-TRIG-14 R-TRIG-15 R-TRIG-16"] order;
    "case-20-order-of-thousand" ["R-TRIG-14 R-TRIG-15 R-TRIG-16 R-TRIG-24"] order_of_many;
    "case-20-order-across-endpoints" ["R-TRIG-16"] order_across_endpoints;
    "case-21-already-met" ["R-TRIG-11"] already_met;
    "case-22-up-down-up" ["R-TRIG-15 R-TRIG-18 R-TRIG-19"] up_down_up;
    "case-22-success-value-only" ["R-TRIG-13"] success_only;
    alone "case-23-submit-races-add" ["R-TRIG-11 R-TRIG-15"] race;
    "case-24-bad-conditions" ["R-TRIG-7 R-TRIG-12"] bad_conditions;
    "case-24-inject" ["R-TRIG-6"] inject;
    "case-25-several-pieces" ["R-TRIG-22"] several_pieces;
    "case-26-context-is-free-afterwards" ["R-TRIG-10"] context_is_free;
    "case-27-more-than-the-queue-takes" ["R-TRIG-24"] more_than_fits;
    "case-27-no-room-for-completions" ["R-TRIG-24"] no_room_for_completions;
    alone "case-27-posts-race-fire" ["R-TRIG-24"] posts_race_fire;
    "case-28-cancel" ["R-TRIG-26"] cancel;
    alone "case-28-cancel-races-fire" ["R-TRIG-26 R-TRIG-10"] cancel_races_fire;
    alone "case-28-cancel-of-receives-races-fire" ["R-TRIG-26 R-TRIG-10"] cancel_of_receives_races_fire;
    alone "case-28-threads-cancel-one" ["R-TRIG-26"] threads_cancel_one;
    "case-29-close-with-pending" ["R-CLOSE-4 R-CLOSE-2"] close_with_pending;
    "case-29-close-races-fire" ["R-CLOSE-4"] close_races_fire;
    "case-30-failure" ["R-TRIG-13 R-TRIG-25"] failure;
}

/// With `KFI_TRIGGER`, and a condition.
fn triggered(operation: Operation, counter: &kfi::Counter, threshold: u64) -> Operation {
    operation.flags(bits::TRIGGER).trigger(counter, threshold)
}

/// Each operation, once triggered by its flags and once by the endpoint.
fn each(env: &Env, alias: bool) -> Outcome {
    let setup = Setup {
        memory: exchange::memory(300_000),
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let transmit = net.peers[0].ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    let receive = net.peers[0].ep.alias(bits::RECV | bits::TRIGGER)?;
    for (kind, _) in exchange::KINDS {
        for len in exchange::sizes(kind) {
            let counter = net.counter()?;
            let exchange = Exchange::new(&net, kind, len)?;
            let before = exchange.counter().read()?;
            let result = if alias {
                let ep = if exchange.is_receive() {
                    &receive
                } else {
                    &transmit
                };
                let operation = exchange.operation(Form::PLAIN).context(7);
                ep.post(&operation.trigger(&counter, 2))
            } else {
                let operation = exchange.operation(Form::MSG).context(7);
                net.peers[0].ep.post(&triggered(operation, &counter, 2))
            };
            check_eq!(result, Ok(()), "{kind} of {len}");
            counter.add(1)?;
            settle();
            exchange.expect_untouched()?;
            // In use.
            expect_busy(net.rig.session.close_handle(counter.handle()))?;
            exchange.refresh();
            check_eq!(exchange.counter().read()?, before, "{kind}");
            counter.add(1)?;
            exchange.answer()?;
            let is = complete(exchange.queue())?;
            check_eq!(is.op_context, 7, "{kind} of {len}");
            exchange.expect_other()?;
            exchange.expect_done()?;
            expect_count(exchange.counter(), before + 1, 0)?;
            // Nothing keeps it any more, and nothing happens twice.
            counter.add(1)?;
            unshare(counter)?.close().map_err(|(_, error)| error)?;
            expect_count(exchange.counter(), before + 1, 0)?;
            quiet(exchange.queue())?;
        }
    }
    // The endpoint itself is as it was.
    let exchange = Exchange::new(&net, Kind::WRITE, 64)?;
    exchange.refresh();
    net.peers[0]
        .ep
        .post(&exchange.operation(Form::PLAIN).context(8))?;
    expect_context(exchange.queue(), 8)?;
    exchange.expect_done()?;
    transmit.close().map_err(|(_, error)| error)?;
    receive.close().map_err(|(_, error)| error)?;
    net.close()
}

fn by_flag(env: &Env) -> Outcome {
    each(env, false)
}

fn by_alias(env: &Env) -> Outcome {
    each(env, true)
}

fn selective(env: &Env) -> Outcome {
    let setup = Setup {
        selective: true,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let ep = &net.peers[0].ep;
    ep.post(&triggered(net.write(0, 1, 0, 64, 8), &counter, 1).context(1))?;
    let loud = net.write(0, 1, 0, 64, 8).trigger(&counter, 2).context(2);
    ep.post(&loud.flags(bits::TRIGGER | bits::COMPLETION))?;
    counter.add(2)?;
    expect_count(&net.peers[0].sent, 2, 0)?;
    expect_contexts(&net.peers[0].tx, &[2])?;
    net.close()
}

fn forward(env: &Env) -> Outcome {
    let setup = Setup {
        peers: 3,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let count = 10;
    // The second forwards what it has received when all is there.
    for i in 0..count {
        let receive = net.receive(1, i * 8, 8).context(i);
        net.peers[1].ep.post(&receive)?;
    }
    net.peers[2].ep.post(&net.receive(2, 0, count * 8))?;
    let send = net.send(1, 2, 0, count * 8).context(100);
    net.peers[1]
        .ep
        .post(&triggered(send, &net.peers[1].received, count))?;
    for i in 0..count {
        check_eq!(net.peers[2].received.read()?, 0, "after {i} messages");
        net.peers[0].set_number(0, 1000 + i);
        net.peers[0].ep.post(&net.send(0, 1, 0, 8).context(i))?;
        expect_context(&net.peers[1].rx, i)?;
        expect_context(&net.peers[0].tx, i)?;
    }
    expect_context(&net.peers[1].tx, 100)?;
    complete(&net.peers[2].rx)?;
    for i in 0..count {
        check_eq!(net.peers[2].number(i * 8), 1000 + i);
    }
    net.close()
}

fn chain(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let count = 200;
    let sent = &net.peers[0].sent;
    // Each lets the next one begin.
    for i in (1..=count).rev() {
        let write = net.write(0, 1, 0, 64, 8).context(i);
        net.peers[0].ep.post(&triggered(write, sent, i))?;
    }
    sent.add(1)?;
    expect_contexts(&net.peers[0].tx, &(1..=count).collect::<Vec<_>>())?;
    expect_count(sent, count + 1, 0)?;
    net.close()
}

/// Submits with these thresholds, lets the counter go to `value`, and compares
/// the order.
fn order_of(net: &Net, thresholds: &[u64], value: u64) -> Outcome {
    let counter = net.counter()?;
    let operations: Vec<_> = (0..)
        .zip(thresholds)
        .map(|(i, threshold)| {
            let operation = net.fetch_add((0, 1), 0, 8, 64 + i * 8).context(i);
            triggered(operation, &counter, *threshold)
        })
        .collect();
    let [this, other] = [&net.peers[0], &net.peers[1]];
    this.set_number(0, 1);
    other.set_number(8, 0);
    for part in operations.chunks(1000) {
        let results = this.ep.post_batch(part, true)?;
        check!(results.iter().all(|result| *result == 0), "{results:?}");
    }
    let mut should: Vec<u64> = (0..thresholds.len() as u64).collect();
    should.sort_by_key(|i| thresholds[*i as usize]);
    counter.add(value)?;
    expect_contexts(&this.tx, &should)?;
    // They have begun in this order as well.
    for (rank, i) in (0..).zip(&should) {
        check_eq!(this.number(64 + i * 8), rank, "rank of {i}");
    }
    check_eq!(other.number(8), thresholds.len() as u64);
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn order(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    order_of(&net, &[30, 10, 20], 100)?;
    order_of(&net, &[5; 20], 5)?;
    order_of(&net, &[1, 2, 1, 3], 3)?;
    order_of(&net, &[u64::MAX, 1, u64::MAX - 1], u64::MAX)?;
    // One is due at once.
    let counter = net.counter()?;
    for (context, threshold) in [1, 2, 1, 0].into_iter().enumerate() {
        let write = net.write(0, 1, 0, 64, 8).context(context as u64);
        net.peers[0]
            .ep
            .post(&triggered(write, &counter, threshold))?;
    }
    expect_contexts(&net.peers[0].tx, &[3])?;
    counter.add(1)?;
    expect_contexts(&net.peers[0].tx, &[0, 2])?;
    counter.add(1)?;
    expect_contexts(&net.peers[0].tx, &[1])?;
    net.close()
}

fn order_of_many(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let mut rng = env.rng();
    for range in [1000, 10, 1 << 40] {
        let thresholds: Vec<u64> = (0..1000).map(|_| rng.random_range(1..=range)).collect();
        order_of(&net, &thresholds, range)?;
    }
    net.close()
}

fn order_across_endpoints(env: &Env) -> Outcome {
    let setup = Setup {
        peers: 5,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let mut rng = env.rng();
    let mut submitted = Vec::new();
    for peer in &net.peers {
        peer.set_number(0, 1);
    }
    for i in 0..200_u64 {
        let from = rng.random_range(1..5_usize);
        let threshold = rng.random_range(1..20_u64);
        let operation = net.fetch_add((from, 0), 0, 8, 64 + i * 8).context(i);
        net.peers[from]
            .ep
            .post(&triggered(operation, &counter, threshold))?;
        submitted.push((threshold, i, from));
    }
    counter.add(20)?;
    submitted.sort_unstable();
    for peer in &net.peers[1..] {
        let count = submitted
            .iter()
            .filter(|(_, _, from)| std::ptr::eq(&raw const net.peers[*from], peer));
        contexts(&peer.tx, count.count())?;
    }
    for (rank, (_, i, from)) in (0..).zip(submitted) {
        check_eq!(net.peers[from].number(64 + i * 8), rank, "rank of {i}");
    }
    net.close()
}

fn already_met(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let ep = &net.peers[0].ep;
    let post = |context, threshold| {
        let write = net.write(0, 1, 0, 64, 8).context(context);
        ep.post(&triggered(write, &counter, threshold))
    };
    post(1, 0)?;
    expect_contexts(&net.peers[0].tx, &[1])?;
    counter.set(5)?;
    for (context, threshold) in [(2, 5), (3, 4), (4, 0)] {
        post(context, threshold)?;
        expect_contexts(&net.peers[0].tx, &[context])?;
    }
    post(5, 6)?;
    settle();
    quiet(&net.peers[0].tx)?;
    counter.add(1)?;
    expect_contexts(&net.peers[0].tx, &[5])?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

fn up_down_up(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let ep = &net.peers[0].ep;
    let tx_queue = &net.peers[0].tx;
    for (context, threshold) in [(1, 5), (2, 10), (3, 15)] {
        let write = net.write(0, 1, 0, 64, 8).context(context);
        ep.post(&triggered(write, &counter, threshold))?;
    }
    counter.set(5)?;
    expect_contexts(tx_queue, &[1])?;
    counter.set(0)?;
    counter.set(9)?;
    settle();
    quiet(tx_queue)?;
    counter.set(3)?;
    // Past several at once.
    counter.set(20)?;
    expect_contexts(tx_queue, &[2, 3])?;
    counter.set(0)?;
    counter.set(u64::MAX)?;
    settle();
    quiet(tx_queue)?;
    // A value that wraps does not reach what is between.
    let write = net.write(0, 1, 0, 64, 8).context(4);
    counter.set(u64::MAX - 10)?;
    ep.post(&triggered(write, &counter, u64::MAX - 5))?;
    counter.add(11)?;
    settle();
    check_eq!(counter.read()?, 0);
    quiet(tx_queue)?;
    counter.set(u64::MAX - 5)?;
    expect_contexts(tx_queue, &[4])?;
    net.close()
}

fn success_only(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let write = net.write(0, 1, 0, 64, 8).context(1);
    net.peers[0].ep.post(&triggered(write, &counter, 3))?;
    counter.add_err(10)?;
    counter.set_err(100)?;
    counter.add(2)?;
    settle();
    quiet(&net.peers[0].tx)?;
    counter.add(1)?;
    expect_contexts(&net.peers[0].tx, &[1])?;
    net.close()
}

fn race(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let count = env.scaled(10_000, 500);
    let seen = in_threads(0..3, |role| {
        pin(role)?;
        match role {
            0 => {
                for i in 0..count {
                    let write = net.write(0, 1, 0, 64, 8).context(i);
                    net.peers[0].ep.post(&triggered(write, &counter, i + 1))?;
                }
                Ok(Vec::new())
            }
            1 => {
                for _ in 0..count {
                    counter.add(1)?;
                }
                Ok(Vec::new())
            }
            // All come, whoever was first.
            _ => contexts(&net.peers[0].tx, count as usize),
        }
    })?;
    let mut seen = seen.concat();
    seen.sort_unstable();
    check!(seen.into_iter().eq(0..count), "not each once");
    expect_count(&net.peers[0].sent, count, 0)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

fn bad_conditions(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let other = Rig::in_session(env, net.rig.session.clone())?;
    let counter = net.counter()?;
    let foreign = other.counter()?;
    let threshold = uapi::KFI_TRIGGER_THRESHOLD;
    let transmit = net.peers[0].ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    for (kind, _) in exchange::KINDS {
        if [Kind::SEND, Kind::TSEND].contains(&kind) {
            continue; // They would leave receives behind; below.
        }
        let operation = Exchange::new(&net, kind, 64)?.operation(Form::MSG);
        let operation = operation.flags(bits::TRIGGER);
        bad_condition(
            &net,
            &operation,
            [0, net.rig.domain.handle(), foreign.handle()],
        )?;
        for event in [threshold + 1, threshold + 2, u32::MAX] {
            let operation = operation.clone().context(1);
            let operation = operation.trigger_handle(counter.handle(), event, 1);
            expect_fabric(net.peers[0].ep.post(&operation), KfiErrno::EINVAL)?;
        }
    }
    for kind in [Kind::SEND, Kind::TSEND] {
        let operation = Operation::new(kind, Form::MSG)
            .segment(net.peers[0].segment(0..8))
            .to(net.peers[1].addr)
            .flags(bits::TRIGGER);
        bad_condition(
            &net,
            &operation,
            [0, net.rig.domain.handle(), foreign.handle()],
        )?;
        let plain = Operation::new(kind, Form::PLAIN)
            .segment(net.peers[0].segment(0..8))
            .to(net.peers[1].addr);
        expect_fabric(transmit.post(&plain), KfiErrno::EINVAL)?;
        expect_fabric(transmit.post(&plain.context(3)), KfiErrno::EINVAL)?;
    }
    transmit.close().map_err(|(_, error)| error)?;
    // Looks at messages say at once what there is.
    for flags in [bits::PEEK, bits::CLAIM, bits::PEEK | bits::DISCARD] {
        let look = Operation::new(Kind::TRECV, Form::MSG)
            .segment(net.peers[0].segment(0..8))
            .tag(5, 0)
            .flags(flags | bits::TRIGGER)
            .trigger(&counter, 1)
            .context(5);
        expect_fabric(net.peers[0].ep.post(&look), KfiErrno::EBADFLAGS)?;
    }
    // Nothing waits for them.
    unshare(foreign)?.close().map_err(|(_, error)| error)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    other.close()?;
    net.close()
}

/// Refused with no context, with none that has a condition, and with these in
/// place of the counter.
fn bad_condition(net: &Net, operation: &Operation, handles: [u32; 3]) -> Outcome {
    let ep = &net.peers[0].ep;
    expect_fabric(ep.post(operation), KfiErrno::EINVAL)?;
    expect_fabric(ep.post(&operation.clone().context(5)), KfiErrno::EINVAL)?;
    for handle in handles {
        let operation = operation.clone().context(5);
        let operation = operation.trigger_handle(handle, uapi::KFI_TRIGGER_THRESHOLD, 0);
        expect_fabric(ep.post(&operation), KfiErrno::EINVAL)?;
    }
    Ok(())
}

fn inject(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let alias = net.peers[0].ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    let operations = [
        net.write(0, 1, 0, 64, 8),
        net.send(0, 1, 0, 8),
        net.atomic(Kind::ATOMIC, uapi::KFI_SUM, (0, 1), 0, 64, 1),
    ];
    for operation in operations {
        let operation = operation.trigger(&counter, 1).context(1);
        let both = operation.clone().flags(bits::TRIGGER | bits::INJECT);
        expect_fabric(net.peers[0].ep.post(&both), KfiErrno::EINVAL)?;
        let injected = operation.flags(bits::INJECT);
        expect_fabric(alias.post(&injected), KfiErrno::EINVAL)?;
    }
    let [this, other] = [&net.peers[0], &net.peers[1]];
    for (kind, form) in [
        (Kind::SEND, Form::INJECT),
        (Kind::SEND, Form::INJECT_DATA),
        (Kind::TSEND, Form::INJECT),
        (Kind::TSEND, Form::INJECT_DATA),
        (Kind::WRITE, Form::INJECT),
        (Kind::WRITE, Form::INJECT_DATA),
        (Kind::ATOMIC, Form::INJECT),
    ] {
        let mut operation = Operation::new(kind, form).to(other.addr);
        operation = match kind {
            Kind::ATOMIC => operation
                .segment(this.memory.elements(0, 1))
                .rma(64, 1, other.key())
                .atomic(uapi::KFI_UINT64, uapi::KFI_SUM),
            Kind::WRITE => operation
                .segment(this.segment(0..8))
                .rma(64, 8, other.key()),
            _ => operation.segment(this.segment(0..8)),
        };
        expect_fabric(alias.post(&operation), KfiErrno::ENOSYS)?;
    }
    alias.close().map_err(|(_, error)| error)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

fn several_pieces(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let [this, other] = [&net.peers[0], &net.peers[1]];
    let mut write = Operation::new(Kind::WRITE, Form::MSG)
        .to(other.addr)
        .context(1);
    let mut should = Vec::new();
    // Pieces of one size here and of another there.
    for i in 0..8_u64 {
        write = write.segment(this.segment(i * 100..i * 100 + 40));
        should.extend((0..40).map(|_| i as u8));
    }
    for i in 0..4_u64 {
        write = write.rma(1000 + i * 500, 80, other.key());
    }
    this.ep.post(&triggered(write, &counter, 1))?;
    for i in 0..8_u64 {
        this.fill(i * 100..i * 100 + 40, i as u8);
    }
    counter.add(1)?;
    expect_contexts(&this.tx, &[1])?;
    let mut is = Vec::new();
    for i in 0..4_usize {
        is.extend(other.memory.bytes(1000 + i * 500..1080 + i * 500));
    }
    check_eq!(is, should);
    check_eq!(other.remote.read()?, 1, "writes that the target counts");
    net.close()
}

fn context_is_free(env: &Env) -> Outcome {
    // The structure in the kernel is freed as soon as its completion is read, or
    // the cancellation; the debug kernel sees any access to it afterwards.
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let ep = &net.peers[0].ep;
    for round in 0..env.scaled(2_000, 50) {
        for i in 0..4 {
            let write = net.write(0, 1, 0, 64, 8).context(i);
            ep.post(&triggered(write, &counter, round + 1))?;
        }
        ep.cancel(2)?;
        expect_error(&net.peers[0].tx, 2, KfiErrno::ECANCELED)?;
        counter.add(1)?;
        expect_contexts(&net.peers[0].tx, &[0, 1, 3])?;
    }
    net.close()
}

fn more_than_fits(env: &Env) -> Outcome {
    let depth = 16;
    let setup = Setup {
        memory: 1 << 20,
        tx_size: depth,
        ..Setup::default()
    };
    for len in [8, 100_000] {
        let net = Net::new(env, &setup)?;
        let counter = net.counter()?;
        let this = &net.peers[0];
        let count = 10 * depth;
        for i in 0..count {
            let write = net.write(0, 1, 0, len, len).context(i);
            this.ep.post(&triggered(write, &counter, 1))?;
        }
        this.fill(0..len, 9);
        counter.add(1)?;
        if len == 8 {
            expect_contexts(&this.tx, &(0..count).collect::<Vec<_>>())?;
        } else {
            let mut is = contexts(&this.tx, count as usize)?;
            is.sort_unstable();
            check!(is.into_iter().eq(0..count), "not each once");
        }
        net.peers[1].expect_filled(len..2 * len, 9)?;
        expect_count(&this.sent, count, 0)?;
        expect_count(&net.peers[1].remote, count, 0)?;
        // There is room again.
        for i in 0..depth {
            this.ep.post(&net.write(0, 1, 0, 64, 8).context(i))?;
        }
        contexts(&this.tx, depth as usize)?;
        net.close()?;
    }
    Ok(())
}

fn no_room_for_completions(env: &Env) -> Outcome {
    let setup = Setup {
        cq_size: 8,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    let count = 500;
    for i in 0..count {
        let write = net.write(0, 1, 0, 64, 8).context(i);
        this.ep.post(&triggered(write, &counter, 1))?;
    }
    counter.add(1)?;
    // All of them end, though nobody reads; entries that the queue has no room for lie behind it.
    expect_count(&this.sent, count, 0)?;
    let write = net.write(0, 1, 0, 64, 8).context(count);
    expect_fabric(this.ep.post(&write), KfiErrno::EAGAIN)?;
    // As slowly as can be.
    for i in 0..count {
        expect_context(&this.tx, i)?;
    }
    expect_count(&this.sent, count, 0)?;
    net.close()
}

/// Operations that are fired compete with some that are posted, for a queue with
/// room for one: none may be left behind.
fn posts_race_fire(env: &Env) -> Outcome {
    let setup = Setup {
        tx_size: 1,
        selective: true,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    let count = env.scaled(10_000, 500);
    let done = AtomicBool::new(false);
    let posted = in_threads(0..2, |role| {
        pin(role)?;
        let mut posted = 0_u64;
        if role == 0 {
            for i in 0..count {
                let write = net.write(0, 1, 0, 64, 8).context(i);
                this.ep.post(&triggered(write, &counter, i + 1))?;
                counter.add(1)?;
            }
            done.store(true, Ordering::Release);
        } else {
            let write = net.write(0, 1, 0, 64, 8);
            while !done.load(Ordering::Acquire) {
                match this.ep.post(&write) {
                    Ok(()) => posted += 1,
                    Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(posted)
    })?;
    let posted: u64 = posted.iter().sum();
    // Nobody posts any more who could help.
    expect_count(&this.sent, count + posted, 0)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

fn cancel(env: &Env) -> Outcome {
    let setup = Setup {
        memory: exchange::memory(4096),
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    for (kind, _) in exchange::KINDS {
        if [Kind::SEND, Kind::TSEND].contains(&kind) {
            continue; // Below.
        }
        let exchange = Exchange::new(&net, kind, 64)?;
        let operation = triggered(exchange.operation(Form::MSG), &counter, 1);
        this.ep.post(&operation.clone().context(1))?;
        this.ep.post(&operation.context(2))?;
        let before = exchange.counter().read()?;
        let failed = exchange.counter().read_err()?;
        for context in [2, 1] {
            expect_fabric(this.ep.cancel(3), KfiErrno::ENOENT)?;
            this.ep.cancel(context)?;
            expect_error(exchange.queue(), context, KfiErrno::ECANCELED)?;
            expect_fabric(this.ep.cancel(context), KfiErrno::ENOENT)?;
        }
        expect_count(exchange.counter(), before, failed + 2)?;
        counter.add(1)?;
        settle();
        exchange.expect_untouched()?;
        counter.set(0)?;
    }
    // A message is not sent.
    let send = net.send(0, 1, 0, 64).context(1);
    this.ep.post(&triggered(send, &counter, 1))?;
    let alias = this.ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    // The alias is the endpoint.
    alias.cancel(1)?;
    expect_error(&this.tx, 1, KfiErrno::ECANCELED)?;
    alias.close().map_err(|(_, error)| error)?;
    counter.add(1)?;
    // Of two with the same context one goes.
    let write = triggered(net.write(0, 1, 0, 64, 8).context(4), &counter, 2);
    this.ep.post(&write)?;
    this.ep.post(&write)?;
    this.ep.cancel(4)?;
    expect_error(&this.tx, 4, KfiErrno::ECANCELED)?;
    counter.add(1)?;
    expect_contexts(&this.tx, &[4])?;
    // After it was fired.
    expect_fabric(this.ep.cancel(4), KfiErrno::ENOENT)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

/// One operation is pending, and two threads cancel it: one of them does, before the second one fires what is
/// left. A thread finds an operation under the lock of the run list, and marks it there; so there is none for
/// the other one only if it is cancelled, however long the first one is away then.
fn threads_cancel_one(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    for round in 0..env.scaled(2_000, 200) {
        let add = net.atomic(Kind::ATOMIC, uapi::KFI_SUM, (0, 1), 0, 8, 1);
        this.ep
            .post(&triggered(add.context(7), &counter, round + 1))?;
        let won = in_threads(0..2, |role| -> Result<u64, Stop> {
            pin(role)?;
            let result = this.ep.cancel(7);
            if role == 1 {
                counter.add(1)?;
            }
            match result {
                Ok(()) => Ok(1),
                Err(Error::Fabric(KfiErrno::ENOENT)) => Ok(0),
                Err(error) => Err(error.into()),
            }
        })?;
        check_eq!(won.iter().sum::<u64>(), 1, "in round {round}");
        expect_error(&this.tx, 7, KfiErrno::ECANCELED)?;
        quiet(&this.tx)?;
    }
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    net.close()
}

fn cancel_races_fire(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    this.set_number(0, 1);
    let (mut cancelled, mut fired, mut late) = (0, 0, 0);
    for round in 0..env.scaled(400, 50) {
        for i in 0..4 {
            let add = net.atomic(Kind::ATOMIC, uapi::KFI_SUM, (0, 1), 0, 8, 1);
            let add = triggered(add.context(i), &counter, round + 1);
            this.ep.post(&add)?;
        }
        let won = in_threads(0..2, |role| {
            pin(role)?;
            let mut won = 0;
            if role == 0 {
                counter.add(1)?;
            } else {
                for i in (0..4).rev() {
                    match this.ep.cancel(i) {
                        Ok(()) => won += 1,
                        Err(error) => check_eq!(error, Error::Fabric(KfiErrno::ENOENT)),
                    }
                }
            }
            Ok(won)
        })?;
        // Each completes once, one way or the other.
        let mut contexts = Vec::new();
        let before = cancelled;
        while contexts.len() < 4 {
            match this.tx.sread(4, Some(LONG)) {
                Ok(entries) => {
                    fired += entries.len() as u64;
                    contexts.extend(entries.iter().map(|entry| entry.op_context));
                }
                Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                    let error = this.tx.read_err()?;
                    check_eq!(KfiErrno::new(error.err), KfiErrno::ECANCELED);
                    cancelled += 1;
                    contexts.push(error.entry.op_context);
                }
                Err(error) => return Err(error.into()),
            }
        }
        quiet(&this.tx)?;
        contexts.sort_unstable();
        check_eq!(contexts, [0, 1, 2, 3]);
        check_eq!(net.peers[1].number(8), fired, "effects in round {round}");
        // Operations under way may end as if nobody had cancelled them.
        let won: u64 = won.iter().sum();
        check!(won >= cancelled - before, "cancelled in round {round}");
        late += won - (cancelled - before);
    }
    expect_count(&this.sent, fired, cancelled)?;
    env.note(format!(
        "{cancelled} cancelled, {fired} fired, {late} of them cancelled too late"
    ));
    net.close()
}

/// Receives for which nothing comes can be cancelled whether they are pending, have fired or are posted; and each that
/// was cancelled says so, whatever it was just then.
fn cancel_of_receives_races_fire(env: &Env) -> Outcome {
    const COUNT: u64 = 64;
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    let mut missing: u64 = 0;
    for round in 0..env.scaled(200, 30) {
        for i in 0..COUNT {
            let receive = triggered(net.receive(0, 0, 8).context(i), &counter, round + 1);
            this.ep.post(&receive)?;
        }
        let won = in_threads(0..2, |role| {
            pin(role)?;
            let mut won = Vec::new();
            if role == 0 {
                counter.add(1)?;
            } else {
                for i in (0..COUNT).rev() {
                    match this.ep.cancel(i) {
                        Ok(()) => won.push(i),
                        // Taken out, and yet to begin.
                        Err(error) => check_eq!(error, Error::Fabric(KfiErrno::ENOENT)),
                    }
                }
            }
            Ok(won)
        })?;
        let mut won: Vec<_> = won.into_iter().flatten().collect();
        for i in 0..COUNT {
            if !won.contains(&i) {
                missing += 1;
                this.ep.cancel(i)?;
                won.push(i);
            }
        }
        let mut cancelled = Vec::new();
        while cancelled.len() < won.len() {
            match this.rx.sread(1, Some(LONG)) {
                Err(Error::Fabric(KfiErrno::EAVAIL)) => {}
                other => {
                    return Err(Stop::fail(format!(
                        "{other:?}, and not a receive that was cancelled"
                    )))
                }
            }
            let error = this.rx.read_err()?;
            check_eq!(KfiErrno::new(error.err), KfiErrno::ECANCELED);
            cancelled.push(error.entry.op_context);
        }
        quiet(&this.rx)?;
        cancelled.sort_unstable();
        check_eq!(
            cancelled,
            (0..COUNT).collect::<Vec<_>>(),
            "in round {round}"
        );
    }
    env.note(format!("{missing} were not found at first"));
    net.close()
}

fn close_with_pending(env: &Env) -> Outcome {
    let setup = Setup {
        memory: exchange::memory(4096),
        peers: 3,
        ..Setup::default()
    };
    let mut net = Net::new(env, &setup)?;
    let counter = net.counter()?;
    let kept = net.peers.remove(2);
    net.peers.insert(0, kept);
    // The first one goes: it has one of each pending, and from the others too.
    for (kind, _) in exchange::KINDS {
        if [Kind::SEND, Kind::TSEND].contains(&kind) {
            continue;
        }
        let operation = Exchange::new(&net, kind, 64)?.operation(Form::MSG);
        net.peers[0]
            .ep
            .post(&triggered(operation.context(1), &counter, 1))?;
    }
    let send = net.send(0, 1, 0, 8).context(1);
    net.peers[0].ep.post(&triggered(send, &counter, 1))?;
    let write = net.write(2, 1, 0, 64, 8).context(2);
    net.peers[2].ep.post(&triggered(write, &counter, 1))?;
    expect_busy(net.rig.session.close_handle(counter.handle()))?;
    let gone = net.peers.remove(0);
    gone.end.ep.close().map_err(|(_, error)| error)?;
    net.peers[0].fill(0..8192, 3);
    counter.add(1)?;
    // The operation of the other endpoint begins.
    expect_contexts(&net.peers[1].tx, &[2])?;
    settle();
    for queue in [
        &gone.end.tx,
        &gone.end.rx,
        &net.peers[0].tx,
        &net.peers[0].rx,
    ] {
        quiet(queue)?;
    }
    expect_count(&gone.sent, 0, 0)?;
    expect_count(&gone.received, 0, 0)?;
    net.peers[0].expect_filled(72..8192, 3)?;
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    gone.region.close().map_err(|(_, error)| error)?;
    drop((
        gone.end.tx,
        gone.end.rx,
        gone.end.av,
        gone.sent,
        gone.received,
        gone.remote,
        gone.memory,
    ));
    net.close()
}

fn close_races_fire(env: &Env) -> Outcome {
    for round in 0..env.scaled(60, 10) {
        let setup = Setup {
            tx_size: 8,
            cq_size: 64,
            ..Setup::default()
        };
        let mut net = Net::new(env, &setup)?;
        let counter = net.counter()?;
        for i in 0..40 {
            let len = if i % 4 == 3 { 20_000 } else { 8 };
            let write = net.write(0, 1, 0, 20_000, len).context(i);
            net.peers[0]
                .ep
                .post(&triggered(write, &counter, 1 + i / 8))?;
        }
        let gone = net.peers.remove(0);
        let ep = std::sync::Mutex::new(Some(gone.end.ep));
        in_threads(0..2, |role| {
            pin(role)?;
            if role == 0 {
                for _ in 0..5 {
                    counter.add(1)?;
                }
            } else {
                for _ in 0..round % 16 {
                    counter.read()?;
                }
                if let Some(ep) = ep.lock().ok().and_then(|mut ep| ep.take()) {
                    ep.close().map_err(|(_, error)| Stop::fail(error))?;
                }
            }
            Ok(())
        })?;
        // From here on nothing moves.
        let before = gone.sent.read()?;
        net.peers[0].fill(20_000..40_000, 5);
        settle();
        check_eq!(gone.sent.read()?, before);
        net.peers[0].expect_filled(20_000..40_000, 5)?;
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    Ok(())
}

fn failure(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let counter = net.counter()?;
    let this = &net.peers[0];
    let bad_key = |context| {
        Operation::new(Kind::WRITE, Form::MSG)
            .segment(this.segment(0..8))
            .rma(0, 8, 777)
            .to(net.peers[1].addr)
            .context(context)
    };
    this.ep.post(&triggered(bad_key(1), &counter, 1))?;
    // A failure lets nothing begin.
    let next = net.write(0, 1, 0, 64, 8).context(2);
    this.ep.post(&triggered(next, &this.sent, 1))?;
    settle();
    quiet(&this.tx)?;
    counter.add(1)?;
    let error = expect_error(&this.tx, 1, None)?;
    env.note(format!(
        "a key that nobody has: {}",
        KfiErrno::new(error.err)
    ));
    expect_count(&this.sent, 0, 1)?;
    settle();
    quiet(&this.tx)?;
    this.sent.add(1)?;
    expect_contexts(&this.tx, &[2])?;
    expect_count(&this.sent, 2, 1)?;
    // Beyond the end of the peer's memory.
    let size = net.peers[1].memory.size();
    let beyond = net.write(0, 1, 0, size - 4, 8).context(3);
    this.ep.post(&triggered(beyond, &counter, 2))?;
    counter.add(1)?;
    expect_error(&this.tx, 3, None)?;
    expect_count(&this.sent, 2, 2)?;
    expect_count(&net.peers[1].remote, 1, 0)?;
    net.close()
}
