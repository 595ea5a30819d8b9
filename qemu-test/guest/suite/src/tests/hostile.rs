// SPDX-License-Identifier: GPL-2.0

//! Requests that no sane program makes. Each has an answer, does nothing, and
//! leaves no trace in the kernel's log.

use std::ffi::CString;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use kfi::uapi::{self, request};
use kfi::{
    Buffer, BufferKind, CntrAttr, CompletionError, CompletionQueue, Counter, CqAttr, EqAttr, Error,
    EventQueue, Handle, KfiErrno, PollSet, Session, WaitObj, WaitSet, WaitSetAttr,
};
use kfi_host::memory::Guarded;
use kfi_host::thread;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rustix::io::Errno;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::raw::{self, BAD_ADDRESSES, MAX_SIZE};
use crate::rig::{expect_fabric, expect_os, in_threads, is_busy, pin, Rig};
use crate::tests::module::Modules;
use crate::{check, check_eq, tests};

tests! {
    "hostile" parallel;
    "unknown-requests" ["kfi_shim.h"] unknown_requests;
    "short-structures" ["kfi_shim.h"] short_structures;
    "long-structures" ["kfi_shim.h"] long_structures;
    "reserved-members" ["kfi_shim.h"] reserved_members;
    "unknown-flags" ["kfi_shim.h"] unknown_flags;
    "bad-handles" ["kfi_shim.h"] bad_handles;
    "wrong-classes" ["kfi_shim.h"] wrong_classes;
    "bad-indices" ["kfi_shim.h"] bad_indices;
    "bad-argument-addresses" ["kfi_shim.h"] bad_argument_addresses;
    "read-only-argument-opens-nothing" ["kfi_shim.h"] read_only_opens_nothing;
    "read-only-argument-changes-nothing" ["kfi_shim.h"] read_only_changes_nothing;
    "read-only-argument-takes-nothing" ["kfi_shim.h"] read_only_takes_nothing;
    "getinfo-texts" ["kfi_shim.h"] getinfo_texts;
    "getinfo-hints" ["kfi_shim.h"] getinfo_hints;
    "getinfo-hints-sizes" ["kfi_shim.h"] getinfo_hints_sizes;
    "read-info-buffers" ["kfi_shim.h"] read_info_buffers;
    "other-system-calls" ["kfi_shim.h"] other_system_calls;
    alone "close-beside-use" ["kfi_shim.h R-CLOSE-2"] close_beside_use;
    alone "as-many-objects-as-it-takes" ["kfi_shim.h"] object_limit;
    "requests-about-transfers" ["kfi_shim.h"] transfers;
    "huge-counts" ["kfi_shim.h"] huge_counts;
    "fuzz" ["kfi_shim.h"] fuzz;
    alone "fuzz-two-threads" ["kfi_shim.h"] fuzz_two_threads;
}

/// A rig with an object of each class, to make good requests with.
struct Scene {
    poll_set: PollSet,
    counter: Arc<Counter>,
    cq: CompletionQueue,
    eq: EventQueue,
    wait_set: WaitSet,
    buffer: Buffer,
    rig: Rig,
}

impl Scene {
    fn new(env: &Env) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        let queue = WaitObj::QUEUE;
        Ok(Self {
            poll_set: rig.domain.poll_set()?,
            counter: rig.counter()?,
            cq: rig
                .domain
                .completion_queue(&CqAttr::new().wait_obj(queue))?,
            eq: rig.fabric.event_queue(&EqAttr::new().wait_obj(queue))?,
            buffer: rig.session.buffer(BufferKind::VMALLOC, 10_000)?,
            wait_set: rig.fabric.wait_set(&WaitSetAttr::new().wait_obj(queue))?,
            rig,
        })
    }

    fn session(&self) -> &Session {
        &self.rig.session
    }

    /// A handle of each class.
    fn handle(&self, class: Class) -> Handle {
        match class {
            Class::Info => self.rig.info.handle(),
            Class::Buffer => self.buffer.handle(),
            Class::Fabric => self.rig.fabric.handle(),
            Class::Domain => self.rig.domain.handle(),
            Class::Counter => self.counter.handle(),
            Class::WaitSet => self.wait_set.handle(),
            Class::PollSet => self.poll_set.handle(),
            Class::CompletionQueue => self.cq.handle(),
            Class::EventQueue => self.eq.handle(),
        }
    }

    /// Nothing has been changed, and nothing else is open.
    fn end_untouched(self) -> Outcome {
        check_eq!((self.counter.read()?, self.counter.read_err()?), (0, 0));
        check_eq!(self.counter.ops_flags()?, 0);
        // `POLL_ADD` and `POLL_DEL` may have made it a member.
        let _ = self.poll_set.del_handle(self.counter.handle(), 0);
        self.poll_set.close().map_err(|(_, error)| error)?;
        drop(self.counter);
        expect_fabric(self.cq.read(1), KfiErrno::EAGAIN)?;
        self.cq.close().map_err(|(_, error)| error)?;
        expect_fabric(self.eq.read(128), KfiErrno::EAGAIN)?;
        self.eq.close().map_err(|(_, error)| error)?;
        self.wait_set.close().map_err(|(_, error)| error)?;
        self.rig.close()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    Info,
    Buffer,
    Fabric,
    Domain,
    Counter,
    WaitSet,
    PollSet,
    CompletionQueue,
    EventQueue,
}

const CLASSES: [Class; 9] = [
    Class::Info,
    Class::Buffer,
    Class::Fabric,
    Class::Domain,
    Class::Counter,
    Class::WaitSet,
    Class::PollSet,
    Class::CompletionQueue,
    Class::EventQueue,
];

/// All that are objects of kfabric.
const OBJECTS: &[Class] = CLASSES.split_at(2).1;

/// A handle in an argument.
struct HandleAt {
    offset: usize,
    /// The classes that are right there.
    classes: &'static [Class],
    /// Whether 0 is none rather than a bad one.
    optional: bool,
}

const fn handle_at(offset: usize, classes: &'static [Class]) -> HandleAt {
    HandleAt {
        offset,
        classes,
        optional: false,
    }
}

/// A request, and what its argument looks like.
struct Form {
    name: &'static str,
    number: u32,
    /// Makes an argument with which it succeeds.
    make: fn(&Scene) -> Result<Vec<u8>, Stop>,
    handles: &'static [HandleAt],
    /// Where the reserved member is.
    reserved: Option<usize>,
    /// Where the result is.
    result: Option<usize>,
}

impl Form {
    fn size(&self) -> usize {
        raw::size_of_request(self.number)
    }

    /// A good request; the system call and kfabric must accept it.
    fn succeed(&self, session: &Session, number: u32, argument: &mut [u8]) -> Outcome {
        if let Err(errno) = raw::bytes(session, number, argument) {
            let error = Error::Os(errno);
            return Err(Stop::fail(format!(
                "{} of {} bytes: {error}",
                self.name,
                argument.len()
            )));
        }
        if let Some(offset) = self.result {
            let result = read_u32(argument, offset) as i32;
            check_eq!(result, 0, "result of {}", self.name);
        }
        Ok(())
    }

    /// A bad request; the system call must fail so.
    #[track_caller]
    fn fail(&self, session: &Session, number: u32, argument: &mut [u8], errno: Errno) -> Outcome {
        let result = raw::bytes(session, number, argument);
        expect_os(result.map_err(Error::Os), errno).map_err(|stop| within(stop, self.name))
    }
}

/// Says in what a check has failed.
fn within(stop: Stop, what: impl std::fmt::Display) -> Stop {
    match stop {
        Stop::Fail(why) => Stop::Fail(format!("{why} ({what})")),
        skip @ Stop::Skip(_) => skip,
    }
}

fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    let bytes = &bytes[offset..offset + 4];
    u32::from_ne_bytes(bytes.try_into().expect("4 bytes"))
}

fn write_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
}

fn write_u64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
}

