// SPDX-License-Identifier: GPL-2.0

//! Loading and unloading. These tests take the modules away and bring them
//! back: they end with all loaded, whatever happens in between.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kfi::{AddrFormat, CntrAttr, Error, GetinfoFlags, KfiErrno, Protocol, Query, Session, DEVICE};
use rustix::io::Errno;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::failing::Failing;
use crate::kernel_log::{KernelLog, Results};
use crate::knobs::Knobs;
use crate::rig::{expect_fabric, query, until, Rig};
use crate::{check, check_eq, tests};

tests! {
    "module";
    "wrong-order" ["R-CLOSE-5"] wrong_order;
    "load-twice" ["R-CLOSE-5"] load_twice;
    "core-in-use" ["R-CLOSE-5"] core_in_use;
    "provider-in-use" ["R-CLOSE-5"] provider_in_use;
    "provider-gone" ["R-CLOSE-5"] provider_gone;
    "device-in-use" ["R-CLOSE-5 kfi_shim.h"] device_in_use;
    "device-node" ["kfi_shim.h"] device_node;
    "load-and-unload" ["R-CLOSE-5"] load_and_unload;
    "nics" ["kfabric.h"] nics;
    "nic-base" ["kfabric.h"] nic_base;
    "strict" ["kfabric.h"] strict;
    "kcxi" ["kfi_cxi_ext.h"] kcxi;
    "consumer" ["R-CLOSE-9"] consumer;
    "consumer-in-rust" ["R-CNTR-30"] consumer_in_rust;
    "example" ["R-CNTR-30"] example;
    "example-provider" ["kfi_prov.h"] example_provider;
    "without-root" ["R-CLOSE-5"] without_root;
    "transfer" ["R-CNTR-7"] transfer;
    "network-driver" ["kfi_endpoint.h kfi_tagged.h"] network_driver;
    "mock-providers" ["R-CLOSE-5"] mock_providers;
    "mock-providers-alone" ["kfi_prov.h"] mock_providers_alone;
    "second-provider" ["R-CLOSE-2 R-CLOSE-5"] second_provider;
}

pub(super) const CORE: &str = "kfabric";
pub(super) const PROVIDER: &str = "kfi_soft";
pub(super) const DEVICE_MODULE: &str = "kfi_shim";
pub(super) const CONSUMER: &str = "kfi_consumer";
const RUST_CONSUMER: &str = "kfi_rust_consumer";
const EXAMPLE: &str = "kfi_example";
const EXAMPLE_PROVIDER: &str = "kfi_mock_provider";
const ROOTLESS: &str = "kfi_rootless";
pub(super) const TRANSFER: &str = "kfi_transfer";
const LND: &str = "kfi_lnd";
const MOCK: &str = "kfi_mock";
const SECOND: &str = "kfi_second";
const SECOND_USER: &str = "kfi_second_user";

/// Which unit tests run when a module is loaded, if the kernel has any.
const UNIT_TESTS: &str = "/sys/module/kunit/parameters/filter_glob";

/// In the order in which they load.
pub(super) const ALL: [&str; 3] = [CORE, PROVIDER, DEVICE_MODULE];

/// The modules, loaded when it begins and when it ends.
pub(super) struct Modules<'a> {
    env: &'a Env,
    /// One of them is loaded with parameters that others do not expect.
    changed: AtomicBool,
}

impl<'a> Modules<'a> {
    /// Skips the test if this is not the place for it.
    pub(super) fn new(env: &'a Env) -> Result<Self, Stop> {
        if !rustix::process::geteuid().is_root() {
            return Err(Stop::Skip("not root".to_owned()));
        }
        for name in ALL {
            if !path(env, name).exists() {
                return Err(Stop::Skip(format!("no {}", path(env, name).display())));
            }
            if !is_loaded(name)? {
                return Err(Stop::Skip(format!("{name} is not loaded")));
            }
        }
        // Their unit tests run when they are loaded; once will do.
        let _ = fs::write(UNIT_TESTS, "none");
        Ok(Self {
            env,
            changed: AtomicBool::new(false),
        })
    }

    /// Skips the test if there is no such module.
    pub(super) fn needs(&self, name: &str) -> Outcome {
        let path = path(self.env, name);
        if path.exists() {
            return Ok(());
        }
        Err(Stop::Skip(format!("no {}", path.display())))
    }

