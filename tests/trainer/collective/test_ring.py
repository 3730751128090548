import time
from collections.abc import Iterator
from contextlib import ExitStack

import ml_dtypes
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.errors import InputError, PeerError
from tests.fake_verbs import FakeFabric
from tests.trainer.groups import Group, group
from trainer.collective.communicator import Communicator, alone
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError
from trainer.collective.ring import split
from trainer.collective.transports.tcp_small import SmallExchange

RANKS = (1, 2, 3, 4, 7)
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int8, np.int32, np.int64, np.uint8, np.uint64]


WAYS = ["shm", "tcp", "verbs", "shm+tcp", "shm+verbs"]


class Groups:
    """Groups of ranks, made when first asked for and kept for the module.

    ``shm+...`` has its ranks on two hosts in turns, with an uneven last one.
    """

    def __init__(self, stack: ExitStack):
        self._stack = stack
        self._made: dict[tuple[int, str], Group] = {}
        self.fabric = FakeFabric()

    def __call__(self, size: int, transport: str) -> Group:
        key = (size, transport)
        if key not in self._made:
            # Small segments: even small arrays travel as several.
            inside, _, between = transport.rpartition("+")
            hosts = ["ab"[rank % 2] for rank in range(size)] if inside else []
            made = group(size, between, segment_bytes=256, hosts=hosts)
            self._made[key] = self._stack.enter_context(made)
        return self._made[key]


@pytest.fixture(scope="module")
def groups() -> Iterator[Groups]:
    with ExitStack() as stack:
        made = Groups(stack)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("trainer.collective.transports.verbs.load_verbs", made.fabric.verbs)
        yield made
        made.fabric.check()
    made.fabric.check()
    assert made.fabric.open_objects == 0
    assert made.fabric.receiver_not_ready == 0


def contribution(rank: int, count: int, dtype: type, seed: int, special: bool) -> np.ndarray:
    rng = np.random.default_rng([seed, rank])
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    values = (rng.standard_normal(count) * 10.0 ** rng.integers(-4, 4, count)).astype(dtype)
    if special and count:
        values[rng.integers(0, count)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    return values


def expected(parts: list[np.ndarray], op: ReduceOp) -> np.ndarray:
    """The same sum in the ring's order: chunk c starts at rank c and ends at rank c - 1."""
    n = len(parts)
    out = np.empty_like(parts[0])
    with np.errstate(all="ignore"):
        for c, (a, b) in enumerate(split(out.size, n, out.itemsize)):
            acc = parts[c][a:b].copy()
            for hop in range(1, n):
                other = parts[(c + hop) % n][a:b]
                if op is ReduceOp.MIN:
                    acc = np.minimum(acc, other)
                elif op is ReduceOp.MAX:
                    acc = np.maximum(acc, other)
                elif op is ReduceOp.PRODUCT:
                    acc = (acc * other).astype(out.dtype)
                else:
                    acc = (acc + other).astype(out.dtype)
            if op is ReduceOp.AVERAGE:
                if out.dtype.kind in "iu":
                    acc = acc // out.dtype.type(n)
                else:
                    wide = np.float64 if out.itemsize > 2 else np.float32
                    acc = (acc.astype(wide) / wide(n)).astype(out.dtype)
            out[a:b] = acc
    return out


@settings(max_examples=80, deadline=None)
@given(
    size=st.sampled_from(RANKS),
    transport=st.sampled_from(["shm", "tcp", "verbs"]),
    dtype=st.sampled_from(FLOATS + INTEGERS),
    op=st.sampled_from(ReduceOp),
    count=st.integers(0, 40) | st.integers(0, 3000),
    seed=st.integers(0, 2**32 - 1),
    special=st.booleans(),
    registered=st.booleans(),
    exchanged=st.booleans(),
)
def test_allreduce_gives_every_rank_the_bits_that_numpy_gives(
    groups, size, transport, dtype, op, count, seed, special, registered, exchanged
):
    def reduce(c: Communicator) -> np.ndarray:
        mine = contribution(c.rank, count, dtype, seed, special)
        if not registered:
            return c.allreduce(mine, op)
        buffer = c.buffer(count, dtype)
        buffer[:] = mine
        result = c.allreduce(buffer, op)
        assert result is buffer
        kept = result.copy()
        c.release(buffer)
        return kept

    with pytest.MonkeyPatch.context() as patch:
        if not exchanged:
            patch.setattr(SmallExchange, "takes", lambda *_: False)
        results = groups(size, transport)(reduce)
    parts = [contribution(rank, count, dtype, seed, special) for rank in range(size)]
    wanted = expected(parts, op)
    for result in results:
        assert result.dtype == wanted.dtype
        assert result.tobytes() == results[0].tobytes()
        # Bits, but for the sign of zero in MIN/MAX and the payload of a NaN.
        assert np.array_equal(
            result.astype(np.float64) if wanted.dtype.kind not in "iu" else result,
            wanted.astype(np.float64) if wanted.dtype.kind not in "iu" else wanted,
            equal_nan=wanted.dtype.kind not in "iu",
        )


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from(RANKS),
    transport=st.sampled_from(WAYS),
    shape=st.lists(st.integers(0, 17), min_size=0, max_size=3).map(tuple),
    root=st.integers(0, 6),
    dtype=st.sampled_from([*FLOATS, np.int64, np.bool_]),
)
def test_broadcast_and_allgather_carry_arrays_unchanged(
    groups, size, transport, shape, root, dtype
):
    def value(rank: int) -> np.ndarray:
        return np.random.default_rng(rank).standard_normal(shape).astype(dtype)

    def work(c: Communicator) -> tuple[np.ndarray, np.ndarray]:
        return c.broadcast(value(c.rank), root % size), c.allgather(value(c.rank))

    for broadcast, gathered in groups(size, transport)(work):
        assert broadcast.tobytes() == value(root % size).tobytes()
        assert broadcast.shape == shape
        assert gathered.shape == (size, *shape)
        assert gathered.tobytes() == b"".join(value(rank).tobytes() for rank in range(size))


