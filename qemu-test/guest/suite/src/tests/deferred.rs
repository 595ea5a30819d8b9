// SPDX-License-Identifier: GPL-2.0

//! Deferred work.

use std::ops::Range;
use std::sync::Arc;

use kfi::{
    bits, uapi, Caps, Counter, Domain, Endpoint, EpInfo, Error, Form, KfiErrno, Kind, MemoryRegion,
    MrAttr, OpType, Operation, TxAttr, Work, WorkId,
};

use crate::check::{Outcome, Stop};
use crate::ends::{
    complete, done, expect, expect_context, expect_contexts, expect_count, expect_error, quiet,
    settle, Area, End, Net, Pair, Setup, LONG,
};
use crate::env::Env;
use crate::exchange::{self, Exchange};
use crate::rig::{expect_busy, expect_fabric, unshare, Rig};
use crate::tests::module;
use crate::{check, check_eq, tests};

tests! {
    "deferred" parallel;
    "case-31-each-operation" ["R-DWQ-3 R-DWQ-7 R-DWQ-10 R-DWQ-11 R-DWQ-14 R-DWQ-15 R-DWQ-19"] each_operation;
    "case-31-with-completion" ["R-DWQ-3 R-DWQ-7 R-DWQ-12 R-DWQ-15"] with_completion;
    "case-31-counter-operations" ["R-DWQ-3 R-DWQ-8 R-DWQ-20"] counter_operations;
    "case-31-already-met" ["R-DWQ-6"] already_met;
    "case-31-receive-after-message" ["R-DWQ-19"] receive_after_message;
    "additions-beyond-the-end" ["R-DWQ-20 R-TRIG-18 R-CNTR-20"] additions_beyond_the_end;
    "case-32-success-and-error" ["R-DWQ-5 R-CNTR-20"] success_and_error;
    "case-33-completion-counters" ["R-DWQ-7 R-DWQ-11 R-DWQ-12"] completion_counters;
    "case-34-exactly-one" ["R-DWQ-7"] exactly_one;
    "case-36-counter-operation-with-completion" ["R-DWQ-9"] counter_operation_with_completion;
    "case-37-validation" ["R-DWQ-16 R-DWQ-17 R-CTL-1"] validation;
    "case-38-unknown-operation" ["R-DWQ-17"] unknown_operation;
    "case-39-failure" ["R-DWQ-7 R-DWQ-12"] failure;
    "case-40-cascade" ["R-DWQ-30 R-DWQ-31 R-DWQ-32"] cascade;
    "case-40-chain-of-counters" ["R-DWQ-30"] chain_of_counters;
    "case-40-itself" ["R-DWQ-30 R-DWQ-31 R-TRIG-18"] itself;
    "case-41-fan-out-and-in" ["R-DWQ-33"] fan_out_and_in;
    "case-42-order-of-set-and-add" ["R-DWQ-18 R-TRIG-16"] set_and_add;
    "case-43-alias" ["R-DWQ-21"] alias;
    "case-44-mixed-with-triggered" ["R-DWQ-18 R-DWQ-5 R-TRIG-13"] mixed;
    "case-44-mixed-with-errors" ["R-DWQ-18 R-DWQ-5 R-DWQ-30 R-TRIG-13"] mixed_with_errors;
    "case-45-duplicates" ["R-DWQ-4 R-CTL-2"] duplicates;
    "case-46-collectives" ["R-DWQ-1 R-DWQ-2 R-DWQ-18"] collectives;
    "case-47-limit" ["R-DWQ-24 R-CTL-3"] limit;
    "receive-for-several-counts-once" ["R-DWQ-7 R-DWQ-12"] receive_for_several;
    "close-with-pending" ["R-CLOSE-2 R-CLOSE-4"] close_with_pending;
    "more-than-the-queue-takes" ["R-TRIG-24"] more_than_fits;
    "receives-more-than-the-queue-takes" ["R-TRIG-24 R-DWQ-19"] more_receives_than_fit;
    "shared-room-in-turns" ["R-TRIG-24"] shared_room_in_turns;
    "shared-room-before-posts" ["R-TRIG-24"] shared_room_before_posts;
    "shared-room-behind-a-fence-before-posts" ["R-TRIG-24 R-TRIG-26"] shared_room_behind_a_fence_before_posts;
    "shared-room-of-those-that-go" ["R-TRIG-24 R-TRIG-26 R-CLOSE-4"] shared_room_of_those_that_go;
    "shared-room-and-a-fence" ["R-TRIG-24 R-TRIG-26"] shared_room_and_a_fence;
    "shared-room-of-many-behind-a-fence" ["R-TRIG-24 R-TRIG-26"] shared_room_of_many_behind_a_fence;
    "shared-room-of-a-post-behind-a-fence" ["R-TRIG-24 R-TRIG-26"] shared_room_behind_a_fence;
    "room-of-posts-behind-fences" ["R-TRIG-24 R-TRIG-26"] room_of_posts_behind_fences;
    "room-beside-lent-room" ["R-TRIG-24 kfi_endpoint.h"] room_beside_lent_room;
    "room-lent-by-several-endpoints" ["R-TRIG-24 R-TRIG-26"] room_lent_by_several;
    "room-of-a-cancelled-post-behind-a-fence" ["R-TRIG-24 R-TRIG-26"] room_of_a_cancelled_post;
}

