// SPDX-License-Identifier: GPL-2.0

//! Descriptors for wait objects: what poll, select, epoll and read do with an object.
//!
//! # Where threads are woken
//!
//! The wait queue of an object is woken with interrupts disabled, and maybe those of many objects one
//! after the other. So only so many descriptors listen to a queue, and what is done there for each of
//! them is little: to count the change, and to see that those who wait are told. A few threads are
//! woken at once. All others are by a work item, of which all descriptors that listen to the queue
//! have one: for an epoll instance that is as many steps as there are others behind it. So few of these
//! items of a user run at once, and the others wait for their turns, that those of others find a place. They
//! are not in the work queue before; nor are those that are asked for later, by one item of the user.
//!
//! The kernel has no call that wakes those in a wait queue in parts: one wake-up goes through all of them.
//!
//! # Nobody waits in vain
//!
//! Each change is followed by a wake-up of all who wait; the question is how soon. A thread that waits for a
//! descriptor adds itself to its queue and then looks at it, as a thread that is woken does: nothing but a look
//! tells what has changed. So if nobody has looked since those who wait were told, they are yet to look,
//! and will see what has changed since, too. They are told again nevertheless, as one of them may have gone
//! with the wake-up of another, or may have looked at less; but that has time, and however many changes
//! there are meanwhile, they are told of them together. If somebody has looked, maybe all have, and those
//! who wait are told as soon as may be.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock,
        new_spinlock_irq,
        Arc,
        SpinLock,
        SpinLockIrq,
        UniqueArc, //
    },
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    uaccess::UserPtr, //
};

use crate::{
    abi::WaitEvent,
    estimate,
    kfi::{
        consumer::{
            Answer,
            Charge,
            CompletionQueue,
            Counter,
            EventQueue,
            HasWaitQueue,
            Listener,
            Quota,
            WaitSet, //
        },
        linux::{
            file::{
                AnonymousFile,
                FileOps,
                Poller,
                Ready, //
            },
            sleep::Wakeup,
            task::cond_resched,
            timeout::Timeout,
            uaccess,
            wait_entry::Woken,
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue, //
            }, //
        }, //
    },
    session::Use,
    turns::{
        Turn,
        Turns, //
    }, //
};

/// Counts how often the wait queue of an object was woken, for those who wait for a descriptor.
#[pin_data]
pub(crate) struct Wakeups {
    /// How often the wait queue was woken.
    generation: Atomic<u64>,
    /// The generation that user space has been told of.
    seen: Atomic<u64>,
    /// Somebody has looked since those who wait were told of a change, or the work item was to tell them.
    is_looked_at: Atomic<bool>,
    /// Those who wait are to be told by the work item, which is asked for at once.
    is_due: Atomic<bool>,
    /// They are to be told by the item when it is asked for later.
    is_due_again: Atomic<bool>,
    #[pin]
    queue: WaitQueue,
}

impl Wakeups {
    /// Without changes.
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            generation: Atomic::new(0),
            seen: Atomic::new(0),
            is_looked_at: Atomic::new(false),
            is_due: Atomic::new(false),
            is_due_again: Atomic::new(false),
            queue <- WaitQueue::new(c"kfi_shim::WaitFd", static_lock_class!()),
        })
    }

    /// Returns how often the wait queue was woken. Of the next change those who wait are told soon.
    pub(crate) fn look(&self) -> u64 {
        // Full: a change that finds that nobody has looked comes before the number is read.
        // See `qemu-test/litmus/KFI-wait-descriptor-look.litmus`.
        self.is_looked_at.xchg(true, ordering::Full);
        // Acquire: what is read of the object afterwards is at least as new.
        self.generation.load(ordering::Acquire)
    }

    /// Notes that user space has been told of a generation.
    pub(crate) fn see(&self, generation: u64) {
        // Relaxed: only compared. Two threads at once may leave the older number, which makes the
        // descriptor readable once more, never less.
        self.seen.store(generation, ordering::Relaxed);
    }

    /// Looks whether there is news.
    fn is_new(&self) -> bool {
        // Relaxed: only compared.
        self.look() != self.seen.load(ordering::Relaxed)
    }
}

