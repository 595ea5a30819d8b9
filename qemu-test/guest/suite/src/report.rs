// SPDX-License-Identifier: GPL-2.0

//! Prints results: KTAP for programs, something shorter for people.

use std::io::{self, Write};
use std::time::Duration;

/// How a test went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// As it should.
    Passed,
    /// Not so, for these reasons.
    Failed(Vec<String>),
    /// Not at all.
    Skipped(String),
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// [KTAP](https://docs.kernel.org/dev-tools/ktap.html) version 1.
    Ktap,
    /// For people.
    Human,
}

/// How many there were of each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs)]
pub struct Totals {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Prints results as they come.
#[derive(Debug)]
pub struct Report<W> {
    form: Form,
    out: W,
    number: usize,
    times: Vec<(Duration, String)>,
    /// So far.
    pub totals: Totals,
}

impl<W: Write> Report<W> {
    /// Starts a report of so many tests.
    pub fn new(form: Form, mut out: W, count: usize) -> io::Result<Self> {
        if form == Form::Ktap {
            writeln!(out, "KTAP version 1\n1..{count}")?;
        }
        out.flush()?;
        Ok(Self {
            form,
            out,
            number: 0,
            times: Vec::new(),
            totals: Totals::default(),
        })
    }

    /// A line that is no result.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        match self.form {
            Form::Ktap => writeln!(self.out, "# {text}")?,
            Form::Human => writeln!(self.out, "{text}")?,
        }
        self.out.flush()
    }

    /// The result of a test.
    pub fn result(
        &mut self,
        name: &str,
        requirements: &str,
        verdict: &Verdict,
        notes: &[String],
        time: Duration,
    ) -> io::Result<()> {
        self.number += 1;
        self.times.push((time, name.to_owned()));
        let reasons: &[String] = match verdict {
            Verdict::Passed => {
                self.totals.passed += 1;
                &[]
            }
            Verdict::Failed(reasons) => {
                self.totals.failed += 1;
                reasons
            }
            Verdict::Skipped(_) => {
                self.totals.skipped += 1;
                &[]
            }
        };
        let out = &mut self.out;
        match self.form {
            Form::Ktap => {
                // In KTAP the lines that explain a result come before it.
                for line in notes.iter().chain(reasons) {
                    writeln!(out, "# {line}")?;
                }
                let number = self.number;
                match verdict {
                    Verdict::Passed => writeln!(out, "ok {number} {name} # {requirements}")?,
                    Verdict::Failed(_) => {
                        writeln!(out, "not ok {number} {name} # {requirements}")?;
                    }
                    Verdict::Skipped(why) => writeln!(out, "ok {number} {name} # SKIP {why}")?,
                }
            }
            Form::Human => {
                let ms = time.as_millis();
                match verdict {
                    Verdict::Passed => writeln!(out, "  ok      {name}  {ms} ms")?,
                    Verdict::Failed(_) => {
                        writeln!(out, "  FAILED  {name}  {ms} ms  ({requirements})")?;
                    }
                    Verdict::Skipped(why) => writeln!(out, "  skipped {name}: {why}")?,
                }
                for line in notes {
                    writeln!(out, "            {line}")?;
                }
                for line in reasons {
                    writeln!(out, "          > {line}")?;
                }
            }
        }
        out.flush()
    }

    /// Ends a report that cannot go on.
    pub fn bail_out(&mut self, why: &str) -> io::Result<()> {
        writeln!(self.out, "Bail out! {why}")?;
        self.out.flush()
    }

    /// Tells which tests took longest, and how long it took in all.
    pub fn slowest(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let mut times = std::mem::take(&mut self.times);
        let all: Duration = times.iter().map(|(time, _)| *time).sum();
        times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (time, name) in times.iter().take(count) {
            self.remark(&format!("{:6.1} s {name}", time.as_secs_f64()))?;
        }
        self.remark(&format!("{:6.1} s in all", all.as_secs_f64()))
    }

    /// Ends the report.
    pub fn finish(&mut self) -> io::Result<()> {
        let totals = self.totals.to_string();
        self.remark(&totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(form: Form) -> String {
        let mut out = Vec::new();
        let mut report = Report::new(form, &mut out, 3).unwrap();
        let time = Duration::from_millis(12);
        let note = ["late by 3 ms".to_owned()];
        let bad = Verdict::Failed(vec!["x.rs:1: not so".to_owned()]);
        let skipped = Verdict::Skipped("no modules".to_owned());
        report
            .result("a/b", "R-A-1", &Verdict::Passed, &note, time)
            .unwrap();
        report
            .result("a/c", "R-A-2 R-A-3", &bad, &[], time)
            .unwrap();
        report.result("a/d", "R-A-4", &skipped, &[], time).unwrap();
        report.slowest(0).unwrap();
        report.finish().unwrap();
        assert_eq!(report.totals.passed, 1);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ktap() {
        assert_eq!(
            print(Form::Ktap),
            "KTAP version 1\n\
             1..3\n\
             # late by 3 ms\n\
             ok 1 a/b # R-A-1\n\
             # x.rs:1: not so\n\
             not ok 2 a/c # R-A-2 R-A-3\n\
             ok 3 a/d # SKIP no modules\n\
             # 1 passed, 1 failed, 1 skipped\n"
        );
    }

    #[test]
    fn slowest() {
        let mut out = Vec::new();
        let mut report = Report::new(Form::Ktap, &mut out, 3).unwrap();
        for (name, seconds) in [("a/b", 1), ("a/c", 20), ("a/d", 3)] {
            let time = Duration::from_secs(seconds);
            report
                .result(name, "R-A-1", &Verdict::Passed, &[], time)
                .unwrap();
        }
        report.slowest(2).unwrap();
        let text = String::from_utf8(out).unwrap();
        let tail = "#   20.0 s a/c\n#    3.0 s a/d\n#   24.0 s in all\n";
        assert!(text.ends_with(tail), "{text}");
    }

    #[test]
    fn human() {
        let text = print(Form::Human);
        assert!(text.contains("  FAILED  a/c"), "{text}");
        assert!(
            text.ends_with("\n1 passed, 1 failed, 1 skipped\n"),
            "{text}"
        );
    }
}
