import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fabric.errors import PeerError
from tests.trainer.groups import group
from trainer.collective.dtypes import ReduceOp
from trainer.collective.engine import address_of
from trainer.collective.errors import LostPeerError, MismatchError
from trainer.collective.settings import NetworkSettings
from trainer.collective.shared_words import advance, reached, wait_for, waiting_habits
from trainer.collective.transports import tcp_ring, tcp_small
from trainer.collective.transports.tcp import TcpTransport


def test_shared_memory_has_no_name_that_could_be_left_behind():
    before = set(Path("/dev/shm").iterdir())
    with group(3, "shm") as ranks:
        ranks(lambda c: c.allreduce(c.buffer(100_000)))
        assert set(Path("/dev/shm").iterdir()) == before
        assert any("memfd:paisoar" in name for name in _open_files())
    assert not any("memfd:paisoar" in name for name in _open_files())


def _open_files() -> list[str]:
    names = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(str(fd.readlink()))
    return names


def test_released_memory_is_forgotten_by_the_neighbour_too():
    with group(2, "shm") as ranks:

        def work(c):
            for _ in range(20):
                buffer = c.buffer(50_000)
                c.allreduce(buffer)
                c.release(buffer)
            c.barrier()

        ranks(work)
        mapped = Path("/proc/self/maps").read_text().count("memfd:paisoar")
    # Two boards, two workspaces and the last buffer at most, each mapped twice.
    assert mapped <= 12


def test_a_counter_wakes_its_sleepers_and_survives_wrapping_around():
    words = np.zeros(64, np.uint32)
    address = address_of(words)
    habits = waiting_habits(1000)
    timespec = address_of(habits) + 24
    words[0] = 0xFFFFFFFF
    assert reached(address, 0xFFFFFFFF)
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(_wait, address, 1 << 32) for _ in range(3)]
        time.sleep(0.03)
        assert not any(wait.done() for wait in waits)
        advance(address, 1 << 32, habits)
        assert all(wait.result(timeout=5) for wait in waits)
    assert words[0] == 0
    began = time.monotonic()
    assert not wait_for(address, 1, habits, timespec)
    assert 0.04 < time.monotonic() - began < 5.0


def _wait(address, target):
    habits = waiting_habits(1000)
    while not wait_for(address, target, habits, address_of(habits) + 24):
        pass
    return True


def test_a_stranger_who_connects_does_not_take_a_rank_place():
    connected = []
    original = socket.create_server

    def intrude(address, **options):
        listener = original(address, **options)
        stranger = socket.create_connection(listener.getsockname())
        stranger.sendall(bytes(36))
        connected.append(stranger)
        return listener

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.collective.transports.tcp.socket.create_server", intrude)
        with group(2, "tcp") as ranks:
            sums = ranks(lambda c: c.allreduce(np.ones(10, np.float32)))
    assert all((part == 2).all() for part in sums)
    assert len(connected) >= 2
    for stranger in connected:
        stranger.close()


def test_a_neighbour_whose_connection_breaks_is_named(monkeypatch):
    # Nobody else has failed, so no better verdict will come.
    monkeypatch.setattr("trainer.collective.membership._VERDICT_S", 0.3)
    with group(2, "tcp", patience_s=10.0) as ranks:

        def work(c):
            if c.rank == 1:
                c._engine.close()
                return None
            with pytest.raises(PeerError) as caught:
                c.allreduce(np.zeros(1 << 20, np.float32))
            return caught.value

        error = ranks(work)[0]
    assert isinstance(error, LostPeerError)
    assert error.failure.culprit.rank == 1
    assert "connection" in str(error)


def refuse(*_):
    raise AssertionError("this way was not to be taken")


def test_an_allreduce_over_tcp_is_one_loop_and_no_chain_of_messages(monkeypatch):
    with group(3, "tcp", settings=NetworkSettings(channels=2)) as ranks:
        monkeypatch.setattr(TcpTransport, "take", refuse)
        monkeypatch.setattr(TcpTransport, "post", refuse)
        # Longer than a piece, and no multiple of anything.
        sums = ranks(lambda c: c.allreduce(np.arange(700_001, dtype=np.float32)))
    assert all((part == 3 * np.arange(700_001, dtype=np.float32)).all() for part in sums)


def test_a_small_allreduce_over_tcp_is_one_step_and_gives_the_bits_of_the_ring(monkeypatch):
    with group(5, "tcp", settings=NetworkSettings(channels=2)) as ranks:

        def work(c):
            values = np.random.default_rng(c.rank).standard_normal(4001, np.float32)
            return c.allreduce(values, ReduceOp.AVERAGE).tobytes()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tcp_ring, "circulate", refuse)
            exchanged = ranks(work)
        monkeypatch.setattr(tcp_small.SmallExchange, "takes", lambda *_: False)
        passed_on = ranks(work)
    assert len({*exchanged, *passed_on}) == 1


def test_connections_within_a_host_are_not_paced_unless_asked_for():
    with group(2, "tcp", settings=NetworkSettings(channels=2)) as ranks:
        assert _congestion_controls(ranks) == {"reno"}
    with group(2, "tcp", settings=NetworkSettings(tcp_congestion_control="cubic")) as ranks:
        assert _congestion_controls(ranks) == {"cubic"}


def test_tcp_listens_where_it_is_told_to():
    with group(2, "tcp", settings=NetworkSettings(address="127.0.0.9")) as ranks:
        assert ranks(lambda c: c.allreduce(np.ones(3)).tolist()) == [[2.0] * 3] * 2
        reached = {
            channel.right.getpeername()[0]
            for rank in ranks.ranks
            for channel in rank._engine._transport._channels
        }
    assert reached == {"127.0.0.9"}


def _congestion_controls(ranks):
    return {
        channel.right.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        .rstrip(bytes(1))
        .decode()
        for rank in ranks.ranks
        for channel in rank._engine._transport._channels
    }


@pytest.mark.parametrize("count", [100, 100_000])
@pytest.mark.parametrize("late", [0, 1])
def test_ranks_that_disagree_are_told_so_whatever_the_channels(late, count):
    def work(c):
        # Who comes late finds the other's header there before it has sent its own.
        if c.rank == late:
            time.sleep(0.3)
        c.allreduce(np.zeros(count + c.rank, np.float32))

    with group(2, "tcp", settings=NetworkSettings(channels=3)) as ranks:
        errors = ranks.errors(work)
    assert all(isinstance(error, MismatchError) for error in errors)
    for rank, error in enumerate(errors):
        other = 1 - rank
        assert f"rank {other} is in allreduce 1 (sum) of float32[{count + other}]" in str(error)
        assert f"rank {rank} in allreduce 1 (sum) of float32[{count + rank}]" in str(error)
