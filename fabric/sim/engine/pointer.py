"""From an array to a bare pointer to its words, inside compiled code.

numba tests each index of an array for being negative, which costs a fifth of the
engine's time, and keeps count of the references to each view. It does neither for a
pointer.
"""
# ruff: noqa: ANN401 - numba's code generator passes its own, untyped values

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from fabric.sim.engine.jit import jit
from fabric.sim.engine.layout import Memory

_WORDS: Any = types.CPointer(types.int64)  # type: ignore[attr-defined] # made at run time
_FLOATS: Any = types.CPointer(types.float64)  # type: ignore[attr-defined] # made at run time


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def _words(_context: Any, array: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make_array(signature.args[0])(context, builder, arguments[0]).data

    return _WORDS(array), build


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def _floats(_context: Any, pointer: Any) -> Any:
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType().as_pointer())

    return _FLOATS(pointer), build


@jit
def words(array: Memory) -> Memory:
    """The words of the memory, for every other function of the engine."""
    pointer: Memory = _words(array)
    return pointer


@jit
def floats(m: Memory) -> NDArray[np.float64]:
    """The same memory as float words, for the fields called ``RATE_...`` and ``WINDOW_...``."""
    pointer: NDArray[np.float64] = _floats(m)
    return pointer
