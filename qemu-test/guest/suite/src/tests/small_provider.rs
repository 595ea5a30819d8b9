// SPDX-License-Identifier: GPL-2.0

//! A small provider in safe code passes the tests of what it has.
//!
//! Each of these tests runs an area of this suite with that provider, on a small scale, and tells how
//! it went.

use std::time::Duration;

use kfi::{
    bits, AvAttr, AvType, BufferKind, Caps, CqAttr, EpInfo, EpType, Form, InfoEntry, KfiErrno,
    Kind, Operation, Query, ResourceMgmt, Session, Tclass,
};

use crate::check::Outcome;
use crate::env::{Env, Settings};
use crate::filter::Filter;
use crate::harness::{self, Options, Test};
use crate::kernel_log::KernelLog;
use crate::report::{self, Report};
use crate::rig::{expect_fabric, Rig};
use crate::tests::module::{could_not, run_in_kernel, unload, Modules, CONSUMER};
use crate::{check, check_eq, tests};

tests! {
    "small-provider";
    "claims" ["kfabric.h"] claims;
    "capabilities" ["kfabric.h"] capabilities;
    "directions" ["kfi_endpoint.h"] directions;
    "names" ["kfabric.h kfi_domain.h"] names;
    "cntr" ["R-CNTR-3 R-CNTR-18 R-CNTR-21"] cntr;
    "wait" ["R-CNTR-30 R-CNTR-31 R-CNTR-36"] wait;
    "control" ["R-CTL-9"] control;
    "waitfd" ["R-CTL-10"] waitfd;
    "av" ["kfi_domain.h"] av;
    "endpoint" ["kfi_endpoint.h"] endpoint;
    "message" ["kfi_endpoint.h"] message;
    "signal" ["R-CNTR-6"] signal;
    "close" ["R-CLOSE-3"] close;
}

const SMALL: &str = "kfi_small";

/// Its own claims: tests leave out the parts that a provider does not claim.
fn claims(env: &Env) -> Outcome {
    with_it(env, || {
        let info = Session::open()?.getinfo(&Query::new().provider(SMALL))?;
        check_eq!(info.entries().len(), 1);
        for entry in info.entries() {
            let caps = Caps::MSG | Caps::SEND | Caps::RECV | Caps::SOURCE | Caps::LOCAL_COMM;
            check_eq!(entry.caps, caps);
            check_eq!(entry.domain_attr.cq_data_size, 8);
            check_eq!(entry.domain_attr.caps, Caps::LOCAL_COMM);
        }
        only_what_was_asked(env)
    })
}

/// Makes an entry ask for something else.
type Change = fn(&mut InfoEntry);

