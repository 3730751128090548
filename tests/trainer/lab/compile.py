"""Compile the loops that ranks need for any x86-64 processor, where that is quick.

Guests share the machine's files and find them: with the same ``NUMBA_CPU_NAME``,
``NUMBA_CPU_FEATURES`` and ``NUMBA_CACHE_DIR`` an emulated processor has nothing to compile.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from trainer.collective import kernels
from trainer.collective.dtypes import BFLOAT16, ReduceOp

DTYPES = (
    *(np.dtype(name) for name in ("f4", "f8", "f2", "i1", "u1", "i2", "i4", "i8", "u8")),
    BFLOAT16,
)


def main():
    for dtype in DTYPES:
        array = np.zeros(1, kernels.storage_dtype(dtype))
        kernels.combine(array, array.copy(), int(ReduceOp.SUM), kernels.form_of(dtype))
    kernels.divide(np.zeros(1, np.float32), 2, kernels.PLAIN)


if __name__ == "__main__":
    main()
