"""Which lines of a running configuration are ours, in a form that can be compared.

Ours are the profiles that bear our prefix, the maps of DSCPs and traffic classes,
the buffer profile that is applied, and on the ports of the intent the settings
that it names. Everything else is left as it is, always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fabric.devices.eos.lines import (
    APPLY,
    MMU_PROFILE,
    PREFIX,
    PROFILE,
    default_traffic_class,
    dscp_map_line,
    dscp_maps,
    meaning,
    queue_maps,
    queue_number,
)
from fabric.devices.sections import Section, find

_PORT_LINES = re.compile(
    r"mtu \d+"
    r"|flowcontrol (?:receive|send) \w+"
    r"|(?:no )?qos trust.*"
    r"|service-profile \S+"
    r"|service-policy type qos input \S+"
    r"|(?:no )?priority-flow-control.*"
)
_QUEUE_LINES = re.compile(r"(?:no )?priority.*|bandwidth .*|random-detect ecn .*")


def owned(running: Sequence[Section], intended: Sequence[Section]) -> list[Section]:
    """The part of a running configuration that these intended sections replace.

    A profile of ours that something else still uses, and that is no longer
    intended, is left to it.
    """
    ports = {section.text for section in intended if section.text.startswith("interface ")}
    wanted = {section.text for section in intended}
    used = _used_elsewhere(running, ports)
    found = []
    for section in running:
        if section.text.startswith((PROFILE + PREFIX, MMU_PROFILE + PREFIX)):
            name = section.text.removesuffix(APPLY)
            if name in wanted or name.rpartition(" ")[2] not in used:
                found.append(section)
        elif section.text in ports:
            found.append(Section(section.text, list(_port_lines(section))))
        elif section.text.startswith(MMU_PROFILE) and section.text.endswith(APPLY):
            found.append(section)
        else:
            found += _single_maps(section.text)
    return found


def expand(sections: Iterable[Section]) -> list[Section]:
    """These sections with one line for each DSCP that is mapped."""
    return [single for section in sections for single in (_single_maps(section.text) or [section])]


def adopt(running: Sequence[Section], intended: Sequence[Section]) -> list[Section]:
    """The intended sections, with forms of the running lines that say as much."""
    adopted = [_adopted(find(running, section.text), section) for section in expand(intended)]
    texts = {section.text for section in adopted}
    for section in running:
        for dscp, target in dscp_maps(section.text).items():
            # What EOS does anyway may also be said.
            line = dscp_map_line((dscp,), default_traffic_class(dscp))
            if dscp_map_line((dscp,), target) == line and not any(
                text.startswith(f"qos map dscp {dscp} ") for text in texts
            ):
                adopted.append(Section(line))
    return adopted


def _adopted(now: Section | None, section: Section) -> Section:
    if now is None:
        return section
    children = []
    for child in section.children:
        text = next((c.text for c in now.children if meaning(c.text) == meaning(child.text)), "")
        found = now.child(text)
        children.append(child if found is None else _adopted(found, Section(text, child.children)))
    if now.text.startswith("uc-tx-queue ") and now.child("no priority") is None:
        # Strict is what a queue is; a system may leave out what goes without saying.
        strict = now.child("priority strict")
        children = [c for c in children if c.text != "priority strict" or strict is not None]
    return Section(section.text, children)


def _single_maps(line: str) -> list[Section]:
    """One line a DSCP or traffic class of a map; none for another line."""
    lines = [dscp_map_line((dscp,), target) for dscp, target in dscp_maps(line).items()]
    lines += [
        f"qos map traffic-class {tc} to {kind} {queue}"
        for tc, (kind, queue) in queue_maps(line).items()
    ]
    return [Section(text) for text in lines]


def _port_lines(interface: Section) -> Iterator[Section]:
    for child in interface.children:
        if _PORT_LINES.fullmatch(child.text):
            yield child
        elif queue_number(child.text) is not None:
            lines = [line for line in child.children if _QUEUE_LINES.fullmatch(line.text)]
            if lines:
                yield Section(child.text, lines)


def _used_elsewhere(running: Iterable[Section], ports: set[str]) -> set[str]:
    """Names of ours that lines which are not ours use."""
    return {
        child.text.removeprefix("service-profile ")
        for section in running
        if section.text not in ports
        for child in section.children
        if child.text.startswith("service-profile ")
    }
