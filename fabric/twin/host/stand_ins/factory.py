"""A NIC as it comes out of a reset: no setting, no count survives."""

from __future__ import annotations

import os

from . import link, registers
from .dcbnl import dcbnl_of
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

# bnxt_ethtool.c (bnxt_port_stats_arr, bnxt_port_stats_ext_arr and by priority).
_BNXT_COUNTERS = """\
rx_good_frames rx_bytes rx_fcs_err_frames rx_mtu_err_frames rx_pause_frames rx_pfc_frames
rx_stat_discard rx_stat_err tx_good_frames tx_bytes tx_pause_frames tx_pfc_frames
tx_stat_discard tx_stat_error link_down_events continuous_pause_events resume_pause_events
"""
_BNXT_PRIORITY = (
    "rx_pfc_ena_frames_pri{}", "tx_pfc_ena_frames_pri{}", "pfc_pri{}_rx_duration_us",
    "pfc_pri{}_rx_transitions", "pfc_pri{}_tx_duration_us", "pfc_pri{}_tx_transitions",
    "rx_bytes_pri{}", "rx_packets_pri{}", "tx_bytes_pri{}", "tx_packets_pri{}",
)  # fmt: skip
# drivers/infiniband/hw/bnxt_re/hw_counters.c of Linux 6.8, shortened.
_BNXT_HW = """\
active_qps rx_pkts rx_bytes tx_pkts tx_bytes recoverable_errors rx_roce_errors
rx_roce_discards to_retransmits seq_err_naks_rcvd max_retry_exceeded rnr_naks_rcvd
missing_resp unrecoverable_err dup_req oos_drop_count rx_roce_good_pkts rx_roce_good_bytes
rx_out_of_buffer tx_cnp_pkts rx_cnp_pkts rx_ecn_marked_pkts lifespan
"""
# ice_ethtool.c (ice_gstrings_pf_stats and by priority).
_ICE_COUNTERS = """\
rx_bytes tx_bytes rx_unicast tx_unicast rx_dropped rx_bytes.nic tx_bytes.nic
rx_unicast.nic tx_unicast.nic rx_multicast.nic tx_multicast.nic rx_broadcast.nic
tx_broadcast.nic tx_errors.nic rx_dropped.nic link_xon_rx.nic link_xoff_rx.nic
link_xon_tx.nic link_xoff_tx.nic tx_dropped_link_down.nic rx_undersize.nic
rx_fragments.nic rx_oversize.nic rx_jabber.nic rx_csum_bad.nic rx_crc_errors.nic
"""
_ICE_PRIORITY = (
    "tx_priority_{}_xon.nic", "tx_priority_{}_xoff.nic",
    "rx_priority_{}_xon.nic", "rx_priority_{}_xoff.nic",
)  # fmt: skip
# drivers/infiniband/hw/irdma/verbs.c, the names of an E810.
_ICE_HW = """\
ip4InDiscards ip4InOctets ip4InPkts ip4OutOctets ip4OutPkts InRdmaReads InRdmaSends
InRdmaWrites OutRdmaReads OutRdmaSends OutRdmaWrites cnpHandled cnpIgnored cnpSent RxUDP
TxUDP RxECNMrkd RetransSegs rxVlanErrors lifespan
"""


def pause_names(family: str) -> tuple[str, str]:
    """Counters of PFC frames sent and received, with ``{}`` for the priority."""
    return {
        "bnxt": ("tx_pfc_ena_frames_pri{}", "rx_pfc_ena_frames_pri{}"),
        "irdma": ("tx_priority_{}_xoff.nic", "rx_priority_{}_xoff.nic"),
    }.get(family, ("tx_prio{}_pause", "rx_prio{}_pause"))


def names_of(nic: Nic) -> tuple[list[str], list[str]]:
    """Counters of ``ethtool -S``, and those of hw_counters, of this NIC."""
    every = {
        "bnxt": (_BNXT_COUNTERS, _BNXT_PRIORITY, _BNXT_HW),
        "irdma": (_ICE_COUNTERS, _ICE_PRIORITY, _ICE_HW),
    }.get(nic.family)
    if every is None:
        return counter_names(), _HW_COUNTERS.split()
    port, by_priority, verbs = every
    more = [name.format(p) for p in range(PRIORITIES) for name in by_priority]
    return [*port.split(), *more], verbs.split()


def counter_names() -> list[str]:
    """Every counter that mlx5's ``ethtool -S`` shows, in its order."""
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
    state = NicState()
    dcbnl_of(nic).factory(state)
    replace_text(f"{nic.folder}/state", state.text())
    link.show(nic, state)
    registers.reset(nic)
    names, verbs = names_of(nic)
    write_pairs(f"{nic.folder}/counters", dict.fromkeys(names, "0"))
    folder = hw_counters_folder(nic)
    os.makedirs(folder, exist_ok=True)
    for name in verbs:
        write_text(f"{folder}/{name}", f"{LIFESPAN_MS if name == 'lifespan' else 0}\n")


def reset_host(host: Host) -> None:
    """Every NIC of a host, as a power cycle does."""
    for nic in host.nics():
        reset_nic(nic)
