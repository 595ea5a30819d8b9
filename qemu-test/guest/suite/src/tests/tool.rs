// SPDX-License-Identifier: GPL-2.0

//! The `kfi` command: what it does when it is run, and what it tells programs; and the
//! example in C.

use std::process::{Command, Output};

use kfi::{bits, BufferKind, EpInfo, Form, KfiErrno, Kind, Operation, Session, Work};
use serde_json::{json, Value};

use crate::check::{Outcome, Stop};
use crate::ends::{End, Setup};
use crate::env::Env;
use crate::rig::{query, Rig};
use crate::{check, check_eq, tests};

tests! {
    "tool" parallel;
    "version" ["kfi_shim.h"] version;
    "info" ["kfabric.h"] info;
    "cntr" ["R-CNTR-3"] cntr;
    "wait" ["R-WAIT-1"] wait;
    "poll" ["R-POLL-1"] poll;
    "trigger" ["R-TRIG-1"] trigger;
    "trigger-deferred" ["R-DWQ-1"] trigger_deferred;
    "dwq-barrier" ["R-DWQ-1"] dwq_barrier;
    "dwq-bcast" ["R-DWQ-1"] dwq_bcast;
    "dwq-allreduce" ["R-DWQ-1"] dwq_allreduce;
    "dwq-ahead" ["R-DWQ-1"] dwq_ahead;
    alone "stat" ["R-DWQ-1"] stat;
    alone "stat-of-many" ["R-DWQ-1 R-TRIG-1"] stat_of_many;
    "output" ["kfi_shim.h"] output;
    "mistakes" ["kfi_shim.h"] mistakes;
    "example-in-c" ["R-DWQ-1 kfi_shim.h"] example_in_c;
}

/// Runs the command.
fn run(arguments: &[&str]) -> Result<Output, Stop> {
    run_program("kfi", arguments)
}

/// Runs a program that lies beside the suite.
fn run_program(name: &str, arguments: &[&str]) -> Result<Output, Stop> {
    let program = std::env::current_exe()?.with_file_name(name);
    if !program.exists() {
        return Err(Stop::Skip(format!("no {}", program.display())));
    }
    Ok(Command::new(program).args(arguments).output()?)
}

