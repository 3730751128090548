"""The device module of OS10: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.devices.base import Capabilities, Edit, SafetyNet, Target
from fabric.devices.delta import Dialect
from fabric.devices.lined import LinedModule, Parts
from fabric.devices.os10 import counters
from fabric.devices.os10 import read as reading
from fabric.devices.os10.lines import (
    HEADS,
    PREFIX,
    QUEUE_MAP,
    USE_NETWORK,
    USE_QUEUE,
    USE_TRUST,
    interface_name,
    is_physical,
)
from fabric.devices.os10.normalise import normalise
from fabric.devices.os10.render import intended_sections
from fabric.devices.owning import PORT, Ownership
from fabric.devices.ports import front_port

_REFUSAL = re.compile(r"^\s*% ?(?:Error|Invalid|Incomplete|Ambiguous|Unrecognized)", re.MULTILINE)

_PORT_USES = (USE_NETWORK, USE_QUEUE, USE_TRUST, QUEUE_MAP)
_OWNERSHIP = Ownership(
    PREFIX,
    HEADS,
    re.compile(
        r"mtu \d+|flowcontrol (?:receive|transmit) \w+|priority-flow-control mode \w+"
        r"|(?:service-policy (?:input type network-qos|output type queuing)|trust-map dscp"
        r"|qos-map traffic-class) \S+"
    ),
)
# What comes first is used by what comes later; what goes, goes the other way round.
_RANKS = (*HEADS, PORT, *(f"no {head}" for head in reversed(HEADS)))


def _rank(text: str, _undo: bool) -> int:
    return next(rank for rank, start in enumerate(_RANKS) if text.startswith(start))


def _turn(text: str) -> int:
    """PFC is off while policies change, link pause while PFC comes."""
    if text.startswith("no ") or text.endswith(" off"):
        return 0
    return 2 if text.startswith("priority-flow-control") else 1


_DIALECT = Dialect(
    one_value=(
        *((PORT, use) for use in _PORT_USES),
        (PORT, "mtu "),
        (PORT, "flowcontrol receive "),
        (PORT, "flowcontrol transmit "),
        (PORT, "priority-flow-control mode "),
    ),
    negations=(
        ((PORT, "mtu "), "no mtu"),
        ((PORT, "flowcontrol receive "), "no flowcontrol receive"),
        ((PORT, "flowcontrol transmit "), "no flowcontrol transmit"),
        ((PORT, "priority-flow-control mode "), "no priority-flow-control mode"),
    ),
    rank=_rank,
    turn=_turn,
)


class Os10Module(LinedModule):
    """Dell SmartFabric OS10 on PowerSwitch. Holds no state."""

    os = "os10"
    netmiko_type = "dell_os10"
    # Fields that one object holds, whose lines go together.
    held_together = (
        frozenset({"queues"}),
        frozenset({"pfc_priorities", "ingress_buffers"}),
    )
    parts = Parts(
        commands=reading.COMMANDS,
        counter_commands=lambda _target: counters.COMMANDS,
        read=reading.read,
        read_counters=counters.read_counters,
        normalise=normalise,
        running_sections=reading.running_sections,
        intended_sections=intended_sections,
    )
    ownership = _OWNERSHIP
    dialect = _DIALECT

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(
            text, interface_name, is_physical, "ethernet1/1/1, or ethernet1/1/1:1 broken out"
        )

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - the same for all
        """What is published of the hardware."""
        return Capabilities(notes=("buffers and thresholds are whole kilobytes",))

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002 - transactions have no name
        """A transaction: lines go into the candidate configuration, a commit applies them.

        A refused line discards all of it. Once committed the way back is line by
        line: OS10 has no commit with a timer. Source: Dell knowledge base 000120163,
        which shows ``start transaction``, ``commit`` and ``discard`` in EXEC mode.
        """
        edit = Edit(apply=("end", "commit"), discard=("end", "discard"))
        return SafetyNet(
            prepare=("start transaction",),
            undo=("start transaction",),
            save=("copy running-configuration startup-configuration",),
            edit=edit,
            undo_edit=edit,
        )

    def is_error(self, answer: str) -> bool:
        """Whether OS10 refused: ``% Error: ...``. A configuration that quotes it is none."""
        return not answer.lstrip().startswith("!") and bool(_REFUSAL.search(answer))


MODULE = Os10Module()
