import contextlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fabric.errors import PeerError
from tests.trainer.groups import group
from trainer.collective.errors import LostPeerError, MismatchError, WeightsDifferError
from trainer.collective.membership import Membership
from trainer.collective.rendezvous import Rendezvous
from trainer.collective.wire import new_token

TOKEN = new_token()


def join(rendezvous, rank, size=2, token=TOKEN, **options):
    return Membership(rendezvous.address, token, rank, size, **options)


@contextlib.contextmanager
def members(size=2, patience_s=10.0, **options):
    with Rendezvous(size, TOKEN, **options) as rendezvous, ThreadPoolExecutor(size) as pool:
        joined = list(
            pool.map(lambda r: join(rendezvous, r, size, patience_s=patience_s), range(size))
        )
        yield rendezvous, joined, pool
        for member in joined:
            member.leave()


def test_what_is_gathered_comes_in_the_order_of_ranks():
    with members(3) as (_, joined, pool):
        results = list(pool.map(lambda m: m.gather("topic", {"rank": m.rank}), joined))
    assert results == [[{"rank": 0}, {"rank": 1}, {"rank": 2}]] * 3


def test_a_stranger_without_the_token_cannot_join_and_the_job_goes_on():
    with Rendezvous(1, TOKEN) as rendezvous:
        with pytest.raises(MismatchError, match="does not know this job's token"):
            join(rendezvous, 0, 1, token=new_token())
        assert rendezvous.failure is None
        join(rendezvous, 0, 1).leave()


def test_garbage_on_the_port_does_not_disturb_the_job():
    with Rendezvous(1, TOKEN) as rendezvous:
        for garbage in (b"GET / HTTP/1.0\r\n\r\n", b"[1]\n", b'{"t":"hello"}\n', b"\xff\n"):
            with socket.create_connection(rendezvous.address, timeout=5) as sock:
                sock.sendall(garbage)
                with contextlib.suppress(ConnectionError):
                    while sock.recv(4096):
                        pass
        assert rendezvous.failure is None
        join(rendezvous, 0, 1).leave()


def test_a_rank_that_calls_something_a_rendezvous_is_not_fooled():
    def impostor(listener):
        sock, _ = listener.accept()
        with sock:
            sock.sendall(b'{"t":"challenge","nonce":"00"}\n')
            sock.recv(4096)
            sock.sendall(json.dumps({"t": "welcome", "proof": "00" * 32}).encode() + b"\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=impostor, args=(listener,))
        thread.start()
        with pytest.raises(PeerError, match="does not know this job's token"):
            Membership(listener.getsockname(), TOKEN, 0, 1)
        thread.join()


def test_other_versions_are_refused_with_both_sides_shown():
    with Rendezvous(2, TOKEN) as rendezvous:
        first = join(rendezvous, 0, versions={"numpy": "2.0.0", "python": "3.11.2"})
        with pytest.raises(MismatchError) as caught:
            join(rendezvous, 1, versions={"numpy": "2.1.0", "python": "3.11.2"})
        assert "numpy 2.1.0" in str(caught.value)
        assert "2.0.0" in str(caught.value)
        with pytest.raises(MismatchError, match=r"rank 1 .* was refused"):
            first.gather("topic", 1)
        first.leave()


@pytest.mark.parametrize(("rank", "size"), [(0, 2), (1, 3), (5, 2)])
def test_a_rank_that_does_not_fit_the_job_is_refused(rank, size):
    with Rendezvous(2, TOKEN) as rendezvous:
        first = join(rendezvous, 0)
        with pytest.raises(MismatchError, match=r"refused"):
            join(rendezvous, rank, size)
        first.leave()


def test_a_rank_that_does_not_join_is_named():
    with Rendezvous(2, TOKEN, join_within_s=0.3) as rendezvous:
        first = join(rendezvous, 0)
        with pytest.raises(LostPeerError, match="rank 1 has not joined"):
            first.gather("topic", 1)
        first.leave()


def test_a_lost_rank_is_named_on_all_others_with_host_pid_place_and_cause():
    with members(3) as (_, joined, pool):
        joined[2].enter(7, "step 12, bucket 3")
        joined[2]._beat()
        time.sleep(0.2)
        joined[2]._sock.shutdown(socket.SHUT_RDWR)
        for member in joined[:2]:
            with pytest.raises(LostPeerError) as caught:
                pool.submit(member.gather, "never", 0).result()
            failure = caught.value.failure
            assert (failure.culprit.rank, failure.culprit.host) == (2, joined[2].host)
            assert failure.culprit.pid > 0
            assert failure.at == "step 12, bucket 3"
            assert "connection closed" in failure.cause


def test_a_rank_that_raised_is_named_with_its_error():
    with members(2) as (rendezvous, joined, _):
        joined[1].fail(ValueError("no such column"))
        with pytest.raises(LostPeerError, match=r"rank 1 .*ValueError: no such column"):
            joined[0].gather("never", 0)
        assert rendezvous.reports[1] == "ValueError: no such column"


def test_differing_weights_are_the_same_error_on_every_rank():
    with members(2) as (_, joined, _pool):
        joined[1].fail(WeightsDifferError("step 5: the weights of rank 1 differ"))
        with pytest.raises(WeightsDifferError, match="step 5"):
            joined[0].gather("never", 0)


def test_a_silent_rank_is_named_unless_it_has_announced_its_silence():
    with members(2, silent_after_s=1.0) as (rendezvous, joined, _):
        with joined[1].silence(60):
            joined[1]._left = True  # its thread stops beating, its connection stays
            joined[1]._thread.join()
            time.sleep(1.5)
            assert rendezvous.failure is None
        with pytest.raises(LostPeerError, match=r"rank 1 .*silent"):
            joined[0].gather("never", 0)
        joined[1]._left = False


def test_a_rank_that_never_comes_is_told_from_the_one_that_waits_for_it():
    # Rank 0 waits for rank 2, which waits for rank 1, which computes for ever:
    # it is rank 1 that is named, though rank 0 never hears from it directly.
    with group(3, "shm") as ranks:

        def work(c):
            # The first may wait for kernels that are being compiled.
            c.allreduce(np.zeros(4, np.float32))
            c.membership.patience_s = 1.0
            if c.rank == 1:
                return None
            with pytest.raises(LostPeerError) as caught:
                c.allreduce(np.zeros(4, np.float32), doing="step 2, bucket 0")
            return caught.value.failure

        zero, _, two = ranks(work)
    assert zero.culprit.rank == two.culprit.rank == 1
    assert zero.cause == "did not come"
    assert zero.seconds >= 1.0


def test_a_slow_rank_is_reported_and_the_job_goes_on():
    slow = []
    with group(2, "shm", slow_after_s=0.5, on_slow=slow.append) as ranks:

        def work(c):
            c.allreduce(np.zeros(4, np.float32), doing="step 1")
            if c.rank == 1:
                time.sleep(2.0)
            return c.allreduce(np.ones(4, np.float32), doing="step 2")

        assert all((part == 2).all() for part in ranks(work))
    assert [report.who.rank for report in slow] == [1]
    assert slow[0].seconds >= 0.5
    assert slow[0].doing == "step 1"


def test_a_rank_notices_that_its_launcher_is_gone():
    with Rendezvous(2, TOKEN) as rendezvous:
        first = join(rendezvous, 0)
    with pytest.raises(LostPeerError, match="launcher of the job is gone"):
        first.gather("topic", 1)
    first.leave()
