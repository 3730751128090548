"""Systems that are asked the same are told apart by what they answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.saved.forms import named_as_read
from fabric.saved.identify import Identified, Identifier

DEVICES = Path(__file__).parents[1] / "devices"
FILES = {
    "cloudengine": "display-current-configuration.txt",
    "comware": "display-current-configuration.txt",
    "os10": "running-configuration.txt",
}
SAVED_AS = {
    "cloudengine": "display_current-configuration.txt",
    "comware": "display_current-configuration.txt",
    "os10": "show_running-configuration.txt",
}


@pytest.mark.parametrize(
    "order", [("cloudengine", "comware", "os10"), ("comware", "cloudengine", "comware")]
)
def test_one_file_is_enough_whatever_came_before(order):
    identifier = Identifier({})
    for os in order:
        text = (DEVICES / os / "fixtures" / FILES[os]).read_text()
        found = identifier.identify(f"a-{os}", {SAVED_AS[os]: text})
        assert isinstance(found, Identified), found
        assert found.state.os == os


def test_a_configuration_that_nobody_understands_says_why():
    files = {"display_current-configuration.txt": "#\ninterface Vlan7\n#\n"}
    assert "shows no port of" in str(Identifier({}).identify("box", files))


# As the EOS User Manual has it ("show version").
EOS_VERSION = """Arista DCS-7060CX-32S-F
Hardware version:    11.00
Serial number:       JPE00000000
System MAC address:  0000.0000.0000

Software image version: 4.28.3M
Architecture:           i686
"""


def test_an_eos_switch_is_known_by_the_text_of_its_version():
    running = (DEVICES / "eos/fixtures/running-config.txt").read_text()
    saved = {"show_version.txt": EOS_VERSION, "show_running-config.txt": running}
    found = Identifier({}).identify("sw1", named_as_read(saved, "sw1", []))
    assert isinstance(found, Identified), found
    assert found.state.os == "eos"
    assert found.state.model == "DCS-7060CX-32S-F"
    del saved["show_running-config.txt"]
    said = str(Identifier({}).identify("sw1", named_as_read(saved, "sw1", [])))
    assert "(eos: there is no show_running-config.txt)" in said
