// SPDX-License-Identifier: GPL-2.0

//! Asking whether it is safe to block, and blocking on descriptors then.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use kfi::uapi::{self, request};
use kfi::{
    CntrAttr, CompletionError, CompletionQueue, Counter, CqAttr, EqAttr, Error, EventError,
    EventQueue, Handle, KfiErrno, WaitFd, WaitObj, WaitSet, WaitSetAttr,
};
use kfi_host::memory::Guarded;
use kfi_host::sys::select;
use kfi_host::thread;
use rand::RngExt;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use zerocopy::FromZeros;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::BAD_ADDRESSES;
use crate::rig::{expect_busy, expect_fabric, expect_os, in_threads, pin, Rig};
use crate::tests::wait_set::{self, completion, counter_in, cq_in, drain, eq_in};
use crate::{check, check_eq, tests};

tests! {
    "trywait" parallel;
    "case-67-arming" ["R-TRYWAIT-1 R-TRYWAIT-9 R-CTL-10 kfi_shim.h"] arming;
    alone "case-67-loop-with-poll" ["R-TRYWAIT-2 R-CTL-10"] loop_with_poll;
    alone "case-67-loop-with-select" ["R-TRYWAIT-2 R-CTL-10"] loop_with_select;
    alone "case-67-loop-with-epoll" ["R-TRYWAIT-2 R-CTL-10"] loop_with_epoll;
    "case-67-error-condition" ["R-CTL-10"] error_condition;
    "case-67-descriptors" ["R-CTL-7 R-CTL-10 kfi_shim.h"] descriptors;
    "case-68-queues" ["R-TRYWAIT-1 R-TRYWAIT-7"] queues;
    "case-68-counters" ["R-TRYWAIT-7"] counters;
    "case-68-wait-sets" ["R-TRYWAIT-6 R-TRYWAIT-10"] wait_sets;
    "case-69-classes" ["R-TRYWAIT-3"] classes;
    "case-69-wait-objects" ["R-TRYWAIT-4 R-TRYWAIT-5"] wait_objects;
    "case-69-counts" ["R-TRYWAIT-8 kfi_shim.h"] counts;
    "case-69-bad-arguments" ["kfi_shim.h"] bad_arguments;
    "case-69-refusal-tells-of-nothing" ["R-TRYWAIT-3 R-TRYWAIT-7"] refusal;
    "case-70-nothing-lost" ["R-TRYWAIT-2"] nothing_lost;
    alone "case-70-nothing-lost-in-a-set" ["R-TRYWAIT-2 R-TRYWAIT-6 R-WAIT-11"] nothing_lost_in_a_set;
}

/// One object of each class, each with a wait queue and a descriptor.
struct Objects {
    fds: Vec<WaitFd>,
    cq: CompletionQueue,
    eq: EventQueue,
    counter: Counter,
    set_cq: CompletionQueue,
    set_counter: Counter,
    set: Arc<WaitSet>,
}

impl Objects {
    fn new(rig: &Rig) -> Result<Self, Stop> {
        let queue = WaitObj::QUEUE;
        let cq = rig
            .domain
            .completion_queue(&CqAttr::new().wait_obj(queue))?;
        let eq = rig.fabric.event_queue(&EqAttr::new().wait_obj(queue))?;
        let counter = rig.domain.counter(&CntrAttr::new().wait_obj(queue))?;
        let set = wait_set::open(rig)?;
        Ok(Self {
            fds: vec![
                cq.wait_fd_nonblock()?,
                eq.wait_fd_nonblock()?,
                counter.wait_fd_nonblock()?,
                set.wait_fd_nonblock()?,
            ],
            cq,
            eq,
            counter,
            set_cq: cq_in(&rig.domain, &set)?,
            set_counter: counter_in(&rig.domain, &set)?,
            set,
        })
    }

    /// Handles for trywait, in the order of the descriptors.
    fn handles(&self) -> [Handle; 4] {
        [
            self.cq.handle(),
            self.eq.handle(),
            self.counter.handle(),
            self.set.handle(),
        ]
    }

