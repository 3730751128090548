"""A fabric judged from files alone, with its intent written down or inferred."""

import random
import shutil

import pytest

from fabric.errors import InputError
from fabric.saved.layout import save_outputs, save_site
from fabric.saved.offline import limited, read_folder, read_for_site
from fabric.saved.sample import sample_outputs
from fabric.site import load_site
from tests.fabric.saved.folders import edit, found, judged, saved
from tests.fabric.saved.foreign import write_foreign
from tests.sites import write_site

RUNNING = "show_running-config.txt"
STARTUP = "show_startup-config.txt"
PFC = "show_interface_priority-flow-control.txt"
QOS = "mlnx_qos_-i_ens1f0.txt"


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path)[1]


def test_a_fabric_that_is_right_has_no_finding_with_its_file_and_without(tmp_path):
    site, path = saved(tmp_path)
    for fabric in (read_for_site(path, site), read_folder(path)):
        report = judged(fabric)
        assert report.findings == ()
        assert report.paths.lossless_pairs == report.paths.pairs == 12
        assert (fabric.failed, fabric.unknown_files) == ({}, ())


def test_systems_cables_and_roles_are_found(folder):
    site = read_folder(folder).site
    assert {name: spec.kind for name, spec in site.devices.items()} == {
        **dict.fromkeys(("host1", "host2", "host3", "host4"), "host"),
        **dict.fromkeys(("leaf1", "leaf2", "spine1"), "switch"),
    }
    assert (site.switch("leaf1").os, site.switch("leaf1").role) == ("nxos", "leaf")
    assert site.switch("spine1").role == "spine"
    assert site.host("host1").nics["ens1f0"].family == "mlx5"
    assert site.host("host1").nics["ens1f0"].rdma == "mlx5_0"
    assert {(str(link.a), str(link.b)) for link in site.topology.links} >= {
        ("host1:ens1f0", "leaf1:Ethernet1/1"),
        ("leaf1:Ethernet1/49", "spine1:Ethernet1/1"),
    }


def test_every_value_of_the_intent_says_how_many_voted_for_it(folder):
    said = {value.key: value for value in read_folder(folder).inferred}
    assert (said["lossless priorities"].value, said["lossless priorities"].votes) == ("3", 12)
    assert not any(value.assumed for value in said.values())
    assert said["RoCE TOS byte"].value == "106"


def pfc_off(path):
    edit(path / "leaf1" / RUNNING, "flow-control mode on", "flow-control mode off", 1)
    edit(path / "leaf1" / PFC, "On   On  (8) ", "Off  Off     ", 1)
    shutil.copy(path / "leaf1" / RUNNING, path / "leaf1" / STARTUP)


def nic_map(path):
    edit(path / "host2" / QOS, "\tprio:3 dscp:26,\n", "\tprio:0 dscp:26,\n")


def kmin_above_kmax(path):
    edit(path / "spine1" / RUNNING, "minimum-threshold 400 kbytes", "minimum-threshold 1600 kbytes")
    shutil.copy(path / "spine1" / RUNNING, path / "spine1" / STARTUP)


SPOILED = {
    "pfc": (pfc_off, {("pfc", "leaf1")}),
    "dscp-map": (nic_map, {("dscp-map", "host2")}),
    "ecn-range": (kmin_above_kmax, {("ecn-range", "spine1")}),
    "unsaved": (
        lambda path: edit(path / "leaf2" / STARTUP, "hostname leaf2", "hostname other"),
        {("unsaved", "leaf2")},
    ),
    "dcbx": (
        lambda path: edit(path / "host3" / QOS, "OS controlled", "Firmware controlled"),
        {("dcbx", "host3")},
    ),
}


@pytest.mark.parametrize("rule", SPOILED)
def test_one_deviation_is_found_against_what_the_others_do(folder, rule):
    spoil, expected = SPOILED[rule]
    spoil(folder)
    assert found(folder) == expected


def test_a_fix_is_in_the_language_of_the_device_that_was_saved(folder):
    pfc_off(folder)
    (finding,) = judged(read_folder(folder)).findings
    assert finding.fix == ("interface Ethernet1/1", "  priority-flow-control mode on")


