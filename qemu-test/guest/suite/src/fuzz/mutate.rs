// SPDX-License-Identifier: GPL-2.0

//! Changes sequences a little.
//!
//! The result is a sequence, too: objects that a piece opens get slots of their own where it is
//! put, and others that it needs are taken from those that are there.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::generate::{put, Action, Block, Call, Generator, Memory, Slot, Step, Value};
use super::text::MAX_STEPS;
use crate::requests::{Class, What, REQUESTS};

/// Steps that are put in, taken out or copied at a time.
const PIECE: usize = 6;
/// Copies that are made at a time.
const COPIES: usize = 8;
/// Numbers at which something may begin or end.
const EDGES: [u64; 32] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    15,
    16,
    31,
    32,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    4095,
    4096,
    4097,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// A sequence, changed as the seed says, perhaps with pieces of a mate.
pub fn mutate(steps: &[Step], mate: &[Step], seed: u64) -> Vec<Step> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut steps = steps.to_vec();
    // One change as often as two, four or eight.
    for _ in 0..1 << rng.random_range(0..4) {
        change(&mut steps, mate, &mut rng);
    }
    steps.truncate(MAX_STEPS);
    steps
}

fn change(steps: &mut Vec<Step>, mate: &[Step], rng: &mut SmallRng) {
    match rng.random_range(0..16) {
        0..5 => change_number(steps, rng),
        5..7 => change_object(steps, rng),
        7..10 => insert(steps, rng),
        10 => drop(cut(steps, rng)),
        11 => {
            let piece = cut(steps, rng);
            let at = rng.random_range(0..=steps.len());
            steps.splice(at..at, piece);
        }
        12 | 13 => copy(steps, rng),
        14 => graft(steps, mate, rng),
        _ => spoil(steps, rng),
    }
}

/// Puts steps in that the generator would go on with there.
fn insert(steps: &mut Vec<Step>, rng: &mut SmallRng) {
    let at = rng.random_range(0..=steps.len());
    let mut generator = Generator::behind(&steps[..at], next_slot(steps), rng.random());
    let new: Vec<Step> = (0..rng.random_range(1..=PIECE))
        .map(|_| generator.step())
        .collect();
    steps.splice(at..at, new);
}

/// Where a piece is.
fn piece(count: usize, rng: &mut SmallRng) -> std::ops::Range<usize> {
    if count == 0 {
        return 0..0;
    }
    let start = rng.random_range(0..count);
    start..count.min(start + rng.random_range(1..=PIECE))
}

/// Takes a piece out.
fn cut(steps: &mut Vec<Step>, rng: &mut SmallRng) -> Vec<Step> {
    let piece = piece(steps.len(), rng);
    steps.drain(piece).collect()
}

/// Puts copies of a piece behind it, or anywhere.
fn copy(steps: &mut Vec<Step>, rng: &mut SmallRng) {
    let piece = piece(steps.len(), rng);
    let copies = rng.random_range(1..=COPIES);
    let at = if rng.random() {
        piece.end
    } else {
        rng.random_range(0..=steps.len())
    };
    let original = steps[piece].to_vec();
    for _ in 0..copies {
        if steps.len() >= MAX_STEPS {
            return;
        }
        let copy = with_own_slots(&original, next_slot(steps), Some);
        steps.splice(at..at, copy);
    }
}

/// Puts a piece of the mate in, or all that it ends with.
fn graft(steps: &mut Vec<Step>, mate: &[Step], rng: &mut SmallRng) {
    let mut piece = piece(mate.len(), rng);
    if rng.random_ratio(1, 3) {
        piece.end = mate.len();
    }
    let at = rng.random_range(0..=steps.len());
    let classes = classes(mate);
    let mut here = Generator::behind(&steps[..at], 0, rng.random());
    let same_class = |slot| here.pick(&[*classes.get(&slot)?]);
    let new = with_own_slots(&mate[piece], next_slot(steps), same_class);
    steps.splice(at..at, new);
}

/// Changes a request as the generator does now and then.
fn spoil(steps: &mut [Step], rng: &mut SmallRng) {
    if let Some(step) = calls(steps).random(rng) {
        *step = Generator::new(rng.random()).spoil(step.clone());
    }
}

