// SPDX-License-Identifier: GPL-2.0

//! The setup that most tests start with.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kfi::{CntrAttr, Counter, Domain, Error, Fabric, InfoList, KfiErrno, Query, Session, WaitObj};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::check;
use crate::check::{Outcome, Stop};
use crate::env::Env;

/// An open session with a domain.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Rig {
    pub domain: Domain,
    pub fabric: Fabric,
    pub info: InfoList,
    pub session: Session,
}

impl Rig {
    /// In a session of its own.
    pub fn new(env: &Env) -> Result<Self, Stop> {
        Self::in_session(env, Session::open()?)
    }

    /// In a given session.
    pub fn in_session(env: &Env, session: Session) -> Result<Self, Stop> {
        let info = session.getinfo(&query(env))?;
        let fabric = info.fabric(0)?;
        let domain = fabric.domain(&info, 0)?;
        Ok(Self {
            domain,
            fabric,
            info,
            session,
        })
    }

    /// A counter with a wait queue.
    pub fn counter(&self) -> Result<Arc<Counter>, Stop> {
        self.counter_with(WaitObj::QUEUE)
    }

    /// A counter with another wait object.
    pub fn counter_with(&self, wait_obj: WaitObj) -> Result<Arc<Counter>, Stop> {
        let attr = CntrAttr::new().wait_obj(wait_obj);
        Ok(Arc::new(self.domain.counter(&attr)?))
    }

