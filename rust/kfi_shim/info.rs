// SPDX-License-Identifier: GPL-2.0

//! Descriptions by value, as they travel to and from user space.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::{
    abi::{
        RxAttr,
        ShimInfo,
        ShimRxAttr,
        ShimTxAttr,
        TxAttr, //
    },
    kfi::{
        flags::Caps,
        info::{
            Info,
            InfoRef, //
        }, //
    }, //
};

/// Returns the text in an array; `EINVAL` if it does not end.
fn text(array: &[u8]) -> Result<&CStr> {
    CStr::from_bytes_until_nul(array).map_err(|_| EINVAL)
}

/// Returns the first `len` bytes; `EINVAL` if there are not as many.
fn bytes(array: &[u8], len: u32) -> Result<&[u8]> {
    array.get(..usize::try_from(len)?).ok_or(EINVAL)
}

/// Returns a number of user space as a size.
fn size(value: u64) -> Result<usize> {
    Ok(usize::try_from(value)?)
}

/// Makes attributes of transmit contexts of what user space wants.
pub(crate) fn tx_attr(from: &ShimTxAttr) -> Result<TxAttr> {
    if from.reserved != 0 {
        return Err(EINVAL);
    }
    Ok(TxAttr {
        caps: from.caps,
        mode: from.mode,
        op_flags: from.op_flags,
        msg_order: from.msg_order,
        comp_order: from.comp_order,
        inject_size: size(from.inject_size)?,
        size: size(from.size)?,
        iov_limit: size(from.iov_limit)?,
        rma_iov_limit: size(from.rma_iov_limit)?,
        tclass: from.tclass,
    })
}

/// Makes attributes of receive contexts of what user space wants.
pub(crate) fn rx_attr(from: &ShimRxAttr) -> Result<RxAttr> {
    Ok(RxAttr {
        caps: from.caps,
        mode: from.mode,
        op_flags: from.op_flags,
        msg_order: from.msg_order,
        comp_order: from.comp_order,
        total_buffered_recv: size(from.total_buffered_recv)?,
        size: size(from.size)?,
        iov_limit: size(from.iov_limit)?,
    })
}

/// Makes hints of what user space wants.
///
/// Open fabrics and domains are the caller's business.
pub(crate) fn hints(from: &ShimInfo) -> Result<Info> {
    if from.reserved != 0
        || from.tx_attr.reserved != 0
        || from.domain_attr.reserved != 0
        || from.fabric_attr.reserved != 0
    {
        return Err(EINVAL);
    }
    let mut info = Info::new()?;
    let mut to = info.first_mut();
    to.caps(Caps::from_raw(from.caps))
        .mode(from.mode)
        .addr_format(from.addr_format)
        .src_addr(bytes(&from.src_addr, from.src_addrlen)?)?
        .dest_addr(bytes(&from.dest_addr, from.dest_addrlen)?)?;

    *to.tx_attr()? = tx_attr(&from.tx_attr)?;
    *to.rx_attr()? = rx_attr(&from.rx_attr)?;

    to.ep_attr()?
        .type_(from.ep_attr.type_)
        .protocol(from.ep_attr.protocol)
        .protocol_version(from.ep_attr.protocol_version)
        .max_msg_size(size(from.ep_attr.max_msg_size)?)
        .msg_prefix_size(size(from.ep_attr.msg_prefix_size)?)
        .max_order_raw_size(size(from.ep_attr.max_order_raw_size)?)
        .max_order_war_size(size(from.ep_attr.max_order_war_size)?)
        .max_order_waw_size(size(from.ep_attr.max_order_waw_size)?)
        .mem_tag_format(from.ep_attr.mem_tag_format)
        .tx_ctx_cnt(size(from.ep_attr.tx_ctx_cnt)?)
        .rx_ctx_cnt(size(from.ep_attr.rx_ctx_cnt)?)
        .auth_key(bytes(&from.ep_attr.auth_key, from.ep_attr.auth_key_size)?)?;

    let domain = &from.domain_attr;
    let mut attr = to
        .domain_attr()?
        .threading(domain.threading)
        .control_progress(domain.control_progress)
        .data_progress(domain.data_progress)
        .resource_mgmt(domain.resource_mgmt)
        .av_type(domain.av_type)
        .mr_mode(domain.mr_mode.cast_signed())
        .mr_key_size(size(domain.mr_key_size)?)
        .cq_data_size(size(domain.cq_data_size)?)
        .cq_cnt(size(domain.cq_cnt)?)
        .ep_cnt(size(domain.ep_cnt)?)
        .tx_ctx_cnt(size(domain.tx_ctx_cnt)?)
        .rx_ctx_cnt(size(domain.rx_ctx_cnt)?)
        .max_ep_tx_ctx(size(domain.max_ep_tx_ctx)?)
        .max_ep_rx_ctx(size(domain.max_ep_rx_ctx)?)
        .max_ep_stx_ctx(size(domain.max_ep_stx_ctx)?)
        .max_ep_srx_ctx(size(domain.max_ep_srx_ctx)?)
        .cntr_cnt(size(domain.cntr_cnt)?)
        .mr_iov_limit(size(domain.mr_iov_limit)?)
        .caps(domain.caps)
        .mode(domain.mode)
        .max_err_data(size(domain.max_err_data)?)
        .mr_cnt(size(domain.mr_cnt)?)
        .tclass(domain.tclass)
        .auth_key(bytes(&domain.auth_key, domain.auth_key_size)?)?;
    let name = text(&domain.name)?;
    if !name.is_empty() {
        attr = attr.name(name)?;
    }
    let _ = attr;

    let mut attr = to
        .fabric_attr()?
        .prov_version(from.fabric_attr.prov_version)
        .api_version(from.fabric_attr.api_version);
    let name = text(&from.fabric_attr.name)?;
    if !name.is_empty() {
        attr = attr.name(name)?;
    }
    let name = text(&from.fabric_attr.prov_name)?;
    if !name.is_empty() {
        attr = attr.prov_name(name)?;
    }
    let _ = attr;
    Ok(info)
}

