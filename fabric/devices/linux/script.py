"""The boot script of a NIC port, and the systemd unit that runs it.

One script a port, ``/etc/paisoar/roce-IF.sh``: a section a setting, each of
them safe to repeat, so that it may be run by hand on a live host too. One
template unit for all of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fabric.devices.nic import Setting

UNIT_PATH = "/etc/systemd/system/paisoar-roce@.service"
SCRIPT_FOLDER = "/etc/paisoar"
SCRIPTS = f"{SCRIPT_FOLDER}/roce-*.sh"
SCRIPT_MODE = "0755"
UNIT_MODE = "0644"

_SECTION = "# == "

UNIT = f"""\
# RoCE QoS of one NIC port; written by PAISoar.
[Unit]
Description=RoCE QoS of %I
BindsTo=sys-subsystem-net-devices-%i.device
Wants=network-online.target
After=sys-subsystem-net-devices-%i.device network-online.target openibd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh {SCRIPT_FOLDER}/roce-%I.sh

[Install]
WantedBy=multi-user.target sys-subsystem-net-devices-%i.device
"""

_HEAD = """\
#!/bin/sh
# RoCE QoS of {interface}; written by PAISoar, which overwrites changes made here.
# Runs at boot ({unit}); running it again does no harm.
set -u
PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
IF={interface}

say() {{
    echo "roce $IF: $*"
}}

fail() {{
    say "FAILED: $*" >&2
    exit 1
}}

# run COMMAND...: stop with its own words where it fails.
run() {{
    output=$("$@" 2>&1) || fail "$*: exit $?: $output"
}}

# put VALUE FILE...: write to the first of these files that there is.
put() {{
    value=$1
    shift
    for file in "$@"; do
        [ -e "$file" ] || continue
        echo "$value" > "$file" || fail "cannot write $value to $file"
        return
    done
    say "left as it is, this driver does not offer it: $*"
}}

waited=0
while [ ! -d "/sys/class/net/$IF" ]; do
    [ "$waited" -lt 30 ] || fail "there is no such interface after $waited s"
    sleep 1
    waited=$((waited + 1))
done
PCI=$(basename "$(readlink -f "/sys/class/net/$IF/device")")
"""

_TAIL = """\
say "all settings are in place"
"""


def script_path(interface: str) -> str:
    """Where the port's script lies."""
    return f"{SCRIPT_FOLDER}/roce-{interface}.sh"


def unit_name(interface: str) -> str:
    """The port's instance of the template unit, escaped as systemd-escape does."""
    escaped = interface.replace("-", r"\x2d")
    return f"paisoar-roce@{escaped}.service"


def render_script(interface: str, settings: Sequence[Setting]) -> str:
    """The whole script that applies these settings."""
    parts = [_HEAD.format(interface=shlex.quote(interface), unit=unit_name(interface))]
    parts += ["\n" + _section(setting) for setting in settings]
    return "".join(parts) + f"\n{_SECTION}end\n" + _TAIL


def reproduces(
    script: str, interface: str, settings: Sequence[Setting], shown: frozenset[str]
) -> bool:
    """Whether this script, run now, would leave the live state as it is.

    ``settings`` and ``shown`` are those of a ``NicReading``. Sections about what
    the host does not show cannot be compared and count as equal; everything
    else in the file has to be exactly what we write.
    """
    sections = _sections(script)
    frame = _sections(render_script(interface, ()))
    live: Mapping[str, str] = {setting.name: _section(setting) for setting in settings}
    if any(sections.get(name) != text for name, text in frame.items()):
        return False
    if any(name not in sections for name in live):
        return False
    return all(
        text == live.get(name)
        for name, text in sections.items()
        if name not in frame and name in shown
    )


def _section(setting: Setting) -> str:
    lines = (f"{_SECTION}{setting.name}: {setting.value}", *setting.script)
    return "".join(f"{line}\n" for line in lines)


@lru_cache(maxsize=256)
def _sections(script: str) -> Mapping[str, str]:
    """Sections by the name of their setting; the head has the name ``""``."""
    sections: dict[str, str] = {}
    name = ""
    for line in script.splitlines():
        if line.startswith(_SECTION):
            name = line.removeprefix(_SECTION).partition(":")[0]
        sections[name] = sections.get(name, "") + f"{line}\n"
    return {name: text.rstrip("\n") + "\n" for name, text in sections.items()}
