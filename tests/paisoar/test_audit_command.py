"""``paisoar audit --from`` and ``paisoar explain``, as a person calls them."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.audit import rules
from paisoar.cli import app
from tests.fabric.saved.folders import edit, saved


def call(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path)[1]


@pytest.fixture
def broken(folder):
    edit(folder / "host1" / "mlnx_qos_-i_ens1f0.txt", "OS controlled", "Firmware controlled")
    return folder


def test_a_folder_that_is_right_ends_with_0_and_says_what_was_inferred(folder):
    text = call("audit", "--from", folder)
    assert "inferred: RoCE priority = 3" in text
    assert "12 of 12 host pairs are lossless" in text


def test_counters_of_a_folder_are_judged_with_the_option_and_without(folder):
    edit(folder / "leaf1" / "show_interface.txt", "0 CRC", "9 CRC", 1)
    for more in ((), ("--counters",)):
        said = json.loads(call("audit", "--from", folder, "--json", *more, code=1))
        assert [finding["rule"] for finding in said["findings"]] == ["link-errors"]


def test_findings_have_exactly_their_keys_and_end_with_1(broken):
    said = json.loads(call("audit", "--from", broken, "--json", code=1))
    (finding,) = said["findings"]
    assert list(finding) == ["rule", "severity", "device", "port", "message", "evidence", "fix"]
    assert (finding["rule"], finding["device"], finding["port"]) == ("dcbx", "host1", "ens1f0")
    assert finding["fix"] == ["mlnx_qos -i ens1f0 --dcbx os"]
    assert all(list(skip) == ["rule", "device", "reason"] for skip in said["skipped"])
    assert said["paths"]["pairs"] == 12
    assert {value["key"] for value in said["inferred"]} >= {"RoCE priority", "DCQCN"}


def test_with_a_file_the_folder_is_judged_against_it(broken, tmp_path):
    said = json.loads(
        call("audit", "--from", broken, "-f", tmp_path / "fabric.yaml", "--format", "json", code=1)
    )
    assert [finding["rule"] for finding in said["findings"]] == ["dcbx"]
    assert said["inferred"] == []


def test_every_format_is_written_to_stdout_or_a_file(broken, tmp_path):
    sarif = json.loads(call("audit", "--from", broken, "--format", "sarif", code=1))
    assert sarif["version"] == "2.1.0"
    ET.fromstring(call("audit", "--from", broken, "--format", "junit", code=1))
    for format_ in ("sarif", "junit", "json", "table"):
        out = tmp_path / f"report.{format_}"
        table = call("audit", "--from", broken, "--format", format_, "--out", out, code=1)
        assert "dcbx" in out.read_text()
        assert "dcbx" in table


def test_one_device_alone(broken):
    said = json.loads(call("audit", "--from", broken, "-d", "leaf1", "--json"))
    assert said["devices"] == ["leaf1"]


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "nowhere"),
        ("--format", "xml"),
        ("--from", ".", "--save", "x"),
    ],
)
def test_what_makes_no_sense_is_bad_input(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("audit", *words, code=2)


def test_explain_teaches_every_rule():
    said = json.loads(call("explain", "--json"))["rules"]
    assert [rule["rule"] for rule in said] == [rule.id for rule in rules()]
    for rule in said:
        assert all(rule[key] for key in ("what", "cost", "see", "mend", "severity")), rule
    assert json.loads(call("explain", "pfc", "--json")) in said
    assert "bit map" in call("explain", "pfc")
    assert "cnp-lossless" in call("explain")
    call("explain", "nothing", code=2)


def test_every_check_of_the_list_has_a_rule_or_is_tested_elsewhere():
    covered = {number for rule in rules() for number in rule.checks}
    # 47 is about our own commands: tests/fabric/devices/test_read_only.py.
    assert set(range(1, 47)) <= covered


def test_the_documentation_maps_every_check_to_rules_that_cover_it_and_names_every_rule():
    text = (Path(__file__).parents[2] / "docs/audit.md").read_text()
    known = {rule.id: rule for rule in rules()}
    rows = re.findall(r"^\| (\d\d) \|[^|]*\|([^|]*)\|", text, re.MULTILINE)
    assert [number for number, _ in rows] == [f"{number:02d}" for number in range(1, 48)]
    for number, cell in rows:
        named = {name for name in re.findall(r"`([a-z-]+)`", cell) if name in known}
        covering = {rule.id for rule in rules() if int(number) in rule.checks}
        assert covering == named or number == "28", (number, covering, named)
    assert set(known) <= set(re.findall(r"`([a-z-]+)`", text))
