// SPDX-License-Identifier: GPL-2.0

//! Numbers that are contexts: each is told to the one who gave it, none is taken for a pointer,
//! and none tells what is one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::{
    bits, uapi, AvAttr, BufferKind, Caps, CqAttr, EpInfo, Error, Form, KfiErrno, Kind, Operation,
};
use rustix::io::Errno;
use zerocopy::{FromZeros, IntoBytes};

use super::{limited, pair, pair_for, unless_missing};
use crate::check::{Outcome, Stop};
use crate::ends::{complete, End, Pair, Setup};
use crate::env::Env;
use crate::rig::{expect_fabric, Rig};
use crate::tests::module::Modules;
use crate::{check, check_eq, raw};

/// The default flags change while operations are posted whose contexts are small numbers.
pub(super) fn context_is_no_pointer(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let limit: u64 = pair.entry().tx_attr.iov_limit.clamp(1, 256);
    let pieces: Vec<_> = (0..limit)
        .map(|i| buffer.segment(i * 8..i * 8 + 8))
        .collect();
    let stop = AtomicBool::new(false);
    let rounds = env.scaled(4_000, 400);
    thread::scope(|scope| {
        let toggler = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for flags in [bits::RECV | bits::TRIGGER, bits::RECV] {
                    let _ = pair.a.ep.set_ops_flags(flags);
                }
            }
        });
        let mut outcome = Ok(());
        for round in 0..rounds {
            let receive = Operation::new(Kind::RECV, Form::SGL)
                .segments(&pieces)
                .context(8 * round);
            let result = pair.a.ep.post(&receive);
            match result {
                Ok(())
                | Err(Error::Fabric(KfiErrno::EINVAL | KfiErrno::EAGAIN | KfiErrno::ENOSYS)) => {}
                Err(error) => outcome = Err(Stop::from(error)),
            }
            if result.is_ok() {
                // Each is found by its number.
                match pair.a.ep.cancel(8 * round) {
                    Ok(()) => {}
                    Err(error) => outcome = Err(Stop::fail(format!("{error}: cancel {round}"))),
                }
                match pair.a.rx.read_err() {
                    Ok(error) if error.entry.op_context == 8 * round => {}
                    other => outcome = Err(Stop::fail(format!("{other:?} after {round}"))),
                }
            }
            if outcome.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let _ = toggler.join();
        outcome
    })?;
    drop(buffer);
    pair.close()
}

/// Any number is a context, also one that could be an address, and comes back.
pub(super) fn contexts(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let numbers = [
        0,
        1,
        0x1000,
        0x6000_0000,
        u64::from(u32::MAX),
        0xffff_8880_0000_0000,
        u64::MAX,
    ];
    for number in numbers {
        for _ in 0..3 {
            pair.a.recv(buffer.segment(0..64), number)?;
            pair.a.recv(buffer.segment(0..64), number)?;
            for _ in 0..2 {
                pair.b.send(buffer.segment(64..128), !number)?;
                check_eq!(complete(&pair.b.tx)?.op_context, !number);
                check_eq!(complete(&pair.a.rx)?.op_context, number);
            }
        }
    }
    drop(buffer);
    pair.close()
}

/// A message that was looked at is claimed by the operation with the same context, also when the
/// completion of the look was read long ago.
pub(super) fn claim(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED | Caps::SEND | Caps::RECV)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    for context in [5, u64::MAX] {
        pair.b.post(
            &pair
                .b
                .operation(Kind::TSEND, Form::PLAIN)
                .segment(buffer.segment(0..100))
                .tag(9, 0)
                .context(1),
        )?;
        let look = Operation::new(Kind::TRECV, Form::MSG)
            .tag(9, 0)
            .flags(bits::PEEK | bits::CLAIM)
            .context(context);
        loop {
            pair.a.post(&look)?;
            match pair.a.rx.sread_ms(1, 60_000) {
                Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                    // It is not there yet.
                    check_eq!(pair.a.rx.read_err()?.entry.op_context, context);
                }
                entries => {
                    check_eq!(entries?[0].op_context, context);
                    break;
                }
            }
        }
        pair.a.post(
            &Operation::new(Kind::TRECV, Form::MSG)
                .segment(buffer.segment(1000..1100))
                .tag(9, 0)
                .flags(bits::CLAIM)
                .context(context),
        )?;
        let entry = complete(&pair.a.rx)?;
        check_eq!((entry.op_context, entry.len), (context, 100));
        check_eq!(complete(&pair.b.tx)?.op_context, 1);
    }
    drop(buffer);
    pair.close()
}

