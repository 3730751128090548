"""An emulated Nexus 9000: its configuration, its counters, its place in the site."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fabric.twin.cli.switch import StoredSwitch
from fabric.twin.cli.terminal import serve
from fabric.twin.nxos import commands
from fabric.twin.nxos.base import base_config, empty_config
from fabric.twin.nxos.breaks import BREAKS
from fabric.twin.nxos.cli import Cli, CliError, load
from fabric.twin.nxos.config import Config
from fabric.twin.nxos.running import running_config

if TYPE_CHECKING:
    import asyncssh

assert commands.LOADED  # the grammars are filled by importing their modules


class EmulatedSwitch(StoredSwitch[Config]):
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``)."""

    breaks = BREAKS

    def running_text(self) -> str:
        """``show running-config`` without its header."""
        return running_config(self.config)

    def loaded(self, text: str) -> Config:
        """The configuration of this text."""
        return load(text, empty_config(self.site, self.name))

    def first(self) -> Config:
        """A routed Clos as it comes from a first installation."""
        return base_config(self.site, self.name)

    def has_port(self, port: str) -> bool:
        """Whether there is such an interface."""
        return port in self.config.interfaces

    @property
    def serial(self) -> str:
        """A serial number of Cisco's form that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest().upper()
        return f"FDO{int(digest[:8], 16) % 9000 + 1000}{digest[8:12]}"

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session."""
        await serve(Cli(self), process, self.touch)

    def known_interface(self, name: str) -> str:
        """The name itself; CliError where there is no such interface."""
        if name not in self.config.interfaces:
            raise CliError(f"interface {name} does not exist")
        return name

    @property
    def speaks_lldp(self) -> bool:
        """Only with ``feature lldp``."""
        return "lldp" in self.config.features

    def is_shut(self, port: str) -> bool:
        """Whether a port is shut, by its own setting or its mode's default."""
        return self.config.interfaces[port].is_shut

    def link_up(self, port: str) -> bool:
        """Up where neither end is shut and, for an Ethernet port, a cable is in it."""
        if self.config.interfaces[port].is_shut:
            return False
        if port.startswith("port-channel"):
            return any(self.link_up(member) for member in self.config.members(port))
        if not port.startswith("Ethernet"):
            return True
        peer = self.peer_of(port)
        if peer is None:
            return False
        return not self.far_end_shut(peer)

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
        both = self.speaks_lldp and other.speaks_lldp
        ours = self.config.pause_cos()
        return both and speaks and bool(ours) and set(ours) == set(other.config.pause_cos())
