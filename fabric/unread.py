"""Facts of a port that a device may not show, by the names that rules know them by.

An entry of ``DeviceQos.unread`` is ``PORT: FACT: why``, and ``FACT: why`` for all ports
of a device; a fact goes on with its queue or priority. A rule skips where an entry
names a fact that it judges, and no fix touches what an entry names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum


class Fact(StrEnum):
    """How an entry begins."""

    MTU = "MTU"
    CLASS_MTU = "class MTU"
    TRUST = "trust"
    DSCPS = "priority of DSCPs"
    CLASSES = "traffic class of priorities"
    PFC = "PFC of"
    LINK_PAUSE = "link pause"
    ECN = "ECN of"
    SCHEDULING = "scheduling of"
    RATE = "rate limit of"
    BUFFER = "receive buffer"
    WATCHDOG = "PFC watchdog"


# Fields of a port (``nic.`` of its NIC) that are not known where an entry begins so.
FIELDS: Mapping[str, tuple[str, ...]] = {
    Fact.MTU: ("mtu_bytes",),
    Fact.CLASS_MTU: ("class_mtu_bytes",),
    Fact.TRUST: ("trust", "dscp_to_priority"),
    Fact.DSCPS: ("dscp_to_priority",),
    Fact.CLASSES: ("priority_to_class",),
    Fact.PFC: ("pfc_priorities",),
    Fact.LINK_PAUSE: ("link_pause",),
    Fact.ECN: ("queues",),
    Fact.SCHEDULING: ("queues",),
    Fact.RATE: ("queues",),
    Fact.BUFFER: ("ingress_buffers",),
    Fact.WATCHDOG: ("watchdog",),
    "DCBX mode": ("nic.dcbx",),
    "cable length": ("nic.cable_m",),
    "rdma_cm TOS": ("nic.rdma_cm_tos",),
    "verbs traffic class": ("nic.verbs_traffic_class",),
    "DCQCN parameters": ("nic.dcqcn",),
}

# Those that are only a part of each queue, and which.
PARTS: Mapping[str, str] = {
    Fact.ECN: "ecn",
    Fact.SCHEDULING: "scheduler",
    Fact.RATE: "max_rate_bps",
}


def lacking(port: str, fact: Fact, why: str, of: str = "") -> str:
    """The entry that a fact of this port is not known; ``of`` is its queue or priority."""
    return f"{port}: {' '.join(filter(None, (fact, of)))}: {why}"


# What stands behind a fact where all of it is meant.
_ALL_OF = {
    Fact.PFC: "all priorities",
    Fact.ECN: "all queues",
    Fact.SCHEDULING: "all queues",
    Fact.RATE: "all queues",
}


def lacking_all(port: str, why: str) -> Iterator[str]:
    """Entries that no fact of this port is known."""
    return (lacking(port, fact, why, _ALL_OF.get(fact, "")) for fact in Fact)


def unseen(unread: Iterable[str], port: str, fact: str) -> str:
    """The first entry that this fact of a port is not known; empty where it is."""
    starts = (f"{port}: {fact}", fact)
    return next((entry for entry in unread if entry.startswith(starts)), "")
