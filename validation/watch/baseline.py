"""The counters of the round before, kept so that a restart misses nothing between two rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fabric.counters import Counter, CounterSnapshot
from fabric.site import Site
from validation.files import read_file, write_whole
from validation.watch.events import JUDGED
from validation.watch.reading import watch_dir


def baseline_path(site: Site) -> Path:
    """Where they lie."""
    return watch_dir(site) / "counters.json"


def write_baseline(site: Site, snapshots: Mapping[str, CounterSnapshot]) -> None:
    """Keep what is judged of these snapshots; InputError where that fails."""
    facts = {
        name: {
            "taken_at_s": snapshot.taken_at_s,
            "up_s": snapshot.up_s,
            "boot_id": snapshot.boot_id,
            "counters": [
                [c.port, c.name, c.priority, c.bits, c.value]
                for c in snapshot.counters
                if c.name in JUDGED
            ],
        }
        for name, snapshot in snapshots.items()
    }
    write_whole(baseline_path(site), json.dumps(facts, separators=(",", ":")).encode())


def read_baseline(site: Site) -> dict[str, CounterSnapshot]:
    """What the last round kept; nothing where there is none or it cannot be understood.

    Then the first round only counts, as on the first start.
    """
    try:
        facts = json.loads(read_file(baseline_path(site)))
        return {
            str(name): CounterSnapshot(
                str(name),
                float(entry["taken_at_s"]),
                tuple(
                    Counter(str(name), str(port), str(counter), int(value), priority, int(bits))
                    for port, counter, priority, bits, value in entry["counters"]
                ),
                up_s=None if entry.get("up_s") is None else float(entry["up_s"]),
                boot_id=str(entry.get("boot_id", "")),
            )
            for name, entry in facts.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
