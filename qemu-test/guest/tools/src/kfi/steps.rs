// SPDX-License-Identifier: GPL-2.0

//! Operations of a command line, one after the other or each at its time.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::output::{error_text, print_json, Problem};

/// An operation that a command line names as NAME or NAME=ARGUMENT.
///
/// Displayed it is what was done, for the output.
pub(crate) trait Operation: Clone + Display + Send + Sync {
    /// The objects that it works on.
    type Target: Sync;

    /// Takes it from the command line.
    fn parse(name: &str, argument: Option<&str>) -> Result<Self, String>;

    /// Does it; some give a value.
    fn run(&self, target: &Self::Target) -> kfi::Result<Option<String>>;
}

/// An operation, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step<O> {
    pub(crate) operation: O,
    /// Milliseconds after the start; else after the one before.
    pub(crate) after: Option<u32>,
}

impl<O: Operation> FromStr for Step<O> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (what, after) = match text.split_once('@') {
            Some((what, after)) => (what, Some(millis(after)?)),
            None => (text, None),
        };
        let operation = match what.split_once('=') {
            Some((name, argument)) => O::parse(name, Some(argument))?,
            None => O::parse(what, None)?,
        };
        Ok(Self { operation, after })
    }
}

/// Takes a number: decimal, hexadecimal, counted down from 2^64, or max.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if digits == "max" => Ok(u64::MAX),
        None => digits.parse(),
    };
    let value = value.map_err(|_| format!("{text:?} is no number"))?;
    Ok(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Takes a number of milliseconds.
pub(crate) fn millis<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number of milliseconds"))
}

/// Does nothing for a while.
pub(crate) fn sleep(time: u32) {
    thread::sleep(Duration::from_millis(time.into()));
}

/// The outcome of one operation, with times in milliseconds since the start.
#[derive(Debug, Serialize)]
struct Done {
    operation: String,
    begin: f64,
    end: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Done {
    fn new<O: Operation>(operation: &O, target: &O::Target, start: Instant) -> Self {
        let begin = start.elapsed();
        let result = operation.run(target);
        let end = start.elapsed();
        let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let (value, error) = match result {
            Ok(value) => (value, None),
            Err(error) => (None, Some(error_text(error))),
        };
        Self {
            operation: operation.to_string(),
            begin: ms(begin),
            end: ms(end),
            value,
            error,
        }
    }
}

impl Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = match (&self.value, &self.error) {
            (Some(value), _) => value,
            (None, Some(error)) => error,
            (None, None) => "0",
        };
        let Self {
            operation,
            begin,
            end,
            ..
        } = self;
        let took = end - begin;
        write!(f, "{end:10.3} ms  {operation:<24} {result}")?;
        if took >= 1.0 {
            write!(f, "  (took {took:.3} ms)")?;
        }
        Ok(())
    }
}

/// Does all of them, and prints what each one gave.
///
/// Steps with a time run in threads of their own. An error that kfabric answers
/// with is part of the output and no failure.
pub(crate) fn play<O: Operation>(
    steps: &[Step<O>],
    target: &O::Target,
    json: bool,
) -> Result<(), Problem> {
    let (tx, rx) = mpsc::channel();
    let start = Instant::now();

    let done = thread::scope(|scope| {
        for step in steps {
            if let Some(after) = step.after {
                let tx = tx.clone();
                scope.spawn(move || {
                    let time = Duration::from_millis(after.into());
                    thread::sleep(time.saturating_sub(start.elapsed()));
                    tx.send(Done::new(&step.operation, target, start))
                });
            }
        }
        scope.spawn(move || in_order(steps, target, start, &tx));
        // As they come: one may take for ever.
        let mut done = Vec::new();
        for one in rx {
            if json {
                done.push(one);
            } else {
                println!("{one}");
            }
        }
        done
    });
    if json {
        print_json(&done)?;
    }
    Ok(())
}

fn in_order<O: Operation>(
    steps: &[Step<O>],
    target: &O::Target,
    start: Instant,
    tx: &Sender<Done>,
) {
    for step in steps.iter().filter(|step| step.after.is_none()) {
        let done = Done::new(&step.operation, target, start);
        if tx.send(done).is_err() {
            return;
        }
    }
}
