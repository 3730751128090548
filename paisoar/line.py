"""From a plan to a report, step by step, each explained in a line.

What ``paisoar demo`` walks on a twin and ``paisoar lab run`` on virtual machines.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text

from fabric.audit.record import load_audit
from fabric.errors import GateRefusedError, JudgedBadError
from fabric.site import Site, load_site
from paisoar.commands import audit, certify, plan, provision, report, train, validate
from paisoar.console import EXIT_INTERRUPTED, Answer, Ui

if TYPE_CHECKING:
    from trainer.launch import TrainResult
    from validation.probes.hosts.options import Options

EXIT_UNANSWERED = 3
STYLES = {"good": "green", "bad": "red", "left out": "yellow"}


class LeftOut(Exception):  # noqa: N818 - no error: the step cannot or need not be done here
    """A step is not done, for this reason; the walk goes on and stays good."""


@dataclass
class Outcome:
    """What a walk has to say in the end; ``to_json`` is its one document."""

    folder: Path
    steps: list[dict[str, Any]] = field(default_factory=list)
    certificate: dict[str, Any] | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)
    train: dict[str, Any] = field(default_factory=dict)
    failed_checks: list[dict[str, Any]] = field(default_factory=list)
    report: str = ""
    unanswered: bool = False

    @property
    def good(self) -> bool:
        """There were steps, and each passed or was left out on purpose."""
        return bool(self.steps) and all(step["verdict"] != "bad" for step in self.steps)

    @property
    def exit_code(self) -> int:
        """Of a walk that is not good: 3 where a device or probe did not answer, else 1."""
        return 3 if self.unanswered else 1

    def to_json(self) -> dict[str, Any]:
        """The document that ``--json`` prints."""
        return {
            "steps": self.steps,
            "certificate": self.certificate,
            "findings": self.findings,
            "failed_checks": self.failed_checks,
            "train": self.train,
            "report": self.report,
            "folder": str(self.folder),
            "seconds": round(sum(step["seconds"] for step in self.steps), 1),
        }


class Line:
    """One walk in one folder; subclasses say which steps, and where devices come from.

    ``tell`` is called with each step's name and explanation before it and with its
    verdict after it. ``suites`` and ``options`` are those of ``paisoar validate``.
    """

    explained: ClassVar[dict[str, str]]
    suites: list[str] | None = None
    options: Options | None = None

    def __init__(self, ui: Ui, folder: Path, tell: Callable[[Text], None]) -> None:
        self.ui = ui
        self.file = folder / "fabric.yaml"
        self.tell = tell
        self.outcome = Outcome(folder)

    @property
    def site(self) -> Site:
        """The walk's site, read anew as every command does."""
        return load_site(self.file)

    def _step(self, name: str, work: Callable[[], tuple[bool, str]]) -> None:
        self.tell(Text.assemble((name, "bold"), f": {self.explained[name]}"))
        begun = time.monotonic()
        try:
            good, words = work()
            verdict = "good" if good else "bad"
        except LeftOut as reason:
            verdict, words = "left out", str(reason)
        seconds = round(time.monotonic() - begun, 2)
        self.outcome.steps.append({"name": name, "seconds": seconds, "verdict": verdict})
        shown = (verdict, STYLES[verdict])
        self.tell(Text.assemble("  ", shown, f" {words} ", (f"({seconds:.1f} s)", "dim")))

    def _answer(self, answer: Answer) -> tuple[bool, str]:
        document = answer.document
        if answer.exit_code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        self._note(answer)
        if "run_id" in document:
            states = [device["state"] for device in document["devices"].values()]
            counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
            return answer.good, f"run {document['run_id']}: {counts}"
        return answer.good, _planned(document)

    def _note(self, answer: Answer) -> None:
        self.outcome.unanswered |= not answer.good and answer.exit_code == EXIT_UNANSWERED

    def _plan(self) -> tuple[bool, str]:
        return self._answer(plan.make(self.ui, self.file))

    def _provision(self) -> tuple[bool, str]:
        return self._answer(provision.apply(self.ui, self.file))

    def _plan_again(self) -> tuple[bool, str]:
        answer = plan.make(self.ui, self.file)
        self._note(answer)
        changes = answer.document["changes"]
        return answer.good and not changes, _planned(answer.document)

    def _audit(self) -> tuple[bool, str]:
        answer = audit.look(self.ui, self.file, None)
        self._note(answer)
        record = load_audit(self.site)
        findings = record.report.findings if record else ()
        self.outcome.findings = [
            {"rule": f.rule, "device": f.device, "port": f.port, "message": f.message}
            for f in findings
        ]
        words = f"{len(findings)} findings"
        for finding in findings[:4]:
            words += f"\n    {finding.rule}: {finding.device} {finding.port}: {finding.message}"
        return answer.good, words

    def _validate(self) -> tuple[bool, str]:
        run = validate.execute(self.ui, self.site, self.suites, self.options)
        self.outcome.unanswered |= bool(run.unread)
        bad = run.failures
        self.outcome.failed_checks = [
            {"check": c.id, "subject": c.subject, "reason": c.reason} for c in bad
        ]
        words = ", ".join(f"{suite.name} {suite.verdict}" for suite in run.suites)
        for check in bad[:4]:
            words += f"\n    {check.id}: {check.subject}: {check.reason}"
        skipped = Counter(check.id for check in run.all_checks if check.verdict == "SKIP")
        if skipped:
            counts = ", ".join(f"{name} {count}" for name, count in skipped.items())
            words += f"\n    not judged: {counts}"
        return run.verdict == "PASS", words

    def _certify(self) -> tuple[bool, str]:
        try:
            document = certify.issue(self.ui, self.file).document
        except JudgedBadError as error:
            return False, "\n    ".join(error.message.splitlines()[:4])
        self.outcome.certificate = {
            "id": document["id"],
            "class": document["class"],
            "verdict": document["verdict"],
        }
        return True, f"{document['id']}, evidence class {document['class']}"

    def _train(self) -> tuple[bool, str]:
        try:
            result = self._trained()
        except GateRefusedError as error:
            self.outcome.train = {"refused": error.reason, "message": error.message}
            return False, f"refused ({error.reason}): {error.message}"
        self.outcome.train = train.document(result)
        same = "identical" if result.weights_identical else "DIFFERENT"
        return (
            result.weights_identical,
            f"accuracy {result.accuracy:.4f}, weights {same}, {result.transport}",
        )

    def _trained(self) -> TrainResult:
        from trainer.launch import TrainingPlan

        return train.start(self.ui, self.file, TrainingPlan())

    def _report(self) -> tuple[bool, str]:
        self.outcome.report = report.write(self.ui, self.file).document["page"]
        return True, self.outcome.report


def _planned(document: dict[str, Any]) -> str:
    words = f"{len(document['changes'])} devices would change"
    for name, why in document["unreadable"].items():
        words += f"\n    not read: {name}: {why}"
    return words
