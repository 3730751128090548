"""``paisoar sim run --level flow`` and ``--clos``."""

import json

import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from tests.sites import write_site

runner = CliRunner()
KEYS = {
    "level",
    "regime",
    "hosts",
    "switches",
    "goodput_gbps",
    "jain",
    "ports",
    "completion_us",
    "solves",
    "simulated_us",
    "wall_s",
    "peak_rss_bytes",
    "notes",
}


def invoke(*arguments, code=0):
    result = runner.invoke(app, ["sim", "run", *(str(argument) for argument in arguments)])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


def document(*arguments, code=0):
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


@pytest.mark.parametrize("scenario", ["incast", "permutation", "ring", "alltoall", "burst"])
def test_a_site_plays_every_scenario_at_the_flow_level(tmp_path, scenario):
    path = write_site(tmp_path)
    said = document("-f", path, "--scenario", scenario, "--level", "flow")
    assert set(said) == KEYS
    assert said["level"] == "flow"
    assert said["hosts"] == 4
    assert said["goodput_gbps"]["sum"] > 2


def test_a_clos_needs_no_file_and_runs_at_both_levels():
    flow = document("--clos", 32, "--scenario", "ring", "--level", "flow")
    packet = document("--clos", 32, "--scenario", "ring", "--duration", "3ms", "--warmup", "1ms")
    assert flow["hosts"] == len(packet["goodput_gbps"]["per_flow"]) == 32
    assert flow["goodput_gbps"]["sum"] == pytest.approx(packet["goodput_gbps"]["sum"], rel=0.01)


def test_people_see_rates_ports_and_notes():
    said = invoke("--clos", 64, "--scenario", "incast", "--level", "flow").stdout
    assert "steady rates under DCQCN" in said
    assert "leaf16:Ethernet1/4" in said
    assert "64 hosts, 1 steady states" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--level", "flow"), "--level flow needs a site"),
        (("--clos", 100, "--scenario", "ring"), "multiple of 16"),
        (("--clos", 64), "--clos needs --scenario"),
        (("--clos", 64, "-f", "x.yaml", "--scenario", "ring"), "two sites"),
        (("--clos", 64, "--scenario", "storm", "--level", "flow"), "none of this name"),
        (("--clos", 8192, "--scenario", "ring"), "up to 4,096 hosts"),
        (("--clos", 16384, "--scenario", "alltoall", "--level", "flow"), "GiB of memory"),
        (("--clos", 64, "--scenario", "ring", "--level", "flow", "--duration", "1us"), "warmup_us"),
    ],
)
def test_bad_options_end_with_exit_2_and_say_why(arguments, words):
    assert words in document(*arguments, code=2)["error"]["message"]


def test_a_bad_file_is_named_with_line_and_key(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("kmin: 100KB", "kmin: 100"))
    said = document("-f", path, "--scenario", "ring", "--level", "flow", code=2)
    assert f"{path}:38: intent.profiles.25G.kmin" in said["error"]["message"]


def test_ctrl_c_prints_what_was_found_marked_as_partial(tmp_path, monkeypatch):
    from fabric.sim.flowlevel.run import FlowSimulation

    step = FlowSimulation._step

    def interrupted(self, progress):
        if self.now_us > 0:
            raise KeyboardInterrupt
        step(self, progress)

    monkeypatch.setattr(FlowSimulation, "_step", interrupted)
    path = write_site(tmp_path)
    said = document(
        "-f", path, "--scenario", "burst", "--level", "flow", "--warmup", "0us", code=130
    )
    assert said["partial"] is True
    assert 0 < said["simulated_us"] < 10_000
    assert said["goodput_gbps"]["sum"] > 0
