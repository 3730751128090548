"""What a device does to traffic, in one vendor-neutral form.

``DeviceQos`` is the middle of the house. A device module reads a device's
outputs to one and renders one to configuration; rules, plans, the twin's
simulator and the certificate's fingerprint know nothing else.

The same form holds what a device *should* do (``fabric.intended``) and what
it *does*. ``read(render(q))`` equals ``q`` for every port that ``q`` names.

Everything is frozen and holds tuples only, so that values compare, hash and
serialise the same everywhere.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

DSCP_COUNT = 64
PRIORITY_COUNT = 8

Trust = Literal["dscp", "pcp", "none"]
Kind = Literal["switch", "host"]


@dataclass(frozen=True, slots=True)
class Ecn:
    """RED/WRED marking of one egress queue: linear from Kmin to Kmax, then always."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_percent: int


@dataclass(frozen=True, slots=True)
class Scheduler:
    """How a queue is served. ``percent`` is the ETS share; 0 for a strict queue."""

    mode: Literal["strict", "ets"]
    percent: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """One egress queue (traffic class) of a port.

    ``max_rate_bps`` is what the class may send at most; 0 for no limit but the link's,
    and where a device does not show one.
    """

    traffic_class: int
    scheduler: Scheduler
    ecn: Ecn | None = None
    max_rate_bps: int = 0


@dataclass(frozen=True, slots=True)
class IngressBuffer:
    """Receive buffer of one lossless priority on one port.

    XOFF is sent when occupancy passes ``xoff_bytes``, XON when it falls below
    ``xon_bytes``; what comes in beyond ``size_bytes`` is dropped. The headroom
    is ``size_bytes - xoff_bytes``. With ``alpha`` set, XOFF is dynamic instead:
    ``alpha`` times the free shared buffer (Choudhury & Hahne, 1998), and
    ``size_bytes - xoff_bytes`` still is the headroom.
    """

    priority: int
    size_bytes: int
    xoff_bytes: int
    xon_bytes: int
    alpha: float | None = None


@dataclass(frozen=True, slots=True)
class Watchdog:
    """PFC watchdog of a port; times that a device does not set are None."""

    detect_ms: int | None
    restore_ms: int | None
    action: Literal["drop", "forward", "shutdown"] = "drop"


@dataclass(frozen=True, slots=True)
class Dcqcn:
    """DCQCN of a NIC port: notification point (receiver), reaction point (sender).

    Names and units are those of the mlx5 driver's parameters; what a NIC
    family does not have keeps the default. Source: Zhu et al., SIGCOMM 2015;
    parameter names, Linux drivers/infiniband/hw/mlx5/cong.c.

    ``max_rate_mbps`` caps every queue pair; 0 for the link's speed. A cut takes
    ``alpha * 2**(10 - gd_log2)`` of the rate and leaves ``min_decrease_percent`` of it.
    The target rate follows the rate at a cut when the byte counter has raised it since
    the last, with ``clamp_target_after_time`` when the timer has, with ``clamp_target``
    always.
    """

    np_priorities: tuple[int, ...]
    rp_priorities: tuple[int, ...]
    cnp_dscp: int
    cnp_priority: int
    min_time_between_cnps_us: int = 4
    rate_to_set_on_first_cnp_mbps: int = 0
    alpha_update_interval_us: int = 1
    g_of_1024: int = 1019
    initial_alpha_of_1024: int = 1023
    rate_reduce_interval_us: int = 4
    time_reset_us: int = 300
    byte_reset: int = 32767
    fast_recovery_stages: int = 1
    ai_rate_mbps: int = 5
    hai_rate_mbps: int = 50
    min_rate_mbps: int = 1
    max_rate_mbps: int = 0
    gd_log2: int = 11
    min_decrease_percent: int = 50
    clamp_target: int = 0
    clamp_target_after_time: int = 1


