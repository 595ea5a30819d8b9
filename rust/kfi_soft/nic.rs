// SPDX-License-Identifier: GPL-2.0

//! Virtual NICs.
//!
//! They have numbers from `nic_base` on or, if they are given IPv4 addresses, the low 20 bits of these.
//! All NICs that reach each other have the upper 12 bits in common, which name their fabric; without
//! addresses these are those of 127.0.0.0.
//!
//! NICs with addresses come and go while the module is loaded ([`hotplug`](crate::hotplug)): each has a
//! place, where nothing is, or a NIC with as many uses as there are open domains on it. NICs without stay, but
//! all of them make place for the first one with an address, which names another fabric.

#![forbid(unsafe_code)]

use core::net::Ipv4Addr;
use kernel::{
    fmt,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        SetOnce, //
    }, //
};

use crate::{
    address::native::{
        self,
        Address, //
    },
    limits,
    personality, //
};

/// The upper bits of the addresses of NICs that were given none.
const LOOPBACK: u32 = 127 << 24;

/// A NIC of this node: where it is among them, and its number. One with an address may be gone already,
/// and another one be in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nic {
    index: u32,
    number: u32,
}

/// A place for a NIC.
///
/// As [`Dependents`](crate::kfi::hold::Dependents) does for an object that is closed once, it keeps the
/// number of uses and whether there may be any in one word. A place is filled again, so the word says of
/// which NIC they are, too.
///
/// # Invariants
///
/// The word is 0 if there is none, else [`Self::TAKEN`], with its number below that and the number of its
/// uses above.
struct Slot(Atomic<u64>);

impl Slot {
    /// There is a NIC.
    const TAKEN: u64 = 1 << 32;
    /// One use.
    const USE: u64 = Self::TAKEN << 1;

    /// Without a NIC.
    const fn vacant() -> Self {
        // INVARIANT: There is none.
        Self(Atomic::new(0))
    }

    /// Returns the word of a NIC that nobody uses.
    fn unused(number: u32) -> u64 {
        Self::TAKEN | u64::from(number)
    }

    /// Returns the number of the NIC, if there is one.
    #[inline]
    fn number(&self) -> Option<u32> {
        // Relaxed: what belongs to a place is there from the beginning, or has a lock.
        let word = self.0.load(ordering::Relaxed);
        // The lower half.
        (word & Self::TAKEN != 0).then_some(word as u32)
    }

    /// Puts a NIC there; `false` if there is one.
    fn fill(&self, number: u32) -> bool {
        // INVARIANT: There was none, and nobody uses it yet.
        // Release: a thread that uses it sees all that was done to make it.
        // See `qemu-test/litmus/KFI-hold-open.litmus`.
        self.0
            .cmpxchg(0, Self::unused(number), ordering::Release)
            .is_ok()
    }

    /// Takes the NIC of a number away; `EBUSY` if somebody uses it, `ENOENT` if there is none such.
    fn empty(&self, number: u32) -> Result {
        // INVARIANT: Nobody uses it, and nobody will: `hold` fails from here on.
        // Full: acquires what its users have released, and what is done to end it does not move up.
        // See `qemu-test/litmus/KFI-hold-close.litmus`.
        match self.0.cmpxchg(Self::unused(number), 0, ordering::Full) {
            Ok(_) => Ok(()),
            Err(word) if Self::is_of(word, number) => Err(EBUSY),
            Err(_) => Err(ENOENT),
        }
    }

    /// Returns whether a word says that there is the NIC of a number.
    fn is_of(word: u64, number: u32) -> bool {
        word & Self::TAKEN != 0 && word as u32 == number
    }

    /// Begins a use of the NIC of a number, which stays until that ends; `false` if there is none such.
    fn hold(&self, number: u32) -> bool {
        // Relaxed: `cmpxchg` validates the value.
        let mut old = self.0.load(ordering::Relaxed);
        while Self::is_of(old, number) {
            let Some(new) = old.checked_add(Self::USE) else {
                return false;
            };
            // INVARIANT: There is one use more.
            // Acquire: what follows does not move before the NIC is known to stay.
            match self.0.cmpxchg(old, new, ordering::Acquire) {
                Ok(_) => return true,
                Err(current) => old = current,
            }
        }
        false
    }

