// SPDX-License-Identifier: GPL-2.0

//! The checks of a transmit context before it begins, or keeps, an operation.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::{
    enomem_to_eagain,
    Transmitter, //
};
use crate::{
    budget::INLINE_LIMIT,
    counter::Counter,
    kfi::{
        errno::EBADFLAGS,
        flags::{
            Caps,
            OpFlags, //
        },
        hold::Hold,
        memory::{
            pieces::Reserve,
            RemoteMemory,
            RemoteRange,
            RemoteRanges, //
        },
        provider::{
            AtomicForm,
            Kind,
            Operation,
            Outgoing, //
        }, //
    },
    limits,
    personality,
    transfer::{
        atomic,
        completer::Manner,
        outstanding::TransferConfig, //
    },
    wire::{
        atomics::Atomics,
        ContextIndex,
        Request,
        RequestKind, //
    }, //
};

/// Flags that operations of a transmit context may have.
const FLAGS: OpFlags = OpFlags::COMPLETION
    .union(OpFlags::INJECT)
    .union(OpFlags::TRIGGER)
    .union(OpFlags::MORE)
    .union(OpFlags::FENCE)
    .union(OpFlags::REMOTE_CQ_DATA)
    .union(OpFlags::INJECT_COMPLETE)
    .union(OpFlags::TRANSMIT_COMPLETE)
    .union(OpFlags::DELIVERY_COMPLETE)
    .union(OpFlags::TAGGED);

/// An operation that was checked.
pub(crate) struct Prepared<'a> {
    pub(super) config: TransferConfig<'a>,
    /// It is held back until another one comes.
    pub(super) more: bool,
}

impl Prepared<'_> {
    /// Sets the completion counter of deferred work.
    pub(crate) fn set_notify(&mut self, notify: Option<Hold<Counter>>) {
        self.config.manner.notify = notify;
    }
}

/// Returns the capabilities that an operation needs, and the memory of the peer that it names.
fn needs<'a>(operation: &Operation<'a>) -> Result<(Caps, RemoteRanges<'a>)> {
    Ok(match operation.kind() {
        Kind::Send => (Caps::MSG | Caps::SEND, RemoteRanges::NONE),
        Kind::TaggedSend { .. } => (Caps::TAGGED | Caps::SEND, RemoteRanges::NONE),
        Kind::Read { remote } => (Caps::RMA | Caps::READ, remote),
        Kind::Write { remote } => (Caps::RMA | Caps::WRITE, remote),
        Kind::Atomic(atomics) => (atomic::needed_to_post(atomics.form.call()), atomics.remote),
        Kind::Receive | Kind::TaggedReceive { .. } => return Err(EOPNOTSUPP),
    })
}

