// SPDX-License-Identifier: GPL-2.0

//! The secret that the machines of a fabric share, and what is proved with it.
//!
//! Both sides of a connection prove that they have it, with codes of all that both have said, in which
//! there is a random number of each, and of the fabric, so that they are of no use in another one that has
//! the same secret. The codes of the two sides begin with different words, so that neither is of use as the
//! other.

#![forbid(unsafe_code)]

use core::net::Ipv4Addr;
use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use super::frame::{
    self,
    FabricId,
    Frame,
    Hello, //
};
use crate::kfi::linux::{
    hmac::{
        self,
        HmacKey,
        Mac, //
    },
    key::{
        Key,
        KeyType, //
    },
    timeout::jiffies, //
};

/// The fewest bytes of a secret. A shorter one is guessed by anybody who has a `WELCOME`.
const MIN_LEN: usize = 16;

/// The first bytes of the text of which the code of a target, and of an initiator, is made.
const TARGET: &[u8] = b"kfi-soft target";
const INITIATOR: &[u8] = b"kfi-soft initiator";

/// Bytes of a `HELLO` or `WELCOME`, as they are sent.
pub(super) type HelloBytes = [u8; frame::HELLO];

/// The secret, as it is used in one fabric.
pub(crate) struct Secret {
    key: HmacKey,
    /// The fabric, as it is in what is proved.
    fabric: [u8; frame::FABRIC],
}

impl Secret {
    /// Takes the payload of the key that has this description: one that user space cannot read, if there
    /// is one, or one of the user. The user who loads the module has to find it. May sleep.
    pub(crate) fn find(description: &CStr, fabric: FabricId) -> Result<Self> {
        Self::look_for(description, fabric).inspect_err(|error| match *error {
            EINVAL => pr_err!(
                "secret={:?}: the key has less than {} bytes\n",
                description,
                MIN_LEN
            ),
            EOPNOTSUPP => pr_err!(
                "secret={:?}: this kernel was built without CONFIG_KEYS\n",
                description
            ),
            _ => pr_err!(
                "secret={:?}: no key of type logon or user that can be used: {:?}\n",
                description,
                error
            ),
        })
    }

    /// As [`Self::find`].
    fn look_for(description: &CStr, fabric: FabricId) -> Result<Self> {
        let key = match Key::request(KeyType::Logon, description) {
            Err(ENOKEY) => Key::request(KeyType::User, description),
            found => found,
        }?;
        key.read(|secret| Self::new(secret, fabric))?
    }

    /// Takes a secret; `EINVAL` if it is too short.
    fn new(secret: &[u8], fabric: FabricId) -> Result<Self> {
        if secret.len() < MIN_LEN {
            return Err(EINVAL);
        }
        Ok(Self {
            key: HmacKey::new(secret)?,
            fabric: fabric.bytes(),
        })
    }

    /// Returns the code of a `WELCOME`, by which its sender proves that it has the secret; `welcome` is
    /// all of it, or what comes before the code.
    fn target(&self, hello: &[u8], welcome: &[u8]) -> Mac {
        let before = welcome.get(..frame::WELCOME_MAC).unwrap_or(welcome);
        self.key.mac(&[TARGET, &self.fabric, hello, before])
    }

    /// Returns the code of the `PROOF` that follows a `WELCOME`.
    pub(super) fn initiator(&self, hello: &[u8], welcome: &[u8]) -> Mac {
        self.key.mac(&[INITIATOR, &self.fabric, hello, welcome])
    }

    /// Returns whether a `WELCOME` is from somebody who has the secret.
    pub(super) fn is_proved(&self, hello: &[u8], welcome: &[u8], mac: &Mac) -> bool {
        hmac::is_same(&self.target(hello, welcome), mac)
    }

    /// Returns the code of a `WELCOME` that answers a `HELLO`, and that of the `PROOF` which it is to be
    /// answered with.
    pub(super) fn prove(&self, hello: &[u8], welcome: Hello, ack: u64) -> (Mac, Mac) {
        let said = bytes(&Frame::Welcome(welcome, [0; hmac::MAC_LEN]), ack);
        let mac = self.target(hello, &said);
        let said = bytes(&Frame::Welcome(welcome, mac), ack);
        (mac, self.initiator(hello, &said))
    }
}

