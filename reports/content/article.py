"""The article's figures from our own runs and predictions, each with what it rests on.

The article (Alibaba, PAISoar) shows the speed-up of GreenNet on up to 128 GPUs, images a
second of four models in four ways to train, and what 32 hosts send in a long test.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from fabric.site import Site
from reports.content.words import evidence_said
from trainer.predict.check import TESTED_MEDIAN, TESTED_WORST
from trainer.predict.frames import ARTICLE_MODES, article_frames
from validation.results.frames import soak_frame
from validation.results.result import ValidationRun

# What the article publishes of GreenNet: GPUs, speed-up.
PUBLISHED = (128, 101.0)
HOSTS = 32
MODES = {
    "ps-grpc": "parameter servers over gRPC",
    "ps-rdma": "parameter servers over RDMA",
    "ring": "ring over RDMA (PAISoar)",
    "horovod": "Horovod over TCP",
}


@dataclass(frozen=True)
class Soak:
    """A soak of this site: ``frame`` as :func:`soak_frame` makes it, and what it says at once."""

    run_id: str
    created_at: str
    evidence: str
    hosts: int
    cycles: int
    least_gbps: float
    mean_gbps: float
    frame: pd.DataFrame


@dataclass(frozen=True)
class Article:
    """All that the page shows. ``soak`` is None where this site has no run of that suite."""

    site: str
    speedup: pd.DataFrame
    images: pd.DataFrame
    ratios: pd.DataFrame
    soak: Soak | None
    median: float = TESTED_MEDIAN
    worst: float = TESTED_WORST


def article(site: Site, run: ValidationRun | None) -> Article:
    """Predictions for the article's cluster; the soak of ``run``, if one is given."""
    found = article_frames()
    images = found["images"]
    return Article(
        site=site.name,
        speedup=found["speedup"],
        images=images.assign(mode=images["mode"].map(MODES)),
        ratios=found["ratios"],
        soak=_soak(run) if run is not None else None,
    )


def has_soak(run: ValidationRun) -> bool:
    """Whether this run has a soak that brought results."""
    return run.suite("soak") is not None and not soak_frame(run).empty


def _soak(run: ValidationRun) -> Soak | None:
    frame = soak_frame(run)
    if frame.empty:
        return None
    return Soak(
        run_id=run.id,
        created_at=f"{run.started_at:%Y-%m-%d %H:%M} UTC",
        evidence=evidence_said(run.evidence_class),
        hosts=int(frame["host"].nunique()),
        cycles=int(frame["cycle"].nunique()),
        least_gbps=float(frame["goodput_gbps"].min()),
        mean_gbps=float(frame["goodput_gbps"].mean()),
        frame=frame,
    )


assert set(MODES) == set(ARTICLE_MODES)
