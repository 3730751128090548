"""Whether a device rebooted between two snapshots, by its uptime or its boot id."""

from __future__ import annotations

from datetime import UTC, datetime

from fabric.counters import CounterSnapshot

# Some systems show whole minutes, and a snapshot takes a while.
SLACK_S = 90.0


def boot_known(before: CounterSnapshot, after: CounterSnapshot) -> bool:
    """Whether both snapshots show the same of a boot: then :func:`rebooted` is the truth."""
    return bool(before.boot_id and after.boot_id) or None not in (before.up_s, after.up_s)


def rebooted(
    before: CounterSnapshot, after: CounterSnapshot, elapsed_s: float | None = None
) -> str:
    """That the device rebooted, with both times; empty where it did not or nothing is known.

    An uptime that went back is a reboot. So is one that grew by less than the time between
    both snapshots (``elapsed_s``, else by their own clock), where the device may have been
    up for no longer than that: a clock that is set does not reboot a device.
    """
    when = f"between {_shown(before.taken_at_s)} and {_shown(after.taken_at_s)}"
    if before.boot_id and after.boot_id:
        if before.boot_id == after.boot_id:
            return ""
        return f"it rebooted {when}: boot id {before.boot_id[:8]}, then {after.boot_id[:8]}"
    if before.up_s is None or after.up_s is None:
        return ""
    elapsed = after.taken_at_s - before.taken_at_s if elapsed_s is None else elapsed_s
    late = after.up_s <= elapsed and after.up_s + SLACK_S < before.up_s + elapsed
    if after.up_s >= before.up_s and not late:
        return ""
    return f"it rebooted {when}: up for {_duration(before.up_s)}, then for {_duration(after.up_s)}"


def _shown(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
