"""Which system a saved device runs, and on hosts, which NICs it has.

Nobody says: every device module is asked which commands it would read. Of those that
understand what they find, the one that has a use for most of the files is right, and
of several the one that misses least.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from fabric.devices.base import CUT_OFF, DeviceModule, Outputs, ReadError, Target, TargetPort
from fabric.devices.linux.portfacts import link_command
from fabric.devices.nic import NicFamily
from fabric.devices.registry import NICS, SWITCHES, known, load
from fabric.errors import PaisoarError
from fabric.qos import DeviceQos
from fabric.saved.layout import file_name
from fabric.saved.tables import DEVICES, DeviceRow
from fabric.saved.terminal import without_echo

LINUX = "linux"
DEFAULT_SPEED_BPS = 25 * 10**9
# A refusal is the echo, a mark below it and a line or two; what is longer is an answer.
_REFUSAL_LINES = 5
# With blank lines among them; of what has more, the lines are not looked at.
_LONG_LINES = 50
_PORT, _RDMA = "PAISOARPORT", "PAISOARRDMA"
_LINKS = re.compile(r"(\w+)/\d+ state \w+.*?netdev (\S+)|^(\w+) port \d+ ==> (\S+)", re.MULTILINE)
_NDEV = re.compile(r"/sys/class/infiniband/(\w+)/ports/\d+/gid_attrs/ndevs/\d+:(\S+)")

Files = Mapping[str, str]


@dataclass(frozen=True)
class Identified:
    """One device as its files show it."""

    module: DeviceModule
    target: Target
    state: DeviceQos
    outputs: dict[str, str]


class Identifier:
    """Identifies many devices; those with files of the same names are tried once."""

    def __init__(self, hints: Mapping[str, DeviceRow]) -> None:
        self._hints = hints
        self._order: dict[tuple[str, frozenset[str]], list[str]] = {}
        self._families: dict[frozenset[str], dict[str, str]] = {}

    def identify(self, device: str, files: Files) -> Identified | str:
        """The device, or in words why it cannot be told what it is."""
        hint = self._hints.get(device, DeviceRow(device))
        names = frozenset(files)
        key = (hint.os, names)
        if key not in self._order:
            self._order[key] = [hint.os] if hint.os else self._candidates(device, files)
        if not self._order[key]:
            return "no file is the output of a command that any known system reads"
        found, why = self._read_all(device, self._order[key], hint.model, files)
        if not found and not hint.os:
            # Files of these names were another system's before.
            self._order[key] = self._candidates(device, files)
            found, why = self._read_all(device, self._order[key], hint.model, files)
        if not found:
            return "; ".join(why.values()) if hint.os else self._cannot_tell(device, why, files)
        best = min(found, key=lambda one: (-len(one.outputs), len(one.state.unread)))
        self._order[key] = [best.state.os]
        return best

    def _cannot_tell(self, device: str, why: Mapping[str, str], files: Files) -> str:
        """What of its files could be whose, and why each of these systems is none of it."""
        names: dict[str, None] = {}
        reasons = []
        for os_name, reason in why.items():
            asked = [file_name(command) for command in self._commands(device, os_name, files)]
            names |= dict.fromkeys(name for name in asked if name in files)
            # What a device does stands in the answer to the first command.
            lacks = asked[0] not in files and os_name != LINUX
            reasons.append(f"{os_name}: {f'there is no {asked[0]}' if lacks else reason}")
        return (
            f"cannot tell which system it runs by {', '.join(names)} ({'; '.join(reasons)}). "
            "Save its configuration in a file named as the command, or name its system in "
            f"{DEVICES}"
        )

    def _read_all(
        self, device: str, systems: Iterable[str], model: str, files: Files
    ) -> tuple[list[Identified], dict[str, str]]:
        """The device as each system that understands it reads it, and why the others do not."""
        found: list[Identified] = []
        why: dict[str, str] = {}
        for os_name in systems:
            try:
                found.append(self._read(device, os_name, model, files))
            except (ReadError, PaisoarError, ValueError, KeyError, IndexError) as error:
                why[os_name] = str(error).removeprefix(f"{device}: ")
        return found, why

    def _commands(self, device: str, os_name: str, files: Files) -> tuple[str, ...]:
        module: DeviceModule = load(SWITCHES, os_name)
        ports = tuple(self._ports(files)) if os_name == LINUX else ()
        return module.read_commands(Target(device, os_name, "", ports))

    def _candidates(self, device: str, files: Files) -> list[str]:
        """Systems with the most of their files here; several where it is a draw."""
        score: dict[str, float] = {}
        for name in known(SWITCHES):
            try:
                module = load(SWITCHES, name)
                ports = tuple(self._ports(files)) if name == LINUX else ()
                commands = module.read_commands(Target(device, name, "", ports))
            except (PaisoarError, ImportError, ValueError, KeyError):
                continue
            there = sum(file_name(command) in files for command in commands)
            if there and (ports or name != LINUX):
                score[name] = there / len(commands)
        best = max(score.values(), default=0.0)
        return [name for name, part in score.items() if part >= best / 2]

    def _read(self, device: str, os_name: str, model: str, files: Files) -> Identified:
        module: DeviceModule = load(SWITCHES, os_name)
        ports = tuple(self._ports(files)) if os_name == LINUX else ()
        if os_name == LINUX and not ports:
            raise ReadError("no file of a network interface")
        target = Target(device, os_name, model, ports)
        outputs = answers_of(module, module.read_commands(target), files)
        state = module.read(target, outputs)
        cut_off = any(fact.startswith(CUT_OFF) for fact in state.unread)
        if not state.ports and os_name != LINUX and not cut_off:
            raise ReadError("it shows no port of this system")
        return Identified(module, target, state, outputs)

    def _ports(self, files: Files) -> Iterator[TargetPort]:
        """The NICs of a host, from the names of its files and what they say."""
        names = frozenset(files)
        interfaces = _interfaces(names)
        if not interfaces:
            return
        rdma = _rdma_of(files, interfaces)
        for interface in sorted(interfaces):
            device = rdma.get(interface, "")
            families = interfaces[interface]
            port = TargetPort(interface, _speed_bps(files, interface), 1.0, "", device)
            key = names | {f"{interface} {device}"}
            if len(families) == 1:
                family = next(iter(families))
            else:
                known_as = self._families.setdefault(key, {})
                if interface not in known_as:
                    known_as[interface] = _best_family(port, families, files)
                family = known_as[interface]
            yield TargetPort(interface, port.speed_bps, port.cable_m, family, device)


def outputs_of(commands: Iterable[str], files: Files) -> dict[str, str]:
    """Command -> saved output, for those that were saved."""
    found = {}
    for command in commands:
        text = files.get(file_name(command))
        if text is not None:
            found[command] = without_echo(command, text)
    return found


def refusals(module: DeviceModule, commands: Iterable[str], files: Files) -> dict[str, str]:
    """Command -> the line by which a switch refused it, or that it printed nothing.

    A host's commands may print nothing, and their complaints stand among what they show.
    """
    if module.os == LINUX:
        return {}
    found = {}
    for command, text in outputs_of(commands, files).items():
        if text.count("\n") > _LONG_LINES:
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            found[command] = "an empty answer"
        elif len(lines) <= _REFUSAL_LINES and module.is_error(text):
            found[command] = next((line for line in lines if module.is_error(line)), lines[0])
    return found


def answers_of(module: DeviceModule, commands: Iterable[str], files: Files) -> dict[str, str]:
    """Command -> saved output, for those that were saved and that the device answered."""
    commands = tuple(commands)
    refused = refusals(module, commands, files)
    found = outputs_of(commands, files)
    return {command: text for command, text in found.items() if command not in refused}


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """File names of every NIC family's commands, with their interface and RDMA device."""
    patterns = []
    for name in known(NICS):
        try:
            family: NicFamily = load(NICS, name)
            port = TargetPort(_PORT, DEFAULT_SPEED_BPS, 1.0, name, _RDMA)
            commands = (*family.read_commands(port), *family.counter_commands(port))
        except (PaisoarError, ImportError, ValueError, KeyError):
            continue
        for command in commands:
            text = re.escape(file_name(command))
            if _PORT in text:
                text = text.replace(_PORT, r"(?P<port>[A-Za-z0-9][A-Za-z0-9.-]*)", 1)
                text = text.replace(_PORT, "(?P=port)").replace(_RDMA, r"\w+")
                patterns.append((name, re.compile(text)))
    return tuple(patterns)


