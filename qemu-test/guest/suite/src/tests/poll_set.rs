// SPDX-License-Identifier: GPL-2.0

//! Poll sets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kfi::{
    uapi, CntrAttr, CompletionError, CompletionQueue, Counter, CqAttr, EqAttr, Error, KfiErrno,
    PollSet, Session, WaitSetAttr, Work,
};
use kfi_host::process::{self, Status};
use rand::RngExt;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES};
use crate::rig::{expect_busy, expect_fabric, expect_os, in_threads, pin, until, Rig};
use crate::tests::wait_set::{completion, drain};
use crate::{check, check_eq, tests};

tests! {
    "pollset" parallel;
    "case-54-completion-queues" ["R-POLL-5 R-POLL-11"] completion_queues;
    "case-55-application-changes" ["R-POLL-6"] application_changes;
    "case-55-fired-by-a-change" ["R-DWQ-20 R-POLL-6 R-POLL-8"] fired_by_a_change;
    "case-55-after-the-provider" ["R-DWQ-20 R-POLL-6"] after_the_provider;
    "case-55-nothing-added" ["R-CNTR-18 R-DWQ-20 R-POLL-6"] nothing_added;
    "case-56-error-entries" ["R-POLL-5 R-POLL-10"] error_entries;
    "case-57-counts" ["R-POLL-7"] counts;
    "case-57-rotation" ["R-POLL-4 R-POLL-7"] rotation;
    "case-57-bad-addresses" ["R-POLL-7 kfi_shim.h"] bad_addresses;
    "case-58-attributes" ["R-POLL-1"] attributes;
    "case-58-classes" ["R-POLL-2"] classes;
    "case-58-twice-and-never" ["R-POLL-2 R-POLL-3"] twice_and_never;
    "case-58-flags" ["R-POLL-2 R-POLL-3"] flags;
    "case-58-other-domain" ["R-POLL-2"] other_domain;
    "case-59-two-sets" ["R-POLL-5 R-POLL-6"] two_sets;
    alone "case-60-concurrent" ["R-POLL-3 R-POLL-8"] concurrent;
    alone "case-60-every-change-is-seen" ["R-POLL-8"] every_change_is_seen;
    alone "case-60-lowered-beside" ["R-POLL-6 R-POLL-8"] lowered_beside;
    "case-60-model" ["R-POLL-2 R-POLL-3 R-POLL-5 R-POLL-7"] model;
    "case-61-close" ["R-CLOSE-2 R-CLOSE-7"] close_;
    "case-61-session-with-members" ["R-CLOSE-7 R-CLOSE-8"] session_with_members;
    "case-61-killed-with-members" ["R-CLOSE-7 R-CLOSE-8"] killed_with_members;
}

fn cq(rig: &Rig, context: u64) -> kfi::Result<CompletionQueue> {
    rig.domain
        .completion_queue(&CqAttr::new().context(context).size(16))
}

fn counter(rig: &Rig, context: u64) -> kfi::Result<Counter> {
    rig.domain.counter(&CntrAttr::new().context(context))
}

/// The contexts, sorted.
fn polled(set: &PollSet, room: usize) -> Result<Vec<u64>, Stop> {
    let mut contexts = set.poll(room)?;
    contexts.sort_unstable();
    Ok(contexts)
}

const NOTHING: [u64; 0] = [];

fn completion_queues(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let queues = [cq(&rig, 1)?, cq(&rig, u64::MAX)?, cq(&rig, 0)?];
    let set = rig.domain.poll_set()?;
    check_eq!(polled(&set, 8)?, NOTHING, "a set without members");
    // Entries from before the queue was added are there.
    queues[0].write(&completion(7))?;
    for queue in &queues {
        set.add(queue)?;
    }
    check_eq!(polled(&set, 8)?, [1]);
    queues[1].write(&completion(8))?;
    queues[2].write(&completion(9))?;
    // A level, until it is read; polling takes nothing out.
    for _ in 0..3 {
        check_eq!(polled(&set, 8)?, [0, 1, u64::MAX]);
    }
    check_eq!(drain(&queues[1])?, [8]);
    check_eq!(polled(&set, 8)?, [0, 1]);
    check_eq!(drain(&queues[2])?, [9]);
    check_eq!(drain(&queues[0])?, [7]);
    check_eq!(polled(&set, 8)?, NOTHING, "after all were read");
    Ok(())
}

