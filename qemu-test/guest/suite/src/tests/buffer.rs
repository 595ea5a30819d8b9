// SPDX-License-Identifier: GPL-2.0

//! Memory in the kernel that user space maps.

use std::fs;
use std::os::unix::fs::FileExt;

use kfi::uapi::{self, request};
use kfi::{
    bits, AvAttr, Buffer, BufferKind, Completion, CompletionQueue, CqAttr, EpInfo, Error, Form,
    KfiErrno, Kind, MrAttr, Operation, Segment, Session,
};
use kfi_host::process::{self, Status};
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::FromZeros;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::{check, check_eq, tests};

tests! {
    "buffer" parallel;
    "kinds-and-sizes" ["kfi_shim.h"] kinds_and_sizes;
    "bad-requests" ["kfi_shim.h"] bad_requests;
    "mappings" ["kfi_shim.h"] mappings;
    alone "limit" ["kfi_shim.h"] limit;
    "mapping-outlives-handle-and-session" ["kfi_shim.h"] mapping_outlives;
    "segments" ["kfi_shim.h"] segments;
    "through-an-endpoint" ["kfi_shim.h"] through_an_endpoint;
    "killed-with-mappings" ["kfi_shim.h R-CLOSE-8"] killed;
    alone "pages-are-not-lent-out" ["kfi_shim.h"] not_lent_out;
}

const KINDS: [BufferKind; 3] = [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES];

/// Writes a pattern, reads it back through another mapping, and checks that what
/// was there before is zeros.
fn exercise(buffer: &Buffer) -> Outcome {
    let size = buffer.size() as usize;
    let zeros = buffer.bytes(0..size);
    check!(zeros.iter().all(|byte| *byte == 0), "not zeroed");
    let last = size - 1;
    for at in [0, last / 2, last] {
        buffer.write(at, &[at as u8 | 1]);
    }
    for at in [0, last / 2, last] {
        check_eq!(buffer.bytes(at..at + 1), [at as u8 | 1]);
    }
    Ok(())
}

/// Nobody takes references to the pages of a mapping (`get_user_pages()`), which would stay when the
/// buffer is gone: not even to read the process's memory by /proc.
fn not_lent_out(_: &Env) -> Outcome {
    let session = Session::open()?;
    let memory = fs::File::open("/proc/self/mem")?;
    for kind in KINDS {
        let buffer = session.buffer(kind, 8192)?;
        exercise(&buffer)?;
        let maps = fs::read_to_string("/proc/self/maps")?;
        let offset = format!("{:08x}", buffer.offset());
        let of_buffer = |line: &&str| line.contains("/dev/kfi") && line.contains(&offset);
        let line = maps.lines().find(of_buffer);
        let (start, _) = line
            .and_then(|line| line.split_once('-'))
            .ok_or_else(|| Stop::fail("no such mapping"))?;
        let start = u64::from_str_radix(start, 16).map_err(|_| Stop::fail("no address"))?;
        let read = memory.read_at(&mut [0; 8], start);
        check!(read.is_err(), "{kind:?}: pages are lent out: {read:?}");
    }
    Ok(())
}

fn kinds_and_sizes(_: &Env) -> Outcome {
    let session = Session::open()?;
    for kind in KINDS {
        for size in [1, 2, 4095, 4096, 4097, 65_536, 1_000_001] {
            let buffer = session.buffer(kind, size)?;
            check_eq!(buffer.size(), size);
            exercise(&buffer)?;
            buffer.close().map_err(|(_, error)| error)?;
        }
    }
    // More than kmalloc gives.
    let large = session.buffer(BufferKind::VMALLOC, 64 << 20)?;
    large.write((64 << 20) - 8, b"the end.");
    check_eq!(large.bytes((64 << 20) - 8..64 << 20), b"the end.");
    Ok(())
}

fn bad_requests(_: &Env) -> Outcome {
    let session = Session::open()?;
    for kind in [0, 4, u32::MAX] {
        expect_os(session.buffer(BufferKind(kind), 4096), Errno::INVAL)?;
    }
    for kind in KINDS {
        expect_os(session.buffer(kind, 0), Errno::INVAL)?;
        for size in [1 << 32, 1 << 40, u64::MAX] {
            expect_os(session.buffer(kind, size), Errno::TOOBIG)?;
        }
    }
    let mut argument = uapi::kfi_shim_buffer {
        kind: uapi::KFI_SHIM_BUFFER_VMALLOC,
        size: 1,
        reserved: 1,
        ..FromZeros::new_zeroed()
    };
    let result = session.ioctl(request::BUFFER, &mut argument);
    check_eq!(result, Err(Errno::INVAL));
    Ok(())
}

