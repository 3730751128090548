import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainer.placement import by_bytes, round_robin

# VGG16's tensors at 224 pixels and 1000 classes, in MB: weights, biases left out.
VGG16_MB = [0.007, 0.15, 0.3, 0.6, 1.2, 2.4, 2.4, 4.7, 9.4, 9.4, 9.4, 9.4, 9.4, 411.0, 67.1, 16.4]


@given(
    st.lists(st.integers(1, 10**7).map(lambda n: 4 * n), min_size=1, max_size=60), st.integers(1, 8)
)
def test_every_byte_has_a_server_and_the_fullest_is_near_the_mean(sizes, servers):
    placement = by_bytes(sizes, servers)
    assert [sum(size for _, size in pieces) for pieces in placement.pieces] == sizes
    loads = [0] * servers
    for pieces in placement.pieces:
        for server, size in pieces:
            loads[server] += size
            assert size % 4 == 0
    assert placement.loads == tuple(loads)
    largest = max(size for pieces in placement.pieces for _, size in pieces)
    # Graham's bound for any list, and no piece above a fair share (on a cache line).
    assert max(loads) <= sum(sizes) / servers + largest
    assert largest <= sum(sizes) / servers + 64
    assert placement == by_bytes(sizes, servers)


def test_vggs_first_dense_layer_does_not_make_one_server_the_bottleneck():
    sizes = [int(np.ceil(mb * 1e6 / 4)) * 4 for mb in VGG16_MB]
    assert round_robin(sizes, 4).imbalance > 3
    assert by_bytes(sizes, 4).imbalance < 1.05
    assert by_bytes(sizes, 2).imbalance < 1.05
    assert len(by_bytes(sizes, 4).pieces[13]) >= 3


def test_without_variables_nothing_is_out_of_balance():
    assert by_bytes([], 3).imbalance == round_robin([], 3).imbalance == 1.0
