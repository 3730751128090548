"""One schema for the counters of every switch and NIC.

A device module translates its vendor's names to the names below, so that
suites and judgement never see a vendor's name. Values are totals since the
device last cleared them; judgement works on deltas only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COUNTER_NAMES: Final[dict[str, str]] = {
    # Port
    "rx_packets": "packets received",
    "tx_packets": "packets sent",
    "rx_bytes": "bytes received",
    "tx_bytes": "bytes sent",
    "rx_discards": "received packets dropped for want of buffer, any priority",
    "tx_discards": "packets dropped at egress, any queue",
    "rx_mtu_drops": "received packets dropped because they exceed the MTU",
    "rx_crc_errors": "frames received with a bad checksum",
    "link_down_events": "times the link went down",
    # Port and priority (ingress) or traffic class (egress)
    "rx_pause_frames": "PFC frames received",
    "tx_pause_frames": "PFC frames sent",
    "rx_pause_us": "microseconds for which transmission was paused by the peer",
    "tx_pause_us": "microseconds for which the peer was asked to pause",
    "rx_prio_packets": "packets received in this priority",
    "tx_prio_packets": "packets sent in this priority",
    "rx_prio_discards": "received packets of this priority dropped for want of buffer",
    "tx_queue_packets": "packets sent from this queue",
    "tx_queue_bytes": "bytes sent from this queue",
    "queue_drops": "packets dropped by this egress queue",
    "ecn_marked_packets": "packets marked CE by this egress queue",
    "watchdog_storms": "PFC storms that the watchdog acted on",
    # RDMA device of a host
    "np_ecn_marked_packets": "RoCE packets received with CE",
    "np_cnp_sent": "congestion notifications sent by this receiver",
    "rp_cnp_handled": "congestion notifications that slowed this sender",
    "rp_cnp_ignored": "congestion notifications that this sender ignored",
    "out_of_sequence": "packets received out of order",
    "packet_seq_err": "NAKs for a sequence error received by this sender",
    "implied_nak_seq_err": "responses that implied a lost packet",
    "local_ack_timeout_err": "retransmissions because no ACK came in time",
    "duplicate_request": "requests received twice, i.e. retransmitted",
    "out_of_buffer": "packets dropped because no receive request was posted",
    "rnr_nak_retry_err": "receiver-not-ready NAKs",
    "rx_icrc_errors": "RoCE packets with a bad invariant CRC",
    "tx_pause_storm_warnings": "times this NIC paused its switch for too long",
    "tx_pause_storm_errors": "times this NIC paused its switch beyond the limit",
}


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter's value.

    ``priority`` is the priority or traffic class where the counter has one.
    ``bits`` is the width at which the device wraps: 32 or 64.
    """

    device: str
    port: str
    name: str
    value: int
    priority: int | None = None
    bits: int = 64

    def __post_init__(self) -> None:
        if self.name not in COUNTER_NAMES:
            raise ValueError(f"{self.name} is not in fabric.counters.COUNTER_NAMES")


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """Every counter that one device showed at one time.

    ``missing`` names what the device did not show, each with its reason, so
    that judgement can fail or skip instead of reading absence as zero.

    ``up_s`` is for how many seconds the device had been up, in steps of a minute on
    some systems; ``boot_id`` is what the Linux kernel drew at random when it booted.
    Each is None or empty where it was not read: systems show one of both.
    """

    device: str
    taken_at_s: float
    counters: tuple[Counter, ...]
    missing: tuple[str, ...] = ()
    up_s: float | None = None
    boot_id: str = ""
