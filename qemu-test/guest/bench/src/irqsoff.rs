// SPDX-License-Identifier: GPL-2.0

//! How long interrupts are off, as the kernel's tracer `irqsoff` tells, in the guest.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustc_demangle::demangle;
use rustix::fs::OFlags;

use crate::Error;

/// Where the kernel has its tracers.
const TRACING: &str = "/sys/kernel/tracing";
/// Where the module has its parameters.
const PARAMETERS: &str = "/sys/module/kfi_irqsoff/parameters";
/// The crates that a function may be of.
const CRATES: [&str; 2] = ["kfi_soft::", "kfabric::"];
/// Parts of the names of functions that return from an interrupt, or right into one.
const INTERRUPTS: [&str; 2] = ["sysvec", "run_in_hardirq"];
/// The messages that go to the console, during which interrupts are off: warnings.
const PRINTK: (&str, &str) = ("/proc/sys/kernel", "printk");

/// A longest time without interrupts.
struct Longest {
    microseconds: u64,
    /// The functions that were called at its end, the innermost one first.
    stack: Vec<String>,
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |error| Error::File(path.display().to_string(), error)
}

fn read(folder: &str, name: &str) -> Result<String, Error> {
    let path = PathBuf::from(folder).join(name);
    fs::read_to_string(&path).map_err(file_error(&path))
}

fn write(folder: &str, name: &str, text: &str) -> Result<(), Error> {
    let path = PathBuf::from(folder).join(name);
    fs::write(&path, text).map_err(file_error(&path))
}

/// Loads the module, carries out its loads and prints a table of what was longest; unloads it.
pub(crate) fn run(
    module: &Path,
    loads: &[String],
    sizes: &[u32],
    stacks: bool,
) -> Result<(), Error> {
    // The module turns it off and on: doing so from here would stop the tracer, too.
    write(TRACING, "tracing_on", "1")?;
    write(TRACING, "current_tracer", "irqsoff")?;
    let file = File::open(module).map_err(file_error(module))?;
    rustix::system::finit_module(file, c"", 0).map_err(|errno| module_error(errno.into()))?;
    let levels = read(PRINTK.0, PRINTK.1)?;
    write(PRINTK.0, PRINTK.1, "5")?;
    let result = table(loads, sizes, stacks);
    write(PRINTK.0, PRINTK.1, &levels)?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits())
        .map_err(|_| module_error(ErrorKind::Other.into()))?;
    rustix::system::delete_module(c"kfi_irqsoff", flags)
        .map_err(|errno| module_error(errno.into()))?;
    write(TRACING, "current_tracer", "nop")?;
    result
}

fn module_error(error: io::Error) -> Error {
    Error::File("kfi_irqsoff.ko".to_owned(), error)
}

fn table(wanted: &[String], sizes: &[u32], stacks: bool) -> Result<(), Error> {
    let names = read(PARAMETERS, "loads")?;
    let names = names
        .lines()
        .filter(|name| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())));
    let numbers: Vec<_> = sizes.iter().map(u32::to_string).collect();
    let out = |text: String| {
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        written.map_err(file_error(Path::new("output")))
    };
    out(format!("| load | {} | ends in |", numbers.join(" | ")))?;
    out(format!("| --- |{} --- |", " ---: |".repeat(sizes.len())))?;
    let mut failed = Vec::new();
    for name in names {
        let mut cells = Vec::new();
        let mut figures = Vec::new();
        let mut last = Vec::new();
        for size in sizes {
            match measure(name, *size) {
                Ok(longest) => {
                    cells.push(longest.microseconds.to_string());
                    figures.push(longest.microseconds);
                    last = longest.stack;
                }
                Err(error) => {
                    cells.push("-".to_owned());
                    failed.push(format!("{name} {size}: {error}"));
                }
            }
        }
        let shown = if grows(&figures) {
            format!("**{name}**")
        } else {
            name.to_owned()
        };
        out(format!(
            "| {shown} | {} | {} |",
            cells.join(" | "),
            place(&last)
        ))?;
        if stacks {
            for function in &last {
                out(format!("    {function}"))?;
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::Results(failed.join("; ")))
}

/// Carries out a load.
fn measure(name: &str, size: u32) -> Result<Longest, Error> {
    write(TRACING, "tracing_max_latency", "0")?;
    write(PARAMETERS, "run", &format!("{name} {size}"))?;
    let text = read(TRACING, "tracing_max_latency")?;
    let microseconds = text
        .trim()
        .parse()
        .map_err(|_| Error::Results(format!("tracing_max_latency: {text}")))?;
    Ok(Longest {
        microseconds,
        stack: stack(&read(TRACING, "trace")?),
    })
}

/// The last stack of a trace.
fn stack(trace: &str) -> Vec<String> {
    let mut stack = Vec::new();
    let mut before = false;
    for line in trace.lines() {
        let function = line.strip_prefix(" => ");
        if let Some(function) = function {
            if !before {
                stack.clear();
            }
            stack.push(format!("{:#}", demangle(function.trim())));
        }
        before = function.is_some();
    }
    stack
}

/// The innermost function of ours; else what there is to say.
fn place(stack: &[String]) -> String {
    let has = |words: &[&str]| {
        let found = |function: &&String| words.iter().any(|word| function.contains(word));
        stack.iter().find(found)
    };
    match (has(&CRATES), has(&INTERRUPTS), stack.first()) {
        (Some(function), ..) | (None, None, Some(function)) => format!("`{function}`"),
        (None, Some(_), _) => "an interrupt".to_owned(),
        (None, None, None) => "-".to_owned(),
    }
}

/// Whether the last figure, of much more than the one before it, is larger by more than what comes
/// and goes.
fn grows(figures: &[u64]) -> bool {
    matches!(figures, [.., before, last] if *last > before + before / 2 + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_found() {
        let trace =
            "# tracer: irqsoff\n#  => started at: a\n   <...>-1 0d... 5us : <stack trace>\n \
                     => old\n   <...>-1 0d... 6us : <stack trace>\n => tracer_hardirqs_on\n => \
                     _RNvNtCs4fqI2P2rA04_8kfi_soft8receiver4land\n => write\n";
        let stack = stack(trace);
        assert_eq!(
            stack,
            ["tracer_hardirqs_on", "kfi_soft::receiver::land", "write"]
        );
        assert_eq!(place(&stack), "`kfi_soft::receiver::land`");
        assert_eq!(place(&stack[..1]), "`tracer_hardirqs_on`");
        assert_eq!(place(&["asm_sysvec_irq_work".to_owned()]), "an interrupt");
        assert_eq!(place(&[]), "-");
    }

    #[test]
    fn growth() {
        assert!(!grows(&[]));
        assert!(!grows(&[1000]));
        assert!(!grows(&[10, 100, 154]));
        assert!(!grows(&[3, 3, 8]));
        assert!(grows(&[10, 10, 20]));
    }
}
