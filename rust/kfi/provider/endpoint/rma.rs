// SPDX-License-Identifier: GPL-2.0

//! Remote memory access (`struct kfi_ops_rma`).

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
        RemoteRanges,
        SourceBuffers,
        TargetBuffers, //
    },
    provider::{
        Kind,
        Operation, //
    }, //
};

/// Returns the table.
pub(super) const fn table<T: EndpointOps>() -> bindings::kfi_ops_rma {
    bindings::kfi_ops_rma {
        size: size_of::<bindings::kfi_ops_rma>(),
        read: Some(read_callback::<T>),
        readv: Some(readv_callback::<T>),
        readbv: Some(readbv_callback::<T>),
        readmsg: Some(readmsg_callback::<T>),
        write: Some(write_callback::<T>),
        writev: Some(writev_callback::<T>),
        writebv: Some(writebv_callback::<T>),
        writemsg: Some(writemsg_callback::<T>),
        inject: Some(inject_callback::<T>),
        writedata: Some(writedata_callback::<T>),
        injectdata: Some(injectdata_callback::<T>),
        readsgl: Some(readsgl_callback::<T>),
        writesgl: Some(writesgl_callback::<T>),
    }
}

impl<'a> Operation<'a> {
    /// Reads a remote memory access from C.
    ///
    /// # Safety
    ///
    /// `msg` must be null or valid during `'a`, and what it points to as [`Local`] and
    /// [`RemoteRanges`] say.
    pub(in crate::kfi::provider) unsafe fn from_rma(
        msg: *const bindings::kfi_msg_rma,
        flags: u64,
        write: bool,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let msg = unsafe { msg.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: All members are pointers, of which the type says what they point to.
        let local = unsafe {
            Local::of_type(
                !write,
                msg.type_,
                msg.__bindgen_anon_1.msg_iov.cast(),
                msg.iov_count,
            )
        }?;
        // SAFETY: By the safety requirements.
        let remote = unsafe { RemoteRanges::rma(msg.rma_iov, msg.rma_iov_count) };
        let kind = if write {
            Kind::Write { remote }
        } else {
            Kind::Read { remote }
        };
        Ok(Self::new(kind, local, msg.addr, msg.context).with_flags(flags, msg.data))
    }
}

/// A read of one range, as long as the local memory.
fn read(
    local: TargetBuffers<'_>,
    peer: bindings::kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> Result<Operation<'_>> {
    let remote = RemoteRanges::one(addr, local.len()?, key);
    Ok(Operation::new(Kind::Read { remote }, local, peer, context))
}

/// A write of one range, as long as the local memory.
fn write(
    local: SourceBuffers<'_>,
    peer: bindings::kfi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> Result<Operation<'_>> {
    let remote = RemoteRanges::one(addr, local.len()?, key);
    Ok(Operation::new(Kind::Write { remote }, local, peer, context))
}

post_callbacks! {
    /// Reads to a buffer.
    read_callback(
        buf: *mut c_void,
        len: usize,
        _desc: *mut c_void,
        src_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::one(buf, len)]
        read(local, src_addr, addr, key, context);

    /// Reads to virtual ranges.
    readv_callback(
        iov: *const bindings::kvec,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::kvec(iov, count)]
        read(local, src_addr, addr, key, context);

    /// Reads to pages.
    readbv_callback(
        biov: *const bindings::bio_vec,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::bvec(biov, count)]
        read(local, src_addr, addr, key, context);

    /// Reads to a scatterlist.
    readsgl_callback(
        sgl: *const bindings::scatterlist,
        _desc: *mut *mut c_void,
        count: usize,
        src_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = TargetBuffers::sgl(sgl, count)]
        read(local, src_addr, addr, key, context);

    /// Reads with flags.
    readmsg_callback(
        msg: *const bindings::kfi_msg_rma,
        flags: u64,
    ) => Message,
        [operation = Operation::from_rma(msg, flags, false)]
        operation;

    /// Writes a buffer.
    write_callback(
        buf: *const c_void,
        len: usize,
        _desc: *mut c_void,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::one(buf, len)]
        write(local, dest_addr, addr, key, context);

    /// Writes virtual ranges.
    writev_callback(
        iov: *const bindings::kvec,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::kvec(iov, count)]
        write(local, dest_addr, addr, key, context);

    /// Writes pages.
    writebv_callback(
        biov: *const bindings::bio_vec,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::bvec(biov, count)]
        write(local, dest_addr, addr, key, context);

    /// Writes a scatterlist.
    writesgl_callback(
        sgl: *const bindings::scatterlist,
        _desc: *mut *mut c_void,
        count: usize,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::sgl(sgl, count)]
        write(local, dest_addr, addr, key, context);

    /// Writes with flags.
    writemsg_callback(
        msg: *const bindings::kfi_msg_rma,
        flags: u64,
    ) => Message,
        [operation = Operation::from_rma(msg, flags, true)]
        operation;

    /// Writes a buffer that is free at once.
    inject_callback(
        buf: *const c_void,
        len: usize,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
    ) => Inject,
        [local = SourceBuffers::one(buf, len)]
        write(local, dest_addr, addr, key, ptr::null_mut());

    /// Writes a buffer and data.
    writedata_callback(
        buf: *const c_void,
        len: usize,
        _desc: *mut c_void,
        data: u64,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        context: *mut c_void,
    ) => Plain,
        [local = SourceBuffers::one(buf, len)]
        {
            let operation = write(local, dest_addr, addr, key, context)?;
            Ok(operation.with_data(data))
        };

    /// Writes a buffer that is free at once and data.
    injectdata_callback(
        buf: *const c_void,
        len: usize,
        data: u64,
        dest_addr: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
    ) => Inject,
        [local = SourceBuffers::one(buf, len)]
        {
            Ok(write(local, dest_addr, addr, key, ptr::null_mut())?.with_data(data))
        };
}
