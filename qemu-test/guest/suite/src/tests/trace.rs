// SPDX-License-Identifier: GPL-2.0

//! Tracepoints and files of debugfs.

use std::fs;
use std::path::{Path, PathBuf};

use kfi::{
    bits, AvAttr, AvType, Caps, CntrAttr, EqAttr, Form, Kind, MrAttr, Operation, WaitObj, Work,
};
use kfi_host::thread;

use crate::check::{Outcome, Stop};
use crate::ends::{contexts, needs, Area, Net, Pair};
use crate::env::Env;
use crate::rig::{unshare, until, Rig};
use crate::{check, check_eq, tests};

tests! {
    "trace";
    "events-of-the-core" ["kfabric.h"] events_of_the_core;
    "events-of-triggers" ["R-TRIG-13"] events_of_triggers;
    "flushed" ["R-CTL-3"] flushed;
    "spent-by-drainers" ["R-DWQ-31"] spent_by_drainers;
    "spent-by-those-who-complete" ["R-DWQ-31"] spent_by_completers;
    "allocations-may-wait" ["kfi_shim.h"] allocations_may_wait;
    "debugfs-of-the-core" ["kfabric.h"] debugfs_of_the_core;
    "debugfs-of-the-provider" ["kfabric.h"] debugfs_of_the_provider;
}

/// Events that are traced as long as this is there, in an instance of their own.
pub(super) struct Tracing {
    folder: PathBuf,
}

