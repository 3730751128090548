"""What one end of a cable does, in the words of one subject.

A rule about a cable names one of these; its findings then quote both ends, so that
whoever reads one need not log in to the other device to know which end is wrong.
"""

from __future__ import annotations

from fabric.audit.rule import Wanted, numbers
from fabric.qos import DSCP_COUNT, Dcqcn, Ecn, PortFacts, PortQos, Queue, Watchdog
from fabric.units import format_speed

_NIC_MARKS_NOTHING = "a NIC, which marks nothing itself"


def pfc(_: Wanted, port: PortQos, facts: PortFacts) -> str:
    """Which priorities pause, and how that is configured."""
    mode = f" (mode {facts.pfc_mode})" if facts.pfc_mode else ""
    return f"PFC on {numbers(port.pfc_priorities)}{mode}"


def link_pause(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """Link pause, beside PFC."""
    return f"link pause {'on' if port.link_pause else 'off'}, {pfc(wanted, port, facts)}"


def trust(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """What the port classifies by."""
    return f"trusts {port.trust}"


def dscps(wanted: Wanted, port: PortQos, _: PortFacts) -> str:
    """Where the DSCPs go that the intent names."""
    named = [dscp for cls in wanted.site.intent.classes.values() for dscp in cls.dscp]
    return ", ".join(f"DSCP {dscp} -> priority {port.priority_of_dscp(dscp)}" for dscp in named)


def cnps(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """The same, and how a NIC marks CNPs."""
    held = port.nic.dcqcn if port.nic else None
    if held is None:
        return dscps(wanted, port, facts)
    return f"CNPs get {_marks(held)}; {dscps(wanted, port, facts)}"


def classes(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """Which traffic class each priority leaves by."""
    return f"priorities 0 to 7 -> traffic classes {', '.join(map(str, port.priority_to_class))}"


def mtu(_: Wanted, port: PortQos, facts: PortFacts) -> str:
    """The port's MTU, those of its priorities where they differ, and RDMA's."""
    rest = set(port.class_mtu_bytes) - {port.mtu_bytes}
    parts = [f"MTU {port.mtu_bytes}"]
    parts += [f"of its priorities {', '.join(map(str, port.class_mtu_bytes))}"] if rest else []
    parts += [f"RDMA {facts.rdma_mtu_bytes}"] if facts.rdma_mtu_bytes is not None else []
    return ", ".join(parts)


def marking(ecn: Ecn) -> str:
    """Between which depths packets are marked."""
    return f"from {ecn.kmin_bytes} to {ecn.kmax_bytes} B up to {ecn.pmax_percent} %"


def ecn(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """Which queues are marked, and from where."""
    marked = [f"{q.traffic_class} {marking(q.ecn)}" for q in port.queues if q.ecn is not None]
    if not marked:
        return "ECN in no traffic class" if port.nic is None else _NIC_MARKS_NOTHING
    return f"ECN in traffic class {', '.join(marked)}"


def xoff(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """Marks, beside the depth at which the port pauses its peer."""
    return f"{ecn(wanted, port, facts)}; {buffers(wanted, port, facts)}"


def served(queue: Queue | None) -> str:
    """How a queue is served."""
    if queue is None:
        return "not there"
    return "strict" if queue.scheduler.mode == "strict" else f"ets {queue.scheduler.percent} %"


def shares(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """How the queues are served."""
    return ", ".join(f"{queue.traffic_class}: {served(queue)}" for queue in port.queues) or "none"


def strict(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """The same, and which DSCPs enter CNPs' queue."""
    inside = [dscp for dscp in range(DSCP_COUNT) if port.class_of_dscp(dscp) == wanted.cnp]
    return f"{shares(wanted, port, facts)}; DSCPs in {wanted.cnp}: {numbers(inside)}"


def limits(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """What a class may send at most."""
    caps = [
        f"{q.traffic_class}: {format_speed(q.max_rate_bps)}" for q in port.queues if q.max_rate_bps
    ]
    return f"limits {', '.join(caps)}" if caps else "no limits"


def buffers(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """The receive buffers of lossless priorities."""
    held = [
        f"priority {b.priority}: {b.size_bytes} B, "
        + (f"alpha {b.alpha:g}, " if b.alpha is not None else "")
        + f"XOFF at {b.xoff_bytes}, XON at {b.xon_bytes}"
        for b in port.ingress_buffers
    ]
    return f"buffers {'; '.join(held)}" if held else "no lossless buffer"


def times(watchdog: Watchdog) -> str:
    """A watchdog's times."""
    detect = "default" if watchdog.detect_ms is None else f"{watchdog.detect_ms} ms"
    restore = "default" if watchdog.restore_ms is None else f"{watchdog.restore_ms} ms"
    return f"{detect} to detect, {restore} to restore"


def watchdog(_: Wanted, port: PortQos, __: PortFacts) -> str:
    """The PFC watchdog."""
    if port.watchdog is None:
        return "no PFC watchdog"
    return f"PFC watchdog: {port.watchdog.action}, {times(port.watchdog)}"


def dcbx(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """Who decides about PFC: on a NIC the operating system or firmware, on a switch its mode."""
    shown = pfc(wanted, port, facts)
    return f"DCBX {port.nic.dcbx} controlled, {shown}" if port.nic else shown


def cable(_: Wanted, port: PortQos, facts: PortFacts) -> str:
    """For which cable the headroom was computed."""
    if port.nic is not None:
        return f"headroom for a cable of {port.nic.cable_m} m"
    if facts.headroom_cable_m is None:
        return "headroom set by hand, not by a cable's length"
    low, high = facts.headroom_cable_m
    return f"headroom for cables of {low} to {high} m"


def tos(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """How a NIC marks RDMA; what the other end makes of such marks."""
    if port.nic is None:
        return dscps(wanted, port, facts)
    return (
        f"TOS of rdma_cm {_byte(port.nic.rdma_cm_tos)}, "
        f"traffic class of verbs {_byte(port.nic.verbs_traffic_class)}"
    )


def _byte(value: int | None) -> str:
    return "not set" if value is None else str(value)


def dcqcn(wanted: Wanted, port: PortQos, facts: PortFacts) -> str:
    """Which priorities a NIC controls, and how it marks CNPs; how the other end marks."""
    if port.nic is None:
        return f"{ecn(wanted, port, facts)}; {dscps(wanted, port, facts)}"
    held = port.nic.dcqcn
    if held is None:
        return "DCQCN off"
    return (
        f"DCQCN notifies on {numbers(held.np_priorities)}, reacts on "
        f"{numbers(held.rp_priorities)}, CNPs get {_marks(held)}"
    )


def _marks(held: Dcqcn) -> str:
    return f"DSCP {held.cnp_dscp}, priority {held.cnp_priority}"
