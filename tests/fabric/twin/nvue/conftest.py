from __future__ import annotations

from pathlib import Path

import pytest

from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.nvue import EmulatedSwitch


@pytest.fixture(scope="session")
def nvue_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    path = tmp_path_factory.mktemp("nvue") / "fabric.yaml"
    shape = ClosShape(4, 2, 1)
    path.write_text(starter_yaml(shape, site="test", environment="twin", switch_os=["nvue"]))
    return load_site(path)


@pytest.fixture
def switches(nvue_site: Site, tmp_path: Path) -> dict[str, EmulatedSwitch]:
    found: dict[str, EmulatedSwitch] = {}
    for name in nvue_site.topology.switches:
        found[name] = EmulatedSwitch(name, tmp_path / name, nvue_site, found)
    return found


@pytest.fixture
def leaf(switches: dict[str, EmulatedSwitch]) -> EmulatedSwitch:
    return switches["leaf1"]
