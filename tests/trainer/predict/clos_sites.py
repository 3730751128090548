"""Fabrics for the predictor's tests."""

from functools import cache

from trainer.predict.gpus import compute, default_batch
from trainer.predict.setup import Setup
from trainer.predict.where import Wanted, clos_fabric


@cache
def fabric(hosts=16, nic="25G", oversubscription=None, order="fabric", lossy_port=None, loss=1e-4):
    """A Clos of so many hosts; the same one for the same numbers."""
    return clos_fabric(hosts, Wanted(nic, oversubscription, False, order, lossy_port, loss))


def setup(model="vgg16", per_host=2, **ways):
    """A P100's step."""
    batch = default_batch(model)
    return Setup(model, compute("p100", model, batch).step_s, batch, per_host, **ways)
