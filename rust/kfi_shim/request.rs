// SPDX-License-Identifier: GPL-2.0

//! The requests.

#![deny(unsafe_code)]

use kernel::{
    ioctl::_IOC_SIZE,
    prelude::*,
    str::CStr,
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
    info,
    kfi::{
        consumer::{
            self,
            Counter,
            CounterAttr,
            Domain,
            Fabric, //
        },
        fid::Context,
        file::Descriptor,
        flags::OpFlags,
        info::{
            Hints,
            Info,
            InfoRef, //
        },
        uaccess::{
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
    },
    wait_fd::{
        Refused,
        WaitFd, //
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

/// The number of a request without its size.
const fn without_size(command: u32) -> u32 {
    command & !abi::KFI_SHIM_IOC_SIZE_MASK
}

/// What kfabric returned, for a member `result`.
fn result(ret: Result) -> i32 {
    ret.map_or_else(Error::to_errno, |()| 0)
}

/// Carries out a request.
pub(crate) fn handle(session: ArcBorrow<'_, Session>, command: u32, arg: UserPtr) -> Result<isize> {
    macro_rules! dispatch {
        ($($request:ident => $handler:expr;)*) => {{
            $(const $request: u32 = without_size(abi::$request);)*
            let argument = Argument {
                ptr: arg,
                size: _IOC_SIZE(command),
            };
            match without_size(command) {
                $($request => $handler(session, argument)?,)*
                _ => return Err(ENOTTY),
            }
        }};
    }

    dispatch! {
        KFI_SHIM_IOC_VERSION => version;
        KFI_SHIM_IOC_CLOSE => close;
        KFI_SHIM_IOC_GETINFO => getinfo;
        KFI_SHIM_IOC_READ_INFO => read_info;
        KFI_SHIM_IOC_CONTROL => control;
        KFI_SHIM_IOC_WAIT_FD => wait_fd;
        KFI_SHIM_IOC_FABRIC => fabric;
        KFI_SHIM_IOC_DOMAIN => domain;
        KFI_SHIM_IOC_CNTR_OPEN => cntr_open;
        KFI_SHIM_IOC_CNTR_READ => |session, argument| cntr(session, argument, |cntr, value| {
            *value = cntr.read();
            Ok(())
        });
        KFI_SHIM_IOC_CNTR_READERR => |session, argument| cntr(session, argument, |cntr, value| {
            *value = cntr.readerr();
            Ok(())
        });
        KFI_SHIM_IOC_CNTR_ADD => |session, argument| {
            cntr(session, argument, |cntr, value| cntr.add(*value))
        };
        KFI_SHIM_IOC_CNTR_ADDERR => |session, argument| {
            cntr(session, argument, |cntr, value| cntr.adderr(*value))
        };
        KFI_SHIM_IOC_CNTR_SET => |session, argument| {
            cntr(session, argument, |cntr, value| cntr.set(*value))
        };
        KFI_SHIM_IOC_CNTR_SETERR => |session, argument| {
            cntr(session, argument, |cntr, value| cntr.seterr(*value))
        };
        KFI_SHIM_IOC_CNTR_WAIT => cntr_wait;
    }
    Ok(0)
}

/// Says what answers.
fn version(_session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    if argument.size < abi::Version::FIRST_SIZE {
        return Err(EINVAL);
    }
    argument.write(&abi::Version {
        interface: abi::KFI_SHIM_INTERFACE,
        api: consumer::version(),
    })
}

/// Closes an object.
fn close(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Close = argument.read_for_update()?;
    request.result = result(session.close(request.handle)?);
    argument.write(&request)
}

/// Reads a text of user space, `None` for null; `EINVAL` if it is too long.
fn text<'a>(ptr: u64, buffer: &'a mut [u8; TEXT_MAX + 1]) -> Result<Option<&'a CStr>> {
    if ptr == 0 {
        return Ok(None);
    }
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let reader = UserSlice::new(ptr, buffer.len()).reader();
    let text = reader.strcpy_into_buf(buffer)?;
    if text.to_bytes_with_nul().len() > TEXT_MAX {
        return Err(EINVAL);
    }
    Ok(Some(text))
}

/// The longest text, the terminating 0 included.
const TEXT_MAX: usize = abi::KFI_SHIM_NAME_MAX as usize;

/// The largest size of a structure beside the request's own; more than any version will have.
const BUFFER_MAX: usize = 1 << 16;

/// Reads hints of user space, `None` for null.
fn raw_hints(ptr: u64, size: u32) -> Result<Option<KBox<abi::ShimInfo>>> {
    if ptr == 0 {
        return Ok(None);
    }
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let size = usize::try_from(size)?;
    if size > BUFFER_MAX {
        return Err(E2BIG);
    }
    let mut raw = KBox::init(pin_init::init_zeroed::<abi::ShimInfo>(), GFP_KERNEL)?;
    uaccess::read_into(ptr, size, &mut *raw)?;
    Ok(Some(raw))
}

/// Returns the object of a class that a handle names, `None` for 0.
fn optional<T: Class>(session: ArcBorrow<'_, Session>, handle: u32) -> Result<Option<Use<Arc<T>>>> {
    match handle {
        0 => Ok(None),
        handle => Ok(Some(Session::get(session, handle)?)),
    }
}

/// Asks what there is.
fn getinfo(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::GetInfo = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let (mut node, mut service) = ([0; TEXT_MAX + 1], [0; TEXT_MAX + 1]);
    let node = text(request.node, &mut node)?;
    let service = text(request.service, &mut service)?;
    let raw = raw_hints(request.hints, request.hints_size)?;
    // The objects that the hints name stay open until the answer is there.
    let (mut fabric, mut domain) = (None, None);
    if let Some(raw) = &raw {
        fabric = optional::<Fabric>(session, raw.fabric_attr.fabric)?;
        domain = optional::<Domain>(session, raw.domain_attr.domain)?;
    }
    let hints = match &raw {
        Some(raw) => {
            let mut hints = Hints::new(info::hints(raw)?);
            if let Some(fabric) = &fabric {
                hints = hints.fabric(fabric)?;
            }
            if let Some(domain) = &domain {
                hints = hints.domain(domain)?;
            }
            Some(hints)
        }
        None => None,
    };
    let slot = session.reserve()?;

    let answer = consumer::getinfo(
        request.version,
        node,
        service,
        request.flags,
        hints.as_ref(),
    );
    request.info = 0;
    request.count = 0;
    match answer {
        Ok(answer) => {
            request.result = 0;
            request.info = slot.handle();
            request.count = u32::try_from(answer.iter().count())?;
            let answer = Arc::new(answer, GFP_KERNEL)?;
            argument.write(&request)?;
            slot.fill(Object::Info(answer));
            Ok(())
        }
        Err(error) => {
            request.result = error.to_errno();
            argument.write(&request)
        }
    }
}

/// Returns an entry of an answer; `EINVAL` if there is none.
fn entry(info: &Info, index: u32) -> Result<InfoRef<'_>> {
    info.iter().nth(usize::try_from(index)?).ok_or(EINVAL)
}

