// SPDX-License-Identifier: GPL-2.0

//! Attempts of somebody who holds a descriptor of /dev/kfi and wants more: memory that is freed,
//! numbers that are taken for pointers, objects that are taken for others, memory that nobody counts;
//! and the remains of objects that are closed, events told late or in another order, and requests that
//! take long.

mod contexts;
mod long;
mod objects;
mod operations;
mod others;
mod works;

use std::ffi::CStr;

use kfi::{Caps, Error, InfoEntry, KfiErrno};

use crate::check::{Outcome, Stop};
use crate::ends::{Pair, Setup};
use crate::env::Env;
use crate::rig::Rig;
use crate::tests;
use crate::tests::module::Modules;

tests! {
    "attacker";
    "work-that-has-fired-is-kept" ["R-DWQ-4 R-DWQ-15 kfi_shim.h"] works::fired_work;
    "work-queued-twice" ["R-DWQ-4 kfi_shim.h"] works::queued_twice;
    "context-is-no-pointer" ["R-TRIG-3 kfi_shim.h"] contexts::context_is_no_pointer;
    "contexts-are-told-apart" ["kfi_shim.h"] contexts::contexts;
    "claim-has-the-context-of-its-peek" ["kfi_shim.h"] contexts::claim;
    "cancel-by-number" ["kfi_shim.h"] contexts::cancel_by_number;
    "trusting-provider" ["kfi_shim.h kfi_prov.h"] others::trusting_provider;
    "requests-for-connections" ["kfi_shim.h"] others::connection_requests;
    "other-classes-and-domains" ["kfi_shim.h R-TRIG-5 R-POLL-2"] others::others;
    "everything-counts" ["kfi_shim.h"] objects::everything_counts;
    "works-are-objects" ["kfi_shim.h"] objects::works_are_objects;
    "poll-tells-no-address" ["kfi_shim.h"] contexts::poll_tells;
    "addresses-are-refused" ["kfi_shim.h"] others::virtual_addresses;
    "handlers-at-one-place" ["kfi_shim.h"] objects::handlers;
    "handlers-without-an-answer" ["kfi_shim.h"] objects::handlers_without_answer;
    "numbers-cost-the-same" ["kfi_shim.h"] contexts::numbers_cost_the_same;
    "alias-receives-many" ["kfi_shim.h"] contexts::alias_receives_many;
    "place-of-something-else" ["kfi_shim.h"] contexts::stale_places;
    "addresses-count" ["kfi_shim.h"] objects::addresses_count;
    "contexts-inherit-sizes" ["kfi_shim.h"] objects::contexts_inherit;
    "copies-count" ["kfi_shim.h"] operations::copies_count;
    "each-queueing-counts" ["R-DWQ-4 kfi_shim.h"] operations::queueings_count;
    "places-count" ["R-DWQ-4 kfi_shim.h"] operations::places_count;
    "keys-and-contexts-count" ["kfi_shim.h"] objects::keys_count;
    "work-that-has-ended-is-released" ["R-DWQ-4 R-CTL-2 R-CTL-3 kfi_shim.h"] works::ended_work;
    "domains-are-limited" ["kfi_shim.h"] objects::domains_are_limited;
    "silent-operations" ["kfi_shim.h"] contexts::silent_operations;
    "release-before-the-others" ["kfi_shim.h"] contexts::release_first;
    "completions-count-after-their-endpoint" ["kfi_shim.h"] operations::completions_count;
    "completions-of-works-count" ["kfi_shim.h"] operations::works_completions_count;
    "closed-endpoints-give-back" ["kfi_shim.h"] operations::closed_endpoints;
    "shared-depths-count" ["kfi_shim.h"] operations::shared_depths;
    "shared-completions-count" ["kfi_shim.h"] operations::shared_completions;
    "operations-count" ["kfi_shim.h"] operations::operations_count;
    "pending-operations-count" ["kfi_shim.h"] operations::pending_count;
    "refused-bindings-count-no-less" ["kfi_shim.h"] operations::refused_bindings;
    "scalable-endpoints-count-when-closed" ["kfi_shim.h"] operations::closed_scalable;
    "vectors-count" ["kfi_shim.h"] objects::vectors_count;
    "released-beside-queueing" ["R-DWQ-4 kfi_shim.h"] works::released_beside_queueing;
    "works-of-unknown-flags" ["R-DWQ-4 kfi_shim.h"] works::unknown_flags;
    "parts-count" ["kfi_shim.h"] objects::parts_count;
    "refused-operations-take-no-number" ["kfi_shim.h"] contexts::refused_numbers;
    "cancel-among-silent-receives" ["R-TRIG-26 kfi_shim.h"] contexts::silent_receives;
    "queues-without-a-direction" ["kfi_shim.h"] operations::without_direction;
    "signals-end-long-requests" ["kfi_shim.h"] long::long_requests;
    "copies-keep-nobody-waiting" ["kfi_endpoint.h"] long::copies;
    "descriptors-of-one-object" ["R-CTL-10 kfi_shim.h"] objects::descriptors_of_one;
    "endpoints-are-limited" ["kfi_shim.h"] objects::endpoints_are_limited;
}

/// Runs something with the device loaded with these limits.
fn limited(env: &Env, limits: &CStr, run: impl FnOnce(&Rig) -> Outcome) -> Outcome {
    Modules::new(env)?.with_device(limits, || {
        let rig = Rig::new(env)?;
        run(&rig)?;
        rig.close()
    })
}

/// The answer of a test for what the provider has not.
fn unless_missing<T>(object: kfi::Result<T>) -> Result<T, Stop> {
    match object {
        Err(Error::Fabric(KfiErrno::ENOSYS)) => Err(Stop::Skip("there are none".to_owned())),
        object => Ok(object?),
    }
}

/// Attributes of endpoints for so many operations that transmit, which may inject 1 KiB each.
fn injecting(rig: &Rig, depth: u64) -> Result<InfoEntry, Stop> {
    let mut entry = rig.info.entries()[0].clone();
    if entry.tx_attr.inject_size < 1024 {
        return Err(Stop::Skip("there is little to inject".to_owned()));
    }
    (entry.tx_attr.size, entry.rx_attr.size) = (depth, 1);
    Ok(entry)
}

/// Two ends for so many operations in each direction, with queues for 64.
fn pair_for(env: &Env, caps: Caps, depth: u64, setup: Setup) -> Result<Pair, Stop> {
    let rig = Rig::new(env)?;
    let mut entry = rig.info.entries()[0].clone();
    (entry.tx_attr.size, entry.rx_attr.size) = (depth, depth);
    rig.close()?;
    let setup = Setup {
        entry: Some(entry),
        cq_size: 64,
        ..setup
    };
    Pair::with(env, caps, &setup)
}

/// Two ends for messages.
fn pair(env: &Env) -> Result<Pair, Stop> {
    Pair::new(env, Caps::MSG | Caps::SEND | Caps::RECV)
}
