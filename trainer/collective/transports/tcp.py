"""TCP between neighbours: connections to the right and from the left, never blocking.

A message is a header (length, stamp) and the bytes. Messages take the
connections (channels) in turn; an allreduce is one message on each of them
(:mod:`~trainer.collective.transports.tcp_ring`), but
small arrays go from every rank to every rank
(:mod:`~trainer.collective.transports.tcp_small`). Data is sent from the
region and, where the caller says where it belongs, received in place. While
it waits for the left neighbour a rank keeps sending to the right one, so a
ring of full socket buffers cannot lock up.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import struct
import time

import numpy as np

from trainer.collective.engine import address_of
from trainer.collective.party import Party
from trainer.collective.shared_words import waiting_habits
from trainer.collective.transport import PAGE_BYTES, STAMP_BYTES, Incoming, Patience, Region
from trainer.collective.transports import tcp_kernels as kernels
from trainer.collective.transports import tcp_ring, tcp_small
from trainer.collective.transports.tcp_meeting import meet

_HEADER = struct.Struct(f"<Q{STAMP_BYTES}s")
_SLICE_S = 0.05
_CODES = np.empty(0, np.int32)


class _Outgoing:
    """What is queued for the right neighbour: rows of (address, length) for each channel.

    A queue that has run empty begins again at its first row, which every
    drain leaves it at; until then it grows.
    """

    def __init__(self, channels: int) -> None:
        self.ends = np.zeros((channels, 2), np.int64)
        self._room(16)
        # Memory that is still to be sent is kept from being given back.
        self._kept: list[np.ndarray] = []

    @property
    def waiting(self) -> np.ndarray:
        """The channels that have something left to send."""
        return np.flatnonzero(self.ends[:, 0] != self.ends[:, 1])

    def add(self, channel: int, memory: np.ndarray, stamp: bytes) -> None:
        """Queue a header and the bytes of ``memory`` (uint8)."""
        last = int(self.ends[channel, 1])
        if last + 2 > self.rows.shape[1]:
            self._grow()
        header = self._headers[channel, last // 2]
        _HEADER.pack_into(header.data, 0, memory.size, stamp)
        self.rows[channel, last] = address_of(header), _HEADER.size
        self.rows[channel, last + 1] = address_of(memory), memory.size
        self.ends[channel, 1] = last + 2
        self._kept.append(memory)

    def forget(self) -> None:
        """All has been sent."""
        self._kept.clear()

    def clear(self) -> None:
        """Nothing of it will be sent."""
        self.ends[:] = 0
        self._kept.clear()

    def _room(self, rows: int) -> None:
        channels = self.ends.shape[0]
        self.rows = np.zeros((channels, rows, 2), np.int64)
        self.rows_at = address_of(self.rows)
        self._headers = np.zeros((channels, rows // 2, _HEADER.size), np.uint8)

    def _grow(self) -> None:
        rows, headers = self.rows, self._headers
        self._room(2 * rows.shape[1])
        self.rows[:, : rows.shape[1]] = rows
        # Rows still point to the old headers.
        self._kept.append(headers)


class TcpTransport:
    """TCP to the right neighbour and from the left one; ``host`` is where we listen.

    ``channels`` connections carry each direction; ``traffic_class`` is the IP
    header's octet, ``congestion_control`` see
    :func:`~trainer.collective.transports.tcp_meeting.meet`.
    """

    name = "tcp"
    reaches_all_memory = True

    def __init__(
        self,
        party: Party,
        *,
        host: str = "127.0.0.1",
        channels: int = 1,
        traffic_class: int = 0,
        congestion_control: str = "",
    ) -> None:
        self.rank = party.rank
        self.size = party.size
        self._next_key = 0
        self._posted = 0
        self._taken = 0
        self._staging = np.empty(0, np.uint8)
        self._header = np.zeros(_HEADER.size, np.uint8)
        self._length = self._header[:8].view(np.uint64)
        self._wanted = np.zeros((2, 2), np.int64)
        self._wanted_at = address_of(self._wanted)
        self._habits = waiting_habits(party.size)
        self._timespec = address_of(self._habits) + 3 * 8
        self._outgoing = _Outgoing(channels)
        most = tcp_small.MOST_RANKS
        met = meet(party, host, channels, congestion_control, everybody=party.size <= most)
        self._channels, self._sockets = met.channels, met.sockets
        self._rights = np.array([channel.right.fileno() for channel in self._channels], np.int32)
        self._lefts = np.array([channel.left.fileno() for channel in self._channels], np.int32)
        self._small = None
        if party.size <= most:
            rights = [sock.fileno() for sock in met.rights]
            lefts = [sock.fileno() for sock in met.lefts]
            self._small = tcp_small.SmallExchange(party.rank, rights, lefts, self._habits)
        self._state = np.zeros((channels, tcp_ring.STATE_COLUMNS), np.int64)
        self._headers = np.zeros((1 + channels, _HEADER.size), np.uint8)
        self._headers_at = address_of(self._headers)
        self._scratch = np.empty(channels * tcp_ring.SCRATCH_BYTES, np.uint8)
        self._scratch_at = address_of(self._scratch)
        self._polled = np.zeros((2 * channels, 2), np.int32)
        self._polled_at = address_of(self._polled)
        for sock in self._sockets:
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
        self._outgoing.add(self._posted % len(self._channels), region.memory[start:stop], stamp)
        self._posted += 1
        # A broken connection shows in take or drain, which can say who it was.
        self._push()

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
        self._wanted[0] = address_of(self._header), _HEADER.size
        self._wanted[1] = address_of(view), nbytes
        expected = self._receive(channel.left, nbytes, patience)
        stamp = self._header[8 : 8 + STAMP_BYTES].tobytes()
        if not expected:
            return Incoming(np.empty(0 if nbytes else 1, np.uint8), stamp, placed=False)
        return Incoming(view, stamp, placed)

    def done(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`; what came is a copy already."""

    def drain(self, patience: Patience) -> None:
        """See :class:`~trainer.collective.transport.Transport`; until the kernel has a copy."""
        began = time.monotonic()
        while (waiting := self._outgoing.waiting).size:
            if not self._push(patience):
                select.select([], [self._channels[i].right for i in waiting], [], _SLICE_S)
                patience.check((self.rank + 1) % self.size, time.monotonic() - began)
        self._outgoing.forget()

    def circulate(
        self, array: np.ndarray, op: int, form: int, divisor: int, stamp: bytes, patience: Patience
    ) -> tuple[int, bytes] | None:
        """See :class:`~trainer.collective.transport.Circulating`."""
        if self._small and self._small.takes(array.nbytes):
            header = _HEADER.pack(array.nbytes, stamp)
            found = self._small.allreduce(array, op, form, divisor, header, patience)
            return (found[0], _HEADER.unpack(found[1])[1]) if found else None
        state = self._state
        state[:] = 0
        state[:, tcp_ring.IN_ITEM] = 1
        _HEADER.pack_into(self._headers.data, 0, array.nbytes, stamp)
        began, before = time.monotonic(), b""
        while True:
            outcome = self._go_round(array, op, form, divisor)
            if outcome == kernels.DONE:
                return None
            if outcome == kernels.UNEXPECTED:
                self._send_headers()
                return (self.rank - 1) % self.size, self._strange_stamp()
            self._check(outcome, patience)
            if state.tobytes() != before:
                before, began = state.tobytes(), time.monotonic()
            comes = (state[:, tcp_ring.IN_ITEM] < 2 * self.size - 1).any()
            peer = (self.rank + (-1 if comes else 1)) % self.size
            patience.check(peer, time.monotonic() - began)

    def _go_round(self, array: np.ndarray, op: int, form: int, divisor: int) -> int:
        return tcp_ring.circulate(
            array[:0],
            address_of(array),
            array.size,
            op,
            form,
            divisor,
            self.rank,
            self.size,
            self._lefts,
            self._rights,
            self._state,
            self._headers,
            self._headers_at,
            self._scratch_at,
            self._wanted,
            self._wanted_at,
            self._polled,
            self._polled_at,
            _CODES,
            self._habits,
            self._timespec,
        )

    def close(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._outgoing.clear()
        for sock in self._sockets:
            sock.close()

    def _receive(self, left: socket.socket, nbytes: int, patience: Patience) -> bool:
        """Fill what is wanted; False as soon as the header speaks of another length."""
        peer = (self.rank - 1) % self.size
        outgoing = self._outgoing
        began, before = time.monotonic(), nbytes + _HEADER.size
        while True:
            outcome = kernels.pump(
                left.fileno(),
                self._wanted,
                self._wanted_at,
                self._length,
                nbytes,
                self._rights,
                outgoing.rows,
                outgoing.ends,
                outgoing.rows_at,
                _CODES,
                self._habits,
                self._timespec,
            )
            if outcome == kernels.DONE:
                return True
            if outcome == kernels.UNEXPECTED:
                return False
            self._check(outcome, patience)
            missing = int(self._wanted[:, 1].sum())
            if missing < before:
                before, began = missing, time.monotonic()
            self._sleep(left)
            patience.check(peer, time.monotonic() - began)

    def _check(self, outcome: int, patience: Patience) -> None:
        """Raise what an outcome of the compiled loops means, if it is an error."""
        if outcome == kernels.CLOSED:
            raise patience.lost((self.rank - 1) % self.size, "closed its connection")
        if outcome >= kernels.RIGHT_FAILED:
            raise self._broken(patience, 1, outcome - kernels.RIGHT_FAILED)
        if outcome >= kernels.LEFT_FAILED:
            raise self._broken(patience, -1, outcome - kernels.LEFT_FAILED)

    def _send_headers(self) -> None:
        """Let the right neighbour see, too, that we are doing something else than it."""
        for right, state in zip(self._rights, self._state, strict=True):
            rest = self._headers[0].tobytes()[state[tcp_ring.OUT_HEADER] :]
            with contextlib.suppress(OSError):
                os.write(right, rest)

    def _strange_stamp(self) -> bytes:
        """The stamp of a header that has come and is not ours."""
        mine = self._headers[0].tobytes()
        complete = self._state[:, tcp_ring.IN_HEADER] == _HEADER.size
        headers = [header.tobytes() for header in self._headers[1:][complete]]
        strange = next(header for header in headers if header != mine)
        return bytes(_HEADER.unpack(strange)[1])

    def _sleep(self, left: socket.socket) -> None:
        """Until data arrives, or until there is room for what we still have to send."""
        poll = select.poll()
        poll.register(left, select.POLLIN)
        for index in self._outgoing.waiting:
            poll.register(self._channels[index].right, select.POLLOUT)
        poll.poll(_SLICE_S * 1000)

    def _push(self, patience: Patience | None = None) -> bool:
        """Give the kernel what it takes; whether it took anything."""
        outgoing = self._outgoing
        moved = kernels.push(self._rights, outgoing.rows, outgoing.ends, outgoing.rows_at, _CODES)
        if moved < 0 and patience is not None:
            raise self._broken(patience, 1, -moved)
        return moved > 0

    def _broken(self, patience: Patience, side: int, code: int) -> Exception:
        peer = (self.rank + side) % self.size
        return patience.lost(peer, f"broke its connection ({os.strerror(code)})")
