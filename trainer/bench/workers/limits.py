"""What the machine itself can do: copy memory, and move bytes through plain sockets.

``copy``: every rank copies as many bytes as the array has, all at once. An
allreduce in place has to read and write each rank's array once, as such a copy
does.

``sockets``: every rank sends to its right neighbour and receives from its left
one the 2(n-1)/n of the array that a ring allreduce has to send, over one
connection each, in both directions at once, and computes nothing. As an
allreduce does, it sends from an array of the message's size and receives into
it, and its connections have the congestion control of ours.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable

import numpy as np

from trainer.bench.worker import keep_to_a_core, serve
from trainer.collective.transports.tcp_meeting import WITHIN_A_HOST

_PIECE_BYTES = 1 << 20
# As our transport does, so that the limit is no lower for going to sleep earlier.
_YIELD_S = 150e-6


def main() -> None:
    """Arguments: copy or sockets, rank, ranks, and for sockets the ranks' ports."""
    kind, rank, ranks, *ports = sys.argv[1:]
    keep_to_a_core(int(rank), int(ranks))
    if kind == "copy":
        serve("limit-copy", int(rank), lambda: _copier)
    else:
        serve("limit-sockets", int(rank), lambda: _mover(int(rank), [int(port) for port in ports]))


def _copier(nbytes: int) -> Callable[[], object]:
    source, target = np.zeros(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    return lambda: np.copyto(target, source)


def _mover(rank: int, ports: list[int]) -> Callable[[int], Callable[[], object]]:
    size = len(ports)
    with socket.create_server(("127.0.0.1", ports[rank])) as listener:
        right = _connect(ports[(rank + 1) % size])
        left, _ = listener.accept()
    for sock in (left, right):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def prepare(nbytes: int) -> Callable[[], object]:
        volume = max(1, 2 * (size - 1) * nbytes // size)
        array = memoryview(bytearray(nbytes))
        return lambda: _move(left, right, volume, array)

    return prepare


def _connect(port: int) -> socket.socket:
    for _ in range(200):
        try:
            sock = socket.socket()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, WITHIN_A_HOST.encode())
            sock.connect(("127.0.0.1", port))
            return sock
        except ConnectionRefusedError:
            select.select([], [], [], 0.05)
    raise ConnectionError(f"nobody listens at port {port}")


def _move(left: socket.socket, right: socket.socket, volume: int, array: memoryview) -> None:
    """Send ``volume`` bytes from the array's beginning on, receive them from its middle on."""
    sent = received = 0
    idle_since = 0.0
    while sent < volume or received < volume:
        moved = 0
        if sent < volume:
            try:
                moved = right.send(_piece(array, sent, volume - sent))
                sent += moved
            except BlockingIOError:
                pass
        if received < volume:
            try:
                into = _piece(array, len(array) // 2 + received, volume - received)
                count = left.recv_into(into)
                if not count:
                    raise ConnectionError("the left neighbour has gone")
                received += count
                moved += count
            except BlockingIOError:
                pass
        if moved:
            idle_since = 0.0
            continue
        now = time.perf_counter()
        idle_since = idle_since or now
        if now - idle_since < _YIELD_S:
            os.sched_yield()
        else:
            waiting = [left] if received < volume else []
            select.select(waiting, [right] if sent < volume else [], [], 1.0)


def _piece(array: memoryview, at: int, most: int) -> memoryview:
    """At most so many bytes at a place that goes round the array."""
    at %= len(array)
    return array[at : at + min(most, _PIECE_BYTES)]


if __name__ == "__main__":
    main()