/// The bytes of an argument.
#[allow(clippy::unnecessary_wraps)] // The shape of `Form::make`.
fn bytes_of<T: IntoBytes + Immutable>(argument: T) -> Result<Vec<u8>, Stop> {
    Ok(argument.as_bytes().to_vec())
}

/// The form of the requests on a counter with one value.
macro_rules! counter_form {
    ($name:ident) => {
        Form {
            name: stringify!($name),
            number: request::$name.number(),
            make: |scene| {
                bytes_of(uapi::kfi_shim_cntr {
                    cntr: scene.counter.handle(),
                    ..FromZeros::new_zeroed()
                })
            },
            handles: const {
                &[handle_at(
                    offset_of!(uapi::kfi_shim_cntr, cntr),
                    &[Class::Counter],
                )]
            },
            reserved: None,
            result: Some(offset_of!(uapi::kfi_shim_cntr, result)),
        }
    };
}

/// Every request. None of them changes the objects as it is made here, other than
/// to make the counter a member of the poll set.
static FORMS: [Form; 50] = [
    Form {
        name: "VERSION",
        number: request::VERSION.number(),
        make: |_| bytes_of(uapi::kfi_shim_version::new_zeroed()),
        handles: &[],
        reserved: None,
        result: None,
    },
    Form {
        name: "CLOSE",
        number: request::CLOSE.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_close {
                handle: scene.rig.domain.counter(&CntrAttr::new())?.into_handle(),
                result: 0,
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_close, handle),
                &CLASSES,
            )]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_close, result)),
    },
    Form {
        name: "GETINFO",
        number: request::GETINFO.number(),
        make: |_| bytes_of(uapi::kfi_shim_getinfo::new_zeroed()),
        handles: &[],
        reserved: Some(offset_of!(uapi::kfi_shim_getinfo, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_getinfo, result)),
    },
    Form {
        name: "READ_INFO",
        number: request::READ_INFO.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_read_info {
                info: scene.rig.info.handle(),
                index: 0,
                buffer: raw::SCRATCH,
                buffer_size: size_of::<uapi::kfi_shim_info>() as u32,
                reserved: 0,
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_read_info, info),
                &[Class::Info],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_read_info, reserved)),
        result: None,
    },
    Form {
        name: "CONTROL",
        number: request::CONTROL.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_control {
                handle: scene.counter.handle(),
                command: uapi::KFI_GETOPSFLAG,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_control, handle),
                OBJECTS,
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_control, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_control, result)),
    },
    Form {
        name: "WAIT_FD",
        number: request::WAIT_FD.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_wait_fd {
                handle: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_wait_fd, handle),
                &[
                    Class::Counter,
                    Class::WaitSet,
                    Class::CompletionQueue,
                    Class::EventQueue,
                ],
            )]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_wait_fd, result)),
    },
    Form {
        name: "FABRIC",
        number: request::FABRIC.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_fabric {
                info: scene.rig.info.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_fabric, info),
                &[Class::Info],
            )]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_fabric, result)),
    },
    Form {
        name: "DOMAIN",
        number: request::DOMAIN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_domain {
                fabric: scene.rig.fabric.handle(),
                info: scene.rig.info.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_domain, fabric), &[Class::Fabric]),
                handle_at(offset_of!(uapi::kfi_shim_domain, info), &[Class::Info]),
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_domain, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_domain, result)),
    },
    Form {
        name: "CNTR_OPEN",
        number: request::CNTR_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cntr_open {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(
                    offset_of!(uapi::kfi_shim_cntr_open, domain),
                    &[Class::Domain],
                ),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_cntr_open, wait_set),
                    // Whatever its class, as long as it is an object of
                    // kfabric; the wait object here is KFI_WAIT_NONE.
                    classes: OBJECTS,
                    optional: true,
                },
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_cntr_open, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_cntr_open, result)),
    },
    counter_form!(CNTR_READ),
    counter_form!(CNTR_READERR),
    counter_form!(CNTR_ADD),
    counter_form!(CNTR_ADDERR),
    counter_form!(CNTR_SET),
    counter_form!(CNTR_SETERR),
    Form {
        name: "CNTR_WAIT",
        number: request::CNTR_WAIT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cntr_wait {
                cntr: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cntr_wait, cntr),
                &[Class::Counter],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_cntr_wait, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_cntr_wait, result)),
    },
    Form {
        name: "WAIT_OPEN",
        number: request::WAIT_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_wait_open {
                fabric: scene.rig.fabric.handle(),
                wait_obj: uapi::KFI_WAIT_QUEUE,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_wait_open, fabric),
                &[Class::Fabric],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_wait_open, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_wait_open, result)),
    },
    Form {
        name: "WAIT",
        number: request::WAIT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_wait {
                wait_set: scene.wait_set.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_wait, wait_set),
                &[Class::WaitSet],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_wait, reserved)),
        result: None,
    },
    Form {
        name: "TRYWAIT",
        number: request::TRYWAIT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_trywait {
                fabric: scene.rig.fabric.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_trywait, fabric),
                &[Class::Fabric],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_trywait, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_trywait, result)),
    },
    Form {
        name: "POLL_OPEN",
        number: request::POLL_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_poll_open {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_poll_open, domain),
                &[Class::Domain],
            )]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_poll_open, result)),
    },
    Form {
        name: "POLL_ADD",
        number: request::POLL_ADD.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_poll_member {
                poll_set: scene.poll_set.handle(),
                member: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(
                    offset_of!(uapi::kfi_shim_poll_member, poll_set),
                    &[Class::PollSet],
                ),
                handle_at(offset_of!(uapi::kfi_shim_poll_member, member), OBJECTS),
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_poll_member, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_poll_member, result)),
    },
    Form {
        name: "POLL_DEL",
        number: request::POLL_DEL.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_poll_member {
                poll_set: scene.poll_set.handle(),
                member: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(
                    offset_of!(uapi::kfi_shim_poll_member, poll_set),
                    &[Class::PollSet],
                ),
                handle_at(offset_of!(uapi::kfi_shim_poll_member, member), OBJECTS),
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_poll_member, reserved)),
        result: None,
    },
    Form {
        name: "POLL",
        number: request::POLL.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_poll {
                poll_set: scene.poll_set.handle(),
                count: 1,
                contexts: raw::SCRATCH,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_poll, poll_set),
                &[Class::PollSet],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_poll, reserved)),
        result: Some(offset_of!(uapi::kfi_shim_poll, result)),
    },
    Form {
        name: "CQ_OPEN",
        number: request::CQ_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_open {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_cq_open, domain), &[Class::Domain]),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_cq_open, wait_set),
                    classes: OBJECTS,
                    optional: true,
                },
            ]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_cq_open, result)),
    },
    Form {
        name: "CQ_READ",
        number: request::CQ_READ.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_read {
                cq: scene.cq.handle(),
                count: 1,
                entries: raw::SCRATCH,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cq_read, cq),
                &[Class::CompletionQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "CQ_SREAD",
        number: request::CQ_SREAD.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_read {
                cq: scene.cq.handle(),
                count: 1,
                entries: raw::SCRATCH,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cq_read, cq),
                &[Class::CompletionQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "CQ_READERR",
        number: request::CQ_READERR.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_error {
                cq: scene.cq.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cq_error, cq),
                &[Class::CompletionQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "CQ_WRITE",
        number: request::CQ_WRITE.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_error {
                cq: scene.cq.handle(),
                // Which kfabric refuses.
                err: -1,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cq_error, cq),
                &[Class::CompletionQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "CQ_SIGNAL",
        number: request::CQ_SIGNAL.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cq_signal {
                cq: scene.cq.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cq_signal, cq),
                &[Class::CompletionQueue],
            )]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_cq_signal, result)),
    },
    Form {
        name: "EQ_OPEN",
        number: request::EQ_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_open {
                fabric: scene.rig.fabric.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_eq_open, fabric), &[Class::Fabric]),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_eq_open, wait_set),
                    classes: OBJECTS,
                    optional: true,
                },
            ]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_eq_open, result)),
    },
    Form {
        name: "EQ_READ",
        number: request::EQ_READ.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_event {
                eq: scene.eq.handle(),
                len: 128,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_eq_event, eq),
                &[Class::EventQueue],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_eq_event, reserved)),
        result: None,
    },
    Form {
        name: "EQ_SREAD",
        number: request::EQ_SREAD.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_event {
                eq: scene.eq.handle(),
                len: 128,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_eq_event, eq),
                &[Class::EventQueue],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_eq_event, reserved)),
        result: None,
    },
    Form {
        name: "EQ_WRITE",
        number: request::EQ_WRITE.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_event {
                eq: scene.eq.handle(),
                // Which kfabric refuses.
                flags: u64::MAX,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_eq_event, eq),
                &[Class::EventQueue],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_eq_event, reserved)),
        result: None,
    },
    Form {
        name: "EQ_READERR",
        number: request::EQ_READERR.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_error {
                eq: scene.eq.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_eq_error, eq),
                &[Class::EventQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "EQ_WRITE_ERROR",
        number: request::EQ_WRITE_ERROR.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_eq_error {
                eq: scene.eq.handle(),
                // Which kfabric refuses.
                err: -1,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_eq_error, eq),
                &[Class::EventQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "STRERROR",
        number: request::STRERROR.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_strerror {
                queue: scene.cq.handle(),
                len: 64,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_strerror, queue),
                &[Class::CompletionQueue, Class::EventQueue],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "INFO_TEXT",
        number: request::INFO_TEXT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_info_text {
                info: scene.rig.info.handle(),
                text: raw::SCRATCH,
                size: 1,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_info_text, info),
                &[Class::Info],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "TOSTR",
        number: request::TOSTR.number(),
        make: |_| {
            bytes_of(uapi::kfi_shim_tostr {
                text: raw::SCRATCH,
                size: 1,
                type_: uapi::KFI_TYPE_EP_TYPE,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const { &[] },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_tostr, result)),
    },
    Form {
        name: "BIND",
        number: request::BIND.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_bind {
                handle: scene.counter.handle(),
                other: scene.cq.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_bind, handle), OBJECTS),
                handle_at(offset_of!(uapi::kfi_shim_bind, other), OBJECTS),
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_bind, reserved)),
        result: None,
    },
    Form {
        name: "ENABLE",
        number: request::ENABLE.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_enable {
                handle: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_enable, handle),
                OBJECTS,
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "BUFFER",
        number: request::BUFFER.number(),
        make: |_| {
            bytes_of(uapi::kfi_shim_buffer {
                kind: uapi::KFI_SHIM_BUFFER_KMALLOC,
                size: 1,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const { &[] },
        reserved: Some(offset_of!(uapi::kfi_shim_buffer, reserved)),
        result: None,
    },
    Form {
        name: "AV_OPEN",
        number: request::AV_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_av_open {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_av_open, domain),
                &[Class::Domain],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "MR",
        number: request::MR.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_mr {
                domain: scene.rig.domain.handle(),
                form: uapi::KFI_SHIM_FORM_V,
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_mr, domain),
                &[Class::Domain],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "EP_OPEN",
        number: request::EP_OPEN.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_ep_open {
                parent: scene.rig.domain.handle(),
                kind: uapi::KFI_SHIM_EP,
                info: scene.rig.info.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_ep_open, parent), &[Class::Domain]),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_ep_open, info),
                    classes: &[Class::Info],
                    optional: true,
                },
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_ep_open, reserved)),
        result: None,
    },
    Form {
        name: "STX_CONTEXT",
        number: request::STX_CONTEXT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_tx_context {
                parent: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_tx_context, parent),
                &[Class::Domain],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_tx_context, reserved)),
        result: None,
    },
    Form {
        name: "SRX_CONTEXT",
        number: request::SRX_CONTEXT.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_rx_context {
                parent: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_rx_context, parent),
                &[Class::Domain],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_rx_context, reserved)),
        result: None,
    },
    Form {
        name: "QUERY_ATOMIC",
        number: request::QUERY_ATOMIC.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_query_atomic {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_query_atomic, domain),
                &[Class::Domain],
            )]
        },
        reserved: None,
        result: None,
    },
    Form {
        name: "QUEUE_WORK",
        number: request::QUEUE_WORK.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_work {
                domain: scene.rig.domain.handle(),
                flags: uapi::KFI_SHIM_WORK_PREPARE,
                op_type: uapi::KFI_OP_CNTR_ADD,
                triggering_cntr: scene.counter.handle(),
                cntr: scene.counter.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(offset_of!(uapi::kfi_shim_work, domain), &[Class::Domain]),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_work, triggering_cntr),
                    classes: OBJECTS,
                    optional: true,
                },
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_work, completion_cntr),
                    classes: OBJECTS,
                    optional: true,
                },
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_work, cntr),
                    classes: OBJECTS,
                    optional: true,
                },
            ]
        },
        reserved: None,
        result: Some(offset_of!(uapi::kfi_shim_work, result)),
    },
    Form {
        name: "CANCEL_WORK",
        number: request::CANCEL_WORK.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_cancel_work {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[handle_at(
                offset_of!(uapi::kfi_shim_cancel_work, domain),
                &[Class::Domain],
            )]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_cancel_work, reserved)),
        result: None,
    },
    Form {
        name: "FLUSH_WORK",
        number: request::FLUSH_WORK.number(),
        make: |scene| {
            bytes_of(uapi::kfi_shim_flush_work {
                domain: scene.rig.domain.handle(),
                ..FromZeros::new_zeroed()
            })
        },
        handles: const {
            &[
                handle_at(
                    offset_of!(uapi::kfi_shim_flush_work, domain),
                    &[Class::Domain],
                ),
                HandleAt {
                    offset: offset_of!(uapi::kfi_shim_flush_work, cntr),
                    classes: OBJECTS,
                    optional: true,
                },
            ]
        },
        reserved: Some(offset_of!(uapi::kfi_shim_flush_work, reserved)),
        result: None,
    },
];

