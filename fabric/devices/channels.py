"""Ports that are members of a link aggregation (port channel), by their configuration.

PAISoar sets no port channels: RoCE's paths are routed links that ECMP spreads over. A
member that does what it should is left alone, one that does not is refused with the
lines that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fabric.devices.sections import Section, find
from fabric.errors import DeviceError

_MEMBER = re.compile(r"channel-group (\d+)\b.*")

# What a member lacks: (as it is, as it is intended) -> lines.
Lacking = Callable[[Section, Section], Sequence[Section]]


def channel_of(port: Section) -> str:
    """The number of the channel that a port is a member of; empty for none."""
    for line in port.children:
        if match := _MEMBER.fullmatch(line.text):
            return match[1]
    return ""


def without_members(
    device: str,
    running: Sequence[Section],
    intended: Sequence[Section],
    lacking: Lacking,
    channel_name: str,
) -> list[Section]:
    """The intended sections but those of members that do as intended already.

    Raises DeviceError for members that do not, with what their channel lacks.
    """
    kept: list[Section] = []
    wrong: dict[str, str] = {}
    missing: dict[str, None] = {}
    for section in intended:
        now = find(running, section.text)
        number = channel_of(now) if now is not None else ""
        if now is None or not number or not section.text.startswith("interface "):
            kept.append(section)
            continue
        if lines := lacking(now, section):
            wrong[section.text.removeprefix("interface ")] = f"{channel_name}{number}"
            missing |= dict.fromkeys(" / ".join(line.texts()) for line in lines)
    if wrong:
        members = ", ".join(f"{port} of {channel}" for port, channel in wrong.items())
        raise DeviceError(
            device,
            "planning its configuration",
            f"members of port channels are not as intended: {members}; PAISoar sets no channels.",
            advice="Take the ports out of their channel (no channel-group), so that each link is "
            f"routed by itself and ECMP spreads over them; or set by hand: {'; '.join(missing)}.",
        )
    return kept
