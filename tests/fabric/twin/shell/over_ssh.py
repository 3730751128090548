"""Sites of ``environment: site`` whose switches are emulated shells on loopback SSH."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.devices.registry import module_of
from fabric.provisioning.outcome import Outcome
from fabric.provisioning.plan import DevicePlan, make_plan
from fabric.provisioning.switchapply import apply_to_switch
from fabric.reach.access import access_to
from fabric.reach.collect import States, read_states
from fabric.reach.switchssh import close_switches
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.shell.session import Answer, Shell
from tests.fabric.ssh_servers import SshServers, ssh_servers

RUN = "20261201-0412-ab12"


@dataclass
class ShellSite:
    """The site, its servers and its switches' insides."""

    site: Site
    servers: SshServers
    switches: dict[str, Any]

    def read(self) -> States:
        return read_states(self.site, tuple(self.switches))

    def order(self, name: str = "leaf1") -> DevicePlan:
        return make_plan(self.site, self.read()).devices[name]

    def apply(self, order: DevicePlan, *, check: bool = False) -> Outcome:
        name = order.device
        module = module_of(self.site, name)
        return apply_to_switch(order, access_to(self.site, name), module, RUN, check=check)


@contextlib.contextmanager
def shell_site(folder: Path, monkeypatch, switch_os: str, switch_class: Any) -> Iterator[ShellSite]:
    """Switches that stand as they do after a first installation."""
    path = folder / "fabric.yaml"
    shape = ClosShape(2, 2, 1)
    text = starter_yaml(shape, site="test", environment="site", switch_os=[switch_os])
    path.write_text(text)
    site = load_site(path)
    with ssh_servers(folder) as servers:
        switches: dict[str, Any] = {}
        for name in site.topology.switches:

            async def build(name: str = name) -> Any:
                return switch_class(name, folder / "devices" / name, site, switches)

            switches[name] = servers.call(build())
            port = servers.add(name, switches[name].serve)
            mgmt = f"mgmt: {{address: 127.0.0.1, port: {port}, user: {switches[name].user}}}"
            kind = f"  {name}:\n    kind: switch\n"
            text = text.replace(kind, f"{kind}    {mgmt}\n")
        path.write_text(text)
        monkeypatch.setenv("PAISOAR_KNOWN_HOSTS", str(servers.known_hosts))
        monkeypatch.setenv("PAISOAR_SWITCH_KEY", str(servers.key_file))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        try:
            yield ShellSite(load_site(path), servers, switches)
        finally:
            close_switches()


def meddle(monkeypatch, change: Callable[[str, Callable[[str], Answer]], Answer]) -> None:
    """Let ``change(line, execute)`` answer the lines typed over SSH."""
    original = Shell.execute

    def execute(self: Shell, line: str, *, interactive: bool = False) -> Answer:
        return change(line, lambda text: original(self, text, interactive=interactive))

    monkeypatch.setattr(Shell, "execute", execute)
    close_switches()
