// SPDX-License-Identifier: GPL-2.0

//! Endpoints that know each other, with all that they need: [`Pair`] is two of them on two
//! NICs, [`Net`] is several in one domain, with counters and memory.

mod area;
mod completions;
mod end;
mod forms;
mod net;
mod pair;

pub use area::{pattern, Area, KINDS};
pub use completions::{
    complete, contexts, done, expect, expect_context, expect_contexts, expect_count, expect_error,
    quiet, settle, LONG, ROOM,
};
pub use end::{needs, End, Setup};
pub use forms::{carries_data, in_all_forms, injects, takes_pages, takes_pieces, FORMS};
pub use net::{Net, Peer};
pub use pair::Pair;
