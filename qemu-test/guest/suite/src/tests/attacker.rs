// SPDX-License-Identifier: GPL-2.0

//! What somebody tries who holds a descriptor of /dev/kfi and wants more: memory that is freed,
//! numbers that are taken for pointers, objects that are taken for others, memory that nobody counts.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::{
    bits, uapi, AvAttr, BufferKind, Caps, CntrAttr, CqAttr, Domain, EqAttr, Error, Fabric, Form,
    Handle, InfoEntry, KfiErrno, Kind, MrAttr, OpType, Operation, Query, Session, WaitObj,
    WaitSetAttr, Work, WorkId,
};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::ends::{complete, End, Pair, Setup};
use crate::env::Env;
use crate::raw;
use crate::rig::{expect_fabric, expect_os, query, Rig};
use crate::tests::load::{check_memory, kernel_memory};
use crate::tests::module::{could_not, unload, Modules};
use crate::{check, check_eq, tests};

tests! {
    "attacker";
    "work-that-has-fired-is-kept" ["R-DWQ-4 R-DWQ-15 kfi_shim.h"] fired_work;
    "work-queued-twice" ["R-DWQ-4 kfi_shim.h"] queued_twice;
    "context-is-no-pointer" ["R-TRIG-3 kfi_shim.h"] context_is_no_pointer;
    "contexts-are-told-apart" ["kfi_shim.h"] contexts;
    "claim-has-the-context-of-its-peek" ["kfi_shim.h"] claim;
    "cancel-by-number" ["kfi_shim.h"] cancel_by_number;
    "trusting-provider" ["kfi_shim.h kfi_prov.h"] trusting_provider;
    "requests-for-connections" ["kfi_shim.h"] connection_requests;
    "other-classes-and-domains" ["kfi_shim.h R-TRIG-5 R-POLL-2"] others;
    "everything-counts" ["kfi_shim.h"] everything_counts;
    "works-are-objects" ["kfi_shim.h"] works_are_objects;
    "poll-tells-no-address" ["kfi_shim.h"] poll_tells;
    "addresses-are-refused" ["kfi_shim.h"] virtual_addresses;
    "handlers-at-one-place" ["kfi_shim.h"] handlers;
    "handlers-without-an-answer" ["kfi_shim.h"] handlers_without_answer;
    "numbers-cost-the-same" ["kfi_shim.h"] numbers_cost_the_same;
    "alias-receives-many" ["kfi_shim.h"] alias_receives_many;
    "place-of-something-else" ["kfi_shim.h"] stale_places;
    "addresses-count" ["kfi_shim.h"] addresses_count;
    "contexts-inherit-sizes" ["kfi_shim.h"] contexts_inherit;
    "copies-count" ["kfi_shim.h"] copies_count;
    "each-queueing-counts" ["R-DWQ-4 kfi_shim.h"] queueings_count;
    "places-count" ["R-DWQ-4 kfi_shim.h"] places_count;
    "keys-and-contexts-count" ["kfi_shim.h"] keys_count;
    "work-that-has-ended-is-released" ["R-DWQ-4 R-CTL-2 R-CTL-3 kfi_shim.h"] ended_work;
    "domains-are-limited" ["kfi_shim.h"] domains_are_limited;
    "silent-operations" ["kfi_shim.h"] silent_operations;
}

/// Runs something with the device loaded with these limits.
pub(super) fn limited(env: &Env, limits: &CStr, run: impl FnOnce(&Rig) -> Outcome) -> Outcome {
    Modules::new(env)?.with_device(limits, || {
        let rig = Rig::new(env)?;
        run(&rig)?;
        rig.close()
    })
}

/// The answer of a test for what the provider has not.
pub(super) fn unless_missing<T>(object: kfi::Result<T>) -> Result<T, Stop> {
    match object {
        Err(Error::Fabric(KfiErrno::ENOSYS)) => Err(Stop::Skip("there are none".to_owned())),
        object => Ok(object?),
    }
}

/// Attributes of endpoints for so many operations that transmit, which may inject 1 KiB each.
pub(super) fn injecting(rig: &Rig, depth: u64) -> Result<InfoEntry, Stop> {
    let mut entry = rig.info.entries()[0].clone();
    if entry.tx_attr.inject_size < 1024 {
        return Err(Stop::Skip("there is little to inject".to_owned()));
    }
    (entry.tx_attr.size, entry.rx_attr.size) = (depth, 1);
    Ok(entry)
}

/// Two ends for so many operations in each direction, with queues for 64.
pub(super) fn pair_for(env: &Env, caps: Caps, depth: u64, setup: Setup) -> Result<Pair, Stop> {
    let rig = Rig::new(env)?;
    let mut entry = rig.info.entries()[0].clone();
    (entry.tx_attr.size, entry.rx_attr.size) = (depth, depth);
    rig.close()?;
    let setup = Setup {
        entry: Some(entry),
        cq_size: 64,
        ..setup
    };
    Pair::with(env, caps, &setup)
}

