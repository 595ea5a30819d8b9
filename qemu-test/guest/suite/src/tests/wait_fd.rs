// SPDX-License-Identifier: GPL-2.0

//! Wait descriptors: a counter's wait object for poll(2) and its kin.

use std::collections::HashSet;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kfi::{KfiErrno, WaitEvent, WaitFd};
use kfi_host::process::{self, Status};
use kfi_host::sys::{select, Selected};
use kfi_host::{signal, thread};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Signal;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{
    expect_busy, expect_fabric, expect_os, in_threads, pin, unshare, until, Rig, Waiter,
};
use crate::tests::trace::Tracing;
use crate::{check, check_eq, tests};

tests! {
    "waitfd" parallel;
    "poll" ["R-CTL-10 R-CNTR-16"] poll_;
    "poll-woken" ["R-CTL-10 R-CNTR-16"] poll_woken;
    "select" ["R-CTL-10"] select_;
    "epoll" ["R-CTL-10"] epoll_;
    "epoll-edge" ["R-CTL-10"] epoll_edge;
    "epoll-edge-not-looked-at" ["R-CTL-10 R-CNTR-16"] epoll_edge_not_looked_at;
    "every-change" ["R-CTL-10 R-CNTR-16"] every_change;
    "error-condition" ["R-CTL-10"] error_condition;
    "read-consumes" ["R-CTL-10"] read_consumes;
    "read-nonblocking" ["R-CTL-10 kfi_shim.h"] read_nonblocking;
    "read-sleeps" ["R-CTL-10 kfi_shim.h"] read_sleeps;
    "read-interrupted" ["R-CTL-10 R-CNTR-38"] read_interrupted;
    "several-on-one-counter" ["R-CTL-10"] several;
    "beside-waiters" ["R-CNTR-15 R-CNTR-16"] beside_waiters;
    "dup-is-the-same" ["kfi_shim.h"] dup;
    "fork-is-the-same" ["kfi_shim.h"] fork;
    "passed-to-another-process" ["kfi_shim.h"] passed;
    "closed-on-exec" ["kfi_shim.h"] closed_on_exec;
    "counter-is-busy" ["kfi_shim.h"] counter_is_busy;
    "session-closed-first" ["kfi_shim.h"] session_closed_first;
    alone "nothing-lost" ["R-CNTR-16"] nothing_lost;
    alone "nested-epolls" ["R-CNTR-16"] nested_epolls;
    alone "nested-nothing-lost" ["R-CTL-10 R-CNTR-16"] nested_nothing_lost;
    alone "many-objects-nothing-lost" ["R-CTL-10 R-CNTR-16"] many_objects;
    alone "unwatched-objects-take-turns" ["R-CTL-10 kfi_shim.h"] unwatched_objects;
}

const NONE: PollFlags = PollFlags::empty();

/// The answer of poll(2), now or after at most some time.
fn polled_for(fd: &impl AsFd, time: Duration) -> Result<PollFlags, Stop> {
    let mut fds = [PollFd::new(fd, PollFlags::IN | PollFlags::PRI)];
    process::poll_until(&mut fds, std::time::Instant::now() + time)?;
    Ok(fds[0].revents())
}

/// The answer of poll(2) now.
fn polled(fd: &impl AsFd) -> Result<PollFlags, Stop> {
    polled_for(fd, Duration::ZERO)
}

fn event(value: u64, error_value: u64) -> WaitEvent {
    WaitEvent { value, error_value }
}

fn poll_(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.add(3)?;
    counter.add_err(1)?;
    // Additions from before the descriptor are no change.
    let fd = counter.wait_fd()?;
    check_eq!(polled(&fd)?, NONE, "before a change");
    counter.add(1)?;
    check_eq!(polled(&fd)?, PollFlags::IN, "after add");
    // The level stays until it is read.
    check_eq!(polled(&fd)?, PollFlags::IN, "looking a second time");
    check_eq!(counter.read()?, 4);
    check_eq!(polled(&fd)?, PollFlags::IN, "after reading the counter");
    check_eq!(fd.read()?, event(4, 1));
    check_eq!(polled(&fd)?, NONE, "after read(2)");
    Ok(())
}

