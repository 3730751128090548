"""Reading devices: what they do, and what they count.

``read_device`` is the one way in which a device is read; suites, the gate and
the playbooks all come through here. Many devices are read at once, and one that
fails never hides the others' results.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fabric.counters import CounterSnapshot
from fabric.devices.base import CUT_OFF, DeviceModule, ReadError, Target
from fabric.devices.registry import module_of, target_of
from fabric.errors import DeviceError, DevicesError, PaisoarError, UnreachableError
from fabric.qos import DeviceQos
from fabric.reach.access import Access, access_to
from fabric.reach.hostssh import Answer, run_on_host
from fabric.reach.switchssh import SwitchSession, switch_session
from fabric.site import Site

SWITCHES_AT_ONCE = 16

OnDone = Callable[[str], None]
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one device answered.

    ``outputs`` has what it printed, ``refused`` its complaint about each
    command that it refused: those are absent from ``outputs``.
    """

    outputs: dict[str, str]
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class States:
    """Every device's state; a device is in ``states`` or in ``failed``, never in both."""

    states: dict[str, DeviceQos]
    outputs: dict[str, dict[str, str]]
    failed: dict[str, PaisoarError]
    refused: dict[str, dict[str, str]] = field(default_factory=dict)

    def raise_failed(self) -> None:
        """DevicesError that names every device that could not be read."""
        if self.failed:
            raise DevicesError("read the devices' state", self.failed)


@dataclass(frozen=True, slots=True)
class Counters:
    """Every device's counters; a device is in ``snapshots`` or in ``failed``."""

    snapshots: dict[str, CounterSnapshot]
    failed: dict[str, PaisoarError]

    def raise_failed(self) -> None:
        """DevicesError that names every device that could not be read."""
        if self.failed:
            raise DevicesError("read the devices' counters", self.failed)


def collect_device(site: Site, device: str, commands: Sequence[str]) -> dict[str, str]:
    """What this device prints for each of these commands.

    A command that the device refuses is absent. UnreachableError where the
    device cannot be reached or logged in to, or breaks off.
    """
    return read_device(site, device, commands).outputs


def read_device(site: Site, device: str, commands: Sequence[str]) -> Reading:
    """As :func:`collect_device`, with the complaints about refused commands."""
    access = access_to(site, device)
    return read_at(device, access, module_of(site, device), commands, sudo=needs_sudo(site, access))


def needs_sudo(site: Site, access: Access) -> bool:
    """Whether commands on hosts go through ``sudo -n``: sysfs is root's.

    The twin's hosts let every user act as root of their own namespace.
    """
    return site.environment != "twin" and access.user != "root"


def read_at(
    device: str,
    access: Access,
    module: DeviceModule,
    commands: Sequence[str],
    *,
    sudo: bool = False,
) -> Reading:
    """As :func:`read_device`, for a caller that knows where the device is."""
    if module.netmiko_type:
        return _read_switch(device, access, module, commands)
    return _reading(run_on_host(device, access, commands, sudo=sudo).result())


def read_states(
    site: Site, devices: Iterable[str] | None = None, on_done: OnDone | None = None
) -> States:
    """The state of these devices, or of all. ``on_done`` is called with each one's name."""
    outputs: dict[str, dict[str, str]] = {}
    refused: dict[str, dict[str, str]] = {}

    def parse(module: DeviceModule, target: Target, reading: Reading) -> DeviceQos:
        state = _state(module, target, reading)
        outputs[target.device] = reading.outputs
        refused[target.device] = reading.refused
        return state

    states, failed = _gather(
        site,
        devices,
        lambda module, target: module.read_commands(target),
        parse,
        on_done,
    )
    return States(states, outputs, failed, refused)


def parse_states(site: Site, readings: Mapping[str, Reading]) -> States:
    """States from what devices have answered already."""
    states: dict[str, DeviceQos] = {}
    failed: dict[str, PaisoarError] = {}
    for device, reading in readings.items():
        try:
            states[device] = _parsed(
                device,
                lambda name=device, read=reading: _state(  # type: ignore[misc]
                    module_of(site, name), target_of(site, name), read
                ),
            )
        except PaisoarError as error:
            failed[device] = error
    read = [device for device in readings if device in states]
    return States(
        states,
        {device: readings[device].outputs for device in read},
        failed,
        {device: readings[device].refused for device in read},
    )


def _state(module: DeviceModule, target: Target, reading: Reading) -> DeviceQos:
    """What a device does. DeviceError where it refused every command.

    ReadError where its configuration did not come whole: what is missing is not missing
    on the device, and to ask again is easy.

    What it does not show comes with its complaints about the commands that would.
    """
    _answering(target.device, reading)
    state = module.read(target, reading.outputs)
    if not state.unread:
        return state
    for fact in state.unread:
        if fact.startswith(CUT_OFF):
            raise ReadError(f"{target.device}: {fact}")
    reasons = tuple(f"`{command}`: {said}" for command, said in reading.refused.items())
    return dataclasses.replace(state, unread=(*state.unread, *reasons))


