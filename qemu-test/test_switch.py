#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the switch between virtual machines, without any."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import contextlib
import socket
import struct
import tempfile
import unittest
from pathlib import Path
from typing import List, Optional, Tuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import switch

MAC = [bytes([0x52, 0x54, 0, 0, 0, number]) for number in range(5)]
# A frame that does not come is waited for so long.
PATIENCE = 0.2


def frame(to: bytes, source: int, text: bytes) -> bytes:
    return to + MAC[source] + b"\x88\xb5" + text.ljust(50, b"\0")


def order(source: int, text: str) -> bytes:
    said = text.encode()
    udp = struct.pack("!HHHH", 1234, switch.ORDERS_PORT, 8 + len(said), 0) + said
    ip = struct.pack("!BBHHHBBH8x", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
    return switch.BROADCAST + MAC[source] + b"\x08\x00" + ip + udp


def segment(to: bytes, source: int, ports: Tuple[int, int], data: bytes) -> bytes:
    """A frame with a segment of TCP."""
    tcp = struct.pack("!HHIIBBHHH", *ports, 1000, 2000, 5 << 4, switch.ACK, 512, 0, 0) + data
    addresses = bytes([10, 0, 3, 1, 10, 0, 3, 2])
    pseudo = addresses + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", switch.checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 7, 0, 64, 6, 0) + addresses
    ip = ip[:10] + struct.pack("!H", switch.checksum(ip)) + ip[12:]
    return to + MAC[source] + b"\x08\x00" + ip + tcp


class Cable:
    """The machine's end."""

    def __init__(self, folder: Path, number: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(switch.Switch.path(folder, number)))

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(struct.pack("!I", len(one)) + one for one in frames))

    def receive(self, patience: float = 10) -> Optional[bytes]:
        self._socket.settimeout(patience)
        try:
            length = struct.unpack("!I", self._exactly(4))[0]
        except TimeoutError:
            return None
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionError("unplugged")
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


class SwitchTest(unittest.TestCase):
    def setUp(self) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.switch = stack.enter_context(switch.Switch(folder, 3, seed=1))
        self.cables: List[Cable] = [Cable(folder, number) for number in (1, 2, 3)]
        for cable in self.cables:
            self.addCleanup(cable.close)
        # All are plugged in once each has been heard of.
        for number, cable in enumerate(self.cables, 1):
            cable.send(frame(switch.BROADCAST, number, b"here"))
            for other in self.cables:
                if other is not cable:
                    self.assertEqual(other.receive(), frame(switch.BROADCAST, number, b"here"))

    def test_frames_go_where_they_belong(self) -> None:
        one, two, three = self.cables
        sent = frame(MAC[2], 1, b"to two")
        one.send(sent)
        self.assertEqual(two.receive(), sent)
        unknown = frame(MAC[4], 1, b"to somebody")
        one.send(unknown)
        self.assertEqual(two.receive(), unknown)
        # And nothing before that.
        self.assertEqual(three.receive(), unknown)

    def test_frames_in_pieces(self) -> None:
        one, two, _ = self.cables
        sent = [frame(MAC[2], 1, b"%d" % number) for number in range(2000)]
        # More than goes into a socket, so that the rest is kept.
        for first in range(0, len(sent), 500):
            one.send(*sent[first : first + 500])
            for wanted in sent[first : first + 500]:
                self.assertEqual(two.receive(), wanted)

    def test_loss(self) -> None:
        one, two, _ = self.cables
        one.send(order(1, "loss 50"))
        one.send(*[frame(MAC[2], 1, b"%d" % number) for number in range(200)])
        one.send(order(1, "loss 0"), frame(MAC[2], 1, b"last"))
        got = 0
        while two.receive() != frame(MAC[2], 1, b"last"):
            got += 1
        self.assertTrue(50 < got < 150, got)
        self.assertEqual(self.switch.counts["lost"], 200 - got)

    def test_doubles(self) -> None:
        one, two, _ = self.cables
        one.send(order(1, "double 100"), frame(MAC[2], 1, b"twice"))
        self.assertEqual(two.receive(), frame(MAC[2], 1, b"twice"))
        self.assertEqual(two.receive(), frame(MAC[2], 1, b"twice"))

    def test_delays_mix(self) -> None:
        one, two, _ = self.cables
        sent = [frame(MAC[2], 1, b"%d" % number) for number in range(50)]
        one.send(order(1, "delay 1 20"), *sent)
        got = [two.receive() for _ in sent]
        self.assertNotEqual(got, sent)
        self.assertEqual(set(got), set(sent))

    def test_resets(self) -> None:
        one, two, _ = self.cables
        one.send(order(1, "reset 100 7471"))
        others = [frame(MAC[2], 1, b"no TCP"), segment(MAC[2], 1, (80, 1234), b"another port")]
        for ports in ((7471, 1234), (1234, 7471)):
            one.send(*others, segment(MAC[2], 1, ports, b"some bytes"))
            for other in others:
                self.assertEqual(two.receive(), other)
            got = two.receive()
            assert got
            # From and to the same, at the same place, and true.
            whole = segment(MAC[2], 1, ports, b"some bytes")
            self.assertEqual((got[:14], got[26:34]), (whole[:14], whole[26:34]))
            self.assertEqual(struct.unpack("!HHIIBB", got[34:48]), (*ports, 1000, 2000, 0x50, 0x14))
            self.assertEqual(struct.unpack("!H", got[16:18]), (len(got) - 14,))
            self.assertEqual(switch.checksum(got[14:34]), 0)
            pseudo = got[26:34] + struct.pack("!BBH", 0, 6, 20)
            self.assertEqual(switch.checksum(pseudo + got[34:]), 0)
        one.send(order(1, "reset 0 7471"), segment(MAC[2], 1, (7471, 1), b"whole"))
        self.assertEqual(two.receive(), segment(MAC[2], 1, (7471, 1), b"whole"))

    def test_cables(self) -> None:
        one, two, three = self.cables
        one.send(order(1, "cable 2 off"), frame(MAC[2], 1, b"lost"))
        self.assertIsNone(two.receive(PATIENCE))
        two.send(frame(MAC[1], 2, b"lost too"))
        self.assertIsNone(one.receive(PATIENCE))
        one.send(frame(MAC[3], 1, b"others"))
        self.assertEqual(three.receive(), frame(MAC[3], 1, b"others"))
        one.send(order(1, "cable 2 on"), frame(MAC[2], 1, b"again"))
        self.assertEqual(two.receive(), frame(MAC[2], 1, b"again"))

    def test_no_order(self) -> None:
        one, two, _ = self.cables
        one.send(order(1, "loss 101"), order(1, "dance"), frame(MAC[2], 1, b"after"))
        self.assertEqual(two.receive(), frame(MAC[2], 1, b"after"))
        self.assertEqual(len(self.switch.complaints), 2)
        self.assertEqual(self.switch.conditions.loss, 0)

    def test_unplugged(self) -> None:
        one, two, three = self.cables
        two.close()
        one.send(frame(MAC[2], 1, b"lost"), frame(MAC[3], 1, b"others"))
        self.assertEqual(three.receive(), frame(MAC[3], 1, b"others"))


if __name__ == "__main__":
    unittest.main()
