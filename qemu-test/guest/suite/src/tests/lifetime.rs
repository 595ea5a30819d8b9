// SPDX-License-Identifier: GPL-2.0

//! Modules that are to go at every moment of their use, in any order, again and again: they stay,
//! with nothing changed, or go without a trace. All are loaded in the end.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kfi::{
    bits, AvAttr, BufferKind, Caps, CntrAttr, CqAttr, EqAttr, Error, Form, KfiErrno, Kind, MrAttr,
    Operation, Session, WaitObj, WaitSetAttr, Work, DEVICE,
};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::ends::{expect_error, Area, Pair};
use crate::env::Env;
use crate::failing::{Answer, Failing, Whose};
use crate::knobs::Knobs;
use crate::rig::{in_threads, is_busy, query, until, Rig, Waiter};
use crate::tests::load::{check_memory, kernel_memory};
use crate::tests::module::{
    self, could_not, is_kept, is_loaded, unload, Modules, ALL, CORE, DEVICE_MODULE, PROVIDER,
};
use crate::{check, check_eq, tests};

tests! {
    "lifetime";
    "every-point-of-use" ["R-CLOSE-5"] every_point_of_use;
    "only-a-mapping" ["R-CLOSE-5 kfi_shim.h"] only_a_mapping;
    "answers-without-provider" ["R-CLOSE-5"] answers_without_provider;
    "watched" ["R-CLOSE-5"] watched;
    "beside-use" ["R-CLOSE-5 R-CLOSE-8"] beside_use;
    "any-order" ["R-CLOSE-5"] any_order;
    "refused-parameters" ["R-CLOSE-5"] refused_parameters;
    "failing-init" ["R-CLOSE-5"] failing_init;
    "failing-load" ["R-CLOSE-5"] failing_load;
    "again-and-again" ["R-CLOSE-5"] again_and_again;
}

/// None of the modules can be unloaded.
#[track_caller]
fn all_kept(when: &str) -> Outcome {
    for name in ALL {
        is_kept(name).map_err(|stop| match stop {
            Stop::Fail(why) => Stop::Fail(format!("{why} ({when})")),
            skip @ Stop::Skip(_) => skip,
        })?;
    }
    Ok(())
}

/// Nothing uses them any more: all go, and come back.
fn all_go(modules: &Modules<'_>) -> Outcome {
    Modules::unload_all()?;
    modules.load_all()
}

fn every_point_of_use(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let mut points = 0;
    let mut kept = |when: &str| {
        points += 1;
        all_kept(when)
    };
    let rig = Rig::new(env)?;
    kept("a domain is open")?;
    let (domain, fabric) = (&rig.domain, &rig.fabric);
    {
        let _object = domain.counter(&CntrAttr::new())?;
        kept("a counter is open")?;
    }
    {
        let _object = domain.completion_queue(&CqAttr::new().handler())?;
        kept("a completion queue with a handler is open")?;
    }
    {
        let _object = fabric.event_queue(&EqAttr::new())?;
        kept("an event queue is open")?;
    }
    {
        let _object = fabric.wait_set(&WaitSetAttr::new().wait_obj(WaitObj::QUEUE))?;
        kept("a wait set is open")?;
    }
    {
        let _object = domain.poll_set()?;
        kept("a poll set is open")?;
    }
    {
        let _object = domain.address_vector(&AvAttr::default())?;
        kept("an address vector is open")?;
    }
    {
        let area = Area::plain(&rig.session, 4096)?;
        let _object = domain.register(&[area.all()], &MrAttr::new(bits::REMOTE_READ, 1))?;
        kept("a region is registered")?;
    }
    let counter = rig.counter()?;
    let waiter = Waiter::asleep(&counter, 1, -1)?;
    kept("somebody waits for a counter")?;
    counter.add(1)?;
    waiter.join()?.expect_ok()?;
    let work = Work::add(&counter, 1, &counter, 100);
    let id = domain.queue_work(&work)?;
    kept("deferred work is pending")?;
    domain.cancel_work(id, 0)?;
    drop(counter);
    rig.close()?;

    let pair = Pair::new(env, Caps::MSG | Caps::TRIGGER)?;
    let area = Area::plain(&pair.session, 64)?;
    pair.a.recv(area.part(0, 8), 1)?;
    kept("a receive is posted")?;
    // A message that nobody receives is under way for a while.
    pair.a.send(area.part(8, 8), 2)?;
    kept("a message is under way")?;
    let counter = pair.rig.counter()?;
    let send = pair
        .a
        .operation(Kind::SEND, Form::PLAIN)
        .segment(area.part(8, 8));
    pair.a.post(&send.trigger(&counter, 1).context(3))?;
    kept("a triggered operation is pending")?;
    expect_error(&pair.a.tx, 2, KfiErrno::EREMOTEIO)?;
    let nobody = Operation::new(Kind::RECV, Form::PLAIN).segment(area.part(0, 8));
    pair.b.post(&nobody)?;
    drop((area, counter));
    // Its session ends with all of that open, when this process does.
    let Pair { a, b, .. } = pair;
    std::mem::forget((a, b));
    env.note(format!("{points} points of use"));
    drop(modules);
    Ok(())
}