fn poll_woken(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    // Nothing changes: the whole time, and not less.
    let start = std::time::Instant::now();
    check_eq!(polled_for(&fd, Duration::from_millis(20))?, NONE);
    check!(start.elapsed() >= Duration::from_millis(20));

    let me = rustix::process::getpid();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let poller = scope.spawn(|| {
            tx.send(thread::id())?;
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            rustix::event::poll(&mut fds, None)?;
            Ok::<_, Stop>(fds[0].revents())
        });
        let tid = rx.recv()?;
        check!(thread::until_asleep(me, tid)?, "poll does not sleep");
        counter.add(1)?;
        let revents = poller.join().map_err(|_| Stop::fail("panicked"))??;
        check_eq!(revents, PollFlags::IN);
        Ok(())
    })
}

fn select_(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let nothing = Selected {
        read: false,
        except: false,
    };
    check_eq!(select(fd.as_fd(), 0)?, nothing, "before a change");
    counter.set(9)?;
    check!(
        select(fd.as_fd(), 1_000_000)?.read,
        "not readable after set"
    );
    check_eq!(fd.read()?, event(9, 0));
    check_eq!(select(fd.as_fd(), 5)?, nothing, "after read(2)");
    counter.add_err(1)?;
    // EPOLLERR counts as readable in select(2).
    check!(
        select(fd.as_fd(), 1_000_000)?.read,
        "not readable after adderr"
    );
    Ok(())
}

/// The answer of epoll(7) now.
fn epolled(set: &OwnedFd, timeout: i64) -> Result<Option<EventFlags>, Stop> {
    let mut events = [MaybeUninit::uninit(); 4];
    let timeout = Timespec {
        tv_sec: timeout / 1000,
        tv_nsec: timeout % 1000 * 1_000_000,
    };
    let (events, _) = epoll::wait(set, &mut events, Some(&timeout))?;
    Ok(events.first().map(|event| event.flags))
}

fn epoll_(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&set, &fd, EventData::new_u64(1), EventFlags::IN)?;
    check_eq!(epolled(&set, 0)?, None, "before a change");
    counter.add(1)?;
    for _ in 0..2 {
        check_eq!(epolled(&set, 1_000_000)?, Some(EventFlags::IN));
    }
    check_eq!(fd.read()?, event(1, 0));
    check_eq!(epolled(&set, 5)?, None, "after read(2)");
    // EPOLLERR comes without being asked for.
    counter.add_err(1)?;
    let flags = epolled(&set, 1_000_000)?;
    check_eq!(flags, Some(EventFlags::IN | EventFlags::ERR));
    epoll::delete(&set, &fd)?;
    check_eq!(epolled(&set, 0)?, None, "not a member any more");

    // A descriptor that is closed leaves by itself.
    epoll::add(&set, &fd, EventData::new_u64(1), EventFlags::IN)?;
    drop(fd);
    counter.add(1)?;
    check_eq!(epolled(&set, 5)?, None, "after close");
    Ok(())
}

fn epoll_edge(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(&set, &fd, EventData::new_u64(1), flags)?;
    for value in 1..=3 {
        counter.add(1)?;
        let flags = epolled(&set, 1_000_000)?;
        check_eq!(flags, Some(EventFlags::IN), "change {value}");
        check_eq!(epolled(&set, 5)?, None, "the same change again");
    }
    Ok(())
}

