// SPDX-License-Identifier: GPL-2.0

//! NICs that have addresses.

mod broken;
#[expect(dead_code, reason = "the kernel uses more")]
#[path = "../../../../../rust/kfi_soft/wire/tcp/frame.rs"]
mod frame;
mod hmac;
mod hotplug;
mod newcomers;
mod peer;
mod secret;
mod sessions;

use std::collections::{BTreeSet, VecDeque};
use std::ffi::CString;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kfi::{
    bits, Buffer, BufferKind, Caps, CntrAttr, Domain, EpInfo, Error, Form, GetinfoFlags, InfoList,
    KfiErrno, MrAttr, Operation, Query, Session,
};
use kfi_host::process::{self, Status};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{json, Value};

use self::frame::{Frame, Kind, Response, NOT_READY, NO_ROOM};
use self::peer::{Hello, Peer};
use crate::check::{Outcome, Stop};
use crate::child;
use crate::ends::{done, expect, settle, Area, End, Pair, Setup, LONG};
use crate::env::{Env, Settings};
use crate::failing::{Failing, Whose};
use crate::kernel_log::KernelLog;
use crate::raw::MappedPage;
use crate::rig::{expect_fabric, until, Rig};
use crate::tests::module::{
    could_not, is_loaded, needs_log, parameters, run_with, unload, users_of, Modules, PROVIDER,
    TRANSFER,
};
use crate::tests::wait_fd::{receive_fd, send_fd};
use crate::tests::{small_provider, tool, users};
use crate::{check, check_eq, tests};

tests! {
    "network";
    "addresses" ["kfabric.h"] addresses;
    "refused-addresses" ["kfabric.h"] refused_addresses;
    "nodes-by-address" ["kfabric.h kfi_domain.h"] hotplug::nodes_by_address;
    "network-devices" ["kfabric.h"] hotplug::network_devices;
    "nics-come-and-go" ["kfabric.h kfi_endpoint.h"] hotplug::nics_come_and_go;
    "nics-come-and-go-over-tcp" ["kfabric.h kfi_endpoint.h"] hotplug::nics_come_and_go_over_tcp;
    "nics-come-where-none-has-an-address" ["kfabric.h kfi_endpoint.h"] hotplug::nics_come_where_none_has_an_address;
    "nobody-comes-before-the-first-address" ["kfabric.h"] hotplug::nobody_comes_before_the_first_address;
    "fabric-opened-beside-the-first-address" ["kfabric.h"] hotplug::fabric_opened_beside_the_first_address;
    "nics-come-and-go-beside-others" ["kfabric.h kfi_endpoint.h"] hotplug::nics_come_and_go_beside_others;
    "nic-replaced-after-an-answer" ["kfi_domain.h kfi_endpoint.h"] hotplug::nic_replaced_after_an_answer;
    "nic-goes-with-its-peers" ["kfi_endpoint.h"] hotplug::nic_goes_with_its_peers;
    "lowest-nic-goes-with-its-peer" ["kfi_endpoint.h"] hotplug::lowest_nic_goes_with_its_peer;
    "nic-goes-before-a-deferred-send" ["R-DWQ-12 kfi_endpoint.h"] hotplug::nic_goes_before_a_deferred_send;
    "nic-comes-while-it-is-sent-to" ["kfi_endpoint.h"] hotplug::nic_comes_while_it_is_sent_to;
    "refused-changes" ["kfabric.h"] hotplug::refused_changes;
    "unloaded-beside-changes" ["R-CLOSE-5"] hotplug::unloaded_beside_changes;
    "off-by-default" ["kfabric.h"] off_by_default;
    "listens-where-it-is-told" ["kfabric.h"] listens_where_it_is_told;
    "programs-are-no-peers" ["kfabric.h"] programs_are_no_peers;
    "message" ["kfi_endpoint.h"] message;
    "tagged" ["kfi_tagged.h"] tagged;
    "rma" ["kfi_rma.h"] rma;
    "atomic" ["kfi_atomic.h"] atomic;
    "kernel-consumer" ["R-CNTR-7 kfi_endpoint.h kfi_tagged.h kfi_rma.h"] kernel_consumer;
    "users-beside-each-other" ["kfi_endpoint.h kfi_rma.h"] users_beside_each_other;
    "greeting" ["kfi_endpoint.h kfi_domain.h"] greeting;
    "secret-is-found" ["kfabric.h"] secret::is_found;
    "secret-between-nics" ["kfi_tagged.h"] secret::between_nics;
    "secret-of-strangers" ["kfi_endpoint.h"] secret::strangers;
    "secret-of-many-strangers" ["kfi_endpoint.h"] secret::many_strangers;
    "secret-of-false-targets" ["kfi_endpoint.h"] secret::false_targets;
    "secret-of-one-side" ["kfi_endpoint.h"] secret::of_one_side;
    "greetings" ["kfi_endpoint.h"] broken::greetings;
    "broken-initiator" ["kfi_endpoint.h"] broken::initiator;
    "broken-data-of-an-initiator" ["kfi_endpoint.h kfi_rma.h"] broken::data_of_an_initiator;
    "broken-too-often" ["kfi_endpoint.h"] broken::too_often;
    "broken-target" ["kfi_endpoint.h kfi_rma.h kfi_atomic.h"] broken::target;
    "session-goes-on" ["kfi_endpoint.h kfi_rma.h"] sessions::goes_on;
    "session-goes-on-at-its-target" ["kfi_endpoint.h kfi_rma.h kfi_atomic.h"] sessions::goes_on_at_its_target;
    "session-with-messages-not-taken" ["kfi_endpoint.h"] sessions::not_taken;
    "session-ended-by-its-target" ["kfi_endpoint.h"] sessions::ended_by_its_target;
    "session-with-a-target-started-again" ["kfi_endpoint.h"] sessions::started_again;
    "cancelled-while-held" ["kfi_endpoint.h"] sessions::cancelled_while_held;
    "newcomers-that-reset" ["kfi_endpoint.h"] newcomers::reset;
    "newcomers-that-are-silent" ["kfi_endpoint.h"] newcomers::silent_ones;
    "too-many-newcomers" ["kfi_endpoint.h"] newcomers::too_many;
    "newcomers-beside-an-unload" ["R-CLOSE-5"] newcomers::beside_an_unload;
    "silent-initiator" ["kfi_endpoint.h"] silent_initiator;
    "key-used-again" ["R-CNTR-3 kfi_domain.h"] key_used_again;
    "keys-of-strangers" ["kfi_endpoint.h"] keys_of_strangers;
    "not-ready" ["kfi_endpoint.h"] not_ready;
    "claimed-beside-others" ["kfi_tagged.h"] claimed_beside_others;
    "never-ready" ["kfi_endpoint.h"] never_ready;
    "flooding-initiator" ["kfi_endpoint.h"] flooding_initiator;
    "dribbling-initiator" ["kfi_endpoint.h"] dribbling_initiator;
    "stopped-peers-keep-their-place" ["kfi_endpoint.h"] stopped_peers_keep_their_place;
    "asking-peers-keep-their-place" ["kfi_endpoint.h"] asking_peers_keep_their_place;
    "stopped-and-silent" ["kfi_endpoint.h"] stopped_and_silent;
    "unread-answers" ["kfi_rma.h"] unread_answers;
    "unread-answers-again-and-again" ["kfi_rma.h"] unread_answers_again_and_again;
    "claimed-again-and-again" ["kfi_endpoint.h"] claimed_again_and_again;
    "unread-answers-of-connections-before" ["kfi_rma.h"] unread_answers_of_connections_before;
    "unread-data-of-modules-before" ["kfi_endpoint.h"] unread_data_of_modules_before;
    "withdrawn-while-moving" ["kfi_endpoint.h"] withdrawn_while_moving;
    "given-up-in-time" ["kfi_endpoint.h"] given_up_in_time;
    "cancelled-and-posted-again" ["kfi_endpoint.h"] cancelled_and_posted_again;
    "many-peers-of-before" ["kfi_endpoint.h"] many_peers_of_before;
    "addresses-without-anybody" ["kfi_endpoint.h"] addresses_without_anybody;
    "shares-of-one-session" ["kfi_shim.h"] shares_of_one_session;
    "associations-of-users" ["kfi_endpoint.h"] associations_of_users;
    "stat" ["kfi_shim.h"] stat;
    "after-a-rest" ["kfi_endpoint.h"] after_a_rest;
    "quiet-peers-are-forgotten" ["kfi_endpoint.h"] quiet_peers_are_forgotten;
    "refused-strangers" ["kfi_endpoint.h"] refused_strangers;
    "answers-count-until-acknowledged" ["kfi_rma.h"] answers_count_until_acknowledged;
    "no-room-for-atomics" ["kfi_atomic.h kfi_rma.h"] no_room_for_atomics;
    "no-room-beside-a-message" ["kfi_atomic.h kfi_endpoint.h"] no_room_beside_a_message;
    "no-memory-for-requests" ["kfi_endpoint.h"] no_memory_for_requests;
    "no-room-at-a-peer" ["kfi_endpoint.h"] no_room_at_a_peer;
    "bytes-of-users" ["kfi_endpoint.h"] bytes_of_users;
    "flows-of-users" ["kfi_endpoint.h"] flows_of_users;
    "mapping-beside-a-close" ["kfi_shim.h"] mapping_beside_a_close;
    "killed-in-a-close" ["kfi_shim.h R-CLOSE-8"] killed_in_a_close;
    "killed-in-many-closes" ["kfi_shim.h R-CLOSE-8"] killed_in_many_closes;
    "session-closes-several-at-a-time" ["R-CLOSE-8"] session_closes_several;
    "session-closes-several-with-regions" ["R-CLOSE-8"] session_closes_several_with_regions;
    "session-closes-many-beside-a-silent-target" ["R-CLOSE-8"] session_closes_many;
    "descriptors-are-left-to-another-user" ["kfi_shim.h R-CLOSE-8"] left_to_another_user;
    "descriptors-are-left-to-another-process" ["kfi_shim.h R-CLOSE-8"] left_to_another_process;
    "session-used-by-another-process" ["kfi_shim.h R-CLOSE-8"] session_used_by_another_process;
    "killed-in-a-close-beside-sessions-of-others" ["kfi_shim.h R-CLOSE-8"] killed_in_a_close_beside_others;
    "killed-with-sessions-in-sockets" ["kfi_shim.h R-CLOSE-8"] killed_with_sessions_in_sockets;
    "session-closed-under-the-number-of-its-opener" ["kfi_shim.h R-CLOSE-8"] session_closed_under_its_number;
    "killed-beside-a-silent-target" ["kfi_shim.h R-CLOSE-8"] killed_beside_a_silent_target;
    "killed-with-many-sessions" ["kfi_shim.h R-CLOSE-8"] killed_with_many_sessions;
}

/// Loads the provider with other parameters.
fn reload(modules: &Modules<'_>, parameters: &str) -> Outcome {
    let text = CString::new(parameters).unwrap_or_default();
    modules
        .reload_provider(&text)
        .map_err(|errno| could_not("reload", PROVIDER, errno))
}

