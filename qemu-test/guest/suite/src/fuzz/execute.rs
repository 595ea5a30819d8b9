// SPDX-License-Identifier: GPL-2.0

//! Runs sequences, and judges the answers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use kfi::{uapi, Session};
use kfi_host::memory::Guarded;
use kfi_host::process::{self, Child, Status};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;

use super::generate::{put, sequence, Action, Block, Call, Memory as Target, Slot, Step, Value};
use super::replay::Replay;
use crate::check::Stop;
use crate::failing::{Nth, MANY};
use crate::raw::{self, MappedPage};
use crate::requests::{Class, What, REQUESTS};

/// The errnos that the interface documents.
const DOCUMENTED: [Errno; 11] = [
    Errno::NOTTY,
    Errno::FAULT,
    Errno::INVAL,
    Errno::TOOBIG,
    Errno::BADF,
    Errno::DQUOT,
    Errno::BUSY,
    Errno::MFILE,
    Errno::NOMEM,
    Errno::OPNOTSUPP,
    Errno::INTR,
];

/// In place of an object that could not be opened.
const NOTHING: u64 = 0x7fff_fff0;
/// Endpoint addresses that are remembered.
const NAMES: usize = 4;
/// Mappings that are kept.
const MAPPINGS: usize = 8;
/// A process that needs longer for a sequence hangs, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// How a round went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Well: so many requests were made, so many of them succeeded.
    Fine {
        /// All.
        made: u64,
        /// Requests with success in both results.
        good: u64,
        /// Allocations that have failed, with [`Memory::Each`].
        failed: u64,
    },
    /// Not so.
    Wrong(String),
}

/// Whether allocations of the kernel fail now and then while requests are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Memory {
    /// They do not.
    Plenty,
    /// As the knobs of failslab say.
    Scarce,
    /// Each allocation of a request fails, one after the other, until none does.
    Each,
}

/// Runs a round in processes of its own.
pub fn round(replay: &Replay, memory: Memory) -> Result<Ending, Stop> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let session = Session::open()?;
    let mut children = Vec::new();
    // All begin with the same objects.
    let (stage, _) = sequence(replay.seed, 0, 0);
    let mut player = Player::new(session);
    for step in &stage {
        if let Err(why) = player.step(step) {
            return Ok(Ending::Wrong(format!("{why}, at {step} of the stage")));
        }
    }
    let numbers = replay.numbers();
    for process in 0..replay.processes {
        let (_, own) = sequence(replay.seed, process as u64, replay.steps);
        let first = process * replay.steps;
        let mut pipe = File::from(writer.try_clone()?);
        let (player, numbers) = (&mut player, &numbers);
        children.push(process::fork(move || {
            if memory == Memory::Scarce {
                player.make_it_fail = OpenOptions::new()
                    .write(true)
                    .open("/proc/self/make-it-fail")
                    .ok();
            }
            if memory == Memory::Each {
                player.nth = Nth::of_this_thread();
            }
            let steps = numbers
                .iter()
                .filter_map(|number| Some((*number, own.get(number.checked_sub(first)?)?)));
            player.play(steps, &mut pipe)
        })?);
    }
    // The session ends with the processes, not with what we hold.
    drop(player);
    drop(writer);
    end_of(children, reader)
}

/// Runs steps in a process and a session of their own.
pub fn alone(steps: &[Step]) -> Result<Ending, Stop> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut pipe = File::from(writer);
    let child = process::fork(move || match Session::open() {
        Ok(session) => Player::new(session).play(steps.iter().enumerate(), &mut pipe),
        Err(error) => {
            say(&mut pipe, format!("no session: {error}"));
            1
        }
    })?;
    end_of(vec![child], reader)
}

