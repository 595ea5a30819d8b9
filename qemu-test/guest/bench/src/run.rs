// SPDX-License-Identifier: GPL-2.0

//! Runs the module, in the guest.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::thread::CpuSet;

use crate::busy::Since;
use crate::figure::{Asked, Line, Missing, Results};
use crate::targets::{REPETITIONS, TARGETS, TCP_TARGETS};
use crate::Error;

/// The beginning of the module's lines.
const PREFIX: &str = "kfi_bench: {";
/// Its last line, and that of a run.
const END: &str = "{\"end\":true}";
/// Between looks at the log: they take a bit of a CPU.
const PAUSE: Duration = Duration::from_secs(1);
/// The provider.
const PROVIDER: &CStr = c"kfi_soft";
/// Its file, beside that of the module.
const PROVIDER_FILE: &str = "kfi_soft.ko";
/// There is one if the kernel has TCP.
const SOCKETS: &str = "/proc/net/tcp";
/// NICs of the mesh, as the module has it.
const NICS: u32 = 64;
/// Limit of pending operations in a domain: for the memory of one, 100,000 are measured beside as many.
const PENDING: u64 = 262_144;

/// Cases that are measured with the same provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Set {
    /// Within one node
    Node,
    /// Between two NICs that reach each other over TCP
    Tcp,
    /// Between 64 of these
    Mesh,
}

impl Set {
    /// Its name for the module.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Tcp => "tcp",
            Self::Mesh => "mesh",
        }
    }

    /// Whether it needs TCP.
    fn needs_sockets(self) -> bool {
        match self {
            Self::Node => false,
            Self::Tcp | Self::Mesh => true,
        }
    }

    /// The parameters of the provider, which has its `own` where none of them is in the way.
    fn parameters(self, own: &str) -> String {
        // Receives may be late in a slow machine, and where many messages wait for one; connections of the
        // mesh stay although nobody uses them.
        let (nics, timeouts) = match self {
            Self::Node => {
                let parameters = format!("pending={PENDING} rnr_timeout=10000");
                return with_others(&parameters, own);
            }
            Self::Tcp => (2, "rnr_timeout=5000"),
            Self::Mesh => (NICS, "rnr_timeout=5000 peer_timeout=600000"),
        };
        let addresses: Vec<_> = (1..=nics).map(|nic| format!("127.0.0.{nic}")).collect();
        format!("address={} loopback=0 {timeouts}", addresses.join(","))
    }
}

/// Parameters, and those of others that are not among them: the provider takes each once.
fn with_others(parameters: &str, others: &str) -> String {
    fn name(word: &str) -> &str {
        word.split('=').next().unwrap_or_default()
    }
    let others = others.split_whitespace().filter(|other| {
        let same = |word: &str| name(word) == name(other);
        !parameters.split_whitespace().any(same)
    });
    let words: Vec<_> = parameters.split_whitespace().chain(others).collect();
    words.join(" ")
}

/// Loads the module for each of the sets, or for all if there are none, prints what it measures, and
/// unloads it.
pub(crate) fn run(module: &Path, sets: &[Set], items: &[String], rounds: u32) -> Result<(), Error> {
    let mut log = Log::open().map_err(Error::Module)?;
    let begin = Since::now();
    tell(&Line::Asked(Asked {
        asked: sets.iter().map(|set| set.name().to_owned()).collect(),
        items: items.to_vec(),
    }))?;
    for set in Set::value_variants() {
        if !sets.is_empty() && !sets.contains(set) {
            continue;
        }
        if set.needs_sockets() && !Path::new(SOCKETS).exists() {
            tell(&Line::Missing(Missing {
                missing: set.name().to_owned(),
                reason: "the kernel has no TCP".to_owned(),
            }))?;
            continue;
        }
        let parameters = format!("set={} rounds={rounds}", set.name());
        let wanted = format!("items=\"{}\"", items.join(","));
        measure(&mut log, module, *set, &format!("{parameters} {wanted}"))?;
        for _ in 0..REPETITIONS {
            for wanted in unsteady(*set, &log.results) {
                log.pass += 1;
                measure(&mut log, module, *set, &format!("{parameters} {wanted}"))?;
            }
        }
        log.pass = 0;
    }
    if let Some(guest) = begin.until_now() {
        tell(&Line::Guest { guest })?;
    }
    println!("{END}");
    Ok(())
}

/// The parameters by which the module measures again: for each row whose rounds are far apart its two
/// figures, which take turns again. That the memory of a mesh is known takes a mesh.
fn unsteady(set: Set, results: &Results) -> Vec<String> {
    let mut wanted = Vec::new();
    let rows = TARGETS.iter().chain(&TCP_TARGETS);
    for target in rows.filter(|target| target.set() == set && target.is_unsteady(results)) {
        let figures: Vec<_> = target
            .names()
            .map(|(item, design, size)| format!("{item}/{design}/{size}"))
            .collect();
        let figures = if set == Set::Mesh {
            String::new()
        } else {
            figures.join(";")
        };
        let parameter = format!("figures=\"{figures}\"");
        if !wanted.contains(&parameter) {
            wanted.push(parameter);
        }
    }
    wanted
}