fn form(name: &str) -> &'static Form {
    FORMS
        .iter()
        .find(|form| form.name == name)
        .expect("a form of that name")
}

/// The bytes of the first version of a request's structure.
fn first_size(form: &Form) -> usize {
    match form.name {
        "CQ_OPEN" => 56,
        "CQ_READ" | "CQ_SREAD" => 24,
        "EQ_OPEN" => 48,
        "EQ_READ" | "EQ_SREAD" | "EQ_WRITE" => 160,
        "EQ_READERR" | "EQ_WRITE_ERROR" => 32,
        _ => form.size(),
    }
}

/// A request on an object of which there is none in a scene.
struct Other {
    name: &'static str,
    number: u32,
    handle: usize,
    reserved: Option<usize>,
}

macro_rules! other {
    ($name:ident, $Type:ident, $handle:ident) => {
        Other {
            name: stringify!($name),
            number: request::$name.number(),
            handle: offset_of!(uapi::$Type, $handle),
            reserved: None,
        }
    };
    ($name:ident, $Type:ident, $handle:ident, $reserved:ident) => {
        Other {
            reserved: Some(offset_of!(uapi::$Type, $reserved)),
            ..other!($name, $Type, $handle)
        }
    };
}

/// Requests on address vectors, memory regions and endpoints.
static OTHERS: [Other; 31] = [
    other!(AV_INSERT, kfi_shim_av_insert, av),
    other!(AV_INSERTSVC, kfi_shim_av_insert, av),
    other!(AV_INSERTSYM, kfi_shim_av_insert, av),
    other!(AV_INSERTED, kfi_shim_av_inserted, av, reserved),
    other!(AV_REMOVE, kfi_shim_av_remove, av, reserved),
    other!(AV_LOOKUP, kfi_shim_av_lookup, av, reserved),
    other!(AV_STRADDR, kfi_shim_av_straddr, av, reserved),
    // No queue of a scene has a handler.
    other!(HANDLED, kfi_shim_handled, queue),
    other!(MR_KEY, kfi_shim_mr_key, mr),
    other!(MR_REFRESH, kfi_shim_mr_refresh, mr, reserved),
    other!(MR_RAW_ATTR, kfi_shim_raw_key, handle, reserved),
    other!(TX_CONTEXT, kfi_shim_tx_context, parent, reserved),
    other!(RX_CONTEXT, kfi_shim_rx_context, parent, reserved),
    other!(EP_ALIAS, kfi_shim_ep_alias, ep, reserved),
    other!(CANCEL, kfi_shim_cancel, ep),
    other!(GETOPT, kfi_shim_opt, ep, reserved),
    other!(SETOPT, kfi_shim_opt, ep, reserved),
    other!(GETNAME, kfi_shim_name, ep, reserved),
    other!(SETNAME, kfi_shim_name, ep, reserved),
    other!(GETPEER, kfi_shim_name, ep, reserved),
    other!(LISTEN, kfi_shim_cm, ep, reserved),
    other!(CONNECT, kfi_shim_cm, ep, reserved),
    other!(ACCEPT, kfi_shim_cm, ep, reserved),
    other!(REJECT, kfi_shim_cm, ep, reserved),
    other!(SHUTDOWN, kfi_shim_cm, ep, reserved),
    other!(JOIN, kfi_shim_join, ep, reserved),
    other!(POST, kfi_shim_op, ep, reserved),
    other!(ATOMIC_VALID, kfi_shim_atomic_valid, ep, reserved),
    // Those that name a domain only, or a work.
    other!(MR_MAP_RAW, kfi_shim_raw_key, handle, reserved),
    other!(MR_UNMAP_KEY, kfi_shim_raw_key, handle, reserved),
    other!(RELEASE_WORK, kfi_shim_cancel_work, id, reserved),
];