type Change = fn(&Counter) -> kfi::Result<()>;

/// Makes an operation on a counter that another one fires at a value.
type MakeWork = fn(&Counter, &Counter, u64) -> Work;

fn application_changes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let one = counter(&rig, 1)?;
    one.add(3)?;
    one.add_err(3)?;
    let set = rig.domain.poll_set()?;
    set.add(&one)?;
    check_eq!(polled(&set, 8)?, NOTHING, "what was before");
    let changes: [(&str, Change); 6] = [
        ("add", |c| c.add(1)),
        ("set up", |c| c.set(497)),
        ("set down", |c| c.set(495)),
        ("adderr", |c| c.add_err(1)),
        ("seterr up", |c| c.set_err(100)),
        ("seterr down", |c| c.set_err(0)),
    ];
    for (name, change) in changes {
        change(&one)?;
        check_eq!(polled(&set, 8)?, NOTHING, "after {name}");
    }
    for (_, change) in changes {
        change(&one)?;
    }
    check_eq!(polled(&set, 8)?, NOTHING, "after all of them");
    // Nor does a counter hide a queue.
    let queue = cq(&rig, 2)?;
    set.add(&queue)?;
    queue.write(&completion(1))?;
    one.add(1)?;
    check_eq!(polled(&set, 8)?, [2]);
    Ok(())
}

/// A change that an application's change makes due is the provider's, though it runs in the same call.
fn fired_by_a_change(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, other) = (counter(&rig, 1)?, counter(&rig, 2)?);
    let set = rig.domain.poll_set()?;
    set.add(&one)?;
    let changes: [(&str, Change); 4] = [
        ("add", |c| c.add(100)),
        ("set", |c| c.set(1000)),
        ("adderr", |c| c.add_err(10_000)),
        ("seterr", |c| c.set_err(100_000)),
    ];
    for (name, change) in changes {
        let due = one.read()? + one.read_err()? + 50;
        rig.domain.queue_work(&Work::add(&one, 1, &one, due))?;
        check_eq!(polled(&set, 8)?, NOTHING, "before {name}");
        change(&one)?;
        check_eq!(polled(&set, 8)?, [1], "after {name}");
        // There and back.
        let due = one.read()? + one.read_err()? + 50;
        rig.domain.queue_work(&Work::add(&other, 1, &one, due))?;
        let back = other.read()? + 1;
        rig.domain.queue_work(&Work::add(&one, 1, &other, back))?;
        one.add(60)?;
        check_eq!(polled(&set, 8)?, [1], "{name}, back from another counter");
        check_eq!(polled(&set, 8)?, NOTHING, "told once");
    }
    Ok(())
}

/// The provider's changes of any kind are no news once the application has changed the counter.
fn after_the_provider(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, fires) = (counter(&rig, 1)?, counter(&rig, 2)?);
    let set = rig.domain.poll_set()?;
    set.add(&one)?;
    let large = 1 << 40;
    let works: [(&str, MakeWork); 5] = [
        ("set up", |one, by, due| {
            Work::set(one, (5 << 40) + 5, by, due)
        }),
        ("set down", |one, by, due| Work::set(one, 7, by, due)),
        ("add", |one, by, due| Work::add(one, 1, by, due)),
        ("add a large one", |one, by, due| {
            Work::add(one, 1 << 40, by, due)
        }),
        ("add a negative one", |one, by, due| {
            Work::add(one, u64::MAX, by, due)
        }),
    ];
    let changes: [(&str, Change); 4] = [
        ("add", |c| c.add(1)),
        ("add a large one", |c| c.add(1 << 40)),
        ("set up", |c| c.set((1 << 42) + 11)),
        ("set down", |c| c.set(3)),
    ];
    // Twice: what the first round did must make no difference.
    for round in 0..2 {
        for (work, make) in &works {
            for (change, apply) in &changes {
                let due = fires.read()? + 1;
                rig.domain.queue_work(&make(&one, &fires, due))?;
                fires.add(1)?;
                apply(&one)?;
                check_eq!(
                    polled(&set, 8)?,
                    NOTHING,
                    "round {round}: {work}, then the application: {change}"
                );
                // And the other way round it is.
                rig.domain.queue_work(&make(&one, &fires, due + 1))?;
                one.set(large)?;
                apply(&one)?;
                fires.add(1)?;
                check_eq!(
                    polled(&set, 8)?,
                    [1],
                    "round {round}: the application: {change}, then {work}"
                );
                check_eq!(polled(&set, 8)?, NOTHING, "told once");
            }
        }
    }
    Ok(())
}

