// SPDX-License-Identifier: GPL-2.0

//! Targets to be reached: ratios within one run.

use std::{fmt, io};

use crate::figure::{steadiest, Figure, Results, Spread};
use crate::run::Set;
use crate::table::number;

/// A figure: item, design, size.
pub(crate) type Name = (&'static str, &'static str, u64);

/// The bound that a value has to keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// Nothing: it is only told.
    Any,
    /// It is not to be more.
    Most(f64),
    /// It is not to be less.
    Least(f64),
}

impl Bound {
    /// Returns whether a value is on the wrong side of it.
    pub(crate) fn is_missed(self, value: f64) -> bool {
        match self {
            Self::Any => false,
            Self::Most(most) => value > most,
            Self::Least(least) => value < least,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("-"),
            Self::Most(most) => write!(f, "≤ {}", number(*most)),
            Self::Least(least) => write!(f, "≥ {}", number(*least)),
        }
    }
}

/// A ratio of two figures, or one figure, and what it has to keep to.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// In words.
    pub(crate) what: &'static str,
    /// The figure that is measured.
    pub(crate) over: Name,
    /// The figure that it is divided by, if by anything.
    pub(crate) under: Option<Name>,
    /// In user-mode Linux.
    pub(crate) bound: Bound,
    /// In QEMU, where all is emulated.
    pub(crate) qemu: Bound,
}

/// A ratio that is not to be more.
const fn ratio(what: &'static str, over: Name, under: Name, most: f64) -> Target {
    Target {
        what,
        over,
        under: Some(under),
        bound: Bound::Most(most),
        qemu: Bound::Any,
    }
}

impl Target {
    /// In QEMU it may be half as much again.
    const fn in_qemu_too(self) -> Self {
        match self.bound {
            Bound::Most(most) => self.in_qemu(1.5 * most),
            Bound::Least(_) | Bound::Any => self,
        }
    }

    /// In QEMU it may be so much.
    const fn in_qemu(self, most: f64) -> Self {
        Self {
            qemu: Bound::Most(most),
            ..self
        }
    }
}

/// The targets within one node.
pub(crate) const TARGETS: [Target; 13] = [
    ratio(
        "add, nothing pending / atomic add through a function pointer",
        ("add", "kfi_soft", 0),
        ("add", "atomic", 0),
        1.1,
    )
    .in_qemu_too(),
    ratio(
        "add, 100,000 pending and not due / add, nothing pending",
        ("add", "kfi_soft", 100_000),
        ("add", "kfi_soft", 0),
        1.03,
    )
    .in_qemu_too(),
    ratio(
        "add, two CPUs contending / atomic add, two CPUs contending",
        ("add, two CPUs", "kfi_soft", 0),
        ("add, two CPUs", "atomic", 0),
        1.15,
    ),
    ratio(
        "submit with increasing thresholds, 100,000 pending / 1,000 pending",
        ("submit increasing", "kfi_soft", 100_000),
        ("submit increasing", "kfi_soft", 1000),
        1.1,
    )
    .in_qemu_too(),
    ratio(
        "submit with random thresholds, 100,000 pending / tree in C",
        ("submit random", "kfi_soft", 100_000),
        ("submit random", "tree irq", 100_000),
        1.15,
    )
    .in_qemu_too(),
    ratio(
        "fire 100,000 by one add, each / tree in C",
        ("fire", "kfi_soft", 100_000),
        ("fire", "tree irq", 100_000),
        1.2,
    )
    .in_qemu_too(),
    ratio(
        "chain of 100,000, each hop / tree in C",
        ("chain", "kfi_soft", 100_000),
        ("chain", "tree irq", 100_000),
        0.75,
    )
    .in_qemu(1.5),
    ratio(
        "cancel at random, 100,000 pending / tree in C",
        ("cancel random", "kfi_soft", 100_000),
        ("cancel random", "tree irq", 100_000),
        1.2,
    )
    .in_qemu_too(),
    // The time of an operation on one CPU over that on both.
    Target {
        what: "submit and fire on two CPUs, each on counters of its own, throughput / on one CPU",
        over: ("submit and fire", "one CPU", 0),
        under: Some(("submit and fire", "two CPUs", 0)),
        bound: Bound::Least(1.7),
        qemu: Bound::Any,
    },
    ratio(
        "add until the waiter runs, same CPU / wait queue ping-pong",
        ("wake, same CPU", "kfi_soft", 0),
        ("wake, same CPU", "wait queue", 0),
        1.05,
    )
    .in_qemu_too(),
    ratio(
        "RMA write of 1 MiB / memcpy",
        ("bandwidth", "write", 1 << 20),
        ("bandwidth", "memcpy", 1 << 20),
        1.05,
    ),
    ratio(
        "8-byte message, post to completions read / copy and two queue operations",
        ("small transfer", "send", 8),
        ("small transfer", "bare irq", 8),
        2.0,
    )
    .in_qemu(5.0),
    Target {
        what: "memory of a pending counter operation, in bytes",
        over: ("memory, pending operation", "kfi_soft", 100_000),
        under: None,
        bound: Bound::Most(112.0),
        qemu: Bound::Any,
    },
];

