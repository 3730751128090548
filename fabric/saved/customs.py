"""What most ports of a kind do beside what an intent can say, and that is therefore not wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from typing import Any

from fabric.qos import DSCP_COUNT, IngressBuffer, Nic, PortQos
from fabric.saved.infer import Voter, sensible_watchdog
from fabric.topology import Link


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


def _driver(port: PortQos, system: str) -> str:
    """Whose customs count: a host's NICs of one family, the switches of one system."""
    return f"{system}/{port.nic.family}" if port.nic is not None else system


class Customs:
    """What most ports of one system, kind and speed do beside what an intent can say."""

    def __init__(self, ports: list[Voter]) -> None:
        groups: dict[tuple[str, str, int], list[PortQos]] = defaultdict(list)
        for voter in ports:
            groups[voter.kind, _driver(voter.port, voter.system), voter.speed_bps].append(
                voter.port
            )
        self._groups = groups
        self._usual: dict[tuple[str, str, int, str], Any] = {}

    def usual(self, key: tuple[str, str, int], name: str) -> Any:  # noqa: ANN401 - any field's
        """The most frequent value of a field in a group; None without ports."""
        at = (*key, name)
        if at not in self._usual:
            count = Counter(getattr(port, name) for port in self._groups.get(key, ()))
            self._usual[at] = count.most_common(1)[0][0] if count else None
        return self._usual[at]

    def adapt(
        self, intended: PortQos, live: PortQos | None, link: Link, kind: str, system: str
    ) -> PortQos:
        """The intended port with the group's customs, where these do no harm.

        Classes beside RoCE's, CNPs' and the default; shares that add up; static
        buffers with enough headroom; the vendor's own watchdog. What a NIC calls its
        lossy priorities, and how it serves them, is its own affair. A host that nobody
        sets up at boot with our unit may be set up by another: that is not judged.
        """
        key = (kind, _driver(intended, system), link.speed_bps)
        changes: dict[str, Any] = {
            "dscp_to_priority": self._map(intended, key),
            "queues": self._queues(intended, key),
            "ingress_buffers": _own_room(self._buffers(intended, key), intended, live),
        }
        watchdog = self.usual(key, "watchdog")
        if intended.watchdog is not None and watchdog is not None and sensible_watchdog(watchdog):
            changes["watchdog"] = watchdog
        mtus = self.usual(key, "class_mtu_bytes")
        if mtus is not None:
            # A class that the port carries no RoCE in may be shorter.
            paused = intended.pfc_priorities
            changes["class_mtu_bytes"] = tuple(
                want if priority in paused else max(got, 1500)
                for priority, (want, got) in enumerate(
                    zip(intended.class_mtu_bytes, mtus, strict=True)
                )
            )
        if kind == "host":
            changes |= self._host(intended, key)
        if intended.nic is not None and live is not None and live.nic is not None:
            changes["nic"] = _usual_nic(
                intended.nic, self.usual(key, "nic"), live.nic, intended.pfc_priorities
            )
        return dataclasses.replace(intended, **changes)

    def _host(self, intended: PortQos, key: tuple[str, str, int]) -> dict[str, Any]:
        """Classes of most NICs, and lossy priorities of any name."""
        changes: dict[str, Any] = {
            name: self.usual(key, name) or getattr(intended, name)
            for name in ("queues", "priority_to_class")
        }
        usual, paused = self.usual(key, "dscp_to_priority"), intended.pfc_priorities
        if usual is not None and self.usual(key, "trust") == "dscp":
            changes["dscp_to_priority"] = tuple(
                want if want in paused or got in paused else got
                for want, got in zip(intended.dscp_to_priority, usual, strict=True)
            )
        return changes

    def _map(self, intended: PortQos, key: tuple[str, str, int]) -> tuple[int, ...]:
        """Other classes' DSCPs as most ports have them, unless that is a paused priority."""
        usual = self.usual(key, "dscp_to_priority")
        if usual is None or self.usual(key, "trust") != "dscp":
            return intended.dscp_to_priority
        own = {intended.dscp_to_priority[dscp] for dscp in range(DSCP_COUNT)}
        usual_default = Counter(intended.dscp_to_priority).most_common(1)[0][0]
        special = own - {usual_default}
        return tuple(
            got if want not in special and got not in special else want
            for want, got in zip(intended.dscp_to_priority, usual, strict=True)
        )

    def _queues(self, intended: PortQos, key: tuple[str, str, int]) -> Any:  # noqa: ANN401
        usual = self.usual(key, "queues")
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

    def _buffers(self, intended: PortQos, key: tuple[str, str, int]) -> Any:  # noqa: ANN401
        usual = self.usual(key, "ingress_buffers")
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
