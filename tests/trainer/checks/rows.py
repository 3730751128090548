"""Gradients of embedding tables."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.trainer.checks.helpers import (
    same_everywhere,
)
from trainer.collective.communicator import alone
from trainer.collective.courier import Courier
from trainer.optimizer import ReplicatedVarsOptimizer
from trainer.rank import RankContext
from trainer.sparse import sum_rows


def check_rows_of_large_tables_travel_as_rows(context: RankContext) -> None:
    rank = context.membership.rank
    for rows_each, travels in ((3, "rows"), (40, "table")):
        table = tf.Variable(tf.ones((60, 4)), name="table")
        alone = tf.Variable(tf.ones((60, 4)), name="table")
        optimizer = ReplicatedVarsOptimizer(keras.optimizers.Adam(0.1), dense_below_bytes=0)
        whole = keras.optimizers.Adam(0.1)
        rows = [np.arange(rows_each + r) * (r + 1) % 60 for r in range(context.membership.size)]

        @tf.function(jit_compile=False, autograph=False)
        def step(picked: Any, table: Any, optimizer: Any, share: float, dense: bool) -> Any:
            with tf.GradientTape() as tape:
                looked_up = tf.nn.embedding_lookup(table, picked)
                loss = share * tf.reduce_sum(tf.square(looked_up))
            gradient = tape.gradient(loss, table)
            if dense:  # Keras' Adam would take a row that stands twice for two gradients
                gradient = tf.convert_to_tensor(gradient)
            optimizer.apply([gradient], [table])

        optimizer.build([table])
        whole.build([alone])
        for _ in range(3):
            step(tf.constant(rows[rank]), table, optimizer, 1.0, False)
            both = tf.constant(np.concatenate(rows))
            step(both, alone, whole, 1.0 / context.membership.size, True)
        np.testing.assert_allclose(table.numpy(), alone.numpy(), atol=1e-6)
        assert same_everywhere(context, [table.numpy()])
        assert len(optimizer.exchange._sparse) == 1
        mine = rows[rank]
        found = context.courier.call(
            lambda c, mine=mine: sum_rows(c, np.ones((len(mine), 4), np.float32), mine, 60, "test")
        )
        assert (len(found[1]) == 60) == (travels == "table")
        expected = np.zeros((60, 4), np.float32)
        np.add.at(expected, np.concatenate(rows), 1.0)
        dense = np.zeros((60, 4), np.float32)
        dense[found[1]] = found[0]
        assert (dense == expected).all()
    # A rank may have touched nothing at all, in fp16 as well.
    empty = np.zeros((0 if rank else 2, 4), np.float16)
    indices = np.arange(len(empty))
    values, found = context.courier.call(lambda c: sum_rows(c, empty, indices, 60, "test"))
    assert (values.shape, values.dtype, found.tolist()) == ((2, 4), np.float16, [0, 1])


def check_one_rank_clips_rows_as_several_do(context: RankContext) -> None:
    rows, share = np.array([3, 3, 1, 3, 1, 3]), 3
    mine = rows[context.membership.rank * share :][:share]
    for dense_below_bytes in (0, 1 << 20):
        tables = []
        for courier, picked in ((context.courier, mine), (Courier(alone()), rows)):
            table = tf.Variable(tf.ones((8, 4)), name="table")
            optimizer = ReplicatedVarsOptimizer(
                keras.optimizers.Adam(0.1, global_clipnorm=0.05),
                courier=courier,
                dense_below_bytes=dense_below_bytes,
            )
            optimizer.build([table])
            for _ in range(3):
                with tf.GradientTape() as tape:
                    looked_up = tf.nn.embedding_lookup(table, picked)
                    loss = tf.reduce_mean(tf.square(looked_up))
                optimizer.apply([tape.gradient(loss, table)], [table])
            tables.append(table.numpy())
        np.testing.assert_allclose(*tables, atol=1e-6)
