from __future__ import annotations

from pathlib import Path

import pytest

from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.eos import EmulatedSwitch
from fabric.twin.eos.cli import Cli


class Console:
    """A privileged session that keeps its place in the modes."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        self.switch = switch
        self.cli = Cli(switch)
        self.type("enable")

    def type(self, *lines: str) -> str:
        """Type lines that must be accepted; the last one's output."""
        text = ""
        for line in lines:
            answer = self.cli.execute(line)
            assert answer.accepted, f"{self.cli.prompt}{line}\n{answer.text}"
            text = answer.text
        return text

    def refused(self, line: str) -> str:
        """Type a line that must be refused; what the switch says."""
        answer = self.cli.execute(line)
        assert not answer.accepted, f"{self.cli.prompt}{line} was accepted"
        return answer.text.rstrip("\n")

    def running(self) -> str:
        return self.switch.running_text()

    def outputs(self, commands: tuple[str, ...]) -> dict[str, str]:
        return {command: self.type(command) for command in commands}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """4 hosts, 2 leaves, 1 spine, all of Arista."""
    path = tmp_path_factory.mktemp("eos") / "fabric.yaml"
    shape = ClosShape(4, 2, 1)
    path.write_text(starter_yaml(shape, site="test", environment="twin", switch_os=("eos",)))
    return load_site(path)


@pytest.fixture
def switches(site: Site, tmp_path: Path) -> dict[str, EmulatedSwitch]:
    """Every switch of the site, each aware of the others, none behind SSH."""
    found: dict[str, EmulatedSwitch] = {}
    for name in site.topology.switches:
        found[name] = EmulatedSwitch(name, tmp_path / "devices" / name, site, found)
    return found


@pytest.fixture
def leaf(switches: dict[str, EmulatedSwitch]) -> EmulatedSwitch:
    return switches["leaf1"]


@pytest.fixture
def console(leaf: EmulatedSwitch) -> Console:
    return Console(leaf)