    /// Ends a use that [`Self::hold`] has begun.
    fn release(&self) {
        // INVARIANT: The caller was a user, so there is one use less.
        // Release: pairs with the acquire in `empty`, which must see all that the user did.
        // See `qemu-test/litmus/KFI-hold-close.litmus`.
        self.0.fetch_sub(Self::USE, ordering::Release);
    }
}

/// The NICs of this node.
pub(crate) struct Nics {
    /// A place for each.
    slots: [Slot; limits::MAX_NICS as usize],
    /// So many places have had a NIC: there is none behind them.
    places: Atomic<u32>,
    /// The number of the first one, when the module was loaded.
    first: u32,
    /// So many have numbers in a row from there on, as long as they have no addresses.
    row: u32,
    /// The bits of their addresses that are no number, from when they were given some, by which they reach
    /// those of other machines.
    network: SetOnce<u32>,
    /// The name of the fabric, from before that.
    fabric_name: SetOnce<FabricName>,
}

/// The name of a fabric whose NICs have addresses, with a null.
pub(crate) struct FabricName([u8; 32]);

impl FabricName {
    /// The name of the fabric with these upper bits of an address, the lower ones 0.
    pub(crate) fn new(fabric: u32) -> Result<Self> {
        let name = personality::current().fabric_name();
        let [a, b, c, d] = fabric.to_be_bytes();
        let text = CString::try_from_fmt(fmt!("{}:{}.{}.{}.{}/12", name, a, b, c, d))?;
        let bytes = text.to_bytes_with_nul();
        let mut name = [0; 32];
        name.get_mut(..bytes.len())
            .ok_or(EINVAL)?
            .copy_from_slice(bytes);
        Ok(Self(name))
    }
}

/// The NICs of this node, from when the module is initialised.
static NICS: SetOnce<Nics> = SetOnce::new();

