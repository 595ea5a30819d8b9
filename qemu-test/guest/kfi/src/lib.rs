// SPDX-License-Identifier: GPL-2.0

//! Client library of `/dev/kfi`, the character device of kfabric.
//!
//! kfabric is the kernel twin of libfabric; the device lets user space drive
//! any of its providers. An open device is a [`Session`]. It is asked what
//! there is with [`Session::getinfo`], and from the answer come, one from the
//! other, a [`Fabric`], a [`Domain`] and a [`Counter`]:
//!
//! ```no_run
//! use kfi::{CntrAttr, Query, Session, WaitObj};
//!
//! # fn main() -> kfi::Result<()> {
//! let session = Session::open()?;
//! let info = session.getinfo(&Query::new())?;
//! let domain = info.fabric(0)?.domain(&info, 0)?;
//! let counter = domain.counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?;
//!
//! counter.add(3)?;
//! counter.wait(3, None)?;
//! assert_eq!(counter.read()?, 3);
//! # Ok(())
//! # }
//! ```
//!
//! A [`WaitSet`] and an [`EventQueue`] come from a fabric, a [`CompletionQueue`]
//! and a [`PollSet`] from a domain. So do an [`Endpoint`], an [`AddressVector`] and
//! a [`MemoryRegion`]; an [`Operation`] on an endpoint, or a deferred [`Work`], uses
//! memory of a [`Buffer`].
//!
//! Objects close themselves when they are dropped, dependents first: an object
//! keeps what it was opened on alive. `close` does it at once and tells the
//! result.
//!
//! [`Error`] keeps apart what the system call said and what kfabric said, as
//! the interface does. [`uapi`] has the interface itself, for those who test it.

mod address_vector;
mod attr;
mod buffer;
mod completion_queue;
mod deferred_work;
mod endpoint;
mod errno;
mod event_queue;
mod flags;
mod info;
mod memory_region;
mod object;
mod operation;
mod poll_set;
mod session;
mod sys;
mod wait_fd;
mod wait_set;

pub use address_vector::{AddressVector, AvAttr, Inserted, ADDR_NOTAVAIL};
pub use attr::{CntrAttr, WaitObj};
pub use buffer::{Buffer, BufferKind, Segment};
pub use completion_queue::{Completion, CompletionError, CompletionQueue, CqAttr, CqFormat};
pub use deferred_work::{OpType, Work, WorkId};
pub use endpoint::{Endpoint, EpInfo};
pub use errno::{os_name, Error, KfiErrno, Result};
pub use event_queue::{EqAttr, Event, EventError, EventQueue};
pub use flags::{
    bits, AddrFormat, AvType, Caps, EpType, GetinfoFlags, Mode, MrMode, OpFlags, Order, Progress,
    Protocol, ResourceMgmt, Tclass, Threading,
};
pub use info::{ApiVersion, Bytes, DomainAttr, EpAttr, FabricAttr, InfoEntry, RxAttr, TxAttr};
pub use memory_region::{MemoryRegion, MrAttr};
pub use object::{Counter, Domain, Fabric, Handle, InfoList};
pub use operation::{Form, Kind, Operation};
pub use poll_set::{PollMember, PollSet};
pub use session::{Query, Session, Version, DEVICE};
pub use wait_fd::{WaitEvent, WaitFd};
pub use wait_set::{WaitSet, WaitSetAttr};

/// The ioctl interface as the C headers define it.
pub mod uapi {
    pub use crate::sys::bindings::*;
    pub use crate::sys::request::REQUESTS;
    pub use crate::sys::{request, writes_elsewhere, Declared, Request};
}
