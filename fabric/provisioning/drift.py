"""What has changed on devices since a run applied its plan, as a diff of our lines."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from fabric.errors import DeviceError, InputError
from fabric.provisioning.plan import DevicePlan, change_device, undo
from fabric.provisioning.planfile import read_order
from fabric.provisioning.runs import load_result, run_folder, run_ids
from fabric.reach.collect import States
from fabric.site import Site


@dataclass(frozen=True, slots=True)
class Drift:
    """A device that no longer is as a run left it.

    ``diff`` goes from what the run left (``-``) to what is there now (``+``).
    """

    device: str
    run_id: str
    diff: str


def applied_orders(site: Site) -> dict[str, tuple[str, DevicePlan]]:
    """The last run that changed each device, and what it was to do there.

    Devices whose last change was taken back, or went wrong, are absent: nothing is
    known of what they should be. Runs whose record cannot be read are passed over.
    """
    orders: dict[str, tuple[str, DevicePlan]] = {}
    settled: set[str] = set()
    for run_id in reversed(run_ids(site)):
        with contextlib.suppress(InputError):
            result = load_result(site, run_id)
            if result.kind == "check":
                continue
            for device, outcome in result.devices.items():
                if device in settled or outcome.state in ("unchanged", "untouched"):
                    continue
                settled.add(device)
                if result.kind == "provision" and outcome.state == "done":
                    order = read_order(run_folder(site, run_id) / "plan.json", device)
                    orders[device] = (run_id, order)
    return orders


def drifts(
    site: Site, states: States, applied: Mapping[str, tuple[str, DevicePlan]]
) -> tuple[Drift, ...]:
    """Devices whose lines of ours are not what the last run left, in the states' order."""
    found = []
    for device, now in states.states.items():
        if device not in applied:
            continue
        run_id, order = applied[device]
        try:
            back = change_device(site, order.target, now, states.outputs[device], order.intended)
        except DeviceError:
            # What makes no change possible is said by the plan itself.
            continue
        if not back.change.empty:
            found.append(Drift(device, run_id, undo(back.change).diff))
    return tuple(found)