/// Why NICs cannot have the addresses that they were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong<'a> {
    /// This is none.
    NoAddress(&'a [u8]),
    /// This is one of IPv6.
    Inet6(&'a [u8]),
    /// This is a network device, which has none.
    DeviceWithoutAddress(&'a [u8]),
    /// No machine can have this one.
    NotOfMachine(&'a [u8]),
    /// This one is on another fabric than those before.
    OtherFabric(&'a [u8]),
    /// Another NIC has this one.
    Twice(&'a [u8]),
    /// There are too many.
    TooMany,
}

impl Wrong<'_> {
    /// Returns the error for those who write to the parameter of the loaded module.
    pub(crate) fn error(self) -> Error {
        match self {
            Self::NoAddress(_) | Self::NotOfMachine(_) => EINVAL,
            Self::Inet6(_) => EAFNOSUPPORT,
            Self::DeviceWithoutAddress(_) => EADDRNOTAVAIL,
            Self::OtherFabric(_) => ERANGE,
            Self::Twice(_) => EEXIST,
            Self::TooMany => ENOSPC,
        }
    }

    /// Returns the error for those who load the module: of others, such as `EEXIST`, the commands that do
    /// that believe to know what they mean.
    pub(crate) fn error_at_load(self) -> Error {
        match self {
            Self::DeviceWithoutAddress(_) => EADDRNOTAVAIL,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, what): (&[u8], _) = match self {
            Self::NoAddress(text) => (text, "no IPv4 address, and no network device has that name"),
            Self::Inet6(text) => (text, "addresses of IPv6 are not supported"),
            Self::DeviceWithoutAddress(text) => (text, "this network device has no IPv4 address"),
            Self::NotOfMachine(text) => (text, "no machine can have it"),
            Self::OtherFabric(text) => (
                text,
                "on another fabric than the first one, as the upper 12 bits differ",
            ),
            Self::Twice(text) => (text, "another NIC has it"),
            Self::TooMany => (b"", "too many NICs"),
        };
        let text = kernel::str::BStr::from_bytes(text);
        f.write_fmt(fmt!("{}: {}", text, what))
    }
}

/// Reads the IPv4 address that a NIC is to have, or finds that of the network device whose name it is: by
/// `device`, whose error is `ENODEV` if there is none of that name.
pub(crate) fn parse(
    text: &[u8],
    device: impl FnOnce(&[u8]) -> Result<Ipv4Addr>,
) -> core::result::Result<u32, Wrong<'_>> {
    let address = match native::inet(text) {
        Some(address) => address,
        // No network device has that in its name.
        None if text.contains(&b':') => return Err(Wrong::Inet6(text)),
        None => match device(text) {
            Ok(address) => address.to_bits(),
            Err(EADDRNOTAVAIL) => return Err(Wrong::DeviceWithoutAddress(text)),
            Err(_) => return Err(Wrong::NoAddress(text)),
        },
    };
    let [first, ..] = address.to_be_bytes();
    // This network, and the addresses of groups and what is reserved.
    if first == 0 || first >= 224 {
        return Err(Wrong::NotOfMachine(text));
    }
    Ok(address)
}

impl Nics {
    /// None, the first of which is to have this number.
    fn none(first: u32) -> Self {
        Self {
            slots: [const { Slot::vacant() }; limits::MAX_NICS as usize],
            places: Atomic::new(0),
            first,
            row: 0,
            network: SetOnce::new(),
            fabric_name: SetOnce::new(),
        }
    }

    /// NICs without addresses, with so many numbers from one on; `EINVAL` if there are none such.
    pub(crate) fn numbered(base: u32, count: u32) -> Result<Self> {
        check_count(count)?;
        check_base(base, count)?;
        let mut this = Self::none(base);
        this.row = count;
        for index in 0..count {
            this.put(Nic {
                index,
                number: base.wrapping_add(index),
            })?;
        }
        Ok(this)
    }

    /// NICs with addresses, of a list with commas between them; for `device` see [`parse`].
    pub(crate) fn addressed(
        list: &[u8],
        device: impl Fn(&[u8]) -> Result<Ipv4Addr>,
    ) -> core::result::Result<Self, Wrong<'_>> {
        let mut this = None;
        for text in list.split(|byte| *byte == b',') {
            let address = parse(text, &device)?;
            let number = address & Address::MAX_NIC;
            let nics: &Self = this.get_or_insert_with(|| {
                let none = Self::none(number);
                none.network.populate(address ^ number);
                none
            });
            let nic = nics.place_for(address, text)?;
            nics.put(nic).map_err(|_| Wrong::Twice(text))?;
        }
        // Each list has something, and be it nothing.
        this.ok_or(Wrong::NoAddress(list))
    }

    /// Makes these the NICs of this node.
    pub(crate) fn use_them(self) -> Result {
        if let Some(fabric) = self.network.as_ref() {
            self.fabric_name.populate(FabricName::new(*fabric)?);
        }
        // Once, as a module is initialised once.
        NICS.populate(self);
        Ok(())
    }

    /// Returns whether they have addresses.
    #[inline]
    fn has_network(&self) -> bool {
        self.network.as_ref().is_some()
    }

    /// Returns the bits of their addresses that are no number.
    fn fabric(&self) -> u32 {
        self.network.as_ref().copied().unwrap_or(LOOPBACK)
    }

    /// Returns those without addresses, unless they have some by now.
    fn without_addresses(&self) -> impl Iterator<Item = Nic> {
        let (first, row) = (self.first, self.row);
        let row = if self.has_network() { 0 } else { row };
        (0..row).map(move |index| Nic {
            index,
            number: first.wrapping_add(index),
        })
    }

    /// Puts the first one with an address, and that fabric, in place of all that have none; `EBUSY`, and nothing
    /// changes, if somebody uses one of these.
    fn begin_network(&self, address: u32, name: FabricName) -> Result<Nic> {
        for nic in self.without_addresses() {
            let result = self.slot(nic.index).ok_or(EINVAL)?.empty(nic.number);
            if let Err(error) = result {
                // The NICs before it stay as well.
                for before in self.without_addresses().take_while(|before| *before != nic) {
                    self.put(before)?;
                }
                return Err(error);
            }
        }
        let number = address & Address::MAX_NIC;
        // Before: it is read when there is a network.
        self.fabric_name.populate(name);
        self.network.populate(address ^ number);
        // All places are free.
        let nic = Nic { index: 0, number };
        self.put(nic)?;
        Ok(nic)
    }

    /// Returns a place.
    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(usize::try_from(index).ok()?)
    }

    /// Returns those that are there, each of which may go at any time if it has an address.
    fn present(&self) -> impl Iterator<Item = Nic> + '_ {
        (0..).zip(&self.slots).filter_map(|(index, slot)| {
            let number = slot.number()?;
            Some(Nic { index, number })
        })
    }

    /// Returns whether a NIC that was found has not gone since. If another one has come in its place, whoever
    /// has seen what consumers have done with that one sees that, too.
    #[inline]
    fn has(&self, nic: Nic) -> bool {
        // The others stay.
        !self.has_network() || self.slot(nic.index).and_then(Slot::number) == Some(nic.number)
    }

    /// Finds a place for a NIC with an address, which was given as `text`.
    fn place_for<'a>(&self, address: u32, text: &'a [u8]) -> core::result::Result<Nic, Wrong<'a>> {
        let number = address & Address::MAX_NIC;
        if self.fabric() != address ^ number {
            return Err(Wrong::OtherFabric(text));
        }
        if self.find(number).is_some() {
            return Err(Wrong::Twice(text));
        }
        let mut slots = (0..).zip(&self.slots);
        let vacant = slots.find(|(_, slot)| slot.number().is_none());
        let (index, _) = vacant.ok_or(Wrong::TooMany)?;
        Ok(Nic { index, number })
    }

    /// Puts a NIC into its place; `EBUSY` if there is another one.
    fn put(&self, nic: Nic) -> Result {
        let slot = self.slot(nic.index).ok_or(EINVAL)?;
        // Before: where it is, it is looked for.
        let places = nic.index.saturating_add(1);
        // Relaxed: a thread that does not see it yet has come before the NIC.
        if self.places.load(ordering::Relaxed) < places {
            self.places.store(places, ordering::Relaxed);
        }
        if slot.fill(nic.number) {
            Ok(())
        } else {
            Err(EBUSY)
        }
    }

    /// Returns the NIC of a number, if it is one of these.
    #[inline]
    fn find(&self, number: u32) -> Option<Nic> {
        let index = number.wrapping_sub(self.first);
        if !self.has_network() {
            return (index < self.row).then_some(Nic { index, number });
        }
        // Relaxed: see `put`.
        let places = self.places.load(ordering::Relaxed);
        let is_there = |index: &u32| self.slot(*index).and_then(Slot::number) == Some(number);
        // Mostly they are in a row.
        let in_a_row = Some(index).filter(|index| *index < places && is_there(index));
        let index = in_a_row.or_else(|| (0..places).find(is_there))?;
        Some(Nic { index, number })
    }
}

