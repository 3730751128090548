"""The scripts for Slurm and Kubernetes as schedulers run them: environment, exit code, answer."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from fabric.errors import InputError
from fabric.site import load_site
from tests.validation.readings import keep_reading
from validation.certificates import certificate
from validation.scheduler.export import export_files
from validation.watch.reading import reading_path


@pytest.fixture
def scripts(site, tmp_path):
    export_files(site, tmp_path / "export")
    return tmp_path / "export"


def environment(**given):
    """As bare as a prolog's; only what finds our own modules is passed on."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR") if name in os.environ}
    return {**kept, **given}


def prolog(scripts, **given):
    return subprocess.run(
        [scripts / "slurm" / "paisoar-prolog.sh"],
        env=environment(**given),
        capture_output=True,
        text=True,
        check=False,
    )


def plugin(scripts, node):
    return subprocess.run(
        [scripts / "kubernetes" / "paisoar-gate-plugin.sh"],
        env=environment(NODE_NAME=node),
        capture_output=True,
        text=True,
        check=False,
    )


def test_slurm_starts_a_job_on_the_certified_fabric(watched, scripts):
    done = prolog(scripts, SLURM_JOB_NODELIST="host[1-4]", SLURM_JOB_ID="7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_slurm_is_refused_with_the_reason(watched, scripts):
    certificate.revoke(watched.site, certificate.ids(watched.site)[-1], "leaf1 was replaced")
    done = prolog(scripts, SLURM_JOB_NODELIST="host[1-2]", SLURM_JOB_ID="7")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "job 7: refused (revoked)" in done.stderr
    assert "leaf1 was replaced" in done.stderr


def test_one_node_by_itself_is_asked_by_its_daemons_name(watched, scripts):
    assert prolog(scripts, SLURMD_NODENAME="host1").returncode == 0
    outside = prolog(scripts, SLURMD_NODENAME="gpu1")
    assert outside.returncode == 1
    assert "refused (scope)" in outside.stderr


def test_without_a_young_reading_no_job_starts(watched, scripts):
    keep_reading(watched, age_s=300)
    stale = prolog(scripts, SLURM_JOB_NODELIST="host1")
    assert stale.returncode == 1
    assert "reading-stale" in stale.stderr
    reading_path(watched.site).unlink()
    missing = prolog(scripts, SLURM_JOB_NODELIST="host1")
    assert missing.returncode == 1
    assert "no-reading" in missing.stderr


def test_a_job_on_a_dead_device_does_not_start(watched, scripts):
    watched.dead.add("host2")
    keep_reading(watched)
    assert prolog(scripts, SLURM_JOB_NODELIST="host1").returncode == 0
    done = prolog(scripts, SLURM_JOB_NODELIST="host[1-2]")
    assert done.returncode == 3
    assert "host2" in done.stderr


def test_slurm_without_any_node_or_with_no_list_starts_nothing(watched, scripts):
    assert prolog(scripts).returncode == 2
    done = prolog(scripts, SLURM_JOB_NODELIST="host[1-")
    assert done.returncode == 2
    assert "no host list" in done.stderr


def test_partitions_that_need_no_fabric_are_not_asked(site, scripts):
    path = scripts / "slurm" / "paisoar-prolog.sh"
    path.write_text(path.read_text().replace("partitions=''", "partitions='gpu train'"))
    job = {"SLURM_JOB_NODELIST": "host1"}
    assert prolog(scripts, SLURM_JOB_PARTITION="cpu", **job).returncode == 0
    # No certificate here: what is asked is refused.
    assert prolog(scripts, SLURM_JOB_PARTITION="train", **job).returncode == 1


def test_a_program_that_is_gone_starts_nothing(watched, scripts):
    path = scripts / "slurm" / "paisoar-prolog.sh"
    path.write_text(path.read_text().replace("paisoar='/", "paisoar='/nowhere/"))
    assert prolog(scripts, SLURM_JOB_NODELIST="host1").returncode == 127


def test_kubernetes_sees_a_certified_node(watched, scripts):
    done = plugin(scripts, "host1.example.org")
    assert done.returncode == 0
    assert done.stdout.startswith("open: cert-")
    assert done.stdout.count("\n") == 1


def test_kubernetes_sees_a_changed_fabric_in_one_short_line(watched, scripts):
    watched.states["host1"] = replace(watched.states["host1"], firmware="2")
    keep_reading(watched)
    done = plugin(scripts, "host1")
    assert done.returncode == 1
    assert done.stdout.startswith("refused (fabric-changed)")
    assert len(done.stdout) <= 201
    assert done.stdout.count("\n") == 1


def test_kubernetes_sees_unknown_where_nothing_can_be_said(watched, scripts):
    watched.dead.add("host1")
    keep_reading(watched)
    assert plugin(scripts, "host1").returncode == 2
    watched.site.path.write_text("schema: nothing\n")
    done = plugin(scripts, "host2")
    assert done.returncode == 2
    assert done.stdout.strip()


def test_the_monitors_configuration_runs_the_script_and_starts_with_no_condition(scripts):
    monitor = json.loads((scripts / "kubernetes" / "paisoar-monitor.json").read_text())
    (rule,) = monitor["rules"]
    assert os.access(rule["path"], os.X_OK)
    assert rule["condition"] in {condition["type"] for condition in monitor["conditions"]}
    # Until the script has answered, the node must not be called certified.
    assert monitor["pluginConfig"]["skip_initial_status"] is True
    taint = YAML(typ="safe").load((scripts / "kubernetes" / "readiness-rule.yaml").read_text())
    assert taint["spec"]["conditions"] == [{"type": rule["condition"], "requiredStatus": "False"}]


def test_scripts_are_not_made_out_for_paths_that_would_need_quotes(site, tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    moved = folder / "fabric.yaml"
    moved.write_text(site.path.read_text())
    with pytest.raises(InputError, match="cannot be written into scripts"):
        export_files(load_site(moved), tmp_path / "out")


def test_the_answer_does_not_wait_for_other_commands_to_load(watched):
    """What is imported decides how long the gate takes; a clock would measure the machine."""
    code = (
        "import sys; sys.argv[1:] = ['gate', '-f', sys.argv[1]]\n"
        "import atexit; atexit.register(lambda: print(*sys.modules))\n"
        "from paisoar.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, watched.site.path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "validation.gate" in loaded
    slow = {"paisoar.cli", "pandas", "pyarrow", "sqlalchemy", "asyncssh", "netmiko", "numba"}
    assert loaded & {*slow, "tensorflow", "prometheus_client", "matplotlib"} == set()
