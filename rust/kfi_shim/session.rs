// SPDX-License-Identifier: GPL-2.0

//! Sessions: an open file of /dev/kfi and the objects that it holds.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    str::CStr,
    sync::{
        new_condvar,
        new_mutex,
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    uaccess::UserPtr, //
};

use crate::{
    kfi::{
        consumer::{
            half_of_memory,
            Budget,
            Charge,
            Contexts,
            DeferredWork, //
        },
        file::{
            Area,
            Device,
            FileOps, //
        }, //
    },
    module_parameters,
    object::{
        Class,
        Object, //
    },
    request,
    user::User,
    wait_fd::Wakeups, //
};

/// What a handle names.
struct Entry {
    /// The object; none while it is being closed.
    object: Option<Object>,
    /// Requests and descriptors that are using it.
    users: usize,
    /// The handles of its members, if it is a poll set.
    members: KVVec<u32>,
    /// Its part in the objects of the user.
    _charge: Charge,
}

/// The handles of a session.
struct Table {
    /// What the handles name.
    entries: RBTree<u32, Entry>,
    /// Entries, those included that are yet to be filled.
    count: usize,
    /// The handle given last.
    last: u32,
    /// The wait descriptors, each with the handle of its object.
    descriptors: KVec<(u32, Arc<Wakeups>)>,
}

impl Table {
    /// Removes the members of all poll sets, which cannot be closed with members.
    fn dissolve_poll_sets(&mut self) {
        let mut from = 0;
        loop {
            let Some(cursor) = self.entries.cursor_lower_bound(&from) else {
                return;
            };
            let (&handle, entry) = cursor.current();
            if let Some(Object::PollSet(set)) = &entry.object {
                for member in &entry.members {
                    let member = self.entries.get(member);
                    if let Some(object) = member.and_then(|entry| entry.object.as_ref()) {
                        if let Some(member) = object.any() {
                            // Refused if it is no member any more.
                            let _ = set.del(member, 0);
                        }
                    }
                }
            }
            let Some(next) = handle.checked_add(1) else {
                return;
            };
            from = next;
        }
    }
}

impl Table {
    /// Cancels all deferred work, whose counters and endpoints could not be closed otherwise.
    fn flush_works(&self) {
        for entry in self.entries.values() {
            if let Some(Object::Domain(domain)) = &entry.object {
                // Not every provider has that.
                let _ = domain.flush_work(None);
            }
        }
    }

    /// Closes endpoints, aliases and contexts first: what operations use that they still carry out
    /// may have been opened later.
    fn close_endpoints(&mut self) {
        let mut cursor = self.entries.cursor_back_mut();
        while let Some(mut at) = cursor {
            let (_, entry) = at.current_mut();
            if entry.object.as_ref().is_some_and(Object::is_endpoint) {
                if let Some(Err((object, _))) = entry.object.take().map(Object::close) {
                    entry.object = Some(object);
                }
            }
            cursor = at.move_prev();
        }
    }

    /// Returns the handle of the first completion queue, or of what may be one.
    fn first_completion_queue(&self) -> Option<u32> {
        self.entries.iter().find_map(|(handle, entry)| {
            matches!(&entry.object, None | Some(Object::CompletionQueue(_))).then_some(*handle)
        })
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.flush_works();
        self.dissolve_poll_sets();
        self.close_endpoints();
        // Whatever was opened later goes first, as it may depend on what was opened earlier; what
        // refuses is tried again when others are gone.
        let mut before = usize::MAX;
        loop {
            let mut refused = 0;
            let mut cursor = self.entries.cursor_back_mut();
            while let Some(mut at) = cursor {
                let (_, entry) = at.current_mut();
                if let Some(Err((object, _))) = entry.object.take().map(Object::close) {
                    entry.object = Some(object);
                    refused += 1;
                }
                cursor = at.move_prev();
            }
            if refused == 0 || refused >= before {
                break;
            }
            before = refused;
        }
    }
}

/// An open file of /dev/kfi.
#[pin_data]
pub(crate) struct Session {
    #[pin]
    table: Mutex<Table>,
    /// Held while the members of a poll set change.
    #[pin]
    membership: Mutex<()>,
    /// Notified when an object that was being closed is closed, or is not.
    #[pin]
    settled: CondVar,
    /// How much memory there may be.
    budget: Arc<Budget>,
    // Dropped after the objects.
    #[pin]
    contexts: Contexts,
    #[pin]
    works: Mutex<Works>,
    /// Its own part in the objects of the user.
    _charge: Charge,
    /// Whose it is. Dropped last, when what counts among the user's has been given back.
    user: User,
}

