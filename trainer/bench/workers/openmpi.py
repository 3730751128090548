"""Open MPI's Allreduce in place on a NumPy array, by mpi4py; run under mpirun."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from trainer.bench.worker import serve


def main() -> None:
    """Argument: the contender's name (which transport mpirun was told)."""
    # Only in the peers' environment.
    mpi: Any = importlib.import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD

    def prepare(nbytes: int) -> Callable[[], object]:
        array = np.zeros(nbytes // 4, np.float32)
        return lambda: world.Allreduce(mpi.IN_PLACE, array)

    serve(sys.argv[1], world.Get_rank(), lambda: prepare)


if __name__ == "__main__":
    main()
