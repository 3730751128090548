"""Carrying out a plan, and taking a run back.

``provision`` refuses a plan that is not of this site's file or whose devices
have changed since, before anything is touched; ``rollback`` refuses where
somebody has changed since what the run had changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fabric.devices.base import ReadError
from fabric.devices.registry import module_of
from fabric.errors import AccessError, InputError
from fabric.events import Event, OnEvent
from fabric.provisioning.batches import ORDERS, Batches
from fabric.provisioning.checks import (
    QUOTED,
    changed_later,
    changed_since,
    refuse_foreign,
    refuse_unsaved,
    standing,
)
from fabric.provisioning.outcome import NOTHING_SENT, Outcome
from fabric.provisioning.plan import (
    DevicePlan,
    Plan,
    mismatches,
    order_back,
    remains_of,
)
from fabric.provisioning.planfile import read_plan, write_orders, write_plan
from fabric.provisioning.runlock import run_lock
from fabric.provisioning.runs import (
    RunKind,
    RunResult,
    load_result,
    new_id,
    run_folder,
    save_result,
)
from fabric.provisioning.stop import StopSwitch
from fabric.reach.collect import States, read_states
from fabric.reach.hostssh import close_hosts
from fabric.reach.switchssh import close_switches
from fabric.site import Site

PARALLEL = 32


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that holds the site's lock, and what it is to do besides its plan."""

    id: str
    site: Site
    kind: RunKind
    of: str
    lock: Path
    parallel: int
    save_unsaved: bool
    on_event: OnEvent | None


@contextlib.contextmanager
def _alone(
    site: Site, kind: RunKind, of: str, parallel: int, save_unsaved: bool, on_event: OnEvent | None
) -> Iterator[_Run]:
    run_id = new_id()
    with run_lock(site.state_dir, run_id) as lock:
        yield _Run(run_id, site, kind, of, lock, parallel, save_unsaved, on_event)


def provision(
    site: Site,
    plan: Plan,
    on_event: OnEvent | None = None,
    *,
    only: Collection[str] | None = None,
    check: bool = False,
    parallel: int = PARALLEL,
    save_unsaved: bool = False,
) -> RunResult:
    """Bring every device of the plan to what it intends, and verify by reading back.

    ``only`` leaves all others alone, and out of the result; ``check`` changes nothing and says what
    would be changed. InputError, with nothing touched, where the plan is of
    another site or file, where a device has changed since, or where the plan is
    not what would be planned now from the same state, and, without ``save_unsaved``,
    where a switch holds changes of others that are not saved: ours would save them
    too. AccessError where another run is at work. Afterwards every device has its
    Outcome; ``RunResult.error`` is what to end with.
    """
    refuse_foreign(site, plan)
    chosen = plan if only is None else _limited(plan, only)
    kind: RunKind = "check" if check else "provision"
    with _alone(site, kind, plan.id, parallel, save_unsaved, on_event) as run:
        states = _read(run, tuple(chosen.devices))
        outcomes = {
            name: Outcome(
                "failed",
                f"{NOTHING_SENT}: not part of the plan, since it could not be read then: {why}",
            )
            for name, why in chosen.unreadable.items()
        }
        outcomes |= _unreadable(states)
        outcomes |= standing(site, chosen, states)
        if not save_unsaved:
            todo = [name for name in chosen.changed if name not in outcomes]
            refuse_unsaved(site, {name: chosen.devices[name] for name in todo}, states)
        return _carry_out(run, chosen, outcomes)


def _limited(plan: Plan, only: Collection[str]) -> Plan:
    known = {*plan.devices, *plan.unreadable}
    if strange := [name for name in only if name not in known]:
        raise InputError(
            f"plan {plan.id} says nothing of {', '.join(strange)}",
            advice="`paisoar plan` without --device plans for all.",
        )
    return dataclasses.replace(
        plan,
        devices={name: order for name, order in plan.devices.items() if name in only},
        unreadable={name: why for name, why in plan.unreadable.items() if name in only},
    )