/// Prints a line for [`collect`](crate::collect).
fn tell(line: &Line) -> Result<(), Error> {
    let text = serde_json::to_string(line).map_err(|error| Error::Module(error.into()))?;
    println!("{text}");
    Ok(())
}

/// Loads the provider as a set needs it, measures, and loads it as it was.
fn measure(log: &mut Log, module: &Path, set: Set, parameters: &str) -> Result<(), Error> {
    let file = module.with_file_name(PROVIDER_FILE);
    let provider = Provider::load(file, set).map_err(Error::Provider)?;
    measure_now(log, module, parameters)?;
    provider.restore().map_err(Error::Provider)
}

/// Loads the module, prints what it measures, and unloads it.
fn measure_now(log: &mut Log, module: &Path, parameters: &str) -> Result<(), Error> {
    let parameters = CString::new(parameters).map_err(|error| Error::Module(error.into()))?;
    let file = File::open(module).map_err(Error::Module)?;
    let loader = thread::spawn(move || {
        // Measurements that run on one CPU stay there.
        let mut cpus = CpuSet::new();
        cpus.set(0);
        rustix::thread::sched_setaffinity(None, &cpus)?;
        rustix::system::finit_module(file, &parameters, 0)
    });
    log.ended = false;
    while !loader.is_finished() {
        thread::sleep(PAUSE);
        log.print().map_err(Error::Module)?;
    }
    log.print().map_err(Error::Module)?;
    match loader.join() {
        Ok(result) => result.map_err(|errno| Error::Module(errno.into()))?,
        Err(_) => return Err(Error::Module(ErrorKind::Other.into())),
    }
    unload(c"kfi_bench").map_err(|errno| Error::Module(errno.into()))?;
    if log.ended {
        return Ok(());
    }
    Err(Error::Results("the module has not told all".to_owned()))
}

fn unload(module: &CStr) -> Result<(), Errno> {
    rustix::system::delete_module(module, OFlags::NONBLOCK.bits() as i32)
}

/// The provider with other parameters; with its own again when this is dropped.
struct Provider {
    file: PathBuf,
    /// Whether it has these already.
    restored: bool,
}

impl Provider {
    /// Loads it again, with the parameters for a set.
    fn load(file: PathBuf, set: Set) -> io::Result<Self> {
        let own = own_parameters(&fs::read_to_string("/proc/cmdline")?);
        unload(PROVIDER)?;
        let provider = Self {
            file,
            restored: false,
        };
        provider.insert(&set.parameters(&own))?;
        Ok(provider)
    }

    fn insert(&self, parameters: &str) -> io::Result<()> {
        let parameters = CString::new(parameters)?;
        rustix::system::finit_module(File::open(&self.file)?, &parameters, 0)?;
        Ok(())
    }

    /// Loads it again, as it was when the guest began.
    fn restore(mut self) -> io::Result<()> {
        self.restored = true;
        self.reset()
    }

    fn reset(&self) -> io::Result<()> {
        match unload(PROVIDER) {
            // It was not loaded with the other ones.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let line = fs::read_to_string("/proc/cmdline")?;
        self.insert(&own_parameters(&line))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if self.restored {
            return;
        }
        if let Err(error) = self.reset() {
            eprintln!("kfi-bench: {PROVIDER_FILE} is missing now: {error}");
        }
    }
}

/// The parameters of the provider on the kernel's command line, as qemu-test/init takes them.
fn own_parameters(line: &str) -> String {
    let words: Vec<_> = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("kfi_soft."))
        .collect();
    words.join(" ")
}

/// The kernel's log, from now on.
struct Log {
    file: File,
    /// The module's last line has come.
    ended: bool,
    /// Which pass it is that goes on.
    pass: u32,
    /// Results that have come.
    results: Results,
}