/// To add nothing is no change, however often that is done in a row, and whatever values the counter has.
fn nothing_added(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, fires, done) = (counter(&rig, 1)?, counter(&rig, 2)?, rig.counter()?);
    let set = rig.domain.poll_set()?;
    set.add(&one)?;
    let changes: [(&str, Change); 4] = [
        ("nothing", |_| Ok(())),
        ("a value", |c| c.set(7)),
        ("an error value", |c| c.set_err(7)),
        ("a value of 2^63", |c| c.set(1 << 63)),
    ];
    let mut due = 0;
    for (name, change) in changes {
        change(&one)?;
        for count in 1..=3 {
            due += 1;
            for _ in 0..count {
                rig.domain.queue_work(&Work::add(&one, 0, &fires, due))?;
            }
            // What comes before it has run then.
            rig.domain.queue_work(&Work::add(&done, 1, &fires, due))?;
            fires.add(1)?;
            done.wait_ms(due, -1)?;
            check_eq!(polled(&set, 8)?, NOTHING, "{name}, then 0 {count} times");
        }
    }
    // But to add something is.
    rig.domain
        .queue_work(&Work::add(&one, 1, &fires, due + 1))?;
    fires.add(1)?;
    until(|| Ok(polled(&set, 8)? == [1]))
}

fn error_entries(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (good, bad) = (cq(&rig, 1)?, cq(&rig, 2)?);
    let set = rig.domain.poll_set()?;
    set.add(&bad)?;
    set.add(&good)?;
    bad.write_err(&CompletionError {
        err: 5,
        ..CompletionError::default()
    })?;
    check_eq!(polled(&set, 8)?, [2]);
    good.write(&completion(1))?;
    check_eq!(polled(&set, 8)?, [1, 2], "an error hides nothing");
    bad.read_err()?;
    check_eq!(polled(&set, 8)?, [1]);
    Ok(())
}

fn counts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    // Also of a set without members, and of one that has something to tell.
    let queues: Vec<_> = (0..10).map(|i| cq(&rig, i)).collect::<Result<_, _>>()?;
    for members in [0, 10] {
        for queue in queues.iter().take(members) {
            queue.write(&completion(1))?;
            set.add(queue)?;
        }
        let mut room = [0xaa; 16];
        check_eq!(set.poll_raw(0, Some(&mut room))?, 0);
        check_eq!(set.poll_raw(0, None)?, 0, "nothing into NULL");
        for count in [-1, -4096, i32::MIN] {
            expect_fabric(set.poll_raw(count, Some(&mut room)), KfiErrno::EINVAL)?;
            expect_fabric(set.poll_raw(count, None), KfiErrno::EINVAL)?;
        }
        for count in [1, 2, 4096] {
            expect_fabric(set.poll_raw(count, None), KfiErrno::EINVAL)?;
        }
        for count in [4097, 1 << 20, i32::MAX] {
            expect_os(set.poll_raw(count, None), Errno::TOOBIG)?;
        }
        check_eq!(room, [0xaa; 16], "contexts that nobody has asked for");
    }
    for count in [1, 3, 9, 10, 11, 16] {
        let mut room = [0xaa; 16];
        let found = set.poll_raw(count, Some(&mut room))?;
        check_eq!(found, 10.min(count as usize), "contexts of {count}");
        let mut contexts = room[..found].to_vec();
        contexts.sort_unstable();
        contexts.dedup();
        check_eq!(contexts.len(), found, "different ones of {room:?}");
        check!(contexts.iter().all(|&context| context < 10), "{contexts:?}");
        check!(room[found..count as usize]
            .iter()
            .all(|&context| context == 0));
        check!(room[count as usize..]
            .iter()
            .all(|&context| context == 0xaa));
    }
    check_eq!(set.poll(4096)?.len(), 10);
    Ok(())
}