impl Other {
    /// An argument that is good but for the handle.
    fn argument(&self, handle: Handle) -> Vec<u8> {
        let mut argument = vec![0; raw::size_of_request(self.number)];
        if self.name == "POST" {
            let at = offset_of!(uapi::kfi_shim_op, kind);
            write_u32(&mut argument, at, uapi::KFI_SHIM_OP_SEND);
            let at = offset_of!(uapi::kfi_shim_op, form);
            write_u32(&mut argument, at, uapi::KFI_SHIM_FORM_MSG);
        }
        write_u32(&mut argument, self.handle, handle);
        argument
    }

    /// A bad request; the system call must fail so.
    fn fail(&self, session: &Session, number: u32, argument: &mut [u8], errno: Errno) -> Outcome {
        let result = raw::bytes(session, number, argument);
        check_eq!(result, Err(errno), "{}", self.name);
        Ok(())
    }
}

fn transfers(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for other in &OTHERS {
        for handle in NO_HANDLES {
            let mut argument = other.argument(handle);
            other.fail(session, other.number, &mut argument, Errno::BADF)?;
        }
        let on_domain = ["MR_MAP_RAW", "MR_UNMAP_KEY"].contains(&other.name);
        for class in CLASSES {
            if on_domain && class == Class::Domain || other.name == "RELEASE_WORK" {
                continue;
            }
            let mut argument = other.argument(scene.handle(class));
            other.fail(session, other.number, &mut argument, Errno::INVAL)?;
        }
        let size = raw::size_of_request(other.number);
        for short in [0, 4, size - 1] {
            let number = raw::resized(other.number, short);
            other.fail(session, number, &mut other.argument(1), Errno::INVAL)?;
        }
        let mut argument = other.argument(1);
        argument.resize(size + 8, 0);
        argument[size + 3] = 1;
        let number = raw::resized(other.number, size + 8);
        other.fail(session, number, &mut argument, Errno::TOOBIG)?;
        if let Some(reserved) = other.reserved {
            let mut argument = other.argument(1);
            write_u32(&mut argument, reserved, 0x100);
            other.fail(session, other.number, &mut argument, Errno::INVAL)?;
        }
        for address in BAD_ADDRESSES {
            let result = raw::bad_address(session, other.number, address);
            check_eq!(result, Err(Errno::FAULT), "{} at {address:#x}", other.name);
        }
    }
    scene.end_untouched()
}

fn huge_counts(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for count in [4097, 65537, 0x8000_0000, u32::MAX] {
        let mut mr = uapi::kfi_shim_mr {
            domain: scene.rig.domain.handle(),
            form: uapi::KFI_SHIM_FORM_V,
            segment_count: count,
            ..FromZeros::new_zeroed()
        };
        let result = session.ioctl(request::MR, &mut mr);
        check_eq!(result, Err(Errno::TOOBIG), "{count} segments");
        for number in [request::POST_BATCH, request::QUEUE_WORK_BATCH] {
            let mut batch = uapi::kfi_shim_batch {
                count,
                size: 256,
                array: 8,
                ..FromZeros::new_zeroed()
            };
            let result = raw::bytes(session, number.number(), batch.as_mut_bytes());
            check_eq!(result, Err(Errno::TOOBIG), "a batch of {count}");
        }
    }
    for size in [4097, u32::MAX] {
        let mut batch = uapi::kfi_shim_batch {
            count: 1,
            size,
            array: 8,
            ..FromZeros::new_zeroed()
        };
        let number = request::POST_BATCH.number();
        let result = raw::bytes(session, number, batch.as_mut_bytes());
        check_eq!(result, Err(Errno::TOOBIG), "elements of {size} bytes");
    }
    scene.end_untouched()
}

/// Values that are no handle: none, and numbers far from any that is.
const NO_HANDLES: [Handle; 5] = [0, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];

const KIND: u32 = uapi::KFI_SHIM_IOC_MAGIC;

fn unknown_requests(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let batches = [request::POST_BATCH, request::QUEUE_WORK_BATCH].map(kfi::uapi::Request::number);
    let known: Vec<u32> = FORMS
        .iter()
        .map(|form| form.number)
        .chain(OTHERS.iter().map(|other| other.number))
        .chain(batches)
        .map(|number| number & 0xff)
        .collect();
    let is_unknown = |nr: &u32| !known.contains(nr);
    let mut tried = 0;
    for direction in 0..4 {
        for size in [0, 4, 8, 16, 64, MAX_SIZE] {
            // Of ours, and of types that nobody else uses for all files.
            let ours = (0..256).filter(is_unknown).map(|nr| (KIND, nr));
            let others = [0xf0, 0xf2, 0xe1, 0x71]
                .into_iter()
                .flat_map(|kind| known.iter().map(move |&nr| (kind, nr)));
            for (kind, nr) in ours.chain(others) {
                let number = raw::number(direction, kind, nr, size);
                let result = raw::bytes(session, number, &mut [0; 8]);
                check_eq!(result, Err(Errno::NOTTY), "request {number:#x}");
                tried += 1;
            }
        }
    }
    env.note(format!("{tried} requests"));
    scene.end_untouched()
}

fn short_structures(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in &FORMS {
        let size = first_size(form);
        for short in [0, 1, 4, size / 2, size - 4, size - 1] {
            let mut argument = (form.make)(&scene)?;
            let number = raw::resized(form.number, short);
            form.fail(scene.session(), number, &mut argument, Errno::INVAL)?;
            if form.name == "CLOSE" {
                // Still there.
                scene.session().close_handle(read_u32(&argument, 0))?;
            }
        }
    }
    scene.end_untouched()
}

fn long_structures(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for form in &FORMS {
        let size = form.size();
        for long in [size + 1, size + 4, size + 64, 4096, 4097, MAX_SIZE] {
            let number = raw::resized(form.number, long);
            // A structure of a newer program that asks for nothing new.
            let mut argument = (form.make)(&scene)?;
            argument.resize(long, 0);
            form.succeed(session, number, &mut argument)?;
            check!(
                argument[size..].iter().all(|&byte| byte == 0),
                "{} writes behind what it knows",
                form.name
            );
            // And one that does. What only goes out, nobody asks for.
            if form.number == request::VERSION.number() {
                continue;
            }
            for at in [size, usize::midpoint(size, long), long - 1] {
                let mut argument = (form.make)(&scene)?;
                argument.resize(long, 0);
                argument[at] = 1;
                form.fail(session, number, &mut argument, Errno::TOOBIG)?;
                if form.name == "CLOSE" {
                    session.close_handle(read_u32(&argument, 0))?;
                }
            }
        }
    }
    // The counters, fabrics and domains that have been opened go with the
    // session; the counter has not been changed.
    check_eq!((scene.counter.read()?, scene.counter.read_err()?), (0, 0));
    Ok(())
}