/// Copies an entry of an answer.
fn read_info(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let request: abi::ReadInfo = argument.read()?;
    let size = usize::try_from(request.buffer_size)?;
    if request.reserved != 0 || size < abi::ShimInfo::FIRST_SIZE {
        return Err(EINVAL);
    }
    if size > BUFFER_MAX {
        return Err(E2BIG);
    }
    let info = Session::get::<Info>(session, request.info)?;
    let value = info::by_value(entry(&info, request.index)?)?;
    let buffer = UserPtr::from_addr(usize::try_from(request.buffer)?);
    uaccess::write(buffer, size, &*value)
}

/// Answers a request that opens an object; the handle becomes valid when the answer has arrived.
fn opened<T: Class>(
    session: ArcBorrow<'_, Session>,
    open: impl FnOnce() -> Result<T>,
    answer: impl FnOnce(i32, u32) -> Result,
) -> Result {
    let slot = session.reserve()?;
    match open() {
        Ok(object) => {
            let object = Arc::new(object, GFP_KERNEL)?;
            answer(0, slot.handle())?;
            slot.fill(T::into_object(object));
            Ok(())
        }
        Err(error) => answer(error.to_errno(), 0),
    }
}

/// A context is a number that user space chose.
fn context(number: u64) -> Result<Context> {
    Ok(Context::from_number(usize::try_from(number)?))
}

