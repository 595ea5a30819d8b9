// SPDX-License-Identifier: GPL-2.0

//! The limits that all sessions of a user share.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc,
    task::Kuid, //
};

use crate::{
    kfi::{
        consumer::{
            half_of_memory,
            Charge,
            Quota, //
        },
        linux::{
            credentials::Credentials,
            user, //
        }, //
    },
    module_parameters,
    queues,
    session::Holdings,
    turns::Turns,
    wait_fd::{
        Later,
        Listeners, //
    },
    USERS, //
};

/// A user who has sessions. The objects that these hold do not outlive them, but for those that a
/// provider refuses to close: a mapping holds the open file, and the session with it.
pub(crate) struct UserEntry {
    uid: Kuid,
    /// How many.
    sessions: usize,
    /// The limits that they share.
    limits: Limits,
}

/// The users who have sessions.
pub(crate) type UserList = KVVec<UserEntry>;

/// So many sessions of either kind of a user end at once, and so many of its endpoints are closed by the work queue for
/// that. On a machine of one node the queues have places for 32 times as many.
const ENDS_AT_ONCE: usize = 32;

/// Those who wait for descriptors of so many objects of a user are woken at once. The work queue has places for
/// 200 times as many, and for what asks for these later.
const WAKES_AT_ONCE: usize = 4;

/// The limits that the sessions of a user share, and their turns.
#[derive(Clone)]
struct Limits {
    /// Bytes of memory.
    memory: Arc<Quota>,
    /// Objects, and the sessions themselves.
    objects: Arc<Quota>,
    /// Fabrics and domains, which have threads.
    with_threads: Arc<Quota>,
    /// Endpoints that have an address.
    endpoints: Arc<Quota>,
    /// Of sessions that end.
    ends: UserTurns,
    /// Endpoints that the work queue closes.
    endpoint_closes: Arc<Quota>,
    /// Those of them in sessions that others have used.
    endpoint_closes_of_others: Arc<Quota>,
    /// Of objects with descriptors.
    wakes: Arc<Turns<Listeners>>,
    /// Those of them that are to have their turn later.
    later: Arc<Later>,
}

/// The turns of a user's sessions that end.
#[derive(Clone)]
pub(crate) struct UserTurns {
    /// Of those that only the process has used that has opened them.
    pub(crate) own: Arc<Turns<Holdings>>,
    /// Of the others.
    pub(crate) used_by_others: Arc<Turns<Holdings>>,
}

impl Limits {
    /// For a user who has nothing yet, as the module's parameters say.
    fn new() -> Result<Self> {
        let memory = match *module_parameters::max_user_memory.value_ref() {
            0 => half_of_memory(),
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let objects = usize::try_from(*module_parameters::max_user_objects.value_ref())?;
        let with_threads = usize::try_from(*module_parameters::max_user_domains.value_ref())?;
        let endpoints = usize::try_from(*module_parameters::max_user_endpoints.value_ref())?;
        let closes_at_once = queues::current()?.closes_at_once;
        let endpoint_closes = Quota::new(ENDS_AT_ONCE, Some(closes_at_once))?;
        Ok(Self {
            memory: Quota::new(memory, None)?,
            objects: Quota::new(objects, None)?,
            with_threads: Quota::new(with_threads, None)?,
            endpoints: Quota::new(endpoints, None)?,
            ends: UserTurns {
                own: Turns::new(ENDS_AT_ONCE)?,
                used_by_others: Turns::new(ENDS_AT_ONCE)?,
            },
            endpoint_closes_of_others: Quota::new(ENDS_AT_ONCE / 2, Some(endpoint_closes.clone()))?,
            endpoint_closes,
            wakes: Turns::new(WAKES_AT_ONCE)?,
            later: Later::new()?,
        })
    }
}

/// A session's part in what its user has; the user is the one that opened it.
pub(crate) struct User {
    uid: Kuid,
    credentials: Credentials,
    limits: Limits,
}

impl User {
    /// Counts a session of the current task's user.
    pub(crate) fn current() -> Result<Self> {
        let uid = user::current();
        let credentials = Credentials::current();
        let limits = Limits::new()?;
        let mut room = UserList::new();
        loop {
            let mut users = USERS.lock();
            if let Some(known) = users.iter_mut().find(|known| known.uid == uid) {
                known.sessions = known.sessions.saturating_add(1);
                let limits = known.limits.clone();
                return Ok(Self {
                    uid,
                    credentials,
                    limits,
                });
            }
            let entry = UserEntry {
                uid,
                sessions: 1,
                limits: limits.clone(),
            };
            if users.push_within_capacity(entry).is_ok() {
                return Ok(Self {
                    uid,
                    credentials,
                    limits,
                });
            }
            let wanted = users.len().saturating_mul(2).max(4);
            if room.capacity() >= wanted {
                // There is room for all of them, and for as many again.
                core::mem::swap(&mut *users, &mut room);
                while let Some(moved) = room.pop() {
                    if users.push_within_capacity(moved).is_err() {
                        break;
                    }
                }
                continue;
            }
            drop(users);
            room = UserList::with_capacity(wanted, GFP_KERNEL_ACCOUNT)?;
        }
    }

