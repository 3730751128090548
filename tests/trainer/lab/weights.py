"""The program of two ranks: one training after the other, by each transport, in one process."""

from typing import Any

import keras

from trainer.collective.communicator import connect
from trainer.collective.courier import Courier, set_current
from trainer.job import run
from trainer.rank import RankContext

TRANSPORTS = ("tcp", "verbs")


def by_each(context: RankContext, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """What a rank's job gives over TCP, over which the ranks are connected, and over verbs."""
    over_tcp = train(context, payload)
    communicator = connect(context.membership, "verbs")
    courier = Courier(communicator)
    try:
        other = RankContext(context.membership, communicator, courier, context.threads)
        over_verbs = train(other, payload)
    finally:
        courier.close()
        communicator.close()
        set_current(context.courier)
    return [over_tcp, over_verbs]


def train(context: RankContext, payload: dict[str, Any]) -> dict[str, Any]:
    """The job, from the same start each time."""
    keras.backend.clear_session()
    set_current(context.courier)
    found = run(context, payload)
    return {
        "transport": found["transport"],
        "digest": found["digest"],
        "loss": [record["loss"] for record in found["history"]],
    }
