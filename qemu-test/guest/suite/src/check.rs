// SPDX-License-Identifier: GPL-2.0

//! How a test ends, and the checks that decide it.

use std::fmt::{Debug, Display};
use std::panic::Location;

/// The result of a test.
pub type Outcome = Result<(), Stop>;

/// Why a test did not go on to its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stop {
    /// Something is wrong.
    Fail(String),
    /// It makes no sense here.
    Skip(String),
}

impl Stop {
    /// A failure, with the place in the source.
    #[track_caller]
    pub fn fail(what: impl Display) -> Self {
        let place = Location::caller();
        let file = place.file().rsplit('/').next().unwrap_or_default();
        Self::Fail(format!("{file}:{}: {what}", place.line()))
    }

    /// The failure of a comparison.
    #[track_caller]
    pub fn differs(what: &str, is: &dyn Debug, should: &dyn Debug) -> Self {
        Self::fail(format!("{what} is {is:?}, should be {should:?}"))
    }
}

/// Anything that goes wrong with `?` fails the test there.
impl<E: std::error::Error> From<E> for Stop {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::fail(error)
    }
}

/// Fails the test unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr) => {
        $crate::check!($condition, "not so: {}", stringify!($condition))
    };
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::check::Stop::fail(format!($($what)+)));
        }
    };
}

/// Fails the test unless both are equal: first what is, then what should be.
#[macro_export]
macro_rules! check_eq {
    ($is:expr, $should:expr) => {
        $crate::check_eq!($is, $should, "{}", stringify!($is))
    };
    ($is:expr, $should:expr, $($what:tt)+) => {
        match (&$is, &$should) {
            (is, should) => {
                if *is != *should {
                    let what = format!($($what)+);
                    return Err($crate::check::Stop::differs(&what, &is, &should));
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(value: u32) -> Outcome {
        check!(value != 1, "one: {value}");
        check!(value != 2);
        check_eq!(value, 3);
        "x".parse::<u32>()?;
        Ok(())
    }

    #[test]
    fn failures_name_the_place() {
        let text = |value| match checks(value) {
            Err(Stop::Fail(text)) => text,
            other => format!("{other:?}"),
        };
        assert!(text(1).ends_with(": one: 1"), "{}", text(1));
        assert!(text(2).ends_with(": not so: value != 2"));
        assert!(text(4).ends_with(": value is 4, should be 3"));
        assert!(text(3).starts_with("check.rs:"), "{}", text(3));
        assert!(text(3).ends_with("invalid digit found in string"));
    }
}
