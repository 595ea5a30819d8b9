// SPDX-License-Identifier: GPL-2.0

//! Sessions and `kfi_getinfo`.

use kfi::{ApiVersion, CntrAttr, InfoEntry, KfiErrno, Query, Session};
use kfi_host::process::{self, Status};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::check::Outcome;
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, query, Rig};
use crate::{check, check_eq, tests};

tests! {
    "session" parallel;
    "version" ["kfi_shim.h"] version;
    "getinfo" ["kfi_shim.h"] getinfo;
    "getinfo-hints" ["kfi_shim.h"] getinfo_hints;
    "getinfo-nothing-matches" ["kfi_shim.h"] getinfo_nothing_matches;
    "sessions-are-separate" ["kfi_shim.h"] separate;
    "inherited-by-fork" ["kfi_shim.h"] inherited;
    "outlives-its-opener" ["kfi_shim.h R-CLOSE-8"] outlives_opener;
}

fn version(_: &Env) -> Outcome {
    let version = Session::open()?.version()?;
    check_eq!(version.interface, kfi::uapi::KFI_SHIM_INTERFACE);
    check_eq!(version.api, ApiVersion::CURRENT);
    Ok(())
}

fn getinfo(env: &Env) -> Outcome {
    let session = Session::open()?;
    let info = session.getinfo(&query(env))?;
    check!(!info.entries().is_empty(), "success, but no entry");
    for entry in info.entries() {
        env.note(format!(
            "{} {} {}, version {}",
            entry.fabric_attr.prov_name,
            entry.fabric_attr.name,
            entry.domain_attr.name,
            entry.fabric_attr.prov_version
        ));
        check!(
            !entry.fabric_attr.prov_name.is_empty(),
            "a provider without a name"
        );
        check!(
            !entry.fabric_attr.name.is_empty(),
            "a fabric without a name"
        );
        check!(
            !entry.domain_attr.name.is_empty(),
            "a domain without a name"
        );
        check!(entry.domain_attr.cntr_cnt > 0, "a domain without counters");
        // Nothing is open in this session yet.
        check_eq!(entry.fabric_attr.fabric, 0);
        check_eq!(entry.domain_attr.domain, 0);
    }
    // The same question has the same answer.
    let again = session.getinfo(&query(env))?;
    check!(
        again.entries() == info.entries(),
        "the second answer differs"
    );
    check!(
        again.handle() != info.handle(),
        "two answers with one handle"
    );
    Ok(())
}

fn getinfo_hints(env: &Env) -> Outcome {
    let session = Session::open()?;
    let all = session.getinfo(&query(env))?;
    for entry in all.entries() {
        let by_name = Query::new()
            .provider(&entry.fabric_attr.prov_name)
            .fabric(&entry.fabric_attr.name)
            .domain(&entry.domain_attr.name);
        let found = session.getinfo(&by_name)?;
        check!(!found.entries().is_empty());
        for other in found.entries() {
            check_eq!(other.fabric_attr.prov_name, entry.fabric_attr.prov_name);
            check_eq!(other.fabric_attr.name, entry.fabric_attr.name);
            check_eq!(other.domain_attr.name, entry.domain_attr.name);
        }
        // An entry that is offered may be asked for.
        let same = session.getinfo(&Query::new().hints(entry.clone()))?;
        check!(
            same.entries()
                .iter()
                .any(|e| e.domain_attr.name == entry.domain_attr.name),
            "an answer as hints does not find itself"
        );
        check_eq!(same.fabric(0)?.close().map_err(|(_, error)| error), Ok(()));
    }
    // Hints that ask for nothing are as good as none.
    let hints = InfoEntry::default();
    let count = session.getinfo(&Query::new().hints(hints))?.entries().len();
    check_eq!(count, session.getinfo(&Query::new())?.entries().len());
    Ok(())
}

fn getinfo_nothing_matches(_: &Env) -> Outcome {
    let session = Session::open()?;
    for query in [
        Query::new().provider("no such provider"),
        Query::new().fabric("no such fabric"),
        Query::new().domain("no such domain"),
        Query::new().node(c"no such node".into()),
    ] {
        expect_fabric(session.getinfo(&query), KfiErrno::ENODATA)?;
    }
    session.getinfo(&Query::new().version(ApiVersion::CURRENT))?;
    Ok(())
}

fn separate(env: &Env) -> Outcome {
    let one = Rig::new(env)?;
    let counter = one.counter()?;
    counter.set(7)?;

    // A session without any object knows no handle of another.
    let other = Session::open()?;
    for handle in [
        one.info.handle(),
        one.fabric.handle(),
        one.domain.handle(),
        counter.handle(),
    ] {
        expect_os(other.close_handle(handle), Errno::BADF)?;
    }
    check_eq!(counter.read()?, 7);

    // Two sessions may use one device, and the objects they open are different.
    let two = Rig::in_session(env, other)?;
    let second = two.domain.counter(&CntrAttr::new())?;
    second.set(9)?;
    check_eq!(counter.read()?, 7);
    drop(second);
    two.close()?;
    check_eq!(counter.read()?, 7);
    Ok(())
}

fn inherited(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let second = rig.counter()?;

    let (theirs, handle) = (counter.clone(), second.handle());
    let session = rig.session.clone();
    let mut child = process::fork(move || {
        let works = theirs.add(5).is_ok() && theirs.wait_ms(5, 0).is_ok();
        let closed = session.close_handle(handle).is_ok();
        // Without closing anything else.
        i32::from(!(works && closed))
    })?;
    check_eq!(child.wait()?, Status::Exited(0));

    // The same session: the child's changes are seen, also that it closed one.
    check_eq!(counter.read()?, 5);
    expect_os(second.read(), Errno::BADF)?;
    // Its end has not ended the session.
    counter.add(1)?;
    check_eq!(counter.read()?, 6);
    Ok(())
}

fn outlives_opener(env: &Env) -> Outcome {
    // A child opens everything, and is killed; its child has the session still.
    let (reader, writer) = rustix::pipe::pipe()?;
    let mut opener = process::fork(move || {
        let Ok(rig) = Rig::new(env) else {
            return 1;
        };
        let Ok(counter) = rig.counter() else { return 2 };
        let theirs = counter.clone();
        let Ok(heir) = process::fork(move || {
            // Wait for the end of the opener: then the parent is another.
            let opener = rustix::process::getppid();
            let _ = rustix::io::write(&writer, b"r");
            while rustix::process::getppid() == opener {
                kfi_host::thread::relax();
            }
            let works = theirs.add(3).is_ok() && theirs.read().ok() == Some(3);
            let _ = rustix::io::write(&writer, if works { b"y" } else { b"n" });
            0
        }) else {
            return 3;
        };
        std::mem::forget(heir);
        loop {
            std::thread::park();
        }
    })?;

    let mut byte = [0];
    check_eq!(
        rustix::io::read(&reader, &mut byte)?,
        1,
        "the heir's message"
    );
    opener.kill(Signal::KILL)?;
    check_eq!(opener.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    check_eq!(
        rustix::io::read(&reader, &mut byte)?,
        1,
        "the heir's answer"
    );
    check_eq!(byte[0], b'y', "using the session of a dead process");
    Ok(())
}
