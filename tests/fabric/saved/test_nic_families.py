"""Saved outputs of hosts with NICs of every family: told apart, each judged by its own means."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.saved.layout import file_name
from tests.fabric.devices.linux.shells import Shell

PAISOAR = str(Path(sys.executable).with_name("paisoar"))
FAMILIES = ("mlx5", "bnxt", "irdma", "generic")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder a host, as it is after provisioning, plus one whose RoCE map is broken."""
    folder = tmp_path_factory.mktemp("saved")
    for family in FAMILIES:
        shell = Shell(tmp_path_factory.mktemp(family), family, nics=1)
        shell.apply(shell.change())
        save(shell, folder / f"good-{family}")
        if family == "irdma":
            shell.run("dcb pfc set dev ens1f0 prio-pfc all:off")
            save(shell, folder / "broken")
        shell.namespace.close()
    return folder


def save(shell, folder):
    folder.mkdir()
    for command, text in shell.outputs().items():
        (folder / file_name(command)).write_text(text)


def test_every_family_is_told_by_its_files_and_only_the_fault_is_found(saved):
    done = subprocess.run(
        [PAISOAR, "audit", "--from", str(saved), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["unreadable"] == {}
    assert {(f["rule"], f["device"]) for f in report["findings"]} == {("pfc", "broken")}
    skipped = {(skip["device"], skip["reason"]) for skip in report["skipped"]}
    for device, driver in (("good-bnxt", "bnxt_en"), ("good-irdma", "ice"), ("broken", "ice")):
        assert any(
            name == device and "receive buffer" in reason and driver in reason
            for name, reason in skipped
        ), device


@pytest.mark.parametrize("options", ["", "-N ", "-s ", "-s -p "])
def test_what_dcb_prints_as_text_is_judged_like_its_json(saved, tmp_path_factory, options):
    """``dcb pfc show dev IF`` and its like, typed by hand: without ``-j``."""
    folder = tmp_path_factory.mktemp("text")
    shell = Shell(tmp_path_factory.mktemp("host"), "irdma", nics=1)
    shell.apply(shell.change())
    for host, spoil in (("good", ""), ("broken", "dcb pfc set dev ens1f0 prio-pfc all:off")):
        shell.run(spoil or "true")
        save(shell, folder / host)
        for kind in ("pfc", "ets", "app", "dcbx"):
            (folder / host / f"dcb_-j_{kind}_show_dev_ens1f0.txt").unlink()
            flags = options if kind == "pfc" else options.replace("-s ", "")
            flags = flags.replace("-p ", "")
            text = shell.run(f"dcb {flags}{kind} show dev ens1f0")
            name = file_name(f"dcb {options}{kind} show dev ens1f0")
            (folder / host / name).write_text(f"root@{host}:~# dcb {options}{kind} show\n{text}")
    (folder / "good/dcb_maxrate_show_dev_ens1f0.txt").write_text("tc-maxrate 0:25Gbit\n")
    shell.namespace.close()
    done = subprocess.run(
        [PAISOAR, "audit", "--from", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert {(f["rule"], f["device"]) for f in report["findings"]} == {("pfc", "broken")}
    assert report["unknown_files"] == []
    assert any("dcb_maxrate_show_dev_ens1f0.txt: not read" in note for note in report["notes"])
