"""Configurations whose sections end in ``#``, as VRP and Comware print them.

Below a section lines are indented by a blank, ``#`` stands between sections, and
``return`` ends it all.
"""

from __future__ import annotations

import hashlib

from fabric.devices import portlines
from fabric.devices.base import CUT_OFF, Outputs, ReadError, Target, require_shown
from fabric.devices.sections import Section, parse

_SEPARATORS = ("#", "return")


def lines_of(text: str) -> list[str]:
    """The lines that configure something, with their indentation.

    Lines before the first ``#`` are none of the configuration: prompts, banners and,
    on Comware and VRP, the time at which it was last changed.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    marks = [index for index, line in enumerate(lines) if line == "#"]
    body = lines[marks[0] :] if marks else lines
    kept = []
    for line in body:
        stripped = line.strip()
        if stripped and stripped not in _SEPARATORS and not stripped.startswith(("!", "<", "[")):
            kept.append(line)
    return kept


def whole(text: str) -> bool:
    """Whether the last line is there; of lines without the system's own first ones nobody can tell.

    Those are ``!Software Version`` on VRP and ``version`` on Comware.
    """
    lines = [line.strip() for line in text.splitlines()]
    printed = any(line.startswith(("!Software Version ", "version ")) for line in lines)
    return not printed or "return" in lines


def running_sections(target: Target, outputs: Outputs, command: str) -> list[Section]:
    """The running configuration; ReadError without a whole one, for then little is known."""
    text = outputs.get(command, "")
    if not whole(text):
        raise ReadError(f"{target.device}: {CUT_OFF}: '{command}' does not end with 'return'")
    return require_shown(parse_hashes(text), target.device, command)


def is_saved(outputs: Outputs, running: str, startup: str, unread: list[str]) -> bool | None:
    """Whether the switch boots with what it runs; None where that is not shown whole."""
    if not whole(outputs.get(startup, "")):
        unread.append(f"startup configuration: '{startup}' does not end with 'return'")
        return None
    return portlines.is_saved(outputs, running, startup, sha256, unread)


def parse_hashes(text: str) -> list[Section]:
    """The top-level lines, each with what is below it; none of an empty answer."""
    return parse("\n".join(lines_of(text)))


def sha256(text: str) -> str:
    """Hash of what is configured, without times and prompts."""
    return hashlib.sha256("\n".join(lines_of(text)).encode()).hexdigest()
