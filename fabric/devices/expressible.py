"""What several systems have in common about queues, and about what they cannot express."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.qos import PRIORITY_COUNT, DeviceQos, PortQos, Queue, Scheduler


def eight_queues(port: PortQos) -> tuple[Queue, ...]:
    """All queues of a port; one that the intent does not name shares without a share.

    A strict one has none.
    """
    queues = (port.queue(n) or Queue(n, Scheduler("ets", 0)) for n in range(PRIORITY_COUNT))
    return tuple(
        dataclasses.replace(queue, scheduler=Scheduler("strict"))
        if queue.scheduler.mode == "strict"
        else queue
        for queue in queues
    )


def lowest_strict(port: PortQos) -> int:
    """The lowest strict queue; 8 where all share."""
    strict = (q.traffic_class for q in port.queues if q.scheduler.mode == "strict")
    return min(strict, default=PRIORITY_COUNT)


def strict_upwards(port: PortQos) -> tuple[Queue, ...]:
    """All queues of a port on a system where those above a strict one are strict too."""
    lowest, strict = lowest_strict(port), Scheduler("strict")
    return tuple(
        dataclasses.replace(queue, scheduler=strict) if queue.traffic_class >= lowest else queue
        for queue in eight_queues(port)
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a system cannot do, told by its name."""

    system: str
    advice: str = "Change intent.classes."

    def cannot(self, where: str, what: str) -> InputError:
        """The error that this system cannot do that there."""
        return InputError(f"{where}: {self.system} cannot {what}", advice=self.advice)

    def require_ports(
        self, intended: DeviceQos, *, one_queue: bool = False, strict_upwards: bool = False
    ) -> None:
        """InputError where a port is to do what none of these systems can.

        ``one_queue``: a priority leaves by the queue of its number. ``strict_upwards``:
        no queue above a strict one shares.
        """
        for port in intended.ports:
            where = f"{intended.device}:{port.name}"
            if port.trust != "dscp":
                raise self.cannot(where, f"trust {port.trust}; PAISoar classifies by DSCP")
            if one_queue and port.priority_to_class != tuple(range(PRIORITY_COUNT)):
                raise self.cannot(where, "pause a priority that leaves by another queue")
            if port.link_pause and port.pfc_priorities:
                raise self.cannot(where, "pause the link and single priorities of it")
            above = [q for q in port.queues if q.traffic_class > lowest_strict(port)]
            if strict_upwards and any(queue.scheduler.percent for queue in above):
                raise self.cannot(where, "serve a strict queue before a shared one above it")

    def require_buffers_of_paused(self, intended: DeviceQos) -> None:
        """InputError where buffers are sized of other priorities than are paused."""
        for port in intended.ports:
            buffered = {buffer.priority for buffer in port.ingress_buffers}
            if buffered != set(port.pfc_priorities):
                where = f"{intended.device}:{port.name}"
                raise self.cannot(where, "size buffers of other priorities than it pauses")
