// SPDX-License-Identifier: GPL-2.0

//! Tests in user space of the parts of the wire that need no kernel: the very same files.
//!
//! `KFI_WIRE_CASES` says how many inputs each test makes.

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire/tcp/frame.rs"]
mod frame;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire/tcp/idle.rs"]
mod idle;

#[cfg(test)]
#[expect(dead_code, reason = "the kernel uses more")]
#[path = "../../../../rust/kfi_soft/wire/tcp/incoming.rs"]
mod incoming;

#[cfg(test)]
#[expect(dead_code, reason = "the kernel uses more")]
#[path = "../../../../rust/kfi_soft/wire/tcp/outgoing.rs"]
mod outgoing;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire/tcp/retry.rs"]
mod retry;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/share.rs"]
mod share;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire/tcp/stops.rs"]
mod stops;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire/tcp/stream.rs"]
mod stream;

#[cfg(test)]
#[path = "../../../../rust/kfi_soft/wire"]
mod wire {
    pub(crate) mod awaits;
}

#[cfg(test)]
mod idleness;
#[cfg(test)]
mod kfi;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod tests;
