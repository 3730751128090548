import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import PeerError
from tests.trainer.groups import group
from trainer.collective.courier import Courier
from trainer.collective.fusion import BucketLine, Gradient, plan_buckets

GRADIENTS = st.lists(
    st.builds(
        Gradient,
        st.sampled_from(["kernel", "bias"]),
        st.lists(st.integers(0, 40), max_size=3).map(tuple),
        st.sampled_from([np.dtype(np.float32), np.dtype(np.float16)]),
    ),
    max_size=30,
)


@given(gradients=GRADIENTS, limit=st.integers(64, 20_000))
def test_buckets_hold_every_gradient_once_last_layers_first(gradients, limit):
    buckets = plan_buckets(gradients, first_bytes=limit // 2, bucket_bytes=limit)
    order = [member for bucket in buckets for member in bucket.members]
    assert order == list(reversed(range(len(gradients))))
    assert [bucket.index for bucket in buckets] == list(range(len(buckets)))
    for bucket in buckets:
        size = bucket.dtype.itemsize
        end = 0
        for member, start in zip(bucket.members, bucket.starts, strict=True):
            assert gradients[member].dtype == bucket.dtype
            assert start * size % 64 == 0
            assert start >= end
            end = start + gradients[member].count
        assert end == bucket.count
        allowed = limit if bucket.index else limit // 2
        assert len(bucket.members) == 1 or bucket.count * size <= allowed


def test_buckets_of_different_models_have_different_layouts():
    def layout(*shapes):
        gradients = [Gradient("kernel", shape, np.dtype(np.float32)) for shape in shapes]
        (bucket,) = plan_buckets(gradients)
        return bucket.layout, bucket.count

    assert layout((4, 8)) == layout((4, 8))
    assert layout((4, 8))[1] == layout((8, 4))[1]
    assert layout((4, 8))[0] != layout((8, 4))[0]


def line_of(courier):
    gradients = [Gradient("a", (3, 5), np.dtype(np.float32)), Gradient("b", (7,), np.dtype("f4"))]
    (bucket,) = plan_buckets(gradients)
    return BucketLine(courier, bucket, [gradients[i].shape for i in bucket.members])


def test_a_bucket_is_summed_in_the_background_and_given_as_aligned_views():
    with group(2, "shm") as ranks:

        def work(c):
            courier = Courier(c)
            line = line_of(courier)
            sums = []
            for step in range(1, 4):
                line.post([np.full(7, step), np.full((3, 5), c.rank)], step)
                views = line.wait()
                assert all(view.ctypes.data % 64 == 0 for view in views)
                sums.append([view.copy() for view in views])
                line.release()
            courier.close()
            return sums

        for sums in ranks(work):
            for step, (b, a) in enumerate(sums, start=1):
                assert (b == 2 * step).all()
                assert (a == 1).all()
                assert (a.shape, b.shape) == ((3, 5), (7,))


def test_the_next_post_waits_until_the_views_are_released():
    with group(2, "shm") as ranks:

        def work(c):
            courier = Courier(c)
            line = line_of(courier)
            line.post([np.ones(7), np.ones((3, 5))], 1)
            views = line.wait()
            late = threading.Thread(
                target=lambda: line.post([np.zeros(7), np.zeros((3, 5))], 2), daemon=True
            )
            late.start()
            late.join(0.3)
            held = late.is_alive() and all((view == 2).all() for view in views)
            line.release()
            late.join()
            line.wait()
            courier.close()
            return held

        assert all(ranks(work))


def test_a_step_that_failed_half_way_is_told_and_not_waited_for(monkeypatch):
    monkeypatch.setattr("trainer.collective.fusion._RELEASE_WITHIN_S", 0.2)
    with group(2, "shm") as ranks:

        def work(c):
            courier = Courier(c)
            line = line_of(courier)
            line.post([np.ones(7), np.ones((3, 5))], 1)
            line.wait()
            with pytest.raises(PeerError, match="step 2, bucket 0: the step before"):
                line.post([np.ones(7), np.ones((3, 5))], 2)
            courier.close()

        ranks(work)


def test_a_lost_rank_does_not_leave_a_post_waiting_for_ever():
    with group(2, "shm", patience_s=0.5) as ranks:

        def work(c):
            courier = Courier(c)
            line = line_of(courier)
            if c.rank == 1:
                courier.close()
                return None
            line.post([np.ones(7), np.ones((3, 5))], 1)
            said = []
            for attempt in (line.wait, lambda: line.post([np.ones(7), np.ones((3, 5))], 2)):
                with pytest.raises(PeerError) as caught:
                    attempt()
                said.append(str(caught.value))
            courier.close()
            return said

        said = ranks(work)[0]
    assert said[0] == said[1]
    assert "step 1, bucket 0" in said[0]
