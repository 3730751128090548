import resource
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fabric.errors import InputError, PeerError, ToolError
from tests.fake_verbs import C, FakeFabric, Illegal
from tests.trainer.groups import group
from trainer.collective.communicator import connect
from trainer.collective.errors import LostPeerError, MismatchError
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.settings import NetworkSettings
from trainer.collective.transports import verbs_device
from trainer.collective.transports.verbs import SLOTS
from trainer.collective.transports.verbs_device import Device, load_verbs
from trainer.collective.wire import new_token

LOAD = "trainer.collective.transports.verbs.load_verbs"


@pytest.fixture
def fabric(monkeypatch):
    made = FakeFabric(slow=True)
    monkeypatch.setattr(LOAD, made.verbs)
    return made


def use(monkeypatch, **options):
    made = FakeFabric(**options)
    monkeypatch.setattr(LOAD, made.verbs)
    return made


def steps(c):
    """Five steps over the same two buckets, as a training does; counts wrong sums."""
    buckets = [c.buffer(30_000), c.buffer(1_000)]
    wrong = 0
    for step in range(5):
        for bucket in buckets:
            bucket[:] = step + c.rank
            c.allreduce(bucket)
            wrong += not (bucket == c.size * step + sum(range(c.size))).all()
            bucket[:] = -1.0
    c.barrier()
    return wrong


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("channels", [1, 3])
def test_no_call_is_illegal_and_nothing_stays_open(fabric, size, channels):
    settings = NetworkSettings(channels=channels, segment_bytes=4096)
    with group(size, "verbs", settings=settings) as ranks:
        assert ranks.ranks[0].transport == "verbs"
        assert ranks(steps) == [0] * size
    fabric.check()
    assert fabric.receiver_not_ready == 0
    assert fabric.open_objects == 0
    assert fabric.registered_bytes == 0
    assert fabric.queue_pairs == {}


def test_requests_are_chained_and_only_a_few_signalled(fabric):
    with group(2, "verbs", segment_bytes=4096) as ranks:
        ranks(steps)
    assert max(fabric.chains) == SLOTS
    assert fabric.signalled < fabric.posted / 3


def test_requests_are_built_once_and_used_again(fabric, monkeypatch):
    built = []
    original = fabric.verbs().SendWR

    def counting(*arguments, **options):
        built.append(1)
        return original(*arguments, **options)

    verbs = fabric.verbs()
    verbs.names["SendWR"] = counting
    monkeypatch.setattr(LOAD, lambda: verbs)

    def work(c):
        bucket = c.buffer(8192)
        counts = []
        for _ in range(6):
            c.allreduce(bucket)
            c.barrier()
            counts.append(len(built))
        return counts

    # 4 segments and a barrier's 1 a step take the 8 slots in turns: all built after 8 steps.
    with group(2, "verbs", segment_bytes=8192) as ranks:
        ranks(work)
        ranks(work)
    posted_late = fabric.posted
    assert len(built) < posted_late / 2


def test_immediate_values_travel_in_network_byte_order(fabric):
    with group(2, "verbs", segment_bytes=4096) as ranks:
        ranks(steps)
    assert {socket.ntohl(value) for value in fabric.immediates} == set(range(SLOTS))


def test_the_settings_reach_the_queue_pairs(monkeypatch):
    fabric = use(monkeypatch)
    settings = NetworkSettings(
        traffic_class=106, mtu=2048, timeout=17, retry_count=6, rnr_retry=5, hop_limit=9
    )
    with group(2, "verbs", settings=settings) as ranks:
        ranks(lambda c: c.barrier())
    assert {(r.traffic_class, r.hop_limit) for r in fabric.routes} == {(106, 9)}
    assert {(a.timeout, a.retry_cnt, a.rnr_retry) for a in fabric.attributes} == {(17, 6, 5)}
    assert {a.path_mtu for a in fabric.attributes} == {C.IBV_MTU_256 + 3}
    # The RoCEv2 address that people configured: the IPv4 one.
    assert {r.sgid_index for r in fabric.routes} == {2}


def test_soft_roce_too_gives_up_on_a_peer_by_default(monkeypatch):
    fabric = use(monkeypatch)
    with group(2, "verbs") as ranks:
        ranks(lambda c: c.barrier())
    # rxe never counts down from 7.
    assert all(0 < a.retry_cnt < 7 for a in fabric.attributes)


