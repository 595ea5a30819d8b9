// SPDX-License-Identifier: GPL-2.0

//! The end of an operation is told by whoever has given its memory back, and by a completion once.

use kernel::prelude::*;

use crate::kfi::{
    context::Context,
    memory::{
        Memory,
        Target, //
    },
    provider::{
        Completion,
        CompletionBuffer,
        CompletionError,
        Counted,
        Ended,
        Failure,
        Incoming,
        Lasting,
        Left,
        Outcome,
        SharedUse, //
    }, //
};

fn write_after_the_end(memory: Incoming, outcome: &Outcome) -> Completion {
    let mut cursor = memory.cursor(0);
    #[cfg(wrong)]
    let completion = memory.end().complete(outcome); //~ E0505
    #[cfg(wrong)]
    cursor.write(&[1]);
    #[cfg(not(wrong))]
    let completion = memory.end().complete(outcome);
    completion
}

fn fetch_after_the_end(memory: Lasting, outcome: &Outcome) -> (Completion, usize) {
    #[cfg(wrong)]
    let target = memory.target();
    #[cfg(wrong)]
    let completion = memory.end().complete(outcome); //~ E0505
    #[cfg(not(wrong))]
    let completion = memory.end().complete(outcome);
    #[cfg(wrong)]
    return (completion, target.cursor(0).write(&[1]));
    #[cfg(not(wrong))]
    (completion, 0)
}

fn write_after_the_release(shared: SharedUse<()>) -> Ended {
    let (ended, left) = shared.end();
    #[cfg(wrong)]
    let _ = shared.memory(); //~ E0382
    ended
}

fn write_by_what_is_left(left: Left<()>) {
    #[cfg(wrong)]
    let _ = left.memory(); //~ E0599
    left.data();
}

fn share_what_is_for_one(memory: Incoming) {
    #[cfg(wrong)]
    let _ = SharedUse::share(memory, (), GFP_KERNEL); //~ E0624
}

fn cancel_a_part(shared: SharedUse<()>, outcome: &Outcome, failure: Failure) -> CompletionError {
    let (ended, _left) = shared.end();
    #[cfg(wrong)]
    let error: CompletionError = (ended.complete(outcome), failure).into(); //~ E0277
    #[cfg(not(wrong))]
    let error = ended.fail(outcome, failure);
    error
}

fn cancel_later(mut error: CompletionError, failure: Failure) -> CompletionError {
    #[cfg(wrong)]
    {
        error.failure = failure; //~ E0616
    }
    error
}

fn make_up(context: Context, outcome: Outcome) {
    #[cfg(wrong)]
    {
        let _ = Completion::new(context, true, &outcome); //~ E0624
        let _ = Counted(()); //~ E0423
    }
    let _ = Completion::remote(&outcome);
}

fn tell_twice(buffer: &mut CompletionBuffer<'_>, completion: Completion) {
    let _ = buffer.push(completion);
    #[cfg(wrong)]
    let _ = buffer.push(completion); //~ E0382
}

fn copy(completion: &Completion, ended: &Ended) {
    #[cfg(wrong)]
    let other: Completion = completion.clone(); //~ E0308
    #[cfg(wrong)]
    let other: Ended = ended.clone(); //~ E0308
}