/// Deferred work, by its ids.
struct Works {
    works: RBTree<u64, Arc<Work>>,
    /// The id given last.
    last: u64,
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
}

/// What is to be forgotten when an object is closed.
enum Closing {
    /// Nothing.
    Nothing,
    /// What operations of this owner have left over.
    Endpoint(u32),
    /// What endpoints that are gone have left over, and notes of its own.
    CompletionQueue,
    /// Notes of its own.
    EventQueue,
    /// Its deferred work.
    Domain,
}

impl Closing {
    /// Returns what is to be forgotten for an object.
    fn of(object: &Object) -> Self {
        match object {
            Object::Endpoint(ep) if !ep.is_alias() => Self::Endpoint(ep.owner()),
            Object::CompletionQueue(_) => Self::CompletionQueue,
            Object::EventQueue(_) => Self::EventQueue,
            Object::Domain(_) => Self::Domain,
            _ => Self::Nothing,
        }
    }
}

/// A handle that is reserved for an object that is being opened.
pub(crate) struct Slot<'a> {
    session: &'a Session,
    /// Its part in the objects of the user is taken along by the object.
    reservation: Option<(RBTreeNodeReservation<u32, Entry>, Charge)>,
    handle: u32,
}

impl Slot<'_> {
    /// Returns the handle.
    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    /// Makes the handle name `object`.
    pub(crate) fn fill(mut self, object: Object) {
        let Some((reservation, charge)) = self.reservation.take() else {
            return;
        };
        let entry = Entry {
            object: Some(object),
            users: 0,
            members: KVVec::new(),
            _charge: charge,
        };
        let node = reservation.into_node(self.handle, entry);
        let old = self.session.table.lock().entries.insert(node);
        // There is none, as handles are not used again while they name something.
        drop(old);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.reservation.is_some() {
            let mut table = self.session.table.lock();
            table.count = table.count.saturating_sub(1);
        }
    }
}

/// Marks what a handle names as being in use, so that it cannot be closed.
struct Mark {
    session: Arc<Session>,
    handle: u32,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut table = self.session.table.lock();
        if let Some(entry) = table.entries.get_mut(&self.handle) {
            entry.users = entry.users.saturating_sub(1);
        }
    }
}

