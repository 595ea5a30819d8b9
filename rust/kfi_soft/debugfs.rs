// SPDX-License-Identifier: GPL-2.0

//! All counters, and what debugfs shows of them: `kfi_soft/counters` and `kfi_soft/pending`; and
//! the peers: `kfi_soft/peers`.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    counter::Counter,
    faults::files::FaultFiles,
    kfi::{
        fid::Fid,
        linux::debugfs::{
            Dir,
            File, //
        },
        provider::CounterOps, //
    },
    node,
    open_objects::DomainsFile,
    trigger::{
        pending::PendingKind,
        threshold::Key, //
    },
    COUNTERS, //
};

/// The open counters, by number.
pub(crate) type OpenCounters = RBTree<u64, Arc<Fid<Counter>>>;

/// How much of what is pending on a counter is shown.
const SHOWN: usize = 1000;

/// Returns a number for a counter.
pub(crate) fn next_id() -> u64 {
    static NEXT: Atomic<u64> = Atomic::new(1);

    // Relaxed: they only have to be different.
    NEXT.fetch_add(1, ordering::Relaxed)
}

/// Lists a counter that is being opened.
pub(crate) fn insert(counter: Arc<Fid<Counter>>) -> Result {
    let node = RBTreeNode::new(counter.id(), counter, GFP_KERNEL)?;
    // Numbers are not given twice, so that nothing is replaced.
    let replaced = COUNTERS.lock().get_or_insert_with(RBTree::new).insert(node);
    drop(replaced);
    Ok(())
}

/// Removes a counter that is being closed, if it is listed; may sleep.
pub(crate) fn remove(id: u64) {
    let removed = COUNTERS
        .lock()
        .as_mut()
        .and_then(|counters| counters.remove_node(&id));
    drop(removed);
}

/// Returns the counter with the lowest number that is at least `id`.
fn at_least(id: u64) -> Option<Arc<Fid<Counter>>> {
    let counters = COUNTERS.lock();
    let cursor = counters.as_ref()?.cursor_lower_bound(&id)?;
    Some(cursor.current().1.clone())
}

/// Calls `show` with all counters.
fn for_each(mut show: impl FnMut(&Fid<Counter>) -> fmt::Result) -> fmt::Result {
    let mut id = 0;
    while let Some(counter) = at_least(id) {
        show(&counter)?;
        id = counter.id().wrapping_add(1);
    }
    Ok(())
}

/// The files; dropped, they are gone and nobody reads them any more.
pub(crate) struct ProviderFiles {
    /// The counters.
    _counters: Pin<KBox<File<()>>>,
    /// The operations that are pending on them.
    _pending: Pin<KBox<File<()>>>,
    /// The peers, of which there are none before there is a network.
    _peers: Pin<KBox<File<()>>>,
    /// The domains.
    _domains: DomainsFile,
    /// The faults that can be injected.
    _faults: FaultFiles,
}

impl ProviderFiles {
    /// Creates the files. Where there is no debugfs nothing is shown.
    pub(crate) fn new() -> Result<Self> {
        let dir = Dir::new(c"kfi_soft")?;
        Ok(Self {
            _counters: KBox::pin_init(
                dir.read_callback_file(c"counters", (), show_counters),
                GFP_KERNEL,
            )?,
            _pending: KBox::pin_init(
                dir.read_callback_file(c"pending", (), show_pending),
                GFP_KERNEL,
            )?,
            _peers: KBox::pin_init(dir.read_callback_file(c"peers", (), show_peers), GFP_KERNEL)?,
            _domains: DomainsFile::new(&dir)?,
            _faults: FaultFiles::new(&dir)?,
        })
    }
}

/// Shows one counter a line, in the order of opening.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as debugfs calls it")]
fn show_counters(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("counter success error\n")?;
    for_each(|counter| {
        f.write_fmt(fmt!(
            "{} {} {}\n",
            counter.id(),
            counter.read(),
            counter.readerr(),
        ))
    })
}

/// Shows one direction of one peer a line.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as debugfs calls it")]
fn show_peers(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match node::current() {
        Ok(node) => node.show_peers(f),
        Err(_) => Ok(()),
    }
}

/// Shows one operation a line that waits for a counter.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as debugfs calls it")]
fn show_pending(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("counter kind threshold sequence operation age_ms\n")?;
    for_each(|counter| {
        show_kind(f, counter, PendingKind::Triggered, "classic")?;
        show_kind(f, counter, PendingKind::Deferred, "deferred")
    })
}

/// Shows what waits for a counter.
fn show_kind(
    f: &mut fmt::Formatter<'_>,
    counter: &Fid<Counter>,
    kind: PendingKind,
    name: &str,
) -> fmt::Result {
    let mut last: Option<Key> = None;
    for _ in 0..SHOWN {
        let next = counter.peek(kind, last, |pending| (pending.name(), pending.age_ms()));
        let Some((key, (operation, age))) = next else {
            return Ok(());
        };
        f.write_fmt(fmt!(
            "{} {} {} {} {} {}\n",
            counter.id(),
            name,
            key.threshold,
            key.sequence,
            operation,
            age,
        ))?;
        last = Some(key);
    }
    if counter.peek(kind, last, |_| ()).is_some() {
        f.write_fmt(fmt!("{} {} ...\n", counter.id(), name))?;
    }
    Ok(())
}