    /// Has the current task act for the user while `act` runs: a descriptor may be in the hands of another one,
    /// and what providers count is the user's, too.
    pub(crate) fn during<R>(&self, act: impl FnOnce() -> R) -> R {
        self.credentials.during(act)
    }

    /// Returns how much memory the user may have.
    pub(crate) fn memory(&self) -> &Arc<Quota> {
        &self.limits.memory
    }

    /// Returns how many objects the user may have.
    pub(crate) fn objects(&self) -> &Arc<Quota> {
        &self.limits.objects
    }

    /// Counts objects that have threads; `EMFILE` if there are as many as there may be.
    pub(crate) fn with_threads(&self, count: usize) -> Result<Charge> {
        Quota::charge(&self.limits.with_threads, count).map_err(|_| EMFILE)
    }

    /// Counts endpoints that have an address; `EMFILE` if there are as many as there may be.
    pub(crate) fn endpoints(&self, count: usize) -> Result<Charge> {
        Quota::charge(&self.limits.endpoints, count).map_err(|_| EMFILE)
    }

    /// Returns the turns of sessions that end.
    pub(crate) fn ends(&self) -> &UserTurns {
        &self.limits.ends
    }

    /// Counts an endpoint that the work queue closes; `EDQUOT` if there are as many as there may be. Those of sessions
    /// that others have used (`of_others`) leave half of the places to the user's own.
    pub(crate) fn endpoint_close(&self, of_others: bool) -> Result<Charge> {
        let closes = if of_others {
            &self.limits.endpoint_closes_of_others
        } else {
            &self.limits.endpoint_closes
        };
        Quota::charge(closes, 1)
    }

    /// Returns the turns of objects with descriptors.
    pub(crate) fn wakes(&self) -> &Arc<Turns<Listeners>> {
        &self.limits.wakes
    }

    /// Returns the objects with descriptors that are to have their turn later.
    pub(crate) fn later(&self) -> &Arc<Later> {
        &self.limits.later
    }

    /// Returns whether the current task is this user's.
    pub(crate) fn is_current(&self) -> bool {
        user::current() == self.uid
    }

    /// Counts a session as one of them; `EMFILE` if there are as many as there may be.
    pub(crate) fn object(&self) -> Result<Charge> {
        Quota::charge(&self.limits.objects, 1).map_err(|_| EMFILE)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut users = USERS.lock();
        if let Some(known) = users.iter_mut().find(|known| known.uid == self.uid) {
            known.sessions = known.sessions.saturating_sub(1);
        }
        users.retain(|known| known.sessions != 0);
        if users.is_empty() {
            // Its memory, too, as nothing is freed of what is static when the module goes.
            let none = core::mem::take(&mut *users);
            drop(users);
            drop(none);
        }
    }
}
