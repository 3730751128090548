"""The device module of EOS: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Edit, Outputs, SafetyNet, Target
from fabric.devices.eos import counters
from fabric.devices.eos import read as reading
from fabric.devices.eos.change import change
from fabric.devices.eos.lines import INDENT, interface_name, is_physical
from fabric.devices.eos.normalise import normalise
from fabric.devices.eos.render import intended_sections
from fabric.devices.ports import front_port
from fabric.devices.sections import to_text
from fabric.qos import DeviceQos

# A line by which EOS refuses: ``% Invalid input``. Log messages have no blank there.
_REFUSAL = re.compile(r"^\s*% \S", re.MULTILINE)
_JSON_REFUSAL = re.compile(r'^\s*\{\s*"errors"\s*:')
_JERICHO = re.compile(r"DCS-7(?:28|50|80|280)\d*\w*R")
_CONFIRM_WITHIN = "00:10:00"
_MAX_SESSION_NAME = 60


class EosModule:
    """Arista EOS with Trident or Tomahawk chips. Holds no state."""

    os = "eos"
    netmiko_type = "arista_eos"
    # Fields that one object holds, whose lines go together: the port's qos profile.
    held_together = (frozenset({"trust", "pfc_priorities", "queues", "watchdog"}),)

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(text, interface_name, is_physical, "Ethernet1, or Ethernet49/1")

    def capabilities(self, target: Target) -> Capabilities:
        """What this model can hold: little is published."""
        if _JERICHO.match(target.model):
            return Capabilities(
                notes=("its queues are tx-queues and its buffers are others: read, not rendered",)
            )
        return Capabilities(
            notes=("XOFF is a share of the free buffer", "the largest headroom pool is not known")
        )

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return reading.COMMANDS

    def counter_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same
        """Commands that show counters."""
        return counters.COMMANDS

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.eos.read.read`."""
        return reading.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.eos.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What EOS can express; see :func:`fabric.devices.eos.normalise.normalise`."""
        return normalise(intended)

    def render(self, intended: DeviceQos) -> str:
        """The configuration that the intent owns, as ``show running-config`` prints it.

        Raises InputError for what EOS cannot express at all.
        """
        return to_text(intended_sections(intended), INDENT)

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the running configuration to the intended one; nothing without ports.

        Raises ReadError without a running configuration, DeviceError where the
        device lacks a port, InputError for what EOS cannot express.
        """
        running = reading.running_sections(target, outputs)
        if not intended.ports:
            return Change()
        return change(target.device, running, intended_sections(intended))

    def safety_net(self, run_id: str) -> SafetyNet:
        """A configuration session that is committed with a timer, then confirmed.

        Nothing takes effect before the commit, all of it does then, and EOS takes
        it back by itself unless the session is committed again in time: also where
        the change cuts us off. Source: EOS User Manual, "Configure Session"
        (``commit timer``, ``configure session NAME commit`` and ``abort``).
        """
        name = f"paisoar-{re.sub(r'[^A-Za-z0-9_-]', '-', run_id)}"[:_MAX_SESSION_NAME]
        session = f"configure session {name}"
        return SafetyNet(
            undo=(f"{session} abort",),
            abandon=(f"{session} abort",),
            confirm=(f"{session} commit",),
            save=("copy running-config startup-config",),
            edit=Edit(session, (f"commit timer {_CONFIRM_WITHIN}",), ("abort",)),
        )

    def is_error(self, answer: str) -> bool:
        """Whether EOS refused: ``% Invalid input``, or an object of errors as JSON.

        A configuration may quote such a text (a banner); it is no refusal.
        """
        if answer.lstrip().startswith("! Command:"):
            return False
        return bool(_REFUSAL.search(answer) or _JSON_REFUSAL.match(answer))


MODULE = EosModule()
