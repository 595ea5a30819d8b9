// SPDX-License-Identifier: GPL-2.0

//! Runs tests, each in a child process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::panic;
use std::time::{Duration, Instant};

use kfi_host::process::{self, Status};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::check::{Outcome, Stop};
use crate::env::{Env, Settings, NOTE};
use crate::kernel_log::KernelLog;
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
    /// What it does.
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
/// ```ignore
/// tests! {
///     "cntr";
///     "case-01-values" ["R-CNTR-3 R-CNTR-17"] values;
/// }
/// ```
#[macro_export]
macro_rules! tests {
    ($area:literal; $($name:literal [$requirements:literal] $run:path;)*) => {
        /// The tests of this area.
        pub static TESTS: &[$crate::harness::Test] = &[$(
            $crate::harness::Test {
                area: $area,
                name: $name,
                requirements: $requirements,
                run: $run,
            },
        )*];
    };
}

/// How to run tests.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the tests are told.
    pub settings: Settings,
    /// A test that takes longer has failed.
    pub time_limit: Duration,
    /// Whether to end with the first failure.
    pub fail_fast: bool,
}

/// A killed process gets this long to go: a session may have much to close. One
/// that stays hangs in the kernel.
const LAST_BREATH: Duration = Duration::from_secs(120);

/// Starts the line with the result in the pipe from the test.
const PASS: &str = "pass";
const FAIL: &str = "fail ";
const SKIP: &str = "skip ";

/// Runs tests; false if it had to stop before the end of the list.
pub fn run<W: Write>(
    tests: &[Test],
    options: &Options,
    report: &mut Report<W>,
    log: &mut KernelLog,
) -> io::Result<bool> {
    for test in tests {
        let name = test.full_name();
        log.complaints(); // What came between two tests is nobody's.
        log.write(&name);

        let start = Instant::now();
        let run = run_one(test, options)?;
        let time = start.elapsed();

        let mut verdict = run.verdict;
        let complaints = log.complaints();
        if !complaints.is_empty() {
            let mut reasons = match verdict {
                Verdict::Failed(reasons) => reasons,
                _ => Vec::new(),
            };
            reasons.push("the kernel complains:".to_owned());
            reasons.extend(complaints);
            verdict = Verdict::Failed(reasons);
        }
        report.result(&name, test.requirements, &verdict, &run.notes, time)?;

        if let Some(pid) = run.survivor {
            let pid = pid.as_raw_nonzero();
            report.bail_out(&format!("{name}: process {pid} is killed and does not end"))?;
            return Ok(false);
        }
        if options.fail_fast && matches!(verdict, Verdict::Failed(_)) {
            report.bail_out("this was the first failure")?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// What one run of one test gave.
struct Run {
    verdict: Verdict,
    notes: Vec<String>,
    /// A process that cannot be killed.
    survivor: Option<Pid>,
}

fn run_one(test: &Test, options: &Options) -> io::Result<Run> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let mut child = process::fork(|| {
        // A group of its own, so that what it has forked can be killed with it.
        let _ = rustix::process::setpgid(None, None);
        in_child(test, options.settings.clone(), writer.into())
    })?;
    // This process' copy of the writing end went with the closure.

    let mut output = Output::new(reader.into())?;
    let end = Instant::now() + options.time_limit;
    let in_time = output.read_until_exit(child.pid(), end)?;

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
        return Ok(Run {
            verdict: Verdict::Failed(reasons),
            notes: output.notes,
            survivor: Some(pid),
        });
    };
    output.read_rest()?;

    let verdict = match (in_time, output.result.as_deref(), status) {
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
    Ok(Run {
        verdict,
        notes: output.notes,
        survivor: None,
    })
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

/// What a test sends.
struct Output {
    pipe: File,
    rest: Vec<u8>,
    notes: Vec<String>,
    result: Option<String>,
}

impl Output {
    fn new(pipe: File) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self {
            pipe,
            rest: Vec::new(),
            notes: Vec::new(),
            result: None,
        })
    }

    /// Reads until the process ends; false if it does not in time. The end of
    /// the pipe is no sign: a process that the test has forked may have it.
    fn read_until_exit(&mut self, pid: Pid, end: Instant) -> io::Result<bool> {
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        let mut open = true;
        loop {
            let pipe = self.pipe.as_fd();
            let mut fds = [
                PollFd::new(&pidfd, PollFlags::IN),
                PollFd::from_borrowed_fd(pipe, PollFlags::IN),
            ];
            let watched = if open { &mut fds[..] } else { &mut fds[..1] };
            if process::poll_until(watched, end)? == 0 {
                return Ok(false);
            }
            let ended = !fds[0].revents().is_empty();
            if open {
                open = self.read_rest()?;
            }
            if ended {
                return Ok(true);
            }
        }
    }

    /// Reads what is there; false at the end of the pipe.
    fn read_rest(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(length) => self.take(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
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

/// What the threads of a process are doing, as far as the kernel tells.
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