def polls_of_a_wait(fabric, seconds):
    """How often rank 0 looks at its queues while it waits so long for rank 1."""
    polls = []
    original = fabric.verbs().CQ.poll

    def counting(queue, *arguments, **options):
        polls.append(threading.get_ident())
        return original(queue, *arguments, **options)

    def work(c):
        c.barrier()
        before = polls.count(threading.get_ident())
        if c.rank == 1:
            time.sleep(seconds)
        c.barrier()
        return polls.count(threading.get_ident()) - before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fabric.verbs().CQ, "poll", counting)
        with group(2, "verbs") as ranks:
            return ranks(work)[0]


def test_who_waits_for_soft_roce_leaves_it_the_processor(monkeypatch, tmp_path):
    fabric = use(monkeypatch)
    monkeypatch.setattr(verbs_device, "CLASS", tmp_path)
    (tmp_path / "rxe0").mkdir()
    assert Device(fabric.verbs(), NetworkSettings()).pace == verbs_device.OF_HARDWARE
    (tmp_path / "rxe0" / "parent").write_text("ens1f0\n")
    # Two queues, each looked at once a nap.
    most = 2 * 0.4 / verbs_device.OF_SOFTWARE.nap_s + 20
    assert polls_of_a_wait(fabric, 0.4) < most


def test_a_broken_network_names_the_neighbour_the_device_and_the_settings(monkeypatch):
    monkeypatch.setattr("trainer.collective.membership._VERDICT_S", 0.2)
    fabric = use(monkeypatch)
    both = threading.Barrier(2)

    def work(c):
        c.barrier()
        both.wait()
        fabric.cut = True
        with pytest.raises(PeerError) as caught:
            c.allreduce(np.zeros(100_000, np.float32))
        return caught.value

    with group(2, "verbs", patience_s=5.0) as ranks:
        errors = ranks(work)
    assert any(isinstance(error, LostPeerError) for error in errors)
    said = " ".join(map(str, errors))
    assert "RETRY_EXC" in said
    assert "rxe0 port 1" in said
    assert "GID index 2" in said


def test_a_rank_that_does_not_come_is_waited_for_no_longer_than_our_patience(monkeypatch):
    use(monkeypatch)
    with group(2, "verbs", patience_s=0.4) as ranks:

        def work(c):
            if c.rank == 1:
                return ""
            with pytest.raises(PeerError) as caught:
                c.allreduce(np.zeros(10, np.float32))
            return str(caught.value)

        assert "rank 1" in ranks(work)[0]


def test_refused_memory_speaks_of_size_device_and_limit(monkeypatch):
    use(monkeypatch, memlock_bytes=1 << 20)
    limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    with group(2, "verbs", segment_bytes=4096) as ranks, pytest.raises(ToolError) as caught:
        ranks.ranks[0].buffer(1 << 20)
    said = str(caught.value)
    assert "4194304 bytes" in said
    assert "rxe0" in said
    assert ("unlimited" if limits[0] == resource.RLIM_INFINITY else str(limits[0])) in said
    assert "ulimit -l" in said


@pytest.mark.parametrize(
    ("change", "settings", "error", "said"),
    [
        ({"devices": []}, {}, ToolError, "no RDMA device"),
        ({}, {"device": "mlx5_9"}, InputError, "mlx5_9"),
        ({"port_state": C.IBV_PORT_DOWN}, {}, ToolError, "rxe0 port 1 is DOWN, not ACTIVE"),
        ({}, {"port": 2}, InputError, "rxe0 has no port 2"),
        ({"active_mtu": 3}, {"mtu": 4096}, InputError, "active MTU of 1024"),
        ({"gids": []}, {}, ToolError, "no RoCEv2 address"),
        ({}, {"gid_index": 7}, InputError, "no GID 7"),
    ],
)
def test_an_unfit_device_is_explained(change, settings, error, said):
    fabric = FakeFabric()
    for name, value in change.items():
        setattr(fabric, name, value)
    with pytest.raises(error, match=said):
        Device(fabric.verbs(), NetworkSettings(**settings))


def refused():
    """What each of two ranks says that cannot connect."""
    token = new_token()
    with Rendezvous(2, token) as rendezvous:

        def start(rank):
            member = Membership(rendezvous.address, token, rank, 2)
            try:
                with pytest.raises(ToolError) as caught:
                    connect(member, "verbs", settings=NetworkSettings())
            finally:
                member.leave()
            return str(caught.value)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(start, range(2)))


