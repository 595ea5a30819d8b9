// SPDX-License-Identifier: GPL-2.0

//! The structures and numbers of the interface, as declared in `include/uapi/kfi_shim.h`.

use kernel::transmute::{
    AsBytes,
    FromBytes, //
};

use crate::kfi::{
    bindings,
    uaccess::Versioned, //
};

pub(crate) use bindings::{
    kfi_cq_err_entry as CqErrEntry,
    kfi_eq_err_entry as EqErrEntry,
    kfi_shim_close as Close,
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
    kfi_shim_eq_error as EqError,
    kfi_shim_eq_event as EqEvent,
    kfi_shim_eq_open as EqOpen,
    kfi_shim_fabric as OpenFabric,
    kfi_shim_getinfo as GetInfo,
    kfi_shim_info as ShimInfo,
    kfi_shim_poll as Poll,
    kfi_shim_poll_member as PollMember,
    kfi_shim_poll_open as PollOpen,
    kfi_shim_read_info as ReadInfo,
    kfi_shim_trywait as TryWait,
    kfi_shim_version as Version,
    kfi_shim_wait as Wait,
    kfi_shim_wait_event as WaitEvent,
    kfi_shim_wait_fd as OpenWaitFd,
    kfi_shim_wait_open as WaitOpen,
    KFI_GETOPSFLAG,
    KFI_GETWAITOBJ,
    KFI_SETOPSFLAG,
    KFI_SHIM_CNTR_NO_ATTR,
    KFI_SHIM_CQ_READ_MAX,
    KFI_SHIM_EVENT_MAX,
    KFI_SHIM_INTERFACE,
    KFI_SHIM_IOC_CLOSE,
    KFI_SHIM_IOC_CNTR_ADD,
    KFI_SHIM_IOC_CNTR_ADDERR,
    KFI_SHIM_IOC_CNTR_OPEN,
    KFI_SHIM_IOC_CNTR_READ,
    KFI_SHIM_IOC_CNTR_READERR,
    KFI_SHIM_IOC_CNTR_SET,
    KFI_SHIM_IOC_CNTR_SETERR,
    KFI_SHIM_IOC_CNTR_WAIT,
    KFI_SHIM_IOC_CONTROL,
    KFI_SHIM_IOC_CQ_OPEN,
    KFI_SHIM_IOC_CQ_READ,
    KFI_SHIM_IOC_CQ_READERR,
    KFI_SHIM_IOC_CQ_SIGNAL,
    KFI_SHIM_IOC_CQ_SREAD,
    KFI_SHIM_IOC_CQ_WRITE,
    KFI_SHIM_IOC_DOMAIN,
    KFI_SHIM_IOC_EQ_OPEN,
    KFI_SHIM_IOC_EQ_READ,
    KFI_SHIM_IOC_EQ_READERR,
    KFI_SHIM_IOC_EQ_SREAD,
    KFI_SHIM_IOC_EQ_WRITE,
    KFI_SHIM_IOC_EQ_WRITE_ERROR,
    KFI_SHIM_IOC_FABRIC,
    KFI_SHIM_IOC_GETINFO,
    KFI_SHIM_IOC_POLL,
    KFI_SHIM_IOC_POLL_ADD,
    KFI_SHIM_IOC_POLL_DEL,
    KFI_SHIM_IOC_POLL_OPEN,
    KFI_SHIM_IOC_READ_INFO,
    KFI_SHIM_IOC_SIZE_MASK,
    KFI_SHIM_IOC_TRYWAIT,
    KFI_SHIM_IOC_VERSION,
    KFI_SHIM_IOC_WAIT,
    KFI_SHIM_IOC_WAIT_FD,
    KFI_SHIM_IOC_WAIT_OPEN,
    KFI_SHIM_NAME_MAX,
    KFI_SHIM_NO_ATTR,
    KFI_SHIM_WAIT_NONBLOCK, //
};

/// Lets structures travel; the number is the size in bytes of the first version, which stays.
macro_rules! versioned {
    ($($name:ty = $size:literal;)*) => {$(
        // SAFETY: The structure consists of integers and arrays of integers.
        unsafe impl FromBytes for $name {}
        // SAFETY: As above, and the compiler has laid it out without padding: it has as many bytes
        // as its members, which `include/uapi/kfi_shim.h` sees to.
        unsafe impl AsBytes for $name {}

        impl Versioned for $name {
            const FIRST_SIZE: usize = $size;
        }

        kernel::prelude::static_assert!(size_of::<$name>() >= $size);
    )*}
}

versioned! {
    Close = 8;
    Cntr = 16;
    CntrOpen = 48;
    CntrWait = 24;
    ControlRequest = 24;
    CqEntry = 56;
    CqError = 80;
    CqOpen = 56;
    CqRead = 24;
    CqSignal = 8;
    EqError = 32;
    EqEvent = 160;
    EqOpen = 48;
    GetInfo = 56;
    OpenDomain = 32;
    OpenFabric = 24;
    OpenWaitFd = 16;
    Poll = 24;
    PollMember = 24;
    PollOpen = 24;
    ReadInfo = 24;
    ShimInfo = 888;
    TryWait = 24;
    Version = 8;
    Wait = 16;
    WaitEvent = 16;
    WaitOpen = 32;
}
