from __future__ import annotations

from pathlib import Path

import pytest

from fabric.site import Site
from fabric.twin.nxos import EmulatedSwitch
from tests.fabric.twin.consoles import Console


def test_a_checkpoint_is_listed_shown_and_forgotten(console: Console):
    console.type("checkpoint before description a try")
    summary = console.type("show checkpoint summary")
    assert "1) before:\nCreated by admin\n" in summary
    assert "Description: a try" in summary
    assert "hostname leaf1" in console.type("show checkpoint before")
    console.type("no checkpoint before")
    assert "before" not in console.type("show checkpoint summary")
    assert console.refused("no checkpoint before").startswith("ERROR:")


@pytest.mark.parametrize("how", ["", " atomic", " best-effort", " stop-at-first-failure"])
def test_rollback_puts_everything_back(console: Console, how):
    before = console.running()
    console.type("checkpoint before")
    console.configure_roce()
    console.type("conf t", "hostname other", "end")
    text = console.type(f"rollback running-config checkpoint before{how}")
    assert "Rollback completed successfully." in text
    assert console.running() == before
    again = console.type("rollback running-config checkpoint before")
    assert "Rollback Patch is Empty" in again


def test_rollback_can_go_forward_again(console: Console):
    console.configure_roce()
    console.type("checkpoint roce")
    roce = console.running()
    console.type("conf t", "interface e1/1", "priority-flow-control mode off", "end")
    console.type("rollback running-config checkpoint roce")
    assert console.running() == roce


def test_checkpoint_names_are_unique_and_ten_at_most(console: Console):
    console.type("checkpoint a")
    assert "already exists" in console.refused("checkpoint a")
    assert "cannot be the name" in console.refused("checkpoint summ")
    for _ in range(9):
        console.type("checkpoint")
    assert "user-checkpoint-9" in console.type("show checkpoint summary")
    assert "Maximum number" in console.refused("checkpoint b")
    console.type("clear checkpoint database", "checkpoint b")


def test_rollback_to_nothing_is_an_error(console: Console):
    assert "does not exist" in console.refused("rollback running-config checkpoint none")


def test_configuration_and_checkpoints_survive_a_restart(
    console: Console, site: Site, tmp_path: Path
):
    console.configure_roce()
    console.type("checkpoint odd/name", "copy run start", "conf t", "vlan 5", "end")
    folder = tmp_path / "devices/leaf1"
    again = Console(EmulatedSwitch("leaf1", folder, site))
    assert again.running() == console.running()
    assert "vlan 1,5" in again.running()
    assert "vlan 1,5" not in again.type("show startup-config")
    again.type("rollback running-config checkpoint odd/name", "no checkpoint odd/name")
    assert not list((folder / "checkpoints").iterdir())


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_faults_change_just_their_line(console: Console, leaf: EmulatedSwitch, kind):
    console.configure_roce()
    before = console.running().splitlines()
    said = leaf.break_(kind, "Ethernet1/1" if kind != "ecn-off" else "")
    assert said.startswith("leaf1: ")
    after = console.running().splitlines()
    gone = [line.strip() for line in before if line not in after]
    assert len(gone) == 1
    assert gone[0].split()[0] == {"pfc-off": "priority-flow-control", "mtu": "mtu"}.get(
        kind, "random-detect"
    )
    come = [line.strip() for line in after if line not in before]
    assert come == (["priority-flow-control mode off"] if kind == "pfc-off" else [])


def test_an_unknown_fault_or_port_is_refused(leaf: EmulatedSwitch):
    with pytest.raises(ValueError, match="pfc-off, mtu, ecn-off"):
        leaf.break_("dscp-map", "Ethernet1/1")
    with pytest.raises(ValueError, match="no cabled port"):
        leaf.break_("mtu", "Ethernet1/40")
    with pytest.raises(ValueError, match="nothing to switch off"):
        leaf.break_("ecn-off", "")
