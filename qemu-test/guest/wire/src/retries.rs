// SPDX-License-Identifier: GPL-2.0

//! The pauses between tries to connect.

use crate::retry::{Retry, LAST_RETRY};

/// For so many milliseconds a target is looked for.
const TIMEOUT: u32 = 10_000;

/// What becomes of a try.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing.
    None,
    /// The target does not know the session.
    Lost,
}

/// Looks for a target until there is no time left; returns when it was tried.
fn look_for(retry: &mut Retry, answer: impl Fn(u32) -> Answer) -> Vec<u32> {
    let (mut now, mut end) = (0, TIMEOUT);
    let mut tries = Vec::new();
    while now < end {
        tries.push(now);
        retry.note_try(0);
        if answer(now) == Answer::Lost && retry.note_answer() {
            end = now + TIMEOUT;
        }
        now += retry.pause();
    }
    retry.note_end();
    tries
}

/// Pauses are twice as long each time, up to the longest one, or as long as they have to be.
#[test]
fn pauses_become_longer() {
    let mut retry = Retry::new();
    assert_eq!(retry.pause(), 0);
    for pause in [50, 100, 200, 400, 800, LAST_RETRY, LAST_RETRY] {
        retry.note_try(0);
        assert_eq!(retry.pause(), pause);
    }
    retry.note_try(3000);
    assert_eq!(retry.pause(), 3000);
    retry.note_try(0);
    assert_eq!(retry.pause(), LAST_RETRY);
    retry.begin_anew();
    assert_eq!(retry.pause(), 0);
    retry.note_try(0);
    assert_eq!(retry.pause(), 50);
}

/// A target that was started again is tried soon after it has said so, whenever that is: what was not sent does not
/// fail before.
#[test]
fn a_target_that_was_started_again_is_tried_soon() {
    let first = look_for(&mut Retry::new(), |_| Answer::None);
    assert_eq!(first.last(), Some(&9550), "the next one were too late");
    for at in first {
        let answer = |now| match now {
            now if now == at => Answer::Lost,
            _ => Answer::None,
        };
        let tries = look_for(&mut Retry::new(), answer);
        let next = tries.iter().find(|now| **now > at);
        assert!(next.is_some_and(|next| next - at <= 50), "{at}: {tries:?}");
    }
}

/// One that says so all the time is tried no more often than one that says nothing, and not for ever.
#[test]
fn a_target_that_is_always_another_one_is_given_up() {
    let mut retry = Retry::new();
    for _ in 0..3 {
        retry.begin_anew();
        let tries = look_for(&mut retry, |_| Answer::Lost);
        assert!(tries.last() < Some(&TIMEOUT), "{tries:?}");
        assert!(tries.len() < 20, "{tries:?}");
        // Nor is it if it begins with that late.
        retry.begin_anew();
        let tries = look_for(&mut retry, |now| match now {
            0..9000 => Answer::None,
            _ => Answer::Lost,
        });
        assert!(tries.last() < Some(&(2 * TIMEOUT)), "{tries:?}");
        assert!(tries.len() < 40, "{tries:?}");
    }
}
