// SPDX-License-Identifier: GPL-2.0

//! Makes a list that fails shorter.

/// Finds a part of a list that still fails and from which no single item can be
/// left out, by leaving out halves, quarters and so on (delta debugging), with
/// so many tries at most.
pub fn shrink<E>(
    mut list: Vec<usize>,
    mut tries: usize,
    mut fails: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let mut pieces = 2;
    while list.len() > 1 && pieces <= list.len() {
        let length = list.len().div_ceil(pieces);
        let mut shorter = None;
        for start in (0..list.len()).step_by(length) {
            if tries == 0 {
                return Ok(list);
            }
            tries -= 1;
            let end = (start + length).min(list.len());
            let rest = [&list[..start], &list[end..]].concat();
            if fails(&rest)? {
                shorter = Some(rest);
                break;
            }
        }
        match shorter {
            Some(rest) => {
                list = rest;
                pieces = 2.max(pieces - 1);
            }
            None if pieces == list.len() => break,
            None => pieces = list.len().min(2 * pieces),
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::shrink;

    /// Shrinks 0..count to what `fails` needs.
    fn shrunk(count: usize, tries: usize, fails: impl Fn(&[usize]) -> bool) -> Vec<usize> {
        shrink::<()>((0..count).collect(), tries, |list| Ok(fails(list))).unwrap()
    }

    #[test]
    fn finds_what_matters() {
        assert_eq!(shrunk(300, 1000, |list| list.contains(&123)), [123]);
        let both = |list: &[usize]| list.contains(&7) && list.contains(&250);
        assert_eq!(shrunk(300, 1000, both), [7, 250]);
        let order = |list: &[usize]| list.iter().filter(|n| *n % 50 == 0).count() >= 3;
        assert_eq!(shrunk(300, 1000, order).len(), 3);
        assert_eq!(shrunk(1, 1000, |_| true), [0]);
    }

    #[test]
    fn stops_in_time() {
        let tries = std::cell::Cell::new(0);
        let left = shrunk(300, 10, |list| {
            tries.set(tries.get() + 1);
            list.contains(&123)
        });
        assert!(tries.get() <= 10 && left.contains(&123));
    }

    #[test]
    fn errors_end_it() {
        assert_eq!(shrink(vec![1, 2], 10, |_| Err("gone")), Err("gone"));
    }
}
