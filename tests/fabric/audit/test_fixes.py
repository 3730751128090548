"""A finding's fix is what the device's own module would send for it, and no more."""

import pytest

from fabric.audit import audit, rules
from fabric.audit.fixes import Fixes, fix_lines
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


def test_what_is_not_saved_is_mended_by_the_vendors_own_command(site):
    text = NXOS.render(expected_qos(site, "leaf1"))
    outputs = {RUNNING: text, STARTUP: text + "hostname other\n"}
    state = NXOS.read(target_of(site, "leaf1"), outputs)
    intended = {"leaf1": expected_qos(site, "leaf1")}
    (finding,) = audit(site, {"leaf1": state}, intended, outputs={"leaf1": outputs}).findings
    assert finding.rule == "unsaved"
    assert finding.fix == ("copy running-config startup-config",)


def test_what_no_configuration_mends_is_told_in_words_instead_of_a_plan(site):
    for rule in rules():
        if rule.id in {"fec", "gid", "lldp-agents", "lldp-peers", "uneven", "ecmp"}:
            assert Fixes(site, {}, {}, {}, {}).of(rule, "leaf1", []) == (rule.mend,)
            assert "paisoar" not in rule.mend


def test_a_plan_is_advised_only_where_it_changes_something(site):
    outputs = {RUNNING: NXOS.render(expected_qos(site, "leaf1"))}
    intended = {"leaf1": expected_qos(site, "leaf1")}
    states = {"leaf1": NXOS.read(target_of(site, "leaf1"), outputs)}
    (mtu,) = (rule for rule in rules() if rule.id == "mtu")
    assert Fixes(site, states, intended, {"leaf1": outputs}, {}).of(mtu, "leaf1", []) == (mtu.mend,)
    outputs = {RUNNING: outputs[RUNNING].replace("mtu 9216", "mtu 1500")}
    assert Fixes(site, states, intended, {"leaf1": outputs}, {}).of(mtu, "leaf1", []) == FIX


def test_lines_come_with_the_sections_that_they_stand_in():
    now = ["policy-map A", "  class x", "    mtu 1", "interface E1", "  mtu 9216"]
    then = [*now[:4], "  mtu 1500", "  shutdown", "interface E2", "  mtu 9216"]
    assert fix_lines(then, now, ["E1", "E2"]) == (
        "interface E1", "  mtu 1500", "  shutdown", "interface E2", "  mtu 9216",
    )  # fmt: skip
    assert fix_lines(now, now, ["E1", "E2"]) == ()


def test_a_line_comes_with_the_objects_that_it_uses_and_without_tidying():
    shared = [
        "class-map PAISOAR-D",
        "  match dscp 26",
        "policy-map PAISOAR-P",
        "  class PAISOAR-D",
        "interface E1",
        "  no service-policy type qos input OLD",
        "  service-policy type qos input PAISOAR-Q",
        "interface E2",
        "  no service-policy type qos input OLD",
    ]
    mended = [*shared, "  service-policy type qos input PAISOAR-P", "no policy-map PAISOAR-Q"]
    assert fix_lines(mended, shared, ["E1", "E2"]) == (*shared[:4], *mended[7:10])