@dataclass(frozen=True, slots=True)
class Nic:
    """What only a host's port has.

    ``rdma_cm_tos`` and ``verbs_traffic_class`` are whole TOS bytes (DSCP << 2 |
    ECN bits); None where the host does not set them. ``persistent`` says that
    the settings come back after a reboot. ``family`` names the NIC's module in
    the entry-point group ``paisoar.nics``.
    """

    rdma_device: str
    dcbx: Literal["os", "firmware", "off"]
    cable_m: int
    rdma_cm_tos: int | None
    verbs_traffic_class: int | None
    dcqcn: Dcqcn | None
    persistent: bool
    family: str = ""


@dataclass(frozen=True, slots=True)
class PortQos:
    """What one port does.

    ``dscp_to_priority`` has 64 entries, ``priority_to_class`` and
    ``class_mtu_bytes`` have 8. ``pfc_priorities`` are sorted. ``mtu_bytes`` is
    the port's own MTU as the device counts it (switches: L2 payload; hosts: IP
    packet).
    """

    name: str
    mtu_bytes: int
    trust: Trust
    dscp_to_priority: tuple[int, ...]
    priority_to_class: tuple[int, ...]
    class_mtu_bytes: tuple[int, ...]
    pfc_priorities: tuple[int, ...]
    link_pause: bool
    queues: tuple[Queue, ...]
    ingress_buffers: tuple[IngressBuffer, ...]
    watchdog: Watchdog | None = None
    nic: Nic | None = None

    def priority_of_dscp(self, dscp: int) -> int:
        """Priority in which a packet of this DSCP is received here.

        A port that trusts PCP sees untagged routed traffic as priority 0.
        """
        return self.dscp_to_priority[dscp] if self.trust == "dscp" else 0

    def class_of_dscp(self, dscp: int) -> int:
        """Egress traffic class of a packet of this DSCP."""
        return self.priority_to_class[self.priority_of_dscp(dscp)]

    def queue(self, traffic_class: int) -> Queue | None:
        """The egress queue of this traffic class; None where there is none."""
        for queue in self.queues:
            if queue.traffic_class == traffic_class:
                return queue
        return None

    def ingress_buffer(self, priority: int) -> IngressBuffer | None:
        """The receive buffer of this priority; None for a lossy one."""
        for buffer in self.ingress_buffers:
            if buffer.priority == priority:
                return buffer
        return None


@dataclass(frozen=True, slots=True)
class Neighbor:
    """One line of a device's LLDP table."""

    port: str
    peer: str
    peer_port: str


