"""Counters by what they mean to a lossless fabric: what hurts first, volumes last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

SHOWN_COLUMNS: Final = ["suite", "device", "port", "priority", "counter", "delta", "about"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """One kind of counter; ``names`` are of ``fabric.counters.COUNTER_NAMES``.

    What is ``folded`` is out of sight until asked for.
    """

    title: str
    says: str
    names: tuple[str, ...]
    folded: bool = False


MEANINGS: Final = (
    Meaning(
        "Loss",
        "Packets that a switch or NIC dropped.",
        (
            "rx_prio_discards",
            "queue_drops",
            "rx_discards",
            "tx_discards",
            "rx_mtu_drops",
            "out_of_buffer",
        ),
    ),
    Meaning(
        "Retransmission",
        "What RDMA had to send again: packets were lost or came out of order.",
        (
            "out_of_sequence",
            "packet_seq_err",
            "implied_nak_seq_err",
            "local_ack_timeout_err",
            "duplicate_request",
            "rnr_nak_retry_err",
        ),
    ),
    Meaning(
        "Pause",
        "PFC at work: some under incast is what it is for.",
        ("tx_pause_frames", "rx_pause_frames", "tx_pause_us", "rx_pause_us"),
    ),
    Meaning(
        "ECN and CNP",
        "Marks of switches and the notifications that slow senders down.",
        (
            "ecn_marked_packets",
            "np_ecn_marked_packets",
            "np_cnp_sent",
            "rp_cnp_handled",
            "rp_cnp_ignored",
        ),
    ),
    Meaning(
        "Storms",
        "Pausing without end: a watchdog acted or a NIC warned.",
        ("watchdog_storms", "tx_pause_storm_errors", "tx_pause_storm_warnings"),
    ),
    Meaning(
        "Errors of links",
        "Damaged frames and links that went down.",
        ("link_down_events", "rx_crc_errors", "rx_icrc_errors"),
    ),
    Meaning(
        "Traffic volumes",
        "Packets and bytes.",
        (
            "tx_bytes",
            "rx_bytes",
            "tx_packets",
            "rx_packets",
            "tx_prio_packets",
            "rx_prio_packets",
            "tx_queue_bytes",
            "tx_queue_packets",
        ),
        folded=True,
    ),
)


@dataclass(frozen=True)
class Group:
    """Counters of one meaning that moved, the most first within each counter."""

    meaning: Meaning
    rows: pd.DataFrame

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return "counters-" + self.meaning.title.lower().replace(" ", "-")


def grouped(counters: pd.DataFrame) -> tuple[Group, ...]:
    """All meanings in order, also those of which nothing moved.

    Columns in: device, port, priority, counter, delta, and suite and about where known.
    """
    columns = [name for name in SHOWN_COLUMNS if name in counters]
    groups = []
    for meaning in MEANINGS:
        rank = {name: place for place, name in enumerate(meaning.names)}
        rows = counters[counters["counter"].isin(rank)]
        rows = rows.assign(_rank=rows["counter"].map(rank)).sort_values(
            ["_rank", "delta"], ascending=[True, False], kind="stable"
        )
        groups.append(Group(meaning, rows[columns]))
    return tuple(groups)
