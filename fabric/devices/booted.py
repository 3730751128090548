"""Since when a device runs: what shows that it rebooted, whatever its counters say.

Formats: ``Kernel uptime is ...`` of NX-OS' ``show version``, ``uptime is ...`` of VRP's and
Comware's ``display version`` and ``Up Time:`` of OS10's ``show version`` as the fixtures of
those systems have them; ``uptime`` of EOS' JSON, float seconds; ``System booted: ... (9w3d
16:45 ago)`` of Junos' ``show system uptime``, public captures (``00:07:47`` without days);
``/proc/sys/kernel/random/boot_id``, Linux Documentation/admin-guide/sysctl/kernel.rst.
"""

from __future__ import annotations

import dataclasses
import re

from fabric.counters import CounterSnapshot
from fabric.devices.base import Outputs

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNIT_S = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDS = re.compile(r"(\d+)\s*(year|week|day|hour|minute|min|second|w(?=\d)|d(?=\s))")
_CLOCK = re.compile(r"(?<!\d)(\d+):(\d\d)(?::(\d\d))?")


def with_boot_id(snapshot: CounterSnapshot, outputs: Outputs) -> CounterSnapshot:
    """The snapshot of a Linux system with its boot id, or with why there is none."""
    shown = outputs.get(BOOT_ID, "").strip()
    if _UUID.fullmatch(shown):
        return dataclasses.replace(snapshot, boot_id=shown)
    return _without(snapshot, outputs, BOOT_ID)


def with_uptime(
    snapshot: CounterSnapshot, outputs: Outputs, command: str, pattern: str
) -> CounterSnapshot:
    """The snapshot with the duration that this pattern's group finds, or with why there is none."""
    match = re.search(pattern, outputs.get(command, ""), re.MULTILINE)
    up_s = seconds(match[1]) if match else None
    if up_s is None:
        return _without(snapshot, outputs, command)
    return dataclasses.replace(snapshot, up_s=up_s)


def _without(snapshot: CounterSnapshot, outputs: Outputs, command: str) -> CounterSnapshot:
    why = "does not show it" if command in outputs else "was not answered"
    said = f"uptime: '{command}' {why}"
    return dataclasses.replace(snapshot, missing=(*snapshot.missing, said))


def seconds(text: str) -> float | None:
    """Seconds of a duration as people read it; None where it is none.

    ``10 day(s), 1 hour(s), 8 minute(s)``, ``3 weeks, 2 days``, ``3 days 04:12:55``,
    ``9w3d 16:45``, ``5120.5``. Two numbers with a colon are hours and minutes beside days,
    else minutes and seconds.
    """
    if re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", text):
        return float(text)
    parts = _WORDS.findall(text)
    total = sum(int(number) * _UNIT_S[unit[0]] for number, unit in parts)
    clock = _CLOCK.search(text)
    if clock is None:
        return float(total) if parts else None
    first, second = int(clock[1]), int(clock[2])
    if clock[3] is not None or parts:
        return float(total + first * 3600 + second * 60 + int(clock[3] or 0))
    return float(first * 60 + second)
