// SPDX-License-Identifier: GPL-2.0

//! Endpoints and contexts that only transmit, or only receive.

use super::Direction;

/// The directions in which an endpoint or context has operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Directions {
    /// It has a transmit side.
    pub transmit: bool,
    /// It has a receive side.
    pub receive: bool,
}

impl Directions {
    /// Both.
    pub const BOTH: Self = Self {
        transmit: true,
        receive: true,
    };

    /// The one direction of a context.
    pub const fn only(direction: Direction) -> Self {
        Self {
            transmit: matches!(direction, Direction::Transmit),
            receive: matches!(direction, Direction::Receive),
        }
    }

    /// Returns whether a direction is one of them.
    pub const fn has(self, direction: Direction) -> bool {
        match direction {
            Direction::Transmit => self.transmit,
            Direction::Receive => self.receive,
        }
    }

    /// Returns the direction if there is one alone.
    pub const fn single(self) -> Option<Direction> {
        match (self.transmit, self.receive) {
            (true, false) => Some(Direction::Transmit),
            (false, true) => Some(Direction::Receive),
            _ => None,
        }
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(kfi_directions)]
mod tests {
    use super::*;

    #[test]
    fn contexts_have_one_direction() {
        assert!(Directions::BOTH.single().is_none());
        for direction in [Direction::Transmit, Direction::Receive] {
            let only = Directions::only(direction);
            assert!(only.single() == Some(direction));
            assert!(only.has(direction));
            assert!(Directions::BOTH.has(direction));
        }
        assert!(!Directions::only(Direction::Transmit).has(Direction::Receive));
    }
}
