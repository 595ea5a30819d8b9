// SPDX-License-Identifier: GPL-2.0

//! Sessions: an open file of /dev/kfi and the objects that it holds.

#![forbid(unsafe_code)]

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    static_lock_class,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_condvar,
        new_mutex,
        new_spinlock_irq,
        Arc,
        ArcBorrow,
        CondVar,
        Mutex,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    uaccess::UserPtr, //
};

use crate::{
    endpoint_close::EndpointClose,
    estimate::Needs,
    kfi::{
        consumer::{
            half_of_memory,
            Answer,
            Charge,
            Contexts,
            DeferredWork,
            NamedContext,
            Places,
            Quota,
            Taken, //
        },
        context::Context,
        linux::{
            file::{
                Area,
                Device,
                FileOps, //
            },
            last_work::do_last,
            module_use::ModuleUse,
            process::Process,
            task,
            timeout::{
                Deadline,
                Timeout, //
            },
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work as EndWork,
                WorkItem, //
            }, //
        }, //
    },
    module_parameters,
    object::{
        Class,
        Object, //
    },
    queues::{
        self,
        Ends,
        Queues, //
    },
    request,
    turns::{
        Turn,
        Turns, //
    },
    user::{
        User,
        UserTurns, //
    },
    wait_fd::{
        Listeners,
        Wakeups, //
    }, //
};

/// The object that a handle names.
struct Entry {
    /// The object; none while it is being closed.
    object: Option<Object>,
    /// Requests and descriptors that are using it.
    users: usize,
    /// Its context.
    _context: NamedContext,
    /// Its part in the objects, the memory, the threads and the endpoints.
    _charges: [Charge; 4],
}

/// The handles of a session.
struct Table {
    /// The objects that the handles name.
    entries: RBTree<u32, Entry>,
    /// The handles of open objects, by where kfabric has these.
    by_address: RBTree<usize, u32>,
    /// The handle given last.
    last: u32,
    /// The wait descriptors, by the handles of their objects and their own numbers.
    descriptors: RBTree<(u32, u64), Arc<Wakeups>>,
    /// The number of a wait descriptor given last.
    last_descriptor: u64,
    /// Those that listen to a wait queue, by the number of that.
    listeners: RBTree<usize, Arc<Listeners>>,
    /// The members of its poll sets.
    membership: Arc<Membership>,
}

/// So many endpoints of a session that ends are closed by the work queue at a time.
const ENDPOINTS_AT_ONCE: usize = 16;

/// If none of them is closed within so many milliseconds, the thread that ends the session closes one itself.
const PATIENCE_MS: u32 = 1000;

/// An endpoint that is being closed there, by its handle.
type UnderWay = Option<(u32, Arc<EndpointClose>)>;

/// The members of poll sets, by the handles of both, with their places.
type Members = RBTree<(u32, u32), Taken>;

/// The state that changes with one of them.
#[pin_data]
struct Membership {
    /// Held while the members of a poll set change.
    #[pin]
    members: Mutex<Members>,
}

impl Table {
    /// No handles.
    fn new(membership: Arc<Membership>) -> Self {
        Self {
            entries: RBTree::new(),
            by_address: RBTree::new(),
            last: 0,
            descriptors: RBTree::new(),
            last_descriptor: 0,
            listeners: RBTree::new(),
            membership,
        }
    }

    /// Removes the members of all poll sets, which cannot be closed with members.
    fn dissolve_poll_sets(&self) {
        for (set, member) in self.membership.members.lock().keys() {
            let object = |handle| self.entries.get(handle)?.object.as_ref();
            if let (Some(Object::PollSet(set)), Some(member)) = (object(set), object(member)) {
                if let Some(member) = member.any() {
                    // Refused if it is no member any more.
                    let _ = set.del(member, 0);
                }
            }
            task::cond_resched();
        }
    }

    /// Cancels all deferred work, whose counters and endpoints could not be closed otherwise.
    fn flush_works(&self) {
        for entry in self.entries.values() {
            if let Some(Object::Domain(domain)) = &entry.object {
                // Not every provider has that.
                let _ = domain.flush_work(None);
            }
        }
    }

    /// Returns the handle of the first endpoint from one on.
    fn next_endpoint(&mut self, from: u32) -> Option<u32> {
        let mut cursor = self.entries.cursor_lower_bound_mut(&from);
        while let Some(at) = cursor {
            let (handle, entry) = at.current();
            if entry.object.as_ref().is_some_and(Object::is_endpoint) {
                return Some(*handle);
            }
            task::cond_resched();
            cursor = at.move_next();
        }
        None
    }