/// Queues many works.
pub(crate) fn queue_all(domain: &Domain, works: &[Work]) -> Result<Vec<WorkId>, Stop> {
    let mut ids = Vec::new();
    for part in works.chunks(uapi::KFI_SHIM_BATCH_MAX as usize) {
        let queued = domain.queue_work_batch(part, true)?;
        check_eq!(queued.len(), part.len(), "works of a batch");
        for (id, result) in queued {
            check_eq!(result, 0);
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Waits for a value, and that there is no more.
fn expect_value(counter: &Counter, value: u64) -> Outcome {
    counter.wait(value, Some(LONG))?;
    check_eq!(counter.read()?, value);
    Ok(())
}

fn each(env: &Env, loud: bool) -> Outcome {
    let setup = Setup {
        memory: exchange::memory(300_000),
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let flags = if loud { bits::COMPLETION } else { 0 };
    for (kind, op_type) in exchange::KINDS {
        for len in exchange::sizes(kind) {
            let [trigger, done] = [net.counter()?, net.counter()?];
            let exchange = Exchange::new(&net, kind, len)?;
            let before = exchange.counter().read()?;
            let other = [&net.peers[1].received, &net.peers[1].remote];
            let others = [other[0].read()?, other[1].read()?];
            let operation = exchange.operation(Form::MSG).context(7).flags(flags);
            let work = Work::transfer(op_type, net.peers[0].ep.handle(), &operation, &trigger, 2)
                .completion(done.handle());
            let queued = net.rig.domain.queue_work(&work);
            check!(queued.is_ok(), "{kind} of {len}: {queued:?}");
            trigger.add(1)?;
            settle();
            exchange.expect_untouched()?;
            check_eq!(done.read()?, 0, "{kind} of {len}");
            expect_busy(net.rig.session.close_handle(trigger.handle()))?;
            expect_busy(net.rig.session.close_handle(done.handle()))?;
            exchange.refresh();
            trigger.add(1)?;
            exchange.answer()?;
            done.wait(1, Some(LONG))?;
            if loud {
                expect_context(exchange.queue(), 7)?;
            }
            exchange.expect_other()?;
            exchange.expect_done()?;
            // The target counts as ever.
            let should = match kind {
                Kind::SEND | Kind::TSEND => [1, 0],
                Kind::RECV | Kind::TRECV => [0, 0],
                _ => [0, 1],
            };
            for (i, counter) in other.iter().enumerate() {
                expect_count(counter, others[i] + should[i], 0)?;
            }
            expect_count(exchange.counter(), before + u64::from(loud), 0)?;
            trigger.add(10)?;
            settle();
            quiet(exchange.queue())?;
            check_eq!((done.read()?, done.read_err()?), (1, 0), "{kind} of {len}");
            check_eq!(exchange.counter().read()?, before + u64::from(loud));
            for counter in [trigger, done] {
                unshare(counter)?.close().map_err(|(_, error)| error)?;
            }
        }
    }
    net.close()
}

fn each_operation(env: &Env) -> Outcome {
    each(env, false)
}

fn with_completion(env: &Env) -> Outcome {
    each(env, true)
}

fn counter_operations(env: &Env) -> Outcome {
    let net = Net::new(
        env,
        &Setup {
            peers: 0,
            ..Setup::default()
        },
    )?;
    let [trigger, target] = [net.counter()?, net.counter()?];
    let domain = &net.rig.domain;
    target.set_err(3)?;
    domain.queue_work(&Work::add(&target, 5, &trigger, 1))?;
    domain.queue_work(&Work::set(&target, 100, &trigger, 2))?;
    domain.queue_work(&Work::add(&target, u64::MAX, &trigger, 3))?;
    check_eq!(target.read()?, 0);
    for (value, should) in [(1, 5), (2, 100), (3, 99)] {
        let waiter = crate::rig::Waiter::start(&trigger, value, -1)?;
        trigger.add(1)?;
        waiter.join()?.expect_ok()?;
        crate::rig::until(|| Ok(target.read()? == should))?;
    }
    // A waiter for the target wakes.
    domain.queue_work(&Work::add(&target, 1000, &trigger, 4))?;
    let waiter = crate::rig::Waiter::asleep(&target, 1099, -1)?;
    trigger.add(1)?;
    waiter.join()?.expect_ok()?;
    check_eq!((target.read()?, target.read_err()?), (1099, 3));
    check_eq!((trigger.read()?, trigger.read_err()?), (4, 0));
    net.close()
}

fn already_met(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let [trigger, done] = [net.counter()?, net.counter()?];
    let ep = net.peers[0].ep.handle();
    let domain = &net.rig.domain;
    let write = net.write(0, 1, 0, 64, 8);
    let work = |threshold| {
        Work::transfer(OpType::WRITE, ep, &write, &trigger, threshold).completion(done.handle())
    };
    domain.queue_work(&work(0))?;
    expect_value(&done, 1)?;
    trigger.set(3)?;
    trigger.set_err(4)?;
    for (i, threshold) in [(2, 7), (3, 6), (4, 0)] {
        domain.queue_work(&work(threshold))?;
        expect_value(&done, i)?;
    }
    domain.queue_work(&Work::add(&done, 10, &trigger, 7))?;
    expect_value(&done, 14)?;
    domain.queue_work(&work(8))?;
    settle();
    check_eq!(done.read()?, 14);
    trigger.add_err(1)?;
    expect_value(&done, 15)?;
    net.close()
}

fn receive_after_message(env: &Env) -> Outcome {
    let setup = Setup {
        memory: exchange::memory(300_000),
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    for (kind, op_type) in &exchange::KINDS {
        for len in exchange::sizes(*kind) {
            let [trigger, done] = [net.counter()?, net.counter()?];
            let exchange = Exchange::new(&net, *kind, len)?;
            if !exchange.is_receive() {
                continue;
            }
            let operation = exchange.operation(Form::MSG);
            let ep = net.peers[0].ep.handle();
            let work = Work::transfer(*op_type, ep, &operation, &trigger, 1);
            net.rig.domain.queue_work(&work.completion(done.handle()))?;
            exchange.refresh();
            exchange.answer()?;
            // It waits for a receive, for a while.
            exchange.expect_untouched()?;
            trigger.add(1)?;
            expect_value(&done, 1)?;
            exchange.expect_other()?;
            exchange.expect_done()?;
        }
        // The receives prepared for SEND and TSEND are taken back.
        if [Kind::SEND, Kind::TSEND].contains(kind) {
            for _ in exchange::sizes(*kind) {
                net.peers[1].ep.cancel(990_099)?;
                expect_error(&net.peers[1].rx, 990_099, None)?;
            }
        }
    }
    net.close()
}

/// Additions that follow each other and pass 2^64: what waits for the value between is due.
fn additions_beyond_the_end(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (trigger, passing, other) = (rig.counter()?, rig.counter()?, rig.counter()?);
    let (deferred, waiting) = (rig.counter()?, rig.counter()?);
    let between = u64::MAX - 4;
    passing.set(u64::MAX - 9)?;
    let works = [
        Work::add(&deferred, 1, &passing, between),
        // It was never as high as that.
        Work::add(&waiting, 1, &passing, between + 1),
        // Of what is due at once the first one may be done in another way than the rest.
        Work::add(&other, 1, &trigger, 1),
        Work::add(&passing, 5, &trigger, 1),
        Work::add(&passing, 10, &trigger, 1),
        Work::add(&other, 1, &trigger, 1),
    ];
    queue_all(&rig.domain, &works)?;
    trigger.add(1)?;
    other.wait(2, Some(LONG))?;
    expect_value(&passing, 5)?;
    expect_value(&deferred, 1)?;
    settle();
    check_eq!(waiting.read()?, 0);
    rig.domain.flush_work(None)?;
    drop((trigger, passing, other, deferred, waiting));
    rig.close()
}

/// A change of a counter.
type Step = fn(&Counter) -> kfi::Result<()>;

fn success_and_error(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let target = rig.counter()?;
    let mut total = 0;
    let steps: [(u64, [Step; 3]); 6] = [
        (3, [|c| c.add(1), |c| c.add_err(1), |c| c.add_err(1)]),
        (3, [|c| c.add_err(2), |c| c.set_err(1), |c| c.add(2)]),
        (3, [|c| c.set(2), |c| c.set(1), |c| c.set_err(2)]),
        (3, [|c| c.add_err(1), |c| c.add_err(1), |c| c.add_err(1)]),
        (
            1 << 40,
            [|c| c.set(1), |c| c.set_err(1), |c| c.set_err(1 << 40)],
        ),
        // The sum does not wrap.
        (
            u64::MAX,
            [|c| c.set(9), |c| c.set_err(8), |c| c.set(u64::MAX - 3)],
        ),
    ];
    for (case, (threshold, steps)) in steps.into_iter().enumerate() {
        let trigger = rig.counter()?;
        let work = Work::add(&target, 1, &trigger, threshold);
        rig.domain.queue_work(&work)?;
        for (i, step) in steps.into_iter().enumerate() {
            check_eq!(target.read()?, total, "step {i} of case {case}");
            step(&trigger)?;
        }
        total += 1;
        target.wait(total, Some(LONG))?;
        trigger.add(1)?;
        trigger.add_err(1)?;
        check_eq!(target.read()?, total, "case {case}");
    }
    // The sum had been there before, but not since.
    let trigger = rig.counter()?;
    trigger.set(5)?;
    trigger.set_err(5)?;
    trigger.set(0)?;
    trigger.set_err(9)?;
    rig.domain
        .queue_work(&Work::add(&target, 1, &trigger, 10))?;
    settle();
    check_eq!(target.read()?, total);
    trigger.add(1)?;
    expect_value(&target, total + 1)?;
    drop((trigger, target));
    rig.close()
}

fn completion_counters(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let this = &net.peers[0];
    let domain = &net.rig.domain;
    let write = net.write(0, 1, 0, 64, 8).context(3);
    let loud = write.clone().flags(bits::COMPLETION);
    let work = |operation: &Operation, trigger: &Counter| {
        Work::transfer(OpType::WRITE, this.ep.handle(), operation, trigger, 1)
    };
    // None.
    let trigger = net.counter()?;
    domain.queue_work(&work(&write, &trigger))?;
    domain.queue_work(&work(&loud, &trigger))?;
    trigger.add(1)?;
    expect_count(&net.peers[1].remote, 2, 0)?;
    expect_contexts(&this.tx, &[3])?;
    expect_count(&this.sent, 1, 0)?;
    check_eq!(trigger.read()?, 1);
    // The same: each lets the next begin.
    let trigger = net.counter()?;
    let chain: Vec<_> = (1..=100)
        .map(|i| {
            Work::transfer(OpType::WRITE, this.ep.handle(), &write, &trigger, i)
                .completion(trigger.handle())
        })
        .collect();
    queue_all(domain, &chain)?;
    trigger.add(1)?;
    expect_value(&trigger, 101)?;
    check_eq!(this.sent.read()?, 1);
    // The endpoint's counter is added to once only.
    let trigger = net.counter()?;
    for (operation, should) in [(&write, 2), (&loud, 3)] {
        let bound = work(operation, &trigger).completion(this.sent.handle());
        domain.queue_work(&bound)?;
        trigger.set(1)?;
        expect_count(&this.sent, should, 0)?;
        settle();
        check_eq!(this.sent.read()?, should);
        trigger.set(0)?;
    }
    expect_contexts(&this.tx, &[3])?;
    // One of another event of the endpoint.
    let bound = work(&loud, &trigger).completion(this.received.handle());
    domain.queue_work(&bound)?;
    trigger.set(1)?;
    expect_count(&this.received, 1, 0)?;
    expect_count(&this.sent, 4, 0)?;
    expect_contexts(&this.tx, &[3])?;
    // Shared by many.
    let [trigger, done] = [net.counter()?, net.counter()?];
    let many = vec![work(&write, &trigger).completion(done.handle()); 1000];
    queue_all(domain, &many)?;
    trigger.add(1)?;
    expect_value(&done, 1000)?;
    net.close()
}

/// A deferred receive for several messages is done when its buffer is used up: its counter counts then, and once.
fn receive_for_several(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::MULTI_RECV)?;
    let Pair { a, b, .. } = &pair;
    let [trigger, finished] = [pair.counter()?, pair.counter()?];
    let from = Area::plain(&pair.session, 1024)?;
    let to = Area::plain(&pair.session, 4096)?;
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(to.all())
        .context(5)
        .flags(bits::MULTI_RECV | bits::COMPLETION);
    let work = Work::transfer(OpType::RECV, a.ep.handle(), &receive, &trigger, 1)
        .completion(finished.handle());
    pair.domain.queue_work(&work)?;
    trigger.add(1)?;
    for released in [0, 0, 0, bits::MULTI_RECV] {
        check_eq!(finished.read()?, 0);
        b.send(from.all(), 1)?;
        expect(&b.tx, 1, done::SEND_, 1024)?;
        expect(&a.rx, 5, done::RECV_ | released, 1024)?;
    }
    expect_value(&finished, 1)?;
    settle();
    check_eq!(finished.read()?, 1);
    drop((trigger, finished, from, to));
    pair.close()
}

fn exactly_one(env: &Env) -> Outcome {
    let size = 1 << 20;
    let setup = Setup {
        memory: 2 * size,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let [this, other] = [&net.peers[0], &net.peers[1]];
    for (pieces, flags) in [
        (1, 0),
        (16, 0),
        (1, bits::COMPLETION),
        (16, bits::COMPLETION),
    ] {
        for (kind, op_type) in [(Kind::WRITE, OpType::WRITE), (Kind::READ, OpType::READ)] {
            let [trigger, done] = [net.counter()?, net.counter()?];
            let before = this.sent.read()?;
            let mut operation = Operation::new(kind, Form::MSG)
                .to(other.addr)
                .context(1)
                .flags(flags);
            for i in 0..pieces {
                let len = size / pieces;
                operation = operation.segment(this.segment(i * len..(i + 1) * len)).rma(
                    size + i * len,
                    len,
                    other.key(),
                );
            }
            let work = Work::transfer(op_type, this.ep.handle(), &operation, &trigger, 1);
            net.rig.domain.queue_work(&work.completion(done.handle()))?;
            let [from, to] = if kind == Kind::WRITE {
                [this, other]
            } else {
                [other, this]
            };
            let (source, target) = if kind == Kind::WRITE {
                (0, size)
            } else {
                (size, 0)
            };
            from.fill(source..source + size, 0x5a);
            to.fill(target..target + size, 0);
            trigger.add(1)?;
            expect_value(&done, 1)?;
            settle();
            check_eq!((done.read()?, done.read_err()?), (1, 0));
            to.expect_filled(target..target + size, 0x5a)?;
            let loud = flags != 0;
            if loud {
                expect_context(&this.tx, 1)?;
            }
            expect_count(&this.sent, before + u64::from(loud), 0)?;
        }
    }
    net.close()
}

fn counter_operation_with_completion(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [trigger, target, done] = [rig.counter()?, rig.counter()?, rig.counter()?];
    for work in [
        Work::add(&target, 1, &trigger, 0),
        Work::set(&target, 1, &trigger, 1),
    ] {
        let work = work.completion(done.handle());
        expect_fabric(rig.domain.queue_work(&work), KfiErrno::EINVAL)?;
    }
    trigger.add(5)?;
    settle();
    check_eq!((target.read()?, done.read()?), (0, 0));
    for counter in [trigger, target, done] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn validation(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let foreign = Rig::in_session(env, net.rig.session.clone())?;
    let foreign_counter = foreign.counter()?;
    let domain = &net.rig.domain;
    let trigger = net.counter()?;
    let target = net.counter()?;
    let ep = net.peers[0].ep.handle();
    let idle = domain.endpoint(kfi::EpInfo::Entry(&net.rig.info, 0), 0)?;
    let einval = |work: Work| expect_fabric(domain.queue_work(&work), KfiErrno::EINVAL);

    // No request, no operation, no counter.
    let flags = uapi::KFI_SHIM_WORK_NULL;
    einval(Work::new(OpType::SEND, 0, 0).shim_flags(flags))?;
    for (kind, op_type) in exchange::KINDS {
        let no_op = Work::new(op_type, trigger.handle(), 0);
        einval(no_op.shim_flags(uapi::KFI_SHIM_WORK_NO_OP))?;
        let exchange = Exchange::new(&net, kind, 64)?;
        let operation = exchange.operation(Form::MSG).context(5);
        let work = |ep, operation: &Operation| Work::transfer(op_type, ep, operation, &trigger, 0);
        // Endpoints that are none.
        for handle in [
            0,
            domain.handle(),
            trigger.handle(),
            net.peers[0].tx.handle(),
        ] {
            einval(work(handle, &operation))?;
        }
        // One that is not enabled.
        let result = domain.queue_work(&work(idle.handle(), &operation));
        check!(
            matches!(result, Err(Error::Fabric(_))),
            "an endpoint that is not enabled: {result:?}"
        );
        // Counters that are none.
        for handle in [0, ep, domain.handle(), foreign_counter.handle()] {
            let mut bad = Work::new(op_type, handle, 0);
            bad = bad.shim_flags(uapi::KFI_SHIM_WORK_NO_OP);
            einval(bad)?;
            if handle != 0 {
                einval(work(ep, &operation).completion(handle))?;
            }
        }
        // Objects of another domain.
        let other = foreign.domain.queue_work(&work(ep, &operation));
        expect_fabric(other, KfiErrno::EINVAL)?;
        // Operations that a provider cannot do later.
        let inject = operation.clone().flags(bits::INJECT);
        einval(work(ep, &inject))?;
        let mut long = operation.clone();
        for _ in 0..300 {
            long = long.segment(net.peers[0].segment(0..8));
        }
        let result = domain.queue_work(&work(ep, &long));
        check!(result.is_err(), "{kind} with 301 segments");
        if [Kind::SEND, Kind::TSEND].contains(&kind) {
            net.peers[1].ep.cancel(990_099)?;
            expect_error(&net.peers[1].rx, 990_099, None)?;
        }
        exchange.expect_untouched()?;
    }
    // Atomic operations that there are not.
    let unknown = [
        (
            Kind::ATOMIC,
            OpType::ATOMIC,
            uapi::KFI_UINT64,
            uapi::KFI_CSWAP,
        ),
        (Kind::ATOMIC, OpType::ATOMIC, uapi::KFI_UINT64, 1000),
        (Kind::ATOMIC, OpType::ATOMIC, 1000, uapi::KFI_SUM),
        (
            Kind::COMPARE_ATOMIC,
            OpType::COMPARE_ATOMIC,
            uapi::KFI_UINT64,
            uapi::KFI_SUM,
        ),
        (
            Kind::FETCH_ATOMIC,
            OpType::FETCH_ATOMIC,
            uapi::KFI_UINT64,
            uapi::KFI_CSWAP,
        ),
    ];
    for (kind, op_type, datatype, op) in unknown {
        let exchange = Exchange::new(&net, kind, 64)?;
        let operation = exchange.operation(Form::MSG).atomic(datatype, op);
        let result = domain.queue_work(&Work::transfer(op_type, ep, &operation, &trigger, 0));
        expect_fabric(result, KfiErrno::ENOSYS)?;
    }
    // Looks at messages, which are not receives: they say at once what there is.
    for flags in [
        bits::PEEK,
        bits::CLAIM,
        bits::PEEK | bits::CLAIM,
        bits::PEEK | bits::DISCARD,
    ] {
        let look = Operation::new(Kind::TRECV, Form::MSG)
            .segment(net.peers[0].segment(0..8))
            .tag(5, 0)
            .flags(flags)
            .context(5);
        let work = Work::transfer(OpType::TRECV, ep, &look, &trigger, 1_000);
        expect_fabric(domain.queue_work(&work), KfiErrno::EBADFLAGS)?;
    }
    // Counters to change that are none.
    for op_type in [OpType::CNTR_ADD, OpType::CNTR_SET] {
        for handle in [0, ep, domain.handle(), foreign_counter.handle()] {
            einval(Work::new(op_type, trigger.handle(), 0).counter(handle, 1))?;
        }
        einval(Work::new(op_type, 0, 0).counter(target.handle(), 1))?;
        let no_op = Work::new(op_type, trigger.handle(), 0).counter(target.handle(), 1);
        einval(no_op.shim_flags(uapi::KFI_SHIM_WORK_NO_OP))?;
        let foreign_trigger = Work::new(op_type, foreign_counter.handle(), 0);
        einval(foreign_trigger.counter(target.handle(), 1))?;
    }
    // Nothing of that was queued.
    trigger.add(1_000)?;
    settle();
    check_eq!(target.read()?, 0);
    for counter in [trigger, target, foreign_counter] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    idle.close().map_err(|(_, error)| error)?;
    foreign.close()?;
    net.close()
}

fn unknown_operation(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let trigger = rig.counter()?;
    let last = OpType::CNTR_ADD.0.max(OpType::CNTR_SET.0);
    for op_type in [last + 1, last + 2, 0x7fff_ffff, u32::MAX] {
        let work = Work::new(OpType::SEND, trigger.handle(), 0).op_type(op_type);
        expect_fabric(rig.domain.queue_work(&work), KfiErrno::ENOSYS)?;
    }
    unshare(trigger)?.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn failure(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let this = &net.peers[0];
    for (round, flags) in (0..).zip([0, bits::COMPLETION]) {
        let [trigger, done, after] = [net.counter()?, net.counter()?, net.counter()?];
        let bad = Operation::new(Kind::WRITE, Form::MSG)
            .segment(this.segment(0..8))
            .rma(0, 8, 777)
            .to(net.peers[1].addr)
            .context(7)
            .flags(flags);
        let work = Work::transfer(OpType::WRITE, this.ep.handle(), &bad, &trigger, 1);
        let domain = &net.rig.domain;
        domain.queue_work(&work.completion(done.handle()))?;
        domain.queue_work(&Work::add(&after, 1, &done, 1))?;
        trigger.add(1)?;
        expect_value(&after, 1)?;
        expect_count(&done, 0, 1)?;
        // Failures are always told.
        expect_error(&this.tx, 7, None)?;
        quiet(&this.tx)?;
        expect_count(&this.sent, 0, round)?;
        check_eq!((trigger.read()?, trigger.read_err()?), (1, 0));
    }
    net.close()
}

fn cascade(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [one, other] = [rig.counter()?, rig.counter()?];
    let depth = env.scaled(100_000, 10_000).min(max_pending()) / 2;
    // From one to the other and back: one step each.
    let mut works = Vec::new();
    for i in 1..=depth {
        works.push(Work::add(&other, 1, &one, i));
        works.push(Work::add(&one, 1, &other, i));
    }
    queue_all(&rig.domain, &works)?;
    check_eq!((one.read()?, other.read()?), (0, 0));
    one.add(1)?;
    expect_value(&one, depth + 1)?;
    expect_value(&other, depth)?;
    for counter in [one, other] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn chain_of_counters(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let length = env.scaled(1_000, 100);
    let mut counters = Vec::new();
    for _ in 0..=length {
        counters.push(rig.counter()?);
    }
    let rounds = 20;
    let mut works = Vec::new();
    for pair in counters.windows(2) {
        for round in 1..=rounds {
            works.push(Work::add(&pair[1], 1, &pair[0], round));
        }
    }
    queue_all(&rig.domain, &works)?;
    let (first, last) = (&counters[0], &counters[length as usize]);
    for round in 1..=rounds / 2 {
        first.add(1)?;
        expect_value(last, round)?;
    }
    first.add(rounds / 2)?;
    expect_value(last, rounds)?;
    for counter in counters {
        check_eq!(counter.read()?, rounds);
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn itself(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let depth = env.scaled(10_000, 1_000);
    let adds: Vec<_> = (1..=depth)
        .map(|i| Work::add(&counter, 1, &counter, i))
        .collect();
    queue_all(&rig.domain, &adds)?;
    counter.add(1)?;
    expect_value(&counter, depth + 1)?;
    // Each sets it to what the next one waits for.
    counter.set(0)?;
    let sets: Vec<_> = (1..=depth)
        .map(|i| Work::set(&counter, i + 1, &counter, i))
        .collect();
    queue_all(&rig.domain, &sets)?;
    counter.set(1)?;
    expect_value(&counter, depth + 1)?;
    // A work that lowers it does not stop those that were due with it.
    counter.set(0)?;
    let target = rig.counter()?;
    let mut works = vec![Work::set(&counter, 0, &counter, 1)];
    works.extend((0..10).map(|_| Work::add(&target, 1, &counter, 1)));
    works.push(Work::add(&target, 100, &counter, 2));
    queue_all(&rig.domain, &works)?;
    counter.add(1)?;
    expect_value(&target, 10)?;
    check_eq!(counter.read()?, 0);
    counter.add(1)?;
    settle();
    check_eq!(target.read()?, 10);
    counter.add(1)?;
    expect_value(&target, 110)?;
    for counter in [counter, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn fan_out_and_in(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let width = env.scaled(10_000, 1_000);
    let [root, sum, last] = [rig.counter()?, rig.counter()?, rig.counter()?];
    let mut middle = Vec::new();
    for _ in 0..100 {
        middle.push(rig.counter()?);
    }
    let mut works = Vec::new();
    for i in 0..width {
        let counter = &middle[(i % 100) as usize];
        works.push(Work::add(counter, 1, &root, 1));
        works.push(Work::add(&sum, 1, counter, i / 100 + 1));
    }
    works.push(Work::set(&last, 7, &sum, width));
    queue_all(&rig.domain, &works)?;
    root.add(1)?;
    expect_value(&last, 7)?;
    expect_value(&sum, width)?;
    for counter in middle.into_iter().chain([root, sum, last]) {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn set_and_add(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for (value, first_set, second, first, should) in [
        (0, true, false, [5, 5], 10),
        (0, false, true, [5, 10], 10),
        (7, true, true, [3, 10], 10),
        (2, false, false, [3, 5], 10),
    ] {
        let [trigger, target] = [rig.counter()?, rig.counter()?];
        target.set(value)?;
        for (set, value) in [first_set, second].into_iter().zip(first) {
            let work = if set {
                Work::set(&target, value, &trigger, 1)
            } else {
                Work::add(&target, value, &trigger, 1)
            };
            rig.domain.queue_work(&work)?;
        }
        trigger.add(1)?;
        crate::rig::until(|| Ok(target.read()? == should))?;
        settle();
        check_eq!(target.read()?, should);
    }
    rig.close()
}

fn alias(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let transmit = net.peers[0].ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    let [trigger, done] = [net.counter()?, net.counter()?];
    let domain = &net.rig.domain;
    for flags in [0, bits::TRIGGER, bits::MORE] {
        let write = net.write(0, 1, 0, 64, 8).context(1).flags(flags);
        let work = Work::transfer(OpType::WRITE, transmit.handle(), &write, &trigger, 1);
        domain.queue_work(&work.completion(done.handle()))?;
    }
    trigger.add(1)?;
    expect_value(&done, 3)?;
    quiet(&net.peers[0].tx)?;
    transmit.close().map_err(|(_, error)| error)?;
    // The alias may go while work that was queued with it waits.
    let transmit = net.peers[0].ep.alias(bits::TRANSMIT | bits::TRIGGER)?;
    let write = net.write(0, 1, 0, 64, 8);
    let work = Work::transfer(OpType::WRITE, transmit.handle(), &write, &trigger, 2);
    domain.queue_work(&work.completion(done.handle()))?;
    transmit.close().map_err(|(_, error)| error)?;
    trigger.add(1)?;
    expect_value(&done, 4)?;
    net.close()
}

fn mixed(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let [this, other] = [&net.peers[0], &net.peers[1]];
    let [trigger, done] = [net.counter()?, net.counter()?];
    this.set_number(0, 1);
    let count = 200;
    let mut should = Vec::new();
    for i in 0..count {
        let threshold = 1 + i * 7 % 13;
        let fetch = net.fetch_add((0, 1), 0, 8, 64 + i * 8);
        if i % 3 == 0 {
            let fetch = fetch.flags(bits::TRIGGER).context(i);
            this.ep.post(&fetch.trigger(&trigger, threshold))?;
        } else {
            let work = Work::transfer(
                OpType::FETCH_ATOMIC,
                this.ep.handle(),
                &fetch,
                &trigger,
                threshold,
            );
            net.rig.domain.queue_work(&work.completion(done.handle()))?;
        }
        should.push((threshold, i));
    }
    should.sort_unstable();
    trigger.add(20)?;
    let classic = count.div_ceil(3);
    expect_value(&done, count - classic)?;
    crate::ends::contexts(&this.tx, classic as usize)?;
    for (rank, (_, i)) in (0..).zip(&should) {
        check_eq!(this.number(64 + i * 8), rank, "rank of {i}");
    }
    check_eq!(other.number(8), count);
    // The error value lets deferred work begin, and not the other.
    let write = net.write(0, 1, 0, 64, 8);
    let work = Work::transfer(OpType::WRITE, this.ep.handle(), &write, &trigger, 30);
    net.rig.domain.queue_work(&work.completion(done.handle()))?;
    let write = write.flags(bits::TRIGGER).context(5);
    this.ep.post(&write.trigger(&trigger, 30))?;
    trigger.add_err(10)?;
    expect_value(&done, count - classic + 1)?;
    settle();
    quiet(&this.tx)?;
    trigger.add(10)?;
    expect_contexts(&this.tx, &[5])?;
    net.close()
}

fn mixed_with_errors(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let this = &net.peers[0];
    let [source, trigger, done] = [net.counter()?, net.counter()?, net.counter()?];
    this.set_number(0, 1);
    // Additions that become due at once, but are made one after the other.
    let count = 8;
    for _ in 0..count {
        let add = Work::add(&trigger, 1, &source, 1);
        net.rig.domain.queue_work(&add)?;
    }
    // Each lets one of both kinds begin, as the errors count for deferred work only.
    let errors = 5;
    trigger.add_err(errors)?;
    for i in (0..count).rev() {
        let fetch = |slot| net.fetch_add((0, 1), 0, 8, 64 + slot * 8);
        let triggered = fetch(2 * i).flags(bits::TRIGGER).context(i);
        this.ep.post(&triggered.trigger(&trigger, i + 1))?;
        let threshold = i + 1 + errors;
        let ep = this.ep.handle();
        let work = Work::transfer(
            OpType::FETCH_ATOMIC,
            ep,
            &fetch(2 * i + 1),
            &trigger,
            threshold,
        );
        let work = work.completion(done.handle());
        net.rig.domain.queue_work(&work)?;
    }
    source.add(1)?;
    expect_value(&done, count)?;
    expect_contexts(&this.tx, &(0..count).collect::<Vec<_>>())?;
    for slot in 0..2 * count {
        check_eq!(this.number(64 + slot * 8), slot, "rank of {slot}");
    }
    net.close()
}

fn duplicates(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let session = &net.rig.session;
    let domain = &net.rig.domain;
    let [trigger, target] = [net.counter()?, net.counter()?];
    let id = domain.queue_work(&Work::add(&target, 1, &trigger, 1))?;
    for _ in 0..9 {
        session.requeue_work(id)?;
    }
    trigger.add(1)?;
    expect_value(&target, 10)?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Due at once.
    session.requeue_work(id)?;
    expect_value(&target, 11)?;
    trigger.set(0)?;
    for _ in 0..10 {
        session.requeue_work(id)?;
    }
    // All of them go.
    domain.cancel_work(id, 0)?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    trigger.set(1)?;
    settle();
    check_eq!(target.read()?, 11);
    // A transfer.
    trigger.set(0)?;
    let [this, other] = [&net.peers[0], &net.peers[1]];
    this.set_number(0, 1);
    let add = net.atomic(Kind::ATOMIC, uapi::KFI_SUM, (0, 1), 0, 8, 1);
    let work = Work::transfer(OpType::ATOMIC, this.ep.handle(), &add, &trigger, 1);
    let id = domain.queue_work(&work.completion(target.handle()))?;
    for _ in 0..4 {
        session.requeue_work(id)?;
    }
    trigger.add(1)?;
    expect_value(&target, 16)?;
    check_eq!(other.number(8), 5);
    net.close()
}

/// A node of a tree of endpoints.
struct Node {
    /// Counts those who have come, this one and its children.
    up: Arc<Counter>,
    /// Counts what has come down.
    down: Arc<Counter>,
    up_region: MemoryRegion,
    down_region: MemoryRegion,
}

/// Where a region starts, and its size.
const REGION: u64 = 4096;

fn node(net: &Net, index: usize) -> Result<Node, Stop> {
    let memory = &net.peers[index].memory;
    let domain = &net.rig.domain;
    let [up, down] = [net.counter()?, net.counter()?];
    let region = |number: u64, counter: &Counter| -> Result<MemoryRegion, Stop> {
        let start = number * REGION;
        let key = 100 + 2 * index as u64 + number;
        let attr = MrAttr::new(bits::REMOTE_WRITE, key);
        let region = domain.register(&[memory.segment(start..start + REGION)], &attr)?;
        region.bind(counter.handle(), bits::REMOTE_WRITE)?;
        Ok(region)
    };
    Ok(Node {
        up_region: region(0, &up)?,
        down_region: region(1, &down)?,
        up,
        down,
    })
}

fn collectives(env: &Env) -> Outcome {
    let count = 8;
    let setup = Setup {
        peers: count,
        selective: true,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let nodes = (0..count)
        .map(|index| node(&net, index))
        .collect::<Result<Vec<_>, _>>()?;
    let rounds = env.scaled(300, 20);
    let children = |i: usize| (2 * i + 1..2 * i + 3).filter(move |child| *child < count);
    // All rounds are built at once: up when a node and its children have come,
    // down with what the root has, and down again from each that has got it.
    let len = 1000;
    let mut works = Vec::new();
    for round in 1..=rounds {
        for (i, node) in nodes.iter().enumerate() {
            let come = (children(i).count() as u64 + 1) * round;
            let ep = net.peers[i].ep.handle();
            if i == 0 {
                works.push(Work::add(&node.down, 1, &node.up, come));
            } else {
                let parent = (i - 1) / 2;
                let slot = 8 * (i as u64 % 2);
                let arrive = Operation::new(Kind::WRITE, Form::MSG)
                    .segment(net.peers[i].segment(3 * REGION..3 * REGION + 8))
                    .rma(slot, 8, nodes[parent].up_region.key()?)
                    .to(net.peers[parent].addr);
                works.push(Work::transfer(OpType::WRITE, ep, &arrive, &node.up, come));
            }
            for child in children(i) {
                let spread = Operation::new(Kind::WRITE, Form::MSG)
                    .segment(net.peers[i].segment(REGION..REGION + len))
                    .rma(0, len, nodes[child].down_region.key()?)
                    .to(net.peers[child].addr);
                works.push(Work::transfer(
                    OpType::WRITE,
                    ep,
                    &spread,
                    &node.down,
                    round,
                ));
            }
        }
    }
    queue_all(&net.rig.domain, &works)?;
    for round in 1..=rounds {
        net.peers[0].fill(REGION..REGION + len, round as u8);
        // The last one who comes differs.
        for i in 0..count {
            let next = (i + round as usize) % count;
            if i == count - 1 {
                for node in &nodes {
                    check_eq!(node.down.read()?, round - 1, "before all have come");
                }
            }
            nodes[next].up.add(1)?;
        }
        for (i, node) in nodes.iter().enumerate() {
            expect_value(&node.down, round)?;
            net.peers[i].expect_filled(REGION..REGION + len, round as u8)?;
        }
    }
    for node in nodes {
        node.up_region.close().map_err(|(_, error)| error)?;
        node.down_region.close().map_err(|(_, error)| error)?;
    }
    net.close()
}

/// How much may be pending in a domain: the parameter of the module, as far as
/// it can be seen.
pub(crate) fn max_pending() -> u64 {
    let file = "/sys/module/kfi_soft/parameters/pending";
    let value = std::fs::read_to_string(file).unwrap_or_default();
    let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let on_line = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("kfi_soft.pending="))
        .next_back();
    let number = value.trim().parse().ok();
    number.or_else(|| on_line?.parse().ok()).unwrap_or(1 << 18)
}

fn limit(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let domain = &net.rig.domain;
    let session = &net.rig.session;
    let [trigger, target] = [net.counter()?, net.counter()?];
    let first = domain.queue_work(&Work::add(&target, 1, &trigger, 1))?;
    let fill = || -> Result<u64, Stop> {
        let mut count = 0;
        loop {
            match session.requeue_work(first) {
                Ok(()) => count += 1,
                Err(Error::Fabric(KfiErrno::ENOSPC)) => return Ok(count),
                Err(error) => return Err(error.into()),
            }
            check!(count < 1 << 21, "there is no limit");
        }
    };
    let count = 1 + fill()?;
    env.note(format!("{count} may be pending"));
    // For all kinds, and nothing is half done.
    let write = net.write(0, 1, 0, 64, 8);
    let ep = net.peers[0].ep.handle();
    let deferred = Work::transfer(OpType::WRITE, ep, &write, &trigger, 1);
    let deferred = deferred.completion(target.handle());
    expect_fabric(domain.queue_work(&deferred), KfiErrno::ENOSPC)?;
    let triggered = write.flags(bits::TRIGGER).context(1).trigger(&trigger, 1);
    expect_fabric(net.peers[0].ep.post(&triggered), KfiErrno::ENOSPC)?;
    // Another domain is another domain.
    let other = Rig::in_session(env, session.clone())?;
    let [one, two] = [other.counter()?, other.counter()?];
    other.domain.queue_work(&Work::add(&two, 1, &one, 1))?;
    domain.flush_work(None)?;
    one.add(1)?;
    expect_value(&two, 1)?;
    trigger.add(1)?;
    settle();
    check_eq!(target.read()?, 0);
    trigger.set(0)?;
    // As many again.
    check_eq!(fill()?, count);
    domain.cancel_work(first, 0)?;
    check_eq!(fill()?, count);
    trigger.add(1)?;
    expect_value(&target, count)?;
    trigger.set(0)?;
    check_eq!(fill()?, count);
    domain.flush_work(Some(&trigger))?;
    drop((one, two));
    other.close()?;
    net.close()
}

fn close_with_pending(env: &Env) -> Outcome {
    let mut net = Net::pair(env)?;
    let [trigger, done, target] = [net.counter()?, net.counter()?, net.counter()?];
    let write = net.write(0, 1, 0, 64, 8);
    let ep = net.peers[0].ep.handle();
    let work = Work::transfer(OpType::WRITE, ep, &write, &trigger, 1);
    net.rig.domain.queue_work(&work.completion(done.handle()))?;
    net.rig
        .domain
        .queue_work(&Work::add(&target, 1, &trigger, 1))?;
    let receive = net.receive(0, 0, 8);
    let work = Work::transfer(OpType::RECV, ep, &receive, &trigger, 1);
    net.rig.domain.queue_work(&work.completion(done.handle()))?;
    for counter in [&trigger, &done, &target] {
        expect_busy(net.rig.session.close_handle(counter.handle()))?;
    }
    let gone = net.peers.remove(0);
    gone.end.ep.close().map_err(|(_, error)| error)?;
    // Only work on counters is left.
    unshare(done)?.close().map_err(|(_, error)| error)?;
    for counter in [&trigger, &target] {
        expect_busy(net.rig.session.close_handle(counter.handle()))?;
    }
    trigger.add(1)?;
    expect_value(&target, 1)?;
    expect_count(&net.peers[0].remote, 0, 0)?;
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

fn more_than_fits(env: &Env) -> Outcome {
    let setup = Setup {
        tx_size: 4,
        cq_size: 4,
        memory: 256 << 10,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let [trigger, done] = [net.counter()?, net.counter()?];
    let ep = net.peers[0].ep.handle();
    let count = 400;
    for i in 0..count {
        let len = if i % 8 == 0 { 100_000 } else { 8 };
        let write = net.write(0, 1, 0, 100_000, len).context(i);
        // Writes with an entry wait for room in the completion queue.
        let write = write.flags(if i % 2 == 1 { bits::COMPLETION } else { 0 });
        let work = Work::transfer(OpType::WRITE, ep, &write, &trigger, 1);
        net.rig.domain.queue_work(&work.completion(done.handle()))?;
    }
    trigger.add(1)?;
    let mut seen = Vec::new();
    for _ in 0..count / 2 {
        seen.push(complete(&net.peers[0].tx)?.op_context);
    }
    expect_value(&done, count)?;
    check!(
        seen.iter().all(|context| context % 2 == 1),
        "completions that nobody asked for"
    );
    seen.sort_unstable();
    seen.dedup();
    check_eq!(seen.len() as u64, count / 2);
    net.close()
}

fn more_receives_than_fit(env: &Env) -> Outcome {
    let setup = Setup {
        rx_size: 8,
        cq_size: 256,
        ..Setup::default()
    };
    let net = Net::new(env, &setup)?;
    let [trigger, done] = [net.counter()?, net.counter()?];
    let ep = net.peers[0].ep.handle();
    let count = 100;
    for i in 0..count {
        let receive = net.receive(0, 8 * i, 8).context(i);
        let receive = receive.flags(bits::COMPLETION);
        let work = Work::transfer(OpType::RECV, ep, &receive, &trigger, 1);
        net.rig.domain.queue_work(&work.completion(done.handle()))?;
    }
    trigger.add(1)?;
    for i in 0..count {
        net.peers[1].set_number(0, 1000 + i);
        net.peers[1].ep.post(&net.send(1, 0, 0, 8).context(i))?;
        expect_context(&net.peers[1].tx, i)?;
        // In the order in which they were fired.
        expect_context(&net.peers[0].rx, i)?;
        check_eq!(net.peers[0].number(8 * i), 1000 + i);
    }
    expect_value(&done, count)?;
    net.close()
}

/// Endpoints that share room for operations, and a peer that has no receive until it is asked to.
struct SharedRoom {
    pair: Pair,
    stx: Endpoint,
    ends: Vec<End>,
    /// What is sent is the context, from here.
    from: Area,
    to: Area,
    trigger: Arc<Counter>,
}

impl SharedRoom {
    /// How many contexts there are.
    const CONTEXTS: u64 = 512;

    fn new(env: &Env, size: u64, ends: usize) -> Result<Self, Stop> {
        let pair = Pair::new(env, Caps::MSG)?;
        let attr = TxAttr {
            size,
            ..pair.entry().tx_attr.clone()
        };
        let stx = match pair.rig.domain.stx_context(Some(&attr), 0) {
            Err(Error::Fabric(KfiErrno::ENOSYS)) => {
                return Err(Stop::Skip("transmit contexts are not shared".to_owned()));
            }
            stx => stx?,
        };
        let open = || {
            let info = EpInfo::Entry(&pair.rig.info, 0);
            let mut end = End::open(&pair.rig.domain, info, &Setup::default())?;
            end.ep.bind(stx.handle(), 0)?;
            end.enable()?;
            end.connect(&pair.b)?;
            Ok::<_, Stop>(end)
        };
        let ends = (0..ends).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
        let from = Area::plain(&pair.session, 8 * SharedRoom::CONTEXTS)?;
        for context in 0..SharedRoom::CONTEXTS {
            from.write(8 * context, &context.to_ne_bytes());
        }
        let to = Area::plain(&pair.session, 8)?;
        let trigger = pair.counter()?;
        Ok(Self {
            pair,
            stx,
            ends,
            from,
            to,
            trigger,
        })
    }

    /// Adds an endpoint that has room for itself, for so many operations.
    fn add_own(&mut self, size: u64) -> Outcome {
        let mut entry = self.pair.entry().clone();
        entry.tx_attr.size = size;
        let domain = &self.pair.rig.domain;
        let mut own = End::open(domain, kfi::EpInfo::Value(&entry), &Setup::default())?;
        own.enable()?;
        own.connect(&self.pair.b)?;
        self.ends.push(own);
        Ok(())
    }

    /// Lets an endpoint send the contexts, when the counter comes to one more.
    fn submit(&self, end: usize, contexts: &[u64]) -> Outcome {
        self.submit_with(end, contexts, 0)
    }

    /// The same with further flags.
    fn submit_with(&self, end: usize, contexts: &[u64], flags: u64) -> Outcome {
        let threshold = self.trigger.read()? + 1;
        let end = &self.ends[end];
        for context in contexts {
            let send = Operation::new(Kind::SEND, Form::MSG)
                .segment(self.from.part(8 * context, 8))
                .to(end.peer)
                .context(*context)
                .flags(bits::COMPLETION | flags);
            let work = Work::transfer(
                OpType::SEND,
                end.ep.handle(),
                &send,
                &self.trigger,
                threshold,
            );
            self.pair.domain.queue_work(&work)?;
        }
        Ok(())
    }

    /// Receives a message, and returns its content.
    fn receive(&self) -> Result<u64, Stop> {
        let b = &self.pair.b;
        b.recv(self.to.all(), 1)?;
        expect(&b.rx, 1, done::RECV_, 8)?;
        let bytes = self.to.bytes(0, 8);
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn close(self) -> Outcome {
        drop((self.ends, self.from, self.to, self.trigger));
        self.stx.close().map_err(|(_, error)| error)?;
        self.pair.close()
    }
}

/// What has fired at endpoints that share room has its turn, whatever the others have.
fn shared_room_in_turns(env: &Env) -> Outcome {
    let room = SharedRoom::new(env, 1, 3)?;
    room.submit(0, &[1, 2, 3, 4, 5, 6])?;
    room.submit(1, &[11])?;
    room.submit(2, &[21, 22])?;
    room.trigger.add(1)?;
    let received = (0..9)
        .map(|_| room.receive())
        .collect::<Result<Vec<_>, _>>()?;
    // The first one has the room; behind it each has a turn.
    check_eq!(received, [1, 2, 11, 21, 3, 22, 4, 5, 6]);
    for (end, contexts) in [(0, &[1, 2, 3, 4, 5, 6][..]), (1, &[11]), (2, &[21, 22])] {
        for context in contexts {
            expect(&room.ends[end].tx, *context, done::SEND_, 8)?;
        }
    }
    room.close()
}

/// Nobody can post where something that has fired still waits for room, however much has just become free.
fn shared_room_before_posts(env: &Env) -> Outcome {
    let room = SharedRoom::new(env, 2, 2)?;
    let other = &room.ends[1];
    for round in 0..env.scaled(100, 10) {
        for context in [11, 12] {
            other.send(room.from.part(8 * context, 8), context)?;
        }
        room.submit(0, &[1, 2, 3])?;
        room.trigger.add(1)?;
        for context in [11, 12] {
            check_eq!(room.receive()?, context);
            expect(&other.tx, context, done::SEND_, 8)?;
        }
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(room.from.part(13 * 8, 8));
        let send = send.to(other.peer).context(13);
        let posted = other.ep.post(&send);
        check!(
            posted == Err(Error::Fabric(KfiErrno::EAGAIN)),
            "{posted:?} in round {round}"
        );
        for context in 1..=3 {
            check_eq!(room.receive()?, context);
            expect(&room.ends[0].tx, context, done::SEND_, 8)?;
        }
        other.post(&send)?;
        check_eq!(room.receive()?, 13);
        expect(&other.tx, 13, done::SEND_, 8)?;
    }
    room.close()
}

/// Nor where it waits for the work queue only, as what was before its fence has just ended.
fn shared_room_behind_a_fence_before_posts(env: &Env) -> Outcome {
    let room = SharedRoom::new(env, 1, 2)?;
    let [one, other] = [&room.ends[0], &room.ends[1]];
    let send = Operation::new(Kind::SEND, Form::PLAIN).segment(room.from.part(13 * 8, 8));
    let send = send.to(other.peer).context(13);
    for round in 0..env.scaled(100, 10) {
        room.submit(0, &[1])?;
        room.submit_with(0, &[2], bits::FENCE)?;
        room.trigger.add(1)?;
        // This ends the first one, but over a network, and leaves the second one to the work queue.
        let b = &room.pair.b;
        b.recv(room.to.all(), 1)?;
        if !module::is_over_network() {
            let posted = other.ep.post(&send);
            check!(
                posted == Err(Error::Fabric(KfiErrno::EAGAIN)),
                "{posted:?} in round {round}"
            );
        }
        expect(&b.rx, 1, done::RECV_, 8)?;
        check_eq!(room.receive()?, 2);
        for context in [1, 2] {
            expect(&one.tx, context, done::SEND_, 8)?;
        }
        other.post(&send)?;
        check_eq!(room.receive()?, 13);
        expect(&other.tx, 13, done::SEND_, 8)?;
    }
    room.close()
}

/// Room that was meant for an endpoint that has no use for it any more goes to the next one; and it has its turn again
/// if it has.
fn shared_room_of_those_that_go(env: &Env) -> Outcome {
    let mut room = SharedRoom::new(env, 1, 5)?;
    room.submit(0, &[1])?;
    for end in 1..5 {
        room.submit(end, &[[0, 10, 20, 30, 8][end]])?;
    }
    room.trigger.add(1)?;
    // They wait for the first one: the second one is cancelled, the third one goes.
    room.ends[1].ep.cancel(10)?;
    expect_error(&room.ends[1].tx, 10, KfiErrno::ECANCELED)?;
    drop(room.ends.remove(2));
    check_eq!(room.receive()?, 1);
    check_eq!(room.receive()?, 30);
    check_eq!(room.receive()?, 8);
    room.submit(1, &[12])?;
    room.submit(0, &[2])?;
    room.trigger.add(1)?;
    check_eq!(room.receive()?, 12);
    check_eq!(room.receive()?, 2);
    for (end, contexts) in [(0, &[1, 2][..]), (1, &[12]), (2, &[30]), (3, &[8])] {
        for context in contexts {
            expect(&room.ends[end].tx, *context, done::SEND_, 8)?;
        }
    }
    // A message can be posted where nobody waits.
    room.ends[3].send(room.from.part(0, 8), 5)?;
    check_eq!(room.receive()?, 0);
    expect(&room.ends[3].tx, 5, done::SEND_, 8)?;
    room.close()
}

/// Room is not kept for an operation that waits for others of its endpoint to end.
fn shared_room_and_a_fence(env: &Env) -> Outcome {
    let room = SharedRoom::new(env, 2, 2)?;
    let [one, other] = [&room.ends[0], &room.ends[1]];
    let part = |number: u64| room.from.part(8 * number, 8);
    one.send(part(1), 1)?;
    other.send(part(2), 2)?;
    room.submit(0, &[3])?;
    room.submit_with(0, &[4], bits::FENCE)?;
    room.trigger.add(1)?;
    // It has got into line for this one.
    one.ep.cancel(3)?;
    expect_error(&one.tx, 3, KfiErrno::ECANCELED)?;
    other.ep.cancel(2)?;
    expect_error(&other.tx, 2, KfiErrno::ECANCELED)?;
    // As when it is turned away: once, if there is no room.
    let send = Operation::new(Kind::SEND, Form::PLAIN).segment(part(5));
    other.ep.post(&send.to(other.peer).context(5))?;
    for number in [1, 5, 4] {
        check_eq!(room.receive()?, number);
    }
    expect(&one.tx, 1, done::SEND_, 8)?;
    expect(&one.tx, 4, done::SEND_, 8)?;
    expect(&other.tx, 5, done::SEND_, 8)?;
    room.close()
}

/// Nor is it kept for the many that wait behind such a one.
fn shared_room_of_many_behind_a_fence(env: &Env) -> Outcome {
    const ROOM: u64 = 192;
    let room = SharedRoom::new(env, ROOM, 2)?;
    let [one, other] = [&room.ends[0], &room.ends[1]];
    let fill = |contexts: Range<u64>| -> Outcome {
        for context in contexts {
            other.send(room.from.part(8 * context, 8), context)?;
        }
        Ok(())
    };
    let clear = |contexts: Range<u64>| -> Outcome {
        for context in contexts.clone() {
            other.ep.cancel(context)?;
        }
        for context in contexts {
            expect_error(&other.tx, context, KfiErrno::ECANCELED)?;
        }
        Ok(())
    };
    let others = ROOM..2 * ROOM;
    for _ in 0..env.scaled(20, 2) {
        fill(others.clone())?;
        room.submit(0, &[0])?;
        room.submit_with(0, &[1], bits::FENCE)?;
        room.submit(0, &(2..ROOM).collect::<Vec<_>>())?;
        room.trigger.add(1)?;
        // All of that is offered to the endpoint, which begins its first one.
        clear(others.clone())?;
        fill(others.start..others.end - 1)?;
        let mut next = others.start;
        // The work queue begins it, which may come behind some of these.
        loop {
            let number = room.receive()?;
            if number == 0 {
                break;
            }
            check_eq!(number, next);
            expect(&other.tx, number, done::SEND_, 8)?;
            next += 1;
        }
        clear(next..others.end - 1)?;
        expect(&one.tx, 0, done::SEND_, 8)?;
        for context in 1..ROOM {
            check_eq!(room.receive()?, context);
            expect(&one.tx, context, done::SEND_, 8)?;
        }
    }
    room.close()
}

/// Nor is that of an operation that was posted behind such a one, and is cancelled.
fn shared_room_behind_a_fence(env: &Env) -> Outcome {
    let mut room = SharedRoom::new(env, 2, 3)?;
    let (ends, receiver) = room.ends.split_at_mut(2);
    let receiver = &receiver[0];
    ends[1].connect(receiver)?;
    let to = Area::plain(&room.pair.session, 8)?;
    receiver.recv(to.all(), 9)?;
    let [one, other] = [&room.ends[0], &room.ends[1]];
    one.send(room.from.part(8, 8), 1)?;
    room.submit_with(0, &[2], bits::FENCE)?;
    room.trigger.add(1)?;
    one.send(room.from.part(24, 8), 3)?;
    room.submit(1, &[11])?;
    room.trigger.add(1)?;
    one.ep.cancel(3)?;
    expect_error(&one.tx, 3, KfiErrno::ECANCELED)?;
    // The first message of the other endpoint is not received yet.
    expect(&other.tx, 11, done::SEND_, 8)?;
    expect(&room.ends[2].rx, 9, done::RECV_, 8)?;
    for number in [1, 2] {
        check_eq!(room.receive()?, number);
        expect(&room.ends[0].tx, number, done::SEND_, 8)?;
    }
    drop(to);
    room.close()
}

/// What has fired begins with the room of a post behind it; but no more are posted than there is room for.
fn room_of_posts_behind_fences(env: &Env) -> Outcome {
    const SIZE: u64 = 2;
    const FENCES: u64 = 8;
    let mut room = SharedRoom::new(env, SIZE, 1)?;
    room.add_own(SIZE)?;
    for at in [0, 1] {
        let end = &room.ends[at];
        let mut next = FENCES;
        let mut under_way = 0;
        let mut post = || {
            let send = Operation::new(Kind::SEND, Form::PLAIN).segment(room.from.part(8 * next, 8));
            let posted = end.ep.post(&send.to(end.peer).context(next));
            match posted {
                Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok::<_, Stop>(false),
                posted => posted?,
            }
            next += 1;
            Ok(true)
        };
        check!(post()?, "no room");
        under_way += 1;
        room.submit_with(at, &(0..FENCES).collect::<Vec<_>>(), bits::FENCE)?;
        room.trigger.add(1)?;
        let mut received = 0;
        let mut ended = 0;
        while received < FENCES || under_way != 0 {
            while received < FENCES && post()? {
                under_way += 1;
            }
            check!(under_way <= SIZE, "{under_way} of {SIZE} at {at}");
            let number = room.receive()?;
            expect(&end.tx, number, done::SEND_, 8)?;
            if number < FENCES {
                check_eq!(number, received);
                received += 1;
            } else {
                check_eq!(number, FENCES + ended);
                ended += 1;
                under_way -= 1;
            }
        }
    }
    room.close()
}

/// While posts behind a fence wait whose room what has fired has got, others can be posted if there is room.
fn room_beside_lent_room(env: &Env) -> Outcome {
    let mut room = SharedRoom::new(env, 1, 0)?;
    room.add_own(128)?;
    let end = &room.ends[0];
    let send = |number: u64, flags| {
        let send = Operation::new(Kind::SEND, Form::MSG).segment(room.from.part(8 * number, 8));
        end.ep.post(&send.to(end.peer).context(number).flags(flags))
    };
    let flags = bits::COMPLETION | bits::FENCE;
    for fired in [1, 20] {
        let (behind, others) = (3 + fired, 3 + 2 * fired);
        send(1, bits::COMPLETION)?;
        send(2, flags)?;
        room.submit(0, &(3..behind).collect::<Vec<_>>())?;
        room.trigger.add(1)?;
        for number in behind..others {
            send(number, flags)?;
        }
        // The next one begins, and all that have fired.
        check_eq!(room.receive()?, 1);
        expect(&end.tx, 1, done::SEND_, 8)?;
        for number in others..others + 15 {
            send(number, bits::COMPLETION)?;
        }
        for number in 2..others + 15 {
            check_eq!(room.receive()?, number);
            expect(&end.tx, number, done::SEND_, 8)?;
        }
    }
    room.close()
}

/// Room that is lent comes back to the endpoint that has lent it, and another one cannot post there.
fn room_lent_by_several(env: &Env) -> Outcome {
    const SIZE: u64 = 6;
    // What has fired, then what is posted at one endpoint, and at the other one.
    const POSTED: u64 = SIZE;
    const OTHERS: u64 = 2 * SIZE;
    let room = SharedRoom::new(env, SIZE, 2)?;
    let post = |at: usize, number: u64| {
        let end = &room.ends[at];
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(room.from.part(8 * number, 8));
        match end.ep.post(&send.to(end.peer).context(number)) {
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok::<_, Stop>(false),
            posted => posted.map(|()| true).map_err(Stop::from),
        }
    };
    for _ in 0..env.scaled(20, 2) {
        check!(post(0, POSTED)?, "no room");
        room.submit_with(0, &(1..POSTED).collect::<Vec<_>>(), bits::FENCE)?;
        room.trigger.add(1)?;
        for number in POSTED + 1..OTHERS {
            check!(post(0, number)?, "no room for {number}");
        }
        let mut under_way = SIZE;
        let mut next = OTHERS;
        let mut left = OTHERS - 1;
        while left != 0 {
            while next < 4 * SIZE && post(1, next)? {
                next += 1;
                under_way += 1;
                left += 1;
            }
            check!(under_way <= SIZE, "{under_way} of {SIZE}");
            let number = room.receive()?;
            let end = &room.ends[usize::from(number >= OTHERS)];
            expect(&end.tx, number, done::SEND_, 8)?;
            left -= 1;
            if number >= POSTED {
                under_way -= 1;
            }
        }
        check_eq!(next, 4 * SIZE);
    }
    room.close()
}

/// The room of a post that is cancelled is not kept for what has fired before it, and waits behind a fence.
fn room_of_a_cancelled_post(env: &Env) -> Outcome {
    const SIZE: u64 = 2;
    let mut room = SharedRoom::new(env, SIZE, 1)?;
    room.add_own(SIZE)?;
    for at in [0, 1] {
        let end = &room.ends[at];
        end.send(room.from.part(0, 8), 0)?;
        room.submit_with(at, &[1], bits::FENCE)?;
        room.trigger.add(1)?;
        for number in [2, 3] {
            end.send(room.from.part(8 * number, 8), number)?;
            end.ep.cancel(number)?;
            expect_error(&end.tx, number, KfiErrno::ECANCELED)?;
        }
        end.send(room.from.part(8 * 4, 8), 4)?;
        for number in [0, 1, 4] {
            check_eq!(room.receive()?, number);
            expect(&end.tx, number, done::SEND_, 8)?;
        }
    }
    room.close()
}
