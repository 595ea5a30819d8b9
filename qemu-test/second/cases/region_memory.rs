// SPDX-License-Identifier: GPL-2.0

//! Memory of a region is used under a guard, which close waits for, and written if peers may.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    memory::{
        region::{
            RegionBuffers,
            RegionMemory,
            RegionUse, //
        },
        Cursor,
        Source, //
    },
    provider::MemoryRegionAttr, //
};

fn register(attr: MemoryRegionAttr<'_>) -> Result<Arc<RegionMemory<()>>> {
    let memory = attr.memory.capture((), GFP_KERNEL);
    #[cfg(wrong)]
    let again = attr.memory.capture((), GFP_KERNEL); //~ E0382
    memory
}

fn keep(kept: &mut Option<RegionBuffers<'static>>, attr: MemoryRegionAttr<'_>) {
    #[cfg(wrong)]
    kept.replace(attr.memory); //~ E0521
}

fn without(region: &Arc<RegionMemory<()>>) {
    #[cfg(wrong)]
    {
        region.memory.cursor(0); //~ E0616
        region.source(0); //~ E0599
    }
}

fn guarded<'a>(region: &Arc<RegionMemory<()>>, kept: &mut Option<Cursor<'a, Source>>) -> Result {
    let used = RegionMemory::enter(region).ok_or(EINVAL)?;
    #[cfg(wrong)]
    kept.replace(used.source(0)); //~ E0597
    Ok(())
}

fn written(used: &RegionUse<()>) -> Result {
    #[cfg(wrong)]
    used.source(0).write(&[1]); //~ E0599
    used.target(0)?.write(&[1]);
    Ok(())
}

fn twice(used: RegionUse<()>) {
    drop(used);
    #[cfg(wrong)]
    drop(used); //~ E0382
}