fn reserved_members(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in &FORMS {
        let Some(offset) = form.reserved else {
            continue;
        };
        for value in [1, 0x100, 0x8000_0000, u32::MAX] {
            let mut argument = (form.make)(&scene)?;
            write_u32(&mut argument, offset, value);
            form.fail(scene.session(), form.number, &mut argument, Errno::INVAL)?;
        }
    }
    scene.end_untouched()
}

fn unknown_flags(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for (form, offset, known) in [
        (
            form("CNTR_OPEN"),
            offset_of!(uapi::kfi_shim_cntr_open, flags),
            uapi::KFI_SHIM_CNTR_NO_ATTR,
        ),
        (
            form("WAIT_FD"),
            offset_of!(uapi::kfi_shim_wait_fd, flags),
            uapi::KFI_SHIM_WAIT_NONBLOCK,
        ),
        (
            form("WAIT_OPEN"),
            offset_of!(uapi::kfi_shim_wait_open, flags),
            uapi::KFI_SHIM_NO_ATTR,
        ),
        (
            form("POLL_OPEN"),
            offset_of!(uapi::kfi_shim_poll_open, flags),
            uapi::KFI_SHIM_NO_ATTR,
        ),
        (
            form("CQ_OPEN"),
            offset_of!(uapi::kfi_shim_cq_open, flags),
            uapi::KFI_SHIM_NO_ATTR | uapi::KFI_SHIM_HANDLER,
        ),
        (
            form("EQ_OPEN"),
            offset_of!(uapi::kfi_shim_eq_open, flags),
            uapi::KFI_SHIM_NO_ATTR | uapi::KFI_SHIM_HANDLER,
        ),
        (form("BUFFER"), offset_of!(uapi::kfi_shim_buffer, flags), 0),
        (
            form("AV_OPEN"),
            offset_of!(uapi::kfi_shim_av_open, flags),
            uapi::KFI_SHIM_NO_ATTR,
        ),
        (
            form("CQ_READ"),
            offset_of!(uapi::kfi_shim_cq_read, flags),
            uapi::KFI_SHIM_CQ_NO_SOURCE,
        ),
        (
            form("QUEUE_WORK"),
            offset_of!(uapi::kfi_shim_work, flags),
            uapi::KFI_SHIM_WORK_PREPARE | uapi::KFI_SHIM_WORK_NULL | uapi::KFI_SHIM_WORK_NO_OP,
        ),
    ] {
        for bit in (0..32)
            .map(|bit| 1_u32 << bit)
            .filter(|bit| bit & known == 0)
        {
            for flags in [bit, bit | known] {
                let mut argument = (form.make)(&scene)?;
                write_u32(&mut argument, offset, flags);
                form.fail(scene.session(), form.number, &mut argument, Errno::INVAL)?;
            }
        }
    }
    scene.end_untouched()
}

fn bad_handles(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    // Of an object that was, and of one that will be.
    let stale = scene.rig.counter()?.handle();
    let future = [stale + 1, stale + 1000];
    for form in &FORMS {
        for handle_at in form.handles {
            for handle in NO_HANDLES.into_iter().chain([stale]).chain(future) {
                if handle == 0 && handle_at.optional {
                    continue;
                }
                let mut argument = (form.make)(&scene)?;
                if form.name == "CLOSE" {
                    // It has opened one to close, which moves the future.
                    scene.session().close_handle(read_u32(&argument, 0))?;
                    if future.contains(&handle) {
                        continue;
                    }
                }
                write_u32(&mut argument, handle_at.offset, handle);
                form.fail(scene.session(), form.number, &mut argument, Errno::BADF)
                    .map_err(|stop| within(stop, format_args!("handle {handle:#x}")))?;
            }
        }
    }
    scene.end_untouched()
}

fn wrong_classes(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for form in &FORMS {
        for handle_at in form.handles {
            for class in CLASSES {
                if handle_at.classes.contains(&class) {
                    continue;
                }
                let mut argument = (form.make)(&scene)?;
                write_u32(&mut argument, handle_at.offset, scene.handle(class));
                form.fail(scene.session(), form.number, &mut argument, Errno::INVAL)
                    .map_err(|stop| {
                        within(stop, format_args!("{class:?} at {}", handle_at.offset))
                    })?;
            }
        }
    }
    scene.end_untouched()
}

fn bad_indices(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let count = scene.rig.info.entries().len() as u32;
    for (form, offset) in [
        (
            form("READ_INFO"),
            offset_of!(uapi::kfi_shim_read_info, index),
        ),
        (form("FABRIC"), offset_of!(uapi::kfi_shim_fabric, index)),
        (form("DOMAIN"), offset_of!(uapi::kfi_shim_domain, index)),
    ] {
        for index in [count, count + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut argument = (form.make)(&scene)?;
            write_u32(&mut argument, offset, index);
            form.fail(scene.session(), form.number, &mut argument, Errno::INVAL)?;
        }
    }
    scene.end_untouched()
}

fn bad_argument_addresses(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    for form in &FORMS {
        for address in BAD_ADDRESSES {
            let result = raw::bad_address(session, form.number, address);
            check_eq!(result, Err(Errno::FAULT), "{} at {address:#x}", form.name);
        }
        if raw::written_elsewhere(form.number).is_some() {
            continue;
        }
        // Memory that ends too early.
        let argument = (form.make)(&scene)?;
        for missing in [1, 4, argument.len() - 1] {
            let mut short = Guarded::new(&argument[..argument.len() - missing])?;
            let result = raw::guarded(session, form.number, &mut short);
            check_eq!(result, Err(Errno::FAULT), "{} cut off", form.name);
        }
        // And memory that ends just in time.
        let mut fitting = Guarded::new(&argument)?;
        let result = raw::guarded(session, form.number, &mut fitting);
        check_eq!(result, Ok(()), "{} at the end of memory", form.name);
    }
    check_eq!((scene.counter.read()?, scene.counter.read_err()?), (0, 0));
    Ok(())
}

/// Makes a good request with an argument that the kernel cannot write to.
fn read_only(scene: &Scene, form: &Form, argument: &[u8]) -> Outcome {
    let mut argument = Guarded::new(argument)?;
    argument.set_read_only()?;
    let result = raw::guarded(scene.session(), form.number, &mut argument);
    check_eq!(
        result,
        Err(Errno::FAULT),
        "{} with a read-only argument",
        form.name
    );
    Ok(())
}

fn read_only_opens_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let descriptors = || Ok::<_, Stop>(std::fs::read_dir("/proc/self/fd")?.count());
    let before = descriptors()?;
    for _ in 0..50 {
        for name in [
            "GETINFO",
            "FABRIC",
            "DOMAIN",
            "CNTR_OPEN",
            "WAIT_FD",
            "WAIT_OPEN",
            "POLL_OPEN",
            "CQ_OPEN",
            "EQ_OPEN",
        ] {
            let form = form(name);
            read_only(&scene, form, &(form.make)(&scene)?)?;
        }
    }
    check_eq!(descriptors()?, before, "open descriptors");
    // A counter or domain that nobody has a handle of would keep its parent.
    scene.end_untouched()
}

fn read_only_changes_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    for name in ["CNTR_ADD", "CNTR_ADDERR", "CNTR_SET", "CNTR_SETERR"] {
        let form = form(name);
        let mut argument = (form.make)(&scene)?;
        write_u64(&mut argument, offset_of!(uapi::kfi_shim_cntr, value), 5);
        read_only(&scene, form, &argument)?;
        let values = (scene.counter.read()?, scene.counter.read_err()?);
        check_eq!(values, (0, 0), "values after {name}");
    }
    let form = form("CLOSE");
    let mut argument = uapi::kfi_shim_close::new_zeroed();
    argument.handle = scene.counter.handle();
    read_only(&scene, form, argument.as_bytes())?;
    scene.end_untouched()
}

