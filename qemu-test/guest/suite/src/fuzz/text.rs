// SPDX-License-Identifier: GPL-2.0

//! Sequences as text: what they are kept as.
//!
//! A line of JSON says all of a sequence, whatever becomes of the generator that has made it. It is
//! read by [`Entry::parse`], which takes what this program could have written and nothing else.

use std::fmt;
use std::str::FromStr;

use super::generate::{Action, Block, Call, Memory, Slot, Step, Value};
use crate::raw;
use crate::requests::{Class, What, REQUESTS};

/// Steps that a sequence may have.
pub const MAX_STEPS: usize = 100;
/// Bytes that one structure, or array of them, may have.
const MAX_BYTES: usize = 1 << 16;
/// No slot has a larger number.
const MAX_SLOT: Slot = 1 << 24;
/// The widest member: the address of an endpoint.
const MAX_WIDTH: usize = kfi::uapi::KFI_SHIM_ADDR_MAX as usize;

/// The name of a sequence: a hash of its text, the same for the same text everywhere.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name(u64);

impl Name {
    /// The name of a text (FNV-1a).
    pub fn of(text: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u64::from_str_radix(text, 16).ok());
        number
            .flatten()
            .map(Self)
            .ok_or_else(|| format!("{text}: not the name of a sequence"))
    }
}

/// A sequence that is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its own.
    pub name: Name,
    /// Its steps.
    pub steps: Vec<Step>,
    /// All of it.
    pub text: String,
}

impl Entry {
    /// Of a sequence.
    pub fn new(steps: Vec<Step>) -> Result<Self, String> {
        let text = serde_json::to_string(&steps).map_err(|error| error.to_string())?;
        Ok(Self {
            name: Name::of(&text),
            steps,
            text,
        })
    }

    /// Reads a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let steps: Vec<Step> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        check(&steps)?;
        Ok(Self {
            name: Name::of(text),
            steps,
            text: text.to_owned(),
        })
    }
}

/// Whether a sequence is one that can be run: its numbers are within bounds, and what it takes out
/// of an answer is what the answer has there.
fn check(steps: &[Step]) -> Result<(), String> {
    let good = steps.len() <= MAX_STEPS
        && steps.iter().all(|step| match &step.action {
            Action::Call(call) => is_good(call),
            Action::Map(slot) | Action::Read(slot) | Action::CloseDescriptor(slot) => {
                *slot <= MAX_SLOT
            }
            Action::Unmap => true,
        });
    good.then_some(())
        .ok_or_else(|| "a step that cannot be".to_owned())
}

fn is_good(call: &Call) -> bool {
    let as_it_was = call.number == call.request;
    let resized = raw::resized(call.number, 0) == raw::resized(call.request, 0);
    let one_bit = (call.number ^ call.request).is_power_of_two();
    let size = call.argument.bytes.len();
    let mut slots = call.closes.iter().chain(&call.needs);
    let opens = |&(offset, width, class, slot): &(usize, usize, Class, Slot)| {
        slot <= MAX_SLOT && gives(call.request, offset, width, class)
    };
    (resized || one_bit)
        && (!as_it_was || size == raw::size_of_request(call.request))
        && is_block_good(&call.argument)
        && call.opens.iter().all(opens)
        && call.result.is_none_or(|offset| offset <= MAX_BYTES)
        && call.name.is_none_or(|offset| !as_it_was || offset <= size)
        && slots.all(|slot| *slot <= MAX_SLOT)
}

/// Whether a new object of this class comes out there.
fn gives(request: u32, offset: usize, width: usize, class: Class) -> bool {
    let same = REQUESTS
        .iter()
        .filter(|known| known.number & 0xffff == request & 0xffff);
    same.flat_map(|known| known.argument.members).any(|member| {
        let new = matches!(member.what, What::New(new) if new == class);
        new && (member.offset, member.width) == (offset, width)
    })
}

fn is_block_good(block: &Block) -> bool {
    let values = |(offset, width, value): &(usize, usize, Value)| {
        let slot = match value {
            Value::Object(slot) => *slot,
            Value::Name(index) => *index,
        };
        *offset <= MAX_BYTES && *width <= MAX_WIDTH && slot <= MAX_SLOT
    };
    let pointers = |(offset, memory): &(usize, Memory)| {
        *offset <= MAX_BYTES
            && match memory {
                Memory::Block(inner) => is_block_good(inner),
                Memory::Room(size) => *size <= MAX_BYTES,
                Memory::Bad(address) => raw::BAD_ADDRESSES.contains(address),
            }
    };
    block.values.iter().all(values) && block.pointers.iter().all(pointers)
}