/// Opens a fabric.
fn fabric(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenFabric = argument.read()?;
    let info = Session::get::<Info>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    let context = context(request.context)?;
    opened(
        session,
        || Fabric::open(entry, context),
        |result, handle| {
            request.result = result;
            request.fabric = handle;
            argument.write(&request)
        },
    )
}

/// Opens a domain.
fn domain(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenDomain = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    let info = Session::get::<Info>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    let context = context(request.context)?;
    opened(
        session,
        || Domain::open(&fabric, entry, context),
        |result, handle| {
            request.result = result;
            request.domain = handle;
            argument.write(&request)
        },
    )
}

/// Opens a counter.
fn cntr_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CntrOpen = argument.read()?;
    if request.reserved != 0 || request.flags & !abi::KFI_SHIM_CNTR_NO_ATTR != 0 {
        return Err(EINVAL);
    }
    let domain = Session::get::<Domain>(session, request.domain)?;
    let context = context(request.context)?;
    let wait_set = match request.wait_set {
        0 => None,
        handle => Some(Session::any(session, handle)?),
    };
    let attr = if request.flags & abi::KFI_SHIM_CNTR_NO_ATTR == 0 {
        Some(CounterAttr {
            events: request.events,
            wait_obj: request.wait_obj,
            wait_set: match &wait_set {
                None => None,
                Some(object) => Some(object.as_wait_set().ok_or(EINVAL)?),
            },
            flags: request.attr_flags,
        })
    } else {
        None
    };
    opened(
        session,
        || Counter::open(&domain, attr, context),
        |result, handle| {
            request.result = result;
            request.cntr = handle;
            argument.write(&request)
        },
    )
}

/// Reads or changes a counter.
fn cntr(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    operation: impl FnOnce(&Counter, &mut u64) -> Result,
) -> Result {
    let mut request: abi::Cntr = argument.read_for_update()?;
    let cntr = Session::get::<Counter>(session, request.cntr)?;
    request.result = result(operation(&cntr, &mut request.value));
    argument.write(&request)
}

/// Waits for a counter.
fn cntr_wait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CntrWait = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let cntr = Session::get::<Counter>(session, request.cntr)?;
    request.result = result(cntr.wait(request.threshold, request.timeout));
    argument.write(&request)
}

/// Carries out a control command.
fn control(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::ControlRequest = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let object = Session::any(session, request.handle)?;

    macro_rules! carry_out {
        ($object:expr) => {
            match request.command {
                abi::KFI_GETOPSFLAG => $object.ops_flag().map(OpFlags::as_raw),
                abi::KFI_SETOPSFLAG => $object
                    .set_ops_flag(OpFlags::from_raw(request.value))
                    .map(|()| request.value),
                abi::KFI_GETWAITOBJ => $object.wait_obj().map(|wait_obj| wait_obj.as_raw().into()),
                _ => return Err(EINVAL),
            }
        };
    }
    let ret = match &*object {
        Object::Info(_) => return Err(EINVAL),
        Object::Fabric(fabric) => carry_out!(fabric),
        Object::Domain(domain) => carry_out!(domain),
        Object::Counter(counter) => carry_out!(counter),
    };
    match ret {
        Ok(value) => {
            request.result = 0;
            request.value = value;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Makes a descriptor for a counter.
fn wait_fd(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenWaitFd = argument.read()?;
    if request.flags & !abi::KFI_SHIM_WAIT_NONBLOCK != 0 {
        return Err(EINVAL);
    }
    let nonblock = request.flags & abi::KFI_SHIM_WAIT_NONBLOCK != 0;
    let cntr = Session::get::<Counter>(session, request.handle)?;
    let descriptor = Descriptor::reserve()?;
    match WaitFd::new_file(cntr, nonblock)? {
        Ok(file) => {
            request.result = 0;
            request.fd = i32::try_from(descriptor.number())?;
            argument.write(&request)?;
            descriptor.install(file);
            Ok(())
        }
        Err(Refused(error)) => {
            request.result = error.to_errno();
            request.fd = -1;
            argument.write(&request)
        }
    }
}
