"""Counters in shared memory that one process advances and others wait for.

A waiter spins for a moment when there are cores to spare, then gives its core
away, then sleeps in the kernel (futex(2), Linux), so that more ranks than
cores do not starve each other. Counters are 32 bits and wrap; they are
compared modulo 2**32. The words are addressed by their plain memory address
and are 4-byte aligned; the word 64 bytes behind a counter says that somebody
sleeps on it. All of it is compiled and holds no GIL.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from fabric.errors import ToolError
from trainer.collective.kernels import compiled, external

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "riscv64": 98, "s390x": 238}
_FUTEX_WAIT, _FUTEX_WAKE, _ALL = 0, 1, 0x7FFFFFFF
SLEEPER = 64
# As long as ranks of equal load come after each other.
SPIN_S = 10e-6
# More than being woken takes, so that two ranks do not put each other to sleep.
YIELD_NS = 150_000
# Who is away for longer has let a stranger run; do not do so again for some time.
CROWDED_NS = 500_000
_SLEEP_AT_ONCE = 64
# Instead of yielding: where every rank has a core, the other runs now.
_CROWDED_SPINS = 4
# Sleep at most this long before asking whether the job still lives.
SLICE_NS = 50_000_000
_CALIBRATION = 50_000

_long = types.int64
_syscall = external("syscall", _long, _long, _long, _long, _long, _long, _long)
sched_yield = external("sched_yield", types.int32)
_clock_gettime = external("clock_gettime", types.int32, types.int32, _long)
_CLOCK_MONOTONIC = 1


def futex_number() -> int:
    """The number of futex(2) on this machine; ToolError where it is not known."""
    machine = platform.machine()
    if machine not in _FUTEX_NUMBER:
        raise ToolError(
            f"cannot wait in shared memory on {machine}", advice="Use the tcp transport."
        )
    return _FUTEX_NUMBER[machine]


def _pointer(builder: Any, address: Any) -> Any:  # noqa: ANN401 (llvmlite's own types)
    return builder.inttoptr(address, ir.IntType(32).as_pointer())


def _load(_context: Any, _address: Any) -> Any:  # noqa: ANN401
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.load_atomic(_pointer(builder, args[0]), "seq_cst", 4, typ=ir.IntType(32))

    return types.uint32(types.int64), generate


def _exchange(_context: Any, _address: Any, _value: Any) -> Any:  # noqa: ANN401
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.atomic_rmw("xchg", _pointer(builder, args[0]), args[1], "seq_cst")

    return types.uint32(types.int64, types.uint32), generate


_load_word = intrinsic(_load)
_exchange_word = intrinsic(_exchange)


def waiting_habits(ranks_here: int) -> np.ndarray:
    """How this rank waits (int64), and room for the kernel's answers.

    Spins, nanoseconds of giving the core away, futex number, a timespec of one
    slice, a timespec for the clock, how often to sleep at once.
    """
    cores = len(os.sched_getaffinity(0))
    spins = _spins_in(SPIN_S) if ranks_here <= cores else 0
    return np.array([spins, YIELD_NS, futex_number(), 0, SLICE_NS, 0, 0, 0], np.int64)


def _spins_in(seconds: float) -> int:
    word = np.zeros(1, np.uint32)
    address = int(word.__array_interface__["data"][0])
    _spin(address, 1, 1)
    began = time.perf_counter()
    _spin(address, 1, _CALIBRATION)
    return max(1, int(seconds * _CALIBRATION / (time.perf_counter() - began)))


@compiled
def read_word(address: int) -> int:
    """The counter's value now; what was written before it was advanced is visible."""
    return _load_word(address)  # type: ignore[no-any-return]


@compiled
def reached(address: int, target: int) -> bool:
    """Whether the counter has come to ``target`` or past it."""
    behind = (np.uint32(_load_word(address)) - np.uint32(target)) & 0xFFFFFFFF
    return behind < 0x80000000  # type: ignore[return-value]  # NumPy's own bool


@compiled
def advance(address: int, value: int, habits: np.ndarray) -> None:
    """Set the counter and wake all who sleep on it."""
    _exchange_word(address, np.uint32(value & 0xFFFFFFFF))
    if _exchange_word(address + SLEEPER, np.uint32(0)) != 0:
        _syscall(habits[2], address, _FUTEX_WAKE, _ALL, 0, 0)


@compiled
def _spin(address: int, target: int, spins: int) -> bool:
    for _ in range(spins):  # noqa: SIM110 (compiled)
        if reached(address, target):
            return True
    return False


@compiled
def now_ns(habits: np.ndarray, timespec: int) -> int:
    """The monotonic clock; ``timespec`` is the address of ``habits[3:5]``."""
    _clock_gettime(_CLOCK_MONOTONIC, timespec + 16)
    return habits[5] * 1_000_000_000 + habits[6]  # type: ignore[no-any-return]


@compiled
def give_way(began: int, habits: np.ndarray, timespec: int) -> bool:
    """Let others run for a moment; False when a waiter since ``began`` had better sleep.

    On a crowded core others run for their whole slice. There sleeping is
    better: who is woken comes before who has run for long.
    """
    if habits[7] > 0:
        habits[7] -= 1
        return False
    before = now_ns(habits, timespec)
    if before - began > habits[1]:
        return False
    sched_yield()
    if now_ns(habits, timespec) - before > CROWDED_NS:
        habits[7] = _SLEEP_AT_ONCE
    return True


@compiled
def wait_for(address: int, target: int, habits: np.ndarray, timespec: int) -> bool:
    """Wait until the counter has reached ``target``; False after a slice of waiting in vain.

    ``timespec`` is the address of ``habits[3:5]``.
    """
    if reached(address, target) or _spin(address, target, habits[0]):
        return True
    # Going to sleep at once would make the other wait for our waking up, and
    # sleep in turn; but whoever else wants this core gets it.
    if habits[7] > 0 and _spin(address, target, _CROWDED_SPINS * habits[0]):
        habits[7] -= 1
        return True
    began = now_ns(habits, timespec)
    while give_way(began, habits, timespec):
        if reached(address, target):
            return True
    _exchange_word(address + SLEEPER, np.uint32(1))
    seen = _load_word(address)
    if (np.uint32(seen) - np.uint32(target)) & 0xFFFFFFFF >= 0x80000000:
        _syscall(habits[2], address, _FUTEX_WAIT, np.int64(seen), timespec, 0)
    return reached(address, target)