fn only_a_mapping(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    for kind in [BufferKind::KMALLOC, BufferKind::VMALLOC, BufferKind::PAGES] {
        let session = Session::open()?;
        let buffer = session.buffer(kind, 8192)?;
        let page = crate::raw::MappedPage::new(&session, buffer.offset())?;
        drop((buffer, session));
        is_kept(DEVICE_MODULE)?;
        page.touch();
        drop(page);
        // Nothing but the device was used.
        all_go(&modules)?;
    }
    Ok(())
}

/// Answers outlive the provider that gave them, and its successors.
fn answers_without_provider(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let session = Session::open()?;
    let first = session.getinfo(&query(env))?;
    let text = first.text(0)?;
    for _ in 0..3 {
        unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
        // Whole, and of no use.
        check_eq!(first.text(0)?, text);
        let opened = first.fabric(0);
        check!(matches!(opened, Err(Error::Fabric(_))), "{opened:?}");
        modules.load_all()?;
        first.fabric(0)?.close().map_err(|(_, error)| error)?;
    }
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    first.close().map_err(|(_, error)| error)?;
    drop(session);
    all_go(&modules)
}

/// A file of debugfs that is open keeps its module, as any file does; the files, knobs that are
/// turned and events go with it.
fn watched(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let debugfs = Path::new("/sys/kernel/debug");
    let events = Path::new("/sys/kernel/tracing/events/kfi_soft/enable");
    for _ in 0..env.scaled(5, 2) {
        let rig = Rig::new(env)?;
        rig.counter()?.add(1)?;
        // A tracer has to stop first, or the module goes with its events.
        let mut tracing = Knobs::new();
        let _ = tracing.set_until(events, "1", "0");
        let mut knobs = Knobs::new();
        let delay = debugfs.join("kfi_soft/nic0/delay");
        let _ = knobs.set_until(delay, "permille=300 ms=1", "off");
        rig.close()?;
        drop(tracing);
        unload(DEVICE_MODULE).map_err(|errno| could_not("unload", DEVICE_MODULE, errno))?;
        for (module, names) in [
            (
                PROVIDER,
                &[
                    "domains",
                    "counters",
                    "pending",
                    "nic0/faults",
                    "nic0/delay",
                ][..],
            ),
            (CORE, &["providers", "fabrics"]),
        ] {
            let folder = debugfs.join(module);
            for name in names {
                if let Ok(file) = fs::File::open(folder.join(name)) {
                    is_kept(module)?;
                    let mut bytes = [0; 100];
                    check!(rustix::io::read(&file, &mut bytes)? > 0, "{name} is empty");
                }
            }
            unload(module).map_err(|errno| could_not("unload", module, errno))?;
            check!(!folder.exists(), "{} is still there", folder.display());
        }
        modules.load_all()?;
    }
    Rig::new(env)?.close()
}

/// Whether an error is one of those that opening things may have while modules come and go.
fn is_gone(error: Error) -> bool {
    let nobody = [Errno::NOENT, Errno::NODEV, Errno::NXIO];
    match error {
        Error::Os(errno) => nobody.contains(&errno),
        Error::Fabric(errno) => {
            let no_device = KfiErrno::new(kfi::uapi::KFI_ENODEV as i32);
            [KfiErrno::ENODATA, no_device].contains(&errno)
        }
    }
}

