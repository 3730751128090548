"""What ``mlxconfig -d DEV q`` shows of the firmware's own RoCE and DCBX settings.

A host without the tool shows nothing, and nothing is asked of it. Format: MFT 4.x and
mstflint, ``mlxconfig`` (``NAME  VALUE`` or ``NAME  Text(VALUE)``; with ``-e`` default,
current and next boot, of which the last counts; older releases print no ``Next Boot``
heading). Names and meaning: NVIDIA MFT, "mlxconfig Parameters": ROCE_CC_PRIO_MASK_Pn
is a mask of priorities, LLDP_NB_DCBX_Pn lets the firmware speak DCBX,
DCBX_WILLING_Pn lets it take what the switch offers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fabric.devices.base import Outputs, TargetPort
from fabric.qos import PRIORITY_COUNT, Remark

_NAMES = (
    "ROCE_CC_PRIO_MASK_P1", "ROCE_CC_PRIO_MASK_P2", "LLDP_NB_DCBX_P1", "LLDP_NB_DCBX_P2",
    "DCBX_WILLING_P1", "DCBX_WILLING_P2",
)  # fmt: skip
_LINE = re.compile(r"[\s*-]*([A-Z][A-Z0-9_]+_P\d)\s+(\S.*)")
_VALUE = re.compile(r"(?:[A-Za-z_]+\()?(0x[0-9a-fA-F]+|\d+)\)?")


def command(port: TargetPort) -> str:
    """The command that shows them; it says nothing where the tool or a name is not known."""
    return f"mlxconfig -d {port.rdma_device} q {' '.join(_NAMES)} 2>/dev/null || true"


def settings(port: TargetPort, outputs: Outputs) -> Mapping[str, int]:
    """Name -> the value that the next boot has; empty where nothing is shown."""
    found = {}
    for line in outputs.get(command(port), "").splitlines():
        match = _LINE.fullmatch(line.rstrip())
        values = _VALUE.findall(match[2]) if match else []
        if match and values:
            found[match[1]] = int(values[-1], 0)
    return found


def _of_port(shown: Mapping[str, int], name: str, pci: str) -> int | None:
    """The value of the card's port that this PCI function is (.0 is port 1)."""
    function = pci.rpartition(".")[2]
    number = int(function) + 1 if function.isdigit() else 1
    return shown.get(f"{name}_P{number}", shown.get(f"{name}_P1"))


def ecn_priorities(shown: Mapping[str, int], pci: str) -> tuple[int, ...] | None:
    """Priorities on which the firmware does congestion control; None where not shown."""
    mask = _of_port(shown, "ROCE_CC_PRIO_MASK", pci)
    if mask is None:
        return None
    return tuple(priority for priority in range(PRIORITY_COUNT) if mask >> priority & 1)


def remarks(port: TargetPort, shown: Mapping[str, int], pci: str) -> tuple[Remark, ...]:
    """Firmware that takes what its switch offers, whatever the host has set."""
    speaks, willing = (_of_port(shown, name, pci) for name in ("LLDP_NB_DCBX", "DCBX_WILLING"))
    if not (speaks and willing):
        return ()
    return (
        Remark(
            "dcbx",
            port.name,
            "the firmware speaks DCBX and is willing: the switch's settings replace the host's",
            (f"mlxconfig -d {port.rdma_device} q: LLDP_NB_DCBX {speaks}, DCBX_WILLING {willing}",),
        ),
    )