/// Two ends for messages.
fn pair(env: &Env) -> Result<Pair, Stop> {
    Pair::new(env, Caps::MSG | Caps::SEND | Caps::RECV)
}

/// A receive, to be queued once a counter is at 1.
fn receive_work(pair: &Pair, buffer: &kfi::Buffer, trigger: &kfi::Counter) -> Work {
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.all())
        .flags(bits::COMPLETION)
        .context(77);
    Work::transfer(OpType::RECV, pair.a.ep.handle(), &receive, trigger, 1)
}

/// A receive that was posted by a work uses its memory, whatever becomes of the work when it is
/// queued once more.
fn fired_work(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let counter = pair.rig.counter()?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let work = receive_work(&pair, &buffer, &counter);
    let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
    let id: WorkId = pair.domain.queue_work(&work)?;
    counter.set(1)?;
    pair.session.requeue_work(id)?;
    // It is posted. Once more it waits, and that can be taken back.
    counter.set(0)?;
    pair.session.requeue_work(id)?;
    pair.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
    // But the first one is still there.
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    let stale = pair.domain.cancel_work(id, uapi::KFI_SHIM_WORK_STALE);
    expect_os(stale, Errno::BUSY)?;
    drop(buffer);
    let from = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    from.fill(0x5a);
    pair.b.send(from.segment(0..1 << 20), 1)?;
    let entry = complete(&pair.a.rx)?;
    check_eq!((entry.op_context, entry.len), (77, 1 << 20));
    complete(&pair.b.tx)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    drop((from, counter));
    pair.close()
}

