"""``paisoar sim run`` and ``paisoar bench sim``."""

import json
import os
import signal
import threading

import pandas as pd
import pytest
from typer.testing import CliRunner

from fabric.sim.reference.fidelity import read_series
from fabric.sim.reference.peer import DATA, table
from fabric.sim.reference.simulation import warm_up
from paisoar.cli import app
from tests.sites import write_site

runner = CliRunner()
STAR3, INC2 = DATA / "topologies" / "star3.topo", DATA / "flows" / "inc2.flow"
FILES = ("sim", "run", "--topology", STAR3, "--flows", INC2)
KEYS = {
    "goodput_gbps",
    "jain",
    "ports",
    "pauses",
    "drops",
    "marks",
    "rate_cuts",
    "data_hops",
    "wall_s",
    "hops_per_s",
    "peak_rss_bytes",
    "messages",
}
PORT_KEYS = {
    "switch",
    "port",
    "peer",
    "queue_mean_bytes",
    "queue_p50_bytes",
    "queue_p99_bytes",
    "queue_max_bytes",
}


def invoke(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


def document(*arguments, code=0):
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


def test_a_run_is_one_document_with_the_promised_keys():
    said = document(*FILES, "--ecn", "100KB,100KB,0.2", "--dcqcn", "P2")
    assert set(said) == KEYS
    assert set(said["goodput_gbps"]) == {"sum", "per_flow"}
    assert {frozenset(port) for port in said["ports"]} == {frozenset(PORT_KEYS)}
    assert said["goodput_gbps"]["sum"] == pytest.approx(22.743)
    assert said["marks"] == 5092
    assert (said["drops"], said["pauses"]) == (0, 0)


def test_messages_carry_flow_start_and_completion_time(tmp_path):
    flows = tmp_path / "f.flow"
    flows.write_text("1\n0 2 3 100 1000 0\n")
    said = document("sim", "run", "--topology", STAR3, "--flows", flows, "--duration", "3ms")
    assert said["messages"] == [{"flow": 0, "start_us": 0.0, "fct_us": pytest.approx(4.708)}]
    again = document(
        "sim", "run", "--topology", STAR3, "--flows", flows, "--duration", "3ms", "--closed-loop"
    )
    assert len(again["messages"]) > 500


def test_a_series_is_a_table_equal_to_the_peers(tmp_path):
    out = tmp_path / "series.parquet"
    ecn = ("--ecn", "100KB,100KB,0.2")
    said = invoke(*FILES, *ecn, "--series", "3:3", "--every", "1us", "--out", out)
    assert "Series written" in said.stdout
    ours = pd.read_parquet(out)
    names, values = read_series("a2-K3det-P1")
    assert list(ours.columns) == names
    assert (ours["q_bytes"].to_numpy() == values[:, 1]).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim", "run"), "nothing to simulate"),
        ((*FILES, "--duration", "10"), "--duration"),
        ((*FILES, "--buffer", "many"), "--buffer"),
        ((*FILES, "--dcqcn", "P3"), "neither a set"),
        ((*FILES, "--series", "here"), "not a switch port"),
        ((*FILES, "--scenario", "ring"), "needs a site"),
        ((*FILES, "--semantics", "hardware", "--ack-priority"), "reference only"),
        (("sim", "run", "-f", "fabric.yaml", "--topology", STAR3), "-f takes neither"),
    ],
)
def test_bad_options_end_with_exit_2_and_say_why(arguments, words):
    said = document(*arguments, code=2)
    assert words in said["error"]["message"]


def test_bad_files_are_named_with_their_line(tmp_path):
    flows = tmp_path / "f.flow"
    flows.write_text("2\n0 2 3 100 1000 0\n1 1 3 100 1000 0\n")
    said = document("sim", "run", "--topology", STAR3, "--flows", flows, code=2)
    assert f"{flows}:3: host 1 sends to itself" in said["error"]["message"]


def test_ctrl_c_prints_what_was_seen_marked_as_partial():
    warm_up()
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    said = document(*FILES, "--duration", "20s", code=130)
    assert said["partial"] is True
    assert 0 < said["simulated_us"] < 20e6
    assert set(said) == KEYS | {"partial", "simulated_us"}


def test_files_run_with_the_semantics_of_hardware_too():
    said = document(*FILES, "--semantics", "hardware", "--duration", "5ms")
    assert set(said) >= KEYS
    assert 20 < said["goodput_gbps"]["sum"] < 25
    assert said["drops"] == 0
    assert said["marks"] > 0
    unmarked = document(*FILES, "--semantics", "hardware", "--duration", "5ms", "--ecn", "off")
    assert unmarked["marks"] == 0
    assert unmarked["pauses"] > 0


@pytest.mark.parametrize("scenario", ["incast", "permutation", "ring", "alltoall", "burst"])
def test_a_site_plays_every_scenario(tmp_path, scenario):
    path = write_site(tmp_path)
    said = document(
        "sim", "run", "-f", path, "--scenario", scenario, "--duration", "2ms", "--warmup", "1ms"
    )
    assert set(said) >= KEYS
    assert said["data_hops"] > 0
    assert said["drops"] == 0


def test_an_unknown_scenario_is_refused(tmp_path):
    said = document("sim", "run", "-f", write_site(tmp_path), "--scenario", "storm", code=2)
    assert "incast" in said["error"]["advice"]


@pytest.mark.slow
def test_the_bench_prints_rows_beside_the_peers():
    said = document("bench", "sim")
    assert {"scenario", "hops_per_s", "peer_hops_per_s", "ratio"} <= set(said["rows"][0])
    assert {row["peer"] for row in said["rows"]} == {"ns-3 (HPCC)", "htsim"}
    for row in said["rows"]:
        assert row["ratio"] == pytest.approx(row["hops_per_s"] / row["peer_hops_per_s"])


def test_the_bench_compares_every_reference_run():
    said = document("bench", "sim", "--fidelity")
    assert {row["run"] for row in said["rows"]} == {row["run"] for row in table("results.csv")}
    assert said["verdict"] == "PASS"
    assert all(row["equal"] for row in said["rows"])