/// The beginning of the names of items that go over TCP.
const TCP_PREFIX: &str = "TCP, ";
/// The item of a full mesh.
const MESH: &str = "TCP, mesh";

/// A full mesh: a figure that was measured of it.
const fn mesh(design: &'static str) -> Name {
    (MESH, design, 64)
}

/// The targets over TCP, between NICs of one kernel, and figures without a target. The connections
/// of a mesh are made while all NICs are at it; those of sockets one after the other.
pub(crate) const TCP_TARGETS: [Target; 8] = [
    ratio(
        "8-byte round trip / bare socket",
        ("TCP, round trip", "kfi_soft", 8),
        ("TCP, round trip", "socket", 8),
        1.4,
    ),
    ratio(
        "8-byte message, 64 under way / bare socket with one send for each",
        ("TCP, 64 under way", "send", 8),
        ("TCP, 64 under way", "socket", 8),
        0.5,
    ),
    ratio(
        "message of 1 MiB, 16 under way / bare socket",
        ("TCP, stream", "send", 1 << 20),
        ("TCP, stream", "socket", 1 << 20),
        1.15,
    ),
    ratio(
        "RMA write of 1 MiB, 16 under way / bare socket",
        ("TCP, stream", "write", 1 << 20),
        ("TCP, stream", "socket", 1 << 20),
        1.15,
    ),
    Target {
        what: "memory of an idle peer, in bytes",
        over: mesh("kfi_soft, memory"),
        under: None,
        bound: Bound::Most(65_536.0),
        qemu: Bound::Any,
    },
    Target {
        what: "memory of an idle peer / two bare sockets",
        over: mesh("kfi_soft, memory"),
        under: Some(mesh("socket, memory")),
        bound: Bound::Any,
        qemu: Bound::Any,
    },
    Target {
        what: "full mesh of 64 NICs, to set up a connection, in ns",
        over: mesh("kfi_soft"),
        under: None,
        bound: Bound::Any,
        qemu: Bound::Any,
    },
    Target {
        what: "full mesh of 64 NICs, to set up a connection / two bare sockets",
        over: mesh("kfi_soft"),
        under: Some(mesh("socket")),
        bound: Bound::Any,
        qemu: Bound::Any,
    },
];

/// If the quartiles of a row are apart by more than this share of its median, it is measured again.
pub(crate) const NOISE: f64 = 0.1;
/// So often at most.
pub(crate) const REPETITIONS: u32 = 3;

/// The figures of a row, and what follows from them.
pub(crate) struct Measured<'a> {
    /// Of the ratio, or of the figure.
    pub(crate) spread: Spread,
    /// The figure that was measured.
    pub(crate) over: &'a Figure,
    /// The figure that it is divided by.
    pub(crate) under: Option<&'a Figure>,
    /// How many passes there are of it, of which this one counts.
    pub(crate) passes: usize,
}

impl Measured<'_> {
    /// How far the quartiles are apart, in words, and how often it was measured if not once.
    pub(crate) fn steadiness(&self) -> String {
        let percent = 100.0 * self.spread.relative();
        let digits = usize::from(percent < 9.95);
        let mut text = format!("{percent:.digits$} %");
        if self.passes > 1 {
            text += &format!(", best of {}", self.passes);
        }
        text
    }
}

impl Target {
    /// The bound where the results are from.
    pub(crate) fn bound_of(&self, results: &Results) -> Bound {
        match &results.machine {
            Some(machine) if machine.vehicle == "qemu" => self.qemu,
            _ => self.bound,
        }
    }

