// SPDX-License-Identifier: GPL-2.0

//! Runs sequences in a kernel that tells which code they come to: with the modules of `make
//! coverage` (`qemu-test/coverage/coverage.c`).

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::execute::{self, Ending};
use super::generate::Step;
use super::learn::{Failure, Ground, Place};
use super::recipe::Recipe;
use super::text::Entry;
use crate::check::Stop;
use crate::kernel_log::KernelLog;

/// Where the kernel tells.
const REACHED: &str = "/sys/kernel/debug/kfi_coverage/reached";
/// The most places that it tells of at a time.
const PLACES: usize = 1 << 17;
/// A line of the kernel's log has room for 1024 bytes.
const PART: usize = 800;

/// When to end.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// So long after some time.
    Time(Instant, Duration),
    /// After so many runs.
    Runs(u64),
}

/// A kernel that is watched.
#[derive(Debug)]
pub struct Watched {
    /// None if it does not tell.
    reached: Option<File>,
    buffer: Vec<u8>,
    log: KernelLog,
    until: Until,
    /// Sequences that were run.
    pub runs: u64,
    /// Requests in these.
    pub made: u64,
    /// Requests that succeeded.
    pub good: u64,
    /// Sequences that were kept.
    pub kept: u64,
}

impl Watched {
    /// This kernel.
    pub fn new(until: Until) -> Self {
        let reached = OpenOptions::new().read(true).write(true).open(REACHED).ok();
        Self {
            buffer: vec![0; if reached.is_some() { 4 * PLACES } else { 0 }],
            reached,
            log: KernelLog::open(),
            until,
            runs: 0,
            made: 0,
            good: 0,
            kept: 0,
        }
    }

    /// Whether it tells what was reached.
    pub fn tells(&self) -> bool {
        self.reached.is_some()
    }

    /// Writes a sequence into the kernel's log, in pieces: `qemu-test/corpus.py` puts them together.
    fn write(&mut self, entry: &Entry) {
        let count = entry.text.len().div_ceil(PART);
        for (number, part) in entry.text.as_bytes().chunks(PART).enumerate() {
            // It is ASCII: no letter is cut in two.
            let part = String::from_utf8_lossy(part);
            let line = format!("sequence {} {}/{count} {part}", entry.name, number + 1);
            self.log.write(&line);
        }
    }

    /// Says that a sequence of earlier runs is of no use.
    pub fn forget(&mut self, name: impl std::fmt::Display) {
        self.log.write(&format!("sequence {name} adds nothing"));
    }

    fn places(&mut self) -> Result<Vec<Place>, Stop> {
        let Some(file) = &self.reached else {
            return Ok(Vec::new());
        };
        let length = file.read_at(&mut self.buffer, 0)?;
        let words = self.buffer[..length].chunks_exact(size_of::<Place>());
        let place = |word: &[u8]| word.try_into().ok().map(Place::from_ne_bytes);
        Ok(words.filter_map(place).collect())
    }

    fn try_run(&mut self, recipe: &Recipe, steps: &[Step]) -> Result<(Ending, Vec<Place>), Stop> {
        // The log of a dead machine names the sequence that it died of.
        self.log.write(&format!("fuzz sequence {recipe}"));
        self.runs += 1;
        if let Some(file) = &self.reached {
            file.write_all_at(b"\n", 0)?;
        }
        let ending = execute::alone(steps)?;
        let places = self.places()?;
        let complaints = self.log.complaints();
        if complaints.is_empty() {
            return Ok((ending, places));
        }
        let why = format!("the kernel complains: {}", complaints.join(" | "));
        Ok((Ending::Wrong(why), places))
    }
}

impl Ground for Watched {
    fn run(&mut self, recipe: &Recipe, steps: &[Step]) -> Result<Vec<Place>, Failure> {
        match self.try_run(recipe, steps).map_err(Failure::Stop)? {
            (Ending::Fine { made, good, .. }, places) => {
                self.made += made;
                self.good += good;
                Ok(places)
            }
            (Ending::Wrong(why), _) => Err(Failure::Wrong {
                recipe: recipe.clone(),
                why,
            }),
        }
    }

    fn has_time(&self) -> bool {
        match self.until {
            Until::Time(start, time) => start.elapsed() < time,
            Until::Runs(most) => self.runs < most,
        }
    }

    fn keep(&mut self, entry: &Entry) {
        self.kept += 1;
        self.write(entry);
    }
}

/// Reads the sequences that were kept, a line each; there may be no such file. Those that cannot
/// be read any more come as why.
pub fn read_corpus(path: &Path) -> Result<(Vec<Entry>, Vec<String>), Stop> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Stop::fail(format!("{}: {error}", path.display()))),
    };
    let (mut entries, mut unread) = (Vec::new(), Vec::new());
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        match Entry::parse(line) {
            Ok(entry) => entries.push(entry),
            Err(why) => unread.push(format!("line {}: {why}", number + 1)),
        }
    }
    Ok((entries, unread))
}

#[cfg(test)]
mod tests {
    use super::super::generate::sequence;
    use super::*;

    #[test]
    fn the_corpus_is_read() {
        let (stage, _) = sequence(1, 0, 0);
        let entry = Entry::new(stage).unwrap();
        let path = std::env::temp_dir().join(format!("kfi-corpus-{}", std::process::id()));
        fs::write(&path, format!("# a remark\n\n{}\n[{{}}]\n", entry.text)).unwrap();
        let (entries, unread) = read_corpus(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(entries, [entry]);
        assert!(
            unread.len() == 1 && unread[0].starts_with("line 4: "),
            "{unread:?}"
        );
        assert_eq!(read_corpus(&path), Ok((vec![], vec![])));
    }
}
