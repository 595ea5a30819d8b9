// SPDX-License-Identifier: GPL-2.0

//! The forms of an operation.

use kfi::{BufferKind, Form};

use super::{Area, Pair, KINDS};
use crate::check::{Outcome, Stop};
use crate::{check, check_eq};

/// Forms that take several pieces of memory.
pub fn takes_pieces(form: Form) -> bool {
    [
        Form::V,
        Form::BV,
        Form::SGL,
        Form::MSG,
        Form::MSG_BV,
        Form::MSG_SGL,
    ]
    .contains(&form)
}

/// Forms that take memory without an address.
pub fn takes_pages(form: Form) -> bool {
    [Form::BV, Form::SGL, Form::MSG_BV, Form::MSG_SGL].contains(&form)
}

/// Forms that take memory which is free on return, and never complete well.
pub fn injects(form: Form) -> bool {
    [Form::INJECT, Form::INJECT_DATA].contains(&form)
}

/// Forms that carry data to the peer's queue.
pub fn carries_data(form: Form) -> bool {
    [Form::DATA, Form::INJECT_DATA].contains(&form)
}

/// All forms of an operation.
pub const FORMS: [Form; 10] = [
    Form::PLAIN,
    Form::V,
    Form::BV,
    Form::SGL,
    Form::MSG,
    Form::MSG_BV,
    Form::MSG_SGL,
    Form::INJECT,
    Form::DATA,
    Form::INJECT_DATA,
];

/// Runs a check for all kinds and offsets of memory, sizes and forms; returns how often.
pub fn in_all_forms(
    pair: &Pair,
    mut check: impl FnMut(&Area, &Area, u64, Form) -> Outcome,
) -> Result<u64, Stop> {
    let mut count = 0;
    let sizes = pair.sizes();
    let largest = sizes.iter().copied().max().unwrap_or_default();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let offset = [0, 1, 4093][index];
        let from = Area::new(&pair.rig.session, kind, offset, largest)?;
        let to = Area::new(&pair.rig.session, kind, 4096 - offset, largest)?;
        for size in &sizes {
            for form in FORMS {
                // Pages that do not lie together are a piece each, and some are cut.
                let pages = (from.offset + *size).div_ceil(4096) + 8;
                if kind == BufferKind::PAGES && !takes_pages(form)
                    || injects(form) && *size > pair.entry().tx_attr.inject_size
                    || takes_pages(form)
                        && kind != BufferKind::KMALLOC
                        && pages > pair.entry().tx_attr.iov_limit
                {
                    continue;
                }
                check(&from, &to, *size, form).map_err(|stop| match stop {
                    Stop::Fail(why) => Stop::Fail(format!("{kind} {form} {size} bytes: {why}")),
                    skip @ Stop::Skip(_) => skip,
                })?;
                count += 1;
            }
        }
    }
    check!(count > 0, "nothing was checked");
    check_eq!(pair.a.quiet().is_ok(), true, "the first end is quiet");
    check_eq!(pair.b.quiet().is_ok(), true, "the second end is quiet");
    Ok(count)
}