    /// Closes endpoints, several at a time as far as the user may have that: those whom their operations have gone to
    /// may keep each of them for long; fewer if others have used the session (`of_others`). Returns whether any was
    /// closed; those that have refused are left.
    fn close_endpoints(
        &mut self,
        closes: &Arc<Ends>,
        endpoint_closed: &Arc<WaitQueue>,
        user: &User,
        of_others: bool,
    ) -> bool {
        let mut is_any = false;
        let mut under_way: [UnderWay; ENDPOINTS_AT_ONCE] = [const { None }; ENDPOINTS_AT_ONCE];
        let mut is_first = true;
        let mut first = self.next_endpoint(0);
        while let Some(handle) = first {
            first = handle
                .checked_add(1)
                .and_then(|from| self.next_endpoint(from));
            let place = Self::next_place(&under_way, endpoint_closed);
            let Some(place) = under_way.get_mut(place) else {
                break;
            };
            is_any |= self.finish(place.take());
            let Some(entry) = self.entries.get_mut(&handle) else {
                continue;
            };
            let Some(object) = entry.object.take() else {
                continue;
            };
            // The only one is left to this thread.
            let close = if first.is_some() || !is_first {
                user.endpoint_close(of_others).and_then(|charge| {
                    // The memory of the session may be what all wait for.
                    let flags = GFP_NOWAIT;
                    let close = EndpointClose::new(closes.clone(), endpoint_closed.clone(), flags)?;
                    Ok((close, charge))
                })
            } else {
                Err(ENOENT)
            };
            is_first = false;
            match close {
                Ok((close, charge)) => {
                    EndpointClose::begin_end(&close, object, charge);
                    *place = Some((handle, close));
                }
                Err(_) => match object.close() {
                    Ok(()) => is_any = true,
                    Err((object, _)) => entry.object = Some(object),
                },
            }
            task::cond_resched();
        }
        for place in &mut under_way {
            is_any |= self.finish(place.take());
        }
        is_any
    }

    /// Returns which place is free, or has an endpoint that is closed; waits for the first if there is none.
    fn next_place(under_way: &[UnderWay; ENDPOINTS_AT_ONCE], endpoint_closed: &WaitQueue) -> usize {
        let is_over = |place: &UnderWay| place.as_ref().is_none_or(|(_, close)| close.is_closed());
        loop {
            let mut free = None;
            let patience = Timeout::Millis(PATIENCE_MS).deadline();
            endpoint_closed.wait_for_a_while(patience, || {
                free = under_way.iter().position(is_over);
                free.is_some()
            });
            if let Some(free) = free {
                return free;
            }
            // Maybe what others have queued keeps one from its turn, or there is no memory for a thread.
            let _ = under_way
                .iter()
                .flatten()
                .find(|(_, close)| close.carry_out());
        }
    }

    /// Waits until an endpoint is closed, and takes it back if it has refused; returns whether it is closed.
    fn finish(&mut self, under_way: UnderWay) -> bool {
        let Some((handle, close)) = under_way else {
            return false;
        };
        let Some(refused) = close.finish() else {
            return true;
        };
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.object = Some(refused);
        }
        false
    }

    /// Closes those objects of which `chosen` says so, the newest first, as whatever was opened later
    /// may depend on what was opened earlier. Returns how many have refused.
    fn close(&mut self, chosen: impl Fn(&Object) -> bool) -> usize {
        let mut refused = 0;
        let mut cursor = self.entries.cursor_back_mut();
        while let Some(mut at) = cursor {
            let (_, entry) = at.current_mut();
            if entry.object.as_ref().is_some_and(&chosen) {
                if let Some(Err((object, _))) = entry.object.take().map(Object::close) {
                    entry.object = Some(object);
                    refused += 1;
                }
            }
            task::cond_resched();
            cursor = at.move_prev();
        }
        refused
    }
}

