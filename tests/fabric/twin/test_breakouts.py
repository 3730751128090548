"""Cables that end at a part of a broken-out port, on every emulated system.

Names: EOS ``Ethernet50/2`` (User Manual, "QSFP+ Ethernet Port Configuration"), SONiC ports by
their first lane (``Ethernet53``; dynamic port breakout), Junos channelized ports
(``et-0/0/50:2``; Junos Interfaces User Guide, "Port Speed on QFX Switches"), NVUE
``swp50s2`` (Cumulus Linux, "Switch Port Attributes"), NX-OS ``Ethernet1/50/2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from fabric.audit import audit
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.intended import intended_qos
from fabric.saved.layout import save_outputs, save_site
from fabric.saved.offline import read_folder
from fabric.site import Site, load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from fabric.twin.switches import emulated_switch

# System: the first host's port, its part instead, and how its whole is written.
PARTS = {
    "nxos": ("Ethernet1/1", "Ethernet1/50/2", "Ethernet1/50"),
    "eos": ("Ethernet1", "Ethernet50/2", "Ethernet50"),
    "sonic": ("Ethernet0", "Ethernet53", "Ethernet52"),
    "junos": ("et-0/0/0", "et-0/0/50:2", "et-0/0/50"),
    "nvue": ("swp1", "swp50s2", "swp50"),
}
# PFC of one port off, and nothing else.
BROKEN = "pfc-off"


@dataclass
class Leaf:
    site: Site
    switch: Any

    def __post_init__(self) -> None:
        self.module = module_of(self.site, "leaf1")
        self.target = target_of(self.site, "leaf1")
        self.intended = intended_qos(self.site, "leaf1")

    def type(self, *lines: str) -> str:
        session = _session(self.switch)
        text = ""
        for line in filter(None, lines):
            if line == LEAVE:
                line = _LEAVE[self.module.os] if getattr(session, "stack", None) else ""
            answer = session.execute(line)
            assert answer.accepted, f"{line}\n{answer.text}"
            assert not self.module.is_error(answer.text), f"{line}\n{answer.text}"
            text = answer.text
        return text

    def outputs(self) -> dict[str, str]:
        commands = self.module.read_commands(self.target)
        return {
            command: self.type(_ENABLE.get(self.module.os, ""), command) for command in commands
        }

    def provision(self) -> None:
        change = self.module.change(self.target, self.outputs(), self.intended)
        net = self.module.safety_net("run-1")
        enter = net.edit.enter or _ENTER.get(self.module.os, "")
        enable = _ENABLE.get(self.module.os, "")
        done = (*change.commands, *net.edit.apply, LEAVE)
        self.type(enable, enter, *done, *net.confirm, *net.save, LEAVE)

    def findings(self) -> list[tuple[str, str]]:
        outputs = self.outputs()
        state = self.module.read(self.target, outputs)
        intended = {"leaf1": expected_qos(self.site, "leaf1")}
        report = audit(self.site, {"leaf1": state}, intended, outputs={"leaf1": outputs})
        return [(one.rule, one.port) for one in report.findings if one.rule != "unsaved"]


LEAVE = "leave configuration mode"
_LEAVE = {"nxos": "end", "eos": "end", "junos": "exit configuration-mode"}
_ENTER = {"nxos": "configure terminal"}
_ENABLE = {"eos": "enable"}


def _session(switch: Any) -> Any:
    if hasattr(switch, "shell"):
        return switch.shell()
    return import_module(f"{type(switch).__module__.removesuffix('.switch')}.cli").Cli(switch)


@pytest.fixture(params=PARTS)
def leaf(request, tmp_path) -> Leaf:
    whole, part, _ = PARTS[request.param]
    path = tmp_path / "fabric.yaml"
    text = starter_yaml(
        ClosShape(4, 2, 1), site="t", environment="twin", switch_os=(request.param,)
    )
    assert f"'leaf1:{whole}'" in text
    path.write_text(text.replace(f"'leaf1:{whole}'", f"'leaf1:{part}'"))
    site = load_site(path)
    found: dict[str, Any] = {}
    for name in site.topology.switches:
        found[name] = emulated_switch(name, tmp_path / name, site, found)
    return Leaf(site, found["leaf1"])


def test_a_part_of_a_port_is_provisioned_and_judged_like_a_whole_one(leaf):
    _, part, whole = PARTS[leaf.module.os]
    assert leaf.module.port_name(part) == part
    leaf.provision()
    assert leaf.findings() == []
    state = leaf.module.read(leaf.target, leaf.outputs())
    assert state.port(part) is not None
    assert state.facts_of(part).up is not False
    assert any(neighbor.port == part for neighbor in state.neighbors or ())
    leaf.switch.break_(BROKEN, part)
    found = leaf.findings()
    assert ("pfc", part) in found
    assert {port for _, port in found} == {part}
    assert whole not in {port.name for port in leaf.intended.ports}


def test_a_part_of_a_port_is_found_in_saved_outputs_by_its_cable(leaf, tmp_path):
    _, part, _ = PARTS[leaf.module.os]
    leaf.provision()
    folder = tmp_path / "saved"
    save_outputs(folder, {"leaf1": leaf.outputs()})
    save_site(folder, leaf.site)
    fabric = read_folder(folder)
    assert fabric.failed.keys() == leaf.site.devices.keys() - {"leaf1"}
    assert part in {port.name for port in fabric.states["leaf1"].ports}
