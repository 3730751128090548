"""What happened to a certified fabric between two readings: pure judgement, no I/O.

A finding that ``voids`` is one that the certificate did not survive: the fabric is
another, or has lost packets, or has been down since it was measured. Others are told
and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from fabric.counters import CounterSnapshot
from fabric.site import Site
from fabric.topology import PortRef
from validation.boots import boot_known, rebooted
from validation.certificates.certificate import Certificate
from validation.counters import Delta, Deltas
from validation.watch.compare import drifted
from validation.watch.reading import Reading

Kind = Literal[
    "drift",
    "link-down",
    "link-flap",
    "pause-storm",
    "drops",
    "reboot",
    "errors",
    "unread",
    "certificate",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Paused for longer than this share of the time, a class as good as stands still.
MAX_PAUSE_SHARE = 0.5
_STORMS = {
    "watchdog_storms": "the PFC watchdog acted on {} storms",
    "tx_pause_storm_errors": "it paused its switch beyond the limit {} times",
}
_ERRORS = ("rx_crc_errors", "rx_icrc_errors", "tx_pause_storm_warnings")
# By priority, and the port's total that stands in where a device shows no finer one.
_DROPS = (("rx_prio_discards", "rx_discards"), ("queue_drops", "tx_discards"))
JUDGED = frozenset(
    (
        *_STORMS,
        *_ERRORS,
        *(name for names in _DROPS for name in names),
        "link_down_events",
        "rx_pause_us",
        "rx_packets",
        "tx_packets",
    )
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that happened, where, and in words."""

    kind: Kind
    device: str
    port: str
    message: str
    voids: bool

    def __str__(self) -> str:
        where = " ".join(part for part in (self.device, self.port) if part)
        return f"{self.kind}: {where}: {self.message}" if where else f"{self.kind}: {self.message}"


def fabric_findings(site: Site, found: Certificate | None, reading: Reading) -> list[Finding]:
    """Devices that changed or did not answer, links that are down."""
    findings = []
    if found is not None:
        for name, changes in drifted(found, reading).items():
            for line in changes or (f"{name}: it is not what was certified",):
                port, message = _placed(site, name, line)
                findings.append(Finding("drift", name, port, message, voids=True))
    for link in reading.down:
        end = PortRef.parse(link.a)
        findings.append(Finding("link-down", end.device, end.port, link.why, voids=True))
    findings += [
        Finding("unread", name, "", device.error, voids=False)
        for name, device in reading.devices.items()
        if device.error
    ]
    return findings


def _placed(site: Site, device: str, line: str) -> tuple[str, str]:
    """Port and words of a line such as ``leaf1: Ethernet1/1: mtu_bytes: 9216 -> 1500``."""
    text = line.removeprefix(f"{device}: ")
    port, colon, rest = text.partition(": ")
    cabled = {end.port for end in site.topology.ports_of.get(device, ())}
    return (port, rest) if colon and port in cabled else ("", text)


def counter_findings(
    site: Site,
    found: Certificate,
    before: Mapping[str, CounterSnapshot],
    after: Mapping[str, CounterSnapshot],
    max_pause_share: float = MAX_PAUSE_SHARE,
    elapsed_s: Mapping[str, float] | None = None,
) -> list[Finding]:
    """What the counters of devices moved by between two snapshots of each.

    Only devices that both sides have; ``before`` must not be older than the
    certificate, or what it was measured with would be held against it. ``elapsed_s``: the
    time between both of a device, where it is known better than by the snapshots' own clock,
    which may have been set back meanwhile.
    """
    both = [name for name in after if name in before]
    deltas = Deltas.between({n: before[n] for n in both}, {n: after[n] for n in both})
    findings: list[Finding] = []
    for name in both:
        by_clock = after[name].taken_at_s - before[name].taken_at_s
        elapsed = (elapsed_s or {}).get(name)
        seconds = by_clock if elapsed is None else elapsed
        findings += _reboot(deltas, name, before[name], after[name], elapsed)
        for end in site.topology.ports_of.get(name, ()):
            findings += _flaps(deltas, end)
            findings += _storms(site, deltas, end, seconds, max_pause_share)
            findings += _drops(site, found, deltas, end)
            findings += _errors(deltas, end)
    return findings


def _moved(deltas: Deltas, end: PortRef, name: str, priority: int | None = None) -> int:
    delta = deltas.get(*end, name, priority)
    return delta.value if delta is not None and delta.known else 0


def _reboot(
    deltas: Deltas,
    device: str,
    before: CounterSnapshot,
    after: CounterSnapshot,
    elapsed_s: float | None,
) -> Iterator[Finding]:
    if said := rebooted(before, after, elapsed_s):
        yield Finding("reboot", device, "", said, voids=True)
    elif resets := deltas.resets(device):
        first: Delta = min(resets, key=lambda delta: (delta.port, delta.name))
        at = f" of {first.port}" if first.port else ""
        text = (
            f"{len(resets)} counters went back ({first.name}{at}: {first.before} -> "
            f"{first.after}): "
        )
        if boot_known(before, after):
            text += "somebody cleared them, or its driver was loaded anew; it did not reboot"
        else:
            text += "it rebooted, or somebody cleared them"
        yield Finding("reboot", device, "", text, voids=True)


def _flaps(deltas: Deltas, end: PortRef) -> Iterator[Finding]:
    if times := _moved(deltas, end, "link_down_events"):
        text = f"the link went down {times} times"
        yield Finding("link-flap", *end, text, voids=True)


def _storms(
    site: Site, deltas: Deltas, end: PortRef, seconds: float, max_share: float
) -> Iterator[Finding]:
    for name, words in _STORMS.items():
        times = sum(delta.value for delta in deltas.named(*end, name) if delta.known)
        if times:
            yield Finding("pause-storm", *end, words.format(times), voids=True)
    for priority in lossless_priorities(site):
        paused_us = _moved(deltas, end, "rx_pause_us", priority)
        share = paused_us / (seconds * 1e6) if seconds > 0 else 0.0
        if share > max_share:
            text = (
                f"priority {priority} was paused for {min(share, 1):.0%} of {seconds:.0f} s "
                f"(limit {max_share:.0%})"
            )
            yield Finding("pause-storm", *end, text, voids=True)


def _drops(site: Site, found: Certificate, deltas: Deltas, end: PortRef) -> Iterator[Finding]:
    profile = found.predicate.profile
    if profile.name == "lossy-tolerant":
        return
    limit = int(profile.thresholds.get("max_drops", 0))
    for fine, coarse in _DROPS:
        shown = deltas.named(*end, fine)
        for priority in lossless_priorities(site):
            dropped = _moved(deltas, end, fine, priority)
            if dropped > limit:
                text = f"{dropped:,} packets of the lossless priority {priority} dropped ({fine})"
                yield Finding("drops", *end, text, voids=True)
        if not shown and (dropped := _moved(deltas, end, coarse)):
            text = f"{dropped:,} packets dropped ({coarse}); of which priority it does not show"
            yield Finding("drops", *end, text, voids=False)


def _errors(deltas: Deltas, end: PortRef) -> Iterator[Finding]:
    for name in _ERRORS:
        if times := _moved(deltas, end, name):
            yield Finding("errors", *end, f"{name} rose by {times:,}", voids=False)


def lossless_priorities(site: Site) -> tuple[int, ...]:
    """Priorities that must not lose a packet; also the queues and traffic classes."""
    return tuple(sorted({c.priority for c in site.intent.classes.values() if c.lossless}))
