// SPDX-License-Identifier: GPL-2.0

//! The work of every machine: it does as it is told.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{self, Answer, Life, Link, Order, Peer, PORT};
use crate::ledger::Ledger;
use crate::place::{Arrival, Place};
use crate::traffic::Traffic;
use crate::Failure;

/// The first machine is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// For so long nothing has come when all that was sent has.
const QUIET: Duration = Duration::from_millis(100);

/// Bytes of the longest messages that a machine can receive.
pub(crate) const LONGEST: u64 = 256 << 10;

/// The exit status of a worker that wants the provider to be loaded again.
pub(crate) const RELOAD: i32 = 75;

fn connect(leader: Ipv4Addr) -> io::Result<TcpStream> {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect((leader, PORT)) {
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(200)),
            result => return result,
        }
    }
}

/// A number that no other life has.
fn life_number() -> io::Result<u64> {
    // Another one each time.
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let digits: String = text
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(12)
        .collect();
    u64::from_str_radix(&digits, 16).map_err(io::Error::other)
}

/// Does as the first machine says, until it says that this is all.
pub(crate) fn work(machine: u32, machines: u32, leader: Ipv4Addr) -> Result<(), Failure> {
    let life = Life {
        machine,
        number: life_number()?,
    };
    let place = Place::open(life, machines, LONGEST)?;
    let (mut orders, answers) = Link::new(connect(leader)?)?.split();
    let here = Answer::Here(Peer {
        life,
        name: place.name.clone(),
    });
    control::send(&answers, &here)?;

    let ledger = Mutex::new(Ledger::default());
    let ledger = || ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let peers: Mutex<Option<Vec<Peer>>> = Mutex::new(None);
    let peers = || peers.lock().unwrap_or_else(PoisonError::into_inner);
    // Relaxed, both: what they are about has locks of its own.
    let (over, asked) = (AtomicBool::new(false), AtomicBool::new(false));
    let (plans, planned) = mpsc::channel();

    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let note = |arrival: Arrival<'_>| {
                    ledger().note(machine, arrival.lane, arrival.receive, arrival.bytes);
                };
                let busy = match place.read(QUIET, note) {
                    Ok(busy) => busy,
                    Err(error) => {
                        ledger().complain(error.to_string());
                        thread::sleep(QUIET);
                        false
                    }
                };
                if !busy && asked.swap(false, Ordering::Relaxed) {
                    let received = Answer::Received(ledger().received());
                    if control::send(&answers, &received).is_err() {
                        break;
                    }
                }
            }
        });
        let traffic = scope.spawn(|| {
            let mut traffic = Traffic::new(life, &place);
            for plan in planned {
                let answer = match traffic.run(&plan, || peers().take()) {
                    Ok(done) => Answer::Done(done),
                    Err(error) => Answer::Failed(error.to_string()),
                };
                if control::send(&answers, &answer).is_err() {
                    break;
                }
            }
        });
        let result = loop {
            let order = match control::receive(&mut orders) {
                Ok(order) => order,
                Err(error) => break Err(error.into()),
            };
            match order {
                None => break Err(Failure::from("the first machine is gone")),
                Some(Order::Bye) => break Ok(()),
                Some(Order::Peers(all)) => *peers() = Some(all),
                Some(Order::Traffic(plan)) => {
                    if plans.send(plan).is_err() {
                        break Err("no traffic any more".into());
                    }
                }
                Some(Order::Tell) => asked.store(true, Ordering::Relaxed),
                // Nothing is written, closed or told before any of these.
                Some(Order::Reset) => {
                    if let Err(error) = fs::write("/proc/sysrq-trigger", "b") {
                        break Err(error.into());
                    }
                }
                Some(Order::Kill) => process::abort(),
                Some(Order::Reload) => process::exit(RELOAD),
            }
        };
        drop(plans);
        over.store(true, Ordering::Relaxed);
        let ended = traffic.join().map_err(|_| "a thread has panicked");
        result.and(ended.map_err(Into::into))
    })
}
