"""Reading a site's devices through ``playbooks/collect.yml``.

The same reading of one device as ``fabric.reach.collect`` does, started by Ansible: the
way of ``plan`` and ``audit``, so that what a team has around its playbooks (limits,
jump hosts, a controller elsewhere) holds for them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fabric.errors import PaisoarError, ToolError, UnreachableError
from fabric.events import Event, EventState, OnEvent
from fabric.provisioning.playside import reading_from
from fabric.provisioning.runner import run_playbook
from fabric.provisioning.stop import StopSwitch
from fabric.reach.collect import Reading, States, parse_states
from fabric.reach.inventory import passwords, write_inventory
from fabric.scratch import scratch_folder
from fabric.site import Site

PARALLEL = 32
_STEP = "read"
_STATES: dict[str, EventState] = {
    "runner_on_start": "started",
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
}


def read_states_by_playbook(
    site: Site, devices: Iterable[str] | None = None, on_event: OnEvent | None = None
) -> States:
    """As ``fabric.reach.collect.read_states``, by ``playbooks/collect.yml``.

    Nothing of it stays on the disk: configurations may hold secrets. ToolError
    where Ansible itself fails; KeyboardInterrupt where it was interrupted, with
    no process left.
    """
    asked = None if devices is None else list(devices)
    names = () if asked == [] else site.select(asked)
    if not names:
        return States({}, {}, {})
    told: dict[str, str] = {}

    def event(raw: Mapping[str, Any]) -> None:
        state = _STATES.get(str(raw.get("event")))
        data = raw.get("event_data") or {}
        device = data.get("host")
        if state is None or device not in names:
            return
        text = ""
        if state in ("failed", "unreachable"):
            text = told[device] = str((data.get("res") or {}).get("msg", "no reason given"))
        if on_event is not None:
            on_event(Event(device, _STEP, state, text))

    with (
        scratch_folder() as folder,
        StopSwitch(at_once=True) as stop,
    ):
        outputs = folder / "outputs"
        outputs.mkdir(mode=0o700)
        write_inventory(folder / "inventory.json", site, names)
        run = run_playbook(
            "collect.yml",
            folder,
            folder / "inventory.json",
            ident="read",
            extra_vars={"paisoar_outputs": str(outputs)},
            forks=min(PARALLEL, len(names)),
            secrets=passwords(site, names),
            stop=stop,
            on_event=event,
        )
        if run.cut_off:
            raise KeyboardInterrupt
        readings: dict[str, Reading] = {}
        for device in names:
            path = outputs / f"{device}.json"
            if path.exists():
                readings[device] = reading_from(path)
    failed: dict[str, PaisoarError] = {
        # The message names the device already.
        device: UnreachableError(device, _STEP, text.removeprefix(f"{device}: "))
        for device, text in told.items()
    }
    silent = [device for device in names if device not in readings and device not in failed]
    if silent:
        raise ToolError(
            f"collect.yml ended with code {run.exit_code} and said nothing of "
            f"{', '.join(silent)}: {run.unheard or run.output.strip()[-500:]}"
        )
    states = parse_states(site, readings)
    return States(states.states, states.outputs, states.failed | failed, states.refused)