@settings(max_examples=60, deadline=None)
@given(
    size=st.sampled_from(RANKS),
    transport=st.sampled_from(["shm+tcp", "shm+verbs"]),
    dtype=st.sampled_from(FLOATS + INTEGERS),
    op=st.sampled_from(ReduceOp),
    count=st.integers(0, 9000),
    registered=st.booleans(),
)
def test_ranks_that_share_hosts_get_equal_bits_and_the_right_ones(
    groups, size, transport, dtype, op, count, registered
):
    def part(rank: int) -> np.ndarray:
        # Small whole numbers: every order of adding them gives the same.
        return (np.random.default_rng(rank).integers(1, 3, count)).astype(dtype)

    def reduce(c: Communicator) -> np.ndarray:
        mine = c.buffer(count, dtype) if registered else np.empty(count, dtype)
        mine[:] = part(c.rank)
        kept = c.allreduce(mine, op).copy()
        if registered:
            c.release(mine)
        return kept

    results = groups(size, transport)(reduce)
    wanted = expected([part(rank) for rank in range(size)], op)
    for result in results:
        assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("transport", ["shm", "tcp", "verbs"])
@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_several_buffers_of_every_size_in_place_or_not(groups, transport, size):
    # The matrix of gloo's own allreduce tests.
    def work(c: Communicator) -> bool:
        good = True
        for count in (0, 1, 10, 100, 1000, 10_000):
            for buffers in (1, 2, 3):
                held = [c.buffer(count) for _ in range(buffers)]
                for number, buffer in enumerate(held):
                    buffer[:] = c.rank * buffers + number + np.arange(count)
                loose = [buffer.copy() for buffer in held]
                for array in (*held, *loose):
                    c.allreduce(array)
                for number, (buffer, array) in enumerate(zip(held, loose, strict=True)):
                    ranks = np.arange(size)[:, None] * buffers
                    wanted = (ranks + number + np.arange(count)).sum(axis=0)
                    good &= bool((buffer == wanted).all() and (array == wanted).all())
                for buffer in held:
                    c.release(buffer)
        return good

    assert all(groups(size, transport)(work))


