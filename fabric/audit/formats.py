"""An audit's report in the formats of other programs: SARIF 2.1.0 and JUnit XML.

Sources: OASIS, Static Analysis Results Interchange Format 2.1.0; the JUnit schema
of Jenkins' xunit plugin (junit-10.xsd); GitLab, "Unit test reports": of two cases
with one class name and name, it shows the first alone.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.audit.rule import Rule

# What XML 1.0 has no way to write (section 2.2, Char).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(
    report: AuditReport,
    rules: Sequence[Rule],
    version: str,
    unread: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A SARIF log of one run: rules, results, and skips as notifications.

    A device stands for the artifact, a port for the logical location in it. With
    ``unread`` devices, and why, the run was none that succeeded.
    """
    index = {rule.id: number for number, rule in enumerate(rules)}
    marks: Counter[str] = Counter()
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "paisoar",
                        "version": version,
                        "rules": [_sarif_rule(rule) for rule in rules],
                    }
                },
                "results": [_sarif_result(finding, index, marks) for finding in report.findings],
                "invocations": [
                    {
                        "executionSuccessful": not unread,
                        "toolExecutionNotifications": [
                            *(_sarif_unread(*device) for device in (unread or {}).items()),
                            *(_sarif_skip(skip) for skip in report.skipped),
                        ],
                    }
                ],
                "properties": {"paths": report.paths.to_json() if report.paths else None},
            }
        ],
    }


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.cost},
        "help": {"text": f"See: {rule.see}\nMend: {rule.mend}"},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"checks": list(rule.checks), "source": rule.source},
    }


def _sarif_result(finding: Finding, index: dict[str, int], marks: Counter[str]) -> dict[str, Any]:
    ports = [port for port in finding.port.split(", ") if port]
    places = [f"{finding.device}:{port}" for port in ports] or [finding.device]
    mark = _once("\n".join((finding.rule, finding.device, finding.port)), marks)
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(finding.device)}},
                "logicalLocations": [
                    {"fullyQualifiedName": place, "kind": "resource"} for place in places
                ],
            }
        ],
        "partialFingerprints": {"paisoar/v1": hashlib.sha256(mark.encode()).hexdigest()},
        "properties": {"evidence": list(finding.evidence), "fix": list(finding.fix)},
    }


def _sarif_unread(device: str, reason: str) -> dict[str, Any]:
    return {"level": "error", "message": {"text": f"not read: {device}: {reason}"}}


def _sarif_skip(skip: Skip) -> dict[str, Any]:
    where = f"{skip.device}: " if skip.device else ""
    return {
        "level": "note",
        "message": {"text": f"skipped: {where}{skip.reason}"},
        "associatedRule": {"id": skip.rule},
    }


def to_junit(
    report: AuditReport, rules: Sequence[Rule], unread: Mapping[str, str] | None = None
) -> str:
    """JUnit XML: a suite a rule; a case a finding or skip, or one that passed.

    Each of the ``unread`` devices is an error, in a suite of its own; where no device
    was read, no rule passes.
    """
    root = ET.Element("testsuites", name="paisoar audit")
    _unread_suite(root, unread or {})
    for rule in rules:
        findings = [finding for finding in report.findings if finding.rule == rule.id]
        skips = [skip for skip in report.skipped if skip.rule == rule.id]
        if not report.devices and not findings and not skips:
            skips = [Skip(rule.id, "", "no device was read")]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"audit.{rule.id}",
            tests=str(max(1, len(findings) + len(skips))),
            failures=str(len(findings)),
            errors="0",
            skipped=str(len(skips)),
            time="0",
        )
        names: Counter[str] = Counter()
        for finding in findings:
            name = f"{finding.device} {finding.port}".strip()
            case = _case(suite, rule, _once(name, names))
            failure = ET.SubElement(
                case, "failure", type=finding.severity, message=_xml(finding.message)
            )
            failure.text = _xml("\n".join((*finding.evidence, *(f"> {f}" for f in finding.fix))))
        for skip in skips:
            case = _case(suite, rule, _once(skip.device or "all devices", names))
            ET.SubElement(case, "skipped", message=_xml(skip.reason))
        if not findings and not skips:
            _case(suite, rule, f"{len(report.devices)} devices")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _unread_suite(root: ET.Element, unread: Mapping[str, str]) -> None:
    if not unread:
        return
    suite = ET.SubElement(
        root,
        "testsuite",
        name="audit.reading",
        tests=str(len(unread)),
        failures="0",
        errors=str(len(unread)),
        skipped="0",
        time="0",
    )
    for device, reason in unread.items():
        case = ET.SubElement(
            suite, "testcase", classname="audit.reading", name=_xml(device), time="0"
        )
        ET.SubElement(case, "error", message=_xml(reason))


def _case(suite: ET.Element, rule: Rule, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"audit.{rule.id}", name=_xml(name), time="0")


def _once(name: str, given: Counter[str]) -> str:
    """A name that no other has: the second one of it ends in ``(2)``."""
    given[name] += 1
    return name if given[name] == 1 else f"{name} ({given[name]})"


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return _NO_XML.sub("", text)