/// So many wait descriptors listen to a wait queue, at most: each is told of each change, with interrupts
/// disabled.
const MOST: usize = 64;

/// Not more descriptors than so many, with as many threads each, are woken where the wait queue of an
/// object is.
const FEW: u8 = 4;

/// How long those who wait are not told again when nobody has looked, in milliseconds.
const AGAIN_MS: Msecs = 10;

/// The descriptors that listen to a wait queue.
///
/// May be dropped in any context, also in an interrupt and under the lock of a wait queue: no descriptor is
/// left then, as each has a reference until it has taken itself out of `wakeups`, and the module has references
/// of the work queue until that has been destroyed. So nothing is done but to free memory.
#[pin_data]
pub(crate) struct Listeners {
    /// By their numbers. No mutex: the thread that wakes others does not wait for one that may not run.
    #[pin]
    wakeups: SpinLock<RBTree<u64, Arc<Wakeups>>>,
    /// How many there are, or are about to be.
    count: Atomic<usize>,
    /// The item that wakes is queued, or waits for its turn.
    is_asked: Atomic<bool>,
    /// It is to wake those, too, that are due again.
    is_asked_again: Atomic<bool>,
    /// The item will be asked for later: this is in `later`.
    is_later: Atomic<bool>,
    /// The turns of the user.
    turns: Arc<Turns<Listeners>>,
    /// Those whose turn is after theirs.
    #[pin]
    next: SpinLockIrq<Option<Arc<Listeners>>>,
    /// The objects of the user whose items will be asked for later.
    later: Arc<Later>,
    /// The one that came there before this one.
    #[pin]
    before: SpinLockIrq<Option<Arc<Listeners>>>,
    work_queue: Arc<WorkQueue>,
    #[pin]
    wake: Work<Listeners>,
}

