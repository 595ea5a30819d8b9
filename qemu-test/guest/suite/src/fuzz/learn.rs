// SPDX-License-Identifier: GPL-2.0

//! Learns which sequences lead where.
//!
//! A sequence is worth as much as the places in the code that it reaches: one that comes to a
//! place where none was before is made as short as it can be and still gets there, and kept. Others
//! are made of those that are kept ([`mutate`](super::mutate::mutate)).

use std::collections::HashSet;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::generate::Step;
use super::recipe::{only, Recipe, Source};
use super::shrink::shrink;
use super::text::{Entry, Name};
use crate::check::Stop;

/// Runs to make a sequence shorter that is to be kept.
const TRIES: usize = 32;
/// Of so many sequences one begins with nothing.
const NEW: u32 = 16;

/// A place in the code, by a number of the kernel's.
pub type Place = u32;

/// Why there are no more runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// A run went wrong.
    Wrong {
        /// The sequence that was run.
        recipe: Recipe,
        /// The fault that was found.
        why: String,
    },
    /// There cannot be any.
    Stop(Stop),
}

/// Where sequences run.
pub trait Ground {
    /// Runs a sequence, and gives the places that were reached.
    fn run(&mut self, recipe: &Recipe, steps: &[Step]) -> Result<Vec<Place>, Failure>;

    /// Whether there is time for another run.
    fn has_time(&self) -> bool;

    /// Takes a sequence that is worth keeping, before another run.
    fn keep(&mut self, entry: &Entry);
}

/// Known sequences and places.
#[derive(Debug)]
pub struct Learner {
    entries: Vec<Entry>,
    /// How many sequences were made of each entry.
    made: Vec<u64>,
    reached: HashSet<Place>,
    rng: SmallRng,
    /// Sequences that came to new places which they did not come to again.
    pub chance: u64,
}

impl Learner {
    /// Nothing.
    pub fn new(seed: u64) -> Self {
        Self {
            entries: Vec::new(),
            made: Vec::new(),
            reached: HashSet::new(),
            rng: SmallRng::seed_from_u64(seed),
            chance: 0,
        }
    }

    /// The sequences that are kept.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many places were reached.
    pub fn reached(&self) -> usize {
        self.reached.len()
    }

    /// Runs sequences that were kept before, as far as there is time, the short ones first. Gives
    /// the names of those that have come to no place where others had not been, which it forgets.
    pub fn recall(
        &mut self,
        ground: &mut impl Ground,
        mut entries: Vec<Entry>,
    ) -> Result<Vec<Name>, Failure> {
        entries.sort_by_key(|entry| (entry.steps.len(), entry.name));
        let mut useless = Vec::new();
        for entry in entries {
            let mut is_new = true;
            if ground.has_time() {
                let recipe = Recipe::new(Source::Entry(entry.name));
                let places = ground.run(&recipe, &entry.steps)?;
                is_new = !self.unknown(&places).is_empty();
                self.reached.extend(places);
            }
            if is_new {
                self.add(entry);
            } else {
                useless.push(entry.name);
            }
        }
        Ok(useless)
    }