    /// One of the five things that can happen.
    fn cause(&self, what: usize) -> Outcome {
        match what {
            0 => self.cq.write(&completion(1))?,
            1 => self.eq.write(7, b"event").map(drop)?,
            2 => self.counter.add(1)?,
            3 => self.set_cq.write(&completion(1))?,
            _ => self.set_counter.add(1)?,
        }
        Ok(())
    }

    /// Reads all there is; returns how much has happened since the start.
    fn read(&self, queued: &mut u64) -> Result<u64, Stop> {
        *queued += drain(&self.cq)?.len() as u64;
        *queued += drain(&self.set_cq)?.len() as u64;
        loop {
            match self.eq.read(64) {
                Ok(_) => *queued += 1,
                Err(Error::Fabric(KfiErrno::EAGAIN)) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(*queued + self.counter.read()? + self.set_counter.read()?)
    }
}

/// The answer of poll(2) now.
fn polled(fd: &WaitFd) -> Result<PollFlags, Stop> {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec::default()))?;
    Ok(fds[0].revents())
}

const NONE: PollFlags = PollFlags::empty();

/// There is something to read first.
fn again(rig: &Rig, handles: &[Handle]) -> Outcome {
    expect_fabric(rig.fabric.trywait(handles), KfiErrno::EAGAIN)
}

fn arming(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let handles = objects.handles();
    // An event makes the descriptor of its object readable, and no other.
    for (what, at) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)] {
        let mut queued = 0;
        rig.fabric.trywait(&handles)?;
        objects.cause(what)?;
        for (i, fd) in objects.fds.iter().enumerate() {
            let should = if i == at { PollFlags::IN } else { NONE };
            check_eq!(polled(fd)?, should, "descriptor {i} after {what}");
        }
        // Asking in vain changes nothing, nor does reading the object.
        let fd = &objects.fds[at];
        again(&rig, &handles)?;
        check_eq!(polled(fd)?, PollFlags::IN);
        objects.read(&mut queued)?;
        check_eq!(polled(fd)?, PollFlags::IN);
        // Asking for others does not arm this one.
        let others: Vec<_> = handles
            .into_iter()
            .filter(|handle| *handle != handles[at])
            .collect();
        rig.fabric.trywait(&others)?;
        check_eq!(polled(fd)?, PollFlags::IN);
        // But asking for it does.
        rig.fabric.trywait(&handles)?;
        check_eq!(polled(fd)?, NONE, "descriptor {at}, armed after {what}");
    }
    // All descriptors of an object are armed.
    let second = objects.cq.wait_fd()?;
    objects.cause(0)?;
    drain(&objects.cq)?;
    rig.fabric.trywait(&handles[..1])?;
    for fd in [&objects.fds[0], &second] {
        check_eq!(polled(fd)?, NONE);
    }
    objects.cause(0)?;
    for fd in [&objects.fds[0], &second] {
        check_eq!(polled(fd)?, PollFlags::IN);
    }
    Ok(())
}

/// The loop as it is documented: ask, block if it is safe, read all.
fn documented_loop(
    env: &Env,
    total: u64,
    block: impl Fn(&[WaitFd]) -> Outcome + Sync,
) -> Result<u64, Stop> {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let handles = objects.handles();
    let seen = rig.counter()?;
    let (me, reader) = (rustix::process::getpid(), OnceLock::new());
    let blocked = in_threads([0_usize, 1], |which| {
        pin(which)?;
        if which == 0 {
            let mut rng = env.rng();
            for written in 1..=total {
                objects.cause(rng.random_range(0..5))?;
                // Now and then let the other fall asleep; an event that it does
                // not see then leaves both asleep.
                if rng.random_ratio(1, 2) || written % 32 == 0 {
                    seen.wait_ms(written, -1)?;
                    if rng.random_ratio(1, 8) && written < total {
                        let reader = *reader.get().ok_or_else(|| Stop::fail("no reader"))?;
                        check!(thread::until_asleep(me, reader)?, "the reader is gone");
                    }
                }
            }
            return Ok(0);
        }
        reader.get_or_init(thread::id);
        let (mut queued, mut blocked, mut known) = (0, 0, 0);
        while known < total {
            match rig.fabric.trywait(&handles) {
                Ok(()) => {
                    block(&objects.fds)?;
                    blocked += 1;
                }
                result => expect_fabric(result, KfiErrno::EAGAIN)?,
            }
            let now = objects.read(&mut queued)?;
            if now != known {
                known = now;
                seen.set(known)?;
            }
        }
        Ok(blocked)
    })?;
    Ok(blocked[1])
}

