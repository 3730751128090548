"""``paisoar init --from``: what it writes passes the check, or what is missing is named."""

import json

import pytest
from typer.testing import CliRunner

from paisoar.cli import app
from tests.fabric.saved.folders import saved


def call(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path)[1]


def test_a_site_from_saved_outputs_passes_the_check(folder, tmp_path):
    file = tmp_path / "mine.yaml"
    said = json.loads(call("init", "--from", folder, "-f", file, "--json"))
    assert (said["hosts"], said["switches"], said["cables"], said["missing"]) == (4, 3, 6, [])
    call("check", "-f", file)
    assert "0 findings" in call("audit", "--from", folder, "-f", file)


def test_what_is_missing_is_named_with_its_line_and_ends_with_1(tmp_path):
    (tmp_path / "devices.csv").write_text("leaf1,switch,nxos,Unheard-Of\n")
    file = tmp_path / "mine.yaml"
    said = json.loads(
        call("init", "--from", tmp_path / "devices.csv", "-f", file, "--json", code=1)
    )
    lines = file.read_text().splitlines()
    keys = {gap["key"]: gap["line"] for gap in said["missing"]}
    assert "missing: buffer" in lines[keys["devices.leaf1.buffer"] - 1]
    assert f"{file}:{keys['devices.leaf1.buffer']}: devices.leaf1.buffer" in said["faults"][0]


def test_cables_that_lldp_contradicts_are_said(folder, tmp_path):
    cables = tmp_path / "cables.csv"
    pairs = [("leaf1:Ethernet1/1", "host2:ens1f0"), ("leaf1:Ethernet1/2", "host1:ens1f0"),
             ("leaf2:Ethernet1/1", "host3:ens1f0"), ("leaf2:Ethernet1/2", "host4:ens1f0"),
             ("leaf1:Ethernet1/49", "spine1:Ethernet1/1"),
             ("leaf2:Ethernet1/49", "spine1:Ethernet1/2")]  # fmt: skip
    cables.write_text("".join(f"{a},{b},{'100G' if 'spine' in b else '25G'},3\n" for a, b in pairs))
    file = tmp_path / "mine.yaml"
    arguments = ("init", "--from", cables, "--from", folder, "-f", file)
    said = json.loads(call(*arguments, "--json", code=1))
    assert said["wiring"] == [
        "leaf1 Ethernet1/1, Ethernet1/2: the cables of Ethernet1/1 and Ethernet1/2 are swapped"
    ]
    told = call(*arguments, "--force", code=1)
    assert "LLDP shows other cables: correct the file, or the cables, then: paisoar check" in told


def test_nothing_is_overwritten_unasked(folder, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    call("init", "--from", folder, "-f", file, code=2)
    assert file.read_text() == "mine"
    call("init", "--from", folder, "-f", file, "--force")


@pytest.mark.parametrize("words", [("--hosts", 4), ("--spines", 0), ("--dual-homed",)])
def test_the_shape_of_a_clos_is_refused_with_a_source(tmp_path, words):
    (tmp_path / "devices.csv").write_text("leaf1,switch,nxos,x\n")
    file = tmp_path / "mine.yaml"
    call("init", "--from", tmp_path / "devices.csv", "-f", file, *words, code=2)
    assert not file.exists()


@pytest.mark.parametrize(
    "words", [("--switch-os", "acme"), ("--nic", "acme"), ("--switch-os", "eos,eos,eos")]
)
def test_a_system_or_family_that_is_none_is_refused_with_a_source(tmp_path, words):
    (tmp_path / "devices.csv").write_text("leaf1,switch,nxos,x\n")
    call("init", "--from", tmp_path / "devices.csv", "-f", tmp_path / "mine.yaml", *words, code=2)


def test_a_system_and_a_family_fill_what_the_source_lacks(tmp_path):
    (tmp_path / "devices.csv").write_text("device,kind,nics\nleaf1,switch,\nh1,host,e0\n")
    file = tmp_path / "mine.yaml"
    arguments = ("init", "--from", tmp_path / "devices.csv", "-f", file, "--json")
    said = json.loads(call(*arguments, "--switch-os", "eos", "--nic", "bnxt", code=1))
    assert "devices.leaf1.os: eos, by --switch-os" in said["assumed"]
    assert "devices.h1.nics.e0.family: bnxt, by --nic" in said["assumed"]
    without = {gap["key"] for gap in json.loads(call(*arguments, "--force", code=1))["missing"]}
    assert {"devices.leaf1.os", "devices.h1.nics.e0.family"} <= without


def test_what_is_wrong_beside_what_is_missing_is_said_at_once(tmp_path):
    (tmp_path / "devices.csv").write_text(
        "device,kind,os,model,address,nics\nleaf1,switch,nxos,x,,\n"
        "h1,host,,,10.0.0.1,e0:mlx5:mlx5_0\nh2,host,,,10.0.0.1,e0:mlx5:mlx5_0\n"
    )
    (tmp_path / "cables.csv").write_text("leaf1:Ethernet1/1,h3:e0,25G,3\nh1:e0,h2:e0,25G,3\n")
    file = tmp_path / "mine.yaml"
    arguments = ("init", "--from", tmp_path / "devices.csv", "-f", file)
    said = json.loads(call(*arguments, "--json", code=1))
    assert {gap["key"] for gap in said["missing"]} == {
        "devices.leaf1.buffer",
        "devices.h3",
    }
    assert len(said["faults"]) == 4
    assert any("is where h1 is reached, too" in fault for fault in said["faults"])
    assert any("joins two hosts" in fault for fault in said["faults"])


def test_of_very_many_faults_the_first_are_shown_and_the_rest_counted(tmp_path):
    (tmp_path / "devices.csv").write_text("".join(f"leaf{n},switch,nxos,x\n" for n in range(99)))
    arguments = ("init", "--from", tmp_path / "devices.csv", "-f", tmp_path / "mine.yaml")
    text = call(*arguments, code=1)
    assert text.count("missing: the shared packet buffer") == 50
    assert "and 50 more; --json has them all" in text