fn text(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The numbers of NICs are the low bits of their addresses, and the fabric has the others in its name.
fn addresses(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    reload(&modules, "address=127.0.1.9,127.0.0.2,127.15.255.255")?;
    let session = Session::open()?;
    let query = || Query::new().provider(PROVIDER);
    let info = session.getinfo(&query())?;
    let numbers: [u64; 3] = [0x109, 2, 0xf_ffff];
    check_eq!(info.entries().len(), numbers.len());
    for (index, (number, entry)) in numbers.iter().zip(info.entries()).enumerate() {
        check_eq!(entry.domain_attr.name, format!("soft{index}"));
        check_eq!(entry.fabric_attr.name, "soft:127.0.0.0/12");
        let address = number << 12 | 1 << 32;
        check_eq!(entry.src_addr.0, address.to_le_bytes().to_vec());
    }
    let source = |node: &str| {
        let node = text(node);
        let query = query().flags(GetinfoFlags::SOURCE);
        session.getinfo(&query.node(node.as_c_str().into()))
    };
    for node in ["127.0.0.2", "2", "0x2", "soft1"] {
        let found = source(node)?;
        check_eq!(found.entries().len(), 1);
        check_eq!(found.entries()[0].domain_attr.name, "soft1");
    }
    for node in ["127.0.0.3", "soft3", "127.16.0.2", "10.0.0.2"] {
        expect_fabric(source(node), KfiErrno::ENODATA)?;
    }
    let destination = |node: &str| {
        let node = text(node);
        session.getinfo(&query().node(node.as_c_str().into()))
    };
    // Whether there is somebody, nobody knows yet.
    for (node, address) in [("127.0.0.2", [127, 0, 0, 2]), ("127.3.2.1", [127, 3, 2, 1])] {
        let found = destination(node)?;
        check_eq!(found.entries().len(), 3);
        for entry in found.entries() {
            check_eq!(entry.dest_addr.0.get(4..8), Some(&address[..]));
        }
    }
    let found = destination("0x12345")?;
    let native: u64 = 0x12345 << 12 | 1 << 32;
    check_eq!(
        found.entries()[0].dest_addr.0,
        native.to_le_bytes().to_vec()
    );
    for node in ["127.16.0.2", "10.0.0.2", "soft3"] {
        expect_fabric(destination(node), KfiErrno::ENODATA)?;
    }
    drop((info, found));
    drop(session);
    modules
        .reload_provider(c"")
        .map_err(|errno| could_not("reload", PROVIDER, errno))?;
    let session = Session::open()?;
    let info = session.getinfo(&query())?;
    check_eq!(info.entries()[0].fabric_attr.name, "soft");
    Ok(())
}

/// Impossible addresses are refused when the module is loaded, which says why, and leaves nothing behind.
fn refused_addresses(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let many: Vec<String> = (1..=65).map(|last| format!("127.0.0.{last}")).collect();
    for (parameters, why) in [
        ("address=127.0.0.256", "127.0.0.256: no IPv4 address"),
        ("address=127.0.0.1,", ": no IPv4 address"),
        ("address=soft0", "soft0: no IPv4 address"),
        ("address=::1", "::1: addresses of IPv6 are not supported"),
        ("address=0.0.0.0", "0.0.0.0: no machine can have it"),
        ("address=239.0.0.1", "239.0.0.1: no machine can have it"),
        ("address=127.0.0.1,10.0.0.1", "10.0.0.1: on another fabric"),
        (
            "address=127.0.0.1,127.0.0.1",
            "127.0.0.1: another NIC has it",
        ),
        (&format!("address={}", many.join(",")), "too many NICs"),
        ("address=127.0.0.1 port=0", "port=0"),
        ("address=127.0.0.1 peer_timeout=1999", "peer_timeout=1999"),
        (
            "address=127.0.0.1 peer_timeout=600001",
            "peer_timeout=600001",
        ),
    ] {
        let said = log_lines(why)?;
        let result = modules.reload_provider(&text(parameters));
        check_eq!(result, Err(Errno::INVAL), "{parameters}");
        check!(log_lines(why)? > said, "{parameters}: nothing about {why}");
    }
    let answer = Session::open()?
        .getinfo(&Query::new().provider(PROVIDER))
        .err();
    check_eq!(answer, Some(Error::Fabric(KfiErrno::ENODATA)));
    modules.load_all()
}

/// Counts the lines of the kernel's log that say something of the provider.
fn log_lines(what: &str) -> Result<usize, Stop> {
    let log = std::process::Command::new("dmesg").output()?;
    let text = String::from_utf8_lossy(&log.stdout);
    Ok(text
        .lines()
        .filter(|line| line.contains(PROVIDER) && line.contains(what))
        .count())
}

/// Without addresses nobody listens.
fn off_by_default(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    reload(&modules, "")?;
    check_eq!(listeners(), 0);
    Ok(())
}

/// Where NICs have their addresses, and nowhere else.
fn listens_where_it_is_told(env: &Env) -> Outcome {
    let modules = load_network(env, "address=127.0.0.1,127.0.0.5")?;
    check_eq!(listeners(), 2);
    // The address of another machine.
    let result = modules.reload_provider(c"address=127.0.0.1,192.0.2.1");
    check_eq!(result, Err(Errno::INVAL));
    let result = modules.reload_provider(c"address=192.0.2.1");
    check_eq!(result, Err(Errno::ADDRNOTAVAIL));
    check_eq!(listeners(), 0);
    modules.load_all()
}

/// Returns the `HELLO` of a NIC to itself, see Documentation/wire-protocol.md.
fn hello(nic: u32) -> [u8; 160] {
    let mut hello = [0; 160];
    let mut put = |at: usize, bytes: &[u8]| hello[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[1]);
    put(2, &160u16.to_le_bytes());
    put(16, &1u64.to_le_bytes());
    put(24, b"kfi-soft");
    put(32, &1u16.to_le_bytes());
    put(38, &1u16.to_le_bytes());
    put(40, &nic.to_le_bytes());
    put(44, &nic.to_le_bytes());
    put(48, &4711u64.to_le_bytes());
    put(64, &1u64.to_le_bytes());
    hello
}

/// Returns the type of the frame that a NIC says to a program which says `HELLO`; none if it says nothing
/// and closes the connection.
fn answer_to_hello(nic: u32) -> Result<Option<u8>, Stop> {
    let address = Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(127, 0, 0, 0)) | nic);
    let mut socket = TcpStream::connect((address, 7471))?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    // It may be closed before that.
    let _ = socket.write_all(&hello(nic));
    let mut first = [0];
    match socket.read(&mut first) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(first[0])),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A program of the machine, which anybody may run, can connect from the address of a NIC, too.
fn programs_are_no_peers(env: &Env) -> Outcome {
    const WELCOME: u8 = 2;

    let modules = load_network(env, "address=127.0.0.1,127.0.0.2")?;
    check_eq!(answer_to_hello(1)?, None);
    check_eq!(answer_to_hello(2)?, None);
    // For tests it can be one.
    reload(&modules, "address=127.0.0.1,127.0.0.2 loopback=0")?;
    check_eq!(answer_to_hello(1)?, Some(WELCOME));
    Ok(())
}

/// Skips the test if the kernel has no TCP.
fn needs_network() -> Outcome {
    if Path::new("/proc/net/tcp").exists() {
        return Ok(());
    }
    Err(Stop::Skip("the kernel has no TCP".to_owned()))
}

/// Loads the provider with parameters, until the result is dropped; skips the test if the kernel has no TCP.
fn load_network<'a>(env: &'a Env, parameters: &str) -> Result<Modules<'a>, Stop> {
    let modules = Modules::new(env)?;
    needs_network()?;
    reload(&modules, parameters)?;
    Ok(modules)
}

/// Parameters with which NICs reach each other, and themselves, over TCP.
/// Messages wait for their receives for longer than a slow kernel takes to post these.
const OVER_TCP: &str = "address=127.0.0.1,127.0.0.2 loopback=0 peer_timeout=5000 rnr_timeout=5000";

/// Runs the tests of an area over TCP, but those that need what is not the same there: patterns of
/// their names, and what it is.
fn over_tcp(env: &Env, area: &str, lacking: &[(&str, &str)]) -> Outcome {
    over_tcp_with(env, OVER_TCP, area, lacking)
}

/// The same with parameters of the provider.
fn over_tcp_with(env: &Env, parameters: &str, area: &str, lacking: &[(&str, &str)]) -> Outcome {
    let _modules = load_network(env, parameters)?;
    let settings = Settings {
        scale: env.settings.scale / 10.0,
        ..env.settings.clone()
    };
    small_provider::run(env, area, lacking, settings)?;
    // Connections stay.
    let connections = sockets(ESTABLISHED);
    check!(connections > 0, "nothing went over TCP");
    env.note(format!("{connections} connections"));
    Ok(())
}

fn message(env: &Env) -> Outcome {
    let lacking = [(
        "full-completion-queue",
        "whether it is ever full is a matter of time",
    )];
    over_tcp(env, "message", &lacking)
}

fn tagged(env: &Env) -> Outcome {
    over_tcp(env, "tagged", &[])
}

fn rma(env: &Env) -> Outcome {
    over_tcp(env, "rma", &[])
}

fn atomic(env: &Env) -> Outcome {
    over_tcp(env, "atomic", &[])
}

/// Consumers in the kernel have memory that no process has: in pages and scatterlists, with which connections
/// send and receive without a copy. Tests of them that also hold over a network; `make test-net` has all.
fn kernel_consumer(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    needs_network()?;
    let with = |name, more: &str| {
        let mut all = parameters(name).into_bytes();
        all.extend_from_slice(more.as_bytes());
        text(all)
    };
    // It may have addresses already, which are not named twice.
    let mut provider = parameters(PROVIDER).into_bytes();
    if !provider.starts_with(b"address=") && !provider.windows(9).any(|word| word == b" address=") {
        provider.extend_from_slice(b" address=127.0.0.1,127.0.0.2 loopback=0");
    }
    let provider = text(provider);
    modules
        .reload_provider(&provider)
        .map_err(|errno| could_not("reload", PROVIDER, errno))?;
    for only in [
        "transfer/",
        "receive/",
        "region/",
        "error/",
        "scalable/",
        "atomic/",
        "backlog/",
        "trigger/",
        "waiting/",
        "endpoint/",
    ] {
        let rounds = env.scaled(500, 100);
        let some = with(TRANSFER, &format!(" network=1 rounds={rounds} only={only}"));
        run_with(&modules, TRANSFER, &some)?;
    }
    check!(sockets(ESTABLISHED) > 0, "nothing went over TCP");
    Ok(())
}

/// Two users at once, each of whom sends by another NIC than the other one, and receives by the other's. What
/// either sends or writes arrives, whole and in order, and nothing of the other one's.
fn users_beside_each_other(env: &Env) -> Outcome {
    const ROUNDS: u64 = 100;
    const LEN: u64 = 20_000;
    const KEY: u64 = 9;
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    let _modules = load_network(env, OVER_TCP)?;
    let rounds = env.scaled(ROUNDS, 20);
    let exchange = |user: u64| -> Outcome {
        let pair = Pair::new(env, Caps::MSG | Caps::RMA)?;
        let (from, to, domain) = match user {
            0 => (&pair.a, &pair.b, &pair.far),
            _ => (&pair.b, &pair.a, &pair.rig.domain),
        };
        let area = || Area::plain(&pair.session, LEN);
        let (sent, received, written) = (area()?, area()?, area()?);
        let attr = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY);
        let region = domain.register(&[written.all()], &attr)?;
        for round in 0..rounds {
            let seed = round << 1 | user;
            sent.fill(seed);
            received.clear();
            to.recv(received.all(), round)?;
            from.send(sent.all(), round)?;
            expect(&from.tx, round, done::SEND_, LEN)?;
            expect(&to.rx, round, done::RECV_, LEN)?;
            received.has_only(LEN, seed)?;
            let write = from.operation(kfi::Kind::WRITE, Form::PLAIN);
            from.post(&write.segment(sent.all()).rma(0, LEN, KEY).context(round))?;
            expect(&from.tx, round, done::RMA_WRITE, LEN)?;
            written.has_only(LEN, seed)?;
        }
        pair.a.quiet()?;
        pair.b.quiet()?;
        drop((region, sent, received, written));
        pair.close()
    };
    let mut processes = Vec::new();
    for user in 0..2 {
        processes.push(child::begin(|| {
            if user != 0 {
                users::become_another_user()?;
            }
            exchange(user)
        })?);
    }
    for process in processes {
        let (status, text) = process.end()?;
        check!(status == Status::Exited(0), "{status:?}: {text}");
    }
    check!(sockets(ESTABLISHED) > 0, "nothing went over TCP");
    Ok(())
}

/// The consumer in Documentation/machines.md, once for each of two NICs: each gets what the other one
/// has sent, whichever of them is there first.
fn greeting(env: &Env) -> Outcome {
    const ENDS: [(&str, &str, &str); 2] = [
        ("kfi_greet", "127.0.0.1", "127.0.0.2"),
        ("kfi_greet_back", "127.0.0.2", "127.0.0.1"),
    ];
    let modules = Modules::new(env)?;
    needs_network()?;
    let mut loaders = Vec::new();
    for (name, local, peer) in ENDS {
        modules.needs(name)?;
        let parameters = text(format!("local={local} peer={peer}"));
        let loader = modules.loader_with(name, parameters);
        loaders.push(loader.map_err(|errno| could_not("open", name, errno))?);
    }
    reload(&modules, OVER_TCP)?;
    for order in [[0, 1], [1, 0]] {
        let mut log = KernelLog::open();
        let loaded = thread::scope(|scope| {
            let begin = |end: usize| {
                let loading = scope.spawn(&loaders[end]);
                // The first one finds nobody.
                thread::sleep(Duration::from_millis(300));
                (end, loading)
            };
            order
                .map(begin)
                .map(|(end, loading)| (end, loading.join().unwrap_or(Err(Errno::IO))))
        });
        let said = log.read();
        for (name, ..) in ENDS {
            if is_loaded(name)? {
                unload(name).map_err(|errno| could_not("unload", name, errno))?;
            }
        }
        for (end, result) in loaded {
            result.map_err(|errno| could_not("load", ENDS[end].0, errno))?;
        }
        needs_log(&log)?;
        for (name, local, peer) in ENDS {
            let line = format!("{local}: hello from {peer}");
            check!(
                said.iter().any(|l| l.contains(&line)),
                "{name} does not say {line:?}, but {said:?}"
            );
        }
    }
    check!(sockets(ESTABLISHED) > 0, "nothing went over TCP");
    Ok(())
}

/// The port where NICs listen, as the kernel shows it.
const PORT: &str = ":1D2F";

/// States of sockets, as the kernel shows them.
const ESTABLISHED: &str = "01";
const FIN_WAIT: &str = "04";
const LAST_ACK: &str = "09";
const LISTENING: &str = "0A";

/// As many bytes as may be on their way to a peer when it is told that its connection is over.
const LITTLE: u32 = 9 << 10;