/// Changes a number in a request, or in what it points to.
fn change_number(steps: &mut [Step], rng: &mut SmallRng) {
    let Some(call) = calls(steps).random(rng).and_then(as_call) else {
        return;
    };
    let request = REQUESTS.iter().find(|known| known.number == call.request);
    let members = request.map_or(&[][..], |known| known.argument.members);
    let members: Vec<_> = members
        .iter()
        .filter(|member| is_number(member.what))
        .collect();
    // It may now succeed without what it needed.
    call.needs.clear();
    let was = about(call);
    if !members.is_empty() && rng.random_ratio(2, 3) {
        let member = members[rng.random_range(0..members.len())];
        let (offset, width) = (member.offset, member.width);
        let value = match rng.random_range(0..3) {
            0 => Generator::new(rng.random()).number(member.what),
            1 => edge(member.what, rng),
            _ => near(number(&call.argument.bytes, offset, width), width, rng),
        };
        put(&mut call.argument.bytes, offset, width, value);
    } else {
        let mut which = rng.random_range(0..blocks(&call.argument));
        let Some(block) = nth_block(&mut call.argument, &mut which) else {
            return;
        };
        let width = if rng.random() { 4 } else { 8 };
        let places = block.bytes.len() / width;
        if places == 0 {
            return;
        }
        let offset = width * rng.random_range(0..places);
        let value = match rng.random_range(0..2) {
            0 => EDGES[rng.random_range(0..EDGES.len())],
            _ => near(number(&block.bytes, offset, width), width, rng),
        };
        put(&mut block.bytes, offset, width, value);
        // A handle would be written over it.
        block
            .values
            .retain(|(at, length, _)| at + length <= offset || offset + width <= *at);
    }
    settle(call, was);
}

/// Whether it is a number that says by itself what it means.
fn is_number(what: What) -> bool {
    matches!(
        what,
        What::Pick(_)
            | What::Up(_)
            | What::Bits(_)
            | What::Of(_)
            | What::Flag(_)
            | What::Flags(_)
            | What::Set(_)
            | What::Context
            | What::Timeout
            | What::Size
    )
}

/// An edge of what a member may be, or of any number.
fn edge(what: What, rng: &mut SmallRng) -> u64 {
    match what {
        What::Up(last) if rng.random() => last.wrapping_add(rng.random_range(0..2)),
        What::Pick(some) | What::Bits(some) | What::Of(some)
            if !some.is_empty() && rng.random() =>
        {
            some[rng.random_range(0..some.len())]
        }
        _ => EDGES[rng.random_range(0..EDGES.len())],
    }
}

/// A number not far from another one.
fn near(value: u64, width: usize, rng: &mut SmallRng) -> u64 {
    match rng.random_range(0..4) {
        0 => value.wrapping_add(1),
        1 => value.wrapping_sub(1),
        2 => value.wrapping_mul(2),
        _ => value ^ 1 << rng.random_range(0..8 * width.clamp(1, 8)),
    }
}

fn number(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    let width = width.min(8);
    if let Some(place) = bytes.get(offset..offset + width) {
        value[..width].copy_from_slice(place);
    }
    u64::from_ne_bytes(value)
}

/// Lets a step be about another object: of the same class, as a rule.
fn change_object(steps: &mut [Step], rng: &mut SmallRng) {
    if steps.is_empty() {
        return;
    }
    let at = rng.random_range(0..steps.len());
    let classes = classes(steps);
    let mut all: Vec<(Slot, Class)> = classes
        .iter()
        .map(|(slot, class)| (*slot, *class))
        .collect();
    // In an order that does not depend on the table.
    all.sort_unstable_by_key(|(slot, _)| *slot);
    let all: Vec<Class> = all.into_iter().map(|(_, class)| class).collect();
    let mut here = Generator::behind(&steps[..at], 0, rng.random());
    let same = rng.random_ratio(3, 4);
    let mut other = |slot: &Slot, same: bool| match classes.get(slot).filter(|_| same) {
        Some(class) => here.pick(&[*class]),
        None if same => None,
        None => here.pick(&all),
    };
    match &mut steps[at].action {
        // Memory is touched where it says: not at any number.
        Action::Map(slot) | Action::Read(slot) | Action::CloseDescriptor(slot) => {
            *slot = other(slot, true).unwrap_or(*slot);
        }
        Action::Unmap => {}
        Action::Call(call) => {
            let was = about(call);
            let mut count: usize = 0;
            objects(&mut call.argument, &mut |_| count += 1);
            if count == 0 {
                return;
            }
            let mut left = rng.random_range(0..count);
            objects(&mut call.argument, &mut |slot| {
                if left == 0 {
                    *slot = other(slot, same).unwrap_or(*slot);
                }
                // Past all of them once it was found.
                left = left.wrapping_sub(1);
            });
            settle(call, was);
        }
    }
}

