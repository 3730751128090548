"""What a port does, with what it gets from its port channel and from port profiles.

Source: Cisco, Nexus 7000 and 5000 Series NX-OS Interfaces Configuration Guides, "Port
Profiles": a port's own lines go before its profile's, a profile's own before those of one
that it inherits; four levels; a profile has no effect until it is enabled. The running
configuration shows the ``inherit`` line alone. Unverified: that a line which a port has
from its profile is not shown below the port too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric.devices.channels import channel_of
from fabric.devices.nxos.channels import ONE_OF, POLICIES, member
from fabric.devices.sections import Section, find

_INHERIT = "inherit port-profile "
_HEAD = "port-profile "
_LEVELS = 4


def effective(port: Section, running: Sequence[Section]) -> Section:
    """The port with the lines that take effect on it, wherever they stand."""
    own = _expanded(port, running)
    number = channel_of(own)
    channel = find(running, f"interface port-channel{number}") if number else None
    return own if channel is None else member(own, _expanded(channel, running))


def _expanded(port: Section, running: Sequence[Section]) -> Section:
    """The port with the lines of its profiles that it does not say itself."""
    inherited = [Section(line) for line in inherited_lines(port, running)]
    return Section(port.text, [*port.children, *inherited]) if inherited else port


def inherited_lines(port: Section, running: Sequence[Section]) -> list[str]:
    """The lines of a port's profiles that take effect on it."""
    lines = port.lines()
    found: list[str] = []
    for profile in _profiles(port, running):
        for line in () if profile is None else profile.lines():
            start = next((one for one in (*ONE_OF, *POLICIES) if line.startswith(one)), line)
            if not any(held.startswith(start) for held in (*lines, *found)):
                found.append(line)
    return found


def unknown_profile(port: Section, running: Sequence[Section]) -> str:
    """Why not all is known of what a port inherits; empty where it is."""
    if None in _profiles(port, running):
        return f"it inherits a port-profile that is not shown: {', '.join(_named(port))}"
    return ""


def _named(section: Section) -> list[str]:
    lines = (line for line in section.lines() if line.startswith(_INHERIT))
    return [line.removeprefix(_INHERIT) for line in lines]


def _profiles(port: Section, running: Sequence[Section]) -> Iterator[Section | None]:
    """Profiles that take effect, nearest first; None for one that is not shown."""
    wanted = _named(port)
    for _ in range(_LEVELS if wanted else 0):
        level = [_profile(name, running) for name in wanted]
        yield from (one for one in level if one is None or "state enabled" in one.lines())
        wanted = [name for one in level if one is not None for name in _named(one)]


def _profile(name: str, running: Sequence[Section]) -> Section | None:
    """``port-profile type ethernet NAME``, or without a type, which then is Ethernet."""
    heads = (f"{_HEAD}type ethernet {name}", f"{_HEAD}type port-channel {name}", _HEAD + name)
    return next((found for head in heads if (found := find(running, head))), None)
