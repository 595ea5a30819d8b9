// SPDX-License-Identifier: GPL-2.0

//! The tests.

use crate::harness::Test;

pub mod address_vector;
pub mod atomic;
pub mod attacker;
pub mod buffer;
pub mod close;
pub mod cntr;
pub mod control;
pub mod control_work;
pub mod deferred;
pub mod endpoint;
pub mod failslab;
pub mod faults;
pub mod flags;
pub mod fuzz;
pub mod hostile;
pub mod info;
pub mod lifetime;
pub mod load;
pub mod message;
pub mod model;
pub mod module;
pub mod network;
pub mod poll_set;
pub mod queue;
pub mod rma;
pub mod session;
pub mod signal;
pub mod sizes;
pub mod small_provider;
pub mod soak;
pub mod soak_counters;
pub mod tagged;
pub mod tool;
pub mod trace;
pub mod trigger;
pub mod trywait;
pub mod users;
pub mod wait;
pub mod wait_fd;
pub mod wait_set;

/// All of them, in the order in which they run: the basics of others first,
/// those that take modules away last.
pub fn all() -> Vec<Test> {
    [
        session::TESTS,
        info::TESTS,
        cntr::TESTS,
        wait::TESTS,
        control::TESTS,
        wait_fd::TESTS,
        queue::TESTS,
        wait_set::TESTS,
        poll_set::TESTS,
        trywait::TESTS,
        trigger::TESTS,
        deferred::TESTS,
        control_work::TESTS,
        address_vector::TESTS,
        endpoint::TESTS,
        message::TESTS,
        tagged::TESTS,
        rma::TESTS,
        atomic::TESTS,
        sizes::TESTS,
        flags::TESTS,
        signal::TESTS,
        model::TESTS,
        soak::TESTS,
        soak_counters::TESTS,
        trace::TESTS,
        close::TESTS,
        buffer::TESTS,
        faults::TESTS,
        failslab::TESTS,
        hostile::TESTS,
        attacker::TESTS,
        tool::TESTS,
        fuzz::TESTS,
        users::TESTS,
        load::TESTS,
        lifetime::TESTS,
        small_provider::TESTS,
        module::TESTS,
        network::TESTS,
    ]
    .concat()
}

#[cfg(test)]
mod unit {
    use super::{all, Test};

    #[test]
    fn names_are_unique_and_plain() {
        let mut names: Vec<_> = all().iter().map(Test::full_name).collect();
        let count = names.len();
        for name in &names {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/_".contains(c);
            assert!(name.chars().all(plain), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn requirements_have_their_form() {
        for test in all() {
            for word in test.requirements.split(' ') {
                let is_header = word.strip_suffix(".h").is_some();
                assert!(word.starts_with("R-") || is_header, "{word}");
            }
        }
    }
}
