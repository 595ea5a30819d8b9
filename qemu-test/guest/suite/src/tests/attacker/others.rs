// SPDX-License-Identifier: GPL-2.0

//! Objects of other classes, domains and providers, addresses, and providers that trust their callers.

use kfi::{
    bits, uapi, BufferKind, CntrAttr, CqAttr, Domain, EqAttr, Error, Fabric, Form, Handle,
    InfoEntry, KfiErrno, Kind, MrAttr, OpType, Operation, Query, Session, WaitObj, WaitSetAttr,
    Work,
};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::check_eq;
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::tests::load::{check_memory, kernel_memory};
use crate::tests::module::{could_not, unload, Modules};

/// A provider without a check of its own: it trusts all that it is handed.
const TRUSTING: &str = "kfi_mock_trusting";

/// A fabric and a domain of another provider.
fn trusting(session: &Session) -> Result<(Fabric, Domain), Stop> {
    let info = session.getinfo(&Query::new().provider(TRUSTING))?;
    let fabric = info.fabric(0)?;
    let domain = fabric.domain(&info, 0)?;
    Ok((fabric, domain))
}

/// A counter on a wait set.
fn on_set(domain: &Domain, set: Handle) -> kfi::Result<kfi::Counter> {
    domain.counter(&CntrAttr::new().wait_obj(WaitObj::SET).wait_set(set))
}

pub(super) fn trusting_provider(env: &Env) -> Outcome {
    with_trusting(env, || trust_nobody(env))
}

/// The info that comes with a request for a connection is freed when that is read, once; and user space
/// cannot say that one has come.
pub(super) fn connection_requests(env: &Env) -> Outcome {
    /// An event of that kind (`enum kfi_eq_event`), and what its entry begins with.
    const CONNREQ: u32 = 1;
    const ROOM: usize = 16;
    with_trusting(env, || {
        let session = Session::open()?;
        let (fabric, domain) = trusting(&session)?;
        let eq = fabric.event_queue(&EqAttr::new())?;
        let mut written = 7u64.to_ne_bytes().to_vec();
        written.extend(0x1234_5678u64.to_ne_bytes());
        expect_os(eq.write(CONNREQ, &written), Errno::INVAL)?;
        expect_os(eq.write(CONNREQ, &[]), Errno::INVAL)?;
        // All others reach the provider, which has no room for them.
        expect_fabric(eq.write(CONNREQ + 1, &written), KfiErrno::EAGAIN)?;
        let read = |count: u64| -> Outcome {
            for _ in 0..count {
                for event in [eq.peek(ROOM)?, eq.read(ROOM)?] {
                    check_eq!(event.event, CONNREQ);
                    check_eq!(event.data[8..], [0; 8]);
                }
            }
            Ok(())
        };
        read(100)?;
        let before = kernel_memory()?;
        let rounds = env.scaled(10_000, 2_000);
        read(rounds)?;
        // Half of what one would leave.
        check_memory(env, &before, i64::try_from(rounds).unwrap_or(0) / 2)?;
        drop((eq, domain, fabric));
        Ok(())
    })
}

/// Runs something with that provider.
fn with_trusting(env: &Env, run: impl FnOnce() -> Outcome) -> Outcome {
    let modules = Modules::new(env)?;
    if let Err(errno) = modules.load_with(TRUSTING, c"") {
        if errno == Errno::NOENT {
            return Err(Stop::Skip(format!("no {TRUSTING}")));
        }
        return Err(could_not("load", TRUSTING, errno));
    }
    let outcome = run();
    unload(TRUSTING).map_err(|errno| could_not("unload", TRUSTING, errno))?;
    outcome
}