/// Sessions are opened, used and closed while modules are unloaded and loaded.
fn beside_use(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let rounds = env.scaled(40, 10);
    let over = AtomicBool::new(false);
    let (used, missing) = (AtomicU64::new(0), AtomicU64::new(0));
    let results = in_threads(0..3_usize, |thread| {
        if thread > 0 {
            while !over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let attempt = || -> kfi::Result<()> {
                    let session = Session::open()?;
                    let info = session.getinfo(&query(env))?;
                    let fabric = info.fabric(0)?;
                    let domain = fabric.domain(&info, 0)?;
                    let counter = domain.counter(&CntrAttr::new())?;
                    counter.add(1)?;
                    counter.wait_ms(1, 1000)
                };
                match attempt() {
                    Ok(()) => used.fetch_add(1, Ordering::Relaxed),
                    Err(error) if is_gone(error) => missing.fetch_add(1, Ordering::Relaxed),
                    Err(error) => return Err(error.into()),
                };
                // There have to be moments in which nobody uses anything, on slow machines, too.
                std::thread::sleep(begin.elapsed() * 3);
            }
            return Ok((0, 0));
        }
        let (mut went, mut stayed) = (0_u64, 0_u64);
        let result = (|| -> Outcome {
            let end = Instant::now() + Duration::from_secs(60);
            for round in 0.. {
                if round >= rounds && (went > 0 || Instant::now() > end) {
                    break;
                }
                for name in ALL.into_iter().rev() {
                    if !is_loaded(name)? {
                        continue;
                    }
                    match unload(name) {
                        Ok(()) => went += 1,
                        // A module that depends on it has come back, or it is used.
                        Err(Errno::BUSY | Errno::AGAIN) => stayed += 1,
                        Err(errno) => return Err(could_not("unload", name, errno)),
                    }
                }
                if round % 3 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                for name in ALL {
                    match modules.load(name) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(could_not("load", name, errno)),
                    }
                }
            }
            Ok(())
        })();
        over.store(true, Ordering::Relaxed);
        result.map(|()| (went, stayed))
    })?;
    let (went, stayed) = results[0];
    env.note(format!(
        "unloaded {went} times, {stayed} times in use; {} sessions, {} times nobody there",
        used.into_inner(),
        missing.into_inner()
    ));
    check!(went > 0, "it was never unloaded");
    all_go(&modules)?;
    Rig::new(env)?.close()
}

/// Loading and unloading in every order; a module that depends on one that is not there is refused.
fn any_order(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        Modules::unload_all()?;
        for index in order {
            let name = ALL[index];
            let expected = if name == CORE || is_loaded(CORE)? {
                Ok(())
            } else {
                Err(Errno::NOENT)
            };
            check_eq!(modules.load(name), expected, "loading {name} of {order:?}");
        }
        modules.load_all()?;
        Rig::new(env)?.close()?;
        for index in order {
            let name = ALL[index];
            let others = ALL.into_iter().filter(|other| *other != CORE);
            let mut needed = false;
            for other in others {
                needed |= name == CORE && is_loaded(other)?;
            }
            match unload(name) {
                Ok(()) => check!(!needed, "{name} is gone, of {order:?}"),
                Err(errno) => check!(
                    needed && matches!(errno, Errno::BUSY | Errno::AGAIN),
                    "unloading {name} of {order:?}: {errno}"
                ),
            }
        }
    }
    modules.load_all()?;
    Rig::new(env)?.close()
}

/// A module that refuses to be loaded leaves nothing behind.
fn refused_parameters(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    let session = Session::open()?;
    let before = kernel_memory()?;
    for _ in 0..env.scaled(10, 5) {
        for parameters in [c"nics=0", c"nics=65", c"nics=-1", c"nics=many", c"kcxi=2"] {
            let result = modules.load_with(PROVIDER, parameters);
            check_eq!(result, Err(Errno::INVAL), "{parameters:?}");
        }
        let answer = session.getinfo(&query(env)).err();
        check_eq!(answer, Some(Error::Fabric(KfiErrno::ENODATA)));
        check!(
            !Path::new("/sys/kernel/debug/kfi_soft").exists(),
            "a folder is left"
        );
    }
    check_memory(env, &before, 1024)?;
    modules.load_all()?;
    Rig::in_session(env, session)?.close()
}

