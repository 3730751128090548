"""``ReplicatedVarsOptimizer``: what a single-machine program adds to train on many ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from fabric.errors import InputError, PaisoarError
from trainer.collective.courier import Courier, current
from trainer.collective.fusion import FIRST_BUCKET_BYTES
from trainer.exchange import DENSE_BELOW_BYTES, GradientExchange, Planner, describe, value_of
from trainer.replication import (
    agree_on,
    agree_on_optimizer,
    broadcast_variables,
    check_equal,
    optimizer_facts,
)

CHECK_EVERY_STEPS = 100


@keras.saving.register_keras_serializable(package="paisoar")
class ReplicatedVarsOptimizer(keras.optimizers.Optimizer):  # type: ignore[misc]
    """Wraps any Keras 3 optimizer so that all ranks hold the same variables.

    Before the first step the variables are overwritten with rank 0's; in every
    step gradients are averaged over the ranks before the wrapped optimizer
    sees them (so its clipping, decay and accumulation act on the average);
    every ``check_every`` steps, and at the end of ``model.fit``, the ranks
    compare their weights (0: never).

    Works in ``model.fit`` and in custom loops, with ``apply`` and
    ``apply_gradients``. In a custom loop without ``tf.function`` call
    ``build(model.trainable_variables)`` before the first step. For fp16 put
    the loss scaling inside: ``ReplicatedVarsOptimizer(LossScaleOptimizer(x))``.

    Gradients travel in buckets of ``bucket_bytes`` in reverse layer order,
    each as soon as it is complete; None measures the transport and takes the
    size that suits it. With ``accumulate`` = k the gradients of k steps are
    averaged and only every k-th step communicates and changes the weights (the
    wrapped optimizer's own accumulation works too, and communicates in every
    step). Gradients of embedding tables of ``dense_below_bytes`` and more
    travel as rows. ``courier`` defaults to the job's own; ``planner`` replaces
    the ring (see :mod:`trainer.parameter_server`).
    """

    def __init__(
        self,
        optimizer: Any,  # noqa: ANN401 (keras ships no types)
        *,
        courier: Courier | None = None,
        check_every: int = CHECK_EVERY_STEPS,
        bucket_bytes: int | None = None,
        first_bucket_bytes: int = FIRST_BUCKET_BYTES,
        accumulate: int = 1,
        dense_below_bytes: int = DENSE_BELOW_BYTES,
        planner: Planner | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate=0.0, name=name or "replicated_vars")
        if accumulate < 1:
            raise InputError(f"{accumulate} steps cannot be accumulated", key="accumulate")
        self.inner_optimizer = optimizer
        self.check_every = check_every
        self._bucket_bytes = bucket_bytes
        self._first_bucket_bytes = first_bucket_bytes
        self._dense_below_bytes = dense_below_bytes
        self.exchange = GradientExchange(
            courier or current(),
            bucket_bytes=bucket_bytes,
            first_bytes=first_bucket_bytes,
            accumulate=accumulate,
            dense_below_bytes=dense_below_bytes,
            planner=planner,
        )

    @property
    def failure(self) -> PaisoarError | None:
        """Why communication failed. TensorFlow wraps what is raised inside a graph: look here."""
        return self.exchange.courier.communicator.failure

    def build(self, variables: Iterable[Any]) -> None:
        """Create the optimizer's variables and overwrite all with rank 0's.

        MismatchError when the ranks have different variables.
        """
        self._build(list(variables))

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Average the gradients over the ranks and let the wrapped optimizer apply them."""
        # AutoGraph would rewrite all that runs below, also outside of the graph.
        tf.autograph.experimental.do_not_convert(self._apply)(grads, trainable_variables)

    def _apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None) -> None:
        _refuse_unfit_graph()
        gradients = list(grads)
        if not gradients:
            return
        if trainable_variables is None:
            variables = list(self.inner_optimizer._trainable_variables)
        else:
            variables = list(trainable_variables)
        if not self.built and self._build(variables) and tf.executing_eagerly():
            raise InputError(
                "the gradients of the first step were computed before all ranks had rank 0's "
                "weights",
                advice="Call optimizer.build(model.trainable_variables) before the loop.",
            )
        averages = self.exchange.post(gradients, variables)

        def update() -> None:
            self.inner_optimizer.apply(averages(), variables)
            self._check_when_due(variables)

        if self.exchange.accumulate == 1:
            update()
            return

        def update_in_branch() -> Any:  # noqa: ANN401
            update()
            return tf.constant(True)

        tf.cond(self.exchange.due(), update_in_branch, lambda: tf.constant(False))

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> Any:  # noqa: ANN401
        """See ``apply``; returns the count of iterations."""
        gradients, variables = zip(*grads_and_vars, strict=True)
        self.apply(gradients, variables)
        return self.iterations

    def check_weights(self, variables: Iterable[Any] | None = None) -> None:
        """WeightsDifferError unless all ranks hold the same weights; every rank must call it."""
        chosen = self.inner_optimizer._trainable_variables if variables is None else variables
        values = [np.asarray(value_of(variable)) for variable in chosen]
        step = self.exchange.step
        self.exchange.courier.call(lambda c: check_equal(c, values, f"step {step}, check"))

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        """The end of ``model.fit``: the wrapped optimizer's last word, then the weights' check.

        MismatchError where another rank has more steps.
        """
        self.inner_optimizer.finalize_variable_values(var_list)
        step = self.exchange.step
        self.exchange.courier.call(lambda c: c.end_training(step))
        if self.check_every:
            self.check_weights(var_list)

    @property
    def variables(self) -> list[Any]:
        """The wrapped optimizer's variables; there are no others to save."""
        return list(self.inner_optimizer.variables)

    @property
    def iterations(self) -> Any:  # noqa: ANN401
        """The wrapped optimizer's count of steps."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:  # noqa: ANN401
        """The wrapped optimizer's rate now."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:  # noqa: ANN401
        self.inner_optimizer.learning_rate = learning_rate

    def scale_loss(self, loss: Any) -> Any:  # noqa: ANN401
        """The wrapped optimizer's loss scaling."""
        return self.inner_optimizer.scale_loss(loss)

    def get_config(self) -> dict[str, Any]:
        """The arguments to make it again; a courier is found anew."""
        return {
            "optimizer": keras.saving.serialize_keras_object(self.inner_optimizer),
            **self._settings(),
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> ReplicatedVarsOptimizer:
        """Make it again from :meth:`get_config`."""
        inner = keras.saving.deserialize_keras_object(
            config.pop("optimizer"), custom_objects=custom_objects
        )
        return cls(inner, **config)

    def _build(self, variables: list[Any]) -> bool:
        """Build once; True if any rank's variables were changed by it."""
        if self.built:
            return False
        # Also while a tf.function is traced: what it reads later must be rank 0's.
        with tf.init_scope():
            if not self.inner_optimizer.built:
                self.inner_optimizer.build(variables)
            agree_on(self.exchange.courier, [describe(variable) for variable in variables])
            agree_on_optimizer(self.exchange.courier, self._facts())
            changed = broadcast_variables(
                self.exchange.courier, [*variables, *self.inner_optimizer.variables]
            )
            super().build(variables)
        return changed

    def _settings(self) -> dict[str, Any]:
        return {
            "check_every": self.check_every,
            "bucket_bytes": self._bucket_bytes,
            "first_bucket_bytes": self._first_bucket_bytes,
            "accumulate": self.exchange.accumulate,
            "dense_below_bytes": self._dense_below_bytes,
        }

    def _facts(self) -> dict[str, str]:
        """What must be equal on all ranks, by name."""
        own = {f"replicated {key}": str(value) for key, value in self._settings().items()}
        return optimizer_facts(self.inner_optimizer) | own

    def _check_when_due(self, variables: Sequence[Any]) -> None:
        if not self.check_every or self.exchange.courier.communicator.size == 1:
            return
        courier, exchange = self.exchange.courier, self.exchange

        def due() -> np.bool_:
            return np.bool_(exchange.step % self.check_every == 0)

        def check(*values: np.ndarray) -> None:
            doing = f"step {exchange.step}, check"
            courier.call(lambda c: check_equal(c, values, doing))

        def run() -> Any:  # noqa: ANN401
            inputs = [tf.convert_to_tensor(value_of(variable)) for variable in variables]
            tf.numpy_function(check, inputs, [], stateful=True)
            return tf.constant(True)

        tf.cond(tf.numpy_function(due, [], tf.bool), run, lambda: tf.constant(False))


def _refuse_unfit_graph() -> None:
    """InputError inside a graph in which communication cannot work.

    Advice is part of the message: TensorFlow and Keras make an error of their
    own of what is raised while they trace, and keep only its text.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if graph is None:
        return
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        raise InputError(
            "ReplicatedVarsOptimizer cannot work in a function compiled by XLA: "
            "gradients leave the graph on their way to the other ranks. "
            "Pass jit_compile=False to model.compile or tf.function."
        )
    if type(graph).__name__ in {"CondBranchFuncGraph", "WhileCondFuncGraph"}:
        raise InputError(
            "ReplicatedVarsOptimizer was called in a branch that only some ranks may take "
            "(Keras' LossScaleOptimizer around it does that). "
            "Wrap the other way round, ReplicatedVarsOptimizer(LossScaleOptimizer(...)), "
            "and pass auto_scale_loss=False to model.compile."
        )