impl Nic {
    /// Returns all.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        NICS.as_ref().into_iter().flat_map(Nics::present)
    }

    /// The NIC of a number; `None` if this node has none such.
    #[inline]
    pub(crate) fn new(number: u32) -> Option<Self> {
        NICS.as_ref()?.find(number)
    }

    /// Returns whether it has not gone since it was found. With the lock of what belongs to its place, where
    /// nothing is of NICs that have gone: if so, nothing there is of another one.
    #[inline]
    pub(crate) fn is_there(self) -> bool {
        NICS.as_ref().is_some_and(|nics| nics.has(self))
    }

    /// Finds a NIC of this node by its name.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Self::new(number(name)?)
    }

    /// Returns the NIC that is to be added with an address, which was given as `text`. By the thread that may
    /// change the NICs.
    pub(crate) fn prepare(address: u32, text: &[u8]) -> core::result::Result<Self, Wrong<'_>> {
        let nics = NICS.as_ref().ok_or(Wrong::TooMany)?;
        nics.place_for(address, text)
    }

    /// From here on it is one of this node. By the thread that has asked [`Self::prepare`], and has done
    /// what a NIC needs.
    pub(crate) fn add(self) -> Result {
        NICS.as_ref().ok_or(ENODEV)?.put(self)
    }

    /// Returns those that have no addresses, which is all of them or none.
    pub(crate) fn without_addresses() -> impl Iterator<Item = Self> {
        NICS.as_ref().into_iter().flat_map(Nics::without_addresses)
    }

    /// From here on there is a network, with one NIC that has this address, in the first place, and none without
    /// address; `EBUSY`, and nothing changes, if somebody uses one of those. By the thread that may change the
    /// NICs, where there is no network.
    pub(crate) fn begin_network(address: u32, name: FabricName) -> Result<Self> {
        NICS.as_ref().ok_or(ENODEV)?.begin_network(address, name)
    }

    /// From here on it is none of this node; `EBUSY`, and nothing changes, if somebody uses it. By the
    /// thread that may change the NICs.
    pub(crate) fn remove(self) -> Result {
        let slot = NICS.as_ref().and_then(|nics| nics.slot(self.index));
        slot.ok_or(ENOENT)?.empty(self.number)
    }

    /// Returns its number, which is part of its address.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// Returns where it is among the NICs of the node, from 0.
    pub(crate) fn index(self) -> usize {
        // At most `MAX_NICS`.
        self.index as usize
    }

    /// Returns its IPv4 address.
    pub(crate) fn inet(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(inet(self.number))
    }

    /// Returns its name.
    pub(crate) fn name(self) -> Result<CString> {
        CString::try_from_fmt(fmt!("{}{}", personality::current().nic_name(), self.index))
    }
}

