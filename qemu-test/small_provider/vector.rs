// SPDX-License-Identifier: GPL-2.0

//! Address vectors. An address is the number of an endpoint, never 0, in 8 bytes.

#![forbid(unsafe_code)]

use crate::prelude::*;

/// An address vector has room for so many addresses.
const SIZE: usize = 1024;

/// An address vector: the addresses by index, 0 where there is none.
pub(crate) struct AddressVector {
    addresses: KVec<Atomic<u64>>,
    av_type: AvType,
    pub(crate) domain: Hold<Domain>,
}

impl AddressVector {
    pub(crate) fn new(domain: Hold<Domain>, attr: AddressVectorAttr) -> Result<Self> {
        if !attr.flags.is_empty() || attr.rx_ctx_bits != 0 || attr.is_shared {
            return Err(EINVAL);
        }
        let mut addresses = KVec::with_capacity(SIZE, GFP_KERNEL)?;
        for _ in 0..SIZE {
            addresses.push(Atomic::new(0), GFP_KERNEL)?;
        }
        Ok(Self {
            addresses,
            av_type: attr.av_type.unwrap_or(AvType::Table),
            domain,
        })
    }

    /// Returns the address of a peer; `EINVAL` if there is none. From any context.
    pub(crate) fn get(&self, addr: FabricAddr) -> Result<u64> {
        let index = usize::try_from(addr.as_raw()).map_err(|_| EINVAL)?;
        let address = self.addresses.get(index).ok_or(EINVAL)?.load(Relaxed);
        (address != 0).then_some(address).ok_or(EINVAL)
    }

    /// Returns what an address was inserted as. From any context.
    pub(crate) fn find(&self, address: u64) -> FabricAddr {
        let found = self
            .addresses
            .iter()
            .position(|at| at.load(Relaxed) == address);
        found.map_or(FabricAddr::NOTAVAIL, |index| {
            FabricAddr::from_raw(index as u64)
        })
    }

    fn add(&self, address: &[u8]) -> Result<FabricAddr> {
        let address = u64::from_le_bytes(address.try_into().map_err(|_| EINVAL)?);
        if address == 0 || address == u64::MAX {
            return Err(EINVAL);
        }
        let is_free = |at: &Atomic<u64>| at.cmpxchg(0, address, Full).is_ok();
        let index = self.addresses.iter().position(is_free).ok_or(ENOSPC)?;
        Ok(FabricAddr::from_raw(index as u64))
    }
}

impl Object for AddressVector {
    type Class = AddressVectorClass;

    fn release(&self) {
        self.domain.release();
    }
}

impl AddressVectorOps for AddressVector {
    fn av_type(&self) -> AvType {
        self.av_type
    }

    fn insert(this: &Fid<Self>, mut insertion: Insertion<'_>) -> Result<usize> {
        let known = InsertFlags::MORE | InsertFlags::SYNC_ERR;
        if !known.contains(insertion.flags()) || insertion.lacks_errors() {
            return Err(EINVAL);
        }
        let (Addresses::Binary(bytes), mut results) = insertion.split() else {
            return Err(ENOSYS);
        };
        let mut count: usize = 0;
        for (index, address) in bytes.chunks_exact(8).enumerate() {
            let result = this.add(address);
            count = count.wrapping_add(usize::from(result.is_ok()));
            results.set(index, result);
        }
        Ok(count)
    }

    fn remove(&self, addresses: FabricAddrs<'_>) -> Result {
        addresses
            .iter()
            .try_for_each(|addr| self.get(addr).map(drop))?;
        for addr in addresses.iter() {
            let at = self.addresses.get(addr.as_raw() as usize);
            let _ = at.map(|at| at.store(0, Relaxed));
        }
        Ok(())
    }

    fn lookup(&self, addr: FabricAddr, found: impl FnOnce(&[u8])) -> Result {
        found(&self.get(addr)?.to_le_bytes());
        Ok(())
    }

    fn text(&self, address: &[u8]) -> Option<impl fmt::Display> {
        Some(u64::from_le_bytes(address.try_into().ok()?))
    }
}
