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
            AnyObject,
            CompletionQueue,
            CompletionQueueAttr,
            Counter,
            CounterAttr,
            Domain,
            EventQueue,
            EventQueueAttr,
            Fabric,
            PollSet,
            WaitSet, //
        },
        fid::Context,
        file::{
            AnonymousFile,
            Descriptor, //
        },
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
        WaitFd,
        Waitable, //
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
        KFI_SHIM_IOC_WAIT_OPEN => wait_open;
        KFI_SHIM_IOC_WAIT => wait;
        KFI_SHIM_IOC_TRYWAIT => trywait;
        KFI_SHIM_IOC_POLL_OPEN => poll_open;
        KFI_SHIM_IOC_POLL_ADD => poll_add;
        KFI_SHIM_IOC_POLL_DEL => poll_del;
        KFI_SHIM_IOC_POLL => poll;
        KFI_SHIM_IOC_CQ_OPEN => cq_open;
        KFI_SHIM_IOC_CQ_READ => |session, argument| cq_read(session, argument, false);
        KFI_SHIM_IOC_CQ_SREAD => |session, argument| cq_read(session, argument, true);
        KFI_SHIM_IOC_CQ_READERR => cq_readerr;
        KFI_SHIM_IOC_CQ_WRITE => cq_write;
        KFI_SHIM_IOC_CQ_SIGNAL => cq_signal;
        KFI_SHIM_IOC_EQ_OPEN => eq_open;
        KFI_SHIM_IOC_EQ_READ => |session, argument| eq_read(session, argument, false);
        KFI_SHIM_IOC_EQ_SREAD => |session, argument| eq_read(session, argument, true);
        KFI_SHIM_IOC_EQ_WRITE => eq_write;
        KFI_SHIM_IOC_EQ_READERR => eq_readerr;
        KFI_SHIM_IOC_EQ_WRITE_ERROR => eq_write_error;
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
                Some(object) => Some(object.any().ok_or(EINVAL)?),
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
        Object::CompletionQueue(queue) => carry_out!(queue),
        Object::EventQueue(queue) => carry_out!(queue),
        Object::WaitSet(set) => carry_out!(set),
        Object::PollSet(set) => carry_out!(set),
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

/// Makes a descriptor for an object.
fn wait_fd(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenWaitFd = argument.read()?;
    if request.flags & !abi::KFI_SHIM_WAIT_NONBLOCK != 0 {
        return Err(EINVAL);
    }
    let nonblock = request.flags & abi::KFI_SHIM_WAIT_NONBLOCK != 0;
    let descriptor = Descriptor::reserve()?;
    let file = match &*Session::any(session, request.handle)? {
        Object::Counter(_) => file_for::<Counter>(session, request.handle, nonblock),
        Object::CompletionQueue(_) => {
            file_for::<CompletionQueue>(session, request.handle, nonblock)
        }
        Object::EventQueue(_) => file_for::<EventQueue>(session, request.handle, nonblock),
        Object::WaitSet(_) => file_for::<WaitSet>(session, request.handle, nonblock),
        _ => return Err(EINVAL),
    };
    match file? {
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

/// Makes a file for the object of a class.
fn file_for<O: Class + Waitable>(
    session: ArcBorrow<'_, Session>,
    handle: u32,
    nonblock: bool,
) -> Result<core::result::Result<AnonymousFile, Refused>> {
    WaitFd::<O>::new_file(Session::get(session, handle)?, nonblock)
}

/// Returns whether attributes are wanted; `EINVAL` for unknown flags.
fn has_attr(flags: u32) -> Result<bool> {
    if flags & !abi::KFI_SHIM_NO_ATTR != 0 {
        return Err(EINVAL);
    }
    Ok(flags & abi::KFI_SHIM_NO_ATTR == 0)
}

/// Returns the object that is handed over as a wait set, whatever its class; `None` for 0.
fn wait_set(session: ArcBorrow<'_, Session>, handle: u32) -> Result<Option<Use<Object>>> {
    match handle {
        0 => Ok(None),
        handle => Ok(Some(Session::any(session, handle)?)),
    }
}

/// Returns the object as kfabric knows it.
fn any(object: &Option<Use<Object>>) -> Result<Option<AnyObject<'_>>> {
    match object {
        None => Ok(None),
        Some(object) => Ok(Some(object.any().ok_or(EINVAL)?)),
    }
}

/// What kfabric returned that returns a number, for a member `result`.
fn number(ret: Result<usize>) -> i32 {
    ret.map_or_else(Error::to_errno, |number| {
        i32::try_from(number).unwrap_or(i32::MAX)
    })
}

/// Opens a wait set.
fn wait_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::WaitOpen = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let attr = has_attr(request.flags)?.then_some((request.wait_obj, request.attr_flags));
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    opened(
        session,
        || WaitSet::open(&fabric, attr),
        |result, handle| {
            request.result = result;
            request.wait_set = handle;
            argument.write(&request)
        },
    )
}

