"""The program on hosts, both ends of it, over a stand-in of the device that checks legality."""

import errno
import itertools
import json
import socket
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fake_verbs import CQEX, C, FakeFabric
from validation.probes.verbs import program
from validation.probes.verbs.program import Failed, run

GID = "0000:0000:0000:0000:0000:ffff:0a00:0001"


@pytest.fixture
def fabric(monkeypatch):
    # Threads of this process stand for both ends and their devices: each gets its turn soon.
    monkeypatch.setattr(program, "SPINS", 200)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield FakeFabric(reuse=True)
    sys.setswitchinterval(interval)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def words(verb, kind, port, *more, size=64):
    common = ["-d", "rxe0", "-x", "2", "-m", "4096", "-p", str(port), "-s", str(size)]
    return [verb, kind, *common, *more]


def both(fabric, verb, kind, *more, size=64, client=(), server=()):
    """What the server and the client give, or the error of each."""
    port = free_port()

    def end(own):
        try:
            return run(fabric.verbs(), words(verb, kind, port, *more, *own, size=size))
        except (Failed, SystemExit) as failed:
            return failed

    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(end, own) for own in (server, (*client, "--peer", "127.0.0.1"))]
        return [each.result() for each in ends]


@pytest.mark.parametrize("extended", [True, False])
def test_a_ping_has_a_sample_for_every_message_and_leaves_nothing_open(fabric, extended):
    fabric.extended = extended
    for verb, size in itertools.product(("send", "write", "read"), (1, 64, 2000)):
        nothing, report = both(fabric, verb, "ping", "-n", "130", size=size)
        assert nothing is None
        assert (report["verb"], report["bytes"], report["completed"]) == (verb, size, 130)
        assert len(report["samples_us"]) == 130
        assert min(report["samples_us"]) > 0
        assert report["percentiles_us"]["50"] == statistics.median_low(report["samples_us"])
        assert report["percentiles_us"]["100"] == max(report["samples_us"])
        assert (report["local_gid"], report["remote_gid"], report["mtu"]) == (GID, GID, 4096)
    fabric.check()
    assert fabric.open_objects == fabric.registered_bytes == 0
    # Every 64th is signalled, a read always.
    assert fabric.signalled == 3 * (2 * 2 + 2 * 2 + 130)


def test_a_queue_that_cannot_be_looked_at_ends_the_ping_with_the_reason(fabric, monkeypatch):
    monkeypatch.setattr(CQEX, "start_poll", lambda _queue, _attr: errno.EINVAL)
    ends = both(fabric, "send", "ping", "-n", "5")
    assert any("poll the completion queue: Invalid argument" in str(end) for end in ends), ends
    assert fabric.open_objects == 0


@pytest.mark.parametrize("verb", ["write", "send"])
@pytest.mark.parametrize("count", [5, 200])
def test_a_stream_sends_exactly_what_was_asked_for(fabric, verb, count):
    _, report = both(fabric, verb, "stream", "-n", str(count), "-q", "3", size=512)
    fabric.check()
    assert (report["completed"], report["qps"]) == (3 * count, 3)
    assert fabric.posted == 3 * count
    assert report["goodput_bps"] == pytest.approx(
        3 * count * 512 * 8 / report["window_s"], rel=1e-6
    )
    assert fabric.receiver_not_ready == 0
    assert fabric.open_objects == 0
    assert max(fabric.chains) == (16 if count == 200 else 1)


def test_of_a_stream_for_a_time_only_the_middle_counts(fabric):
    _, report = both(fabric, "write", "stream", "-D", "1.2", "-f", "0.3", size=4096)
    fabric.check()
    assert 0 < report["window_s"] <= 0.6
    in_window = report["goodput_bps"] * report["window_s"] / (4096 * 8)
    assert 1 <= in_window < report["completed"]


@pytest.mark.parametrize("queue_pairs", ["1", "2"])
def test_bursts_are_single_messages_at_the_rate_that_was_asked_for(fabric, queue_pairs):
    more = ("-D", "1.6", "-f", "0.4", "-q", queue_pairs, "-r", "50")
    _, report = both(fabric, "write", "stream", *more, size=4096)
    fabric.check()
    # Nothing is in its way: what is asked for is what comes, whatever could.
    assert report["goodput_bps"] <= 1.1 * 50 * int(queue_pairs) * 4096 * 8
    assert 10 <= report["completed"] <= 82 * int(queue_pairs)
    assert set(fabric.chains) == {1}
    assert fabric.open_objects == 0


