// SPDX-License-Identifier: GPL-2.0

//! The parameters that kfi_getparams lists.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    str::CStr, //
};

use crate::kfi::bindings;

/// How the value of a parameter is read, `None` if it was not set. Says also which type it has.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "not every type has a parameter")]
pub(crate) enum Read {
    /// A text.
    Text(fn() -> Option<&'static CStr>),
    /// An integer.
    Int(fn() -> Option<i64>),
    /// A switch.
    Bool(fn() -> Option<bool>),
}

/// A parameter.
pub(crate) struct Param {
    /// Its name.
    pub(crate) name: &'static CStr,
    /// One line of description.
    pub(crate) help: &'static CStr,
    /// Its type and value.
    pub(crate) read: Read,
}

/// The parameters of the core. It has none yet; to add one is to add it here.
pub(crate) static PARAMS: &[Param] = &[];

impl Param {
    /// Returns the number of the type for C.
    pub(crate) fn raw_type(&self) -> bindings::kfi_param_type {
        match self.read {
            Read::Text(_) => bindings::KFI_PARAM_STRING,
            Read::Int(_) => bindings::KFI_PARAM_INT,
            Read::Bool(_) => bindings::KFI_PARAM_BOOL,
        }
    }

    /// Reads the current value, `None` if it was not set.
    pub(crate) fn value(&self) -> Option<Value> {
        Some(match self.read {
            Read::Text(read) => Value::Text(read()?),
            Read::Int(read) => Value::Int(read()?),
            Read::Bool(read) => Value::Bool(read()?),
        })
    }
}

/// The value of a parameter.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// A text.
    Text(&'static CStr),
    /// An integer.
    Int(i64),
    /// A switch, shown as 0 or 1.
    Bool(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Int(number) => number.fmt(f),
            Self::Bool(on) => u8::from(*on).fmt(f),
        }
    }
}
