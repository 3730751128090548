"""The figures of a run's page, each with its words and the numbers that it draws."""

from __future__ import annotations

from reports.content.model import ReportContent, TrainingFacts
from reports.content.words import count_of, evidence_said
from reports.figures import scaling, training
from reports.page.html import drawn
from reports.page.measured import counted_by_port, incasts, more, pairs
from reports.page.panel import Group, Panel, Wanted


def run_groups(content: ReportContent) -> tuple[Group, ...]:
    """What the suites measured, then what ports counted meanwhile."""
    return (
        _group(
            content,
            ("traffic", "Pairs and incasts", "Pairs and incasts"),
            "Every host to every other, one pair of a host at a time; then many to one at once, "
            "which is what PFC, ECN and DCQCN are for.",
            [*pairs(content), *incasts(content)],
        ),
        _group(
            content,
            ("suites", "Classes, bursts, collectives, soak", "More suites"),
            "What a job and its neighbours will do to this fabric.",
            more(content),
        ),
        _group(
            content,
            ("ports", "Pauses, ECN and CNP by port", "Ports"),
            "Over the whole run. Some of each under incast is what they are for.",
            counted_by_port(content),
        ),
    )


def _group(
    content: ReportContent, named: tuple[str, str, str], says: str, wanted: list[Wanted]
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
