from __future__ import annotations

from pathlib import Path

import pytest

from fabric.site import Site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console
from tests.sites import make_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """4 hosts, 2 leaves, 1 spine; for tests that leave the site's own folder alone."""
    return make_site(tmp_path_factory.mktemp("site"))


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