/// Everything of the one provider is handed to the other; that it complains the kernel's log tells.
fn trust_nobody(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (fabric, domain) = trusting(&rig.session)?;
    let (other_fabric, other_domain) = trusting(&rig.session)?;
    let refused = KfiErrno::EINVAL;
    let counter = domain.counter(&CntrAttr::new())?;
    let set = domain.poll_set()?;
    let own_wait = fabric.wait_set(&WaitSetAttr::new())?;
    drop(on_set(&domain, own_wait.handle())?);
    set.add_handle(counter.handle(), 0)?;
    set.del_handle(counter.handle(), 0)?;
    check_eq!(
        domain
            .queue_work(&Work::add(&counter, 1, &counter, 1))
            .err(),
        Some(Error::Fabric(KfiErrno::ENOSPC))
    );
    domain.flush_work(Some(&counter))?;

    let foreign_counter = rig.counter()?;
    let foreign_wait = rig.fabric.wait_set(&WaitSetAttr::new())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    let other_counter = other_domain.counter(&CntrAttr::new())?;
    let other_wait = other_fabric.wait_set(&WaitSetAttr::new())?;
    let wrong = [
        foreign_counter.handle(),
        foreign_wait.handle(),
        cq.handle(),
        eq.handle(),
        rig.domain.handle(),
        rig.fabric.handle(),
        other_counter.handle(),
        other_wait.handle(),
        other_domain.handle(),
        domain.handle(),
        fabric.handle(),
        set.handle(),
    ];
    for handle in wrong {
        expect_fabric(on_set(&domain, handle), refused)?;
        expect_fabric(set.add_handle(handle, 0), refused)?;
        expect_fabric(set.del_handle(handle, 0), refused)?;
        expect_fabric(domain.flush_work_handle(handle), refused)?;
        let works = [
            Work::new(OpType::CNTR_ADD, handle, 1).counter(counter.handle(), 1),
            Work::new(OpType::CNTR_ADD, counter.handle(), 1).counter(handle, 1),
            Work::add(&counter, 1, &counter, 1).completion(handle),
        ];
        for work in works {
            expect_fabric(domain.queue_work(&work), refused)?;
        }
    }
    expect_fabric(on_set(&domain, counter.handle()), refused)?;
    expect_fabric(set.add_handle(own_wait.handle(), 0), refused)?;
    for handle in [
        foreign_counter.handle(),
        other_counter.handle(),
        domain.handle(),
    ] {
        expect_fabric(fabric.trywait(&[handle]), refused)?;
    }
    trusted_endpoints(&rig, &domain, &other_domain, &counter)?;
    trusted_works(&rig, &domain, &other_domain, [&foreign_counter, &counter])?;
    trusted_demands(&rig, &fabric)?;
    // A domain that the other one has described.
    expect_fabric(fabric.domain(&rig.info, 0), refused)?;
    // A question that names an open fabric is asked of its provider alone.
    let mut hints = rig.info.entries()[0].clone();
    hints.fabric_attr.fabric = fabric.handle();
    let asked = rig.session.getinfo(&Query::new().hints(hints));
    expect_fabric(asked, KfiErrno::ENODATA)?;
    drop((set, counter, own_wait, other_counter, other_wait));
    drop((foreign_counter, foreign_wait, cq, eq));
    drop((domain, fabric, other_domain, other_fabric));
    rig.close()
}

/// A provider that goes by one list of an atomic operation finds as many elements in the others.
fn trusted_atomics(
    rig: &Rig,
    domain: &Domain,
    ep: &kfi::Endpoint,
    counter: &kfi::Counter,
) -> Outcome {
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let (few, one) = (buffer.elements(0, 3), buffer.elements(512, 1));
    for (kind, op_type) in [
        (Kind::FETCH_ATOMIC, OpType::FETCH_ATOMIC),
        (Kind::COMPARE_ATOMIC, OpType::COMPARE_ATOMIC),
    ] {
        for form in [Form::V, Form::MSG] {
            let mut right = Operation::new(kind, form)
                .segment(few)
                .result(few)
                .rma(0, 3, 1)
                .atomic(uapi::KFI_UINT64, uapi::KFI_SUM);
            if kind == Kind::COMPARE_ATOMIC {
                right = right.compare(few);
            }
            let mut wrong = vec![right.clone().segment(one), right.clone().result(one)];
            if kind == Kind::COMPARE_ATOMIC {
                wrong.push(right.clone().compare(one));
            }
            if form == Form::MSG {
                wrong.push(right.clone().rma(64, 1, 1));
            }
            let queue = |operation: &Operation| {
                let work = Work::transfer(op_type, ep.handle(), operation, counter, 1);
                domain.queue_work(&work).map(drop)
            };
            expect_fabric(ep.post(&right), KfiErrno::ENOSPC)?;
            for operation in &wrong {
                expect_fabric(ep.post(operation), KfiErrno::EINVAL)?;
            }
            if form == Form::MSG {
                expect_fabric(queue(&right), KfiErrno::ENOSPC)?;
                for operation in &wrong {
                    expect_fabric(queue(operation), KfiErrno::EINVAL)?;
                }
            }
        }
    }
    drop(buffer);
    Ok(())
}