impl Listeners {
    /// Without descriptors.
    pub(crate) fn new(
        work_queue: Arc<WorkQueue>,
        turns: Arc<Turns<Listeners>>,
        later: Arc<Later>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            wakeups <- new_spinlock!(RBTree::new(), "kfi_shim::Listeners::wakeups"),
            count: Atomic::new(0),
            is_asked: Atomic::new(false),
            is_asked_again: Atomic::new(false),
            is_later: Atomic::new(false),
            turns,
            next <- new_spinlock_irq!(None, "kfi_shim::Listeners::next"),
            later,
            before <- new_spinlock_irq!(None, "kfi_shim::Listeners::before"),
            work_queue,
            wake <- new_work!("kfi_shim::Listeners::wake"),
        })
    }

    /// Counts one more; `EMFILE` if as many listen as may. The caller lets no other thread count.
    pub(crate) fn enter(&self) -> Result {
        // Relaxed, here and below: nothing depends on it.
        let count = self.count.load(ordering::Relaxed);
        if count >= MOST {
            return Err(EMFILE);
        }
        self.count.store(count.wrapping_add(1), ordering::Relaxed);
        Ok(())
    }

    /// Takes back what [`Self::enter`] has counted; returns whether there are none left. The caller lets
    /// no other thread count.
    pub(crate) fn leave(&self) -> bool {
        let count = self.count.load(ordering::Relaxed).saturating_sub(1);
        self.count.store(count, ordering::Relaxed);
        count == 0
    }

    /// Adds a descriptor, whose number no other one has.
    pub(crate) fn add(
        &self,
        number: u64,
        wakeups: Arc<Wakeups>,
        node: RBTreeNodeReservation<u64, Arc<Wakeups>>,
    ) {
        let old = self.wakeups.lock().insert(node.into_node(number, wakeups));
        // There is none.
        drop(old);
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&self, number: u64) {
        let old = self.wakeups.lock().remove_node(&number);
        // Without the lock.
        drop(old);
    }

    /// Has those woken who wait for a descriptor that is due, when it is their turn. From any context.
    fn ask(this: &Arc<Self>) {
        // Full: what is due is seen by the item that takes this back, which is yet to run.
        // See `qemu-test/litmus/KFI-wait-descriptor-asked.litmus`.
        if !this.is_asked.xchg(true, ordering::Full) {
            Self::queue(this.turns.begin(this.clone()));
        }
    }

    /// Has those woken who wait for a descriptor that is due again, but later. From any context.
    fn ask_later(this: &Arc<Self>) {
        // Full: what is due again is seen when it is asked for, which is yet to come.
        // See `qemu-test/litmus/KFI-wait-descriptor-again.litmus`.
        if !this.is_later.xchg(true, ordering::Full) {
            Later::add(&this.later, this);
        }
    }

    /// Does what [`Self::ask_later`] has left for later, when [`Later`] does not have this any more.
    fn ask_again(this: &Arc<Self>) {
        // Full: see `ask_later`. From here on this may be added again.
        this.is_later.xchg(false, ordering::Full);
        // Relaxed: before the item runs, for which it is asked after this.
        this.is_asked_again.store(true, ordering::Relaxed);
        Self::ask(this);
    }

    /// Queues the item of those whose turn it is. When the module goes, the queue takes no more.
    fn queue(mut turn: Option<Arc<Self>>) {
        while let Some(this) = turn.take() {
            if !this.work_queue.queue::<_, 0>(this.clone()) {
                turn = this.turns.end();
            }
        }
    }

    /// Wakes those who wait for a descriptor that is due.
    fn wake(&self) {
        // Full: see `ask`.
        self.is_asked.xchg(false, ordering::Full);
        // Full: what is due again is seen. See `qemu-test/litmus/KFI-wait-descriptor-again.litmus`.
        let again = self.is_asked_again.xchg(false, ordering::Full);
        let mut next = 0;
        loop {
            let (number, wakeups) = {
                let mut wakeups = self.wakeups.lock();
                let Some(at) = wakeups.cursor_lower_bound_mut(&next) else {
                    return;
                };
                let (number, wakeups) = at.current();
                (*number, wakeups.clone())
            };
            // Full, both: a change that finds it due is seen by those that are woken now.
            // See `qemu-test/litmus/KFI-wait-descriptor-due.litmus`.
            let is_due = wakeups.is_due.xchg(false, ordering::Full);
            // Once is enough.
            let is_due_again =
                (is_due || again) && wakeups.is_due_again.xchg(false, ordering::Full);
            if is_due || is_due_again {
                wakeups.queue.wake_up_all();
            }
            drop(wakeups);
            next = number.wrapping_add(1);
            cond_resched();
        }
    }
}

impl WorkItem for Listeners {
    fn work(&self) -> &Work<Self> {
        &self.wake
    }

    fn run(this: Arc<Self>) {
        this.wake();
        // Behind what others have queued meanwhile.
        Self::queue(this.turns.end());
    }
}

impl Turn for Listeners {
    fn next(&self) -> &SpinLockIrq<Option<Arc<Self>>> {
        &self.next
    }
}

/// The objects of a user that have descriptors which are due again, until the items of these objects are
/// asked for, by one item for all of them.
///
/// Each has a reference of this, and is in here until the item has run, which is queued as long as there
/// are any. If the work queue takes no more, none stays.
#[pin_data]
pub(crate) struct Later {
    /// The last one; each has the one before.
    #[pin]
    last: SpinLockIrq<Option<Arc<Listeners>>>,
    #[pin]
    ask: Work<Later>,
}

impl Later {
    /// Nothing is due again.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                last <- new_spinlock_irq!(None, "kfi_shim::Later::last"),
                ask <- new_work!("kfi_shim::Later::ask"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Adds one that is not in here. From any context.
    fn add(this: &Arc<Self>, listeners: &Arc<Listeners>) {
        let mut last = this.last.lock();
        let before = last.replace(listeners.clone());
        let is_first = before.is_none();
        *listeners.before.lock() = before;
        drop(last);
        // If this is the first one, the item is not queued, as it takes out all when it runs.
        let (queue, delay) = (&listeners.work_queue, msecs_to_jiffies(AGAIN_MS));
        if is_first && !queue.queue_delayed::<_, 0>(this.clone(), delay) {
            // The module goes.
            this.take_all(drop);
        }
    }

    /// Takes all out and hands each to `each`. From any context in which `each` may be called.
    fn take_all(&self, mut each: impl FnMut(Arc<Listeners>)) {
        let mut next = self.last.lock().take();
        while let Some(listeners) = next {
            // First: `each` may let it be added again.
            next = listeners.before.lock().take();
            each(listeners);
        }
    }
}

impl WorkItem for Later {
    fn work(&self) -> &Work<Self> {
        &self.ask
    }

