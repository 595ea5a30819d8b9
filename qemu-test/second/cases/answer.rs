// SPDX-License-Identifier: GPL-2.0

//! An address is told once: the room for it is where its length is written.

use kernel::prelude::*;

use crate::kfi::provider::Answer;

fn name(answer: Answer<'_>) -> Result {
    #[cfg(wrong)]
    {
        let _ = answer.tell(&[0; 64]);
    }
    answer.tell(&[0; 64]) //~ E0382
}

fn keep(kept: &mut Option<Answer<'static>>, answer: Answer<'_>) {
    #[cfg(wrong)]
    kept.replace(answer); //~ E0521
}
