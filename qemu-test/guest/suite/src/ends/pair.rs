// SPDX-License-Identifier: GPL-2.0

//! Two endpoints on two NICs.

use std::ops::Deref;

use kfi::{bits, BufferKind, Caps, Domain, EpInfo, Form, InfoEntry, MemoryRegion, MrAttr};

use super::{needs, Area, End, Setup};
use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::Rig;

/// Two ends, on two NICs if there are, and where they are.
#[derive(Debug)]
pub struct Pair {
    /// On the first NIC.
    pub a: End,
    /// On the last NIC.
    pub b: End,
    /// The domain of the second end.
    pub far: Domain,
    /// With the domain of the first end.
    pub rig: Rig,
}

impl Deref for Pair {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl Pair {
    /// Two ends that are connected.
    pub fn new(env: &Env, caps: Caps) -> Result<Self, Stop> {
        Self::with(env, caps, &Setup::default())
    }

    /// Two that are to be in some way.
    pub fn with(env: &Env, caps: Caps, setup: &Setup) -> Result<Self, Stop> {
        let mut pair = Self::prepare(env, caps, setup)?;
        pair.connect()?;
        Ok(pair)
    }

    /// Two ends that are not enabled yet.
    pub fn prepare(env: &Env, caps: Caps, setup: &Setup) -> Result<Self, Stop> {
        let rig = Rig::new(env)?;
        needs(&rig.info.entries()[0], caps)?;
        let fabric = &rig.info.entries()[0].fabric_attr;
        let far_index = rig
            .info
            .entries()
            .iter()
            .rposition(|entry| {
                entry.fabric_attr.name == fabric.name
                    && entry.fabric_attr.prov_name == fabric.prov_name
            })
            .unwrap_or(0);
        let far = rig.fabric.domain(&rig.info, far_index)?;
        let far_setup = Setup {
            entry: setup.entry.clone().map(|entry| InfoEntry {
                src_addr: rig.info.entries()[far_index].src_addr.clone(),
                ..entry
            }),
            ..setup.clone()
        };
        Ok(Self {
            a: End::open(&rig.domain, EpInfo::Entry(&rig.info, 0), setup)?,
            b: End::open(&far, EpInfo::Entry(&rig.info, far_index), &far_setup)?,
            far,
            rig,
        })
    }

    /// Enables both and has them know each other.
    pub fn connect(&mut self) -> Outcome {
        self.a.enable()?;
        self.b.enable()?;
        self.a.connect(&self.b)?;
        self.b.connect(&self.a)
    }

    /// The provider's answer about the first NIC.
    pub fn entry(&self) -> &InfoEntry {
        &self.rig.info.entries()[0]
    }

    /// Sizes where something could be different.
    pub fn sizes(&self) -> Vec<u64> {
        let inject = self.entry().tx_attr.inject_size;
        let limit = self.entry().ep_attr.max_msg_size;
        let mut sizes = vec![0, 1, 7, inject, 4095, 4096, 4097, 65_536, (1 << 20) + 3];
        sizes.retain(|size| *size <= limit);
        sizes
    }

    /// Memory of the second end that the first one may read and write.
    pub fn region(&self, area: &Area, key: u64) -> Result<MemoryRegion, Stop> {
        self.region_of(area, area.len, key)
    }

    /// As [`Self::region`], of the first bytes.
    pub fn region_of(&self, area: &Area, len: u64, key: u64) -> Result<MemoryRegion, Stop> {
        let form = if area.kind == BufferKind::PAGES {
            Form::BV
        } else {
            Form::V
        };
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
        let attr = MrAttr::new(access, key).form(form);
        Ok(self.far.register(&[area.part(0, len)], &attr)?)
    }

    /// Closes everything, in order.
    pub fn close(self) -> Outcome {
        let Self { a, b, far, rig } = self;
        drop((a, b));
        far.close().map_err(|(_, error)| error)?;
        rig.close()
    }
}
