"""The physics of a predicted step."""

from dataclasses import replace

import pytest

from fabric.errors import InputError
from tests.trainer.predict.clos_sites import fabric, setup
from trainer.predict.constants import DEFAULTS
from trainer.predict.layers import models
from trainer.predict.ring import Group, ring_cost, volume
from trainer.predict.setup import Setup
from trainer.predict.step import predict

FREE = replace(
    DEFAULTS, rdma_hop_s=0.0, host_hop_s=0.0, post_s=0.0, pcie_rate=1e18, memory_rate=1e18
)


def one(way, gpus, on=None, constants=DEFAULTS):
    return predict(way, [gpus], on or fabric(), constants)[0]


def test_one_gpu_computes_and_exchanges_nothing():
    found = one(setup(), 1)
    assert (found.speedup, found.efficiency, found.exposed_s) == (1.0, 1.0, 0.0)
    assert found.images_per_s == pytest.approx(154.0)


def test_a_ring_carries_its_known_volume():
    assert [volume(n) for n in (2, 4, 16)] == pytest.approx([1.0, 1.5, 1.875])
    way = setup(per_host=1)
    rate = fabric().ring(16)
    cost = ring_cost(way, Group(16, 1), rate, FREE)
    assert cost(1e9) == pytest.approx(2 * 15 / 16 * 1e9 / (rate.bps / 8))


def test_the_latency_of_a_ring_grows_with_its_steps():
    way, rate = setup(per_host=1), fabric().ring(16)
    latencies = [ring_cost(way, Group(n, 1), rate, DEFAULTS).latency_s for n in (2, 8, 16)]
    assert latencies == pytest.approx([2 * (n - 1) * latencies[0] / 2 for n in (2, 8, 16)])


def test_the_hierarchical_ring_has_fewer_steps_and_carries_less():
    flat, tall = setup(per_host=8, hierarchical=False), setup(per_host=8)
    costs = [ring_cost(way, Group(16, 8), fabric().ring(16), FREE) for way in (flat, tall)]
    assert costs[0].s_per_byte / costs[1].s_per_byte == pytest.approx(volume(128) / volume(16))
    slow = [ring_cost(way, Group(16, 8), fabric().ring(16), DEFAULTS) for way in (flat, tall)]
    assert slow[0].latency_s > 5 * slow[1].latency_s


@pytest.mark.parametrize("model", list(models()))
@pytest.mark.parametrize("sync", ["ring", "ps"])
def test_no_overlap_is_the_sum_full_overlap_the_larger_and_the_timeline_between(model, sync):
    way = Setup(model, 0.2, 64, 2, sync=sync)
    none, full, played = (
        one(replace(way, overlap=overlap), 32) for overlap in ("none", "full", "timeline")
    )
    assert none.step_s == pytest.approx(none.compute_s + none.exchange_s)
    assert full.step_s == pytest.approx(max(full.compute_s, full.exchange_s))
    assert full.step_s - 1e-9 <= played.step_s <= none.step_s + 1e-9