impl Drop for Table {
    /// Closes everything.
    ///
    /// Endpoints go first: what operations use that they still carry out may have been opened later.
    /// An object that refuses to close is tried again when others are gone; and then for a while,
    /// as a provider may need some time to be done with operations that have fired.
    fn drop(&mut self) {
        let mut before = usize::MAX;
        let mut slept = 0;
        let mut pause = 1;
        loop {
            self.flush_works();
            self.dissolve_poll_sets();
            self.close(Object::is_endpoint);
            let refused = self.close(|_| true);
            if refused == 0 {
                break;
            }
            if refused < before {
                before = refused;
                continue;
            }
            if slept >= CLOSE_TIMEOUT_MS {
                // Each object says so in the log.
                break;
            }
            fsleep(Delta::from_millis(pause));
            slept += pause;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// How long the end of a session waits for a provider that refuses to close anything, in milliseconds.
const CLOSE_TIMEOUT_MS: i64 = 20_000;

/// How long it waits at a time, at most.
const PAUSE_MAX: i64 = 100;

/// The objects and works of a session.
#[pin_data]
pub(crate) struct Holdings {
    #[pin]
    table: Mutex<Table>,
    #[pin]
    works: Mutex<Works>,
    /// Whose they are, until they are closed.
    #[pin]
    owner: Mutex<Option<Arc<Owner>>>,
    queues: Queues,
    /// Woken when an endpoint is closed by the work queue.
    endpoint_closed: Arc<WaitQueue>,
    /// The process that has opened the session.
    opener: Process,
    /// Another process has made a request.
    used_by_others: Atomic<bool>,
    /// The turns of its user's sessions.
    turns: UserTurns,
    /// The session whose turn is after this one's.
    #[pin]
    next: SpinLockIrq<Option<Arc<Holdings>>>,
    /// Closes everything.
    #[pin]
    end: EndWork<Holdings>,
    /// All is closed.
    ended: Atomic<bool>,
    /// Woken then.
    #[pin]
    closed: WaitQueue,
}

/// The user of a session, and the session's own part in the user's objects.
struct Owner {
    _charge: Charge,
    // Dropped behind it, when what counts among the user's has been given back.
    user: User,
    /// The module stays until all is closed: `rmmod` refuses, and does not wait.
    _module: ModuleUse,
}

/// How long its user waits in a task that is about to end, which nobody can kill any more, in
/// milliseconds, for all sessions together: mostly all is closed, and has been given back, when the process
/// is gone. It may have waited for an endpoint before, for `KILLED_TIMEOUT_MS`.
const EXIT_TIMEOUT_MS: u32 = 4000;

/// After how many milliseconds it looks whether it holds more that is to be released.
const EXIT_MOMENT_MS: u32 = 100;

/// The holdings of an open session. Dropped, they are closed, by a work queue, which others need as
/// well: so many of a user's at once.
///
/// Closing may take long, and the last reference may be dropped by whoever was given a descriptor, or by a
/// thread of the kernel that looks after the files of everybody. The process that has opened it waits for the end,
/// if no other one has ever made a request: what takes long is its own then. It may be killed, and does not wait for
/// long when it ends, as none of its user does then. Others do not wait, nor do threads of the kernel: they may be sent
/// many descriptors, and the waits would add up. A task that ends waits when it has dropped all that it holds: so the
/// time for each of these begins at once.
struct Held(Arc<Holdings>);

impl core::ops::Deref for Held {
    type Target = Holdings;

    fn deref(&self) -> &Holdings {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let is_user = |owner: &Arc<Owner>| owner.user.is_current();
        let is_user = self.owner.lock().as_ref().is_some_and(is_user);
        if let Some(holdings) = self.turns().begin(self.0.clone()) {
            if !self.queues.ends.queue(holdings.clone()) {
                // The queue is there as long as there are sessions; but nothing is to stay.
                Holdings::end(holdings);
                return;
            }
        }
        if task::runs_in_kernel_only() {
            return;
        }
        if task::is_exiting() {
            if !is_user {
                return;
            }
            let deadline = Timeout::Millis(EXIT_TIMEOUT_MS).deadline();
            let holdings = self.0.clone();
            // If there is no memory for that nobody waits.
            let _ = do_last(move |is_last| {
                let is_over = || holdings.has_ended() || deadline.has_passed();
                if is_last && !is_over() {
                    let moment = Timeout::Millis(EXIT_MOMENT_MS).deadline();
                    holdings.wait_for_a_while(moment.earlier(deadline));
                }
                is_over()
            });
        } else if self.opener.is_current() && !self.is_used_by_others() && !task::has_to_end() {
            // One that has to end drops some of what it has before it exits: nothing might end its wait then.
            self.wait();
        }
    }
}

impl WorkItem for Holdings {
    fn work(&self) -> &EndWork<Self> {
        &self.end
    }

    fn run(this: Arc<Self>) {
        let ends = this.queues.ends.clone();
        Self::end(this);
        ends.leave();
    }
}

impl Turn for Holdings {
    fn next(&self) -> &SpinLockIrq<Option<Arc<Self>>> {
        &self.next
    }
}

impl Holdings {
    /// Closes everything, and lets the next session of the user end.
    fn end(this: Arc<Self>) {
        let mut turn = Some(this);
        while let Some(this) = turn.take() {
            this.close();
            // Behind what others have queued meanwhile. When the module goes, the queue takes no more.
            let queue = |next: &Arc<Self>| this.queues.ends.queue(next.clone());
            turn = this.turns().end().filter(|next| !queue(next));
        }
    }

    /// See [`Session::note_request`].
    fn note_request(&self) {
        if !self.is_used_by_others() && !self.opener.is_current() {
            // Relaxed: whoever has closed the file comes after all requests.
            self.used_by_others.store(true, ordering::Relaxed);
        }
    }

    /// Returns whether another process than the one that has opened it has ever made a request.
    fn is_used_by_others(&self) -> bool {
        // Relaxed: see above.
        self.used_by_others.load(ordering::Relaxed)
    }

    /// Returns the turns that it takes when it ends, when no request is made any more: what others have done in
    /// sessions that they were given is nothing that those wait for which its user has kept.
    fn turns(&self) -> &Turns<Self> {
        if self.is_used_by_others() {
            &self.turns.used_by_others
        } else {
            &self.turns.own
        }
    }

    /// Returns whether all is closed.
    fn has_ended(&self) -> bool {
        // Acquire: all that was closed has been given back.
        self.ended.load(ordering::Acquire)
    }

    /// Waits until all is closed, or the task is killed.
    fn wait(&self) {
        let infinite = Timeout::Infinite.deadline();
        // However it ends, the rest is done.
        let _ = self.closed.wait_killable(infinite, || self.has_ended());
    }

    /// Waits until all is closed, or the deadline has passed.
    fn wait_for_a_while(&self, deadline: Deadline) {
        // As there.
        let _ = self.closed.wait_for_a_while(deadline, || self.has_ended());
    }

    /// Closes everything.
    fn close(&self) {
        let mut table = {
            let mut table = self.table.lock();
            let empty = Table::new(table.membership.clone());
            core::mem::replace(&mut *table, empty)
        };
        // Without the locks.
        let owner = self.owner.lock().clone();
        if let Some(owner) = &owner {
            // Works refer to endpoints.
            table.flush_works();
            // Again for those that have refused because of others, as they have aliases.
            let close_endpoints = |table: &mut Table| {
                let closes = &self.queues.closes;
                let closed = &self.endpoint_closed;
                let of_others = self.is_used_by_others();
                while table.close_endpoints(closes, closed, &owner.user, of_others) {}
            };
            close_endpoints(&mut table);
            if table.next_endpoint(0).is_some() {
                // Regions that are bound to endpoints keep them.
                table.close(Object::is_memory_region);
                close_endpoints(&mut table);
            }
        }
        drop(owner);
        // The rest one after the other.
        let membership = table.membership.clone();
        drop(table);
        // They have parts in what the user may have.
        let mut members = core::mem::replace(&mut *membership.members.lock(), RBTree::new());
        while let Some(first) = members.cursor_front_mut() {
            drop(first.remove_current());
            task::cond_resched();
        }
        drop(membership);
        let works = core::mem::replace(&mut *self.works.lock(), Works::new());
        drop(works);
        let owner = self.owner.lock().take();
        drop(owner);
        // Release: see `Held`.
        // See `qemu-test/litmus/KFI-last-use.litmus`.
        self.ended.store(true, ordering::Release);
        self.closed.wake_up_all();
    }
}

/// An open file of /dev/kfi.
#[pin_data]
pub(crate) struct Session {
    // Dropped first.
    held: Held,
    membership: Arc<Membership>,
    /// Notified when an object that was being closed is closed, or is not.
    #[pin]
    settled: CondVar,
    /// How much memory there may be.
    quota: Arc<Quota>,
    /// How many objects there may be.
    objects: Arc<Quota>,
    contexts: Arc<Contexts>,
    /// Where its buffers are.
    places: Arc<Places>,
    /// Dropped last.
    owner: Arc<Owner>,
}

/// Deferred work, by its ids.
struct Works {
    works: RBTree<u64, Arc<Work>>,
    /// The ids by the handles of the domains.
    by_domain: RBTree<(u32, u64), ()>,
    /// The id given last.
    last: u64,
}

impl Works {
    /// None.
    fn new() -> Self {
        Self {
            works: RBTree::new(),
            by_domain: RBTree::new(),
            last: 0,
        }
    }

    /// Takes the work of an id out.
    fn remove(&mut self, id: u64) -> Option<Arc<Work>> {
        let work = self.works.remove(&id)?;
        self.by_domain.remove(&(work.domain, id));
        Some(work)
    }
}

/// A deferred work and what it names.
pub(crate) struct Work {
    /// The request.
    pub(crate) request: Arc<DeferredWork>,
    /// The handle of its domain.
    pub(crate) domain: u32,
    /// The handle of its endpoint, as of all others 0 for none.
    pub(crate) ep: u32,
    /// The handle of the counter that triggers it.
    pub(crate) triggering_cntr: u32,
    /// The handle of the counter of its completion.
    pub(crate) completion_cntr: u32,
    /// The handle of the counter that it changes.
    pub(crate) cntr: u32,
    /// Its part in the objects.
    pub(crate) _charge: Charge,
}

/// The members to be forgotten when an object is closed.
enum Closing {
    /// Nothing.
    Nothing,
    /// Its members, if the provider does not mind that it has some.
    PollSet,
    /// Its deferred work.
    Domain,
}

impl Closing {
    /// Returns what is to be forgotten for an object.
    fn of(object: &Object) -> Self {
        match object {
            Object::PollSet(_) => Self::PollSet,
            Object::Domain(_) => Self::Domain,
            _ => Self::Nothing,
        }
    }
}

/// A handle that is reserved for an object that is being opened.
pub(crate) struct Slot<'a> {
    session: &'a Session,
    handle: u32,
    context: NamedContext,
    charges: [Charge; 4],
    entry: RBTreeNodeReservation<u32, Entry>,
    address: RBTreeNodeReservation<usize, u32>,
}

impl Slot<'_> {
    /// Returns the handle.
    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    /// Returns the context.
    pub(crate) fn context(&self) -> Context {
        self.context.context()
    }

    /// Makes the handle name `object`.
    pub(crate) fn fill(self, object: Object) {
        let handle = self.handle;
        let address = object.any().map(|object| object.address());
        let address = address.map(|address| self.address.into_node(address, handle));
        let entry = Entry {
            object: Some(object),
            users: 0,
            _context: self.context,
            _charges: self.charges,
        };
        let entry = self.entry.into_node(handle, entry);
        let mut table = self.session.held.table.lock();
        // Handles are not used again while they name something; where this object is another one may
        // have been that is just being forgotten.
        let old = (
            table.entries.insert(entry),
            address.map(|node| table.by_address.insert(node)),
        );
        drop(table);
        drop(old);
    }
}

/// Marks what a handle names as being in use, so that it cannot be closed.
struct Mark {
    session: Arc<Session>,
    handle: u32,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut table = self.session.held.table.lock();
        if let Some(entry) = table.entries.get_mut(&self.handle) {
            entry.users = entry.users.saturating_sub(1);
        }
    }
}

