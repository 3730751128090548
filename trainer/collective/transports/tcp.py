"""TCP between neighbours: connections to the right and from the left, never blocking.

A message is a header (length, stamp) and the bytes. Messages take the
connections (channels) in turn. Data is sent from the
region and, where the caller says where it belongs, received in place. While
it waits for the left neighbour a rank keeps sending to the right one, so a
ring of full socket buffers cannot lock up. Connections are proved by HMAC
over a nonce that came through the rendezvous: a stranger on the machine cannot
take a place.
"""

from __future__ import annotations

import contextlib
import hmac
import mmap
import os
import secrets
import select
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from trainer.collective.party import Party
from trainer.collective.transport import PAGE_BYTES, STAMP_BYTES, Incoming, Patience, Region
from trainer.collective.wire import PROOF_BYTES, receive_exactly

_HEADER = struct.Struct(f"<Q{STAMP_BYTES}s")
_OPENING = struct.Struct(f"<I{PROOF_BYTES}s")
_SLICE_S = 0.05
# More than being woken takes, so that two ranks do not put each other to sleep.
_YIELD_S = 150e-6
_OPENING_WITHIN_S = 2.0
_CONNECT_S = 30.0
# sendmsg(2) takes at most IOV_MAX buffers; a few are enough to fill a socket.
_GATHER = 16


def _hello(sender: int, receiver: int, channel: int, nonce: str) -> bytes:
    return f"tcp ring {sender} to {receiver} by {channel} {nonce}".encode()


@dataclass(eq=False)
class _Channel:
    right: socket.socket
    left: socket.socket
    outgoing: deque[memoryview] = field(default_factory=deque)


