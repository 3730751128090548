"""``paisoar`` with a gate that lets every job in, for the tests of what comes after it.

The gate has tests of its own. Run as ``python -m tests.trainer.train_program train ...``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import validation.gate
from paisoar.cli import main
from validation.gate import GatePass


def opened(site, hosts, **_) -> GatePass:
    now = datetime.now(UTC)
    return GatePass(
        "c-0042", site.name, "simulated", tuple(hosts), "ab" * 32, now, now + timedelta(1), True
    )


if __name__ == "__main__":
    validation.gate.open_gate = opened
    main()