/// Domains whose provider demands of all that is opened on them what nobody can give.
fn trusted_demands(rig: &Rig, fabric: &Fabric) -> Outcome {
    let nothing = (kfi::Mode::default(), kfi::MrMode::default());
    let demanded = [
        kfi::Mode::CONTEXT,
        kfi::Mode::CONTEXT2,
        kfi::Mode::ASYNC_IOV,
        kfi::Mode::MSG_PREFIX,
        kfi::Mode::LOCAL_MR,
    ]
    .map(|mode| (mode, nothing.1));
    let registered = [kfi::MrMode::LOCAL, kfi::MrMode::VIRT_ADDR].map(|mode| (nothing.0, mode));
    let answers = |(mode, mr_mode)| {
        let mut hints = InfoEntry {
            mode,
            ..InfoEntry::default()
        };
        hints.domain_attr.mr_mode = mr_mode;
        TRUSTING.clone_into(&mut hints.fabric_attr.prov_name);
        rig.session.getinfo(&Query::new().hints(hints))
    };
    for demand in demanded.into_iter().chain(registered) {
        let demanding = answers(demand)?;
        let entry = &demanding.entries()[0];
        check_eq!((entry.mode, entry.domain_attr.mr_mode), demand);
        let refused = fabric.domain(&demanding, 0);
        expect_os(refused.map(drop), Errno::OPNOTSUPP)?;
    }
    // What does no harm is no reason to refuse one.
    let harmless = (kfi::Mode::RX_CQ_DATA, kfi::MrMode::PROV_KEY);
    drop(fabric.domain(&answers(harmless)?, 0)?);
    Ok(())
}

/// The same between two domains of one provider, on one fabric or two.
pub(super) fn others(env: &Env) -> Outcome {
    let refused = KfiErrno::EINVAL;
    let rig = Rig::new(env)?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let far_fabric = rig.info.fabric(0)?;
    let (counter, theirs) = (rig.counter()?, second.counter(&CntrAttr::new())?);
    let cq = second.completion_queue(&CqAttr::new())?;
    let far_wait = far_fabric.wait_set(&WaitSetAttr::new())?;
    let set = rig.domain.poll_set()?;
    for handle in [theirs.handle(), cq.handle(), rig.domain.handle()] {
        expect_fabric(set.add_handle(handle, 0), refused)?;
        expect_fabric(rig.domain.flush_work_handle(handle), refused)?;
        let work = Work::new(OpType::CNTR_ADD, handle, 1).counter(counter.handle(), 1);
        expect_fabric(rig.domain.queue_work(&work), refused)?;
        expect_fabric(on_set(&rig.domain, handle), refused)?;
    }
    expect_fabric(on_set(&rig.domain, far_wait.handle()), refused)?;
    drop((set, far_wait, counter, theirs, cq));
    drop((second, far_fabric));
    rig.close()
}

/// Regions at addresses are nothing for those who may not know addresses.
pub(super) fn virtual_addresses(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let mut hints = rig.info.entries()[0].clone();
    hints.domain_attr.mr_mode = kfi::MrMode::VIRT_ADDR;
    let info = match rig.session.getinfo(&Query::new().hints(hints)) {
        Ok(info) => info,
        Err(error) => return Err(Stop::Skip(format!("there is no such mode: {error}"))),
    };
    let refused = rig.fabric.domain(&info, 0);
    expect_os(refused.map(drop), Errno::OPNOTSUPP)?;
    drop(info);
    let domain = &rig.domain;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let attr = MrAttr::new(bits::REMOTE_READ, 1);
    if let Ok(region) = domain.register(&[buffer.all()], &attr) {
        if let Ok((base, _)) = region.raw_attr() {
            check_eq!(base, 0);
        }
    }
    drop(buffer);
    rig.close()
}

