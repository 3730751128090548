"""Sites of ``environment: site`` whose switches are emulated ones on loopback SSH."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabric.reach.access import Access, access_to
from fabric.reach.collect import States, read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.site import Site, load_site
from fabric.topology import ClosShape
from fabric.twin.nxos.cli import Answer, Cli
from fabric.twin.nxos.switch import EmulatedSwitch
from tests.fabric.ssh_servers import SshServers, shell, ssh_servers
from tests.sites import write_site


@dataclass
class SwitchSite:
    """The site, its servers and its switches' insides."""

    site: Site
    servers: SshServers
    switches: dict[str, EmulatedSwitch]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.switches)

    def read(self) -> States:
        return read_states(self.site, self.names)

    def access(self, name: str) -> Access:
        return access_to(self.site, name)

    def running(self, name: str) -> str:
        """The running configuration, without the lines that carry a time."""
        text = self.execute(name, "show running-config")
        return "\n".join(line for line in text.splitlines() if not line.startswith("!"))

    def execute(self, name: str, *lines: str) -> str:
        """Type these lines on the switch's console; the last one's answer."""

        async def typed() -> str:
            cli = Cli(self.switches[name])
            return [cli.execute(line).text for line in lines][-1]

        return self.servers.call(typed())


@contextlib.contextmanager
def switch_site(
    folder: Path,
    monkeypatch,
    shape: ClosShape | None = None,
    *,
    password: str | None = None,
    hosts: bool = False,
) -> Iterator[SwitchSite]:
    """Switches that stand in factory state; ``hosts`` are plain shells where asked for."""
    path = write_site(folder, shape or ClosShape(2, 2, 1), environment="site")
    site = load_site(path)
    with ssh_servers(folder, password) as servers:
        text = path.read_text()
        switches = {}
        for name in site.topology.switches:

            async def build(name: str = name) -> EmulatedSwitch:
                return EmulatedSwitch(name, folder / "devices" / name, site)

            switches[name] = servers.call(build())
            port = servers.add(name, switches[name].serve)
            text = text.replace(
                f"  {name}:\n    kind: switch\n",
                f"  {name}:\n    kind: switch\n"
                f"    mgmt: {{address: 127.0.0.1, port: {port}, user: admin}}\n",
            )
        for name in site.topology.hosts if hosts else ():
            port = servers.add(name, shell)
            text = text.replace(
                f"  {name}:\n    kind: host\n",
                f"  {name}:\n    kind: host\n"
                f"    mgmt: {{address: 127.0.0.1, port: {port}, user: root}}\n",
            )
        path.write_text(text)
        monkeypatch.setenv("PAISOAR_KNOWN_HOSTS", str(servers.known_hosts))
        for kind in ("SWITCH", "HOST"):
            if password is None:
                monkeypatch.setenv(f"PAISOAR_{kind}_KEY", str(servers.key_file))
            else:
                monkeypatch.setenv(f"PAISOAR_{kind}_PASSWORD", password)
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        try:
            yield SwitchSite(load_site(path), servers, switches)
        finally:
            close_switches()
            close_hosts()


def meddle(monkeypatch, name: str, change) -> None:
    """Let ``change(cli, line, execute)`` answer the lines typed into this switch over SSH."""

    class Meddled(Cli):
        def execute(self, line: str, *, interactive: bool = False) -> Answer:
            def execute(text: str) -> Answer:
                return super(Meddled, self).execute(text, interactive=interactive)

            if self.config.hostname != name:
                return execute(line)
            return change(self, line, execute)

    monkeypatch.setattr("fabric.twin.nxos.switch.Cli", Meddled)
    # A session that is kept from before has its own Cli already.
    close_switches()


def refusing(text: str):
    """For :func:`meddle`: lines with this text are refused, as on an older release."""

    def change(_cli, line, execute):
        return execute("nonsense" if text in line and not line.startswith("no ") else line)

    return change


def deaf_to(text: str):
    """For :func:`meddle`: lines with this text are taken and do nothing."""
    return lambda _cli, line, execute: Answer() if text in line else execute(line)