/// An epoll instance looks only at the first of its descriptors that are ready, so that nobody looks at the second
/// one when it has changed. Those behind the instance are told of each change all the same, though not at once.
fn epoll_edge_not_looked_at(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (first, second) = (rig.counter()?, rig.counter()?);
    let fds = [first.wait_fd()?, second.wait_fd()?];
    let (inner, outer) = (
        epoll::create(CreateFlags::CLOEXEC)?,
        epoll::create(CreateFlags::CLOEXEC)?,
    );
    for fd in &fds {
        epoll::add(&inner, fd, EventData::new_u64(1), EventFlags::IN)?;
    }
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(&outer, &inner, EventData::new_u64(1), flags)?;
    first.add(1)?;
    check_eq!(
        epolled(&outer, 20_000)?,
        Some(EventFlags::IN),
        "the first one"
    );
    for value in 1..=5 {
        second.add(1)?;
        let flags = epolled(&outer, 20_000)?;
        check_eq!(
            flags,
            Some(EventFlags::IN),
            "change {value} of the second one"
        );
    }
    Ok(())
}

type Change = fn(&kfi::Counter) -> kfi::Result<()>;

fn every_change(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(10)?;
    let fd = counter.wait_fd()?;
    let changes: [(&str, Change); 8] = [
        ("add", |c| c.add(1)),
        ("set up", |c| c.set(100)),
        ("set down", |c| c.set(0)),
        ("wrap", |c| c.add(u64::MAX)),
        ("adderr", |c| c.add_err(2)),
        ("seterr up", |c| c.set_err(10)),
        ("seterr down", |c| c.set_err(1)),
        ("there and back", |c| {
            c.add(1).and_then(|()| c.add(u64::MAX))
        }),
    ];
    for (name, change) in changes {
        check_eq!(polled(&fd)?, NONE, "before {name}");
        change(&counter)?;
        let ready = polled_for(&fd, Duration::from_secs(1000))?;
        check!(ready.contains(PollFlags::IN), "no change seen: {name}");
        check_eq!(
            fd.read()?,
            event(counter.read()?, counter.read_err()?),
            "after {name}"
        );
    }
    Ok(())
}

fn error_condition(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set_err(5)?;
    let fd = counter.wait_fd()?;
    let both = PollFlags::IN | PollFlags::ERR;
    check_eq!(polled(&fd)?, NONE, "an error before the descriptor");
    counter.add(1)?;
    check_eq!(polled(&fd)?, PollFlags::IN, "a success");
    counter.add_err(1)?;
    check_eq!(polled(&fd)?, both, "an error");
    check_eq!(fd.read()?, event(1, 6));
    check_eq!(polled(&fd)?, NONE, "after read(2)");

    // It is the value that counts: where it was before, there is no error
    // condition, but a change there was.
    counter.add_err(1)?;
    check_eq!(polled(&fd)?, both, "another error");
    counter.set_err(6)?;
    check_eq!(polled(&fd)?, PollFlags::IN, "the error value set back");
    check_eq!(fd.read()?, event(1, 6));
    counter.set_err(0)?;
    check_eq!(polled(&fd)?, both, "the error value lowered");
    Ok(())
}

fn read_consumes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd_nonblock()?;
    // Several changes are one event, with the values as they are now.
    for _ in 0..10 {
        counter.add(2)?;
    }
    check_eq!(fd.read()?, event(20, 0));
    expect_os(fd.read(), Errno::AGAIN)?;
    counter.add(1)?;
    check_eq!(fd.read()?, event(21, 0));
    expect_os(fd.read(), Errno::AGAIN)?;
    // The event is whole or not at all.
    counter.add(1)?;
    for length in [1, 8, 15] {
        let mut short = vec![0xaa; length];
        let result = rustix::io::read(&fd, &mut short);
        check!(
            result == Err(Errno::INVAL),
            "read of {length} bytes: {result:?}"
        );
    }
    check_eq!(fd.read()?, event(22, 0), "after reads that were too short");
    // A larger buffer is filled as far as there is something.
    counter.add(1)?;
    let mut long = [0xaa; 40];
    check_eq!(rustix::io::read(&fd, &mut long)?, 16);
    check_eq!(long[16..], [0xaa; 24], "behind the event");
    check_eq!(long[..8], 23_u64.to_ne_bytes());
    Ok(())
}

fn read_nonblocking(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd_nonblock()?;
    expect_os(fd.read(), Errno::AGAIN)?;
    counter.add(0)?;
    counter.add_err(3)?;
    check_eq!(fd.read()?, event(0, 3));
    expect_os(fd.read(), Errno::AGAIN)
}

