"""RDMA between neighbours: segments are written into the right neighbour's inbox.

Each rank has an *inbox* of slots; message i of its left neighbour goes to slot
``i % SLOTS`` by RDMA_WRITE_WITH_IMM, header and data gathered by the NIC from
where they lie. The immediate value names the slot and, by using up a receive
request, tells the receiver. When the receiver has used a message it posts the
receive request anew and then writes the count of used messages into the
sender's memory (a *credit*, sent inline): so a receive request is always there
before a message can come, and no slot is overwritten.

Work requests are built once for each place they send from and kept; those that
leave together are chained, so that one doorbell rings for them; only every
few are signalled.
"""

from __future__ import annotations

import itertools
import mmap
import secrets
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.collective.engine import address_of
from trainer.collective.errors import MismatchError
from trainer.collective.party import Party
from trainer.collective.settings import NetworkSettings
from trainer.collective.transport import PAGE_BYTES, STAMP_BYTES, Incoming, Patience, Region
from trainer.collective.transports.verbs_device import Device, load_verbs

SLOTS = 8
_HEADER = struct.Struct(f"<QQ{STAMP_BYTES}s")
_HEADER_BYTES = 64
_CREDIT_BYTES = 8
# At least one signalled request in every half of the send queue, so that it never fills up.
_SIGNAL_EVERY = SLOTS // 2
_QUEUE = 4 * SLOTS
# Chains that are kept; a model's buckets need a few dozen.
_CHAINS = 4096
_SLICE_S = 0.05


@dataclass(frozen=True)
class _Message:
    key: int
    start: int
    stop: int
    slot: int


@dataclass(frozen=True)
class _Chain:
    """Requests that leave together; ``requests`` are held, since pyverbs links raw pointers."""

    first: Any
    requests: tuple[Any, ...]


@dataclass(eq=False)
class _Pair:
    """One channel: a queue pair to the right neighbour, and one from the left."""

    right: Any
    left: Any
    queue: deque[tuple[_Message, bytes, int]] = field(default_factory=deque)
    unsignalled: int = 0
    in_flight: deque[int] = field(default_factory=deque)


