// SPDX-License-Identifier: GPL-2.0

//! Requests of other nodes whose bytes come, or are fetched, in pieces.
//!
//! When such a request was matched with a receive, or is to be done to memory regions, it says so to
//! the wire, and lies here until that has brought or fetched the last byte. So nothing of it is kept
//! anywhere else meanwhile. Its regions are looked up for each piece: they may be closed before the
//! end, and then it fails, whatever has their keys by then. It fails at once if its receive context is
//! closed, as its initiator may have nothing more to say; what comes all the same finds nothing here.

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
    kfi::linux::{
        interrupts::NoPreemption,
        queue::{
            Entry,
            EntryQueue,
            Named,
            Vacant, //
        },
        task::cond_resched, //
    },
    transfer::{
        receive_queue::{
            Delivery,
            Span, //
        },
        receiver::{
            LateReport,
            Piece,
            Receiver,
            ReceiverUse, //
        },
        region::Moment, //
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
    /// The memory regions that the request names, of those that there were when it began.
    Regions(Moment),
}

/// A request whose bytes come, or are fetched, in pieces.
struct Landing {
    request: Arc<RemoteRequest>,
    receiver: ReceiverUse,
    ground: Ground,
    /// Why a piece was not copied: the wire brings no more then, and ends it.
    refused: Option<Error>,
    /// It is to be reported.
    _late_report: Option<LateReport>,
}

/// Named by the receive context and the request. The request has the first as its cookie.
impl Named for Landing {
    type Name = (usize, usize);

    fn name(&self) -> (usize, usize) {
        (self.receiver.id(), self.request.number())
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
            Ground::Regions(_) => request.request().len,
        };
        let landing = memory.fill(Landing {
            request: request.clone(),
            receiver,
            ground,
            refused: None,
            _late_report: late_report,
        });
        if len == 0 {
            // Nothing is to come.
            Self::finish(landing, Ok(()));
            return;
        }
        request.set_cookie(landing.receiver.id());
        if self.keep(landing) {
            request.start(len);
        }
    }

    /// Puts a landing where it is found; ends it instead if its receive context is being closed, and
    /// returns `false`.
    fn keep(&self, landing: Entry<Landing>) -> bool {
        {
            let mut list = self.list.lock();
            // The thread that closes it looks here after it has said so: ordered by the lock.
            if !landing.receiver.is_closed() {
                list.push_named(landing);
                return true;
            }
        }
        Self::finish(landing, Err(EHOSTUNREACH));
        false
    }

    /// Takes the landing of a request out.
    fn take(&self, request: &Arc<RemoteRequest>) -> Option<Entry<Landing>> {
        let name = (request.cookie(), request.number());
        let mut list = self.list.lock();
        list.take_named(&name, |landing| landing.name() == name)
    }

    /// Ends all requests for a receive context that is being closed, but one of which a thread is just
    /// copying a piece, which that thread ends. May sleep.
    pub(crate) fn close(&self, receiver: &Receiver) {
        let id = receiver.id();
        loop {
            // Its sender waits for the thread that has taken it out.
            let preemption = NoPreemption::begin();
            let landing = {
                let mut list = self.list.lock();
                list.take_named(&(id, 0), |landing| landing.name().0 == id)
            };
            let Some(landing) = landing else {
                return;
            };
            Self::finish(landing, Err(EHOSTUNREACH));
            drop(preemption);
            cond_resched();
        }
    }

    /// Copies a piece, from `offset` on; `ENOENT` if the request is not here, or not any more as its
    /// receive context is being closed.
    pub(crate) fn copy(
        &self,
        request: &Arc<RemoteRequest>,
        offset: usize,
        piece: &mut Piece<'_>,
    ) -> Result {
        let mut landing = self.take(request).ok_or(ENOENT)?;
        let done = match &landing.ground {
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
            Ground::Regions(moment) => {
                let receiver = &landing.receiver;
                receiver.copy_piece(request, *moment, offset, piece)
            }
        };
        landing.refused = done.err();
        if self.keep(landing) {
            done
        } else {
            Err(ENOENT)
        }
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
            refused,
            // Until it has been answered.
            _late_report,
        } = landing;
        let response = match ground {
            Ground::Receive(delivery, span) => {
                // It was not the receive that was cancelled.
                let received = result.map_err(|_| EHOSTUNREACH);
                let response =
                    receiver.end_landing(request.request(), delivery, span, received, memory);
                match result {
                    Ok(()) => response,
                    Err(error) => Response::failed(error),
                }
            }
            Ground::Regions(moment) => match result {
                Ok(()) => receiver.end_access(&request, moment, memory),
                Err(error) => Response::failed(refused.unwrap_or(error)),
            },
        };
        request.answer(response);
    }
}
