"""The lines of OS10's configuration that are read and written, and where they were seen.

Sources: intel/mfd-switchmanagement ``dell_os10/base.py`` (MIT: class maps, policy maps,
``qos-map``, ``trust-map``, ``flowcontrol``, ``priority-flow-control``, how each is
removed); Dell, "SmartFabric OS10 User Guide" (``pause buffer-size ... pause-threshold
... resume-threshold``, in KB; ``priority`` and ``bandwidth percent`` of a queue); a
published PowerSwitch Z9332F configuration (``wred``, ``random-detect color green``,
``random-detect ecn``, ``pfc-cos``, ``trust dscp-map``).

Unverified: that ``random-detect NAME`` below a queue's class is how a WRED profile is
applied; that a KB has 1000 bytes; that ``resume-threshold`` is a level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIX = "paisoar-"
WRED = "wred "
NETWORK_CLASS = "class-map type network-qos "
QUEUE_CLASS = "class-map type queuing "
TRUST = "trust dscp-map "
QUEUE_MAP = "qos-map traffic-class "
NETWORK_POLICY = "policy-map type network-qos "
QUEUE_POLICY = "policy-map type queuing "
HEADS = (WRED, NETWORK_CLASS, QUEUE_CLASS, TRUST, QUEUE_MAP, NETWORK_POLICY, QUEUE_POLICY)

USE_NETWORK = "service-policy input type network-qos "
USE_QUEUE = "service-policy output type queuing "
USE_TRUST = "trust-map dscp "

KB = 1000
# ``mtu`` counts the headers: 1532 is what carries packets of 1500 bytes.
MTU_HEADER_BYTES = 32
MAX_MTU = 9216
DEFAULT_MTU = 1532

_PORT = re.compile(r"(?:ethernet|eth)\s*(\d+(?:/\d+)*(?::\d+)?)", re.IGNORECASE)


def interface_name(text: str) -> str:
    """``ethernet1/1/5`` of ``Eth 1/1/5``; any other name as it is."""
    match = _PORT.fullmatch(text.strip())
    return f"ethernet{match[1]}" if match else text.strip()


def is_physical(name: str) -> bool:
    """Whether this is a front port, ``ethernet<node>/<slot>/<port>``; breakout ports are."""
    return re.fullmatch(r"ethernet\d+/\d+/\d+(?::\d+)?", name) is not None


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of ``0-7,26`` or ``0-7, 26``."""
    found: list[int] = []
    for part in text.replace(",", " ").split():
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return tuple(found)


def ranges(values: Iterable[int]) -> str:
    """``0-7,26`` of numbers in order."""
    parts: list[list[int]] = []
    for value in sorted(values):
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
