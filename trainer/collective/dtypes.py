"""The element types that travel between ranks, and the operations on them."""

from __future__ import annotations

from enum import IntEnum

import ml_dtypes
import numpy as np

from fabric.errors import InputError


class ReduceOp(IntEnum):
    """How contributions are combined.

    An average of integers is rounded towards minus infinity. MIN and MAX give
    NaN where any contribution is NaN, as NumPy does.
    """

    SUM = 0
    AVERAGE = 1
    MIN = 2
    MAX = 3
    PRODUCT = 4


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# The position is the code on the wire: append, never reorder.
_ELEMENTS: tuple[np.dtype, ...] = (
    np.dtype(np.float32),
    np.dtype(np.float64),
    np.dtype(np.float16),
    BFLOAT16,
    np.dtype(np.int8),
    np.dtype(np.int16),
    np.dtype(np.int32),
    np.dtype(np.int64),
    np.dtype(np.uint8),
    np.dtype(np.uint16),
    np.dtype(np.uint32),
    np.dtype(np.uint64),
)
_CODES = {dtype: code for code, dtype in enumerate(_ELEMENTS)}


def dtype_code(dtype: np.dtype) -> int:
    """The wire code of an element type; InputError where it cannot travel."""
    try:
        return _CODES[dtype]
    except KeyError:
        names = ", ".join(str(known) for known in _ELEMENTS)
        raise InputError(
            f"cannot reduce arrays of {dtype}", advice=f"Cast to one of: {names}."
        ) from None


def dtype_name(code: int) -> str:
    """The element type's name of a wire code, also of one that we do not know."""
    return str(_ELEMENTS[code]) if code < len(_ELEMENTS) else f"unknown type {code}"
