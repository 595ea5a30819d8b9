// SPDX-License-Identifier: GPL-2.0

//! The users whose domains a node has, and what each takes of what all of them share.
//!
//! A domain is that of the real user who has opened it. Consumers in the kernel are users as well: mostly
//! root. The share of a user is known until all of it was given back, also when the domains are gone that
//! it was taken with: a user who closes them and opens others goes on with the same share.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

use crate::{
    kfi::linux::{
        registry::{
            Registered,
            Registry, //
        },
        user, //
    },
    sum::{
        Count,
        Sum, //
    }, //
};

/// The sums of a user.
#[derive(Clone)]
struct Sums {
    unreached: Sum,
    received: Sum,
}

/// The users who have domains, or for whom something is counted, by their numbers, with [`Owner::unreached`] and
/// [`Recipient::received`] of each.
pub(crate) struct Owners(Arc<Registry<u32, Sums>>);

impl Owners {
    /// None.
    pub(crate) fn new() -> Result<Self> {
        Registry::new(c"kfi_soft::Owners", static_lock_class!()).map(Self)
    }

    /// Notes a domain of the current task's user. May sleep.
    pub(crate) fn current(&self) -> Result<Arc<Owner>> {
        self.get(user::current().into_raw().val)
    }

    /// Notes a domain of a user. May sleep.
    pub(crate) fn get(&self, number: u32) -> Result<Arc<Owner>> {
        let none = Sums {
            unreached: Sum::new()?,
            received: Sum::new()?,
        };
        let owner = Owner(self.0.get(number, none)?);
        // Without memory it is dropped, which forgets the domain.
        Ok(Arc::new(owner, GFP_KERNEL)?)
    }
}

/// The user of a domain. It stays when the domain is gone, as long as something is counted for it.
///
/// The last reference may be dropped in any context, and with any lock held but that of [`Owners`].
pub(crate) struct Owner(Registered<u32, Sums>);

impl Owner {
    /// Returns the number of the user.
    pub(crate) fn number(&self) -> u32 {
        *self.0.key()
    }

    /// Returns how many associations there are that were made for requests of the user, and that never had a
    /// connection.
    pub(crate) fn unreached(&self) -> &Sum {
        &self.0.value().unreached
    }

    /// Counts one more of these. Any context; does not sleep.
    pub(crate) fn reach(this: &Arc<Self>) -> Unreached {
        Unreached {
            _count: this.unreached().count(1),
            owner: this.clone(),
        }
    }
}

/// Counts an association among [`Owner::unreached`] of a user, who is known as long as there is this.
pub(crate) struct Unreached {
    /// Dropped first: before that the user is not forgotten.
    _count: Count,
    owner: Arc<Owner>,
}

impl Unreached {
    /// Returns the number of the user.
    pub(crate) fn user(&self) -> u32 {
        self.owner.number()
    }

    /// Returns how many there are of the user.
    pub(crate) fn sum(&self) -> usize {
        self.owner.unreached().sum()
    }
}

/// The user to whom requests of other nodes have come; or nobody, if there is nothing where they go.
///
/// Dropped in any context, and with any lock held but that of [`Owners`].
#[derive(Clone)]
pub(crate) struct Recipient {
    /// The user is known as long as there is this.
    owner: Option<Arc<Owner>>,
    received: Sum,
}

impl Recipient {
    /// Nobody.
    pub(crate) fn nobody() -> Result<Self> {
        Ok(Self {
            owner: None,
            received: Sum::new()?,
        })
    }

    /// The user of a domain. Any context; does not sleep.
    pub(crate) fn of(owner: &Arc<Owner>) -> Self {
        Self {
            owner: Some(owner.clone()),
            received: owner.0.value().received.clone(),
        }
    }

    /// Returns the number of the user; none of nobody.
    pub(crate) fn number(&self) -> Option<u32> {
        self.owner.as_ref().map(|owner| owner.number())
    }

    /// Returns how many bytes are kept of such requests, and of their answers.
    pub(crate) fn received(&self) -> &Sum {
        &self.received
    }
}

#[kunit_tests(kfi_soft_owner)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_a_user_share_a_sum() -> Result {
        let owners = Owners::new()?;
        let (one, other) = (owners.get(7)?, owners.get(7)?);
        let somebody = owners.get(8)?;
        let count = one.unreached().count(1);
        assert_eq!(other.unreached().sum(), 1);
        assert_eq!(somebody.unreached().sum(), 0);
        // Bytes that have come to one of them are in another sum.
        let received = |owner: &Arc<Owner>| Recipient::of(owner).received().sum();
        let bytes = Recipient::of(&one).received().count(100);
        assert_eq!((received(&other), received(&somebody)), (100, 0));
        assert_eq!(other.unreached().sum(), 1);
        drop(bytes);
        assert_eq!(received(&other), 0);
        assert_eq!(Recipient::of(&other).number(), Some(7));
        assert_eq!(Recipient::nobody()?.number(), None);
        // The other domain is still there.
        drop(one);
        assert_eq!(owners.get(7)?.unreached().sum(), 1);
        drop(count);
        assert_eq!(other.unreached().sum(), 0);
        Ok(())
    }

    #[test]
    fn what_is_counted_outlives_domains() -> Result {
        let owners = Owners::new()?;
        let one = owners.get(7)?;
        let first = Owner::reach(&one);
        let recipient = Recipient::of(&one);
        let bytes = recipient.received().count(100);
        assert_eq!(first.user(), 7);
        // There is no domain then.
        drop(one);
        assert_eq!(owners.get(8)?.unreached().sum(), 0);
        let other = owners.get(7)?;
        assert_eq!(other.unreached().sum(), 1);
        assert_eq!(Recipient::of(&other).received().sum(), 100);
        let second = Owner::reach(&other);
        assert_eq!((second.sum(), other.unreached().sum()), (2, 2));
        drop((other, first));
        assert_eq!(owners.get(7)?.unreached().sum(), 1);
        drop(second);
        // The bytes are still there.
        assert!(owners.0.find(&7).is_some());
        drop((bytes, recipient));
        assert!(owners.0.find(&7).is_none());
        Ok(())
    }
}
