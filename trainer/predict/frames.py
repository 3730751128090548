"""Predictions as frames: what a table, a plot or a report draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import pandas as pd

from trainer.predict.check import Row, check
from trainer.predict.constants import DEFAULTS, Constants
from trainer.predict.published import Bench, article_setup
from trainer.predict.setup import Prediction
from trainer.predict.step import predict

EVIDENCE = "predicted"
ARTICLE_MODELS = ("inception_v3", "resnet50", "resnet152", "vgg16")
ARTICLE_MODES = ("ps-grpc", "ps-rdma", "ring", "horovod")
ARTICLE_GPUS = (1, 2, 4, 8, 16, 32, 64)
GREENNET_GPUS = (*ARTICLE_GPUS, 128)
_NIC_BPS = 25 * 10**9


def scaling_frame(mode: str, predictions: Iterable[Prediction]) -> pd.DataFrame:
    """One row a prediction: its numbers, ``mode``, and ``evidence``, which is predicted."""
    rows = [{"mode": mode, **asdict(found), "evidence": EVIDENCE} for found in predictions]
    return pd.DataFrame(rows).drop(columns="notes")


def article_frames(constants: Constants = DEFAULTS) -> dict[str, pd.DataFrame]:
    """What of the article's figures is predicted, for ``paisoar report --article``.

    ``speedup``: GreenNet on 1 to 128 GPUs. ``images``: images a second of four models in
    the article's modes on 1 to 64 GPUs. Both have the columns of :func:`scaling_frame`.
    ``ratios``: the article's thirteen numbers (figure, published, predicted, error, side,
    evidence).
    """
    bench = Bench(constants)
    fabric = bench.fabric(GREENNET_GPUS[-1] // 2, _NIC_BPS)

    def frame(model: str, mode: str, gpus: Sequence[int]) -> pd.DataFrame:
        return scaling_frame(mode, predict(article_setup(model, mode), gpus, fabric, constants))

    images = [
        frame(model, mode, ARTICLE_GPUS) for model in ARTICLE_MODELS for mode in ARTICLE_MODES
    ]
    return {
        "speedup": frame("greennet", "ring", GREENNET_GPUS),
        "images": pd.concat(images, ignore_index=True),
        "ratios": check_frame(check(constants, only="article/")),
    }


def check_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """One row a published figure."""
    return pd.DataFrame(
        {
            "source": row.figure.source,
            "figure": row.figure.what,
            "key": row.figure.key,
            "unit": row.figure.unit,
            "published": row.figure.published,
            "predicted": row.predicted,
            "error": row.error,
            "side": row.side,
            "assumed": row.figure.assumed,
            "evidence": EVIDENCE,
        }
        for row in rows
    )
