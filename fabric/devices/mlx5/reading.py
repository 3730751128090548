"""From what the outputs show of an mlx5 port to ``PortQos``."""

from __future__ import annotations

from collections.abc import Mapping

from fabric.devices.base import TargetPort
from fabric.devices.linux.common import ranges, rdma_cm_file
from fabric.devices.mlx5 import paths
from fabric.devices.mlx5.facts import TCLASS_UNSET, Facts
from fabric.devices.mlx5.firmware import ecn_priorities
from fabric.devices.mlx5.qos_text import QosText
from fabric.headroom import (
    MLX5_MAX_CELL_BYTES,
    MLX5_MAX_DRIVER_MTU_BYTES,
    MLX5_MAX_MTU_BYTES,
    mlx5_headroom_bytes,
    mlx5_thresholds_bytes,
)
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    Dcqcn,
    IngressBuffer,
    Nic,
    PortQos,
    Queue,
    Scheduler,
)


class Reader:
    """Reads one port; collects in ``unread`` what the outputs do not show."""

    def __init__(self, port: TargetPort, facts: Facts, family: str) -> None:
        self._port = port
        self._facts = facts
        self._family = family
        self.unread: list[str] = []

    def _miss(self, fact: str, why: str = "") -> None:
        self.unread.append(f"{self._port.name}: {fact}" + (f" ({why})" if why else ""))

    def port(self) -> PortQos | None:
        """The port; None where ``mlnx_qos`` shows nothing of it."""
        facts = self._facts
        for command in facts.missing:
            self._miss(f"everything that `{command}` shows")
        qos = facts.qos
        if qos is None:
            return None
        if facts.mtu is None:
            self._miss("MTU")
        if facts.pause is None:
            self._miss("link pause")
        if qos.trust is None:
            self._miss("trust")
        if len(qos.pfc) < PRIORITY_COUNT:
            absent = [p for p in range(PRIORITY_COUNT) if p not in qos.pfc]
            self._miss(f"PFC of priorities {ranges(absent)}")
        mtu = facts.mtu or 0
        pfc = tuple(priority for priority, on in sorted(qos.pfc.items()) if on)
        return PortQos(
            name=facts.interface,
            mtu_bytes=mtu,
            trust=qos.trust or "none",
            dscp_to_priority=self._dscp_map(qos),
            priority_to_class=self._classes(qos),
            class_mtu_bytes=(mtu,) * PRIORITY_COUNT,
            pfc_priorities=pfc,
            link_pause=any(facts.pause or ()),
            queues=self._queues(qos),
            ingress_buffers=self._buffers(qos, pfc),
            nic=self._nic(qos),
        )

    def _dscp_map(self, qos: QosText) -> tuple[int, ...]:
        """The map in force: under another trust than DSCP every packet is of priority 0."""
        if qos.trust != "dscp":
            return (0,) * DSCP_COUNT
        absent = [dscp for dscp in range(DSCP_COUNT) if dscp not in qos.dscp_to_priority]
        if absent:
            self._miss(f"priority of DSCPs {ranges(absent)}")
        return tuple(qos.dscp_to_priority.get(dscp, 0) for dscp in range(DSCP_COUNT))

    def _classes(self, qos: QosText) -> tuple[int, ...]:
        absent = [p for p in range(PRIORITY_COUNT) if p not in qos.priority_to_class]
        if absent:
            self._miss(f"traffic class of priorities {ranges(absent)}")
        return tuple(qos.priority_to_class.get(p, 0) for p in range(PRIORITY_COUNT))

    def _queues(self, qos: QosText) -> tuple[Queue, ...]:
        """``vendor``, the driver's default, is served before ETS classes: strict.

        Source: ``mlx5e_build_tc_group`` in Linux .../mlx5/core/en_dcbnl.c (group 7).
        """
        queues = []
        for traffic_class, (mode, percent) in sorted(qos.tsa.items()):
            rate_bps = qos.max_rate_bps.get(traffic_class, 0)
            if mode == "ets":
                queue = Queue(traffic_class, Scheduler("ets", percent), max_rate_bps=rate_bps)
                queues.append(queue)
            elif mode in ("strict", "vendor"):
                queues.append(Queue(traffic_class, Scheduler("strict"), max_rate_bps=rate_bps))
            else:
                self._miss(f"scheduling of traffic class {traffic_class} (tsa {mode})")
        return tuple(queues)

    def _buffers(self, qos: QosText, pfc: tuple[int, ...]) -> tuple[IngressBuffer, ...]:
        buffers = []
        for priority in pfc:
            buffer = qos.priority_to_buffer.get(priority)
            size = None if buffer is None else qos.buffer_bytes.get(buffer)
            if buffer is None or size is None or not self._facts.mtu or not qos.cable_m:
                self._miss(f"receive buffer of priority {priority}")
                continue
            xoff, xon = self._thresholds(buffer, size, self._facts.mtu, qos.cable_m)
            buffers.append(IngressBuffer(priority, size, xoff, xon))
        return tuple(buffers)

    def _thresholds(self, buffer: int, size: int, mtu: int, cable_m: int) -> tuple[int, int]:
        """XOFF and XON: by the driver's formula, unless the NIC shows others.

        The NIC holds whole cells, and the distance to XON differs between
        releases of the driver (the MTU, or the largest MTU): what that explains
        is no other value.
        """
        headroom = mlx5_headroom_bytes(self._port.speed_bps, cable_m, mtu)
        formula = mlx5_thresholds_bytes(size, headroom)
        shown = self._facts.thresholds.get(buffer)
        if shown is None:
            return formula
        below = formula[0] - shown[0]
        distance = shown[0] - shown[1]
        least = min(mtu, MLX5_MAX_MTU_BYTES) - MLX5_MAX_CELL_BYTES
        explained = 0 <= below < MLX5_MAX_CELL_BYTES and (
            least <= distance <= MLX5_MAX_DRIVER_MTU_BYTES + MLX5_MAX_CELL_BYTES
        )
        return formula if explained else shown

    def _nic(self, qos: QosText) -> Nic:
        facts = self._facts
        if qos.dcbx is None:
            self._miss("DCBX mode")
        if qos.cable_m is None:
            self._miss("cable length")
        if facts.rdma_cm_tos is None:
            self._miss("rdma_cm TOS", facts.why(facts.rdma, rdma_cm_file(facts.rdma_device)))
        if facts.tclass is None:
            file = paths.traffic_class_file(facts.rdma_device)
            self._miss("verbs traffic class", facts.why(facts.rdma, file))
        return Nic(
            rdma_device=facts.rdma_device,
            dcbx=qos.dcbx or "off",
            cable_m=qos.cable_m or 0,
            rdma_cm_tos=facts.rdma_cm_tos,
            verbs_traffic_class=None if facts.tclass == TCLASS_UNSET else facts.tclass,
            dcqcn=self._dcqcn(),
            persistent=False,
            family=self._family,
        )

    def _dcqcn(self) -> Dcqcn | None:
        """DCQCN where every parameter is shown; None otherwise."""
        facts = self._facts
        mask = ecn_priorities(facts.firmware, facts.pci)
        on: dict[str, tuple[int, ...]] = {}
        for point, label in (("np", "notification"), ("rp", "reaction")):
            switches: Mapping[int, bool] = facts.ecn_on[point]
            on[point] = tuple(p for p, enabled in sorted(switches.items()) if enabled)
            absent = [p for p in range(PRIORITY_COUNT) if p not in switches]
            if not switches and mask is not None:
                on[point] = mask
            elif absent:
                why = facts.why(facts.sysfs, paths.enable_file(facts.interface, point, absent[0]))
                self._miss(f"ECN {label} point of priorities {ranges(absent)}", why)
        absent_names = [
            p for p in paths.PARAMETERS if not p.optional and p.field not in facts.parameters
        ]
        if absent_names:
            first = absent_names[0]
            why = facts.why(facts.sysfs, f"{paths.ecn_folder(facts.interface)}/{first.sysfs}")
            also = facts.why(facts.debugfs, facts.debugfs_file(first.debugfs))
            names = ", ".join(parameter.label for parameter in absent_names)
            self._miss(f"DCQCN parameters {names}", f"{why}; {also}")
            return None
        return Dcqcn(np_priorities=on["np"], rp_priorities=on["rp"], **facts.parameters)
