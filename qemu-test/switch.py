# SPDX-License-Identifier: GPL-2.0
"""An Ethernet switch for virtual machines, with cables that can be bad.

A machine is joined by QEMU's stream socket: each frame after its length, four bytes, the highest
first. Frames go where their destination was last heard of, else everywhere.

The conditions are set here, or by the machines themselves: a UDP datagram to the broadcast
address of any network, port 7470, is taken for orders, one a line, and goes nowhere else:

  loss PERCENT         so many frames are lost
  double PERCENT       so many frames come twice
  delay MS [MORE]      each frame takes so long, and up to so much more: frames overtake each other
  reset PERCENT PORT   so many segments of TCP, from or to that port, become resets of their connection
  cable NUMBER on|off  of a machine, from 1 on
"""

from __future__ import annotations

import collections
import contextlib
import heapq
import os
import random
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Deque, Dict, List, Optional, Set, Tuple

ORDERS_PORT = 7470
# Frames that wait for a machine which does not read; what is more is lost.
QUEUED_FRAMES = 1024
LONGEST_FRAME = 1 << 16
BROADCAST = b"\xff" * 6
# Flags of TCP.
RST, ACK = 0x04, 0x10


class BadOrder(Exception):
    """An order that nobody understands."""


@dataclass
class Conditions:
    """The conditions under which frames are passed on."""

    loss: float = 0.0
    double: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0
    reset: float = 0.0
    port: int = 0
    cut: Set[int] = field(default_factory=set)

    def obey(self, order: str) -> None:
        words = order.split()
        try:
            if words[0] == "loss" and len(words) == 2:
                self.loss = percentage(words[1])
            elif words[0] == "double" and len(words) == 2:
                self.double = percentage(words[1])
            elif words[0] == "delay" and len(words) in (2, 3):
                delay, jitter = float(words[1]), float(words[2]) if len(words) == 3 else 0.0
                if not (0 <= delay <= 60_000 and 0 <= jitter <= 60_000):
                    raise ValueError
                self.delay, self.jitter = delay / 1000, jitter / 1000
            elif words[0] == "reset" and len(words) == 3:
                self.reset, self.port = percentage(words[1]), int(words[2])
            elif words[0] == "cable" and len(words) == 3 and words[2] in ("on", "off"):
                number = int(words[1])
                if words[2] == "off":
                    self.cut.add(number)
                else:
                    self.cut.discard(number)
            else:
                raise ValueError
        except (ValueError, IndexError):
            raise BadOrder(order) from None