fn block_in_poll(fds: &[WaitFd]) -> Outcome {
    let mut fds: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    let ready = rustix::event::poll(&mut fds, None)?;
    check!(ready > 0, "poll returns without a reason");
    Ok(())
}

fn loop_with_poll(env: &Env) -> Outcome {
    let total = env.scaled(500, 100);
    let blocked = documented_loop(env, total, block_in_poll)?;
    env.note(format!("{total} events, blocked {blocked} times"));
    Ok(())
}

/// select(2) for one descriptor that stands for all.
fn loop_with_select(env: &Env) -> Outcome {
    let total = env.scaled(500, 100);
    let blocked = documented_loop(env, total, |fds| {
        let all = epoll_set(fds)?;
        while !select(all.as_fd(), 1_000_000)?.read {}
        Ok(())
    })?;
    env.note(format!("{total} events, blocked {blocked} times"));

    // And directly.
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    for (what, at) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)] {
        let mut queued = 0;
        let fd = objects.fds[at].as_fd();
        rig.fabric.trywait(&objects.handles())?;
        check!(!select(fd, 0)?.read, "{at} is readable before {what}");
        objects.cause(what)?;
        check!(select(fd, 1_000_000)?.read, "{at} is not after {what}");
        objects.read(&mut queued)?;
        again(&rig, &objects.handles()).or_else(|_| rig.fabric.trywait(&objects.handles()))?;
    }
    Ok(())
}

fn epoll_set(fds: &[WaitFd]) -> Result<rustix::fd::OwnedFd, Stop> {
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    for fd in fds {
        epoll::add(&set, fd, EventData::new_u64(1), EventFlags::IN)?;
    }
    Ok(set)
}

fn loop_with_epoll(env: &Env) -> Outcome {
    let total = env.scaled(500, 100);
    let blocked = documented_loop(env, total, |fds| {
        let set = epoll_set(fds)?;
        let mut events = [MaybeUninit::uninit(); 4];
        let (events, _) = epoll::wait(&set, &mut events, None)?;
        check!(!events.is_empty(), "epoll returns without a reason");
        for event in events {
            check_eq!({ event.flags }, EventFlags::IN);
        }
        Ok(())
    })?;
    env.note(format!("{total} events, blocked {blocked} times"));
    Ok(())
}

fn error_condition(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let handles = objects.handles();
    rig.fabric.trywait(&handles)?;
    objects.counter.add_err(1)?;
    let fd = &objects.fds[2];
    check_eq!(polled(fd)?, PollFlags::IN | PollFlags::ERR);
    let set = epoll_set(&objects.fds)?;
    let mut events = [MaybeUninit::uninit(); 4];
    let (ready, _) = epoll::wait(&set, &mut events, None)?;
    check_eq!(ready.len(), 1, "ready descriptors");
    check_eq!({ ready[0].flags }, EventFlags::IN | EventFlags::ERR);
    check!(select(fd.as_fd(), 1_000_000)?.read);
    fd.read()?;
    check_eq!(polled(fd)?, NONE);

    // Errors in a queue are something to read, and no error condition.
    objects.cq.write_err(&CompletionError {
        err: 5,
        ..CompletionError::default()
    })?;
    objects.eq.write_err(&EventError {
        err: 5,
        ..EventError::default()
    })?;
    objects.set_counter.add_err(1)?;
    for at in [0, 1, 3] {
        check_eq!(polled(&objects.fds[at])?, PollFlags::IN, "descriptor {at}");
    }
    Ok(())
}

