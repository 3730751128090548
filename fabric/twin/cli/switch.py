"""What every emulated switch has: a folder, counters, a place in the site."""

from __future__ import annotations

import asyncio
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from fabric.counters import Counter
from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.cli.store import CounterKey, Stored, read_stored, write_stored

Config = TypeVar("Config")

# Writing takes longer than a line of configuration: not after each of them.
SAVE_DELAY_S = 0.5


class StoredSwitch(ABC, Generic[Config]):
    """A switch of the twin whose state lies in its folder.

    ``peers`` are the twin's devices by name: what a port negotiates depends on
    the switch at the other end of its cable. Subclasses say how a configuration
    is printed (``running_text``), loaded (``loaded``) and begins (``first``), and
    which faults there are (``breaks``).
    """

    login_required = False
    user = "admin"
    breaks: Mapping[str, Callable[[Any, str], str]]

    def __init__(
        self, name: str, folder: Path, site: Site, peers: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self.folder = folder
        self.site = site
        self.peers: Mapping[str, Any] = {} if peers is None else peers
        self.model = site.switch(name).model
        self._pending: asyncio.TimerHandle | None = None
        stored = read_stored(folder)
        if stored is None:
            self.config = self.first()
            text = self.running_text()
            now = time.time()
            stored = Stored(text, text, configured_at_s=now, saved_at_s=now, booted_at_s=now)
        else:
            self.config = self.loaded(stored.running)
        self._stored = stored
        self.save()

    @abstractmethod
    def running_text(self) -> str:
        """The running configuration as text that ``loaded`` takes."""

    @abstractmethod
    def loaded(self, text: str) -> Config:
        """The configuration of this text."""

    @abstractmethod
    def first(self) -> Config:
        """The configuration of a new switch."""

    @abstractmethod
    def has_port(self, port: str) -> bool:
        """Whether the switch has an interface of this name."""

    @property
    def speaks_lldp(self) -> bool:
        """Whether its neighbours hear of it."""
        return True

    def is_shut(self, port: str) -> bool:  # noqa: ARG002 - a subclass knows
        """Whether a port is administratively down, which its neighbour sees."""
        return False

    def far_end_shut(self, peer: PortRef) -> bool:
        """Whether the device at the far end of a cable has shut its port."""
        other = self.peers.get(peer.device)
        return other is not None and bool(other.is_shut(peer.port))

    def heard_on(self, port: str) -> PortRef | None:
        """The far end of a port's cable, unless it is a switch that does not speak LLDP."""
        peer = self.peer_of(port)
        other = self.peers.get(peer.device) if peer else None
        return None if isinstance(other, StoredSwitch) and not other.speaks_lldp else peer

    @property
    def startup(self) -> str:
        """The configuration that the switch boots with."""
        return self._stored.startup

    @property
    def saved_at_s(self) -> float:
        """When the startup configuration was written."""
        return self._stored.saved_at_s

    @property
    def configured_at_s(self) -> float:
        """When the running configuration last changed."""
        return self._stored.configured_at_s

    @property
    def booted_at_s(self) -> float:
        """When the switch booted; a restart of the twin is no boot."""
        return self._stored.booted_at_s

    @property
    def boot_id(self) -> str:
        """What a Linux kernel drew when it booted."""
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}/{self.booted_at_s!r}"))

    @property
    def checkpoints(self) -> dict[str, Any]:
        """Snapshots of the running configuration by name."""
        return self._stored.checkpoints

    def configured(self) -> None:
        """The running configuration may have changed."""
        text = self.running_text()
        if text != self._stored.running:
            self._stored.running = text
            self._stored.configured_at_s = time.time()
            self.touch()

    def touch(self) -> None:
        """Write to disk soon; at once where no event loop runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.save()
            return
        if self._pending is None:
            self._pending = loop.call_later(SAVE_DELAY_S, self.save)

    def save(self) -> None:
        """Write configuration, checkpoints and counters."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._stored.running = self.running_text()
        write_stored(self.folder, self._stored)

    def close(self) -> None:
        """A switch runs nothing of its own: write what is pending."""
        self.save()

    def save_startup(self) -> None:
        """Make the running configuration the one that the switch boots with.

        On disk before the switch says so: what it said it keeps outlives a twin that is killed.
        """
        self._stored.startup = self.running_text()
        self._stored.saved_at_s = time.time()
        self.save()

    def replace_config(self, text: str) -> None:
        """Make this text the running configuration."""
        self.config = self.loaded(text)
        self.configured()

    def add_counters(self, deltas: Sequence[Counter]) -> None:
        """Add what traffic did; KeyError for a port that the switch does not have."""
        for delta in deltas:
            if not self.has_port(delta.port):
                raise KeyError(f"{self.name} has no port {delta.port}")
        for delta in deltas:
            key: CounterKey = (delta.port, delta.name, delta.priority)
            self._stored.counters[key] = self._stored.counters.get(key, 0) + delta.value
        self.touch()

    def counter(self, port: str, name: str, priority: int | None = None) -> int:
        """One counter's value."""
        return self._stored.counters.get((port, name, priority), 0)

    def counter_sum(self, port: str, name: str) -> int:
        """A counter over all priorities."""
        return sum(
            value
            for (counted, what, _), value in self._stored.counters.items()
            if counted == port and what == name
        )

    def clear_counters(self, ports: Sequence[str] = ()) -> None:
        """Forget the counters of these ports, or of all."""
        kept = {k: v for k, v in self._stored.counters.items() if ports and k[0] not in ports}
        self._stored.counters = kept
        self.touch()

    def reboot(self) -> None:
        """Come up with the saved configuration, nothing counted and nothing pending."""
        self._stored.booted_at_s = time.time()
        self.clear_counters()
        self.replace_config(self.startup)
        self.save()

    def break_(self, kind: str, port: str) -> str:
        """Inject a fault; ValueError for a kind or port that this switch does not know."""
        if kind == "reboot":
            self.reboot()
            return f"{self.name} rebooted: it runs what was saved, its counters are at zero"
        if kind not in self.breaks:
            known = ", ".join((*self.breaks, "reboot"))
            raise ValueError(f"{kind} is no fault of a switch; there are: {known}")
        if port and PortRef(self.name, port) not in self.site.topology.link_of:
            raise ValueError(f"{self.name} has no cabled port {port}")
        done = self.breaks[kind](self.config, port)
        self.configured()
        return f"{self.name}: {done}"

    def peer_of(self, port: str) -> PortRef | None:
        """The port at the other end of a port's cable."""
        ref = PortRef(self.name, port)
        return self.site.topology.peer(ref) if ref in self.site.topology.link_of else None

    def speed_bps(self, port: str) -> int:
        """Speed of a port's cable; 1 Gb/s for what has none."""
        link = self.site.topology.link_of.get(PortRef(self.name, port))
        return 10**9 if link is None else link.speed_bps
