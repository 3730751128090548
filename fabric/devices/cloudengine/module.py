"""The device module of CloudEngine: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.devices.base import Capabilities, Edit, SafetyNet, Target
from fabric.devices.cloudengine import counters
from fabric.devices.cloudengine import read as reading
from fabric.devices.cloudengine.lines import HEADS, PREFIX, goes_without_saying, is_physical
from fabric.devices.cloudengine.normalise import normalise
from fabric.devices.cloudengine.render import intended_sections
from fabric.devices.delta import Dialect
from fabric.devices.lined import LinedModule, Parts
from fabric.devices.owning import PORT, Ownership
from fabric.devices.ports import front_port
from fabric.qos import PRIORITY_COUNT

_REFUSAL = re.compile(
    r"^\s*(?:\^\s*$|Error: |Error\[\d+\]: |Failed to )|(?:Unrecognized|Wrong parameter|"
    r"Incomplete command|Ambiguous command|Too many parameters) found",
    re.MULTILINE,
)
_OWNERSHIP = Ownership(
    PREFIX,
    HEADS,
    re.compile(
        r"jumboframe enable \d+|flow-control|trust (?:dscp|8021p|upstream \S+)"
        r"|dcb pfc enable .*|qos (?:pq|drr|wrr|wfq) [\d to]+"
        r"|qos queue [0-7] (?:wred \S+|ecn|(?:drr|wrr|wfq) weight \d+)"
    ),
    negation="undo",
    left_out=goes_without_saying,
)
_RANKS = (*HEADS, PORT, *(f"no {head}" for head in reversed(HEADS)))
_QUEUES = tuple(f"qos queue {number} " for number in range(PRIORITY_COUNT))


def _rank(text: str, _undo: bool) -> int:
    return next(rank for rank, start in enumerate(_RANKS) if text.startswith(start))


def _turn(text: str) -> int:
    """What goes comes first; a weight needs its queue to share."""
    if text.startswith("no "):
        return 0
    return 2 if text.startswith("qos queue ") else 1


_DIALECT = Dialect(
    one_value=(
        (PORT, "jumboframe enable "),
        (PORT, "trust upstream "),
        (PORT, "dcb pfc enable "),
        (PORT, "qos pq "),
        (PORT, "qos drr "),
        *((PORT, f"{queue}wred ") for queue in _QUEUES),
        *((PORT, f"{queue}drr weight ") for queue in _QUEUES),
    ),
    negations=(
        ((PORT, "jumboframe enable "), "no jumboframe enable"),
        ((PORT, "trust upstream "), "no trust upstream"),
        ((PORT, "dcb pfc enable "), "no dcb pfc enable"),
        *(((PORT, f"{queue}wred "), f"no {queue}wred") for queue in _QUEUES),
        *(((PORT, f"{queue}drr weight "), f"no {queue}drr weight") for queue in _QUEUES),
    ),
    rank=_rank,
    turn=_turn,
)


class CloudEngineModule(LinedModule):
    """Huawei CloudEngine data centre switches with VRP 8. Holds no state."""

    os = "cloudengine"
    netmiko_type = "huawei_vrpv8"
    parts = Parts(
        commands=reading.COMMANDS,
        counter_commands=counters.commands,
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
        return front_port(text, str, is_physical, "100GE1/0/1")

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - the same for all
        """What is published of the hardware."""
        return Capabilities(notes=("receive buffers of lossless queues are the switch's own",))

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002 - a trial has no name
        """A trial commit: lines take effect together, and VRP takes them back by itself.

        ``commit trial`` waits for a ``commit`` that confirms it, for 600 s here, so
        that a switch which the change cuts off comes back. ``clear configuration
        candidate`` drops what a refused line left. Source: Huawei, CloudEngine
        configuration guide, "Configuration Management" (two-stage validation); the
        behaviour of this sequence is unverified.
        """
        return SafetyNet(
            undo=("abort trial",),
            abandon=("abort trial",),
            confirm=("system-view", "commit", "return"),
            save=("save force",),
            edit=Edit("system-view", ("commit trial 600",), ("clear configuration candidate",)),
            undo_edit=Edit("system-view", ("commit",), ("clear configuration candidate",)),
        )

    def is_error(self, answer: str) -> bool:
        """Whether VRP refused: ``Error: ...`` or a mark below the line."""
        return "\n#\n" not in answer and bool(_REFUSAL.search(answer))


MODULE = CloudEngineModule()
