"""What most ports of a kind do beside what an intent can say, and that is therefore not wrong.

An intent that was inferred (``fabric.saved.infer``) knows RoCE, CNPs and the default
class. An operator's fabric has more: other classes, other shares, larger buffers, the
vendor's watchdog. Ports of one kind, driver and speed form a group. Where what most of a
group do does no harm to RoCE, it becomes what its ports are intended to do, so that only
those that differ from their group are findings.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from fabric.qos import IngressBuffer, Nic, PortQos, Queue, Watchdog
from fabric.saved.infer import Voter, sensible_watchdog
from fabric.topology import Link


class Group(NamedTuple):
    """Ports that share their customs.

    ``kind`` is ``host`` or ``switch``; ``driver`` the system of a switch, the system and
    NIC family of a host's port.
    """

    kind: str
    driver: str
    speed_bps: int


def _group(kind: str, system: str, port: PortQos, speed_bps: int) -> Group:
    driver = f"{system}/{port.nic.family}" if port.nic is not None else system
    return Group(kind, driver, speed_bps)


class Customs:
    """What most ports of each group do beside what an intent can say."""

    def __init__(self, ports: list[Voter]) -> None:
        self._groups: dict[Group, list[PortQos]] = defaultdict(list)
        for one in ports:
            group = _group(one.kind, one.system, one.port, one.speed_bps)
            self._groups[group].append(one.port)
        self._usual: dict[tuple[Group, str], Any] = {}

    def usual(self, group: Group, name: str) -> Any:  # noqa: ANN401 - any field's
        """The most frequent value of a field in a group; None without ports."""
        if (group, name) not in self._usual:
            count = Counter(getattr(port, name) for port in self._groups.get(group, ()))
            self._usual[group, name] = count.most_common(1)[0][0] if count else None
        return self._usual[group, name]

    def adapt(
        self, intended: PortQos, live: PortQos | None, link: Link, kind: str, system: str
    ) -> PortQos:
        """The intended port with the group's customs, where these do no harm.

        Classes beside RoCE's, CNPs' and the default; shares that add up; static
        buffers with enough headroom; the vendor's own watchdog. What a NIC calls its
        lossy priorities, and how it serves them, is its own affair. A host that nobody
        sets up at boot with our unit may be set up by another: that is not judged.
        """
        group = _group(kind, system, intended, link.speed_bps)
        changes: dict[str, Any] = {
            "dscp_to_priority": self._map(intended, group),
            "queues": self._queues(intended, group),
            "ingress_buffers": _own_room(self._buffers(intended, group), intended, live),
            "watchdog": self._watchdog(intended, group),
            "class_mtu_bytes": self._class_mtus(intended, group),
        }
        if kind == "host":
            changes |= self._host(intended, group)
        if intended.nic is not None and live is not None and live.nic is not None:
            changes["nic"] = _usual_nic(
                intended.nic, self.usual(group, "nic"), live.nic, intended.pfc_priorities
            )
        return dataclasses.replace(intended, **changes)

    def _watchdog(self, intended: PortQos, group: Group) -> Watchdog | None:
        usual: Watchdog | None = self.usual(group, "watchdog")
        if intended.watchdog is None or usual is None or not sensible_watchdog(usual):
            return intended.watchdog
        return usual

    def _class_mtus(self, intended: PortQos, group: Group) -> tuple[int, ...]:
        """Of a class that the port carries no RoCE in it may be less."""
        usual = self.usual(group, "class_mtu_bytes")
        if usual is None:
            return intended.class_mtu_bytes
        return tuple(
            want if priority in intended.pfc_priorities else max(got, 1500)
            for priority, (want, got) in enumerate(
                zip(intended.class_mtu_bytes, usual, strict=True)
            )
        )

    def _host(self, intended: PortQos, group: Group) -> dict[str, Any]:
        """Classes of most NICs, and lossy priorities of any name."""
        changes: dict[str, Any] = {
            name: self.usual(group, name) or getattr(intended, name)
            for name in ("queues", "priority_to_class")
        }
        usual, paused = self.usual(group, "dscp_to_priority"), intended.pfc_priorities
        if usual is not None and self.usual(group, "trust") == "dscp":
            changes["dscp_to_priority"] = tuple(
                want if want in paused or got in paused else got
                for want, got in zip(intended.dscp_to_priority, usual, strict=True)
            )
        return changes

    def _map(self, intended: PortQos, group: Group) -> tuple[int, ...]:
        """Other classes' DSCPs as most ports have them, unless that is a paused priority."""
        usual = self.usual(group, "dscp_to_priority")
        if usual is None or self.usual(group, "trust") != "dscp":
            return intended.dscp_to_priority
        default = Counter(intended.dscp_to_priority).most_common(1)[0][0]
        special = set(intended.dscp_to_priority) - {default}
        return tuple(
            got if want not in special and got not in special else want
            for want, got in zip(intended.dscp_to_priority, usual, strict=True)
        )

    def _queues(self, intended: PortQos, group: Group) -> tuple[Queue, ...]:
        """Shares as most have them, if they add up, RoCE has one, and the same are strict."""
        usual: tuple[Queue, ...] | None = self.usual(group, "queues")
        if not usual:
            return intended.queues
        schedulers = {queue.traffic_class: queue.scheduler for queue in usual}
        shares = sum(s.percent for s in schedulers.values() if s.mode == "ets")
        strict = {queue.traffic_class for queue in usual if queue.scheduler.mode == "strict"}
        wanted = {q.traffic_class for q in intended.queues if q.scheduler.mode == "strict"}
        roce = schedulers.get(intended.pfc_priorities[0]) if intended.pfc_priorities else None
        if strict != wanted or shares != 100 or roce is None or not roce.percent:
            return intended.queues
        return tuple(
            dataclasses.replace(
                queue, scheduler=schedulers.get(queue.traffic_class, queue.scheduler)
            )
            for queue in intended.queues
        )

    def _buffers(self, intended: PortQos, group: Group) -> tuple[IngressBuffer, ...]:
        """Buffers as most have them, if each has the headroom that is needed."""
        usual: tuple[IngressBuffer, ...] | None = self.usual(group, "ingress_buffers")
        if usual is None:
            return intended.ingress_buffers
        if not usual:
            return ()
        wanted = {buffer.priority: buffer for buffer in intended.ingress_buffers}
        if {buffer.priority for buffer in usual} != set(wanted):
            return intended.ingress_buffers
        for buffer in usual:
            need = wanted[buffer.priority].size_bytes - wanted[buffer.priority].xoff_bytes
            enough = buffer.size_bytes - buffer.xoff_bytes >= need
            if not enough or buffer.xon_bytes > buffer.xoff_bytes:
                return intended.ingress_buffers
        return usual


