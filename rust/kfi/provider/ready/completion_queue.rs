// SPDX-License-Identifier: GPL-2.0

//! Completion queues. Entries lie in the memory of the operations that they tell of, so that there is
//! room for each.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    control::Control,
    fid::{
        Fid,
        Object, //
    },
    hold::Hold,
    linux::{
        queue::Vacant,
        timeout::Timeout, //
    },
    provider::{
        queue::{
            Completions,
            Entries,
            Popped,
            Queue, //
        },
        wait_source::WaitWith,
        CompletionBuffer,
        CompletionError,
        CompletionQueueAttr,
        CompletionQueueClass,
        CompletionQueueOps,
        DomainOps,
        ErrorBuffer, //
    }, //
};

/// Entries of a queue for which no size was asked.
const DEFAULT_SIZE: usize = 256;

/// The largest size.
const MAX_SIZE: usize = 1 << 20;

/// A completion queue of a domain `D`. It has no handler, and is in no wait set.
#[pin_data]
pub struct CompletionQueue<D: DomainOps> {
    size: usize,
    #[pin]
    queue: Queue<Completions>,
    domain: Hold<D>,
}

impl<D: DomainOps> CompletionQueue<D> {
    /// Creates an empty queue; there are no flags, no handlers and no wait sets.
    pub fn new(domain: Hold<D>, attr: CompletionQueueAttr<'_>) -> Result<impl PinInit<Self>> {
        if attr.flags != 0 || attr.size > MAX_SIZE || attr.has_handler {
            return Err(EINVAL);
        }
        let size = match attr.size {
            0 => DEFAULT_SIZE,
            size => size,
        };
        let wait = WaitWith::new(attr.wait, |_| false)?;
        Ok(pin_init!(Self {
            size,
            // All entries lie behind the ring, of which there is none.
            queue <- Queue::new(Completions::none(), wait),
            domain,
        }))
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Arc<Fid<D>> {
        self.domain.fid()
    }

    /// Returns whether there are so many entries that nothing more is to be posted that would end
    /// here. From any context.
    pub fn is_full(&self) -> bool {
        self.queue.take(|entries| entries.backlog_len()) >= self.size
    }

    /// Adds an entry, in memory of its own, and wakes threads that wait for it. From any context.
    pub fn push(&self, entry: CompletionError, memory: Vacant) {
        self.queue.add(|entries| entries.push_own(entry, memory));
    }

    /// Takes entries out, without a wait.
    fn read_entries(&self, buffer: &mut CompletionBuffer<'_>) -> Result {
        loop {
            // One by one, so that others get the lock, and memory is freed without it.
            let popped = self.queue.take(|entries| match entries.is_for(buffer) {
                Ok(true) => Ok(entries.pop()),
                Ok(false) => Ok(Popped::Nothing),
                Err(error) => Err(error),
            })?;
            let entry = match popped {
                Popped::Own(entry) => entry.into_inner(),
                Popped::Slot(entry) => entry,
                Popped::Nothing => return Ok(()),
            };
            // There is room.
            let _ = buffer.push(entry.completion);
        }
    }
}

impl<D: DomainOps> Object for CompletionQueue<D> {
    type Class = CompletionQueueClass;

    fn release(&self) {
        self.queue.release();
        self.domain.release();
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.queue.control(command)
    }
}

impl<D: DomainOps> CompletionQueueOps for CompletionQueue<D> {
    fn size(&self) -> usize {
        self.size
    }

    fn read(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>) -> Result {
        this.read_entries(buffer)
    }

    fn readerr(&self, buffer: &mut ErrorBuffer<'_>) -> Result {
        let popped = self
            .queue
            .take(|entries| match entries.is_error_for(buffer) {
                Ok(true) => Ok(entries.pop()),
                Ok(false) => Ok(Popped::Nothing),
                Err(error) => Err(error),
            })?;
        match popped {
            Popped::Own(entry) => buffer.tell(entry.into_inner()),
            Popped::Slot(entry) => buffer.tell(entry),
            Popped::Nothing => (),
        }
        Ok(())
    }

    fn sread(this: &Fid<Self>, buffer: &mut CompletionBuffer<'_>, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        // More are never there.
        let count = buffer.threshold().min(this.size);
        this.queue
            .read_blocking(timeout, count, || this.read_entries(buffer))
    }

