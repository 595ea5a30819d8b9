// SPDX-License-Identifier: GPL-2.0

//! Requests of other nodes whose bytes come, or are fetched, in pieces.
//!
//! When such a request was matched with a receive, or is to be done to memory regions, it says so to
//! the wire, and lies here until that has brought or fetched the last byte. So nothing of it is kept
//! anywhere else meanwhile. Its regions are looked up for each piece: they may be closed before the
//! end, and then it fails.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    kfi::linux::queue::{
        Entry,
        EntryQueue,
        Named,
        Vacant, //
    },
    transfer::{
        receive_queue::{
            Delivery,
            Span, //
        },
        receiver::{
            LateReport,
            Piece,
            ReceiverUse, //
        }, //
    },
    wire::{
        remote::RemoteRequest,
        Response, //
    }, //
};

/// Where the bytes of a request go, or come from.
pub(crate) enum Ground {
    /// The memory of a posted receive.
    Receive(Delivery, Span),
    /// The memory regions that the request names.
    Regions,
}

/// A request whose bytes come, or are fetched, in pieces.
struct Landing {
    request: Arc<RemoteRequest>,
    receiver: ReceiverUse,
    ground: Ground,
    /// It is to be reported.
    _late_report: Option<LateReport>,
}

impl Named for Landing {
    type Name = usize;

    fn name(&self) -> usize {
        self.request.number()
    }
}

/// All of these.
#[pin_data]
pub(crate) struct Landings {
    #[pin]
    list: SpinLockIrq<EntryQueue<Landing>>,
}

impl Landings {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_spinlock_irq!(EntryQueue::new(), "kfi_soft::Landings::list"),
        })
    }

    /// Begins with a request that was claimed, in the memory of that.
    pub(crate) fn begin(
        &self,
        request: Arc<RemoteRequest>,
        receiver: ReceiverUse,
        ground: Ground,
        late_report: Option<LateReport>,
        memory: Vacant,
    ) {
        let len = match &ground {
            Ground::Receive(_, span) => span.len,
            Ground::Regions => request.request().len,
        };
        let landing = memory.fill(Landing {
            request: request.clone(),
            receiver,
            ground,
            _late_report: late_report,
        });
        if len == 0 {
            // Nothing is to come.
            Self::finish(landing, Ok(()));
            return;
        }
        self.list.lock().push_named(landing);
        request.start(len);
    }

    /// Takes the landing of a request out.
    fn take(&self, request: &Arc<RemoteRequest>) -> Option<Entry<Landing>> {
        let number = request.number();
        let mut list = self.list.lock();
        list.take_named(&number, |landing| landing.name() == number)
    }

    /// Copies a piece, from `offset` on; `ENOENT` if the request is not here, `EHOSTUNREACH` if its
    /// receive context is being closed.
    pub(crate) fn copy(
        &self,
        request: &Arc<RemoteRequest>,
        offset: usize,
        mut piece: Piece<'_>,
    ) -> Result {
        // The thread that brings the pieces is the only one that ends it, too.
        let landing = self.take(request).ok_or(ENOENT)?;
        let done = match &landing.ground {
            // The thread that closes it waits for this one to end.
            _ if landing.receiver.is_closed() => Err(EHOSTUNREACH),
            Ground::Receive(delivery, span) => {
                let end = offset.saturating_add(piece.len());
                if end > span.len {
                    Err(EINVAL)
                } else {
                    let at = span.offset.saturating_add(offset);
                    piece.copy(&mut delivery.cursor(at));
                    Ok(())
                }
            }
            Ground::Regions => landing.receiver.copy_piece(request, offset, &mut piece),
        };
        self.list.lock().push_named(landing);
        done
    }

    /// Ends a request: all of its bytes were copied, or none will be any more. Reports and answers.
    pub(crate) fn end(&self, request: &Arc<RemoteRequest>, result: Result) {
        if let Some(landing) = self.take(request) {
            Self::finish(landing, result);
        }
    }

    fn finish(landing: Entry<Landing>, result: Result) {
        let (landing, memory) = landing.empty();
        let Landing {
            request,
            receiver,
            ground,
            // Until it has been answered.
            _late_report,
        } = landing;
        let response = match ground {
            Ground::Receive(delivery, span) => {
                receiver.end_landing(request.request(), delivery, span, result, memory)
            }
            Ground::Regions => match result {
                Ok(()) => receiver.end_access(&request, memory),
                Err(error) => Response::failed(error),
            },
        };
        request.answer(response);
    }
}
