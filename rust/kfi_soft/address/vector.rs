// SPDX-License-Identifier: GPL-2.0

//! Address vectors: the peers of endpoints, by small numbers.
//!
//! Both kinds of vectors give out indices. The same address may be inserted many times; each
//! insertion has an index of its own, and the first of them is what a message from that address is
//! said to come from.

#![forbid(unsafe_code)]

use core::ptr;
use kernel::{
    fmt,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

use crate::{
    address::{
        native::Address,
        place::{
            self,
            AddressFormat,
            AddressText, //
            NodeName,
            Place,
        },
    },
    domain::Domain,
    kfi::{
        addr::FabricAddr,
        attr::AvType,
        errno::{
            ENOEQ,
            ETOOSMALL, //
        },
        fid::{
            AnyFid,
            Fid,
            Object, //
        },
        flags::{
            AddressVectorFlags,
            InsertFlags, //
        },
        hold::Hold,
        provider::{
            address_book::{
                AddressBook,
                Change, //
            },
            AddressVectorAttr,
            AddressVectorClass,
            AddressVectorOps,
            Addresses,
            Event,
            EventError,
            EventQueueOps,
            FabricAddrs,
            Insertion,
            Results, //
        }, //
    },
    limits,
    queue::{
        eq_slots::Reservation,
        event_queue::EventQueue, //
    }, //
};

/// The flags that are known.
const FLAGS: AddressVectorFlags = AddressVectorFlags::EVENT
    .union(AddressVectorFlags::READ)
    .union(AddressVectorFlags::SYMMETRIC);

/// The flags of insertions that are known.
const INSERT_FLAGS: InsertFlags = InsertFlags::MORE.union(InsertFlags::SYNC_ERR);

/// An address vector.
#[pin_data]
pub(crate) struct AddressVector {
    #[pin]
    book: AddressBook<Address>,
    av_type: AvType,
    format: AddressFormat,
    /// How many of the highest bits say which receive context is meant.
    rx_ctx_bits: u32,
    /// Whether insertions are reported by events.
    has_events: bool,
    queue: SetOnce<Hold<EventQueue>>,
    domain: Hold<Domain>,
}

impl AddressVector {
    /// Creates an empty vector.
    pub(crate) fn new(domain: Hold<Domain>, attr: AddressVectorAttr) -> Result<impl PinInit<Self>> {
        if !FLAGS.contains(attr.flags) || attr.rx_ctx_bits > limits::MAX_RX_CONTEXT_BITS {
            return Err(EINVAL);
        }
        if attr.is_shared || attr.flags.contains(AddressVectorFlags::READ) {
            return Err(ENOSYS);
        }
        let book = AddressBook::new()?;
        let av_type = attr.av_type.unwrap_or(domain.av_type());
        let format = domain.address_format();
        let rx_ctx_bits = attr.rx_ctx_bits;
        let has_events = attr.flags.contains(AddressVectorFlags::EVENT);
        Ok(pin_init!(Self {
            book <- book,
            av_type,
            format,
            rx_ctx_bits,
            has_events,
            queue: SetOnce::new(),
            domain,
        }))
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns the address of a peer and the index of the receive context that is meant; `None` if
    /// it is not in the vector. From any context.
    pub(crate) fn resolve(&self, addr: FabricAddr) -> Option<(Address, usize)> {
        let (index, context) = split(addr, self.rx_ctx_bits)?;
        Some((self.book.get(index)?, context))
    }

    /// Returns what an address was inserted as, [`FabricAddr::NOTAVAIL`] if it was not. From any
    /// context.
    pub(crate) fn find(&self, address: Address) -> FabricAddr {
        self.book
            .find(address)
            .map_or(FabricAddr::NOTAVAIL, FabricAddr::from)
    }

    /// Inserts addresses, tells the caller about each, and `each` too, whose first error ends it.
    ///
    /// Returns how many were inserted.
    fn insert_all(
        change: &mut Change<'_, Address>,
        list: &List<'_>,
        results: &mut Results<'_>,
        count: usize,
        mut each: impl FnMut(usize, Result<u32>) -> Result,
    ) -> Result<usize> {
        let mut inserted = 0usize;
        for at in 0..count {
            let address = list.get(at).ok_or(EINVAL);
            let index = address.and_then(|address| change.insert(address));
            results.set(at, index.map(FabricAddr::from));
            each(at, index)?;
            if index.is_ok() {
                inserted = inserted.wrapping_add(1);
            }
        }
        Ok(inserted)
    }

    /// Inserts addresses and reports to an event queue.
    ///
    /// Either all is inserted that can be and all is reported, or nothing of either.
    fn insert_reported(
        this: &Fid<Self>,
        mut insertion: Insertion<'_>,
        queue: &Fid<EventQueue>,
    ) -> Result {
        let (context, count) = (insertion.context(), insertion.count());
        // The result for each, to be reported, or undone.
        let mut outcomes = KVVec::with_capacity(count, GFP_KERNEL | __GFP_NOWARN)?;
        let (addresses, mut results) = insertion.split();
        let list = List::new(addresses, this.format)?;
        // No other thread changes the book before it is known whether this stays: else an index could be
        // that of another address by then, which would be removed instead.
        let mut change = this.book.change();
        let inserted = Self::insert_all(&mut change, &list, &mut results, count, |_, index| {
            // There is room for it.
            Ok(outcomes.push(index, GFP_KERNEL)?)
        })?;
        // Room for all of it first, so that nothing is reported of what is undone.
        let failures = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let mut slots = reserve(queue, failures).inspect_err(|error| {
            for (at, outcome) in outcomes.iter().enumerate() {
                if let Ok(index) = outcome {
                    change.remove(*index);
                }
                results.set(at, Err(*error));
            }
        })?;
        drop(change);
        let ended = insertion.end();
        for (at, outcome) in outcomes.iter().enumerate() {
            let Err(error) = outcome else {
                continue;
            };
            if let Some(slot) = slots.pop() {
                slot.post_error(&EventError::new(this, context, at as u64, *error));
            }
        }
        if let Some(slot) = slots.pop() {
            slot.post(&Event::av_complete(this, ended, inserted as u64));
        }
        Ok(())
    }
}

/// Reserves room in a queue for as many errors and the end of an insertion.
fn reserve(queue: &Fid<EventQueue>, failures: usize) -> Result<KVVec<Reservation<EventQueue>>> {
    if failures >= queue.size() {
        // Nor will there ever be.
        return Err(ETOOSMALL.into());
    }
    let mut slots = KVVec::with_capacity(failures.saturating_add(1), GFP_KERNEL | __GFP_NOWARN)?;
    for _ in 0..=failures {
        slots.push(EventQueue::reserve(queue).ok_or(EAGAIN)?, GFP_KERNEL)?;
    }
    Ok(slots)
}

/// Splits an address into the index and, in the highest `bits` bits, the receive context; `None` if
/// no index is as large.
fn split(addr: FabricAddr, bits: u32) -> Option<(u32, usize)> {
    let raw = addr.as_raw();
    let shift = u64::BITS.wrapping_sub(bits);
    // Without bits the shift is as wide as the number, and there is one receive context.
    let context = raw.checked_shr(shift).unwrap_or(0);
    let index = raw ^ context.checked_shl(shift).unwrap_or(0);
    Some((u32::try_from(index).ok()?, usize::try_from(context).ok()?))
}

/// The addresses of an insertion.
enum List<'a> {
    /// As they lie in memory.
    Binary(&'a [u8], AddressFormat),
    /// Nodes that count up from a first place, each with as many services.
    Symmetric {
        /// The first.
        first: Place,
        /// How many services on each.
        services: usize,
    },
}

impl<'a> List<'a> {
    /// Takes the arguments of an insertion; `EINVAL` for texts that name nothing.
    fn new(addresses: Addresses<'a>, format: AddressFormat) -> Result<Self> {
        match addresses {
            Addresses::Binary(bytes) => Ok(Self::Binary(bytes, format)),
            Addresses::Text {
                node,
                service,
                services,
                ..
            } => Ok(Self::Symmetric {
                first: Self::first(node, service, format).ok_or(EINVAL)?,
                services,
            }),
        }
    }

    /// Finds the first node and service.
    fn first(node: &CStr, service: &CStr, format: AddressFormat) -> Option<Place> {
        let node = NodeName::from_text(node.to_bytes())?;
        let port = if service.is_empty() {
            None
        } else {
            Some(place::port(service.to_bytes())?)
        };
        let place = NodeName { format, ..node }.at(port)?;
        // There is no peer without a port.
        place.address()?;
        Some(place)
    }

    /// Returns an address; `None` if it is malformed or beyond the last one.
    fn get(&self, at: usize) -> Option<Address> {
        match *self {
            Self::Binary(bytes, format) => {
                let bytes = bytes.chunks_exact(format.len()).nth(at)?;
                Place::decode(format, bytes)?.address()
            }
            Self::Symmetric { first, services } => {
                let node = u32::try_from(at.checked_div(services)?).ok()?;
                let service = u16::try_from(at.checked_rem(services)?).ok()?;
                Address::new(
                    first.nic.checked_add(node)?,
                    first.port?.checked_add(service)?,
                )
            }
        }
    }
}

impl Object for AddressVector {
    type Class = AddressVectorClass;

    fn release(&self) {
        if let Some(queue) = self.queue.as_ref() {
            queue.release();
        }
        self.domain.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        if flags != 0 {
            return Err(EINVAL);
        }
        let queue = other.downcast::<EventQueue>().ok_or(EINVAL)?;
        if !ptr::eq(&**queue.fabric(), &**this.domain.fabric()) {
            return Err(EINVAL);
        }
        if !this.queue.populate(Hold::new(queue)?) {
            return Err(EINVAL);
        }
        Ok(())
    }
}

impl AddressVectorOps for AddressVector {
    fn av_type(&self) -> AvType {
        self.av_type
    }

    fn insert(this: &Fid<Self>, mut insertion: Insertion<'_>) -> Result<usize> {
        if !INSERT_FLAGS.contains(insertion.flags()) || insertion.lacks_errors() {
            return Err(EINVAL);
        }
        // The addresses of a table can be counted, those of a map are known to nobody else.
        if this.av_type == AvType::Map && !insertion.wants_addresses() && insertion.count() != 0 {
            return Err(EINVAL);
        }
        if !this.has_events {
            let count = insertion.count();
            let (addresses, mut results) = insertion.split();
            let list = List::new(addresses, this.format)?;
            let mut change = this.book.change();
            return Self::insert_all(&mut change, &list, &mut results, count, |_, _| Ok(()));
        }
        // Invalid addresses are refused first.
        List::new(insertion.split().0, this.format)?;
        // Errors are reported by events.
        if insertion.flags().contains(InsertFlags::SYNC_ERR) {
            return Err(EINVAL);
        }
        let queue = this.queue.as_ref().ok_or(ENOEQ)?;
        Self::insert_reported(this, insertion, queue.fid())?;
        Ok(0)
    }

    fn remove(&self, addresses: FabricAddrs<'_>) -> Result {
        // The result of an insertion names no receive context.
        let index = |addr| match split(addr, self.rx_ctx_bits) {
            Some((index, 0)) => Some(index),
            _ => None,
        };
        self.book.change().remove_all(addresses.iter().map(index))
    }

    fn lookup(&self, addr: FabricAddr, found: impl FnOnce(&[u8])) -> Result {
        let (address, _) = self.resolve(addr).ok_or(EINVAL)?;
        found(&Place::from(address).encode(self.format));
        Ok(())
    }

    fn text(&self, address: &[u8]) -> Option<impl fmt::Display> {
        let address = Place::decode(self.format, address)?.address()?;
        Some(AddressText(address, self.format))
    }
}

#[kunit_tests(kfi_soft_address_vector)]
mod tests {
    use super::*;

    #[test]
    fn receive_contexts_are_on_top() {
        let split = |raw, bits| super::split(FabricAddr::from_raw(raw), bits);
        assert_eq!(split(7, 0), Some((7, 0)));
        assert_eq!(split(7, 8), Some((7, 0)));
        assert_eq!(split(255 << 56 | 7, 8), Some((7, 255)));
        assert_eq!(split(1 << 63 | 7, 1), Some((7, 1)));
        // Bits that are not set aside belong to the index, and no index is as large.
        assert_eq!(split(1 << 63 | 7, 0), None);
        assert_eq!(split(1 << 55 | 7, 8), None);
        assert_eq!(split(1 << 32, 8), None);
        assert_eq!(split(u64::MAX, 0), None);
        assert_eq!(split(u64::MAX, limits::MAX_RX_CONTEXT_BITS), None);
    }

    #[test]
    fn symmetric_addresses_count_up() {
        let list = List::Symmetric {
            first: Place {
                nic: 1,
                port: Some(10),
            },
            services: 3,
        };
        assert_eq!(list.get(0), Address::new(1, 10));
        assert_eq!(list.get(2), Address::new(1, 12));
        assert_eq!(list.get(3), Address::new(2, 10));
        assert_eq!(list.get(usize::MAX), None);
        let last = List::Symmetric {
            first: Place {
                nic: Address::MAX_NIC,
                port: Some(Address::MAX_PORT),
            },
            services: 2,
        };
        assert!(last.get(0).is_some());
        assert_eq!(last.get(1), None);
        assert_eq!(last.get(2), None);
        let none = List::Symmetric {
            first: Place {
                nic: 0,
                port: Some(0),
            },
            services: 0,
        };
        assert_eq!(none.get(0), None);
    }

    #[test]
    fn binary_addresses_lie_back_to_back() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0x10, 0, 0, 0, 0, 0, 0, 9];
        let list = List::Binary(&bytes, AddressFormat::Native);
        assert_eq!(list.get(0), Address::new(0, 1));
        assert_eq!(list.get(1), Address::new(1, 2));
        assert_eq!(list.get(2), None);
    }

    #[test]
    fn texts_name_the_first() {
        let first = |node, service| List::first(node, service, AddressFormat::Native);
        assert_eq!(
            first(c"0x1", c"7"),
            Some(Place {
                nic: 1,
                port: Some(7)
            })
        );
        assert_eq!(first(c"fi_addr_soft://0x1:0x7", c""), first(c"0x1", c"7"));
        assert_eq!(first(c"0x1", c""), None);
        assert_eq!(first(c"nobody", c"7"), None);
    }
}