    fn signal(&self) -> Result {
        self.queue.signal();
        Ok(())
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_completion_queue)]
mod tests {
    use super::*;
    use crate::kfi::{
        context::Context,
        errno::EAVAIL,
        fid::TestFid,
        provider::{
            ready::tests::{
                domain,
                Domain, //
            },
            Completion,
            Failure,
            Outcome, //
        }, //
    };

    /// Opens a queue with room for two entries, to be closed before its domain.
    fn queue(domain: &Fid<Domain>) -> Result<TestFid<CompletionQueue<Domain>>> {
        let attr = CompletionQueueAttr {
            size: 2,
            ..CompletionQueueAttr::default()
        };
        let queue = CompletionQueue::new(Hold::new(domain)?, attr)?;
        TestFid::open(queue, Context::NONE)
    }

    /// Adds an entry.
    fn push(queue: &CompletionQueue<Domain>, number: usize, err: c_int) -> Result {
        let entry = CompletionError {
            completion: Completion::with_number(number, &Outcome::default()),
            failure: Failure {
                err,
                ..Failure::default()
            },
        };
        queue.push(entry, Vacant::new(GFP_KERNEL)?);
        Ok(())
    }

    /// Reads entries of as many as there is room for, and returns their numbers.
    fn read<const ROOM: usize>(queue: &Fid<CompletionQueue<Domain>>) -> Result<KVec<usize>> {
        let mut numbers = KVec::new();
        let mut entries = [0usize; ROOM];
        let count = CompletionBuffer::with(&mut entries, |buffer| {
            CompletionQueue::sread(queue, buffer, Timeout::Millis(0))
        })?;
        for number in entries.iter().take(count) {
            numbers.push(*number, GFP_KERNEL)?;
        }
        Ok(numbers)
    }

    #[test]
    fn entries_are_read_in_order_and_errors_by_themselves() -> Result {
        let domain = domain()?;
        let queue = queue(&domain)?;
        assert!(read::<4>(&queue).err() == Some(ETIMEDOUT));
        for (number, err) in [(1, 0), (2, 0), (3, 0), (4, 5), (5, 0)] {
            assert_eq!(queue.is_full(), number > 2);
            push(&queue, number, err)?;
        }
        assert_eq!(read::<2>(&queue)?.as_slice(), [1, 2]);
        assert_eq!(read::<4>(&queue)?.as_slice(), [3]);
        assert!(read::<4>(&queue).err() == Some(EAVAIL.into()));
        // Shown, it stays.
        for peek in [true, false] {
            let told = ErrorBuffer::with(peek, |buffer| queue.readerr(buffer))?;
            assert_eq!(told, Some((4, 5)));
        }
        assert!(ErrorBuffer::with(false, |buffer| queue.readerr(buffer)) == Err(EAGAIN));
        assert_eq!(read::<4>(&queue)?.as_slice(), [5]);
        assert!(!queue.is_full());
        Ok(())
    }

    #[test]
    fn what_is_not_read_goes_with_the_queue() -> Result {
        let domain = domain()?;
        let queue = queue(&domain)?;
        push(&queue, 1, 0)?;
        push(&queue, 2, 5)?;
        let memory = queue.arc();
        drop(queue);
        assert!(!memory.queue.is_ready());
        Ok(())
    }

    #[test]
    fn attributes_that_it_has_not_are_refused() -> Result {
        let domain = domain()?;
        for attr in [
            CompletionQueueAttr {
                size: MAX_SIZE + 1,
                ..CompletionQueueAttr::default()
            },
            CompletionQueueAttr {
                has_handler: true,
                ..CompletionQueueAttr::default()
            },
            CompletionQueueAttr {
                flags: 1,
                ..CompletionQueueAttr::default()
            },
        ] {
            let queue = CompletionQueue::new(Hold::new(&domain)?, attr);
            assert!(queue.err() == Some(EINVAL));
        }
        let queue = CompletionQueue::new(Hold::new(&domain)?, CompletionQueueAttr::default())?;
        let queue = TestFid::open(queue, Context::NONE)?;
        assert_eq!(queue.size(), DEFAULT_SIZE);
        Ok(())
    }
}
