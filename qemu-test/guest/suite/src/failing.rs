// SPDX-License-Identifier: GPL-2.0

//! Allocations of the modules that fail: one after the other, or now and then; or all of pages,
//! from one on.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kfi::{Error, KfiErrno};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::knobs::Knobs;

/// Where the kernel is told.
const KNOBS: &str = "/sys/kernel/debug/failslab";
/// Where it is told of whole pages.
const PAGES: &str = "/sys/kernel/debug/fail_page_alloc";
/// Failing copies would count, too.
const COPIES: &str = "/sys/kernel/debug/fail_usercopy";
/// No request allocates so often.
pub const MANY: u32 = 3_000;
/// Frames of a back trace that are looked at: all that the kernel can.
const DEPTH: &str = "32";

/// Whose allocations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Whose {
    /// Allocations of all modules, and of the functions they call.
    Modules,
    /// Allocations of the provider.
    Provider,
    /// Allocations made while a module begins.
    Init,
    /// Allocations made while a module is loaded, but not those of reading its file, nor those of
    /// the notifiers that are told of it.
    Loading,
}

/// The answer that a request may give that has no memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// `ENOMEM`, of the system call or of kfabric.
    NoMemory,
    /// The same, or `EADDRINUSE`: what the kernel says when it has no memory to take a port.
    NoMemoryForPort,
    /// Of the system call, or `-KFI_EAGAIN`: the data path (R-TRIG-27).
    TryAgain,
    /// All of these: what is queued for later.
    NoMemoryYet,
    /// It cannot fail so.
    Never,
}

impl Answer {
    fn is(self, error: Error) -> bool {
        let no_memory = error == Error::Os(Errno::NOMEM);
        match self {
            Self::NoMemory => no_memory || error == Error::Fabric(KfiErrno::ENOMEM),
            Self::NoMemoryForPort => {
                Self::NoMemory.is(error) || error == Error::Os(Errno::ADDRINUSE)
            }
            Self::TryAgain => no_memory || error == Error::Fabric(KfiErrno::EAGAIN),
            Self::NoMemoryYet => Self::NoMemory.is(error) || Self::TryAgain.is(error),
            Self::Never => false,
        }
    }
}

/// Which allocation of a thread fails.
#[derive(Debug)]
pub struct Nth(File);

impl Nth {
    /// For the calling thread, if the kernel can.
    pub fn of_this_thread() -> Option<Self> {
        let path = "/proc/thread-self/fail-nth";
        let file = OpenOptions::new().read(true).write(true).open(path);
        file.ok().map(Self)
    }

    /// Lets the n-th allocation fail that the thread makes in the modules.
    pub fn arm(&self, nth: u32) -> Outcome {
        Ok(self.0.write_all_at(nth.to_string().as_bytes(), 0)?)
    }

    /// Whether it has come to that. From here on none fails.
    pub fn disarm(&self) -> Result<bool, Stop> {
        let mut text = [0; 16];
        let length = self.0.read_at(&mut text, 0)?;
        self.0.write_all_at(b"0", 0)?;
        Ok(text[..length] == *b"0\n")
    }
}

/// The knobs, back as they were when it is dropped.
#[derive(Debug)]
pub struct Failing {
    knobs: Knobs,
    nth: Nth,
    /// Requests that were made with every one of their allocations failing.
    pub calls: u64,
    /// Allocations that have failed.
    pub failed: u64,
}

/// The outcome of a request.
#[derive(Debug)]
pub struct Attempt<T> {
    /// The value that it returned; none if there was no memory.
    pub value: Option<T>,
    /// Whether all its allocations have failed by now.
    pub last: bool,
}

