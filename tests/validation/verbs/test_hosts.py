"""The verbs probe end to end over real SSH, with a program that stands in for the device."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from fabric.errors import DevicesError
from fabric.topology import ClosShape
from tests.validation.fake import FakeFabric
from tests.validation.perftest.formats import TITLES
from tests.validation.perftest.hosts import SECONDS, running_hosts
from validation.probes.hosts.options import Options
from validation.run import run_suites
from validation.suites import SUITES

# One machine's ports and processes stand for those of all hosts.
pytestmark = pytest.mark.xdist_group("hosts-of-tests")

STAND_IN = Path(__file__).with_name("stand_in.py")


def give_pyverbs(hosts, said="loaded"):
    """A python3 on all hosts that has pyverbs, or says why it does not load."""
    real = os.path.realpath(sys.executable)
    python = hosts.folder / "bin" / "python3"
    python.unlink()
    python.write_text(
        "#!/bin/sh\n"
        'case "$1 $2" in\n'
        f'    "-c "*pyverbs*) echo "{said}"; exit ;;\n'
        f"    */verbs.py*) exec {real} -S {STAND_IN} " + '"$@" ;;\n'
        "esac\n"
        f'exec {real} "$@"\n'
    )
    python.chmod(0o755)


def take_perftest(hosts):
    for program in TITLES:
        (hosts.folder / "bin" / program).unlink()


@pytest.fixture
def pair(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch, shape=ClosShape(2, 1, 0)) as made:
        give_pyverbs(made)
        yield made


def ready(hosts, probe=""):
    made = hosts.probe(Options(probe=probe, seconds=SECONDS))
    made.prepare()
    return made


def first_step(hosts, suite):
    return SUITES[suite].plan(hosts.site).steps[0]


def test_it_is_used_and_named_where_perftest_is_not_installed(pair):
    take_perftest(pair)
    probe = ready(pair)
    assert probe.name == "verbs"
    assert "host1, host2 without perftest, all with pyverbs" in probe.versions["probe"]
    assert probe.versions["verbs"] == "pyverbs of unknown release"
    for suite in ("preflight", "latency", "bandwidth"):
        step = first_step(pair, suite)
        measure = probe.run(step)
        assert measure.lost == {}
        assert [(flow.source, flow.target) for flow in measure.flows] == list(step.pairs())
        assert all("verbs.py" in t.command[1] for t in measure.transcripts)
        if suite == "latency":
            assert len(measure.flows[0].latency_us) == 5000
            assert np.median(measure.flows[0].latency_us) == pytest.approx(2.8)
            assert len(measure.transcripts[1].stdout) < 1000
        if suite == "bandwidth":
            assert {flow.goodput_bps for flow in measure.flows} == {23.5e9}
    assert pair.left() == ([], [])


def test_perftest_is_preferred_and_each_can_be_asked_for(pair):
    assert ready(pair).name == "perftest"
    asked = ready(pair, "verbs")
    assert asked.name == "verbs"
    assert asked.versions["probe"] == "verbs: asked for"
    assert ready(pair, "perftest").run(first_step(pair, "preflight")).lost == {}


def test_an_incast_meets_at_one_receiver(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch) as hosts:
        give_pyverbs(hosts)
        step = SUITES["incast"].plan(hosts.site).steps[-1]
        measure = ready(hosts, "verbs").run(step)
        assert measure.lost == {}
        assert len(measure.flows) == 3
        assert sum(flow.goodput_bps for flow in measure.flows) == pytest.approx(23.5e9)
        starts = re.findall(r"left=\$\(\((\d+) -", " ".join(hosts.commands))
        assert max(map(int, starts)) - min(map(int, starts)) < 1e9
        assert hosts.left() == ([], [])


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no-device", r"host2 mlx5_0 says 'verbs: IB device mlx5_0 not found.*check `rdma link`"),
        ("mtu", r"verbs_write_bw: it ran with mtu 1024, not with 4096"),
    ],
)
def test_a_fault_is_named_with_what_to_do(pair, fault, why):
    pair.settings["faults"] = {"host2": fault}
    measure = ready(pair, "verbs").run(first_step(pair, "bandwidth"))
    assert any(re.search(why, reason) for reason in measure.lost.values()), measure.lost
    assert pair.left() == ([], [])


def test_hosts_with_neither_are_told_of_both(pair):
    take_perftest(pair)
    give_pyverbs(pair, "ModuleNotFoundError: No module named 'pyverbs'")
    with pytest.raises(DevicesError, match="ib_send_lat, ib_write_bw not found: install") as caught:
        ready(pair)
    assert "or python3-pyverbs" in str(caught.value)
    with pytest.raises(DevicesError, match="No module named 'pyverbs'"):
        ready(pair, "verbs")


def test_a_run_says_which_probe_measured(pair):
    take_perftest(pair)
    fabric, said = FakeFabric(pair.site), []
    done = run_suites(
        pair.site,
        ["preflight"],
        lambda progress: said.append(progress.text),
        readers=fabric.readers(),
        probe=lambda site, states: pair.probe(Options(seconds=SECONDS)),
    )
    assert done.probe == "verbs"
    assert any("measuring with verbs: host1, host2 without perftest" in text for text in said)
