// SPDX-License-Identifier: GPL-2.0

//! Mistakes that a provider or a consumer in safe code cannot make.
//!
//! Each file compiles, and does not compile with `--cfg wrong`: the lines that end with `//~` are
//! wrong then, by the code or the words that follow, and nothing else is. With `--cfg copied` those are
//! that say of a type that it is `Copy`: to the compiler it would be, and other lines would not be wrong.

#![forbid(unsafe_code)]
#![allow(
    dead_code,
    unused_imports,
    unused_variables,
    unreachable_code,
    reason = "only types matter"
)]

mod address_len;
mod alias_class;
mod alias_open;
mod answer;
mod area_map;
mod buffer_format;
mod context_class;
mod contexts_ended;
mod copied;
mod default_flags;
mod device;
mod ended;
mod exit;
mod flags_noted;
mod head;
mod hold_once;
mod insertion;
mod kept_new;
mod kept_opening;
mod memory_direction;
mod memory_kept;
mod names;
mod objects_kept;
mod offer_changed;
mod open_twice;
mod operation_context;
mod ops_by_another_name;
mod ops_of_others;
mod own_opening;
mod region_memory;
mod sleep;
mod two_of_one;
mod wait_queue;
