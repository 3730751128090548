"""A finding's fix is what the device's own module would send for it, and no more."""

import pytest

from fabric.audit import audit
from fabric.audit.fixes import only_in
from fabric.audit.rule import FIX
from fabric.devices.nxos import MODULE as NXOS
from fabric.devices.nxos.read import LLDP, PFC, RUNNING, STARTUP
from fabric.devices.registry import expected_qos, target_of
from tests.sites import make_site


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path)


def look(site, text):
    outputs = {RUNNING: text, STARTUP: text, LLDP: "Device ID  \n", PFC: ""}
    del outputs[PFC], outputs[LLDP]
    state = NXOS.read(target_of(site, "leaf1"), outputs)
    intended = {"leaf1": expected_qos(site, "leaf1")}
    return audit(site, {"leaf1": state}, intended, outputs={"leaf1": outputs}).findings


def test_what_is_rendered_has_no_finding(site):
    assert look(site, NXOS.render(expected_qos(site, "leaf1"))) == ()


def test_one_port_without_pfc_is_mended_by_its_one_line(site):
    text = NXOS.render(expected_qos(site, "leaf1"))
    text = text.replace("priority-flow-control mode on", "priority-flow-control mode off", 1)
    (finding,) = look(site, text)
    assert finding.rule == "pfc"
    assert finding.fix == ("interface Ethernet1/1", "  priority-flow-control mode on")


def test_a_rule_that_no_line_mends_points_at_the_plan(site):
    text = NXOS.render(expected_qos(site, "leaf1"))
    outputs = {RUNNING: text, STARTUP: text + "hostname other\n"}
    state = NXOS.read(target_of(site, "leaf1"), outputs)
    intended = {"leaf1": expected_qos(site, "leaf1")}
    (finding,) = audit(site, {"leaf1": state}, intended, outputs={"leaf1": outputs}).findings
    assert (finding.rule, finding.fix) == ("unsaved", FIX)


def test_lines_come_with_the_sections_that_they_stand_in():
    now = ["policy-map A", "  class x", "    mtu 1", "interface E1", "  mtu 9216"]
    then = [*now[:4], "  mtu 1500", "  shutdown", "interface E2", "  mtu 9216"]
    assert only_in(then, now) == (
        "interface E1", "  mtu 1500", "  shutdown", "interface E2", "  mtu 9216",
    )  # fmt: skip
    assert only_in(now, now) == ()
