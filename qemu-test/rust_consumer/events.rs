// SPDX-License-Identifier: GPL-2.0

//! Events that the consumer has written itself.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::{
    bindings::{
        KFI_CONNECTED,
        KFI_CONNREQ,
        KFI_PEEK,
        KFI_WAIT_UNSPEC,
        KFI_WRITE, //
    },
    consumer::{
        getinfo,
        Contexts,
        EventQueue,
        EventQueueAttr,
        Fabric,
        First,
        Quota, //
    },
    context::Context, //
};

/// Reads them back. None is taken for one of the provider, how ever often they were looked at, and
/// whatever they have where that would have a pointer; and none is added of the type whose description of
/// a connection would be freed.
pub(crate) fn events() -> Result {
    let offers = getinfo(0, None, None, 0, None)?;
    let fabric = Fabric::open(*offers.first(), Context::NONE)?;
    let contexts = Contexts::new(Quota::new(1 << 20, None)?)?;
    let attr = EventQueueAttr {
        size: 0,
        flags: KFI_WRITE.into(),
        wait_obj: KFI_WAIT_UNSPEC,
        wait_set: None,
        signaling_vector: 0,
    };
    let queue = EventQueue::open(&fabric, Some(attr), Context::NONE, &contexts, None)??;

    let entry = [7u64, 0xdead_0008, 0].map(u64::to_ne_bytes);
    let entry = entry.as_flattened();
    for len in [0, 8, 16, entry.len()] {
        let refused = queue.write(KFI_CONNREQ, entry.get(..len).unwrap_or(entry), 0);
        if !matches!(refused, Err(error) if error == EINVAL) {
            return Err(EIO);
        }
    }
    for _ in 0..3 {
        queue.write(KFI_CONNECTED, entry, 0)??;
    }
    for _ in 0..3 {
        for flags in [KFI_PEEK, KFI_PEEK, 0] {
            let mut data = [0; 32];
            let event = queue.read(&mut data, flags.into(), None)?;
            let told = (event.event, event.first, data.get(..event.len));
            if told != (KFI_CONNECTED, First::Written(7), Some(entry)) {
                return Err(EINVAL);
            }
        }
    }
    match queue.read(&mut [0; 32], 0, None) {
        Err(error) if error == EAGAIN => Ok(()),
        _ => Err(EINVAL),
    }
}
