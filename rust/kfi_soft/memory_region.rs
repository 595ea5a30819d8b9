// SPDX-License-Identifier: GPL-2.0

//! Memory regions: memory that consumers have registered.
//!
//! Regions are found by their keys, in the domain or, with `KFI_MR_ENDPOINT`, in the receive context
//! that they are bound to; then they are usable from the moment when they are enabled. Those that are
//! found in the domain may be bound, too: then peers may use them through that context only.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    counter::Counter,
    domain::Domain,
    endpoint::{
        Alias,
        Endpoint,
        HasEndpointState,
        ReceiveContext, //
    },
    kfi::{
        control::Control,
        errno::{
            EBADFLAGS,
            EKEYREJECTED,
            EOPBADSTATE, //
        },
        fid::{
            AnyFid,
            Fid,
            NewFid,
            Object,
            Opening, //
        },
        flags::{
            AccessFlags,
            BindFlags,
            DomainBindFlags,
            MrMode,
            RegionFlags, //
        },
        hold::Hold,
        memory::SourceBuffers,
        provider::{
            Event,
            MemoryRegionAttr,
            MemoryRegionClass,
            MemoryRegionOps,
            RawKey, //
        }, //
    },
    limits,
    queue::{
        eq_slots::Reservation,
        event_queue::EventQueue, //
    },
    transfer::{
        receiver::Receiver,
        region::{
            Region,
            Regions,
            Registered, //
        }, //
    }, //
};

/// All that may be allowed.
const ACCESS: AccessFlags = AccessFlags::SEND
    .union(AccessFlags::RECV)
    .union(AccessFlags::READ)
    .union(AccessFlags::WRITE)
    .union(AccessFlags::REMOTE_READ)
    .union(AccessFlags::REMOTE_WRITE);

/// The receive context that a region belongs to.
enum RegionOwner {
    /// A plain endpoint.
    Endpoint(Hold<Endpoint>),
    /// A receive context of a scalable endpoint.
    Context(Hold<ReceiveContext>),
}

impl RegionOwner {
    /// Returns the receive context, once it is enabled.
    fn receiver(&self) -> Option<&Arc<Receiver>> {
        match self {
            Self::Endpoint(endpoint) => endpoint.endpoint_state().receiver(),
            Self::Context(context) => context.endpoint_state().receiver(),
        }
    }

    fn release(&self) {
        match self {
            Self::Endpoint(endpoint) => endpoint.release(),
            Self::Context(context) => context.release(),
        }
    }
}

/// The part of a region that changes.
struct State {
    owner: Option<RegionOwner>,
    /// The key under which it can be found.
    key: Option<u64>,
    /// Room for the event that reports its registration, until it is open.
    complete: Option<Reservation<EventQueue>>,
}

/// A memory region.
#[pin_data]
pub(crate) struct MemoryRegion {
    domain: Hold<Domain>,
    region: Arc<Registered>,
    requested_key: u64,
    #[pin]
    state: Mutex<State>,
}

/// Returns the largest key of a domain.
fn largest_key(domain: &Domain) -> u64 {
    let bits = u32::try_from(domain.mr_key_size().saturating_mul(8)).unwrap_or(64);
    let largest = u64::MAX
        .checked_shr(64u32.saturating_sub(bits))
        .unwrap_or(u64::MAX);
    // All ones mean that there is none.
    largest.min(u64::MAX.wrapping_sub(1))
}

