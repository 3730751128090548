"""The loops over elements, compiled, without the GIL.

Each works on contiguous one-dimensional arrays in place. fp16 and bf16 are
passed as their bit patterns (uint16), computed in fp32 and rounded to nearest
even after each operation; ``form`` tells them from integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from trainer.collective.dtypes import BFLOAT16, ReduceOp

_F = TypeVar("_F", bound=Callable[..., Any])

PLAIN, HALF, BRAIN = 0, 1, 2
_SUM, _AVERAGE, _MIN, _MAX = (
    int(op) for op in (ReduceOp.SUM, ReduceOp.AVERAGE, ReduceOp.MIN, ReduceOp.MAX)
)


def compiled(function: _F) -> _F:
    """Compile for any types, without the GIL, and keep the machine code on disk."""
    return cast(_F, numba.njit(nogil=True, cache=True)(function))


def external(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:  # noqa: ANN401
    """A function of the C library, for compiled callers; types are numba's."""
    return cast(Callable[..., Any], types.ExternalFunction(name, result(*arguments)))


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


@compiled
def float_from_brain(bits: int) -> float:
    """bf16 is the upper half of an fp32."""
    return float_from_bits(np.uint32(bits) << np.uint32(16))  # type: ignore[no-any-return]


@compiled
def brain_from_float(value: float | np.float32) -> int:
    """Round to nearest even on the sixteen bits that are dropped; NaN stays a quiet NaN."""
    bits = bits_from_float(value)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    kept = rounded if value == value else bits | np.uint32(0x400000)  # noqa: PLR0124 (NaN)
    return np.uint16(kept >> np.uint32(16))  # type: ignore[return-value]


@compiled
def _combine_numbers(into: np.ndarray, other: np.ndarray, op: int) -> None:
    if op == _MIN:
        for i in range(into.size):
            a, b = into[i], other[i]
            into[i] = b if (b < a or b != b) else a  # noqa: PLR0124 (NaN)
    elif op == _MAX:
        for i in range(into.size):
            a, b = into[i], other[i]
            into[i] = b if (b > a or b != b) else a  # noqa: PLR0124 (NaN)
    elif op in (_SUM, _AVERAGE):
        for i in range(into.size):
            into[i] += other[i]
    else:
        for i in range(into.size):
            into[i] *= other[i]


@compiled
def _combine_halves(into: np.ndarray, other: np.ndarray, op: int) -> None:
    if op == _MIN:
        for i in range(into.size):
            a, b = float_from_half(into[i]), float_from_half(other[i])
            into[i] = other[i] if (b < a or b != b) else into[i]  # noqa: PLR0124
    elif op == _MAX:
        for i in range(into.size):
            a, b = float_from_half(into[i]), float_from_half(other[i])
            into[i] = other[i] if (b > a or b != b) else into[i]  # noqa: PLR0124
    elif op in (_SUM, _AVERAGE):
        for i in range(into.size):
            into[i] = half_from_float(float_from_half(into[i]) + float_from_half(other[i]))
    else:
        for i in range(into.size):
            into[i] = half_from_float(float_from_half(into[i]) * float_from_half(other[i]))


@compiled
def _combine_brains(into: np.ndarray, other: np.ndarray, op: int) -> None:
    if op == _MIN:
        for i in range(into.size):
            a, b = float_from_brain(into[i]), float_from_brain(other[i])
            into[i] = other[i] if (b < a or b != b) else into[i]  # noqa: PLR0124
    elif op == _MAX:
        for i in range(into.size):
            a, b = float_from_brain(into[i]), float_from_brain(other[i])
            into[i] = other[i] if (b > a or b != b) else into[i]  # noqa: PLR0124
    elif op in (_SUM, _AVERAGE):
        for i in range(into.size):
            into[i] = brain_from_float(
                np.float32(float_from_brain(into[i]) + float_from_brain(other[i]))
            )
    else:
        for i in range(into.size):
            into[i] = brain_from_float(
                np.float32(float_from_brain(into[i]) * float_from_brain(other[i]))
            )


@compiled
def _divide_halves(into: np.ndarray, by: int) -> None:
    for i in range(into.size):
        into[i] = half_from_float(np.float32(float_from_half(into[i]) / np.float32(by)))


