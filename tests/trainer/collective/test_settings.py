import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabric.errors import InputError
from fabric.site import load_site
from tests.fabric.sim.scenario import site_of
from tests.sites import make_site, write_site
from tests.trainer.groups import group
from trainer.collective.communicator import connect
from trainer.collective.dtypes import ReduceOp
from trainer.collective.errors import MismatchError
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.settings import NetworkSettings, settings_for
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


def test_a_host_of_the_site_uses_its_own_nics_in_turns(tmp_path):
    write_site(tmp_path)
    assert NetworkSettings.for_site(make_site(tmp_path), "host1").device == "mlx5_0"
    assert NetworkSettings.for_site(make_site(tmp_path), "elsewhere").device == ""
    assert NetworkSettings.for_site(make_site(tmp_path), "leaf1").device == ""
    site = load_site(Path(__file__).parents[3] / "examples" / "real-site.yaml")
    host = next(iter(site.topology.hosts))
    devices = [NetworkSettings.for_site(site, host, place).device for place in range(3)]
    assert devices == ["mlx5_0", "mlx5_1", "mlx5_0"]


def test_tcp_goes_over_the_nics_that_are_proved_not_over_the_launchers_network():
    site = load_site(Path(__file__).parents[3] / "examples" / "real-site.yaml")
    listens = [NetworkSettings.for_site(site, "host2", place).address for place in range(3)]
    assert listens == ["10.0.0.2", "10.1.0.2", "10.0.0.2"]
    assert NetworkSettings.for_site(site, "elsewhere").address == ""


def test_a_twins_hosts_have_no_addresses_to_listen_at(tmp_path):
    site = make_site(tmp_path)
    assert site.host("host1").nics["ens1f0"].address
    assert NetworkSettings.for_site(site, "host1").address == ""


def test_the_environment_goes_over_the_site_and_wishes_over_both(tmp_path, monkeypatch):
    site = make_site(tmp_path)
    monkeypatch.setenv("PAISOAR_NETWORK", '{"gid_index": 3, "timeout": 16}')
    found = settings_for(site, "host1", wishes=["timeout=20", "device=bnxt_re1", "wire=bf16"])
    assert (found.device, found.gid_index, found.timeout) == ("bnxt_re1", 3, 20)
    assert found.wire == "bf16"
    assert (found.traffic_class, found.mtu) == (26 << 2 | 2, 4096)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("timeout", "sets nothing"),
        ("tclass=3", "sets nothing"),
        ("timeout=long", "'long' is no number"),
        ("mtu=1500", "1500 is no path MTU"),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_refused(wish, said):
    with pytest.raises(InputError, match=said):
        NetworkSettings().changed_by([wish])


def test_tcp_is_marked_with_its_own_class_and_never_with_that_of_rdma():
    for chosen, tos in ((NetworkSettings(traffic_class=106), 0), (marked_tcp(), 0x40)):
        with group(2, "tcp", settings=chosen) as ranks:
            for rank in ranks.ranks:
                for channel in rank._engine._transport._channels:
                    for sock in (channel.left, channel.right):
                        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) & 0xFC == tos


def marked_tcp():
    return NetworkSettings(traffic_class=106, tcp_traffic_class=0x40)


@pytest.mark.parametrize(
    ("key", "value"), [("traffic_class", 96), ("mtu", 2048), ("channels", 3), ("wire", "bf16")]
)
def test_ranks_with_different_settings_are_refused_with_both_sides_shown(key, value):
    token = new_token()
    with Rendezvous(2, token) as rendezvous:

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


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("tcp_congestion_control", "carrier-pigeon", "reno"),
        ("address", "192.0.2.7", "fabric.yaml"),
    ],
)
def test_what_tcp_cannot_have_on_this_host_is_refused_with_what_to_do(key, value, advice):
    token = new_token()
    settings = NetworkSettings(**{key: value})
    with Rendezvous(2, token) as rendezvous:

        def start(rank):
            member = Membership(rendezvous.address, token, rank, 2)
            try:
                with pytest.raises(InputError, match=re.escape(value)) as caught:
                    connect(member, "tcp", settings=settings)
            finally:
                member.leave()
            return caught.value

        with ThreadPoolExecutor(2) as pool:
            for error in pool.map(start, range(2)):
                assert error.key == f"network.{key}"
                assert advice in error.advice


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