fn mappings(_: &Env) -> Outcome {
    let session = Session::open()?;
    for kind in KINDS {
        let buffer = session.buffer(kind, 3 * 4096 + 1)?;
        buffer.write(4096, b"second");
        for (offset, len) in [(0, 4096), (4096, 3 * 4096), (3 * 4096, 1), (0, 4 * 4096)] {
            buffer.map_part(offset, len, true)?;
            buffer.map_part(offset, len, false)?;
        }
        for (offset, len) in [
            (0, 4 * 4096 + 1),
            (4096, 4 * 4096),
            (4 * 4096, 1),
            (1 << 30, 1),
        ] {
            expect_os(buffer.map_part(offset, len, true), Errno::INVAL)?;
        }
        check_eq!(buffer.bytes(4096..4102), b"second");
        // Nothing has that number, or something else.
        let offset = buffer.offset();
        expect_os(
            buffer.map_part((1 << 40) - (offset & ((1 << 40) - 1)), 1, true),
            Errno::BADF,
        )?;
    }
    let rig_like = session.getinfo(&kfi::Query::new())?;
    let buffer = session.buffer(BufferKind::VMALLOC, 1)?;
    let other = u64::from(rig_like.handle()) << 32;
    let distance = other.wrapping_sub(buffer.offset());
    expect_os(buffer.map_part(distance, 1, true), Errno::INVAL)
}

/// Allocates until there is no more.
fn use_up(session: &Session, size: u64) -> Result<Vec<Buffer>, Stop> {
    let mut buffers = Vec::new();
    loop {
        match session.buffer(BufferKind::VMALLOC, size) {
            Ok(buffer) => buffers.push(buffer),
            Err(Error::Os(Errno::DQUOT)) => return Ok(buffers),
            Err(error) => return Err(error.into()),
        }
        // Not every machine is as large as its limit.
        if buffers.len() as u64 * size >= 3 << 28 {
            return Err(Stop::Skip("the limit is larger than 768 MiB".to_owned()));
        }
    }
}

fn limit(env: &Env) -> Outcome {
    let session = Session::open()?;
    expect_os(
        session.buffer(BufferKind::VMALLOC, (1 << 32) - 1),
        Errno::DQUOT,
    )?;
    let mut buffers = use_up(&session, 32 << 20)?;
    env.note(format!("{} buffers of 32 MiB", buffers.len()));
    // One that is let go can be had again, also from another handle of the file.
    for _ in 0..3 {
        buffers.pop();
        buffers.push(session.buffer(BufferKind::VMALLOC, 32 << 20)?);
        expect_os(session.buffer(BufferKind::VMALLOC, 32 << 20), Errno::DQUOT)?;
    }
    Ok(())
}

fn mapping_outlives(_: &Env) -> Outcome {
    for kind in KINDS {
        let session = Session::open()?;
        let buffer = session.buffer(kind, 10_000)?;
        buffer.write(9_990, b"0123456789");
        session.close_handle(buffer.handle())?;
        expect_os(session.close_handle(buffer.handle()), Errno::BADF)?;
        expect_os(buffer.map_part(0, 1, true), Errno::BADF)?;
        check_eq!(buffer.bytes(9_990..10_000), b"0123456789");
        drop(session);
        check_eq!(buffer.bytes(9_990..10_000), b"0123456789");
        buffer.fill(7);
        check_eq!(buffer.bytes(5_000..5_001), [7]);
    }
    Ok(())
}

fn segments(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let access = bits::REMOTE_READ;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 10_000)?;
    let register = |segment| rig.domain.register(&[segment], &MrAttr::new(access, 1));
    // Any answer of kfabric will do.
    for range in [0..0, 0..1, 0..10_000, 9_999..10_000, 10_000..10_000] {
        let result = register(buffer.segment(range.clone()));
        check!(
            !matches!(result, Err(Error::Os(_))),
            "{range:?}: {result:?}"
        );
    }
    for (offset, len) in [
        (0, 10_001),
        (10_000, 1),
        (10_001, 0),
        (u64::MAX, 1),
        (1, u64::MAX),
        (u64::MAX, u64::MAX),
    ] {
        let mut segment = buffer.all();
        segment.offset = offset;
        segment.len = len;
        expect_os(register(segment), Errno::INVAL)?;
    }
    let mut segment = buffer.all();
    segment.buffer = rig.domain.handle();
    expect_os(register(segment), Errno::INVAL)?;
    segment.buffer = u32::MAX;
    expect_os(register(segment), Errno::BADF)?;
    // NULL has no length.
    segment.buffer = 0;
    expect_os(register(segment), Errno::INVAL)?;
    // Pages have no address.
    let pages = rig.session.buffer(BufferKind::PAGES, 4096)?;
    expect_os(register(pages.all()), Errno::INVAL)?;
    drop((buffer, pages));
    rig.close()
}

