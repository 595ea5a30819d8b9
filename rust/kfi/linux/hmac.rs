// SPDX-License-Identifier: GPL-2.0

//! HMAC-SHA256: shows that bytes come from somebody who has a secret.
//!
//! C header: [`include/crypto/sha2.h`](srctree/include/crypto/sha2.h).

use core::mem::{
    size_of,
    MaybeUninit, //
};
use kernel::prelude::*;

use super::bindings;

/// Bytes of a code.
pub const MAC_LEN: usize = 32;

/// The code of a message under a secret.
pub type Mac = [u8; MAC_LEN];

/// A secret, in the form in which codes are computed with it.
///
/// It stays where it is, so that there is no other copy of it, and nothing of it is left when it is
/// dropped.
///
/// # Invariants
///
/// It was prepared.
pub struct HmacKey(KBox<bindings::hmac_sha256_key>);

impl HmacKey {
    /// Takes a secret of any length. The caller's copy is the caller's to erase.
    pub fn new(secret: &[u8]) -> Result<Self> {
        let mut key = KBox::<bindings::hmac_sha256_key>::new_uninit(GFP_KERNEL)?;
        // SAFETY: There is memory for a key, and as many bytes as it says of the secret.
        unsafe {
            bindings::hmac_sha256_preparekey(key.as_mut_ptr(), secret.as_ptr(), secret.len());
        }
        // SAFETY: That has written all of it.
        let key = unsafe { key.assume_init() };
        // INVARIANT: So it was prepared.
        Ok(Self(key))
    }

    /// Returns the code of a message, which is these parts one behind the other.
    pub fn mac(&self, parts: &[&[u8]]) -> Mac {
        let mut context = MaybeUninit::<bindings::hmac_sha256_ctx>::uninit();
        let context = context.as_mut_ptr();
        // SAFETY: There is memory for a context, and the key is one by the type invariants.
        unsafe { bindings::hmac_sha256_init(context, &raw const *self.0) };
        for part in parts {
            // SAFETY: It was initialised, and `part` has that many bytes.
            unsafe { bindings::hmac_sha256_update(context, part.as_ptr(), part.len()) };
        }
        let mut mac = [0; MAC_LEN];
        // SAFETY: It was initialised, and is not used any more: this erases it. The code has as many
        // bytes as are written.
        unsafe { bindings::hmac_sha256_final(context, mac.as_mut_ptr()) };
        mac
    }
}

impl Drop for HmacKey {
    fn drop(&mut self) {
        let key: *mut bindings::hmac_sha256_key = &raw mut *self.0;
        // SAFETY: The key owns these bytes, nobody uses them any more, and any value is valid for them.
        unsafe { bindings::zeroize(key.cast(), size_of::<bindings::hmac_sha256_key>()) };
    }
}

/// Returns whether two codes are the same; how long that takes says nothing about where they differ.
pub fn is_same(one: &Mac, other: &Mac) -> bool {
    // SAFETY: Both have `MAC_LEN` bytes.
    !unsafe { bindings::differs(one.as_ptr().cast(), other.as_ptr().cast(), MAC_LEN) }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(linux_hmac)]
mod tests {
    use super::*;

    /// Returns the first bytes of a code, which no other message of these tests has.
    fn begin(mac: &Mac) -> u64 {
        mac.first_chunk().copied().map_or(0, u64::from_be_bytes)
    }

    /// The test cases of RFC 4231, by its numbers.
    #[test]
    fn codes_are_those_of_the_standard() -> Result {
        let mac = |key: &[u8], data: &[u8]| Ok::<_, Error>(HmacKey::new(key)?.mac(&[data]));
        let first = [
            0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b,
            0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c,
            0x2e, 0x32, 0xcf, 0xf7,
        ];
        // 1.
        assert!(is_same(&mac(&[0x0b; 20], b"Hi There")?, &first));
        // 2: a key that is shorter than a code.
        let second = mac(b"Jefe", b"what do ya want for nothing?")?;
        assert_eq!(begin(&second), 0x5bdc_c146_bf60_754e);
        // 3.
        assert_eq!(
            begin(&mac(&[0xaa; 20], &[0xdd; 50])?),
            0x773e_a91e_3680_0e46
        );
        // 6: one that is longer than a block.
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(begin(&mac(&[0xaa; 131], text)?), 0x60e4_3159_1ee0_b67f);
        // 7: a message of several blocks as well.
        let text = b"This is a test using a larger than block-size key and a larger than \
            block-size data. The key needs to be hashed before being used by the HMAC algorithm.";
        assert_eq!(begin(&mac(&[0xaa; 131], text)?), 0x9b09_ffa7_1b94_2fcb);
        Ok(())
    }

    #[test]
    fn parts_are_one_message() -> Result {
        let key = HmacKey::new(b"secret")?;
        let whole = key.mac(&[b"one message"]);
        assert!(is_same(&whole, &key.mac(&[b"one", b"", b" message"])));
        assert!(!is_same(&whole, &key.mac(&[b"one", b"message"])));
        assert!(!is_same(
            &whole,
            &HmacKey::new(b"secret.")?.mac(&[b"one message"])
        ));
        Ok(())
    }

    #[test]
    fn codes_differ_by_any_bit() -> Result {
        let one = HmacKey::new(b"secret")?.mac(&[b"message"]);
        for at in 0..MAC_LEN {
            for bit in 0..8 {
                let mut other = one;
                if let Some(byte) = other.get_mut(at) {
                    *byte ^= 1 << bit;
                }
                assert!(!is_same(&one, &other));
            }
        }
        assert!(is_same(&one, &one));
        Ok(())
    }
}