def _answering(device: str, reading: Reading) -> None:
    """DeviceError where every command was refused: then nothing is known of the device."""
    if reading.outputs or not reading.refused:
        return
    command, said = next(iter(reading.refused.items()))
    raise DeviceError(
        device,
        f"refused all {len(reading.refused)} commands, first `{command}`",
        said,
        advice="Log in as PAISoar does and try that command; the account may lack rights "
        "(hosts: sudo without a password, or root).",
    )


def read_counters(
    site: Site, devices: Iterable[str] | None = None, on_done: OnDone | None = None
) -> Counters:
    """The counters of these devices, or of all, each stamped with its own time."""
    snapshots, failed = _gather(
        site,
        devices,
        lambda module, target: module.counter_commands(target),
        _counted,
        on_done,
    )
    return Counters(snapshots, failed)


def _counted(module: DeviceModule, target: Target, reading: Reading) -> CounterSnapshot:
    _answering(target.device, reading)
    return module.read_counters(target, reading.outputs, time.time())


def read_outputs(
    site: Site,
    devices: Iterable[str],
    commands_of: Callable[[DeviceModule, Target], Sequence[str]],
    on_done: OnDone | None = None,
) -> dict[str, dict[str, str]]:
    """What these devices print for such commands; one that does not answer is left out."""
    outputs, _ = _gather(
        site, devices, commands_of, lambda _module, _target, reading: reading.outputs, on_done
    )
    return outputs


def _gather(
    site: Site,
    devices: Iterable[str] | None,
    commands_of: Callable[[DeviceModule, Target], Sequence[str]],
    parse: Callable[[DeviceModule, Target, Reading], _Parsed],
    on_done: OnDone | None,
) -> tuple[dict[str, _Parsed], dict[str, PaisoarError]]:
    """Read many devices at once; results in the order asked, and the failures."""
    asked = None if devices is None else list(devices)
    names = () if asked == [] else site.select(asked)
    results: dict[str, _Parsed] = {}
    failed: dict[str, PaisoarError] = {}
    waiting: dict[concurrent.futures.Future[Reading], str] = {}
    with concurrent.futures.ThreadPoolExecutor(SWITCHES_AT_ONCE) as switches:
        for name in names:
            try:
                module, target = module_of(site, name), target_of(site, name)
                access, commands = access_to(site, name), commands_of(module, target)
            except PaisoarError as error:
                failed[name] = error
                continue
            if module.netmiko_type:
                future = switches.submit(_read_switch, name, access, module, commands)
            else:
                answers = run_on_host(name, access, commands, sudo=needs_sudo(site, access))
                future = _then(answers, _reading)
            waiting[future] = name
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]
            try:
                reading = done.result()
                module, target = module_of(site, name), target_of(site, name)
                results[name] = _parsed(
                    name,
                    lambda m=module, t=target, r=reading: parse(m, t, r),  # type: ignore[misc]
                )
            except PaisoarError as error:
                failed[name] = error
            if on_done is not None:
                on_done(name)
    order = {name: index for index, name in enumerate(names)}
    return (
        dict(sorted(results.items(), key=lambda item: order[item[0]])),
        dict(sorted(failed.items(), key=lambda item: order[item[0]])),
    )


def _read_switch(
    device: str, access: Access, module: DeviceModule, commands: Sequence[str]
) -> Reading:
    session: SwitchSession | None = None
    try:
        with switch_session(device, access, module.netmiko_type) as session:
            return _show_all(session, module, commands)
    except UnreachableError:
        if session is None or not session.kept:
            raise
    with switch_session(device, access, module.netmiko_type, fresh=True) as session:
        return _show_all(session, module, commands)


def _show_all(session: SwitchSession, module: DeviceModule, commands: Sequence[str]) -> Reading:
    reading = Reading({})
    for command in commands:
        answer = session.show(command)
        if module.is_error(answer):
            reading.refused[command] = answer.strip()
        else:
            reading.outputs[command] = answer
    return reading


def _reading(answers: Mapping[str, Answer]) -> Reading:
    reading = Reading({})
    for command, answer in answers.items():
        if answer.exit_status == 0:
            reading.outputs[command] = answer.stdout
        else:
            reading.refused[command] = answer.complaint
    return reading


def _parsed(device: str, parse: Callable[[], _Parsed]) -> _Parsed:
    try:
        return parse()
    except ReadError as error:
        raise DeviceError(
            device,
            "understand what it printed",
            str(error),
            advice="This release may print another form than the one that is known.",
        ) from error


_In = TypeVar("_In")
_Out = TypeVar("_Out")


def _then(
    future: concurrent.futures.Future[_In], change: Callable[[_In], _Out]
) -> concurrent.futures.Future[_Out]:
    """A future of ``change`` applied to the result; cancelled or the same error where it is so."""
    changed: concurrent.futures.Future[_Out] = concurrent.futures.Future()

    def pass_on(done: concurrent.futures.Future[_In]) -> None:
        if done.cancelled():
            changed.cancel()
            changed.set_running_or_notify_cancel()
            return
        error = done.exception()
        if error is not None:
            changed.set_exception(error)
        else:
            changed.set_result(change(done.result()))

    future.add_done_callback(pass_on)
    return changed
