// SPDX-License-Identifier: GPL-2.0

//! The users whose domains a node has, and what each takes of what all of them share.
//!
//! A domain is that of the real user who has opened it. Consumers in the kernel are users as well: mostly
//! root.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    kfi::linux::user,
    sum::Sum, //
};

/// A user who has domains.
struct Known {
    domains: usize,
    unreached: Sum,
}

/// The users who have domains.
#[pin_data]
pub(crate) struct Owners {
    /// By their numbers.
    #[pin]
    known: SpinLockIrq<RBTree<u32, Known>>,
}

impl Owners {
    /// None.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                known <- new_spinlock_irq!(RBTree::new(), "kfi_soft::Owners::known"),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes a domain of the current task's user. May sleep.
    pub(crate) fn current(this: &Arc<Self>) -> Result<Owner> {
        Self::get(this, user::current().into_raw().val)
    }

    /// Notes a domain of a user.
    fn get(this: &Arc<Self>, number: u32) -> Result<Owner> {
        // Made without the lock; not needed if the user has another domain.
        let mut node = Some(RBTreeNodeReservation::new(GFP_KERNEL)?);
        let new = Sum::new()?;
        let mut known = this.known.lock();
        if known.get(&number).is_none() {
            if let Some(node) = node.take() {
                let user = Known {
                    domains: 0,
                    unreached: new.clone(),
                };
                // There was none.
                let _ = known.insert(node.into_node(number, user));
            }
        }
        let found = known.get_mut(&number).map(|user| {
            user.domains = user.domains.saturating_add(1);
            user.unreached.clone()
        });
        drop(known);
        drop((node, new));
        Ok(Owner {
            owners: this.clone(),
            number,
            unreached: found.ok_or(ENOMEM)?,
        })
    }
}

/// The user of a domain.
pub(crate) struct Owner {
    owners: Arc<Owners>,
    number: u32,
    unreached: Sum,
}

impl Owner {
    /// Returns how many associations there are that were made for requests of the user, and that never had a
    /// connection.
    pub(crate) fn unreached(&self) -> &Sum {
        &self.unreached
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut known = self.owners.known.lock();
        let is_last = known.get_mut(&self.number).is_some_and(|user| {
            user.domains = user.domains.saturating_sub(1);
            user.domains == 0
        });
        let old = if is_last {
            known.remove_node(&self.number)
        } else {
            None
        };
        drop(known);
        drop(old);
    }
}

#[kunit_tests(kfi_soft_owner)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_a_user_share_a_sum() -> Result {
        let owners = Owners::new()?;
        let (one, other) = (Owners::get(&owners, 7)?, Owners::get(&owners, 7)?);
        let somebody = Owners::get(&owners, 8)?;
        let count = one.unreached().count(1);
        assert_eq!(other.unreached().sum(), 1);
        assert_eq!(somebody.unreached().sum(), 0);
        // The other domain is still there.
        drop(one);
        assert_eq!(Owners::get(&owners, 7)?.unreached().sum(), 1);
        drop(count);
        assert_eq!(other.unreached().sum(), 0);
        Ok(())
    }
}