fn descriptors(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    for (what, at) in [(0, 0), (1, 1), (3, 3), (4, 3)] {
        let fd = &objects.fds[at];
        expect_os(fd.read(), Errno::AGAIN)?;
        let before = polled(fd)?;
        check_eq!(before, NONE);
        objects.cause(what)?;
        objects.cause(what)?;
        let event = fd.read()?;
        let more = if what == 4 { 4 } else { 2 };
        check_eq!((event.value, event.error_value), (more, 0), "after {what}");
        expect_os(fd.read(), Errno::AGAIN)?;
    }
    // With a descriptor open they cannot be closed.
    for handle in objects.handles() {
        expect_busy(rig.session.close_handle(handle))?;
    }
    // A member of a set gives the set's.
    let member = objects.set_cq.wait_fd()?;
    objects.set_counter.add(1)?;
    check_eq!(polled(&member)?, PollFlags::IN);

    // And an object that has none gives none.
    let none = CqAttr::new().wait_obj(WaitObj::NONE);
    let cq = rig.domain.completion_queue(&none)?;
    expect_fabric(cq.wait_fd(), KfiErrno::EINVAL)?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    expect_fabric(cq.wait_fd(), KfiErrno::ENOSYS)?;
    let none = EqAttr::new().wait_obj(WaitObj::NONE);
    let eq = rig.fabric.event_queue(&none)?;
    expect_fabric(eq.wait_fd(), KfiErrno::EINVAL)?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    expect_fabric(eq.wait_fd(), KfiErrno::ENOSYS)?;
    let set = rig.fabric.wait_set(&WaitSetAttr::new())?;
    expect_fabric(set.wait_fd(), KfiErrno::ENOSYS)
}

fn queues(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let (cq, eq) = (&objects.cq, &objects.eq);
    let both = [cq.handle(), eq.handle()];
    rig.fabric.trywait(&both)?;
    rig.fabric.trywait(&both)?;
    cq.write(&completion(1))?;
    cq.write_err(&CompletionError {
        err: 5,
        ..CompletionError::default()
    })?;
    for _ in 0..3 {
        again(&rig, &[cq.handle()])?;
        again(&rig, &both)?;
    }
    rig.fabric.trywait(&[eq.handle()])?;
    cq.read(1)?;
    again(&rig, &both)?;
    cq.read_err()?;
    rig.fabric.trywait(&both)?;

    eq.write(7, b"1")?;
    eq.write_err(&EventError {
        err: 5,
        ..EventError::default()
    })?;
    for _ in 0..3 {
        again(&rig, &both)?;
        again(&rig, &[eq.handle(), cq.handle()])?;
    }
    eq.peek(8)?;
    again(&rig, &both)?;
    eq.read(8)?;
    again(&rig, &both)?;
    eq.read_err()?;
    rig.fabric.trywait(&both)?;
    Ok(())
}

fn counters(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (one, two) = (rig.counter()?, rig.counter()?);
    let both = [one.handle(), two.handle()];
    rig.fabric.trywait(&both)?;
    let changes: [fn(&Counter) -> kfi::Result<()>; 5] = [
        |c| c.add(1),
        |c| c.set(100),
        |c| c.set(7),
        |c| c.add_err(1),
        |c| c.set_err(0),
    ];
    for change in changes {
        // Once for each change, whoever else has nothing to tell.
        change(&one)?;
        again(&rig, &both)?;
        rig.fabric.trywait(&both)?;
        change(&two)?;
        rig.fabric.trywait(&both[..1])?;
        again(&rig, &both[1..])?;
        rig.fabric.trywait(&both)?;
        // Of both at once.
        change(&one)?;
        two.add(1)?;
        again(&rig, &both)?;
        rig.fabric.trywait(&both)?;
    }
    // Events from before the first time are told of as well.
    let late = rig.counter()?;
    late.add(1)?;
    again(&rig, &[late.handle()])?;
    rig.fabric.trywait(&[late.handle()])?;
    Ok(())
}

