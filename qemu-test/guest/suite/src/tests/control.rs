// SPDX-License-Identifier: GPL-2.0

//! `kfi_control`.

use kfi::{uapi, KfiErrno, WaitObj};
use rand::RngExt;
use rustix::io::Errno;

use crate::check::Outcome;
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::{check, check_eq, tests};

tests! {
    "control" parallel;
    "case-52-ops-flags" ["R-CTL-6"] ops_flags;
    "case-52-wait-obj" ["R-CTL-8"] wait_obj;
    "case-52-get-wait" ["R-CTL-7"] get_wait;
    "case-53-unknown-command" ["R-CTL-9 kfi_shim.h"] unknown_command;
    "case-53-command-of-another-class" ["R-CTL-9"] command_of_another_class;
}

fn ops_flags(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let other = rig.counter()?;
    check_eq!(counter.ops_flags()?, 0, "flags of a new counter");
    let mut rng = env.rng();
    for flags in [1, 1 << 63, u64::MAX, rng.random(), rng.random(), 0] {
        counter.set_ops_flags(flags)?;
        check_eq!(counter.ops_flags()?, flags);
        check_eq!(other.ops_flags()?, 0, "flags of the other counter");
    }
    check_eq!((counter.read()?, counter.read_err()?), (0, 0));
    Ok(())
}

fn wait_obj(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for wait_obj in [WaitObj::NONE, WaitObj::QUEUE] {
        check_eq!(rig.counter_with(wait_obj)?.wait_obj()?, wait_obj);
    }
    // The provider may tell what it has chosen.
    let chosen = rig.counter_with(WaitObj::UNSPEC)?.wait_obj()?;
    check!(
        [WaitObj::UNSPEC, WaitObj::QUEUE].contains(&chosen),
        "KFI_WAIT_UNSPEC has become {chosen}"
    );
    env.note(format!("KFI_WAIT_UNSPEC is told as {chosen}"));
    Ok(())
}

fn get_wait(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    rig.counter_with(WaitObj::QUEUE)?.wait_fd()?;
    expect_fabric(rig.counter_with(WaitObj::NONE)?.wait_fd(), KfiErrno::EINVAL)?;
    expect_fabric(
        rig.counter_with(WaitObj::UNSPEC)?.wait_fd(),
        KfiErrno::ENOSYS,
    )?;
    rig.close() // No descriptor and no counter is left.
}

fn unknown_command(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let known = [
        uapi::KFI_GETOPSFLAG,
        uapi::KFI_SETOPSFLAG,
        uapi::KFI_GETWAITOBJ,
    ];
    let others = [0x100, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    for command in (0..64).chain(others).filter(|c| !known.contains(c)) {
        // Among them are those that take a pointer, such as KFI_GETWAIT.
        let result = rig.session.control(counter.handle(), command, 0xdead_0000);
        expect_os(result, Errno::INVAL)?;
    }
    Ok(())
}

fn command_of_another_class(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let domain = rig.domain.handle();
    for command in [uapi::KFI_GETOPSFLAG, uapi::KFI_GETWAITOBJ] {
        expect_fabric(rig.session.control(domain, command, 0), KfiErrno::ENOSYS)?;
    }
    // The answer of a fabric is not settled; it may not be success.
    let fabric = rig.fabric.handle();
    let result = rig.session.control(fabric, uapi::KFI_GETWAITOBJ, 0);
    check!(
        matches!(result, Err(kfi::Error::Fabric(_))),
        "GETWAITOBJ of a fabric: {result:?}"
    );
    Ok(())
}