/// Waits for a wait set.
fn wait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Wait = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<WaitSet>(session, request.wait_set)?;
    request.result = result(set.wait(request.timeout));
    argument.write(&request)
}

/// The most elements of an array in user space.
const ARRAY_MAX: usize = 4096;

/// Asks whether it is safe to block.
fn trywait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::TryWait = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let count = usize::try_from(request.count)?;
    if count > ARRAY_MAX {
        return Err(E2BIG);
    }
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    if request.handles == 0 {
        request.result = result(fabric.trywait_null(request.count));
        return argument.write(&request);
    }
    let ptr = UserPtr::from_addr(usize::try_from(request.handles)?);
    let mut reader = UserSlice::new(ptr, count * size_of::<u32>()).reader();
    let mut handles = KVec::with_capacity(count, GFP_KERNEL)?;
    let mut objects = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        let handle = reader.read::<u32>()?;
        handles.push(handle, GFP_KERNEL)?;
        objects.push(Session::any(session, handle)?, GFP_KERNEL)?;
    }
    let mut fids = KVec::with_capacity(count, GFP_KERNEL)?;
    for object in &objects {
        fids.push(object.any().ok_or(EINVAL)?, GFP_KERNEL)?;
    }
    request.result = result(session.arm(&handles, || fabric.trywait(&fids))?);
    argument.write(&request)
}

/// Opens a poll set.
fn poll_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollOpen = argument.read()?;
    let flags = has_attr(request.flags)?.then_some(request.attr_flags);
    let domain = Session::get::<Domain>(session, request.domain)?;
    opened(
        session,
        || PollSet::open(&domain, flags),
        |result, handle| {
            request.result = result;
            request.poll_set = handle;
            argument.write(&request)
        },
    )
}

/// Adds a member to a poll set.
fn poll_add(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollMember = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    let object = Session::any(session, request.member)?;
    let member = object.any().ok_or(EINVAL)?;
    let added = session.add_member(request.poll_set, request.member, || {
        set.add(member, request.flags)
    })?;
    request.result = result(added);
    argument.write(&request)
}

/// Removes a member from a poll set.
fn poll_del(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollMember = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    let object = Session::any(session, request.member)?;
    let member = object.any().ok_or(EINVAL)?;
    let removed = session.remove_member(request.poll_set, request.member, || {
        set.del(member, request.flags)
    });
    request.result = result(removed);
    argument.write(&request)
}

/// Asks a poll set for events.
fn poll(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Poll = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let room = usize::try_from(request.count).unwrap_or(0);
    if room > ARRAY_MAX {
        return Err(E2BIG);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    if request.contexts == 0 {
        request.result = number(set.poll(None, request.count));
        return argument.write(&request);
    }
    let ptr = UserPtr::from_addr(usize::try_from(request.contexts)?);
    let mut writer = UserSlice::new(ptr, room * size_of::<u64>()).writer();
    let mut contexts = KVec::with_capacity(room, GFP_KERNEL)?;
    for _ in 0..room {
        contexts.push(Context::NONE, GFP_KERNEL)?;
    }
    let polled = set.poll(Some(&mut contexts), request.count);
    for context in contexts.iter().take(polled.unwrap_or(0)) {
        writer.write(&(context.as_number() as u64))?;
    }
    request.result = number(polled);
    argument.write(&request)
}

/// Opens a completion queue.
fn cq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqOpen = argument.read()?;
    let domain = Session::get::<Domain>(session, request.domain)?;
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
    let attr = if has_attr(request.flags)? {
        Some(CompletionQueueAttr {
            size: usize::try_from(request.size)?,
            flags: request.attr_flags,
            format: request.format,
            wait_obj: request.wait_obj,
            wait_cond: request.wait_cond,
            wait_set: any(&set)?,
        })
    } else {
        None
    };
    opened(
        session,
        || CompletionQueue::open(&domain, attr, context),
        |result, handle| {
            request.result = result;
            request.cq = handle;
            argument.write(&request)
        },
    )
}

