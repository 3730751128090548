import pytest

from trainer.bucket_size import CANDIDATES_BYTES, smallest_good


def test_the_smallest_size_near_the_best_rate_is_taken():
    sizes = [1, 2, 4, 8]
    assert smallest_good(sizes, [1.0, 1.0, 1.0, 1.0]) == 8
    assert smallest_good(sizes, [0.1, 0.2, 0.4, 0.8]) == 1
    assert smallest_good(sizes, [0.5, 0.5, 0.55, 1.0]) == 4
    assert smallest_good(sizes, [0.5, 0.27, 0.5, 1.0]) == 2


@pytest.mark.parametrize("latency_s", [10e-6, 100e-6, 1e-3])
def test_a_slower_start_asks_for_larger_buckets(latency_s):
    def choice(alpha):
        return smallest_good(CANDIDATES_BYTES, [alpha + n / 2e9 for n in CANDIDATES_BYTES])

    assert choice(latency_s) <= choice(4 * latency_s)
    assert choice(0.0) == CANDIDATES_BYTES[0]
