"""Configurations without a mark at their end: other outputs tell that they were cut off."""

import pytest

from fabric.saved.offline import read_folder
from tests.fabric.saved.folders import judged
from tests.fabric.saved.vendors import CONFIGURATIONS, factory, write


@pytest.mark.parametrize(
    "at", ["interface ethernet1/1/2", " flowcontrol receive on\n!\ninterface ethernet1/1/2"]
)
def test_os10_lacks_a_port_that_has_a_neighbour(tmp_path, at):
    files = factory("os10")
    lldp = files["show_lldp_neighbors.txt"].replace("ethernet1/1/1 ", "ethernet1/1/2 ")
    write(tmp_path / "whole" / "sw", files | {"show_lldp_neighbors.txt": lldp})
    assert {f.rule for f in judged(read_folder(tmp_path / "whole")).findings} == {"bare-tier"}
    text = files[CONFIGURATIONS["os10"]]
    files |= {CONFIGURATIONS["os10"]: text[: text.index(at)], "show_lldp_neighbors.txt": lldp}
    write(tmp_path / "cut" / "sw", files)
    report = judged(read_folder(tmp_path / "cut"))
    assert report.findings == ()
    assert any("seems cut off: 'show lldp neighbors' shows" in s.reason for s in report.skipped)


def test_junos_that_ends_among_its_interfaces_is_not_judged(tmp_path):
    files = factory("junos")
    up = files["show_interfaces.txt"].replace("link is Down", "link is Up")
    text = files[CONFIGURATIONS["junos"]]
    text = text[: text.index("set interfaces et-0/0/1")]
    files |= {"show_interfaces.txt": up, CONFIGURATIONS["junos"]: text}
    write(tmp_path / "sw", files)
    assert "seems cut off: et-0/0/1 is up" in read_folder(tmp_path).failed["sw"]
    told = text + "set class-of-service interfaces et-0/0/0 scheduler-map M\n"
    (tmp_path / "sw" / CONFIGURATIONS["junos"]).write_text(told)
    assert read_folder(tmp_path).failed == {}
