"""Our allreduce over one transport, in an array of registered memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import cast

import numpy as np

from trainer.bench.worker import keep_to_a_core, serve
from trainer.collective.communicator import TransportName, connect
from trainer.collective.membership import Membership


def main() -> None:
    """Arguments: transport, rank, ranks, rendezvous host and port."""
    transport, rank, ranks, host, port = sys.argv[1:]

    def start() -> Callable[[int], Callable[[], object]]:
        token = os.environ["PAISOAR_BENCH_TOKEN"]
        keep_to_a_core(int(rank), int(ranks))
        member = Membership((host, int(port)), token, int(rank), int(ranks))
        communicator = connect(member, cast(TransportName, transport))

        buffers: list[np.ndarray] = []

        def prepare(nbytes: int) -> Callable[[], object]:
            while buffers:
                communicator.release(buffers.pop())
            buffer = communicator.buffer(nbytes // 4)
            buffers.append(buffer)
            return lambda: communicator.allreduce(buffer)

        return prepare

    serve(transport, int(rank), start)


if __name__ == "__main__":
    main()