fn rotation(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let queues: Vec<_> = (0..10).map(|i| cq(&rig, i)).collect::<Result<_, _>>()?;
    for queue in &queues {
        set.add(queue)?;
        queue.write(&completion(1))?;
    }
    for room in [1, 3, 4, 7, 10, 20] {
        // Everybody gets their turn in so many calls, over and over.
        for _ in 0..3 {
            let mut seen = [false; 10];
            for _ in 0..10_usize.div_ceil(room) {
                for context in set.poll(room)? {
                    seen[context as usize] = true;
                }
            }
            check_eq!(seen, [true; 10], "with room for {room}");
        }
    }
    // Also if some of them have nothing, and others leave.
    for queue in &queues[..5] {
        drain(queue)?;
    }
    set.del(&queues[9])?;
    set.del(&queues[2])?;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(set.poll(1)?);
    }
    seen.sort_unstable();
    check_eq!(seen, [5, 6, 7, 8]);
    Ok(())
}

fn bad_addresses(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let queue = cq(&rig, 5)?;
    let set = rig.domain.poll_set()?;
    set.add(&queue)?;
    queue.write(&completion(1))?;
    for count in [1, 2, 4096] {
        for address in BAD_ADDRESSES {
            let mut argument = uapi::kfi_shim_poll {
                poll_set: set.handle(),
                count,
                contexts: address,
                ..FromZeros::new_zeroed()
            };
            let result = raw::bytes(
                &rig.session,
                uapi::KFI_REQUEST_POLL,
                argument.as_mut_bytes(),
            );
            if address == 0 {
                check_eq!(
                    (result, argument.result),
                    (Ok(()), -(Errno::INVAL.raw_os_error()))
                );
            } else {
                check_eq!(
                    result,
                    Err(Errno::FAULT),
                    "{count} contexts at {address:#x}"
                );
            }
        }
    }
    check_eq!(polled(&set, 4)?, [5]);
    Ok(())
}

fn attributes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for bit in 0..64 {
        expect_fabric(rig.domain.poll_set_with(Some(1 << bit)), KfiErrno::EINVAL)?;
    }
    let queue = cq(&rig, 1)?;
    let set = rig.domain.poll_set_with(None)?;
    set.add(&queue)?;
    queue.write(&completion(1))?;
    check_eq!(polled(&set, 2)?, [1]);
    drop((set, queue));
    rig.close()
}

fn classes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let other = rig.domain.poll_set()?;
    let waits = rig.fabric.wait_set(&WaitSetAttr::new())?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    eq.write(7, b"1")?;
    for (class, handle) in [
        ("a fabric", rig.fabric.handle()),
        ("a domain", rig.domain.handle()),
        ("a wait set", waits.handle()),
        ("an event queue", eq.handle()),
        ("another poll set", other.handle()),
        ("itself", set.handle()),
    ] {
        for result in [set.add_handle(handle, 0), set.del_handle(handle, 0)] {
            let refused = Err(Error::Fabric(KfiErrno::EINVAL));
            check_eq!(result, refused, "adding and removing {class}");
        }
    }
    expect_os(set.add_handle(rig.info.handle(), 0), Errno::INVAL)?;
    expect_os(set.del_handle(rig.info.handle(), 0), Errno::INVAL)?;
    // None of them is in it.
    check_eq!(polled(&set, 8)?, NOTHING);
    eq.close().map_err(|(_, error)| error)?;
    waits.close().map_err(|(_, error)| error)?;
    other.close().map_err(|(_, error)| error)?;
    set.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn twice_and_never(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let (queue, number) = (cq(&rig, 1)?, counter(&rig, 2)?);
    expect_fabric(set.del(&queue), KfiErrno::EINVAL)?;
    expect_fabric(set.del(&number), KfiErrno::EINVAL)?;
    for _ in 0..3 {
        set.add(&queue)?;
        set.add(&number)?;
    }
    queue.write(&completion(1))?;
    check_eq!(set.poll(8)?, [1], "told of once");
    set.del(&queue)?;
    check_eq!(set.poll(8)?, NOTHING, "after it has left");
    expect_fabric(set.del(&queue), KfiErrno::EINVAL)?;
    set.del(&number)?;
    expect_fabric(set.del(&number), KfiErrno::EINVAL)?;
    set.add(&queue)?;
    check_eq!(set.poll(8)?, [1], "back again");
    Ok(())
}

