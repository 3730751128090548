"""From the simulator's deltas to the counters that an emulated host shows.

The inverse of what a NIC module reads; names of mlx5 as in Linux Documentation/
networking/device_drivers/ethernet/mellanox/mlx5/counters.rst and
drivers/infiniband/hw/mlx5/counters.c. Q-counters wrap at 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Names:
    """A driver's names of our counters; ``{}`` stands for the priority.

    ``verbs`` gives the name in hw_counters and the width at which it wraps,
    ``transitions`` what counts each pause once, ``prio_bytes`` bytes by priority with
    ``{}`` for the way first; both empty where there is none.
    """

    port: Mapping[str, tuple[str, ...]]
    priority: Mapping[str, tuple[str, ...]]
    verbs: Mapping[str, tuple[str, int]]
    transitions: str = ""
    prio_bytes: str = ""


_MLX5 = Names(PORT, PRIORITY, VERBS, "rx_prio{}_pause_transition", "{}_prio{}_bytes")
# Sources: fabric.twin.host.stand_ins.factory.
_BNXT = Names(
    {
        "rx_packets": ("rx_good_frames",),
        "tx_packets": ("tx_good_frames",),
        "rx_bytes": ("rx_bytes",),
        "tx_bytes": ("tx_bytes",),
        "rx_discards": ("rx_stat_discard",),
        "tx_discards": ("tx_stat_discard",),
        "rx_mtu_drops": ("rx_mtu_err_frames",),
        "rx_crc_errors": ("rx_fcs_err_frames",),
        "link_down_events": ("link_down_events",),
    },
    {
        "rx_pause_frames": ("rx_pfc_ena_frames_pri{}",),
        "tx_pause_frames": ("tx_pfc_ena_frames_pri{}",),
        "rx_pause_us": ("pfc_pri{}_rx_duration_us",),
        "tx_pause_us": ("pfc_pri{}_tx_duration_us",),
        "rx_prio_packets": ("rx_packets_pri{}",),
        "tx_prio_packets": ("tx_packets_pri{}",),
    },
    {
        "np_ecn_marked_packets": ("rx_ecn_marked_pkts", 64),
        "np_cnp_sent": ("tx_cnp_pkts", 64),
        "rp_cnp_handled": ("rx_cnp_pkts", 64),
        "out_of_sequence": ("oos_drop_count", 64),
        "packet_seq_err": ("seq_err_naks_rcvd", 64),
        "implied_nak_seq_err": ("missing_resp", 64),
        "local_ack_timeout_err": ("to_retransmits", 64),
        "duplicate_request": ("dup_req", 64),
        "out_of_buffer": ("rx_out_of_buffer", 64),
        "rnr_nak_retry_err": ("rnr_naks_rcvd", 64),
    },
    "pfc_pri{}_rx_transitions",
    "{}_bytes_pri{}",
)
_ICE = Names(
    {
        "rx_packets": ("rx_unicast.nic", "rx_unicast"),
        "tx_packets": ("tx_unicast.nic", "tx_unicast"),
        "rx_bytes": ("rx_bytes.nic", "rx_bytes"),
        "tx_bytes": ("tx_bytes.nic", "tx_bytes"),
        "rx_discards": ("rx_dropped.nic", "rx_dropped"),
        "rx_mtu_drops": ("rx_oversize.nic",),
        "rx_crc_errors": ("rx_crc_errors.nic",),
    },
    {
        "rx_pause_frames": ("rx_priority_{}_xoff.nic",),
        "tx_pause_frames": ("tx_priority_{}_xoff.nic",),
    },
    {
        "np_ecn_marked_packets": ("RxECNMrkd", 64),
        "np_cnp_sent": ("cnpSent", 64),
        "rp_cnp_handled": ("cnpHandled", 64),
        "rp_cnp_ignored": ("cnpIgnored", 64),
    },
)
_NAMES = {"bnxt": _BNXT, "irdma": _ICE}


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
    driver = _NAMES.get(nic.family, _MLX5)
    path = f"{nic.folder}/counters"
    counters = {name: int(value) for name, value in read_pairs(path).items()}
    for delta in deltas:
        if delta.name in driver.verbs:
            name, bits = driver.verbs[delta.name]
            file = f"{hw_counters_folder(nic)}/{name}"
            value = (int(read_text(file) or 0) + delta.value) % (1 << bits)
            # A listing of the folder must not meet a file half made.
            replace_text(file, f"{value}\n", scratch=f"{nic.folder}/{name}")
            continue
        names = driver.port.get(delta.name, ())
        if delta.priority is not None:
            names = tuple(
                name.format(delta.priority) for name in driver.priority.get(delta.name, ())
            )
            if delta.name == "rx_pause_frames" and driver.transitions:
                # One transition per pause: the simulator counts XOFF frames, not refreshes.
                names += (driver.transitions.format(delta.priority),)
        for name in names:
            counters[name] = (counters[name] + delta.value) % (1 << 64)
    for way in ("rx", "tx") if driver.prio_bytes else ():
        for priority, share in _byte_shares(deltas, way).items():
            counters[driver.prio_bytes.format(way, priority)] += share
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
