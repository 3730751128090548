from dataclasses import replace

import numpy as np
import pytest

from fabric.errors import InputError
from tests.fabric.sim.scenario import site_of
from tests.trainer.groups import group
from trainer.collective.communicator import connect
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.settings import NetworkSettings
from trainer.collective.wire import new_token


def test_settings_travel_through_the_environment_unchanged():
    settings = NetworkSettings(device="mlx5_0", traffic_class=106, mtu=4096, channels=2)
    assert NetworkSettings.from_environment(settings.to_environment()) == settings
    assert NetworkSettings.from_environment({}) == NetworkSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "no JSON"),
        ("3", "no JSON"),
        ('{"tclass": 3}', "tclass"),
        ('{"mtu": 1500}', "1500"),
        ('{"traffic_class": 300}', "300"),
        ('{"wire": "fp8"}', "fp8"),
        ('{"segment_bytes": 100}', "cache lines"),
    ],
)
def test_settings_that_no_device_takes_are_refused_with_their_key(text, said):
    with pytest.raises(InputError, match=said.replace("[", r"\[")):
        NetworkSettings.from_environment({"PAISOAR_NETWORK": text})


def test_defaults_come_from_what_the_site_was_certified_with():
    site = site_of()
    settings = NetworkSettings.for_site(site)
    assert settings.traffic_class >> 2 == site.intent.roce.dscp[0]
    assert settings.mtu == site.intent.mtu.roce


@pytest.mark.parametrize(
    ("key", "value"), [("traffic_class", 96), ("mtu", 2048), ("channels", 3), ("wire", "bf16")]
)
def test_ranks_with_different_settings_are_refused_with_both_sides_shown(key, value):
    token = new_token()
    with Rendezvous(2, token) as rendezvous:
        from concurrent.futures import ThreadPoolExecutor

        def start(rank):
            member = Membership(rendezvous.address, token, rank, 2)
            mine = NetworkSettings(device=f"mlx5_{rank}")
            try:
                with pytest.raises(MismatchError) as caught:
                    connect(member, "tcp", settings=replace(mine, **{key: value}) if rank else mine)
            finally:
                member.leave()
            return str(caught.value)

        with ThreadPoolExecutor(2) as pool:
            for said in pool.map(start, range(2)):
                assert "rank 1" in said
                assert "rank 0" in said
                assert key in said
                assert str(value) in said
                assert "mlx5" not in said


@pytest.mark.parametrize("transport", ["tcp", "shm"])
def test_several_channels_carry_the_same_sums(transport):
    settings = NetworkSettings(channels=3, segment_bytes=4096)
    with group(3, transport, settings=settings) as ranks:
        sums = ranks(lambda c: c.allreduce(np.arange(50_000, dtype=np.float64) + c.rank))
    assert all((part == 3 * np.arange(50_000) + 3).all() for part in sums)


@pytest.mark.parametrize(("wire", "digits"), [("fp16", 10), ("bf16", 7)])
def test_fp32_may_travel_as_sixteen_bits(wire, digits):
    def work(c):
        rng = np.random.default_rng(c.rank)
        mine = rng.standard_normal(3_000_000).astype(np.float32)
        return (
            mine.copy(),
            c.allreduce(mine.copy(), ReduceOp.AVERAGE),
            c.allreduce(np.full(5, 3.0e5, np.float32), ReduceOp.AVERAGE),
            c.allreduce(np.arange(5, dtype=np.float64)),
            c.allreduce(mine.copy(), ReduceOp.MAX),
        )

    with group(2, "tcp", settings=NetworkSettings(wire=wire)) as ranks:
        results = ranks(work)
    (a, mean, large, untouched, most), (b, other_mean, *_) = results
    assert mean.tobytes() == other_mean.tobytes()
    exact = (a.astype(np.float64) + b) / 2
    scale = np.maximum(np.abs(a), np.abs(b))
    assert (np.abs(mean - exact) <= 2 * scale * 2.0**-digits + 1e-7).all()
    assert np.abs(mean - exact).max() > 0
    # Half of 3e5 each does not fit in fp16; what does not fit is infinite, not wrong.
    assert np.isinf(large).all() if wire == "fp16" else np.allclose(large, 3e5, rtol=2**-7)
    assert (untouched == 2 * np.arange(5)).all()
    assert np.allclose(most, np.maximum(a, b), rtol=2.0**-digits, atol=1e-7)
