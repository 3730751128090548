"""An emulated SONiC switch: its CONFIG_DB, its counters, its place in the site."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from fabric.twin.cli.switch import StoredSwitch
from fabric.twin.cli.terminal import serve
from fabric.twin.shell.session import FAILED, Answer, Call, Program, Shell
from fabric.twin.shell.tools import BOOT_ID, tools
from fabric.twin.sonic.base import base_config
from fabric.twin.sonic.breaks import BREAKS
from fabric.twin.sonic.configdb import ConfigDb, load
from fabric.twin.sonic.configure import ConfigCommand
from fabric.twin.sonic.dbcli import sonic_db_cli
from fabric.twin.sonic.show import ShowCommand

if TYPE_CHECKING:
    import asyncssh

SAVED = "/etc/sonic/config_db.json"


class EmulatedSwitch(StoredSwitch[ConfigDb]):
    """One switch of the twin (``fabric.twin.device.EmulatedDevice``)."""

    breaks = BREAKS

    def running_text(self) -> str:
        """CONFIG_DB as JSON."""
        return self.config.to_text()

    def loaded(self, text: str) -> ConfigDb:
        """CONFIG_DB of this JSON; the daemons find nothing changed."""
        return load(text)

    def first(self) -> ConfigDb:
        """A routed Clos with SONiC's own QoS; buffermgrd has seen PFC on every port."""
        database = load(json.dumps(base_config(self.site, self.name)))
        for port in database.table("PORT"):
            key = f"PORT_QOS_MAP|{port}"
            paused = database.rows[key].pop("pfc_enable")
            database.write(key, {"pfc_enable": paused})
        return database

    def has_port(self, port: str) -> bool:
        """Whether there is such a front port."""
        return f"PORT|{port}" in self.config.rows

    @property
    def serial(self) -> str:
        """A serial number that stays the same for this switch."""
        digest = hashlib.sha256(f"{self.site.name}/{self.name}".encode()).hexdigest().upper()
        return f"732656X{int(digest[:8], 16) % 9_000_000 + 1_000_000}"

    def alias_of(self, port: str) -> str:
        """What LLDP calls a port."""
        return self.config.get("PORT", port, "alias") or port

    def is_shut(self, port: str) -> bool:
        """Whether a port is administratively down."""
        return self.config.get("PORT", port, "admin_status") != "up"

    def link_up(self, port: str) -> bool:
        """Up where a cable is in it and neither end is shut."""
        peer = self.peer_of(port)
        if peer is None or self.is_shut(port):
            return False
        return not self.far_end_shut(peer)

    def group_of(self, port: str, priority: int) -> int:
        """The priority group in which a priority is received on a port."""
        name = self.config.get("PORT_QOS_MAP", port, "tc_to_pg_map") or ""
        return int(self.config.get("TC_TO_PRIORITY_GROUP_MAP", name, str(priority)) or priority)

    def shell(self) -> Shell:
        """A new login."""
        return Shell(self.user, lambda: self.config.hostname, self._programs())

    def _programs(self) -> dict[str, Program]:
        return {
            **tools(lambda: self.config.hostname, self._files, self.user),
            "config": ConfigCommand(self),
            "show": ShowCommand(self),
            "sonic-cfggen": self._cfggen,
            "sonic-clear": self._clear,
            "sonic-db-cli": self._db_cli,
        }

    def _files(self) -> dict[str, str]:
        return {SAVED: self.startup, BOOT_ID: f"{self.boot_id}\n"}

    def _db_cli(self, call: Call) -> Answer:
        answer = sonic_db_cli(self.config, call)
        self.configured()
        return answer

    def _cfggen(self, call: Call) -> Answer:
        if sorted(call.arguments) == ["--print-data", "-d"]:
            return Answer(self.running_text())
        return Answer(
            "usage: sonic-cfggen [-h] [-m MINIGRAPH] [-d] [--print-data]\n"
            f"sonic-cfggen: error: unrecognized arguments: {' '.join(call.arguments)}\n",
            FAILED,
        )

    def _clear(self, call: Call) -> Answer:
        if call.arguments not in (("counters",), ("queuecounters",), ("pfccounters",)):
            words = " ".join(call.arguments)
            return Answer(f'Error: No such command "{words}".\n', FAILED)
        self.clear_counters()
        return Answer("Cleared counters\n")

    async def serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Carry one SSH session."""
        await serve(self.shell(), process, self.touch)