/// Runs read(2) in a thread and, when that sleeps, something else.
fn read_asleep(
    fd: &WaitFd,
    wake: impl FnOnce(rustix::process::Pid) -> Outcome,
) -> Result<kfi::Result<WaitEvent>, Stop> {
    let me = rustix::process::getpid();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let _ = tx.send(thread::id());
            fd.read()
        });
        let tid = rx.recv()?;
        check!(thread::until_asleep(me, tid)?, "read(2) does not sleep");
        wake(tid)?;
        reader.join().map_err(|_| Stop::fail("the reader panicked"))
    })
}

fn read_sleeps(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let read = read_asleep(&fd, |_| Ok(counter.add(4)?))?;
    check_eq!(read, Ok(event(4, 0)));
    let read = read_asleep(&fd, |_| Ok(counter.add_err(1)?))?;
    check_eq!(read, Ok(event(4, 1)));
    Ok(())
}

fn read_interrupted(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    signal::count(Signal::USR1, false)?;
    let read = read_asleep(&fd, |tid| {
        signal::send_to_thread(tid, Signal::USR1)?;
        Ok(())
    })?;
    expect_os(read, Errno::INTR)?;
    // Nothing is lost by that.
    check_eq!(polled(&fd)?, NONE);
    counter.add(1)?;
    check_eq!(fd.read()?, event(1, 0));
    Ok(())
}

fn several(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let one = counter.wait_fd()?;
    counter.add(1)?;
    let two = counter.wait_fd()?;
    check_eq!(polled(&one)?, PollFlags::IN);
    check_eq!(polled(&two)?, NONE, "made after the change");
    counter.add(1)?;
    check_eq!(polled(&two)?, PollFlags::IN);
    check_eq!(one.read()?, event(2, 0));
    check_eq!(polled(&one)?, NONE);
    check_eq!(polled(&two)?, PollFlags::IN, "after reading the other");
    check_eq!(two.read()?, event(2, 0));
    // And another counter is none of theirs.
    rig.counter()?.add(1)?;
    check_eq!(polled(&one)?, NONE);
    Ok(())
}

fn beside_waiters(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let waiter = Waiter::asleep(&counter, 5, -1)?;
    let read = read_asleep(&fd, |_| Ok(counter.add(2)?))?;
    check_eq!(read, Ok(event(2, 0)));
    check!(waiter.sleeps()?, "2 is enough for 5");
    counter.add(3)?;
    waiter.join()?.expect_ok()?;
    check_eq!(polled(&fd)?, PollFlags::IN);
    // With a descriptor open a wait times out as ever.
    expect_fabric(counter.wait_ms(6, 3), KfiErrno::ETIMEDOUT)
}

fn dup(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let one = counter.wait_fd()?;
    let two = one.try_clone()?;
    counter.add(1)?;
    check_eq!(polled(&one)?, PollFlags::IN);
    check_eq!(polled(&two)?, PollFlags::IN);
    check_eq!(two.read()?, event(1, 0));
    check_eq!(polled(&one)?, NONE, "after reading the copy");
    drop(one);
    counter.add(1)?;
    check_eq!(two.read()?, event(2, 0), "after closing the first");

    let session = rig.session.clone();
    expect_busy(session.close_handle(counter.handle()))?;
    drop(two);
    session.close_handle(counter.handle())?;
    Ok(())
}

fn fork(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let fd = counter.wait_fd()?;
    let mut child = process::fork(|| match fd.read() {
        Ok(read) => i32::from(read != event(6, 0)),
        Err(_) => 2,
    })?;
    check!(
        thread::until_asleep(child.pid(), child.pid())?,
        "the child's read(2) does not sleep"
    );
    counter.add(6)?;
    check_eq!(child.wait()?, Status::Exited(0), "read(2) in the child");
    check_eq!(polled(&fd)?, NONE, "the child has read");
    Ok(())
}

