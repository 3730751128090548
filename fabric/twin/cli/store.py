"""What a switch keeps in its folder: configurations, checkpoints, counters.

``running-config``, ``startup-config`` and ``checkpoints/NAME`` are configuration
text; ``state.json`` holds the rest. Files are replaced as a whole, so that a
killed daemon leaves the old or the new one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

CounterKey = tuple[str, str, int | None]


@dataclass
class Checkpoint:
    """A snapshot of the running configuration."""

    text: str
    created_s: float
    description: str = "None"


@dataclass
class Stored:
    """Everything that survives a restart of the twin."""

    running: str
    startup: str
    configured_at_s: float
    saved_at_s: float
    booted_at_s: float
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    counters: dict[CounterKey, int] = field(default_factory=dict)


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file as a whole, unless it holds just that."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


def write_stored(folder: Path, stored: Stored) -> None:
    """Write a switch's state to its folder."""
    write_text(folder / "running-config", stored.running)
    write_text(folder / "startup-config", stored.startup)
    for name, checkpoint in stored.checkpoints.items():
        write_text(folder / "checkpoints" / _file_name(name), checkpoint.text)
    state = {
        "configured_at_s": stored.configured_at_s,
        "saved_at_s": stored.saved_at_s,
        "booted_at_s": stored.booted_at_s,
        "checkpoints": {
            name: {"created_s": c.created_s, "description": c.description}
            for name, c in stored.checkpoints.items()
        },
        "counters": [[*key, value] for key, value in stored.counters.items()],
    }
    write_text(folder / "state.json", json.dumps(state))
    kept = {_file_name(name) for name in stored.checkpoints}
    for path in folder.glob("checkpoints/*"):
        if path.name not in kept:
            path.unlink()


def read_stored(folder: Path) -> Stored | None:
    """The state in this folder; None where a switch has never run here."""
    try:
        state = json.loads((folder / "state.json").read_text())
        return Stored(
            running=(folder / "running-config").read_text(),
            startup=(folder / "startup-config").read_text(),
            configured_at_s=state["configured_at_s"],
            saved_at_s=state["saved_at_s"],
            booted_at_s=state.get("booted_at_s", state["configured_at_s"]),
            checkpoints={
                name: Checkpoint(
                    (folder / "checkpoints" / _file_name(name)).read_text(),
                    held["created_s"],
                    held["description"],
                )
                for name, held in state["checkpoints"].items()
            },
            counters={
                (port, name, priority): value for port, name, priority, value in state["counters"]
            },
        )
    except FileNotFoundError:
        return None


def _file_name(checkpoint: str) -> str:
    """Checkpoint names are free text: hex makes any of them a file name."""
    return checkpoint.encode().hex()
