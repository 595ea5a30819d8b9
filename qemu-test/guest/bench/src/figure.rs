// SPDX-License-Identifier: GPL-2.0

//! Figures, and files of them.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

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
    /// How the virtual machine ended.
    Status {
        /// 0 if all went well.
        status: i32,
    },
}

/// What was to be measured.
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
    /// How busy the host was when it began, and when it ended.
    pub(crate) load: [f64; 2],
}

/// What several rounds of one measurement gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) item: String,
    /// Whose.
    pub(crate) design: String,
    /// How much was pending, how long a message was.
    pub(crate) size: u64,
    /// `ns` or `bytes`, per operation.
    pub(crate) unit: String,
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

impl Figure {
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
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Where it was measured.
    pub(crate) machine: Option<Machine>,
    /// What was to be measured.
    pub(crate) asked: Asked,
    /// What of that cannot be.
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
            Line::End { .. } | Line::Status { .. } => {}
        }
    }

    /// The figure, if it was measured.
    pub(crate) fn get(&self, item: &str, design: &str, size: u64) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.item == item && figure.design == design && figure.size == size)
    }

    /// The ratio of two figures, round by round: what disturbed one of them
    /// disturbed the other as well.
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
