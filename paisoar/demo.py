"""The whole line on an emulated fabric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.text import Text

from fabric.textfile import write_text
from paisoar.console import Ui
from paisoar.line import Line, Outcome

KINDS = ("pfc-off", "dscp-map", "mtu", "ecn-off", "nic-reset")

EXPLAINED = {
    "init": "write fabric.yaml: a Clos of 25G hosts and 100G uplinks",
    "check": "static rules over intent and topology",
    "twin": "start emulated switches and hosts behind real SSH on loopback",
    "plan": "read every device and work out what would change",
    "provision": "apply it by Ansible playbooks: canaries first, read back, save",
    "plan again": "a second look must find nothing left to change",
    "break": "break something, as a mistake or a reboot would",
    "audit": "both ends of every cable against the intent",
    "validate": "preflight, latency, bandwidth, incast; counters of every device before and after",
    "certify": "judge the run and sign what it has shown",
    "train": "ask the gate, then train GreenNet on handwritten digits with two ranks",
    "report": "one HTML page with all of it",
    "twin down": "stop the emulated fabric",
}


class Demo(Line):
    """One walk through the whole line on a twin."""

    explained = EXPLAINED

    def __init__(
        self,
        ui: Ui,
        folder: Path,
        site_yaml: str,
        break_kind: str | None,
        tell: Callable[[Text], None],
    ) -> None:
        super().__init__(ui, folder, tell)
        self.site_yaml = site_yaml
        self.break_kind = break_kind

    def walk(self) -> Outcome:
        """Walk all steps; the twin is stopped however it ends."""
        self._step("init", self._init)
        self._step("check", self._check)
        try:
            self._step("twin", self._twin_up)
            self._step("plan", self._plan)
            self._step("provision", self._provision)
            self._step("plan again", self._plan_again)
            if self.break_kind:
                self._step("break", self._break)
            self._step("audit", self._audit)
            self._step("validate", self._validate)
            self._step("certify", self._certify)
            self._step("train", self._train)
            self._step("report", self._report)
        finally:
            self._step("twin down", self._twin_down)
        return self.outcome

    def _init(self) -> tuple[bool, str]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.file, self.site_yaml)
        return True, str(self.file)

    def _check(self) -> tuple[bool, str]:
        topology = self.site.topology
        return True, f"{len(topology.links)} cables, 1:1 or better"

    def _twin_up(self) -> tuple[bool, str]:
        from fabric.twin.lifecycle import up

        with self.ui.steps("starting devices") as step:
            state = up(self.site, lambda done, total, what: step(what, done, total))
        return True, f"{len(state.devices)} devices, {state.rss_bytes / 2**20:.0f} MiB"

    def _twin_down(self) -> tuple[bool, str]:
        from fabric.twin.lifecycle import down

        down(self.site.path)
        return True, "nothing left running"

    def _break(self) -> tuple[bool, str]:
        from fabric.twin.lifecycle import break_fabric

        assert self.break_kind is not None
        return True, break_fabric(self.site, self.break_kind)
