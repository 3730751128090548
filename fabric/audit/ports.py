"""Rules that hold for every cabled port, of a switch or a NIC."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule
from fabric.qos import PortQos, Scheduler


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "none"


@rule("port-missing", "error", "What is not there cannot carry traffic.")
def port_missing(subject: Subject) -> Iterator[Fault | Skip]:
    """Every cabled port exists on the device."""
    for port in subject.intended.ports:
        if subject.live.port(port.name) is None:
            yield Fault("the device shows no such port", port.name)


@rule("pfc", "error", "Without PFC at both ends of a cable, congestion drops RDMA packets.")
def pfc(subject: Subject) -> Iterator[Fault | Skip]:
    """Both ends pause the lossless priorities, and only these."""
    for live, intended in subject.ports():
        if live.pfc_priorities == intended.pfc_priorities:
            continue
        peer, far = subject.far_end(live.name)
        evidence = [
            f"{subject.live.device}:{live.name}: PFC on {_numbers(live.pfc_priorities)}",
            f"{peer}: PFC on {_numbers(far.pfc_priorities) if far else 'not read'}",
        ]
        missing = tuple(sorted(set(intended.pfc_priorities) - set(live.pfc_priorities)))
        if missing:
            yield Fault(f"PFC is off for priority {_numbers(missing)}", live.name, tuple(evidence))
        else:
            extra = tuple(sorted(set(live.pfc_priorities) - set(intended.pfc_priorities)))
            yield Fault(
                f"PFC is on for priority {_numbers(extra)}, which is lossy",
                live.name,
                tuple(evidence),
            )


@rule("trust", "error", "Untagged routed packets carry no PCP: all of them land in priority 0.")
def trust(subject: Subject) -> Iterator[Fault | Skip]:
    """Ports classify by DSCP."""
    for live, intended in subject.ports():
        if live.trust != intended.trust:
            yield Fault(f"trusts {live.trust}, not {intended.trust}", live.name)


@rule("dscp-map", "error", "A packet that changes its class on the way loses PFC and ECN there.")
def dscp_map(subject: Subject) -> Iterator[Fault | Skip]:
    """Every DSCP is put into the priority that the intent gives it."""
    for live, intended in subject.ports():
        wrong = [
            f"DSCP {dscp} -> priority {got} (should be {wanted})"
            for dscp, (got, wanted) in enumerate(
                zip(live.dscp_to_priority, intended.dscp_to_priority, strict=True)
            )
            if got != wanted
        ]
        if wrong:
            peer, far = subject.far_end(live.name)
            yield Fault(
                _first(wrong, "DSCPs map to the wrong priority"),
                live.name,
                (*wrong[:8], f"{peer}: {_map_of(far, subject)}"),
            )


def _map_of(far: PortQos | None, subject: Subject) -> str:
    if far is None:
        return "not read"
    dscps = [dscp for cls in subject.site.intent.classes.values() for dscp in cls.dscp]
    return ", ".join(f"DSCP {dscp} -> priority {far.priority_of_dscp(dscp)}" for dscp in dscps)


def _first(wrong: list[str], summary: str) -> str:
    return wrong[0] if len(wrong) == 1 else f"{len(wrong)} {summary}, e.g. {wrong[0]}"


@rule("class-map", "error", "PFC then pauses another queue than the one that fills the buffer.")
def class_map(subject: Subject) -> Iterator[Fault | Skip]:
    """Every priority leaves by its own traffic class."""
    for live, intended in subject.ports():
        wrong = [
            f"priority {priority} -> traffic class {got} (should be {wanted})"
            for priority, (got, wanted) in enumerate(
                zip(live.priority_to_class, intended.priority_to_class, strict=True)
            )
            if got != wanted
        ]
        if wrong:
            yield Fault(_first(wrong, "priorities map to the wrong class"), live.name, tuple(wrong))


@rule("mtu", "error", "Packets that are too long for one hop are dropped there, every one.")
def mtu(subject: Subject) -> Iterator[Fault | Skip]:
    """Port and class MTU are what the intent says."""
    for live, intended in subject.ports():
        if live.mtu_bytes != intended.mtu_bytes:
            peer, far = subject.far_end(live.name)
            yield Fault(
                f"MTU is {live.mtu_bytes}, should be {intended.mtu_bytes}",
                live.name,
                (f"{peer}: MTU {far.mtu_bytes if far else 'not read'}",),
            )
        for cls in subject.site.intent.classes.values():
            got = live.class_mtu_bytes[cls.priority]
            wanted = intended.class_mtu_bytes[cls.priority]
            if got not in (wanted, live.mtu_bytes):
                yield Fault(
                    f"MTU of priority {cls.priority} is {got}, should be {wanted}", live.name
                )


@rule("ecn", "error", "Without marks senders never slow down: PFC has to stop whole links instead.")
def ecn(subject: Subject) -> Iterator[Fault | Skip]:
    """The RoCE queue is marked between Kmin and Kmax; no other queue is."""
    for live, intended in subject.ports():
        for wanted in intended.queues:
            got = live.queue(wanted.traffic_class)
            found = got.ecn if got else None
            if found == wanted.ecn:
                continue
            where = f"traffic class {wanted.traffic_class}"
            if found is None:
                yield Fault(f"ECN is off in {where}", live.name)
            elif wanted.ecn is None:
                yield Fault(f"ECN is on in {where}, which is not for RoCE", live.name)
            else:
                yield Fault(
                    f"ECN in {where} marks from {found.kmin_bytes} to {found.kmax_bytes} B up to "
                    f"{found.pmax_percent} %, should be {wanted.ecn.kmin_bytes} to "
                    f"{wanted.ecn.kmax_bytes} B, {wanted.ecn.pmax_percent} %",
                    live.name,
                )


@rule("scheduler", "error", "Classes then do not get the shares that the intent promises them.")
def scheduler(subject: Subject) -> Iterator[Fault | Skip]:
    """CNPs go first, the other classes share as the intent says."""
    for live, intended in subject.ports():
        for wanted in intended.queues:
            got = live.queue(wanted.traffic_class)
            if got is not None and got.scheduler != wanted.scheduler:
                yield Fault(
                    f"traffic class {wanted.traffic_class} is {_served(got.scheduler)}, "
                    f"should be {_served(wanted.scheduler)}",
                    live.name,
                )


def _served(scheduler: Scheduler) -> str:
    return "strict" if scheduler.mode == "strict" else f"ets {scheduler.percent} %"


@rule("buffer", "error", "Too little headroom drops packets that PFC was to save.")
def buffer(subject: Subject) -> Iterator[Fault | Skip]:
    """Lossless priorities have their buffer, XOFF and headroom."""
    for live, intended in subject.ports():
        for wanted in intended.ingress_buffers:
            got = live.ingress_buffer(wanted.priority)
            if got == wanted:
                continue
            if got is None:
                yield Fault(f"priority {wanted.priority} has no lossless buffer", live.name)
            else:
                yield Fault(
                    f"buffer of priority {wanted.priority} is {got.size_bytes} B with XOFF at "
                    f"{got.xoff_bytes} and XON at {got.xon_bytes}, should be "
                    f"{wanted.size_bytes} B, {wanted.xoff_bytes} and {wanted.xon_bytes}",
                    live.name,
                )


@rule("link-pause", "error", "802.3x pause stops every class, and PFC with it.")
def link_pause(subject: Subject) -> Iterator[Fault | Skip]:
    """Link pause is off where PFC is used."""
    for live, intended in subject.ports():
        if live.link_pause and not intended.link_pause:
            yield Fault("link pause (802.3x) is on", live.name)


@rule("watchdog", "warning", "A NIC that pauses for ever then stops the whole fabric.")
def watchdog(subject: Subject) -> Iterator[Fault | Skip]:
    """The PFC watchdog guards every switch port."""
    for live, intended in subject.ports():
        if intended.watchdog is None or live.watchdog == intended.watchdog:
            continue
        if live.watchdog is None:
            yield Fault("the PFC watchdog is off", live.name)
        else:
            yield Fault(
                f"the PFC watchdog is {live.watchdog}, should be {intended.watchdog}", live.name
            )
