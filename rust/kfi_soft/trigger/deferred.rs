// SPDX-License-Identifier: GPL-2.0

//! Deferred work: what consumers queue on a domain (`KFI_QUEUE_WORK`).
//!
//! A request is checked and copied when it is queued (R-DWQ-4, R-DWQ-16); from then on it is known
//! by the value of the consumer's pointer, which is never dereferenced again (R-CTL-2).

#![forbid(unsafe_code)]

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
        linux::{
            jiffies::Instant,
            task::cond_resched, //
        },
        provider::{
            DeferredOp,
            DeferredWork,
            WorkId, //
        }, //
    },
    trigger::pending::{
        Pending,
        PendingKind, //
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
pub(crate) fn queue(domain: &Fid<Domain>, work: DeferredWork<'_>) -> Result {
    let triggering = counter_of(domain, work.triggering)?;
    let completion = match work.completion {
        Some(fid) => Some(Hold::new(counter_of(domain, fid)?)?),
        None => None,
    };
    let since = Instant::now();
    let pending = match work.op {
        DeferredOp::CounterAdd { counter, value } => Pending::Add {
            counter: HoldOnce::new(counter_of(domain, counter)?)?,
            value,
            since,
        },
        DeferredOp::CounterSet { counter, value } => Pending::Set {
            counter: HoldOnce::new(counter_of(domain, counter)?)?,
            value,
            since,
        },
        DeferredOp::Transfer {
            endpoint,
            operation,
        } => Pending::Transfer {
            transfer: endpoint::prepare(endpoint, operation, completion, domain)?,
            since,
        },
    };
    domain.run_list().submit(
        triggering,
        PendingKind::Deferred,
        pending,
        work.id.as_number(),
        work.threshold,
        GFP_KERNEL,
    )
}

/// Takes back all requests with an id that are queued; none of them is ever begun. May sleep.
///
/// `ENOENT` if there are none, or if all of them were begun (R-CTL-2). These have run when this
/// returns, if they had fired before.
pub(crate) fn cancel(domain: &Domain, id: WorkId) -> Result {
    let run_list = domain.run_list();
    let mut result = Err(ENOENT);
    // Not for ever, if somebody keeps queueing.
    for _ in 0..run_list.limit() {
        let taken = run_list.take_back(id.as_number(), |found| {
            abi_trace::cancel(found.counter.id(), found.key, PendingKind::Deferred);
        });
        let Some(taken) = taken else {
            break;
        };
        result = Ok(());
        if !taken.others {
            if taken.all_have_run {
                return result;
            }
            break;
        }
        cond_resched();
    }
    run_list.wait_for_fired();
    result
}

/// Takes back all requests that are queued on the domain (R-CTL-3), or those that wait for one of
/// its counters (R-CTL-4). May sleep: what has fired before has run when this returns.
pub(crate) fn flush(domain: &Fid<Domain>, triggering: Option<AnyFid<'_>>) -> Result {
    let run_list = domain.run_list();
    let flushed = match triggering {
        Some(fid) => {
            let counter = counter_of(domain, fid)?;
            run_list.flush_counter(counter)
        }
        None => run_list.flush(),
    };
    run_list.wait_for_fired();
    abi_trace::flush(flushed);
    Ok(())
}
