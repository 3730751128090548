"""What an emulated port does, by its own settings and those of its qos profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.topology import PortRef
from fabric.twin.eos.config import Block

if TYPE_CHECKING:
    from fabric.twin.eos.switch import EmulatedSwitch


class Port:
    """A view of one port of a switch."""

    def __init__(self, switch: EmulatedSwitch, name: str) -> None:
        self.name = name
        self._switch = switch
        self._block = switch.config.interface(name)

    @property
    def _profile(self) -> Block:
        line = self._block.lines.get("service-profile", "")
        name = line.removeprefix("service-profile ")
        return self._switch.config.blocks.get(f"qos profile {name}", Block())

    def line(self, slot: str) -> str:
        """A setting's line: the port's own, or its profile's; empty for neither."""
        return self._block.lines.get(slot) or self._profile.lines.get(slot, "")

    @property
    def description(self) -> str:
        """What somebody wrote about the port."""
        return self._block.lines.get("description", "").removeprefix("description ")

    @property
    def mtu(self) -> int:
        """Bytes of an IP packet."""
        return int(self._block.lines.get("mtu", "mtu 1500").split()[1])

    @property
    def routed(self) -> bool:
        """Whether it has no switchport."""
        return self._block.lines.get("switchport") == "no switchport"

    @property
    def shut(self) -> bool:
        """Administratively down."""
        return "shutdown" in self._block.lines

    @property
    def peer(self) -> PortRef | None:
        """The other end of its cable."""
        return self._switch.peer_of(self.name)

    @property
    def speed_bps(self) -> int:
        """Speed of its cable."""
        return self._switch.speed_bps(self.name)

    @property
    def mac(self) -> str:
        """Its address."""
        return self._switch.mac(self.name)

    @property
    def up(self) -> bool:
        """Up where a cable is in it and neither end is shut."""
        return not self.shut and self._switch.far_end_up(self.name)

    @property
    def pfc_on(self) -> bool:
        """Whether PFC is on for any priority."""
        return self.line("priority-flow-control") == "priority-flow-control on"

    @property
    def no_drop(self) -> list[int]:
        """Priorities that pause instead of dropping."""
        return [
            priority
            for priority in range(8)
            if self.line(f"priority-flow-control priority {priority}").endswith(" no-drop")
        ]

    def counts_ecn(self, queue: int) -> bool:
        """Whether marked packets of this queue are counted."""
        block = self._block.blocks.get(f"uc-tx-queue {queue}")
        return block is not None and "random-detect ecn count" in block.lines

    def count(self, name: str, queue: int) -> int:
        """A counter of one queue."""
        return self._switch.counter(self.name, name, queue)

    def sum(self, name: str) -> int:
        """A counter over all queues and priorities."""
        return self._switch.counter_sum(self.name, name)
