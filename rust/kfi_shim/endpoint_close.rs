// SPDX-License-Identifier: GPL-2.0

//! Endpoints that are being closed.
//!
//! That waits for operations that a peer has, which takes as long as the peer likes, within limits, and cannot be
//! interrupted. So a work queue does it, and the thread that has asked for it waits for that, but not for long when it
//! is killed. If so many of a user, or of all, are being closed there already, or there is no memory for it, the
//! thread does it itself: what one peer keeps is nothing that others wait for.
//!
//! The end of a session has its endpoints closed there, too, several at a time.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    kfi::{
        consumer::{
            Answer,
            Charge, //
        },
        linux::{
            sleep::Wakeup,
            timeout::Timeout,
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        }, //
    },
    object::Object,
    queues::Ends,
    session::Session, //
};

/// How long a thread that is killed still waits, in milliseconds: mostly the endpoint is closed then, and the end of
/// the session goes on when the process does.
const KILLED_TIMEOUT_MS: u32 = 1000;

/// What is to be closed.
struct Task {
    /// Its session, which does not end before, and its handle there; none if the session ends.
    session: Option<(Arc<Session>, u32)>,
    object: Object,
    /// Its part in those of the user, and of all, that are closed at a time.
    _charge: Charge,
}

/// An endpoint that is being closed.
#[pin_data]
pub(crate) struct EndpointClose {
    /// None when it is closed, or about to be.
    #[pin]
    task: Mutex<Option<Task>>,
    /// What kfabric has said, after that.
    #[pin]
    answer: Mutex<Option<Answer>>,
    /// The endpoint, if it has refused and the session ends.
    #[pin]
    refused: Mutex<Option<Object>>,
    /// There is an answer.
    closed: Atomic<bool>,
    /// Woken then; that of its session, for all of these.
    settled: Arc<WaitQueue>,
    closes: Arc<Ends>,
    /// Closes it.
    #[pin]
    work: Work<EndpointClose>,
}

impl EndpointClose {
    /// For an endpoint that is to be closed on `closes`. `ENOMEM`.
    pub(crate) fn new(
        closes: Arc<Ends>,
        settled: Arc<WaitQueue>,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                task <- new_mutex!(None, "kfi_shim::EndpointClose::task"),
                answer <- new_mutex!(None, "kfi_shim::EndpointClose::answer"),
                refused <- new_mutex!(None, "kfi_shim::EndpointClose::refused"),
                closed: Atomic::new(false),
                settled,
                closes,
                work <- new_work!("kfi_shim::EndpointClose::work"),
            }),
            flags,
        )
    }

    /// Has an endpoint closed that was taken out of the session, and waits for that: returns what kfabric says. `EINTR`
    /// if the thread was killed meanwhile; it is closed all the same.
    pub(crate) fn close(
        this: Arc<Self>,
        session: Arc<Session>,
        handle: u32,
        object: Object,
        charge: Charge,
    ) -> Result<Answer> {
        Self::begin(&this, Some((session, handle)), object, charge);
        let closed = || this.is_closed();
        let infinite = Timeout::Infinite.deadline();
        if matches!(
            this.settled.wait_killable(infinite, closed),
            Wakeup::Interrupted
        ) {
            let deadline = Timeout::Millis(KILLED_TIMEOUT_MS).deadline();
            // Perhaps there is no answer then.
            let _ = this.settled.wait_for_a_while(deadline, closed);
        }
        let answer = this.answer.lock().take();
        answer.ok_or(EINTR)
    }

    /// Has an endpoint closed of a session that ends: see [`Self::finish`].
    pub(crate) fn begin_end(this: &Arc<Self>, object: Object, charge: Charge) {
        Self::begin(this, None, object, charge);
    }

    /// Closes an endpoint of a session that ends, or waits until it is closed if that has begun; returns it if it has
    /// refused.
    pub(crate) fn finish(&self) -> Option<Object> {
        // Nothing stays behind what others have queued.
        let _ = self.carry_out();
        if self.work.cancel() {
            self.closes.leave();
        }
        // Not uninterruptibly: it takes as long as peers like.
        let infinite = Timeout::Infinite.deadline();
        while !self.is_closed() {
            let _ = self.settled.wait_for_a_while(infinite, || self.is_closed());
        }
        self.refused.lock().take()
    }

    /// Has an endpoint closed.
    fn begin(
        this: &Arc<Self>,
        session: Option<(Arc<Session>, u32)>,
        object: Object,
        charge: Charge,
    ) {
        *this.task.lock() = Some(Task {
            session,
            object,
            _charge: charge,
        });
        if !this.closes.queue(this.clone()) {
            // The queue is there as long as there are sessions; but nothing is to stay.
            let _ = this.carry_out();
        }
    }

    /// Returns whether it is over.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: what was closed has been given back.
        // See `qemu-test/litmus/KFI-last-use.litmus`.
        self.closed.load(ordering::Acquire)
    }

    /// Closes it, unless that has begun; returns whether it has.
    pub(crate) fn carry_out(&self) -> bool {
        let task = self.task.lock().take();
        let Some(task) = task else {
            return false;
        };
        let Task {
            session,
            object,
            _charge: charge,
        } = task;
        let answer = match &session {
            Some((session, handle)) => session.close_object(*handle, object),
            None => object.close().map_err(|(object, error)| {
                *self.refused.lock() = Some(object);
                error
            }),
        };
        // First: the thread that is told then may close its file, which ends the session if nobody else has a
        // reference of it.
        // The place goes back before the user's others may have ended.
        drop(charge);
        drop(session);
        *self.answer.lock() = Some(answer);
        // Release: see `is_closed`.
        self.closed.store(true, ordering::Release);
        self.settled.wake_up_all();
        true
    }
}

impl WorkItem for EndpointClose {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let _ = this.carry_out();
        let closes = this.closes.clone();
        drop(this);
        closes.leave();
    }
}
