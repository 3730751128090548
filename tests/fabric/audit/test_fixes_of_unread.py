"""No fix holds a line that would replace what a device did not show."""

import json
import re
from dataclasses import replace

import pytest

from fabric.audit import audit, rules
from fabric.audit.fixes import mend
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.qos import Ecn
from fabric.unread import FIELDS, PARTS, lacking, unseen
from tests.fabric.devices.intents import roce_port
from tests.fabric.twin.console import site_of

# What is asked for the running configuration.
RUNNING = {
    "nxos": "show running-config",
    "eos": "show running-config",
    "junos": "show configuration | display set",
    "sonic": "show runningconfiguration all",
}


def findings(site, text, name="leaf1"):
    module, target = module_of(site, name), target_of(site, name)
    outputs = {RUNNING[module.os]: text}
    state = module.read(target, outputs)
    report = audit(site, {name: state}, {name: expected_qos(site, name)}, outputs={name: outputs})
    return state, {one.rule: one for one in report.findings}, report


def rendered(site, name="leaf1"):
    return module_of(site, name).render(expected_qos(site, name))


def edited(text, *changes):
    for old, new in changes:
        text, count = re.subn(old, new, text, count=1)
        assert count, old
    return text


UNREADABLE = {
    "nxos": (
        (r"random-detect minimum.*", "random-detect threshold burst-optimized ecn"),
        (r"bandwidth remaining percent 50", "bandwidth remaining percent 40"),
    ),
    "eos": (
        (r"random-detect ecn minimum.*", "random-detect ecn delay threshold 5 milliseconds"),
        (r"bandwidth percent 50", "bandwidth percent 40"),
    ),
    "junos": (
        (
            r"(set class-of-service drop-profiles \S+ interpolate) fill-level (\d+)",
            r"\g<1> fill-level 2\n\g<1> fill-level \g<2>",
        ),
        (r"transmit-rate percent 50", "transmit-rate percent 40"),
    ),
}


@pytest.mark.parametrize("system", UNREADABLE)
def test_a_policy_whose_ecn_cannot_be_read_is_not_replaced(tmp_path, system):
    site = site_of(tmp_path, system)
    state, found, report = findings(site, edited(rendered(site), *UNREADABLE[system]))
    assert any(": ECN of " in fact for fact in state.unread)
    (fix,) = found["ets-weights"].fix
    assert fix.startswith("not by commands, for they would replace what was not read (")
    assert ": ECN of " in fix
    assert "ecn" in {skip.rule for skip in report.skipped}
    assert not any("random-detect" in line for one in found.values() for line in one.fix[1:])


def test_what_can_be_read_of_the_same_port_is_mended_all_the_same(tmp_path):
    site = site_of(tmp_path, "nxos")
    text = edited(
        rendered(site), *UNREADABLE["nxos"], (r"  mtu 9216\n  prio", "  mtu 1500\n  prio")
    )
    _, found, _ = findings(site, text)
    assert found["mtu"].fix == ("interface Ethernet1/1", "  mtu 9216")


def test_a_profile_that_holds_the_line_is_left_with_all_that_it_sets(tmp_path):
    """On EOS one profile holds PFC and ECN of a port."""
    site = site_of(tmp_path, "eos")
    text = edited(
        rendered(site),
        *UNREADABLE["eos"],
        (r"priority-flow-control priority 3 no-drop", "priority-flow-control priority 4 no-drop"),
    )
    _, found, _ = findings(site, text)
    assert found["pfc"].fix[0].startswith("not by commands")


def test_where_every_value_has_a_line_of_its_own_only_that_is_left(tmp_path):
    site = site_of(tmp_path, "sonic")
    tables = json.loads(rendered(site))
    for profile in tables["WRED_PROFILE"].values():
        profile.pop("green_max_threshold", None)
        profile.pop("ecn_green_max_threshold", None)
    tables["SCHEDULER"]["own"] = {"type": "DWRR", "weight": "20"}
    (key,) = (key for key in tables["QUEUE"] if key.endswith("Ethernet0|3"))
    tables["QUEUE"][key]["scheduler"] = "own"
    tables["BUFFER_POOL"] = {"ingress_lossless_pool": {"mode": "dynamic", "type": "ingress"}}
    state, found, _ = findings(site, json.dumps(tables))
    assert any(": ECN of queue 3: " in fact for fact in state.unread)
    assert any("scheduler" in line.lower() for line in found["scheduler"].fix)
    assert not any("wred" in line.lower() for line in found["scheduler"].fix)


def test_every_rule_that_mends_a_fact_leaves_it_where_it_is_not_shown(tmp_path):
    """A fault of a fact that a rule judges is a skip, whichever rule it is."""
    site = site_of(tmp_path, "nxos")
    for rule in rules():
        for fact in rule.facts:
            assert set(FIELDS[fact]) & set(rule.fields) or rule.id == "max-lossless", rule.id
    port = expected_qos(site, "leaf1").ports[0]
    entry = lacking(port.name, next(iter(FIELDS)), "why")
    assert unseen((entry,), port.name, next(iter(FIELDS)))
    assert not unseen((entry,), port.name + "1", next(iter(FIELDS)))


def test_parts_of_queues_that_were_not_read_stay_what_they_are():
    held = roce_port("Ethernet1/1")
    intended = replace(
        held, queues=tuple(replace(q, ecn=Ecn(1, 2, 3), max_rate_bps=7) for q in held.queues)
    )
    mended = mend(held, intended, ["queues"], {PARTS["ECN of"]})
    assert [queue.ecn for queue in mended.queues] == [queue.ecn for queue in held.queues]
    assert {queue.max_rate_bps for queue in mended.queues} == {7}
