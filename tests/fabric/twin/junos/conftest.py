from __future__ import annotations

from pathlib import Path

import pytest

from fabric.site import Site
from fabric.twin.junos import EmulatedSwitch
from fabric.twin.junos.cli import Cli
from tests.fabric.twin import console as consoles


class Console(consoles.Console):
    """An operator's session."""

    def __init__(self, switch: EmulatedSwitch) -> None:
        super().__init__(switch, Cli(switch), "exit configuration-mode")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return consoles.site_of(tmp_path_factory.mktemp("junos"), "junos")


@pytest.fixture
def switches(site: Site, tmp_path: Path) -> dict[str, EmulatedSwitch]:
    return consoles.switches_of(EmulatedSwitch, site, tmp_path)


@pytest.fixture
def leaf(switches: dict[str, EmulatedSwitch]) -> EmulatedSwitch:
    return switches["leaf1"]


@pytest.fixture
def console(leaf: EmulatedSwitch) -> Console:
    return Console(leaf)
