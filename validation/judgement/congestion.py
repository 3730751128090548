"""Congestion control at work: marks, notifications, pauses. Judged under incast only."""

from __future__ import annotations

from fabric.topology import PortRef
from validation.criteria import Check, Judge
from validation.judgement import causes
from validation.judgement.observation import Observation

# Notifications that are still on their way, or lost, when counters are read.
_HANDLED_SHARE = 0.9


def dcqcn_checks(observation: Observation, receivers: tuple[PortRef, ...]) -> list[Check]:
    """``ecn``, ``cnp``, ``cnp-handled``, ``cnp-ignored``, ``pause-ratio``.

    ``receivers`` are the NIC ports that an incast was sent to: each must have
    seen marked packets and have sent notifications.
    """
    checks = []
    for receiver in receivers:
        checks.append(_marked(observation, receiver))
        checks.append(_moved(observation, "cnp", receiver, "np_cnp_sent", "CNPs"))
    return [*checks, *_handled(observation), *pause_ratio_checks(observation)]


def pause_ratio_checks(observation: Observation) -> list[Check]:
    """``pause-ratio``: the share of the time for which each NIC's RDMA priority was paused."""
    judge = Judge(observation, "counters")
    limit = observation.criteria.max_pause_ratio
    checks = []
    for port in observation.site.topology.endpoints:
        if port.device in observation.unread:
            continue
        delta = observation.deltas.get(*port, "rx_pause_us", observation.priority)
        if delta is None or not delta.known:
            said = observation.deltas.why_missing(
                port.device, "rx_pause_us", port.port, observation.priority
            )
            if delta is None and said and "PFC is off" not in said:
                checks.append(judge.skipped("pause-ratio", port, f"{port}: {said}"))
            else:
                checks.append(
                    judge.failed(
                        "pause-ratio",
                        port,
                        f"{port} does not show how long priority {observation.priority} was "
                        "paused: a NIC shows that only where PFC is on for it",
                        port,
                    )
                )
            continue
        ratio = delta.value / observation.traffic_us if observation.traffic_us else 0.0
        checks.append(
            judge.at_most(
                "pause-ratio",
                port,
                ratio,
                limit,
                "of the time",
                reason=f"{port} was paused for {ratio:.1%} of the time (limit {limit:.1%}): "
                f"PFC does the work of ECN; {causes.much_pause(observation)}",
                at=port,
            )
        )
    return checks


def pause_priority_checks(observation: Observation) -> list[Check]:
    """``pause-priority``: PFC frames in the lossless priorities only, on every device."""
    judge = Judge(observation, "counters")
    lossless = {c.priority for c in observation.site.intent.classes.values() if c.lossless}
    checks = []
    for device in observation.plan.snapshot:
        if device in observation.unread:
            continue
        stray, shown, worst = 0, False, None
        for port in observation.cabled(device):
            for name in ("rx_pause_frames", "tx_pause_frames"):
                for delta in observation.deltas.named(*port, name):
                    if delta.priority is None:
                        continue  # a port's total says nothing about priorities
                    shown = True
                    if delta.priority not in lossless and delta.known and delta.value:
                        stray += delta.value
                        worst = delta
        if not shown:
            checks.append(
                judge.skipped("pause-priority", device, f"{device} shows no PFC frames by priority")
            )
            continue
        checks.append(
            judge.at_most(
                "pause-priority",
                device,
                stray,
                0,
                "frames",
                reason=f"{worst.label} moved by {worst.value:,}: "
                "PFC pauses a class that must not be paused"
                if worst
                else "",
                at=PortRef(device, worst.port) if worst else "",
            )
        )
    return checks


