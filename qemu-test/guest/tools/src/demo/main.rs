// SPDX-License-Identifier: GPL-2.0

//! `kfi-demo`: counters and transfers of kfabric, step by step, for somebody who
//! watches.
//!
//! Every statement that is printed has been checked before: one that does not
//! hold ends the demonstration with an error.

// The documentation of the arguments is the text of --help.
#![allow(clippy::doc_markdown)]

mod narrator;
mod sleeper;
mod transfer;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use kfi::{CntrAttr, Counter, Domain, Error, Fabric, InfoList, KfiErrno, Query, Session, WaitObj};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::narrator::{ms, name, Demo, Narrator, Wrong};
use crate::sleeper::Sleeper;

/// Show what kfabric does, step by step
///
/// Two processes, one counter: one sleeps until the counter has reached a
/// threshold, the other one adds. Then what a timeout, an error, a mistake and
/// poll(2) look like. Two endpoints, one message, and a chain of messages that
/// trigger each other. And closing. It takes about two seconds and a loaded
/// kfi_shim.ko and provider.
///
/// Exit status: 0 if all was as it is said.
#[derive(Debug, Parser)]
#[command(name = "kfi-demo", version)]
struct Arguments {
    /// Take the provider of this name, not the first one
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,
}

/// Long enough to be seen, and short enough not to bore.
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            // With the transcript, where the reader looks.
            let _ = writeln!(io::stdout(), "\nThis is not as it should be: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Demo {
    let mut tell = Narrator::new();
    let session = Session::open().map_err(|error| {
        let device = kfi::DEVICE;
        Wrong::new(format!("{device}: {error}; are the modules loaded?"))
    })?;
    let version = session.version()?;
    tell.block(format!("kfabric {}, by {}", version.api, kfi::DEVICE))?;

    let info = discovery(&mut tell, &session, arguments)?;
    let fabric = info.fabric(0)?;
    let domain = fabric.domain(&info, 0)?;
    let counter = domain.counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?;

    threshold(&mut tell, &counter)?;
    timeout(&mut tell, &counter)?;
    error(&mut tell, &counter)?;
    mistakes(&mut tell, &session, &domain)?;
    polling(&mut tell, &counter)?;
    transfer::show(&mut tell, &session, arguments.provider.as_deref())?;
    closing(&mut tell, &session, counter, domain, fabric, info)?;
    tell.end()
}

fn discovery(
    tell: &mut Narrator,
    session: &Session,
    arguments: &Arguments,
) -> Result<InfoList, Wrong> {
    tell.chapter("What there is: kfi_getinfo")?;
    let query = match &arguments.provider {
        Some(name) => Query::new().provider(name),
        None => Query::new(),
    };
    let info = session.getinfo(&query)?;
    let first = info
        .entries()
        .first()
        .ok_or_else(|| Wrong::new("success, but no entry"))?;
    for entry in info.entries() {
        tell.block(entry.short())?;
    }
    tell.line(format!(
        "The first one it is: a fabric, a domain on {}, a counter.",
        first.domain_attr.name
    ))?;
    Ok(info)
}

fn threshold(tell: &mut Narrator, counter: &Counter) -> Demo {
    tell.chapter("One process sleeps until the counter has reached 5, another one adds")?;
    let mut sleeper = Sleeper::start(counter, 5, -1)?;
    let me = std::process::id();
    let them = sleeper.pid();
    tell.line(format!(
        "process {them}: kfi_cntr_wait(5), no timeout ... and is asleep"
    ))?;
    for step in [2, 2] {
        tell.pause(PAUSE)?;
        counter.add(step)?;
        let value = counter.read()?;
        sleeper.must_sleep()?;
        tell.line(format!(
            "process {me}: kfi_cntr_add({step}), the counter reads {value}; {them} is asleep"
        ))?;
    }
    let value = counter.read()?;
    tell.check(value == 4, format_args!("the counter reads {value}, not 4"))?;
    tell.pause(PAUSE)?;
    counter.add(1)?;
    tell.line(format!("process {me}: kfi_cntr_add(1)"))?;

    let report = sleeper.wake()?;
    tell.check(report.result == 0, format_args!("result {}", report.result))?;
    tell.check(report.value >= 5, format_args!("awake at {}", report.value))?;
    tell.check(
        report.slept >= 3 * PAUSE,
        format_args!("slept {} only", ms(report.slept)),
    )?;
    tell.line(format!(
        "process {them}: awake with result 0 after {}, the counter reads {}",
        ms(report.slept),
        report.value
    ))?;
    Ok(())
}

fn timeout(tell: &mut Narrator, counter: &Counter) -> Demo {
    tell.chapter("A wait that nobody ends: a timeout")?;
    let before = (counter.read()?, counter.read_err()?);
    let asked = Duration::from_millis(150);
    let start = Instant::now();
    let result = counter.wait(100, Some(asked));
    let took = start.elapsed();
    tell.fabric_error(result, KfiErrno::ETIMEDOUT)?;
    tell.check(
        took >= asked,
        format_args!("over after {}, before its time", ms(took)),
    )?;
    tell.line(format!(
        "kfi_cntr_wait(100, 150 ms) = {}",
        name(KfiErrno::ETIMEDOUT)
    ))?;
    tell.line(format!("150 ms were asked for, {} have passed", ms(took)))?;
    let after = (counter.read()?, counter.read_err()?);
    tell.check(before == after, "the timeout has changed the counter")?;
    tell.line(format!(
        "the counter is what it was: {} successes, {} errors",
        after.0, after.1
    ))?;
    Ok(())
}