/// It is not offered to those who want something else, and an endpoint is not opened with that.
fn only_what_was_asked(env: &Env) -> Outcome {
    let settings = Settings {
        provider: Some(SMALL.to_owned()),
        ..env.settings.clone()
    };
    let rig = Rig::new(&env.with(settings)?)?;
    let good = rig.info.entries()[0].clone();
    let found = |entry: &InfoEntry| rig.session.getinfo(&Query::new().hints(entry.clone()));
    check_eq!(found(&good)?.entries().len(), 1);
    rig.domain.endpoint(EpInfo::Value(&good), 0)?;
    let changes: [(&str, Change); 14] = [
        ("type", |entry| entry.ep_attr.r#type = EpType::MSG),
        ("domain", |entry| entry.domain_attr.name = "nothing".into()),
        ("fabric", |entry| entry.fabric_attr.name = "nothing".into()),
        ("capability", |entry| entry.caps |= Caps::RMA),
        ("size", |entry| entry.ep_attr.max_msg_size = 1 << 40),
        ("data", |entry| entry.domain_attr.cq_data_size = 16),
        ("contexts", |entry| entry.ep_attr.tx_ctx_cnt = 2),
        ("pieces", |entry| entry.tx_attr.iov_limit = 1 << 20),
        ("reach", |entry| entry.domain_attr.caps = Caps::REMOTE_COMM),
        ("direction", |entry| entry.tx_attr.caps = Caps::RECV),
        ("kind of vectors", |entry| {
            entry.domain_attr.av_type = AvType(77);
        }),
        ("resource management", |entry| {
            entry.domain_attr.resource_mgmt = ResourceMgmt(77);
        }),
        ("traffic class", |entry| {
            entry.domain_attr.tclass = Tclass(1);
        }),
        ("traffic class of messages", |entry| {
            entry.tx_attr.tclass = Tclass(1);
        }),
    ];
    for (what, change) in changes {
        let mut entry = good.clone();
        change(&mut entry);
        check!(found(&entry).is_err(), "another {what} is found");
        let opened = rig.domain.endpoint(EpInfo::Value(&entry), 0);
        check!(opened.is_err(), "an endpoint is opened with another {what}");
    }
    for query in [
        Query::new().node(c"localhost".to_owned()),
        Query::new().service(c"7471".to_owned()),
    ] {
        let found = rig.session.getinfo(&query.provider(SMALL));
        expect_fabric(found, KfiErrno::ENODATA)?;
    }
    rig.close()
}

/// The capabilities that are asked for are answered, with those that go without saying and no more.
fn capabilities(env: &Env) -> Outcome {
    with_it(env, || {
        let session = Session::open()?;
        let found = |caps| session.getinfo(&Query::new().provider(SMALL).caps(caps));
        let both = Caps::SEND | Caps::RECV;
        for (asked, answered) in [
            (Caps::MSG, Caps::MSG | both | Caps::LOCAL_COMM),
            (
                Caps::MSG | Caps::SEND,
                Caps::MSG | Caps::SEND | Caps::LOCAL_COMM,
            ),
            (
                Caps::MSG | Caps::RECV | Caps::SOURCE | Caps::LOCAL_COMM,
                Caps::MSG | Caps::RECV | Caps::SOURCE | Caps::LOCAL_COMM,
            ),
        ] {
            let info = found(asked)?;
            let entry = &info.entries()[0];
            check_eq!(entry.caps, answered);
            check!(!entry.tx_attr.caps.contains(Caps::RECV), "{entry:?}");
            check!(!entry.rx_attr.caps.contains(Caps::SEND), "{entry:?}");
            let sends = answered.contains(Caps::SEND);
            check_eq!(entry.tx_attr.caps.contains(Caps::SEND), sends);
            let receives = answered.contains(Caps::RECV);
            check_eq!(entry.rx_attr.caps.contains(Caps::RECV), receives);
        }
        for caps in [Caps::TAGGED, Caps::MSG | Caps::REMOTE_COMM] {
            expect_fabric(found(caps), KfiErrno::ENODATA)?;
        }
        Ok(())
    })
}

/// An endpoint that was opened to send, or to receive, has nothing for the other direction. It is
/// opened with the answer to that as it is.
fn directions(env: &Env) -> Outcome {
    let settings = Settings {
        provider: Some(SMALL.to_owned()),
        ..env.settings.clone()
    };
    with_it(env, || {
        let rig = Rig::new(&env.with(settings)?)?;
        let av = rig.domain.address_vector(&AvAttr::default())?;
        let queue = rig.domain.completion_queue(&CqAttr::new())?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 64)?;
        let open = |caps| {
            let info = rig
                .session
                .getinfo(&Query::new().provider(SMALL).caps(caps))?;
            rig.domain.endpoint(EpInfo::Entry(&info, 0), 0)
        };
        let post = |kind| {
            let operation = Operation::new(kind, Form::PLAIN);
            operation.segment(buffer.segment(0..64))
        };
        for (caps, own, other, kind) in [
            (Caps::SEND, bits::TRANSMIT, bits::RECV, Kind::RECV),
            (Caps::RECV, bits::RECV, bits::TRANSMIT, Kind::SEND),
        ] {
            let ep = open(Caps::MSG | caps)?;
            ep.bind(av.handle(), 0)?;
            expect_fabric(ep.bind(queue.handle(), other), KfiErrno::EINVAL)?;
            expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
            ep.bind(queue.handle(), own)?;
            ep.enable()?;
            let to = av.insert(&ep.name()?)?;
            expect_fabric(ep.post(&post(kind).to(to)), KfiErrno::EOPNOTSUPP)?;
            ep.close().map_err(|(_, error)| error)?;
        }
        queue.close().map_err(|(_, error)| error)?;
        av.close().map_err(|(_, error)| error)?;
        rig.close()
    })
}

/// A fabric or domain that it does not have is not opened. Only in the kernel can an answer be changed
/// before something is opened with it.
fn names(env: &Env) -> Outcome {
    with_it(env, || {
        let parameters = c"provider=kfi_small only=open/other-names";
        run_in_kernel(env, CONSUMER, parameters)
    })
}

