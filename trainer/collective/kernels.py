"""The loops over elements, compiled, without the GIL.

Each combines two contiguous one-dimensional arrays of the same length in
place. fp16 and bf16 are passed as their bit patterns (uint16), computed in
fp32 and rounded to nearest even after each operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from trainer.collective.dtypes import BFLOAT16, ReduceOp

_F = TypeVar("_F", bound=Callable[..., Any])


def _compiled(function: _F) -> _F:
    return cast(_F, numba.njit(nogil=True, cache=True)(function))


def _float_from_half(_context: Any, _bits: Any) -> Any:  # noqa: ANN401 (numba's own types)
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


def _half_from_float(_context: Any, _value: Any) -> Any:  # noqa: ANN401
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


def _float_from_bits(_context: Any, _bits: Any) -> Any:  # noqa: ANN401
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), generate


def _bits_from_float(_context: Any, _value: Any) -> Any:  # noqa: ANN401
    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), generate


float_from_half = intrinsic(_float_from_half)
half_from_float = intrinsic(_half_from_float)
float_from_bits = intrinsic(_float_from_bits)
bits_from_float = intrinsic(_bits_from_float)


@_compiled
def float_from_brain(bits: int) -> float:
    """bf16 is the upper half of an fp32."""
    return float_from_bits(np.uint32(bits) << np.uint32(16))  # type: ignore[no-any-return]


@_compiled
def brain_from_float(value: float | np.float32) -> int:
    """Round to nearest even on the sixteen bits that are dropped; NaN stays a quiet NaN."""
    bits = bits_from_float(value)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    kept = rounded if value == value else bits | np.uint32(0x400000)  # noqa: PLR0124 (NaN)
    return np.uint16(kept >> np.uint32(16))  # type: ignore[return-value]


@_compiled
def _add(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        into[i] += other[i]


@_compiled
def _minimum(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = into[i], other[i]
        into[i] = b if (b < a or b != b) else a  # noqa: PLR0124 (NaN)


@_compiled
def _maximum(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = into[i], other[i]
        into[i] = b if (b > a or b != b) else a  # noqa: PLR0124 (NaN)


@_compiled
def _divide(into: np.ndarray, by: int) -> None:
    for i in range(into.size):
        into[i] = into[i] / by


@_compiled
def _floor_divide(into: np.ndarray, by: int) -> None:
    divisor = into.dtype.type(by)
    for i in range(into.size):
        into[i] = into[i] // divisor


@_compiled
def _add_half(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        into[i] = half_from_float(float_from_half(into[i]) + float_from_half(other[i]))


@_compiled
def _minimum_half(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = float_from_half(into[i]), float_from_half(other[i])
        into[i] = other[i] if (b < a or b != b) else into[i]  # noqa: PLR0124


@_compiled
def _maximum_half(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = float_from_half(into[i]), float_from_half(other[i])
        into[i] = other[i] if (b > a or b != b) else into[i]  # noqa: PLR0124


@_compiled
def _divide_half(into: np.ndarray, by: int) -> None:
    for i in range(into.size):
        into[i] = half_from_float(np.float32(float_from_half(into[i]) / np.float32(by)))


@_compiled
def _add_brain(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        into[i] = brain_from_float(
            np.float32(float_from_brain(into[i]) + float_from_brain(other[i]))
        )


@_compiled
def _minimum_brain(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = float_from_brain(into[i]), float_from_brain(other[i])
        into[i] = other[i] if (b < a or b != b) else into[i]  # noqa: PLR0124


@_compiled
def _maximum_brain(into: np.ndarray, other: np.ndarray) -> None:
    for i in range(into.size):
        a, b = float_from_brain(into[i]), float_from_brain(other[i])
        into[i] = other[i] if (b > a or b != b) else into[i]  # noqa: PLR0124


@_compiled
def _divide_brain(into: np.ndarray, by: int) -> None:
    for i in range(into.size):
        into[i] = brain_from_float(np.float32(float_from_brain(into[i]) / np.float32(by)))


_PLAIN = {
    ReduceOp.SUM: _add,
    ReduceOp.AVERAGE: _add,
    ReduceOp.MIN: _minimum,
    ReduceOp.MAX: _maximum,
}
_HALF = {
    ReduceOp.SUM: _add_half,
    ReduceOp.AVERAGE: _add_half,
    ReduceOp.MIN: _minimum_half,
    ReduceOp.MAX: _maximum_half,
}
_BRAIN = {
    ReduceOp.SUM: _add_brain,
    ReduceOp.AVERAGE: _add_brain,
    ReduceOp.MIN: _minimum_brain,
    ReduceOp.MAX: _maximum_brain,
}


def storage_dtype(dtype: np.dtype) -> np.dtype:
    """The type under which a kernel sees elements: 16-bit floats go as their bits."""
    return np.dtype(np.uint16) if dtype in (np.dtype(np.float16), BFLOAT16) else dtype


def combiner(dtype: np.dtype, op: ReduceOp) -> Callable[[np.ndarray, np.ndarray], None]:
    """``into = into (op) other`` for arrays of :func:`storage_dtype`; AVERAGE only adds."""
    if dtype == np.dtype(np.float16):
        return _HALF[op]
    return (_BRAIN if dtype == BFLOAT16 else _PLAIN)[op]


def divider(dtype: np.dtype) -> Callable[[np.ndarray, int], None]:
    """``into = into / by``, the last part of an average; integers round down."""
    if dtype == np.dtype(np.float16):
        return _divide_half
    if dtype == BFLOAT16:
        return _divide_brain
    return _floor_divide if dtype.kind in "iu" else _divide
