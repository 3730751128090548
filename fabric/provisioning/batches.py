"""Carrying out a plan by the playbook: canaries first, then batches.

One canary of each kind (switch system and role; host) goes first. Where one
could not be reached, the next of its kind takes its place; where one failed
otherwise, the run stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabric.errors import ToolError
from fabric.events import Event, EventState, OnEvent
from fabric.provisioning.outcome import Outcome, outcome_from_json
from fabric.provisioning.playside import STOPPED
from fabric.provisioning.runner import run_playbook
from fabric.provisioning.stop import StopSwitch
from fabric.reach.inventory import passwords, write_inventory
from fabric.site import Site, SwitchSpec

# The folder, in that of a run, of the changes as plans of one device each.
ORDERS = "orders"

_STATES: dict[str, EventState] = {
    "runner_on_start": "started",
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
}


class Batches:
    """The devices of one run, and how far each has come.

    ``outcomes`` holds those that have ended; ``started`` those that a task has
    been sent to.
    """

    def __init__(
        self,
        site: Site,
        folder: Path,
        playbook: str,
        *,
        check: bool,
        broken_run: str,
        save_unsaved: bool,
        lock: Path,
        parallel: int,
        stop: StopSwitch,
        on_event: OnEvent | None,
    ) -> None:
        self.site = site
        self.folder = folder
        self.playbook = playbook
        self.check = check
        self.broken_run = broken_run
        self.save_unsaved = save_unsaved
        self.lock = lock
        self.parallel = parallel
        self.stop = stop
        self.on_event = on_event
        self.outcomes: dict[str, Outcome] = {}
        self.started: dict[str, str] = {}
        self.stopped = ""
        self.stop_file = folder / "stop"
        self._stages = 0

    def run(self, devices: tuple[str, ...]) -> None:
        """Change these devices; every one of them has an outcome afterwards."""
        write_inventory(self.folder / "inventory.json", self.site, devices)
        waiting = self._canaries(devices)
        while waiting and not self._over:
            batch, waiting = waiting[: self.parallel], waiting[self.parallel :]
            self._stage(batch)
        for name in devices:
            self.outcomes.setdefault(name, Outcome("untouched", self.stopped or STOPPED))

    @property
    def _over(self) -> bool:
        return bool(self.stopped) or self.stop.stopping

    def _canaries(self, devices: tuple[str, ...]) -> tuple[str, ...]:
        """Run a canary of each kind to a good end; returns the devices still to come."""
        kinds: dict[tuple[str, str], list[str]] = {}
        for name in devices:
            kinds.setdefault(self._kind(name), []).append(name)
        proven: set[tuple[str, str]] = set()
        while len(proven) < len(kinds) and not self._over:
            canaries = {kind: names.pop(0) for kind, names in kinds.items() if kind not in proven}
            self._stage(tuple(canaries.values()))
            for kind, name in canaries.items():
                if not self.outcomes[name].unreachable or not kinds[kind]:
                    proven.add(kind)
        left = {name for names in kinds.values() for name in names}
        return tuple(name for name in devices if name in left)

    def _kind(self, name: str) -> tuple[str, str]:
        spec = self.site.devices[name]
        return (spec.os, spec.role) if isinstance(spec, SwitchSpec) else ("linux", "host")

    def _stage(self, names: tuple[str, ...]) -> None:
        self._stages += 1
        run = run_playbook(
            self.playbook,
            self.folder,
            self.folder / "inventory.json",
            ident=f"{self._stages:02}",
            check=self.check,
            extra_vars={
                # Ansible fills the name in: a device's worker reads that device's part alone.
                "paisoar_plan": str(self.folder / ORDERS / "{{ inventory_hostname }}.json"),
                "paisoar_run": self.folder.name,
                "paisoar_broken_run": self.broken_run,
                "paisoar_save_unsaved": self.save_unsaved,
                "paisoar_stop": str(self.stop_file),
            },
            limit=names,
            forks=min(self.parallel, len(names)),
            secrets=passwords(self.site, names),
            stop=self.stop,
            stop_file=self.stop_file,
            lock=self.lock,
            on_event=self._event,
        )
        for name in names:
            # Where events were lost, that of a start may be among them.
            if (name in self.started or run.unheard) and name not in self.outcomes:
                how = run.unheard or ("cut off" if run.cut_off else "no result came back")
                step = self.started.get(name, self.playbook)
                self.outcomes[name] = Outcome("failed", f"{step}: {how}")
                self.stopped = self.stopped or run.unheard or f"stopped since of {name} {how}"
        if not run.cut_off and not run.unheard and not any(name in self.started for name in names):
            end = run.output.strip()[-500:]
            self.stopped = f"{self.playbook} ended with code {run.exit_code}: {end}"
            if not self.outcomes:
                raise ToolError(f"no device was touched: {self.stopped}")
        # Ansible leaves out a play's devices once all those of the play before have failed.
        for name in names:
            self.outcomes.setdefault(name, Outcome("untouched", self.stopped or STOPPED))

    def _event(self, event: Mapping[str, Any]) -> None:
        state = _STATES.get(str(event.get("event")))
        data = event.get("event_data") or {}
        device = data.get("host")
        if state is None or device not in self.site.devices:
            return
        step = str(data.get("task", ""))
        res = data.get("res") or {}
        if state == "failed" and data.get("ignore_errors"):
            state = "ok"
        text = str(res.get("msg", "")) if state in ("failed", "unreachable") else ""
        if state == "started":
            self.started[device] = step
        elif state == "ok" and res.get("changed"):
            state = "changed"
        self._outcome(device, step, state, res, text)
        if self.on_event is not None:
            self.on_event(Event(device, step, state, text))

    def _outcome(
        self, device: str, step: str, state: EventState, res: Mapping[str, Any], text: str
    ) -> None:
        if isinstance(res.get("outcome"), dict):
            outcome = outcome_from_json(res["outcome"])
        elif state == "unreachable":
            outcome = Outcome("failed", f"{step}: {text}", unreachable=True)
        elif state == "failed":
            # A second failure is one of the way back: the first one is the cause.
            before = self.outcomes.get(device)
            cause = f"{before.detail}; then " if before else ""
            outcome = Outcome("failed", f"{cause}{step}: {text}")
        else:
            return
        self.outcomes[device] = outcome
        bad = outcome.state in ("failed", "rolled-back")
        if bad and not outcome.unreachable and not self.stopped:
            self.stopped = f"stopped since {device} failed: {outcome.detail}"
            self.stop_file.touch()