fn passed(env: &Env) -> Outcome {
    // A process that has nothing but the descriptor it is sent.
    let (ours, theirs) = UnixStream::pair()?;
    let mut receiver = process::fork(move || {
        let receive = || -> Result<bool, Stop> {
            let fd = receive_fd(&theirs)?;
            Ok(WaitFd::from(fd).read()? == event(3, 1))
        };
        i32::from(!receive().unwrap_or(false))
    })?;

    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set_err(1)?;
    let fd = counter.wait_fd()?;
    send_fd(&ours, &fd)?;
    drop(fd);
    // On its way or there, the descriptor is open.
    expect_busy(rig.session.close_handle(counter.handle()))?;
    check!(
        thread::until_asleep(receiver.pid(), receiver.pid())?,
        "the receiver does not sleep"
    );
    counter.add(3)?;
    check_eq!(receiver.wait()?, Status::Exited(0), "the receiver");
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Sends a descriptor.
pub(super) fn send_fd(socket: &UnixStream, fd: &impl AsFd) -> Outcome {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    check!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let data = [IoSlice::new(b"x")];
    rustix::net::sendmsg(socket, &data, &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives a descriptor.
pub(super) fn receive_fd(socket: &UnixStream) -> Result<OwnedFd, Stop> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    fd.ok_or_else(|| Stop::fail("no descriptor came"))
}

fn closed_on_exec(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let fd = rig.counter()?.wait_fd()?;
    let flags = rustix::io::fcntl_getfd(&fd)?;
    check_eq!(flags, rustix::io::FdFlags::CLOEXEC);
    check!(fd.as_fd().as_raw_fd() > 2, "a standard descriptor");
    Ok(())
}

fn counter_is_busy(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let handle = counter.handle();
    let (one, two) = (counter.wait_fd()?, counter.wait_fd()?);
    expect_busy(rig.session.close_handle(handle))?;
    drop(one);
    expect_busy(rig.session.close_handle(handle))?;
    // A close that is refused has no effect.
    counter.add(1)?;
    check_eq!(polled(&two)?, PollFlags::IN);
    expect_busy(rig.session.close_handle(rig.domain.handle()))?;
    drop(two);
    unshare(counter)?.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn session_closed_first(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(4)?;
    let fd = counter.wait_fd()?.into_fd();
    let blocking = WaitFd::from(fd);
    let nonblocking = WaitFd::from(counter.wait_fd_nonblock()?.into_fd());
    counter.add(1)?;

    // From here on the handles are nobody's, and the last of the session goes.
    unshare(counter)?.into_handle();
    let Rig {
        domain,
        fabric,
        info,
        session,
    } = rig;
    domain.into_handle();
    fabric.into_handle();
    info.into_handle();
    drop(session);

    // The counter lives.
    check_eq!(polled(&blocking)?, PollFlags::IN);
    check_eq!(blocking.read()?, event(5, 0));
    check_eq!(nonblocking.read()?, event(5, 0));
    expect_os(nonblocking.read(), Errno::AGAIN)?;
    // Nobody can change it any more: a reader sleeps, and can be interrupted.
    signal::count(Signal::USR1, false)?;
    let read = read_asleep(&blocking, |tid| {
        signal::send_to_thread(tid, Signal::USR1)?;
        Ok(())
    })?;
    expect_os(read, Errno::INTR)?;
    drop(blocking);
    expect_os(nonblocking.read(), Errno::AGAIN)?;
    drop(nonblocking);
    // All that was open is free again.
    let again = Rig::new(env)?;
    again.counter()?.add(1)?;
    again.close()
}

/// A reader that polls and reads sees the last value, whenever it comes.
fn nothing_lost(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let back = rig.counter()?;
    let fd = counter.wait_fd()?;
    let rounds = env.scaled(5_000, 300);

    let reads = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        let mut reads = 0_u64;
        if thread == 0 {
            for round in 1..=rounds {
                // Some in a row, then wait until the reader has seen the last.
                for _ in 0..=round % 4 {
                    counter.add(1)?;
                }
                let value = counter.read()?;
                back.wait_ms(value, -1)?;
            }
            counter.add_err(1)?;
            return Ok(0);
        }
        loop {
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            rustix::event::poll(&mut fds, None)?;
            let event = fd.read()?;
            reads += 1;
            back.set(event.value)?;
            if event.error_value > 0 {
                return Ok(reads);
            }
        }
    })?;
    env.note(format!("{rounds} rounds, {} reads", reads[1]));
    Ok(())
}

/// How long a thread waits for what must come, in microseconds.
const LONG: i64 = 20_000_000;

/// An instance of epoll that watches something.
fn watching(fds: &[impl AsFd], flags: EventFlags) -> Result<OwnedFd, Stop> {
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    for fd in fds {
        epoll::add(&set, fd, EventData::new_u64(1), flags)?;
    }
    Ok(set)
}

/// A line about times: the smallest, the one in the middle and the largest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let (middle, last) = (times.len() / 2, times.len().saturating_sub(1));
    format!("{:?} {:?} {:?}", at(0), at(middle), at(last))
}