/// Returns a `HELLO` or `WELCOME` as it is sent.
pub(super) fn bytes(frame: &Frame<'_>, ack: u64) -> HelloBytes {
    let mut bytes = [0; frame::HELLO];
    // There is room for it. One that could not be read is not sent either.
    let _ = frame.write(0, ack, 0, &mut bytes);
    bytes
}

/// Something that the log is told of.
#[derive(Clone, Copy)]
pub(super) enum Complaint {
    /// The target has another secret, or none.
    Target,
    /// So has the initiator.
    Initiator,
    /// The target wants a secret, and there is none here.
    TargetWants,
    /// The initiator wants one.
    InitiatorWants,
}

/// Within so many milliseconds the log is told once of a peer, for each kind ...
const QUIET_MILLIS: u32 = 10_000;
/// ... and of so many peers.
const MOST_PEERS: usize = 8;

/// How much of a complaint is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// Nothing: that was done just before.
    Nothing,
    /// Which peer it is.
    Peer,
    /// There are other peers than those that were named.
    Others,
}

/// The peers that the log was told of just before, for a kind of complaints.
#[derive(Clone, Copy)]
struct RateLimit {
    /// Which ones, and when.
    peers: [Option<(Ipv4Addr, Jiffies)>; MOST_PEERS],
    /// When it was told that there are others.
    others: Option<Jiffies>,
}

impl RateLimit {
    /// Nothing was told.
    const NEW: Self = Self {
        peers: [None; MOST_PEERS],
        others: None,
    };

    /// Notes a complaint; returns how much of it is to be told.
    fn note(&mut self, peer: Ipv4Addr, now: Jiffies) -> Telling {
        let quiet = msecs_to_jiffies(QUIET_MILLIS);
        let is_over = |then: Jiffies| now.wrapping_sub(then) >= quiet;
        let mut free = None;
        for place in &mut self.peers {
            match *place {
                Some((_, then)) if is_over(then) => free = Some(place),
                Some((other, _)) if other == peer => return Telling::Nothing,
                Some(_) => {}
                None => free = Some(place),
            }
        }
        if let Some(place) = free {
            *place = Some((peer, now));
            return Telling::Peer;
        }
        if self.others.is_some_and(|then| !is_over(then)) {
            return Telling::Nothing;
        }
        self.others = Some(now);
        Telling::Others
    }
}

/// The complaints that the log was told of.
///
/// It is not told often of one peer, which comes again at once when it is refused; but none keeps it from being
/// told of another one.
#[pin_data]
pub(super) struct Complaints {
    /// By kind.
    #[pin]
    limits: SpinLockIrq<[RateLimit; 4]>,
}

impl Complaints {
    /// Nothing was told.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            limits <- new_spinlock_irq!([RateLimit::NEW; 4], "kfi_soft::Complaints::limits"),
        })
    }

    /// Tells the log of a peer, unless it was told of it just before.
    pub(super) fn tell(&self, complaint: Complaint, peer: Ipv4Addr) {
        let now = jiffies();
        let telling = {
            let mut limits = self.limits.lock();
            let limit = limits.get_mut(complaint as usize);
            limit.map_or(Telling::Nothing, |limit| limit.note(peer, now))
        };
        let (who, what) = match complaint {
            Complaint::Target => ("", "does not have the secret of this machine"),
            Complaint::Initiator => ("a caller from ", "does not have the secret of this machine"),
            Complaint::TargetWants => ("", "wants a secret, and there is none here: see secret="),
            Complaint::InitiatorWants => (
                "a caller from ",
                "wants a secret, and there is none here: see secret=",
            ),
        };
        let [a, b, c, d] = peer.octets();
        match telling {
            Telling::Nothing => {}
            Telling::Peer => pr_warn!("{}{}.{}.{}.{} {}\n", who, a, b, c, d, what),
            Telling::Others => pr_warn!(
                "others as well, of whom no more are named for a while: {}{}.{}.{}.{} {}\n",
                who,
                a,
                b,
                c,
                d,
                what
            ),
        }
    }
}