/// What was queued twice and cancelled once is not pending.
fn queued_twice(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (trigger, target) = (rig.counter()?, rig.counter()?);
    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
    rig.domain.cancel_work(id, 0)?;
    expect_fabric(rig.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Queued once and cancelled, it is nobody's any more.
    rig.session.release_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;

    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
    rig.session.requeue_work(id)?;
    trigger.add(5)?;
    expect_fabric(rig.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    target.wait_ms(2, 20_000)?;
    trigger.set(0)?;
    rig.session.requeue_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BUSY)?;
    // Operations on counters have ended that are not pending any more.
    rig.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;
    check_eq!(target.read()?, 2);
    drop((trigger, target));
    rig.close()
}

/// The default flags change while operations are posted whose contexts are small numbers.
fn context_is_no_pointer(env: &Env) -> Outcome {
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
fn contexts(env: &Env) -> Outcome {
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
fn claim(env: &Env) -> Outcome {
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
fn cancel_by_number(env: &Env) -> Outcome {
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

/// What a provider without a check of its own is handed.
const TRUSTING: &str = "kfi_mock_trusting";

/// A fabric and a domain of another provider.
fn trusting(session: &Session) -> Result<(Fabric, Domain), Stop> {
    let info = session.getinfo(&Query::new().provider(TRUSTING))?;
    let fabric = info.fabric(0)?;
    let domain = fabric.domain(&info, 0)?;
    Ok((fabric, domain))
}

/// A counter on a wait set.
fn on_set(domain: &Domain, set: Handle) -> kfi::Result<kfi::Counter> {
    domain.counter(&CntrAttr::new().wait_obj(WaitObj::SET).wait_set(set))
}

fn trusting_provider(env: &Env) -> Outcome {
    with_trusting(env, || trust_nobody(env))
}

/// What comes with a request for a connection is freed when that is read, once, and nothing is that
/// user space says has come with one.
fn connection_requests(env: &Env) -> Outcome {
    /// An event of that kind (`enum kfi_eq_event`), and what its entry begins with.
    const CONNREQ: u32 = 1;
    const ROOM: usize = 16;
    with_trusting(env, || {
        let session = Session::open()?;
        let (fabric, domain) = trusting(&session)?;
        let eq = fabric.event_queue(&EqAttr::new())?;
        let mut written = 7u64.to_ne_bytes().to_vec();
        written.extend(0x1234_5678u64.to_ne_bytes());
        eq.write(CONNREQ, &written)?;
        for event in [eq.peek(ROOM)?, eq.read(ROOM)?] {
            check_eq!((event.event, &event.data), (CONNREQ, &written));
        }
        let read = |count: u64| -> Outcome {
            for _ in 0..count {
                for event in [eq.peek(ROOM)?, eq.read(ROOM)?] {
                    check_eq!(event.event, CONNREQ);
                    check_eq!(event.data[8..], [0; 8]);
                }
            }
            Ok(())
        };
        read(100)?;
        let before = kernel_memory()?;
        let rounds = env.scaled(10_000, 2_000);
        read(rounds)?;
        // Half of what one would leave.
        check_memory(env, &before, i64::try_from(rounds).unwrap_or(0) / 2)?;
        drop((eq, domain, fabric));
        Ok(())
    })
}

/// Runs something with that provider.
fn with_trusting(env: &Env, run: impl FnOnce() -> Outcome) -> Outcome {
    let modules = Modules::new(env)?;
    if let Err(errno) = modules.load_with(TRUSTING, c"") {
        if errno == Errno::NOENT {
            return Err(Stop::Skip(format!("no {TRUSTING}")));
        }
        return Err(could_not("load", TRUSTING, errno));
    }
    let outcome = run();
    unload(TRUSTING).map_err(|errno| could_not("unload", TRUSTING, errno))?;
    outcome
}

/// Everything of the one provider is handed to the other; that it complains the kernel's log tells.
fn trust_nobody(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (fabric, domain) = trusting(&rig.session)?;
    let (other_fabric, other_domain) = trusting(&rig.session)?;
    let refused = KfiErrno::EINVAL;
    let counter = domain.counter(&CntrAttr::new())?;
    let set = domain.poll_set()?;
    let own_wait = fabric.wait_set(&WaitSetAttr::new())?;
    drop(on_set(&domain, own_wait.handle())?);
    set.add_handle(counter.handle(), 0)?;
    set.del_handle(counter.handle(), 0)?;
    check_eq!(
        domain
            .queue_work(&Work::add(&counter, 1, &counter, 1))
            .err(),
        Some(Error::Fabric(KfiErrno::ENOSPC))
    );
    domain.flush_work(Some(&counter))?;

    let foreign_counter = rig.counter()?;
    let foreign_wait = rig.fabric.wait_set(&WaitSetAttr::new())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    let other_counter = other_domain.counter(&CntrAttr::new())?;
    let other_wait = other_fabric.wait_set(&WaitSetAttr::new())?;
    let wrong = [
        foreign_counter.handle(),
        foreign_wait.handle(),
        cq.handle(),
        eq.handle(),
        rig.domain.handle(),
        rig.fabric.handle(),
        other_counter.handle(),
        other_wait.handle(),
        other_domain.handle(),
        domain.handle(),
        fabric.handle(),
        set.handle(),
    ];
    for handle in wrong {
        expect_fabric(on_set(&domain, handle), refused)?;
        expect_fabric(set.add_handle(handle, 0), refused)?;
        expect_fabric(set.del_handle(handle, 0), refused)?;
        expect_fabric(domain.flush_work_handle(handle), refused)?;
        let works = [
            Work::new(OpType::CNTR_ADD, handle, 1).counter(counter.handle(), 1),
            Work::new(OpType::CNTR_ADD, counter.handle(), 1).counter(handle, 1),
            Work::add(&counter, 1, &counter, 1).completion(handle),
        ];
        for work in works {
            expect_fabric(domain.queue_work(&work), refused)?;
        }
    }
    expect_fabric(on_set(&domain, counter.handle()), refused)?;
    expect_fabric(set.add_handle(own_wait.handle(), 0), refused)?;
    for handle in [
        foreign_counter.handle(),
        other_counter.handle(),
        domain.handle(),
    ] {
        expect_fabric(fabric.trywait(&[handle]), refused)?;
    }
    trusted_endpoints(&rig, &domain, &other_domain, &counter)?;
    // One that demands of all its endpoints what nobody can give.
    let mut hints = InfoEntry {
        mode: kfi::Mode::CONTEXT,
        ..InfoEntry::default()
    };
    TRUSTING.clone_into(&mut hints.fabric_attr.prov_name);
    let demanding = rig.session.getinfo(&Query::new().hints(hints))?;
    let refused_domain = fabric.domain(&demanding, 0);
    expect_os(refused_domain.map(drop), Errno::OPNOTSUPP)?;
    drop(demanding);
    // A domain of what the other one has described.
    expect_fabric(fabric.domain(&rig.info, 0), refused)?;
    // A question that names an open fabric is asked of its provider alone.
    let mut hints = rig.info.entries()[0].clone();
    hints.fabric_attr.fabric = fabric.handle();
    let asked = rig.session.getinfo(&Query::new().hints(hints));
    expect_fabric(asked, KfiErrno::ENODATA)?;
    drop((set, counter, own_wait, other_counter, other_wait));
    drop((foreign_counter, foreign_wait, cq, eq));
    drop((domain, fabric, other_domain, other_fabric));
    rig.close()
}

/// The same between two domains of one provider, on one fabric or two.
fn others(env: &Env) -> Outcome {
    let refused = KfiErrno::EINVAL;
    let rig = Rig::new(env)?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let far_fabric = rig.info.fabric(0)?;
    let (counter, theirs) = (rig.counter()?, second.counter(&CntrAttr::new())?);
    let cq = second.completion_queue(&CqAttr::new())?;
    let far_wait = far_fabric.wait_set(&WaitSetAttr::new())?;
    let set = rig.domain.poll_set()?;
    for handle in [theirs.handle(), cq.handle(), rig.domain.handle()] {
        expect_fabric(set.add_handle(handle, 0), refused)?;
        expect_fabric(rig.domain.flush_work_handle(handle), refused)?;
        let work = Work::new(OpType::CNTR_ADD, handle, 1).counter(counter.handle(), 1);
        expect_fabric(rig.domain.queue_work(&work), refused)?;
        expect_fabric(on_set(&rig.domain, handle), refused)?;
    }
    expect_fabric(on_set(&rig.domain, far_wait.handle()), refused)?;
    drop((set, far_wait, counter, theirs, cq));
    drop((second, far_fabric));
    rig.close()
}

/// Does something until it is refused for its memory; returns how often it was done.
pub(super) fn fill<T>(
    most: usize,
    mut one: impl FnMut() -> kfi::Result<T>,
) -> Result<Vec<T>, Stop> {
    let mut all = Vec::new();
    loop {
        match one() {
            Ok(object) => all.push(object),
            Err(Error::Os(Errno::DQUOT)) => return Ok(all),
            Err(error) => return Err(Stop::fail(format!("{error} with {}", all.len()))),
        }
        check!(all.len() < most, "{most} are in no limit");
    }
}

/// Whatever a request makes the kernel allocate counts, and is given back.
fn everything_counts(env: &Env) -> Outcome {
    limited(env, c"max_memory=1048576 max_objects=1000000", |rig| {
        // Each of them twice: what was given back may be had again, no less.
        let twice = |what: &str, run: &dyn Fn() -> Result<usize, Stop>| -> Outcome {
            let (first, second) = (run()?, run()?);
            env.note(format!("{first} {what} in 1 MiB"));
            check_eq!(first, second, "{what}");
            Ok(())
        };
        twice("counters", &|| {
            Ok(fill(10_000, || rig.domain.counter(&CntrAttr::new()))?.len())
        })?;
        twice("large completion queues", &|| {
            let attr = CqAttr::new().size(512);
            Ok(fill(100, || rig.domain.completion_queue(&attr))?.len())
        })?;
        twice("event queues", &|| {
            Ok(fill(1_000, || rig.fabric.event_queue(&EqAttr::new()))?.len())
        })?;
        twice("address vectors", &|| {
            let attr = AvAttr {
                count: 1 << 10,
                ..AvAttr::default()
            };
            Ok(fill(100, || rig.domain.address_vector(&attr))?.len())
        })?;
        twice("answers", &|| {
            Ok(fill(10_000, || rig.session.getinfo(&query(env)))?.len())
        })?;
        // Of memory in one piece there is a power of two.
        twice("buffers of 40 KiB in one piece", &|| {
            let buffers = fill(100, || rig.session.buffer(BufferKind::KMALLOC, 40 << 10))?;
            check!(buffers.len() < 16, "{} of 64 KiB", buffers.len());
            Ok(buffers.len())
        })?;
        let counter = rig.counter()?;
        let limit = Rlimit {
            current: Some(8192),
            maximum: Some(8192),
        };
        rustix::process::setrlimit(Resource::Nofile, limit)?;
        twice("wait descriptors", &|| {
            Ok(fill(10_000, || counter.wait_fd())?.len())
        })?;
        let sets = (0..60)
            .map(|_| rig.domain.poll_set())
            .collect::<Result<Vec<_>, _>>()?;
        let counters = (0..60)
            .map(|_| rig.counter())
            .collect::<Result<Vec<_>, _>>()?;
        twice("members", &|| {
            let mut pairs = sets
                .iter()
                .flat_map(|set| counters.iter().map(move |counter| (set, counter)));
            let members = fill(50_000, || {
                let Some((set, counter)) = pairs.next() else {
                    return Ok(None);
                };
                set.add_handle(counter.handle(), 0)?;
                Ok(Some((set, counter)))
            })?;
            for (set, counter) in members.iter().flatten() {
                set.del_handle(counter.handle(), 0)?;
            }
            Ok(members.len())
        })?;
        // The sets keep their places until they are closed.
        let mut sets = sets;
        let Some((other, member)) = sets.pop().zip(counters.first()) else {
            return Err(Stop::fail("no sets"));
        };
        let again = other.add_handle(member.handle(), 0);
        check_eq!(again.err(), Some(Error::Os(Errno::DQUOT)));
        drop(sets);
        other.add_handle(member.handle(), 0)?;
        other.del_handle(member.handle(), 0)?;
        drop((other, counters));
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 1 << 18)?;
        // By page.
        let works = |what: &str, most: usize, work: &Work| {
            twice(what, &|| {
                let ids = fill(most, || rig.domain.queue_work(work))?;
                for id in &ids {
                    rig.session.release_work(*id)?;
                }
                Ok(ids.len())
            })
        };
        let work = Work::add(&counter, 1, &counter, 1).shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        works("works", 10_000, &work)?;
        let send = Operation::new(Kind::SEND, Form::MSG_SGL).segment(buffer.segment(1..1 << 18));
        let mut entry = rig.info.entries()[0].clone();
        (entry.tx_attr.size, entry.rx_attr.size) = (16, 16);
        let ep = rig.domain.endpoint(kfi::EpInfo::Value(&entry), 0)?;
        let work = Work::transfer(OpType::SEND, ep.handle(), &send, &counter, 1);
        let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        works("works with 65 entries or less", 2_000, &work)?;
        let attr = MrAttr::new(bits::REMOTE_READ, 1);
        let mut key = 0;
        let region = rig.domain.register(&[buffer.all()], &attr);
        if region.is_ok() {
            drop(region);
            let regions = fill(10_000, || {
                key += 1;
                let attr = MrAttr::new(bits::REMOTE_READ, key);
                rig.domain.register(&[buffer.all()], &attr)
            })?;
            check!(!regions.is_empty(), "no regions");
        }
        drop((ep, buffer, counter));
        Ok(())
    })
}

/// Works count as the objects do.
fn works_are_objects(env: &Env) -> Outcome {
    limited(env, c"max_objects=50", |rig| {
        let counter = rig.counter()?;
        let work = Work::add(&counter, 1, &counter, 1).shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        let mut ids = Vec::new();
        let full = loop {
            match rig.domain.queue_work(&work) {
                Ok(id) => ids.push(id),
                Err(error) => break error,
            }
            check!(ids.len() < 100, "more than 50 objects");
        };
        check_eq!(full, Error::Os(Errno::MFILE));
        // An answer, a fabric, a domain and a counter are there, too.
        check_eq!(ids.len(), 50 - 4);
        expect_os(
            rig.counter_with(WaitObj::NONE).map_err(|_| full),
            Errno::MFILE,
        )?;
        for id in ids.drain(..) {
            rig.session.release_work(id)?;
        }
        drop(counter);
        Ok(())
    })
}

/// Members with a handler go while somebody polls: what is told is a number that was given, or
/// nothing.
fn poll_tells(env: &Env) -> Outcome {
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

/// Regions at addresses are nothing for those who may not know addresses.
fn virtual_addresses(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let mut hints = rig.info.entries()[0].clone();
    hints.domain_attr.mr_mode = kfi::MrMode::VIRT_ADDR;
    let info = match rig.session.getinfo(&Query::new().hints(hints)) {
        Ok(info) => info,
        Err(error) => return Err(Stop::Skip(format!("there is no such mode: {error}"))),
    };
    let refused = rig.fabric.domain(&info, 0);
    expect_os(refused.map(drop), Errno::OPNOTSUPP)?;
    drop(info);
    let domain = &rig.domain;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let attr = MrAttr::new(bits::REMOTE_READ, 1);
    if let Ok(region) = domain.register(&[buffer.all()], &attr) {
        if let Ok((base, _)) = region.raw_attr() {
            check_eq!(base, 0);
        }
    }
    drop(buffer);
    rig.close()
}

/// Queues with handlers come and go at the same time: what the one counts may be where that of the other
/// was, and nobody is kept in the kernel for that.
fn handlers(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Has the table of handles for itself, again and again.
        let busy = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = rig.domain.counter(&CntrAttr::new());
            }
        });
        let rig = &rig;
        let change = move |number: u64| -> Outcome {
            for round in 0..env.scaled(2_000, 200) {
                let attr = CqAttr::new().handler().context(number + round);
                rig.domain.completion_queue(&attr)?;
                let attr = EqAttr::new().handler().context(number + round);
                rig.fabric.event_queue(&attr)?;
            }
            Ok(())
        };
        let other = scope.spawn(move || change(1 << 40));
        let outcome = change(1 << 50);
        let other = other.join();
        stop.store(true, Ordering::Relaxed);
        let _ = busy.join();
        outcome?;
        other.unwrap_or_else(|_| Err(Stop::fail("a thread is gone")))
    })?;
    rig.close()
}

