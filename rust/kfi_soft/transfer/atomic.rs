// SPDX-License-Identifier: GPL-2.0

//! The computations of atomic operations.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::{
    kfi::{
        flags::Caps,
        provider::{
            atomics::*,
            kfi_datatype,
            kfi_op,
            AtomicCall, //
        }, //
    },
    wire::atomics::Atomics, //
};

/// The most bytes of operands that one operation has.
pub(crate) const MAX_BYTES: usize = 4096;

/// Turns an element into a number that compares as it does.
fn number(atomics: Atomics, element: [u8; 8]) -> i128 {
    let raw = u64::from_ne_bytes(element);
    // Elements fill the first bytes; on a big-endian machine these are the high ones.
    let bits = u32::try_from(atomics.size()).unwrap_or(8).saturating_mul(8);
    let raw = if cfg!(target_endian = "big") {
        raw.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0)
    } else {
        raw
    };
    match atomics.datatype() {
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
fn element(atomics: Atomics, number: u64) -> [u8; 8] {
    let bits = u32::try_from(atomics.size()).unwrap_or(8).saturating_mul(8);
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
    atomics: Atomics,
    target: [u8; 8],
    operand: [u8; 8],
    compare: [u8; 8],
) -> Option<[u8; 8]> {
    let old = number(atomics, target);
    let new = number(atomics, operand);
    let with = number(atomics, compare);
    // Low bits are the same whatever the sign.
    let (old_bits, new_bits, with_bits) = (old as u64, new as u64, with as u64);
    let when = |condition: bool| condition.then_some(new_bits);
    let result = match atomics.op() {
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
    result.map(|number| element(atomics, number))
}

/// Returns the capabilities that an initiator needs for an operation.
pub(crate) fn needed_to_post(call: AtomicCall) -> Caps {
    match call {
        AtomicCall::Plain => Caps::ATOMIC | Caps::WRITE,
        AtomicCall::Fetch | AtomicCall::Compare => Caps::ATOMIC | Caps::READ,
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
        Ok(super::apply(atomics, target, operand, compare).map(u64::from_ne_bytes))
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
}
