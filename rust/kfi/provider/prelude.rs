// SPDX-License-Identifier: GPL-2.0

//! The names that the files of a provider use, all at once.
//!
//! ```ignore
//! use crate::kfi::provider::prelude::*;
//! ```

#[allow(unused_imports, reason = "not every module needs it")]
pub(crate) use crate::kfi::linux::live::rooted_module;
#[cfg(provider_ready)]
pub use crate::kfi::provider::ready::*;
pub use crate::kfi::{
    addr::*,
    attr::*,
    context::*,
    control::Control,
    errno::{
        EAVAIL,
        EBADFLAGS,
        EKEYREJECTED,
        ENOAV,
        ENOCQ,
        ENOEQ,
        ENOKEY,
        ENOMSG,
        EOPBADSTATE,
        EOVERRUN,
        ETOOSMALL, //
    },
    fid::*,
    flags::*,
    hold::Hold,
    info::*,
    linux::{
        live::Root,
        queue::*,
        rcu::synchronize_expedited,
        timeout::Timeout, //
    },
    memory::{
        region::*,
        SourceBuffers,
        TargetBuffers, //
    },
    provider::{
        Completion,
        *, //
    },
    tally::Tally, //
};
pub use core::num::NonZeroU64;
pub use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::*,
            Atomic, //
        },
        *, //
    }, //
};
