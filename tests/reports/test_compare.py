"""A run beside an earlier one: by how much, what changed, and what is not comparable."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fabric.errors import InputError
from fabric.qos import DeviceQos
from paisoar.cli import app
from reports.content.compare import compare
from reports.content.gather import gather
from reports.page.render import render_page
from tests.reports.conftest import SLOW
from tests.sites import write_site
from validation.certificates.fingerprint import fingerprint
from validation.files import write_whole
from validation.results.frames import checks_frame
from validation.results.states import STATES_FILE, states_bytes, states_from_bytes
from validation.results.store import Store


def report(site, *options):
    result = CliRunner().invoke(app, ["report", "-f", str(site.path), *options, "--json"])
    return result.exit_code, json.loads(result.stdout)


def row(frame, **where):
    for name, value in where.items():
        frame = frame[frame[name] == value]
    (found,) = frame.to_dict("records")
    return found


def changed(run, **checks):
    """The run with other values in the checks of these ids (dots as underscores)."""
    wanted = {name.replace("_", ".", 1): value for name, value in checks.items()}
    suites = tuple(
        replace(
            suite,
            checks=tuple(
                replace(check, value=wanted[check.id]) if check.id in wanted else check
                for check in suite.checks
            ),
        )
        for suite in run.suites
    )
    return replace(run, suites=suites)


def test_the_slow_pair_is_worse_by_as_much_as_was_measured(runs):
    found = compare(*runs)
    values = [
        checks_frame(run).query("suite == 'bandwidth' and check == 'fraction'")["value"].min()
        for run in runs
    ]
    slowest = row(found.measures, measure="Slowest pair, of the wire")
    assert slowest["trend"] == "worse"
    assert slowest["before"] == f"{100 * values[0]:g} %"
    assert slowest["now"] == f"{100 * values[1]:g} %"
    assert slowest["change"] == f"{100 * (values[1] / values[0] - 1):+.1f} %"
    assert row(found.measures, measure="Median pair")["trend"] == "alike"
    moved = row(found.movers, suite="bandwidth", check="fraction")
    assert moved["subject"] == " -> ".join(SLOW)
    judged = row(found.verdicts, suite="bandwidth", check="fraction")
    assert (judged["before"], judged["now"]) == ("PASS", "FAIL")
    assert (found.verdict, found.worse > 0) == ("PASSED", True)


def test_the_other_way_round_it_is_better(runs):
    sound, slow = runs
    later = replace(sound, id="v-later", started_at=slow.started_at.replace(year=2100))
    found = compare(slow, later)
    assert row(found.measures, measure="Slowest pair, of the wire")["trend"] == "better"


def test_less_latency_is_better_and_more_loss_is_worse(runs):
    sound, _ = runs
    later = changed(
        replace(sound, id="v-2", started_at=sound.started_at.replace(year=2100)), latency_p99=1.5
    )
    found = compare(sound, later)
    assert row(found.measures, measure="Slowest answer (99th)")["trend"] == "better"
    found = compare(sound, changed(later, incast_loss=5.0))
    lost = row(found.measures, measure="Packets wrongly lost")
    assert (lost["before"], lost["trend"]) == ("0", "worse")


def test_loss_at_a_port_counts_although_the_earlier_run_named_its_device_only(runs):
    sound, _ = runs
    later = replace(sound, id="v-2", started_at=sound.started_at.replace(year=2100))
    suites = []
    for suite in later.suites:
        checks = [
            replace(check, subject="leaf1 Ethernet1/1", verdict="FAIL", value=1668.0, reason="lost")
            if (check.id, check.subject) == ("incast.loss", "leaf1")
            else check
            for check in suite.checks
        ]
        suites.append(replace(suite, checks=tuple(checks)))
    found = compare(sound, replace(later, suites=tuple(suites)))
    lost = row(found.measures, measure="Packets wrongly lost")
    assert (lost["before"], lost["now"], lost["trend"]) == ("0", "1,668", "worse")
    judged = row(found.verdicts, subject="leaf1 Ethernet1/1")
    assert (judged["before"], judged["now"]) == ("no such check", "FAIL")


def test_a_suite_of_one_run_only_is_said_and_not_compared(runs):
    found = compare(*runs)
    assert "Suite soak: only the earlier run has it." in found.incomparable
    assert not any("cycle" in name for name in found.measures["measure"])


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [("evidence_class", "hardware", "two classes"), ("probe", "perftest", "perftest measured")],
)
def test_what_was_measured_otherwise_is_not_compared_at_all(runs, field, value, says):
    earlier, now = runs
    found = compare(replace(earlier, **{field: value}), now)
    assert found.measures.empty
    assert found.movers.empty
    assert found.volumes.empty
    assert says in found.incomparable[0]
    # What was judged otherwise is still said.
    assert not found.verdicts.empty


def test_an_unfinished_suite_is_not_compared(runs):
    earlier, now = runs
    suites = tuple(
        replace(suite, status="partial") if suite.name == "latency" else suite
        for suite in earlier.suites
    )
    found = compare(replace(earlier, suites=suites), now)
    assert "Slowest answer (99th)" not in set(found.measures["measure"])
    said = "Suite latency: it did not end in the earlier run (partial)."
    assert said in found.incomparable


def test_what_changed_in_the_fabric_names_device_port_and_field(twice, runs):
    earlier, now = runs
    states = states_from_bytes((now.folder / STATES_FILE).read_bytes())
    leaf: DeviceQos = states["leaf1"]
    ports = tuple(
        replace(port, pfc_priorities=()) if port.name == "Ethernet1/1" else port
        for port in leaf.ports
    )
    states["leaf1"] = replace(leaf, ports=ports)
    write_whole(now.folder / STATES_FILE, states_bytes(states))
    now = replace(now, before=fingerprint(twice, states))
    found = compare(earlier, now)
    assert "leaf1: Ethernet1/1: pfc_priorities: 3 -> none" in found.fabric
    (now.folder / STATES_FILE).unlink()
    assert compare(earlier, now).fabric == ("These devices are not what they were: leaf1.",)


def test_the_same_fabric_limits_and_releases_are_no_change(runs):
    earlier, now = runs
    assert compare(earlier, now).fabric == ()
    criteria = {**now.criteria, "min_incast_jain": 0.5}
    found = compare(earlier, replace(now, criteria=criteria, versions={"numpy": "0"}))
    assert "Limit min_incast_jain: 0.9 then, 0.5 now" in found.fabric
    assert f"numpy: release {earlier.versions['numpy']} then, 0 now" in found.fabric


def test_counters_are_compared_where_the_same_was_sent(runs):
    found = compare(*runs)
    assert {"incast", "mixed"} <= set(found.volumes["suite"])
    earlier, now = runs
    suites = tuple(
        replace(suite, expected={**suite.expected, "steps": 1}) if suite.name == "incast" else suite
        for suite in earlier.suites
    )
    found = compare(replace(earlier, suites=suites), now)
    assert "incast" not in set(found.volumes["suite"])
    assert any(line.startswith("Suite incast: it had other steps") for line in found.incomparable)


def test_a_run_is_not_compared_with_itself_or_a_later_one(runs):
    earlier, now = runs
    with pytest.raises(InputError, match="with itself"):
        compare(now, now)
    with pytest.raises(InputError, match="is later than") as told:
        compare(now, earlier)
    assert told.value.advice.endswith(f"--run {now.id} --against {earlier.id}")


def test_a_run_of_another_site_is_refused(runs):
    earlier, now = runs
    with pytest.raises(InputError, match="of site elsewhere, not of test"):
        compare(replace(earlier, site="elsewhere"), now)


def test_the_page_puts_the_comparison_after_the_verdict(twice, runs):
    earlier, now = runs
    page = render_page(gather(twice, now, earlier))
    assert page.index('id="top"') < page.index('id="compared"') < page.index('id="wrong"')
    assert f"Compared with {earlier.id}" in page
    assert "<tr class='worse'>" in page
    assert 'id="compared"' not in render_page(gather(twice, now))


def test_the_command_says_what_is_worse(twice, runs):
    earlier, _ = runs
    code, said = report(twice, "--against", earlier.id)
    assert code == 0
    assert said["against"]["run"] == earlier.id
    assert said["against"]["worse"] > 0
    assert (twice.state_dir / "report" / "tables" / "compared_measures.csv").exists()


def test_the_last_is_the_newest_complete_run_before(twice, runs):
    earlier, now = runs
    code, said = report(twice, "--against", "last")
    assert (code, said["run"], said["against"]["run"]) == (0, now.id, earlier.id)
    code, said = report(twice, "--run", earlier.id, "--against", "last")
    assert code == 2
    assert f"no complete run before {earlier.id}" in said["error"]["message"]


def test_a_run_that_did_not_end_is_not_the_last(twice, runs):
    earlier, now = runs
    with Store(twice) as store:
        store.save(replace(earlier, status="interrupted"))
    code, said = report(twice, "--against", "last")
    assert code == 2
    assert f"no complete run before {now.id}" in said["error"]["message"]


def test_a_missing_run_and_one_of_another_site_are_bad_input(twice, runs, tmp_path):
    code, said = report(twice, "--against", "val-nosuch")
    assert code == 2
    assert "site test has no validation run 'val-nosuch'" in said["error"]["message"]
    assert runs[0].id in said["error"]["advice"]
    (tmp_path / "other").mkdir()
    other = write_site(tmp_path / "other")
    result = CliRunner().invoke(app, ["report", "-f", str(other), "--against", runs[0].id])
    assert result.exit_code == 2


def test_an_altered_earlier_run_is_not_believed(twice, runs):
    earlier, _ = runs
    (earlier.folder / "bandwidth.flows.parquet").write_bytes(b"better ones")
    code, said = report(twice, "--against", earlier.id)
    assert code == 1
    assert f"no report on run {earlier.id}" in said["error"]["message"]
