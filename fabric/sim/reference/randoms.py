"""The reference's random numbers: each draw is the first of a new stream.

ns-3.17 gives every ``UniformVariable`` its own stream of L'Ecuyer's MRG32k3a
(L'Ecuyer, Simard, Chen, Kelton, "An object-oriented random-number package with
many long streams and substreams", Operations Research 50(6), 2002), and the
reference makes a new one for each decision whether to mark and for each pause
frame. Streams lie 2^127 steps apart, the runs (``RngRun``) within one 2^76. Both
jumps are matrices that commute, so that one product a draw leads from the start
of one stream to the start of the next, within the run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fabric.sim.reference.jit import inline

M1, M2 = 4294967087, 4294944443
_A1 = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0))
_A2 = ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))
STREAM_LOG2, RUN_LOG2 = 127, 76

Matrix = tuple[tuple[int, ...], ...]


def _product(a: Matrix, b: Matrix, modulus: int) -> Matrix:
    columns = tuple(zip(*b, strict=True))
    return tuple(
        tuple(sum(x * y for x, y in zip(row, column, strict=True)) % modulus for column in columns)
        for row in a
    )


def _power(a: Matrix, exponent: int, modulus: int) -> Matrix:
    result: Matrix = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    while exponent:
        if exponent & 1:
            result = _product(result, a, modulus)
        a = _product(a, a, modulus)
        exponent >>= 1
    return result


def first_stream(run: int, streams_used: int) -> NDArray[np.uint64]:
    """Words of a generator: six of state at the next stream, 18 of the jump from it on."""
    state: list[int] = []
    jumps: list[int] = []
    for a, modulus in ((_A1, M1), (_A2, M2)):
        ahead = _power(a, (streams_used << STREAM_LOG2) + (run << RUN_LOG2), modulus)
        seed: Matrix = ((1,), (1,), (1,))
        state.extend(row[0] for row in _product(ahead, seed, modulus))
        jumps.extend(x for row in _power(a, 1 << STREAM_LOG2, modulus) for x in row)
    return np.array(state + jumps, np.uint64)


_LOW = np.uint64(0xFFFFFFFF)
_UP = np.uint64(32)
_U1, _U2 = np.uint64(M1), np.uint64(M2)
_C1, _C2 = np.uint64((1 << 32) - M1), np.uint64((1 << 32) - M2)
_A12, _A13 = np.uint64(1403580), np.uint64(810728)
_A21, _A23 = np.uint64(527612), np.uint64(1370589)
_NORM = 2.328306549295727688e-10


@inline
def _fold1(x: np.uint64) -> np.uint64:
    return (x >> _UP) * _C1 + (x & _LOW)


@inline
def _fold2(x: np.uint64) -> np.uint64:
    return (x >> _UP) * _C2 + (x & _LOW)


@inline
def _mod1(x: np.uint64) -> np.uint64:
    x = _fold1(_fold1(x))
    return x - _U1 if x >= _U1 else x


@inline
def _mod2(x: np.uint64) -> np.uint64:
    x = _fold2(_fold2(x))
    return x - _U2 if x >= _U2 else x


@inline
def skip(r: NDArray[np.uint64]) -> None:
    """Go on to the next stream without drawing."""
    a, b, c = r[0], r[1], r[2]
    r[0] = _mod1(_fold1(r[6] * a) + _fold1(r[7] * b) + _fold1(r[8] * c))
    r[1] = _mod1(_fold1(r[9] * a) + _fold1(r[10] * b) + _fold1(r[11] * c))
    r[2] = _mod1(_fold1(r[12] * a) + _fold1(r[13] * b) + _fold1(r[14] * c))
    a, b, c = r[3], r[4], r[5]
    r[3] = _mod2(_fold2(r[15] * a) + _fold2(r[16] * b) + _fold2(r[17] * c))
    r[4] = _mod2(_fold2(r[18] * a) + _fold2(r[19] * b) + _fold2(r[20] * c))
    r[5] = _mod2(_fold2(r[21] * a) + _fold2(r[22] * b) + _fold2(r[23] * c))


@inline
def uniform(r: NDArray[np.uint64]) -> float:
    """A number from 0 to 1, the first of the next stream."""
    first = _mod1(_A12 * r[1] + _A13 * (_U1 - r[0]))
    second = _mod2(_A21 * r[5] + _A23 * (_U2 - r[3]))
    skip(r)
    difference = np.int64(first) - np.int64(second)
    if difference <= 0:
        difference += M1
    return difference * _NORM
