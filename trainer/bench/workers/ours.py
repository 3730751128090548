"""Our allreduce over one transport, in an array of registered memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import cast

from trainer.bench.worker import serve
from trainer.collective.communicator import TransportName, connect
from trainer.collective.membership import Membership


def main() -> None:
    """Arguments: transport, rank, ranks, rendezvous host and port."""
    transport, rank, ranks, host, port = sys.argv[1:]

    def start() -> Callable[[int], Callable[[], object]]:
        token = os.environ["PAISOAR_BENCH_TOKEN"]
        member = Membership((host, int(port)), token, int(rank), int(ranks))
        communicator = connect(member, cast(TransportName, transport))

        def prepare(nbytes: int) -> Callable[[], object]:
            buffer = communicator.buffer(nbytes // 4)
            return lambda: communicator.allreduce(buffer)

        return prepare

    serve(transport, int(rank), start)


if __name__ == "__main__":
    main()
