"""The page of the article's figures, drawn from our own runs and predictions."""

from __future__ import annotations

import pandas as pd

from reports.content.article import HOSTS, PUBLISHED, Article
from reports.figures import scaling, suites
from reports.page.html import drawn, render
from reports.page.panel import Panel

_PREDICTED = "predicted; the point is the article's own"


def render_article(article: Article) -> str:
    """The page's whole text."""
    return render(
        "article.html.j2",
        article=article,
        panels=_panels(article),
        soak=_soak_panel(article),
        ratios=_ratios(article.ratios),
        hosts=HOSTS,
    )


def _panels(article: Article) -> tuple[Panel, ...]:
    scaled = ["gpus", "hosts", "images_per_s", "speedup", "efficiency", "evidence"]
    last = article.speedup.iloc[-1]
    return (
        Panel(
            id="speedup",
            title="Speed-up of GreenNet on 1 to 128 GPUs",
            figure=drawn(scaling.speedup(article.speedup, PUBLISHED, _PREDICTED)),
            rests_on=_PREDICTED,
            numbers=article.speedup[scaled],
            note=f"Predicted {last['speedup']:.1f} on {last['gpus']} GPUs; the article publishes "
            f"{PUBLISHED[1]:g} and does not describe its GreenNet, so ours stands in for it.",
            wide=True,
            table="speedup",
        ),
        Panel(
            id="images",
            title="Images a second of four models, four ways to train",
            figure=drawn(scaling.images(article.images, "predicted")),
            rests_on="predicted",
            numbers=article.images[["model", "mode", *scaled]],
            note="On 25G RoCE with 2 GPUs of a P100's speed a host.",
            wide=True,
            table="images",
        ),
    )


def _soak_panel(article: Article) -> Panel | None:
    soak = article.soak
    if soak is None:
        return None
    return Panel(
        id="soak",
        title=f"What {soak.hosts} hosts send in a long test",
        figure=drawn(suites.soak_stability(soak.frame, soak.evidence)),
        rests_on=soak.evidence,
        numbers=soak.frame,
        note=f"Run {soak.run_id}, {soak.created_at}, {soak.cycles} cycles: {soak.mean_gbps:.2f} "
        f"Gb/s on average, never less than {soak.least_gbps:.2f}.",
        wide=True,
        table="soak",
    )


def _ratios(ratios: pd.DataFrame) -> pd.DataFrame:
    percent = (100 * ratios["error"]).map("{:+.1f} %".format)
    shown = ["figure", "published", "predicted", "error", "side", "evidence", "assumed"]
    return ratios.assign(error=percent)[shown]
