"""Any NIC whose driver answers iproute2's ``dcb``.

What such a driver does not show that way (congestion control, receive buffers, the
traffic class of verbs) is named in ``unread``, never taken for granted. RDMA counters
by the names that several drivers of Linux drivers/infiniband/hw share.
"""

from fabric.devices.dcb import DcbFamily, Traits
from fabric.devices.dcb.counters import CounterNames

TRAITS = Traits(
    name="generic",
    unseen=(
        "receive buffer of every priority (dcb shows none of this driver)",
        "cable length (the driver takes none)",
        "DCQCN parameters (dcb shows none)",
        "verbs traffic class (no file of this driver is known)",
    ),
    notes=("only what iproute2's dcb sets is read and set",),
)
NAMES = CounterNames(
    rdma={
        "np_ecn_marked_packets": ("np_ecn_marked_roce_packets", "rx_ecn_marked_pkts"),
        "np_cnp_sent": ("np_cnp_sent", "tx_cnp_pkts"),
        "rp_cnp_handled": ("rp_cnp_handled", "rx_cnp_pkts"),
        "out_of_sequence": ("out_of_sequence",),
        "packet_seq_err": ("packet_seq_err",),
        "local_ack_timeout_err": ("local_ack_timeout_err",),
        "duplicate_request": ("duplicate_request",),
        "out_of_buffer": ("out_of_buffer",),
        "rnr_nak_retry_err": ("rnr_nak_retry_err",),
    }
)
FAMILY = DcbFamily(TRAITS, NAMES)
