"""The gate: whether a job may start on these hosts, now, on this fabric.

It only verifies and reads; it never measures. What it looks at, in order: the
signature over the very bytes that it then parses, site, evidence class,
revocation, time, the intent, scope, and the links and the live fingerprint of the
job's hosts and of every switch between them. All but the last three are what
``paisoar certificate verify`` looks at too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fabric.errors import DevicesError, InputError, PaisoarError, ToolError
from fabric.linkstate import down_ports
from fabric.qos import DeviceQos
from fabric.site import EvidenceClass, Site
from fabric.topology import PortRef
from validation.certificate import Certificate, certified_states, read
from validation.fingerprint import explain, fingerprint
from validation.readers import StateReader, read_states
from validation.refusal import ADVICE_RENEW, refused
from validation.times import Clock, utc_now
from validation.validity import check

_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class GatePass:
    """The gate is open. ``loopback_only``: for the twin's own hosts on this machine alone."""

    certificate_id: str
    site: str
    evidence_class: EvidenceClass
    hosts: tuple[str, ...]
    fingerprint: str
    checked_at: datetime
    not_after: datetime
    loopback_only: bool


def open_gate(
    site: Site,
    hosts: Sequence[str],
    *,
    certificate: str | Path | None = None,
    minimum_class: EvidenceClass | None = None,
    reader: StateReader = read_states,
    clock: Clock = utc_now,
) -> GatePass:
    """Let a job on these hosts through, or say why not.

    ``certificate`` is an id or a path; the newest where None. ``minimum_class``
    may demand more than the site's environment does. Raises GateRefusedError with its ``reason``,
    DevicesError where a device does not answer, InputError without hosts or where
    there is no such certificate.
    """
    wanted = tuple(dict.fromkeys(hosts))
    if not wanted:
        raise InputError("the gate was asked about no host at all")
    found = read(site, certificate)
    now = clock()
    check(site, found, now, minimum_class)
    _in_scope(found, wanted)
    _same_fabric(site, found, wanted, reader)
    return GatePass(
        certificate_id=found.id,
        site=site.name,
        evidence_class=found.evidence_class,
        hosts=wanted,
        fingerprint=found.fingerprint.sha256,
        checked_at=now,
        not_after=found.not_after,
        loopback_only=found.evidence_class == "simulated",
    )


def _in_scope(found: Certificate, hosts: tuple[str, ...]) -> None:
    outside = [host for host in hosts if host not in found.hosts]
    if outside:
        raise refused(
            "scope",
            f"certificate {found.id} does not cover {', '.join(outside)}.",
            advice=f"It covers {len(found.hosts)} hosts: {', '.join(found.hosts[:8])}"
            + (", ..." if len(found.hosts) > 8 else "."),
        )


def _links_up(
    site: Site, found: Certificate, live: Mapping[str, DeviceQos], down: Mapping[PortRef, str]
) -> None:
    """Every link between the devices that were read; other hosts may be down."""
    whys = [
        why
        for port, why in down.items()
        if port.device in live and site.topology.peer(port).device in live
    ]
    if whys:
        raise refused(
            "port-down",
            f"certificate {found.id} was issued for a fabric whose links are all up; now "
            f"{_listed(list(dict.fromkeys(whys)))}.",
            advice="See `paisoar audit`, which names both ends; bring them up.",
        )


def _as_heard(
    before: Mapping[str, DeviceQos], live: Mapping[str, DeviceQos], down: Mapping[PortRef, str]
) -> dict[str, DeviceQos]:
    """The live states, with the neighbours that ports had before their links went down."""
    heard = {}
    for name, state in live.items():
        certified = before[name].neighbors if name in before else None
        silent = [n for n in certified or () if PortRef(name, n.port) in down]
        seen = (*(state.neighbors or ()), *silent)
        heard[name] = dataclasses.replace(state, neighbors=seen) if silent else state
    return heard


def _listed(lines: list[str]) -> str:
    if len(lines) > _MAX_LISTED:
        lines = [*lines[:_MAX_LISTED], f"and {len(lines) - _MAX_LISTED} more"]
    return "; ".join(lines)


def _same_fabric(
    site: Site, found: Certificate, hosts: tuple[str, ...], reader: StateReader
) -> None:
    names = tuple(name for name in site.devices if name in hosts or name in site.topology.switches)
    live = reader(site, names)
    unanswered = {
        name: live.failed.get(name, ToolError(f"{name}: nothing was read"))
        for name in names
        if name not in live.states
    }
    if unanswered:
        raise DevicesError(
            "read the live fabric for the gate",
            {
                name: error if isinstance(error, PaisoarError) else ToolError(f"{name}: {error}")
                for name, error in unanswered.items()
            },
        )
    down = down_ports(site.topology, live.states)
    _links_up(site, found, live.states, down)
    before = certified_states(site, found) if down else {}
    states = _as_heard(before, live.states, down)
    changed = found.fingerprint.changed(fingerprint(site, states), names)
    if not changed:
        return
    before = before or certified_states(site, found)
    lines = explain(
        {name: before[name] for name in changed if name in before},
        {name: states[name] for name in changed if name in before},
    )
    lines += [
        f"{name}: (its certified state is not at hand)" for name in changed if name not in before
    ]
    raise refused(
        "fabric-changed",
        f"the fabric is not what certificate {found.id} was issued for; changed: "
        f"{', '.join(changed)} ({_listed(lines)}).",
        advice=f"See `paisoar audit`; put it back, or: {ADVICE_RENEW}",
    )
