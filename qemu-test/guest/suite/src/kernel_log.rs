// SPDX-License-Identifier: GPL-2.0

//! The kernel's own word on a test: its log and its taint.
//!
//! The program that runs the guest reads the whole log with more knowledge of what
//! kernels say; here it is only about which test it was.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

/// Bits of /proc/sys/kernel/tainted that a test may not set: bad page, oops,
/// warning, soft lockup.
const TAINTS: [(u32, &str); 4] = [(5, "B"), (7, "D"), (9, "W"), (14, "L")];

/// Texts that start the report of a problem.
const REPORTS: [&str; 10] = [
    "BUG:",
    "BUG ",
    "WARNING:",
    "INFO: task",
    "KASAN:",
    "Oops",
    "cut here",
    "possible circular locking",
    "suspicious RCU usage",
    // Of a session that has ended.
    "object left open",
];

/// A test that provokes a report says so before, with a part of its text, and after.
const EXPECTED: &str = "# a report is expected: ";
const EXPECTED_END: &str = "# a report was expected";

/// The taint that is set by a report of nothing worse: warning.
const WARNED: u64 = 1 << 9;

/// Data races of the kernel itself, at boot and with a timer's interrupt.
const OWN_RACES: [&str; 4] = [
    "KCSAN: data-race in calibrate_APIC_clock",
    "KCSAN: data-race in do_nanosleep",
    "KCSAN: data-race in hrtimer_wakeup",
    "KCSAN: data-race in tick_nohz_",
];

/// So many lines of a report are shown.
const LINES: usize = 25;

/// Watches the kernel from one test to the next.
#[derive(Debug)]
pub struct KernelLog {
    file: Option<fs::File>,
    taint: u64,
    /// Records were overwritten before they were read.
    lost: bool,
}

/// The results that a module in C has printed, as KTAP.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Results {
    planned: usize,
    good: usize,
    bad: usize,
    /// Of those that are good.
    skipped: usize,
    bailed_out: bool,
    /// Lines that failed tests printed before their results.
    reasons: Vec<String>,
}

/// The lines that are kept of a test that failed: its last ones.
const REASON_LINES: usize = 20;

impl Results {
    /// The results among some lines of the log; several plans one after the other are one.
    pub fn in_lines(lines: &[String]) -> Self {
        let mut results = Self::default();
        // Since the result before.
        let mut said = 0;
        for (at, line) in lines.iter().enumerate() {
            if let Some(count) = line
                .strip_prefix("1..")
                .and_then(|n| n.parse::<usize>().ok())
            {
                results.planned += count;
            } else if line.starts_with("ok ") {
                said = at + 1;
                results.good += 1;
                results.skipped += usize::from(line.contains(" # SKIP"));
            } else if line.starts_with("not ok ") {
                let from = said.max(at.saturating_sub(REASON_LINES));
                results.reasons.extend_from_slice(&lines[from..=at]);
                said = at + 1;
                results.bad += 1;
            } else if line.starts_with("Bail out!") {
                results.bailed_out = true;
            }
        }
        results
    }

    /// Whether something was planned, and all of it is there and good.
    pub fn are_good(&self) -> bool {
        let complete = self.planned > 0 && self.good + self.bad == self.planned;
        complete && self.bad == 0 && !self.bailed_out
    }

    /// Lines that failed tests printed, each before its result.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Whether nothing was tested.
    pub fn are_all_skipped(&self) -> bool {
        self.skipped == self.planned
    }
}

impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            planned,
            good,
            bad,
            skipped,
            bailed_out,
            reasons: _,
        } = self;
        let end = if *bailed_out {
            ", and it bailed out"
        } else {
            ""
        };
        write!(
            f,
            "of {planned} results {good} are ok, {skipped} of them skipped, and {bad} are not{end}"
        )
    }
}

impl KernelLog {
    /// Starts with what comes next.
    pub fn open() -> Self {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/kmsg", flags, Mode::empty())
            .and_then(|fd: OwnedFd| {
                rustix::fs::seek(&fd, rustix::fs::SeekFrom::End(0))?;
                Ok(fs::File::from(fd))
            })
            .ok();
        Self {
            file,
            taint: read_taint(),
            lost: false,
        }
    }

    /// Whether lines were lost so far, as there was no room for them until they were read.
    pub fn has_lost(&self) -> bool {
        self.lost
    }

    /// Whether the log can be read.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a line, so that a reader of the log knows which test it was.
    pub fn write(&mut self, text: &str) {
        use std::io::Write;
        if let Some(file) = &mut self.file {
            let _ = file.write_all(format!("kfi-suite: {text}\n").as_bytes());
        }
    }

    /// The lines since the last call.
    pub fn read(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(file) = &mut self.file else {
            return lines;
        };
        // One read is one record.
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(0) => return lines,
                Ok(length) => lines.extend(message(&record[..length])),
                // EPIPE: records were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.lost = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return lines,
            }
        }
    }

    /// Complaints of the kernel since the last call; none is good.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut lines = self.read();
        let (provoked, missing) = take_expected(&mut lines);
        let mut complaints = complaints_in(&lines);
        complaints.extend(missing);

        let taint = read_taint();
        let mut new = taint & !self.taint;
        if provoked {
            new &= !WARNED;
        }
        self.taint = taint;
        for (bit, letter) in TAINTS {
            if new & (1 << bit) != 0 {
                complaints.push(format!("the kernel is tainted: {letter}"));
            }
        }
        complaints
    }
}

