"""Running suites: read, snapshot, send, snapshot, judge, keep; again for each suite.

What was read after one suite is what stands before the next, so that nothing
that moves between two suites goes unseen. Results are kept as they come in: a
run that is interrupted leaves what it had, marked ``partial``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from securesystemslib.signer import Signer

from fabric.counters import CounterSnapshot
from fabric.errors import DevicesError, InputError, PaisoarError
from fabric.qos import DeviceQos
from fabric.site import Site
from validation.alone import only_one
from validation.certificates.fingerprint import Fingerprint, explain, fingerprint
from validation.certificates.keys import signer
from validation.certificates.sealed import write_seal
from validation.criteria import Check
from validation.judgement.judging import judged
from validation.judgement.observation import Observation
from validation.probes import probe_for
from validation.readers import Readers, live_readers
from validation.results.atwork import this_process
from validation.results.evidence import counter_file, outline_file, traffic_files, transcript_file
from validation.results.journal import Journal, Running, end_running, write_running
from validation.results.new import new_run, not_run
from validation.results.result import SuiteResult, ValidationRun
from validation.results.resume import Unfinished, unfinished
from validation.results.states import STATES_FILE, states_bytes, states_from_bytes
from validation.results.store import Store, file_name, validation_dir
from validation.suites import Suite, certified_suites, select
from validation.times import Clock, to_text, utc_now
from validation.traffic import Probe, StepMeasure, TrafficPlan


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run is doing. ``done`` of ``total`` count steps of the suite."""

    kind: Literal["reading", "step", "suite"]
    suite: str
    text: str
    done: int = 0
    total: int = 0
    verdict: str = ""


_ONE_AT_A_TIME = (
    "Two at once would spoil each other's counters: wait for it, or end it; what it had goes on "
    "with --resume."
)

OnProgress = Callable[[Progress], None]
ProbeFactory = Callable[[Site, Mapping[str, DeviceQos]], Probe]


def run_suites(
    site: Site,
    names: Sequence[str] | None = None,
    on_event: OnProgress | None = None,
    *,
    readers: Readers | None = None,
    probe: ProbeFactory | None = None,
    clock: Clock = utc_now,
    resume: bool = False,
    repeat: int = 1,
) -> ValidationRun:
    """Run these suites (those of the site's criteria where None) and keep what came out.

    A run that ends as it should is sealed with the site's signing key (made where
    there is none). A device or probe that does not answer fails its checks and
    does not end the run, but leaves it ``partial``. So does Ctrl-C, which raises
    KeyboardInterrupt on. With ``resume`` the last run, which was interrupted, goes on as a
    new one: its unfinished suites with the steps that they had. ``repeat`` is how often
    bandwidth and incast are measured; a run that goes on keeps its own number.

    Raises InputError for an unknown suite or an unusable signing key, ToolError where
    results cannot be kept, DevicesError where no host can measure.
    """
    if repeat < 1:
        raise InputError(f"nothing can be measured {repeat} times", key="--repeat")
    lock = validation_dir(site) / "lock"
    with (
        only_one(lock, "this site is being validated already", _ONE_AT_A_TIME),
        Store(site) as store,
    ):
        before = unfinished(site, names, clock=clock) if resume else None
        suites = select(before.names if before else names or certified_suites(site))
        run = new_run(site, clock())
        tell = on_event or (lambda _: None)
        if later := _later(store, run):
            tell(Progress("reading", "", f"run {later} began later than now: look at the clock"))
        work = _Work(
            site,
            store,
            readers or live_readers(),
            probe or probe_for,
            tell,
            clock,
            signer(site),
            run,
            before.repeat if before else repeat,
            before,
        )
        return work.carry_out(suites)


def plans(
    site: Site, names: Sequence[str] | None = None, repeat: int = 1
) -> tuple[TrafficPlan, ...]:
    """What :func:`run_suites` would send, without sending it."""
    return tuple(suite.again(site, repeat) for suite in select(names or certified_suites(site)))


def _later(store: Store, run: ValidationRun) -> str:
    """A run that says it began after this one: a clock was set back. Empty where there is none."""
    begun = store.begun()
    last = next(reversed(begun), "")
    return last if last and begun[last][0] > to_text(run.started_at) else ""


