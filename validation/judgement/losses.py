"""Nothing lost: drops of every device, retransmissions of every host, cable errors.

Drop counters come in two grains, per priority and per port. The finer one is
used where a device shows it; the port's total stands in where it does not, which
is stricter. A port that shows neither proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fabric.topology import PortRef
from validation.counters import Delta
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.observation import Observation

RETRANSMISSIONS = (
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "duplicate_request",
)
ERRORS = ("rx_crc_errors", "rx_icrc_errors", "link_down_events", "tx_pause_storm_errors")
ERRORS_OF_HOSTS = {"rx_icrc_errors", "tx_pause_storm_errors"}

# (side, counter of the RDMA priority, counter of the whole port)
DROPS = (
    ("ingress", "rx_prio_discards", "rx_discards"),
    ("egress", "queue_drops", "tx_discards"),
)

# Snapshots of two devices are taken apart in time, and a link never is quite idle.
_CABLE_SLACK_PACKETS = 200
_CABLE_SLACK_SHARE = 0.001

# Suites in which no flow meets another: nobody has a reason to lose a packet there.
_ALONE = ("preflight", "latency")

_SOFTWARE = "Soft-RoCE neither obeys a pause nor slows down when marked"
_NO_PROOF = "Soft-RoCE: that nothing was lost here shows no lossless class"


@dataclass(frozen=True, slots=True)
class _Drop:
    port: PortRef
    side: str
    packets: int
    priority: int | None


def loss_checks(observation: Observation, *, lossy_too: bool = False) -> list[Check]:
    """``loss``: one check a device that lost nothing, one a port that did.

    Under a profile that may lose, drops where flows meet are named and not judged.

    ``lossy_too``: traffic that may be lost was sent beside. Drops that are counted for
    all classes together then prove nothing, unless the port's settings explain them.
    """
    judge = Judge(observation, "counters")
    limit = observation.criteria.max_drops
    checks: list[Check] = []
    for device in observation.plan.snapshot:
        if device in observation.unread:
            checks.append(_unread(judge, "loss", device))
            continue
        drops, unproven, excused = _drops_of(observation, device)
        if lossy_too:
            drops, mixed = _told_apart(observation, drops)
            excused = excused or mixed
        checks += [judge.failed("loss", port, reason, port) for port, reason in unproven]
        if excused and _counts_one_side(observation, device):
            reason = f"{excused}; judged by what it counts, and by its switch"
            checks.append(judge.skipped("uncounted", f"{device} drops", reason))
            excused = ""
        if drops and sum(drop.packets for drop in drops) > limit:
            for drop in drops:
                text = f"{drop.port.device} {drop.port.port}: {_reason(observation, drop)}"
                if not observation.lossless and observation.plan.suite not in _ALONE:
                    reason = f"{text}; the profile lossy-tolerant lets it, where flows meet"
                    checks.append(judge.skipped("loss", drop.port, reason))
                    continue
                if drop.side == "egress" and _software(observation):
                    reason = f"{text}; {_SOFTWARE}: a full queue drops, whatever its settings"
                    checks.append(judge.skipped("loss", drop.port, reason))
                    continue
                checks.append(
                    judge.at_most(
                        "loss", drop.port, drop.packets, limit, "packets", reason=text, at=drop.port
                    )
                )
        elif not unproven and excused:
            checks.append(judge.skipped("loss", device, excused))
        elif not unproven:
            lost = sum(drop.packets for drop in drops)
            caveat = _NO_PROOF if _software(observation) else ""
            checks.append(judge.at_most("loss", device, lost, limit, "packets", caveat=caveat))
    return checks


def _software(observation: Observation) -> bool:
    return observation.evidence_class == "soft-roce"


def _told_apart(observation: Observation, drops: list[_Drop]) -> tuple[list[_Drop], str]:
    """Drops that are RDMA's for all that is known, and why the others say nothing."""
    ours, excuse = [], ""
    for drop in drops:
        explained = drop.side == "ingress" and not causes.ingress_drop(
            observation, drop.port
        ).startswith(causes.UNKNOWN)
        if drop.priority == observation.priority or drop.side == "mtu" or explained:
            ours.append(drop)
        else:
            excuse = (
                f"{drop.port} counts drops of all classes together, {drop.packets:,}: "
                "TCP's may be among them"
            )
    return ours, excuse