/// Its output, if it has succeeded.
#[track_caller]
pub(super) fn text(arguments: &[&str]) -> Result<String, Stop> {
    let output = run(arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !errors.is_empty() {
        let command = arguments.join(" ");
        return Err(Stop::fail(format!(
            "{command}: {}, {errors}",
            output.status
        )));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Its answer as JSON, on the provider that is tested.
#[track_caller]
fn answer(env: &Env, arguments: &[&str]) -> Result<Value, Stop> {
    let mut all = arguments.to_vec();
    all.push("--json");
    if let Some(name) = &env.settings.provider {
        all.extend(["--provider", name]);
    }
    Ok(serde_json::from_str(&text(&all)?)?)
}

fn version(_: &Env) -> Outcome {
    let versions: Value = serde_json::from_str(&text(&["version", "--json"])?)?;
    check_eq!(versions["interface"], versions["built_for_interface"]);
    Ok(())
}

fn info(env: &Env) -> Outcome {
    let entries = answer(env, &["info"])?;
    check!(entries.as_array().is_some_and(|all| !all.is_empty()));
    check_eq!(entries[0]["ep_attr"]["type"], "KFI_EP_RDM");
    // And where there is nothing.
    let output = run(&["info", "--json", "--fabric", "none"])?;
    check_eq!(output.status.code(), Some(1));
    check_eq!(serde_json::from_slice::<Value>(&output.stdout)?, json!([]));
    Ok(())
}

/// Results of the operations: the value, or the error, or null.
fn given(steps: &Value) -> Vec<&Value> {
    let steps = steps.as_array().map_or(&[][..], Vec::as_slice);
    steps
        .iter()
        .map(|step| step.get("value").unwrap_or(&step["error"]))
        .collect()
}

fn cntr(env: &Env) -> Outcome {
    let steps = answer(env, &["cntr", "add=5", "read", "wait=5", "wait=6,10"])?;
    check_eq!(
        json!(given(&steps)),
        json!([null, "5", null, "-KFI_ETIMEDOUT"])
    );
    // Woken by another thread.
    let steps = answer(env, &["cntr", "add=3@50", "wait=3"])?;
    check_eq!(json!(given(&steps)), json!([null, null]));
    Ok(())
}

fn wait(env: &Env) -> Outcome {
    let steps = answer(
        env,
        &["wait", "wait=10", "add=b", "wait", "read=b", "wait=10"],
    )?;
    check_eq!(
        json!(given(&steps)),
        json!(["-KFI_ETIMEDOUT", null, null, "1", "-KFI_ETIMEDOUT"])
    );
    let steps = answer(env, &["wait", "adderr=a@50", "wait", "read=a"])?;
    // The result of the other thread may come last.
    check!(given(&steps).contains(&&json!("0, errors 1")), "{steps}");
    Ok(())
}

fn poll(env: &Env) -> Outcome {
    let steps = answer(
        env,
        &[
            "poll", "poll", "write=q", "poll", "poll=0", "del=q", "poll", "insert=q", "poll",
            "read=q",
        ],
    )?;
    check_eq!(
        json!(given(&steps)),
        json!([
            "nobody",
            null,
            "q",
            "nobody",
            null,
            "nobody",
            null,
            "q",
            "1 taken out"
        ])
    );
    Ok(())
}

/// In which order sends have started, a list for each addition.
fn started(report: &Value) -> Value {
    let steps = report["steps"].as_array().map_or(&[][..], Vec::as_slice);
    steps
        .iter()
        .map(|step| {
            let sent = step["started"].as_array().map_or(&[][..], Vec::as_slice);
            sent.iter().map(|sent| sent["number"].clone()).collect()
        })
        .collect::<Vec<Value>>()
        .into()
}

fn trigger_as(env: &Env, more: &[&str]) -> Outcome {
    let with = |arguments: &[&str]| answer(env, &[&["trigger"], arguments, more].concat());
    let report = with(&[])?;
    check_eq!(report["verified"], true);
    check_eq!(started(&report), json!([[], [2, 4], [], [1], [], [3]]));

    let report = with(&["10", "20", "10", "30", "0", "--add", "15,10"])?;
    check_eq!(report["verified"], true);
    check_eq!(report["pending"], 1);
    check_eq!(started(&report), json!([[5], [1, 3], [2]]));
    Ok(())
}

fn trigger(env: &Env) -> Outcome {
    trigger_as(env, &[])
}

fn trigger_deferred(env: &Env) -> Outcome {
    trigger_as(env, &["--deferred"])
}

/// Runs a collective in several sizes.
fn collective(env: &Env, name: &str, works: fn(u64) -> u64, more: &[&str]) -> Outcome {
    for endpoints in [1, 2, 3, 8, 13] {
        let rounds = env.scaled(10, 3).to_string();
        let size = endpoints.to_string();
        let arguments = ["dwq", name, "--endpoints", &size, "--rounds", &rounds];
        let report = answer(env, &[&arguments, more].concat())?;
        check_eq!(report["verified"], true);
        check_eq!(report["endpoints"], endpoints);
        check_eq!(report["rounds"].to_string(), rounds);
        check_eq!(report["works_per_round"], works(endpoints));
        let graph = report["graph"].as_array().map_or(0, Vec::len);
        check_eq!(graph as u64, works(endpoints));
        let times = ["min", "median", "max"].map(|name| report["round_us"][name].as_f64());
        check!(times.is_sorted() && times[0] > Some(0.0), "{times:?}");
    }
    Ok(())
}

fn dwq_barrier(env: &Env) -> Outcome {
    collective(env, "barrier", |members| 2 * members - 1, &[])
}

fn dwq_bcast(env: &Env) -> Outcome {
    collective(env, "bcast", |members| members - 1, &["--size", "1"])?;
    // More than is copied at once.
    collective(env, "bcast", |members| members - 1, &["--size", "100000"])
}

fn dwq_allreduce(env: &Env) -> Outcome {
    collective(env, "allreduce", |members| 4 * members - 1, &[])?;
    let count = ["--count", "256"];
    collective(env, "allreduce", |members| 4 * members - 1, &count)
}

/// Rounds are queued while others run.
fn dwq_ahead(env: &Env) -> Outcome {
    let rounds = env.scaled(50, 10);
    let text = rounds.to_string();
    for (ahead, is) in [("1", 1), ("3", 3), ("100000", rounds)] {
        let arguments = ["dwq", "allreduce", "--rounds", &text, "--ahead", ahead];
        let report = answer(env, &arguments)?;
        check_eq!(report["verified"], true);
        check_eq!(report["ahead"], is);
    }
    Ok(())
}

fn stat(env: &Env) -> Outcome {
    let output = run(&["stat", "--json", "--debugfs", "/nowhere"])?;
    check_eq!(output.status.code(), Some(1));
    if !std::path::Path::new("/sys/kernel/debug/kfi_soft").exists() {
        return Err(Stop::Skip("no debugfs".to_owned()));
    }
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    trigger.add(7)?;
    trigger.add_err(1)?;
    for threshold in [100, 200] {
        rig.domain
            .queue_work(&Work::add(&target, 1, &trigger, threshold))?;
    }
    let all: Value = serde_json::from_str(&text(&["stat", "--json"])?)?;
    let rows = |name: &str| all[name].as_array().cloned().unwrap_or_default();
    check!(!rows("providers").is_empty());
    check!(!rows("fabrics").is_empty());
    check_eq!(rows("domains").len(), 1);
    let values: Vec<_> = rows("counters")
        .iter()
        .map(|row| (row["success"].clone(), row["error"].clone()))
        .collect();
    check_eq!(values, [(json!(7), json!(1)), (json!(0), json!(0))]);
    let pending: Vec<_> = rows("pending")
        .iter()
        .map(|row| (row["kind"].clone(), row["threshold"].clone()))
        .collect();
    let deferred = |threshold: u64| (json!("deferred"), json!(threshold));
    check_eq!(pending, [deferred(100), deferred(200)]);

    // The same for people.
    let plain = text(&["stat"])?;
    for word in ["providers:", "counters:", "pending:", "deferred"] {
        check!(plain.contains(word), "{word}");
    }
    rig.domain.flush_work(None)?;
    let all: Value = serde_json::from_str(&text(&["stat", "--json"])?)?;
    check_eq!(all["pending"], json!([]));
    Ok(())
}

/// Of what waits for a counter the first thousand is shown, of each kind, and that there is more; of everything else
/// all is.
fn stat_of_many(env: &Env) -> Outcome {
    const SHOWN: u64 = 1000;
    const WAITING: u64 = SHOWN + 5;
    const COUNTERS: u64 = 300;
    if !std::path::Path::new("/sys/kernel/debug/kfi_soft").exists() {
        return Err(Stop::Skip("no debugfs".to_owned()));
    }
    let rig = Rig::new(env)?;
    let other_fabric = rig.info.fabric(0)?;
    let others = [
        rig.fabric.domain(&rig.info, 0)?,
        other_fabric.domain(&rig.info, 0)?,
    ];
    let mut counters = Vec::new();
    for number in 0..COUNTERS {
        let counter = rig.counter()?;
        counter.add(number)?;
        counters.push(counter);
    }
    let (trigger, target) = (&counters[0], &counters[1]);
    let mut entry = rig.info.entries()[0].clone();
    entry.rx_attr.size = 2 * WAITING;
    let mut end = End::open(&rig.domain, EpInfo::Value(&entry), &Setup::default())?;
    end.enable()?;
    let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
    for threshold in 1..=WAITING {
        rig.domain
            .queue_work(&Work::add(target, 1, trigger, threshold))?;
        let receive = Operation::new(Kind::RECV, Form::MSG)
            .segment(buffer.segment(0..64))
            .flags(bits::TRIGGER);
        end.post(&receive.trigger(trigger, threshold))?;
    }

    let all: Value = serde_json::from_str(&text(&["stat", "--json"])?)?;
    let rows = |name: &str| all[name].as_array().cloned().unwrap_or_default();
    check_eq!(rows("fabrics").len(), 2);
    let domains: Vec<_> = rows("domains")
        .iter()
        .map(|row| row["fabric"].clone())
        .collect();
    check_eq!(domains, [json!(0), json!(0), json!(1)]);
    let values: Vec<_> = rows("counters")
        .iter()
        .map(|row| row["success"].clone())
        .collect();
    let should: Vec<_> = (0..COUNTERS).map(|number| json!(number)).collect();
    check_eq!(values, should);
    let rows = rows("pending");
    check_eq!(rows.len() as u64, 2 * (SHOWN + 1));
    for (rows, kind) in rows.chunks(SHOWN as usize + 1).zip(["classic", "deferred"]) {
        for (row, threshold) in rows.iter().zip(1..=SHOWN) {
            check_eq!(
                (&row["kind"], &row["threshold"]),
                (&json!(kind), &json!(threshold))
            );
        }
        let last = &rows[SHOWN as usize];
        check_eq!((&last["kind"], &last["more"]), (&json!(kind), &json!(true)));
        check!(last.get("threshold").is_none(), "{last}");
    }
    // The same for people.
    let plain = text(&["stat"])?;
    let more = plain.lines().filter(|line| line.ends_with("..."));
    check_eq!(more.count(), 2);

    rig.domain.flush_work(None)?;
    let all: Value = serde_json::from_str(&text(&["stat", "--json"])?)?;
    check_eq!(
        all["pending"].as_array().map(Vec::len),
        Some(SHOWN as usize + 1)
    );
    drop((end, buffer, counters));
    let all: Value = serde_json::from_str(&text(&["stat", "--json"])?)?;
    check_eq!(
        (&all["pending"], &all["counters"]),
        (&json!([]), &json!([]))
    );
    for domain in others {
        domain.close().map_err(|(_, error)| error)?;
    }
    other_fabric.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// The output for people.
fn output(env: &Env) -> Outcome {
    let with = |arguments: &[&'static str]| {
        let mut all = arguments.to_vec();
        if let Some(name) = &env.settings.provider {
            all.extend(["--provider", name]);
        }
        text(&all)
    };
    let barrier = with(&["dwq", "barrier", "-n", "3", "-r", "2"])?;
    for line in [
        "barrier of 3 endpoints of ",
        "     0  arrived   >= 3k   add 1                 released of 0\n",
        "     2  arrived   >= k    write 8 bytes         arrived of 0\n",
        "2 rounds, all queued before the first; all are checked\n",
    ] {
        check!(barrier.contains(line), "{line:?} is not in {barrier}");
    }
    let trigger = with(&["trigger", "2", "1"])?;
    for line in ["    +1        1  #2 at 1\n", "    +1        2  #1 at 2\n"] {
        check!(trigger.contains(line), "{line:?} is not in {trigger}");
    }
    for command in ["cntr", "wait", "poll", "trigger", "dwq", "stat", "info"] {
        check!(text(&[command, "--help"])?.contains("Usage: kfi "));
    }
    Ok(())
}

fn mistakes(_: &Env) -> Outcome {
    // Refusals by clap have status 2, those by kfabric 1.
    for arguments in [
        &["frobnicate"][..],
        &["cntr"],
        &["cntr", "sub=1"],
        &["wait", "poll"],
        &["poll", "wait"],
        &["trigger", "x"],
        &["dwq"],
        &["dwq", "scatter"],
        &["dwq", "barrier", "-n", "0"],
        &["dwq", "bcast", "--size", "0"],
    ] {
        check_eq!(run(arguments)?.status.code(), Some(2), "{arguments:?}");
    }
    for arguments in [
        &["cntr", "read"][..],
        &["wait", "wait=0"],
        &["poll", "poll"],
        &["trigger"],
        &["dwq", "barrier"],
        &["info"],
    ] {
        let output = run(&[arguments, &["--provider", "nobody"]].concat())?;
        check_eq!(output.status.code(), Some(1), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        check!(
            errors.contains("kfi_getinfo: -KFI_ENODATA") || errors.contains("KFI_ENODATA"),
            "{errors}"
        );
    }
    Ok(())
}

/// The program of `Documentation/user-space.md`.
fn example_in_c(env: &Env) -> Outcome {
    let info = Session::open()?.getinfo(&query(env))?;
    let name = &info.entries()[0].domain_attr.name;
    let output = run_program("kfi_user", env.settings.provider.as_deref().as_slice())?;
    check_eq!(String::from_utf8_lossy(&output.stderr), "");
    check_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{name}: trigger 1, target 0\n{name}: trigger 3, target 5\n")
    );
    check!(output.status.success(), "{}", output.status);

    // It looks at what kfabric answers.
    let output = run_program("kfi_user", &["nobody"])?;
    let error = -KfiErrno::ENODATA.number();
    check_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("kfi_user: KFI_SHIM_GETINFO: kfabric answers {error}\n")
    );
    check_eq!(output.status.code(), Some(1));
    Ok(())
}
