"""Runs that were killed half-way: on which devices, and whether they are still at work."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass

from fabric.errors import InputError
from fabric.provisioning.planfile import read_plan
from fabric.provisioning.runlock import is_held
from fabric.provisioning.runs import RunResult, load_result, run_folder, run_ids
from fabric.site import Site


@dataclass(frozen=True, slots=True)
class HalfwayRun:
    """A run that never came to its end, or is not there yet.

    ``take_back`` is the run that ``paisoar rollback`` is to be told: of a roll-back that
    was killed, the one that it was taking back.
    """

    run_id: str
    kind: str
    take_back: str
    devices: tuple[str, ...]
    at_work: bool

    def __str__(self) -> str:
        some = f"{self.kind} run {self.run_id}"
        on = ", ".join(self.devices)
        if self.at_work:
            return f"{some} is at work on {on}: what is read of these may be half of it."
        return (
            f"{some} was killed half-way, and may have changed {on}. "
            f"`paisoar rollback {self.take_back}` takes back what is there of it; "
            "`paisoar provision` of this plan goes on from here."
        )


def halfway_runs(site: Site, names: Collection[str]) -> tuple[HalfwayRun, ...]:
    """Runs without an end whose devices among these no later run has settled, latest first.

    Runs whose record cannot be read are passed over.
    """
    left = dict.fromkeys(names)
    found: list[HalfwayRun] = []
    for run_id in reversed(run_ids(site)):
        with contextlib.suppress(InputError):
            result = load_result(site, run_id)
            if result.kind == "check":
                continue
            if not result.ended_at and (open_ := _open_devices(site, result, left)):
                take_back = result.of if result.kind == "rollback" else run_id
                at_work = not found and is_held(site.state_dir)
                found.append(HalfwayRun(run_id, result.kind, take_back, open_, at_work))
            for name, outcome in result.devices.items():
                if outcome.state != "untouched":
                    left.pop(name, None)
    return tuple(found)


def _open_devices(site: Site, result: RunResult, names: Collection[str]) -> tuple[str, ...]:
    """Devices that the run was to change, and of which nobody knows how it ended."""
    plan = read_plan(run_folder(site, result.run_id) / "plan.json")
    return tuple(name for name in plan.changed if name in names and name not in result.devices)
