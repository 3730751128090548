"""Counters in shared memory that one process advances and another waits for.

A waiter spins for a moment when there are cores to spare, then sleeps in the
kernel (futex(2), Linux), so that more ranks than cores do not starve each
other. Counters are 32 bits and wrap; they are compared modulo 2**32. The
words are addressed by their plain memory address and are 4-byte aligned.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from fabric.errors import ToolError

_F = TypeVar("_F", bound=Callable[..., Any])

_FUTEX_NUMBER = {"x86_64": 202, "aarch64": 98, "ppc64le": 221, "riscv64": 98, "s390x": 238}
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
# About ten microseconds: less than what sleeping and being woken costs.
SPINS = 20_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_libc = ctypes.CDLL(None, use_errno=True)


def _futex_number() -> int:
    machine = platform.machine()
    if machine not in _FUTEX_NUMBER:
        raise ToolError(
            f"cannot wait in shared memory on {machine}", advice="Use the tcp transport."
        )
    return _FUTEX_NUMBER[machine]


def _compiled(function: _F) -> _F:
    return cast(_F, numba.njit(nogil=True, cache=True)(function))


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


@_compiled
def read_word(address: int) -> int:
    """The counter's value now; what was written before it was advanced is visible."""
    return _load_word(address)  # type: ignore[no-any-return]


@_compiled
def _spin(address: int, seen: int, spins: int) -> int:
    value = _load_word(address)
    for _ in range(spins):
        if value != np.uint32(seen):
            break
        value = _load_word(address)
    return value  # type: ignore[no-any-return]


@_compiled
def _advance(counter: int, sleeper: int, value: int) -> bool:
    _exchange_word(counter, np.uint32(value))
    return _exchange_word(sleeper, np.uint32(0)) != 0  # type: ignore[no-any-return]


@_compiled
def _announce_sleep(counter: int, sleeper: int, seen: int) -> bool:
    _exchange_word(sleeper, np.uint32(1))
    return _load_word(counter) == np.uint32(seen)  # type: ignore[no-any-return]


class Counter:
    """A counter at ``address``, with the word beside it where its waiter says that it sleeps."""

    def __init__(self, address: int, *, spins: int) -> None:
        self._counter = address
        self._sleeper = address + 64
        self._spins = spins
        self._number = _futex_number()

    def read(self) -> int:
        """The value now, modulo 2**32."""
        return read_word(self._counter)

    def advance(self, value: int) -> None:
        """Set the counter and wake who sleeps on it."""
        if _advance(self._counter, self._sleeper, value & 0xFFFFFFFF):
            _libc.syscall(
                ctypes.c_long(self._number),
                ctypes.c_void_p(self._counter),
                ctypes.c_int(_FUTEX_WAKE),
                ctypes.c_int(1),
                None,
            )

    def wait_past(self, seen: int, timeout_s: float) -> int:
        """The value once it is no longer ``seen``; still ``seen`` after ``timeout_s``."""
        value = _spin(self._counter, seen, self._spins)
        if value != seen:
            return value
        if _announce_sleep(self._counter, self._sleeper, seen):
            limit = _Timespec(int(timeout_s), int(timeout_s % 1 * 1e9))
            _libc.syscall(
                ctypes.c_long(self._number),
                ctypes.c_void_p(self._counter),
                ctypes.c_int(_FUTEX_WAIT),
                ctypes.c_uint32(seen),
                ctypes.byref(limit),
            )
        return read_word(self._counter)


def spins_for(ranks_here: int) -> int:
    """How long to spin: not at all when ranks outnumber the cores that we may use."""
    return SPINS if ranks_here <= len(os.sched_getaffinity(0)) else 0
