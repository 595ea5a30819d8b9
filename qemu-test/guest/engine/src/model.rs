// SPDX-License-Identifier: GPL-2.0

//! Random sequences of calls, beside models that are too simple to be wrong.

mod due;
mod table;

use proptest::prelude::*;

fn config() -> ProptestConfig {
    let cases = std::env::var("KFI_ENGINE_CASES").ok();
    ProptestConfig {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(100),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Numbers that are often equal, often close to each other, and sometimes at the ends.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4_u64,
        4 => 0..64_u64,
        2 => any::<u64>(),
        1 => prop_oneof![Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 63)],
    ]
}
