"""One round of the watch: read, judge, revoke, keep; in an order that survives a kill.

A certificate is revoked before the reading is kept, and the reading before the
counters: killed in between, the next round sees the same once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from securesystemslib.signer import Signer

from fabric.counters import CounterSnapshot
from fabric.errors import GateRefusedError, InputError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.certificates import certificate
from validation.certificates.certificate import Certificate, certified_states
from validation.certificates.keys import signer
from validation.certificates.validity import check
from validation.readers import Readers, live_readers
from validation.refusal import ADVICE_RENEW
from validation.times import Clock, to_text, utc_now
from validation.watch.baseline import read_baseline, write_baseline
from validation.watch.compare import reading_of
from validation.watch.events import (
    MAX_PAUSE_SHARE,
    Finding,
    counter_findings,
    fabric_findings,
)
from validation.watch.reading import Reading, write_reading

OnDrift = Literal["revoke", "warn"]
_MAX_REASONS = 3


@dataclass(frozen=True)
class Seen:
    """What devices answered in one round; ``failed`` says why others did not.

    ``ended_s`` is when, on a clock that nobody sets back.
    """

    started_at: datetime
    states: Mapping[str, DeviceQos]
    snapshots: Mapping[str, CounterSnapshot]
    failed: Mapping[str, str]
    seconds: float
    ended_s: float


@dataclass(frozen=True)
class Round:
    """One round and what came of it.

    ``certificate`` is the newest that is believed, whether it holds or not; ``reason``
    is empty where it holds, else the word of its refusal. ``revoked`` says that this
    round revoked it.
    """

    seen: Seen
    reading: Reading
    certificate: Certificate | None
    reason: str
    findings: tuple[Finding, ...]
    revoked: bool

    @property
    def good(self) -> bool:
        """The certificate holds and nothing happened that it would not survive."""
        return not self.reason and not any(finding.voids for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, as ``paisoar watch --json`` prints them."""
        found = self.certificate
        return {
            "site": self.reading.site,
            "certificate": found.id if found else None,
            "class": found.evidence_class if found else None,
            "not_after": to_text(found.not_after) if found else None,
            "valid": not self.reason,
            "reason": self.reason,
            "revoked": self.revoked,
            "started_at": self.reading.started_at,
            "seconds": round(self.seen.seconds, 3),
            "devices": len(self.reading.devices),
            "unread": dict(self.seen.failed),
            "findings": [
                {
                    "kind": finding.kind,
                    "device": finding.device,
                    "port": finding.port,
                    "message": finding.message,
                    "voids": finding.voids,
                }
                for finding in self.findings
            ],
        }


class Watcher:
    """Watches one site; ``read`` touches devices only, ``conclude`` files only."""

    def __init__(
        self,
        site: Site,
        *,
        on_drift: OnDrift = "revoke",
        interval_s: float = 30.0,
        max_pause_share: float = MAX_PAUSE_SHARE,
        readers: Readers | None = None,
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.site = site
        self.on_drift = on_drift
        self.interval_s = interval_s
        self.max_pause_share = max_pause_share
        self._readers = readers or live_readers()
        self._clock = clock
        self._monotonic = monotonic
        self._signer: Signer = signer(site)
        self._before = read_baseline(site)
        # When each device was read last, by this process.
        self._read_s: dict[str, float] = {}

    def read(self) -> Seen:
        """Ask every device what it does and what it has counted."""
        started_at, started = self._clock(), self._monotonic()
        states = self._readers.states(self.site)
        counters = self._readers.counters(self.site)
        failed = {**counters.failed, **states.failed}
        return Seen(
            started_at,
            dict(states.states),
            dict(counters.snapshots),
            {name: str(error) for name, error in failed.items()},
            self._monotonic() - started,
            self._monotonic(),
        )

    def conclude(self, seen: Seen) -> Round:
        """Judge a round, revoke where that is due, and keep it.

        Raises InputError where something cannot be written, JudgedBadError where the
        revocation list cannot be believed.
        """
        found, refused = self._certificate()
        reading = reading_of(
            self.site,
            found,
            certified_states(self.site, found) if found else {},
            seen.states,
            seen.failed,
            seen.started_at,
            self.interval_s,
        )
        findings = fabric_findings(self.site, found, reading)
        if found is not None:
            before = self._since(found)
            findings += counter_findings(
                self.site,
                found,
                before,
                seen.snapshots,
                self.max_pause_share,
                {name: seen.ended_s - read_s for name, read_s in self._read_s.items()},
            )
        if refused is not None:
            findings.insert(0, Finding("certificate", "", "", str(refused), voids=False))
        void = [finding for finding in findings if finding.voids]
        revoking = bool(void) and found is not None and not refused and self.on_drift == "revoke"
        if revoking and found is not None:
            certificate.revoke(self.site, found.id, _why(void), clock=self._clock)
        write_reading(self.site, reading, self._signer)
        self._before = {**self._before, **seen.snapshots}
        write_baseline(self.site, self._before)
        self._read_s |= dict.fromkeys(seen.snapshots, seen.ended_s)
        reason = "revoked" if revoking else refused.reason if refused else ""
        return Round(seen, reading, found, reason, tuple(findings), revoking)

    def _certificate(self) -> tuple[Certificate | None, GateRefusedError | None]:
        try:
            found = certificate.read(self.site)
        except GateRefusedError as error:
            return None, error
        except InputError as error:
            return None, GateRefusedError(
                error.message, reason="no-certificate", advice=ADVICE_RENEW
            )
        try:
            check(self.site, found, self._clock())
        except GateRefusedError as error:
            return found, error
        return found, None

    def _since(self, found: Certificate) -> dict[str, CounterSnapshot]:
        """Snapshots that are no older than the certificate."""
        issued_s = found.not_before.timestamp()
        return {n: shot for n, shot in self._before.items() if shot.taken_at_s >= issued_s}


def _why(void: list[Finding]) -> str:
    words = [str(finding) for finding in void[:_MAX_REASONS]]
    if len(void) > _MAX_REASONS:
        words.append(f"and {len(void) - _MAX_REASONS} more")
    return f"paisoar watch: {'; '.join(words)}"
