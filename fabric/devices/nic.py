"""What a NIC family is: the only place that knows a host's NIC driver.

The Linux host module composes families port by port. A family reads a port to
``PortQos``, says which commands change it, and which shell lines set all of it
again at boot. Like a device module it is stateless and talks to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fabric.counters import Counter
from fabric.devices.base import Capabilities, Outputs, TargetPort
from fabric.qos import PortQos, Remark


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that a port is set to, as a section of the host's boot script.

    ``value`` is for people. ``script`` holds shell lines that may use the
    functions of ``fabric.devices.linux.script``: ``run COMMAND...`` and
    ``put VALUE FILE...`` (the first FILE that exists), and ``$PCI``, the port's
    PCI address.
    """

    name: str
    value: str
    script: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One thing that has to change, and how to put it back.

    ``before`` is None where the outputs do not show it; then nothing puts it
    back. ``commands`` and ``rollback`` are shell commands; both are safe to
    repeat.
    """

    name: str
    before: str | None
    after: str
    commands: tuple[str, ...]
    rollback: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NicReading:
    """What a family reads of one port.

    ``port`` is None where the outputs do not show what the port does at all;
    its ``nic.persistent`` is left False for the host module to fill in.
    ``unread`` names single facts that are not shown; the port then holds 0 or
    nothing for them. ``settings`` is what a boot script that reproduces the
    live state would hold, ``shown`` the names of all settings whose live value
    is known. ``remarks`` are faults that only the family can see.
    """

    port: PortQos | None
    unread: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    shown: frozenset[str] = frozenset()
    model: str = ""
    driver: str = ""
    remarks: tuple[Remark, ...] = ()


class NicFamily(Protocol):
    """One NIC driver, e.g. mlx5."""

    @property
    def name(self) -> str:
        """The name used in ``fabric.yaml`` and in the entry point."""

    def capabilities(self, port: TargetPort) -> Capabilities:
        """What a NIC of this family can hold."""

    def read_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Commands that show the port's state. Ports may share a command."""

    def counter_commands(self, port: TargetPort) -> tuple[str, ...]:
        """Commands that show the port's counters."""

    def read(self, port: TargetPort, outputs: Outputs) -> NicReading:
        """What the port does. Raises ReadError where an output makes no sense."""

    def read_counters(
        self, device: str, port: TargetPort, outputs: Outputs
    ) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
        """Counters in the schema of ``fabric.counters``, and what is missing and why."""

    def normalise(self, port: PortQos) -> PortQos:
        """What the NIC can express of this intent (rounding)."""

    def settings(self, port: PortQos) -> tuple[Setting, ...]:
        """Everything that the intent owns on this port, in the order of setting it."""

    def changes(
        self, port: TargetPort, outputs: Outputs, intended: PortQos
    ) -> tuple[SettingChange, ...]:
        """From what the outputs show to what is intended, in the order of doing it.

        Raises ReadError where the outputs do not show what the port does now.
        """
