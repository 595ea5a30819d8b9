// SPDX-License-Identifier: GPL-2.0

//! Atomic operations, as requests describe them.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::provider::{
    atomics::*,
    datatype_size,
    kfi_datatype,
    kfi_op,
    AtomicCall, //
};

/// An atomic operation.
///
/// # Invariants
///
/// The type is one of integers, and the operation is one of the form.
#[derive(Clone, Copy)]
pub(crate) struct Atomics {
    datatype: kfi_datatype,
    op: kfi_op,
    call: AtomicCall,
}

impl Atomics {
    /// Checks an operation; `EOPNOTSUPP` if it does not exist in this form, or not for the type.
    pub(crate) fn new(datatype: kfi_datatype, op: kfi_op, call: AtomicCall) -> Result<Self> {
        datatype_size(datatype).ok_or(EOPNOTSUPP)?;
        let exists = match op {
            KFI_MIN | KFI_MAX | KFI_SUM | KFI_PROD | KFI_LOR | KFI_LAND | KFI_BOR | KFI_BAND
            | KFI_LXOR | KFI_BXOR | KFI_ATOMIC_WRITE => call != AtomicCall::Compare,
            KFI_ATOMIC_READ => call == AtomicCall::Fetch,
            KFI_CSWAP | KFI_CSWAP_NE | KFI_CSWAP_LE | KFI_CSWAP_LT | KFI_CSWAP_GE
            | KFI_CSWAP_GT | KFI_MSWAP => call == AtomicCall::Compare,
            _ => false,
        };
        if !exists {
            return Err(EOPNOTSUPP);
        }
        // INVARIANT: Just checked.
        Ok(Self { datatype, op, call })
    }

    /// Returns the type of the elements.
    pub(crate) fn datatype(self) -> kfi_datatype {
        self.datatype
    }

    /// Returns what is computed.
    pub(crate) fn op(self) -> kfi_op {
        self.op
    }

    /// Returns the form.
    pub(crate) fn call(self) -> AtomicCall {
        self.call
    }

    /// Returns the bytes of an element.
    pub(crate) fn size(self) -> usize {
        // There is always one by the type invariants.
        datatype_size(self.datatype).unwrap_or(1)
    }

    /// Returns whether there are operands.
    pub(crate) fn has_operands(self) -> bool {
        self.op != KFI_ATOMIC_READ
    }

    /// Returns whether the target is read only.
    pub(crate) fn is_read_only(self) -> bool {
        self.op == KFI_ATOMIC_READ
    }
}

#[kunit_tests(kfi_soft_atomics)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_their_operations() {
        assert!(Atomics::new(KFI_INT32, KFI_CSWAP, AtomicCall::Plain).is_err());
        assert!(Atomics::new(KFI_INT32, KFI_SUM, AtomicCall::Compare).is_err());
        assert!(Atomics::new(KFI_INT32, KFI_ATOMIC_READ, AtomicCall::Plain).is_err());
        assert!(Atomics::new(KFI_INT32, KFI_ATOMIC_READ, AtomicCall::Fetch).is_ok());
        assert!(Atomics::new(KFI_DOUBLE, KFI_SUM, AtomicCall::Plain).is_err());
        assert!(Atomics::new(KFI_UINT8, KFI_ATOMIC_OP_LAST, AtomicCall::Plain).is_err());
    }
}