/// Copies what fits, the rest stays 0; returns how much that is.
fn put(to: &mut [u8], from: Option<&[u8]>) -> u32 {
    let from = from.unwrap_or(&[]);
    let len = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
    u32::try_from(len).unwrap_or(0)
}

/// Copies a text, cut so that it ends.
fn put_text(to: &mut [u8], from: Option<&CStr>) {
    if let Some((_, to)) = to.split_last_mut() {
        put(to, from.map(CStr::to_bytes));
    }
}

/// Describes an entry by value.
///
/// Open fabrics and domains are the caller's business.
pub(crate) fn by_value(from: InfoRef<'_>) -> Result<KBox<ShimInfo>> {
    let mut to = KBox::new(ShimInfo::default(), GFP_KERNEL_ACCOUNT)?;
    let info = from.get();
    to.caps = info.caps;
    to.mode = info.mode;
    to.addr_format = info.addr_format;
    to.src_addrlen = put(&mut to.src_addr, from.src_addr());
    to.dest_addrlen = put(&mut to.dest_addr, from.dest_addr());

    if let Some(attr) = from.tx_attr() {
        let to = &mut to.tx_attr;
        to.caps = attr.caps;
        to.mode = attr.mode;
        to.op_flags = attr.op_flags;
        to.msg_order = attr.msg_order;
        to.comp_order = attr.comp_order;
        to.inject_size = attr.inject_size as u64;
        to.size = attr.size as u64;
        to.iov_limit = attr.iov_limit as u64;
        to.rma_iov_limit = attr.rma_iov_limit as u64;
        to.tclass = attr.tclass;
    }
    if let Some(attr) = from.rx_attr() {
        let to = &mut to.rx_attr;
        to.caps = attr.caps;
        to.mode = attr.mode;
        to.op_flags = attr.op_flags;
        to.msg_order = attr.msg_order;
        to.comp_order = attr.comp_order;
        to.total_buffered_recv = attr.total_buffered_recv as u64;
        to.size = attr.size as u64;
        to.iov_limit = attr.iov_limit as u64;
    }
    if let Some(attr) = from.ep_attr() {
        let to = &mut to.ep_attr;
        to.type_ = attr.type_;
        to.protocol = attr.protocol;
        to.protocol_version = attr.protocol_version;
        to.max_msg_size = attr.max_msg_size as u64;
        to.msg_prefix_size = attr.msg_prefix_size as u64;
        to.max_order_raw_size = attr.max_order_raw_size as u64;
        to.max_order_war_size = attr.max_order_war_size as u64;
        to.max_order_waw_size = attr.max_order_waw_size as u64;
        to.mem_tag_format = attr.mem_tag_format;
        to.tx_ctx_cnt = attr.tx_ctx_cnt as u64;
        to.rx_ctx_cnt = attr.rx_ctx_cnt as u64;
        to.auth_key_size = put(&mut to.auth_key, from.ep_auth_key());
    }
    if let Some(attr) = from.domain_attr() {
        let to = &mut to.domain_attr;
        to.threading = attr.threading;
        to.control_progress = attr.control_progress;
        to.data_progress = attr.data_progress;
        to.resource_mgmt = attr.resource_mgmt;
        to.av_type = attr.av_type;
        to.mr_mode = attr.mr_mode.cast_unsigned();
        to.tclass = attr.tclass;
        to.mr_key_size = attr.mr_key_size as u64;
        to.cq_data_size = attr.cq_data_size as u64;
        to.cq_cnt = attr.cq_cnt as u64;
        to.ep_cnt = attr.ep_cnt as u64;
        to.tx_ctx_cnt = attr.tx_ctx_cnt as u64;
        to.rx_ctx_cnt = attr.rx_ctx_cnt as u64;
        to.max_ep_tx_ctx = attr.max_ep_tx_ctx as u64;
        to.max_ep_rx_ctx = attr.max_ep_rx_ctx as u64;
        to.max_ep_stx_ctx = attr.max_ep_stx_ctx as u64;
        to.max_ep_srx_ctx = attr.max_ep_srx_ctx as u64;
        to.cntr_cnt = attr.cntr_cnt as u64;
        to.mr_iov_limit = attr.mr_iov_limit as u64;
        to.caps = attr.caps;
        to.mode = attr.mode;
        to.max_err_data = attr.max_err_data as u64;
        to.mr_cnt = attr.mr_cnt as u64;
        to.auth_key_size = put(&mut to.auth_key, from.domain_auth_key());
        put_text(&mut to.name, from.domain_name());
    }
    if let Some(attr) = from.fabric_attr() {
        let to = &mut to.fabric_attr;
        to.prov_version = attr.prov_version;
        to.api_version = attr.api_version;
        put_text(&mut to.name, from.fabric_name());
        put_text(&mut to.prov_name, from.prov_name());
    }
    Ok(to)
}
