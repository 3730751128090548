"""One step on real hosts: servers, one barrier for all clients, and nothing left behind.

A pair that fails or hangs is named with its reason in ``StepMeasure.lost``; the others
go on. What was started is ended whatever happens, Ctrl-C included.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from validation.probes.hosts import scripts, tcp
from validation.probes.hosts.ends import pair_tests
from validation.probes.hosts.pairs import (
    RunningPair,
    alive,
    hosts_of,
    lose_host,
    lose_hosts,
)
from validation.probes.hosts.ports import FIRST_PORT, LAST_PORT, Ports
from validation.probes.hosts.remote import ask
from validation.probes.hosts.results import Results
from validation.probes.hosts.setting import Setting
from validation.traffic import Step, StepMeasure

# Programs in one command: a shell's word is at most 128 KiB.
_JOBS_AT_ONCE = 64
# The lead grows by so many times what it takes to ask all hosts of a step one thing.
_LEAD_OF_ROUND = 2.0

_Jobs = Mapping[str, Sequence[scripts.Job]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient a step is, in seconds.

    ``setup_s`` is what a pair may need beside its traffic, ``lead_s`` the time from
    the release of the clients to the barrier; it grows with what hosts took to answer all
    together, of which a thousand need longer than ten.
    """

    setup_s: float = 30.0
    lead_s: float = 2.0


