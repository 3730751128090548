import ml_dtypes
import numpy as np
import pytest

from trainer.collective.dtypes import ReduceOp
from trainer.collective.kernels import (
    brain_from_float,
    combine,
    divide,
    float_from_brain,
    form_of,
    storage_dtype,
)

EVERY_PATTERN = np.arange(1 << 16, dtype=np.uint16)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
@pytest.mark.parametrize("other", [0.0, 1.0, -3.1, 1e-7, 6e4])
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.PRODUCT])
def test_sixteen_bit_results_round_as_numpy_rounds_for_every_bit_pattern(dtype, other, op):
    left = EVERY_PATTERN.copy()
    right = np.full(left.size, other, dtype)
    with np.errstate(all="ignore"):
        wanted = left.view(dtype) + right if op is ReduceOp.SUM else left.view(dtype) * right
    assert storage_dtype(dtype) == np.uint16
    combine(left, right.view(np.uint16), int(op), form_of(dtype))
    got = left.view(dtype)
    nan = np.isnan(wanted.astype(np.float32))
    assert np.isnan(got[nan].astype(np.float32)).all()
    assert (got[~nan].view(np.uint16) == wanted[~nan].view(np.uint16)).all()


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_sixteen_bit_averages_round_as_numpy_rounds_for_every_bit_pattern(dtype):
    left = EVERY_PATTERN.copy()
    with np.errstate(all="ignore"):
        wanted = (left.view(dtype).astype(np.float32) / np.float32(3)).astype(dtype)
    divide(left, 3, form_of(dtype))
    nan = np.isnan(wanted.astype(np.float32))
    assert (left[~nan] == wanted.view(np.uint16)[~nan]).all()


def test_bf16_conversion_keeps_every_pattern_and_never_turns_nan_into_infinity():
    for pattern in (0x7F81, 0xFFC1, 0x0001, 0x8000, 0x7F7F):
        value = float_from_brain(np.uint16(pattern))
        back = int(brain_from_float(np.float32(value)))
        assert back == (pattern | 0x40 if np.isnan(value) else pattern)


def test_integer_averages_round_down():
    values = np.array([-7, -1, 0, 7], np.int32)
    divide(values, 2, form_of(values.dtype))
    assert values.tolist() == [-4, -1, 0, 3]