/// Waits for one completion.
fn completion(cq: &CompletionQueue) -> Result<Completion, Stop> {
    let mut completions = cq.sread_ms(1, 5_000)?;
    completions
        .pop()
        .ok_or_else(|| Stop::Fail("no completion".to_owned()))
}

fn through_an_endpoint(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let entry = EpInfo::Entry(&rig.info, 0);
    let ep = match rig.domain.endpoint(entry, 0) {
        Err(Error::Fabric(KfiErrno::ENOSYS)) => {
            return Err(Stop::Skip("the provider has no endpoints".to_owned()))
        }
        ep => ep?,
    };
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    ep.bind(av.handle(), 0)?;
    ep.bind(cq.handle(), bits::TRANSMIT | bits::RECV)?;
    ep.enable()?;
    let own = av.insert(&ep.name()?)?;
    let size = 20_000;
    for kind in KINDS {
        for form in [
            Form::PLAIN,
            Form::V,
            Form::BV,
            Form::SGL,
            Form::MSG,
            Form::MSG_BV,
            Form::MSG_SGL,
        ] {
            let needs_address = [Form::PLAIN, Form::V, Form::MSG].contains(&form);
            let (from, to) = (
                rig.session.buffer(kind, size)?,
                rig.session.buffer(kind, size)?,
            );
            from.fill(form.0 as u8);
            from.write(size as usize - 3, b"end");
            let receive = Operation::new(Kind::RECV, form).segment(to.all());
            let send = Operation::new(Kind::SEND, form)
                .segment(from.all())
                .to(own)
                .context(7);
            // Numbers that could be addresses, too.
            let receive = receive.context(u64::MAX - 5);
            if kind == BufferKind::PAGES && needs_address {
                expect_os(ep.post(&receive), Errno::INVAL)?;
                expect_os(ep.post(&send), Errno::INVAL)?;
                continue;
            }
            ep.post(&receive)?;
            // Its memory stays.
            rig.session.close_handle(from.handle())?;
            expect_os(ep.post(&send), Errno::BADF)?;
            let from = rig.session.buffer(kind, size)?;
            from.fill(form.0 as u8);
            from.write(size as usize - 3, b"end");
            ep.post(
                &Operation::new(Kind::SEND, form)
                    .segment(from.all())
                    .to(own)
                    .context(7),
            )?;
            let mut contexts = [completion(&cq)?.op_context, completion(&cq)?.op_context];
            contexts.sort_unstable();
            check_eq!(contexts, [7, u64::MAX - 5], "{kind} {form}");
            let end = to.bytes(size as usize - 4..size as usize);
            check_eq!(end, [form.0 as u8, b'e', b'n', b'd'], "{kind} {form}");
        }
    }
    // A receive that never completes keeps its buffer, and goes with the endpoint.
    let kept = rig.session.buffer(BufferKind::VMALLOC, size)?;
    ep.post(&Operation::new(Kind::RECV, Form::V).segment(kept.all()))?;
    rig.session.close_handle(kept.handle())?;
    ep.post(
        &Operation::new(Kind::RECV, Form::PLAIN)
            .segment(Segment::NULL)
            .context(9),
    )?;
    ep.cancel(9)?;
    expect_fabric(cq.sread_ms(1, 5_000), KfiErrno::EAVAIL)?;
    check_eq!(cq.read_err()?.entry.op_context, 9);
    ep.close().map_err(|(_, error)| error)?;
    drop((av, cq, kept));
    rig.close()
}

fn killed(env: &Env) -> Outcome {
    for _ in 0..env.scaled(10, 2) {
        let mut child = process::fork(|| {
            let Ok(session) = Session::open() else {
                return 1;
            };
            let buffers: Vec<_> = KINDS
                .iter()
                .filter_map(|kind| session.buffer(*kind, 100_000).ok())
                .collect();
            for buffer in &buffers {
                buffer.fill(1);
            }
            loop {
                std::thread::park();
            }
        })?;
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.kill(Signal::KILL)?;
        let status = child.wait()?;
        check!(
            matches!(status, Status::Signaled(_)),
            "{status:?}, should be killed"
        );
    }
    Ok(())
}
