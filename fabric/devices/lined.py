"""What systems share whose configuration is lines: objects with names, and ports that use them.

A subclass says how its lines are read and what an intent makes of them; rendering
and planning are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from fabric.devices.base import Change, Outputs, Target
from fabric.devices.delta import Dialect
from fabric.devices.owning import Ownership, plan
from fabric.devices.sections import Section, to_text
from fabric.qos import DeviceQos


class LinedModule(ABC):
    """Renders and plans configuration lines. Holds no state."""

    ownership: ClassVar[Ownership]
    dialect: ClassVar[Dialect]

    @abstractmethod
    def running_sections(self, target: Target, outputs: Outputs) -> list[Section]:
        """The running configuration; ReadError without one, for nothing is known then."""

    @abstractmethod
    def intended_sections(self, intended: DeviceQos) -> list[Section]:
        """All that the intent owns; InputError for what the system cannot express at all."""

    def render(self, intended: DeviceQos) -> str:
        """The configuration that the intent owns, as the running configuration shows it.

        Raises InputError for what the system cannot express at all.
        """
        return to_text(self.intended_sections(intended), " ")

    def change(self, target: Target, outputs: Outputs, intended: DeviceQos) -> Change:
        """From the running configuration to the intended one; nothing without ports.

        Raises ReadError without a running configuration, DeviceError where the
        device lacks a port, InputError for what the system cannot express.
        """
        running = self.running_sections(target, outputs)
        if not intended.ports:
            return Change()
        wanted = self.intended_sections(intended)
        return plan(target.device, running, wanted, self.ownership, self.dialect)
