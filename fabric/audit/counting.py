"""Rules over counters: what has happened since they were last cleared.

Totals, not deltas: ``paisoar validate`` judges what happens under traffic.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric.audit.findings import Skip
from fabric.audit.rule import Fault, Subject, rule

# A boot or two takes a link down; more is a link that flaps.
MAX_LINK_DOWNS = 5
# Fewer packets than this may be a connection that was never used.
MIN_PACKETS = 1000


def _values(subject: Subject, *names: str) -> Iterator[tuple[str, str, int | None, int]]:
    """(port, name, priority, value) of these counters of cabled ports, where not 0."""
    cabled = {port.name for port in subject.intended.ports}
    for counter in subject.counters.counters if subject.counters else ():
        if counter.name in names and counter.value and counter.port in cabled:
            yield counter.port, counter.name, counter.priority, counter.value


@rule(
    "storms",
    "error",
    "Somebody paused a link for so long that the watchdog began to drop on it.",
    checks=(35,),
    see="NX-OS: show queuing pfc-queue; SONiC: show pfcwd stats; NVUE: DEADLOCK",
    mend="find the NIC that pauses: the port's own peer, or one behind it",
    source="Guo et al., SIGCOMM 2016, section 4.3",
    needs_counters=True,
)
def storms(subject: Subject) -> Iterator[Fault | Skip]:
    """The watchdog has never had to act."""
    for port, _, queue, value in _values(subject, "watchdog_storms"):
        peer, _ = subject.far_end(port)
        yield Fault(
            f"the watchdog has acted on {value} storms in queue {queue}",
            port,
            (f"{subject.live.device}:{port}: {value} storms", f"the cable leads to {peer}"),
        )


@rule(
    "slow-receiver",
    "error",
    "A host that cannot take what it is sent stops the senders, and all who share their links.",
    checks=(39,),
    see="ethtool -S IF: tx_pause_storm_*, tx_prioN_pause, outbound_pci_stalled_wr",
    mend="PCIe width and speed, IOMMU, NUMA node, memory bandwidth of the host",
    source="Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst",
    needs_counters=True,
)
def slow_receiver(subject: Subject) -> Iterator[Fault | Skip]:
    """No NIC has paused its switch for long."""
    by_port: dict[str, list[str]] = {}
    for port, name, _, value in _values(
        subject, "tx_pause_storm_warnings", "tx_pause_storm_errors"
    ):
        by_port.setdefault(port, []).append(f"{name} {value}")
    for port, lines in by_port.items():
        yield Fault("the NIC paused its switch for too long", port, tuple(lines))


@rule(
    "link-errors",
    "error",
    "Every damaged frame is a loss that PFC does not prevent, and RDMA starts again from it.",
    checks=(38,),
    see="CRC errors and link flaps of both ends",
    mend="clean or change the cable or transceiver; the same FEC at both ends",
    source="IEEE 802.3; reference counters of each device module",
    needs_counters=True,
)
def link_errors(subject: Subject) -> Iterator[Fault | Skip]:
    """Cables carry frames without errors."""
    by_port: dict[str, list[str]] = {}
    for port, name, _, value in _values(
        subject, "rx_crc_errors", "rx_icrc_errors", "link_down_events"
    ):
        if name != "link_down_events" or value > MAX_LINK_DOWNS:
            by_port.setdefault(port, []).append(f"{name} {value}")
    for port, lines in by_port.items():
        peer, _ = subject.far_end(port)
        yield Fault(", ".join(lines), port, (*lines, f"the cable leads to {peer}"))


@rule(
    "one-way",
    "warning",
    "Requests are protected, answers are not: reads and acknowledgements are lost.",
    checks=(19,),
    see="ethtool -S IF: rx_prioN_packets and tx_prioN_packets of RoCE's priority, at both ends",
    mend="the traffic class on both sides of every connection (NCCL_IB_TC on every node)",
    source="openucx/ucx issue 10325; NVIDIA/nccl issue 1194",
    needs_counters=True,
)
def one_way(subject: Subject) -> Iterator[Fault | Skip]:
    """RDMA travels in its class in both directions."""
    if subject.live.kind != "host":
        return
    seen: dict[str, dict[str, int]] = {}
    shown: dict[str, set[str]] = {}
    names = ("rx_prio_packets", "tx_prio_packets")
    for counter in subject.counters.counters if subject.counters else ():
        if counter.name in names and counter.priority == subject.wanted.roce:
            seen.setdefault(counter.port, {})[counter.name] = counter.value
            shown.setdefault(counter.port, set()).add(counter.name)
    for port, values in seen.items():
        if shown[port] != set(names):
            continue
        low, high = sorted(values.items(), key=lambda item: item[1])
        if high[1] >= MIN_PACKETS and low[1] * 1000 < high[1]:
            yield Fault(
                f"{high[0]} of priority {subject.wanted.roce} is {high[1]}, {low[0]} only {low[1]}",
                port,
            )


@rule(
    "lossless-drops",
    "error",
    "A lossless class has lost packets: something on this path is not as it looks.",
    checks=(1, 22),
    see="drops of RoCE's queue and priority, on every hop",
    mend="the other findings of this device and of its neighbours; then paisoar validate incast",
    source="reference counters of each device module",
    needs_counters=True,
)
def lossless_drops(subject: Subject) -> Iterator[Fault | Skip]:
    """No packet of a lossless class has been dropped."""
    for port, name, priority, value in _values(subject, "queue_drops", "rx_prio_discards"):
        if priority in subject.wanted.lossless:
            yield Fault(f"{name} of priority {priority} is {value}", port)
