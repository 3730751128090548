"""Real traffic end to end over real SSH, with programs that stand in for perftest."""

import pytest

from tests.validation.perftest.hosts import running_hosts
from validation.suites import SUITES


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    with running_hosts(tmp_path, monkeypatch) as made:
        yield made


def first_step(hosts, suite):
    return SUITES[suite].plan(hosts.site).steps[0]


def test_a_round_of_bandwidth(hosts):
    probe = hosts.probe()
    probe.prepare()
    assert probe.versions["perftest"] == "6.06"
    assert probe.evidence_class == "hardware"
    measure = probe.run(first_step(hosts, "bandwidth"))
    assert measure.lost == {}
    assert len(measure.flows) == 4
