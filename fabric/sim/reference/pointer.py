"""From the engine's arrays to bare pointers, inside compiled code.

numba tests each index of an array for being negative and keeps count of the
references to an array; it does neither for a pointer. Together that is most of
an event's time.
"""
# ruff: noqa: ANN401 - numba's code generator passes its own, untyped values

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from fabric.sim.reference.columns import Arrays, Memory
from fabric.sim.reference.jit import inline


@intrinsic  # type: ignore[untyped-decorator] # numba has no types
def _pointer(_context: Any, array: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), build  # type: ignore[attr-defined]


@inline
def pointers(a: Arrays) -> Memory:
    """The same state, for every function of the engine."""
    return Memory(
        _pointer(a.settings),
        _pointer(a.gains),
        _pointer(a.random),
        _pointer(a.ports),
        _pointer(a.flows),
        _pointer(a.alphas),
        _pointer(a.nodes),
        _pointer(a.near),
        _pointer(a.bits),
        _pointer(a.far),
        _pointer(a.hops),
        _pointer(a.tx_times),
        _pointer(a.shares),
        _pointer(a.qps),
        _pointer(a.inputs),
        _pointer(a.switch_ports),
        _pointer(a.routes),
        _pointer(a.choices),
        _pointer(a.samples),
        _pointer(a.series),
        _pointer(a.series_alphas),
        _pointer(a.log),
        a.near.size >> 2,
    )