fn flags(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let (queue, member) = (cq(&rig, 1)?, cq(&rig, 2)?);
    set.add(&member)?;
    for queue in [&queue, &member] {
        queue.write(&completion(1))?;
    }
    for bit in 0..64 {
        let flags = 1 << bit;
        expect_fabric(set.add_handle(queue.handle(), flags), KfiErrno::EINVAL)?;
        expect_fabric(set.add_handle(member.handle(), flags), KfiErrno::EINVAL)?;
        expect_fabric(set.del_handle(member.handle(), flags), KfiErrno::EINVAL)?;
    }
    check_eq!(set.poll(8)?, [2]);
    // Members that were refused are not held.
    queue.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn other_domain(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let number = second.counter(&CntrAttr::new())?;
    let queue = second.completion_queue(&CqAttr::new())?;
    queue.write(&completion(1))?;
    expect_fabric(set.add(&number), KfiErrno::EINVAL)?;
    expect_fabric(set.add(&queue), KfiErrno::EINVAL)?;
    check_eq!(set.poll(8)?, NOTHING);
    number.close().map_err(|(_, error)| error)?;
    queue.close().map_err(|(_, error)| error)?;
    // And nothing of another session is known by its handle here.
    let elsewhere = Rig::new(env)?;
    let stale = cq(&elsewhere, 1)?;
    for _ in 0..20 {
        cq(&elsewhere, 1)?;
    }
    let foreign = cq(&elsewhere, 1)?.handle();
    drop(stale);
    expect_os(set.add_handle(foreign, 0), Errno::BADF)
}

fn two_sets(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, two) = (rig.domain.poll_set()?, rig.domain.poll_set()?);
    let (queue, number) = (cq(&rig, 1)?, counter(&rig, 2)?);
    for set in [&one, &two] {
        set.add(&queue)?;
        set.add(&number)?;
    }
    queue.write(&completion(1))?;
    number.add(1)?;
    for set in [&one, &two, &one, &two] {
        check_eq!(set.poll(8)?, [1]);
    }
    one.del(&queue)?;
    check_eq!(one.poll(8)?, NOTHING);
    check_eq!(two.poll(8)?, [1], "still in the other");
    // The other still holds it.
    expect_busy(rig.session.close_handle(queue.handle()))?;
    drain(&queue)?;
    check_eq!(two.poll(8)?, NOTHING);
    Ok(())
}