impl<T> Attempt<T> {
    /// Judges the result of a request of whose allocations some have `failed`, or none.
    #[track_caller]
    fn judge(
        result: kfi::Result<T>,
        failed: bool,
        answer: Answer,
        complaint: impl FnOnce(Error) -> String,
    ) -> Result<Self, Stop> {
        let value = match result {
            Ok(value) => Some(value),
            Err(error) if failed && answer.is(error) => None,
            Err(error) => return Err(Stop::fail(complaint(error))),
        };
        Ok(Self {
            value,
            last: !failed,
        })
    }
}

/// Where the code of a function of the kernel lies, in which modules are not.
fn text_of_function(name: &str) -> Result<(u64, u64), Stop> {
    let symbols = fs::read_to_string("/proc/kallsyms")?;
    let all: Vec<(u64, &str)> = symbols
        .lines()
        .filter_map(
            |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [address, "t" | "T", name] => Some((u64::from_str_radix(address, 16).ok()?, name)),
                _ => None,
            },
        )
        .collect();
    let start = all.iter().find(|(_, other)| *other == name);
    let &(start, _) = start.ok_or_else(|| Stop::Skip(format!("no {name} in the kernel")))?;
    let behind = all.iter().map(|(address, _)| *address);
    match behind.filter(|address| *address > start).min() {
        Some(end) if start != 0 => Ok((start, end)),
        _ => Err(Stop::Skip(format!(
            "the kernel does not tell where {name} is"
        ))),
    }
}

/// Where the code of modules lies.
fn text_of(modules: &[&str]) -> Result<(u64, u64), Stop> {
    let symbols = fs::read_to_string("/proc/kallsyms")?;
    let (mut start, mut end) = (u64::MAX, 0);
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, "t" | "T", _, module] = words[..] else {
            continue;
        };
        if modules.contains(&module.trim_matches(['[', ']'])) {
            let address = u64::from_str_radix(address, 16)?;
            start = start.min(address);
            end = end.max(address);
        }
    }
    if start >= end || start == 0 {
        return Err(Stop::Skip(
            "the kernel does not tell where modules are".to_owned(),
        ));
    }
    // The last function has a length.
    Ok((start, end + 256))
}

impl Failing {
    /// Skips the test if this kernel cannot.
    pub fn new(whose: Whose) -> Result<Self, Stop> {
        let Some(nth) = Nth::of_this_thread() else {
            return Err(Stop::Skip(
                "this kernel has no /proc/thread-self/fail-nth".to_owned(),
            ));
        };
        if !Path::new(KNOBS).join("require-start").exists() {
            return Err(Stop::Skip("failslab cannot tell who allocates".to_owned()));
        }
        let mut failing = Self {
            knobs: Knobs::new(),
            nth,
            calls: 0,
            failed: 0,
        };
        let (start, end) = match whose {
            Whose::Modules => text_of(&["kfabric", "kfi_soft", "kfi_shim"])?,
            Whose::Provider => text_of(&["kfi_soft"])?,
            Whose::Init => text_of_function("do_init_module")?,
            Whose::Loading => text_of_function("load_module")?,
        };
        let both = [
            ("probability", "0"),
            ("ignore-gfp-wait", "N"),
            ("task-filter", "N"),
            ("verbose", "0"),
            ("stacktrace-depth", DEPTH),
            ("require-start", &format!("{start:#x}")),
            ("require-end", &format!("{end:#x}")),
        ];
        for (knob, value) in both {
            failing.knobs.set(Path::new(KNOBS).join(knob), value)?;
        }
        if whose == Whose::Loading {
            // There the kernel warns of tracepoints and jump labels that it has no memory for.
            let (start, end) = text_of_function("blocking_notifier_call_chain_robust")?;
            for (knob, value) in [("reject-start", start), ("reject-end", end)] {
                failing
                    .knobs
                    .set(Path::new(KNOBS).join(knob), &format!("{value:#x}"))?;
            }
        }
        // The kernel complains of a module that it has no pages for.
        if Path::new(PAGES).exists() && whose != Whose::Loading {
            // Copies from user space, or to it, may have to bring a page in: whether that
            // succeeds is not the request's business.
            let (start, end) = text_of_function("handle_mm_fault")?;
            for (knob, value) in both.into_iter().chain([
                ("min-order", "0"),
                ("ignore-gfp-highmem", "N"),
                ("reject-start", &format!("{start:#x}")),
                ("reject-end", &format!("{end:#x}")),
            ]) {
                failing.knobs.set(Path::new(PAGES).join(knob), value)?;
            }
        }
        if Path::new(COPIES).exists() {
            // Nobody is called from here.
            for (knob, value) in [("stacktrace-depth", "0"), ("require-start", "1")] {
                failing.knobs.set(Path::new(COPIES).join(knob), value)?;
            }
        }
        Ok(failing)
    }

