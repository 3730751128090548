"""Names of the files in a lab's folder, and what guests say in their console logs."""

from __future__ import annotations

from pathlib import Path

LOG = "lab.log"
KEEPER = "keeper.json"
STATE = "state.json"
SSH_CONFIG = "ssh_config"

READY = "paisoar-lab: ready"
FAILED = "paisoar-lab: failed: "
PANIC = "Kernel panic"
TAIL_BYTES = 16384


def console_name(guest: str) -> str:
    """The file that takes what a guest says on its console."""
    return f"{guest}.console.log"


def initrd_name(guest: str) -> str:
    """The file that a guest boots from."""
    return f"{guest}.initrd"


def tail_of(path: Path) -> str:
    """The end of a log; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def last_lines(path: Path, count: int = 6) -> list[str]:
    """The last lines of a log that say something."""
    return [line.strip() for line in tail_of(path).splitlines() if line.strip()][-count:]


def failure_in(console: Path) -> str:
    """Why a guest gave up, in its own or its kernel's words; empty where it has not said so."""
    for line in tail_of(console).splitlines():
        if FAILED in line:
            return line.partition(FAILED)[2].strip()
        if PANIC in line:
            return line[line.index(PANIC) :].strip()
    return ""
