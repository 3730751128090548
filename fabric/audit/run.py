"""Running every rule over every device."""

from __future__ import annotations

from collections.abc import Mapping

# Importing a module of rules registers them, in the order of the report.
from fabric.audit import devices, nics, ports  # noqa: F401
from fabric.audit.findings import AuditReport, Finding, Skip
from fabric.audit.rule import REGISTRY, Fault, Rule, Subject, finding
from fabric.qos import DeviceQos
from fabric.site import Site


def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are judged."""
    return tuple(REGISTRY.values())


def audit(
    site: Site,
    states: Mapping[str, DeviceQos],
    intended: Mapping[str, DeviceQos],
    *,
    baseline: Mapping[str, DeviceQos] | None = None,
) -> AuditReport:
    """Judge these states against what each device is intended to do.

    ``intended`` is what each device can express of the intent
    (``fabric.devices.registry.expected_qos``); ``baseline`` what each did when
    the site was last certified. A device without a state is not judged: the
    caller names it as unreachable.
    """
    findings: list[Finding] = []
    skips: list[Skip] = []
    for device, live in states.items():
        subject = Subject(site, live, intended[device], states, (baseline or {}).get(device))
        for rule in REGISTRY.values():
            faults: list[Fault] = []
            for item in rule.check(subject):
                if isinstance(item, Skip):
                    skips.append(item)
                else:
                    faults.append(item)
            findings += [finding(rule, device, fault) for fault in _merged(faults)]
    order = {"error": 0, "warning": 1}
    findings.sort(key=lambda finding: order[finding.severity])
    return AuditReport(tuple(findings), tuple(skips), tuple(states))


def _merged(faults: list[Fault]) -> list[Fault]:
    """Faults of one rule and device that differ in their port only become one row."""
    by_message: dict[str, list[Fault]] = {}
    for fault in faults:
        by_message.setdefault(fault.message, []).append(fault)
    return [
        Fault(
            message,
            ", ".join(fault.port for fault in same if fault.port),
            tuple(line for fault in same for line in fault.evidence),
        )
        for message, same in by_message.items()
    ]