#[kunit_tests(kfi_soft_secret)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef";

    const FABRIC: FabricId = FabricId {
        prefix: 0x0a10_0000,
        port: 7471,
    };

    fn secret(fabric: FabricId) -> Result<Secret> {
        Secret::new(SECRET, fabric)
    }

    fn hello(nonce: u8) -> Hello {
        Hello {
            major: frame::MAJOR,
            minor: frame::MINOR,
            lane: 0,
            lanes: 1,
            source: 1,
            target: 2,
            incarnation: 3,
            expected: 0,
            session: 4,
            birth: 0,
            eager: 0,
            window: 0,
            flows: 0,
            proof: true,
            nonce: [nonce; 32],
        }
    }

    #[test]
    fn both_sides_prove_themselves() -> Result {
        let (one, other) = (secret(FABRIC)?, secret(FABRIC)?);
        let said = bytes(&Frame::Hello(hello(1)), 5);
        let (mac, proof) = one.prove(&said, hello(2), 0);
        let answer = bytes(&Frame::Welcome(hello(2), mac), 0);
        assert!(other.is_proved(&said, &answer, &mac));
        assert!(other.initiator(&said, &answer) == proof);
        // Neither is the other.
        assert!(mac != proof);
        // Another number at random of either side is another code.
        let later = bytes(&Frame::Hello(hello(3)), 5);
        assert!(!other.is_proved(&later, &answer, &mac));
        assert!(other.initiator(&later, &answer) != proof);
        let (_, of_later) = one.prove(&said, hello(3), 0);
        assert!(of_later != proof);
        Ok(())
    }

    #[test]
    fn another_secret_proves_nothing() -> Result {
        let one = secret(FABRIC)?;
        let other = Secret::new(b"0123456789abcdeg", FABRIC)?;
        let said = bytes(&Frame::Hello(hello(1)), 5);
        let (mac, proof) = one.prove(&said, hello(2), 0);
        let answer = bytes(&Frame::Welcome(hello(2), mac), 0);
        assert!(!other.is_proved(&said, &answer, &mac));
        assert!(other.initiator(&said, &answer) != proof);
        let short = SECRET.get(1..).unwrap_or(b"");
        assert!(Secret::new(short, FABRIC).err() == Some(EINVAL));
        Ok(())
    }

    /// With the same secret, and NICs of the same numbers.
    #[test]
    fn another_fabric_proves_nothing() -> Result {
        let one = secret(FABRIC)?;
        let said = bytes(&Frame::Hello(hello(1)), 5);
        let (mac, proof) = one.prove(&said, hello(2), 0);
        let answer = bytes(&Frame::Welcome(hello(2), mac), 0);
        let others = [
            FabricId {
                prefix: 0x0a20_0000,
                ..FABRIC
            },
            FabricId {
                port: 7472,
                ..FABRIC
            },
        ];
        for fabric in others {
            let other = secret(fabric)?;
            assert!(!other.is_proved(&said, &answer, &mac));
            assert!(other.initiator(&said, &answer) != proof);
        }
        Ok(())
    }

    /// A line about one peer does not suppress a line about another one.
    #[test]
    fn peers_are_told_of_apart() {
        let peer = |last| Ipv4Addr::new(10, 16, 0, last);
        let quiet = msecs_to_jiffies(QUIET_MILLIS);
        // Where the clock turns over.
        let begun = Jiffies::MAX - 5;
        let mut limit = RateLimit::NEW;
        assert_eq!(limit.note(peer(1), begun), Telling::Peer);
        assert_eq!(limit.note(peer(1), begun), Telling::Nothing);
        assert_eq!(limit.note(peer(2), begun), Telling::Peer);
        let later = begun.wrapping_add(quiet);
        assert_eq!(limit.note(peer(1), later.wrapping_sub(1)), Telling::Nothing);
        assert_eq!(limit.note(peer(1), later), Telling::Peer);
        assert_eq!(limit.note(peer(1), later), Telling::Nothing);
    }

    #[test]
    fn many_peers_do_not_fill_the_log() {
        let mut limit = RateLimit::NEW;
        let mut lines = 0;
        for last in 0..=u8::MAX {
            match limit.note(Ipv4Addr::new(10, 16, 0, last), 7) {
                Telling::Nothing => {}
                Telling::Peer => assert!(usize::from(last) < MOST_PEERS),
                Telling::Others => lines += 1,
            }
        }
        // One line says that there are others.
        assert_eq!(lines, 1);
    }
}