/// A use of a NIC, which stays meanwhile.
///
/// # Invariants
///
/// `held` says whether this is one of the uses in the place of `nic`.
pub(crate) struct NicUse {
    nic: Nic,
    held: Atomic<bool>,
}

impl NicUse {
    /// Begins to use a NIC; `ENODEV` if it has gone.
    pub(crate) fn new(nic: Nic) -> Result<Self> {
        let slot = NICS.as_ref().and_then(|nics| nics.slot(nic.index));
        if !slot.is_some_and(|slot| slot.hold(nic.number)) {
            return Err(ENODEV);
        }
        // INVARIANT: It has just been counted.
        Ok(Self {
            nic,
            held: Atomic::new(true),
        })
    }

    /// Returns the NIC.
    pub(crate) fn nic(&self) -> Nic {
        self.nic
    }

    /// Ends the use. To do it again has no effect.
    pub(crate) fn release(&self) {
        // INVARIANT: The thread that takes `held` from `true` to `false` removes the count.
        // Full: what was done to the NIC comes before that.
        // See `qemu-test/litmus/KFI-once.litmus`.
        if !self.held.xchg(false, ordering::Full) {
            return;
        }
        if let Some(slot) = NICS.as_ref().and_then(|nics| nics.slot(self.nic.index)) {
            slot.release();
        }
    }
}

impl Drop for NicUse {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns whether those of other machines can be reached. Once it is so it stays.
pub(crate) fn has_network() -> bool {
    NICS.as_ref().is_some_and(Nics::has_network)
}

/// Returns the upper bits of the addresses, which name the fabric.
pub(crate) fn fabric() -> u32 {
    NICS.as_ref().map_or(LOOPBACK, Nics::fabric)
}

/// Returns the name of the fabric, which tells the upper bits if NICs have addresses.
pub(crate) fn fabric_name() -> &'static CStr {
    NICS.as_ref()
        .filter(|nics| nics.has_network())
        .and_then(|nics| nics.fabric_name.as_ref())
        .and_then(|name| CStr::from_bytes_until_nul(&name.0).ok())
        .unwrap_or(personality::current().fabric_name())
}

