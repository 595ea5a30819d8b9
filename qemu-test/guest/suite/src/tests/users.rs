// SPDX-License-Identifier: GPL-2.0

//! Users of /dev/kfi, the powers of a descriptor of it, and secrets that are not told.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;

use kfi::uapi::{self, request};
use kfi::{
    bits, AvAttr, BufferKind, CntrAttr, Counter, CqAttr, EpInfo, Error, Form, InfoEntry, KfiErrno,
    Kind, Operation, Session,
};
use kfi_host::memory::Guarded;
use kfi_host::process::{self, Status};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::child;
use crate::env::Env;
use crate::raw::MappedPage;
use crate::rig::{query, until, Rig};
use crate::tests::module::{users_of, Modules};
use crate::tests::wait_fd::{receive_fd, send_fd};
use crate::{check, check_eq, raw, tests};

tests! {
    "users";
    "only-the-owner-opens" ["kfi_shim.h"] only_owner;
    "knobs-are-the-owners" ["kfi_shim.h"] only_owner_of_knobs;
    "descriptor-is-inherited" ["kfi_shim.h"] inherited;
    "descriptor-is-passed" ["kfi_shim.h R-CLOSE-8"] passed;
    "descriptor-is-left-to-a-kernel-thread" ["kfi_shim.h R-CLOSE-8"] left_to_kernel;
    "descriptor-ends-with-exec" ["kfi_shim.h"] exec;
    "sandboxed" ["kfi_shim.h R-CLOSE-8"] sandboxed;
    "memory-of-a-user" ["kfi_shim.h"] memory_of_a_user;
    "memory-without-sessions" ["kfi_shim.h"] memory_without_sessions;
    "objects-of-a-user" ["kfi_shim.h R-CLOSE-8"] objects_of_a_user;
    "sessions-of-a-user" ["kfi_shim.h R-CLOSE-8"] sessions_of_a_user;
    "info-tells-nothing-else" ["kfi_shim.h"] info_tells;
    "answers-tell-nothing-else" ["kfi_shim.h"] answers_tell;
    "completions-tell-nothing-else" ["kfi_shim.h"] completions_tell;
}

/// Nobody in particular.
const NOBODY: u32 = 65534;

/// Makes this thread, the only one, an unprivileged user.
fn become_nobody() -> Outcome {
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_gid(Gid::from_raw(NOBODY))?;
    rustix::thread::set_thread_uid(Uid::from_raw(NOBODY))?;
    Ok(())
}

/// Runs something as nobody.
fn as_nobody(run: impl FnOnce() -> Outcome) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    in_child(|| {
        become_nobody()?;
        run()
    })
}

/// Runs something in another process.
fn in_child(run: impl FnOnce() -> Outcome) -> Outcome {
    let (status, text) = child::run(run)?;
    check_eq!(status, Status::Exited(0), "{text}");
    Ok(())
}

fn only_owner(_: &Env) -> Outcome {
    let node = fs::metadata(kfi::DEVICE)?;
    check_eq!(node.permissions().mode() & 0o7777, 0o600);
    check_eq!((node.uid(), node.gid()), (0, 0));
    as_nobody(|| {
        let denied = Session::open().err();
        check_eq!(denied, Some(Error::Os(Errno::ACCESS)));
        Ok(())
    })
}

fn only_owner_of_knobs(_: &Env) -> Outcome {
    let knob = "/sys/kernel/debug/kfi_soft/nic0/drop";
    if fs::metadata(knob).is_err() {
        return Err(Stop::Skip(format!("no {knob}")));
    }
    as_nobody(|| {
        check!(fs::write(knob, "every=1").is_err(), "written by nobody");
        check!(fs::read(knob).is_err(), "read by nobody");
        Ok(())
    })
}

