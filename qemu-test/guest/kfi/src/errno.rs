// SPDX-License-Identifier: GPL-2.0

//! Errors: what the system call said, and what kfabric said.

use std::fmt;

use rustix::io::Errno;
use thiserror::Error;

use crate::uapi;

/// Result of what this crate does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something failed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Error {
    /// The system call failed: the request did not reach kfabric.
    #[error("system call: {}", os_text(*.0))]
    Os(#[from] Errno),
    /// kfabric answered with an error.
    #[error("{0}")]
    Fabric(#[from] KfiErrno),
}

/// (number, name, text) of all error numbers, as `kfi_errno.h` has them.
static TABLE: &[(i32, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/errno_table.rs"));

/// An error number of kfabric. Those below 256 are Linux's.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KfiErrno(i32);

impl KfiErrno {
    /// An error entry is to be read, or a counter's error value has changed.
    pub const EAVAIL: Self = Self(uapi::KFI_EAVAIL as i32);
    /// Try again.
    pub const EAGAIN: Self = Self(uapi::KFI_EAGAIN as i32);
    /// In use.
    pub const EBUSY: Self = Self(uapi::KFI_EBUSY as i32);
    /// Interrupted by a signal.
    pub const EINTR: Self = Self(uapi::KFI_EINTR as i32);
    /// Invalid argument.
    pub const EINVAL: Self = Self(uapi::KFI_EINVAL as i32);
    /// No memory.
    pub const ENOMEM: Self = Self(uapi::KFI_ENOMEM as i32);
    /// Nothing matches.
    pub const ENODATA: Self = Self(uapi::KFI_ENODATA as i32);
    /// There is no room.
    pub const ENOSPC: Self = Self(uapi::KFI_ENOSPC as i32);
    /// The provider does not do that.
    pub const ENOSYS: Self = Self(uapi::KFI_ENOSYS as i32);
    /// The time is over.
    pub const ETIMEDOUT: Self = Self(uapi::KFI_ETIMEDOUT as i32);
    /// There is not enough room for an answer.
    pub const ETOOSMALL: Self = Self(uapi::KFI_ETOOSMALL as i32);
    /// The access is not allowed.
    pub const EACCES: Self = Self(uapi::KFI_EACCES as i32);
    /// The address is taken.
    pub const EADDRINUSE: Self = Self(uapi::KFI_EADDRINUSE as i32);
    /// A flag is not known or not allowed here.
    pub const EBADFLAGS: Self = Self(uapi::KFI_EBADFLAGS as i32);
    /// The operation was cancelled.
    pub const ECANCELED: Self = Self(uapi::KFI_ECANCELED as i32);
    /// There is nobody at the address.
    pub const EHOSTUNREACH: Self = Self(uapi::KFI_EHOSTUNREACH as i32);
    /// The key is refused.
    pub const EKEYREJECTED: Self = Self(uapi::KFI_EKEYREJECTED as i32);
    /// The message is too long.
    pub const EMSGSIZE: Self = Self(uapi::KFI_EMSGSIZE as i32);
    /// No address vector is bound.
    pub const ENOAV: Self = Self(uapi::KFI_ENOAV as i32);
    /// No completion queue or counter is bound.
    pub const ENOCQ: Self = Self(uapi::KFI_ENOCQ as i32);
    /// There is no such NIC.
    pub const ENODEV: Self = Self(uapi::KFI_ENODEV as i32);
    /// No event queue is bound.
    pub const ENOEQ: Self = Self(uapi::KFI_ENOEQ as i32);
    /// There is no such thing.
    pub const ENOENT: Self = Self(uapi::KFI_ENOENT as i32);
    /// The key is not to be had.
    pub const ENOKEY: Self = Self(uapi::KFI_ENOKEY as i32);
    /// There is no such message.
    pub const ENOMSG: Self = Self(uapi::KFI_ENOMSG as i32);
    /// The object is not in the state for that.
    pub const EOPBADSTATE: Self = Self(uapi::KFI_EOPBADSTATE as i32);
    /// The operation does not exist here.
    pub const EOPNOTSUPP: Self = Self(uapi::KFI_EOPNOTSUPP as i32);
    /// The receiver was not ready for too long.
    pub const EREMOTEIO: Self = Self(uapi::KFI_EREMOTEIO as i32);

    /// From a number of either sign.
    pub fn new(number: i32) -> Self {
        Self(number.saturating_abs())
    }

    /// From a result of kfabric: 0 is success.
    pub fn check(result: i32) -> Result<()> {
        match result {
            0 => Ok(()),
            number => Err(Error::Fabric(Self::new(number))),
        }
    }

    /// From a result of kfabric that is a number if it is not negative.
    pub(crate) fn check_number(result: i32) -> Result<usize> {
        usize::try_from(result).map_err(|_| Error::Fabric(Self::new(result)))
    }

    /// By name, with or without prefix, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let bare = name.strip_prefix("KFI_").unwrap_or(&name);
        TABLE
            .iter()
            .find(|(_, known, _)| known.strip_prefix("KFI_") == Some(bare))
            .map(|&(number, ..)| Self(number))
    }

    /// All of them, in the order of the header; those with two names once.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE
            .iter()
            .enumerate()
            .filter(|(i, (number, ..))| !TABLE[..*i].iter().any(|(n, ..)| n == number))
            .map(|(_, &(number, ..))| Self(number))
    }

    /// The number, positive.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The name, such as `KFI_EAVAIL`.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|(_, name, _)| name)
    }

    /// Its meaning, in words.
    pub fn text(self) -> Option<&'static str> {
        self.entry().map(|(_, _, text)| text)
    }

    /// Whether Linux has this number too.
    pub fn is_linux(self) -> bool {
        self.0 < uapi::KFI_ERRNO_OFFSET as i32
    }

    fn entry(self) -> Option<(i32, &'static str, &'static str)> {
        TABLE.iter().find(|(number, ..)| *number == self.0).copied()
    }
}

