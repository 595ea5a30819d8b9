// SPDX-License-Identifier: GPL-2.0

//! Names of rounds: everything there is to say to run one again.

use std::fmt;
use std::str::FromStr;

/// Most steps that a round may be asked for.
const MAX_STEPS: usize = 1_000_000;

/// A round, `SEED/STEPS/PROCESSES` or, if it is a part of one,
/// `SEED/STEPS/PROCESSES/KEPT`: the numbers of the steps that are kept, such as
/// `0-4,17`. Those of the second process follow those of the first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replay {
    /// Of the generator.
    pub seed: u64,
    /// Of each process.
    pub steps: usize,
    /// 1 or 2.
    pub processes: usize,
    /// All, or those with these numbers.
    pub kept: Option<Vec<usize>>,
}

impl Replay {
    /// A whole round.
    pub fn new(seed: u64, steps: usize, processes: usize) -> Self {
        Self {
            seed,
            steps,
            processes,
            kept: None,
        }
    }

    /// The numbers of its steps.
    pub fn numbers(&self) -> Vec<usize> {
        let all = || (0..self.steps * self.processes).collect();
        self.kept.clone().unwrap_or_else(all)
    }

    /// A part of the round.
    #[must_use]
    pub fn keep(&self, numbers: &[usize]) -> Self {
        Self {
            kept: Some(numbers.to_vec()),
            ..self.clone()
        }
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.seed, self.steps, self.processes)?;
        match &self.kept {
            Some(kept) => write_kept(f, kept),
            None => Ok(()),
        }
    }
}

/// Writes the numbers of the steps that are kept: `/0-4,17`.
pub(super) fn write_kept(f: &mut fmt::Formatter<'_>, kept: &[usize]) -> fmt::Result {
    let mut separator = '/';
    let mut rest = kept;
    while let Some(&first) = rest.first() {
        let length = rest
            .iter()
            .zip(first..)
            .take_while(|(a, b)| **a == *b)
            .count();
        write!(f, "{separator}{first}")?;
        if length > 1 {
            write!(f, "-{}", first + length - 1)?;
        }
        separator = ',';
        rest = &rest[length..];
    }
    Ok(())
}

/// Reads such numbers, all of them below `count`.
pub(super) fn read_kept(text: &str, count: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last >= count {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("{text}: not SEED/STEPS/PROCESSES or SEED/STEPS/PROCESSES/KEPT");
        let number = |text: &str| text.parse::<usize>().map_err(|_| bad());
        let parts: Vec<&str> = text.split('/').collect();
        let (seed, steps, processes, kept) = match parts[..] {
            [seed, steps, processes] => (seed, steps, processes, None),
            [seed, steps, processes, kept] => (seed, steps, processes, Some(kept)),
            _ => return Err(bad()),
        };
        let mut replay = Self::new(
            seed.parse().map_err(|_| bad())?,
            number(steps)?,
            number(processes)?,
        );
        if !(1..=2).contains(&replay.processes) || replay.steps > MAX_STEPS {
            return Err(bad());
        }
        if let Some(kept) = kept {
            let count = replay.steps * replay.processes;
            replay.kept = Some(read_kept(kept, count).ok_or_else(bad)?);
        }
        Ok(replay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["7/300/1", "7/300/2/0-4,17,20-21", "0/5/1/3", "1/1/1"] {
            let replay: Replay = text.parse().unwrap();
            assert_eq!(replay.to_string(), text);
        }
        let part = Replay::new(3, 10, 1).keep(&[1, 2, 3, 7]);
        assert_eq!(part.to_string(), "3/10/1/1-3,7");
        assert_eq!(part.numbers(), [1, 2, 3, 7]);
        assert_eq!(Replay::new(3, 2, 2).numbers(), [0, 1, 2, 3]);
    }

    #[test]
    fn bad_names() {
        for text in [
            "",
            "1",
            "1/2",
            "1/2/3",
            "1/2/0",
            "x/2/1",
            "1/2/1/2",
            "1/2/1/a",
            "1/9999999/1",
        ] {
            assert!(text.parse::<Replay>().is_err(), "{text}");
        }
    }
}
