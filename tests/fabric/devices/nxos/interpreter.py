"""A strict reader of configuration lines: what a switch would make of them.

Knows the rules that the order of commands must respect. A policy must exist
before it is attached, must be detached before it is deleted or replaced, a class
map must not be deleted while a policy uses it, PFC and link-level pause exclude
each other on a port.
"""

from __future__ import annotations

from fabric.devices.sections import Section, find

SECTIONS = ("interface ", "policy-map ", "class-map ", "system qos", "class ")
ONE_VALUE = (
    "mtu ",
    "flowcontrol receive ",
    "flowcontrol send ",
    "priority-flow-control mode ",
    "priority-flow-control watch-dog-interval ",
    "priority-flow-control watch-dog shutdown-multiplier ",
    "set qos-group ",
    "bandwidth remaining percent ",
    "random-detect ",
    "pause ",
)


class RefusedError(Exception):
    """The switch would refuse this line."""


def apply(top: list[Section], commands: tuple[str, ...]) -> list[Section]:
    """A copy of the configuration with these lines entered."""
    config = _copy(top)
    path: list[Section] = []
    for command in commands:
        depth = (len(command) - len(command.lstrip())) // 2
        line = command.strip()
        del path[depth:]
        if len(path) != depth:
            raise RefusedError(f"{line}: no section to be in")
        siblings = path[-1].children if path else config
        if line.startswith("no "):
            _remove(config, siblings, line.removeprefix("no "))
            continue
        section = _enter(config, path, siblings, line)
        path.append(section)
    return config


def _copy(sections: list[Section]) -> list[Section]:
    return [Section(section.text, _copy(section.children)) for section in sections]


def _enter(config: list[Section], path: list[Section], siblings: list[Section], line: str):
    _check(config, path, siblings, line)
    if line in ("flowcontrol receive off", "flowcontrol send off"):
        siblings[:] = [s for s in siblings if not s.text.startswith(line.removesuffix("off"))]
        return Section(line)
    existing = find(siblings, line)
    if existing is not None:
        return existing
    start = next((start for start in ONE_VALUE if line.startswith(start)), None)
    if start is not None:
        for index, sibling in enumerate(siblings):
            if sibling.text.startswith(start):
                siblings[index] = Section(line)
                return siblings[index]
    section = Section(line)
    siblings.append(section)
    return section


def _check(config, path, siblings, line) -> None:
    if line.startswith("interface ") and find(config, line) is None:
        raise RefusedError(f"{line}: there is no such port")
    if line.startswith("service-policy type "):
        words = line.split()
        name, slot = words[-1], words[:-1]
        kind = words[2]
        if not any(s.text == f"policy-map type {kind} {name}" for s in config):
            raise RefusedError(f"{line}: the policy does not exist")
        for sibling in siblings:
            if sibling.text.split()[:-1] == slot and sibling.text != line:
                raise RefusedError(f"{line}: {sibling.text} is attached")
    if line.startswith("class ") and path and path[-1].text.startswith("policy-map type qos"):
        name = line.split()[-1]
        if name != "class-default" and not any(
            s.text.startswith("class-map ") and s.text.split()[-1] == name for s in config
        ):
            raise RefusedError(f"{line}: the class map does not exist")
    texts = [sibling.text for sibling in siblings]
    if line.startswith("priority level") and any(t.startswith("bandwidth") for t in texts):
        raise RefusedError(f"{line}: the class has a bandwidth")
    if line.startswith("bandwidth") and any(t.startswith("priority level") for t in texts):
        raise RefusedError(f"{line}: the class has a priority")
    if line.startswith("priority-flow-control mode on") and any(
        t in ("flowcontrol receive on", "flowcontrol send on") for t in texts
    ):
        raise RefusedError(f"{line}: link-level pause is on")
    if line in ("flowcontrol receive on", "flowcontrol send on") and any(
        t.startswith("priority-flow-control mode on") for t in texts
    ):
        raise RefusedError(f"{line}: PFC is on")


def _remove(config: list[Section], siblings: list[Section], line: str) -> None:
    found = find(siblings, line)
    if found is None:
        raise RefusedError(f"no {line}: it is not there")
    name = line.rsplit(maxsplit=1)[-1]
    if line.startswith("policy-map "):
        for section in config:
            for child in section.children:
                if child.text.startswith("service-policy") and name in child.text.split():
                    raise RefusedError(f"no {line}: attached to {section.text}")
    if line.startswith("class-map "):
        for section in config:
            for child in section.children:
                if (
                    section.text.startswith("policy-map type qos")
                    and child.text.split()[-1] == name
                ):
                    raise RefusedError(f"no {line}: used by {section.text}")
    siblings.remove(found)


def as_set(sections: list[Section]):
    """A configuration as a value that compares whatever the order of its lines.

    A section that NX-OS prints only with something in it counts as absent.
    """
    return frozenset(
        (section.text, as_set(section.children))
        for section in sections
        if section.children or section.text != "system qos"
    )
