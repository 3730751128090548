"""Ranks that share hosts: shared memory inside a host, rings between hosts.

The j-th ranks of all hosts form lane j; there are as many lanes as the host
with the fewest ranks has. An allreduce combines inside each host, so that rank
j holds the j-th share of its host's sum; lane j combines these shares over the
hosts, all lanes at the same time; then each rank fetches the other shares from
its host's memory. So every byte crosses a host's border as often as with one
rank a host, and all local ranks' cores drive the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trainer.collective.direct import MINE, DirectEngine
from trainer.collective.dtypes import ReduceOp
from trainer.collective.engine import WORKSPACE_BYTES, Place, Regions, parts_in, parts_of
from trainer.collective.ring import RingEngine, split
from trainer.collective.stamp import Stamp
from trainer.collective.transport import Region


class HierarchicalEngine:
    """See :class:`~trainer.collective.engine.Engine`.

    ``hosts`` are the job's ranks by host; ``lane`` is None for a rank beyond
    the number of lanes.
    """

    def __init__(
        self,
        hosts: Sequence[Sequence[int]],
        rank: int,
        local: DirectEngine,
        lane: RingEngine | None,
        between: str,
    ) -> None:
        self.name = f"shm+{between}"
        self.size = sum(map(len, hosts))
        self._hosts = hosts
        self._host = next(i for i, ranks in enumerate(hosts) if rank in ranks)
        self._lanes = min(map(len, hosts))
        self._local = local
        self._lane = lane
        self._regions = Regions()
        self._adopted: dict[int, Region] = {}
        self._workspace: Region | None = None

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.engine.Engine`."""
        region = self._local.allocate(nbytes)
        self._regions.add(region)
        if self._lane is not None:
            self._adopted[region.key] = self._lane.adopt(region.memory)
        return region

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._regions.remove(region)
        if self._lane is not None:
            self._lane.free(self._adopted.pop(region.key))
        self._local.free(region)

    def allreduce(self, array: np.ndarray, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        divisor = self.size if op is ReduceOp.AVERAGE else 1
        for part, place, held, said in self._placed(array, stamp):
            self._local.combine(place, held, op, said, divisor=1, spread=MINE, ways=self._lanes)
            if self._lane is not None:
                share, there = self._share(place, held)
                self._lane.combine(there, share, op, said, divisor=divisor)
            self._local.copy_shares(place, held, said, self._lanes)
            if held is not part:
                np.copyto(part, held)

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        home = self._home(root)
        for part, place, held, said in self._placed(array, stamp):
            self._local.combine(place, held, op, said, divisor=1, spread=MINE, ways=self._lanes)
            divisor = self.size if op is ReduceOp.AVERAGE else 1
            if self._lane is not None:
                share, there = self._share(place, held)
                self._lane.reduce_at(there, share, home, op, said, divisor=divisor)
            if self._host == home:
                self._local.copy_shares(place, held, said, self._lanes)
                if held is not part:
                    np.copyto(part, held)

    def broadcast(self, array: np.ndarray, root: int, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        home = self._home(root)
        for part, place, held, said in self._placed(array, stamp):
            if self._host == home:
                self._local.broadcast(held, self._hosts[home].index(root), said)
            if self._lane is not None:
                share, there = self._share(place, held)
                self._lane.broadcast_at(there, share, home, said)
            if self._host != home:
                self._local.copy_shares(place, held, said, self._lanes)
            if held is not part:
                np.copyto(part, held)

    def allgather(self, block: np.ndarray, into: np.ndarray, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`; the first ranks of hosts do the work."""
        widest = max(map(len, self._hosts))
        mine = np.zeros((widest, block.size), np.uint8)
        self._local.allgather(block, mine[: len(self._hosts[self._host])], stamp)
        rows = np.empty((len(self._hosts), widest * block.size), np.uint8)
        if self._local.rank == 0 and self._lane is not None:
            self._lane.allgather(mine.reshape(-1), rows, stamp)
        self._local.broadcast(rows.reshape(-1), 0, stamp)
        for host, ranks in enumerate(self._hosts):
            for place, rank in enumerate(ranks):
                into[rank] = rows[host, place * block.size : (place + 1) * block.size]

    def barrier(self, stamp: Stamp) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        self._local.barrier(stamp)
        if self._local.rank == 0 and self._lane is not None:
            self._lane.barrier(stamp)
        self._local.barrier(stamp)

    def close(self) -> None:
        """See :class:`~trainer.collective.engine.Engine`."""
        if self._lane is not None:
            self._lane.close()
        self._local.close()

    def _home(self, root: int) -> int:
        return next(i for i, ranks in enumerate(self._hosts) if root in ranks)

    def _share(self, place: Place, array: np.ndarray) -> tuple[np.ndarray, Place]:
        """Our share of the array, and where it lies for the lane's transport."""
        start, stop = split(array.size, self._lanes, array.itemsize)[self._local.rank]
        offset = place.offset + start * array.itemsize
        return array[start:stop], Place(self._adopted[place.region.key], offset)

    def _placed(
        self, array: np.ndarray, stamp: Stamp
    ) -> Iterator[tuple[np.ndarray, Place, np.ndarray, Stamp]]:
        place = self._regions.find(array)
        if place is not None:
            yield array, place, array, stamp
            return
        if self._workspace is None:
            self._workspace = self.allocate(WORKSPACE_BYTES)
        if array.nbytes > WORKSPACE_BYTES:
            stamp = stamp._replace(parts=parts_in(array, WORKSPACE_BYTES) & 0xFFFF)
        for part in parts_of(array, WORKSPACE_BYTES):
            held = self._workspace.memory[: part.nbytes].view(part.dtype)
            np.copyto(held, part)
            yield part, Place(self._workspace, 0), held, stamp
