"""How the functions of this engine are compiled: inlined into one cached entry point."""

# ruff: noqa: ANN401 - numba's code generator passes its own, untyped values

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def inline(function: Function) -> Function:
    """Compile a piece of the event loop; LLVM puts it into its caller.

    A call would pass every array of the state as seven words each.
    """
    options = {
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "no_rewrites": True,
        "_nrt": False,
    }
    return cast(
        Function, numba.njit(nogil=True, error_model="numpy", forceinline=True, **options)(function)
    )


def outline(function: Function) -> Function:
    """Compile a rare piece of the event loop as a function of its own."""
    options = {
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "no_rewrites": True,
        "_nrt": False,
    }
    return cast(Function, numba.njit(nogil=True, error_model="numpy", **options)(function))


def entry_point(function: Function) -> Function:
    """Compile an entry point and keep the machine code on disk, where that is possible."""
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", _nrt=False, cache=True)(function)
    except RuntimeError:  # numba: "no locator available"
        compiled = numba.njit(nogil=True, error_model="numpy", _nrt=False)(function)
    return cast(Function, compiled)


def source_hash() -> int:
    """A number that changes with any module of this package.

    Numba compares only the entry point's own file with its cache; an entry point
    that closes over this number notices a change in any inlined piece too.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def first_bit(_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a 64-bit word that is not zero."""
    if not isinstance(word, types.Integer):
        return None

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), build
