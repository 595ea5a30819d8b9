// SPDX-License-Identifier: GPL-2.0

//! The format of entries, and the room for them, are what the consumer has opened the queue with.

use crate::kfi::provider::{
    CompletionBuffer,
    CompletionFormat,
    PollBuffer, //
};

fn read(buffer: &mut CompletionBuffer<'_>, contexts: &mut PollBuffer<'_>) -> bool {
    #[cfg(wrong)]
    {
        buffer.format = CompletionFormat::Tagged; //~ E0616
        buffer.capacity = usize::MAX; //~ E0616
        contexts.capacity = usize::MAX; //~ E0616
    }
    buffer.is_full() && contexts.is_full()
}
