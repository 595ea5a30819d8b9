// SPDX-License-Identifier: GPL-2.0

//! The use of a context ends when the client reads what a provider tells of it, and nobody else ends
//! it: by then there may be one of another operation, or it is how an event is known that its consumer
//! has written.

use crate::kfi::consumer::{
    CompletionQueue,
    Contexts,
    EventQueue, //
};

fn end(contexts: &Contexts, events: &EventQueue, queue: &CompletionQueue, told: usize) -> u64 {
    #[cfg(wrong)]
    {
        let owner = events.owner(); //~ E0624
        let _ = contexts.read_back(owner, told, true); //~ E0624
        let owner = queue.owner(); //~ E0624
        let _ = contexts.complete(owner, told, false); //~ E0624
    }
    contexts.number_of(told)
}
