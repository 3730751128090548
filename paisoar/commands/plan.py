"""``paisoar plan``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from fabric.site import load_site
from paisoar.commands.audit import DeviceOption
from paisoar.console import DEFAULT_FILE, Answer, FileOption, JsonOption, Ui, command_line, run

if TYPE_CHECKING:
    from fabric.provisioning.drift import Drift
    from fabric.provisioning.halfway import HalfwayRun

_COLORS = {"+": "green", "-": "red"}


def plan(
    file: FileOption = DEFAULT_FILE,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read every device and show, per device, what would change; changes nothing.

    What somebody else has changed since a run of ours is shown first, as a diff
    against what that run left; then what somebody has changed on a switch and not
    saved, since a switch saves all or nothing (see `paisoar provision --help`). A run of
    ours that was killed half-way is named, with the way back.

    The plan is saved under .paisoar/plans and applied by `paisoar provision`.
    Credentials of real devices come from the environment or the SSH agent:
    PAISOAR_SWITCH_USER, PAISOAR_SWITCH_PASSWORD or PAISOAR_SWITCH_KEY, and
    PAISOAR_HOST_USER, PAISOAR_HOST_PASSWORD or PAISOAR_HOST_KEY.
    """
    run(as_json, lambda ui: make(ui, file, device))


def make(ui: Ui, file: Path, names: list[str] | None = None) -> Answer:
    """Make and save a plan; the answer shows it."""
    from fabric.devices.registry import module_of
    from fabric.provisioning.drift import applied_orders, drifts
    from fabric.provisioning.halfway import halfway_runs
    from fabric.provisioning.plan import make_plan
    from fabric.provisioning.planfile import save_plan
    from fabric.provisioning.unsaved import others_unsaved, unsaved_lines
    from fabric.reach.playread import read_states_by_playbook

    site = load_site(file)
    devices = site.select(names)
    with ui.events("reading devices", len(devices)) as on_event:
        states = read_states_by_playbook(site, devices, on_event)
    made = make_plan(site, states)
    drifted = drifts(site, states, applied_orders(site))
    halfway = halfway_runs(site, devices)
    unsaved = {
        name: lines
        for name, state in states.states.items()
        if (lines := unsaved_lines(module_of(site, name), state, states.outputs[name]))
    }
    refused = [
        name
        for name in unsaved
        if name in made.changed
        and others_unsaved(
            made.devices[name], module_of(site, name), states.states[name], states.outputs[name]
        )
    ]
    unkept = {
        name: module_of(site, name).safety_net("none").save
        for name in unsaved
        if name in made.devices and name not in made.changed
    }
    path = save_plan(site, made)
    document = {
        "plan": made.id,
        "file": str(path),
        "changes": list(made.changed),
        "devices": {
            name: {
                "kind": part.kind,
                "diff": made.diff(name),
                "commands": list(part.change.commands),
                "rollback": list(part.change.rollback),
                "files": [change.path for change in part.change.files],
            }
            for name, part in made.devices.items()
        },
        "drift": [dataclasses.asdict(drift) for drift in drifted],
        "halfway": [dataclasses.asdict(one) for one in halfway],
        "unsaved": unsaved,
        "needs_save_unsaved": refused,
        "unreadable": dict(made.unreadable),
    }

    shut = [
        f"{name} {facts.port}"
        for name, state in states.states.items()
        for facts in state.facts
        if facts.admin_up is False
    ]

    def show(out: Console) -> None:
        for drift in drifted:
            show_diffs(out, {_since(drift, halfway): drift.diff})
        show_diffs(
            out,
            {f"{name}, changed and not saved": "\n".join(lines) for name, lines in unsaved.items()},
        )
        if (drifted or unsaved) and made.changed:
            out.print("")
        show_diffs(out, {name: made.diff(name) for name in made.changed})
        if shut:
            out.print(f"Shut, and left so by a plan: {', '.join(shut)}.")
        for name, why in made.unreadable.items():
            out.print(f"not read: {name}: {why.removeprefix(f'{name}: ')}")
        for name, save in unkept.items():
            how = f"save it there: {'; '.join(save)}" if save else "it waits to be confirmed there"
            out.print(f"{name} does what it should, but only until it reboots; {how}")
        for one in halfway:
            out.print(Text(str(one)))
        if refused:
            out.print(
                f"Refused as long as that is not saved, or with --save-unsaved taken along: "
                f"{', '.join(refused)}."
            )
        if made.changed:
            out.print(
                f"{len(made.changed)} of {len(made.devices)} devices would change. "
                f"Apply with: {command_line(f'provision {made.id}', file)}"
            )
        else:
            out.print(
                f"{_do_what_they_should(len(made.devices))}. Next: {command_line('validate', file)}"
                if made.devices
                else "No device could be read. Next: see to what is said above, then: "
                f"{command_line('plan', file)}"
            )

    return Answer(document, show, good=not made.unreadable, exit_code=3)


def _since(drift: Drift, halfway: Sequence[HalfwayRun]) -> str:
    """Whose change it is: what a killed run of ours may have done is not called somebody's."""
    ours = any(drift.device in one.devices for one in halfway)
    by = "" if ours else " by somebody"
    return f"{drift.device}, changed{by} since run {drift.run_id}"


def _do_what_they_should(count: int) -> str:
    if count == 1:
        return "The device that was read does what it should"
    return f"The {count} devices that were read do what they should"


def show_diffs(out: Console, diffs: Mapping[str, str]) -> None:
    """Print what changes, device by device."""
    for name, diff in diffs.items():
        out.print(Text(name, style="bold"))
        for line in diff.splitlines():
            out.print(Text("  " + line, style=_COLORS.get(line[:1], "")))
