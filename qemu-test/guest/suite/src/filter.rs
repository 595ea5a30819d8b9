// SPDX-License-Identifier: GPL-2.0

//! Which tests to run.

use std::str::FromStr;

/// A text to find in a test's name or, with `*` and `?`, a pattern for all of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Filter(String);

impl From<&str> for Filter {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for Filter {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

impl Filter {
    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        if self.0.contains(['*', '?']) {
            glob(self.0.as_bytes(), name.as_bytes())
        } else {
            name.contains(&self.0)
        }
    }
}

/// Whether a name is wanted: it fits one of `wanted`, if there are any, and none
/// of `unwanted`.
pub fn selects(wanted: &[Filter], unwanted: &[Filter], name: &str) -> bool {
    (wanted.is_empty() || wanted.iter().any(|f| f.matches(name)))
        && !unwanted.iter().any(|f| f.matches(name))
}

fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) if glob(rest, name) => true,
        (Some((b'*', _)), Some((_, name))) => glob(pattern, name),
        (Some((b'?', pattern)), Some((_, name))) => glob(pattern, name),
        (Some((p, pattern)), Some((n, name))) if p == n => glob(pattern, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        pattern.parse::<Filter>().unwrap().matches(name)
    }

    #[test]
    fn texts_are_found_anywhere() {
        assert!(fits("case-09", "wait/case-09-x"));
        assert!(fits("wait/", "wait/case-09-x"));
        assert!(!fits("cntr", "wait/case-09-x"));
    }

    #[test]
    fn patterns_fit_all() {
        assert!(fits("wait/*", "wait/case-09-x"));
        assert!(fits("*/case-0?-*", "wait/case-09-x"));
        assert!(fits("*x", "wait/case-09-x"));
        assert!(!fits("case*", "wait/case-09-x"));
        assert!(!fits("wait/?", "wait/case-09-x"));
    }

    #[test]
    fn selection() {
        let list = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<_>>();
        assert!(selects(&[], &[], "a/b"));
        assert!(selects(&list(&["x", "a"]), &[], "a/b"));
        assert!(!selects(&list(&["x"]), &[], "a/b"));
        assert!(!selects(&list(&["a"]), &list(&["*b"]), "a/b"));
    }
}
