"""Shared memory within a host: every rank maps every other rank's memory.

A region is an anonymous memory file (memfd_create(2)); the others map it
through ``/proc/PID/fd/FD``. It has no name in ``/dev/shm``, so nothing is left
behind however a process ends, and it does not count against the size of
``/dev/shm`` in a container.

Each rank owns a *board*: a memory file with its counters (collectives that it
has come to, and those in which it is done with the others' memory), two
descriptors of what it brings to a collective, used in turns, two slots for
small arrays, and the regions that it has given back lately::

    0      magic, proof of membership
    256    arrived    512  done    768  count of regions given back
    1024   two descriptors: tag of the data (key and offset), file, size, stamp
    2048   keys of the regions given back
    4096   two slots
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import numpy as np

from fabric.errors import ToolError
from trainer.collective import direct_kernels as kernels
from trainer.collective.engine import Place, address_of
from trainer.collective.party import Party
from trainer.collective.shared_words import read_word, waiting_habits
from trainer.collective.transport import PAGE_BYTES, STAMP_BYTES, Region

_MAGIC = b"PAISHM02"
_DESCRIPTOR = struct.Struct(f"<QQQ8x{STAMP_BYTES}s")
_FREED = struct.Struct("<I")
_KEY = struct.Struct("<Q")
_OFFSET_BITS = 40
NO_TAG = 0


def _pages(nbytes: int) -> int:
    return max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES


def _map(fd: int, nbytes: int) -> np.ndarray:
    # Faults are taken now, not in the first collective.
    flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
    return np.frombuffer(mmap.mmap(fd, nbytes, flags), dtype=np.uint8)


class SharedMemory:
    """The memory of the ranks of one host, each mapped by all; ToolError where that cannot be."""

    def __init__(self, party: Party) -> None:
        self.rank = party.rank
        self.size = party.size
        self._fds: dict[int, int] = {}
        self._foreign: list[dict[int, np.ndarray]] = [{} for _ in range(party.size)]
        self._freed = [0] * party.size
        self._next_key = 0
        self._given_back = 0
        board = self.allocate(kernels.BOARD_BYTES)
        self._boards = [board.memory] * party.size
        proof = party.prove(b"shm board of rank %d" % party.number(self.rank))
        board.memory[: len(_MAGIC)] = np.frombuffer(_MAGIC, np.uint8)
        board.memory[64 : 64 + len(proof)] = np.frombuffer(proof, np.uint8)
        offers = party.gather("shm board", [os.getpid(), self._fds[board.key]])
        self._pids = [int(pid) for pid, _ in offers]
        problems = [
            problem
            for peer, (_, fd) in enumerate(offers)
            if peer != self.rank and (problem := self._meet(party, peer, int(fd)))
        ]
        answers = party.gather("shm mapped", problems)
        problems = [problem for answer in answers for problem in answer]
        if problems:
            self.close()
            raise ToolError(
                f"cannot use shared memory between the ranks: {'; '.join(problems)}",
                advice="Ranks in different containers or user accounts need the tcp transport.",
            )
        self.boards = np.array([address_of(board) for board in self._boards], np.int64)
        self.habits = waiting_habits(party.size)
        self.timespec = address_of(self.habits) + 3 * 8

    def allocate(self, nbytes: int) -> Region:
        """New memory that the others can map, zeroed."""
        size = _pages(nbytes)
        fd = os.memfd_create("paisoar", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        self._next_key += 1
        self._fds[self._next_key] = fd
        return Region(self._next_key, _map(fd, size))

    def free(self, region: Region) -> None:
        """Give a region back; the others forget it at their next collective."""
        os.close(self._fds.pop(region.key))
        at = kernels.FREED_KEYS + self._given_back % kernels.FREED_SLOTS * _KEY.size
        _KEY.pack_into(self._boards[self.rank].data, at, region.key)
        self._given_back += 1
        _FREED.pack_into(self._boards[self.rank].data, kernels.FREED, self._given_back & 0xFFFFFFFF)

    def describe(self, sequence: int, place: Place | None, stamp: bytes) -> int:
        """Write on our board what we bring to collective ``sequence``; returns its tag."""
        at = kernels.DESCRIPTOR + (sequence & 1) * kernels.DESCRIPTOR_BYTES
        tag, fd, nbytes = NO_TAG, 0, 0
        if place is not None:
            region = place.region
            tag = region.key << _OFFSET_BITS | place.offset
            fd, nbytes = self._fds[region.key], region.memory.size
        _DESCRIPTOR.pack_into(self._boards[self.rank].data, at, tag, fd, nbytes, stamp)
        return tag

    def stamp_of(self, peer: int, sequence: int) -> bytes:
        """What a peer has come for."""
        return self._described(peer, sequence)[3]

    def base_of(self, peer: int, sequence: int) -> tuple[int, int]:
        """The tag and, in our address space, the address of what a peer has brought.

        Address 0 where it brings nothing. OSError where its memory cannot be mapped.
        """
        tag, fd, nbytes, _ = self._described(peer, sequence)
        if tag == NO_TAG:
            return NO_TAG, 0
        key, offset = tag >> _OFFSET_BITS, tag & ((1 << _OFFSET_BITS) - 1)
        known = self._foreign[peer]
        if key not in known:
            known[key] = self._open(peer, fd, nbytes)
        return tag, address_of(known[key]) + offset

    def forget(self) -> None:
        """Unmap what the others have given back."""
        for peer in range(self.size):
            if peer != self.rank:
                self._forget_freed(peer)

    def close(self) -> None:
        """Give everything back."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
        for known in self._foreign:
            known.clear()

    def _described(self, peer: int, sequence: int) -> tuple[int, int, int, bytes]:
        at = kernels.DESCRIPTOR + (sequence & 1) * kernels.DESCRIPTOR_BYTES
        tag, fd, nbytes, stamp = _DESCRIPTOR.unpack_from(self._boards[peer].data, at)
        return tag, fd, nbytes, stamp

    def _forget_freed(self, peer: int) -> None:
        board = self._boards[peer]
        count = read_word(int(self.boards[peer]) + kernels.FREED)
        fresh = (count - self._freed[peer]) & 0xFFFFFFFF
        if not fresh:
            return
        self._freed[peer] = count
        known = self._foreign[peer]
        if fresh > kernels.FREED_SLOTS:
            known.clear()
            return
        for back in range(fresh):
            slot = (count - 1 - back) % kernels.FREED_SLOTS
            (key,) = _KEY.unpack_from(board.data, kernels.FREED_KEYS + slot * _KEY.size)
            known.pop(key, None)

    def _meet(self, party: Party, peer: int, fd: int) -> str:
        expected = party.prove(b"shm board of rank %d" % party.number(peer))
        try:
            board = self._open(peer, fd, _pages(kernels.BOARD_BYTES))
        except (OSError, ValueError) as error:
            return f"cannot map the memory of rank {party.number(peer)} ({error})"
        if board[64 : 64 + len(expected)].tobytes() != expected:
            return f"process {self._pids[peer]} is not rank {party.number(peer)} of this job"
        self._boards[peer] = board
        return ""

    def _open(self, peer: int, fd: int, nbytes: int) -> np.ndarray:
        mine = os.open(Path(f"/proc/{self._pids[peer]}/fd/{fd}"), os.O_RDWR | os.O_CLOEXEC)
        try:
            return _map(mine, nbytes)
        finally:
            os.close(mine)
