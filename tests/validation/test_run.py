"""Runs are kept as they come in, and as what they are."""

from dataclasses import replace

import pandas as pd
import pytest

from fabric.errors import InputError, JudgedBadError, ToolError
from fabric.topology import ClosShape
from tests.sites import make_site
from tests.validation.fake import FakeFabric
from validation.certificates.certify import certify
from validation.certificates.sealed import seal_path
from validation.probes import check_options, probe_for
from validation.probes.hosts.options import Options
from validation.probes.hosts.probe import HostsProbe
from validation.probes.sim import SimProbe
from validation.results import frames
from validation.results.evidence import counter_file
from validation.results.states import states_from_bytes
from validation.results.store import (
    Store,
    altered_evidence,
    file_name,
    latest_run,
    list_runs,
    load_run,
    run_dir,
)
from validation.run import run_suites
from validation.suites import SUITES
from validation.traffic import Stream


def run(fabric, *suites, **options):
    options = {"readers": fabric.readers(), "probe": fabric.probe, **options}
    return run_suites(fabric.site, suites, **options)


def test_a_run_is_read_back_as_it_was(fabric):
    assert latest_run(fabric.site) is None
    made = run(fabric)
    assert load_run(fabric.site, made.id) == made
    assert latest_run(fabric.site) == made
    assert made.status == "complete"
    assert made.before == made.after
    assert made.site_sha256 == fabric.site.sha256
    assert made.versions["paisoar"]
    second = run(fabric, "latency")
    assert [r.id for r in list_runs(fabric.site)] == [made.id, second.id]
    with pytest.raises(InputError, match="no validation run 'val-x'"):
        load_run(fabric.site, "val-x")


def test_evidence_is_kept_hashed_and_alterations_are_seen(fabric):
    made = run(fabric, "incast", "latency")
    folder = run_dir(fabric.site, made.id)
    assert {path.name for path in folder.iterdir()} == {
        "states.json",
        "seal.dsse.json",
        "latency.outline.json",
        "incast.outline.json",
        *(
            f"{suite}.{kind}.parquet"
            for suite in ("latency", "incast")
            for kind in ("flows", "latency", "series", "queues", "counters")
        ),
    }
    assert states_from_bytes((folder / "states.json").read_bytes()) == fabric.states
    kept = {c.evidence_sha256 for c in made.all_checks}
    assert kept <= {sha for suite in made.suites for sha in suite.files.values()}
    assert altered_evidence(made) == ()
    victim = folder / file_name("incast", "counters")
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    (folder / "latency.flows.parquet").unlink()
    assert set(altered_evidence(made)) == {"incast.counters.parquet", "latency.flows.parquet"}


def test_raw_counters_are_kept_on_both_sides_with_what_was_missing(fabric):
    fabric.excuses["leaf1"] = ("rx_pause_us: not shown by this system",)
    fabric.values[("leaf1", "Ethernet1/1", "rx_packets", None)] = 2**63 + 5
    made = run(fabric, "bandwidth")
    raw = pd.read_parquet(made.folder / "bandwidth.counters.parquet")
    rows = raw[(raw["device"] == "leaf1") & (raw["name"] == "rx_packets")]
    rows = rows[rows["port"] == "Ethernet1/1"].set_index("moment")["value"]
    assert rows["before"] == 2**63 + 5
    assert rows["after"] > rows["before"]
    assert set(raw["missing"]) == {"", "rx_pause_us: not shown by this system"}
    snapshots = {"leaf1": fabric.snapshot("leaf1")}
    assert counter_file(snapshots, snapshots) == counter_file(snapshots, snapshots)


def test_a_fabric_that_changes_during_the_run_fails_it_and_says_what_changed(fabric):
    def change(flows):
        state = fabric.states["leaf2"]
        port = replace(state.ports[0], pfc_priorities=())
        fabric.states["leaf2"] = replace(state, ports=(port, *state.ports[1:]))

    fabric.on_carry = change
    made = run(fabric, "latency")
    (check,) = made.checks
    assert (check.id, check.verdict, check.device) == ("run.unchanged", "FAIL", "leaf2")
    assert "leaf2: Ethernet1/1: pfc_priorities: 3 -> none" in check.reason
    assert made.verdict == "FAIL"
    assert made.before != made.after


