"""Why RDMA is in the wrong priority, on NICs that number their classes themselves."""

import dataclasses

from fabric.devices.bnxt import FAMILY
from fabric.intended import intended_qos
from tests.sites import make_site
from validation.judgement.causes import _misplaced


def test_a_class_of_its_own_is_no_cause_whatever_its_number(tmp_path):
    site = make_site(tmp_path)
    port = FAMILY.normalise(intended_qos(site, "host1").ports[0])
    assert port.priority_to_class[3] == 1
    assert _misplaced(site, port) == ""


def test_a_class_shared_with_tcp_is_one_on_a_nic_and_any_other_on_a_switch(tmp_path):
    site = make_site(tmp_path)
    port = intended_qos(site, "host1").ports[0]
    shared = dataclasses.replace(port, priority_to_class=(0,) * 8)
    assert "goes to queue 0" in _misplaced(site, shared)
    other = dataclasses.replace(port, priority_to_class=(0, 0, 0, 1, 0, 0, 2, 0), nic=None)
    assert "goes to queue 1" in _misplaced(site, other)
