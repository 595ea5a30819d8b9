// SPDX-License-Identifier: GPL-2.0

//! The computations of atomic operations.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::provider::{
    atomics::*,
    datatype_size,
    kfi_datatype,
    kfi_op,
    AtomicCall, //
};

/// The most bytes of operands that one operation has.
pub(crate) const MAX_BYTES: usize = 4096;

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

    /// Turns an element into a number that compares as it does.
    fn number(self, element: [u8; 8]) -> i128 {
        let raw = u64::from_ne_bytes(element);
        // Elements fill the first bytes; on a big-endian machine these are the high ones.
        let bits = u32::try_from(self.size()).unwrap_or(8).saturating_mul(8);
        let raw = if cfg!(target_endian = "big") {
            raw.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0)
        } else {
            raw
        };
        match self.datatype {
            KFI_INT8 => i128::from((raw & 0xff) as u8 as i8),
            KFI_INT16 => i128::from((raw & 0xffff) as u16 as i16),
            KFI_INT32 => i128::from((raw & 0xffff_ffff) as u32 as i32),
            KFI_INT64 => i128::from(raw as i64),
            KFI_UINT8 => i128::from(raw & 0xff),
            KFI_UINT16 => i128::from(raw & 0xffff),
            KFI_UINT32 => i128::from(raw & 0xffff_ffff),
            _ => i128::from(raw),
        }
    }

    /// Turns a number into an element, cutting off what is too much.
    fn element(self, number: u64) -> [u8; 8] {
        let bits = u32::try_from(self.size()).unwrap_or(8).saturating_mul(8);
        if cfg!(target_endian = "big") {
            number
                .checked_shl(64u32.saturating_sub(bits))
                .unwrap_or(0)
                .to_ne_bytes()
        } else {
            number.to_ne_bytes()
        }
    }

    /// Computes what a target becomes; `None` if it stays.
    pub(crate) fn apply(
        self,
        target: [u8; 8],
        operand: [u8; 8],
        compare: [u8; 8],
    ) -> Option<[u8; 8]> {
        let old = self.number(target);
        let new = self.number(operand);
        let with = self.number(compare);
        // Low bits are the same whatever the sign.
        let (old_bits, new_bits, with_bits) = (old as u64, new as u64, with as u64);
        let when = |condition: bool| condition.then_some(new_bits);
        let result = match self.op {
            KFI_MIN => Some(old.min(new) as u64),
            KFI_MAX => Some(old.max(new) as u64),
            KFI_SUM => Some(old_bits.wrapping_add(new_bits)),
            KFI_PROD => Some(old_bits.wrapping_mul(new_bits)),
            KFI_LOR => Some(u64::from(old != 0 || new != 0)),
            KFI_LAND => Some(u64::from(old != 0 && new != 0)),
            KFI_LXOR => Some(u64::from((old != 0) != (new != 0))),
            KFI_BOR => Some(old_bits | new_bits),
            KFI_BAND => Some(old_bits & new_bits),
            KFI_BXOR => Some(old_bits ^ new_bits),
            KFI_ATOMIC_WRITE => Some(new_bits),
            KFI_CSWAP => when(with == old),
            KFI_CSWAP_NE => when(with != old),
            KFI_CSWAP_LE => when(with <= old),
            KFI_CSWAP_LT => when(with < old),
            KFI_CSWAP_GE => when(with >= old),
            KFI_CSWAP_GT => when(with > old),
            KFI_MSWAP => Some((new_bits & with_bits) | (old_bits & !with_bits)),
            _ => None,
        };
        result.map(|number| self.element(number))
    }
}

/// Returns the most elements of an operation; `EOPNOTSUPP` if there is no such operation.
pub(crate) fn limit(datatype: kfi_datatype, op: kfi_op, call: AtomicCall) -> Result<usize> {
    let size = Atomics::new(datatype, op, call)?.size();
    MAX_BYTES.checked_div(size).ok_or(EOPNOTSUPP)
}

#[kunit_tests(kfi_soft_atomic)]
mod tests {
    use super::*;

    fn apply(
        datatype: kfi_datatype,
        op: kfi_op,
        call: AtomicCall,
        values: [u64; 3],
    ) -> Result<Option<u64>> {
        let atomics = Atomics::new(datatype, op, call)?;
        let [target, operand, compare] = values.map(u64::to_ne_bytes);
        Ok(atomics
            .apply(target, operand, compare)
            .map(u64::from_ne_bytes))
    }

    #[test]
    fn signs_matter_for_order_only() -> Result {
        let minus_one = 0xff;
        let plain = AtomicCall::Plain;
        let low = |value: Option<u64>| value.map(|value| value & 0xff);
        assert_eq!(
            low(apply(KFI_INT8, KFI_MIN, plain, [1, minus_one, 0])?),
            Some(0xff)
        );
        assert_eq!(
            low(apply(KFI_UINT8, KFI_MIN, plain, [1, minus_one, 0])?),
            Some(1)
        );
        assert_eq!(
            low(apply(KFI_INT8, KFI_MAX, plain, [1, minus_one, 0])?),
            Some(1)
        );
        assert_eq!(
            low(apply(KFI_INT8, KFI_SUM, plain, [1, minus_one, 0])?),
            Some(0)
        );
        assert_eq!(
            low(apply(KFI_UINT8, KFI_PROD, plain, [16, 17, 0])?),
            Some(16)
        );
        assert_eq!(
            apply(KFI_UINT64, KFI_PROD, plain, [u64::MAX, u64::MAX, 0])?,
            Some(1)
        );
        assert_eq!(apply(KFI_INT64, KFI_MAX, plain, [u64::MAX, 5, 0])?, Some(5));
        Ok(())
    }

    #[test]
    fn conditions_compare_with_the_target() -> Result {
        let swap =
            |op, target, compare| apply(KFI_UINT32, op, AtomicCall::Compare, [target, 9, compare]);
        assert_eq!(swap(KFI_CSWAP, 4, 4)?, Some(9));
        assert_eq!(swap(KFI_CSWAP, 4, 5)?, None);
        assert_eq!(swap(KFI_CSWAP_NE, 4, 5)?, Some(9));
        assert_eq!(swap(KFI_CSWAP_LE, 4, 4)?, Some(9));
        assert_eq!(swap(KFI_CSWAP_LT, 4, 4)?, None);
        assert_eq!(swap(KFI_CSWAP_GE, 4, 3)?, None);
        assert_eq!(swap(KFI_CSWAP_GT, 4, 5)?, Some(9));
        assert_eq!(swap(KFI_MSWAP, 0b1100, 0b0101)?, Some(0b1001));
        Ok(())
    }

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