fn read_only_takes_nothing(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let (cq, eq) = (&scene.cq, &scene.eq);
    // Nothing is added.
    let mut argument = (form("CQ_WRITE").make)(&scene)?;
    for err in [0, 5] {
        write_u32(&mut argument, offset_of!(uapi::kfi_shim_cq_error, err), err);
        read_only(&scene, form("CQ_WRITE"), &argument)?;
    }
    let mut argument = (form("EQ_WRITE").make)(&scene)?;
    write_u64(&mut argument, offset_of!(uapi::kfi_shim_eq_event, flags), 0);
    read_only(&scene, form("EQ_WRITE"), &argument)?;
    let mut argument = (form("EQ_WRITE_ERROR").make)(&scene)?;
    write_u32(&mut argument, offset_of!(uapi::kfi_shim_eq_error, err), 5);
    read_only(&scene, form("EQ_WRITE_ERROR"), &argument)?;
    expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
    expect_fabric(eq.read(1), KfiErrno::EAGAIN)?;
    let add = (form("POLL_ADD").make)(&scene)?;
    read_only(&scene, form("POLL_ADD"), &add)?;
    let counter = scene.counter.handle();
    let result = scene.poll_set.del_handle(counter, 0);
    expect_fabric(result, KfiErrno::EINVAL)?;

    // Nothing is taken out.
    let error = CompletionError {
        err: 5,
        ..CompletionError::default()
    };
    cq.write_err(&error)?;
    read_only(
        &scene,
        form("CQ_READERR"),
        &(form("CQ_READERR").make)(&scene)?,
    )?;
    check_eq!(cq.read_err()?.err, 5);
    eq.write(1, b"1")?;
    for name in ["EQ_READ", "EQ_SREAD"] {
        read_only(&scene, form(name), &(form(name).make)(&scene)?)?;
    }
    check_eq!(eq.read(8)?.data, b"1");
    scene.poll_set.add_handle(counter, 0)?;
    read_only(&scene, form("POLL_DEL"), &(form("POLL_DEL").make)(&scene)?)?;
    scene.poll_set.del_handle(counter, 0)?;

    // Nor is a change told of.
    let attr = CntrAttr::new()
        .wait_obj(WaitObj::SET)
        .wait_set(scene.wait_set.handle());
    let member = scene.rig.domain.counter(&attr)?;
    member.add(1)?;
    read_only(&scene, form("WAIT"), &(form("WAIT").make)(&scene)?)?;
    let trywait = form("TRYWAIT");
    let mut argument = (trywait.make)(&scene)?;
    let handles = [scene.wait_set.handle()];
    write_u32(&mut argument, offset_of!(uapi::kfi_shim_trywait, count), 1);
    write_u64(
        &mut argument,
        offset_of!(uapi::kfi_shim_trywait, handles),
        handles.as_ptr() as u64,
    );
    read_only(&scene, trywait, &argument)?;
    scene.wait_set.wait_ms(0)?;
    drop(member);
    scene.end_untouched()
}

/// `GETINFO` as it stands.
fn getinfo(session: &Session, argument: &uapi::kfi_shim_getinfo) -> Result<i32, Errno> {
    let mut argument = *argument;
    session.ioctl(request::GETINFO, &mut argument)?;
    if argument.result == 0 {
        session
            .close_handle(argument.info)
            .map_err(|_| Errno::BADF)?;
    }
    Ok(argument.result)
}

fn getinfo_texts(env: &Env) -> Outcome {
    type Member = fn(&mut uapi::kfi_shim_getinfo) -> &mut u64;
    let scene = Scene::new(env)?;
    let session = scene.session();
    let members: [(&str, Member); 2] = [
        ("node", |argument| &mut argument.node),
        ("service", |argument| &mut argument.service),
    ];
    for (name, member) in members {
        let ask = |address: u64| {
            let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
            *member(&mut argument) = address;
            getinfo(session, &argument)
        };
        for address in BAD_ADDRESSES {
            if address != 0 {
                check_eq!(ask(address), Err(Errno::FAULT), "{name} at {address:#x}");
            }
        }
        // Texts that run into the end of memory.
        for length in [1, 7, 63] {
            let mut text = Guarded::new(&vec![b'A'; length])?;
            let result = ask(text.address() as u64);
            check_eq!(result, Err(Errno::FAULT), "{name} of {length}, no end");
        }
        // A text that ends where memory ends is good, if not an answer.
        for text in [&b"\0"[..], b"0\0", b"nothing has this name\0"] {
            let mut text = Guarded::new(text)?;
            let result = ask(text.address() as u64);
            check!(result.is_ok(), "{name} at the end of memory: {result:?}");
        }
        // Texts without end, in plenty of memory.
        for length in [1 << 16, 1 << 20] {
            let mut text = Guarded::new(&vec![b'A'; length])?;
            let result = ask(text.address() as u64);
            check_eq!(result, Err(Errno::INVAL), "{name} of {length}");
        }
    }
    scene.end_untouched()
}

/// `GETINFO` with hints, that may be anything.
fn ask_with(session: &Session, hints: &[u8]) -> Result<i32, Errno> {
    let mut hints = Guarded::new(hints)?;
    let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
    argument.hints = hints.address() as u64;
    argument.hints_size = hints.len() as u32;
    getinfo(session, &argument)
}

fn getinfo_hints(env: &Env) -> Outcome {
    type Spoil = fn(&mut uapi::kfi_shim_info);
    let scene = Scene::new(env)?;
    let session = scene.session();
    let good = uapi::kfi_shim_info::from(&scene.rig.info.entries()[0]);
    check_eq!(ask_with(session, good.as_bytes()), Ok(0), "good hints");

    let spoils: [(&str, Spoil); 14] = [
        ("reserved", |hints| hints.reserved = 1),
        ("tx_attr.reserved", |hints| hints.tx_attr.reserved = 1),
        ("domain_attr.reserved", |h| h.domain_attr.reserved = 1),
        ("fabric_attr.reserved", |h| h.fabric_attr.reserved = 1),
        ("src_addrlen", |h| {
            h.src_addrlen = uapi::KFI_SHIM_ADDR_MAX + 1;
        }),
        ("dest_addrlen", |h| h.dest_addrlen = u32::MAX),
        ("ep_attr.auth_key_size", |h| {
            h.ep_attr.auth_key_size = uapi::KFI_SHIM_AUTH_KEY_MAX + 1;
        }),
        ("domain_attr.auth_key_size", |h| {
            h.domain_attr.auth_key_size = u32::MAX;
        }),
        ("domain_attr.name", |h| h.domain_attr.name = [0x41; 64]),
        ("fabric_attr.name", |h| h.fabric_attr.name = [0x41; 64]),
        ("fabric_attr.prov_name", |h| {
            h.fabric_attr.prov_name = [0x41; 64];
        }),
        // Objects of another class; the handles are put in below.
        ("domain_attr.domain of a fabric", |_| ()),
        ("fabric_attr.fabric of a domain", |_| ()),
        ("fabric_attr.fabric of an answer", |_| ()),
    ];
    for (name, spoil) in spoils {
        let mut hints = good;
        spoil(&mut hints);
        match name.rsplit_once(' ').map(|(_, class)| class) {
            Some("fabric") => hints.domain_attr.domain = scene.handle(Class::Fabric),
            Some("domain") => hints.fabric_attr.fabric = scene.handle(Class::Domain),
            Some("answer") => hints.fabric_attr.fabric = scene.handle(Class::Info),
            _ => {}
        }
        let result = ask_with(session, hints.as_bytes());
        check_eq!(result, Err(Errno::INVAL), "hints with bad {name}");
    }
    // Objects that are not there.
    for handle in &NO_HANDLES[1..] {
        let mut hints = good;
        hints.domain_attr.domain = *handle;
        check_eq!(ask_with(session, hints.as_bytes()), Err(Errno::BADF));
        let mut hints = good;
        hints.fabric_attr.fabric = *handle;
        check_eq!(ask_with(session, hints.as_bytes()), Err(Errno::BADF));
    }
    scene.end_untouched()
}

