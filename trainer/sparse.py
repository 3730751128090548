"""Gradients of embedding tables: only the rows that some rank has touched travel.

The rows of all ranks are gathered in rank order and added up, each row once
and in the same order everywhere, so all ranks end with the same bits. Where
the ranks together have touched as many rows as the table holds, gathering
would move more than the table: the table travels instead.
"""

from __future__ import annotations

import numpy as np

from trainer.collective.communicator import Communicator
from trainer.collective.courier import Courier, Ticket
from trainer.collective.fusion import Gradient

Rows = tuple[np.ndarray, np.ndarray]


class SparseLine:
    """The rows of one table's gradient on their way: ``add`` (again), ``post``, ``wait``."""

    def __init__(self, courier: Courier, table: Gradient) -> None:
        self.table = table
        self._courier = courier
        self._parts: list[Rows] = []
        self._ticket: Ticket[Rows] | None = None

    def add(self, values: np.ndarray, indices: np.ndarray) -> None:
        """Keep a copy of these rows: values (n, *row), indices (n,) int64."""
        self._parts.append((np.array(values), np.array(indices)))

    def post(self, step: int) -> None:
        """Send what was added; returns before it is done."""
        values = np.concatenate([part[0] for part in self._parts])
        indices = np.concatenate([part[1] for part in self._parts])
        self._parts.clear()
        doing = f"step {step}, rows of {self.table.name}"
        self._ticket = self._courier.submit(
            lambda c: sum_rows(c, values, indices, self.table.shape[0], doing)
        )

    def wait(self) -> Rows:
        """Sums over all ranks: values (m, *row) and their indices (m,), ascending."""
        assert self._ticket is not None, "wait follows post"
        rows = self._ticket.wait()
        self._ticket = None
        return rows


def sum_rows(
    communicator: Communicator, values: np.ndarray, indices: np.ndarray, rows: int, doing: str
) -> Rows:
    """The sum over all ranks of sparse rows of a table with so many ``rows``."""
    values, indices = combine_rows(values, indices)
    counts = communicator.allgather(np.array([len(indices)], np.int64), doing=doing)[:, 0]
    if counts.sum() >= rows:
        table = np.zeros((rows, *values.shape[1:]), values.dtype)
        table[indices] = values
        communicator.allreduce(table, doing=doing)
        return table, np.arange(rows, dtype=np.int64)
    block = int(counts.max())
    if block == 0:
        return values, indices
    # Every rank sends as many rows as the longest; the rest is not looked at.
    padded_values = np.zeros((block, *values.shape[1:]), values.dtype)
    padded_values[: len(values)] = values
    padded_indices = np.zeros(block, np.int64)
    padded_indices[: len(indices)] = indices
    every_value = communicator.allgather(padded_values, doing=doing)
    every_index = communicator.allgather(padded_indices, doing=doing)
    present = np.arange(block)[np.newaxis] < counts[:, np.newaxis]
    return combine_rows(every_value[present], every_index[present])


def combine_rows(values: np.ndarray, indices: np.ndarray) -> Rows:
    """Each row once, ascending; equal indices are added in the order in which they stand."""
    if not len(indices):
        return values, indices
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    wide = np.float32 if values.dtype.itemsize < 4 else values.dtype
    sums = np.add.reduceat(values[order].astype(wide), starts, axis=0).astype(values.dtype)
    return sums, ordered[starts]
