// SPDX-License-Identifier: GPL-2.0

//! The knob of a [`Fault`]: how often it is injected, and how often it was.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*, //
};

use crate::faults::injector::Fault;

/// How often a fault is injected.
#[derive(Clone, Copy)]
pub(crate) struct Knob {
    fault: Fault,
    /// One in so many, counted; 0 for none.
    every: u32,
    /// So many in a thousand, by chance; 0 for none.
    permille: u32,
    /// At most so many more, if there is a limit.
    times: Option<u32>,
    /// The seed of the random numbers.
    seed: u64,
    /// The value of the fault: a time, a number.
    value: u32,
    /// How many are to be seen before the next one is hit.
    wait: u32,
    /// How many are yet to be hit after one that was.
    burst: u32,
    /// The state of chance.
    random: u64,
    /// How many could have been hit.
    seen: u64,
    /// How many were.
    injected: u64,
}

impl Knob {
    /// Off.
    pub(crate) fn off(fault: Fault) -> Self {
        Self {
            fault,
            every: 0,
            permille: 0,
            times: None,
            seed: 1,
            value: fault.value().1,
            wait: 0,
            burst: 0,
            random: 0,
            seen: 0,
            injected: 0,
        }
    }

    /// Reads what was written: `off`, or `every=N` or `permille=N`, with `times=N`, `seed=N` and
    /// the value of the fault by its name. A number alone means `every`.
    pub(crate) fn parse(fault: Fault, text: &str) -> Result<Self> {
        let mut knob = Self::off(fault);
        let (name, _, max) = fault.value();
        let mut words = 0;
        for word in text.split_ascii_whitespace() {
            words = 1;
            if word == "off" {
                knob.every = 0;
                knob.permille = 0;
                continue;
            }
            let (key, number) = word.split_once('=').unwrap_or(("every", word));
            let number: u64 = number.parse().map_err(|_| EINVAL)?;
            let small = u32::try_from(number);
            match key {
                "seed" => knob.seed = number,
                "every" => knob.every = small?,
                "permille" => knob.permille = small.ok().filter(|n| *n <= 1000).ok_or(EINVAL)?,
                "times" => knob.times = Some(small?),
                _ if key == name => {
                    knob.value = small.ok().filter(|n| *n <= max).ok_or(EINVAL)?;
                }
                _ => return Err(EINVAL),
            }
        }
        // Neither both nor nothing; no errno is 0.
        if words == 0
            || (knob.every != 0 && knob.permille != 0)
            || (fault == Fault::Fail && knob.value == 0)
        {
            return Err(EINVAL);
        }
        knob.wait = knob.every;
        // Chance does not come out of 0.
        knob.random = knob.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Ok(knob)
    }

    /// Returns whether it can hit.
    pub(crate) fn is_on(&self) -> bool {
        (self.every != 0 || self.permille != 0) && (self.times != Some(0) || self.burst != 0)
    }

    /// Returns what the fault is about.
    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// Says whether the next one is hit: the value if so.
    pub(crate) fn strike(&mut self) -> Option<u32> {
        if !self.is_on() {
            return None;
        }
        self.seen = self.seen.wrapping_add(1);
        if self.burst != 0 {
            self.burst = self.burst.wrapping_sub(1);
        } else {
            if self.times == Some(0) || !self.chooses() {
                return None;
            }
            if let Some(times) = &mut self.times {
                *times = times.wrapping_sub(1);
            }
            if self.fault == Fault::Again {
                self.burst = self.value.saturating_sub(1);
            }
        }
        self.injected = self.injected.wrapping_add(1);
        Some(self.value)
    }

    /// Counts, or throws the dice.
    fn chooses(&mut self) -> bool {
        if self.every != 0 {
            self.wait = self.wait.saturating_sub(1);
            if self.wait != 0 {
                return false;
            }
            self.wait = self.every;
            return true;
        }
        // Xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let thousandth = ((self.random >> 32).wrapping_mul(1000)) >> 32;
        thousandth < u64::from(self.permille)
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.every == 0 && self.permille == 0 {
            f.write_str("off")?;
        } else if self.every != 0 {
            f.write_fmt(fmt!("every={}", self.every))?;
        } else {
            f.write_fmt(fmt!("permille={} seed={}", self.permille, self.seed))?;
        }
        if let Some(times) = self.times {
            f.write_fmt(fmt!(" times={}", times))?;
        }
        f.write_fmt(fmt!(
            " {}={} seen={} injected={}",
            self.fault.value().0,
            self.value,
            self.seen,
            self.injected,
        ))
    }
}

#[kunit_tests(kfi_soft_knob)]
mod tests {
    use super::*;

    fn hits(text: &str, count: usize) -> Result<KVec<bool>> {
        let mut knob = Knob::parse(Fault::Drop, text)?;
        let mut hits = KVec::new();
        for _ in 0..count {
            hits.push(knob.strike().is_some(), GFP_KERNEL)?;
        }
        Ok(hits)
    }

    #[test]
    fn off_hits_nothing() -> Result {
        assert!(!Knob::off(Fault::Drop).is_on());
        assert!(hits("off", 100)?.iter().all(|hit| !hit));
        Ok(())
    }

    #[test]
    fn one_in_so_many() -> Result {
        assert_eq!(
            &*hits("3", 7)?,
            [false, false, true, false, false, true, false]
        );
        assert_eq!(&*hits("every=1 times=2", 4)?, [true, true, false, false]);
        Ok(())
    }

    #[test]
    fn chance_can_be_repeated() -> Result {
        let text = "permille=250 seed=7";
        let first = hits(text, 4000)?;
        assert!(*first == *hits(text, 4000)?);
        assert!(*first != *hits("permille=250 seed=8", 4000)?);
        let count = first.iter().filter(|hit| **hit).count();
        assert!((800..1200).contains(&count));
        assert!(hits("permille=1000", 100)?.iter().all(|hit| *hit));
        Ok(())
    }

    #[test]
    fn bursts() -> Result {
        let mut knob = Knob::parse(Fault::Again, "every=4 burst=3")?;
        let mut hit = || knob.strike().is_some();
        let all = [
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
            hit(),
        ];
        let (no, yes) = (false, true);
        assert_eq!(all, [no, no, no, yes, yes, yes, no, no, no, yes]);
        let mut knob = Knob::parse(Fault::Again, "every=1 burst=2 times=1")?;
        assert!(knob.strike().is_some() && knob.strike().is_some());
        assert!(knob.strike().is_none() && !knob.is_on());
        Ok(())
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            " \n",
            "x",
            "-1",
            "every",
            "every=",
            "every=x",
            "every=4294967296",
            "ms=60001",
            "errno=5",
            "permille=1001",
            "every=2 permille=5",
            "every=1 what=2",
            "=1",
            "1=1",
        ] {
            assert!(Knob::parse(Fault::Drop, text).is_err());
        }
        assert!(Knob::parse(Fault::Fail, "every=1 errno=0").is_err());
        assert!(Knob::parse(Fault::Fail, "every=1 errno=4096").is_err());
        assert!(Knob::parse(Fault::Drop, " every=2\tms=60000 seed=9\n").is_ok());
    }
}
