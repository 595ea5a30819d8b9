// SPDX-License-Identifier: GPL-2.0

//! Address vectors of addresses that are a number in 8 bytes, the lowest byte first.

use kernel::{
    fmt,
    prelude::*,
    sync::Arc, //
};

use crate::kfi::{
    addr::FabricAddr,
    attr::AvType,
    fid::{
        Fid,
        Object, //
    },
    flags::InsertFlags,
    hold::Hold,
    provider::{
        address_book::{
            AddressBook,
            BookAddress, //
        },
        AddressVectorAttr,
        AddressVectorClass,
        AddressVectorOps,
        Addresses,
        DomainOps,
        FabricAddrs,
        Insertion, //
    }, //
};

/// The flags of insertions that are known.
const INSERT_FLAGS: InsertFlags = InsertFlags::MORE.union(InsertFlags::SYNC_ERR);

/// Bytes of an address.
const LEN: usize = size_of::<u64>();

/// Reads an address; `None` if it is none.
fn parse<A: BookAddress>(address: &[u8]) -> Option<A> {
    A::from_u64(u64::from_le_bytes(address.try_into().ok()?))
}

/// Returns the index that an address names; `None` if it is too large for one.
fn index(addr: FabricAddr) -> Option<u32> {
    u32::try_from(addr.as_raw()).ok()
}

/// An address vector of a domain `D`, with addresses `A`. It tells no events.
#[pin_data]
pub struct AddressVector<D: DomainOps, A: BookAddress> {
    #[pin]
    book: AddressBook<A>,
    av_type: AvType,
    domain: Hold<D>,
}

impl<D: DomainOps, A: BookAddress> AddressVector<D, A> {
    /// Creates an empty vector; there are no flags and no receive contexts, and it is not shared.
    pub fn new(domain: Hold<D>, attr: AddressVectorAttr) -> Result<impl PinInit<Self>> {
        if !attr.flags.is_empty() || attr.rx_ctx_bits != 0 || attr.is_shared {
            return Err(EINVAL);
        }
        let book = AddressBook::new()?;
        Ok(pin_init!(Self {
            book <- book,
            av_type: attr.av_type.unwrap_or(AvType::Table),
            domain,
        }))
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Arc<Fid<D>> {
        self.domain.fid()
    }

    /// Returns the address of a peer; `None` if it is not in the vector. From any context.
    pub fn resolve(&self, addr: FabricAddr) -> Option<A> {
        self.book.get(index(addr)?)
    }

    /// Returns what an address was inserted as, [`FabricAddr::NOTAVAIL`] if it was not. From any
    /// context.
    pub fn find(&self, address: A) -> FabricAddr {
        self.book
            .find(address)
            .map_or(FabricAddr::NOTAVAIL, FabricAddr::from)
    }
}

impl<D: DomainOps, A: BookAddress> Object for AddressVector<D, A> {
    type Class = AddressVectorClass;

    fn release(&self) {
        self.domain.release();
    }
}

impl<D: DomainOps, A: BookAddress> AddressVectorOps for AddressVector<D, A> {
    fn av_type(&self) -> AvType {
        self.av_type
    }

    fn insert(this: &Fid<Self>, mut insertion: Insertion<'_>) -> Result<usize> {
        if !INSERT_FLAGS.contains(insertion.flags()) || insertion.lacks_errors() {
            return Err(EINVAL);
        }
        let count = insertion.count();
        let (Addresses::Binary(bytes), mut results) = insertion.split() else {
            return Err(ENOSYS);
        };
        // Addresses of other formats have other lengths.
        if count.checked_mul(LEN) != Some(bytes.len()) {
            return Err(EINVAL);
        }
        let mut change = this.book.change();
        let mut inserted = 0usize;
        for (at, address) in bytes.chunks_exact(LEN).enumerate() {
            let address = parse(address).ok_or(EINVAL);
            let index = address.and_then(|address| change.insert(address));
            results.set(at, index.map(FabricAddr::from));
            inserted = inserted.wrapping_add(usize::from(index.is_ok()));
        }
        Ok(inserted)
    }

    fn remove(&self, addresses: FabricAddrs<'_>) -> Result {
        self.book.change().remove_all(addresses.iter().map(index))
    }

    fn lookup(&self, addr: FabricAddr, found: impl FnOnce(&[u8])) -> Result {
        let address = self.resolve(addr).ok_or(EINVAL)?;
        found(&address.as_u64().to_le_bytes());
        Ok(())
    }

    fn text(&self, address: &[u8]) -> Option<impl fmt::Display> {
        Some(parse::<A>(address)?.as_u64())
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_address_vector)]
mod tests {
    use super::*;
    use crate::kfi::{
        context::Context,
        fid::TestFid,
        provider::ready::tests::domain, //
    };

    /// An address, of which 0 is none.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Port(u64);

    impl BookAddress for Port {
        fn from_u64(raw: u64) -> Option<Self> {
            (raw != 0).then_some(Self(raw))
        }

        fn as_u64(self) -> u64 {
            self.0
        }
    }

    #[test]
    fn addresses_are_numbers_in_eight_bytes() -> Result {
        let domain = domain()?;
        let attr = AddressVectorAttr::default();
        let vector = AddressVector::<_, Port>::new(Hold::new(&domain)?, attr)?;
        let vector = TestFid::open(vector, Context::NONE)?;
        assert!(vector.av_type() == AvType::Table);
        assert_eq!(vector.book.change().insert(Port(0x102)), Ok(0));
        let addr = vector.find(Port(0x102));
        assert_eq!(addr, FabricAddr::from(0));
        assert_eq!(vector.find(Port(1)), FabricAddr::NOTAVAIL);
        assert_eq!(vector.resolve(addr), Some(Port(0x102)));
        let mut found = [0; LEN];
        vector.lookup(addr, |bytes| found.copy_from_slice(bytes))?;
        assert_eq!(found, [2, 1, 0, 0, 0, 0, 0, 0]);
        for missing in [FabricAddr::from(1), FabricAddr::NOTAVAIL] {
            assert_eq!(vector.resolve(missing), None);
            assert_eq!(vector.lookup(missing, |_| ()), Err(EINVAL));
        }
        assert!(vector.text(&found).is_some());
        assert!(vector.text(&[0; LEN]).is_none());
        assert!(vector.text(&found[1..]).is_none());
        Ok(())
    }
}
