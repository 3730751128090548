"""What is seen beside a state is kept with it, and is no part of what the device does."""

from dataclasses import replace

from fabric.compare import differences
from fabric.intended import intended_qos
from fabric.qos import DeviceQos, PortFacts, Remark, canonical_sha256
from tests.sites import make_site

FACTS = (
    PortFacts("Ethernet1/1", up=True, speed_bps=25 * 10**9, fec="rs", lldp_agents=("lldpad",)),
)
REMARKS = (Remark("rewrite", "Ethernet1/1", "rewrites", ("set dscp 0",)),)


def test_facts_and_remarks_survive_json_and_change_neither_hash_nor_comparison(tmp_path):
    bare = intended_qos(make_site(tmp_path), "leaf1")
    seen = replace(bare, facts=FACTS, remarks=REMARKS)
    assert DeviceQos.from_json(seen.to_json()) == seen
    assert canonical_sha256((seen,)) == canonical_sha256((bare,))
    assert differences(bare, seen) == []


def test_a_state_written_without_them_is_still_read(tmp_path):
    data = intended_qos(make_site(tmp_path), "host1").to_json()
    del data["facts"], data["remarks"]
    assert DeviceQos.from_json(data).facts == ()


def test_a_port_of_which_nothing_is_seen_has_facts_that_say_nothing(tmp_path):
    state = intended_qos(make_site(tmp_path), "leaf1")
    assert state.facts_of("Ethernet1/1") == PortFacts("Ethernet1/1")
