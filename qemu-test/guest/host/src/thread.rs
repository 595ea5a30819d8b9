// SPDX-License-Identifier: GPL-2.0

//! Threads: where they run and whether they sleep.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::CpuSet;

/// Number of threads of this process.
pub fn count() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

/// The state of a thread, as a letter out of proc(5); `None` if there is none.
pub fn state(process: Pid, thread: Pid) -> io::Result<Option<char>> {
    let (process, thread) = (process.as_raw_nonzero(), thread.as_raw_nonzero());
    match fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")) {
        Ok(text) => Ok(parse_state(&text)),
        // ESRCH is a thread that ends between open and read.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(libc::ESRCH) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The state out of a `stat` file of proc(5).
pub fn parse_state(stat: &str) -> Option<char> {
    // The second field is a name in parentheses that may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

/// Waits until a thread sleeps and can be woken by a signal; false if it ended
/// instead.
pub fn until_asleep(process: Pid, thread: Pid) -> io::Result<bool> {
    loop {
        match state(process, thread)? {
            Some('S') => return Ok(true),
            None | Some('Z' | 'X') => return Ok(false),
            Some(_) => relax(),
        }
    }
}

/// How often a thread of this process has gone to sleep; `None` if the kernel does not count that.
pub fn voluntary_switches(thread: Pid) -> io::Result<Option<u64>> {
    let thread = thread.as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"))?;
    Ok(parse_voluntary_switches(&status))
}

/// The count out of a `status` file of proc(5).
fn parse_voluntary_switches(status: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok())
}

/// Lets others run, in a loop that looks for what they do. A yield would not do
/// on a busy kernel without preemption: it comes back at once, for a whole slice.
pub fn relax() {
    std::thread::sleep(Duration::from_micros(20));
}

/// The calling thread.
pub fn id() -> Pid {
    rustix::thread::gettid()
}

/// The CPUs that this thread may run on.
pub fn cpus() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}

/// Keeps this thread on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Lets this thread run before all others on its CPU as soon as it can (`SCHED_FIFO`).
pub fn run_first() -> io::Result<()> {
    crate::sys::run_first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_behind_odd_names() {
        assert_eq!(parse_state("12 (a) b) S 1 2"), Some('S'));
        assert_eq!(parse_state("12 (kfi-suite) R 1 2"), Some('R'));
        assert_eq!(parse_state(""), None);
    }

    #[test]
    fn sleeps_of_a_thread() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse_voluntary_switches(status), Some(17));
        assert_eq!(parse_voluntary_switches("Name:\tx\n"), None);
    }

    #[test]
    fn the_running_thread_runs() {
        let me = rustix::process::getpid();
        assert_eq!(state(me, id()).unwrap(), Some('R'));
    }

    #[test]
    fn a_sleeping_thread_sleeps() {
        let (tx, rx) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tx.send(id()).unwrap();
            stopped.recv().unwrap_err();
        });
        let tid = rx.recv().unwrap();
        assert!(until_asleep(rustix::process::getpid(), tid).unwrap());
        drop(stop);
        thread.join().unwrap();
        assert!(!until_asleep(rustix::process::getpid(), tid).unwrap());
    }

    #[test]
    fn pinning() {
        let cpus = cpus().unwrap();
        std::thread::spawn(move || {
            pin(cpus[0]).unwrap();
            assert_eq!(super::cpus().unwrap(), [cpus[0]]);
        })
        .join()
        .unwrap();
    }
}
