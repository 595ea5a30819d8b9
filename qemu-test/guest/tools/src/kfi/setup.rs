// SPDX-License-Identifier: GPL-2.0

//! The setup of commands: a domain of the command line's choice, and endpoints there.

use clap::Args;
use kfi::{
    AddressVector, AvAttr, Buffer, BufferKind, Caps, CntrAttr, CompletionQueue, Counter, CqAttr,
    Domain, Endpoint, EpInfo, EpType, Fabric, InfoList, Query, WaitObj,
};

use crate::output::{open, During, Problem};

/// Which domain it shall be.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// Take the provider of this name, not the first one
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,

    /// Take this domain, not the first one
    #[arg(short, long, value_name = "NAME")]
    domain: Option<String>,
}

/// An open domain.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) domain: Domain,
    pub(crate) fabric: Fabric,
    pub(crate) info: InfoList,
}

impl Choice {
    /// Opens the first domain that has these capabilities; none is any.
    pub(crate) fn open(&self, caps: Caps) -> Result<Place, Problem> {
        let mut query = Query::new();
        if !caps.is_empty() {
            query = query.caps(caps).ep_type(EpType::RDM);
        }
        if let Some(name) = &self.provider {
            query = query.provider(name);
        }
        if let Some(name) = &self.domain {
            query = query.domain(name);
        }
        let info = open()?.getinfo(&query).during("kfi_getinfo")?;
        let fabric = info.fabric(0).during("kfi_fabric")?;
        let domain = fabric.domain(&info, 0).during("kfi_domain")?;
        Ok(Place {
            domain,
            fabric,
            info,
        })
    }
}

impl Place {
    /// Opens a counter that can be waited for.
    pub(crate) fn counter(&self) -> Result<Counter, Problem> {
        let attr = CntrAttr::new().wait_obj(WaitObj::QUEUE);
        self.domain.counter(&attr).during("kfi_cntr_open")
    }

    /// Opens a completion queue.
    pub(crate) fn queue(&self) -> Result<CompletionQueue, Problem> {
        let queue = self.domain.completion_queue(&CqAttr::new());
        queue.during("kfi_cq_open")
    }

    /// Opens an address vector.
    pub(crate) fn address_vector(&self) -> Result<AddressVector, Problem> {
        let vector = self.domain.address_vector(&AvAttr::default());
        vector.during("kfi_av_open")
    }

    /// Opens an endpoint, which is not usable yet.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Problem> {
        let endpoint = self.domain.endpoint(EpInfo::Entry(&self.info, 0), 0);
        endpoint.during("kfi_endpoint")
    }

    /// Allocates memory of the kernel, all 0.
    pub(crate) fn buffer(&self, size: u64) -> Result<Buffer, Problem> {
        let buffer = self.domain.session().buffer(BufferKind::VMALLOC, size);
        buffer.during("KFI_SHIM_BUFFER")
    }
}

/// Inserts the addresses of endpoints; returns what they are in the vector.
pub(crate) fn insert<'a>(
    vector: &AddressVector,
    endpoints: impl Iterator<Item = &'a Endpoint>,
) -> Result<Vec<u64>, Problem> {
    endpoints
        .map(|endpoint| {
            let name = endpoint.name().during("kfi_getname")?;
            vector.insert(&name).during("kfi_av_insert")
        })
        .collect()
}
