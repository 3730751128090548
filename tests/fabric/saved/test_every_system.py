"""Every system from a folder: told for what it is, read, and judged as a person would."""

import json

import pytest

from fabric.audit.run import NO_PORTS
from fabric.devices.base import TargetPort
from fabric.devices.registry import NICS, load
from fabric.saved.identify import Identified, Identifier
from fabric.saved.offline import read_folder
from tests.fabric.devices.linux.shells import Shell
from tests.fabric.saved.folders import judged
from tests.fabric.saved.vendors import (
    CONFIGURATIONS,
    SWITCHES,
    configured,
    factory,
    named,
    write,
)

NOT_CONFIGURED = {"bare-tier"}
# Cumulus Linux marks in its default queue, so it is no switch that does nothing at all.
EXPECTED = dict.fromkeys(SWITCHES, NOT_CONFIGURED) | {
    "nvue": {"pfc", "trust", "ecn-lossy-queue", "cnp-scheduler", "scheduler", "watchdog"}
}
JUNK = {
    "prose": "lorem ipsum dolor\nsit amet\n",
    "bytes": bytes(range(256)).decode("latin-1") * 9,
    "page": "<html>\n<body>\n  <p>interface Ethernet1/1</p>\n</body>\n</html>\n",
    "json": '{"a": [1, 2, {"b": 3}]}',
    "list": "[1, 2]",
    "refused": "% Invalid command at '^' marker.\n",
    "nothing": "",
    "a router's": "version 15.2\n!\ninterface GigabitEthernet1/0/1\n mtu 9198\n!\nend\n",
}


@pytest.mark.parametrize("system", SWITCHES)
def test_a_switch_from_the_factory_is_found_not_to_be_configured(tmp_path, system):
    write(tmp_path / "sw", factory(system))
    fabric = read_folder(tmp_path)
    assert fabric.failed == {}
    assert fabric.unknown_files == ()
    assert fabric.states["sw"].os == system
    assert {f.rule for f in judged(fabric).findings} == EXPECTED[system]


@pytest.mark.parametrize("system", sorted({*SWITCHES} - {"bridge", "switchdev"}))
def test_so_it_is_by_its_configuration_alone(tmp_path, system):
    """No link state, no neighbour: all its ports are judged, and it is said."""
    file = CONFIGURATIONS[system]
    write(tmp_path / "sw", {file: factory(system)[file]})
    fabric = read_folder(tmp_path)
    assert {f.rule for f in judged(fabric).findings} == EXPECTED[system]
    assert any("nothing shows which of its ports are in use" in note for note in fabric.notes)


def test_a_switch_without_a_link_is_no_pass(tmp_path):
    files = factory("nxos")
    files["show_interface.txt"] = files["show_interface.txt"].replace("1/1 is up", "1/1 is down")
    write(tmp_path / "sw", files)
    report = judged(read_folder(tmp_path))
    assert report.findings == ()
    assert [skip.device for skip in report.skipped if skip.reason == NO_PORTS] == ["sw"]


def test_all_in_one_folder_are_each_what_they_are(tmp_path):
    for system in SWITCHES:
        write(tmp_path / f"new-{system}", factory(system))
    for system, files in configured().items():
        write(tmp_path / f"old-{system}", files)
    fabric = read_folder(tmp_path)
    assert fabric.failed == {}
    assert {name: state.os for name, state in fabric.states.items()} == {
        name: name.partition("-")[2] for name in fabric.states
    }
    found = {(f.rule, f.device) for f in judged(fabric).findings}
    assert {device for _, device in found} >= {f"new-{system}" for system in SWITCHES}


@pytest.mark.parametrize("held", [*SWITCHES, *JUNK])
def test_no_file_is_taken_for_another_system(held):
    """Each configuration, and what is none, in a file of each system's name."""
    texts = [JUNK[held]] if held in JUNK else [factory(held)[CONFIGURATIONS[held]]]
    texts += [configured()[held][CONFIGURATIONS[held]]] if held in configured() else []
    names = set(CONFIGURATIONS.values())
    if held in ("eos", "nxos"):  # which have no command of this name, and ports of such names
        names.remove(CONFIGURATIONS["os10"])
    for text in texts:
        for name in names:
            found = Identifier({}).identify("box", {name: text})
            if isinstance(found, Identified):
                assert (found.state.os, name) == (held, CONFIGURATIONS[held])
            else:
                assert "cannot tell which system it runs" in found
                assert name in found


def test_junk_is_named_with_its_file_and_what_is_lacking():
    said = str(Identifier({}).identify("box", {"show_version.txt": "lorem ipsum"}))
    assert said.startswith("cannot tell which system it runs by show_version.txt (")
    assert "junos: there is no show_configuration___display_set.txt" in said
    assert "nxos: there is no show_running-config.txt" in said


@pytest.mark.parametrize(
    ("family", "rules"),
    [
        ("mlx5", {"pfc", "trust", "dcbx", "tos", "verbs-tos", "dcqcn-priority"}),
        ("bnxt", {"pfc", "trust", "tos", "verbs-tos", "dcqcn-off"}),
        ("irdma", {"pfc", "trust", "dcbx", "tos", "dcqcn-off"}),
        ("generic", {"pfc", "trust", "dcbx", "tos"}),
    ],
)
def test_a_nic_from_the_factory_has_nothing_of_roce(tmp_path, family, rules):
    shell = Shell(tmp_path, family, nics=1)
    outputs = shell.outputs()
    shell.namespace.close()
    write(tmp_path / "saved" / "gpu", named(outputs))
    fabric = read_folder(tmp_path / "saved")
    assert fabric.failed == {}
    assert fabric.unknown_files == ()
    (port,) = fabric.site.devices["gpu"].nics.values()
    assert port.family == family
    # All of them come with link pause on, and with an MTU of 1500.
    assert {f.rule for f in judged(fabric).findings} == rules | {"link-pause", "rdma-mtu"}


def test_soft_roce_is_a_skip_and_no_pass(tmp_path):
    link = [{"ifname": "ens1f0", "flags": ["UP"], "mtu": 9000, "operstate": "UP"}]
    _, shown = load(NICS, "rxe").read_commands(TargetPort("ens1f0", 0, 1.0, "rxe", "rxe0"))
    outputs = {
        "uname -r": "6.1.0-57-amd64\n",
        "ip -j link show dev ens1f0": json.dumps(link),
        shown: "/sys/class/infiniband/rxe0/parent:ens1f0\n",
        "rdma link": "link rxe0/1 state ACTIVE physical_state LINK_UP netdev ens1f0\n",
    }
    write(tmp_path / "gpu", named(outputs))
    fabric = read_folder(tmp_path)
    assert fabric.site.devices["gpu"].nics["ens1f0"].family == "rxe"
    report = judged(fabric)
    assert any(skip.rule == "software-nic" for skip in report.skipped)
    assert not {f.rule for f in report.findings} & {"pfc", "trust", "dcqcn"}