@compiled
def _divide_brains(into: np.ndarray, by: int) -> None:
    for i in range(into.size):
        into[i] = brain_from_float(np.float32(float_from_brain(into[i]) / np.float32(by)))


@compiled
def _divide_floats(into: np.ndarray, by: int) -> None:
    divisor = into.dtype.type(by)
    for i in range(into.size):
        into[i] = into[i] / divisor


@compiled
def _divide_integers(into: np.ndarray, by: int) -> None:
    divisor = into.dtype.type(by)
    for i in range(into.size):
        into[i] = into[i] // divisor


def _by_type(stub: Callable[..., None]) -> Callable[[_F], _F]:
    """The decorated function chooses, by numba's types, what a call of ``stub`` compiles to."""
    return cast(Callable[[_F], _F], overload(stub))


def combine_any(into: np.ndarray, other: np.ndarray, op: int, form: int) -> None:
    """``into = into (op) other``, for compiled callers; AVERAGE only adds."""
    combine(into, other, op, form)


def divide_any(into: np.ndarray, by: int, form: int) -> None:
    """``into = into / by``, for compiled callers; integers round down."""
    divide(into, by, form)


@_by_type(combine_any)
def _combine_by_type(into: Any, other: Any, op: Any, form: Any) -> Any:  # noqa: ANN401, ARG001
    # A kernel is chosen when it is compiled, but for the types that share uint16.
    def sixteen(into: Any, other: Any, op: Any, form: Any) -> None:  # noqa: ANN401
        if form == HALF:
            _combine_halves(into, other, op)
        elif form == BRAIN:
            _combine_brains(into, other, op)
        else:
            _combine_numbers(into, other, op)

    def numbers(into: Any, other: Any, op: Any, form: Any) -> None:  # noqa: ANN401, ARG001
        _combine_numbers(into, other, op)

    return sixteen if into.dtype == types.uint16 else numbers


@_by_type(divide_any)
def _divide_by_type(into: Any, by: Any, form: Any) -> Any:  # noqa: ANN401, ARG001
    def sixteen(into: Any, by: Any, form: Any) -> None:  # noqa: ANN401
        if form == HALF:
            _divide_halves(into, by)
        elif form == BRAIN:
            _divide_brains(into, by)
        else:
            _divide_integers(into, by)

    def integers(into: Any, by: Any, form: Any) -> None:  # noqa: ANN401, ARG001
        _divide_integers(into, by)

    def floats(into: Any, by: Any, form: Any) -> None:  # noqa: ANN401, ARG001
        _divide_floats(into, by)

    if into.dtype == types.uint16:
        return sixteen
    return integers if isinstance(into.dtype, types.Integer) else floats


@compiled
def combine(into: np.ndarray, other: np.ndarray, op: int, form: int) -> None:
    """``into = into (op) other`` for arrays of :func:`storage_dtype`; AVERAGE only adds."""
    combine_any(into, other, op, form)


@compiled
def divide(into: np.ndarray, by: int, form: int) -> None:
    """``into = into / by``, the last part of an average; integers round down."""
    divide_any(into, by, form)


@compiled
def to_sixteen(into: np.ndarray, values: np.ndarray, scale: float, form: int) -> None:
    """Round fp32 ``values * scale`` to 16 bits (uint16) of the given form."""
    factor = np.float32(scale)
    for i in range(into.size):
        value = np.float32(values[i] * factor)
        into[i] = half_from_float(value) if form == HALF else brain_from_float(value)


@compiled
def from_sixteen(into: np.ndarray, values: np.ndarray, form: int) -> None:
    """Widen 16 bits (uint16) of the given form to fp32."""
    for i in range(into.size):
        if form == HALF:
            into[i] = float_from_half(values[i])
        else:
            into[i] = float_from_brain(values[i])


def form_of(dtype: np.dtype) -> int:
    """Which of the types that are stored as uint16 this is; PLAIN for all others."""
    if dtype == np.dtype(np.float16):
        return HALF
    return BRAIN if dtype == BFLOAT16 else PLAIN


def storage_dtype(dtype: np.dtype) -> np.dtype:
    """The type under which a kernel sees elements: 16-bit floats go as their bits."""
    return np.dtype(np.uint16) if form_of(dtype) else dtype