    /// From now on all allocations fail of threads that are marked (`make-it-fail`), and no others.
    /// Skips if this kernel cannot let both memory and pages fail.
    pub fn of_marked() -> Result<Self, Stop> {
        let nth = Nth::of_this_thread();
        let Some(nth) = nth.filter(|_| Path::new(PAGES).exists()) else {
            return Err(Stop::Skip("this kernel has no fail_page_alloc".to_owned()));
        };
        let mut failing = Self {
            knobs: Knobs::new(),
            nth,
            calls: 0,
            failed: 0,
        };
        for attribute in [KNOBS, PAGES] {
            for (knob, value) in [
                ("probability", "0"),
                ("task-filter", "Y"),
                ("ignore-gfp-wait", "N"),
                ("verbose", "0"),
                ("interval", "1"),
                ("space", "0"),
                ("times", "-1"),
            ] {
                failing.knobs.set(Path::new(attribute).join(knob), value)?;
            }
            // From anywhere in the kernel.
            let everybody = [
                ("require-start", "0"),
                ("require-end", "0xffffffffffffffff"),
            ];
            for (knob, value) in everybody {
                let knob = Path::new(attribute).join(knob);
                if knob.exists() {
                    failing.knobs.set(knob, value)?;
                }
            }
        }
        failing.knobs.set(Path::new(PAGES).join("min-order"), "0")?;
        for attribute in [KNOBS, PAGES] {
            failing
                .knobs
                .set(Path::new(attribute).join("probability"), "100")?;
        }
        Ok(failing)
    }

    /// From now on so many allocations of a hundred fail, in all threads, those of the kernel
    /// included.
    pub fn now_and_then(&mut self, percent: u32) -> Outcome {
        self.knobs.set(Path::new(KNOBS).join("times"), "-1")?;
        self.knobs.set(Path::new(KNOBS).join("interval"), "1")?;
        self.knobs
            .set(Path::new(KNOBS).join("probability"), &percent.to_string())
    }

    /// From now on all allocations fail that do not wait for memory, in all threads, those of the kernel
    /// included, and no others.
    pub fn all_at_once(&mut self) -> Outcome {
        self.knobs
            .set(Path::new(KNOBS).join("ignore-gfp-wait"), "Y")?;
        self.now_and_then(100)
    }

    /// Skips the test if this kernel cannot let pages fail. From now on they do for this thread, in
    /// [`Self::each_with_pages`].
    pub fn pages(&mut self) -> Outcome {
        if !Path::new(PAGES).exists() {
            return Err(Stop::Skip("this kernel has no fail_page_alloc".to_owned()));
        }
        for (knob, value) in [("task-filter", "Y"), ("interval", "1"), ("times", "0")] {
            self.knobs.set(Path::new(PAGES).join(knob), value)?;
        }
        self.knobs
            .set(PathBuf::from("/proc/thread-self/make-it-fail"), "1")
    }

