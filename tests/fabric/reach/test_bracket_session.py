"""Sessions on switches whose prompts stand in brackets, over real SSH."""

from __future__ import annotations

import time

import pytest

from fabric.devices.cloudengine import MODULE as VRP
from fabric.devices.comware import MODULE as COMWARE
from fabric.errors import RejectedError
from fabric.reach.access import Access
from fabric.reach.switchssh import RefusedLineError, close_switches, switch_session
from tests.fabric.ssh_servers import SshServers


class Cli:
    """A command line that knows views, and refuses lines with ``bogus``."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.lines: list[str] = []
        self.view = ""

    def prompt(self) -> str:
        if not self.view:
            return "<leaf-1>"
        view = "" if self.view == "system" else f"-{self.view}"
        return f"[{self.mark}leaf-1{view}]"

    def answer(self, line: str) -> str:
        if line == "system-view":
            self.view = "system"
        elif line == "return":
            self.view = ""
        elif line.startswith("interface "):
            self.view = line.split()[1]
        elif "bogus" in line:
            return "        ^\r\nError: Unrecognized command found at '^' position.\r\n"
        elif line == "display version":
            return "Version 8.191\r\n"
        elif line == "display many":
            return "".join(f"line {number} <x> [y]\r\n" for number in range(500))
        self.lines.append(line)
        return ""

    async def serve(self, process) -> None:
        process.stdout.write(f"\r\nInfo: Welcome.\r\n{self.prompt()}")
        async for line in process.stdin:
            process.stdout.write(self.answer(line.strip()) + self.prompt())
        process.exit(0)


@pytest.fixture
def servers(tmp_path):
    running = SshServers(tmp_path)
    yield running
    close_switches()
    running.close()


def session_on(servers: SshServers, cli: Cli, module):
    servers.add("leaf-1", cli.serve)
    access = Access(
        "127.0.0.1", servers.ports["leaf-1"], "admin", servers.known_hosts, servers.key_file
    )
    return switch_session("leaf-1", access, module.netmiko_type)


@pytest.mark.parametrize(("module", "mark"), [(VRP, "~"), (VRP, "*"), (COMWARE, "")])
def test_shows_and_configures(servers, module, mark):
    cli = Cli(mark)
    with session_on(servers, cli, module) as session:
        shown = session.show("display many")
        assert shown.splitlines()[-1] == "line 499 <x> [y]"
        assert len(shown.splitlines()) == 500
        lines = ("interface 25GE1/0/1", "  trust dscp", "qos queue 3 ecn")
        net = module.safety_net("run-1")
        session.configure(lines, module.is_error, edit=net.edit)
    sent = [*(line.strip() for line in lines), *net.edit.apply, "return"]
    assert cli.lines[-len(sent) :] == sent
    assert cli.view == ""


def test_no_line_waits_longer_than_for_its_prompt(servers, monkeypatch):
    with session_on(servers, Cli(""), COMWARE) as session:
        slept = []
        monkeypatch.setattr(time, "sleep", slept.append)
        session.configure(("qos trust dscp",) * 50, COMWARE.is_error)
    assert slept == []


def test_a_refused_line_discards_and_leaves(servers):
    cli = Cli("*")
    with session_on(servers, cli, VRP) as session:
        net = VRP.safety_net("run-1")
        lines = ("interface 25GE1/0/1", "qos bogus", "trust dscp")
        with pytest.raises(RefusedLineError, match="Unrecognized command") as refused:
            session.configure(lines, VRP.is_error, edit=net.edit)
        assert refused.value.sent == 1
        assert session.show("display version") == "Version 8.191"
    assert "clear configuration candidate" in cli.lines
    assert "trust dscp" not in cli.lines
    assert "commit trial 600" not in cli.lines


def test_a_switch_that_lets_nobody_configure(servers):
    cli = Cli("")
    cli.answer = lambda line: "Error: bogus\r\n" if line == "system-view" else "Version 7\r\n"
    with pytest.raises(RejectedError, match="system-view"), session_on(servers, cli, COMWARE) as s:
        s.configure(("qos trust dscp",), COMWARE.is_error)