class StepRun:
    """Carries one step; use once."""

    def __init__(self, setting: Setting, ports: Ports, pace: Pace) -> None:
        self._setting = setting
        self._site = setting.site
        self._ports = ports
        self._pace = pace
        # Nobody else can know the name before it is made.
        self._folder = f"/tmp/paisoar-{secrets.token_hex(16)}"  # noqa: S108
        self._offset_ns: dict[str, int] = {}
        self._lead_s = pace.lead_s
        self._notes: list[str] = []
        self._begun: dict[str, None] = {}

    def carry(self, step: Step) -> StepMeasure:
        """Run the step and read its results."""
        pairs = [RunningPair(test) for test in pair_tests(step, self._setting.options)]
        self._leave_out(pairs)
        self._look(alive(pairs))
        try:
            self._serve(alive(pairs))
            self._release(alive(pairs))
            self._collect(alive(pairs))
        finally:
            # Whatever was begun: what a host did not answer may run there all the same.
            ask(self._site, dict.fromkeys(self._begun, scripts.clean(self._folder)))
        results = Results(self._setting, self._folder, self._offset_ns)
        return results.measure(step, pairs, self._notes)

    def _leave_out(self, pairs: Iterable[RunningPair]) -> None:
        """Pairs of which one end cannot do what the test needs."""
        for pair in pairs:
            source, target = (self._setting.facts[host] for host in pair.hosts)
            if pair.test.stream.role != "roce":
                pair.program = tcp.sender(source.programs, target.programs, pair.test.stream.kind)
                if not pair.program:
                    pair.lose("no TCP beside it: the ends share neither iperf3 nor python3")
            for end in pair.ends:
                if problem := self._setting.problem(end):
                    pair.lose(f"{end.device}: {problem}")

    def _look(self, pairs: Sequence[RunningPair]) -> None:
        """Each host's clock against ours, and a free port for each server."""
        began_s = time.monotonic()
        asked = ask(self._site, dict.fromkeys(hosts_of(pairs), scripts.view()))
        # Releasing them takes about as long as this did, once or a few times.
        self._lead_s += _LEAD_OF_ROUND * (time.monotonic() - began_s)
        lose_hosts(pairs, asked.failed)
        busy: dict[str, frozenset[int]] = {}
        for host, answer in asked.only.items():
            try:
                clock_ns, busy[host] = scripts.read_view(answer.stdout)
            except ValueError:
                reason = f"{host} does not tell its time: {answer.stdout[:80]!r}"
                lose_host(pairs, host, reason)
                continue
            self._offset_ns[host] = clock_ns - asked.middle_ns[host]
        for pair in alive(pairs):
            host = pair.test.target.device
            port = self._ports.take(host, busy[host])
            if port is None:
                pair.lose(f"{host}: every TCP port of {FIRST_PORT}-{LAST_PORT} is taken")
            else:
                pair.port = port
        if asked.trip_ns:
            most_ms = max(asked.trip_ns.values()) / 2e6
            self._notes.append(f"clocks of hosts known to {most_ms:.1f} ms")

    def _serve(self, pairs: Sequence[RunningPair]) -> None:
        """Start the servers and wait until they listen."""
        limit_s = self._limit_s(pairs) + scripts.LOOK_S
        jobs: dict[str, list[scripts.Job]] = defaultdict(list)
        ports: dict[str, dict[str, int]] = defaultdict(dict)
        for pair in pairs:
            host = pair.test.target.device
            jobs[host].append(self._job(pair, limit_s, server=True))
            ports[host][pair.server] = pair.port
        self._launch(pairs, jobs)
        waits = {host: scripts.listening(self._folder, theirs) for host, theirs in ports.items()}
        lose_hosts(pairs, ask(self._site, waits).failed)

    def _release(self, pairs: Sequence[RunningPair]) -> None:
        """Start the clients at one moment and wait until they have ended, or should have."""
        # Our own waiting is by a clock that nobody sets.
        barrier_s = time.monotonic() + self._lead_s
        barrier_ns = time.time_ns() + round(self._lead_s * 1e9)
        limit_s = self._limit_s(pairs)
        jobs: dict[str, list[scripts.Job]] = defaultdict(list)
        for pair in pairs:
            host = pair.test.source.device
            begin_ns = barrier_ns + self._offset_ns[host]
            jobs[host].append(self._job(pair, limit_s, begin_ns, server=False))
        self._launch(pairs, jobs)
        late_s = time.monotonic() - barrier_s
        if late_s > 0:
            self._notes.append(f"the last client was released {late_s:.1f} s after the start")
        self._await(alive(pairs), barrier_s, limit_s)

    def _await(self, pairs: Sequence[RunningPair], barrier_s: float, limit_s: int) -> None:
        _sleep_until(barrier_s + _seconds(pairs))
        left: dict[str, list[str]] = defaultdict(list)
        for pair in pairs:
            left[pair.test.source.device].append(pair.client)
            if pair.program:  # the receiver of plain TCP counts
                left[pair.test.target.device].append(pair.server)
        while left and time.monotonic() < barrier_s + limit_s:
            waits = {host: scripts.finished(self._folder, names) for host, names in left.items()}
            asked = ask(self._site, waits)
            lose_hosts(pairs, asked.failed)
            left = {host: names for host, a in asked.only.items() if (names := a.stdout.split())}

    def _collect(self, pairs: Sequence[RunningPair]) -> None:
        asked = ask(self._site, dict.fromkeys(hosts_of(pairs), scripts.collect(self._folder)))
        lose_hosts(pairs, asked.failed)
        files = {host: scripts.read_files(a.stdout) for host, a in asked.only.items()}
        for pair in pairs:
            for host, job in zip(pair.hosts, (pair.client, pair.server), strict=True):
                theirs = files.get(host, {})
                pair.files |= {n: t for n, t in theirs.items() if n.partition(".")[0] == job}

    def _limit_s(self, pairs: Iterable[RunningPair]) -> int:
        return round(self._lead_s + _seconds(pairs) + self._pace.setup_s)

    def _job(
        self, pair: RunningPair, limit_s: int, begin_ns: int | None = None, *, server: bool
    ) -> scripts.Job:
        host = (pair.test.target if server else pair.test.source).device
        return scripts.Job(
            pair.server if server else pair.client,
            self._setting.words(pair, self._folder, server=server),
            limit_s,
            begin_ns,
            self._setting.facts[host].line_buffered,
        )

    def _launch(self, pairs: Sequence[RunningPair], jobs: _Jobs) -> None:
        most = max(map(len, jobs.values()), default=0)
        for first in range(0, most, _JOBS_AT_ONCE):
            batch = {
                host: scripts.launch(self._folder, some, self._setting.instrument.files)
                for host, theirs in jobs.items()
                if (some := theirs[first : first + _JOBS_AT_ONCE])
            }
            self._begun |= dict.fromkeys(batch)
            asked = ask(self._site, batch, begins=True)
            lose_hosts(pairs, asked.failed)
            for host, answer in asked.only.items():
                if answer.exit_status:
                    lose_host(pairs, host, f"{host}: nothing can be started: {answer.complaint}")


def _seconds(pairs: Iterable[RunningPair]) -> int:
    return max((pair.test.seconds or 0 for pair in pairs), default=0)


def _sleep_until(moment_s: float) -> None:
    """Spare hosts questions that can only be answered with no."""
    time.sleep(max(0.0, moment_s - time.monotonic()))
