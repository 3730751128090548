"""One step on real hosts: servers, one barrier for all clients, results, nothing left behind.

A pair that fails or hangs is named with its reason in ``StepMeasure.lost``; the others
go on. What was started is ended whatever happens, Ctrl-C included.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fabric.site import Site
from fabric.topology import PortRef
from validation.probes.perftest import scripts, tcp
from validation.probes.perftest.commands import End, PairTest, arguments
from validation.probes.perftest.complaints import Complaint, complaints, noise, worst
from validation.probes.perftest.ends import own_tos, pair_tests
from validation.probes.perftest.facts import HostFacts, PortFacts
from validation.probes.perftest.figures import Expected, figures
from validation.probes.perftest.gids import Gid
from validation.probes.perftest.options import Options
from validation.probes.perftest.ports import FIRST_PORT, LAST_PORT, Ports
from validation.probes.perftest.remote import Asked, ask
from validation.probes.perftest.text import ReportError, parse_report, without_samples
from validation.traffic import FlowMeasure, Pair, Step, StepMeasure, Transcript

# Programs in one command: a shell's word is at most 128 KiB.
_JOBS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient a step is, in seconds.

    ``setup_s`` is what a pair may need beside its traffic, ``lead_s`` the time from
    the release of the clients to the barrier.
    """

    setup_s: float = 30.0
    lead_s: float = 2.0


@dataclass
class _Pair:
    """One pair under way."""

    test: PairTest
    port: int = 0
    program: str = ""
    lost: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> Pair:
        return self.test.source, self.test.target

    def lose(self, reason: str) -> None:
        """Leave the pair out from here on; the first reason stays."""
        self.lost = self.lost or reason

    @property
    def server(self) -> str:
        return f"server{self.test.name}"

    @property
    def client(self) -> str:
        return f"client{self.test.name}"


