"""``trainer.start`` with a gate that lets every job in, for the tests of what comes after it."""

from __future__ import annotations

import sys

import validation.gate
from tests.trainer.train_program import opened

if __name__ == "__main__":
    validation.gate.open_gate = opened
    from trainer.start import main

    sys.exit(main())
