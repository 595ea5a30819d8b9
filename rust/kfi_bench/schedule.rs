// SPDX-License-Identifier: GPL-2.0

//! In which order, and how often.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::{
    abi::{
        self,
        Case,
        Objects, //
    },
    figure::Figure, //
};

/// Measures all that is wanted and reports it. May sleep, and takes long.
///
/// Cases of one item take turns, round by round: what disturbs the machine for a while disturbs all
/// of them, and figures that are compared have met the same conditions. Of those that keep what they
/// have opened only cases of one size do.
pub(crate) fn run() -> Result {
    let mut objects = Objects::open()?;
    let rounds = abi::rounds();
    let mut next = 0;
    while let Some(first) = Case::get(next) {
        let mut figures = KVec::new();
        while let Some(case) = Case::get(next).filter(|case| case.takes_turns(first)) {
            figures.push(Figure::new(case, rounds as usize)?, GFP_KERNEL)?;
            next += 1;
        }
        for round in 0..=rounds {
            for figure in &mut figures {
                // The first round fills caches.
                figure.measure(&mut objects, round != 0)?;
            }
        }
        for figure in &mut figures {
            pr_info!("{}\n", figure.report());
        }
    }
    pr_info!("{{\"end\":true}}\n");
    Ok(())
}
