"""The suites beyond the usual ones on real hosts over SSH, with stand-ins for perftest."""

import re
from dataclasses import replace

import pytest

from fabric.topology import ClosShape
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from tests.validation.perftest.hosts import running_hosts
from validation.judgement.observation import Observation
from validation.probes import commands_for
from validation.probes.hosts.instrument import ReportError
from validation.probes.hosts.tcp import half_trips_us
from validation.run import run_suites
from validation.suites import SUITES

# One machine's ports and processes stand for those of all hosts.
pytestmark = pytest.mark.xdist_group("hosts-of-tests")


def planned(site, suite):
    return commands_for(site, SUITES[suite].plan(site))


def test_bursts_are_paced_by_their_senders(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1), environment="site")
    commands = [line["command"] for line in planned(site, "burst")]
    clients = [c for c in commands if re.search(r" 10\.0\.0\.\d$", c)]
    assert len(clients) * 2 == len(commands)
    assert all("--rate_units p --burst_size 1 --rate_limit_type SW" in c for c in clients)
    assert not any("--rate_limit" in c for c in commands if c not in clients)
    # Two senders of 16 KiB share half of 24.5 Gbit/s.
    (micro,) = {re.search(r"--rate_limit (\d+)", c)[1] for c in clients[:2]}
    assert 2 * int(micro) * 16384 * 8 == pytest.approx(24.51e9 / 2, rel=0.001)


def test_mixed_sends_tcp_in_a_class_of_its_own_beside_rdma(tmp_path):
    site = make_site(tmp_path, ClosShape(4, 2, 1), environment="site")
    commands = [line for line in planned(site, "mixed") if line["step"].startswith("tcp-presses")]
    programs = [line["command"].split()[0] for line in commands]
    assert programs.count("ib_write_bw") == 8  # one pair for each of four receivers
    assert programs.count("iperf3") == 16
    client = next(c["command"] for c in commands if c["command"].startswith("iperf3 -c"))
    assert "-P 4 -S 0 -t 8" in client


@pytest.mark.parametrize("suite", ["burst", "collective", "soak"])
def test_a_suite_runs_on_hosts_and_is_judged(tmp_path, monkeypatch, suite):
    with running_hosts(tmp_path, monkeypatch, shape=ClosShape(3, 1, 0)) as hosts:
        fabric = FakeFabric(hosts.site)
        few = _first_steps(SUITES[suite].plan(hosts.site), 2 if suite != "soak" else 6)
        monkeypatch.setitem(SUITES, suite, _only(SUITES[suite], few))
        made = run_suites(
            hosts.site, [suite], readers=fabric.readers(), probe=hosts.counted(fabric)
        )
        assert {check.verdict for check in made.suites[0].checks} == {"PASS"}, made.failures
        assert made.evidence_class == "hardware"
        assert hosts.left() == ([], [])


def _first_steps(plan, count):
    steps = plan.steps[:count]
    expected = {"steps": len(steps)}
    return replace(plan, steps=steps, expected=expected)


def _only(suite, plan):
    return replace(suite, plan=lambda site: plan)


def test_tcp_ping_pong_is_of_every_answer_and_judged_by_nobody(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch, shape=ClosShape(2, 1, 0)) as hosts:
        probe = hosts.probe()
        probe.prepare()
        rdma, tcp = SUITES["tcp"].plan(hosts.site).steps
        # Loopback stands for the NIC: real sockets need an address that is there.
        port = probe._facts["host2"].ports["ens1f0"]
        here = replace(port, gid=replace(port.gid, address="127.0.0.1"))
        measures = [probe.run(rdma)]
        probe._facts["host2"] = replace(probe._facts["host2"], ports={"ens1f0": here})
        measures.append(probe.run(tcp))
        assert [m.lost for m in measures] == [{}, {}]
        (pair,) = tcp.pairs()
        flow = measures[1].flow(pair, "default")
        assert len(flow.latency_us) == flow.completed == 5000
        assert flow.latency_us.min() > 0
        assert measures[1].flow(pair, "roce") is None
        plan = SUITES["tcp"].plan(hosts.site)
        seen = Observation(hosts.site, plan, tuple(measures), {}, {}, {}, "hardware")
        *answers, said = SUITES["tcp"].judge(seen)
        assert {c.verdict for c in answers} == {"PASS"}
        assert said.verdict == "SKIP"
        assert said.reason.startswith("measured, not judged: TCP takes ")
        assert hosts.left() == ([], [])


def test_samples_that_cannot_be_are_refused():
    for text in ("", "[]", "[1.0, -2]", "nothing", '{"a": 1}'):
        with pytest.raises(ReportError):
            half_trips_us(text)
    assert list(half_trips_us("Waiting\n[1.5, 2.5]")) == [1.5, 2.5]