/// Returns the IPv4 address of the NIC with a number.
pub(crate) fn inet(number: u32) -> u32 {
    fabric() | number
}

/// Returns the number of the NIC that has an IPv4 address; `None` if it is on another fabric.
pub(crate) fn of_inet(address: u32) -> Option<u32> {
    let number = address & Address::MAX_NIC;
    (inet(number) == address).then_some(number)
}

/// Returns the number that the NIC of a name has. Where NICs have no addresses this node need not have
/// that NIC.
pub(crate) fn number(name: &[u8]) -> Option<u32> {
    let digits = name.strip_prefix(personality::current().nic_name().as_bytes())?;
    // A NIC has one name.
    let index = native::plain_decimal(digits)?;
    let nics = NICS.as_ref()?;
    if nics.has_network() {
        return nics.slot(index)?.number();
    }
    nics.first
        .checked_add(index)
        .filter(|number| *number <= Address::MAX_NIC)
}

/// `EINVAL` unless a machine may have as many NICs.
fn check_count(count: u32) -> Result {
    if (1..=limits::MAX_NICS).contains(&count) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// `EINVAL` unless so many NICs from the number `base` on have numbers.
fn check_base(base: u32, count: u32) -> Result {
    match base.checked_add(count.saturating_sub(1)) {
        Some(last) if last <= Address::MAX_NIC => Ok(()),
        _ => Err(EINVAL),
    }
}

#[kunit_tests(kfi_soft_nic)]
mod tests {
    use super::*;

    /// A machine without network devices.
    fn addressed(list: &[u8]) -> core::result::Result<Nics, Wrong<'_>> {
        Nics::addressed(list, |_| Err(ENODEV))
    }

    /// Returns where the NIC of a number is.
    fn index_of(nics: &Nics, number: u32) -> Option<u32> {
        nics.find(number).map(|nic| nic.index)
    }

    #[test]
    fn nics_have_one_name() -> Result {
        let first = Nic::all().next().ok_or(ENODEV)?;
        assert!(Nic::find(first.name()?.to_bytes()) == Some(first));
        let base = first.number;
        let last = Address::MAX_NIC - base;
        let name = |index| Nic { index, number: 0 }.name();
        if !has_network() {
            for index in [0, 1, 63, last].into_iter().filter(|index| *index <= last) {
                assert!(super::number(name(index)?.to_bytes()) == Some(base + index));
            }
        }
        assert!(super::number(name(last + 1)?.to_bytes()).is_none());
        let prefix = personality::current().nic_name();
        for rest in ["", "00", "01", "+1", "-1", "0 ", "x", "4294967296"] {
            let name = CString::try_from_fmt(fmt!("{}{}", prefix, rest))?;
            assert!(super::number(name.to_bytes()).is_none());
        }
        assert!(super::number(b"Soft0").is_none());
        assert!(super::number(b"").is_none());
        Ok(())
    }

    #[test]
    fn a_node_has_its_nics_only() -> Result {
        let nics = Nics::numbered(7, 3)?;
        assert!(nics.find(6).is_none());
        assert_eq!(index_of(&nics, 7), Some(0));
        assert_eq!(index_of(&nics, 9), Some(2));
        assert!(nics.find(10).is_none());
        assert!(Nics::numbered(0, 1)?.find(u32::MAX).is_none());
        assert!(Nic::all().count() <= limits::MAX_NICS as usize);
        for nic in Nic::all() {
            assert_eq!(Nic::new(nic.number()), Some(nic));
        }
        Ok(())
    }

    #[test]
    fn limits_of_nics() {
        assert!(check_count(1).is_ok());
        assert!(check_count(limits::MAX_NICS).is_ok());
        assert!(check_count(0).is_err());
        assert!(check_count(limits::MAX_NICS + 1).is_err());
        assert!(check_base(0, limits::MAX_NICS).is_ok());
        assert!(check_base(Address::MAX_NIC, 1).is_ok());
        assert!(check_base(Address::MAX_NIC, 2).is_err());
        assert!(check_base(u32::MAX, 2).is_err());
    }

    #[test]
    fn addresses_have_numbers() -> Result {
        let nics = addressed(b"10.16.3.7,10.31.255.255,10.16.0.0").map_err(Wrong::error)?;
        let numbers = [0x307, Address::MAX_NIC, 0];
        assert!(nics.present().map(Nic::number).eq(numbers));
        assert_eq!(nics.fabric(), u32::from_be_bytes([10, 16, 0, 0]));
        assert_eq!(index_of(&nics, 0), Some(2));
        assert_eq!(index_of(&nics, Address::MAX_NIC), Some(1));
        assert_eq!(nics.find(1), None);
        let row = addressed(b"127.0.0.1,127.0.0.2,127.0.0.3");
        assert!(row.is_ok_and(|row| index_of(&row, 3) == Some(2)));
        Ok(())
    }

    #[test]
    fn addresses_that_nics_cannot_have() {
        let wrong = |list| addressed(list).err();
        assert_eq!(wrong(b"10.0.0.256"), Some(Wrong::NoAddress(b"10.0.0.256")));
        assert_eq!(wrong(b"10.0.0.1,"), Some(Wrong::NoAddress(b"")));
        assert_eq!(wrong(b""), Some(Wrong::NoAddress(b"")));
        assert_eq!(wrong(b"eth0"), Some(Wrong::NoAddress(b"eth0")));
        assert_eq!(wrong(b"10.0.0.1 "), Some(Wrong::NoAddress(b"10.0.0.1 ")));
        assert_eq!(wrong(b"fe80::1"), Some(Wrong::Inet6(b"fe80::1")));
        assert_eq!(wrong(b"0.0.0.0"), Some(Wrong::NotOfMachine(b"0.0.0.0")));
        assert_eq!(wrong(b"224.0.0.1"), Some(Wrong::NotOfMachine(b"224.0.0.1")));
        assert_eq!(
            wrong(b"10.0.0.1,10.16.0.2"),
            Some(Wrong::OtherFabric(b"10.16.0.2"))
        );
        assert_eq!(
            wrong(b"10.0.0.1,10.0.0.2,10.0.0.1"),
            Some(Wrong::Twice(b"10.0.0.1"))
        );
    }

    #[test]
    fn network_devices_stand_for_their_addresses() {
        let device = |name: &[u8]| match name {
            b"eth0" => Ok(Ipv4Addr::new(10, 0, 3, 7)),
            b"eth1" => Err(EADDRNOTAVAIL),
            b"lo" => Ok(Ipv4Addr::new(127, 0, 0, 1)),
            _ => Err(ENODEV),
        };
        let nics = |list| Nics::addressed(list, device);
        let both = nics(b"10.0.0.1,eth0");
        assert!(both.is_ok_and(|nics| index_of(&nics, 0x307) == Some(1)));
        let wrong = |list| nics(list).err();
        assert_eq!(wrong(b"eth1"), Some(Wrong::DeviceWithoutAddress(b"eth1")));
        assert_eq!(wrong(b"eth2"), Some(Wrong::NoAddress(b"eth2")));
        assert_eq!(wrong(b"10.0.3.7,eth0"), Some(Wrong::Twice(b"eth0")));
        assert_eq!(wrong(b"eth0,lo"), Some(Wrong::OtherFabric(b"lo")));
    }

    #[test]
    fn as_many_addresses_as_there_are_nics() -> Result {
        let mut list = KVec::new();
        for last in 1..=limits::MAX_NICS {
            let text = CString::try_from_fmt(fmt!("10.0.0.{},", last))?;
            list.extend_from_slice(text.to_bytes(), GFP_KERNEL)?;
        }
        let most = list.get(..list.len() - 1).unwrap_or(&[]);
        let all = limits::MAX_NICS as usize;
        assert!(addressed(most).is_ok_and(|nics| nics.present().count() == all));
        list.extend_from_slice(b"10.0.0.65", GFP_KERNEL)?;
        assert_eq!(addressed(&list).err(), Some(Wrong::TooMany));
        Ok(())
    }

    #[test]
    fn a_nic_that_is_used_stays() {
        let slot = Slot::vacant();
        assert_eq!(slot.number(), None);
        assert!(!slot.hold(0));
        assert_eq!(slot.empty(0), Err(ENOENT));
        for number in [0, 1, Address::MAX_NIC] {
            assert!(slot.fill(number));
            assert!(!slot.fill(7));
            assert_eq!(slot.number(), Some(number));
            assert!(!slot.hold(7));
            assert!(slot.hold(number) && slot.hold(number));
            assert_eq!(slot.empty(7), Err(ENOENT));
            assert_eq!(slot.empty(number), Err(EBUSY));
            slot.release();
            assert_eq!(slot.empty(number), Err(EBUSY));
            assert_eq!(slot.number(), Some(number));
            slot.release();
            assert_eq!(slot.empty(number), Ok(()));
            assert_eq!(slot.number(), None);
            assert!(!slot.hold(number));
        }
    }

    #[test]
    fn those_without_addresses_make_place_for_the_first_one() -> Result {
        let nics = Nics::numbered(7, 3)?;
        let address = u32::from_be_bytes([10, 0, 0, 8]);
        let begin = || nics.begin_network(address, FabricName::new(0)?);
        // The one that stays keeps all of them.
        let used = nics.slot(1).ok_or(EINVAL)?;
        assert!(used.hold(8));
        assert_eq!(begin(), Err(EBUSY));
        assert!(!nics.has_network());
        assert!(nics.present().map(Nic::number).eq([7, 8, 9]));
        assert!(nics.without_addresses().eq(nics.present()));
        used.release();
        let nic = begin()?;
        assert_eq!((nic.index, nic.number), (0, 8));
        assert!(nics.present().eq([nic]));
        assert_eq!(nics.find(8), Some(nic));
        assert_eq!((nics.find(7), nics.find(9)), (None, None));
        assert_eq!(nics.without_addresses().count(), 0);
        assert_eq!(nics.fabric(), u32::from_be_bytes([10, 0, 0, 0]));
        let other = nics.place_for(u32::from_be_bytes([10, 0, 0, 7]), b"10.0.0.7");
        assert!(other.is_ok_and(|other| other.index == 1));
        Ok(())
    }

    #[test]
    fn a_place_is_used_again() -> Result {
        let nics = addressed(b"10.0.0.1,10.0.0.2,10.0.0.3").map_err(Wrong::error)?;
        let prepare = |address: &'static [u8; 8]| {
            let bits = native::inet(address).unwrap_or(0);
            nics.place_for(bits, address)
        };
        assert_eq!(prepare(b"10.0.0.2"), Err(Wrong::Twice(b"10.0.0.2")));
        assert_eq!(prepare(b"10.0.0.9").map(|nic| nic.index), Ok(3));
        let gone = nics.find(2).ok_or(EINVAL)?;
        assert!(nics.has(gone));
        nics.slot(1).ok_or(EINVAL)?.empty(2)?;
        assert!(!nics.has(gone));
        assert_eq!(nics.find(2), None);
        assert_eq!(index_of(&nics, 3), Some(2));
        let nic = prepare(b"10.0.0.9").map_err(Wrong::error)?;
        assert_eq!(nic.index, 1);
        assert_eq!(nics.find(9), None);
        nics.put(nic)?;
        assert!(nics.has(nic) && !nics.has(gone));
        assert_eq!(nics.find(9), Some(nic));
        assert_eq!(nics.put(nic), Err(EBUSY));
        assert!(nics.present().map(Nic::number).eq([1, 9, 3]));
        Ok(())
    }
}
