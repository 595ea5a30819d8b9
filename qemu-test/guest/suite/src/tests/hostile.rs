// SPDX-License-Identifier: GPL-2.0

//! Requests that no sane program makes. Each has an answer, does nothing, and
//! leaves no trace in the kernel's log.
//!
//! They are made of what [`requests`](crate::requests) says of each request.

mod addresses;
mod getinfo;
mod handles;
mod limits;
mod random;
mod scene;
mod structures;

use addresses::{
    bad_argument_addresses, other_system_calls, read_info_buffers, read_only_changes_nothing,
    read_only_opens_nothing, read_only_takes_nothing,
};
use getinfo::{getinfo_hints, getinfo_hints_sizes, getinfo_texts};
use handles::{bad_handles, bad_indices, transfers, wrong_classes};
use limits::{close_beside_use, huge_counts, object_limit};
use random::{fuzz, fuzz_two_threads};
use structures::{
    long_structures, reserved_members, short_structures, unknown_flags, unknown_requests,
};

use crate::tests;

tests! {
    "hostile" parallel;
    "unknown-requests" ["kfi_shim.h"] unknown_requests;
    "short-structures" ["kfi_shim.h"] short_structures;
    "long-structures" ["kfi_shim.h"] long_structures;
    "reserved-members" ["kfi_shim.h"] reserved_members;
    "unknown-flags" ["kfi_shim.h"] unknown_flags;
    "bad-handles" ["kfi_shim.h"] bad_handles;
    "wrong-classes" ["kfi_shim.h"] wrong_classes;
    "bad-indices" ["kfi_shim.h"] bad_indices;
    "bad-argument-addresses" ["kfi_shim.h"] bad_argument_addresses;
    "read-only-argument-opens-nothing" ["kfi_shim.h"] read_only_opens_nothing;
    "read-only-argument-changes-nothing" ["kfi_shim.h"] read_only_changes_nothing;
    "read-only-argument-takes-nothing" ["kfi_shim.h"] read_only_takes_nothing;
    "getinfo-texts" ["kfi_shim.h"] getinfo_texts;
    "getinfo-hints" ["kfi_shim.h"] getinfo_hints;
    "getinfo-hints-sizes" ["kfi_shim.h"] getinfo_hints_sizes;
    "read-info-buffers" ["kfi_shim.h"] read_info_buffers;
    "other-system-calls" ["kfi_shim.h"] other_system_calls;
    alone "close-beside-use" ["kfi_shim.h R-CLOSE-2"] close_beside_use;
    alone "as-many-objects-as-it-takes" ["kfi_shim.h"] object_limit;
    "requests-about-transfers" ["kfi_shim.h"] transfers;
    "huge-counts" ["kfi_shim.h"] huge_counts;
    alone "fuzz" ["kfi_shim.h"] fuzz;
    alone "fuzz-two-threads" ["kfi_shim.h"] fuzz_two_threads;
}
