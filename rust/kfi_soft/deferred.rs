// SPDX-License-Identifier: GPL-2.0

//! Deferred work: what consumers queue on a domain (`KFI_QUEUE_WORK`).
//!
//! A request is checked and copied when it is queued (R-DWQ-4, R-DWQ-16); from then on it is known
//! by the value of the consumer's pointer, which is never looked behind again (R-CTL-2).

#![deny(unsafe_code)]

use core::ptr;
use kernel::prelude::*;

use crate::{
    abi_trace,
    counter::Counter,
    domain::Domain,
    endpoint,
    kfi::{
        fid::{
            AnyFid,
            Fid, //
        },
        hold::{
            Hold,
            HoldOnce, //
        },
        interrupts::Section,
        provider::{
            DeferredOp,
            DeferredWork,
            WorkId, //
        }, //
    },
    trigger::{
        Action,
        Kind,
        Pending, //
    }, //
};

/// Returns the counter of the domain that an object is; `EINVAL` if it is not one.
fn counter_of<'a>(domain: &Fid<Domain>, fid: AnyFid<'a>) -> Result<&'a Fid<Counter>> {
    fid.downcast::<Counter>()
        .filter(|counter| ptr::eq(&**counter.domain(), domain))
        .ok_or(EINVAL)
}

/// Queues a request; may sleep.
///
/// It is begun at once if its threshold is reached already (R-DWQ-6). `ENOSPC` if too many are
/// queued (R-DWQ-24).
pub(crate) fn queue(domain: &Fid<Domain>, work: &DeferredWork<'_>) -> Result {
    let triggering = counter_of(domain, work.triggering)?;
    let completion = match work.completion {
        Some(fid) => Some(Hold::new(counter_of(domain, fid)?)?),
        None => None,
    };
    let action = match &work.op {
        DeferredOp::CounterAdd { counter, value } => Action::Add {
            counter: HoldOnce::new(counter_of(domain, *counter)?)?,
            value: *value,
        },
        DeferredOp::CounterSet { counter, value } => Action::Set {
            counter: HoldOnce::new(counter_of(domain, *counter)?)?,
            value: *value,
        },
        DeferredOp::Transfer {
            endpoint,
            operation,
        } => Action::Transfer(endpoint::prepare(*endpoint, operation, completion, domain)?),
    };
    let entry = Pending::new(action, GFP_KERNEL)?;
    domain.run_list().submit(
        triggering,
        Kind::Deferred,
        entry,
        work.id.as_number(),
        work.threshold,
        GFP_KERNEL,
    )
}

/// Takes back all requests with an id that are queued; none of them is ever begun.
///
/// `ENOENT` if there are none, or if all of them were begun (R-CTL-2).
pub(crate) fn cancel(domain: &Domain, id: WorkId) -> Result {
    let run_list = domain.run_list();
    let mut before = u64::MAX;
    let mut result = Err(ENOENT);
    while let Some(taken) = run_list.take_back(Kind::Deferred, id.as_number(), before, |_| true) {
        before = taken.found.key.sequence;
        if taken.entry.is_some() {
            abi_trace::cancel(taken.found.counter.id(), taken.found.key, Kind::Deferred);
            result = Ok(());
        }
        if taken.last {
            break;
        }
    }
    result
}

/// Takes back all requests that are queued on the domain (R-CTL-3), or those that wait for one of
/// its counters (R-CTL-4).
pub(crate) fn flush(domain: &Fid<Domain>, triggering: Option<AnyFid<'_>>) -> Result {
    let run_list = domain.run_list();
    let mut flushed = 0;
    if let Some(fid) = triggering {
        let counter = counter_of(domain, fid)?;
        let (entries, hold) = counter.detach_all(Kind::Deferred);
        flushed = run_list.forget_all(entries);
        drop(hold);
    } else {
        run_list.for_each(|found| {
            // Once for both locks.
            let interrupts = Section::begin();
            let removed = found.counter.remove(Kind::Deferred, found.key, |_| true);
            if let Some(entry) = &removed {
                run_list.forget(entry);
                flushed += 1;
            }
            drop(interrupts);
            drop(removed);
        });
    }
    abi_trace::flush(flushed);
    Ok(())
}
