// SPDX-License-Identifier: GPL-2.0

//! NICs that come and go while the module is loaded, by what is written to its parameter.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kfi::{
    bits, AddrFormat, AvAttr, BufferKind, Caps, CntrAttr, EpInfo, Error, Fabric, Form, InfoEntry,
    InfoList, KfiErrno, Kind, OpType, Operation, Query, Session, Work,
};
use rustix::io::Errno;
use serde_json::{json, Value};

use super::frame::Frame;
use super::peer::{self, Peer};
use super::{
    listeners, load_network, log_lines, needs_network, peers, reload, Node, CANCELED, DONE, HERE,
    PATIENT, THERE,
};
use crate::check::{Outcome, Stop};
use crate::ends::{expect_context, expect_error, Area, End, Pair, Setup};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, unshare, until, Rig};
use crate::tests::module::{Modules, PROVIDER};
use crate::tests::tool;
use crate::{check, check_eq};

/// The file that is written to, and read from.
const PARAMETER: &str = "/sys/module/kfi_soft/parameters/address";

/// The NIC that comes and goes, and where it listens.
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const PORT: u16 = 7471;

/// Writes to the parameter.
fn write(text: &str) -> Result<(), Errno> {
    fs::write(PARAMETER, text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Writes a line that has to take effect.
#[track_caller]
fn change(text: &str) -> Outcome {
    write(text).map_err(|errno| Stop::fail(format!("{text}: {}", Error::Os(errno))))
}

/// Returns the addresses of the NICs, as the parameter has them.
fn addresses() -> Result<String, Stop> {
    let text = fs::read_to_string(PARAMETER)?;
    match text.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(Stop::fail(format!("{text:?} is no line"))),
    }
}

/// Returns the names of the NICs, as the provider answers.
fn names() -> Result<Vec<String>, Stop> {
    let session = Session::open()?;
    match session.getinfo(&Query::new().provider(PROVIDER)) {
        Ok(info) => {
            let entries = info.entries().iter();
            Ok(entries
                .map(|entry| entry.domain_attr.name.clone())
                .collect())
        }
        Err(Error::Fabric(KfiErrno::ENODATA)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Sends a message from each of two ends to the other.
fn exchange(pair: &Pair) -> Outcome {
    let area = Area::plain(&pair.rig.session, 64)?;
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        to.recv(area.all(), 8)?;
        from.send(area.all(), 7)?;
        expect_context(&to.rx, 8)?;
        expect_context(&from.tx, 7)?;
    }
    Ok(())
}

/// Two ends, on the first NIC and on the last one.
fn pair(env: &Env) -> Result<Pair, Stop> {
    Pair::new(env, Caps::MSG | Caps::SEND | Caps::RECV)
}

/// All of that, and nothing is left.
fn works(env: &Env) -> Outcome {
    let both = pair(env)?;
    exchange(&both)?;
    both.close()
}

/// A NIC comes, others reach it, and it goes when nothing is open on it any more.
fn come_and_go(env: &Env, loopback: u8) -> Outcome {
    let parameters =
        format!("address=127.0.0.1 loopback={loopback} peer_timeout=5000 rnr_timeout=5000");
    let _modules = load_network(env, &parameters)?;
    for _ in 0..3 {
        check_eq!(addresses()?, "127.0.0.1");
        check_eq!(names()?, ["soft0"]);
        check_eq!(listeners(), 1);
        change("+127.0.0.2\n")?;
        check_eq!(addresses()?, "127.0.0.1,127.0.0.2");
        check_eq!(names()?, ["soft0", "soft1"]);
        check_eq!(listeners(), 2);

        let both = pair(env)?;
        exchange(&both)?;
        for nic in ["-127.0.0.1", "-127.0.0.2"] {
            check_eq!(write(nic), Err(Errno::BUSY), "{nic}");
        }
        check_eq!(addresses()?, "127.0.0.1,127.0.0.2");
        check_eq!(listeners(), 2);
        exchange(&both)?;

        let Pair { a, b, far, rig } = both;
        drop(b);
        // The domain will do.
        check_eq!(write("-127.0.0.2"), Err(Errno::BUSY));
        far.close().map_err(|(_, error)| error)?;
        change("-127.0.0.2")?;
        check_eq!(addresses()?, "127.0.0.1");
        check_eq!(names()?, ["soft0"]);
        check_eq!(listeners(), 1);
        // The answer of before names a NIC that is not there any more.
        expect_fabric(rig.fabric.domain(&rig.info, 1), KfiErrno::ENODEV)?;
        // Nobody is there, and nothing is left that would keep this end.
        let area = Area::plain(&rig.session, 64)?;
        a.send(area.all(), 7)?;
        expect_error(&a.tx, 7, KfiErrno::EHOSTUNREACH)?;
        drop((a, area));
        rig.close()?;
    }

    // Names are those of places. None need be left.
    for address in ["+127.0.0.2", "+127.0.0.3", "-127.0.0.2", "-127.0.0.1"] {
        change(address)?;
    }
    check_eq!(names()?, ["soft2"]);
    change("+127.0.0.4")?;
    check_eq!(addresses()?, "127.0.0.4,127.0.0.3");
    check_eq!(names()?, ["soft0", "soft2"]);
    works(env)?;
    for address in ["-127.0.0.3", "-127.0.0.4"] {
        change(address)?;
    }
    check_eq!(addresses()?, "");
    check_eq!(names()?, [""; 0]);
    check_eq!(listeners(), 0);
    // It is the fabric that it was.
    check_eq!(write("+10.0.0.1"), Err(Errno::RANGE));
    for address in ["+127.0.0.1", "+127.0.0.2"] {
        change(address)?;
    }
    works(env)
}

/// An answer is of no use when another NIC has the name of the one that it was about, and is good again when
/// that one is back.
pub(super) fn nic_replaced_after_an_answer(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=127.0.0.1,127.0.0.2")?;
    for format in [AddrFormat::UNSPEC, AddrFormat::SOCKADDR_IN] {
        let session = Session::open()?;
        let hints = InfoEntry {
            addr_format: format,
            ..InfoEntry::default()
        };
        let ask = || session.getinfo(&Query::new().hints(hints.clone()).provider(PROVIDER));
        let old = ask()?;
        let fabric = old.fabric(0)?;
        change("-127.0.0.2")?;
        expect_fabric(fabric.domain(&old, 1), KfiErrno::ENODEV)?;
        change("+127.0.0.3")?;
        check_eq!(names()?, ["soft0", "soft1"]);
        // Neither with the NIC that has the name, nor with the address that is nobody's.
        expect_fabric(fabric.domain(&old, 1), KfiErrno::ENODEV)?;
        // The other one is what it was.
        open_with(&fabric, &old, 0, 1)?;
        // The next answer is about the one that has come.
        let new = ask()?;
        open_with(&fabric, &new, 1, 3)?;
        change("-127.0.0.3")?;
        change("+127.0.0.2")?;
        open_with(&fabric, &old, 1, 2)?;
        expect_fabric(fabric.domain(&new, 1), KfiErrno::ENODEV)?;
        fabric.close().map_err(|(_, error)| error)?;
    }
    Ok(())
}

/// Opens a domain with an answer, and an endpoint in it, which is at the NIC 127.0.0.`last`.
fn open_with(fabric: &Fabric, info: &InfoList, index: usize, last: u8) -> Outcome {
    let domain = fabric.domain(info, index)?;
    let ep = domain.endpoint(EpInfo::Entry(info, index), 0)?;
    let name = ep.name()?;
    match info.entries()[index].addr_format {
        AddrFormat::SOCKADDR_IN => check_eq!(name[4..8], [127, 0, 0, last]),
        // Behind 12 bits of port.
        _ => check_eq!((name[1] >> 4, name[2], name[3]), (last, 0, 0)),
    }
    ep.close().map_err(|(_, error)| error)?;
    domain.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Within the node.
pub(super) fn nics_come_and_go(env: &Env) -> Outcome {
    come_and_go(env, 1)
}

/// Over TCP.
pub(super) fn nics_come_and_go_over_tcp(env: &Env) -> Outcome {
    come_and_go(env, 0)
}

/// Returns the name of the fabric that is opened without one, as the provider answers.
fn fabric_name() -> Result<String, Stop> {
    let info = Session::open()?.getinfo(&Query::new().provider(PROVIDER))?;
    Ok(info.entries()[0].fabric_attr.name.clone())
}

/// The first NIC with an address takes the place of all that have none, when nobody has opened anything of
/// these; their answers are of no use from then on. A user that has opened something goes on with it.
pub(super) fn nics_come_where_none_has_an_address(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    needs_network()?;
    for loopback in [1, 0] {
        reload(
            &modules,
            &format!("nics=3 loopback={loopback} peer_timeout=5000 rnr_timeout=5000"),
        )?;
        check_eq!(peers("from")?, [""; 0]);
        let both = pair(env)?;
        exchange(&both)?;
        check_eq!(write("+127.0.0.1"), Err(Errno::BUSY));
        exchange(&both)?;
        let Pair { a, b, far, rig } = both;
        drop((a, b));
        far.close().map_err(|(_, error)| error)?;
        // One domain will do, and so will the fabric.
        let why = "127.0.0.1: on another fabric than NICs without addresses";
        let said = log_lines(why)?;
        check_eq!(write("+127.0.0.1"), Err(Errno::BUSY));
        check!(log_lines(why)? > said, "nothing about {why}");
        let Rig {
            session,
            info,
            fabric,
            domain,
        } = rig;
        domain.close().map_err(|(_, error)| error)?;
        check_eq!(write("+127.0.0.1"), Err(Errno::BUSY));
        fabric.close().map_err(|(_, error)| error)?;
        check_eq!((addresses()?.as_str(), listeners()), ("", 0));
        check_eq!(names()?, ["soft0", "soft1", "soft2"]);
        works(env)?;

        // Nothing changes when it cannot come: it is of another machine.
        check_eq!(write("+192.0.2.1"), Err(Errno::ADDRNOTAVAIL));
        let listener = Peer::listen(SECOND)?;
        check_eq!(write("+127.0.0.2"), Err(Errno::ADDRINUSE));
        drop(listener);
        check_eq!((addresses()?.as_str(), listeners()), ("", 0));
        check_eq!(fabric_name()?, "soft");
        works(env)?;

        change("+127.0.0.2")?;
        check_eq!(addresses()?, "127.0.0.2");
        check_eq!(names()?, ["soft0"]);
        check_eq!(fabric_name()?, "soft:127.0.0.0/12");
        check_eq!(listeners(), 1);
        // The fabric of before is not there any more.
        expect_fabric(info.fabric(0), KfiErrno::ENODEV)?;
        drop((info, session));
        works(env)?;
        // With the other wire those of this machine are no peers.
        let mut visitor = None;
        if loopback == 0 {
            visitor = Some(Peer::connect(THERE, SECOND, 1)?);
            let is_its = |line: &String| line.starts_with("from 3 2 ");
            until(|| Ok(peers("from")?.iter().any(is_its)))?;
        }

        change("+127.0.0.1")?;
        check_eq!(names()?, ["soft0", "soft1"]);
        works(env)?;
        check_eq!(write("+10.0.0.1"), Err(Errno::RANGE));
        change("-127.0.0.2")?;
        if let Some(mut visitor) = visitor {
            visitor.until(|frame| matches!(frame, Frame::Bye(_)))?;
        }
        check_eq!(addresses()?, "127.0.0.1");
        check_eq!(names()?, ["soft1"]);
        works(env)?;
    }
    // As when it is loaded.
    for (parameters, why) in [
        ("port=0", "port=0"),
        ("peer_timeout=1999", "peer_timeout=1999"),
    ] {
        reload(&modules, parameters)?;
        let said = log_lines(why)?;
        check_eq!(write("+127.0.0.1"), Err(Errno::INVAL));
        check!(log_lines(why)? > said, "nothing about {why}");
        check_eq!(fabric_name()?, "soft");
    }
    modules.load_all()
}

/// Other nodes are let in when the first NIC with an address has come, and not before: a change that is refused,
/// as NICs without addresses are open, lets nobody reach these meanwhile.
pub(super) fn nobody_comes_before_the_first_address(env: &Env) -> Outcome {
    const WRITES: usize = 200;
    let modules = Modules::new(env)?;
    needs_network()?;
    reload(&modules, "loopback=0 peer_timeout=5000")?;
    let rig = Rig::new(env)?;
    let stop = AtomicBool::new(false);
    let write_often = || -> Outcome {
        for _ in 0..WRITES {
            check_eq!(write("+127.0.0.1"), Err(Errno::BUSY));
        }
        Ok(())
    };
    let reached = thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let mut reached = 0;
            // Relaxed: it will see it in the end.
            while !stop.load(Ordering::Relaxed) {
                // Mostly nobody listens.
                reached += usize::from(Peer::connect(THERE, HERE, 1).is_ok());
            }
            reached
        });
        let written = write_often();
        stop.store(true, Ordering::Relaxed);
        let reached = stranger.join();
        written?;
        reached.map_err(|_| Stop::fail("a thread has panicked"))
    })?;
    check_eq!(reached, 0);
    rig.close()?;
    change("+127.0.0.1")?;
    drop(Peer::connect(THERE, HERE, 1)?);
    Ok(())
}

