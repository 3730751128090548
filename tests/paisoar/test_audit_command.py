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


def test_several_devices_in_one_word_as_for_ansible(broken):
    said = json.loads(call("audit", "--from", broken, "--limit", "leaf1, spine1", "--json"))
    assert said["devices"] == ["leaf1", "spine1"]


@pytest.fixture
def nothing(tmp_path):
    """A folder of two devices, neither of which can be read."""
    for name in ("leaf1", "host1"):
        (tmp_path / "other" / name).mkdir(parents=True)
        (tmp_path / "other" / name / "notes.txt").write_text("x")
    return tmp_path / "other"


def test_where_nothing_could_be_read_it_says_that_nothing_was_judged(nothing):
    text = call("audit", "--from", nothing, code=3)
    assert text.count("not answered: ") == 2
    assert "Nothing was judged: none of 2 devices could be read." in text
    assert "assumed" not in text
    assert "host pairs" not in text
    said = json.loads(call("audit", "--from", nothing, "--json", code=3))
    assert (said["devices"], said["inferred"]) == ([], [])


def test_no_format_shows_a_pass_where_nothing_could_be_read(nothing):
    (run,) = json.loads(call("audit", "--from", nothing, "--format", "sarif", code=3))["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    texts = [one["message"]["text"] for one in invocation["toolExecutionNotifications"]]
    assert [text for text in texts if text.startswith("not read: leaf1: ")]
    root = ET.fromstring(call("audit", "--from", nothing, "--format", "junit", code=3))
    (reading,) = root.findall("testsuite[@name='audit.reading']")
    assert reading.get("errors") == "2"
    assert [case.get("name") for case in root.iter("testcase") if not len(case)] == []


def test_a_device_that_could_not_be_read_is_an_error_beside_those_that_were(folder):
    for file in (folder / "spine1").glob("show_running*"):
        file.write_text("")
    root = ET.fromstring(call("audit", "--from", folder, "--format", "junit", code=3))
    (case,) = root.findall("testsuite[@name='audit.reading']/testcase")
    assert (case.get("name"), case[0].tag) == ("spine1", "error")
    assert root.find("testsuite[@name='audit.pfc']/testcase").get("name") == "6 devices"


def test_ports_that_are_all_out_of_use_are_no_pass(tmp_path):
    folder = tmp_path / "out" / "leaf1"
    folder.mkdir(parents=True)
    (folder / "show_running-config.txt").write_text(
        "version 10.2(5)\nhostname leaf1\ninterface Ethernet1/1\n  shutdown\n"
    )
    (folder / "show_interface.txt").write_text(
        "Ethernet1/1 is down (Administratively down)\nadmin state is down, Dedicated Interface\n"
    )
    text = call("audit", "--from", folder.parent, code=3)
    assert "Nothing was judged: no port of these devices has a cable or is in use." in text
    assert "No pair of hosts is known: no path was judged." in text


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
