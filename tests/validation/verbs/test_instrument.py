"""The verbs instrument: what it asks of hosts, what it runs there, what it believes."""

import json
import subprocess
from dataclasses import replace

import pytest

from fabric.errors import InputError
from fabric.topology import ClosShape, PortRef
from tests.sites import make_site
from validation.probes.hosts.ends import planned_commands
from validation.probes.hosts.facts import HostFacts
from validation.probes.hosts.instrument import Expected, ReportError
from validation.probes.hosts.instruments import choose
from validation.probes.hosts.options import Options
from validation.probes.hosts.pairtest import End, PairTest
from validation.probes.hosts.probe import HostsProbe
from validation.probes.hosts.scripts import Job, clean, launch
from validation.probes.verbs.instrument import VERBS
from validation.probes.verbs.program import arguments
from validation.suites import SUITES
from validation.traffic import Stream

A, B = PortRef("host1", "ens1f0"), PortRef("host2", "ens1f0")
OPTIONS = Options(probe="verbs", latency="write")
EXPECTED = Expected("mlx5_0", 4096, 3, "10.0.0.1", "10.0.0.2", 25_000_000_000, elapsed_s=9.0)


def pair(kind="ping", *, iterations=None, seconds=None, options=OPTIONS):
    size = 64 if kind == "ping" else 65536
    stream = Stream(((A, B),), message_bytes=size, kind=kind, qps=1 if kind == "ping" else 4)
    return PairTest("0", A, B, stream, options.tool(kind), iterations, seconds)


def report(kind="ping", **changes):
    found = {
        "verb": "write",
        "kind": kind,
        "device": "mlx5_0",
        "gid_index": 3,
        "local_gid": "0000:0000:0000:0000:0000:ffff:0a00:0001",
        "remote_gid": "0000:0000:0000:0000:0000:ffff:0a00:0002",
        "mtu": 4096,
        "bytes": 64 if kind == "ping" else 65536,
        "qps": 1 if kind == "ping" else 4,
        "completed": 4,
    }
    if kind == "ping":
        found["samples_us"] = [2.0, 3.0, 4.0, 2.5]
    else:
        found |= {"goodput_bps": 23.5e9, "window_s": 4.0}
    return "Waiting for client\n" + json.dumps(found | changes) + "\n"


def figures(kind="ping", *, options=OPTIONS, **changes):
    test = pair(kind, iterations=4 if kind == "ping" else 1, options=options)
    return VERBS.figures(test, report(kind, **changes), EXPECTED, "")


def test_latency_is_every_sample_and_a_read_half_of_its():
    assert figures().latency_us.tolist() == [2.0, 3.0, 4.0, 2.5]
    reads = replace(OPTIONS, latency="read")
    assert figures(options=reads, verb="read").latency_us.tolist() == [1.0, 1.5, 2.0, 1.25]


def test_goodput_is_what_the_report_says():
    found = figures("stream")
    assert (found.goodput_bps, found.completed) == (23.5e9, 4)
    assert found.latency_us.size == 0


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("ping", {"device": "mlx5_1"}, "it ran with device mlx5_1, not with mlx5_0"),
        ("ping", {"gid_index": 1}, "gid_index 1, not with 3"),
        ("ping", {"mtu": 1024}, "mtu 1024, not with 4096"),
        ("ping", {"verb": "send"}, "verb send, not with write"),
        ("ping", {"remote_gid": "0000:0000:0000:0000:0000:ffff:0a00:0009"}, "not of 10.0.0.2"),
        ("ping", {"completed": 3}, "3 messages, not 4"),
        ("ping", {"samples_us": [1.0]}, "1 samples of 4"),
        ("ping", {"samples_us": [1.0, 2.0, 0.0, 1.0]}, "a sample of 0 us"),
        ("ping", {"samples_us": [1e7, 1.0, 1.0, 1.0]}, "its clock is wrong"),
        ("ping", {"samples_us": "no"}, "no numbers"),
        ("stream", {"goodput_bps": -1.0}, "a bandwidth of -1"),
        ("stream", {"goodput_bps": 90e9}, "on a wire that carries 24.51"),
        ("stream", {"goodput_bps": float("nan")}, "nan for goodput_bps"),
        ("stream", {"window_s": 40.0}, "its clock is wrong"),
        ("stream", {"completed": 5}, "5 messages, not 4"),
    ],
)
def test_a_report_that_cannot_be_right_is_refused(kind, changes, why):
    with pytest.raises(ReportError, match=why):
        figures(kind, **changes)


@pytest.mark.parametrize("out", ["", "Waiting for client\n", "{broken\n", "[1]\n"])
def test_no_report_is_no_result(out):
    with pytest.raises(ReportError):
        VERBS.figures(pair(iterations=4), out, EXPECTED, "")


