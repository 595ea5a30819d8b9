// SPDX-License-Identifier: GPL-2.0

//! Messages (`struct kfi_ops_msg`).

use core::ptr;
use kernel::prelude::*;

use super::{
    post,
    post_callbacks,
    EndpointOps,
    Form, //
};
use crate::kfi::{
    bindings,
    memory::{
        Local,
        SourceBuffers,
        TargetBuffers, //
    },
    provider::{
        Kind,
        Operation, //
    }, //
};

/// Returns the table.
pub(super) const fn table<T: EndpointOps>() -> bindings::kfi_ops_msg {
    bindings::kfi_ops_msg {
        size: size_of::<bindings::kfi_ops_msg>(),
        recv: Some(recv_callback::<T>),
        recvv: Some(recvv_callback::<T>),
        recvbv: Some(recvbv_callback::<T>),
        recvmsg: Some(recvmsg_callback::<T>),
        send: Some(send_callback::<T>),
        sendv: Some(sendv_callback::<T>),
        sendbv: Some(sendbv_callback::<T>),
        sendmsg: Some(sendmsg_callback::<T>),
        inject: Some(inject_callback::<T>),
        senddata: Some(senddata_callback::<T>),
        injectdata: Some(injectdata_callback::<T>),
        recvsgl: Some(recvsgl_callback::<T>),
        sendsgl: Some(sendsgl_callback::<T>),
    }
}

impl<'a> Operation<'a> {
    /// Reads a message from C.
    ///
    /// # Safety
    ///
    /// `msg` must be null or valid during `'a`, and what it points to as [`Local`] says.
    pub(in crate::kfi::provider) unsafe fn from_message(
        msg: *const bindings::kfi_msg,
        flags: u64,
        receive: bool,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let msg = unsafe { msg.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: All members are pointers, of which the type says what they point to.
        let local = unsafe {
            Local::of_type(
                receive,
                msg.type_,
                msg.__bindgen_anon_1.msg_iov.cast(),
                msg.iov_count,
            )
        }?;
        let kind = if receive { Kind::Receive } else { Kind::Send };
        Ok(Self::new(kind, local, msg.addr, msg.context).with_flags(flags, msg.data))
    }
}

post_callbacks! {
    /// Receives to a buffer.
    recv_callback(
        buf: *mut c_void,
        len: usize,
        _desc: *mut c_void,
        src_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::one(buf, len)]
        Ok(Operation::new(Kind::Receive, local, src_addr, context));

    /// Receives to virtual ranges.
    recvv_callback(
        iov: *const bindings::kvec,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::kvec(iov, count)]
        Ok(Operation::new(Kind::Receive, local, src_addr, context));

    /// Receives to pages.
    recvbv_callback(
        biov: *const bindings::bio_vec,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::bvec(biov, count)]
        Ok(Operation::new(Kind::Receive, local, src_addr, context));

    /// Receives to a scatterlist.
    recvsgl_callback(
        sgl: *const bindings::scatterlist,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::sgl(sgl, count)]
        Ok(Operation::new(Kind::Receive, local, src_addr, context));

    /// Receives with flags.
    recvmsg_callback(
        msg: *const bindings::kfi_msg,
        flags: u64,
    ) => Message,
        [operation = Operation::from_message(msg, flags, true)]
        operation;

    /// Sends a buffer.
    send_callback(
        buf: *const c_void,
        len: usize,
        _desc: *mut c_void,
        dest_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::one(buf, len)]
        Ok(Operation::new(Kind::Send, local, dest_addr, context));

    /// Sends virtual ranges.
    sendv_callback(
        iov: *const bindings::kvec,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::kvec(iov, count)]
        Ok(Operation::new(Kind::Send, local, dest_addr, context));

    /// Sends pages.
    sendbv_callback(
        biov: *const bindings::bio_vec,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::bvec(biov, count)]
        Ok(Operation::new(Kind::Send, local, dest_addr, context));

    /// Sends a scatterlist.
    sendsgl_callback(
        sgl: *const bindings::scatterlist,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::sgl(sgl, count)]
        Ok(Operation::new(Kind::Send, local, dest_addr, context));

    /// Sends with flags.
    sendmsg_callback(
        msg: *const bindings::kfi_msg,
        flags: u64,
    ) => Message,
        [operation = Operation::from_message(msg, flags, false)]
        operation;

    /// Sends a buffer that is free at once.
    inject_callback(
        buf: *const c_void,
        len: usize,
        dest_addr: bindings::kfi_addr_t,
    ) => Inject,
        [local = SourceBuffers::one(buf, len)]
        {
            Ok(Operation::new(Kind::Send, local, dest_addr, ptr::null_mut()))
        };

    /// Sends a buffer and data.
    senddata_callback(
        buf: *const c_void,
        len: usize,
        _desc: *mut c_void,
        data: u64,
        dest_addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::one(buf, len)]
        {
            Ok(Operation::new(Kind::Send, local, dest_addr, context).with_data(data))
        };

    /// Sends a buffer that is free at once and data.
    injectdata_callback(
        buf: *const c_void,
        len: usize,
        data: u64,
        dest_addr: bindings::kfi_addr_t,
    ) => Inject,
        [local = SourceBuffers::one(buf, len)]
        {
            Ok(Operation::new(Kind::Send, local, dest_addr, ptr::null_mut()).with_data(data))
        };
}