/// Counts the sockets in a state that are where NICs listen.
fn sockets(state: &str) -> usize {
    sockets_that(state, |_, _| true)
}

/// Counts those of them that are of this node, not of a peer that is made up, and have more than so many bytes to be
/// sent. The end of a connection is one.
fn unread_sockets(state: &str, bytes: u32) -> usize {
    // As the kernel shows it.
    let address = format!("{:08X}:", u32::from_ne_bytes(HERE.octets()));
    sockets_that(state, |local, queues| {
        let unread = queues.split(':').next().unwrap_or("");
        let unread = u32::from_str_radix(unread, 16).unwrap_or(u32::MAX);
        local.starts_with(&address) && unread > bytes
    })
}

/// Returns how many bytes this node has sent to the NIC of a peer that have not come there, on connections that are over,
/// too.
fn unread_bytes(peer: Ipv4Addr) -> u32 {
    let address = format!("{:08X}{PORT}", u32::from_ne_bytes(peer.octets()));
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let bytes = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let &[_, _, remote, _, queues, ..] = words.as_slice() else {
            return None;
        };
        let unread = queues.split(':').next().filter(|_| remote == address)?;
        u32::from_str_radix(unread, 16).ok()
    };
    sockets.lines().filter_map(bytes).sum()
}

/// Counts those of them whose address and queues, of what is to be sent and what was received, are so.
fn sockets_that(state: &str, is_so: impl Fn(&str, &str) -> bool) -> usize {
    // None if there is no TCP.
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let counts = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let &[_, local, _, is, queues, ..] = words.as_slice() else {
            return false;
        };
        local.ends_with(PORT) && is == state && is_so(local, queues)
    };
    sockets.lines().filter(counts).count()
}

/// Counts those that listen.
fn listeners() -> usize {
    sockets(LISTENING)
}

/// The NIC of this node, and that of the other one, which a test makes up.
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// With one NIC, which does not give up a peer that says nothing for a time.
const PATIENT: &str = "address=127.0.0.1 loopback=0 peer_timeout=600000";

/// An error, as peers are told it: that of a message for which there is no receive.
const EREMOTEIO: u32 = 121;

/// An error, as peers are told it.
const EHOSTUNREACH: u32 = 113;

/// The answer to a request of 64 bytes.
const DONE: Response = Response {
    status: 0,
    len: 64,
    waited: 0,
};

/// The answer to a request that was withdrawn.
const CANCELED: Response = Response {
    status: 125,
    len: 0,
    waited: 0,
};

/// An endpoint of this node, with its port.
fn end_with_port(rig: &Rig) -> Result<(End, u16), Stop> {
    end_at(rig, &rig.domain, (0, HERE))
}

/// An endpoint in a domain of a NIC, with its port.
fn end_at(
    rig: &Rig,
    domain: &Domain,
    (nic, address): (usize, Ipv4Addr),
) -> Result<(End, u16), Stop> {
    let mut end = End::open(domain, EpInfo::Entry(&rig.info, nic), &Setup::default())?;
    end.enable()?;
    let name = end.name.first_chunk().copied().unwrap_or([0; 8]);
    // The lowest 12 bits.
    let port = (u64::from_le_bytes(name) & 0xfff) as u16;
    check_eq!(end.name, peer::name(address, port));
    Ok((end, port))
}

/// An endpoint of this node, with its port, and a buffer.
struct Node {
    end: End,
    port: u16,
    buffer: Buffer,
    rig: Rig,
}

impl Node {
    /// In a session of its own, with a buffer of so many bytes.
    fn open(env: &Env, len: u64) -> Result<Self, Stop> {
        Self::in_session(env, Session::open()?, len)
    }

    /// In a session.
    fn in_session(env: &Env, session: Session, len: u64) -> Result<Self, Stop> {
        let rig = Rig::in_session(env, session)?;
        let (end, port) = end_with_port(&rig)?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, len)?;
        Ok(Self {
            end,
            port,
            buffer,
            rig,
        })
    }

    /// Registers all of the buffer.
    fn register(&self, access: u64, key: u64) -> kfi::Result<kfi::MemoryRegion> {
        let attr = MrAttr::new(access, key);
        self.rig.domain.register(&[self.buffer.all()], &attr)
    }

    /// Sends 64 bytes to a port of the NIC at an address.
    fn send_to(&mut self, to: Ipv4Addr, context: u64) -> Outcome {
        self.end.peer = self.end.av.insert(&peer::name(to, 5))?;
        self.end.send(self.buffer.segment(0..64), context)
    }

    /// Closes all in order, as [`Rig::close`] does.
    fn close(self) -> Outcome {
        drop((self.end, self.buffer));
        self.rig.close()
    }
}

/// An endpoint is closed while a request of a peer waits for its bytes, or for the peer to
/// take them: the peer is there, but says nothing more.
fn silent_initiator(env: &Env) -> Outcome {
    const LEN: u64 = 16 << 20;
    const KEY: u64 = 5;
    let _modules = load_network(env, PATIENT)?;
    for (session, kind) in (1..).zip([Kind::Message, Kind::Write, Kind::Read]) {
        let node = Node::open(env, LEN)?;
        let region = node.register(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY)?;
        node.end.recv(node.buffer.segment(0..LEN), 7)?;

        let mut peer = Peer::connect(THERE, HERE, session)?;
        let key = (kind != Kind::Message).then_some(KEY);
        peer.request(1, kind, (node.port, LEN), key)?;
        // It has begun. Of the bytes read only the first header is taken, and the rest does not fit
        // in between.
        let begun = match kind {
            Kind::Read => peer.until(|frame| matches!(frame, Frame::Data(_)))?,
            _ => peer.until(|frame| matches!(frame, Frame::Pull { .. }))?,
        };
        check_eq!(begun, 1, "{kind:?}");

        let End { ep, tx, rx, av, .. } = node.end;
        ep.close().map_err(|(_, error)| error)?;
        if kind == Kind::Message {
            let error = rx.read_err()?;
            check_eq!(error.entry.op_context, 7);
            check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
        }
        if kind != Kind::Read {
            let (id, response) = peer.response()?;
            check_eq!((id, response.status), (1, EHOSTUNREACH), "{kind:?}");
        }
        region.close().map_err(|(_, error)| error)?;
        drop((peer, tx, rx, av, node.buffer));
        node.rig.close()?;
    }
    Ok(())
}

/// A region is closed while a peer writes to it, and its key is used again: the write ends, and nothing of
/// it comes to the other region or counts there.
fn key_used_again(env: &Env) -> Outcome {
    const LEN: u64 = 1 << 20;
    const HALF: usize = 1 << 19;
    const KEY: u64 = 5;
    const EKEYREJECTED: u32 = 129;
    let _modules = load_network(env, PATIENT)?;
    let rig = Rig::new(env)?;
    let (end, port) = end_with_port(&rig)?;
    let access = MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY);
    let register = || {
        let buffer = rig.session.buffer(BufferKind::VMALLOC, LEN)?;
        let region = rig.domain.register(&[buffer.segment(0..LEN)], &access)?;
        Ok::<_, Stop>((buffer, region))
    };
    let (buffer, region) = register()?;

    let mut peer = Peer::connect(THERE, HERE, 1)?;
    peer.request(1, Kind::Write, (port, LEN), Some(KEY))?;
    let begun = peer.until(|frame| matches!(frame, Frame::Pull { .. }))?;
    check_eq!(begun, 1);
    peer.data(1, 0, &vec![1; HALF])?;
    until(|| Ok(buffer.bytes(HALF - 1..HALF) == [1]))?;

    region.close().map_err(|(_, error)| error)?;
    let (other, region) = register()?;
    let counter = rig.domain.counter(&CntrAttr::new())?;
    region.bind(counter.handle(), bits::REMOTE_WRITE)?;
    peer.data(1, HALF as u64, &vec![2; HALF])?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (1, EKEYREJECTED));
    check!(other.bytes(0..LEN as usize).iter().all(|byte| *byte == 0));
    check_eq!((counter.read()?, counter.read_err()?), (0, 0));

    // A request that begins now is done to the other one.
    peer.request(2, Kind::Write, (port, 64), Some(KEY))?;
    peer.until(|frame| matches!(frame, Frame::Pull { .. }))?;
    peer.data(2, 0, &[3; 64])?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (2, 0));
    check_eq!(other.bytes(0..65), [[3; 64].as_slice(), &[0]].concat());
    check_eq!((counter.read()?, counter.read_err()?), (1, 0));

    region.close().map_err(|(_, error)| error)?;
    counter.close().map_err(|(_, error)| error)?;
    drop((peer, end, buffer, other));
    rig.close()
}

/// A message for those with an authorization key that nobody here has comes to nobody, and not to those without one.
fn keys_of_strangers(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, 4096)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    node.end.recv(node.buffer.segment(0..64), 7)?;
    peer.message_with(1, node.port, b"nobody's")?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (1, EHOSTUNREACH));
    node.end.quiet()?;
    peer.message_with(2, node.port, &[])?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (2, 0));
    expect(&node.end.rx, 7, done::RECV_, 0)?;
    drop(peer);
    node.close()
}

/// Sends as many messages as keep others waiting, for which there is no receive, so that their flow is
/// stopped, and reads that they were not taken; returns the number that the next one has.
fn stop_flow(peer: &mut Peer, port: u16) -> Result<u64, Stop> {
    // As the protocol has it: the target waits for an acknowledgement, and not until all of them were read.
    const ACKNOWLEDGED: u64 = 16;
    let half = peer.window() / 2;
    for id in 1..=half {
        peer.message(id, port, false, 0)?;
    }
    for wanted in 1..=half {
        let (id, response) = peer.response()?;
        check_eq!((id, response.status), (wanted, NOT_READY));
        if wanted % ACKNOWLEDGED == 0 || wanted == half {
            peer.acknowledge(wanted + 1)?;
        }
    }
    Ok(half + 1)
}

/// Messages that keep others waiting are not taken, and come again: a peer is told when until they do, and
/// their time goes on. It is the peer that says how long that was, and cannot make more of it than there is.
fn not_ready(env: &Env) -> Outcome {
    // None of them ends by itself.
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let rig = Rig::new(env)?;
    let (end, port) = end_with_port(&rig)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    let next = stop_flow(&mut peer, port)?;
    // Requests that come before the first one are not taken either, and do not wait for their
    // receivers meanwhile.
    peer.message(next, port, false, 7)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (next, NO_ROOM));
    check_eq!(response.waited, 0);
    for _ in 0..3 {
        peer.until(|frame| matches!(frame, Frame::Go(0)))?;
    }
    peer.message(next + 1, port, true, u32::MAX)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (next + 1, EREMOTEIO));
    // A message that can be received is, however long it has waited.
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    end.recv(buffer.segment(0..64), 7)?;
    peer.message(next + 2, port, false, u32::MAX)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (next + 2, 0));
    let received = end.rx.sread_ms(1, -1)?;
    check_eq!(received[0].op_context, 7);
    drop((end, peer, buffer));
    rig.close()
}

/// A message that its receiver has claimed, and does not take, does not keep others of its flow from being sent
/// again later: those that keep others waiting are not taken, older ones included.
fn claimed_beside_others(env: &Env) -> Outcome {
    // A port of nobody.
    const NOBODY: u16 = 4000;
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let node = Node::open(env, 4096)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    peer.tagged(1, node.port, 1)?;
    peer.tagged(2, node.port, 2)?;
    peer.tagged(3, NOBODY, 1)?;
    // Then those before it are there.
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (3, EHOSTUNREACH));
    let claim = |flags| {
        Operation::new(kfi::Kind::TRECV, Form::MSG)
            .tag(2, 0)
            .context(7)
            .flags(bits::CLAIM | flags)
    };
    node.end.post(&claim(bits::PEEK))?;
    let found = node.end.rx.sread_ms(1, -1)?;
    check_eq!((found[0].op_context, found[0].tag), (7, 2));
    let half = peer.window() / 2;
    for id in 4..=half {
        peer.tagged(id, node.port, 1)?;
    }
    for wanted in [1].into_iter().chain(4..=half) {
        let (id, response) = peer.response()?;
        check_eq!((id, response.status), (wanted, NOT_READY));
    }
    node.end
        .post(&claim(0).segment(node.buffer.segment(0..64)))?;
    let received = node.end.rx.sread_ms(1, -1)?;
    check_eq!(received[0].op_context, 7);
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (2, 0));
    drop(peer);
    node.close()
}

/// A peer that has messages to send again is not taken for one that nobody needs, however many others come.
fn stopped_peers_keep_their_place(env: &Env) -> Outcome {
    const MANY: u16 = 4200;
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let node = Node::open(env, 4096)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    let next = stop_flow(&mut peer, node.port)?;
    for number in 0..MANY {
        let [high, low] = number.to_be_bytes();
        drop(Peer::connect(Ipv4Addr::new(127, 2, high, low), HERE, 1)?);
    }
    node.end.recv(node.buffer.segment(0..64), 7)?;
    peer.message(next, node.port, true, 0)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (next, 0));
    drop((node.end, peer, node.buffer));
    node.rig.close()
}