/// Very many wait for a change: how long it takes whoever makes it, and that all are told. The kernel allows
/// 500 ways from a file through two epoll instances, and any number through one.
fn nested_epolls(env: &Env) -> Outcome {
    const DESCRIPTORS: usize = 64;
    const INNER: usize = 16;
    const OUTER: usize = 30;
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let mut fds = Vec::new();
    for _ in 0..DESCRIPTORS {
        fds.push(counter.wait_fd_nonblock()?);
    }
    // From the outside, as each addition looks at all that is inside.
    let mut inner = Vec::new();
    let mut outer = Vec::new();
    for _ in 0..INNER {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        for _ in 0..OUTER {
            outer.push(watching(&[&set], EventFlags::IN)?);
        }
        inner.push(set);
    }
    for set in &inner {
        for fd in &fds {
            epoll::add(set, fd, EventData::new_u64(1), EventFlags::IN)?;
        }
    }

    pin(0)?;
    let mut unwatched = Vec::new();
    let mut first = Vec::new();
    let mut again = Vec::new();
    let free = rig.counter()?;
    for round in 1..=env.scaled(100, 5) {
        for (counter, times) in [
            (&free, &mut unwatched),
            (&counter, &mut first),
            (&counter, &mut again),
        ] {
            let start = Instant::now();
            counter.add(1)?;
            times.push(start.elapsed());
        }
        for set in &outer {
            check_eq!(epolled(set, LONG)?, Some(EventFlags::IN), "round {round}");
        }
        for fd in &fds {
            check_eq!(fd.read()?, event(2 * round, 0));
        }
        for set in outer.iter().chain(&inner) {
            check_eq!(epolled(set, 0)?, None, "read, in round {round}");
        }
    }
    env.note(format!("an unwatched change: {}", spread(unwatched)));
    env.note(format!("a watched change: {}", spread(first)));
    env.note(format!("another one: {}", spread(again)));
    Ok(())
}

