"""The gate: whether a job may start on these hosts, now, on this fabric.

It only verifies and reads; it never measures. What it looks at, in order: the
signature over the very bytes that it then parses, site, evidence class,
revocation, time, the intent, scope, and the live fingerprint of the job's hosts
and of every switch between them. All but the last two are what ``paisoar
certificate verify`` looks at too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fabric.errors import DevicesError, InputError, PaisoarError, ToolError
from fabric.site import EvidenceClass, Site
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
    changed = found.fingerprint.changed(fingerprint(site, live.states), names)
    if not changed:
        return
    before = certified_states(site, found)
    lines = explain(
        {name: before[name] for name in changed if name in before},
        {name: live.states[name] for name in changed if name in before},
    )
    lines += [
        f"{name}: (its certified state is not at hand)" for name in changed if name not in before
    ]
    if len(lines) > _MAX_LISTED:
        lines = [*lines[:_MAX_LISTED], f"and {len(lines) - _MAX_LISTED} more"]
    raise refused(
        "fabric-changed",
        f"the fabric is not what certificate {found.id} was issued for; changed: "
        f"{', '.join(changed)} ({'; '.join(lines)}).",
        advice=f"See `paisoar audit`; put it back, or: {ADVICE_RENEW}",
    )