def _counts_one_side(observation: Observation, device: str) -> bool:
    """A host each of whose ports counts ingress drops, though not those at egress.

    What a NIC has been given it sends when the class is not paused; a switch, which
    gets more than it can send, must count both.
    """
    if device not in observation.site.topology.hosts:
        return False
    _, fine, coarse = DROPS[0]
    deltas = observation.deltas
    return all(
        deltas.get(*port, fine, observation.priority) or deltas.get(*port, coarse)
        for port in observation.cabled(device)
    )


def retransmission_checks(observation: Observation) -> list[Check]:
    """``retransmission``: NAKs, timeouts and reordering of each host, all of them zero.

    A NIC that counts none of them is named (``uncounted``) and judged by what makes one
    send again: packets that were dropped anywhere. What Soft-RoCE sends again is named and
    not judged.
    """
    return list(_zero(observation, "retransmission", observation.site.topology.hosts))


def _by_drops(observation: Observation, check: str, device: str, said: str) -> Iterator[Check]:
    judge = Judge(observation, "counters")
    lost, unproven = 0, ""
    for other in observation.plan.snapshot:
        if other in observation.unread:
            unproven = f"{other} was not read"
            continue
        drops, holes, excused = _drops_of(observation, other)
        lost += sum(drop.packets for drop in drops)
        if holes:
            unproven = holes[0][1]
        elif excused and not _counts_one_side(observation, other):
            unproven = excused
    if unproven:
        yield judge.skipped(check, device, f"{said}; {unproven}")
        return
    reason = f"{said}; judged by packets dropped anywhere on the way"
    yield judge.skipped("uncounted", f"{device} {check}", reason)
    text = f"{lost:,} packets were dropped on the way: its queue pairs had to send again"
    yield judge.at_most(check, device, lost, 0, "packets", reason=text, at=device)


def error_checks(observation: Observation) -> list[Check]:
    """``errors``: bad checksums, link flaps and pause storms of each device."""
    judge = Judge(observation, "counters")
    checks = []
    for device in observation.plan.snapshot:
        if device in observation.unread:
            checks.append(_unread(judge, "errors", device))
            continue
        host = device in observation.site.topology.hosts
        names = tuple(name for name in ERRORS if host or name not in ERRORS_OF_HOSTS)
        checks.append(_sum_is_zero(observation, judge, "errors", device, names))
    return checks


def cable_checks(observation: Observation) -> list[Check]:
    """``cable``: what one end sent, the other end received, in both directions."""
    judge = Judge(observation, "counters")
    checks = []
    for link in observation.site.topology.links:
        for sender, receiver in ((link.a, link.b), (link.b, link.a)):
            if {sender.device, receiver.device} & set(observation.unread):
                continue
            checks.append(_cable(observation, judge, sender, receiver))
    return checks


def _cable(observation: Observation, judge: Judge, sender: PortRef, receiver: PortRef) -> Check:
    deltas = observation.deltas
    subject = f"{sender} -> {receiver}"
    sent = deltas.get(*sender, "tx_packets")
    got = deltas.get(*receiver, "rx_packets")
    for end, delta, name in ((sender, sent, "tx_packets"), (receiver, got, "rx_packets")):
        if delta is None or not delta.known:
            said = deltas.why_missing(end.device, name, end.port)
            if delta is None and said:
                return judge.skipped("cable", subject, f"{end}: {said}")
            return judge.failed("cable", subject, f"{end}: {_unknown(delta, name)}", end)
    assert sent is not None
    assert got is not None
    # Vendors differ in whether PFC frames are among a port's packets.
    pause = sum(
        delta.value
        for end, name in ((sender, "tx_pause_frames"), (receiver, "rx_pause_frames"))
        for delta in deltas.named(*end, name)
    )
    # A packet that is dropped on arrival is counted as received by some only.
    dropped = sum(
        delta.value
        for name in ("rx_crc_errors", "rx_mtu_drops", "rx_discards")
        if (delta := deltas.get(*receiver, name)) is not None
    )
    slack = _CABLE_SLACK_PACKETS + _CABLE_SLACK_SHARE * sent.value + pause + dropped
    lost = abs(sent.value - got.value)
    return judge.at_most(
        "cable",
        subject,
        lost,
        slack,
        "packets",
        reason=f"{sender} sent {sent.value:,} packets, {receiver} received {got.value:,}: "
        "the cable or a transceiver loses packets, or a counter lies",
        at=receiver,
    )


