"""Switches of different systems at the two ends of one cable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.nxos.cli import Cli
from fabric.twin.switches import emulated_switch


def test_nxos_leaves_and_sonic_spines_see_each_other(tmp_path: Path):
    path = tmp_path / "fabric.yaml"
    shape = ClosShape(4, 2, 1)
    text = starter_yaml(shape, site="t", environment="twin", switch_os=["nxos", "sonic"])
    path.write_text(text)
    site = load_site(path)
    peers: dict[str, Any] = {}
    for name in site.topology.switches:
        peers[name] = emulated_switch(name, tmp_path / name, site, peers)
    leaf, spine = peers["leaf1"], peers["spine1"]
    assert "spine1 " in Cli(leaf).execute("show lldp neighbors").text
    assert "leaf1 " in spine.shell().execute("show lldp table").text
    spine.shell().execute("sudo config interface shutdown Ethernet0")
    assert "spine1 " not in Cli(leaf).execute("show lldp neighbors").text
    assert not leaf.link_up("Ethernet1/49")
    spine.shell().execute("sudo config interface startup Ethernet0")
    leaf.config.features.remove("lldp")
    assert not leaf.speaks_lldp
    assert "leaf1 " not in spine.shell().execute("show lldp table").text