impl Tracing {
    pub(super) fn new(events: &str) -> Result<Self, Stop> {
        let instances = Path::new("/sys/kernel/tracing/instances");
        if !instances.is_dir() {
            return Err(Stop::Skip("there is no tracefs".to_owned()));
        }
        let folder = instances.join(format!("kfi-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let tracing = Self { folder };
        let group = tracing.folder.join("events").join(events);
        if !group.is_dir() {
            return Err(Stop::Skip(format!("there are no events of {events}")));
        }
        fs::write(group.join("enable"), "1")?;
        Ok(tracing)
    }

    /// The lines that have come since [`Self::lines`].
    pub(super) fn so_far(&self) -> Result<Vec<String>, Stop> {
        let text = fs::read_to_string(self.folder.join("trace"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines.map(str::to_owned).collect())
    }

    /// The lines that have come since the last time.
    fn lines(&self) -> Result<Vec<String>, Stop> {
        let lines = self.so_far()?;
        fs::write(self.folder.join("trace"), "")?;
        Ok(lines)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // If that fails an empty buffer stays.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// There is a line with these words.
#[track_caller]
fn has(lines: &[String], words: &[&str]) -> Outcome {
    if lines
        .iter()
        .any(|line| words.iter().all(|word| line.contains(word)))
    {
        return Ok(());
    }
    Err(Stop::fail(format!("no line with {words:?} in {lines:#?}")))
}

fn events_of_the_core(env: &Env) -> Outcome {
    let tracing = Tracing::new("kfabric")?;
    let rig = Rig::new(env)?;
    let name = rig.info.entries()[0].fabric_attr.prov_name.clone();
    let provider = format!("provider={name}");
    let lines = tracing.lines()?;
    let count = format!("result={}", rig.info.entries().len());
    has(&lines, &["kfi_provider_getinfo:", &provider, &count])?;
    has(&lines, &["kfi_fabric_open:", &provider, "result=0"])?;
    check!(
        crate::rig::expect_busy(rig.session.close_handle(rig.fabric.handle())).is_ok(),
        "the fabric lets itself be closed"
    );
    rig.close()?;
    let lines = tracing.lines()?;
    has(&lines, &["kfi_fabric_close:", &provider, "result=0"])?;
    let refused = format!("result=-{}", kfi::KfiErrno::EBUSY.number());
    has(&lines, &["kfi_fabric_close:", &provider, &refused])?;
    // Something that is not there.
    let session = kfi::Session::open()?;
    let query = kfi::Query::new().provider("nobody");
    crate::rig::expect_fabric(session.getinfo(&query), kfi::KfiErrno::ENODATA)?;
    tracing.lines()?;
    Ok(())
}

fn events_of_triggers(env: &Env) -> Outcome {
    let tracing = Tracing::new("kfi_soft")?;
    let pair = Pair::new(env, Caps::MSG | Caps::TRIGGER)?;
    if pair.entry().fabric_attr.prov_name == "kcxi" {
        return Err(Stop::Skip("another name".to_owned()));
    }
    let memory = Area::plain(&pair.session, 64)?;
    let counter = pair.rig.counter()?;
    let send = |threshold| {
        let send = pair.a.operation(Kind::SEND, Form::MSG);
        send.flags(bits::TRIGGER)
            .segment(memory.part(0, 8))
            .trigger(&counter, threshold)
            .context(threshold)
    };
    for threshold in [5, 3] {
        pair.b.recv(memory.part(8, 8), 1)?;
        pair.a.post(&send(threshold))?;
    }
    let lines = tracing.lines()?;
    for threshold in [3, 5] {
        let threshold = format!("threshold={threshold} ");
        has(&lines, &["kfi_soft_submit:", &threshold, "kind=classic"])?;
    }
    pair.a.ep.cancel(5)?;
    crate::ends::expect_error(&pair.a.tx, 5, kfi::KfiErrno::ECANCELED)?;
    counter.add(3)?;
    crate::ends::expect(&pair.a.tx, 3, crate::ends::done::SEND_, 8)?;
    let lines = tracing.lines()?;
    has(
        &lines,
        &["kfi_soft_cancel:", "threshold=5 ", "kind=classic"],
    )?;
    has(&lines, &["kfi_soft_fire:", "threshold=3 "])?;
    let fired = lines.iter().filter(|line| line.contains("kfi_soft_fire:"));
    check_eq!(fired.count(), 1, "what has fired");
    drop((pair, counter, memory));
    Ok(())
}

/// A flush tells how many operations it has taken out.
fn flushed(env: &Env) -> Outcome {
    let tracing = Tracing::new("kfi_soft/kfi_soft_flush")?;
    let rig = Rig::new(env)?;
    if rig.info.entries()[0].fabric_attr.prov_name == "kcxi" {
        return Err(Stop::Skip("another name".to_owned()));
    }
    needs(&rig.info.entries()[0], Caps::TRIGGER)?;
    let (triggers, target) = ([rig.counter()?, rig.counter()?], rig.counter()?);
    for count in [0, 1, 7] {
        let mut ids = Vec::new();
        for trigger in &triggers {
            for _ in 0..count {
                ids.push(rig.domain.queue_work(&Work::add(&target, 1, trigger, 5))?);
            }
        }
        rig.domain.flush_work(Some(&triggers[0]))?;
        rig.domain.flush_work(None)?;
        let lines = tracing.lines()?;
        let told = lines.iter().map(|line| told(line, "entries"));
        check_eq!(told.collect::<Result<Vec<_>, _>>()?, [count, count]);
        for id in ids {
            rig.session.release_work(id)?;
        }
    }
    check_eq!(target.read()?, 0);
    drop((triggers, target));
    rig.close()
}

/// Returns a number that a line tells by a name.
fn told(line: &str, name: &str) -> Result<u64, Stop> {
    let value = line
        .split(' ')
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .ok_or_else(|| Stop::fail(format!("no {name} in {line:?}")))?;
    Ok(value.parse()?)
}

/// Drainers tell how many operations they have run, those that left the rest to the work queue, and
/// the work queue: each of them once.
fn spent_by_drainers(env: &Env) -> Outcome {
    let tracing = Tracing::new("kfi_soft/kfi_soft_drain")?;
    let rig = Rig::new(env)?;
    if rig.info.entries()[0].fabric_attr.prov_name == "kcxi" {
        return Err(Stop::Skip("another name".to_owned()));
    }
    needs(&rig.info.entries()[0], Caps::TRIGGER)?;
    let (trigger, target) = (rig.counter()?, rig.counter()?);
    // One drainer does the first ones; the last ones are more than one budget is for.
    for (round, count) in [(1, 1), (2, 7), (3, 5_000)] {
        let add = Work::add(&target, 1, &trigger, round);
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(rig.domain.queue_work(&add)?);
        }
        tracing.lines()?;
        let before = target.read()?;
        trigger.add(1)?;
        target.wait_ms(before + count, 20_000)?;
        // The last drainer tells when it has ended.
        let has_ended = |line: &String| line.contains("rest=none");
        until(|| Ok(tracing.so_far()?.iter().any(has_ended)))?;
        let lines = tracing.lines()?;
        let spent = lines.iter().map(|line| told(line, "spent"));
        let spent = spent.collect::<Result<Vec<_>, _>>()?;
        check_eq!(spent.iter().sum::<u64>(), count, "{lines:#?}");
        let ended = lines.iter().filter(|line| has_ended(line));
        check_eq!(ended.count(), 1, "{lines:#?}");
        let left = lines.iter().any(|line| line.contains("rest=queued"));
        check_eq!(left, count > 1_024, "{lines:#?}");
        rig.domain.flush_work(None)?;
        for id in ids {
            rig.session.release_work(id)?;
        }
    }
    drop((trigger, target));
    rig.close()
}

/// A thread that completes operations, of which there may be many, runs little of what each makes due.
fn spent_by_completers(env: &Env) -> Outcome {
    let tracing = Tracing::new("kfi_soft/kfi_soft_drain")?;
    let net = Net::pair(env)?;
    if net.rig.info.entries()[0].fabric_attr.prov_name == "kcxi" {
        return Err(Stop::Skip("another name".to_owned()));
    }
    needs(&net.rig.info.entries()[0], Caps::TRIGGER)?;
    let target = net.counter()?;
    let domain = &net.rig.domain;
    let mut ids = Vec::new();
    for (round, count) in [(1, 3), (2, 500)] {
        let add = Work::add(&target, 1, &net.peers[1].received, round);
        for _ in 0..count {
            ids.push(domain.queue_work(&add)?);
        }
        tracing.lines()?;
        let before = target.read()?;
        net.peers[1].ep.post(&net.receive(1, 0, 64))?;
        net.peers[0].ep.post(&net.send(0, 1, 0, 64))?;
        target.wait_ms(before + count, 20_000)?;
        let has_ended = |line: &String| line.contains("rest=none");
        until(|| Ok(tracing.so_far()?.iter().any(has_ended)))?;
        let lines = tracing.lines()?;
        let mut sum = 0;
        for line in &lines {
            let spent = told(line, "spent")?;
            check!(has_ended(line) || spent <= 64, "{lines:#?}");
            sum += spent;
        }
        check_eq!(sum, count, "{lines:#?}");
        let left = lines.iter().any(|line| line.contains("rest=queued"));
        check_eq!(left, count > 64, "{lines:#?}");
    }
    contexts(&net.peers[0].tx, 2)?;
    contexts(&net.peers[1].rx, 2)?;
    domain.flush_work(None)?;
    for id in ids {
        net.rig.session.release_work(id)?;
    }
    unshare(target)?.close().map_err(|(_, error)| error)?;
    net.close()
}

/// Memory for what a request brings is there unless the machine has none: it may be waited for.
fn allocations_may_wait(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::RMA)?;
    let (rig, session) = (&pair.rig, &pair.session);
    let name = pair.b.ep.name()?;
    let reported = rig.domain.address_vector(&AvAttr {
        av_type: AvType::TABLE,
        flags: bits::EVENT,
        ..AvAttr::default()
    })?;
    let eq = rig.fabric.event_queue(&EqAttr::new())?;
    reported.bind(eq.handle(), 0)?;
    let counter = rig
        .domain
        .counter(&CntrAttr::new().wait_obj(WaitObj::QUEUE))?;
    let memory = Area::plain(session, 64)?;
    let region = rig
        .domain
        .register(&[memory.all()], &MrAttr::new(bits::WRITE, 7))?;

    let tracing = Tracing::new("kmem/kmalloc")?;
    let of_this_thread = format!("-{} ", thread::id().as_raw_nonzero());
    let expect = |what: &str, run: &dyn Fn() -> Outcome| -> Outcome {
        tracing.lines()?;
        run()?;
        let lines = tracing.lines()?;
        let flags = lines
            .iter()
            .filter(|line| line.contains(&of_this_thread))
            .filter_map(|line| line.split("gfp_flags=").nth(1));
        let mut count = 0;
        for flags in flags {
            // The names of the kernel for the usual ones.
            check!(flags.starts_with("GFP_"), "{what}: {flags} in {lines:#?}");
            count += 1;
        }
        check!(count != 0, "{what}: nothing was allocated in {lines:#?}");
        Ok(())
    };
    expect("addresses", &|| {
        let twice = [name.as_slice(), &name].concat();
        pair.a.av.insert_all(&twice, 2, bits::SYNC_ERR, 0)?;
        Ok(())
    })?;
    expect("addresses that are reported", &|| {
        reported.insert_all(&name, 1, 0, 0)?;
        Ok(())
    })?;
    expect("segments", &|| {
        let send = Operation::new(Kind::SEND, Form::MSG).segment(memory.part(0, 8).desc(&region));
        pair.a.ep.post(&send.to(pair.a.peer).context(1))?;
        Ok(())
    })?;
    let descriptor = counter.wait_fd()?;
    expect("descriptors", &|| {
        Ok(rig.fabric.trywait(&[counter.handle()])?)
    })?;
    let set = rig.domain.poll_set()?;
    expect("members", &|| Ok(set.add(&counter)?))?;
    set.del(&counter)?;
    drop((descriptor, set, region, memory, counter, reported, eq));
    pair.close()
}

/// The lines of a file of debugfs, but for the headings.
fn debugfs(name: &str) -> Result<Vec<String>, Stop> {
    let path = Path::new("/sys/kernel/debug").join(name);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Stop::Skip(format!("there is no {}", path.display())));
        }
        text => text?,
    };
    check!(text.ends_with('\n'), "{name} ends in the middle of a line");
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

fn debugfs_of_the_core(env: &Env) -> Outcome {
    let session = kfi::Session::open()?;
    let info = session.getinfo(&crate::rig::query(env))?;
    let name = info.entries()[0].fabric_attr.prov_name.clone();
    let fabrics_of = |lines: &[String]| -> Result<u64, Stop> {
        let line = lines
            .iter()
            .find(|line| line.split(' ').next() == Some(&name))
            .ok_or_else(|| Stop::fail(format!("no {name} in {lines:?}")))?;
        let words: Vec<_> = line.split(' ').collect();
        check_eq!(words.len(), 5, "{line:?}: words");
        check_eq!(words[3], "active");
        Ok(words[4].parse()?)
    };
    let before = fabrics_of(&debugfs("kfabric/providers")?)?;
    let lines_before = debugfs("kfabric/fabrics")?.len();
    let fabrics = [info.fabric(0)?, info.fabric(0)?];
    check_eq!(fabrics_of(&debugfs("kfabric/providers")?)?, before + 2);
    let lines = debugfs("kfabric/fabrics")?;
    check_eq!(lines.len(), lines_before + 2, "lines of fabrics");
    has(&lines, &[&name, &info.entries()[0].fabric_attr.name])?;
    drop(fabrics);
    check_eq!(fabrics_of(&debugfs("kfabric/providers")?)?, before);
    check_eq!(debugfs("kfabric/fabrics")?.len(), lines_before);
    Ok(())
}

fn debugfs_of_the_provider(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    needs(&rig.info.entries()[0], Caps::TRIGGER)?;
    let before = debugfs("kfi_soft/counters")?.len();
    debugfs("kfi_soft/pending")?;
    let domains = debugfs("kfi_soft/domains")?.len();
    let counters = [rig.counter()?, rig.counter()?];
    counters[0].set(1234)?;
    counters[1].set_err(98_765)?;
    let lines = debugfs("kfi_soft/counters")?;
    check_eq!(lines.len(), before + 2, "lines of counters");
    has(&lines, &["1234"])?;
    has(&lines, &["98765"])?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    check_eq!(debugfs("kfi_soft/domains")?.len(), domains + 1);
    drop((counters, second));
    check_eq!(debugfs("kfi_soft/counters")?.len(), before);
    check_eq!(debugfs("kfi_soft/domains")?.len(), domains);
    rig.close()
}