/// A peer that asks for something just when another one looks for a place keeps its own, once it is answered, until it
/// has said that it knows the answer.
fn asking_peers_keep_their_place(env: &Env) -> Outcome {
    // As many as there may be.
    const ALL: u16 = 4096;
    const QUIET: u8 = 96;
    // A port of nobody.
    const NOBODY: u16 = 0xfff;
    // Longer than a jiffy: it is known which of two has been quiet for longer.
    const APART: Duration = Duration::from_millis(20);
    let _modules = load_network(env, PATIENT)?;
    // These are to make place, one after the other. The node comes to them first, and to all others before it
    // ends one: there is some time in between.
    let mut quiet = VecDeque::new();
    for last in 1..=QUIET {
        quiet.push_back(Peer::connect(Ipv4Addr::new(127, 0, 1, last), HERE, 1)?);
        thread::sleep(APART);
    }
    for number in u16::from(QUIET)..ALL {
        let [high, low] = number.to_be_bytes();
        drop(Peer::connect(Ipv4Addr::new(127, 2, high, low), HERE, 1)?);
    }
    check_eq!(peers("from")?.len(), usize::from(ALL));
    let (mut rounds, mut answered) = (0u8, 0);
    while let Some(mut peer) = quiet.pop_front() {
        let source = Ipv4Addr::new(127, 3, 0, rounds);
        let mut newcomer = Peer::open(source, HERE)?;
        newcomer.write(&Frame::Hello(Peer::hello(source, HERE, 1)), 0)?;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(5 * u64::from(rounds)) {
            std::hint::spin_loop();
        }
        // It may have made place before.
        let asked = peer.request(1, Kind::Message, (NOBODY, 64), None);
        let is_answered = asked.and_then(|()| peer.response()).is_ok();
        newcomer.until(|frame| matches!(frame, Frame::Ack))?;
        rounds += 1;
        if is_answered {
            peer.request(2, Kind::Message, (NOBODY, 64), None)?;
            check_eq!(peer.response()?.0, 2);
            // The next one has made place instead.
            quiet.pop_front();
            answered += 1;
        }
    }
    env.note(format!("{answered} of {rounds} have asked in time"));
    Ok(())
}

/// A peer that is told that it may send messages again, and never does nor says anything, is forgotten as any
/// other.
fn stopped_and_silent(env: &Env) -> Outcome {
    let parameters = "address=127.0.0.1 loopback=0 peer_timeout=2000 rnr_timeout=600000";
    let _modules = load_network(env, parameters)?;
    peers("from")?;
    let rig = Rig::new(env)?;
    let (end, port) = end_with_port(&rig)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    stop_flow(&mut peer, port)?;
    peer.until(|frame| matches!(frame, Frame::Go(0)))?;
    peer.until_closed()?;
    until(|| Ok(peers("from")?.is_empty()))?;
    drop((end, peer));
    rig.close()
}

/// A receive that a peer has claimed is not its own for ever, though it says something all the time: the
/// data that it was asked for do not come.
fn flooding_initiator(env: &Env) -> Outcome {
    const LEN: u64 = 1 << 20;
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=2000")?;
    let node = Node::open(env, LEN)?;
    node.end.recv(node.buffer.segment(0..LEN), 7)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    peer.request(1, Kind::Message, (node.port, LEN), None)?;
    peer.until(|frame| matches!(frame, Frame::Pull { .. }))?;
    peer.flood()?;
    until(|| match node.end.rx.read_err() {
        Ok(error) => {
            check_eq!(error.entry.op_context, 7);
            check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
            Ok(true)
        }
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
        Err(error) => Err(error.into()),
    })?;
    drop((node.end, peer, node.buffer));
    node.rig.close()
}

/// Receives that a peer has claimed are not its own for ever, though it brings a byte of one of them now and
/// then: in frames of their own, or all in one.
fn dribbling_initiator(env: &Env) -> Outcome {
    const LEN: u64 = 1 << 20;
    const PIECE: usize = 256 << 10;
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=2000")?;
    let node = Node::open(env, LEN)?;
    for (session, frame) in (1..).zip([1, PIECE]) {
        let mut left = BTreeSet::from([7, 8, 9]);
        for &context in &left {
            node.end.recv(node.buffer.segment(0..LEN), context)?;
        }
        let mut peer = Peer::connect(THERE, HERE, session)?;
        for id in 1..=3 {
            peer.request(id, Kind::Message, (node.port, LEN), None)?;
        }
        for _ in 1..=3 {
            peer.until(|frame| matches!(frame, Frame::Pull { .. }))?;
        }
        let begun = Instant::now();
        peer.dribble(1, frame)?;
        env.note(format!("{frame} in a frame: {:?}", begun.elapsed()));
        until(|| match node.end.rx.read_err() {
            Ok(error) => {
                check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
                check!(left.remove(&error.entry.op_context), "it has ended before");
                Ok(left.is_empty())
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
            Err(error) => Err(error.into()),
        })?;
    }
    node.close()
}

/// An operation fails when its target has not been heard of for as long as was told, and not before: where
/// nobody listens, and where somebody listens who says nothing.
fn given_up_in_time(env: &Env) -> Outcome {
    const TIMEOUT: Duration = Duration::from_secs(6);
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=6000")?;
    let mut node = Node::open(env, 4096)?;
    let _silent = Peer::listen(THERE)?;
    for to in [Ipv4Addr::new(127, 0, 0, 4), THERE] {
        node.end.peer = node.end.av.insert(&peer::name(to, 5))?;
        let begun = Instant::now();
        node.end.send(node.buffer.segment(0..64), 7)?;
        until(|| match node.end.tx.read_err() {
            Ok(error) => {
                check_eq!(error.err.unsigned_abs(), EHOSTUNREACH, "{to}");
                Ok(true)
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
            Err(error) => Err(error.into()),
        })?;
        let took = begun.elapsed();
        check!(took + Duration::from_millis(50) > TIMEOUT, "{to}: {took:?}");
        env.note(format!("{to}: given up after {took:?}"));
    }
    node.close()
}

/// Returns the peers of this node in a direction, as debugfs shows them: a line each.
fn peers(direction: &str) -> Result<Vec<String>, Stop> {
    let Ok(table) = fs::read_to_string("/sys/kernel/debug/kfi_soft/peers") else {
        return Err(Stop::Skip("there is no debugfs".to_owned()));
    };
    let lines = table.lines().filter(|line| line.starts_with(direction));
    Ok(lines.map(str::to_owned).collect())
}

/// Sends something to a NIC that does not exist, and cancels it.
fn send_and_cancel(end: &mut End, buffer: &Buffer, to: Ipv4Addr) -> Outcome {
    const CONTEXT: u64 = 9;
    end.peer = end.av.insert(&peer::name(to, 5))?;
    end.send(buffer.segment(0..64), CONTEXT)?;
    end.ep.cancel(CONTEXT)?;
    until(|| match end.tx.read_err() {
        Ok(error) => {
            check_eq!(error.entry.op_context, CONTEXT);
            check_eq!(error.err.unsigned_abs(), CANCELED.status);
            Ok(true)
        }
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
        Err(error) => Err(error.into()),
    })
}

/// A peer that is not there is tried no more often for a user who cancels and posts again all the time.
fn cancelled_and_posted_again(env: &Env) -> Outcome {
    // The shortest time between two tries.
    const PAUSE: Duration = Duration::from_millis(50);
    let _modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 4096)?;
    peers("to")?;
    let begin = Instant::now();
    let mut posted = 0u128;
    while begin.elapsed() < 40 * PAUSE {
        send_and_cancel(&mut node.end, &node.buffer, THERE)?;
        posted += 1;
    }
    let lines = peers("to")?;
    let most = begin.elapsed().as_millis() / PAUSE.as_millis() + 1;
    let line = lines.iter().find(|line| line.starts_with("to 1 3 "));
    let line = line.ok_or_else(|| Stop::fail("nothing is known of the peer"))?;
    let tries: u128 = match line.split(' ').nth(7).map(str::parse) {
        // But the first one.
        Some(Ok(retries)) => retries,
        _ => return Err(Stop::fail(format!("{line}: how often?"))),
    };
    env.note(format!("{posted} messages, tried {tries} times more"));
    check!(tries <= most, "tried {tries} times, {most} at the most");
    node.close()
}

/// Peers to which something was to be sent, long ago, do not keep a node from reaching another one, however
/// many they were.
fn many_peers_of_before(env: &Env) -> Outcome {
    const MANY: u16 = 4200;
    let _modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 4096)?;
    for number in 0..MANY {
        let [high, low] = number.to_be_bytes();
        let nobody = Ipv4Addr::new(127, 1, high, low);
        send_and_cancel(&mut node.end, &node.buffer, nobody)?;
    }
    let known = peers("to")?.len();
    check!(known <= 4096, "{known} are known");
    // As if there had been none.
    let listener = Peer::listen(THERE)?;
    node.send_to(THERE, 7)?;
    let peer = take_one(&listener)?;
    expect_one(&node.end)?;
    drop((peer, listener));
    node.close()
}

/// Takes a connection from the NIC of this node, and one message on it.
fn take_one(listener: &TcpListener) -> Result<Peer, Stop> {
    let mut peer = Peer::accept(listener)?;
    let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    peer.respond(sent, DONE)?;
    Ok(peer)
}

/// Waits until a message has been taken.
fn expect_one(end: &End) -> Outcome {
    until(|| match end.tx.read(1) {
        Ok(entries) => {
            check_eq!(entries.len(), 1);
            Ok(true)
        }
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
        Err(error) => Err(error.into()),
    })
}

/// Returns how many peers there are that this node has something to say to.
fn busy_peers() -> Result<usize, Stop> {
    let is_busy = |line: &&String| line.split(' ').nth(8).is_some_and(|open| open != "0");
    Ok(peers("to")?.iter().filter(is_busy).count())
}

/// Sends to so many addresses of networks where nobody is; returns when each of these messages was refused, or
/// it is being tried to bring it. No others are under way.
fn send_to_nobody(rig: &Rig, networks: &[(u8, u16)]) -> Result<(End, Buffer), Stop> {
    send_to_nobody_from(&rig.domain, (&rig.session, &rig.info), networks)
}

/// As [`send_to_nobody`], from any domain.
fn send_to_nobody_from(
    domain: &Domain,
    (session, info): (&Session, &InfoList),
    networks: &[(u8, u16)],
) -> Result<(End, Buffer), Stop> {
    let before = busy_peers()?;
    let buffer = session.buffer(BufferKind::VMALLOC, 4096)?;
    let mut entry = info.entries()[0].clone();
    entry.tx_attr.size = 8192;
    let setup = Setup {
        cq_size: 8192,
        ..Setup::default()
    };
    let mut many = End::open(domain, EpInfo::Value(&entry), &setup)?;
    many.enable()?;
    let mut sent = before;
    for &(network, count) in networks {
        for number in 0..count {
            let [high, low] = number.to_be_bytes();
            let nobody = Ipv4Addr::new(127, network, high, low);
            many.peer = many.av.insert(&peer::name(nobody, 5))?;
            many.send(buffer.segment(0..64), 9)?;
            sent += 1;
        }
    }
    let mut refused = 0;
    until(|| loop {
        match many.tx.read_err() {
            Ok(error) => {
                check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
                refused += 1;
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok(refused + busy_peers()? >= sent),
            Err(error) => return Err(error.into()),
        }
    })?;
    Ok((many, buffer))
}

/// Whoever opens domains on a session, what these take is of the user that has opened that: a descriptor in the hands
/// of other users has one share, too.
fn shares_of_one_session(env: &Env) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    let _modules = load_network(env, PATIENT)?;
    let session = Session::open()?;
    let info = session.getinfo(&crate::rig::query(env))?;
    let fabric = info.fabric(0)?;
    let root = rustix::process::Uid::ROOT;
    let mut kept = Vec::new();
    for number in 0..2 {
        let uid = rustix::process::Uid::from_raw(1000 + u32::from(number));
        rustix::thread::set_thread_res_uid(uid, root, root)?;
        let domain = fabric.domain(&info, 0);
        rustix::thread::set_thread_res_uid(root, root, root)?;
        let domain = domain?;
        let networks = [(10 + number, 2200)];
        let many = send_to_nobody_from(&domain, (&session, &info), &networks)?;
        kept.push((many, domain));
        let known = peers("to")?.len();
        check!(known <= 2048, "{known} are known of {}", kept.len());
    }
    Ok(())
}

