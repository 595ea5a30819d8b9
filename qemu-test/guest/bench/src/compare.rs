// SPDX-License-Identifier: GPL-2.0

//! Two results beside each other.

use crate::figure::Results;
use crate::table::number;

/// Prints every figure that both have, with the change; those in which the
/// quartiles do not overlap and that have changed enough are marked.
pub(crate) fn compare(old: &Results, new: &Results, noise: f64) {
    let (mut better, mut worse) = (0, 0);
    for figure in new.each() {
        let Some(before) = old.get(&figure.item, &figure.design, figure.size) else {
            continue;
        };
        let (Some(median), Some(old_median)) = (figure.median, before.median) else {
            continue;
        };
        let change = (median / old_median - 1.0) * 100.0;
        let apart = figure
            .quartiles
            .zip(before.quartiles)
            .is_some_and(|([low, high], [old_low, old_high])| low > old_high || high < old_low);
        let mark = match change {
            change if !apart || change.abs() < noise => "      ",
            change if change > 0.0 => {
                worse += 1;
                "worse "
            }
            _ => {
                better += 1;
                "better"
            }
        };
        println!(
            "{mark} {change:+7.1}%  {:26} {:26} {:>8}  {} -> {} {}",
            figure.item,
            figure.design,
            figure.size,
            number(old_median),
            number(median),
            figure.unit
        );
    }
    println!("{better} better, {worse} worse");
}
