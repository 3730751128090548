"""TensorFlow's MultiWorkerMirroredStrategy, ring over gRPC: all_reduce in a tf.function."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from trainer.bench.worker import serve


def main() -> None:
    """Arguments: rank and the ranks' ports."""
    rank, *ports = sys.argv[1:]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": int(rank)}}
    )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    def start() -> Callable[[int], Callable[[], object]]:
        import tensorflow as tf  # noqa: PLC0415 (after the environment is set)

        tf.config.threading.set_intra_op_parallelism_threads(1)
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING
        )
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

        def prepare(nbytes: int) -> Callable[[], object]:
            tensor = tf.zeros([nbytes // 4])

            def reduce(value: object) -> object:
                context = tf.distribute.get_replica_context()
                return context.all_reduce(tf.distribute.ReduceOp.SUM, value, options)

            step = tf.function(lambda: strategy.run(reduce, (tensor,)), autograph=False)
            return lambda: step().numpy()[:1]

        return prepare

    serve("tf-ring", int(rank), start)


if __name__ == "__main__":
    main()
