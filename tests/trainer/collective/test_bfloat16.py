"""bf16 as the type of what is reduced, and as what fp32 travels as."""

from collections.abc import Iterator
from contextlib import ExitStack

import ml_dtypes
import numpy as np
import pytest

from tests.fake_verbs import FakeFabric
from tests.trainer.collective.test_ring import expected
from tests.trainer.groups import Group, group
from trainer.collective.dtypes import BFLOAT16, ReduceOp
from trainer.collective.settings import NetworkSettings
from trainer.collective.transports.tcp import TcpTransport

COUNT = 10_007
# bf16 has 8 significant bits; round to nearest.
HALF_ULP = 2.0**-8
SUMS = [ReduceOp.SUM, ReduceOp.AVERAGE]


def values(rank: int, count: int = COUNT) -> np.ndarray:
    rng = np.random.default_rng([11, rank])
    return rng.standard_normal(count) * 10.0 ** rng.integers(-3, 3, count)


@pytest.fixture(scope="module", params=["shm", "tcp", "verbs", "shm+tcp"])
def ranks(request) -> Iterator[Group]:
    """Three ranks; ``shm+tcp`` has two of them on one host."""
    inside, _, between = request.param.rpartition("+")
    with ExitStack() as stack:
        fabric = FakeFabric()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("trainer.collective.transports.verbs.load_verbs", fabric.verbs)
        hosts = ["a", "b", "a"] if inside else []
        yield stack.enter_context(group(3, between, segment_bytes=4096, hosts=hosts))
    fabric.check()


@pytest.mark.parametrize("op", ReduceOp)
def test_all_ranks_hold_identical_bits_close_to_the_exact_result(ranks, op):
    mine = [values(rank).astype(BFLOAT16) for rank in range(3)]
    results = ranks(lambda c: c.allreduce(mine[c.rank].copy(), op))
    again = ranks(lambda c: c.allreduce(mine[c.rank].copy(), op))
    for result in (*results, *again):
        assert result.dtype == BFLOAT16
        assert result.tobytes() == results[0].tobytes()
    wide = np.stack([part.astype(np.float64) for part in mine])
    exact = {
        "SUM": wide.sum(0),
        "AVERAGE": wide.mean(0),
        "MIN": wide.min(0),
        "MAX": wide.max(0),
        "PRODUCT": wide.prod(0),
    }[op.name]
    found = results[0].astype(np.float64)
    if op in (ReduceOp.MIN, ReduceOp.MAX):
        assert (found == exact).all()
        return
    # Each of two additions rounds what it has so far; the division once more.
    scale = np.abs(exact) if op is ReduceOp.PRODUCT else np.abs(wide).sum(0)
    assert (np.abs(found - exact) <= 3 * HALF_ULP * scale).all()
    assert np.abs(found - exact).max() > 0


def test_integers_up_to_256_add_up_exactly(ranks):
    counts = np.arange(COUNT) % 80
    results = ranks(lambda c: c.allreduce((counts + c.rank).astype(BFLOAT16)))
    for result in results:
        assert (result.astype(np.int64) == 3 * counts + 3).all()


def test_nan_and_infinity_reach_every_rank(ranks):
    def work(c):
        array = np.ones(6, BFLOAT16)
        if c.rank == 2:
            array[:3] = [np.nan, np.inf, -np.inf]
        if c.rank == 0:
            array[1] = -np.inf
        array[5] = ml_dtypes.finfo(BFLOAT16).max
        return c.allreduce(array).astype(np.float32)

    for result in ranks(work):
        assert np.isnan(result[:2]).all()
        assert result[2:].tolist() == [-np.inf, 3.0, 3.0, np.inf]


@pytest.mark.parametrize("op", SUMS)
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("channels", [1, 3])
def test_fp32_on_a_bf16_wire_has_the_bits_that_rounding_by_hand_gives(op, size, channels):
    parts = [values(rank).astype(np.float32) for rank in range(size)]
    scale = np.float32(1.0 / size if op is ReduceOp.AVERAGE else 1.0)
    wanted = expected([(part * scale).astype(BFLOAT16) for part in parts], ReduceOp.SUM)
    with group(size, "tcp", settings=NetworkSettings(wire="bf16", channels=channels)) as ranks:
        results = ranks(lambda c: c.allreduce(parts[c.rank].copy(), op))
    for result in results:
        assert result.dtype == np.float32
        assert (result == wanted.astype(np.float32)).all()


def test_a_bf16_wire_carries_half_the_bytes_of_fp32_and_leaves_other_types_alone(monkeypatch):
    sent = []
    circulate = TcpTransport.circulate

    def counting(self, array, *rest):
        sent.append((array.dtype.name, array.nbytes))
        return circulate(self, array, *rest)

    monkeypatch.setattr(TcpTransport, "circulate", counting)
    with group(2, "tcp", settings=NetworkSettings(wire="bf16")) as ranks:
        ranks(lambda c: c.allreduce(np.ones(1000, np.float32)))
        assert set(sent) == {("uint16", 2000)}
        sent.clear()
        ranks(lambda c: c.allreduce(np.ones(1000, np.float64)))
        ranks(lambda c: c.allreduce(np.ones(1000, np.float32), ReduceOp.PRODUCT))
        assert set(sent) == {("float64", 8000), ("float32", 4000)}


@pytest.mark.parametrize("op", SUMS)
def test_hosts_that_share_out_their_ranks_agree_bit_by_bit_on_a_bf16_wire(op):
    parts = [values(rank).astype(np.float32) for rank in range(3)]
    with group(3, "tcp", settings=NetworkSettings(wire="bf16"), hosts="aba") as ranks:
        assert ranks.ranks[0].transport == "shm+tcp"
        results = ranks(lambda c: c.allreduce(parts[c.rank].copy(), op))
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    exact = np.stack(parts).astype(np.float64).sum(0) / (3 if op is ReduceOp.AVERAGE else 1)
    scale = np.abs(np.stack(parts)).sum(0)
    assert (np.abs(results[0] - exact) <= 3 * HALF_ULP * scale).all()
    # Rounded for the wire: no value has more bits than bf16 has.
    assert (results[0].astype(BFLOAT16) == results[0]).all()


def test_ranks_that_share_all_memory_have_no_wire_to_round_for():
    parts = [values(rank).astype(np.float32) for rank in range(2)]
    with group(2, "shm", settings=NetworkSettings(wire="bf16")) as ranks:
        results = ranks(lambda c: c.allreduce(parts[c.rank].copy()))
    assert all((result == parts[0] + parts[1]).all() for result in results)
