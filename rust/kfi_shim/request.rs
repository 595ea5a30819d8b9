// SPDX-License-Identifier: GPL-2.0

//! The requests. The number of the request that the interface calls `KFI_SHIM_NAME` is
//! `KFI_SHIM_IOC_NAME` here.

#![forbid(unsafe_code)]

mod av;
mod buffer;
mod cntr;
mod cq;
mod ep;
mod eq;
mod fabric;
mod info;
mod mr;
mod object;
mod op;
mod poll;
mod wait;
mod work;

pub(crate) use buffer::map;

use kernel::{
    ioctl::_IOC_SIZE,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use crate::{
    abi,
    estimate::Needs,
    kfi::{
        consumer::{
            Answer,
            AnyObject, //
        },
        context::Context,
        linux::uaccess::{
            self,
            Versioned, //
        }, //
    },
    object::{
        Class,
        Object, //
    },
    session::{
        Session,
        Use, //
    }, //
};

/// Where a request's structure lies in user space.
#[derive(Clone, Copy)]
struct Argument {
    ptr: UserPtr,
    size: usize,
}

impl Argument {
    /// Reads the structure.
    fn read<T: Versioned>(self) -> Result<T> {
        uaccess::read(self.ptr, self.size)
    }

    /// Reads the structure of a request that cannot be undone; `EFAULT` unless it can be written,
    /// too.
    fn read_for_update<T: Versioned>(self) -> Result<T> {
        let value = self.read()?;
        self.write(&value)?;
        Ok(value)
    }

    /// Writes the structure.
    fn write<T: Versioned>(self, value: &T) -> Result {
        uaccess::write(self.ptr, self.size, value)
    }
}

/// Fills memory of user space with zeros; `EFAULT` if it cannot be written.
fn clear(ptr: UserPtr, size: usize) -> Result {
    let zeros = [0; 64];
    let mut writer = UserSlice::new(ptr, size).writer();
    while !writer.is_empty() {
        let part = writer.len().min(zeros.len());
        writer.write_slice(zeros.get(..part).ok_or(EINVAL)?)?;
    }
    Ok(())
}

/// The number of a request without its size.
const fn without_size(command: u32) -> u32 {
    command & !abi::KFI_SHIM_IOC_SIZE_MASK
}

/// The return value of kfabric, for a member `result`.
fn result(ret: Answer) -> i32 {
    ret.map_or_else(Error::to_errno, |()| 0)
}

/// Carries out a request.
pub(crate) fn handle(session: ArcBorrow<'_, Session>, command: u32, arg: UserPtr) -> Result<isize> {
    macro_rules! dispatch {
        ($($request:ident => $handler:expr;)*) => {{
            $(const $request: u32 = without_size(abi::number::$request);)*
            let argument = Argument {
                ptr: arg,
                size: _IOC_SIZE(command),
            };
            match without_size(command) {
                $($request => {
                    session.note_request();
                    $handler(session, argument)?
                })*
                _ => return Err(ENOTTY),
            }
        }};
    }

    dispatch! {
        KFI_SHIM_IOC_VERSION => object::version;
        KFI_SHIM_IOC_CLOSE => object::close;
        KFI_SHIM_IOC_GETINFO => info::getinfo;
        KFI_SHIM_IOC_READ_INFO => info::read_info;
        KFI_SHIM_IOC_CONTROL => object::control;
        KFI_SHIM_IOC_WAIT_FD => wait::wait_fd;
        KFI_SHIM_IOC_STRERROR => object::strerror;
        KFI_SHIM_IOC_INFO_TEXT => info::info_text;
        KFI_SHIM_IOC_TOSTR => info::tostr;
        KFI_SHIM_IOC_BIND => object::bind;
        KFI_SHIM_IOC_ENABLE => object::enable;
        KFI_SHIM_IOC_HANDLED => object::handled;
        KFI_SHIM_IOC_BUFFER => buffer::buffer;
        KFI_SHIM_IOC_FABRIC => fabric::fabric;
        KFI_SHIM_IOC_DOMAIN => fabric::domain;
        KFI_SHIM_IOC_CNTR_OPEN => cntr::cntr_open;
        KFI_SHIM_IOC_CNTR_READ => |session, argument| cntr::cntr(session, argument, |cntr, value| {
            *value = cntr.read();
            Ok(())
        });
        KFI_SHIM_IOC_CNTR_READERR => |session, argument| cntr::cntr(session, argument, |cntr, value| {
            *value = cntr.readerr();
            Ok(())
        });
        KFI_SHIM_IOC_CNTR_ADD => |session, argument| {
            cntr::cntr(session, argument, |cntr, value| cntr.add(*value))
        };
        KFI_SHIM_IOC_CNTR_ADDERR => |session, argument| {
            cntr::cntr(session, argument, |cntr, value| cntr.adderr(*value))
        };
        KFI_SHIM_IOC_CNTR_SET => |session, argument| {
            cntr::cntr(session, argument, |cntr, value| cntr.set(*value))
        };
        KFI_SHIM_IOC_CNTR_SETERR => |session, argument| {
            cntr::cntr(session, argument, |cntr, value| cntr.seterr(*value))
        };
        KFI_SHIM_IOC_CNTR_WAIT => cntr::cntr_wait;
        KFI_SHIM_IOC_WAIT_OPEN => wait::wait_open;
        KFI_SHIM_IOC_WAIT => wait::wait;
        KFI_SHIM_IOC_TRYWAIT => wait::trywait;
        KFI_SHIM_IOC_POLL_OPEN => poll::poll_open;
        KFI_SHIM_IOC_POLL_ADD => poll::poll_add;
        KFI_SHIM_IOC_POLL_DEL => poll::poll_del;
        KFI_SHIM_IOC_POLL => poll::poll;
        KFI_SHIM_IOC_CQ_OPEN => cq::cq_open;
        KFI_SHIM_IOC_CQ_READ => |session, argument| cq::cq_read(session, argument, false);
        KFI_SHIM_IOC_CQ_SREAD => |session, argument| cq::cq_read(session, argument, true);
        KFI_SHIM_IOC_CQ_READERR => cq::cq_readerr;
        KFI_SHIM_IOC_CQ_WRITE => cq::cq_write;
        KFI_SHIM_IOC_CQ_SIGNAL => cq::cq_signal;
        KFI_SHIM_IOC_EQ_OPEN => eq::eq_open;
        KFI_SHIM_IOC_EQ_READ => |session, argument| eq::eq_read(session, argument, false);
        KFI_SHIM_IOC_EQ_SREAD => |session, argument| eq::eq_read(session, argument, true);
        KFI_SHIM_IOC_EQ_WRITE => eq::eq_write;
        KFI_SHIM_IOC_EQ_READERR => eq::eq_readerr;
        KFI_SHIM_IOC_EQ_WRITE_ERROR => eq::eq_write_error;
        KFI_SHIM_IOC_AV_OPEN => av::av_open;
        KFI_SHIM_IOC_AV_INSERT => |session, argument| {
            av::av_insert(session, argument, av::Form::Binary)
        };
        KFI_SHIM_IOC_AV_INSERTSVC => |session, argument| {
            av::av_insert(session, argument, av::Form::Service)
        };
        KFI_SHIM_IOC_AV_INSERTSYM => |session, argument| {
            av::av_insert(session, argument, av::Form::Symmetric)
        };
        KFI_SHIM_IOC_AV_INSERTED => av::av_inserted;
        KFI_SHIM_IOC_AV_REMOVE => av::av_remove;
        KFI_SHIM_IOC_AV_LOOKUP => av::av_lookup;
        KFI_SHIM_IOC_AV_STRADDR => av::av_straddr;
        KFI_SHIM_IOC_MR => mr::mr;
        KFI_SHIM_IOC_MR_KEY => mr::mr_key;
        KFI_SHIM_IOC_MR_REFRESH => mr::mr_refresh;
        KFI_SHIM_IOC_MR_RAW_ATTR => mr::mr_raw_attr;
        KFI_SHIM_IOC_MR_MAP_RAW => mr::mr_map_raw;
        KFI_SHIM_IOC_MR_UNMAP_KEY => mr::mr_unmap_key;
        KFI_SHIM_IOC_EP_OPEN => ep::ep_open;
        KFI_SHIM_IOC_TX_CONTEXT => |session, argument| ep::tx_context(session, argument, false);
        KFI_SHIM_IOC_RX_CONTEXT => |session, argument| ep::rx_context(session, argument, false);
        KFI_SHIM_IOC_STX_CONTEXT => |session, argument| ep::tx_context(session, argument, true);
        KFI_SHIM_IOC_SRX_CONTEXT => |session, argument| ep::rx_context(session, argument, true);
        KFI_SHIM_IOC_EP_ALIAS => ep::ep_alias;
        KFI_SHIM_IOC_CANCEL => ep::cancel;
        KFI_SHIM_IOC_GETOPT => ep::getopt;
        KFI_SHIM_IOC_SETOPT => ep::setopt;
        KFI_SHIM_IOC_GETNAME => ep::getname;
        KFI_SHIM_IOC_SETNAME => ep::setname;
        KFI_SHIM_IOC_GETPEER => ep::getpeer;
        KFI_SHIM_IOC_LISTEN => |session, argument| ep::cm_passive(session, argument, |pep, _| {
            pep.listen()
        });
        KFI_SHIM_IOC_CONNECT => |session, argument| ep::cm(session, argument, |ep, request, param| {
            ep.connect(&request.addr, param)
        });
        KFI_SHIM_IOC_ACCEPT => |session, argument| ep::cm(session, argument, |ep, _, param| {
            ep.accept(param)
        });
        KFI_SHIM_IOC_REJECT => |session, argument| ep::cm_passive(session, argument, |pep, param| {
            pep.reject_null(param)
        });
        KFI_SHIM_IOC_SHUTDOWN => |session, argument| ep::cm(session, argument, |ep, request, _| {
            ep.shutdown(request.flags)
        });
        KFI_SHIM_IOC_JOIN => ep::join;
        KFI_SHIM_IOC_POST => op::post;
        KFI_SHIM_IOC_POST_BATCH => op::post_batch;
        KFI_SHIM_IOC_QUERY_ATOMIC => op::query_atomic;
        KFI_SHIM_IOC_ATOMIC_VALID => op::atomic_valid;
        KFI_SHIM_IOC_QUEUE_WORK => work::queue_work;
        KFI_SHIM_IOC_QUEUE_WORK_BATCH => work::queue_work_batch;
        KFI_SHIM_IOC_CANCEL_WORK => work::cancel_work;
        KFI_SHIM_IOC_RELEASE_WORK => work::release_work;
        KFI_SHIM_IOC_FLUSH_WORK => work::flush_work;
    }
    Ok(0)
}

/// Answers a request that opens an object; the handle becomes valid when the answer has arrived.
///
/// `number` is its context.
fn opened<T: Class>(
    session: ArcBorrow<'_, Session>,
    number: u64,
    needs: impl Into<Needs>,
    open: impl FnOnce(Context) -> Result<T>,
    answer: impl FnOnce(i32, u32) -> Result,
) -> Result {
    opened_by(
        session,
        number,
        needs,
        |context, _| Ok(open(context)),
        |result, handle, _| answer(result, handle),
    )
}

/// As [`opened`], for those that need the handle, look at the object, or may fail by themselves.
fn opened_by<T: Class>(
    session: ArcBorrow<'_, Session>,
    number: u64,
    needs: impl Into<Needs>,
    open: impl FnOnce(Context, u32) -> Result<Answer<T>>,
    answer: impl FnOnce(i32, u32, Option<&T>) -> Result,
) -> Result {
    let slot = session.reserve(number, needs)?;
    match open(slot.context(), slot.handle())? {
        Ok(object) => {
            let object = Arc::new(object, GFP_KERNEL_ACCOUNT)?;
            answer(0, slot.handle(), Some(&object))?;
            slot.fill(T::into_object(object));
            Ok(())
        }
        Err(error) => answer(error.to_errno(), 0, None),
    }
}

/// Returns whether attributes are wanted; `EINVAL` for unknown flags.
fn has_attr(flags: u32) -> Result<bool> {
    if flags & !abi::KFI_SHIM_NO_ATTR != 0 {
        return Err(EINVAL);
    }
    Ok(flags & abi::KFI_SHIM_NO_ATTR == 0)
}

/// Returns whether attributes are wanted, and whether a handler is; `EINVAL` for unknown flags.
fn queue_flags(flags: u32) -> Result<(bool, bool)> {
    let handler = flags & abi::KFI_SHIM_HANDLER != 0;
    Ok((has_attr(flags & !abi::KFI_SHIM_HANDLER)?, handler))
}

/// Returns the object that is handed over whatever its class; `None` for 0.
fn optional_any(session: ArcBorrow<'_, Session>, handle: u32) -> Result<Option<Use<Object>>> {
    match handle {
        0 => Ok(None),
        handle => Ok(Some(Session::any(session, handle)?)),
    }
}

/// Returns the first `len` bytes of an array; `EINVAL` if there are not as many.
fn part(array: &mut [u8], len: u32) -> Result<&mut [u8]> {
    array.get_mut(..usize::try_from(len)?).ok_or(EINVAL)
}

/// A length that kfabric returned, in 32 bits.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Returns the object as kfabric knows it.
fn any(object: &Option<Use<Object>>) -> Result<Option<AnyObject<'_>>> {
    match object {
        None => Ok(None),
        Some(object) => Ok(Some(object.any().ok_or(EINVAL)?)),
    }
}

/// The return value of a function that returns a number, for a member `result`.
fn number(ret: Answer<usize>) -> i32 {
    ret.map_or_else(Error::to_errno, |number| {
        i32::try_from(number).unwrap_or(i32::MAX)
    })
}

/// The most elements of an array in user space.
const ARRAY_MAX: usize = 4096;