impl Log {
    fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/kmsg", flags, Mode::empty())?;
        rustix::fs::seek(&fd, SeekFrom::End(0))?;
        Ok(Self {
            file: fd.into(),
            ended: false,
            pass: 0,
            results: Results::default(),
        })
    }

    /// Notes a line of the module, and returns it with the number of the pass in it.
    fn note(&mut self, json: &str) -> String {
        let Ok(Line::Figure(mut figure)) = serde_json::from_str(json) else {
            return json.to_owned();
        };
        figure.pass = self.pass;
        let line = Line::Figure(figure);
        let text = serde_json::to_string(&line);
        self.results.add(line);
        text.unwrap_or_else(|_| json.to_owned())
    }

    /// Prints what has come, but for last lines.
    fn print(&mut self) -> io::Result<()> {
        // One read is one record.
        let mut record = [0; 8192];
        let mut out = io::stdout().lock();
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let line = text.lines().next().unwrap_or_default();
                    if let Some(start) = line.find(PREFIX) {
                        let json = &line[start + PREFIX.len() - 1..];
                        if json == END {
                            self.ended = true;
                        } else {
                            let json = self.note(json);
                            writeln!(out, "{json}")?;
                            out.flush()?;
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Lines were lost.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_provider() {
        let line =
            "console=ttyS0 kfi_soft.pending=131072 kfi_soft_more.a=1 kfi_lnd.b=2 kfi_soft.c=3\n";
        assert_eq!(own_parameters(line), "pending=131072 c=3");
        assert_eq!(own_parameters("quiet"), "");
    }

    #[test]
    fn unsteady_rows_are_measured_again() {
        let mut log = Log {
            file: File::open("/dev/null").unwrap(),
            ended: false,
            pass: 0,
            results: Results::default(),
        };
        let told = |log: &mut Log, design: &str, values: &str| {
            log.note(&format!(
                r#"{{"item":"wake, same CPU","design":"{design}","size":0,"unit":"ns","values":{values}}}"#
            ))
        };
        assert!(!told(&mut log, "kfi_soft", "[1.0,2.0,3.0]").contains("pass"));
        told(&mut log, "wait queue", "[1.0,1.0,1.0]");
        let wanted = "figures=\"wake, same CPU/kfi_soft/0;wake, same CPU/wait queue/0\"";
        assert_eq!(unsteady(Set::Node, &log.results), [wanted]);
        assert_eq!(unsteady(Set::Tcp, &log.results), [""; 0]);
        log.pass = 1;
        assert!(told(&mut log, "kfi_soft", "[1.0,1.0,1.0]").contains(r#""pass":1"#));
        told(&mut log, "wait queue", "[1.0,1.0,1.0]");
        assert_eq!(unsteady(Set::Node, &log.results), [""; 0]);
        assert_eq!(log.note("{\"end\":true}"), "{\"end\":true}");
    }

    /// All of a mesh is measured again, once, whatever of it was unsteady.
    #[test]
    fn a_mesh_is_measured_as_a_whole() {
        let mut results = Results::default();
        for design in ["kfi_soft", "kfi_soft, memory", "socket", "socket, memory"] {
            let text = format!(
                r#"{{"item":"TCP, mesh","design":"{design}","size":64,"unit":"ns","values":[1.0,2.0,3.0]}}"#
            );
            results.add(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(unsteady(Set::Mesh, &results), ["figures=\"\""]);
    }

    /// A parameter that is a text of the kernel has 1024 bytes, and names are cut at its marks.
    #[test]
    fn names_fit_into_a_parameter() {
        for target in TARGETS.iter().chain(&TCP_TARGETS) {
            let length: usize = target
                .names()
                .map(|(item, design, _)| {
                    for name in [item, design] {
                        assert!(!name.contains(['/', ';', '"']), "{name}");
                    }
                    item.len() + design.len() + 24
                })
                .sum();
            assert!(length < 1024);
        }
    }

    #[test]
    fn parameters_are_given_once() {
        assert_eq!(with_others("a=1 b=2", "b=3 c=4"), "a=1 b=2 c=4");
        assert_eq!(with_others("a=1", ""), "a=1");
        assert_eq!(with_others("", "a=1"), "a=1");
    }

    #[test]
    fn nics_have_addresses() {
        assert!(!Set::Node.parameters("").contains("address="));
        let parameters = Set::Tcp.parameters("nics=2");
        assert!(parameters.starts_with("address=127.0.0.1,127.0.0.2 loopback=0 "));
        let parameters = Set::Mesh.parameters("");
        let addresses = parameters.split(' ').next().unwrap();
        assert_eq!(addresses.matches("127.0.0.").count(), 64);
        assert!(addresses.ends_with(",127.0.0.64"));
        assert!(!parameters.contains("nics"));
    }

    /// The machine is booted with fewer: see the Makefile.
    #[test]
    fn all_that_is_measured_may_be_pending() {
        let own = "kfi_soft.pending=131072 kfi_soft.nics=2 kfi_soft.rnr_timeout=500";
        let parameters = Set::Node.parameters(&own_parameters(own));
        assert_eq!(parameters, "pending=262144 rnr_timeout=10000 nics=2");
        let memory = TARGETS.iter().map(|target| target.over);
        let memory = memory.filter(|over| over.0 == "memory, pending operation");
        assert_eq!(memory.clone().count(), 1);
        for (.., size) in memory {
            // As many come first: see memory.c.
            assert!(2 * size <= PENDING);
        }
    }
}
