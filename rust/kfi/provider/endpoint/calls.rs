// SPDX-License-Identifier: GPL-2.0

//! Tests of the calls of C, on an endpoint that notes what is posted.

use core::ptr;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use super::{
    EndpointData,
    EndpointOps,
    NoReceiveContext,
    NoTransmitContext,
    PlainClass, //
};
use crate::kfi::{
    bindings,
    context::Context,
    errno::ETOOSMALL,
    fid::{
        Fid,
        Object,
        TestFid, //
    },
    flags::OpFlags,
    memory::{
        Local,
        RemoteRanges, //
    },
    provider::{
        kfi_datatype,
        kfi_op,
        Answer,
        AtomicCall,
        Kind,
        Operation, //
    }, //
};

/// The operation that was posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Send,
    Receive,
    TaggedSend(u64),
    TaggedReceive(u64, u64),
    Read,
    Write,
    Atomic(AtomicCall, kfi_datatype, kfi_op),
}

/// How it was posted.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Note {
    seen: Seen,
    local: usize,
    /// Data go to the local memory.
    target: bool,
    /// Address, length and key.
    remote: Option<(u64, usize, u64)>,
    addr: u64,
    data: Option<u64>,
    flags: OpFlags,
    inject: bool,
    context: usize,
    threshold: Option<u64>,
}

/// An endpoint that notes the last operation.
#[pin_data]
struct Recorder {
    #[pin]
    note: SpinLock<Option<Note>>,
}

impl Object for Recorder {
    type Class = PlainClass;

    fn release(&self) {}
}

impl EndpointOps for Recorder {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        if operation.context.as_number() == NO_MEMORY {
            return Err(ENOMEM);
        }
        let remote = |remote: RemoteRanges<'_>| -> Result<_> {
            let memory = remote.capture(GFP_NOWAIT, None)?;
            Ok(memory
                .get(0)
                .map(|range| (range.addr, range.len, range.key)))
        };
        let (seen, remote) = match operation.kind {
            Kind::Send => (Seen::Send, None),
            Kind::Receive => (Seen::Receive, None),
            Kind::TaggedSend { tag } => (Seen::TaggedSend(tag), None),
            Kind::TaggedReceive { tag, ignore } => (Seen::TaggedReceive(tag, ignore), None),
            Kind::Read { remote: ranges } => (Seen::Read, remote(ranges)?),
            Kind::Write { remote: ranges } => (Seen::Write, remote(ranges)?),
            Kind::Atomic(atomics) => (
                Seen::Atomic(atomics.form.call(), atomics.datatype, atomics.op),
                remote(atomics.remote)?,
            ),
        };
        *this.note.lock() = Some(Note {
            seen,
            local: operation.local.len()?,
            target: matches!(operation.local, Local::Target(_)),
            remote,
            addr: operation.addr.as_raw(),
            data: operation.data,
            flags: operation.flags,
            inject: operation.inject,
            context: operation.context.as_number(),
            threshold: operation.trigger.map(|trigger| trigger.threshold),
        });
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result {
        match context.as_number() {
            CONTEXT => Ok(()),
            _ => Err(ENOENT),
        }
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        answer.tell(&[1, 2, 3, 4, 5, 6, 7, 8])
    }

    fn min_multi_recv(&self) -> Result<usize> {
        Ok(64)
    }
}

/// The context of all operations.
const CONTEXT: usize = 0x55;
/// The context of an operation that there is no memory for.
const NO_MEMORY: usize = 0x56;
/// The peer of all operations.
const PEER: u64 = 3;

/// An open endpoint; dropped, it closes.
struct Open(TestFid<Recorder>);

impl Open {
    /// Opens an endpoint with default flags of what is transmitted. Those of what is received are
    /// [`OpFlags::MULTI_RECV`].
    fn new(default: OpFlags) -> Result<Self> {
        let recorder = pin_init!(Recorder {
            note <- new_spinlock!(None),
        });
        let data = EndpointData::new(default.as_raw(), OpFlags::MULTI_RECV.as_raw());
        Ok(Self(TestFid::open_with(recorder, Context::NONE, data)?))
    }

