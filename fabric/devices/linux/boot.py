"""What a host does at boot: our unit, our scripts, and whether they are enabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabric.devices.linux.dump import MISSING, parse_dump
from fabric.devices.linux.script import UNIT_PATH, script_path, unit_name
from fabric.devices.linux.tools import enabled_units


@dataclass(frozen=True, slots=True)
class Boot:
    """``enabled`` and ``scripts`` by interface; an interface that is not shown is absent.

    ``files_shown`` is False where the files could not be looked at, or not be
    read; then an absent script does not mean that there is none.
    """

    enabled: Mapping[str, bool]
    scripts: Mapping[str, str]
    unit: str | None
    files_shown: bool


def read_boot(interfaces: Sequence[str], enabled: str | None, files: str | None) -> Boot:
    """From the outputs of ``systemctl is-enabled`` and ``grep -H ''``; None where refused."""
    dump = parse_dump(files or "")
    names = {unit_name(interface): interface for interface in interfaces}
    known = enabled_units(enabled, list(names)) if enabled is not None else {}
    return Boot(
        enabled={names[unit]: on for unit, on in known.items()},
        scripts={
            interface: text
            for interface in interfaces
            if (text := dump.content(script_path(interface))) is not None
        },
        unit=dump.content(UNIT_PATH),
        files_shown=files is not None
        and all(complaint == MISSING for complaint in dump.complaints.values()),
    )