def pfc_checks(observation: Observation) -> list[Check]:
    """``pfc``: under incast without DCQCN somebody must have sent PFC frames."""
    judge = Judge(observation, "counters")
    frames = 0
    shown = False
    for device in observation.site.topology.switches:
        for port in observation.cabled(device):
            for delta in observation.deltas.named(*port, "tx_pause_frames"):
                if delta.known and delta.priority in (None, observation.priority):
                    shown = True
                    frames += delta.value
    if not shown:
        return [judge.failed("pfc", "fabric", "no switch shows the PFC frames that it sent")]
    reason = (
        f"no switch sent a PFC frame in priority {observation.priority} although all hosts "
        "sent to one: PFC is off, or the traffic was not in that priority"
    )
    return [judge.at_least("pfc", "fabric", frames, 1, "frames", reason=reason)]


def _marked(observation: Observation, receiver: PortRef) -> Check:
    """Marks of the congested queue itself: the switch port in front of the receiver.

    Where that switch does not count them, what the receiver saw stands in, which
    may have been marked elsewhere.
    """
    judge = Judge(observation, "counters")
    last_hop = observation.site.topology.peer(receiver)
    delta = observation.deltas.get(*last_hop, "ecn_marked_packets", observation.priority)
    if delta is None or not delta.known or last_hop.device in observation.unread:
        return _moved(observation, "ecn", receiver, "np_ecn_marked_packets", "marked packets")
    return judge.at_least(
        "ecn",
        receiver,
        delta.value,
        1,
        "marked packets",
        reason=f"{last_hop} marked no packet although many sent to {receiver}: "
        f"{causes.no_marks(observation, receiver)}",
        at=last_hop,
    )


def _moved(observation: Observation, check: str, receiver: PortRef, name: str, unit: str) -> Check:
    judge = Judge(observation, "counters")
    if receiver.device in observation.unread:
        what = observation.unread[receiver.device]
        return judge.failed(check, receiver, f"its counters were not read: {what}", receiver)
    delta = observation.deltas.get(*receiver, name)
    if delta is None or not delta.known:
        said = observation.deltas.why_missing(receiver.device, name, receiver.port)
        if delta is None and said:
            return judge.skipped(check, receiver, f"{receiver}: {said}")
        status = "is not shown" if delta is None else f"is unknown ({delta.status})"
        return judge.failed(check, receiver, f"{receiver}: {name} {status}", receiver)
    cause = causes.no_marks(observation, receiver)
    return judge.at_least(
        check,
        receiver,
        delta.value,
        1,
        unit,
        reason=f"no {unit} at {receiver} under incast: {cause}",
        at=receiver,
    )


def _handled(observation: Observation) -> list[Check]:
    """CNPs of all receivers against those that all senders acted on."""
    judge = Judge(observation, "counters")
    totals = {"np_cnp_sent": 0, "rp_cnp_handled": 0}
    checks = []
    for port in observation.site.topology.endpoints:
        if port.device in observation.unread:
            return []
        for name in totals:
            delta = observation.deltas.get(*port, name)
            if delta is None or not delta.known:
                said = observation.deltas.why_missing(port.device, name, port.port)
                if delta is None and said:
                    return [judge.skipped("cnp-handled", "fabric", f"{port}: {said}")]
                return [judge.failed("cnp-handled", "fabric", f"{port} does not show {name}", port)]
            totals[name] += delta.value
        ignored = observation.deltas.get(*port, "rp_cnp_ignored")
        if ignored is not None and ignored.known:
            checks.append(
                judge.at_most(
                    "cnp-ignored",
                    port,
                    ignored.value,
                    0,
                    "CNPs",
                    reason=f"{port} ignored {ignored.value:,} CNPs: "
                    f"{causes.ignored(observation, port)}",
                    at=port,
                )
            )
    sent, handled = totals["np_cnp_sent"], totals["rp_cnp_handled"]
    if not sent:
        checks.append(judge.failed("cnp-handled", "fabric", "no CNP was sent at all"))
        return checks
    reason = (
        f"{sent:,} CNPs were sent, {handled:,} slowed a sender: {causes.no_reaction(observation)}"
    )
    checks.append(
        judge.at_least(
            "cnp-handled", "fabric", handled / sent, _HANDLED_SHARE, "of CNPs", reason=reason
        )
    )
    return checks
