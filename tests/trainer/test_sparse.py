import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.groups import group
from trainer.sparse import combine_rows, sum_rows


@given(st.lists(st.integers(0, 9), max_size=30), st.sampled_from([np.float16, np.float32]))
def test_each_row_is_kept_once_with_the_sum_of_its_values(indices, dtype):
    indices = np.array(indices, np.int64)
    values = np.arange(len(indices) * 3).reshape(-1, 3).astype(dtype)
    sums, rows = combine_rows(values, indices)
    assert rows.tolist() == sorted(set(indices.tolist()))
    assert sums.dtype == dtype
    expected = np.zeros((10, 3), np.float32)
    np.add.at(expected, indices, values)
    assert (sums == expected[rows].astype(dtype)).all()


def test_three_ranks_add_up_their_rows_with_identical_bits():
    def work(c):
        rng = np.random.default_rng(c.rank)
        indices = rng.integers(0, 1000, 20 * c.rank)
        values = rng.standard_normal((len(indices), 5)).astype(np.float32)
        total, rows = sum_rows(c, values, indices, 1000, "test")
        dense = np.zeros((1000, 5), np.float32)
        np.add.at(dense, indices, values)
        return total, rows, dense

    with group(3, "shm") as ranks:
        results = ranks(work)
    table = sum(dense.astype(np.float64) for _, _, dense in results)
    for total, rows, _ in results:
        assert total.tobytes() == results[0][0].tobytes()
        np.testing.assert_allclose(total, table[rows], atol=1e-5)
        assert (np.delete(table, rows, axis=0) == 0).all()
        assert len(rows) < 60
