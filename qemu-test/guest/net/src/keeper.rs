// SPDX-License-Identifier: GPL-2.0

//! The parent of a worker, which begins another one when it was killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use crate::worker::RELOAD;
use crate::Failure;

/// The signal of a worker that has killed itself.
const KILLED: i32 = 6;

/// For so long nobody listens while the provider is unloaded.
const AWAY: Duration = Duration::from_secs(3);

/// Modules, in the order in which they are loaded.
const MODULES: [&str; 2] = ["kfi_soft", "kfi_shim"];

/// The files of a process that has ended may be closed a little later.
const TRIES: usize = 100;

fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{command:?}: {said}").into())
}

fn unload(module: &str) -> Result<(), Failure> {
    for _ in 1..TRIES {
        if run(Command::new("rmmod").arg(module)).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    run(Command::new("rmmod").arg(module))
}

/// Returns the parameters of a module on the kernel's command line, as qemu-test/init takes them.
pub(crate) fn parameters<'a>(line: &'a str, module: &str) -> Vec<&'a str> {
    let own = |word: &'a str| word.strip_prefix(module)?.strip_prefix('.');
    line.split_whitespace().filter_map(own).collect()
}

/// Unloads the provider, and loads it again.
fn reload() -> Result<(), Failure> {
    let line = fs::read_to_string("/proc/cmdline")?;
    for module in MODULES.iter().rev() {
        unload(module)?;
    }
    thread::sleep(AWAY);
    for module in MODULES {
        let mut insmod = Command::new("insmod");
        insmod.arg(format!("/modules/{module}.ko"));
        run(insmod.args(parameters(&line, module)))?;
    }
    Ok(())
}

/// Runs a worker, and another one after each that was killed; returns how the last one ended.
pub(crate) fn keep() -> Result<ExitStatus, Failure> {
    loop {
        let mut worker = Command::new(std::env::current_exe()?);
        worker.args(std::env::args_os().skip(1)).arg("--worker");
        let status = worker.status()?;
        if status.code() == Some(RELOAD) {
            reload()?;
        } else if status.signal() != Some(KILLED) {
            return Ok(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_module() {
        let line =
            "console=ttyS0 kfi_soft.address=10.0.3.1 kfi_soft_more.a=1 kfi_shim.b=2 kfi_soft.c=3\n";
        assert_eq!(parameters(line, "kfi_soft"), ["address=10.0.3.1", "c=3"]);
        assert!(parameters(line, "kfi").is_empty());
    }
}
