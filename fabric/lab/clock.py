"""The frequency of this machine's time stamp counter, which emulated processors share.

QEMU's translated ``rdtsc`` is the machine's own. A kernel that boots on a busy machine
measures it wrongly, falls back to timers that are emulated, and then neither clocks nor
programs that count cycles (perftest) tell the time.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable

# rdtsc; shl rdx, 32; or rax, rdx; ret
_CODE = bytes.fromhex("0f3148c1e2204809d0c3")
_APART_S = 0.1
_TRIES = 20


def tsc_khz() -> int:
    """Cycles a millisecond, measured against the system's clock (x86-64 only)."""
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    with mmap.mmap(-1, mmap.PAGESIZE, prot=rights) as page:
        page.write(_CODE)
        place = ctypes.c_char.from_buffer(page)
        cycles = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        first = _moment(cycles)
        time.sleep(_APART_S)
        last = _moment(cycles)
        del cycles, place
    return round((last[0] - first[0]) * 1_000_000 / (last[1] - first[1]))


def _moment(cycles: Callable[[], int]) -> tuple[int, int]:
    """Cycles and nanoseconds at one moment: the reading that took least of several."""
    readings = []
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        count = cycles()
        after = time.monotonic_ns()
        readings.append((after - before, count, (before + after) // 2))
    _, count, at_ns = min(readings)
    return count, at_ns