/// The name of a step as text.
pub(super) mod name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::super::generate::{StepName, OTHERS};
    use crate::requests::REQUESTS;

    pub(crate) fn serialize<S: Serializer>(name: &StepName, to: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(*name, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<StepName, D::Error> {
        let name = String::deserialize(from)?;
        let mut names = REQUESTS.iter().map(|request| request.name).chain(OTHERS);
        names
            .find(|known| **known == *name)
            .ok_or_else(|| D::Error::custom("no such step"))
    }
}

/// Bytes most of which are 0: how many there are, and the words that are not 0.
pub(super) mod sparse {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::MAX_BYTES;

    const WORD: usize = 4;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let word = |bytes: &[u8]| {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_le_bytes(word)
        };
        let words: Vec<(usize, u32)> = bytes.chunks(WORD).map(word).enumerate().collect();
        let words: Vec<_> = words.into_iter().filter(|(_, word)| *word != 0).collect();
        (bytes.len(), words).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let (length, words): (usize, Vec<(usize, u32)>) = Deserialize::deserialize(from)?;
        if length > MAX_BYTES {
            return Err(D::Error::custom("too many bytes"));
        }
        let mut bytes = vec![0; length];
        for (number, word) in words {
            let place = bytes.chunks_mut(WORD).nth(number);
            let place = place.ok_or_else(|| D::Error::custom("a word behind the end"))?;
            let length = place.len();
            place.copy_from_slice(&word.to_le_bytes()[..length]);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate::sequence;
    use super::*;

    #[test]
    fn there_and_back() {
        for seed in 0..50 {
            let (stage, own) = sequence(seed, 0, MAX_STEPS / 2);
            let steps = [stage, own].concat();
            let entry = Entry::new(steps[..MAX_STEPS.min(steps.len())].to_vec()).unwrap();
            assert_eq!(Entry::parse(&entry.text), Ok(entry.clone()));
            assert_eq!(entry.name.to_string().parse(), Ok(entry.name));
            assert!(entry.text.is_ascii() && !entry.text.contains(char::is_whitespace));
        }
    }

    #[test]
    fn names_are_those_of_the_host() {
        // As qemu-test/test_corpus.py has them.
        assert_eq!(Name::of("").to_string(), "cbf29ce484222325");
        assert_eq!(Name::of("foobar").to_string(), "85944171f73967e8");
        for text in [
            "",
            "85944171f73967e",
            "+5944171f73967e8",
            "85944171f73967e80",
        ] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_sparse() {
        let block = Block {
            bytes: vec![0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3],
            ..Block::default()
        };
        let text = serde_json::to_string(&block).unwrap();
        assert_eq!(text, r#"{"bytes":[13,[[1,513],[3,3]]]}"#);
        assert_eq!(serde_json::from_str::<Block>(&text).unwrap(), block);
        for text in [
            r#"{"bytes":[13,[[4,1]]]}"#,
            r#"{"bytes":[99999999999,[]]}"#,
            r#"{"bytes":[4]}"#,
        ] {
            assert!(serde_json::from_str::<Block>(text).is_err(), "{text}");
        }
    }

    /// A sequence of one request, changed before it is written.
    fn changed(change: impl FnOnce(&mut Call)) -> Result<Entry, String> {
        let (mut stage, _) = sequence(1, 0, 0);
        let Action::Call(call) = &mut stage[0].action else {
            return Err("no request".to_owned());
        };
        change(call);
        Entry::parse(&Entry::new(stage)?.text)
    }

    #[test]
    fn what_nobody_wrote_is_refused() {
        assert!(changed(|_| ()).is_ok());
        assert!(changed(|call| call.number ^= 1 << 3).is_ok());
        assert!(changed(|call| call.number ^= 0b11).is_err());
        assert!(changed(|call| call.argument.bytes.push(0)).is_err());
        assert!(changed(|call| call.opens[0].2 = Class::Descriptor).is_err());
        assert!(changed(|call| call.opens[0].0 += 4).is_err());
        assert!(changed(|call| call.opens[0].3 = usize::MAX).is_err());
        assert!(changed(|call| call.needs.push(usize::MAX)).is_err());
        let bad = |address| (0, Memory::Bad(address));
        assert!(changed(|call| call.argument.pointers.push(bad(8))).is_ok());
        assert!(changed(|call| call.argument.pointers.push(bad(0x1000))).is_err());
        assert!(Entry::parse("[]").is_ok());
        assert!(Entry::parse("").is_err());
        assert!(Entry::parse(r#"[{"name":"mmap","action":"Unmap"}]"#).is_ok());
        assert!(Entry::parse(r#"[{"name":"nmap","action":"Unmap"}]"#).is_err());
    }
}