fn error(tell: &mut Narrator, counter: &Counter) -> Demo {
    tell.chapter("An operation fails: whoever waits is told")?;
    let value = counter.read()?;
    let mut sleeper = Sleeper::start(counter, 100, -1)?;
    let them = sleeper.pid();
    tell.line(format!(
        "process {them}: kfi_cntr_wait(100), no timeout ... and is asleep"
    ))?;
    tell.pause(PAUSE)?;
    counter.add_err(1)?;
    tell.line(format!(
        "process {}: kfi_cntr_adderr(1)",
        std::process::id()
    ))?;
    let report = sleeper.wake()?;
    let errno = KfiErrno::new(report.result);
    tell.check(
        errno == KfiErrno::EAVAIL,
        format_args!("result {errno}, not {}", KfiErrno::EAVAIL),
    )?;
    tell.line(format!(
        "process {them}: awake with {} after {}",
        name(errno),
        ms(report.slept)
    ))?;
    let errors = counter.read_err()?;
    tell.check(errors == 1, format_args!("the error value is {errors}"))?;
    tell.check(
        counter.read()? == value,
        "the error has changed the success value",
    )?;
    tell.line(format!(
        "kfi_cntr_readerr() = {errors}, kfi_cntr_read() = {value}: errors are counted apart"
    ))?;
    Ok(())
}

fn mistakes(tell: &mut Narrator, session: &Session, domain: &Domain) -> Demo {
    tell.chapter("Mistakes, and their answers")?;
    let result = domain.counter(&CntrAttr::new().flags(1));
    tell.fabric_error(result.map(drop), KfiErrno::EINVAL)?;
    tell.line(format!(
        "kfi_cntr_open with a flag that nobody knows = {}",
        name(KfiErrno::EINVAL)
    ))?;

    let silent = domain.counter(&CntrAttr::new().wait_obj(WaitObj::NONE))?;
    tell.fabric_error(silent.wait(1, None), KfiErrno::EINVAL)?;
    tell.line(format!(
        "kfi_cntr_wait on a counter without wait object = {}",
        name(KfiErrno::EINVAL)
    ))?;

    let handle = silent.handle();
    silent.close().map_err(|(_, error)| error)?;
    tell.check(
        session.close_handle(handle) == Err(Error::Os(Errno::BADF)),
        "a closed handle is not EBADF",
    )?;
    tell.line("the handle of an object that was closed: EBADF")?;

    tell.check(
        session.ioctl_without_argument(0xff) == Err(Errno::NOTTY),
        "an unknown request is not ENOTTY",
    )?;
    tell.line("a request that there is not: ENOTTY")?;
    Ok(())
}

fn polling(tell: &mut Narrator, counter: &Counter) -> Demo {
    tell.chapter("The counter as a descriptor: poll(2)")?;
    let fd = counter.wait_fd_nonblock()?;
    tell.check(polled(&fd)?.is_empty(), "readable before any change")?;
    tell.line("a wait descriptor of the counter: poll says nothing yet")?;

    counter.add(10)?;
    let events = polled(&fd)?;
    tell.check(
        events == PollFlags::IN,
        format_args!("poll says {events:?}"),
    )?;
    let event = fd.read()?;
    tell.check(
        event.value == counter.read()? && event.error_value == counter.read_err()?,
        format_args!("read gives {event:?}"),
    )?;
    tell.line(format!(
        "kfi_cntr_add(10): poll says POLLIN, read gives {} successes, {} error",
        event.value, event.error_value
    ))?;
    tell.check(polled(&fd)?.is_empty(), "readable after it was read")?;
    tell.check(
        fd.read() == Err(Error::Os(Errno::AGAIN)),
        "a second read finds something",
    )?;
    tell.line("which ends it: poll says nothing, read would wait")?;

    counter.add_err(1)?;
    let events = polled(&fd)?;
    tell.check(
        events == PollFlags::IN | PollFlags::ERR,
        format_args!("poll says {events:?}"),
    )?;
    tell.line("kfi_cntr_adderr(1): poll says POLLIN and POLLERR")?;
    Ok(())
}

fn polled(fd: &impl AsFd) -> Result<PollFlags, Wrong> {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    kfi_host::process::poll_until(&mut fds, Instant::now())?;
    Ok(fds[0].revents())
}

fn closing(
    tell: &mut Narrator,
    session: &Session,
    counter: Counter,
    domain: Domain,
    fabric: Fabric,
    info: InfoList,
) -> Demo {
    tell.chapter("The end: dependents first")?;
    let result = session.close_handle(domain.handle());
    tell.fabric_error(result, KfiErrno::EBUSY)?;
    tell.line(format!(
        "the domain, with a counter open: {}",
        name(KfiErrno::EBUSY)
    ))?;
    // The refusal has left no trace.
    counter.add(1)?;
    counter.close().map_err(|(_, error)| error)?;
    domain.close().map_err(|(_, error)| error)?;
    fabric.close().map_err(|(_, error)| error)?;
    info.close().map_err(|(_, error)| error)?;
    tell.line("the counter, the domain, the fabric, the answer of kfi_getinfo: closed")?;
    Ok(())
}
