// SPDX-License-Identifier: GPL-2.0

//! Makes sequences out of a seed.

use kfi::bits;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::text;
use crate::raw::{self, BAD_ADDRESSES};
use crate::requests::{Class, Member, Request, Schema, What, Zero, ENTRIES, REQUESTS};

/// So many objects of a class before the generator would rather close one.
const CROWD: usize = 6;
/// Different contexts of operations.
const KINDS_OF_CONTEXT: u64 = 12;
/// Longest array.
const ARRAY_MAX: u64 = 4;
/// The largest buffer.
const BUFFER_MAX: u64 = 40_000;

/// Names an object; its value is found when the sequence runs.
pub type Slot = usize;

/// Something that is not known before the sequence runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Value {
    /// The object in a slot.
    Object(Slot),
    /// The address of an endpoint that was asked for its name, one of the last.
    Name(usize),
}

/// Bytes with gaps.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Block {
    /// With 0 in the gaps.
    #[serde(with = "text::sparse")]
    pub bytes: Vec<u8>,
    /// Offset, width and what to put there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(usize, usize, Value)>,
    /// Offset and what lies at the address there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<(usize, Memory)>,
}

/// Memory that an address points to.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Memory {
    /// Something for the kernel to read, or change.
    Block(Block),
    /// Room for the kernel to write to.
    Room(usize),
    /// Nothing.
    Bad(u64),
}

/// A request in a sequence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Call {
    /// Number that is handed over.
    pub number: u32,
    /// Number of the request that all else here is about.
    pub request: u32,
    /// The argument that is handed over.
    pub argument: Block,
    /// Where new objects come out: offset, width, class, slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<(usize, usize, Class, Slot)>,
    /// Where the address of an endpoint comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<usize>,
    /// Where the result comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<usize>,
    /// The object that it closes if it succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes: Option<Slot>,
    /// Objects without which it cannot succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Slot>,
}

/// The action of a step.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Action {
    /// Makes a request.
    Call(Call),
    /// Maps the first page of a buffer and writes to it.
    Map(Slot),
    /// Gives the oldest mapping up.
    Unmap,
    /// Asks a wait descriptor whether it is readable, and reads.
    Read(Slot),
    /// Closes a wait descriptor.
    CloseDescriptor(Slot),
}

/// One that [`REQUESTS`] has, or one of [`OTHERS`]. (A reference in the structure would be taken
/// for one into the text that it is read from.)
pub type StepName = &'static str;

/// A step of a sequence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Step {
    /// Name of the request, or of what it is.
    #[serde(with = "text::name")]
    pub name: StepName,
    /// Its action.
    pub action: Action,
}

impl std::fmt::Display for Step {
    /// The request and the members that are not 0.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        match &self.action {
            Action::Call(call) => {
                write!(f, " {:#010x} {}", call.number, call.argument)?;
                for (_, _, class, slot) in &call.opens {
                    write!(f, " -> {class:?} #{slot}")?;
                }
                Ok(())
            }
            Action::Map(slot) | Action::Read(slot) | Action::CloseDescriptor(slot) => {
                write!(f, " #{slot}")
            }
            Action::Unmap => Ok(()),
        }
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{")?;
        for (number, word) in self.bytes.chunks(4).enumerate() {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            let value = u32::from_ne_bytes(bytes);
            if value != 0 {
                write!(f, " {}:{value:#x}", 4 * number)?;
            }
        }
        for (offset, _, value) in &self.values {
            match value {
                Value::Object(slot) => write!(f, " {offset}:#{slot}")?,
                Value::Name(index) => write!(f, " {offset}:name{index}")?,
            }
        }
        for (offset, memory) in &self.pointers {
            match memory {
                Memory::Block(block) => write!(f, " {offset}:&{block}")?,
                Memory::Room(size) => write!(f, " {offset}:&[{size}]")?,
                Memory::Bad(address) => write!(f, " {offset}:{address:#x}")?,
            }
        }
        write!(f, " }}")
    }
}