@cache
def _interfaces(names: frozenset[str]) -> Mapping[str, Mapping[str, int]]:
    """Interface -> family -> how many of its files are here."""
    found: dict[str, dict[str, int]] = {}
    for family, pattern in _patterns():
        for name in names:
            if match := pattern.fullmatch(name):
                count = found.setdefault(match["port"], {})
                count[family] = count.get(family, 0) + 1
    best = {port: max(count.values()) for port, count in found.items()}
    return {
        port: {name: number for name, number in count.items() if number == best[port]}
        for port, count in found.items()
    }


@cache
def _rdma_names(names: frozenset[str]) -> tuple[str, ...]:
    """RDMA devices that the names of files contain."""
    pattern = re.compile(r"_sys_class_infiniband_(\w+?)_(?:hca_type|ports|tc|node_type)\b.*")
    found = {match[1] for name in names if (match := pattern.search(name))}
    return tuple(sorted(found))


def _rdma_of(files: Files, interfaces: Iterable[str]) -> dict[str, str]:
    """RDMA device of each interface: as an output says, else one after the other."""
    found: dict[str, str] = {}
    for name, text in files.items():
        if name.startswith(("rdma_", "ibdev2netdev")):
            for match in _LINKS.finditer(text):
                found[match[2] or match[4]] = match[1] or match[3]
        elif "gid_attrs" in name:
            found |= {match[2]: match[1] for match in _NDEV.finditer(text)}
    left = [name for name in _rdma_names(frozenset(files)) if name not in found.values()]
    for interface in sorted(interfaces):
        if interface not in found and left:
            found[interface] = left.pop(0)
    return found


def _speed_bps(files: Files, interface: str) -> int:
    """Speed of the link from sysfs, or what ``ethtool`` says; 25G where neither does."""
    text = files.get(file_name(link_command(TargetPort(interface, 0, 1.0))), "")
    match = re.search(rf"/sys/class/net/{re.escape(interface)}/speed:(\d+)", text) or re.search(
        r"Speed: (\d+)Mb/s", files.get(f"ethtool_{interface}.txt", "")
    )
    return int(match[1]) * 10**6 if match and int(match[1]) > 0 else DEFAULT_SPEED_BPS


def _best_family(port: TargetPort, families: Iterable[str], files: Files) -> str:
    """The family that reads the port and misses least."""
    unread: dict[str, int] = {}
    for name in families:
        own = TargetPort(port.name, port.speed_bps, port.cable_m, name, port.rdma_device)
        try:
            family: NicFamily = load(NICS, name)
            outputs: Outputs = outputs_of(family.read_commands(own), files)
            reading = family.read(own, outputs)
        except (ReadError, PaisoarError, ValueError, KeyError):
            continue
        # Driver and model are known to the family that they are of.
        strange = 0 if reading.model or reading.driver.startswith(name) else 1
        unread[name] = len(reading.unread) + 100 * (reading.port is None) + strange
    return min(unread, key=lambda name: unread[name], default=next(iter(families)))
