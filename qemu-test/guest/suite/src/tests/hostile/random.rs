// SPDX-License-Identifier: GPL-2.0

//! Noise.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::scene::{forms, write_u64, Form, Scene};
use crate::check;
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::fuzz::generate::put;
use crate::raw::{self, BAD_ADDRESSES};
use crate::requests::{self, What};
use crate::rig::{in_threads, pin};

/// Random requests: good ones with some bytes changed, and pure noise. Every
/// answer is right, as long as there is one.
fn fuzz_session(scene: &Scene, rng: &mut SmallRng, count: u64) -> Result<u64, Stop> {
    let forms: Vec<Form> = forms().collect();
    let templates: Vec<Vec<u8>> = forms
        .iter()
        .map(|form| form.make(scene))
        .collect::<Result<_, _>>()?;
    let mut accepted = 0;
    for _ in 0..count {
        let which = rng.random_range(0..forms.len());
        let mut number = forms[which].number();
        let mut argument = templates[which].clone();
        if rng.random_ratio(1, 8) {
            let size = rng.random_range(0..=2 * argument.len());
            argument.resize(size, 0);
            number = raw::resized(number, size);
        }
        if rng.random_ratio(1, 16) {
            number ^= 1 << rng.random_range(0..32);
        }
        if rng.random_ratio(1, 4) {
            rng.fill_bytes(&mut argument);
        } else if !argument.is_empty() {
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..argument.len());
                // Small numbers are handles, indices and sizes.
                argument[at] = if rng.random() {
                    rng.random()
                } else {
                    rng.random_range(0..32)
                };
            }
        }
        tame(number, &mut argument, rng);
        if raw::bytes(scene.session(), number, &mut argument).is_ok() {
            accepted += 1;
        }
    }
    Ok(accepted)
}

/// Takes out what would write to our own memory, wait for ever, or use up memory that
/// is for others, too.
fn tame(number: u32, argument: &mut Vec<u8>, rng: &mut SmallRng) {
    let Some(request) = requests::of_number(number) else {
        return;
    };
    for (offset, _) in request.written() {
        let address = match rng.random_range(0..=BAD_ADDRESSES.len()) {
            0 => raw::SCRATCH,
            index => BAD_ADDRESSES[index - 1],
        };
        argument.resize(argument.len().max(offset + 8), 0);
        write_u64(argument, offset, address);
    }
    for member in request.argument.members {
        let value = match member.what {
            What::Size => rng.random_range(0..100_000),
            What::Timeout => u64::from(rng.random_ratio(1, 8)),
            _ => continue,
        };
        let end = member.offset + member.width;
        argument.resize(argument.len().max(end), 0);
        put(argument, member.offset, member.width, value);
    }
}

pub(super) fn fuzz(env: &Env) -> Outcome {
    let bystander = Scene::new(env)?;
    let scene = Scene::new(env)?;
    let count = env.scaled(15_000, 3_000);
    let accepted = fuzz_session(&scene, &mut env.rng(), count)?;
    check!(accepted > 0 && accepted < count, "{accepted} accepted");
    env.note(format!("{count} requests, {accepted} accepted"));
    drop(scene);
    bystander.end_untouched()
}

pub(super) fn fuzz_two_threads(env: &Env) -> Outcome {
    let bystander = Scene::new(env)?;
    let scene = Scene::new(env)?;
    let count = env.scaled(10_000, 1_000);
    let accepted = in_threads([1, 2], |thread| {
        pin(thread as usize)?;
        let mut rng = SmallRng::seed_from_u64(env.settings.seed.wrapping_add(thread));
        fuzz_session(&scene, &mut rng, count)
    })?;
    env.note(format!("{count} requests each, {accepted:?} accepted"));
    drop(scene);
    bystander.end_untouched()
}
