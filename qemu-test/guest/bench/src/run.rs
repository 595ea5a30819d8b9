// SPDX-License-Identifier: GPL-2.0

//! Runs the module, in the guest.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::thread::CpuSet;

use crate::Error;

/// What the module's lines begin with.
const PREFIX: &str = "kfi_bench: {";
/// Between looks at the log: they take a bit of a CPU.
const PAUSE: Duration = Duration::from_secs(1);

/// Loads the module, prints what it measures, and unloads it.
pub(crate) fn run(module: &Path, items: &[String], rounds: u32) -> Result<(), Error> {
    let mut log = Log::open().map_err(Error::Module)?;
    let parameters = CString::new(format!("items={} rounds={rounds}", items.join(",")))
        .map_err(|error| Error::Module(error.into()))?;
    let file = File::open(module).map_err(Error::Module)?;
    let loader = thread::spawn(move || {
        // What runs on one CPU stays there.
        let mut cpus = CpuSet::new();
        cpus.set(0);
        rustix::thread::sched_setaffinity(None, &cpus)?;
        rustix::system::finit_module(file, &parameters, 0)
    });
    while !loader.is_finished() {
        thread::sleep(PAUSE);
        log.print().map_err(Error::Module)?;
    }
    log.print().map_err(Error::Module)?;
    match loader.join() {
        Ok(result) => result.map_err(|errno| Error::Module(errno.into()))?,
        Err(_) => return Err(Error::Module(ErrorKind::Other.into())),
    }
    let flags = i32::try_from(OFlags::NONBLOCK.bits())
        .map_err(|_| Error::Module(ErrorKind::Other.into()))?;
    rustix::system::delete_module(c"kfi_bench", flags).map_err(|errno| Error::Module(errno.into()))
}

/// The kernel's log, from now on.
struct Log(File);

impl Log {
    fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/kmsg", flags, Mode::empty())?;
        rustix::fs::seek(&fd, SeekFrom::End(0))?;
        Ok(Self(fd.into()))
    }

    /// Prints what has come.
    fn print(&mut self) -> io::Result<()> {
        // One read is one record.
        let mut record = [0; 8192];
        let mut out = io::stdout().lock();
        loop {
            match self.0.read(&mut record) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let line = text.lines().next().unwrap_or_default();
                    if let Some(start) = line.find(PREFIX) {
                        let json = &line[start + PREFIX.len() - 1..];
                        writeln!(out, "{json}")?;
                        out.flush()?;
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
