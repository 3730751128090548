"""A recorded terminal session of any system is read as its plain outputs are."""

import re

import pytest

from fabric.saved.offline import read_folder
from tests.fabric.saved.vendors import SWITCHES, configured, write

# System -> the prompt of a device that is named sw, and its pager.
TERMINALS = {
    "nxos": ("sw# ", "--More--\r        \r"),
    "eos": ("sw#", "\x1b[7m--More--\x1b[27m\r\x1b[K"),
    "sonic": ("admin@sw:~$ ", "--More--\r        \r"),
    "nvue": ("cumulus@sw:mgmt:~$ ", "--More--\r        \r"),
    "os10": ("sw# ", "--More--\r        \r"),
    "junos": ("admin@sw> ", "---(more 12%)---\r                \r"),
    "cloudengine": ("<sw>", "  ---- More ----\x1b[16D                \x1b[16D"),
    "comware": ("<sw>", "---- More ----\r              \r"),
    "bridge": ("root@sw:~# ", "--More--\r        \r"),
}
BANNER = "\r\nAuthorized use only! All sessions are logged.\r\n\r\n"
PAGE_LINES = 24
_HOSTNAME = re.compile(r"^ *(?:hostname|sysname|set system host-name) (\S+)$", re.MULTILINE)


def _typed(name: str) -> str:
    """The command whose output stands in a file of this name."""
    words = name.removesuffix(".txt").replace("_", " ")
    special = {"cat  etc sonic config db.json": "cat /etc/sonic/config_db.json"}
    return special.get(words, words)


def _session(system: str, host: str, command: str, text: str, *, paged: bool) -> str:
    """What a terminal program keeps of one command typed after a login."""
    prompt, pager = TERMINALS[system]
    prompt = prompt.replace("sw", host)
    lines = text.splitlines()
    if paged:
        for number in range(PAGE_LINES, len(lines), PAGE_LINES):
            lines[number] = pager + lines[number]
    return BANNER + f"{prompt}{command}\r\n" + "\r\n".join(lines) + f"\r\n{prompt}"


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("system", sorted({*SWITCHES} & {*TERMINALS}))
def test_banner_echo_pager_and_prompts_change_nothing(tmp_path, system, paged):
    plain = configured()[system]
    found = (_HOSTNAME.search(text) for text in plain.values())
    host = next((match[1] for match in found if match), "sw")
    noisy = {
        name: _session(system, host, _typed(name), text, paged=paged)
        for name, text in plain.items()
    }
    write(tmp_path / "plain" / "sw", plain)
    write(tmp_path / "noisy" / "sw", noisy)
    expected, got = read_folder(tmp_path / "plain"), read_folder(tmp_path / "noisy")
    assert expected.failed == got.failed == {}
    assert got.states["sw"].ports == expected.states["sw"].ports
    assert got.states["sw"] == expected.states["sw"]
    assert got.counters == expected.counters


def test_every_system_has_its_terminal():
    assert {*SWITCHES} - {"switchdev"} == {*TERMINALS}
    assert {*configured()} == {*TERMINALS}
