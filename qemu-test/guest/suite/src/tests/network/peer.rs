// SPDX-License-Identifier: GPL-2.0

//! Another node, which says what a test has it say, and nothing else.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use rustix::net::{bind, connect, socket, AddressFamily, SocketType};

use super::frame::{
    Common, Frame, Hello, Kind, Range, Ranges, Request, Response, COMMON, MAJOR, MAX_HEAD, MINOR,
};
use crate::check;
use crate::check::{Outcome, Stop};

/// Where NICs listen.
const PORT: u16 = 7471;

/// Bytes that a request may bring, and how many there may be at a time: as a node says it.
const EAGER: u32 = 16 << 10;
const WINDOW: u32 = 512;

/// Returns the number of the NIC that has an address.
fn nic(address: Ipv4Addr) -> u32 {
    u32::from(address) & 0xf_ffff
}

/// Returns an address of an endpoint, as the provider gives it to its consumers.
pub(super) fn name(address: Ipv4Addr, port: u16) -> Vec<u8> {
    let raw = u64::from(nic(address)) << 12 | u64::from(port);
    raw.to_le_bytes().to_vec()
}

/// A connection with a NIC.
pub(super) struct Peer {
    stream: TcpStream,
    /// All requests below this one have been read, or answered.
    ack: u64,
    /// Bytes behind the last header that are yet to be read.
    left: usize,
}

impl Peer {
    /// What one side says of itself to the other.
    fn hello(source: Ipv4Addr, target: Ipv4Addr, session: u64) -> Hello {
        Hello {
            major: MAJOR,
            minor: MINOR,
            lane: 0,
            lanes: 1,
            source: nic(source),
            target: nic(target),
            incarnation: 1,
            expected: 0,
            session,
            birth: 0,
            eager: 0,
            window: 0,
            proof: false,
            nonce: [0; 32],
        }
    }

    /// Connects to the NIC at `target`, as one at `source`, in a session that is later than those before.
    pub(super) fn connect(source: Ipv4Addr, target: Ipv4Addr, session: u64) -> Result<Self, Stop> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddrV4::new(source, 0))?;
        connect(&socket, &SocketAddrV4::new(target, PORT))?;
        let mut this = Self {
            stream: TcpStream::from(socket),
            ack: 1,
            left: 0,
        };
        let hello = Self::hello(source, target, session);
        this.write(&Frame::Hello(hello), 0)?;
        let header = this.header()?;
        check!(
            matches!(Frame::parse(&header), Ok((_, Frame::Welcome(..)))),
            "no WELCOME"
        );
        let header = this.header()?;
        check!(
            matches!(Frame::parse(&header), Ok((_, Frame::Ack))),
            "no ACK"
        );
        Ok(this)
    }

    /// Listens as the NIC at an address.
    pub(super) fn listen(address: Ipv4Addr) -> Result<TcpListener, Stop> {
        Ok(TcpListener::bind(SocketAddrV4::new(address, PORT))?)
    }

    /// Takes a connection from another NIC.
    pub(super) fn accept(listener: &TcpListener) -> Result<Self, Stop> {
        let (stream, _) = listener.accept()?;
        let mut this = Self {
            stream,
            ack: 1,
            left: 0,
        };
        let header = this.header()?;
        let Ok((_, Frame::Hello(hello))) = Frame::parse(&header) else {
            return Err(Stop::fail("no HELLO"));
        };
        let welcome = Hello {
            incarnation: 1,
            expected: hello.incarnation,
            birth: 1,
            eager: EAGER,
            window: WINDOW,
            ..hello
        };
        this.write(&Frame::Welcome(welcome, [0; 32]), 0)?;
        this.write(&Frame::Ack, 0)?;
        Ok(this)
    }

    /// Writes a frame without a body.
    fn write(&mut self, frame: &Frame<'_>, id: u64) -> Outcome {
        let mut header = [0; MAX_HEAD];
        let len = frame.write(id, self.ack, 0, &mut header);
        let len = len.ok_or_else(|| Stop::fail("no such frame"))?;
        Ok(self.stream.write_all(&header[..len])?)
    }

    /// Asks for something, of `len` bytes that do not come along, at a port; with a key it is done to a
    /// memory region.
    pub(super) fn request(
        &mut self,
        id: u64,
        kind: Kind,
        (to, len): (u16, u64),
        key: Option<u64>,
    ) -> Outcome {
        let request = Request {
            kind,
            from: 1,
            to,
            context: 0,
            named: true,
            flow: 0,
            key: &[],
            tag: 0,
            data: None,
            len,
            offset: 0,
            ranges: Ranges::NONE,
            eager: false,
            restarts: false,
        };
        let range = key.map(|key| Range { addr: 0, len, key });
        let mut header = [0; MAX_HEAD];
        let head = request.write(id, self.ack, 0, range.into_iter(), &mut header);
        let head = head.ok_or_else(|| Stop::fail("no such request"))?;
        Ok(self.stream.write_all(&header[..head])?)
    }

    /// Brings bytes of a request that were asked for.
    pub(super) fn data(&mut self, id: u64, offset: u64, bytes: &[u8]) -> Outcome {
        let mut header = [0; MAX_HEAD];
        let len = Frame::Data(offset).write(id, self.ack, bytes.len(), &mut header);
        let len = len.ok_or_else(|| Stop::fail("no such data"))?;
        self.stream.write_all(&header[..len])?;
        Ok(self.stream.write_all(bytes)?)
    }

    /// Answers a request.
    pub(super) fn respond(&mut self, id: u64, response: Response) -> Outcome {
        self.ack = id + 1;
        self.write(&Frame::Response(response), id)
    }

    /// Reads a header; what follows it is skipped when the next one is read.
    fn header(&mut self) -> Result<Vec<u8>, Stop> {
        let mut body = vec![0; self.left];
        self.stream.read_exact(&mut body)?;
        let mut header = vec![0; COMMON];
        self.stream.read_exact(&mut header)?;
        let common = header.first_chunk().map(Common::parse);
        let Some(Ok(common)) = common else {
            return Err(Stop::fail("what was read is no frame"));
        };
        header.resize(common.head, 0);
        self.stream.read_exact(&mut header[COMMON..])?;
        self.left = common.body;
        Ok(header)
    }

    /// Reads frames until there is one that is `wanted`.
    pub(super) fn until(&mut self, wanted: fn(&Frame<'_>) -> bool) -> Result<u64, Stop> {
        loop {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((common, frame)) if wanted(&frame) => return Ok(common.id),
                Ok(_) => {}
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
    }

    /// Reads frames until there is an answer; returns that and the number of the request.
    pub(super) fn response(&mut self) -> Result<(u64, Response), Stop> {
        loop {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((common, Frame::Response(response))) => return Ok((common.id, response)),
                Ok(_) => {}
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
    }
}
