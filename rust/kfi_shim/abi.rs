// SPDX-License-Identifier: GPL-2.0

//! The structures and numbers of the interface, as declared in `include/uapi/kfi_shim.h`.

use kernel::transmute::{
    AsBytes,
    FromBytes, //
};

use crate::kfi::{
    bindings,
    linux::uaccess::Versioned, //
};

pub(crate) use bindings::{
    kfi_rx_attr as RxAttr,
    kfi_shim_atomic_valid as AtomicValid,
    kfi_shim_av_insert as AvInsert,
    kfi_shim_av_inserted as AvInserted,
    kfi_shim_av_lookup as AvLookup,
    kfi_shim_av_open as AvOpen,
    kfi_shim_av_remove as AvRemove,
    kfi_shim_av_straddr as AvStrAddr,
    kfi_shim_batch as Batch,
    kfi_shim_bind as Bind,
    kfi_shim_buffer as AllocBuffer,
    kfi_shim_cancel as Cancel,
    kfi_shim_cancel_work as CancelWork,
    kfi_shim_close as Close,
    kfi_shim_cm as Cm,
    kfi_shim_cntr as Cntr,
    kfi_shim_cntr_open as CntrOpen,
    kfi_shim_cntr_wait as CntrWait,
    kfi_shim_control as ControlRequest,
    kfi_shim_cq_entry as CqEntry,
    kfi_shim_cq_error as CqError,
    kfi_shim_cq_open as CqOpen,
    kfi_shim_cq_read as CqRead,
    kfi_shim_cq_signal as CqSignal,
    kfi_shim_domain as OpenDomain,
    kfi_shim_enable as Enable,
    kfi_shim_ep_alias as EpAlias,
    kfi_shim_ep_open as EpOpen,
    kfi_shim_eq_error as EqError,
    kfi_shim_eq_event as EqEvent,
    kfi_shim_eq_open as EqOpen,
    kfi_shim_fabric as OpenFabric,
    kfi_shim_flush_work as FlushWork,
    kfi_shim_getinfo as GetInfo,
    kfi_shim_handled as Handled,
    kfi_shim_info as ShimInfo,
    kfi_shim_info_text as InfoText,
    kfi_shim_join as Join,
    kfi_shim_mr as Mr,
    kfi_shim_mr_key as MrKey,
    kfi_shim_mr_refresh as MrRefresh,
    kfi_shim_name as EpName,
    kfi_shim_op as Op,
    kfi_shim_opt as EpOption,
    kfi_shim_poll as Poll,
    kfi_shim_poll_member as PollMember,
    kfi_shim_poll_open as PollOpen,
    kfi_shim_query_atomic as QueryAtomic,
    kfi_shim_raw_key as RawKey,
    kfi_shim_read_info as ReadInfo,
    kfi_shim_rma_segment as RmaSegmentAt,
    kfi_shim_rx_attr as ShimRxAttr,
    kfi_shim_rx_context as RxContext,
    kfi_shim_segment as SegmentAt,
    kfi_shim_strerror as StrError,
    kfi_shim_tostr as ToStr,
    kfi_shim_trywait as TryWait,
    kfi_shim_tx_attr as ShimTxAttr,
    kfi_shim_tx_context as TxContext,
    kfi_shim_version as Version,
    kfi_shim_wait as Wait,
    kfi_shim_wait_event as WaitEvent,
    kfi_shim_wait_fd as OpenWaitFd,
    kfi_shim_wait_open as WaitOpen,
    kfi_shim_work as Work,
    kfi_tx_attr as TxAttr,
    KFI_AV_COMPLETE,
    KFI_CONNECTED,
    KFI_CONNREQ,
    KFI_GETOPSFLAG,
    KFI_GETWAITOBJ,
    KFI_MR_COMPLETE,
    KFI_MR_VIRT_ADDR,
    KFI_OP_ATOMIC,
    KFI_OP_CNTR_ADD,
    KFI_OP_CNTR_SET,
    KFI_OP_COMPARE_ATOMIC,
    KFI_OP_FETCH_ATOMIC,
    KFI_OP_READ,
    KFI_OP_RECV,
    KFI_OP_SEND,
    KFI_OP_TRECV,
    KFI_OP_TSEND,
    KFI_OP_WRITE,
    KFI_SETOPSFLAG,
    KFI_SHIM_AV_MAX,
    KFI_SHIM_BATCH_MAX,
    KFI_SHIM_BATCH_STOP,
    KFI_SHIM_BUFFER_KMALLOC,
    KFI_SHIM_BUFFER_PAGES,
    KFI_SHIM_BUFFER_VMALLOC,
    KFI_SHIM_CNTR_NO_ATTR,
    KFI_SHIM_CQ_NO_SOURCE,
    KFI_SHIM_CQ_READ_MAX,
    KFI_SHIM_EP,
    KFI_SHIM_EVENT_MAX,
    KFI_SHIM_FORM_BV,
    KFI_SHIM_FORM_DATA,
    KFI_SHIM_FORM_INJECT,
    KFI_SHIM_FORM_INJECT_DATA,
    KFI_SHIM_FORM_MSG,
    KFI_SHIM_FORM_MSG_BV,
    KFI_SHIM_FORM_MSG_SGL,
    KFI_SHIM_FORM_PLAIN,
    KFI_SHIM_FORM_SGL,
    KFI_SHIM_FORM_V,
    KFI_SHIM_HANDLER,
    KFI_SHIM_INTERFACE,
    KFI_SHIM_IOC_SIZE_MASK,
    KFI_SHIM_NAME_MAX,
    KFI_SHIM_NO_ATTR,
    KFI_SHIM_OP_ATOMIC,
    KFI_SHIM_OP_COMPARE_ATOMIC,
    KFI_SHIM_OP_FETCH_ATOMIC,
    KFI_SHIM_OP_READ,
    KFI_SHIM_OP_RECV,
    KFI_SHIM_OP_SEND,
    KFI_SHIM_OP_TRECV,
    KFI_SHIM_OP_TRIGGERED,
    KFI_SHIM_OP_TSEND,
    KFI_SHIM_OP_WRITE,
    KFI_SHIM_PEP,
    KFI_SHIM_SEGMENTS_MAX,
    KFI_SHIM_SEP,
    KFI_SHIM_WAIT_NONBLOCK,
    KFI_SHIM_WORK_NO_OP,
    KFI_SHIM_WORK_NULL,
    KFI_SHIM_WORK_PREPARE,
    KFI_SHIM_WORK_RELEASE,
    KFI_SHIM_WORK_STALE,
    KFI_SHUTDOWN,
    KFI_SYNC_ERR, //
};

