// SPDX-License-Identifier: GPL-2.0

//! The files in debugfs about faults: `kfi_soft/nicN/`, a file for each fault, and `faults` to see
//! them all.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    str::CString,
    sync::Arc,
    uaccess::UserSliceReader, //
};

use crate::{
    faults::{
        injector::Fault,
        knob::Knob, //
    },
    kfi::linux::debugfs::{
        Dir,
        File, //
    },
    limits,
    nic::Nic,
    node::{
        self,
        Node, //
    },
    FAULT_FILES, //
};

/// The longest text that is read.
const MAX_TEXT: usize = 128;

/// The subject of a file.
struct About<T> {
    node: Arc<Node>,
    nic: usize,
    what: T,
}

/// The files about a NIC; dropped, they are gone and nobody uses them any more.
struct NicFiles {
    nic: usize,
    /// A file for each knob.
    _knobs: KVec<Pin<KBox<File<About<Fault>>>>>,
    /// All of them.
    _faults: Pin<KBox<File<About<()>>>>,
}

impl NicFiles {
    /// Creates the files. Where there is no debugfs there are no faults.
    fn new(parent: &Dir, node: &Arc<Node>, nic: usize) -> Result<Self> {
        let dir = parent.subdir(&CString::try_from_fmt(fmt!("nic{}", nic))?)?;
        let mut knobs = KVec::new();
        for what in Fault::ALL {
            let node = node.clone();
            let about = About { node, nic, what };
            let file = dir.read_write_callback_file(what.name(), about, show_knob, write_knob);
            knobs.push(KBox::pin_init(file, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        let about = About {
            node: node.clone(),
            nic,
            what: (),
        };
        let file = dir.read_callback_file(c"faults", about, show_all);
        Ok(Self {
            nic,
            _knobs: knobs,
            _faults: KBox::pin_init(file, GFP_KERNEL)?,
        })
    }
}

/// The files about all NICs, and where they are.
pub(crate) struct FaultFileList {
    parent: Dir,
    /// With room for all that there may be.
    nics: KVec<NicFiles>,
}

/// Says that there are files about the NICs; dropped, they are gone and nobody uses them any more.
pub(crate) struct FaultFiles(());

impl FaultFiles {
    /// Creates those of the NICs that there are.
    pub(crate) fn new(parent: &Dir) -> Result<Self> {
        let list = FaultFileList {
            parent: parent.clone(),
            nics: KVec::with_capacity(usize::try_from(limits::MAX_NICS)?, GFP_KERNEL)?,
        };
        *FAULT_FILES.lock() = Some(list);
        // A failure below undoes what was done.
        let this = Self(());
        for nic in Nic::all() {
            add(nic)?;
        }
        Ok(this)
    }
}

impl Drop for FaultFiles {
    fn drop(&mut self) {
        let list = FAULT_FILES.lock().take();
        // Outside of the lock.
        drop(list);
    }
}

/// Creates the files about a NIC. By the thread that may change the NICs; may sleep.
pub(crate) fn add(nic: Nic) -> Result {
    let parent = {
        let list = FAULT_FILES.lock();
        list.as_ref().ok_or(ENODEV)?.parent.clone()
    };
    let files = NicFiles::new(&parent, &node::current()?, nic.index())?;
    let mut list = FAULT_FILES.lock();
    // There is room.
    let nics = &mut list.as_mut().ok_or(ENODEV)?.nics;
    Ok(nics.push(files, GFP_KERNEL)?)
}

/// Removes the files about a NIC, which nobody uses any more then. May sleep.
pub(crate) fn remove(nic: Nic) {
    let removed = FAULT_FILES.lock().as_mut().and_then(|list| {
        let at = list.nics.iter().position(|files| files.nic == nic.index());
        list.nics.remove(at?).ok()
    });
    // Outside of the lock.
    drop(removed);
}

/// Shows a knob.
fn show_knob(about: &About<Fault>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    about.node.faults.show(about.nic, about.what, f)
}

/// Turns a knob. Its counts begin anew.
fn write_knob(about: &About<Fault>, reader: &mut UserSliceReader) -> Result {
    let mut buffer = [0; MAX_TEXT];
    let text = buffer.get_mut(..reader.len()).ok_or(EINVAL)?;
    reader.read_slice(text)?;
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    let knob = Knob::parse(about.what, text)?;
    about.node.faults.turn(about.nic, about.what, knob);
    Ok(())
}

/// Shows one knob a line.
fn show_all(about: &About<()>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for fault in Fault::ALL {
        f.write_fmt(fmt!("{} ", fault.name()))?;
        about.node.faults.show(about.nic, fault, f)?;
    }
    Ok(())
}
