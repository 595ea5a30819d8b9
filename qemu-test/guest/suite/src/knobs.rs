// SPDX-License-Identifier: GPL-2.0

//! Files of the kernel that change what everybody meets: faults of NICs, allocations that
//! fail, events that are traced.

use std::fs;
use std::path::{Path, PathBuf};

use crate::check::Outcome;

/// Knobs that were turned, back as they were when it is dropped, the last one first.
#[derive(Debug, Default)]
pub struct Knobs {
    saved: Vec<(PathBuf, String)>,
}

impl Knobs {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns one that shows what it takes.
    pub fn set(&mut self, knob: impl Into<PathBuf>, value: &str) -> Outcome {
        let knob = knob.into();
        let was = fs::read_to_string(&knob)?.trim().to_owned();
        self.set_until(knob, value, &was)
    }

    /// Turns one that is to be like this afterwards.
    pub fn set_until(&mut self, knob: impl Into<PathBuf>, value: &str, was: &str) -> Outcome {
        let knob = knob.into();
        fs::write(&knob, value)?;
        self.saved.push((knob, was.to_owned()));
        Ok(())
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        while let Some((knob, was)) = self.saved.pop() {
            let _ = fs::write(knob, was);
        }
    }
}

/// Turns off what a test has left on that died or was killed, as far as it would be in the way of
/// those after it.
pub fn all_off() {
    for attribute in ["failslab", "fail_page_alloc", "fail_usercopy"] {
        let folder = Path::new("/sys/kernel/debug").join(attribute);
        for (knob, value) in [("probability", "0"), ("task-filter", "N")] {
            // Not every kernel has them.
            let _ = fs::write(folder.join(knob), value);
        }
    }
    let nics = fs::read_dir("/sys/kernel/debug/kfi_soft");
    for nic in nics.into_iter().flatten().flatten() {
        let knobs = fs::read_dir(nic.path());
        for knob in knobs.into_iter().flatten().flatten() {
            if knob.file_name() != "faults" {
                let _ = fs::write(knob.path(), "off");
            }
        }
    }
}
