// SPDX-License-Identifier: GPL-2.0

//! How much each user may take of what all of them share.
//!
//! As the parts of the wire without input and output, this runs in user space, too.

#![forbid(unsafe_code)]

/// Returns whether a user who has `own` of what there is may take more, where all users together have `used`,
/// and there are `most`: no more than is left for others, but up to a `few` in any case.
///
/// So the first user takes half of what there is, the next one half of the rest, and so on.
pub(crate) fn has_room(most: usize, used: usize, own: usize, few: usize) -> bool {
    let left = most.saturating_sub(used);
    left != 0 && own < left.max(few)
}