/// Names of the steps that are no requests.
pub const OTHERS: [&str; 4] = ["mmap", "munmap", "read", "close"];

/// Makes steps. It believes that everything succeeds that could.
#[derive(Debug)]
pub struct Generator {
    rng: SmallRng,
    live: Vec<(Class, Slot)>,
    closed: Vec<Slot>,
    next: Slot,
    /// Whether all is done to make it succeed.
    careful: bool,
}

impl Generator {
    /// Starts with nothing open.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            live: Vec::new(),
            closed: Vec::new(),
            next: 0,
            careful: false,
        }
    }

    /// Goes on behind some steps, with slots from `next` on.
    pub fn behind(steps: &[Step], next: Slot, seed: u64) -> Self {
        let mut generator = Self::new(seed);
        generator.next = next;
        for step in steps {
            match &step.action {
                Action::Call(call) => {
                    let opened = call.opens.iter().map(|(_, _, class, slot)| (*class, *slot));
                    generator.live.extend(opened);
                    if let Some(slot) = call.closes {
                        generator.forget(slot);
                    }
                }
                Action::CloseDescriptor(slot) => generator.forget(*slot),
                Action::Map(_) | Action::Unmap | Action::Read(_) => {}
            }
        }
        generator
    }

    /// Steps that open an object or more of each class, ready for use.
    pub fn stage(&mut self) -> Vec<Step> {
        // Endpoints with everything that they need, which know each other.
        const STAGE: &[&str] = &[
            "GETINFO",
            "FABRIC",
            "DOMAIN",
            "BUFFER",
            "BUFFER",
            "MR",
            "CQ_OPEN",
            "EQ_OPEN",
            "WAIT_OPEN",
            "POLL_OPEN",
            "CNTR_OPEN",
            "CNTR_OPEN",
            "CNTR_OPEN",
            "AV_OPEN",
            "EP_OPEN",
            "EP_OPEN",
        ];
        self.careful = true;
        let mut steps: Vec<Step> = STAGE.iter().map(|name| self.plain(name)).collect();
        let all = |class| self.all(class);
        let (queues, counters) = (all(Class::CompletionQueue), all(Class::Counter));
        let (vectors, endpoints) = (all(Class::AddressVector), all(Class::Endpoint));
        for endpoint in endpoints {
            let both = bits::SEND | bits::RECV;
            for (other, flags) in [(queues[0], both), (counters[0], both), (vectors[0], 0)] {
                steps.push(self.with("BIND", &[(0, endpoint), (4, other)], &[(8, 8, flags)]));
            }
            steps.push(self.with("ENABLE", &[(0, endpoint)], &[]));
            steps.push(self.with("GETNAME", &[(0, endpoint)], &[(4, 4, 64)]));
        }
        steps.push(self.plain("AV_INSERT"));
        self.careful = false;
        steps
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        if self.rng.random_ratio(1, 12) {
            if let Some(step) = self.other_than_a_request() {
                return step;
            }
        }
        let total: u32 = REQUESTS.iter().map(|request| request.weight).sum();
        let mut at = self.rng.random_range(0..total);
        let mut chosen = &REQUESTS[0];
        for request in REQUESTS {
            if at < request.weight {
                chosen = request;
                break;
            }
            at -= request.weight;
        }
        // Rather than one more of what there are many, one less.
        let opens = |request: &Request| {
            let new = |member: &Member| match member.what {
                What::New(class) => Some(class),
                _ => None,
            };
            request.argument.members.iter().find_map(new)
        };
        let crowd = opens(chosen).filter(|class| self.all(*class).len() >= CROWD);
        if let Some(class) = crowd.filter(|class| *class != Class::Work) {
            let slot = self.pick(&[class]).unwrap_or(0);
            if let Some(step) = self.close(class, slot) {
                return step;
            }
        }
        let step = self.request(chosen);
        if self.rng.random_ratio(1, 8) {
            return self.spoil(step);
        }
        step
    }

    fn close(&mut self, class: Class, slot: Slot) -> Option<Step> {
        match class {
            Class::Descriptor => {
                self.forget(slot);
                Some(Step {
                    name: "close",
                    action: Action::CloseDescriptor(slot),
                })
            }
            Class::Offset | Class::Insertion | Class::Key | Class::Work => None,
            _ => {
                let mut step = self.with("CLOSE", &[(0, slot)], &[]);
                self.forget(slot);
                if let Action::Call(call) = &mut step.action {
                    call.closes = Some(slot);
                }
                Some(step)
            }
        }
    }

    fn other_than_a_request(&mut self) -> Option<Step> {
        Some(match self.rng.random_range(0..4) {
            0 => Step {
                name: "mmap",
                action: Action::Map(self.pick(&[Class::Offset])?),
            },
            1 => Step {
                name: "munmap",
                action: Action::Unmap,
            },
            2 => Step {
                name: "read",
                action: Action::Read(self.pick(&[Class::Descriptor])?),
            },
            _ => {
                let slot = self.pick(&[Class::Descriptor])?;
                self.close(Class::Descriptor, slot)?
            }
        })
    }

    /// A request by its name, the first there is.
    fn plain(&mut self, name: &str) -> Step {
        let named = |request: &&Request| request.name == name;
        let request = REQUESTS.iter().find(named).unwrap_or(&REQUESTS[0]);
        self.request(request)
    }

    /// A request of which the objects and some numbers (offset, width, value)
    /// are known.
    fn with(
        &mut self,
        name: &str,
        objects: &[(usize, Slot)],
        numbers: &[(usize, usize, u64)],
    ) -> Step {
        let careful = std::mem::replace(&mut self.careful, true);
        let mut step = self.plain(name);
        self.careful = careful;
        if let Action::Call(call) = &mut step.action {
            call.argument.values.retain(|(at, _, value)| {
                matches!(value, Value::Name(_)) || objects.iter().all(|(offset, _)| at != offset)
            });
            call.needs.clear();
            for (offset, slot) in objects {
                let value = Value::Object(*slot);
                call.argument.values.push((*offset, 4, value));
                call.needs.push(*slot);
            }
            for (offset, width, value) in numbers {
                put(&mut call.argument.bytes, *offset, *width, *value);
            }
        }
        step
    }

    fn request(&mut self, request: &Request) -> Step {
        let mut call = Call {
            number: request.number,
            request: request.number,
            argument: Block::default(),
            opens: Vec::new(),
            name: None,
            result: None,
            closes: None,
            needs: Vec::new(),
        };
        let mut argument = self.block(&request.argument, Some(&mut call));
        if request.name == "CLOSE" {
            if let Some((_, _, Value::Object(slot))) = argument.values.first() {
                call.closes = Some(*slot);
                let slot = *slot;
                self.forget(slot);
            }
        }
        std::mem::swap(&mut call.argument, &mut argument);
        for (_, _, class, slot) in &call.opens {
            self.live.push((*class, *slot));
        }
        Step {
            name: request.name,
            action: Action::Call(call),
        }
    }

    /// Fills a structure in; `call` is told of what comes out, if it is the
    /// argument itself.
    fn block(&mut self, schema: &Schema, mut call: Option<&mut Call>) -> Block {
        let mut block = Block {
            bytes: vec![0; schema.size],
            ..Block::default()
        };
        for member in schema.members {
            let Member {
                offset,
                width,
                what,
            } = *member;
            match what {
                What::New(class) => {
                    if let Some(call) = call.as_deref_mut() {
                        call.opens.push((offset, width, class, self.next));
                        self.next += 1;
                    }
                }
                What::Result => {
                    if let Some(call) = call.as_deref_mut() {
                        call.result = Some(offset);
                    }
                }
                What::NewName => {
                    if let Some(call) = call.as_deref_mut() {
                        call.name = Some(offset);
                    }
                }
                What::Handle(takes) if takes.zero == Zero::Mostly => {
                    if !self.careful && self.rng.random_ratio(1, 3) {
                        self.handle(&mut block, member, takes.classes, &mut None);
                    }
                }
                What::Handle(takes) if takes.classes.is_empty() => {
                    let classes: Vec<Class> = self.live.iter().map(|(class, _)| *class).collect();
                    self.handle(&mut block, member, &classes, &mut call);
                }
                What::Handle(takes) => {
                    self.handle(&mut block, member, takes.classes, &mut call);
                }
                What::Name => {
                    let index = if self.careful {
                        0
                    } else {
                        self.rng.random_range(0..4)
                    };
                    block.values.push((offset, width, Value::Name(index)));
                }
                What::Array(element, count) => {
                    let length = if self.careful {
                        1
                    } else if self.rng.random_ratio(1, 3) {
                        self.rng.random_range(0..=ARRAY_MAX)
                    } else {
                        1
                    };
                    let array = self.array(element, length as usize);
                    put(&mut block.bytes, count, 4, length);
                    block.pointers.push((offset, Memory::Block(array)));
                }
                What::Address(structure, size) => {
                    if !self.careful && self.rng.random_ratio(2, 3) {
                        put(&mut block.bytes, size, 4, structure.size as u64);
                        let target = self.block(structure, None);
                        block.pointers.push((offset, Memory::Block(target)));
                    }
                }
                What::Out(size) => {
                    let bad = !self.careful && self.rng.random_ratio(1, 16);
                    block
                        .pointers
                        .push((offset, self.room(size * ENTRIES, bad)));
                }
                What::Room(count, _) => {
                    let size = self.rng.random_range(0..3000);
                    put(&mut block.bytes, count, 4, size as u64);
                    let bad = self.rng.random_ratio(1, 16);
                    block.pointers.push((offset, self.room(size, bad)));
                }
                What::Text => {
                    if !self.careful && self.rng.random_ratio(1, 4) {
                        let mut bytes = vec![0; self.rng.random_range(1..40)];
                        let last = bytes.len() - 1;
                        for byte in &mut bytes[..last] {
                            *byte = self.rng.random_range(b' '..b'z');
                        }
                        let text = Block {
                            bytes,
                            ..Block::default()
                        };
                        block.pointers.push((offset, Memory::Block(text)));
                    }
                }
                _ => {
                    let number = self.number(what);
                    put(&mut block.bytes, offset, width, number);
                }
            }
        }
        block
    }

    fn array(&mut self, element: &Schema, length: usize) -> Block {
        let mut array = Block::default();
        for _ in 0..length {
            let base = array.bytes.len();
            let one = self.block(element, None);
            array.bytes.extend(one.bytes);
            let moved = one.values.into_iter().map(|(at, w, v)| (base + at, w, v));
            array.values.extend(moved);
            let moved = one.pointers.into_iter().map(|(at, m)| (base + at, m));
            array.pointers.extend(moved);
        }
        array
    }

    fn room(&mut self, size: usize, bad: bool) -> Memory {
        if bad {
            let index = self.rng.random_range(0..BAD_ADDRESSES.len());
            return Memory::Bad(BAD_ADDRESSES[index]);
        }
        Memory::Room(size)
    }

    /// A number for a member that has one.
    pub fn number(&mut self, what: What) -> u64 {
        let rng = &mut self.rng;
        match what {
            What::Flag(_) | What::Flags(_) | What::Bits(_) | What::Up(_) if self.careful => 0,
            // The lists are made so that the middle one is useful.
            What::Pick(numbers) if self.careful => numbers[numbers.len() / 2],
            What::Of(bits) if self.careful => bits.iter().fold(0, |all, bit| all | bit),
            What::Size if self.careful => BUFFER_MAX,
            What::Set(flags) if self.careful => flags.into(),
            What::Pick(_) | What::Set(_) | What::Up(_) | What::Bits(_)
                if rng.random_ratio(1, 50) =>
            {
                rng.random()
            }
            What::Pick(numbers) => numbers[rng.random_range(0..numbers.len())],
            What::Set(flags) => flags.into(),
            What::Up(last) if last <= 20 || rng.random_ratio(1, 4) => rng.random_range(0..=last),
            What::Up(_) => rng.random_range(0..4),
            What::Bits(_) if rng.random_ratio(3, 4) => 0,
            What::Bits(bits) => bits[rng.random_range(0..bits.len())],
            What::Of(bits) => {
                let one = bits[rng.random_range(0..bits.len())];
                one | bits[rng.random_range(0..bits.len())]
            }
            What::Flag(value) if rng.random_ratio(1, 10) => value & rng.random::<u64>(),
            What::Flags(known) if rng.random_ratio(1, 10) => u64::from(known & rng.random::<u32>()),
            What::Context => rng.random_range(1..=KINDS_OF_CONTEXT),
            What::Timeout => u64::from(rng.random_ratio(1, 6)),
            What::Size => rng.random_range(1..BUFFER_MAX),
            _ => 0,
        }
    }

    fn handle(
        &mut self,
        block: &mut Block,
        member: &Member,
        classes: &[Class],
        call: &mut Option<&mut Call>,
    ) {
        let (offset, width) = (member.offset, member.width);
        if !self.careful {
            match self.rng.random_range(0..40) {
                0 if !self.closed.is_empty() => {
                    let slot = self.closed[self.rng.random_range(0..self.closed.len())];
                    block.values.push((offset, width, Value::Object(slot)));
                    need(call, offset, slot);
                    return;
                }
                1 => {
                    let wrong: Vec<Class> = self.live.iter().map(|(class, _)| *class).collect();
                    if let Some(slot) = self.pick(&wrong) {
                        block.values.push((offset, width, Value::Object(slot)));
                    }
                    return;
                }
                2 => {
                    let number = self.rng.random_range(0..64);
                    put(&mut block.bytes, offset, width, number);
                    return;
                }
                _ => {}
            }
        }
        if let Some(slot) = self.pick(classes) {
            block.values.push((offset, width, Value::Object(slot)));
            need(call, offset, slot);
        }
    }

    fn all(&self, class: Class) -> Vec<Slot> {
        let of_class = self.live.iter().filter(|(is, _)| *is == class);
        of_class.map(|(_, slot)| *slot).collect()
    }

    /// An object of one of these classes.
    pub fn pick(&mut self, classes: &[Class]) -> Option<Slot> {
        if classes.is_empty() {
            return None;
        }
        // The class first, or those that are many would be all.
        let start = self.rng.random_range(0..classes.len());
        let order = classes[start..].iter().chain(&classes[..start]);
        let slots = order
            .map(|class| self.all(*class))
            .find(|s| !s.is_empty())?;
        Some(slots[self.rng.random_range(0..slots.len())])
    }

    fn forget(&mut self, slot: Slot) {
        // Objects that others hang on are busy, and without them nothing works.
        let busy = [Class::Info, Class::Fabric, Class::Domain];
        self.live
            .retain(|(class, other)| *other != slot || busy.contains(class));
        self.closed.push(slot);
    }

    /// Spoils a request that is not spoilt yet: bytes, size or number.
    pub fn spoil(&mut self, mut step: Step) -> Step {
        let Action::Call(call) = &mut step.action else {
            return step;
        };
        if call.number != call.request {
            return step;
        }
        // It may now be any request.
        call.needs.clear();
        let rng = &mut self.rng;
        match rng.random_range(0..4) {
            0 => {
                let size = rng.random_range(0..=2 * call.argument.bytes.len());
                call.argument.bytes.resize(size, 0);
                call.number = raw::resized(call.number, size);
                if rng.random() {
                    let start = call.argument.bytes.len() / 2;
                    rng.fill_bytes(&mut call.argument.bytes[start..]);
                }
            }
            1 => call.number ^= 1 << rng.random_range(0..32),
            _ => {
                for _ in 0..rng.random_range(1..4) {
                    let length = call.argument.bytes.len();
                    if length > 0 {
                        call.argument.bytes[rng.random_range(0..length)] = rng.random();
                    }
                }
            }
        }
        step
    }
}