/// A fabric that is being opened when the first NIC with an address comes is either found open, and stays, or is not
/// there any more.
pub(super) fn fabric_opened_beside_the_first_address(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    needs_network()?;
    for _ in 0..env.scaled(20, 4) {
        // It takes longer the more of them make place.
        reload(&modules, "nics=64")?;
        let session = Session::open()?;
        let info = session.getinfo(&Query::new().provider(PROVIDER))?;
        let come = || -> Outcome {
            until(|| match write("+127.0.0.1") {
                Ok(()) => Ok(true),
                Err(Errno::BUSY) => Ok(false),
                Err(errno) => Err(Error::Os(errno).into()),
            })
        };
        let open_often = || -> Outcome {
            loop {
                let fabric = match info.fabric(0) {
                    Ok(fabric) => fabric,
                    Err(Error::Fabric(KfiErrno::ENODEV)) => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
                // It stays as long as somebody has it open.
                let again = info.fabric(0)?;
                for fabric in [again, fabric] {
                    fabric.close().map_err(|(_, error)| error)?;
                }
            }
        };
        in_threads(0..2, |thread| match thread {
            0 => come(),
            _ => open_often(),
        })?;
        check_eq!(fabric_name()?, "soft:127.0.0.0/12");
    }
    Ok(())
}

/// Changes that cannot be are refused, the log says why, and nothing changes.
pub(super) fn refused_changes(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    needs_network()?;
    let refused = |text: &str, errno: Errno, why: &str| {
        let before = (addresses()?, listeners());
        let said = log_lines(why)?;
        check_eq!(write(text), Err(errno), "{text:?}");
        check!(log_lines(why)? > said, "{text:?}: nothing about {why}");
        check_eq!((addresses()?, listeners()), before, "{text:?}");
        Ok::<_, Stop>(())
    };
    reload(&modules, "")?;
    refused("-127.0.0.1", Errno::NOENT, "127.0.0.1: no NIC has it")?;
    refused(
        "127.0.0.1",
        Errno::INVAL,
        "127.0.0.1: neither +ADDRESS nor -ADDRESS",
    )?;
    refused("+no-such-device", Errno::INVAL, "no-such-device: no IPv4")?;
    reload(&modules, "address=127.0.0.1")?;
    for text in ["127.0.0.2", "\n", "=127.0.0.2", " +127.0.0.2"] {
        refused(text, Errno::INVAL, "neither +ADDRESS nor -ADDRESS")?;
    }
    for sign in ["+", "-"] {
        for text in [
            "",
            "\n",
            "127.0.0",
            "127.0.0.256",
            "127.0.0.2 ",
            "127.0.0.2,127.0.0.3",
            "+127.0.0.2",
            "no-such-device",
            "a-name-that-is-too-long-for-a-device",
        ] {
            let why = format!("address: {}: no IPv4 address", text.trim_end_matches('\n'));
            refused(&format!("{sign}{text}"), Errno::INVAL, &why)?;
        }
        let text = format!("{sign}fe80::1");
        refused(
            &text,
            Errno::AFNOSUPPORT,
            "fe80::1: addresses of IPv6 are not supported",
        )?;
        let text = format!("{sign}239.0.0.1");
        refused(&text, Errno::INVAL, "239.0.0.1: no machine can have it")?;
    }
    refused("+10.0.0.1", Errno::RANGE, "10.0.0.1: on another fabric")?;
    refused("+127.0.0.1", Errno::EXIST, "127.0.0.1: another NIC has it")?;
    refused("-127.0.0.2", Errno::NOENT, "127.0.0.2: no NIC has it")?;
    refused("-10.0.0.1", Errno::NOENT, "10.0.0.1: no NIC has it")?;
    // Somebody else is there.
    let listener = Peer::listen(SECOND)?;
    refused(
        "+127.0.0.2",
        Errno::ADDRINUSE,
        "nobody can listen at 127.0.0.2",
    )?;
    drop(listener);
    change("+127.0.0.2")?;
    // As many as there may be.
    for last in 3..=64 {
        change(&format!("+127.0.0.{last}"))?;
    }
    refused("+127.0.0.65", Errno::NOSPC, "too many NICs")?;
    check_eq!(names()?.len(), 64);
    change("-127.0.0.9")?;
    change("+127.0.0.65")?;
    check_eq!(names()?.len(), 64);
    modules.load_all()
}

/// A network device stands for its first address.
pub(super) fn network_devices(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=lo")?;
    check_eq!(addresses()?, "127.0.0.1");
    check_eq!(listeners(), 1);
    check_eq!(write("+lo"), Err(Errno::EXIST));
    change("-lo")?;
    check_eq!(write("-lo"), Err(Errno::NOENT));
    check_eq!(listeners(), 0);
    change("+127.0.0.2")?;
    change("+lo\n")?;
    check_eq!(addresses()?, "127.0.0.2,127.0.0.1");
    works(env)
}

/// With a NIC goes all that there is between it and others, on both sides of it, and nothing is left when
/// it comes again.
pub(super) fn nic_goes_with_its_peers(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    for _ in 0..3 {
        change("+127.0.0.2")?;
        let mut visitor = Peer::connect(THERE, SECOND, 1)?;
        until(|| Ok(peers("from")?.len() == 1))?;

        let rig = Rig::new(env)?;
        let far = rig.fabric.domain(&rig.info, 1)?;
        let mut end = End::open(&far, EpInfo::Entry(&rig.info, 1), &Setup::default())?;
        end.enable()?;
        let listener = Peer::listen(THERE)?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        end.peer = end.av.insert(&peer::name(THERE, 5))?;
        end.send(buffer.segment(0..64), 7)?;
        let mut peer = Peer::accept(&listener)?;
        let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
        peer.respond(sent, DONE)?;
        expect_context(&end.tx, 7)?;
        check_eq!((peers("to")?.len(), peers("from")?.len()), (1, 1));
        drop((end, buffer));
        far.close().map_err(|(_, error)| error)?;
        rig.close()?;

        change("-127.0.0.2")?;
        check_eq!((peers("to")?.len(), peers("from")?.len()), (0, 0));
        visitor.until(|frame| matches!(frame, Frame::Bye(_)))?;
        check!(peer.until(|_| false).is_err(), "the connection stays");
        let refused = TcpStream::connect(SocketAddrV4::new(SECOND, PORT));
        let refused = refused.err().map(|error| error.kind());
        check_eq!(refused, Some(ErrorKind::ConnectionRefused));
    }
    Ok(())
}

/// So does a peer with the lowest number that there is, of a NIC with that number.
pub(super) fn lowest_nic_goes_with_its_peer(env: &Env) -> Outcome {
    const LOWEST: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 0);
    let _modules = load_network(env, "address=127.16.0.0 loopback=0 peer_timeout=600000")?;
    let mut visitor = Peer::connect(LOWEST, LOWEST, 1)?;
    check_eq!(peers("from")?.len(), 1);
    change("-127.16.0.0")?;
    check_eq!(peers("from")?, [""; 0]);
    visitor.until(|frame| matches!(frame, Frame::Bye(_)))?;
    Ok(())
}

