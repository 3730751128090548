"""What people read after a run: what a certificate still asks for, and what it saw."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fabric.topology import ClosShape
from paisoar.cli import app
from paisoar.commands.certify import _covered
from paisoar.commands.validate import show_run
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from tests.validation.judgement.test_judgement import run, site_with
from validation.results import frames


def shown(made, site):
    out = io.StringIO()
    show_run(Console(file=out, width=200), made, site)
    return out.getvalue()


def words_of(answer):
    """What was printed, however narrow the terminal that is not there."""
    return " ".join(re.sub("[│┃]", " ", answer.stdout).split())


def test_after_extra_suites_alone_it_says_what_a_certificate_lacks(fabric):
    said = shown(run(fabric, "collective", "preflight"), fabric.site)
    assert "A certificate also asks for latency, bandwidth, incast, all in one run" in said
    assert "paisoar certify" not in said
    assert "paisoar validate" in said.partition("Next:")[2]


def test_after_all_that_is_asked_for_it_names_certify(tmp_path, fabric, measured):
    assert "Next: paisoar certify" in shown(measured, fabric.site)
    more = FakeFabric(site_with(tmp_path, extra_suites="[collective]"))
    assert "also asks for collective" in shown(measured, more.site)


def test_a_certificate_shows_what_each_suite_saw(site, signed):
    answer = CliRunner().invoke(app, ["certificate", "show", "-f", str(site.path)])
    assert answer.exit_code == 0
    assert "6 of 6 pairs" in answer.stdout
    expected = {c.suite: c.expected for c in signed.predicate.coverage if c.what == "counters"}
    assert set(expected) == {"preflight", "latency", "bandwidth", "incast"}
    for count in expected.values():
        assert f"{count} of {count} counters" in words_of(answer)


def test_a_certificate_of_before_counters_were_counted_is_shown_and_says_so(signed):
    old = tuple(entry for entry in signed.predicate.coverage if entry.what != "counters")
    said = _covered(
        replace(signed, predicate=signed.predicate.model_copy(update={"coverage": old}))
    )
    assert said["latency"] == "6 of 6 pairs"
    assert said["counters"].startswith("not stated")


@pytest.mark.parametrize("words", [["--repeat", "0"], ["--resume", "--repeat", "3"]])
def test_repetitions_that_make_no_sense_are_refused(site, words):
    answer = CliRunner().invoke(app, ["validate", "-f", str(site.path), *words])
    assert answer.exit_code == 2


def test_a_dry_run_shows_repetitions(site):
    words = ["validate", "bandwidth", "--dry-run", "--repeat", "3", "-f", str(site.path)]
    assert "3 repetitions" in words_of(CliRunner().invoke(app, words))


def test_links_that_carried_traffic_are_shown_with_their_share(tmp_path):
    """All of it takes the first of two spines, as if hashes chose alike."""
    polarised = FakeFabric(make_site(tmp_path, ClosShape(4, 2, 2)))
    made = run(polarised, "bandwidth")
    ways = frames.uplinks_frame(polarised.site, made).set_index(["device", "port"])
    assert ways.loc[("leaf1", "Ethernet1/49"), ["share", "carried"]].tolist() == [1.0, True]
    assert ways.loc[("leaf1", "Ethernet1/50"), ["packets", "carried"]].tolist() == [0, False]
    assert ways.loc[("leaf1", "Ethernet1/50"), "peer"] == "spine2"
    assert int(ways["carried"].sum()) == made.suite("bandwidth").seen["uplinks"] == 4
    said = shown(made, polarised.site)
    assert "4 of 8 ways between switches carried traffic, from 0% of what" in " ".join(said.split())
    assert "idle: Ethernet1/50" in " ".join(said.split())
