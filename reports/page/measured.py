"""The figures of what suites measured and ports counted."""

from __future__ import annotations

import pandas as pd

from reports.content.model import ReportContent
from reports.content.words import count_of, evidence_said
from reports.figures import ports, suites, traffic
from reports.page.panel import Wanted


def pairs(content: ReportContent) -> list[Wanted]:
    """Bandwidth and latency of every pair."""
    corner = evidence_said(content.evidence_class)
    bandwidth, latency, tcp = content.bandwidth, content.latency, content.tcp_latency
    both = pd.concat(
        [rows.assign(by=kind) for rows, kind in ((latency, "RDMA"), (tcp, "TCP")) if len(rows)]
        or [latency]
    )

    def slowest_answer() -> str:
        if len(tcp):
            rdma = f"RDMA {latency['p50_us'].median():.2f} us, " if len(latency) else ""
            return (
                f"Medians of all pairs: {rdma}TCP {tcp['p50_us'].median():.2f} us. What TCP takes "
                "is its host's stack: shown, not judged."
            )
        slow = latency.sort_values("p99_us").iloc[-1]
        return (
            f"Slowest: {slow['source']} to {slow['target']}, {slow['p50_us']:.2f} us median, "
            f"{slow['p99_us']:.2f} us at the 99th percentile. TCP beside it: the suite tcp, on "
            "real hosts."
        )

    def slowest_pair() -> str:
        slow = bandwidth.sort_values("goodput_gbps").iloc[0]
        return (
            f"Slowest: {slow['source']} to {slow['target']}, {slow['goodput_gbps']:.2f} Gb/s. "
            "Pairs that failed have a frame."
        )

    return [
        Wanted(
            "bandwidth",
            "Bandwidth of every pair",
            "bandwidth",
            bandwidth,
            lambda: traffic.bandwidth_matrix(bandwidth, corner),
            lambda: _plain(bandwidth).sort_values("goodput_gbps", ignore_index=True),
            slowest_pair,
            wide=True,
        ),
        Wanted(
            "latency",
            "Latency of every pair",
            "latency",
            both,
            lambda: traffic.latency_distribution(latency, content.latency_limit_us, corner, tcp),
            lambda: _plain(both).sort_values("p99_us", ascending=False, ignore_index=True),
            slowest_answer,
        ),
    ]


def incasts(content: ReportContent) -> list[Wanted]:
    """Incasts by size, every sender, the queues before the receiver."""
    corner = evidence_said(content.evidence_class)
    senders, queues = content.senders, content.queues

    def by_sender() -> pd.DataFrame:
        shares = senders.groupby("sender", sort=False)["goodput_gbps"].agg(["mean", "min", "max"])
        return shares.rename(columns=lambda name: f"{name} Gb/s").reset_index()

    def by_queue() -> pd.DataFrame:
        depth = queues.groupby("port", sort=False)["queue_bytes"].agg(["mean", "max"])
        deepest = depth.sort_values("max", ascending=False)
        return deepest.rename(columns=lambda name: f"{name} bytes").reset_index()

    return [
        Wanted(
            "incast",
            "Incast by number of senders",
            "incast",
            content.incast,
            lambda: traffic.incast_growth(content.incast, content.incast_limit_fraction, corner),
            lambda: _plain(content.incast),
            lambda: "The wire should stay full and the shares alike, however many send.",
        ),
        Wanted(
            "senders",
            "Incast: every sender over time",
            "incast",
            senders,
            lambda: traffic.sender_stability(senders, corner),
            by_sender,
            lambda: (
                "All other hosts send to one receiver at once; each line is one sender. On a "
                "healthy fabric they lie close together and stay there."
            ),
            wide=True,
        ),
        Wanted(
            "queues",
            "Queues under incast",
            "incast",
            queues,
            lambda: traffic.queue_depth(queues, corner),
            by_queue,
            lambda: "The deepest egress queues of switches during the largest incast.",
            wide=True,
        ),
    ]


def more(content: ReportContent) -> list[Wanted]:
    """Classes, bursts, collectives and the soak."""
    corner = evidence_said(content.evidence_class)
    soak = content.soak

    def by_host() -> pd.DataFrame:
        rates = soak.groupby("host", sort=False)["goodput_gbps"].agg(["mean", "min", "max", "std"])
        spread = rates.assign(cov=rates["std"] / rates["mean"]).drop(columns="std")
        return spread.rename(
            columns={"mean": "mean Gb/s", "min": "min Gb/s", "max": "max Gb/s"}
        ).reset_index()

    return [
        Wanted(
            "mixed",
            "TCP beside RDMA",
            "mixed",
            content.mixed,
            lambda: suites.mixed_shares(content.mixed, corner),
            lambda: content.mixed,
            lambda: (
                "One sender of a class against many of the other. 100 % is what ETS guarantees a "
                "class, or what it could send alone where that is less."
            ),
        ),
        Wanted(
            "burst",
            "Bursts",
            "burst",
            content.burst,
            lambda: suites.burst_fractions(content.burst, corner),
            lambda: content.burst,
            lambda: (
                "100 % is what comes through even if every burst waits for all others; more "
                "means that they seldom met."
            ),
        ),
        Wanted(
            "collective",
            "Rings and exchanges",
            "collective",
            content.collective,
            lambda: suites.collective_busbw(content.collective, corner),
            lambda: content.collective,
            lambda: "A ring is as fast as its slowest member; in an exchange all count together.",
            wide=True,
        ),
        Wanted(
            "soak",
            "Stability over the soak",
            "soak",
            soak,
            lambda: suites.soak_stability(soak, corner),
            by_host,
            lambda: (
                f"{count_of(int(soak['cycle'].nunique()), 'short run')}, one after the other; "
                "each line is one host. Flat and close together is good."
            ),
            wide=True,
        ),
    ]


def counted_by_port(content: ReportContent) -> list[Wanted]:
    """Pauses, marks and notifications."""
    corner = evidence_said(content.evidence_class)
    paused = content.pauses
    if not paused.empty:
        paused = paused[paused["pause_frames"] > 0]
    return [
        Wanted(
            "pauses",
            "PFC frames",
            "",
            paused,
            lambda: ports.pauses(paused, corner),
            lambda: _plain(paused).sort_values("pause_frames", ascending=False, ignore_index=True),
            lambda: "Sent by a port to whoever fills its buffer.",
        ),
        Wanted(
            "ecn",
            "ECN marks",
            "",
            content.ecn,
            lambda: ports.ecn_marks(content.ecn, corner),
            lambda: content.ecn.sort_values("ecn_marked", ascending=False, ignore_index=True),
            lambda: "Set by a switch on what waits in its queue.",
        ),
        Wanted(
            "cnps",
            "Congestion notifications",
            "",
            content.cnps,
            lambda: ports.notifications(content.cnps, corner),
            lambda: content.cnps.sort_values("cnp_sent", ascending=False, ignore_index=True),
            lambda: "A receiver sends them for marked packets; a sender that handles one slows.",
            wide=True,
        ),
    ]


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["evidence_class"], errors="ignore")