class VerbsTransport:
    """See :class:`~trainer.collective.transport.Transport`; RC queue pairs by pyverbs.

    ToolError where pyverbs, the device or its memory cannot be had.
    """

    name = "verbs"
    reaches_all_memory = False

    def __init__(self, party: Party, settings: NetworkSettings) -> None:
        self.rank = party.rank
        self.size = party.size
        self._party = party
        self._device = Device(load_verbs(), settings)
        self._verbs = self._device.verbs
        self._regions: dict[int, tuple[Any, np.ndarray]] = {}
        self._chains: dict[tuple[Any, ...], _Chain] = {}
        self._next_key = 0
        self._posted = 0
        self._taken = 0
        self._credits_in_flight = 0
        self._arrived: set[int] = set()
        self._closed = False
        slot_bytes = _HEADER_BYTES + settings.segment_bytes
        self._slot_bytes = -(-slot_bytes // PAGE_BYTES) * PAGE_BYTES
        verbs = self._verbs
        remote = verbs.IBV_ACCESS_LOCAL_WRITE | verbs.IBV_ACCESS_REMOTE_WRITE
        self._inbox = self._map(SLOTS * self._slot_bytes, remote)
        # Headers of the slots, our count of used messages, and the right one's of ours.
        self._notes = self._map(PAGE_BYTES, remote)
        self._credit = self._notes.memory[SLOTS * _HEADER_BYTES :][:_CREDIT_BYTES].view(np.uint64)
        at = SLOTS * _HEADER_BYTES + _CREDIT_BYTES
        self._used = self._notes.memory[at : at + _CREDIT_BYTES].view(np.uint64)
        depth = _QUEUE * settings.channels
        self._sent_queue = self._device.completion_queue(2 * depth)
        self._received_queue = self._device.completion_queue(depth)
        self._pairs = [
            _Pair(self._queue_pair(), self._queue_pair()) for _ in range(settings.channels)
        ]
        self._connect()

    def allocate(self, nbytes: int) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        return self._map(nbytes, self._verbs.IBV_ACCESS_LOCAL_WRITE)

    def register(self, memory: np.ndarray) -> Region:
        """See :class:`~trainer.collective.transport.Transport`."""
        return self._register(memory, self._verbs.IBV_ACCESS_LOCAL_WRITE)

    def free(self, region: Region) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        for key in [key for key in self._chains if any(m.key == region.key for m in key[1])]:
            del self._chains[key]
        self._regions.pop(region.key)[0].close()

    def post(self, region: Region, start: int, stop: int, stamp: bytes) -> None:
        """See :class:`~trainer.collective.transport.Transport`; leaves with the next take or drain.

        So what is posted in one go is chained.
        """
        message = _Message(region.key, start, stop, self._posted % SLOTS)
        pair = self._pairs[self._posted % len(self._pairs)]
        pair.queue.append((message, stamp, self._posted))
        self._posted += 1

    def take(self, into: np.ndarray | None, nbytes: int, patience: Patience) -> Incoming:  # noqa: ARG002
        """See :class:`~trainer.collective.transport.Transport`; the view is a slot of the inbox."""
        left = (self.rank - 1) % self.size
        slot = self._taken % SLOTS
        began = time.monotonic()
        while slot not in self._arrived:
            self._progress(patience)
            if slot not in self._arrived:
                self._rest(began, left, patience)
        self._arrived.remove(slot)
        at = slot * self._slot_bytes
        length, sequence, stamp = _HEADER.unpack_from(self._inbox.memory.data, at)
        if sequence != self._taken:
            raise patience.lost(
                left, f"sent message {sequence} where message {self._taken} was due"
            )
        data = at + _HEADER_BYTES
        return Incoming(self._inbox.memory[data : data + length], stamp, placed=False)

    def done(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        pair = self._pairs[self._taken % len(self._pairs)]
        self._taken += 1
        pair.left.post_recv(self._receive_request)
        self._credit[0] = self._taken
        # Always by the same channel: an older count must not overtake a newer one.
        # Inline: the count is read when it is posted, so the same request serves always.
        self._credits_in_flight += 1
        signalled = self._credits_in_flight % _SIGNAL_EVERY == 0
        self._pairs[0].left.post_send(self._credit_requests[signalled])

    def drain(self, patience: Patience) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        began = time.monotonic()
        while int(self._used[0]) < self._posted:
            self._progress(patience)
            if int(self._used[0]) < self._posted:
                self._rest(began, (self.rank + 1) % self.size, patience)

    def close(self) -> None:
        """See :class:`~trainer.collective.transport.Transport`."""
        if self._closed:
            return
        self._closed = True
        self._chains.clear()
        for pair in self._pairs:
            pair.right.close()
            pair.left.close()
        self._sent_queue.close()
        self._received_queue.close()
        for region, _ in self._regions.values():
            region.close()
        self._regions.clear()
        self._device.close()

    # -- setting up --------------------------------------------------------

    def _map(self, nbytes: int, access: int) -> Region:
        size = max(1, -(-nbytes // PAGE_BYTES)) * PAGE_BYTES
        return self._register(np.frombuffer(mmap.mmap(-1, size), dtype=np.uint8), access)

    def _register(self, memory: np.ndarray, access: int) -> Region:
        registered = self._device.memory_region(memory, access)
        self._next_key += 1
        self._regions[self._next_key] = (registered, memory)
        return Region(self._next_key, memory)

    def _queue_pair(self) -> Any:  # noqa: ANN401 (pyverbs has no types)
        verbs = self._verbs
        capacity = verbs.QPCap(
            max_send_wr=_QUEUE,
            max_recv_wr=2 * SLOTS,
            max_send_sge=2,
            max_recv_sge=1,
            max_inline_data=_CREDIT_BYTES,
        )
        attributes = verbs.QPInitAttr(
            qp_type=verbs.IBV_QPT_RC,
            scq=self._sent_queue,
            rcq=self._received_queue,
            cap=capacity,
            sq_sig_all=0,
        )
        return self._device.queue_pair(attributes)

    def _connect(self) -> None:
        verbs, party = self._verbs, self._party
        notes, inbox = self._regions[self._notes.key][0], self._regions[self._inbox.key][0]
        psn = secrets.randbelow(1 << 24)
        used_at = address_of(self._notes.memory) + SLOTS * _HEADER_BYTES + _CREDIT_BYTES
        address = self._device.address
        place = f"{self._device.name} GID index {address.index}"
        whose = f"{place} of rank {party.number(self.rank)}"
        common = {"gid": address.gid, "psn": psn, "whose": whose}
        mine = {
            "right": {**common, "numbers": [pair.right.qp_num for pair in self._pairs]},
            "left": {**common, "numbers": [pair.left.qp_num for pair in self._pairs]},
            "inbox": [address_of(self._inbox.memory), inbox.rkey],
            "used": [used_at, notes.rkey],
            "kind": address.kind,
            "place": place,
        }
        every = party.gather("verbs address", mine)
        self._agree(every)
        right, left = every[(self.rank + 1) % self.size], every[(self.rank - 1) % self.size]
        self._target_address, self._target_key = right["inbox"]
        # pyverbs 44 wants one SGE in a receive request; a write with immediate does not use it.
        nowhere = verbs.SGE(address_of(self._notes.memory), _HEADER_BYTES, notes.lkey)
        self._receive_request = verbs.RecvWR(num_sge=1, sg=[nowhere])
        self._credit_requests = {
            signalled: self._credit_request(left["used"], signalled) for signalled in (False, True)
        }
        for number, pair in enumerate(self._pairs):
            for _ in range(SLOTS):
                pair.left.post_recv(self._receive_request)
            self._device.connect(pair.right, right["left"], number, psn)
            self._device.connect(pair.left, left["right"], number, psn)
        # Who sends before the other is ready to receive would be retried for long.
        party.gather("verbs ready", True)

    def _agree(self, every: Sequence[dict[str, Any]]) -> None:
        """MismatchError where an address is of another kind than the first's: nothing arrives."""
        for peer, theirs in enumerate(every):
            if theirs["kind"] != every[0]["kind"]:
                first, other = self._party.number(0), self._party.number(peer)
                raise MismatchError(
                    f"rank {other} and rank {first} cannot reach each other: "
                    f"{theirs['place']} is {theirs['kind']} on rank {other}, "
                    f"{every[0]['place']} is {every[0]['kind']} on rank {first}.",
                    advice="Choose GID indices of one kind (show_gids, ibv_devinfo -v): "
                    "--network gid_index=N, or PAISOAR_NETWORK of each host.",
                )

    def _credit_request(self, target: list[int], signalled: bool) -> Any:  # noqa: ANN401
        verbs = self._verbs
        notes = self._regions[self._notes.key][0]
        source = verbs.SGE(address_of(self._credit), _CREDIT_BYTES, notes.lkey)
        flags = verbs.IBV_SEND_INLINE | (verbs.IBV_SEND_SIGNALED if signalled else 0)
        request = verbs.SendWR(
            wr_id=0,
            opcode=verbs.IBV_WR_RDMA_WRITE,
            num_sge=1,
            sg=[source],
            send_flags=flags,
        )
        request.set_wr_rdma(target[1], target[0])
        return request

    # -- moving ------------------------------------------------------------

    def _progress(self, patience: Patience) -> None:
        """Note what has arrived and what has left, and send what may leave."""
        self._poll(self._received_queue, patience)
        self._poll(self._sent_queue, patience)
        for pair in self._pairs:
            self._flush(pair)

    def _poll(self, queue: Any, patience: Patience) -> None:  # noqa: ANN401
        verbs = self._verbs
        count, completions = queue.poll(num_entries=2 * SLOTS)
        for completion in completions[:count]:
            if completion.status != verbs.IBV_WC_SUCCESS:
                raise self._broken(completion, patience)
            if queue is self._received_queue:
                # pyverbs hands the immediate value over as it lies on the wire.
                self._arrived.add(socket.ntohl(completion.imm_data))
            else:
                self._retire(completion)

    def _retire(self, completion: Any) -> None:  # noqa: ANN401
        for pair in self._pairs:
            if completion.qp_num == pair.right.qp_num:
                pair.in_flight.popleft()
            elif completion.qp_num == pair.left.qp_num:
                self._credits_in_flight -= _SIGNAL_EVERY

    def _flush(self, pair: _Pair) -> None:
        """Post as one chain all messages of a channel that have a free slot."""
        batch: list[_Message] = []
        while pair.queue and len(batch) < SLOTS:
            message, stamp, sequence = pair.queue[0]
            room = _QUEUE - sum(pair.in_flight) - pair.unsignalled - len(batch)
            if sequence - int(self._used[0]) >= SLOTS or room <= 0:
                break
            pair.queue.popleft()
            at = message.slot * _HEADER_BYTES
            length = message.stop - message.start
            _HEADER.pack_into(self._notes.memory.data, at, length, sequence, stamp)
            batch.append(message)
        if not batch:
            return
        signalled = pair.unsignalled + len(batch) >= _SIGNAL_EVERY
        chain = self._chain(tuple(batch), signalled)
        pair.right.post_send(chain.first)
        pair.unsignalled += len(batch)
        if signalled:
            pair.in_flight.append(pair.unsignalled)
            pair.unsignalled = 0

    def _chain(self, messages: tuple[_Message, ...], signalled: bool) -> _Chain:
        key = (signalled, messages)
        known = self._chains.get(key)
        if known is not None:
            return known
        if len(self._chains) >= _CHAINS:
            self._chains.clear()
        last = len(messages) - 1
        requests = [
            self._request(message, signalled and number == last)
            for number, message in enumerate(messages)
        ]
        # pyverbs cannot unlink a request: a chain's requests belong to it alone.
        for request, following in itertools.pairwise(requests):
            request.next_wr = following
        chain = self._chains[key] = _Chain(requests[0], tuple(requests))
        return chain

    def _request(self, message: _Message, signalled: bool) -> Any:  # noqa: ANN401
        verbs = self._verbs
        notes = self._regions[self._notes.key][0]
        registered, memory = self._regions[message.key]
        header = address_of(self._notes.memory) + message.slot * _HEADER_BYTES
        pieces = [verbs.SGE(header, _HEADER_BYTES, notes.lkey)]
        length = message.stop - message.start
        if length:
            pieces.append(verbs.SGE(address_of(memory) + message.start, length, registered.lkey))
        request = verbs.SendWR(
            wr_id=message.slot,
            opcode=verbs.IBV_WR_RDMA_WRITE_WITH_IMM,
            num_sge=len(pieces),
            sg=pieces,
            imm_data=socket.htonl(message.slot),
            send_flags=verbs.IBV_SEND_SIGNALED if signalled else 0,
        )
        target = self._target_address + message.slot * self._slot_bytes
        request.set_wr_rdma(self._target_key, target)
        return request

    def _rest(self, began: float, peer: int, patience: Patience) -> None:
        """Poll again at once for a moment, then take naps, at the device's pace."""
        waited_s = time.monotonic() - began
        pace = self._device.pace
        if waited_s < pace.spin_s:
            return
        time.sleep(pace.nap_s)
        if waited_s > _SLICE_S:
            patience.check(peer, waited_s)

    def _broken(self, completion: Any, patience: Patience) -> Exception:  # noqa: ANN401
        right = any(completion.qp_num == pair.right.qp_num for pair in self._pairs)
        peer = (self.rank + (1 if right else -1)) % self.size
        settings, device = self._device.settings, self._device
        return patience.lost(
            peer,
            f"cannot be reached by RDMA: {_status_name(self._verbs, completion.status)} "
            f"on {device.name} port {settings.port}, GID index {device.address.index}, "
            f"traffic class {settings.traffic_class}, MTU {settings.mtu}, "
            f"{settings.retry_count} retries of timeout {settings.timeout}",
        )


def _status_name(verbs: Any, status: int) -> str:  # noqa: ANN401
    names: Iterable[str] = (
        name
        for name, value in verbs.names.items()
        if name.startswith("IBV_WC_") and name.endswith("_ERR") and value == status
    )
    return next(iter(names), f"completion status {status}")
