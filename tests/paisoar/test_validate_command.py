"""How ``paisoar validate`` ends: 3 where something did not answer, whatever else was found."""

import pytest

from paisoar.commands import validate
from paisoar.console import Ui
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from validation import run as runs


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    """A site whose devices are in memory; the command is the real one."""
    made = FakeFabric(make_site(tmp_path))
    real = runs.run_suites

    def over_it(site, suites, tell, **_):
        return real(site, suites, tell, readers=made.readers(), probe=made.probe)

    monkeypatch.setattr(runs, "run_suites", over_it)
    monkeypatch.setattr(validate, "check_twin_is_up", lambda site: None)
    return made


def ended(fabric):
    answer = validate._validate(Ui(as_json=True), fabric.site.path, ["preflight", "latency"])
    return 0 if answer.good else answer.exit_code, answer.document


def test_a_sound_fabric(fabric):
    code, document = ended(fabric)
    assert (code, document["status"], document["verdict"]) == (0, "complete", "PASS")


def test_a_judged_failure(fabric):
    fabric.latency_us[fabric.site.topology.endpoints[:2]] = 50.0
    code, document = ended(fabric)
    assert (code, document["status"], document["verdict"]) == (1, "complete", "FAIL")


def test_a_twin_that_is_killed_meanwhile(fabric):
    def die(flows):
        if fabric.steps_carried == 4:
            fabric.dead.update(fabric.site.devices)

    fabric.on_carry = die
    code, document = ended(fabric)
    assert (code, document["status"], document["verdict"]) == (3, "partial", "FAIL")
    assert set(document["unread"]) == set(fabric.site.devices)
