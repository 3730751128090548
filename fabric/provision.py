"""Carrying out a plan, and taking a run back.

``provision`` refuses a plan that is not of this site's file or whose devices
have changed since, before anything is touched; ``rollback`` refuses where
somebody has changed since what the run had changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime

from fabric.batches import Batches
from fabric.collect import States, read_states
from fabric.compare import differences
from fabric.devices.base import Change
from fabric.errors import AccessError, DeviceError, InputError
from fabric.events import Event, OnEvent
from fabric.hostssh import close_hosts
from fabric.outcome import Outcome
from fabric.plan import DevicePlan, Plan, change_device, mismatches, undo
from fabric.planfile import read_plan, write_plan
from fabric.qos import canonical_sha256
from fabric.runs import RunKind, RunResult, load_result, new_id, run_folder, save_result
from fabric.site import Site
from fabric.stop import StopSwitch
from fabric.switchssh import close_switches

PARALLEL = 32
# So many of what differs are quoted in a message.
_QUOTED = 4


def provision(
    site: Site, plan: Plan, on_event: OnEvent | None = None, *, parallel: int = PARALLEL
) -> RunResult:
    """Bring every device of the plan to what it intends, and verify by reading back.

    InputError, with nothing touched, where the plan is of another site or file,
    where a device has changed since, or where the plan is not what would be
    planned now from the same state. Afterwards every device has its Outcome;
    ``RunResult.error`` is what to end with.
    """
    _refuse_foreign(site, plan)
    states = _read(site, tuple(plan.devices), on_event)
    outcomes = {
        name: Outcome("failed", f"not part of the plan, since it could not be read then: {why}")
        for name, why in plan.unreadable.items()
    }
    outcomes |= _unreadable(states)
    outcomes |= _standing(site, plan, states)
    return _carry_out(site, plan, "provision", plan.id, outcomes, parallel, on_event)


def rollback(
    site: Site, run_id: str, on_event: OnEvent | None = None, *, parallel: int = PARALLEL
) -> RunResult:
    """Put back what a run changed, as a run of its own.

    Devices that already do what they did before stay as they are. InputError,
    with nothing touched, where a device's settings have changed since the run.
    """
    result = load_result(site, run_id)
    plan = read_plan(run_folder(site, run_id) / "plan.json")
    if site.name not in (plan.site, result.site) or plan.site != result.site:
        raise InputError(f"run {run_id} is of site {plan.site!r}, this is {site.name!r}")
    changed = tuple(name for name in plan.changed if _may_have_changed(result, name))
    missing = [name for name in changed if name not in site.devices]
    if missing:
        raise InputError(
            f"run {run_id} changed {', '.join(missing)}, which the site no longer has",
            file=site.path,
            key="devices",
        )
    states = _read(site, changed, on_event)
    outcomes = _unreadable(states)
    orders: dict[str, DevicePlan] = {}
    refusals: list[str] = []
    for name, now in states.states.items():
        done = plan.devices[name]
        if not mismatches(now, done.before):
            outcomes[name] = Outcome("unchanged", "as it was before the run")
            continue
        known = result.devices.get(name)
        if known is not None and known.state == "done":
            refusals += _changed_since(site, done, states, name)
        orders[name] = DevicePlan(
            target=done.target,
            kind=done.kind,
            before=now,
            intended=done.before,
            change=undo(done.change),
            read_sha256=canonical_sha256((now,)),
        )
    if refusals:
        raise InputError(
            f"run {run_id} cannot be taken back, since its changes are no longer as it left "
            f"them: {'; '.join(refusals)}",
            advice="Nothing was touched. `paisoar plan` shows the way from here to the intent.",
        )
    back = Plan(
        id=new_id(),
        site=site.name,
        site_sha256=site.sha256,
        created_at=_now(),
        devices=orders,
    )
    return _carry_out(site, back, "rollback", run_id, outcomes, parallel, on_event)


def _refuse_foreign(site: Site, plan: Plan) -> None:
    if plan.site != site.name:
        raise InputError(f"plan {plan.id} is of site {plan.site!r}, this is {site.name!r}")
    if plan.site_sha256 != site.sha256:
        raise InputError(
            f"plan {plan.id} was made from another content of this file",
            file=site.path,
            advice="Make a new plan with `paisoar plan`.",
        )


def _standing(site: Site, plan: Plan, states: States) -> dict[str, Outcome]:
    """Devices with nothing to do; InputError where one is neither as planned nor as intended."""
    outcomes: dict[str, Outcome] = {}
    stale: list[str] = []
    foreign: list[str] = []
    for name, now in states.states.items():
        order = plan.devices[name]
        try:
            fresh = change_device(site, order.target, now, states.outputs[name], order.intended)
        except DeviceError as error:
            outcomes[name] = Outcome("failed", f"nothing was sent: {error.message}")
            continue
        if fresh.change.empty:
            outcomes[name] = Outcome("unchanged")
        elif fresh.read_sha256 != order.read_sha256:
            found = differences(order.before, now) or ["it shows another state"]
            stale.append(f"{name}: {'; '.join(found[:_QUOTED])}")
        elif not _same_work(fresh.change, order.change):
            foreign.append(name)
    if stale:
        raise InputError(
            f"plan {plan.id} is out of date, devices have changed since: {' | '.join(stale)}",
            advice="Nothing was touched. Make a new plan with `paisoar plan`.",
        )
    if foreign:
        raise InputError(
            f"plan {plan.id} holds other changes than these devices need: {', '.join(foreign)}",
            advice="Nothing was touched. Make a new plan with `paisoar plan`.",
        )
    return outcomes


def _same_work(one: Change, other: Change) -> bool:
    return dataclasses.replace(one, diff="") == dataclasses.replace(other, diff="")


def _may_have_changed(result: RunResult, name: str) -> bool:
    """Whether the run changed this device, or may have when it never came to its end."""
    outcome = result.devices.get(name)
    if outcome is None:
        return not result.ended_at
    return outcome.state in ("done", "failed")


def _changed_since(site: Site, done: DevicePlan, states: States, name: str) -> list[str]:
    now = states.states[name]
    found = mismatches(now, done.intended)
    if not found:
        try:
            again = change_device(site, done.target, now, states.outputs[name], done.intended)
        except DeviceError as error:
            return [error.message]
        found = [line for line in again.change.diff.splitlines() if line[:1] in "+-"]
        if again.change.empty:
            return []
    return [f"{name}: {'; '.join(found[:_QUOTED]) or 'its configuration'}"]


def _read(site: Site, devices: tuple[str, ...], on_event: OnEvent | None) -> States:
    step = "read again"

    def done(name: str) -> None:
        if on_event is not None:
            on_event(Event(name, step, "ok"))

    return read_states(site, devices, done)


def _unreadable(states: States) -> dict[str, Outcome]:
    return {
        name: Outcome("failed", f"nothing was sent: {error.message}", unreachable=True)
        for name, error in states.failed.items()
    }


def _carry_out(
    site: Site,
    plan: Plan,
    kind: RunKind,
    of: str,
    outcomes: Mapping[str, Outcome],
    parallel: int,
    on_event: OnEvent | None,
) -> RunResult:
    run_id = new_id()
    folder = run_folder(site, run_id)
    folder.mkdir(parents=True, mode=0o700)
    write_plan(folder / "plan.json", plan)
    result = RunResult(run_id, kind, site.name, of, _now(), "", dict(outcomes))
    save_result(site, result)
    todo = tuple(name for name in plan.changed if name not in outcomes)
    # Ansible forks: sessions of this process would only be in the way.
    close_hosts()
    close_switches()
    with StopSwitch() as stop:
        batches = Batches(
            site, folder, f"{kind}.yml", parallel=parallel, stop=stop, on_event=on_event
        )
        try:
            if todo:
                batches.run(todo)
        finally:
            found = _with_leftovers(site, plan, batches.outcomes)
            unchanged = {name: Outcome("unchanged") for name in plan.devices}
            # Whatever ends the run early: what was to change and has no outcome is as it was.
            untouched = {
                name: Outcome("untouched", "the run ended before its turn") for name in todo
            }
            devices = unchanged | untouched | dict(outcomes) | found
            result = dataclasses.replace(
                result,
                ended_at=_now(),
                devices={name: devices[name] for name in site.devices if name in devices},
                interrupted=stop.stopping,
                stopped=batches.stopped or ("interrupted" if stop.stopping else ""),
            )
            save_result(site, result)
    return result


def _with_leftovers(site: Site, plan: Plan, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Outcomes in which a failed device also says what is on it now, as far as it answers."""
    found = dict(outcomes)
    unknown = [name for name, outcome in outcomes.items() if outcome.state == "failed"]
    if not unknown:
        return found
    try:
        states = read_states(site, unknown)
    except AccessError:
        return found
    for name in unknown:
        order, now = plan.devices[name], states.states.get(name)
        if now is None:
            left = "it cannot be reached now and may hold a part of the change"
        elif not mismatches(now, order.before):
            left = "nothing of the change is on it"
        elif not mismatches(now, order.intended):
            left = "the whole change is on it"
        else:
            wrong = mismatches(now, order.intended)
            left = f"a part of the change is on it; missing: {'; '.join(wrong[:_QUOTED])}"
        detail = f"{outcomes[name].detail}. Left: {left}."
        found[name] = dataclasses.replace(outcomes[name], detail=detail)
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
