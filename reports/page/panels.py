"""The figures of a run's page, each with its words and the numbers that it draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from reports.content.model import ReportContent, TrainingFacts
from reports.content.words import count_of, evidence_said
from reports.figures import ports, scaling, suites, traffic, training
from reports.page.html import drawn


@dataclass(frozen=True)
class Panel:
    """One figure. ``numbers`` is what it draws, ``table`` the file with all of it.

    ``rests_on`` is what the figure has in its corner.
    """

    id: str
    title: str
    figure: Markup
    rests_on: str
    numbers: pd.DataFrame
    note: str = ""
    wide: bool = False
    table: str = ""


@dataclass(frozen=True)
class Group:
    """Figures under one heading. ``missing`` maps what was not measured to its suite."""

    id: str
    title: str
    short: str
    says: str
    panels: tuple[Panel, ...]
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Wanted:
    """A figure that a run may have: drawn where ``frame`` has rows."""

    id: str
    title: str
    suite: str
    frame: pd.DataFrame
    draw: Callable[[], str]
    numbers: Callable[[], pd.DataFrame]
    note: Callable[[], str]
    wide: bool = False


def run_groups(content: ReportContent) -> tuple[Group, ...]:
    """What the suites measured, then what ports counted meanwhile."""
    pairs, incasts = _pairs(content), _incasts(content)
    return (
        _group(
            content,
            ("traffic", "Pairs and incasts", "Pairs and incasts"),
            "Every host to every other, one pair of a host at a time; then many to one at once, "
            "which is what PFC, ECN and DCQCN are for.",
            [*pairs, *incasts],
        ),
        _group(
            content,
            ("suites", "Classes, bursts, collectives, soak", "More suites"),
            "What a job and its neighbours will do to this fabric.",
            _more(content),
        ),
        _group(
            content,
            ("ports", "Pauses, ECN and CNP by port", "Ports"),
            "Over the whole run. Some of each under incast is what they are for.",
            _ports(content),
        ),
    )


def _group(
    content: ReportContent, named: tuple[str, str, str], says: str, wanted: list[_Wanted]
) -> Group:
    corner = evidence_said(content.evidence_class)
    panels = tuple(
        Panel(
            id=one.id,
            title=one.title,
            figure=drawn(one.draw()),
            rests_on=corner,
            numbers=one.numbers(),
            note=one.note(),
            wide=one.wide,
            table=one.id,
        )
        for one in wanted
        if not one.frame.empty
    )
    missing = {one.title: one.suite for one in wanted if one.frame.empty}
    return Group(*named, says, panels, missing)


def _pairs(content: ReportContent) -> list[_Wanted]:
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
        _Wanted(
            "bandwidth",
            "Bandwidth of every pair",
            "bandwidth",
            bandwidth,
            lambda: traffic.bandwidth_matrix(bandwidth, corner),
            lambda: _plain(bandwidth).sort_values("goodput_gbps", ignore_index=True),
            slowest_pair,
            wide=True,
        ),
        _Wanted(
            "latency",
            "Latency of every pair",
            "latency",
            both,
            lambda: traffic.latency_distribution(latency, content.latency_limit_us, corner, tcp),
            lambda: _plain(both).sort_values("p99_us", ascending=False, ignore_index=True),
            slowest_answer,
        ),
    ]


def _incasts(content: ReportContent) -> list[_Wanted]:
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
        _Wanted(
            "incast",
            "Incast by number of senders",
            "incast",
            content.incast,
            lambda: traffic.incast_growth(content.incast, content.incast_limit_fraction, corner),
            lambda: _plain(content.incast),
            lambda: "The wire should stay full and the shares alike, however many send.",
        ),
        _Wanted(
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
        _Wanted(
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


def _more(content: ReportContent) -> list[_Wanted]:
    corner = evidence_said(content.evidence_class)
    soak = content.soak

    def by_host() -> pd.DataFrame:
        rates = soak.groupby("host", sort=False)["goodput_gbps"].agg(["mean", "min", "max", "std"])
        spread = rates.assign(cov=rates["std"] / rates["mean"]).drop(columns="std")
        return spread.rename(
            columns={"mean": "mean Gb/s", "min": "min Gb/s", "max": "max Gb/s"}
        ).reset_index()

    return [
        _Wanted(
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
        _Wanted(
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
        _Wanted(
            "collective",
            "Rings and exchanges",
            "collective",
            content.collective,
            lambda: suites.collective_busbw(content.collective, corner),
            lambda: content.collective,
            lambda: "A ring is as fast as its slowest member; in an exchange all count together.",
            wide=True,
        ),
        _Wanted(
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


def _ports(content: ReportContent) -> list[_Wanted]:
    corner = evidence_said(content.evidence_class)
    paused = content.pauses
    if not paused.empty:
        paused = paused[paused["pause_frames"] > 0]
    return [
        _Wanted(
            "pauses",
            "PFC frames",
            "",
            paused,
            lambda: ports.pauses(paused, corner),
            lambda: _plain(paused).sort_values("pause_frames", ascending=False, ignore_index=True),
            lambda: "Sent by a port to whoever fills its buffer.",
        ),
        _Wanted(
            "ecn",
            "ECN marks",
            "",
            content.ecn,
            lambda: ports.ecn_marks(content.ecn, corner),
            lambda: content.ecn.sort_values("ecn_marked", ascending=False, ignore_index=True),
            lambda: "Set by a switch on what waits in its queue.",
        ),
        _Wanted(
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


def training_panels(content: ReportContent) -> tuple[Panel, ...]:
    """The curve, the speed over time, and the trace where one was given."""
    panels = [*_trained(content.training)] if content.training is not None else []
    trace = content.trace
    if trace is not None:
        of = f" of {trace.ranks}" if int(trace.frame["rank"].nunique()) < trace.ranks else ""
        corner = "measured on the hosts that trained"
        spent = trace.frame.groupby(["rank", "kind"])["spent_ms"].agg(["count", "sum"])
        panels.append(
            Panel(
                id="timeline",
                title="Timeline of some steps",
                figure=drawn(training.timeline(trace.frame, corner)),
                rests_on=corner,
                numbers=spent.rename(columns={"sum": "sum ms"}).reset_index(),
                note=f"From {trace.name}: {trace.first} to {trace.last}, "
                f"{count_of(int(trace.frame['rank'].nunique()), 'rank')}{of}. An exchange beside "
                "computation costs nothing; a step that waits for it does.",
                wide=True,
                table="timeline",
            )
        )
    return tuple(panels)


def _trained(facts: TrainingFacts) -> list[Panel]:
    if facts.epochs.empty:
        return []
    real = f"real training ({facts.ranks} ranks, {facts.transport})"
    corner = f"{real}; admitted on {facts.gate_class} evidence"
    images = "test" if facts.tested else "training"
    panels = [
        Panel(
            id="training-curve",
            title="Loss and accuracy",
            figure=drawn(training.training_curve(facts.epochs, images, corner)),
            rests_on=corner,
            numbers=facts.epochs,
            table="training",
        )
    ]
    if "seconds" in facts.epochs and float(facts.epochs["seconds"].sum()) > 0:
        panels.append(
            Panel(
                id="training-speed",
                title="Speed over time",
                figure=drawn(training.training_speed(facts.epochs, corner)),
                rests_on=corner,
                numbers=facts.epochs[["epoch", "seconds", "images_per_s"]],
                note="The first epoch compiles.",
                table="training",
            )
        )
    return panels


def forecast_panel(content: ReportContent) -> Panel | None:
    """Images a second by GPUs; None where nothing could be predicted."""
    found = content.forecast
    if found is None or found.frame.empty:
        return None
    shown = ["model", "mode", "gpus", "images_per_s", "speedup", "efficiency", "exposed_s"]
    return Panel(
        id="forecast",
        title="Images a second and efficiency",
        figure=drawn(scaling.scaling(found.frame, "predicted")),
        rests_on="predicted",
        numbers=found.frame[shown],
        wide=True,
        table="forecast",
    )


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=["evidence_class"], errors="ignore")
