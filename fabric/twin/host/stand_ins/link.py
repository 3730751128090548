"""Whether a NIC port's link is up, and the sysfs files that tell of it.

Up where the host has not shut the port and the far end gives a carrier. Files: Linux
Documentation/ABI/testing/sysfs-class-net and sysfs-class-infiniband; the speed of a
link that is down is SPEED_UNKNOWN, -1 (include/uapi/linux/ethtool.h).
"""

from __future__ import annotations

import os

from .files import Nic, NicState, write_text


def is_up(state: NicState) -> bool:
    """Whether packets pass."""
    return bool(state.admin_up[0] and state.carrier[0])


def flags(state: NicState) -> list[str]:
    """The flags of ``ip link`` that say so."""
    if not state.admin_up[0]:
        return []
    return ["UP", "LOWER_UP"] if state.carrier[0] else ["UP"]


def show(nic: Nic, state: NicState) -> None:
    """Write the files of the port."""
    up = is_up(state)
    ports = f"{nic.verbs}/ports/1"
    os.makedirs(nic.net, exist_ok=True)
    os.makedirs(ports, exist_ok=True)
    for path, text in {
        f"{nic.net}/operstate": "up" if up else "down",
        f"{nic.net}/carrier": str(int(up)),
        f"{nic.net}/speed": nic.facts["speed_mbps"] if up else "-1",
        f"{ports}/state": "4: ACTIVE" if up else "1: DOWN",
        f"{ports}/phys_state": "5: LinkUp" if up else "3: Disabled",
    }.items():
        write_text(path, f"{text}\n")
