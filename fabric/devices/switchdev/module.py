"""The device modules of plain Linux: what ``fabric.devices.base.DeviceModule`` asks for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fabric.counters import CounterSnapshot
from fabric.devices.base import Capabilities, Change, Outputs, SafetyNet, Target
from fabric.devices.ports import kernel_name
from fabric.devices.switchdev import counters
from fabric.devices.switchdev import read as reading
from fabric.devices.switchdev.change import transition
from fabric.devices.switchdev.normalise import normalise, require_expressible
from fabric.devices.switchdev.state import Held, Place, band_of, wanted
from fabric.errors import DeviceError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos

# How iproute2, ethtool and the shell refuse, by the beginnings of lines. ``RED: set
# bandwidth to 10Mbit`` is none: tc says what it assumes.
_REFUSAL = re.compile(
    r"^\s*(?:Error: |RTNETLINK answers: |devlink answers: |kernel answers: |Command \"|"
    r"Cannot (?:find|open|get|set) |Device \"|What is \"|Usage: |Attribute (?:read|write|not )|"
    r"Illegal |Invalid |In \w+:\w+ mapping|Not enough |RED: (?:failed|Required|too)|"
    r"We have an error talking|Failed to |Object \"|Error when |netlink error|Unknown |"
    r"(?:-?bash|sh|sudo|lldpctl|ethtool|dcb|tc|ip|devlink): |Operation not (?:permitted|supported)|"
    r"Bandwidth percentages |no (?:stats|private)|\d{4}-\S+ \[\w+/control\])",
    re.MULTILINE,
)


@dataclass(frozen=True)
class LinuxSwitchModule:
    """A switch that Linux tools configure. Holds no state.

    With ``hardware`` its ports are those of a switchdev driver with DCB and shared
    buffers (Spectrum: mlxsw); without, those of a bridge that the kernel forwards by itself.
    """

    os: str
    hardware: bool
    netmiko_type: str = "linux"

    def port_name(self, text: str) -> str:
        """The name itself: Linux knows no short ones."""
        return kernel_name(text)

    def capabilities(self, target: Target) -> Capabilities:  # noqa: ARG002 - no model is known
        """What the switch can hold."""
        if self.hardware:
            return Capabilities(
                notes=("XOFF is a share of the free buffer", "there is no PFC watchdog")
            )
        return Capabilities(
            max_lossless_classes=0, notes=("a software bridge neither pauses nor obeys pause",)
        )

    def read_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show settings and state."""
        return reading.commands(target, hardware=self.hardware)

    def counter_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show counters."""
        return counters.commands(target, hardware=self.hardware)

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does; see :func:`fabric.devices.switchdev.read.read`."""
        return reading.read(target, outputs, os=self.os, hardware=self.hardware)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters; see :func:`fabric.devices.switchdev.counters.read_counters`."""
        return counters.read_counters(target, outputs, taken_at_s, hardware=self.hardware)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What Linux can express; see :func:`fabric.devices.switchdev.normalise.normalise`."""
        return normalise(intended, hardware=self.hardware)

    def render(self, intended: DeviceQos) -> str:
        """The commands that make untouched ports do what is intended.

        Raises InputError for what Linux cannot express at all.
        """
        require_expressible(intended)
        place = Place("root", "")
        lines: list[str] = []
        for port in self.normalise(intended).ports:
            zeros = (0,) * PRIORITY_COUNT
            untouched = Held(
                mtu_bytes=0, pause=not port.link_pause, prio_buffer=zeros, buffer_bytes=zeros
            )
            then = wanted(port, untouched, hardware=self.hardware)
            now = untouched if self.hardware else dataclasses.replace(untouched, pause=then.pause)
            lines += transition(port.name, place, now, then)
        return "".join(f"{line}\n" for line in lines)

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the settings that the outputs show to the intended ones.

        Raises ReadError without ``ip`` and ``tc``, DeviceError where a port is not
        there or its queueing is somebody else's and could not be put back, InputError
        for what Linux cannot express.
        """
        require_expressible(intended)
        switch = reading.Switch(target, outputs, hardware=self.hardware)
        there: list[str] = []
        back: list[str] = []
        for port in self.normalise(intended).ports:
            found = switch.port(port.name)
            if found is None:
                raise DeviceError(
                    target.device,
                    "planning its configuration",
                    f"it has no interface {port.name}",
                    advice="Correct the port's name in fabric.yaml.",
                )
            self._require_replaceable(target.device, port, found, switch)
            then = wanted(port, found.held, hardware=self.hardware)
            there += transition(port.name, found.place, found.held, then)
            undo = list(transition(port.name, found.place, then, found.held, undo=True))
            back[:0] = undo
        return Change(diff="".join(_diff(there, back)), commands=tuple(there), rollback=tuple(back))

    def _require_replaceable(
        self, device: str, port: PortQos, found: reading.PortState, switch: reading.Switch
    ) -> None:
        kind = found.place.blocked
        marked = {band_of(queue.traffic_class) for queue in port.queues if queue.ecn is not None}
        for band, below in sorted(switch.blocked_bands(port.name, found).items()):
            kind = kind or (below if band in marked else "")
        if kind:
            raise DeviceError(
                device,
                "planning its configuration",
                f"{port.name} is queued by {kind}, which could not be put back",
                advice=f"On the switch: tc qdisc del dev {port.name} root; then plan again.",
            )

    def safety_net(self, run_id: str) -> SafetyNet:  # noqa: ARG002 - there is none
        """None: the way back is the change's own, command by command."""
        return SafetyNet()

    def is_error(self, answer: str) -> bool:
        """Whether a tool refused; JSON and what tc merely assumes are no refusal."""
        text = answer.lstrip()
        return not text.startswith(("[", "{")) and bool(_REFUSAL.search(text))


def _diff(there: list[str], back: list[str]) -> Iterator[str]:
    yield from (f"-{line}\n" for line in back)
    yield from (f"+{line}\n" for line in there)


MODULE = LinuxSwitchModule("switchdev", hardware=True)
BRIDGE = LinuxSwitchModule("bridge", hardware=False)
