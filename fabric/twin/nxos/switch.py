"""An emulated Nexus 9000: its configuration, its counters, its place in the site."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.counters import Counter
from fabric.site import Site
from fabric.topology import PortRef
from fabric.twin.cli.store import CounterKey, Stored, read_stored, write_stored
from fabric.twin.cli.terminal import serve
from fabric.twin.nxos import commands
from fabric.twin.nxos.base import base_config, empty_config
from fabric.twin.nxos.breaks import BREAKS
from fabric.twin.nxos.cli import Cli, CliError, load
from fabric.twin.nxos.running import running_config

if TYPE_CHECKING:
    import asyncssh

assert commands.LOADED  # the grammars are filled by importing their modules

SAVE_DELAY_S = 0.1


class EmulatedSwitch:
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``).

    ``peers`` are the twin's devices by name: what a port negotiates depends on
    the switch at the other end of its cable.
    """

    login_required = False
    user = "admin"

    def __init__(
        self, name: str, folder: Path, site: Site, peers: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self.folder = folder
        self.site = site
        self.peers: Mapping[str, Any] = {} if peers is None else peers
        self.model = site.switch(name).model
        self.booted_at_s = time.time()
        self._pending: asyncio.TimerHandle | None = None
        stored = read_stored(folder)
        if stored is None:
            self.config = base_config(site, name)
            text = running_config(self.config)
            now = self.booted_at_s
            stored = Stored(text, text, configured_at_s=now, saved_at_s=now)
        else:
            self.config = load(stored.running, empty_config(site, name))
        self._stored = stored
        self.save()

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
    def checkpoints(self) -> dict[str, Any]:
        """Snapshots of the running configuration by name."""
        return self._stored.checkpoints

    @property
    def serial(self) -> str:
        """A serial number of Cisco's form that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest().upper()
        return f"FDO{int(digest[:8], 16) % 9000 + 1000}{digest[8:12]}"

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session."""
        await serve(Cli(self), process, self.touch)

    def configured(self) -> None:
        """The running configuration may have changed."""
        text = running_config(self.config)
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
        self._stored.running = running_config(self.config)
        write_stored(self.folder, self._stored)

    def close(self) -> None:
        """A switch runs nothing of its own: write what is pending."""
        self.save()

    def save_startup(self) -> None:
        """``copy running-config startup-config``."""
        self._stored.startup = running_config(self.config)
        self._stored.saved_at_s = time.time()
        self.touch()

    def replace_config(self, text: str) -> None:
        """Make this text the running configuration."""
        self.config = load(text, empty_config(self.site, self.name))
        self.configured()

    def add_counters(self, deltas: Sequence[Counter]) -> None:
        """Add what traffic did; KeyError for a port that the switch does not have."""
        for delta in deltas:
            if delta.port not in self.config.interfaces:
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

    def break_(self, kind: str, port: str) -> str:
        """Inject a fault; ValueError for a kind or port that this switch does not know."""
        if kind not in BREAKS:
            raise ValueError(f"{kind} is no fault of a switch; there are: {', '.join(BREAKS)}")
        if port and PortRef(self.name, port) not in self.site.topology.link_of:
            raise ValueError(f"{self.name} has no cabled port {port}")
        done = BREAKS[kind](self.config, port)
        self.configured()
        return f"{self.name}: {done}"

    def known_interface(self, name: str) -> str:
        """The name itself; CliError where there is no such interface."""
        if name not in self.config.interfaces:
            raise CliError(f"interface {name} does not exist")
        return name

    def peer_of(self, port: str) -> PortRef | None:
        """The port at the other end of a port's cable."""
        ref = PortRef(self.name, port)
        return self.site.topology.peer(ref) if ref in self.site.topology.link_of else None

    def speed_bps(self, port: str) -> int:
        """Speed of a port's cable; 1 Gb/s for what has none."""
        link = self.site.topology.link_of.get(PortRef(self.name, port))
        return 10**9 if link is None else link.speed_bps

    def link_up(self, port: str) -> bool:
        """Up where neither end is shut and, for an Ethernet port, a cable is in it."""
        if self.config.interfaces[port].is_shut:
            return False
        if not port.startswith("Ethernet"):
            return True
        peer = self.peer_of(port)
        if peer is None:
            return False
        other = self.peers.get(peer.device)
        if isinstance(other, EmulatedSwitch):
            return not other.config.interfaces[peer.port].is_shut
        return True

    def pfc_operates(self, port: str) -> bool:
        """``mode on`` always; ``mode auto`` where DCBX finds a peer that agrees.

        DCBX needs LLDP on both ends, and a peer that sends PFC TLVs: a switch in
        ``auto`` or ``on send-tlv``. A NIC whose DCBX is left to the operating
        system sends none. Source: Cisco Nexus 9000 NX-OS QoS configuration
        guide, "Configuring Priority Flow Control".
        """
        settings = self.config.interfaces[port]
        if settings.pfc_mode != "auto":
            return settings.pfc_mode == "on"
        peer = self.peer_of(port)
        other = self.peers.get(peer.device) if peer else None
        if peer is None or not isinstance(other, EmulatedSwitch) or not self.link_up(port):
            return False
        theirs = other.config.interfaces[peer.port]
        speaks = theirs.pfc_mode == "auto" or theirs.pfc_send_tlv
        both = all("lldp" in config.features for config in (self.config, other.config))
        ours = self.config.pause_cos()
        return both and speaks and bool(ours) and set(ours) == set(other.config.pause_cos())