    /// Takes the note of the last operation.
    fn take(&self) -> Result<Note> {
        let note = self.0.note.lock().take();
        note.ok_or(ENOENT)
    }
}

/// Calls a function of a table as C does.
macro_rules! call {
    ($open:expr, $table:ident.$slot:ident($($arg:expr),* $(,)?)) => {{
        let head = $open.0.head();
        // SAFETY: The endpoint is open, and the arguments are valid as long as the call needs them.
        unsafe {
            (*(*head).$table).$slot.map_or(-1, |function| function(head, $($arg),*))
        }
    }};
}

/// The data that the calls of a test transmit.
fn note(seen: Seen, local: usize) -> Note {
    Note {
        seen,
        local,
        target: matches!(seen, Seen::Receive | Seen::TaggedReceive(..) | Seen::Read),
        remote: None,
        addr: PEER,
        data: None,
        flags: OpFlags::NONE,
        inject: false,
        context: CONTEXT,
        threshold: None,
    }
}

#[kunit_tests(kfi_endpoint_calls)]
mod tests {
    use super::*;

    #[test]
    fn without_memory_a_post_is_to_be_repeated() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let mut bytes = [0u8; 8];
        let buf: *mut c_void = bytes.as_mut_ptr().cast();
        let desc = ptr::null_mut();
        let context: *mut c_void = ptr::without_provenance_mut(NO_MEMORY);
        let again = EAGAIN.to_errno() as isize;
        assert_eq!(call!(open, msg.send(buf, 8, desc, PEER, context)), again);
        assert_eq!(call!(open, msg.recv(buf, 8, desc, PEER, context)), again);
        Ok(())
    }

    #[test]
    fn messages() -> Result {
        let open = Open::new(OpFlags::COMPLETION)?;
        let mut bytes = [0u8; 24];
        let buf: *mut c_void = bytes.as_mut_ptr().cast();
        let desc = ptr::null_mut();
        let context: *mut c_void = ptr::without_provenance_mut(CONTEXT);
        let iov = [
            bindings::kvec {
                iov_base: buf,
                iov_len: 8,
            },
            bindings::kvec {
                iov_base: buf,
                iov_len: 4,
            },
        ];
        let send = Note {
            flags: OpFlags::COMPLETION,
            ..note(Seen::Send, 24)
        };
        let data = OpFlags::REMOTE_CQ_DATA;

        assert_eq!(call!(open, msg.send(buf, 24, desc, PEER, context)), 0);
        assert!(open.take()? == send);
        assert_eq!(
            call!(
                open,
                msg.sendv(iov.as_ptr(), ptr::null_mut(), 2, PEER, context)
            ),
            0
        );
        assert!(open.take()? == Note { local: 12, ..send });
        assert_eq!(
            call!(open, msg.senddata(buf, 24, desc, 9, PEER, context)),
            0
        );
        let with_data = Note {
            data: Some(9),
            flags: OpFlags::COMPLETION | data,
            ..send
        };
        assert!(open.take()? == with_data);
        assert_eq!(call!(open, msg.inject(buf, 24, PEER)), 0);
        let injected = Note {
            flags: OpFlags::INJECT,
            inject: true,
            context: 0,
            ..send
        };
        assert!(open.take()? == injected);
        assert_eq!(call!(open, msg.injectdata(buf, 24, 9, PEER)), 0);
        let injected_data = Note {
            data: Some(9),
            flags: OpFlags::INJECT | data,
            ..injected
        };
        assert!(open.take()? == injected_data);

        assert_eq!(call!(open, msg.recv(buf, 24, desc, PEER, context)), 0);
        let receive = Note {
            flags: OpFlags::MULTI_RECV,
            ..note(Seen::Receive, 24)
        };
        assert!(open.take()? == receive);

        let mut msg: bindings::kfi_msg = pin_init::zeroed();
        msg.type_ = bindings::KFI_KVEC;
        msg.__bindgen_anon_1.msg_iov = iov.as_ptr();
        msg.iov_count = 2;
        msg.addr = PEER;
        msg.context = context;
        msg.data = 9;
        assert_eq!(call!(open, msg.sendmsg(&raw const msg, 0)), 0);
        assert!(open.take()? == note(Seen::Send, 12));
        assert_eq!(call!(open, msg.sendmsg(&raw const msg, data.as_raw())), 0);
        let with_data = Note {
            data: Some(9),
            flags: data,
            ..note(Seen::Send, 12)
        };
        assert!(open.take()? == with_data);
        assert_eq!(call!(open, msg.recvmsg(&raw const msg, 0)), 0);
        assert!(open.take()? == note(Seen::Receive, 12));
        Ok(())
    }

    #[test]
    fn bad_messages() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let einval = isize::try_from(EINVAL.to_errno())?;
        let mut msg: bindings::kfi_msg = pin_init::zeroed();

        assert_eq!(call!(open, msg.sendmsg(ptr::null(), 0)), einval);
        assert_eq!(call!(open, msg.sendmsg(&raw const msg, 0)), einval);
        msg.type_ = bindings::KFI_SGL;
        assert_eq!(call!(open, msg.sendmsg(&raw const msg, 0)), 0);
        msg.iov_count = 1;
        assert_eq!(call!(open, msg.sendmsg(&raw const msg, 0)), einval);
        assert_eq!(call!(open, tagged.recvmsg(ptr::null(), 0)), einval);
        assert_eq!(call!(open, rma.readmsg(ptr::null(), 0)), einval);
        assert_eq!(call!(open, atomic.writemsg(ptr::null(), 0)), einval);
        Ok(())
    }

    #[test]
    fn tagged_messages() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let mut bytes = [0u8; 24];
        let buf: *mut c_void = bytes.as_mut_ptr().cast();
        let desc = ptr::null_mut();
        let context: *mut c_void = ptr::without_provenance_mut(CONTEXT);
        let send = note(Seen::TaggedSend(6), 24);

        assert_eq!(call!(open, tagged.send(buf, 24, desc, PEER, 6, context)), 0);
        assert!(open.take()? == send);
        assert_eq!(
            call!(open, tagged.recv(buf, 24, desc, PEER, 6, 1, context)),
            0
        );
        let receive = Note {
            flags: OpFlags::MULTI_RECV,
            ..note(Seen::TaggedReceive(6, 1), 24)
        };
        assert!(open.take()? == receive);
        assert_eq!(call!(open, tagged.injectdata(buf, 24, 9, PEER, 6)), 0);
        let injected = Note {
            data: Some(9),
            flags: OpFlags::INJECT | OpFlags::REMOTE_CQ_DATA,
            inject: true,
            context: 0,
            ..send
        };
        assert!(open.take()? == injected);

        let mut msg: bindings::kfi_msg_tagged = pin_init::zeroed();
        msg.type_ = bindings::KFI_BVEC;
        msg.addr = PEER;
        msg.tag = 6;
        msg.ignore = 1;
        msg.context = context;
        let peek = OpFlags::PEEK;
        assert_eq!(
            call!(open, tagged.recvmsg(&raw const msg, peek.as_raw())),
            0
        );
        let peeked = Note {
            flags: peek,
            ..note(Seen::TaggedReceive(6, 1), 0)
        };
        assert!(open.take()? == peeked);
        assert_eq!(call!(open, tagged.sendmsg(&raw const msg, 0)), 0);
        assert!(open.take()? == note(Seen::TaggedSend(6), 0));
        Ok(())
    }

    #[test]
    fn remote_memory() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let mut bytes = [0u8; 24];
        let buf: *mut c_void = bytes.as_mut_ptr().cast();
        let desc = ptr::null_mut();
        let context: *mut c_void = ptr::without_provenance_mut(CONTEXT);
        let remote = Some((16, 24, 5));
        let read = Note {
            remote,
            ..note(Seen::Read, 24)
        };
        let write = Note {
            remote,
            ..note(Seen::Write, 24)
        };

        assert_eq!(
            call!(open, rma.read(buf, 24, desc, PEER, 16, 5, context)),
            0
        );
        assert!(open.take()? == read);
        assert_eq!(
            call!(open, rma.write(buf, 24, desc, PEER, 16, 5, context)),
            0
        );
        assert!(open.take()? == write);
        assert_eq!(call!(open, rma.inject(buf, 24, PEER, 16, 5)), 0);
        let injected = Note {
            flags: OpFlags::INJECT,
            inject: true,
            context: 0,
            ..write
        };
        assert!(open.take()? == injected);

        let iov = bindings::kvec {
            iov_base: buf,
            iov_len: 24,
        };
        let rma_iov = bindings::kfi_rma_iov {
            addr: 16,
            len: 24,
            key: 5,
        };
        let mut msg: bindings::kfi_msg_rma = pin_init::zeroed();
        msg.type_ = bindings::KFI_KVEC;
        msg.__bindgen_anon_1.msg_iov = &raw const iov;
        msg.iov_count = 1;
        msg.addr = PEER;
        msg.rma_iov = &raw const rma_iov;
        msg.rma_iov_count = 1;
        msg.context = context;
        assert_eq!(call!(open, rma.readmsg(&raw const msg, 0)), 0);
        assert!(open.take()? == read);
        assert_eq!(call!(open, rma.writemsg(&raw const msg, 0)), 0);
        assert!(open.take()? == write);
        Ok(())
    }

    #[test]
    fn atomics() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let mut values = [0u64; 3];
        let buf: *mut c_void = values.as_mut_ptr().cast();
        let null: *mut c_void = ptr::null_mut();
        let context: *mut c_void = ptr::without_provenance_mut(CONTEXT);
        let u64s = bindings::KFI_UINT64;
        let sum = bindings::KFI_SUM;
        let read = bindings::KFI_ATOMIC_READ;
        let swap = bindings::KFI_CSWAP;
        let noted = |call, op, local| Note {
            remote: Some((16, 24, 5)),
            ..note(Seen::Atomic(call, u64s, op), local)
        };

        assert_eq!(
            call!(
                open,
                atomic.write(buf, 3, null, PEER, 16, 5, u64s, sum, context)
            ),
            0
        );
        assert!(open.take()? == noted(AtomicCall::Plain, sum, 24));
        assert_eq!(
            call!(
                open,
                atomic.readwrite(buf, 3, null, buf, null, PEER, 16, 5, u64s, sum, context)
            ),
            0
        );
        assert!(open.take()? == noted(AtomicCall::Fetch, sum, 24));
        // There are no operands.
        assert_eq!(
            call!(
                open,
                atomic.readwrite(null, 3, null, buf, null, PEER, 16, 5, u64s, read, context)
            ),
            0
        );
        assert!(open.take()? == noted(AtomicCall::Fetch, read, 0));
        assert_eq!(
            call!(
                open,
                atomic.compwrite(
                    buf, 3, null, buf, null, buf, null, PEER, 16, 5, u64s, swap, context
                )
            ),
            0
        );
        assert!(open.take()? == noted(AtomicCall::Compare, swap, 24));

        let unsupported = isize::try_from(EOPNOTSUPP.to_errno())?;
        for datatype in [bindings::KFI_DOUBLE, bindings::KFI_DATATYPE_LAST] {
            assert_eq!(
                call!(open, atomic.inject(buf, 1, PEER, 16, 5, datatype, sum)),
                unsupported
            );
        }
        let too_many = isize::try_from(EINVAL.to_errno())?;
        assert_eq!(
            call!(open, atomic.inject(buf, usize::MAX, PEER, 16, 5, u64s, sum)),
            too_many
        );
        let mut count = 0;
        let limit = call!(open, atomic.writevalid(u64s, sum, &raw mut count));
        assert_eq!(limit, EOPNOTSUPP.to_errno());
        Ok(())
    }

    #[test]
    fn triggered() -> Result {
        let open = Open::new(OpFlags::TRIGGER)?;
        let einval = isize::try_from(EINVAL.to_errno())?;
        let enosys = isize::try_from(ENOSYS.to_errno())?;
        let mut bytes = [0u8; 24];
        let buf: *mut c_void = bytes.as_mut_ptr().cast();
        let null = ptr::null_mut();
        // Nothing looks behind it.
        let mut counter: bindings::kfid_cntr = pin_init::zeroed();
        let mut triggered: bindings::kfi_triggered_context = pin_init::zeroed();
        triggered.event_type = bindings::KFI_TRIGGER_THRESHOLD;
        triggered.trigger.threshold = bindings::kfi_trigger_threshold {
            cntr: &raw mut counter,
            threshold: 4,
        };
        let context: *mut c_void = (&raw mut triggered).cast();

        assert_eq!(call!(open, msg.send(buf, 24, null, PEER, context)), 0);
        let send = Note {
            flags: OpFlags::TRIGGER,
            context: context.addr(),
            threshold: Some(4),
            ..note(Seen::Send, 24)
        };
        assert!(open.take()? == send);
        assert_eq!(call!(open, msg.send(buf, 24, null, PEER, null)), einval);
        assert_eq!(call!(open, msg.inject(buf, 24, PEER)), enosys);
        assert!(open.take().is_err());
        Ok(())
    }

    #[test]
    fn others() -> Result {
        let open = Open::new(OpFlags::NONE)?;
        let enoent = isize::try_from(ENOENT.to_errno())?;
        let head = open.0.head();
        // SAFETY: The endpoint is open, and all pointers are valid.
        unsafe {
            let cancel = (*(*head).ops).cancel.ok_or(EINVAL)?;
            assert_eq!(cancel(head.cast(), ptr::without_provenance_mut(CONTEXT)), 0);
            assert_eq!(cancel(head.cast(), ptr::null_mut()), enoent);

            let getname = (*(*head).cm).getname.ok_or(EINVAL)?;
            let mut name = [0u8; 8];
            let mut len = 8;
            assert_eq!(
                getname(head.cast(), name.as_mut_ptr().cast(), &raw mut len),
                0
            );
            assert_eq!(name, [1, 2, 3, 4, 5, 6, 7, 8]);

            let getopt = (*(*head).ops).getopt.ok_or(EINVAL)?;
            let mut value = 0usize;
            let mut get = |option: u32, len: &mut usize| {
                let option = c_int::try_from(option).unwrap_or(-1);
                let ret = getopt(head.cast(), 0, option, (&raw mut value).cast(), len);
                (ret, value)
            };
            let mut len = 8;
            assert_eq!(get(bindings::KFI_OPT_MIN_MULTI_RECV, &mut len), (0, 64));
            assert_eq!(get(bindings::KFI_OPT_CM_DATA_SIZE, &mut len), (0, 0));

            let setopt = (*(*head).ops).setopt.ok_or(EINVAL)?;
            let size = 1usize;
            let ret = setopt(head.cast(), 0, 0, (&raw const size).cast(), 4);
            assert_eq!(ret, Error::from(ETOOSMALL).to_errno());
            let ret = setopt(head.cast(), 0, 1, (&raw const size).cast(), 8);
            assert_eq!(ret, ENOPROTOOPT.to_errno());

            let connect = (*(*head).cm).connect.ok_or(EINVAL)?;
            let ret = connect(head, ptr::null(), ptr::null(), 0);
            assert_eq!(ret, ENOSYS.to_errno());
        }
        Ok(())
    }
}