/// Notes the object that a request is about, which is the first member of its
/// argument. Others may be ignored.
fn need(call: &mut Option<&mut Call>, offset: usize, slot: Slot) {
    if let Some(call) = call.as_deref_mut().filter(|_| offset == 0) {
        call.needs.push(slot);
    }
}

/// Writes a number, as wide as it fits.
pub fn put(bytes: &mut [u8], offset: usize, width: usize, value: u64) {
    let value = value.to_ne_bytes();
    if let Some(place) = bytes.get_mut(offset..offset + width.min(8)) {
        place.copy_from_slice(&value[..width.min(8)]);
    }
}

/// The steps of a process: the stage that all of a round share, and its own.
pub fn sequence(seed: u64, process: u64, count: usize) -> (Vec<Step>, Vec<Step>) {
    let mut generator = Generator::new(seed);
    let stage = generator.stage();
    generator.rng = SmallRng::seed_from_u64(seed.wrapping_mul(3).wrapping_add(process));
    let own = (0..count).map(|_| generator.step()).collect();
    (stage, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_says_it_all() {
        assert_eq!(sequence(7, 0, 500), sequence(7, 0, 500));
        assert_ne!(sequence(7, 0, 500).1, sequence(8, 0, 500).1);
        let (first, second) = (sequence(7, 0, 500), sequence(7, 1, 500));
        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }

    #[test]
    fn every_request_is_made() {
        let made: Vec<&str> = (0..20)
            .flat_map(|seed| sequence(seed, 0, 1000).1)
            .map(|step| step.name)
            .collect();
        for request in REQUESTS {
            assert!(made.contains(&request.name), "{}", request.name);
        }
        for name in OTHERS {
            assert!(made.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_request_knows_what_it_was() {
        let changed = (0..20)
            .flat_map(|seed| sequence(seed, 0, 1000).1)
            .filter_map(|step| match step.action {
                Action::Call(call) => Some((step.name, call)),
                _ => None,
            })
            .filter(|(name, call)| {
                let own = REQUESTS.iter().find(|request| request.name == *name);
                own.is_none_or(|own| own.number != call.number)
            });
        let mut count = 0;
        for (name, call) in changed {
            assert_ne!(call.number, call.request, "{name}");
            count += 1;
        }
        assert_ne!(count, 0);
    }

    #[test]
    fn it_goes_on_where_steps_end() {
        let (stage, own) = sequence(5, 0, 300);
        let steps = [stage, own].concat();
        let mut generator = Generator::behind(&steps, 5000, 1);
        for _ in 0..300 {
            let Action::Call(call) = generator.step().action else {
                continue;
            };
            assert!(call.opens.iter().all(|(_, _, _, slot)| *slot >= 5000));
        }
        let endpoint = Generator::behind(&steps[..25], 5000, 1).pick(&[Class::Endpoint]);
        assert!(endpoint.is_some_and(|slot| slot < 5000));
        assert_eq!(Generator::behind(&[], 0, 1).pick(&[Class::Endpoint]), None);
    }

    #[test]
    fn slots_are_used_once() {
        let (stage, own) = sequence(3, 0, 2000);
        let mut slots: Vec<Slot> = stage
            .iter()
            .chain(&own)
            .filter_map(|step| match &step.action {
                Action::Call(call) => Some(call.opens.iter().map(|(_, _, _, slot)| *slot)),
                _ => None,
            })
            .flatten()
            .collect();
        let count = slots.len();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), count);
    }
}