    fn run(this: Arc<Self>) {
        this.take_all(|listeners| {
            Listeners::ask_again(&listeners);
            drop(listeners);
            cond_resched();
        });
    }
}

/// Listens to the wait queue of an object, for a descriptor.
struct DescriptorListener {
    wakeups: Arc<Wakeups>,
    listeners: Arc<Listeners>,
}

impl Woken for DescriptorListener {
    // One call at a time, as the lock of the wait queue is held.
    fn woken(this: &Arc<Self>) {
        let (wakeups, listeners) = (&this.wakeups, &this.listeners);
        // Full: the change comes before its number, and that before what follows.
        // See `qemu-test/litmus/KFI-wait-descriptor.litmus`.
        wakeups.generation.fetch_add(1, ordering::Full);
        // Relaxed, all three loads: ordered by the addition.
        if wakeups.is_looked_at.load(ordering::Relaxed) {
            // Full: a thread that has looked is in the queue, and one that looks after this is told of the next
            // change.
            wakeups.is_looked_at.xchg(false, ordering::Full);
            let few = usize::from(FEW);
            // Relaxed: nothing depends on it.
            let is_few = listeners.count.load(ordering::Relaxed) <= few;
            if !is_few || !wakeups.queue.wake_up_few(FEW.into()) {
                // Relaxed: before the item runs, for which it is asked after this.
                wakeups.is_due.store(true, ordering::Relaxed);
                Listeners::ask(listeners);
            }
        } else if !wakeups.is_due.load(ordering::Relaxed)
            && !wakeups.is_due_again.load(ordering::Relaxed)
        {
            // Relaxed: before the item runs, for which it is asked after this.
            wakeups.is_due_again.store(true, ordering::Relaxed);
            Listeners::ask_later(listeners);
        }
    }
}

/// An object that can have a wait descriptor.
pub(crate) trait Waitable: HasWaitQueue {
    /// Returns what read(2) tells, when the wait queue was woken `generation` times.
    fn event(&self, generation: u64) -> WaitEvent {
        WaitEvent {
            value: generation,
            error_value: 0,
        }
    }

    /// Returns the error value; 0 for objects that have none.
    fn error_value(&self) -> u64 {
        0
    }
}

impl Waitable for Counter {
    fn event(&self, _generation: u64) -> WaitEvent {
        WaitEvent {
            value: self.read(),
            error_value: self.readerr(),
        }
    }

    fn error_value(&self) -> u64 {
        self.readerr()
    }
}

impl Waitable for CompletionQueue {}
impl Waitable for EventQueue {}
impl Waitable for WaitSet {}

/// The data of a wait descriptor.
#[pin_data]
pub(crate) struct WaitFd<O: Waitable> {
    // Dropped first: nobody listens any more when the object is let go.
    #[pin]
    listener: Listener<O, DescriptorListener>,
    wakeups: Noted<O>,
    /// The error value read last.
    seen_error: Atomic<u64>,
}

/// Wake-ups that the session knows of, as long as this is not dropped.
struct Noted<O> {
    wakeups: Arc<Wakeups>,
    /// Those that listen to the same wait queue.
    listeners: Arc<Listeners>,
    /// The name by which the session knows them, beside the handle of the object.
    number: u64,
    /// The number of the wait queue that they listen to.
    source: usize,
    _charge: Charge,
    object: Use<Arc<O>>,
}

impl<O> Noted<O> {
    /// Lets the session of `object` know of its wake-ups, which listen to a wait queue; `EMFILE` if as
    /// many do as may.
    fn new(object: Use<Arc<O>>, source: usize, wakeups: Arc<Wakeups>) -> Result<Self> {
        let session = object.session();
        let charge = Quota::charge(session.quota(), estimate::DESCRIPTOR)?;
        let (number, listeners) =
            session.note_descriptor(object.handle(), source, wakeups.clone())?;
        Ok(Self {
            wakeups,
            listeners,
            number,
            source,
            _charge: charge,
            object,
        })
    }

