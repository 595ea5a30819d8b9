// SPDX-License-Identifier: GPL-2.0

//! The treatment of frames by the network: orders to the switch, see qemu-test/switch.py.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Where the switch listens: any broadcast address will do.
const SWITCH: (Ipv4Addr, u16) = (Ipv4Addr::BROADCAST, 7470);

/// The guest may drop an order, so each is given some times.
const TIMES: usize = 3;

/// The port of `kfi_soft`.
const PORT: u16 = 7471;

/// The network, as the machine that leads sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// The machine's address: it says by which device.
    pub(crate) own: Ipv4Addr,
    /// How many machines there are.
    pub(crate) machines: u32,
}

impl Network {
    /// Gives orders, one a line.
    pub(crate) fn order(self, text: &str) -> io::Result<()> {
        let socket = UdpSocket::bind((self.own, 0))?;
        socket.set_broadcast(true)?;
        for _ in 0..TIMES {
            socket.send_to(text.as_bytes(), SWITCH)?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// So many percent of all frames are lost.
    pub(crate) fn lose(self, percent: u32) -> io::Result<()> {
        self.order(&format!("loss {percent}"))
    }

    /// Frames are lost, come twice and overtake each other.
    pub(crate) fn spoil(self) -> io::Result<()> {
        self.order("loss 2\ndouble 2\ndelay 1 3")
    }

    /// So many percent of the segments of the fabric become resets of their connections.
    pub(crate) fn reset_connections(self, percent: f32) -> io::Result<()> {
        self.order(&format!("reset {percent} {PORT}"))
    }

    /// Pulls the cable of a machine.
    pub(crate) fn pull(self, machine: u32) -> io::Result<()> {
        self.order(&format!("cable {machine} off"))
    }

    /// Nothing happens to frames any more.
    pub(crate) fn repair(self) -> io::Result<()> {
        let cables = (1..=self.machines).map(|machine| format!("cable {machine} on\n"));
        let text: String = cables.collect();
        self.order(&format!(
            "loss 0\ndouble 0\ndelay 0\nreset 0 {PORT}\n{text}"
        ))
    }
}