impl MemoryRegion {
    /// Registers memory.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        attr: MemoryRegionAttr<'_>,
        opening: Opening<'o, MemoryRegionClass>,
    ) -> Result<NewFid<'o, Self>> {
        if attr.access.is_empty() || attr.offset != 0 {
            return Err(EINVAL);
        }
        if !ACCESS.contains(attr.access) || !RegionFlags::RMA_EVENT.contains(attr.flags) {
            return Err(EBADFLAGS.into());
        }
        if attr.memory.count() > limits::MR_IOV_LIMIT
            || attr
                .auth_key
                .is_some_and(|key| key.len() > limits::MAX_AUTH_KEY_SIZE)
        {
            return Err(EINVAL);
        }
        let mode = domain.mr_mode();
        let chosen = mode.contains(MrMode::PROV_KEY);
        if !chosen && attr.requested_key > largest_key(domain) {
            return Err(EKEYREJECTED.into());
        }
        // Before anything is done: the caller has to learn of it.
        let reservation = match domain.event_queue() {
            Some((queue, flags)) if flags.contains(DomainBindFlags::REG_MR) => {
                Some(EventQueue::reserve(queue).ok_or(EAGAIN)?)
            }
            _ => None,
        };
        let base = if mode.contains(MrMode::VIRT_ADDR) {
            attr.memory.address() as u64
        } else {
            0
        };
        let event = attr.flags.contains(RegionFlags::RMA_EVENT);
        // Without a key of its own it is open to all that the domain is open to.
        let auth_key = match attr.auth_key {
            Some(bytes) => Some(domain.fabric().node().auth_keys.get(bytes)?),
            None => None,
        };
        let region = Region::new(attr.memory, attr.access, base, event, auth_key)?;
        let hold = Hold::new(domain)?;
        let this = NewFid::new(
            pin_init!(Self {
                domain: hold,
                region,
                requested_key: attr.requested_key,
                state <- new_mutex!(
                    State {
                        owner: None,
                        key: None,
                        complete: reservation,
                    },
                    "kfi_soft::MemoryRegion::state"
                ),
            }),
            opening,
        )?;
        this.set_iova(base);
        if mode.contains(MrMode::ENDPOINT) {
            // Its key is known, but nobody finds it before it is enabled.
            if !chosen {
                this.set_key(attr.requested_key);
            }
        } else {
            Self::publish(&this, &mut this.state.lock(), domain.regions())?;
        }
        Ok(this)
    }

    /// Lets the region be found.
    fn publish(this: &Fid<Self>, state: &mut State, regions: &Regions) -> Result {
        let key = if this.domain.mr_mode().contains(MrMode::PROV_KEY) {
            regions.insert_anywhere(&this.region, largest_key(&this.domain))?
        } else {
            regions.insert(this.requested_key, &this.region)?;
            this.requested_key
        };
        this.set_key(key);
        state.key = Some(key);
        Ok(())
    }

    /// Lets the region not be found any more. It is not used any more: close has waited for that.
    fn withdraw(&self) {
        let (owner, key) = {
            let mut state = self.state.lock();
            (state.owner.take(), state.key.take())
        };
        if let Some(key) = key {
            let receiver = owner.as_ref().and_then(RegionOwner::receiver);
            match (self.domain.mr_mode().contains(MrMode::ENDPOINT), receiver) {
                (true, Some(receiver)) => receiver.own_regions().remove(key),
                (true, None) => {}
                (false, _) => self.domain.regions().remove(key),
            }
        }
        self.region.release();
        if let Some(owner) = &owner {
            owner.release();
        }
    }
}

impl Object for MemoryRegion {
    type Class = MemoryRegionClass;

    fn opened(this: &Fid<Self>) {
        let complete = this.state.lock().complete.take();
        // A reader of the event can find the region, and close it.
        if let Some(reservation) = complete {
            reservation.post(&Event::mr_complete(this, this.key()));
        }
    }

    fn release(&self) {
        self.withdraw();
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        if let Some(counter) = other.downcast::<Counter>() {
            let flags = BindFlags::from_raw(flags);
            let known = BindFlags::REMOTE_READ | BindFlags::REMOTE_WRITE;
            if flags.is_empty() || !known.contains(flags) {
                return Err(EBADFLAGS.into());
            }
            if !Arc::ptr_eq(counter.domain(), this.domain.fid()) {
                return Err(EINVAL);
            }
            let hold = Arc::new(Hold::new(counter)?, GFP_KERNEL)?;
            return this.region.bind(hold, flags);
        }
        // An alias is the endpoint.
        let alias = other.downcast::<Alias<Endpoint>>();
        let endpoint = alias.map(|alias| alias.base());
        let (bound, owner) = if let Some(endpoint) = endpoint.or_else(|| other.downcast()) {
            (
                endpoint.endpoint_state(),
                RegionOwner::Endpoint(Hold::new(endpoint)?),
            )
        } else {
            let alias = other.downcast::<Alias<ReceiveContext>>();
            let context = alias.map(|alias| alias.base());
            let context = context.or_else(|| other.downcast()).ok_or(EINVAL)?;
            (
                context.endpoint_state(),
                RegionOwner::Context(Hold::new(context)?),
            )
        };
        if flags != 0 {
            return Err(EBADFLAGS.into());
        }
        if !Arc::ptr_eq(bound.domain(), this.domain.fid()) {
            return Err(EINVAL);
        }
        // Regions are bound to contexts that are enabled.
        let receiver = bound.receiver().ok_or(EOPBADSTATE)?;
        let mut state = this.state.lock();
        if state.owner.is_some() {
            return Err(EINVAL);
        }
        // In either mode: nobody else finds it, or nobody else may use it.
        this.region.limit_to(receiver.id());
        state.owner = Some(owner);
        Ok(())
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::Enable => {
                if !this.domain.mr_mode().contains(MrMode::ENDPOINT) {
                    // It is usable from the beginning.
                    return Ok(());
                }
                let mut state = this.state.lock();
                if state.key.is_some() {
                    return Err(EOPBADSTATE.into());
                }
                let owner = state.owner.as_ref().ok_or(EOPBADSTATE)?;
                let receiver = owner.receiver().ok_or(EOPBADSTATE)?.clone();
                Self::publish(this, &mut state, receiver.own_regions())
            }
            _ => Err(ENOSYS),
        }
    }
}

impl MemoryRegionOps for MemoryRegion {
    fn raw_key(this: &Fid<Self>, out: RawKey<'_>) -> Result {
        if out.flags() != 0 {
            return Err(EINVAL);
        }
        out.answer(this.region.base(), &this.key().to_ne_bytes())
    }

    fn refresh(_this: &Fid<Self>, flags: u64, _memory: SourceBuffers<'_>) -> Result {
        // Memory of the kernel does not move.
        match flags {
            0 => Ok(()),
            _ => Err(EINVAL),
        }
    }
}
