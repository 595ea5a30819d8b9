// SPDX-License-Identifier: GPL-2.0

//! What is to be reached: ratios within one run.

use crate::figure::{Figure, Results, Spread};

/// A figure: item, design, size.
pub(crate) type Name = (&'static str, &'static str, u64);

/// A ratio of two figures, or one figure, that is not to be exceeded.
pub(crate) struct Target {
    /// In words.
    pub(crate) what: &'static str,
    /// What is measured.
    pub(crate) over: Name,
    /// What it is divided by, if by anything.
    pub(crate) under: Option<Name>,
    /// The most it may be in user-mode Linux.
    pub(crate) most: f64,
    /// Whether QEMU has to keep to it, too; there it may be twice as much.
    pub(crate) qemu: bool,
}

const fn ratio(what: &'static str, over: Name, under: Name, most: f64, qemu: bool) -> Target {
    Target {
        what,
        over,
        under: Some(under),
        most,
        qemu,
    }
}

/// All of them.
pub(crate) const TARGETS: [Target; 12] = [
    ratio(
        "add, nothing pending / atomic add through a function pointer",
        ("add", "kfi_soft", 0),
        ("add", "atomic", 0),
        1.5,
        true,
    ),
    ratio(
        "add, 100,000 pending and not due / add, nothing pending",
        ("add", "kfi_soft", 100_000),
        ("add", "kfi_soft", 0),
        1.05,
        true,
    ),
    ratio(
        "add, two CPUs contending / atomic add, two CPUs contending",
        ("add, two CPUs", "kfi_soft", 0),
        ("add, two CPUs", "atomic", 0),
        2.0,
        false,
    ),
    ratio(
        "submit with increasing thresholds, 100,000 pending / 1,000 pending",
        ("submit increasing", "kfi_soft", 100_000),
        ("submit increasing", "kfi_soft", 1000),
        1.3,
        true,
    ),
    ratio(
        "submit with random thresholds, 100,000 pending / tree in C",
        ("submit random", "kfi_soft", 100_000),
        ("submit random", "tree irq", 100_000),
        1.5,
        true,
    ),
    ratio(
        "fire 100,000 by one add, each / tree in C",
        ("fire", "kfi_soft", 100_000),
        ("fire", "tree irq", 100_000),
        1.5,
        true,
    ),
    ratio(
        "chain of 100,000, each hop / tree in C",
        ("chain", "kfi_soft", 100_000),
        ("chain", "tree irq", 100_000),
        1.5,
        true,
    ),
    ratio(
        "cancel at random, 100,000 pending / tree in C",
        ("cancel random", "kfi_soft", 100_000),
        ("cancel random", "tree irq", 100_000),
        2.0,
        true,
    ),
    ratio(
        "add until the waiter runs, same CPU / wait queue ping-pong",
        ("wake, same CPU", "kfi_soft", 0),
        ("wake, same CPU", "wait queue", 0),
        1.15,
        true,
    ),
    ratio(
        "RMA write of 1 MiB / memcpy",
        ("bandwidth", "write", 1 << 20),
        ("bandwidth", "memcpy", 1 << 20),
        1.15,
        false,
    ),
    ratio(
        "8-byte message, post to completions read / copy and two queue operations",
        ("small transfer", "send", 8),
        ("small transfer", "bare irq", 8),
        3.0,
        true,
    ),
    Target {
        what: "memory of a pending counter operation, in bytes",
        over: ("memory, pending operation", "kfi_soft", 100_000),
        under: None,
        most: 192.0,
        qemu: false,
    },
];

impl Target {
    /// The most it may be, where the results are from.
    pub(crate) fn most_of(&self, results: &Results) -> Option<f64> {
        match &results.machine {
            Some(machine) if machine.vehicle == "qemu" => self.qemu.then_some(2.0 * self.most),
            _ => Some(self.most),
        }
    }

    /// The figures and what they say, if they were measured.
    pub(crate) fn measured<'a>(
        &self,
        results: &'a Results,
    ) -> Option<(Spread, &'a Figure, Option<&'a Figure>)> {
        let get = |(item, design, size): Name| results.get(item, design, size);
        let over = get(self.over)?;
        let Some(under) = self.under else {
            return Some((Spread::of(&over.values)?, over, None));
        };
        let under = get(under)?;
        Some((Results::ratio(over, under)?, over, Some(under)))
    }
}