/// Takes the reports away that were expected. Gives whether there was one, and those that have
/// not come.
fn take_expected(lines: &mut Vec<String>) -> (bool, Vec<String>) {
    let (mut provoked, mut missing) = (false, Vec::new());
    // The expected text, and whether it was seen.
    let mut expected: Option<(String, bool)> = None;
    lines.retain(|line| {
        if let Some((_, text)) = line.split_once(EXPECTED) {
            expected = Some((text.to_owned(), false));
            return false;
        }
        if line.contains(EXPECTED_END) {
            match expected.take() {
                Some((_, true)) => provoked = true,
                Some((text, false)) => missing.push(format!("expected and not seen: {text}")),
                None => {}
            }
            return false;
        }
        match &mut expected {
            Some((text, seen)) => {
                *seen |= line.contains(text.as_str());
                false
            }
            None => true,
        }
    });
    (provoked, missing)
}

fn complaints_in(lines: &[String]) -> Vec<String> {
    let is_report = |line: &String| {
        !line.starts_with("kfi-suite:")
            && REPORTS.iter().any(|report| line.contains(report))
            && !OWN_RACES.iter().any(|race| line.contains(race))
    };
    match lines.iter().position(is_report) {
        Some(first) => lines[first..].iter().take(LINES).cloned().collect(),
        None => Vec::new(),
    }
}

/// The text of a record `6,1234,5678,-;text`, without lines that follow.
fn message(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (_, text) = record.split_once(';')?;
    text.lines().next().map(str::to_owned)
}

fn read_taint() -> u64 {
    fs::read_to_string("/proc/sys/kernel/tainted")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        assert_eq!(
            message(b"4,900,123456,-;kfi_soft: a; b\n SUBSYSTEM=x\n").as_deref(),
            Some("kfi_soft: a; b")
        );
        assert_eq!(message(b"nothing"), None);
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn expected_reports_have_to_come() {
        let start = "module: # a report is expected: BUG: sleeping";
        let mut log = lines(&["a", start, "BUG: sleeping here", EXPECTED_END, "b"]);
        assert_eq!(take_expected(&mut log), (true, vec![]));
        assert_eq!(log, ["a", "b"]);
        let mut log = lines(&[start, "x", EXPECTED_END, "BUG: sleeping here"]);
        let (provoked, missing) = take_expected(&mut log);
        assert!(!provoked && missing.len() == 1);
        assert_eq!(log, ["BUG: sleeping here"]);
    }

    #[test]
    fn results_that_are_missing_are_no_good_ones() {
        let log = [
            "KTAP version 1",
            "1..3",
            "ok 1 a/b # R-CNTR-3",
            "    1..7",
            "    not ok 1 of somebody else",
            "# took long",
            "ok 2 a/c # SKIP one CPU",
            "ok 3 a/d",
        ];
        let of = |texts: &[&str]| Results::in_lines(&lines(texts));
        assert!(of(&log).are_good() && !of(&log).are_all_skipped());
        // Wherever the log is cut off.
        for end in 0..log.len() {
            assert!(!of(&log[..end]).are_good(), "{end}");
        }
        // Lines that were lost, also that of the plan.
        for lost in [1, 2, 6, 7] {
            let mut log = log.to_vec();
            log.remove(lost);
            assert!(!of(&log).are_good(), "{lost}");
        }
        let with = |text| of(&[&log[..], &[text]].concat());
        assert!(!with("Bail out! nothing can be opened").are_good());
        assert!(!with("ok 4 a/e").are_good());
        // Results that are printed when the module goes.
        assert!(!with("1..1").are_good());
        let end = ["1..1", "ok 1 exit"];
        assert!(of(&[&log[..], &end].concat()).are_good());
        assert!(!of(&["1..1", "not ok 1 a"]).are_good());
        let skipped = of(&["1..1", "ok 1 a # SKIP why"]);
        assert!(skipped.are_good() && skipped.are_all_skipped());
    }

    #[test]
    fn tests_that_fail_say_why() {
        let log = [
            "1..3",
            "# good",
            "ok 1 a",
            "# bad",
            "not ok 2 b",
            "# good",
            "ok 3 c",
        ];
        let results = Results::in_lines(&lines(&log));
        assert_eq!(results.reasons(), ["# bad", "not ok 2 b"]);
        let mut log = vec!["# said"; 3 * REASON_LINES];
        log.push("not ok 1 a");
        let results = Results::in_lines(&lines(&log));
        assert_eq!(results.reasons().len(), REASON_LINES + 1);
    }

    #[test]
    fn reports_are_found() {
        assert!(complaints_in(&lines(&["usb 1-1: new", "kfi_soft: loaded"])).is_empty());
        assert!(complaints_in(&lines(&["kfi-suite: BUG: is a test's name"])).is_empty());
        let race = "BUG: KCSAN: data-race in do_nanosleep / hrtimer_wakeup";
        assert!(complaints_in(&lines(&[race])).is_empty());
        let log = lines(&["a", "WARNING: CPU: 1 PID: 2 at x", "b"]);
        assert_eq!(complaints_in(&log), log[1..]);
    }
}