fn inherited(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let (theirs, session) = (counter.clone(), rig.session.clone());
    // A process that was given the descriptor may use it, and only that.
    as_nobody(move || {
        theirs.add(4)?;
        check_eq!(theirs.read()?, 4);
        for entry in fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten()
        {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if target == std::path::Path::new(kfi::DEVICE) {
                let opened = Session::open_at(entry.path()).err();
                check_eq!(opened, Some(Error::Os(Errno::ACCESS)));
            }
        }
        drop(session);
        std::mem::forget(theirs);
        Ok(())
    })?;
    check_eq!(counter.read()?, 4);
    Ok(())
}

fn passed(env: &Env) -> Outcome {
    let (ours, theirs) = UnixStream::pair()?;
    let mut opener = process::fork(|| {
        let Ok(rig) = Rig::new(env) else { return 1 };
        let Ok(counter) = rig.counter() else { return 2 };
        let fd = rig.session.as_fd();
        let Ok(()) = send_fd(&theirs, &fd) else {
            return 3;
        };
        let Ok(()) = send_fd(&theirs, &fd) else {
            return 4;
        };
        std::mem::forget(counter);
        // All that this process has goes, but not the session.
        0
    })?;
    let first: OwnedFd = receive_fd(&ours)?;
    let second: OwnedFd = receive_fd(&ours)?;
    opener.wait()?;
    let (first, second) = (Session::from(first), Session::from(second));
    // Both are the same session, whose objects have lost the process that had opened them.
    as_nobody(|| {
        let list = second.getinfo(&query(env))?;
        check!(
            first.close_handle(list.handle()).is_ok(),
            "the same session"
        );
        std::mem::forget(list);
        Ok(())
    })?;
    drop(first);
    let list = second.getinfo(&query(env))?;
    check!(!list.entries().is_empty(), "no answer");
    Ok(())
}