/// An object in use, which cannot be closed meanwhile.
pub(crate) struct Use<T> {
    // Dropped first: a thread that finds no marks finds no references either.
    object: T,
    mark: Mark,
}

impl<T> Use<T> {
    /// Returns the session.
    pub(crate) fn session(&self) -> &Session {
        &self.mark.session
    }

    /// Returns the handle.
    pub(crate) fn handle(&self) -> u32 {
        self.mark.handle
    }
}

impl<T> core::ops::Deref for Use<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl Session {
    /// Has the current task act for the user that opened the session, while `act` runs.
    pub(crate) fn for_its_user<R>(&self, act: impl FnOnce() -> R) -> R {
        self.owner.user.during(act)
    }

    /// Reserves a handle for an object with these needs that the user knows by a number; `EMFILE` if
    /// the session, or its user, holds as many objects as it may, or the user those with threads or
    /// endpoints, `EDQUOT` if it holds as much memory.
    pub(crate) fn reserve(&self, number: u64, needs: impl Into<Needs>) -> Result<Slot<'_>> {
        let needs = needs.into();
        let charges = [
            self.object()?,
            Quota::charge(&self.quota, needs.memory)?,
            self.owner.user.with_threads(needs.with_threads)?,
            self.owner.user.endpoints(needs.endpoints)?,
        ];
        let context = Contexts::named(&self.contexts, number)?;
        let (entry, address) = (
            RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        );
        let mut table = self.held.table.lock();
        // Handles count up and are never used again, so that one that was closed names nothing, and
        // that what has the larger one was opened later.
        let handle = table.last.checked_add(1).ok_or(EMFILE)?;
        table.last = handle;
        drop(table);
        Ok(Slot {
            session: self,
            handle,
            context,
            charges,
            entry,
            address,
        })
    }

    /// Counts an object.
    pub(crate) fn object(&self) -> Result<Charge> {
        Quota::charge(&self.objects, 1).map_err(|_| EMFILE)
    }

    /// Returns what `find` finds in what a handle names; `EBADF` if that is nothing, `EINVAL` if
    /// `find` finds nothing. While the object is being closed, it waits for the outcome if it may
    /// `wait`, and else finds nothing; `EINTR` for a signal then.
    fn find<T>(
        this: ArcBorrow<'_, Self>,
        handle: u32,
        wait: bool,
        find: impl FnOnce(&Object) -> Option<T>,
    ) -> Result<Use<T>> {
        let mut table = this.held.table.lock();
        let object = loop {
            let entry = table.entries.get_mut(&handle).ok_or(EBADF)?;
            if let Some(object) = &entry.object {
                let object = find(object).ok_or(EINVAL)?;
                entry.users += 1;
                break object;
            }
            if !wait {
                return Err(EBADF);
            }
            if this.settled.wait_interruptible(&mut table) {
                return Err(EINTR);
            }
        };
        drop(table);
        Ok(Use {
            object,
            mark: Mark {
                session: this.into(),
                handle,
            },
        })
    }

    /// Returns the object of any class that a handle names.
    pub(crate) fn any(this: ArcBorrow<'_, Self>, handle: u32) -> Result<Use<Object>> {
        Self::find(this, handle, true, |object| Some(object.clone()))
    }

    /// Returns the object of a class that a handle names; `EINVAL` if it is of another class.
    pub(crate) fn get<T: Class>(this: ArcBorrow<'_, Self>, handle: u32) -> Result<Use<Arc<T>>> {
        Self::find(this, handle, true, |object| T::from_object(object).cloned())
    }

    /// As [`Self::get`], but what is being closed is as good as closed.
    pub(crate) fn get_now<T: Class>(this: ArcBorrow<'_, Self>, handle: u32) -> Result<Use<Arc<T>>> {
        Self::find(this, handle, false, |object| {
            T::from_object(object).cloned()
        })
    }

    /// Returns the work queues of the module.
    pub(crate) fn queues(&self) -> &Queues {
        &self.held.queues
    }

    /// Returns how much memory there may be.
    pub(crate) fn quota(&self) -> &Arc<Quota> {
        &self.quota
    }

    /// Returns the contexts of operations.
    pub(crate) fn contexts(&self) -> &Arc<Contexts> {
        &self.contexts
    }

    /// Returns where its buffers are.
    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Returns the handle of an open object that a provider names by its address.
    pub(crate) fn handle_of(&self, address: usize) -> Option<u32> {
        self.held.table.lock().by_address.get(&address).copied()
    }

    /// Adds a deferred work; returns its id.
    pub(crate) fn add_work(&self, work: Work) -> Result<(u64, Arc<Work>)> {
        let domain = work.domain;
        let work = Arc::new(work, GFP_KERNEL_ACCOUNT)?;
        let (node, index) = (
            RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        );
        let mut works = self.held.works.lock();
        let id = works.last.checked_add(1).ok_or(EMFILE)?;
        let old = (
            works.works.insert(node.into_node(id, work.clone())),
            works.by_domain.insert(index.into_node((domain, id), ())),
        );
        works.last = id;
        drop(works);
        // There is none, as ids are not used again.
        drop(old);
        Ok((id, work))
    }

    /// Returns the deferred work of an id; `EBADF` if there is none.
    pub(crate) fn work(&self, id: u64) -> Result<Arc<Work>> {
        self.held.works.lock().works.get(&id).cloned().ok_or(EBADF)
    }

    /// Takes the deferred work of an id out; `EBUSY` if somebody may need it.
    pub(crate) fn take_work(&self, id: u64) -> Result<Arc<Work>> {
        let work = self.work(id)?;
        // A thread that has just begun to queue it is refused.
        work.request.release()?;
        self.held.works.lock().remove(id).ok_or(EBADF)
    }

    /// Forgets the deferred work of a domain that is closed.
    fn forget_works(&self, domain: u32) {
        loop {
            let mut works = self.held.works.lock();
            let Some(cursor) = works.by_domain.cursor_lower_bound(&(domain, 0)) else {
                return;
            };
            let (&(found, id), ()) = cursor.current();
            if found != domain {
                return;
            }
            let old = works.remove(id);
            drop(works);
            if old.is_none() {
                return;
            }
            drop(old);
        }
    }

    /// Forgets the members of a poll set that is closed.
    fn forget_members(&self, set: u32) {
        loop {
            let mut members = self.membership.members.lock();
            let Some(cursor) = members.cursor_lower_bound(&(set, 0)) else {
                return;
            };
            let (&key, _) = cursor.current();
            if key.0 != set {
                return;
            }
            let old = members.remove_node(&key);
            drop(members);
            drop(old);
        }
    }

    /// Forgets what an object has left over that is closed; its handle names nothing any more.
    fn forget(&self, handle: u32, closing: &Closing) {
        match closing {
            Closing::Nothing => {}
            Closing::PollSet => self.forget_members(handle),
            Closing::Domain => self.forget_works(handle),
        }
    }

    /// Counts the arrays of a request, of which an entry needs `each`, until that ends. Those of up to a
    /// page do not count, so that a user that has used up all memory may give something back.
    pub(crate) fn charge_arrays(&self, entries: usize, each: usize) -> Result<Charge> {
        match entries.saturating_mul(each) {
            0..=PAGE_SIZE => Ok(Quota::nothing(&self.quota)),
            size => Quota::charge(&self.quota, size),
        }
    }

    /// Makes an object a member of a poll set and notes that, as the end of the session has to
    /// remove it.
    pub(crate) fn add_member(
        &self,
        set: u32,
        member: u32,
        place: Taken,
        add: impl FnOnce() -> Result,
    ) -> Result<Answer> {
        let node = RBTreeNode::new((set, member), place, GFP_KERNEL_ACCOUNT)?;
        // The note is true unless another thread changes the members meanwhile.
        let mut members = self.membership.members.lock();
        let ret = add();
        let old = match ret {
            Ok(()) => members.insert(node),
            Err(_) => Some(node),
        };
        drop(members);
        drop(old);
        Ok(ret)
    }

    /// Removes a member from a poll set and forgets it.
    pub(crate) fn remove_member(
        &self,
        set: u32,
        member: u32,
        remove: impl FnOnce() -> Result,
    ) -> Result {
        let mut members = self.membership.members.lock();
        let ret = remove();
        let old = match ret {
            Ok(()) => members.remove_node(&(set, member)),
            Err(_) => None,
        };
        drop(members);
        drop(old);
        ret
    }

    /// Notes a wait descriptor for an object, which listens to a wait queue; returns its number, and those
    /// that listen to that. `EMFILE` if as many do as may.
    pub(crate) fn note_descriptor(
        &self,
        handle: u32,
        queue: usize,
        wakeups: Arc<Wakeups>,
    ) -> Result<(u64, Arc<Listeners>)> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let among = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let known = self.held.table.lock().listeners.get(&queue).cloned();
        let listeners = match known {
            Some(listeners) => listeners,
            // Unless another thread is first.
            None => {
                let user = &self.owner.user;
                let (turns, later) = (user.wakes().clone(), user.later().clone());
                let listeners = Listeners::new(self.queues().wakes.clone(), turns, later);
                Arc::pin_init(listeners, GFP_KERNEL_ACCOUNT)?
            }
        };
        let first = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut table = self.held.table.lock();
        let number = table.last_descriptor.checked_add(1).ok_or(EMFILE)?;
        let (listeners, unused) = match table.listeners.get(&queue) {
            Some(known) => (known.clone(), Some((first, listeners))),
            None => {
                let node = first.into_node(queue, listeners.clone());
                // There is none.
                let _ = table.listeners.insert(node);
                (listeners, None)
            }
        };
        listeners.enter()?;
        table.last_descriptor = number;
        let old = table
            .descriptors
            .insert(node.into_node((handle, number), wakeups.clone()));
        drop(table);
        // There is no old one, as numbers are not used again.
        drop((old, unused));
        listeners.add(number, wakeups, among);
        Ok((number, listeners))
    }

    /// Notes that a wait descriptor is gone.
    pub(crate) fn forget_descriptor(
        &self,
        handle: u32,
        number: u64,
        queue: usize,
        listeners: &Listeners,
    ) {
        listeners.remove(number);
        let mut table = self.held.table.lock();
        let wakeups = table.descriptors.remove_node(&(handle, number));
        let listeners = match listeners.leave() {
            true => table.listeners.remove_node(&queue),
            false => None,
        };
        drop(table);
        drop((wakeups, listeners));
    }

    /// Arms the wait descriptors of objects if `trywait` finds that it is safe to block.
    pub(crate) fn arm(&self, handles: &[u32], trywait: impl FnOnce() -> Result) -> Result<Answer> {
        let mut snapshot = KVVec::new();
        let mut charges = KVec::new();
        for &handle in handles {
            let mut from = (handle, 0);
            loop {
                let found = {
                    let table = self.held.table.lock();
                    let cursor = table.descriptors.cursor_lower_bound(&from);
                    cursor.map(|cursor| {
                        let (&key, wakeups) = cursor.current();
                        (key, wakeups.clone())
                    })
                };
                let Some(((_, number), wakeups)) = found.filter(|((of, _), _)| *of == handle)
                else {
                    break;
                };
                if snapshot.len() == snapshot.capacity() {
                    // As much again.
                    let more = snapshot.len().max(64);
                    let size = more.saturating_mul(size_of::<(Arc<Wakeups>, u64)>());
                    charges.push(Quota::charge(&self.quota, size)?, GFP_KERNEL_ACCOUNT)?;
                    snapshot.reserve(more, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
                }
                let generation = wakeups.look();
                snapshot.push((wakeups, generation), GFP_KERNEL_ACCOUNT)?;
                if kernel::current!().signal_pending() {
                    return Ok(Err(EINTR));
                }
                let Some(next) = number.checked_add(1) else {
                    break;
                };
                from = (handle, next);
                task::cond_resched();
            }
        }
        // Changes from the snapshot on make the descriptors readable.
        let ret = trywait();
        if ret.is_ok() {
            for (wakeups, generation) in &snapshot {
                wakeups.see(*generation);
            }
        }
        Ok(ret)
    }

    /// Notes that the current task makes a request: its process may be another one than the one that has opened the session.
    pub(crate) fn note_request(&self) {
        self.held.note_request();
    }

    /// Closes the object that a handle names; `EBUSY` if it is in use. Returns what kfabric says. `EINTR` if that is
    /// for others to do, as the thread was killed.
    pub(crate) fn close(this: ArcBorrow<'_, Self>, handle: u32) -> Result<Answer> {
        let is_endpoint = {
            let table = this.held.table.lock();
            let entry = table.entries.get(&handle).ok_or(EBADF)?;
            // None if another thread is closing it.
            entry.object.as_ref().ok_or(EBUSY)?.is_endpoint()
        };
        // Else the thread closes it itself.
        let close = if is_endpoint {
            let of_others = this.held.is_used_by_others();
            this.owner
                .user
                .endpoint_close(of_others)
                .and_then(|charge| {
                    let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
                    let closes = this.queues().closes.clone();
                    let closed = this.held.endpoint_closed.clone();
                    Ok((EndpointClose::new(closes, closed, flags)?, charge))
                })
        } else {
            Err(EINVAL)
        };
        let object = this.take_unused(handle)?;
        match close {
            Ok((close, charge)) => EndpointClose::close(close, this.into(), handle, object, charge),
            Err(_) => Ok(this.close_object(handle, object)),
        }
    }

    /// Takes out the object that a handle names, to be closed; `EBUSY` if it is in use.
    fn take_unused(&self, handle: u32) -> Result<Object> {
        let mut table = self.held.table.lock();
        let entry = table.entries.get_mut(&handle).ok_or(EBADF)?;
        if entry.users != 0 {
            return Err(EBUSY);
        }
        if matches!(&entry.object, Some(Object::MemoryRegion(region)) if region.is_used()) {
            return Err(EBUSY);
        }
        // None if another thread is closing it.
        entry.object.take().ok_or(EBUSY)
    }

    /// Closes an object that was taken out. Returns what kfabric says; if it refuses, the object is put back.
    pub(crate) fn close_object(&self, handle: u32, object: Object) -> Answer {
        let closing = Closing::of(&object);
        let address = object.any().map(|object| object.address());
        let refused = object.close();

        let mut table = self.held.table.lock();
        match refused {
            Ok(()) => {
                let index = address
                    .filter(|address| table.by_address.get(address) == Some(&handle))
                    .and_then(|address| table.by_address.remove_node(&address));
                let node = table.entries.remove_node(&handle);
                self.settled.notify_all();
                drop(table);
                drop((index, node));
                self.forget(handle, &closing);
                Ok(())
            }
            Err((object, error)) => {
                if let Some(entry) = table.entries.get_mut(&handle) {
                    entry.object = Some(object);
                }
                self.settled.notify_all();
                Err(error)
            }
        }
    }
}

