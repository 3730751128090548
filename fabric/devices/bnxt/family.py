"""The bnxt family: ``dcb`` for the port, bnxt_re's configfs for congestion control.

Sources: Linux drivers/net/ethernet/broadcom/bnxt/{bnxt_dcb.c,bnxt_ethtool.c} and
drivers/infiniband/hw/bnxt_re/hw_counters.c; Broadcom's own driver for the files of
configfs, which the kernel's does not have (bnxt_re configfs.c), and the order of
Broadcom's bnxt_setupcc.sh 236.1.155.0 (``-u 4``, dcb).

(unverified) Where Broadcom's driver applies a value at once, writing ``apply``
afterwards does no harm; a DSCP without an entry is of priority 0; what a QP's own
traffic class does beside ``roce_dscp``.
"""

from __future__ import annotations

import dataclasses

from fabric.devices.base import Outputs, TargetPort
from fabric.devices.bnxt.congestion import (
    FOLDER,
    OWNED,
    UNSHOWN,
    congestion_items,
    folder_of,
    markable,
    read_congestion,
    remarks,
    shown,
)
from fabric.devices.dcb import DcbFamily, Traits
from fabric.devices.dcb.counters import CounterNames
from fabric.devices.dcb.facts import Facts
from fabric.devices.dcb.family import dcbx_items
from fabric.devices.dcb.paper import published
from fabric.devices.dcb.settings import Item
from fabric.devices.linux.dump import MISSING
from fabric.qos import PortQos, Remark

TRAITS = Traits(
    name="bnxt",
    driver="bnxt_en",
    max_lossless=1,
    unmapped=0,
    compact=True,
    positive_shares=True,
    unseen=(
        "receive buffer of every priority (bnxt_en sizes them itself and shows none)",
        "cable length (bnxt_en takes none)",
    ),
    notes=(
        "headroom is the firmware's, for the longest cable that it supports",
        "DCBX in firmware (an NVRAM option) refuses every setting of the host",
        "congestion control needs Broadcom's own bnxt_re, for its configfs",
    ),
    # The PCI ID Repository, vendor 14e4.
    models={
        "0x1750": "BCM57508",
        "0x1751": "BCM57504",
        "0x1752": "BCM57502",
        "0x1760": "BCM57608",
    },
)
NAMES = CounterNames(
    port={
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
    priority={
        "rx_prio_packets": "rx_packets_pri{}",
        "tx_prio_packets": "tx_packets_pri{}",
        "rx_pause_frames": "rx_pfc_ena_frames_pri{}",
        "tx_pause_frames": "tx_pfc_ena_frames_pri{}",
        "rx_pause_us": "pfc_pri{}_rx_duration_us",
        "tx_pause_us": "pfc_pri{}_tx_duration_us",
    },
    # Names of Linux 5.15 to 6.15, then those that 6.16 and Broadcom's driver have.
    rdma={
        "np_ecn_marked_packets": ("rx_ecn_marked_pkts", "np_ecn_marked_roce_packets"),
        "np_cnp_sent": ("tx_cnp_pkts", "np_cnp_sent", "np_cnp_pkts"),
        "rp_cnp_handled": ("rx_cnp_pkts", "rp_cnp_handled"),
        "out_of_sequence": ("oos_drop_count",),
        "packet_seq_err": ("seq_err_naks_rcvd",),
        "implied_nak_seq_err": ("missing_resp",),
        "local_ack_timeout_err": ("to_retransmits",),
        "duplicate_request": ("dup_req",),
        "out_of_buffer": ("rx_out_of_buffer", "out_of_buffer"),
        "rnr_nak_retry_err": ("rnr_naks_rcvd",),
    },
    uncounted={
        "rx_prio_discards": "bnxt_en counts ingress drops by port: see rx_discards",
        "rp_cnp_ignored": "bnxt_re does not count it",
        "rx_icrc_errors": "bnxt_re counts it among rx_roce_errors only",
        "tx_pause_storm_warnings": "bnxt_en has no such events",
        "tx_pause_storm_errors": "bnxt_en has no such events",
    },
)


class BnxtFamily(DcbFamily):
    """Broadcom NetXtreme-E: one lossless class, congestion control of one priority."""

    def __init__(self) -> None:
        super().__init__(TRAITS, NAMES)

    def own_paths(self, port: TargetPort) -> tuple[str, ...]:  # noqa: ARG002
        """Congestion control in configfs."""
        return (FOLDER,)

    def own_known(self, port: TargetPort, facts: Facts, outputs: Outputs) -> frozenset[str]:
        """DCBX, and congestion control where configfs shows it."""
        own = frozenset(OWNED) if shown(facts) else frozenset()
        return super().own_known(port, facts, outputs) | own

    def own_read(
        self,
        port: TargetPort,  # noqa: ARG002
        facts: Facts,
        outputs: Outputs,  # noqa: ARG002
        state: PortQos,
    ) -> tuple[PortQos, tuple[str, ...], tuple[Remark, ...]]:
        """Congestion control and the NIC's own TOS byte, where configfs shows them."""
        if not shown(facts):
            why = facts.why(folder_of(facts.rdma_device))
            return state, (f"DCQCN parameters ({why})", f"verbs traffic class ({why})"), ()
        return read_congestion(facts, state), (UNSHOWN,), remarks(facts)

    def own_fit(self, port: PortQos) -> PortQos:
        """DCQCN of one priority; its rate parameters have no counterpart in mlx5's."""
        nic = port.nic
        if nic is None:
            return port
        dcqcn = None
        if nic.dcqcn is not None and (priorities := nic.dcqcn.np_priorities):
            first = priorities[:1]
            dcqcn = published(first, nic.dcqcn.cnp_dscp, nic.dcqcn.cnp_priority)
        tos = markable(nic.verbs_traffic_class or 0) or None
        return dataclasses.replace(
            port, nic=dataclasses.replace(nic, dcqcn=dcqcn, verbs_traffic_class=tos)
        )

    def own_items(self, port: PortQos) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """DCBX before ``dcb``'s settings, congestion control after them."""
        return dcbx_items(port), congestion_items(port)

    def own_lacking(self, facts: Facts) -> frozenset[str]:
        """Congestion control, where the driver has no configfs."""
        return frozenset(OWNED) if facts.files.complaint(FOLDER) == MISSING else frozenset()
