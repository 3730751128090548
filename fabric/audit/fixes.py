"""The device's own commands that mend one finding, and nothing else of it.

A device module works out the change from what a device holds to any state. Asked
once for the state as it is, and once with the finding's fields put right, the lines
that only the second has are the fix: in the device's language, for its own
configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabric.audit.rule import Rule
from fabric.devices.base import Outputs, ReadError
from fabric.devices.registry import module_of, target_of
from fabric.errors import PaisoarError
from fabric.qos import DeviceQos, PortQos
from fabric.site import Site

# Working a change out takes a tenth of a second; a fabric with more findings than
# this is mended by a plan.
MAX_FINDINGS = 40


class Fixes:
    """Fixes for the findings of one audit, from the outputs that it judged."""

    def __init__(
        self,
        site: Site,
        states: Mapping[str, DeviceQos],
        intended: Mapping[str, DeviceQos],
        outputs: Mapping[str, Outputs],
    ) -> None:
        self._site, self._states, self._intended = site, states, intended
        self._outputs = outputs
        self._as_it_is: dict[str, Sequence[str] | None] = {}
        self._left = MAX_FINDINGS

    def lines(self, rule: Rule, device: str, ports: Sequence[str]) -> tuple[str, ...]:
        """Commands that put this rule's fields of these ports right; empty where unknown."""
        if not rule.fields or device not in self._outputs or not self._left:
            return ()
        self._left -= 1
        now = self._now(device)
        if device not in self._as_it_is:
            self._as_it_is[device] = self._commands(device, now)
        before = self._as_it_is[device]
        wanted = {port.name: port for port in self._intended[device].ports}
        mended = tuple(
            mend(port, wanted[port.name], rule.fields) if port.name in ports else port
            for port in now.ports
        )
        after = self._commands(device, dataclasses.replace(now, ports=mended))
        if before is None or after is None:
            return ()
        return only_in(after, before)

    def _now(self, device: str) -> DeviceQos:
        """The cabled ports as they are, in the form of an intended state."""
        live, intended = self._states[device], self._intended[device]
        held = (live.port(port.name) for port in intended.ports)
        return dataclasses.replace(intended, ports=tuple(port for port in held if port))

    def _commands(self, device: str, state: DeviceQos) -> Sequence[str] | None:
        try:
            change = module_of(self._site, device).change(
                target_of(self._site, device), self._outputs[device], state
            )
        except (PaisoarError, ReadError, ValueError, KeyError):
            return None
        return change.commands


def mend(port: PortQos, intended: PortQos, fields: Sequence[str]) -> PortQos:
    """The port with these fields as intended; ``nic.`` stands before those of its NIC."""
    own = {name: getattr(intended, name) for name in fields if not name.startswith("nic.")}
    nic = port.nic
    if nic is not None and intended.nic is not None:
        names = [name.removeprefix("nic.") for name in fields if name.startswith("nic.")]
        changed: dict[str, Any] = {name: getattr(intended.nic, name) for name in names}
        nic = dataclasses.replace(nic, **changed)
    return dataclasses.replace(port, **own, nic=nic)


def only_in(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Lines that the others do not have, each under the lines that it is indented below."""
    known = {_key(path) for path in _paths(others)}
    found: dict[tuple[str, ...], str] = {}
    for path in _paths(lines):
        if _key(path) not in known:
            for depth in range(1, len(path) + 1):
                found.setdefault(_key(path[:depth]), path[depth - 1])
    return tuple(found.values())


def _paths(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each line below the lines that it is indented under."""
    above: list[str] = []
    for line in lines:
        while above and _indent(above[-1]) >= _indent(line):
            above.pop()
        above.append(line)
        yield tuple(above)


def _key(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in path)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