#[vtable]
impl FileOps for Session {
    fn ioctl(this: ArcBorrow<'_, Self>, command: u32, arg: UserPtr) -> Result<isize> {
        request::handle(this, command, arg)
    }

    fn mmap(this: ArcBorrow<'_, Self>, area: Area<'_>) -> Result {
        request::map(this, area)
    }
}

impl Device for Session {
    type Module = crate::LocalModule;
    const NAME: &'static CStr = c"kfi";

    fn open() -> Result<Arc<Self>> {
        let limit = match *module_parameters::max_memory.value_ref() {
            0 => half_of_memory(),
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let objects = usize::try_from(*module_parameters::max_objects.value_ref())?;
        let user = User::current()?;
        let charge = user.object()?;
        let memory = Quota::new(limit, Some(user.memory().clone()))?;
        let objects = Quota::new(objects, Some(user.objects().clone()))?;
        let contexts = Contexts::new(memory.clone())?;
        let places = Places::new()?;
        let membership = Arc::pin_init(
            pin_init!(Membership {
                members <- new_mutex!(Members::new(), "kfi_shim::Session::membership"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let owner = Arc::new(
            Owner {
                _charge: charge,
                user,
                _module: ModuleUse::new()?,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let queues = queues::current()?;
        let name = c"kfi_shim::Session::endpoint_closed";
        let endpoint_closed = Arc::pin_init(
            WaitQueue::new(name, static_lock_class!()),
            GFP_KERNEL_ACCOUNT,
        )?;
        let (table, owned) = (Table::new(membership.clone()), owner.clone());
        let turns = owner.user.ends().clone();
        let opener = Process::current()?;
        let holdings = Arc::pin_init(
            pin_init!(Holdings {
                table <- new_mutex!(table, "kfi_shim::Session::table"),
                works <- new_mutex!(Works::new(), "kfi_shim::Session::works"),
                owner <- new_mutex!(Some(owned), "kfi_shim::Session::owner"),
                queues,
                endpoint_closed,
                opener,
                used_by_others: Atomic::new(false),
                turns,
                next <- new_spinlock_irq!(None, "kfi_shim::Session::next"),
                end <- new_work!("kfi_shim::Session::end"),
                ended: Atomic::new(false),
                closed <- WaitQueue::new(c"kfi_shim::Session::closed", static_lock_class!()),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        Arc::pin_init(
            pin_init!(Self {
                held: Held(holdings),
                membership,
                settled <- new_condvar!("kfi_shim::Session::settled"),
                quota: memory,
                objects,
                contexts,
                places,
                owner,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }
}
