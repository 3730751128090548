"""The whole line, as a stranger walks it: the demo, its faults, and what comes after."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow]

PAISOAR = str(Path(sys.executable).with_name("paisoar"))
SMALL = ("--hosts", "8", "--leaves", "2", "--spines", "1")

# Which device each fault is on, the rules that name it, and the suites of
# which one has to fail for the physical reason.
FAULTS = {
    "pfc-off": ("leaf1", {"pfc"}, {"preflight", "incast"}),
    "dscp-map": ("host1", {"dscp-map"}, {"preflight", "incast"}),
    "mtu": ("leaf1", {"mtu"}, {"preflight"}),
    "ecn-off": ("leaf1", {"ecn"}, {"incast"}),
    "nic-reset": ("host1", {"trust", "pfc", "dcqcn"}, {"preflight"}),
}


def paisoar(*arguments, cwd, code):
    done = subprocess.run(
        [PAISOAR, *arguments], cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def document(*arguments, cwd, code):
    return json.loads(paisoar(*arguments, "--json", cwd=cwd, code=code))


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder / "site", document("demo", "--folder", "site", *SMALL, cwd=folder, code=0)


@pytest.fixture(scope="module")
def certified(walked):
    """The demo's site with its twin up again, as it was left."""
    folder, _ = walked
    paisoar("twin", "up", cwd=folder, code=0)
    yield folder
    paisoar("twin", "down", cwd=folder, code=0)


@pytest.mark.xdist_group("demo")
def test_the_demo_certifies_and_trains(walked):
    folder, said = walked
    assert all(step["verdict"] == "good" for step in said["steps"])
    assert said["findings"] == []
    assert said["certificate"]["class"] == "simulated"
    assert said["certificate"]["verdict"] == "PASS"
    assert said["train"]["accuracy"] >= 0.95
    assert said["train"]["weights_identical"] is True
    page = Path(folder.parent, said["report"]).read_text()
    assert said["certificate"]["id"] in page
    assert page.count("<svg") >= 6


@pytest.mark.xdist_group("demo")
def test_no_process_of_the_demo_is_left(walked):
    folder, _ = walked
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        assert str(folder) not in command


@pytest.mark.parametrize("kind", FAULTS)
def test_a_broken_fabric_is_named_fails_a_suite_and_is_never_certified(tmp_path, kind):
    said = document("demo", "--break", kind, "--folder", "site", *SMALL, cwd=tmp_path, code=1)
    device, rules, suites = FAULTS[kind]
    assert said["certificate"] is None
    assert said["train"]["refused"] == "no-certificate"
    assert {finding["device"] for finding in said["findings"]} == {device}
    assert rules <= {finding["rule"] for finding in said["findings"]}
    assert all(finding["port"] for finding in said["findings"] if finding["rule"] in rules)
    failed = {check["check"].partition(".")[0] for check in said["failed_checks"]}
    assert failed & suites, said["failed_checks"]
    assert any(device in check["reason"] + check["subject"] for check in said["failed_checks"])


@pytest.mark.xdist_group("demo")
def test_one_line_edited_by_hand_is_seen_by_audit_and_gate(certified):
    assert document("audit", cwd=certified, code=0)["findings"] == []
    state = document("twin", "status", cwd=certified, code=0)
    port = next(device["port"] for device in state["devices"] if device["name"] == "leaf2")

    def type_in(*lines):
        session = subprocess.run(
            ["ssh", "-p", str(port), "-o", "BatchMode=yes",
             "-o", f"UserKnownHostsFile={certified}/.paisoar/twin/known_hosts",
             "admin@127.0.0.1", " ; ".join(lines)],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert session.returncode == 0, session.stderr

    type_in("configure terminal", "interface Ethernet1/2", "no priority-flow-control mode on")
    findings = document("audit", cwd=certified, code=1)["findings"]
    assert {"pfc", "drift"} <= {finding["rule"] for finding in findings}
    assert {finding["device"] for finding in findings} == {"leaf2"}
    refused = document("train", cwd=certified, code=1)["error"]
    assert "leaf2" in refused["message"]
    assert "changed" in refused["message"]

    type_in("configure terminal", "interface Ethernet1/2", "priority-flow-control mode on")
    assert document("audit", cwd=certified, code=0)["findings"] == []


@pytest.mark.xdist_group("demo")
def test_a_line_that_is_not_ours_closes_the_gate_too(certified):
    state = document("twin", "status", cwd=certified, code=0)
    port = next(device["port"] for device in state["devices"] if device["name"] == "leaf1")
    subprocess.run(
        ["ssh", "-p", str(port), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
         "-o", f"UserKnownHostsFile={certified}/.paisoar/twin/known_hosts", "admin@127.0.0.1",
         "configure terminal ; interface Ethernet1/1 ; description moved"],
        check=True, timeout=60, stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    findings = document("audit", cwd=certified, code=1)["findings"]
    assert ("drift", "leaf1") in {(f["rule"], f["device"]) for f in findings}
    assert "leaf1" in document("train", cwd=certified, code=1)["error"]["message"]


@pytest.mark.xdist_group("demo")
def test_plan_provision_and_rollback_go_there_and_back(tmp_path):
    paisoar("init", "--hosts", "2", "--leaves", "1", "--spines", "0", cwd=tmp_path, code=0)
    paisoar("twin", "up", cwd=tmp_path, code=0)
    try:
        first = document("plan", cwd=tmp_path, code=0)
        assert set(first["changes"]) == {"leaf1", "host1", "host2"}
        run = document("provision", cwd=tmp_path, code=0)
        assert {device["state"] for device in run["devices"].values()} == {"done"}
        assert document("plan", cwd=tmp_path, code=0)["changes"] == []
        again = document("provision", cwd=tmp_path, code=0)
        assert {device["state"] for device in again["devices"].values()} == {"unchanged"}
        back = document("rollback", run["run_id"], cwd=tmp_path, code=0)
        assert {device["state"] for device in back["devices"].values()} == {"done"}
        after = document("plan", cwd=tmp_path, code=0)
        assert {n: d["diff"] for n, d in after["devices"].items()} == {
            n: d["diff"] for n, d in first["devices"].items()
        }
    finally:
        paisoar("twin", "down", cwd=tmp_path, code=0)


@pytest.mark.xdist_group("demo")
def test_a_dead_device_is_named_and_fails_alone(tmp_path):
    paisoar("init", "--hosts", "2", "--leaves", "1", "--spines", "0", cwd=tmp_path, code=0)
    said = document("plan", cwd=tmp_path, code=3)
    assert "twin" in json.dumps(said)
    paisoar("twin", "up", cwd=tmp_path, code=0)
    try:
        paisoar("plan", cwd=tmp_path, code=0)
        inventory = tmp_path / ".paisoar" / "twin" / "inventory.json"
        devices = json.loads(inventory.read_text())
        # Nothing listens on port 1: as good as a host whose power is off.
        devices["devices"]["host2"]["port"] = 1
        inventory.write_text(json.dumps(devices))
        run = document("provision", cwd=tmp_path, code=3)
        states = {name: device["state"] for name, device in run["devices"].items()}
        assert states["leaf1"] == states["host1"] == "done"
        assert states["host2"] in ("failed", "untouched")
    finally:
        paisoar("twin", "down", cwd=tmp_path, code=0)