/// Checks that nothing is left of a module that is not loaded.
#[track_caller]
fn nothing_left(name: &str, when: &str) -> Outcome {
    check!(!is_loaded(name)?, "{name} is loaded: {when}");
    for folder in [
        "/sys/module",
        "/sys/kernel/debug",
        "/sys/kernel/tracing/events",
    ] {
        let left = Path::new(folder).join(name);
        check!(!left.exists(), "{} is left: {when}", left.display());
    }
    match name {
        PROVIDER => {
            let file = "/sys/kernel/debug/kfabric/providers";
            let providers = fs::read_to_string(file).unwrap_or_default();
            check!(!providers.contains("soft"), "{providers} is left: {when}");
        }
        DEVICE_MODULE => {
            check!(
                !Path::new("/sys/class/misc/kfi").exists(),
                "a device: {when}"
            );
            let devices = fs::read_to_string("/proc/misc").unwrap_or_default();
            check!(!devices.contains("kfi"), "{devices} is left: {when}");
            until(|| Ok(!Path::new(DEVICE).exists()))?;
        }
        _ => {}
    }
    Ok(())
}

/// Loads all modules with one allocation after the other failing, every `step`-th of them, until
/// there is none left: each time they are refused and nothing is left of them, or they are there and
/// go.
fn load_failing(env: &Env, whose: Whose, step: u32) -> Outcome {
    let modules = Modules::new(env)?;
    let mut failing = Failing::new(whose)?;
    let answer = if module::is_over_network() {
        Answer::NoMemoryForPort
    } else {
        Answer::NoMemory
    };
    Modules::unload_all()?;
    let mut all_refused = 0;
    for name in ALL {
        let loader = modules
            .loader(name)
            .map_err(|errno| could_not("open", name, errno))?;
        let (before, mut refused) = (failing.failed, 0);
        // Other ones with another seed.
        let mut nth = 1 + u32::try_from(env.settings.seed % u64::from(step))?;
        loop {
            let load = || loader().map_err(Error::Os);
            let attempt = failing.attempt(name, nth, answer, load)?;
            let when = format!("allocation {nth} failed");
            if attempt.value.is_some() {
                check!(is_loaded(name)?, "{name} is not loaded: {when}");
                unload(name).map_err(|errno| could_not("unload", name, errno))?;
            } else {
                refused += 1;
            }
            nothing_left(name, &when)?;
            if attempt.last {
                break;
            }
            nth += step;
        }
        env.note(format!(
            "{name}: {} allocations failed, {refused} times refused",
            failing.failed - before
        ));
        all_refused += refused;
        loader().map_err(|errno| could_not("load", name, errno))?;
    }
    env.note(format!("{} failures injected", failing.failed));
    check!(all_refused > 0, "none of them needs memory");
    drop(failing);
    modules.load_all()?;
    Rig::new(env)?.close()
}

/// Allocations of the modules' own beginning.
fn failing_init(env: &Env) -> Outcome {
    load_failing(
        env,
        Whose::Init,
        u32::try_from(3 / env.scaled(3, 1).min(3))?,
    )
}

/// Allocations of the kernel's loader fail, too.
fn failing_load(env: &Env) -> Outcome {
    let parts = env.scaled(16, 1).min(16);
    load_failing(env, Whose::Loading, u32::try_from(48 / parts)?)
}

/// `--scale 40` is a thousand times.
fn again_and_again(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let rounds = env.scaled(25, 5);
    let round = || -> Outcome {
        Modules::unload_all()?;
        check!(!is_loaded(CORE)?, "{CORE} is still there");
        until(|| Ok(!Path::new(DEVICE).exists()))?;
        modules.load_all()?;
        let rig = Rig::new(env)?;
        rig.counter()?.add(1)?;
        // Busy at once, and not any more afterwards.
        let busy = unload(PROVIDER);
        check!(matches!(busy, Err(Errno::BUSY | Errno::AGAIN)), "{busy:?}");
        let closed = rig.session.close_handle(rig.fabric.handle());
        check!(closed.as_ref().is_err_and(is_busy), "{closed:?}");
        rig.close()
    };
    for _ in 0..2 {
        round()?;
    }
    let before = kernel_memory()?;
    let start = Instant::now();
    for _ in 0..rounds {
        round()?;
    }
    env.note(format!("{rounds} rounds in {:?}", start.elapsed()));
    // Half a page a round would be told.
    check_memory(env, &before, 1024 + 2 * i64::try_from(rounds)?)
}
