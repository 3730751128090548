"""How much memory a flow-level simulation needs; said before it starts."""

from __future__ import annotations

import psutil

from fabric.errors import InputError

# Measured (tests hold them to it): Python objects of a host's or a cable's names and
# ports, and of one flow with its path, all together.
BASE_BYTES = 150 << 20
LINK_BYTES = 3_000
FLOW_BYTES = 2_200


def needed_bytes(links: int, flows: int) -> int:
    """Memory for this many cables and flows (queue pairs, where a flow has several)."""
    return BASE_BYTES + LINK_BYTES * links + FLOW_BYTES * flows


def check_memory(links: int, flows: int) -> None:
    """InputError where that is more than is free."""
    needed, free = needed_bytes(links, flows), int(psutil.virtual_memory().available)
    if needed > free:
        raise InputError(
            f"{flows:,} flows over {links:,} cables need {needed / 2**30:.1f} GiB of memory; "
            f"{free / 2**30:.1f} GiB are free",
            advice="Take fewer hosts, or a scenario with fewer flows.",
        )