@pytest.mark.parametrize("sync", ["ring", "ps"])
@pytest.mark.parametrize("transport", ["verbs", "tcp"])
def test_more_bandwidth_is_never_slower(sync, transport):
    steps = [
        one(setup(sync=sync, transport=transport), 32, fabric(nic=nic)).step_s
        for nic in ("10G", "25G", "40G", "100G")
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.2 * steps[-1]


def test_tcp_is_never_faster_and_its_host_limit_shows_on_fast_nics():
    fast = fabric(nic="100G")
    for gpus in (4, 32):
        assert one(setup(transport="tcp"), gpus).step_s >= one(setup(), gpus).step_s
    assert (
        one(setup(transport="tcp"), 32, fast).exchange_s > 1.2 * one(setup(), 32, fast).exchange_s
    )


def test_grpc_servers_are_slower_than_verbs_servers():
    for model in ("resnet50", "vgg16"):
        way = setup(model, sync="ps", software="tensorflow", copies=1)
        assert one(replace(way, transport="tcp"), 32).step_s > one(way, 32).step_s


def test_fewer_servers_are_slower():
    way = setup(sync="ps", software="tensorflow", copies=1)
    steps = [one(replace(way, servers=count), 32).step_s for count in (16, 4, 1)]
    assert steps == sorted(steps)
    assert steps[2] > 3 * steps[0]


def test_a_host_alone_holds_one_of_several_servers():
    way = setup(sync="ps", software="tensorflow", copies=1, servers=4)
    assert [found.gpus for found in predict(way, [1, 2, 4, 32], fabric())] == [1, 2, 4, 32]


def test_variables_dealt_out_in_turns_overload_a_server():
    way = setup(sync="ps", software="tensorflow", copies=1, servers=4)
    assert one(replace(way, placement="round-robin"), 32).step_s > 2 * one(way, 32).step_s


def test_half_the_bytes_on_the_wire_are_half_the_time_of_the_ring():
    way = setup(per_host=1)
    full, half = (
        ring_cost(replace(way, wire=wire), Group(16, 1), fabric().ring(16), FREE)
        for wire in ("fp32", "fp16")
    )
    assert half.s_per_byte == pytest.approx(full.s_per_byte / 2)


def test_a_lossy_port_hurts_and_hurts_roce_more_than_tcp():
    lossy = fabric(lossy_port="leaf1:Ethernet1/1", loss=1e-3)
    worse = {}
    for transport in ("verbs", "tcp"):
        way = setup(transport=transport)
        worse[transport] = one(way, 32, lossy).step_s / one(way, 32).step_s
    assert worse["verbs"] > 1.5
    assert worse["verbs"] > worse["tcp"] >= 1.0


def test_a_lossy_port_hurts_parameter_servers_too():
    lossy = fabric(lossy_port="leaf1:Ethernet1/1", loss=1e-3)
    way = setup(sync="ps", software="tensorflow", copies=1)
    assert one(way, 32, lossy).step_s > one(way, 32).step_s


def test_a_lossy_port_that_nobody_crosses_hurts_nobody():
    lossy = fabric(64, lossy_port="leaf2:Ethernet1/1", loss=1e-2)
    assert one(setup(), 64, lossy).step_s == pytest.approx(one(setup(), 64, fabric(64)).step_s)


@pytest.mark.parametrize("software", ["paisoar", "horovod", "horovod-mpi"])
def test_more_gpus_do_more_work_in_all_and_less_each(software):
    found = predict(setup("resnet50", software=software), [1, 2, 4, 8, 16, 32], fabric())
    assert [p.images_per_s for p in found] == sorted(p.images_per_s for p in found)
    assert all(0 < p.efficiency <= 1.0 for p in found)


def test_buckets_grow_with_the_latency_of_the_ring_as_the_trainer_chooses_them():
    few, many = one(setup("resnet50"), 4), one(setup("resnet50"), 1024, fabric(512))
    assert few.bucket_bytes < many.bucket_bytes
    assert few.exchanges > many.exchanges


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ({"sync": "gossip"}, "--sync gossip"),
        ({"transport": "quic"}, "--transport quic"),
        ({"overlap": "half"}, "--overlap half"),
        ({"wire": "fp8"}, "--wire fp8"),
        ({"placement": "luck"}, "--placement luck"),
        ({"per_host": 0}, "--gpus-per-host 0"),
        ({"servers": -1}, "--servers -1"),
    ],
)
def test_options_that_make_no_sense_are_named(ways, said):
    with pytest.raises(InputError, match=said):
        setup(**ways)


def test_numbers_of_gpus_that_cannot_be_are_named():
    with pytest.raises(InputError, match="--gpus 33: no multiple of 2"):
        one(setup(), 33)
    with pytest.raises(InputError, match="--gpus 0"):
        one(setup(), 0)
    with pytest.raises(InputError, match="--servers 17"):
        one(setup(sync="ps", servers=17), 32)