def rollback(
    site: Site,
    run_id: str,
    on_event: OnEvent | None = None,
    *,
    only: Collection[str] | None = None,
    parallel: int = PARALLEL,
    save_unsaved: bool = False,
) -> RunResult:
    """Put back what a run changed, as a run of its own; ``only`` leaves all others alone.

    Devices that already do what they did before stay as they are. On a device
    whose change broke off, what is there of it is taken away. InputError, with
    nothing touched, where a device's settings have changed since the run.
    """
    result, plan = load_run(site, run_id)
    changed = tuple(name for name in changed_by(result, plan) if only is None or name in only)
    missing = [name for name in changed if name not in site.devices]
    if missing:
        raise InputError(
            f"run {run_id} changed {', '.join(missing)}, which the site no longer has",
            file=site.path,
            key="devices",
        )
    with _alone(site, "rollback", run_id, parallel, save_unsaved, on_event) as run:
        states = _read(run, changed)
        outcomes = _unreadable(states)
        orders: dict[str, DevicePlan] = {}
        refusals: list[str] = []
        for name, now in states.states.items():
            done = plan.devices[name]
            known = result.devices.get(name)
            broke_off = known is None or known.state != "done"
            try:
                as_before = not remains_of(module_of(site, name), done, now, states.outputs[name])
            except ReadError as error:
                outcomes[name] = Outcome("failed", f"{NOTHING_SENT}: {error}")
                continue
            # A switch whose change broke off may still hold a checkpoint, or lines to come.
            if as_before and not (broke_off and done.kind == "switch"):
                outcomes[name] = Outcome("unchanged", "as it was before the run")
                continue
            if broke_off and (later := changed_later(site, run_id, name)):
                refusals.append(f"{name}: run {later} has changed it since, take that back first")
            elif not (broke_off or as_before):
                refusals += changed_since(site, done, states, name)
            orders[name] = order_back(done, now, broke_off=broke_off)
        if refusals:
            raise InputError(
                f"run {run_id} cannot be taken back, since its changes are no longer as it left "
                f"them: {'; '.join(refusals)}",
                advice="Nothing was touched. `paisoar plan` shows the way from here to the intent.",
            )
        if not save_unsaved:
            # What broke off is not saved itself; others' changes show once it is gone.
            whole = {name: order for name, order in orders.items() if order.half_of is None}
            refuse_unsaved(site, whole, states)
        back = Plan(
            id=run.id,
            site=site.name,
            site_sha256=site.sha256,
            created_at=_now(),
            devices=orders,
        )
        return _carry_out(run, back, outcomes)


def load_run(site: Site, run_id: str) -> tuple[RunResult, Plan]:
    """A run that can be taken back, and the plan that it carried out.

    InputError where it is of another site, changed nothing, or is itself a way back.
    """
    result = load_result(site, run_id)
    if result.kind == "rollback":
        raise InputError(
            f"run {run_id} took back run {result.of}; it cannot be taken back itself",
            advice="`paisoar plan`, then `paisoar provision`, go forward again.",
        )
    if result.kind == "check":
        raise InputError(f"run {run_id} was a check: it changed nothing")
    try:
        plan = read_plan(run_folder(site, run_id) / "plan.json")
    except InputError as error:
        error.advice = (
            "What this run changed cannot be told any more. `paisoar plan` shows the way from "
            "here to the intent."
        )
        raise
    if not site.name == plan.site == result.site:
        raise InputError(f"run {run_id} is of site {plan.site!r}, this is {site.name!r}")
    return result, plan


def changed_by(result: RunResult, plan: Plan) -> tuple[str, ...]:
    """Devices that this run of this plan changed, or may have."""
    return tuple(name for name in plan.changed if _may_have_changed(result, name))


def _may_have_changed(result: RunResult, name: str) -> bool:
    """Whether the run changed this device, or may have when it never came to its end."""
    outcome = result.devices.get(name)
    if outcome is None:
        return not result.ended_at
    return outcome.may_have_changed


