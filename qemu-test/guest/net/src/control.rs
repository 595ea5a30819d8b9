// SPDX-License-Identifier: GPL-2.0

//! How the first machine and the others talk to each other: lines of JSON over TCP.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The port of the first machine.
pub(crate) const PORT: u16 = 7400;

/// A machine from when it joins the others until it is reset, or its worker is killed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Life {
    /// Which machine, from 1 on.
    pub(crate) machine: u32,
    /// A number that its worker has chosen at random.
    pub(crate) number: u64,
}

/// A machine, and where it is in the fabric.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Peer {
    /// The machine.
    pub(crate) life: Life,
    /// The address of its endpoint, as `kfi_getname` has told it.
    pub(crate) name: Vec<u8>,
}

/// Traffic to be made.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Plan {
    /// Of random numbers.
    pub(crate) seed: u64,
    /// How long.
    pub(crate) millis: u64,
    /// Bytes of the longest messages.
    pub(crate) longest: u64,
}

/// Order of the first machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Order {
    /// All machines there are.
    Peers(Vec<Peer>),
    /// Make traffic, and tell how it went.
    Traffic(Plan),
    /// Tell what was received.
    Tell,
    /// Be reset, without a word to anybody.
    Reset,
    /// Kill the worker, likewise; another one takes its place.
    Kill,
    /// Unload the provider and load it again after a while.
    Reload,
    /// The end of the conversation.
    Bye,
}

/// How often a peer was sent to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Sent {
    /// To which peer.
    pub(crate) to: Life,
    /// Messages of which success was told.
    pub(crate) succeeded: u64,
    /// Messages that may have arrived or not.
    pub(crate) failed: u64,
}

/// Traffic that a machine has made.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Done {
    /// Messages.
    pub(crate) sent: Vec<Sent>,
    /// Writes, reads and atomic operations that were done.
    pub(crate) accesses: u64,
    /// Accesses that failed as nobody was there.
    pub(crate) failed_accesses: u64,
    /// Complaints: anything that should not be.
    pub(crate) wrong: Vec<String>,
}

/// Messages that a machine has received from its peers in its life.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Received {
    /// How many messages of each.
    pub(crate) from: Vec<(Life, u64)>,
    /// Complaints: anything that should not be.
    pub(crate) wrong: Vec<String>,
}

/// Message of a machine to the first one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Answer {
    /// It is there.
    Here(Peer),
    /// Its traffic is over.
    Done(Done),
    /// The messages it has received, as it was asked to tell.
    Received(Received),
    /// It cannot go on.
    Failed(String),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Link {
    /// Over a socket.
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self {
            writer: socket.try_clone()?,
            reader: BufReader::new(socket),
        })
    }

    /// Returns the sending side, too.
    pub(crate) fn split(self) -> (BufReader<TcpStream>, TcpStream) {
        (self.reader, self.writer)
    }
}

/// Sends a line, in one piece.
pub(crate) fn send<T: Serialize>(mut to: &TcpStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Receives a line; `None` if the other side has closed the connection.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
