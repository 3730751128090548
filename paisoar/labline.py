"""The whole line on virtual machines: real SSH, real verbs, real queues."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from paisoar.commands import lab, train
from paisoar.console import Ui, command_line, count_of
from paisoar.line import LeftOut, Line, Outcome

if TYPE_CHECKING:
    from fabric.lab import Sizes
    from trainer.launch import TrainResult
    from validation.probes.hosts.options import Options

# An incast has two senders and a receiver.
LEAST_FOR_INCAST = 3
# What all pairs can do; a certificate asks for an incast besides.
WITHOUT_INCAST = ["preflight", "latency", "bandwidth"]
# Enough to see that weights stay equal: an emulated processor trains slowly.
TRAINING_STEPS = 10
PATIENCE_S = 900.0

EXPLAINED = {
    "lab up": "start virtual machines with Soft-RoCE, and one as their switch",
    "plan": "read every guest over SSH and work out what would change",
    "provision": "apply it by Ansible playbooks: canaries first, read back",
    "plan again": "a second look must find nothing left to change",
    "audit": "both ends of every cable against the intent",
    "validate": "real verbs between the guests; counters of every device before and after",
    "certify": "judge the run and sign what it has shown, as soft-roce",
    "train": "ask the gate, then train GreenNet on handwritten digits, one rank a guest",
    "report": "one HTML page with all of it",
    "lab down": "stop the guests",
}


class LabLine(Line):
    """One walk through the whole line on guests of the site in ``folder``.

    ``hosts`` is how many, where there is no site yet. ``keep`` leaves the guests up.
    """

    explained = EXPLAINED

    def __init__(
        self,
        ui: Ui,
        file: Path,
        tell: Callable[[Text], None],
        *,
        hosts: int | None,
        sizes: Sizes,
        options: Options | None,
        training: bool,
        keep: bool,
    ) -> None:
        super().__init__(ui, file.parent, tell)
        self.file = file
        self.hosts = hosts
        self.sizes = sizes
        self.options = options
        self.training = training
        self.keep = keep

    def walk(self) -> Outcome:
        """Walk all steps; the guests are stopped however it ends, unless they are kept."""
        try:
            self._step("lab up", self._lab_up)
            if len(self.site.topology.hosts) < LEAST_FOR_INCAST:
                self.suites = WITHOUT_INCAST
            self._step("plan", self._plan)
            self._step("provision", self._provision)
            self._step("plan again", self._plan_again)
            self._step("audit", self._audit)
            self._step("validate", self._validate)
            self._step("certify", self._certify)
            self._step("train", self._train)
            self._step("report", self._report)
        except KeyboardInterrupt as error:
            if self.keep:
                stop = command_line("lab down", self.file)
                raise KeyboardInterrupt(f"The guests are kept; stop them with: {stop}") from error
            raise
        finally:
            self._step("lab down", self._lab_down)
        return self.outcome

    def _lab_up(self) -> tuple[bool, str]:
        state = lab.start(self.ui, self.file, self.hosts, self.sizes)
        memory = sum(guest.rss_bytes for guest in state.guests) / 2**20
        guests = count_of(len(state.guests), "guest")
        return True, f"{guests} ({state.accelerator}), {memory:.0f} MiB"

    def _certify(self) -> tuple[bool, str]:
        if self.suites is not None:
            raise LeftOut("a certificate needs an incast, and an incast three hosts")
        return super()._certify()

    def _train(self) -> tuple[bool, str]:
        if not self.training:
            raise LeftOut("not asked for")
        if self.suites is not None:
            raise LeftOut("the gate opens for a certificate only")
        return super()._train()

    def _trained(self) -> TrainResult:
        from trainer.launch import TrainingPlan

        return train.start(
            self.ui,
            self.file,
            TrainingPlan(steps=TRAINING_STEPS),
            "verbs",
            over_ssh=sys.executable,
            patience_s=PATIENCE_S,
        )

    def _lab_down(self) -> tuple[bool, str]:
        from fabric.lab import down

        if self.keep:
            raise LeftOut("they are kept")
        down(self.file)
        return True, "nothing left running"
