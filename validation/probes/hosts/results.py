"""From what the programs of a step left to what was measured, and why the rest was not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from validation.probes.hosts import tcp
from validation.probes.hosts.instrument import Complaint, Expected, ReportError
from validation.probes.hosts.pairs import RunningPair, alive, hosts_of
from validation.probes.hosts.setting import Setting
from validation.traffic import FlowMeasure, Step, StepMeasure, Transcript

_NOTHING: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True)
class Results:
    """Reads one step's results. ``offset_ns`` is each host's clock less ours."""

    setting: Setting
    folder: str
    offset_ns: Mapping[str, int]

    def measure(
        self, step: Step, pairs: Sequence[RunningPair], notes: Sequence[str]
    ) -> StepMeasure:
        """What every pair achieved; a pair whose report cannot be believed is lost."""
        flows: dict[str, FlowMeasure] = {}
        for pair in alive(pairs):
            try:
                flows[pair.test.name] = self._flow(pair)
            except ReportError as error:
                pair.lose(f"{pair.tool}: {error}")
        self._lose_strays([pair for pair in alive(pairs) if pair.test.seconds is not None])
        left = alive(pairs)
        noise = self.setting.instrument.noise
        said = [line for pair in pairs for line in noise(pair.files.get(f"{pair.client}.err", ""))]
        return StepMeasure(
            step=step.id,
            flows=tuple(flows[pair.test.name] for pair in left),
            traffic_us=max((_traffic_us(p, flows[p.test.name]) for p in left), default=0.0),
            sample_us=step.sample_us,
            notes=tuple(dict.fromkeys((*notes, *said, *self._releases(pairs)))),
            # Two streams of a pair may fail: what the first says stands.
            lost={pair.ends: pair.lost for pair in reversed(pairs) if pair.lost},
            transcripts=tuple(t for pair in pairs for t in self._transcripts(pair)),
        )

    def _flow(self, pair: RunningPair) -> FlowMeasure:
        """The client's results. Raises ReportError that says why there are none."""
        code = pair.files.get(f"{pair.client}.rc", "")
        if code != "0":
            raise ReportError(self._why(pair, code))
        out = pair.files.get(f"{pair.client}.out", "")
        if pair.program and pair.test.stream.kind == "ping":
            samples = tcp.half_trips_us(out)
            return _flow_of(pair, len(samples), 0.0, samples)
        if pair.program:
            server_out = pair.files.get(f"{pair.server}.out", "")
            rate = tcp.goodput_bps(pair.program, out, server_out)
            return _flow_of(pair, pair.test.stream.messages or 1, rate, _NOTHING)
        json_text = pair.files.get(f"{pair.client}.json", "")
        found = self.setting.instrument.figures(pair.test, out, self._expected(pair), json_text)
        return _flow_of(pair, found.completed, found.goodput_bps, found.latency_us)

    def _expected(self, pair: RunningPair) -> Expected:
        source, target = pair.ends
        link_of = self.setting.site.topology.link_of
        return Expected(
            rdma=self.setting.rdma(source),
            mtu=self.setting.site.intent.mtu.roce,
            gid_index=self.setting.gid(source).index,
            local=self.setting.gid(source).address,
            remote=self.setting.gid(target).address,
            speed_bps=min(link_of[end].speed_bps for end in pair.ends),
            elapsed_s=(_stamp_ns(pair, "to") - _stamp_ns(pair, "at")) / 1e9,
        )

    def _why(self, pair: RunningPair, code: str) -> str:
        """Why a client has no result: the cause that either end names, or the time."""
        said: list[tuple[str, Complaint]] = []
        for end, job in zip(pair.ends, (pair.client, pair.server), strict=True):
            text = "\n".join(pair.files.get(f"{job}.{kind}", "") for kind in ("err", "out"))
            said += [(f"{end.device} {self.setting.rdma(end)}", c) for c in self._complaints(text)]
        cause = min(said, key=lambda item: item[1].rank, default=None)
        ended = f"exit status {code}" if code else "no result in time: it hangs, and was ended"
        if cause is None:
            return ended
        where, complaint = cause
        return f"{ended}; {where} says {complaint.line!r}: {complaint.advice}"

    def _complaints(self, text: str) -> Iterator[Complaint]:
        return self.setting.instrument.complaints(text)

    def _lose_strays(self, pairs: Sequence[RunningPair]) -> None:
        """Lose pairs whose measured time did not lie within the traffic of all others.

        Traffic of equal length that ends within the margin of each other's end overlaps
        each other's measured part.
        """
        if len(pairs) < 2:
            return
        ended_s = [
            (_stamp_ns(pair, "to") - self.offset_ns[pair.test.source.device]) / 1e9
            for pair in pairs
        ]
        middle_s, most_s = statistics.median(ended_s), self.setting.options.margin_s / 2
        for pair, end_s in zip(pairs, ended_s, strict=True):
            if abs(end_s - middle_s) > most_s:
                pair.lose(
                    f"{pair.tool}: it ended {abs(end_s - middle_s):.1f} s apart from the others "
                    f"of its step, more than {most_s:g}: they did not compete; "
                    "`paisoar validate --seconds` leaves more room"
                )

    def _releases(self, pairs: Sequence[RunningPair]) -> tuple[str, ...]:
        """Says where hosts of the step have different releases."""
        found = {host: self.setting.facts[host].release for host in hosts_of(pairs)}
        if len(set(found.values())) < 2:
            return ()
        each = ", ".join(f"{release} on {host}" for host, release in sorted(found.items()))
        return (f"releases of {self.setting.instrument.name} differ: {each}",)

    def _transcripts(self, pair: RunningPair) -> Iterator[Transcript]:
        source, target = pair.hosts
        for host, job, server in ((target, pair.server, True), (source, pair.client, False)):
            if any(name.startswith(f"{job}.") for name in pair.files):
                yield Transcript(
                    pair=pair.ends,
                    host=host,
                    command=self.setting.words(pair, self.folder, server=server),
                    exit_status=pair.files.get(f"{job}.rc", ""),
                    stdout=self.setting.instrument.without_samples(
                        pair.files.get(f"{job}.out", "")
                    ),
                    stderr=pair.files.get(f"{job}.err", ""),
                )


def _stamp_ns(pair: RunningPair, kind: str) -> int:
    """When the client began (``at``) or ended (``to``) by its host's clock."""
    try:
        return int(pair.files[f"{pair.client}.{kind}"])
    except (KeyError, ValueError) as error:
        raise ReportError("the host did not say when it began and ended") from error


def _flow_of(
    pair: RunningPair, completed: int, goodput_bps: float, latency_us: NDArray[np.float64]
) -> FlowMeasure:
    return FlowMeasure(
        source=pair.test.source,
        target=pair.test.target,
        role=pair.test.stream.role,
        kind=pair.test.stream.kind,
        goodput_bps=goodput_bps,
        completed=completed,
        latency_us=latency_us,
        series_bps=_NOTHING,
    )


def _traffic_us(pair: RunningPair, flow: FlowMeasure) -> float:
    """Time for which a pair's traffic flowed, without what its programs need beside."""
    if pair.test.seconds is not None:
        return pair.test.seconds * 1e6
    if flow.kind == "ping":
        return float(flow.latency_us.sum()) * 2
    sent = flow.completed * pair.test.stream.message_bytes
    return sent * 8e6 / flow.goodput_bps