def _usual_nic(intended: Nic, usual: Nic | None, live: Nic, paused: tuple[int, ...]) -> Nic:
    """The intended NIC, with CNPs in the lossy priority that most NICs put them into."""
    dcqcn = intended.dcqcn
    theirs = usual.dcqcn if usual is not None else None
    if dcqcn is not None and theirs is not None and theirs.cnp_priority not in paused:
        dcqcn = dataclasses.replace(dcqcn, cnp_priority=theirs.cnp_priority)
    return dataclasses.replace(intended, persistent=live.persistent, dcqcn=dcqcn)


def _own_room(
    usual: tuple[IngressBuffer, ...], intended: PortQos, live: PortQos | None
) -> tuple[IngressBuffer, ...]:
    """The port's own sizes where they differ in headroom only, and it is enough.

    How long a cable is nobody may have told; ports with longer ones have more.
    """
    own = {buffer.priority: buffer for buffer in live.ingress_buffers} if live else {}
    wanted = {buffer.priority: buffer for buffer in intended.ingress_buffers}
    found = []
    for buffer in usual:
        mine, need = own.get(buffer.priority), wanted.get(buffer.priority, buffer)
        if (
            mine is not None
            and dataclasses.replace(mine, size_bytes=buffer.size_bytes) == buffer
            and mine.size_bytes - mine.xoff_bytes >= need.size_bytes - need.xoff_bytes
        ):
            buffer = mine  # noqa: PLW2901
        found.append(buffer)
    return tuple(found)