def test_where_most_are_wrong_the_starter_is_assumed_and_most_are_found(folder):
    for leaf in ("leaf1", "leaf2"):
        for name in (RUNNING, STARTUP):
            old, new = "maximum-threshold 400 kbytes", "maximum-threshold 50 kbytes"
            edit(folder / leaf / name, old, new)
    fabric = read_folder(folder)
    said = {value.key: value for value in fabric.inferred}
    assert said["ECN of 25G ports"].assumed
    assert "makes no sense" in str(said["ECN of 25G ports"])
    assert {(f.rule, f.device) for f in judged(fabric).findings} == {
        ("ecn-range", "leaf1"),
        ("ecn-range", "leaf2"),
    }


def test_a_fabric_of_other_numbers_that_is_consistent_is_clean(tmp_path):
    """Other priorities, DSCPs, shares and thresholds than the starter's, and no file of it."""
    text = write_site(tmp_path).read_text()
    for old, new in (
        ("dscp: [26]", "dscp: [34, 24]"),
        ("priority: 3", "priority: 5"),
        ("dscp: [48]", "dscp: [46]"),
        ("priority: 6", "priority: 7"),
        ("mode: ets, percent: 50}\n\n", "mode: ets, percent: 30}\n\n"),
        ("kmin: 100KB, kmax: 400KB, pmax_percent: 20", "kmin: 90KB, kmax: 300KB, pmax_percent: 7"),
        ("detect_ms: 200", "detect_ms: 500"),
        ("ai_rate_mbps: 40", "ai_rate_mbps: 20"),
        ("host: 9000", "host: 4200"),
    ):
        assert old in text
        text = text.replace(old, new)
    text = text.replace("mode: ets, percent: 50", "mode: ets, percent: 70", 1)
    (tmp_path / "fabric.yaml").write_text(text)
    site = load_site(tmp_path / "fabric.yaml")
    path = tmp_path / "outputs"
    save_outputs(path, {name: sample_outputs(site, name) for name in site.devices})
    fabric = read_folder(path)
    assert judged(fabric).findings == ()
    assert not any(value.assumed for value in fabric.inferred)
    classes = fabric.site.intent
    assert (classes.roce.priority, set(classes.roce.dscp)) == (5, {34, 24})
    assert (classes.cnp.priority, classes.cnp.dscp) == (7, (46,))
    assert classes.roce.scheduler.percent == 70


def test_counters_are_judged_where_their_files_are_there(folder):
    (folder / "host1" / "ethtool_-S_ens1f0.txt").write_text(
        "NIC statistics:\n     rx_crc_errors_phy: 7\n     tx_prio3_packets: 5\n"
    )
    assert found(folder) == {("link-errors", "host1")}


def test_crc_errors_of_show_interface_need_no_other_counter_file(folder):
    edit(folder / "leaf1" / "show_interface.txt", "0 CRC", "9 CRC", 1)
    assert found(folder) == {("link-errors", "leaf1")}


def test_files_that_nobody_reads_are_named(folder):
    (folder / "leaf1" / "show_clock.txt").write_text("12:00\n")
    assert read_folder(folder).unknown_files == ("leaf1/show_clock.txt",)


def test_a_device_that_cannot_be_told_is_named_and_hides_nobody(folder):
    (folder / "box").mkdir()
    (folder / "box" / "show_clock.txt").write_text("12:00\n")
    (folder / "empty").mkdir()
    fabric = read_folder(folder)
    assert set(fabric.failed) == {"box", "empty"}
    assert judged(fabric).clean


def test_a_switch_alone_is_judged_port_by_port(folder):
    for name in ("host1", "host2", "host3", "host4", "spine1", "leaf2"):
        shutil.rmtree(folder / name)
    pfc_off(folder)
    fabric = read_folder(folder)
    assert ("pfc", "leaf1") in {(f.rule, f.device) for f in judged(fabric).findings}
    assert any("its cable is not known" in note for note in fabric.notes)


def test_missing_files_are_skips(folder):
    for file in (*folder.glob("host1/grep*"), folder / "leaf1/show_lldp_neighbors.txt"):
        file.unlink()
    report = judged(read_folder(folder))
    assert report.findings == ()
    assert {"unread", "cabling"} <= {skip.rule for skip in report.skipped}


