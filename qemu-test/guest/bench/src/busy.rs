// SPDX-License-Identifier: GPL-2.0

//! How busy a machine is: with anything, the benchmarks included.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// A moment, from which on it is counted.
#[derive(Debug)]
pub(crate) struct Since {
    times: Option<Times>,
    /// Microseconds for which somebody has waited for a CPU.
    waited: Option<u64>,
    begin: Instant,
}

/// The activity between two moments, as shares of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Activity {
    /// Of the time of all CPUs: not idle, and not taken away.
    pub(crate) busy: f64,
    /// Of the time of all CPUs: taken away by the machine that this one runs in.
    pub(crate) steal: f64,
    /// Some task could run and waited for a CPU, if the kernel tells that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<f64>,
}

/// The times of all CPUs together, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    busy: u64,
    steal: u64,
    all: u64,
}

impl Times {
    /// Reads `/proc/stat`.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        // The ticks of guests, behind these, are in the first two as well.
        let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else {
            return None;
        };
        let rest = |at: usize| rest.get(at).copied().unwrap_or_default();
        let (waiting, irq, softirq, steal) = (rest(0), rest(1), rest(2), rest(3));
        let busy = user + nice + system + irq + softirq;
        Some(Self {
            busy,
            steal,
            all: busy + steal + idle + waiting,
        })
    }
}

/// Reads `/proc/pressure/cpu`.
fn parse_pressure(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

/// Part of a whole, which may be nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

impl Since {
    /// Now.
    pub(crate) fn now() -> Self {
        let read = |path| fs::read_to_string(path).ok();
        Self {
            times: read("/proc/stat").as_deref().and_then(Times::parse),
            waited: read("/proc/pressure/cpu")
                .as_deref()
                .and_then(parse_pressure),
            begin: Instant::now(),
        }
    }

    /// The activity until now, if that can be told.
    pub(crate) fn until_now(&self) -> Option<Activity> {
        let now = Self::now();
        let (before, after) = (self.times?, now.times?);
        let micros = now.begin.duration_since(self.begin).as_micros() as u64;
        Some(Activity {
            waited: self
                .waited
                .zip(now.waited)
                .map(|(before, after)| share(after.saturating_sub(before), micros).min(1.0)),
            ..between(before, after)
        })
    }
}

/// The activity between two looks at the CPUs. None of their times is sure not to go back.
fn between(before: Times, after: Times) -> Activity {
    let all = after.all.saturating_sub(before.all);
    Activity {
        busy: share(after.busy.saturating_sub(before.busy), all),
        steal: share(after.steal.saturating_sub(before.steal), all),
        waited: None,
    }
}

impl std::fmt::Display for Activity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: f64| 100.0 * share;
        write!(
            f,
            "CPUs busy {:.0} %, taken away {:.0} %",
            percent(self.busy),
            percent(self.steal)
        )?;
        match self.waited {
            Some(waited) => write!(f, ", waited for {:.0} % of the time", percent(waited)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 50 800 10 5 5 30 7 0\ncpu0 1 2 3 4\nintr 5\n";

    #[test]
    fn times_are_told_apart() {
        let times = Times::parse(BEFORE).unwrap();
        assert_eq!((times.busy, times.steal, times.all), (160, 30, 1000));
        // Old kernels have fewer columns.
        let times = Times::parse("cpu 1 2 3 4\n").unwrap();
        assert_eq!((times.busy, times.steal, times.all), (6, 0, 10));
        assert_eq!(Times::parse("cpu 1 2 3\n"), None);
        assert_eq!(Times::parse("cpu0 1 2 3 4\n"), None);
        assert_eq!(Times::parse("cpu a b c d\n"), None);
    }

    #[test]
    fn shares_are_of_what_has_gone_by() {
        let before = Times::parse(BEFORE).unwrap();
        let after = Times::parse("cpu  150 0 50 820 10 5 5 60 7 0\n").unwrap();
        let busy = between(before, after);
        assert!((busy.busy - 0.5).abs() < 1e-9);
        assert!((busy.steal - 0.3).abs() < 1e-9);
        assert_eq!(between(before, before), Activity::default());
        assert_eq!(between(after, before), Activity::default());
        let busy = Activity {
            waited: Some(0.125),
            ..busy
        };
        assert_eq!(
            busy.to_string(),
            "CPUs busy 50 %, taken away 30 %, waited for 12 % of the time"
        );
    }

    #[test]
    fn pressure_is_a_number() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=5\n";
        assert_eq!(parse_pressure(text), Some(1234));
        assert_eq!(parse_pressure("full total=5\n"), None);
    }

    #[test]
    fn this_machine_tells() {
        assert!(Since::now().until_now().is_some());
    }
}