def _drops_of(
    observation: Observation, device: str
) -> tuple[list[_Drop], list[tuple[PortRef, str]], str]:
    """Drops by port; ports that prove nothing, with the reason; a stated excuse."""
    drops: list[_Drop] = []
    unproven: list[tuple[PortRef, str]] = []
    excused = ""
    deltas = observation.deltas
    for port in observation.cabled(device):
        for side, fine, coarse in DROPS:
            delta = deltas.get(*port, fine, observation.priority) or deltas.get(*port, coarse)
            if delta is None:
                said = deltas.why_missing(
                    device, fine, port.port, observation.priority
                ) or deltas.why_missing(device, coarse, port.port)
                if said:
                    excused = f"{device} does not show {side} drops: {said}"
                else:
                    reason = f"{port} shows neither {fine} nor {coarse}: nothing proves no loss"
                    unproven.append((port, reason))
            elif not delta.known:
                unproven.append((port, _unknown(delta, delta.name)))
            else:
                # A port's total holds the packets that were too large as well.
                packets = delta.value
                if delta.name == "rx_discards":
                    packets -= _too_large(observation, port)
                if packets > 0:
                    drops.append(_Drop(port, side, packets, delta.priority))
        if packets := _too_large(observation, port):
            drops.append(_Drop(port, "mtu", packets, None))
    return drops, unproven, excused


def _too_large(observation: Observation, port: PortRef) -> int:
    delta = observation.deltas.get(*port, "rx_mtu_drops")
    return delta.value if delta is not None and delta.known else 0


def _reason(observation: Observation, drop: _Drop) -> str:
    what = "" if drop.priority is None else f" of priority {drop.priority}"
    if drop.side == "mtu":
        cause = causes.too_large(observation, drop.port)
        return f"{drop.packets:,} packets dropped as too large: {cause}"
    if drop.side == "ingress":
        cause = causes.ingress_drop(observation, drop.port)
        return f"{drop.packets:,} packets{what} dropped at ingress: {cause}"
    cause = causes.egress_drop(observation, drop.port, drop.priority)
    return f"{drop.packets:,} packets{what} dropped at egress: {cause}"


def _zero(observation: Observation, check: str, devices: tuple[str, ...]) -> Iterator[Check]:
    judge = Judge(observation, "counters")
    for device in devices:
        if device in observation.unread:
            yield _unread(judge, check, device)
            continue
        found = _sum_is_zero(observation, judge, check, device, RETRANSMISSIONS)
        if found.verdict == "SKIP":
            yield from _by_drops(observation, check, device, found.reason)
        elif found.value is not None and _software(observation):
            yield _of_software(judge, found)
        else:
            yield found


def _of_software(judge: Judge, found: Check) -> Check:
    """What a host counted of retransmissions, as far as it says anything there."""
    if found.verdict == "PASS":
        return replace(found, reason=_NO_PROOF)
    reason = f"{found.reason}; {_SOFTWARE}: under load it loses packets and sends them again"
    return judge.skipped("retransmission", found.subject, reason)


def _sum_is_zero(
    observation: Observation, judge: Judge, check: str, device: str, names: tuple[str, ...]
) -> Check:
    total, worst = 0, None
    absent: dict[str, str] = {}
    shown = 0
    for port in observation.cabled(device):
        for name in names:
            delta = observation.deltas.get(*port, name)
            if delta is None:
                absent[name] = observation.deltas.why_missing(device, name, port.port)
            elif not delta.known:
                return judge.failed(check, device, _unknown(delta, name), port)
            else:
                shown += 1
                total += delta.value
                if delta.value and (worst is None or delta.value > worst.value):
                    worst = delta
    unexcused = [name for name, said in absent.items() if not said]
    if total == 0 and unexcused:
        return judge.failed(
            check, device, f"{device} does not show {', '.join(unexcused)}: nothing proves zero"
        )
    if not shown:
        return judge.skipped(check, device, "; ".join(sorted(set(absent.values()))))
    reason = f"{worst.label} moved by {worst.value:,}" if worst else ""
    at = PortRef(worst.device, worst.port) if worst else ""
    return judge.at_most(check, device, total, 0, "events", reason=reason, at=at)


def _unread(judge: Judge, check: str, device: str) -> Check:
    return judge.failed(
        check, device, f"its counters were not read: {judge.observation.unread[device]}", device
    )


def _unknown(delta: Delta | None, name: str) -> str:
    if delta is None:
        return f"the counter {name} is not shown"
    if delta.status == "reset":
        return (
            f"{delta.label} went from {delta.before:,} to {delta.after:,}: "
            "cleared or rebooted during the test"
        )
    side = "before" if delta.status == "appeared" else "after"
    return f"{delta.label} is not shown {side} the test: its movement is unknown"