def test_the_program_understands_the_words_that_it_is_given():
    end = End("mlx5_0", "3", 106)
    test = pair("stream", seconds=8)
    words = VERBS.words(test, end, OPTIONS, mtu=4096, port=18515, folder="/x", peer="10.0.0.2")
    assert words[:2] == ("python3", "/x/verbs.py")
    asked = arguments(words[2:])
    assert (asked.verb, asked.kind, asked.device, asked.gid_index) == (
        *("write", "stream", "mlx5_0"),
        3,
    )
    assert (asked.seconds, asked.margin, asked.qps, asked.tclass) == (8, 2, 4, 106)
    assert (asked.bytes, asked.mtu, asked.port, asked.peer) == (65536, 4096, 18515, "10.0.0.2")
    test = pair(iterations=5000)
    server = VERBS.words(test, replace(end, tos=None), OPTIONS, mtu=1024, port=1, folder="/x")
    asked = arguments(server[2:])
    assert (asked.count, asked.tclass, asked.peer) == (5000, 0, "")


def test_every_suite_of_real_traffic_can_be_carried(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1), environment="site")
    for name in ("preflight", "latency", "bandwidth", "incast"):
        lines = planned_commands(site, SUITES[name].plan(site), OPTIONS)
        assert lines
        for line in lines:
            arguments(line["command"].replace("GID_INDEX", "3").split()[2:])


def test_rdma_cm_is_perftests_alone():
    with pytest.raises(InputError, match="rdma_cm"):
        Options(probe="verbs", rdma_cm=True)
    with pytest.raises(InputError, match="no probe 'iperf'"):
        Options(probe="iperf")


def test_a_host_without_pyverbs_is_told_what_to_install():
    loads, release = VERBS.questions(OPTIONS)
    here = frozenset({"python3"})
    found = VERBS.installed(OPTIONS, here, {loads: "loaded\n", release: "44.0-2"})
    assert (found.problem, found.release) == ("", "pyverbs 44.0-2")
    missing = VERBS.installed(OPTIONS, here, {loads: "No module named 'pyverbs'\n"})
    assert "No module named 'pyverbs'" in missing.problem
    assert "python3-pyverbs" in missing.problem
    assert "python3 not found" in VERBS.installed(OPTIONS, frozenset(), {}).problem


def facts(**problems):
    return {host: HostFacts(problem=problem) for host, problem in problems.items()}


@pytest.mark.parametrize(
    ("perftest", "verbs", "chosen", "why"),
    [
        (facts(a="", b=""), facts(a="", b=""), "perftest", "every host has perftest"),
        (facts(a="", b="no"), facts(a="", b=""), "verbs", "b without perftest"),
        (facts(a="no", b="no"), facts(a="", b="no"), "perftest", "pyverbs is not on b"),
    ],
)
def test_perftest_is_chosen_where_all_hosts_have_it_else_what_they_have(
    perftest, verbs, chosen, why
):
    name, said = choose({"perftest": perftest, "verbs": verbs})
    assert name == chosen
    assert why in said


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("verbs: IB device mlx5_0 not found, only ['mlx5_1']", "rdma link"),
        ("verbs: Couldn't allocate MR of 4096 bytes: Errno: 12", "locked memory"),
        ("verbs: port 1 is not ACTIVE (state 1)", "ip link"),
        ("verbs: Completion with error: Failed status 12 towards fe80::1", "retransmissions"),
        ("verbs: Failed to modify QP to reach fe80::1: x", "not reachable"),
        ("pyverbs cannot be loaded: No module named 'pyverbs'", "python3-pyverbs"),
        ("verbs: something else", "transcript"),
    ],
)
def test_a_failure_comes_with_advice(line, advice):
    (complaint,) = VERBS.complaints(line)
    assert advice in complaint.advice
    assert complaint.line == line
    (broken,) = VERBS.complaints("verbs: the other end broke off")
    assert complaint.rank < broken.rank


def test_transcripts_keep_percentiles_and_no_samples():
    text = report(percentiles_us={"50": 2.5})
    kept = VERBS.without_samples(text)
    assert '"percentiles_us": {"50": 2.5}' in kept
    assert '"samples_us": []' in kept
    assert "4.0" not in kept


def test_the_program_is_put_whole_into_the_folder_once(tmp_path):
    folder = tmp_path / "step"
    job = Job("client0", ("true",), 5)
    script = launch(str(folder), [job], VERBS.files)
    assert len(script) < 1 << 17  # one word of a shell
    for _ in range(2):
        subprocess.run(["/bin/sh", "-c", script], check=True, timeout=30)
    assert (folder / "verbs.py").read_text() == VERBS.files["verbs.py"]
    subprocess.run(["/bin/sh", "-c", clean(str(folder))], check=True)
    assert not folder.exists()


def test_the_probe_bears_the_instruments_name(tmp_path):
    site = make_site(tmp_path, ClosShape(2, 1, 0), environment="site")
    assert HostsProbe(site, OPTIONS).name == "verbs"
    assert HostsProbe(site).name == "perftest"
    assert HostsProbe(site, Options(rdma_cm=True)).name == "perftest"


def test_bursts_are_paced_by_their_senders(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 1, 0), environment="site")
    lines = planned_commands(site, SUITES["burst"].plan(site), OPTIONS)
    clients = [line["command"].split() for line in lines if "--peer" in line["command"]]
    assert clients
    assert all(float(words[words.index("-r") + 1]) > 0 for words in clients)
    assert not any(" -r " in line["command"] for line in lines if "--peer" not in line["command"])
    # The program takes what it is given.
    first = [word.replace("GID_INDEX", "3") for word in clients[0][2:]]
    assert arguments(first).rate == float(clients[0][clients[0].index("-r") + 1])