    /// The figures, if they were measured: those of the pass that counts, which both are of,
    /// as the ratio is that of rounds in which they took turns.
    pub(crate) fn measured<'a>(&self, results: &'a Results) -> Option<Measured<'a>> {
        let passes = |(item, design, size): Name| results.passes(item, design, size);
        let measured: Vec<_> = passes(self.over)
            .filter_map(|over| {
                let Some(under) = self.under else {
                    let spread = Spread::of(&over.values)?;
                    return Some((spread, over, None));
                };
                let under = passes(under).find(|under| under.pass == over.pass)?;
                Some((Results::ratio(over, under)?, over, Some(under)))
            })
            .collect();
        let passes = measured.len();
        let (spread, over, under) = steadiest(measured, |(spread, ..)| *spread)?;
        Some(Measured {
            spread,
            over,
            under,
            passes,
        })
    }

    /// Whether it is to be measured again: it has a bound, and its rounds are far apart.
    pub(crate) fn is_unsteady(&self, results: &Results) -> bool {
        self.bound != Bound::Any
            && self
                .measured(results)
                .is_some_and(|measured| measured.spread.relative() > NOISE)
    }

    /// Its figures.
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> {
        [Some(self.over), self.under].into_iter().flatten()
    }

    /// The set whose cases it is made of.
    pub(crate) fn set(&self) -> Set {
        match self.over.0 {
            MESH => Set::Mesh,
            item if item.starts_with(TCP_PREFIX) => Set::Tcp,
            _ => Set::Node,
        }
    }

    /// Whether the run was asked for it.
    pub(crate) fn is_asked(&self, results: &Results) -> bool {
        results.asked.wants(self.set().name(), self.over.0)
    }

    /// Why it is missing in the results, if it was asked for.
    fn reason(&self, results: &Results) -> Option<String> {
        let set = self.set().name();
        if !self.is_asked(results) || self.measured(results).is_some() {
            return None;
        }
        let missing = results
            .missing
            .iter()
            .find(|missing| missing.missing == set);
        if let Some(missing) = missing {
            return Some(missing.reason.clone());
        }
        let reasons: Vec<_> = self
            .names()
            .filter_map(|(item, design, size)| {
                let name = name(item, design, size);
                let Some(figure) = results.get(item, design, size) else {
                    return Some(format!("{name}: the module has not told it"));
                };
                match figure.error {
                    Some(error) => Some(format!("{name}: {}", error_text(error))),
                    None if figure.values.is_empty() => Some(format!("{name}: no rounds")),
                    None => None,
                }
            })
            .collect();
        Some(if reasons.is_empty() {
            "no round in which both were measured".to_owned()
        } else {
            reasons.join("; ")
        })
    }
}

/// A figure in words.
fn name(item: &str, design: &str, size: u64) -> String {
    if size == 0 {
        return format!("{item}, {design}");
    }
    format!("{item}, {design}, {size}")
}

/// An error of the module in words.
fn error_text(error: i32) -> String {
    io::Error::from_raw_os_error(error.saturating_abs()).to_string()
}

/// Figures that were asked for and cannot be measured, with name and reason: rows of the tables,
/// and figures that are in none of them.
pub(crate) fn unmeasured(results: &Results) -> Vec<String> {
    let rows = TARGETS.iter().chain(&TCP_TARGETS);
    let mut texts: Vec<_> = rows
        .clone()
        .filter_map(|target| Some(format!("{}: {}", target.what, target.reason(results)?)))
        .collect();
    let in_row = |figure: &Figure| {
        rows.clone()
            .flat_map(Target::names)
            .any(|(item, design, size)| {
                figure.item == item && figure.design == design && figure.size == size
            })
    };
    for figure in &results.figures {
        if let Some(error) = figure.error.filter(|_| !in_row(figure)) {
            let name = name(&figure.item, &figure.design, figure.size);
            texts.push(format!("{name}: {}", error_text(error)));
        }
    }
    texts
}

