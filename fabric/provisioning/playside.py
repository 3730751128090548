"""What our action plugins do, without Ansible: each function is one plugin's work.

They run on the controller, in a worker of ``ansible-playbook``, for one device
of the inventory; ``variables`` are that device's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from fabric.compare import differences
from fabric.devices.base import DeviceModule, ReadError
from fabric.devices.registry import SWITCHES, load
from fabric.errors import DeviceError, UnreachableError
from fabric.provisioning.outcome import NOTHING_SENT, Outcome
from fabric.provisioning.plan import DevicePlan, mismatches
from fabric.provisioning.planfile import read_order, write_private
from fabric.provisioning.switchapply import apply_to_switch
from fabric.qos import DeviceQos, canonical_sha256
from fabric.reach.collect import Reading, read_at
from fabric.reach.inventory import access_from, target_from

Variables = Mapping[str, Any]
STOPPED = "the run was stopped before its turn"


def read_to_folder(device: str, variables: Variables, folder: Path | None) -> Reading:
    """Read one device; with a folder, its outputs go to ``FOLDER/DEVICE.json`` (0600)."""
    module = _module(variables)
    target = target_from(variables)
    reading = _read(device, variables, module, module.read_commands(target))
    if folder is not None:
        write_private(folder / f"{device}.json", json.dumps(dataclasses.asdict(reading)))
    return reading


def reading_from(path: Path) -> Reading:
    """What :func:`read_to_folder` wrote."""
    return Reading(**json.loads(path.read_text(encoding="utf-8")))


def stopped(stop_file: str) -> bool:
    """Whether the run was asked to stop."""
    return bool(stop_file) and Path(stop_file).exists()


def change_switch(
    device: str,
    variables: Variables,
    plan: str,
    run_id: str,
    stop_file: str,
    *,
    broken_run: str,
    check: bool,
    save_unsaved: bool,
) -> Outcome:
    """Bring one switch to what the plan intends, or leave it as it was.

    ``broken_run`` is the run that broke off, where the plan takes one back;
    ``save_unsaved`` as for ``apply_to_switch``.
    """
    order = read_order(Path(plan), device)
    if stopped(stop_file):
        return Outcome("untouched", STOPPED)
    return apply_to_switch(
        order,
        access_from(variables),
        _module(variables),
        run_id,
        broken_run=broken_run,
        check=check,
        save_unsaved=save_unsaved,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Ready:
    """What is to be done on one host. ``outcome`` is set where that is nothing."""

    order: DevicePlan
    outcome: Outcome | None = None


def ready_host(device: str, variables: Variables, plan: str, stop_file: str) -> Ready:
    """Compare a host with the plan: it is as it was read, as intended, or neither."""
    order = read_order(Path(plan), device)
    if stopped(stop_file):
        return Ready(order, Outcome("untouched", STOPPED))
    try:
        now = _state(device, variables)
    except DeviceError as error:
        lost = isinstance(error, UnreachableError)
        return Ready(order, Outcome("failed", f"{NOTHING_SENT}: {error.message}", lost))
    if canonical_sha256((now,)) == order.read_sha256:
        return Ready(order, Outcome("unchanged") if order.change.empty else None)
    if not mismatches(now, order.intended):
        return Ready(order, Outcome("unchanged"))
    changed = "; ".join(differences(order.before, now)[:5])
    return Ready(
        order, Outcome("failed", f"{NOTHING_SENT}: it has changed since it was planned: {changed}")
    )


def verify_host(
    device: str, variables: Variables, plan: str, expect: Literal["intended", "before"], cause: str
) -> Outcome:
    """Read a host back after a change (``intended``) or after taking it back (``before``)."""
    order = read_order(Path(plan), device)
    wanted = order.intended if expect == "intended" else order.before
    try:
        wrong = mismatches(_state(device, variables), wanted)
    except DeviceError as error:
        return Outcome(
            "failed", f"cannot be read back: {error.message}", isinstance(error, UnreachableError)
        )
    found = "; ".join(wrong[:5])
    if expect == "intended":
        if wrong:
            return Outcome("failed", f"it does not do what was configured: {found}")
        return Outcome("done")
    if wrong:
        return Outcome("failed", f"{cause}; rolling back left: {found}")
    return Outcome("rolled-back", cause)


def _module(variables: Variables) -> DeviceModule:
    return cast(DeviceModule, load(SWITCHES, str(variables["paisoar_os"])))


def _read(
    device: str, variables: Variables, module: DeviceModule, commands: tuple[str, ...]
) -> Reading:
    sudo = bool(variables.get("ansible_become", False))
    return read_at(device, access_from(variables), module, commands, sudo=sudo)


def _state(device: str, variables: Variables) -> DeviceQos:
    module, target = _module(variables), target_from(variables)
    reading = _read(device, variables, module, module.read_commands(target))
    try:
        return module.read(target, reading.outputs)
    except ReadError as error:
        raise DeviceError(device, "understand what it printed", str(error)) from error