    /// Closes all in order. Fails if there is a counter left: use it to see
    /// that something has left nothing behind.
    pub fn close(self) -> Outcome {
        self.domain.close().map_err(|(_, error)| error)?;
        self.fabric.close().map_err(|(_, error)| error)?;
        self.info.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

/// The question whose first answer is tested.
pub fn query(env: &Env) -> Query {
    match &env.settings.provider {
        Some(name) => Query::new().provider(name),
        None => Query::new(),
    }
}

/// An object of which this must be the only owner.
pub fn unshare<T>(object: Arc<T>) -> Result<T, Stop> {
    Arc::into_inner(object).ok_or_else(|| Stop::fail("the object is still shared"))
}

/// Whether it is "in use", whoever says so.
pub fn is_busy(error: &Error) -> bool {
    *error == Error::Os(Errno::BUSY) || *error == Error::Fabric(KfiErrno::EBUSY)
}

/// The result is this kfabric error.
#[track_caller]
pub fn expect_fabric<T>(result: kfi::Result<T>, errno: KfiErrno) -> Outcome {
    match result {
        Err(Error::Fabric(is)) if is == errno => Ok(()),
        Err(error) => Err(Stop::fail(format!("{error}, should be {errno}"))),
        Ok(_) => Err(Stop::fail(format!("success, should be {errno}"))),
    }
}

/// The result is this errno of the system call.
#[track_caller]
pub fn expect_os<T>(result: kfi::Result<T>, errno: Errno) -> Outcome {
    let should = Error::Os(errno);
    match result {
        Err(error) if error == should => Ok(()),
        Err(error) => Err(Stop::fail(format!("{error}, should be {should}"))),
        Ok(_) => Err(Stop::fail(format!("success, should be {should}"))),
    }
}

/// The result is "in use".
#[track_caller]
pub fn expect_busy<T>(result: kfi::Result<T>) -> Outcome {
    match result {
        Err(error) if is_busy(&error) => Ok(()),
        Err(error) => Err(Stop::fail(format!("{error}, should be EBUSY"))),
        Ok(_) => Err(Stop::fail("success, should be EBUSY")),
    }
}

/// A thread inside `kfi_cntr_wait`.
#[derive(Debug)]
pub struct Waiter {
    tid: Pid,
    thread: JoinHandle<Woken>,
}

/// The report of a waiter that is awake again.
#[derive(Clone, Copy, Debug)]
pub struct Woken {
    /// Of the wait.
    pub result: kfi::Result<()>,
    /// From the call to the return.
    pub took: Duration,
}

impl Woken {
    /// The wait succeeded.
    #[track_caller]
    pub fn expect_ok(&self) -> Outcome {
        self.result.map_err(Stop::from)
    }

    /// The wait failed so.
    #[track_caller]
    pub fn expect(&self, errno: KfiErrno) -> Outcome {
        expect_fabric(self.result, errno)
    }
}

impl Waiter {
    /// Starts one, that may wait or not.
    pub fn start(counter: &Arc<Counter>, threshold: u64, timeout: i32) -> Result<Self, Stop> {
        let tid = Arc::new(AtomicI32::new(0));
        let thread = thread::spawn({
            let (counter, tid) = (counter.clone(), tid.clone());
            move || {
                let start = Instant::now();
                // Nothing that could sleep comes between this and the wait, so
                // that the thread, seen asleep, is known to sleep there.
                tid.store(
                    kfi_host::thread::id().as_raw_nonzero().get(),
                    Ordering::Release,
                );
                let result = counter.wait_ms(threshold, timeout);
                let took = start.elapsed();
                Woken { result, took }
            }
        });
        let tid = loop {
            if let Some(tid) = Pid::from_raw(tid.load(Ordering::Acquire)) {
                break tid;
            }
            kfi_host::thread::relax();
        };
        Ok(Self { tid, thread })
    }

    /// Starts one and returns when it sleeps.
    pub fn asleep(counter: &Arc<Counter>, threshold: u64, timeout: i32) -> Result<Self, Stop> {
        let waiter = Self::start(counter, threshold, timeout)?;
        if waiter.sleeps()? {
            return Ok(waiter);
        }
        let woken = waiter.join()?;
        Err(Stop::fail(format!(
            "the waiter for {threshold} does not sleep: {:?}",
            woken.result
        )))
    }

    /// Waits until the thread sleeps: true, or has returned: false. Both are
    /// final if nobody touches the counter.
    pub fn sleeps(&self) -> Result<bool, Stop> {
        Ok(kfi_host::thread::until_asleep(
            rustix::process::getpid(),
            self.tid,
        )?)
    }

    /// The thread.
    pub fn tid(&self) -> Pid {
        self.tid
    }

    /// Waits until it returns.
    pub fn join(self) -> Result<Woken, Stop> {
        self.thread
            .join()
            .map_err(|_| Stop::fail("the waiter panicked"))
    }
}

/// Starts a thread per item, lets all of them begin at once, and collects what
/// they return.
pub fn in_threads<T, R, I>(
    items: I,
    run: impl Fn(T) -> Result<R, Stop> + Sync,
) -> Result<Vec<R>, Stop>
where
    I: IntoIterator<Item = T>,
    T: Send,
    R: Send,
{
    let items: Vec<T> = items.into_iter().collect();
    let start = std::sync::Barrier::new(items.len());
    thread::scope(|scope| {
        let threads: Vec<_> = items
            .into_iter()
            .map(|item| {
                scope.spawn(|| {
                    start.wait();
                    run(item)
                })
            })
            .collect();
        // All of them are joined before the first error is told.
        let results: Vec<_> = threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|_| Err(Stop::fail("a thread panicked"))))
            .collect()
    })
}

/// Keeps the calling thread on one of the CPUs, counted round.
pub fn pin(index: usize) -> Outcome {
    let cpus = kfi_host::thread::cpus()?;
    check!(!cpus.is_empty(), "no CPU to run on");
    kfi_host::thread::pin(cpus[index % cpus.len()])?;
    Ok(())
}

/// Waits until a condition holds; the time limit of the test ends it otherwise.
pub fn until(mut condition: impl FnMut() -> Result<bool, Stop>) -> Outcome {
    while !condition()? {
        kfi_host::thread::relax();
    }
    Ok(())
}
