"""What is looked at before anything is sent: whether a plan still fits its devices.

Each says InputError, with nothing touched, or what is wrong with one device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from fabric.compare import differences
from fabric.devices.registry import expected_qos, module_of, target_of
from fabric.errors import DeviceError, InputError
from fabric.provisioning.drift import applied_orders
from fabric.provisioning.halfway import halfway_runs
from fabric.provisioning.outcome import NOTHING_SENT, Outcome
from fabric.provisioning.plan import DevicePlan, Plan, change_device, mismatches, same_work
from fabric.provisioning.runs import load_result, run_ids
from fabric.provisioning.unsaved import others_unsaved, told_unsaved
from fabric.reach.collect import States
from fabric.site import Site

# So many of what differs are quoted in a message.
QUOTED = 4


def refuse_foreign(site: Site, plan: Plan) -> None:
    """InputError where the plan was made for another site or file."""
    if plan.site != site.name:
        raise InputError(f"plan {plan.id} is of site {plan.site!r}, this is {site.name!r}")
    if plan.site_sha256 != site.sha256:
        raise InputError(
            f"plan {plan.id} was made from another content of this file",
            file=site.path,
            advice="Make a new plan with `paisoar plan`.",
        )


def standing(site: Site, plan: Plan, states: States) -> dict[str, Outcome]:
    """Devices with nothing to do; InputError where one is neither as planned nor as intended."""
    outcomes: dict[str, Outcome] = {}
    stale: list[str] = []
    foreign: list[str] = []
    for name, now in states.states.items():
        order = plan.devices[name]
        intended = expected_qos(site, name)
        if (order.target, order.intended) != (target_of(site, name), intended):
            foreign.append(name)
            continue
        try:
            fresh = change_device(site, order.target, now, states.outputs[name], intended)
        except DeviceError as error:
            outcomes[name] = Outcome("failed", f"{NOTHING_SENT}: {error.message}")
            continue
        if fresh.change.empty:
            outcomes[name] = Outcome("unchanged")
        elif fresh.read_sha256 != order.read_sha256:
            found = differences(order.before, now) or ["it shows another state"]
            stale.append(f"{name}: {'; '.join(found[:QUOTED])}")
        elif not same_work(fresh.change, order.change):
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


def changed_later(site: Site, run_id: str, name: str) -> str:
    """The later run that has changed this device and was not taken back; empty if none has."""
    later, _order = applied_orders(site).get(name, ("", None))
    ids = run_ids(site)
    return later if later and ids.index(later) > ids.index(run_id) else ""


def changed_since(site: Site, done: DevicePlan, states: States, name: str) -> list[str]:
    """What of a change that was done is no longer so; empty where all of it is."""
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
    return [f"{name}: {'; '.join(found[:QUOTED]) or 'its configuration'}"]


def refuse_unsaved(site: Site, orders: Mapping[str, DevicePlan], states: States) -> None:
    """InputError where saving a switch's change would save what is not ours."""
    found: dict[str, list[str]] = {}
    for name, order in orders.items():
        module = module_of(site, name)
        lines = others_unsaved(order, module, states.states[name], states.outputs[name])
        if lines:
            found[name] = lines
    if not found:
        return
    broken = {name: broken for name in found if (broken := _broken_off(site, name))}
    first = next(iter(found))
    save = "; ".join(module_of(site, first).safety_net("none").save)
    advice = [
        "Nothing was touched.",
        *(
            f"Run {run_id} broke off on {name}: `paisoar rollback {run_id}` takes away what is its."
            for name, run_id in broken.items()
        ),
        f"Save it on the switch ({save}) or take it back there, and plan again;"
        if save
        else "Confirm it on the switch or wait until it is taken back, and plan again;",
        "--device leaves such switches out; --save-unsaved saves it with our change.",
    ]
    told = " | ".join(f"{name}: {told_unsaved(lines)}" for name, lines in found.items())
    raise InputError(f"a switch saves all or nothing, and {told}", advice=" ".join(advice))


def _broken_off(site: Site, name: str) -> str:
    """The last run that changed this device, or was to, where it went wrong; or empty."""
    for halfway in halfway_runs(site, [name]):
        return halfway.take_back
    for run_id in reversed(run_ids(site)):
        with contextlib.suppress(InputError):
            result = load_result(site, run_id)
            outcome = result.devices.get(name)
            if outcome is not None and outcome.state in ("done", "failed", "rolled-back"):
                return run_id if result.kind == "provision" and outcome.state == "failed" else ""
    return ""
