"""The whole line on an emulated fabric, step by step, each explained in a line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from fabric.audit.record import load_audit
from fabric.errors import GateRefusedError, JudgedBadError
from fabric.site import Site, load_site
from fabric.textfile import write_text
from paisoar.commands import audit, certify, plan, provision, report, train, validate
from paisoar.console import EXIT_INTERRUPTED, Answer, Ui

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


@dataclass
class Outcome:
    """What the demo has to say in the end; ``to_json`` is its one document."""

    folder: Path
    steps: list[dict[str, Any]] = field(default_factory=list)
    certificate: dict[str, Any] | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)
    train: dict[str, Any] = field(default_factory=dict)
    failed_checks: list[dict[str, Any]] = field(default_factory=list)
    report: str = ""

    @property
    def good(self) -> bool:
        """Everything passed, was certified and trained."""
        return (
            bool(self.steps)
            and all(step["verdict"] == "good" for step in self.steps)
            and self.certificate is not None
            and "accuracy" in self.train
        )

    def to_json(self) -> dict[str, Any]:
        """The document that ``paisoar demo --json`` prints."""
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


class Demo:
    """One walk through the whole line in one folder.

    ``tell`` is called with each step's name and explanation before it and with
    its verdict after it.
    """

    def __init__(
        self,
        ui: Ui,
        folder: Path,
        site_yaml: str,
        break_kind: str | None,
        tell: Callable[[Text], None],
    ) -> None:
        self.ui = ui
        self.file = folder / "fabric.yaml"
        self.site_yaml = site_yaml
        self.break_kind = break_kind
        self.tell = tell
        self.outcome = Outcome(folder)

    def walk(self) -> Outcome:
        """Walk all steps; the twin is stopped however it ends."""
        self._step("init", self._init)
        self._step("check", self._check)
        try:
            self._step("twin", self._twin_up)
            self._step("plan", lambda: self._answer(plan.make(self.ui, self.file)))
            self._step("provision", lambda: self._answer(provision.apply(self.ui, self.file)))
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

    def _step(self, name: str, work: Callable[[], tuple[bool, str]]) -> None:
        self.tell(Text.assemble((name, "bold"), f": {EXPLAINED[name]}"))
        begun = time.monotonic()
        good, words = work()
        seconds = round(time.monotonic() - begun, 2)
        self.outcome.steps.append(
            {"name": name, "seconds": seconds, "verdict": "good" if good else "bad"}
        )
        verdict = ("good", "green") if good else ("bad", "red")
        self.tell(Text.assemble("  ", verdict, f" {words} ", (f"({seconds:.1f} s)", "dim")))

    @property
    def site(self) -> Site:
        """The demo's site, read anew as every command does."""
        return load_site(self.file)

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

    def _answer(self, answer: Answer) -> tuple[bool, str]:
        document = answer.document
        if answer.exit_code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        if "run_id" in document:
            states = [device["state"] for device in document["devices"].values()]
            counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
            return answer.good, f"run {document['run_id']}: {counts}"
        return answer.good, _planned(document)

    def _plan_again(self) -> tuple[bool, str]:
        answer = plan.make(self.ui, self.file)
        changes = answer.document["changes"]
        return answer.good and not changes, _planned(answer.document)

    def _break(self) -> tuple[bool, str]:
        from fabric.twin.lifecycle import break_fabric

        assert self.break_kind is not None
        return True, break_fabric(self.site, self.break_kind)

    def _audit(self) -> tuple[bool, str]:
        answer = audit.look(self.ui, self.file, None)
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
        run = validate.execute(self.ui, self.site)
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
        from trainer.launch import TrainingPlan

        try:
            result = train.start(self.ui, self.file, TrainingPlan())
        except GateRefusedError as error:
            self.outcome.train = {"refused": error.reason, "message": error.message}
            return False, f"refused ({error.reason}): {error.message}"
        self.outcome.train = train.document(result)
        same = "identical" if result.weights_identical else "DIFFERENT"
        return (
            result.weights_identical,
            f"accuracy {result.accuracy:.4f}, weights {same}, {result.transport}",
        )

    def _report(self) -> tuple[bool, str]:
        self.outcome.report = report.write(self.ui, self.file).document["page"]
        return True, self.outcome.report


def _planned(document: dict[str, Any]) -> str:
    words = f"{len(document['changes'])} devices would change"
    for name, why in document["unreadable"].items():
        words += f"\n    not read: {name}: {why}"
    return words
