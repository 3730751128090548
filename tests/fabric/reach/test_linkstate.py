"""Which links are down, and where."""

from dataclasses import replace

from fabric.intended import intended_qos
from fabric.qos import PortFacts
from fabric.reach.linkstate import down_ports, shut_ports
from fabric.topology import PortRef
from tests.sites import make_site

NIC, LEAF_PORT = PortRef("host1", "ens1f0"), PortRef("leaf1", "Ethernet1/1")


def seen(site, *facts):
    states = {name: intended_qos(site, name) for name in site.devices}
    for device, shown in facts:
        state = states[device]
        states[device] = replace(state, facts=(*state.facts, shown))
    return states


def test_one_end_that_is_down_takes_both_down(tmp_path):
    site = make_site(tmp_path)
    states = seen(site, ("leaf1", PortFacts(LEAF_PORT.port, up=False)))
    why = "leaf1:Ethernet1/1 has no link"
    assert down_ports(site.topology, states) == {NIC: why, LEAF_PORT: why}
    assert shut_ports(site.topology, states["leaf1"]) == ()


def test_the_end_that_is_shut_is_to_blame_not_the_one_without_a_carrier(tmp_path):
    site = make_site(tmp_path)
    states = seen(
        site,
        ("leaf1", PortFacts(LEAF_PORT.port, up=False, admin_up=True)),
        ("host1", PortFacts(NIC.port, up=False, admin_up=False)),
    )
    assert set(down_ports(site.topology, states).values()) == {"host1:ens1f0 is shut"}
    assert shut_ports(site.topology, states["host1"]) == ("ens1f0",)


def test_what_is_not_shown_or_not_cabled_is_not_called_down(tmp_path):
    site = make_site(tmp_path)
    states = seen(
        site,
        ("leaf1", PortFacts(LEAF_PORT.port)),
        ("leaf1", PortFacts("Ethernet1/30", up=False, admin_up=False)),
    )
    del states["host2"]
    assert down_ports(site.topology, states) == {}
    assert shut_ports(site.topology, states["leaf1"]) == ()