    /// Makes a request with no more than so many pages for it, and for what it calls.
    #[track_caller]
    fn attempt_with_pages<T>(
        &mut self,
        what: &str,
        pages: u32,
        answer: Answer,
        call: impl FnOnce() -> kfi::Result<T>,
    ) -> Result<Attempt<T>, Stop> {
        const TIMES: u64 = 1_000_000;
        let knob = |name: &str| Path::new(PAGES).join(name);
        fs::write(knob("space"), (pages + 1).to_string())?;
        fs::write(knob("times"), TIMES.to_string())?;
        fs::write(knob("probability"), "100")?;
        let result = call();
        fs::write(knob("probability"), "0")?;
        let failed = TIMES - fs::read_to_string(knob("times"))?.trim().parse::<u64>()?;
        self.failed += failed;
        self.calls += u64::from(failed == 0);
        Attempt::judge(result, failed > 0, answer, |error| {
            format!("{what}: {error} with {pages} pages, where {failed} more fail")
        })
    }

    /// Makes a request with no pages for it, with one, and so on, in larger steps when there are
    /// many, until there are enough. Whenever it succeeds, the value that it has returned goes to `done`.
    #[track_caller]
    pub fn each_with_pages<T>(
        &mut self,
        what: &str,
        answer: Answer,
        mut call: impl FnMut() -> kfi::Result<T>,
        mut done: impl FnMut(T) -> Outcome,
    ) -> Outcome {
        let mut pages = 0;
        loop {
            let attempt = self.attempt_with_pages(what, pages, answer, &mut call)?;
            if let Some(value) = attempt.value {
                done(value)?;
            }
            if attempt.last {
                return Ok(());
            }
            pages += 1 + pages / 4;
            if pages > MANY {
                return Err(Stop::fail(format!("{what} has no end of pages")));
            }
        }
    }

    /// Makes a request whose n-th allocation fails.
    #[track_caller]
    pub fn attempt<T>(
        &mut self,
        what: &str,
        nth: u32,
        answer: Answer,
        call: impl FnOnce() -> kfi::Result<T>,
    ) -> Result<Attempt<T>, Stop> {
        self.nth.arm(nth)?;
        let result = call();
        let failed = self.nth.disarm()?;
        if failed {
            self.failed += 1;
        } else {
            self.calls += 1;
        }
        let attempt = Attempt::judge(result, failed, answer, |error| {
            let whether = if failed { "fails" } else { "would fail" };
            format!("{what}: {error} where allocation {nth} {whether}")
        })?;
        if nth >= MANY {
            return Err(Stop::fail(format!("{what} has no end of allocations")));
        }
        Ok(attempt)
    }

    /// Makes a request, with its first allocation failing, its second, and so on, until none
    /// fails. Whenever it succeeds, the value that it has returned goes to `done`.
    #[track_caller]
    pub fn each<T>(
        &mut self,
        what: &str,
        answer: Answer,
        mut call: impl FnMut() -> kfi::Result<T>,
        mut done: impl FnMut(T) -> Outcome,
    ) -> Outcome {
        for nth in 1.. {
            let attempt = self.attempt(what, nth, answer, &mut call)?;
            if let Some(value) = attempt.value {
                done(value)?;
            }
            if attempt.last {
                break;
            }
        }
        Ok(())
    }

    /// As [`Self::each`], for a request that needs something new each time.
    #[track_caller]
    pub fn each_of<S, T>(
        &mut self,
        what: &str,
        answer: Answer,
        mut make: impl FnMut() -> Result<S, Stop>,
        mut call: impl FnMut(&S) -> kfi::Result<T>,
        mut done: impl FnMut(S, T) -> Outcome,
    ) -> Outcome {
        let mut subject = None;
        for nth in 1.. {
            let of = match subject.take() {
                Some(of) => of,
                None => make()?,
            };
            let attempt = self.attempt(what, nth, answer, || call(&of))?;
            match attempt.value {
                Some(value) => done(of, value)?,
                // As good as new.
                None => subject = Some(of),
            }
            if attempt.last {
                break;
            }
        }
        Ok(())
    }
}
