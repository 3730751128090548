"""Shared memory within a host: the receiver reads the sender's memory in place.

A region is an anonymous memory file (memfd_create(2)); the neighbour maps it
through ``/proc/PID/fd/FD``. It has no name in ``/dev/shm``, so nothing is left
behind however a process ends, and it does not count against the size of
``/dev/shm`` in a container.

Each rank owns an *outbox*: a memory file with a counter of posted messages, a
counter of used ones that the right neighbour advances, and a ring of message
descriptors::

    0      magic, proof of membership
    256    posted   (+64: the reader sleeps)
    512    used     (+64: the owner sleeps)
    4096   SLOTS descriptors of 128 bytes
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabric.errors import ToolError
from trainer.collective.membership import Membership
from trainer.collective.shared_words import Counter, spins_for
from trainer.collective.transport import PAGE_BYTES, Incoming, Patience, Region

_MAGIC = b"PAISHM01"
_SLOTS = 256
_SLOT_BYTES = 128
_POSTED, _USED = 256, 512
_OUTBOX_BYTES = PAGE_BYTES + _SLOTS * _SLOT_BYTES
_DESCRIPTOR = struct.Struct("<BxxxiQQQQ32s")
_DATA, _FORGET = 1, 2
# Sleep at most this long before asking whether the job still lives.
_SLICE_S = 0.05
_WORD = 1 << 32


@dataclass(frozen=True)
class _Post:
    kind: int
    fd: int
    key: int
    nbytes: int
    start: int
    stop: int
    stamp: bytes


def _pages(nbytes: int) -> int:
    return max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES


def _map(fd: int, nbytes: int, *, writable: bool) -> np.ndarray:
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    return np.frombuffer(mmap.mmap(fd, nbytes, mmap.MAP_SHARED, access), dtype=np.uint8)


class ShmTransport:
    """Shared memory to both neighbours. All ranks must be on one host."""

    name = "shm"

    def __init__(self, membership: Membership) -> None:
        self.rank = membership.rank
        self.size = membership.size
        self._fds: dict[int, int] = {}
        self._foreign: dict[int, np.ndarray] = {}
        self._backlog: deque[_Post] = deque()
        self._next_key = 0
        self._sent = 0
        self._taken = 0
        self._due = 0
        outbox = self.allocate(_OUTBOX_BYTES)
        proof = membership.prove(b"shm outbox of rank %d" % self.rank)
        outbox.memory[: len(_MAGIC)] = np.frombuffer(_MAGIC, np.uint8)
        outbox.memory[64 : 64 + len(proof)] = np.frombuffer(proof, np.uint8)
        self._outbox = outbox.memory
        offer = {"pid": os.getpid(), "fd": self._fds[outbox.key]}
        offers = membership.gather("shm outbox", offer)
        left = (self.rank - 1) % self.size
        self._left_pid = int(offers[left]["pid"])
        expected = membership.prove(b"shm outbox of rank %d" % left)
        problem = ""
        try:
            self._inbox = self._open(int(offers[left]["fd"]), _OUTBOX_BYTES, writable=True)
            if self._inbox[64 : 64 + len(expected)].tobytes() != expected:
                problem = f"process {self._left_pid} is not rank {left} of this job"
        except OSError as error:
            problem = f"cannot map the memory of rank {left} (pid {self._left_pid}): {error}"
        answers = membership.gather("shm mapped", {"problem": problem})
        problems = [answer["problem"] for answer in answers if answer["problem"]]
        if problems:
            self.close()
            raise ToolError(
                f"cannot use shared memory between the ranks: {'; '.join(problems)}",
                advice="Ranks in different containers or user accounts need the tcp transport.",
            )
        spins = spins_for(self.size)
        mine, theirs = self._outbox.ctypes.data, self._inbox.ctypes.data
        self._posted = Counter(mine + _POSTED, spins=spins)
        self._used = Counter(mine + _USED, spins=spins)
        self._left_posted = Counter(theirs + _POSTED, spins=spins)
        self._left_used = Counter(theirs + _USED, spins=spins)

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        size = _pages(nbytes)
        fd = os.memfd_create("paisoar", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        self._next_key += 1
        self._fds[self._next_key] = fd
        return Region(self._next_key, _map(fd, size, writable=True))

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        fd = self._fds.pop(region.key)
        self._enqueue(_Post(_FORGET, 0, region.key, 0, 0, 0, bytes(32)))
        os.close(fd)

    def post(self, region: Region, start: int, stop: int, stamp: bytes) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._enqueue(
            _Post(_DATA, self._fds[region.key], region.key, region.memory.size, start, stop, stamp)
        )

    def take(self, into: np.ndarray | None, patience: Patience) -> Incoming:  # noqa: ARG002
        """See :class:`~trainer.collective.transport.Transport`; the view is the sender's memory."""
        while True:
            self._wait_for_post(patience)
            at = PAGE_BYTES + self._taken % _SLOTS * _SLOT_BYTES
            kind, fd, key, nbytes, start, stop, stamp = _DESCRIPTOR.unpack_from(
                self._inbox.data, at
            )
            if kind == _DATA:
                break
            self._foreign.pop(key, None)
            self.done()
        memory = self._foreign.get(key)
        if memory is None:
            try:
                memory = self._open(fd, nbytes, writable=False)
            except OSError as error:
                left = (self.rank - 1) % self.size
                raise patience.lost(left, f"took its memory away ({error})") from error
            self._foreign[key] = memory
        return Incoming(memory[start:stop], stamp, placed=False)

    def done(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        self._taken += 1
        self._left_used.advance(self._taken)

    def drain(self, patience: Patience) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        began = time.monotonic()
        while True:
            self._flush()
            used = self._used.read()
            if not self._backlog and (used - self._due) % _WORD < _WORD // 2:
                return
            self._used.wait_past(used, _SLICE_S)
            patience.check((self.rank + 1) % self.size, time.monotonic() - began)

    def close(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
        self._foreign.clear()
        self._backlog.clear()

    def _open(self, fd: int, nbytes: int, *, writable: bool) -> np.ndarray:
        flags = os.O_RDWR if writable else os.O_RDONLY
        mine = os.open(Path(f"/proc/{self._left_pid}/fd/{fd}"), flags | os.O_CLOEXEC)
        try:
            return _map(mine, nbytes, writable=writable)
        finally:
            os.close(mine)

    def _wait_for_post(self, patience: Patience) -> None:
        if self._left_posted.read() != self._taken % _WORD:
            return
        began = time.monotonic()
        while True:
            self._flush()
            # Our own backlog waits for the right neighbour: look at it often.
            slice_s = 0.001 if self._backlog else _SLICE_S
            seen = self._taken % _WORD
            if self._left_posted.wait_past(seen, slice_s) != seen:
                return
            patience.check((self.rank - 1) % self.size, time.monotonic() - began)

    def _enqueue(self, post: _Post) -> None:
        self._backlog.append(post)
        self._flush()

    def _flush(self) -> None:
        while self._backlog and (self._sent - self._used.read()) % _WORD < _SLOTS:
            post = self._backlog.popleft()
            _DESCRIPTOR.pack_into(
                self._outbox.data,
                PAGE_BYTES + self._sent % _SLOTS * _SLOT_BYTES,
                post.kind,
                post.fd,
                post.key,
                post.nbytes,
                post.start,
                post.stop,
                post.stamp,
            )
            self._sent += 1
            if post.kind == _DATA:
                self._due = self._sent
            self._posted.advance(self._sent)
