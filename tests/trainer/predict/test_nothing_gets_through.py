"""A fabric on which traffic of the training does not get through has no prediction."""

import pytest

from fabric.errors import JudgedBadError
from trainer.predict.constants import DEFAULTS
from trainer.predict.rates import Rate
from trainer.predict.ring import network_rate
from trainer.predict.setup import Setup


@pytest.mark.parametrize("rate", [Rate(0.0, 25e9, "idle"), Rate(20e9, 25e9, "lossy", loss=1.0)])
def test_it_is_said_instead_of_a_rate_of_zero(rate):
    setup = Setup("resnet50", 0.1, 32, 2)
    with pytest.raises(JudgedBadError, match="does not get through"):
        network_rate(setup, rate, DEFAULTS, 1e9)