fn wait_sets(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = wait_set::open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let counter = counter_in(&rig.domain, &set)?;
    let handles = [set.handle()];
    rig.fabric.trywait(&handles)?;
    cq.write(&completion(1))?;
    eq.write(7, b"1")?;
    again(&rig, &handles)?;
    drain(&cq)?;
    again(&rig, &handles)?;
    eq.read(8)?;
    rig.fabric.trywait(&handles)?;
    counter.add(1)?;
    again(&rig, &handles)?;
    rig.fabric.trywait(&handles)?;

    // A member stands for its set.
    for member in [cq.handle(), eq.handle(), counter.handle()] {
        rig.fabric.trywait(&[member])?;
        cq.write(&completion(1))?;
        again(&rig, &[member])?;
        drain(&cq)?;
        rig.fabric.trywait(&[member])?;
        counter.add_err(1)?;
        again(&rig, &[member])?;
        rig.fabric
            .trywait(&[member, cq.handle(), counter.handle()])?;
    }

    // A poll set says then whose turn it is.
    let named = CqAttr::new()
        .wait_obj(WaitObj::SET)
        .wait_set(set.handle())
        .context(7);
    let named = rig.domain.completion_queue(&named)?;
    let poll = rig.domain.poll_set()?;
    for member in [&cq, &named] {
        poll.add(member)?;
    }
    named.write(&completion(1))?;
    again(&rig, &handles)?;
    check_eq!(poll.poll(4)?, [7]);
    drain(&named)?;
    rig.fabric.trywait(&handles)?;
    Ok(())
}

fn classes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let poll = rig.domain.poll_set()?;
    let good = objects.handles();
    rig.fabric.trywait(&good)?;
    let bad = [rig.fabric.handle(), rig.domain.handle(), poll.handle()];
    for bad in bad {
        expect_fabric(rig.fabric.trywait(&[bad]), KfiErrno::EINVAL)?;
        for at in 0..good.len() {
            let mut handles = good;
            handles[at] = bad;
            expect_fabric(rig.fabric.trywait(&handles), KfiErrno::EINVAL)?;
        }
    }
    let info = rig.info.handle();
    expect_os(rig.fabric.trywait(&[good[0], info]), Errno::INVAL)
}

fn wait_objects(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = wait_set::open(&rig)?;
    let member = cq_in(&rig.domain, &set)?;
    let queue = |wait_obj| {
        let attr = CqAttr::new().wait_obj(wait_obj);
        rig.domain.completion_queue(&attr)
    };
    let (none, unspec) = (queue(WaitObj::NONE)?, queue(WaitObj::UNSPEC)?);
    let own = queue(WaitObj::QUEUE)?;
    let none_eq = EqAttr::new().wait_obj(WaitObj::NONE);
    let none_eq = rig.fabric.event_queue(&none_eq)?;
    let none_cntr = rig.counter_with(WaitObj::NONE)?;
    let trywait = |handles: &[Handle]| rig.fabric.trywait(handles);

    for handle in [none.handle(), none_eq.handle(), none_cntr.handle()] {
        expect_fabric(trywait(&[handle]), KfiErrno::EINVAL)?;
        expect_fabric(trywait(&[own.handle(), handle]), KfiErrno::EINVAL)?;
        expect_fabric(trywait(&[handle, own.handle()]), KfiErrno::EINVAL)?;
    }
    // A queue of one's own and a share in a set's are of different types.
    let mixed = [own.handle(), member.handle()];
    expect_fabric(trywait(&mixed), KfiErrno::EINVAL)?;
    // An unspecified wait object is one that the provider has chosen.
    let unspecified = rig.counter_with(WaitObj::UNSPEC)?;
    trywait(&[unspec.handle()])?;
    trywait(&[unspecified.handle(), unspec.handle()])?;
    trywait(&[own.handle(), set.handle()])?;
    unspec.write(&completion(1))?;
    again(&rig, &[unspec.handle()])
}

