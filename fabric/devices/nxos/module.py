"""The device module of NX-OS: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Outputs, SafetyNet, Target
from fabric.devices.nxos import counters
from fabric.devices.nxos import read as reading
from fabric.devices.nxos.change import change
from fabric.devices.nxos.names import interface_name, is_physical
from fabric.devices.nxos.normalise import normalise
from fabric.devices.nxos.render import intended_sections
from fabric.devices.ports import front_port
from fabric.devices.sections import to_text
from fabric.qos import DeviceQos

_CAPABILITIES = {
    # Read on NX-OS 10.3(8): smaller pause buffers and thresholds are refused.
    "N9K-C93180YC-EX": Capabilities(
        min_xoff_bytes=12480, notes=("a pause buffer needs 27456 bytes or more",)
    ),
    "N9K-C93180YC-FX": Capabilities(notes=("minimum pause buffer and threshold are not known",)),
    "N9K-C9336C-FX2": Capabilities(notes=("minimum pause buffer and threshold are not known",)),
}

# The beginnings of lines by which NX-OS refuses a line or a command.
_REFUSAL = re.compile(
    r"^\s*(?:"
    r"% ?(?:Invalid|Incomplete|Ambiguous|Permission denied|Error|Failed|Cannot|Command)"
    r"|[^\n]* at '\^' marker|error:|unable to perform the action|syntax error"
    r"|configuration update aborted|rollback (?:failed|aborted)|command rejected"
    r")",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_CHECKPOINT_NAME = 75


class NxosModule:
    """Cisco NX-OS, Nexus 9000, 8-queue mode. Holds no state."""

    os = "nxos"
    netmiko_type = "cisco_nxos"
    # Fields that one object holds, whose lines go together.
    held_together = (
        frozenset({"queues"}),
        frozenset({"pfc_priorities", "class_mtu_bytes"}),
    )

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(
            text, interface_name, is_physical, "Ethernet1/1, or Ethernet1/1/1 broken out"
        )

    def capabilities(self, target: Target) -> Capabilities:
        """What this model can hold; empty for a model that we know nothing of."""
        return _CAPABILITIES.get(target.model, Capabilities())

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return reading.COMMANDS

    def counter_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same
        """Commands that show counters."""
        return counters.COMMANDS

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.nxos.read.read`."""
        return reading.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.nxos.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What NX-OS can express; see :func:`fabric.devices.nxos.normalise.normalise`."""
        return normalise(intended)

    def render(self, intended: DeviceQos) -> str:
        """The configuration that the intent owns, as ``show running-config`` prints it.

        Raises InputError for what NX-OS cannot express at all.
        """
        return to_text(intended_sections(intended))

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the running configuration to the intended one; nothing without ports.

        Raises ReadError without a running configuration, DeviceError where the
        device lacks a port, InputError for what NX-OS cannot express.
        """
        running = reading.running_sections(target, outputs)
        if not intended.ports:
            return Change()
        return change(target.device, running, intended_sections(intended))

    def safety_net(self, run_id: str) -> SafetyNet:
        """A checkpoint, the (atomic) rollback to it, and saving.

        A switch holds ten checkpoints: ours goes once the change is saved, or was
        seen to be undone. Source: Cisco, Nexus
        9000 NX-OS System Management guide 10.5(x), "Configuring Rollback".
        """
        name = f"paisoar-{re.sub(r'[^A-Za-z0-9_-]', '-', run_id)}"[:_MAX_CHECKPOINT_NAME]
        return SafetyNet(
            prepare=(f"checkpoint {name}",),
            undo=(f"rollback running-config checkpoint {name}",),
            save=("copy running-config startup-config",),
            release=(f"no checkpoint {name}",),
        )

    def is_error(self, answer: str) -> bool:
        """Whether NX-OS refused: ``% Invalid command at '^' marker.``, ``ERROR: ...``.

        A configuration may quote such a text (a banner); it is no refusal.
        """
        return not answer.lstrip().startswith("!Command:") and bool(_REFUSAL.search(answer))


MODULE = NxosModule()
