// SPDX-License-Identifier: GPL-2.0

//! Messages that say who has sent them, and of which every byte can be checked.

use crate::control::Life;

/// Bytes of the shortest messages.
pub(crate) const SHORTEST: u64 = 40;

const MAGIC: u64 = 0x6b66_692d_6e65_7431;

/// Which queue a message goes through.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Lane {
    /// `kfi_send`.
    Plain,
    /// `kfi_tsend`.
    Tagged,
}

/// The beginning of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// The sender.
    pub(crate) from: Life,
    /// The receiver's machine.
    pub(crate) to: u32,
    /// Its queue.
    pub(crate) lane: Lane,
    /// Counts the messages of the sender to that machine and queue, from 1.
    pub(crate) sequence: u64,
}

/// Bytes that no other seed has, and no other place.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    for word in 0..len.div_ceil(8) {
        let mixed = (word as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(seed.wrapping_mul(0xd134_2543_de82_ef95));
        bytes.extend_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

impl Header {
    fn seed(&self) -> u64 {
        self.from
            .number
            .wrapping_add(self.sequence << 8)
            .wrapping_add(u64::from(self.to) << 2)
            .wrapping_add(self.lane as u64)
    }

    fn words(&self) -> [u64; 5] {
        [
            MAGIC,
            u64::from(self.from.machine) << 32 | u64::from(self.to),
            self.lane as u64,
            self.from.number,
            self.sequence,
        ]
    }

    /// Returns a message of that length.
    pub(crate) fn message(&self, len: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .words()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.extend(pattern(self.seed() ^ len, (len - SHORTEST) as usize));
        bytes
    }

    /// Checks a message, and returns its header.
    pub(crate) fn check(bytes: &[u8]) -> Result<Self, String> {
        let (head, rest) = bytes
            .split_at_checked(SHORTEST as usize)
            .ok_or_else(|| format!("a message of {} bytes", bytes.len()))?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&head[at * 8..at * 8 + 8]);
            u64::from_le_bytes(word)
        };
        let lane = if word(2) == 0 {
            Lane::Plain
        } else {
            Lane::Tagged
        };
        let header = Self {
            from: Life {
                machine: (word(1) >> 32) as u32,
                number: word(3),
            },
            to: word(1) as u32,
            lane,
            sequence: word(4),
        };
        if (0..5).map(word).ne(header.words()) {
            return Err(format!("no header: {head:x?}"));
        }
        let should = pattern(header.seed() ^ bytes.len() as u64, rest.len());
        if let Some(at) = rest
            .iter()
            .zip(&should)
            .position(|(is, should)| is != should)
        {
            return Err(format!(
                "byte {at} of {} behind {header:?} is {:#x}, should be {:#x}",
                rest.len(),
                rest[at],
                should[at]
            ));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            from: Life {
                machine: 3,
                number: 77,
            },
            to: 2,
            lane: Lane::Tagged,
            sequence: 1000,
        }
    }

    #[test]
    fn messages_say_whose_they_are() {
        for len in [SHORTEST, SHORTEST + 1, 4096] {
            let bytes = header().message(len);
            assert_eq!(bytes.len() as u64, len);
            assert_eq!(Header::check(&bytes), Ok(header()));
        }
    }

    #[test]
    fn every_byte_counts() {
        let bytes = header().message(200);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert_ne!(Header::check(&changed), Ok(header()), "byte {at}");
        }
        assert!(Header::check(&bytes[..199]).is_err());
        assert!(Header::check(&bytes[..39]).is_err());
    }
}
