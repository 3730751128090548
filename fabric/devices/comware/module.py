"""The device module of Comware: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.devices.base import Capabilities, SafetyNet, Target
from fabric.devices.comware import counters
from fabric.devices.comware import read as reading
from fabric.devices.comware.lines import (
    DSCP_TABLE,
    QUEUE_TABLE,
    QUEUES,
    goes_without_saying,
    is_physical,
)
from fabric.devices.comware.normalise import normalise
from fabric.devices.comware.render import intended_sections
from fabric.devices.delta import Dialect
from fabric.devices.lined import LinedModule, Parts
from fabric.devices.owning import PORT, Ownership
from fabric.devices.ports import front_port
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT

_REFUSAL = re.compile(
    r"^\s*(?:\^\s*$|% ?(?:Unrecognized|Wrong|Incomplete|Ambiguous|Too many)|Error: |"
    r"Permission denied|The operation (?:failed|is not supported))",
    re.MULTILINE,
)
_TABLES = (DSCP_TABLE, QUEUE_TABLE)
_OWNERSHIP = Ownership(
    "paisoar-",
    (),
    re.compile(
        r"jumboframe enable \d+|flow-control|qos trust \w+"
        r"|priority-flow-control (?:enable|auto|no-drop dot1p .+)"
        r"|priority-flow-control dot1p \d (?:headroom|ingress-buffer|ingress-threshold-offset) .+"
        r"|qos (?:sp|wfq .+|wrr .+)|qos wred (?:apply \S+|queue \d .+)"
    ),
    negation="undo",
    left_out=goes_without_saying,
    tables=_TABLES,
)
_HEADROOM = tuple(
    f"priority-flow-control dot1p {priority} {what}"
    for priority in range(PRIORITY_COUNT)
    for what in ("headroom", "ingress-buffer", "ingress-threshold-offset")
)
_WRED = tuple(
    f"qos wred queue {number} {what}"
    for number in range(PRIORITY_COUNT)
    for what in ("drop-level 0", "drop-level 1", "drop-level 2", "weighting-constant")
)
_SHARES = tuple(f"qos {kind} {name}" for kind in ("wfq", "wrr") for name in QUEUES)
# What removes a setting: the setting without its value.
_WITHOUT_VALUE = (
    "jumboframe enable",
    "qos trust",
    "priority-flow-control no-drop dot1p",
    "qos wred apply",
    *_HEADROOM,
    *_WRED,
    *_SHARES,
)


def _rank(text: str, undo: bool) -> int:
    """Tables before the ports that trust DSCP; the other way round on the way back."""
    return int(text.startswith(PORT)) ^ int(undo)


def _turn(text: str) -> int:
    """PFC goes off first and comes on last; scheduling is chosen before its shares."""
    if text.startswith("no priority-flow-control") and "dot1p" not in text:
        return 0
    if text.startswith("no "):
        return 1
    if text in ("qos wfq byte-count", "qos sp") or text.startswith("qos wrr byte-count"):
        return 2
    return 4 if text in ("priority-flow-control enable", "priority-flow-control auto") else 3


_DIALECT = Dialect(
    one_value=(
        *((PORT, f"{start} ") for start in _WITHOUT_VALUE),
        (PORT, "priority-flow-control enable"),
        (PORT, "priority-flow-control auto"),
        *((table, f"import {value} ") for table in _TABLES for value in range(DSCP_COUNT)),
    ),
    negations=(
        *((((PORT, f"{start} ")), f"no {start}") for start in _WITHOUT_VALUE),
        ((PORT, "priority-flow-control enable"), "no priority-flow-control"),
        ((PORT, "priority-flow-control auto"), "no priority-flow-control"),
        ((PORT, "qos wfq byte-count"), "no qos wfq"),
        ((PORT, "qos wfq weight"), "no qos wfq"),
        ((PORT, "qos wrr byte-count"), "no qos wrr"),
        ((PORT, "qos wrr weight"), "no qos wrr"),
        *(
            ((table, f"import {value} "), f"no import {value}")
            for table in _TABLES
            for value in range(DSCP_COUNT)
        ),
    ),
    rank=_rank,
    turn=_turn,
)


class ComwareModule(LinedModule):
    """H3C data centre switches with Comware 7. Holds no state."""

    os = "comware"
    netmiko_type = "hp_comware"
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
        return front_port(text, str, is_physical, "HundredGigE1/0/1")

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - the same for all
        """What is published of the hardware."""
        return Capabilities(notes=("buffers and thresholds are whole cells of 256 bytes",))

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002 - a delay has no name
        """A commit delay: Comware goes back by itself unless it is committed in time.

        Lines take effect one by one, and earlier the way back is line by line. Source:
        H3C, Comware 7 fundamentals configuration guide, "Configuring configuration
        commit delay"; the behaviour of this sequence is unverified.
        """
        return SafetyNet(
            prepare=("system-view", "configuration commit delay 10", "return"),
            confirm=("system-view", "configuration commit", "return"),
            save=("save force",),
        )

    def is_error(self, answer: str) -> bool:
        """Whether Comware refused: ``% Unrecognized command``, or a mark below the line."""
        return "\n#\n" not in answer and bool(_REFUSAL.search(answer))


MODULE = ComwareModule()