/// Another program inherits neither the session nor its wait descriptors.
fn exec(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let wait_fd = counter.wait_fd()?;
    for fd in [rig.session.as_fd(), wait_fd.as_fd()] {
        let flags = rustix::io::fcntl_getfd(fd)?;
        check_eq!(flags, rustix::io::FdFlags::CLOEXEC);
    }
    let shell = std::path::Path::new("/bin/ls");
    if !shell.exists() {
        return Err(Stop::Skip(format!("no {}", shell.display())));
    }
    let output = std::process::Command::new(shell)
        .args(["-l", "/proc/self/fd"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    check!(output.status.success(), "{text}");
    check!(!text.contains("kfi"), "inherited: {text}");
    drop((wait_fd, counter));
    rig.close()
}

/// In a sandbox that allows read(2) and write(2) only, a wait descriptor still works. A request
/// kills, and the session ends as it does whenever somebody is killed.
fn sandboxed(env: &Env) -> Outcome {
    let (reader, writer) = rustix::pipe::pipe()?;
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waits = counter.wait_fd()?;
    counter.add(5)?;
    let mut child = process::fork(|| {
        let own = || -> Result<(Rig, std::sync::Arc<kfi::Counter>), Stop> {
            let rig = Rig::new(env)?;
            let counter = rig.counter()?;
            Ok((rig, counter))
        };
        let Ok(own) = own() else { return 1 };
        let strict = rustix::thread::SecureComputingMode::Strict;
        if rustix::thread::set_secure_computing_mode(strict).is_err() {
            return 2;
        }
        let value = waits.read().map_or(0, |event| event.value);
        let _ = rustix::io::write(&writer, &value.to_ne_bytes());
        let _ = own.1.add(1);
        // Not reached.
        let _ = rustix::io::write(&writer, &value.to_ne_bytes());
        3
    })?;
    let status = child.wait()?;
    if status == Status::Exited(2) {
        return Err(Stop::Skip("this kernel has no seccomp".to_owned()));
    }
    // Or a child that tells nothing is waited for.
    drop(writer);
    let mut told = [0; 32];
    let length = rustix::io::read(&reader, &mut told)?;
    check_eq!(told[..length], 5_u64.to_ne_bytes());
    check_eq!(
        status,
        Status::Signaled(rustix::process::Signal::KILL.as_raw())
    );
    drop((waits, counter));
    rig.close()
}

/// Makes this thread, the only one, somebody else who may open the device, too.
pub fn become_another_user() -> Outcome {
    let root = Uid::ROOT;
    Ok(rustix::thread::set_thread_res_uid(
        Uid::from_raw(NOBODY),
        root,
        root,
    )?)
}

/// Runs something in another process, as that.
fn as_another_user(run: impl FnOnce() -> Outcome) -> Outcome {
    in_child(|| {
        become_another_user()?;
        run()
    })
}

/// All sessions of a user have one limit, and other users have their own.
fn memory_of_a_user(env: &Env) -> Outcome {
    const PIECE: u64 = 32 << 20;
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    let (first, second) = (Session::open()?, Session::open()?);
    let mut buffers = Vec::new();
    // Taken in turn, so that neither session comes to its own limit.
    let full = loop {
        let session = [&first, &second][buffers.len() % 2];
        match session.buffer(BufferKind::VMALLOC, PIECE) {
            Ok(buffer) => buffers.push(buffer),
            Err(error) => break error,
        }
    };
    check_eq!(full, Error::Os(Errno::DQUOT));
    env.note(format!(
        "{} MiB in two sessions",
        (buffers.len() as u64 * PIECE) >> 20
    ));
    for session in [&first, &second, &Session::open()?] {
        let result = session.buffer(BufferKind::VMALLOC, PIECE).err();
        check_eq!(result, Some(Error::Os(Errno::DQUOT)));
    }
    as_another_user(|| {
        Session::open()?.buffer(BufferKind::VMALLOC, PIECE)?;
        Ok(())
    })?;
    // Memory that one session gives back may go to another one.
    buffers.pop();
    buffers.push(Session::open()?.buffer(BufferKind::VMALLOC, PIECE)?);
    drop(buffers);
    Session::open()?.buffer(BufferKind::VMALLOC, PIECE)?;
    Ok(())
}

/// Mapped memory counts on when the user has no session any more.
fn memory_without_sessions(env: &Env) -> Outcome {
    const PIECE: u64 = 1 << 20;
    let full = Some(Error::Os(Errno::DQUOT));
    let modules = Modules::new(env)?;
    // A little more than the pieces, for what is needed to know of them.
    modules.with_device(c"max_user_memory=8454144", || {
        let mut pages = Vec::new();
        for _ in 0..8 {
            let session = Session::open()?;
            let buffer = session.buffer(BufferKind::VMALLOC, PIECE)?;
            pages.push(MappedPage::new(&session, buffer.offset())?);
        }
        for _ in 0..3 {
            let refused = Session::open()?.buffer(BufferKind::VMALLOC, PIECE).err();
            check_eq!(refused, full);
        }
        as_another_user(|| {
            // The pages of the first user are mapped in here, too.
            Session::open()?.buffer(BufferKind::VMALLOC, 8 * PIECE)?;
            Ok(())
        })?;
        pages.pop();
        let session = Session::open()?;
        let buffer = session.buffer(BufferKind::VMALLOC, PIECE)?;
        check_eq!(session.buffer(BufferKind::VMALLOC, PIECE).err(), full);
        drop((pages, buffer, session));
        Session::open()?.buffer(BufferKind::VMALLOC, 8 * PIECE)?;
        Ok(())
    })
}

/// Where objects of a user are counted one by one.
const FEW: usize = 100;

/// One more object.
fn counter(rig: &Rig) -> kfi::Result<Counter> {
    rig.domain.counter(&CntrAttr::new())
}

/// Counters in a session until there can be no more.
fn fill(rig: &Rig) -> Result<Vec<Counter>, Stop> {
    let mut counters = Vec::new();
    loop {
        match counter(rig) {
            Ok(counter) => counters.push(counter),
            Err(Error::Os(Errno::MFILE)) => return Ok(counters),
            Err(error) => return Err(error.into()),
        }
        check!(counters.len() < FEW, "more than {FEW}");
    }
}

/// All sessions of a user have one limit, and other users have their own. An object that is refused,
/// is closed or goes with its process is given back, exactly.
fn objects_of_a_user(env: &Env) -> Outcome {
    /// Objects of a rig: a session, an answer, a fabric and a domain.
    const RIG: usize = 4;
    let full = Some(Error::Os(Errno::MFILE));
    let modules = Modules::new(env)?;
    modules.with_device(c"max_objects=90 max_user_objects=100", || {
        let (first, second) = (Rig::new(env)?, Rig::new(env)?);
        let mut counters = vec![fill(&first)?];
        // Its own limit comes first.
        check_eq!(counters[0].len(), 90 - (RIG - 1));
        // Refused by that limit, it has taken nothing of the other one.
        check_eq!(counter(&first).err(), full);
        counters.push(fill(&second)?);
        check_eq!(counters[0].len() + counters[1].len(), FEW - 2 * RIG);
        for rig in [&first, &second] {
            check_eq!(rig.session.getinfo(&query(env)).err(), full);
            let buffer = rig.session.buffer(BufferKind::VMALLOC, 1);
            check_eq!(buffer.err(), full);
        }
        check_eq!(Session::open().err(), full);
        as_another_user(|| {
            let rig = Rig::new(env)?;
            check_eq!(fill(&rig)?.len(), 90 - (RIG - 1));
            Ok(())
        })?;
        // One out, one in, in whichever session.
        counters[0].pop();
        let Ok(last) = counter(&second) else {
            return Err(Stop::fail("nothing was given back"));
        };
        check_eq!(counter(&first).err(), full);
        drop(last);
        // A request that fails in the provider, or after it, takes nothing.
        for _ in 0..FEW {
            let flags = CntrAttr::new().flags(1);
            let refused = first.domain.counter(&flags).err();
            check_eq!(refused, Some(Error::Fabric(KfiErrno::EINVAL)));
            let refused = second.session.buffer(BufferKind::VMALLOC, 0).err();
            check_eq!(refused, Some(Error::Os(Errno::INVAL)));
        }
        check_eq!(fill(&second)?.len(), 1);
        drop(counters);
        // A process that is killed holding all that there is.
        for _ in 0..3 {
            let mut child = process::fork(|| {
                let Ok(rig) = Rig::new(env) else { return 1 };
                let Ok(counters) = fill(&rig) else { return 2 };
                if counters.len() != 90 - (RIG - 1) {
                    return 3;
                }
                let myself = rustix::process::getpid();
                let _ = rustix::process::kill_process(myself, rustix::process::Signal::KILL);
                4
            })?;
            let killed = rustix::process::Signal::KILL.as_raw();
            check_eq!(child.wait()?, Status::Signaled(killed));
        }
        first.close()?;
        check_eq!(fill(&second)?.len(), 90 - (RIG - 1));
        drop(second);
        // Nobody has anything any more.
        check_eq!(fill(&Rig::new(env)?)?.len(), 90 - (RIG - 1));
        Ok(())
    })
}

/// Empty sessions count as objects.
fn sessions_of_a_user(env: &Env) -> Outcome {
    let full = Some(Error::Os(Errno::MFILE));
    let modules = Modules::new(env)?;
    modules.with_device(c"max_user_objects=100", || {
        let open = || {
            (0..FEW)
                .map(|_| Session::open())
                .collect::<Result<Vec<_>, _>>()
        };
        for _ in 0..3 {
            let mut sessions = open()?;
            check_eq!(Session::open().err(), full);
            check_eq!(sessions[0].getinfo(&query(env)).err(), full);
            as_another_user(|| {
                Session::open()?.getinfo(&query(env))?;
                Ok(())
            })?;
            sessions.pop();
            let list = sessions[0].getinfo(&query(env))?;
            check_eq!(Session::open().err(), full);
            drop(list);
            sessions.push(Session::open()?);
        }
        let mut child = process::fork(|| {
            let Ok(_sessions) = open() else { return 1 };
            let myself = rustix::process::getpid();
            let _ = rustix::process::kill_process(myself, rustix::process::Signal::KILL);
            2
        })?;
        let killed = rustix::process::Signal::KILL.as_raw();
        check_eq!(child.wait()?, Status::Signaled(killed));
        check_eq!(open()?.len(), FEW);
        Ok(())
    })
}

/// A session whose last descriptor is in a message that only itself could receive is ended by the kernel,
/// as is all that comes after it.
fn left_to_kernel(env: &Env) -> Outcome {
    const OBJECTS: usize = 4_000;
    Modules::new(env)?.with_device(c"max_user_objects=5000", || {
        let rig = Rig::new(env)?;
        let domain = rig.domain.handle();
        let set = FromZeros::new_zeroed();
        for _ in 0..OBJECTS {
            let mut open = uapi::kfi_shim_poll_open { domain, ..set };
            rig.session.ioctl(request::POLL_OPEN, &mut open)?;
            check_eq!(open.result, 0);
        }
        let (pipe, other_end) = rustix::pipe::pipe()?;
        let (one, two) = UnixStream::pair()?;
        send_fd(&two, &rig.session)?;
        send_fd(&two, &other_end)?;
        // Nobody reads that any more: it lies in its own queue.
        send_fd(&two, &one)?;
        let again = || -> Result<usize, Stop> {
            let session = Session::open()?;
            let mut lists = Vec::new();
            while let Ok(list) = session.getinfo(&query(env)) {
                lists.push(list);
            }
            Ok(lists.len())
        };
        check!(again()? < OBJECTS, "what the session holds does not count");
        drop((rig, other_end, one, two));
        // Looks for sockets that nobody has any more.
        drop(UnixStream::pair()?);
        check_eq!(rustix::io::read(&pipe, &mut [0])?, 0, "the end of the pipe");
        until(|| Ok(again()? > OBJECTS))?;
        // What a session held counts no more, and it ends right after that.
        until(|| Ok(users_of("kfi_shim")? == 0))
    })
}

/// The structure has its members, and nothing in between: encoded anew it is the same.
fn info_tells(env: &Env) -> Outcome {
    let session = Session::open()?;
    let list = session.getinfo(&query(env))?;
    let size = size_of::<uapi::kfi_shim_info>();
    for index in 0..list.entries().len() as u32 {
        let mut answers = Vec::new();
        for poison in [0xa5, 0x5a, 0] {
            let mut buffer = Guarded::new(&vec![poison; size])?;
            raw::read_info(&session, list.handle(), index, &mut buffer, size as u32)?;
            answers.push(buffer.bytes().to_vec());
        }
        check!(answers[0] == answers[1], "something is left unwritten");
        check!(answers[0] == answers[2], "something changes");
        let info = uapi::kfi_shim_info::read_from_bytes(&answers[0])
            .map_err(|_| Stop::fail("another size"))?;
        let again = uapi::kfi_shim_info::from(&InfoEntry::from(&info));
        let different = again.as_bytes().iter().zip(&answers[0]).enumerate();
        let different: Vec<_> = different.filter(|(_, (a, b))| a != b).collect();
        check!(
            different.is_empty(),
            "bytes that say nothing: {different:?}"
        );
    }
    Ok(())
}

/// Bytes behind what was written are as they were, or zero.
#[track_caller]
fn check_rest(what: &str, bytes: &[u8], used: usize, poison: u8) -> Outcome {
    let rest = bytes.iter().enumerate().skip(used);
    let told: Vec<_> = rest.filter(|(_, b)| **b != poison && **b != 0).collect();
    if told.is_empty() {
        return Ok(());
    }
    Err(Stop::fail(format!("{what}: behind {used} bytes: {told:?}")))
}

fn answers_tell(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let session = &rig.session;
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let ep = rig.domain.endpoint(EpInfo::Entry(&rig.info, 0), 0)?;
    ep.bind(av.handle(), 0)?;
    let both = bits::TRANSMIT | bits::RECV;
    ep.bind(cq.handle(), both)?;
    ep.enable()?;
    let own = av.insert(&ep.name()?)?;
    for poison in [0xa5_u8, 0x5a] {
        let word = u32::from_ne_bytes([poison; 4]);
        let mut version = uapi::kfi_shim_version {
            interface: word,
            api: word,
        };
        session.ioctl(request::VERSION, &mut version)?;
        check!(version.interface != word && version.api != word, "version");

        let mut name = uapi::kfi_shim_name {
            ep: ep.handle(),
            addr_len: uapi::KFI_SHIM_ADDR_MAX,
            addr: [poison; uapi::KFI_SHIM_ADDR_MAX as usize],
            ..FromZeros::new_zeroed()
        };
        session.ioctl(request::GETNAME, &mut name)?;
        check_eq!((name.result, name.reserved), (0, 0));
        check_rest("name", &name.addr, name.addr_len as usize, poison)?;

        let mut lookup = uapi::kfi_shim_av_lookup {
            av: av.handle(),
            addr_len: uapi::KFI_SHIM_ADDR_MAX,
            kfi_addr: own,
            addr: [poison; uapi::KFI_SHIM_ADDR_MAX as usize],
            ..FromZeros::new_zeroed()
        };
        session.ioctl(request::AV_LOOKUP, &mut lookup)?;
        check_eq!((lookup.result, lookup.reserved), (0, 0));
        check_rest("lookup", &lookup.addr, lookup.addr_len as usize, poison)?;

        let mut text: uapi::kfi_shim_av_straddr = FromZeros::new_zeroed();
        text.av = av.handle();
        text.len = uapi::KFI_SHIM_TEXT_MAX;
        text.text.as_mut_bytes().fill(poison);
        let address = ep.name()?;
        text.addr[..address.len()].copy_from_slice(&address);
        session.ioctl(request::AV_STRADDR, &mut text)?;
        check_eq!((text.result, text.reserved), (0, 0));
        let bytes = text.text.as_bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        check_rest("text", bytes, end.unwrap_or(bytes.len()), poison)?;

        let mut option = uapi::kfi_shim_opt {
            ep: ep.handle(),
            level: uapi::KFI_OPT_ENDPOINT as i32,
            optname: uapi::KFI_OPT_MIN_MULTI_RECV as i32,
            optlen: uapi::KFI_SHIM_OPT_MAX,
            value: [poison; uapi::KFI_SHIM_OPT_MAX as usize],
            ..FromZeros::new_zeroed()
        };
        session.ioctl(request::GETOPT, &mut option)?;
        check_eq!((option.result, option.reserved), (0, 0));
        check_rest("option", &option.value, option.optlen as usize, poison)?;
    }
    drop((ep, cq, av));
    rig.close()
}

fn completions_tell(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let ep = rig.domain.endpoint(EpInfo::Entry(&rig.info, 0), 0)?;
    ep.bind(av.handle(), 0)?;
    let both = bits::TRANSMIT | bits::RECV;
    ep.bind(cq.handle(), both)?;
    ep.enable()?;
    let own = av.insert(&ep.name()?)?;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    for round in 0..50 {
        let receive = Operation::new(Kind::RECV, Form::PLAIN);
        ep.post(&receive.segment(buffer.segment(2048..2148)).context(11))?;
        let send = Operation::new(Kind::SEND, Form::PLAIN);
        ep.post(&send.segment(buffer.segment(0..100)).to(own).context(12))?;
        for _ in 0..2 {
            let entry = cq.sread_ms(1, 5_000)?.pop();
            let entry = entry.ok_or_else(|| Stop::fail("no completion"))?;
            // Contexts are what user space gave, never an address of the kernel.
            check!([11, 12].contains(&entry.op_context), "{entry:?}");
            check_eq!((entry.data, entry.tag), (0, 0), "round {round}");
            let high = 1 << 63;
            check!(entry.buf & high == 0, "an address of the kernel: {entry:?}");
            // Entries of sends have none.
            let len = if entry.op_context == 11 { 100 } else { 0 };
            check_eq!(entry.len, len, "{entry:?}");
        }
    }
    match cq.read(1) {
        Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
        other => return Err(Stop::fail(format!("{other:?}"))),
    }
    drop((ep, cq, av, buffer));
    rig.close()
}