/// A user who sends to many addresses where nobody is takes half of what there is for that, and ends nothing
/// that is good: others reach whom they reached before, and somebody else.
fn addresses_without_anybody(env: &Env) -> Outcome {
    const MANY: u16 = 2200;
    // Half of as many as there may be.
    const MOST: usize = 2048;
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    // They are not given up before the end.
    let _modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 4096)?;
    let listener = Peer::listen(THERE)?;
    node.send_to(THERE, 7)?;
    let peer = take_one(&listener)?;
    expect_one(&node.end)?;
    drop((node.end, node.buffer));

    let many = send_to_nobody(&node.rig, &[(1, MANY)])?;
    let known = peers("to")?;
    check!(known.len() <= MOST + 1, "{} are known", known.len());
    let is_good = |line: &String| line.starts_with("to 1 3 ready");
    check!(known.iter().any(is_good), "the good one is gone");

    let listener = Peer::listen(ELSEWHERE)?;
    let mut child = process::fork(|| {
        let send = || {
            users::become_another_user()?;
            let mut node = Node::open(env, 4096)?;
            node.send_to(ELSEWHERE, 7)?;
            expect_one(&node.end)?;
            node.close()
        };
        i32::from(send().is_err())
    })?;
    let other = take_one(&listener)?;
    check_eq!(child.wait()?, Status::Exited(0));
    drop((peer, other, listener, many));
    node.rig.close()
}

/// A user is asked for room also for an association that was made for another user, and that nobody uses; and
/// room that it has taken counts on when all of its domains are closed.
fn associations_of_users(env: &Env) -> Outcome {
    // Half of as many as there may be, and some that are still used when somebody else begins to.
    const MOST: usize = 2048 + 50;
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    // They are not given up, nor forgotten, before the end.
    let _modules = load_network(env, PATIENT)?;
    let rig = Rig::new(env)?;
    let many = send_to_nobody(&rig, &[(1, 1200)])?;
    check_eq!(busy_peers()?, 1200);
    drop(many);
    rig.close()?;
    let as_another_user = |networks: &[(u8, u16)], count: fn() -> Result<usize, Stop>| -> Outcome {
        let (status, text) = child::run(|| {
            users::become_another_user()?;
            let rig = Rig::new(env)?;
            let many = send_to_nobody(&rig, networks)?;
            let count = count()?;
            check!(count <= MOST, "{count} in {networks:?}");
            drop(many);
            rig.close()
        })?;
        check!(status == Status::Exited(0), "{status:?}: {text}");
        Ok(())
    };
    as_another_user(&[(3, 1000), (1, 1200)], busy_peers)?;
    // It has half of all, which nobody uses.
    as_another_user(&[(4, 200)], || Ok(peers("to")?.len()))
}

/// Peers as people see them.
fn stat(env: &Env) -> Outcome {
    const KEY: u64 = 5;
    let _modules = load_network(env, PATIENT)?;
    peers("to")?;
    let mut node = Node::open(env, 4096)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    let listener = Peer::listen(THERE)?;
    node.send_to(THERE, 7)?;
    let mut peer = Peer::accept(&listener)?;
    let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    // Its answer is kept until it is acknowledged.
    let mut other = Peer::connect(THERE, HERE, 1)?;
    other.request(1, Kind::Read, (node.port, 4096), Some(KEY))?;
    other.response()?;
    let rows = || -> Result<Vec<Value>, Stop> {
        let all: Value = serde_json::from_str(&tool::text(&["stat", "--json"])?)?;
        Ok(all["peers"].as_array().cloned().unwrap_or_default())
    };
    let rows = rows()?;
    check_eq!(rows.len(), 2);
    // The memory of a request itself counts, too.
    let kept = [0..1, 4096 + 512..3 * 4096];
    let directions = [("to", 1), ("from", 0)];
    for (row, ((direction, open), kept)) in rows.iter().zip(directions.into_iter().zip(kept)) {
        check_eq!(row["direction"], json!(direction));
        check_eq!(row["open"], json!(open));
        let of_row = row["kept"].as_u64();
        check!(of_row.is_some_and(|bytes| kept.contains(&bytes)), "{row}");
        check_eq!(row["state"], json!("ready"));
        check_eq!(row["incarnation"], json!("0x1"));
        check_eq!(
            (&row["connections"], &row["retries"]),
            (&json!(1), &json!(0))
        );
        check_eq!(row["queued"], json!(0));
        check!(row["bytes"].as_u64() > Some(160), "{row}");
    }
    peer.respond(sent, DONE)?;
    // Bytes that are not read yet go with the connection.
    until(|| Ok(node.end.tx.read(1).is_ok()))?;
    drop((peer, other, listener));
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// Connections of which nothing is under way give their memory back, and nobody notices: what is sent afterwards
/// comes, from either side, and so does the end.
fn after_a_rest(env: &Env) -> Outcome {
    const LEN: usize = 300_000;
    // Longer than a connection keeps memory with nothing to do.
    let rest = || thread::sleep(Duration::from_millis(2500));
    let modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 2 * LEN as u64)?;
    // To itself: the node has both sides of that.
    node.end.peer = node.end.av.insert(&peer::name(HERE, node.port))?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    for (id, len) in (1..).zip([64, LEN, 65]) {
        let data: Vec<u8> = (0..len).map(|at| (at * 31 + id) as u8).collect();
        node.buffer.fill(0);
        node.buffer.write(0, &data);
        let (from, to) = (0..len as u64, LEN as u64..(LEN + len) as u64);
        node.end.recv(node.buffer.segment(to), 8)?;
        node.end.send(node.buffer.segment(from), 7)?;
        until(|| Ok(node.end.rx.read(1).is_ok()))?;
        until(|| Ok(node.end.tx.read(1).is_ok()))?;
        check!(node.buffer.bytes(LEN..LEN + len) == data, "{len} bytes");
        node.end.recv(node.buffer.segment(0..64), 9)?;
        peer.message(id as u64, node.port, false, 0)?;
        let (answered, response) = peer.response()?;
        check_eq!((answered, response.status), (id as u64, 0));
        until(|| Ok(node.end.rx.read(1).is_ok()))?;
        // Until then its answer is kept.
        peer.acknowledge(id as u64 + 1)?;
        rest();
    }
    for line in [peers("to")?, peers("from")?].concat() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        check_eq!((fields[3], fields[6]), ("ready", "1"), "{line}");
    }
    node.close()?;
    reload(&modules, "")?;
    peer.until(|frame| matches!(frame, Frame::Bye(_)))?;
    Ok(())
}

/// Both sides forget each other when nothing has gone from one to the other for a while; and so do those
/// who never have reached each other.
fn quiet_peers_are_forgotten(env: &Env) -> Outcome {
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=2000")?;
    let mut node = Node::open(env, 4096)?;
    let known = || Ok::<_, Stop>((peers("to")?.len(), peers("from")?.len()));
    check_eq!(known()?, (0, 0));
    send_and_cancel(&mut node.end, &node.buffer, THERE)?;
    // To itself.
    node.end.peer = node.end.av.insert(&peer::name(HERE, node.port))?;
    node.end.recv(node.buffer.segment(0..64), 8)?;
    node.end.send(node.buffer.segment(64..128), 7)?;
    until(|| Ok(node.end.rx.read(1).is_ok()))?;
    until(|| Ok(node.end.tx.read(1).is_ok()))?;
    check_eq!(known()?.1, 1);
    until(|| Ok(known()? == (0, 0)))?;
    // And find each other again.
    node.end.recv(node.buffer.segment(0..64), 8)?;
    node.end.send(node.buffer.segment(64..128), 7)?;
    until(|| Ok(node.end.rx.read(1).is_ok()))?;
    until(|| Ok(node.end.tx.read(1).is_ok()))?;
    check_eq!(known()?, (1, 1));
    node.close()
}

/// Nothing is remembered of those who are refused, and so there is room for others however many they are.
fn refused_strangers(env: &Env) -> Outcome {
    const MANY: u16 = 4200;
    let _modules = load_network(env, PATIENT)?;
    for number in 0..MANY {
        let [high, low] = number.to_be_bytes();
        Peer::be_refused(Ipv4Addr::new(127, 2, high, low), HERE)?;
    }
    let peer = Peer::connect(THERE, HERE, 1)?;
    until(|| Ok(peers("from")?.len() == 1))?;
    drop(peer);
    Ok(())
}

/// Of a NIC that does not say that it has read its answers only so many are kept, whomever it asks: then it
/// has to say that it has what it has read before there is an answer. Others are served as before.
fn answers_count_until_acknowledged(env: &Env) -> Outcome {
    const LEN: u64 = 16 << 10;
    const KEY: u64 = 5;
    const MANY: u64 = 300;
    const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
    let parameters = "address=127.0.0.1,127.0.0.2 loopback=0 peer_timeout=600000";
    let _modules = load_network(env, parameters)?;
    let node = Node::open(env, LEN)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    let far = node.rig.fabric.domain(&node.rig.info, 1)?;
    let (far_end, far_port) = end_at(&node.rig, &far, (1, SECOND))?;
    let access = MrAttr::new(bits::REMOTE_READ, KEY);
    let far_region = far.register(&[node.buffer.segment(0..LEN)], &access)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    for id in 1..=MANY {
        peer.request(id, Kind::Read, (node.port, LEN), Some(KEY))?;
    }
    let answers = peer.answers_beside_data(MANY as usize)?;
    // 4 MiB.
    check!((200..=260).contains(&answers), "{answers} are kept");

    let mut beside = Peer::connect(THERE, SECOND, 1)?;
    beside.request(1, Kind::Read, (far_port, LEN), Some(KEY))?;
    beside.until(|frame| matches!(frame, Frame::Data(_)))?;
    // Nobody has this key.
    beside.request(2, Kind::Read, (far_port, LEN), Some(KEY + 1))?;
    check_eq!(beside.response()?.0, 2);
    let mut other = Peer::connect(OTHER, HERE, 1)?;
    other.request(1, Kind::Read, (node.port, LEN), Some(KEY))?;
    let (id, response) = other.response()?;
    check_eq!((id, response.status), (1, 0));

    peer.acknowledge(100)?;
    peer.request(MANY + 1, Kind::Read, (node.port, LEN), Some(KEY))?;
    while peer.response()?.0 != MANY + 1 {}
    drop((peer, beside, other));
    for region in [region, far_region] {
        region.close().map_err(|(_, error)| error)?;
    }
    drop((node.end, far_end, node.buffer));
    far.close().map_err(|(_, error)| error)?;
    node.rig.close()
}

/// Of a NIC that has asked for more than there is room for no more atomics are taken; and that keeps nothing
/// else from going on: requests from before them end, on the same connection, and others are carried out.
/// With the end of the requests before them there is room for them again.
fn no_room_for_atomics(env: &Env) -> Outcome {
    const LEN: u64 = 1 << 20;
    const KEY: u64 = 5;
    // The data of each, and those of its answer, take 12 KiB; and there is room for 8 MiB.
    const MANY: u64 = 700;
    const MESSAGE: u64 = MANY + 1;
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, LEN)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    node.end.recv(node.buffer.segment(0..64), 7)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    // Until it says that this has come nothing behind it is over.
    peer.request(1, Kind::Read, (node.port, LEN), Some(KEY))?;
    for id in 2..=MANY {
        // Nobody has this key.
        peer.exchange(id, (node.port, KEY + 1), false)?;
    }
    peer.message(MESSAGE, node.port, false, 0)?;
    let mut answers = peer.answers_and_data(MANY as usize, LEN as usize)?;
    check_eq!(
        answers.remove(&MESSAGE).map(|answer| answer.status),
        Some(0)
    );
    let is_refused = |answer: &Response| answer.status == NO_ROOM;
    let taken = answers.values().take_while(|answer| !is_refused(answer));
    let taken = taken.count();
    env.note(format!("{taken} were taken"));
    check!((400..690).contains(&taken), "{taken} were taken");
    // None overtakes those that were not.
    check!(answers.values().skip(taken).all(is_refused), "{answers:?}");

    peer.write(&Frame::Landed, 1)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (1, 0));
    peer.acknowledge(MESSAGE + 1)?;
    peer.until(|frame| matches!(frame, Frame::Go(1)))?;
    peer.exchange(MESSAGE + 1, (node.port, KEY + 1), true)?;
    let (id, response) = peer.response()?;
    check_eq!(id, MESSAGE + 1);
    check!(!is_refused(&response), "there is room");
    region.close().map_err(|(_, error)| error)?;
    drop(peer);
    node.close()
}

/// A message that waits for its receiver does not keep what has come since, and is not over before it, from
/// making room for others: it is not taken, and comes again.
fn no_room_beside_a_message(env: &Env) -> Outcome {
    const MANY: u64 = 700;
    // It does not end by itself.
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let rig = Rig::new(env)?;
    let (end, port) = end_with_port(&rig)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    peer.message(1, port, false, 0)?;
    for id in 2..=MANY {
        // Nobody has this key.
        peer.exchange(id, (port, 5), false)?;
    }
    let answers = peer.answers_and_data(MANY as usize, 0)?;
    let status = |id: u64| answers.get(&id).map(|answer| answer.status);
    check_eq!(status(1), Some(NOT_READY));
    check_eq!(status(MANY), Some(NO_ROOM));
    peer.acknowledge(MANY + 1)?;
    peer.until(|frame| matches!(frame, Frame::Go(1)))?;
    peer.exchange(MANY + 1, (port, 5), true)?;
    let (id, response) = peer.response()?;
    check_eq!(id, MANY + 1);
    check!(response.status != NO_ROOM, "there is room");
    drop((peer, end));
    rig.close()
}

