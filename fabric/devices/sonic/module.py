"""The device module of SONiC: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Outputs, SafetyNet, Target
from fabric.devices.ports import front_port
from fabric.devices.sonic import counters
from fabric.devices.sonic import read as reading
from fabric.devices.sonic.change import change
from fabric.devices.sonic.companions import companions
from fabric.devices.sonic.database import to_text
from fabric.devices.sonic.names import is_physical
from fabric.devices.sonic.normalise import normalise
from fabric.devices.sonic.render import intended_tables
from fabric.qos import DeviceQos

# Two lossless priorities are what the platforms of sonic-buildimage are given
# buffers for (pfc_enable 3,4 in qos_config.j2); no platform's limit was found.
_NOTES = ("two lossless priorities are usual; the ASIC's own limit is not known",)

# How the shell, sudo, click, Redis and sonic-db-cli refuse.
_REFUSAL = re.compile(
    r"^\s*(?:"
    r"-?bash: |sudo: |Usage: |Error: |ERR |WRONGTYPE |NOAUTH |OOM |MISCONF |READONLY "
    r"|Traceback \(most recent call"
    r"|Root privileges are required|Failed to |Could not connect to Redis"
    r"|Invalid database name|Command Line Error|Unknown option without value|usage: "
    r"|cat: |No such file|Permission denied"
    r")",
    re.MULTILINE,
)


class SonicModule:
    """SONiC 202111 and later, single-ASIC. Holds no state."""

    os = "sonic"
    netmiko_type = "linux"

    def port_name(self, text: str) -> str:
        """The name of a front port in full."""
        return front_port(text, str, is_physical, "Ethernet0")

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - no model is known
        """What the hardware can hold."""
        return Capabilities(notes=_NOTES)

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return reading.COMMANDS

    def counter_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same
        """Commands that show counters."""
        return counters.COMMANDS

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.sonic.read.read`."""
        return reading.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.sonic.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What SONiC can express; see :func:`fabric.devices.sonic.normalise.normalise`."""
        return normalise(intended)

    def render(self, intended: DeviceQos) -> str:
        """The rows that the intent owns, as JSON that ``sudo config load FILE`` takes.

        Raises InputError for what SONiC cannot express at all.
        """
        return to_text(intended_tables(intended)) if intended.ports else ""

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From what CONFIG_DB holds to the intended rows; nothing without ports.

        Raises ReadError without a CONFIG_DB, DeviceError where the device lacks a
        port or a lossless pool, InputError for what SONiC cannot express.
        """
        running = reading.running_tables(target, outputs)
        if not intended.ports:
            return Change()
        return change(target.device, running, intended)

    def companions(self, line: str, lines: Sequence[str]) -> tuple[list[str], list[str]]:
        """What belongs to a command of a change of which only a part is sent."""
        return companions(line, lines)

    def safety_net(self, run_id: str) -> SafetyNet:
        """A checkpoint, the rollback to it, and saving.

        ``config rollback`` goes through the generic updater, which refuses to
        touch WRED, watchdog and buffers on ASICs that it does not list; then the
        change's own commands are the way back. The checkpoint stays where both failed,
        for ``sudo config reload /etc/sonic/checkpoints/NAME.cp.json``. Source:
        sonic-net/sonic-utilities doc/Command-Reference.md, "Configuration
        checkpoints and rollback"; generic_config_updater/generic_updater.py.
        """
        name = f"paisoar-{re.sub(r'[^A-Za-z0-9_-]', '-', run_id)}"
        return SafetyNet(
            prepare=(f"sudo config checkpoint {name}",),
            undo=(f"sudo config rollback {name}",),
            save=("sudo config save -y",),
            release=(f"sudo config delete-checkpoint {name}",),
        )

    def is_error(self, answer: str) -> bool:
        """Whether SONiC refused: ``Error: ...``, ``-bash: ...``, ``ERR ...``.

        JSON may quote such a text; it is no refusal.
        """
        return not answer.lstrip().startswith("{") and bool(_REFUSAL.search(answer))


MODULE = SonicModule()