/// Runs something while it is loaded.
fn with_it(env: &Env, run: impl FnOnce() -> Outcome) -> Outcome {
    let modules = Modules::new(env)?;
    modules.needs(SMALL)?;
    modules
        .load(SMALL)
        .map_err(|errno| could_not("load", SMALL, errno))?;
    let outcome = run();
    unload(SMALL).map_err(|errno| could_not("unload", SMALL, errno))?;
    outcome
}

/// Runs the tests of an area but those that need what the provider lacks: patterns of their names, and
/// what it is.
fn area(env: &Env, area: &str, lacking: &[(&str, &str)]) -> Outcome {
    let settings = Settings {
        provider: Some(SMALL.to_owned()),
        scale: env.settings.scale / 50.0,
        ..env.settings.clone()
    };
    with_it(env, || run(env, area, lacking, settings))
}

/// Reasons for which a test may leave itself out: the kernel's, and things that the provider lacks. Its
/// claims are fixed in [`claims`].
const MISSING: [&str; 6] = [
    "the kernel does not count sleeps",
    "the provider does not have",
    "nodes have no names",
    "receives are not shared",
    "transmit contexts are not shared",
    "there are no scalable endpoints",
];

/// Runs tests of an area in this one, with other settings.
pub(super) fn run(env: &Env, area: &str, lacking: &[(&str, &str)], settings: Settings) -> Outcome {
    let mut tests: Vec<Test> = tests::all();
    tests.retain(|test| test.area == area);
    for (pattern, what) in lacking {
        let filter = Filter::from(*pattern);
        let before = tests.len();
        tests.retain(|test| {
            let lacks = filter.matches(test.name);
            if lacks {
                env.note(format!("  skipped {}: {what}", test.full_name()));
            }
            !lacks
        });
        check!(tests.len() < before, "no test is {area}/{pattern}");
    }
    let options = Options {
        settings,
        time_limit: Duration::from_secs(250),
        fail_fast: false,
        jobs: 1,
    };
    let mut lines = Vec::new();
    let mut report = Report::new(report::Form::Human, &mut lines, tests.len())?;
    let complete = harness::run(&tests, &options, &mut report, &mut KernelLog::open())?;
    let totals = report.totals;
    let lines = String::from_utf8_lossy(&lines);
    env.note(&lines);
    check!(complete && totals.failed == 0, "{totals}");
    check!(totals.passed > 0, "{totals}");
    for line in lines.lines() {
        let why = line.trim_start().strip_prefix("skipped ");
        let why = why.and_then(|line| line.split_once(": "));
        if let Some((name, why)) = why {
            let may = MISSING.iter().any(|missing| why.starts_with(missing));
            check!(may, "{name} was skipped: {why}");
        }
    }
    Ok(())
}

fn cntr(env: &Env) -> Outcome {
    area(env, "cntr", &[])
}

fn wait(env: &Env) -> Outcome {
    area(env, "wait", &[])
}

fn control(env: &Env) -> Outcome {
    area(env, "control", &[])
}

fn waitfd(env: &Env) -> Outcome {
    area(env, "waitfd", &[])
}

fn av(env: &Env) -> Outcome {
    area(env, "av", &[("events*", "there are no event queues")])
}

fn endpoint(env: &Env) -> Outcome {
    let lacking = [
        ("addresses", "endpoints do not choose their addresses"),
        ("aliases", "there are no aliases"),
        ("default-flags-change", "there are no aliases"),
        ("case-71-busy-matrix", "there are no event queues"),
    ];
    area(env, "endpoint", &lacking)
}

fn message(env: &Env) -> Outcome {
    let lacking = [("receiver-not-ready", "messages wait as long as it takes")];
    area(env, "message", &lacking)
}

fn signal(env: &Env) -> Outcome {
    let lacking = [
        ("case-04-bind-errors", "there is nothing but messages"),
        ("case-12-*", "messages wait as long as it takes"),
        ("case-5?-*", "there are no poll sets"),
        ("case-6?-*", "there are no wait sets, and no trywait"),
    ];
    area(env, "signal", &lacking)
}

fn close(env: &Env) -> Outcome {
    let lacking = [
        (
            "case-73-killed-while-works-fire",
            "there is no deferred work",
        ),
        (
            "large-messages-matched",
            "messages are copied by those who post",
        ),
    ];
    area(env, "close", &lacking)
}