/// One cancel, one operation, however many have the number, and with and without a condition.
pub(super) fn cancel_by_number(env: &Env) -> Outcome {
    const COUNT: usize = 20;
    let pair = pair(env)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let counter = pair.rig.counter()?;
    for number in [3, u64::MAX - 3] {
        for _ in 0..COUNT {
            pair.a.recv(buffer.segment(0..64), number)?;
            let receive = Operation::new(Kind::RECV, Form::MSG)
                .segment(buffer.segment(0..64))
                .flags(bits::TRIGGER | bits::COMPLETION)
                .context(number);
            pair.a.post(&receive.trigger(&counter, 1000))?;
        }
        expect_fabric(pair.a.ep.cancel(number + 1), KfiErrno::ENOENT)?;
        for _ in 0..2 * COUNT {
            pair.a.ep.cancel(number)?;
            let error = pair.a.rx.read_err()?;
            check_eq!(error.entry.op_context, number);
        }
        expect_fabric(pair.a.ep.cancel(number), KfiErrno::ENOENT)?;
    }
    drop((buffer, counter));
    pair.close()
}

/// Members with a handler go while somebody polls: the poll returns a number that was given, or
/// nothing.
pub(super) fn poll_tells(env: &Env) -> Outcome {
    const NUMBER: u64 = 0xffff_9000_1234_0000;
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let stop = AtomicBool::new(false);
    let told = thread::scope(|scope| {
        let poller = scope.spawn(|| {
            let mut told = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                if let Ok(contexts) = set.poll(16) {
                    told.extend(contexts);
                    told.sort_unstable();
                    told.dedup();
                }
            }
            told
        });
        let change = || -> Outcome {
            for _ in 0..env.scaled(500, 50) {
                let attr = CqAttr::new().handler().context(NUMBER);
                let cq = rig.domain.completion_queue(&attr)?;
                set.add_handle(cq.handle(), 0)?;
                // Something to poll for, where the provider lets it be written.
                let _ = cq.write(&kfi::Completion::default());
                set.del_handle(cq.handle(), 0)?;
                let _ = cq.close();
            }
            Ok(())
        };
        let outcome = change();
        stop.store(true, Ordering::Relaxed);
        let told = poller.join().unwrap_or_default();
        outcome.map(|()| told)
    })?;
    let other: Vec<_> = told.iter().filter(|n| ![0, NUMBER].contains(n)).collect();
    check!(other.is_empty(), "addresses of the kernel: {other:x?}");
    drop(set);
    rig.close()
}

/// The cost of a number as a context does not tell whether it could be an address of this kernel.
pub(super) fn numbers_cost_the_same(env: &Env) -> Outcome {
    limited(env, c"max_memory=4194304", |rig| {
        let av = rig.domain.address_vector(&AvAttr::default())?;
        // As large a vector as there may be.
        let of = |count| {
            rig.domain.address_vector(&AvAttr {
                count,
                ..AvAttr::default()
            })
        };
        let (mut fits, mut too_large) = (0, 1 << 22);
        while fits + 1 < too_large {
            let count = u64::midpoint(fits, too_large);
            match of(count) {
                Ok(_) => fits = count,
                Err(Error::Os(Errno::DQUOT)) => too_large = count,
                Err(error) => return Err(error.into()),
            }
        }
        // With some room left: none for a structure, or for one.
        let mut bits: Vec<u32> = (0..64).collect();
        bits.rotate_left(3);
        for less in 0..12 {
            let _large = of(fits - less)?;
            let mut answers = Vec::new();
            for bit in &bits {
                for number in [1u64 << bit, u64::MAX >> bit] {
                    let mut insert = uapi::kfi_shim_av_insert {
                        av: av.handle(),
                        context: number,
                        ..FromZeros::new_zeroed()
                    };
                    let argument = insert.as_mut_bytes();
                    let errno = raw::bytes(&rig.session, uapi::KFI_REQUEST_AV_INSERT, argument);
                    answers.push((number, errno.err()));
                }
            }
            let other = answers.iter().find(|(_, errno)| *errno != answers[0].1);
            check_eq!(other, None, "unlike {:x?}, {less} less", answers[0]);
        }
        drop(av);
        Ok(())
    })
}