/// Works that a provider is asked to cancel: only those of its domain that are there.
fn trusted_works(
    rig: &Rig,
    domain: &Domain,
    other: &Domain,
    [foreign_counter, counter]: [&kfi::Counter; 2],
) -> Outcome {
    let (stale, release) = (uapi::KFI_SHIM_WORK_STALE, uapi::KFI_SHIM_WORK_RELEASE);
    let prepared = |domain: &Domain, counter: &kfi::Counter| {
        let work = Work::add(counter, 1, counter, 9);
        domain.queue_work(&work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE))
    };
    let foreign = rig
        .domain
        .queue_work(&Work::add(foreign_counter, 1, foreign_counter, 9))?;
    let own = prepared(domain, counter)?;
    for wrong in [domain, other] {
        expect_fabric(wrong.cancel_work(foreign, 0), KfiErrno::ENOSYS)?;
        expect_fabric(wrong.cancel_work(foreign, release), KfiErrno::ENOSYS)?;
    }
    expect_fabric(other.cancel_work(own, 0), KfiErrno::ENOSYS)?;
    expect_fabric(domain.cancel_work(own, 0), KfiErrno::ENOENT)?;
    // The software provider looks behind none.
    expect_fabric(rig.domain.cancel_work(own, 0), KfiErrno::ENOENT)?;
    rig.domain.cancel_work(foreign, release)?;
    // Works that are gone.
    for at in [domain, other] {
        let own = prepared(domain, counter)?;
        expect_fabric(at.cancel_work(own, stale), KfiErrno::ENOSYS)?;
        expect_os(rig.session.release_work(own), Errno::BADF)?;
    }
    expect_fabric(rig.domain.cancel_work(own, stale), KfiErrno::ENOENT)?;
    expect_os(rig.session.release_work(own), Errno::BADF)
}

/// Handles that a provider is given: only endpoints for such operations, and no descriptors of
/// regions of others.
fn trusted_endpoints(
    rig: &Rig,
    domain: &Domain,
    other: &Domain,
    counter: &kfi::Counter,
) -> Outcome {
    let refused = KfiErrno::EINVAL;
    let described = InfoEntry::default();
    let info = || kfi::EpInfo::Value(&described);
    let (ep, theirs) = (domain.endpoint(info(), 0)?, other.endpoint(info(), 0)?);
    let sep = domain.scalable_endpoint(info(), 0)?;
    let (tx, rx) = (sep.tx_context(0, None, 0)?, sep.rx_context(0, None, 0)?);
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let send = |segment| Operation::new(Kind::SEND, Form::MSG).segment(segment);
    let queue = |handle, segment| {
        let work = Work::transfer(OpType::SEND, handle, &send(segment), counter, 1);
        domain.queue_work(&work).map(drop)
    };
    for handle in [ep.handle(), tx.handle()] {
        expect_fabric(queue(handle, buffer.all()), KfiErrno::ENOSPC)?;
    }
    for handle in [
        0,
        sep.handle(),
        rx.handle(),
        theirs.handle(),
        counter.handle(),
    ] {
        expect_fabric(queue(handle, buffer.all()), refused)?;
    }
    // Only scalable endpoints have contexts.
    for context in [&ep, &tx, &rx] {
        expect_fabric(context.tx_context(0, None, 0), refused)?;
        expect_fabric(context.rx_context(0, None, 0), refused)?;
    }
    let attr = MrAttr::new(bits::REMOTE_READ, 1).form(Form::PLAIN);
    let own = domain.register(&[buffer.all()], &attr)?;
    let foreign = other.register(&[buffer.all()], &attr)?;
    expect_fabric(ep.post(&send(buffer.all().desc(&own))), KfiErrno::ENOSPC)?;
    expect_fabric(ep.post(&send(buffer.all().desc(&foreign))), refused)?;
    expect_fabric(
        queue(ep.handle(), buffer.all().desc(&own)),
        KfiErrno::ENOSPC,
    )?;
    expect_fabric(queue(ep.handle(), buffer.all().desc(&foreign)), refused)?;
    // Nor of those for other memory.
    let half = domain.register(&[buffer.segment(1000..3000)], &attr)?;
    let other_buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let within = send(buffer.segment(1500..2000).desc(&half));
    expect_fabric(ep.post(&within), KfiErrno::ENOSPC)?;
    for segment in [
        buffer.segment(999..3000),
        buffer.segment(1000..3001),
        other_buffer.segment(1000..3000),
    ] {
        let outside = segment.desc(&half);
        expect_os(ep.post(&send(outside)), Errno::INVAL)?;
        expect_os(queue(ep.handle(), outside), Errno::INVAL)?;
    }
    trusted_atomics(rig, domain, &ep, counter)?;
    drop((tx, rx, sep, ep, theirs));
    drop((own, foreign, half, buffer, other_buffer));
    Ok(())
}
