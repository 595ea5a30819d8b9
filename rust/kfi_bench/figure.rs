// SPDX-License-Identifier: GPL-2.0

//! The summary of several rounds.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*, //
};

use crate::abi::{
    Case,
    Objects,
    Sample, //
};

/// Latencies that are kept of all rounds of a case.
const LATENCIES: usize = 1 << 16;

/// The rounds of a case.
pub(crate) struct Figure {
    case: Case,
    /// The cost of an operation in each round, in thousandths of the unit and in the order of
    /// rounds, so that those of several figures can be compared round by round.
    values: KVec<u64>,
    latencies: KVVec<u32>,
    /// The error that a round failed with.
    failed: Option<Error>,
}

impl Figure {
    /// Begins a figure.
    pub(crate) fn new(case: Case, rounds: usize) -> Result<Self> {
        Ok(Self {
            case,
            values: KVec::with_capacity(rounds, GFP_KERNEL)?,
            latencies: KVVec::with_capacity(LATENCIES, GFP_KERNEL)?,
            failed: None,
        })
    }

    /// Measures a round, which counts unless it is a warm-up.
    pub(crate) fn measure(&mut self, objects: &mut Objects, counts: bool) -> Result {
        if self.failed.is_some() {
            return Ok(());
        }
        let before = self.latencies.len();
        match self.case.run(objects, &mut self.latencies) {
            Err(error) => self.failed = Some(error),
            Ok(sample) if counts => self.values.push(per_operation(&sample), GFP_KERNEL)?,
            Ok(_) => self.latencies.truncate(before),
        }
        Ok(())
    }

    /// Returns the figure for people and programs.
    pub(crate) fn report(&mut self) -> Report<'_> {
        self.latencies.sort_unstable();
        Report(self)
    }
}

/// Returns what an operation took, in thousandths.
fn per_operation(sample: &Sample) -> u64 {
    sample
        .total
        .saturating_mul(1000)
        .checked_div(sample.count)
        .unwrap_or(0)
}

/// Returns the value below which `percent` of 100 of the others lie.
fn quantile(sorted: &[u32], percent: usize) -> Option<u32> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent + 50) / 100).copied()
}

/// Thousandths as a decimal number.
struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{}.{:03}", self.0 / 1000, self.0 % 1000))
    }
}

/// A figure as a line of JSON. The texts in it need no escapes.
pub(crate) struct Report<'a>(&'a Figure);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure {
            case,
            values,
            latencies,
            failed,
        } = self.0;
        f.write_fmt(fmt!(
            "{{\"item\":\"{}\",\"design\":\"{}\",\"size\":{},\"unit\":\"{}\"",
            case.item(),
            case.design(),
            case.size(),
            case.unit(),
        ))?;
        if let Some(error) = failed {
            return f.write_fmt(fmt!(",\"error\":{}}}", error.to_errno()));
        }
        f.write_str(",\"values\":[")?;
        for (round, value) in values.iter().enumerate() {
            let comma = if round == 0 { "" } else { "," };
            f.write_fmt(fmt!("{}{}", comma, Thousandths(*value)))?;
        }
        f.write_str("]")?;
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            if let Some(latency) = quantile(latencies, percent) {
                f.write_fmt(fmt!(",\"{}\":{}", name, latency))?;
            }
        }
        f.write_str("}")
    }
}
