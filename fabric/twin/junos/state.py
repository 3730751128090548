"""What an emulated port does, by the active configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.topology import PortRef
from fabric.twin.junos.config import COS

if TYPE_CHECKING:
    from fabric.twin.junos.switch import EmulatedSwitch

DEFAULT_CLASSES = {0: "best-effort", 3: "fcoe", 4: "no-loss", 7: "network-control"}


class Port:
    """A view of one port of a switch."""

    def __init__(self, switch: EmulatedSwitch, name: str) -> None:
        self.name = name
        self._switch = switch
        self._config = switch.config

    @property
    def description(self) -> str:
        """What somebody wrote about the port."""
        return self._config.value("interfaces", self.name, "description").strip('"')

    @property
    def mtu(self) -> int:
        """Bytes with the Ethernet header."""
        return int(self._config.value("interfaces", self.name, "mtu") or 1514)

    @property
    def disabled(self) -> bool:
        """Administratively down."""
        return self._switch.is_shut(self.name)

    @property
    def link_pause(self) -> bool:
        """Whether link-level flow control is on."""
        return self._config.has("interfaces", self.name, "ether-options", "flow-control")

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
        return self._switch.mac(f"{self._switch.name}/{self.name}")

    @property
    def up(self) -> bool:
        """Up where a cable is in it and neither end is disabled."""
        return not self.disabled and self._switch.far_end_up(self.name)

    @property
    def queues(self) -> dict[int, str]:
        """Number of each queue in use and the classes in it."""
        found: dict[int, str] = {}
        for name, *rest in self._config.under(COS, "forwarding-classes", "class"):
            if rest[:1] == ["queue-num"]:
                queue = int(rest[1])
                found[queue] = f"{found[queue]} {name}" if queue in found else name
        return dict(sorted(found.items())) or DEFAULT_CLASSES

    def count(self, name: str, queue: int) -> int:
        """A counter of one queue or priority."""
        return self._switch.counter(self.name, name, queue)

    def sum(self, name: str) -> int:
        """A counter over all queues and priorities."""
        return self._switch.counter_sum(self.name, name)
