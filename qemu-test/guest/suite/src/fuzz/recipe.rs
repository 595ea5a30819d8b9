// SPDX-License-Identifier: GPL-2.0

//! Names of sequences that were made of others: everything there is to say to make one again.

use std::fmt;
use std::str::FromStr;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::generate::{Generator, Step};
use super::mutate::mutate;
use super::replay::{read_kept, write_kept};
use super::text::{Entry, Name, MAX_STEPS};

/// Steps behind the stage in a sequence that begins with nothing.
const MOST_NEW: usize = 40;

/// The origin of a sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Nothing: the generator's, of this seed.
    New(u64),
    /// It is one that is kept.
    Entry(Name),
    /// One that is kept, changed as the seed says, perhaps with pieces of another one.
    Mutant(Name, Name, u64),
}

/// A sequence: `new+SEED`, `NAME` or `NAME+NAME+SEED`, with `/KEPT` behind it if it is a part of
/// that: the numbers of the steps that are kept, such as `0-4,17`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recipe {
    /// Where it begins.
    pub source: Source,
    /// All, or the steps with these numbers.
    pub kept: Option<Vec<usize>>,
}

impl Recipe {
    /// All of it.
    pub fn new(source: Source) -> Self {
        Self { source, kept: None }
    }

    /// A part of it.
    #[must_use]
    pub fn keep(&self, numbers: &[usize]) -> Self {
        Self {
            source: self.source,
            kept: Some(numbers.to_vec()),
        }
    }

    /// The steps, if all that it is made of is among these entries.
    pub fn steps(&self, entries: &[Entry]) -> Option<Vec<Step>> {
        let named = |name: Name| entries.iter().find(|entry| entry.name == name);
        let steps = match self.source {
            Source::New(seed) => begin(seed),
            Source::Entry(name) => named(name)?.steps.clone(),
            Source::Mutant(parent, mate, seed) => {
                mutate(&named(parent)?.steps, &named(mate)?.steps, seed)
            }
        };
        Some(match &self.kept {
            Some(kept) => only(&steps, kept),
            None => steps,
        })
    }
}

/// The steps with these numbers.
pub(super) fn only(steps: &[Step], kept: &[usize]) -> Vec<Step> {
    let found = kept.iter().filter_map(|number| steps.get(*number));
    found.cloned().collect()
}

/// A sequence that begins with nothing: the stage, and some steps of the generator.
fn begin(seed: u64) -> Vec<Step> {
    let mut generator = Generator::new(seed);
    let mut steps = generator.stage();
    let more = SmallRng::seed_from_u64(seed).random_range(1..=MOST_NEW);
    steps.extend((0..more).map(|_| generator.step()));
    steps.truncate(MAX_STEPS);
    steps
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::New(seed) => write!(f, "new+{seed}")?,
            Source::Entry(name) => write!(f, "{name}")?,
            Source::Mutant(parent, mate, seed) => write!(f, "{parent}+{mate}+{seed}")?,
        }
        match &self.kept {
            Some(kept) => write_kept(f, kept),
            None => Ok(()),
        }
    }
}

impl FromStr for Recipe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("{text}: not new+SEED, NAME or NAME+NAME+SEED");
        let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
        let (made, kept) = match text.split_once('/') {
            Some((made, kept)) => (made, Some(kept)),
            None => (text, None),
        };
        let parts: Vec<&str> = made.split('+').collect();
        let source = match parts[..] {
            ["new", seed] => Source::New(number(seed)?),
            [name] => Source::Entry(name.parse()?),
            [parent, mate, seed] => Source::Mutant(parent.parse()?, mate.parse()?, number(seed)?),
            _ => return Err(bad()),
        };
        let kept = match kept {
            Some(kept) => Some(read_kept(kept, MAX_STEPS).ok_or_else(bad)?),
            None => None,
        };
        Ok(Self { source, kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "0123456789abcdef";

    #[test]
    fn there_and_back() {
        for text in [
            "new+7",
            NAME,
            "0123456789abcdef+00000000000000ff+77",
            "0123456789abcdef+00000000000000ff+77/0-3,9",
            "new+7/3",
        ] {
            let recipe: Recipe = text.parse().unwrap();
            assert_eq!(recipe.to_string(), text);
        }
        for text in [
            "",
            "new",
            "new+x",
            "7",
            "new+7/x",
            "new+7/0-99999999999",
            "a+b+1",
        ] {
            assert!(text.parse::<Recipe>().is_err(), "{text}");
        }
    }

    #[test]
    fn it_says_it_all() {
        let new = |seed| Recipe::new(Source::New(seed));
        assert_eq!(new(7).steps(&[]), new(7).steps(&[]));
        assert_ne!(new(7).steps(&[]), new(8).steps(&[]));
        let part = new(7).keep(&[0, 2]).steps(&[]).unwrap();
        let all = new(7).steps(&[]).unwrap();
        assert_eq!(part, [all[0].clone(), all[2].clone()]);

        let entries: Vec<Entry> = (0..2)
            .map(|seed| Entry::new(new(seed).steps(&[]).unwrap()).unwrap())
            .collect();
        let (first, second) = (entries[0].name, entries[1].name);
        let own = Recipe::new(Source::Entry(second));
        assert_eq!(own.steps(&entries).as_ref(), Some(&entries[1].steps));
        let mutant = |seed| Recipe::new(Source::Mutant(first, second, seed)).steps(&entries);
        assert!(mutant(1).is_some());
        assert_eq!(mutant(1), mutant(1));
        assert_ne!(mutant(1), mutant(2));
        assert_eq!(own.steps(&entries[..1]), None);
    }
}