/// No structure behind an address may be larger.
const LARGEST_BUFFER: usize = 1 << 16;

fn getinfo_hints_sizes(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let good = uapi::kfi_shim_info::from(&scene.rig.info.entries()[0]);
    let size = size_of_val(&good);

    for short in [0, 1, 8, size / 2, size - 8, size - 1] {
        let result = ask_with(session, &good.as_bytes()[..short]);
        check_eq!(result, Err(Errno::INVAL), "hints of {short} bytes");
    }
    for long in [size + 1, size + 8, 4096, 4097, LARGEST_BUFFER] {
        let mut hints = good.as_bytes().to_vec();
        hints.resize(long, 0);
        let result = ask_with(session, &hints);
        check_eq!(result, Ok(0), "hints of {long} bytes, the rest 0");
        hints[long - 1] = 1;
        let result = ask_with(session, &hints);
        check_eq!(result, Err(Errno::TOOBIG), "hints of {long} bytes");
    }
    for address in BAD_ADDRESSES {
        if address != 0 {
            let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
            argument.hints = address;
            argument.hints_size = size as u32;
            let result = getinfo(session, &argument);
            check_eq!(result, Err(Errno::FAULT), "hints at {address:#x}");
        }
    }
    // More than there is memory for, or than any program would send.
    let mut hints = Guarded::new(good.as_bytes())?;
    let too_much = [LARGEST_BUFFER + 1, 1 << 24, 0x7fff_ffff, 0xffff_ffff];
    let fault = [size + 1, size + 8, LARGEST_BUFFER].map(|size| (size, Errno::FAULT));
    let too_big = too_much.map(|size| (size, Errno::TOOBIG));
    for (claimed, errno) in fault.into_iter().chain(too_big) {
        let mut argument = uapi::kfi_shim_getinfo::new_zeroed();
        argument.hints = hints.address() as u64;
        argument.hints_size = claimed as u32;
        let result = getinfo(session, &argument);
        check_eq!(result, Err(errno), "hints that claim {claimed} bytes");
    }
    scene.end_untouched()
}

fn read_info_buffers(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let info = scene.rig.info.handle();
    let size = size_of::<uapi::kfi_shim_info>();
    let form = form("READ_INFO");

    for address in BAD_ADDRESSES {
        let mut argument = (form.make)(&scene)?;
        let offset = offset_of!(uapi::kfi_shim_read_info, buffer);
        write_u64(&mut argument, offset, address);
        form.fail(session, form.number, &mut argument, Errno::FAULT)?;
    }
    // Sizes that are too small, where there would be room.
    let mut buffer = Guarded::new(&vec![0xaa; size])?;
    for short in [0, 1, 8, size / 2, size - 1] {
        let result = raw::read_info(session, info, 0, &mut buffer, short as u32);
        check_eq!(result, Err(Errno::INVAL), "buffer of {short} bytes");
    }
    check!(
        buffer.bytes().iter().all(|&byte| byte == 0xaa),
        "a refused request has written"
    );
    // Memory that ends too early.
    let mut half = Guarded::new(&vec![0xaa; size / 2])?;
    let result = raw::read_info(session, info, 0, &mut half, size as u32);
    check_eq!(result, Err(Errno::FAULT), "half a buffer");

    // Just enough.
    let result = raw::read_info(session, info, 0, &mut buffer, size as u32);
    check_eq!(result, Ok(()), "a buffer at the end of memory");
    let exact = buffer.bytes().to_vec();
    let entry = uapi::kfi_shim_info::read_from_bytes(&exact)
        .map_err(|_| Stop::fail("not of the size of an entry"))?;
    check!(
        kfi::InfoEntry::from(&entry) == scene.rig.info.entries()[0],
        "another entry than before"
    );
    check_eq!(entry.reserved, 0);
    check_eq!(entry.tx_attr.reserved, 0);
    check_eq!(entry.domain_attr.reserved, 0);
    check_eq!(entry.fabric_attr.reserved, 0);

    // More than enough: an entry, and behind it zeros.
    let mut large = Guarded::new(&vec![0xaa; size + 100])?;
    let result = raw::read_info(session, info, 0, &mut large, size as u32 + 50);
    check_eq!(result, Ok(()), "a larger buffer");
    let (head, tail) = large.bytes().split_at(size);
    check!(head == exact, "another entry in a larger buffer");
    check!(
        tail[..50].iter().all(|&byte| byte == 0),
        "the rest of a larger buffer is not 0"
    );
    check_eq!(tail[50..], [0xaa; 50], "behind the buffer");

    // More than there is, or than any program would have.
    let largest = LARGEST_BUFFER as u32;
    for (claimed, errno) in [
        (size as u32 + 1, Errno::FAULT),
        (largest, Errno::FAULT),
        (largest + 1, Errno::TOOBIG),
        (0x7fff_ffff, Errno::TOOBIG),
        (u32::MAX, Errno::TOOBIG),
    ] {
        let result = raw::read_info(session, info, 0, &mut buffer, claimed);
        check_eq!(result, Err(errno), "a buffer that claims {claimed} bytes");
    }
    scene.end_untouched()
}

fn other_system_calls(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let file = scene.session().as_fd();
    let mut buffer = [0; 64];
    let read = rustix::io::read(file, &mut buffer);
    check_eq!(read, Err(Errno::INVAL), "read(2) of the device");
    let write = rustix::io::write(file, &buffer);
    check_eq!(write, Err(Errno::INVAL), "write(2) of the device");

    // No request of the device is one of a wait descriptor.
    let wait_fd = Session::from(scene.counter.wait_fd()?.into_fd());
    for form in &FORMS {
        let mut argument = (form.make)(&scene)?;
        form.fail(&wait_fd, form.number, &mut argument, Errno::NOTTY)?;
        if form.name == "CLOSE" {
            scene.session().close_handle(read_u32(&argument, 0))?;
        }
    }
    let write = rustix::io::write(&wait_fd, &buffer);
    check!(write.is_err(), "write(2) of a wait descriptor: {write:?}");
    drop(wait_fd);
    scene.end_untouched()
}

fn close_beside_use(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let rounds = env.scaled(300, 50);
    let handle = AtomicU32::new(scene.counter.handle());
    let open = AtomicBool::new(true);
    let uses = AtomicU64::new(0);

    let results = in_threads(0..3_usize, |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut busy = 0_u64;
            for _ in 0..rounds {
                let new = scene.rig.domain.counter(&CntrAttr::new())?.into_handle();
                let before = uses.load(Ordering::Relaxed);
                handle.store(new, Ordering::Relaxed);
                // The others have found it, and use it.
                while uses.load(Ordering::Relaxed) < before + 3 {
                    thread::relax();
                }
                // In use for a moment, again and again, but not for ever.
                while let Err(error) = scene.session().close_handle(new) {
                    check!(is_busy(&error), "close beside use: {error}");
                    busy += 1;
                    thread::relax();
                }
            }
            open.store(false, Ordering::Relaxed);
            return Ok(busy);
        }
        let numbers = [
            request::CNTR_ADD.number(),
            request::CNTR_READ.number(),
            request::CNTR_SETERR.number(),
            request::CNTR_READERR.number(),
        ];
        for number in numbers.iter().cycle() {
            if !open.load(Ordering::Relaxed) {
                break;
            }
            let mut argument = uapi::kfi_shim_cntr {
                cntr: handle.load(Ordering::Relaxed),
                result: 0,
                value: 1,
            };
            match raw::bytes(scene.session(), *number, argument.as_mut_bytes()) {
                Ok(()) => {
                    check_eq!(argument.result, 0);
                    uses.fetch_add(1, Ordering::Relaxed);
                }
                // It is closed; never is it said to be in use, which is for
                // those who close.
                Err(Errno::BADF) => {}
                Err(errno) => return Err(Stop::fail(Error::Os(errno))),
            }
        }
        Ok(0)
    })?;
    env.note(format!(
        "{rounds} closes, {} times busy, {} uses in time",
        results[0],
        uses.into_inner()
    ));
    drop(scene.counter);
    drop((scene.poll_set, scene.cq, scene.eq, scene.wait_set));
    scene.rig.close()
}

