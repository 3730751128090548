"""What the fabric gives to rings and to parameter servers."""

from collections import Counter
from dataclasses import replace

import pytest

from fabric.devices.registry import expected_qos
from fabric.errors import InputError
from fabric.topology import ClosShape
from tests.sites import make_site
from tests.trainer.predict.clos_sites import fabric
from trainer.predict.rates import MAX_FLOWS, server_pairs
from trainer.predict.where import Wanted, clos_fabric, site_fabric

G = 1e9


def test_a_ring_gets_nearly_the_whole_nic():
    assert 24.0 * G < fabric().ring(16).bps < 25.0 * G
    assert fabric().ring(16).regime == "dcqcn"


def test_a_faster_nic_gives_more():
    assert fabric(nic="100G").ring(16).bps == pytest.approx(4 * fabric().ring(16).bps, rel=0.01)


def test_speeds_without_thresholds_in_a_new_site_work_too():
    assert 39.0 * G < fabric(nic="40G").ring(16).bps < 40.0 * G


def test_oversubscription_leaves_a_ring_in_the_fabrics_order_alone():
    narrow = fabric(64, oversubscription=4.0)
    assert narrow.ring(64).bps == pytest.approx(fabric(64).ring(64).bps, rel=0.01)


def test_oversubscription_hurts_a_scattered_ring():
    narrow = fabric(64, oversubscription=4.0, order="scattered")
    assert narrow.ring(64).bps < 0.5 * fabric(64, order="scattered").ring(64).bps


def test_oversubscription_hurts_servers_behind_several_leaves_only():
    narrow, wide = fabric(64, oversubscription=4.0), fabric(64)
    assert narrow.servers(64, 64).bps < 0.6 * wide.servers(64, 64).bps
    assert narrow.servers(32, 32).bps == pytest.approx(wide.servers(32, 32).bps, rel=0.01)


def test_few_servers_are_as_fast_as_their_ports():
    assert 23.0 * G < fabric().servers(16, 2).bps < 25.0 * G


def test_no_host_is_its_own_server_and_all_servers_serve_alike():
    for hosts, servers in ((2, 1), (16, 16), (16, 3), (512, 512), (512, 64)):
        pairs = server_pairs(hosts, servers)
        assert len(pairs) == len(set(pairs)) <= MAX_FLOWS
        assert all(a != b for a, b in pairs)
        assert len(set(Counter(b for _, b in pairs).values())) == 1
        assert len({b for _, b in pairs}) == servers


def test_ranks_may_be_dealt_out_over_the_leaves():
    dealt = fabric(64, order="scattered")
    leaf = dealt.network.topology.peer
    assert all(
        leaf(a).device != leaf(b).device
        for a, b in zip(dealt.rails[0], dealt.rails[0][1:], strict=False)
    )
    assert sorted(dealt.rails[0]) == sorted(fabric(64).rails[0])


def test_a_lossy_port_is_felt_where_traffic_crosses_it_only():
    lossy = fabric(64, lossy_port="leaf2:Ethernet1/1")
    assert lossy.ring(64).loss == 1e-4
    assert lossy.ring(32).loss == 0.0


def test_the_other_end_of_a_lossy_cable_is_the_same_port():
    lossy = fabric(64, lossy_port="host33:ens1f0")
    assert lossy.ring(64).crossing == fabric(64, lossy_port="leaf2:Ethernet1/1").ring(64).crossing


def test_two_nics_of_a_host_carry_twice_as_much(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1, nics_per_host=2))
    states = {name: expected_qos(site, name) for name in site.devices}
    rate = site_fabric(site, states, Wanted()).ring(4)
    assert 48.0 * G < rate.bps < 50.0 * G
    assert rate.line_bps == 50 * G


def test_a_host_whose_rate_control_is_off_is_named(tmp_path):
    site = make_site(tmp_path)
    states = {name: expected_qos(site, name) for name in site.devices}
    (port,) = states["host2"].ports
    odd = replace(port, nic=replace(port.nic, dcqcn=None))
    states["host2"] = replace(states["host2"], ports=(odd,))
    with pytest.raises(InputError, match="DCQCN acts on some flows") as raised:
        site_fabric(site, states, Wanted()).ring(4)
    assert "paisoar audit" in raised.value.advice


def test_more_hosts_than_there_are_is_said_with_what_to_do():
    with pytest.raises(InputError, match="16 hosts, 17") as raised:
        fabric().ring(17)
    assert "--clos" in raised.value.advice


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(nic="fast"), "--nic"),
        (Wanted(nic="800G"), "--nic 800G"),
        (Wanted(oversubscription=0.5), "--oversubscription 0.5"),
        (Wanted(order="random"), "--order random"),
        (Wanted(lossy_port="leaf1"), "--lossy-port"),
        (Wanted(lossy_port="leaf9:Ethernet1/1"), "--lossy-port leaf9:Ethernet1/1"),
        (Wanted(lossy_port="leaf1:Ethernet1/1", loss=1.5), "--loss 1.5"),
    ],
)
def test_options_that_make_no_fabric_are_named(wanted, said):
    with pytest.raises(InputError, match=said):
        clos_fabric(8, wanted)
