"""The device module of Cumulus Linux: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Edit, Outputs, SafetyNet, Target
from fabric.devices.nvue import counters
from fabric.devices.nvue import read as reading
from fabric.devices.nvue.change import change
from fabric.devices.nvue.names import is_physical
from fabric.devices.nvue.normalise import normalise
from fabric.devices.nvue.render import intended_tree
from fabric.devices.nvue.tree import leaves, to_lines
from fabric.devices.ports import front_port
from fabric.qos import DeviceQos

# How the shell, sudo and nv refuse.
_REFUSAL = re.compile(
    r"^\s*(?:-?bash: |sudo: |Error: |Invalid [Cc]ommand|Invalid config|Invalid revision"
    r"|Unknown revision|Failed |Failure|failed to |Traceback \(most recent call|usage: |cat: "
    r"|Permission denied)",
    re.MULTILINE,
)
# Long enough to read back and save; nobody else's change is taken back with it.
_CONFIRM = "10m"


class NvueModule:
    """Cumulus Linux 5 with NVUE on Spectrum switches. Holds no state."""

    os = "nvue"
    netmiko_type = "linux"

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(text, str, is_physical, "swp1, or swp1s0 broken out")

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - no model is known
        """What the hardware can hold."""
        return Capabilities(notes=("there is one lossless pool on the switch",))

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return reading.COMMANDS

    def counter_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show counters."""
        return counters.commands(target)

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.nvue.read.read`."""
        return reading.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.nvue.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What NVUE can express; see :func:`fabric.devices.nvue.normalise.normalise`."""
        return normalise(intended)

    def render(self, intended: DeviceQos) -> str:
        """The configuration that the intent owns, as ``nv set`` lines.

        Raises InputError for what NVUE cannot express at all.
        """
        return "".join(f"{line}\n" for line in to_lines(leaves(intended_tree(intended))))

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the applied configuration to the intended one; nothing without ports.

        Raises ReadError without a configuration, DeviceError where the device lacks
        a port or is in RoCE mode, InputError for what NVUE cannot express.
        """
        applied = reading.applied_tree(outputs)
        if not intended.ports:
            return Change()
        return change(target.device, applied, intended)

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002 - revisions have numbers
        """Applying with a timer: unless confirmed, the earlier revision comes back.

        Also when the session breaks and nobody comes back. Source:
        CumulusNetworks/docs, nvue-reference "Config and Action Commands" (``--confirm``,
        ``--confirm-yes``, ``--confirm-no``).
        """
        back = Edit(apply=("nv config apply -y",), discard=("nv config detach",))
        return SafetyNet(
            # What somebody else left pending would be applied with ours.
            prepare=("nv config detach",),
            undo=("nv config apply --confirm-no",),
            abandon=("nv config apply --confirm-no", "nv config detach"),
            confirm=("nv config apply --confirm-yes",),
            save=("nv config save",),
            edit=Edit(
                apply=(f"nv config apply --confirm {_CONFIRM} -y",), discard=("nv config detach",)
            ),
            undo_edit=back,
        )

    def is_error(self, answer: str) -> bool:
        """Whether the shell or ``nv`` refused. JSON may quote such a text; it is no refusal."""
        return not answer.lstrip().startswith(("{", "[")) and bool(_REFUSAL.search(answer))


MODULE = NvueModule()
