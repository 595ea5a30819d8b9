// SPDX-License-Identifier: GPL-2.0

//! Address vectors.

use kfi::{AddressVector, AvAttr, AvType, Caps, EpInfo, KfiErrno};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::pair::{needs, End, Setup};
use crate::rig::{expect_busy, expect_fabric, Rig};
use crate::{check, check_eq, tests};

tests! {
    "av";
    "insert-lookup-remove" ["kfi_domain.h"] insert_lookup_remove;
    "tables-count-from-zero" ["kfi_domain.h"] tables;
    "names-of-nodes" ["kfi_domain.h"] names_of_nodes;
    "texts" ["kfi_domain.h"] texts;
    "bad-arguments" ["kfi_domain.h"] bad_arguments;
}

/// A vector of a type, and addresses of endpoints.
fn open(rig: &Rig, av_type: AvType, count: usize) -> Result<(AddressVector, Vec<End>), Stop> {
    needs(&rig.info.entries()[0], Caps::MSG)?;
    let av = rig.domain.address_vector(&AvAttr {
        av_type,
        ..AvAttr::default()
    })?;
    let mut ends = Vec::new();
    for _ in 0..count {
        let entry = EpInfo::Entry(&rig.info, 0);
        let mut end = End::open(&rig.domain, entry, &Setup::default())?;
        end.enable()?;
        ends.push(end);
    }
    Ok((av, ends))
}

fn insert_lookup_remove(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for av_type in [AvType::MAP, AvType::TABLE] {
        let (av, ends) = open(&rig, av_type, 5)?;
        check_eq!(av.av_type(), av_type);
        let len = ends[0].name.len();
        let all: Vec<u8> = ends.iter().flat_map(|end| end.name.clone()).collect();
        let inserted = av.insert_all(&all, 5, 0, 0)?;
        check_eq!(inserted.count, 5);
        for (addr, end) in inserted.addrs.iter().zip(&ends) {
            check_eq!(av.lookup(*addr, len)?, (end.name.clone(), len));
            // Cut off, and the length that it needs.
            check_eq!(av.lookup(*addr, 3)?, (end.name[..3].to_vec(), len));
        }
        av.remove(&inserted.addrs[1..3])?;
        for (index, addr) in inserted.addrs.iter().enumerate() {
            let found = av.lookup(*addr, len);
            if (1..3).contains(&index) {
                expect_fabric(found, KfiErrno::EINVAL)?;
                expect_fabric(av.remove(&[*addr]), KfiErrno::EINVAL)?;
            } else {
                check_eq!(found?.0, ends[index].name);
            }
        }
        // A peer that is down is inserted as well.
        let gone = ends[4].name.clone();
        drop(ends);
        let addr = av.insert(&gone)?;
        check_eq!(av.lookup(addr, len)?.0, gone);
        av.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn tables(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::TABLE, 1)?;
    for index in 0..env.scaled(1_000, 100) {
        check_eq!(av.insert(&ends[0].name)?, index);
    }
    expect_busy(rig.session.close_handle(rig.domain.handle()))?;
    drop((av, ends));
    rig.close()
}

fn names_of_nodes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 0)?;
    let domain = rig.info.entries()[0].domain_attr.name.clone();
    let node = std::ffi::CString::new(domain)?;
    let inserted = match av.insert_service(&node, c"77", 0) {
        Err(kfi::Error::Fabric(KfiErrno::ENOSYS)) => {
            return Err(Stop::Skip("nodes have no names".to_owned()));
        }
        inserted => inserted?,
    };
    check_eq!(inserted.count, 1);
    let (first, len) = av.lookup(inserted.addrs[0], 64)?;
    let again = av.insert_service(&node, c"77", 0)?;
    check_eq!(av.lookup(again.addrs[0], 64)?, (first.clone(), len));
    let other = av.insert_service(&node, c"78", 0)?;
    check!(av.lookup(other.addrs[0], 64)?.0 != first, "two ports");
    // Something that is no node, and no port.
    for (node, service) in [(c"nobody", c"1"), (c"", c"1")] {
        let inserted = av.insert_service(node, service, 0);
        check!(
            !matches!(&inserted, Ok(inserted) if inserted.count != 0),
            "{node:?} is inserted"
        );
    }
    let inserted = av.insert_service(&node, c"x", 0);
    check!(
        !matches!(&inserted, Ok(inserted) if inserted.count != 0),
        "port x is inserted"
    );
    // Ports that count up.
    let inserted = av.insert_symmetric(&node, 1, c"100", 4, 0)?;
    check_eq!(inserted.count, 4);
    for (addr, service) in inserted.addrs.iter().zip([c"100", c"101", c"102", c"103"]) {
        let same = av.insert_service(&node, service, 0)?;
        check_eq!(av.lookup(*addr, 64)?, av.lookup(same.addrs[0], 64)?);
    }
    drop((av, ends));
    rig.close()
}

fn texts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 2)?;
    let (text, len) = av.straddr(&ends[0].name, 64)?;
    check_eq!(text.len() + 1, len, "the length of {text:?}");
    let (other, _) = av.straddr(&ends[1].name, 64)?;
    check!(text != other, "two addresses are {text:?}");
    // Cut off, with its end, and the length that it needs.
    let (short, needed) = av.straddr(&ends[0].name, 4)?;
    check_eq!((short.as_str(), needed), (&text[..3], len));
    drop((av, ends));
    rig.close()
}

fn bad_arguments(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (av, ends) = open(&rig, AvType::MAP, 0)?;
    let attr = |change: fn(&mut AvAttr)| {
        let mut attr = AvAttr::default();
        change(&mut attr);
        rig.domain.address_vector(&attr)
    };
    expect_fabric(attr(|attr| attr.av_type = AvType(77)), KfiErrno::EINVAL)?;
    for bits in [-1, 64, 1000] {
        let result = rig.domain.address_vector(&AvAttr {
            rx_ctx_bits: bits,
            ..AvAttr::default()
        });
        check!(result.is_err(), "{bits} bits for contexts");
    }
    check!(attr(|attr| attr.flags = 1 << 50).is_err(), "unknown flags");
    // Nothing there.
    for addr in [0, 1, 1 << 40, u64::MAX] {
        expect_fabric(av.lookup(addr, 8), KfiErrno::EINVAL)?;
        expect_fabric(av.remove(&[addr]), KfiErrno::EINVAL)?;
    }
    drop((av, ends));
    rig.close()
}
