"""An emulated QFX5120: active and candidate configuration, earlier ones, counters."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.site import Site
from fabric.twin.cli.modal import CliError
from fabric.twin.cli.store import Checkpoint
from fabric.twin.cli.switch import StoredSwitch
from fabric.twin.cli.terminal import serve
from fabric.twin.junos import exec_commands, show
from fabric.twin.junos.base import base_config, port_names
from fabric.twin.junos.breaks import BREAKS
from fabric.twin.junos.cli import Cli
from fabric.twin.junos.config import Config, load

if TYPE_CHECKING:
    import asyncssh

# The grammars are filled by importing their modules.
LOADED = (exec_commands, show)

KEPT = 50
# The checkpoint that a commit which nobody confirms comes back to; ``created_s`` is when.
_PENDING = "pending"


class EmulatedSwitch(StoredSwitch[Config]):
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``).

    Earlier configurations are checkpoints called ``1``, ``2``, ...; their
    descriptions are the comments of the commits after them.
    """

    breaks = BREAKS

    def __init__(
        self, name: str, folder: Path, site: Site, peers: Mapping[str, Any] | None = None
    ) -> None:
        self.ports = port_names(site, name)
        self._candidate: Config | None = None
        self._owner: Cli | None = None
        super().__init__(name, folder, site, peers)
        self._comment = ""

    def running_text(self) -> str:
        """``show configuration | display set``."""
        return self.config.text()

    def loaded(self, text: str) -> Config:
        """The configuration of this text."""
        return load(text, Config())

    def first(self) -> Config:
        """A routed Clos as it comes from a first installation."""
        return base_config(self.site, self.name)

    def has_port(self, port: str) -> bool:
        """Whether there is such a front port."""
        return port in self.ports

    def is_shut(self, port: str) -> bool:
        """Whether a port is disabled."""
        return self.config.has("interfaces", port, "disable")

    @property
    def speaks_lldp(self) -> bool:
        """Whether LLDP runs on any port."""
        return self.config.has("protocols", "lldp", "interface")

    @property
    def serial(self) -> str:
        """A serial number of Juniper's form that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest()
        return f"XH31{int(digest[:12], 16) % 10**8:08d}"

    def mac(self, of: str) -> str:
        """A MAC address that stays the same."""
        digest = hashlib.sha256(of.encode()).hexdigest()
        return f"80:ac:ac:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session; what it leaves uncommitted of its own goes with it."""
        cli = Cli(self)

        def done() -> None:
            self.close_candidate(cli)
            self.touch()

        await serve(cli, process, done)

    # --- Candidate configuration.

    @property
    def candidate(self) -> Config:
        """What the next commit makes the active configuration."""
        if self._candidate is None:
            self._candidate = self.config.copy()
        return self._candidate

    def open_candidate(self, cli: Cli, *, exclusive: bool) -> None:
        """Enter configuration mode; CliError where another session has it for itself."""
        if self._owner is not None and self._owner is not cli:
            raise CliError("configuration database locked by:\n  admin terminal pts/0")
        if exclusive:
            if self._candidate is not None and self._candidate.text() != self.config.text():
                raise CliError("configuration database modified")
            self._owner = cli
            self._candidate = None

    def close_candidate(self, cli: Cli) -> None:
        """Leave configuration mode."""
        if self._owner is cli:
            self._owner = None
            self._candidate = None

    def may_change(self, cli: Cli) -> None:
        """CliError where another session has the candidate for itself."""
        if self._owner is not None and self._owner is not cli:
            raise CliError("configuration database locked by:\n  admin terminal pts/0")

    def load_candidate(self, number: int) -> None:
        """Make an earlier configuration the candidate."""
        if number == 0:
            self._candidate = self.config.copy()
            return
        held = self.checkpoints.get(str(number))
        if held is None:
            raise CliError(f"Could not open configuration rollback file {number}")
        self._candidate = load(held.text, Config())

    # --- Commits.

    @property
    def waits_for_confirmation(self) -> bool:
        """Whether the last commit comes back by itself."""
        return _PENDING in self.checkpoints

    def commit(self, comment: str, minutes: int | None) -> None:
        """Make the candidate the active configuration, for some minutes or for good."""
        self.tick()
        before = self.running_text()
        pending = self.checkpoints.pop(_PENDING, None)
        if minutes is not None:
            back = before if pending is None else pending.text
            until_s = time.time() + 60 * minutes
            self.checkpoints[_PENDING] = Checkpoint(back, until_s, comment or "None")
            self._call_later(60 * minutes)
        self._activate(self.candidate.copy(), comment)

    def _activate(self, config: Config, comment: str) -> None:
        for number in range(KEPT - 1, 1, -1):
            if str(number - 1) in self.checkpoints:
                self.checkpoints[str(number)] = self.checkpoints[str(number - 1)]
        earlier = Checkpoint(self.running_text(), self.configured_at_s, self._comment or "None")
        self.checkpoints["1"] = earlier
        self._comment = comment
        self.config = config
        self._candidate = None
        self.configured()
        # What is committed is what the switch boots with.
        self.save_startup()

    def commits(self) -> Iterator[tuple[float, str, int | None]]:
        """Time, comment and minutes left of the commits, newest first."""
        held = self.checkpoints.get(_PENDING)
        left = None if held is None else max(1, round((held.created_s - time.time()) / 60))
        yield self.configured_at_s, self._comment, left
        for number in range(1, KEPT):
            earlier = self.checkpoints.get(str(number))
            if earlier is not None:
                comment = "" if earlier.description == "None" else earlier.description
                yield earlier.created_s, comment, None

    def tick(self) -> None:
        """Take back a commit that nobody has confirmed in time."""
        held = self.checkpoints.get(_PENDING)
        if held is not None and held.created_s <= time.time():
            del self.checkpoints[_PENDING]
            self._activate(load(held.text, Config()), "rolled back")

    def _call_later(self, delay_s: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        loop.call_later(delay_s + 0.01, self.tick)

    def break_(self, kind: str, port: str) -> str:
        """Inject a fault, committed as an operator would."""
        done = super().break_(kind, port)
        self._candidate = None
        self.save_startup()
        return done

    # --- State.

    def far_end_up(self, port: str) -> bool:
        """Whether a cable is in this port, and nobody has disabled its other end."""
        peer = self.peer_of(port)
        if peer is None:
            return False
        return not self.far_end_shut(peer)