/// The object that a request is about, which is the first member of its argument.
fn about(call: &Call) -> Option<Slot> {
    let mut values = call.argument.values.iter();
    values.find_map(|(offset, _, value)| match value {
        Value::Object(slot) if *offset == 0 => Some(*slot),
        _ => None,
    })
}

/// Lets what follows from the object be that of the present one. Of a request of which nothing was
/// expected, nothing is.
fn settle(call: &mut Call, was: Option<Slot>) {
    let now = about(call);
    if now != was && call.needs.iter().any(|slot| Some(*slot) == was) {
        call.needs = now.into_iter().collect();
    }
    let named = |slot: &Slot| {
        let mut values = call.argument.values.iter();
        values.any(|(_, _, value)| *value == Value::Object(*slot))
    };
    call.needs.retain(named);
    if call.closes.is_some() {
        call.closes = now;
    }
}

/// The steps that are requests.
fn calls(steps: &mut [Step]) -> Chosen<'_> {
    let call = |step: &&mut Step| matches!(step.action, Action::Call(_));
    Chosen(steps.iter_mut().filter(call).collect())
}

struct Chosen<'a>(Vec<&'a mut Step>);

impl<'a> Chosen<'a> {
    /// One of them.
    fn random(mut self, rng: &mut SmallRng) -> Option<&'a mut Step> {
        if self.0.is_empty() {
            return None;
        }
        let index = rng.random_range(0..self.0.len());
        Some(self.0.swap_remove(index))
    }
}

fn as_call(step: &mut Step) -> Option<&mut Call> {
    match &mut step.action {
        Action::Call(call) => Some(call),
        _ => None,
    }
}

/// How many blocks there are, with those that it points to.
fn blocks(block: &Block) -> usize {
    let inner = block.pointers.iter().map(|(_, memory)| match memory {
        Memory::Block(inner) => blocks(inner),
        _ => 0,
    });
    1 + inner.sum::<usize>()
}

/// The block itself, or the one that comes so many later.
fn nth_block<'a>(block: &'a mut Block, left: &mut usize) -> Option<&'a mut Block> {
    if *left == 0 {
        return Some(block);
    }
    *left -= 1;
    block
        .pointers
        .iter_mut()
        .find_map(|(_, memory)| match memory {
            Memory::Block(inner) => nth_block(inner, left),
            _ => None,
        })
}

/// Hands over all objects that a block names, with those of what it points to.
fn objects(block: &mut Block, see: &mut dyn FnMut(&mut Slot)) {
    for (_, _, value) in &mut block.values {
        if let Value::Object(slot) = value {
            see(slot);
        }
    }
    for (_, memory) in &mut block.pointers {
        if let Memory::Block(inner) = memory {
            objects(inner, see);
        }
    }
}

/// Hands over all slots that a step names, those that it opens first.
fn slots(step: &mut Step, see: &mut dyn FnMut(&mut Slot)) {
    match &mut step.action {
        Action::Call(call) => {
            for (_, _, _, slot) in &mut call.opens {
                see(slot);
            }
            objects(&mut call.argument, see);
            call.closes.iter_mut().for_each(&mut *see);
            call.needs.iter_mut().for_each(see);
        }
        Action::Map(slot) | Action::Read(slot) | Action::CloseDescriptor(slot) => see(slot),
        Action::Unmap => {}
    }
}

/// The first slot that no step names.
fn next_slot(steps: &[Step]) -> Slot {
    let mut next = 0;
    for step in steps {
        slots(&mut step.clone(), &mut |slot| next = next.max(*slot + 1));
    }
    next
}

/// Classes of the objects in the slots that steps open.
fn classes(steps: &[Step]) -> HashMap<Slot, Class> {
    let calls = steps.iter().filter_map(|step| match &step.action {
        Action::Call(call) => Some(call),
        _ => None,
    });
    let opened = calls.flat_map(|call| &call.opens);
    opened.map(|(_, _, class, slot)| (*slot, *class)).collect()
}