@pytest.mark.parametrize("part", [0.05, 0.2, 0.4, 0.75, 0.9])
def test_of_a_configuration_that_was_cut_off_only_what_is_there_is_judged(tmp_path, part):
    site, path = saved(tmp_path)
    pfc_off(path)
    whole = (path / "spine1" / RUNNING).read_text()
    (path / "spine1" / RUNNING).write_text(whole[: round(len(whole) * part)])
    for fabric in (read_folder(path), read_for_site(path, site)):
        report = judged(fabric)
        assert {(f.rule, f.device) for f in report.findings} == {("pfc", "leaf1")}
        (skip,) = [s for s in report.skipped if s.reason.startswith("the running configuration")]
        assert (skip.rule, skip.device) == ("unread", "spine1")
        assert "seems cut off" in skip.reason


@pytest.mark.parametrize(
    ("line", "instead", "rule"),
    [
        ("random-detect minimum", "random-detect threshold burst-optimized ecn", "ecn"),
        ("random-detect minimum", "random-detect minimum-threshold 9 packets ecn", "ecn"),
        ("match dscp 26", "match access-group name ROCE", "dscp-map"),
    ],
)
def test_what_cannot_be_read_is_skipped_and_not_called_off(folder, line, instead, rule):
    for name in (RUNNING, STARTUP):
        lines = (folder / "leaf2" / name).read_text().splitlines()
        changed = [instead.rjust(len(instead) + 4) if line in one else one for one in lines]
        assert changed != lines
        (folder / "leaf2" / name).write_text("\n".join(changed) + "\n")
    report = judged(read_folder(folder))
    assert (rule, "leaf2") not in {(f.rule, f.device) for f in report.findings}
    reasons = [s.reason for s in report.skipped if (s.rule, s.device) == (rule, "leaf2")]
    assert any(instead in reason for reason in reasons)


def test_a_port_that_a_whole_configuration_lacks_is_missing(tmp_path):
    site, path = saved(tmp_path)
    edit(path / "spine1" / RUNNING, "interface Ethernet1/1\n", "interface Ethernet1/99\n")
    shutil.copy(path / "spine1" / RUNNING, path / "spine1" / STARTUP)
    report = judged(read_for_site(path, site))
    assert ("port-missing", "spine1") in {(f.rule, f.device) for f in report.findings}


REFUSED = "            ^\n% Invalid command at '^' marker.\n"


@pytest.mark.parametrize("answer", [REFUSED, "", "\n", "ERROR: LLDP is not enabled\n"])
@pytest.mark.parametrize(
    ("file", "fact"),
    [
        ("show_lldp_neighbors.txt", "neighbours"),
        (PFC, "live PFC state"),
        (STARTUP, "startup configuration"),
        ("show_version.txt", "model"),
        ("show_interface.txt", ""),
    ],
)
def test_one_output_that_was_refused_is_skipped_and_hides_nothing_else(folder, file, fact, answer):
    pfc_off(folder)
    (folder / "leaf2" / file).write_text(answer)
    fabric = read_folder(folder)
    report = judged(fabric)
    assert fabric.failed == {}
    assert {(f.rule, f.device) for f in report.findings} == {("pfc", "leaf1")}
    skips = [skip.reason for skip in report.skipped if skip.device == "leaf2"]
    assert any(reason.startswith(fact) for reason in skips) or not fact
    assert any(note.startswith(f"leaf2/{file}: was not answered") for note in fabric.notes)


def test_a_refused_running_configuration_is_a_device_that_cannot_be_read(folder):
    (folder / "leaf1" / RUNNING).write_text("% Permission denied for the role\n")
    fabric = read_folder(folder)
    assert set(fabric.failed) == {"leaf1"}
    assert "show running-config" in fabric.failed["leaf1"]


def test_cables_csv_goes_before_lldp_and_lldp_is_checked_against_it(tmp_path):
    site, path = saved(tmp_path)
    save_site(path, site)
    edit(path / "cables.csv", "host1:ens1f0", "host2:ens1f0", 1)
    edit(path / "cables.csv", "leaf1:Ethernet1/2,host2:ens1f0", "leaf1:Ethernet1/2,host1:ens1f0")
    report = judged(read_folder(path))
    assert [(f.rule, f.port) for f in report.findings] == [("cabling", "Ethernet1/1, Ethernet1/2")]


def test_a_wrong_system_in_devices_csv_is_said(folder):
    (folder / "devices.csv").write_text("device,os\nleaf1,linux\n")
    assert "leaf1" in read_folder(folder).failed


def test_only_some_devices(folder):
    fabric = limited(read_folder(folder), ["leaf1"])
    assert list(fabric.states) == ["leaf1"]
    with pytest.raises(InputError):
        limited(fabric, ["nobody"])


