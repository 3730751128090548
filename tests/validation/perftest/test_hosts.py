"""Real traffic end to end over real SSH, with programs that stand in for perftest."""

import concurrent.futures
import gzip
import json
import os
import re
import signal
import time
from dataclasses import replace
from subprocess import DEVNULL, Popen, run

import numpy as np
import pytest

from fabric.errors import DevicesError
from fabric.topology import ClosShape
from reports.content.gather import gather
from reports.page.render import render_page
from tests.validation.fake import FakeFabric
from tests.validation.perftest.hosts import SECONDS, running_hosts
from validation.certificates.certify import certify
from validation.judgement.rejudge import disagreements
from validation.probes.hosts import scripts, step
from validation.probes.hosts.options import Options
from validation.probes.hosts.remote import ask
from validation.probes.hosts.step import Pace
from validation.results.result import ValidationRun
from validation.results.store import latest_run, load_run
from validation.run import run_suites
from validation.suites import SUITES
from validation.traffic import Stream

# One machine's ports and processes stand for those of all hosts.
pytestmark = pytest.mark.xdist_group("hosts-of-tests")


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Two hosts only: what goes wrong with one pair needs no more."""
    with running_hosts(tmp_path, monkeypatch, shape=ClosShape(2, 1, 0)) as made:
        yield made


def first_step(hosts, suite):
    return SUITES[suite].plan(hosts.site).steps[0]


def ready(hosts, *arguments, **options):
    probe = hosts.probe(*arguments, **options)
    probe.prepare()
    return probe


def lost(measure):
    return {
        f"{source.device}>{target.device}": why for (source, target), why in measure.lost.items()
    }


def test_a_round_of_bandwidth_both_ways(hosts):
    probe = ready(hosts)
    assert probe.versions["perftest"] == "6.06"
    assert "ib_write_bw" in probe.versions["perftest options"]
    assert probe.evidence_class == "hardware"
    step = first_step(hosts, "bandwidth")
    measure = probe.run(step)
    assert measure.lost == {}
    assert [(flow.source, flow.target) for flow in measure.flows] == list(step.pairs())
    assert {round(flow.goodput_bps / 1e9, 3) for flow in measure.flows} == {23.5}
    assert measure.traffic_us == 40e6
    # Both ends of each pair are kept, word by word: device, GID index, MTU, queue pairs.
    server, client = measure.transcripts[:2]
    assert (server.host, client.host) == ("host4", "host1")
    for words in (server.command, client.command):
        text = " ".join(words)
        assert "-d mlx5_0 -i 1 -x 3 -F" in text
        assert "-m 4096 -s 65536 -q 4 --report_gbits -D 40 -f 10" in text
        assert "--tclass" not in text  # these hosts mark what they send
    assert client.command[-1] == "10.0.0.4"
    assert "BW average[Gb/sec]" in client.stdout
    assert hosts.left() == ([], [])


def test_latency_is_of_every_sample(pair):
    measure = ready(pair).run(first_step(pair, "latency"))
    (flow,) = measure.flows
    assert len(flow.latency_us) == 4999
    assert 2.5 < np.median(flow.latency_us) < 3
    (_, client) = measure.transcripts
    assert "t_typical" in client.stdout
    assert len(client.stdout.splitlines()) < 40  # the samples are not kept twice
    assert measure.traffic_us == pytest.approx(flow.latency_us.sum() * 2)


def test_preflight_sends_exactly_what_is_planned(pair):
    measure = ready(pair).run(first_step(pair, "preflight"))
    assert [flow.completed for flow in measure.flows] == [5000, 5000]
    assert "-s 16384 -q 1 --report_gbits -n 5000" in " ".join(measure.transcripts[0].command)


def test_each_end_marks_where_its_host_does_not(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch, shape=ClosShape(2, 1, 0), family="irdma") as pair:
        marked = ready(pair).run(first_step(pair, "preflight"))
        assert marked.lost == {}
        assert all("--tclass=106" in t.command for t in marked.transcripts)
        by_cm = ready(pair, Options(rdma_cm=True)).run(first_step(pair, "preflight"))
        # rdma_cm's TOS is the host's setting; -T would hide that it is not made.
        assert by_cm.lost == {}
        assert all("-R" in t.command and "-T" not in t.command for t in by_cm.transcripts)


def test_the_verb_can_be_chosen(pair):
    probe = ready(pair, Options(latency="read", bandwidth="send"))
    measure = probe.run(first_step(pair, "latency"))
    assert measure.transcripts[0].command[0] == "ib_read_lat"
    assert np.median(measure.flows[0].latency_us) < 1.6  # half of the round trip
    assert "ib_read_lat, ib_send_bw" in probe.versions["perftest options"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no-device", r"host2 mlx5_0 says '.*not found'.*check `rdma link`"),
        ("modify-qp", r"host2 mlx5_0 says 'Failed to modify QP 274 to RTR'.*`ip neigh`"),
        ("absurd", r"ib_write_bw: it reports .* Gbit/s on a wire that carries 24\.51"),
        ("negative", r"ib_write_bw: its report says -23\.5 for BW"),
        ("gid", r"ib_write_bw: it ran with GID index 1, not with 3"),
    ],
)
def test_a_fault_is_named_with_what_to_do_and_the_rest_goes_on(hosts, fault, why):
    hosts.settings["faults"] = {"host2": fault}
    measure = ready(hosts).run(first_step(hosts, "bandwidth"))
    sound = {(flow.source.device, flow.target.device) for flow in measure.flows}
    assert {("host1", "host4"), ("host4", "host1")} <= sound
    reason = lost(measure)["host3>host2" if fault == "modify-qp" else "host2>host3"]
    assert re.search(why, reason), reason
    assert hosts.left() == ([], [])


def test_noise_about_the_cpu_is_noted_and_no_failure(pair):
    pair.settings["faults"] = {"host1": "noise"}
    measure = ready(pair).run(first_step(pair, "bandwidth"))
    assert measure.lost == {}
    assert any("CPU Frequency is not max" in note for note in measure.notes)


@pytest.mark.slow
def test_a_pair_that_hangs_is_timed_out_and_named(hosts):
    hosts.settings["faults"] = {"host2": "hang"}
    probe = ready(hosts, pace=Pace(setup_s=20.0 - SECONDS, lead_s=0.5))
    measure = probe.run(first_step(hosts, "bandwidth"))
    assert len(measure.flows) == 3
    assert set(lost(measure)) == {"host2>host3"}
    assert "no result in time: it hangs, and was ended" in lost(measure)["host2>host3"]
    assert hosts.left() == ([], [])


def test_hosts_that_answer_late_are_given_more_time_before_they_begin(pair, monkeypatch):
    """As a thousand do, whom one machine asks."""
    begun = []

    def slow(site, commands, **options):
        if "/proc/net/tcp" in next(iter(commands.values()), "") and not begun:
            time.sleep(1.5)
        for command in commands.values():
            begun.extend(
                int(ns) / 1e9 - time.time() for ns in re.findall(r"left=.*?(\d+) -", command)
            )
        return ask(site, commands, **options)

    monkeypatch.setattr(step, "ask", slow)
    measure = ready(pair).run(first_step(pair, "bandwidth"))
    assert measure.lost == {}
    assert len(begun) == 2
    assert min(begun) > 2.9  # beside the 0.4 s that every step has


def test_a_sender_that_did_not_compete_is_no_part_of_an_incast(hosts):
    hosts.settings["faults"] = {"host3": "late"}
    probe = ready(hosts, Options(seconds=16))
    measure = probe.run(SUITES["incast"].plan(hosts.site).steps[-1])
    assert set(lost(measure)) == {"host3>host4"}
    assert "apart from the others" in lost(measure)["host3>host4"]
    assert {flow.source.device for flow in measure.flows} == {"host1", "host2"}
    # One port for each sender of the one receiver.
    servers = [t for t in measure.transcripts if t.host == "host4"]
    assert len({t.command[t.command.index("-p") + 1] for t in servers}) == 3


def test_senders_start_at_one_barrier(hosts):
    ready(hosts).run(SUITES["incast"].plan(hosts.site).steps[-1])
    starts = re.findall(r"left=\$\(\((\d+) -", " ".join(hosts.commands))
    # Three senders on one machine: their clocks differ by what the measuring of them costs.
    assert len(starts) == 3
    assert max(map(int, starts)) - min(map(int, starts)) < 1e9


def test_plain_tcp_beside_rdma(pair):
    step = first_step(pair, "preflight")
    (a, b) = step.streams[0].pairs[0]
    # Loopback stands for the NIC here: only these ends are known.
    tcp = Stream(((a, b),), message_bytes=65536, messages=40, role="default")
    probe = ready(pair)
    port = probe._facts["host2"].ports["ens1f0"]
    here = replace(port, gid=replace(port.gid, address="127.0.0.1"))
    known = dict(probe._facts)
    probe._facts["host2"] = replace(known["host2"], ports={"ens1f0": here})
    measure = probe.run(replace(step, streams=(tcp,)))
    assert measure.lost == {}
    (flow,) = measure.flows
    assert (flow.role, flow.completed) == ("default", 40)
    assert flow.goodput_bps > 1e6
    assert measure.transcripts[0].command[0] == "python3"
    probe._facts["host2"] = replace(known["host2"], programs=frozenset())
    measure = probe.run(replace(step, streams=(tcp, *step.streams)))
    assert "neither iperf3 nor python3" in lost(measure)["host1>host2"]
    # RDMA between the same two goes on.
    assert [flow.role for flow in measure.flows] == ["roce", "roce"]


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("ports/1/gid_attrs/types/3", "IB/RoCE v1", r"no RoCE v2 entry of ens1f0 is 10\.0\.0\.2"),
        ("ports/1/gid_attrs/ndevs/3", "ens9f9", r"no RoCE v2 entry of ens1f0 is 10\.0\.0\.2"),
        ("ports/1/state", "1: DOWN", "the port of mlx5_0 is DOWN, not ACTIVE"),
        ("ports/1/link_layer", "InfiniBand", "link layer of mlx5_0 is InfiniBand"),
    ],
)
def test_a_port_that_cannot_be_used_is_named_before_any_traffic(pair, path, text, why):
    pair.put("host2", path, text)
    measure = ready(pair).run(first_step(pair, "preflight"))
    assert measure.flows == ()
    assert all(re.search(f"host2: .*{why}", reason) for reason in measure.lost.values())
    assert measure.transcripts == ()


def test_hosts_without_perftest_are_named_all_at_once_and_the_run_is_marked(pair):
    for program in ("ib_send_lat", "ib_write_bw"):
        (pair.folder / "bin" / program).unlink()
    fabric = FakeFabric(pair.site)
    with pytest.raises(DevicesError, match=r"host1: ib_send_lat, ib_write_bw not found: install"):
        run_suites(pair.site, ["preflight"], readers=fabric.readers(), probe=pair.counted(fabric))
    assert latest_run(pair.site).status == "partial"
    assert latest_run(pair.site).suite("preflight").status == "not-run"


def test_ctrl_c_leaves_nothing_on_any_host(hosts, monkeypatch):
    hosts.settings["faults"] = {"host1": "hang", "host2": "hang"}

    def interrupted(_moment):
        running, _ = hosts.left()
        assert any("ib_write_bw" in words for words in running)
        raise KeyboardInterrupt

    monkeypatch.setattr("validation.probes.hosts.step._sleep_until", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ready(hosts).run(first_step(hosts, "bandwidth"))
    assert hosts.left() == ([], [])


def test_ctrl_c_while_programs_are_being_started_leaves_none_behind(pair, monkeypatch):
    pair.slow_start_s = 0.5
    real, calls = concurrent.futures.wait, []

    def interrupted(waiting, timeout=None):
        calls.append(timeout)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(waiting, timeout)

    monkeypatch.setattr(concurrent.futures, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ready(pair).run(first_step(pair, "bandwidth"))
    time.sleep(0.7)
    assert pair.left() == ([], [])


def test_a_program_of_another_with_our_old_number_is_left_alone(pair, tmp_path):
    folder = tmp_path / "step"
    folder.mkdir()
    other = Popen(["sleep", "30"], stdin=DEVNULL, start_new_session=True)
    try:
        (folder / "client0.pid").write_text(f"{other.pid}\n")
        run(["/bin/sh", "-c", scripts.clean(str(folder))], check=True)
        assert other.poll() is None
        assert not folder.exists()
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()


def test_a_host_that_goes_away_takes_only_its_own_pairs_along(hosts):
    probe = ready(hosts)
    port = hosts.site.host("host2").mgmt.port
    assert port
    hosts.servers.kill("host2")
    measure = probe.run(first_step(hosts, "bandwidth"))
    assert {flow.source.device for flow in measure.flows} == {"host1", "host4"}
    assert all("host2: log in over SSH" in why for why in measure.lost.values())


@pytest.mark.slow
def test_all_suites_and_a_certificate_of_the_class_of_the_hosts(hosts):
    fabric = FakeFabric(hosts.site)
    done = run_suites(hosts.site, readers=fabric.readers(), probe=hosts.counted(fabric))
    assert [c for c in done.all_checks if c.verdict not in ("PASS", "SKIP")] == []
    assert (done.status, done.verdict, done.probe) == ("complete", "PASS", "perftest")
    assert done.evidence_class == "hardware"
    assert {check.evidence_class for check in done.all_checks} == {"hardware"}
    assert done.versions["perftest"] == "6.06"
    assert load_run(hosts.site, done.id) == done
    assert disagreements(hosts.site, done) == []
    kept = (done.folder / "incast.transcripts.json.gz").read_bytes()
    said = json.loads(gzip.decompress(kept))
    assert {line["exit_status"] for line in said} == {"0"}
    certificate = certify(hosts.site, done, reader=fabric.read_states)
    assert certificate.evidence_class == "hardware"
    assert certificate.predicate.run.probe == "perftest"
    assert certificate.predicate.run.versions["perftest"] == "6.06"
    page = render_page(gather(hosts.site, done))
    assert "The certificate holds" in page
    assert "hardware" in page
    assert "simulated" not in page


@pytest.mark.parametrize("how", ["family", "sysfs", "lab"])
def test_software_verbs_are_never_called_hardware(tmp_path, monkeypatch, how):
    environment = "lab" if how == "lab" else "site"
    family = "rxe" if how == "family" else "mlx5"
    shape = ClosShape(2, 1, 0)
    with running_hosts(
        tmp_path, monkeypatch, shape=shape, environment=environment, family=family
    ) as pair:
        if how == "sysfs":
            pair.put("host2", "parent", "ens1f0")
        fabric = FakeFabric(pair.site)
        made = pair.counted(fabric)
        done = run_suites(pair.site, ["preflight"], readers=fabric.readers(), probe=made)
    assert isinstance(done, ValidationRun)
    assert done.evidence_class == "soft-roce"
    assert {c.evidence_class for c in done.suite("preflight").checks} == {"soft-roce"}


def test_a_pair_without_a_result_fails_its_check_with_the_reason(pair):
    pair.settings["faults"] = {"host2": "absurd"}
    fabric = FakeFabric(pair.site)
    made = pair.counted(fabric)
    done = run_suites(pair.site, ["preflight"], readers=fabric.readers(), probe=made)
    (reach,) = [c for c in done.failures if c.id == "preflight.reach"]
    assert reach.subject == "host2:ens1f0 -> host1:ens1f0"
    assert "on a wire that carries" in reach.reason
    assert disagreements(pair.site, done) == []