def test_a_peer_to_which_there_is_no_way_is_named_with_both_addresses(monkeypatch):
    fabric = use(monkeypatch)
    fabric.no_way = True
    for rank, said in enumerate(refused()):
        assert "rxe0 port 1, GID index 2 (0000:" in said
        assert f"finds no way to rxe0 GID index 2 of rank {1 - rank}" in said
        assert "ip neigh" in said


def test_a_device_without_room_is_named_with_what_it_has_not(monkeypatch):
    fabric = use(monkeypatch)
    fabric.exhausted = True
    for said in refused():
        assert "rxe0 port 1: cannot make a completion queue of" in said


def test_addresses_of_different_kinds_are_refused_with_both_sides_shown(monkeypatch):
    use(monkeypatch)
    token = new_token()
    with Rendezvous(2, token) as rendezvous:

        def start(rank):
            member = Membership(rendezvous.address, token, rank, 2)
            try:
                with pytest.raises(MismatchError) as caught:
                    connect(member, "verbs", settings=NetworkSettings(gid_index=2 - rank))
            finally:
                member.leave()
            return str(caught.value)

        with ThreadPoolExecutor(2) as pool:
            for said in pool.map(start, range(2)):
                assert "rxe0 GID index 1 is RoCEv2 over IPv6 on rank 1" in said
                assert "rxe0 GID index 2 is RoCEv2 over IPv4 on rank 0" in said


def test_without_pyverbs_it_is_said_what_to_install(monkeypatch):
    for name in ("pyverbs", "pyverbs.addr"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ToolError, match="pyverbs") as caught:
        load_verbs()
    assert "python3-pyverbs" in caught.value.advice


# The stand-in itself: it would notice.


def parts(fabric):
    verbs = fabric.verbs()
    context = verbs.Context(name="rxe0")
    pd = verbs.PD(context)
    memory = np.zeros(4096, np.uint8)
    region = verbs.MR(pd, 4096, C.IBV_ACCESS_LOCAL_WRITE, address=memory.ctypes.data)
    queue = verbs.CQ(context, 4)
    capacity = verbs.QPCap(max_send_wr=2, max_recv_wr=2, max_send_sge=1, max_recv_sge=1)
    pair = verbs.QP(pd, verbs.QPInitAttr(C.IBV_QPT_RC, queue, queue, capacity, 0))
    return verbs, memory, region, pair


def test_the_stand_in_refuses_wrong_states_bounds_and_links():
    verbs, memory, region, pair = parts(FakeFabric())
    attributes = verbs.QPAttr(port_num=1)
    with pytest.raises(Illegal, match="INIT"):
        pair.to_rtr(attributes)
    with pytest.raises(Illegal, match="has no"):
        attributes.traffic_class = 3
    pair.to_init(attributes)
    with pytest.raises(Illegal, match="needs ah_attr"):
        pair.to_rtr(attributes)
    outside = verbs.SGE(memory.ctypes.data + 4000, 200, region.lkey)
    with pytest.raises(Illegal, match="outside"):
        pair.post_recv(verbs.RecvWR(num_sge=1, sg=[outside]))
    with pytest.raises(Illegal, match="lkey"):
        pair.post_recv(verbs.RecvWR(num_sge=1, sg=[verbs.SGE(memory.ctypes.data, 8, 1)]))
    with pytest.raises(verbs.PyverbsUserError):
        verbs.RecvWR(num_sge=0)
    inside = verbs.SGE(memory.ctypes.data, 64, region.lkey)
    for _ in range(2):
        pair.post_recv(verbs.RecvWR(num_sge=1, sg=[inside]))
    with pytest.raises(Illegal, match="overflows"):
        pair.post_recv(verbs.RecvWR(num_sge=1, sg=[inside]))
    with pytest.raises(Illegal, match="before RTS"):
        pair.post_send(verbs.SendWR(num_sge=1, sg=[inside]))
    first = verbs.SendWR(num_sge=1, sg=[inside])
    first.next_wr = verbs.SendWR(num_sge=1, sg=[inside])
    with pytest.raises(Illegal, match="gone"):
        first.following()
    with pytest.raises(verbs.PyverbsUserError):
        _ = first.next_wr
    with pytest.raises(TypeError):
        first.next_wr = None
    with pytest.raises(Illegal, match="closed before"):
        pair.pd.close()
    pair.close()
