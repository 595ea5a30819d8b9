// SPDX-License-Identifier: GPL-2.0

//! The smallest provider: fabrics, domains, counters and endpoints that do next to nothing.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::atomic::{
        ordering,
        Atomic, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::kfi::{
    addr::AddressFormat,
    context::Context,
    errno::EAVAIL,
    fid::{
        Fid,
        NewAlias,
        NewFid,
        Object,
        Opening, //
    },
    flags::OpFlags,
    hold::Hold,
    info::{
        Info,
        InfoRef, //
    },
    linux::timeout::Timeout,
    provider::*,
    tally::Tally, //
};

/// The provider.
pub(crate) struct Second;

impl Provider for Second {
    const VERSION: u32 = 1 << 16;
    type Fabric = Fabric;

    fn name() -> &'static CStr {
        c"kfi_second"
    }

    fn getinfo(query: &Query<'_>) -> Result<Info> {
        let hints = query.hints.and_then(|hints| hints.prov_name());
        // Others are not to find it by chance.
        if hints != Some(Self::name()) {
            return Err(ENODATA);
        }
        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        entry.domain_attr()?.name(c"second0")?;
        entry
            .fabric_attr()?
            .name(c"second")?
            .prov_name(Self::name())?;
        Ok(info)
    }

    fn fabric<'o>(
        _attr: FabricAttr<'_>,
        opening: Opening<'o, FabricClass>,
    ) -> Result<NewFid<'o, Fabric>> {
        NewFid::new(Fabric, opening)
    }
}

/// A fabric.
pub(crate) struct Fabric;

impl Object for Fabric {
    type Class = FabricClass;

    fn release(&self) {}
}

impl FabricOps for Fabric {
    type Domain = Domain;
    type EventQueue = Absent<EventQueueClass>;
    type WaitSet = Absent<WaitSetClass>;

    open_calls! {
        domain = Domain::new;
    }
}

/// A domain. After its close has given up all that it holds, it sleeps.
pub(crate) struct Domain {
    fabric: Hold<Fabric>,
}

impl Domain {
    fn new(fabric: Hold<Fabric>, _info: InfoRef<'_>) -> Result<Self> {
        Ok(Self { fabric })
    }
}

impl Object for Domain {
    type Class = DomainClass;

    fn release(&self) {
        self.fabric.release();
        // The fabric may be closed by others now, and the module unloaded.
        fsleep(Delta::from_millis(500));
    }
}

impl DomainOps for Domain {
    const ADDRESS_FORMAT: AddressFormat = AddressFormat::Cxi;

    type AddressVector = Absent<AddressVectorClass>;
    type Counter = Counter;
    type CompletionQueue = Absent<CompletionQueueClass>;
    type PollSet = Absent<PollSetClass>;
    type Endpoint = Endpoint;
    type ScalableEndpoint = Absent<ScalableClass>;
    type SharedTransmitContext = Absent<SharedTransmitClass>;
    type SharedReceiveContext = Absent<SharedReceiveClass>;
    type MemoryRegion = Absent<MemoryRegionClass>;

    open_calls! {
        cntr_open = Counter::open;
        endpoint = Endpoint::open;
    }
}

/// A counter.
pub(crate) struct Counter {
    domain: Option<Hold<Domain>>,
    tally: Tally,
    errors: Atomic<u64>,
}

impl Counter {
    fn open(domain: Hold<Domain>, _attr: CounterAttr<'_>) -> Result<Self> {
        Ok(Self::new(Some(domain)))
    }

    /// A counter of a domain.
    pub(crate) fn new(domain: Option<Hold<Domain>>) -> Self {
        Self {
            domain,
            tally: Tally::new(u64::MAX),
            errors: Atomic::new(0),
        }
    }
}

impl Object for Counter {
    type Class = CounterClass;

    fn release(&self) {
        if let Some(domain) = &self.domain {
            domain.release();
        }
    }
}

impl CounterOps for Counter {
    fn read(&self) -> u64 {
        // Relaxed: a number that stands for itself, as below.
        self.tally.value.load(ordering::Relaxed)
    }

    fn readerr(&self) -> u64 {
        self.errors.load(ordering::Relaxed)
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn reached(&self, _value: u64, _sum: u64, _events: u64) {}

    fn add_locked(&self, value: u64) {
        self.tally.value.fetch_add(value, ordering::Relaxed);
    }

    fn set(&self, value: u64) -> Result {
        self.tally.value.store(value, ordering::Relaxed);
        Ok(())
    }

    fn adderr(&self, value: u64) -> Result {
        self.errors.fetch_add(value, ordering::Relaxed);
        Ok(())
    }

    fn seterr(&self, value: u64) -> Result {
        self.errors.store(value, ordering::Relaxed);
        Ok(())
    }

    fn begin_wait(&self, threshold: u64) -> Result<Option<u64>> {
        let errors = self.errors.load(ordering::Relaxed);
        Ok((self.read() < threshold).then_some(errors))
    }

    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        let Timeout::Millis(millis) = timeout else {
            return Err(EINVAL);
        };
        for _ in 0..millis {
            if this.read() >= threshold {
                return Ok(());
            }
            if this.errors.load(ordering::Relaxed) != since {
                return Err(EAVAIL.into());
            }
            fsleep(Delta::from_millis(1));
        }
        Err(ETIMEDOUT)
    }
}

/// An endpoint.
pub(crate) struct Endpoint {
    domain: Option<Hold<Domain>>,
}

impl Endpoint {
    fn open(domain: Hold<Domain>, _info: InfoRef<'_>) -> Result<Self> {
        Ok(Self {
            domain: Some(domain),
        })
    }
}

impl Object for Endpoint {
    type Class = PlainClass;

    fn release(&self) {
        if let Some(domain) = &self.domain {
            domain.release();
        }
    }

    fn alias<'o>(
        _this: &Fid<Self>,
        _flags: OpFlags,
        opening: Opening<'o, PlainClass>,
    ) -> Result<NewAlias<'o, PlainClass>> {
        Ok(NewFid::new(Self { domain: None }, opening)?.into_alias())
    }
}

impl EndpointOps for Endpoint {
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(_this: &Fid<Self>, _operation: Operation<'_>) -> Result {
        Err(EOPNOTSUPP)
    }

    fn cancel(&self, _context: Context) -> Result {
        Err(ENOENT)
    }
}