def _read(run: _Run, devices: tuple[str, ...]) -> States:
    step = "read again"

    def done(name: str) -> None:
        if run.on_event is not None:
            run.on_event(Event(name, step, "ok"))

    return read_states(run.site, devices, done)


def _unreadable(states: States) -> dict[str, Outcome]:
    return {
        name: Outcome("failed", f"{NOTHING_SENT}: {error.message}", unreachable=True)
        for name, error in states.failed.items()
    }


def _carry_out(run: _Run, plan: Plan, outcomes: Mapping[str, Outcome]) -> RunResult:
    folder = run_folder(run.site, run.id)
    result = RunResult(run.id, run.kind, run.site.name, run.of, _now(), "", dict(outcomes))
    try:
        folder.mkdir(parents=True, mode=0o700)
        write_plan(folder / "plan.json", plan)
        write_orders(folder / ORDERS, plan)
        save_result(run.site, result)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(
            f"the record of a run cannot be kept: {error.strerror}; nothing was touched",
            file=folder,
            advice="Make room, or see that you may write there.",
        ) from error
    todo = tuple(name for name in plan.changed if name not in outcomes)
    # Ansible forks: sessions of this process would only be in the way.
    close_hosts()
    close_switches()
    with StopSwitch() as stop:
        batches = Batches(
            run.site,
            folder,
            "rollback.yml" if run.kind == "rollback" else "provision.yml",
            check=run.kind == "check",
            broken_run=run.of if run.kind == "rollback" else "",
            save_unsaved=run.save_unsaved,
            lock=run.lock,
            parallel=run.parallel,
            stop=stop,
            on_event=run.on_event,
        )
        try:
            if todo:
                batches.run(todo)
        finally:
            found = _with_leftovers(run.site, plan, batches.outcomes)
            unchanged = {name: Outcome("unchanged") for name in plan.devices}
            # Whatever ends the run early: what was to change and has no outcome is as it was.
            untouched = {
                name: Outcome("untouched", "the run ended before its turn") for name in todo
            }
            devices = unchanged | untouched | dict(outcomes) | found
            result = dataclasses.replace(
                result,
                ended_at=_now(),
                devices={name: devices[name] for name in run.site.devices if name in devices},
                interrupted=stop.stopping,
                stopped=batches.stopped or ("interrupted" if stop.stopping else ""),
            )
            result = _kept(run.site, result)
            shutil.rmtree(folder / ORDERS, ignore_errors=True)
    return result


def _kept(site: Site, result: RunResult) -> RunResult:
    """The result, saved; where that fails it says so, since nothing else will."""
    try:
        save_result(site, result)
    except OSError as error:
        why = f"the run's result could not be kept: {error.strerror}"
        return dataclasses.replace(result, unkept=why)
    return result


def _with_leftovers(site: Site, plan: Plan, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Outcomes in which a failed device also says what is on it now, as far as it answers."""
    found = dict(outcomes)
    unknown = [
        name
        for name, outcome in outcomes.items()
        if outcome.state == "failed" and outcome.may_have_changed
    ]
    if not unknown:
        return found
    try:
        states = read_states(site, unknown)
    except AccessError:
        return found
    for name in unknown:
        left = _left(site, plan.devices[name], states)
        detail = f"{outcomes[name].detail}. Left: {left}."
        found[name] = dataclasses.replace(outcomes[name], detail=detail)
    return found


def _left(site: Site, order: DevicePlan, states: States) -> str:
    name = order.device
    now = states.states.get(name)
    if now is None:
        return "it cannot be reached now and may hold a part of the change"
    # A system that waits for a confirmation takes back by itself what is not saved.
    unsaved = ", not saved" if now.saved is False and order.before.saved else ""
    missing = mismatches(now, order.intended)
    if not missing:
        return f"the whole change is on it{unsaved}"
    try:
        remains = remains_of(module_of(site, name), order, now, states.outputs[name])
    except ReadError as error:
        return f"it cannot be said, since {error}"
    if not remains:
        return "nothing of the change is on it"
    return f"a part of the change is on it{unsaved}; missing: {'; '.join(missing[:QUOTED])}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
