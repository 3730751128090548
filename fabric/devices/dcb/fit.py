"""What a driver can express of an intended port (``normalise``)."""

from __future__ import annotations

import dataclasses

from fabric.devices.dcb.traits import Traits
from fabric.qos import PRIORITY_COUNT, PortQos, Queue, Scheduler

_STRICT = Scheduler("strict")


def fit(port: PortQos, traits: Traits) -> PortQos:
    """Receive buffers and cable length left to the driver, classes as it takes them.

    ECN of an egress queue, a watchdog and other MTUs than the port's are no NIC's.
    """
    nic = port.nic
    if nic is not None:
        nic = dataclasses.replace(nic, cable_m=0)
    known = dict.fromkeys(range(PRIORITY_COUNT), Scheduler("ets", 0))
    known |= {queue.traffic_class: queue.scheduler for queue in port.queues}
    classes = port.priority_to_class
    if traits.fixed_classes:
        known = {p: known[classes[p]] for p in range(PRIORITY_COUNT)}
        classes = tuple(range(PRIORITY_COUNT))
    elif traits.compact:
        classes, known = _compact(port, known)
    if traits.positive_shares:
        known = _positive(known, classes)
    return dataclasses.replace(
        port,
        dscp_to_priority=port.dscp_to_priority if port.trust == "dscp" else (0,) * 64,
        priority_to_class=classes,
        class_mtu_bytes=(port.mtu_bytes,) * PRIORITY_COUNT,
        queues=tuple(Queue(tc, known.get(tc, _STRICT)) for tc in range(PRIORITY_COUNT)),
        ingress_buffers=(),
        watchdog=None,
        nic=nic,
    )


def _compact(
    port: PortQos, schedulers: dict[int, Scheduler]
) -> tuple[tuple[int, ...], dict[int, Scheduler]]:
    """Classes 0, 1, ... for those in use, in their order; unused priorities in class 0."""
    trusted = port.dscp_to_priority if port.trust == "dscp" else (0,)
    used = sorted({port.priority_to_class[p] for p in {*trusted, *port.pfc_priorities, 0}})
    number = {old: new for new, old in enumerate(used)}
    # A share that nobody uses would be missing in the sum of the others.
    kept = {number[old]: schedulers[old] for old in used}
    classes = tuple(number.get(old, 0) for old in port.priority_to_class)
    return classes, _scaled(kept)


def _scaled(schedulers: dict[int, Scheduler]) -> dict[int, Scheduler]:
    """The ETS shares so that they add up to 100 again; all ETS classes alike where none has one."""
    ets = {tc: s.percent for tc, s in schedulers.items() if s.mode == "ets"}
    total = sum(ets.values())
    if not ets or total == 100:
        return schedulers
    shares = {tc: (100 * p // total if total else 100 // len(ets)) for tc, p in ets.items()}
    first = max(shares, key=lambda tc: (shares[tc], -tc))
    shares[first] += 100 - sum(shares.values())
    return schedulers | {tc: Scheduler("ets", share) for tc, share in shares.items()}


def _positive(schedulers: dict[int, Scheduler], classes: tuple[int, ...]) -> dict[int, Scheduler]:
    """1 % for an ETS class without a share, from the largest; unused classes strict."""
    kept = {tc: schedulers[tc] if tc in classes else _STRICT for tc in schedulers}
    starved = [tc for tc, s in kept.items() if s.mode == "ets" and s.percent == 0]
    ets = {tc: s.percent for tc, s in kept.items() if s.mode == "ets"}
    if not starved or not sum(ets.values()):
        return kept
    largest = max(ets, key=lambda tc: (ets[tc], -tc))
    kept |= {tc: Scheduler("ets", 1) for tc in starved}
    kept[largest] = Scheduler("ets", ets[largest] - len(starved))
    return kept