/// The cases of the module, in C.
#[cfg(test)]
pub(crate) fn sources() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../rust/kfi_bench");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "c") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure of the first target, or what it is divided by.
    fn figure(under: bool, pass: u32, values: &[f64]) -> Figure {
        let target = &TARGETS[0];
        let (item, design, size) = target.under.filter(|_| under).unwrap_or(target.over);
        let text = format!(
            r#"{{"item":"{item}","design":"{design}","size":{size},"unit":"ns","pass":{pass},"values":{values:?}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn bounds_have_two_sides() {
        assert!(Bound::Most(1.1).is_missed(1.11) && !Bound::Most(1.1).is_missed(1.1));
        assert!(Bound::Least(1.7).is_missed(1.69) && !Bound::Least(1.7).is_missed(1.7));
        assert!(!Bound::Any.is_missed(f64::MAX));
        let texts =
            [Bound::Most(1.1), Bound::Least(1.7), Bound::Any].map(|bound| bound.to_string());
        assert_eq!(texts, ["≤ 1.10", "≥ 1.70", "-"]);
    }

    #[test]
    fn targets_of_qemu_are_its_own() {
        let mut results = Results::default();
        let bounds = |results: &Results, item: &str| {
            let target = TARGETS.iter().find(|target| target.over.0 == item);
            target.unwrap().bound_of(results).to_string()
        };
        assert_eq!(bounds(&results, "add"), "≤ 1.10");
        let line = r#"{"vehicle":"qemu","processor":"","processors":2,"load":[0.0,0.0]}"#;
        results.add(serde_json::from_str(line).unwrap());
        assert_eq!(bounds(&results, "add"), "≤ 1.65");
        assert_eq!(bounds(&results, "chain"), "≤ 1.50");
        assert_eq!(bounds(&results, "small transfer"), "≤ 5.00");
        assert_eq!(bounds(&results, "submit and fire"), "-");
        assert_eq!(bounds(&results, "memory, pending operation"), "-");
    }

    #[test]
    fn throughput_is_that_of_both_over_that_of_one() {
        let mut results = Results::default();
        for (design, value) in [("one CPU", "100.0"), ("two CPUs", "50.0")] {
            let text = format!(
                r#"{{"item":"submit and fire","design":"{design}","size":0,"unit":"ns","values":[{value}]}}"#
            );
            results.add(serde_json::from_str(&text).unwrap());
        }
        let target = TARGETS
            .iter()
            .find(|target| target.over.0 == "submit and fire");
        let measured = target.unwrap().measured(&results).unwrap();
        assert!((measured.spread.median - 2.0).abs() < 1e-9);
    }

    #[test]
    fn both_figures_of_a_row_are_of_one_pass() {
        let mut results = Results {
            figures: vec![
                figure(false, 0, &[1.0, 2.0, 3.0]),
                figure(true, 0, &[1.0, 1.0, 1.0]),
            ],
            ..Results::default()
        };
        let target = &TARGETS[0];
        assert!(target.is_unsteady(&results));
        // One of both alone, as if it were of another row.
        results.figures.push(figure(true, 1, &[1.0, 1.0, 1.0]));
        results.figures.push(figure(false, 2, &[5.0, 5.0, 5.0]));
        assert_eq!(target.measured(&results).unwrap().passes, 1);
        assert!(target.is_unsteady(&results));
        results.figures.push(figure(false, 3, &[8.0, 8.0, 8.0]));
        results.figures.push(figure(true, 3, &[2.0, 2.0, 2.0]));
        let measured = target.measured(&results).unwrap();
        assert_eq!((measured.passes, measured.over.pass), (2, 3));
        assert!((measured.spread.median - 4.0).abs() < 1e-9);
        assert_eq!(measured.steadiness(), "0.0 %, best of 2");
        assert!(!target.is_unsteady(&results));
    }

    #[test]
    fn what_has_no_bound_is_not_measured_again() {
        for target in TARGETS.iter().chain(&TCP_TARGETS) {
            assert!(!target.is_unsteady(&Results::default()));
        }
        let target = Target {
            bound: Bound::Any,
            ..TARGETS[0]
        };
        let results = Results {
            figures: vec![
                figure(false, 0, &[1.0, 2.0, 3.0]),
                figure(true, 0, &[1.0, 1.0, 1.0]),
            ],
            ..Results::default()
        };
        assert!(target.measured(&results).is_some());
        assert!(!target.is_unsteady(&results));
    }

    /// A ratio of what nobody measures would only be missing in the tables.
    #[test]
    fn figures_are_those_of_the_module() {
        let module = sources();
        for target in TARGETS.iter().chain(&TCP_TARGETS) {
            for (item, design, _) in [Some(target.over), target.under].into_iter().flatten() {
                for name in [item, design] {
                    assert!(module.contains(&format!("\"{name}\"")), "{name}");
                }
            }
        }
    }
}
