// SPDX-License-Identifier: GPL-2.0

//! Runs tests, each in a child process, several at a time if they may.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::panic;
use std::time::{Duration, Instant};

use kfi_host::process::{self, Child, Status};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::check::{Outcome, Stop};
use crate::env::{Env, Settings, NOTE};
use crate::kernel_log::KernelLog;
use crate::knobs;
use crate::report::{Report, Verdict};

/// A test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Group, and start of the name.
    pub area: &'static str,
    /// The rest of the name.
    pub name: &'static str,
    /// Identifiers of the requirements that it shows.
    pub requirements: &'static str,
    /// Whether others may run beside it.
    pub parallel: bool,
    /// Its function.
    pub run: fn(&Env) -> Outcome,
}

impl Test {
    /// `area/name`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}

/// Defines `TESTS`, the table of the tests of an area.
///
/// An area says `parallel` if others may run beside its tests, but for those that are marked with
/// `alone`: a test is that changes what all sessions share (modules, their parameters, knobs,
/// most of the memory), counts what there is in the kernel, or needs all CPUs for a race.
///
/// ```ignore
/// tests! {
///     "cntr" parallel;
///     "case-01-values" ["R-CNTR-3 R-CNTR-17"] values;
///     alone "case-07-threads-lose-nothing" ["R-CNTR-18"] threads_lose_nothing;
/// }
/// ```
#[macro_export]
macro_rules! tests {
    ($area:literal; $($tests:tt)*) => { $crate::tests!(@table $area false $($tests)*); };
    ($area:literal parallel; $($tests:tt)*) => { $crate::tests!(@table $area true $($tests)*); };
    (@table $area:literal $parallel:literal
     $($($alone:ident)? $name:literal [$requirements:literal] $run:path;)*) => {
        /// The tests of this area.
        pub static TESTS: &[$crate::harness::Test] = &[$(
            $crate::harness::Test {
                area: $area,
                name: $name,
                requirements: $requirements,
                parallel: $parallel $(&& $crate::tests!(@parallel $alone))?,
                run: $run,
            },
        )*];
    };
    (@parallel alone) => { false };
}

/// How to run tests.
#[derive(Clone, Debug)]
pub struct Options {
    /// Settings of the tests.
    pub settings: Settings,
    /// A test that takes longer has failed.
    pub time_limit: Duration,
    /// Whether to end with the first failure.
    pub fail_fast: bool,
    /// So many run at a time, if they may.
    pub jobs: usize,
}

/// A killed process gets this long to go: a session may have much to close. One
/// that stays hangs in the kernel.
const LAST_BREATH: Duration = Duration::from_secs(120);

/// Starts the line with the result in the pipe from the test.
const PASS: &str = "pass";
const FAIL: &str = "fail ";
const SKIP: &str = "skip ";

/// Runs tests; false if it had to stop before the end of the list.
///
/// With more than one job those that may run in parallel come first.
pub fn run<W: Write>(
    tests: &[Test],
    options: &Options,
    report: &mut Report<W>,
    log: &mut KernelLog,
) -> io::Result<bool> {
    let parallel = |test: &&Test| test.parallel && options.jobs > 1;
    let (beside, alone): (Vec<&Test>, Vec<&Test>) = tests.iter().partition(parallel);
    for (tests, jobs) in [(beside, options.jobs), (alone, 1)] {
        if let Some(why) = run_some(&tests, jobs, options, report, log)? {
            report.bail_out(&why)?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs tests, so many at a time. Gives why it had to stop before the end of the list; those that
/// ran then have ended.
fn run_some<W: Write>(
    tests: &[&Test],
    jobs: usize,
    options: &Options,
    report: &mut Report<W>,
    log: &mut KernelLog,
) -> io::Result<Option<String>> {
    let mut waiting = tests.iter();
    let mut running: Vec<Running<'_>> = Vec::new();
    let mut stop = None;
    loop {
        while stop.is_none() && running.len() < jobs {
            let Some(test) = waiting.next() else { break };
            // Complaints from before a test are not about it.
            charge(&mut running, &log.complaints());
            log.write(&test.full_name());
            running.push(Running::start(test, options)?);
        }
        if running.is_empty() {
            return Ok(stop);
        }

        let index = one_to_end(&mut running)?;
        let ending = running[index].end(options)?;
        let time = running[index].start.elapsed();
        charge(&mut running, &log.complaints());
        let ended = running.remove(index);
        let name = ended.test.full_name();
        if jobs > 1 {
            log.write(&format!("{name} has ended"));
        }

        let mut verdict = ending.verdict;
        if !ended.complaints.is_empty() {
            let mut reasons = match verdict {
                Verdict::Failed(reasons) => reasons,
                _ => Vec::new(),
            };
            reasons.extend(ended.complaints);
            verdict = Verdict::Failed(reasons);
        }
        report.result(
            &name,
            ended.test.requirements,
            &verdict,
            &ended.output.notes,
            time,
        )?;

        if let Some(pid) = ending.survivor {
            let pid = pid.as_raw_nonzero();
            stop = Some(format!("{name}: process {pid} is killed and does not end"));
        } else if options.fail_fast && matches!(verdict, Verdict::Failed(_)) {
            stop = stop.or_else(|| Some("this was the first failure".to_owned()));
        }
    }
}

/// A complaint of the kernel is a failure of every test that runs.
fn charge(running: &mut [Running<'_>], complaints: &[String]) {
    if complaints.is_empty() {
        return;
    }
    let names: Vec<_> = running.iter().map(|one| one.test.full_name()).collect();
    let about = match &names[..] {
        [] | [_] => String::new(),
        _ => format!(", about one of {}", names.join(", ")),
    };
    for one in running {
        one.complaints.push(format!("the kernel complains{about}:"));
        one.complaints.extend_from_slice(complaints);
    }
}

/// A test that runs.
struct Running<'a> {
    test: &'a Test,
    start: Instant,
    /// When it has failed.
    limit: Instant,
    /// None after the end, and if it does not end.
    child: Option<Child>,
    pidfd: OwnedFd,
    output: Output,
    /// Complaints of the kernel meanwhile.
    complaints: Vec<String>,
}

/// How one run of one test ended.
struct Ending {
    verdict: Verdict,
    /// A process that cannot be killed.
    survivor: Option<Pid>,
}

impl<'a> Running<'a> {
    fn start(test: &'a Test, options: &Options) -> io::Result<Self> {
        let start = Instant::now();
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let child = process::fork(|| {
            // A group of its own, so that what it has forked can be killed with it.
            let _ = rustix::process::setpgid(None, None);
            in_child(test, options.settings.clone(), writer.into())
        })?;
        // This process' copy of the writing end went with the closure.
        Ok(Self {
            test,
            start,
            limit: start + options.time_limit,
            pidfd: rustix::process::pidfd_open(child.pid(), PidfdFlags::empty())?,
            child: Some(child),
            output: Output::new(reader.into())?,
            complaints: Vec::new(),
        })
    }

    /// Whether the process has ended.
    fn has_ended(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        Ok(process::poll_until(&mut fds, Instant::now())? > 0)
    }

    /// Ends it, if it has not ended by itself.
    fn end(&mut self, options: &Options) -> io::Result<Ending> {
        let in_time = self.has_ended()?;
        let Some(mut child) = self.child.take() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut reasons = Vec::new();
        if !in_time {
            reasons.push(format!("not done after {:?}", options.time_limit));
            reasons.extend(where_it_hangs(child.pid()));
        }
        // Also after the end of the test: whatever it has left behind.
        let _ = child.kill_group(Signal::KILL);
        let Some(status) = child.wait_for(LAST_BREATH)? else {
            let pid = child.pid();
            // Waiting for it in drop() would hang this process, too.
            std::mem::forget(child);
            return Ok(Ending {
                verdict: Verdict::Failed(reasons),
                survivor: Some(pid),
            });
        };
        self.output.read_rest()?;
        // It did not come to turn back what it has turned.
        if !self.test.parallel && (!in_time || self.output.result.is_none()) {
            knobs::all_off();
        }

        let verdict = match (in_time, self.output.result.as_deref(), status) {
            (true, Some(PASS), Status::Exited(0)) => Verdict::Passed,
            (true, Some(line), Status::Exited(0)) if line.starts_with(SKIP) => {
                Verdict::Skipped(line[SKIP.len()..].to_owned())
            }
            (_, line, status) => {
                match line.and_then(|line| line.strip_prefix(FAIL)) {
                    Some(why) => reasons.push(why.to_owned()),
                    None if in_time => reasons.push(format!("the test died: {status}")),
                    None => {}
                }
                Verdict::Failed(reasons)
            }
        };
        Ok(Ending {
            verdict,
            survivor: None,
        })
    }
}

/// Reads what tests send until one of them has ended or has to. The end of a pipe is no sign: a
/// process that the test has forked may have it.
fn one_to_end(running: &mut [Running<'_>]) -> io::Result<usize> {
    loop {
        let Some(limit) = running.iter().map(|one| one.limit).min() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        for one in &*running {
            fds.push(PollFd::new(&one.pidfd, PollFlags::IN));
            if one.output.open {
                fds.push(PollFd::new(&one.output.pipe, PollFlags::IN));
            }
        }
        process::poll_until(&mut fds, limit)?;

        let now = Instant::now();
        for (index, one) in running.iter_mut().enumerate() {
            let ended = one.has_ended()?;
            one.output.read_rest()?;
            if ended || one.limit <= now {
                return Ok(index);
            }
        }
    }
}

/// The life of the child process.
fn in_child(test: &Test, settings: Settings, mut pipe: File) -> i32 {
    let Ok(notes) = pipe.try_clone() else {
        return 1;
    };
    let env = Env::new(settings, notes);

    // A panic is told by the pipe, not between the lines of the report.
    let panics = pipe.try_clone();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut pipe) = panics.as_ref() {
            for line in info.to_string().lines() {
                let _ = pipe.write_all(format!("{NOTE}{line}\n").as_bytes());
            }
        }
    }));

    let result = match panic::catch_unwind(|| (test.run)(&env)) {
        Ok(Ok(())) => PASS.to_owned(),
        Ok(Err(Stop::Fail(why))) => format!("{FAIL}{why}"),
        Ok(Err(Stop::Skip(why))) => format!("{SKIP}{why}"),
        Err(_) => format!("{FAIL}panicked"),
    };
    let line = result.replace('\n', " ") + "\n";
    i32::from(pipe.write_all(line.as_bytes()).is_err())
}

/// Messages from a test.
struct Output {
    pipe: File,
    /// Whether there may come more.
    open: bool,
    rest: Vec<u8>,
    notes: Vec<String>,
    result: Option<String>,
}

impl Output {
    fn new(pipe: File) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self {
            pipe,
            open: true,
            rest: Vec::new(),
            notes: Vec::new(),
            result: None,
        })
    }

    /// Reads what is there.
    fn read_rest(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while self.open {
            match self.pipe.read(&mut buffer) {
                Ok(0) => self.open = false,
                Ok(length) => self.take(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&b| b == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            match line.strip_prefix(NOTE) {
                Some(note) => self.notes.push(note.to_owned()),
                None => self.result = Some(line),
            }
        }
    }
}

/// The state of the threads of a process, as far as the kernel tells it.
fn where_it_hangs(pid: Pid) -> Vec<String> {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let mut lines = Vec::new();
    let Ok(tasks) = std::fs::read_dir(&folder) else {
        return lines;
    };
    for task in tasks.flatten().take(20) {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let state = kfi_host::thread::parse_state(&read("stat")).unwrap_or('?');
        let name = task.file_name();
        let (call, wchan) = (read("syscall"), read("wchan"));
        lines.push(format!(
            "  thread {}: state {state}, in {} {}",
            name.to_string_lossy(),
            if wchan.is_empty() { "?" } else { wchan.trim() },
            call.trim()
        ));
        lines.extend(read("stack").lines().map(|line| format!("    {line}")));
    }
    lines
}