impl Transmitter {
    /// Checks an operation and copies its description.
    ///
    /// `deferred` is for deferred work.
    pub(crate) fn prepare<'a>(
        &self,
        operation: Operation<'a>,
        deferred: bool,
        gfp: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Prepared<'a>> {
        self.prepare_for(operation, deferred, gfp, reserve, |prepared| prepared)
    }

    /// As [`Self::prepare`], but lets `begin` have the operation where it lies: it is large. An operation that
    /// may be carried out at once may use a reserve, which it gives back then; see [`Self::pack`].
    #[inline]
    pub(crate) fn prepare_for<'a, R>(
        &self,
        operation: Operation<'a>,
        deferred: bool,
        gfp: Flags,
        reserve: Option<&Arc<Reserve>>,
        begin: impl FnOnce(Prepared<'a>) -> R,
    ) -> Result<R> {
        let flags = operation.flags();
        if !FLAGS.contains(flags) {
            return Err(EBADFLAGS.into());
        }
        let (needed, remote) = needs(&operation)?;
        if !self.config.caps.contains(needed) {
            return Err(EOPNOTSUPP);
        }
        let len = self.check_ranges(&operation, remote)?;
        // Not where others use the credits, too: they could not tell that these are used up.
        let more = flags.contains(OpFlags::MORE) && !self.config.credits.is_shared();
        let fence = flags.contains(OpFlags::FENCE);
        let waits = more || fence || len > INLINE_LIMIT;
        let reserve = reserve.filter(|_| !waits);
        let (destination, named) = self.config.av.resolve(operation.addr).ok_or(EINVAL)?;
        let context = self.target_context(named)?;
        let remote = remote.capture(gfp, reserve).map_err(enomem_to_eagain)?;
        let is_rma = matches!(operation.kind(), Kind::Read { .. } | Kind::Write { .. });
        let tagged = flags.contains(OpFlags::TAGGED);
        if tagged && !is_rma {
            return Err(EBADFLAGS.into());
        }
        if (tagged && !self.config.caps.contains(Caps::TAGGED_RMA))
            || (fence && !self.config.caps.contains(Caps::FENCE))
        {
            return Err(EOPNOTSUPP);
        }
        let (kind, total) = self.request_kind(&operation, &remote, len)?;
        let asked = flags.contains(OpFlags::COMPLETION);
        let wants_entry = if deferred {
            asked
        } else {
            self.config.completer.wants_entry(flags)
        };
        let manner = Manner {
            entry: wants_entry && !operation.is_injected(),
            counted: !deferred || asked,
            notify: None,
            memory: None,
        };
        Ok(begin(Prepared {
            config: TransferConfig {
                request: Request {
                    source: self.config.source,
                    destination,
                    context,
                    auth_key: self.config.auth_key.number(),
                    kind,
                    data: operation.data,
                    len: total,
                },
                context: operation.context(),
                memory: Outgoing::take(operation, gfp, reserve).map_err(enomem_to_eagain)?,
                remote,
                manner,
                fence,
            },
            more,
        }))
    }

    /// Checks how many ranges an operation has, and how many bytes, which it returns.
    fn check_ranges(&self, operation: &Operation<'_>, remote: RemoteRanges<'_>) -> Result<usize> {
        if operation.local().count() > self.config.iov_limit
            || remote.count() > self.config.rma_iov_limit
        {
            return Err(EINVAL);
        }
        let len = operation.local().len()?;
        if len > limits::MAX_MSG_SIZE {
            return Err(EMSGSIZE);
        }
        if operation.flags().contains(OpFlags::INJECT) {
            // The call could not wait for the elements that are fetched.
            if matches!(operation.kind(), Kind::Atomic(atomics) if !atomics.is_plain()) {
                return Err(EBADFLAGS.into());
            }
            // The limit is for bytes that are sent.
            let is_read = matches!(operation.kind(), Kind::Read { .. });
            if !is_read && len > self.config.inject_size {
                return Err(EMSGSIZE);
            }
        }
        Ok(len)
    }

    /// Returns what an operation on `len` bytes asks for, and on how many bytes of the peer.
    fn request_kind(
        &self,
        operation: &Operation<'_>,
        remote: &RemoteMemory,
        len: usize,
    ) -> Result<(RequestKind, usize)> {
        let kind = match operation.kind() {
            Kind::TaggedSend { tag } => RequestKind::Tagged { tag },
            Kind::Read { .. } | Kind::Write { .. } => {
                if remote.len()? != len {
                    return Err(EINVAL);
                }
                let write = matches!(operation.kind(), Kind::Write { .. });
                let tagged = operation.flags().contains(OpFlags::TAGGED);
                match (tagged, remote.get(0).filter(|_| remote.count() == 1)) {
                    (true, Some(RemoteRange { addr, key, .. })) => {
                        let (tag, offset) = (*key, *addr);
                        if write {
                            RequestKind::TaggedWrite { tag, offset }
                        } else {
                            RequestKind::TaggedRead { tag, offset }
                        }
                    }
                    // A tag names one receive.
                    (true, _) => return Err(EINVAL),
                    (false, _) if write => RequestKind::Write,
                    (false, _) => RequestKind::Read,
                }
            }
            Kind::Atomic(atomics) => {
                let checked = Atomics::new(atomics.datatype, atomics.op, atomics.form.call())?;
                let total = remote.len()?;
                self.check_atomics(checked, &atomics.form, len, total)?;
                return Ok((RequestKind::Atomic(checked), total));
            }
            _ => RequestKind::Message,
        };
        Ok((kind, len))
    }

    /// Checks that the arrays of an atomic operation have as many bytes as it changes.
    fn check_atomics(
        &self,
        atomics: Atomics,
        form: &AtomicForm<'_>,
        len: usize,
        total: usize,
    ) -> Result {
        if total > atomic::MAX_BYTES {
            return Err(EMSGSIZE);
        }
        let fits = |count: usize, len: usize| {
            if count > self.config.iov_limit || len != total {
                return Err(EINVAL);
            }
            Ok(())
        };
        if total == 0 || (atomics.has_operands() && len != total) {
            return Err(EINVAL);
        }
        match form {
            AtomicForm::Plain => {}
            AtomicForm::Fetch { result } => fits(result.count(), result.len()?)?,
            AtomicForm::Compare { compare, result } => {
                fits(compare.count(), compare.len()?)?;
                fits(result.count(), result.len()?)?;
            }
        }
        Ok(())
    }

    /// Returns the receive context that an operation is for, given that which its address names.
    fn target_context(&self, named: usize) -> Result<ContextIndex> {
        if self.config.caps.contains(Caps::NAMED_RX_CTX) {
            return Ok(ContextIndex::Named(named));
        }
        match named {
            0 => Ok(ContextIndex::Beside(self.config.index)),
            _ if personality::is_strict() => Err(EOPNOTSUPP),
            _ => Ok(ContextIndex::Named(named)),
        }
    }
}