@dataclass
class _Work:
    """The moving parts of one run."""

    site: Site
    store: Store
    readers: Readers
    make_probe: ProbeFactory
    tell: OnProgress
    clock: Clock
    sealing: Signer
    run: ValidationRun
    repeat: int = 1
    resumed: Unfinished | None = None
    states: dict[str, DeviceQos] = field(default_factory=dict)
    states_sha256: str = ""
    stateless: dict[str, str] = field(default_factory=dict)
    probe: Probe | None = None

    def carry_out(self, suites: Sequence[Suite]) -> ValidationRun:
        try:
            self._begin(suites)
            self._prepare()
            counters, unread = self._counters()
            if self.resumed is not None and self.resumed.after:
                counters = dict(self.resumed.after)
            for suite in suites:
                counters, unread = self._suite(suite, counters, unread)
            self._end()
        except (KeyboardInterrupt, DevicesError):
            self._interrupted(suites)
            raise
        return self.run

    def _begin(self, suites: Sequence[Suite]) -> None:
        names = tuple(suite.name for suite in suites)
        running = Running(suites=names, repeat=self.repeat, process=this_process())
        if self.resumed is None:
            write_running(self.run.folder, running)
            self.store.save(self.run)
        self.tell(Progress("reading", "", "reading what every device does"))
        read = self.readers.states(self.site)
        self.states = dict(read.states)
        self.stateless = {name: str(error) for name, error in read.failed.items()}
        mark = fingerprint(self.site, self.states)
        data = states_bytes(self.states)
        if self.resumed is not None:
            data = self._go_on(self.resumed, mark, running) or data
            self.states = states_from_bytes(data)
        self.states_sha256 = self.store.write_file(self.run.id, STATES_FILE, data)
        self.run = replace(self.run, before=mark)
        self._unanswered(self.stateless)
        self.store.save(self.run)
        for result in self.resumed.finished if self.resumed is not None else ():
            self._add(result)

    def _go_on(self, earlier: Unfinished, mark: Fingerprint, running: Running) -> bytes:
        """Take over what an earlier run had, before this one is known; its states, if any."""
        earlier.check_fabric(mark)
        for name, begun in earlier.suites.items():
            Journal(self.run.folder, name).begin(begun.before, begun.steps)
        for name, data in earlier.files.items():
            self.store.write_file(self.run.id, name, data)
        names = (*(result.name for result in earlier.finished), *running.suites)
        write_running(self.run.folder, running.model_copy(update={"suites": names}))
        versions = {**self.run.versions, "goes on with": earlier.run_id}
        self.run = replace(self.run, versions=versions)
        return earlier.states

    def _prepare(self) -> None:
        """Make the probe, where the fabric's state is known as a whole."""
        if set(self.states) != set(self.site.devices):
            return
        self.tell(Progress("reading", "", "preparing the traffic"))
        probe = self.make_probe(self.site, self.states)
        probe.prepare()
        self.probe = probe
        if chosen := probe.versions.get("probe"):
            self.tell(Progress("reading", "", f"measuring with {chosen}"))
        self.run = replace(
            self.run,
            probe=probe.name,
            evidence_class=probe.evidence_class,
            versions={**self.run.versions, **probe.versions},
        )
        self.store.save(self.run)

    def _counters(self) -> tuple[dict[str, CounterSnapshot], dict[str, str]]:
        self.tell(Progress("reading", "", "reading every device's counters"))
        read = self.readers.counters(self.site)
        failed = {name: str(error) for name, error in read.failed.items()}
        self._unanswered(failed)
        return dict(read.snapshots), failed

    def _unanswered(self, answers: Mapping[str, str]) -> None:
        """Keep what first came back of each device or probe that did not answer."""
        self.run = replace(self.run, unread={**answers, **self.run.unread})

    def _suite(
        self, suite: Suite, before: dict[str, CounterSnapshot], unread: dict[str, str]
    ) -> tuple[dict[str, CounterSnapshot], dict[str, str]]:
        plan = suite.again(self.site, self.repeat)
        started_at, started = self.clock(), time.monotonic()
        begun = self.resumed.suites.get(suite.name) if self.resumed is not None else None
        measures: list[StepMeasure] = list(begun.steps) if begun else []
        before = dict(begun.before) if begun else before
        journal = Journal(self.run.folder, suite.name)
        journal.begin(before, measures)

        def finish(after: dict[str, CounterSnapshot], lost: dict[str, str], done: bool) -> None:
            result = self._judged(
                suite, plan, measures, before, after, {**unread, **self.stateless, **lost}, done
            )
            result = replace(
                result,
                started_at=started_at,
                finished_at=self.clock(),
                wall_s=time.monotonic() - started,
            )
            self._add(result)
            journal.end()
            self.tell(
                Progress(
                    "suite",
                    suite.name,
                    f"{suite.name}: {result.verdict}",
                    len(plan.steps),
                    len(plan.steps),
                    result.verdict,
                )
            )

        try:
            self._steps(plan, measures, journal)
            if self.probe is not None:
                time.sleep(self.probe.settle_s)
            after, lost = self._counters()
        except KeyboardInterrupt:
            finish({}, {}, False)
            raise
        finish(after, lost, True)
        return after, lost

    def _steps(self, plan: TrafficPlan, measures: list[StepMeasure], journal: Journal) -> None:
        if self.probe is None:
            missing = [name for name in self.site.devices if name not in self.states]
            reason = f"{', '.join(missing)} did not answer: the fabric's state is not known"
            measures += [StepMeasure(step.id, not_run=reason) for step in plan.steps]
            return
        had = {measure.step for measure in measures}
        for number, step in enumerate(plan.steps):
            if step.id in had:
                continue
            text = f"{plan.suite}: {step.id}"
            self.tell(Progress("step", plan.suite, text, number, len(plan.steps)))
            try:
                measures.append(self.probe.run(step))
            except PaisoarError as error:
                measures.append(StepMeasure(step.id, not_run=str(error)))
                self._unanswered({f"the probe {self.probe.name}": str(error)})
            journal.add(measures[-1])

    def _judged(
        self,
        suite: Suite,
        plan: TrafficPlan,
        measures: Sequence[StepMeasure],
        before: dict[str, CounterSnapshot],
        after: dict[str, CounterSnapshot],
        unread: dict[str, str],
        done: bool,
    ) -> SuiteResult:
        files = {kind: data for kind, data in traffic_files(measures).items() if measures}
        files["outline"] = outline_file(measures, unread)
        if any(measure.transcripts for measure in measures):
            files["transcripts"] = transcript_file(measures)
        files |= (
            {"counters": counter_file(before, after)}
            if done
            else {"begin": counter_file(before, {})}
        )
        hashes = {
            kind: self.store.write_file(self.run.id, file_name(suite.name, kind), data)
            for kind, data in files.items()
        }
        hashes["states"] = self.states_sha256
        observation = Observation(
            site=self.site,
            plan=plan,
            steps=tuple(measures),
            before=before,
            after=after,
            states=self.states,
            evidence_class=self.run.evidence_class,
            unread=unread,
            evidence=hashes,
        )
        found = judged(suite, observation, done=done)
        return SuiteResult(
            name=suite.name,
            status=found.status,
            checks=found.checks,
            expected=plan.expected,
            seen=found.seen,
            files=hashes,
            started_at=self.run.started_at,
            finished_at=self.run.started_at,
            traffic_us=observation.traffic_us,
            wall_s=0.0,
        )

    def _end(self) -> None:
        self.tell(Progress("reading", "", "reading every device again"))
        read = self.readers.states(self.site)
        after = fingerprint(self.site, read.states)
        failed = {name: str(error) for name, error in read.failed.items()}
        self._unanswered(failed)
        self.run = replace(
            self.run,
            after=after,
            checks=(self._unchanged(dict(read.states), failed),),
            status="partial" if self.run.unread else "complete",
            finished_at=self.clock(),
        )
        if self.run.status == "complete":
            write_seal(self.run, self.sealing)
        self.store.save(self.run)
        end_running(self.run.folder)

    def _unchanged(self, after: dict[str, DeviceQos], failed: Mapping[str, str]) -> Check:
        assert self.run.before is not None
        changed = self.run.before.changed(fingerprint(self.site, after))
        reason = ""
        if changed:
            lines = explain(
                {n: s for n, s in self.states.items() if n in changed},
                {n: s for n, s in after.items() if n in changed},
            )
            lines += [f"{name}: {answer}" for name, answer in failed.items()]
            reason = f"the fabric changed during the run: {'; '.join(lines[:5])}"
            self.store.write_file(self.run.id, "states-after.json", states_bytes(after))
        return Check(
            id="run.unchanged",
            subject=self.site.name,
            verdict="FAIL" if changed else "PASS",
            value=float(len(changed)),
            limit=0.0,
            unit="devices",
            bound="at most",
            reason=reason,
            device=changed[0] if changed else "",
            port="",
            evidence_sha256=self.states_sha256,
            evidence_class=self.run.evidence_class,
        )

    def _interrupted(self, suites: Sequence[Suite]) -> None:
        now = self.clock()
        had = {suite.name for suite in self.run.suites}
        for suite in suites:
            if suite.name not in had:
                self._add(not_run(suite.again(self.site, self.repeat), self.run, now))
        self.run = replace(self.run, status="partial", finished_at=now)
        self.store.save(self.run)
        end_running(self.run.folder)

    def _add(self, result: SuiteResult) -> None:
        self.store.add_suite(self.run.id, len(self.run.suites), result)
        self.run = replace(self.run, suites=(*self.run.suites, result))
