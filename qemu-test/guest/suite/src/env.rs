// SPDX-License-Identifier: GPL-2.0

//! A test's knowledge of its run.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::SeedableRng;

use crate::fuzz::recipe::Recipe;
use crate::fuzz::replay::Replay;

/// Settings from the command line, for all tests.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Same seed, same random numbers.
    pub seed: u64,
    /// Factor on how much a stress test does.
    pub scale: f64,
    /// Seconds that random traffic goes on for, at scale 1.
    pub soak: f64,
    /// The provider to test; the first one if none is named.
    pub provider: Option<String>,
    /// Where the modules are.
    pub modules: PathBuf,
    /// How long each fuzz test goes on; else as many rounds as the scale says.
    pub fuzz_time: Option<Duration>,
    /// The one round that fuzz tests run.
    pub replay: Option<Replay>,
    /// Where the sequences are that `fuzz/learning` has kept before.
    pub corpus: PathBuf,
    /// The one sequence that `fuzz/learning` runs.
    pub sequence: Option<Recipe>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            scale: 1.0,
            soak: 2.0,
            provider: None,
            modules: PathBuf::from("/modules"),
            fuzz_time: None,
            replay: None,
            corpus: PathBuf::from("/extra/dev_kfi.jsonl"),
            sequence: None,
        }
    }
}

/// Given to each test.
#[derive(Debug)]
pub struct Env {
    /// Of all tests.
    pub settings: Settings,
    notes: File,
}

impl Env {
    pub(crate) fn new(settings: Settings, notes: File) -> Self {
        Self { settings, notes }
    }

    /// The same with other settings.
    pub fn with(&self, settings: Settings) -> std::io::Result<Self> {
        Ok(Self {
            settings,
            notes: self.notes.try_clone()?,
        })
    }

    /// So many at scale 1, and never fewer than `least`.
    pub fn scaled(&self, count: u64, least: u64) -> u64 {
        scaled(self.settings.scale, count, least)
    }

    /// Random numbers: the same for the same seed, whatever other tests do.
    pub fn rng(&self) -> SmallRng {
        SmallRng::seed_from_u64(self.settings.seed)
    }

    /// A line of diagnostics.
    pub fn note(&self, text: impl Display) {
        for line in text.to_string().lines() {
            // If the harness is gone nobody wants to know.
            let _ = (&self.notes).write_all(format!("{NOTE}{line}\n").as_bytes());
        }
    }
}

/// Starts a line of diagnostics in the pipe to the harness.
pub(crate) const NOTE: char = '#';

fn scaled(scale: f64, count: u64, least: u64) -> u64 {
    // Both are far from where a float would not do.
    #[allow(clippy::cast_precision_loss)]
    let scaled = (count as f64 * scale) as u64;
    scaled.max(least)
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn scaling() {
        assert_eq!(scaled(1.0, 1_000_000, 1), 1_000_000);
        assert_eq!(scaled(0.1, 1_000, 1), 100);
        assert_eq!(scaled(0.0001, 1_000, 16), 16);
        assert_eq!(scaled(2.0, 10, 1), 20);
    }
}