    /// With the parameters that the kernel's command line has for it.
    pub(super) fn load(&self, name: &str) -> Result<(), Errno> {
        self.load_with(name, &parameters(name))
    }

    pub(super) fn load_with(&self, name: &str, parameters: &CStr) -> Result<(), Errno> {
        rustix::system::finit_module(self.open(name)?, parameters, 0)?;
        if ALL.contains(&name) {
            let changed = *parameters != *self::parameters(name);
            self.changed.store(changed, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A module's file.
    fn open(&self, name: &str) -> Result<File, Errno> {
        File::open(path(self.env, name))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// A function that loads a module by nothing but the system call, again and again.
    pub(super) fn loader(
        &self,
        name: &str,
    ) -> Result<impl Fn() -> Result<(), Errno> + use<>, Errno> {
        self.loader_with(name, parameters(name))
    }

    /// As [`Self::loader`], with these parameters.
    pub(super) fn loader_with(
        &self,
        name: &str,
        parameters: CString,
    ) -> Result<impl Fn() -> Result<(), Errno> + use<>, Errno> {
        let file = self.open(name)?;
        Ok(move || rustix::system::finit_module(&file, &parameters, 0))
    }

    /// Takes the provider away and brings it back with other parameters.
    pub(super) fn reload_provider(&self, parameters: &CStr) -> Result<(), Errno> {
        if is_loaded(PROVIDER).unwrap_or(true) {
            unload(PROVIDER)?;
        }
        self.load_with(PROVIDER, parameters)
    }

    /// Runs something that has no session, with other parameters of the device, which is there as it
    /// was afterwards.
    pub(super) fn with_device(&self, parameters: &CStr, run: impl FnOnce() -> Outcome) -> Outcome {
        let go = || unload_unused(DEVICE_MODULE);
        go()?;
        self.load_with(DEVICE_MODULE, parameters)
            .map_err(|errno| could_not("load", DEVICE_MODULE, errno))?;
        let outcome = until(|| Ok(Path::new(DEVICE).exists())).and_then(|()| run());
        go().and_then(|()| self.load_all())?;
        outcome
    }

    pub(super) fn unload_all() -> Outcome {
        for name in ALL.into_iter().rev() {
            if is_loaded(name)? {
                unload_unused(name)?;
            }
        }
        Ok(())
    }

    pub(super) fn load_all(&self) -> Outcome {
        for name in ALL {
            if !is_loaded(name)? {
                self.load(name)
                    .map_err(|errno| could_not("load", name, errno))?;
            }
        }
        until(|| Ok(Path::new(DEVICE).exists()))
    }
}

impl Drop for Modules<'_> {
    fn drop(&mut self) {
        let unloaded = if self.changed.load(Ordering::Relaxed) {
            Self::unload_all()
        } else {
            Ok(())
        };
        if let Err(stop) = unloaded.and_then(|()| self.load_all()) {
            self.env.note(format!("modules are missing now: {stop:?}"));
        }
        let _ = fs::write(UNIT_TESTS, "*");
    }
}

/// How many use a module.
pub(super) fn users_of(module: &str) -> Result<u64, Stop> {
    let text = fs::read_to_string(format!("/sys/module/{module}/refcnt"))?;
    Ok(text.trim().parse()?)
}

/// Unloads a module that is used, if at all, by what has been closed and ends by itself.
fn unload_unused(name: &str) -> Outcome {
    until(|| Ok(users_of(name)? == 0))?;
    unload(name).map_err(|errno| could_not("unload", name, errno))
}

pub(super) fn could_not(what: &str, name: &str, errno: Errno) -> Stop {
    Stop::fail(format!("could not {what} {name}: {}", Error::Os(errno)))
}

fn path(env: &Env, name: &str) -> std::path::PathBuf {
    env.settings.modules.join(format!("{name}.ko"))
}

pub(super) fn parameters(name: &str) -> CString {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let prefix = format!("{name}.");
    let words: Vec<_> = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(&prefix))
        .collect();
    CString::new(words.join(" ")).unwrap_or_default()
}

pub(super) fn unload(name: &str) -> Result<(), Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    rustix::system::delete_module(&name, rustix::fs::OFlags::NONBLOCK.bits() as i32)
}

pub(super) fn is_loaded(name: &str) -> Result<bool, Stop> {
    Ok(fs::read_to_string("/proc/modules")?
        .lines()
        .any(|line| line.split(' ').next() == Some(name)))
}

/// Unloading is refused, and the module is still there.
pub(super) fn is_kept(name: &str) -> Outcome {
    for _ in 0..3 {
        let result = unload(name);
        check!(
            matches!(result, Err(Errno::BUSY | Errno::AGAIN)),
            "unloading {name} while in use: {result:?}"
        );
    }
    check!(is_loaded(name)?, "{name} is gone");
    Ok(())
}

fn wrong_order(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    Modules::unload_all()?;
    for name in [PROVIDER, DEVICE_MODULE] {
        let result = modules.load(name);
        check_eq!(result, Err(Errno::NOENT), "loading {name} alone");
        check!(!is_loaded(name)?, "{name} is there all the same");
    }
    check!(!Path::new(DEVICE).exists(), "{DEVICE} without a module");
    // The device without a provider: there is nothing, and it says so.
    for name in [CORE, DEVICE_MODULE] {
        modules
            .load(name)
            .map_err(|errno| could_not("load", name, errno))?;
    }
    until(|| Ok(Path::new(DEVICE).exists()))?;
    let session = Session::open()?;
    expect_fabric(session.getinfo(&query(env)), KfiErrno::ENODATA)?;
    modules.load_all()?;
    // The same session sees the provider that has come.
    session.getinfo(&query(env))?;
    Ok(())
}

fn load_twice(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    for name in ALL {
        let result = modules.load(name);
        check_eq!(result, Err(Errno::EXIST), "loading {name} again");
    }
    Rig::new(env)?.close()
}

fn core_in_use(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    is_kept(CORE)?;
    unload(DEVICE_MODULE).map_err(|errno| could_not("unload", DEVICE_MODULE, errno))?;
    is_kept(CORE)?;
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    unload(CORE).map_err(|errno| could_not("unload", CORE, errno))?;
    modules.load_all()
}

fn provider_in_use(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let session = Session::open()?;
    let info = session.getinfo(&query(env))?;
    let fabric = info.fabric(0)?;
    is_kept(PROVIDER)?;
    let domain = fabric.domain(&info, 0)?;
    let counter = domain.counter(&CntrAttr::new())?;
    is_kept(PROVIDER)?;
    counter.add(1)?;
    check_eq!(counter.read()?, 1);
    // Only the fabric keeps it, and that until the last.
    counter.close().map_err(|(_, error)| error)?;
    domain.close().map_err(|(_, error)| error)?;
    is_kept(PROVIDER)?;
    fabric.close().map_err(|(_, error)| error)?;
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    modules.load_all()
}

fn provider_gone(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let session = Session::open()?;
    let info = session.getinfo(&query(env))?;
    // An answer does not keep the provider.
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    let result = info.fabric(0);
    check!(
        matches!(result, Err(Error::Fabric(_))),
        "opening a fabric of a provider that is gone: {result:?}"
    );
    expect_fabric(session.getinfo(&query(env)), KfiErrno::ENODATA)?;
    modules.load_all()?;
    // Back again, the old answer is as good as a new one.
    Rig::in_session(env, session.clone())?.close()?;
    let fabric = info.fabric(0)?;
    fabric.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn device_in_use(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let session = Session::open()?;
    is_kept(DEVICE_MODULE)?;
    drop(session);

    // A wait descriptor is the module's as well, also without a session.
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(3)?;
    let fd = counter.wait_fd()?.into_fd();
    crate::rig::unshare(counter)?.into_handle();
    rig.domain.into_handle();
    rig.fabric.into_handle();
    drop((rig.info, rig.session));
    is_kept(DEVICE_MODULE)?;
    is_kept(PROVIDER)?;
    drop(fd);
    unload(DEVICE_MODULE).map_err(|errno| could_not("unload", DEVICE_MODULE, errno))?;
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    modules.load_all()?;
    Rig::new(env)?.close()
}

fn device_node(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let node = Path::new(DEVICE);
    for _ in 0..3 {
        check!(node.exists(), "no {DEVICE}");
        unload(DEVICE_MODULE).map_err(|errno| could_not("unload", DEVICE_MODULE, errno))?;
        // The node is removed by a kernel thread.
        until(|| Ok(!node.exists()))?;
        modules.load_all()?;
        Session::open()?.version()?;
    }
    Ok(())
}

fn load_and_unload(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let rounds = env.scaled(10, 3);
    for round in 0..rounds {
        Modules::unload_all()?;
        check!(!is_loaded(CORE)?, "{CORE} is still there in round {round}");
        modules.load_all()?;
        if round % 4 == 0 {
            let rig = Rig::new(env)?;
            rig.counter()?.add(1)?;
            rig.close()?;
        }
    }
    env.note(format!("{rounds} rounds"));
    Ok(())
}

/// How many virtual NICs there may be.
fn nics(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let failed = |errno| could_not("reload", PROVIDER, errno);
    for (parameters, count) in [(c"nics=1", 1), (c"nics=64", 64)] {
        modules.reload_provider(parameters).map_err(failed)?;
        let info = Session::open()?.getinfo(&Query::new().provider(PROVIDER))?;
        check_eq!(info.entries().len(), count);
        let last = format!("soft{}", count - 1);
        check_eq!(info.entries()[count - 1].domain_attr.name, last);
    }
    for parameters in [c"nics=0", c"nics=65"] {
        let result = modules.reload_provider(parameters);
        check_eq!(result, Err(Errno::INVAL), "{parameters:?}");
    }
    modules.load_all()
}

/// The first number of the NICs, which makes their addresses.
fn nic_base(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let failed = |errno| could_not("reload", PROVIDER, errno);
    for (parameters, base) in [
        (c"nic_base=0", 0),
        (c"nic_base=7", 7),
        (c"nic_base=1048574", 1_048_574),
    ] {
        modules.reload_provider(parameters).map_err(failed)?;
        let session = Session::open()?;
        let info = session.getinfo(&Query::new().provider(PROVIDER))?;
        for (index, entry) in (0_u64..).zip(info.entries()) {
            check_eq!(entry.domain_attr.name, format!("soft{index}"));
            let address = (base + index) << 12 | 1 << 32;
            check_eq!(entry.src_addr.0, address.to_le_bytes().to_vec());
        }
        // By its number, and that its address is the one that it is reached at.
        for index in 0..2 {
            let number = base + index;
            for node in [format!("{number}"), format!("{number:#x}")] {
                let node = CString::new(node).unwrap_or_default();
                let query = Query::new()
                    .provider(PROVIDER)
                    .flags(GetinfoFlags::SOURCE)
                    .node(node.as_c_str().into());
                let found = session.getinfo(&query)?;
                check_eq!(found.entries().len(), 1);
                check_eq!(found.entries()[0].domain_attr.name, format!("soft{index}"));
            }
        }
        drop((info, session));
        run_with(&modules, TRANSFER, c"only=transfer rounds=1000")?;
    }
    for parameters in [c"nic_base=1048575", c"nic_base=4294967295"] {
        let result = modules.reload_provider(parameters);
        check_eq!(result, Err(Errno::INVAL), "{parameters:?}");
    }
    modules.load_all()
}

/// Whether operations whose capability was not asked for are refused.
fn strict(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let failed = |errno| could_not("reload", PROVIDER, errno);
    for (provider, consumer) in [
        (c"strict=1", c"strict=1 only=endpoint/capabilities"),
        (c"strict=0", c"strict=0 only=endpoint/capabilities"),
        (
            c"kcxi=1 strict=1",
            c"provider=kcxi strict=1 only=endpoint/capabilities",
        ),
        (
            c"kcxi=1",
            c"provider=kcxi strict=0 only=endpoint/capabilities",
        ),
    ] {
        modules.reload_provider(provider).map_err(failed)?;
        run_with(&modules, TRANSFER, consumer)?;
    }
    unload(PROVIDER).map_err(failed)?;
    modules.load_all()
}

/// The provider presents itself as kcxi.
fn kcxi(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules
        .reload_provider(c"kcxi=1")
        .map_err(|errno| could_not("reload", PROVIDER, errno))?;
    let result = (|| {
        let session = Session::open()?;
        expect_fabric(
            session.getinfo(&Query::new().provider(PROVIDER)),
            KfiErrno::ENODATA,
        )?;
        let query = Query::new().provider("kcxi");
        for (nic, entry) in session.getinfo(&query)?.entries().iter().enumerate() {
            check_eq!(entry.fabric_attr.prov_name, "kcxi");
            check_eq!(entry.fabric_attr.prov_version.0, 1 << 16);
            check_eq!(entry.fabric_attr.name, "cxi");
            check_eq!(entry.domain_attr.name, format!("cxi{nic}"));
            check_eq!(entry.addr_format, AddrFormat::CXI);
            check_eq!(entry.ep_attr.protocol, Protocol::CXI);
        }
        let query = query.flags(GetinfoFlags::SOURCE).node(c"cxi1".into());
        let info = session.getinfo(&query)?;
        check_eq!(info.entries().len(), 1);
        let fabric = info.fabric(0)?;
        let domain = fabric.domain(&info, 0)?;
        domain.close().map_err(|(_, error)| error)?;
        fabric.close().map_err(|(_, error)| error)?;
        drop((info, session));
        // Tests that depend on the personality; the rest is the same provider.
        for only in [
            c"provider=kcxi only=info",
            c"provider=kcxi only=open",
            c"provider=kcxi only=av",
        ] {
            run_with(&modules, CONSUMER, only)?;
        }
        for only in [
            c"provider=kcxi only=transfer rounds=10000",
            c"provider=kcxi only=endpoint rounds=10000",
        ] {
            run_with(&modules, TRANSFER, only)?;
        }
        let mut lnd = parameters(LND).into_bytes();
        lnd.extend(b" provider=kcxi");
        let lnd = CString::new(lnd).unwrap_or_default();
        run_with(&modules, LND, &lnd)?;
        Ok(())
    })();
    unload(PROVIDER).map_err(|errno| could_not("unload", PROVIDER, errno))?;
    modules.load_all()?;
    result
}

/// A consumer in C.
fn consumer(env: &Env) -> Outcome {
    run_in_kernel(env, CONSUMER, &parameters(CONSUMER))
}

/// A consumer in Rust, which does its work while it is loaded.
fn consumer_in_rust(env: &Env) -> Outcome {
    says(
        env,
        RUST_CONSUMER,
        &[
            "waited for 4: Err(",
            "completed: Some(1)",
            "completed: Some(2)",
            "received: Ok(\"hello\")",
            "events of its own: Ok(())",
        ],
    )
}

/// The consumer in README.md does what that says.
fn example(env: &Env) -> Outcome {
    says(
        env,
        EXAMPLE,
        &["0: waited for 3: 0", "0: waited for 4: -110"],
    )
}

/// The provider in Documentation/providers.md is registered, and used.
fn example_provider(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(EXAMPLE_PROVIDER)?;
    modules
        .load(EXAMPLE_PROVIDER)
        .map_err(|errno| could_not("load", EXAMPLE_PROVIDER, errno))?;
    let used = use_example_provider();
    unload(EXAMPLE_PROVIDER).map_err(|errno| could_not("unload", EXAMPLE_PROVIDER, errno))?;
    used?;
    let query = Query::new().provider(EXAMPLE_PROVIDER);
    expect_fabric(Session::open()?.getinfo(&query), KfiErrno::ENODATA)
}

fn use_example_provider() -> Outcome {
    let session = Session::open()?;
    let info = session.getinfo(&Query::new().provider(EXAMPLE_PROVIDER))?;
    for entry in info.entries() {
        check_eq!(entry.fabric_attr.name, "mock");
        check_eq!(entry.domain_attr.name, "mock0");
    }
    let fabric = info.fabric(0)?;
    // It has nothing but fabrics.
    expect_fabric(fabric.domain(&info, 0), KfiErrno::ENOSYS)?;
    is_kept(EXAMPLE_PROVIDER)?;
    fabric.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// A module that would not wait at its end for what the kernel finds in it has nothing of that kind.
fn without_root(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(ROOTLESS)?;
    check_eq!(modules.load(ROOTLESS), Err(Errno::NODEV));
    Ok(())
}

/// Loads a module that prints these lines when it is loaded, and unloads it.
fn says(env: &Env, module: &str, lines: &[&str]) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(module)?;
    let mut log = KernelLog::open();
    modules
        .load(module)
        .map_err(|errno| could_not("load", module, errno))?;
    let said = log.read();
    unload(module).map_err(|errno| could_not("unload", module, errno))?;
    needs_log(&log)?;
    for line in lines {
        check!(
            said.iter().any(|l| l.contains(line)),
            "{module} does not say {line:?}, but {said:?}"
        );
    }
    Ok(())
}

/// Skips the test if nobody can say what the kernel has printed.
pub(super) fn needs_log(log: &KernelLog) -> Outcome {
    if log.is_open() {
        return Ok(());
    }
    Err(Stop::Skip("the kernel's log cannot be read".to_owned()))
}

/// Returns whether NICs reach each other, and themselves, by way of the network.
pub(super) fn is_over_network() -> bool {
    let parameters = parameters(PROVIDER).into_bytes();
    let mut words = parameters.split(|byte| *byte == b' ');
    words.any(|word| word == b"loopback=0")
}

/// A consumer in C that transfers data.
fn transfer(env: &Env) -> Outcome {
    // It marks itself when it is to have no memory, if the kernel can do that.
    let _failing = Failing::of_marked().ok();
    let mut text = parameters(TRANSFER).into_bytes();
    // Some of it is about what is so within a node only.
    if is_over_network() {
        text.extend_from_slice(b" network=1");
    }
    run_in_kernel(env, TRANSFER, &CString::new(text).unwrap_or_default())
}

/// A consumer in C of the shape of the network drivers of file systems.
fn network_driver(env: &Env) -> Outcome {
    run_in_kernel(env, LND, &parameters(LND))
}

/// Mock providers, registered and used in every way there is.
fn mock_providers(env: &Env) -> Outcome {
    // Tests of failing allocations want them to fail that may sleep, too.
    let mut knobs = Knobs::new();
    let _ = knobs.set("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
    run_in_kernel(env, MOCK, &parameters(MOCK))
}

/// Mock providers where there are no others: what the core answers when nobody has anything for a
/// consumer, `getinfo/best-error`, is seen only there.
fn mock_providers_alone(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(MOCK)?;
    for name in [DEVICE_MODULE, PROVIDER] {
        unload(name).map_err(|errno| could_not("unload", name, errno))?;
    }
    run_with(&modules, MOCK, c"only=getinfo/ rounds=10")?;
    modules.load_all()
}

/// A provider in safe code can be careless, and nothing happens: see its tests. They leave
/// somebody asleep in its code, whom its unloading waits for.
fn second_provider(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(SECOND)?;
    modules
        .load(SECOND)
        .map_err(|errno| could_not("load", SECOND, errno))?;
    let outcome = run_and(&modules, SECOND_USER, c"", || {
        unload(SECOND).map_err(|errno| could_not("unload", SECOND, errno))
    });
    if is_loaded(SECOND)? {
        unload(SECOND).map_err(|errno| could_not("unload", SECOND, errno))?;
    }
    outcome
}

/// Loads a module that runs its tests when it is loaded and prints them to the
/// kernel's log.
pub(super) fn run_in_kernel(env: &Env, module: &str, parameters: &CStr) -> Outcome {
    run_with(&Modules::new(env)?, module, parameters)
}

/// As [`run_in_kernel`].
pub(super) fn run_with(modules: &Modules<'_>, module: &str, parameters: &CStr) -> Outcome {
    run_and(modules, module, parameters, || Ok(()))
}

/// As [`run_in_kernel`], with something to be done before the module is unloaded.
fn run_and(
    modules: &Modules<'_>,
    module: &str,
    parameters: &CStr,
    meanwhile: impl FnOnce() -> Outcome,
) -> Outcome {
    let env = modules.env;
    modules.needs(module)?;
    let mut log = KernelLog::open();
    let loaded = modules.load_with(module, parameters);
    let mut lines = log.read();
    let meanwhile = meanwhile();
    // A module of tests may refuse to stay.
    if is_loaded(module)? {
        unload(module).map_err(|errno| could_not("unload", module, errno))?;
    }
    // Some have results when they go.
    lines.extend(log.read());
    if let Err(errno) = loaded {
        return Err(could_not("load", module, errno));
    }
    meanwhile?;
    needs_log(&log)?;
    let results = Results::in_lines(&lines);
    for line in results.reasons() {
        env.note(line);
    }
    env.note(format!("{results}"));
    let lost = if log.has_lost() {
        ", of which lines were lost"
    } else {
        ""
    };
    check!(results.are_good(), "{results}: see the kernel's log{lost}");
    if results.are_all_skipped() {
        return Err(Stop::Skip("all of it was skipped".to_owned()));
    }
    Ok(())
}
