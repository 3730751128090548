"""perftest's report in JSON, in every dialect that was released.

Up to 23.10.0-0.29 keys and texts have no quotes and commas trail, one key has a
blank at its end; since 24.01.0-0.38 it is JSON, except for a few outputs
(linux-rdma/perftest issue 216 and commit f9e82f7). All of them have one key a line,
and none says in which unit a bandwidth is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECTION = re.compile(r'\s*"?(\w+)"?\s*:\s*\{\s*')
_ENTRY = re.compile(r'\s*"?([\w.* ]+?)\s*"?\s*:\s*"?(.*?)"?\s*,?\s*')


def parse_json_report(text: str) -> Mapping[str, Mapping[str, str]]:
    """Sections (``test_info``, ``results``) with their keys and values as text."""
    sections: dict[str, dict[str, str]] = {}
    inside: dict[str, str] | None = None
    for line in text.splitlines():
        if section := _SECTION.fullmatch(line):
            inside = sections.setdefault(section[1], {})
        elif inside is not None and (entry := _ENTRY.fullmatch(line)):
            inside[entry[1]] = entry[2]
    return sections


def figure(text: str, name: str) -> float | None:
    """One number of ``results``; None where it is not there or is none."""
    value = parse_json_report(text).get("results", {}).get(name)
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
