// SPDX-License-Identifier: GPL-2.0

//! Tells the story, and stops at the first thing that is not true.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use kfi::{Error, KfiErrno};

/// A statement that does not hold.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Wrong(String);

impl Wrong {
    pub(crate) fn new(what: impl Display) -> Self {
        Self(what.to_string())
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self::new(error)
    }
}

impl From<rustix::io::Errno> for Wrong {
    fn from(error: rustix::io::Errno) -> Self {
        Self::new(error)
    }
}

pub(crate) type Demo = Result<(), Wrong>;

/// Prints the transcript. Plain text: it may end up in a file as it is.
#[derive(Debug)]
pub(crate) struct Narrator {
    out: io::Stdout,
    chapters: u32,
    checks: u32,
}

impl Narrator {
    pub(crate) fn new() -> Self {
        Self {
            out: io::stdout(),
            chapters: 0,
            checks: 0,
        }
    }

    /// Begins a part.
    pub(crate) fn chapter(&mut self, title: &str) -> Demo {
        self.chapters += 1;
        writeln!(self.out, "\n{}. {title}\n", self.chapters)?;
        Ok(())
    }

    /// A statement.
    pub(crate) fn line(&mut self, text: impl Display) -> Demo {
        writeln!(self.out, "   {text}")?;
        Ok(())
    }

    /// Several lines as they are.
    pub(crate) fn block(&mut self, text: impl Display) -> Demo {
        for line in text.to_string().lines() {
            writeln!(self.out, "   {line}")?;
        }
        Ok(())
    }

    /// Lets the reader follow.
    pub(crate) fn pause(&mut self, time: Duration) -> Demo {
        self.out.flush()?;
        std::thread::sleep(time);
        Ok(())
    }

    /// Stops unless something is true.
    pub(crate) fn check(&mut self, holds: bool, otherwise: impl Display) -> Demo {
        self.checks += 1;
        if holds {
            Ok(())
        } else {
            Err(Wrong::new(otherwise))
        }
    }

    /// Stops unless kfabric has answered with this error.
    pub(crate) fn fabric_error(&mut self, result: kfi::Result<()>, errno: KfiErrno) -> Demo {
        match result {
            Err(Error::Fabric(is)) if is == errno => self.check(true, ""),
            Err(error) => self.check(false, format_args!("{error}, not {errno}")),
            Ok(()) => self.check(false, format_args!("success, not {errno}")),
        }
    }

    /// Ends the transcript.
    pub(crate) fn end(&mut self) -> Demo {
        writeln!(
            self.out,
            "\nAll of this was checked while it was told: {} checks.",
            self.checks
        )?;
        Ok(())
    }
}

/// A time for people.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// An error by its name alone; the story says what it means.
pub(crate) fn name(errno: KfiErrno) -> String {
    match errno.name() {
        Some(name) => format!("-{name}"),
        None => errno.to_string(),
    }
}