/// Threads poll while others add and remove; members that have left are not told of, and
/// those that stay are.
fn concurrent(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let queues: Vec<_> = (0..12).map(|i| cq(&rig, i)).collect::<Result<_, _>>()?;
    for queue in &queues {
        queue.write(&completion(1))?;
    }
    let (constant, guests) = queues.split_at(2);
    for queue in constant {
        set.add(queue)?;
    }
    let number = counter(&rig, 100)?;
    set.add(&number)?;
    let rounds = env.scaled(4_000, 200);
    let done = AtomicBool::new(false);
    let polls = in_threads([0_usize, 1, 2, 3], |thread| {
        pin(thread)?;
        let mut polls = 0_u64;
        match thread {
            0 | 1 => {
                // Each has guests of its own to bring.
                let own = &guests[5 * thread..][..5];
                let mut rng = env.rng();
                for _ in 0..rounds {
                    let queue = &own[rng.random_range(0..5)];
                    set.add(queue)?;
                    check!(set.poll(16)?.len() >= 3, "a member is not told of");
                    set.del(queue)?;
                    let index = queues.iter().position(|q| std::ptr::eq(q, queue));
                    let context = index.unwrap_or_default() as u64;
                    check!(!set.poll(16)?.contains(&context), "{context} has left");
                }
                if thread == 0 {
                    done.store(true, Ordering::Release);
                }
            }
            2 => {
                while !done.load(Ordering::Acquire) {
                    let all = set.poll(16)?;
                    check!(all.contains(&0) && all.contains(&1), "{all:?}");
                    check!(!all.contains(&100), "no event of a counter");
                    polls += 1;
                }
            }
            _ => {
                while !done.load(Ordering::Acquire) {
                    number.add(1)?;
                    set.poll(1)?;
                    polls += 1;
                }
            }
        }
        Ok(polls)
    })?;
    env.note(format!("{rounds} rounds, {polls:?} polls beside"));
    check_eq!(polled(&set, 16)?, [0, 1]);
    Ok(())
}

fn every_change_is_seen(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let queues: Vec<_> = (0..4).map(|i| cq(&rig, i)).collect::<Result<_, _>>()?;
    for queue in &queues {
        set.add(queue)?;
    }
    let seen = rig.counter()?;
    let total = env.scaled(5_000, 300);
    in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        let mut rng = env.rng();
        if thread == 0 {
            for written in 1..=total {
                queues[rng.random_range(0..4)].write(&completion(written))?;
                if rng.random_ratio(1, 8) || written % 16 == 0 {
                    seen.wait_ms(written, -1)?;
                }
            }
            return Ok(());
        }
        let mut read = 0;
        while read < total {
            for context in set.poll(rng.random_range(1..=4))? {
                let count = drain(&queues[context as usize])?.len() as u64;
                read += count;
                seen.add(count)?;
            }
        }
        Ok(())
    })?;
    check_eq!(seen.read()?, total);
    Ok(())
}

/// One thread of the application adds, another one lowers the value again, and then the provider makes it
/// what the first one made: that is news, however far the first thread is.
fn lowered_beside(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, fires) = (counter(&rig, 1)?, counter(&rig, 2)?);
    let set = rig.domain.poll_set()?;
    set.add(&one)?;
    let rounds = env.scaled(5_000, 300);
    let (begun, added) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = AtomicBool::new(false);
    let lower = || {
        for round in 1..=rounds {
            rig.domain.queue_work(&Work::add(&one, 1, &fires, round))?;
            begun.store(round, Ordering::Release);
            until(|| Ok(one.read()? == round))?;
            if round % 2 == 0 {
                one.add(u64::MAX)?;
            } else {
                one.set(round - 1)?;
            }
            fires.add(1)?;
            until(|| Ok(added.load(Ordering::Acquire) == round))?;
            check_eq!(one.read()?, round);
            check_eq!(set.poll(4)?, [1], "round {round}");
            check_eq!(set.poll(4)?, NOTHING, "round {round}, told once");
        }
        Ok(())
    };
    in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        if thread == 1 {
            let result = lower();
            end.store(true, Ordering::Release);
            return result;
        }
        for round in 1..=rounds {
            let is_over = || end.load(Ordering::Acquire);
            until(|| Ok(begun.load(Ordering::Acquire) == round || is_over()))?;
            if is_over() {
                break;
            }
            one.add(1)?;
            added.store(round, Ordering::Release);
        }
        Ok(())
    })?;
    Ok(())
}