/// The flags of an endpoint are those of its alias in one direction; a receive that takes several
/// messages for that reason has its context until the last one.
pub(super) fn alias_receives_many(env: &Env) -> Outcome {
    const MULTI: u64 = bits::RECV | bits::MULTI_RECV;
    let pair = pair(env)?;
    let alias = pair.a.ep.alias(bits::TRANSMIT)?;
    pair.a.ep.set_ops_flags(MULTI)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 16)?;
    let receive = |context| {
        Operation::new(Kind::RECV, Form::PLAIN)
            .segment(buffer.segment(0..4096))
            .context(context)
    };
    alias.post(&receive(7))?;
    for round in 0..8 {
        pair.b.send(buffer.segment(8192..8292), 1)?;
        complete(&pair.b.tx)?;
        let entry = complete(&pair.a.rx)?;
        check_eq!((entry.op_context, entry.len), (7, 100), "message {round}");
        // Memory that was freed too early would be used by these.
        for number in 100..110 {
            pair.a.ep.post(&receive(1000 * round + number))?;
        }
    }
    pair.a.ep.cancel(7)?;
    check_eq!(pair.a.rx.read_err()?.entry.op_context, 7);
    drop((alias, buffer));
    pair.close()
}

/// Where messages were received, something else may be when their completions are read.
pub(super) fn stale_places(env: &Env) -> Outcome {
    const MESSAGES: u64 = 600;
    let pending = env.scaled(4_000, 1_000);
    let mut pair = Pair::prepare(
        env,
        Caps::MSG | Caps::SEND | Caps::RECV,
        &Setup {
            cq_size: MESSAGES,
            ..Setup::default()
        },
    )?;
    pair.connect()?;
    let mut entry = pair.entry().clone();
    entry.rx_attr.size = pending;
    let mut third = End::open(&pair.domain, kfi::EpInfo::Value(&entry), &Setup::default())?;
    third.enable()?;
    let kept = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let counter = pair.rig.counter()?;
    let place = pair.session.buffer(BufferKind::KMALLOC, 1 << 16)?;
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(place.all())
        .flags(bits::MULTI_RECV | bits::COMPLETION)
        .context(3);
    pair.a.ep.post(&receive)?;
    for number in 0..MESSAGES {
        pair.b.send(kept.segment(0..96), number)?;
        complete(&pair.b.tx)?;
    }
    let Pair { a, b, far, rig } = pair;
    let End { ep, tx, rx, av, .. } = a;
    drop((ep, place));
    // Their structures may be where the messages were.
    for number in 0..pending {
        let receive = Operation::new(Kind::RECV, Form::MSG)
            .segment(kept.segment(0..64))
            .flags(bits::TRIGGER | bits::COMPLETION)
            .context(1_000_000 + number);
        third.ep.post(&receive.trigger(&counter, 1000))?;
    }
    let mut read = 0;
    while let Ok(entries) = rx.read(64) {
        read += entries.len() as u64;
    }
    check_eq!(read, MESSAGES);
    for number in 1_000_000..1_000_000 + pending {
        third.ep.cancel(number)?;
        check_eq!(third.rx.read_err()?.entry.op_context, number);
    }
    drop((third, kept, counter, tx, rx, av, b));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Operations whose success nobody is told of do not use up the memory with their contexts; one that
/// fails has its own.
pub(super) fn silent_operations(env: &Env) -> Outcome {
    // Their contexts would take more than there is.
    const COUNT: u64 = 600;
    Modules::new(env)?.with_device(c"max_memory=655360", || {
        let setup = Setup {
            tx_bind: bits::SELECTIVE_COMPLETION,
            rx_bind: bits::SELECTIVE_COMPLETION,
            ..Setup::default()
        };
        let pair = pair_for(env, Caps::MSG | Caps::SEND | Caps::RECV, 16, setup)?;
        let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
        for number in 0..COUNT {
            // The context of a receive is known as long as there is its endpoint.
            pair.a
                .recv(buffer.segment(0..64), 1_000_000 + number % 200)?;
            pair.b.send(buffer.segment(64..128), 2_000_000 + number)?;
        }
        pair.a.quiet()?;
        pair.b.quiet()?;
        for number in [7, 1_000_000, 1_000_199] {
            pair.a.recv(buffer.segment(0..64), number)?;
            pair.a.ep.cancel(number)?;
            check_eq!(pair.a.rx.read_err()?.entry.op_context, number);
        }
        drop(buffer);
        pair.close()
    })
}

/// A receive for several messages that two endpoints share: that it is used up is read from the queue
/// of the one, before the message that the other one got.
pub(super) fn release_first(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::SEND | Caps::RECV)?;
    let srx = unless_missing(pair.domain.srx_context(None, 0))?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let entry = EpInfo::Entry(&pair.rig.info, 0);
        let mut end = End::open(&pair.domain, entry, &Setup::default())?;
        end.ep.bind(srx.handle(), 0)?;
        end.enable()?;
        ends.push((pair.a.av.insert(&end.name)?, end));
    }
    let receive = |context, len, flags| {
        Operation::new(Kind::RECV, Form::MSG)
            .segment(buffer.segment(0..len))
            .flags(flags)
            .context(context)
    };
    for round in 0..4 {
        srx.post(&receive(7, 256, bits::MULTI_RECV | bits::COMPLETION))?;
        for (at, len) in [(0, 100), (1, 150)] {
            let send = Operation::new(Kind::SEND, Form::PLAIN)
                .segment(buffer.segment(1024..1024 + len))
                .to(ends[at].0);
            pair.a.post(&send)?;
            complete(&pair.a.tx)?;
        }
        let last = complete(&ends[1].1.rx)?;
        check_eq!((last.op_context, last.len), (7, 150), "round {round}");
        check!(last.flags & bits::MULTI_RECV != 0, "it is not used up");
        // Memory that was freed too early would be used by these.
        for number in 0..16 {
            srx.post(&receive(1000 + 100 * round + number, 64, bits::COMPLETION))?;
        }
        let first = complete(&ends[0].1.rx)?;
        check_eq!((first.op_context, first.len), (7, 100), "round {round}");
        for number in 0..16 {
            srx.cancel(1000 + 100 * round + number)?;
        }
    }
    drop((ends, buffer));
    srx.close().map_err(|(_, error)| error)?;
    pair.close()
}

