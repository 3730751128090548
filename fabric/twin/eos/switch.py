"""An emulated Arista 7050X3: its configuration and sessions, its place in the site."""

from __future__ import annotations

import asyncio
import copy
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
from fabric.twin.eos import config_global, config_ports, exec_commands, show
from fabric.twin.eos.base import base_config, empty_config
from fabric.twin.eos.breaks import BREAKS
from fabric.twin.eos.cli import Cli, load
from fabric.twin.eos.config import Config, running_config

if TYPE_CHECKING:
    import asyncssh

# The grammars are filled by importing their modules.
LOADED = (config_global, config_ports, exec_commands, show)

MAX_PENDING = 5


class EmulatedSwitch(StoredSwitch[Config]):
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``).

    A session that was committed with a timer is a checkpoint of the text before
    it; ``created_s`` is when it comes back by itself.
    """

    breaks = BREAKS

    def __init__(
        self, name: str, folder: Path, site: Site, peers: Mapping[str, Any] | None = None
    ) -> None:
        self._sessions: dict[str, Config] = {}
        super().__init__(name, folder, site, peers)

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
        return self.config.has_interface(port)

    @property
    def serial(self) -> str:
        """A serial number of Arista's form that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest()
        return f"JPE{int(digest[:12], 16) % 10**8:08d}"

    def mac(self, of: str) -> str:
        """A MAC address that stays the same."""
        digest = hashlib.sha256(f"{self.name}/{of}".encode()).hexdigest()
        return f"2c:dd:e9:{digest[:2]}:{digest[2:4]}:{digest[4:6]}"

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session; a one-shot command is carried out with privilege."""
        cli = Cli(self)
        cli.enabled = process.command is not None
        await serve(cli, process, self.touch)

    # --- Configuration sessions.

    def has_session(self, name: str) -> bool:
        """Whether a session of this name is open."""
        return name in self._sessions

    def session(self, name: str) -> Config:
        """The configuration of an open session."""
        return self._sessions[name]

    def session_states(self) -> Iterator[tuple[str, str]]:
        """Names and states of the sessions."""
        yield from ((name, "pending") for name in self._sessions)
        yield from ((name, "pendingCommit") for name in self.checkpoints)

    def open_session(self, name: str) -> str:
        """Open a session, or take one up again; its name."""
        self.tick()
        if name in self.checkpoints:
            raise CliError(f"Session {name} is waiting for its commit timer")
        name = name or f"sess--{len(self._sessions) + 1}"
        if name not in self._sessions:
            if len(self._sessions) >= MAX_PENDING:
                raise CliError("Maximum number of pending sessions has been reached")
            self._sessions[name] = copy.deepcopy(self.config)
        return name

    def commit(self, name: str, timer_s: int | None) -> None:
        """Make a session's configuration the running one, for good or with a timer."""
        self.tick()
        if name in self.checkpoints and timer_s is None:
            del self.checkpoints[name]
            self.touch()
            return
        config = self._sessions.pop(name, None)
        if config is None:
            raise CliError(f"Session {name} does not exist")
        if timer_s is not None:
            if self.checkpoints:
                self._sessions[name] = config
                raise CliError("Another session is waiting for its commit timer")
            self.checkpoints[name] = Checkpoint(self.running_text(), time.time() + timer_s)
            self._call_later(timer_s)
        self.config = config
        self.configured()

    def abort(self, name: str) -> None:
        """Forget a session, or take back what it committed with a timer."""
        held = self.checkpoints.pop(name, None)
        if held is not None:
            self.replace_config(held.text)
            self.touch()
        elif self._sessions.pop(name, None) is None:
            raise CliError(f"Session {name} does not exist")

    def delete_session(self, name: str) -> None:
        """Forget a session that is not committed."""
        if self._sessions.pop(name, None) is None:
            raise CliError(f"Session {name} does not exist")

    def tick(self) -> None:
        """Take back what was committed with a timer that has run out."""
        for name in [n for n, held in self.checkpoints.items() if held.created_s <= time.time()]:
            self.abort(name)

    def _call_later(self, delay_s: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        loop.call_later(delay_s + 0.01, self.tick)

    # --- State.

    def is_shut(self, port: str) -> bool:
        """Whether a port is shut down."""
        return "shutdown" in self.config.interface(port).lines

    def far_end_up(self, port: str) -> bool:
        """Whether a cable is in this port, and nobody has shut its other end."""
        peer = self.peer_of(port)
        if peer is None:
            return False
        return not self.far_end_shut(peer)

    def dscp_to_class(self) -> list[int]:
        """Traffic class of each DSCP."""
        classes = []
        for dscp in range(64):
            line = self.config.lines.get(f"qos map dscp {dscp}", "")
            default = config_global.default_traffic_class(dscp)
            classes.append(int(line.split()[6]) if line else default)
        return classes
