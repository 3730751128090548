"""How engine functions are compiled: without the GIL, cached as one unit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile an inner function of the engine; it is cached inside its entry point.

    Without wrappers for callers outside compiled code, and without numba's
    rewrites, which the engine's plain loops do not need: a third less to compile.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return cast(Function, compiled)


def entry_point(function: Function) -> Function:
    """Compile an entry point of the engine and keep the machine code on disk.

    Numba writes beside the module or, where that cannot be written, under the
    user's cache folder; where neither can be written nothing is cached.
    """
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba: "no locator available"
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


def source_hash() -> int:
    """A number that changes with any source file of the engine.

    Numba looks only at the entry point's own file when it decides whether its
    cache is stale; an entry point that closes over this number has it in its
    cache key, so that a change in any inner function or column counts.
    """
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")
