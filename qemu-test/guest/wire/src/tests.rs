// SPDX-License-Identifier: GPL-2.0

use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::frame::{
    Broken, Common, FabricId, Frame, Hello, Kind, Range, Ranges, Request, Response, COMMON,
    FEW_FLOWS, MAJOR, MAX_ATOMIC, MAX_BODY, MAX_FLOWS, MAX_HEAD, MAX_KEY, MAX_LANES, MAX_LEN,
    MAX_RANGES, MINOR, NOT_READY, NO_ROOM,
};
use crate::stream::{Part, Stream};

fn config() -> ProptestConfig {
    let cases = std::env::var("KFI_WIRE_CASES").ok();
    ProptestConfig {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(20_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Of which keys are made.
static KEY: [u8; MAX_KEY] = [0x3c; MAX_KEY];

/// A frame with what it refers to, and as many bytes of body as it has.
#[derive(Clone, Debug)]
struct Sample {
    frame: Shape,
    id: u64,
    ack: u64,
    body: usize,
}

#[derive(Clone, Debug)]
enum Shape {
    Request(Request<'static>, Vec<Range>),
    Other(Frame<'static>),
}

impl Sample {
    /// Writes the header.
    fn write(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0xa5; MAX_HEAD];
        let len = match &self.frame {
            Shape::Other(frame) => frame.write(self.id, self.ack, self.body, &mut bytes)?,
            Shape::Request(request, ranges) => {
                let ranges = ranges.iter().copied();
                request.write(self.id, self.ack, self.body, ranges, &mut bytes)?
            }
        };
        bytes.truncate(len);
        Some(bytes)
    }
}

fn hello() -> impl Strategy<Value = Hello> {
    let versions = (Just(MAJOR), prop_oneof![Just(MINOR), any::<u16>()]);
    let lanes = (1..=MAX_LANES).prop_flat_map(|lanes| (0..lanes, Just(lanes)));
    let nics = any::<(u32, u32)>();
    let numbers = (1..u64::MAX, any::<u64>(), 1..u64::MAX, any::<u64>());
    let flows = FEW_FLOWS..=MAX_FLOWS;
    let limits = (0..=MAX_BODY as u32, any::<u32>(), flows, any::<bool>());
    let nonce = uniform32(any::<u8>());
    (versions, lanes, nics, numbers, limits, nonce).prop_map(
        |((major, minor), (lane, lanes), (source, target), numbers, limits, nonce)| {
            let (incarnation, expected, session, birth) = numbers;
            let (eager, window, flows, proof) = limits;
            Hello {
                major,
                minor,
                lane,
                lanes,
                source,
                target,
                incarnation,
                expected,
                session,
                birth,
                eager,
                window,
                flows,
                proof,
                nonce,
            }
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Message),
        Just(Kind::Tagged),
        Just(Kind::Write),
        Just(Kind::Read),
        Just(Kind::TaggedWrite),
        Just(Kind::TaggedRead),
        (0..3u8, any::<u8>(), any::<u8>()).prop_map(|(form, op, datatype)| Kind::Atomic {
            form,
            op,
            datatype
        }),
    ]
}

fn flow() -> impl Strategy<Value = u16> {
    any::<u16>()
}

/// Requests as they are sent, with their bodies.
fn request() -> impl Strategy<Value = (Shape, usize)> {
    let ports = any::<(u16, u16, u16, bool)>();
    let numbers = (0..=MAX_KEY, any::<u64>(), any::<u64>());
    let ranges = vec(any::<(u64, u16, u64)>(), 1..20);
    let rest = (option::of(any::<u64>()), any::<(bool, bool, u32)>(), flow());
    (kind(), ports, numbers, ranges, rest).prop_map(|(kind, ports, numbers, ranges, rest)| {
        let (from, to, context, named) = ports;
        let (key, tag, offset) = numbers;
        let (data, (eager, restarts, waited), flow) = rest;
        let atomic = matches!(kind, Kind::Atomic { .. });
        let most = if atomic { MAX_ATOMIC / 20 } else { 1 << 15 };
        let sizes = ranges
            .into_iter()
            .map(|(addr, len, key)| (addr, u64::from(len) % most + 1, key));
        let ranges: Vec<_> = sizes
            .map(|(addr, len, key)| Range { addr, len, key })
            .collect();
        let len = ranges.iter().map(|range| range.len).sum();
        let (ranges, eager) = match kind {
            Kind::Atomic { .. } => (ranges, true),
            Kind::Read => (ranges, false),
            Kind::Write => (ranges, eager),
            Kind::TaggedRead => (Vec::new(), false),
            _ => (Vec::new(), eager),
        };
        let body = match kind {
            Kind::Atomic { form: 2, .. } => 2 * len,
            _ if eager => len,
            _ => 0,
        };
        let request = Request {
            kind,
            from,
            to,
            context,
            named,
            flow,
            key: &KEY[..key],
            tag,
            data,
            len,
            offset,
            ranges: Ranges::NONE,
            eager,
            restarts,
            waited,
        };
        (Shape::Request(request, ranges), body as usize)
    })
}

fn other() -> impl Strategy<Value = (Shape, usize)> {
    let mac = || uniform32(any::<u8>());
    let status = prop_oneof![0..4096u32, Just(NOT_READY), Just(NO_ROOM)];
    let part = (0..=MAX_LEN / 2, 1..=MAX_LEN / 2);
    let bare = prop_oneof![
        Just(Frame::Withdraw),
        Just(Frame::Ack),
        flow().prop_map(Frame::Go)
    ];
    prop_oneof![
        hello().prop_map(|hello| (Frame::Hello(hello), 0)),
        (hello(), mac()).prop_map(|(hello, mac)| (Frame::Welcome(hello, mac), 0)),
        mac().prop_map(|mac| (Frame::Proof(mac), 0)),
        any::<u32>().prop_map(|code| (Frame::Bye(code), 0)),
        (0..=MAX_LEN, 1..=MAX_BODY).prop_map(|(offset, len)| (Frame::Data(offset), len)),
        bare.prop_map(|frame| (frame, 0)),
        (status, any::<(u64, u32)>(), 0..=MAX_ATOMIC as usize).prop_map(
            |(status, (len, waited), body)| {
                let body = if status == 0 { body } else { 0 };
                let response = Response {
                    status,
                    len,
                    waited,
                };
                (Frame::Response(response), body)
            }
        ),
        part.prop_map(|(offset, len)| { (Frame::Pull { offset, len }, 0) }),
    ]
    .prop_map(|(frame, body)| (Shape::Other(frame), body))
}

fn sample() -> impl Strategy<Value = Sample> {
    let shape = prop_oneof![request(), other()];
    (shape, 1..=u64::from(u16::MAX), any::<u64>()).prop_map(|((frame, body), id, ack)| Sample {
        frame,
        id,
        ack,
        body,
    })
}

/// A frame that could be read can be written again, and is the same then.
fn check_again(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok((common, frame)) = Frame::parse(bytes) else {
        return Ok(());
    };
    prop_assert_eq!(common.head, bytes.len());
    prop_assert!(common.body <= MAX_BODY);
    if let Frame::Request(request) = &frame {
        prop_assert!(request.ranges.count() <= MAX_RANGES);
        prop_assert_eq!(request.ranges.iter().count(), request.ranges.count());
    }
    let mut again = vec![0; MAX_HEAD];
    let written = frame.write(common.id, common.ack, common.body, &mut again);
    if frame == Frame::Unknown {
        prop_assert_eq!(written, None);
        return Ok(());
    }
    let len = written.ok_or_else(|| TestCaseError::fail("cannot be written"))?;
    prop_assert!(len <= bytes.len());
    let (same, read) = Frame::parse(&again[..len]).expect("it was written");
    prop_assert_eq!(read, frame);
    prop_assert_eq!(
        (same.id, same.ack, same.body),
        (common.id, common.ack, common.body)
    );
    Ok(())
}

/// As the text has it.
#[test]
fn fabrics_are_proved_little_endian() {
    let fabric = FabricId {
        prefix: u32::from(std::net::Ipv4Addr::new(10, 16, 0, 0)),
        port: 7471,
    };
    assert_eq!(fabric.bytes(), [0, 0, 16, 10, 0x2f, 0x1d, 0, 0]);
}

/// A key may be no longer than is said, even if all of it is there.
#[test]
fn long_keys_are_refused() {
    let request = Request {
        kind: Kind::Message,
        from: 1,
        to: 2,
        context: 0,
        named: false,
        flow: 0,
        key: &KEY,
        tag: 0,
        data: None,
        len: 0,
        offset: 0,
        ranges: Ranges::NONE,
        eager: true,
        restarts: false,
        waited: 0,
    };
    let mut bytes = vec![0; MAX_HEAD];
    let len = request.write(1, 1, 0, std::iter::empty(), &mut bytes);
    let len = len.expect("there is room");
    // A header may be longer than what is known of it.
    bytes[2..4].copy_from_slice(&((len + 8) as u16).to_le_bytes());
    bytes.truncate(len + 8);
    let (_, frame) = Frame::parse(&bytes).expect("it is right");
    assert!(matches!(frame, Frame::Request(read) if read.key == KEY));
    bytes[36..38].copy_from_slice(&(MAX_KEY as u16 + 1).to_le_bytes());
    assert_eq!(Frame::parse(&bytes).err(), Some(Broken::Value));
}

proptest! {
    #![proptest_config(config())]

    /// Each frame is read as the one that was written.
    #[test]
    fn frames_are_read_as_they_were_written(sample in sample()) {
        let bytes = sample.write().expect("the protocol allows it");
        let (common, frame) = Frame::parse(&bytes).expect("so it can be read");
        prop_assert_eq!((common.id, common.ack, common.body), (sample.id, sample.ack, sample.body));
        match (&sample.frame, &frame) {
            (Shape::Other(one), other) => prop_assert_eq!(one, other),
            (Shape::Request(one, ranges), Frame::Request(other)) => {
                prop_assert!(other.ranges.iter().eq(ranges.iter().copied()));
                prop_assert_eq!(*one, Request { ranges: Ranges::NONE, ..*other });
            }
            _ => prop_assert!(false, "another type"),
        }
        check_again(&bytes)?;
    }

    /// Headers are kept as they were received, however that was, until more is.
    #[test]
    fn headers_are_kept(samples in vec(sample(), 1..8), piece in 16..600usize) {
        let mut stream = Stream::new(vec![0; MAX_HEAD]);
        for sample in samples.iter().filter(|sample| sample.body < 4096) {
            let mut bytes = sample.write().expect("the protocol allows it");
            let header = bytes.clone();
            bytes.resize(bytes.len() + sample.body, 0);
            let mut pieces = bytes.chunks(piece);
            let mut seen = None;
            loop {
                match stream.next().expect("the protocol allows it") {
                    Some(Part::Head(..)) => seen = Some(stream.header().to_vec()),
                    Some(Part::Body(..)) => {}
                    None => {
                        let Some(mut piece) = pieces.next() else {
                            break;
                        };
                        // Bodies may be longer than there is room for.
                        while !piece.is_empty() {
                            let room = stream.room();
                            let count = room.len().min(piece.len());
                            room[..count].copy_from_slice(&piece[..count]);
                            stream.received(count);
                            piece = &piece[count..];
                        }
                    }
                }
            }
            prop_assert_eq!(seen, Some(header));
        }
    }

    /// Another fabric is proved with other bytes.
    #[test]
    fn fabrics_are_told_apart(one in any::<(u16, u16)>(), other in any::<(u16, u16)>()) {
        // Of the upper part only 12 bits.
        let fabric = |(upper, port)| FabricId { prefix: u32::from(upper) >> 4 << 20, port };
        let same = fabric(one) == fabric(other);
        prop_assert_eq!(fabric(one).bytes() == fabric(other).bytes(), same);
    }

    /// Some bytes of a frame are others than they were.
    #[test]
    fn changed_frames_do_no_harm(
        sample in sample(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = sample.write().expect("the protocol allows it");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_again(&bytes)?;
    }

    /// A frame is cut off, or more follows it.
    #[test]
    fn lengths_have_to_be_right(sample in sample(), other in 0..MAX_HEAD) {
        let mut bytes = sample.write().expect("the protocol allows it");
        let len = bytes.len();
        prop_assume!(other != len);
        bytes.resize(other, 0);
        prop_assert_eq!(Frame::parse(&bytes).map(drop), Err(Broken::Head));
    }

    /// A header of a later version is longer; the bytes beyond those of this version are ignored.
    #[test]
    fn longer_headers_are_read(sample in sample(), more in 1..40usize) {
        let mut bytes = sample.write().expect("the protocol allows it");
        let (_, frame) = Frame::parse(&bytes).map(|(common, frame)| (common, format!("{frame:?}"))).expect("written");
        bytes.resize(bytes.len() + 8 * more, 0x5a);
        prop_assume!(bytes.len() <= MAX_HEAD);
        let head = u16::try_from(bytes.len()).expect("small").to_le_bytes();
        bytes[2..4].copy_from_slice(&head);
        let (_, longer) = Frame::parse(&bytes).expect("as before");
        prop_assert_eq!(format!("{longer:?}"), frame);
    }

    /// Anything at all.
    #[test]
    fn noise_does_no_harm(mut bytes in vec(any::<u8>(), 0..512), kind in 0..40u8) {
        if bytes.len() >= COMMON {
            let first: &[u8; COMMON] = bytes.first_chunk().expect("long enough");
            let _ = Common::parse(first);
            // Most would be refused for their length alone.
            bytes.truncate(bytes.len() & !7);
            let head = u16::try_from(bytes.len()).expect("small").to_le_bytes();
            bytes[0] = kind;
            bytes[2..4].copy_from_slice(&head);
            bytes[6..8].fill(0);
        }
        check_again(&bytes)?;
    }
}
