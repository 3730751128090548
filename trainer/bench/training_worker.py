"""One process of a training benchmark: builds a model, then runs steps when it is told to.

All ways of training are alive at once and take turns, so that a machine which
is busy with other things slows all of them alike. The benchmark tells each
process over a connection of its own, a line of JSON a message.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Plain SGD everywhere: TensorFlow's parameter server takes no Keras 3 optimizer.
RATE = 0.001
_CONNECT_S = 60.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Task:
    """What a process of the benchmark is: ``way`` one of single, ring, ps, tf-ring, tf-ps.

    ``role`` and ``cluster`` are TensorFlow's, ``control`` the benchmark's address.
    """

    way: str
    rank: int
    ranks: int
    model: str
    image_size: int
    batch_size: int
    classes: int
    control: tuple[str, int]
    key: str
    role: str = "worker"
    cluster: dict[str, list[str]] | None = None


Stepper = Callable[[], Any]


def ours(context: Any, payload: dict[str, Any]) -> None:  # noqa: ANN401 (a RankContext)
    """The program of a rank of ours (ring or parameter server) and of a single process."""
    task = task_from({**payload, "rank": context.membership.rank})
    exchange, step = _our_step(task, context.courier)
    _serve(task, step, lambda: float(exchange.waited_s))


def task_from(document: dict[str, Any]) -> Task:
    """A task as it came in JSON."""
    return Task(**{**document, "control": tuple(document["control"])})


def _our_step(task: Task, courier: Any) -> tuple[Any, Stepper]:  # noqa: ANN401
    import keras  # noqa: PLC0415 (only in processes that train)
    import tensorflow as tf  # noqa: PLC0415

    from trainer.optimizer import ReplicatedVarsOptimizer  # noqa: PLC0415
    from trainer.parameter_server import server_planner  # noqa: PLC0415

    model, images, labels = _model_and_batch(task)
    optimizer = ReplicatedVarsOptimizer(
        keras.optimizers.SGD(RATE),
        courier=courier,
        check_every=0,
        planner=server_planner() if task.way == "ps" else None,
    )
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
    def step() -> Any:  # noqa: ANN401
        with tf.GradientTape() as tape:
            loss = _loss(labels, model(images, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return optimizer.exchange, step


def _tf_ring_step(task: Task) -> Stepper:
    """MultiWorkerMirroredStrategy with RING, in a custom loop: its ``fit`` fails under Keras 3."""
    import keras  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415

    distribute = tf.distribute
    ring = distribute.experimental.CommunicationImplementation.RING
    options = distribute.experimental.CommunicationOptions(implementation=ring)
    strategy = distribute.MultiWorkerMirroredStrategy(communication_options=options)
    with strategy.scope():
        model, images, labels = _model_and_batch(task)
        optimizer = keras.optimizers.SGD(RATE)
        optimizer.build(model.trainable_variables)

    def replica() -> Any:  # noqa: ANN401
        with tf.GradientTape() as tape:
            loss = _loss(labels, model(images, training=True))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
    def step() -> Any:  # noqa: ANN401
        return strategy.run(replica)

    return lambda: step()  # noqa: PLW0108 (typed, as the decorated function is not)


def _tf_ps_step(task: Task) -> Stepper:
    """ParameterServerStrategy, raw updates: a step of each worker, all joined."""
    import tensorflow as tf  # noqa: PLC0415

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model, _, _ = _model_and_batch(task)
    shape = (task.batch_size, task.image_size, task.image_size, 3)

    def replica() -> Any:  # noqa: ANN401
        images = tf.fill(shape, 0.5)
        labels = tf.zeros((task.batch_size,), tf.int32)
        with tf.GradientTape() as tape:
            loss = _loss(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.value.assign_sub(RATE * gradient)
        return loss

    @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
    def step() -> Any:  # noqa: ANN401
        return strategy.run(replica)

    def all_workers() -> Any:  # noqa: ANN401
        losses = [coordinator.schedule(step) for _ in range(task.ranks)]
        coordinator.join()
        return losses[0].fetch()

    return all_workers


def _model_and_batch(task: Task) -> tuple[Any, Any, Any]:
    import keras  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415
    import tensorflow as tf  # noqa: PLC0415

    from trainer.models.catalogue import build  # noqa: PLC0415

    keras.utils.set_random_seed(0)
    shape = (task.image_size, task.image_size, 3)
    rng = np.random.default_rng(task.rank)
    images = tf.constant(rng.random((task.batch_size, *shape), np.float32))
    labels = tf.constant(rng.integers(0, task.classes, task.batch_size).astype(np.int32))
    return build(task.model, shape, task.classes), images, labels


def _loss(labels: Any, logits: Any) -> Any:  # noqa: ANN401
    import tensorflow as tf  # noqa: PLC0415

    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(each)


def _serve(task: Task, step: Stepper, waited_s: Callable[[], float]) -> None:
    """Warm up, then do as the benchmark says until it closes the connection."""
    step()
    step()
    with socket.create_connection(task.control, timeout=_CONNECT_S) as sock:
        sock.settimeout(None)
        stream = sock.makefile("rw", encoding="utf-8")

        def say(message: dict[str, Any]) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        say({"key": task.key, "rank": task.rank, "pid": os.getpid()})
        for line in stream:
            turns = int(json.loads(line)["steps"])
            before, seconds = waited_s(), []
            began = time.perf_counter()
            for _ in range(turns):
                at = time.perf_counter()
                loss = step()
                # Reading the loss waits for the step, as any training loop does.
                value = float(loss.values[0] if hasattr(loss, "values") else loss)
                seconds.append(time.perf_counter() - at)
            spent = time.perf_counter() - began
            say(
                {
                    "seconds": seconds,
                    "spent_s": spent,
                    "waited_s": waited_s() - before,
                    "loss": value,
                }
            )


def main() -> None:
    """A process of a peer, or a single one: the task comes as JSON on standard input."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    task = task_from(json.loads(sys.stdin.readline()))
    if task.cluster is not None:
        index = 0 if task.role == "chief" else task.rank
        place = {"type": task.role, "index": index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": task.cluster, "task": place})
    if task.way == "single":
        from trainer.collective.communicator import alone  # noqa: PLC0415
        from trainer.collective.courier import Courier  # noqa: PLC0415

        _, step = _our_step(task, Courier(alone()))
        _serve(task, step, lambda: 0.0)
    elif task.way == "tf-ring":
        _serve(task, _tf_ring_step(task), lambda: 0.0)
    elif task.role == "chief":
        _serve(task, _tf_ps_step(task), lambda: 0.0)
    else:
        import tensorflow as tf  # noqa: PLC0415

        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=task.role, task_index=task.rank, protocol="grpc"
        )
        server.join()


if __name__ == "__main__":
    main()
