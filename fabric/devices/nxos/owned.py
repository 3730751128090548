"""Which lines of a running configuration are ours.

Ours are the objects that bear our prefix, and on the ports of the intent the
settings that it names. Everything else is left as it is, always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fabric.devices.nxos.names import PREFIX
from fabric.devices.nxos.render import SHUTDOWN_MULTIPLIER, WATCHDOG_ON
from fabric.devices.sections import Section, find

_SUFFIXES = (" send-tlv", " no-stats")
_NETWORK_QOS = "service-policy type network-qos "
_PORT_LINES = re.compile(
    r"mtu \d+"
    r"|flowcontrol (?:receive|send) \w+"
    r"|priority-flow-control mode .*"
    r"|priority-flow-control watch-dog-interval .*"
    r"|service-policy type (?:qos input|queuing input|queuing output) .*"
)
_OBJECT = re.compile(rf"(?:class-map|policy-map) .*\b({PREFIX}\S+)")


def owned(running: Sequence[Section], intended: Sequence[Section]) -> list[Section]:
    """The part of a running configuration that these intended sections replace.

    An object of ours that something else still uses, and that is no longer
    intended, is left to it.
    """
    ports = {section.text for section in intended if section.text.startswith("interface ")}
    wanted = {name for section in intended if (name := _object_name(section)) is not None}
    kept = _used_elsewhere(running, ports) - wanted
    found = []
    for section in running:
        name = _object_name(section)
        if name is not None:
            if name not in kept:
                found.append(section)
        elif section.text in ports or section.text == "system qos":
            lines = [child for child in section.children if _is_ours(section, child)]
            if lines:
                found.append(Section(section.text, lines))
        elif _is_watchdog(section.text):
            found.append(section)
    return found


def adopt(running: Sequence[Section], intended: Sequence[Section]) -> list[Section]:
    """The intended sections, with forms of the running lines that say as much.

    ``mode on send-tlv`` is on and also tells the peer so; ``no-stats`` only
    leaves a policy's counters out.
    """
    adopted = []
    for section in intended:
        now = find(running, section.text)
        if now is None or not section.text.startswith("interface "):
            adopted.append(section)
            continue
        lines = [_form_in_use(now, child) for child in section.children]
        adopted.append(Section(section.text, lines))
    return adopted


def same_line(line: str, form: str) -> bool:
    """Whether a form of a line says as much as it."""
    return form in (line, *(line + suffix for suffix in _SUFFIXES))


def _form_in_use(now: Section, line: Section) -> Section:
    for suffix in _SUFFIXES:
        if (found := now.child(line.text + suffix)) is not None:
            return found
    return line


def _is_ours(section: Section, child: Section) -> bool:
    if section.text == "system qos":
        return child.text.startswith(_NETWORK_QOS)
    return _PORT_LINES.fullmatch(child.text) is not None


def _is_watchdog(text: str) -> bool:
    return text.startswith((WATCHDOG_ON.removesuffix(" on"), SHUTDOWN_MULTIPLIER))


def _object_name(section: Section) -> str | None:
    match = _OBJECT.fullmatch(section.text)
    return match[1] if match else None


def _used_elsewhere(running: Sequence[Section], ports: set[str]) -> set[str]:
    """Our names that lines which are not ours use, and what those objects use."""
    used = set(
        _names(
            child.text
            for section in running
            if _object_name(section) is None
            for child in (Section(section.text), *_foreign(section, ports))
        )
    )
    while True:
        more = {
            name
            for section in running
            if _object_name(section) in used
            for name in _names(section.texts())
        }
        if more <= used:
            return used
        used |= more


def _foreign(section: Section, ports: set[str]) -> Iterable[Section]:
    ours = section.text in ports or section.text == "system qos"
    for child in section.children:
        if not (ours and _is_ours(section, child)):
            yield child
            yield from _foreign(child, set())


def _names(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        for word in line.split():
            if word.startswith(PREFIX):
                yield word