def test_bursts_of_a_number_end_with_the_last(fabric):
    _, report = both(fabric, "write", "stream", "-n", "6", "-r", "100", size=512)
    assert report["completed"] == 6
    assert report["window_s"] >= 0.045  # five gaps of 10 ms


def test_a_nic_that_sends_nothing_inline_is_asked_for_nothing_inline(fabric):
    fabric.max_inline = 0
    _, report = both(fabric, "write", "ping", "-n", "20")
    assert report["completed"] == 20
    fabric.check()


@pytest.mark.parametrize(
    ("option", "value"), [("-p", "99999"), ("-s", "0"), ("-q", "0"), ("-n", "0"), ("-x", "-1")]
)
def test_numbers_that_mean_nothing_are_refused_before_anybody_waits(fabric, capsys, option, value):
    given = words("send", "ping", 18515, "-n", "5", option, value)
    with pytest.raises(SystemExit):
        run(fabric.verbs(), given)
    assert f"argument {option}: {value} is not from" in capsys.readouterr().err


def test_the_traffic_class_is_on_both_ends(fabric):
    both(fabric, "write", "ping", "-n", "5", "--tclass=106")
    assert [route.traffic_class for route in fabric.routes] == [106, 106]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"devices": []}, "IB device rxe0 not found, only none"),
        ({"port_state": C.IBV_PORT_DOWN}, "port 1 is not ACTIVE"),
        ({"active_mtu": 3}, "Requested mtu is higher than active mtu: 4096 of 1024"),
        ({"gids": []}, "Failed to get GID 2"),
        ({"memlock_bytes": 100}, "Couldn't allocate MR of 4096 bytes"),
        ({"exhausted": True}, "Couldn't create queue pairs"),
        ({"no_way": True}, "Failed to modify QP to reach 0000:"),
    ],
)
def test_what_an_end_lacks_is_said(fabric, change, said):
    for name, value in change.items():
        setattr(fabric, name, value)
    for failed in both(fabric, "write", "ping", "-n", "5"):
        assert said in str(failed) or "the other end broke off" in str(failed)
    assert fabric.open_objects == 0


def test_a_gid_of_another_kind_is_refused(fabric):
    server, client = both(fabric, "write", "ping", "-n", "5", client=("-x", "0"))
    assert "GID 0: it is not RoCE v2" in str(client)
    assert "broke off" in str(server)


def test_ends_that_run_different_tests_say_so(fabric):
    server, client = both(fabric, "write", "ping", "-n", "5", client=("-s", "128"))
    assert "the other end runs" in str(server)
    assert "the other end runs" in str(client)


TESTS = [("send", "ping"), ("write", "ping"), ("write", "stream")]


@pytest.mark.parametrize(("verb", "kind"), TESTS)
def test_a_cut_ends_both_and_names_what_the_device_said(fabric, monkeypatch, verb, kind):
    whole = fabric.delay

    def delay():
        fabric.cut = fabric.posted > 40
        whole()

    monkeypatch.setattr(fabric, "delay", delay)
    ends = both(fabric, verb, kind, "-n", "100000")
    assert all(isinstance(end, Failed) for end in ends)
    assert "Failed status 12 towards 0000:" in " ".join(map(str, ends))
    assert fabric.open_objects == 0


def test_it_needs_nothing_of_ours_and_says_when_pyverbs_is_missing(tmp_path):
    alone = tmp_path / "verbs.py"
    alone.write_text(Path(program.__file__).read_text())
    done = subprocess.run(
        [sys.executable, "-I", "-S", alone, *words("write", "ping", 1, "-n", "5")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "pyverbs cannot be loaded" in done.stderr
    assert done.stdout == ""


def test_reports_are_json(fabric):
    _, report = both(fabric, "send", "ping", "-n", "5")
    assert json.loads(json.dumps(report)) == report
