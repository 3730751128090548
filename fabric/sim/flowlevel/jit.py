"""How flow-level kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile without the GIL; keep the machine code on disk where that can be written."""
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba: "no locator available"
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


def inner(function: Function) -> Function:
    """Compile what a kernel of the same module calls; it is cached inside its kernel."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