/// A node that is short of memory does not wait for any: it does not take a request, and says so at once. What is
/// under way goes on meanwhile, and the request is taken when it comes again.
fn no_memory_for_requests(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, 4096)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    for context in [6, 7] {
        node.end.recv(node.buffer.segment(0..64), context)?;
    }
    peer.request(1, Kind::Message, (node.port, 64), None)?;
    check!(peer.is_pulled()?, "its bytes are wanted");
    let mut failing = Failing::new(Whose::Provider)?;
    failing.all_at_once()?;
    peer.message(2, node.port, false, 0)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (2, NO_ROOM));
    peer.data(1, 0, &[5; 64])?;
    check_eq!(peer.response()?, (1, DONE));
    drop(failing);
    peer.until(|frame| matches!(frame, Frame::Go(0)))?;
    peer.message(3, node.port, true, 0)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (3, 0));
    for context in [6, 7] {
        let received = node.end.rx.sread_ms(1, -1)?;
        check_eq!(received[0].op_context, context);
    }
    drop(peer);
    node.close()
}

/// A request that a peer has no room for is sent again when that lets it, in order, and has not waited for its
/// receiver meanwhile.
fn no_room_at_a_peer(env: &Env) -> Outcome {
    const FULL: Response = Response {
        status: NO_ROOM,
        len: 0,
        waited: 0,
    };
    let _modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 4096)?;
    let listener = Peer::listen(THERE)?;
    node.send_to(THERE, 7)?;
    node.end.send(node.buffer.segment(0..64), 8)?;
    let mut peer = Peer::accept(&listener)?;
    let (id, flow, restarts, _) = peer.asked()?;
    check_eq!((id, restarts), (1, false));
    check_eq!(peer.asked()?, (2, flow, false, 0));
    peer.respond(1, FULL)?;
    peer.respond(2, FULL)?;
    // This `GO` counts for nothing.
    thread::sleep(Duration::from_millis(50));
    peer.write(&Frame::Go(flow), 0)?;
    check_eq!(peer.asked()?, (3, flow, true, 0));
    check_eq!(peer.asked()?, (4, flow, false, 0));
    for id in [3, 4] {
        peer.respond(id, DONE)?;
        expect_one(&node.end)?;
    }
    drop((peer, listener));
    node.close()
}

/// Sends messages of a peer, from a number on, and receives them: their bytes, which are more than those that
/// each peer has room for in any case, were kept, and are not asked for.
fn expect_kept(rig: &Rig, (end, port): &(End, u16), peer: &mut Peer, first: u64) -> Outcome {
    const LEN: usize = 16 << 10;
    const COUNT: u64 = 4;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, LEN as u64)?;
    let bytes = vec![7; LEN];
    let last = first + COUNT;
    for id in first..last {
        peer.message_of(id, *port, &bytes)?;
    }
    // All of them were read when this is answered, for which nobody has a key.
    peer.request(last, Kind::Read, (*port, 64), Some(5))?;
    check_eq!(peer.response()?.0, last);
    for id in first..last {
        end.recv(buffer.segment(0..LEN as u64), id)?;
        check!(!peer.is_pulled()?, "{id} was not kept");
    }
    Ok(())
}

/// The messages to a user who receives none, of however many peers, are kept up to half of the bytes that there
/// may be: those to another user are kept as before. When they have ended, and the peers have said that they know
/// it, the first one has room again.
fn bytes_of_users(env: &Env) -> Outcome {
    const LEN: usize = 16 << 10;
    // With so many each peer has sent more than is kept for one.
    const MESSAGES: u64 = 257;
    const PEERS: u8 = 36;
    const MOST: usize = 128 << 20;
    // Requests take some themselves, also those whose bytes are not kept; and some are looked at beside each
    // other.
    const MORE: usize = 4 << 20;
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    let modules = Modules::new(env)?;
    needs_network()?;
    // None of them ends by itself.
    reload(&modules, &format!("{PATIENT} rnr_timeout=600000"))?;
    // Of how many peers all was read, and how many bytes are kept of all.
    let kept = || -> Result<(usize, usize), Stop> {
        let lines = peers("from")?;
        let column = |line: &String, at| {
            let word = line.split_whitespace().nth(at);
            word.and_then(|word| word.parse::<u64>().ok())
        };
        let is_read = |line: &&String| column(line, 12) == Some(MESSAGES + 1);
        let kept: u64 = lines.iter().filter_map(|line| column(line, 11)).sum();
        Ok((lines.iter().filter(is_read).count(), kept as usize))
    };
    kept()?;
    let rig = Rig::new(env)?;
    let end = end_with_port(&rig)?;
    let bytes = vec![7; LEN];
    let mut senders = Vec::new();
    for number in 1..=PEERS {
        let mut peer = Peer::connect(Ipv4Addr::new(127, 2, 0, number), HERE, 1)?;
        for id in 1..=MESSAGES {
            peer.message_of(id, end.1, &bytes)?;
        }
        senders.push(peer);
    }
    until(|| Ok(kept()?.0 == senders.len()))?;
    let (_, all) = kept()?;
    env.note(format!("{all} bytes are kept"));
    check!((MOST..=MOST + MORE).contains(&all), "{all} are kept");

    let (status, text) = child::run(|| {
        users::become_another_user()?;
        let rig = Rig::new(env)?;
        let end = end_with_port(&rig)?;
        let mut peer = Peer::connect(Ipv4Addr::new(127, 2, 1, 1), HERE, 1)?;
        expect_kept(&rig, &end, &mut peer, 1)?;
        drop((peer, end));
        rig.close()
    })?;
    check!(status == Status::Exited(0), "{status:?}: {text}");

    drop(end);
    for peer in &mut senders {
        for _ in 0..MESSAGES {
            check_eq!(peer.response()?.1.status, EHOSTUNREACH);
        }
        peer.acknowledge(MESSAGES + 1)?;
    }
    // Some of those to the other user may be left.
    until(|| Ok(kept()?.1 < MOST / 256))?;
    let end = end_with_port(&rig)?;
    for peer in &mut senders {
        expect_kept(&rig, &end, peer, MESSAGES + 1)?;
    }
    drop((senders, end));
    rig.close()
}

/// Half of the flows of a peer are stopped, at the most, for messages that one user does not receive. Those of
/// other flows fail when they keep others waiting, but not those to another user.
fn flows_of_users(env: &Env) -> Outcome {
    const MOST: u64 = 2048;
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::Skip("not root".to_owned()));
    }
    let modules = Modules::new(env)?;
    needs_network()?;
    // None of them ends by itself.
    reload(&modules, &format!("{PATIENT} rnr_timeout=600000"))?;
    let rig = Rig::new(env)?;
    let (end, port) = end_with_port(&rig)?;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    let half = peer.window() / 2;
    // Each has a flow of its own, of 4096.
    let send = |peer: &mut Peer, id: u64, port: u16| {
        let flow = u16::try_from(id - 1).unwrap_or(u16::MAX);
        peer.message_in(id, port, flow)
    };
    for id in 1..=half {
        send(&mut peer, id, port)?;
    }
    for id in 1..=MOST {
        let (answered, response) = peer.response()?;
        check_eq!((answered, response.status), (id, NOT_READY));
        peer.acknowledge(id + 1)?;
        send(&mut peer, half + id, port)?;
    }
    let last = half + MOST;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (MOST + 1, EREMOTEIO));
    // Messages that are received do not.
    end.recv(buffer.segment(0..64), 7)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (MOST + 2, 0));
    peer.acknowledge(MOST + 3)?;

    let (status, text) = child::run(|| {
        users::become_another_user()?;
        let rig = Rig::new(env)?;
        let (end, port) = end_with_port(&rig)?;
        // Of the flows that are not stopped; each of them has one to the first user first, but for some that
        // are over.
        let send = |peer: &mut Peer, id: u64| {
            let flow = u16::try_from(MOST + (id + 9) % MOST).unwrap_or(u16::MAX);
            peer.message_in(id, port, flow)
        };
        let first = last + 1;
        send(&mut peer, first)?;
        for (next, id) in (first + 1..).zip(MOST + 3..=last) {
            send(&mut peer, next)?;
            let (answered, response) = peer.response()?;
            check_eq!((answered, response.status), (id, EREMOTEIO));
            peer.acknowledge(id + 1)?;
        }
        send(&mut peer, first + half - 1)?;
        let (id, response) = peer.response()?;
        check_eq!((id, response.status), (first, NOT_READY));
        drop(end);
        rig.close()
    })?;
    check!(status == Status::Exited(0), "{status:?}: {text}");
    drop((peer, end, buffer));
    rig.close()
}

