"""An emulated Cumulus switch: its revisions, its counters, its place in the site."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.twin.cli.store import Checkpoint
from fabric.twin.cli.switch import StoredSwitch
from fabric.twin.cli.terminal import serve
from fabric.twin.nvue import show
from fabric.twin.nvue.base import base_tree
from fabric.twin.nvue.breaks import BREAKS
from fabric.twin.nvue.configuration import Configuration, load
from fabric.twin.nvue.nv import NvCommand
from fabric.twin.shell.session import FAILED, Answer, Call, Program, Shell
from fabric.twin.shell.tools import BOOT_ID, tools

if TYPE_CHECKING:
    import asyncssh

MAX_REVISIONS = 100


@dataclass(frozen=True)
class Awaiting:
    """A revision that comes back unless the one applied over it is confirmed in time."""

    before: str
    until_s: float

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until_s - time.time())


class EmulatedSwitch(StoredSwitch[Configuration]):
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``)."""

    breaks = BREAKS
    user = "cumulus"
    awaiting: Awaiting | None = None
    _pending_tree: Configuration | None = None

    def running_text(self) -> str:
        """The applied configuration as JSON."""
        return self.config.to_text()

    def loaded(self, text: str) -> Configuration:
        """The configuration of this JSON."""
        return load(text)

    def first(self) -> Configuration:
        """A routed Clos as it comes from a first installation."""
        return Configuration(base_tree(self.site, self.name))

    def has_port(self, port: str) -> bool:
        """Whether there is such a front port."""
        return port in self.ports()

    def ports(self) -> list[str]:
        """Front ports, as people count them."""
        return [ref.port for ref in self.site.topology.ports_of[self.name]]

    @property
    def serial(self) -> str:
        """A serial number of Mellanox's form that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest().upper()
        return f"MT2{digest[:3]}X{int(digest[3:9], 16) % 90_000 + 10_000}"

    @property
    def pending(self) -> Configuration:
        """What would be applied; made from the applied one by the first change."""
        if self._pending_tree is None:
            self._pending_tree = self.config.copy()
        return self._pending_tree

    def detach(self) -> None:
        """Forget what is pending."""
        self._pending_tree = None

    @property
    def revision(self) -> int:
        """Number of the applied revision."""
        return max(map(int, self.checkpoints), default=1)

    def revisions(self) -> dict[str, Configuration]:
        """Configurations by revision."""
        return {
            **{number: load(held.text) for number, held in self.checkpoints.items()},
            "applied": self.config,
            "pending": self.pending,
            "startup": load(self.startup),
        }

    def apply(self, target: Configuration, confirm_s: int | None) -> None:
        """Make a configuration the applied one; with a time only until then."""
        before = self.running_text()
        self.config = target.copy()
        self.detach()
        self._number()
        if confirm_s is not None:
            self.awaiting = Awaiting(before, time.time() + confirm_s)
        self.configured()

    def _number(self) -> None:
        self.checkpoints[str(self.revision + 1)] = Checkpoint(self.running_text(), time.time())
        for number in sorted(self.checkpoints, key=int)[:-MAX_REVISIONS]:
            del self.checkpoints[number]

    def confirm(self, *, keep: bool) -> None:
        """End the wait: the applied configuration stays, or the earlier one comes back."""
        awaiting, self.awaiting = self.awaiting, None
        if awaiting is not None and not keep:
            self.apply(load(awaiting.before), None)

    def expire(self) -> None:
        """What was not confirmed in time is taken back."""
        if self.awaiting is not None and not self.awaiting.left_s:
            self.confirm(keep=False)

    def reboot(self) -> None:
        """Come up with the startup revision; nobody waits for a confirmation any more."""
        self.awaiting = None
        self.detach()
        super().reboot()

    def is_shut(self, port: str) -> bool:
        """Whether a port is administratively down."""
        return self.config.leaf("interface", port, "link", "state") == "down"

    def link_up(self, port: str) -> bool:
        """Up where a cable is in it and neither end is shut."""
        peer = self.peer_of(port)
        if peer is None or self.is_shut(port):
            return False
        return not self.far_end_shut(peer)

    def shell(self) -> Shell:
        """A new login."""
        # The management interface is in a VRF of its own.
        return Shell(self.user, lambda: self.config.hostname, self._programs(), context=":mgmt")

    def _programs(self) -> dict[str, Program]:
        return {
            **tools(
                lambda: self.config.hostname, lambda: {BOOT_ID: f"{self.boot_id}\n"}, self.user
            ),
            "lldpctl": self._lldpctl,
            "nv": NvCommand(self),
        }

    def _lldpctl(self, call: Call) -> Answer:
        if not call.root:
            return Answer("lldpctl: unable to connect to lldpd: Permission denied\n", FAILED)
        if call.arguments != ("-f", "json"):
            return Answer("Usage:   lldpctl [OPTIONS ...] [COMMAND ...]\n", FAILED)
        return Answer(json.dumps(show.lldp(self), indent=2) + "\n")

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session."""
        await serve(self.shell(), process, self.touch)
