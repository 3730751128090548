"""One host's change, from the changes of its ports and what it does at boot."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from fabric.devices.base import Change, FileChange
from fabric.devices.linux.boot import Boot
from fabric.devices.linux.script import (
    SCRIPT_MODE,
    UNIT,
    UNIT_MODE,
    UNIT_PATH,
    script_path,
    unit_name,
)
from fabric.devices.nic import SettingChange


def host_change(
    boot: Boot, changes: Mapping[str, Sequence[SettingChange]], scripts: Mapping[str, str]
) -> Change:
    """``changes`` and ``scripts`` (the boot script that there should be) by interface."""
    diff: list[str] = []
    commands: list[str] = []
    rollback: list[str] = []
    for interface, of_port in changes.items():
        for change in of_port:
            if change.before is not None:
                diff.append(f"- {interface}: {change.name} {change.before}")
            diff.append(f"+ {interface}: {change.name} {change.after}")
            commands += change.commands
            rollback = [*change.rollback, *rollback]
    files = tuple(_files(boot, scripts))
    for file in files:
        if file.before is not None:
            diff.append(f"- {file.path} as it is now")
        diff.append(f"+ {file.path} {'rewritten' if file.before is not None else 'written'}")
    for interface in scripts:
        if not boot.enabled.get(interface):
            unit = unit_name(interface)
            diff += [f"- {interface}: at boot nothing", f"+ {interface}: at boot {unit}"]
            commands.append(f"systemctl enable {shlex.quote(unit)}")
            if interface in boot.enabled:
                rollback.insert(0, f"systemctl disable {shlex.quote(unit)}")
    return Change(
        diff="".join(f"{line}\n" for line in diff),
        commands=tuple(commands),
        rollback=tuple(rollback),
        files=files,
    )


def _files(boot: Boot, scripts: Mapping[str, str]) -> Iterator[FileChange]:
    for interface, script in scripts.items():
        before = boot.scripts.get(interface)
        if before != script:
            yield FileChange(script_path(interface), before, script, SCRIPT_MODE)
    if boot.unit != UNIT:
        yield FileChange(UNIT_PATH, boot.unit, UNIT, UNIT_MODE)
