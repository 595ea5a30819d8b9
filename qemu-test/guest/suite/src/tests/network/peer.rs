// SPDX-License-Identifier: GPL-2.0

//! Another node, which says what a test has it say, and nothing else.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::net::{bind, connect, socket, sockopt, AddressFamily, SocketType};

pub(super) use super::frame::Hello;
use super::frame::{
    Common, Frame, Kind, Range, Ranges, Request, Response, COMMON, HELLO, MAJOR, MAX_HEAD, MINOR,
    WELCOME_MAC,
};
use super::hmac::{hmac, Mac};
use crate::check;
use crate::check::{Outcome, Stop};

/// Where NICs listen.
const PORT: u16 = 7471;

/// For longer than this no test waits for a node: it fails, and says for what it has waited, before its time is over.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// The fabric of the NICs, as it is proved: the upper 12 bits of their addresses, and the port.
pub(super) const FABRIC: [u8; 8] = fabric([127, 0, 0, 0], PORT);

/// Returns a fabric as it is proved.
pub(super) const fn fabric(prefix: [u8; 4], port: u16) -> [u8; 8] {
    let [low, high] = port.to_le_bytes();
    let [first, second, third, fourth] = prefix;
    [fourth, third, second, first, low, high, 0, 0]
}

/// Whether the other side has closed the connection.
fn is_over(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// The greetings of both sides of a connection, as they were sent.
pub(super) struct Said {
    pub(super) hello: Vec<u8>,
    pub(super) welcome: Vec<u8>,
}

impl Said {
    /// The code of the `WELCOME` of a target that has a secret.
    pub(super) fn target(&self, secret: &[u8]) -> Mac {
        self.target_of(FABRIC, secret)
    }

    /// The proof of a target in another fabric.
    pub(super) fn target_of(&self, fabric: [u8; 8], secret: &[u8]) -> Mac {
        let welcome = &self.welcome[..WELCOME_MAC];
        let parts: [&[u8]; 4] = [b"kfi-soft target", &fabric, &self.hello, welcome];
        hmac(secret, &parts)
    }

    /// The proof of an initiator that has the secret, as in its `PROOF`.
    pub(super) fn initiator(&self, secret: &[u8]) -> Mac {
        self.initiator_of(FABRIC, secret)
    }

    /// The proof of an initiator in another fabric.
    pub(super) fn initiator_of(&self, fabric: [u8; 8], secret: &[u8]) -> Mac {
        let parts: [&[u8]; 4] = [b"kfi-soft initiator", &fabric, &self.hello, &self.welcome];
        hmac(secret, &parts)
    }

    /// The proof in the `WELCOME`.
    pub(super) fn mac(&self) -> Mac {
        let mut mac = [0; 32];
        mac.copy_from_slice(&self.welcome[WELCOME_MAC..HELLO]);
        mac
    }
}

/// A connection with a NIC.
pub(super) struct Peer {
    stream: TcpStream,
    /// All requests below this one have been read, or answered.
    ack: u64,
    /// Bytes behind the last header that are yet to be read.
    left: usize,
    /// How many requests the other side takes at a time.
    window: u32,
}

impl Peer {
    /// The `HELLO` of one side to the other.
    pub(super) fn hello(source: Ipv4Addr, target: Ipv4Addr, session: u64) -> Hello {
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
            flows: 0,
            proof: false,
            nonce: [0; 32],
        }
    }

    /// Connects to the NIC at `target`, as one at `source`, and says nothing yet.
    pub(super) fn open(source: Ipv4Addr, target: Ipv4Addr) -> Result<Self, Stop> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddrV4::new(source, 0))?;
        connect(&socket, &SocketAddrV4::new(target, PORT))?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            ack: 1,
            left: 0,
            window: 0,
        })
    }

    /// Ends the connection with a reset, not as one that has nothing more to say.
    pub(super) fn reset(self) -> Outcome {
        sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
        Ok(())
    }

    /// Connects to the NIC at `target`, as one at `source`, in a session that is later than those before.
    pub(super) fn connect(source: Ipv4Addr, target: Ipv4Addr, session: u64) -> Result<Self, Stop> {
        Ok(Self::begin((source, target), session)?.0)
    }

    /// As [`Self::connect`]; returns the birth of the session, too.
    pub(super) fn begin(
        (source, target): (Ipv4Addr, Ipv4Addr),
        session: u64,
    ) -> Result<(Self, u64), Stop> {
        let hello = Self::hello(source, target, session);
        let (mut this, said) = Self::open(source, target)?.greet(hello)?;
        let Ok((_, Frame::Welcome(welcome, _))) = Frame::parse(&said.welcome) else {
            return Err(Stop::fail("no WELCOME"));
        };
        check!(!welcome.proof, "a secret is wanted");
        this.acknowledged()?;
        Ok((this, welcome.birth))
    }

    /// Goes on with a session on another connection, in which all requests below `ack` are over; returns the
    /// first number that was not read.
    pub(super) fn resume(
        (source, target): (Ipv4Addr, Ipv4Addr),
        (session, birth): (u64, u64),
        ack: u64,
    ) -> Result<(Self, u64), Stop> {
        let hello = Hello {
            birth,
            ..Self::hello(source, target, session)
        };
        let mut this = Self::open(source, target)?;
        this.ack = ack;
        let (mut this, said) = this.greet(hello)?;
        let Ok((_, Frame::Welcome(welcome, _))) = Frame::parse(&said.welcome) else {
            return Err(Stop::fail("no WELCOME"));
        };
        check!(welcome.birth == birth, "the session is another one");
        let next = this.acknowledged()?;
        Ok((this, next))
    }

    /// As [`Self::connect`], with a secret that both have.
    pub(super) fn connect_with(
        (source, target): (Ipv4Addr, Ipv4Addr),
        session: u64,
        secret: &[u8],
    ) -> Result<(Self, Said), Stop> {
        let (mut this, said) = Self::call((source, target), session, true)?;
        check!(
            said.mac() == said.target(secret),
            "it does not prove itself"
        );
        this.prove(said.initiator(secret))?;
        this.acknowledged()?;
        Ok((this, said))
    }

    /// Says `HELLO`, as somebody who wants proof or not, and no more; returns what both have said.
    pub(super) fn call(
        (source, target): (Ipv4Addr, Ipv4Addr),
        session: u64,
        proof: bool,
    ) -> Result<(Self, Said), Stop> {
        Self::call_as((source, target), session, |hello| hello.proof = proof)
    }

    /// Says a `HELLO` that is changed, and no more; returns what both have said.
    pub(super) fn call_as(
        (source, target): (Ipv4Addr, Ipv4Addr),
        session: u64,
        change: impl FnOnce(&mut Hello),
    ) -> Result<(Self, Said), Stop> {
        let mut hello = Self::hello(source, target, session);
        change(&mut hello);
        Self::open(source, target)?.greet(hello)
    }

    /// Is not heard by the NIC at `target`, as one at `source`, whatever it says.
    pub(super) fn be_turned_away(source: Ipv4Addr, target: Ipv4Addr) -> Outcome {
        let mut this = Self::open(source, target)?;
        let hello = this.bytes(&Frame::Hello(Self::hello(source, target, 1)), 0)?;
        // The connection may be closed already.
        let _ = this.stream.write_all(&hello);
        this.ends_silently()
    }

    /// Says `HELLO`, and at once that nothing comes behind it, as somebody who goes on with a session, in which all
    /// requests below `ack` are over; and reads all that is said.
    pub(super) fn come_and_go(
        (source, target): (Ipv4Addr, Ipv4Addr),
        (session, birth): (u64, u64),
        ack: u64,
    ) -> Outcome {
        let mut this = Self::open(source, target)?;
        this.ack = ack;
        let hello = Hello {
            birth,
            ..Self::hello(source, target, session)
        };
        let hello = this.bytes(&Frame::Hello(hello), 0)?;
        this.stream.write_all(&hello)?;
        this.says_no_more()?;
        this.until_closed()
    }

    /// As [`Self::call`], as somebody who wants proof, and names a session that is known from before.
    pub(super) fn call_again(
        (source, target): (Ipv4Addr, Ipv4Addr),
        birth: u64,
    ) -> Result<(Self, Said), Stop> {
        let hello = Hello {
            proof: true,
            birth,
            ..Self::hello(source, target, 1)
        };
        Self::open(source, target)?.greet(hello)
    }

    /// Says `PROOF`.
    pub(super) fn prove(&mut self, mac: Mac) -> Outcome {
        self.write(&Frame::Proof(mac), 0)
    }

    /// Reads an `ACK`; returns the first number that was not read.
    fn acknowledged(&mut self) -> Result<u64, Stop> {
        let header = self.header()?;
        match Frame::parse(&header) {
            Ok((common, Frame::Ack)) => Ok(common.ack),
            _ => Err(Stop::fail("no ACK")),
        }
    }

    /// Sends nothing more.
    pub(super) fn says_no_more(&self) -> Outcome {
        Ok(self.stream.shutdown(Shutdown::Write)?)
    }

    /// Makes sure that nothing comes any more, not even a `BYE`.
    pub(super) fn ends_silently(&mut self) -> Outcome {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Stop::fail(format!("a frame of type {}", byte[0]))),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads frames until there is a `BYE`, behind which nothing comes any more; returns its code.
    pub(super) fn farewell(&mut self) -> Result<u32, Stop> {
        let code = self.pick(|_, frame| match frame {
            Frame::Bye(code) => Some(*code),
            _ => None,
        })?;
        self.ends_silently()?;
        Ok(code)
    }

    /// Reads all that comes, until nothing comes any more.
    pub(super) fn until_closed(&mut self) -> Outcome {
        match io::copy(&mut self.stream, &mut io::sink()) {
            Ok(_) => Ok(()),
            Err(error) if is_over(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends frames without a meaning until nobody is there to receive them.
    pub(super) fn flood(&mut self) -> Outcome {
        let mut frame = self.bytes(&Frame::Ack, 0)?;
        // One of a later version.
        frame[0] = 99;
        let frames = frame.repeat(1000);
        loop {
            match self.stream.write_all(&frames) {
                Ok(()) => {}
                Err(error) if is_over(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Says `HELLO` on a new connection, as it was said before, and no more.
    pub(super) fn replay(
        (source, target): (Ipv4Addr, Ipv4Addr),
        before: &Said,
    ) -> Result<(Self, Said), Stop> {
        match Frame::parse(&before.hello) {
            Ok((_, Frame::Hello(hello))) => Self::open(source, target)?.greet(hello),
            _ => Err(Stop::fail("no HELLO")),
        }
    }

    /// Says `HELLO`, and reads the answer, whatever it is.
    fn greet(mut self, hello: Hello) -> Result<(Self, Said), Stop> {
        let said = Said {
            hello: self.bytes(&Frame::Hello(hello), 0)?,
            welcome: Vec::new(),
        };
        self.stream.write_all(&said.hello)?;
        let welcome = self.header()?;
        if let Ok((_, Frame::Welcome(welcome, _))) = Frame::parse(&welcome) {
            self.window = welcome.window;
        }
        Ok((self, Said { welcome, ..said }))
    }

    /// Is refused by the NIC at `target`, as one at `source` that says that it knows it from before.
    pub(super) fn be_refused(source: Ipv4Addr, target: Ipv4Addr) -> Outcome {
        let hello = Hello {
            birth: 7,
            ..Self::hello(source, target, 1)
        };
        let (mut this, _) = Self::open(source, target)?.greet(hello)?;
        this.until(|frame| matches!(frame, Frame::Bye(_)))?;
        Ok(())
    }

    /// Listens as the NIC at an address.
    pub(super) fn listen(address: Ipv4Addr) -> Result<TcpListener, Stop> {
        Ok(TcpListener::bind(SocketAddrV4::new(address, PORT))?)
    }

    /// As [`Self::listen`], with as little room for what is received as there may be.
    pub(super) fn listen_without_room(address: Ipv4Addr) -> Result<TcpListener, Stop> {
        let listener = Self::listen(address)?;
        sockopt::set_socket_recv_buffer_size(&listener, 1)?;
        Ok(listener)
    }

    /// Takes a connection from another NIC.
    pub(super) fn accept(listener: &TcpListener) -> Result<Self, Stop> {
        let (mut this, hello, _) = Self::take(listener)?;
        check!(!hello.proof, "a secret is wanted");
        this.write(&Frame::Welcome(Self::welcome(&hello), [0; 32]), 0)?;
        this.write(&Frame::Ack, 0)?;
        Ok(this)
    }

    /// As [`Self::accept`], as a target that has read all requests below `next`; returns the `HELLO`, too.
    pub(super) fn accept_again(listener: &TcpListener, next: u64) -> Result<(Self, Hello), Stop> {
        let (mut this, hello, _) = Self::take(listener)?;
        this.welcome_as(&hello, |_| ())?;
        this.has_read(next)?;
        Ok((this, hello))
    }

    /// Answers a `HELLO` with a `WELCOME` that is changed.
    pub(super) fn welcome_as(&mut self, hello: &Hello, change: impl FnOnce(&mut Hello)) -> Outcome {
        let mut welcome = Self::welcome(hello);
        change(&mut welcome);
        self.write(&Frame::Welcome(welcome, [0; 32]), 0)
    }

    /// Says that all requests below a number were read.
    pub(super) fn has_read(&mut self, next: u64) -> Outcome {
        self.ack = next;
        self.write(&Frame::Ack, 0)
    }

    /// As [`Self::accept`], with a secret that both have.
    pub(super) fn accept_with(listener: &TcpListener, secret: &[u8]) -> Result<(Self, Said), Stop> {
        let (mut this, hello, said) = Self::take(listener)?;
        check!(hello.proof, "no secret is wanted");
        let said = this.answer(&hello, said, |said| said.target(secret))?;
        let header = this.header()?;
        let Ok((_, Frame::Proof(mac))) = Frame::parse(&header) else {
            return Err(Stop::fail("no PROOF"));
        };
        check!(mac == said.initiator(secret), "it does not prove itself");
        this.write(&Frame::Ack, 0)?;
        Ok((this, said))
    }

    /// Takes a connection; returns the `HELLO` on it, and as it was sent.
    pub(super) fn take(listener: &TcpListener) -> Result<(Self, Hello, Vec<u8>), Stop> {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut this = Self {
            stream,
            ack: 1,
            left: 0,
            window: WINDOW,
        };
        let header = this.header()?;
        let Ok((common, Frame::Hello(hello))) = Frame::parse(&header) else {
            return Err(Stop::fail("no HELLO"));
        };
        // Requests that were answered before have been read before.
        this.ack = common.ack;
        Ok((this, hello, header))
    }

    /// The parameters of a target, for its `WELCOME`.
    fn welcome(hello: &Hello) -> Hello {
        Hello {
            incarnation: 1,
            expected: hello.incarnation,
            birth: 1,
            eager: EAGER,
            window: WINDOW,
            flows: 0,
            ..*hello
        }
    }

    /// Answers a `HELLO` with a `WELCOME` that has a code.
    pub(super) fn answer(
        &mut self,
        hello: &Hello,
        said: Vec<u8>,
        mac: impl FnOnce(&Said) -> Mac,
    ) -> Result<Said, Stop> {
        let welcome = Self::welcome(hello);
        let said = Said {
            hello: said,
            welcome: self.bytes(&Frame::Welcome(welcome, [0; 32]), 0)?,
        };
        let welcome = self.bytes(&Frame::Welcome(welcome, mac(&said)), 0)?;
        self.stream.write_all(&welcome)?;
        Ok(Said { welcome, ..said })
    }

    /// Sends bytes, whatever they mean.
    pub(super) fn say(&mut self, bytes: &[u8]) -> Outcome {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Returns a frame without a body, as it is sent.
    fn bytes(&self, frame: &Frame<'_>, id: u64) -> Result<Vec<u8>, Stop> {
        let mut header = vec![0; MAX_HEAD];
        let len = frame.write(id, self.ack, 0, &mut header);
        header.truncate(len.ok_or_else(|| Stop::fail("no such frame"))?);
        Ok(header)
    }

    /// Writes a frame without a body.
    pub(super) fn write(&mut self, frame: &Frame<'_>, id: u64) -> Outcome {
        let bytes = self.bytes(frame, id)?;
        Ok(self.stream.write_all(&bytes)?)
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
            len,
            ..Self::message_to(to)
        };
        self.ask(id, request, key.map(|key| Range { addr: 0, len, key }))
    }

    /// Sends a message of no bytes to a port, which has waited for so many milliseconds for its receiver, and
    /// may be the first one after that was not ready.
    pub(super) fn message(&mut self, id: u64, to: u16, restarts: bool, waited: u32) -> Outcome {
        let request = Request {
            eager: true,
            restarts,
            waited,
            ..Self::message_to(to)
        };
        self.ask(id, request, None)
    }

    /// Sends a message of no bytes to a port, with a tag.
    pub(super) fn tagged(&mut self, id: u64, to: u16, tag: u64) -> Outcome {
        let request = Request {
            kind: Kind::Tagged,
            tag,
            eager: true,
            ..Self::message_to(to)
        };
        self.ask(id, request, None)
    }

    /// Sends a message of no bytes to a port, for those with an authorization key.
    pub(super) fn message_with(&mut self, id: u64, to: u16, key: &[u8]) -> Outcome {
        let request = Request {
            key,
            eager: true,
            ..Self::message_to(to)
        };
        self.ask(id, request, None)
    }

    /// Sends a message of no bytes to a port, which belongs to a flow.
    pub(super) fn message_in(&mut self, id: u64, to: u16, flow: u16) -> Outcome {
        let request = Request {
            flow,
            eager: true,
            ..Self::message_to(to)
        };
        self.ask(id, request, None)
    }

    /// Asks for an exchange of as many elements as there may be, if they are what they are compared with, in a
    /// region of an endpoint at a port: a request with all that one can bring. It is of flow 1, in which it may
    /// be the first one after that was stopped.
    pub(super) fn exchange(&mut self, id: u64, (to, key): (u16, u64), restarts: bool) -> Outcome {
        // Of `enum kfi_op` and `enum kfi_datatype`.
        const CSWAP: u8 = 12;
        const UINT64: u8 = 7;
        const LEN: u64 = 4096;
        let request = Request {
            kind: Kind::Atomic {
                form: 2,
                op: CSWAP,
                datatype: UINT64,
            },
            len: LEN,
            flow: 1,
            eager: true,
            restarts,
            ..Self::message_to(to)
        };
        let range = Range {
            addr: 0,
            len: LEN,
            key,
        };
        self.ask_with(id, request, Some(range), &[0; 2 * LEN as usize])
    }

    /// Adds to the number of 64 bits that a region of an endpoint at a port begins with, and asks for what it was.
    pub(super) fn add(&mut self, id: u64, (to, key): (u16, u64), number: u64) -> Outcome {
        // Of `enum kfi_op` and `enum kfi_datatype`.
        const SUM: u8 = 2;
        const UINT64: u8 = 7;
        const LEN: u64 = 8;
        let request = Request {
            kind: Kind::Atomic {
                form: 1,
                op: SUM,
                datatype: UINT64,
            },
            len: LEN,
            eager: true,
            ..Self::message_to(to)
        };
        let range = Range {
            addr: 0,
            len: LEN,
            key,
        };
        self.ask_with(id, request, Some(range), &number.to_le_bytes())
    }

    /// Begins to send a message of twice as many bytes to a port, and stops with the first half; it may be the first
    /// one after its flow was stopped.
    pub(super) fn half_a_message(
        &mut self,
        id: u64,
        to: u16,
        half: &[u8],
        restarts: bool,
    ) -> Outcome {
        let request = Request {
            len: 2 * half.len() as u64,
            eager: true,
            restarts,
            ..Self::message_to(to)
        };
        let mut header = [0; MAX_HEAD];
        let head = request.write(
            id,
            self.ack,
            2 * half.len(),
            std::iter::empty(),
            &mut header,
        );
        let head = head.ok_or_else(|| Stop::fail("no such request"))?;
        self.say(&header[..head])?;
        self.say(half)
    }

    /// Sends a message to a port, with its bytes.
    pub(super) fn message_of(&mut self, id: u64, to: u16, bytes: &[u8]) -> Outcome {
        let request = Request {
            len: bytes.len() as u64,
            eager: true,
            ..Self::message_to(to)
        };
        self.ask_with(id, request, None, bytes)
    }

    /// A message of no bytes to a port.
    fn message_to(to: u16) -> Request<'static> {
        Request {
            kind: Kind::Message,
            from: 1,
            to,
            context: 0,
            named: true,
            flow: 0,
            key: &[],
            tag: 0,
            data: None,
            len: 0,
            offset: 0,
            ranges: Ranges::NONE,
            eager: false,
            restarts: false,
            waited: 0,
        }
    }

    /// Sends a request without data, of a range of a region or none.
    fn ask(&mut self, id: u64, request: Request<'_>, range: Option<Range>) -> Outcome {
        self.ask_with(id, request, range, &[])
    }

    /// As [`Self::ask`], with data.
    fn ask_with(
        &mut self,
        id: u64,
        request: Request<'_>,
        range: Option<Range>,
        data: &[u8],
    ) -> Outcome {
        let mut header = [0; MAX_HEAD];
        let head = request.write(id, self.ack, data.len(), range.into_iter(), &mut header);
        let head = head.ok_or_else(|| Stop::fail("no such request"))?;
        self.stream.write_all(&header[..head])?;
        Ok(self.stream.write_all(data)?)
    }

    /// Brings bytes of a request that were asked for.
    pub(super) fn data(&mut self, id: u64, offset: u64, bytes: &[u8]) -> Outcome {
        let header = self.data_header(id, offset, bytes.len())?;
        self.stream.write_all(&header)?;
        Ok(self.stream.write_all(bytes)?)
    }

    /// Begins to bring so many bytes of a request, and stops with the first of them.
    pub(super) fn begin_data(&mut self, id: u64, offset: u64, len: usize, first: &[u8]) -> Outcome {
        let header = self.data_header(id, offset, len)?;
        self.stream.write_all(&header)?;
        Ok(self.stream.write_all(first)?)
    }

    /// Returns the header of a frame of data.
    fn data_header(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>, Stop> {
        let mut header = vec![0; MAX_HEAD];
        let head = Frame::Data(offset).write(id, self.ack, len, &mut header);
        header.truncate(head.ok_or_else(|| Stop::fail("no such data"))?);
        Ok(header)
    }

    /// Brings a byte of a request ten times a second, of so many in a frame, until nobody is there to receive
    /// it; fails if that is never so.
    pub(super) fn dribble(&mut self, id: u64, frame: usize) -> Outcome {
        const MOST: usize = 600;
        for at in 0..MOST {
            let mut bytes = Vec::new();
            if at % frame == 0 {
                bytes = self.data_header(id, at as u64, frame)?;
            }
            bytes.push(1);
            match self.stream.write_all(&bytes) {
                Ok(()) => thread::sleep(Duration::from_millis(100)),
                Err(error) if is_over(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Stop::fail("it may go on for ever"))
    }

    /// Returns how many requests the other side takes at a time.
    pub(super) fn window(&self) -> u64 {
        u64::from(self.window)
    }

    /// Says that a request is not wanted any more.
    pub(super) fn withdraw(&mut self, id: u64) -> Outcome {
        self.write(&Frame::Withdraw, id)
    }

    /// Says that all requests below a number are over.
    pub(super) fn acknowledge(&mut self, below: u64) -> Outcome {
        self.ack = below;
        self.write(&Frame::Ack, 0)
    }

    /// Reads frames until there is a request; returns its number, its flow, whether it is the first one after
    /// that was stopped, and for how many milliseconds it has waited for its receiver.
    pub(super) fn asked(&mut self) -> Result<(u64, u16, bool, u32), Stop> {
        loop {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((common, Frame::Request(request))) => {
                    let Request {
                        flow,
                        restarts,
                        waited,
                        ..
                    } = request;
                    return Ok((common.id, flow, restarts, waited));
                }
                Ok(_) => {}
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
    }

    /// Answers a request.
    pub(super) fn respond(&mut self, id: u64, response: Response) -> Outcome {
        self.ack = id + 1;
        self.write(&Frame::Response(response), id)
    }

    /// Reads a header; the body that follows it is skipped when the next one is read.
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

    /// Reads frames until there is one that `wanted` makes something of.
    pub(super) fn pick<T>(
        &mut self,
        mut wanted: impl FnMut(&Common, &Frame<'_>) -> Option<T>,
    ) -> Result<T, Stop> {
        loop {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((common, frame)) => {
                    if let Some(found) = wanted(&common, &frame) {
                        return Ok(found);
                    }
                }
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
    }

    /// Reads the body of the last frame.
    fn take_body(&mut self) -> Result<Vec<u8>, Stop> {
        let mut body = vec![0; std::mem::take(&mut self.left)];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// Reads frames until there are data of a request; returns where they begin, and their bytes.
    pub(super) fn bytes_of(&mut self, id: u64) -> Result<(u64, Vec<u8>), Stop> {
        let offset = self.pick(|common, frame| match frame {
            Frame::Data(offset) if common.id == id => Some(*offset),
            _ => None,
        })?;
        Ok((offset, self.take_body()?))
    }

    /// Reads frames until there is an answer; returns the number of the request, the status, and the bytes that
    /// come with it.
    pub(super) fn results(&mut self) -> Result<(u64, u32, Vec<u8>), Stop> {
        let (id, status) = self.pick(|common, frame| match frame {
            Frame::Response(response) => Some((common.id, response.status)),
            _ => None,
        })?;
        Ok((id, status, self.take_body()?))
    }

    /// Reads frames until bytes are wanted; returns the number of the request, where they begin, and how many
    /// they are.
    pub(super) fn pulled(&mut self) -> Result<(u64, u64, u64), Stop> {
        self.pick(|common, frame| match frame {
            Frame::Pull { offset, len } => Some((common.id, *offset, *len)),
            _ => None,
        })
    }

    /// Asks for bytes of a request.
    pub(super) fn pull(&mut self, id: u64, offset: u64, len: u64) -> Outcome {
        self.write(&Frame::Pull { offset, len }, id)
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

    /// Reads frames until so many of them have data; returns how many answers there were before that.
    pub(super) fn answers_beside_data(&mut self, count: usize) -> Result<usize, Stop> {
        let mut answers = 0;
        let mut data = 0;
        while data < count {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((_, Frame::Data(_))) => data += 1,
                Ok((_, Frame::Response(_))) => answers += 1,
                Ok(_) => {}
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
        Ok(answers)
    }

    /// Reads frames until there were so many answers, and so many bytes of data; returns the answers, by the
    /// numbers of their requests.
    pub(super) fn answers_and_data(
        &mut self,
        count: usize,
        bytes: usize,
    ) -> Result<BTreeMap<u64, Response>, Stop> {
        let mut answers = BTreeMap::new();
        let mut data = 0;
        while answers.len() < count || data < bytes {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((common, Frame::Data(_))) => data += common.body,
                Ok((common, Frame::Response(response))) => {
                    let before = answers.insert(common.id, response);
                    check!(before.is_none(), "{} was answered twice", common.id);
                }
                Ok(_) => {}
                Err(broken) => return Err(Stop::fail(format!("a frame: {broken:?}"))),
            }
        }
        Ok(answers)
    }

    /// Reads frames until bytes are asked for, or there is an answer; returns whether they are asked for.
    pub(super) fn is_pulled(&mut self) -> Result<bool, Stop> {
        loop {
            let header = self.header()?;
            match Frame::parse(&header) {
                Ok((_, Frame::Pull { .. })) => return Ok(true),
                Ok((_, Frame::Response(_))) => return Ok(false),
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
