import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from fabric.errors import InputError
from trainer.data import digits, epoch_batches, steps_per_epoch


def test_digits_are_scikit_learns_images_split_once_by_the_seed():
    data, again, other = digits(3), digits(3), digits(4)
    assert data.train.images.shape == (1438, 8, 8, 1)
    assert data.test.images.shape == (359, 8, 8, 1)
    assert data.train.images.dtype == np.float32
    assert 0 <= data.train.images.min() <= data.train.images.max() == 1
    assert (data.test.images == again.test.images).all()
    assert (data.test.images != other.test.images).any()

    def keyed(images, labels):
        return sorted(
            (*map(float, image.ravel()), int(label))
            for image, label in zip(images, labels, strict=True)
        )

    bunch = load_digits()
    ours = keyed(
        np.concatenate([data.train.images, data.test.images]) * 16,
        np.concatenate([data.train.labels, data.test.labels]),
    )
    assert ours == keyed(bunch.images, bunch.target)


@given(
    count=st.integers(1, 500),
    batch=st.integers(1, 20),
    ranks=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    epoch=st.integers(0, 3),
)
def test_ranks_share_an_epoch_without_overlap_and_in_equal_steps(count, batch, ranks, seed, epoch):
    if count < batch * ranks:
        with pytest.raises(InputError, match="less than one batch"):
            steps_per_epoch(count, batch, ranks)
        return

    def batches(rank, of, size):
        return list(epoch_batches(count, size, ranks=of, rank=rank, seed=seed, epoch=epoch))

    parts = [batches(rank, ranks, batch) for rank in range(ranks)]
    assert {len(part) for part in parts} == {steps_per_epoch(count, batch, ranks)}
    seen = np.concatenate([picked for part in parts for picked in part])
    assert len(set(seen.tolist())) == len(seen)
    # Together, step by step, they see what one rank with the whole batch sees.
    for step, whole in enumerate(batches(0, 1, batch * ranks)):
        assert np.concatenate([part[step] for part in parts]).tolist() == whole.tolist()


def test_the_order_differs_by_epoch_and_seed_and_repeats_by_run():
    def order(seed, epoch):
        picked = epoch_batches(100, 10, ranks=1, rank=0, seed=seed, epoch=epoch)
        return np.concatenate(list(picked)).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4
