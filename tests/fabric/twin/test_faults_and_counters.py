"""What goes over the control channel: counters that traffic moved, and faults."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fabric.counters import Counter
from fabric.errors import InputError, ToolError
from fabric.reach.access import twin_inventory_path
from fabric.reach.collect import read_states
from fabric.sim.api import Flow, SimOptions
from fabric.site import Site
from fabric.topology import ClosShape, PortRef
from fabric.twin.control import ask, post_counters
from fabric.twin.faults import FAULTS, place
from fabric.twin.lifecycle import break_fabric, down, up
from fabric.twin.nxos.breaks import BREAKS
from fabric.twin.traffic import carry
from tests.fabric.twin.clients import ssh
from tests.sites import make_site


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = make_site(tmp_path_factory.mktemp("twin"), ClosShape(hosts=2, leaves=2, spines=1))
    up(site)
    yield site
    down(site.path)


def pause_frames(site: Site) -> list[str]:
    text = ssh(site, "leaf1", "show interface e1/1 priority-flow-control").stdout
    return text.split()[-2:]


def test_posted_counters_show_on_switches_and_hosts(twin: Site):
    before = int(pause_frames(twin)[0])
    moved = [
        Counter("leaf1", "Ethernet1/1", "rx_pause_frames", 5, 3),
        Counter("leaf1", "Ethernet1/1", "rx_pause_frames", 2, 4),
        Counter("host1", "ens1f0", "tx_pause_frames", 7, 3),
        Counter("host1", "ens1f0", "rx_packets", 11),
    ]
    assert post_counters(twin, moved) == 4
    assert int(pause_frames(twin)[0]) == before + 7
    assert "rx_packets_phy: 11" in ssh(twin, "host1", "ethtool -S ens1f0").stdout


@pytest.mark.parametrize(
    ("device", "port", "says"),
    [("leaf9", "Ethernet1/1", "leaf9"), ("leaf1", "Ethernet1/30", "no cabled port")],
)
def test_counters_of_an_unknown_place_are_refused_as_a_whole(twin: Site, device, port, says):
    before = pause_frames(twin)
    good = Counter("leaf1", "Ethernet1/1", "rx_pause_frames", 5, 3)
    with pytest.raises(InputError, match=says):
        post_counters(twin, [good, replace(good, device=device, port=port)])
    assert pause_frames(twin) == before


def test_the_control_channel_wants_its_token(twin: Site):
    control = json.loads(twin_inventory_path(twin).read_text())["control"]
    for line in (b'{"operation": "stop", "token": "guess"}\n', b"nonsense\n", b"[]\n"):
        with socket.create_connection(("127.0.0.1", control["port"]), timeout=5) as connection:
            connection.sendall(line)
            assert "error" in json.loads(connection.recv(4096))
    assert ask(twin, "status")["pid"]
    with pytest.raises(InputError, match="no operation"):
        ask(twin, "dance")


def test_a_fault_is_put_on_a_leafs_host_facing_port_by_default(twin: Site):
    assert place(twin, "pfc-off", None, None) == ("leaf1", "Ethernet1/1")
    assert place(twin, "mtu", "leaf2", None) == ("leaf2", "Ethernet1/1")
    assert place(twin, "mtu", "spine1", None) == ("spine1", "Ethernet1/1")
    assert place(twin, "ecn-off", None, None) == ("leaf1", "")
    assert place(twin, "nic-reset", None, None) == ("host1", "ens1f0")
    assert {kind for kind, fault in FAULTS.items() if fault.device == "switch"} == set(BREAKS)


def test_breaking_says_what_was_done_where(twin: Site):
    assert break_fabric(twin, "pfc-off") == (
        "leaf1: priority flow control switched off on Ethernet1/1"
    )
    text = ssh(twin, "leaf1", "show running-config interface e1/1").stdout
    assert "priority-flow-control mode off" in text
    said = break_fabric(twin, "nic-reset", "host2")
    assert "host2" in said
    assert "ens1f0" in said
    assert "host1" in break_fabric(twin, "dscp-map")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("flood",), "There are: pfc-off, mtu, ecn-off, dscp-map, reboot, nic-reset"),
        (("mtu", "leaf9"), "no device is called 'leaf9'"),
        (("mtu", "host1"), "host1 is none"),
        (("nic-reset", "leaf1"), "leaf1 is none"),
        (("mtu", "leaf1", "Ethernet1/30"), "There are: Ethernet1/1"),
        (("ecn-off",), "nothing to switch off"),
    ],
)
def test_impossible_faults_are_bad_input(twin: Site, arguments, says):
    with pytest.raises(InputError) as caught:
        break_fabric(twin, *arguments)
    assert says in str(caught.value)


def test_traffic_moves_the_devices_own_counters(twin: Site):
    states = read_states(twin, tuple(twin.devices))
    flow = Flow(PortRef("host1", "ens1f0"), PortRef("host2", "ens1f0"), dscp=0, messages=4)
    result = carry(twin, states.states, [flow], SimOptions(duration_us=200.0))
    sent = {
        counter.value
        for counter in result.counters
        if (counter.device, counter.port, counter.name) == ("leaf1", "Ethernet1/1", "rx_packets")
    }
    text = ssh(twin, "leaf1", "show interface e1/1 | include 'input packets'").stdout
    assert {int(text.split()[0])} == sent
    assert sent != {0}


def test_without_a_twin_there_is_no_traffic_and_no_fault(tmp_path):
    site = make_site(tmp_path)
    flow = Flow(PortRef("host1", "ens1f0"), PortRef("host2", "ens1f0"), dscp=26)
    with pytest.raises(ToolError, match="is not up"):
        carry(site, {}, [flow], SimOptions(duration_us=1.0))
    with pytest.raises(ToolError, match="is not up"):
        break_fabric(site, "mtu")
    with pytest.raises(ToolError, match="is not up"):
        post_counters(site, [])


def facts_of(site: Site, ref: PortRef):
    return read_states(site, [ref.device]).states[ref.device].facts_of(ref.port)


def test_a_port_that_is_shut_has_no_carrier_at_its_other_end(twin: Site):
    nic, port = PortRef("host1", "ens1f0"), PortRef("leaf1", "Ethernet1/1")
    assert (facts_of(twin, nic).up, facts_of(twin, port).up) == (True, True)
    ssh(twin, "host1", "ip link set dev ens1f0 down")
    assert (facts_of(twin, nic).up, facts_of(twin, nic).admin_up) == (False, False)
    assert (facts_of(twin, port).up, facts_of(twin, port).admin_up) == (False, True)
    assert "host1" not in ssh(twin, "leaf1", "show lldp neighbors").stdout
    ssh(twin, "host1", "ip link set dev ens1f0 up")
    ssh(twin, "leaf1", "configure terminal ; interface Ethernet1/1 ; shutdown")
    assert (facts_of(twin, port).up, facts_of(twin, port).admin_up) == (False, False)
    shown = facts_of(twin, nic)
    assert (shown.up, shown.admin_up, shown.speed_bps) == (False, True, None)
    said = ssh(twin, "host1", "cat /sys/class/net/ens1f0/carrier; ip link show dev ens1f0").stdout
    assert said.startswith("0\n")
    assert "<NO-CARRIER,BROADCAST,MULTICAST,UP>" in said
    assert "Link detected: no" in ssh(twin, "host1", "ethtool ens1f0").stdout
    ssh(twin, "leaf1", "configure terminal ; interface Ethernet1/1 ; no shutdown")
    assert (facts_of(twin, nic).up, facts_of(twin, port).up) == (True, True)


def test_traffic_over_a_shut_port_moves_no_counter(twin: Site):
    first, second = twin.topology.endpoints
    ssh(twin, "host1", "ip link set dev ens1f0 down")
    states = read_states(twin).states
    result = carry(twin, states, [Flow(first, second, 26)], SimOptions(100))
    assert result.goodput_bps[0] == 0
    assert not any(counter.name == "tx_packets" for counter in result.counters)
    assert any("host1:ens1f0 is shut" in note for note in result.notes)
    ssh(twin, "host1", "ip link set dev ens1f0 up")
    again = carry(twin, read_states(twin).states, [Flow(first, second, 26)], SimOptions(100))
    assert again.goodput_bps[0] > 0
