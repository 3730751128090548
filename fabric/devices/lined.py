"""What systems share whose configuration is lines: objects with names, and ports that use them.

A subclass says how its lines are read and what an intent makes of them; asking,
rendering and planning are the same for all.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fabric.counters import CounterSnapshot
from fabric.devices.base import Change, Outputs, Target
from fabric.devices.delta import Dialect
from fabric.devices.owning import Ownership, plan
from fabric.devices.sections import Section, to_text
from fabric.qos import DeviceQos


@dataclass(frozen=True, slots=True)
class Parts:
    """What a system does itself, each as ``DeviceModule`` says of it.

    ``running_sections`` raises ReadError without a running configuration;
    ``intended_sections``, all that the intent owns, InputError for what the system cannot
    express at all.
    """

    commands: tuple[str, ...]
    counter_commands: Callable[[Target], tuple[str, ...]]
    read: Callable[[Target, Outputs], DeviceQos]
    read_counters: Callable[[Target, Outputs, float], CounterSnapshot]
    normalise: Callable[[DeviceQos], DeviceQos]
    running_sections: Callable[[Target, Outputs], list[Section]]
    intended_sections: Callable[[DeviceQos], list[Section]]


class LinedModule(ABC):
    """Reads, renders and plans configuration lines. Holds no state."""

    parts: ClassVar[Parts]
    ownership: ClassVar[Ownership]
    dialect: ClassVar[Dialect]

    def read_commands(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Commands that show configuration and state."""
        return self.parts.commands

    def counter_commands(self, target: Target) -> tuple[str, ...]:
        """Commands that show counters."""
        return self.parts.counter_commands(target)

    def read(self, target: Target, outputs: Outputs) -> DeviceQos:
        """What the switch does. Raises ReadError where an output makes no sense."""
        return self.parts.read(target, outputs)

    def read_counters(self, target: Target, outputs: Outputs, taken_at_s: float) -> CounterSnapshot:
        """Counters in the schema of ``fabric.counters``."""
        return self.parts.read_counters(target, outputs, taken_at_s)

    def normalise(self, intended: DeviceQos) -> DeviceQos:
        """What the system can express of an intended state."""
        return self.parts.normalise(intended)

    def render(self, intended: DeviceQos) -> str:
        """The configuration that the intent owns, as the running configuration shows it.

        Raises InputError for what the system cannot express at all.
        """
        return to_text(self.parts.intended_sections(intended), " ")

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the running configuration to the intended one; nothing without ports.

        Raises ReadError without a running configuration, DeviceError where the
        device lacks a port, InputError for what the system cannot express.
        """
        running = self.parts.running_sections(target, outputs)
        if not intended.ports:
            return Change()
        wanted = self.parts.intended_sections(intended)
        return plan(target.device, running, wanted, self.ownership, self.dialect)
