"""A site as HPCC's files have it, for a run with the semantics of hardware.

The reference's settings become what devices can be set to: delays become cable
lengths, DCQCN sets the NICs' registers, and the shared buffer a static pause
threshold, the share that the dynamic one gives each of a switch's ports when all
of them fill up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from fabric.errors import InputError
from fabric.headroom import headroom_bytes
from fabric.intended import intended_qos
from fabric.qos import DeviceQos
from fabric.sim.api import Flow
from fabric.sim.model import CABLE_PS_PER_M
from fabric.sim.reference.dcqcn import DcqcnSet, Ecn
from fabric.sim.reference.flowfile import FlowFile
from fabric.sim.reference.topofile import Cable, TopologyFile
from fabric.site import SCHEMA, FabricFile, Site
from fabric.topology import Link, PortRef, Topology

# RoCE packets of 1024 B payload: the size nearest to the reference's 1000 B.
_MTU_BYTES = 1500
_ROCE_MTU_BYTES = 1024
_XON_BELOW_XOFF_BYTES = 3072
_DSCP = 26


def site_of_files(
    topology: TopologyFile, dcqcn: DcqcnSet, ecn: Ecn | None, buffer_bytes: int
) -> tuple[Site, Mapping[str, DeviceQos]]:
    """A site of this topology, and what each of its devices does. InputError where none can be."""
    links = tuple(_link(topology, cable) for cable in topology.cables)
    hosts = tuple(f"host{node}" for node in topology.hosts)
    switches = tuple(f"switch{node}" for node in topology.switches)
    shape = Topology(hosts, switches, links)
    speeds = sorted({cable.rate_bps for cable in topology.cables})
    xoff = _xoff_bytes(topology, buffer_bytes)
    nic_bps = min(
        cable.rate_bps for cable in topology.cables if {cable.a, cable.b} & set(topology.hosts)
    )
    document = FabricFile.model_validate(
        {
            "schema": SCHEMA,
            "site": "reference",
            "intent": _intent(speeds, xoff, dcqcn, ecn, nic_bps),
            "devices": _devices(shape, buffer_bytes),
            "cables": [
                {"a": str(k.a), "b": str(k.b), "speed": _speed(k.speed_bps), "length_m": k.length_m}
                for k in links
            ],
        }
    )
    site = Site(topology.path, document, shape)
    states = {name: intended_qos(site, name) for name in site.devices}
    if ecn is None:
        states = {name: _unmarked(state) for name, state in states.items()}
    return site, states


def flows_of_files(
    topology: TopologyFile, flows: FlowFile, *, closed_loop: bool
) -> tuple[Flow, ...]:
    """The file's flows between that site's hosts, one message each or one after the other."""
    port = {node: _ports(topology)[node, 0] for node in topology.hosts}
    return tuple(
        Flow(
            source=PortRef(f"host{flow.source}", port[flow.source]),
            target=PortRef(f"host{flow.target}", port[flow.target]),
            dscp=_DSCP,
            message_bytes=flow.size_bytes,
            messages=None if closed_loop else 1,
            start_us=flow.start_ns / 1000,
            # Above zero: the next message begins when this one is acknowledged.
            gap_us=0.001 if closed_loop else 0.0,
        )
        for flow in flows.flows
    )


def _ports(topology: TopologyFile) -> dict[tuple[int, int], str]:
    hosts = frozenset(topology.hosts)
    return {
        (node, number): "ens1f0" if node in hosts else f"Ethernet1/{number + 1}"
        for node in range(topology.nodes)
        for number in range(sum(node in (k.a, k.b) for k in topology.cables))
    }


def _link(topology: TopologyFile, cable: Cable) -> Link:
    hosts = frozenset(topology.hosts)
    ends = []
    for node in (cable.a, cable.b):
        if node in hosts:
            ends.append(PortRef(f"host{node}", "ens1f0"))
            continue
        before = sum(node in (k.a, k.b) for k in topology.cables if k.line < cable.line)
        ends.append(PortRef(f"switch{node}", f"Ethernet1/{before + 1}"))
    length_m = cable.delay_ns * 1000 / CABLE_PS_PER_M
    if length_m > 10_000:
        raise InputError(
            f"delay {cable.delay_ns} ns is a cable of {length_m / 1000:g} km; "
            "hardware semantics know up to 10 km",
            file=topology.path,
            line=cable.line,
        )
    return Link(ends[0], ends[1], cable.rate_bps, length_m)


def _speed(bps: int) -> str:
    return f"{bps / 10**9:g}G" if bps >= 10**9 else f"{bps / 10**6:g}M"


def _xoff_bytes(topology: TopologyFile, buffer_bytes: int) -> int:
    """The share that a threshold of 1/8 of the free buffer gives to each filled port."""
    shares = []
    for switch in topology.switches:
        own = [cable for cable in topology.cables if switch in (cable.a, cable.b)]
        headroom = sum(
            headroom_bytes(k.rate_bps, k.delay_ns * 1000 / CABLE_PS_PER_M, _MTU_BYTES) for k in own
        )
        shares.append((buffer_bytes - headroom) // (8 + len(own)))
    share = min(shares)
    if share <= 2 * _XON_BELOW_XOFF_BYTES:
        raise InputError(
            f"--buffer {buffer_bytes}: too small for the headroom of a switch's ports",
            advice="Give it more.",
        )
    return share


def _intent(
    speeds: list[int], xoff: int, dcqcn: DcqcnSet, ecn: Ecn | None, nic_bps: int
) -> dict[str, object]:
    kmin, kmax, pmax = (ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax) if ecn else (1000, 2000, 0.01)
    profiles = {}
    for speed in speeds:
        factor = speed / nic_bps if ecn and ecn.scaled else 1.0
        low = max(1, round(kmin * factor))
        profiles[_speed(speed)] = {
            "kmin": f"{low}B",
            "kmax": f"{max(low + 1, round(kmax * factor))}B",
            "pmax_percent": min(100, max(1, round(pmax * 100))),
            "xoff": f"{xoff}B",
            "xon": f"{xoff - _XON_BELOW_XOFF_BYTES}B",
        }
    return {
        "mtu": {"switch_port": _MTU_BYTES, "host": _MTU_BYTES, "roce": _ROCE_MTU_BYTES},
        "classes": {
            "roce": {
                "role": "roce",
                "dscp": [_DSCP],
                "priority": 3,
                "lossless": True,
                "scheduler": {"mode": "ets", "percent": 50},
            },
            "cnp": {"role": "cnp", "dscp": [48], "priority": 6, "scheduler": {"mode": "strict"}},
            "tcp": {"role": "default", "priority": 0, "scheduler": {"mode": "ets", "percent": 50}},
        },
        "profiles": profiles,
        "dcqcn": {
            # The reference's receivers answer each marked packet.
            "min_time_between_cnps_us": min(4, dcqcn.decrease_interval_us),
            "alpha_update_interval_us": dcqcn.alpha_timer_us,
            "g_of_1024": min(1023, max(1, round((1 - dcqcn.g) * 1024))),
            "rate_reduce_interval_us": dcqcn.decrease_interval_us,
            "time_reset_us": dcqcn.increase_timer_us,
            "fast_recovery_stages": min(31, max(1, dcqcn.fast_recovery)),
            "ai_rate_mbps": max(1, dcqcn.rate_ai_bps // 10**6),
            "hai_rate_mbps": max(1, dcqcn.rate_hai_bps // 10**6),
            "min_rate_mbps": max(1, dcqcn.min_rate_bps // 10**6),
        },
    }


def _devices(shape: Topology, buffer_bytes: int) -> dict[str, object]:
    devices: dict[str, object] = {}
    for name in shape.switches:
        to_hosts = any(shape.peer(p).device.startswith("host") for p in shape.ports_of[name])
        devices[name] = {
            "kind": "switch",
            "role": "leaf" if to_hosts else "spine",
            "os": "nxos",
            "model": "reference",
            "buffer": f"{buffer_bytes}B",
        }
    for name in shape.hosts:
        nics = {
            port.port: {
                "family": "mlx5",
                "rdma": "mlx5_0",
                "speed": _speed(shape.link_of[port].speed_bps),
            }
            for port in shape.ports_of[name]
        }
        devices[name] = {"kind": "host", "nics": nics}
    return devices


def _unmarked(state: DeviceQos) -> DeviceQos:
    ports = tuple(
        dataclasses.replace(
            port, queues=tuple(dataclasses.replace(queue, ecn=None) for queue in port.queues)
        )
        for port in state.ports
    )
    return dataclasses.replace(state, ports=ports)
