// SPDX-License-Identifier: GPL-2.0

//! What all sessions of a user have together.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc,
    task::Kuid, //
};

use crate::{
    kfi::{
        consumer::{
            half_of_memory,
            Budget, //
        },
        task, //
    },
    module_parameters,
    USERS, //
};

/// A user who has sessions.
pub(crate) struct Entry {
    uid: Kuid,
    /// How many.
    sessions: usize,
    /// How much memory they may have together.
    budget: Arc<Budget>,
}

/// The users who have sessions.
pub(crate) type List = KVVec<Entry>;

/// A session's part in what its user has; whoever opened it is the user.
pub(crate) struct User {
    uid: Kuid,
    budget: Arc<Budget>,
}

impl User {
    /// Counts a session of the current task's user.
    pub(crate) fn current() -> Result<Self> {
        let uid = task::user();
        let budget = Budget::new(limit(), None)?;
        let mut room = List::new();
        loop {
            let mut users = USERS.lock();
            if let Some(known) = users.iter_mut().find(|known| known.uid == uid) {
                known.sessions = known.sessions.saturating_add(1);
                let budget = known.budget.clone();
                return Ok(Self { uid, budget });
            }
            let entry = Entry {
                uid,
                sessions: 1,
                budget: budget.clone(),
            };
            if users.push_within_capacity(entry).is_ok() {
                return Ok(Self { uid, budget });
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
            room = List::with_capacity(wanted, GFP_KERNEL)?;
        }
    }

    /// Returns how much memory the user may have.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut users = USERS.lock();
        let Some(at) = users.iter().position(|known| known.uid == self.uid) else {
            return;
        };
        let Some(known) = users.get_mut(at) else {
            return;
        };
        known.sessions = known.sessions.saturating_sub(1);
        if known.sessions == 0 {
            let last = users.remove(at);
            // Nothing is freed of what is static when the module goes.
            let rest = users.is_empty().then(|| core::mem::take(&mut *users));
            drop(users);
            drop((last, rest));
        }
    }
}

/// How many bytes the sessions of a user may hold.
fn limit() -> usize {
    match *module_parameters::max_user_memory.value_ref() {
        0 => half_of_memory(),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    }
}