/// Waits for the processes of a round, and gives what they say.
fn end_of(mut children: Vec<Child>, reader: OwnedFd) -> Result<Ending, Stop> {
    let end = Instant::now() + PATIENCE;
    let mut wrong = Vec::new();
    for child in &mut children {
        let left = end.saturating_duration_since(Instant::now());
        match child.wait_for(left)? {
            Some(Status::Exited(0 | 1)) => {}
            Some(status) => wrong.push(format!("a process died: {status}")),
            None => {
                wrong.push(format!("a process hangs for {PATIENCE:?}"));
                let _ = child.kill(Signal::KILL);
            }
        }
    }
    drop(children);
    let mut said = String::new();
    File::from(reader).read_to_string(&mut said)?;
    let (mut made, mut good, mut failed) = (0, 0, 0);
    for line in said.lines() {
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[a, b, c]) => {
                made += a;
                good += b;
                failed += c;
            }
            _ => wrong.push(line.to_owned()),
        }
    }
    if wrong.is_empty() {
        return Ok(Ending::Fine { made, good, failed });
    }
    Ok(Ending::Wrong(wrong.join("; ")))
}

/// Tells a line in one write. That of a [`format_args!`] takes several, and another process
/// may write between them.
fn say(pipe: &mut impl Write, mut line: String) {
    line.push('\n');
    let _ = pipe.write_all(line.as_bytes());
}

/// Memory that addresses lead to, each with the offset of the address.
type Pointers = Vec<(usize, Guarded)>;

/// Runs steps in a session.
struct Player {
    /// Values in the slots.
    values: HashMap<Slot, u64>,
    /// Slots whose object was closed here.
    closed: HashSet<Slot>,
    /// Handles that there have been.
    seen: HashSet<u64>,
    descriptors: HashMap<Slot, OwnedFd>,
    mappings: VecDeque<MappedPage>,
    names: VecDeque<Vec<u8>>,
    made: u64,
    good: u64,
    failed: u64,
    /// Where to say whether allocations for this process fail.
    make_it_fail: Option<File>,
    /// Where to say which one does.
    nth: Option<Nth>,
    session: Session,
}

impl Player {
    fn new(session: Session) -> Self {
        Self {
            values: HashMap::new(),
            closed: HashSet::new(),
            seen: HashSet::new(),
            descriptors: HashMap::new(),
            mappings: VecDeque::new(),
            names: VecDeque::new(),
            made: 0,
            good: 0,
            failed: 0,
            make_it_fail: None,
            nth: None,
            session,
        }
    }

    /// Does what the steps say, which have numbers, and says how it went; the status is that of
    /// a process.
    fn play<'a>(
        &mut self,
        steps: impl Iterator<Item = (usize, &'a Step)>,
        pipe: &mut impl Write,
    ) -> i32 {
        for (number, step) in steps {
            if let Err(why) = self.step(step) {
                say(pipe, format!("{why}, at step {number}: {step}"));
                return 1;
            }
        }
        let (made, good, failed) = (self.made, self.good, self.failed);
        say(pipe, format!("{made} {good} {failed}"));
        0
    }

