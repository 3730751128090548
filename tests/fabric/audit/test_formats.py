"""SARIF and JUnit, checked against the parts of their schemas that are used."""

import json
import xml.etree.ElementTree as ET

import pytest

from fabric.audit import audit, rules
from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.audit.formats import to_junit, to_sarif
from tests.fabric.audit import healthy as h
from tests.sites import make_site

STRING, STRINGS = str, [str]
# From the property tables of SARIF 2.1.0 (sections 3.13 to 3.58): required ones
# plain, optional ones with a question mark; a list holds objects of its one shape.
MESSAGE = {"text": STRING}
LOCATION = {
    "physicalLocation": {"artifactLocation": {"uri": STRING}},
    "logicalLocations": [{"fullyQualifiedName": STRING, "kind": STRING}],
}
SARIF = {
    "$schema": STRING,
    "version": STRING,
    "runs": [
        {
            "tool": {
                "driver": {
                    "name": STRING,
                    "version": STRING,
                    "rules": [
                        {
                            "id": STRING,
                            "shortDescription": MESSAGE,
                            "fullDescription": MESSAGE,
                            "help": MESSAGE,
                            "defaultConfiguration": {"level": STRING},
                            "properties": dict,
                        }
                    ],
                }
            },
            "results": [
                {
                    "ruleId": STRING,
                    "ruleIndex": int,
                    "level": STRING,
                    "message": MESSAGE,
                    "locations": [LOCATION],
                    "partialFingerprints": dict,
                    "properties": dict,
                }
            ],
            "invocations": [
                {
                    "executionSuccessful": bool,
                    "toolExecutionNotifications": [
                        {"level": STRING, "message": MESSAGE, "associatedRule": {"id": STRING}}
                    ],
                }
            ],
            "properties": dict,
        }
    ],
}


def fits(value, shape, where="log"):
    if isinstance(shape, dict):
        assert set(value) == set(shape), where
        for name, inner in shape.items():
            fits(value[name], inner, f"{where}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for index, item in enumerate(value):
            fits(item, shape[0], f"{where}[{index}]")
    else:
        assert isinstance(value, shape), where


@pytest.fixture
def report(tmp_path):
    site = make_site(tmp_path)
    states, intended = h.healthy(site)
    h.leaf(lambda p: {"pfc_priorities": (), "ingress_buffers": ()})(states)
    return audit(site, states, intended)


def test_a_sarif_log_has_the_shape_of_the_standard(report):
    log = json.loads(json.dumps(to_sarif(report, rules(), "1.0")))
    fits(log, SARIF)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "pfc"
    assert result["level"] in ("error", "warning", "note", "none")
    (location,) = result["locations"]
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "leaf1:Ethernet1/1"
    assert {n["level"] for n in run["invocations"][0]["toolExecutionNotifications"]} == {"note"}


def test_the_same_finding_has_the_same_fingerprint_and_another_port_another():
    def mark(port):
        finding = Finding("pfc", "error", "leaf1", port, "message")
        log = to_sarif(AuditReport((finding,), (), ("leaf1",)), rules(), "1")
        return log["runs"][0]["results"][0]["partialFingerprints"]

    assert mark("Ethernet1/1") == mark("Ethernet1/1") != mark("Ethernet1/2")


def test_junit_counts_what_it_holds(report):
    root = ET.fromstring(to_junit(report, rules()))
    assert root.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in root}
    assert len(suites) == len(rules())
    for suite in suites.values():
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases) > 0
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
        assert all(case.get("name") and case.get("classname") for case in cases)
    (failure,) = suites["audit.pfc"].findall("testcase/failure")
    assert "PFC is off" in failure.get("message")
    assert suites["audit.storms"].find("testcase/skipped") is not None
    assert suites["audit.mtu"].find("testcase/failure") is None


def test_control_characters_of_a_device_do_not_break_the_xml():
    finding = Finding("mtu", "error", "leaf1", "", "a\x00b\x1b<&>", ("\x07",))
    skip = Skip("gid", "host1", "\x02")
    ET.fromstring(to_junit(AuditReport((finding,), (skip,), ("leaf1",)), rules()))