def percentage(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise ValueError
    return value / 100


def orders(frame: bytes) -> Optional[List[str]]:
    """The orders in a frame; None if it is an ordinary one."""
    if len(frame) < 42 or frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[23] != 17:
        return None
    if frame[:6] != BROADCAST or struct.unpack("!H", frame[36:38])[0] != ORDERS_PORT:
        return None
    length = struct.unpack("!H", frame[38:40])[0]
    return frame[42 : 34 + length].decode("ascii", "replace").splitlines()


def checksum(data: bytes) -> int:
    """Of IPv4 and TCP."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset_instead(frame: bytes, port: int) -> Optional[bytes]:
    """A reset of the connection in place of a segment of it, whose bytes are lost; None if the frame
    is something else, or from and to other ports."""
    if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[23] != 6:
        return None
    if port not in struct.unpack("!HH", frame[34:38]):
        return None
    # Without what lies behind the headers, and without options.
    ip = bytearray(frame[14:34])
    struct.pack_into("!H", ip, 2, 40)
    struct.pack_into("!H", ip, 10, 0)
    struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
    tcp = bytearray(frame[34:54])
    struct.pack_into("!BBHHH", tcp, 12, 5 << 4, RST | ACK, 0, 0, 0)
    pseudo = bytes(ip[12:20]) + struct.pack("!BBH", 0, 6, 20)
    struct.pack_into("!H", tcp, 16, checksum(pseudo + bytes(tcp)))
    return frame[:14] + bytes(ip) + bytes(tcp)


class Port:
    """The end of a cable."""

    def __init__(self, number: int, listener: socket.socket) -> None:
        self.number = number
        self.listener = listener
        self.cable: Optional[socket.socket] = None
        self.received = bytearray()
        self.queue: Deque[bytes] = collections.deque()
        # The rest of what is being written.
        self.writing = b""

    def frames(self) -> List[bytes]:
        """Takes the complete frames out of what was received."""
        found = []
        while len(self.received) >= 4:
            length = struct.unpack("!I", self.received[:4])[0]
            if length > LONGEST_FRAME:
                raise ConnectionError("no frame is that long")
            if len(self.received) < 4 + length:
                break
            found.append(bytes(self.received[4 : 4 + length]))
            del self.received[: 4 + length]
        return found

    def unplug(self) -> None:
        if self.cable:
            self.cable.close()
        self.cable, self.writing = None, b""
        self.received.clear()
        self.queue.clear()


class Switch:
    """Joins machines. Use as a context; a thread does the work."""

    def __init__(self, folder: Path, ports: int, seed: int = 0) -> None:
        self.conditions = Conditions()
        # For tests, and for those who wonder.
        self.counts: Dict[str, int] = collections.Counter()
        self.complaints: List[str] = []
        self._random = random.Random(seed)
        self._where: Dict[bytes, int] = {}
        self._later: List[Tuple[float, int, int, bytes]] = []
        self._sequence = 0
        self._selector = selectors.DefaultSelector()
        self._ports: List[Port] = []
        for number in range(1, ports + 1):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.path(folder, number)))
            listener.listen(1)
            listener.setblocking(False)
            port = Port(number, listener)
            self._ports.append(port)
            self._selector.register(listener, selectors.EVENT_READ, port)
        self._wake, self._waker = os.pipe()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="switch", daemon=True)

    @staticmethod
    def path(folder: Path, number: int) -> Path:
        """The socket that a machine connects to."""
        return folder / f"port{number}"

    def __enter__(self) -> Switch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._waker, b"x")
        self._thread.join()
        for port in self._ports:
            port.unplug()
            port.listener.close()
        self._selector.close()
        os.close(self._wake)
        os.close(self._waker)

    def _run(self) -> None:
        while True:
            wait = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            for key, events in self._selector.select(wait):
                port: Optional[Port] = key.data
                if port is None:
                    return
                if key.fileobj is port.listener:
                    self._plug(port)
                    continue
                if key.fileobj is not port.cable:
                    # Unplugged by what was done for another one.
                    continue
                try:
                    if events & selectors.EVENT_READ:
                        self._read(port)
                    if events & selectors.EVENT_WRITE:
                        self._write(port)
                except OSError:
                    self._unplug(port)
            now = time.monotonic()
            while self._later and self._later[0][0] <= now:
                _, _, number, frame = heapq.heappop(self._later)
                self._queue(self._ports[number - 1], frame)

    def _plug(self, port: Port) -> None:
        cable, _ = port.listener.accept()
        self._unplug(port)
        cable.setblocking(False)
        port.cable = cable
        self._selector.register(cable, selectors.EVENT_READ, port)

    def _unplug(self, port: Port) -> None:
        if port.cable:
            self._selector.unregister(port.cable)
        port.unplug()

    def _read(self, port: Port) -> None:
        assert port.cable
        data = port.cable.recv(1 << 16)
        if not data:
            raise ConnectionError("unplugged")
        port.received += data
        for frame in port.frames():
            self._take(port.number, frame)

    def _take(self, source: int, frame: bytes) -> None:
        self.counts["received"] += 1
        if source in self.conditions.cut or len(frame) < 14:
            self.counts["cut"] += 1
            return
        if (said := orders(frame)) is not None:
            for order in said:
                try:
                    self.conditions.obey(order)
                except BadOrder:
                    self.complaints.append(f"machine {source}: {order!r} is no order")
            return
        if self._random.random() < self.conditions.reset:
            if reset := reset_instead(frame, self.conditions.port):
                self.counts["reset"] += 1
                frame = reset
        self._where[frame[6:12]] = source
        known = self._where.get(frame[:6]) if not frame[0] & 1 else None
        for port in self._ports:
            if port.number != source and known in (None, port.number):
                self._send(port, frame)

    def _send(self, port: Port, frame: bytes) -> None:
        conditions = self.conditions
        if self._random.random() < conditions.loss:
            self.counts["lost"] += 1
            return
        copies = 2 if self._random.random() < conditions.double else 1
        self.counts["doubled"] += copies - 1
        for _ in range(copies):
            delay = conditions.delay + self._random.random() * conditions.jitter
            if delay:
                self._sequence += 1
                due = time.monotonic() + delay
                heapq.heappush(self._later, (due, self._sequence, port.number, frame))
            else:
                self._queue(port, frame)

    def _queue(self, port: Port, frame: bytes) -> None:
        if port.number in self.conditions.cut or not port.cable:
            self.counts["cut"] += 1
            return
        if len(port.queue) >= QUEUED_FRAMES:
            self.counts["dropped"] += 1
            return
        port.queue.append(struct.pack("!I", len(frame)) + frame)
        try:
            self._write(port)
        except OSError:
            self._unplug(port)

    def _write(self, port: Port) -> None:
        assert port.cable
        while port.writing or port.queue:
            if not port.writing:
                port.writing = port.queue.popleft()
                self.counts["sent"] += 1
            with contextlib.suppress(BlockingIOError):
                port.writing = port.writing[port.cable.send(port.writing) :]
                continue
            break
        events = selectors.EVENT_READ
        if port.writing:
            events |= selectors.EVENT_WRITE
        self._selector.modify(port.cable, events, port)