def test_ctrl_c_keeps_what_there_is_and_marks_it(fabric):
    def stop(flows):
        if fabric.steps_carried == 5:
            raise KeyboardInterrupt

    fabric.on_carry = stop
    with pytest.raises(KeyboardInterrupt):
        run(fabric)
    kept = latest_run(fabric.site)
    assert kept.status == "partial"
    assert [(s.name, s.status) for s in kept.suites] == [
        ("preflight", "complete"),
        ("latency", "partial"),
        ("bandwidth", "not-run"),
        ("incast", "not-run"),
    ]
    assert kept.suite("preflight").verdict == "PASS"
    p99 = [c.verdict for c in kept.suite("latency").checks if c.id == "latency.p99"]
    assert p99 == ["PASS", "PASS", "NOT_RUN", "NOT_RUN", "NOT_RUN", "NOT_RUN"]
    assert kept.suite("latency").seen == {"pairs": 2, "counters": 0}
    assert {c.verdict for c in kept.all_checks} == {"PASS", "NOT_RUN"}
    assert kept.verdict == "NOT_RUN"


def test_ctrl_c_while_counters_are_read_does_not_judge_without_them(fabric):
    reads = []

    def interrupted(site, devices=None):
        reads.append(1)
        if len(reads) == 2:
            raise KeyboardInterrupt
        return fabric.read_counters(site, devices)

    readers = replace(fabric.readers(), counters=interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(fabric, "bandwidth", readers=readers)
    kept = latest_run(fabric.site)
    verdicts = {c.id: c.verdict for c in kept.all_checks}
    assert verdicts["bandwidth.fraction"] == "PASS"
    assert verdicts["bandwidth.loss"] == "NOT_RUN"
    assert "counters" not in kept.suite("bandwidth").files


def test_a_run_that_was_killed_is_not_complete(fabric):
    class Killed(BaseException):
        pass

    def kill(flows):
        raise Killed

    fabric.on_carry = kill
    with pytest.raises(Killed):
        run(fabric)
    assert latest_run(fabric.site).status == "running"
    assert latest_run(fabric.site).verdict == "NOT_RUN"


def test_traffic_that_cannot_start_is_not_run_and_the_rest_goes_on(fabric):
    def refuse(flows):
        if fabric.steps_carried == 2:
            raise ToolError("the simulator did not answer")

    fabric.on_carry = refuse
    made = run(fabric, "bandwidth")
    reasons = {c.reason for c in made.all_checks if c.verdict == "NOT_RUN"}
    assert reasons == {
        "the simulator did not answer",
        "5 of 6 steps were seen: round2: the simulator did not answer",
    }
    seen = dict(made.suite("bandwidth").seen)
    # The bisection has the pairs of the lost round too; the round itself is missing.
    assert (seen["steps"], made.suite("bandwidth").expected["steps"]) == (5, 6)
    assert made.suite("bandwidth").status == "partial"
    assert made.verdict == "NOT_RUN"
    assert made.unread == {"the probe sim": "the simulator did not answer"}
    assert made.status == "partial"


def test_devices_that_die_during_the_run_leave_it_partial_and_unsealed(fabric):
    def die(flows):
        if fabric.steps_carried == 5:
            fabric.dead.update(fabric.site.devices)

    fabric.on_carry = die
    made = run(fabric)
    assert (made.status, made.finished_at is not None) == ("partial", True)
    assert set(made.unread) == set(fabric.site.devices)
    assert "connection refused" in made.unread["leaf1"]
    assert not seal_path(made).exists()
    assert load_run(fabric.site, made.id) == made
    fabric.dead.clear()
    with pytest.raises(
        JudgedBadError, match=r"not complete \(partial\)(.|\n)*leaf1 did not answer"
    ):
        certify(fabric.site, made, reader=fabric.read_states)


def test_a_device_that_misses_one_reading_of_counters_leaves_the_run_partial(fabric):
    reads = []

    def once(site, devices=None):
        reads.append(1)
        fabric.dead = {"host2"} if len(reads) == 2 else set()
        return fabric.read_counters(site, devices)

    made = run(fabric, "preflight", "latency", readers=replace(fabric.readers(), counters=once))
    assert set(made.unread) == {"host2"}
    assert made.status == "partial"
    assert made.verdict == "FAIL"


def test_an_impossible_suite_is_not_run_with_its_reason(tmp_path):
    fabric = FakeFabric(make_site(tmp_path, ClosShape(2, 1, 0)))
    made = run(fabric, "incast")
    assert [(c.id, c.verdict) for c in made.suite("incast").checks] == [("incast.suite", "NOT_RUN")]
    assert "three hosts" in made.suite("incast").checks[0].reason


def test_progress_is_told_step_by_step(fabric):
    told = []
    run(fabric, "latency", on_event=told.append)
    steps = [event for event in told if event.kind == "step"]
    assert [(event.done, event.total) for event in steps] == [(0, 3), (1, 3), (2, 3)]
    assert told[-2].verdict == "PASS"


def test_real_hosts_have_real_traffic_and_a_twin_simulated(tmp_path, site):
    for environment in ("site", "lab"):
        real = make_site(tmp_path, environment=environment)
        assert isinstance(probe_for(real, {}), HostsProbe)
    assert isinstance(probe_for(site, {}), SimProbe)
    with pytest.raises(InputError, match="a twin's traffic is simulated"):
        check_options(site, Options())
    assert not site.state_dir.exists()


def test_a_host_sends_with_the_marking_that_it_holds(site, fabric):
    host = site.topology.endpoints[0]
    pairs = ((host, site.topology.endpoints[1]),)
    sent = []
    fabric.on_carry = sent.extend
    probe = SimProbe(site, fabric.states, fabric.carry)
    step = SUITES["latency"].plan(site).steps[0]
    for role in ("roce", "default"):
        probe.run(replace(step, streams=(Stream(pairs, 64, 1, role=role),)))
    state = fabric.states["host1"]
    bare = replace(state.ports[0], nic=replace(state.ports[0].nic, verbs_traffic_class=None))
    unmarked = {**fabric.states, "host1": replace(state, ports=(bare,))}
    SimProbe(site, unmarked, fabric.carry).run(replace(step, streams=(Stream(pairs, 64, 1),)))
    assert [flow.dscp for flow in sent] == [26, 0, 0]


def test_the_database_may_be_another_one(fabric, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere.sqlite"
    monkeypatch.setenv("PAISOAR_DATABASE_URL", f"sqlite:///{elsewhere}")
    made = run(fabric, "latency")
    assert elsewhere.exists()
    assert not (fabric.site.state_dir / "validation" / "results.sqlite").exists()
    assert load_run(fabric.site, made.id) == made
    monkeypatch.setenv("PAISOAR_DATABASE_URL", "nonsense://")
    with pytest.raises(InputError, match="PAISOAR_DATABASE_URL"):
        Store(fabric.site)


def test_frames_have_what_a_report_draws(site, fabric):
    made = run(fabric)
    checks = frames.checks_frame(made)
    assert {"suite", "check", "subject", "value", "limit", "unit", "verdict", "reason"} <= set(
        checks.columns
    )
    assert set(checks["suite"]) == {"run", "preflight", "latency", "bandwidth", "incast"}
    assert (frames.coverage_frame(made)["expected"] == frames.coverage_frame(made)["run"]).all()
    bandwidth = frames.bandwidth_frame(made)
    assert len(bandwidth) == 12
    assert bandwidth["goodput_gbps"].between(20, 25).all()
    latency = frames.latency_frame(made)
    assert list(latency.columns[:5]) == ["source", "target", "p50_us", "p99_us", "max_us"]
    assert len(latency) == 6
    incast = frames.incast_frame(site, made)
    assert list(incast["senders"]) == [2, 3, 3, 3, 3]
    assert incast["fraction"].to_list() == pytest.approx([0.97] * 5)
    senders = frames.senders_frame(made)
    assert senders["sender"].nunique() == 3
    assert len(senders) == 3 * 80
    assert senders["receiver"].nunique() == 1
    assert senders["receiver"].iloc[0] not in set(senders["sender"])
    assert set(frames.queues_frame(made)["port"]) == {"leaf1:Ethernet1/1"}
    moved = frames.counters_frame(made)
    assert (moved["delta"] != 0).all()
    assert {"device", "port", "priority", "counter", "delta"} <= set(moved.columns)
    assert frames.pauses_frame(made).empty
    for frame in (checks, bandwidth, latency, incast, senders, moved):
        assert set(frame["evidence_class"]) == {"simulated"}


def test_frames_of_suites_that_were_not_run_are_empty_and_have_their_columns(site, fabric):
    made = run(fabric, "preflight")
    assert frames.bandwidth_frame(made).empty
    assert "goodput_gbps" in frames.bandwidth_frame(made)
    assert frames.incast_frame(site, made).empty
    assert frames.senders_frame(made).empty
    assert frames.queues_frame(made).empty