    /// Does what a step says; an error if the answer is wrong.
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Call(call) => self.call_in_turn(call),
            Action::Map(slot) => {
                let offset = self.value(*slot);
                // In vain if the buffer is closed.
                if let Ok(page) = MappedPage::new(&self.session, offset) {
                    page.touch();
                    self.mappings.push_back(page);
                    self.mappings.truncate(MAPPINGS);
                }
                Ok(())
            }
            Action::Unmap => {
                self.mappings.pop_front();
                Ok(())
            }
            Action::Read(slot) => self.read(*slot),
            Action::CloseDescriptor(slot) => {
                self.descriptors.remove(slot);
                Ok(())
            }
        }
    }

    fn read(&mut self, slot: Slot) -> Result<(), String> {
        let Some(fd) = self.descriptors.get(&slot) else {
            return Ok(());
        };
        let now = Timespec::default();
        let mut polled = [PollFd::new(fd, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&now)).map_err(|errno| format!("poll: {errno}"))?;
        // Its flags may have been changed.
        rustix::io::ioctl_fionbio(fd, true).map_err(|errno| format!("FIONBIO: {errno}"))?;
        let mut event = [0; size_of::<uapi::kfi_shim_wait_event>()];
        match rustix::io::read(fd, &mut event[..]) {
            Ok(length) if length == event.len() => Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            other => Err(format!("read of a wait descriptor: {other:?}")),
        }
    }

    fn value(&self, slot: Slot) -> u64 {
        self.values.get(&slot).copied().unwrap_or(NOTHING)
    }

    /// Fills the gaps, and gives the memory that pointers lead to. Memory that
    /// this points to in turn is kept in `kept`.
    fn fill(&self, block: &Block, kept: &mut Vec<Guarded>) -> Result<(Vec<u8>, Pointers), String> {
        let mut bytes = block.bytes.clone();
        for (offset, width, value) in &block.values {
            match value {
                Value::Object(slot) => put(&mut bytes, *offset, *width, self.value(*slot)),
                Value::Name(index) => {
                    let name = self.names.get(*index).map_or(&[][..], Vec::as_slice);
                    let length = name.len().min(*width);
                    if let Some(place) = bytes.get_mut(*offset..*offset + length) {
                        place.copy_from_slice(&name[..length]);
                    }
                }
            }
        }
        let mut memory = Vec::new();
        for (offset, target) in &block.pointers {
            let piece = match target {
                Target::Block(inner) => {
                    let (mut inner, pointers) = self.fill(inner, kept)?;
                    for (at, mut piece) in pointers {
                        put(&mut inner, at, 8, piece.address() as u64);
                        kept.push(piece);
                    }
                    Guarded::new(&inner)
                }
                Target::Room(size) => Guarded::new(&vec![0; *size]),
                Target::Bad(address) => {
                    put(&mut bytes, *offset, 8, *address);
                    continue;
                }
            };
            memory.push((*offset, piece.map_err(|errno| format!("mmap: {errno}"))?));
        }
        Ok((bytes, memory))
    }

    /// Makes a request, if wanted with each of its allocations failing before.
    fn call_in_turn(&mut self, call: &Call) -> Result<(), String> {
        let Some(nth) = self.nth.take() else {
            return self.call(call);
        };
        let mut outcome = Ok(());
        for which in 1..=MANY {
            let armed = nth.arm(which);
            outcome = self.call(call);
            match armed.and_then(|()| nth.disarm()) {
                Ok(true) if outcome.is_ok() => self.failed += 1,
                Ok(_) => break,
                Err(stop) => {
                    outcome = Err(format!("{stop:?}"));
                    break;
                }
            }
        }
        self.nth = Some(nth);
        outcome
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let mut kept = Vec::new();
        let (mut bytes, mut memory) = self.fill(&call.argument, &mut kept)?;
        tame(call.number, &mut bytes);
        self.let_fail(b"1")?;
        let reply = raw::with_memory(&self.session, call.number, &mut bytes, &mut memory);
        self.let_fail(b"0")?;
        self.made += 1;

        if let Err(errno) = reply {
            // Another request behind a changed number has errnos of its own.
            let known = REQUESTS.iter().any(|known| known.number == call.number);
            if known && !DOCUMENTED.contains(&errno) {
                return Err(format!("{errno} is not documented"));
            }
            return Ok(());
        }
        // One bit may make another request of it, with an argument as large.
        if call.number != call.request {
            give_up_descriptor(call.number, &bytes);
            return Ok(());
        }
        if let Some(slot) = call.needs.iter().find(|slot| self.closed.contains(slot)) {
            return Err(format!("success with #{slot}, which is closed"));
        }
        let result = call
            .result
            .map_or(0, |at| number(&bytes, at, 4) as u32 as i32);
        if result < 0 && !(1..uapi::KFI_ERRNO_MAX as i32).contains(&-result) {
            return Err(format!("result {result} is no errno"));
        }
        if result >= 0 {
            self.good += 1;
            if let Some(slot) = call.closes {
                self.closed.insert(slot);
            }
        }
        for (offset, width, class, slot) in &call.opens {
            let value = number(&bytes, *offset, *width);
            self.opened(*class, *slot, value, result)?;
        }
        if let Some(at) = call.name.filter(|_| result == 0) {
            let end = (at + uapi::KFI_SHIM_ADDR_MAX as usize).min(bytes.len());
            self.names.push_back(bytes[at..end].to_vec());
            if self.names.len() > NAMES {
                self.names.pop_front();
            }
        }
        Ok(())
    }

    /// Lets allocations fail, or not: only those of the request, as this program
    /// cannot go on without memory.
    fn let_fail(&self, whether: &[u8]) -> Result<(), String> {
        match &self.make_it_fail {
            Some(file) => file
                .write_at(whether, 0)
                .map(|_| ())
                .map_err(|error| format!("make-it-fail: {error}")),
            None => Ok(()),
        }
    }

    /// Takes what a request has opened.
    fn opened(&mut self, class: Class, slot: Slot, value: u64, result: i32) -> Result<(), String> {
        match class {
            Class::Descriptor => {
                if result == 0 {
                    let fd = raw::own(value as u32 as i32).ok_or("no descriptor")?;
                    self.descriptors.insert(slot, fd);
                }
                return Ok(());
            }
            // Numbers of their own, which may be 0.
            Class::Offset | Class::Insertion | Class::Key | Class::Work => {}
            _ if result != 0 => {
                if value != 0 {
                    return Err(format!("handle {value} with result {result}"));
                }
                return Ok(());
            }
            _ => {
                if value == 0 || !self.seen.insert(value) {
                    return Err(format!("handle {value} for a new {class:?}"));
                }
            }
        }
        self.values.insert(slot, value);
        self.closed.remove(&slot);
        Ok(())
    }
}

