// SPDX-License-Identifier: GPL-2.0

//! Connections of peers that have not introduced themselves yet.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::frame::Kind;
use super::peer::Peer;
use super::{load_network, reload, HERE, PATIENT, THERE};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::until;
use crate::{check, check_eq};

/// So many of them there may be of an address, and of a NIC.
const OF_ONE: u8 = 4;
const OF_ALL: u8 = 64;

/// The first bytes of a `HELLO`.
const HALF: [u8; 80] = {
    let mut bytes = [0; 80];
    bytes[0] = 1;
    bytes[2] = 160;
    bytes
};

/// Opens connections of an address, and says nothing, or half of what is to be said.
fn silent(source: Ipv4Addr, count: u8, open: &mut Vec<Peer>) -> Outcome {
    for number in 0..count {
        let mut peer = Peer::open(source, HERE)?;
        if number % 2 == 1 {
            peer.say(&HALF)?;
        }
        open.push(peer);
    }
    Ok(())
}

/// Connections on which nothing is said keep others from the same address out, and, if they are many, all; but not
/// those who have said who they are. When they are gone others come.
pub(super) fn too_many(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let other = |last| Ipv4Addr::new(127, 0, 6, last);
    let mut friend = Peer::connect(THERE, HERE, 1)?;
    let mut open = Vec::new();
    silent(THERE, OF_ONE, &mut open)?;
    Peer::be_turned_away(THERE, HERE)?;
    let mut second = Peer::connect(other(0), HERE, 1)?;
    for last in 1..OF_ALL / OF_ONE {
        silent(other(last), OF_ONE, &mut open)?;
    }
    check_eq!(open.len(), usize::from(OF_ALL));
    Peer::be_turned_away(other(200), HERE)?;
    // Nobody has ended the good ones.
    for peer in [&mut friend, &mut second] {
        peer.request(1, Kind::Message, (0xfff, 64), None)?;
        check_eq!(peer.response()?.0, 1);
    }
    drop(open);
    until(|| Ok(Peer::connect(other(200), HERE, 1).is_ok()))
}

/// Connections that are reset before anything was said give their places back at once: if each of them kept its own
/// until its time is over, 5 s, this would take longer than a test may.
pub(super) fn reset(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    for session in 1..=100 {
        let mut open = Vec::new();
        silent(THERE, OF_ONE, &mut open)?;
        for peer in open {
            peer.reset()?;
        }
        until(|| Ok(Peer::connect(THERE, HERE, session).is_ok()))?;
    }
    Ok(())
}

/// Connections that stay, and on which nothing is said, keep others out for a time only.
pub(super) fn silent_ones(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let mut open = Vec::new();
    silent(THERE, OF_ONE, &mut open)?;
    Peer::be_turned_away(THERE, HERE)?;
    until(|| Ok(Peer::connect(THERE, HERE, 1).is_ok()))?;
    for mut peer in open {
        peer.until_closed()?;
    }
    Ok(())
}

/// The module goes though there are connections on which nothing was said yet, and others come just then; all of
/// them are closed.
pub(super) fn beside_an_unload(env: &Env) -> Outcome {
    let modules = load_network(env, PATIENT)?;
    let stop = AtomicBool::new(false);
    let reload_often = || -> Outcome {
        for round in 0..env.scaled(10, 3) {
            let mut open = Vec::new();
            for last in 1..=10 {
                silent(Ipv4Addr::new(127, 0, 6, last), 2, &mut open)?;
            }
            // Those before it were accepted.
            drop(Peer::connect(THERE, HERE, round + 1)?);
            reload(&modules, PATIENT)?;
            for mut peer in open {
                peer.until_closed()?;
            }
        }
        // It is there again.
        drop(Peer::connect(THERE, HERE, 1)?);
        Ok(())
    };
    let came = thread::scope(|scope| {
        let coming = scope.spawn(|| {
            let mut came = 0u32;
            // Relaxed: it will see it in the end.
            while !stop.load(Ordering::Relaxed) {
                // The node may not be there, or have too many of them.
                if let Ok(mut peer) = Peer::open(Ipv4Addr::new(127, 0, 7, 1), HERE) {
                    came += u32::from(peer.say(&HALF).is_ok());
                }
            }
            came
        });
        let outcome = reload_often();
        stop.store(true, Ordering::Relaxed);
        let came = coming.join();
        outcome?;
        came.map_err(|_| Stop::fail("a thread has panicked"))
    })?;
    check!(came > 0, "nobody came");
    Ok(())
}
