// SPDX-License-Identifier: GPL-2.0

//! Endpoints that only send, or only receive.

use crate::kfi::{
    flags::Caps,
    provider::Direction, //
};

/// The directions in which an endpoint has operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Directions {
    transmit: bool,
    receive: bool,
}

impl Directions {
    /// Both.
    pub const BOTH: Self = Self {
        transmit: true,
        receive: true,
    };

    /// Those of an endpoint with these capabilities: the ones that are named, and both if none is.
    pub fn of(caps: Caps) -> Self {
        let (transmit, receive) = (caps.contains(Caps::SEND), caps.contains(Caps::RECV));
        match transmit || receive {
            true => Self { transmit, receive },
            false => Self::BOTH,
        }
    }

    /// Returns whether a direction is one of them.
    pub const fn has(self, direction: Direction) -> bool {
        match direction {
            Direction::Transmit => self.transmit,
            Direction::Receive => self.receive,
        }
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(kfi_ready_directions)]
mod tests {
    use super::*;

    #[test]
    fn one_direction_is_asked_for_by_itself() {
        let sends = Directions::of(Caps::MSG | Caps::SEND);
        assert!(sends.has(Direction::Transmit) && !sends.has(Direction::Receive));
        let receives = Directions::of(Caps::MSG | Caps::RECV);
        assert!(!receives.has(Direction::Transmit) && receives.has(Direction::Receive));
        assert!(Directions::of(Caps::MSG) == Directions::BOTH);
        assert!(Directions::of(Caps::SEND | Caps::RECV) == Directions::BOTH);
    }
}