class TcpTransport:
    """TCP to the right neighbour and from the left one; ``host`` is where we listen.

    ``channels`` connections carry each direction; ``traffic_class`` is the IP
    header's octet.
    """

    name = "tcp"
    reaches_all_memory = True

    def __init__(
        self, party: Party, *, host: str = "127.0.0.1", channels: int = 1, traffic_class: int = 0
    ) -> None:
        self.rank = party.rank
        self.size = party.size
        self._next_key = 0
        self._posted = 0
        self._taken = 0
        self._staging = np.empty(0, np.uint8)
        self._header = bytearray(_HEADER.size)
        self._channels = self._meet(party, host, channels)
        for channel in self._channels:
            for sock in (channel.right, channel.left):
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if traffic_class and sock.family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
                elif traffic_class:
                    # The ECN bits of TCP are the kernel's own.
                    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class & 0xFC)

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        size = max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES
        return self.register(np.frombuffer(mmap.mmap(-1, size), dtype=np.uint8))

    def register(self, memory: np.ndarray) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._next_key += 1
        return Region(self._next_key, memory)

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.transport.Transport`; the kernel knows of no region."""

    def post(self, region: Region, start: int, stop: int, stamp: bytes) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        channel = self._channels[self._posted % len(self._channels)]
        self._posted += 1
        channel.outgoing.append(memoryview(_HEADER.pack(stop - start, stamp)))
        if stop > start:
            channel.outgoing.append(region.memory[start:stop].data)
        # A broken connection shows in take or drain, which can say who it was.
        with contextlib.suppress(OSError):
            _send(channel)

    def take(self, into: np.ndarray | None, nbytes: int, patience: Patience) -> Incoming:
        """See :class:`~trainer.collective.transport.Transport`."""
        channel = self._channels[self._taken % len(self._channels)]
        self._taken += 1
        placed = into is not None and into.size == nbytes
        if placed:
            assert into is not None
            view = into
        else:
            if self._staging.size < nbytes:
                self._staging = np.empty(nbytes, np.uint8)
            view = self._staging[:nbytes]
        # Header and data in one call; a header that says otherwise ends the job.
        buffers = [memoryview(self._header)]
        if nbytes:
            buffers.append(view.data)
        self._receive(channel, buffers, patience)
        length, stamp = _HEADER.unpack(self._header)
        if length != nbytes:
            return Incoming(np.empty(0 if nbytes else 1, np.uint8), stamp, placed=False)
        return Incoming(view, stamp, placed)

    def done(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`; what came is a copy already."""

    def drain(self, patience: Patience) -> None:
        """See :class:`~trainer.collective.transport.Transport`; until the kernel has a copy."""
        began = time.monotonic()
        while waiting := [c.right for c in self._channels if c.outgoing]:
            if not self._try_send(patience):
                select.select([], waiting, [], _SLICE_S)
                patience.check((self.rank + 1) % self.size, time.monotonic() - began)

    def close(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        for channel in self._channels:
            channel.outgoing.clear()
            channel.right.close()
            channel.left.close()

    def _receive(self, channel: _Channel, buffers: list[memoryview], patience: Patience) -> None:
        """Fill the buffers, or only the first one if the header in it speaks of no such data."""
        left = (self.rank - 1) % self.size
        expected = sum(len(buffer) for buffer in buffers)
        wanted = expected - len(buffers[0])
        began = 0.0
        while expected:
            try:
                count = channel.left.recvmsg_into(buffers)[0]
            except BlockingIOError:
                if not self._try_send(patience):
                    began = began or time.monotonic()
                    waited_s = time.monotonic() - began
                    if waited_s < _YIELD_S:
                        os.sched_yield()
                    else:
                        self._sleep(channel.left)
                        patience.check(left, waited_s)
                continue
            except OSError as error:
                raise patience.lost(left, f"broke its connection ({error.strerror})") from error
            if not count:
                raise patience.lost(left, "closed its connection")
            expected -= count
            began = 0.0
            _advance(buffers, count)
            if expected <= wanted and _HEADER.unpack(self._header)[0] != wanted:
                return

    def _sleep(self, left: socket.socket) -> None:
        """Until data arrives, or until there is room for what we still have to send."""
        poll = select.poll()
        poll.register(left, select.POLLIN)
        for channel in self._channels:
            if channel.outgoing:
                poll.register(channel.right, select.POLLOUT)
        poll.poll(_SLICE_S * 1000)

    def _try_send(self, patience: Patience) -> bool:
        try:
            # All of them, not only up to the first that takes something.
            return sum(_send(channel) for channel in self._channels if channel.outgoing) > 0
        except OSError as error:
            right = (self.rank + 1) % self.size
            raise patience.lost(right, f"broke its connection ({error.strerror})") from error

    def _meet(self, party: Party, host: str, channels: int) -> list[_Channel]:
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        nonce = secrets.token_hex(16)
        with socket.create_server((host, 0), backlog=max(16, channels)) as listener:
            places = party.gather("tcp address", [*listener.getsockname()[:2], nonce])
            address, port, theirs = places[right]
            outgoing = []
            try:
                for channel in range(channels):
                    sock = socket.create_connection((address, port), timeout=_CONNECT_S)
                    outgoing.append(sock)
                    hello = _hello(party.number(self.rank), party.number(right), channel, theirs)
                    sock.sendall(_OPENING.pack(channel, party.prove(hello)))
            except OSError as error:
                raise party.lost(right, f"refused our connection ({error})") from error
            openings = {}
            for channel in range(channels):
                hello = _hello(party.number(left), party.number(self.rank), channel, nonce)
                openings[_OPENING.pack(channel, party.prove(hello))] = channel
            incoming = self._welcome(party, listener, openings)
        return [_Channel(outgoing[channel], incoming[channel]) for channel in range(channels)]

    def _welcome(
        self, party: Party, listener: socket.socket, openings: dict[bytes, int]
    ) -> dict[int, socket.socket]:
        """Accept until the left neighbour has come by all channels; strangers are sent away."""
        listener.settimeout(_SLICE_S)
        began = time.monotonic()
        come: dict[int, socket.socket] = {}
        while len(come) < len(openings):
            party.check((self.rank - 1) % self.size, time.monotonic() - began)
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            sock.settimeout(_OPENING_WITHIN_S)
            said = b""
            with contextlib.suppress(OSError):
                said = receive_exactly(sock, _OPENING.size)
            known = [c for opening, c in openings.items() if hmac.compare_digest(opening, said)]
            if known and known[0] not in come:
                come[known[0]] = sock
            else:
                sock.close()
        return come


def _send(channel: _Channel) -> bool:
    """Give the kernel what it takes; False if it took nothing."""
    outgoing = channel.outgoing
    if not outgoing:
        return False
    buffers = [outgoing[i] for i in range(min(_GATHER, len(outgoing)))]
    try:
        sent = channel.right.sendmsg(buffers)
    except BlockingIOError:
        return False
    _advance(outgoing, sent)
    return True


def _advance(buffers: deque[memoryview] | list[memoryview], count: int) -> None:
    """Take ``count`` bytes off the front."""
    while count:
        if count < len(buffers[0]):
            buffers[0] = buffers[0][count:]
            return
        count -= len(buffers[0])
        del buffers[0]