class StepRun:
    """Carries one step; use once."""

    def __init__(
        self,
        site: Site,
        facts: Mapping[str, HostFacts],
        ports: Ports,
        options: Options,
        pace: Pace,
    ) -> None:
        self._site = site
        self._facts = facts
        self._ports = ports
        self._options = options
        self._pace = pace
        # Nobody else can know the name before it is made.
        self._folder = f"/tmp/paisoar-{secrets.token_hex(16)}"  # noqa: S108
        self._offset_ns: dict[str, int] = {}
        self._notes: list[str] = []
        self._begun: dict[str, None] = {}

    def carry(self, step: Step) -> StepMeasure:
        """Run the step and read its results."""
        pairs = [_Pair(test) for test in pair_tests(step, self._options)]
        self._leave_out(pairs)
        self._look(_alive(pairs))
        try:
            self._serve(_alive(pairs))
            self._release(_alive(pairs))
            self._collect(_alive(pairs))
        finally:
            # Whatever was begun: what a host did not answer may run there all the same.
            ask(self._site, dict.fromkeys(self._begun, scripts.clean(self._folder)))
        return self._measure(step, pairs)

    def _port(self, port: PortRef) -> PortFacts:
        return self._facts[port.device].ports[port.port]

    def _leave_out(self, pairs: Iterable[_Pair]) -> None:
        """Pairs of which one end cannot do what the test needs."""
        for pair in pairs:
            source, target = (self._facts[end.device] for end in pair.ends)
            if pair.test.stream.role != "roce":
                pair.program = tcp.sender(source.programs, target.programs)
                if not pair.program:
                    pair.lose("no TCP beside it: the ends share neither iperf3 nor python3")
            for end in pair.ends:
                problem = self._facts[end.device].problem or self._port(end).problem
                if problem:
                    pair.lose(f"{end.device}: {problem}")

    def _look(self, pairs: Sequence[_Pair]) -> None:
        """Each host's clock against ours, and a free port for each server."""
        asked = ask(self._site, dict.fromkeys(_hosts(pairs), scripts.view()))
        _lose_hosts(pairs, asked)
        busy: dict[str, frozenset[int]] = {}
        for host, answers in asked.answers.items():
            text = answers[scripts.view()].stdout
            try:
                clock_ns, busy[host] = scripts.read_view(text)
            except ValueError:
                _lose_host(pairs, host, f"{host} does not tell its time: {text[:80]!r}")
                continue
            self._offset_ns[host] = clock_ns - asked.middle_ns[host]
        for pair in _alive(pairs):
            host = pair.test.target.device
            port = self._ports.take(host, busy[host])
            if port is None:
                pair.lose(f"{host}: every TCP port of {FIRST_PORT}-{LAST_PORT} is taken")
            else:
                pair.port = port
        trips = [asked.trip_ns[host] for host in asked.trip_ns]
        if trips:
            self._notes.append(f"clocks of hosts known to {max(trips) / 2e6:.1f} ms")

    def _serve(self, pairs: Sequence[_Pair]) -> None:
        """Start the servers and wait until they listen."""
        limit_s = self._limit_s(pairs)
        jobs: dict[str, list[scripts.Job]] = defaultdict(list)
        ports: dict[str, dict[str, int]] = defaultdict(dict)
        for pair in pairs:
            host = pair.test.target.device
            buffered = self._facts[host].line_buffered
            words = self._words(pair, server=True)
            jobs[host].append(
                scripts.Job(pair.server, words, limit_s + scripts.LOOK_S, line_buffered=buffered)
            )
            ports[host][pair.server] = pair.port
        self._launch(pairs, jobs)
        waits = {host: scripts.listening(self._folder, theirs) for host, theirs in ports.items()}
        _lose_hosts(pairs, ask(self._site, waits))

    def _release(self, pairs: Sequence[_Pair]) -> None:
        """Start the clients at one moment and wait until they have ended, or should have."""
        if not pairs:
            return
        barrier_ns = time.time_ns() + round(self._pace.lead_s * 1e9)
        limit_s = self._limit_s(pairs)
        jobs: dict[str, list[scripts.Job]] = defaultdict(list)
        for pair in pairs:
            host = pair.test.source.device
            jobs[host].append(
                scripts.Job(
                    pair.client,
                    self._words(pair, server=False),
                    limit_s,
                    barrier_ns + self._offset_ns[host],
                    self._facts[host].line_buffered,
                )
            )
        self._launch(pairs, jobs)
        self._await(_alive(pairs), barrier_ns / 1e9, limit_s)

    def _await(self, pairs: Sequence[_Pair], barrier_s: float, limit_s: int) -> None:
        seconds = max((pair.test.seconds or 0 for pair in pairs), default=0)
        _sleep_until(barrier_s + seconds)
        deadline_s = barrier_s + limit_s
        left: dict[str, list[str]] = defaultdict(list)
        for pair in pairs:
            left[pair.test.source.device].append(pair.client)
        while left and time.time() < deadline_s:
            waits = {host: scripts.finished(self._folder, names) for host, names in left.items()}
            asked = ask(self._site, waits)
            _lose_hosts(pairs, asked)
            left = {
                host: names
                for host, answers in asked.answers.items()
                if (names := answers[waits[host]].stdout.split())
            }

    def _collect(self, pairs: Sequence[_Pair]) -> None:
        asked = ask(self._site, dict.fromkeys(_hosts(pairs), scripts.collect(self._folder)))
        _lose_hosts(pairs, asked)
        files = {
            host: scripts.read_files(next(iter(answers.values())).stdout)
            for host, answers in asked.answers.items()
        }
        for pair in pairs:
            for end, job in ((pair.test.source, pair.client), (pair.test.target, pair.server)):
                theirs = files.get(end.device, {})
                pair.files |= {n: t for n, t in theirs.items() if n.partition(".")[0] == job}

    def _limit_s(self, pairs: Sequence[_Pair]) -> int:
        seconds = max((pair.test.seconds or 0 for pair in pairs), default=0)
        return round(self._pace.lead_s + seconds + self._pace.setup_s)

    def _launch(self, pairs: Sequence[_Pair], jobs: Mapping[str, Sequence[scripts.Job]]) -> None:
        most = max(map(len, jobs.values()), default=0)
        for first in range(0, most, _JOBS_AT_ONCE):
            batch = {
                host: scripts.launch(self._folder, some)
                for host, theirs in jobs.items()
                if (some := theirs[first : first + _JOBS_AT_ONCE])
            }
            self._begun |= dict.fromkeys(batch)
            asked = ask(self._site, batch)
            _lose_hosts(pairs, asked)
            for host, answers in asked.answers.items():
                answer = answers[batch[host]]
                if answer.exit_status:
                    reason = f"{host}: nothing can be started: {answer.complaint}"
                    _lose_host(pairs, host, reason)

    def _words(self, pair: _Pair, *, server: bool) -> tuple[str, ...]:
        here = pair.test.target if server else pair.test.source
        peer = "" if server else self._gid(pair.test.target).address
        if pair.program:
            if server:
                return tcp.server_words(pair.program, pair.port)
            seconds = pair.test.seconds or self._options.seconds
            tos = tcp.default_tos(self._site)
            stream = pair.test.stream
            return tcp.client_words(pair.program, stream, peer, pair.port, seconds, tos)
        json_file = ""
        if not server and self._facts[here.device].json:
            json_file = f"{self._folder}/{pair.client}.json"
        return arguments(
            pair.test,
            End(
                self._rdma(here),
                str(self._gid(here).index),
                own_tos(self._site, here, self._options),
            ),
            self._options,
            mtu=self._site.intent.mtu.roce,
            port=pair.port,
            peer=peer,
            json_file=json_file,
        )

    def _gid(self, port: PortRef) -> Gid:
        gid = self._port(port).gid
        assert gid is not None
        return gid

    def _rdma(self, port: PortRef) -> str:
        return self._site.host(port.device).nics[port.port].rdma

    def _measure(self, step: Step, pairs: Sequence[_Pair]) -> StepMeasure:
        flows: dict[str, FlowMeasure] = {}
        for pair in _alive(pairs):
            try:
                flows[pair.test.name] = self._flow(pair)
            except ReportError as error:
                pair.lose(f"{_name(pair)}: {error}")
        self._lose_strays([pair for pair in _alive(pairs) if pair.test.seconds is not None])
        alive = _alive(pairs)
        for pair in pairs:
            self._notes += noise(pair.files.get(f"{pair.client}.err", ""))
        return StepMeasure(
            step=step.id,
            flows=tuple(flows[pair.test.name] for pair in alive),
            traffic_us=max((_traffic_us(p, flows[p.test.name]) for p in alive), default=0.0),
            sample_us=step.sample_us,
            notes=tuple(dict.fromkeys((*self._notes, *self._releases(pairs)))),
            # Two streams of a pair may fail: what the first says stands.
            lost={pair.ends: pair.lost for pair in reversed(pairs) if pair.lost},
            transcripts=tuple(t for pair in pairs for t in self._transcripts(pair)),
        )

    def _flow(self, pair: _Pair) -> FlowMeasure:
        """The client's results. Raises ReportError that says why there are none."""
        code = pair.files.get(f"{pair.client}.rc", "")
        if code != "0":
            raise ReportError(self._why(pair, code))
        test, out = pair.test, pair.files.get(f"{pair.client}.out", "")
        if pair.program:
            server_out = pair.files.get(f"{pair.server}.out", "")
            rate = tcp.goodput_bps(pair.program, out, server_out)
            return _flow_of(test, test.stream.messages or 1, rate, np.empty(0))
        speed_bps = min(self._site.topology.link_of[end].speed_bps for end in pair.ends)
        expected = Expected(
            rdma=self._rdma(test.source),
            mtu=self._site.intent.mtu.roce,
            gid_index=self._gid(test.source).index,
            local=self._gid(test.source).address,
            remote=self._gid(test.target).address,
            speed_bps=speed_bps,
            elapsed_s=(_stamp(pair, "to") - _stamp(pair, "at")) / 1e9,
        )
        found = figures(
            test, parse_report(out), expected, pair.files.get(f"{pair.client}.json", "")
        )
        return _flow_of(test, found.completed, found.goodput_bps, found.latency_us)

    def _why(self, pair: _Pair, code: str) -> str:
        """Why a client has no result: the cause that either end names, or the time."""
        said: list[tuple[str, Complaint]] = []
        for end, job in ((pair.test.source, pair.client), (pair.test.target, pair.server)):
            text = "\n".join(pair.files.get(f"{job}.{kind}", "") for kind in ("err", "out"))
            said += [(f"{end.device} {self._rdma(end)}", found) for found in complaints(text)]
        cause = worst(said)
        ended = f"exit status {code}" if code else "no result in time: it hangs, and was ended"
        if cause is None:
            return ended
        where, complaint = cause
        return f"{ended}; {where} says {complaint.line!r}: {complaint.advice}"

    def _ended_s(self, pair: _Pair) -> float:
        """When a client ended, by our clock."""
        return (_stamp(pair, "to") - self._offset_ns[pair.test.source.device]) / 1e9

    def _lose_strays(self, pairs: Sequence[_Pair]) -> None:
        """Lose pairs whose measured time did not lie within the traffic of all others.

        Traffic of equal length that ends within the margin of each other's end overlaps
        each other's measured part.
        """
        if len(pairs) < 2:
            return
        ended_s = [self._ended_s(pair) for pair in pairs]
        middle_s, most_s = statistics.median(ended_s), self._options.margin_s / 2
        for pair, end_s in zip(pairs, ended_s, strict=True):
            if abs(end_s - middle_s) > most_s:
                pair.lose(
                    f"{_name(pair)}: it ended {abs(end_s - middle_s):.1f} s apart from the others "
                    f"of its step, more than {most_s:g}: they did not compete; "
                    "`paisoar validate --seconds` leaves more room"
                )

    def _releases(self, pairs: Sequence[_Pair]) -> tuple[str, ...]:
        """Says where the ends of a pair have different releases."""
        mixed = {
            f"{self._facts[host].release} on {host}"
            for pair in pairs
            for host in (pair.test.source.device, pair.test.target.device)
        }
        if len({text.partition(" on ")[0] for text in mixed}) < 2:
            return ()
        return (f"releases of perftest differ: {', '.join(sorted(mixed))}",)

    def _transcripts(self, pair: _Pair) -> Iterable[Transcript]:
        for end, job, server in (
            (pair.test.target, pair.server, True),
            (pair.test.source, pair.client, False),
        ):
            if not any(name.startswith(f"{job}.") for name in pair.files):
                continue
            yield Transcript(
                pair=pair.ends,
                host=end.device,
                command=self._words(pair, server=server),
                exit_status=pair.files.get(f"{job}.rc", ""),
                stdout=without_samples(pair.files.get(f"{job}.out", "")),
                stderr=pair.files.get(f"{job}.err", ""),
            )


