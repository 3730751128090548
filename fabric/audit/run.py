"""Running every rule over every device."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

# Importing a module of rules registers them, in the order of the report.
from fabric.audit import (  # noqa: F401
    buffers,
    cabling,
    counting,
    devices,
    links,
    lossless,
    maps,
    marking,
    nics,
    queues,
    watchdogs,
)  # fmt: skip
from fabric.audit.findings import AuditReport, Skip
from fabric.audit.fixes import Fixes
from fabric.audit.fleet import odd_ones
from fabric.audit.paths import Pairs, path_report
from fabric.audit.rule import REGISTRY, Fault, Rule, Subject, Wanted, finding
from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs
from fabric.qos import DeviceQos
from fabric.site import Site
from fabric.topology import PortRef

NO_PORTS = "none of its ports has a cable or is seen to be in use: none is judged"
NO_COUNTERS = "counters were not read; paisoar audit --counters reads them"


def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are judged."""
    return tuple(REGISTRY.values())


def audit(
    site: Site,
    states: Mapping[str, DeviceQos],
    intended: Mapping[str, DeviceQos],
    *,
    baseline: Mapping[str, DeviceQos] | None = None,
    outputs: Mapping[str, Outputs] | None = None,
    counters: Mapping[str, CounterSnapshot] | None = None,
) -> AuditReport:
    """Judge these states against what each device is intended to do.

    ``intended`` is what each device can express of the intent
    (``fabric.devices.registry.expected_qos``); ``baseline`` what each did when
    the site was last certified. With ``outputs``, which the states were read from,
    fixes are the device's own commands. A device without a state is not judged:
    the caller names it as unreachable.
    """
    wanted = Wanted(site)
    pairs = Pairs(site.topology)
    odd = odd_ones(states)
    found: list[tuple[Rule, str, Fault]] = []
    skips: list[Skip] = []
    if counters is None:
        skips += [Skip(rule.id, "", NO_COUNTERS) for rule in rules() if rule.needs_counters]
    for device, live in states.items():
        subject = Subject(
            site,
            live,
            intended[device],
            states,
            (baseline or {}).get(device),
            wanted,
            odd.get(device, ()),
            (counters or {}).get(device),
        )
        if not subject.intended.ports:
            skips.append(Skip("unread", device, NO_PORTS))
        for rule in REGISTRY.values():
            if rule.needs_counters and subject.counters is None:
                continue
            faults: list[Fault] = []
            for item in _judged(rule, subject):
                if isinstance(item, Skip):
                    skips.append(item)
                else:
                    faults.append(item)
            found += [(rule, device, fault) for fault in _merged(faults)]
    fixes = Fixes(site, states, intended, outputs or {}, _fields(found))
    findings = [
        finding(rule, device, _completed(fault, rule, device, fixes, pairs))
        for rule, device, fault in found
    ]
    order = {"error": 0, "warning": 1}
    findings.sort(key=lambda finding: order[finding.severity])
    report = path_report(pairs, site.topology, wanted, states, intended)
    return AuditReport(tuple(findings), tuple(dict.fromkeys(skips)), tuple(states), report)


def _judged(rule: Rule, subject: Subject) -> Iterator[Fault | Skip]:
    """What the rule says, and what the device's own module has remarked on its subject.

    Nothing can be found of a fact that the device does not show: that is a skip.
    """
    for item in rule.check(subject):
        skip = subject.skip(rule.id, item.port, *rule.facts) if isinstance(item, Fault) else None
        yield skip or (_quoted(rule, subject, item) if isinstance(item, Fault) else item)
    for remark in subject.live.remarks:
        # A remark of a rule that is not known here is the vendor's.
        if remark.rule == rule.id or (rule.id == "vendor" and remark.rule not in REGISTRY):
            fault = Fault(remark.message, remark.port, remark.evidence, remark.fix)
            yield _quoted(rule, subject, fault)


def _quoted(rule: Rule, subject: Subject, fault: Fault) -> Fault:
    """The fault with what both ends of its port's cable do, where the rule is about cables."""
    if rule.shows is None or not fault.port:
        return fault
    ends = subject.ends(fault.port, rule.shows, rule.facts)
    return dataclasses.replace(fault, evidence=(*ends, *fault.evidence))


def _completed(fault: Fault, rule: Rule, device: str, fixes: Fixes, pairs: Pairs) -> Fault:
    """The fault with its fix, and with how many pairs of hosts it stands between."""
    ports = _ports(fault)
    over = pairs.over([PortRef(device, port) for port in ports] or [PortRef(device, "")])
    line = f"on the path of {over} of {pairs.total} host pairs"
    fix = fault.fix or fixes.of(rule, device, ports)
    return Fault(fault.message, fault.port, (*fault.evidence, line), fix)


def _ports(fault: Fault) -> list[str]:
    return [port for port in fault.port.split(", ") if port]


def _fields(found: list[tuple[Rule, str, Fault]]) -> dict[tuple[str, str], frozenset[str]]:
    """What all findings of a port want mended, by device and port."""
    fields: dict[tuple[str, str], frozenset[str]] = {}
    for rule, device, fault in found:
        for port in _ports(fault):
            fields[device, port] = fields.get((device, port), frozenset()).union(rule.fields)
    return fields


def _merged(faults: list[Fault]) -> list[Fault]:
    """Faults of one rule and device that differ in their port only become one row."""
    by_message: dict[str, list[Fault]] = {}
    for fault in faults:
        by_message.setdefault(fault.message, []).append(fault)
    return [
        Fault(
            message,
            ", ".join(dict.fromkeys(fault.port for fault in same if fault.port)),
            tuple(dict.fromkeys(line for fault in same for line in fault.evidence)),
            tuple(dict.fromkeys(line for fault in same for line in fault.fix)),
        )
        for message, same in by_message.items()
    ]