/// Operations that are refused do not take the numbers away from those whose success nobody is told of.
pub(super) fn refused_numbers(env: &Env) -> Outcome {
    const DEPTH: u64 = 4;
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = pair_for(env, Caps::MSG | Caps::SEND | Caps::RECV, DEPTH, setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let send = pair.a.operation(Kind::SEND, Form::PLAIN);
    let send = send.segment(buffer.segment(0..64));
    // Nobody receives.
    let mut accepted = Vec::new();
    for number in 1..=6 * DEPTH {
        match pair.a.ep.post(&send.clone().context(number)) {
            Ok(()) => accepted.push(number),
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if accepted.len() as u64 > 2 * DEPTH {
        return Err(Stop::Skip(format!("{} are accepted", accepted.len())));
    }
    // Operations that have waited for too long by now have failed already.
    for number in &accepted {
        let _ = pair.a.ep.cancel(*number);
    }
    let mut told = Vec::new();
    while told.len() < accepted.len() {
        match pair.a.tx.read(1) {
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                told.push(pair.a.tx.read_err()?.entry.op_context);
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => kfi_host::thread::relax(),
            other => return Err(Stop::fail(format!("{other:?} after {told:?}"))),
        }
    }
    told.sort_unstable();
    check_eq!(told, accepted);
    drop(buffer);
    pair.close()
}

/// A receive whose success nobody would be told of is found by its number, however many came and went.
pub(super) fn silent_receives(env: &Env) -> Outcome {
    const DEPTH: u64 = 32;
    let setup = Setup {
        rx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = pair_for(env, Caps::TAGGED | Caps::SEND | Caps::RECV, DEPTH, setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let receive = |tag, context| {
        Operation::new(Kind::TRECV, Form::MSG)
            .segment(buffer.segment(0..64))
            .tag(tag, 0)
            .context(context)
    };
    pair.a.ep.post(&receive(99, 1))?;
    for number in 0..8 * DEPTH {
        pair.a.post(&receive(1, 1000 + number))?;
        let send = pair.b.operation(Kind::TSEND, Form::PLAIN);
        pair.b
            .post(&send.segment(buffer.segment(64..128)).tag(1, 0))?;
        complete(&pair.b.tx)?;
    }
    // None but the first one is there.
    for number in 0..8 * DEPTH {
        expect_fabric(pair.a.ep.cancel(1000 + number), KfiErrno::ENOENT)?;
    }
    pair.a.ep.cancel(1)?;
    check_eq!(pair.a.rx.read_err()?.entry.op_context, 1);
    drop(buffer);
    pair.close()
}