def _sleep_until(moment_s: float) -> None:
    """Spare hosts questions that can only be answered with no."""
    time.sleep(max(0.0, moment_s - time.time()))


def _alive(pairs: Iterable[_Pair]) -> list[_Pair]:
    return [pair for pair in pairs if not pair.lost]


def _lose_host(pairs: Iterable[_Pair], host: str, reason: str) -> None:
    for pair in pairs:
        if host in (end.device for end in pair.ends):
            pair.lose(reason)


def _lose_hosts(pairs: Sequence[_Pair], asked: Asked) -> None:
    for host, error in asked.failed.items():
        _lose_host(pairs, host, str(error))


def _hosts(pairs: Iterable[_Pair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(end.device for pair in pairs for end in pair.ends))


def _name(pair: _Pair) -> str:
    return pair.program or pair.test.tool.program


def _stamp(pair: _Pair, kind: str) -> int:
    try:
        return int(pair.files[f"{pair.client}.{kind}"])
    except (KeyError, ValueError) as error:
        raise ReportError("the host did not say when it began and ended") from error


def _flow_of(
    test: PairTest, completed: int, goodput_bps: float, latency_us: np.ndarray
) -> FlowMeasure:
    return FlowMeasure(
        source=test.source,
        target=test.target,
        role=test.stream.role,
        kind=test.stream.kind,
        goodput_bps=goodput_bps,
        completed=completed,
        latency_us=latency_us,
        series_bps=np.empty(0),
    )


def _traffic_us(pair: _Pair, flow: FlowMeasure) -> float:
    """Time for which a pair's traffic flowed, without what its programs need beside."""
    if pair.test.seconds is not None:
        return pair.test.seconds * 1e6
    if flow.kind == "ping":
        return float(flow.latency_us.sum()) * 2
    sent = flow.completed * pair.test.stream.message_bytes
    return sent * 8e6 / flow.goodput_bps
