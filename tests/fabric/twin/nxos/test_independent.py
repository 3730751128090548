"""Our NX-OS module against the emulator: two readings of the same documentation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabric.devices.base import Change, DeviceModule, Target
from fabric.devices.registry import module_of, target_of
from fabric.intended import intended_qos
from fabric.qos import PortQos
from fabric.site import Site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console


def outputs(module: DeviceModule, target: Target, console: Console) -> dict[str, str]:
    return {command: console.type(command) for command in module.read_commands(target)}


def without_restore_time(port: PortQos) -> PortQos:
    """NX-OS restores a queue when the storm ends: a restore time is nothing it holds."""
    assert port.watchdog is not None
    return replace(port, watchdog=replace(port.watchdog, restore_ms=None))


@pytest.mark.parametrize("name", ["leaf1", "spine1"])
def test_every_command_of_a_change_is_taken_read_back_and_undone(
    site: Site, switches: dict[str, EmulatedSwitch], name: str
):
    module, target, wanted = module_of(site, name), target_of(site, name), intended_qos(site, name)
    console = Console(switches[name])
    before = console.running()
    change = module.change(target, outputs(module, target, console), wanted)
    assert not change.empty
    console.type("configure terminal", *change.commands, "end")
    state = module.read(target, outputs(module, target, console))
    for port in wanted.ports:
        held = state.port(port.name)
        assert held is not None
        assert without_restore_time(held) == without_restore_time(port)
    assert module.change(target, outputs(module, target, console), wanted) == Change()
    console.type("configure terminal", *change.rollback, "end")
    assert console.running() == before


def test_the_vendors_safety_net_holds(site: Site, leaf: EmulatedSwitch, console: Console):
    module, target = module_of(site, "leaf1"), target_of(site, "leaf1")
    before, net = console.running(), module.safety_net("run-1")
    console.type(*net.prepare)
    change = module.change(target, outputs(module, target, console), intended_qos(site, "leaf1"))
    console.type("configure terminal", *change.commands, "end", *net.undo)
    assert console.running() == before
    console.type(*net.save)
    assert leaf.startup.partition("version ")[2] == before
