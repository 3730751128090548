"""Since when a device runs, as each system says it; formats as the module's head says."""

import pytest

from fabric.devices.base import Target, TargetPort
from fabric.devices.booted import BOOT_ID, seconds
from fabric.devices.registry import SWITCHES, load

DAY = 86400
SHOWN = [
    ("nxos", "show version", "Kernel uptime is 10 day(s), 1 hour(s), 8 minute(s), 18 second(s)\n",
     10 * DAY + 3600 + 8 * 60 + 18),
    ("eos", "show version | json", '{"uptime": 5120.5, "version": "4.30.1F"}', 5120.5),
    ("junos", "show system uptime",
     "Current time: 2015-08-11 01:19:52 UTC\n"
     "System booted: 2015-06-05 08:34:34 UTC (9w3d 16:45 ago)\n"
     "Protocols started: 2015-06-05 08:35:42 UTC (9w3d 16:44 ago)\n",
     66 * DAY + 16 * 3600 + 45 * 60),
    ("junos", "show system uptime",
     "System booted: 2017-05-19 16:49:18 UTC (00:07:47 ago)\n", 7 * 60 + 47),
    ("os10", "show version", "Architecture: x86_64\nUp Time: 3 days 04:12:55\n",
     3 * DAY + 4 * 3600 + 12 * 60 + 55),
    ("os10", "show version", "Up Time: 00:12:55\n", 12 * 60 + 55),
    ("cloudengine", "display version",
     "HUAWEI CE6865-48S8CQ-EI uptime is 0 day, 1 hour, 12 minutes\n"
     "CE6865-48S8CQ-EI(Master) 1 : uptime is  0 day, 1 hour, 10 minutes\n", 4320),
    ("comware", "display version",
     "H3C S6850-56HF uptime is 3 weeks, 2 days, 1 hour, 4 minutes\n",
     23 * DAY + 3600 + 240),
]  # fmt: skip


def read(os, command, text):
    module = load(SWITCHES, os)
    port = TargetPort(module.port_name(PORTS[os]), 10**11, 3.0)
    target = Target("box", os, "", (port,))
    assert command in module.counter_commands(target)
    return module.read_counters(target, {} if text is None else {command: text}, 1.0)


PORTS = {
    "nxos": "Ethernet1/1",
    "eos": "Ethernet1",
    "junos": "et-0/0/1",
    "os10": "ethernet1/1/1",
    "cloudengine": "25GE1/0/1",
    "comware": "Twenty-FiveGigE1/0/1",
    "sonic": "Ethernet0",
    "nvue": "swp1",
    "bridge": "swp1",
}


@pytest.mark.parametrize(("os", "command", "text", "up_s"), SHOWN)
def test_a_systems_own_words_are_its_uptime(os, command, text, up_s):
    taken = read(os, command, text)
    assert taken.up_s == up_s
    assert not any(said.startswith("uptime") for said in taken.missing)


@pytest.mark.parametrize("os", ["sonic", "nvue", "bridge"])
def test_a_linux_switch_shows_its_boot_id(os):
    boot_id = "3f0a61cc-6f0b-4f0f-9c53-0f6f3a4d2b11"
    taken = read(os, BOOT_ID, f"{boot_id}\n")
    assert (taken.boot_id, taken.up_s) == (boot_id, None)


@pytest.mark.parametrize(
    ("os", "command"),
    [
        *dict.fromkeys((os, command) for os, command, _, _ in SHOWN),
        *((os, BOOT_ID) for os in ("sonic", "nvue", "bridge")),
    ],
)
def test_what_is_not_shown_is_said(os, command):
    taken = read(os, command, None)
    assert (taken.up_s, taken.boot_id) == (None, "")
    assert f"uptime: '{command}' was not answered" in taken.missing
    strange = read(os, command, '{"else": 1}')
    assert (strange.up_s, strange.boot_id) == (None, "")
    assert f"uptime: '{command}' does not show it" in strange.missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1y2w3d 04:05", None), ("2 weeks, 1 minute", 14 * DAY + 60), ("00:05", 5), ("soon", None)],
)
def test_durations(text, expected):
    if expected is None and "y" in text:
        expected = 17 * DAY + 4 * 3600 + 300  # "1y" is in no vendor's form
    assert seconds(text) == expected
