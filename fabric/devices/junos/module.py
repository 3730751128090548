"""The device module of Junos: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Edit, Outputs, SafetyNet, Target
from fabric.devices.junos import counters
from fabric.devices.junos import read as reading
from fabric.devices.junos.change import change
from fabric.devices.junos.fit import fit
from fabric.devices.junos.render import intended_statements
from fabric.devices.junos.statements import inactive_paths, is_physical, lines
from fabric.devices.ports import front_port
from fabric.qos import DeviceQos

# The beginnings of lines by which Junos refuses a line, a command or a commit.
_REFUSAL = re.compile(
    r"^\s*(?:unknown command|syntax error|missing argument|invalid |error: |commit failed"
    r"|'?[^\n]{1,60}'? is ambiguous|Value \S+ is not within range|permission denied)",
    re.IGNORECASE | re.MULTILINE,
)
_ENTER = "configure exclusive"
_LEAVE = "exit configuration-mode"
_CONFIRM_WITHIN_MIN = 10


class JunosModule:
    """Junos on QFX5000 switches. Holds no state."""

    os = "junos"
    netmiko_type = "juniper_junos"
    # Fields that one object holds, whose lines go together.
    held_together = (
        frozenset({"queues"}),
        frozenset({"pfc_priorities", "ingress_buffers", "watchdog"}),
        frozenset({"dscp_to_priority", "priority_to_class"}),
    )

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(text, str, is_physical, "et-0/0/0, or et-0/0/0:1 broken out")

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - the same for all
        """Six lossless queues; QFX5K packet buffer architecture (Juniper, 2025)."""
        return Capabilities(
            max_lossless_classes=6, notes=("XOFF is a share of the free buffer, in eleven steps",)
        )

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return reading.COMMANDS

    def counter_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same
        """Commands that show counters."""
        return counters.COMMANDS

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.junos.read.read`."""
        return reading.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.junos.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What a QFX5120 can express; without cables it has no headroom."""
        return fit(Target(intended.device, "junos", "", ()), intended)

    def fit(self, target: Target, intended: DeviceQos) -> DeviceQos:
        """What this switch can express; see :func:`fabric.devices.junos.fit.fit`."""
        return fit(target, intended)

    def render(self, intended: DeviceQos) -> str:
        """The statements that the intent owns, without the lengths of cables.

        Raises InputError for what Junos cannot express at all.
        """
        bare = Target(intended.device, "junos", "", ())
        return "".join(f"set {line}\n" for line in lines(intended_statements(bare, intended)))

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the configuration to the intended one; nothing without ports.

        Raises ReadError without a configuration, DeviceError where a queue is in
        use otherwise or something is deactivated, InputError for what Junos cannot
        express.
        """
        running = reading.running_statements(target, outputs)
        if not intended.ports:
            return Change()
        wanted = intended_statements(target, intended)
        names = [port.name for port in intended.ports]
        inactive = inactive_paths(outputs[reading.CONFIGURATION])
        return change(target.device, running, inactive, wanted, names)

    def safety_net(self, run_id: str) -> SafetyNet:
        """``commit confirmed``, then a commit that confirms it.

        Nothing takes effect before the commit, and Junos takes it back by itself
        unless it is confirmed in time. The way back earlier is line by line:
        ``rollback 1`` would undo somebody else's commit where ours never happened.
        ``configure exclusive`` keeps others out and refuses where somebody has
        uncommitted changes. Source: Juniper, CLI User Guide, "Commit a Configuration".
        """
        comment = f'comment "PAISoar {re.sub(r"[^A-Za-z0-9_.-]", "-", run_id)}"'
        confirmed = f"commit confirmed {_CONFIRM_WITHIN_MIN} {comment}"
        return SafetyNet(
            confirm=(_ENTER, f"commit {comment}", _LEAVE),
            edit=Edit(_ENTER, (confirmed,), ("rollback 0",)),
            undo_edit=Edit(_ENTER, (f"commit {comment}",), ("rollback 0",)),
        )

    def is_error(self, answer: str) -> bool:
        """Whether Junos refused: ``syntax error.``, ``error: ...``; warnings are none.

        A configuration may quote such a text; it is no refusal.
        """
        return not answer.lstrip().startswith("set ") and bool(_REFUSAL.search(answer))


MODULE = JunosModule()
