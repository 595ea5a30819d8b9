// SPDX-License-Identifier: GPL-2.0

//! Flows of which requests are not taken, at the target, in the order in which their time comes.
//!
//! As [`incoming`](super::incoming) this is without input and output, and runs in user space.

#![forbid(unsafe_code)]

use crate::kfi::linux::queue::{
    Entry,
    EntryQueue,
    Named, //
};

/// So many milliseconds after a flow was stopped it may go on. The initiator is told so again so many
/// after that, and so on; in the end always after the last ones.
const PAUSES: [u64; 6] = [50, 100, 200, 400, 800, 1000];

/// A flow of which requests were not taken.
///
/// That it may go on is said until the first request after that is read: the initiator may not have
/// been able to do anything about it before.
pub(crate) struct Stopped {
    flow: u16,
    /// When the initiator is told that it may send them again, in milliseconds.
    at: u64,
    /// For which one of [`PAUSES`] that is put off.
    pause: usize,
}

impl Named for Stopped {
    type Name = u16;

    fn name(&self) -> u16 {
        self.flow
    }
}

/// The flows of a lane that are stopped. There is one of each number at the most.
pub(crate) struct Stops {
    /// The time, in milliseconds, as of the last [`Self::look`].
    now: u64,
    /// Those of which the initiator is told later, for each of [`PAUSES`]: so each of these is in the order
    /// of that time. Those behind the first pause are the ones of which it was told before.
    later: [EntryQueue<Stopped>; PAUSES.len()],
    /// Those of which it is told now.
    due: EntryQueue<Stopped>,
}

impl Stopped {
    /// One that is stopped at a time, in milliseconds.
    pub(crate) fn new(flow: u16, now: u64) -> Self {
        let [first, ..] = PAUSES;
        Self {
            flow,
            at: now.saturating_add(first),
            pause: 0,
        }
    }
}

impl Stops {
    /// None.
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            later: core::array::from_fn(|_| EntryQueue::new()),
            due: EntryQueue::new(),
        }
    }

    /// Returns the queues.
    fn queues(&mut self) -> impl Iterator<Item = &mut EntryQueue<Stopped>> {
        self.later.iter_mut().chain(core::iter::once(&mut self.due))
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.len() == 0 && self.later.iter().all(|queue| queue.len() == 0)
    }

    /// Returns whether a flow is stopped.
    pub(crate) fn has(&mut self, flow: u16) -> bool {
        self.queues().any(|queue| {
            let found = queue.find_named(&flow);
            found.is_some_and(|found| found.flow == flow)
        })
    }

    /// Stops a flow that is not. Times do not come before those of earlier ones.
    pub(crate) fn stop(&mut self, stopped: Entry<Stopped>) {
        if let Some(queue) = self.later.get_mut(stopped.pause) {
            queue.push_named(stopped);
        }
    }

    /// A flow goes on; returns what was known of it if it was stopped.
    pub(crate) fn go_on(&mut self, flow: u16) -> Option<Entry<Stopped>> {
        self.queues().find_map(|queue| {
            let found = queue.find_named(&flow)?;
            (found.flow == flow).then(|| found.take())
        })
    }

    /// Notes what time it is, in milliseconds, and those that are due by that; returns in how many to look
    /// again, if there are others.
    pub(crate) fn look(&mut self, now: u64) -> Option<u64> {
        self.now = now;
        let mut soonest: Option<u64> = None;
        for queue in &mut self.later {
            // As many as are to be told of.
            while queue.front().is_some_and(|first| first.at <= now) {
                if let Some(first) = queue.pop_front() {
                    self.due.push_named(first);
                }
            }
            if let Some(first) = queue.front() {
                let left = first.at.saturating_sub(now);
                soonest = Some(soonest.map_or(left, |soonest| soonest.min(left)));
            }
        }
        soonest
    }

    /// Returns the first flow that is due.
    pub(crate) fn first_due(&self) -> Option<u16> {
        self.due.front().map(|first| first.flow)
    }

    /// The initiator is told of the first flow that is due; again after a while.
    pub(crate) fn tell(&mut self) {
        let Some(mut first) = self.due.pop_front() else {
            return;
        };
        let last = PAUSES.len().saturating_sub(1);
        first.pause = first.pause.saturating_add(1).min(last);
        let pause = PAUSES.get(first.pause).copied().unwrap_or(0);
        first.at = self.now.saturating_add(pause);
        self.stop(first);
    }

    /// All of which the initiator was told are due again, as that may have been lost.
    pub(crate) fn tell_again(&mut self) {
        for queue in self.later.iter_mut().skip(1) {
            while let Some(told) = queue.pop_front() {
                self.due.push_named(told);
            }
        }
    }
}
