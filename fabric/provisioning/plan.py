"""What would change on every device: from what was read to what is intended.

Pure: states and outputs in, a plan out. ``fabric.provisioning.planfile`` keeps plans on disk.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from fabric.compare import port_differences
from fabric.devices.base import Change, DeviceModule, FileChange, ReadError, Target
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.errors import AccessError, DeviceError
from fabric.qos import DeviceQos, Kind, canonical_sha256
from fabric.reach.collect import States
from fabric.site import Site

SCHEMA = "paisoar/plan/v1"


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The change of one device.

    ``intended`` is what the device can express of the intent; ``read_sha256``
    hashes ``before`` (``fabric.qos.canonical_sha256``), for a switch with the
    hash of its whole running configuration. ``half_of`` is set where a change to
    that state broke off and is to be taken back: the device may hold any part of it.
    """

    target: Target
    kind: Kind
    before: DeviceQos
    intended: DeviceQos
    change: Change
    read_sha256: str
    half_of: DeviceQos | None = None

    @property
    def device(self) -> str:
        """The device's name."""
        return self.target.device


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of one site at one time.

    ``created_at`` is ISO 8601 in UTC. ``unreadable`` says, for each device that
    could not be read, why; such a device is in no other way part of the plan.
    """

    id: str
    site: str
    site_sha256: str
    created_at: str
    devices: dict[str, DevicePlan]
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[str, ...]:
        """Devices that do not yet do what is intended."""
        return tuple(name for name, device in self.devices.items() if not device.change.empty)

    @property
    def empty(self) -> bool:
        """Every device that could be read already does what is intended."""
        return not self.changed

    def diff(self, device: str) -> str:
        """The change of one device for people; empty where there is none."""
        return self.devices[device].change.diff


def make_plan(site: Site, states: States, *, now: datetime | None = None) -> Plan:
    """The plan that brings these devices from what was read to what is intended.

    A device whose module cannot work out the change is ``unreadable``, as one
    that did not answer is.
    """
    at = (now or datetime.now(UTC)).astimezone(UTC)
    devices: dict[str, DevicePlan] = {}
    unreadable = {name: error.message for name, error in states.failed.items()}
    for name, state in states.states.items():
        try:
            devices[name] = plan_device(site, state, states.outputs[name])
        except AccessError as error:
            unreadable[name] = error.message
    return Plan(
        id=f"{at:%Y%m%d-%H%M}-{secrets.token_hex(2)}",
        site=site.name,
        site_sha256=site.sha256,
        created_at=at.isoformat(timespec="seconds"),
        devices=devices,
        unreadable=unreadable,
    )


def plan_device(site: Site, before: DeviceQos, outputs: Mapping[str, str]) -> DevicePlan:
    """The change of one device; DeviceError where it cannot be worked out."""
    device = before.device
    target = target_of(site, device)
    intended = expected_qos(site, device)
    return change_device(site, target, before, outputs, intended)


def change_device(
    site: Site,
    target: Target,
    before: DeviceQos,
    outputs: Mapping[str, str],
    intended: DeviceQos,
) -> DevicePlan:
    """The change that brings a device to any state; DeviceError where there is none."""
    try:
        change = module_of(site, target.device).change(target, outputs, intended)
    except ReadError as error:
        raise DeviceError(target.device, "work out what to change", str(error)) from error
    return DevicePlan(
        target=target,
        kind=before.kind,
        before=before,
        intended=intended,
        change=change,
        read_sha256=canonical_sha256((before,)),
    )


def undo(change: Change) -> Change:
    """The change that takes this one back."""
    return Change(
        diff=_undone(change.diff),
        commands=change.rollback,
        rollback=change.commands,
        files=tuple(
            FileChange(file.path, file.after, file.before, file.mode)
            for file in reversed(change.files)
        ),
    )


def _undone(diff: str) -> str:
    """The diff the other way round: a line stays below the one that it belongs to."""
    signs = {"+": "-", "-": "+"}
    lines = [signs.get(line[:1], line[:1]) + line[1:] for line in diff.splitlines()]
    depths = [len(line[1:]) - len(line[1:].lstrip()) for line in lines]
    for at in range(len(lines) - 1):
        pair = lines[at][:1] + lines[at + 1][:1]
        # What goes is shown before what takes its place; neither has lines below it.
        alone = depths[at] == depths[at + 1] >= max(depths[at + 2 : at + 3], default=0)
        if pair == "+-" and alone:
            lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "\n".join(lines)


def order_back(made: DevicePlan, now: DeviceQos, *, broke_off: bool) -> DevicePlan:
    """The order that takes a change back on a device that is in the state ``now``."""
    return DevicePlan(
        target=made.target,
        kind=made.kind,
        before=now,
        intended=made.before,
        change=undo(made.change),
        read_sha256=canonical_sha256((now,)),
        half_of=made.intended if broke_off else None,
    )


def order_taken_back(back: DevicePlan) -> DevicePlan:
    """The order that :func:`order_back` was made from, of a change that broke off."""
    if back.half_of is None:
        raise ValueError(f"{back.device}: this order takes back no change that broke off")
    return DevicePlan(
        target=back.target,
        kind=back.kind,
        before=back.intended,
        intended=back.half_of,
        change=undo(back.change),
        read_sha256=canonical_sha256((back.intended,)),
    )


def mismatches(now: DeviceQos, wanted: DeviceQos) -> list[str]:
    """Where a device does not do what is wanted, on the ports that ``wanted`` names."""
    lines = []
    for port in wanted.ports:
        seen = now.port(port.name)
        if seen is None:
            lines.append(f"{port.name}: the device does not show it")
        elif seen != port:
            lines += [f"{port.name}: {line}" for line in port_differences(port, seen)]
    return lines


def remains_of(
    module: DeviceModule, order: DevicePlan, now: DeviceQos, outputs: Mapping[str, str]
) -> list[str]:
    """What is left on a device of the change that this order made; empty where nothing is.

    Besides the state of its ports, in which a policy that is not in use does not
    show, nor a file that nothing has read yet, the lines and files that are ours are
    compared: where none is left, the change is planned now as it was then. Raises
    ReadError as the module does.
    """
    if now.config_sha256 and canonical_sha256((now,)) == order.read_sha256:
        return []
    found = mismatches(now, order.before)
    if found:
        return found
    again = module.change(order.target, outputs, order.intended)
    if same_work(again, order.change):
        return []
    to_come = set(again.diff.splitlines())
    there = [line for line in order.change.diff.splitlines() if line not in to_come]
    return [f"still as changed: {line}" for line in there if line[:1] in "+-"] or [
        "its configuration is not what it was"
    ]


def same_work(one: Change, other: Change) -> bool:
    """Whether two changes do the same, however they are shown."""
    return replace(one, diff="") == replace(other, diff="")


def only_ports(state: DeviceQos, wanted: DeviceQos) -> DeviceQos:
    """``state`` without the ports that ``wanted`` does not name."""
    names = {port.name for port in wanted.ports}
    return replace(state, ports=tuple(port for port in state.ports if port.name in names))