/// A send that is not due yet goes to where its target is then: when that NIC of the same node has gone, to
/// another node, where nobody is.
pub(super) fn nic_goes_before_a_deferred_send(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=127.0.0.1,127.0.0.2 peer_timeout=2000")?;
    let both = pair(env)?;
    exchange(&both)?;
    let area = Area::plain(&both.rig.session, 64)?;
    let trigger = both.rig.counter()?;
    let send = Operation::new(Kind::SEND, Form::MSG)
        .segment(area.all())
        .to(both.a.peer)
        .context(9)
        .flags(bits::COMPLETION);
    let work = Work::transfer(OpType::SEND, both.a.ep.handle(), &send, &trigger, 1);
    both.rig.domain.queue_work(&work)?;
    let Pair { a, b, far, rig } = both;
    drop(b);
    far.close().map_err(|(_, error)| error)?;
    change("-127.0.0.2")?;
    trigger.add(1)?;
    expect_error(&a.tx, 9, KfiErrno::EHOSTUNREACH)?;
    drop((a, area));
    unshare(trigger)?.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// A request that has gone to another node is asked back there, though the NIC that it was for is one of this
/// node by then.
pub(super) fn nic_comes_while_it_is_sent_to(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=127.0.0.1 peer_timeout=600000")?;
    let mut node = Node::open(env, 4096)?;
    let listener = Peer::listen(THERE)?;
    node.send_to(THERE, 9)?;
    let mut peer = Peer::accept(&listener)?;
    let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    drop(listener);
    change("+127.0.0.3")?;
    node.end.ep.cancel(9)?;
    let withdrawn = peer.until(|frame| matches!(frame, Frame::Withdraw))?;
    check_eq!(withdrawn, sent);
    peer.respond(sent, CANCELED)?;
    expect_error(&node.end.tx, 9, KfiErrno::ECANCELED)?;
    drop((node.end, node.buffer, peer));
    node.rig.close()?;
    // Requests to it stay within the node now.
    works(env)
}

/// NICs come and go, again and again, while others are used, and threads look at all of them and open
/// domains on those that there are.
pub(super) fn nics_come_and_go_beside_others(env: &Env) -> Outcome {
    let _modules = load_network(
        env,
        "address=127.0.0.1 loopback=0 peer_timeout=5000 rnr_timeout=5000",
    )?;
    let rounds = env.scaled(100, 10);
    let change_often = |nic: &str| -> Outcome {
        for _ in 0..rounds {
            change(&format!("+{nic}"))?;
            // A domain may be open on it.
            until(|| match write(&format!("-{nic}")) {
                Ok(()) => Ok(true),
                Err(Errno::BUSY) => Ok(false),
                Err(errno) => Err(Error::Os(errno).into()),
            })?;
        }
        Ok(())
    };
    let open_often = || -> Outcome {
        let session = Session::open()?;
        let mut opened = 0;
        for _ in 0..rounds {
            let info = session.getinfo(&Query::new().provider(PROVIDER))?;
            let fabric = info.fabric(0)?;
            match fabric.domain(&info, info.entries().len() - 1) {
                Ok(domain) => {
                    opened += 1;
                    let counter = domain.counter(&CntrAttr::new())?;
                    counter.close().map_err(|(_, error)| error)?;
                    domain.close().map_err(|(_, error)| error)?;
                }
                Err(Error::Fabric(KfiErrno::ENODEV)) => {}
                Err(error) => return Err(error.into()),
            }
            fabric.close().map_err(|(_, error)| error)?;
        }
        check!(opened > 0, "no domain was opened");
        Ok(())
    };
    let use_often = || -> Outcome {
        let mut node = Node::open(env, 4096)?;
        node.end.peer = node.end.av.insert(&peer::name(super::HERE, node.port))?;
        for _ in 0..rounds {
            node.end.recv(node.buffer.segment(0..64), 8)?;
            node.end.send(node.buffer.segment(64..128), 7)?;
            expect_context(&node.end.rx, 8)?;
            expect_context(&node.end.tx, 7)?;
        }
        node.close()
    };
    let look_often = || -> Outcome {
        for _ in 0..rounds {
            let seen = addresses()?;
            let all = seen.split(',').collect::<Vec<_>>();
            check!(all.len() <= 3 && all.contains(&"127.0.0.1"), "{seen}");
            peers("from")?;
        }
        Ok(())
    };
    in_threads(0..5, |thread| match thread {
        0 => change_often("127.0.0.2"),
        1 => change_often("127.0.0.3"),
        2 => open_often(),
        3 => use_often(),
        _ => look_often(),
    })?;
    check_eq!(addresses()?, "127.0.0.1");
    check_eq!(names()?, ["soft0"]);
    check_eq!(listeners(), 1);
    Ok(())
}

/// The module goes though NICs come and go just then, or somebody has the file open; when it is loaded it has
/// the NICs that it was told.
pub(super) fn unloaded_beside_changes(env: &Env) -> Outcome {
    let modules = load_network(env, PATIENT)?;
    let mut open = OpenOptions::new().write(true).open(PARAMETER)?;
    let stop = AtomicBool::new(false);
    let writes = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writes = 0;
            // Relaxed: it will see it in the end.
            while !stop.load(Ordering::Relaxed) {
                // The module may not be there.
                writes += u32::from(write("+127.0.0.2").is_ok());
                writes += u32::from(write("-127.0.0.2").is_ok());
            }
            writes
        });
        let reload_often = || -> Outcome {
            for _ in 0..env.scaled(20, 5) {
                reload(&modules, PATIENT)?;
            }
            until(|| Ok(addresses()? == "127.0.0.1,127.0.0.2"))
        };
        let outcome = reload_often();
        stop.store(true, Ordering::Relaxed);
        let writes = writer.join();
        outcome?;
        writes.map_err(|_| Stop::fail("a thread has panicked"))
    })?;
    check!(writes > 0, "nothing was changed");
    let late = open.write(b"+127.0.0.3").err();
    let late = late.and_then(|error| error.raw_os_error());
    check_eq!(late, Some(Errno::NODEV.raw_os_error()));
    Ok(())
}

