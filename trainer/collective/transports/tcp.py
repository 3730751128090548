"""TCP between neighbours: one connection to the right, one from the left, never blocking.

A message is a header (length, stamp) and the bytes. Data is sent from the
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
import secrets
import select
import socket
import struct
import time
from collections import deque

import numpy as np

from trainer.collective.party import Party
from trainer.collective.transport import PAGE_BYTES, STAMP_BYTES, Incoming, Patience, Region
from trainer.collective.wire import PROOF_BYTES, receive_exactly

_HEADER = struct.Struct(f"<Q{STAMP_BYTES}s")
_OPENING = struct.Struct(f"<I{PROOF_BYTES}s")
_SLICE_S = 0.05
_OPENING_WITHIN_S = 2.0
_CONNECT_S = 30.0
# sendmsg(2) takes at most IOV_MAX buffers; a few are enough to fill a socket.
_GATHER = 16


def _hello(sender: int, receiver: int, nonce: str) -> bytes:
    return f"tcp ring {sender} to {receiver} {nonce}".encode()


class TcpTransport:
    """TCP to the right neighbour and from the left one; ``host`` is where we listen."""

    name = "tcp"
    reaches_all_memory = True

    def __init__(self, party: Party, *, host: str = "127.0.0.1") -> None:
        self.rank = party.rank
        self.size = party.size
        self._outgoing: deque[memoryview] = deque()
        self._regions: dict[int, np.ndarray] = {}
        self._next_key = 0
        self._staging = np.empty(0, np.uint8)
        self._header = bytearray(_HEADER.size)
        self._right, self._left = self._meet(party, host)
        for sock in (self._right, self._left):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(self._left, select.POLLIN)

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        size = max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES
        self._next_key += 1
        memory = np.frombuffer(mmap.mmap(-1, size), dtype=np.uint8)
        self._regions[self._next_key] = memory
        return Region(self._next_key, memory)

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._regions.pop(region.key)

    def post(self, region: Region, start: int, stop: int, stamp: bytes) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._outgoing.append(memoryview(_HEADER.pack(stop - start, stamp)))
        if stop > start:
            self._outgoing.append(region.memory[start:stop].data)
        # A broken connection shows in take or drain, which can say who it was.
        with contextlib.suppress(OSError):
            self._send()

    def take(self, into: np.ndarray | None, nbytes: int, patience: Patience) -> Incoming:
        """See :class:`~trainer.collective.transport.Transport`."""
        placed = into is not None and into.size == nbytes
        if placed:
            assert into is not None
            view = into
        else:
            if self._staging.size < nbytes:
                self._staging = np.empty(nbytes, np.uint8)
            view = self._staging[:nbytes]
        # Header and data in one call; a header that says otherwise ends the job.
        if nbytes:
            self._receive([memoryview(self._header), view.data], patience)
        else:
            self._receive([memoryview(self._header)], patience)
        length, stamp = _HEADER.unpack(self._header)
        if length != nbytes:
            return Incoming(np.empty(0 if nbytes else 1, np.uint8), stamp, placed=False)
        return Incoming(view, stamp, placed)

    def done(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`; what came is a copy already."""

    def drain(self, patience: Patience) -> None:
        """See :class:`~trainer.collective.transport.Transport`; until the kernel has a copy."""
        began = time.monotonic()
        while self._outgoing:
            if not self._try_send(patience):
                select.select([], [self._right], [], _SLICE_S)
                patience.check((self.rank + 1) % self.size, time.monotonic() - began)

    def close(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._outgoing.clear()
        self._right.close()
        self._left.close()

    def _receive(self, buffers: list[memoryview], patience: Patience) -> None:
        """Fill the buffers, or only the first one if the header in it speaks of no such data."""
        left = (self.rank - 1) % self.size
        expected = sum(len(buffer) for buffer in buffers)
        wanted = expected - len(buffers[0])
        began = 0.0
        while expected:
            try:
                count = self._left.recvmsg_into(buffers)[0]
            except BlockingIOError:
                if not self._try_send(patience):
                    now = time.monotonic()
                    began = began or now
                    self._sleep()
                    patience.check(left, time.monotonic() - began)
                continue
            except OSError as error:
                raise patience.lost(left, f"broke its connection ({error.strerror})") from error
            if not count:
                raise patience.lost(left, "closed its connection")
            expected -= count
            began = 0.0
            while count:
                if count < len(buffers[0]):
                    buffers[0] = buffers[0][count:]
                    break
                count -= len(buffers.pop(0))
            if expected <= wanted and _HEADER.unpack(self._header)[0] != wanted:
                return

    def _sleep(self) -> None:
        """Until data arrives, or until there is room for what we still have to send."""
        if self._outgoing:
            self._poll.register(self._right, select.POLLOUT)
            self._poll.poll(_SLICE_S * 1000)
            self._poll.unregister(self._right)
        else:
            self._poll.poll(_SLICE_S * 1000)

    def _try_send(self, patience: Patience) -> bool:
        try:
            return self._send()
        except OSError as error:
            right = (self.rank + 1) % self.size
            raise patience.lost(right, f"broke its connection ({error.strerror})") from error

    def _send(self) -> bool:
        """Give the kernel what it takes; False if it took nothing."""
        if not self._outgoing:
            return False
        buffers = [self._outgoing[i] for i in range(min(_GATHER, len(self._outgoing)))]
        try:
            sent = self._right.sendmsg(buffers)
        except BlockingIOError:
            return False
        while sent:
            first = self._outgoing[0]
            if sent < len(first):
                self._outgoing[0] = first[sent:]
                break
            sent -= len(first)
            self._outgoing.popleft()
        return True

    def _meet(self, party: Party, host: str) -> tuple[socket.socket, socket.socket]:
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        nonce = secrets.token_hex(16)
        with socket.create_server((host, 0)) as listener:
            mine = [*listener.getsockname()[:2], nonce]
            places = party.gather("tcp address", mine)
            address, port, theirs = places[right]
            try:
                sock = socket.create_connection((address, port), timeout=_CONNECT_S)
                proof = party.prove(_hello(self.rank, right, theirs))
                sock.sendall(_OPENING.pack(self.rank, proof))
            except OSError as error:
                raise party.lost(right, f"refused our connection ({error})") from error
            expected = _OPENING.pack(left, party.prove(_hello(left, self.rank, nonce)))
            return sock, self._welcome(party, listener, expected)

    def _welcome(self, party: Party, listener: socket.socket, expected: bytes) -> socket.socket:
        """Accept until it is the left neighbour that has come; strangers are sent away."""
        listener.settimeout(_SLICE_S)
        began = time.monotonic()
        while True:
            party.check((self.rank - 1) % self.size, time.monotonic() - began)
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            sock.settimeout(_OPENING_WITHIN_S)
            with contextlib.suppress(OSError):
                if hmac.compare_digest(receive_exactly(sock, len(expected)), expected):
                    return sock
            sock.close()
