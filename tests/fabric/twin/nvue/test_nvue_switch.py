"""What the emulated NVUE takes, refuses, applies and takes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabric.counters import Counter
from fabric.devices.nvue import MODULE
from fabric.devices.registry import target_of
from fabric.site import Site
from fabric.twin.nvue import EmulatedSwitch
from fabric.twin.nvue.switch import Awaiting


def typed(leaf: EmulatedSwitch, *lines: str) -> str:
    shell = leaf.shell()
    for line in lines:
        answer = shell.execute(line)
        assert answer.accepted, answer.text
        assert not MODULE.is_error(answer.text), answer.text
    return answer.text


def refused(leaf: EmulatedSwitch, line: str) -> str:
    answer = leaf.shell().execute(line)
    assert not answer.accepted, line
    assert MODULE.is_error(answer.text)
    return answer.text


def mtu(leaf: EmulatedSwitch) -> str:
    return leaf.config.leaf("interface", "swp1", "link", "mtu")


def test_a_change_waits_until_it_is_applied_and_is_kept_when_saved(leaf: EmulatedSwitch):
    typed(leaf, "nv set interface swp1-2 link mtu 9000")
    assert mtu(leaf) == ""
    diff = typed(leaf, "nv config diff")
    assert diff == "+ nv set interface swp1 link mtu 9000\n+ nv set interface swp2 link mtu 9000\n"
    assert typed(leaf, "nv config apply -y") == "applied [rev_id: 2]\n"
    assert mtu(leaf) == "9000"
    assert "9000" not in typed(leaf, "nv config show -r startup -o json")
    assert typed(leaf, "nv config save") == "saved [rev_id: 2]\n"
    assert typed(leaf, "nv config show -r startup -o json") == typed(
        leaf, "nv config show -r applied -o json"
    )


def test_what_is_detached_is_not_applied(leaf: EmulatedSwitch):
    typed(leaf, "nv set interface swp1 link mtu 9000", "nv config detach")
    assert typed(leaf, "nv config diff") == ""


def test_what_is_not_confirmed_comes_back(leaf: EmulatedSwitch):
    before = leaf.running_text()
    typed(leaf, "nv set interface swp1 link mtu 9000", "nv config apply --confirm 10m -y")
    assert mtu(leaf) == "9000"
    assert "awaits confirmation" in refused(leaf, "nv config apply -y")
    typed(leaf, "nv config apply --confirm-no")
    assert leaf.running_text() == before
    assert "no configuration awaits" in refused(leaf, "nv config apply --confirm-no")

    typed(leaf, "nv set interface swp1 link mtu 9000", "nv config apply --confirm -y")
    assert leaf.awaiting is not None
    assert 590 < leaf.awaiting.left_s <= 600
    leaf.awaiting = Awaiting(leaf.awaiting.before, 0.0)
    typed(leaf, "nv config diff")
    assert leaf.running_text() == before

    typed(
        leaf,
        "nv set interface swp1 link mtu 9000",
        "nv config apply --confirm 30s -y",
        "nv config apply --confirm-yes",
    )
    assert mtu(leaf) == "9000"
    assert leaf.awaiting is None


def test_an_earlier_revision_can_be_applied_also_after_a_restart(
    leaf: EmulatedSwitch, nvue_site: Site, tmp_path: Path
):
    typed(leaf, "nv set interface swp1 link mtu 9000", "nv config apply -y")
    typed(leaf, "nv set interface swp1 link mtu 8000", "nv config apply -y")
    leaf.close()
    again = EmulatedSwitch("leaf1", tmp_path / "leaf1", nvue_site)
    assert mtu(again) == "8000"
    assert typed(again, "nv config history").split()[0] == "3"
    typed(again, "nv config apply 2 -y")
    assert mtu(again) == "9000"
    assert "Unknown revision 77" in refused(again, "nv config apply 77 -y")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nv", "Invalid Command"),
        ("nv frobnicate", "Invalid Command: frobnicate"),
        ("nv config frobnicate", "Invalid Command: config frobnicate"),
        ("nv config show -o xml", "invalid choice: 'xml'"),
        ("nv show frobnicate -o json", "Invalid Command: show frobnicate"),
        ("nv show interface swp99 counters qos -o json", "does not exist: interface swp99"),
        ("nv set", "Invalid Command: set"),
        ("nv set qos nonsense", "'nonsense' is not one of"),
        ("nv set interface swp1 link mtu", "mtu: a value is required"),
        ("nv set interface swp1 link mtu 9217", "'9217' is not an integer of 552..9216"),
        ("nv set interface swp99 link mtu 9000", "swp99 is not a port of this switch"),
        ("nv set qos pfc p tx on", "'on' is not one of ['enable', 'disable']"),
        ("nv set qos mapping m trust dscp", "'dscp' is not one of"),
        ("nv set qos mapping m dscp 64 switch-priority 0", "'64' is not an integer of 0..63"),
        ("nv set qos egress-queue-mapping other switch-priority 0", "'other' is not one of"),
        ("nv set qos egress-scheduler s traffic-class 0 bw-percent 0", "is not an integer of 1"),
        ("nv set qos pfc p switch-priority", "a name is required"),
        ("nv unset interface swp1 link mtu 9000", "is not expected behind mtu"),
        ("lldpctl -f json", "Permission denied"),
        ("net add interface swp1", "-bash: net: command not found"),
    ],
)
def test_what_is_wrong_is_refused(leaf: EmulatedSwitch, line: str, says: str):
    answer = leaf.shell().execute(line)
    assert not answer.accepted
    assert says in answer.text
    assert typed(leaf, "nv config diff") == ""


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["nv set interface swp1 qos pfc profile none"], "there is no qos pfc profile none"),
        (
            ["nv set qos pfc p switch-priority 3", "nv set interface swp1 qos pfc profile p"],
            "no memory in a lossless traffic-pool",
        ),
        (["nv set interface swp1 qos pfc-watchdog"], "pfc-watchdog needs pfc"),
        (
            ["nv set qos egress-scheduler s traffic-class 0,1,2 bw-percent 40"],
            "adds up to more than 100",
        ),
        (
            ["nv set qos congestion-control c traffic-class 3 min-threshold 2000000"],
            "min-threshold is above max-threshold",
        ),
        (
            ["nv set qos traffic-pool default-lossless memory-percent 50"],
            "memory-percent adds up to more than 100",
        ),
    ],
)
def test_what_does_not_go_together_is_not_applied(
    leaf: EmulatedSwitch, lines: list[str], says: str
):
    before = leaf.running_text()
    typed(leaf, *lines)
    answer = refused(leaf, "nv config apply -y")
    assert answer.startswith("Invalid config [rev_id: ")
    assert says in answer
    assert leaf.running_text() == before


def test_shows_are_read_by_the_module(leaf: EmulatedSwitch):
    counters = [
        Counter("leaf1", "swp1", "rx_packets", 1_234_567),
        Counter("leaf1", "swp1", "rx_discards", 5),
        Counter("leaf1", "swp1", "tx_queue_packets", 1000, 3),
        Counter("leaf1", "swp1", "tx_queue_bytes", 4_000_000, 3),
        Counter("leaf1", "swp1", "queue_drops", 7, 0),
        Counter("leaf1", "swp1", "ecn_marked_packets", 9, 3),
        Counter("leaf1", "swp1", "rx_pause_frames", 11, 3),
        Counter("leaf1", "swp1", "rx_pause_us", 1100, 3),
        Counter("leaf1", "swp1", "tx_pause_frames", 12, 3),
        Counter("leaf1", "swp1", "rx_prio_discards", 13, 3),
        Counter("leaf1", "swp1", "watchdog_storms", 2, 3),
    ]
    leaf.add_counters(counters)
    target = target_of(leaf.site, "leaf1")
    answers = {command: typed(leaf, command) for command in MODULE.counter_commands(target)}
    found = MODULE.read_counters(target, answers, 1.0)
    values = {(c.port, c.name, c.priority): c.value for c in found.counters}
    for counter in counters:
        assert values[counter.port, counter.name, counter.priority] == counter.value
    assert not any("does not show" in line for line in found.missing)


def test_links_and_neighbours(switches: dict[str, EmulatedSwitch]):
    leaf, spine = switches["leaf1"], switches["spine1"]
    assert "spine1" in typed(leaf, "sudo lldpctl -f json")
    typed(leaf, "nv set interface swp49 link state down", "nv config apply -y")
    assert not spine.link_up("swp1")
    assert "leaf1" not in typed(spine, "sudo lldpctl -f json")
    # A lone neighbour is no list.
    interfaces = json.loads(typed(spine, "sudo lldpctl -f json"))["lldp"]["interface"]
    assert isinstance(interfaces, dict)


def test_what_people_read(leaf: EmulatedSwitch):
    assert leaf.shell().prompt == "cumulus@leaf1:mgmt:~$ "
    assert "nv set interface swp1 type swp\n" in typed(leaf, "nv config show -o commands")
    assert "hostname: leaf1" in typed(leaf, "nv config show")
    assert "build: Cumulus Linux" in typed(leaf, "nv show system")


@pytest.mark.parametrize("kind", ["pfc-off", "mtu", "ecn-off"])
def test_faults_before_provisioning(leaf: EmulatedSwitch, kind: str):
    if kind == "ecn-off":
        with pytest.raises(ValueError, match="nothing to switch off"):
            leaf.break_(kind, "")
        return
    assert leaf.break_(kind, "swp1").startswith("leaf1: ")
    with pytest.raises(ValueError, match="no cabled port"):
        leaf.break_(kind, "swp40")