impl fmt::Display for KfiErrno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some((_, name, text)) => write!(f, "-{name} ({text})"),
            None => write!(f, "error {} (unknown)", self.0),
        }
    }
}

impl std::error::Error for KfiErrno {}

/// The name of an errno of a system call, such as `EBUSY`.
pub fn os_name(errno: Errno) -> String {
    match KfiErrno::new(errno.raw_os_error()).name() {
        Some(name) => name.trim_start_matches("KFI_").to_owned(),
        None => format!("errno {}", errno.raw_os_error()),
    }
}

fn os_text(errno: Errno) -> String {
    match KfiErrno::new(errno.raw_os_error()).text() {
        Some(text) => format!("{} ({text})", os_name(errno)),
        None => os_name(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for (number, name, text) in TABLE {
            assert_eq!(KfiErrno::by_name(name).map(KfiErrno::number), Some(*number));
            assert!(*number > 0 && !text.is_empty(), "{name}");
        }
        assert_eq!(KfiErrno::by_name("eavail"), Some(KfiErrno::EAVAIL));
        assert_eq!(KfiErrno::by_name("KFI_EBUSY"), Some(KfiErrno::EBUSY));
        assert_eq!(KfiErrno::by_name("KFI_"), None);
        assert_eq!(KfiErrno::by_name("E"), None);
    }

    #[test]
    fn linux_numbers_are_linux_numbers() {
        for (known, errno) in [
            ("EPERM", Errno::PERM),
            ("EBUSY", Errno::BUSY),
            ("EINVAL", Errno::INVAL),
            ("ETIMEDOUT", Errno::TIMEDOUT),
            ("EOWNERDEAD", Errno::OWNERDEAD),
        ] {
            assert_eq!(os_name(errno), known);
            assert!(KfiErrno::new(errno.raw_os_error()).is_linux());
        }
        assert!(!KfiErrno::EAVAIL.is_linux());
    }

    #[test]
    fn a_number_has_one_entry() {
        let mut numbers: Vec<_> = KfiErrno::all().collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        assert!(count < TABLE.len(), "EWOULDBLOCK is EAGAIN");
        // The header's first name of a number is the one to show.
        assert_eq!(KfiErrno::EAGAIN.name(), Some("KFI_EAGAIN"));
    }

    #[test]
    fn texts() {
        assert_eq!(KfiErrno::new(-259), KfiErrno::EAVAIL);
        let text = KfiErrno::EAVAIL.text().unwrap();
        assert_eq!(
            KfiErrno::EAVAIL.to_string(),
            format!("-KFI_EAVAIL ({text})")
        );
        assert_eq!(KfiErrno::new(9999).to_string(), "error 9999 (unknown)");
        let text = KfiErrno::by_name("ENOTTY").unwrap().text().unwrap();
        assert_eq!(
            Error::from(Errno::NOTTY).to_string(),
            format!("system call: ENOTTY ({text})")
        );
        // No text is cut off where the comment in the header breaks its line.
        for (_, name, text) in TABLE {
            assert!(!text.ends_with([',', '-']), "{name}: {text}");
        }
        assert_eq!(KfiErrno::check(0), Ok(()));
        assert_eq!(KfiErrno::check(-16), Err(Error::Fabric(KfiErrno::EBUSY)));
    }
}
