"""From the simulator's deltas to the counters that an emulated host shows.

The inverse of what a NIC module reads; names as in Linux Documentation/
networking/device_drivers/ethernet/mellanox/mlx5/counters.rst and
drivers/infiniband/hw/mlx5/counters.c. Q-counters wrap at 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from fabric.counters import Counter
from fabric.twin.host.stand_ins.factory import hw_counters_folder
from fabric.twin.host.stand_ins.files import (
    Host,
    Nic,
    read_pairs,
    read_text,
    replace_text,
    write_pairs,
)

PORT = {
    "rx_packets": ("rx_packets_phy", "rx_vport_rdma_unicast_packets"),
    "tx_packets": ("tx_packets_phy", "tx_vport_rdma_unicast_packets"),
    "rx_bytes": ("rx_bytes_phy", "rx_vport_rdma_unicast_bytes"),
    "tx_bytes": ("tx_bytes_phy", "tx_vport_rdma_unicast_bytes"),
    "rx_discards": ("rx_discards_phy",),
    "tx_discards": ("tx_discards_phy",),
    "rx_mtu_drops": ("rx_oversize_pkts_phy",),
    "rx_crc_errors": ("rx_crc_errors_phy",),
    "link_down_events": ("link_down_events_phy",),
    "tx_pause_storm_warnings": ("tx_pause_storm_warning_events",),
    "tx_pause_storm_errors": ("tx_pause_storm_error_events",),
}
PRIORITY = {
    "rx_pause_frames": ("rx_prio{}_pause",),
    "tx_pause_frames": ("tx_prio{}_pause",),
    "rx_pause_us": ("rx_prio{}_pause_duration",),
    "tx_pause_us": ("tx_prio{}_pause_duration",),
    "rx_prio_packets": ("rx_prio{}_packets",),
    "tx_prio_packets": ("tx_prio{}_packets",),
    "rx_prio_discards": ("rx_prio{}_discards", "rx_prio{}_buf_discard"),
}
# Name in hw_counters, and the width at which it wraps.
VERBS = {
    "np_ecn_marked_packets": ("np_ecn_marked_roce_packets", 64),
    "np_cnp_sent": ("np_cnp_sent", 64),
    "rp_cnp_handled": ("rp_cnp_handled", 64),
    "rp_cnp_ignored": ("rp_cnp_ignored", 64),
    "out_of_sequence": ("out_of_sequence", 32),
    "packet_seq_err": ("packet_seq_err", 32),
    "implied_nak_seq_err": ("implied_nak_seq_err", 32),
    "local_ack_timeout_err": ("local_ack_timeout_err", 32),
    "duplicate_request": ("duplicate_request", 32),
    "out_of_buffer": ("out_of_buffer", 32),
    "rnr_nak_retry_err": ("rnr_nak_retry_err", 32),
    "rx_icrc_errors": ("rx_icrc_encapsulated", 64),
}


def add(host: Host, deltas: Sequence[Counter]) -> None:
    """Add deltas to the host's counters; those that a NIC does not have are left out.

    Raises ValueError for a port that the host does not have.
    """
    by_port: dict[str, list[Counter]] = {}
    for delta in deltas:
        by_port.setdefault(delta.port, []).append(delta)
    for port, own in by_port.items():
        nic = host.nic(port)
        if nic is None:
            raise ValueError(f"counters for {own[0].device}:{port}, which is no NIC of it")
        _add_to_nic(nic, own)


def _add_to_nic(nic: Nic, deltas: Sequence[Counter]) -> None:
    path = f"{nic.folder}/counters"
    counters = {name: int(value) for name, value in read_pairs(path).items()}
    for delta in deltas:
        if delta.name in VERBS:
            name, bits = VERBS[delta.name]
            file = f"{hw_counters_folder(nic)}/{name}"
            value = (int(read_text(file) or 0) + delta.value) % (1 << bits)
            # A listing of the folder must not meet a file half made.
            replace_text(file, f"{value}\n", scratch=f"{nic.folder}/{name}")
            continue
        names = PORT.get(delta.name, ())
        if delta.priority is not None:
            names = tuple(name.format(delta.priority) for name in PRIORITY.get(delta.name, ()))
            if delta.name == "rx_pause_frames":
                # One transition per pause: the simulator counts XOFF frames, not refreshes.
                names += (f"rx_prio{delta.priority}_pause_transition",)
        for name in names:
            counters[name] = (counters[name] + delta.value) % (1 << 64)
    for way in ("rx", "tx"):
        for priority, share in _byte_shares(deltas, way).items():
            counters[f"{way}_prio{priority}_bytes"] += share
    write_pairs(path, {name: str(value) for name, value in counters.items()})


def _byte_shares(deltas: Sequence[Counter], way: str) -> dict[int, int]:
    """The port's bytes spread over priorities as its packets are: nobody counts them apart."""
    total = sum(delta.value for delta in deltas if delta.name == f"{way}_bytes")
    packets = {
        delta.priority: delta.value
        for delta in deltas
        if delta.name == f"{way}_prio_packets" and delta.priority is not None
    }
    count = sum(packets.values())
    return {priority: total * own // count for priority, own in packets.items()} if count else {}
