"""Configurations whose sections end in ``#``, as VRP and Comware print them.

Below a section lines are indented by a blank, ``#`` stands between sections, and
``return`` ends it all.
"""

from __future__ import annotations

import hashlib

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


def parse_hashes(text: str) -> list[Section]:
    """The top-level lines, each with what is below it; none of an empty answer."""
    return parse("\n".join(lines_of(text)))


def sha256(text: str) -> str:
    """Hash of what is configured, without times and prompts."""
    return hashlib.sha256("\n".join(lines_of(text)).encode()).hexdigest()