/// Many objects change at once, more than those of a user of which those who wait are woken at the same time:
/// each of them is told of.
fn many_objects(env: &Env) -> Outcome {
    const COUNT: usize = 100;
    let rig = Rig::new(env)?;
    let back = rig.counter()?;
    let counters = (0..COUNT)
        .map(|_| rig.counter())
        .collect::<Result<Vec<_>, _>>()?;
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    let mut fds = Vec::new();
    for (index, counter) in counters.iter().enumerate() {
        let fd = counter.wait_fd_nonblock()?;
        let data = EventData::new_u64(index as u64);
        epoll::add(&set, &fd, data, EventFlags::IN | EventFlags::ET)?;
        fds.push(fd);
    }
    let rounds = env.scaled(300, 20);
    let waits = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        if thread == 0 {
            for round in 1..=rounds {
                for counter in &counters {
                    counter.add(1)?;
                }
                back.wait_ms(round, 20_000)?;
            }
            return Ok(0);
        }
        let mut waits = 0_u64;
        let mut seen = [0; COUNT];
        for round in 1..=rounds {
            while seen.iter().any(|&value| value < round) {
                let mut events = [MaybeUninit::uninit(); COUNT];
                let timeout = Timespec {
                    tv_sec: 20,
                    tv_nsec: 0,
                };
                let (events, _) = epoll::wait(&set, &mut events, Some(&timeout))?;
                let missing = seen.iter().filter(|&&value| value < round).count();
                check!(!events.is_empty(), "{missing} changes are lost");
                waits += 1;
                for event in events {
                    let index = event.data.u64() as usize;
                    match fds[index].read() {
                        Ok(event) => seen[index] = event.value,
                        // Told of twice.
                        Err(kfi::Error::Os(Errno::AGAIN)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            back.set(round)?;
        }
        Ok(waits)
    })?;
    env.note(format!(
        "{rounds} rounds, {} waits for {COUNT} objects",
        waits[1]
    ));
    Ok(())
}

/// Many objects change whose descriptors nobody looks at: those who might wait are told later, and of so many
/// objects nothing is in the work queue but what has its turn, and what asks for the turns.
fn unwatched_objects(env: &Env) -> Outcome {
    const COUNT: usize = 500;
    const TURNS: usize = 4;
    let tracing = Tracing::new("workqueue")?;
    let rig = Rig::new(env)?;
    let mut counters = Vec::new();
    let mut fds = Vec::new();
    for _ in 0..COUNT {
        let counter = rig.counter()?;
        fds.push(counter.wait_fd_nonblock()?);
        counters.push(counter);
    }
    for counter in &counters {
        counter.add(1)?;
    }
    // Items that were queued and are yet to begin, by their addresses.
    let mut queued = HashSet::new();
    let (mut begun, mut most) = (0, 0);
    let is_queued = |line: &&String| line.contains("workqueue=kfi_shim_wakes ");
    until(|| Ok(tracing.so_far()?.iter().filter(is_queued).count() >= COUNT))?;
    for line in tracing.so_far()? {
        let item = |before| {
            let (_, rest) = line.split_once(before)?;
            rest.split([' ', ':']).next().map(str::to_owned)
        };
        if is_queued(&&line) {
            queued.extend(item("work struct="));
            most = most.max(queued.len());
        } else if line.contains("workqueue_execute_start:") {
            begun += usize::from(item("work struct ").is_some_and(|item| queued.remove(&item)));
        }
    }
    env.note(format!("{begun} items, {most} of them waiting at once"));
    check!(most <= TURNS + 1, "{most} items wait at once");
    for fd in &fds {
        check_eq!(fd.read()?, event(1, 0));
    }
    drop(fds);
    drop(counters);
    rig.close()
}

/// How a thread waits for changes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Poll,
    Read,
    /// By epoll instances behind each other, so many, with these flags.
    Epoll(usize, EventFlags),
    /// The same, and the descriptor is read by nobody.
    Unread(usize, EventFlags),
}

/// Waits for the changes of a counter until there is an end, and says what it has seen.
fn watch(
    way: Way,
    fd: &WaitFd,
    counter: &kfi::Counter,
    back: &kfi::Counter,
    end: &AtomicBool,
    mut rng: SmallRng,
) -> Result<u64, Stop> {
    let mut sets = Vec::new();
    if let Way::Epoll(depth, flags) | Way::Unread(depth, flags) = way {
        for _ in 0..depth {
            sets.push(match sets.last() {
                None => watching(&[fd], flags)?,
                Some(set) => watching(&[set], flags)?,
            });
        }
    }
    let mut waits = 0;
    loop {
        // What looks does not have to be what waits.
        for _ in 0..rng.random_range(0..3) {
            polled(fd)?;
        }
        match way {
            Way::Poll => {
                let ready = polled_for(fd, Duration::from_secs(20))?;
                check!(ready.contains(PollFlags::IN), "poll: a change is lost");
            }
            Way::Read => {}
            Way::Epoll(..) | Way::Unread(..) => {
                for (level, set) in sets.iter().rev().enumerate() {
                    let time = if level == 0 { LONG } else { 0 };
                    let ready = epolled(set, time)?;
                    // Those behind it may have told of the same change before.
                    check!(ready.is_some() || level > 0, "{way:?}: a change is lost");
                }
            }
        }
        waits += 1;
        let value = if matches!(way, Way::Unread(..)) {
            counter.read()?
        } else {
            match fd.read() {
                Ok(event) => event.value,
                Err(kfi::Error::Os(Errno::AGAIN)) => continue,
                Err(error) => return Err(error.into()),
            }
        };
        back.set(value)?;
        // Set before the last change, which may be what it was that came.
        if end.load(Ordering::Acquire) {
            return Ok(waits);
        }
    }
}

/// Many ways to wait at once, directly and behind epoll instances, level- and edge-triggered: none misses
/// the last of several changes, however often others look.
fn nested_nothing_lost(env: &Env) -> Outcome {
    let level = EventFlags::IN;
    let edge = EventFlags::IN | EventFlags::ET;
    let ways = [
        Way::Poll,
        Way::Read,
        Way::Epoll(1, level),
        Way::Epoll(1, edge),
        Way::Epoll(3, level),
        Way::Epoll(3, edge),
        Way::Unread(1, edge),
        Way::Unread(1, edge),
    ];
    lose_nothing(env, &ways)?;
    // Those who wait for a few descriptors are woken elsewhere.
    lose_nothing(env, &[Way::Poll, Way::Read])?;
    lose_nothing(env, &[Way::Poll, Way::Epoll(1, edge), Way::Epoll(2, level)])
}

/// Lets each of several threads wait in its way for the changes that another one makes. Those that do not
/// read share a descriptor.
fn lose_nothing(env: &Env, ways: &[Way]) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let mut shared = Vec::new();
    for way in ways {
        let fd = match way {
            Way::Read => counter.wait_fd()?,
            _ => counter.wait_fd_nonblock()?,
        };
        shared.push((fd, rig.counter()?));
    }
    let is_unread = |way: &Way| matches!(way, Way::Unread(..));
    let unread = ways.iter().position(is_unread).unwrap_or(ways.len());
    let fd_of = |index: usize| &shared[index.min(unread)].0;
    let rounds = env.scaled(3_000, 200);
    let end = AtomicBool::new(false);
    let slow = Duration::from_millis(8);

    let counts = in_threads(0..=ways.len() + 1, |thread| {
        pin(thread)?;
        let mut rng = SmallRng::seed_from_u64(env.settings.seed ^ thread as u64);
        if let Some(&way) = ways.get(thread) {
            let back = &shared[thread].1;
            return watch(way, fd_of(thread), &counter, back, &end, rng);
        }
        if thread == ways.len() {
            // Looks at all, and waits for none.
            let mut looks = 0;
            while !end.load(Ordering::Acquire) {
                polled(fd_of(rng.random_range(0..ways.len())))?;
                looks += 1;
                if looks % 64 == 0 {
                    std::thread::sleep(Duration::from_micros(rng.random_range(0..500)));
                }
            }
            return Ok(looks);
        }
        let mut change = || {
            let mut slow_rounds = 0;
            for _ in 0..rounds {
                for _ in 0..rng.random_range(1..4) {
                    counter.add(1)?;
                    for _ in 0..rng.random_range(0..300) {
                        std::hint::spin_loop();
                    }
                }
                let value = counter.read()?;
                let start = Instant::now();
                for (_, back) in &shared {
                    back.wait_ms(value, 20_000)?;
                }
                slow_rounds += u64::from(start.elapsed() > slow);
            }
            Ok(slow_rounds)
        };
        let result = change();
        end.store(true, Ordering::Release);
        counter.add(1)?;
        result
    })?;
    let (watched, rest) = counts.split_at(ways.len());
    env.note(format!(
        "{rounds} rounds, {} of more than {slow:?}; waits: {watched:?}; {} looks",
        rest[1], rest[0]
    ));
    Ok(())
}