    /// Returns the listener.
    fn listener(&self) -> Result<Arc<DescriptorListener>> {
        let listener = DescriptorListener {
            wakeups: self.wakeups.clone(),
            listeners: self.listeners.clone(),
        };
        Ok(Arc::new(listener, GFP_KERNEL_ACCOUNT)?)
    }
}

impl<O> core::ops::Deref for Noted<O> {
    type Target = Wakeups;

    fn deref(&self) -> &Wakeups {
        &self.wakeups
    }
}

impl<O> Drop for Noted<O> {
    fn drop(&mut self) {
        let object = &self.object;
        object.session().forget_descriptor(
            object.handle(),
            self.number,
            self.source,
            &self.listeners,
        );
    }
}

impl<O: Waitable> WaitFd<O> {
    /// Creates a file for an object; the answer is that to KFI_GETWAIT.
    pub(crate) fn new_file(object: Use<Arc<O>>, nonblock: bool) -> Result<Answer<AnonymousFile>> {
        let source = match Listener::<O, DescriptorListener>::queue_of(&object) {
            Ok(source) => source,
            Err(error) => return Ok(Err(error)),
        };
        // First: what follows is let go in the order of its members, whatever fails.
        let room = UniqueArc::<Self>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let wakeups = Arc::pin_init(Wakeups::new(), GFP_KERNEL_ACCOUNT)?;
        // Dropped last, if anything fails: a thread that finds no marks finds no references either.
        let wakeups = Noted::new(object, source, wakeups)?;
        let object: &Arc<O> = &wakeups.object;
        let listener = match Listener::new(object.clone(), wakeups.listener()?) {
            Ok(listener) => listener,
            Err(error) => return Ok(Err(error)),
        };
        // Any later value differs from this one, or the listener hears of it.
        let seen_error = object.error_value();
        let this = room.pin_init_with(pin_init!(Self {
            listener <- listener,
            wakeups,
            seen_error: Atomic::new(seen_error),
        }))?;
        let this: Arc<Self> = this.into();
        let file = AnonymousFile::new::<_, crate::LocalModule>(c"[kfi-wait]", this, nonblock)?;
        Ok(Ok(file))
    }

    /// Returns whether the error value is not the one read last.
    fn error_differs(&self) -> bool {
        // Relaxed: only compared.
        self.listener.object().error_value() != self.seen_error.load(ordering::Relaxed)
    }

    /// Returns whether there is something to read.
    fn is_ready(&self) -> bool {
        self.wakeups.is_new() || self.error_differs()
    }
}

#[vtable]
impl<O: Waitable> FileOps for WaitFd<O> {
    fn read(&self, buffer: UserPtr, len: usize, nonblock: bool) -> Result<usize> {
        let size = size_of::<WaitEvent>();
        if len < size {
            return Err(EINVAL);
        }
        if !self.is_ready() {
            if nonblock {
                return Err(EAGAIN);
            }
            let queue = &self.wakeups.queue;
            if queue.wait_until(Timeout::Infinite.deadline(), || self.is_ready())
                == Wakeup::Interrupted
            {
                return Err(ERESTARTSYS);
            }
        }
        // Before the values: a change that they miss has a later number.
        let generation = self.wakeups.look();
        let event = self.listener.object().event(generation);
        uaccess::write(buffer, size, &event)?;
        // Relaxed: as for `Wakeups::see`.
        self.seen_error.store(event.error_value, ordering::Relaxed);
        self.wakeups.see(generation);
        Ok(size)
    }

    fn poll<'a>(&'a self, poller: &Poller<'a>) -> Ready {
        poller.wait(&self.wakeups.queue);
        // Both are asked once: what has an error condition is readable.
        let (is_new, differs) = (self.wakeups.is_new(), self.error_differs());
        let mut ready = Ready::NONE;
        if is_new || differs {
            ready = ready | Ready::READABLE;
        }
        if differs {
            ready = ready | Ready::ERROR;
        }
        ready
    }
}
