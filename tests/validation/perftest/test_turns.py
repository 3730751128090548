"""Emulated processors whose clock failed perftest: their step is sent once more, in a lab only."""

import pytest

from fabric.lab.starter import lab_yaml
from fabric.site import load_site
from fabric.starter import starter_yaml
from fabric.topology import ClosShape
from validation.probes import commands_for
from validation.probes.hosts import probe as probes
from validation.suites import SUITES
from validation.traffic import StepMeasure

ZERO = "ib_write_bw: it reports a bandwidth of zero"
INF = "ib_send_lat: its report says inf for t_min[usec]"


@pytest.fixture
def turns(monkeypatch):
    """What each turn of a step says of its first pair; which turns were taken."""
    said, taken = [], []

    class Carried:
        def __init__(self, *_):
            pass

        def carry(self, step):
            why = said[len(taken)]
            taken.append(why)
            lost = {next(iter(step.pairs())): why} if why else {}
            return StepMeasure(step=step.id, lost=lost)

    monkeypatch.setattr(probes, "StepRun", Carried)
    return said, taken


def site_of(tmp_path, environment):
    path = tmp_path / "fabric.yaml"
    if environment == "lab":
        path.write_text(lab_yaml(2, ports=(22201, 22202, 22203)))
    else:
        shape = ClosShape(2, 1, 0)
        path.write_text(starter_yaml(shape, site="test", environment=environment))
    return load_site(path)


def test_emulated_processors_are_timed_a_thousand_times(tmp_path):
    counts = []
    for environment in ("lab", "site"):
        site = site_of(tmp_path, environment)
        plan = SUITES["latency"].plan(site)
        words = commands_for(site, plan)[0]["command"].split()
        counts.append(words[words.index("-n") + 1])
    assert counts == ["1000", "5000"]


@pytest.mark.parametrize(
    ("environment", "said", "taken"),
    [
        ("lab", [ZERO, INF, ""], 3),
        ("lab", [ZERO] * 9, 5),
        ("lab", ["host2: no answer", ""], 1),
        ("site", [ZERO, ""], 1),
    ],
)
def test_a_step_without_a_clock_is_sent_once_more(tmp_path, turns, environment, said, taken):
    site = site_of(tmp_path, environment)
    turns[0].extend(said)
    step = SUITES["bandwidth"].plan(site).steps[0]
    measure = probes.HostsProbe(site).run(step)
    assert len(turns[1]) == taken
    # Every turn that did not count is told, and how the last one went stands.
    assert [note.endswith(why) for note, why in zip(measure.notes, said, strict=False)] == (
        [True] * (taken - 1)
    )
    assert list(measure.lost.values()) == [why for why in (said[taken - 1],) if why]
