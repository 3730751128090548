"""How training would scale on the fabric as the run found it: predicted, never measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from fabric.errors import PaisoarError
from fabric.qos import DeviceQos
from fabric.site import Site
from trainer.predict.check import TESTED_MEDIAN, TESTED_WORST
from trainer.predict.frames import scaling_frame
from trainer.predict.gpus import compute, default_batch
from trainer.predict.setup import Setup
from trainer.predict.step import predict
from trainer.predict.where import Wanted, site_fabric

# One that computes much for its bytes, and one that sends much.
MODELS = ("resnet50", "vgg16")
_GPU = "p100"
_GPUS_PER_HOST = 2
_MODE = "ring verbs"


@dataclass(frozen=True)
class Forecast:
    """``frame`` has the columns of ``trainer.predict.frames.scaling_frame``.

    It is empty where nothing can be predicted, and ``reason`` says why. ``median`` and
    ``worst`` are the errors of published figures that the predictor was not fitted on.
    """

    frame: pd.DataFrame
    rests_on: str
    reason: str = ""
    median: float = TESTED_MEDIAN
    worst: float = TESTED_WORST


def forecast(site: Site, states: Mapping[str, DeviceQos]) -> Forecast:
    """Ring allreduce over RDMA on 1, 2, 4, ... GPUs of this site, its devices as ``states``."""
    try:
        fabric = site_fabric(site, states, Wanted())
        gpus = [1 << power for power in range(20) if 1 << power <= fabric.hosts * _GPUS_PER_HOST]
        frames = []
        for model in MODELS:
            batch = default_batch(model)
            step_s = compute(_GPU, model, batch).step_s
            setup = Setup(model, step_s, batch, _GPUS_PER_HOST)
            frames.append(scaling_frame(_MODE, predict(setup, gpus, fabric)))
    except PaisoarError as error:
        return Forecast(pd.DataFrame(), "", error.message)
    rests_on = (
        f"{_GPUS_PER_HOST} GPUs a host with the published speed of a {_GPU.upper()}, ring "
        f"allreduce over RDMA on {fabric.name}, its devices as this run found them"
    )
    return Forecast(pd.concat(frames, ignore_index=True), rests_on)