@pytest.mark.parametrize("transport", ["shm", "tcp", "verbs", "shm+tcp"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_every_type_operation_and_dimension(groups, transport, dtype):
    # The matrix of Horovod's TensorFlow tests: 1 to 3 dimensions of 17.
    def work(c: Communicator) -> list[np.ndarray]:
        return [
            c.allreduce(np.full((17,) * dimensions, c.rank + 1, dtype), op)
            for op in ReduceOp
            for dimensions in (1, 2, 3)
        ]

    for results in groups(3, transport)(work):
        for (op, dimensions), result in zip(
            [(op, d) for op in ReduceOp for d in (1, 2, 3)], results, strict=True
        ):
            wanted = {"SUM": 6, "AVERAGE": 2, "MIN": 1, "MAX": 3, "PRODUCT": 6}[op.name]
            assert result.shape == (17,) * dimensions
            assert (result == np.dtype(dtype).type(wanted)).all()


def _many(c: Communicator, seed: int, turns: int) -> int:
    """Allreduces of random sizes, types and places, with random pauses of each rank's own."""
    common, mine = np.random.default_rng(seed), np.random.default_rng([seed, c.rank])
    buffer = c.buffer(60_000)
    wrong = 0
    for turn in range(turns):
        count = int(2 ** common.uniform(0, 15.8))
        registered, average = common.random() < 0.5, common.random() < 0.5
        array = buffer[:count] if registered else np.empty(count, np.float32)
        array[:] = turn % 7 + c.rank
        if mine.random() < 0.02:
            time.sleep(mine.random() * 2e-3)
        c.allreduce(array, ReduceOp.AVERAGE if average else ReduceOp.SUM)
        total = c.size * (turn % 7) + c.size * (c.size - 1) / 2
        wanted = np.float32(total / c.size if average else total)
        wrong += not (array == wanted).all()
    c.release(buffer)
    return wrong


@pytest.mark.parametrize("transport", WAYS)
def test_many_allreduces_under_random_delays_give_no_wrong_sum(groups, transport):
    assert groups(3, transport)(lambda c: _many(c, 3, 150)) == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_ten_thousand_allreduces_leave_nothing_behind(transport):
    process = psutil.Process()
    with group(2, transport) as ranks:
        assert ranks(lambda c: _many(c, 1, 500)) == [0, 0]
        before = process.memory_info().rss, process.num_fds(), process.num_threads()
        for part in range(20):
            assert ranks(lambda c, part=part: _many(c, part, 500)) == [0, 0]
        after = process.memory_info().rss, process.num_fds(), process.num_threads()
    assert after[0] - before[0] < 32 << 20
    assert after[1:] == before[1:]


def test_a_slice_of_a_buffer_is_reduced_in_place(groups):
    def work(c: Communicator) -> list[float]:
        buffer = c.buffer(30_000)
        buffer[:] = c.rank + 1
        c.allreduce(buffer[10_000:20_000])
        kept = [float(buffer[i]) for i in (9_999, 10_000, 19_999, 20_000)]
        c.release(buffer)
        return kept

    for transport in ("shm", "tcp", "verbs"):
        assert groups(2, transport)(work) == [[1, 3, 3, 1], [2, 3, 3, 2]]


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from(RANKS),
    transport=st.sampled_from(WAYS),
    count=st.integers(0, 1500),
    root=st.integers(0, 6),
    op=st.sampled_from(ReduceOp),
    registered=st.booleans(),
)
def test_reduce_gives_the_root_what_allreduce_gives_everybody(
    groups, size, transport, count, root, op, registered
):
    def work(c: Communicator) -> tuple[np.ndarray, np.ndarray]:
        mine = contribution(c.rank, count, np.int32, 5, False)
        everywhere = c.allreduce(mine.copy(), op)
        if not registered:
            return c.reduce(mine, root % size, op), everywhere
        buffer = c.buffer(count, np.int32)
        buffer[:] = mine
        kept = c.reduce(buffer, root % size, op).copy()
        c.release(buffer)
        return kept, everywhere

    reduced, everywhere = groups(size, transport)(work)[root % size]
    assert (reduced == everywhere).all()


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_large_array_goes_through_the_workspace_in_parts(transport):
    count = 5_000_003  # 20 MB: more than the workspace, and no multiple of anything

    with group(2, transport) as ranks:
        results = ranks(lambda c: c.allreduce(np.full(count, c.rank + 0.5, np.float32)))
    assert all((result == 2.0).all() for result in results)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_more_segments_than_slots_do_not_block(transport):
    # 64-byte segments of 256 KiB: 4096 messages, sixteen times the slots.
    with group(3, transport, segment_bytes=64) as ranks:
        results = ranks(lambda c: c.allreduce(np.arange(65536, dtype=np.float32)))
    assert all((result == 3 * np.arange(65536)).all() for result in results)


def test_a_barrier_holds_until_the_last_rank_comes(groups):
    ranks = groups(3, "shm")
    came: list[int] = []

    def work(c: Communicator) -> int:
        if c.rank == 2:
            for _ in range(200):
                c.membership.check(0, 0.0)
        came.append(c.rank)
        c.barrier()
        return len(came)

    assert ranks(work) == [3, 3, 3]


def test_a_buffer_may_be_overwritten_as_soon_as_the_call_returns():
    # A sender that returns before its neighbour has read would corrupt the sum.
    with group(4, "shm", segment_bytes=4096) as ranks:

        def work(c: Communicator) -> bool:
            buffer = c.buffer(20_000)
            good = True
            for turn in range(50):
                buffer[:] = turn + c.rank
                c.allreduce(buffer)
                good &= bool((buffer == 4 * turn + 6).all())
                buffer[:] = -1.0
            return good

        assert all(ranks(work))


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize(
    ("other", "shown"),
    [
        (lambda c: c.allreduce(np.zeros(8, np.float32)), "float32[8]"),
        (lambda c: c.allreduce(np.zeros((3, 2), np.float32)), "float32[6]"),
        (lambda c: c.allreduce(np.zeros(6, np.int32)), "int32[6]"),
        (lambda c: c.allreduce(np.zeros(6, np.float32), ReduceOp.MAX), "(max)"),
        (lambda c: c.broadcast(np.zeros(6, np.float32)), "broadcast"),
        (lambda c: c.barrier(), "barrier"),
    ],
)
def test_ranks_that_disagree_are_told_so_on_both_sides(transport, other, shown):
    with group(2, transport, patience_s=5.0) as ranks:

        def work(c: Communicator) -> None:
            try:
                if c.rank == 1:
                    other(c)
                c.allreduce(np.zeros(6, np.float32))
            except PeerError as error:
                c.membership.fail(error)
                raise

        errors = ranks.errors(work)
    assert all(isinstance(error, PeerError) for error in errors), errors
    disagreement = next(error for error in errors if isinstance(error, MismatchError))
    assert "rank 0" in str(disagreement)
    assert "rank 1" in str(disagreement)
    assert shown in str(disagreement)


def test_after_an_error_a_communicator_refuses_to_go_on():
    with group(2, "shm", patience_s=0.3) as ranks:

        def work(c: Communicator) -> list[str]:
            if c.rank == 1:
                return []
            said = []
            for _ in range(2):
                with pytest.raises(PeerError) as caught:
                    c.allreduce(np.zeros(4, np.float32))
                said.append(str(caught.value))
            return said

        first, second = ranks(work)[0]
    assert first == second
    assert "rank 1" in first


def test_wrong_arguments_are_refused_before_anything_is_sent():
    c = alone()
    with pytest.raises(InputError, match="bool"):
        c.allreduce(np.zeros(3, np.bool_))
    with pytest.raises(InputError, match="contiguous"):
        c.allreduce(np.zeros((4, 4), np.float32).T[1:])
    with pytest.raises(InputError, match="no rank 1"):
        c.broadcast(np.zeros(3), root=1)


@given(
    count=st.integers(0, 10_000), parts=st.integers(1, 9), itemsize=st.sampled_from([1, 2, 4, 8])
)
def test_chunks_cover_the_array_once_and_start_on_cache_lines(count, parts, itemsize):
    chunks = split(count, parts, itemsize)
    assert len(chunks) == parts
    assert [a for a, _ in chunks] == [0, *(b for _, b in chunks[:-1])]
    assert chunks[-1][1] == count
    assert all(a * itemsize % 64 == 0 or a == count for a, _ in chunks)
