// SPDX-License-Identifier: GPL-2.0

//! The consumers in `Documentation/providers.md`.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    bindings::{
        KFI_RECV,
        KFI_TRANSMIT, //
    },
    consumer::{
        getinfo,
        AddressVector,
        Buffer,
        BufferKind,
        CompletionQueue,
        Contexts,
        Counter,
        Domain,
        Endpoint,
        EndpointKind,
        Fabric,
        Form,
        HasName,
        Insert,
        Kind,
        Operation,
        Places,
        Quota,
        Segment,
        ADDR_MAX, //
    },
    context::Context,
    errno::EAVAIL, //
};

/// Shows a counter at work.
pub(crate) fn example() -> Result {
    let offers = getinfo(0, None, None, 0, None)?;
    let fabric = Fabric::open(*offers.first(), Context::NONE)?;
    let contexts = Contexts::new(Quota::new(1 << 20, None)?)?;
    let domain = Domain::open(&fabric, offers.first(), Context::NONE, &contexts)?;
    let counter = Counter::open(&domain, None, Context::NONE)?;

    counter.add(3)?;
    counter.wait(3, 100)?; // at least 3 within 100 ms
    pr_info!("waited for 4: {:?}\n", counter.wait(4, 100)); // Err(ETIMEDOUT)
    Ok(())
}

/// Sends a message, from an endpoint to itself.
pub(crate) fn message() -> Result {
    let offers = getinfo(0, None, None, 0, None)?;
    let fabric = Fabric::open(*offers.first(), Context::NONE)?;
    let quota = Quota::new(1 << 24, None)?;
    let contexts = Contexts::new(quota.clone())?;
    let domain = Domain::open(&fabric, offers.first(), Context::NONE, &contexts)?;
    let queue = CompletionQueue::open(&domain, None, Context::NONE, None)??;
    let av = AddressVector::open(&domain, None, Context::NONE)?;
    let charge = Quota::charge(&quota, Endpoint::operations_size(*offers.first()))?;
    let kind = EndpointKind::Plain;
    let ep = Endpoint::open(&domain, kind, *offers.first(), Context::NONE, charge)?;
    ep.bind_queue(&queue, u64::from(KFI_TRANSMIT) | u64::from(KFI_RECV))?;
    ep.any().bind(av.any(), 0)?;
    ep.any().enable()?;

    let mut name = KVVec::from_elem(0, ADDR_MAX, GFP_KERNEL)?;
    ep.getname(&mut name).0?;
    let (peers, charge) = (Insert::Binary(name, 1), Quota::nothing(&quota));
    let inserted = av.insert(peers, true, 0, Context::NONE, None, charge)??;
    let peer = *inserted.kfi_addrs.first().ok_or(EINVAL)?;

    let charge = Quota::charge(&quota, BufferKind::Vmalloc.takes(4096)?)?;
    let buffer = Buffer::new(BufferKind::Vmalloc, 4096, 1, charge, &Places::new()?)?;
    let buffer = Arc::new(buffer, GFP_KERNEL)?;
    let room = [Segment::new(buffer.clone(), 0, 2048, None)?];
    let recv = Operation {
        segments: &room,
        ..Operation::new(Kind::Recv, Form::Plain, 1)
    };
    ep.post(recv, None)??;

    buffer.write_at(2048, b"hello")?;
    let text = [Segment::new(buffer.clone(), 2048, 5, None)?];
    let send = Operation {
        segments: &text,
        addr: peer,
        ..Operation::new(Kind::Send, Form::Plain, 2)
    };
    ep.post(send, None)??;

    for _ in 0..2 {
        // One, within a second, whatever the condition of the queue, and not where it came from.
        let completions = match queue.read(1, Some(1000), 0, false) {
            Err(error) if error == Error::from(EAVAIL) => {
                // An operation has failed: this says which one, and why.
                let failure = queue.readerr()?;
                let context = failure.completion.context;
                pr_err!("failed: {context:?}: errno {}\n", failure.err);
                return Err(EIO);
            }
            completions => completions?,
        };
        for completion in completions {
            pr_info!("completed: {:?}\n", completion.context); // Some(1), Some(2)
        }
    }
    let mut text = [0; 5];
    buffer.read_at(0, &mut text)?;
    pr_info!("received: {:?}\n", core::str::from_utf8(&text)); // Ok("hello")
    Ok(())
}