/// Takes completions out.
fn cq_read(session: ArcBorrow<'_, Session>, argument: Argument, sleep: bool) -> Result {
    let mut request: abi::CqRead = argument.read_for_update()?;
    let count = usize::try_from(request.count)?;
    if request.count > abi::KFI_SHIM_CQ_READ_MAX {
        return Err(E2BIG);
    }
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let ptr = UserPtr::from_addr(usize::try_from(request.entries)?);
    let mut writer = UserSlice::new(ptr, count * size_of::<abi::CqEntry>()).writer();
    let completions = cq.read(count, sleep.then_some(request.timeout));
    request.result = match completions {
        Ok(completions) => {
            for (entry, src_addr) in &completions {
                writer.write(&abi::CqEntry {
                    op_context: entry.op_context.addr() as u64,
                    flags: entry.flags,
                    len: entry.len as u64,
                    buf: entry.buf.addr() as u64,
                    data: entry.data,
                    tag: entry.tag,
                    src_addr: *src_addr,
                })?;
            }
            number(Ok(completions.len()))
        }
        Err(error) => error.to_errno(),
    };
    argument.write(&request)
}

/// Takes an error out.
fn cq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqError = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    match cq.readerr() {
        Ok(error) => {
            request.result = 1;
            request.entry = abi::CqEntry {
                op_context: error.op_context.addr() as u64,
                flags: error.flags,
                len: error.len as u64,
                buf: error.buf.addr() as u64,
                data: error.data,
                tag: error.tag,
                src_addr: 0,
            };
            request.olen = error.olen as u64;
            request.err = error.err;
            request.prov_errno = error.prov_errno;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds a completion or an error, as the software provider lets tests do.
fn cq_write(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqError = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let entry = abi::CqErrEntry {
        op_context: context(request.entry.op_context)?.as_raw(),
        flags: request.entry.flags,
        len: usize::try_from(request.entry.len)?,
        buf: context(request.entry.buf)?.as_raw(),
        data: request.entry.data,
        tag: request.entry.tag,
        olen: usize::try_from(request.olen)?,
        err: request.err,
        prov_errno: request.prov_errno,
        ..pin_init::zeroed()
    };
    request.result = result(cq.write(&entry));
    argument.write(&request)
}

/// Ends waits for a completion queue.
fn cq_signal(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqSignal = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    request.result = result(cq.signal());
    argument.write(&request)
}

/// Opens an event queue.
fn eq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqOpen = argument.read()?;
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
    let attr = if has_attr(request.flags)? {
        Some(EventQueueAttr {
            size: usize::try_from(request.size)?,
            flags: request.attr_flags,
            wait_obj: request.wait_obj,
            wait_set: any(&set)?,
        })
    } else {
        None
    };
    opened(
        session,
        || EventQueue::open(&fabric, attr, context),
        |result, handle| {
            request.result = result;
            request.eq = handle;
            argument.write(&request)
        },
    )
}

/// Reads a request about an event and checks it.
fn eq_request(argument: Argument) -> Result<abi::EqEvent> {
    let request: abi::EqEvent = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    if request.len > abi::KFI_SHIM_EVENT_MAX {
        return Err(E2BIG);
    }
    Ok(request)
}

/// Takes an event out.
fn eq_read(session: ArcBorrow<'_, Session>, argument: Argument, sleep: bool) -> Result {
    let mut request = eq_request(argument)?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let len = usize::try_from(request.len)?;
    request.data.fill(0);
    let data = request.data.get_mut(..len).ok_or(E2BIG)?;
    match eq.read(data, request.flags, sleep.then_some(request.timeout)) {
        Ok((event, len)) => {
            request.event = event;
            request.result = number(Ok(len));
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds an event.
fn eq_write(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = eq_request(argument)?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let data = request.data.get(..usize::try_from(request.len)?);
    let data = data.ok_or(E2BIG)?;
    request.result = number(eq.write(request.event, data, request.flags));
    argument.write(&request)
}

/// Takes an error out of an event queue.
fn eq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqError = argument.read_for_update()?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    match eq.readerr() {
        Ok((error, len)) => {
            request.result = number(Ok(len));
            request.context = error.context.addr() as u64;
            request.data = error.data;
            request.err = error.err;
            request.prov_errno = error.prov_errno;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds an error to an event queue, as the software provider lets tests do.
fn eq_write_error(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqError = argument.read_for_update()?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let entry = abi::EqErrEntry {
        context: context(request.context)?.as_raw(),
        data: request.data,
        err: request.err,
        prov_errno: request.prov_errno,
        ..pin_init::zeroed()
    };
    request.result = result(eq.write_error(&entry));
    argument.write(&request)
}
