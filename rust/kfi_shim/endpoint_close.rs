// SPDX-License-Identifier: GPL-2.0

//! Endpoints that are being closed.
//!
//! That waits for operations that a peer has, which takes as long as the peer likes, within limits, and cannot be
//! interrupted. So a work queue does it, and the thread that has asked for it waits for that, but not when it is killed.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use crate::{
    kfi::{
        consumer::Answer,
        linux::{
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
    session::Session,
    turns::{
        Turn,
        Turns, //
    }, //
};

/// An endpoint that is being closed.
#[pin_data]
pub(crate) struct EndpointClose {
    /// Its session, which ends later.
    session: Arc<Session>,
    handle: u32,
    /// The endpoint, before.
    #[pin]
    object: Mutex<Option<Object>>,
    /// What kfabric has said, after that.
    #[pin]
    answer: Mutex<Option<Answer>>,
    /// There is an answer.
    closed: Atomic<bool>,
    /// Woken then.
    #[pin]
    settled: WaitQueue,
    /// The one of the same user whose turn is after this one's.
    #[pin]
    next: SpinLockIrq<Option<Arc<EndpointClose>>>,
    /// Closes it.
    #[pin]
    work: Work<EndpointClose>,
}

impl EndpointClose {
    /// For the endpoint that a handle names. `ENOMEM`.
    pub(crate) fn new(session: Arc<Session>, handle: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                session,
                handle,
                object <- new_mutex!(None, "kfi_shim::EndpointClose::object"),
                answer <- new_mutex!(None, "kfi_shim::EndpointClose::answer"),
                closed: Atomic::new(false),
                settled <- WaitQueue::new(c"kfi_shim::EndpointClose::settled", static_lock_class!()),
                next <- new_spinlock_irq!(None, "kfi_shim::EndpointClose::next"),
                work <- new_work!("kfi_shim::EndpointClose::work"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Has an endpoint closed that was taken out of the session, and waits for that: returns what kfabric says. `EINTR`
    /// if the thread was killed meanwhile; it is closed all the same.
    pub(crate) fn close(this: Arc<Self>, object: Object) -> Result<Answer> {
        *this.object.lock() = Some(object);
        if let Some(turn) = this.turns().begin(this.clone()) {
            if !this.session.queues().ends.queue(turn.clone()) {
                // The queue is there as long as there are sessions; but nothing is to stay.
                Self::end(turn);
            }
        }
        // Acquire: what was closed has been given back.
        // See `qemu-test/litmus/KFI-last-use.litmus`.
        let closed = || this.closed.load(ordering::Acquire);
        // If the thread is killed there is none yet, perhaps.
        let _ = this
            .settled
            .wait_killable(Timeout::Infinite.deadline(), closed);
        let answer = this.answer.lock().take();
        answer.ok_or(EINTR)
    }

    /// Returns the turns of its user.
    fn turns(&self) -> &Arc<Turns<Self>> {
        self.session.endpoint_closes()
    }

    /// Closes it, and lets the next one of the user be closed.
    fn end(this: Arc<Self>) {
        let mut turn = Some(this);
        while let Some(this) = turn.take() {
            let object = this.object.lock().take();
            if let Some(object) = object {
                let answer = this.session.close_object(this.handle, object);
                *this.answer.lock() = Some(answer);
            }
            // Release: see `close`.
            this.closed.store(true, ordering::Release);
            this.settled.wake_up_all();
            // Behind what others have queued meanwhile. When the module goes, the queue takes no more.
            let queue = |next: &Arc<Self>| this.session.queues().ends.queue(next.clone());
            turn = this.turns().end().filter(|next| !queue(next));
        }
    }
}

impl Turn for EndpointClose {
    fn next(&self) -> &SpinLockIrq<Option<Arc<Self>>> {
        &self.next
    }
}

impl WorkItem for EndpointClose {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let ends = this.session.queues().ends.clone();
        // The last reference of its session may be among what this drops.
        Self::end(this);
        ends.leave();
    }
}
