// SPDX-License-Identifier: GPL-2.0

//! Figures, and files of them.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::busy::Activity;
use crate::table::number;
use crate::Error;

/// One line of a file of results, or of what a run prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// A figure.
    Figure(Figure),
    /// The last one of a run.
    End {
        /// Always true.
        end: bool,
    },
    /// Where it was measured.
    Machine(Machine),
    /// The first one of a run.
    Asked(Asked),
    /// A set that cannot be measured.
    Missing(Missing),
    /// How busy the guest was.
    Guest {
        /// Meanwhile.
        guest: Activity,
    },
    /// How the virtual machine ended.
    Status {
        /// 0 if all went well.
        status: i32,
    },
}

/// The sets and items that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The sets, or none for all.
    pub(crate) asked: Vec<String>,
    /// Words in the names of items, or none for all.
    pub(crate) items: Vec<String>,
}

impl Asked {
    /// Returns whether an item of a set was to be measured; the module decides alike.
    pub(crate) fn wants(&self, set: &str, item: &str) -> bool {
        let words = self.items.join(",");
        let mut words_wanted = words.split(',').filter(|word| !word.is_empty());
        (self.asked.is_empty() || self.asked.iter().any(|asked| asked == set))
            && (words.is_empty() || words_wanted.any(|word| item.contains(word)))
    }
}

/// A set that cannot be measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Missing {
    /// Its name.
    pub(crate) missing: String,
    /// Why.
    pub(crate) reason: String,
}

/// Where it was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// `uml` or `qemu`.
    pub(crate) vehicle: String,
    /// The processor.
    pub(crate) processor: String,
    /// How many the host has.
    pub(crate) processors: usize,
    /// How many wanted to run on the host when it began, and when it ended, on an average.
    pub(crate) load: [f64; 2],
    /// How busy the host was meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<Activity>,
    /// How busy the guest was while it measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guest: Option<Activity>,
}

impl Machine {
    /// How busy it was, in words.
    pub(crate) fn busy(&self) -> String {
        let [before, after] = self.load.map(number);
        let mut text = format!("host: load {before} to {after}");
        if let Some(host) = self.host {
            text += &format!(", {host}");
        }
        if let Some(guest) = self.guest {
            text += &format!("; guest: {guest}");
        }
        text
    }
}

/// The result of several rounds of one measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The item that was measured.
    pub(crate) item: String,
    /// Whose.
    pub(crate) design: String,
    /// How much was pending, how long a message was.
    pub(crate) size: u64,
    /// `ns` or `bytes`, per operation.
    pub(crate) unit: String,
    /// When: 0, or a higher number if it was measured again.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) pass: u32,
    /// Of each round.
    #[serde(default)]
    pub(crate) values: Vec<f64>,
    /// Of them; the module leaves it to us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) median: Option<f64>,
    /// A quarter lies below, a quarter above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quartiles: Option<[f64; 2]>,
    /// Latency of single operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) p50: Option<u64>,
    /// Latency that one in a hundred exceeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<u64>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<i32>,
}

// A reference is what the attribute above calls it with.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first(pass: &u32) -> bool {
    *pass == 0
}

impl Figure {
    /// Returns whether it is of the same as another one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is(&other.item, &other.design, other.size)
    }

    /// Returns whether it is this figure, of whatever pass.
    pub(crate) fn is(&self, item: &str, design: &str, size: u64) -> bool {
        self.item == item && self.design == design && self.size == size
    }

    /// Adds what follows from the values.
    pub(crate) fn complete(&mut self) {
        self.median = quantile(&self.values, 0.5);
        self.quartiles = quantile(&self.values, 0.25)
            .zip(quantile(&self.values, 0.75))
            .map(<[f64; 2]>::from);
    }
}

/// The value with this share of the others below it.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = share * last as f64;
    let (low, high) = (
        sorted[position.floor() as usize],
        sorted[position.ceil() as usize],
    );
    Some(low + (high - low) * position.fract())
}

/// A median with the quartiles around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of some values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            low: quantile(values, 0.25)?,
            median: quantile(values, 0.5)?,
            high: quantile(values, 0.75)?,
        })
    }

    /// How far the quartiles are apart, as a share of the median.
    pub(crate) fn relative(&self) -> f64 {
        if self.median <= 0.0 {
            return if self.high > self.low {
                f64::INFINITY
            } else {
                0.0
            };
        }
        (self.high - self.low) / self.median
    }
}

/// Of several passes the one that counts: its quartiles are the least apart, whatever its median is; of
/// several such ones the first.
pub(crate) fn steadiest<T>(
    passes: impl IntoIterator<Item = T>,
    spread: impl Fn(&T) -> Spread,
) -> Option<T> {
    passes
        .into_iter()
        .min_by(|one, other| spread(one).relative().total_cmp(&spread(other).relative()))
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Where it was measured.
    pub(crate) machine: Option<Machine>,
    /// The sets and items that were asked for.
    pub(crate) asked: Asked,
    /// Sets that cannot be measured.
    pub(crate) missing: Vec<Missing>,
    /// In the order in which they were measured.
    pub(crate) figures: Vec<Figure>,
}

