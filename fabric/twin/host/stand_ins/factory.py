"""A NIC as it comes out of a reset: no setting, no count survives."""

from __future__ import annotations

import os

from . import registers
from .files import PRIORITIES, Host, Nic, NicState, replace_text, write_pairs, write_text

# What ``ethtool -S`` shows, in the driver's order, per-priority groups below.
_PORT_COUNTERS = """\
rx_packets rx_bytes tx_packets tx_bytes rx_csum_complete rx_out_of_buffer
rx_if_down_packets rx_steer_missed_packets rx_vport_rdma_unicast_packets
rx_vport_rdma_unicast_bytes tx_vport_rdma_unicast_packets tx_vport_rdma_unicast_bytes
tx_packets_phy rx_packets_phy rx_crc_errors_phy tx_bytes_phy rx_bytes_phy
rx_in_range_len_errors_phy rx_out_of_range_len_phy rx_oversize_pkts_phy rx_symbol_err_phy
rx_unsupported_op_phy tx_discards_phy tx_errors_phy rx_undersize_pkts_phy rx_fragments_phy
rx_jabbers_phy rx_discards_phy link_down_events_phy rx_pcs_symbol_err_phy
rx_corrected_bits_phy rx_pci_signal_integrity tx_pci_signal_integrity
outbound_pci_stalled_rd outbound_pci_stalled_wr
"""
PRIORITY_COUNTERS = (
    "rx_prio{}_bytes",
    "rx_prio{}_packets",
    "rx_prio{}_discards",
    "tx_prio{}_bytes",
    "tx_prio{}_packets",
)
PAUSE_COUNTERS = (
    "rx_{}_pause",
    "rx_{}_pause_duration",
    "tx_{}_pause",
    "tx_{}_pause_duration",
    "rx_{}_pause_transition",
)
STORM_COUNTERS = ("tx_pause_storm_warning_events", "tx_pause_storm_error_events")
CONGESTION_COUNTERS = ("rx_prio{}_buf_discard", "rx_prio{}_cong_discard", "rx_prio{}_marked")

# /sys/class/infiniband/DEV/ports/1/hw_counters (Linux drivers/infiniband/hw/mlx5/counters.c).
_HW_COUNTERS = """\
duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent
np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error
req_cqe_flush_error req_remote_access_errors req_remote_invalid_request
req_rnr_retries_exceeded req_transport_retries_exceeded resp_cqe_error resp_cqe_flush_error
resp_local_length_error resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans
roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans
rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_icrc_encapsulated rx_read_requests
rx_write_requests
"""
LIFESPAN_MS = 10


def counter_names() -> list[str]:
    """Every counter of ``ethtool -S``, in its order."""
    priorities = range(PRIORITIES)
    names = _PORT_COUNTERS.split()
    names += [name.format(p) for p in priorities for name in PRIORITY_COUNTERS]
    for scope in ("global", *(f"prio{p}" for p in priorities)):
        names += [name.format(scope) for name in PAUSE_COUNTERS]
    names += STORM_COUNTERS
    names += [name.format(p) for p in priorities for name in CONGESTION_COUNTERS]
    return names


def hw_counters_folder(nic: Nic) -> str:
    """Where the verbs device's counters lie."""
    return f"{nic.verbs}/ports/1/hw_counters"


def reset_nic(nic: Nic) -> None:
    """Settings and counters as after power-on; files are rewritten in place."""
    replace_text(f"{nic.folder}/state", NicState().text())
    os.makedirs(nic.net, exist_ok=True)
    write_text(f"{nic.net}/operstate", "up\n")
    registers.reset(nic)
    write_pairs(f"{nic.folder}/counters", dict.fromkeys(counter_names(), "0"))
    folder = hw_counters_folder(nic)
    os.makedirs(folder, exist_ok=True)
    for name in _HW_COUNTERS.split():
        write_text(f"{folder}/{name}", f"{LIFESPAN_MS if name == 'lifespan' else 0}\n")


def reset_host(host: Host) -> None:
    """Every NIC of a host, as a power cycle does."""
    for nic in host.nics():
        reset_nic(nic)