/// A copy of a piece that opens objects in slots from `next` on. Other slots that it names are
/// replaced by what `outside` says, or by one that nothing opens.
fn with_own_slots(
    piece: &[Step],
    next: Slot,
    mut outside: impl FnMut(Slot) -> Option<Slot>,
) -> Vec<Step> {
    let mut opened: Vec<Slot> = classes(piece).into_keys().collect();
    // In an order that does not depend on the table.
    opened.sort_unstable();
    let nothing = next + opened.len();
    let mut own: HashMap<Slot, Slot> = opened.into_iter().zip(next..).collect();
    let mut copy = piece.to_vec();
    for step in &mut copy {
        slots(step, &mut |slot| {
            let new = own
                .entry(*slot)
                .or_insert_with(|| outside(*slot).unwrap_or(nothing));
            *slot = *new;
        });
    }
    copy
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::generate::sequence;
    use super::super::text::Entry;
    use super::*;

    fn steps(seed: u64) -> Vec<Step> {
        let (stage, own) = sequence(seed, 0, 30);
        [stage, own].concat()
    }

    /// Checks that hold for any sequence.
    fn check(steps: &[Step]) {
        let mut opened = HashSet::new();
        for step in steps {
            if let Action::Call(call) = &step.action {
                for (_, _, _, slot) in &call.opens {
                    assert!(opened.insert(*slot), "opened twice: {step}");
                }
                assert!(
                    call.closes.is_none() || call.closes == about(call),
                    "{step}"
                );
                if let Some(needed) = call.needs.first() {
                    assert_eq!(about(call), Some(*needed), "{step}");
                }
            }
        }
        let entry = Entry::new(steps.to_vec()).unwrap();
        assert_eq!(Entry::parse(&entry.text), Ok(entry));
    }

    #[test]
    fn what_comes_out_are_sequences() {
        for seed in 0..100 {
            let mate = steps(seed + 1);
            let mut now = steps(seed);
            check(&now);
            for round in 0..5 {
                now = mutate(&now, &mate, 100 * seed + round);
                check(&now);
            }
            assert!(now.len() <= MAX_STEPS);
        }
    }

    #[test]
    fn the_seed_says_it_all() {
        let (own, mate) = (steps(1), steps(2));
        for seed in 0..50 {
            assert_eq!(mutate(&own, &mate, seed), mutate(&own, &mate, seed));
        }
        let different = (0..50).filter(|seed| mutate(&own, &mate, *seed) != own);
        assert!(different.count() > 40);
    }

    #[test]
    fn nothing_can_be_changed_too() {
        for seed in 0..200 {
            check(&mutate(&[], &[], seed));
        }
    }

    #[test]
    fn pieces_find_what_they_want() {
        // All that the mate does with its objects is done with those that are there.
        let (mut own, _) = sequence(1, 0, 0);
        let (mate, _) = sequence(2, 0, 0);
        let classes_of_mate = classes(&mate);
        let mut here = Generator::behind(&own, 0, 1);
        let wanted = |slot| here.pick(&[*classes_of_mate.get(&slot)?]);
        let piece = with_own_slots(&mate[16..], next_slot(&own), wanted);
        own.extend(piece);
        check(&own);
        let known = classes(&own);
        let mut strangers = 0;
        for step in &own {
            slots(&mut step.clone(), &mut |slot| {
                strangers += usize::from(!known.contains_key(slot));
            });
        }
        assert_eq!(strangers, 0);
    }

    #[test]
    fn a_copy_has_objects_of_its_own() {
        let own = steps(3);
        let copy = with_own_slots(&own, next_slot(&own), Some);
        let both = [own.clone(), copy.clone()].concat();
        let mut opened: Vec<Slot> = classes(&both).into_keys().collect();
        opened.sort_unstable();
        assert_eq!(opened.len(), 2 * classes(&own).len());
        // Nothing in it names what it was copied from.
        for step in &copy {
            slots(&mut step.clone(), &mut |slot| {
                assert!(*slot >= next_slot(&own));
            });
        }
    }

    #[test]
    fn another_object_is_what_is_judged() {
        let mut call = match &steps(1)[19].action {
            Action::Call(call) => call.clone(),
            other => panic!("{other:?}"),
        };
        let was = about(&call);
        assert_eq!(call.needs.first().copied(), was);
        objects(&mut call.argument, &mut |slot| *slot += 1);
        settle(&mut call, was);
        assert_eq!(call.needs.first().copied(), was.map(|slot| slot + 1));
        let was = about(&call);
        call.argument.values.clear();
        settle(&mut call, was);
        assert!(call.needs.is_empty());
    }
}
