"""The counters of an mlx5 port, in the names of ``fabric.counters``.

RDMA traffic does not pass the kernel, so port counters are the physical ones
(``_phy``). Sources: Linux Documentation/networking/device_drivers/ethernet/
mellanox/mlx5/counters.rst; drivers/infiniband/hw/mlx5/counters.c, where
q-counters are 32 bits wide (be32), congestion counters and ``rx_icrc`` 64.
"""

from __future__ import annotations

from fabric.counters import Counter
from fabric.devices.base import Outputs, TargetPort
from fabric.devices.linux.dump import parse_dump
from fabric.devices.linux.tools import statistics
from fabric.qos import PRIORITY_COUNT

PORT = {
    "rx_packets": "rx_packets_phy",
    "tx_packets": "tx_packets_phy",
    "rx_bytes": "rx_bytes_phy",
    "tx_bytes": "tx_bytes_phy",
    "rx_discards": "rx_discards_phy",
    "tx_discards": "tx_discards_phy",
    "rx_mtu_drops": "rx_oversize_pkts_phy",
    "rx_crc_errors": "rx_crc_errors_phy",
    "link_down_events": "link_down_events_phy",
    "tx_pause_storm_warnings": "tx_pause_storm_warning_events",
    "tx_pause_storm_errors": "tx_pause_storm_error_events",
}
PRIORITY = {
    "rx_prio_packets": "rx_prio{}_packets",
    "tx_prio_packets": "tx_prio{}_packets",
    "rx_prio_discards": "rx_prio{}_discards",
}
# The driver has these only for priorities with PFC.
PAUSE = {
    "rx_pause_frames": "rx_prio{}_pause",
    "tx_pause_frames": "tx_prio{}_pause",
    "rx_pause_us": "rx_prio{}_pause_duration",
    "tx_pause_us": "tx_prio{}_pause_duration",
}
RDMA = {
    "np_ecn_marked_packets": ("np_ecn_marked_roce_packets", 64),
    "np_cnp_sent": ("np_cnp_sent", 64),
    "rp_cnp_handled": ("rp_cnp_handled", 64),
    "rp_cnp_ignored": ("rp_cnp_ignored", 64),
    "rx_icrc_errors": ("rx_icrc_encapsulated", 64),
    "out_of_sequence": ("out_of_sequence", 32),
    "packet_seq_err": ("packet_seq_err", 32),
    "implied_nak_seq_err": ("implied_nak_seq_err", 32),
    "local_ack_timeout_err": ("local_ack_timeout_err", 32),
    "duplicate_request": ("duplicate_request", 32),
    "out_of_buffer": ("out_of_buffer", 32),
    "rnr_nak_retry_err": ("rnr_nak_retry_err", 32),
}


def hw_counters_folder(rdma_device: str) -> str:
    """Where the RDMA counters of the device's only port lie."""
    return f"/sys/class/infiniband/{rdma_device}/ports/1/hw_counters"


def commands(port: TargetPort) -> tuple[str, str]:
    """The two commands that show all counters of a port."""
    folder = hw_counters_folder(port.rdma_device)
    return f"ethtool -S {port.name}", f"grep -rH . {folder} 2>&1 || true"


def read(
    device: str, port: TargetPort, outputs: Outputs
) -> tuple[tuple[Counter, ...], tuple[str, ...]]:
    """Counters, and what is missing with its reason."""
    ethtool, grep = commands(port)
    counters: list[Counter] = []
    missing: list[str] = []
    shown = statistics(outputs.get(ethtool, ""))
    if not shown:
        missing.append(f"{port.name}: every port counter: `{ethtool}` shows none")
    else:
        for name, theirs in PORT.items():
            if theirs in shown:
                counters.append(Counter(device, port.name, name, shown[theirs]))
            else:
                missing.append(f"{port.name}: {name}: ethtool has no {theirs}")
        for priority in range(PRIORITY_COUNT):
            _read_priority(device, port.name, priority, shown, counters, missing)
    dump = parse_dump(outputs.get(grep, ""))
    folder = hw_counters_folder(port.rdma_device)
    if not any(file.startswith(folder) for file in dump.files):
        why = dump.complaint(folder) or f"`{grep}` shows none"
        missing.append(f"{port.name}: every RDMA counter of {port.rdma_device}: {why}")
        return tuple(counters), tuple(missing)
    for name, (theirs, bits) in RDMA.items():
        value = dump.number(f"{folder}/{theirs}")
        if value is None:
            why = dump.complaint(f"{folder}/{theirs}") or f"hw_counters has no {theirs}"
            missing.append(f"{port.name}: {name}: {why}")
        else:
            counters.append(Counter(device, port.name, name, value, bits=bits))
    return tuple(counters), tuple(missing)


def _read_priority(
    device: str,
    port: str,
    priority: int,
    shown: dict[str, int],
    counters: list[Counter],
    missing: list[str],
) -> None:
    absent = []
    for name, template in (PRIORITY | PAUSE).items():
        value = shown.get(template.format(priority))
        if value is not None:
            counters.append(Counter(device, port, name, value, priority))
        elif name in PAUSE:
            absent.append(name)
        else:
            theirs = template.format(priority)
            missing.append(f"{port}: {name} of priority {priority}: ethtool has no {theirs}")
    if absent:
        missing.append(
            f"{port}: {', '.join(absent)} of priority {priority}: "
            f"not counted, because PFC is off on priority {priority}"
        )
