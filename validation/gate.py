"""The gate: whether a job may start on these hosts, now, on this fabric.

It only verifies and reads; it never measures. What it looks at, in order: the
signature over the very bytes that it then parses, site, evidence class,
revocation, time, the intent, scope, and the links and the live fingerprint of the
job's hosts and of every switch between them. All but the last three are what
``paisoar certificate verify`` looks at too.

``open_gate`` reads those devices itself. ``open_gate_quickly`` takes the last reading
of ``paisoar watch`` for it, which is sealed and must be young: schedulers get their
answer in the time that a signature takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from fabric.errors import (
    DevicesError,
    GateRefusedError,
    InputError,
    PaisoarError,
    ToolError,
)
from fabric.reach.linkstate import down_ports
from fabric.site import EvidenceClass, Site
from fabric.topology import PortRef
from validation.certificates.certificate import Certificate, certified_states, read
from validation.certificates.fingerprint import as_heard, explain, fingerprint
from validation.certificates.validity import check
from validation.readers import StateReader, read_states
from validation.refusal import ADVICE_RENEW, refused
from validation.times import Clock, utc_now
from validation.watch.reading import DEFAULT_MAX_AGE_S, Reading, last_reading

_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class GatePass:
    """The gate is open.

    ``loopback_only``: for the twin's own hosts on this machine alone.
    ``reading_age_s``: how long ago the fabric was read; 0 where it was for this answer.
    """

    certificate_id: str
    site: str
    evidence_class: EvidenceClass
    hosts: tuple[str, ...]
    fingerprint: str
    checked_at: datetime
    not_after: datetime
    loopback_only: bool
    reading_age_s: float = 0.0


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
    now = clock()
    found, wanted = _covered(site, hosts, certificate, minimum_class, now)
    _same_fabric(site, found, wanted, reader)
    return _passed(site, found, wanted, now)


def open_gate_quickly(
    site: Site,
    hosts: Sequence[str],
    *,
    max_age_s: float = DEFAULT_MAX_AGE_S,
    certificate: str | Path | None = None,
    minimum_class: EvidenceClass | None = None,
    clock: Clock = utc_now,
) -> GatePass:
    """As :func:`open_gate`, by the watch's last reading instead of the devices themselves.

    Never by one that is missing, not believed or older than ``max_age_s``. Raises the
    same, and GateRefusedError ``no-reading``, ``reading-bad``, ``reading-stale``.
    """
    now = clock()
    found, wanted = _covered(site, hosts, certificate, minimum_class, now)
    reading = last_reading(site, now, max_age_s)
    _same_as_read(site, found, wanted, reading)
    return replace(_passed(site, found, wanted, now), reading_age_s=max(0.0, reading.age_s(now)))


def _covered(
    site: Site,
    hosts: Sequence[str],
    certificate: str | Path | None,
    minimum_class: EvidenceClass | None,
    now: datetime,
) -> tuple[Certificate, tuple[str, ...]]:
    """The certificate, where it holds and covers these hosts; and each host once."""
    wanted = tuple(dict.fromkeys(hosts))
    if not wanted:
        raise InputError("the gate was asked about no host at all")
    found = read(site, certificate)
    check(site, found, now, minimum_class)
    _in_scope(found, wanted)
    return found, wanted


def _passed(site: Site, found: Certificate, hosts: tuple[str, ...], now: datetime) -> GatePass:
    return GatePass(
        certificate_id=found.id,
        site=site.name,
        evidence_class=found.evidence_class,
        hosts=hosts,
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


def _links_up(found: Certificate, whys: Sequence[str]) -> None:
    """Every link between the devices that were read; other hosts may be down."""
    if whys:
        raise refused(
            "port-down",
            f"certificate {found.id} was issued for a fabric whose links are all up; now "
            f"{_listed(list(dict.fromkeys(whys)))}.",
            advice="See `paisoar audit`, which names both ends; bring them up.",
        )


def _listed(lines: list[str]) -> str:
    if len(lines) > _MAX_LISTED:
        lines = [*lines[:_MAX_LISTED], f"and {len(lines) - _MAX_LISTED} more"]
    return "; ".join(lines)


def _between(site: Site, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """These hosts and every switch."""
    return tuple(name for name in site.devices if name in hosts or name in site.topology.switches)


def _same_fabric(
    site: Site, found: Certificate, hosts: tuple[str, ...], reader: StateReader
) -> None:
    names = _between(site, hosts)
    live = reader(site, names)
    _answered(
        "read the live fabric for the gate",
        {
            name: live.failed.get(name, ToolError(f"{name}: nothing was read"))
            for name in names
            if name not in live.states
        },
    )
    down = down_ports(site.topology, live.states)
    _links_up(
        found,
        [
            why
            for port, why in down.items()
            if port.device in live.states and site.topology.peer(port).device in live.states
        ],
    )
    before = certified_states(site, found) if down else {}
    states = as_heard(before, live.states, down)
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
    raise _changed(found, changed, lines)


def _same_as_read(site: Site, found: Certificate, hosts: tuple[str, ...], reading: Reading) -> None:
    names = _between(site, hosts)
    _answered(
        "judge by the last reading of the fabric",
        {name: ToolError(f"{name}: {why}") for name, why in reading.failed(names).items()},
    )
    if reading.down and reading.certificate_id != found.id:
        raise refused(
            "no-reading",
            f"the last reading was compared with another certificate than {found.id}, and links "
            "are down.",
            advice="Ask again when `paisoar watch` has read the fabric once more.",
        )
    ends = [(PortRef.parse(link.a), PortRef.parse(link.b), link.why) for link in reading.down]
    _links_up(found, [why for a, b, why in ends if {a.device, b.device} <= set(names)])
    now = {name: reading.devices[name] for name in names}
    certified = found.fingerprint.per_device
    changed = [name for name in sorted(names) if certified.get(name) != now[name].sha256]
    if changed:
        lines = [line for name in changed for line in now[name].changes]
        raise _changed(found, changed, lines)


def _answered(doing: str, failed: Mapping[str, Exception]) -> None:
    if failed:
        raise DevicesError(
            doing,
            {
                name: error if isinstance(error, PaisoarError) else ToolError(f"{name}: {error}")
                for name, error in failed.items()
            },
        )


def _changed(found: Certificate, devices: Sequence[str], lines: list[str]) -> GateRefusedError:
    what = f" ({_listed(lines)})" if lines else ""
    return refused(
        "fabric-changed",
        f"the fabric is not what certificate {found.id} was issued for; changed: "
        f"{', '.join(devices)}{what}.",
        advice=f"See `paisoar audit`; put it back, or: {ADVICE_RENEW}",
    )
