"""Congestion control at work: marks, notifications, pauses. Judged under incast only."""

from __future__ import annotations

from fabric.topology import PortRef
from validation import causes
from validation.criteria import Check, Judge
from validation.observation import Observation

# Notifications that are still on their way, or lost, when counters are read.
_HANDLED_SHARE = 0.9


def dcqcn_checks(observation: Observation, receivers: tuple[PortRef, ...]) -> list[Check]:
    """``ecn``, ``cnp``, ``cnp-handled``, ``cnp-ignored``, ``pause-ratio``.

    ``receivers`` are the NIC ports that an incast was sent to: each must have
    seen marked packets and have sent notifications.
    """
    checks = []
    for receiver in receivers:
        checks.append(
            _moved(observation, "ecn", receiver, "np_ecn_marked_packets", "marked packets")
        )
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
            said = observation.deltas.why_missing(port.device, "rx_pause_us")
            if delta is None and said:
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
                f"PFC does the work of ECN; {causes.no_reaction(observation)}",
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
                    shown = True
                    if delta.priority not in lossless and delta.known and delta.value:
                        stray += delta.value
                        worst = delta
        if not shown:
            said = observation.deltas.why_missing(device, "rx_pause_frames")
            reason = said or f"{device} shows no PFC counters"
            make = judge.skipped if said else judge.failed
            checks.append(make("pause-priority", device, reason))
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
            delta = observation.deltas.get(*port, "tx_pause_frames", observation.priority)
            if delta is not None and delta.known:
                shown = True
                frames += delta.value
    if not shown:
        return [judge.failed("pfc", "fabric", "no switch shows the PFC frames that it sent")]
    reason = (
        f"no switch sent a PFC frame in priority {observation.priority} although all hosts "
        "sent to one: PFC is off, or the traffic was not in that priority"
    )
    return [judge.at_least("pfc", "fabric", frames, 1, "frames", reason=reason)]


def _moved(observation: Observation, check: str, receiver: PortRef, name: str, unit: str) -> Check:
    judge = Judge(observation, "counters")
    if receiver.device in observation.unread:
        what = observation.unread[receiver.device]
        return judge.failed(check, receiver, f"its counters were not read: {what}", receiver)
    delta = observation.deltas.get(*receiver, name)
    if delta is None or not delta.known:
        said = observation.deltas.why_missing(receiver.device, name)
        if delta is None and said:
            return judge.skipped(check, receiver, f"{receiver}: {said}")
        status = "is not shown" if delta is None else f"is unknown ({delta.status})"
        return judge.failed(check, receiver, f"{receiver}: {name} {status}", receiver)
    cause = causes.no_marks(observation, receiver)
    at = receiver
    if check == "ecn" and "ECN is off" in cause:
        at = observation.site.topology.peer(receiver)
    return judge.at_least(
        check,
        receiver,
        delta.value,
        1,
        unit,
        reason=f"no {unit} at {receiver} under incast: {cause}",
        at=at,
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
                said = observation.deltas.why_missing(port.device, name)
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
                    reason=f"{port} ignored {ignored.value:,} CNPs: its reaction point is off",
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
