"""From the site to what every device should do: intent in, ``DeviceQos`` out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from fabric.headroom import (
    headroom_bytes,
    mlx5_cable_m,
    mlx5_headroom_bytes,
    mlx5_thresholds_bytes,
)
from fabric.intent import Intent
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    DeviceQos,
    Ecn,
    IngressBuffer,
    Nic,
    PortQos,
    Queue,
    Scheduler,
    Watchdog,
)
from fabric.site import HostSpec, Site
from fabric.topology import Link

ECT0 = 0b10


def intended_qos(site: Site, device: str, loose: Sequence[Link] = ()) -> DeviceQos:
    """What this device should do on each of its cabled ports.

    ``loose`` are links of which only this end (``a``) is known.
    """
    spec = site.devices[device]
    links = [(port.port, site.topology.link_of[port]) for port in site.topology.ports_of[device]]
    links += [(link.a.port, link) for link in loose]
    if isinstance(spec, HostSpec):
        return DeviceQos(
            device=device,
            kind="host",
            os="linux",
            ports=tuple(_host_port(site, spec, name, link) for name, link in links),
        )
    return DeviceQos(
        device=device,
        kind="switch",
        os=spec.os,
        ports=tuple(_switch_ports(site.intent, links)),
    )


def roce_tos(intent: Intent) -> int:
    """The TOS byte of RoCE traffic: DSCP << 2, with ECT(0) where it is to be marked."""
    return intent.roce.dscp[0] << 2 | (ECT0 if intent.host.mark_ect else 0)


def dscp_map(intent: Intent) -> tuple[int, ...]:
    """Priority of each of the 64 DSCPs."""
    priorities = [intent.default.priority] * DSCP_COUNT
    for cls in intent.classes.values():
        for dscp in cls.dscp:
            priorities[dscp] = cls.priority
    return tuple(priorities)


def lossless_priorities(intent: Intent) -> tuple[int, ...]:
    """Priorities that PFC protects, sorted."""
    return tuple(sorted(cls.priority for cls in intent.classes.values() if cls.lossless))


def _queues(intent: Intent, ecn: Ecn | None) -> tuple[Queue, ...]:
    queues = []
    by_priority = {cls.priority: cls for cls in intent.classes.values()}
    for traffic_class in range(PRIORITY_COUNT):
        cls = by_priority.get(traffic_class)
        scheduler = Scheduler("ets", 0)
        if cls is not None:
            scheduler = Scheduler(cls.scheduler.mode, cls.scheduler.percent)
        marked = ecn if cls is not None and cls.role == "roce" else None
        queues.append(Queue(traffic_class, scheduler, marked))
    return tuple(queues)


def _switch_ports(intent: Intent, links: Sequence[tuple[str, Link]]) -> Iterator[PortQos]:
    """Ports of links with the same speed and length differ in their name only."""
    made: dict[tuple[int, float], PortQos] = {}
    for name, link in links:
        key = link.speed_bps, link.length_m
        if key not in made:
            made[key] = _switch_port(intent, link, name)
        yield dataclasses.replace(made[key], name=name)


def _switch_port(intent: Intent, link: Link, name: str) -> PortQos:
    profile = intent.profile(link.speed_bps)
    headroom = headroom_bytes(link.speed_bps, link.length_m, intent.mtu.switch_port)
    lossless = lossless_priorities(intent)
    return PortQos(
        name=name,
        mtu_bytes=intent.mtu.switch_port,
        trust="dscp",
        dscp_to_priority=dscp_map(intent),
        priority_to_class=tuple(range(PRIORITY_COUNT)),
        class_mtu_bytes=(intent.mtu.switch_port,) * PRIORITY_COUNT,
        pfc_priorities=lossless,
        link_pause=False,
        queues=_queues(intent, Ecn(profile.kmin, profile.kmax, profile.pmax_percent)),
        ingress_buffers=tuple(
            IngressBuffer(
                priority, profile.xoff + headroom, profile.xoff, profile.xon, profile.alpha
            )
            for priority in lossless
        ),
        watchdog=Watchdog(
            intent.watchdog.detect_ms, intent.watchdog.restore_ms, intent.watchdog.action
        ),
    )


def _host_port(site: Site, spec: HostSpec, name: str, link: Link) -> PortQos:
    intent = site.intent
    nic = spec.nics[name]
    lossless = lossless_priorities(intent)
    cable_m = mlx5_cable_m(link.length_m)
    # The NIC's driver decides its thresholds by itself; we only size the buffer.
    headroom = mlx5_headroom_bytes(link.speed_bps, cable_m, intent.mtu.host)
    xoff, xon = mlx5_thresholds_bytes(intent.host.receive_buffer, headroom)
    tos = roce_tos(intent)
    return PortQos(
        name=name,
        mtu_bytes=intent.mtu.host,
        trust="dscp",
        dscp_to_priority=dscp_map(intent),
        priority_to_class=tuple(range(PRIORITY_COUNT)),
        class_mtu_bytes=(intent.mtu.host,) * PRIORITY_COUNT,
        pfc_priorities=lossless,
        link_pause=False,
        queues=_queues(intent, None),
        ingress_buffers=tuple(
            IngressBuffer(priority, intent.host.receive_buffer, xoff, xon) for priority in lossless
        ),
        nic=Nic(
            rdma_device=nic.rdma,
            dcbx="os",
            cable_m=cable_m,
            rdma_cm_tos=tos,
            verbs_traffic_class=tos,
            dcqcn=intent.dcqcn.for_priority(
                intent.roce.priority, intent.cnp.dscp[0], intent.cnp.priority
            ),
            persistent=True,
            family=nic.family,
        ),
    )
