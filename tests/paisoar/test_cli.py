"""The command line's promises: exit codes, one JSON document, help that teaches."""

import json

import pytest
import typer
from typer.testing import CliRunner

from fabric.site import load_site
from paisoar.cli import COMMANDS, GROUPS, app
from paisoar.console import EXIT_FAULT, run
from tests.sites import write_site

runner = CliRunner()


def invoke(*arguments, code):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result


def document(*arguments, code):
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


def test_init_writes_a_site_that_check_accepts(tmp_path):
    path = tmp_path / "fabric.yaml"
    said = document("init", "-f", path, "--hosts", 6, "--leaves", 2, "--spines", 2, code=0)
    assert (said["hosts"], said["switches"], said["cables"]) == (6, 4, 10)
    assert len(load_site(path).topology.hosts) == 6
    checked = document("check", "-f", path, code=0)
    assert checked["valid"] is True
    assert all(ratio <= 1 for ratio in checked["oversubscription"].values())


def test_init_never_overwrites_unasked(tmp_path):
    path = write_site(tmp_path)
    before = path.read_text()
    said = document("init", "-f", path, code=2)
    assert "exists already" in said["error"]["message"]
    assert path.read_text() == before


def test_init_says_which_shape_cannot_be_built(tmp_path):
    said = document("init", "-f", tmp_path / "f.yaml", "--leaves", 3, "--dual-homed", code=2)
    assert "even number of leaves" in said["error"]["message"]
    assert not (tmp_path / "f.yaml").exists()


def test_bad_input_is_one_document_with_file_line_and_advice(tmp_path):
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("kmin: 100KB", "kmin: 100", 1))
    said = document("check", "-f", path, code=2)
    assert said["error"]["kind"] == "InputError"
    assert f"{path}:38" in said["error"]["message"]
    missing = document("check", "-f", tmp_path / "none.yaml", code=2)
    assert "paisoar init" in missing["error"]["advice"]


@pytest.mark.parametrize("command", ["plan", "audit"])
def test_a_twin_that_is_down_is_named_with_the_way_out(tmp_path, command):
    said = document(command, "-f", write_site(tmp_path), code=3)
    assert "twin" in json.dumps(said)
    assert "paisoar twin up" in json.dumps(said)


def test_what_was_never_done_is_said_and_not_invented(tmp_path):
    path = write_site(tmp_path)
    assert "has not been validated" in document("certify", "-f", path, code=1)["error"]["message"]
    assert "validated" in document("report", "-f", path, code=2)["error"]["message"]
    assert "no certificate" in document("train", "-f", path, code=1)["error"]["message"]
    assert document("certificate", "verify", "-f", path, code=1)["reason"] == "no-certificate"
    assert document("twin", "status", "-f", path, code=0)["up"] is False


def test_real_sites_get_no_simulated_evidence(tmp_path):
    path = write_site(tmp_path, environment="site")
    said = document("validate", "preflight", "-f", path, code=3)
    assert (said["simulated"], said["status"], said["probe"]) == (False, "partial", "")
    assert {check["verdict"] for check in said["suites"][0]["checks"]} <= {"FAIL", "NOT_RUN"}
    assert "environment" in document("twin", "up", "-f", path, code=2)["error"]["message"]


def test_a_dry_run_names_suites_and_coverage_and_touches_nothing(tmp_path):
    path = write_site(tmp_path)
    suites = document("validate", "-f", path, "--dry-run", code=0)["suites"]
    assert [suite["suite"] for suite in suites] == ["preflight", "latency", "bandwidth", "incast"]
    assert all(suite["expected"] for suite in suites)
    assert not any(suite["commands"] for suite in suites)
    assert not (tmp_path / ".paisoar").exists()


def test_all_suites_are_planned_round_by_round(tmp_path):
    path = write_site(tmp_path)
    suites = document("validate", "-f", path, "--all", "--dry-run", code=0)["suites"]
    names = ["preflight", "latency", "bandwidth", "incast"]
    names += ["mixed", "burst", "collective", "tcp", "soak"]
    assert [suite["suite"] for suite in suites] == names
    for suite in suites:
        assert suite["rounds"] == len(suite["plan"]) > 0
        assert suite["concurrency"] == max(
            sum(len(stream["pairs"]) for stream in each["streams"]) for each in suite["plan"]
        )
        assert suite["seconds"] == pytest.approx(suite["traffic_us"] / 1e6)
        assert suite["pairs"] > 0
        assert suite["sizes_bytes"]
    mixed = document("validate", "mixed", "-f", path, "--dry-run", code=0)["suites"]
    assert [suite["suite"] for suite in mixed] == ["mixed"]
    classes = {s["class"] for each in mixed[0]["plan"] for s in each["streams"]}
    assert classes == {"roce", "default"}


def test_a_dry_run_on_real_hosts_prints_every_command(tmp_path):
    path = write_site(tmp_path, environment="site")
    suites = document("validate", "-f", path, "--dry-run", "--seconds", "12", code=0)["suites"]
    preflight, latency, bandwidth, incast = (suite["commands"] for suite in suites)
    # Four hosts: six pairs, both ways where suites say so, two ends each; two pairs more
    # across the middle of the fabric, and two pairs one way and back.
    assert [len(preflight), len(latency), len(bandwidth)] == [24, 12, 40]
    last = incast[-1]
    assert (last["step"], last["host"]) == ("all-to-host4", "host3")
    assert last["command"] == (
        "ib_write_bw -d mlx5_0 -i 1 -x GID_INDEX -F -p 18517 -m 4096 -s 65536 -q 2 "
        "--report_gbits -D 12 -f 3 10.0.0.4"
    )
    assert suites[3]["traffic_us"] == 5 * 12e6
    assert not (tmp_path / ".paisoar").exists()
    refused = document("validate", "-f", path, "--dry-run", "--seconds", "1", code=2)
    assert "4 to 600" in refused["error"]["message"]
    twin = write_site(tmp_path)
    for more in ((), ("--dry-run",)):
        refused = document("validate", "-f", twin, "--rdma-cm", *more, code=2)
        assert "simulated" in refused["error"]["message"]


def test_a_crash_is_not_taken_for_a_judgement(capsys):
    def crash(_ui):
        raise ZeroDivisionError

    with pytest.raises(typer.Exit) as caught:
        run(True, crash)
    assert caught.value.exit_code == EXIT_FAULT
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == EXIT_FAULT


@pytest.mark.parametrize("command", [c.__name__ for c in COMMANDS] + list(GROUPS))
def test_every_command_has_help_with_a_sentence(command):
    shown = invoke(command, "--help", code=0).stdout
    assert any(line.strip().endswith(".") for line in shown.splitlines())