    /// Makes a sequence and runs it, and learns of it.
    pub fn explore(&mut self, ground: &mut impl Ground) -> Result<(), Failure> {
        let recipe = self.choose();
        // Made of entries, all of which are there.
        let Some(steps) = recipe.steps(&self.entries) else {
            return Ok(());
        };
        let places = ground.run(&recipe, &steps)?;
        let new = self.unknown(&places);
        if new.is_empty() || !ground.has_time() {
            return Ok(());
        }
        // Timers, works and other CPUs come to places, too.
        let again: HashSet<Place> = ground.run(&recipe, &steps)?.into_iter().collect();
        let wanted: HashSet<Place> = new.intersection(&again).copied().collect();
        self.reached.extend(places);
        if wanted.is_empty() {
            self.chance += 1;
            return Ok(());
        }
        let kept = shrink((0..steps.len()).collect(), TRIES, |kept| {
            if !ground.has_time() {
                return Ok(false);
            }
            let places = ground.run(&recipe.keep(kept), &only(&steps, kept))?;
            let places: HashSet<Place> = places.into_iter().collect();
            Ok(wanted.is_subset(&places))
        })?;
        let entry =
            Entry::new(only(&steps, &kept)).map_err(|why| Failure::Stop(Stop::Fail(why)))?;
        if !self.entries.iter().any(|known| known.name == entry.name) {
            ground.keep(&entry);
            self.add(entry);
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.made.push(0);
    }

    fn choose(&mut self) -> Recipe {
        // As short as can be typed.
        let seed = self.rng.random::<u32>().into();
        let count = self.entries.len();
        if count == 0 || self.rng.random_ratio(1, NEW) {
            return Recipe::new(Source::New(seed));
        }
        // Every other time the entry that the least was made of: all that is new has its turns at once.
        let least = (0..count).min_by_key(|index| self.made[*index]);
        let parent = match least.filter(|_| self.rng.random()) {
            Some(least) => least,
            None => self.rng.random_range(0..count),
        };
        self.made[parent] += 1;
        let parent = self.entries[parent].name;
        let mate = self.entries[self.rng.random_range(0..count)].name;
        Recipe::new(Source::Mutant(parent, mate, seed))
    }

    /// The places that were never reached before.
    fn unknown(&self, places: &[Place]) -> HashSet<Place> {
        let new = places.iter().filter(|place| !self.reached.contains(place));
        new.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate::Action;
    use super::*;

    /// Each request is a place, and others lie behind requests that have to come first.
    struct Maze {
        runs: usize,
        most: usize,
        kept: Vec<Entry>,
        /// A request that goes wrong.
        trap: Option<&'static str>,
    }

    /// The way to the last places.
    const WAY: [&str; 4] = ["CNTR_SET", "CNTR_ADD", "QUEUE_WORK", "POST"];

    impl Maze {
        fn new(most: usize) -> Self {
            Self {
                runs: 0,
                most,
                kept: Vec::new(),
                trap: None,
            }
        }
    }

    impl Ground for Maze {
        fn run(&mut self, recipe: &Recipe, steps: &[Step]) -> Result<Vec<Place>, Failure> {
            self.runs += 1;
            let mut places = vec![1];
            let mut way = 0;
            for step in steps {
                if Some(step.name) == self.trap {
                    return Err(Failure::Wrong {
                        recipe: recipe.clone(),
                        why: "a trap".to_owned(),
                    });
                }
                if let Action::Call(call) = &step.action {
                    places.push(call.request);
                }
                if step.name == WAY[way % WAY.len()] {
                    way += 1;
                    places.push(way as Place);
                }
            }
            // Something else that comes to a place of its own each time.
            places.push(0x1000_0000 + self.runs as Place);
            Ok(places)
        }

        fn has_time(&self) -> bool {
            self.runs < self.most
        }

        fn keep(&mut self, entry: &Entry) {
            self.kept.push(entry.clone());
        }
    }

    /// A ground where nothing happens beside.
    struct Quiet(Maze);
    impl Ground for Quiet {
        fn run(&mut self, recipe: &Recipe, steps: &[Step]) -> Result<Vec<Place>, Failure> {
            let mut places = self.0.run(recipe, steps)?;
            places.retain(|place| !(0x1000_0000..0x2000_0000).contains(place));
            Ok(places)
        }
        fn has_time(&self) -> bool {
            self.0.has_time()
        }
        fn keep(&mut self, entry: &Entry) {
            self.0.keep(entry);
        }
    }

    fn names(entry: &Entry) -> Vec<&'static str> {
        entry.steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn it_finds_a_way() {
        let mut maze = Maze::new(3000);
        let mut learner = Learner::new(1);
        while maze.has_time() {
            learner.explore(&mut maze).unwrap();
        }
        assert_eq!(learner.entries(), maze.kept);
        // Round and round; by chance a sequence hardly goes the way once.
        let deepest = (1..100)
            .filter(|place| learner.reached.contains(place))
            .max();
        assert!(deepest > Some(2 * WAY.len() as Place), "{deepest:?}");
        assert!(learner.chance > 0);

        // The sequences that are kept come to all of these places.
        let known: HashSet<Place> = learner.reached.iter().copied().collect();
        let mut again = Learner::new(2);
        let mut maze = Maze::new(usize::MAX);
        let useless = again.recall(&mut maze, learner.entries().to_vec()).unwrap();
        let lasting = |places: &HashSet<Place>| {
            let mut places: Vec<Place> = places.iter().copied().collect();
            places.retain(|place| !(0x1000_0000..0x2000_0000).contains(place));
            places.sort_unstable();
            places
        };
        assert_eq!(lasting(&again.reached), lasting(&known));
        assert_eq!(
            again.entries().len() + useless.len(),
            learner.entries().len()
        );
    }

    #[test]
    fn what_is_kept_is_short() {
        let mut maze = Maze::new(2000);
        let mut learner = Learner::new(3);
        // Everything was reached but one request.
        let wanted = crate::requests::REQUESTS
            .iter()
            .find(|request| request.name == "TOSTR")
            .map_or(0, |request| request.number);
        learner.reached.extend(1..100);
        let others = crate::requests::REQUESTS
            .iter()
            .map(|request| request.number);
        learner
            .reached
            .extend(others.filter(|number| *number != wanted));
        while maze.has_time() && maze.kept.is_empty() {
            learner.explore(&mut maze).unwrap();
        }
        assert_eq!(names(&maze.kept[0]), ["TOSTR"]);
    }

    #[test]
    fn what_adds_nothing_is_forgotten() {
        let recipe = |seed| Recipe::new(Source::New(seed));
        let long = Entry::new(recipe(1).steps(&[]).unwrap()).unwrap();
        let short = Entry::new(long.steps[..20].to_vec()).unwrap();
        let empty = Entry::new(Vec::new()).unwrap();

        let all = vec![long.clone(), short.clone(), short.clone(), empty.clone()];
        let mut learner = Learner::new(1);
        let useless = learner.recall(&mut Quiet(Maze::new(100)), all.clone());
        assert_eq!(useless, Ok(vec![short.name]));
        assert_eq!(learner.entries(), [empty, short, long]);
        // Nothing can be said of sequences that there is no time for.
        let mut learner = Learner::new(1);
        let useless = learner.recall(&mut Quiet(Maze::new(0)), all.clone());
        assert_eq!(useless, Ok(vec![]));
        assert_eq!(learner.entries().len(), all.len());
    }

    #[test]
    fn a_failure_names_what_was_run() {
        let mut maze = Maze::new(10_000);
        maze.trap = Some("TOSTR");
        let mut learner = Learner::new(5);
        let failure = loop {
            if let Err(failure) = learner.explore(&mut maze) {
                break failure;
            }
        };
        let Failure::Wrong { recipe, .. } = failure else {
            panic!("{failure:?}");
        };
        let steps = recipe.steps(learner.entries()).unwrap();
        assert!(steps.iter().any(|step| step.name == "TOSTR"));
        assert_eq!(recipe.to_string().parse(), Ok(recipe));
    }
}