/// The numbers of the requests, `KFI_SHIM_IOC_...` of `requests.h`.
pub(crate) mod number {
    pub(crate) use crate::kfi::bindings::*;
}

/// Lets structures travel; the number is the size in bytes of the first version, which stays.
macro_rules! versioned {
    ($($name:ty = $size:literal;)*) => {$(
        // SAFETY: The structure consists of integers and arrays of integers.
        unsafe impl FromBytes for $name {}
        // SAFETY: As above, and without padding, which the C compiler refuses: see `abi_padding.c`.
        unsafe impl AsBytes for $name {}

        impl Versioned for $name {
            const FIRST_SIZE: usize = $size;
        }

        kernel::prelude::static_assert!(size_of::<$name>() >= $size);
    )*}
}

versioned! {
    AllocBuffer = 32;
    AtomicValid = 32;
    AvInsert = 80;
    AvInserted = 24;
    AvLookup = 88;
    AvOpen = 120;
    AvRemove = 32;
    AvStrAddr = 336;
    Batch = 24;
    Bind = 24;
    Cancel = 16;
    CancelWork = 24;
    Close = 8;
    Cm = 344;
    Cntr = 16;
    CntrOpen = 48;
    CntrWait = 24;
    ControlRequest = 24;
    CqEntry = 56;
    CqError = 80;
    CqOpen = 56;
    CqRead = 24;
    CqSignal = 8;
    Enable = 8;
    EpAlias = 24;
    EpName = 80;
    EpOpen = 48;
    EpOption = 88;
    EqError = 32;
    EqEvent = 160;
    EqOpen = 48;
    FlushWork = 16;
    GetInfo = 56;
    Handled = 24;
    InfoText = 24;
    Join = 96;
    Mr = 144;
    MrKey = 16;
    MrRefresh = 32;
    Op = 144;
    OpenDomain = 32;
    OpenFabric = 24;
    OpenWaitFd = 16;
    Poll = 24;
    PollMember = 24;
    PollOpen = 24;
    QueryAtomic = 40;
    RawKey = 296;
    ReadInfo = 24;
    RmaSegmentAt = 24;
    RxContext = 96;
    SegmentAt = 24;
    ShimInfo = 888;
    ShimRxAttr = 64;
    ShimTxAttr = 80;
    StrError = 272;
    ToStr = 32;
    TryWait = 24;
    TxContext = 112;
    Version = 8;
    Wait = 16;
    WaitEvent = 16;
    WaitOpen = 32;
    Work = 64;
}
