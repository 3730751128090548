"""Gradients in, averages over all ranks out, inside TensorFlow's graph.

Dense gradients travel in buckets (``trainer.collective.fusion``), sparse ones
of large tables as rows (``trainer.sparse``). One stateful function a bucket
posts it and one waits for it; TensorFlow runs stateful functions in the order
in which they are made, so all ranks communicate in the same order, last layers
first, while earlier layers are still being differentiated.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from trainer.bucket_size import choose_bucket_bytes
from trainer.collective.courier import Courier
from trainer.collective.fusion import (
    FIRST_BUCKET_BYTES,
    BucketLine,
    Gradient,
    plan_buckets,
)
from trainer.sparse import SparseLine
from trainer.timeline import span

# A table smaller than this is cheaper to send whole than to gather row by row.
DENSE_BELOW_BYTES = 1 << 20


class Line(Protocol):
    """What carries one bucket: see :class:`~trainer.collective.fusion.BucketLine`."""

    def post(self, gradients: Sequence[np.ndarray], step: int) -> None:
        """Start the sum over all ranks."""

    def wait(self) -> list[np.ndarray]:
        """The sums, as views that stay valid until ``release``."""

    def release(self) -> None:
        """The views are no longer used."""


@dataclass(frozen=True)
class Carrier:
    """The positions of the gradients that a line carries, and the line.

    ``held`` are sums of earlier micro-batches, while gradients accumulate.
    """

    name: str
    members: tuple[int, ...]
    line: Line
    held: list[np.ndarray]


# Turns described gradients into carriers; the parameter server has its own.
Planner = Callable[[Courier, Sequence[Gradient], int], list[Carrier]]


class GradientExchange:
    """Averages gradients over all ranks; every rank must call it with the same variables.

    ``bucket_bytes`` None measures which size suits the transport, once, when
    the first gradients come. With ``accumulate`` = k gradients of k calls are
    summed here and only every k-th call communicates; ``due`` then tells in
    the graph whether averages are to be had. ``waited_s`` is the time in which
    TensorFlow had nothing to do but wait for communication.
    """

    def __init__(
        self,
        courier: Courier,
        *,
        bucket_bytes: int | None = None,
        first_bytes: int = FIRST_BUCKET_BYTES,
        accumulate: int = 1,
        dense_below_bytes: int = DENSE_BELOW_BYTES,
        planner: Planner | None = None,
    ) -> None:
        self.courier = courier
        self.step = 0
        self.waited_s = 0.0
        self.bucket_bytes = bucket_bytes
        self.accumulate = accumulate
        self._calls = 0
        self._first_bytes = first_bytes
        self._dense_below_bytes = dense_below_bytes
        self._planner = planner or self._buckets
        self._carriers: dict[tuple[Gradient, ...], list[Carrier]] = {}
        self._sparse: dict[tuple[Gradient, ...], list[tuple[int, SparseLine]]] = {}

    @property
    def active(self) -> bool:
        """Whether anything has to be done to gradients at all."""
        return self.courier.communicator.size > 1 or self.accumulate > 1

    def post(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Callable[[], list[Any]]:
        """Send the gradients on their way; call the result for the averages.

        A None (no gradient) stays None; IndexedSlices of a large table stay
        IndexedSlices, with each row once. The result may be called in a branch
        of the graph that ``due`` guards.
        """
        present = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if not self.active or not present:
            self.step += 1
            alone = [self._merged(g, v) for g, v in zip(gradients, variables, strict=True)]
            return lambda: alone
        sparse = [i for i in present if self._travels_sparse(gradients[i], variables[i])]
        dense = [i for i in present if i not in set(sparse)]
        tensors = [tf.convert_to_tensor(gradients[i]) for i in dense]
        described = tuple(
            describe(variables[i], tensor.dtype.as_numpy_dtype)
            for i, tensor in zip(dense, tensors, strict=True)
        )
        carriers = self._carriers_for(described)
        rows = self._sparse_for(tuple(describe(variables[i]) for i in sparse), sparse)
        tf.numpy_function(self._begin, [], [], stateful=True)
        for carrier in carriers:
            inputs = [tensors[i] for i in carrier.members]
            tf.numpy_function(partial(self._post, carrier), inputs, [], stateful=True)
        for position, line in rows:
            slices = gradients[position]
            inputs = [tf.convert_to_tensor(slices.values), tf.cast(slices.indices, tf.int64)]
            tf.numpy_function(partial(self._post_rows, line), inputs, [], stateful=True)

        def collect() -> list[Any]:
            return self._collect(list(gradients), dense, described, carriers, rows)

        return collect

    def due(self) -> Any:  # noqa: ANN401 (a tensor)
        """A boolean tensor: the last ``post`` ended a round of accumulation."""
        return tf.numpy_function(lambda: np.bool_(self._due()), [], tf.bool)

    def _collect(
        self,
        averaged: list[Any],
        dense: Sequence[int],
        described: Sequence[Gradient],
        carriers: Sequence[Carrier],
        rows: Sequence[tuple[int, SparseLine]],
    ) -> list[Any]:
        parts = self.courier.communicator.size * self.accumulate
        fresh: list[Any] = []
        for carrier in carriers:
            dtypes = [tf.as_dtype(described[i].dtype) for i in carrier.members]
            sums = tf.numpy_function(partial(self._wait, carrier), [], dtypes, stateful=True)
            # Outside of a graph a list of one comes back as the one.
            listed = sums if isinstance(sums, list | tuple) else [sums]
            for member, total in zip(carrier.members, listed, strict=True):
                shaped = tf.ensure_shape(total, described[member].shape)
                # The sums lie in the bucket, and an assigned tensor is not copied:
                # only the quotient, which is new memory, may reach the optimizer.
                quotient = shaped / tf.cast(parts, shaped.dtype)
                averaged[dense[member]] = quotient
                fresh.append(quotient)
        for position, line in rows:
            before = averaged[position]
            dtypes = [before.values.dtype, tf.int64]
            values, indices = tf.numpy_function(
                partial(self._wait_rows, line), [], dtypes, stateful=True
            )
            values = tf.ensure_shape(values, [None, *line.table.shape[1:]])
            indices = tf.cast(tf.ensure_shape(indices, [None]), before.indices.dtype)
            mean = values / tf.cast(parts, values.dtype)
            averaged[position] = tf.IndexedSlices(mean, indices, before.dense_shape)
        with tf.control_dependencies(fresh):
            tf.numpy_function(partial(_release, carriers), [], [], stateful=True)
        return averaged

    def _merged(self, gradient: Any, variable: Any) -> Any:  # noqa: ANN401
        """A gradient as several ranks would get it: a small table whole, else each row once.

        Keras takes the norm of rows as they stand, and a row may stand twice.
        """
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._travels_sparse(gradient, variable):
            return tf.convert_to_tensor(gradient)
        indices, places = tf.unique(gradient.indices)
        sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(indices))
        return tf.IndexedSlices(sums, indices, gradient.dense_shape)

    def _travels_sparse(self, gradient: Any, variable: Any) -> bool:  # noqa: ANN401
        if not isinstance(gradient, tf.IndexedSlices):
            return False
        table = describe(variable)
        return table.count * table.dtype.itemsize >= self._dense_below_bytes

    def _carriers_for(self, described: tuple[Gradient, ...]) -> list[Carrier]:
        """The carriers of these gradients; a function traced again uses the same ones."""
        if described not in self._carriers:
            total = sum(gradient.count * gradient.dtype.itemsize for gradient in described)
            if self.bucket_bytes is None:
                self.bucket_bytes = self.courier.call(lambda c: choose_bucket_bytes(c, total))
            self._carriers[described] = self._planner(self.courier, described, self.bucket_bytes)
        return self._carriers[described]

    def _buckets(
        self, courier: Courier, described: Sequence[Gradient], bucket_bytes: int
    ) -> list[Carrier]:
        first = min(self._first_bytes, bucket_bytes)
        buckets = plan_buckets(described, first_bytes=first, bucket_bytes=bucket_bytes)
        return [
            Carrier(
                f"bucket {bucket.index}",
                bucket.members,
                BucketLine(courier, bucket, [described[i].shape for i in bucket.members]),
                [],
            )
            for bucket in buckets
        ]

    def _sparse_for(
        self, tables: tuple[Gradient, ...], positions: Sequence[int]
    ) -> list[tuple[int, SparseLine]]:
        if tables not in self._sparse:
            self._sparse[tables] = [
                (position, SparseLine(self.courier, table))
                for position, table in zip(positions, tables, strict=True)
            ]
        return self._sparse[tables]

    # -- what runs inside the graph -----------------------------------------

    def _due(self) -> bool:
        return self._calls % self.accumulate == 0

    def _begin(self) -> None:
        self._calls += 1
        if self._due():
            self.step += 1

    def _post(self, carrier: Carrier, *gradients: np.ndarray) -> None:
        began = time.perf_counter()
        with span("compute", f"pack {carrier.name}"):
            if self.accumulate > 1:
                totals = _add_up(carrier.held, gradients)
                if self._due():
                    carrier.line.post(totals, self.step)
                    carrier.held.clear()
            else:
                carrier.line.post(gradients, self.step)
        self.waited_s += time.perf_counter() - began

    def _wait(self, carrier: Carrier) -> list[np.ndarray]:
        began = time.perf_counter()
        with span("compute", f"wait for {carrier.name}"):
            sums = carrier.line.wait()
        self.waited_s += time.perf_counter() - began
        return sums

    def _post_rows(self, line: SparseLine, values: np.ndarray, indices: np.ndarray) -> None:
        line.add(values, indices)
        if self._due():
            line.post(self.step)

    def _wait_rows(self, line: SparseLine) -> tuple[np.ndarray, np.ndarray]:
        began = time.perf_counter()
        with span("compute", f"wait for rows of {line.table.name}"):
            rows = line.wait()
        self.waited_s += time.perf_counter() - began
        return rows


def describe(variable: Any, dtype: Any = None) -> Gradient:  # noqa: ANN401
    """A variable as ranks compare it. Keras' running numbers in names are left out."""
    name = getattr(variable, "path", None) or variable.name
    plain = re.sub(r"_\d+(?=/|:|$)", "", name).split("/")
    shape = tuple(int(size) for size in variable.shape)
    element = tf.as_dtype(variable.dtype).as_numpy_dtype if dtype is None else dtype
    return Gradient("/".join(plain[-2:]), shape, np.dtype(element))


def value_of(variable: Any) -> Any:  # noqa: ANN401
    """The TensorFlow variable behind a Keras variable, or the variable itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def _add_up(held: list[np.ndarray], gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Add to what is held so far; what is held is our own memory."""
    if not held:
        held += [np.array(gradient) for gradient in gradients]
    else:
        for total, gradient in zip(held, gradients, strict=True):
            np.add(total, gradient, out=total)
    return held


def _release(carriers: Sequence[Carrier]) -> None:
    for carrier in carriers:
        carrier.line.release()
