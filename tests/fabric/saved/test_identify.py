"""Systems that are asked the same are told apart by what they answer."""

from __future__ import annotations

from pathlib import Path

import pytest

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