impl Results {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Error::File(name.clone(), error))?;
        let mut results = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = serde_json::from_str(line)
                .map_err(|error| Error::Results(format!("{name}:{}: {error}", number + 1)))?;
            results.add(line);
        }
        Ok(results)
    }

    /// Adds what a line says.
    pub(crate) fn add(&mut self, line: Line) {
        match line {
            Line::Figure(figure) => self.figures.push(figure),
            Line::Machine(machine) => self.machine = Some(machine),
            Line::Asked(asked) => self.asked = asked,
            Line::Missing(missing) => self.missing.push(missing),
            Line::End { .. } | Line::Guest { .. } | Line::Status { .. } => {}
        }
    }

    /// All passes of a figure.
    pub(crate) fn passes<'a>(
        &'a self,
        item: &'a str,
        design: &'a str,
        size: u64,
    ) -> impl Iterator<Item = &'a Figure> {
        self.figures
            .iter()
            .filter(move |figure| figure.is(item, design, size))
    }

    /// The figure, of the pass that counts, if it was measured; one that failed if there is no other.
    pub(crate) fn get<'a>(
        &'a self,
        item: &'a str,
        design: &'a str,
        size: u64,
    ) -> Option<&'a Figure> {
        let passes = || self.passes(item, design, size);
        let measured = passes().filter_map(|figure| Some((figure, Spread::of(&figure.values)?)));
        steadiest(measured, |(_, spread)| *spread)
            .map(|(figure, _)| figure)
            .or_else(|| passes().next())
    }

    /// Each figure once, as [`Self::get`] has it, in the order in which they were measured first.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Figure> {
        self.figures
            .iter()
            .enumerate()
            .filter(|&(at, figure)| !self.figures[..at].iter().any(|other| other.is_same(figure)))
            .filter_map(|(_, figure)| self.get(&figure.item, &figure.design, figure.size))
    }

    /// The ratio of two figures, round by round: a disturbance of one of them
    /// has disturbed the other as well.
    pub(crate) fn ratio(over: &Figure, under: &Figure) -> Option<Spread> {
        let ratios: Vec<_> = over
            .values
            .iter()
            .zip(&under.values)
            .filter(|(_, &under)| under > 0.0)
            .map(|(over, under)| over / under)
            .collect();
        Spread::of(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 1.0), Some(3.0));
    }

    /// A figure of a pass.
    fn figure(pass: u32, values: &[f64]) -> Figure {
        let text = r#"{"item":"add","design":"atomic","size":0,"unit":"ns"}"#;
        let mut figure: Figure = serde_json::from_str(text).unwrap();
        figure.pass = pass;
        figure.values = values.to_vec();
        figure
    }

    #[test]
    fn the_steadiest_pass_counts() {
        let results = Results {
            figures: vec![
                figure(0, &[1.0, 2.0, 3.0]),
                figure(1, &[4.0, 5.0, 6.0]),
                // The same spread, and a lower median.
                figure(2, &[0.8, 1.0, 1.2]),
            ],
            ..Results::default()
        };
        assert_eq!(results.get("add", "atomic", 0).unwrap().pass, 1);
        assert_eq!(results.each().count(), 1);
        assert_eq!(
            results.get("add", "other", 0).map(|figure| figure.pass),
            None
        );
        // One that failed is taken if there is no other.
        let mut failed = figure(0, &[]);
        failed.error = Some(-28);
        let mut results = Results {
            figures: vec![failed],
            ..Results::default()
        };
        assert_eq!(results.get("add", "atomic", 0).unwrap().error, Some(-28));
        results.figures.push(figure(3, &[1.0]));
        assert_eq!(results.get("add", "atomic", 0).unwrap().pass, 3);
    }

    #[test]
    fn spread_is_relative() {
        let relative = |values: &[f64]| Spread::of(values).unwrap().relative();
        assert!((relative(&[9.0, 10.0, 11.0]) - 0.1).abs() < 1e-9);
        assert!(relative(&[0.0, 0.0, 0.0]).abs() < 1e-9);
        assert!(relative(&[0.0, 0.0, 0.0, 5.0]).is_infinite());
    }

    #[test]
    fn the_first_pass_has_no_number() {
        let text = serde_json::to_string(&figure(0, &[1.0])).unwrap();
        assert!(!text.contains("pass"));
        let text = serde_json::to_string(&figure(2, &[1.0])).unwrap();
        let again: Figure = serde_json::from_str(&text).unwrap();
        assert_eq!(again.pass, 2);
    }

    #[test]
    fn lines_are_told_apart() {
        let text = r#"{"item":"add","design":"atomic","size":0,"unit":"ns","values":[2.5]}"#;
        assert!(matches!(serde_json::from_str(text), Ok(Line::Figure(_))));
        assert!(matches!(
            serde_json::from_str(r#"{"end":true}"#),
            Ok(Line::End { .. })
        ));
        assert!(matches!(
            serde_json::from_str(r#"{"status":1}"#),
            Ok(Line::Status { status: 1 })
        ));
        let asked = Asked {
            asked: vec!["tcp".to_owned()],
            items: Vec::new(),
        };
        for line in [
            Line::Asked(asked.clone()),
            Line::Missing(Missing {
                missing: "mesh".to_owned(),
                reason: "none".to_owned(),
            }),
        ] {
            let mut results = Results::default();
            let text = serde_json::to_string(&line).unwrap();
            results.add(serde_json::from_str(&text).unwrap());
            assert_eq!(results.asked == asked, matches!(line, Line::Asked(_)));
            assert_eq!(
                results.missing.len(),
                usize::from(matches!(line, Line::Missing(_)))
            );
        }
    }

    #[test]
    fn items_are_asked_for_as_the_module_takes_them() {
        let asked = |sets: &[&str], items: &[&str]| Asked {
            asked: sets.iter().map(|&set| set.to_owned()).collect(),
            items: items.iter().map(|&item| item.to_owned()).collect(),
        };
        assert!(asked(&[], &[]).wants("node", "add"));
        assert!(asked(&["tcp", "node"], &["fire", "ad"]).wants("node", "add"));
        assert!(!asked(&["tcp"], &[]).wants("node", "add"));
        assert!(!asked(&[], &["fire"]).wants("node", "add"));
        assert!(asked(&[], &["", "fire,add"]).wants("node", "add"));
        assert!(asked(&[], &[""]).wants("node", "add"));
    }
}