/// A session must refuse before it holds that many objects.
const TOO_MANY: usize = 200_000;

/// Counters until it is refused, for they are the cheapest. Then there is no room
/// for anything else either, until one is closed.
fn object_limit(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let most = env.scaled(8192, 2048).min(8192);
    let parameters = CString::new(format!("max_objects={most}"))?;
    modules.with_device(&parameters, || to_the_object_limit(env))
}

fn to_the_object_limit(env: &Env) -> Outcome {
    let scene = Scene::new(env)?;
    let session = scene.session();
    let domain = &scene.rig.domain;
    let mut counters = Vec::new();
    loop {
        match domain.counter(&CntrAttr::new()) {
            Ok(counter) => counters.push(counter.into_handle()),
            Err(Error::Os(Errno::MFILE)) => break,
            Err(error) => {
                let count = counters.len();
                return Err(Stop::fail(format!(
                    "{error} with {count} counters open, should be EMFILE"
                )));
            }
        }
        check!(counters.len() < TOO_MANY, "{TOO_MANY} in one session");
    }
    let count = counters.len();
    env.note(format!("{count} counters in one session"));
    // The module says how many it allows, and there is one of each class.
    let parameter = "/sys/module/kfi_shim/parameters/max_objects";
    if let Ok(text) = std::fs::read_to_string(parameter) {
        check_eq!(count + CLASSES.len(), text.trim().parse::<usize>()?);
    }

    let open = |name: &str| -> Result<Result<Handle, Errno>, Stop> {
        let form = form(name);
        let mut argument = (form.make)(&scene)?;
        Ok(
            raw::bytes(session, form.number, &mut argument).map(|()| match name {
                "GETINFO" => read_u32(&argument, offset_of!(uapi::kfi_shim_getinfo, info)),
                "FABRIC" => read_u32(&argument, offset_of!(uapi::kfi_shim_fabric, fabric)),
                "DOMAIN" => read_u32(&argument, offset_of!(uapi::kfi_shim_domain, domain)),
                "WAIT_OPEN" => read_u32(&argument, offset_of!(uapi::kfi_shim_wait_open, wait_set)),
                "POLL_OPEN" => read_u32(&argument, offset_of!(uapi::kfi_shim_poll_open, poll_set)),
                "CQ_OPEN" => read_u32(&argument, offset_of!(uapi::kfi_shim_cq_open, cq)),
                "EQ_OPEN" => read_u32(&argument, offset_of!(uapi::kfi_shim_eq_open, eq)),
                _ => read_u32(&argument, offset_of!(uapi::kfi_shim_cntr_open, cntr)),
            }),
        )
    };
    for name in [
        "GETINFO",
        "FABRIC",
        "DOMAIN",
        "CNTR_OPEN",
        "WAIT_OPEN",
        "POLL_OPEN",
        "CQ_OPEN",
        "EQ_OPEN",
    ] {
        check_eq!(open(name)?, Err(Errno::MFILE), "{name} with no room");
        // One out, one in.
        let last = counters.pop().ok_or_else(|| Stop::fail("none at all"))?;
        session.close_handle(last)?;
        let handle = open(name)?.map_err(Error::Os)?;
        check_eq!(open(name)?, Err(Errno::MFILE), "{name} with no room again");
        session.close_handle(handle)?;
        counters.push(domain.counter(&CntrAttr::new())?.into_handle());
    }
    // What is no object needs no room.
    scene.counter.wait_fd()?;
    for handle in counters {
        session.close_handle(handle)?;
    }
    scene.end_untouched()
}

/// Random requests: good ones with some bytes changed, and pure noise. Every
/// answer is right, as long as there is one.
fn fuzz_session(scene: &Scene, rng: &mut SmallRng, count: u64) -> Result<u64, Stop> {
    let templates: Vec<Vec<u8>> = FORMS
        .iter()
        .map(|form| (form.make)(scene))
        .collect::<Result<_, _>>()?;
    let mut accepted = 0;
    for _ in 0..count {
        let which = rng.random_range(0..FORMS.len());
        let mut number = FORMS[which].number;
        let mut argument = templates[which].clone();
        if rng.random_ratio(1, 8) {
            let size = rng.random_range(0..=2 * argument.len());
            argument.resize(size, 0);
            number = raw::resized(number, size);
        }
        if rng.random_ratio(1, 16) {
            number ^= 1 << rng.random_range(0..32);
        }
        if rng.random_ratio(1, 4) {
            rng.fill_bytes(&mut argument);
        } else if !argument.is_empty() {
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..argument.len());
                // Small numbers are handles, indices and sizes.
                argument[at] = if rng.random() {
                    rng.random()
                } else {
                    rng.random_range(0..32)
                };
            }
        }
        tame(number, &mut argument, rng);
        if raw::bytes(scene.session(), number, &mut argument).is_ok() {
            accepted += 1;
        }
    }
    Ok(accepted)
}

/// Takes out what would write to our own memory, or wait for ever.
fn tame(number: u32, argument: &mut Vec<u8>, rng: &mut SmallRng) {
    let same = |other: u32| number & 0xffff == other & 0xffff;
    for (offset, _) in raw::written_addresses(number) {
        let address = match rng.random_range(0..=BAD_ADDRESSES.len()) {
            0 => raw::SCRATCH,
            index => BAD_ADDRESSES[index - 1],
        };
        argument.resize(argument.len().max(offset + 8), 0);
        write_u64(argument, offset, address);
    }
    if same(request::BUFFER.number()) {
        // The machine's memory is for others, too.
        let offset = offset_of!(uapi::kfi_shim_buffer, size);
        argument.resize(argument.len().max(offset + 8), 0);
        write_u64(argument, offset, rng.random_range(0..100_000));
    }
    for (waiting, offset) in [
        (
            request::CNTR_WAIT.number(),
            offset_of!(uapi::kfi_shim_cntr_wait, timeout),
        ),
        (
            request::WAIT.number(),
            offset_of!(uapi::kfi_shim_wait, timeout),
        ),
        (
            request::CQ_SREAD.number(),
            offset_of!(uapi::kfi_shim_cq_read, timeout),
        ),
        (
            request::EQ_SREAD.number(),
            offset_of!(uapi::kfi_shim_eq_event, timeout),
        ),
        (
            request::HANDLED.number(),
            offset_of!(uapi::kfi_shim_handled, timeout),
        ),
    ] {
        if same(waiting) {
            argument.resize(argument.len().max(offset + 4), 0);
            write_u32(argument, offset, u32::from(rng.random_ratio(1, 8)));
        }
    }
}

fn fuzz(env: &Env) -> Outcome {
    let bystander = Scene::new(env)?;
    let scene = Scene::new(env)?;
    let count = env.scaled(15_000, 3_000);
    let accepted = fuzz_session(&scene, &mut env.rng(), count)?;
    check!(accepted > 0 && accepted < count, "{accepted} accepted");
    env.note(format!("{count} requests, {accepted} accepted"));
    drop(scene);
    bystander.end_untouched()
}

fn fuzz_two_threads(env: &Env) -> Outcome {
    let bystander = Scene::new(env)?;
    let scene = Scene::new(env)?;
    let count = env.scaled(10_000, 1_000);
    let accepted = in_threads([1, 2], |thread| {
        pin(thread as usize)?;
        let mut rng = SmallRng::seed_from_u64(env.settings.seed.wrapping_add(thread));
        fuzz_session(&scene, &mut rng, count)
    })?;
    env.note(format!("{count} requests each, {accepted:?} accepted"));
    drop(scene);
    bystander.end_untouched()
}