@dataclass(frozen=True, slots=True)
class PortFacts:
    """What a port is seen to be, beside what it does to packets; None where not shown.

    ``up`` says whether the link works, ``admin_up`` whether it is configured to: a port
    that somebody has shut is down in both. ``speed_bps`` is the speed of the link that
    is up. ``fec`` is ``none``, ``fc``
    (FC-FEC, clause 74), ``rs`` (RS-FEC, clauses 91, 108, 119) or ``auto`` where the
    device negotiates it and does not say what came of it. ``pfc_mode`` is what is
    configured, not whether PFC operates. ``rdma_mtu_bytes`` is the active MTU of the
    RDMA device (payload). ``gid_type`` is ``v2`` where the GID table has a RoCE v2
    entry. ``lldp_agents`` names the programs that speak LLDP on the port, ``bond``
    the bond that it is a member of (empty for none). ``headroom_cable_m`` are the lengths
    of cable for which a switch has chosen the headroom by itself: longer than the first,
    up to the second. ``mac`` is the port's address
    in lower-case hexadecimal without separators, by which LLDP may name it.
    """

    port: str
    up: bool | None = None
    admin_up: bool | None = None
    speed_bps: int | None = None
    fec: Literal["none", "fc", "rs", "auto"] | None = None
    pfc_mode: Literal["on", "off", "auto"] | None = None
    rdma_mtu_bytes: int | None = None
    gid_type: Literal["v1", "v2"] | None = None
    lldp_agents: tuple[str, ...] | None = None
    bond: str | None = None
    virtual_function: bool | None = None
    headroom_cable_m: tuple[int, int] | None = None
    mac: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """A fault that only the device's own module can see, under the audit rule that it is.

    ``port`` is empty for the whole device; ``fix`` mends it where a plan does not.
    """

    rule: str
    port: str
    message: str
    evidence: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceQos:
    """What one device does.

    ``model``, ``firmware`` and ``serial`` are empty in an intended state.
    ``config_sha256`` is the hash of a switch's whole running configuration
    without comments (empty for hosts and intended states). ``saved`` says that
    the running configuration is also the one that the device boots with; None
    where it cannot be seen. ``unread`` names facts that the outputs did not
    show: a rule that needs one of them reports a skip, never a pass. ``facts``
    are what ports are seen to be, ``remarks`` faults of the vendor's own; an
    intended state has neither.
    """

    device: str
    kind: Kind
    os: str
    ports: tuple[PortQos, ...]
    model: str = ""
    firmware: str = ""
    serial: str = ""
    config_sha256: str = ""
    saved: bool | None = None
    neighbors: tuple[Neighbor, ...] | None = None
    unread: tuple[str, ...] = field(default=())
    facts: tuple[PortFacts, ...] = field(default=())
    remarks: tuple[Remark, ...] = field(default=())

    def facts_of(self, port: str) -> PortFacts:
        """What this port is seen to be; nothing but its name where that is not shown."""
        for facts in self.facts:
            if facts.port == port:
                return facts
        return PortFacts(port)

    def port(self, name: str) -> PortQos | None:
        """The port of this name; None where the device shows none."""
        for port in self.ports:
            if port.name == name:
                return port
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_json`. Raises KeyError or TypeError on other data."""
        values = dict(data)
        values["ports"] = tuple(_port_from_json(port) for port in data["ports"])
        if data.get("neighbors") is not None:
            values["neighbors"] = tuple(Neighbor(**n) for n in data["neighbors"])
        values["unread"] = tuple(data.get("unread", ()))
        values["facts"] = tuple(_facts_from_json(facts) for facts in data.get("facts", ()))
        values["remarks"] = tuple(
            Remark(**{**remark, **{n: tuple(remark.get(n, ())) for n in ("evidence", "fix")}})
            for remark in data.get("remarks", ())
        )
        return cls(**values)


def canonical_sha256(states: tuple[DeviceQos, ...]) -> str:
    """SHA-256 over the canonical JSON of several devices, sorted by name.

    ``saved``, ``neighbors``, ``unread``, ``facts`` and ``remarks`` are left out: they
    say how the state is held and seen, not what the device does to a packet.
    """
    facts = []
    for state in sorted(states, key=lambda state: state.device):
        fact = state.to_json()
        for volatile in ("saved", "neighbors", "unread", "facts", "remarks"):
            del fact[volatile]
        facts.append(fact)
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _port_from_json(data: Mapping[str, Any]) -> PortQos:
    values = dict(data)
    for name in ("dscp_to_priority", "priority_to_class", "class_mtu_bytes", "pfc_priorities"):
        values[name] = tuple(data[name])
    values["queues"] = tuple(
        Queue(
            traffic_class=queue["traffic_class"],
            scheduler=Scheduler(**queue["scheduler"]),
            ecn=Ecn(**queue["ecn"]) if queue.get("ecn") else None,
            max_rate_bps=queue.get("max_rate_bps", 0),
        )
        for queue in data["queues"]
    )
    values["ingress_buffers"] = tuple(IngressBuffer(**b) for b in data["ingress_buffers"])
    values["watchdog"] = Watchdog(**data["watchdog"]) if data.get("watchdog") else None
    values["nic"] = _nic_from_json(data["nic"]) if data.get("nic") else None
    return PortQos(**values)


def _facts_from_json(data: Mapping[str, Any]) -> PortFacts:
    values = dict(data)
    for name in ("lldp_agents", "headroom_cable_m"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    return PortFacts(**values)


def _nic_from_json(data: Mapping[str, Any]) -> Nic:
    values = dict(data)
    if data.get("dcqcn"):
        dcqcn = dict(data["dcqcn"])
        for name in ("np_priorities", "rp_priorities"):
            dcqcn[name] = tuple(dcqcn[name])
        values["dcqcn"] = Dcqcn(**dcqcn)
    return Nic(**values)