fn counts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.add(1)?;
    rig.fabric.trywait(&[])?;
    let ask = |count: u32, handles: u64| {
        let mut argument = uapi::kfi_shim_trywait {
            fabric: rig.fabric.handle(),
            count,
            handles,
            ..FromZeros::new_zeroed()
        };
        let result = rig.session.ioctl(request::TRYWAIT, &mut argument);
        result.map(|()| argument.result)
    };
    check_eq!(ask(0, 0), Ok(0), "none of none");
    for count in [1, 2, 4096] {
        let invalid = Ok(-Errno::INVAL.raw_os_error());
        check_eq!(ask(count, 0), invalid, "{count} at NULL");
    }
    for count in [4097, 1 << 20, 1 << 31, u32::MAX] {
        for address in [0, BAD_ADDRESSES[5]] {
            check_eq!(ask(count, address), Err(Errno::TOOBIG));
        }
    }
    for address in &BAD_ADDRESSES[1..] {
        for count in [1, 2, 4096] {
            check_eq!(ask(count, *address), Err(Errno::FAULT), "at {address:#x}");
        }
    }
    // The same one over and over, as many as may be, up to the end of memory.
    let many = vec![counter.handle(); 4096];
    again(&rig, &many)?;
    rig.fabric.trywait(&many)?;
    let mut bytes = Vec::new();
    for handle in &many {
        bytes.extend_from_slice(&handle.to_ne_bytes());
    }
    let mut memory = Guarded::new(&bytes)?;
    let address = memory.address() as u64;
    check_eq!(ask(4096, address), Ok(0));
    check_eq!(ask(4096, address + 4), Err(Errno::FAULT));
    // None of them is held.
    drop(counter);
    rig.close()
}

fn bad_arguments(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let good = rig.counter()?;
    let stale = rig.counter()?.handle();
    for bad in [0, stale, stale + 1000, u32::MAX] {
        expect_os(rig.fabric.trywait(&[bad]), Errno::BADF)?;
        expect_os(rig.fabric.trywait(&[good.handle(), bad]), Errno::BADF)?;
    }
    // An object named before the bad one is not held.
    drop(good);
    rig.close()
}

fn refusal(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let objects = Objects::new(&rig)?;
    let (counter, set) = (objects.counter.handle(), objects.set.handle());
    rig.fabric.trywait(&objects.handles())?;
    objects.counter.add(1)?;
    objects.set_counter.add(1)?;
    let bad = rig.domain.handle();
    expect_fabric(rig.fabric.trywait(&[counter, set, bad]), KfiErrno::EINVAL)?;
    again(&rig, &[counter])?;
    again(&rig, &[set])?;
    rig.fabric.trywait(&[counter, set])?;
    // A descriptor is not armed by a refusal.
    objects.counter.add(1)?;
    expect_fabric(rig.fabric.trywait(&[counter, bad]), KfiErrno::EINVAL)?;
    check_eq!(polled(&objects.fds[2])?, PollFlags::IN);
    Ok(())
}

fn nothing_lost(env: &Env) -> Outcome {
    let total = env.scaled(6_000, 500);
    let blocked = documented_loop(env, total, block_in_poll)?;
    env.note(format!("{total} events, blocked {blocked} times"));
    Ok(())
}

/// One thread waits natively, another with `kfi_wait`: each sees all.
fn nothing_lost_in_a_set(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = wait_set::open(&rig)?;
    let fd = set.wait_fd()?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let (read, total) = (rig.counter()?, env.scaled(5_000, 300));
    let counts = in_threads([0_usize, 1, 2], |thread| {
        pin(thread)?;
        let mut own = 0;
        if thread == 0 {
            let mut rng = env.rng();
            for written in 1..=total {
                if rng.random() {
                    cq.write(&completion(written))?;
                } else {
                    eq.write(7, b"1")?;
                }
                if rng.random_ratio(1, 2) || written % 32 == 0 {
                    read.wait_ms(written, -1)?;
                }
            }
            // The waiters that are asleep when all is read time out.
            return Ok(total);
        }
        while read.read()? < total {
            if thread == 1 {
                match set.wait_ms(50) {
                    Ok(()) | Err(Error::Fabric(KfiErrno::ETIMEDOUT)) => {}
                    Err(error) => return Err(error.into()),
                }
            } else if rig.fabric.trywait(&[set.handle()]).is_ok() {
                let mut fds = [PollFd::new(&fd, PollFlags::IN)];
                let time = Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                rustix::event::poll(&mut fds, Some(&time))?;
            }
            let mut count = drain(&cq)?.len() as u64;
            count += u64::from(eq.read(8).is_ok());
            own += count;
            read.add(count)?;
        }
        Ok(own)
    })?;
    check_eq!(counts[1] + counts[2], total, "events read");
    env.note(format!("{total} events, read by each: {:?}", &counts[1..]));
    Ok(())
}
