"""From what the outputs show of a port to ``PortQos``, as far as every driver shows it."""

from __future__ import annotations

from typing import Literal

from fabric.devices.base import TargetPort
from fabric.devices.dcb.facts import Facts
from fabric.devices.dcb.traits import Traits
from fabric.devices.linux.common import ranges, rdma_cm_file
from fabric.qos import DSCP_COUNT, PRIORITY_COUNT, Nic, PortQos, Queue, Remark, Scheduler


class Reader:
    """Reads one port; collects in ``unread`` what is not shown, in ``remarks`` what is wrong."""

    def __init__(self, port: TargetPort, facts: Facts, traits: Traits) -> None:
        self._port, self._facts, self._traits = port, facts, traits
        self.unread: list[str] = []
        self.remarks: list[Remark] = []

    @property
    def model(self) -> str:
        """Name and PCI device; empty where not shown."""
        device = self._facts.files.text(
            f"/sys/class/infiniband/{self._port.rdma_device}/device/device"
        )
        if device is None:
            return ""
        name = self._traits.models.get(device)
        return f"{name} ({device})" if name else device

    @property
    def driver(self) -> str:
        """Driver and firmware as one text; empty where not shown."""
        shown = self._facts.driver
        driver = " ".join(shown[key] for key in ("driver", "version") if shown.get(key))
        firmware = shown.get("firmware-version", "")
        return ", ".join(part for part in (driver, firmware and f"firmware {firmware}") if part)

    def _miss(self, fact: str) -> None:
        self.unread.append(f"{self._port.name}: {fact}")

    def port(self) -> PortQos | None:
        """The port; None where ``dcb`` shows neither PFC nor classes."""
        facts = self._facts
        for command in facts.missing:
            self._miss(f"everything that `{command}` shows")
        if facts.pfc is None or facts.ets is None:
            return None
        for fact in self._traits.unseen:
            self._miss(fact)
        if facts.mtu is None:
            self._miss("MTU")
        if facts.pause is None:
            self._miss("link pause")
        mtu = facts.mtu or 0
        trust: Literal["dscp", "pcp"] = "dscp" if facts.apps else "pcp"
        if facts.apps is None:
            self._miss("trust")
        if facts.ets.willing:
            self.remarks.append(
                Remark(
                    "dcbx",
                    self._port.name,
                    "ETS is willing: the port takes what its switch offers by DCBX",
                    (f"dcb ets show dev {self._port.name}: willing on",),
                )
            )
        return PortQos(
            name=facts.interface,
            mtu_bytes=mtu,
            trust=trust,
            dscp_to_priority=self._map(facts.apps or ()),
            priority_to_class=facts.ets.priority_to_class,
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=facts.pfc,
            link_pause=any(facts.pause or ()),
            queues=self._queues(facts.ets.tsa, facts.ets.percent, facts.max_rates_bps),
            ingress_buffers=(),
            nic=self._nic(),
        )

    def _map(self, apps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """The map in force; all of priority 0 where no DSCP has an entry."""
        if not apps:
            return (0,) * DSCP_COUNT
        table: dict[int, int] = {}
        twice = []
        for dscp, priority in apps:
            if table.setdefault(dscp, priority) != priority:
                twice.append(dscp)
        absent = [dscp for dscp in range(DSCP_COUNT) if dscp not in table]
        if twice:
            self._miss(f"priority of DSCPs {ranges(sorted(set(twice)))} (two entries each)")
        if absent and self._traits.unmapped is None:
            self._miss(f"priority of DSCPs {ranges(absent)} (no entry, the driver's own choice)")
        other = self._traits.unmapped or 0
        return tuple(table.get(dscp, other) for dscp in range(DSCP_COUNT))

    def _queues(
        self, tsa: tuple[str, ...], percent: tuple[int, ...], rates_bps: tuple[int, ...] | None
    ) -> tuple[Queue, ...]:
        queues = []
        limits = rates_bps or (0,) * PRIORITY_COUNT
        for tc, (mode, share, bps) in enumerate(zip(tsa, percent, limits, strict=True)):
            if mode == "ets":
                queues.append(Queue(tc, Scheduler("ets", share), max_rate_bps=bps))
            elif mode == "strict":
                queues.append(Queue(tc, Scheduler("strict"), max_rate_bps=bps))
            else:
                self._miss(f"scheduling of traffic class {tc} (tsa {mode})")
        return tuple(queues)

    def _nic(self) -> Nic:
        facts = self._facts
        if facts.dcbx is None:
            self._miss("DCBX mode")
        if facts.rdma_cm_tos is None:
            path = rdma_cm_file(facts.rdma_device)
            self._miss(f"rdma_cm TOS ({facts.why(path)})")
        return Nic(
            rdma_device=facts.rdma_device,
            dcbx=dcbx_mode(facts.dcbx),
            cable_m=0,
            rdma_cm_tos=facts.rdma_cm_tos,
            verbs_traffic_class=None,
            dcqcn=None,
            persistent=False,
            family=self._traits.name,
        )


def dcbx_mode(flags: frozenset[str] | None) -> Literal["os", "firmware", "off"]:
    """Who decides, from the flags of ``dcb dcbx``: the firmware unless the host may."""
    if not flags:
        return "off"
    return "os" if "host" in flags and "lld-managed" not in flags else "firmware"