/// A queue with a handler that could not be told of leaves nothing behind.
fn handlers_without_answer(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let queue = uapi::kfi_shim_cq_open {
        domain: rig.domain.handle(),
        flags: uapi::KFI_SHIM_NO_ATTR | uapi::KFI_SHIM_HANDLER,
        context: 7,
        ..FromZeros::new_zeroed()
    };
    let mut argument = kfi_host::memory::Guarded::new(queue.as_bytes())?;
    argument.set_read_only()?;
    let refused = |argument: &mut kfi_host::memory::Guarded| -> Outcome {
        let result = raw::guarded(&rig.session, uapi::KFI_REQUEST_CQ_OPEN, argument);
        check_eq!(result, Err(Errno::FAULT));
        Ok(())
    };
    for _ in 0..100 {
        refused(&mut argument)?;
    }
    let before = kernel_memory()?;
    let rounds = env.scaled(10_000, 500);
    for _ in 0..rounds {
        refused(&mut argument)?;
    }
    // Half of what one would leave.
    check_memory(env, &before, i64::try_from(rounds).unwrap_or(0) * 80 / 1024)?;
    rig.close()
}

/// What a number costs as a context does not tell whether it could be an address of this kernel.
fn numbers_cost_the_same(env: &Env) -> Outcome {
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
fn alias_receives_many(env: &Env) -> Outcome {
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
        // Whatever is freed is soon had again.
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
fn stale_places(env: &Env) -> Outcome {
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

/// What is told to a provider about endpoints: those for such operations only, and no descriptors of
/// regions of others.
fn trusted_endpoints(
    rig: &Rig,
    domain: &Domain,
    other: &Domain,
    counter: &kfi::Counter,
) -> Outcome {
    let refused = KfiErrno::EINVAL;
    let described = InfoEntry::default();
    let info = || kfi::EpInfo::Value(&described);
    let (ep, theirs) = (domain.endpoint(info(), 0)?, other.endpoint(info(), 0)?);
    let sep = domain.scalable_endpoint(info(), 0)?;
    let (tx, rx) = (sep.tx_context(0, None, 0)?, sep.rx_context(0, None, 0)?);
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let send = |segment| Operation::new(Kind::SEND, Form::MSG).segment(segment);
    let queue = |handle, segment| {
        let work = Work::transfer(OpType::SEND, handle, &send(segment), counter, 1);
        domain.queue_work(&work).map(drop)
    };
    for handle in [ep.handle(), tx.handle()] {
        expect_fabric(queue(handle, buffer.all()), KfiErrno::ENOSPC)?;
    }
    for handle in [
        0,
        sep.handle(),
        rx.handle(),
        theirs.handle(),
        counter.handle(),
    ] {
        expect_fabric(queue(handle, buffer.all()), refused)?;
    }
    // Contexts are those of what has some.
    for context in [&ep, &tx, &rx] {
        expect_fabric(context.tx_context(0, None, 0), refused)?;
        expect_fabric(context.rx_context(0, None, 0), refused)?;
    }
    let attr = MrAttr::new(bits::REMOTE_READ, 1).form(Form::PLAIN);
    let own = domain.register(&[buffer.all()], &attr)?;
    let foreign = other.register(&[buffer.all()], &attr)?;
    expect_fabric(ep.post(&send(buffer.all().desc(&own))), KfiErrno::ENOSPC)?;
    expect_fabric(ep.post(&send(buffer.all().desc(&foreign))), refused)?;
    expect_fabric(
        queue(ep.handle(), buffer.all().desc(&own)),
        KfiErrno::ENOSPC,
    )?;
    expect_fabric(queue(ep.handle(), buffer.all().desc(&foreign)), refused)?;
    drop((tx, rx, sep, ep, theirs));
    drop((own, foreign, buffer));
    Ok(())
}

/// Each address of a vector counts, also one that is there already, whatever was expected; those that
/// were removed do not.
fn addresses_count(env: &Env) -> Outcome {
    Modules::new(env)?.with_device(c"max_memory=786432", || {
        let pair = pair_for(env, Caps::MSG, 16, Setup::default())?;
        let bytes = pair.b.name.repeat(1 << 8);
        for count in [0, 1 << 8] {
            let av = pair.domain.address_vector(&AvAttr {
                count,
                ..AvAttr::default()
            })?;
            let mut before = None;
            for _ in 0..2 {
                let all = fill(100, || av.insert_all(&bytes, 1 << 8, 0, 0))?;
                // At most as many as fit in all memory that there may be.
                check!((1..30).contains(&all.len()), "{} times 256", all.len());
                check_eq!(*before.get_or_insert(all.len()), all.len());
                for inserted in &all {
                    for part in inserted.addrs.chunks(256) {
                        av.remove(part)?;
                    }
                }
            }
        }
        pair.close()
    })
}

/// A context that is opened without attributes has the depth of its endpoint, and counts for that.
fn contexts_inherit(env: &Env) -> Outcome {
    limited(env, c"max_memory=8388608", |rig| {
        let mut entry = rig.info.entries()[0].clone();
        entry.ep_attr.tx_ctx_cnt = 2;
        entry.ep_attr.rx_ctx_cnt = 2;
        for (depth, large) in [(16, false), (1 << 16, true)] {
            entry.tx_attr.size = depth;
            entry.rx_attr.size = depth;
            let info = kfi::EpInfo::Value(&entry);
            let sep = unless_missing(rig.domain.scalable_endpoint(info, 0))?;
            for context in [sep.tx_context(0, None, 0), sep.rx_context(0, None, 0)] {
                if large {
                    expect_os(context.map(drop), Errno::DQUOT)?;
                } else {
                    context?;
                }
            }
        }
        Ok(())
    })
}

/// What is copied of messages that are injected counts, for as many as there may be.
fn copies_count(env: &Env) -> Outcome {
    limited(env, c"max_memory=2097152", |rig| {
        let mut entry = injecting(rig, 1 << 10)?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let inject = |len| Operation::new(Kind::SEND, Form::INJECT).segment(buffer.segment(0..len));
        let flagged = |len| {
            Operation::new(Kind::SEND, Form::MSG)
                .segment(buffer.segment(0..len))
                .flags(bits::INJECT)
        };
        let plain = |len| Operation::new(Kind::SEND, Form::PLAIN).segment(buffer.segment(0..len));
        let full = Err(Error::Os(Errno::DQUOT));
        let info = kfi::EpInfo::Value(&entry);
        let ep = rig.domain.endpoint(info, 0)?;
        // It is not enabled: nothing but the memory is looked at.
        for operation in [inject(1), flagged(1), plain(4096), inject(4096)] {
            let posted = ep.post(&operation);
            check!(posted != full && posted.is_err(), "{posted:?}");
        }
        check_eq!(ep.post(&inject(1024)), full);
        check_eq!(ep.post(&flagged(1024)), full);
        drop(ep);
        entry.tx_attr.op_flags = kfi::OpFlags::INJECT;
        let ep = rig.domain.endpoint(kfi::EpInfo::Value(&entry), 0)?;
        check_eq!(ep.post(&plain(1024)), full);
        drop((ep, buffer));
        Ok(())
    })
}

/// What a provider keeps of a work that is queued again and again counts each time.
fn queueings_count(env: &Env) -> Outcome {
    const MOST: usize = 10_000;
    Modules::new(env)?.with_device(c"max_memory=1048576", || {
        let caps = Caps::MSG | Caps::SEND | Caps::RECV;
        let Pair { a, b, far, rig } = pair_for(env, caps, 16, Setup::default())?;
        let (trigger, target) = (rig.counter()?, rig.counter()?);
        let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
        let requeue = |id| fill(MOST, || rig.session.requeue_work(id)).map(|all| all.len());
        let first = requeue(id)?;
        env.note(format!("{first} times in 1 MiB"));
        rig.domain.cancel_work(id, 0)?;
        // And the one that is the first now.
        check_eq!(requeue(id)?, first + 1);
        rig.domain.flush_work(None)?;
        check_eq!(requeue(id)?, first + 1);
        rig.domain.flush_work(Some(&target))?;
        expect_os(rig.session.release_work(id), Errno::BUSY)?;
        rig.domain.flush_work(Some(&trigger))?;
        rig.session.release_work(id)?;
        check_eq!(target.read()?, 0);

        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let pieces: Vec<_> = (0..16).map(|i| buffer.segment(i..i + 1)).collect();
        let receive = Operation::new(Kind::RECV, Form::MSG).segments(&pieces);
        let work = Work::transfer(OpType::RECV, a.ep.handle(), &receive, &trigger, 5);
        let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        let id = rig.domain.queue_work(&work)?;
        let more = requeue(id)?;
        check!(more < first, "{more} transfers, {first} additions");
        rig.domain.flush_work(None)?;
        expect_os(rig.session.release_work(id), Errno::BUSY)?;
        drop((a, b));
        rig.session.release_work(id)?;
        drop((buffer, trigger, target));
        far.close().map_err(|(_, error)| error)?;
        rig.close()
    })
}

/// What a provider keeps for what may be pending in a domain counts until that is closed, though nothing
/// is pending any more.
fn places_count(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.with_device(c"max_memory=2097152", || {
        let rig = Rig::new(env)?;
        let domain = rig.fabric.domain(&rig.info, 0)?;
        let (trigger, target) = (
            domain.counter(&CntrAttr::new())?,
            domain.counter(&CntrAttr::new())?,
        );
        let id = domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
        let queued = fill(15_000, || rig.session.requeue_work(id))?.len();
        env.note(format!("{queued} times in 2 MiB"));
        domain.cancel_work(id, 0)?;
        rig.session.release_work(id)?;
        let large = || rig.session.buffer(BufferKind::VMALLOC, 7 << 18);
        check_eq!(large().err(), Some(Error::Os(Errno::DQUOT)));
        drop((trigger, target));
        domain.close().map_err(|(_, error)| error)?;
        drop(large()?);
        rig.close()
    })
}

/// An authorization key has ports of its own, which count, and so do the contexts of a scalable endpoint
/// for which nobody has said how many there are to be.
fn keys_count(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.with_device(c"max_memory=1048576", || {
        let rig = Rig::new(env)?;
        let opened = |contexts: u64, keys: bool| -> Result<usize, Stop> {
            let mut entry = rig.info.entries()[0].clone();
            entry.ep_attr.tx_ctx_cnt = contexts;
            entry.ep_attr.rx_ctx_cnt = contexts;
            let mut number = 0u32;
            let endpoints = fill(1000, || {
                number += 1;
                if keys {
                    entry.ep_attr.auth_key = kfi::Bytes(number.to_ne_bytes().to_vec());
                }
                rig.domain.scalable_endpoint(kfi::EpInfo::Value(&entry), 0)
            })?;
            Ok(endpoints.len())
        };
        let (few, few_with_keys, unnamed) =
            (opened(1, false)?, opened(1, true)?, opened(0, false)?);
        env.note(format!(
            "{few} of one context, {few_with_keys} with keys, {unnamed} of any number, in 1 MiB"
        ));
        check!(few_with_keys < few / 2, "keys do not count");
        check!(unnamed < few / 4, "contexts do not count");
        rig.close()
    })
}

/// A work is released as soon as it is certain that nobody needs it.
fn ended_work(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let (trigger, target) = (pair.rig.counter()?, pair.rig.counter()?);
    let add = Work::add(&target, 1, &trigger, 1);
    let id = pair.domain.queue_work(&add)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    trigger.add(1)?;
    target.wait_ms(1, 20_000)?;
    // It has fired: there is nothing to be cancelled, and nothing that goes on.
    expect_fabric(pair.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    pair.session.release_work(id)?;
    // The same by a flush, of those that wait and those that do not.
    let (fired, waits) = (
        pair.domain.queue_work(&add)?,
        pair.domain
            .queue_work(&Work::add(&target, 1, &trigger, 9))?,
    );
    target.wait_ms(2, 20_000)?;
    pair.domain.flush_work(None)?;
    pair.session.release_work(fired)?;
    pair.session.release_work(waits)?;
    // What was posted may be used until the endpoint is closed, and then no more.
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let id = pair
        .domain
        .queue_work(&receive_work(&pair, &buffer, &trigger))?;
    expect_fabric(pair.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    pair.domain.flush_work(None)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    let Pair { a, b, far, rig } = pair;
    drop(a);
    rig.session.release_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;
    drop((b, buffer, trigger, target));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Domains and fabrics, which have threads of the kernel, are limited by themselves.
fn domains_are_limited(env: &Env) -> Outcome {
    limited(env, c"max_user_domains=8", |rig| {
        let mut domains = Vec::new();
        let full = loop {
            match rig.fabric.domain(&rig.info, 0) {
                Ok(domain) => domains.push(domain),
                Err(error) => break error,
            }
            check!(domains.len() < 20, "more than 8 threads");
        };
        check_eq!(full, Error::Os(Errno::MFILE));
        // A fabric and a domain are there, too.
        check_eq!(domains.len(), 8 - 2);
        check_eq!(rig.info.fabric(0).err(), Some(Error::Os(Errno::MFILE)));
        // Of all sessions.
        let second = Session::open()?;
        let info = second.getinfo(&query(env))?;
        check_eq!(info.fabric(0).err(), Some(Error::Os(Errno::MFILE)));
        drop((info, second));
        domains.pop();
        drop(rig.info.fabric(0)?);
        drop(domains);
        Ok(())
    })
}

/// Operations whose success nobody is told of do not use up the memory with their contexts; one that
/// fails has its own.
fn silent_operations(env: &Env) -> Outcome {
    // Their contexts would take more than there is.
    const COUNT: u64 = 600;
    Modules::new(env)?.with_device(c"max_memory=524288", || {
        let setup = Setup {
            tx_bind: bits::SELECTIVE_COMPLETION,
            rx_bind: bits::SELECTIVE_COMPLETION,
            ..Setup::default()
        };
        let pair = pair_for(env, Caps::MSG | Caps::SEND | Caps::RECV, 16, setup)?;
        let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
        for number in 0..COUNT {
            // That of a receive is known as long as there is its endpoint.
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