/// Nodes of the fabric by their addresses and numbers, whether or not somebody is there.
pub(super) fn nodes_by_address(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=127.0.0.1,127.0.0.2")?;
    let rig = Rig::new(env)?;
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let node = |last| Ipv4Addr::new(127, 0, 3, last);
    for text in [
        c"127.0.3.8",
        c"776",
        c"0x308",
        c"fi_addr_soft://0x308:0x7",
        c"fi_sockaddr_in://127.0.3.8:7",
    ] {
        let inserted = av.insert_service(text, c"7", 0)?;
        check_eq!(inserted.count, 1, "{text:?}");
        check_eq!(av.lookup(inserted.addrs[0], 64)?.0, peer::name(node(8), 7));
    }
    let inserted = av.insert_symmetric(c"127.0.3.8", 2, c"7", 2, 0)?;
    check_eq!(inserted.count, 4);
    let all = [(8, 7), (8, 8), (9, 7), (9, 8)];
    for (addr, (last, port)) in inserted.addrs.iter().zip(all) {
        check_eq!(av.lookup(*addr, 64)?.0, peer::name(node(last), port));
    }
    for text in [
        c"127.16.0.1",
        c"10.0.3.8",
        c"127.0.3.256",
        c"::1",
        c"1048576",
        c"soft2",
    ] {
        expect_fabric(av.insert_service(text, c"7", 0), KfiErrno::EINVAL)?;
    }
    drop(av);
    rig.close()?;

    // The command prints an answer for each NIC, with that address.
    let info = |node| tool::text(&["info", "--json", "-p", PROVIDER, "-n", node, "-P", "7"]);
    for (node, format, address) in [
        ("127.0.3.8", "KFI_SOCKADDR_IN", "020000077f000308"),
        ("776", "KFI_ADDR_CXI", "0780300000000000"),
    ] {
        let entries: Value = serde_json::from_str(&info(node)?)?;
        check_eq!(entries.as_array().map(Vec::len), Some(2));
        for entry in entries.as_array().into_iter().flatten() {
            check_eq!(entry["addr_format"], json!(format), "{node}");
            let digits = entry["dest_addr"].as_str().unwrap_or_default();
            check!(digits.starts_with(address), "{node}: {digits}");
        }
    }
    for node in ["127.16.0.1", "10.0.3.8", "::1", "soft2"] {
        check!(info(node).is_err(), "{node} is somebody");
    }
    Ok(())
}