/// A peer that is there, but does not say that it has read its oldest answer, is not waited for for ever.
/// The node goes on serving others.
fn unread_answers(env: &Env) -> Outcome {
    const LEN: u64 = 4096;
    const KEY: u64 = 5;
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
    // The other one has all of that for one acknowledgement, also on a machine that is busy.
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=10000")?;
    let node = Node::open(env, LEN)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    let mut other = Peer::connect(OTHER, HERE, 1)?;
    for (each, reads) in [(&mut peer, false), (&mut other, true)] {
        each.request(1, Kind::Read, (node.port, LEN), Some(KEY))?;
        let (id, response) = each.response()?;
        check_eq!((id, response.status), (1, 0));
        if reads {
            each.acknowledge(2)?;
        }
    }
    peer.ends_silently()?;
    other.request(2, Kind::Read, (node.port, LEN), Some(KEY))?;
    let (id, response) = other.response()?;
    check_eq!((id, response.status), (2, 0));
    drop((peer, other));
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// Nor is one that comes again and again, each time on a new connection, on which it stays for a while, or not at all;
/// nor if the oldest answer was never sent, as it stands behind others that are not read.
fn unread_answers_again_and_again(env: &Env) -> Outcome {
    const LEN: u64 = 4096;
    const KEY: u64 = 5;
    // Far more than a peer is given that stays.
    const LONG: Duration = Duration::from_secs(100);
    // Far more than sockets have room for.
    const BEFORE: u64 = 200;
    const BEFORE_LEN: u64 = 16 << 10;
    let parameters = "address=127.0.0.1 loopback=0 peer_timeout=2000 rnr_timeout=1000";
    let _modules = load_network(env, parameters)?;
    let node = Node::open(env, BEFORE_LEN)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    for (session, (stays, behind)) in (1..).zip([(true, false), (false, false), (false, true)]) {
        let (mut peer, birth) = Peer::begin((THERE, HERE), session)?;
        if behind {
            // It fails when the others have been answered.
            peer.message(1, node.port, false, 0)?;
            for id in 2..2 + BEFORE {
                peer.request(id, Kind::Read, (node.port, BEFORE_LEN), Some(KEY))?;
            }
            thread::sleep(Duration::from_millis(1500));
        } else {
            peer.request(1, Kind::Read, (node.port, LEN), Some(KEY))?;
            check_eq!(peer.response()?.0, 1);
        }
        let mut last = Some(peer);
        let begun = Instant::now();
        let mut connections = 0;
        loop {
            let change = |hello: &mut Hello| hello.birth = birth;
            check!(begun.elapsed() < LONG, "it may go on for ever");
            let (mut peer, said) = match Peer::call_as((THERE, HERE), session, change) {
                Ok(called) => called,
                // It is given up on this one, perhaps before the `WELCOME` was read.
                Err(_) if connections >= 16 => continue,
                Err(stop) => return Err(stop),
            };
            let Ok((_, Frame::Welcome(welcome, _))) = Frame::parse(&said.welcome) else {
                return Err(Stop::fail("no WELCOME"));
            };
            if welcome.birth != birth {
                break;
            }
            connections += 1;
            // It is said again, unless the time is over.
            let told = stays && peer.response().is_ok_and(|(id, _)| id == 1);
            check!(told || !stays || connections > 16, "it is not said again");
            last = stays.then_some(peer);
            thread::sleep(Duration::from_millis(100));
        }
        drop(last);
        let took = begun.elapsed();
        env.note(format!("{connections} connections in {took:?}"));
        check!(connections >= 16, "{connections} connections");
    }
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// A receive whose bytes a peer does not bring is not kept by one that comes again and again, and goes at once; nor by
/// one that says each time that it knows what it was not told, which ends no connection that is there.
fn claimed_again_and_again(env: &Env) -> Outcome {
    const LEN: u64 = 1 << 20;
    // Far more than a peer is given that stays.
    const LONG: Duration = Duration::from_secs(150);
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=2000")?;
    let node = Node::open(env, LEN)?;
    for (session, ack) in (1..).zip([1, 1 << 40, 0]) {
        node.end.recv(node.buffer.segment(0..LEN), 7)?;
        let (mut peer, birth) = Peer::begin((THERE, HERE), session)?;
        peer.request(1, Kind::Message, (node.port, LEN), None)?;
        peer.until(|frame| matches!(frame, Frame::Pull { .. }))?;
        let begun = Instant::now();
        if ack != 1 {
            Peer::come_and_go((THERE, HERE), (session, birth), ack)?;
            // Nobody has this key.
            peer.request(2, Kind::Read, (node.port, 64), Some(99))?;
            check_eq!(peer.until(|frame| matches!(frame, Frame::Response(_)))?, 2);
        }
        drop(peer);
        let mut connections = 0;
        loop {
            match node.end.rx.read_err() {
                Ok(error) => {
                    check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
                    check_eq!(error.entry.op_context, 7);
                    break;
                }
                Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
                Err(error) => return Err(error.into()),
            }
            check!(begun.elapsed() < LONG, "it may go on for ever");
            // Perhaps it is over, and there is none of that birth.
            let _ = Peer::come_and_go((THERE, HERE), (session, birth), ack);
            connections += 1;
            thread::sleep(Duration::from_millis(250));
        }
        env.note(format!(
            "{ack:#x}: {connections} connections in {:?}",
            begun.elapsed()
        ));
    }
    node.close()
}

/// What a peer has not read of a connection takes no memory any more when that is over, however many there are: it is
/// said again on the next one.
fn unread_answers_of_connections_before(env: &Env) -> Outcome {
    const LEN: u64 = 16 << 10;
    const KEY: u64 = 5;
    // Far more than sockets have room for.
    const COUNT: u64 = 200;
    // The end of a connection is to be sent, too. What others have left goes when it is tried again.
    let are_left = |bytes| unread_sockets(FIN_WAIT, bytes) + unread_sockets(LAST_ACK, bytes);
    if are_left(0) != 0 {
        let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        env.note(format!("some are left of others:\n{table}"));
        check_eq!(are_left(LITTLE), 0);
        until(|| Ok(are_left(0) == 0))?;
    }
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, LEN)?;
    let region = node.register(bits::REMOTE_READ, KEY)?;
    let (mut peer, birth) = Peer::begin((THERE, HERE), 1)?;
    for id in 1..=COUNT {
        peer.request(id, Kind::Read, (node.port, LEN), Some(KEY))?;
    }
    let mut before = Vec::new();
    for _ in 0..8 {
        until(|| Ok(unread_sockets(ESTABLISHED, 0) == 1))?;
        // In one half the node is told that the peer does not go on; in the other it finds a new connection.
        if before.len() % 2 == 0 {
            peer.says_no_more()?;
            until(|| Ok(sockets(ESTABLISHED) == 0))?;
        }
        before.push(peer);
        let (next, read) = Peer::resume((THERE, HERE), (1, birth), 1)?;
        peer = next;
        // The rest was lost with the connection.
        check!((1..=COUNT + 1).contains(&read), "{read} is read");
        for id in read..=COUNT {
            peer.request(id, Kind::Read, (node.port, LEN), Some(KEY))?;
        }
    }
    until(|| Ok(unread_sockets(ESTABLISHED, 0) == 1))?;
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    check!(are_left(0) == 0, "some are left:\n{table}");
    for id in 1..=COUNT {
        let (answered, response) = peer.response()?;
        check_eq!((answered, response.status), (id, 0));
    }
    peer.acknowledge(COUNT + 1)?;
    drop((peer, before));
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// What a peer has not read of what a node has sent to it takes no memory any more when the modules are gone.
fn unread_data_of_modules_before(env: &Env) -> Outcome {
    const LEN: u64 = 32 << 10;
    const COUNT: u64 = 32;
    // Most of some of them: the peer takes some thousand bytes.
    const MUCH: u32 = 80 << 10;
    const FAILED: Response = Response {
        status: 5,
        len: 0,
        waited: 0,
    };
    let modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, LEN)?;
    let listener = Peer::listen_without_room(THERE)?;
    node.end.peer = node.end.av.insert(&peer::name(THERE, 5))?;
    for context in 0..COUNT {
        node.end.send(node.buffer.segment(0..LEN), context)?;
    }
    let mut peer = Peer::accept(&listener)?;
    for id in 1..=COUNT {
        check_eq!(peer.until(|frame| matches!(frame, Frame::Request(_)))?, id);
    }
    let moved = || -> Result<u64, Stop> {
        let lines = peers("to")?;
        let moved = lines.first().and_then(|line| line.split(' ').nth(10));
        let moved = moved.and_then(|moved| moved.parse().ok());
        moved.ok_or_else(|| Stop::fail("nothing is known of the peer"))
    };
    // One after the other, so that none of them is only in part on its way.
    let mut pulled = 0;
    while unread_bytes(THERE) <= MUCH {
        check!(pulled < COUNT, "the peer has room for all of them");
        pulled += 1;
        let before = moved()?;
        peer.pull(pulled, 0, LEN)?;
        until(|| Ok(moved()? >= before + LEN))?;
    }
    // They are over, so that nothing is waited for.
    for id in 1..=COUNT {
        peer.respond(id, FAILED)?;
    }
    for _ in 0..COUNT {
        until(|| match node.end.tx.read_err() {
            Ok(_) => Ok(true),
            Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(false),
            Err(error) => Err(error.into()),
        })?;
    }
    node.close()?;
    check!(unread_bytes(THERE) > MUCH, "the peer has room after all");
    drop(modules);
    // And of others little.
    check!(unread_bytes(THERE) <= LITTLE, "it is left");
    drop((peer, listener));
    Ok(())
}

/// More messages than may be under way for which there is never a receive fail as they do within a node,
/// each once.
fn never_ready(env: &Env) -> Outcome {
    const COUNT: u64 = 3000;
    let parameters = "address=127.0.0.1,127.0.0.2 loopback=0 rnr_timeout=500";
    let _modules = load_network(env, parameters)?;
    let rig = Rig::new(env)?;
    let mut entry = rig.info.entries()[0].clone();
    entry.tx_attr.size = 4096;
    rig.close()?;
    let setup = Setup {
        entry: Some(entry),
        cq_size: 4096,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG | Caps::SEND | Caps::RECV, &setup)?;
    let area = Area::plain(&pair.rig.session, 64)?;
    for context in 0..COUNT {
        pair.a.send(area.all(), context)?;
    }
    let mut ended = BTreeSet::new();
    for _ in 0..COUNT {
        let entry = pair.a.tx.sread(1, Some(LONG));
        check_eq!(entry.err(), Some(Error::Fabric(KfiErrno::EAVAIL)));
        let error = pair.a.tx.read_err()?;
        check_eq!(error.err, KfiErrno::EREMOTEIO.number());
        check!(ended.insert(error.entry.op_context), "{error:?} twice");
    }
    Ok(())
}

/// mmap(2) does not wait for what is being closed, as it has the lock of the process's memory.
fn mapping_beside_a_close(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let mut node = Node::open(env, 4096)?;
    let offset = u64::from(node.end.ep.handle()) << 32;
    let map = || MappedPage::new(&node.rig.session, offset).err();
    check_eq!(map(), Some(Errno::INVAL));

    let listener = Peer::listen(THERE)?;
    node.end.peer = node.end.av.insert(&peer::name(THERE, 5))?;
    node.end.send(node.buffer.segment(0..64), 7)?;
    let mut peer = Peer::accept(&listener)?;
    let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    check_eq!(sent, 1);

    let End { ep, tx, rx, av, .. } = node.end;
    thread::scope(|scope| {
        let closing = scope.spawn(|| ep.close().map_err(|(_, error)| error));
        // Close waits for the peer, which has the operation.
        let withdrawn = peer.until(|frame| matches!(frame, Frame::Withdraw));
        let mapped = map();
        peer.respond(1, CANCELED)?;
        check_eq!(withdrawn?, 1);
        check_eq!(mapped, Some(Errno::BADF));
        match closing.join() {
            Ok(closed) => Ok(closed?),
            Err(_) => Err(Stop::fail("a thread has panicked")),
        }
    })?;
    check_eq!(map(), Some(Errno::BADF));
    drop((peer, listener, tx, rx, av, node.buffer));
    node.rig.close()
}

/// A process that is killed while it closes an endpoint goes, though what that has sent cannot be given back yet, so that
/// it is closed when that is.
fn killed_in_a_close(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let (begin, begun) = UnixStream::pair()?;
    let mut child = process::fork(|| {
        let Ok(mut node) = Node::open(env, 4096) else {
            return 1;
        };
        if node.send_to(THERE, 7).is_err() {
            return 1;
        }
        // Not before it was sent.
        if (&begun).read_exact(&mut [0]).is_err() {
            return 1;
        }
        // It does not return.
        let _ = node.rig.session.close_handle(node.end.ep.handle());
        2
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    (&begin).write_all(&[0])?;
    let withdrawn = peer.until(|frame| matches!(frame, Frame::Withdraw))?;
    check_eq!(withdrawn, sent);
    child.kill(Signal::KILL)?;
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    let users = || users_of(PROVIDER);
    check!(users()? != 0, "all was closed before");
    peer.respond(sent, CANCELED)?;
    until(|| Ok(users()? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// The same while sessions that others have used close more endpoints than are closed elsewhere of a user.
fn killed_in_a_close_beside_others(env: &Env) -> Outcome {
    const SESSIONS: usize = 3;
    const ENDPOINTS: usize = 16;
    // What is closed elsewhere of these, and what two sessions at least close themselves.
    const BEGUN: usize = 18;
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let sessions = (0..SESSIONS).map(|_| Session::open());
    let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
    let theirs = sessions.clone();
    let mut others = child_that_keeps(move || {
        let mut kept = Vec::new();
        for session in theirs {
            let mut node = Node::in_session(env, session, 4096)?;
            for context in 1..ENDPOINTS as u64 {
                let (mut end, _) = end_with_port(&node.rig)?;
                end.peer = end.av.insert(&peer::name(THERE, 5))?;
                end.send(node.buffer.segment(0..64), context)?;
                kept.push(Err(end));
            }
            node.send_to(THERE, 0)?;
            kept.push(Ok(node));
        }
        Ok(kept)
    })?;
    // Nor is there one in the next process.
    drop(sessions);
    let mut peer = Peer::accept(&listener)?;
    let mut left = requests(&mut peer, SESSIONS * ENDPOINTS)?;
    let (begin, begun) = UnixStream::pair()?;
    let mut child = child_that_keeps(|| {
        let mut node = Node::open(env, 4096)?;
        node.send_to(THERE, 7)?;
        (&begun).read_exact(&mut [0])?;
        // It does not return.
        node.rig.session.close_handle(node.end.ep.handle())?;
        Ok(node)
    })?;
    let own = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    left.insert(own);
    others.kill(Signal::KILL)?;
    others.wait()?;
    let mut withdrawn = Vec::new();
    while withdrawn.len() < BEGUN {
        withdrawn.push(peer.until(|frame| matches!(frame, Frame::Withdraw))?);
    }
    settle();
    (&begin).write_all(&[0])?;
    while withdrawn.last() != Some(&own) {
        withdrawn.push(peer.until(|frame| matches!(frame, Frame::Withdraw))?);
    }
    child.kill(Signal::KILL)?;
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    check!(users_of(PROVIDER)? != 0, "all was closed before");
    loop {
        for id in withdrawn.drain(..) {
            check!(left.remove(&id), "{id} was withdrawn before");
            peer.respond(id, CANCELED)?;
        }
        if left.is_empty() {
            break;
        }
        withdrawn.push(peer.until(|frame| matches!(frame, Frame::Withdraw))?);
    }
    until(|| Ok(users_of(PROVIDER)? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// The same with more endpoints than are closed elsewhere of a user: the process goes when those have been closed that its
/// threads close themselves.
fn killed_in_many_closes(env: &Env) -> Outcome {
    const ENDPOINTS: usize = 40;
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let (begin, begun) = UnixStream::pair()?;
    let mut child = process::fork(|| {
        let send = || {
            let mut node = Node::open(env, 4096)?;
            node.send_to(THERE, 7)?;
            Ok::<_, Stop>(node)
        };
        let Ok(nodes) = (0..ENDPOINTS)
            .map(|_| send())
            .collect::<Result<Vec<_>, _>>()
        else {
            return 1;
        };
        // Not before they were sent.
        if (&begun).read_exact(&mut [0]).is_err() {
            return 1;
        }
        thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| node.rig.session.close_handle(node.end.ep.handle()));
            }
        });
        2
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = requests(&mut peer, ENDPOINTS)?;
    (&begin).write_all(&[0])?;
    let mut withdrawn = BTreeSet::new();
    while withdrawn.len() < ENDPOINTS {
        check!(withdrawn.insert(peer.until(|frame| matches!(frame, Frame::Withdraw))?));
    }
    check_eq!(sent, withdrawn);
    child.kill(Signal::KILL)?;
    let users = || users_of(PROVIDER);
    check!(users()? != 0, "all was closed before");
    for id in withdrawn {
        peer.respond(id, CANCELED)?;
    }
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    until(|| Ok(users()? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// The end of a session closes its endpoints without waiting for one before it begins with the next: each has sent
/// something that is not answered.
fn session_closes_several(env: &Env) -> Outcome {
    session_closes(env, false)
}

/// The same where memory regions are bound to them, which have to go before.
fn session_closes_several_with_regions(env: &Env) -> Outcome {
    session_closes(env, true)
}

/// A process that has made something, and keeps it until it is killed.
fn child_that_keeps<T>(make: impl FnOnce() -> Result<T, Stop>) -> Result<process::Child, Stop> {
    Ok(process::fork(|| {
        let _kept = match make() {
            Ok(kept) => kept,
            Err(stop) => {
                println!("# nothing to keep: {stop:?}");
                return 1;
            }
        };
        loop {
            thread::park();
        }
    })?)
}

/// The numbers of so many requests, each of which comes once.
fn requests(peer: &mut Peer, count: usize) -> Result<BTreeSet<u64>, Stop> {
    let mut ids = BTreeSet::new();
    while ids.len() < count {
        let id = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
        check!(ids.insert(id), "{id} was sent before");
    }
    Ok(ids)
}

/// Ends a session with endpoints that have sent something, with regions or without.
fn session_closes(env: &Env, bound: bool) -> Outcome {
    const ENDPOINTS: usize = 8;
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let mut child = child_that_keeps(|| {
        let mut node = Node::open(env, 4096)?;
        let mut ends = Vec::new();
        let mut regions = Vec::new();
        let mut bind = |end: &End, key: u64| -> Outcome {
            if bound {
                let attr = MrAttr::new(bits::REMOTE_READ, key);
                let segments = [node.buffer.segment(0..64)];
                let region = node.rig.domain.register(&segments, &attr)?;
                region.bind(end.ep.handle(), 0)?;
                regions.push(region);
            }
            Ok(())
        };
        // Before anything is sent: the last request is the sign to kill it.
        bind(&node.end, 7)?;
        for context in 1..ENDPOINTS as u64 {
            let (mut end, _) = end_with_port(&node.rig)?;
            end.peer = end.av.insert(&peer::name(THERE, 5))?;
            bind(&end, 100 + context)?;
            end.send(node.buffer.segment(0..64), context)?;
            ends.push(end);
        }
        node.send_to(THERE, 7)?;
        Ok::<_, Stop>((node, ends, regions))
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = requests(&mut peer, ENDPOINTS)?;
    child.kill(Signal::KILL)?;
    // Each is withdrawn before any of them is answered.
    let mut withdrawn = BTreeSet::new();
    while withdrawn.len() < ENDPOINTS {
        check!(withdrawn.insert(peer.until(|frame| matches!(frame, Frame::Withdraw))?));
    }
    check_eq!(sent, withdrawn);
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    let users = || users_of(PROVIDER);
    check!(users()? != 0, "all was closed before");
    for id in withdrawn {
        peer.respond(id, CANCELED)?;
    }
    until(|| Ok(users()? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// One that is kept long keeps none of the others, however many there are.
fn session_closes_many(env: &Env) -> Outcome {
    // More than are closed at a time.
    const ENDPOINTS: usize = 40;
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let mut child = child_that_keeps(|| {
        let mut node = Node::open(env, 4096)?;
        node.send_to(THERE, 0)?;
        let mut ends = Vec::new();
        for context in 1..ENDPOINTS as u64 {
            let (mut end, _) = end_with_port(&node.rig)?;
            end.peer = end.av.insert(&peer::name(THERE, 5))?;
            end.send(node.buffer.segment(0..64), context)?;
            ends.push(end);
        }
        Ok::<_, Stop>((node, ends))
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = requests(&mut peer, ENDPOINTS)?;
    child.kill(Signal::KILL)?;
    // The first is not answered before all others are withdrawn.
    let first = sent.first().copied().unwrap_or_default();
    let mut withdrawn = BTreeSet::new();
    while withdrawn.len() < ENDPOINTS {
        let id = peer.until(|frame| matches!(frame, Frame::Withdraw))?;
        check!(withdrawn.insert(id), "{id} was withdrawn before");
        if id != first {
            peer.respond(id, CANCELED)?;
        }
    }
    check_eq!(sent, withdrawn);
    peer.respond(first, CANCELED)?;
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    until(|| Ok(users_of(PROVIDER)? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// Another user who has the last descriptors of sessions is through with them while the sessions before
/// these, of the same user as they, are still being ended.
fn left_to_another_user(env: &Env) -> Outcome {
    left_to(env, users::become_another_user)
}

/// So is another process of that user: it may have been sent what was opened for somebody else.
fn left_to_another_process(env: &Env) -> Outcome {
    left_to(env, || Ok(()))
}

/// Has another process drop sessions, as somebody.
fn left_to(env: &Env, identity: fn() -> Outcome) -> Outcome {
    // As many sessions of a user as are ended at a time.
    const AT_ONCE: usize = 32;
    const LEFT: usize = 40;
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let left = (0..LEFT).map(|_| Session::open());
    let left: Vec<Session> = left.collect::<Result<_, _>>()?;
    let (begin, may_begin) = rustix::pipe::pipe()?;
    let (through, tell) = rustix::pipe::pipe()?;
    let mut other = process::fork(move || {
        if identity().is_err() || rustix::io::read(&begin, &mut [0]) != Ok(1) {
            return 1;
        }
        drop(left);
        i32::from(rustix::io::write(&tell, &[0]) != Ok(1))
    })?;
    let mut child = child_that_keeps(|| {
        let send = || {
            let mut node = Node::open(env, 4096)?;
            node.send_to(THERE, 7)?;
            Ok::<_, Stop>(node)
        };
        (0..AT_ONCE).map(|_| send()).collect::<Result<Vec<_>, _>>()
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = requests(&mut peer, AT_ONCE)?;
    child.kill(Signal::KILL)?;
    // All of them are being ended then.
    let mut withdrawn = BTreeSet::new();
    while withdrawn.len() < AT_ONCE {
        check!(withdrawn.insert(peer.until(|frame| matches!(frame, Frame::Withdraw))?));
    }
    check_eq!(sent, withdrawn);
    check_eq!(rustix::io::write(&may_begin, &[0])?, 1);
    check_eq!(rustix::io::read(&through, &mut [0])?, 1);
    check!(users_of(PROVIDER)? != 0, "all was closed before");
    for id in withdrawn {
        peer.respond(id, CANCELED)?;
    }
    check_eq!(other.wait()?, Status::Exited(0));
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    until(|| Ok(users_of(PROVIDER)? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// The process that has opened a session does not wait for what another one has done there. Until all is closed the
/// module cannot be unloaded.
fn session_used_by_another_process(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let before = users_of("kfi_shim")?;
    let listener = Peer::listen(THERE)?;
    let session = Session::open()?;
    let theirs = session.clone();
    let mut child = child_that_keeps(move || {
        let mut node = Node::in_session(env, theirs, 4096)?;
        node.send_to(THERE, 7)?;
        Ok::<_, Stop>(node)
    })?;
    let mut peer = Peer::accept(&listener)?;
    let id = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    child.kill(Signal::KILL)?;
    let status = child.wait()?;
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    // Here it would wait for as long as the peer likes.
    drop(session);
    check_eq!(peer.until(|frame| matches!(frame, Frame::Withdraw))?, id);
    check!(users_of(PROVIDER)? != 0, "all was closed before");
    check!(users_of("kfi_shim")? > before, "it could be unloaded");
    peer.respond(id, CANCELED)?;
    until(|| Ok(users_of(PROVIDER)? == 0))?;
    until(|| Ok(users_of("kfi_shim")? == before))?;
    drop((peer, listener));
    Ok(())
}

/// A process that has the number of the one which has opened a session is another one, and does not wait for its end.
fn session_closed_under_its_number(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut opener = process::fork(move || {
        let sent = Session::open()
            .map_err(Stop::from)
            .and_then(|session| send_fd(&theirs, &session));
        i32::from(sent.is_err())
    })?;
    let number = opener.pid();
    check_eq!(opener.wait()?, Status::Exited(0));
    let session = Session::from(receive_fd(&ours)?);
    let theirs = session.clone();
    let (mine, may_close) = rustix::pipe::pipe()?;
    let mut child = process::fork_as(number, move || {
        let node = Node::in_session(env, theirs, 4096).and_then(|mut node| {
            node.send_to(THERE, 7)?;
            Ok(node)
        });
        if let Err(stop) = &node {
            println!("# nothing was sent: {stop:?}");
            return 1;
        }
        if rustix::io::read(&mine, &mut [0]) != Ok(1) {
            return 2;
        }
        // All that it has open is closed then.
        let failed = Command::new("/bin/busybox").arg("true").exec();
        println!("# {failed}");
        drop(node);
        3
    })?;
    check_eq!(child.pid(), number);
    drop(session);
    let mut peer = Peer::accept(&listener)?;
    let id = peer.until(|frame| matches!(frame, Frame::Request(_)))?;
    rustix::io::write(&may_close, &[0])?;
    check_eq!(child.wait_for(LONG)?, Some(Status::Exited(0)));
    check_eq!(peer.until(|frame| matches!(frame, Frame::Withdraw))?, id);
    check!(users_of(PROVIDER)? != 0, "all was closed before");
    peer.respond(id, CANCELED)?;
    until(|| Ok(users_of(PROVIDER)? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// A process that is killed goes, though what it has sent cannot be given back yet; and that is when it
/// can be.
fn killed_beside_a_silent_target(env: &Env) -> Outcome {
    killed_with_sessions(env, 1)
}

/// The same with many sessions: the process goes after a time that is that of one of them, at the most 5 s.
/// One after the other they would take longer than the 300 s that a test has if nothing else is said.
fn killed_with_many_sessions(env: &Env) -> Outcome {
    killed_with_sessions(env, 64)
}

/// The same with sessions in the queues of sockets, each of which lies in the queue of another one: the next one is
/// released when the one before has been.
fn killed_with_sessions_in_sockets(env: &Env) -> Outcome {
    killed_with(env, 80, |nodes| {
        let mut inner: Option<UnixStream> = None;
        for node in nodes.iter().rev() {
            let (to, from) = UnixStream::pair()?;
            send_fd(&to, &node.rig.session)?;
            if let Some(inner) = inner {
                send_fd(&to, &inner)?;
            }
            inner = Some(from);
        }
        Ok(inner)
    })
}

/// Kills a process with so many sessions, each of which has sent something that is not answered yet.
fn killed_with_sessions(env: &Env, sessions: usize) -> Outcome {
    killed_with(env, sessions, |_| Ok(None))
}

/// The same, with what is made of the sessions.
fn killed_with(
    env: &Env,
    sessions: usize,
    make: impl FnOnce(&[Node]) -> Result<Option<UnixStream>, Stop>,
) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let listener = Peer::listen(THERE)?;
    let mut child = child_that_keeps(|| {
        let send = || {
            let mut node = Node::open(env, 4096)?;
            node.send_to(THERE, 7)?;
            Ok::<_, Stop>(node)
        };
        let nodes = (0..sessions)
            .map(|_| send())
            .collect::<Result<Vec<_>, _>>()?;
        let made = make(&nodes)?;
        Ok((nodes, made))
    })?;
    let mut peer = Peer::accept(&listener)?;
    let sent = requests(&mut peer, sessions)?;
    child.kill(Signal::KILL)?;
    let killed = Instant::now();
    // Here it would wait for as long as the peer likes.
    let status = child.wait()?;
    let took = killed.elapsed();
    let users = || users_of(PROVIDER);
    let before = users()?;
    let mut withdrawn = BTreeSet::new();
    while withdrawn.len() < sessions {
        let id = peer.until(|frame| matches!(frame, Frame::Withdraw))?;
        peer.respond(id, CANCELED)?;
        check!(withdrawn.insert(id), "{id} was withdrawn before");
    }
    check!(matches!(status, Status::Signaled(_)), "{status:?}");
    check_eq!(sent, withdrawn);
    env.note(format!("gone after {took:?}"));
    check!(before != 0, "all was closed before");
    until(|| Ok(users()? == 0))?;
    drop((peer, listener));
    Ok(())
}

/// A request that a peer does not want any more ends though its bytes are being moved, and the
/// peer has more than enough time for them.
fn withdrawn_while_moving(env: &Env) -> Outcome {
    const LEN: u64 = 16 << 20;
    const KEY: u64 = 5;
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, LEN)?;
    let region = node.register(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY)?;
    let mut peer = Peer::connect(THERE, HERE, 1)?;
    for (id, kind) in (1..).zip([Kind::Message, Kind::Write, Kind::Read]) {
        if kind == Kind::Message {
            node.end.recv(node.buffer.segment(0..LEN), 7)?;
        }
        let key = (kind != Kind::Message).then_some(KEY);
        peer.request(id, kind, (node.port, LEN), key)?;
        let begun = match kind {
            Kind::Read => peer.until(|frame| matches!(frame, Frame::Data(_)))?,
            _ => peer.until(|frame| matches!(frame, Frame::Pull { .. }))?,
        };
        check_eq!(begun, id, "{kind:?}");
        peer.withdraw(id)?;
        let (ended, response) = peer.response()?;
        check_eq!((ended, response.status), (id, CANCELED.status), "{kind:?}");
        if kind == Kind::Message {
            // It was not this one that was cancelled.
            let error = node.end.rx.read_err()?;
            check_eq!(error.entry.op_context, 7);
            check_eq!(error.err.unsigned_abs(), EHOSTUNREACH);
        }
    }
    region.close().map_err(|(_, error)| error)?;
    drop(peer);
    node.close()
}