/// An object in use, which cannot be closed meanwhile.
pub(crate) struct Use<T> {
    // Dropped first: who finds no marks finds no references either.
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
    /// Reserves a handle; `EMFILE` if the session, or its user, holds as many objects as it may.
    pub(crate) fn reserve(&self) -> Result<Slot<'_>> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let limit = usize::try_from(*module_parameters::max_objects.value_ref())?;
        let mut table = self.table.lock();
        if table.count >= limit {
            return Err(EMFILE);
        }
        // Handles count up and are never used again, so that one that was closed names nothing, and
        // that what has the larger one was opened later.
        let handle = table.last.checked_add(1).ok_or(EMFILE)?;
        let charge = self.user.object()?;
        table.last = handle;
        table.count += 1;
        drop(table);
        Ok(Slot {
            session: self,
            reservation: Some((reservation, charge)),
            handle,
        })
    }

    /// Returns what `find` finds in what a handle names; `EBADF` if that is nothing, `EINVAL` if
    /// `find` finds nothing. While the object is being closed, it waits for the outcome.
    fn find<T>(
        this: ArcBorrow<'_, Self>,
        handle: u32,
        find: impl FnOnce(&Object) -> Option<T>,
    ) -> Result<Use<T>> {
        let mut table = this.table.lock();
        let object = loop {
            let entry = table.entries.get_mut(&handle).ok_or(EBADF)?;
            if let Some(object) = &entry.object {
                let object = find(object).ok_or(EINVAL)?;
                entry.users += 1;
                break object;
            }
            this.settled.wait(&mut table);
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
        Self::find(this, handle, |object| Some(object.clone()))
    }

    /// Returns the object of a class that a handle names; `EINVAL` if it is of another class.
    pub(crate) fn get<T: Class>(this: ArcBorrow<'_, Self>, handle: u32) -> Result<Use<Arc<T>>> {
        Self::find(this, handle, |object| T::from_object(object).cloned())
    }

    /// Returns how much memory there may be.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Returns the contexts of operations.
    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Returns the handle of an open object that a provider names by its address.
    pub(crate) fn handle_of(&self, address: usize) -> Option<u32> {
        let table = self.table.lock();
        let found = table.entries.iter().find_map(|(handle, entry)| {
            let object = entry.object.as_ref()?.any()?;
            (object.address() == address).then_some(*handle)
        });
        found
    }

    /// Returns the buffer that an address lies in, and where; among those that operations use.
    pub(crate) fn find_buffer(&self, address: usize) -> Option<(u32, usize)> {
        let table = self.table.lock();
        let found = table
            .entries
            .values()
            .find_map(|entry| match &entry.object {
                Some(Object::Endpoint(ep)) => ep.find(address),
                _ => None,
            });
        found
    }

    /// Adds a deferred work; returns its id.
    pub(crate) fn add_work(&self, work: Work) -> Result<(u64, Arc<Work>)> {
        let work = Arc::new(work, GFP_KERNEL)?;
        let mut works = self.works.lock();
        let id = works.last.checked_add(1).ok_or(EMFILE)?;
        works
            .works
            .try_create_and_insert(id, work.clone(), GFP_KERNEL)?;
        works.last = id;
        Ok((id, work))
    }

    /// Returns the deferred work of an id; `EBADF` if there is none.
    pub(crate) fn work(&self, id: u64) -> Result<Arc<Work>> {
        self.works.lock().works.get(&id).cloned().ok_or(EBADF)
    }

    /// Takes the deferred work of an id out; `EBUSY` if somebody may need it.
    pub(crate) fn take_work(&self, id: u64) -> Result<Arc<Work>> {
        let work = self.work(id)?;
        if !work.request.is_idle() {
            return Err(EBUSY);
        }
        // Who queues it meanwhile makes its domain keep it.
        self.works.lock().works.remove(&id).ok_or(EBADF)
    }

    /// Forgets the deferred work of a domain that is closed.
    fn forget_works(&self, domain: u32) {
        let mut from = 0;
        loop {
            let mut works = self.works.lock();
            let Some(cursor) = works.works.cursor_lower_bound(&from) else {
                return;
            };
            let (&id, work) = cursor.current();
            let old = if work.domain == domain {
                works.works.remove(&id)
            } else {
                None
            };
            drop(works);
            drop(old);
            from = id.saturating_add(1);
            if from == id {
                return;
            }
        }
    }

    /// Forgets what an object has left over that is closed; its handle names nothing any more.
    fn forget(&self, handle: u32, closing: &Closing) {
        let (first, last) = {
            let table = self.table.lock();
            match closing {
                Closing::Endpoint(_) | Closing::CompletionQueue => {
                    (table.first_completion_queue(), table.last)
                }
                _ => (None, 0),
            }
        };
        match closing {
            Closing::Nothing => {}
            Closing::Endpoint(owner) => self.contexts.end(*owner, first.map(|_| last)),
            Closing::CompletionQueue => {
                self.contexts.end(handle, None);
                self.contexts.settle(first);
            }
            Closing::EventQueue => self.contexts.end(handle, None),
            Closing::Domain => {
                self.contexts.end(handle, None);
                self.forget_works(handle);
            }
        }
    }

    /// Makes an object a member of a poll set and notes that, as the end of the session has to
    /// remove it.
    pub(crate) fn add_member(
        &self,
        set: u32,
        member: u32,
        add: impl FnOnce() -> Result,
    ) -> Result<Result> {
        // What is noted is what is the case, if nobody else changes it meanwhile.
        let _membership = self.membership.lock();
        let mut noted = false;
        {
            let mut table = self.table.lock();
            let entry = table.entries.get_mut(&set).ok_or(EBADF)?;
            if !entry.members.contains(&member) {
                entry.members.push(member, GFP_KERNEL)?;
                noted = true;
            }
        }
        let ret = add();
        if ret.is_err() && noted {
            self.forget_member(set, member);
        }
        Ok(ret)
    }

    /// Removes a member from a poll set and forgets it.
    pub(crate) fn remove_member(
        &self,
        set: u32,
        member: u32,
        remove: impl FnOnce() -> Result,
    ) -> Result {
        let _membership = self.membership.lock();
        let ret = remove();
        if ret.is_ok() {
            self.forget_member(set, member);
        }
        ret
    }

    /// Forgets a member of a poll set; with `membership` held.
    fn forget_member(&self, set: u32, member: u32) {
        let mut table = self.table.lock();
        if let Some(entry) = table.entries.get_mut(&set) {
            entry.members.retain(|other| *other != member);
        }
    }

    /// Notes a wait descriptor for an object.
    pub(crate) fn note_descriptor(&self, handle: u32, wakeups: Arc<Wakeups>) -> Result {
        let mut table = self.table.lock();
        table.descriptors.push((handle, wakeups), GFP_KERNEL)?;
        Ok(())
    }

    /// Notes that a wait descriptor is gone.
    pub(crate) fn forget_descriptor(&self, wakeups: &Arc<Wakeups>) {
        let mut table = self.table.lock();
        let at = table
            .descriptors
            .iter()
            .position(|(_, other)| Arc::ptr_eq(other, wakeups));
        let removed = at.map(|at| table.descriptors.remove(at));
        drop(table);
        drop(removed);
    }

    /// Arms the wait descriptors of objects if `trywait` finds that it is safe to block.
    pub(crate) fn arm(&self, handles: &[u32], trywait: impl FnOnce() -> Result) -> Result<Result> {
        let mut snapshot = KVec::new();
        {
            let table = self.table.lock();
            for (handle, wakeups) in &table.descriptors {
                if handles.contains(handle) {
                    let generation = wakeups.generation();
                    snapshot.push((wakeups.clone(), generation), GFP_KERNEL)?;
                }
            }
        }
        // What happens from the snapshot on makes the descriptors readable.
        let ret = trywait();
        if ret.is_ok() {
            for (wakeups, generation) in &snapshot {
                wakeups.see(*generation);
            }
        }
        Ok(ret)
    }

    /// Closes the object that a handle names; `EBUSY` if it is in use. Returns what kfabric says.
    pub(crate) fn close(&self, handle: u32) -> Result<Result> {
        let object = {
            let mut table = self.table.lock();
            let entry = table.entries.get_mut(&handle).ok_or(EBADF)?;
            if entry.users != 0 {
                return Err(EBUSY);
            }
            // None if another thread is closing it.
            entry.object.take().ok_or(EBUSY)?
        };
        let closing = Closing::of(&object);
        let refused = object.close();

        let mut table = self.table.lock();
        match refused {
            Ok(()) => {
                let node = table.entries.remove_node(&handle);
                table.count = table.count.saturating_sub(1);
                self.settled.notify_all();
                drop(table);
                drop(node);
                self.forget(handle, &closing);
                Ok(Ok(()))
            }
            Err((object, error)) => {
                if let Some(entry) = table.entries.get_mut(&handle) {
                    entry.object = Some(object);
                }
                self.settled.notify_all();
                Ok(Err(error))
            }
        }
    }
}

#[vtable]
impl FileOps for Session {
    fn ioctl(this: ArcBorrow<'_, Self>, command: u32, arg: UserPtr) -> Result<isize> {
        request::handle(this, command, arg)
    }

    fn mmap(this: ArcBorrow<'_, Self>, area: &Area<'_>) -> Result {
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
        let user = User::current()?;
        let charge = user.object()?;
        let memory = Budget::new(limit, Some(user.memory().clone()))?;
        Arc::pin_init(
            pin_init!(Self {
                table <- new_mutex!(
                    Table {
                        entries: RBTree::new(),
                        count: 0,
                        last: 0,
                        descriptors: KVec::new(),
                    },
                    "kfi_shim::Session::table"
                ),
                membership <- new_mutex!((), "kfi_shim::Session::membership"),
                settled <- new_condvar!("kfi_shim::Session::settled"),
                budget: memory.clone(),
                contexts <- Contexts::new(memory.clone()),
                works <- new_mutex!(
                    Works {
                        works: RBTree::new(),
                        last: 0,
                    },
                    "kfi_shim::Session::works"
                ),
                _charge: charge,
                user,
            }),
            GFP_KERNEL,
        )
    }
}
