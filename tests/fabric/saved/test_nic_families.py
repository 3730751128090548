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