def test_a_device_of_the_file_without_a_folder_did_not_answer(tmp_path):
    site, path = saved(tmp_path)
    shutil.rmtree(path / "leaf1")
    (path / "stranger").mkdir()
    fabric = read_for_site(path, site)
    assert fabric.failed == {"leaf1": "has no folder"}
    assert any("stranger" in note for note in fabric.notes)


@pytest.mark.parametrize("seed", range(12))
def test_truncated_and_damaged_files_never_break_the_audit(folder, seed):
    random.seed(seed)
    files = sorted(folder.glob("*/*.txt"))
    for file in random.sample(files, len(files) // 3):
        data = file.read_bytes()
        cut = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0:
            data = data[:cut]
        elif kind == 1:
            data = data[:cut] + bytes(random.randrange(256) for _ in range(40)) + data[cut:]
        elif kind == 2:
            data = data.decode().encode("utf-16")
        else:
            file.unlink()
            continue
        file.write_bytes(data)
    fabric = read_folder(folder)
    judged(fabric).to_json()
    assert set(fabric.states) | set(fabric.failed) == {one.name for one in folder.iterdir()}


def test_a_fabric_that_nobody_provisioned_with_us_and_that_works_is_clean(tmp_path):
    write_foreign(tmp_path / "f")
    fabric = read_folder(tmp_path / "f")
    report = judged(fabric)
    assert report.findings == ()
    assert (report.paths.pairs, report.paths.lossless_pairs) == (56, 56)
    assert fabric.site.intent.roce.dscp == (26, 24, 25, 27, 28, 29, 30, 31)
    assert fabric.site.intent.cnp.priority == 7


def test_one_port_without_pfc_in_it_is_the_one_finding_with_its_line(tmp_path):
    write_foreign(tmp_path / "f", pfc_off="tor2:2")
    report = judged(read_folder(tmp_path / "f"))
    (finding,) = report.findings
    assert (finding.rule, finding.device, finding.port) == ("pfc", "tor2", "Ethernet1/2")
    assert "gpu6:ens1f0: PFC on 3" in finding.evidence
    assert finding.fix == ("interface Ethernet1/2", "  priority-flow-control mode on")
    assert report.paths.lossless_pairs == 42


def test_a_switch_of_it_without_ecn_is_one_finding(tmp_path):
    write_foreign(tmp_path / "f", ecn_off="tor1")
    (finding,) = judged(read_folder(tmp_path / "f")).findings
    assert (finding.rule, finding.device) == ("ecn", "tor1")
    assert finding.port.count("Ethernet") == 5


def test_more_headroom_than_a_cable_of_unknown_length_needs_is_no_fault(folder):
    """Somebody's spine has longer cables; less than any cable needs stays a fault."""
    for name in (RUNNING, STARTUP):
        edit(folder / "spine1" / name, "pause buffer-size 648338", "pause buffer-size 657088")
    assert found(folder) == set()
    for name in (RUNNING, STARTUP):
        edit(folder / "spine1" / name, "pause buffer-size 657088", "pause buffer-size 620000")
    assert found(folder) == {("headroom", "spine1")}


def test_cables_to_devices_that_were_not_read_are_counted_by_device(tmp_path):
    _, folder = saved(tmp_path)
    rows = (
        "leaf1:Ethernet1/7,host9:e0\nleaf1:Ethernet1/8,host9:e1\nleaf1:Ethernet1/1,host1:ens1f0\n"
    )
    (folder / "cables.csv").write_text("a,b\n" + rows)
    assert (
        "cables.csv: host9 was not read: 2 of its cables left out, first "
        "leaf1:Ethernet1/7 - host9:e0"
    ) in read_folder(folder).notes


def test_a_report_calls_the_table_that_told_the_cables(tmp_path):
    _, folder = saved(tmp_path)
    (folder / "cables.csv").write_text("a,b\nleaf1:Ethernet1/1,host2:ens1f0\n")
    found = judged(read_folder(folder)).findings
    (wrong,) = [f for f in found if f.rule == "cabling" and f.port == "Ethernet1/1"][:1]
    assert "LLDP sees host1:ens1f0, cables.csv says host2:ens1f0" in wrong.message
    assert wrong.fix == ("move the cable, or correct cables in cables.csv",)