/// A request with a changed size may have made a descriptor, which is closed.
fn give_up_descriptor(request: u32, bytes: &[u8]) {
    let is_wait_fd = request & 0xffff == uapi::KFI_REQUEST_WAIT_FD & 0xffff;
    let at = std::mem::offset_of!(uapi::kfi_shim_wait_fd, fd);
    let result = std::mem::offset_of!(uapi::kfi_shim_wait_fd, result);
    if is_wait_fd && bytes.len() >= at + 4 && number(bytes, result, 4) == 0 {
        drop(raw::own(number(bytes, at, 4) as u32 as i32));
    }
}

/// A number that the kernel has written.
fn number(bytes: &[u8], offset: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    let width = width.min(8);
    if let Some(place) = bytes.get(offset..offset + width) {
        value[..width].copy_from_slice(place);
    }
    u64::from_ne_bytes(value)
}

/// Takes out what would wait for ever or use up the machine's memory.
fn tame(request: u32, bytes: &mut Vec<u8>) {
    for known in REQUESTS {
        if known.number & 0xffff != request & 0xffff {
            continue;
        }
        for member in known.argument.members {
            let most = match member.what {
                What::Timeout => 3,
                What::Size => 1 << 20,
                _ => continue,
            };
            let end = member.offset + member.width;
            if bytes.len() < end {
                // The kernel completes it with zeros.
                bytes.truncate(bytes.len().min(member.offset));
            } else if number(bytes, member.offset, member.width) > most {
                let value = number(bytes, member.offset, member.width) % most;
                put(bytes, member.offset, member.width, value);
            }
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kfi::uapi::request;

    #[test]
    fn lines_stay_whole() {
        /// Takes what it is given in the pieces in which it comes.
        struct Pieces(Vec<Vec<u8>>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(bytes.to_vec());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut pipe = Pieces(Vec::new());
        say(&mut pipe, format!("{} {} {}", 313, 104, 0));
        assert_eq!(pipe.0, [b"313 104 0\n"]);
    }

    #[test]
    fn endless_waits_end() {
        let at = std::mem::offset_of!(uapi::kfi_shim_wait, timeout);
        let mut bytes = vec![0xff; size_of::<uapi::kfi_shim_wait>()];
        tame(request::WAIT.number(), &mut bytes);
        assert!(number(&bytes, at, 4) <= 3);
        let mut bytes = vec![0xff; size_of::<uapi::kfi_shim_buffer>()];
        tame(request::BUFFER.number() ^ 1 << 20, &mut bytes);
        let at = std::mem::offset_of!(uapi::kfi_shim_buffer, size);
        assert!(number(&bytes, at, 8) <= 1 << 20);
    }
}
