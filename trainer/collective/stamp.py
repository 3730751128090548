"""What a message says about the collective that it belongs to."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from trainer.collective.dtypes import ReduceOp, dtype_name
from trainer.collective.transport import STAMP_BYTES

_LAYOUT = struct.Struct("<QQIHBBBBHxxxx")
assert _LAYOUT.size == STAMP_BYTES


class Kind(IntEnum):
    """Which collective a message belongs to."""

    ALLREDUCE = 1
    BROADCAST = 2
    ALLGATHER = 3
    BARRIER = 4
    REDUCE = 5
    END_OF_TRAINING = 6
    END_OF_PROGRAM = 7
    END_OF_EPOCH = 8


ENDS = (Kind.END_OF_TRAINING, Kind.END_OF_PROGRAM, Kind.END_OF_EPOCH)


class Stamp(NamedTuple):
    """Which collective this is, the same on every rank or the ranks disagree.

    ``sequence`` counts the job's collectives; ``layout`` is a checksum over
    shapes and names, for what the count of elements alone does not tell. An
    end's ``count`` is of the steps before it.
    ``parts`` is in how many parts it travels: one where it is sent from where
    it lies, more where it is copied through a workspace. ``wire`` is the type
    that fp32 is rounded to on its way, 0 for none.
    """

    sequence: int
    kind: Kind
    op: int
    dtype: int
    root: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name
    layout: int
    parts: int = 1
    wire: int = 0

    @property
    def packed(self) -> bytes:
        """The stamp as it travels."""
        return _LAYOUT.pack(
            self.sequence,
            self.count,
            self.layout,
            self.root,
            self.kind,
            self.op,
            self.dtype,
            self.wire,
            self.parts,
        )

    @classmethod
    def unpack(cls, data: bytes) -> Stamp:
        """Read what :attr:`packed` wrote."""
        sequence, count, layout, root, kind, op, dtype, wire, parts = _LAYOUT.unpack(data)
        return cls(sequence, Kind(kind), op, dtype, root, count, layout, parts, wire)

    def __str__(self) -> str:
        what = f"{self.kind.name.lower().replace('_', ' ')} {self.sequence}"
        if self.kind in (Kind.BARRIER, *ENDS):
            return what
        if self.kind in (Kind.ALLREDUCE, Kind.REDUCE):
            what += f" ({ReduceOp(self.op).name.lower()})"
        if self.kind is Kind.BROADCAST:
            what += f" from rank {self.root}"
        if self.kind is Kind.REDUCE:
            what += f" to rank {self.root}"
        parts = f", in {self.parts} parts" if self.parts > 1 else ""
        return f"{what} of {dtype_name(self.dtype)}[{self.count}], layout {self.layout:08x}{parts}"
