"""A small fabric in memory that stands in for a twin: states, counters, ideal traffic.

Every flow takes its first shortest path, reaches its share of the receiver's
wire, and moves the counters that a sound fabric would move. Tests then spoil
states, results or counters one at a time.
"""

from collections import Counter as Tally
from dataclasses import dataclass, field, replace

import numpy as np

from fabric.counters import Counter, CounterSnapshot
from fabric.devices.registry import expected_qos
from fabric.errors import UnreachableError
from fabric.qos import Neighbor
from fabric.sim.api import PortQueueStats, SimResult
from validation.criteria import payload_bps
from validation.probes.sim import SimProbe
from validation.readers import Readers

PER_PRIORITY = ("tx_pause_frames", "rx_pause_frames")
SWITCH_PORT = ("rx_packets", "tx_packets", "rx_discards", "tx_discards", "rx_mtu_drops")
SWITCH_PORT += ("rx_crc_errors", "link_down_events")
HOST_PORT = (
    *SWITCH_PORT,
    "rx_icrc_errors",
    "tx_pause_storm_errors",
    "out_of_sequence",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "duplicate_request",
    "np_ecn_marked_packets",
    "np_cnp_sent",
    "rp_cnp_handled",
    "rp_cnp_ignored",
)


@dataclass
class Read:
    states: dict = field(default_factory=dict)
    snapshots: dict = field(default_factory=dict)
    failed: dict = field(default_factory=dict)


class FakeFabric:
    """One site's devices. ``spoil`` is called with (flow, tally) after each flow's counters."""

    def __init__(self, site):
        self.site = site
        self.states = {name: self._state(name) for name in site.devices}
        self.values = {key: 0 for name in site.devices for key in self._keys(name)}
        self.hidden = set()
        self.excuses = {}
        self.dead = set()
        self.up_s = {}
        self.boot_id = {}
        self.goodput = {}
        self.latency_us = {}
        self.spoil = lambda flow, tally: None
        self.on_carry = lambda flows: None
        self.on_states_read = lambda: None
        self.steps_carried = 0

    def _state(self, name):
        topology = self.site.topology
        neighbors = tuple(
            Neighbor(port.port, *topology.peer(port)) for port in topology.ports_of[name]
        )
        return replace(expected_qos(self.site, name), neighbors=neighbors, serial=f"SN-{name}")

    def _keys(self, name):
        host = name in self.site.topology.hosts
        for port in self.site.topology.ports_of[name]:
            for counter in HOST_PORT if host else SWITCH_PORT:
                yield (*port, counter, None)
            fine = ("tx_prio_packets", "rx_prio_packets", "rx_prio_discards", "rx_pause_us")
            for counter in (
                *PER_PRIORITY,
                *(fine if host else ("tx_queue_packets", "queue_drops", "ecn_marked_packets")),
            ):
                for priority in range(8):
                    yield (*port, counter, priority)

    def readers(self):
        return Readers(self.read_states, self.read_counters)

    def _failed(self, names):
        return {
            name: UnreachableError(name, "log in", "connection refused")
            for name in names
            if name in self.dead
        }

    def read_states(self, site, devices=None):
        self.on_states_read()
        names = devices or tuple(self.site.devices)
        alive = {name: self.states[name] for name in names if name not in self.dead}
        return Read(states=alive, failed=self._failed(names))

    def read_counters(self, site, devices=None):
        names = devices or tuple(self.site.devices)
        return Read(
            snapshots={name: self.snapshot(name) for name in names if name not in self.dead},
            failed=self._failed(names),
        )

    def snapshot(self, name):
        counters = tuple(
            Counter(device, port, counter, value, priority)
            for (device, port, counter, priority), value in self.values.items()
            if device == name and (device, counter) not in self.hidden
        )
        return CounterSnapshot(
            name,
            1.0,
            counters,
            self.excuses.get(name, ()),
            self.up_s.get(name, 1e6),
            self.boot_id.get(name, ""),
        )

    def probe(self, site, states):
        return SimProbe(site, states, self.carry)

    def carry(self, site, states, flows, options):
        self.steps_carried += 1
        self.on_carry(flows)
        into = Tally((flow.target, flow.transport) for flow in flows)
        classes = Tally(target for target, _ in into)
        goodput, messages = [], []
        for flow in flows:
            wire = payload_bps(site.topology.link_of[flow.target].speed_bps, 4096)
            senders = into[flow.target, flow.transport]
            # Classes share a wire alike, and senders the part of their class.
            part = wire / senders / classes[flow.target]
            rate = self.goodput.get((flow.source, flow.target), 0.97) * part
            if flow.gap_us:
                rate = flow.message_bytes * 8e6 / (flow.gap_us + flow.message_bytes * 8e6 / part)
                rate *= self.goodput.get((flow.source, flow.target), 1.0)
            goodput.append(rate)
            count = flow.messages or 3
            us = self.latency_us.get((flow.source, flow.target), 3.0)
            messages.append(np.full(count, us))
            sent = rate * options.duration_us / 8e6 / 4096 / flow.qps
            self._count(flow, senders, flow.messages or 20, round(sent) + 1)
        samples = round(options.duration_us / options.sample_us)
        hot = tuple({site.topology.peer(flow.target): None for flow in flows})
        return SimResult(
            flows=tuple(flows),
            options=options,
            goodput_bps=np.array(goodput),
            goodput_series_bps=np.repeat(np.array(goodput)[:, None], samples, axis=1),
            messages_us=tuple(messages),
            queues=tuple(PortQueueStats(port, 1e3, 1e3, 2e3, 4e3) for port in hot),
            queue_series_bytes=np.full((len(hot), samples), 1e3),
            counters=(),
            data_hops=0,
            wall_s=0.0,
        )

    def _count(self, flow, fan_in, messages, tcp_packets):
        tally = Tally()
        packets = messages * flow.qps * max(1, flow.message_bytes // 4096)
        if flow.transport == "tcp":
            packets = tcp_packets * flow.qps
        topology = self.site.topology
        priority = (
            self.states[flow.source.device].port(flow.source.port).priority_of_dscp(flow.dscp)
        )
        for ways in (1, 2) if flow.kind == "ping" else (1,):
            source, target = (flow.source, flow.target)[:: 1 if ways == 1 else -1]
            for egress in topology.paths(source, target)[0]:
                ingress = topology.peer(egress)
                host = egress.device in topology.hosts
                name = "tx_prio_packets" if host else "tx_queue_packets"
                tally[(*egress, "tx_packets", None)] += packets
                tally[(*egress, name, priority)] += packets
                tally[(*ingress, "rx_packets", None)] += packets
                if ingress.device in topology.hosts:
                    here = self.states[ingress.device].port(ingress.port)
                    tally[(*ingress, "rx_prio_packets", here.priority_of_dscp(flow.dscp))] += (
                        packets
                    )
        if flow.transport == "tcp":
            if fan_in > 1:
                tally[(*topology.peer(flow.target), "queue_drops", priority)] += 7
        elif fan_in > 1:
            tally[(*flow.target, "np_ecn_marked_packets", None)] += 10
            tally[(*topology.peer(flow.target), "ecn_marked_packets", 3)] += 10
            tally[(*flow.target, "np_cnp_sent", None)] += 5
            tally[(*flow.source, "rp_cnp_handled", None)] += 5
        self.spoil(flow, tally)
        for key, value in tally.items():
            self.values[key] = self.values.get(key, 0) + value
