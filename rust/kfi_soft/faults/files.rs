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
    nic::Nic,
    node::{
        self,
        Node, //
    }, //
};

/// The longest text that is read.
const MAX_TEXT: usize = 128;

/// The subject of a file.
struct About<T> {
    node: Arc<Node>,
    nic: usize,
    what: T,
}

/// The files; dropped, they are gone and nobody uses them any more.
pub(crate) struct FaultFiles {
    /// A file for each knob.
    _knobs: KVec<Pin<KBox<File<About<Fault>>>>>,
    /// A file for each NIC.
    _nics: KVec<Pin<KBox<File<About<()>>>>>,
}

impl FaultFiles {
    /// Creates the files. Where there is no debugfs there are no faults.
    pub(crate) fn new(parent: &Dir) -> Result<Self> {
        let mut knobs = KVec::new();
        let mut nics = KVec::new();
        for nic in Nic::all() {
            let dir = parent.subdir(&CString::try_from_fmt(fmt!("nic{}", nic.index()))?)?;
            let nic = nic.index();
            for what in Fault::ALL {
                let node = node::current()?;
                let about = About { node, nic, what };
                let file = dir.read_write_callback_file(what.name(), about, show_knob, write_knob);
                knobs.push(KBox::pin_init(file, GFP_KERNEL)?, GFP_KERNEL)?;
            }
            let about = About {
                node: node::current()?,
                nic,
                what: (),
            };
            let file = dir.read_callback_file(c"faults", about, show_all);
            nics.push(KBox::pin_init(file, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self {
            _knobs: knobs,
            _nics: nics,
        })
    }
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
