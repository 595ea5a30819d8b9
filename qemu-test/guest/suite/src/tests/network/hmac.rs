// SPDX-License-Identifier: GPL-2.0

//! HMAC-SHA256 as FIPS 180-4 and RFC 2104 have it, so that the kernel's is not compared with itself.

/// Bytes of a block.
const BLOCK: usize = 64;

/// Bytes of a code.
pub(super) type Mac = [u8; 32];

/// The first `COUNT` prime numbers.
fn primes<const COUNT: usize>() -> [u32; COUNT] {
    let mut found = [0; COUNT];
    let mut next = 2;
    for at in 0..COUNT {
        while found[..at].iter().any(|prime| next % prime == 0) {
            next += 1;
        }
        found[at] = next;
        next += 1;
    }
    found
}

/// The first 32 bits behind the point of a root of a number: the largest `r` with `r^power <= number * 2^(32
/// power)`.
fn root(number: u32, power: u32) -> u32 {
    let (mut low, mut high) = (0_u128, 1 << 40);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        let fits = match power {
            2 => middle.pow(2) <= u128::from(number) << 64,
            _ => middle.pow(3) <= u128::from(number) << 96,
        };
        if fits {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Cut: the bits before the point do not count.
    low as u32
}

#[expect(clippy::many_single_char_names, reason = "as the standard has them")]
fn sha256(parts: &[&[u8]]) -> Mac {
    let mut state = primes::<8>().map(|prime| root(prime, 2));
    let constants = primes::<64>().map(|prime| root(prime, 3));
    let mut message = parts.concat();
    let bits = 8 * message.len() as u64;
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(BLOCK) - 8, 0);
    message.extend(bits.to_be_bytes());
    for block in message.chunks_exact(BLOCK) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let a = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let b = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[at] = words[at - 16]
                .wrapping_add(a)
                .wrapping_add(words[at - 7])
                .wrapping_add(b);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, constant) in words.iter().zip(constants) {
            let one = h
                .wrapping_add(e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
                .wrapping_add(e & f ^ !e & g)
                .wrapping_add(constant)
                .wrapping_add(*word);
            let other = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22))
                .wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e) = (g, f, e, d.wrapping_add(one));
            (d, c, b, a) = (c, b, a, one.wrapping_add(other));
        }
        for (sum, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(word);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// Returns the code of a message, in parts, under a key of at most a block.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> Mac {
    let mut block = [0; BLOCK];
    block[..key.len()].copy_from_slice(key);
    let inner = block.map(|byte| byte ^ 0x36);
    let outer = block.map(|byte| byte ^ 0x5c);
    let inner = sha256(&[&[&inner[..]], parts].concat());
    sha256(&[&outer, &inner])
}

#[cfg(test)]
mod tests {
    use super::{hmac, sha256};

    #[test]
    fn digests_are_those_of_the_standard() {
        let of_abc = sha256(&[b"a", b"bc"]);
        assert_eq!(of_abc[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(of_abc[28..], [0xf2, 0x00, 0x15, 0xad]);
        assert_eq!(sha256(&[])[..4], [0xe3, 0xb0, 0xc4, 0x42]);
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(sha256(&[two_blocks])[..4], [0x24, 0x8d, 0x6a, 0x61]);
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 4231, 1 and 2.
        let one = hmac(&[0x0b; 20], &[b"Hi There"]);
        assert_eq!(one[..4], [0xb0, 0x34, 0x4c, 0x61]);
        assert_eq!(one[28..], [0x2e, 0x32, 0xcf, 0xf7]);
        let two = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(two[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