/// Random calls, compared with the answers of a list of members.
fn model(env: &Env) -> Outcome {
    const COUNT: usize = 8;
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let queues: Vec<_> = (0..COUNT as u64)
        .map(|i| cq(&rig, i))
        .collect::<Result<_, _>>()?;
    let (mut member, mut entries) = ([false; COUNT], [0; COUNT]);
    let mut rng = env.rng();
    for step in 0..env.scaled(5_000, 500) {
        let at = rng.random_range(0..COUNT);
        match rng.random_range(0..6) {
            0 => {
                set.add(&queues[at])?;
                member[at] = true;
            }
            1 => {
                let result = set.del(&queues[at]);
                if member[at] {
                    result?;
                } else {
                    expect_fabric(result, KfiErrno::EINVAL)?;
                }
                member[at] = false;
            }
            2 if entries[at] < 16 => {
                queues[at].write(&completion(step))?;
                entries[at] += 1;
            }
            3 => {
                let count = drain(&queues[at])?.len();
                check_eq!(count, entries[at], "completions in step {step}");
                entries[at] = 0;
            }
            _ => {
                let room = rng.random_range(0..=COUNT + 1);
                let ready = (0..COUNT).filter(|&i| member[i] && entries[i] > 0);
                let ready: Vec<u64> = ready.map(|i| i as u64).collect();
                let is = polled(&set, room)?;
                check_eq!(is.len(), ready.len().min(room), "contexts in step {step}");
                check!(
                    is.windows(2).all(|pair| pair[0] < pair[1])
                        && is.iter().all(|context| ready.contains(context)),
                    "{is:?} of {ready:?} in step {step}"
                );
            }
        }
    }
    Ok(())
}

fn close_(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = rig.domain.poll_set()?;
    let (queue, number) = (cq(&rig, 1)?, counter(&rig, 2)?);
    set.add(&queue)?;
    set.add(&number)?;
    queue.write(&completion(1))?;
    for _ in 0..3 {
        for handle in [
            set.handle(),
            queue.handle(),
            number.handle(),
            rig.domain.handle(),
        ] {
            expect_busy(rig.session.close_handle(handle))?;
        }
    }
    // A close that is refused has no effect.
    check_eq!(set.poll(4)?, [1]);
    set.del(&queue)?;
    queue.close().map_err(|(_, error)| error)?;
    expect_busy(rig.session.close_handle(set.handle()))?;
    set.del(&number)?;
    set.close().map_err(|(_, error)| error)?;
    expect_busy(rig.session.close_handle(rig.domain.handle()))?;
    number.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Fills poll sets with members and leaves all of it to the session. The sets
/// are opened before, among and after their members.
fn fill(rig: &Rig) -> Result<Vec<PollSet>, Stop> {
    let mut sets = Vec::new();
    for round in 0..10 {
        sets.push(rig.domain.poll_set()?);
        for _ in 0..10 {
            let queue = cq(rig, round)?;
            queue.write(&completion(round))?;
            let number = counter(rig, round)?;
            for set in &sets {
                set.add(&queue)?;
                set.add(&number)?;
            }
            queue.into_handle();
            number.into_handle();
        }
    }
    let late = rig.domain.poll_set()?;
    late.add(&cq(rig, 99)?)?;
    sets.push(late);
    Ok(sets)
}

fn session_with_members(env: &Env) -> Outcome {
    for _ in 0..3 {
        let session = Session::open()?;
        let rig = Rig::in_session(env, session.clone())?;
        let sets = fill(&rig)?;
        check_eq!(sets[0].poll(4096)?.len(), 100);
        for set in sets {
            set.into_handle();
        }
        rig.domain.into_handle();
        rig.fabric.into_handle();
        drop((rig.info, rig.session, session));
    }
    Rig::new(env)?.close()
}

fn killed_with_members(env: &Env) -> Outcome {
    for _ in 0..2 {
        let mut child = process::fork(|| {
            let run = || -> Outcome {
                let rig = Rig::new(env)?;
                let sets = fill(&rig)?;
                let never = rig.counter()?;
                check_eq!(sets.len(), 11);
                Ok(never.wait_ms(1, -1)?)
            };
            i32::from(run().is_err())
        })?;
        let pid = child.pid();
        check!(
            kfi_host::thread::until_asleep(pid, pid)?,
            "the child does not sleep"
        );
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    }
    Rig::new(env)?.close()
}
