// SPDX-License-Identifier: GPL-2.0

//! The limits of operations.

use kernel::prelude::*;

use crate::kfi::{
    errno::EBADFLAGS,
    flags::OpFlags,
    provider::{
        kfi_rx_attr,
        kfi_tx_attr,
        Operation, //
    }, //
};

/// Limits of the operations of one direction: what a provider offers, what an endpoint may be opened
/// with, and what may be posted.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The flags that operations may have.
    pub flags: OpFlags,
    /// Operations that are posted at a time, which is up to the provider to keep to.
    pub size: usize,
    /// Pieces of memory.
    pub iov_limit: usize,
    /// Bytes.
    pub max_msg_size: usize,
    /// Bytes of what is injected; 0 for what is received.
    pub inject_size: usize,
}

impl Limits {
    /// Offers a transmit context with these limits.
    pub fn offer_tx(&self, attr: &mut kfi_tx_attr) {
        attr.size = self.size;
        attr.iov_limit = self.iov_limit;
        attr.inject_size = self.inject_size;
    }

    /// Offers a receive context with these limits.
    pub fn offer_rx(&self, attr: &mut kfi_rx_attr) {
        attr.size = self.size;
        attr.iov_limit = self.iov_limit;
    }

    /// Returns whether a transmit context can be what a consumer wants of it.
    pub fn allow_tx(&self, attr: Option<&kfi_tx_attr>) -> bool {
        attr.is_none_or(|attr| {
            self.flags.contains(OpFlags::from_raw(attr.op_flags))
                && (attr.size <= self.size && attr.iov_limit <= self.iov_limit)
                && (attr.inject_size <= self.inject_size && attr.rma_iov_limit == 0)
        })
    }

    /// Returns whether a receive context can be what a consumer wants of it.
    pub fn allow_rx(&self, attr: Option<&kfi_rx_attr>) -> bool {
        attr.is_none_or(|attr| {
            self.flags.contains(OpFlags::from_raw(attr.op_flags))
                && (attr.size <= self.size && attr.iov_limit <= self.iov_limit)
        })
    }

    /// Returns whether an operation is within the limits, but for how many there are: `EBADFLAGS`,
    /// `EINVAL` for too many pieces, `EMSGSIZE` for too many bytes. From any context.
    pub fn check(&self, operation: &Operation<'_>) -> Result {
        let most = match operation.flags().contains(OpFlags::INJECT) {
            true => self.inject_size,
            false => self.max_msg_size,
        };
        if !self.flags.contains(operation.flags()) {
            Err(EBADFLAGS.into())
        } else if operation.local().count() > self.iov_limit {
            Err(EINVAL)
        } else if operation.local().len()? > most {
            Err(EMSGSIZE)
        } else {
            Ok(())
        }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_limits)]
mod tests {
    use super::*;
    use crate::kfi::provider::ready::tests::send;

    const LIMITS: Limits = Limits {
        flags: OpFlags::COMPLETION.union(OpFlags::INJECT),
        size: 4,
        iov_limit: 1,
        max_msg_size: 8,
        inject_size: 2,
    };

    #[test]
    fn operations_beyond_the_limits_are_refused() {
        let check = |len, flags| {
            let bytes = [0u8; 9];
            let mut operation = send(bytes.get(..len).unwrap_or(&bytes));
            operation.flags = flags;
            LIMITS.check(&operation)
        };
        assert_eq!(check(8, OpFlags::NONE), Ok(()));
        assert_eq!(check(9, OpFlags::NONE), Err(EMSGSIZE));
        assert_eq!(check(2, OpFlags::INJECT | OpFlags::COMPLETION), Ok(()));
        assert_eq!(check(3, OpFlags::INJECT), Err(EMSGSIZE));
        assert_eq!(check(1, OpFlags::FENCE), Err(EBADFLAGS.into()));
        let none = Limits {
            iov_limit: 0,
            ..LIMITS
        };
        assert_eq!(none.check(&send(&[1])), Err(EINVAL));
    }

    #[test]
    fn what_is_offered_is_allowed() {
        let mut tx = kfi_tx_attr::default();
        LIMITS.offer_tx(&mut tx);
        assert!(LIMITS.allow_tx(Some(&tx)) && LIMITS.allow_tx(None));
        tx.inject_size += 1;
        assert!(!LIMITS.allow_tx(Some(&tx)));
        let mut rx = kfi_rx_attr::default();
        LIMITS.offer_rx(&mut rx);
        assert!(LIMITS.allow_rx(Some(&rx)) && LIMITS.allow_rx(None));
        rx.op_flags = OpFlags::FENCE.as_raw();
        assert!(!LIMITS.allow_rx(Some(&rx)));
    }
}
