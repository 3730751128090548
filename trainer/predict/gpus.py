"""How long one GPU needs for a step: a table of published images a second, with sources.

All in fp32. A step is taken as ``a + b * batch``, through the points that a table has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabric.errors import InputError
from trainer.predict.layers import model_named

TF_BENCHMARKS = "TensorFlow benchmarks, May 2017 (tensorflow.org/performance/benchmarks)"
HOROVOD = "Horovod, README at ce2a348e"
LAMBDA = "Lambda, 2080 Ti deep learning benchmarks, March 2019"

# (batch, images a second).
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU: (batch, images a second) by model, and where they were read."""

    name: str
    source: str
    speeds: dict[str, Points]


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu(
            "p100",
            f"{TF_BENCHMARKS}, DGX-1 (P100), synthetic data",
            {
                "inception_v3": ((32, 128.0), (64, 142.0)),
                "resnet50": ((32, 195.0), (64, 219.0)),
                "resnet152": ((32, 82.7), (64, 91.8)),
                "vgg16": ((32, 144.0), (64, 154.0)),
                "alexnet": ((512, 2987.0),),
            },
        ),
        Gpu(
            "k80",
            f"{TF_BENCHMARKS}, Amazon EC2 distributed (p2.8xlarge), synthetic data",
            {
                "inception_v3": ((32, 29.2), (64, 29.7)),
                "resnet50": ((32, 48.4), (64, 52.4)),
                "resnet152": ((32, 19.4),),
                # Of the table for one host.
                "vgg16": ((32, 36.3),),
                "alexnet": ((512, 684.0),),
            },
        ),
        Gpu(
            "pascal",
            f"{HOROVOD}, one GPU of the cluster with 25 Gbit/s",
            {
                "inception_v3": ((64, 134.4),),
                "resnet101": ((64, 119.4),),
                "vgg16": ((64, 130.9),),
            },
        ),
        Gpu(
            "pascal-40g",
            f"{HOROVOD}, one GPU of the cluster with 40 Gbit/s",
            {
                "inception_v3": ((64, 148.8),),
                "resnet101": ((64, 136.0),),
                "vgg16": ((64, 149.6),),
            },
        ),
        Gpu(
            "v100",
            f"{LAMBDA}, V100 (SXM3)",
            {
                "inception_v3": ((64, 259.0),),
                "resnet50": ((64, 405.0),),
                "resnet152": ((64, 155.0),),
            },
        ),
    )
}

DEFAULT_BATCH = {"alexnet": 512}


@dataclass(frozen=True, slots=True)
class Compute:
    """One GPU's step without any exchange: seconds, and where that is from."""

    step_s: float
    source: str


def default_batch(model: str) -> int:
    """Images a GPU and step in the published tables."""
    return DEFAULT_BATCH.get(model, 64)


def compute(gpu: str, model: str, batch: int) -> Compute:
    """A step of ``batch`` images; InputError for an unknown GPU or model."""
    if gpu not in GPUS:
        raise InputError(f"--gpu {gpu}: not in the table", advice=f"There are: {', '.join(GPUS)}.")
    known = GPUS[gpu]
    if model in known.speeds:
        return Compute(_line(known.speeds[model], batch), known.source)
    return _derived(known, model, batch)


def _line(points: Points, batch: int) -> float:
    """Seconds a step by a straight line through the points; one point: through the origin."""
    if len(points) == 1:
        return batch / points[0][1]
    (small, slow), (large, fast) = points
    per_image = (large / fast - small / slow) / (large - small)
    return max(0.0, small / slow - per_image * small) + per_image * batch


def _derived(gpu: Gpu, model: str, batch: int) -> Compute:
    """From the work of a model that is in the table, or from another GPU's ratio.

    Of a model that P100 has: P100's step by the mean ratio of both GPUs' speeds over
    the models that both have. Else multiply-accumulates at the rate that the GPU reaches
    in VGG16, like GreenNet a plain stack of convolutions.
    """
    p100 = GPUS["p100"].speeds
    shared = [name for name in gpu.speeds if name in p100]
    if model in p100 and shared:
        ratio = float(
            np.exp(np.mean([np.log(_line(gpu.speeds[n], 64) / _line(p100[n], 64)) for n in shared]))
        )
        said = f"derived: P100 by the mean ratio over {', '.join(shared)}; {gpu.source}"
        return Compute(_line(p100[model], batch) * ratio, said)
    like = "vgg16" if gpu.name != "v100" else "resnet50"
    work = model_named(model).macs / model_named(like).macs
    said = f"derived: multiply-accumulates at the speed of {like}; {gpu.source}"
    return Compute(_line(gpu.speeds[like], batch) * work, said)
